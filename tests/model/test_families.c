/* families: what holds for each family on small random checkpoints that the test makes: a prompt in
 * chunks is the prompt whole, a row alone is the row in company, a state that was kept is the
 * state, a verify block is the tokens one by one, one thread is two; and a model is the same in
 * every form its weights may have. What the numbers should be is the business of
 * test_reference_shared. */
#include "tests/model/tiny.h"

#include <unistd.h>

#include "base/log.h"
#include "tests/model/random_families.h"
#include "tests/model/tool.h"

enum { N_PROMPT = 70, N_MEDIA = 12, FIRST_MEDIA = 9, STEPS = 3, SAID = (STEPS + 1) * TINY_V };

static int32_t ids[TINY_CTX];

/* Feature rows for the prompt's placeholders, of the width of a family with DeepStack. */
static float features[N_MEDIA * 3 * TINY_H];

/* Rows first .. first+n-1 of the prompt; media rows if the family has them. Logits of the last
 * row. */
static const float *run_prompt(const tiny *t, seq_state *s, int32_t first, int32_t n)
{
    const size_t width = model_config_feature_width(model_get_config(t->m));
    position p[N_PROMPT];
    int32_t rows[N_MEDIA], n_rows = 0, skip = 0, last = n - 1;
    err_detail d = {0};
    for (int32_t i = 0; i < n; i++) {
        p[i] = (position){first + i, first + i, first + i};
    }
    for (int32_t i = FIRST_MEDIA; width > TINY_H && i < FIRST_MEDIA + N_MEDIA; i++) {
        skip += i < first;
        if (i >= first && i < first + n) {
            rows[n_rows++] = i - first;
        }
    }
    const batch_run run = {.seq = s, .n_rows = n};
    const batch b = {.n_rows = n,
                     .tokens = ids + first,
                     .positions = p,
                     .runs = &run,
                     .n_runs = 1,
                     .logit_rows = &last,
                     .n_logit_rows = 1,
                     .embed_rows = rows,
                     .embeds = features + (size_t)skip * width,
                     .n_embed_rows = n_rows};
    CHECK_OK(decoder_forward(t->m, t->c, &b, t->sc, &d), d);
    return decoder_logits(t->sc, 0);
}

/* Logits behind the prompt, read in chunks, and of a few given tokens: [SAID]; the caller frees. */
static float *say(const tiny *t, int32_t chunk)
{
    float *out = malloc(SAID * sizeof *out);
    seq_state *s = tiny_seq(t);
    const float *logits = NULL;
    for (int32_t at = 0; at < N_PROMPT; at += chunk) {
        logits = run_prompt(t, s, at, N_PROMPT - at < chunk ? N_PROMPT - at : chunk);
    }
    memcpy(out, logits, TINY_V * sizeof *out);
    for (int32_t i = 0; i < STEPS; i++) {
        memcpy(out + (i + 1) * TINY_V, tiny_run(t, s, ids + N_PROMPT + i, 1, true, false),
               TINY_V * sizeof *out);
    }
    seq_state_destroy(s);
    return out;
}

static bool rows_are_exact; /* nn_many_is_exact of the last say_with */

static float *say_with(const char *dir, size_t n_threads, int n_bits, bool fast)
{
    tiny t = tiny_open_as(&(tiny_options){dir, n_threads, ~0u, KV_F32, n_bits, fast, false});
    rows_are_exact = nn_many_is_exact(t.c);
    float *out = say(&t, N_PROMPT);
    tiny_close(&t);
    return out;
}

/* A row of the sequence behind the prompt, among rows of others that are `before` and behind it. */
static void check_company(const tiny *t, const float *expected)
{
    enum { N = 3 };
    seq_state *s[N];
    position at[N];
    batch_run runs[N];
    int32_t rows[N], tokens[N];
    err_detail d = {0};
    for (int32_t i = 0; i < N; i++) {
        s[i] = tiny_seq(t);
        const int32_t n = i == 1 ? N_PROMPT : 5 + i;
        (void)run_prompt(t, s[i], 0, n);
        tokens[i] = ids[N_PROMPT + (i == 1 ? 0 : i)];
        at[i] = (position){n, n, n};
        runs[i] = (batch_run){.seq = s[i], .first_row = i, .n_rows = 1, .exact_rows = true};
        rows[i] = i;
    }
    const batch b = {.n_rows = N,
                     .tokens = tokens,
                     .positions = at,
                     .runs = runs,
                     .n_runs = N,
                     .logit_rows = rows,
                     .n_logit_rows = N};
    CHECK_OK(decoder_forward(t->m, t->c, &b, t->sc, &d), d);
    CHECK_SAME_FLOATS(decoder_logits(t->sc, 1), expected + TINY_V, TINY_V);
    for (int32_t i = 0; i < N; i++) {
        seq_state_destroy(s[i]);
    }
}

/* A state that was kept, and a verify block of which the first row is kept. */
static void check_states(const tiny *t, const float *expected)
{
    err_detail d = {0};
    seq_state *s = tiny_seq(t);
    position at[STEPS];
    int32_t rows[STEPS];
    CHECK_OK(seq_state_reserve_rows(s, STEPS, &d), d);
    (void)run_prompt(t, s, 0, N_PROMPT);
    seq_snapshot *snap = seq_state_snapshot(s);
    CHECK(snap != NULL);
    (void)tiny_run(t, s, ids, 7, false, false);
    CHECK_OK(seq_state_restore(s, snap, &d), d);
    CHECK_SAME_FLOATS(tiny_run(t, s, ids + N_PROMPT, 1, true, false), expected + TINY_V, TINY_V);
    CHECK_OK(seq_state_restore(s, snap, &d), d);
    seq_snapshot_free(snap);

    for (int32_t i = 0; i < STEPS; i++) {
        at[i] = (position){N_PROMPT + i, N_PROMPT + i, N_PROMPT + i};
        rows[i] = i;
    }
    const batch_run run = {.seq = s, .n_rows = STEPS, .exact_rows = true, .keep_rows = true};
    const batch b = {.n_rows = STEPS,
                     .tokens = ids + N_PROMPT,
                     .positions = at,
                     .runs = &run,
                     .n_runs = 1,
                     .logit_rows = rows,
                     .n_logit_rows = STEPS};
    CHECK_OK(decoder_forward(t->m, t->c, &b, t->sc, &d), d);
    for (int32_t i = 0; i < STEPS; i++) {
        CHECK_SAME_FLOATS(decoder_logits(t->sc, i), expected + (i + 1) * TINY_V, TINY_V);
    }
    seq_state_rewind(s, 1);
    CHECK_SAME_FLOATS(tiny_run(t, s, ids + N_PROMPT + 1, 1, true, false), expected + 2 * TINY_V, TINY_V);
    seq_state_destroy(s);
}

/* The draft head: entries one by one are the entries together, and its logits are numbers. */
static void check_mtp(const tiny *t)
{
    enum { N = 6 };
    static float hidden[N * TINY_H], together[TINY_V];
    mtp_scratch *ms = NULL;
    position at[N];
    err_detail d = {0};
    CHECK(model_has_mtp(t->m) == (model_get_config(t->m)->n_mtp_layers > 0));
    if (!model_has_mtp(t->m)) {
        return;
    }
    CHECK_OK(mtp_scratch_create(&ms, t->m, t->c, N, 1, &d), d);
    seq_state *s = tiny_seq(t);
    (void)tiny_run(t, s, ids, N, false, false);
    memcpy(hidden, decoder_hidden(t->sc, 0), sizeof hidden);
    for (int32_t i = 0; i < N; i++) {
        at[i] = (position){i, i, i};
    }
    CHECK_OK(mtp_forward(t->m, t->c, ms, &(mtp_input){s, hidden, ids + 1, at, N}, 1, &d), d);
    memcpy(together, mtp_logits(ms, 0), sizeof together);
    mtp_truncate(s, 0);
    for (int32_t i = 0; i < N; i++) {
        const mtp_input one = {s, hidden + i * TINY_H, ids + 1 + i, at + i, 1};
        CHECK_OK(mtp_forward(t->m, t->c, ms, &one, i == N - 1, &d), d);
    }
    CHECK_SAME_FLOATS(mtp_logits(ms, 0), together, TINY_V);
    CHECK(isfinite(together[0]) && fabsf(together[0]) > 0);
    mtp_scratch_destroy(ms);
    seq_state_destroy(s);
}

/* What a family with DeepStack adds behind its first layers, and nothing in the others. */
static void check_deepstack(const char *dir)
{
    tiny t = tiny_open_as(&(tiny_options){dir, 2, ~0u, KV_F32, 0, false, false});
    static const size_t places[] = {TINY_H,
                                    2 * TINY_H}; /* in a row: behind the first layer, behind the second */
    for (size_t i = 0; model_get_config(t.m)->n_deepstack > 0 && i < ARRAY_LEN(places); i++) {
        float *first = say(&t, N_PROMPT);
        features[places[i]] += 1.0f;
        float *second = say(&t, N_PROMPT);
        features[places[i]] -= 1.0f;
        CHECK(memcmp(first, second, TINY_V * sizeof *first) != 0);
        free(first);
        free(second);
    }
    tiny_close(&t);
}

static void check_format(const char *dir, int n_bits, bool fast)
{
    tiny t = tiny_open_as(&(tiny_options){dir, 2, ~0u, KV_F32, n_bits, fast, false});
    float *whole = say(&t, N_PROMPT), *chunks = say(&t, 32), *alone = say_with(dir, 1, n_bits, fast);
    CHECK(isfinite(whole[0]) && tiny_difference(chunks, whole, SAID) < (n_bits ? 0.02 : 2e-4));
    CHECK_SAME_FLOATS(alone, whole, SAID);
    check_company(&t, whole);
    check_states(&t, whole);
    check_mtp(&t);
    free(whole);
    free(chunks);
    free(alone);
    tiny_close(&t);
}

/* A folder that was converted says what the same blocks say when they are made in memory. */
static void check_converted(const char *dir)
{
    char out[80];
    compute *c = NULL;
    err_detail d = {0};
    snprintf(out, sizeof out, "%s_q8", dir);
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 2, .cpu_mask = test_cpu_mask()}, &d), d);
    CHECK_OK(model_convert(dir, out, &(quantize_options){.layer_bits = 8, .head_bits = 8, .c = c}, &d), d);
    compute_destroy(c);
    float *made = say_with(dir, 2, 8, true), *read = say_with(out, 2, 0, true);
    CHECK_SAME_FLOATS(read, made, SAID);
    free(made);
    free(read);
}

/* The same model as a GGUF file, whose numbers are floats. */
static void check_gguf(const char *dir)
{
    char path[80];
    snprintf(path, sizeof path, "%s/m.gguf", dir);
    CHECK_INT(tool_run_3("make_gguf", dir, path, "bf16"), 0);
    float *folder = say_with(dir, 2, 0, false), *file = say_with(path, 2, 0, false);
    CHECK(tiny_difference(file, folder, SAID) < 1e-4);
    free(folder);
    free(file);
    CHECK_INT(unlink(path), 0);
}

static void check_family(const random_family *f)
{
    char dir[64];
    random_checkpoint_make(dir, f->config, f->forms);
    const int before = check_failures;
    check_format(dir, 0, false);
    check_format(dir, 0, true);
    check_format(dir, 8, true);
    check_format(dir, 4, true);
    check_deepstack(dir);
    if (!(f->forms & RANDOM_NOT_GGUF)) {
        check_gguf(dir);
    }
    if (f->forms & (RANDOM_FUSED_DELTA | RANDOM_TURNED |
                    RANDOM_ALTERNATING)) { /* experts by themselves, and in one tensor */
        check_converted(dir);
    }
    if (check_failures != before) {
        fprintf(stderr, "  in the family %s\n", f->name);
    }
}

/* The same model in another form. */
static void check_form(const char *family, unsigned forms)
{
    char dirs[2][64];
    float *said[2];
    for (size_t i = 0; i < ARRAY_LEN(RANDOM_FAMILIES); i++) {
        const random_family *f = &RANDOM_FAMILIES[i];
        if (strcmp(f->name, family) != 0) {
            continue;
        }
        for (unsigned k = 0; k < 2; k++) {
            random_checkpoint_make(dirs[k], f->config, k ? forms : f->forms);
            said[k] = say_with(dirs[k], 2, 0, false);
        }
        if (rows_are_exact) {
            CHECK_SAME_FLOATS(said[0], said[1], SAID);
        } else { /* a product of fused weights has another width */
            CHECK(tiny_difference(said[0], said[1], SAID) < 1e-4);
        }
        for (unsigned k = 0; k < 2; k++) {
            free(said[k]);
            said[k] = say_with(dirs[k], 2, 8, true);
        }
        CHECK_SAME_FLOATS(said[0], said[1], SAID);
        free(said[0]);
        free(said[1]);
    }
}

/* What families of which a GGUF file cannot say all that the configs above do look like in one. */
static const random_family IN_GGUF[] = {
    {"qwen3_next", RANDOM_PER_EXPERT | RANDOM_TEXT_ONLY | RANDOM_FUSED_DELTA,
     "{\"model_type\":\"qwen3_next\"," RANDOM_SIZES RANDOM_DELTA RANDOM_MOE
     ",\"shared_expert_intermediate_size\":40,\"norm_topk_prob\":true" RANDOM_ROPE("") "}"},
    {"qwen3_moe", RANDOM_PER_EXPERT | RANDOM_TEXT_ONLY,
     "{\"model_type\":\"qwen3_moe\"," RANDOM_SIZES RANDOM_MOE ",\"norm_topk_prob\":true" RANDOM_ROPE("") "}"},
    {"qwen2", RANDOM_TEXT_ONLY,
     "{\"model_type\":\"qwen2\"," RANDOM_SIZES ",\"intermediate_size\":80" RANDOM_ROPE("") "}"},
    {"llama with linear scaling", RANDOM_TEXT_ONLY,
     "{\"model_type\":\"llama\"," RANDOM_SIZES
     ",\"intermediate_size\":80,\"rope_parameters\":{\"rope_theta\":"
     "10000,\"rope_type\":\"linear\",\"factor\":4}}"},
    {"mistral", RANDOM_TEXT_ONLY,
     "{\"model_type\":\"mistral\"," RANDOM_SIZES
     ",\"intermediate_size\":80,\"sliding_window\":20" RANDOM_ROPE("") "}"},
};

int main(void)
{
    setenv("XDG_CACHE_HOME", "/proc/none", 1); /* blocks stay in memory */
    log_set_level(LOG_OFF);
    CHECK(tiny_ids(ids, TINY_CTX) >= N_PROMPT + STEPS);
    for (size_t i = 0; i < ARRAY_LEN(features); i++) {
        features[i] = (float)((i * 2654435761u >> 16) % 1000) / 500.0f - 1.0f;
    }
    for (size_t i = 0; i < ARRAY_LEN(RANDOM_FAMILIES); i++) {
        check_family(&RANDOM_FAMILIES[i]);
    }
    check_form("qwen3_5_moe", RANDOM_PER_EXPERT);
    check_form("qwen3_5_moe", RANDOM_STACKED | RANDOM_TEXT_ONLY);
    check_form("qwen3_next", RANDOM_TEXT_ONLY); /* four projections, experts in one tensor */
    check_form("qwen3_vl_moe", 0);
    check_form("gpt_oss", RANDOM_STACKED | RANDOM_TEXT_ONLY);
    for (size_t i = 0; i < ARRAY_LEN(IN_GGUF); i++) {
        char dir[64];
        const int before = check_failures;
        random_checkpoint_make(dir, IN_GGUF[i].config, IN_GGUF[i].forms);
        check_gguf(dir);
        if (check_failures != before) {
            fprintf(stderr, "  in the GGUF form of %s\n", IN_GGUF[i].name);
        }
    }
    CHECK_DONE();
}
