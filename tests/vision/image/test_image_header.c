/* Headers of images: the smallest that say a size, and none of their beginnings; what is not a header; which way up. Every
 * file ends where a page without access begins. */
#include "vision/image/image_codec.h"

#include "base/compiler.h"
#include "tests/check.h"
#include "tests/guard.h"

enum { MOST = 96 };

/* The EXIF block of the orientation 6, in both orders of bytes. */
#define EXIF_BIG    "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"
#define EXIF_LITTLE "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"
#define PNG_HEAD                                                                                             \
    "\x89PNG\r\n\x1a\n\0\0\0\x0d"                                                                            \
    "IHDR\0\0\x01\x02\0\0\0\x03\x08\x02\0\0\0crc "
#define FRAME  "\0\x08\x08\0\x07\x01\x05\x01"
#define WEBP   "RIFF\x40\0\0\0WEBP"
#define VP8X   WEBP "VP8X\x0a\0\0\0\x08\0\0\0\x04\0\x01\x06\0\0"
#define II     "II*\0\x08\0\0\0"
#define COLUMN "\0\x01\x03\0\x01\0\0\0\x05\0\0\0"
#define ROWS   "\x01\x01\x04\0\x01\0\0\0\x07\0\x01\0"

static const struct {
    const char *name;
    size_t n; /* bytes that the header needs */
    int64_t width, height;
    int orientation; /* with the bytes behind it, `more` of them */
    size_t more;
    uint8_t bytes[MOST];
} CASES[] = {
    {"PNG", 33, 0x102, 3, 1, 0, PNG_HEAD},
    {"PNG, turned", 33, 0x102, 3, 6, 34,
     PNG_HEAD "\0\0\0\x16"
              "eXIf" EXIF_BIG "crc "},
    {"PNG, turned later", 33, 0x102, 3, 6, 47,
     PNG_HEAD "\0\0\0\x01"
              "gAMAxcrc \0\0\0\x16"
              "eXIf" EXIF_LITTLE "crc "},
    {"PNG, cut behind", 33, 0x102, 3, 1, 33,
     PNG_HEAD "\0\0\0\x16"
              "eXIf" EXIF_BIG "crc"},
    {"JPEG", 12, 0x105, 7, 1, 0, "\xff\xd8\xff\xc0" FRAME},
    {"JPEG, filled", 23, 0x105, 7, 1, 0, "\xff\xd8\xff\xff\x01\xff\xd0\xff\xd7\xff\xe0\0\x02\xff\xc2" FRAME},
    {"JPEG, turned", 44, 0x105, 7, 6, 0,
     "\xff\xd8\xff\xe1\0\x1e"
     "Exif\0\0" EXIF_BIG "\xff\xc0" FRAME},
    {"JPEG, nothing in its EXIF", 22, 0x105, 7, 1, 0,
     "\xff\xd8\xff\xe1\0\x08"
     "Exif\0\0\xff\xc0" FRAME},
    {"JPEG, the first EXIF counts", 54, 0x105, 7, 1, 0,
     "\xff\xd8\xff\xe1\0\x08"
     "Exif\0\0\xff\xe1\0\x1e"
     "Exif\0\0" EXIF_BIG "\xff\xc0" FRAME},
    {"JPEG, an EXIF shorter than its name", 21, 0x105, 7, 1, 0,
     "\xff\xd8\xff\xe1\0\x07"
     "Exif\0\xff\xc0" FRAME},
    {"JPEG, a block of another kind", 44, 0x105, 7, 1, 0,
     "\xff\xd8\xff\xe1\0\x1e"
     "Exig\0\0" EXIF_BIG "\xff\xc0" FRAME},
    {"lossy WebP", 30, 5, 7, 1, 0, WEBP "VP8 \x20\0\0\0abc\x9d\x01\x2a\x05\x40\x07\xc0"},
    {"WebP", 30, 0x105, 0x207, 1, 0, WEBP "VP8L\x20\0\0\0\x2f\x04\x81\x81\x10    "},
    {"long WebP", 30, 0x10005, 7, 1, 0, VP8X},
    {"long WebP, turned", 30, 0x10005, 7, 6, 40,
     VP8X "ALPH\x01\0\0\0x\0"
          "EXIF\x16\0\0\0" EXIF_LITTLE},
    {"long WebP, turned as JPEG", 30, 0x10005, 7, 6, 36,
     VP8X "EXIF\x1c\0\0\0"
          "Exif\0\0" EXIF_BIG},
    {"long WebP, an EXIF shorter than its name", 30, 0x10005, 7, 1, 13, VP8X "EXIF\x05\0\0\0Exif\0"},
    {"long WebP, cut behind", 30, 0x10005, 7, 1, 29, VP8X "EXIF\x16\0\0\0" EXIF_LITTLE},
    {"GIF", 13, 0x0102, 3, 1, 0, "GIF89a\x02\x01\x03\0\0\0\0"},
    {"old GIF", 13, 0x0102, 0x403, 1, 0, "GIF87a\x02\x01\x03\x04\0\0\0"},
    {"BMP", 26, 5, 7, 1, 0, "BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\x05\0\0\0\x07\0\0\0"},
    {"BMP from below", 26, 5, 7, 1, 0, "BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\x05\0\0\0\xf9\xff\xff\xff"},
    {"flat BMP", 26, 5, 1, 1, 0, "BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\x05\0\0\0\x01\0\0\0"},
    {"BMP with the longest header", 26, 5, 7, 1, 0,
     "BM\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\x05\0\0\0\x07\0\0\0"},
    {"old BMP", 26, 5, 7, 1, 0, "BM\0\0\0\0\0\0\0\0\0\0\0\0\x0c\0\0\0\x05\0\x07\0\x01\0\x18\0"},
    {"TIFF", 34, 5, 0x10007, 1, 0, II "\x02\0" COLUMN ROWS},
    {"TIFF of the other order", 34, 5, 0x10007, 1, 0,
     "MM\0*\0\0\0\x08\0\x02\x01\0\0\x03\0\0\0\x01\0\x05\0\0\x01\x01\0\x04\0\0\0\x01\0\x01\0\x07"},
    {"TIFF, turned", 46, 5, 0x10007, 6, 0, II "\x03\0" COLUMN ROWS "\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"},
    {"AVIF", 40, 1, 9, 1, 0,
     "\0\0\0\x10"
     "ftypavif\x01\0\0\0\0\0\0\x18metaispe\0\0\0\0\0\0\0\x01\0\0\0\x09"},
    {"AVIF of several, the largest of its sizes", 72, 3, 9, 1, 0,
     "\0\0\0\x10"
     "ftypavis\x01\0\0\0\0\0\0\x38meta"
     "ispe\0\0\0\0\0\0\0\x01\0\0\0\x09"
     "ispe\0\0\0\0\0\0\0\x03\0\0\0\x09"
     "ispe\0\0\0\0\0\0\0\x09\0\0\0\x02"},
    {"AVIF of two, the one with more pixels", 56, 3, 9, 1, 0,
     "\0\0\0\x10"
     "ftypavis\x01\0\0\0\0\0\0\x28meta"
     "ispe\0\0\0\0\0\0\0\x04\0\0\0\x04"
     "ispe\0\0\0\0\0\0\0\x03\0\0\0\x09"},
};

static const struct {
    const char *name;
    size_t n;
    uint8_t bytes[MOST];
} REFUSED[] = {
    {"PNG with a longer IHDR", 33, "\x89PNG\r\n\x1a\n\0\0\0\x0eIHDR\0\0\x01\x02\0\0\0\x03\x08\x02\0\0\0crc "},
    {"PNG without IHDR", 33, "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDr\0\0\x01\x02\0\0\0\x03\x08\x02\0\0\0crc "},
    {"JPEG, a short frame", 14, "\xff\xd8\xff\xc0\0\x07\x08\0\x07\x01\x05\x01  "},
    {"JPEG, no marker", 16, "\xff\xd8\xff\xe0\0\x02 \xff\xc0" FRAME},
    {"JPEG, a part of one byte", 16, "\xff\xd8\xff\xe0\0\x01\xff\xc0" FRAME},
    {"JPEG, pixels without a frame", 24, "\xff\xd8\xff\xda" FRAME "\xff\xc0" FRAME},
    {"JPEG, ended without a frame", 24, "\xff\xd8\xff\xd9" FRAME "\xff\xc0" FRAME},
    {"lossy WebP, no mark", 30, WEBP "VP8 \x20\0\0\0abc\x9d\x01\x2b\x05\x40\x07\xc0"},
    {"WebP, no mark", 30, WEBP "VP8L\x20\0\0\0\x2e\x04\x81\x81\x10    "},
    {"WebP of no kind", 30, WEBP "VP8Y\x20\0\0\0\x2f\x04\x81\x81\x10    "},
    {"RIFF of no kind", 30, "RIFF\x40\0\0\0WEBQVP8L\x20\0\0\0\x2f\x04\x81\x81\x10    "},
    {"GIF of no kind", 13, "GIF88a\x02\x01\x03\0\0\0\0"},
    {"BMP with a short header", 26, "BM\0\0\0\0\0\0\0\0\0\0\0\0\x0b\0\0\0\x05\0\x07\0\0\0\0\0"},
    {"BMP with a long header", 26, "BM\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01\0\0\x05\0\0\0\x07\0\0\0"},
    {"BM that is none", 26, "BM\0\0\0\0\0\0\x01\0\0\0\0\0\x28\0\0\0\x05\0\0\0\x07\0\0\0"},
    {"TIFF without rows", 22, II "\x01\0" COLUMN},
    {"TIFF without columns", 22, II "\x01\0" ROWS},
    {"TIFF with more entries than it has", 34, II "\x03\0" COLUMN ROWS},
    {"TIFF that points behind its end", 34, "II*\0\x21\0\0\0\x02\0" COLUMN ROWS},
    {"AVIF, a box of seven bytes", 40,
     "\0\0\0\x10"
     "ftypavif\0\0\0\0\0\0\0\x07metaispe\0\0\0\0\0\0\0\x01\0\0\0\x09"},
    {"AVIF without a size", 40,
     "\0\0\0\x10"
     "ftypavif\0\0\0\0\0\0\0\x18metaispf\0\0\0\0\0\0\0\x01\0\0\0\x09"},
    {"AVIF, a size outside", 40,
     "\0\0\0\x10"
     "ftypavif\0\0\0\0\0\0\0\x18metbispe\0\0\0\0\0\0\0\x01\0\0\0\x09"},
    {"AVIF of no kind", 40,
     "\0\0\0\x10"
     "ftypavig\0\0\0\0\0\0\0\x18metaispe\0\0\0\0\0\0\0\x01\0\0\0\x09"},
};

static bool reads(image_header *h, const uint8_t *bytes, size_t n)
{
    uint8_t *copy = guard_copy(bytes, n);
    const bool ok = image_header_read(h, copy, n);
    guard_free(copy);
    return ok;
}

static void test_sizes(void)
{
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        image_header h = {0};
        const int before = check_failures;
        for (size_t n = 0; n <= CASES[i].n + CASES[i].more; n++) {
            CHECK_INT(reads(&h, CASES[i].bytes, n), n >= CASES[i].n);
        }
        CHECK_INT(h.width, CASES[i].width);
        CHECK_INT(h.height, CASES[i].height);
        CHECK_INT(h.orientation, CASES[i].orientation);
        if (check_failures != before) {
            fprintf(stderr, "  (%s)\n", CASES[i].name);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
        image_header h = {0};
        if (reads(&h, REFUSED[i].bytes, REFUSED[i].n)) {
            check_fail(__FILE__, __LINE__, REFUSED[i].name);
        }
    }
}

/* What is no image at all is none of any format. */
static void test_unknown(void)
{
    static const char *const TEXTS[] = {
        "",       "a text", "\x89PNG\r\n\x1a\r", "\xff\xd8\xfe", "RIFF1234WEBQ",
        "GIF88a", "II+",    "....ftypavig",      "....ftypheic"};
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        image_header h;
        const size_t n = strlen(TEXTS[i]);
        CHECK_INT(image_sniff((const uint8_t *)TEXTS[i], n), IMAGE_UNKNOWN);
        CHECK(!reads(&h, (const uint8_t *)TEXTS[i], n) && h.format == IMAGE_UNKNOWN);
    }
}

/* Which markers of a JPEG have a frame's size, which none, and which a body. */
static void test_markers(void)
{
    for (int marker = 0; marker < 0xff; marker++) {
        uint8_t file[] = "\xff\xd8\xff?\0\x08\x08\0\x07\x01\x05\x01\xff\xc0\0\x08\x08\0\x02\0\x03\x01";
        const bool is_frame =
            marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
        const bool has_body = marker != 1 && !(marker >= 0xd0 && marker <= 0xd7);
        image_header h = {0};
        file[3] = (uint8_t)marker;
        const bool ok = reads(&h, file, sizeof file - 1);
        CHECK_INT(ok, is_frame || (has_body && marker != 0xd9 && marker != 0xda));
        CHECK(!ok || h.width == (is_frame ? 0x105 : 3));
        file[4] = 0xff; /* of one without a body the next follows at once */
        file[5] = 0xc0;
        memcpy(file + 6, FRAME, 8);
        CHECK_INT(reads(&h, file, 14), !has_body);
    }
}

/* The orientation is a number from 1 to 8 of two bytes; anything else is as stored, and no reason to refuse an image. */
static void test_orientations(void)
{
    static const char LITTLE[] = "\xff\xd8\xff\xe1\0\x1e"
                                 "Exif\0\0" EXIF_LITTLE "\xff\xc0" FRAME;
    static const char BIG[] = "\xff\xd8\xff\xe1\0\x1e"
                              "Exif\0\0" EXIF_BIG "\xff\xc0" FRAME;
    enum { EXIF = 12, N = sizeof BIG - 1 };
    for (int is_big = 0; is_big < 2; is_big++) {
        uint8_t file[N];
        image_header h = {0};
        for (int value = 0; value <= 0x107; value++) {
            memcpy(file, is_big ? BIG : LITTLE, N);
            file[EXIF + 18 + is_big] = (uint8_t)value;
            file[EXIF + 19 - is_big] = (uint8_t)(value >> 8);
            CHECK(reads(&h, file, N));
            CHECK_INT(h.orientation, value >= 1 && value <= 8 ? value : 1);
        }
        for (size_t i = 0; i < 14; i++) { /* of the rest of the block every bit counts, but not the count's */
            for (int bit = 0; bit < 8; bit++) {
                memcpy(file, is_big ? BIG : LITTLE, N);
                file[EXIF + i] ^= (uint8_t)(1 << bit);
                CHECK(reads(&h, file, N));
                const bool is_count = i == 8 || i == 9; /* more entries than there are */
                CHECK_INT(h.orientation, is_count && !(bit == 0 && i == 8 + (size_t)is_big) ? 6 : 1);
            }
        }
    }
}

/* Which sizes are read: both sides of each limit, either way up; and what an image takes. */
static void test_limits(void)
{
    static const struct {
        int32_t width, height;
        const char *refused;
    } cases[] = {{1000, 200, NULL},
                 {1000, 201, "; that is more than this server allows"},
                 {1001, 100, "; one side is longer than this server allows"},
                 {100, 1001, "; one side is longer than this server allows"},
                 {1, 1, NULL},
                 {200, 1, NULL},
                 {1, 200, NULL},
                 {201, 1, "; one side may be at most 200 times the other"},
                 {1, 201, "; one side may be at most 200 times the other"},
                 {1000, 5, NULL},
                 {5, 1000, NULL},
                 {1000, 4, "; one side may be at most 200 times the other"},
                 {4, 1000, "; one side may be at most 200 times the other"}};
    const image_limits limits = {.max_pixels = 200000, .max_side = 1000};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const int32_t w = cases[i].width, h = cases[i].height;
        uint8_t file[26] = "BM\0\0\0\0\0\0\0\0\0\0\0\0\x28";
        char want[128];
        image_plan plan;
        image img;
        err_detail d = {0};
        for (int k = 0; k < 2; k++) {
            file[18 + k] = (uint8_t)(w >> 8 * k);
            file[22 + k] = (uint8_t)(h >> 8 * k);
        }
        CHECK_INT(image_measure(&plan, file, sizeof file, &limits, &d),
                  cases[i].refused ? ERR_LIMIT : ERR_OK);
        CHECK_INT(plan.width, cases[i].refused ? 0 : w);
        CHECK_INT(plan.height, cases[i].refused ? 0 : h);
        CHECK_INT(plan.bytes,
                  cases[i].refused ? 0 : 16 * (size_t)w * (size_t)h + 3 * sizeof file + ((size_t)8 << 20));
        CHECK(!plan.is_turned);
        snprintf(want, sizeof want, "the image is %d x %d pixels%s", w, h,
                 cases[i].refused ? cases[i].refused : "");
        CHECK_STR(d.text, cases[i].refused ? want : "");
        /* what may be read is not there */
        CHECK_INT(image_decode(&img, file, sizeof file, &limits, &d),
                  cases[i].refused ? ERR_LIMIT : ERR_CORRUPT);
        CHECK(!img.rgb);
    }
    static const uint8_t png[] = PNG_HEAD;
    image_plan plan;
    err_detail d = {0};
    CHECK_OK(image_measure(&plan, png, sizeof png - 1, &limits, &d), d);
    CHECK(plan.width == 0x102 && plan.height == 3);
    CHECK_INT(plan.bytes, (3 * 3 + 16) * 0x102 + (1 << 20));
    for (int i = 0; i < 2; i++) { /* without a side */
        const uint8_t none[26] = {'B', 'M', [14] = 0x28, [18] = i, [22] = !i};
        CHECK_INT(image_measure(&plan, none, sizeof none, &limits, &d), ERR_CORRUPT);
        CHECK_STR(d.name, "image_parse_error");
    }
    CHECK_INT(image_measure(&plan, png, 0, &limits, &d), ERR_UNSUPPORTED);
    CHECK_STR(d.text, "the image is empty");
}

int main(void)
{
    test_limits();
    test_sizes();
    test_unknown();
    test_markers();
    test_orientations();
    CHECK_DONE();
}
