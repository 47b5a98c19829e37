/* reply_parser: reasoning and content come apart at every cut, with the white space rules of the
 * header. */
#include "server/protocol/output/reply_parser.h"

#include "tests/check.h"
#include "tests/recorded.h"
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

/* What says nothing ends nothing and begins nothing. */
static void check_empty(void)
{
    reply_parser p;
    reply_parser_init(&p, &(reply_rules){.is_told = true, .may_think = true});
    reply_parser_add(&p, REPLY_REASONING, "", 0);
    CHECK(!reply_parser_is_thinking(&p));
    reply_parser_add(&p, REPLY_REASONING, "w", 1);
    reply_parser_add(&p, REPLY_CONTENT, "", 0);
    CHECK(reply_parser_is_thinking(&p));
    reply_parser_add(&p, REPLY_CONTENT, "a", 1);
    CHECK(!reply_parser_is_thinking(&p));
    CHECK_INT(p.pieces.n, 2);
    reply_parser_deinit(&p);
    reply_pieces names; /* each is a piece of its own */
    reply_pieces_init(&names);
    reply_pieces_add(&names, REPLY_CALL, "f", 1);
    reply_pieces_add(&names, REPLY_CALL, "g", 1);
    reply_pieces_add(&names, REPLY_ITEM, "{}", 2);
    reply_pieces_add(&names, REPLY_ITEM, "[]", 2);
    CHECK_INT(names.n, 4);
    reply_pieces_deinit(&names);
}

/* ---- told in every order ---- */

enum { MOST_STEPS = 3, N_STEPS = 7, LINE = 400 };

static const struct {
    char sign;
    reply_kind kind;
    const char *text;
} STEPS[N_STEPS] = {{'r', REPLY_REASONING, "why \n"},
                    {'s', REPLY_REASONING, " so"},
                    {'a', REPLY_CONTENT, "a \n"},
                    {'b', REPLY_CONTENT, " b"},
                    {'t', REPLY_CONTENT, "<think>x</think> y"},
                    {'f', REPLY_CALL, "f"}, /* with its arguments and its end, or cut where it is the last */
                    {'i', REPLY_ITEM, "{}"}};

static void write_pieces(bytes *out, const reply_pieces *pieces)
{
    static const char SIGNS[] = "RC_[ ]!i";
    for (size_t i = 0; i < pieces->n; i++) {
        const bytes *text = &pieces->items[i].text;
        bytes_append_char(out, SIGNS[pieces->items[i].kind]);
        for (size_t k = 0; k < text->len; k++) {
            bytes_printf(out, text->data[k] == '\n' ? "\\n" : "%c", text->data[k]);
        }
        bytes_append_str(out, "|");
    }
}

/* The steps whose numbers are the digits of `which`; behind each, whether the next is reasoning or content. */
static void tell(bytes *out, const reply_rules *rules, size_t n, size_t which, bool is_cut)
{
    reply_parser p;
    reply_parser_init(&p, rules);
    for (size_t i = 0; i < n; i++, which /= N_STEPS) {
        const size_t step = which % N_STEPS;
        reply_parser_add(&p, STEPS[step].kind, STEPS[step].text, strlen(STEPS[step].text));
        if (STEPS[step].kind == REPLY_CALL) {
            reply_parser_add(&p, REPLY_ARGUMENTS, "{}", 2);
            if (!is_cut || i + 1 < n) {
                reply_parser_add(&p, REPLY_CALL_END, NULL, 0);
            }
        }
        bytes_append_char(out, reply_parser_is_thinking(&p) ? 'r' : reply_parser_is_content(&p) ? 'c' : '-');
    }
    bytes_append_char(out, ' ');
    reply_parser_finish(&p, is_cut);
    write_pieces(out, &p.pieces);
    reply_parser_deinit(&p);
}

/* What comes of all orders of such steps; for other rules where it is not the same as for the first. */
static void check_orders(void)
{
    tool_set *tools = tools_of("[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]");
    const struct {
        const char *name;
        reply_rules rules;
    } RULES[] = {{"", {.is_told = true, .may_think = true, .tools = tools}},
                 {"cut", {.is_told = true, .may_think = true, .tools = tools}},
                 {"one call", {.is_told = true, .may_think = true, .tools = tools, .one_call = true}},
                 {"no tools", {.is_told = true, .may_think = true}},
                 {"goes on", {.is_told = true, .continues = true, .tools = tools}},
                 {"thinks", {.is_told = true, .starts_in_thinking = true, .tools = tools}}};
    bytes out = bytes_empty(1 << 20);
    for (size_t n = 0, n_orders = 1; n <= MOST_STEPS; n++, n_orders *= N_STEPS) {
        for (size_t which = 0; which < n_orders; which++) {
            bytes first = bytes_empty(LINE);
            for (size_t i = 0, left = which; i < n; i++, left /= N_STEPS) {
                bytes_append_char(&out, STEPS[left % N_STEPS].sign);
            }
            for (size_t i = 0; i < ARRAY_LEN(RULES); i++) {
                bytes line = bytes_empty(LINE);
                tell(&line, &RULES[i].rules, n, which, RULES[i].name[0] == 'c');
                if (i == 0 || strcmp(bytes_str(&line), bytes_str(&first)) != 0) {
                    bytes_printf(&out, "%s%s: %s\n", i ? "    " : "", RULES[i].name, bytes_str(&line));
                }
                if (i == 0) {
                    bytes_append(&first, line.data, line.len);
                }
                bytes_deinit(&line);
            }
            bytes_deinit(&first);
        }
    }
    recorded_check("server/protocol/told_orders.txt", bytes_str(&out));
    bytes_deinit(&out);
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
    check_empty();
    check_orders();
    CHECK_DONE();
}
