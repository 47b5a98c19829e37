/* gpt_oss_experts: the experts of GPT-OSS as folders publish them, as canonical tensors. Loading
 * thread.
 *
 *     tensor_table tensors = {0}; bool done;
 *     err = gpt_oss_experts_adapt(&tensors, all, &t, memory, &done, &detail);
 *
 * Published are, for all experts of a layer, gate_up_proj, whose gate and up rows alternate, and
 * down_proj: in MXFP4 as NAME_blocks [E, rows, cols / 32, 16] (two numbers a byte, the first in the
 * low half) and NAME_scales [E, rows, cols / 32], or in floats turned, as NAME [E, cols, rows]; beside
 * them NAME_bias [E, rows]. Canonical are gate_proj, up_proj and down_proj [E, rows, cols] and the
 * biases of each: the blocks stay packed (mxfp4 of ggml_blocks.h), in another order of nibbles.
 */
#ifndef PARLEY_MODEL_CHECKPOINT_GPT_OSS_EXPERTS_H
#define PARLEY_MODEL_CHECKPOINT_GPT_OSS_EXPERTS_H

#include "base/arena.h"
#include "base/err.h"
#include "model/checkpoint/tensor_table.h"

/* If t, whose name is canonical already, is one of these tensors, adds what it becomes to `out` and
 * sets *done; `all` are the tensors of the folder. Copies live in `memory`. ERR_CORRUPT if blocks and
 * scales do not fit each other, ERR_NOMEM. */
MUST_CHECK err_code gpt_oss_experts_adapt(tensor_table *out, const tensor_table *all, const named_tensor *t,
                                          arena *memory, bool *done, err_detail *detail);

#endif
