#include "model/spares.h"

enum { PAGE = 4096, STEP = 2 << 20 };

void spares_want(spares *s, size_t n_bytes, size_t n)
{
    s->n_bytes = n_bytes;
    s->n_wanted = n < SPARES_MAX ? n : SPARES_MAX;
}

void spares_drop(spares *s)
{
    while (s->n_ready > 0) {
        compute_free(s->c, s->ready[--s->n_ready]);
    }
    compute_free(s->c, s->filling);
    s->filling = NULL;
}

void *spares_take(spares *s, size_t n_bytes)
{
    return s->n_ready > 0 && n_bytes == s->n_bytes ? s->ready[--s->n_ready] : compute_alloc(s->c, n_bytes);
}

void spares_give(spares *s, void *memory, size_t n_bytes)
{
    if (memory && n_bytes == s->n_bytes && s->n_ready < s->n_wanted) {
        s->ready[s->n_ready++] = memory;
    } else {
        compute_free(s->c, memory);
    }
}

bool spares_fill(spares *s)
{
    if (s->n_ready >= s->n_wanted) {
        return false;
    }
    if (!s->filling) {
        s->filling = compute_alloc(s->c, s->n_bytes);
        s->n_filled = 0;
    }
    if (!s->filling) {
        s->n_wanted = s->n_ready; /* it is not tried again and again */
        return false;
    }
    const size_t end = s->n_bytes - s->n_filled < STEP ? s->n_bytes : s->n_filled + STEP;
    for (; s->n_filled < end; s->n_filled += PAGE) {
        ((volatile unsigned char *)s->filling)[s->n_filled] = 0;
    }
    if (s->n_filled >= s->n_bytes) {
        s->ready[s->n_ready++] = s->filling;
        s->filling = NULL;
    }
    return true;
}
