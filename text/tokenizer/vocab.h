/* vocab: the token table of a byte-level vocabulary: id -> raw bytes, raw bytes -> id. Immutable
 * once filled; then any thread may read.
 *
 *     vocab v; vocab_init(&v, n_entries, max_id, &detail);
 *     vocab_add(&v, id, "Ġhello", len, VOCAB_BYTE_LEVEL, &detail);     // stored as " hello"
 *     int32_t id = vocab_find(&v, " hello", 6);
 *     vocab_deinit(&v);
 */
#ifndef PARLEY_TEXT_TOKENIZER_VOCAB_H
#define PARLEY_TEXT_TOKENIZER_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

/* How the text of an entry is written: with the byte-to-character table of GPT-2; literally (added
 * tokens); with U+2581 for spaces (SentencePiece); or as a single byte, which is not found by its
 * bytes, because a character may be the same (byte fallback). */
typedef enum vocab_form { VOCAB_BYTE_LEVEL, VOCAB_LITERAL, VOCAB_SPACED, VOCAB_BYTE } vocab_form;

typedef struct vocab_entry {
    size_t offset; /* into blob */
    uint32_t len;
    bool used;
    bool added;   /* literal text; breaks a byte sequence when decoding */
    bool special; /* dropped by skip_special_tokens */
} vocab_entry;

typedef struct vocab {
    bytes blob;           /* all token bytes, one after another */
    vocab_entry *entries; /* [n_ids] */
    int32_t n_ids;
    int32_t *slots; /* hash table of ids, -1 = free; only entries made of mapped bytes */
    size_t n_slots; /* a power of two */
} vocab;

/* Room for n_entries tokens with ids 0..max_id. ERR_NOMEM. */
MUST_CHECK err_code vocab_init(vocab *v, size_t n_entries, int32_t max_id, err_detail *detail);
void vocab_deinit(vocab *v);

/* Stores a token, replacing an earlier text of that id. ERR_INVALID if the id is out of range. */
MUST_CHECK err_code vocab_add(vocab *v, int32_t id, const char *text, size_t len, vocab_form form,
                              err_detail *detail);

/* Id of the (not added) token with exactly these raw bytes, or -1. */
int32_t vocab_find(const vocab *v, const char *raw, size_t len);

/* Turns byte-level characters to raw bytes in out (at least len bytes); false if a character is not
 * in the table. *out_len gets the number of bytes. */
bool vocab_unmap(char *out, size_t *out_len, const char *text, size_t len);
/* Copies text to out (at least len bytes), U+2581 as a space; returns the number of bytes. out may be
 * text. */
size_t vocab_unspace(char *out, const char *text, size_t len);

#endif
