/* tokenizer_file: reads the document tokenizer.json into the parts of a tokenizer. Used by
 * tokenizer.c alone.
 *
 *     tokenizer_parts p;
 *     err_code err = tokenizer_file_read(&p, json_root(doc), &detail);
 *     tokenizer_parts_deinit(&p);
 *
 * A step of the file's pipeline that is not known is ERR_UNSUPPORTED and named; nothing is skipped
 * silently. Where a model of SentencePiece's form has `scores` (a number for each id) in place of merges,
 * as GGUF files do, two neighbours become the token that their texts make, the highest score first.
 */
#ifndef PARLEY_TEXT_TOKENIZER_TOKENIZER_FILE_H
#define PARLEY_TEXT_TOKENIZER_TOKENIZER_FILE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/pretokenizer.h"
#include "text/tokenizer/vocab.h"

/* The space that SentencePiece puts before a text: before each part between added tokens, before each that
 * does not begin with one, or before the first if it does not. */
typedef enum space_prefix { SPACE_NONE, SPACE_EACH, SPACE_MISSING, SPACE_FIRST } space_prefix;

typedef struct tokenizer_parts {
    vocab vocab;
    bpe bpe;
    int32_t byte_ids[256]; /* token of each single byte; -1: none, it is left out */
    bool nfc;              /* the normalizer is NFC */
    /* SentencePiece's form: symbols are characters, and bytes for those that are no token */
    bool by_characters;
    space_prefix prefix;          /* and decoding drops a space at the beginning */
    bool words_begin_with_spaces; /* no merge joins a space to what is before it, unless that is one */
    bool ignore_merges;           /* a piece that is a token needs no merging */
    pretokenizer *pre;
    added_tokens raw;        /* cut out of the text as it is */
    added_tokens normalized; /* cut out after normalization */
    added_tokens markers;    /* those that only a template may write; a subset of raw */
} tokenizer_parts;

/* ERR_CORRUPT (a member is missing or wrong), ERR_UNSUPPORTED (named), ERR_NOMEM. On an error p is
 * empty. */
MUST_CHECK err_code tokenizer_file_read(tokenizer_parts *p, const json *root, err_detail *detail);
void tokenizer_parts_deinit(tokenizer_parts *p);

#endif
