/* media_av: what its libraries may do in this process: one allocation of a bounded size, and no word on standard
 * error; what becomes of a frame of another size than its file's, and of the colors of one. */
#include "vision/image/media_av.h"

#include <libavutil/mem.h>
#include <malloc.h>

#include "base/file.h"
#include "tests/guard.h"
#include "tests/said.h"

/* Whether a word of the libraries is read on standard error. */
static bool speaks(void)
{
    said_begin();
    av_log(NULL, AV_LOG_FATAL, "a file is damaged\n");
    said_end();
    return said_err[0] != '\0';
}

static bool has_room(size_t n)
{
    void *p = av_malloc(n);
    av_free(p);
    return p != NULL;
}

/* A frame of another size than the header's is a damaged file, and nothing is shown of it. */
static void test_sizes(void)
{
    media_converter s = {0};
    err_detail d = {0};
    AVFrame *frame = av_frame_alloc();
    frame->format = AV_PIX_FMT_YUV420P;
    frame->width = 64;
    frame->height = 32;
    CHECK_INT(av_frame_get_buffer(frame, 0), 0);
    memset(frame->data[0], 255, (size_t)frame->linesize[0] * 32);
    memset(frame->data[1], 128, (size_t)frame->linesize[1] * 16);
    memset(frame->data[2], 128, (size_t)frame->linesize[2] * 16);
    for (int more = 0; more < 4; more++) {
        const image_header h = {IMAGE_WEBP, 64 + (more & 1), 32 + (more >> 1), 1};
        image out = {0};
        CHECK_INT(media_av_convert(&s, &out, &h, frame, &d), more ? ERR_CORRUPT : ERR_OK);
        if (more) {
            CHECK_STR(d.name, "image_parse_error");
        } else {
            CHECK(out.width == 64 && out.height == 32 && out.rgb && out.rgb[64 * 32 * 3 - 1] == 255);
        }
    }
    media_converter_deinit(&s);
    av_frame_free(&frame);
}

/* Chroma stands in the middle of its pixels: an edge of colors in the middle of an image is the same from either side, and sharp
 * where chroma has every pixel. Blue has an edge between columns, red one between rows. */
static void test_chroma(void)
{
    enum { SIZE = 32, GREY = 128, STEP = 40 };
    static const struct {
        enum AVPixelFormat format;
        int x, y; /* a number of chroma for so many pixels */
    } FORMATS[] = {{AV_PIX_FMT_YUV420P, 2, 2},
                   {AV_PIX_FMT_YUV422P, 2, 1},
                   {AV_PIX_FMT_YUV440P, 1, 2},
                   {AV_PIX_FMT_YUV444P, 1, 1}};
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
        const int columns = SIZE / FORMATS[i].x, rows = SIZE / FORMATS[i].y;
        const image_header h = {IMAGE_AVIF, SIZE, SIZE, 1};
        image out = {0};
        err_detail d = {0};
        AVFrame *frame = av_frame_alloc();
        frame->format = FORMATS[i].format;
        frame->width = frame->height = SIZE;
        frame->color_range = AVCOL_RANGE_JPEG;
        CHECK_INT(av_frame_get_buffer(frame, 0), 0);
        memset(frame->data[0], GREY, (size_t)frame->linesize[0] * SIZE);
        for (int y = 0; y < rows; y++) {
            for (int x = 0; x < columns; x++) {
                frame->data[1][y * frame->linesize[1] + x] =
                    (uint8_t)(GREY + (x < columns / 2 ? -STEP : STEP));
                frame->data[2][y * frame->linesize[2] + x] = (uint8_t)(GREY + (y < rows / 2 ? -STEP : STEP));
            }
        }
        CHECK_OK(media_av_store(&out, &h, frame, 0, 0, &d), d);
        int wrong = 0;
        for (int y = 0; y < SIZE && out.rgb; y++) {
            for (int x = 0; x < SIZE; x++) {
                const uint8_t *here = out.rgb + (y * SIZE + x) * 3;
                const int red = here[0], blue = here[2], other_red = out.rgb[((SIZE - 1 - y) * SIZE + x) * 3],
                          other_blue = out.rgb[(y * SIZE + SIZE - 1 - x) * 3 + 2];
                wrong += abs(red + other_red - 2 * GREY) > 2 || abs(blue + other_blue - 2 * GREY) > 2;
                wrong += FORMATS[i].x == 1 && abs(blue - GREY) < STEP;
                wrong += FORMATS[i].y == 1 && abs(red - GREY) < STEP;
            }
        }
        CHECK_INT(wrong, 0);
        image_deinit(&out);
        av_frame_free(&frame);
    }
}

/* A frame whose luma, blue and red differences are these everywhere; of RGB or grey only the first plane is written. */
static AVFrame *flat(enum AVPixelFormat format, int width, int height, const uint8_t values[3])
{
    AVFrame *frame = av_frame_alloc();
    frame->format = format;
    frame->width = width;
    frame->height = height;
    CHECK_INT(av_frame_get_buffer(frame, 0), 0);
    for (int i = 0; i < 3 && frame->data[i]; i++) {
        memset(frame->data[i], values[i], (size_t)frame->linesize[i] * (size_t)height);
    }
    return frame;
}

/* A lossy WebP, each pixel by WebP's own numbers: between the middles of two columns of chroma three parts are of the nearer one,
 * and at an edge there is only one; the same of rows. Behind the planes' ends stands something else. */
static void test_webp(void)
{
    static const uint8_t CHANNELS[] = {3, 4};
    for (int i = 0; i < 2 * 7 * 5; i++) {
        const int channels = CHANNELS[i % 2], w = 1 + i / 2 % 7, ht = 1 + i / 14, columns = (w + 1) / 2,
                  rows = (ht + 1) / 2;
        const image_header h = {IMAGE_WEBP, w, ht, 1};
        image out = {0};
        err_detail d = {0};
        AVFrame *frame = av_frame_alloc();
        frame->format = channels == 4 ? AV_PIX_FMT_YUVA420P : AV_PIX_FMT_YUV420P;
        frame->width = 16; /* larger than what is shown of it */
        frame->height = 16;
        CHECK_INT(av_frame_get_buffer(frame, 0), 0);
        for (int p = 0; p < channels; p++) {
            for (int k = 0; k < frame->linesize[p] * (p == 1 || p == 2 ? 8 : 16); k++) {
                frame->data[p][k] = (uint8_t)((uint32_t)(k + 1) * 2654435761u >> (9 + p));
            }
        }
        frame->width = w;
        frame->height = ht;
        CHECK_OK(media_av_store(&out, &h, frame, 0, 0, &d), d);
        for (int y = 0; y < ht && out.rgb; y++) {
            for (int x = 0; x < w; x++) {
                int chroma[2];
                for (int p = 0; p < 2; p++) {
                    int sum = 8; /* of 16 parts, to the nearest */
                    for (int corner = 0; corner < 4; corner++) {
                        const int by_x = corner % 2, by_y = corner / 2, column = (x + 1) / 2 - 1 + by_x,
                                  row = (y + 1) / 2 - 1 + by_y;
                        const int at_x = column < 0          ? 0
                                         : column >= columns ? columns - 1
                                                             : column,
                                  at_y = row < 0       ? 0
                                         : row >= rows ? rows - 1
                                                       : row;
                        sum += (by_x == x % 2 ? 1 : 3) * (by_y == y % 2 ? 1 : 3) *
                               frame->data[1 + p][at_y * frame->linesize[1 + p] + at_x];
                    }
                    chroma[p] = sum / 16;
                }
                const int luma = frame->data[0][y * frame->linesize[0] + x] * 19077 / 256,
                          alpha = channels == 4 ? frame->data[3][y * frame->linesize[3] + x] : 255;
                const int rgb[] = {luma + chroma[1] * 26149 / 256 - 14234,
                                   luma - chroma[0] * 6419 / 256 - chroma[1] * 13320 / 256 + 8708,
                                   luma + chroma[0] * 33050 / 256 - 17685};
                for (int c = 0; c < 3; c++) {
                    const int v = rgb[c] < 0 ? 0 : rgb[c] / 64 > 255 ? 255 : rgb[c] / 64;
                    CHECK_INT(out.rgb[(y * w + x) * 3 + c], (v * alpha + 255 * (255 - alpha) + 127) / 255);
                }
            }
        }
        image_deinit(&out);
        av_frame_free(&frame);
    }
}

/* What a frame says of its colors is heeded: each matrix in each range, of stills and of videos alike. The wanted numbers are
 * those of the matrices (Kr and Kb of BT.601, BT.709 and BT.2020) by hand. */
static void test_colors(void)
{
    static const struct {
        enum AVColorSpace space;
        double kr, kb;
    } SPACES[] = {{AVCOL_SPC_UNSPECIFIED, 0.299, 0.114},
                  {AVCOL_SPC_SMPTE170M, 0.299, 0.114},
                  {AVCOL_SPC_BT709, 0.2126, 0.0722},
                  {AVCOL_SPC_BT2020_NCL, 0.2627, 0.0593}};
    static const uint8_t VALUES[3] = {120, 100, 160};
    for (size_t i = 0; i < sizeof SPACES / sizeof SPACES[0]; i++) {
        for (int full = 0; full < 2; full++) {
            const double y = full ? 120 : (120 - 16) * 255.0 / 219, to = full ? 1 : 255.0 / 224,
                         kr = SPACES[i].kr, kb = SPACES[i].kb, b = 2 * (1 - kb) * (100 - 128) * to,
                         r = 2 * (1 - kr) * (160 - 128) * to;
            const double wanted[3] = {y + r, y - (kr * r + kb * b) / (1 - kr - kb), y + b};
            const image_header h = {IMAGE_AVIF, 64, 16, 1};
            media_converter s = {0};
            image still = {0}, shown = {0};
            err_detail d = {0};
            AVFrame *frame = flat(AV_PIX_FMT_YUV444P, 64, 16, VALUES);
            frame->colorspace = SPACES[i].space;
            frame->color_range = full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
            CHECK_OK(media_av_store(&still, &h, frame, 0, 0, &d), d);
            CHECK_OK(media_av_convert(&s, &shown, &h, frame, &d), d);
            for (int c = 0; c < 3 && still.rgb && shown.rgb; c++) {
                CHECK_NEAR(still.rgb[(5 * 64 + 9) * 3 + c], wanted[c], 2);
                CHECK_NEAR(shown.rgb[(5 * 64 + 9) * 3 + c], wanted[c], 2);
            }
            image_deinit(&still);
            media_converter_deinit(&s);
            av_frame_free(&frame);
        }
    }
}

/* A frame inside its canvas is stored there with white around it; one that reaches over an edge, or has no pixels, is a damaged
 * file; one of no layout that is known is told as such. */
static void test_places(void)
{
    static const struct {
        int width, height;
        size_t x, y;
        err_code err;
    } CASES[] = {{8, 4, 0, 0, ERR_OK},       {8, 4, 2, 3, ERR_OK},       {8, 4, 3, 3, ERR_CORRUPT},
                 {8, 4, 2, 4, ERR_CORRUPT},  {10, 7, 0, 0, ERR_OK},      {11, 7, 0, 0, ERR_CORRUPT},
                 {10, 8, 0, 0, ERR_CORRUPT}, {1, 1, 10, 0, ERR_CORRUPT}, {1, 1, 0, 7, ERR_CORRUPT},
                 {1, 1, 11, 0, ERR_CORRUPT}, {1, 1, 0, 8, ERR_CORRUPT},  {1, 1, 9, 6, ERR_OK}};
    static const uint8_t BLACK[3] = {0};
    const image_header h = {IMAGE_GIF, 10, 7, 1};
    err_detail d = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        image out = {0};
        AVFrame *frame = flat(AV_PIX_FMT_RGB24, CASES[i].width, CASES[i].height, BLACK);
        CHECK_INT(media_av_store(&out, &h, frame, CASES[i].x, CASES[i].y, &d), CASES[i].err);
        for (size_t y = 0; y < 7 && !CASES[i].err; y++) {
            for (size_t x = 0; x < 10; x++) {
                const bool is_inside =
                    x - CASES[i].x < (size_t)CASES[i].width && y - CASES[i].y < (size_t)CASES[i].height;
                CHECK_INT(out.rgb[(y * 10 + x) * 3 + 1], is_inside ? 0 : 255);
            }
        }
        image_deinit(&out);
        av_frame_free(&frame);
    }
    AVFrame *frame = flat(AV_PIX_FMT_RGB24, 10, 7, BLACK);
    image out = {0};
    media_converter s = {0};
    for (int i = 0; i < 4; i++) {
        frame->format = i < 2 ? AV_PIX_FMT_NONE
                              : AV_PIX_FMT_VAAPI; /* of the second there is no memory that could be read */
        frame->width = i % 2 ? 0 : 10;
        const err_code err = i == 2 ? ERR_UNSUPPORTED : ERR_CORRUPT;
        CHECK_INT(media_av_store(&out, &h, frame, 0, 0, &d), err);
        CHECK_INT(media_av_convert(&s, &out, &h, frame, &d), err);
        image_deinit(&out);
    }
    media_converter_deinit(&s);
    frame->format = AV_PIX_FMT_RGB24;
    frame->width = 10;
    frame->height = 0;
    CHECK_INT(media_av_store(&out, &h, frame, 0, 0, &d), ERR_CORRUPT);
    av_frame_free(&frame);
    static const int NONE[] = {IMAGE_AVIF + 1, 99}; /* the one behind the last, too */
    for (size_t i = 0; i < ARRAY_LEN(NONE); i++) {
        CHECK_STR(image_format_name((image_format)NONE[i]), image_format_name(IMAGE_UNKNOWN));
        CHECK_STR(image_format_mime((image_format)NONE[i]), image_format_mime(IMAGE_UNKNOWN));
    }
}

/* Where a file is read from: from its begin, from here, from its end, and no place outside. */
static void test_seeking(void)
{
    static const struct {
        int64_t by;
        int from;
        int64_t at; /* -1: refused */
    } CASES[] = {{0, AVSEEK_SIZE, 61}, {7, SEEK_SET, 7},   {5, SEEK_CUR, 12},
                 {-12, SEEK_CUR, 0},   {-1, SEEK_CUR, -1}, {61, SEEK_SET, 61},
                 {62, SEEK_SET, -1},   {-61, SEEK_END, 0}, {-62, SEEK_END, -1},
                 {0, SEEK_END, 61},    {1, SEEK_END, -1},  {-3, SEEK_END, 58},
                 {3, SEEK_CUR, 61},    {1, SEEK_CUR, -1},  {9, SEEK_SET | AVSEEK_FORCE, 9}};
    static const uint8_t GIF[61] = "GIF89a\1\0\1\0\0\0\0\x2c\0\0\0\0\1\0\1\0\0\2\2\x44\1\0;";
    media_file file = {.data = GIF, .bytes = sizeof GIF, .fd = -1};
    AVFormatContext *format = media_av_open(&file, "gif", "gif", NULL, NULL);
    CHECK(format != NULL);
    for (size_t i = 0; format && i < sizeof CASES / sizeof CASES[0]; i++) {
        const int64_t at = format->pb->seek(&file, CASES[i].by, CASES[i].from);
        CHECK_INT(at < 0 ? -1 : at, CASES[i].at);
        CHECK(at < 0 || CASES[i].from == AVSEEK_SIZE || file.at == (size_t)at);
        file.at = at < 0 || CASES[i].from == AVSEEK_SIZE ? file.at : (size_t)at;
    }
    media_av_close(&format);
    CHECK(!media_av_open(&file, "none of that name", "gif", NULL, NULL));
}

/* From a descriptor: up to the end that was said, or the file's own, if it has become shorter; and one that cannot be read. */
static void test_descriptor(void)
{
    uint8_t to[64];
    FILE *stored = tmpfile();
    const int fd = fileno(stored);
    CHECK_INT(write(fd, "GIF89a\1\0\1\0\0\0\0\x2c\0\0\0\0\1\0\1\0\0\2\2\x44\1\0;", 29), 29);
    media_file file = {.bytes = 60, .fd = fd};
    AVFormatContext *format = media_av_open(&file, "gif", "gif", NULL, NULL);
    CHECK(format != NULL);
    if (format) {
        int (*read)(void *, uint8_t *, int) = format->pb->read_packet;
        file.at = 3;
        CHECK_INT(read(&file, to, 20), 20);
        CHECK(memcmp(to, "89a\1", 4) == 0);
        CHECK_INT(read(&file, to, 20), 6);
        CHECK_INT(file.at, 29);
        CHECK_INT(read(&file, to, 20), AVERROR_EOF);
        file.bytes = 28;
        file.at = 20;
        CHECK_INT(read(&file, to, 20), 8);
        CHECK_INT(read(&file, to, 20), AVERROR_EOF);
        file.at = 0;
        file.fd = -1;
        CHECK_INT(read(&file, to, 20), AVERROR(EIO));
        CHECK_INT(file.at, 0);
    }
    media_av_close(&format);
    fclose(stored);
}

/* Of a file of more than one piece all packets are there, and nothing is read behind its end. */
static void test_large_file(void)
{
    file_map m = {0};
    err_detail d = {0};
    int n = 0;
    CHECK_OK(file_map_open(&m, check_data("videos/h264_hour.mp4"), &d), d);
    CHECK(m.bytes > 100000);
    uint8_t *copy = guard_copy(m.data, m.bytes);
    media_file file = {.data = copy, .bytes = m.bytes, .fd = -1};
    AVFormatContext *format = media_av_open(&file, "mov", "h264", NULL, NULL);
    AVPacket *packet = av_packet_alloc();
    while (format && packet && av_read_frame(format, packet) >= 0) {
        n++;
        av_packet_unref(packet);
    }
    CHECK_INT(n, 3600);
    av_packet_free(&packet);
    media_av_close(&format);
    guard_free(copy);
    file_map_close(&m);
}

int main(void)
{
    const size_t most = (size_t)512 << 20;
    mallopt(M_PERTURB, 0); /* memory that is not written to costs nothing */
    CHECK(speaks() && has_room(most + (1 << 20)));
    for (int i = 0; i < 2; i++) {
        media_av_init();
        CHECK(!speaks() && !has_room(most + (1 << 20)) && has_room(most - (1 << 20)));
    }
    test_sizes();
    test_chroma();
    test_webp();
    test_colors();
    test_places();
    test_seeking();
    test_descriptor();
    test_large_file();
    CHECK_DONE();
}
