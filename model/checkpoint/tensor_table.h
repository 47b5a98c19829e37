/* tensor_table: tensors by name, as a file, a folder and a checkpoint hold them. Filled and sorted
 * by the loading thread, then immutable, so that any thread may look in it.
 *
 *     tensor_table table = {0};
 *     bool added = tensor_table_add(&table, &(named_tensor){name, name, "F32", view});
 *     const named_tensor *twice = tensor_table_sort(&table);
 *     const named_tensor *found = tensor_table_find(&table, "norm.weight");
 *     tensor_table_free(&table);
 */
#ifndef PARLEY_MODEL_CHECKPOINT_TENSOR_TABLE_H
#define PARLEY_MODEL_CHECKPOINT_TENSOR_TABLE_H

#include "base/compiler.h"
#include "compute/tensor.h"

/* Names and data are not the table's. A matrix of a layer may be packed (dtype_is_quantized): dims
 * are those of the numbers, of which the last may count the padding of a row. */
typedef struct named_tensor {
    const char *name;      /* by which it is found */
    const char *stored;    /* in the file; for messages and converted folders */
    const char *type_name; /* as the format calls it: "BF16", "Q4_K" */
    tensor view;
} named_tensor;

typedef struct tensor_table {
    named_tensor *items; /* in the order of names once it is sorted */
    size_t n, cap;
} tensor_table;

/* Adds a copy of it; false if out of memory. */
MUST_CHECK bool tensor_table_add(tensor_table *t, const named_tensor *item);
/* Sorts by name. Returns one of two items of the same name, the other precedes it; NULL if there
 * are none. */
const named_tensor *tensor_table_sort(tensor_table *t);
void tensor_table_free(tensor_table *t);

/* Of a sorted table: the tensor of that name; the first whose name begins so; NULL if there is
 * none. */
const named_tensor *tensor_table_find(const tensor_table *t, const char *name);
const named_tensor *tensor_table_first(const tensor_table *t, const char *prefix);
/* Copies the view of that name, if there is one. */
bool tensor_table_get(const tensor_table *t, const char *name, tensor *out);
/* The table as the interface that the vision encoder reads. It must outlive the source. */
tensor_source tensor_table_source(const tensor_table *t);

/* "weight" is a suffix of "norm.weight". */
bool name_ends_with(const char *name, const char *suffix);

#endif
