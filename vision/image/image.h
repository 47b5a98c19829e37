/* image: a decoded still image, sniffed by its magic bytes and refused from its header when too
 * large. Prep worker threads; the result is owned by the caller.
 *
 *     image_plan plan; image_measure(&plan, data, n, &limits, &detail);     // plan.bytes
 *     image img; image_decode(&img, data, n, &limits, &detail);       // img.rgb
 *     image_deinit(&img);
 *
 * PNG goes through libpng's row interface, JPEG through libjpeg-turbo, every other still format
 * through libavcodec. EXIF orientation is applied; an alpha channel is composited over white;
 * 16-bit becomes 8-bit. Damaged or truncated files are refused (ERR_CORRUPT), never decoded in
 * part.
 */
#ifndef PARLEY_VISION_IMAGE_IMAGE_H
#define PARLEY_VISION_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef enum image_format {
    IMAGE_UNKNOWN,
    IMAGE_PNG,
    IMAGE_JPEG,
    IMAGE_WEBP,
    IMAGE_GIF,
    IMAGE_BMP,
    IMAGE_TIFF,
    IMAGE_AVIF
} image_format;

typedef struct image {
    int32_t width, height; /* after orientation */
    uint8_t *rgb;          /* [height, width, 3], tightly packed */
    image_format format;
} image;

typedef struct image_limits {
    size_t max_pixels; /* width * height */
    int32_t max_side;
} image_limits;

/* What a header says of an image, before anything is taken for it. */
typedef struct image_plan {
    image_format format;
    int32_t width, height; /* after orientation */
    bool is_turned;        /* the file's orientation is not how its pixels are stored */
    size_t bytes;          /* that image_decode takes at most, the pixels it returns included */
} image_plan;

/* The format by the first bytes; IMAGE_UNKNOWN if it is none of these. */
image_format image_sniff(const uint8_t *data, size_t bytes);
/* Constant strings, for a person and for a client. */
const char *image_format_name(image_format f); /* "PNG" */
const char *image_format_mime(image_format f); /* "image/png" */

/* Size and memory of the image from its header, and whether it is within the limits; errors as for
 * image_decode. */
MUST_CHECK err_code image_measure(image_plan *out, const uint8_t *data, size_t bytes,
                                  const image_limits *limits, err_detail *detail);

/* Decodes; image_deinit frees out, which is empty after an error. ERR_UNSUPPORTED, ERR_CORRUPT,
 * ERR_LIMIT with detail->name unsupported_image_media_type, image_parse_error or image_too_large;
 * ERR_NOMEM. */
MUST_CHECK err_code image_decode(image *out, const uint8_t *data, size_t bytes, const image_limits *limits,
                                 err_detail *detail);
void image_deinit(image *img);

#endif
