/* nn: the tensor operations that layers are written with. Each runs on the context's pool and picks
 * kernels from its table (ops.h). Called from one thread at a time per context
 * (engine thread).
 *
 *     compute *c; err = compute_create(&c, &(compute_options){.n_threads = 2, .cpu_mask = ~0u}, &detail);
 *     nn_linear(c, q, x, &w_q, NULL, n_rows);
 *
 * Letters: T rows (tokens or patches), D model width, K inner width, N output width, H heads, hd
 * head size. Everything is float32 row-major unless a tensor says otherwise; outputs first; out may
 * not overlap an input except where a comment says "in place". No function allocates after
 * compute_create: every operation cuts its work to fit the scratch made there (32 MiB of addresses
 * a thread and once more, used as far as the sizes need).
 *
 * Guarantees, checked by tests:
 *   - results do not depend on the number of threads (bitwise);
 *   - with T <= NN_ROWS_EXACT a row's result does not depend on T or on the other rows (bitwise),
 *   so that a sequence decodes to the same tokens alone, in a batch, and inside a verify block.
 */
#ifndef PARLEY_COMPUTE_NN_H
#define PARLEY_COMPUTE_NN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "compute/formats/kv_type.h"
#include "compute/tensor.h"

typedef struct compute compute;

enum {
    NN_ROWS_EXACT = 32,
    NN_LINEAR_PARTS = 4,
    /* Largest head sizes that the scratch is made for: hd of attention; dk and dv of the delta
     * rule. */
    NN_HEAD_MAX = 65536,
    NN_DELTA_HEAD_MAX = 16384,
};

typedef struct compute_options {
    size_t n_threads;  /* 0: one per physical core that this process may use */
    unsigned cpu_mask; /* ANDed with cpu_flags(); ~0u for all */
    bool fast;         /* see nn_linear and nn_linear_many */
    /* Binds each thread to a processor, and spreads the memory that the calling thread and those that it starts touch
     * first over the machine's nodes (numa.h). The thread that computes calls compute_bind_caller. */
    bool spread;
} compute_options;

MUST_CHECK err_code compute_create(compute **out, const compute_options *opt, err_detail *detail);
void compute_destroy(compute *c); /* NULL allowed */
/* Binds the calling thread to the first processor, where compute_options.spread asked for it. */
void compute_bind_caller(compute *c);
uint64_t compute_progress_counter(const compute *c); /* see pool_progress_counter */
size_t compute_n_threads(const compute *c);
/* The kernels that OpenBLAS should have been started with (OPENBLAS_CORETYPE); NULL: it has them. */
const char *compute_wanted_blas(void);
/* "avx2, 2 threads, prompts and images by own kernels"; "64 threads on 2 nodes" if spread. */
const char *compute_describe(const compute *c);

/* Zeroed buffer aligned to 64 (huge pages where it helps); NULL if out of memory. Freed with
 * compute_free. */
MUST_CHECK void *compute_alloc(compute *c, size_t bytes);
void compute_free(compute *c, void *p); /* NULL allowed */

/* ---- rows ---- */

/* out[t,:] = table[ids[t],:] as f32; table [V, D] of floats or of a GGUF file's blocks; every id
 * must be in range. */
void nn_embed(compute *c, float *out, const tensor *table, const int32_t *ids, size_t T);

/* out [T,N] = x [T,K] * w^T (+ bias); w [N,K] of any dtype; bias [N] or NULL. Floats: exact
 * widening to f32, f32 accumulation; but in a fast context, where the processor multiplies bf16 faster than
 * f32, x is rounded to bf16 for weights of that type. Weights in blocks (quant.h, ggml_blocks.h): x is rounded to 8
 * bits with a scale every 32 columns, products are integers. */
void nn_linear(compute *c, float *out, const float *x, const tensor *w, const float *bias, size_t T);

/* The same for up to NN_LINEAR_PARTS weights on one x, handed to the threads at once: small
 * products cost less. Each result is what nn_linear gives. */
typedef struct linear_part {
    float *out; /* [T,N] */
    const tensor *w;
    const float *bias; /* or NULL */
} linear_part;
void nn_linear_group(compute *c, const linear_part *parts, size_t n_parts, const float *x, size_t T);

/* Independent products computed together (the experts of a few rows): all handed to the threads at
 * once. Each result is what nn_linear gives. Items with the same x should be adjacent: then it is
 * rounded once. */
typedef struct linear_item {
    float *out; /* [T,N] */
    const float *x;
    const tensor *w;
    size_t T; /* 1 .. NN_ROWS_EXACT */
} linear_item;
void nn_linear_each(compute *c, const linear_item *items, size_t n);

/* The same for the rows of prompts and images. In a fast context a row's result depends neither on
 * T nor on the other rows, but it is not the one of nn_linear: terms are added in another order,
 * and where the processor multiplies bf16 faster than f32, x is rounded to bf16 for weights of that
 * type. In an exact context it is nn_linear_group. */
void nn_linear_many(compute *c, const linear_part *parts, size_t n_parts, const float *x, size_t T);
/* Independent products with many rows (the experts of a prompt), handed to the threads together.
 * Each result is what nn_linear_many gives. */
typedef struct linear_many {
    const linear_part *parts;
    size_t n_parts; /* 1 .. NN_LINEAR_PARTS */
    const float *x;
    size_t T; /* at least 1 */
} linear_many;
void nn_linear_many_each(compute *c, const linear_many *items, size_t n);
/* Whether with this context nn_linear_many gives a row the same bits whatever the other rows and T
 * are. */
bool nn_many_is_exact(const compute *c);
/* Multiplications with weights since the context was made, by all of the above: what is computed twice shows here alone. */
uint64_t nn_products(const compute *c);
/* What was multiplied beside those because rows of nn_linear_many come in steps of 16; none where the table of
 * kernels turns weights (tile_turned in ops.h). */
uint64_t nn_padding(const compute *c);

/* The rows of w (f32, bf16 or f16) as rows of blocks, by all threads: out [N *
 * quant_row_bytes(type, K)]. */
void nn_quantize(compute *c, void *out, dtype type, const tensor *w);

/* y[i] += x[i]. In place. */
void nn_add(compute *c, float *y, const float *x, size_t n);

/* out[t] = x[t] / sqrt(mean(x[t]^2) + eps) * w; w [D] is the effective weight (1 + stored for
 * zero-centred norms). out may equal x. */
void nn_rmsnorm(compute *c, float *out, const float *x, const float *w, float eps, size_t T, size_t D);

/* The same per head, in place: head h of row t starts at x + t*row_stride + h*head_stride. w
 * [hd]. */
void nn_rmsnorm_heads(compute *c, float *x, const float *w, float eps, size_t T, size_t H, size_t hd,
                      size_t row_stride, size_t head_stride);

/* out[r] = rmsnorm(x[r]) * w * silu(z[r]) for R rows of d values (GatedDeltaNet's output norm). out
 * may equal x. */
void nn_rmsnorm_gated(compute *c, float *out, const float *x, const float *z, const float *w, float eps,
                      size_t R, size_t d);

/* (x - mean) / sqrt(var + eps) * w + b per row. out may equal x. */
void nn_layernorm(compute *c, float *out, const float *x, const float *w, const float *b, float eps, size_t T,
                  size_t D);

/* gate[i] = silu(gate[i]) * up[i]. In place. */
void nn_silu_mul(compute *c, float *gate, const float *up, size_t n);

/* x[i] = max(x[i], 0)^2. In place. */
void nn_relu2(compute *c, float *x, size_t n);

/* gate[i] = g * sigmoid(1.702 * g) * (u + 1) of g = gate[i], at most limit, and u = up[i], within
 * -limit .. limit. In place. */
void nn_swiglu_clamped(compute *c, float *gate, const float *up, float limit, size_t n);

/* gate[i] = gelu(gate[i]) * up[i], tanh approximation. In place. */
void nn_gelu_mul(compute *c, float *gate, const float *up, size_t n);

/* x[i] *= s. In place. */
void nn_scale(compute *c, float *x, float s, size_t n);

/* x[i] = cap * tanh(x[i] / cap). In place. */
void nn_softcap(compute *c, float *x, float cap, size_t n);

/* x[i] = gelu(x[i]), tanh approximation or exact (erf). In place. */
void nn_gelu_tanh(compute *c, float *x, size_t n);
void nn_gelu_erf(compute *c, float *x, size_t n);

/* x [T,H,hd] *= sigmoid(gate), gate of head h of row t at gate + t*row_stride + h*head_stride. In
 * place. */
void nn_sigmoid_gate(compute *c, float *x, const float *gate, size_t T, size_t H, size_t hd,
                     size_t row_stride, size_t head_stride);

/* ---- positions ---- */

/* Rotates the first 2*n_pairs values of each head, in place: pair i is (x[i], x[i + n_pairs]);
 * cos, sin [T, n_pairs]. Head h of row t starts at x + t*row_stride + h*head_stride. */
void nn_rope(compute *c, float *x, const float *cos, const float *sin, size_t T, size_t H, size_t n_pairs,
             size_t row_stride, size_t head_stride);

/* Rotates each head, in place, by the orthogonal Hadamard matrix of the largest power of two that
 * divides hd (block by block, where that is not hd itself): a number that stands out is spread over
 * its block. Dot products of two heads that were both rotated are what they were; a second rotation
 * takes the first one back. Head h of row t starts at x + t*row_stride + h*head_stride. */
void nn_rotate_heads(compute *c, float *x, size_t T, size_t H, size_t hd, size_t row_stride,
                     size_t head_stride);

/* ---- attention ---- */

/* One sequence's keys and values of one layer, in pages of page_tokens tokens: token n is row n %
 * page_tokens of page n / page_tokens; a page is [n_kv, 2]: a head's keys, then its values, so that
 * a decode step reads on and on. Each of them is [page_tokens] scales, where the type has some, and
 * [page_tokens] packed rows (kv_type.h). Pages are aligned to floats. */
typedef struct kv_pages {
    void *const *pages;
    size_t page_tokens;
    kv_type type;
} kv_pages;

/* Bytes of one page. */
static inline size_t kv_page_bytes(kv_type type, size_t page_tokens, size_t n_kv, size_t hd)
{
    return 2 * page_tokens * n_kv * (kv_row_bytes(type, hd) + kv_scale_bytes(type));
}

/* Packs k, v [T, n_kv*hd] (row strides in floats) into cache slots first .. first+T-1. */
void nn_kv_store(compute *c, const kv_pages *kv, const float *k, const float *v, size_t first, size_t T,
                 size_t n_kv, size_t hd, size_t k_stride, size_t v_stride);

/* What a row of attention sees beside causality; all zeros: nothing else. */
typedef struct attention_rule {
    size_t window;      /* slots, its own the last of them; 0: all before it. Pages before are not read */
    const float *sinks; /* [H] or NULL: one more score of each head, whose weight goes to no value */
    /* [T] or NULL, never falling: the slot behind the last one that a row sees, for rows that see later
     * ones too; at most first + T. NULL: behind its own. */
    const int32_t *ends;
} attention_rule;

/* Causal attention of T new rows in slots first .. first+T-1 over slots 0 .. own slot. out [T, H,
 * hd]; q head h of row t at q + t*row_stride + h*head_stride; query head h reads key head h / (H /
 * n_kv). Softmax and sums in f32, whatever the type of the keys; never builds the score matrix for
 * more than a tile. Up to NN_ROWS_EXACT rows read the packed rows as they are, and one row's keys
 * are shared out among the threads; more rows (a prompt) unpack each tile once for many of them,
 * and equal the first to rounding: in a fast context that of bf16 (queries, keys, values and their
 * weights) where the processor multiplies it faster than f32. rule may be NULL. */
void nn_attention(compute *c, float *out, const float *q, const kv_pages *kv, const attention_rule *rule,
                  float scale, size_t first, size_t T, size_t H, size_t n_kv, size_t hd, size_t row_stride,
                  size_t head_stride);
/* The same for the rows of prompts: always the method for many rows, so that a row's result does
 * not depend on T. */
void nn_attention_many(compute *c, float *out, const float *q, const kv_pages *kv, const attention_rule *rule,
                       float scale, size_t first, size_t T, size_t H, size_t n_kv, size_t hd,
                       size_t row_stride, size_t head_stride);

/* out [R, n] = scale * q[r] . key of slot 0 .. n-1 of key head kv_head; q [R, hd]. What attention
 * forms inside, for those who ask how much a query looks at each key. */
void nn_key_scores(compute *c, float *out, const float *q, const kv_pages *kv, float scale, size_t kv_head,
                   size_t n, size_t R, size_t hd);
/* best[r,i] = max(best[r,i], mean of softmax(scores[r])[i - window/2 .. i + window/2]), zeros beyond
 * the ends; both [R, n], window odd; scores become exp(score - maximum). */
void nn_softmax_peaks(compute *c, float *best, float *scores, size_t n, size_t window, size_t R);

/* Full attention inside segments (vision): rows cu[s] .. cu[s+1]-1 see each other. qkv [T, 3, H,
 * hd] (q, k, v one after another in a row); out [T, H, hd]; cu [n_segments + 1]. In a fast context, where the
 * processor multiplies these faster than f32, queries, keys, values and their weights are rounded to
 * `rounded`: DTYPE_BF16, or DTYPE_Q8 for 8 bits with a scale for each key, each query, and of 256 keys each
 * column of the values; any other type: f32. scale > 0. A row's result does not depend on other segments. */
void nn_attention_segments(compute *c, float *out, const float *qkv, const int32_t *cu, size_t n_segments,
                           dtype rounded, float scale, size_t H, size_t hd);

/* ---- GatedDeltaNet (docs/model.md B.4; gated delta rule, arXiv 2412.06464) ---- */

/* Depthwise causal convolution of width 4 with silu, one sequence. u [T, C] (row stride u_stride)
 * -> out [T, C]; w [C, 4]; bias [C] or NULL; tail [3, C] holds the three u rows before the first and
 * is updated to the last three. */
void nn_conv_silu(compute *c, float *out, float *tail, const float *u, const float *w, const float *bias,
                  size_t T, size_t C, size_t u_stride);

/* The same of several sequences, handed to the threads at once. */
typedef struct conv_run {
    float *out, *tail; /* [T, C], [3, C] */
    const float *u;    /* [T, C] */
    size_t T;
} conv_run;
void nn_conv_silu_each(compute *c, const conv_run *runs, size_t n, const float *w, const float *bias,
                       size_t C, size_t u_stride);

/* beta = sigmoid(b); g = -exp(A_log) * softplus(a + dt_bias) (log decay, <= 0); all [T, H]; A_log,
 * dt_bias [H]. */
void nn_delta_gates(compute *c, float *beta, float *g, const float *b, const float *a, const float *A_log,
                    const float *dt_bias, size_t T, size_t H);

/* Rows of a block of the chunked forms, this one's and Mamba-2's. */
enum { NN_DELTA_BLOCK = 64 };

/* Shapes of a delta-rule call. */
typedef struct delta_shape {
    size_t n_k, n_v; /* key and value heads */
    size_t dk, dv;   /* head sizes */
    bool tiled;      /* value head h uses key head h % n_k; otherwise h / (n_v / n_k) */
} delta_shape;

/* Rows of q | k | v before their convolution, C = 2*n_k*dk + n_v*dv; what nn_conv_silu takes, without bias. */
typedef struct delta_source {
    const float *u, *w; /* [T, C], [C, 4] */
    float *tail;        /* [3, C]; updated */
} delta_source;

/* The operator, one sequence: conv [T, 2*n_k*dk + n_v*dv] holds q | k | v rows; q and k are
 * L2-normalised here (x * rsqrt(sum x^2 + 1e-6)) and q scaled by dk^-0.5. beta, g [T, n_v]. state
 * [n_v, dk, dv] is read and updated. out [T, n_v, dv].
 *   recurrent: token by token; defines the operator; used for decode and verify blocks. If states
 *   is not NULL,
 *              states[t] receives the state after row t and `state` is only read, unless one of them is `state` itself:
 *              that may be the last alone.
 *   chunked:   blocks of NN_DELTA_BLOCK rows as matrix products; for prefill. Equal to f32 rounding, not bitwise.
 *              The convolution is done inside, a block of a head at a time, so that its rows never leave the
 *              caches; bit for bit those of nn_conv_silu. */
void nn_delta_recurrent(compute *c, float *out, float *state, float *const *states, const float *conv,
                        const float *beta, const float *g, const delta_shape *s, size_t T);
void nn_delta_chunked(compute *c, float *out, float *state, const delta_source *rows, const float *beta,
                      const float *g, const delta_shape *s, size_t T);

/* nn_delta_recurrent of several sequences, handed to the threads at once; each result is what it gives. */
typedef struct delta_run {
    float *out, *state;
    float *const *states; /* or NULL */
    const float *conv, *beta, *g;
    size_t T;
} delta_run;
void nn_delta_recurrent_each(compute *c, const delta_run *runs, size_t n, const delta_shape *s);

/* ---- Mamba-2 (docs/model.md B.7; state space duality, arXiv 2405.21060) ---- */

/* dt = softplus(x + dt_bias) held inside [least, most]; g = -exp(A_log) * dt (log decay, <= 0); both
 * [T, H]; x [T, H] with its row stride; A_log, dt_bias [H]. */
void nn_mamba_gates(compute *c, float *dt, float *g, const float *x, size_t x_stride, const float *A_log,
                    const float *dt_bias, float least, float most, size_t T, size_t H);

/* Shapes of a Mamba-2 call; dk and dv as in delta_shape, whose heads they bound. */
typedef struct mamba_shape {
    size_t n_groups, n_heads; /* head h reads B and C of group h / (n_heads / n_groups) */
    size_t dk, dv;            /* of B and C (the size of a state); of x (of a head) */
} mamba_shape;

/* The operator, one sequence: conv [T, n_heads*dv + 2*n_groups*dk] holds x | B | C rows; D [n_heads];
 * dt, g [T, n_heads]. For every head S = exp(g) S + dt B^T x, out = C S + D x. state [n_heads, dk, dv]
 * is read and updated; out [T, n_heads, dv]. recurrent and states, chunked: as for GatedDeltaNet. */
void nn_mamba_recurrent(compute *c, float *out, float *state, float *const *states, const float *conv,
                        const float *dt, const float *g, const float *D, const mamba_shape *s, size_t T);
void nn_mamba_chunked(compute *c, float *out, float *state, const float *conv, const float *dt,
                      const float *g, const float *D, const mamba_shape *s, size_t T);

/* out = rmsnorm of each of G groups of d values of x * silu(z), times w [G*d]; out, x [T, G*d]; z [T,
 * G*d] with its row stride is used up. out may equal x. */
void nn_rmsnorm_groups(compute *c, float *out, const float *x, float *z, size_t z_stride, const float *w,
                       float eps, size_t T, size_t G, size_t d);

#endif
