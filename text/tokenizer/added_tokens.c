#include "text/tokenizer/added_tokens.h"

#include <stdlib.h>
#include <string.h>

err_code added_tokens_add(added_tokens *set, const char *text, size_t len, int32_t id, err_detail *detail)
{
    if (len == 0 || len > ADDED_TOKEN_MAX) {
        return err_set(detail, ERR_UNSUPPORTED, "added token %d has %zu bytes; 1 to %d are supported", id,
                       len, ADDED_TOKEN_MAX);
    }
    if (set->len == set->cap) {
        size_t cap = set->cap ? set->cap * 2 : 64;
        added_token *items = realloc(set->items, cap * sizeof *items);
        if (!items) {
            return err_set(detail, ERR_NOMEM, "no memory for the added tokens");
        }
        set->items = items;
        set->cap = cap;
    }
    char *copy = malloc(len);
    if (!copy) {
        return err_set(detail, ERR_NOMEM, "no memory for the added tokens");
    }
    memcpy(copy, text, len);
    set->items[set->len++] = (added_token){copy, len, id};
    set->starts[(unsigned char)text[0]] = true;
    set->longest = len > set->longest ? len : set->longest;
    return ERR_OK;
}

static int compare_tokens(const void *a, const void *b)
{
    const added_token *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->text, y->text, n);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

void added_tokens_sort(added_tokens *set)
{
    if (set->len > 1) {
        qsort(set->items, set->len, sizeof *set->items, compare_tokens);
    }
}

void added_tokens_deinit(added_tokens *set)
{
    for (size_t i = 0; i < set->len; i++) {
        free(set->items[i].text);
    }
    free(set->items);
    memset(set, 0, sizeof *set);
}

/* First item in [lo, hi) whose byte at `depth` is >= byte; all of them agree before it and are
 * longer. */
static size_t lower_bound(const added_tokens *set, size_t lo, size_t hi, size_t depth, int byte)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if ((unsigned char)set->items[mid].text[depth] < byte) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

size_t added_tokens_next(const added_tokens *set, const char *text, size_t from, size_t len)
{
    while (from < len && !set->starts[(unsigned char)text[from]]) {
        from++;
    }
    return from;
}

size_t added_tokens_match(const added_tokens *set, const char *text, size_t len, int32_t *id)
{
    if (len == 0 || !set->starts[(unsigned char)text[0]]) {
        return 0;
    }
    size_t lo = 0, hi = set->len, best = 0;
    for (size_t depth = 0; depth < len && lo < hi; depth++) {
        int byte = (unsigned char)text[depth];
        lo = lower_bound(set, lo, hi, depth, byte);
        hi = lower_bound(set, lo, hi, depth, byte + 1);
        if (lo < hi && set->items[lo].len == depth + 1) {
            best = depth + 1;
            *id = set->items[lo].id;
            while (lo < hi && set->items[lo].len == depth + 1) {
                lo++;
            }
        }
    }
    return best;
}

bool added_tokens_has_prefix(const added_tokens *set, const char *text, size_t len)
{
    for (size_t i = 0; i < set->len; i++) {
        if (set->items[i].len > len && memcmp(set->items[i].text, text, len) == 0) {
            return true;
        }
    }
    return false;
}

bool added_tokens_begins_with_tail(const added_tokens *set, const char *text, size_t len)
{
    for (size_t i = 0; i < set->len; i++) {
        const added_token *t = &set->items[i];
        for (size_t cut = 1; cut < t->len; cut++) {
            size_t tail = t->len - cut;
            if (tail <= len && t->text[cut] == text[0] && memcmp(t->text + cut, text, tail) == 0) {
                return true;
            }
        }
    }
    return false;
}
