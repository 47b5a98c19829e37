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
    test_large_file();
    CHECK_DONE();
}
