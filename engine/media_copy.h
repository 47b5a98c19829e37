/* media_copy: images and videos of a chat as small files that any other engine takes: an image as it is,
 * or made smaller, as JPEG; a video as its frames with their times, decoded in the confined process. No model is
 * needed. Prep threads, several at once.
 *
 *     media_copier *c = media_copier_create(&options);
 *     const media_copy_order o = {.part = part, .max_pixels = 4 << 20, .memory = &hold, .each = on_file, .ctx = ctx};
 *     err = media_copy(c, &o, &detail);                 // on_file: the image, or one frame after the other
 *     media_copier_destroy(c);
 */
#ifndef PARLEY_ENGINE_MEDIA_COPY_H
#define PARLEY_ENGINE_MEDIA_COPY_H

#include "base/ledger.h"
#include "engine/engine.h"

typedef struct media_copier media_copier;

typedef struct media_copy_file {
    const char *mime; /* "image/jpeg" */
    const uint8_t *data;
    size_t n_bytes;
    int32_t i, n;           /* which of how many */
    double t_s, duration_s; /* of a video: when it is seen, and how long the video is */
    int32_t width, height;
} media_copy_file;

typedef struct media_copy_order {
    const chat_part *part; /* an image or a video, with its bytes; its pixels and video settings count */
    int64_t max_pixels;    /* of an image, or of all frames together, unless the part asks for fewer */
    int32_t max_frames;    /* of a video that does not say; a part may ask for as many as the options allow */
    bool only_common;      /* images in other formats than PNG and JPEG become JPEG */
    bool checks;           /* an image that goes as it is is decoded all the same, to find damage */
    ledger_hold *memory;   /* where what it takes is reserved while it lasts */
    /* Gets each file, which is valid during the call; an error ends it and is returned. */
    err_code (*each)(void *ctx, const media_copy_file *file, err_detail *detail);
    bool (*cancelled)(void *ctx); /* may be NULL */
    void *ctx;
} media_copy_order;

/* Of the options video_program, videos, max_image_pixels and memory count. NULL if out of memory. */
MUST_CHECK media_copier *media_copier_create(const engine_options *options);
void media_copier_destroy(media_copier *c); /* NULL allowed */

/* Errors as for images and videos of engine_prepare. */
MUST_CHECK err_code media_copy(const media_copier *c, const media_copy_order *order, err_detail *detail);

/* As engine_preview, without a model: tokens are about those of a Qwen model. */
MUST_CHECK err_code media_copier_preview(const media_copier *c, preview_tokens *out, int fd, size_t n_bytes,
                                         bool is_video, const preview_hooks *hooks, err_detail *detail);

#endif
