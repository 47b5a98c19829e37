/* A video file says how its frames are to be turned or mirrored: a matrix in its track header. Each of the eight is put into
 * a file, and its first frame compared with that of the file as it was, pixel for pixel. */
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

/* Pixels that are not where the turn puts them: shown x = a x + c y, y = b x + d y, moved to where both begin with 0. */
static size_t count_wrong(const shown *upright, const shown *s, const int32_t t[4])
{
    const int32_t w = upright->width, h = upright->height, a = t[0], b = t[1], c = t[2], d = t[3];
    size_t n_wrong = 0;
    if (s->width != (a ? w : h) || s->height != (a ? h : w)) {
        return SIZE_MAX;
    }
    for (int32_t y = 0; y < h; y++) {
        for (int32_t x = 0; x < w; x++) {
            const int32_t to_x = a * x + c * y + (a + c < 0 ? s->width - 1 : 0),
                          to_y = b * x + d * y + (b + d < 0 ? s->height - 1 : 0);
            n_wrong += memcmp(upright->rgb + 3 * (y * w + x), s->rgb + 3 * (to_y * s->width + to_x), 3) != 0;
        }
    }
    return n_wrong;
}

int main(void)
{
    static const int32_t TURNS[][4] = {{1, 0, 0, 1}, {-1, 0, 0, 1}, {-1, 0, 0, -1}, {1, 0, 0, -1},
                                       {0, 1, 1, 0}, {0, 1, -1, 0}, {0, -1, -1, 0}, {0, -1, 1, 0}};
    file_map m = {0};
    err_detail d = {0};
    CHECK_OK(file_map_open(&m, PARLEY_SOURCE_DIR "/assets/samples/ball-moves.mp4", &d), d);
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
        for (size_t k = 0; k < ARRAY_LEN(TURNS) && s.rgb; k++) { /* that one, and no other */
            const size_t n_wrong = count_wrong(&upright, &s, TURNS[k]);
            CHECK(k == i ? n_wrong == 0 : n_wrong > 0);
        }
        free(s.rgb);
    }
    free(upright.rgb);
    free(data);
    file_map_close(&m);
    CHECK_DONE();
}
