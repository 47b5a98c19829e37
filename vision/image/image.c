#include "vision/image/image.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/size.h"
#include "vision/image/image_codec.h"

static const struct {
    const char *name, *mime;
} FORMATS[] = {{"unknown", "application/octet-stream"},
               {"PNG", "image/png"},
               {"JPEG", "image/jpeg"},
               {"WebP", "image/webp"},
               {"GIF", "image/gif"},
               {"BMP", "image/bmp"},
               {"TIFF", "image/tiff"},
               {"AVIF", "image/avif"}};

const char *image_format_name(image_format f)
{
    return FORMATS[(size_t)f < ARRAY_LEN(FORMATS) ? f : IMAGE_UNKNOWN].name;
}

const char *image_format_mime(image_format f)
{
    return FORMATS[(size_t)f < ARRAY_LEN(FORMATS) ? f : IMAGE_UNKNOWN].mime;
}

err_code image_err_corrupt(err_detail *detail, image_format f)
{
    return err_set_param(detail, ERR_CORRUPT, NULL, "image_parse_error",
                         "the %s image is damaged or incomplete", image_format_name(f));
}

err_code image_err_unsupported(err_detail *detail, image_format f)
{
    return err_set_param(detail, ERR_UNSUPPORTED, NULL, "unsupported_image_media_type",
                         "this kind of %s image cannot be read here", image_format_name(f));
}

err_code image_err_memory(err_detail *detail)
{
    return err_set(detail, ERR_NOMEM, "not enough memory to decode the image");
}

static err_code err_too_large(err_detail *detail, const image_header *h, const char *limit_text)
{
    return err_set_param(detail, ERR_LIMIT, NULL, "image_too_large", "the image is %lld x %lld pixels; %s",
                         (long long)h->width, (long long)h->height, limit_text);
}

static err_code check_limits(const image_header *h, const image_limits *limits, err_detail *detail)
{
    if (h->width < 1 || h->height < 1) {
        return image_err_corrupt(detail, h->format);
    }
    if (h->width > limits->max_side || h->height > limits->max_side) {
        return err_too_large(detail, h, "one side is longer than this server allows");
    }
    if ((uint64_t)h->width * (uint64_t)h->height > limits->max_pixels) {
        return err_too_large(detail, h, "that is more than this server allows");
    }
    int64_t longer = h->width > h->height ? h->width : h->height;
    int64_t shorter = h->width > h->height ? h->height : h->width;
    if (longer > LIMIT_IMAGE_ASPECT * shorter) {
        return err_too_large(detail, h, "one side may be at most 200 times the other");
    }
    return ERR_OK;
}

static err_code read_header(image_header *h, const uint8_t *data, size_t bytes, err_detail *detail)
{
    image_format format = image_sniff(data, bytes);
    if (format == IMAGE_UNKNOWN) {
        return err_set_param(detail, ERR_UNSUPPORTED, NULL, "unsupported_image_media_type", "%s",
                             bytes == 0
                                 ? "the image is empty"
                                 : "this is not an image in a format that can be read here (PNG, JPEG, "
                                   "WebP, GIF, BMP, TIFF)");
    }
    return image_header_read(h, data, bytes) ? ERR_OK : image_err_corrupt(detail, format);
}

/* Bytes a pixel of the formats that libavcodec decodes: its frame (up to 64 bits, and a second one
 * of an animation), what it is converted with, and the result. Beside them: the file as a packet,
 * and tables. */
enum { AV_PIXEL_BYTES = 16, TABLE_BYTES = 1 << 20 };

static size_t decode_bytes(const image_header *h, const uint8_t *data, size_t bytes)
{
    const size_t pixels = (size_t)h->width * (size_t)h->height, rows = 16 * (size_t)h->width;
    switch (h->format) {
    case IMAGE_PNG:
        return 3 * pixels + rows + TABLE_BYTES;
    case IMAGE_JPEG:
        return 3 * pixels + 4 * rows + TABLE_BYTES + image_jpeg_scratch(data, bytes);
    default:
        return AV_PIXEL_BYTES * pixels + 3 * bytes + 8 * (size_t)TABLE_BYTES;
    }
}

err_code image_measure(image_plan *out, const uint8_t *data, size_t bytes, const image_limits *limits,
                       err_detail *detail)
{
    image_header h;
    *out = (image_plan){0};
    err_code err = read_header(&h, data, bytes, detail);
    err = err ? err : check_limits(&h, limits, detail);
    if (!err) {
        const bool turned = h.orientation >= 5;
        *out = (image_plan){.format = h.format,
                            .width = (int32_t)(turned ? h.height : h.width),
                            .height = (int32_t)(turned ? h.width : h.height),
                            .is_turned = h.orientation > 1,
                            .bytes = decode_bytes(&h, data, bytes)};
    }
    return err;
}

err_code image_decode(image *out, const uint8_t *data, size_t bytes, const image_limits *limits,
                      err_detail *detail)
{
    image_header h;
    *out = (image){0};
    err_code err = read_header(&h, data, bytes, detail);
    err = err ? err : check_limits(&h, limits, detail);
    if (err) {
        return err;
    }
    switch (h.format) {
    case IMAGE_PNG:
        err = image_png_decode(out, &h, data, bytes, detail);
        break;
    case IMAGE_JPEG:
        err = image_jpeg_decode(out, &h, data, bytes, detail);
        break;
    default:
        err = image_av_decode(out, &h, data, bytes, detail);
        break;
    }
    if (err) {
        image_deinit(out);
    }
    return err;
}

void image_deinit(image *img)
{
    free(img->rgb);
    *img = (image){0};
}

/* The corner of the image at which each EXIF orientation begins, 0 and 1 as stored; from 5 on stored rows are columns.
 * Readers of headers leave no number above 8. */
enum { AT_RIGHT = 1, AT_BOTTOM = 2 };
static const unsigned CORNERS[] = {
    [2] = AT_RIGHT,             /* mirrored */
    [3] = AT_RIGHT | AT_BOTTOM, /* upside down */
    [4] = AT_BOTTOM,            /* mirrored top to bottom */
    [5] = 0,                    /* mirrored along the main diagonal */
    [6] = AT_RIGHT,             /* to be turned right by 90 degrees */
    [7] = AT_RIGHT | AT_BOTTOM, /* mirrored along the other diagonal */
    [8] = AT_BOTTOM,            /* to be turned left by 90 degrees */
};

err_code image_sink_init(image_sink *sink, image *out, const image_header *h, err_detail *detail)
{
    size_t w = (size_t)h->width, ht = (size_t)h->height, n = 0;
    bool turned = h->orientation >= 5;
    *out = (image){
        .width = (int32_t)(turned ? ht : w), .height = (int32_t)(turned ? w : ht), .format = h->format};
    if (!size_mul(&n, w, ht) || !size_mul(&n, n, 3) || !(out->rgb = malloc(n))) {
        return image_err_memory(detail);
    }
    const unsigned begins = CORNERS[h->orientation];
    const size_t last_row = ((size_t)out->height - 1) * (size_t)out->width;
    const ptrdiff_t row = begins & AT_BOTTOM ? -(ptrdiff_t)out->width : (ptrdiff_t)out->width;
    const ptrdiff_t column = begins & AT_RIGHT ? -1 : 1;
    *sink = (image_sink){.img = out,
                         .base = (begins & AT_BOTTOM ? last_row : 0) +
                                 (begins & AT_RIGHT ? (size_t)out->width - 1 : 0),
                         .x_step = turned ? row : column,
                         .y_step = turned ? column : row};
    return ERR_OK;
}

/* color * alpha + white * (1 - alpha), rounded. */
static uint8_t over_white(unsigned color, unsigned alpha)
{
    return (uint8_t)((color * alpha + 255 * (255 - alpha) + 127) / 255);
}

void image_sink_put(image_sink *sink, size_t y, size_t x0, size_t step, size_t n, const uint8_t *px,
                    int channels)
{
    ptrdiff_t at = (ptrdiff_t)sink->base + (ptrdiff_t)y * sink->y_step + (ptrdiff_t)x0 * sink->x_step;
    ptrdiff_t byte_step = 3 * (ptrdiff_t)step * sink->x_step;
    uint8_t *to = sink->img->rgb + 3 * at;
    if (channels == 3 && byte_step == 3) {
        memcpy(to, px, 3 * n);
        return;
    }
    for (size_t i = 0; i < n; i++, to += byte_step, px += channels) {
        unsigned alpha = channels == 4 ? px[3] : 255;
        to[0] = over_white(px[0], alpha);
        to[1] = over_white(px[1], alpha);
        to[2] = over_white(px[2], alpha);
    }
}
