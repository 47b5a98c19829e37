/* How families mark reasoning: every form comes apart the same at every cut, and an answer in channels
 * (harmony) gives reasoning, content and calls. */
#include "tests/recorded.h"
#include "tests/server/protocol/tools_of.h"
#include "tests/server/protocol/transcript.h"

static const char TOOLS[] = "[{\"type\":\"function\",\"function\":{\"name\":\"now\"}},"
                            "{\"type\":\"function\",\"function\":{\"name\":\"python\"}}]";

static tool_set *tools;

typedef struct sample {
    const char *form;
    bool starts, has_tools;
    const char *text, *expected;
} sample;

static const sample PLAIN[] = {
    {"think", false, false, "<think>\nwhy\n</think>\n\nyes", "R{why}C{yes}"},
    {"qwen3", true, false, "why</think>yes", "R{why}C{yes}"},
    {"mistral", false, false, "[THINK]why[/THINK]yes", "R{why}C{yes}"},
    {"mistral", false, false, "[THINK]a [1] [/THIN [/THINK]\n[b]", "R{a [1] [/THIN}C{[b]}"},
    {"mistral", false, false, "[TH] no", "C{[TH] no}"},
    {"mistral", false, false, "<think>x</think>", "C{<think>x</think>}"},
    {"seed_oss", false, false, "<seed:think>why</seed:think>yes", "R{why}C{yes}"},
    {"seed_oss", false, false, "\n<seed:think>\n</seed:think>yes", "C{yes}"},
    {"gemma4", false, false, "<|channel>thought\nwhy\n<channel|>yes", "R{why}C{yes}"},
    {"gemma4", false, false, "<|channel>thought\n<channel|>yes", "C{yes}"},
    {"gemma4", false, false, "yes <|channel>thought", "C{yes <|channel>thought}"},
    {"gemma4", false, false, "<|channel>thought\nwhy", "R{why}"},
    {"cohere_command", false, false, "<|START_THINKING|>why<|END_THINKING|>yes", "R{why}C{yes}"},
};

#define ANALYSIS(text)   "<|channel|>analysis<|message|>" text "<|end|>"
#define NEXT             "<|start|>assistant"
#define FINAL(text)      "<|channel|>final<|message|>" text
#define CALL(name, body) "<|channel|>commentary to=functions." name " <|constrain|>json<|message|>" body

static const sample HARMONY[] = {
    {"openai_gptoss", false, true, FINAL("Hello."), "C{Hello.}"},
    {"openai_gptoss", false, true, FINAL("Hello.<|return|>"), "C{Hello.}"},
    {"openai_gptoss", false, true, ANALYSIS("why") NEXT FINAL("Hello.\n\nTwo  lines.\n"),
     "R{why}C{Hello.\n\nTwo  lines.\n}"},
    {"openai_gptoss", false, true, ANALYSIS("why") NEXT CALL("now", "{}<|call|>"), "R{why}[now {}]"},
    {"openai_gptoss", false, true, ANALYSIS("why") NEXT CALL("now", "{\"a\":[1,{\"b\":\"ü<|x\"}]}"),
     "R{why}[now {\"a\":[1,{\"b\":\"ü<|x\"}]}]"},
    {"openai_gptoss", false, true,
     NEXT " to=functions.now<|channel|>commentary json<|message|>{\"k\": 1}<|call|>", "[now {\"k\": 1}]"},
    {"openai_gptoss", false, true, " to=functions.now<|channel|>commentary <|constrain|>json<|message|>{}",
     "[now {}]"},
    {"openai_gptoss", false, true, CALL("now", "{}<|call|>") NEXT CALL("now", "{\"b\":2}<|call|>"),
     "[now {}][now {\"b\":2}]"},
    {"openai_gptoss", false, true, CALL("fly", "{}<|call|>"), "[fly {}]"},
    {"openai_gptoss", false, true, "<|channel|>commentary<|message|>I look.<|end|>" NEXT CALL("now", "{}"),
     "C{I look.}[now {}]"},
    {"openai_gptoss", false, true, ANALYSIS("a") NEXT ANALYSIS("b") NEXT FINAL("c"), "R{a\n\nb}C{c}"},
    {"openai_gptoss", false, true, "<|channel|>commentary<|message|>One.<|end|>" NEXT FINAL("Two."),
     "C{One.\n\nTwo.}"},
    {"openai_gptoss", false, true, ANALYSIS(" \n") NEXT FINAL("x"), "C{x}"},
    /* a tool of its own in the thoughts */
    {"openai_gptoss", false, true, "<|channel|>analysis to=python code<|message|>{\"x\":1}<|call|>",
     "[python {\"x\":1}]"},
    {"openai_gptoss", false, true, "<|channel|>analysis to=browser.search code<|message|>{}<|call|>",
     "R{{}}"},
    /* without tools nothing is a call */
    {"openai_gptoss", false, false, CALL("now", "{\"a\":1}<|call|>"), "C{{\"a\":1}}"},
    {"openai_gptoss", false, false, ANALYSIS("why") NEXT FINAL("1 < 2 <|en"), "R{why}C{1 < 2 <|en}"},
    /* what models forget or get wrong */
    {"openai_gptoss", false, true, "Hello.", "C{Hello.}"},
    {"openai_gptoss", false, true, "assistant", "C{assistant}"},
    {"openai_gptoss", false, true, "<|channel|>analysis<|message|>why", "R{why}"},
    {"openai_gptoss", false, true, "<|channel|>analysis<|message|>why<|channel|>final<|message|>x",
     "R{why}C{x}"},
    {"openai_gptoss", false, true,
     "<|channel|>analysis<|message|>why<|start|>assistant<|channel|>final<|message|>x", "R{why}C{x}"},
    {"openai_gptoss", false, true, "<|message|>x<|end|>", "C{x}"},
    {"openai_gptoss", false, true, "<|channel|>final", ""},
    {"openai_gptoss", false, true, "<|channel|>final no message here", "C{<|channel|>final no message here}"},
    {"openai_gptoss", false, true, "<|channel|>final\nHello.", "C{<|channel|>final\nHello.}"},
    {"openai_gptoss", false, true, CALL("now", "Paris<|call|>"), "[now {}]C{Paris}"},
    {"openai_gptoss", false, true, CALL("now", "<|call|>"), "[now {}]"},
    {"openai_gptoss", false, true, CALL("now", "{\"a\": [1<|call|>"), "[now {\"a\": [1]}]"},
    {"openai_gptoss", false, true, CALL("now", "{\"a\": \"x"), "[now {\"a\": \"x\"}]"},
    {"openai_gptoss", false, true, CALL("now", "\"{\\\"a\\\":1}\"<|call|>"), "[now {\"a\":1}]"},
    {"openai_gptoss", false, true, CALL("now", "```json\n{}\n```<|call|>"), "[now {}]C{```}"},
    {"openai_gptoss", false, true, CALL("two words", "{}<|call|>"), "[two {}]"},
    {"openai_gptoss", false, true, CALL("", "{}<|call|>"), "C{{}}"},
};

static reply_rules rules_of(const sample *s)
{
    return (reply_rules){.think = think_form_find(s->form),
                         .starts_in_thinking = s->starts,
                         .may_think = true,
                         .form = s->has_tools ? &TOOL_FORM_HARMONY : NULL,
                         .tools = s->has_tools ? tools : NULL};
}

static void check(const sample *s)
{
    const reply_rules rules = rules_of(s);
    const size_t len = strlen(s->text);
    for (size_t cut = 0; cut <= len; cut++) {
        bytes out = bytes_empty(1 << 16);
        transcript_parse_split(&out, &rules, s->text, len, cut, false);
        CHECK_STR(bytes_str(&out), s->expected);
        cut = strcmp(bytes_str(&out), s->expected) == 0 ? cut : len;
        bytes_deinit(&out);
    }
    for (size_t step = 1; step < 6; step++) {
        bytes out = bytes_empty(1 << 16);
        transcript_parse(&out, &rules, s->text, len, step, 0, false);
        CHECK_STR(bytes_str(&out), s->expected);
        bytes_deinit(&out);
    }
}

/* What counts as reasoning while it is said; one call; an answer that was cut, and one that goes on. */
static void test_states(void)
{
    static const char TEXT[] = ANALYSIS("why") NEXT CALL("now", "{}<|call|>") NEXT CALL("now", "{}");
    const think_form *form = think_form_find("openai_gptoss");
    reply_rules rules = {.think = form, .form = &TOOL_FORM_HARMONY, .tools = tools, .one_call = true};
    reply_parser p;
    bytes out = bytes_empty(1 << 16);
    reply_parser_init(&p, &rules);
    CHECK(!reply_parser_is_thinking(&p) && !reply_parser_is_content(&p));
    reply_parser_push(&p, TEXT, sizeof "<|channel|>analysis<|message|>wh" - 1);
    CHECK(reply_parser_is_thinking(&p));
    reply_parser_push(&p, TEXT + 32, sizeof TEXT - 33);
    reply_parser_finish(&p, false);
    transcript_write(&out, &p.pieces);
    CHECK_STR(bytes_str(&out), "R{why}[now {}]");
    reply_parser_deinit(&p);
    bytes_clear(&out);
    rules.one_call = false;
    transcript_parse(&out, &rules, CALL("now", "{\"a\": 1"), sizeof CALL("now", "{\"a\": 1") - 1, 1, 0, true);
    CHECK_STR(bytes_str(&out), "[now {\"a\": !]");
    bytes_clear(&out);
    rules.continues = true;
    transcript_parse(&out, &rules, "and so on.<|return|>", 20, 1, 0, false);
    CHECK_STR(bytes_str(&out), "C{and so on.}");
    bytes_deinit(&out);
}

static void test_templates(void)
{
    static const struct {
        const char *text, *name;
    } ROWS[] = {{"'<|start|>assistant<|channel|>analysis<|message|>'", "openai_gptoss"},
                {"'<|channel>thought\\n<channel|>'", "gemma4"},
                {"'[THINK]' + m.reasoning_content + '[/THINK]'", "mistral"},
                {"think_begin_token = '<seed:think>'", "seed_oss"},
                {"<|START_THINKING|>", "cohere_command"},
                {"'<think>\\n'", "think"},
                {"{{ messages }}", "think"}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        CHECK_STR(think_form_of_template(ROWS[i].text)->name, ROWS[i].name);
        CHECK(think_form_find(ROWS[i].name) && strstr(think_form_names(), ROWS[i].name));
    }
    CHECK(think_form_of_template(NULL) == &THINK_TAGS && !think_form_find("other"));
    CHECK(think_form_find("deepseek_r1") == &THINK_TAGS && think_form_find("minimax_m2") == &THINK_TAGS);
    CHECK(think_form_reads(think_form_find("gemma4"), "<channel|>", 10) &&
          !think_form_reads(NULL, "<think>", 7));
}

/* When the bytes of each are told, and those of texts with what looks like a mark. */
static void test_told(void)
{
    static const sample LOOKS[] = {
        {"think", false, false, "a <b <think> c </think> d <", NULL},
        {"think", true, false, "a <b </th </x> c < d</think> e", NULL},
        {"mistral", false, false, "[THINK]a [b [/TH [/x] [/THINK] c [d", NULL},
        {"openai_gptoss", false, true, FINAL("a <b <| <|x|> <|e <<|end|> c"), NULL},
        {"openai_gptoss", false, true, ANALYSIS("a <b <| <|x|> <|en <<|ch") NEXT FINAL("b <"), NULL}};
    bytes out = bytes_empty(1 << 20);
    const struct {
        const sample *samples;
        size_t n;
    } ALL[] = {{PLAIN, ARRAY_LEN(PLAIN)}, {HARMONY, ARRAY_LEN(HARMONY)}, {LOOKS, ARRAY_LEN(LOOKS)}};
    for (size_t i = 0; i < ARRAY_LEN(ALL); i++) {
        for (size_t k = 0; k < ALL[i].n; k++) {
            const reply_rules rules = rules_of(&ALL[i].samples[k]);
            transcript_told(&out, &rules, ALL[i].samples[k].text);
        }
    }
    recorded_check("server/protocol/told_thoughts.txt", bytes_str(&out));
    bytes_deinit(&out);
}

int main(void)
{
    tools = tools_of(TOOLS);
    for (size_t i = 0; i < ARRAY_LEN(PLAIN); i++) {
        check(&PLAIN[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(HARMONY); i++) {
        check(&HARMONY[i]);
    }
    test_states();
    test_told();
    test_templates();
    tool_set_destroy(tools);
    CHECK_DONE();
}
