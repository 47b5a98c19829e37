/* The tower: patch embedding and positions, blocks of (attention inside a frame, MLP), then what makes
 * one row of the language model of merge x merge neighbouring patches; with DeepStack the same happens
 * behind some of the blocks. What of this a family has, and how it is named, is its reader's
 * (vit_parts.h).
 *
 * Rows are computed in chunks of fixed size, so scratch stays small. Small frames are encoded together, as
 * many as fill a chunk: products of few rows cost more. A frame's result does not depend on those beside it.
 */
#include "vision/vit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "vision/vit_parts.h"

enum { CHUNK_TOKENS = 256 };

/* Kept between calls, grown to the largest frame seen. */
typedef struct scratch {
    size_t max_patches;
    float *x;         /* [patches, vh]; of all frames of a group, as everything here */
    float *qkv;       /* [patches, 3*width] */
    float *attention; /* [patches, width] */
    float *cos, *sin; /* [patches, vd/2]; where halves are turned apart [2, patches, vd/4] */
    float *narrow;    /* [chunk rows, vh] */
    float *wide;      /* [chunk rows, widest]; also the merger's hidden rows */
    float *gate;      /* [chunk rows, vi], if the MLP has one */
    float *held;      /* [chunk rows, widest] what a product reads, if it is clipped */
    float *merged;    /* [chunk tokens, out_hidden] */
    float *rows;      /* [chunk rows, patch_dim] */
    /* Models with windows; else NULL. The block of patches, counted row by row, that stands at each place:
     * [blocks], window by window. */
    int32_t *order;
    /* How many patches stand before each frame, or window, and behind the last. */
    int32_t *frames, *windows;
    size_t n_frames, n_windows;
} scratch;

struct vit {
    vit_parts parts;
    compute *c;
    scratch s;
};

/* "model.visual." in released checkpoints, "visual." in exports without the outer model and of all
 * tensors that a checkpoint has renamed. */
static const char *find_prefix(const tensor_source *tensors)
{
    static const char *const first[] = {"visual.patch_embed.proj.weight",
                                        "visual.patch_embedder.input_proj.weight"};
    tensor t;
    for (size_t i = 0; i < ARRAY_LEN(first); i++) {
        if (tensors->find(tensors->ctx, first[i], &t)) {
            return "visual.";
        }
    }
    return "model.visual.";
}

static const vit_family *family_of(const json *root)
{
    const char *whole = json_str(json_get(root, "model_type"), ""),
               *type = json_str(json_get(json_get(root, "vision_config"), "model_type"), whole);
    return strcmp(type, "gemma4_vision") == 0               ? &VIT_GEMMA4
           : strncmp(type, "qwen2_", strlen("qwen2_")) == 0 ? &VIT_QWEN2
                                                            : &VIT_QWEN;
}

/* Reads the config by the family's reader, *family. */
static err_code read_config(vit_parts *p, const vit_family **family, json_source docs, err_detail *detail)
{
    json_doc *doc = NULL;
    err_code err = docs.read(docs.ctx, "config.json", &doc, detail);
    if (err) {
        return err;
    }
    if (!doc) {
        return err_set(detail, ERR_NOT_FOUND, "%s: there is no config.json", docs.where);
    }
    const json *root = json_root(doc);
    *family = family_of(root);
    err = json_get(root, "vision_config")
              ? (*family)->read(&p->config, &p->side, root, detail)
              : err_set(detail, ERR_NOT_FOUND, "config.json: there is no vision_config");
    json_free(doc);
    return err;
}

err_code vit_open(vit **out, json_source docs, const tensor_source *tensors, compute *c, err_detail *detail)
{
    *out = NULL;
    vit *v = calloc(1, sizeof *v);
    if (!v) {
        return err_set(detail, ERR_NOMEM, "not enough memory for the vision encoder");
    }
    v->c = c;
    vit_parts *p = &v->parts;
    const vit_family *family = NULL;
    err_code err = read_config(p, &family, docs, detail);
    if (!err) {
        p->memory = arena_create(SIZE_MAX / 2);
        p->blocks = p->memory ? arena_calloc(p->memory, (size_t)p->config.depth, sizeof *p->blocks) : NULL;
        if (!p->blocks) {
            err = err_set(detail, ERR_NOMEM, "not enough memory for the vision encoder");
        }
    }
    if (!err) {
        vit_loader l = {
            .tensors = tensors, .prefix = find_prefix(tensors), .memory = p->memory, .detail = detail};
        family->load(p, &l);
        err = l.err;
    }
    if (err) {
        vit_close(v);
        return err;
    }
    *out = v;
    return ERR_OK;
}

tensor *vit_matrix(vit *v, size_t i)
{
    vit_linear *l = vit_linear_at(&v->parts, i);
    return l ? &l->w : NULL;
}

static void scratch_free(compute *c, scratch *s)
{
    float *const parts[] = {s->x,    s->qkv,  s->attention, s->cos,    s->sin, s->narrow,
                            s->wide, s->gate, s->held,      s->merged, s->rows};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        compute_free(c, parts[i]);
    }
    compute_free(c, s->order);
    compute_free(c, s->frames);
    *s = (scratch){0};
}

void vit_close(vit *v)
{
    if (v) {
        scratch_free(v->c, &v->s);
        arena_destroy(v->parts.memory);
        free(v);
    }
}

const vit_config *vit_get_config(const vit *v)
{
    return &v->parts.config;
}

/* Floats of an output row: the embedding, and as many for each of the DeepStack blocks. */
static size_t row_floats(const vit *v)
{
    return (size_t)v->parts.config.out_hidden_size * (1 + (size_t)v->parts.config.n_deepstack);
}

/* ---- scratch ---- */

/* One buffer: of so many floats a patch of the frame, or a row of a chunk, or a token of it. */
typedef struct buffer {
    float **at;
    size_t rows, columns;
} buffer;

enum { N_BUFFERS = 11 };

static void list_buffers(buffer out[N_BUFFERS], scratch *s, const vit_config *vc, size_t n_patches)
{
    const size_t vh = (size_t)vc->hidden_size, vi = (size_t)vc->intermediate_size;
    const size_t width = vit_attention_width(vc), half_head = (size_t)vc->head_dim / 2;
    const size_t chunk = CHUNK_TOKENS * vit_merge_area(vc);
    size_t widest = vi > vh ? vi : vh;
    widest = width > widest ? width : widest;
    const buffer all[N_BUFFERS] = {
        {&s->x, n_patches, vh},
        {&s->qkv, n_patches, 3 * width},
        {&s->attention, n_patches, width},
        {&s->cos, n_patches, half_head},
        {&s->sin, n_patches, half_head},
        {&s->narrow, chunk, vh},
        {&s->wide, chunk, widest},
        {&s->gate, vc->is_gated || vc->activation == VIT_QUICK_GELU ? chunk : 0, vi},
        {&s->held, vc->is_clipped ? chunk : 0, widest},
        {&s->merged, CHUNK_TOKENS, (size_t)vc->out_hidden_size},
        {&s->rows, chunk, vit_patch_dim(vc)},
    };
    memcpy(out, all, sizeof all);
}

/* Bytes of the order of n patches, and of where frames and windows begin. */
static size_t order_bytes(const vit_config *vc, size_t n_patches)
{
    return vc->window ? n_patches / vit_merge_area(vc) * sizeof(int32_t) : 0;
}

static size_t begin_bytes(const vit_config *vc, size_t n_patches)
{
    return 2 * (n_patches / vit_merge_area(vc) + 1) * sizeof(int32_t);
}

/* Frames of n patches that are encoded together: their number must not change a result. */
static size_t frames_together(const vit *v, size_t n)
{
    const size_t most = CHUNK_TOKENS * vit_merge_area(&v->parts.config) / n;
    return nn_many_is_exact(v->c) && most > 1 ? most : 1;
}

static err_code scratch_reserve(vit *v, size_t n_patches, err_detail *detail)
{
    scratch *s = &v->s;
    buffer all[N_BUFFERS];
    if (n_patches <= s->max_patches) {
        return ERR_OK;
    }
    scratch_free(v->c, s);
    list_buffers(all, s, &v->parts.config, n_patches);
    for (size_t i = 0; i < N_BUFFERS; i++) {
        size_t n = 0;
        const bool ok = size_mul(&n, all[i].rows, all[i].columns) && size_mul(&n, n, sizeof(float));
        *all[i].at = ok && n > 0 ? compute_alloc(v->c, n) : NULL;
        if (!*all[i].at && (!ok || n > 0)) {
            scratch_free(v->c, s);
            return err_set(detail, ERR_NOMEM, "not enough memory to encode the image");
        }
    }
    const size_t n = order_bytes(&v->parts.config, n_patches);
    s->order = n ? compute_alloc(v->c, n) : NULL;
    s->frames = compute_alloc(v->c, begin_bytes(&v->parts.config, n_patches));
    if ((n && !s->order) || !s->frames) {
        scratch_free(v->c, s);
        return err_set(detail, ERR_NOMEM, "not enough memory to encode the image");
    }
    s->max_patches = n_patches;
    return ERR_OK;
}

size_t vit_scratch_bytes(const vit *v, size_t n_patches)
{
    scratch s;
    buffer all[N_BUFFERS];
    size_t n = 0;
    n_patches *= n_patches ? frames_together(v, n_patches) : 1;
    list_buffers(all, &s, &v->parts.config, n_patches);
    for (size_t i = 0; i < N_BUFFERS; i++) {
        n += all[i].rows * all[i].columns;
    }
    return sizeof(float) * n + order_bytes(&v->parts.config, n_patches) +
           begin_bytes(&v->parts.config, n_patches);
}

void vit_trim(vit *v, size_t max_bytes)
{
    if (vit_scratch_bytes(v, v->s.max_patches) > max_bytes) {
        scratch_free(v->c, &v->s);
    }
}

/* ---- positions ---- */

/* Where each of n frames of h x w patches begins. */
static void place_frames(scratch *s, size_t n, int32_t h, int32_t w)
{
    s->n_frames = n;
    for (size_t i = 0; i <= n; i++) {
        s->frames[i] = (int32_t)i * h * w;
    }
}

/* Orders the blocks of a frame window by window, and finds where the windows of all frames begin. */
static void order_windows(scratch *s, const vit_config *vc, int32_t h, int32_t w)
{
    const int32_t merge = vc->spatial_merge_size, rows = h / merge, columns = w / merge, size = vc->window;
    size_t n = 0;
    s->n_windows = 0;
    s->windows = s->frames + s->n_frames + 1;
    s->windows[0] = 0;
    for (int32_t top = 0; top < rows; top += size) {
        for (int32_t left = 0; left < columns; left += size) {
            for (int32_t r = top; r < rows && r < top + size; r++) {
                for (int32_t c = left; c < columns && c < left + size; c++) {
                    s->order[n++] = r * columns + c;
                }
            }
            s->windows[++s->n_windows] = (int32_t)(n * vit_merge_area(vc));
        }
    }
    const size_t of_frame = s->n_windows;
    s->n_windows *= s->n_frames;
    for (size_t i = of_frame; i < s->n_windows; i++) {
        s->windows[i + 1] = s->windows[i + 1 - of_frame] + h * w;
    }
}

/* The block of the group's rows, frame by frame and there row by row, that stands at a place. */
static size_t block_at(const scratch *s, const vit_config *vc, size_t place)
{
    const size_t n = (size_t)s->frames[1] / vit_merge_area(vc);
    return s->order ? place / n * n + (size_t)s->order[place % n] : place;
}

/* Row and column of the patch at place i: in block order, of blocks as they are ordered (NULL: row by
 * row). */
static void patch_place(const vit_config *vc, const int32_t *order, int32_t w, size_t i, int32_t *row,
                        int32_t *column)
{
    int32_t merge = vc->spatial_merge_size, n = (int32_t)i;
    int32_t cell = n % (merge * merge), block = n / (merge * merge);
    block = order ? order[block] : block;
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

/* x [h*w, vh] = the position map, bilinearly interpolated to the grid. */
static void fill_from_map(float *x, const vit_parts *p, int32_t h, int32_t w)
{
    size_t vh = (size_t)p->config.hidden_size, side = (size_t)p->side, n = (size_t)h * (size_t)w;
    for (size_t i = 0; i < n; i++, x += vh) {
        int32_t row, column, r0, r1, c0, c1;
        patch_place(&p->config, NULL, w, i, &row, &column);
        float dr = table_place(row, h, p->side, &r0, &r1), dc = table_place(column, w, p->side, &c0, &c1);
        const float *p00 = p->position_map + ((size_t)r0 * side + (size_t)c0) * vh;
        const float *p01 = p->position_map + ((size_t)r0 * side + (size_t)c1) * vh;
        const float *p10 = p->position_map + ((size_t)r1 * side + (size_t)c0) * vh;
        const float *p11 = p->position_map + ((size_t)r1 * side + (size_t)c1) * vh;
        float w00 = (1 - dr) * (1 - dc), w01 = (1 - dr) * dc, w10 = dr * (1 - dc), w11 = dr * dc;
        for (size_t k = 0; k < vh; k++) {
            x[k] = w00 * p00[k] + w01 * p01[k] + w10 * p10[k] + w11 * p11[k];
        }
    }
}

/* x [h*w, vh] = what the column has, and what the row has. of: [2, vh], for one of each. */
static void fill_from_axes(float *x, float *of, const vit_parts *p, int32_t h, int32_t w)
{
    size_t vh = (size_t)p->config.hidden_size, n = (size_t)h * (size_t)w;
    for (size_t i = 0; i < n; i++, x += vh) {
        int32_t row, column;
        patch_place(&p->config, NULL, w, i, &row, &column);
        tensor_to_f32(of, &p->position_axes, (size_t)column * vh, vh);
        tensor_to_f32(of + vh, &p->position_axes, ((size_t)p->side + (size_t)row) * vh, vh);
        for (size_t k = 0; k < vh; k++) {
            x[k] = of[k] + of[vh + k];
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

/* The angles of all patches of a group. Either the first half of a patch's [vd/2] comes from its row and the second
 * from its column; or all columns come first [patches, vd/4], then all rows. */
static void fill_rotary(scratch *s, const vit_config *vc, int32_t h, int32_t w)
{
    const size_t of_frame = (size_t)h * (size_t)w, n = s->n_frames * of_frame,
                 n_freq = (size_t)vc->head_dim / 4;
    const size_t stride = vc->turns_halves ? n_freq : 2 * n_freq,
                 second = vc->turns_halves ? n * n_freq : n_freq;
    for (size_t f = 0; f < n_freq; f++) {
        float freq = (float)(1.0 / pow(vc->rope_theta, (double)f / (double)n_freq));
        if (vc->rope_bf16) {
            freq = round_to_bf16(freq);
        }
        for (size_t i = 0; i < of_frame; i++) {
            int32_t row, column;
            patch_place(vc, s->order, w, i, &row, &column);
            const float by_row = (float)row * freq, by_column = (float)column * freq;
            const float one = vc->turns_halves ? by_column : by_row,
                        other = vc->turns_halves ? by_row : by_column;
            s->cos[i * stride + f] = cosf(one);
            s->sin[i * stride + f] = sinf(one);
            s->cos[second + i * stride + f] = cosf(other);
            s->sin[second + i * stride + f] = sinf(other);
        }
    }
    float *const parts[] = {s->cos, s->sin, s->cos + second, s->sin + second};
    for (size_t p = 0; p < (vc->turns_halves ? ARRAY_LEN(parts) : 2); p++) {
        for (size_t i = of_frame; i < n; i += of_frame) {
            memcpy(parts[p] + i * stride, parts[p], of_frame * stride * sizeof *parts[p]);
        }
    }
}

/* Turns the n rows of queries or keys at x, 3*width apart. */
static void turn(compute *c, const scratch *s, const vit_config *vc, float *x, size_t n)
{
    const size_t heads = (size_t)vc->n_heads, vd = (size_t)vc->head_dim, stride = 3 * heads * vd;
    if (!vc->turns_halves) {
        nn_rope(c, x, s->cos, s->sin, n, heads, vd / 2, stride, vd);
        return;
    }
    for (size_t half = 0; half < 2; half++) {
        const size_t angles = half * n * (vd / 4);
        nn_rope(c, x + half * vd / 2, s->cos + angles, s->sin + angles, n, heads, vd / 4, stride, vd);
    }
}

/* ---- encoding ---- */

static size_t chunk_rows(const vit_config *vc, size_t begin, size_t n_rows)
{
    size_t chunk = CHUNK_TOKENS * vit_merge_area(vc);
    return n_rows - begin < chunk ? n_rows - begin : chunk;
}

/* out = x, held between the bounds. */
static void hold(float *out, const float *x, float low, float high, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float v = x[i] < low ? low : x[i];
        out[i] = v > high ? high : v;
    }
}

static void linear(vit *v, compute *c, float *out, const float *x, const vit_linear *l, size_t n_rows)
{
    const linear_part part = {out, &l->w, l->b};
    if (l->is_clipped) {
        hold(v->s.held, x, l->in_min, l->in_max, n_rows * l->w.dims[1]);
        x = v->s.held;
    }
    nn_linear_many(c, &part, 1, x, n_rows);
    if (l->is_clipped) {
        hold(out, out, l->out_min, l->out_max, n_rows * l->w.dims[0]);
    }
}

/* out may be x. */
static void norm(const vit *v, compute *c, float *out, const float *x, const vit_norm *w, size_t n,
                 size_t width)
{
    const float eps = v->parts.config.norm_eps;
    if (w->b) {
        nn_layernorm(c, out, x, w->w, w->b, eps, n, width);
    } else {
        nn_rmsnorm(c, out, x, w->w, eps, n, width);
    }
}

/* x += y, normed before where the model has a norm there. */
static void add_output(const vit *v, compute *c, float *x, float *y, const vit_norm *w, size_t n)
{
    const size_t vh = (size_t)v->parts.config.hidden_size;
    if (w->w) {
        norm(v, c, y, y, w, n, vh);
    }
    nn_add(c, x, y, n * vh);
}

/* Queries, keys and values of rows at .. at+n-1, whose normed input is in narrow. */
static void project(vit *v, compute *c, const vit_block *b, size_t at, size_t n)
{
    scratch *s = &v->s;
    const size_t width = vit_attention_width(&v->parts.config);
    float *out = s->qkv + at * 3 * width;
    if (!b->qkv[1].w.data) {
        linear(v, c, out, s->narrow, &b->qkv[0], n);
        return;
    }
    for (size_t part = 0; part < 3; part++) {
        linear(v, c, s->wide, s->narrow, &b->qkv[part], n);
        for (size_t i = 0; i < n; i++) {
            memcpy(out + i * 3 * width + part * width, s->wide + i * width, width * sizeof *out);
        }
    }
}

/* What attention is rounded to: nothing that its own products keep. */
static dtype rounding(const vit_block *b)
{
    const dtype type = b->qkv[0].w.type;
    return type == DTYPE_Q8 || !dtype_is_quantized(type) ? type : DTYPE_BF16;
}

/* x = x + proj(attention(norm1(x))) */
static void attention_branch(vit *v, compute *c, const vit_block *b, size_t n)
{
    const vit_config *vc = &v->parts.config;
    scratch *s = &v->s;
    const size_t vh = (size_t)vc->hidden_size, heads = (size_t)vc->n_heads, vd = (size_t)vc->head_dim,
                 width = heads * vd;
    const float *const norms[] = {b->q_norm, b->k_norm, b->v_norm};
    for (size_t at = 0; at < n;) {
        size_t rows = chunk_rows(vc, at, n);
        norm(v, c, s->narrow, s->x + at * vh, &b->norm1, rows, vh);
        project(v, c, b, at, rows);
        at += rows;
    }
    for (size_t part = 0; part < 3; part++) {
        float *x = s->qkv + part * width;
        if (norms[part]) {
            nn_rmsnorm_heads(c, x, norms[part], vc->norm_eps, n, heads, vd, 3 * width, vd);
        }
        if (part < 2) {
            turn(c, s, vc, x, n);
        }
    }
    const bool windowed = vc->window && !vc->sees_frame[b - v->parts.blocks];
    nn_attention_segments(c, s->attention, s->qkv, windowed ? s->windows : s->frames,
                          windowed ? s->n_windows : s->n_frames, rounding(b), vc->attention_scale, heads, vd);
    for (size_t at = 0; at < n;) {
        size_t rows = chunk_rows(vc, at, n);
        linear(v, c, s->narrow, s->attention + at * width, &b->proj, rows);
        add_output(v, c, s->x + at * vh, s->narrow, &b->out_norm1, rows);
        at += rows;
    }
}

/* x = x * sigmoid(1.702 * x) */
static void quick_gelu(compute *c, const scratch *s, float *x, size_t n_rows, size_t width)
{
    memcpy(s->gate, x, n_rows * width * sizeof *x);
    nn_scale(c, s->gate, 1.702f, n_rows * width);
    nn_sigmoid_gate(c, x, s->gate, n_rows, 1, width, width, width);
}

/* x = x + down(act(up(norm2(x)))), or down(act(gate(...)) * up(...)) */
static void mlp_branch(vit *v, compute *c, const vit_block *b, size_t n)
{
    const vit_config *vc = &v->parts.config;
    scratch *s = &v->s;
    size_t vh = (size_t)vc->hidden_size, vi = (size_t)vc->intermediate_size;
    for (size_t at = 0; at < n;) {
        size_t rows = chunk_rows(vc, at, n);
        float *mixed = s->wide;
        norm(v, c, s->narrow, s->x + at * vh, &b->norm2, rows, vh);
        linear(v, c, s->wide, s->narrow, &b->up, rows);
        if (vc->is_gated) {
            mixed = s->gate;
            linear(v, c, s->gate, s->narrow, &b->gate, rows);
            (vc->activation == VIT_SILU ? nn_silu_mul : nn_gelu_mul)(c, s->gate, s->wide, rows * vi);
        } else if (vc->activation == VIT_QUICK_GELU) {
            quick_gelu(c, s, s->wide, rows, vi);
        } else {
            nn_gelu_tanh(c, s->wide, rows * vi);
        }
        linear(v, c, s->narrow, mixed, &b->down, rows);
        add_output(v, c, s->x + at * vh, s->narrow, &b->out_norm2, rows);
        at += rows;
    }
}

/* Part `part` of the rows out [n / merge^2, row_floats], row by row of each frame, from the n patches as
 * they stand in x:
 * the main merger normalises each patch FIRST, then joins the patches of a block; those of
 * DeepStack join first. */
static void merge(vit *v, compute *c, const vit_merger *m, float *out, size_t part, size_t n)
{
    const vit_config *vc = &v->parts.config;
    scratch *s = &v->s;
    const size_t vh = (size_t)vc->hidden_size, area = vit_merge_area(vc), width = (size_t)vc->out_hidden_size;
    const size_t joined = m->joins_first ? area : 1, row_width = row_floats(v);
    for (size_t at = 0; at < n;) {
        size_t rows = chunk_rows(vc, at, n), tokens = rows / area;
        norm(v, c, s->narrow, s->x + at * vh, &m->norm, rows / joined, joined * vh);
        linear(v, c, s->wide, s->narrow, &m->fc1, tokens);
        nn_gelu_erf(c, s->wide, rows * vh);
        linear(v, c, s->merged, s->wide, &m->fc2, tokens);
        for (size_t t = 0; t < tokens; t++) {
            const size_t to = block_at(s, vc, at / area + t);
            memcpy(out + to * row_width + part * width, s->merged + t * width, width * sizeof *out);
        }
        at += rows;
    }
}

/* out [n / merge^2, out_hidden] = projection(norm(the sum of a block's patches / merge^2 * sqrt(vh),
 * shifted and scaled)). */
static void pool(vit *v, compute *c, float *out, size_t n)
{
    const vit_parts *p = &v->parts;
    const vit_config *vc = &p->config;
    const size_t vh = (size_t)vc->hidden_size, area = vit_merge_area(vc);
    const float share = sqrtf((float)vh) / (float)area;
    for (size_t at = 0; at < n;) {
        const size_t rows = chunk_rows(vc, at, n), tokens = rows / area;
        float *row = v->s.narrow;
        for (size_t t = 0; t < tokens; t++, row += vh) {
            const float *x = v->s.x + (at + t * area) * vh;
            memcpy(row, x, vh * sizeof *row);
            for (size_t i = 1; i < area; i++) {
                for (size_t k = 0; k < vh; k++) {
                    row[k] += x[i * vh + k];
                }
            }
            for (size_t k = 0; k < vh; k++) {
                row[k] *= share;
                row[k] = p->pooled_shift ? (row[k] - p->pooled_shift[k]) * p->pooled_scale[k] : row[k];
            }
        }
        nn_rmsnorm(c, v->s.narrow, v->s.narrow, p->pooled_norm, vc->norm_eps, tokens, vh);
        linear(v, c, out + at / area * (size_t)vc->out_hidden_size, v->s.narrow, &p->projection, tokens);
        at += rows;
    }
}

/* Copies rows first .. first+n-1 to `to`. */
static void copy_rows(const vit *v, float *to, const vit_rows *rows, size_t first, size_t n)
{
    const size_t dim = vit_patch_dim(&v->parts.config);
    if (rows->rows) {
        memcpy(to, rows->rows + first * dim, n * dim * sizeof *to);
    } else {
        rows->read(rows->ctx, to, first, n);
    }
}

/* The rows of places at .. at+n-1 of a group, whose first row is `first`: where they are, or in scratch. */
static const float *rows_at(vit *v, const vit_rows *rows, size_t first, size_t at, size_t n)
{
    const size_t dim = vit_patch_dim(&v->parts.config), area = vit_merge_area(&v->parts.config);
    if (rows->rows && !v->s.order) {
        return rows->rows + (first + at) * dim;
    }
    if (!v->s.order) {
        copy_rows(v, v->s.rows, rows, first + at, n);
    }
    for (size_t i = 0; v->s.order && i < n; i += area) {
        const size_t block = block_at(&v->s, &v->parts.config, (at + i) / area);
        copy_rows(v, v->s.rows + i * dim, rows, first + block * area, area);
    }
    return v->s.rows;
}

/* The group of frames that scratch is prepared for; first: of its rows. */
static void encode_group(vit *v, compute *c, float *out, float *last_hidden, const vit_rows *rows,
                         size_t first, int32_t h, int32_t w)
{
    const vit_parts *p = &v->parts;
    const vit_config *vc = &p->config;
    scratch *s = &v->s;
    const size_t of_frame = (size_t)h * (size_t)w, n = s->n_frames * of_frame, vh = (size_t)vc->hidden_size;
    if (p->position_map) {
        fill_from_map(s->x, p, h, w);
    } else if (p->position_axes.data) {
        fill_from_axes(s->x, s->narrow, p, h, w);
    } else {
        memset(s->x, 0, of_frame * vh * sizeof *s->x);
    }
    for (size_t i = of_frame; i < n; i += of_frame) {
        memcpy(s->x + i * vh, s->x, of_frame * vh * sizeof *s->x);
    }
    for (size_t at = 0; at < n;) {
        size_t count = chunk_rows(vc, at, n);
        linear(v, c, s->narrow, rows_at(v, rows, first, at, count), &p->patch_embed, count);
        nn_add(c, s->x + at * vh, s->narrow, count * vh);
        at += count;
    }
    for (int32_t i = 0, k = 0; i < vc->depth; i++) {
        attention_branch(v, c, &p->blocks[i], n);
        mlp_branch(v, c, &p->blocks[i], n);
        if (k < vc->n_deepstack && vc->deepstack[k] == i) {
            merge(v, c, &p->deepstack[k], out, (size_t)k + 1, n);
            k++;
        }
    }
    if (last_hidden) {
        memcpy(last_hidden, s->x, n * vh * sizeof *last_hidden);
    }
    if (vc->pools) {
        pool(v, c, out, n);
    } else {
        merge(v, c, &p->merger, out, 0, n);
    }
}

err_code vit_encode(vit *v, compute *c, float *out, float *last_hidden, const vit_rows *rows, int32_t t,
                    int32_t h, int32_t w, err_detail *detail)
{
    const vit_config *vc = &v->parts.config;
    const int32_t step = vc->spatial_merge_size,
                  most = v->parts.position_axes.data ? v->parts.side : INT32_MAX;
    if (t < 1 || h < 1 || w < 1 || h > most || w > most || h % step != 0 || w % step != 0 ||
        (int64_t)h * w > INT32_MAX) {
        return err_set(detail, ERR_INVALID, "a grid of %d x %d x %d patches cannot be encoded", t, h, w);
    }
    const size_t n = (size_t)h * (size_t)w, together = frames_together(v, n);
    err_code err = scratch_reserve(v, n * ((size_t)t < together ? (size_t)t : together), detail);
    if (err) {
        return err;
    }
    for (size_t i = 0; i < (size_t)t; i += v->s.n_frames) {
        const size_t group = (size_t)t - i < together ? (size_t)t - i : together;
        if (i == 0 || group != v->s.n_frames) {
            place_frames(&v->s, group, h, w);
            if (vc->window) {
                order_windows(&v->s, vc, h, w);
            }
            fill_rotary(&v->s, vc, h, w);
        }
        encode_group(v, c, out + i * n / vit_merge_area(vc) * row_floats(v),
                     last_hidden ? last_hidden + i * n * (size_t)vc->hidden_size : NULL, rows, i * n, h, w);
    }
    return ERR_OK;
}
