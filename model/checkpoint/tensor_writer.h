/* tensor_writer: writes a safetensors file, rows quantized on the way. Loading thread.
 *
 *     writer_entry entries[] = {{"head.q8", &head, DTYPE_Q8}, {"norm", &norm, DTYPE_F32}};
 *     err = tensor_write(path, entries, 2, compute, &progress, &detail);
 *
 * The file appears under its name only when it is whole and on the disk; its room is taken before
 * anything is written, so a full disk is found at once.
 */
#ifndef PARLEY_MODEL_CHECKPOINT_TENSOR_WRITER_H
#define PARLEY_MODEL_CHECKPOINT_TENSOR_WRITER_H

#include "base/err.h"
#include "compute/nn.h"
#include "compute/tensor.h"

enum { WRITER_NAME_MAX = 600 };

/* `to` is Q8, Q4 or Q5: a matrix of floats goes into blocks, stored as U8 [rows, bytes of a row];
 * otherwise it equals from->type and the data is copied. from may be NULL: an empty entry, for its
 * name alone. */
typedef struct writer_entry {
    char name[WRITER_NAME_MAX];
    const tensor *from;
    dtype to;
} writer_entry;

/* Bytes of an entry's data. */
size_t writer_entry_bytes(const writer_entry *e);

/* How far the work is; done and total in bytes written. May have no function. */
typedef struct load_progress {
    void (*fn)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
} load_progress;

/* Fills data with the entries one after another, quantized by all threads of c. */
void writer_fill(unsigned char *data, const writer_entry *entries, size_t n, compute *c,
                 const load_progress *progress);

/* ERR_IO with the system's reason if the file cannot be made; nothing is left behind then. */
MUST_CHECK err_code tensor_write(const char *path, const writer_entry *entries, size_t n, compute *c,
                                 const load_progress *progress, err_detail *detail);

#endif
