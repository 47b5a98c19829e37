/* gguf_tokenizer: the tokenizer inside a GGUF file, as the text of a tokenizer.json. Loading
 * thread.
 *
 *     bytes text; bytes_init(&text, LIMIT_TOKENIZER_BYTES);
 *     err = gguf_tokenizer_json(&text, file, "model.gguf", &detail);
 */
#ifndef PARLEY_MODEL_CHECKPOINT_GGUF_TOKENIZER_H
#define PARLEY_MODEL_CHECKPOINT_GGUF_TOKENIZER_H

#include "base/bytes.h"
#include "model/checkpoint/gguf_file.h"

/* Appends it. Tokens of type 3 (control) become special added tokens, those of type 4 (user
 * defined) added ones, unused ones (type 5) are left out. ERR_UNSUPPORTED names a kind of tokenizer
 * or of splitting that is not known here, ERR_CORRUPT a value that is missing or wrong. path is for
 * messages. */
MUST_CHECK err_code gguf_tokenizer_json(bytes *out, const gguf_file *f, const char *path, err_detail *detail);

/* The id of the token with exactly this text, or -1. */
int32_t gguf_token_id(const gguf_file *f, const char *text);

#endif
