/* tensor_file: checked, read-only mapping of safetensors files. Immutable after opening, so any
 * thread may read.
 *
 *     tensor_set *set; err = tensor_set_open(&set, "DIR", &detail);
 *     const named_tensor *w = tensor_table_find(tensor_set_tensors(set), "model.norm.weight");
 *     tensor_set_close(set);
 *
 * A file is believed only after everything in its header was checked: its length, the JSON, each
 * type, each shape against its byte range, no range outside the file, no overlap, no gap, no name
 * twice. The first fault is ERR_CORRUPT and names file and tensor. Types that layers do not compute
 * with (I64, F8_E4M3, ...) come out as DTYPE_OTHER with their raw bytes. Views stay valid until the
 * file or set is closed.
 */
#ifndef PARLEY_MODEL_CHECKPOINT_TENSOR_FILE_H
#define PARLEY_MODEL_CHECKPOINT_TENSOR_FILE_H

#include "base/err.h"
#include "model/checkpoint/tensor_table.h"

/* One file. */
typedef struct tensor_file tensor_file;

MUST_CHECK err_code tensor_file_open(tensor_file **out, const char *path, err_detail *detail);
void tensor_file_close(tensor_file *f); /* NULL allowed */
const tensor_table *tensor_file_tensors(const tensor_file *f);

/* All files of a checkpoint folder: model.safetensors, or the shards named in
 * model.safetensors.index.json (its weight_map alone counts); and, if the draft head is not among
 * them, model-mtp.safetensors, mtp/weights.safetensors or mtp/model.safetensors, whose names may
 * lack their "mtp.". ERR_NOT_FOUND if there is none of them. */
typedef struct tensor_set tensor_set;

MUST_CHECK err_code tensor_set_open(tensor_set **out, const char *dir, err_detail *detail);
void tensor_set_close(tensor_set *set); /* NULL allowed */
const tensor_table *tensor_set_tensors(const tensor_set *set);

#endif
