/* What is made of a video before its frames are: which of them are wanted, from numbers of videos that are made up; both sides of
 * each limit; a size that is missing, and a picture that is no part of the video. */
#include "base/bytes.h"
#include "base/compiler.h"
#include "base/file.h"
#include "base/limits.h"
#include "tests/check.h"
#include "vision/video/video.h"

enum { MOST = 64 };

/* Of 100 frames, ten a second. */
static void test_plan(void)
{
    static const struct {
        int64_t n_frames;
        double fps;
        video_request request;
        err_code err;
        const char *name;
        int32_t n, first, last;
    } CASES[] = {
        {100, 10, {.fps = 0}, ERR_OK, "", 20, 0, 99},
        {100, 10, {.start_s = 0.1}, ERR_OK, "", 19, 1, 99}, /* 0.1 is a little more than it should be */
        {100, 10, {.start_s = 0.3, .n_frames = 2}, ERR_OK, "", 2, 3, 99},
        {100, 10, {.start_s = 0.35, .end_s = 0.3, .n_frames = 2}, ERR_INVALID, "video_range", 0, 0, 0},
        {100, 10, {.start_s = 0.31, .end_s = 0.7, .n_frames = 2}, ERR_OK, "", 2, 4, 6},
        {100, 10, {.start_s = -5, .end_s = 0.71, .n_frames = 2}, ERR_OK, "", 2, 0, 7},
        {100, 10, {.end_s = 1e9, .n_frames = 2}, ERR_OK, "", 2, 0, 99},
        {100, 10, {.end_s = 10, .n_frames = 2}, ERR_OK, "", 2, 0, 99},
        {100, 10, {.end_s = 9.9, .n_frames = 2}, ERR_OK, "", 2, 0, 98},
        {100, 10, {.start_s = 9.9}, ERR_OK, "", 1, 99, 99},
        {100, 10, {.start_s = 9.91}, ERR_INVALID, "video_range", 0, 0, 0},
        {100, 10, {.end_s = 0.05}, ERR_OK, "", 1, 0, 0},
        {100, 10, {.fps = 10, .max_frames = 5}, ERR_OK, "", 5, 0, 99},
        {100, 10, {.fps = 1, .max_frames = 9}, ERR_OK, "", 9, 0, 99},
        {100, 10, {.fps = 1, .max_frames = 10}, ERR_OK, "", 10, 0, 99},
        {100, 10, {.fps = 1, .max_frames = 31}, ERR_OK, "", 10, 0, 99},
        {100,
         10,
         {.fps = 10, .max_frames = 1000},
         ERR_OK,
         "",
         30,
         0,
         99}, /* never more than the model's own */
        {100, 10, {.fps = 10, .max_frames = -1}, ERR_OK, "", 30, 0, 99},
        {100, 10, {.n_frames = MOST}, ERR_OK, "", MOST, 0, 99},
        {100, 10, {.n_frames = MOST + 1}, ERR_LIMIT, "video_too_large", 0, 0, 0},
        {(int64_t)INT32_MAX + 1, 10, {.n_frames = 2}, ERR_LIMIT, "video_too_large", 0, 0, 0},
        {1, 0, {.fps = 0}, ERR_OK, "", 1, 0, 0}, /* a single frame has no rate, so its end is not known */
        {1, 0, {.end_s = 0.5}, ERR_OK, "", 1, 0, 0},
        {1, 0, {.start_s = 7, .end_s = 9}, ERR_OK, "", 1, 0, 0},
    };
    processor_config pc;
    processor_config_init(&pc);
    pc.video_max_frames = 30;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        const video_info info = {.n_frames = CASES[i].n_frames, .fps = CASES[i].fps, .duration_s = 10};
        int32_t indices[MOST + 1] = {0}, n = 0;
        double times[MOST + 1] = {0};
        err_detail d = {0};
        const int before = check_failures;
        for (int told = 1; told >= 0; told--) {
            CHECK_INT(video_plan(&info, &pc, &CASES[i].request, indices, times, MOST, &n, told ? &d : NULL),
                      CASES[i].err);
        }
        CHECK_STR(d.name, CASES[i].name);
        if (CASES[i].err == ERR_OK) {
            CHECK_INT(n, CASES[i].n);
            CHECK_INT(indices[0], CASES[i].first);
            CHECK_INT(indices[n - 1], CASES[i].last);
            for (int32_t k = 0; k < n; k++) {
                CHECK_NEAR(times[k], CASES[i].fps > 0 ? indices[k] / CASES[i].fps : 0, 1e-9);
            }
        }
        if (check_failures != before) {
            fprintf(stderr, "  (case %zu: %d frames, %d to %d)\n", i, n, indices[0],
                    n > 0 ? indices[n - 1] : -1);
        }
    }
    CHECK_INT(pc.video_max_frames, 30);
}

static err_code skip_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    (void)i;
    (void)detail;
    *(int32_t *)ctx += frame->rgb != NULL;
    return ERR_OK;
}

/* Opens it and reads its first and its last frame. */
static err_code read_ends(const uint8_t *data, size_t n, const video_limits *limits, video_info *info,
                          err_detail *d)
{
    video *f = NULL;
    int32_t n_shown = 0;
    *d = (err_detail){0};
    err_code err = video_open(&f, &(video_source){.data = data, .bytes = n, .fd = -1}, limits, d);
    if (!err) {
        *info = *video_get_info(f);
        err = video_read(f, (const int32_t[]){0, (int32_t)info->n_frames - 1}, 2, skip_frame, &n_shown, d);
        CHECK_INT(n_shown, err ? n_shown : 2);
    }
    video_close(f);
    return err;
}

/* What a video may have at most: so much, and not one less. */
static void test_limits(void)
{
    const video_limits usual = video_limits_default();
    CHECK(usual.max_bytes == LIMIT_VIDEO_BYTES && usual.max_pixels == LIMIT_VIDEO_PIXELS &&
          usual.max_side == LIMIT_IMAGE_SIDE && usual.max_duration_s == LIMIT_VIDEO_DURATION_S &&
          usual.max_packets == LIMIT_VIDEO_PACKETS && usual.max_frames == LIMIT_VIDEO_TRACK_FRAMES &&
          usual.n_threads == 1 && usual.max_wall_s == LIMIT_VIDEO_WALL_S &&
          usual.max_memory == LIMIT_VIDEO_MEMORY && !usual.cancelled);
    static const char *const NAMES[] = {"vp9.webm", "webp.webp", "h264_sound.mp4", "gif.gif", "mpeg4.avi"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        char path[4200];
        file_map m = {0};
        err_detail d = {0};
        video_info info = {0};
        CHECK(file_join(path, sizeof path, check_data("videos"), NAMES[i]));
        CHECK_OK(file_map_open(&m, path, &d), d);
        CHECK_OK(read_ends(m.data, m.bytes, &usual, &info, &d), d);
        static const char *const SAYS[] = {"more bytes", "larger frames", "larger frames", "more frames",
                                           "a longer duration"};
        for (int which = 0; which < 5; which++) {
            for (int less = 0; less < 2; less++) {
                video_limits l = usual;
                video_info again;
                char says[96];
                l.max_wall_s = 0; /* as long as it takes */
                switch (which) {
                case 0:
                    l.max_bytes = m.bytes - (size_t)less;
                    break;
                case 1:
                    l.max_pixels = (size_t)info.width * (size_t)info.height - (size_t)less;
                    break;
                case 2:
                    l.max_side = info.width - less;
                    break;
                case 3:
                    l.max_frames = info.n_frames - less;
                    break;
                default:
                    l.max_duration_s = info.duration_s - 1e-6 * less;
                    break;
                }
                snprintf(says, sizeof says, "the video has %s than this server allows", SAYS[which]);
                CHECK_INT(read_ends(m.data, m.bytes, &l, &again, &d), less ? ERR_LIMIT : ERR_OK);
                CHECK_STR(d.text, less ? says : "");
                CHECK_STR(d.name, less ? "video_too_large" : "");
            }
        }
        file_map_close(&m);
    }
}

static uint8_t *find(uint8_t *data, size_t n, const char *what)
{
    for (size_t i = 0; i + strlen(what) <= n; i++) {
        if (memcmp(data + i, what, strlen(what)) == 0) {
            return data + i;
        }
    }
    CHECK(!"it is there");
    return data;
}

static void put_be32(uint8_t *to, size_t v)
{
    for (int i = 0; i < 4; i++) {
        to[i] = (uint8_t)(v >> (24 - 8 * i));
    }
}

/* A track whose frames have no width, or no height. */
static void test_no_size(void)
{
    enum { WIDTH = 28, HEIGHT = 30 }; /* behind the name of the codec */
    const video_limits limits = video_limits_default();
    file_map m = {0};
    err_detail d = {0};
    CHECK_OK(file_map_open(&m, check_data("videos/h264_sound.mp4"), &d), d);
    uint8_t *copy = malloc(m.bytes);
    for (int at = WIDTH; at <= HEIGHT; at += HEIGHT - WIDTH) {
        video_info info;
        memcpy(copy, m.data, m.bytes);
        memset(find(copy, m.bytes, "avc1\0") + at, 0, 2);
        uint8_t *entry = find(copy, m.bytes, "stsd") + 16;
        CHECK(memcmp(entry, "avc1", 4) == 0);
        memset(entry + at, 0, 2);
        CHECK_INT(read_ends(copy, m.bytes, &limits, &info, &d), ERR_CORRUPT);
        CHECK_STR(d.name, "video_parse_error");
    }
    free(copy);
    file_map_close(&m);
}

/* A cover in front of the tracks: a stream of its own, which is not the video. */
static void test_cover(void)
{
    static const uint8_t UDTA[] = "\0\0\0\x6a"
                                  "udta\0\0\0\x62meta\0\0\0\0"
                                  "\0\0\0\x21hdlr\0\0\0\0\0\0\0\0mdirappl\0\0\0\0\0\0\0\0\0"
                                  "\0\0\0\x35ilst\0\0\0\x2d"
                                  "covr\0\0\0\x25"
                                  "data\0\0\0\x0d\0\0\0\0\xff\xd8\xff\xe0 not looked at \xff\xd9";
    enum { N = sizeof UDTA - 1 };
    const video_limits limits = video_limits_default();
    file_map m = {0};
    err_detail d = {0};
    video_info plain = {0}, info = {0};
    CHECK_OK(file_map_open(&m, check_data("videos/h264_sound.mp4"), &d), d);
    uint8_t *copy = malloc(m.bytes + N);
    memcpy(copy, m.data, m.bytes);
    uint8_t *moov = find(copy, m.bytes, "moov"); /* the last box */
    const size_t at = (size_t)(moov + 4 - copy);
    memcpy(copy + at, UDTA, N);
    memcpy(copy + at + N, m.data + at, m.bytes - at);
    put_be32(moov - 4, m.bytes - at + 8 + N);
    CHECK_OK(read_ends(m.data, m.bytes, &limits, &plain, &d), d);
    CHECK_OK(read_ends(copy, m.bytes + N, &limits, &info, &d), d);
    CHECK_STR(info.codec, "H.264");
    CHECK(info.n_frames == plain.n_frames && info.width == plain.width && info.has_audio);
    free(copy);
    file_map_close(&m);
}

int main(void)
{
    test_plan();
    test_limits();
    test_no_size();
    test_cover();
    CHECK_DONE();
}
