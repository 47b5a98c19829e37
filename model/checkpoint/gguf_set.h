/* gguf_set: all files of one GGUF model: a single file, or the parts NAME-00001-of-0000N.gguf.
 * Immutable after opening, so any thread may read.
 *
 *     gguf_set *set; err = gguf_set_open(&set, "model-00001-of-00003.gguf", &detail);
 *     const gguf_value *v = gguf_find(gguf_set_head(set), "general.architecture");
 *     gguf_set_close(set);
 *
 * The metadata is the first part's. Any part may be named: the others are looked for beside it.
 */
#ifndef PARLEY_MODEL_CHECKPOINT_GGUF_SET_H
#define PARLEY_MODEL_CHECKPOINT_GGUF_SET_H

#include "model/checkpoint/gguf_file.h"

typedef struct gguf_set gguf_set;

/* ERR_NOT_FOUND names the part that is missing, ERR_CORRUPT parts that do not belong together. */
MUST_CHECK err_code gguf_set_open(gguf_set **out, const char *path, err_detail *detail);
void gguf_set_close(gguf_set *set); /* NULL allowed */

/* The file with the metadata. */
const gguf_file *gguf_set_head(const gguf_set *set);

/* Those of all parts. */
const tensor_table *gguf_set_tensors(const gguf_set *set);

#endif
