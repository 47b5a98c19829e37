/* check_sparse_prefill: sparse prefill against reference outputs.
 *
 *     build/check_sparse_prefill [--exact-rope] DIR [generic|avx2|avx512|native]
 *
 * DIR holds target/ and draft/, two models of one vocabulary, and cases/NAME.safetensors: what a
 * trusted implementation computed from them in float32. Of each case: input_ids [L]; lookahead, the
 * tokens that the draft model adds; importance [L]; chunk and keep; chunk_scores; selected, the
 * positions that are kept; logits_last, the target's logits at the last kept tokens when it reads
 * those alone; greedy, what it adds from position L on. Everything is compared and printed as one
 * row; exit 0 only if all agree:
 *   - importance and chunk_scores: max |ours - reference| <= 1e-4 * max |reference|;
 *   - logits: the same with 2e-3;
 *   - tokens and positions: equal.
 * The greedy tokens are computed twice: by the decoder alone, and by the whole engine, asked for an
 * answer. The engine never says an id that the tokenizer cannot spell, so its answer is compared up
 * to the reference's first such id.
 *
 * Rotary frequencies are rounded to bf16, as references cast them (check_reference.c);
 * --exact-rope: not here.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mailbox.h"
#include "compute/kernels/cpu.h"
#include "engine/engine.h"
#include "engine/sparse/lookahead.h"
#include "engine/sparse/select.h"
#include "model/checkpoint/tensor_file.h"

#define CHECK_TOOL_NAME "check_sparse_prefill"
#include "tools/check_tool.h"

enum { LAST_ROWS = 48, MAX_GREEDY = 256 };
#define IMPORTANCE_TOLERANCE 1e-4
#define LOGIT_TOLERANCE      2e-3

typedef struct context {
    const char *dir;
    char target[4096], draft[4096];
    bool rope_bf16;
    compute_options compute;
    compute *c;
    model *m;
    int n_rows, n_failed;
} context;

typedef struct ref_case {
    const char *name;
    tensor_file *file;
    int32_t *ids;
    int32_t n, chunk;
    double keep;
    int32_t *kept; /* [n] ours */
    int32_t n_kept;
} ref_case;

/* ---- rows of the report ---- */

static void row(context *cx, const ref_case *rc, const char *what, double worst, double largest, bool ok)
{
    printf("%-12s %-20s %10.2e %10.2e  %s\n", rc->name, what, worst, largest, ok ? "ok" : "DIFFERS");
    cx->n_rows++;
    cx->n_failed += !ok;
}

static tensor find(const ref_case *rc, const char *name)
{
    tensor t;
    if (!tensor_table_get(tensor_file_tensors(rc->file), name, &t)) {
        fprintf(stderr, CHECK_TOOL_NAME ": case %s holds no %s\n", rc->name, name);
        exit(2);
    }
    return t;
}

static float *floats_of(const ref_case *rc, const char *name, size_t *n)
{
    const tensor t = find(rc, name);
    if (t.type == DTYPE_OTHER) {
        fprintf(stderr, CHECK_TOOL_NAME ": case %s: %s holds no floats\n", rc->name, name);
        exit(2);
    }
    *n = tensor_len(&t);
    float *out = must(calloc(*n + 1, sizeof *out));
    tensor_to_f32(out, &t, 0, *n);
    return out;
}

static int32_t *ids_of(const ref_case *rc, const char *name, size_t *n)
{
    const tensor t = find(rc, name);
    *n = tensor_len(&t);
    if (t.bytes != *n * sizeof(int64_t) || *n == 0 || *n > INT32_MAX / 2) {
        fprintf(stderr, CHECK_TOOL_NAME ": case %s: %s holds no 64-bit numbers\n", rc->name, name);
        exit(2);
    }
    int32_t *out = must(calloc(*n, sizeof *out));
    for (size_t i = 0; i < *n; i++) {
        int64_t v = 0;
        memcpy(&v, (const char *)t.data + i * sizeof v, sizeof v);
        out[i] = (int32_t)v;
    }
    return out;
}

static void compare_floats(context *cx, const ref_case *rc, const char *what, const float *ours, size_t n,
                           double tolerance)
{
    size_t n_reference = 0;
    float *reference = floats_of(rc, what, &n_reference);
    double worst = 0, largest = 0;
    for (size_t i = 0; i < n && i < n_reference; i++) {
        const double difference = fabs((double)ours[i] - (double)reference[i]);
        worst = !(difference <= worst) ? difference : worst; /* a NaN sticks */
        largest = fabs((double)reference[i]) > largest ? fabs((double)reference[i]) : largest;
    }
    row(cx, rc, what, worst, largest, n == n_reference && worst <= tolerance * largest);
    free(reference);
}

static void compare_ids(context *cx, const ref_case *rc, const char *what, const int32_t *ours, size_t n)
{
    size_t n_reference = 0, same = 0;
    int32_t *reference = ids_of(rc, what, &n_reference);
    while (same < n && same < n_reference && ours[same] == reference[same]) {
        same++;
    }
    row(cx, rc, what, (double)(n_reference - same), (double)n_reference, n == n_reference && same == n);
    free(reference);
}

/* ---- the draft model ---- */

/* What is looked ahead and how important the prompt's tokens are; what is then kept. */
static void check_choice(context *cx, ref_case *rc)
{
    err_detail d = {0};
    lookahead *la = NULL;
    const lookahead_options lo = {.path = cx->draft,
                                  .target = cx->m,
                                  .c = cx->c,
                                  .cache_type = KV_F32,
                                  .chunk = 128,
                                  .rope_bf16 = cx->rope_bf16};
    require(lookahead_open(&la, &lo, &d), &d);
    require(lookahead_reserve(la, rc->n, &d), &d);
    require(lookahead_begin(la, rc->ids, rc->n, &d), &d);
    for (bool more = true; more;) {
        require(lookahead_next(la, true, &more, &d), &d);
    }
    compare_ids(cx, rc, "lookahead", lookahead_tokens(la), IMPORTANCE_ROWS);
    const float *shares = lookahead_importance(la);
    compare_floats(cx, rc, "importance", shares, (size_t)rc->n, IMPORTANCE_TOLERANCE);
    const int32_t n_chunks = (rc->n + rc->chunk - 1) / rc->chunk;
    float *scores = must(calloc((size_t)n_chunks, sizeof *scores));
    select_chunk *order = must(calloc((size_t)n_chunks, sizeof *order));
    for (int32_t i = 0; i < n_chunks; i++) {
        scores[i] = select_score(shares, rc->n, rc->chunk, i);
    }
    compare_floats(cx, rc, "chunk_scores", scores, (size_t)n_chunks, IMPORTANCE_TOLERANCE);
    const select_choice choice = {.chunk = rc->chunk, .keep = rc->keep};
    rc->n_kept = select_tokens(rc->kept, order, shares, rc->n, &choice);
    compare_ids(cx, rc, "selected", rc->kept, (size_t)rc->n_kept);
    free(scores);
    free(order);
    lookahead_end(la);
    lookahead_close(la);
}

/* ---- the target ---- */

/* What the target adds to the sequence, from position L on; last: logits of its last token. */
static void check_greedy(context *cx, const ref_case *rc, seq_state *seq, decoder_scratch *sc,
                         const float *last)
{
    err_detail d = {0};
    size_t n = 0;
    int32_t ours[MAX_GREEDY] = {0};
    const int32_t V = model_get_config(cx->m)->vocab_size, zero = 0;
    free(ids_of(rc, "greedy", &n));
    n = n < MAX_GREEDY ? n : MAX_GREEDY;
    ours[0] = (int32_t)best_of(last, (size_t)V);
    for (size_t i = 0; i + 1 < n; i++) {
        const int32_t p = rc->n + (int32_t)i;
        const batch_run run = {.seq = seq, .n_rows = 1, .exact_rows = true};
        const batch b = {.n_rows = 1,
                         .tokens = &ours[i],
                         .positions = &(position){p, p, p},
                         .runs = &run,
                         .n_runs = 1,
                         .logit_rows = &zero,
                         .n_logit_rows = 1};
        require(decoder_forward(cx->m, cx->c, &b, sc, &d), &d);
        ours[i + 1] = (int32_t)best_of(decoder_logits(sc, 0), (size_t)V);
    }
    compare_ids(cx, rc, "greedy", ours, n);
}

static void check_logits(context *cx, const ref_case *rc)
{
    err_detail d = {0};
    kv_pool *pool = NULL;
    seq_state *seq = NULL;
    decoder_scratch *sc = NULL;
    const model_config *cfg = model_get_config(cx->m);
    int32_t *ids = must(calloc((size_t)rc->n, sizeof *ids)), rows[LAST_ROWS];
    position *positions = must(calloc((size_t)rc->n, sizeof *positions));
    for (int32_t i = 0; i < rc->n; i++) {
        ids[i] = rc->ids[i];
        positions[i] = (position){i, i, i};
    }
    select_gather(ids, positions, rc->kept, rc->n_kept);
    const int32_t n_rows = rc->n_kept < LAST_ROWS ? rc->n_kept : LAST_ROWS;
    for (int32_t i = 0; i < n_rows; i++) {
        rows[i] = rc->n_kept - n_rows + i;
    }
    require(kv_pool_create(&pool, cfg, KV_F32, false, kv_pool_blocks_for(rc->n + MAX_GREEDY),
                           kv_pool_blocks_for(rc->n + MAX_GREEDY), cx->c, &d),
            &d);
    require(seq_state_create(&seq, cfg, pool, rc->n + MAX_GREEDY, cx->c, &d), &d);
    require(decoder_scratch_create(&sc, cx->m, cx->c, rc->n, LAST_ROWS, &d), &d);
    const batch_run run = {.seq = seq, .n_rows = rc->n_kept};
    const batch b = {.n_rows = rc->n_kept,
                     .tokens = ids,
                     .positions = positions,
                     .runs = &run,
                     .n_runs = 1,
                     .logit_rows = rows,
                     .n_logit_rows = n_rows};
    require(decoder_forward(cx->m, cx->c, &b, sc, &d), &d);
    compare_floats(cx, rc, "logits_last", decoder_logits(sc, 0), (size_t)n_rows * (size_t)cfg->vocab_size,
                   LOGIT_TOLERANCE);
    check_greedy(cx, rc, seq, sc, decoder_logits(sc, n_rows - 1));
    decoder_scratch_destroy(sc);
    seq_state_destroy(seq);
    kv_pool_destroy(pool);
    free(ids);
    free(positions);
}

/* ---- the engine ---- */

static void on_event(void *ctx, gen_event *ev)
{
    if (!mailbox_push(ctx, ev)) {
        fprintf(stderr, CHECK_TOOL_NAME ": an event was lost\n");
        exit(2);
    }
}

static void check_answer(context *cx, const ref_case *rc)
{
    err_detail d = {0};
    size_t n = 0, same = 0;
    int32_t ours[MAX_GREEDY] = {0}, n_ours = 0;
    int32_t *greedy = ids_of(rc, "greedy", &n);
    mailbox *events = must(mailbox_create(4 * MAX_GREEDY + 4096));
    engine_options opt = {.model_dir = cx->target,
                          .n_ctx = rc->n + 2 * MAX_GREEDY,
                          .n_parallel = 1,
                          .cpu_mask = cx->compute.cpu_mask,
                          .exact = true,
                          .rope_bf16 = cx->rope_bf16,
                          .on_event = on_event,
                          .on_event_ctx = events,
                          .sparse = {.draft_dir = cx->draft, .chunk = rc->chunk}};
    gen_params_init(&opt.defaults);
    engine *e = NULL;
    gen_request *r = NULL;
    gen_params p;
    gen_params_init(&p);
    p.temperature = 0.0f;
    p.max_tokens = (int32_t)(n < MAX_GREEDY ? n : MAX_GREEDY);
    p.ignore_eos = true;
    p.spec_prefill = 1;
    p.spec_keep = (float)rc->keep;
    require(engine_open(&e, &opt, &d), &d);
    require(engine_prepare_tokens(e, &r, rc->ids, (size_t)rc->n, 0, &p, &d), &d);
    require(engine_submit(e, r, 1, &d), &d);
    gen_timings timings = {0};
    for (bool done = false; !done;) {
        void *message = NULL;
        if (!mailbox_pop(events, &message)) {
            fprintf(stderr, CHECK_TOOL_NAME ": the engine stopped\n");
            exit(2);
        }
        gen_event *ev = message;
        for (int32_t i = 0; ev->type == GEN_TOKENS && i < ev->n_tokens && n_ours < MAX_GREEDY; i++) {
            ours[n_ours++] = ev->tokens[i];
        }
        done = ev->type == GEN_DONE;
        timings = ev->timings;
        if (done && ev->finish == GEN_FINISH_ERROR) {
            fprintf(stderr, CHECK_TOOL_NAME ": case %s: %s\n", rc->name, ev->message);
            exit(2);
        }
        gen_event_free(ev);
    }
    engine_close(e);
    mailbox_destroy(events, NULL);
    const int32_t n_read = timings.sparse_n ? timings.sparse_kept_n : rc->n;
    row(cx, rc, "tokens read", fabs((double)n_read - rc->n_kept), rc->n_kept, n_read == rc->n_kept);
    const int32_t n_spelled = tokenizer_n_tokens(model_tokenizer(cx->m));
    while (same < (size_t)n_ours && ours[same] == greedy[same]) {
        same++;
    }
    row(cx, rc, "answer", (double)(p.max_tokens - (int32_t)same), p.max_tokens,
        (int32_t)same == p.max_tokens || greedy[same] >= n_spelled);
    free(greedy);
}

/* ---- cases ---- */

static void check_case(context *cx, const char *name)
{
    char path[8192];
    err_detail d = {0};
    size_t n = 0;
    ref_case rc = {.name = name};
    snprintf(path, sizeof path, "%s/cases/%s.safetensors", cx->dir, name);
    require(tensor_file_open(&rc.file, path, &d), &d);
    rc.ids = ids_of(&rc, "input_ids", &n);
    rc.n = (int32_t)n;
    int32_t *chunk = ids_of(&rc, "chunk", &n);
    float *keep = floats_of(&rc, "keep", &n);
    rc.chunk = chunk[0];
    rc.keep = n > 0 ? select_share(keep[0]) : 0;
    free(chunk);
    free(keep);
    if (rc.chunk < 1 || !(rc.keep > 0 && rc.keep <= 1)) {
        fprintf(stderr, CHECK_TOOL_NAME ": case %s: chunk is %d and keep %g\n", name, rc.chunk, rc.keep);
        exit(2);
    }
    rc.kept = must(calloc((size_t)rc.n, sizeof *rc.kept));
    check_choice(cx, &rc);
    check_logits(cx, &rc);
    check_answer(cx, &rc);
    free(rc.ids);
    free(rc.kept);
    tensor_file_close(rc.file);
}

int main(int argc, char **argv)
{
    char *names[MAX_CASES];
    err_detail d = {0};
    context cx = {.compute = {.cpu_mask = ~0u}, .rope_bf16 = true};
    if (argc > 1 && strcmp(argv[1], "--exact-rope") == 0) {
        cx.rope_bf16 = false;
        argc--;
        argv++;
    }
    if (argc < 2 || argc > 3 || (argc > 2 && !cpu_parse_level(argv[2], &cx.compute.cpu_mask))) {
        fprintf(stderr, "usage: check_sparse_prefill [--exact-rope] DIR [generic|avx2|avx512|native]\n");
        return 2;
    }
    log_set_level(LOG_WARN);
    cx.dir = argv[1];
    snprintf(cx.target, sizeof cx.target, "%s/target", cx.dir);
    snprintf(cx.draft, sizeof cx.draft, "%s/draft", cx.dir);
    const size_t n = list_cases(cx.dir, names);
    if (n == 0) {
        fprintf(stderr, CHECK_TOOL_NAME ": %s/cases holds no *.safetensors\n", cx.dir);
        return 2;
    }
    require(compute_create(&cx.c, &cx.compute, &d), &d);
    require(model_open(&cx.m, cx.target, &(model_open_options){.rope_bf16 = cx.rope_bf16}, &d), &d);
    printf("%s: %s\n%-12s %-20s %10s %10s  verdict\n", cx.dir, compute_describe(cx.c), "case", "compared",
           "worst", "largest");
    for (size_t i = 0; i < n; i++) {
        check_case(&cx, names[i]);
        free(names[i]);
    }
    printf("%zu cases, %d comparisons, %d differ\n", n, cx.n_rows, cx.n_failed);
    model_close(cx.m);
    compute_destroy(cx.c);
    return cx.n_failed == 0 ? 0 : 1;
}
