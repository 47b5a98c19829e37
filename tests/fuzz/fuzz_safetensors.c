/* safetensors: any file either opens with every tensor inside it, or is refused with a reason. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "model/checkpoint/tensor_file.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"
#include "tests/fuzz/say_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Touches every byte and converts what can be converted: a view outside the file would crash. */
static void check_tensor(const tensor *t, size_t size)
{
    must(t->n_dims >= 0 && t->n_dims <= TENSOR_MAX_DIMS && t->bytes <= size);
    unsigned sum = 0;
    for (size_t i = 0; i < t->bytes; i++) {
        sum += ((const uint8_t *)t->data)[i];
    }
    volatile unsigned used = sum;
    (void)used;
    if (t->type == DTYPE_OTHER) {
        return;
    }
    size_t n = tensor_len(t);
    must(n <= size && n * dtype_bytes(t->type) == t->bytes);
    float *values = malloc((n + 1) * sizeof *values);
    must(values != NULL);
    tensor_to_f32(values, t, 0, n);
    say_sum("values", values, n * sizeof *values);
    free(values);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_safetensors(data, size, max, seed, "safetensors");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tensor_file *file = NULL;
    err_detail detail = {0};
    const char *path = memory_file(data, size);
    say_hide(path);
    const err_code err = tensor_file_open(&file, path, &detail);
    if (err != ERR_OK) {
        say_error(err, &detail);
        must(file == NULL && detail.text[0] != '\0' && utf8_valid(detail.text, strlen(detail.text)));
        return 0;
    }
    size_t sum = 0;
    say_tensors(tensor_file_tensors(file));
    for (size_t i = 0; i < tensor_file_tensors(file)->n; i++) {
        const named_tensor *t = &tensor_file_tensors(file)->items[i];
        must(t->name != NULL && t->type_name != NULL);
        must(tensor_table_find(tensor_file_tensors(file), t->name) == t);
        check_tensor(&t->view, size);
        sum += t->view.bytes;
    }
    must(sum <= size); /* no overlap */
    must(!tensor_table_find(tensor_file_tensors(file), "\x01 no such name"));
    tensor_file_close(file);
    return 0;
}
