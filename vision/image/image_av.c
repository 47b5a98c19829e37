/* Every still format but PNG and JPEG through libavcodec. The format was recognised by its magic
 * bytes and names the decoder. The decoders of BMP, TIFF, GIF and WebP take a whole file as one
 * packet; only AVIF needs a demuxer.
 */
#include "vision/image/image_codec.h"

#include <string.h>

#include "base/byte_order.h"
#include "vision/image/media_av.h"

/* What is given to a decoder, and where its image belongs. */
typedef struct still {
    const AVCodec *codec;
    AVCodecParameters *codecpar; /* AVIF only */
    AVPacket *packet;
    bool no_memory; /* there is no packet for want of memory, not of an image */
    size_t x, y;    /* top left corner on the canvas: not 0 for some animated WebP files */
} still;

/* ---- packets ---- */

/* A copy with the padding that decoders read beyond the end. NULL without memory. */
static AVPacket *packet_of(still *s, const uint8_t *data, size_t bytes)
{
    AVPacket *packet = bytes <= INT32_MAX - AV_INPUT_BUFFER_PADDING_SIZE ? av_packet_alloc() : NULL;
    if (packet && av_new_packet(packet, (int)bytes) < 0) {
        av_packet_free(&packet);
    }
    if (packet) {
        memcpy(packet->data, data, bytes);
    }
    s->no_memory = !packet;
    return packet;
}

/* The coded image of an AVIF file and how it is coded; NULL if there is none. */
static AVPacket *avif_packet(still *s, const uint8_t *data, size_t bytes)
{
    media_file file = {.data = data, .bytes = bytes, .fd = -1};
    AVPacket *packet = av_packet_alloc();
    s->codecpar = avcodec_parameters_alloc();
    AVFormatContext *format =
        packet && s->codecpar ? media_av_open(&file, "mov", "libdav1d", NULL, NULL) : NULL;
    int rc = !packet || !s->codecpar ? AVERROR(ENOMEM) : file.rc;
    bool found = false;
    while (format && (rc = av_read_frame(format, packet)) >= 0) {
        const AVCodecParameters *par = format->streams[packet->stream_index]->codecpar;
        if (par->codec_type == AVMEDIA_TYPE_VIDEO && par->codec_id == AV_CODEC_ID_AV1) {
            rc = avcodec_parameters_copy(s->codecpar, par);
            found = rc >= 0;
            break;
        }
        av_packet_unref(packet);
    }
    media_av_close(&format);
    s->no_memory = rc == AVERROR(ENOMEM);
    if (!found) {
        av_packet_free(&packet);
    }
    return packet;
}

/* An animated WebP's first frame, made into a file of its own: "RIFF" size "WEBP" and the chunks
 * inside its ANMF. A still WebP is taken as it is. NULL if the file is damaged. */
static AVPacket *webp_packet(still *s, const uint8_t *data, size_t bytes)
{
    enum { ANMF_HEADER = 16 };
    if (little_endian(data + 4, 4) + 8 > bytes) { /* its header was read: there are 30 bytes */
        return NULL;
    }
    for (size_t at = 12; bytes - at >= 8;) {
        size_t n = little_endian(data + at + 4, 4);
        const uint8_t *body = data + at + 8;
        if (n > bytes - at - 8) {
            return NULL;
        }
        if (memcmp(data + at, "ANMF", 4) == 0) {
            if (n < ANMF_HEADER + 8) {
                return NULL;
            }
            s->x = 2 * little_endian(body, 3);
            s->y = 2 * little_endian(body + 3, 3);
            AVPacket *packet = packet_of(s, body + ANMF_HEADER - 12, n - ANMF_HEADER + 12);
            if (packet) {
                memcpy(packet->data, "RIFF", 4);
                for (int i = 0; i < 4; i++) {
                    packet->data[4 + i] = (uint8_t)((n - ANMF_HEADER + 4) >> 8 * i);
                }
                memcpy(packet->data + 8, "WEBP", 4);
            }
            return packet;
        }
        if (n + (n & 1) > bytes - at - 8) {
            break;
        }
        at += 8 + n + (n & 1);
    }
    return packet_of(s, data, bytes);
}

/* True if the first image's data blocks are all there: the decoder would show a part without
 * complaint. */
static bool gif_is_complete(const uint8_t *data, size_t bytes)
{
    size_t at = 13 + (data[10] & 0x80 ? (size_t)3 << ((data[10] & 7) + 1) : 0);
    while (at < bytes) {
        bool is_image = data[at] == 0x2c;
        if (is_image) {
            if (bytes - at < 11) {
                return false;
            }
            uint8_t flags = data[at + 9];
            at += 11 + (flags & 0x80 ? (size_t)3 << ((flags & 7) + 1) : 0);
        } else if (data[at] == 0x21) {
            at += 2;
        } else { /* the end, or what nobody knows */
            return false;
        }
        while (at < bytes && data[at] != 0) {
            at += (size_t)data[at] + 1;
        }
        if (at >= bytes) {
            return false;
        }
        at++;
        if (is_image) {
            return true;
        }
    }
    return false;
}

/* True if all rows of an uncompressed bitmap are there; the decoder leaves missing ones grey. */
static bool bmp_is_complete(const image_header *h, const uint8_t *data, size_t bytes)
{
    bool oldest = little_endian(data + 14, 4) == 12;
    if (!oldest && bytes < 34) {
        return false;
    }
    uint64_t bits = little_endian(data + (oldest ? 24 : 28), 2),
             method = oldest ? 0 : little_endian(data + 30, 4);
    if (method == 1 || method == 2) { /* run lengths say themselves where they end */
        return true;
    }
    uint64_t row_bytes = ((uint64_t)h->width * bits + 31) / 32 * 4;
    return little_endian(data + 10, 4) + row_bytes * (uint64_t)h->height <= bytes;
}

static bool open_still(still *s, const image_header *h, const uint8_t *data, size_t bytes)
{
    static const char *const DECODERS[] = {[IMAGE_WEBP] = "webp",
                                           [IMAGE_GIF] = "gif",
                                           [IMAGE_BMP] = "bmp",
                                           [IMAGE_TIFF] = "tiff",
                                           [IMAGE_AVIF] = "libdav1d"};
    s->codec = avcodec_find_decoder_by_name(DECODERS[h->format]);
    if (h->format == IMAGE_AVIF) {
        s->packet = avif_packet(s, data, bytes);
    } else if (h->format == IMAGE_WEBP) {
        s->packet = webp_packet(s, data, bytes);
    } else if ((h->format != IMAGE_GIF || gif_is_complete(data, bytes)) &&
               (h->format != IMAGE_BMP || bmp_is_complete(h, data, bytes))) {
        s->packet = packet_of(s, data, bytes);
    }
    return s->packet != NULL;
}

static void close_still(still *s)
{
    avcodec_parameters_free(&s->codecpar);
    av_packet_free(&s->packet);
}

/* ---- decoding ---- */

/* One image out of one packet; frame is allocated by the caller. */
static err_code decode_frame(AVFrame *frame, const still *s, const image_header *h, err_detail *detail)
{
    err_code err = ERR_OK;
    AVCodecContext *codec = avcodec_alloc_context3(s->codec);
    if (!codec) {
        return image_err_memory(detail);
    }
    codec->thread_count = 1;
    /* The library compares sizes rounded up to its alignment with this. */
    codec->max_pixels = (h->width + 64) * (h->height + 64);
    /* TRAP: with AV_EF_EXPLODE the TIFF decoder refuses every tag that it does not know. */
    codec->err_recognition =
        AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER | (h->format == IMAGE_TIFF ? 0 : AV_EF_EXPLODE);
    int rc = s->codecpar ? avcodec_parameters_to_context(codec, s->codecpar) : 0;
    if (rc >= 0) {
        rc = avcodec_open2(codec, s->codec, NULL);
    }
    if (rc >= 0) {
        rc = avcodec_send_packet(codec, s->packet);
    }
    if (rc >= 0) {
        (void)avcodec_send_packet(codec, NULL);
        rc = avcodec_receive_frame(codec, frame);
    }
    if (rc == AVERROR(ENOMEM)) {
        err = image_err_memory(detail);
    } else if (rc == AVERROR_PATCHWELCOME || rc == AVERROR(ENOSYS)) {
        err = image_err_unsupported(detail, h->format);
    } else if (rc < 0 || frame->decode_error_flags || (frame->flags & AV_FRAME_FLAG_CORRUPT)) {
        err = image_err_corrupt(detail, h->format);
    }
    avcodec_free_context(&codec);
    return err;
}

err_code image_av_decode(image *out, const image_header *h, const uint8_t *data, size_t bytes,
                         err_detail *detail)
{
    still s = {0};
    err_code err;
    media_av_init();
    AVFrame *frame = av_frame_alloc();
    if (!frame) {
        err = image_err_memory(detail);
    } else if (!open_still(&s, h, data, bytes)) {
        err = s.no_memory ? image_err_memory(detail) : image_err_corrupt(detail, h->format);
    } else if (!s.codec) {
        err = image_err_unsupported(detail, h->format);
    } else {
        err = decode_frame(frame, &s, h, detail);
    }
    err = err ? err : media_av_store(out, h, frame, s.x, s.y, detail);
    av_frame_free(&frame);
    close_still(&s);
    return err;
}
