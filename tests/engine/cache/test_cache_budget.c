/* The prefix cache of an engine: as many entries as its memory holds; a budget that is too small
 * for one state is named at start and answers come all the same. */
#include <unistd.h>

#include "base/file.h"
#include "engine/engine_private.h"
#include "tests/engine/answers.h"

enum { N_PROMPTS = 600, PROMPT_TOKENS = NN_DELTA_BLOCK + 1 };

/* Asks for one token behind a prompt of its own and returns how many tokens of the prompt were
 * cached. */
static int32_t ask(engine *e, int32_t prompt, uint64_t id)
{
    int32_t ids[PROMPT_TOKENS];
    gen_params p;
    gen_params_init(&p);
    p.max_tokens = 1;
    p.ignore_eos = true;
    gen_request *r = NULL;
    answer a = {0};
    err_detail d = {0};
    for (int32_t i = 0; i < PROMPT_TOKENS; i++) {
        ids[i] = 1 + (i == 0 ? prompt / 50 : prompt % 50);
    }
    CHECK_OK(engine_prepare_tokens(e, &r, ids, PROMPT_TOKENS, 0, &p, &d), d);
    answers_submit(e, r, id);
    answers_collect(&a, id, 1);
    CHECK_INT(a.n, 1);
    return a.timings.cache_n;
}

/* Half of the budget is of blocks, the other half of states, of which a fifth, and five at most, is of spares: entries
 * fill what is left, and no more. */
static void test_spares(void)
{
    static char dir[4096];
    static const struct {
        int32_t mib;
        size_t n_spares;
    } CASES[] = {{1, 3}, {2, 5}};
    snprintf(dir, sizeof dir, "%s", check_data("tiny"));
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        engine *e = answers_open(&(engine_options){
            .model_dir = dir, .n_ctx = 256, .n_parallel = 1, .n_threads = 1, .cache_mib = CASES[i].mib});
        const model_config *cfg = model_get_config(e->model);
        const size_t state = seq_state_bytes(cfg, e->cache_type, e->drafting, 1) -
                             kv_pool_block_bytes(cfg, e->cache_type, e->drafting) -
                             kv_pool_window_bytes(cfg, e->cache_type),
                     half = (size_t)CASES[i].mib << 19, most = half - CASES[i].n_spares * state;
        CHECK_INT(e->n_spares, CASES[i].n_spares);
        engine_status st;
        for (int32_t n = 0; n < 50; n++) {
            CHECK_INT(ask(e, n, (uint64_t)n + 1), 0);
            engine_get_status(e, &st);
            CHECK(st.cache_bytes <= most);
        }
        printf("%d MiB: %d entries of %d bytes, a state has %d; %d of %d bytes\n", CASES[i].mib,
               (int)st.n_cache_entries, (int)(st.cache_bytes / st.n_cache_entries), (int)state,
               (int)st.cache_bytes, (int)most);
        CHECK(st.cache_bytes + st.cache_bytes / st.n_cache_entries > most);
        engine_close(e);
    }
}

static void test_many_small_states(void)
{
    static char dir[4096];
    snprintf(dir, sizeof dir, "%s", check_data("tiny"));
    engine *e = answers_open(
        &(engine_options){.model_dir = dir, .n_ctx = 256, .n_parallel = 1, .n_threads = 1, .cache_mib = 256});
    for (int32_t i = 0; i < N_PROMPTS; i++) {
        CHECK_INT(ask(e, i, (uint64_t)i + 1), 0);
    }
    engine_status st;
    engine_get_status(e, &st);
    CHECK(st.n_cache_entries >= N_PROMPTS);
    CHECK(ask(e, 0, N_PROMPTS + 1) > 0); /* the first is still there */
    engine_close(e);
}

/* Opens an engine and returns what it writes to standard error in said[size]. */
static engine *open_and_listen(const engine_options *options, char *said, size_t size)
{
    FILE *f = tmpfile();
    if (!f) {
        exit(1);
    }
    fflush(stderr);
    const int old = dup(STDERR_FILENO);
    dup2(fileno(f), STDERR_FILENO);
    engine *e = answers_open(options);
    fflush(stderr);
    dup2(old, STDERR_FILENO);
    close(old);
    rewind(f);
    said[fread(said, 1, size - 1, f)] = '\0';
    fclose(f);
    return e;
}

static void test_too_small(void)
{
    static char dir[4096], said[8192];
    snprintf(dir, sizeof dir, "%s/assets/seedling", PARLEY_SOURCE_DIR);
    engine *e = open_and_listen(
        &(engine_options){.model_dir = dir, .n_ctx = 256, .n_parallel = 1, .n_threads = 1, .cache_mib = 1},
        said, sizeof said);
    const char *warning = strstr(said, "--cache-ram is 1 MiB and one state");
    CHECK(warning != NULL);
    CHECK(warning && !strstr(warning + 1, "--cache-ram")); /* once */
    for (uint64_t id = 1; id <= 2; id++) {
        CHECK_INT(ask(e, 7, id), 0);
    }
    engine_close(e);
}

int main(void)
{
    if (!file_exists(check_data("tiny/config.json"))) {
        CHECK_SKIP("tests/data/tiny is not in this checkout");
    }
    answers_begin();
    test_spares();
    test_many_small_states();
    test_too_small();
    answers_end();
    CHECK_DONE();
}
