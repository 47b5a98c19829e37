/* reply_parser: answers mixed at random from prose, calls of both forms, code blocks, thoughts and
 * halves of all of these come apart into the same pieces in pushes of every size, and cut at
 * random, as in one push. */
#include "base/json.h"
#include "tests/check.h"
#include "tests/server/protocol/tools_of.h"
#include "tests/server/protocol/transcript.h"

enum { N_MIXES = 200, MAX_PARTS = 6, N_RANDOM_CUTS = 8 };

static const char *const PARTS[] = {
    "Let me look.",
    "Grüße 👋, 看看。",
    "a < b <tool> ",
    "\n",
    "\n\n  ",
    " ",
    "<tool_",
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    "```\n",
    "\n```c\nint x;\n```\n",
    "\n~~~\n<tool_call>\n<function=now>\n</function>\n</tool_call>\n~~~\n",
    "\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
    "<tool_call>\n<function=say>\n<parameter=text>\n "
    "a</parameter\n```\n</parameter>\n</function>\n</tool_call>\n",
    "<function=say>\n<parameter=n>\n-3\n</parameter>\n</function>",
    "\n<tool_call>\n<function=say>\n<parameter=text>\nno end",
    "\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
    "<tool_call>{\"arguments\": {\"text\": \"\\\"</tool_call>ü\", \"n\": [1, None]}, \"name\": "
    "\"say\"}</tool_call>",
    "\n<tool_call>{\"name\": \"say\", \"arguments\": {\"text\": \"no e",
};

static uint32_t draw(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

static void write_mix(bytes *out, uint32_t *state, bool is_inside)
{
    if (is_inside || draw(state, 3) == 0) {
        bytes_append_str(out, is_inside ? "" : "<think>\n");
        bytes_append_str(out, draw(state, 2) ? "why < not\n" : "<tool_call>\n<function=now>");
        bytes_append_str(out, "\n</think>\n\n");
    }
    for (uint32_t n = 1 + draw(state, MAX_PARTS); n > 0; n--) {
        bytes_append_str(out, PARTS[draw(state, ARRAY_LEN(PARTS))]);
    }
}

/* False, with a message, if this way to push gives something else. */
static bool check_cut(const reply_rules *rules, const bytes *text, size_t step, uint32_t seed, bool was_cut,
                      const char *expected)
{
    bytes out;
    bytes_init(&out, 1 << 20);
    transcript_parse(&out, rules, text->data, text->len, step, seed, was_cut);
    const bool same = strcmp(bytes_str(&out), expected) == 0;
    if (!same) {
        CHECK_STR(bytes_str(&out), expected);
        fprintf(stderr, "  in pushes of %zu, seed %u, of: %s\n", step, (unsigned)seed,
                bytes_str((bytes *)text));
    }
    bytes_deinit(&out);
    return same;
}

static void check_mix(uint32_t mix, const tool_set *tools, int *n_calls)
{
    uint32_t state = mix * 2654435761u + 1;
    const bool is_inside = draw(&state, 4) == 0, was_cut = draw(&state, 2) == 0;
    const reply_rules rules = {.starts_in_thinking = is_inside,
                               .may_think = true,
                               .form = mix % 2 ? &TOOL_FORM_XML : &TOOL_FORM_HERMES,
                               .tools = tools,
                               .one_call = draw(&state, 8) == 0};
    bytes text, whole;
    bytes_init(&text, 1 << 16);
    bytes_init(&whole, 1 << 20);
    write_mix(&text, &state, is_inside);
    transcript_parse(&whole, &rules, text.data, text.len, 0, 0, was_cut);
    bool same = true;
    for (size_t step = 1; step < text.len && same; step++) {
        same = check_cut(&rules, &text, step, 0, was_cut, bytes_str(&whole));
    }
    for (uint32_t seed = 1; seed <= N_RANDOM_CUTS && same; seed++) {
        same = check_cut(&rules, &text, 0, seed, was_cut, bytes_str(&whole));
    }
    *n_calls += strstr(bytes_str(&whole), "[now ") || strstr(bytes_str(&whole), "[say ");
    bytes_deinit(&whole);
    bytes_deinit(&text);
}

int main(void)
{
    static const char TOOLS[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"now\"}},{\"type\":\"function\",\"function\":{"
        "\"name\":"
        "\"say\",\"parameters\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}}}}}]";
    tool_set *tools = tools_of(TOOLS);
    int n_calls = 0;
    for (uint32_t mix = 0; mix < N_MIXES && tools; mix++) {
        check_mix(mix, tools, &n_calls);
    }
    CHECK(n_calls > N_MIXES / 10); /* the mixes are worth the name */
    tool_set_destroy(tools);
    CHECK_DONE();
}
