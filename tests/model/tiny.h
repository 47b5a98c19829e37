/* tiny: the checkpoint of tests/data/tiny, opened, and a few ways to run it. For tests of the
 * decoder.
 *
 *     tiny t = tiny_open(2, ~0u, KV_F32); tiny_run(&t, seq, ids, n, false, false);
 *     tiny_close(&t);
 */
#ifndef PARLEY_TESTS_MODEL_TINY_H
#define PARLEY_TESTS_MODEL_TINY_H

#include "tests/check.h"
#include "tests/cpu.h"

#include "base/compiler.h"
#include "compute/nn.h"
#include "model/decoder.h"
#include "model/model.h"
#include "model/mtp.h"
#include "model/checkpoint/tensor_file.h"

enum { TINY_ROWS = 1024, TINY_LOGITS = 64, TINY_CTX = 1024, TINY_V = 1888, TINY_H = 64, TINY_BLOCKS = 128 };

typedef struct tiny {
    compute *c;
    model *m;
    kv_pool *pool;
    decoder_scratch *sc;
} tiny;

typedef struct tiny_options {
    const char *dir;
    size_t n_threads;
    unsigned cpu_mask;
    kv_type type;
    int n_bits;      /* of weights brought into blocks; 0: as stored */
    bool fast;       /* see compute_options */
    bool huge_pages; /* see model_open_options */
} tiny_options;

static inline tiny tiny_open_as(const tiny_options *o)
{
    tiny t = {0};
    err_detail d = {0};
    const compute_options co = {
        .n_threads = o->n_threads, .cpu_mask = o->cpu_mask & test_cpu_mask(), .fast = o->fast};
    CHECK_OK(compute_create(&t.c, &co, &d), d);
    const model_open_options mo = {.weights_only = true,
                                   .quantize = {.layer_bits = o->n_bits, .head_bits = o->n_bits, .c = t.c},
                                   .huge_pages = o->huge_pages ? t.c : NULL};
    CHECK_OK(model_open(&t.m, o->dir, &mo, &d), d);
    CHECK_OK(kv_pool_create(&t.pool, model_get_config(t.m), o->type, true, TINY_BLOCKS, TINY_BLOCKS, t.c, &d),
             d);
    CHECK_OK(decoder_scratch_create(&t.sc, t.m, t.c, TINY_ROWS, TINY_LOGITS, &d), d);
    if (check_failures) {
        exit(1);
    }
    return t;
}

static inline tiny tiny_open_with(const compute_options *o, kv_type type)
{
    return tiny_open_as(
        &(tiny_options){check_data("tiny"), o->n_threads, o->cpu_mask, type, 0, o->fast, false});
}

static inline tiny tiny_open(size_t n_threads, unsigned cpu_mask, kv_type type)
{
    return tiny_open_with(&(compute_options){.n_threads = n_threads, .cpu_mask = cpu_mask}, type);
}

static inline void tiny_close(tiny *t)
{
    decoder_scratch_destroy(t->sc);
    CHECK_INT(kv_pool_n_free(t->pool, KV_ALL), TINY_BLOCKS); /* every block was given back */
    CHECK(kv_pool_n_free(t->pool, KV_WINDOW) == kv_pool_n_blocks(t->pool, KV_WINDOW));
    kv_pool_destroy(t->pool);
    model_close(t->m);
    compute_destroy(t->c);
}

static inline seq_state *tiny_seq(const tiny *t)
{
    seq_state *s = NULL;
    err_detail d = {0};
    CHECK_OK(seq_state_create(&s, model_get_config(t->m), t->pool, TINY_CTX, t->c, &d), d);
    return s;
}

/* n rows of one sequence from its present length on; logits of the last row. */
static inline const float *tiny_run(const tiny *t, seq_state *s, const int32_t *ids, int32_t n, bool exact,
                                    bool keep)
{
    position p[TINY_ROWS];
    int32_t last = n - 1, len = seq_state_len(s);
    err_detail d = {0};
    for (int32_t i = 0; i < n; i++) {
        p[i] = (position){len + i, len + i, len + i};
    }
    batch_run run = {.seq = s, .n_rows = n, .exact_rows = exact, .keep_rows = keep};
    batch b = {.n_rows = n,
               .tokens = ids,
               .positions = p,
               .runs = &run,
               .n_runs = 1,
               .logit_rows = &last,
               .n_logit_rows = 1};
    CHECK_OK(decoder_forward(t->m, t->c, &b, t->sc, &d), d);
    return decoder_logits(t->sc, 0);
}

/* The prompt of the long reference case. */
static inline int32_t tiny_ids(int32_t *ids, int32_t cap)
{
    tensor_file *f = NULL;
    tensor t = {0};
    err_detail d = {0};
    CHECK_OK(tensor_file_open(&f, check_data("tiny/cases/text_long.safetensors"), &d), d);
    CHECK(f && tensor_table_get(tensor_file_tensors(f), "input_ids", &t));
    int32_t n = (int32_t)(t.bytes / sizeof(int64_t));
    n = n < cap ? n : cap;
    for (int32_t i = 0; i < n; i++) {
        int64_t v = 0;
        memcpy(&v, (const char *)t.data + (size_t)i * sizeof v, sizeof v);
        ids[i] = (int32_t)v;
    }
    tensor_file_close(f);
    return n;
}

static inline int32_t tiny_best(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < TINY_V; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* max |a - b| / max |b| */
static inline double tiny_difference(const float *a, const float *b, size_t n)
{
    double worst = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        double difference = fabs((double)a[i] - (double)b[i]);
        worst = !(difference <= worst) ? difference : worst;
        largest = fabs((double)b[i]) > largest ? fabs((double)b[i]) : largest;
    }
    return worst / largest;
}

/* How far two ways that are equal to f32 rounding may lie apart: a key that is rounded to fewer
 * bits turns the last bit of f32 into one of its own now and then. */
static inline double tiny_tolerance(const tiny *t)
{
    return kv_pool_type(t->pool) == KV_F32 ? 1e-4 : 3e-2;
}

/* The same bits: a comparison as numbers would let -0 pass for 0. */
static inline bool tiny_same_bits(const void *a, const void *b, size_t n_bytes)
{
    return memcmp(a, b, n_bytes) == 0;
}

#define CHECK_SAME_FLOATS(a, b, n) CHECK(tiny_same_bits((a), (b), (n) * sizeof(float)))

#endif
