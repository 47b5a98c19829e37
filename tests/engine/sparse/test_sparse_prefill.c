/* Sparse prompts through the engine: beside drafts, the prefix cache, other answers and a cancel;
 * whatever is in the way, the prompt is computed whole. */
#include <string.h>

#include "base/compiler.h"
#include "base/file.h"
#include "base/log.h"
#include "tests/engine/answers.h"
#include "tests/model/random_families.h"

/* KEPT: whole blocks of the delta rule, which a raw prompt leaves in the prefix cache. */
enum { N = 400, KEPT = 2 * NN_DELTA_BLOCK, GREEDY = 24, N_CTX = 1024 };

static int32_t ids[N];
static char tiny[4096];
static uint64_t next_id = 1;

static engine *open_with(engine_sparse_options sparse, int64_t cache_mib, int32_t n_parallel)
{
    return answers_open(&(engine_options){.model_dir = tiny,
                                          .n_ctx = N_CTX,
                                          .n_parallel = n_parallel,
                                          .n_threads = 2,
                                          .prefill_chunk = 64,
                                          .cache_mib = cache_mib,
                                          .exact = true,
                                          .sparse = sparse});
}

static gen_params greedy(int32_t spec_prefill)
{
    gen_params p;
    gen_params_init(&p);
    p.max_tokens = GREEDY;
    p.ignore_eos = true;
    p.spec_prefill = spec_prefill;
    return p;
}

static gen_request *request(engine *e, int32_t n, const gen_params *p)
{
    gen_request *r = NULL;
    err_detail d = {0};
    CHECK_OK(engine_prepare_tokens(e, &r, ids, (size_t)n, 0, p, &d), d);
    if (!r) {
        exit(1);
    }
    return r;
}

static answer ask(engine *e, int32_t n, const gen_params *p)
{
    answer a = {0};
    const uint64_t id = next_id++;
    answers_submit(e, request(e, n, p), id);
    answers_collect(&a, id, 1);
    CHECK_INT(a.n, p->max_tokens);
    CHECK_INT(a.timings.prompt_n + a.timings.cache_n + a.timings.sparse_n - a.timings.sparse_kept_n, n);
    return a;
}

static bool same(const answer *a, const answer *b)
{
    return a->n == b->n && memcmp(a->ids, b->ids, (size_t)a->n * sizeof *a->ids) == 0;
}

/* With the draft head and without, greedy and sampled; keeping everything is the whole prompt. */
static void test_drafts(engine *e)
{
    gen_params p = greedy(1);
    const answer drafted = ask(e, N, &p);
    p.no_draft = true;
    const answer plain = ask(e, N, &p);
    CHECK(same(&drafted, &plain));
    CHECK(drafted.timings.draft_n > 0);
    CHECK(plain.n_chunks >= N / 64 + 2); /* the reading of the draft model shows as well as ours */
    CHECK_INT(plain.timings.sparse_n, N);
    CHECK_INT(plain.timings.sparse_kept_n, 4 * 32); /* 0.3 of 13 chunks, the last of which is short */
    p.temperature = 0.8f;
    p.has_seed = true;
    p.seed = 7;
    const answer sampled = ask(e, N, &p);
    p.no_draft = false;
    const answer both = ask(e, N, &p);
    CHECK(same(&sampled, &both));
    gen_params all = greedy(1), dense = greedy(0);
    all.spec_keep = 1.0f;
    const answer kept = ask(e, N, &all), whole = ask(e, N, &dense);
    CHECK(same(&kept, &whole));
    CHECK_INT(kept.timings.sparse_n, 0);
    CHECK(!same(&kept, &plain)); /* it does change what is read */
}

/* What is told while the draft model reads the prompt in steps of 64: its share of what will be left out, which is what is
 * not cached less `keep` of it and a chunk of 32, if that leaves anything; behind it the prompt as ever. */
static void test_progress(engine *e, int32_t n_cached, float keep)
{
    gen_params sparse = greedy(1);
    const uint64_t id = next_id++;
    const double left = (N - n_cached) - ((double)keep * (N - n_cached) + 32), skipped = left > 0 ? left : 0;
    int32_t n_told = 0, last = n_cached;
    bool is_done = false;
    sparse.spec_keep = keep;
    answers_submit(e, request(e, N, &sparse), id);
    while (!is_done) {
        void *message = NULL;
        CHECK(mailbox_pop_wait(answer_events, &message, ANSWER_WAIT_MS));
        const gen_event *ev = message;
        is_done = ev->type == GEN_DONE;
        if (ev->type == GEN_PROGRESS) {
            CHECK(ev->processed >= last && ev->total == N);
            last = ev->processed;
            if (n_told * 64 < N + 64) { /* the first one says what was cached */
                const int32_t n_read = n_told * 64 < N ? n_told * 64 : N;
                CHECK_INT(last, n_cached + (int32_t)(skipped * n_read / N));
                n_told++;
            }
        }
        gen_event_free(message);
    }
    CHECK_INT(last, N);
    CHECK_INT(n_told, 1 + (N + 63) / 64);
}

/* A sparse state serves nobody else; a whole one serves a sparse prompt. */
static void test_cache(engine *e)
{
    const gen_params sparse = greedy(1), dense = greedy(0);
    gen_params uncached = greedy(0);
    uncached.no_cache = true;
    engine_clear_cache(e, NULL);
    const answer fresh = ask(e, N, &uncached);
    (void)ask(e, N, &sparse);
    const answer after = ask(e, N, &dense);
    CHECK_INT(after.timings.cache_n, 0);
    CHECK(same(&after, &fresh));
    engine_clear_cache(e, NULL);
    (void)ask(e, KEPT + 1, &dense);
    const answer behind = ask(e, N, &sparse);
    CHECK_INT(behind.timings.cache_n, KEPT);
    test_progress(e, KEPT, 0.25f);
    CHECK_INT(behind.timings.sparse_n, N - KEPT);
    CHECK(behind.timings.sparse_kept_n < N - KEPT);
    const answer again = ask(e, N, &sparse); /* the rest was not kept */
    CHECK_INT(again.timings.cache_n, KEPT);
    CHECK(same(&again, &behind));
    const answer whole = ask(e, N, &dense);
    CHECK_INT(whole.timings.cache_n, KEPT);
    CHECK(same(&whole, &fresh));
    engine_clear_cache(e, NULL);
    (void)ask(e, KEPT + 1, &dense);
    test_progress(e, KEPT, 0.9375f); /* so much that nothing is sure to be left out */
    engine_clear_cache(e, NULL);
}

/* The draft model reads one prompt at a time, beside answers that run; each is what it is alone. A
 * prompt that is cancelled while it is read leaves it to the next. */
static void test_company(engine *e)
{
    gen_params sparse = greedy(1), dense = greedy(0);
    sparse.no_cache = dense.no_cache = true;
    const answer alone = ask(e, N, &sparse), whole = ask(e, 200, &dense), shorter = ask(e, 300, &sparse);
    answer together[4] = {0};
    const uint64_t first = next_id;
    answers_submit(e, request(e, 200, &dense), next_id++);
    answers_submit(e, request(e, N, &sparse), next_id++);
    answers_submit(e, request(e, N, &sparse), next_id++);
    answers_submit(e, request(e, 300, &sparse), next_id++);
    answers_collect(together, first, 4);
    CHECK(same(&together[0], &whole));
    CHECK(same(&together[1], &alone));
    CHECK(same(&together[2], &alone));
    CHECK(same(&together[3], &shorter));
    for (int i = 0; i < 20; i++) {
        answer a = {0};
        const uint64_t id = next_id++;
        answers_submit(e, request(e, N, &sparse), id);
        for (int k = 0; k < i; k++) { /* at one place or another of the reading */
            engine_status status;
            engine_get_status(e, &status);
        }
        engine_cancel(e, id);
        answers_collect(&a, id, 1);
    }
    const answer after = ask(e, N, &sparse);
    CHECK(same(&after, &alone));
}

static void test_settings(void)
{
    const gen_params unset = greedy(-1), off = greedy(0), on = greedy(1);
    engine *e = open_with(
        (engine_sparse_options){.draft_dir = tiny, .on = true, .threshold = 300, .most = 380}, 0, 1);
    const answer within = ask(e, 350, &unset), below = ask(e, 299, &unset), above = ask(e, N, &unset);
    CHECK_INT(within.timings.sparse_n, 350);
    CHECK_INT(below.timings.sparse_n, 0);
    CHECK_INT(above.timings.sparse_n, 0);
    const answer not = ask(e, 350, &off), yes = ask(e, 200, &on), whole = ask(e, N, &off);
    CHECK_INT(not .timings.sparse_n, 0);
    CHECK_INT(yes.timings.sparse_n, 200);
    CHECK(same(&above, &whole));
    static const float shares[] = {0.0f, -0.5f, 1.5f, INFINITY};
    for (size_t i = 0; i < ARRAY_LEN(shares); i++) {
        gen_request *r = NULL;
        err_detail d = {0};
        gen_params p = greedy(1);
        p.spec_keep = shares[i];
        CHECK_INT(engine_prepare_tokens(e, &r, ids, N, 0, &p, &d), ERR_INVALID);
        CHECK_STR(d.param, "specprefill_keep_pct");
        p.spec_keep = 0.5f;
        p.spec_backbone = i == 0 ? -0.1f : shares[i];
        CHECK_INT(engine_prepare_tokens(e, &r, ids, N, 0, &p, &d), ERR_INVALID);
        CHECK_STR(d.param, "specprefill_backbone_pct");
    }
    const answer still = ask(e, 350, &unset);
    CHECK(same(&still, &within));
    engine_close(e);
}

/* A draft model that knows all tokens of the tokenizer but not all ids that the model has: it fails in
 * the middle of a prompt. */
static void make_narrow(char *dir)
{
    bytes text;
    err_detail d = {0};
    char config[2048];
    const random_family *f = &RANDOM_FAMILIES[0];
    while (strcmp(f->name, "qwen3") != 0) {
        f++;
    }
    const char *size = strstr(f->config, "1888");
    CHECK(size != NULL);
    snprintf(config, sizeof config, "%.*s1830%s", (int)(size - f->config), f->config, size + 4);
    random_checkpoint_make(dir, config, f->forms);
    bytes_init(&text, 1 << 24);
    CHECK_OK(file_read(&text, check_data("tiny/tokenizer.json"), &d), d);
    random_text(dir, "tokenizer.json", bytes_str(&text));
    bytes_deinit(&text);
}

/* Whatever is wrong with the draft model, answers are those of whole prompts. */
static void test_failures(void)
{
    char seedling[4096];
    snprintf(seedling, sizeof seedling, "%s/assets/seedling", PARLEY_SOURCE_DIR);
    const gen_params off = greedy(0), on = greedy(1);
    engine *e = open_with((engine_sparse_options){0}, 0, 1);
    const answer whole = ask(e, N, &off);
    const answer by_words = ask(e, N, &on); /* without a draft model there is another judge */
    CHECK_INT(by_words.timings.sparse_n, N);
    CHECK(by_words.timings.sparse_kept_n < N / 2);
    engine_close(e);
    const char *const drafts[] = {seedling /* another vocabulary */, "/nonexistent"};
    for (size_t i = 0; i < ARRAY_LEN(drafts); i++) {
        e = open_with((engine_sparse_options){.draft_dir = drafts[i], .on = true, .threshold = N_CTX + 1}, 0,
                      1);
        const answer a = ask(e, N, &on);
        CHECK_INT(a.timings.sparse_n, 0);
        CHECK(same(&a, &whole));
        engine_close(e);
    }
    char narrow[FOLDER_NAME];
    make_narrow(narrow);
    e = open_with((engine_sparse_options){.draft_dir = narrow}, 0, 1);
    const answer before = ask(e, N, &on);
    CHECK_INT(before.timings.sparse_n, N);
    ids[300] = 1850;
    const answer failed = ask(e, N, &on), dense = ask(e, N, &off);
    CHECK_INT(failed.timings.sparse_n, 0);
    CHECK(same(&failed, &dense));
    ids[300] = 300;
    const answer next = ask(e, N, &on); /* what failed is forgotten */
    CHECK_INT(next.timings.sparse_n, N);
    engine_close(e);
}

/* What the limit on memory holds for weights and states counts the draft model's. */
static void test_memory(void)
{
    engine *with = open_with((engine_sparse_options){.draft_dir = tiny}, 0, 1);
    engine *without = open_with((engine_sparse_options){0}, 0, 1);
    const engine_info *a = engine_get_info(with), *b = engine_get_info(without);
    CHECK_INT(a->weight_bytes, 2 * b->weight_bytes);
    CHECK(a->state_bytes > b->state_bytes + N_CTX * 64);
    engine_close(with);
    engine_close(without);
}

int main(void)
{
    log_set_level(LOG_OFF);
    snprintf(tiny, sizeof tiny, "%s", check_data("tiny"));
    for (int32_t i = 0; i < N; i++) {
        ids[i] = (int32_t)((uint32_t)(i * i * 17 + 3 * i) % 1500);
    }
    answers_begin();
    engine *e = open_with((engine_sparse_options){.draft_dir = tiny}, 64, 4);
    test_drafts(e);
    engine_clear_cache(e, NULL);
    test_progress(e, 0, 0.25f);
    test_cache(e);
    test_company(e);
    engine_close(e);
    test_settings();
    test_failures();
    test_memory();
    answers_end();
    CHECK_DONE();
}
