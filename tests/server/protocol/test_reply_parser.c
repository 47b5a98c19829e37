/* reply_parser: reasoning and content come apart at every cut, with the white space rules of the
 * header. */
#include "server/protocol/output/reply_parser.h"

#include "tests/check.h"
#include "tests/server/protocol/tools_of.h"

/* What the pieces of one kind say together. */
static void gather(bytes *out, const reply_pieces *p, reply_kind kind)
{
    bytes_init(out, 1 << 16);
    for (size_t i = 0; i < p->n; i++) {
        if (p->items[i].kind == kind) {
            bytes_append(out, p->items[i].text.data, p->items[i].text.len);
        }
    }
}

/* In a first push of `first` bytes and others of `step`. */
static void check_cut(const char *text, size_t first, size_t step, bool starts, bool may,
                      const char *reasoning, const char *content)
{
    reply_parser p;
    reply_parser_init(&p, &(reply_rules){.starts_in_thinking = starts, .may_think = may});
    size_t len = strlen(text);
    reply_parser_push(&p, text, first);
    for (size_t i = first; i < len; i += step) {
        reply_parser_push(&p, text + i, len - i < step ? len - i : step);
    }
    reply_parser_finish(&p, false);
    bytes found[2];
    gather(&found[0], &p.pieces, REPLY_REASONING);
    gather(&found[1], &p.pieces, REPLY_CONTENT);
    CHECK_STR(bytes_str(&found[0]), reasoning);
    CHECK_STR(bytes_str(&found[1]), content);
    bytes_deinit(&found[0]);
    bytes_deinit(&found[1]);
    reply_parser_deinit(&p);
}

static void check(const char *text, bool starts, bool may, const char *reasoning, const char *content)
{
    for (size_t step = 1; step <= strlen(text) + 1; step++) {
        check_cut(text, 0, step, starts, may, reasoning, content);
    }
    for (size_t first = 0; first <= strlen(text); first++) {
        check_cut(text, first, strlen(text) + 1, starts, may, reasoning, content);
    }
}

/* Calls are told by another server, in fields of their own: white space waits for what follows where a call may. */
static void check_told(void)
{
    tool_set *tools = tools_of("[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]");
    for (int has_tools = 0; has_tools < 2; has_tools++) {
        reply_parser p;
        reply_parser_init(&p, &(reply_rules){.is_told = true, .tools = has_tools ? tools : NULL});
        reply_parser_push(&p, "a \n", 3);
        bytes content;
        gather(&content, &p.pieces, REPLY_CONTENT);
        CHECK_STR(bytes_str(&content), has_tools ? "a" : "a \n");
        bytes_deinit(&content);
        reply_parser_finish(&p, false);
        gather(&content, &p.pieces, REPLY_CONTENT);
        CHECK_STR(bytes_str(&content), "a \n");
        bytes_deinit(&content);
        reply_parser_deinit(&p);
    }
    tool_set_destroy(tools);
}

int main(void)
{
    /* the model opens the block itself */
    check("<think>\nwhy\n</think>\n\nanswer", false, true, "why", "answer");
    check(" \n<think>why</think>answer", false, true, "why", "answer");
    check("no thinking here", false, true, "", "no thinking here");
    check("  leading space stays", false, true, "", "  leading space stays");
    check("<thin air", false, true, "", "<thin air");
    check("<think>never closed\n", false, true, "never closed", "");
    check("<think></think>\n\nempty", false, true, "", "empty");
    check("<thi", false, true, "", "<thi");
    check("", false, true, "", "");
    /* the prompt ends inside the block */
    check("why\n</think>\n\nanswer", true, true, "why", "answer");
    check("<think>\nwhy</think>answer", true, true, "why", "answer");
    check("why not </thin> or </ think></think>\nanswer", true, true, "why not </thin> or </ think>",
          "answer");
    check("a  b \n\n c</think>x", true, true, "a  b \n\n c", "x");
    check("only reasoning </thi", true, true, "only reasoning </thi", "");
    /* later markers are text, and a model that does not think is left alone */
    check("<think>a</think>b <think>c</think> d", false, true, "a", "b <think>c</think> d");
    check("<think>a</think>b", false, false, "", "<think>a</think>b");
    check("text with <think>x</think>", false, true, "", "text with <think>x</think>");
    /* bytes pass through untouched */
    check("<think>\xC3\xA9\xF0\x9F\x98\x80</think>\xE2\x82\xAC", false, true, "\xC3\xA9\xF0\x9F\x98\x80",
          "\xE2\x82\xAC");

    reply_parser p;
    reply_parser_init(&p, &(reply_rules){.starts_in_thinking = true, .may_think = true});
    CHECK(reply_parser_is_thinking(&p));
    reply_parser_push(&p, "x</think>y", 10);
    CHECK(!reply_parser_is_thinking(&p));
    reply_parser_deinit(&p);

    /* an answer that goes on: the space after what was said before is part of it */
    reply_parser_init(&p, &(reply_rules){.starts_in_thinking = true, .continues = true});
    reply_parser_push(&p, " and so</think>\nyes", 19);
    CHECK_INT(p.pieces.n, 2);
    CHECK_STR(bytes_str(&p.pieces.items[0].text), " and so");
    CHECK_STR(bytes_str(&p.pieces.items[1].text), "yes");
    reply_parser_deinit(&p);
    check_told();
    CHECK_DONE();
}
