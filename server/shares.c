#include "server/shares.h"

#include <stdlib.h>

#include "base/memory.h"

struct shares_note {
    uint64_t owner, name; /* a hash: a wrong one costs no more than a wrong reason */
    double until_ms;
};

void shares_init(shares *s, size_t max_n, size_t max_bytes, ledger *memory)
{
    *s = (shares){.max_n = max_n, .max_bytes = max_bytes, .memory.ledger = memory};
}

void shares_deinit(shares *s)
{
    free(s->items);
    free(s->notes);
    ledger_give_all(&s->memory);
    shares_init(s, s->max_n, s->max_bytes, s->memory.ledger);
}

static share *find(const shares *s, uint64_t owner)
{
    for (size_t i = 0; i < s->n_items; i++) {
        if (s->items[i].owner == owner) {
            return &s->items[i];
        }
    }
    return NULL;
}

bool shares_add(shares *s, uint64_t owner, size_t n_bytes)
{
    share *of = find(s, owner);
    if ((!of && !memory_grow(&s->items, &s->cap_items, s->n_items + 1, 8, sizeof *s->items)) ||
        !ledger_try(&s->memory, n_bytes)) {
        return false;
    }
    if (!of) {
        of = &s->items[s->n_items++];
        *of = (share){.owner = owner};
    }
    of->n++;
    of->n_bytes += n_bytes;
    s->n++;
    s->n_bytes += n_bytes;
    return true;
}

void shares_remove(shares *s, uint64_t owner, size_t n_bytes)
{
    share *of = find(s, owner);
    if (!of) {
        return;
    }
    of->n--;
    of->n_bytes -= n_bytes;
    s->n--;
    s->n_bytes -= n_bytes;
    ledger_give(&s->memory, n_bytes);
    if (of->n == 0) {
        *of = s->items[--s->n_items];
    }
}

bool shares_is_over(const shares *s, size_t n, size_t n_bytes, uint64_t *owner)
{
    const bool by_bytes = s->n_bytes + n_bytes > s->max_bytes || ledger_is_short(s->memory.ledger, n_bytes);
    if ((!by_bytes && s->n + n <= s->max_n) || s->n_items == 0) {
        return false;
    }
    const share *most = &s->items[0];
    for (size_t i = 1; i < s->n_items; i++) {
        const share *of = &s->items[i];
        most = (by_bytes ? of->n_bytes > most->n_bytes : of->n > most->n) ? of : most;
    }
    *owner = most->owner;
    return true;
}

/* FNV-1a */
static uint64_t hash_of(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++) {
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    }
    return h;
}

void shares_note_gone(shares *s, uint64_t owner, const char *name, double until_ms)
{
    if (!s->notes) {
        s->notes = calloc(SHARES_GONE, sizeof *s->notes);
    }
    if (s->notes) {
        s->notes[s->next_note] = (shares_note){.owner = owner, .name = hash_of(name), .until_ms = until_ms};
        s->next_note = (s->next_note + 1) % SHARES_GONE;
        s->n_notes += s->n_notes < SHARES_GONE;
    }
}

bool shares_is_gone(const shares *s, uint64_t owner, const char *name, double now_ms)
{
    const uint64_t h = hash_of(name);
    for (size_t i = 0; i < s->n_notes; i++) {
        const shares_note *note = &s->notes[i];
        if (note->name == h && note->owner == owner && now_ms <= note->until_ms) {
            return true;
        }
    }
    return false;
}
