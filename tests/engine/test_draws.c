/* Sampled tokens through the whole engine, with drafts, against the distribution that the model and
 * the parameters say. Each draw's place in its own distribution (likeliest first, a random place
 * inside its share) is uniform if the engine draws right: a chi-square test over 20 bins. The
 * distributions are computed here, from the model's own logits, by the definitions alone;
 * distributions of other parameters must not fit. Without drafts the same tokens come. Seeds are
 * fixed.
 *
 *     build/test_draws [DRAWS]        // of each setting, [768]
 */
#include <math.h>

#include "model/decoder.h"
#include "model/model.h"
#include "tests/engine/answers.h"
#include "text/tokenizer/tokenizer.h"

enum { LENGTH = 48, AT_ONCE = 8, N_CTX = 256, BINS = 20, WRONG_MAX = 4, VOCAB_MAX = 1 << 16 };

/* Words that Seedling was never asked: it is at a loss, so much is possible. */
static const char PROMPT[] = "Perhaps";

typedef struct setting {
    const char *name;
    float temperature, top_p, penalty;
    int32_t top_k;
} setting;

/* What is drawn with, and settings that the test must tell from it. */
typedef struct trial {
    setting right;
    setting wrong[WRONG_MAX];
    int n_wrong;
} trial;

/* ---- the engine's side ---- */

static gen_request *request(engine *e, const setting *set, uint64_t seed, bool no_draft)
{
    gen_params p;
    gen_params_init(&p);
    p.temperature = set->temperature;
    p.top_p = set->top_p;
    p.top_k = set->top_k;
    p.min_p = 0.0f;
    p.repetition_penalty = set->penalty;
    p.presence_penalty = p.frequency_penalty = 0.0f;
    p.seed = seed;
    p.has_seed = true;
    p.max_tokens = LENGTH;
    p.ignore_eos = true;
    p.no_draft = no_draft;
    gen_request *r = NULL;
    err_detail d = {0};
    CHECK_OK(engine_prepare_text(e, &r, PROMPT, strlen(PROMPT), true, 0, &p, &d), d);
    return r;
}

/* Answers to seeds first .. first+AT_ONCE-1. */
static void draw_answers(engine *e, const setting *set, size_t first, bool no_draft, answer answers[AT_ONCE])
{
    static uint64_t next_id = 1;
    const uint64_t id = next_id;
    memset(answers, 0, AT_ONCE * sizeof *answers);
    for (size_t i = 0; i < AT_ONCE; i++) {
        answers_submit(e, request(e, set, first + i, no_draft), next_id++);
    }
    answers_collect(answers, id, AT_ONCE);
    for (size_t i = 0; i < AT_ONCE; i++) {
        CHECK_INT(answers[i].n, LENGTH);
    }
}

/* ---- the definition ---- */

typedef struct truth {
    compute *c;
    model *m;
    kv_pool *pool;
    seq_state *seq;
    decoder_scratch *scratch;
    int32_t prompt[N_CTX], n_prompt, n_vocab;
} truth;

static void open_truth(truth *t, const char *dir)
{
    err_detail d = {0};
    token_ids ids;
    token_ids_init(&ids);
    CHECK_OK(compute_create(&t->c, &(compute_options){.n_threads = 1, .cpu_mask = test_cpu_mask()}, &d), d);
    CHECK_OK(model_open(&t->m, dir, &(model_open_options){0}, &d), d);
    const model_config *cfg = model_get_config(t->m);
    CHECK_OK(kv_pool_create(&t->pool, cfg, KV_F32, false, kv_pool_blocks_for(N_CTX),
                            kv_pool_blocks_for(N_CTX), t->c, &d),
             d);
    CHECK_OK(seq_state_create(&t->seq, cfg, t->pool, N_CTX, t->c, &d), d);
    CHECK_OK(decoder_scratch_create(&t->scratch, t->m, t->c, N_CTX, LENGTH, &d), d);
    CHECK_OK(tokenizer_encode(model_tokenizer(t->m), &ids, PROMPT, strlen(PROMPT), TOKENIZER_SPECIALS, &d),
             d);
    t->n_prompt = (int32_t)ids.len;
    memcpy(t->prompt, ids.ids, ids.len * sizeof *ids.ids);
    token_ids_deinit(&ids);
    const int32_t n_tokens = tokenizer_n_tokens(model_tokenizer(t->m));
    t->n_vocab = n_tokens < cfg->vocab_size ? n_tokens : cfg->vocab_size;
}

static void close_truth(truth *t)
{
    decoder_scratch_destroy(t->scratch);
    seq_state_destroy(t->seq);
    kv_pool_destroy(t->pool);
    model_close(t->m);
    compute_destroy(t->c);
}

typedef struct chance {
    float logit;
    int32_t id;
} chance;

/* Tokens, likeliest first; p holds the shares of the first n. */
typedef struct distribution {
    chance order[VOCAB_MAX];
    double p[VOCAB_MAX];
    size_t n;
} distribution;

static int by_logit(const void *a, const void *b)
{
    const chance *x = a, *y = b;
    return x->logit != y->logit ? (x->logit < y->logit ? 1 : -1) : (x->id > y->id) - (x->id < y->id);
}

/* Computes the logits of every place of an answer. */
static void run_answer(truth *t, const answer *a)
{
    int32_t tokens[N_CTX], rows[LENGTH];
    position at[N_CTX];
    const int32_t len = t->n_prompt + LENGTH - 1;
    err_detail d = {0};
    memcpy(tokens, t->prompt, (size_t)t->n_prompt * sizeof *tokens);
    memcpy(tokens + t->n_prompt, a->ids, (LENGTH - 1) * sizeof *tokens);
    for (int32_t i = 0; i < len; i++) {
        at[i] = (position){i, i, i};
    }
    for (int32_t i = 0; i < LENGTH; i++) {
        rows[i] = t->n_prompt - 1 + i;
    }
    seq_state_reset(t->seq);
    const batch_run run = {.seq = t->seq, .n_rows = len};
    const batch b = {.n_rows = len,
                     .tokens = tokens,
                     .positions = at,
                     .runs = &run,
                     .n_runs = 1,
                     .logit_rows = rows,
                     .n_logit_rows = LENGTH};
    CHECK_OK(decoder_forward(t->m, t->c, &b, t->scratch, &d), d);
}

/* Sorts the tokens of one place of an answer, penalised. */
static void order_tokens(distribution *dist, truth *t, float penalty, const answer *a, int place)
{
    static bool seen[VOCAB_MAX];
    const float *logits = decoder_logits(t->scratch, place);
    memset(seen, 0, sizeof seen);
    for (int32_t i = 0; i < t->n_prompt + place; i++) {
        seen[i < t->n_prompt ? t->prompt[i] : a->ids[i - t->n_prompt]] = true;
    }
    for (int32_t id = 0; id < t->n_vocab; id++) {
        const float l = logits[id];
        dist->order[id] = (chance){!seen[id] ? l : l > 0 ? l / penalty : l * penalty, id};
    }
    qsort(dist->order, (size_t)t->n_vocab, sizeof dist->order[0], by_logit);
}

/* Shares the whole among the tokens that a setting keeps. */
static void share(distribution *dist, const truth *t, const setting *set)
{
    const size_t most = set->top_k > 0 ? (size_t)set->top_k : (size_t)t->n_vocab;
    double mass = 0, kept = 0;
    for (size_t i = 0; i < most; i++) {
        dist->p[i] =
            exp(((double)dist->order[i].logit - (double)dist->order[0].logit) / (double)set->temperature);
        mass += dist->p[i];
    }
    for (dist->n = 0; dist->n < most && kept < (double)set->top_p * mass; dist->n++) {
        kept += dist->p[dist->n];
    }
    for (size_t i = 0; i < dist->n; i++) {
        dist->p[i] /= kept;
    }
}

/* ---- chi-square ---- */

typedef struct histogram {
    double bins[BINS];
    size_t n, n_impossible; /* draws that have no chance */
} histogram;

static double random_fraction(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53;
}

/* Counts where in [0, 1) the drawn id stands. */
static void count(histogram *h, const distribution *dist, int32_t id)
{
    double below = 0;
    size_t i = 0;
    while (i < dist->n && dist->order[i].id != id) {
        below += dist->p[i++];
    }
    const double u = i < dist->n ? below + random_fraction() * dist->p[i] : 1.0;
    const int bin = (int)(u * BINS);
    h->n_impossible += i == dist->n;
    h->bins[bin < BINS ? bin : BINS - 1]++;
    h->n++;
}

static double chi_square(const histogram *h)
{
    double sum = 0;
    for (int i = 0; i < BINS; i++) {
        const double expected = (double)h->n / BINS;
        sum += (h->bins[i] - expected) * (h->bins[i] - expected) / expected;
    }
    return sum;
}

/* Chance of a sum as large as this (Wilson and Hilferty). */
static double p_value(double sum)
{
    const double k = BINS - 1, v = 2.0 / (9.0 * k);
    return 0.5 * erfc((cbrt(sum / k) - (1.0 - v)) / sqrt(2.0 * v));
}

/* Counts the draws of one answer against the right distributions and the wrong ones. */
static void count_answer(truth *t, const trial *tr, const answer *a, histogram *right, histogram *wrong)
{
    static distribution dist;
    run_answer(t, a);
    for (int place = 0; place < LENGTH; place++) {
        order_tokens(&dist, t, tr->right.penalty, a, place);
        share(&dist, t, &tr->right);
        count(right, &dist, a->ids[place]);
        for (int w = 0; w < tr->n_wrong; w++) {
            if (tr->wrong[w].penalty != tr->right.penalty) {
                order_tokens(&dist, t, tr->wrong[w].penalty, a, place);
            }
            share(&dist, t, &tr->wrong[w]);
            count(&wrong[w], &dist, a->ids[place]);
        }
    }
}

/* Says how well the draws of a setting fit and returns whether they do: of fixed seeds, the same
 * draws every time. */
static bool fits(const histogram *h, const char *name)
{
    const double sum = chi_square(h), p = p_value(sum);
    printf("%s: %zu draws, chi-square %.1f with %d degrees of freedom, p = %.2g; %zu draws of no chance\n",
           name, h->n, sum, BINS - 1, p, h->n_impossible);
    return p > 1e-5 && h->n_impossible <= 1 + h->n / 1000; /* where rounding decides what top-p keeps */
}

static void run_trial(engine *e, truth *t, const trial *tr, size_t n_draws)
{
    answer answers[AT_ONCE], plain[AT_ONCE];
    histogram right = {0}, wrong[WRONG_MAX] = {0};
    for (size_t seed = 1; right.n < n_draws; seed += AT_ONCE) {
        const bool compare = seed / AT_ONCE % 4 == 0;
        draw_answers(e, &tr->right, seed, false, answers);
        if (compare) {
            draw_answers(e, &tr->right, seed, true, plain);
        }
        for (size_t i = 0; i < AT_ONCE; i++) {
            CHECK(!compare || memcmp(answers[i].ids, plain[i].ids, LENGTH * sizeof plain[i].ids[0]) == 0);
            CHECK(!compare || plain[i].timings.draft_n == 0);
            count_answer(t, tr, &answers[i], &right, wrong);
        }
    }
    CHECK(fits(&right, tr->right.name));
    for (int w = 0; w < tr->n_wrong; w++) {
        CHECK(!fits(&wrong[w], tr->wrong[w].name));
    }
}

int main(int argc, char **argv)
{
    static const trial trials[] = {
        {{"temperature 1", 1.0f, 1.0f, 1.0f, 0},
         {{"temperature 1.5", 1.5f, 1.0f, 1.0f, 0}, {"top-p 0.9", 1.0f, 0.9f, 1.0f, 0}},
         2},
        {{"temperature 1.3, top-p 0.9, top-k 6, repetition penalty 1.1", 1.3f, 0.9f, 1.1f, 6},
         {{"temperature 1", 1.0f, 0.9f, 1.1f, 6},
          {"top-p 0.8", 1.3f, 0.8f, 1.1f, 6},
          {"top-k 0", 1.3f, 0.9f, 1.1f, 0},
          {"repetition penalty 1.5", 1.3f, 0.9f, 1.5f, 6}}, /* the last: it orders the tokens anew */
         4},
    };
    const size_t n_draws = argc > 1 ? strtoul(argv[1], NULL, 10) : 1536;
    static char dir[4096];
    snprintf(dir, sizeof dir, "%s/assets/seedling", PARLEY_SOURCE_DIR);
    truth t = {0};
    answers_begin();
    open_truth(&t, dir);
    engine *e = answers_open(&(engine_options){.model_dir = dir,
                                               .n_ctx = N_CTX,
                                               .n_parallel = AT_ONCE,
                                               .n_queue = AT_ONCE,
                                               .n_threads = 1,
                                               .exact = true});
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        run_trial(e, &t, &trials[i], n_draws);
    }
    engine_status st;
    engine_get_status(e, &st);
    printf("%llu of %llu drafts were right\n", (unsigned long long)st.n_draft_accepted,
           (unsigned long long)st.n_drafted);
    CHECK(st.n_drafted > 0); /* how many depends on what they cost here */
    engine_close(e);
    close_truth(&t);
    answers_end();
    CHECK_DONE();
}
