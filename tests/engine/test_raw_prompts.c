/* A raw prompt that goes on from the prefix cache answers with the bits of one that is computed from
 * nothing, wherever the earlier prompt ended, on a small random model of each family. It finds nothing
 * of a chat, whose blocks of the delta rule are cut at messages. Behind what the model itself said,
 * which was computed token by token, the logprobs are the same but for rounding. */
#include "tests/engine/answers.h"

#include <math.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/request.h"
#include "tests/model/random_families.h"

enum { PROMPT = 3 * NN_DELTA_BLOCK + 12, LENGTH = 4, CHUNK = 2 * NN_DELTA_BLOCK };

static engine *open_engine(const char *dir, bool exact)
{
    return answers_open(
        &(engine_options){.model_dir = dir,
                          .template_file = PARLEY_SOURCE_DIR "/tools/seedling/chat_template.jinja",
                          .n_ctx = 1024,
                          .n_parallel = 1,
                          .prefill_chunk = CHUNK,
                          .cache_mib = 64,
                          .exact = exact,
                          .n_threads = 1});
}

static answer ask(engine *e, const int32_t *ids, size_t n, bool no_cache)
{
    static uint64_t id = 1;
    gen_params p;
    gen_params_init(&p);
    p.max_tokens = LENGTH;
    p.temperature = 0.0f;
    p.ignore_eos = true;
    p.no_cache = no_cache;
    p.n_top_logprobs = 0;
    gen_request *r = NULL;
    answer a = {0};
    err_detail d = {0};
    CHECK_OK(engine_prepare_tokens(e, &r, ids, n, 0, &p, &d), d);
    answers_submit(e, r, ++id);
    answers_collect(&a, id, 1);
    CHECK_INT(a.n, LENGTH);
    CHECK_INT(a.timings.cache_n + a.timings.prompt_n, (int32_t)n);
    return a;
}

/* The greatest difference of two answers' logprobs; INFINITY if they say something else. */
static float distance(const answer *a, const answer *b)
{
    float most = 0.0f;
    for (int32_t i = 0; i < LENGTH; i++) {
        most = a->ids[i] == b->ids[i] ? fmaxf(most, fabsf(a->logprobs[i] - b->logprobs[i])) : INFINITY;
    }
    return most;
}

/* Ids of ordinary tokens, the same in each run. */
static void fill_tokens(int32_t *ids, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids[i] = 3 + (int32_t)(seed >> 16) % 60;
    }
}

/* Every step-th place where the earlier prompt may end. */
static void check_prefixes(const char *dir, const char *name, size_t step)
{
    engine *e = open_engine(dir, false);
    int32_t ids[PROMPT], n_used = 0;
    fill_tokens(ids, PROMPT, 7);
    const answer cold = ask(e, ids, PROMPT, true);
    for (size_t n = PROMPT; n > 1; n -= n > step ? step : 1) {
        engine_clear_cache(e, NULL);
        (void)ask(e, ids, n, false);
        const answer cached = ask(e, ids, PROMPT, false);
        const int32_t before = (int32_t)n - 1, whole = before - before % NN_DELTA_BLOCK;
        CHECK(cached.timings.cache_n == whole ||
              (cached.timings.cache_n >= before - 1 && cached.timings.cache_n <= (int32_t)n));
        CHECK(distance(&cached, &cold) == 0.0f);
        n_used += cached.timings.cache_n > 0;
    }
    printf("%s: %d prompts went on from the cache\n", name, n_used);
    CHECK(n_used > 0);
    engine_close(e);
}

static void check_family(const random_family *f)
{
    char dir[64];
    bytes text;
    err_detail d = {0};
    random_checkpoint_make(dir, f->config, f->forms);
    bytes_init(&text, 1 << 24);
    CHECK_OK(file_read(&text, check_data("tiny/tokenizer.json"), &d), d);
    random_text(dir, "tokenizer.json", bytes_str(&text));
    bytes_deinit(&text);
    check_prefixes(dir, f->name, 13);
}

/* A chat's prompt, asked as it is, and then as raw tokens. */
static void check_beside_chat(void)
{
    engine *e = open_engine(check_data("tiny"), false);
    chat_input *in = chat_input_create((size_t)1 << 20);
    chat_part *part = arena_calloc(in->arena, 1, sizeof *part);
    static char text[900];
    int32_t ids[1024];
    gen_request *r = NULL;
    answer chat = {0};
    err_detail d = {0};
    memset(text, 'a', sizeof text - 1);
    for (size_t i = 3; i < sizeof text - 1; i += 4) {
        text[i] = ' ';
    }
    *part = (chat_part){.kind = CHAT_TEXT, .text = text, .text_len = strlen(text)};
    in->messages = arena_calloc(in->arena, 1, sizeof *in->messages);
    in->n_messages = 1;
    in->messages[0] = (chat_message){.role = CHAT_USER, .parts = part, .n_parts = 1, .is_string = true};
    in->params.max_tokens = LENGTH;
    in->params.ignore_eos = true;
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    const size_t n = r->prompt.len;
    CHECK(n > NN_DELTA_BLOCK && n < 900);
    memcpy(ids, r->prompt.ids, n * sizeof *ids);
    answers_submit(e, r, 1);
    answers_collect(&chat, 1, 1);
    chat_input_destroy(in);
    const answer cold = ask(e, ids, n, true), beside = ask(e, ids, n, false), again = ask(e, ids, n, false);
    CHECK_INT(beside.timings.cache_n, 0);
    CHECK(again.timings.cache_n > 0);
    CHECK(distance(&beside, &cold) == 0.0f);
    CHECK(distance(&again, &cold) == 0.0f);
    engine_close(e);
}

/* The prompt, the answer and more. */
static void check_behind_answer(void)
{
    const float MOST = 1e-4f; /* of float32 products in another order */
    engine *e = open_engine(check_data("tiny"), true);
    int32_t ids[PROMPT + LENGTH + 30];
    const size_t n = sizeof ids / sizeof *ids;
    fill_tokens(ids, n, 11);
    const answer first = ask(e, ids, PROMPT, false);
    memcpy(ids + PROMPT, first.ids, sizeof first.ids[0] * LENGTH);
    const answer cached = ask(e, ids, n, false), cold = ask(e, ids, n, true);
    CHECK(cached.timings.cache_n >= PROMPT);
    printf("behind an answer: %g\n", (double)distance(&cached, &cold));
    CHECK(distance(&cached, &cold) < MOST);
    engine_close(e);
}

/* ---- the prompt's own logprobs ---- */

typedef struct scores {
    int32_t ids[PROMPT + LENGTH], n,
        n_top_found; /* n_top_found: tokens whose logprob is that of one of the likeliest */
    float logprobs[PROMPT + LENGTH];
    gen_timings timings;
} scores;

/* What an engine says of the tokens of a prompt; n_top: of how many of the likeliest for each. */
static void score(scores *out, engine *e, const int32_t *ids, size_t n, int32_t n_top)
{
    static const uint64_t id = 1000000;
    int32_t processed = 0;
    gen_params p;
    gen_params_init(&p);
    p.max_tokens = 1;
    p.temperature = 0.0f;
    p.ignore_eos = true;
    p.n_top_logprobs = n_top;
    p.scores_prompt = true;
    p.spec_prefill = 1; /* is not heeded: it is all read */
    gen_request *r = NULL;
    err_detail d = {0};
    *out = (scores){0};
    CHECK_OK(engine_prepare_tokens(e, &r, ids, n, 0, &p, &d), d);
    answers_submit(e, r, id);
    for (bool done = false; !done;) {
        void *message = NULL;
        if (!mailbox_pop_wait(answer_events, &message, ANSWER_WAIT_MS)) {
            check_fail(__FILE__, __LINE__, "no event for a minute");
            exit(1);
        }
        gen_event *ev = message;
        for (int32_t i = 0; ev->type == GEN_PROMPT && i < ev->n_tokens && out->n < PROMPT + LENGTH; i++) {
            const gen_logprob *lp = &ev->logprobs[i];
            CHECK_INT(lp->n_top, out->n > 0 ? n_top : 0);
            for (int32_t k = 0; k < lp->n_top; k++) {
                CHECK(k == 0 || lp->top_logprobs[k] <= lp->top_logprobs[k - 1]);
                if (lp->top_ids[k] == ev->tokens[i]) {
                    CHECK(lp->top_logprobs[k] == lp->logprob);
                    out->n_top_found++;
                }
            }
            out->logprobs[out->n] = lp->logprob;
            out->ids[out->n++] = ev->tokens[i];
        }
        if (ev->type == GEN_PROMPT) {
            CHECK(ev->processed >= processed);
            CHECK_INT(ev->processed, out->n);
            CHECK_INT(ev->total, (int32_t)n);
            processed = ev->processed;
        }
        CHECK(ev->type != GEN_TOKENS || processed == (int32_t)n); /* the prompt comes first */
        done = ev->type == GEN_DONE;
        out->timings = ev->timings;
        gen_event_free(ev);
    }
    CHECK_INT(out->n, (int32_t)n);
}

/* Of every token of a prompt its logprob by those before it, the same whichever pieces the prompt is read in: what was
 * said has the logprob that it was said with. */
static void check_scores(void)
{
    const float MOST = 1e-3f;
    engine *e = open_engine(check_data("tiny"), true);
    static scores all, one;
    int32_t ids[PROMPT + LENGTH];
    fill_tokens(ids, PROMPT, 5);
    const answer said = ask(e, ids, PROMPT, false);
    memcpy(ids + PROMPT, said.ids, sizeof said.ids[0] * LENGTH);
    score(&all, e, ids, PROMPT + LENGTH, 3);
    CHECK(memcmp(all.ids, ids, sizeof ids) == 0);
    CHECK(isnan(all.logprobs[0])); /* nothing is before it */
    for (int32_t i = 1; i < PROMPT + LENGTH; i++) {
        CHECK(all.logprobs[i] < 0 && isfinite(all.logprobs[i]));
    }
    for (int32_t i = 0; i < LENGTH; i++) {
        CHECK_NEAR(all.logprobs[PROMPT + i], said.logprobs[i], MOST);
    }
    CHECK(all.n_top_found >= LENGTH); /* a greedy answer is the likeliest */
    CHECK_INT(all.timings.cache_n, 0);
    CHECK_INT(all.timings.sparse_n, 0);
    CHECK_INT(all.timings.prompt_n, PROMPT + LENGTH);
    static const int32_t lengths[] = {1, 2, 16, 17, 18, CHUNK, CHUNK + 1, CHUNK + 2};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        score(&one, e, ids, (size_t)lengths[i], 0);
        CHECK(memcmp(one.ids, ids, (size_t)lengths[i] * sizeof *ids) == 0);
        CHECK(isnan(one.logprobs[0]));
        for (int32_t k = 1; k < lengths[i]; k++) {
            CHECK_NEAR(one.logprobs[k], all.logprobs[k], MOST);
        }
    }
    engine_close(e);
}

int main(void)
{
    log_set_level(LOG_OFF);
    answers_begin();
    check_scores();
    if (answers_rows_are_exact()) {
        check_prefixes(check_data("tiny"), "tiny", 1);
        for (size_t i = 0; i < ARRAY_LEN(RANDOM_FAMILIES); i++) {
            check_family(&RANDOM_FAMILIES[i]);
        }
        check_beside_chat();
    } else {
        printf("rows of prompts depend on their number here: bits are not compared\n");
    }
    check_behind_answer();
    answers_end();
    CHECK_DONE();
}
