/* tensor_names: the canonical names (checkpoint.h) of tensors as families publish them. Any thread; no
 * state.
 *
 *     char *name = tensor_name_make(memory, "backbone.layers.3.mixer.q_proj.weight");
 *     // "layers.3.self_attn.q_proj.weight"
 */
#ifndef PARLEY_MODEL_CHECKPOINT_TENSOR_NAMES_H
#define PARLEY_MODEL_CHECKPOINT_TENSOR_NAMES_H

#include "base/arena.h"

/* The canonical name, in `memory`; NULL if out of memory. A name that no family has is left as it
 * is. */
char *tensor_name_make(arena *memory, const char *stored);

#endif
