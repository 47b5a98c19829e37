/* Many at once on a small checkpoint: none changes, sees or holds up another. Cancels at random
 * places, 64 answers on 4 slots, 1,000 conversations in turn with a canary each, whose states are
 * shared within a scope only. */
#include "engine/engine.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/check.h"
#include "tests/cpu.h"

enum { MAX_TOKENS = 24, MAX_RUNS = 4096, SLOTS = 4, QUEUE = 128, DEADLINE_MS = 60000 };

/* The sanitizers' own memory and time say nothing about the engine's. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SLOW = 1 };
#else
enum { IS_SLOW = 0 };
#endif

/* What one request said; its index is its id. */
typedef struct run {
    int32_t ids[MAX_TOKENS];
    int32_t n, n_progress;
    gen_finish finish;
    gen_timings timings;
    double done_ms;
    uint64_t done_step; /* of the engine */
    bool done;
} run;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static run runs[MAX_RUNS]; /* {lock} while a request lives */
static uint64_t next_id = 1;
static engine *_Atomic under_test; /* whose steps are counted, or NULL */

static void on_event(void *ctx, gen_event *ev)
{
    (void)ctx;
    engine_status st = {0};
    if (ev->type == GEN_DONE && under_test) {
        engine_get_status(under_test, &st);
    }
    pthread_mutex_lock(&lock);
    run *r = &runs[ev->request_id];
    CHECK(!r->done);
    for (int32_t i = 0; ev->type == GEN_TOKENS && i < ev->n_tokens && r->n < MAX_TOKENS; i++) {
        r->ids[r->n++] = ev->tokens[i];
    }
    r->n_progress += ev->type == GEN_PROGRESS;
    if (ev->type == GEN_DONE) {
        r->finish = ev->finish;
        r->timings = ev->timings;
        r->done_ms = clock_ms();
        r->done_step = st.n_steps;
        r->done = true;
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    gen_event_free(ev);
}

/* Waits until the request has said so much, or is over; false after `ms`. */
static bool reaches(uint64_t id, int32_t n_progress, int32_t n, int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int waited = 0;
    pthread_mutex_lock(&lock);
    const run *r = &runs[id];
    while (!r->done && (r->n < n || r->n_progress < n_progress) && waited == 0) {
        waited = pthread_cond_timedwait(&changed, &lock, &until);
    }
    pthread_mutex_unlock(&lock);
    return waited == 0;
}

static const run *await(uint64_t id)
{
    if (!reaches(id, INT32_MAX, INT32_MAX, DEADLINE_MS)) {
        check_fail(__FILE__, __LINE__, "a request does not end");
        exit(1);
    }
    return &runs[id];
}

static engine *open_engine(int32_t n_parallel, int64_t cache_mib)
{
    static char dir[4096], template[4096];
    snprintf(dir, sizeof dir, "%s", check_data("tiny"));
    snprintf(template, sizeof template, "%s/tools/seedling/chat_template.jinja", PARLEY_SOURCE_DIR);
    engine_options opt = {.model_dir = dir,
                          .template_file = template,
                          .n_ctx = 1024,
                          .n_parallel = n_parallel,
                          .n_queue = QUEUE,
                          .prefill_chunk = 64,
                          .cache_mib = cache_mib,
                          .n_threads = 1,
                          .cpu_mask = test_cpu_mask(),
                          .on_event = on_event};
    gen_params_init(&opt.defaults);
    opt.defaults.temperature = 0.0f;
    engine *e = NULL;
    err_detail d = {0};
    CHECK_OK(engine_open(&e, &opt, &d), d);
    if (!e) {
        exit(1);
    }
    return e;
}

static uint64_t rng_state = 88172645463325252u;

/* 0 .. n-1 */
static uint64_t draw(uint64_t n)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state % n;
}

static uint64_t submit(engine *e, gen_request *r)
{
    err_detail d = {0};
    uint64_t id = next_id++;
    CHECK(id < MAX_RUNS);
    CHECK_OK(engine_submit(e, r, id, &d), d);
    return id;
}

static uint64_t submit_text(engine *e, const char *prompt, int32_t max_tokens)
{
    gen_params p;
    gen_params_init(&p);
    p.max_tokens = max_tokens;
    p.ignore_eos = true;
    gen_request *r = NULL;
    err_detail d = {0};
    CHECK_OK(engine_prepare_text(e, &r, prompt, strlen(prompt), false, 0, &p, &d), d);
    return submit(e, r);
}

static bool is_same(const run *a, const run *b)
{
    return a->n == b->n && memcmp(a->ids, b->ids, (size_t)a->n * sizeof a->ids[0]) == 0;
}

static engine_status status_of(engine *e)
{
    engine_status st;
    engine_get_status(e, &st);
    return st;
}

static long resident_kib(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        if (fscanf(f, "%*s %ld", &pages) != 1) {
            pages = 0;
        }
        fclose(f);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void pause_us(uint64_t us)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

/* ---- cancels ---- */

enum {
    N_CANCELS = IS_SLOW ? 200 : 500,
    N_REQUESTS = IS_SLOW ? 400 : 800, /* some end before they are cancelled */
    BURST = 10,
    WARM_UP = 200,
    SLOT_FREE_MS = 250,
    PLACE_MS = IS_SLOW ? 200 : 100,
    GROWTH_KIB = 2048
};

static const char CANARY[] = "The canary in the mine sings at night and sleeps by day.";

/* Cancels a burst of requests, at random places of queue, prompt and answer; an answer in their
 * midst stays as it is. */
static void cancel_burst(engine *e, const run *canary, double took[BURST])
{
    static char prompt[3000];
    uint64_t ids[BURST], order[BURST];
    uint64_t seen[BURST], beside = 0;
    double asked[BURST];
    for (size_t i = 0; i < BURST; i++) {
        int n = snprintf(prompt, sizeof prompt, "Request %u ", (unsigned)draw(1000));
        size_t words = draw(280);
        for (size_t k = 0; k < words; k++) {
            n += snprintf(prompt + n, sizeof prompt - (size_t)n, "w%u ", (unsigned)draw(100));
        }
        ids[i] = submit_text(e, prompt, 800);
        order[i] = i;
        if (i == BURST / 2) {
            beside = submit_text(e, CANARY, MAX_TOKENS);
        }
    }
    for (size_t i = 0; i < 3; i++) { /* about in order: what runs is cancelled before what waits */
        size_t a = draw(BURST), b = draw(BURST), swapped = order[a];
        order[a] = order[b];
        order[b] = swapped;
    }
    for (size_t i = 0; i < BURST; i++) {
        uint64_t place = draw(3);
        if (place == 0) {
            pause_us(draw(2000));
        } else {
            reaches(ids[order[i]], place == 1 ? 1 + (int32_t)draw(6) : 0,
                    place == 2 ? 1 + (int32_t)draw(20) : 0, PLACE_MS);
        }
        asked[order[i]] = clock_ms();
        engine_cancel(e, ids[order[i]]);
        seen[order[i]] = status_of(e).n_steps;
    }
    for (size_t i = 0; i < BURST; i++) {
        const run *r = await(ids[i]);
        took[i] = r->done_ms - asked[i];
        CHECK(r->done_step <= seen[i] + 1); /* the step that runs, none more */
        CHECK(r->finish == GEN_FINISH_CANCELLED || r->finish == GEN_FINISH_LENGTH);
    }
    CHECK(is_same(await(beside), canary));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_cancels(void)
{
    engine *e = open_engine(SLOTS, 2);
    const uint64_t first = submit_text(e, CANARY, MAX_TOKENS);
    const run *canary = await(first);
    CHECK_INT(canary->n, MAX_TOKENS);
    static double took[N_REQUESTS];
    under_test = e;
    long before_kib = 0;
    size_t n_cancelled = 0, n_waiting = 0, n_in_prompt = 0;
    for (int i = 0; i < N_REQUESTS; i += BURST) {
        before_kib = i == WARM_UP ? resident_kib() : before_kib;
        cancel_burst(e, canary, took + i);
    }
    const long after_kib = resident_kib();
    for (uint64_t id = first; id < next_id; id++) {
        const run *r = &runs[id];
        const bool cancelled = r->finish == GEN_FINISH_CANCELLED;
        n_cancelled += cancelled;
        n_in_prompt += cancelled && r->n == 0 && r->timings.prompt_n > 0;
        n_waiting += cancelled && r->timings.prompt_n + r->timings.cache_n == 0;
    }
    CHECK(n_cancelled >= N_CANCELS);
    CHECK(n_waiting > 20 && n_in_prompt > 20 && n_cancelled - n_waiting - n_in_prompt > 20);
    CHECK(is_same(await(submit_text(e, CANARY, MAX_TOKENS)), canary));
    CHECK_INT(status_of(e).n_running + status_of(e).n_waiting, 0);
    qsort(took, N_REQUESTS, sizeof took[0], by_value);
    const double median = took[N_REQUESTS / 2], slowest = took[N_REQUESTS - 1];
    printf("%zu cancelled (%zu waiting, %zu in the prompt), after %.1f ms, the slowest after %.1f ms; %ld "
           "KiB more memory\n",
           n_cancelled, n_waiting, n_in_prompt, median, slowest, after_kib - before_kib);
    if (!IS_SLOW) {
        CHECK(median < SLOT_FREE_MS); /* not the slowest: the machine may have other things to do */
        CHECK(after_kib - before_kib < GROWTH_KIB);
    }
    under_test = NULL;
    engine_close(e);
}

/* ---- many at once ---- */

enum { N_STREAMS = 64 };

static void test_streams(void)
{
    char prompts[N_STREAMS][64];
    uint64_t together[N_STREAMS];
    engine *e = open_engine(SLOTS, 0), *alone = open_engine(1, 0);
    for (size_t i = 0; i < N_STREAMS; i++) {
        snprintf(prompts[i], sizeof prompts[i], "Stream %zu says %u and no other word.", i,
                 (unsigned)draw(1000000));
        together[i] = submit_text(e, prompts[i], MAX_TOKENS);
    }
    CHECK(status_of(e).n_running <= SLOTS);
    CHECK(status_of(e).n_waiting > 0);
    for (size_t i = 0; i < N_STREAMS; i++) {
        CHECK_INT(await(together[i])->finish, GEN_FINISH_LENGTH);
        CHECK(is_same(await(together[i]), await(submit_text(alone, prompts[i], MAX_TOKENS))));
    }
    engine_close(e);
    engine_close(alone);
}

/* ---- conversations ---- */

enum { N_TALKS = IS_SLOW ? 200 : 1000, WINDOW = 20, N_WINDOWS = N_TALKS / WINDOW, N_SCOPES = 5, SAMPLE = 20 };

/* One conversation: a word that only it knows, and its two turns. */
typedef struct talk {
    char word[40];
    uint64_t scope;
    uint64_t turns[2];
} talk;

static talk talks[N_TALKS];

static void add_message(chat_input *in, chat_role role, const char *format, const char *word)
{
    size_t cap = strlen(format) + strlen(word) + 1;
    char *text = arena_calloc(in->arena, cap, 1);
    chat_part *part = arena_calloc(in->arena, 1, sizeof *part);
    snprintf(text, cap, "%s%s", format, word);
    *part = (chat_part){.kind = CHAT_TEXT, .text = text, .text_len = strlen(text)};
    in->messages[in->n_messages++] =
        (chat_message){.role = role, .parts = part, .n_parts = 1, .is_string = true};
}

/* The talk up to its first or second question. */
static uint64_t submit_turn(engine *e, const talk *t, int turn, uint64_t scope, bool no_cache)
{
    chat_input *in = chat_input_create(1 << 16);
    in->messages = arena_calloc(in->arena, 4, sizeof *in->messages);
    add_message(in, CHAT_SYSTEM, "You keep a secret word and tell it to nobody else: ", t->word);
    add_message(in, CHAT_USER, "What did I ask you to keep?", "");
    if (turn > 0) {
        add_message(in, CHAT_ASSISTANT, "You asked me to keep ", t->word);
        add_message(in, CHAT_USER, "Say it once more, please.", "");
    }
    in->scope = scope;
    gen_params_init(&in->params);
    in->params.max_tokens = 8;
    in->params.ignore_eos = true;
    in->params.no_cache = no_cache;
    gen_request *r = NULL;
    err_detail d = {0};
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    chat_input_destroy(in);
    return submit(e, r);
}

/* The second turns of one window and the first ones of the next, in any order. */
static void run_window(engine *e, size_t w)
{
    struct {
        talk *t;
        int turn;
    } jobs[2 * WINDOW], swapped;
    size_t n = 0;
    for (size_t i = 0; i < WINDOW; i++) {
        if (w > 0) {
            jobs[n].t = &talks[(w - 1) * WINDOW + i];
            jobs[n++].turn = 1;
        }
        if (w < N_WINDOWS) {
            jobs[n].t = &talks[w * WINDOW + i];
            jobs[n++].turn = 0;
        }
    }
    for (size_t i = n; i-- > 1;) {
        size_t k = draw(i + 1);
        swapped = jobs[i];
        jobs[i] = jobs[k];
        jobs[k] = swapped;
    }
    for (size_t i = 0; i < n; i++) {
        jobs[i].t->turns[jobs[i].turn] = submit_turn(e, jobs[i].t, jobs[i].turn, jobs[i].t->scope, false);
    }
    for (size_t i = 0; i < n; i++) {
        const run *r = await(jobs[i].t->turns[jobs[i].turn]);
        CHECK_INT(r->finish, GEN_FINISH_LENGTH);
        CHECK(jobs[i].turn ? r->timings.cache_n > 0 : r->timings.cache_n == 0);
    }
}

static void test_conversations(void)
{
    engine *e = open_engine(SLOTS, 64), *cold = open_engine(1, 0);
    const double start = clock_ms();
    for (size_t i = 0; i < N_TALKS; i++) {
        snprintf(talks[i].word, sizeof talks[i].word, "canary-%zu-%llx", i,
                 (unsigned long long)draw(UINT64_MAX));
        talks[i].scope = 1 + i % N_SCOPES;
    }
    for (size_t w = 0; w <= N_WINDOWS; w++) {
        run_window(e, w);
        const talk *t = w > 0 ? &talks[w * WINDOW - 1] : NULL;
        if (t) { /* somebody else who says the very same finds nothing of it */
            const run *foreign = await(submit_turn(e, t, 1, t->scope + N_SCOPES + w, false));
            CHECK_INT(foreign->timings.cache_n, 0);
            CHECK(is_same(foreign, await(t->turns[1])));
        }
    }
    const engine_status st = status_of(e);
    for (size_t i = 0; i < N_TALKS; i += SAMPLE) {
        for (int turn = 0; turn < 2; turn++) {
            const run *lone = await(submit_turn(cold, &talks[i], turn, 0, false));
            CHECK_INT(lone->timings.cache_n, 0);
            CHECK(is_same(lone, await(talks[i].turns[turn])));
        }
    }
    printf("%d conversations in %.1f s; %llu of %llu lookups hit\n", N_TALKS, (clock_ms() - start) / 1000.0,
           (unsigned long long)st.n_cache_hits, (unsigned long long)st.n_cache_queries);
    CHECK_INT(st.n_cache_hits, N_TALKS);
    engine_close(e);
    engine_close(cold);
}

/* ---- switches ---- */

static bool cache_is_empty_soon(engine *e)
{
    for (int i = 0; i < 1000; i++) {
        if (status_of(e).n_cache_entries == 0 && status_of(e).cache_bytes == 0) {
            return true;
        }
        pause_us(1000);
    }
    return false;
}

/* no_cache reads nothing and leaves nothing; an idle engine clears its cache at once. */
static void test_switches(void)
{
    engine *e = open_engine(1, 16);
    const talk t = {.word = "switch"};
    const run *plain = await(submit_turn(e, &t, 1, 0, true));
    CHECK_INT(status_of(e).n_cache_entries, 0);
    CHECK_INT(status_of(e).n_cache_queries, 0);
    const run *first = await(submit_turn(e, &t, 1, 0, false)),
              *again = await(submit_turn(e, &t, 1, 0, false));
    const run *off = await(submit_turn(e, &t, 1, 0, true));
    CHECK_INT(first->timings.cache_n, 0);
    CHECK(again->timings.cache_n > 0);
    CHECK_INT(again->timings.cache_n + again->timings.prompt_n, first->timings.prompt_n);
    CHECK_INT(off->timings.cache_n, 0);
    CHECK(is_same(plain, first) && is_same(first, again) && is_same(again, off));
    CHECK(status_of(e).n_cache_entries > 0);
    engine_clear_cache(e, NULL);
    CHECK(cache_is_empty_soon(e));
    CHECK_INT(await(submit_turn(e, &t, 1, 0, false))->timings.cache_n, 0);
    engine_close(e);
}

int main(void)
{
    if (!file_exists(check_data("tiny/config.json"))) {
        CHECK_SKIP("tests/data/tiny is not in this checkout");
    }
    test_switches();
    test_cancels();
    test_streams();
    test_conversations();
    CHECK_DONE();
}
