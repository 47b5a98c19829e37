/* A checkpoint with weights in blocks: what the formats are called, and making a folder of them. */
#include <string.h>

#include "base/compiler.h"
#include "compute/nn.h"
#include "engine/engine.h"
#include "model/quantized.h"

bool engine_parse_quantize(const char *text, int *n_bits)
{
    static const struct {
        const char *name;
        int n_bits;
    } formats[] = {{"none", 0}, {"q8", 8}, {"q4", 4}};
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (strcmp(text, formats[i].name) == 0) {
            *n_bits = formats[i].n_bits;
            return true;
        }
    }
    return false;
}

err_code engine_convert(const char *dir, const char *out_dir, int layer_bits, int head_bits, size_t n_threads,
                        err_detail *detail)
{
    compute *c = NULL;
    const compute_options co = {.n_threads = n_threads, .cpu_mask = ~0u};
    err_code err = compute_create(&c, &co, detail);
    if (err == ERR_OK) {
        const quantize_options opt = {.layer_bits = layer_bits, .head_bits = head_bits, .c = c};
        err = model_convert(dir, out_dir, &opt, detail);
    }
    compute_destroy(c);
    return err;
}
