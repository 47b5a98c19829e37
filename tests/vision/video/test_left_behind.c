/* Nothing is left behind of any image or video, not by the libraries either: whole, damaged, cut, too large, stopped at any
 * place, or in a file that can be read no further. And what cannot be read is never shown in part without a word.
 *
 * All blocks of memory are counted (tests/alloc_fail.h); under a sanitizer it is the one that tells of what libraries left.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include <libswscale/swscale.h>
#include <webp/demux.h>

#include "base/compiler.h"
#include "base/file.h"
#include "base/limits.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"
#include "tests/one_fails.h"
#include "vision/image/image.h"
#include "vision/image/image_write.h"
#include "vision/image/media_av.h"
#include "vision/video/video.h"

ONE_FAILS(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), (errno = EIO, -1))
/* What our code asks of the libraries. */
ONE_FAILS(AVPacket *, av_packet_alloc, (void), (), NULL)
ONE_FAILS(int, av_new_packet, (AVPacket * packet, int n), (packet, n), AVERROR(ENOMEM))
ONE_FAILS(AVFrame *, av_frame_alloc, (void), (), NULL)
ONE_FAILS(void *, av_malloc, (size_t n), (n), NULL)
ONE_FAILS(char *, av_strdup, (const char *text), (text), NULL)
ONE_FAILS(AVFormatContext *, avformat_alloc_context, (void), (), NULL)
ONE_FAILS(AVIOContext *, avio_alloc_context,
          (unsigned char *buffer, int n, int is_written, void *ctx, int (*get)(void *, uint8_t *, int),
           int (*put)(void *, uint8_t *, int), int64_t (*seek)(void *, int64_t, int)),
          (buffer, n, is_written, ctx, get, put, seek), NULL)
ONE_FAILS(AVCodecParameters *, avcodec_parameters_alloc, (void), (), NULL)
ONE_FAILS(int, avcodec_parameters_copy, (AVCodecParameters * to, const AVCodecParameters *from), (to, from),
          AVERROR(ENOMEM))
ONE_FAILS(int, avcodec_parameters_to_context, (AVCodecContext * to, const AVCodecParameters *from),
          (to, from), AVERROR(ENOMEM))
ONE_FAILS(AVCodecContext *, avcodec_alloc_context3, (const AVCodec *codec), (codec), NULL)
ONE_FAILS(const AVCodec *, avcodec_find_decoder_by_name, (const char *name), (name), NULL)
ONE_FAILS(const AVInputFormat *, av_find_input_format, (const char *name), (name), NULL)
ONE_FAILS(int, avcodec_open2, (AVCodecContext * codec, const AVCodec *which, AVDictionary **options),
          (codec, which, options), AVERROR(ENOMEM))
ONE_FAILS(int, avcodec_receive_frame, (AVCodecContext * codec, AVFrame *frame), (codec, frame),
          AVERROR(ENOMEM))
ONE_FAILS(int, av_read_frame, (AVFormatContext * format, AVPacket *packet), (format, packet), AVERROR(ENOMEM))
ONE_FAILS(struct SwsContext *, sws_alloc_context, (void), (), NULL)
ONE_FAILS(int, sws_init_context, (struct SwsContext * sws, SwsFilter *from, SwsFilter *to), (sws, from, to),
          AVERROR(ENOMEM))
ONE_FAILS(WebPAnimDecoder *, WebPAnimDecoderNewInternal,
          (const WebPData *data, const WebPAnimDecoderOptions *options, int version),
          (data, options, version), NULL)
int __real_avcodec_send_packet(AVCodecContext *codec, const AVPacket *packet);
int __wrap_avcodec_send_packet(AVCodecContext *codec, const AVPacket *packet);
int __wrap_avcodec_send_packet(AVCodecContext *codec, const AVPacket *packet)
{
    const bool fails = packet && one_fails_now("avcodec_send_packet"); /* the end always goes through */
    return fails ? AVERROR(ENOMEM) : __real_avcodec_send_packet(codec, packet);
}

static const char *const CALLS[] = {"av_find_input_format",
                                    "avcodec_find_decoder_by_name",
                                    "av_packet_alloc",
                                    "av_new_packet",
                                    "av_frame_alloc",
                                    "av_malloc",
                                    "av_strdup",
                                    "avformat_alloc_context",
                                    "avio_alloc_context",
                                    "avcodec_parameters_alloc",
                                    "avcodec_parameters_copy",
                                    "avcodec_parameters_to_context",
                                    "avcodec_alloc_context3",
                                    "avcodec_open2",
                                    "avcodec_send_packet",
                                    "avcodec_receive_frame",
                                    "av_read_frame",
                                    "sws_alloc_context",
                                    "sws_init_context",
                                    "WebPAnimDecoderNewInternal"};

enum { NEVER = 1 << 30 };

/* What a reader makes of it: there is no memory, or a build of the library without a decoder. */
static err_code made_of(const char *call)
{
    return strcmp(call, "avcodec_find_decoder_by_name") == 0 ? ERR_UNSUPPORTED : ERR_NOMEM;
}

typedef struct reading {
    video_source source;
    video_limits limits;
    int n_asked, cancel_at; /* whether it shall be stopped; of these the first that says so */
    int n_shown, fail_at;   /* frames, of which this one is refused */
    const char *failing;    /* a call, of which this one fails */
    int failing_at;
    bool has_failed;
    err_code err;
} reading;

static bool is_cancelled(void *ctx)
{
    reading *r = ctx;
    return ++r->n_asked >= r->cancel_at;
}

static err_code on_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    reading *r = ctx;
    (void)detail;
    CHECK(frame->rgb && i == r->n_shown);
    return ++r->n_shown >= r->fail_at ? ERR_BUSY : ERR_OK;
}

/* Its first frame, one in the middle and the last one, twice. */
static err_code read_video(void *ctx)
{
    reading *r = ctx;
    video *f = NULL;
    video_limits limits = r->limits;
    limits.ctx = r;
    limits.cancelled = is_cancelled;
    r->n_asked = 0;
    one_fails(r->failing, r->failing_at);
    r->err = video_open(&f, &r->source, &limits, NULL);
    for (int i = 0; i < 2 && !r->err; i++) {
        const int32_t last = (int32_t)video_get_info(f)->n_frames - 1;
        r->n_shown = 0;
        r->err = video_read(f, (const int32_t[]){0, last / 2, last}, 3, on_frame, r, NULL);
        CHECK(r->err || r->n_shown == 3);
    }
    video_close(f);
    r->has_failed = one_fails_over();
    return r->err;
}

static reading of_bytes(const uint8_t *data, size_t n)
{
    reading r = {.source = {.data = data, .bytes = n, .fd = -1},
                 .limits = video_limits_default(),
                 .cancel_at = NEVER,
                 .fail_at = NEVER,
                 .failing_at = NEVER};
    r.limits.max_wall_s = 0;
    r.limits.max_pixels = 1 << 18;
    return r;
}

static err_code check_video(const char *path, reading *r)
{
    const long kept = alloc_fail_kept(read_video, r);
    if (kept != 0) {
        fprintf(stderr, "  %s: %ld blocks of memory are left, error %d\n", path, kept, r->err);
    }
    CHECK_INT(kept, 0);
    return r->err;
}

static void test_video(const char *path, const file_map *m)
{
    const reading whole = of_bytes(m->data, m->bytes);
    reading r = whole;
    const bool is_good = check_video(path, &r) == ERR_OK;
    for (int n = 1; is_good && n < 400; n = n < 3 ? n + 1 : 2 * n) {
        r = whole;
        r.cancel_at = n;
        const err_code err = check_video(path, &r);
        CHECK_INT(err, r.n_asked >= n ? ERR_CANCELLED : ERR_OK);
    }
    for (int n = 1; is_good && n <= 3; n++) {
        r = whole;
        r.fail_at = n;
        CHECK_INT(check_video(path, &r), ERR_BUSY);
    }
    if (is_good) {
        r = whole;
        r.limits.max_pixels = 99;
        CHECK_INT(check_video(path, &r), ERR_LIMIT);
        r = whole;
        r.limits.max_frames = 0;
        CHECK_INT(check_video(path, &r), ERR_LIMIT);
    }
    uint8_t *copy = malloc(m->bytes);
    memcpy(copy, m->data, m->bytes);
    for (size_t i = 1; i < 12; i++) {
        const size_t at = m->bytes * i / 12;
        r = of_bytes(copy, at);
        (void)check_video(path, &r);
        r = of_bytes(copy, m->bytes);
        copy[at] ^= 0xff;
        (void)check_video(path, &r);
        copy[at] ^= 0xff;
    }
    free(copy);
}

/* Where the file can be read no further there is an error, or all frames are. */
static void test_file(const char *path, const file_map *m)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    int n_errors = 0;
    CHECK(fd >= 0);
    reading r = {.has_failed = true};
    for (int n = 1; r.has_failed && n < 1000; n++) {
        r = of_bytes(NULL, m->bytes);
        r.source.fd = fd;
        r.failing = "pread";
        r.failing_at = n;
        (void)read_video(&r);
        n_errors += r.err != ERR_OK;
        CHECK(r.has_failed || r.err == ERR_OK);
        (void)check_video(path, &r);
    }
    CHECK(!r.has_failed && n_errors > 1);
    close(fd);
}

/* Each call of the libraries fails once: the first few of each kind, then fewer. What a decoder refuses behind a slice that
 * was left out is read once more, with it. */
static void test_calls(const char *path, const file_map *m)
{
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        const bool may_be_mended = strstr("avcodec_send_packet avcodec_receive_frame", CALLS[i]) != NULL;
        reading r = {.has_failed = true};
        for (int n = 1; r.has_failed; n = n < 6 ? n + 1 : 2 * n) {
            r = of_bytes(m->data, m->bytes);
            r.failing = CALLS[i];
            r.failing_at = n;
            const err_code err = check_video(path, &r);
            const bool is_right = err == (r.has_failed ? made_of(CALLS[i]) : ERR_OK);
            if (!is_right && !(err == ERR_OK && n > 1 && may_be_mended)) {
                fprintf(stderr, "  %s: %s %d gives %s\n", path, CALLS[i], n, err_name(err));
                CHECK(is_right);
            }
        }
    }
}

typedef struct still {
    const uint8_t *data;
    size_t bytes;
    const char *failing;
    int failing_at;
    bool has_failed;
    err_code err;
} still;

static err_code read_image(void *ctx)
{
    still *s = ctx;
    static const image_limits limits = {1 << 22, LIMIT_IMAGE_SIDE};
    image img = {0};
    image_plan plan;
    const err_code measured = image_measure(&plan, s->data, s->bytes, &limits, NULL);
    one_fails(s->failing, s->failing_at);
    s->err = image_decode(&img, s->data, s->bytes, &limits, NULL);
    s->has_failed = one_fails_over();
    CHECK((img.rgb != NULL) == (s->err == ERR_OK));
    CHECK(s->err || !measured);
    if (!s->err) {
        bytes jpeg = bytes_empty(1 << 16);
        CHECK_INT(image_write_jpeg(&jpeg, &img, (image_size){8, 8}, 80, NULL), ERR_OK);
        bytes_deinit(&jpeg);
    }
    image_deinit(&img);
    return s->err;
}

static err_code check_image(const char *path, still *s)
{
    const long kept = alloc_fail_kept(read_image, s);
    if (kept != 0) {
        fprintf(stderr, "  %s: %ld blocks of memory are left, error %d\n", path, kept, s->err);
    }
    CHECK_INT(kept, 0);
    return s->err;
}

static void test_image(const char *path, const file_map *m)
{
    still s = {.data = m->data, .bytes = m->bytes, .failing_at = NEVER};
    uint8_t *copy = malloc(m->bytes);
    memcpy(copy, m->data, m->bytes);
    CHECK_INT(check_image(path, &s), ERR_OK);
    for (size_t i = 0; i < 48; i++) {
        const size_t at = i < 24 ? i * 2 + 1 : m->bytes * (i - 23) / 25; /* heads have many kinds of damage */
        s.bytes = at;
        (void)check_image(path, &s);
        s.data = copy;
        s.bytes = m->bytes;
        copy[at] ^= 0xff;
        (void)check_image(path, &s);
        copy[at] ^= 0xff;
    }
    free(copy);
    s.data = m->data;
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        s.has_failed = true;
        for (int n = 1; s.has_failed; n++) {
            s.failing = CALLS[i];
            s.failing_at = n;
            const err_code err = check_image(path, &s);
            if (err != (s.has_failed ? made_of(CALLS[i]) : ERR_OK)) {
                fprintf(stderr, "  %s: %s %d gives %s\n", path, CALLS[i], n, err_name(err));
                CHECK(!"the right error");
            }
        }
    }
}

static void each(const char *pattern, void (*test)(const char *path, const file_map *m), int least)
{
    glob_t found = {0};
    CHECK_INT(glob(pattern, 0, NULL, &found), 0);
    CHECK(found.gl_pathc >= (size_t)least);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        file_map m = {0};
        err_detail d = {0};
        const char *path = found.gl_pathv[i];
        if (strstr(path, ".ppm") || strstr(path, ".json")) {
            continue;
        }
        CHECK_OK(file_map_open(&m, path, &d), d);
        test(path, &m);
        file_map_close(&m);
    }
    globfree(&found);
}

/* Frames whose kind changes from one to the next. */
static err_code convert(void *ctx)
{
    static const struct {
        enum AVPixelFormat format;
        int width, height;
    } KINDS[] = {{AV_PIX_FMT_YUV420P, 64, 32},  {AV_PIX_FMT_YUV420P, 32, 64},  {AV_PIX_FMT_YUVA420P, 32, 64},
                 {AV_PIX_FMT_YUV444P, 128, 64}, {AV_PIX_FMT_YUV444P, 130, 64}, {AV_PIX_FMT_NONE, 64, 64},
                 {AV_PIX_FMT_YUV420P, 64, 32}};
    media_converter s = {0};
    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        for (uint8_t turned = 1; turned <= 6; turned += 5) {
            AVFrame *frame = av_frame_alloc();
            image_header h = {IMAGE_WEBP, KINDS[i].width, KINDS[i].height, turned};
            image out = {0};
            frame->format = KINDS[i].format;
            frame->width = KINDS[i].width;
            frame->height = KINDS[i].height;
            if (frame->format != AV_PIX_FMT_NONE) {
                CHECK_INT(av_frame_get_buffer(frame, 0), 0);
            }
            CHECK_INT(media_av_convert(&s, &out, &h, frame, NULL) == ERR_OK,
                      frame->format != AV_PIX_FMT_NONE);
            av_frame_free(&frame);
        }
    }
    media_converter_deinit(&s);
    return ERR_OK;
}

int main(void)
{
    each(PARLEY_SOURCE_DIR "/tests/data/videos/*", test_video, 38);
    each(PARLEY_SOURCE_DIR "/tests/data/images/*", test_image, 56);
    each(PARLEY_SOURCE_DIR "/assets/samples/*.png", test_image, 6);
    static const char *const files[] = {"vp9.webm",  "h264_hour.mp4",      "mpeg4.avi", "gif.gif",
                                        "webp.webp", "h264_fragments.mp4", "apng.png"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        file_map m = {0};
        err_detail d = {0};
        char path[4200];
        CHECK(file_join(path, sizeof path, check_data("videos"), files[i]));
        CHECK_OK(file_map_open(&m, path, &d), d);
        test_file(path, &m);
        test_calls(path, &m);
        file_map_close(&m);
    }
    CHECK_INT(alloc_fail_kept(convert, NULL), 0);
    CHECK_DONE();
}
