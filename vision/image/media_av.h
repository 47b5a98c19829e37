/* media_av: the use of libavformat, libavcodec and libswscale shared by images (image_av.c) and
 * videos (video.c); nothing else includes it. Any thread; the only process-wide effects are that
 * the libraries' log is silenced and that one of their allocations is bounded.
 *
 *     media_file file = {.data = data, .bytes = n, .fd = -1};
 *     AVFormatContext *format = media_av_open(&file, "mov", "h264", NULL, NULL);
 *     media_av_close(&format);
 *
 * A demuxer is named by the caller, never probed; it reads only the bytes it is given: opening
 * anything else is refused, whatever a file says.
 */
#ifndef PARLEY_VISION_IMAGE_MEDIA_AV_H
#define PARLEY_VISION_IMAGE_MEDIA_AV_H

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include "vision/image/image_codec.h"

/* Bytes in memory (data) or in an open regular file (fd, read with pread so that its offset is not
 * touched). */
typedef struct media_file {
    const uint8_t *data; /* NULL: fd */
    int fd;
    size_t bytes, at;
    int rc; /* why media_av_open returned NULL: an AVERROR */
} media_file;

/* Silences and bounds the libraries; call before anything else of them. */
void media_av_init(void);

/* Opens `file` with the demuxer of that name; `codecs` is a comma-separated list of the decoders it
 * may use. interrupted(ctx) may be NULL; non-zero ends a blocking call. NULL if the file is damaged
 * or without memory. The file must outlive the context. */
MUST_CHECK AVFormatContext *media_av_open(media_file *file, const char *demuxer, const char *codecs,
                                          int (*interrupted)(void *ctx), void *ctx);
void media_av_close(AVFormatContext **format); /* NULL inside allowed */

/* The frame as RGB at (x0, y0) of a canvas of the header's size and orientation, in full chroma
 * resolution; what it does not cover is white. The size must have passed the limits. Errors as for
 * image_decode; the caller frees out in every case. */
MUST_CHECK err_code media_av_store(image *out, const image_header *h, const AVFrame *frame, size_t x0,
                                   size_t y0, err_detail *detail);

/* State of converting a video's frames, kept from one to the next; starts as {0}. */
typedef struct media_converter {
    struct SwsContext *sws; /* for frames like `like` */
    struct frame_kind {
        int width, height, format, range, space;
    } like;
    uint8_t *pixels; /* [height, stride] */
    size_t cap;
    image turned; /* the same after orientation, if that changes anything */
} media_converter;

/* The frame as RGB in the header's orientation, converted as the reference's video readers do: with
 * the default flags of libswscale, several times faster than for stills. The size must have passed
 * the limits. *out belongs to s and holds until the next call. Errors as for image_decode. */
MUST_CHECK err_code media_av_convert(media_converter *s, image *out, const image_header *h,
                                     const AVFrame *frame, err_detail *detail);
void media_converter_deinit(media_converter *s);

#endif
