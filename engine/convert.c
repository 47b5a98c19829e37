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

static void report(void *ctx, uint64_t done, uint64_t total)
{
    const engine_convert_options *o = ctx;
    o->on_load(o->on_load_ctx, "weights", total ? (double)done / (double)total : 1.0);
}

err_code engine_convert(const char *dir, const char *out_dir, const engine_convert_options *o,
                        err_detail *detail)
{
    compute *c = NULL;
    engine_convert_options options = *o;
    const compute_options co = {.n_threads = o->n_threads, .cpu_mask = ~0u};
    err_code err = compute_create(&c, &co, detail);
    if (err == ERR_OK) {
        const quantize_options opt = {.layer_bits = o->layer_bits,
                                      .head_bits = o->head_bits,
                                      .c = c,
                                      .progress = {o->on_load ? report : NULL, &options}};
        err = model_convert(dir, out_dir, &opt, detail);
    }
    compute_destroy(c);
    return err;
}
