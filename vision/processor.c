#include "vision/processor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/size.h"
#include "vision/image/resize.h"

/* VIDEO_TOKENS: of all frames together, where a video's pixels are of a frame; each keeps the least. */
enum { ASPECT_MAX = 200, SIDE_MAX = 1 << 20, VIDEO_TOKENS = 24576 };

/* ---- configuration ---- */

static err_code bad_field(err_detail *detail, const char *where, const char *field)
{
    return err_set(detail, ERR_INVALID, "%s: \"%s\" has a value that cannot be used", where, field);
}

/* A positive integer field, left alone when absent. */
static err_code read_count(int64_t *out, const json *section, const char *where, const char *field,
                           int64_t max, err_detail *detail)
{
    const json *v = json_get(section, field);
    if (!v || json_is(v, JSON_NULL)) {
        return ERR_OK;
    }
    return json_int(v, 1, max, out) ? ERR_OK : bad_field(detail, where, field);
}

static err_code read_side(int32_t *out, const json *section, const char *where, const char *field,
                          int64_t max, err_detail *detail)
{
    int64_t v = *out;
    err_code err = read_count(&v, section, where, field, max, detail);
    *out = (int32_t)v;
    return err;
}

static err_code read_triple(float out[3], const json *section, const char *where, const char *field,
                            float min, err_detail *detail)
{
    const json *v = json_get(section, field);
    if (!v || json_is(v, JSON_NULL)) {
        return ERR_OK;
    }
    if (!json_is(v, JSON_ARRAY) || json_len(v) != 3) {
        return bad_field(detail, where, field);
    }
    size_t i = 0;
    for (const json *item = json_child(v); item; item = json_next(item), i++) {
        double x = json_num(item, NAN);
        if (!(x >= min && x <= 1e3)) {
            return bad_field(detail, where, field);
        }
        out[i] = (float)x;
    }
    return ERR_OK;
}

/* TRAP: in this family "shortest_edge" and "longest_edge" are pixel counts, not edges. */
static err_code read_pixels(int64_t *min, int64_t *max, const json *section, const char *where,
                            err_detail *detail)
{
    static const char *const MIN_NAMES[] = {"shortest_edge", "min_pixels"};
    static const char *const MAX_NAMES[] = {"longest_edge", "max_pixels"};
    const json *places[] = {json_get(section, "size"), section}; /* the later one overrides */
    const int64_t limit = (int64_t)1 << 40;
    err_code err = ERR_OK;
    for (int i = 0; i < 2 && !err; i++) {
        err = read_count(min, places[i], where, MIN_NAMES[i], limit, detail);
        err = err ? err : read_count(max, places[i], where, MAX_NAMES[i], limit, detail);
    }
    if (!err && *min > *max) {
        err = err_set(detail, ERR_INVALID, "%s: the smallest pixel count is above the largest", where);
    }
    return err;
}

/* The budget of an image or of a frame, as rows of the language model. After the geometry. */
static err_code read_budget(int64_t *max_pixels, const processor_config *pc, const json *section,
                            const char *where, err_detail *detail)
{
    enum { MOST_TOKENS = 1 << 16 };
    const int64_t unit = (int64_t)pc->patch_size * pc->merge_size;
    int64_t tokens = *max_pixels / (unit * unit);
    err_code err = read_count(&tokens, section, where, "max_soft_tokens", MOST_TOKENS, detail);
    *max_pixels = tokens * unit * unit;
    return err;
}

/* Patch geometry and colours, which both kinds of section may give. */
static err_code read_common(processor_config *pc, const json *section, const char *where, err_detail *detail)
{
    err_code err = read_side(&pc->patch_size, section, where, "patch_size", 256, detail);
    err = err ? err : read_side(&pc->temporal_patch_size, section, where, "temporal_patch_size", 16, detail);
    err = err ? err : read_side(&pc->merge_size, section, where, "merge_size", 16, detail);
    if (pc->fills_budget) {
        err = err ? err : read_side(&pc->merge_size, section, where, "pooling_kernel_size", 16, detail);
    }
    if (!json_bool(json_get(section, "do_normalize"), true)) {
        for (int c = 0; c < 3; c++) {
            pc->mean[c] = 0.0f;
            pc->std[c] = 1.0f;
        }
        return err;
    }
    err = err ? err : read_triple(pc->mean, section, where, "image_mean", -1e3f, detail);
    err = err ? err : read_triple(pc->std, section, where, "image_std", 1e-6f, detail);
    return err;
}

static err_code read_image_section(processor_config *pc, const json *section, const char *where,
                                   err_detail *detail)
{
    err_code err = read_common(pc, section, where, detail);
    if (!err && pc->fills_budget) {
        return read_budget(&pc->image_max_pixels, pc, section, where, detail);
    }
    return err ? err : read_pixels(&pc->image_min_pixels, &pc->image_max_pixels, section, where, detail);
}

static err_code read_video_section(processor_config *pc, const json *section, const char *where,
                                   err_detail *detail)
{
    /* Geometry and colours are the image section's: one vision encoder reads both kinds of
     * patches. */
    err_code err = pc->fills_budget
                       ? read_budget(&pc->video_max_pixels, pc, section, where, detail)
                       : read_pixels(&pc->video_min_pixels, &pc->video_max_pixels, section, where, detail);
    const json *fps = json_get(section, "fps");
    if (!err && fps && !json_is(fps, JSON_NULL)) {
        pc->video_fps = json_num(fps, 0);
        if (!(pc->video_fps > 0 && pc->video_fps <= 1000)) {
            err = bad_field(detail, where, "fps");
        }
    }
    err = err ? err : read_side(&pc->video_min_frames, section, where, "min_frames", 1 << 20, detail);
    err = err ? err : read_side(&pc->video_max_frames, section, where, "max_frames", 1 << 20, detail);
    if (pc->video_frames > 0) {
        err = err ? err : read_side(&pc->video_frames, section, where, "num_frames", 1 << 20, detail);
    }
    return err;
}

/* What the released files of Qwen2-VL and Qwen2.5-VL have, or leave to the class that reads them. */
static err_code read_qwen2_tower(processor_config *pc, const json *section, const char *where,
                                 err_detail *detail)
{
    enum { PATCH = 14, IMAGE_LEAST = 4, IMAGE_MOST = 1280, FRAME_LEAST = 128, FRAME_MOST = 768 };
    static const float mean[] = {0.48145466f, 0.4578275f, 0.40821073f},
                       std[] = {0.26862954f, 0.26130258f, 0.27577711f};
    pc->patch_size = PATCH;
    pc->video_by_frame = true;
    memcpy(pc->mean, mean, sizeof mean);
    memcpy(pc->std, std, sizeof std);
    err_code err = read_common(pc, section, where, detail);
    err = err ? err : read_side(&pc->merge_size, section, where, "spatial_merge_size", 16, detail);
    const int64_t unit = (int64_t)pc->patch_size * pc->merge_size, area = unit * unit;
    pc->image_min_pixels = IMAGE_LEAST * area;
    pc->image_max_pixels = IMAGE_MOST * area;
    pc->video_min_pixels = FRAME_LEAST * area;
    pc->video_max_pixels = FRAME_MOST * area;
    return err;
}

/* vision_config of config.json: what Gemma 4's released files have, where it is a tower that pools; or
 * those of Qwen2-VL. */
static err_code read_tower(processor_config *pc, const json *section, const char *where, err_detail *detail)
{
    enum { IMAGE_TOKENS = 280, FRAME_TOKENS = 70, FRAMES = 32 };
    if (json_get(section, "embed_dim") || json_get(section, "window_size")) {
        return read_qwen2_tower(pc, section, where, detail);
    }
    if (!json_get(section, "pooling_kernel_size")) {
        return ERR_OK;
    }
    pc->fills_budget = true;
    pc->temporal_patch_size = 1;
    pc->merge_size = 3;
    pc->video_frames = FRAMES;
    pc->video_min_frames = 1;
    for (int c = 0; c < 3; c++) {
        pc->mean[c] = 0.0f;
        pc->std[c] = 1.0f;
    }
    err_code err = read_common(pc, section, where, detail);
    const int64_t unit = (int64_t)pc->patch_size * pc->merge_size;
    pc->image_min_pixels = pc->video_min_pixels = unit * unit;
    pc->image_max_pixels = IMAGE_TOKENS * unit * unit;
    pc->video_max_pixels = FRAME_TOKENS * unit * unit;
    return err;
}

typedef err_code read_section(processor_config *pc, const json *section, const char *where,
                              err_detail *detail);

/* Reads the document if there is one: its member `key`, or its root if key is NULL. */
static err_code read_document(processor_config *pc, json_source docs, const char *name, const char *key,
                              read_section *read, err_detail *detail)
{
    json_doc *doc = NULL;
    err_code err = docs.read(docs.ctx, name, &doc, detail);
    if (!err && doc) {
        const json *root = json_root(doc);
        const json *section = key ? json_get(root, key) : root;
        if (section) {
            err = read(pc, section, name, detail);
        }
    }
    json_free(doc);
    return err;
}

void processor_config_init(processor_config *pc)
{
    *pc = (processor_config){
        .patch_size = 16,
        .temporal_patch_size = 2,
        .merge_size = 2,
        .image_min_pixels = 65536,
        .image_max_pixels = 16777216,
        .video_min_pixels = 4096,
        .video_max_pixels = 25165824,
        .video_fps = 2.0,
        .video_min_frames = 4,
        .video_max_frames = 768,
        .mean = {0.5f, 0.5f, 0.5f},
        .std = {0.5f, 0.5f, 0.5f},
    };
}

err_code processor_config_load(processor_config *pc, json_source docs, err_detail *detail)
{
    processor_config_init(pc);
    static const struct {
        const char *file, *key;
        read_section *read;
    } PLACES[] = {
        {"config.json", "vision_config", read_tower},
        {"preprocessor_config.json", NULL, read_image_section},
        {"video_preprocessor_config.json", NULL, read_video_section},
        {"processor_config.json", "image_processor", read_image_section},
        {"processor_config.json", "video_processor", read_video_section},
    };
    err_code err = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(PLACES) && !err; i++) {
        err = read_document(pc, docs, PLACES[i].file, PLACES[i].key, PLACES[i].read, detail);
    }
    if (!err && pc->video_min_frames > pc->video_max_frames) {
        err = err_set(detail, ERR_INVALID, "the video settings' \"min_frames\" is above \"max_frames\"");
    }
    for (int c = 0; c < 3 && pc->fills_budget; c++) { /* the tower takes 2 x - 1 of what it is shown */
        pc->mean[c] += 0.5f * pc->std[c];
        pc->std[c] *= 0.5f;
    }
    return err;
}

/* ---- sizes ---- */

/* The reference's "smart_resize" with t frames (1, or rounded to the temporal factor in t_rounded).
 * TRAP: doubles, in this order of operations; rint rounds halves to even. */
static err_code smart_resize(int32_t *out_height, int32_t *out_width, double t, double t_rounded,
                             int32_t height, int32_t width, double factor, double min_pixels,
                             double max_pixels, err_detail *detail)
{
    double h = height, w = width;
    if (height < 1 || width < 1 || fmax(h, w) / fmin(h, w) > ASPECT_MAX) {
        return err_set_param(
            detail, ERR_INVALID, NULL, "image_aspect_ratio",
            "an image of %d x %d pixels is too narrow: one side may be at most %d times the other", width,
            height, ASPECT_MAX);
    }
    double hb = rint(h / factor) * factor, wb = rint(w / factor) * factor;
    if (t_rounded * hb * wb > max_pixels) {
        double beta = sqrt((t * h * w) / max_pixels);
        hb = fmax(factor, floor(h / beta / factor) * factor);
        wb = fmax(factor, floor(w / beta / factor) * factor);
    } else if (t_rounded * hb * wb < min_pixels) {
        double beta = sqrt(min_pixels / (t * h * w));
        hb = ceil(h * beta / factor) * factor;
        wb = ceil(w * beta / factor) * factor;
    }
    /* A side of zero is left only by an aspect ratio near the limit under a tiny minimum. */
    hb = fmax(hb, factor);
    wb = fmax(wb, factor);
    if (hb > SIDE_MAX || wb > SIDE_MAX) {
        return err_set(detail, ERR_LIMIT, "the image would be enlarged to %.0f x %.0f pixels", wb, hb);
    }
    *out_height = (int32_t)hb;
    *out_width = (int32_t)wb;
    return ERR_OK;
}

/* The largest size of whole units in the image's proportions whose area is within the budget; one unit
 * where a side would have none. TRAP: doubles, in this order of operations, as the reference's. */
static err_code fill_budget(int32_t *out_height, int32_t *out_width, int32_t height, int32_t width,
                            int32_t unit, double max_pixels, err_detail *detail)
{
    if (height < 1 || width < 1) {
        return err_set(detail, ERR_INVALID, "the image has no pixels");
    }
    const double factor = sqrt(max_pixels / ((double)height * (double)width));
    const double most = floor(max_pixels / ((double)unit * unit));
    double rows = floor(factor * height / unit), columns = floor(factor * width / unit);
    if (rows < 1) {
        rows = 1;
        columns = fmin(floor((double)width / height), most);
    } else if (columns < 1) {
        columns = 1;
        rows = fmin(floor((double)height / width), most);
    }
    *out_height = (int32_t)fmax(rows, 1) * unit;
    *out_width = (int32_t)fmax(columns, 1) * unit;
    return ERR_OK;
}

err_code processor_image_size(const processor_config *pc, int32_t height, int32_t width, int32_t *out_height,
                              int32_t *out_width, err_detail *detail)
{
    if (pc->fills_budget) {
        return fill_budget(out_height, out_width, height, width, pc->patch_size * pc->merge_size,
                           (double)pc->image_max_pixels, detail);
    }
    return smart_resize(out_height, out_width, 1, 1, height, width, pc->patch_size * pc->merge_size,
                        (double)pc->image_min_pixels, (double)pc->image_max_pixels, detail);
}

err_code processor_video_size(const processor_config *pc, int32_t n_frames, int32_t height, int32_t width,
                              int32_t *out_height, int32_t *out_width, err_detail *detail)
{
    double factor = pc->patch_size * pc->merge_size, tp = pc->temporal_patch_size;
    if (n_frames < 1 || height < 1 || width < 1) {
        return err_set(detail, ERR_INVALID, "the video has no frames");
    }
    const double pair =
        pc->video_pair_tokens > 0 ? pc->video_pair_tokens * factor * factor : (double)pc->video_max_pixels;
    if (pc->fills_budget) {
        return fill_budget(out_height, out_width, height, width, pc->patch_size * pc->merge_size,
                           fmin(pair, (double)pc->video_max_pixels), detail);
    }
    if (height < factor || width < factor) { /* first enlarged until the smaller side is one merged patch */
        double scale = fmax(factor / height, factor / width);
        height = (int32_t)fmin(height * scale, SIDE_MAX);
        width = (int32_t)fmin(width * scale, SIDE_MAX);
    }
    /* Fewer frames than one temporal patch holds are repeated to fill it, so they count as that
     * many. */
    const double t = fmax(n_frames, tp), shown = rint(t / tp) * tp;
    if (pc->video_by_frame) {
        const double share = VIDEO_TOKENS * factor * factor / n_frames * tp;
        const double frame_least = (double)pc->video_min_pixels,
                     frame_most = fmax(fmin((double)pc->video_max_pixels, share), 1.05 * frame_least);
        const double bound = fmin(frame_most, pair);
        return smart_resize(out_height, out_width, 1, 1, height, width, factor, fmin(frame_least, bound),
                            bound, detail);
    }
    double least = (double)pc->video_min_pixels, most = (double)pc->video_max_pixels;
    if (pc->video_pair_tokens > 0) {
        most = fmin(most, pair * fmin(t, shown));
        least = fmin(least, most);
    }
    return smart_resize(out_height, out_width, t, shown, height, width, factor, least, most, detail);
}

err_code processor_sample_frames(const processor_config *pc, int64_t total, double source_fps, double fps,
                                 int32_t n_wanted, int32_t *indices, int32_t cap, int32_t *n,
                                 err_detail *detail)
{
    if (total < 1 || total > INT32_MAX) {
        return err_set(detail, total < 1 ? ERR_INVALID : ERR_LIMIT, "the video has %lld frames",
                       (long long)total);
    }
    double count = n_wanted;
    if (n_wanted <= 0) {
        double rate = source_fps > 0 ? source_fps : 24.0; /* the reference's assumption for an unknown rate */
        double target = fps > 0 ? fps : pc->video_fps;
        count = fps <= 0 && pc->video_frames > 0 ? pc->video_frames : trunc((double)total / rate * target);
        count = fmin(fmax(count, pc->video_min_frames), pc->video_max_frames);
        count = fmin(count, (double)total);
    }
    if (!(count <= cap)) {
        return err_set(detail, ERR_LIMIT, "%.0f frames of the video would be needed; at most %d are allowed",
                       count, cap);
    }
    *n = (int32_t)count;
    if (pc->video_frames > 0) { /* each the first of as many equal parts */
        for (int32_t i = 0; i < *n; i++) {
            indices[i] = (int32_t)(i * total / *n);
        }
        return ERR_OK;
    }
    double step = *n > 1 ? (double)(total - 1) / (*n - 1) : 0;
    for (int32_t i = 0; i < *n; i++) {
        indices[i] = (int32_t)(i == *n - 1 && i > 0 ? (double)(total - 1) : rint(i * step));
    }
    return ERR_OK;
}

/* ---- patches ---- */

void patches_deinit(patches *p)
{
    free(p->pixels);
    free(p->timestamps);
    *p = (patches){0};
}

size_t patches_bytes(const patches *p)
{
    return (size_t)p->t * (size_t)p->h * (size_t)p->w * p->pixels_len;
}

/* The grid of an image or video of that size; `slices` are stored of each temporal patch. */
static err_code plan_grid(patches *p, const processor_config *pc, int32_t t, int32_t height, int32_t width,
                          int32_t slices, err_detail *detail)
{
    const int32_t ps = pc->patch_size;
    const size_t area = (size_t)ps * (size_t)ps, merge = (size_t)pc->merge_size;
    size_t n = 0, most = 0;
    *p = (patches){.t = t, .h = height / ps, .w = width / ps, .slices = slices};
    p->pixels_len = 3 * (size_t)slices * area;
    p->row_len = 3 * (size_t)pc->temporal_patch_size * area;
    bool ok = size_mul(&n, (size_t)t, (size_t)p->h) && size_mul(&n, n, (size_t)p->w) && n <= INT32_MAX &&
              size_mul(&most, n, p->row_len);
    if (!ok) {
        return err_set(detail, ERR_LIMIT, "the image has too many patches");
    }
    p->n_tokens = (int32_t)(n / (merge * merge));
    return ERR_OK;
}

err_code patches_alloc(patches *p, err_detail *detail)
{
    p->pixels = malloc(patches_bytes(p));
    return p->pixels ? ERR_OK : err_set(detail, ERR_NOMEM, "not enough memory for the patches of the image");
}

void processor_rows(float *rows, const patches *p, const processor_config *pc, size_t first, size_t n)
{
    /* 8-bit values to normalised floats, one table a channel: (x - 255 mean) / (255 std). */
    float levels[3][256];
    for (int c = 0; c < 3; c++) {
        float mean = pc->mean[c] * 255.0f, std = pc->std[c] * 255.0f;
        for (int v = 0; v < 256; v++) {
            levels[c][v] = ((float)v - mean) / std;
        }
    }
    const size_t stored = p->pixels_len / 3, wanted = p->row_len / 3;
    const uint8_t *from = p->pixels + first * p->pixels_len;
    for (size_t i = 0; i < 3 * n; i++, from += stored) {
        const float *level = levels[i % 3];
        for (size_t k = 0; k < stored; k++) {
            rows[k] = level[from[k]];
        }
        for (size_t k = stored; k < wanted; k += stored) { /* the other slices of an image */
            memcpy(rows + k, rows, stored * sizeof *rows);
        }
        rows += wanted;
    }
}

void patch_reader_read(const void *reader, float *rows, size_t first, size_t n)
{
    const patch_reader *r = reader;
    processor_rows(rows, r->p, r->pc, r->first + first, n);
}

/* Cuts one resized frame into temporal slice `slice` of temporal patch `t`. Rows go block by block:
 * merged row, merged column, row in the block, column in the block; a row holds channel, slice,
 * pixel row, pixel column. */
static void cut_frame(patches *p, const processor_config *pc, const uint8_t *rgb, int32_t t, int32_t slice)
{
    size_t ps = (size_t)pc->patch_size, merge = (size_t)pc->merge_size, area = ps * ps;
    size_t h = (size_t)p->h, w = (size_t)p->w, line = w * ps * 3;
    uint8_t *row = p->pixels + (size_t)t * h * w * p->pixels_len;
    for (size_t block = 0; block < h / merge * (w / merge); block++) {
        for (size_t cell = 0; cell < merge * merge; cell++, row += p->pixels_len) {
            size_t gy = block / (w / merge) * merge + cell / merge;
            size_t gx = block % (w / merge) * merge + cell % merge;
            const uint8_t *from = rgb + gy * ps * line + gx * ps * 3;
            for (size_t c = 0; c < 3; c++) {
                uint8_t *to = row + (c * (size_t)p->slices + (size_t)slice) * area;
                for (size_t y = 0; y < ps; y++) {
                    const uint8_t *px = from + y * line + c;
                    for (size_t x = 0; x < ps; x++, px += 3) {
                        *to++ = *px;
                    }
                }
            }
        }
    }
}

/* Resizes an image to the grid's size and cuts it into the stored slices first .. last, counted
 * over the whole video. */
static err_code add_slices(patches *p, const processor_config *pc, const image *img, int32_t first,
                           int32_t last, err_detail *detail)
{
    int32_t height = p->h * pc->patch_size, width = p->w * pc->patch_size;
    uint8_t *resized = NULL;
    const uint8_t *rgb = img->rgb;
    if (img->width != width || img->height != height) {
        resized = malloc((size_t)height * (size_t)width * 3);
        err_code err = resized ? resize_bicubic(resized, width, height, rgb, img->width, img->height, detail)
                               : err_set(detail, ERR_NOMEM, "not enough memory to resize the image");
        if (err) {
            free(resized);
            return err;
        }
        rgb = resized;
    }
    for (int32_t i = first; i <= last; i++) {
        cut_frame(p, pc, rgb, i / p->slices, i % p->slices);
    }
    free(resized);
    return ERR_OK;
}

err_code processor_image_plan(patches *out, const processor_config *pc, int32_t height, int32_t width,
                              err_detail *detail)
{
    int32_t out_height, out_width;
    *out = (patches){0};
    err_code err = processor_image_size(pc, height, width, &out_height, &out_width, detail);
    return err ? err : plan_grid(out, pc, 1, out_height, out_width, 1, detail);
}

err_code processor_image_fill(patches *p, const processor_config *pc, const image *img, err_detail *detail)
{
    return add_slices(p, pc, img, 0, 0, detail);
}

err_code processor_image(patches *out, const processor_config *pc, const image *img, err_detail *detail)
{
    err_code err = processor_image_plan(out, pc, img->height, img->width, detail);
    err = err ? err : patches_alloc(out, detail);
    err = err ? err : processor_image_fill(out, pc, img, detail);
    if (err) {
        patches_deinit(out);
    }
    return err;
}

err_code processor_video_plan(patches *out, const processor_config *pc, int32_t n, int32_t height,
                              int32_t width, const double *times, err_detail *detail)
{
    int32_t out_height, out_width, tp = pc->temporal_patch_size;
    *out = (patches){0};
    err_code err = processor_video_size(pc, n, height, width, &out_height, &out_width, detail);
    err = err ? err : plan_grid(out, pc, n / tp + (n % tp != 0), out_height, out_width, tp, detail);
    if (!err && !(out->timestamps = malloc((size_t)out->t * sizeof *out->timestamps))) {
        err = err_set(detail, ERR_NOMEM, "not enough memory for the times of the video");
    }
    for (int32_t t = 0; t < out->t && !err; t++) {
        /* The middle of the first and the last frame of the temporal patch. */
        int32_t first = t * tp, last = first + tp - 1 < n ? first + tp - 1 : n - 1;
        out->timestamps[t] = (times[first] + times[last]) / 2;
    }
    if (err) {
        patches_deinit(out);
    }
    return err;
}

err_code processor_video_begin(patches *out, const processor_config *pc, int32_t n, int32_t height,
                               int32_t width, const double *times, err_detail *detail)
{
    err_code err = processor_video_plan(out, pc, n, height, width, times, detail);
    err = err ? err : patches_alloc(out, detail);
    if (err) {
        patches_deinit(out);
    }
    return err;
}

err_code processor_video_add(patches *p, const processor_config *pc, int32_t n, int32_t i, const image *frame,
                             err_detail *detail)
{
    /* The last frame fills an incomplete temporal patch. */
    int32_t last = i == n - 1 ? p->t * p->slices - 1 : i;
    return add_slices(p, pc, frame, i, last, detail);
}

err_code processor_video(patches *out, const processor_config *pc, const image *frames, int32_t n,
                         const double *times, err_detail *detail)
{
    *out = (patches){0};
    for (int32_t i = 1; i < n; i++) {
        if (frames[i].width != frames[0].width || frames[i].height != frames[0].height) {
            return err_set(detail, ERR_INVALID, "the frames of the video differ in size");
        }
    }
    static const image none;
    const image *first = n > 0 ? frames : &none; /* without frames it is refused */
    err_code err = processor_video_begin(out, pc, n, first->height, first->width, times, detail);
    for (int32_t i = 0; i < n && !err; i++) {
        err = processor_video_add(out, pc, n, i, &frames[i], detail);
    }
    if (err) {
        patches_deinit(out);
    }
    return err;
}
