/* image_write: encodes an image as a small JPEG, for previews. Prep worker threads.
 *
 *     bytes jpeg; bytes_init(&jpeg, 1 << 20);
 *     err = image_write_jpeg(&jpeg, &img, 160, 75, &size, &detail);    // at most 160 pixels wide and high
 */
#ifndef PARLEY_VISION_IMAGE_IMAGE_WRITE_H
#define PARLEY_VISION_IMAGE_IMAGE_WRITE_H

#include "base/bytes.h"
#include "vision/image/image.h"

typedef struct image_size {
    int32_t width, height;
} image_size;

/* Appends the image, made smaller to fit into side x side, at a quality of 1 to 100; *size is what
 * it became. ERR_NOMEM, ERR_LIMIT if `out` has no room. */
MUST_CHECK err_code image_write_jpeg(bytes *out, const image *img, int32_t side, int quality,
                                     image_size *size, err_detail *detail);

#endif
