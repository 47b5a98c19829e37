/* Headers of images: the smallest that say a size, and none of their beginnings. */
#include "vision/image/image_codec.h"

#include "base/compiler.h"
#include "tests/check.h"

enum { MOST = 64 };

static const struct {
    const char *name;
    size_t n; /* bytes that the header needs */
    int64_t width, height;
    uint8_t bytes[MOST];
} CASES[] = {
    {"GIF", 13, 0x0102, 3, "GIF89a\x02\x01\x03\0\0\0\0"},
    {"BMP", 26, 5, 7, "BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\x05\0\0\0\x07\0\0\0"},
    {"BMP from below", 26, 5, 7, "BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\x05\0\0\0\xf9\xff\xff\xff"},
    {"old BMP", 26, 5, 7, "BM\0\0\0\0\0\0\0\0\0\0\0\0\x0c\0\0\0\x05\0\x07\0\0\0\0\0"},
    {"AVIF", 40, 1, 9,
     "\0\0\0\x10"
     "ftypavif\0\0\0\0"
     "\0\0\0\x18meta"
     "ispe\0\0\0\0\0\0\0\x01\0\0\0\x09"},
};

int main(void)
{
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        image_header h = {0};
        const int before = check_failures;
        CHECK(image_header_read(&h, CASES[i].bytes, CASES[i].n));
        CHECK_INT(h.width, CASES[i].width);
        CHECK_INT(h.height, CASES[i].height);
        for (size_t n = 0; n < CASES[i].n; n++) {
            CHECK(!image_header_read(&h, CASES[i].bytes, n));
        }
        if (check_failures != before) {
            fprintf(stderr, "  (%s)\n", CASES[i].name);
        }
    }
    CHECK_DONE();
}
