/* image_write: an image becomes a small JPEG that shows the same. */
#include "vision/image/image_write.h"

#include <stdlib.h>

#include "tests/check.h"

/* Red above, blue below. */
static image make_image(int32_t width, int32_t height)
{
    image img = {.width = width, .height = height, .rgb = calloc((size_t)width * (size_t)height, 3)};
    for (int32_t y = 0; y < height; y++) {
        for (int32_t x = 0; x < width; x++) {
            img.rgb[3 * (y * width + x) + (y < height / 2 ? 0 : 2)] = 200;
        }
    }
    return img;
}

static void check_size(int32_t width, int32_t height, int32_t side, int32_t small_width, int32_t small_height)
{
    err_detail d = {0};
    image img = make_image(width, height), back = {0};
    const image_size size = image_fit(&img, side);
    const image_limits limits = {.max_pixels = 1 << 20, .max_side = 1000};
    bytes jpeg;
    bytes_init(&jpeg, 1 << 16);
    CHECK_OK(image_write_jpeg(&jpeg, &img, size, 80, &d), d);
    CHECK_INT(size.width, small_width);
    CHECK_INT(size.height, small_height);
    CHECK_OK(image_decode(&back, (const uint8_t *)jpeg.data, jpeg.len, &limits, &d), d);
    CHECK_INT(back.format, IMAGE_JPEG);
    CHECK_INT(back.width, small_width);
    CHECK_INT(back.height, small_height);
    if (small_height > 8) {
        const uint8_t *last = back.rgb + 3 * ((size_t)small_width * (size_t)small_height - 1);
        CHECK(back.rgb[0] > 150 && back.rgb[2] < 60);
        CHECK(last[0] < 60 && last[2] > 150);
    }
    bytes_deinit(&jpeg);
    image_deinit(&back);
    free(img.rgb);
}

/* Columns of red and blue, one pixel wide: a high quality keeps their colours apart, a lower one has one colour for two. */
static void check_columns(int quality, bool apart)
{
    err_detail d = {0};
    image img = make_image(16, 16), back = {0};
    for (int32_t i = 0; i < 16 * 16; i++) {
        memcpy(img.rgb + 3 * i, i % 2 ? "\xC8\0\0" : "\0\0\xC8", 3);
    }
    const image_limits limits = {.max_pixels = 1 << 20, .max_side = 1000};
    bytes jpeg;
    bytes_init(&jpeg, 1 << 16);
    CHECK_OK(image_write_jpeg(&jpeg, &img, (image_size){16, 16}, quality, &d), d);
    CHECK_OK(image_decode(&back, (const uint8_t *)jpeg.data, jpeg.len, &limits, &d), d);
    const uint8_t *p = back.rgb + 3 * (8 * 16 + 8);
    CHECK_INT(p[2] - p[0] > 120 && p[3] - p[5] > 120, apart);
    bytes_deinit(&jpeg);
    image_deinit(&back);
    free(img.rgb);
}

/* The better the longer: of a picture of many colours. */
static void check_quality(void)
{
    static const int QUALITIES[] = {20, 50, 80, 94};
    err_detail d = {0};
    image img = make_image(64, 64);
    size_t before = 0;
    for (uint32_t i = 0, x = 1; i < 64 * 64 * 3; i++, x = x * 1664525 + 1013904223) {
        img.rgb[i] = (uint8_t)(x >> 24);
    }
    for (size_t i = 0; i < sizeof QUALITIES / sizeof QUALITIES[0]; i++) {
        bytes jpeg = bytes_empty(1 << 16);
        CHECK_OK(image_write_jpeg(&jpeg, &img, (image_size){64, 64}, QUALITIES[i], &d), d);
        CHECK(jpeg.len > before + before / 8);
        before = jpeg.len;
        bytes_deinit(&jpeg);
    }
    free(img.rgb);
}

int main(void)
{
    check_quality();
    check_columns(95, true);
    check_columns(75, false);
    check_size(320, 200, 160, 160, 100);
    check_size(200, 320, 160, 100, 160);
    check_size(40, 30, 160, 40, 30);
    check_size(1, 1, 160, 1, 1);
    check_size(900, 2, 160, 160, 1);
    check_size(2, 900, 160, 1, 160);
    err_detail d = {0};
    image img = make_image(320, 200);
    bytes small;
    bytes_init(&small, 100);
    CHECK_INT(image_write_jpeg(&small, &img, image_fit(&img, 160), 80, &d), ERR_LIMIT);
    bytes_deinit(&small);
    bytes jpeg =
        bytes_empty(1 << 20); /* a JPEG has at most 65500 columns, and the library says so in the middle */
    CHECK(image_write_jpeg(&jpeg, &img, (image_size){65501, 1}, 80, &d) != ERR_OK);
    CHECK_INT(jpeg.len, 0);
    bytes_deinit(&jpeg);
    free(img.rgb);
    CHECK_DONE();
}
