#include "text/tokenizer/bpe.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A symbol of the piece, in a list by position; id < 0 once it was merged into its left neighbour.
 */
typedef struct bpe_node {
    int32_t id, prev, next; /* prev, next: index, -1 at the ends */
} bpe_node;

/* A merge that may be done: node at and its right neighbour become id. */
typedef struct bpe_pair {
    int32_t rank, at, id;
} bpe_pair;

/* SHORT: pieces of up to so many symbols, almost all words, are merged without a list and a heap. */
enum { SLOTS_MIN = 64, SCRATCH_MIN = 256, SHORT = 24 };

err_code bpe_init(bpe *b, size_t n_merges, err_detail *detail)
{
    b->n_slots = SLOTS_MIN;
    while (b->n_slots < n_merges * 2) {
        b->n_slots *= 2;
    }
    b->slots = malloc(b->n_slots * sizeof *b->slots);
    if (!b->slots) {
        return err_set(detail, ERR_NOMEM, "no memory for %zu merges", n_merges);
    }
    memset(b->slots, 0xFF, b->n_slots * sizeof *b->slots);
    return ERR_OK;
}

void bpe_deinit(bpe *b)
{
    free(b->slots);
    b->slots = NULL;
}

/* The slot of a pair, or the free slot where it belongs. */
static bpe_merge *find_slot(const bpe *b, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    key *= 0x9E3779B97F4A7C15u;
    size_t i = (size_t)((key >> 32) * b->n_slots >> 32); /* the upper bits: all of the key is in them */
    while (b->slots[i].left >= 0 && (b->slots[i].left != left || b->slots[i].right != right)) {
        i = (i + 1) & (b->n_slots - 1);
    }
    return &b->slots[i];
}

void bpe_add(bpe *b, int32_t left, int32_t right, int32_t rank, int32_t id)
{
    *find_slot(b, left, right) = (bpe_merge){left, right, rank, id};
}

/* The same merges as below: the one of the lowest rank, the leftmost of several, until none is left.
 * merges[i]: of symbol i with the one behind it. Returns how many symbols are left. */
static size_t merge_short(const bpe *b, int32_t *ids, size_t n)
{
    const bpe_merge *merges[SHORT];
    for (size_t i = 0; i + 1 < n; i++) {
        merges[i] = find_slot(b, ids[i], ids[i + 1]);
    }
    for (;;) {
        size_t best = n;
        int32_t rank = INT32_MAX;
        for (size_t i = 0; i + 1 < n; i++) {
            if (merges[i]->left >= 0 && merges[i]->rank < rank) {
                rank = merges[i]->rank;
                best = i;
            }
        }
        if (best == n) {
            return n;
        }
        ids[best] = merges[best]->id;
        n--;
        for (size_t i = best + 1; i < n; i++) {
            ids[i] = ids[i + 1];
            merges[i - 1] = merges[i];
        }
        if (best + 1 < n) {
            merges[best] = find_slot(b, ids[best], ids[best + 1]);
        }
        if (best > 0) {
            merges[best - 1] = find_slot(b, ids[best - 1], ids[best]);
        }
    }
}

static bool comes_before(bpe_pair a, bpe_pair b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void heap_push(bpe_scratch *s, bpe_pair p)
{
    size_t i = s->n_heap++;
    while (i > 0 && comes_before(p, s->heap[(i - 1) / 2])) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = p;
}

static bpe_pair heap_pop(bpe_scratch *s)
{
    bpe_pair top = s->heap[0], last = s->heap[--s->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= s->n_heap) {
            break;
        }
        if (child + 1 < s->n_heap && comes_before(s->heap[child + 1], s->heap[child])) {
            child++;
        }
        if (!comes_before(s->heap[child], last)) {
            break;
        }
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = last;
    return top;
}

/* Queues the merge of node `at` with its right neighbour, if there is a rule for it. */
static void consider(const bpe *b, bpe_scratch *s, int32_t at)
{
    if (at < 0 || s->nodes[at].next < 0) {
        return;
    }
    const bpe_merge *m = find_slot(b, s->nodes[at].id, s->nodes[s->nodes[at].next].id);
    if (m->left >= 0) {
        heap_push(s, (bpe_pair){m->rank, at, m->id});
    }
}

/* A queued merge is stale when one of its symbols has changed since. */
static bool still_applies(const bpe *b, const bpe_scratch *s, bpe_pair p)
{
    const bpe_node *node = &s->nodes[p.at];
    if (node->id < 0 || node->next < 0) {
        return false;
    }
    const bpe_merge *m = find_slot(b, node->id, s->nodes[node->next].id);
    return m->left >= 0 && m->id == p.id;
}

static err_code reserve(bpe_scratch *s, size_t n, err_detail *detail)
{
    if (s->node_cap >= n) {
        return ERR_OK;
    }
    size_t cap = s->node_cap ? s->node_cap : SCRATCH_MIN;
    while (cap < n) {
        cap *= 2;
    }
    /* Every merge removes a symbol and queues at most two pairs: fewer than 3 n pairs in all. */
    bpe_node *nodes = realloc(s->nodes, cap * sizeof *nodes);
    if (nodes) {
        s->nodes = nodes;
    }
    bpe_pair *heap = realloc(s->heap, 3 * cap * sizeof *heap);
    if (heap) {
        s->heap = heap;
    }
    if (!nodes || !heap) {
        return err_set(detail, ERR_NOMEM, "no memory to tokenize a word of %zu bytes", n);
    }
    s->node_cap = cap;
    return ERR_OK;
}

err_code bpe_encode(const bpe *b, bpe_scratch *s, int32_t *ids, size_t *n, err_detail *detail)
{
    if (*n <= SHORT) {
        *n = merge_short(b, ids, *n);
        return ERR_OK;
    }
    if (*n > BPE_MAX_PIECE) {
        return err_set(detail, ERR_LIMIT, "the text has a word of %zu bytes; at most %d are allowed", *n,
                       BPE_MAX_PIECE);
    }
    err_code err = reserve(s, *n, detail);
    if (err) {
        return err;
    }
    int32_t len = (int32_t)*n;
    for (int32_t i = 0; i < len; i++) {
        s->nodes[i] = (bpe_node){ids[i], i - 1, i + 1 < len ? i + 1 : -1};
    }
    s->n_heap = 0;
    for (int32_t i = 0; i < len; i++) {
        consider(b, s, i);
    }
    while (s->n_heap > 0) {
        bpe_pair p = heap_pop(s);
        if (!still_applies(b, s, p)) {
            continue;
        }
        bpe_node *node = &s->nodes[p.at], *gone = &s->nodes[node->next];
        node->id = p.id;
        gone->id = -1;
        node->next = gone->next;
        if (node->next >= 0) {
            s->nodes[node->next].prev = p.at;
        }
        consider(b, s, node->prev);
        consider(b, s, p.at);
    }
    size_t out = 0;
    for (int32_t i = 0; i >= 0; i = s->nodes[i].next) {
        ids[out++] = s->nodes[i].id;
    }
    *n = out;
    return ERR_OK;
}

void bpe_scratch_deinit(bpe_scratch *s)
{
    free(s->nodes);
    free(s->heap);
    memset(s, 0, sizeof *s);
}
