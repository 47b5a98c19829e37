/* counted_ops: a table of kernels that compute nothing, for test_ways.c alone: they note how often they are called, for how
 * much, and, as a number that says nothing but whether it is the same, with which sizes and at which places. So a way is
 * written down for sizes of real models, in no time, and on every processor alike. Any thread, but one context at a time.
 *
 *     counted_begin(c, ops_generic(), arena, n_bytes);  // c has this table from now on; then what is asked of it
 *     counted_end(text, text_bytes);                    // "quantize_x 3*768, dot_q8 2*2304, #4fa2c011"
 */
#ifndef PARLEY_TESTS_COMPUTE_COUNTED_OPS_H
#define PARLEY_TESTS_COMPUTE_COUNTED_OPS_H

#include <inttypes.h>
#include <stdatomic.h>

#include "compute/context.h"
#include "tests/check.h"

/* name, member, parameters, work, then what is noted of a call. */
#define COUNTED_KERNELS(X)                                                                                   \
    X(widen_f32, widen[DTYPE_F32], (float *a, const void *b, size_t n), n, PLACE(a), PLACE(b))               \
    X(widen_bf16, widen[DTYPE_BF16], (float *a, const void *b, size_t n), n, PLACE(a), PLACE(b))             \
    X(widen_f16, widen[DTYPE_F16], (float *a, const void *b, size_t n), n, PLACE(a), PLACE(b))               \
    X(dot_f32, dot_rows[DTYPE_F32], DOT_ROWS, T *N *K, DOT_ROWS_SEEN)                                        \
    X(dot_bf16_rows, dot_rows[DTYPE_BF16], DOT_ROWS, T *N *K, DOT_ROWS_SEEN)                                 \
    X(dot_f16, dot_rows[DTYPE_F16], DOT_ROWS, T *N *K, DOT_ROWS_SEEN)                                        \
    X(quantize_x, quantize_x, (quant_x * a, const float *b, size_t K), K, PLACE(b))                          \
    X(dot_q8, dot_q[0], DOT_Q, T *N *K, DOT_Q_SEEN)                                                          \
    X(dot_q4, dot_q[1], DOT_Q, T *N *K, DOT_Q_SEEN)                                                          \
    X(dot_q5, dot_q[2], DOT_Q, T *N *K, DOT_Q_SEEN)                                                          \
    X(panel_q8, panel_q[0], PANEL, T *N *K, DOT_Q_SEEN)                                                      \
    X(panel_q4, panel_q[1], PANEL, T *N *K, DOT_Q_SEEN)                                                      \
    X(panel_q5, panel_q[2], PANEL, T *N *K, DOT_Q_SEEN)                                                      \
    X(tile_f32, tile_f32,                                                                                    \
      (float *a, const float *b, const float *w, size_t stride, size_t T, size_t N, size_t K), T *N *K,      \
      TILE_SEEN)                                                                                             \
    X(pack_bf16, pack_bf16, (uint32_t * a, const float *b, size_t stride, size_t T, size_t K), T *K,         \
      PLACE(a), PLACE(b), stride, T)                                                                         \
    X(tile_bf16, tile_bf16,                                                                                  \
      (float *a, const uint32_t *b, const void *w, size_t stride, size_t T, size_t N, size_t K), T *N *K,    \
      TILE_SEEN)                                                                                             \
    X(round_bf16, round_bf16, (uint16_t * a, const float *b, size_t K), K, PLACE(a), PLACE(b))               \
    X(dot_bf16, dot_bf16,                                                                                    \
      (float *a, size_t stride, const uint16_t *b, size_t b_stride, size_t T, const void *w,                 \
       size_t w_stride, size_t N, size_t K),                                                                 \
      T *N *K, DOT_ROWS_SEEN)                                                                                \
    X(unpack_q4, unpack_q[0], (uint8_t * a, float *b, float *c, const void *w, size_t K), K, PLACE(a),       \
      PLACE(b), PLACE(c), PLACE(w))                                                                          \
    X(unpack_q5, unpack_q[1], (uint8_t * a, float *b, float *c, const void *w, size_t K), K, PLACE(a),       \
      PLACE(b), PLACE(c), PLACE(w))                                                                          \
    X(pack_q, pack_q, (tile_q_block * a, const float *b, size_t stride, size_t T, size_t K), T *K, PLACE(a), \
      PLACE(b), stride, T)                                                                                   \
    X(tile_q, tile_q, (float *a, const tile_q_block *b, const tile_q_rows *w, size_t T, size_t N, size_t K), \
      T *N *K, PLACE(a), PLACE(b), T, N, ROWS_SEEN)                                                          \
    X(pack_x, pack_x, (tile_x_share * a, const float *b, size_t stride, size_t T, size_t K), T *K, PLACE(a), \
      PLACE(b), stride, T)                                                                                   \
    X(turn_q, turn_q, (const tile_q_turned *a, const tile_q_rows *w, size_t N, size_t K), N *K, PLACE(a->u), \
      PLACE(a->scale), PLACE(a->minimum), a->halves, N, ROWS_SEEN)                                           \
    X(tile_turned, tile_turned,                                                                              \
      (float *a, size_t stride, const tile_x_share *b, const tile_q_turned *w, const float *bias, size_t T,  \
       size_t N, size_t K, prefetch_range ahead),                                                            \
      T *N *K, PLACE(a), stride, PLACE(b), PLACE(w->u), PLACE(w->scale), PLACE(w->minimum), PLACE(bias), T,  \
      N, PLACE(ahead.at), ahead.lines)                                                                       \
    X(mul, mul, MUL, M *K *N, MUL_SEEN)                                                                      \
    X(mul_add, mul_add, MUL, M *K *N, MUL_SEEN)                                                              \
    X(transpose, transpose,                                                                                  \
      (float *a, size_t a_stride, const float *b, size_t b_stride, size_t M, size_t N), M *N, PLACE(a),      \
      a_stride, PLACE(b), b_stride, M)                                                                       \
    X(add, add, (float *a, const float *b, size_t n), n, PLACE(a), PLACE(b))                                 \
    X(scale, scale, (float *a, float s, size_t n), n, PLACE(a), s == 1.0f)                                   \
    X(rmsnorm, rmsnorm, (float *a, const float *b, const float *w, float eps, size_t n), n, PLACE(a),        \
      PLACE(b), PLACE(w), eps == 0)                                                                          \
    X(rmsnorm_gated, rmsnorm_gated,                                                                          \
      (float *a, const float *b, const float *z, const float *w, float eps, size_t n), n, PLACE(a),          \
      PLACE(b), PLACE(z), PLACE(w), eps == 0)                                                                \
    X(layernorm, layernorm,                                                                                  \
      (float *a, const float *b, const float *w, const float *bias, float eps, size_t n), n, PLACE(a),       \
      PLACE(b), PLACE(w), PLACE(bias), eps == 0)                                                             \
    X(l2norm, l2norm, (float *a, const float *b, float s, size_t n), n, PLACE(a), PLACE(b), s == 1.0f)       \
    X(exp, exp, (float *a, size_t n), n, PLACE(a))                                                           \
    X(silu_mul, silu_mul, (float *a, const float *b, size_t n), n, PLACE(a), PLACE(b))                       \
    X(sigmoid_mul, sigmoid_mul, (float *a, const float *b, size_t n), n, PLACE(a), PLACE(b))                 \
    X(gelu_tanh, gelu_tanh, (float *a, size_t n), n, PLACE(a))                                               \
    X(gelu_erf, gelu_erf, (float *a, size_t n), n, PLACE(a))                                                 \
    X(rope, rope, (float *a, const float *b, const float *c, size_t n), n, PLACE(a), PLACE(b), PLACE(c))     \
    X(attend_q, attend_q, (attend_queries * a, const attend_keys *b), b->n * b->hd, PLACE(a->q),             \
      PLACE(a->mix), PLACE(b->k), PLACE(b->v), b->n, PLACE(b->k_scale), PLACE(b->k_offset),                  \
      PLACE(b->v_scale))                                                                                     \
    X(conv_silu, conv_silu,                                                                                  \
      (float *a, size_t a_stride, const float *b, size_t b_stride, const float *tail, size_t tail_stride,    \
       const float *w, const float *bias, size_t T, size_t n),                                               \
      T *n, PLACE(a), a_stride, PLACE(b), b_stride, PLACE(tail), tail_stride, PLACE(w), PLACE(bias), T)      \
    X(delta_step, delta_step,                                                                                \
      (float *a, float *to, const float *b, size_t stride, const float *q, const float *k, const float *v,   \
       float beta, float decay, size_t dk, size_t n, const float *next),                                     \
      dk *n, PLACE(a), PLACE(to), PLACE(b), stride, PLACE(q), PLACE(k), PLACE(v), PLACE(next),               \
      beta == decay)

#define DOT_ROWS                                                                                             \
    (float *a, size_t stride, const float *b, size_t b_stride, size_t T, const void *w, size_t w_stride,     \
     size_t N, size_t K)
#define DOT_ROWS_SEEN PLACE(a), stride, PLACE(b), b_stride, T, PLACE(w), w_stride, N
#define DOT_Q         (float *a, size_t stride, const void *b, size_t T, const void *w, size_t N, size_t K)
#define PANEL         (float *a, size_t stride, const quant_panel *b, size_t T, const void *w, size_t N, size_t K)
#define DOT_Q_SEEN    PLACE(a), stride, PLACE(b), T, PLACE(w), N
#define TILE_SEEN     PLACE(a), PLACE(b), PLACE(w), stride, T, N
#define ROWS_SEEN                                                                                            \
    PLACE(w->u), w->u_stride, PLACE(w->scale), PLACE(w->minimum), w->stride, w->wide * 2u + w->halves
#define MUL                                                                                                  \
    (float *a, size_t a_stride, const float *b, size_t b_stride, const float *w, size_t w_stride, size_t M,  \
     size_t K, size_t N)
#define MUL_SEEN PLACE(a), a_stride, PLACE(b), b_stride, PLACE(w), w_stride, M, K

/* Of packed keys and values, and of the blocks of GGUF files, whatever their type. */
#define COUNTED_OTHERS(X)                                                                                    \
    X(softmax_tile) X(kv_pack) X(kv_widen) X(kv_dot) X(kv_mix) X(gguf_dot) X(gguf_widen) X(gguf_unpack)

enum {
#define ID(name, ...) COUNTED_##name,
    COUNTED_KERNELS(ID) COUNTED_OTHERS(ID) COUNTED_IDS
};

static const char *const COUNTED_NAMES[] = {
#define NAME(name, ...) #name,
    COUNTED_KERNELS(NAME) COUNTED_OTHERS(NAME)};

static struct {
    atomic_size_t calls[COUNTED_IDS], work[COUNTED_IDS];
    _Atomic uint32_t sum; /* whatever the order of the calls */
    const compute *c;
    const char *arena;
    size_t arena_bytes;
    uint64_t begun; /* pieces of work before those that are noted */
    ops table;
    kv_ops kv[KV_TYPES];
    ggml_kernels ggml[GGML_TYPES];
} counted;

/* Where something lies: in the memory of the test, among packed rows, in the scratch of any thread or in that of all; or
 * elsewhere. */
static inline size_t PLACE(const void *p)
{
    enum { EVERYWHERE = 0x5bd1e995, SCRATCH = 0x1b873593, SHARED = 0x2545f491 };
    const uintptr_t at = (uintptr_t)p, arena = (uintptr_t)counted.arena,
                    packed = (uintptr_t)counted.c->packed, scratch = (uintptr_t)counted.c->scratch;
    const size_t room = SCRATCH_FLOATS * sizeof(float), n_threads = pool_n_threads(counted.c->pool);
    if (p && at - arena < counted.arena_bytes) {
        return at - arena + 1;
    }
    if (p && at - packed < PACKED_WORDS * sizeof(uint32_t)) {
        return at - packed + EVERYWHERE;
    }
    if (p && at - scratch < (n_threads + 1) * room) {
        return (at - scratch) % room + (at - scratch < n_threads * room ? SCRATCH : SHARED);
    }
    return 0;
}

/* Pieces of work that were begun since the context was made. */
static inline uint64_t counted_begun(void)
{
    return compute_progress_counter(counted.c) >> 24;
}

/* Where one thread does all, its tasks come one after the other: it is noted which of them asks. */
static inline void counted_note(size_t id, size_t work, const size_t *seen, size_t n)
{
    const uint64_t task = pool_n_threads(counted.c->pool) == 1 ? counted_begun() - counted.begun : 0;
    uint64_t hash = 14695981039346656037u + id + (task << 32);
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ seen[i]) * 1099511628211u;
        hash ^= hash >> 29;
    }
    atomic_fetch_add(&counted.calls[id], 1);
    atomic_fetch_add(&counted.work[id], work);
    atomic_fetch_add(&counted.sum, (uint32_t)(hash ^ hash >> 32));
}

#define NOTE(id, work, ...)                                                                                  \
    do {                                                                                                     \
        const size_t seen[] = {(work), __VA_ARGS__};                                                         \
        counted_note(id, seen[0], seen, sizeof seen / sizeof *seen);                                         \
    } while (0)

#define DEFINE(name, member, parameters, work, ...)                                                          \
    static void counted_##name parameters                                                                    \
    {                                                                                                        \
        NOTE(COUNTED_##name, work, __VA_ARGS__);                                                             \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
COUNTED_KERNELS(DEFINE)

/* As if each tile moved the maximum. */
static float counted_softmax_tile(float *s, size_t n, float *max, float *sum)
{
    NOTE(COUNTED_softmax_tile, n, PLACE(s), *sum > 0);
    *max = 0, *sum += 1;
    return 0.5f;
}

static float counted_kv_pack(void *out, const float *x, size_t hd)
{
    NOTE(COUNTED_kv_pack, hd, PLACE(out), PLACE(x));
    return 1;
}

static void counted_kv_widen(float *out, const void *row, float scale, size_t hd)
{
    NOTE(COUNTED_kv_widen, hd, PLACE(out), PLACE(row));
}

static void counted_kv_dot(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,
                           const kv_rows *rows)
{
    NOTE(COUNTED_kv_dot, R * rows->n * rows->hd, PLACE(out), out_stride, PLACE(q), q_stride, R, rows->n_parts,
         PLACE(rows->parts[0]), PLACE(rows->parts[rows->n_parts - 1]), PLACE(rows->scales[0]),
         PLACE(rows->scales[rows->n_parts - 1]), rows->row_bytes);
}

static void counted_kv_mix(float *out, size_t out_stride, const float *q, size_t q_stride, size_t R,
                           const kv_rows *rows)
{
    NOTE(COUNTED_kv_mix, R * rows->n * rows->hd, PLACE(out), out_stride, PLACE(q), q_stride, R, rows->n_parts,
         PLACE(rows->parts[0]), PLACE(rows->parts[rows->n_parts - 1]), PLACE(rows->scales[0]),
         PLACE(rows->scales[rows->n_parts - 1]), rows->row_bytes);
}

static void counted_gguf_dot DOT_Q
{
    NOTE(COUNTED_gguf_dot, T * N * K, DOT_Q_SEEN);
}

static void counted_gguf_widen(float *a, const void *w, size_t K)
{
    NOTE(COUNTED_gguf_widen, K, PLACE(a), PLACE(w));
}

static void counted_gguf_unpack(uint8_t *u, float *scale, float *minimum, const void *w, size_t K)
{
    NOTE(COUNTED_gguf_unpack, K, PLACE(u), PLACE(scale), PLACE(minimum), PLACE(w));
}
#pragma GCC diagnostic pop

/* The members that a table has are counted; the others stay as they are. */
static inline void counted_begin(compute *c, const ops *like, const void *arena, size_t bytes)
{
    memset(&counted, 0, sizeof counted);
    counted.c = c, counted.arena = arena, counted.arena_bytes = bytes;
    counted.table = *like;
#define SET(name, member, ...) counted.table.member = like->member ? counted_##name : NULL;
    COUNTED_KERNELS(SET)
    counted.table.softmax_tile = counted_softmax_tile;
    for (size_t i = 0; i < KV_TYPES; i++) {
        counted.kv[i] = (kv_ops){counted_kv_pack, counted_kv_widen, counted_kv_dot, counted_kv_mix};
    }
    for (size_t i = 0; i < GGML_TYPES; i++) {
        counted.ggml[i] = (ggml_kernels){counted_gguf_dot, counted_gguf_widen, counted_gguf_unpack};
    }
    counted.table.kv = counted.kv, counted.table.ggml = counted.ggml;
    c->ops = &counted.table;
    counted.begun = counted_begun();
}

/* What was called since counted_begin or the last counted_end, as a text. */
static inline void counted_end(char *text, size_t bytes)
{
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < COUNTED_IDS; i++) {
        const size_t calls = atomic_exchange(&counted.calls[i], 0),
                     work = atomic_exchange(&counted.work[i], 0);
        if (calls > 0 && at < bytes) {
            at += (size_t)snprintf(text + at, bytes - at, "%s %zu*%zu, ", COUNTED_NAMES[i], calls,
                                   work / calls);
        }
    }
    CHECK(at + 12 < bytes);
    snprintf(text + at, bytes - at, "#%08" PRIx32, atomic_exchange(&counted.sum, 0));
    counted.begun = counted_begun();
}

#endif
