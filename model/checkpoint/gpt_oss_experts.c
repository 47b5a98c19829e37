#include "model/checkpoint/gpt_oss_experts.h"

#include <stdio.h>
#include <string.h>

#include "compute/formats/ggml_blocks.h"

enum { NAME_BYTES = 512, BLOCK = 32, HALF = BLOCK / 2 };

/* One tensor on its way to one or two canonical ones. */
typedef struct job {
    tensor_table *out;
    const tensor_table *all;
    const named_tensor *t;
    arena *memory;
    err_detail *detail;
} job;

static err_code no_memory(const job *j, size_t n_bytes)
{
    return err_set(j->detail, ERR_NOMEM, "no memory for tensor %.200s (%zu MiB)", j->t->stored,
                   n_bytes >> 20);
}

/* The tensor beside this one whose stored name has `suffix` in place of the last `n_cut` bytes. */
static bool find_beside(const job *j, size_t n_cut, const char *suffix, tensor *out)
{
    char name[NAME_BYTES];
    const int n = (int)(strlen(j->t->stored) - n_cut);
    return snprintf(name, sizeof name, "%.*s%s", n, j->t->stored, suffix) < NAME_BYTES &&
           tensor_table_get(j->all, name, out);
}

/* A copy of `name` in which its part from `at` on is replaced. */
static char *renamed(const job *j, const char *name, size_t at, const char *end)
{
    const size_t cap = at + strlen(end) + 1;
    char *copy = arena_calloc(j->memory, cap, 1);
    if (copy) {
        snprintf(copy, cap, "%.*s%s", (int)at, name, end);
    }
    return copy;
}

/* Adds a view under the name whose end is replaced. */
static err_code add(const job *j, size_t n_cut, const char *end, const char *type_name, const tensor *view)
{
    const char *name = renamed(j, j->t->name, strlen(j->t->name) - n_cut, end);
    const char *stored = renamed(j, j->t->stored, strlen(j->t->stored) - n_cut, end);
    const named_tensor item = {name, stored, type_name, *view};
    return name && stored && tensor_table_add(j->out, &item) ? ERR_OK : no_memory(j, 0);
}

/* Rows first, first + step, ... of every expert, packed. */
static void pack_rows(uint8_t *out, const tensor *blocks, const uint8_t *scales, size_t first, size_t step)
{
    const size_t E = blocks->dims[0], rows = blocks->dims[1], groups = blocks->dims[2];
    for (size_t e = 0; e < E; e++) {
        for (size_t row = first; row < rows; row += step) {
            const size_t at = (e * rows + row) * groups;
            for (size_t g = at; g < at + groups; g++, out += 1 + HALF) {
                const uint8_t *from = (const uint8_t *)blocks->data + g * HALF;
                out[0] = scales[g];
                for (size_t i = 0; i < HALF; i++) { /* numbers i and i + 16 */
                    const uint8_t low = (uint8_t)(from[i / 2] >> (i % 2 * 4)) & 15,
                                  high = (uint8_t)(from[HALF / 2 + i / 2] >> (i % 2 * 4)) & 15;
                    out[1 + i] = (uint8_t)(low | high << 4);
                }
            }
        }
    }
}

static err_code add_packed(const job *j, size_t n_cut, const char *end, const tensor *scales, size_t first,
                           size_t step)
{
    const tensor *blocks = &j->t->view;
    const size_t rows = blocks->dims[1] / step, cols = blocks->dims[2] * BLOCK;
    tensor packed = {.type = DTYPE_MXFP4, .n_dims = 3, .dims = {blocks->dims[0], rows, cols}};
    packed.bytes = blocks->dims[0] * rows * ggml_row_bytes(DTYPE_MXFP4, cols);
    uint8_t *data = arena_alloc(j->memory, packed.bytes);
    if (!data) {
        return no_memory(j, packed.bytes);
    }
    pack_rows(data, blocks, scales->data, first, step);
    packed.data = data;
    return add(j, n_cut, end, "MXFP4", &packed);
}

/* Columns first, first + step, ... of [E, cols, rows] as the rows of [E, rows / step, cols]; of a
 * bias [E, rows] as [E, rows / step]. */
static err_code add_turned(const job *j, size_t n_cut, const char *end, size_t first, size_t step)
{
    const tensor *t = &j->t->view;
    const bool is_bias = t->n_dims == 2;
    const size_t E = t->dims[0], cols = is_bias ? 1 : t->dims[1], all_rows = t->dims[is_bias ? 1 : 2];
    const size_t rows = all_rows / step, size = dtype_bytes(t->type);
    tensor turned = {t->type, t->n_dims, {E, rows, cols}, NULL, E * rows * cols * size};
    unsigned char *to = arena_alloc(j->memory, turned.bytes);
    if (!to) {
        return no_memory(j, turned.bytes);
    }
    turned.data = to;
    turned.dims[2] = is_bias ? 0 : cols;
    const unsigned char *from = t->data;
    for (size_t e = 0; e < E; e++) {
        for (size_t r = 0; r < rows; r++) {
            for (size_t c = 0; c < cols; c++, to += size) {
                memcpy(to, from + ((e * cols + c) * all_rows + first + r * step) * size, size);
            }
        }
    }
    return add(j, n_cut, end, j->t->type_name, &turned);
}

static err_code split_blocks(const job *j, bool fused, size_t n_cut)
{
    const tensor *b = &j->t->view;
    tensor scales;
    if (!find_beside(j, strlen("_blocks"), "_scales", &scales) || b->n_dims != 4 || b->dims[3] != HALF ||
        b->type != DTYPE_OTHER || b->bytes != tensor_len(b) || scales.n_dims != 3 ||
        memcmp(scales.dims, b->dims, 3 * sizeof b->dims[0]) != 0 || scales.type != DTYPE_OTHER ||
        scales.bytes != tensor_len(&scales) || (fused && b->dims[1] % 2 != 0)) {
        return err_set(
            j->detail, ERR_CORRUPT,
            "tensor %.200s: blocks [experts, rows, groups, 16] of bytes need scales [experts, rows, "
            "groups] of bytes beside them",
            j->t->stored);
    }
    err_code err = add_packed(j, n_cut, fused ? "gate_proj" : "down_proj", &scales, 0, fused ? 2 : 1);
    return !err && fused ? add_packed(j, n_cut, "up_proj", &scales, 1, 2) : err;
}

err_code gpt_oss_experts_adapt(tensor_table *out, const tensor_table *all, const named_tensor *t,
                               arena *memory, bool *done, err_detail *detail)
{
    static const char mark[] = ".mlp.experts.", fused_name[] = "gate_up_proj", down_name[] = "down_proj";
    const job j = {out, all, t, memory, detail};
    const char *part = strstr(t->name, mark);
    tensor beside;
    *done = false;
    part = part ? part + strlen(mark) : "";
    const bool fused = strncmp(part, fused_name, strlen(fused_name)) == 0;
    const char *form = part + strlen(fused ? fused_name : down_name);
    if (!fused && strncmp(part, down_name, strlen(down_name)) != 0) {
        return ERR_OK;
    }
    const size_t n_cut = strlen(part);
    const char *const ends[][2] = {{"gate_proj", "up_proj"}, {"gate_proj_bias", "up_proj_bias"}};
    const bool is_bias = strcmp(form, "_bias") == 0;
    if (strcmp(form, "_scales") == 0) { /* with the blocks */
        *done = find_beside(&j, strlen("_scales"), "_blocks", &beside);
        return ERR_OK;
    }
    if (strcmp(form, "_blocks") == 0) {
        *done = true;
        return split_blocks(&j, fused, n_cut);
    }
    const bool is_turned = form[0] == '\0' && t->view.n_dims == 3 && find_beside(&j, 0, "_bias", &beside);
    if (t->view.type >= DTYPE_OTHER || !(is_turned || (is_bias && t->view.n_dims == 2)) ||
        (!fused && is_bias)) {
        return ERR_OK;
    }
    *done = true;
    if (!fused) {
        return add_turned(&j, n_cut, "down_proj", 0, 1);
    }
    err_code err = add_turned(&j, n_cut, ends[is_bias][0], 0, 2);
    return err ? err : add_turned(&j, n_cut, ends[is_bias][1], 1, 2);
}
