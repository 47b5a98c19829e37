#include "engine/sparse/lexical.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "engine/sparse/select.h"

/* QUESTION: tokens at the end whose words are looked for, at most. TABLE: places for its words, a
 * power of two. */
enum { QUESTION = 256, TABLE = 2048 };

/* Shares of what is kept: the beginning, which says what the rest is; the end, which asks. */
#define FIRST_SHARE 0.125
#define LAST_SHARE  0.25
#define ALWAYS      1e6f

typedef struct word {
    uint64_t hash; /* 0: a free place */
    int32_t n_chunks;
    int32_t last_chunk; /* in which it was counted */
} word;

/* Called with the hash of each word and the tokens first .. last that spell it. */
typedef void on_word(void *ctx, uint64_t hash, int32_t first, int32_t last);

/* Goes through the words of tokens begin .. end-1. A word may have several tokens. */
static void each_word(const tokenizer *tok, const int32_t *ids, int32_t begin, int32_t end, on_word *take,
                      void *ctx)
{
    uint64_t hash = 0;
    int32_t first = begin, last = begin;
    for (int32_t i = begin; i < end; i++) {
        size_t len = 0;
        bool special = false;
        const char *text = tokenizer_token_bytes(tok, ids[i], &len, &special);
        for (size_t k = 0; k < len + special; k++) {
            const unsigned char b = k < len ? (unsigned char)text[k] : ' ';
            if (!special && (b >= 0x80 || isalnum(b))) {
                first = hash ? first : i;
                last = i;
                hash = ((hash ? hash : 0xcbf29ce484222325u) ^ (uint64_t)tolower(b)) * 0x100000001b3u;
            } else if (hash) {
                take(ctx, hash, first, last);
                hash = 0;
            }
        }
    }
    if (hash) {
        take(ctx, hash, first, last);
    }
}

typedef struct search {
    word *table; /* [TABLE], the question's words */
    size_t n_words;
    float *importance;
    int32_t n_chunks;
} search;

/* Its place, or the free one where it would stand. */
static word *find(const search *s, uint64_t hash)
{
    size_t at = hash % TABLE;
    while (s->table[at].hash && s->table[at].hash != hash) {
        at = (at + 1) % TABLE;
    }
    return &s->table[at];
}

static void ask_for(void *ctx, uint64_t hash, int32_t first, int32_t last)
{
    search *s = ctx;
    word *w = find(s, hash);
    (void)first;
    (void)last;
    if (!w->hash && s->n_words < TABLE / 2) {
        *w = (word){.hash = hash, .last_chunk = -1};
        s->n_words++;
    }
}

static void count(void *ctx, uint64_t hash, int32_t first, int32_t last)
{
    const search *s = ctx;
    word *w = find(s, hash);
    (void)last;
    if (w->hash && w->last_chunk != first / SELECT_CHUNK) {
        w->last_chunk = first / SELECT_CHUNK;
        w->n_chunks++;
    }
}

/* Rare words count more; one that stands everywhere points nowhere. */
static void mark(void *ctx, uint64_t hash, int32_t first, int32_t last)
{
    const search *s = ctx;
    const word *w = find(s, hash);
    for (int32_t i = first; w->hash && i <= last; i++) {
        s->importance[i] = logf((float)s->n_chunks / (float)w->n_chunks);
    }
}

bool lexical_score(float *importance, const tokenizer *tok, const int32_t *ids, int32_t n, double keep)
{
    const int32_t question = n < 8 * QUESTION ? n / 8 : QUESTION;
    search s = {.table = calloc(TABLE, sizeof *s.table),
                .importance = importance,
                .n_chunks = (n + SELECT_CHUNK - 1) / SELECT_CHUNK};
    if (!s.table) {
        return false;
    }
    for (int32_t i = 0; i < n; i++) {
        importance[i] = 0;
    }
    each_word(tok, ids, n - question, n, ask_for, &s);
    each_word(tok, ids, 0, n, count, &s);
    each_word(tok, ids, 0, n, mark, &s);
    free(s.table);
    const int32_t first = (int32_t)(n * keep * FIRST_SHARE), last = (int32_t)(n * keep * LAST_SHARE);
    for (int32_t i = 0; i < first; i++) {
        importance[i] = ALWAYS;
    }
    for (int32_t i = n - (last > 1 ? last : 1); i < n; i++) {
        importance[i] = ALWAYS;
    }
    return true;
}
