/* image_reader: one image of a request as pixels: PNG and JPEG are decoded here, every other format
 * in the confined process that reads videos (video_worker.h), with a limit on its memory. Prep
 * worker threads.
 *
 *     image_read_job job = {.data = data, .bytes = n, .limits = l, .max_memory = m, .program = "/proc/self/exe"};
 *     image_plan plan; image_reader_measure(&plan, &job, &detail);     // then reserve plan.bytes
 *     image img; image_reader_read(&img, &job, &plan, width, height, &detail);   image_deinit(&img);
 */
#ifndef PARLEY_VISION_VIDEO_IMAGE_READER_H
#define PARLEY_VISION_VIDEO_IMAGE_READER_H

#include <stdbool.h>

#include "vision/image/image.h"

typedef struct image_read_job {
    const uint8_t *data;
    size_t bytes;
    image_limits limits;
    size_t max_memory;            /* of the process, beyond what it has at its start */
    double max_wall_s;            /* of the process; 0: none */
    const char *program;          /* NULL: every format is decoded in this process */
    bool (*cancelled)(void *ctx); /* may be NULL */
    void *ctx;
} image_read_job;

/* As image_measure; bytes includes those of the other process. */
MUST_CHECK err_code image_reader_measure(image_plan *out, const image_read_job *job, err_detail *detail);

/* The pixels, in the image's own size or in width x height, the size that is wanted: what another
 * process decodes it also resizes. Errors as for image_decode, and ERR_TIMEOUT (image_timeout),
 * ERR_CANCELLED. The caller frees out. */
MUST_CHECK err_code image_reader_read(image *out, const image_read_job *job, const image_plan *plan,
                                      int32_t width, int32_t height, err_detail *detail);

#endif
