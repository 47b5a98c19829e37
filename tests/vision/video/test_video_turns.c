/* A video file says how its frames are to be turned or mirrored: a matrix in its track header. Each of the eight is put into
 * a file of one frame, and what is shown compared with that frame, pixel for pixel. */
#include "tests/check.h"

#include "base/compiler.h"
#include "base/file.h"
#include "vision/video/video.h"

typedef struct shown {
    int32_t width, height;
    uint8_t *rgb;
} shown;

static err_code keep(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    shown *s = ctx;
    const size_t n = (size_t)frame->width * (size_t)frame->height * 3;
    (void)i;
    (void)detail;
    *s = (shown){frame->width, frame->height, malloc(n)};
    if (s->rgb) {
        memcpy(s->rgb, frame->rgb, n);
    }
    return ERR_OK;
}

static shown show(const uint8_t *data, size_t n)
{
    video *f = NULL;
    shown s = {0};
    err_detail d = {0};
    const video_limits limits = video_limits_default();
    CHECK_OK(video_open(&f, &(video_source){.data = data, .bytes = n, .fd = -1}, &limits, &d), d);
    if (f) {
        CHECK_OK(video_read(f, (const int32_t[]){0}, 1, keep, &s, &d), d);
        CHECK_INT(video_get_info(f)->width, s.width);
        CHECK_INT(video_get_info(f)->height, s.height);
    }
    video_close(f);
    return s;
}

/* Big endian, as 16.16. */
static void put_number(uint8_t *to, int32_t value)
{
    const uint32_t bits = (uint32_t)value << 16;
    for (int i = 0; i < 4; i++) {
        to[i] = (uint8_t)(bits >> (24 - 8 * i));
    }
}

/* The matrix of the only track header: a b u, c d v, x y w. */
static uint8_t *find_matrix(uint8_t *data, size_t n)
{
    for (size_t i = 0; i + 84 < n; i++) {
        if (memcmp(data + i, "tkhd\0", 5) == 0) { /* its times are of four bytes each */
            return data + i + 44;
        }
    }
    return NULL;
}

/* Shown x = a x + c y, y = b x + d y, moved to where both begin with 0. */
static void check_turn(const shown *upright, const shown *s, int32_t a, int32_t b, int32_t c, int32_t d)
{
    const int32_t w = upright->width, h = upright->height;
    size_t n_wrong = 0;
    CHECK_INT(s->width, a ? w : h);
    CHECK_INT(s->height, a ? h : w);
    if (s->width != (a ? w : h)) {
        return;
    }
    for (int32_t y = 0; y < h; y++) {
        for (int32_t x = 0; x < w; x++) {
            const int32_t to_x = a * x + c * y + (a + c < 0 ? s->width - 1 : 0),
                          to_y = b * x + d * y + (b + d < 0 ? s->height - 1 : 0);
            n_wrong +=
                memcmp(upright->rgb + 3 * (y * w + x), s->rgb + 3 * (to_y * s->width + to_x), 3) != 0;
        }
    }
    CHECK_INT(n_wrong, 0);
}

int main(void)
{
    static const int32_t TURNS[][4] = {{1, 0, 0, 1},  {-1, 0, 0, 1},  {-1, 0, 0, -1}, {1, 0, 0, -1},
                                       {0, 1, 1, 0},  {0, 1, -1, 0},  {0, -1, -1, 0}, {0, -1, 1, 0}};
    file_map m = {0};
    err_detail d = {0};
    CHECK_OK(file_map_open(&m, check_data("videos/h264_one_frame.mp4"), &d), d);
    uint8_t *data = malloc(m.bytes);
    memcpy(data, m.data, m.bytes);
    uint8_t *matrix = find_matrix(data, m.bytes);
    const shown upright = show(m.data, m.bytes);
    CHECK(matrix && upright.rgb);
    for (size_t i = 0; i < ARRAY_LEN(TURNS) && matrix && upright.rgb; i++) {
        const int32_t *t = TURNS[i];
        put_number(matrix, t[0]);
        put_number(matrix + 4, t[1]);
        put_number(matrix + 12, t[2]);
        put_number(matrix + 16, t[3]);
        const shown s = show(data, m.bytes);
        check_turn(&upright, &s, t[0], t[1], t[2], t[3]);
        free(s.rgb);
    }
    free(upright.rgb);
    free(data);
    file_map_close(&m);
    CHECK_DONE();
}
