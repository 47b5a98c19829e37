/* cache_type: what the types of keys and values cost and what they change, on one model in one run.
 *
 *     build/bench_cache_type [-m DIR] [-t THREADS] [-r ROUNDS] [--depths 0,8192,32768] [--prompts FILE | --ids FILE]
 *
 * Speed: one decode step, and one prompt chunk of 512, behind so many tokens; the types take turns,
 * medians are printed. Keys and values are random there: what a step reads counts, not what it
 * says. --prompts: questions, one a line, become one long conversation with the model's own greedy
 * answers; --ids: the input_ids of a reference case. Every type reads it in chunks; its
 * distribution at each token is compared with float32's: Kullback-Leibler divergence and how often
 * the likeliest token is the same.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "bench/stats.h"
#include "model/decoder.h"
#include "model/model.h"
#include "model/seq_layout.h"
#include "model/checkpoint/tensor_file.h"

enum {
    DEPTHS_MAX = 8,
    ROUNDS_MAX = 100,
    CHUNK = 512,
    ANSWER_MAX = 48,
    IDS_MAX = 8192,
    SPARE = 1024,
    TOKEN = 65
};

typedef struct settings {
    const char *dir, *prompts, *ids;
    size_t n_threads, n_depths;
    int rounds;
    int32_t depths[DEPTHS_MAX];
} settings;

typedef struct bench {
    settings set;
    model *m;
    const model_config *cfg;
    compute *c;
    decoder_scratch *sc;
    kv_pool *pools[KV_TYPES];
    seq_state *seqs[KV_TYPES];
} bench;

static void must(err_code err, const err_detail *d)
{
    if (err != ERR_OK) {
        fprintf(stderr, "bench_cache_type: %s\n", d->text);
        exit(1);
    }
}

static void open_sequences(bench *b, int32_t n_ctx)
{
    err_detail d = {0};
    for (kv_type type = KV_F32; type < KV_TYPES; type++) {
        must(kv_pool_create(&b->pools[type], b->cfg, type, false, kv_pool_blocks_for(n_ctx),
                            kv_pool_blocks_for(n_ctx), b->c, &d),
             &d);
        must(seq_state_create(&b->seqs[type], b->cfg, b->pools[type], n_ctx, b->c, &d), &d);
    }
}

static void close_sequences(bench *b)
{
    for (kv_type type = KV_F32; type < KV_TYPES; type++) {
        seq_state_destroy(b->seqs[type]);
        kv_pool_destroy(b->pools[type]);
    }
}

/* n rows of one sequence; logits of the last n_logits. */
static void forward(bench *b, seq_state *s, const int32_t *ids, int32_t n, bool exact, int32_t n_logits)
{
    position at[CHUNK];
    int32_t rows[CHUNK], len = seq_state_len(s);
    err_detail d = {0};
    for (int32_t i = 0; i < n; i++) {
        at[i] = (position){len + i, len + i, len + i};
        rows[i] = n - n_logits + i;
    }
    const batch_run run = {.seq = s, .n_rows = n, .exact_rows = exact};
    const batch all = {.n_rows = n,
                       .tokens = ids,
                       .positions = at,
                       .runs = &run,
                       .n_runs = 1,
                       .logit_rows = rows,
                       .n_logit_rows = n_logits};
    must(decoder_forward(b->m, b->c, &all, b->sc, &d), &d);
}

/* ---- speed ---- */

/* Pretends that depth tokens have been computed. */
static void fill(bench *b, seq_state *s, int32_t depth)
{
    const size_t n_kv = (size_t)b->cfg->full.n_kv_heads, hd = (size_t)b->cfg->full.head_dim,
                 width = n_kv * hd;
    float *x = malloc(SEQ_PAGE_TOKENS * width * sizeof *x);
    uint32_t state = 1;
    err_detail d = {0};
    seq_state_reset(s);
    for (size_t i = 0; x && i < SEQ_PAGE_TOKENS * width; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)state * 0x1p-31f;
    }
    if (depth > 0) {
        must(seq_reserve(s, 0, depth, &d), &d);
    }
    for (size_t layer = 0; x && layer < s->shape.n_kv_layers; layer++) {
        kv_pages kv = seq_kv(s, layer);
        for (int32_t at = 0; at < depth; at += SEQ_PAGE_TOKENS) {
            int32_t n = depth - at < SEQ_PAGE_TOKENS ? depth - at : SEQ_PAGE_TOKENS;
            nn_kv_store(b->c, &kv, x, x, (size_t)at, (size_t)n, n_kv, hd, width, width);
        }
    }
    s->len = depth;
    free(x);
}

static double timed(bench *b, seq_state *s, int32_t n, bool exact)
{
    static int32_t ids[CHUNK];
    for (int32_t i = 0; i < n; i++) {
        ids[i] = TOKEN + i % 64;
    }
    int64_t start = clock_ns();
    forward(b, s, ids, n, exact, 1);
    return (double)(clock_ns() - start) / 1e6;
}

static void measure_speed(bench *b)
{
    static double step[DEPTHS_MAX][KV_TYPES][ROUNDS_MAX], chunk[DEPTHS_MAX][KV_TYPES][ROUNDS_MAX],
        ratio[DEPTHS_MAX][KV_TYPES][ROUNDS_MAX];
    const settings *set = &b->set;
    const size_t n_layers = (size_t)b->cfg->n_attention_layers, n_kv = (size_t)b->cfg->full.n_kv_heads;
    const int n_chunks = set->rounds < 3 ? set->rounds : 3;
    for (int r = -1; r < set->rounds; r++) { /* round -1 warms up */
        for (size_t i = 0; i < set->n_depths; i++) {
            open_sequences(b, set->depths[i] + SPARE);
            for (kv_type type = KV_F32; type < KV_TYPES; type++) {
                fill(b, b->seqs[type], set->depths[i]);
                timed(b, b->seqs[type], 1, true);
            }
            for (kv_type type = KV_F32; type < KV_TYPES; type++) {
                double ms = timed(b, b->seqs[type], 1, true);
                step[i][type][r < 0 ? 0 : r] = ms;
                ratio[i][type][r < 0 ? 0 : r] = ms / step[0][type][r < 0 ? 0 : r];
            }
            for (kv_type type = KV_F32; r >= 0 && r < n_chunks && type < KV_TYPES; type++) {
                chunk[i][type][r] = timed(b, b->seqs[type], CHUNK, false);
            }
            close_sequences(b);
        }
    }
    printf("%-6s %8s %12s %12s %14s %18s\n", "type", "behind", "step, ms", "of depth 0", "keys read, MB",
           "chunk of 512, ms");
    for (size_t i = 0; i < set->n_depths; i++) {
        for (kv_type type = KV_F32; type < KV_TYPES; type++) {
            const size_t token_bytes = kv_page_bytes(type, 1, (size_t)n_kv, (size_t)b->cfg->full.head_dim);
            double mb = 1e-6 * (double)n_layers * (double)set->depths[i] * (double)token_bytes;
            printf("%-6s %8d %12.2f %12.3f %14.1f %18.1f\n", kv_type_name(type), set->depths[i],
                   stats_median(step[i][type], (size_t)set->rounds),
                   stats_median(ratio[i][type], (size_t)set->rounds), mb,
                   stats_median(chunk[i][type], (size_t)n_chunks));
        }
    }
}

/* ---- accuracy ---- */

static int32_t best_of(const float *logits, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* sum p log(p / q) over the vocabulary. */
static double divergence(const float *p, const float *q, int32_t n)
{
    double top_p = (double)p[best_of(p, n)], top_q = (double)q[best_of(q, n)], sum_p = 0, sum_q = 0, kl = 0;
    for (int32_t i = 0; i < n; i++) {
        sum_p += exp((double)p[i] - top_p);
        sum_q += exp((double)q[i] - top_q);
    }
    for (int32_t i = 0; i < n; i++) {
        double log_p = (double)p[i] - top_p - log(sum_p), log_q = (double)q[i] - top_q - log(sum_q);
        kl += exp(log_p) * (log_p - log_q);
    }
    return kl;
}

/* The questions of a file with the model's own answers, as one conversation; returns the tokens. */
static int32_t converse(bench *b, int32_t *ids)
{
    bytes file;
    err_detail d = {0};
    int32_t n = 0;
    bytes_init(&file, 1 << 20);
    must(file_read(&file, b->set.prompts, &d), &d);
    seq_state *s = b->seqs[KV_F32];
    const int32_t end = tokenizer_added_id(model_tokenizer(b->m), "<|im_end|>");
    const char *text = bytes_str(&file);
    while (text && *text && n < IDS_MAX - 256) {
        size_t len = strcspn(text, "\n");
        char turn[512];
        token_ids asked;
        token_ids_init(&asked);
        int size = snprintf(turn, sizeof turn, "<|im_start|>user\n%.*s<|im_end|>\n<|im_start|>assistant\n",
                            (int)(len < 300 ? len : 300), text);
        must(tokenizer_encode(model_tokenizer(b->m), &asked, turn, (size_t)size, TOKENIZER_SPECIALS, &d), &d);
        memcpy(ids + n, asked.ids, asked.len * sizeof *ids);
        forward(b, s, ids + n, (int32_t)asked.len, false, 1);
        n += (int32_t)asked.len;
        token_ids_deinit(&asked);
        for (int i = 0; i < ANSWER_MAX; i++) {
            ids[n] = best_of(decoder_logits(b->sc, 0), b->cfg->vocab_size);
            forward(b, s, ids + n, 1, true, 1);
            if (ids[n++] == end) {
                break;
            }
        }
        text += len + (text[len] == '\n');
    }
    bytes_deinit(&file);
    return n;
}

/* input_ids of a reference case. */
static int32_t read_ids(const bench *b, int32_t *ids)
{
    tensor_file *f = NULL;
    tensor t = {0};
    err_detail d = {0};
    must(tensor_file_open(&f, b->set.ids, &d), &d);
    const bool found = tensor_table_get(tensor_file_tensors(f), "input_ids", &t);
    int32_t n = found ? (int32_t)(t.bytes / sizeof(int64_t)) : 0;
    n = n < IDS_MAX ? n : IDS_MAX;
    for (int32_t i = 0; i < n; i++) {
        int64_t v = 0;
        memcpy(&v, (const char *)t.data + (size_t)i * sizeof v, sizeof v);
        ids[i] = (int32_t)v;
    }
    tensor_file_close(f);
    return n;
}

static void measure_accuracy(bench *b)
{
    static int32_t ids[IDS_MAX + ANSWER_MAX];
    enum { STEP = 8 }; /* few rows, exactly: the way of answers, which reads packed rows as they lie */
    const int32_t V = b->cfg->vocab_size;
    double kl[KV_TYPES] = {0}, worst[KV_TYPES] = {0};
    int32_t same[KV_TYPES] = {0};
    float *exact = malloc((size_t)STEP * (size_t)V * sizeof *exact);
    open_sequences(b, IDS_MAX + ANSWER_MAX);
    const int32_t n = b->set.prompts ? converse(b, ids) : read_ids(b, ids);
    seq_state_reset(b->seqs[KV_F32]);
    for (int32_t at = 0; exact && at < n; at += STEP) {
        const int32_t m = n - at < STEP ? n - at : STEP;
        for (kv_type type = KV_F32; type < KV_TYPES; type++) {
            forward(b, b->seqs[type], ids + at, m, true, m);
            for (int32_t i = 0; i < m; i++) {
                const float *logits = decoder_logits(b->sc, i), *want = exact + (size_t)i * (size_t)V;
                if (type == KV_F32) {
                    memcpy(exact + (size_t)i * (size_t)V, logits, (size_t)V * sizeof *exact);
                }
                double now = divergence(want, logits, V);
                kl[type] += now;
                worst[type] = now > worst[type] ? now : worst[type];
                same[type] += best_of(want, V) == best_of(logits, V);
            }
        }
    }
    printf("%d tokens\n%-6s %12s %12s %22s\n", n, "type", "mean KL", "largest KL", "same likeliest token");
    for (kv_type type = KV_F32; n > 0 && type < KV_TYPES; type++) {
        printf("%-6s %12.2e %12.2e %20.2f %%\n", kv_type_name(type), kl[type] / n, worst[type],
               100.0 * same[type] / n);
    }
    close_sequences(b);
    free(exact);
}

/* ---- the program ---- */

static bool parse_depths(settings *s, const char *text)
{
    char *end = NULL;
    for (s->n_depths = 0; *text && s->n_depths < DEPTHS_MAX; text = *end ? end + 1 : end) {
        long v = strtol(text, &end, 10);
        if (end == text || v < 0 || v > 1 << 20 || (*end && *end != ',')) {
            return false;
        }
        s->depths[s->n_depths++] = (int32_t)v;
    }
    return s->n_depths > 0;
}

static bool parse(settings *s, int argc, char **argv)
{
    *s = (settings){.dir = PARLEY_SOURCE_DIR "/assets/seedling", .rounds = 7};
    bool ok = parse_depths(s, "0,8192,32768");
    for (int i = 1; ok && i < argc; i += 2) {
        const char *flag = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        ok = *value != 0;
        if (strcmp(flag, "-m") == 0) {
            s->dir = value;
        } else if (strcmp(flag, "-t") == 0) {
            s->n_threads = strtoul(value, NULL, 10);
        } else if (strcmp(flag, "-r") == 0) {
            long r = strtol(value, NULL, 10);
            ok = r > 0 && r <= ROUNDS_MAX;
            s->rounds = (int)r;
        } else if (strcmp(flag, "--depths") == 0) {
            ok = parse_depths(s, value);
        } else if (strcmp(flag, "--prompts") == 0) {
            s->prompts = value;
        } else if (strcmp(flag, "--ids") == 0) {
            s->ids = value;
        } else {
            ok = false;
        }
    }
    return ok;
}

int main(int argc, char **argv)
{
    bench b = {0};
    err_detail d = {0};
    if (!parse(&b.set, argc, argv)) {
        fprintf(stderr, "usage: bench_cache_type [-m DIR] [-t THREADS] [-r ROUNDS] [--depths 0,8192,32768] "
                        "[--prompts FILE | --ids FILE]\n");
        return 2;
    }
    const bool accuracy = b.set.prompts || b.set.ids;
    const compute_options co = {.n_threads = b.set.n_threads, .cpu_mask = ~0u, .fast = !accuracy};
    must(compute_create(&b.c, &co, &d), &d);
    must(model_open(&b.m, b.set.dir, &(model_open_options){.weights_only = !b.set.prompts}, &d), &d);
    b.cfg = model_get_config(b.m);
    must(decoder_scratch_create(&b.sc, b.m, b.c, CHUNK, accuracy ? CHUNK : 1, &d), &d);
    printf("%s, %s\n", b.set.dir, compute_describe(b.c));
    if (accuracy) {
        measure_accuracy(&b);
    } else {
        measure_speed(&b);
    }
    decoder_scratch_destroy(b.sc);
    model_close(b.m);
    compute_destroy(b.c);
    return 0;
}
