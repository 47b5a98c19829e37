/* image_write: encodes an image as a JPEG of a given size. Prep worker threads.
 *
 *     bytes jpeg; bytes_init(&jpeg, 1 << 20);
 *     err = image_write_jpeg(&jpeg, &img, image_fit(&img, 160), 75, &detail);
 */
#ifndef PARLEY_VISION_IMAGE_IMAGE_WRITE_H
#define PARLEY_VISION_IMAGE_IMAGE_WRITE_H

#include "base/bytes.h"
#include "vision/image/image.h"

typedef struct image_size {
    int32_t width, height;
} image_size;

/* The image's size, made smaller to fit into side x side. */
image_size image_fit(const image *img, int32_t side);

/* Appends the image in this size, at a quality of 1 to 100; from 90 on colours have the full resolution, too.
 * ERR_NOMEM, ERR_LIMIT if `out` has no room. */
MUST_CHECK err_code image_write_jpeg(bytes *out, const image *img, image_size size, int quality,
                                     err_detail *detail);

#endif
