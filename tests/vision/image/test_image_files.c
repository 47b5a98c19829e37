/* The images of tests/data/images against what another decoder shows (NAME.ppm, see
 * make_images.sh); each file cut at every length and with every byte changed; sizes over the
 * limits; things that are no images. */
#include "tests/check.h"
#include "tests/guard.h"

#include <stdbool.h>
#include <sys/resource.h>

#include <libavcodec/avcodec.h>

#include "base/clock.h"
#include "base/file.h"
#include "vision/image/image.h"
#include "vision/image/image_codec.h"

static const image_limits LIMITS = {.max_pixels = 64 << 20, .max_side = 16384};

typedef struct sample {
    const char *name;
    image_format format;
    int tolerance;
    bool may_be_cut; /* some shorter files show the same image: a second frame or metadata is missing */
} sample;

static const sample SAMPLES[] = {
    {"lossy.webp", IMAGE_WEBP, 0, false},   {"lossless.webp", IMAGE_WEBP, 0, false},
    {"alpha.webp", IMAGE_WEBP, 0, false},   {"alpha_lossless.webp", IMAGE_WEBP, 0, false},
    {"exif6.webp", IMAGE_WEBP, 0, false},   {"animated.webp", IMAGE_WEBP, 0, false},
    {"plain.gif", IMAGE_GIF, 0, true},      {"transparent.gif", IMAGE_GIF, 0, true},
    {"animated.gif", IMAGE_GIF, 0, true},   {"rgb.bmp", IMAGE_BMP, 0, false},
    {"palette.bmp", IMAGE_BMP, 0, false},   {"grey.bmp", IMAGE_BMP, 0, false},
    {"bilevel.bmp", IMAGE_BMP, 0, false},   {"raw.tif", IMAGE_TIFF, 0, true},
    {"lzw.tif", IMAGE_TIFF, 0, true},       {"deflate.tif", IMAGE_TIFF, 0, true},
    {"packbits.tif", IMAGE_TIFF, 0, true},  {"grey.tif", IMAGE_TIFF, 0, true},
    {"alpha.tif", IMAGE_TIFF, 0, true},     {"fax.tif", IMAGE_TIFF, 0, true},
    {"exif6.tif", IMAGE_TIFF, 0, true},     {"photo420.jpg", IMAGE_JPEG, 1, false},
    {"photo444.jpg", IMAGE_JPEG, 1, false}, {"progressive.jpg", IMAGE_JPEG, 1, false},
    {"cmyk.jpg", IMAGE_JPEG, 1, false},     {"exif6.jpg", IMAGE_JPEG, 1, false},
    {"ffmpeg.jpg", IMAGE_JPEG, 4, false},   {"still.avif", IMAGE_AVIF, 1, false},
};

static void open_sample(file_map *m, const char *name, const char *suffix)
{
    char relative[256];
    err_detail d = {0};
    snprintf(relative, sizeof relative, "images/%s%s", name, suffix);
    CHECK_OK(file_map_open(m, check_data(relative), &d), d);
}

/* Compares with a binary PPM of the same size; returns the largest difference, 256 if the sizes
 * differ. */
static int compare_ppm(const image *img, const char *name)
{
    file_map m = {0};
    int w = 0, h = 0, begin = 0, worst = 256;
    open_sample(&m, name, ".ppm");
    char head[64] = {0};
    memcpy(head, m.data, m.bytes < 63 ? m.bytes : 63);
    CHECK_INT(sscanf(head, "P6 %d %d 255%n", &w, &h, &begin), 2);
    size_t n = (size_t)w * (size_t)h * 3;
    if (w == img->width && h == img->height && m.bytes == (size_t)begin + 1 + n) {
        worst = 0;
        for (size_t i = 0; i < n; i++) {
            int diff = abs(img->rgb[i] - m.data[(size_t)begin + 1 + i]);
            worst = diff > worst ? diff : worst;
        }
    }
    file_map_close(&m);
    return worst;
}

static bool same_image(const image *a, const image *b)
{
    return a->width == b->width && a->height == b->height &&
           memcmp(a->rgb, b->rgb, (size_t)a->width * (size_t)a->height * 3) == 0;
}

/* Never a crash, never half an image. */
static void check_cut(const sample *s, const file_map *m, const image *whole)
{
    size_t n_accepted = 0, n_different = 0;
    for (size_t n = 0; n < m->bytes; n++) {
        uint8_t *cut = malloc(n + 1); /* its own block, so that a sanitizer sees a read beyond the end */
        image img = {0};
        err_detail d = {0};
        memcpy(cut, m->data, n);
        if (!image_decode(&img, cut, n, &LIMITS, &d)) {
            n_accepted++;
            n_different += !same_image(&img, whole);
            image_deinit(&img);
        } else {
            CHECK(img.rgb == NULL && d.text[0] && d.name[0]);
        }
        free(cut);
    }
    if (n_different || (n_accepted && !s->may_be_cut)) {
        fprintf(stderr, "  %s: %zu shorter files accepted, %zu of them show another image\n", s->name,
                n_accepted, n_different);
    }
    CHECK_INT(n_different, 0);
    CHECK(n_accepted == 0 || s->may_be_cut);
}

/* Any answer is right but a crash, a hang or an image over the limits. */
static void check_changed(const file_map *m)
{
    static const image_limits small = {.max_pixels = 1 << 16, .max_side = 1024};
    enum { DENSE_BYTES = 400, STRIDE = 23 }; /* headers byte by byte, pixels here and there */
    static const uint8_t MASKS[] = {0xff, 0x01, 0x80};
    uint8_t *copy = malloc(m->bytes);
    memcpy(copy, m->data, m->bytes);
    for (size_t i = 0; i < m->bytes; i += i < DENSE_BYTES ? 1 : STRIDE) {
        for (size_t k = 0; k < sizeof MASKS; k++) {
            image img = {0};
            err_detail d = {0};
            copy[i] ^= MASKS[k];
            if (!image_decode(&img, copy, m->bytes, &small, &d)) {
                CHECK((size_t)img.width * (size_t)img.height <= small.max_pixels);
                image_deinit(&img);
            }
            copy[i] ^= MASKS[k];
        }
    }
    free(copy);
}

static void test_samples(void)
{
    for (size_t i = 0; i < sizeof SAMPLES / sizeof SAMPLES[0]; i++) {
        const sample *s = &SAMPLES[i];
        file_map m = {0};
        image img = {0};
        err_detail d = {0};
        image_plan plan;
        open_sample(&m, s->name, "");
        CHECK_INT(image_sniff(m.data, m.bytes), s->format);
        CHECK_OK(image_measure(&plan, m.data, m.bytes, &LIMITS, &d), d);
        CHECK_OK(image_decode(&img, m.data, m.bytes, &LIMITS, &d), d);
        CHECK_INT(plan.width, img.width);
        CHECK_INT(plan.height, img.height);
        if (img.rgb) {
            int worst = compare_ppm(&img, s->name);
            printf("%s: %d x %d, worst difference %d\n", s->name, img.width, img.height, worst);
            CHECK(worst <= s->tolerance);
            check_cut(s, &m, &img);
            check_changed(&m);
        }
        image_deinit(&img);
        file_map_close(&m);
    }
}

static void check_refused(const void *data, size_t n, err_code expected, const char *name)
{
    image img = {0};
    err_detail d = {0};
    uint8_t *copy = guard_copy(data, n);
    CHECK_INT(image_decode(&img, copy, n, &LIMITS, &d), expected);
    CHECK_STR(d.name, name);
    CHECK(img.rgb == NULL);
    CHECK(strstr(d.text, "0x") == NULL && strstr(d.text, "lib") == NULL);
    guard_free(copy);
}

static void test_not_images(void)
{
    static const char *const TEXTS[] = {"",
                                        "P",
                                        "hello, world: a text file called cat.png\n",
                                        "#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n",
                                        "<svg xmlns='http://www.w3.org/2000/svg'/>",
                                        "ffconcat version 1.0\nfile x.png\n",
                                        "BMX is a kind of bicycle, and no bitmap",
                                        "RIFF....WAVEfmt ",
                                        "GIF88a......................"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        check_refused(TEXTS[i], strlen(TEXTS[i]), ERR_UNSUPPORTED, "unsupported_image_media_type");
    }
    check_refused("\x89PNG\r\n\x1a\n", 8, ERR_CORRUPT, "image_parse_error");
    check_refused("\xff\xd8\xff", 3, ERR_CORRUPT, "image_parse_error");
    check_refused("II*\0", 4, ERR_CORRUPT, "image_parse_error");
    check_refused("\0\0\0\x18"
                  "ftypheic\0\0\0\0",
                  16, ERR_UNSUPPORTED, "unsupported_image_media_type");
}

static void put_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

/* A PNG header and a few bytes of pixels. The checksum of IHDR is wrong, which nobody should come
 * to see. */
static size_t png_bomb(uint8_t out[64], uint32_t w, uint32_t h)
{
    memcpy(out, "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", 16);
    put_u32(out + 16, w);
    put_u32(out + 20, h);
    memcpy(out + 24, "\x08\x02\0\0\0....\0\0\0\x04IDATxxxxyyyy", 25);
    return 49;
}

static long peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static void test_bombs(void)
{
    static const uint32_t SIZES[][2] = {{40000, 40000},           {16385, 1},      {1, 16385}, {10000, 7000},
                                        {0x7fffffff, 0x7fffffff}, {0xffffffff, 2}, {201, 1},   {3, 601}};
    uint8_t file[64];
    long before = peak_kib();
    double begin = clock_ms();
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        size_t n = png_bomb(file, SIZES[i][0], SIZES[i][1]);
        check_refused(file, n, ERR_LIMIT, "image_too_large");
    }
    check_refused(file, png_bomb(file, 0, 5), ERR_CORRUPT, "image_parse_error");
    /* Inside the limits, but nothing behind the header. */
    check_refused(file, png_bomb(file, 8192, 8192), ERR_CORRUPT, "image_parse_error");
    static const uint8_t JPEG_BOMB[] = {0xff, 0xd8, 0xff, 0xc2, 0,    17, 8, 0xff, 0xff, 0xff, 0xff, 3,
                                        1,    0x11, 0,    2,    0x11, 0,  3, 0x11, 0,    0xff, 0xd9};
    check_refused(JPEG_BOMB, sizeof JPEG_BOMB, ERR_LIMIT, "image_too_large");
    static const uint8_t GIF_BOMB[] = {'G', 'I', 'F', '8', '9', 'a', 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x3b};
    check_refused(GIF_BOMB, sizeof GIF_BOMB, ERR_LIMIT, "image_too_large");
    printf("bombs: %.1f ms, peak memory +%ld KiB\n", clock_ms() - begin, peak_kib() - before);
    CHECK(peak_kib() - before < 8 << 10);
}

/* The colors of a GIF may stand in front of its image alone. */
static void test_gif_own_colors(void)
{
    enum { HEAD = 13, COLORS = 3 * 256, DESCRIPTOR = 10, HAS_COLORS = 0x80 };
    file_map m = {0};
    image img = {0}, same = {0};
    err_detail d = {0};
    open_sample(&m, "plain.gif", "");
    const uint8_t *image_at = m.data + HEAD + COLORS;
    CHECK(m.data[10] == (HAS_COLORS | 7) && image_at[0] == 0x2c);
    uint8_t *file = malloc(m.bytes), *to = file + HEAD;
    memcpy(file, m.data, HEAD);
    file[10] = 7;
    memcpy(to, image_at, DESCRIPTOR);
    to[9] |= HAS_COLORS | 7;
    memcpy(to + DESCRIPTOR, m.data + HEAD, COLORS);
    memcpy(to + DESCRIPTOR + COLORS, image_at + DESCRIPTOR, m.bytes - HEAD - COLORS - DESCRIPTOR);
    CHECK_OK(image_decode(&img, m.data, m.bytes, &LIMITS, &d), d);
    CHECK_OK(image_decode(&same, file, m.bytes, &LIMITS, &d), d);
    CHECK(img.rgb && same.rgb && img.width == same.width && img.height == same.height &&
          memcmp(img.rgb, same.rgb, (size_t)img.width * (size_t)img.height * 3) == 0);
    check_refused(file, HEAD + DESCRIPTOR + COLORS + 20, ERR_CORRUPT, "image_parse_error");
    image_deinit(&img);
    image_deinit(&same);
    free(file);
    file_map_close(&m);
}

/* A block of no kind in front of the image of a GIF; one that is known is passed over. */
static void test_gif_blocks(void)
{
    static const struct {
        uint8_t block[3];
        bool known;
    } BLOCKS[] = {{{0x21, 0xfe, 0}, true}, {{0x77, 0, 0}, false}, {{0, 0, 0}, false}};
    file_map m = {0};
    image img = {0};
    err_detail d = {0};
    open_sample(&m, "plain.gif", "");
    const size_t at = 13 + 3 * 256; /* behind its colors */
    uint8_t *file = malloc(m.bytes + 3);
    memcpy(file, m.data, at);
    memcpy(file + at + 3, m.data + at, m.bytes - at);
    for (size_t i = 0; i < sizeof BLOCKS / sizeof BLOCKS[0]; i++) {
        memcpy(file + at, BLOCKS[i].block, 3);
        if (BLOCKS[i].known) {
            CHECK_OK(image_decode(&img, file, m.bytes + 3, &LIMITS, &d), d);
            image_deinit(&img);
        } else {
            check_refused(file, m.bytes + 3, ERR_CORRUPT, "image_parse_error");
        }
    }
    free(file);
    file_map_close(&m);
    /* Nothing behind the head, colors that are not there, the end at once, and blocks without an image behind them. */
    static const char HEAD[] = "GIF89a\1\0\1\0\0\0";
    static const struct {
        const char *bytes;
        size_t n;
    } ENDS[] = {{"\0", 1},
                {"\0;", 2},
                {"\x80", 1},
                {"\0!", 2},
                {"\0!\xfe", 3},
                {"\0!\xfe\0", 4},
                {"\0!\xfe\3abc\0", 8},
                {"\0!\xfe\3abc", 7},
                {"\0!\xfe\0;", 5},
                {"\0,", 2},
                {"\0,\0\0\0\0\1\0\1\0\0\2", 12}};
    for (size_t i = 0; i < sizeof ENDS / sizeof ENDS[0]; i++) {
        uint8_t cut[64];
        memcpy(cut, HEAD, 12);
        memcpy(cut + 12, ENDS[i].bytes, ENDS[i].n);
        check_refused(cut, 12 + ENDS[i].n, ERR_CORRUPT, "image_parse_error");
    }
}

/* A frame of an animated WebP that is too short for a head, and an image in it. */
static void test_webp_frame(void)
{
    static const char HEAD[] = "RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\2\0\0\0\0\0\0\0\0\0ANMF";
    for (uint8_t n = 0; n < 26; n += 2) {
        uint8_t file[64] = {0};
        memcpy(file, HEAD, sizeof HEAD - 1);
        file[4] = (uint8_t)(sizeof HEAD - 1 + 4 + n - 8);
        file[sizeof HEAD - 1] = n;
        check_refused(file, sizeof HEAD - 1 + 4 + n, ERR_CORRUPT, "image_parse_error");
    }
}

/* A file is one packet of the library, which has no room for 4 GB: that is said, and no part of it is taken for the whole. */
static void test_huge_file(void)
{
    const size_t n = ((size_t)1 << 32) + 4096;
    uint8_t *file = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    image img = {0};
    err_detail d = {0};
    CHECK(file != MAP_FAILED);
    memcpy(file, "BM\x3a", 3);
    file[10] = 54;
    file[14] = 40;
    file[18] = file[22] = file[26] = 1;
    file[28] = 24;
    CHECK_OK(image_decode(&img, file, 4096, &LIMITS, &d), d);
    image_deinit(&img);
    CHECK_INT(image_decode(&img, file, n, &LIMITS, &d), ERR_NOMEM);
    munmap(file, n);
}

/* The decoder finds another size than the header said. */
static void test_other_size(void)
{
    file_map m = {0};
    image_header h = {0};
    image img = {0};
    err_detail d = {0};
    open_sample(&m, "photo444.jpg", "");
    CHECK(image_header_read(&h, m.data, m.bytes));
    for (int i = 0; i < 5; i++) {
        image_header other = h;
        other.width += i == 1 ? 1 : i == 2 ? -1 : 0;
        other.height += i == 3 ? 1 : i == 4 ? -1 : 0;
        CHECK_INT(image_jpeg_decode(&img, &other, m.data, m.bytes, &d), i ? ERR_CORRUPT : ERR_OK);
        image_deinit(&img);
    }
    file_map_close(&m);
}

/* Each way a stored image of 3 x 2 pixels may have to be turned: where each of its pixels goes, in pieces, too. */
static void test_corners(void)
{
    static const char *const SHOWN[] = {"abcdef", "abcdef", "cbafed", "fedcba", "defabc",
                                        "adbecf", "daebfc", "fcebda", "cfbead"};
    static const uint8_t STORED[] = "aaabbbcccdddeeefff";
    for (int i = 0; i < 9; i++) {
        const image_header h = {IMAGE_BMP, 3, 2, i};
        for (int alone = 0; alone < 2; alone++) {
            image_sink sink;
            image img = {0};
            err_detail d = {0};
            char shown[7] = "";
            CHECK_OK(image_sink_init(&sink, &img, &h, &d), d);
            CHECK(img.width == (i < 5 ? 3 : 2) && img.height == (i < 5 ? 2 : 3) && img.format == IMAGE_BMP);
            for (size_t y = 0; y < 2; y++) {
                image_sink_put(&sink, y, 0, 1, alone ? 1 : 3, STORED + 9 * y, 3);
                if (alone) {
                    image_sink_put(&sink, y, 1, 1, 2, STORED + 9 * y + 3, 3);
                }
            }
            for (int k = 0; k < 6 && img.rgb; k++) {
                shown[k] = (char)img.rgb[3 * k + 1];
                CHECK(img.rgb[3 * k] == img.rgb[3 * k + 1] && img.rgb[3 * k] == img.rgb[3 * k + 2]);
            }
            CHECK_STR(shown, SHOWN[i]);
            image_deinit(&img);
        }
    }
    /* Sizes whose product is more than any number, and would be a small one. */
    static const int64_t SIZES[][2] = {{(int64_t)1 << 32, (int64_t)1 << 32}, {0x5555555555555556, 1}};
    for (int i = 0; i < 2; i++) {
        const image_header h = {IMAGE_BMP, SIZES[i][0], SIZES[i][1], 1};
        image_sink sink;
        image img = {0};
        CHECK_INT(image_sink_init(&sink, &img, &h, NULL), ERR_NOMEM);
        image_deinit(&img);
    }
}

/* What no AV1 image is in, though its brand says so: sound and pictures of another kind are all let go again. */
static void test_avif_of_others(void)
{
    file_map m = {0};
    image img = {0};
    err_detail d = {0};
    CHECK_OK(file_map_open(&m, check_data("videos/h264_sound.mp4"), &d), d);
    const image_header h = {.format = IMAGE_AVIF, .width = 64, .height = 64, .orientation = 1};
    CHECK_INT(image_av_decode(&img, &h, m.data, m.bytes, &d), ERR_CORRUPT);
    CHECK(!img.rgb);
    file_map_close(&m);
}

/* Neither what its image is read from nor how it is coded has room, or both. */
static bool no_packet, no_parameters;

AVPacket *__real_av_packet_alloc(void);
AVPacket *__wrap_av_packet_alloc(void);
AVPacket *__wrap_av_packet_alloc(void)
{
    return no_packet ? NULL : __real_av_packet_alloc();
}

AVCodecParameters *__real_avcodec_parameters_alloc(void);
AVCodecParameters *__wrap_avcodec_parameters_alloc(void);
AVCodecParameters *__wrap_avcodec_parameters_alloc(void)
{
    return no_parameters ? NULL : __real_avcodec_parameters_alloc();
}

static void test_no_room(void)
{
    static const char *const names[] = {"still.avif", "lossy.webp", "animated.webp", "plain.gif"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        file_map m = {0};
        open_sample(&m, names[i], "");
        for (int lacks = i == 0 ? 3 : 1; lacks > 0; lacks--) {
            image img = {0};
            err_detail d = {0};
            no_packet = (lacks & 1) != 0;
            no_parameters = (lacks & 2) != 0;
            CHECK_INT(image_decode(&img, m.data, m.bytes, &LIMITS, &d), ERR_NOMEM);
            CHECK(!img.rgb && d.text[0]);
        }
        no_packet = no_parameters = false;
        file_map_close(&m);
    }
}

/* A chunk that nobody knows in a WebP: behind the first one, which says what the file has, or at the end, where an odd one
 * is not filled up. */
static void check_webp_chunk(const char *name, size_t first)
{
    static const size_t sizes[] = {0, 1, 2, 999, 1000, 5000, 5001};
    file_map m = {0};
    image plain = {0};
    err_detail d = {0};
    open_sample(&m, name, "");
    CHECK_OK(image_decode(&plain, m.data, m.bytes, &LIMITS, &d), d);
    for (size_t i = 0; i < 2 * (sizeof sizes / sizeof sizes[0]); i++) {
        const bool is_last = i % 2 || !first;
        const size_t n = sizes[i / 2], more = 8 + n + (n & 1 && !is_last), at = is_last ? m.bytes : first;
        image img = {0};
        uint8_t *file = calloc(m.bytes + more, 1);
        memcpy(file, m.data, at);
        memcpy(file + at, "NONE", 4);
        file[at + 4] = (uint8_t)n;
        file[at + 5] = (uint8_t)(n >> 8);
        memcpy(file + at + more, m.data + at, m.bytes - at);
        const size_t all = m.bytes + more - 8;
        file[4] = (uint8_t)all;
        file[5] = (uint8_t)(all >> 8);
        file[6] = (uint8_t)(all >> 16);
        CHECK_OK(image_decode(&img, file, m.bytes + more, &LIMITS, &d), d);
        CHECK(img.rgb && same_image(&img, &plain));
        image_deinit(&img);
        free(file);
    }
    image_deinit(&plain);
    file_map_close(&m);
}

/* Metadata that is damaged turns nothing: an image is shown as it is stored. */
static void test_damaged_metadata(void)
{
    file_map m = {0};
    image_plan plan;
    err_detail d = {0};
    open_sample(&m, "exif6.jpg", "");
    CHECK_OK(image_measure(&plan, m.data, m.bytes, &LIMITS, &d), d);
    CHECK(plan.is_turned);
    const int32_t width = plan.height, height = plan.width;
    uint8_t *copy = malloc(m.bytes);
    size_t at = 0;
    while (at + 10 < m.bytes && memcmp(m.data + at, "Exif\0\0", 6) != 0) {
        at++;
    }
    at += 6;
    for (size_t i = 0; i < 4; i++) { /* MM or II, and the 42 behind it */
        memcpy(copy, m.data, m.bytes);
        copy[at + i] ^= 0x55;
        CHECK_OK(image_measure(&plan, copy, m.bytes, &LIMITS, &d), d);
        CHECK(!plan.is_turned && plan.width == width && plan.height == height);
    }
    free(copy);
    file_map_close(&m);
}

/* Bitmaps without a row, of both heads and of each depth: whole up to the last byte of the last row, and damaged without it. Of
 * those with run lengths nobody counts the bytes. */
static void test_bitmaps(void)
{
    static const uint16_t BITS[] = {8, 24, 32};
    for (int oldest = 0; oldest < 2; oldest++) {
        for (size_t i = 0; i < 3; i++) {
            for (uint8_t width = 1; width <= 5; width++) {
                uint8_t file[1200] = "BM";
                const size_t colors = BITS[i] == 8 ? (oldest ? 3 : 4) * 256 : 0, head = oldest ? 12 : 40;
                const size_t pixels = 14 + head + colors, row = ((size_t)width * BITS[i] + 31) / 32 * 4,
                             n = pixels + 3 * row;
                put_u32(file + 2, (uint32_t)__builtin_bswap32((uint32_t)n));
                put_u32(file + 10, __builtin_bswap32((uint32_t)pixels));
                file[14] = (uint8_t)head;
                file[18] = width;
                file[oldest ? 20 : 22] = 3;
                file[oldest ? 22 : 26] = 1;
                file[oldest ? 24 : 28] = (uint8_t)BITS[i];
                for (size_t lacks = 0; lacks < 3; lacks++) {
                    image img = {0};
                    err_detail d = {0};
                    uint8_t *copy = guard_copy(file, n - lacks);
                    const bool is_known = !oldest || BITS[i] != 32; /* the older head has no alpha */
                    const err_code err = image_decode(&img, copy, n - lacks, &LIMITS, &d);
                    CHECK_INT(err, lacks ? ERR_CORRUPT : is_known ? ERR_OK : err);
                    CHECK(err || (img.width == width && img.height == 3));
                    image_deinit(&img);
                    guard_free(copy);
                }
            }
        }
    }
}

/* Of run lengths, of a byte or a half of one for a pixel: three rows of 30 pixels, the lowest first, each with another color. It
 * is shorter than its rows. */
static void test_run_lengths(void)
{
    static const uint8_t DATA[][12] = {{30, 1, 0, 0, 30, 2, 0, 0, 30, 3, 0, 1},
                                       {30, 0x11, 0, 0, 30, 0x22, 0, 0, 30, 0x33, 0, 1}};
    for (uint8_t method = 1; method <= 2; method++) {
        uint8_t file[14 + 40 + 4 * 256 + sizeof DATA[0]] = "BM";
        const size_t pixels = 54 + 4 * (method == 1 ? 256 : 16), n = pixels + sizeof DATA[0];
        image img = {0};
        err_detail d = {0};
        put_u32(file + 2, __builtin_bswap32((uint32_t)n));
        put_u32(file + 10, __builtin_bswap32((uint32_t)pixels));
        file[14] = 40;
        file[18] = 30;
        file[22] = 3;
        file[26] = 1;
        file[28] = method == 1 ? 8 : 4;
        file[30] = method;
        for (int i = 1; i < 4; i++) {
            file[54 + 4 * i] = (uint8_t)(10 * i); /* blue */
        }
        memcpy(file + pixels, DATA[method - 1], sizeof DATA[0]);
        CHECK_OK(image_decode(&img, file, n, &LIMITS, &d), d);
        for (int i = 0; i < 90 && img.rgb; i++) {
            CHECK_INT(img.rgb[3 * i + 2], 10 * (3 - i / 30));
        }
        image_deinit(&img);
    }
}

int main(void)
{
    test_bombs(); /* first: it looks at the peak memory of the process */
    test_not_images();
    test_samples();
    test_damaged_metadata();
    test_avif_of_others();
    check_webp_chunk("animated.webp", 30);
    check_webp_chunk("lossy.webp", 0);
    test_no_room();
    test_gif_own_colors();
    test_gif_blocks();
    test_webp_frame();
    test_huge_file();
    test_other_size();
    test_corners();
    test_bitmaps();
    test_run_lengths();
    CHECK_DONE();
}
