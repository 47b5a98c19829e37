/* fp8: matrices in 8-bit floats with a scale for each block of 128 x 128, as some checkpoints are
 * published. Loading thread; used by the folder form alone.
 *
 * NAME.weight (F8_E4M3) [rows, columns] stands with NAME.weight_scale_inv [rows / 128, columns /
 * 128], rounded up: a number is the float times the scale of its block. They are widened to
 * bfloat16, as transformers does.
 */
#ifndef PARLEY_MODEL_CHECKPOINT_FP8_H
#define PARLEY_MODEL_CHECKPOINT_FP8_H

#include "base/arena.h"
#include "base/err.h"
#include "model/checkpoint/tensor_table.h"

/* Widens *t, one of `all`, into memory if it is of 8-bit floats; *skip: it holds scales.
 * ERR_CORRUPT if the scales do not fit, ERR_UNSUPPORTED for F8_E5M2 and for floats without scales
 * of blocks. */
MUST_CHECK err_code fp8_adapt(const tensor_table *all, named_tensor *t, arena *memory, bool *skip,
                              err_detail *detail);

#endif
