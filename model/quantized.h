/* quantized: a model's matrices quantized to 8 or 4 bits, made when it is loaded and cached in a
 * file. Loading thread.
 *
 *     quantized *q; err = quantized_open(&q, matrices, n, &options, &detail);   // they now point into q
 *     quantized_close(q);                                                   // after the weights are out of use
 *
 * What is replaced of a text model: the projections of all layers and of the draft head, and the
 * logits head. Norms, convolutions, the two small gate projections of GatedDeltaNet and the embedding
 * table stay as stored. A vision tower's matrices are a set of their own (engine.c).
 *
 * The file is in $XDG_CACHE_HOME/parley (or ~/.cache/parley). Its name is a hash of samples of the
 * matrices, their formats and the version of this layout, so each model, format and version has its
 * own file. A damaged file is logged and rebuilt; without disk space the matrices are made in
 * memory.
 */
#ifndef PARLEY_MODEL_QUANTIZED_H
#define PARLEY_MODEL_QUANTIZED_H

#include <stdbool.h>

#include "base/err.h"
#include "compute/nn.h"
#include "model/checkpoint/tensor_writer.h"
#include "model/weights.h"

typedef struct quantize_options {
    int layer_bits, head_bits; /* 8, 4, or 0: as stored */
    compute *c;
    load_progress progress;
} quantize_options;

/* What a matrix becomes with 8 or 4 bits. With 4, those that mix tokens get a fifth: there a rounding tells
 * most, and feed-forward parts, experts above all, are the larger part. */
static inline dtype quantized_type(const matrix_ref *ref, int n_bits)
{
    return n_bits == 8 ? DTYPE_Q8 : ref->mixes ? DTYPE_Q5 : DTYPE_Q4;
}

typedef struct quantized quantized;

/* *out is NULL if there was nothing to do: every matrix is quantized, or is to stay as it is. */
MUST_CHECK err_code quantized_open(quantized **out, const matrix_ref *matrices, size_t n,
                                   const quantize_options *opt, err_detail *detail);
void quantized_close(quantized *q); /* NULL allowed */

/* Writes the checkpoint in dir as the new folder out_dir, with one model.safetensors in these
 * formats and copies of the small files. ERR_INVALID if out_dir exists, if nothing is to be
 * quantized, or if the checkpoint is already. */
MUST_CHECK err_code model_convert(const char *dir, const char *out_dir, const quantize_options *opt,
                                  err_detail *detail);

#endif
