/* reply_parser and the forms of tool calls: the pieces are the same however the text was cut into
 * pushes, arguments of whole calls are JSON objects, and text that came in comes out or was markup.
 * The first three bytes choose the cuts and the rules. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"
#include "tests/server/protocol/tool_writer.h"
#include "tests/server/protocol/transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TEXT_BYTES = 8192 };

static const char TOOLS[] = "[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{\"s\":{\"type\":"
                            "\"string\"},\"i\":{\"type\":"
                            "\"integer\"},\"b\":{\"type\":\"boolean\"},\"o\":{\"type\":\"object\"},\"a\":{"
                            "\"type\":[\"array\",\"null\"]}}}}}]";

static tool_set *the_tools(void)
{
    static tool_set *set;
    json_doc *doc = NULL;
    if (!set) {
        must(json_parse(&doc, TOOLS, sizeof TOOLS - 1, 64, NULL) == ERR_OK);
        must(tool_set_create(&set, json_root(doc), NULL) == ERR_OK);
        json_free(doc);
    }
    return set;
}

/* Calls of the form whose arguments are written, not handed on, must always be valid. */
static void check_calls(const reply_rules *rules, const char *text, size_t len, bool was_cut)
{
    reply_parser p;
    size_t n_out = 0;
    bool in_call = false;
    reply_parser_init(&p, rules);
    reply_parser_push(&p, text, len);
    reply_parser_finish(&p, was_cut);
    for (size_t i = 0; i < p.pieces.n; i++) {
        const reply_piece *piece = &p.pieces.items[i];
        json_doc *doc = NULL;
        if (piece->kind == REPLY_REASONING || piece->kind == REPLY_CONTENT) {
            n_out += piece->text.len;
        }
        must(piece->kind == REPLY_ARGUMENTS || in_call == (piece->kind > REPLY_ARGUMENTS));
        in_call = piece->kind == REPLY_CALL || piece->kind == REPLY_ARGUMENTS;
        if (rules->form && rules->form->arguments == SPEC_PARAMETERS && piece->kind == REPLY_CALL_END) {
            const bytes *arguments = &p.pieces.items[i - 1].text;
            err_code err = json_parse(&doc, bytes_str(arguments), arguments->len, 128, NULL);
            must(err == ERR_OK && json_is(json_root(doc), JSON_OBJECT));
        }
        json_free(doc);
    }
    must(!in_call);
    must(n_out <= len);
    reply_parser_deinit(&p);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_behind(3, mutate_words, data, size, max, seed, "reply_parser");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3 || size > MAX_TEXT_BYTES || memchr(data + 3, 0, size - 3)) {
        return 0; /* JSON text with a zero in it is valid, but our own reader refuses it */
    }
    const uint32_t seed = ((uint32_t)data[0] << 8 | data[1]) + 1;
    const bool was_cut = data[2] & 16;
    const char *text = (const char *)data + 3;
    const tool_form *form = data[2] & 64  ? TOOL_WRITERS[data[1] % ARRAY_LEN(TOOL_WRITERS)].form
                            : data[2] & 4 ? &TOOL_FORM_HERMES
                                          : &TOOL_FORM_XML;
    const reply_rules rules = {.starts_in_thinking = data[2] & 1,
                               .may_think = data[2] & 2,
                               .think = tool_writer_think(form),
                               .form = form,
                               .tools = data[2] & 8 ? NULL : the_tools(),
                               .one_call = data[2] & 32};
    bytes whole, cut;
    bytes_init(&whole, SIZE_MAX / 2);
    bytes_init(&cut, SIZE_MAX / 2);
    transcript_parse(&whole, &rules, text, size - 3, 0, 0, was_cut);
    transcript_parse(&cut, &rules, text, size - 3, data[0] == 0 ? 1 : 0, seed, was_cut);
    say_text("", bytes_str(&whole), whole.len);
    must(whole.len == cut.len && memcmp(bytes_str(&whole), bytes_str(&cut), whole.len) == 0);
    check_calls(&rules, text, size - 3, was_cut);
    bytes_deinit(&whole);
    bytes_deinit(&cut);
    return 0;
}
