/* mlx: what MLX tools make of a checkpoint, seen as what was published: packed groups as blocks,
 * other names and axes. Loading thread; used by the folder form alone.
 *
 *     mlx *m; err = mlx_open(&m, tensors, &documents, arena, &detail);   // NULL: an ordinary folder
 *     err = mlx_adapt(m, stored, name, &t, &skip, &detail);              // for every tensor
 *
 * A packed matrix NAME.weight [.., out, in * bits / 32] of 32-bit words stands with NAME.scales and
 * NAME.biases [.., out, in / group]: number j of a row is scale * code + bias, and the codes of a
 * row are one stream of bits, the lowest first. "quantization" in config.json gives group and bits,
 * for all and for single modules; a draft head in a folder of its own (mtp/) has a config.json of
 * its own. In the mode mxfp4 a code is an E2M1 number and a scale a power of two, without biases.
 * docs/model.md A.7.
 *
 * Codes of up to 4 bits become blocks af4 (q4_1 for scales in float16), those of 5 to 8 bits af8,
 * without a change of any number (compute/formats/ggml_blocks.h).
 */
#ifndef PARLEY_MODEL_CHECKPOINT_MLX_H
#define PARLEY_MODEL_CHECKPOINT_MLX_H

#include "model/checkpoint/checkpoint_form.h"

typedef struct mlx mlx;

/* *out is NULL if no MLX tool made this folder. What mlx_adapt makes lies in memory; all its
 * tensors and memory must outlive *out. */
MUST_CHECK err_code mlx_open(mlx **out, const tensor_table *all, const json_source *documents, arena *memory,
                             err_detail *detail);
void mlx_close(mlx *m); /* NULL allowed */

/* How norms are stored: by their mean, since draft heads follow either convention. */
void mlx_traits(const mlx *m, checkpoint_traits *traits);

/* Changes a tensor and its canonical name (in place, never longer) to what is published. *skip: it
 * belongs to another tensor. ERR_UNSUPPORTED names bits, group or mode that are not known,
 * ERR_CORRUPT a shape that does not fit. */
MUST_CHECK err_code mlx_adapt(const mlx *m, const char *stored, char *name, tensor *t, bool *skip,
                              err_detail *detail);

#endif
