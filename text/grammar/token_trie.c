#include "text/grammar/token_trie.h"

#include <stdlib.h>
#include <string.h>

#include "text/grammar/grammar_private.h"

typedef struct entry {
    const char *text;
    int32_t len, id;
} entry;

static int compare_entries(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const int32_t len = x->len < y->len ? x->len : y->len;
    const int order = memcmp(x->text, y->text, (size_t)len);
    return order              ? order
           : x->len != y->len ? (x->len > y->len) - (x->len < y->len)
                              : (x->id > y->id) - (x->id < y->id);
}

static int32_t shared_bytes(const entry *a, const entry *b)
{
    int32_t n = 0;
    while (n < a->len && n < b->len && a->text[n] == b->text[n]) {
        n++;
    }
    return n;
}

/* Lays out sorted entries; equal texts are linked in same[id * stride]. */
static bool build(arena *a, trie_nodes *t, int32_t *same, size_t stride, const entry *entries, size_t n)
{
    size_t n_nodes = 0;
    int32_t path[TRIE_TOKEN_BYTES + 1]; /* node of each depth on the way to the last entry */
    for (size_t i = 0; i < n; i++) {
        n_nodes += (size_t)(entries[i].len - (i ? shared_bytes(&entries[i - 1], &entries[i]) : 0));
    }
    /* fewer than 2^31: a file has no more bytes than LIMIT_TOKENIZER_BYTES */
    t->nodes = arena_alloc(a, (n_nodes + 1) * sizeof *t->nodes);
    if (!t->nodes) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        const entry *e = &entries[i];
        const int32_t shared = i ? shared_bytes(e - 1, e) : 0;
        for (int32_t depth = i ? e[-1].len : 0; depth > shared; depth--) {
            t->nodes[path[depth]].next = t->n_nodes;
        }
        for (int32_t depth = shared + 1; depth <= e->len; depth++) {
            path[depth] = t->n_nodes;
            t->nodes[t->n_nodes++] =
                (trie_node){.token = -1, .depth = (uint16_t)depth, .byte = (uint8_t)e->text[depth - 1]};
        }
        trie_node *last = &t->nodes[path[e->len]];
        same[(size_t)e->id * stride] = last->token;
        last->token = e->id;
    }
    for (int32_t depth = n ? entries[n - 1].len : 0; depth > 0; depth--) {
        t->nodes[path[depth]].next = t->n_nodes;
    }
    return true;
}

const char *token_trie_bytes(const token_trie *t, int32_t token, size_t *len)
{
    const char *text = tokenizer_token_bytes(t->tok, token, len, NULL);
    if (!text || *len == 0 || *len > TRIE_TOKEN_BYTES || token_mask_has(t->stop_mask, token)) {
        *len = 0;
        return NULL;
    }
    return text;
}

static void set_bit(uint64_t *mask, int32_t token)
{
    mask[token >> 6] |= (uint64_t)1 << (token & 63);
}

static bool is_added(const tokenizer *tok, int32_t id, const char *text, size_t len)
{
    char copy[TRIE_TOKEN_BYTES + 1];
    memcpy(copy, text, len);
    copy[len] = '\0';
    return tokenizer_added_id(tok, copy) == id;
}

/* What a token does inside a JSON string; *rest gets where it goes on behind the closing quote,
 * NULL if it stays. False if it cannot stand there. */
static bool read_in_string(const char *text, size_t len, int32_t *chars, const char **rest)
{
    int32_t state = STRING_INSIDE;
    *chars = 0;
    *rest = NULL;
    for (size_t i = 0; i < len; i++) {
        const int32_t to = grammar_string_step(state, (uint8_t)text[i]);
        if (to == STRING_REFUSED) {
            return false;
        }
        if (to == STRING_CLOSED) {
            *rest = text + i + 1;
            return true;
        }
        *chars += state == STRING_INSIDE;
        state = to;
    }
    return true;
}

/* Enters a token where strings look for it; closing tokens also into `rests`. */
static void enter_string_token(token_trie *t, int32_t id, const char *text, size_t len, entry *rests,
                               size_t *n_rests)
{
    int32_t chars;
    const char *rest;
    if (!read_in_string(text, len, &chars, &rest)) {
        return;
    }
    const string_token made = {.token = id, .chars = chars, .same = -1};
    if (!rest && chars > TRIE_STRING_CHARS) {
        t->long_ones[t->n_long++] = made;
    } else if (!rest) {
        for (int32_t k = chars; k <= TRIE_STRING_CHARS; k++) {
            set_bit(t->string_masks + (size_t)(k - 1) * t->n_words, id);
        }
    } else {
        const int32_t index = t->n_closing++;
        t->closing[index] = made;
        if (rest == text + len) {
            t->closing[index].same = t->bare_close;
            t->bare_close = index;
        } else {
            rests[(*n_rests)++] = (entry){rest, (int32_t)(text + len - rest), index};
        }
    }
}

/* Sorts the vocabulary into the tries. */
static bool fill(token_trie *t)
{
    const size_t most = (size_t)t->n_tokens + 1;
    entry *entries = malloc(most * sizeof *entries), *rests = malloc(most * sizeof *rests);
    entry *added = malloc(most * sizeof *added), *special = malloc(most * sizeof *special);
    size_t n = 0, n_rests = 0, n_added = 0, n_special = 0;
    bool ok = entries && rests && added && special;
    for (int32_t id = 0; ok && id < t->n_tokens; id++) {
        size_t len;
        const char *text = token_trie_bytes(t, id, &len);
        t->same[id] = -1;
        if (!text) {
            continue;
        }
        const entry e = {text, (int32_t)len, id};
        bool is_special = false;
        tokenizer_token_bytes(t->tok, id, &len, &is_special);
        if (is_special) {
            special[n_special++] = e;
            continue;
        }
        if (is_added(t->tok, id, text, len)) {
            added[n_added++] = e;
            continue;
        }
        entries[n++] = e;
        enter_string_token(t, id, text, len, rests, &n_rests);
    }
    if (ok) {
        qsort(entries, n, sizeof *entries, compare_entries);
        qsort(rests, n_rests, sizeof *rests, compare_entries);
        qsort(added, n_added, sizeof *added, compare_entries);
        qsort(special, n_special, sizeof *special, compare_entries);
        ok = build(t->memory, &t->all, t->same, 1, entries, n) &&
             build(t->memory, &t->added, t->same, 1, added, n_added) &&
             build(t->memory, &t->special, t->same, 1, special, n_special) &&
             build(t->memory, &t->rests, &t->closing[0].same, sizeof(string_token) / sizeof(int32_t), rests,
                   n_rests);
    }
    free(added);
    free(special);
    free(entries);
    free(rests);
    return ok;
}

err_code token_trie_create(token_trie **out, const tokenizer *tok, const int32_t *stop_ids, size_t n_stop_ids,
                           err_detail *detail)
{
    *out = NULL;
    arena *a = arena_create(SIZE_MAX / 2);
    token_trie *t = a ? arena_calloc(a, 1, sizeof *t) : NULL;
    const size_t n = (size_t)tokenizer_n_tokens(tok), n_words = (n + 63) / 64;
    if (t) {
        *t = (token_trie){.tok = tok, .memory = a, .n_tokens = (int32_t)n, .n_words = n_words};
        t->bare_close = -1;
        t->same = arena_alloc(a, (n + 1) * sizeof *t->same);
        t->string_masks = arena_calloc(a, n_words * TRIE_STRING_CHARS + 1, sizeof *t->string_masks);
        t->long_ones = arena_alloc(a, (n + 1) * sizeof *t->long_ones);
        t->closing = arena_alloc(a, (n + 1) * sizeof *t->closing);
        t->stop_mask = arena_calloc(a, n_words + 1, sizeof *t->stop_mask);
    }
    bool ok = t && t->same && t->string_masks && t->long_ones && t->closing && t->stop_mask;
    for (size_t i = 0; i < n_stop_ids && ok; i++) {
        if (stop_ids[i] >= 0 && stop_ids[i] < t->n_tokens) {
            set_bit(t->stop_mask, stop_ids[i]);
        }
    }
    if (!ok || !fill(t)) {
        arena_destroy(a);
        return err_set(detail, ERR_NOMEM, "no memory for the vocabulary's trie");
    }
    *out = t;
    return ERR_OK;
}

void token_trie_destroy(token_trie *t)
{
    if (t) {
        arena_destroy(t->memory); /* the trie too lies in it */
    }
}

static int32_t find_in(const trie_nodes *t, const char *text, size_t len)
{
    for (int32_t i = 0; i < t->n_nodes;) {
        const trie_node *node = &t->nodes[i];
        if (node->byte != (uint8_t)text[node->depth - 1]) {
            i = node->next;
        } else if (node->depth == len) {
            return node->token;
        } else {
            i++;
        }
    }
    return -1;
}

int32_t token_trie_find(const token_trie *t, const char *text, size_t len)
{
    if (len == 0) {
        return -1;
    }
    const trie_nodes *const tries[] = {&t->added, &t->special, &t->all};
    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        const int32_t found = find_in(tries[i], text, len);
        if (found >= 0) {
            return found;
        }
    }
    return -1;
}
