/* Tokenizers of GGUF files that hold scores in place of merges (tokenizer.ggml.model "llama"), against the
 * definition: of all neighbours whose joined text is a token, those of the highest score are joined, the
 * leftmost first, until there are none; what is no token then is its bytes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "model/checkpoint/gguf_tokenizer.h"
#include "tests/folder.h"
#include "tests/model/checkpoint/gguf_maker.h"
#include "text/tokenizer/tokenizer.h"

#define MARK "\xe2\x96\x81"

/* UNKNOWN, BOS, EOS, then the bytes, then pieces. */
enum { BOS = 1, EOS = 2, BYTES = 3, PIECES = BYTES + 256, MOST = 1200, PIECE_BYTES = 40, TEXT_BYTES = 400 };
enum { KIND_NORMAL = 1, KIND_UNKNOWN = 2, KIND_CONTROL = 3, KIND_BYTE = 6 };

typedef struct vocabulary {
    int32_t n;
    char text[MOST][PIECE_BYTES];
    float score[MOST];
} vocabulary;

static char folder[FOLDER_NAME];
static uint32_t noise;

/* 0 .. n-1 */
static int32_t random_below(int32_t n)
{
    noise = noise * 1664525u + 1013904223u;
    return (int32_t)((noise >> 8) % (uint32_t)n);
}

static int32_t find(const vocabulary *v, const char *text, size_t n)
{
    for (int32_t i = PIECES; i < v->n; i++) {
        if (strlen(v->text[i]) == n && memcmp(v->text[i], text, n) == 0) {
            return i;
        }
    }
    return -1;
}

/* All characters of the alphabet, then pieces joined of others, with scores of which some are equal. */
static void make_vocabulary(vocabulary *v, unsigned seed)
{
    static const char *const alphabet[] = {MARK, "a", "b", "c", "\xc3\xa9", "\xe4\xb8\xad", "\n"};
    memset(v, 0, sizeof *v);
    noise = seed;
    snprintf(v->text[0], PIECE_BYTES, "<unk>");
    snprintf(v->text[BOS], PIECE_BYTES, "<s>");
    snprintf(v->text[EOS], PIECE_BYTES, "</s>");
    for (int byte = 0; byte < 256; byte++) {
        snprintf(v->text[BYTES + byte], PIECE_BYTES, "<0x%02X>", byte);
    }
    v->n = PIECES;
    for (size_t i = 0; i < ARRAY_LEN(alphabet); i++) {
        v->score[v->n] = -1000;
        snprintf(v->text[v->n++], PIECE_BYTES, "%s", alphabet[i]);
    }
    for (int tries = 0; tries < 900; tries++) {
        char joined[2 * PIECE_BYTES];
        const int32_t a = PIECES + random_below(v->n - PIECES), b = PIECES + random_below(v->n - PIECES);
        const int n = snprintf(joined, sizeof joined, "%s%s", v->text[a], v->text[b]);
        if (n < 13 && find(v, joined, (size_t)n) < 0) {
            v->score[v->n] = (float)-random_below(200);
            memcpy(v->text[v->n++], joined, (size_t)n + 1);
        }
    }
}

static tokenizer *open_vocabulary(const vocabulary *v, const bool *prefix, err_code expected, int fault)
{
    char path[FOLDER_NAME + 16];
    gguf_maker m;
    gguf_file *f = NULL;
    tokenizer *tok = NULL;
    bytes json;
    err_detail d = {0};
    snprintf(path, sizeof path, "%s/v.gguf", folder);
    bytes_init(&json, 1 << 24);
    maker_init(&m);
    maker_text(&m, "tokenizer.ggml.model", "llama");
    maker_array(&m, "tokenizer.ggml.tokens", GGUF_TEXT, (uint64_t)v->n);
    for (int32_t i = 0; i < v->n; i++) {
        put_text(&m.values, v->text[i]);
    }
    if (fault != 1) {
        const int32_t n = v->n - (fault == 2);
        maker_array(&m, "tokenizer.ggml.scores", GGUF_F32, (uint64_t)n);
        for (int32_t i = 0; i < n; i++) {
            const float score = fault == 3 && i == 300 ? (float)NAN : v->score[i];
            bytes_append(&m.values, &score, sizeof score);
        }
    }
    maker_array(&m, "tokenizer.ggml.token_type", GGUF_I32, (uint64_t)v->n);
    for (int32_t i = 0; i < v->n; i++) {
        put_number(&m.values,
                   i == 0       ? KIND_UNKNOWN
                   : i <= EOS   ? KIND_CONTROL
                   : i < PIECES ? KIND_BYTE
                                : KIND_NORMAL,
                   4);
    }
    if (prefix) {
        maker_bool(&m, "tokenizer.ggml.add_space_prefix", *prefix);
    }
    maker_write(&m, path);
    CHECK_OK(gguf_file_open(&f, path, &d), d);
    CHECK_INT(gguf_tokenizer_json(&json, f, path, &d), expected);
    if (expected == ERR_OK) {
        CHECK_OK(tokenizer_open_json(&tok, bytes_str(&json), json.len, path, &d), d);
    } else {
        CHECK(strstr(d.text, "tokenizer.ggml.scores") != NULL);
    }
    gguf_file_close(f);
    bytes_deinit(&json);
    return tok;
}

/* The definition, for a text without markers. */
static size_t tokens_of(const vocabulary *v, int32_t *ids, const char *text, bool prefix)
{
    static char symbols[TEXT_BYTES][TEXT_BYTES];
    size_t n = 0, n_ids = 0;
    if (prefix && *text) {
        snprintf(symbols[n++], TEXT_BYTES, MARK);
    }
    for (size_t at = 0, len = strlen(text); at < len;) {
        uint32_t c;
        const size_t k = utf8_decode(text + at, len - at, &c);
        snprintf(symbols[n++], TEXT_BYTES, "%.*s", text[at] == ' ' ? 3 : (int)k,
                 text[at] == ' ' ? MARK : text + at);
        at += k;
    }
    for (;;) {
        size_t best = n;
        float score = 0;
        char joined[2 * TEXT_BYTES];
        for (size_t i = 0; i + 1 < n; i++) {
            const int len = snprintf(joined, sizeof joined, "%s%s", symbols[i], symbols[i + 1]);
            const int32_t id = find(v, joined, (size_t)len);
            if (id >= 0 && (best == n || v->score[id] > score)) {
                best = i;
                score = v->score[id];
            }
        }
        if (best == n) {
            break;
        }
        snprintf(joined, sizeof joined, "%s%s", symbols[best], symbols[best + 1]);
        memcpy(symbols[best], joined, strlen(joined) + 1);
        n--;
        memmove(symbols[best + 1], symbols[best + 2], (n - best - 1) * TEXT_BYTES);
    }
    for (size_t i = 0; i < n; i++) {
        const int32_t id = find(v, symbols[i], strlen(symbols[i]));
        for (size_t k = 0; id < 0 && symbols[i][k]; k++) {
            ids[n_ids++] = BYTES + (unsigned char)symbols[i][k];
        }
        if (id >= 0) {
            ids[n_ids++] = id;
        }
    }
    return n_ids;
}

static void check_text(const vocabulary *v, const tokenizer *tok, const char *text, bool prefix)
{
    int32_t expected[4 * TEXT_BYTES];
    const size_t n = tokens_of(v, expected, text, prefix);
    err_detail d = {0};
    token_ids ids;
    bytes back;
    token_ids_init(&ids);
    bytes_init(&back, 1 << 16);
    CHECK_OK(tokenizer_encode(tok, &ids, text, strlen(text), TOKENIZER_SPECIALS, &d), d);
    const bool same = ids.len == n && (n == 0 || memcmp(ids.ids, expected, n * sizeof *expected) == 0);
    if (!same) {
        fprintf(stderr, "  \"%s\": %zu tokens, should be %zu\n", text, ids.len, n);
    }
    CHECK(same);
    tokenizer_decode(tok, &back, ids.ids, ids.len, false);
    CHECK_STR(bytes_str(&back), text);
    token_ids_deinit(&ids);
    bytes_deinit(&back);
}

static void check_vocabulary(unsigned seed, bool prefix)
{
    static const char *const parts[] = {" ", "a", "b",        "c", "\xc3\xa9", "\xe4\xb8\xad",    "\n",
                                        "a", "b", "\xc3\xb6", "x", "  ",       "\xf0\x9f\x99\x82"};
    static vocabulary v;
    make_vocabulary(&v, seed);
    tokenizer *tok = open_vocabulary(&v, &prefix, ERR_OK, 0);
    for (int i = 0; tok && i < 60; i++) {
        char text[TEXT_BYTES] = "";
        for (int n = random_below(60); n > 0; n--) {
            const size_t used = strlen(text);
            snprintf(text + used, sizeof text - used, "%s", parts[random_below((int32_t)ARRAY_LEN(parts))]);
        }
        check_text(&v, tok, text, prefix);
    }
    tokenizer_close(tok);
}

/* A space goes before the text behind each marker; without a word in the file too. */
static void test_markers(void)
{
    static vocabulary v;
    int32_t expected[16] = {BOS}, tail[8];
    err_detail d = {0};
    token_ids ids;
    make_vocabulary(&v, 1);
    tokenizer *tok = open_vocabulary(&v, NULL, ERR_OK, 0);
    size_t n = 1 + tokens_of(&v, expected + 1, "ab", true);
    expected[n++] = EOS;
    const size_t n_tail = tokens_of(&v, tail, " c", true);
    memcpy(expected + n, tail, n_tail * sizeof *tail);
    n += n_tail;
    token_ids_init(&ids);
    CHECK_OK(tokenizer_encode(tok, &ids, "<s>ab</s> c", 11, TOKENIZER_SPECIALS, &d), d);
    CHECK(ids.len == n && memcmp(ids.ids, expected, n * sizeof *expected) == 0);
    token_ids_deinit(&ids);
    tokenizer_close(tok);
    for (int fault = 1; fault <= 3; fault++) {
        CHECK(open_vocabulary(&v, NULL, ERR_CORRUPT, fault) == NULL);
    }
}

int main(void)
{
    folder_make(folder);
    for (unsigned seed = 1; seed <= 6; seed++) {
        check_vocabulary(seed, seed % 2 == 0);
    }
    test_markers();
    CHECK_DONE();
}
