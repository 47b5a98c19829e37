/* think: the block is followed byte by byte, and closed by its budget or instead of the answer's
 * end. */
#include "engine/think.h"

#include "base/json.h"
#include "engine/prompt.h"
#include "tests/check.h"

static const int32_t CLOSE_IDS[] = {900, 901, 902};

static think_watch start(bool starts, bool may, int32_t budget)
{
    think_watch w;
    think_init(&w, &THINK_TAGS, starts, may, budget, CLOSE_IDS, 3);
    return w;
}

static void say(think_watch *w, const char *text)
{
    think_accept(w, text, strlen(text));
}

static void test_phases(void)
{
    think_watch w = start(false, true, -1);
    say(&w, " \n<th");
    CHECK_INT(w.phase, THINK_START);
    say(&w, "ink>\nso");
    CHECK_INT(w.phase, THINK_OPEN);
    say(&w, "</thi");
    say(&w, "nk");
    CHECK_INT(w.phase, THINK_OPEN);
    say(&w, ">\n\nyes");
    CHECK_INT(w.phase, THINK_CLOSED);
    w = start(false, true, -1);
    say(&w, "<b>");
    CHECK_INT(w.phase, THINK_CLOSED);
    w = start(false, false, -1);
    say(&w, "<think>");
    CHECK_INT(w.phase, THINK_CLOSED);
    w = start(false, true, -1);
    think_accept(&w, "\0", 1); /* no white space */
    CHECK_INT(w.phase, THINK_CLOSED);
    w = start(true, true, -1);
    say(&w, "a</think>");
    CHECK_INT(w.phase, THINK_CLOSED);
}

static void check_closing(think_watch *w, int32_t drawn, bool is_stop)
{
    for (int i = 0; i < 3; i++) {
        CHECK_INT(think_choose(w, drawn, is_stop), CLOSE_IDS[i]);
        say(w, "x");
    }
    CHECK_INT(w->phase, THINK_CLOSED);
    CHECK_INT(think_choose(w, 7, true), 7);
}

static void test_budget(void)
{
    think_watch w = start(true, true, 2);
    CHECK_INT(think_choose(&w, 5, false), 5);
    say(&w, "one");
    CHECK_INT(think_choose(&w, 6, false), 6);
    say(&w, "two");
    check_closing(&w, 7, false);
    w = start(true, true, 0);
    check_closing(&w, 7, false);
    /* the answer opens the block itself: its marker is no thought */
    w = start(false, true, 1);
    CHECK_INT(think_choose(&w, 5, false), 5);
    say(&w, "<think>");
    CHECK_INT(think_choose(&w, 6, false), 6);
    say(&w, "hm");
    check_closing(&w, 7, false);
    /* a block that ended in time */
    w = start(true, true, 2);
    say(&w, "a");
    say(&w, "</think>");
    CHECK_INT(think_choose(&w, 5, false), 5);
}

static void test_told_to_end(void)
{
    think_watch w = start(true, true, -1);
    say(&w, "hm");
    think_end(&w);
    check_closing(&w, 5, false);
    think_end(&w); /* it is over: nothing happens */
    CHECK_INT(think_choose(&w, 5, false), 5);
    /* told before the block is there */
    w = start(false, true, -1);
    think_end(&w);
    CHECK_INT(think_choose(&w, 5, false), 5);
    say(&w, "<think>");
    check_closing(&w, 6, false);
    /* while it is being closed */
    w = start(true, true, 0);
    CHECK_INT(think_choose(&w, 5, false), CLOSE_IDS[0]);
    say(&w, "x");
    think_end(&w);
    CHECK_INT(think_choose(&w, 5, false), CLOSE_IDS[1]);
}

static void test_end_inside(void)
{
    think_watch w = start(true, true, -1);
    say(&w, "hm");
    check_closing(&w, 1, true);
    w = start(false, true, -1);
    CHECK_INT(think_choose(&w, 1, true), 1);
    think_init(&w, &THINK_TAGS, true, true, 0, NULL, 0);
    CHECK_INT(think_choose(&w, 1, true), 1);
}

/* Other families' markers; in channels reasoning may come again, and the budget counts all of it. */
static void test_forms(void)
{
    think_watch w;
    think_init(&w, think_form_find("mistral"), false, true, -1, CLOSE_IDS, 3);
    say(&w, "[THINK]");
    CHECK_INT(w.phase, THINK_OPEN);
    say(&w, "</think> [/THI");
    say(&w, "NK]");
    CHECK_INT(w.phase, THINK_CLOSED);
    think_init(&w, think_form_find("openai_gptoss"), false, true, 3, CLOSE_IDS, 3);
    say(&w, "<|channel|>");
    say(&w, "analysis");
    say(&w, "<|message|>");
    CHECK_INT(w.phase, THINK_OPEN);
    say(&w, "one");
    say(&w, "<|end|>");
    CHECK_INT(w.phase, THINK_CLOSED);
    CHECK_INT(think_choose(&w, 5, false), 5);
    say(&w, "<|start|>assistant<|channel|>analysis<|message|>");
    CHECK_INT(w.phase, THINK_OPEN);
    CHECK_INT(think_choose(&w, 5, false), 5);
    say(&w, "two");
    check_closing(&w, 5, false);
    say(&w, "<|channel|>analysis<|message|>");
    check_closing(&w, 5, false);
    think_init(&w, think_form_find("openai_gptoss"), false, true, -1, CLOSE_IDS, 3);
    say(&w, "<|channel|>final<|message|>yes");
    CHECK_INT(w.phase, THINK_CLOSED);
}

/* Each form by its names, by what its templates hold, and by the tokens that it is written with. */
static void test_names(void)
{
    static const struct {
        const char *names[4], *sign, *tokens[4];
    } forms[] = {
        {{"think", "qwen3", "deepseek_r1", "ernie45"}, NULL, {"<think>", "</think>"}},
        {{"seed_oss"}, "seed:think>", {"<seed:think>", "</seed:think>"}},
        {{"mistral"}, "[THINK]", {"[THINK]", "[/THINK]"}},
        {{"gemma4"}, "<|channel>thought", {"<|channel>", "<channel|>"}},
        {{"cohere_command"}, "<|START_THINKING|>", {"<|START_THINKING|>", "<|END_THINKING|>"}},
        {{"openai_gptoss", "gpt_oss", "openai", "harmony"},
         "<|channel|>analysis",
         {"<|channel|>", "<|message|>", "<|end|>", "<|constrain|>"}},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const think_form *f = think_form_find(forms[i].names[0]);
        CHECK(f && strcmp(f->name, forms[i].names[0]) == 0);
        for (size_t k = 0; k < 4 && forms[i].names[k]; k++) {
            CHECK(think_form_find(forms[i].names[k]) == f);
            CHECK(strstr(think_form_names(), forms[i].names[0]) != NULL);
        }
        char text[100];
        snprintf(text, sizeof text, "{{ a }}%s{{ b }}", forms[i].sign ? forms[i].sign : "<think>");
        CHECK(think_form_of_template(text) == f);
        for (size_t k = 0; k < 4 && forms[i].tokens[k]; k++) {
            const size_t len = strlen(forms[i].tokens[k]);
            CHECK(think_form_reads(f, forms[i].tokens[k], len));
            CHECK(!think_form_reads(f, forms[i].tokens[k], len - 1));
            CHECK(!think_form_reads(NULL, forms[i].tokens[k], len));
            CHECK(!think_form_reads(think_form_find(i ? "think" : "mistral"), forms[i].tokens[k], len));
        }
    }
    CHECK(think_form_of_template(NULL) == &THINK_TAGS && think_form_of_template("") == &THINK_TAGS);
    CHECK(!think_form_find("") && !think_form_find("thin") && !think_form_find("thinks"));
    CHECK(!think_form_reads(&THINK_TAGS, "<thonk>", 7) && !think_form_reads(&THINK_TAGS, "", 0));
}

/* Whether a prompt ends inside a block: white space behind its mark counts for nothing, what lies before the text for
 * nothing either. */
static void test_prompts(void)
{
    static const char WHOLE[] = "<think> \n\r\t";
    static const struct {
        size_t from, to;
        bool starts;
    } CASES[] = {{0, 7, true},   {0, 8, true},  {0, 11, true},  {0, 6, false}, {1, 11, false},
                 {7, 11, false}, {7, 7, false}, {9, 11, false}, {9, 9, false}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_INT(prompt_starts_in_thinking(&THINK_TAGS, WHOLE + CASES[i].from, CASES[i].to - CASES[i].from),
                  CASES[i].starts);
    }
}

/* What closes reasoning in channels: with tools a call may follow, and a form says itself how it begins. */
static void test_closing(void)
{
    static const char HEAD[] = "<|channel|>final<|message|>", CALLS[] = "<|channel|>commentary";
    const think_form channels = {.closing = "!", .text_opening = HEAD}, plain = {.closing = "!"};
    json_doc *tools = NULL;
    CHECK_INT(json_parse(&tools, "[]", 2, 4, NULL), ERR_OK);
    for (int i = 0; i < 8; i++) {
        const bool has_channels = i & 1, has_form = i & 2;
        const chat_input in = {.tools = i & 4 ? json_root(tools) : NULL};
        char wanted[64];
        snprintf(wanted, sizeof wanted, "!%s", !has_channels || has_form ? "" : in.tools ? CALLS : HEAD);
        bytes out = bytes_empty(256);
        prompt_write_closing(&out, has_channels ? &channels : &plain, &in, has_form);
        CHECK_STR(bytes_str(&out), wanted);
        bytes_deinit(&out);
    }
    json_free(tools);
}

/* An answer's beginning that is given ends inside its reasoning where it has no text yet. */
static void test_continued(void)
{
    for (int i = 0; i < 8; i++) {
        chat_message messages[2] = {{.role = CHAT_USER}, {.role = CHAT_ASSISTANT, .n_parts = i & 2 ? 1 : 0}};
        messages[1].reasoning = i & 4 ? "so" : NULL;
        const chat_input in = {.messages = messages, .n_messages = 2, .continues = i & 1};
        CHECK_INT(prompt_continues_thinking(&in), i == 5);
    }
}

int main(void)
{
    test_prompts();
    test_closing();
    test_continued();
    test_names();
    test_forms();
    test_phases();
    test_budget();
    test_told_to_end();
    test_end_inside();
    CHECK_DONE();
}
