/* A second turn takes up what the first left in the prefix cache, and answers as without a cache, with
 * the same bits where rows do not depend on their number: after a new question, a tool's result, an
 * edit, with thinking on, off and switched. Our own template and a published one, or the file given as
 * argument. */
#include "bench/turns.h"
#include "tests/engine/answers.h"

enum { MAX_TOKENS = 12, LONG_WORDS = 400 };

static answer ask(engine *e, const turn_case *c, int turn, const char *long_text, bool sampled, uint64_t id)
{
    answer a = {0};
    chat_input *in = NULL;
    gen_request *r = NULL;
    err_detail d = {0};
    CHECK_OK(turns_chat(&in, c, turn, long_text, &d), d);
    if (!in) {
        exit(1);
    }
    gen_params_init(&in->params);
    in->params.max_tokens = MAX_TOKENS;
    in->params.ignore_eos = true;
    in->params.n_top_logprobs = 0;
    in->params.temperature = sampled ? 1.0f : 0.0f;
    in->params.has_seed = true;
    in->params.seed = 7;
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    chat_input_destroy(in);
    answers_submit(e, r, id);
    answers_collect(&a, id, 1);
    return a;
}

/* All conversations, greedy and sampled, with the template of a file. */
static void check_turns(const char *template, const char *words)
{
    engine *e[2]; /* with a cache and without */
    const bool exact = answers_rows_are_exact();
    for (int i = 0; i < 2; i++) {
        e[i] = answers_open(&(engine_options){.model_dir = check_data("tiny"),
                                              .template_file = template,
                                              .n_ctx = 8192,
                                              .n_parallel = 1,
                                              .cache_mib = i ? 0 : 64,
                                              .n_threads = 1});
    }
    uint64_t id = 1;
    for (size_t i = 0; i < 2 * TURN_CASES; i++) {
        const turn_case *c = &turn_cases[i / 2];
        const bool sampled = i % 2;
        engine_clear_cache(e[0], NULL);
        const answer first = ask(e[0], c, 0, words, sampled, id++);
        const answer cached = ask(e[0], c, 1, words, sampled, id++),
                     cold = ask(e[1], c, 1, words, sampled, id++);
        printf("%s: %d of %d tokens cached, the first turn had %d\n", c->name, cached.timings.cache_n,
               cold.timings.prompt_n, first.timings.prompt_n);
        CHECK_INT(first.timings.cache_n + cold.timings.cache_n, 0);
        CHECK(cold.timings.prompt_n > 2 * LONG_WORDS);
        CHECK_INT(cached.timings.cache_n + cached.timings.prompt_n, cold.timings.prompt_n);
        CHECK(cached.timings.cache_n > 0);
        CHECK(c->is_short ? cached.timings.cache_n < LONG_WORDS : cached.timings.cache_n > LONG_WORDS);
        CHECK(!c->grows || cached.timings.cache_n >= 0.95 * first.timings.prompt_n);
        CHECK(!c->grows || cached.n_chunks == 1); /* states are kept on the way: the weights are read once */
        CHECK_INT(cached.n, MAX_TOKENS);
        CHECK(cached.n == cold.n && memcmp(cached.ids, cold.ids, (size_t)cold.n * sizeof cold.ids[0]) == 0);
        CHECK(!exact || memcmp(cached.logprobs, cold.logprobs, (size_t)cold.n * sizeof(float)) == 0);
    }
    engine_close(e[0]);
    engine_close(e[1]);
}

int main(int argc, char **argv)
{
    char template[4096], words[6 * LONG_WORDS + 1] = "";
    const char *shared = check_shared_dir();
    for (size_t i = 0; i < LONG_WORDS; i++) {
        snprintf(words + 6 * i, 7, "%s", i % 3 ? "birds " : "house ");
    }
    answers_begin();
    snprintf(template, sizeof template, "%s/tools/seedling/chat_template.jinja", PARLEY_SOURCE_DIR);
    check_turns(argc > 1 ? argv[1] : template, words);
    if (shared && argc == 1) {
        snprintf(template, sizeof template, "%s/reference/templates/Qwen3.5-4B.jinja", shared);
        check_turns(template, words);
    }
    answers_end();
    CHECK_DONE();
}
