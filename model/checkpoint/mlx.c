#include "model/checkpoint/mlx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/formats/ggml_blocks.h"
#include "compute/formats/half.h"

enum { NAME_BYTES = 512, BLOCK = 32, WORD = 4, NAME_IN_MESSAGE = 200 };

struct mlx {
    const tensor_table *all;
    arena *memory;
    json_doc *config, *mtp_config; /* NULL: none */
    bool trunk_holds_one, mtp_holds_one;
};

/* How a module is packed. */
typedef struct packing {
    int64_t bits, group;
    bool is_mxfp4;
} packing;

static bool is_of_draft_head(const char *stored)
{
    return strncmp(stored, "mtp.", 4) == 0 || strstr(stored, ".mtp.") != NULL;
}

/* The tensor NAME + suffix beside NAME.weight. */
static bool find_beside(const tensor_table *all, const char *weight, const char *suffix, tensor *out)
{
    char name[NAME_BYTES];
    const int n = (int)(strlen(weight) - strlen(".weight"));
    return name_ends_with(weight, ".weight") &&
           snprintf(name, sizeof name, "%.*s%s", n, weight, suffix) < NAME_BYTES &&
           tensor_table_get(all, name, out);
}

/* ---- what made this folder ---- */

static bool is_turned_convolution(const char *stored, const tensor *t)
{
    return name_ends_with(stored, "conv1d.weight") && t->n_dims == 3 && t->dims[2] == 1 && t->dims[1] > 1;
}

static bool was_made_by_mlx(const tensor_table *all)
{
    for (size_t i = 0; i < all->n; i++) {
        tensor scales;
        const char *stored = all->items[i].stored;
        if (is_turned_convolution(stored, &all->items[i].view) || strstr(stored, ".switch_mlp.") ||
            strstr(stored, ".switch_glu.") || find_beside(all, stored, ".scales", &scales)) {
            return true;
        }
    }
    return false;
}

/* The mean of all input norms of the trunk or of the draft head; false if there are none. */
static bool mean_of_norms(const tensor_table *all, bool draft_head, double *mean)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const char *stored = all->items[i].stored;
        const tensor *t = &all->items[i].view;
        if (!name_ends_with(stored, ".input_layernorm.weight") || is_of_draft_head(stored) != draft_head ||
            t->type >= DTYPE_OTHER) {
            continue;
        }
        for (size_t k = 0; k < tensor_len(t); k++, n++) {
            float value;
            tensor_to_f32(&value, t, k, 1);
            sum += (double)value;
        }
    }
    *mean = n ? sum / (double)n : 0;
    return n > 0;
}

err_code mlx_open(mlx **out, const tensor_table *all, const json_source *documents, arena *memory,
                  err_detail *detail)
{
    *out = NULL;
    if (!was_made_by_mlx(all)) {
        return ERR_OK;
    }
    mlx *m = calloc(1, sizeof *m);
    if (!m) {
        return err_set(detail, ERR_NOMEM, "no memory for the packed weights");
    }
    m->all = all;
    m->memory = memory;
    err_code err = documents->read(documents->ctx, "config.json", &m->config, detail);
    err = err ? err : documents->read(documents->ctx, "mtp/config.json", &m->mtp_config, detail);
    if (err) {
        mlx_close(m);
        return err;
    }
    double mean;
    m->trunk_holds_one = mean_of_norms(all, false, &mean) && mean > 0.5;
    m->mtp_holds_one = mean_of_norms(all, true, &mean) && mean > 0.5;
    *out = m;
    return ERR_OK;
}

void mlx_close(mlx *m)
{
    if (m) {
        json_free(m->config);
        json_free(m->mtp_config);
        free(m);
    }
}

void mlx_traits(const mlx *m, checkpoint_traits *traits)
{
    traits->norms_hold_one = m->trunk_holds_one;
    traits->mtp_norms_hold_one = m->mtp_holds_one;
}

/* ---- packed matrices ---- */

static err_code wrong_packing(const char *stored, const packing *p, err_detail *detail)
{
    return err_set(
        detail, ERR_UNSUPPORTED,
        "tensor %.*s is packed with %lld bits in groups of %lld, which is not supported (2, 3, 4, 5, 6 "
        "or 8 bits in groups of 32, 64 or 128 are)",
        NAME_IN_MESSAGE, stored, (long long)p->bits, (long long)p->group);
}

/* Overlays what an object of the configuration says. */
static err_code read_packing(packing *p, const json *object, const char *stored, err_detail *detail)
{
    const char *mode = json_str(json_get(object, "mode"), NULL);
    json_int(json_get(object, "bits"), 0, INT32_MAX, &p->bits);
    json_int(json_get(object, "group_size"), 0, INT32_MAX, &p->group);
    if (mode) {
        p->is_mxfp4 = strcmp(mode, "mxfp4") == 0;
    }
    if (mode && !p->is_mxfp4 && strcmp(mode, "affine") != 0) {
        return err_set(
            detail, ERR_UNSUPPORTED,
            "tensor %.*s is packed in the mode \"%.40s\", which is not supported (affine and mxfp4 are); "
            "take a conversion in one of these, or the original model",
            NAME_IN_MESSAGE, stored, mode);
    }
    return ERR_OK;
}

static err_code find_packing(const mlx *m, packing *p, const char *stored, err_detail *detail)
{
    const json_doc *doc = is_of_draft_head(stored) && m->mtp_config ? m->mtp_config : m->config;
    const json *all = doc ? json_get(json_root(doc), "quantization") : NULL;
    if (!json_is(all, JSON_OBJECT)) {
        all = doc ? json_get(json_root(doc), "quantization_config") : NULL;
    }
    if (!json_is(all, JSON_OBJECT)) {
        return err_set(detail, ERR_CORRUPT, "tensor %.*s is packed, but config.json has no \"quantization\"",
                       NAME_IN_MESSAGE, stored);
    }
    char module[NAME_BYTES];
    /* names there lack this beginning */
    const bool apart = doc == m->mtp_config && strncmp(stored, "mtp.", 4) == 0;
    snprintf(module, sizeof module, "%.*s", (int)(strlen(stored) - strlen(".weight")) - (apart ? 4 : 0),
             stored + (apart ? 4 : 0));
    *p = (packing){.bits = 4, .group = 64};
    err_code err = read_packing(p, all, stored, detail);
    const json *own = json_get(all, module);
    if (!err && json_is(own, JSON_OBJECT)) {
        err = read_packing(p, own, stored, detail);
    }
    if (err) {
        return err;
    }
    const bool known_group = p->group == 32 || p->group == 64 || p->group == 128;
    const bool known_bits = (p->bits >= 2 && p->bits <= 6) || p->bits == 8;
    if (p->is_mxfp4 ? p->bits != 4 || p->group != 32 : !known_bits || !known_group) {
        return wrong_packing(stored, p, detail);
    }
    return ERR_OK;
}

/* 32 codes of a row; they take 4 * bits bytes. */
static void read_codes(uint8_t u[BLOCK], const uint8_t *stream, unsigned bits)
{
    for (unsigned i = 0; i < BLOCK; i += 8, stream += bits) { /* eight codes are whole bytes */
        uint64_t word = 0;
        for (unsigned k = 0; k < bits; k++) {
            word |= (uint64_t)stream[k] << 8 * k;
        }
        for (unsigned k = 0; k < 8; k++) {
            u[i + k] = (uint8_t)(word >> k * bits & ((1u << bits) - 1));
        }
    }
}

static void write_nibbles(uint8_t *out, const uint8_t u[BLOCK])
{
    for (size_t j = 0; j < BLOCK / 2; j++) {
        out[j] = (uint8_t)(u[j] | u[j + BLOCK / 2] << 4);
    }
}

/* One block of the type that fits the codes and the scales. */
static void write_block(uint8_t *out, dtype type, const uint8_t u[BLOCK], float scale, float bias)
{
    if (type == DTYPE_AF8) {
        memcpy(out, &scale, sizeof scale);
        memcpy(out + 4, &bias, sizeof bias);
        memcpy(out + 8, u, BLOCK);
        return;
    }
    void (*put)(void *p, float f) = type == DTYPE_AF4 ? bf16_put : f16_put;
    put(out, scale);
    put(out + 2, bias);
    write_nibbles(out + 4, u);
}

/* What a packed tensor is made of; K columns. */
typedef struct packed {
    packing how;
    tensor weight, scales, biases;
    size_t rows, K;
    dtype type;
} packed;

static void write_rows(uint8_t *out, const packed *p)
{
    const size_t block_bytes = ggml_row_bytes(p->type, BLOCK), groups = p->K / (size_t)p->how.group;
    const unsigned bits = (unsigned)p->how.bits;
    uint8_t u[BLOCK];
    for (size_t row = 0; row < p->rows; row++) {
        const uint8_t *stream = (const uint8_t *)p->weight.data + row * (p->weight.bytes / p->rows);
        for (size_t k = 0; k < p->K; k += BLOCK, stream += WORD * bits, out += block_bytes) {
            const size_t g = row * groups + k / (size_t)p->how.group;
            read_codes(u, stream, bits);
            if (p->how.is_mxfp4) {
                out[0] = ((const uint8_t *)p->scales.data)[g];
                write_nibbles(out + 1, u);
                continue;
            }
            float scale, bias;
            tensor_to_f32(&scale, &p->scales, g, 1);
            tensor_to_f32(&bias, &p->biases, g, 1);
            write_block(out, p->type, u, scale, bias);
        }
    }
}

/* Whether a side tensor has as many rows as the matrix and one number for each group. */
static bool fits(const packed *p, const tensor *side)
{
    const int32_t n = p->weight.n_dims;
    return side->n_dims == n &&
           memcmp(side->dims, p->weight.dims, (size_t)(n - 1) * sizeof side->dims[0]) == 0 &&
           side->dims[n - 1] * (size_t)p->how.group == p->K;
}

static err_code check_packed(packed *p, const mlx *m, const char *stored, err_detail *detail)
{
    const size_t words = p->weight.dims[p->weight.n_dims - 1];
    const bool has_biases = find_beside(m->all, stored, ".biases", &p->biases);
    err_code err = find_packing(m, &p->how, stored, detail);
    if (err) {
        return err;
    }
    p->rows = tensor_len(&p->weight) / (words ? words : 1);
    p->K = words * 32 / (size_t)p->how.bits;
    const bool is_words = p->weight.type == DTYPE_OTHER && p->weight.bytes == WORD * tensor_len(&p->weight);
    const bool scales_fit =
        fits(p, &p->scales) &&
        (p->how.is_mxfp4 ? p->scales.type == DTYPE_OTHER && p->scales.bytes == tensor_len(&p->scales)
                         : p->scales.type < DTYPE_OTHER);
    const bool biases_fit =
        p->how.is_mxfp4 || (has_biases && fits(p, &p->biases) && p->biases.type == p->scales.type);
    if (p->weight.n_dims < 2 || !is_words || p->K == 0 || p->K * (size_t)p->how.bits != words * 32 ||
        !scales_fit || !biases_fit) {
        return err_set(detail, ERR_CORRUPT,
                       "tensor %.*s: words, scales and biases do not fit %lld bits in groups of %lld, which "
                       "config.json says",
                       NAME_IN_MESSAGE, stored, (long long)p->how.bits, (long long)p->how.group);
    }
    p->type = p->how.is_mxfp4                                  ? DTYPE_MXFP4
              : p->how.bits > 4 || p->scales.type == DTYPE_F32 ? DTYPE_AF8
              : p->scales.type == DTYPE_F16                    ? DTYPE_Q4_1
                                                               : DTYPE_AF4;
    return ERR_OK;
}

static err_code unpack(const mlx *m, const char *stored, tensor *t, const tensor *scales, err_detail *detail)
{
    packed p = {.weight = *t, .scales = *scales};
    err_code err = check_packed(&p, m, stored, detail);
    if (err) {
        return err;
    }
    const size_t n_bytes = p.rows * ggml_row_bytes(p.type, p.K);
    uint8_t *data = arena_alloc(m->memory, n_bytes);
    if (!data) {
        return err_set(detail, ERR_NOMEM, "no memory for tensor %.*s (%zu MiB)", NAME_IN_MESSAGE, stored,
                       n_bytes >> 20);
    }
    write_rows(data, &p);
    t->type = p.type;
    t->dims[t->n_dims - 1] = p.K;
    t->data = data;
    t->bytes = n_bytes;
    return ERR_OK;
}

/* ---- axes and names ---- */

/* [O, T, H, W, 3], channels last, as [O, 3, T, H, W]. */
static err_code turn_patches(const mlx *m, tensor *t, err_detail *detail)
{
    const size_t O = t->dims[0], C = t->dims[4], places = t->dims[1] * t->dims[2] * t->dims[3];
    const size_t size = dtype_bytes(t->type);
    uint8_t *data = arena_alloc(m->memory, t->bytes);
    if (!data) {
        return err_set(detail, ERR_NOMEM, "no memory for the patch embedding");
    }
    const uint8_t *from = t->data;
    for (size_t o = 0; o < O; o++) {
        for (size_t p = 0; p < places; p++) {
            for (size_t c = 0; c < C; c++) {
                memcpy(data + ((o * C + c) * places + p) * size, from + ((o * places + p) * C + c) * size,
                       size);
            }
        }
    }
    const size_t turned[] = {O, C, t->dims[1], t->dims[2], t->dims[3]};
    memcpy(t->dims, turned, sizeof turned);
    t->data = data;
    return ERR_OK;
}

/* "...mlp.switch_mlp.PART.weight" is published as "...mlp.experts.PART". */
static void rename_experts(char *name)
{
    static const char mark[] = ".switch_mlp.", experts[] = ".experts.";
    char *at = strstr(name, mark);
    if (at && name_ends_with(name, ".weight")) {
        name[strlen(name) - strlen(".weight")] = '\0';
        memmove(at + sizeof experts - 1, at + sizeof mark - 1, strlen(at + sizeof mark - 1) + 1);
        memcpy(at, experts, sizeof experts - 1);
    }
}

err_code mlx_adapt(const mlx *m, const char *stored, char *name, tensor *t, bool *skip, err_detail *detail)
{
    char weight[NAME_BYTES];
    tensor beside;
    *skip = false;
    if (name_ends_with(stored, ".scales") ||
        name_ends_with(stored, ".biases")) { /* both suffixes are as long as .weight */
        snprintf(weight, sizeof weight, "%.*s.weight", (int)(strlen(stored) - strlen(".weight")), stored);
        *skip = tensor_table_find(m->all, weight) != NULL;
        return ERR_OK;
    }
    rename_experts(name);
    if (find_beside(m->all, stored, ".scales", &beside)) {
        return unpack(m, stored, t, &beside, detail);
    }
    if (is_turned_convolution(stored, t)) { /* the order in memory is the same */
        t->dims[2] = t->dims[1];
        t->dims[1] = 1;
    } else if (name_ends_with(stored, "patch_embed.proj.weight") && t->n_dims == 5 && t->dims[4] == 3 &&
               t->dims[1] != 3 && t->type < DTYPE_OTHER) {
        return turn_patches(m, t, detail);
    }
    return ERR_OK;
}
