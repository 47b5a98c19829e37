#include "model/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
    int32_t id;
    float value; /* logit over temperature, later probability */
} candidate;

struct sampler {
    sampler_params params;
    sampler_bias *biases;
    int32_t vocab_size, n_valid;
    int32_t *output_counts;            /* [vocab_size] times in the output */
    uint8_t *seen;                     /* [vocab_size] in prompt or output */
    candidate *candidates;             /* [vocab_size] scratch */
    uint64_t n_output;                 /* tokens accepted: the place of the next one */
    grammar_cursor *cursor;            /* not owned; NULL: free */
    int32_t states[SAMPLER_LOOKAHEAD]; /* of the cursor behind the last draw for each place ahead */
};

/* splitmix64's finaliser: every input bit reaches every output bit. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Gumbel noise of one id at one place: -log(-log(u)), u uniform in (0, 1), a function of its
 * arguments alone. */
static double gumbel(uint64_t place_key, int32_t id)
{
    uint64_t bits = mix(place_key + ((uint64_t)(uint32_t)id + 1) * 0x9e3779b97f4a7c15u);
    double u = ((double)(bits >> 12) + 0.5) * 0x1p-52;
    return -log(-log(u));
}

err_code sampler_create(sampler **out, const sampler_params *p, int32_t vocab_size, int32_t n_valid,
                        err_detail *detail)
{
    *out = NULL;
    if (vocab_size < 1 || n_valid < 1 || n_valid > vocab_size) {
        return err_set(detail, ERR_INVALID, "a sampler needs 1 <= n_valid <= vocab_size");
    }
    if (!(p->temperature >= 0) || p->top_k < 0 || !(p->top_p >= 0) || !(p->min_p >= 0 && p->min_p <= 1) ||
        !(p->repetition_penalty > 0) || !isfinite(p->presence_penalty) || !isfinite(p->frequency_penalty)) {
        return err_set(detail, ERR_INVALID, "a sampling parameter is out of range");
    }
    sampler *s = calloc(1, sizeof *s);
    if (s) {
        s->params = *p;
        s->params.biases = NULL;
        s->vocab_size = vocab_size;
        s->n_valid = n_valid;
        s->biases = calloc(p->n_biases + 1, sizeof *s->biases);
        s->output_counts = calloc((size_t)vocab_size, sizeof *s->output_counts);
        s->seen = calloc((size_t)vocab_size, sizeof *s->seen);
        s->candidates = calloc((size_t)vocab_size, sizeof *s->candidates);
    }
    if (!s || !s->biases || !s->output_counts || !s->seen || !s->candidates) {
        sampler_destroy(s);
        return err_set(detail, ERR_NOMEM, "no memory for a sampler");
    }
    if (p->n_biases) {
        memcpy(s->biases, p->biases, p->n_biases * sizeof *s->biases);
    }
    *out = s;
    return ERR_OK;
}

void sampler_destroy(sampler *s)
{
    if (!s) {
        return;
    }
    free(s->biases);
    free(s->output_counts);
    free(s->seen);
    free(s->candidates);
    free(s);
}

void sampler_constrain(sampler *s, grammar_cursor *cursor)
{
    s->cursor = cursor;
}

void sampler_prompt(sampler *s, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= 0 && ids[i] < s->vocab_size) {
            s->seen[ids[i]] = 1;
        }
    }
}

void sampler_accept(sampler *s, int32_t id)
{
    s->n_output++;
    if (s->cursor) {
        (void)grammar_cursor_accept(s->cursor, id);
    }
    if (id >= 0 && id < s->vocab_size) {
        s->seen[id] = 1;
        s->output_counts[id]++;
    }
}

/* Biases and penalties, in place. */
static void adjust(const sampler *s, float *logits)
{
    const sampler_params *p = &s->params;
    for (size_t i = 0; i < p->n_biases; i++) {
        if (s->biases[i].id >= 0 && s->biases[i].id < s->vocab_size) {
            logits[s->biases[i].id] += s->biases[i].bias;
        }
    }
    bool repetition = p->repetition_penalty != 1.0f;
    bool counted = p->presence_penalty != 0.0f || p->frequency_penalty != 0.0f;
    if (!repetition && !counted) {
        return;
    }
    for (int32_t id = 0; id < s->n_valid; id++) {
        if (repetition && s->seen[id]) {
            logits[id] =
                logits[id] > 0 ? logits[id] / p->repetition_penalty : logits[id] * p->repetition_penalty;
        }
        if (counted && s->output_counts[id] > 0) {
            logits[id] -= p->presence_penalty + p->frequency_penalty * (float)s->output_counts[id];
        }
    }
}

/* Logits looked at together; up to TOP_K_FEW wanted ones a sorted list is faster than a heap. */
enum { BLOCK = 64, TOP_K_FEW = 128 };

/* Whether any of logits[0..n) is above the bar: compares many at a time. */
static bool any_above(const float *logits, int32_t n, float bar)
{
    int any = 0;
    for (int32_t i = 0; i < n; i++) {
        any |= logits[i] > bar;
    }
    return any != 0;
}

/* The lowest id among those with the largest logit; NaN never wins. Most blocks hold nothing better
 * than what was found before, so most logits are only compared. */
static int32_t argmax(const float *logits, int32_t n)
{
    int32_t best = 0;
    while (best < n && isnan(logits[best])) {
        best++;
    }
    if (best == n) {
        return 0;
    }
    for (int32_t from = best; from < n; from += BLOCK) {
        int32_t to = n - from < BLOCK ? n : from + BLOCK;
        if (!any_above(logits + from, to - from, logits[best])) {
            continue;
        }
        for (int32_t id = from; id < to; id++) {
            best = logits[id] > logits[best] ? id : best;
        }
    }
    return best;
}

/* a comes before b: larger value, then lower id. */
static bool before(const candidate *a, const candidate *b)
{
    return a->value > b->value || (a->value == b->value && a->id < b->id);
}

/* Restores the heap order (the first is the most likely) below position i of n. */
static void sift_down(candidate *heap, size_t n, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1, first = i;
        if (child < n && before(&heap[child], &heap[first])) {
            first = child;
        }
        if (child + 1 < n && before(&heap[child + 1], &heap[first])) {
            first = child + 1;
        }
        if (first == i) {
            return;
        }
        candidate swapped = heap[i];
        heap[i] = heap[first];
        heap[first] = swapped;
        i = first;
    }
}

/* Moves the most likely of heap[0..n) to its end, heap[n-1], which leaves a heap of n-1. */
static candidate pop(candidate *heap, size_t n)
{
    candidate top = heap[0];
    heap[0] = heap[n - 1];
    heap[n - 1] = top;
    sift_down(heap, n - 1, 0);
    return top;
}

/* Fills the candidates with probabilities (not normalised: the most likely has 1) of the valid ids;
 * leaves out those that are zero. Returns how many there are. */
static size_t collect(sampler *s, const float *logits)
{
    int32_t best = argmax(logits, s->n_valid);
    size_t n = 0;
    for (int32_t id = 0; id < s->n_valid; id++) {
        float weight = expf((logits[id] - logits[best]) / s->params.temperature);
        if (weight > 0.0f) { /* false also for NaN */
            s->candidates[n++] = (candidate){id, weight};
        }
    }
    return n;
}

/* The same for the k most likely ids alone, most likely first. */
static size_t collect_top(sampler *s, const float *logits, size_t k)
{
    candidate *list = s->candidates;
    size_t n = 0;
    for (int32_t from = 0; from < s->n_valid; from += BLOCK) {
        int32_t to = s->n_valid - from < BLOCK ? s->n_valid : from + BLOCK;
        if (n == k && !any_above(logits + from, to - from, list[k - 1].value)) {
            continue;
        }
        for (int32_t id = from; id < to; id++) {
            if (!(logits[id] > -INFINITY) || (n == k && !(logits[id] > list[k - 1].value))) {
                continue;
            }
            size_t at = n < k ? n++ : k - 1;
            for (; at > 0 && logits[id] > list[at - 1].value; at--) {
                list[at] = list[at - 1];
            }
            list[at] = (candidate){id, logits[id]};
        }
    }
    const float best = n ? list[0].value : 0.0f;
    size_t n_likely = 0;
    while (n_likely < n &&
           (list[n_likely].value = expf((list[n_likely].value - best) / s->params.temperature)) > 0.0f) {
        n_likely++;
    }
    return n_likely;
}

/* Draws from list[0..n) in proportion to value. */
static int32_t draw(const sampler *s, const candidate *list, size_t n, int32_t ahead)
{
    const uint64_t place_key = mix(s->params.seed + mix(s->n_output + (uint64_t)ahead + 1));
    size_t best = 0;
    double best_score = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        double score = log((double)list[i].value) + gumbel(place_key, list[i].id);
        if (score > best_score) {
            best_score = score;
            best = i;
        }
    }
    return list[best].id;
}

/* Keeps the top_k most likely, of those the fewest that hold top_p of the mass, of those the ones
 * not below min_p times the best. The kept ones end up at the end of the array; returns how
 * many. */
static size_t filter(sampler *s, size_t n)
{
    const sampler_params *p = &s->params;
    candidate *list = s->candidates;
    size_t most = p->top_k > 0 && (size_t)p->top_k < n ? (size_t)p->top_k : n;
    double mass = 0, kept_mass = 0;
    for (size_t i = n / 2; i-- > 0;) {
        sift_down(list, n, i);
    }
    if (most == n) {
        for (size_t i = 0; i < n; i++) {
            mass += list[i].value;
        }
    } else {
        for (size_t i = 0; i < most; i++) {
            mass += pop(list, n - i).value;
        }
        /* the most likely lie at the end, best last: walk them again below */
    }
    size_t kept = 0;
    while (kept < most && (kept == 0 || kept_mass < p->top_p * mass)) {
        candidate c = most == n ? pop(list, n - kept) : list[n - 1 - kept];
        if (kept > 0 && c.value < p->min_p) {
            break;
        }
        kept_mass += c.value;
        kept++;
    }
    return kept;
}

/* Leaves only the allowed tokens a chance. Returns the lowest of them, -1 if there is none. */
static int32_t forbid(const sampler *s, float *logits, const uint64_t *mask)
{
    int32_t lowest = -1;
    for (int32_t from = 0; from < s->n_valid; from += BLOCK) {
        const uint64_t allowed = mask[from / BLOCK];
        const int32_t to = s->n_valid - from < BLOCK ? s->n_valid : from + BLOCK;
        if (lowest < 0 && allowed) {
            lowest = from + __builtin_ctzll(allowed);
        }
        for (int32_t id = from; id < to && !allowed; id++) {
            logits[id] = -INFINITY;
        }
        for (uint64_t others = allowed ? ~allowed : 0; others; others &= others - 1) {
            const int32_t id = from + __builtin_ctzll(others);
            if (id < to) {
                logits[id] = -INFINITY;
            }
        }
    }
    return lowest;
}

static int32_t pick(sampler *s, const float *logits, int32_t ahead)
{
    const sampler_params *p = &s->params;
    if (p->temperature == 0.0f || p->top_k == 1) {
        return argmax(logits, s->n_valid);
    }
    const bool few = p->top_k > 0 && p->top_k <= TOP_K_FEW;
    size_t n = few ? collect_top(s, logits, (size_t)p->top_k) : collect(s, logits);
    if (n == 0) {
        return argmax(logits, s->n_valid); /* no finite logit: nothing better can be said */
    }
    if (p->top_k == 0 && p->top_p >= 1.0f && p->min_p == 0.0f) {
        return draw(s, s->candidates, n, ahead);
    }
    size_t kept = filter(s, n);
    return draw(s, s->candidates + (n - kept), kept, ahead);
}

int32_t sampler_pick(sampler *s, float *logits, int32_t ahead)
{
    adjust(s, logits);
    if (!s->cursor || ahead >= SAMPLER_LOOKAHEAD) {
        return pick(s, logits, ahead);
    }
    const int32_t state = ahead == 0 ? grammar_cursor_state(s->cursor) : s->states[ahead - 1];
    const uint64_t *mask = grammar_cursor_mask(s->cursor, state);
    const int32_t lowest = mask ? forbid(s, logits, mask) : -1;
    int32_t id = pick(s, logits, ahead);
    if (lowest >= 0 && !token_mask_has(mask, id)) {
        id = lowest; /* no allowed token has a finite logit */
    }
    s->states[ahead] = grammar_cursor_next(s->cursor, state, id);
    return id;
}

float sampler_logprobs(const float *logits, int32_t vocab_size, int32_t id, int32_t *top_ids,
                       float *top_logprobs, size_t n)
{
    float best = logits[argmax(logits, vocab_size)];
    double sum = 0;
    size_t found = 0;
    for (int32_t i = 0; i < vocab_size; i++) {
        sum += exp((double)logits[i] - best);
        /* insertion into the short sorted list of the n best */
        if (found < n || (n > 0 && logits[i] > top_logprobs[n - 1])) {
            size_t at = found < n ? found++ : n - 1;
            while (at > 0 && logits[i] > top_logprobs[at - 1]) {
                top_ids[at] = top_ids[at - 1];
                top_logprobs[at] = top_logprobs[at - 1];
                at--;
            }
            top_ids[at] = i;
            top_logprobs[at] = logits[i];
        }
    }
    float log_sum = best + (float)log(sum);
    for (size_t i = 0; i < found; i++) {
        top_logprobs[i] -= log_sum;
    }
    return logits[id] - log_sum;
}
