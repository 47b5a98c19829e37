/* image_codec: what image.c and the decoders behind it share; nothing outside vision/ includes it.
 * Prep worker threads; no state between calls.
 *
 *     image_header h;   if (image_header_read(&h, data, bytes)) { return h.width; }
 *     image_sink sink;  image_sink_init(&sink, out, &h, &detail);
 *     image_sink_put(&sink, y, 0, 1, width, row, 3);
 *
 * A decoder passes pixels in stored order; the sink applies the orientation and composites alpha
 * over white, so the image is never copied a second time.
 */
#ifndef PARLEY_VISION_IMAGE_IMAGE_CODEC_H
#define PARLEY_VISION_IMAGE_IMAGE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vision/image/image.h"

/* What the header of a file says, before any pixel is decoded. */
typedef struct image_header {
    image_format format;
    int64_t width, height; /* as stored */
    int orientation;       /* EXIF, 1-8 */
} image_header;

/* Reads format, size and orientation by walking the file's own structure; takes no memory.
 * False if the format is unknown or the file ends before its size is known. */
MUST_CHECK bool image_header_read(image_header *out, const uint8_t *data, size_t bytes);

typedef struct image_sink {
    image *img;
    size_t base;              /* pixel index of stored pixel (0, 0) */
    ptrdiff_t x_step, y_step; /* what one stored column or row adds to it */
} image_sink;

/* Allocates out->rgb for the header's size (already checked against the limits) and prepares the
 * sink. out is set to its final, oriented size. ERR_NOMEM; the caller frees with image_deinit in
 * every case. */
MUST_CHECK err_code image_sink_init(image_sink *sink, image *out, const image_header *h, err_detail *detail);

/* Stores n pixels of row y, at columns x0, x0 + step, ... px holds `channels` bytes a pixel: 3 =
 * RGB, 4 = RGBA, which is composited over white. The caller keeps y and the columns inside the
 * image. */
void image_sink_put(image_sink *sink, size_t y, size_t x0, size_t step, size_t n, const uint8_t *px,
                    int channels);

/* The decoders. `h` comes from image_header_read and has passed the limits; a file whose decoder
 * sees another size is refused. Errors as for image_decode. */
MUST_CHECK err_code image_png_decode(image *out, const image_header *h, const uint8_t *data, size_t bytes,
                                     err_detail *detail);
MUST_CHECK err_code image_jpeg_decode(image *out, const image_header *h, const uint8_t *data, size_t bytes,
                                      err_detail *detail);
MUST_CHECK err_code image_av_decode(image *out, const image_header *h, const uint8_t *data, size_t bytes,
                                    err_detail *detail);

/* Bytes that the JPEG decoder keeps beside the pixels: an image that comes in several scans is kept
 * whole as coefficients. 0 for a file whose headers cannot be read, which decoding refuses. */
size_t image_jpeg_scratch(const uint8_t *data, size_t bytes);

/* Fixed texts; `name` is the format's name for a person. */
err_code image_err_corrupt(err_detail *detail, image_format f);
err_code image_err_unsupported(err_detail *detail, image_format f);
err_code image_err_memory(err_detail *detail);

#endif
