/* processor: turns pixels into the patch rows that the vision encoder reads, exactly as the
 * checkpoint's processor config says (smart_resize, antialiased bicubic, normalisation, patch
 * order). Prep worker threads; processor_rows any.
 *
 *     processor_config pc; processor_config_load(&pc, json_folder("DIR"), &detail);
 *     patches p; processor_image(&p, &pc, &img, &detail);   patches_deinit(&p);
 *
 * In steps, so that the size is known before anything is decoded and the memory before it is taken:
 *
 *     processor_image_plan(&p, &pc, height, width, &detail);     // p.n_tokens, patches_bytes(&p)
 *     patches_alloc(&p, &detail);   processor_image_fill(&p, &pc, &img, &detail);
 *
 * Patches stay 8-bit values until the encoder reads them: processor_rows makes the floats of a few
 * rows at a time.
 */
#ifndef PARLEY_VISION_PROCESSOR_H
#define PARLEY_VISION_PROCESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json_source.h"
#include "vision/image/image.h"

typedef struct processor_config {
    int32_t patch_size, temporal_patch_size, merge_size;
    /* Images are made as large as the most pixels allow, in their own proportions, and so is each frame;
     * else a size is kept that lies between the least and the most */
    bool fills_budget;
    bool
        video_by_frame; /* the video's pixels are of a frame, and those of all frames have a bound of their own */
    int64_t image_min_pixels, image_max_pixels;
    int64_t video_min_pixels, video_max_pixels; /* over t * h * w; of a frame, if it fills_budget */
    int32_t video_pair_tokens; /* of a pair of frames at most; 0: as many as the pixels make */
    double video_fps;
    int32_t video_min_frames, video_max_frames;
    int32_t
        video_frames; /* so many are shown of any video, unless a request says otherwise; 0: by video_fps */
    float mean[3], std[3];
} processor_config;

/* The values of Qwen3.5's released files. */
void processor_config_init(processor_config *pc);
/* Reads preprocessor_config.json, video_preprocessor_config.json or processor_config.json; fields
 * that are absent get those values, or Gemma 4's where config.json describes its tower. */
MUST_CHECK err_code processor_config_load(processor_config *pc, json_source docs, err_detail *detail);

/* Patch rows of one image or video. */
typedef struct patches {
    uint8_t *pixels;    /* [t*h*w, 3 * slices * patch * patch]; NULL: only planned */
    int32_t t, h, w;    /* grid in patches */
    int32_t n_tokens;   /* t*h*w / merge^2: placeholders in the prompt */
    int32_t slices;     /* stored of each temporal patch: all, or 1 of an image, whose slices are alike */
    size_t pixels_len;  /* bytes of a row as it is stored */
    size_t row_len;     /* floats of a row as the encoder reads it: 3 * temporal_patch * patch * patch */
    double *timestamps; /* videos: seconds of each temporal patch [t]; NULL for images */
} patches;

void patches_deinit(patches *p);
/* Bytes that patches_alloc takes. */
size_t patches_bytes(const patches *p);
/* Takes the memory of planned patches; ERR_NOMEM. */
MUST_CHECK err_code patches_alloc(patches *p, err_detail *detail);
/* rows [n, row_len]: rows first .. first+n-1 as the encoder reads them, normalised. */
void processor_rows(float *rows, const patches *p, const processor_config *pc, size_t first, size_t n);

/* The same as the function of a vit_rows (vit.h), counted from row `first` of the patches. */
typedef struct patch_reader {
    const patches *p;
    const processor_config *pc;
    size_t first;
} patch_reader;

void patch_reader_read(const void *reader, float *rows, size_t first, size_t n);

/* Target size for an image; ERR_INVALID if the aspect ratio exceeds 200. The arithmetic is exactly
 * that of the reference. */
MUST_CHECK err_code processor_image_size(const processor_config *pc, int32_t height, int32_t width,
                                         int32_t *out_height, int32_t *out_width, err_detail *detail);
/* Target size for n video frames. */
MUST_CHECK err_code processor_video_size(const processor_config *pc, int32_t n_frames, int32_t height,
                                         int32_t width, int32_t *out_height, int32_t *out_width,
                                         err_detail *detail);
/* Which frames of a video are used: indices [cap] of total frames at source_fps; returns the count
 * in *n. n_wanted > 0 asks for that many instead of pc->video_fps or pc->video_frames. */
MUST_CHECK err_code processor_sample_frames(const processor_config *pc, int64_t total, double source_fps,
                                            double fps, int32_t n_wanted, int32_t *indices, int32_t cap,
                                            int32_t *n, err_detail *detail);

/* The grid {1, h, w} of an image of that size; nothing is taken. Errors as for
 * processor_image_size. */
MUST_CHECK err_code processor_image_plan(patches *out, const processor_config *pc, int32_t height,
                                         int32_t width, err_detail *detail);
/* Resizes an image to the grid, and cuts it. */
MUST_CHECK err_code processor_image_fill(patches *p, const processor_config *pc, const image *img,
                                         err_detail *detail);
/* Both, and the memory between them. */
MUST_CHECK err_code processor_image(patches *out, const processor_config *pc, const image *img,
                                    err_detail *detail);
/* A video, frame by frame, so that it never lies in memory whole: plan it and take its memory, or
 * begin with both, from the number n of sampled frames, the size of one of them and their seconds
 * in the video (times [n]); then add frames 0..n-1, each once. Frames of another size are resized
 * to the same target size. A single frame counts as two equal ones. */
MUST_CHECK err_code processor_video_plan(patches *out, const processor_config *pc, int32_t n, int32_t height,
                                         int32_t width, const double *times, err_detail *detail);
MUST_CHECK err_code processor_video_begin(patches *out, const processor_config *pc, int32_t n, int32_t height,
                                          int32_t width, const double *times, err_detail *detail);
MUST_CHECK err_code processor_video_add(patches *p, const processor_config *pc, int32_t n, int32_t i,
                                        const image *frame, err_detail *detail);

/* The same for n frames of equal size in memory. */
MUST_CHECK err_code processor_video(patches *out, const processor_config *pc, const image *frames, int32_t n,
                                    const double *times, err_detail *detail);

#endif
