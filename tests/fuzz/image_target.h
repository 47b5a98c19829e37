/* image: what the image targets share: probe, decode under small limits, look at every pixel.
 * One thread; keeps nothing.
 *
 *     int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { image_check(data, size); return 0; }
 */
#ifndef PARLEY_TESTS_FUZZ_IMAGE_TARGET_H
#define PARLEY_TESTS_FUZZ_IMAGE_TARGET_H

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tests/fuzz/say.h"
#include "vision/image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void image_must(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* Decodes data[0..size) and aborts if the result breaks a promise of vision/image/image.h. */
static inline void image_check(const uint8_t *data, size_t size)
{
    /* Small, so that a run is quick; the same code refuses what is over the real limits. */
    static const image_limits limits = {.max_pixels = 1 << 18, .max_side = 4096};
    err_detail detail = {0};
    image img = {0};
    image_plan plan;
    err_code measured = image_measure(&plan, data, size, &limits, &detail);
    if (measured == ERR_OK) {
        say("%s %d %d, turned %d, %zu bytes", image_format_name(plan.format), plan.width, plan.height,
            plan.is_turned, plan.bytes);
    } else {
        say_error(measured, &detail);
    }
    err_code err = image_decode(&img, data, size, &limits, &detail);
    /* What libavcodec makes of a damaged file is not ours, and changes from version to version. */
    const bool is_told = image_sniff(data, size) == IMAGE_PNG || image_sniff(data, size) == IMAGE_JPEG;
    if (err != ERR_OK && is_told) {
        say_error(err, &detail);
    }
    if (err != ERR_OK) {
        image_must(img.rgb == NULL && detail.text[0] != '\0');
        image_must(utf8_valid(detail.text, strlen(detail.text)));
        return;
    }
    image_must(img.width > 0 && img.height > 0 && img.width <= limits.max_side &&
               img.height <= limits.max_side);
    image_must(img.format != IMAGE_UNKNOWN && img.format == image_sniff(data, size));
    size_t n = (size_t)img.width * (size_t)img.height;
    image_must(n <= limits.max_pixels);
    image_must(measured == ERR_OK && plan.width == img.width && plan.height == img.height);
    if (img.format == IMAGE_PNG) {
        say_sum("pixels", img.rgb, 3 * n);
    }
    uint8_t sum = 0;
    for (size_t i = 0; i < 3 * n; i++) {
        sum ^= img.rgb[i];
    }
    volatile uint8_t used = sum; /* an unset pixel shows under valgrind or MSan */
    (void)used;
    image_deinit(&img);
}

#endif
