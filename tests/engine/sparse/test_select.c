/* Which tokens a choice keeps, and what the words of a question point to. */
#include "engine/sparse/lexical.h"
#include "engine/sparse/select.h"

#include <ctype.h>

#include "base/compiler.h"
#include "tests/check.h"

enum { N = 1000, CHUNK = 32 };

static int32_t kept[N], n_kept;
static select_chunk order[N];

static void choose(const float *importance, int32_t n, double keep, double backbone, int32_t tail)
{
    const select_choice choice = {.chunk = CHUNK, .keep = keep, .backbone = backbone, .tail = tail};
    n_kept = select_tokens(kept, order, importance, n, &choice);
    for (int32_t i = 1; i < n_kept; i++) {
        CHECK(kept[i] > kept[i - 1]);
    }
    CHECK(n_kept >= 1 && n_kept <= n && kept[0] >= 0 && kept[n_kept - 1] < n);
}

static bool has(int32_t token)
{
    for (int32_t i = 0; i < n_kept; i++) {
        if (kept[i] == token) {
            return true;
        }
    }
    return false;
}

static void test_counts(void)
{
    float rising[N], same[N] = {0};
    for (int32_t i = 0; i < N; i++) {
        rising[i] = (float)i;
    }
    choose(rising, N, 0.25, 0, 0); /* 8 chunks with the short last one are 232 tokens: one more */
    CHECK_INT(n_kept, 8 + 8 * CHUNK);
    CHECK(has(N - 1) && !has(0));
    choose(same, N, 0.25, 0, 0); /* equal ones: the first */
    CHECK_INT(n_kept, 256);
    CHECK_INT(kept[255], 255);
    choose(same, N, 1.0, 0, 0);
    CHECK_INT(n_kept, N);
    choose(same, N, 1e-6, 0, 0);
    CHECK_INT(n_kept, CHUNK);
    choose(same, 1, 0.5, 0, 0);
    CHECK_INT(n_kept, 1);
    CHECK_NEAR(select_share(0.3f), 0.3, 0);
    choose(same, 10 * CHUNK, select_share(0.3f), 0, 0); /* not ten times 0.30000001, rounded up */
    CHECK_INT(n_kept, 3 * CHUNK);
}

static void test_tail(void)
{
    float falling[N];
    for (int32_t i = 0; i < N; i++) {
        falling[i] = (float)(N - i);
    }
    choose(falling, N, 0.1, 0, 5);
    CHECK_INT(n_kept, 4 * CHUNK + 5);
    CHECK_INT(kept[n_kept - 5], N - 5);
    choose(falling, N, 0.1, 0, 1);
    CHECK_INT(n_kept, 4 * CHUNK + 1);
    CHECK_INT(kept[n_kept - 1], N - 1);
    choose(falling, N, 0.1, 0, N + 7); /* longer than all there is */
    CHECK_INT(n_kept, N);
    float rising[N];
    for (int32_t i = 0; i < N; i++) {
        rising[i] = (float)i;
    }
    choose(rising, N, 0.1, 0, 3); /* it is in a chunk that is kept anyway */
    CHECK_INT(n_kept, 8 + 3 * CHUNK);
}

static void test_backbone(void)
{
    float falling[N];
    for (int32_t i = 0; i < N; i++) {
        falling[i] = (float)(N - i);
    }
    choose(falling, N, 0.25, 0.125, 0); /* four of the eight chunks stand at even distances */
    CHECK(has(4 * CHUNK) && has(12 * CHUNK) && has(20 * CHUNK) && has(28 * CHUNK));
    CHECK(has(0) && has(3 * CHUNK) && !has(5 * CHUNK));
    CHECK_INT(n_kept, 8 * CHUNK);
    choose(falling, N, 0.25, 1.0, 0); /* never more than is kept */
    CHECK_INT(n_kept, 8 * CHUNK);
    CHECK(has(2 * CHUNK) && has(30 * CHUNK) && !has(0));
}

static void test_gather(void)
{
    int32_t ids[] = {10, 11, 12, 13, 14};
    position positions[5];
    for (int32_t i = 0; i < 5; i++) {
        positions[i] = (position){i, i, i};
    }
    select_gather(ids, positions, (const int32_t[]){1, 2, 4}, 3);
    CHECK(ids[0] == 11 && ids[1] == 12 && ids[2] == 14);
    CHECK(positions[0].t == 1 && positions[1].h == 2 && positions[2].w == 4);
}

/* A long text of common words with one fact in it, and a question for that fact. */
static void test_lexical(void)
{
    tokenizer *tok = NULL;
    token_ids ids;
    err_detail d = {0};
    char text[16384] = "";
    size_t len = 0;
    CHECK_OK(tokenizer_open(&tok, check_data("tiny/tokenizer.json"), &d), d);
    token_ids_init(&ids);
    for (int i = 0; i < 200; i++) {
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "the birds sing over the house and the tree. ");
        if (i == 120) {
            len += (size_t)snprintf(text + len, sizeof text - len, "The password is Zanzibar-77. ");
        }
    }
    snprintf(text + len, sizeof text - len, "What is the PASSWORD?");
    CHECK_OK(tokenizer_encode(tok, &ids, text, strlen(text), TOKENIZER_PLAIN, &d), d);
    const int32_t n = (int32_t)ids.len;
    float *importance = calloc(ids.len, sizeof *importance);
    int32_t *all = calloc(ids.len, sizeof *all);
    select_chunk *chunks = calloc(ids.len, sizeof *chunks);
    CHECK(importance && all && chunks && n > 1500);
    CHECK(lexical_score(importance, tok, ids.ids, n, 0.1));
    const select_choice choice = {.chunk = CHUNK, .keep = 0.1};
    const int32_t n_all = select_tokens(all, chunks, importance, n, &choice);
    token_ids left;
    bytes told;
    token_ids_init(&left);
    bytes_init(&told, 1 << 20);
    for (int32_t i = 0; i < n_all; i++) {
        CHECK_INT(token_ids_push(&left, ids.ids[all[i]]), 0);
    }
    tokenizer_decode(tok, &told, left.ids, left.len, true);
    CHECK(strstr(bytes_str(&told), "Zanzibar-77") != NULL);   /* what was asked for */
    CHECK(strncmp(bytes_str(&told), "the birds", 9) == 0);    /* the beginning */
    CHECK(strstr(bytes_str(&told), "the PASSWORD?") != NULL); /* the end */
    CHECK(n_all <= n / 10 + 2 * CHUNK);
    CHECK(lexical_score(importance, tok, ids.ids, 1, 0.1)); /* as short as can be */
    free(importance);
    free(all);
    free(chunks);
    bytes_deinit(&told);
    token_ids_deinit(&left);
    token_ids_deinit(&ids);
    tokenizer_close(tok);
}

/* ---- words beside a plain search ---- */

enum { WORDS_MAX = 1024, WORD_CHARS = 256, MOST_TOKENS = 4096, QUESTION = 256, PLACES = 1024 };

typedef struct plain_word {
    char text[WORD_CHARS];
    int32_t first, last;
} plain_word;

/* The words of tokens begin .. end-1, in small letters. */
static size_t plain_words(plain_word *out, const tokenizer *tok, const int32_t *ids, int32_t begin,
                          int32_t end)
{
    size_t n = 0, len = 0;
    for (int32_t i = begin; i <= end; i++) {
        size_t n_bytes = 0;
        bool special = false;
        const char *text = i < end ? tokenizer_token_bytes(tok, ids[i], &n_bytes, &special) : NULL;
        for (size_t k = 0; k < n_bytes || (k == 0 && (i == end || special)); k++) {
            const unsigned char b = i < end && !special ? (unsigned char)text[k] : ' ';
            if (b >= 0x80 || isalnum(b)) {
                out[n].first = len ? out[n].first : i;
                out[n].last = i;
                out[n].text[len++] = (char)tolower(b);
                out[n].text[len] = '\0';
            } else if (len > 0) {
                n++;
                len = 0;
            }
        }
    }
    return n;
}

/* The importance of each token is what the words that they spell say. */
static void check_words(const tokenizer *tok, const int32_t *ids, int32_t n, double keep)
{
    static plain_word all[MOST_TOKENS], asked[WORDS_MAX];
    static float want[MOST_TOKENS], importance[MOST_TOKENS];
    const int32_t question = n < 8 * QUESTION ? n / 8 : QUESTION, n_chunks = (n + CHUNK - 1) / CHUNK;
    const size_t n_all = plain_words(all, tok, ids, 0, n),
                 n_asked = plain_words(asked, tok, ids, n - question, n);
    memset(want, 0, sizeof want);
    memset(importance, 0x7f, sizeof importance);
    for (size_t i = 0; i < n_all; i++) {
        bool is_asked = false;
        int32_t n_with = 0, last_chunk = -1;
        for (size_t k = 0; k < n_asked; k++) {
            is_asked = is_asked || strcmp(asked[k].text, all[i].text) == 0;
        }
        for (size_t k = 0; k < n_all; k++) { /* chunks in which it begins */
            if (all[k].first / CHUNK != last_chunk && strcmp(all[k].text, all[i].text) == 0) {
                last_chunk = all[k].first / CHUNK;
                n_with++;
            }
        }
        for (int32_t t = all[i].first; is_asked && t <= all[i].last; t++) {
            want[t] = logf((float)n_chunks / (float)n_with);
        }
    }
    const int32_t first = (int32_t)(n * keep / 8), last = (int32_t)(n * keep / 4);
    for (int32_t i = 0; i < n; i++) {
        want[i] = i < first || i >= n - (last > 1 ? last : 1) ? 1e6f : want[i];
    }
    CHECK(lexical_score(importance, tok, ids, n, keep));
    for (int32_t i = 0; i < n && !check_failures; i++) {
        CHECK_NEAR(importance[i], want[i], 1e-6);
    }
}

/* A question in which each token is another word: tokens that begin with a space, from longer ones on. */
static void check_many_words(const tokenizer *tok)
{
    static int32_t ids[MOST_TOKENS];
    int32_t n_words = 0;
    for (int32_t id = tokenizer_n_tokens(tok) - 1; id >= 0 && n_words < QUESTION; id--) {
        size_t len = 0;
        bool special = false;
        const char *text = tokenizer_token_bytes(tok, id, &len, &special);
        if (text && !special && len > 2 && text[0] == ' ' && isalpha((unsigned char)text[1])) {
            ids[n_words++] = id;
        }
    }
    CHECK(n_words > QUESTION / 2);
    for (int32_t i = n_words; i < MOST_TOKENS; i++) {
        ids[i] = ids[(i * 5 + i / n_words) % n_words];
    }
    check_words(tok, ids, MOST_TOKENS, 0.1);
}

static void test_words(void)
{
    static const char *const PARTS[] = {" ",  "the",      "The ",     "house", "s",    "42",        "-",
                                        ", ", "Zanzibar", "\xc3\xa9", "x",     "\n",   "bird",      " a",
                                        ". ", "ly",       "QED",      "_",     "tree", "<|im_end|>"};
    tokenizer *tok = NULL;
    err_detail d = {0};
    uint32_t x = 3;
    CHECK_OK(tokenizer_open(&tok, check_data("tiny/tokenizer.json"), &d), d);
    for (int round = 0; round < 12; round++) {
        static char text[16384];
        token_ids ids;
        size_t len = 0;
        token_ids_init(&ids);
        const size_t n_parts = round < 6 ? 20 + 60 * (size_t)round : 1600;
        for (size_t i = 0; i < n_parts; i++) {
            x = x * 1664525u + 1013904223u;
            const char *part = PARTS[(x >> 16) % ARRAY_LEN(PARTS)];
            memcpy(text + len, part, strlen(part));
            len += strlen(part);
        }
        CHECK_OK(tokenizer_encode(tok, &ids, text, len, TOKENIZER_SPECIALS, &d), d);
        CHECK(ids.len > 0 && ids.len <= MOST_TOKENS);
        check_words(tok, ids.ids, (int32_t)ids.len, 0.05 * round);
        token_ids_deinit(&ids);
    }
    check_many_words(tok);
    tokenizer_close(tok);
}

int main(void)
{
    test_words();
    test_counts();
    test_tail();
    test_backbone();
    test_gather();
    test_lexical();
    CHECK_DONE();
}
