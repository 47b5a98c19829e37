/* reply_parser: what of an answer is told with which of its bytes, for each way to write calls and thoughts: nothing is held back
 * that cannot be anything else any more; recorded. */
#include "server/protocol/output/reply_parser.h"

#include "tests/recorded.h"
#include "tests/server/protocol/tool_writer.h"
#include "tests/server/protocol/tools_of.h"

static const char TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"find\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"},"
    "\"opts\":{\"type\":\"object\"}}}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"now\"}}]";
static const char CALLS[] =
    "[{\"name\":\"find\",\"arguments\":{\"city\":\"a<b\",\"days\":3,\"opts\":{\"k\":[1,\"x\"]}}},"
    "{\"name\":\"now\",\"arguments\":{}}]";

static tool_set *tools;
static bytes all;

static void put_text(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bytes_append_str(&all, text[i] == '\n' ? "\\n" : "");
        bytes_append(&all, text + i, text[i] != '\n');
    }
}

static void put_pieces(reply_parser *p, const char *when)
{
    static const char *const KINDS[] = {
        [REPLY_REASONING] = "thinks", [REPLY_CONTENT] = "says",  [REPLY_CALL] = "calls",
        [REPLY_ARGUMENTS] = "with",   [REPLY_CALL_END] = "done", [REPLY_CALL_CUT] = "cut",
        [REPLY_BLANK] = "blank"};
    for (size_t i = 0; i < p->pieces.n; i++) {
        const reply_piece *piece = &p->pieces.items[i];
        bytes_printf(&all, "  %s %s {", when, KINDS[piece->kind]);
        put_text(piece->text.data, piece->text.len);
        bytes_append_str(&all, "}\n");
    }
    reply_pieces_clear(&p->pieces);
}

/* Each byte that something comes with is named by its place, and what it is; of an answer that is cut, its end alone. */
static void tell(const char *what, const reply_rules *rules, const char *text, bool was_cut)
{
    reply_parser p;
    const char *was = "";
    reply_parser_init(&p, rules);
    bytes_printf(&all, "%s%s: ", what, was_cut ? ", cut" : "");
    put_text(text, strlen(text));
    bytes_append_char(&all, '\n');
    for (size_t i = 0; text[i]; i++) {
        char when[32];
        snprintf(when, sizeof when, "%zu%s%c", i, text[i] == '\n' ? "\\" : "",
                 text[i] == '\n' ? 'n' : text[i]);
        reply_parser_push(&p, text + i, 1);
        const char *is = reply_parser_is_thinking(&p)  ? "thoughts"
                         : reply_parser_is_content(&p) ? "text"
                         : p.stopped                   ? "stopped"
                                                       : "neither";
        if (was_cut) {
            reply_pieces_clear(&p.pieces);
            continue;
        }
        if (is != was) {
            bytes_printf(&all, "  %s is in %s, %zu held\n", when, is, p.held.len);
            was = is;
        }
        put_pieces(&p, when);
    }
    reply_parser_finish(&p, was_cut);
    put_pieces(&p, "end");
    reply_parser_deinit(&p);
}

static void test_calls(void)
{
    json_doc *doc = NULL;
    err_detail d = {0};
    CHECK_OK(json_parse(&doc, CALLS, sizeof CALLS - 1, LIMIT_JSON_DEPTH, &d), d);
    for (size_t w = 0; w < ARRAY_LEN(TOOL_WRITERS); w++) {
        bytes text = bytes_empty(1 << 16);
        const tool_form *form = TOOL_WRITERS[w].form;
        const reply_rules rules = {.form = form, .think = tool_writer_think(form), .tools = tools};
        bytes_append_str(&text, rules.think ? "" : "Look.\n");
        tool_writer_calls(&text, &TOOL_WRITERS[w], json_root(doc));
        bytes_append_str(&text, rules.think ? "" : "\nSo.");
        tell(form->name, &rules, bytes_str(&text), false);
        bytes_deinit(&text);
    }
    json_free(doc);
}

/* Halves of marks, and what looks like one. */
static void test_nearly(void)
{
    static const struct {
        const tool_form *form;
        const char *think, *text;
        bool starts, one_call;
    } ROWS[] = {
        {&TOOL_FORM_XML, NULL, "a <tool_call b </x> \n<tool_calls>", false, false},
        {&TOOL_FORM_XML, NULL, "So <tool_call>\n<function=now> is text", false, false},
        {&TOOL_FORM_XML, NULL, "<function=now>\n<parameter=a", false, false},
        {&TOOL_FORM_XML, NULL, "<function=now>\n</function>\nmore", false, true},
        {&TOOL_FORM_HERMES, NULL, "<tool_call>\n{\"name\": 3}\n</tool_call> x", false, false},
        {&TOOL_FORM_HERMES, NULL, "```\n<tool_call>{\"name\": \"now\"}\n``` y", false, false},
        {&TOOL_FORM_PYTHONIC, NULL, "[now is] [1, 2]", false, false},
        {&TOOL_FORM_MISTRAL, NULL, "[TOOL_CALL] [TOOL_CALLS]no w[ARGS]{}", false, false},
        {NULL, "think", "  <think>\n why <b> </thin \n</think>\n\n yes \n", false, false},
        {NULL, "think", " <thing> no", false, false},
        {NULL, "qwen3", "<think>why \n</think>yes </think> no", true, false},
        {NULL, "mistral", "[THINK]a [1] [/THIN [/THINK]\n[b]", false, false},
        {NULL, "gemma4", "<|channel>thought\n<|channel>thought\nwhy\n<channel|>yes", false, false},
        {&TOOL_FORM_HARMONY, "openai_gptoss",
         "<|channel|>analysis<|message|> a <|end|><|start|>assistant<|channel|>analysis<|message|>b "
         "<|en<|end|><|start|>assistant<|channel|>final<|message|>c <x> <|return|>",
         false, false},
        {&TOOL_FORM_HARMONY, "openai_gptoss",
         "<|channel|>commentary to=now<|message|>{}<|call|><|start|>assistant<|channel|>final<|message|>c",
         false, true},
        {&TOOL_FORM_HARMONY, "openai_gptoss", "assist me <|channel|>final\nx<|message|>y", false, false},
        {&TOOL_FORM_HARMONY, "openai_gptoss", "<|start|>assistant<|channel|>final", false, false},
        {&TOOL_FORM_HARMONY, "openai_gptoss", "<|end|><|start|><|start|>assistant<|message|>z<|start|>",
         false, false},
    };
    for (size_t i = 0; i < 2 * ARRAY_LEN(ROWS); i++) {
        const reply_rules rules = {.form = ROWS[i / 2].form,
                                   .think = ROWS[i / 2].think ? think_form_find(ROWS[i / 2].think) : NULL,
                                   .starts_in_thinking = ROWS[i / 2].starts,
                                   .may_think = true,
                                   .one_call = ROWS[i / 2].one_call,
                                   .tools = ROWS[i / 2].form ? tools : NULL};
        CHECK(!ROWS[i / 2].think || rules.think);
        tell(rules.form ? rules.form->name : ROWS[i / 2].think, &rules, ROWS[i / 2].text, i % 2);
    }
}

int main(void)
{
    all = bytes_empty((size_t)1 << 22);
    tools = tools_of(TOOLS);
    test_calls();
    test_nearly();
    recorded_check("server/protocol/reply_when.txt", bytes_str(&all));
    tool_set_destroy(tools);
    bytes_deinit(&all);
    CHECK_DONE();
}
