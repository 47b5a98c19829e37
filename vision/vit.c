/* The tower: patch embedding + interpolated position table, blocks of (attention inside a frame,
 * MLP), then the merger that turns merge x merge neighbouring patches into one row of the language
 * model; with DeepStack, mergers of their own do the same behind some of the blocks. Reference: the
 * vision models in Hugging Face transformers (modeling_qwen3_5, modeling_qwen3_vl).
 *
 * Frames are encoded one after another and rows in chunks of fixed size, so scratch stays small and
 * a frame's result cannot depend on the frames beside it.
 */
#include "vision/vit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/size.h"

enum { CHUNK_TOKENS = 256, LAYER_NAME_CHARS = 64, TENSOR_NAME_CHARS = 128 };
static const float NORM_EPS = 1e-6f;

typedef struct norm_weights {
    const float *w, *b; /* [width] */
} norm_weights;

typedef struct linear_weights {
    tensor w;       /* [n_out, n_in] */
    const float *b; /* [n_out] */
} linear_weights;

typedef struct block_weights {
    norm_weights norm1, norm2;
    linear_weights qkv, proj; /* [3*vh, vh]: q | k | v; [vh, vh] */
    linear_weights fc1, fc2;  /* [vi, vh], [vh, vi] */
} block_weights;

typedef struct merger_weights {
    bool joins_first; /* the norm is over the patches of a block together [4*vh], not over each [vh] */
    norm_weights norm;
    linear_weights fc1, fc2; /* [4*vh, 4*vh], [out, 4*vh] */
} merger_weights;

/* Kept between calls, grown to the largest frame seen. */
typedef struct scratch {
    size_t max_patches;
    float *x;         /* [patches, vh] */
    float *qkv;       /* [patches, 3*vh] */
    float *attention; /* [patches, vh] */
    float *cos, *sin; /* [patches, vd/2] */
    float *narrow;    /* [chunk rows, vh] */
    float *wide;      /* [chunk rows, max(vi, vh)]; also the merger's hidden rows */
    float *merged;    /* [chunk tokens, out_hidden] */
    float *rows;      /* [chunk rows, patch_dim] */
} scratch;

struct vit {
    vit_config config;
    compute *c;
    arena *memory;              /* all f32 vectors below and the blocks */
    linear_weights patch_embed; /* [vh, 3 * temporal_patch * patch * patch] */
    const float *positions;     /* [side, side, vh] */
    int32_t side;
    block_weights *blocks; /* [depth] */
    merger_weights merger, deepstack[VIT_MAX_DEEPSTACK];
    scratch s;
};

/* ---- configuration ---- */

typedef struct config_field {
    const char *name;
    int32_t *value;
    int32_t fallback; /* 0: the field must be there */
    int32_t max;
} config_field;

static err_code read_deepstack(vit_config *vc, const json *indexes, err_detail *detail)
{
    int64_t least = 0, block = 0;
    if (json_len(indexes) > VIT_MAX_DEEPSTACK) {
        return err_set(detail, ERR_UNSUPPORTED,
                       "config.json: vision_config.deepstack_visual_indexes names more than %d blocks",
                       VIT_MAX_DEEPSTACK);
    }
    for (const json *v = json_child(indexes); v; v = json_next(v), least = block + 1) {
        if (!json_int(v, least, vc->depth - 1, &block)) {
            return err_set(
                detail, ERR_INVALID,
                "config.json: vision_config.deepstack_visual_indexes must list rising numbers of blocks");
        }
        vc->deepstack[vc->n_deepstack++] = (int32_t)block;
    }
    return ERR_OK;
}

static err_code read_config(vit_config *vc, json_source docs, err_detail *detail)
{
    json_doc *doc = NULL;
    err_code err = docs.read(docs.ctx, "config.json", &doc, detail);
    if (err) {
        return err;
    }
    if (!doc) {
        return err_set(detail, ERR_NOT_FOUND, "%s: there is no config.json", docs.where);
    }
    const config_field fields[] = {
        {"depth", &vc->depth, 0, 1024},
        {"hidden_size", &vc->hidden_size, 0, 1 << 16},
        {"intermediate_size", &vc->intermediate_size, 0, 1 << 18},
        {"num_heads", &vc->n_heads, 0, 1024},
        {"out_hidden_size", &vc->out_hidden_size, 0, 1 << 16},
        {"in_channels", &vc->in_channels, 3, 3},
        {"patch_size", &vc->patch_size, 16, 256},
        {"temporal_patch_size", &vc->temporal_patch_size, 2, 16},
        {"spatial_merge_size", &vc->spatial_merge_size, 2, 16},
        {"num_position_embeddings", &vc->n_position_embeddings, 2304, 1 << 20},
    };
    const json *section = json_get(json_root(doc), "vision_config");
    if (!section) {
        err = err_set(detail, ERR_NOT_FOUND, "config.json: there is no vision_config");
    }
    for (size_t i = 0; i < ARRAY_LEN(fields) && !err; i++) {
        int64_t v = fields[i].fallback;
        const json *given = json_get(section, fields[i].name);
        if ((given && !json_int(given, 1, fields[i].max, &v)) || v < 1) {
            err = err_set(detail, ERR_INVALID, "config.json: vision_config.%s is missing or out of range",
                          fields[i].name);
        }
        *fields[i].value = (int32_t)v;
    }
    const char *act = json_str(json_get(section, "hidden_act"), "gelu_pytorch_tanh");
    if (!err && strcmp(act, "gelu_pytorch_tanh") != 0) {
        err = err_set(detail, ERR_UNSUPPORTED,
                      "config.json: vision_config.hidden_act must be gelu_pytorch_tanh");
    }
    err = err ? err : read_deepstack(vc, json_get(section, "deepstack_visual_indexes"), detail);
    vc->rope_theta = json_num(json_get(json_get(section, "rope_parameters"), "rope_theta"), 10000.0);
    if (!err && !(vc->rope_theta > 1)) {
        err = err_set(detail, ERR_INVALID,
                      "config.json: vision_config.rope_parameters.rope_theta is out of range");
    }
    const char *number_type = json_str(json_get(json_root(doc), "dtype"),
                                       json_str(json_get(json_root(doc), "torch_dtype"), "bfloat16"));
    vc->rope_bf16 = strcmp(number_type, "bfloat16") == 0;
    json_free(doc);
    return err;
}

static err_code check_config(const vit_config *vc, int32_t *side, err_detail *detail)
{
    *side = (int32_t)lrint(sqrt(vc->n_position_embeddings));
    if (*side * *side != vc->n_position_embeddings) {
        return err_set(detail, ERR_INVALID,
                       "config.json: vision_config.num_position_embeddings is not a square");
    }
    if (vc->hidden_size % vc->n_heads != 0 || vc->hidden_size / vc->n_heads % 4 != 0) {
        return err_set(detail, ERR_INVALID,
                       "config.json: vision_config.hidden_size must be num_heads times a multiple of 4");
    }
    return ERR_OK;
}

/* ---- weights ---- */

/* Finds tensors and remembers the first thing that is wrong. */
typedef struct loader {
    const tensor_source *tensors;
    const char *prefix;
    arena *memory;
    err_code err;
    err_detail *detail;
} loader;

/* A tensor that must have n_rows * n_cols elements, whatever its own shape (the patch embedding is
 * five-dimensional); the first dimension must be n_rows. It is seen as a matrix afterwards. */
static void load_matrix(loader *l, tensor *out, size_t n_rows, size_t n_cols, const char *layer,
                        const char *kind)
{
    char full[TENSOR_NAME_CHARS];
    if (l->err) {
        return;
    }
    (void)snprintf(full, sizeof full, "%s%s.%s", l->prefix, layer, kind);
    if (!l->tensors->find(l->tensors->ctx, full, out)) {
        l->err = err_set(l->detail, ERR_NOT_FOUND, "tensor %s is missing", full);
    } else if (out->type == DTYPE_OTHER) {
        l->err =
            err_set(l->detail, ERR_UNSUPPORTED, "tensor %s has a number type that is not supported", full);
    } else if (out->n_dims < 1 || out->dims[0] != n_rows || tensor_len(out) != n_rows * n_cols) {
        l->err = err_set(l->detail, ERR_INVALID, "tensor %s has %zu x %zu elements; %zu x %zu are needed",
                         full, out->n_dims < 1 ? (size_t)0 : out->dims[0],
                         out->n_dims < 1 || out->dims[0] == 0 ? (size_t)0 : tensor_len(out) / out->dims[0],
                         n_rows, n_cols);
    } else {
        out->n_dims = 2;
        out->dims[0] = n_rows;
        out->dims[1] = n_cols;
    }
}

/* The same as f32 values in the arena. */
static const float *load_f32(loader *l, size_t n_rows, size_t n_cols, const char *layer, const char *kind)
{
    tensor t = {0};
    load_matrix(l, &t, n_rows, n_cols, layer, kind);
    if (!l->err && t.type > DTYPE_OTHER) {
        l->err = err_set(l->detail, ERR_UNSUPPORTED, "tensor %s%s.%s must be F32, BF16 or F16", l->prefix,
                         layer, kind);
    }
    if (l->err) {
        return NULL;
    }
    float *values = arena_calloc(l->memory, n_rows * n_cols, sizeof *values);
    if (!values) {
        l->err = err_set(l->detail, ERR_NOMEM, "not enough memory for the vision encoder");
        return NULL;
    }
    tensor_to_f32(values, &t, 0, n_rows * n_cols);
    return values;
}

static void load_linear(loader *l, linear_weights *out, size_t n_out, size_t n_in, const char *layer)
{
    load_matrix(l, &out->w, n_out, n_in, layer, "weight");
    out->b = load_f32(l, n_out, 1, layer, "bias");
}

static void load_norm(loader *l, norm_weights *out, size_t width, const char *layer)
{
    out->w = load_f32(l, width, 1, layer, "weight");
    out->b = load_f32(l, width, 1, layer, "bias");
}

static void load_block(loader *l, block_weights *b, const vit_config *vc, int32_t i)
{
    size_t vh = (size_t)vc->hidden_size, vi = (size_t)vc->intermediate_size;
    char layer[LAYER_NAME_CHARS];
    const struct {
        const char *part;
        norm_weights *out;
    } norms[] = {{"norm1", &b->norm1}, {"norm2", &b->norm2}};
    const struct {
        const char *part;
        linear_weights *out;
        size_t n_out, n_in;
    } linears[] = {
        {"attn.qkv", &b->qkv, 3 * vh, vh},
        {"attn.proj", &b->proj, vh, vh},
        {"mlp.linear_fc1", &b->fc1, vi, vh},
        {"mlp.linear_fc2", &b->fc2, vh, vi},
    };
    for (size_t n = 0; n < ARRAY_LEN(norms); n++) {
        (void)snprintf(layer, sizeof layer, "blocks.%d.%s", i, norms[n].part);
        load_norm(l, norms[n].out, vh, layer);
    }
    for (size_t n = 0; n < ARRAY_LEN(linears); n++) {
        (void)snprintf(layer, sizeof layer, "blocks.%d.%s", i, linears[n].part);
        load_linear(l, linears[n].out, linears[n].n_out, linears[n].n_in, layer);
    }
}

static size_t patch_dim(const vit_config *vc)
{
    return (size_t)vc->in_channels * (size_t)vc->temporal_patch_size * (size_t)vc->patch_size *
           (size_t)vc->patch_size;
}

static size_t merge_area(const vit_config *vc)
{
    return (size_t)vc->spatial_merge_size * (size_t)vc->spatial_merge_size;
}

static void load_merger(loader *l, merger_weights *m, const vit_config *vc, const char *name,
                        bool joins_first)
{
    const size_t vh = (size_t)vc->hidden_size, merged = merge_area(vc) * vh;
    char layer[LAYER_NAME_CHARS];
    m->joins_first = joins_first;
    (void)snprintf(layer, sizeof layer, "%s.norm", name);
    load_norm(l, &m->norm, joins_first ? merged : vh, layer);
    (void)snprintf(layer, sizeof layer, "%s.linear_fc1", name);
    load_linear(l, &m->fc1, merged, merged, layer);
    (void)snprintf(layer, sizeof layer, "%s.linear_fc2", name);
    load_linear(l, &m->fc2, (size_t)vc->out_hidden_size, merged, layer);
}

static void load_weights(vit *v, loader *l)
{
    const vit_config *vc = &v->config;
    size_t vh = (size_t)vc->hidden_size;
    char name[LAYER_NAME_CHARS / 2];
    load_linear(l, &v->patch_embed, vh, patch_dim(vc), "patch_embed.proj");
    v->positions = load_f32(l, (size_t)vc->n_position_embeddings, vh, "pos_embed", "weight");
    for (int32_t i = 0; i < vc->depth; i++) {
        load_block(l, &v->blocks[i], vc, i);
    }
    load_merger(l, &v->merger, vc, "merger", false);
    for (int32_t i = 0; i < vc->n_deepstack; i++) {
        (void)snprintf(name, sizeof name, "deepstack_merger_list.%d", i);
        load_merger(l, &v->deepstack[i], vc, name, true);
    }
}

/* "model.visual." in released checkpoints, "visual." in exports without the outer model. */
static const char *find_prefix(const tensor_source *tensors)
{
    tensor t;
    return tensors->find(tensors->ctx, "visual.patch_embed.proj.weight", &t) ? "visual." : "model.visual.";
}

err_code vit_open(vit **out, json_source docs, const tensor_source *tensors, compute *c, err_detail *detail)
{
    *out = NULL;
    vit *v = calloc(1, sizeof *v);
    if (!v) {
        return err_set(detail, ERR_NOMEM, "not enough memory for the vision encoder");
    }
    v->c = c;
    err_code err = read_config(&v->config, docs, detail);
    err = err ? err : check_config(&v->config, &v->side, detail);
    if (!err) {
        v->memory = arena_create(SIZE_MAX / 2);
        v->blocks = v->memory ? arena_calloc(v->memory, (size_t)v->config.depth, sizeof *v->blocks) : NULL;
        if (!v->blocks) {
            err = err_set(detail, ERR_NOMEM, "not enough memory for the vision encoder");
        }
    }
    if (!err) {
        loader l = {
            .tensors = tensors, .prefix = find_prefix(tensors), .memory = v->memory, .detail = detail};
        load_weights(v, &l);
        err = l.err;
    }
    if (err) {
        vit_close(v);
        return err;
    }
    *out = v;
    return ERR_OK;
}

static void scratch_free(compute *c, scratch *s)
{
    float *const parts[] = {s->x,      s->qkv,  s->attention, s->cos, s->sin,
                            s->narrow, s->wide, s->merged,    s->rows};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        compute_free(c, parts[i]);
    }
    *s = (scratch){0};
}

void vit_close(vit *v)
{
    if (v) {
        scratch_free(v->c, &v->s);
        arena_destroy(v->memory);
        free(v);
    }
}

const vit_config *vit_get_config(const vit *v)
{
    return &v->config;
}

/* Floats of an output row: the embedding, and as many for each of the DeepStack blocks. */
static size_t row_floats(const vit *v)
{
    return (size_t)v->config.out_hidden_size * (1 + (size_t)v->config.n_deepstack);
}

/* ---- encoding ---- */

static bool take(compute *c, float **out, size_t rows, size_t columns)
{
    size_t n = 0;
    return size_mul(&n, rows, columns) && size_mul(&n, n, sizeof **out) && (*out = compute_alloc(c, n));
}

static err_code scratch_reserve(vit *v, size_t n_patches, err_detail *detail)
{
    const vit_config *vc = &v->config;
    scratch *s = &v->s;
    size_t vh = (size_t)vc->hidden_size, vi = (size_t)vc->intermediate_size;
    size_t chunk = CHUNK_TOKENS * merge_area(vc), half_head = vh / (size_t)vc->n_heads / 2;
    if (n_patches <= s->max_patches) {
        return ERR_OK;
    }
    scratch_free(v->c, s);
    bool ok = take(v->c, &s->x, n_patches, vh) && take(v->c, &s->qkv, n_patches, 3 * vh) &&
              take(v->c, &s->attention, n_patches, vh) && take(v->c, &s->cos, n_patches, half_head) &&
              take(v->c, &s->sin, n_patches, half_head) && take(v->c, &s->narrow, chunk, vh) &&
              take(v->c, &s->wide, chunk, vi > vh ? vi : vh) &&
              take(v->c, &s->merged, CHUNK_TOKENS, (size_t)vc->out_hidden_size) &&
              take(v->c, &s->rows, chunk, patch_dim(vc));
    if (!ok) {
        scratch_free(v->c, s);
        return err_set(detail, ERR_NOMEM, "not enough memory to encode the image");
    }
    s->max_patches = n_patches;
    return ERR_OK;
}

size_t vit_scratch_bytes(const vit *v, size_t n_patches)
{
    const vit_config *vc = &v->config;
    const size_t vh = (size_t)vc->hidden_size, vi = (size_t)vc->intermediate_size;
    const size_t half_head = vh / (size_t)vc->n_heads / 2, chunk = CHUNK_TOKENS * merge_area(vc);
    const size_t per_patch = 5 * vh + 2 * half_head, per_chunk_row = vh + (vi > vh ? vi : vh) + patch_dim(vc);
    return sizeof(float) *
           (n_patches * per_patch + chunk * per_chunk_row + CHUNK_TOKENS * (size_t)vc->out_hidden_size);
}

void vit_trim(vit *v, size_t max_bytes)
{
    if (v->s.max_patches && vit_scratch_bytes(v, v->s.max_patches) > max_bytes) {
        scratch_free(v->c, &v->s);
    }
}

/* Row and column of patch number i in block order. */
static void patch_place(const vit_config *vc, int32_t w, size_t i, int32_t *row, int32_t *column)
{
    int32_t merge = vc->spatial_merge_size, n = (int32_t)i;
    int32_t cell = n % (merge * merge), block = n / (merge * merge);
    *row = block / (w / merge) * merge + cell / merge;
    *column = block % (w / merge) * merge + cell % merge;
}

/* The table position of coordinate i of n, corners aligned: lower index, upper index, fraction. */
static float table_place(int32_t i, int32_t n, int32_t side, int32_t *low, int32_t *high)
{
    double f = n > 1 ? (double)i * (side - 1) / (n - 1) : 0;
    *low = (int32_t)f;
    *high = *low + 1 < side ? *low + 1 : side - 1;
    return (float)(f - *low);
}

/* x [h*w, vh] = the position table, bilinearly interpolated to the grid. */
static void fill_positions(float *x, const vit *v, int32_t h, int32_t w)
{
    size_t vh = (size_t)v->config.hidden_size, side = (size_t)v->side, n = (size_t)h * (size_t)w;
    for (size_t i = 0; i < n; i++, x += vh) {
        int32_t row, column, r0, r1, c0, c1;
        patch_place(&v->config, w, i, &row, &column);
        float dr = table_place(row, h, v->side, &r0, &r1), dc = table_place(column, w, v->side, &c0, &c1);
        const float *p00 = v->positions + ((size_t)r0 * side + (size_t)c0) * vh;
        const float *p01 = v->positions + ((size_t)r0 * side + (size_t)c1) * vh;
        const float *p10 = v->positions + ((size_t)r1 * side + (size_t)c0) * vh;
        const float *p11 = v->positions + ((size_t)r1 * side + (size_t)c1) * vh;
        float w00 = (1 - dr) * (1 - dc), w01 = (1 - dr) * dc, w10 = dr * (1 - dc), w11 = dr * dc;
        for (size_t k = 0; k < vh; k++) {
            x[k] = w00 * p00[k] + w01 * p01[k] + w10 * p10[k] + w11 * p11[k];
        }
    }
}

/* The nearest bfloat16, ties to even; x is finite. */
static float round_to_bf16(float x)
{
    uint32_t bits = 0;
    memcpy(&bits, &x, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1);
    bits &= 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* cos, sin [h*w, vd/2]: the first half of a patch's angles comes from its row, the second from its
 * column. */
static void fill_rotary(scratch *s, const vit_config *vc, int32_t h, int32_t w)
{
    size_t pairs = (size_t)vc->hidden_size / (size_t)vc->n_heads / 2, n_freq = pairs / 2;
    for (size_t f = 0; f < n_freq; f++) {
        float freq = (float)(1.0 / pow(vc->rope_theta, (double)f / (double)n_freq));
        if (vc->rope_bf16) {
            freq = round_to_bf16(freq);
        }
        for (size_t i = 0; i < (size_t)h * (size_t)w; i++) {
            int32_t row, column;
            patch_place(vc, w, i, &row, &column);
            float by_row = (float)row * freq, by_column = (float)column * freq;
            s->cos[i * pairs + f] = cosf(by_row);
            s->sin[i * pairs + f] = sinf(by_row);
            s->cos[i * pairs + n_freq + f] = cosf(by_column);
            s->sin[i * pairs + n_freq + f] = sinf(by_column);
        }
    }
}

static size_t chunk_rows(const vit_config *vc, size_t begin, size_t n_rows)
{
    size_t chunk = CHUNK_TOKENS * merge_area(vc);
    return n_rows - begin < chunk ? n_rows - begin : chunk;
}

static void linear(compute *c, float *out, const float *x, const linear_weights *l, size_t n_rows)
{
    const linear_part part = {out, &l->w, l->b};
    nn_linear_many(c, &part, 1, x, n_rows);
}

/* x = x + proj(attention(norm1(x))) */
static void attention_branch(vit *v, compute *c, const block_weights *b, size_t n)
{
    const vit_config *vc = &v->config;
    scratch *s = &v->s;
    size_t vh = (size_t)vc->hidden_size, heads = (size_t)vc->n_heads, vd = vh / heads;
    for (size_t at = 0; at < n;) {
        size_t rows = chunk_rows(vc, at, n);
        nn_layernorm(c, s->narrow, s->x + at * vh, b->norm1.w, b->norm1.b, NORM_EPS, rows, vh);
        linear(c, s->qkv + at * 3 * vh, s->narrow, &b->qkv, rows);
        at += rows;
    }
    for (size_t part = 0; part < 2; part++) { /* q, then k */
        nn_rope(c, s->qkv + part * vh, s->cos, s->sin, n, heads, vd / 2, 3 * vh, vd);
    }
    const int32_t cu[2] = {0, (int32_t)n};
    nn_attention_segments(c, s->attention, s->qkv, cu, 1, 1.0f / sqrtf((float)vd), heads, vd);
    for (size_t at = 0; at < n;) {
        size_t rows = chunk_rows(vc, at, n);
        linear(c, s->narrow, s->attention + at * vh, &b->proj, rows);
        nn_add(c, s->x + at * vh, s->narrow, rows * vh);
        at += rows;
    }
}

/* x = x + fc2(gelu_tanh(fc1(norm2(x)))) */
static void mlp_branch(vit *v, compute *c, const block_weights *b, size_t n)
{
    const vit_config *vc = &v->config;
    scratch *s = &v->s;
    size_t vh = (size_t)vc->hidden_size, vi = (size_t)vc->intermediate_size;
    for (size_t at = 0; at < n;) {
        size_t rows = chunk_rows(vc, at, n);
        nn_layernorm(c, s->narrow, s->x + at * vh, b->norm2.w, b->norm2.b, NORM_EPS, rows, vh);
        linear(c, s->wide, s->narrow, &b->fc1, rows);
        nn_gelu_tanh(c, s->wide, rows * vi);
        linear(c, s->narrow, s->wide, &b->fc2, rows);
        nn_add(c, s->x + at * vh, s->narrow, rows * vh);
        at += rows;
    }
}

/* Part `part` of the rows out [n / merge^2, row_floats] from the n patches as they stand in x:
 * the main merger normalises each patch FIRST, then joins the patches of a block; those of
 * DeepStack join first. */
static void merge(vit *v, compute *c, const merger_weights *m, float *out, size_t part, size_t n)
{
    const vit_config *vc = &v->config;
    scratch *s = &v->s;
    const size_t vh = (size_t)vc->hidden_size, area = merge_area(vc), width = (size_t)vc->out_hidden_size;
    const size_t joined = m->joins_first ? area : 1, row_width = row_floats(v);
    for (size_t at = 0; at < n;) {
        size_t rows = chunk_rows(vc, at, n), tokens = rows / area;
        nn_layernorm(c, s->narrow, s->x + at * vh, m->norm.w, m->norm.b, NORM_EPS, rows / joined,
                     joined * vh);
        linear(c, s->wide, s->narrow, &m->fc1, tokens);
        nn_gelu_erf(c, s->wide, rows * vh);
        linear(c, s->merged, s->wide, &m->fc2, tokens);
        for (size_t t = 0; t < tokens; t++) {
            memcpy(out + (at / area + t) * row_width + part * width, s->merged + t * width,
                   width * sizeof *out);
        }
        at += rows;
    }
}

/* Rows first .. first+n-1, where they are or in scratch. */
static const float *rows_at(vit *v, const vit_rows *rows, size_t first, size_t n)
{
    if (rows->rows) {
        return rows->rows + first * patch_dim(&v->config);
    }
    rows->read(rows->ctx, v->s.rows, first, n);
    return v->s.rows;
}

/* first: of the frame's rows. */
static void encode_frame(vit *v, compute *c, float *out, float *last_hidden, const vit_rows *rows,
                         size_t first, int32_t h, int32_t w)
{
    const vit_config *vc = &v->config;
    scratch *s = &v->s;
    size_t n = (size_t)h * (size_t)w, vh = (size_t)vc->hidden_size;
    fill_positions(s->x, v, h, w);
    for (size_t at = 0; at < n;) {
        size_t count = chunk_rows(vc, at, n);
        linear(c, s->narrow, rows_at(v, rows, first + at, count), &v->patch_embed, count);
        nn_add(c, s->x + at * vh, s->narrow, count * vh);
        at += count;
    }
    for (int32_t i = 0, k = 0; i < vc->depth; i++) {
        attention_branch(v, c, &v->blocks[i], n);
        mlp_branch(v, c, &v->blocks[i], n);
        if (k < vc->n_deepstack && vc->deepstack[k] == i) {
            merge(v, c, &v->deepstack[k], out, (size_t)k + 1, n);
            k++;
        }
    }
    if (last_hidden) {
        memcpy(last_hidden, s->x, n * vh * sizeof *last_hidden);
    }
    merge(v, c, &v->merger, out, 0, n);
}

err_code vit_encode(vit *v, compute *c, float *out, float *last_hidden, const vit_rows *rows, int32_t t,
                    int32_t h, int32_t w, err_detail *detail)
{
    const vit_config *vc = &v->config;
    int32_t step = vc->spatial_merge_size;
    if (t < 1 || h < 1 || w < 1 || h % step != 0 || w % step != 0 || (int64_t)h * w > INT32_MAX) {
        return err_set(detail, ERR_INVALID, "a grid of %d x %d x %d patches cannot be encoded", t, h, w);
    }
    size_t n = (size_t)h * (size_t)w;
    err_code err = scratch_reserve(v, n, detail);
    if (err) {
        return err;
    }
    fill_rotary(&v->s, vc, h, w);
    for (size_t i = 0; i < (size_t)t; i++) {
        encode_frame(v, c, out + i * n / merge_area(vc) * row_floats(v),
                     last_hidden ? last_hidden + i * n * (size_t)vc->hidden_size : NULL, rows, i * n, h, w);
    }
    return ERR_OK;
}
