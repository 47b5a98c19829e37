/* safetensors: just enough of a reader for the vision tests: a mapped file as a tensor_source, with
 * no checks beyond what a test needs. (The engine's checked reader is model/'s; vision/ must not
 * know it.)
 *
 *     safetensors f;   if (!safetensors_open(&f, path)) { return 1; }   tensor t;   safetensors_find(&f, "name", &t);
 */
#ifndef PARLEY_TESTS_VISION_SAFETENSORS_H
#define PARLEY_TESTS_VISION_SAFETENSORS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/file.h"
#include "base/json.h"
#include "compute/tensor.h"
#include "tests/check.h"

typedef struct safetensors {
    file_map map;
    json_doc *doc;
    const uint8_t *data;
} safetensors;

static inline bool safetensors_open(safetensors *f, const char *path)
{
    err_detail d = {0};
    uint64_t n = 0;
    *f = (safetensors){0};
    if (file_map_open(&f->map, path, &d) || f->map.bytes < 8) {
        return false;
    }
    memcpy(&n, f->map.data, 8);
    if (n > f->map.bytes - 8 || json_parse(&f->doc, (const char *)f->map.data + 8, (size_t)n, 16, &d)) {
        return false;
    }
    f->data = f->map.data + 8 + n;
    return true;
}

static inline void safetensors_close(safetensors *f)
{
    json_free(f->doc);
    file_map_close(&f->map);
}

/* A tensor_source's find: ctx is the safetensors. I64 tensors come as DTYPE_OTHER. */
static inline bool safetensors_find(void *ctx, const char *name, tensor *out)
{
    const safetensors *f = ctx;
    const json *v = json_get(json_root(f->doc), name);
    if (!v) {
        return false;
    }
    const char *type = json_str(json_get(v, "dtype"), "");
    *out = (tensor){.type = !strcmp(type, "F32")    ? DTYPE_F32
                            : !strcmp(type, "BF16") ? DTYPE_BF16
                            : !strcmp(type, "F16")  ? DTYPE_F16
                                                    : DTYPE_OTHER};
    for (const json *d = json_child(json_get(v, "shape")); d && out->n_dims < TENSOR_MAX_DIMS;
         d = json_next(d)) {
        out->dims[out->n_dims++] = (size_t)json_num(d, 0);
    }
    const json *offsets = json_get(v, "data_offsets");
    size_t begin = (size_t)json_num(json_child(offsets), 0);
    size_t end = (size_t)json_num(json_next(json_child(offsets)), 0);
    out->data = f->data + begin;
    out->bytes = end - begin;
    return end >= begin && end <= (size_t)(f->map.data + f->map.bytes - f->data);
}

/* Folder number i of those that may hold reference outputs: the compact set in the tree, then the
 * full ones beside the checkout. False when there are no more. */
static inline bool reference_dir(char *out, size_t cap, size_t i)
{
    static const char *const SETS[] = {"qwen3_5", "qwen3_5_tied", "qwen3_5_moe"};
    const char *shared = check_shared_dir();
    if (i == 0) {
        (void)snprintf(out, cap, "%s", check_data("tiny"));
        return true;
    }
    if (!shared || i > ARRAY_LEN(SETS)) {
        return false;
    }
    (void)snprintf(out, cap, "%s/reference/%s", shared, SETS[i - 1]);
    return true;
}

/* The same under its own name or as the published files of Gemma 4 have it. */
static inline bool safetensors_find_tower(void *ctx, const char *name, tensor *out)
{
    static const char *const before[] = {"model.visual.", "model.vision_tower.", "model.embed_vision."};
    static const char *const behind[] = {"", ".linear"};
    const char *rest = name + (strncmp(name, before[0], strlen(before[0])) == 0 ? strlen(before[0]) : 0);
    const char *dot = strrchr(rest, '.') ? strrchr(rest, '.') : rest + strlen(rest);
    bool found = safetensors_find(ctx, name, out);
    for (size_t i = 0; !found && i < ARRAY_LEN(before) * ARRAY_LEN(behind); i++) {
        char other[256];
        (void)snprintf(other, sizeof other, "%s%.*s%s%s", before[i / 2], (int)(dot - rest), rest,
                       behind[i % 2], dot);
        found = safetensors_find(ctx, other, out);
    }
    return found;
}

#endif
