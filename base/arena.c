#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

enum { ALIGNMENT = 64, BLOCK_BYTES = 64 * 1024 };

/* The header takes one alignment unit, so the data behind it is aligned like the block. */
typedef struct block {
    struct block *next;
    size_t cap;  /* bytes of data behind the header */
    size_t used; /* of them handed out; a multiple of ALIGNMENT */
} block;

_Static_assert(sizeof(block) <= ALIGNMENT, "the block header must fit one alignment unit");

struct arena {
    block *head;      /* the block that allocations come from; older and full ones behind it */
    size_t max_bytes; /* bound of `used` */
    size_t used;      /* bytes asked for, without padding */
    bool lacked_memory;
};

arena *arena_create(size_t max_bytes)
{
    arena *a = calloc(1, sizeof *a);
    if (a) {
        a->max_bytes = max_bytes;
    }
    return a;
}

void arena_destroy(arena *a)
{
    if (!a) {
        return;
    }
    for (block *b = a->head; b;) {
        block *next = b->next;
        free(b);
        b = next;
    }
    free(a);
}

/* A block of at least `cap` data bytes (a multiple of ALIGNMENT) in front of the list. */
static block *add_block(arena *a, size_t cap)
{
    size_t total;
    if (!size_add(&total, cap, ALIGNMENT)) {
        return NULL;
    }
    block *b = aligned_alloc(ALIGNMENT, total);
    if (!b) {
        a->lacked_memory = true;
        return NULL;
    }
    b->cap = cap;
    b->used = 0;
    /* A large request gets a block of its own behind the head, so the head's free rest is not
     * lost. */
    if (a->head && cap > BLOCK_BYTES) {
        b->next = a->head->next;
        a->head->next = b;
    } else {
        b->next = a->head;
        a->head = b;
    }
    return b;
}

void *arena_alloc(arena *a, size_t bytes)
{
    size_t rounded;
    if (bytes > a->max_bytes - a->used || !size_add(&rounded, bytes, ALIGNMENT - 1)) {
        return NULL;
    }
    rounded &= ~(size_t)(ALIGNMENT - 1);
    if (rounded == 0) {
        rounded = ALIGNMENT; /* zero bytes still get an address of their own */
    }
    block *b = a->head;
    if (!b || rounded > b->cap - b->used) {
        b = add_block(a, rounded > BLOCK_BYTES ? rounded : BLOCK_BYTES);
        if (!b) {
            return NULL;
        }
    }
    void *p = (char *)b + ALIGNMENT + b->used;
    b->used += rounded;
    a->used += bytes;
    return p;
}

void *arena_calloc(arena *a, size_t n, size_t item_bytes)
{
    size_t bytes;
    if (!size_mul(&bytes, n, item_bytes)) {
        return NULL;
    }
    void *p = arena_alloc(a, bytes);
    if (p) {
        memset(p, 0, bytes);
    }
    return p;
}

bool arena_lacked_memory(const arena *a)
{
    return a->lacked_memory;
}

size_t arena_bytes(const arena *a)
{
    size_t n = sizeof *a;
    for (const block *b = a->head; b; b = b->next) {
        n += ALIGNMENT + b->cap;
    }
    return n;
}

char *arena_strdup(arena *a, const char *text, size_t len)
{
    size_t bytes;
    if (!size_add(&bytes, len, 1)) {
        return NULL;
    }
    char *copy = arena_alloc(a, bytes);
    if (copy) {
        if (len > 0) {
            memcpy(copy, text, len);
        }
        copy[len] = '\0';
    }
    return copy;
}
