/* gguf_file: checked, read-only mapping of GGUF files, versions 2 and 3. Immutable after opening,
 * so any thread may read.
 *
 *     gguf_file *f; err = gguf_file_open(&f, "model.gguf", &detail);
 *     uint64_t n; bool known = gguf_uint(gguf_find(f, "qwen35.block_count"), &n);
 *     const named_tensor *w = tensor_table_find(gguf_file_tensors(f), "output_norm.weight");
 *     gguf_file_close(f);
 *
 * A file is believed only after everything in its header was checked: magic and version, counts
 * against the bytes that are there, keys, types and lengths of values, names, shapes and their
 * products, whole blocks in a row, and that the tensors lie one behind the other without overlap or
 * gap. The first fault is ERR_CORRUPT and names file and field; what is well formed but not known
 * here (version 1, big-endian numbers, a new type) is ERR_UNSUPPORTED. Shapes come out as
 * everywhere else: rows first (GGUF writes the length of a row first). Views, texts and values stay
 * valid until the file is closed.
 */
#ifndef PARLEY_MODEL_CHECKPOINT_GGUF_FILE_H
#define PARLEY_MODEL_CHECKPOINT_GGUF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/checkpoint/tensor_table.h"

typedef struct gguf_file gguf_file;

MUST_CHECK err_code gguf_file_open(gguf_file **out, const char *path, err_detail *detail);
void gguf_file_close(gguf_file *f); /* NULL allowed */

/* The same of the first n bytes of a file of n_file, in memory, which live as long as what is opened. Its
 * tensors have no data. *is_whole is false where they end inside the header: then there are the values that
 * are whole, and no tensors. */
MUST_CHECK err_code gguf_file_open_head(gguf_file **out, const void *data, size_t n, uint64_t n_file,
                                        const char *path, bool *is_whole, err_detail *detail);

/* ---- metadata ---- */

/* As numbered in the file. */
typedef enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_TEXT,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPES
} gguf_type;

/* One value, or an array of n values of one type (never of arrays). */
typedef struct gguf_value {
    const char *key;
    gguf_type type; /* of the value, or of each element */
    bool is_array;
    uint64_t n;          /* elements; 1 if it is no array */
    const uint8_t *data; /* in the file; unaligned */
} gguf_value;

size_t gguf_n_values(const gguf_file *f);
const gguf_value *gguf_value_at(const gguf_file *f, size_t index); /* in the order of keys */
const gguf_value *gguf_find(const gguf_file *f, const char *key);  /* NULL if there is none */

/* A single value as a whole number >= 0, a number, a truth value or a text; false if v is NULL or
 * something else. Texts are UTF-8 without NUL, and not terminated. */
bool gguf_uint(const gguf_value *v, uint64_t *out);
bool gguf_number(const gguf_value *v, double *out);
bool gguf_bool(const gguf_value *v, bool *out);
bool gguf_text(const gguf_value *v, const char **text, size_t *n);
/* Whether it is this text. */
bool gguf_is_text(const gguf_value *v, const char *expected);

/* Element i of an array of whole numbers, or of numbers. */
bool gguf_int_at(const gguf_value *v, uint64_t i, int64_t *out);
bool gguf_number_at(const gguf_value *v, uint64_t i, double *out);

/* Walks the texts of an array: start with *cursor = v->data and call v->n times. Elements of arrays
 * may hold any bytes (a piece of a token is no character). */
void gguf_next_text(const uint8_t **cursor, const char **text, size_t *n);

/* ---- tensors ---- */

/* With the type names "F32", "Q4_K", "IQ2_XXS" ... A type that layers do not compute with is
 * DTYPE_OTHER. */
const tensor_table *gguf_file_tensors(const gguf_file *f);
/* What is said of such a tensor: ERR_UNSUPPORTED. */
err_code gguf_file_refuse_type(const named_tensor *t, const char *path, err_detail *detail);

/* Part no of count, from split.no and split.count; 0 of 1 for a file that is whole. */
void gguf_file_part(const gguf_file *f, size_t *no, size_t *count);

#endif
