/* Videos of tests/data/videos (see make_videos.sh), whose frames carry their number as a bar code:
 * the right frames come out of every container, codec and trap; bad input is a clear error. */
#include "tests/check.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include <libavcodec/avcodec.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/file.h"
#include "vision/image/image.h"
#include "vision/video/video.h"

enum { N_BITS = 12, BAR = 16, MAX_FRAMES = 768 };

typedef struct seen {
    int32_t numbers[MAX_FRAMES], n;
    int32_t width, height; /* of the last frame */
    int turned;            /* clockwise degrees that the shown image was turned by */
} seen;

/* The number in the bars, read in the middle of each, whatever the turn and the scale. */
static int32_t read_bars(const image *img, int turned)
{
    int32_t number = 0, across = turned % 180 ? img->height : img->width,
            scale = across >= 2 * N_BITS * BAR ? 2 : 1;
    for (int32_t bit = 0; bit < N_BITS; bit++) {
        int32_t along = scale * (bit * BAR + BAR / 2), middle = 12;
        if (along >= across) { /* a cropped video shows fewer bars */
            break;
        }
        int32_t x = turned == 0     ? along
                    : turned == 90  ? img->width - 1 - middle
                    : turned == 180 ? img->width - 1 - along
                                    : middle;
        int32_t y = turned == 0     ? middle
                    : turned == 90  ? along
                    : turned == 180 ? img->height - 1 - middle
                                    : img->height - 1 - along;
        const uint8_t *px = img->rgb + ((size_t)y * (size_t)img->width + (size_t)x) * 3;
        number |= (px[0] > 127) << bit;
        CHECK(abs(px[0] - px[1]) < 40 && (px[0] < 90 || px[0] > 165));
    }
    return number;
}

static err_code on_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    seen *s = ctx;
    (void)detail;
    CHECK_INT(i, s->n);
    s->numbers[s->n++] = read_bars(frame, s->turned);
    s->width = frame->width;
    s->height = frame->height;
    return ERR_OK;
}

static video *open_video(file_map *m, const char *name)
{
    char relative[256];
    video *f = NULL;
    err_detail d = {0};
    video_limits limits = video_limits_default();
    snprintf(relative, sizeof relative, "videos/%s", name);
    CHECK_OK(file_map_open(m, check_data(relative), &d), d);
    CHECK_OK(video_open(&f, &(video_source){.data = m->data, .bytes = m->bytes, .fd = -1}, &limits, &d), d);
    if (!f) {
        fprintf(stderr, "  %s\n", name);
    }
    return f;
}

typedef struct sample {
    const char *name, *codec;
    int64_t n_frames;
    double fps;
    int32_t width, height;
    int turned;
    int32_t first; /* number in the first frame shown */
} sample;

static const sample SAMPLES[] = {
    {"h264_sound.mp4", "H.264", 90, 30, 192, 32, 0, 0},
    {"h264_faststart.mp4", "H.264", 90, 30, 192, 32, 0, 0},
    {"h264_fragments.mp4", "H.264", 90, 30, 192, 32, 0, 0},
    {"h264_odd_size.mp4", "H.264", 90, 30, 187, 31, 0, 0},
    {"h264_no_duration.mkv", "H.264", 90, 30, 192, 32, 0, 0},
    {"h264_negative.mkv", "H.264", 90, 30, 192, 32, 0, 0},
    {"h264_edit_list.mp4", "H.264", 75, 30, 192, 32, 0, 15},
    {"h264_240fps.mp4", "H.264", 480, 240, 192, 32, 0, 0},
    {"h264_hour.mp4", "H.264", 3600, 1, 192, 32, 0, 0},
    {"h264_one_frame.mp4", "H.264", 1, 0, 192, 32, 0, 0},
    {"h264_turned_90.mp4", "H.264", 90, 30, 32, 192, 270, 0},
    {"h264_turned_180.mp4", "H.264", 90, 30, 192, 32, 180, 0},
    {"h264_turned_270.mp4", "H.264", 90, 30, 32, 192, 90, 0},
    {"h264_b_frames.mp4", "H.264", 83, 30, 192, 32, 0, 0},
    {"h264_open_gop.mkv", "H.264", 90, 30, 192, 32, 0, 0},
    {"h264_refresh.mkv", "H.264", 90, 30, 192, 32, 0, 0},
    {"h264_10bit.mp4", "H.264", 90, 30, 192, 32, 0, 0},
    {"h264_size_change.mp4", "H.264", 90, 30, 192, 32, 0, 0},
    {"hevc.mp4", "HEVC", 90, 30, 192, 32, 0, 0},
    {"hevc_10bit.mkv", "HEVC", 90, 30, 192, 32, 0, 0},
    {"vp8.webm", "VP8", 90, 30, 192, 32, 0, 0},
    {"vp9.webm", "VP9", 90, 30, 192, 32, 0, 0},
    {"vp9_alpha.webm", "VP9", 90, 30, 192, 32, 0, 0},
    {"av1.mkv", "AV1", 90, 30, 192, 32, 0, 0},
    {"mpeg4.avi", "MPEG-4", 90, 30, 192, 32, 0, 0},
    {"mpeg4.mp4", "MPEG-4", 90, 30, 192, 32, 0, 0},
    {"mjpeg.mov", "MJPEG", 20, 12, 192, 32, 0, 0},
    {"gif.gif", "GIF", 20, 12, 192, 32, 0, 0},
    {"apng.png", "APNG", 20, 12, 192, 32, 0, 0},
    {"webp.webp", "WebP", 20, 12, 192, 32, 0, 0},
    {"size_change.avi", "MJPEG", 20, 12, 192, 32, 0, 0},
};

/* A few frames far apart and near key frames, for which most of the video need not be decoded. */
static void check_few(video *f, const sample *s)
{
    const int32_t last = (int32_t)s->n_frames - 1;
    for (int32_t step = 7; step < 2 * last; step = step * 2 + 3) {
        int32_t wanted[MAX_FRAMES], n = 0, n_wrong = 0;
        err_detail d = {0};
        seen frames = {.turned = s->turned};
        for (int32_t at = step % 5; at < last && n < MAX_FRAMES - 1; at += step) {
            wanted[n++] = at;
        }
        wanted[n++] = last;
        CHECK_OK(video_read(f, wanted, n, on_frame, &frames, &d), d);
        CHECK_INT(frames.n, n);
        for (int32_t i = 0; i < frames.n; i++) {
            n_wrong += frames.numbers[i] != wanted[i] + s->first;
        }
        if (n_wrong) {
            fprintf(stderr, "  %s, every frame %d apart: %d wrong\n", s->name, step, n_wrong);
        }
        CHECK_INT(n_wrong, 0);
    }
}

/* Opens, plans at the processor's two frames a second, and compares every frame's number with the
 * plan's. */
static void check_sample(const sample *s)
{
    processor_config pc;
    err_detail d = {0};
    file_map m = {0};
    seen frames = {.turned = s->turned};
    int32_t indices[MAX_FRAMES], n = 0, n_wrong = 0;
    double times[MAX_FRAMES];
    CHECK_OK(processor_config_load(&pc, json_folder("/nonexistent"), &d), d);
    video *f = open_video(&m, s->name);
    if (f) {
        const video_info *info = video_get_info(f);
        CHECK_STR(info->codec, s->codec);
        CHECK_INT(info->n_frames, s->n_frames);
        /* Moving images say no rate of their own, and their times are rounded. */
        const bool has_rate = !strstr("GIF APNG WebP", s->codec);
        CHECK_NEAR(info->fps, s->fps, has_rate ? 1e-9 : 0.01 * s->fps);
        CHECK_NEAR(info->duration_s, s->fps > 0 ? (double)s->n_frames / s->fps : 1 / 30.0,
                   has_rate ? 1e-3 : 0.01);
        CHECK(!info->variable_rate);
        CHECK_INT(info->width, s->width);
        CHECK_INT(info->height, s->height);
        CHECK_OK(video_plan(info, &pc, &(video_request){0}, indices, times, MAX_FRAMES, &n, &d), d);
        CHECK_OK(video_read(f, indices, n, on_frame, &frames, &d), d);
        CHECK_INT(frames.n, n);
        for (int32_t i = 0; i < frames.n; i++) {
            n_wrong += frames.numbers[i] != indices[i] + s->first;
        }
        CHECK_INT(n_wrong, 0);
        printf("%s: %lld frames, %.3f a second, %.2f s, %d shown, %d wrong%s\n", s->name,
               (long long)info->n_frames, info->fps, info->duration_s, n, n_wrong,
               info->variable_rate ? ", variable rate" : "");
        if (n_wrong) {
            fprintf(stderr, "  %s: wanted, got:", s->name);
            for (int32_t i = 0; i < frames.n; i++) {
                fprintf(stderr, " %d,%d", indices[i] + s->first, frames.numbers[i]);
            }
            fprintf(stderr, "\n");
        }
        check_few(f, s);
    }
    video_close(f);
    file_map_close(&m);
}

/* Frames 0-3 of every ten of a 30 fps video are left: at each sampled time the last of them that
 * has come is shown. */
static void test_variable_rate(void)
{
    processor_config pc;
    err_detail d = {0};
    file_map m = {0};
    seen frames = {0};
    int32_t indices[MAX_FRAMES], n = 0;
    double times[MAX_FRAMES];
    CHECK_OK(processor_config_load(&pc, json_folder("/nonexistent"), &d), d);
    video *f = open_video(&m, "h264_variable.mp4");
    if (f) {
        const video_info *info = video_get_info(f);
        CHECK(info->variable_rate);
        CHECK_INT(info->n_frames, 36);
        CHECK_NEAR(info->fps, 35 / (83 / 30.0), 1e-6); /* what the times say, not the container */
        CHECK_OK(video_plan(info, &pc, &(video_request){.fps = 6}, indices, times, MAX_FRAMES, &n, &d), d);
        CHECK_OK(video_read(f, indices, n, on_frame, &frames, &d), d);
        CHECK_INT(frames.n, n);
        for (int32_t i = 0; i < frames.n; i++) {
            /* source frame at that time */
            int32_t at = (int32_t)floor((times[i] + 0.25 / info->fps) * 30 + 1e-9);
            at = at % 10 < 4 ? at : at - at % 10 + 3;
            CHECK_INT(frames.numbers[i], at);
        }
    }
    video_close(f);
    file_map_close(&m);
}

static uint8_t *find(uint8_t *data, size_t n, const void *what, size_t len)
{
    for (size_t i = 0; i + len <= n; i++) {
        if (memcmp(data + i, what, len) == 0) {
            return data + i;
        }
    }
    return NULL;
}

/* A Matroska file of 90 frames that were a thirtieth of a second apart, whose clock goes 50 times as slow: its own rate is
 * told, though the times are rounded. */
static void test_slow(void)
{
    static const uint8_t SCALE[] = "\x2a\xd7\xb1\x83\x0f\x42\x40\x4d\x80\x8dLavf59.27.100",
                         SLOWER[] = "\x2a\xd7\xb1\x84\x02\xfa\xf0\x80\x4d\x80\x8cLavf59.27.10",
                         FRAME[] = "\x23\xe3\x83\x84\x01\xfc\xa0\x55", /* 33333333 ns */
        LONGER[] = "\x23\xe3\x83\x84\x63\x57\x50\x9a";                 /* 50 times that */
    file_map m = {0};
    err_detail d = {0};
    video *f = NULL;
    const video_limits limits = video_limits_default();
    CHECK_OK(file_map_open(&m, check_data("videos/vp9.webm"), &d), d);
    uint8_t *copy = malloc(m.bytes);
    memcpy(copy, m.data, m.bytes);
    uint8_t *scale = find(copy, m.bytes, SCALE, sizeof SCALE - 1), *frame = find(copy, m.bytes, FRAME, 8);
    CHECK(scale && frame);
    if (scale && frame) {
        memcpy(scale, SLOWER, sizeof SLOWER - 1);
        memcpy(frame, LONGER, 8);
        CHECK_OK(video_open(&f, &(video_source){.data = copy, .bytes = m.bytes, .fd = -1}, &limits, &d), d);
    }
    if (f) {
        const video_info *info = video_get_info(f);
        CHECK_INT(info->n_frames, 90);
        CHECK_NEAR(info->fps, 0.6, 1e-6);
        CHECK_NEAR(info->duration_s, 150, 0.1);
        CHECK(!info->variable_rate);
    }
    video_close(f);
    free(copy);
    file_map_close(&m);
}

/* The first frame alone of a file that does not say how long one is: a video without a rate and without a duration. */
static void test_single(void)
{
    static const uint8_t FRAME[] = "\x23\xe3\x83\x84\x01\xfc\xa0\x55",
                         CLUSTER[] = "\x1f\x43\xb6\x75\x49\x3e\xe7\x81";
    enum { HEAD = 9, BLOCK = 37 }; /* of the cluster; of the first block in it */
    file_map m = {0};
    err_detail d = {0};
    video *f = NULL;
    seen s = {0};
    const video_limits limits = video_limits_default();
    CHECK_OK(file_map_open(&m, check_data("videos/vp9.webm"), &d), d);
    uint8_t *copy = malloc(m.bytes);
    memcpy(copy, m.data, m.bytes);
    uint8_t *segment = find(copy, m.bytes, "\x18\x53\x80\x67", 4), *frame = find(copy, m.bytes, FRAME, 8),
            *cluster = find(copy, m.bytes, CLUSTER, 8);
    CHECK(segment && frame && cluster);
    if (segment && frame && cluster) {
        memcpy(segment + 4, "\x01\xff\xff\xff\xff\xff\xff\xff", 8); /* it does not say where it ends */
        memcpy(frame, "\xec\x86\0\0\0\0\0\0", 8);
        cluster[4] = 0x40;
        cluster[5] = 3 + BLOCK;
        const size_t n = (size_t)(cluster - copy) + HEAD + BLOCK;
        CHECK_OK(video_open(&f, &(video_source){.data = copy, .bytes = n, .fd = -1}, &limits, &d), d);
    }
    if (f) {
        const video_info *info = video_get_info(f);
        CHECK_INT(info->n_frames, 1);
        CHECK_NEAR(info->fps, 0, 0);
        CHECK_NEAR(info->duration_s, 0, 0);
        CHECK(!info->variable_rate);
        CHECK_OK(video_read(f, (const int32_t[]){0}, 1, on_frame, &s, &d), d);
        CHECK_INT(s.n, 1);
    }
    video_close(f);
    free(copy);
    file_map_close(&m);
}

static void test_requests(void)
{
    processor_config pc;
    err_detail d = {0};
    file_map m = {0};
    int32_t indices[MAX_FRAMES], n = 0;
    double times[MAX_FRAMES];
    CHECK_OK(processor_config_load(&pc, json_folder("/nonexistent"), &d), d);
    video *f = open_video(&m, "h264_faststart.mp4");
    const video_info *info = video_get_info(f);
    /* one second from 1.0 s: frames 30..59, and nothing is written behind them */
    indices[4] = -7;
    times[4] = -7;
    CHECK_OK(
        video_plan(info, &pc, &(video_request){.start_s = 1, .end_s = 2}, indices, times, MAX_FRAMES, &n, &d),
        d);
    CHECK_INT(n, 4);
    CHECK_INT(indices[0], 30);
    CHECK_INT(indices[3], 59);
    CHECK_NEAR(times[0], 1.0, 1e-9);
    CHECK_NEAR(times[3], 59 / 30.0, 1e-9);
    CHECK(indices[4] == -7 && times[4] == -7);
    CHECK_OK(video_plan(info, &pc, &(video_request){.n_frames = 9}, indices, times, MAX_FRAMES, &n, &d), d);
    CHECK_INT(n, 9);
    CHECK_INT(indices[8], 89);
    CHECK_OK(video_plan(info, &pc, &(video_request){.fps = 10, .max_frames = 7}, indices, times, MAX_FRAMES,
                        &n, &d),
             d);
    CHECK_INT(n, 7);
    CHECK_OK(video_plan(info, &pc, &(video_request){.start_s = 2.9, .end_s = 100}, indices, times, MAX_FRAMES,
                        &n, &d),
             d);
    CHECK_INT(indices[0], 87);
    CHECK_INT(n, 3);
    CHECK_INT(video_plan(info, &pc, &(video_request){.start_s = 3}, indices, times, MAX_FRAMES, &n, &d),
              ERR_INVALID);
    for (double end_s = 1; end_s <= 2; end_s++) { /* also a part without length */
        const video_request part = {.start_s = 2, .end_s = end_s};
        d = (err_detail){0};
        CHECK_INT(video_plan(info, &pc, &part, indices, times, MAX_FRAMES, &n, &d), ERR_INVALID);
        CHECK_STR(d.name, "video_range");
    }
    CHECK_INT(video_plan(info, &pc, &(video_request){.fps = 30}, indices, times, 5, &n, &d), ERR_LIMIT);
    CHECK_STR(d.name, "video_too_large");

    /* The same frame may be wanted twice; a video can be read again; numbers must ascend and
     * exist. */
    for (int round = 0; round < 2; round++) {
        seen s = {0};
        CHECK_OK(video_read(f, (const int32_t[]){3, 3, 50, 89}, 4, on_frame, &s, &d), d);
        CHECK_INT(s.n, 4);
        CHECK_INT(s.numbers[1], 3);
        CHECK_INT(s.numbers[3], 89);
    }
    CHECK_INT(video_read(f, (const int32_t[]){4, 3}, 2, on_frame, NULL, &d), ERR_INVALID);
    CHECK_INT(video_read(f, (const int32_t[]){90}, 1, on_frame, NULL, &d), ERR_INVALID);
    video_close(f);
    file_map_close(&m);
}

/* The first frame of moving images, of which each row is another one, is what is shown of them as images. */
static err_code keep_first(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    image *kept = ctx;
    (void)detail;
    CHECK(i == 0 && !kept->rgb);
    *kept = *frame;
    const size_t n = (size_t)frame->width * (size_t)frame->height * 3;
    kept->rgb = memcpy(malloc(n), frame->rgb, n);
    return ERR_OK;
}

static void test_rows(void)
{
    static const char *const NAMES[] = {"animated.webp", "animated.gif"};
    const image_limits images = {.max_pixels = 1 << 20, .max_side = 4096};
    const video_limits limits = video_limits_default();
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        char relative[128];
        file_map m = {0};
        video *f = NULL;
        image still = {0}, first = {0};
        err_detail d = {0};
        snprintf(relative, sizeof relative, "images/%s", NAMES[i]);
        CHECK_OK(file_map_open(&m, check_data(relative), &d), d);
        CHECK_OK(image_decode(&still, m.data, m.bytes, &images, &d), d);
        CHECK_OK(video_open(&f, &(video_source){.data = m.data, .bytes = m.bytes, .fd = -1}, &limits, &d), d);
        CHECK_OK(video_read(f, (const int32_t[]){0}, 1, keep_first, &first, &d), d);
        CHECK(first.width == still.width && first.height == still.height);
        int worst = 0;
        for (size_t k = 0; k < (size_t)still.width * (size_t)still.height * 3; k++) {
            const int off = abs(still.rgb[k] - first.rgb[k]);
            worst = off > worst ? off : worst;
        }
        printf("%s as a video: worst difference %d\n", NAMES[i], worst);
        CHECK(worst <= 2);
        free(first.rgb);
        image_deinit(&still);
        video_close(f);
        file_map_close(&m);
    }
}

/* Of a video that tells where one may begin to decode, the first frame and a later one take little more than these; of
 * another one all up to that is decoded; and where it told so in vain, from the begin as soon as that shows. */
static int n_decoded;

int __real_avcodec_send_packet(AVCodecContext *codec, const AVPacket *packet);
int __wrap_avcodec_send_packet(AVCodecContext *codec, const AVPacket *packet);
int __wrap_avcodec_send_packet(AVCodecContext *codec, const AVPacket *packet)
{
    n_decoded++;
    return __real_avcodec_send_packet(codec, packet);
}

/* A decoder may leave out the time of a frame, which the library guesses then; a guess beside a time does not count. */
static enum { AS_DECODED, WITHOUT_TIMES, WITH_WRONG_GUESSES } times_are;

int __real_avcodec_receive_frame(AVCodecContext *codec, AVFrame *frame);
int __wrap_avcodec_receive_frame(AVCodecContext *codec, AVFrame *frame);
int __wrap_avcodec_receive_frame(AVCodecContext *codec, AVFrame *frame)
{
    const int rc = __real_avcodec_receive_frame(codec, frame);
    if (rc >= 0 && times_are == WITHOUT_TIMES) {
        frame->pts = AV_NOPTS_VALUE;
    } else if (rc >= 0 && times_are == WITH_WRONG_GUESSES) {
        frame->best_effort_timestamp = 7;
    }
    return rc;
}

static void test_times(void)
{
    static const sample ORDERED = {"h264_b_frames.mp4", "H.264", 83, 30, 192, 32, 0, 0};
    for (times_are = WITHOUT_TIMES; times_are <= WITH_WRONG_GUESSES; times_are++) {
        check_sample(&ORDERED);
    }
    times_are = AS_DECODED;
}

static void test_skipping(void)
{
    static const struct {
        const char *name;
        int32_t n_frames; /* the last of them is wanted */
        int n_decoded;    /* or one or two more or less: some decoders wait for the next */
    } CASES[] = {
        {"h264_faststart.mp4", 90, 6}, {"h264_negative.mkv", 90, 91}, {"h264_240fps.mp4", 480, 12},
        {"h264_hour.mp4", 3600, 20},   {"h264_b_frames.mp4", 83, 27}, {"h264_open_gop.mkv", 90, 35},
        {"h264_refresh.mkv", 90, 105}, {"h264_refresh.mkv", 50, 71},  {"h264_size_change.mp4", 90, 19},
        {"hevc.mp4", 90, 91},          {"vp8.webm", 90, 95},          {"av1.mkv", 90, 27},
        {"mpeg4.avi", 90, 91},         {"mpeg4.mp4", 90, 7},          {"mjpeg.mov", 20, 2},
        {"gif.gif", 20, 20},           {"apng.png", 20, 20},
    };
    video_limits limits = video_limits_default();
    limits.n_threads = 1; /* threads of a decoder want packets of their own */
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char relative[128];
        file_map m = {0};
        err_detail d = {0};
        video *f = NULL;
        seen s = {0};
        snprintf(relative, sizeof relative, "videos/%s", CASES[i].name);
        CHECK_OK(file_map_open(&m, check_data(relative), &d), d);
        CHECK_OK(video_open(&f, &(video_source){.data = m.data, .bytes = m.bytes, .fd = -1}, &limits, &d), d);
        n_decoded = 0;
        CHECK_OK(video_read(f, (const int32_t[]){0, CASES[i].n_frames - 1}, 2, on_frame, &s, &d), d);
        printf("%s: of %d frames %d decoded\n", CASES[i].name, CASES[i].n_frames, n_decoded);
        CHECK(abs(n_decoded - CASES[i].n_decoded) <= 2);
        video_close(f);
        file_map_close(&m);
    }
}

/* From an open file the same comes out, and its offset stays. */
static void test_descriptor(void)
{
    err_detail d = {0};
    video *f = NULL;
    seen s = {0};
    video_limits limits = video_limits_default();
    int fd = open(check_data("videos/vp9.webm"), O_RDONLY);
    off_t n = lseek(fd, 0, SEEK_END);
    lseek(fd, 7, SEEK_SET);
    CHECK_OK(video_open(&f, &(video_source){.fd = fd, .bytes = (size_t)n}, &limits, &d), d);
    if (f) {
        CHECK_OK(video_read(f, (const int32_t[]){0, 44, 89}, 3, on_frame, &s, &d), d);
        CHECK_INT(s.numbers[1], 44);
        CHECK_INT(s.numbers[2], 89);
    }
    CHECK_INT(lseek(fd, 0, SEEK_CUR), 7);
    video_close(f);
    close(fd);
}

static err_code try_video(const void *data, size_t n, const video_limits *limits, err_detail *d)
{
    video *f = NULL;
    seen s = {0};
    uint8_t *copy = malloc(n + 1); /* its own block, so that a sanitizer sees a read beyond the end */
    memcpy(copy, data, n);
    *d = (err_detail){0};
    err_code err = video_open(&f, &(video_source){.data = copy, .bytes = n, .fd = -1}, limits, d);
    if (!err) {
        int32_t last = (int32_t)video_get_info(f)->n_frames - 1;
        err = video_read(f, (const int32_t[]){0, last}, 2, on_frame, &s, d);
    }
    video_close(f);
    free(copy);
    return err;
}

static void test_not_videos(void)
{
    static const char *const TEXTS[] = {
        "",
        "a text file called clip.mp4, long enough to be looked at",
        "#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile 'vp9.webm'\n",
        "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\"><Period/></MPD>",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nm=video 5004 RTP/AVP 96\n",
    };
    static const char *const FILES[] = {"sound_only.mp4", "ffv1.mkv"};
    err_detail d;
    video_limits limits = video_limits_default();
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        CHECK_INT(try_video(TEXTS[i], strlen(TEXTS[i]), &limits, &d), ERR_UNSUPPORTED);
        CHECK_STR(d.name, "unsupported_video_media_type");
    }
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        char relative[128];
        file_map m = {0};
        snprintf(relative, sizeof relative, "videos/%s", FILES[i]);
        CHECK_OK(file_map_open(&m, check_data(relative), &d), d);
        CHECK_INT(try_video(m.data, m.bytes, &limits, &d), ERR_UNSUPPORTED);
        file_map_close(&m);
    }
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

static void check_limit(const char *name, video_limits limits, err_code expected, const char *error)
{
    char relative[128];
    file_map m = {0};
    err_detail d = {0};
    snprintf(relative, sizeof relative, "videos/%s", name);
    CHECK_OK(file_map_open(&m, check_data(relative), &d), d);
    CHECK_INT(try_video(m.data, m.bytes, &limits, &d), expected);
    CHECK_STR(d.name, error);
    file_map_close(&m);
}

/* A video without frames, with too few of them, or with all of them in another file is no video. */
static void test_no_frames(void)
{
    check_limit("no_frames.mp4", video_limits_default(), ERR_UNSUPPORTED, "unsupported_video_media_type");
    check_limit("no_frames.mkv", video_limits_default(), ERR_CORRUPT, "video_parse_error");
    check_limit("external_track.mp4", video_limits_default(), ERR_CORRUPT, "video_parse_error");
}

static void test_limits(void)
{
    video_limits l = video_limits_default();
    l.max_pixels = 192 * 32 - 1;
    check_limit("vp9.webm", l, ERR_LIMIT, "video_too_large");
    l = video_limits_default();
    l.max_bytes = 2869;
    check_limit("vp9.webm", l, ERR_LIMIT, "video_too_large");
    l = video_limits_default();
    l.max_side = 191;
    check_limit("webp.webp", l, ERR_LIMIT, "video_too_large");
    l.max_side = 192;
    l.max_frames = 19;
    check_limit("webp.webp", l, ERR_LIMIT, "video_too_large");
    l = video_limits_default();
    l.max_side = 191;
    check_limit("vp9.webm", l, ERR_LIMIT, "video_too_large");
    l = video_limits_default();
    l.max_side = 300; /* fits at first, then the video grows */
    check_limit("size_change.avi", l, ERR_LIMIT, "video_too_large");
    l = video_limits_default();
    l.max_duration_s = 3599;
    check_limit("h264_hour.mp4", l, ERR_LIMIT, "video_too_large");
    l = video_limits_default();
    l.max_packets = 89;
    check_limit("vp9.webm", l, ERR_LIMIT, "video_too_large");
    l = video_limits_default();
    l.max_frames = 89;
    check_limit("vp9.webm", l, ERR_LIMIT, "video_too_large");
    l = video_limits_default();
    l.max_wall_s = 1e-9;
    check_limit("h264_hour.mp4", l, ERR_TIMEOUT, "video_timeout");
    l = video_limits_default();
    l.cancelled = always;
    check_limit("vp9.webm", l, ERR_CANCELLED, "");
}

/* Cut anywhere a video is refused. A fragmented video cut exactly between two fragments is a whole,
 * shorter video. */
static void test_damage(void)
{
    static const char *const NAMES[] = {
        "h264_faststart.mp4", "h264_fragments.mp4", "vp9.webm", "vp8.webm", "av1.mkv",
        "mpeg4.avi",          "mjpeg.mov",          "gif.gif",  "apng.png", "hevc.mp4",
        "webp.webp"};
    video_limits limits = video_limits_default();
    limits.max_wall_s = 5;
    limits.max_pixels = 1 << 16;
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        char relative[128];
        file_map m = {0};
        err_detail d = {0};
        size_t n_accepted = 0;
        snprintf(relative, sizeof relative, "videos/%s", NAMES[i]);
        CHECK_OK(file_map_open(&m, check_data(relative), &d), d);
        for (size_t n = 0; n < m.bytes; n += n < 400 || n + 40 > m.bytes ? 1 : 37) {
            n_accepted += try_video(m.data, n, &limits, &d) == ERR_OK;
        }
        if (n_accepted) {
            printf("%s: %zu shorter videos accepted\n", NAMES[i], n_accepted);
        }
        CHECK(n_accepted <= (i == 1 ? 3 : 0));
        file_map_close(&m);
    }
}

static err_code ignore_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    (void)ctx;
    (void)i;
    (void)detail;
    CHECK(frame->rgb != NULL && frame->width > 0 && frame->height > 0);
    return ERR_OK;
}

static bool is_set(void *ctx)
{
    return *(const bool *)ctx;
}

/* A video whose reading was stopped can be read again. */
static void test_read_again(void)
{
    bool is_stopped = false;
    err_detail d = {0};
    file_map m = {0};
    video *f = NULL;
    video_limits limits = video_limits_default();
    limits.cancelled = is_set;
    limits.ctx = &is_stopped;
    CHECK_OK(file_map_open(&m, check_data("videos/vp9.webm"), &d), d);
    CHECK_OK(video_open(&f, &(video_source){.data = m.data, .bytes = m.bytes, .fd = -1}, &limits, &d), d);
    for (int i = 0; i < 4; i++) {
        is_stopped = i % 2 == 0;
        const err_code err = video_read(f, (const int32_t[]){0, 40}, 2, ignore_frame, NULL, &d);
        CHECK_INT(err, is_stopped ? ERR_CANCELLED : ERR_OK);
    }
    video_close(f);
    file_map_close(&m);
}

/* A few changed bytes may do anything but crash or hang. */
static void test_changed_bytes(void)
{
    static const char *const NAMES[] = {"h264_faststart.mp4", "vp9.webm",  "mpeg4.avi", "gif.gif",
                                        "apng.png",           "mjpeg.mov", "webp.webp"};
    video_limits limits = video_limits_default();
    limits.max_wall_s = 5;
    limits.max_pixels = 1 << 16;
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        char relative[128];
        file_map m = {0};
        err_detail d = {0};
        double slowest = 0;
        snprintf(relative, sizeof relative, "videos/%s", NAMES[i]);
        CHECK_OK(file_map_open(&m, check_data(relative), &d), d);
        uint8_t *copy = malloc(m.bytes);
        memcpy(copy, m.data, m.bytes);
        for (size_t n = 0; n < m.bytes; n += n < 300 ? 3 : 41) {
            video *f = NULL;
            double begin = clock_ms();
            copy[n] ^= 0xff;
            if (!video_open(&f, &(video_source){.data = copy, .bytes = m.bytes, .fd = -1}, &limits, &d)) {
                CHECK(video_get_info(f)->n_frames > 0 && video_get_info(f)->n_frames <= limits.max_frames);
                int32_t last = (int32_t)video_get_info(f)->n_frames - 1;
                err_code err = video_read(f, (const int32_t[]){0, last}, 2, ignore_frame, NULL, &d);
                CHECK(err != ERR_INTERNAL && err != ERR_INVALID);
            }
            video_close(f);
            copy[n] ^= 0xff;
            slowest = clock_ms() - begin > slowest ? clock_ms() - begin : slowest;
        }
        printf("%s with changed bytes: slowest %.1f ms\n", NAMES[i], slowest);
        CHECK(slowest < 30000);
        free(copy);
        file_map_close(&m);
    }
}

/* A frame that the decoder mends, so that something is shown, is no frame. */
static void test_mended_frame(void)
{
    int32_t all[90];
    file_map m = {0};
    err_detail d = {0};
    video *f = NULL;
    const video_limits limits = video_limits_default();
    for (int32_t i = 0; i < 90; i++) {
        all[i] = i;
    }
    CHECK_OK(file_map_open(&m, check_data("videos/h264_faststart.mp4"), &d), d);
    uint8_t *copy = malloc(m.bytes);
    memcpy(copy, m.data, m.bytes);
    copy[1960] ^= 0xff;
    CHECK_OK(video_open(&f, &(video_source){.data = copy, .bytes = m.bytes, .fd = -1}, &limits, &d), d);
    if (f) {
        CHECK_INT(video_read(f, all, 90, ignore_frame, NULL, &d), ERR_CORRUPT);
        CHECK_STR(d.name, "video_parse_error");
    }
    video_close(f);
    free(copy);
    file_map_close(&m);
}

int main(void)
{
    for (size_t i = 0; i < ARRAY_LEN(SAMPLES); i++) {
        check_sample(&SAMPLES[i]);
    }
    test_slow();
    test_single();
    test_variable_rate();
    test_requests();
    test_rows();
    test_times();
    test_skipping();
    test_descriptor();
    test_not_videos();
    test_no_frames();
    test_limits();
    test_damage();
    test_read_again();
    test_mended_frame();
    test_changed_bytes();
    CHECK_DONE();
}
