#include "bench/copy.h"

#include <stdlib.h>
#include <string.h>

enum { EVERY = 40, BIASES_MAX = 2048 };

void copy_edit(bytes *out, const char *text)
{
    for (int n = 1; *text; n++) {
        const size_t len = strcspn(text, " \n"), gap = strspn(text + len, " \n");
        n % EVERY ? bytes_append(out, text, len) : bytes_append_str(out, "something");
        bytes_append(out, text + len, gap);
        text += len + gap;
    }
}

static void favour(const engine *e, gen_params *p, gen_bias *biases, int32_t id)
{
    size_t len = 0;
    bool special = false;
    for (size_t i = 0; i < p->n_biases; i++) {
        if (biases[i].id == id) {
            return;
        }
    }
    if (p->n_biases < BIASES_MAX && engine_token_bytes(e, id, &len, &special)) {
        biases[p->n_biases++] = (gen_bias){.id = id, .bias = len < 10 ? 10.0f * (float)len : 100.0f};
    }
}

err_code copy_favour(const engine *e, gen_params *params, const bytes *text, err_detail *detail)
{
    static gen_bias biases[BIASES_MAX];
    bytes ids;
    bytes_init(&ids, (size_t)16 << 20);
    err_code err = engine_tokenize(e, &ids, bytes_str(text), text->len, false, detail);
    params->biases = biases;
    for (const char *at = bytes_str(&ids); err == ERR_OK && *at;) {
        char *end = NULL;
        const int32_t id = (int32_t)strtol(at, &end, 10);
        if (end > at) {
            favour(e, params, biases, id);
        }
        at = end > at ? end : at + 1;
    }
    bytes_deinit(&ids);
    return err;
}
