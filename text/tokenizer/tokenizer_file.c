#include "text/tokenizer/tokenizer_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "text/tokenizer/guard.h"

enum { MAX_ID = 1 << 24 };

/* The expressions found while the pre_tokenizer is read. */
typedef struct splits {
    const char *patterns[PRETOKENIZER_MAX_PATTERNS];
    size_t n;
    bool byte_level;
} splits;

static const char *type_of(const json *v)
{
    return json_str(json_get(v, "type"), "?");
}

/* Whether a step replaces one text by another. */
static bool is_replace(const json *v, const char *from, const char *to)
{
    return strcmp(type_of(v), "Replace") == 0 && strcmp(json_str(json_get(v, "content"), ""), to) == 0 &&
           strcmp(json_str(json_get(json_get(v, "pattern"), "String"), ""), from) == 0;
}

static const char SPACE[] = " ", MARK[] = "\xe2\x96\x81";

/* How spaces become U+2581: by a normalizer (a split at spaces then finds none), which may put one before the
 * text, or by Metaspace. False: they do not. */
static bool read_spaces(space_prefix *prefix, const json *root)
{
    const json *normalizer = json_get(root, "normalizer"), *pre = json_get(root, "pre_tokenizer");
    const json *before = json_child(json_get(normalizer, "normalizers"));
    const bool no_split = !pre || json_is(pre, JSON_NULL) ||
                          (strcmp(type_of(pre), "Split") == 0 &&
                           strcmp(json_str(json_get(json_get(pre, "pattern"), "String"), ""), SPACE) == 0);
    *prefix = SPACE_NONE;
    if (strcmp(type_of(pre), "Metaspace") == 0) {
        const char *scheme = json_str(json_get(pre, "prepend_scheme"), "always");
        *prefix = strcmp(scheme, "first") == 0    ? SPACE_FIRST
                  : strcmp(scheme, "always") == 0 ? SPACE_MISSING
                                                  : SPACE_NONE;
        return (!normalizer || json_is(normalizer, JSON_NULL)) && !json_bool(json_get(pre, "split"), true) &&
               strcmp(json_str(json_get(pre, "replacement"), ""), MARK) == 0;
    }
    if (strcmp(type_of(normalizer), "Sequence") == 0 && strcmp(type_of(before), "Prepend") == 0 &&
        strcmp(json_str(json_get(before, "prepend"), ""), MARK) == 0) {
        *prefix = SPACE_EACH;
        normalizer = json_next(before);
        return no_split && !json_next(normalizer) && is_replace(normalizer, SPACE, MARK);
    }
    return no_split && is_replace(normalizer, SPACE, MARK);
}

/* One space dropped from the beginning. */
static bool is_strip(const json *v)
{
    return strcmp(type_of(v), "Strip") == 0 && strcmp(json_str(json_get(v, "content"), ""), SPACE) == 0 &&
           json_num(json_get(v, "start"), 0) == 1 && json_num(json_get(v, "stop"), 0) == 0;
}

/* SentencePiece's form, as Gemma and Llama 2 have it: spaces become U+2581, characters that are no token
 * become tokens of their bytes, and the way back. */
static bool is_spaced(space_prefix *prefix, const json *root)
{
    const json *first = json_child(json_get(json_get(root, "decoder"), "decoders"));
    const json *second = json_next(first), *third = json_next(second), *last = json_next(third);
    return json_is_true(json_get(json_get(root, "model"), "byte_fallback")) && read_spaces(prefix, root) &&
           is_replace(first, MARK, SPACE) && strcmp(type_of(second), "ByteFallback") == 0 &&
           strcmp(type_of(third), "Fuse") == 0 &&
           (*prefix == SPACE_NONE ? !last : is_strip(last) && !json_next(last));
}

static err_code read_normalizer(tokenizer_parts *p, const json *v, err_detail *detail)
{
    if (!v || json_is(v, JSON_NULL)) {
        return ERR_OK;
    }
    const char *type = type_of(v);
    if (strcmp(type, "NFC") == 0) {
        p->nfc = true;
        return ERR_OK;
    }
    if (strcmp(type, "Sequence") == 0) {
        for (const json *step = json_child(json_get(v, "normalizers")); step; step = json_next(step)) {
            err_code err = read_normalizer(p, step, detail);
            if (err) {
                return err;
            }
        }
        return ERR_OK;
    }
    return err_set(detail, ERR_UNSUPPORTED, "the normalizer \"%s\" is not supported", type);
}

static err_code add_split(splits *s, const char *pattern, err_detail *detail)
{
    if (s->byte_level) {
        return err_set(detail, ERR_UNSUPPORTED, "a split after the ByteLevel step is not supported");
    }
    if (s->n == PRETOKENIZER_MAX_PATTERNS) {
        return err_set(detail, ERR_UNSUPPORTED, "the pre-tokenizer has more than %d splits",
                       PRETOKENIZER_MAX_PATTERNS);
    }
    s->patterns[s->n++] = pattern;
    return ERR_OK;
}

static err_code read_split(splits *s, const json *v, err_detail *detail)
{
    const char *pattern = json_str(json_get(json_get(v, "pattern"), "Regex"), NULL);
    const char *behavior = json_str(json_get(v, "behavior"), "?");
    if (!pattern) {
        return err_set(detail, ERR_UNSUPPORTED, "a Split pre-tokenizer without a Regex is not supported");
    }
    if (strcmp(behavior, "Isolated") != 0 || json_is_true(json_get(v, "invert"))) {
        return err_set(detail, ERR_UNSUPPORTED,
                       "the Split behaviour \"%s\" is not supported; only Isolated, not inverted, is",
                       behavior);
    }
    return add_split(s, pattern, detail);
}

static err_code read_pre_tokenizer(splits *s, const json *v, err_detail *detail)
{
    const char *type = type_of(v);
    if (strcmp(type, "Sequence") == 0) {
        for (const json *step = json_child(json_get(v, "pretokenizers")); step; step = json_next(step)) {
            err_code err = read_pre_tokenizer(s, step, detail);
            if (err) {
                return err;
            }
        }
        return ERR_OK;
    }
    if (strcmp(type, "Split") == 0) {
        return read_split(s, v, detail);
    }
    if (strcmp(type, "ByteLevel") != 0) {
        return err_set(detail, ERR_UNSUPPORTED, "the pre-tokenizer \"%s\" is not supported", type);
    }
    if (json_bool(json_get(v, "add_prefix_space"), true)) {
        return err_set(detail, ERR_UNSUPPORTED, "ByteLevel with add_prefix_space is not supported");
    }
    if (json_bool(json_get(v, "use_regex"), true)) {
        err_code err = add_split(s, PRETOKENIZER_GPT2, detail);
        if (err) {
            return err;
        }
    }
    s->byte_level = true;
    return ERR_OK;
}

static err_code read_pipeline(tokenizer_parts *p, const json *root, err_detail *detail)
{
    if (p->by_characters) {
        return pretokenizer_create(&p->pre, NULL, 0, detail);
    }
    err_code err = read_normalizer(p, json_get(root, "normalizer"), detail);
    splits s = {0};
    if (!err) {
        err = read_pre_tokenizer(&s, json_get(root, "pre_tokenizer"), detail);
    }
    if (!err && !s.byte_level) {
        err = err_set(detail, ERR_UNSUPPORTED, "a pre-tokenizer without a ByteLevel step is not supported");
    }
    const char *decoder = type_of(json_get(root, "decoder"));
    if (!err && strcmp(decoder, "ByteLevel") != 0) {
        err = err_set(detail, ERR_UNSUPPORTED, "the decoder \"%s\" is not supported", decoder);
    }
    return err ? err : pretokenizer_create(&p->pre, s.patterns, s.n, detail);
}

/* Refuses settings of the BPE model that would change its result. */
static err_code check_model(const tokenizer_parts *p, const json *model, err_detail *detail)
{
    static const char *const must_be_off[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                              "unk_token", "byte_fallback"};
    /* where every byte is a token, none is unknown */
    const size_t n_checked = ARRAY_LEN(must_be_off) - (p->by_characters ? 2 : 0);
    const char *type = json_str(json_get(model, "type"), "BPE");
    if (strcmp(type, "BPE") != 0) {
        return err_set(detail, ERR_UNSUPPORTED, "the tokenizer model \"%s\" is not supported", type);
    }
    for (size_t i = 0; i < n_checked; i++) {
        const json *v = json_get(model, must_be_off[i]);
        bool off = !v || json_is(v, JSON_NULL) || (json_is(v, JSON_BOOL) && !json_is_true(v)) ||
                   (json_is(v, JSON_STRING) && *json_str(v, "") == '\0') ||
                   (json_is(v, JSON_NUMBER) && json_num(v, 1) == 0);
        if (!off) {
            return err_set(detail, ERR_UNSUPPORTED, "the BPE setting \"%s\" is not supported",
                           must_be_off[i]);
        }
    }
    return ERR_OK;
}

/* Checks and counts the entries and finds the largest id of vocabulary and added tokens. */
static err_code measure(const json *entries, const json *added, size_t *n, int32_t *max_id,
                        err_detail *detail)
{
    int64_t id, max = -1;
    *n = 0;
    for (const json *e = json_child(entries); e; e = json_next(e), ++*n) {
        if (!json_int(e, 0, MAX_ID, &id)) {
            return err_set(detail, ERR_CORRUPT, "the vocabulary has an entry without a valid id");
        }
        max = id > max ? id : max;
    }
    for (const json *e = json_child(added); e; e = json_next(e), ++*n) {
        if (!json_int(json_get(e, "id"), 0, MAX_ID, &id) || !json_is(json_get(e, "content"), JSON_STRING)) {
            return err_set(detail, ERR_CORRUPT, "an added token has no valid id or no content");
        }
        max = id > max ? id : max;
    }
    if (max < 0) {
        return err_set(detail, ERR_CORRUPT, "the vocabulary is empty");
    }
    *max_id = (int32_t)max;
    return ERR_OK;
}

/* Published vocabularies were cut down to what their texts held: bytes that never stand in UTF-8 or
 * begin the planes beyond the third, and control characters. */
static bool may_be_missing(int byte)
{
    return byte == 0xc0 || byte == 0xc1 || byte > 0xf0 || byte == 0x7f ||
           (byte < ' ' && byte != '\t' && byte != '\n' && byte != '\r');
}

/* The byte of "<0x0A>", or -1. */
static int byte_of(const char *text)
{
    const size_t n_digits = strspn(text + (strncmp(text, "<0x", 3) == 0 ? 3 : 0), "0123456789ABCDEF");
    return strncmp(text, "<0x", 3) == 0 && n_digits == 2 && strcmp(text + 5, ">") == 0
               ? (int)strtol(text + 3, NULL, 16)
               : -1;
}

static err_code read_entry(tokenizer_parts *p, int32_t id, const char *text, err_detail *detail)
{
    const int byte = p->by_characters ? byte_of(text) : -1;
    if (byte < 0) {
        return vocab_add(&p->vocab, id, text, strlen(text),
                         p->by_characters ? VOCAB_SPACED : VOCAB_BYTE_LEVEL, detail);
    }
    const char c = (char)byte;
    p->byte_ids[byte] = id;
    return vocab_add(&p->vocab, id, &c, 1, VOCAB_BYTE, detail);
}

static err_code read_vocab(tokenizer_parts *p, const json *entries, err_detail *detail)
{
    for (int byte = 0; byte < 256; byte++) {
        p->byte_ids[byte] = -1;
    }
    for (const json *e = json_child(entries); e; e = json_next(e)) {
        int64_t id = -1;
        json_int(e, 0, MAX_ID, &id);
        err_code err = read_entry(p, (int32_t)id, json_key(e), detail);
        if (err) {
            return err;
        }
    }
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        if (!p->by_characters) {
            p->byte_ids[byte] = vocab_find(&p->vocab, &c, 1);
        }
        if (p->byte_ids[byte] < 0 && (p->by_characters || !may_be_missing(byte))) {
            return err_set(detail, ERR_CORRUPT, "the vocabulary has no token for byte %d", byte);
        }
    }
    return ERR_OK;
}

/* The two sides of a merge, written as ["a", "b"] or "a b". */
static bool merge_sides(const json *m, const char *sides[2], size_t lens[2])
{
    if (json_is(m, JSON_ARRAY)) {
        const json *a = json_child(m), *b = json_next(a);
        sides[0] = json_str(a, NULL);
        sides[1] = json_str(b, NULL);
        if (!sides[0] || !sides[1] || json_next(b)) {
            return false;
        }
        lens[0] = strlen(sides[0]);
    } else {
        sides[0] = json_str(m, NULL);
        const char *space = sides[0] ? strchr(sides[0], ' ') : NULL;
        if (!space) {
            return false;
        }
        sides[1] = space + 1;
        lens[0] = (size_t)(space - sides[0]);
    }
    lens[1] = strlen(sides[1]);
    return true;
}

/* One side of a merge as bytes; false if it is not written in the vocabulary's form. */
static bool read_side(const tokenizer_parts *p, char *out, size_t *n, const char *text, size_t len)
{
    if (p->by_characters) {
        *n = vocab_unspace(out, text, len);
        return true;
    }
    return vocab_unmap(out, n, text, len);
}

static err_code read_merges(tokenizer_parts *p, const json *merges, err_detail *detail)
{
    enum { TEXT_MAX = 4096 };
    err_code err = bpe_init(&p->bpe, json_len(merges), detail);
    int32_t rank = 0;
    p->words_begin_with_spaces = p->by_characters;
    for (const json *m = json_child(merges); m && !err; m = json_next(m), rank++) {
        const char *sides[2];
        size_t lens[2], n_left = 0, n_right = 0;
        char raw[2 * TEXT_MAX];
        int32_t left = -1, right = -1, id = -1;
        if (merge_sides(m, sides, lens) && lens[0] <= TEXT_MAX && lens[1] <= TEXT_MAX &&
            read_side(p, raw, &n_left, sides[0], lens[0]) &&
            read_side(p, raw + n_left, &n_right, sides[1], lens[1])) {
            left = vocab_find(&p->vocab, raw, n_left);
            right = vocab_find(&p->vocab, raw + n_left, n_right);
            id = vocab_find(&p->vocab, raw, n_left + n_right);
        }
        if (left < 0 || right < 0 || id < 0) {
            return err_set(detail, ERR_CORRUPT, "merge %d is malformed or names a token that does not exist",
                           rank);
        }
        if (raw[n_left] == ' ' && raw[n_left - 1] != ' ') {
            p->words_begin_with_spaces = false;
        }
        bpe_add(&p->bpe, left, right, rank, id);
    }
    return err;
}

/* ---- scores in place of merges ---- */

typedef struct scored {
    double score;
    int32_t id;
} scored;

static int by_score(const void *a, const void *b)
{
    const double x = ((const scored *)a)->score, y = ((const scored *)b)->score;
    return (x < y) - (x > y);
}

/* The pairs of tokens whose texts make that of s[i], for all i in the order of their scores; without a bpe
 * they are counted alone. Tokens of one score have one rank: the leftmost pair is then first. */
static size_t pair_up(tokenizer_parts *p, bpe *b, const scored *s, size_t n)
{
    size_t count = 0;
    int32_t rank = 0;
    for (size_t i = 0; i < n; i++) {
        const vocab_entry *e = &p->vocab.entries[s[i].id];
        const char *text = p->vocab.blob.data + e->offset;
        rank += i > 0 && s[i].score < s[i - 1].score;
        for (size_t k = 1; k < e->len; k++) {
            const int32_t left = vocab_find(&p->vocab, text, k);
            const int32_t right = left < 0 ? -1 : vocab_find(&p->vocab, text + k, e->len - k);
            if (right < 0) {
                continue;
            }
            count++;
            if (b) {
                bpe_add(b, left, right, rank, s[i].id);
                p->words_begin_with_spaces &= text[k] != ' ' || text[k - 1] == ' ';
            }
        }
    }
    return count;
}

static err_code read_scores(tokenizer_parts *p, const json *scores, err_detail *detail)
{
    const vocab *v = &p->vocab;
    scored *s = malloc(((size_t)v->n_ids + 1) * sizeof *s);
    size_t n = 0;
    int32_t id = 0;
    if (!s) {
        return err_set(detail, ERR_NOMEM, "no memory for the scores of %d tokens", v->n_ids);
    }
    for (const json *score = json_child(scores); score && id < v->n_ids; score = json_next(score), id++) {
        const vocab_entry *e = &v->entries[id];
        if (e->used && vocab_find(v, v->blob.data + e->offset, e->len) == id) {
            s[n++] = (scored){json_num(score, 0), id};
        }
    }
    qsort(s, n, sizeof *s, by_score);
    p->words_begin_with_spaces = true;
    err_code err = bpe_init(&p->bpe, pair_up(p, NULL, s, n), detail);
    if (!err) {
        pair_up(p, &p->bpe, s, n);
    }
    free(s);
    return err;
}

/* ---- added tokens ---- */

static err_code read_added_token(tokenizer_parts *p, const json *t, err_detail *detail)
{
    static const char *const must_be_off[] = {"single_word", "lstrip", "rstrip"};
    int64_t id = -1;
    const char *text = json_str(json_get(t, "content"), "");
    json_int(json_get(t, "id"), 0, MAX_ID, &id);
    for (size_t i = 0; i < ARRAY_LEN(must_be_off); i++) {
        if (json_is_true(json_get(t, must_be_off[i]))) {
            return err_set(detail, ERR_UNSUPPORTED, "\"%s\" of added token %d is not supported",
                           must_be_off[i], (int)id);
        }
    }
    size_t len = strlen(text);
    err_code err = vocab_add(&p->vocab, (int32_t)id, text, len, VOCAB_LITERAL, detail);
    if (err) {
        return err;
    }
    bool special = json_is_true(json_get(t, "special"));
    p->vocab.entries[id].special = special;
    /* TRAP: a marker is always cut out of the raw text, even if marked normalized: after
     * guards are gone and the text is normalized, what a user typed could spell one. */
    bool is_marker = special || guard_is_marker(text, len);
    bool late = json_is_true(json_get(t, "normalized")) && !is_marker;
    err = added_tokens_add(late ? &p->normalized : &p->raw, text, len, (int32_t)id, detail);
    return err || !is_marker ? err : added_tokens_add(&p->markers, text, len, (int32_t)id, detail);
}

static err_code read_added(tokenizer_parts *p, const json *added, err_detail *detail)
{
    err_code err = ERR_OK;
    for (const json *t = json_child(added); t && !err; t = json_next(t)) {
        err = read_added_token(p, t, detail);
    }
    added_tokens_sort(&p->raw);
    added_tokens_sort(&p->normalized);
    added_tokens_sort(&p->markers);
    return err;
}

static err_code read_root(tokenizer_parts *p, const json *root, err_detail *detail)
{
    const json *model = json_get(root, "model"), *added = json_get(root, "added_tokens");
    const json *entries = json_get(model, "vocab"), *merges = json_get(model, "merges");
    const json *scores = json_get(model, "scores");
    p->by_characters = is_spaced(&p->prefix, root);
    const bool is_scored = p->by_characters && json_is(scores, JSON_ARRAY);
    if (!json_is(entries, JSON_OBJECT) || (!json_is(merges, JSON_ARRAY) && !is_scored)) {
        const char *type = json_str(json_get(model, "type"), "BPE");
        return strcmp(type, "BPE") == 0
                   ? err_set(detail, ERR_CORRUPT, "model.vocab or model.merges is missing")
                   : err_set(detail, ERR_UNSUPPORTED, "the tokenizer model \"%s\" is not supported", type);
    }
    size_t n = 0;
    int32_t max_id = 0;
    err_code err = check_model(p, model, detail);
    err = err ? err : read_pipeline(p, root, detail);
    err = err ? err : measure(entries, added, &n, &max_id, detail);
    err = err ? err : vocab_init(&p->vocab, n, max_id, detail);
    err = err ? err : read_vocab(p, entries, detail);
    if (!err) {
        err = is_scored ? read_scores(p, scores, detail) : read_merges(p, merges, detail);
    }
    err = err ? err : read_added(p, added, detail);
    p->ignore_merges = json_is_true(json_get(model, "ignore_merges"));
    return err;
}

err_code tokenizer_file_read(tokenizer_parts *p, const json *root, err_detail *detail)
{
    memset(p, 0, sizeof *p);
    err_code err = read_root(p, root, detail);
    if (err) {
        tokenizer_parts_deinit(p);
    }
    return err;
}

void tokenizer_parts_deinit(tokenizer_parts *p)
{
    vocab_deinit(&p->vocab);
    bpe_deinit(&p->bpe);
    pretokenizer_destroy(p->pre);
    added_tokens_deinit(&p->raw);
    added_tokens_deinit(&p->normalized);
    added_tokens_deinit(&p->markers);
    memset(p, 0, sizeof *p);
}
