/* check_case: what a case file of a reference checkpoint holds: numbers, and media in either of the
 * forms that references have. For programs of tools/ that include check_tool.h before.
 * Main thread.
 */
#ifndef PARLEY_TOOLS_CHECK_CASE_H
#define PARLEY_TOOLS_CHECK_CASE_H

#include <string.h>

#include "model/checkpoint/tensor_file.h"
#include "model/rope.h"
#include "vision/processor.h"

enum { MAX_IMAGES = 2 };

typedef struct case_file {
    char name[128];
    tensor_file *file;
} case_file;

static inline float *floats(size_t n)
{
    return must(calloc(n + 1, sizeof(float)));
}

/* A float tensor of the case as float32, or NULL if it has none. The caller frees. */
static inline float *case_floats(const case_file *cf, const char *name, tensor *t)
{
    if (!tensor_table_get(tensor_file_tensors(cf->file), name, t) || t->type == DTYPE_OTHER) {
        return NULL;
    }
    float *out = floats(tensor_len(t));
    tensor_to_f32(out, t, 0, tensor_len(t));
    return out;
}

/* An I64 tensor of the case as int32, or NULL. The caller frees. */
static inline int32_t *case_ids(const case_file *cf, const char *name, size_t *n)
{
    tensor t;
    *n = 0;
    if (!tensor_table_get(tensor_file_tensors(cf->file), name, &t) ||
        t.bytes != tensor_len(&t) * sizeof(int64_t)) {
        return NULL;
    }
    *n = tensor_len(&t);
    int32_t *out = must(calloc(*n + 1, sizeof *out));
    for (size_t i = 0; i < *n; i++) {
        int64_t v = 0;
        memcpy(&v, (const char *)t.data + i * sizeof v, sizeof v);
        out[i] = (int32_t)v;
    }
    return out;
}

/* Media of one kind as a case has them: rows in the order of ours. */
typedef struct ref_media {
    media_grid grids[MAX_IMAGES];
    size_t n_grids, n_rows, row_len;
    float *rows; /* [n_rows, row_len], or NULL: the case has grids alone */
} ref_media;

static inline void ref_media_free(ref_media *m)
{
    free(m->rows);
}

/* Seconds between pairs of a video's frames; 0: the case does not say. */
static inline double case_seconds(const case_file *cf)
{
    tensor t;
    float *seconds = case_floats(cf, "second_per_grid_ts", &t);
    const double first = seconds ? (double)seconds[0] : 0;
    free(seconds);
    return first;
}

static inline size_t grid_patches(const media_grid *g)
{
    return (size_t)g->t * (size_t)g->h * (size_t)g->w;
}

static inline void add_grid(ref_media *m, const case_file *cf, media_grid grid)
{
    if (m->n_grids == MAX_IMAGES) {
        fprintf(stderr, "%s: %s holds more media than expected\n", CHECK_TOOL_NAME, cf->name);
        exit(2);
    }
    m->grids[m->n_grids++] = grid;
    m->n_rows += grid_patches(&grid);
}

/* One frame's bytes, pixel by pixel in rows of patches, as our rows: block by block, and colour by
 * colour; as the processor's colours say. */
static inline void place_bytes(float *out, const uint8_t *from, const media_grid *g, size_t row_len,
                               const processor_config *pc)
{
    const size_t area = row_len / 3, merge = (size_t)pc->merge_size, w = (size_t)g->w;
    for (size_t i = 0; i < (size_t)g->h * w; i++, out += row_len) {
        const size_t block = i / (merge * merge), cell = i % (merge * merge);
        const size_t y = block / (w / merge) * merge + cell / merge,
                     x = block % (w / merge) * merge + cell % merge;
        const uint8_t *patch = from + (y * w + x) * row_len;
        for (size_t k = 0; k < row_len; k++) {
            const size_t colour = k % 3;
            out[colour * area + k / 3] = ((float)patch[k] / 255.0f - pc->mean[colour]) / pc->std[colour];
        }
    }
}

/* The media of NAME_u8, whose places are those of KIND_position_ids [.., patches, 2]. */
static inline void read_placed_media(ref_media *m, const processor_config *pc, const case_file *cf,
                                     const tensor *places, const int32_t *xy, const char *pixels)
{
    char name[64];
    tensor t = {0};
    snprintf(name, sizeof name, "%s_u8", pixels);
    const bool has_bytes = tensor_table_get(tensor_file_tensors(cf->file), name, &t);
    const int32_t n_frames = places->n_dims == 4 ? (int32_t)places->dims[1] : 1;
    const size_t n_places = places->dims[places->n_dims - 2];
    for (size_t i = 0; i < places->dims[0]; i++) {
        media_grid grid = {n_frames, 0, 0, 0};
        const int32_t *first = xy + i * (size_t)n_frames * n_places * 2;
        for (size_t k = 0; k < n_places; k++) {
            grid.w = first[2 * k] >= grid.w ? first[2 * k] + 1 : grid.w;
            grid.h = first[2 * k + 1] >= grid.h ? first[2 * k + 1] + 1 : grid.h;
        }
        add_grid(m, cf, grid);
    }
    if (!has_bytes) {
        return;
    }
    m->row_len = t.dims[t.n_dims - 1];
    m->rows = floats(m->n_rows * m->row_len);
    float *out = m->rows;
    for (size_t i = 0, frame = 0; i < m->n_grids; i++) {
        const media_grid one = {1, m->grids[i].h, m->grids[i].w, 0};
        for (int32_t f = 0; f < n_frames; f++, frame++, out += grid_patches(&one) * m->row_len) {
            place_bytes(out, (const uint8_t *)t.data + frame * n_places * m->row_len, &one, m->row_len, pc);
        }
    }
}

/* Media of a kind, "image" or "video". pc NULL: places of patches are not read. */
static inline ref_media read_media(const processor_config *pc, const case_file *cf, const char *kind,
                                   const char *pixels)
{
    char name[64];
    ref_media m = {0};
    tensor t = {0};
    size_t n = 0;
    snprintf(name, sizeof name, "%s_position_ids", kind);
    int32_t *numbers = case_ids(cf, name, &n);
    if (numbers && pc) {
        (void)tensor_table_get(tensor_file_tensors(cf->file), name, &t);
        read_placed_media(&m, pc, cf, &t, numbers, pixels);
    } else {
        free(numbers);
        snprintf(name, sizeof name, "%s_grid_thw", kind);
        numbers = case_ids(cf, name, &n);
        for (size_t i = 0; i + 2 < n; i += 3) {
            add_grid(&m, cf, (media_grid){numbers[i], numbers[i + 1], numbers[i + 2], case_seconds(cf)});
        }
        m.rows = case_floats(cf, pixels, &t);
        m.row_len = m.rows ? t.dims[1] : 0;
    }
    free(numbers);
    return m;
}

#endif
