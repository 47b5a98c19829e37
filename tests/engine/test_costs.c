/* What answers cost, where no answer shows it: steps, drafts, memory of states and caches. */
#include "engine/engine_private.h"

#include <sched.h>

#include "base/log.h"
#include "tests/engine/answers.h"

enum { N_CTX = 256, PROMPT = 40, LENGTH = 24 };

static engine *open_tiny(engine_options opt)
{
    static char dir[4096];
    snprintf(dir, sizeof dir, "%s", check_data("tiny"));
    opt.model_dir = dir;
    opt.n_threads = 1;
    return answers_open(&opt);
}

/* A request for an answer of n tokens; first: the first token of the prompt. */
static gen_request *prepare(engine *e, int32_t first, int32_t n_prompt, int32_t n, int32_t n_choices)
{
    int32_t ids[N_CTX];
    gen_params p;
    gen_request *r = NULL;
    err_detail d = {0};
    gen_params_init(&p);
    p.max_tokens = n;
    p.n_choices = n_choices;
    p.ignore_eos = true;
    for (int32_t i = 0; i < n_prompt; i++) {
        ids[i] = 5 + (first + i * 7) % 90;
    }
    CHECK_OK(engine_prepare_tokens(e, &r, ids, n_prompt, 0, &p, &d), d);
    return r;
}

static answer ask(engine *e, uint64_t id, int32_t first, int32_t n_prompt, int32_t n)
{
    answer a = {0};
    answers_submit(e, prepare(e, first, n_prompt, n, 1), id);
    answers_collect(&a, id, 1);
    CHECK_INT(a.n, n);
    return a;
}

/* An answer is told before its last step is counted; the engine takes up what it is told behind that. */
static engine_status status(engine *e)
{
    engine_status st;
    for (int round = 0; round < 2; round++) { /* the second is behind what the first one did */
        engine_clear_cache(e, NULL);
        while (atomic_load(&e->sweep_cache)) {
            sched_yield();
        }
    }
    engine_get_status(e, &st);
    return st;
}

/* A chunk of the prompt is a step, which gives the first token, and then a step a token; clearing the cache is none. */
static void test_steps(void)
{
    enum { UNUSED = 2 }; /* steps that may find nothing to do */
    engine *e =
        open_tiny((engine_options){.n_ctx = N_CTX, .n_parallel = 1, .no_draft = true, .cache_mib = 64});
    ask(e, 1, 0, PROMPT, LENGTH);
    const engine_status st = status(e);
    CHECK(st.n_steps >= LENGTH && st.n_steps <= LENGTH + UNUSED);
    CHECK_INT(status(e).n_steps, st.n_steps);
    CHECK_INT(st.n_drafted + st.n_copied + st.n_first_drafts + st.n_parked_steps, 0);
    engine_close(e);
}

/* The memory that an engine says it takes is that of its parts, and its pool has the blocks that they are for. Returns what
 * it takes beyond them, for the lists of sparse prefill. */
static size_t check_memory(bool no_draft, int32_t copied, size_t n_slots)
{
    const size_t cache = (size_t)64 << 20, images = (size_t)16 << 20;
    engine *e = open_tiny((engine_options){.n_ctx = N_CTX,
                                           .n_parallel = (int32_t)n_slots,
                                           .no_draft = no_draft,
                                           .prompt_lookup = copied,
                                           .prefill_chunk = 64,
                                           .cache_mib = 64,
                                           .vision_cache_mib = 16});
    const model_config *cfg = model_get_config(e->model);
    const int32_t head = no_draft ? 0 : DRAFT_MAX, most = copied > head ? copied : head;
    const int32_t rows = most ? NN_ROWS_EXACT : (int32_t)n_slots;
    const size_t block = kv_pool_block_bytes(cfg, e->cache_type, !no_draft);
    const size_t sequence = seq_state_bytes(cfg, e->cache_type, !no_draft, N_CTX) +
                            (most ? seq_state_rows_bytes(cfg, 1 + most) : 0);
    const size_t rest = (size_t)engine_get_info(e)->state_bytes -
                        (n_slots * (sequence + block) + decoder_scratch_bytes(e->model, rows, rows) +
                         decoder_scratch_bytes(e->model, 64, 1) + cache + images);
    CHECK_INT(kv_pool_n_blocks(e->pool, KV_ALL),
              n_slots * (kv_pool_blocks_for(N_CTX) + 1) + cache / 2 / block);
    engine_close(e);
    return rest;
}

/* A policy that has learned that drafts are always right and cost nothing, or never right. */
static draft_policy learned(bool right)
{
    draft_policy p = {0};
    for (int32_t i = 0; i < 2000; i++) {
        const int32_t k = draft_policy_depth(&p, 1, DRAFT_MAX);
        draft_policy_result(&p, k, right ? k : 0);
        draft_policy_cost(&p, 1, k, right ? 10 : 10 + k);
    }
    return p;
}

/* Between answers: the engine's thread is behind all that the last one made it do. */
static void set_policy(engine *e, bool right)
{
    (void)status(e);
    e->draft_policy = learned(right);
}

/* Never more drafts than an answer has use and room for. The first token comes from the prompt, the last needs none. */
static void test_drafts(void)
{
    engine *e = open_tiny((engine_options){.n_ctx = N_CTX, .n_parallel = 1, .cache_mib = 64});
    CHECK(e->drafting);
    for (int32_t n = 1; n <= 4; n++) {
        set_policy(e, true);
        const answer a = ask(e, (uint64_t)n, n, PROMPT, n);
        CHECK(a.timings.draft_n <= (n < 2 ? 0 : (n - 1) * (n - 2) / 2));
    }
    set_policy(e, true);
    const engine_status before = status(e);
    const answer full = ask(e, 10, 3, N_CTX - 2, 2); /* ends at the last place of the context */
    CHECK_INT(full.timings.draft_n, 0);
    CHECK_INT(status(e).n_drafted, before.n_drafted);
    engine_close(e);
}

/* Steps without drafts are counted where drafts do not pay, and their cost is learned. */
static void test_parked(void)
{
    engine *e = open_tiny((engine_options){.n_ctx = N_CTX, .n_parallel = 1, .cache_mib = 64});
    set_policy(e, false);
    const answer a = ask(e, 1, 0, PROMPT, LENGTH);
    const engine_status st = status(e);
    CHECK(st.n_parked_steps > LENGTH / 2 && st.n_parked_steps < LENGTH);
    CHECK_INT(st.n_drafted, a.timings.draft_n);
    CHECK_INT(st.n_draft_accepted, a.timings.draft_accepted_n);
    CHECK_INT(st.n_copied + st.n_copied_accepted, 0);
    set_policy(e, true);
    ask(e, 2, 1, PROMPT, LENGTH);
    const engine_status more = status(e);
    const uint64_t n_first = more.n_first_drafts - st.n_first_drafts;
    CHECK(n_first > 0 && n_first < LENGTH && more.n_first_accepted <= more.n_first_drafts);
    CHECK(more.n_drafted - st.n_drafted >= n_first);
    engine_close(e);
}

/* What the head has seen of an answer is as much as the answer has, whatever was answered before. */
static void test_head(void)
{
    engine *e = open_tiny((engine_options){.n_ctx = N_CTX, .n_parallel = 1, .cache_mib = 64});
    for (uint64_t id = 1; id <= 4; id++) {
        const int32_t n_prompt = PROMPT + 9 * (int32_t)id;
        set_policy(e, id % 2);
        ask(e, id, (int32_t)id, n_prompt, LENGTH);
        (void)status(e);
        const slot *s = &e->slots[0];
        /* but for the last token, and the one that came last of it */
        CHECK_INT(s->drafter.n_true + s->drafter.n_pending, n_prompt + LENGTH - 2);
    }
    engine_close(e);
}

/* The same of answers that share a prompt, which one of them has computed. */
static void test_shared_head(void)
{
    enum { CHOICES = 2 };
    engine *e = open_tiny((engine_options){.n_ctx = N_CTX, .n_parallel = CHOICES, .cache_mib = 64});
    gen_request *r = prepare(e, 0, PROMPT, LENGTH, CHOICES);
    answer all[CHOICES] = {0};
    gen_request_set_id(gen_request_next(r), 2);
    answers_submit(e, r, 1);
    answers_collect(all, 1, CHOICES);
    (void)status(e);
    for (size_t i = 0; i < CHOICES; i++) {
        CHECK_INT(e->slots[i].drafter.n_true + e->slots[i].drafter.n_pending, PROMPT + LENGTH - 2);
    }
    engine_close(e);
}

int main(void)
{
    log_set_level(LOG_WARN);
    answers_begin();
    test_steps();
    const size_t rest = check_memory(true, 0, 1);
    CHECK(rest < 16 * N_CTX);
    CHECK_INT(check_memory(true, 0, 3), rest);
    CHECK_INT(check_memory(true, 5, 2), rest);
    CHECK_INT(check_memory(false, 0, 2), rest);
    test_drafts();
    test_parked();
    test_head();
    test_shared_head();
    answers_end();
    CHECK_DONE();
}
