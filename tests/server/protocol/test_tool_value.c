/* tool_value: what becomes of each text that a model writes for a value, for each kind that the schema wants, as it stands and as
 * a literal of Python or of Gemma; recorded. */
#include "server/protocol/output/tool_value.h"

#include "base/json.h"
#include "base/limits.h"
#include "server/protocol/output/tool_set.h"
#include "tests/recorded.h"

static const char GEMMA[] = "<|\"|>";

static const struct {
    const char *name;
    unsigned kinds;
} KINDS[] = {{"any", TOOL_ANY},
             {"no text", TOOL_ANY & ~(unsigned)TOOL_STRING},
             {"text", TOOL_STRING},
             {"number", TOOL_NUMBER | TOOL_INTEGER},
             {"integer", TOOL_INTEGER},
             {"boolean", TOOL_BOOLEAN},
             {"object", TOOL_OBJECT},
             {"list", TOOL_ARRAY},
             {"null", TOOL_NULL},
             {"text or null", TOOL_STRING | TOOL_NULL},
             {"text or list", TOOL_STRING | TOOL_ARRAY},
             {"nothing", 0}};

#define DIGITS_58 "0000000000000000000000000000000000000000000000000000000000"

static const char *const TEXTS[] = {"",
                                    " ",
                                    "words",
                                    " words\n",
                                    "a\"b\\c",
                                    "true",
                                    " TRUE ",
                                    "False",
                                    "truer",
                                    "tru",
                                    "null",
                                    "None",
                                    "nONe ",
                                    "nul",
                                    "0",
                                    "-0",
                                    " 7\n",
                                    "-12",
                                    "+1",
                                    "007",
                                    "-01",
                                    "1.",
                                    ".5",
                                    "1.0",
                                    "-2.50",
                                    "1.5",
                                    "1e2",
                                    "1E+2",
                                    "1e-2",
                                    "15e-1",
                                    "1e",
                                    "1e+",
                                    "1.5e3",
                                    "1.e3",
                                    "1 2",
                                    "0x10",
                                    "NaN",
                                    "Infinity",
                                    "1e400",
                                    "9007199254740992.0",
                                    "9007199254740994.0",
                                    "-9007199254740992.0",
                                    "-9007199254740994.0",
                                    "12345678901234567890123",
                                    "1.000" DIGITS_58,
                                    "1.0000" DIGITS_58,
                                    "{}",
                                    "[]",
                                    " {\"a\": [1, \"b\"]} ",
                                    "{\"a\":1",
                                    "{'a': 1}",
                                    "{'a': True, 'b': None,}",
                                    "[1, 2,]",
                                    "(1, 'x')",
                                    "()",
                                    "[1, (2,), ]",
                                    "['it\\'s', \"say \\\"x\\\"\", 'tab\\t', '\\x41', '\\x4', '\\q', '\\']",
                                    "['a",
                                    "[\"a\\",
                                    "{a: 1, b c: d}",
                                    "{a:<|\"|>x y<|\"|>,b:[<|\"|>{]<|\"|>]}",
                                    "<|\"|>a 'b' \\n<|\"|>",
                                    "<|\"|>open",
                                    "<|\"|>",
                                    "<|\"",
                                    "\"quoted\"",
                                    "'quoted'",
                                    "\"{\\\"a\\\": 1}\"",
                                    "\"[1, 2]\"",
                                    "'[1, 2]'",
                                    "\"5\"",
                                    "'true'",
                                    "\"a\" b",
                                    "{\"a\": 1} x",
                                    "[a, b-c, $d, don't, 5x, -3, tRUE, none, None]",
                                    "{1: 2}",
                                    "[,]",
                                    "{,}",
                                    "[1,,2]",
                                    "]",
                                    "}{",
                                    "[{(",
                                    "{\"a\":{\"b\":[",
                                    "[1:2]",
                                    "[;]",
                                    "\xc3\xa9t\xc3\xa9",
                                    "[\xc3\xa9t\xc3\xa9]"};

static void put_text(bytes *out, const char *text)
{
    for (; *text; text++) {
        bytes_append_str(out, *text == '\n' ? "\\n" : "");
        bytes_append(out, text, *text != '\n');
    }
}

/* What comes of a text, the kinds of which the same comes on one line. */
static void tell(bytes *all, const char *text, const char *how, const char *quote)
{
    bytes made[ARRAY_LEN(KINDS)];
    for (size_t k = 0; k < ARRAY_LEN(KINDS); k++) {
        json_doc *doc = NULL;
        made[k] = bytes_empty(1 << 16);
        if (strcmp(how, "as it is") == 0) {
            tool_value_write(&made[k], text, strlen(text), KINDS[k].kinds);
        } else {
            tool_value_literal(&made[k], text, strlen(text), quote, KINDS[k].kinds);
        }
        const err_code err = json_parse(&doc, bytes_str(&made[k]), made[k].len, LIMIT_JSON_DEPTH, NULL);
        if (err != ERR_OK) { /* whatever was written, it is a value */
            fprintf(stderr, "  %s, %s: %s\n", text, KINDS[k].name, bytes_str(&made[k]));
        }
        CHECK_INT(err, ERR_OK);
        json_free(doc);
    }
    for (size_t k = 0; k < ARRAY_LEN(KINDS); k++) {
        size_t first = 0;
        while (strcmp(bytes_str(&made[first]), bytes_str(&made[k])) != 0) {
            first++;
        }
        if (first < k) {
            continue;
        }
        bytes_printf(all, "  %s, for", how);
        for (size_t i = k; i < ARRAY_LEN(KINDS); i++) {
            if (strcmp(bytes_str(&made[i]), bytes_str(&made[k])) == 0) {
                bytes_printf(all, "%s %s", i > k ? "," : "", KINDS[i].name);
            }
        }
        bytes_append_str(all, ": ");
        put_text(all, bytes_str(&made[k]));
        bytes_append_char(all, '\n');
    }
    for (size_t k = 0; k < ARRAY_LEN(KINDS); k++) {
        bytes_deinit(&made[k]);
    }
}

int main(void)
{
    bytes all = bytes_empty((size_t)1 << 22);
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        bytes_append_char(&all, '{');
        put_text(&all, TEXTS[i]);
        bytes_append_str(&all, "}\n");
        tell(&all, TEXTS[i], "as it is", NULL);
        tell(&all, TEXTS[i], "as Python", NULL);
        tell(&all, TEXTS[i], "as Gemma", GEMMA);
    }
    recorded_check("server/protocol/tool_values.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
