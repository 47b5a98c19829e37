#include "text/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "text/tokenizer/guard.h"
#include "text/tokenizer/tokenizer_file.h"
#include "base/unicode.h"

struct tokenizer {
    tokenizer_parts parts;
};

/* WORDS: of a text, that are remembered with their ids, as most come again. */
enum { IDS_MIN = 64, RENDERED_FACTOR = 4, WORD_BITS = 10, WORDS = 1 << WORD_BITS, WORD_BYTES = 26 };

/* A word of the text and its ids, which stand in the output since it was first met. */
typedef struct seen_word {
    uint32_t at;
    uint8_t n, len; /* len 0: free */
    char text[WORD_BYTES];
} seen_word;

/* One call of tokenizer_encode. */
typedef struct encode_job {
    const tokenizer *tok;
    const char *begin; /* of the text */
    token_ids *out;
    tokenizer_mode mode;
    pretokenizer_scratch *split;
    bpe_scratch merge;
    seen_word *words;        /* [WORDS] by hash; NULL: no memory, so none is remembered */
    bytes unguarded, normal; /* the slice in work */
} encode_job;

void token_ids_init(token_ids *t)
{
    *t = (token_ids){0};
}

void token_ids_deinit(token_ids *t)
{
    free(t->ids);
    *t = (token_ids){0};
}

static err_code token_ids_reserve(token_ids *t, size_t more)
{
    if (t->cap - t->len >= more) {
        return ERR_OK;
    }
    size_t cap = t->cap ? t->cap : IDS_MIN;
    while (cap - t->len < more) {
        cap *= 2;
    }
    int32_t *ids = realloc(t->ids, cap * sizeof *ids);
    if (!ids) {
        return ERR_NOMEM;
    }
    t->ids = ids;
    t->cap = cap;
    return ERR_OK;
}

err_code token_ids_push(token_ids *t, int32_t id)
{
    err_code err = token_ids_reserve(t, 1);
    if (!err) {
        t->ids[t->len++] = id;
    }
    return err;
}

/* Makes a tokenizer of a document, which is freed, and which messages call `where`. */
static err_code open_doc(tokenizer **out, json_doc *doc, const char *where, err_detail *detail)
{
    tokenizer *tok = malloc(sizeof *tok);
    err_code err = tok ? tokenizer_file_read(&tok->parts, json_root(doc), detail)
                       : err_set(detail, ERR_NOMEM, "no memory for the tokenizer");
    json_free(doc);
    if (err) {
        free(tok);
        return err_prefix(detail, err, "%s", where);
    }
    *out = tok;
    return ERR_OK;
}

err_code tokenizer_open(tokenizer **out, const char *path, err_detail *detail)
{
    json_doc *doc;
    *out = NULL;
    err_code err = json_parse_file(&doc, path, LIMIT_TOKENIZER_BYTES, detail);
    if (err) {
        return err == ERR_INVALID ? ERR_CORRUPT : err;
    }
    return open_doc(out, doc, path, detail);
}

err_code tokenizer_open_json(tokenizer **out, const char *text, size_t len, const char *where,
                             err_detail *detail)
{
    json_doc *doc;
    *out = NULL;
    err_code err = json_parse(&doc, text, len, LIMIT_JSON_DEPTH, detail);
    if (err) {
        return err_prefix(detail, err == ERR_INVALID ? ERR_CORRUPT : err, "%s", where);
    }
    return open_doc(out, doc, where, detail);
}

void tokenizer_close(tokenizer *tok)
{
    if (tok) {
        tokenizer_parts_deinit(&tok->parts);
        free(tok);
    }
}

/* The tokens of the characters of a piece, or of their bytes; returns how many. */
static size_t characters(const tokenizer_parts *p, int32_t *ids, const char *piece, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        uint32_t c;
        char raw[4];
        const size_t n_char = utf8_decode(piece + i, len - i, &c);
        const size_t n_raw = vocab_unspace(raw, piece + i, n_char);
        const int32_t id = vocab_find(&p->vocab, raw, n_raw);
        for (size_t k = 0; id < 0 && k < n_char; k++) {
            ids[n++] = p->byte_ids[(unsigned char)piece[i + k]];
        }
        if (id >= 0) {
            ids[n++] = id;
        }
        i += n_char;
    }
    return n;
}

/* Byte pairs of one piece; the ids go straight to the end of the output. */
static err_code merge_piece(encode_job *job, const char *piece, size_t len, err_detail *detail)
{
    const tokenizer_parts *p = &job->tok->parts;
    if (p->ignore_merges) {
        int32_t id = vocab_find(&p->vocab, piece, len);
        if (id >= 0) {
            return token_ids_push(job->out, id);
        }
    }
    if (token_ids_reserve(job->out, len)) {
        return err_set(detail, ERR_NOMEM, "no memory for the tokens");
    }
    int32_t *ids = job->out->ids + job->out->len;
    size_t n = p->by_characters ? characters(p, ids, piece, len) : 0;
    for (size_t i = 0; !p->by_characters && i < len; i++) {
        const int32_t id = p->byte_ids[(unsigned char)piece[i]];
        ids[n] = id;
        n += id >= 0;
    }
    err_code err = bpe_encode(&p->bpe, &job->merge, ids, &n, detail);
    job->out->len += err ? 0 : n;
    return err;
}

/* Where this word is remembered, or would be; NULL: nowhere. */
static seen_word *find_word(const encode_job *job, const char *piece, size_t len)
{
    uint32_t hash = 0;
    if (!job->words || len > WORD_BYTES) {
        return NULL;
    }
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)piece[i]) * 0x9E3779B1u;
    }
    return &job->words[hash >> (32 - WORD_BITS)];
}

static err_code encode_piece(void *ctx, const char *piece, size_t len, err_detail *detail)
{
    encode_job *job = ctx;
    token_ids *out = job->out;
    const size_t at = out->len;
    seen_word *w = find_word(job, piece, len);
    if (w && w->len == len && memcmp(w->text, piece, len) == 0) {
        if (token_ids_reserve(out, w->n)) {
            return err_set(detail, ERR_NOMEM, "no memory for the tokens");
        }
        memcpy(out->ids + at, out->ids + w->at, w->n * sizeof *out->ids);
        out->len += w->n;
        return ERR_OK;
    }
    const err_code err = merge_piece(job, piece, len, detail);
    if (w && err == ERR_OK && at <= UINT32_MAX) {
        *w = (seen_word){.at = (uint32_t)at, .n = (uint8_t)(out->len - at), .len = (uint8_t)len};
        memcpy(w->text, piece, len);
    }
    return err;
}

/* True if the token text[0..len) was broken by tokenizer_guard. Only a token of a single character
 * can be matched and guarded at once: its guard stands behind it. */
static bool is_guarded(const char *text, size_t len, size_t token_len)
{
    uint32_t c;
    return utf8_decode(text, len, &c) == token_len && len - token_len >= GUARD_LEN &&
           memcmp(text + token_len, GUARD_CHAR, GUARD_LEN) == 0;
}

/* Called for the text between added tokens. */
typedef err_code (*slice_fn)(encode_job *job, const char *text, size_t len, err_detail *detail);

/* Cuts the added tokens of `set` out of the text, the leftmost and longest first. */
static err_code cut_added(encode_job *job, const added_tokens *set, const char *text, size_t len,
                          slice_fn between, err_detail *detail)
{
    size_t done = 0;
    err_code err = ERR_OK;
    for (size_t i = 0; (i = added_tokens_next(set, text, i, len)) < len && !err;) {
        int32_t id;
        size_t n = added_tokens_match(set, text + i, len - i, &id);
        if (n == 0 || is_guarded(text + i, len - i, n)) {
            i++;
            continue;
        }
        err = between(job, text + done, i - done, detail);
        if (!err) {
            err = token_ids_push(job->out, id);
        }
        i += n;
        done = i;
    }
    return err ? err : between(job, text + done, len - done, detail);
}

/* Whether a space, or the character that stands for one, begins at i. */
static bool is_space_at(const char *text, size_t i, size_t len)
{
    return text[i] == ' ' || (len - i >= 3 && memcmp(text + i, "\xe2\x96\x81", 3) == 0);
}

/* Cut before each run of spaces: nothing is merged across. */
static err_code encode_spaced(encode_job *job, const char *text, size_t len, err_detail *detail)
{
    size_t done = 0;
    bool in_run = is_space_at(text, 0, len);
    err_code err = ERR_OK;
    for (size_t i = 0; i < len && !err;) {
        uint32_t c;
        const bool space = is_space_at(text, i, len);
        if (space && !in_run) {
            err = encode_piece(job, text + done, i - done, detail);
            done = i;
        }
        in_run = space;
        i += utf8_decode(text + i, len - i, &c);
    }
    return err ? err : encode_piece(job, text + done, len - done, detail);
}

static err_code encode_words(encode_job *job, const char *text, size_t len, err_detail *detail)
{
    if (len == 0) {
        return ERR_OK;
    }
    if (job->tok->parts.words_begin_with_spaces) {
        return encode_spaced(job, text, len, detail);
    }
    return pretokenizer_split(job->tok->parts.pre, job->split, text, len, encode_piece, job, detail);
}

/* Whether a space goes before a slice. */
static bool lacks_space(const tokenizer_parts *p, const char *text, size_t len, bool is_first)
{
    return p->prefix == SPACE_EACH || (p->prefix == SPACE_MISSING && !is_space_at(text, 0, len)) ||
           (p->prefix == SPACE_FIRST && is_first && !is_space_at(text, 0, len));
}

/* A slice of raw text: guards off, normalized, late added tokens cut out, then words. */
static err_code encode_slice(encode_job *job, const char *text, size_t len, err_detail *detail)
{
    const tokenizer_parts *p = &job->tok->parts;
    const bool is_first = text == job->begin;
    if (len == 0) {
        return ERR_OK;
    }
    if (guard_find(text, len)) {
        bytes_clear(&job->unguarded);
        guard_strip(&job->unguarded, text, len);
        text = bytes_str(&job->unguarded);
        len = job->unguarded.len;
    }
    if (p->nfc && !unicode_surely_nfc(text, len)) {
        bytes_clear(&job->normal);
        unicode_nfc(&job->normal, text, len);
        text = bytes_str(&job->normal);
        len = job->normal.len;
    }
    if (lacks_space(p, text, len, is_first)) { /* such a form has no NFC */
        bytes_clear(&job->normal);
        bytes_append_char(&job->normal, ' ');
        bytes_append(&job->normal, text, len);
        text = bytes_str(&job->normal);
        len = job->normal.len;
    }
    if (job->unguarded.failed || job->normal.failed) {
        return err_set(detail, ERR_NOMEM, "no memory to normalize the text");
    }
    if (job->mode == TOKENIZER_SPECIALS && p->normalized.len > 0) {
        return cut_added(job, &p->normalized, text, len, encode_words, detail);
    }
    return encode_words(job, text, len, detail);
}

err_code tokenizer_encode(const tokenizer *tok, token_ids *out, const char *text, size_t len,
                          tokenizer_mode mode, err_detail *detail)
{
    if (len == 0) {
        return ERR_OK;
    }
    if (len > LIMIT_RENDERED_BYTES) {
        return err_set(detail, ERR_LIMIT, "a text of %zu bytes is too long; at most %zu are allowed", len,
                       LIMIT_RENDERED_BYTES);
    }
    if (!utf8_valid(text, len)) {
        return err_set(detail, ERR_INVALID, "the text is not valid UTF-8");
    }
    encode_job job = {
        .tok = tok, .begin = text, .out = out, .mode = mode, .words = calloc(WORDS, sizeof *job.words)};
    bytes_init(&job.unguarded, len);
    bytes_init(&job.normal, RENDERED_FACTOR * len);
    size_t len_before = out->len;
    err_code err = pretokenizer_scratch_create(&job.split, tok->parts.pre, detail);
    if (!err) {
        err = mode == TOKENIZER_SPECIALS ? cut_added(&job, &tok->parts.raw, text, len, encode_slice, detail)
                                         : encode_slice(&job, text, len, detail);
    }
    if (err) {
        out->len = len_before;
    }
    pretokenizer_scratch_destroy(job.split);
    bpe_scratch_deinit(&job.merge);
    free(job.words);
    bytes_deinit(&job.unguarded);
    bytes_deinit(&job.normal);
    return err;
}

const added_tokens *tokenizer_markers(const tokenizer *tok)
{
    return &tok->parts.markers;
}

void tokenizer_guard(const tokenizer *tok, bytes *out, const char *text, size_t len)
{
    guard_text(&(guard){{&tok->parts.markers}}, out, text, len);
}

const char *tokenizer_token_bytes(const tokenizer *tok, int32_t id, size_t *len, bool *special)
{
    const vocab *v = &tok->parts.vocab;
    *len = 0;
    if (special) {
        *special = false;
    }
    if (id < 0 || id >= v->n_ids || !v->entries[id].used) {
        return NULL;
    }
    *len = v->entries[id].len;
    if (special) {
        *special = v->entries[id].special;
    }
    return v->blob.data + v->entries[id].offset;
}

/* Appends raw bytes as UTF-8, U+FFFD for each ill-formed part. */
static void append_lossy(bytes *out, const char *raw, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t c;
        i += utf8_decode(raw + i, len - i, &c);
        char buf[4];
        bytes_append(out, buf, utf8_encode(buf, c));
    }
}

void tokenizer_decode(const tokenizer *tok, bytes *out, const int32_t *ids, size_t n, bool skip_special)
{
    bytes raw; /* bytes since the last added token: characters may span tokens */
    bool drops_space = tok->parts.prefix != SPACE_NONE;
    bytes_init(&raw, out->max);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        bool special;
        const char *text = tokenizer_token_bytes(tok, ids[i], &len, &special);
        if (!text || (special && skip_special)) {
            continue;
        }
        if (tok->parts.vocab.entries[ids[i]].added) {
            append_lossy(out, bytes_str(&raw), raw.len);
            bytes_clear(&raw);
            bytes_append(out, text, len);
        } else {
            const size_t dropped = drops_space && len > 0 && text[0] == ' ';
            bytes_append(&raw, text + dropped, len - dropped);
        }
        drops_space = drops_space && len == 0;
    }
    append_lossy(out, bytes_str(&raw), raw.len);
    bytes_fail_as(out, &raw);
    bytes_deinit(&raw);
}

int32_t tokenizer_added_id(const tokenizer *tok, const char *text)
{
    const added_tokens *sets[] = {&tok->parts.raw, &tok->parts.normalized};
    for (size_t k = 0; k < ARRAY_LEN(sets); k++) {
        int32_t id = -1;
        size_t len = strlen(text);
        if (added_tokens_match(sets[k], text, len, &id) == len && len > 0) {
            return id;
        }
    }
    return -1;
}

int32_t tokenizer_n_tokens(const tokenizer *tok)
{
    return tok->parts.vocab.n_ids;
}
