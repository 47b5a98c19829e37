#include "engine/sparse/select.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

double select_share(float share)
{
    return round((double)share * 1e6) / 1e6;
}

static int32_t chunk_len(int32_t n, int32_t chunk, int32_t index)
{
    const int32_t left = n - index * chunk;
    return left < chunk ? left : chunk;
}

float select_score(const float *importance, int32_t n, int32_t chunk, int32_t index)
{
    const int32_t len = chunk_len(n, chunk, index);
    double sum = 0;
    for (int32_t i = 0; i < len; i++) {
        sum += (double)importance[index * chunk + i];
    }
    return (float)(sum / len);
}

/* Best first; equal ones as they stand. */
static int by_score(const void *a, const void *b)
{
    const select_chunk *x = a, *y = b;
    return x->score != y->score ? (x->score > y->score ? -1 : 1)
                                : (x->index > y->index) - (x->index < y->index);
}

static int by_index(const void *a, const void *b)
{
    const select_chunk *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

/* Lets the chunks of the backbone come first in the order: the middles of even stretches. */
static void raise_backbone(select_chunk *order, int32_t n_chunks, double share)
{
    const int32_t n = (int32_t)ceil(n_chunks * share);
    for (int32_t i = 0; i < n; i++) {
        order[(int32_t)(((double)i + 0.5) * n_chunks / n)].score = INFINITY;
    }
}

int32_t select_tokens(int32_t *kept, select_chunk *order, const float *importance, int32_t n,
                      const select_choice *choice)
{
    const int32_t chunk = choice->chunk, n_chunks = (n + chunk - 1) / chunk;
    const int32_t wanted_chunks = (int32_t)ceil(n_chunks * choice->keep);
    const int32_t wanted_tokens = (int32_t)ceil(n * choice->keep);
    for (int32_t i = 0; i < n_chunks; i++) {
        order[i] = (select_chunk){i, select_score(importance, n, chunk, i)};
    }
    raise_backbone(order, n_chunks, choice->backbone < choice->keep ? choice->backbone : choice->keep);
    qsort(order, (size_t)n_chunks, sizeof *order, by_score);
    int32_t n_taken = 0, n_tokens = 0;
    while (n_taken < n_chunks && (n_taken < wanted_chunks || n_tokens < wanted_tokens)) {
        n_tokens += chunk_len(n, chunk, order[n_taken++].index);
    }
    qsort(order, (size_t)n_taken, sizeof *order, by_index);
    const int32_t tail = n - (choice->tail < n ? choice->tail : n);
    int32_t n_kept = 0;
    for (int32_t i = 0; i < n_taken; i++) {
        const int32_t first = order[i].index * chunk, end = first + chunk_len(n, chunk, order[i].index);
        for (int32_t t = first; t < end && t < tail; t++) {
            kept[n_kept++] = t;
        }
        if (end > tail) {
            break;
        }
    }
    if (choice->tail > 0) {
        for (int32_t t = tail; t < n; t++) {
            kept[n_kept++] = t;
        }
    }
    return n_kept;
}

void select_gather(int32_t *ids, position *positions, const int32_t *kept, int32_t n_kept)
{
    for (int32_t i = 0; i < n_kept; i++) {
        ids[i] = ids[kept[i]];
        positions[i] = positions[kept[i]];
    }
}
