#include "bench/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/stats.h"
#include "compute/limits.h"
#include "compute/nn.h"
#include "model/cost.h"
#include "model/decoder.h"
#include "model/model_parts.h"
#include "model/mtp.h"

enum { HISTORY = 32, ROUNDS_MAX = 200, N_CTX = 4096, TOKEN = 65 };

typedef struct bench {
    model *m;
    compute *c;
    decoder_scratch *sc;
    mtp_scratch *mtp;
    kv_pool *pool;
    seq_state *seqs[BLOCK_SEQS];
    size_t step_bytes;
    /* of as much memory as a step reads: a small model is compared with its caches */
    bandwidth_bench *reader;
} bench;

/* ---- what is timed ---- */

/* n_runs sequences of n_rows rows; a block of several rows keeps its states and is rewound to
 * one. */
static err_code forward(bench *b, int32_t n_runs, int32_t n_rows, err_detail *detail)
{
    int32_t tokens[NN_ROWS_EXACT], rows[NN_ROWS_EXACT];
    position at[NN_ROWS_EXACT];
    batch_run runs[BLOCK_SEQS];
    int32_t n = 0;
    for (int32_t r = 0; r < n_runs; r++) {
        runs[r] = (batch_run){
            .seq = b->seqs[r], .first_row = n, .n_rows = n_rows, .exact_rows = true, .keep_rows = n_rows > 1};
        for (int32_t i = 0; i < n_rows; i++, n++) {
            int32_t p = seq_state_len(b->seqs[r]) + i;
            tokens[n] = TOKEN + n;
            rows[n] = n;
            at[n] = (position){p, p, p};
        }
    }
    const batch all = {.n_rows = n,
                       .tokens = tokens,
                       .positions = at,
                       .runs = runs,
                       .n_runs = n_runs,
                       .logit_rows = rows,
                       .n_logit_rows = n};
    err_code err = decoder_forward(b->m, b->c, &all, b->sc, detail);
    for (int32_t r = 0; err == ERR_OK && n_rows > 1 && r < n_runs; r++) {
        seq_state_rewind(b->seqs[r], 1);
    }
    return err;
}

/* One guess of the draft head, whose entry is taken back. */
static err_code guess(bench *b, err_detail *detail)
{
    const int32_t len = mtp_len(b->seqs[0]), token = TOKEN;
    const position at = {len, len, len};
    const mtp_input in = {.seq = b->seqs[0],
                          .hidden = decoder_hidden(b->sc, 0),
                          .next_tokens = &token,
                          .positions = &at,
                          .n = 1};
    err_code err = mtp_forward(b->m, b->c, b->mtp, &in, 1, detail);
    if (err == ERR_OK) {
        mtp_truncate(b->seqs[0], len);
    }
    return err;
}

static double ms_since(int64_t start)
{
    return (double)(clock_ns() - start) / 1e6;
}

/* ---- the rounds ---- */

static void close_bench(bench *b)
{
    bandwidth_bench_close(b->reader);
    for (int i = 0; i < BLOCK_SEQS; i++) {
        seq_state_destroy(b->seqs[i]);
    }
    kv_pool_destroy(b->pool);
    mtp_scratch_destroy(b->mtp);
    decoder_scratch_destroy(b->sc);
    model_close(b->m);
    compute_destroy(b->c);
}

static err_code open_bench(bench *b, const char *dir, size_t n_threads, err_detail *detail)
{
    const compute_options co = {.n_threads = n_threads, .cpu_mask = ~0u, .fast = true};
    err_code err = compute_create(&b->c, &co, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = model_open(&b->m, dir, &(model_open_options){.weights_only = true}, detail);
    if (err != ERR_OK) {
        return err;
    }
    b->step_bytes = (size_t)model_costs(b->m, KV_F16).step_bytes;
    b->reader = bandwidth_bench_open(b->c, b->step_bytes);
    if (!b->reader) {
        return err_set(detail, ERR_NOMEM, "no memory for the benchmark");
    }
    err = decoder_scratch_create(&b->sc, b->m, b->c, NN_ROWS_EXACT, NN_ROWS_EXACT, detail);
    const bool draft = err == ERR_OK && model_has_mtp(b->m);
    if (draft) {
        err = mtp_scratch_create(&b->mtp, b->m, b->c, 1, 1, detail);
    }
    if (err == ERR_OK) {
        err = kv_pool_create(&b->pool, model_get_config(b->m), KV_F16, draft,
                             kv_pool_blocks_for(N_CTX) * BLOCK_SEQS, kv_pool_blocks_for(N_CTX) * BLOCK_SEQS,
                             b->c, detail);
    }
    for (int i = 0; err == ERR_OK && i < BLOCK_SEQS; i++) {
        err = seq_state_create(&b->seqs[i], model_get_config(b->m), b->pool, N_CTX, b->c, detail);
        if (err == ERR_OK) {
            err = seq_state_reserve_rows(b->seqs[i], BLOCK_ROWS_MAX, detail);
        }
    }
    for (int i = 0; err == ERR_OK && i < HISTORY; i++) {
        err = forward(b, BLOCK_SEQS, 1, detail);
    }
    return err;
}

/* What a round measures: verify blocks of 1 to 4 rows, 4, 8 and 16 sequences, a guess; then a step and
 * the memory bandwidth (10^9 bytes a second) in turns. */
enum { AT_ROWS = 0, AT_FOUR = 5, AT_EIGHT, AT_SIXTEEN, AT_GUESS, AT_BANDWIDTH, AT_FRACTION, N_TIMES };

/* Steps with a pass of the reader before and behind each. */
static err_code measure_fraction(bench *b, double *bandwidth_gbs, double *share, err_detail *detail)
{
    enum { STEPS = 3 };
    double reads[STEPS + 1] = {0}, shares[STEPS] = {0};
    err_code err = ERR_OK;
    reads[0] = bandwidth_bench_pass(b->reader);
    for (size_t i = 0; err == ERR_OK && i < STEPS; i++) {
        int64_t start = clock_ns();
        err = forward(b, 1, 1, detail);
        const double step_gbs = (double)b->step_bytes / ms_since(start) / 1e6;
        reads[i + 1] = bandwidth_bench_pass(b->reader);
        shares[i] = step_gbs / ((reads[i] + reads[i + 1]) / 2);
    }
    *bandwidth_gbs = stats_median(reads, STEPS + 1);
    *share = stats_median(shares, STEPS);
    return err;
}

static err_code measure_round(bench *b, double times[N_TIMES], err_detail *detail)
{
    err_code err = forward(b, 1, 1, detail); /* a small model is in the caches again after the last read */
    for (int32_t rows = 1; err == ERR_OK && rows <= BLOCK_ROWS_MAX; rows++) {
        int64_t start = clock_ns();
        err = forward(b, 1, rows, detail);
        times[AT_ROWS + rows] = ms_since(start);
    }
    for (int k = 0; err == ERR_OK && AT_FOUR + k <= AT_SIXTEEN; k++) {
        int64_t start = clock_ns();
        err = forward(b, 4 << k, 1, detail);
        times[AT_FOUR + k] = ms_since(start);
    }
    if (err == ERR_OK && b->mtp) {
        int64_t start = clock_ns();
        err = guess(b, detail);
        times[AT_GUESS] = ms_since(start);
    }
    return err == ERR_OK ? measure_fraction(b, &times[AT_BANDWIDTH], &times[AT_FRACTION], detail) : err;
}

err_code blocks_measure(block_costs *out, const char *dir, size_t n_threads, int rounds, err_detail *detail)
{
    static double ms[N_TIMES][ROUNDS_MAX], ratio[N_TIMES][ROUNDS_MAX];
    bench b = {0};
    *out = (block_costs){0};
    rounds = rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    err_code err = open_bench(&b, dir, n_threads, detail);
    for (int i = -1; err == ERR_OK && i < rounds; i++) { /* round -1 warms up */
        double times[N_TIMES] = {0};
        err = measure_round(&b, times, detail);
        for (int k = 0; i >= 0 && k < N_TIMES; k++) {
            ms[k][i] = times[k];
            ratio[k][i] = times[k] / times[AT_ROWS + 1];
        }
    }
    if (err == ERR_OK) {
        const size_t n = (size_t)rounds;
        out->step_ms = stats_median(ms[AT_ROWS + 1], n);
        for (int rows = 2; rows <= BLOCK_ROWS_MAX; rows++) {
            out->verify[rows] = stats_median(ratio[AT_ROWS + rows], n);
        }
        for (int k = 0; AT_FOUR + k <= AT_SIXTEEN; k++) {
            out->batch[4 << k] = stats_median(ratio[AT_FOUR + k], n);
        }
        out->draft = stats_median(ratio[AT_GUESS], n);
        out->bandwidth_gbs = stats_median(ms[AT_BANDWIDTH], n);
        out->share = stats_median(ms[AT_FRACTION], n);
        out->step_bytes = (double)b.step_bytes;
        out->step_gbs = out->step_bytes / out->step_ms / 1e6;
    }
    close_bench(&b);
    return err;
}
