#include "vision/image/media_av.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <libavutil/log.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

enum { IO_BUFFER_BYTES = 64 << 10, ALLOCATION_MAX = 512 << 20, PROBE_BYTES_MAX = 1 << 20 };

/* ---- the libraries' globals ---- */

static void drop_log(void *object, int level, const char *format, va_list args)
{
    (void)object;
    (void)level;
    (void)format;
    (void)args;
}

static void init_once(void)
{
    av_log_set_callback(drop_log);
    av_max_alloc(ALLOCATION_MAX);
}

void media_av_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, init_once);
}

/* ---- files ---- */

static int file_read(void *opaque, uint8_t *to, int n)
{
    media_file *f = opaque;
    size_t part = f->bytes - f->at < (size_t)n ? f->bytes - f->at : (size_t)n;
    if (part == 0) {
        return AVERROR_EOF;
    }
    if (f->data) {
        memcpy(to, f->data + f->at, part);
    } else {
        ssize_t got = pread(f->fd, to, part, (off_t)f->at);
        if (got <= 0) {
            return got == 0 ? AVERROR_EOF : AVERROR(EIO);
        }
        part = (size_t)got;
    }
    f->at += part;
    return (int)part;
}

static int64_t file_seek(void *opaque, int64_t offset, int whence)
{
    media_file *f = opaque;
    whence &= ~AVSEEK_FORCE;
    if (whence == AVSEEK_SIZE) {
        return (int64_t)f->bytes;
    }
    int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? (int64_t)f->at : (int64_t)f->bytes;
    if (offset < -base || offset > (int64_t)f->bytes - base) {
        return AVERROR(EINVAL);
    }
    f->at = (size_t)(base + offset);
    return (int64_t)f->at;
}

/* Called when a demuxer wants to open something else: an external track, a playlist entry. */
static int refuse_open(AVFormatContext *format, AVIOContext **io, const char *url, int flags,
                       AVDictionary **options)
{
    (void)format;
    (void)url;
    (void)flags;
    (void)options;
    *io = NULL;
    return AVERROR(EPERM);
}

static AVIOContext *open_io(media_file *file)
{
    unsigned char *buffer = av_malloc(IO_BUFFER_BYTES);
    AVIOContext *io =
        buffer ? avio_alloc_context(buffer, IO_BUFFER_BYTES, 0, file, file_read, NULL, file_seek) : NULL;
    if (!io) {
        av_free(buffer);
    }
    return io;
}

static void close_io(AVIOContext *io)
{
    if (io) {
        av_freep(&io->buffer);
        avio_context_free(&io);
    }
}

AVFormatContext *media_av_open(media_file *file, const char *demuxer, const char *codecs,
                               int (*interrupted)(void *ctx), void *ctx)
{
    const AVInputFormat *input = av_find_input_format(demuxer);
    AVFormatContext *format = input ? avformat_alloc_context() : NULL;
    AVIOContext *io = format ? open_io(file) : NULL;
    file->rc = AVERROR(ENOMEM);
    if (!io) {
        avformat_free_context(format);
        return NULL;
    }
    format->pb = io;
    format->flags |= AVFMT_FLAG_CUSTOM_IO;
    format->io_open = refuse_open;
    format->interrupt_callback = (AVIOInterruptCB){.callback = interrupted, .opaque = ctx};
    format->probesize = PROBE_BYTES_MAX;
    format->format_whitelist = av_strdup(input->name);
    format->codec_whitelist = av_strdup(codecs);
    format->protocol_whitelist = av_strdup("none");
    if (!format->format_whitelist || !format->codec_whitelist || !format->protocol_whitelist ||
        (file->rc = avformat_open_input(&format, NULL, input, NULL)) < 0) {
        avformat_free_context(format); /* NULL already when avformat_open_input failed */
        close_io(io);
        return NULL;
    }
    return format;
}

void media_av_close(AVFormatContext **format)
{
    AVIOContext *io = *format ? (*format)->pb : NULL;
    avformat_close_input(format);
    close_io(io);
}

/* ---- pixels ---- */

/* One chroma value at (x, y): 9, 3, 3 and 1 sixteenths of the four nearest samples, which sit
 * between pixels. */
static int chroma_at(const uint8_t *near, const uint8_t *far, size_t x, size_t n)
{
    size_t i = x / 2, j = x % 2 ? (i + 1 < n ? i + 1 : i) : (i > 0 ? i - 1 : i);
    return (9 * near[i] + 3 * near[j] + 3 * far[i] + far[j] + 8) >> 4;
}

static uint8_t clip6(int v)
{
    v >>= 6;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Row y of a lossy WebP (4:2:0, BT.601, limited range) in WebP's own fixed-point arithmetic, which
 * is what other viewers show; libswscale is visibly coarser at chroma edges and drifts on odd
 * widths. */
static void webp_row(uint8_t *out, const AVFrame *frame, size_t y, int channels)
{
    size_t w = (size_t)frame->width, n_x = (w + 1) / 2, n_y = ((size_t)frame->height + 1) / 2;
    size_t i = y / 2, j = y % 2 ? (i + 1 < n_y ? i + 1 : i) : (i > 0 ? i - 1 : i);
    const uint8_t *near[2], *far[2];
    const uint8_t *luma = frame->data[0] + (ptrdiff_t)y * frame->linesize[0];
    const uint8_t *alpha = channels == 4 ? frame->data[3] + (ptrdiff_t)y * frame->linesize[3] : NULL;
    for (int p = 0; p < 2; p++) {
        near[p] = frame->data[1 + p] + (ptrdiff_t)i * frame->linesize[1 + p];
        far[p] = frame->data[1 + p] + (ptrdiff_t)j * frame->linesize[1 + p];
    }
    for (size_t x = 0; x < w; x++, out += channels) {
        int l = luma[x] * 19077 >> 8;
        int u = chroma_at(near[0], far[0], x, n_x), v = chroma_at(near[1], far[1], x, n_x);
        out[0] = clip6(l + (v * 26149 >> 8) - 14234);
        out[1] = clip6(l - (u * 6419 >> 8) - (v * 13320 >> 8) + 8708);
        out[2] = clip6(l + (u * 33050 >> 8) - 17685);
        if (alpha) {
            out[3] = alpha[x];
        }
    }
}

/* The converter for a frame of a layout that is known; NULL if it is not supported or without memory. */
static struct SwsContext *open_converter(const AVFrame *frame, enum AVPixelFormat target, int64_t flags)
{
    enum AVPixelFormat source = (enum AVPixelFormat)frame->format;
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(source);
    if (!sws_isSupportedInput(source)) {
        return NULL;
    }
    struct SwsContext *sws = sws_alloc_context();
    if (!sws) {
        return NULL;
    }
    /* Chroma in the middle of its pixels, as in JPEG. TRAP: a position given for chroma that is not
     * subsampled shifts it by half a pixel. */
    const int64_t x_site = d->log2_chroma_w ? 128 : -513, y_site = d->log2_chroma_h ? 128 : -513;
    const struct {
        const char *name;
        int64_t value;
    } options[] = {
        {"srcw", frame->width},    {"srch", frame->height},   {"src_format", source},
        {"dstw", frame->width},    {"dsth", frame->height},   {"dst_format", target},
        {"src_h_chr_pos", x_site}, {"src_v_chr_pos", y_site}, {"sws_flags", flags},
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        ok = ok && av_opt_set_int(sws, options[i].name, options[i].value, 0) >= 0;
    }
    if (!ok || sws_init_context(sws, NULL, NULL) < 0) {
        sws_freeContext(sws);
        return NULL;
    }
    bool full = frame->color_range == AVCOL_RANGE_JPEG || (d->flags & AV_PIX_FMT_FLAG_RGB);
    int space = frame->colorspace == AVCOL_SPC_BT709        ? SWS_CS_ITU709
                : frame->colorspace == AVCOL_SPC_BT2020_NCL ? SWS_CS_BT2020
                                                            : SWS_CS_ITU601;
    (void)sws_setColorspaceDetails(sws, sws_getCoefficients(space), full, sws_getCoefficients(SWS_CS_DEFAULT),
                                   1, 0, 1 << 16, 1 << 16);
    return sws;
}

/* How frames become pixels: with alpha or without, in lines of `stride` bytes. */
typedef struct layout {
    int channels, stride;
} layout;

static layout layout_of(const AVFrame *frame, const AVPixFmtDescriptor *d)
{
    int channels = d->flags & (AV_PIX_FMT_FLAG_ALPHA | AV_PIX_FMT_FLAG_PAL) ? 4 : 3;
    /* TRAP: libswscale may write a few bytes beyond a row's end; lines are padded to 64. */
    return (layout){channels, (frame->width * channels + 63) / 64 * 64};
}

static enum AVPixelFormat target_of(layout l)
{
    return l.channels == 4 ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24;
}

static bool convert(struct SwsContext *sws, uint8_t *pixels, layout l, const AVFrame *frame)
{
    uint8_t *planes[4] = {pixels};
    int strides[4] = {l.stride};
    return sws && sws_scale(sws, (const uint8_t *const *)frame->data, frame->linesize, 0, frame->height,
                            planes, strides) == frame->height;
}

/* Why a conversion failed; the library itself says only that it did. */
static err_code explain(const image_header *h, const AVFrame *frame, err_detail *detail)
{
    return sws_isSupportedInput((enum AVPixelFormat)frame->format) ? image_err_memory(detail)
                                                                   : image_err_unsupported(detail, h->format);
}

err_code media_av_store(image *out, const image_header *h, const AVFrame *frame, size_t x0, size_t y0,
                        err_detail *detail)
{
    image_sink sink = {0};
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get((enum AVPixelFormat)frame->format);
    size_t fw = (size_t)frame->width, fh = (size_t)frame->height, w = (size_t)h->width,
           ht = (size_t)h->height;
    if (!d || frame->width < 1 || frame->height < 1 || x0 > w || fw > w - x0 || y0 > ht || fh > ht - y0) {
        return image_err_corrupt(detail, h->format);
    }
    bool lossy_webp = h->format == IMAGE_WEBP && !(d->flags & AV_PIX_FMT_FLAG_RGB);
    const layout l = layout_of(frame, d);
    uint8_t *pixels = av_malloc((size_t)l.stride * (lossy_webp ? 1 : fh) + 64);
    err_code err = pixels ? image_sink_init(&sink, out, h, detail) : image_err_memory(detail);
    if (!err && !lossy_webp) {
        struct SwsContext *sws = open_converter(frame, target_of(l),
                                                SWS_BICUBIC | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP |
                                                    SWS_ACCURATE_RND | SWS_BITEXACT);
        err = convert(sws, pixels, l, frame) ? ERR_OK : explain(h, frame, detail);
        sws_freeContext(sws);
    }
    if (!err && (fw < w || fh < ht)) {
        memset(out->rgb, 255, w * ht * 3);
    }
    for (size_t y = 0; y < fh && !err; y++) {
        if (lossy_webp) {
            webp_row(pixels, frame, y, l.channels);
        }
        image_sink_put(&sink, y0 + y, x0, 1, fw, pixels + (lossy_webp ? 0 : y * (size_t)l.stride),
                       l.channels);
    }
    av_free(pixels);
    return err;
}

err_code media_av_convert(media_converter *s, image *out, const image_header *h, const AVFrame *frame,
                          err_detail *detail)
{
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get((enum AVPixelFormat)frame->format);
    const struct frame_kind kind = {frame->width, frame->height, frame->format, (int)frame->color_range,
                                    (int)frame->colorspace};
    image_sink sink;
    if (!d || frame->width != h->width || frame->height != h->height) {
        return image_err_corrupt(detail, h->format);
    }
    const layout l = layout_of(frame, d);
    const size_t bytes = (size_t)l.stride * (size_t)frame->height + 64;
    if (bytes > s->cap) {
        av_free(s->pixels);
        s->pixels = av_malloc(bytes);
        s->cap = s->pixels ? bytes : 0;
    }
    if (!s->pixels) {
        return image_err_memory(detail);
    }
    if (!s->sws || memcmp(&kind, &s->like, sizeof kind) != 0) {
        sws_freeContext(s->sws);
        s->sws = open_converter(frame, target_of(l), SWS_BILINEAR);
        s->like = kind;
    }
    if (!convert(s->sws, s->pixels, l, frame)) {
        return explain(h, frame, detail);
    }
    if (h->orientation <= 1 && l.stride == 3 * frame->width) {
        *out = (image){.rgb = s->pixels, .width = frame->width, .height = frame->height};
        return ERR_OK;
    }
    image_deinit(&s->turned);
    err_code err = image_sink_init(&sink, &s->turned, h, detail);
    for (int y = 0; y < frame->height && !err; y++) {
        image_sink_put(&sink, (size_t)y, 0, 1, (size_t)frame->width, s->pixels + (size_t)y * (size_t)l.stride,
                       l.channels);
    }
    *out = s->turned;
    return err;
}

void media_converter_deinit(media_converter *s)
{
    sws_freeContext(s->sws);
    av_free(s->pixels);
    image_deinit(&s->turned);
    *s = (media_converter){0};
}
