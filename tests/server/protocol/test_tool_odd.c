/* Every form of tool call with a byte too many or too few at each place, with long names and deep values: what comes of it is
 * recorded, and the same however it is cut. */
#include "base/hash.h"
#include "base/limits.h"
#include "tests/check.h"
#include "tests/recorded.h"
#include "tests/server/protocol/tool_writer.h"
#include "tests/server/protocol/tools_of.h"
#include "tests/server/protocol/transcript.h"

static const char TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"find\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{"
    "\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"},\"ratio\":{\"type\":\"number\"},"
    "\"metric\":{\"type\":\"boolean\"},\"opts\":{\"type\":\"object\"},\"tags\":{\"type\":\"array\"},"
    "\"maybe\":{\"type\":[\"string\",\"null\"]}}}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"now\"}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"write-file_2\",\"parameters\":{\"properties\":{"
    "\"path\":{\"type\":\"string\"},\"content\":{\"type\":\"string\"}}}}}]";

static tool_set *tools;
static err_detail d;

static json_doc *parse(const char *text)
{
    json_doc *doc = NULL;
    CHECK_OK(json_parse(&doc, text, strlen(text), LIMIT_JSON_DEPTH, &d), d);
    return doc;
}

/* Appends a text in one line, of many equal bytes how many there are. */
static void append_shown(bytes *out, const char *text, size_t len)
{
    enum { MANY = 12 };
    for (size_t i = 0, n; i < len; i += n) {
        for (n = 1; i + n < len && text[i + n] == text[i]; n++) {
        }
        if (n >= MANY) {
            bytes_printf(out, "{%zu %c}", n, text[i]);
        }
        for (size_t k = 0; k < n && n < MANY; k++) {
            bytes_append_str(out, text[i] == '\n' ? "\\n" : text[i] == '\r' ? "\\r" : text[i] ? "" : "\\0");
            bytes_append(out, text + i, text[i] && !strchr("\n\r", text[i]));
        }
    }
}

/* What comes of a text; the same if it comes in pieces. */
static void outcome(bytes *out, const reply_rules *rules, const char *text, size_t len, bool was_cut)
{
    bytes cut = bytes_empty(1 << 20);
    bytes_clear(out);
    transcript_parse(out, rules, text, len, 0, 0, was_cut);
    for (uint32_t seed = 0; seed < 3; seed++) { /* byte by byte, and in pieces of any size */
        bytes_clear(&cut);
        transcript_parse(&cut, rules, text, len, seed == 0, seed, was_cut);
        const bool same = cut.len == out->len && memcmp(bytes_str(&cut), bytes_str(out), out->len) == 0;
        CHECK(same);
        if (!same) {
            bytes shown = bytes_empty(1 << 20);
            append_shown(&shown, text, len);
            fprintf(stderr, "  %s, seed %u: %s\n", rules->form->name, (unsigned)seed, bytes_str(&shown));
            bytes_deinit(&shown);
        }
    }
    bytes_deinit(&cut);
}

typedef enum odd_change {
    ZERO_ADDED,
    QUOTE_ADDED,
    BYTE_LEFT_OUT,
    ENDED_EARLY,
    CUT_EARLY,
    ODD_CHANGES
} odd_change;

static void make_odd(bytes *out, const bytes *text, size_t at, odd_change how)
{
    bytes_clear(out);
    bytes_append(out, text->data, at);
    if (how <= QUOTE_ADDED) {
        bytes_append_char(out, how == ZERO_ADDED ? '\0' : '"');
    }
    if (how <= BYTE_LEFT_OUT) {
        at += how == BYTE_LEFT_OUT;
        bytes_append(out, text->data + at, text->len - at);
    }
}

/* A change at each place: the call that is read in spite of a zero, of all else a sum. */
static void tell_odd(bytes *record, const reply_rules *rules, const bytes *text, odd_change how)
{
    static const char *const NAMES[] = {"a zero", "a quote", "one byte less", "ended", "cut"};
    bytes odd = bytes_empty(1 << 16), before = bytes_empty(1 << 20), now = bytes_empty(1 << 20);
    bytes_printf(record, "%s at each place:\n", NAMES[how]);
    for (size_t at = 0; at < text->len; at++) {
        make_odd(&odd, text, at, how);
        outcome(&now, rules, odd.data, odd.len, how == CUT_EARLY);
        if (at == 0 || now.len != before.len || memcmp(bytes_str(&now), bytes_str(&before), now.len) != 0) {
            const bool is_shown = how == ZERO_ADDED && now.len < 64 && !strstr(bytes_str(&now), "C{");
            uint8_t sum[HASH_BYTES];
            hash_sha256(sum, bytes_str(&now), now.len);
            bytes_printf(record, is_shown ? "\n%zu " : "%zu:%02x%02x%02x ", at, sum[0], sum[1], sum[2]);
            append_shown(record, bytes_str(&now), is_shown ? now.len : 0);
            bytes_append_str(record, is_shown ? " " : "");
        }
        bytes_clear(&before);
        bytes_append(&before, bytes_str(&now), now.len);
    }
    bytes_append_char(record, '\n');
    bytes_deinit(&odd);
    bytes_deinit(&before);
    bytes_deinit(&now);
}

/* Names of a tool and of a parameter of so many bytes. */
static void tell_long(bytes *record, const reply_rules *rules, const tool_writer_row *w, size_t n_name,
                      size_t n_key)
{
    bytes calls = bytes_empty(1 << 16), text = bytes_empty(1 << 16), now = bytes_empty(1 << 16);
    bytes_append_str(&calls, "[{\"name\":\"");
    bytes_append_str(&calls, n_name ? "" : "find");
    for (size_t i = 0; i < n_name; i++) {
        bytes_append_char(&calls, 'n');
    }
    bytes_append_str(&calls, "\",\"arguments\":{\"");
    for (size_t i = 0; i < n_key; i++) {
        bytes_append_char(&calls, 'k');
    }
    bytes_append_str(&calls, "\":1}}]");
    json_doc *doc = parse(bytes_str(&calls));
    tool_writer_calls(&text, w, json_root(doc));
    outcome(&now, rules, text.data, text.len, false);
    bytes_printf(record, "name %zu, key %zu: ", n_name, n_key);
    append_shown(record, bytes_str(&now), now.len);
    bytes_append_char(record, '\n');
    json_free(doc);
    bytes_deinit(&calls);
    bytes_deinit(&text);
    bytes_deinit(&now);
}

static void append_many(bytes *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bytes_append_str(out, text);
    }
}

/* The begin of a long text, and its sum. */
static void append_brief(bytes *out, bytes *text)
{
    enum { BRIEF = 100, BEGIN = 40 };
    uint8_t sum[HASH_BYTES];
    bytes shown = bytes_empty(1 << 16);
    append_shown(&shown, bytes_str(text), text->len);
    hash_sha256(sum, bytes_str(text), text->len);
    bytes_append(out, bytes_str(&shown), shown.len > BRIEF ? BEGIN : shown.len);
    if (shown.len > BRIEF) {
        bytes_printf(out, "... of %zu bytes, %02x%02x%02x", text->len, sum[0], sum[1], sum[2]);
    }
    bytes_deinit(&shown);
}

/* Lists and objects within each other: as deep as JSON may be, and deeper. */
static void tell_deep(bytes *record)
{
    static const struct {
        const tool_form *form;
        const char *before, *open, *close, *after;
    } DEEP[] = {
        {&TOOL_FORM_HERMES, "<tool_call>{\"name\":\"find\",\"arguments\":", "{\"k\":", "}",
         "}</tool_call>ok"},
        {&TOOL_FORM_HERMES, "<tool_call>{\"name\":\"find\",\"arguments\":{\"tags\":", "[", "]",
         "}}</tool_call>ok"},
        {&TOOL_FORM_XML, "<function=find><parameter=tags>", "['x',", "]", "</parameter></function>ok"},
        {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(tags=", "(", ",)", ")]ok"},
        {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(tags=", "[{'k':", "}]", ")]ok"},
        {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{opts:", "{a b:", "}", "}<tool_call|>ok"},
    };
    static const size_t DEPTHS[] = {61, 62, 63, 64, 65, 66};
    for (size_t i = 0; i < ARRAY_LEN(DEEP) * ARRAY_LEN(DEPTHS) * 2; i++) {
        const size_t which = i / (2 * ARRAY_LEN(DEPTHS)), depth = DEPTHS[i / 2 % ARRAY_LEN(DEPTHS)];
        const reply_rules rules = {.form = DEEP[which].form, .tools = tools};
        bytes text = bytes_empty(1 << 16), now = bytes_empty(1 << 16);
        bytes_append_str(&text, DEEP[which].before);
        append_many(&text, DEEP[which].open, depth);
        bytes_append_str(&text, "1");
        if (i % 2) { /* or the model ends there */
            append_many(&text, DEEP[which].close, depth);
            bytes_append_str(&text, DEEP[which].after);
        }
        outcome(&now, &rules, text.data, text.len, false);
        bytes_printf(record, "%s, %zu of %s%s: ", rules.form->name, depth, DEEP[which].open,
                     i % 2 ? "" : ", open");
        append_brief(record, &now);
        bytes_append_char(record, '\n');
        bytes_deinit(&text);
        bytes_deinit(&now);
    }
}

/* Arguments without names get those of the parameters, however long. */
static void tell_places(bytes *record)
{
    static const char TEXT[] = "<|tool_call_start|>[long(1, 2, 3, 4)]";
    bytes text = bytes_empty(1 << 16), now = bytes_empty(1 << 16);
    bytes_append_str(&text, "[{\"function\":{\"name\":\"long\",\"parameters\":{\"properties\":{\"");
    for (size_t n = TOOL_NAME_BYTES - 1; n <= TOOL_NAME_BYTES + 1; n++) {
        append_many(&text, "p", n);
        bytes_append_str(&text, n <= TOOL_NAME_BYTES ? "\":{},\"" : "\":{}}}}}]");
    }
    tool_set *of_long = tools_of(bytes_str(&text));
    outcome(&now, &(reply_rules){.form = &TOOL_FORM_LFM2, .tools = of_long}, TEXT, sizeof TEXT - 1, false);
    append_shown(record, bytes_str(&now), now.len);
    bytes_append_char(record, '\n');
    tool_set_destroy(of_long);
    bytes_deinit(&text);
    bytes_deinit(&now);
}

/* Zeros where something else decides what comes next. */
static void tell_zeros(bytes *record)
{
#define WITH_ZEROS(text) text, sizeof(text) - 1
    static const struct {
        const tool_form *form;
        const char *text;
        size_t len;
    } ROWS[] = {
        {&TOOL_FORM_LFM2, WITH_ZEROS("<|tool_call_start|>[find(city='a\\\0b', city='\\x4\0', city=\0'a')]")},
        {&TOOL_FORM_LFM2, WITH_ZEROS("<|tool_call_start|>[find(tags=[1,\0], tags=[1, \0 2], tags=[\0])]")},
        {&TOOL_FORM_LFM2,
         WITH_ZEROS("<|tool_call_start|>[find(opts={'a':tr\0ue}, ratio=1\0, metric=\0True)]")},
        {&TOOL_FORM_LFM2, WITH_ZEROS("<|tool_call_start|>\0[now()]")},
        {&TOOL_FORM_LFM2, WITH_ZEROS("<|tool_call_start|>[now()\0, now()]")},
        {&TOOL_FORM_LFM2, WITH_ZEROS("<|tool_call_start|>[now(),\0now()]")},
        {&TOOL_FORM_GEMMA4, WITH_ZEROS("<|tool_call>call:find{opts:{a:1,\0b:2},tags:[\0'x']}<tool_call|>")},
        {&TOOL_FORM_GEMMA4,
         WITH_ZEROS("<|tool_call>call:find{opts:\0{a:1}}<tool_call|>\0<|tool_call>call:now{}")},
        {&TOOL_FORM_HERMES,
         WITH_ZEROS(
             "<tool_call>{\"name\": \"find\", \"arguments\": {\"city\": \"a\\\0\", \"days\": 1\0 2}}")},
        {&TOOL_FORM_HERMES,
         WITH_ZEROS("<tool_call>{\"x\": \0, \"y\": \"a\0\", \"name\": \"now\"}</tool_call>\0\n<tool_call>")},
        {&TOOL_FORM_HERMES, WITH_ZEROS("\0<think>\0why\0</think>\0ok")},
        {&TOOL_FORM_HERMES, WITH_ZEROS("<think>why \0\n</think>\n\0ok \0")},
        {&TOOL_FORM_XML, WITH_ZEROS("<function=\0now>\n</function><function= now\0>\n</function>")},
        {&TOOL_FORM_XML,
         WITH_ZEROS("<function=now>\0<parameter=a>\0\n\0</parameter>\0</function>\0</tool_call>")},
        {&TOOL_FORM_XML,
         WITH_ZEROS("<function=find><parameter=days>\0003</parameter><parameter=metric>true\0</parameter>")},
        {&TOOL_FORM_MINIMAX,
         WITH_ZEROS("<minimax:tool_call><invoke name=\0\"find\"><parameter name=\"\0city\">a</parameter>")},
        {&TOOL_FORM_KIMI,
         WITH_ZEROS("<|tool_call_begin|>functions.now:\0<|tool_call_argument_begin|>{}<|tool_call_end|>")},
        {&TOOL_FORM_MISTRAL, WITH_ZEROS("[TOOL_CALLS]now\0[ARGS]{}[TOOL_CALLS]now[ARGS]\0{}")},
        {&TOOL_FORM_HARMONY,
         WITH_ZEROS(
             "<|channel|>final\0<|message|>a<|end|><|channel|>commentary to=functions.now\0<|message|>{}")},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const reply_rules rules = {.form = ROWS[i].form,
                                   .think = tool_writer_think(ROWS[i].form),
                                   .may_think = true,
                                   .tools = tools};
        bytes now = bytes_empty(1 << 16);
        append_shown(record, ROWS[i].text, ROWS[i].len);
        bytes_append_str(record, "\n    ");
        outcome(&now, &rules, ROWS[i].text, ROWS[i].len, false);
        append_shown(record, bytes_str(&now), now.len);
        bytes_append_char(record, '\n');
        bytes_deinit(&now);
    }
}

static void test_odd_bytes(void)
{
    static const size_t LONG[] = {TOOL_NAME_BYTES - 1,  TOOL_NAME_BYTES,      TOOL_NAME_BYTES + 1,
                                  TOOL_NAME_BYTES + 23, TOOL_NAME_BYTES + 24, TOOL_NAME_BYTES + 25,
                                  TOOL_NAME_BYTES + 64, TOOL_NAME_BYTES + 65};
    json_doc *calls = parse("[{\"name\":\"find\",\"arguments\":{\"city\":\"a "
                            "b\",\"opts\":{\"k\":[1,\"x\"]}}},{\"name\":\"now\",\"arguments\":{}}]");
    bytes record = bytes_empty((size_t)1 << 24), text = bytes_empty(1 << 16);
    for (size_t w = 0; w < ARRAY_LEN(TOOL_WRITERS); w++) {
        const reply_rules rules = {
            .form = TOOL_WRITERS[w].form, .think = tool_writer_think(TOOL_WRITERS[w].form), .tools = tools};
        bytes_clear(&text);
        tool_writer_calls(&text, &TOOL_WRITERS[w], json_root(calls));
        bytes_printf(&record, "\n%s: ", rules.form->name);
        append_shown(&record, bytes_str(&text), text.len);
        bytes_append_char(&record, '\n');
        for (odd_change how = 0; how < ODD_CHANGES; how++) {
            tell_odd(&record, &rules, &text, how);
        }
        for (size_t i = 0; i < ARRAY_LEN(LONG); i++) {
            tell_long(&record, &rules, &TOOL_WRITERS[w], LONG[i], 1);
            tell_long(&record, &rules, &TOOL_WRITERS[w], 0, LONG[i]);
        }
    }
    bytes_append_char(&record, '\n');
    tell_deep(&record);
    tell_places(&record);
    tell_zeros(&record);
    recorded_check("server/protocol/odd_calls.txt", bytes_str(&record));
    bytes_deinit(&record);
    bytes_deinit(&text);
    json_free(calls);
}

int main(void)
{
    tools = tools_of(TOOLS);
    test_odd_bytes();
    tool_set_destroy(tools);
    CHECK_DONE();
}
