#include "engine/draft/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "engine/draft/draft.h"

/* ---- the index ---- */

/* Places of a chain that are compared. */
enum { LOOKUP_PLACES = 16 };

bool lookup_init(lookup *l, int32_t n_max)
{
    uint32_t size = 1024;
    while (size < 2 * (uint32_t)n_max) {
        size *= 2;
    }
    *l = (lookup){.last = calloc(size, sizeof *l->last),
                  .before = calloc((size_t)n_max, sizeof *l->before),
                  .mask = size - 1,
                  .next = -1};
    if (!l->last || !l->before) {
        lookup_deinit(l);
        return false;
    }
    return true;
}

void lookup_deinit(lookup *l)
{
    free(l->last);
    free(l->before);
    *l = (lookup){.next = -1};
}

void lookup_reset(lookup *l)
{
    memset(l->last, 0, ((size_t)l->mask + 1) * sizeof *l->last);
    l->n_seen = 0;
    l->next = -1;
}

static int32_t *chain_of(const lookup *l, uint64_t a, uint64_t b)
{
    const uint64_t mixed = (a * 0x9e3779b97f4a7c15u ^ b) * 0xbf58476d1ce4e5b9u;
    return &l->last[(mixed >> 32) & l->mask];
}

static void enter(lookup *l, const uint64_t *text, int32_t n)
{
    for (int32_t i = l->n_seen; i < n; i++) {
        if (l->next >= 0) {
            l->next = text[l->next] == text[i] ? l->next + 1 : -1;
        }
        if (i > 0) {
            int32_t *last = chain_of(l, text[i - 1], text[i]);
            l->before[i] = *last;
            *last = i + 1;
        }
    }
    l->n_seen = n;
}

/* The text and what is guessed behind it. */
typedef struct whole_text {
    const uint64_t *text;
    const int32_t *more;
    int32_t n, n_more;
} whole_text;

static uint64_t element(const whole_text *t, int32_t i)
{
    return i < t->n ? t->text[i] : (uint64_t)(uint32_t)t->more[i - t->n];
}

/* How many elements up to and with `end` are those of the end of the text. */
static int32_t same_elements(const whole_text *t, int32_t end)
{
    const int32_t last = t->n + t->n_more - 1;
    int32_t len = 0;
    while (len < LOOKUP_LONGEST && len <= end && element(t, end - len) == element(t, last - len)) {
        len++;
    }
    return len;
}

lookup_match lookup_find(lookup *l, const uint64_t *text, int32_t n, const int32_t *more, int32_t n_more)
{
    const whole_text t = {text, more, n, n_more};
    const int32_t last = n + n_more - 1;
    lookup_match best = {0};
    enter(l, text, n); /* l->next < n, as no text shrinks */
    if (last < 1) {
        return best;
    }
    /* the match so far: the chain of a frequent pair may have forgotten it */
    if (l->next > 0) {
        const int32_t end = l->next + n_more - 1;
        best = (lookup_match){end, same_elements(&t, end)};
    }
    int32_t place = *chain_of(l, element(&t, last - 1), element(&t, last)) - 1;
    for (int i = 0; i < LOOKUP_PLACES && place >= 0 && best.len < LOOKUP_LONGEST; i++) {
        if (place < last) {
            const int32_t len = same_elements(&t, place);
            if (len > best.len || (len == best.len && place > best.end)) {
                best = (lookup_match){place, len};
            }
        }
        place = l->before[place] - 1;
    }
    if (best.len < 2) { /* another pair of the same hash */
        return (lookup_match){0};
    }
    if (n_more == 0) {
        l->next = best.end + 1;
    }
    return best;
}

int32_t lookup_copy(const lookup_match *m, const uint64_t *text, int32_t n, int32_t *drafts, int32_t n_drafts,
                    int32_t k)
{
    /* A match that reaches into the guesses repeats them. */
    const whole_text t = {text, drafts, n, n_drafts};
    for (int32_t i = 0; i < k; i++) {
        const uint64_t next = element(&t, m->end + 1 + i);
        if (next > INT32_MAX) {
            return i;
        }
        drafts[n_drafts + i] = (int32_t)next;
    }
    return k;
}

/* ---- the policy ---- */

enum { PROBE_FIRST = 16, PROBE_LAST = 512, PROBE_NEAR = 32, SEEN_ENOUGH = 15 };
#define WORTH_MORE 1.05

static int32_t class_of(int32_t len)
{
    return len <= 2 ? 0 : len <= 4 ? 1 : len <= 8 ? 2 : len <= 16 ? 3 : 4;
}

static double chance_of(const lookup_class *c, int32_t class)
{
    static const double FIRST[LOOKUP_CLASSES] = {0.3, 0.5, 0.6, 0.8, 0.9};
    return c->right > 0.0 ? c->right : FIRST[class];
}

double lookup_policy_ms(const lookup_policy *p, int32_t rows)
{
    int32_t low = rows, high = rows;
    while (low > 0 && p->rows_ms[low] == 0.0) {
        low--;
    }
    while (high <= NN_ROWS_EXACT && p->rows_ms[high] == 0.0) {
        high++;
    }
    if (low == 0) {
        return high <= NN_ROWS_EXACT ? p->rows_ms[high] : 0.0;
    }
    if (high > NN_ROWS_EXACT) { /* more rows look cheap, so that they are tried */
        return p->rows_ms[low] * (1.0 + 0.02 * (rows - low));
    }
    const double share = high > low ? (double)(rows - low) / (high - low) : 0.0;
    return p->rows_ms[low] + share * (p->rows_ms[high] - p->rows_ms[low]);
}

static double ms_with(const lookup_policy *p, const lookup_step *step, int32_t k)
{
    return step->ms + lookup_policy_ms(p, step->rows + k) - lookup_policy_ms(p, step->rows);
}

void lookup_policy_add(const lookup_policy *p, lookup_step *step, int32_t len, int32_t k)
{
    const int32_t class = class_of(len);
    double chance = step->chance;
    step->ms = ms_with(p, step, k);
    step->rows += k;
    for (int32_t i = 0; i < k; i++) {
        chance *= chance_of(&p->classes[class], class);
        step->tokens += chance;
    }
}

int32_t lookup_policy_depth(lookup_policy *p, const lookup_step *step, int32_t len, int32_t k_max)
{
    const int32_t class = class_of(len);
    lookup_class *c = &p->classes[class];
    if (step->ms <= 0.0 || k_max <= 0) {
        return 0; /* what the others are compared with */
    }
    int32_t best = 0;
    double best_rate = step->tokens / step->ms * WORTH_MORE;
    for (int32_t k = 1; k <= k_max; k++) {
        lookup_step with = *step;
        lookup_policy_add(p, &with, len, k);
        if (with.tokens / with.ms > best_rate) {
            best_rate = with.tokens / with.ms;
            best = k;
        }
    }
    if (best > 0) {
        c->parked = 0;
        c->probe_interval = PROBE_FIRST;
        if (++p->n_followed % PROBE_NEAR == 0) { /* what is known of the neighbours shall not grow old */
            best = best < k_max ? best + 1 : best > 1 ? best - 1 : best;
        }
        return best;
    }
    if (c->probe_interval < PROBE_FIRST) {
        c->probe_interval = PROBE_FIRST;
    }
    if (++c->parked < c->probe_interval) {
        return 0;
    }
    c->parked = 0;
    c->probe_interval = c->probe_interval < PROBE_LAST ? c->probe_interval * 2 : PROBE_LAST;
    return 1;
}

void lookup_policy_cost(lookup_policy *p, int32_t rows, double ms)
{
    if (ms > 0.0) {
        draft_average_cost(&p->rows_ms[rows], ms);
    }
}

void lookup_policy_result(lookup_policy *p, int32_t len, int32_t k, int32_t n_right)
{
    const int32_t class = class_of(len);
    lookup_class *c = &p->classes[class];
    for (int32_t i = 0; i < k && i <= n_right; i++) {
        c->n_seen += c->n_seen < SEEN_ENOUGH;
        const double was = chance_of(c, class);
        const double now = was + ((i < n_right ? 1.0 : 0.0) - was) / (1.0 + c->n_seen);
        c->right = now < 0.01 ? 0.01 : now;
    }
}
