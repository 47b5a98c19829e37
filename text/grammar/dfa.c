#include "text/grammar/dfa.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"
#include "text/grammar/dfa_private.h"

enum { DFA_BUCKETS = 4096, COMBINE_STEPS = 10000 /* whatever the size */ };

void dfa_free(dfa *d)
{
    free(d->next);
    free(d->accept);
    *d = (dfa){0};
}

bool dfa_accepts(const dfa *d, const char *text, size_t len)
{
    int32_t q = d->n_states ? 0 : DFA_DEAD;
    for (size_t i = 0; i < len && q != DFA_DEAD; i++) {
        q = dfa_step(d, q, (uint8_t)text[i]);
    }
    return q != DFA_DEAD && d->accept[q];
}

/* ---- the builder ---- */

bool dfa_builder_init(dfa_builder *b)
{
    b->buckets = malloc(DFA_BUCKETS * sizeof *b->buckets);
    for (int32_t i = 0; b->buckets && i < DFA_BUCKETS; i++) {
        b->buckets[i] = -1;
    }
    return b->buckets != NULL;
}

int32_t dfa_builder_add(dfa_builder *b, uint64_t hash)
{
    if (b->n_states == LIMIT_DFA_STATES) {
        b->too_big = true;
        return -1;
    }
    const size_t n = (size_t)b->n_states + 1, n_cells = n * (size_t)b->n_classes;
    if (!memory_grow(&b->states, &b->cap, n, 64, sizeof *b->states) ||
        !memory_grow(&b->next, &b->next_cap, n_cells, 64 * (size_t)b->n_classes, sizeof *b->next)) {
        b->failed = true;
        return -1;
    }
    const int32_t q = b->n_states++;
    for (int32_t c = 0; c < b->n_classes; c++) {
        b->next[(size_t)q * (size_t)b->n_classes + (size_t)c] = DFA_DEAD;
    }
    b->states[q] = (struct dfa_state){.hash = hash, .chain = b->buckets[hash % DFA_BUCKETS]};
    b->buckets[hash % DFA_BUCKETS] = q;
    return q;
}

static int32_t match_hash(const dfa_builder *b, int32_t q, uint64_t hash)
{
    while (q >= 0 && b->states[q].hash != hash) {
        q = b->states[q].chain;
    }
    return q;
}

int32_t dfa_builder_find(const dfa_builder *b, uint64_t hash)
{
    return match_hash(b, b->buckets[hash % DFA_BUCKETS], hash);
}

int32_t dfa_builder_find_next(const dfa_builder *b, int32_t state, uint64_t hash)
{
    return match_hash(b, b->states[state].chain, hash);
}

void dfa_builder_link(dfa_builder *b, int32_t from, int32_t byte_class, int32_t to)
{
    b->next[(size_t)from * (size_t)b->n_classes + (size_t)byte_class] = (uint16_t)to;
}

/* Marks the states from which an accepting one can be reached: backwards along the transitions,
 * each met once. */
static bool mark_live(const dfa_builder *b, bool *live)
{
    const size_t n = (size_t)b->n_states, n_cells = n * (size_t)b->n_classes;
    uint32_t *first = calloc(n + 2, sizeof *first); /* of the transitions that lead to a state, in `from` */
    uint16_t *from = malloc((n_cells + 1) * sizeof *from), *todo = malloc((n + 1) * sizeof *todo);
    const bool ok = first && from && todo;
    size_t n_todo = 0;
    for (size_t i = 0; ok && i < n_cells; i++) {
        if (b->next[i] != DFA_DEAD) {
            first[b->next[i] + 2]++;
        }
    }
    for (size_t q = 1; ok && q < n; q++) {
        first[q + 1] += first[q];
    }
    for (size_t i = 0; ok && i < n_cells; i++) {
        if (b->next[i] != DFA_DEAD) {
            from[first[b->next[i] + 1]++] = (uint16_t)(i / (size_t)b->n_classes);
        }
    }
    for (size_t q = 0; ok && q < n; q++) {
        live[q] = b->states[q].accept;
        todo[n_todo] = (uint16_t)q;
        n_todo += live[q];
    }
    while (ok && n_todo > 0) {
        const uint16_t q = todo[--n_todo];
        for (uint32_t i = first[q]; i < first[q + 1]; i++) {
            if (!live[from[i]]) {
                live[from[i]] = true;
                todo[n_todo++] = from[i];
            }
        }
    }
    free(first);
    free(from);
    free(todo);
    return ok;
}

/* Copies the live states of b to out, numbered anew. Each is reached from the start, so that where one is live the start is,
 * too, and stays first. */
static bool keep_live(const dfa_builder *b, dfa *out)
{
    bool *live = malloc((size_t)b->n_states + 1);
    uint16_t *number = malloc(((size_t)b->n_states + 1) * sizeof *number);
    bool ok = live && number && mark_live(b, live);
    if (ok) {
        for (int32_t q = 0; q < b->n_states; q++) {
            number[q] = live[q] ? (uint16_t)out->n_states++ : DFA_DEAD;
        }
        memcpy(out->classes, b->classes, sizeof out->classes);
        out->n_classes = b->n_classes;
        const size_t n = (size_t)out->n_states * (size_t)b->n_classes;
        out->next = malloc((n + 1) * sizeof *out->next);
        out->accept = malloc((size_t)out->n_states + 1);
        ok = out->next && out->accept;
    }
    for (int32_t q = 0; ok && q < b->n_states; q++) {
        if (number[q] == DFA_DEAD) {
            continue;
        }
        out->accept[number[q]] = b->states[q].accept;
        for (int32_t c = 0; c < b->n_classes; c++) {
            const uint16_t to = b->next[(size_t)q * (size_t)b->n_classes + (size_t)c];
            out->next[(size_t)number[q] * (size_t)b->n_classes + (size_t)c] =
                to == DFA_DEAD ? DFA_DEAD : number[to];
        }
    }
    free(live);
    free(number);
    return ok;
}

err_code dfa_builder_finish(dfa_builder *b, dfa *out, const char *what, err_detail *detail)
{
    *out = (dfa){0};
    (void)work_do(b->work, (size_t)b->n_states * (size_t)b->n_classes);
    err_code err = work_error(b->work);
    if (err != ERR_OK) {
        err = err_set(detail, err, "%s: building its automaton was ended", what);
    } else if (b->too_big) {
        err = err_set(detail, ERR_LIMIT,
                      "%s needs too large an automaton (more than %d states, or %d steps): make it simpler",
                      what, LIMIT_DFA_STATES, LIMIT_DFA_WORK);
    } else if (b->failed || !keep_live(b, out)) {
        dfa_free(out);
        err = err_set(detail, ERR_NOMEM, "no memory for %s", what);
    }
    free(b->next);
    free(b->states);
    free(b->buckets);
    *b = (dfa_builder){0};
    return err;
}

/* ---- products ---- */

/* The state of the product for the pair, a new one if it was not met; -1 without room. qb may be
 * DFA_DEAD. */
static int32_t number_pair(dfa_builder *b, uint32_t *pairs, const dfa *da, const dfa *db, dfa_op op,
                           int32_t qa, int32_t qb)
{
    const uint32_t pair = (uint32_t)qa << 16 | (uint32_t)qb;
    const uint64_t product = (uint64_t)pair * 0x9e3779b97f4a7c15u,
                   hash = product ^ product >> 32; /* of no other pair */
    int32_t q = dfa_builder_find(b, hash);
    if (q >= 0) {
        return q;
    }
    q = dfa_builder_add(b, hash);
    if (q >= 0) {
        const bool in_b = qb != DFA_DEAD && db->accept[qb];
        pairs[q] = pair;
        b->states[q].accept = da->accept[qa] && in_b == (op == DFA_AND);
    }
    return q;
}

static void join_classes(dfa_builder *b, const dfa *da, const dfa *db, uint8_t *representatives)
{
    for (int32_t byte = 0; byte < 256; byte++) {
        int32_t c = 0;
        while (c < b->n_classes && (da->classes[representatives[c]] != da->classes[byte] ||
                                    db->classes[representatives[c]] != db->classes[byte])) {
            c++;
        }
        if (c == b->n_classes) {
            representatives[b->n_classes++] = (uint8_t)byte;
        }
        b->classes[byte] = (uint8_t)c;
    }
}

err_code dfa_combine(dfa *out, const dfa *da, const dfa *db, dfa_op op, const char *what, work_count *work,
                     err_detail *detail)
{
    *out = (dfa){0};
    dfa_builder b = {.work = work};
    uint8_t representatives[256];
    const int32_t start_b = db->n_states ? 0 : DFA_DEAD;
    const bool empty = da->n_states == 0 || (op == DFA_AND && start_b == DFA_DEAD);
    join_classes(&b, da, db, representatives);
    uint32_t *pairs = malloc(LIMIT_DFA_STATES * sizeof *pairs);
    b.failed = !dfa_builder_init(&b) || !pairs;
    if (!b.failed && !empty) {
        (void)number_pair(&b, pairs, da, db, op, 0, start_b);
    }
    (void)work_do(work, COMBINE_STEPS);
    for (int32_t q = 0; q < b.n_states && !b.failed && !b.too_big; q++) {
        if (!work_do(work, 4 * (size_t)b.n_classes)) {
            break;
        }
        const int32_t qa = (int32_t)(pairs[q] >> 16), qb = (int32_t)(pairs[q] & 0xffff);
        for (int32_t c = 0; c < b.n_classes; c++) {
            const int32_t to_a = dfa_step(da, qa, representatives[c]);
            const int32_t to_b = qb == DFA_DEAD ? DFA_DEAD : dfa_step(db, qb, representatives[c]);
            if (to_a == DFA_DEAD || (op == DFA_AND && to_b == DFA_DEAD)) {
                continue;
            }
            const int32_t to = number_pair(&b, pairs, da, db, op, to_a, to_b);
            if (to < 0) {
                break;
            }
            dfa_builder_link(&b, q, c, to);
        }
    }
    free(pairs);
    return dfa_builder_finish(&b, out, what, detail);
}
