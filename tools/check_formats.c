/* check_formats: what a format of weights or an arithmetic costs, on recorded answers.
 *
 *     build/check_formats MODEL_DIR SAMPLES_JSON
 *
 * SAMPLES_JSON as for check_greedy (tests/data/seedling_greedy.json); samples with media or without
 * a prompt are left out. Prompt and recorded answer are computed with each format, and the
 * distribution at every place of the answer is compared with that of the stored weights in exact
 * arithmetic: once with the answer token by token (as it is said), once as rows of a prompt.
 * Printed are the mean KL divergence in nats, the share of places where the likeliest token is the
 * same, and the bytes of the matrices.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "compute/nn.h"
#include "model/decoder.h"
#include "model/model.h"
#include "model/model_parts.h"

#define CHECK_TOOL_NAME "check_formats"
#include "tools/check_tool.h"

enum { MAX_ROWS = 2048, MAX_ANSWER = 256, MAX_SAMPLES = 2000 };

typedef struct sample {
    int32_t *ids; /* prompt and answer */
    int32_t n_prompt, n;
} sample;

/* One way to compute. */
typedef struct way {
    const char *name;
    int layer_bits, head_bits;
    bool fast;
} way;

static const way WAYS[] = {
    {"stored, exact", 0, 0, false}, {"stored, fast", 0, 0, true}, {"q8", 8, 8, true},
    {"q4, head q8", 4, 8, true},    {"q4", 4, 4, true},
};

typedef struct machine {
    compute *c;
    model *m;
    kv_pool *pool;
    decoder_scratch *sc;
    size_t vocab;
} machine;

static void open_machine(machine *x, const char *dir, const way *w)
{
    err_detail d = {0};
    require(compute_create(&x->c, &(compute_options){.cpu_mask = ~0u, .fast = w->fast}, &d), &d);
    const model_open_options mo = {.quantize = {w->layer_bits, w->head_bits, x->c, {0}}};
    require(model_open(&x->m, dir, &mo, &d), &d);
    const model_config *cfg = model_get_config(x->m);
    x->vocab = (size_t)cfg->vocab_size;
    require(kv_pool_create(&x->pool, cfg, KV_F32, false, kv_pool_blocks_for(MAX_ROWS),
                           kv_pool_blocks_for(MAX_ROWS), x->c, &d),
            &d);
    require(decoder_scratch_create(&x->sc, x->m, x->c, MAX_ROWS, MAX_ANSWER, &d), &d);
}

static void close_machine(machine *x)
{
    decoder_scratch_destroy(x->sc);
    kv_pool_destroy(x->pool);
    model_close(x->m);
    compute_destroy(x->c);
}

static double matrix_mib(const machine *x)
{
    const weights *w = model_get_parts(x->m)->weights;
    double sum = 0;
    for (size_t i = 0; i < w->n_matrices; i++) {
        sum += (double)w->matrices[i].at->bytes;
    }
    return sum / (1 << 20);
}

/* n rows from the sequence's end on; logits of the last n_logits rows to out. */
static void run_rows(machine *x, seq_state *s, const int32_t *ids, int32_t n, bool exact, float *out,
                     int32_t n_logits)
{
    position at[MAX_ROWS];
    int32_t rows[MAX_ANSWER];
    err_detail d = {0};
    for (int32_t i = 0, len = seq_state_len(s); i < n; i++) {
        at[i] = (position){len + i, len + i, len + i};
    }
    for (int32_t i = 0; i < n_logits; i++) {
        rows[i] = n - n_logits + i;
    }
    const batch_run run = {.seq = s, .n_rows = n, .exact_rows = exact};
    const batch b = {.n_rows = n,
                     .tokens = ids,
                     .positions = at,
                     .runs = &run,
                     .n_runs = 1,
                     .logit_rows = rows,
                     .n_logit_rows = n_logits};
    require(decoder_forward(x->m, x->c, &b, x->sc, &d), &d);
    for (int32_t i = 0; i < n_logits; i++) {
        memcpy(out + (size_t)i * x->vocab, decoder_logits(x->sc, i), x->vocab * sizeof *out);
    }
}

/* The logits that say the answer's tokens: [n - n_prompt, V]. */
static void say(machine *x, const sample *q, bool as_prompt, float *out)
{
    seq_state *s = NULL;
    err_detail d = {0};
    require(seq_state_create(&s, model_get_config(x->m), x->pool, MAX_ROWS, x->c, &d), &d);
    if (as_prompt) {
        run_rows(x, s, q->ids, q->n - 1, false, out, q->n - q->n_prompt);
    } else {
        run_rows(x, s, q->ids, q->n_prompt, false, out, 1);
        for (int32_t i = q->n_prompt; i + 1 < q->n; i++) {
            run_rows(x, s, q->ids + i, 1, true, out + (size_t)(i + 1 - q->n_prompt) * x->vocab, 1);
        }
    }
    seq_state_destroy(s);
}

/* log sum exp */
static double log_total(const float *logits, size_t n)
{
    double top = (double)logits[best_of(logits, n)], sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += exp((double)logits[i] - top);
    }
    return top + log(sum);
}

/* KL(p || q) of two rows of logits. */
static double divergence(const float *p, const float *q, size_t n)
{
    double zp = log_total(p, n), zq = log_total(q, n), sum = 0;
    for (size_t i = 0; i < n; i++) {
        double lp = (double)p[i] - zp;
        sum += exp(lp) * (lp - ((double)q[i] - zq));
    }
    return sum;
}

/* Takes a sample over; false if it cannot be asked. */
static bool read_sample(const model *m, const json *v, sample *out)
{
    const char *prompt = json_str(json_get(v, "prompt"), NULL);
    const json *answer = json_get(v, "greedy_ids");
    token_ids ids = {0};
    err_detail d = {0};
    if (!prompt || json_len(json_get(v, "files")) > 0 || json_len(answer) == 0 ||
        json_len(answer) > MAX_ANSWER) {
        return false;
    }
    require(tokenizer_encode(model_tokenizer(m), &ids, prompt, strlen(prompt), TOKENIZER_SPECIALS, &d), &d);
    *out = (sample){.n_prompt = (int32_t)ids.len, .n = (int32_t)(ids.len + json_len(answer))};
    bool fits = out->n <= MAX_ROWS && ids.len > 0;
    if (fits) {
        int32_t at = out->n_prompt;
        out->ids = must(malloc((size_t)out->n * sizeof *out->ids));
        memcpy(out->ids, ids.ids, ids.len * sizeof *out->ids);
        for (const json *t = json_child(answer); t; t = json_next(t)) {
            out->ids[at++] = (int32_t)json_num(t, 0);
        }
    }
    token_ids_deinit(&ids);
    return fits;
}

/* Compares a way with the reference logits of every sample; as_prompt: see above. */
static void compare(machine *x, const way *w, const sample *samples, size_t n, float *const *expected,
                    bool as_prompt)
{
    float *logits = must(malloc(MAX_ANSWER * x->vocab * sizeof *logits));
    double kl = 0, worst = 0;
    size_t places = 0, same = 0;
    for (size_t i = 0; i < n; i++) {
        say(x, &samples[i], as_prompt, logits);
        for (int32_t k = 0; k < samples[i].n - samples[i].n_prompt; k++, places++) {
            const float *p = expected[i] + (size_t)k * x->vocab, *q = logits + (size_t)k * x->vocab;
            double one = divergence(p, q, x->vocab);
            kl += one;
            worst = one > worst ? one : worst;
            same += best_of(p, x->vocab) == best_of(q, x->vocab);
        }
    }
    printf("%-16s %-12s %10.2e %10.2e %9.2f %% %10.1f\n", w->name, as_prompt ? "prompt" : "answer",
           kl / (double)places, worst, 100.0 * (double)same / (double)places, matrix_mib(x));
    free(logits);
}

int main(int argc, char **argv)
{
    static sample samples[MAX_SAMPLES];
    static float *expected[MAX_SAMPLES];
    err_detail d = {0};
    json_doc *doc = NULL;
    machine x;
    size_t n = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: check_formats MODEL_DIR SAMPLES_JSON\n");
        return 2;
    }
    log_set_level(LOG_WARN);
    require(json_parse_file(&doc, argv[2], LIMIT_CONFIG_BYTES, &d), &d);
    open_machine(&x, argv[1], &WAYS[0]);
    for (const json *v = json_child(json_root(doc)); v && n < MAX_SAMPLES; v = json_next(v)) {
        n += read_sample(x.m, v, &samples[n]);
    }
    for (size_t i = 0; i < n; i++) {
        size_t places = (size_t)(samples[i].n - samples[i].n_prompt);
        expected[i] = must(malloc(places * x.vocab * sizeof *expected[i]));
        say(&x, &samples[i], false, expected[i]);
    }
    close_machine(&x);
    printf("%zu samples\n%-16s %-12s %10s %10s %11s %10s\n", n, "way", "computed as", "mean KL", "worst KL",
           "same best", "MiB");
    for (size_t i = 0; n > 0 && i < ARRAY_LEN(WAYS); i++) {
        open_machine(&x, argv[1], &WAYS[i]);
        compare(&x, &WAYS[i], samples, n, expected, false);
        compare(&x, &WAYS[i], samples, n, expected, true);
        close_machine(&x);
    }
    for (size_t i = 0; i < n; i++) {
        free(samples[i].ids);
        free(expected[i]);
    }
    json_free(doc);
    return n > 0 ? 0 : 1;
}
