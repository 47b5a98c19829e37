/* Several answers to one prompt (gen_params.n_choices): each is what a request of its own with its
 * seed says, however many slots there are, with and without drafts and caches; the prompt is computed
 * once; one that is cancelled leaves the others alone, unless it was to compute the prompt.
 */
#include "tests/engine/answers.h"

enum { N = 8, LENGTH = 24, SEED = 41 };

static const char PROMPT[] =
    "Perhaps the red square and the green circle stand beside each other, or they do "
    "not; say which of them is the larger one, and why anybody would want to know";

static gen_params params(int32_t n, uint64_t seed)
{
    gen_params p;
    gen_params_init(&p);
    p.temperature = 4.0f; /* it is sure of itself */
    p.top_p = 1.0f;
    p.top_k = 0;
    p.presence_penalty = 0.3f;
    p.has_seed = true;
    p.seed = seed;
    p.n_choices = n;
    p.max_tokens = LENGTH;
    p.n_top_logprobs = 1;
    return p;
}

static gen_request *prepare(engine *e, const gen_params *p)
{
    gen_request *r = NULL;
    err_detail d = {0};
    CHECK_OK(engine_prepare_text(e, &r, PROMPT, strlen(PROMPT), true, 0, p, &d), d);
    return r;
}

/* Submits a request and those behind it under the ids from first on. */
static void submit(engine *e, gen_request *r, uint64_t first)
{
    uint64_t id = first;
    for (gen_request *q = gen_request_next(r); q; q = gen_request_next(q)) {
        gen_request_set_id(q, ++id);
    }
    answers_submit(e, r, first);
}

static void check_same(const answer *a, const answer *b)
{
    CHECK_INT(a->n, b->n);
    CHECK(memcmp(a->ids, b->ids, (size_t)a->n * sizeof *a->ids) == 0);
    CHECK(memcmp(a->logprobs, b->logprobs, (size_t)a->n * sizeof *a->logprobs) == 0);
}

/* Every choice against a request of its own; of each pair of choices at least one pair differs. */
static void test_equal(const engine_options *opt, bool no_cache)
{
    engine *e = answers_open(opt);
    answer many[N] = {0};
    gen_params p = params(N, SEED);
    p.no_cache = no_cache;
    submit(e, prepare(e, &p), 1);
    answers_collect(many, 1, N);
    int32_t computed = 0;
    bool differ = false;
    for (int32_t i = 0; i < N; i++) {
        answer one = {0};
        gen_params single = params(0, SEED + (uint64_t)i);
        single.no_cache = no_cache;
        answers_submit(e, prepare(e, &single), 100 + (uint64_t)i);
        answers_collect(&one, 100 + (uint64_t)i, 1);
        check_same(&many[i], &one);
        computed += many[i].timings.prompt_n;
        differ = differ || memcmp(many[i].ids, many[0].ids, sizeof many[i].ids) != 0;
        CHECK(i == 0 || many[i].timings.cache_n > 0);
    }
    CHECK(differ);
    CHECK_INT(computed, many[0].timings.prompt_n); /* once */
    engine_close(e);
}

static void test_greedy(const engine_options *opt)
{
    engine *e = answers_open(opt);
    answer many[N] = {0};
    gen_params p = params(N, SEED);
    p.temperature = 0.0f;
    submit(e, prepare(e, &p), 1);
    answers_collect(many, 1, N);
    for (int32_t i = 1; i < N; i++) {
        check_same(&many[i], &many[0]);
    }
    engine_close(e);
}

/* Of an answer that waits for its prompt nothing is told before it is there; then it is there as a whole. */
static void test_progress(const engine_options *opt)
{
    engine *e = answers_open(opt);
    int32_t n_told[N] = {0}, first[N], n_done = 0;
    gen_params p = params(N, SEED);
    submit(e, prepare(e, &p), 1);
    while (n_done < N) {
        void *message = NULL;
        if (!mailbox_pop_wait(answer_events, &message, ANSWER_WAIT_MS)) {
            check_fail(__FILE__, __LINE__, "no event for a minute");
            exit(1);
        }
        gen_event *ev = message;
        const size_t i = ev->request_id - 1;
        n_done += ev->type == GEN_DONE;
        if (ev->type == GEN_PROGRESS && n_told[i]++ == 0) {
            first[i] = ev->processed;
            CHECK_INT(ev->processed, i == 0 ? 0 : ev->total);
        }
        gen_event_free(ev);
    }
    for (int32_t i = 0; i < N; i++) {
        CHECK(i == 0 ? n_told[i] > 1 : n_told[i] == 1 && first[i] > 0);
    }
    engine_close(e);
}

/* How each of N answers ended. */
static void collect_ends(gen_finish ends[N])
{
    for (int32_t n = 0; n < N;) {
        void *message = NULL;
        if (!mailbox_pop_wait(answer_events, &message, ANSWER_WAIT_MS)) {
            check_fail(__FILE__, __LINE__, "no event for a minute");
            exit(1);
        }
        gen_event *ev = message;
        if (ev->type == GEN_DONE) {
            ends[ev->request_id - 1] = ev->finish;
            n++;
        }
        gen_event_free(ev);
    }
}

static void test_cancel(const engine_options *opt)
{
    engine *e = answers_open(opt);
    gen_finish ends[N];
    err_detail d = {0};
    gen_params p = params(N, SEED);
    p.ignore_eos = true;
    gen_request *r = prepare(e, &p);
    uint64_t id = 1;
    for (gen_request *q = gen_request_next(r); q; q = gen_request_next(q)) {
        gen_request_set_id(q, ++id);
    }
    CHECK_OK(engine_admit(e, r, 1, &d), d);
    engine_cancel(e, 3); /* another one, which waits */
    engine_start(e, r);
    collect_ends(ends);
    for (int32_t i = 0; i < N; i++) {
        CHECK_INT(ends[i], i == 2 ? GEN_FINISH_CANCELLED : GEN_FINISH_LENGTH);
    }
    r = prepare(e, &p);
    id = 1;
    for (gen_request *q = gen_request_next(r); q; q = gen_request_next(q)) {
        gen_request_set_id(q, ++id);
    }
    CHECK_OK(engine_admit(e, r, 1, &d), d);
    engine_cancel(e, 1); /* the one that was to compute the prompt */
    engine_start(e, r);
    collect_ends(ends);
    for (int32_t i = 0; i < N; i++) {
        CHECK_INT(ends[i], i == 0 ? GEN_FINISH_CANCELLED : GEN_FINISH_ERROR);
    }
    engine_close(e);
}

/* More than there is room for, now or ever; and what is never submitted. */
static void test_room(const engine_options *opt)
{
    engine_options small = *opt;
    small.n_queue = N - 1;
    engine *e = answers_open(&small);
    err_detail d = {0};
    gen_params p = params(N, SEED);
    gen_request *r = prepare(e, &p);
    CHECK_INT(engine_submit(e, r, 1, &d), ERR_LIMIT);
    CHECK(strstr(d.text, "--queue") != NULL);
    gen_request_free(r);
    p.n_choices = N - 1;
    r = prepare(e, &p);
    submit(e, r, 1);
    answer many[N] = {0};
    answers_collect(many, 1, N - 1);
    engine_close(e);
    e = answers_open(opt);
    submit(e, prepare(e, &p), 1); /* the engine ends with them */
    engine_close(e);
    void *message = NULL;
    while (mailbox_try_pop(answer_events, &message)) {
        gen_event_free(message);
    }
}

int main(void)
{
    answers_begin();
    engine_options opt = {.model_dir = PARLEY_SOURCE_DIR "/assets/seedling",
                          .n_ctx = 512,
                          .n_parallel = N,
                          .n_threads = 2,
                          .cache_mib = 64};
#ifndef __SANITIZE_THREAD__ /* There what follows is enough: the threads do the same in each. */
    test_equal(&opt, false);
    test_greedy(&opt);
#endif
    opt.n_parallel = 3; /* later ones begin when earlier ones have ended */
    test_equal(&opt, false);
#ifndef __SANITIZE_THREAD__
    test_equal(&opt, true);
#endif
    test_progress(&opt);
    test_cancel(&opt);
    opt.no_draft = true;
    opt.prefill_chunk = 16;
    opt.cache_mib = 0;
#ifndef __SANITIZE_THREAD__
    test_equal(&opt, false);
#endif
    opt.n_parallel = 1;
    test_greedy(&opt);
    test_room(&opt);
    answers_end();
    CHECK_DONE();
}
