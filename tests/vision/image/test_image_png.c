/* PNG of every colour type, depth, interlacing and transparency, written here with libpng from
 * known samples and compared with what those samples mean. */
#include "tests/check.h"

#include <png.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "vision/image/image.h"

enum { W = 19, H = 21 };
static const image_limits LIMITS = {.max_pixels = 1 << 20, .max_side = 4096};

typedef struct variant {
    int color_type, depth;
    bool interlaced, transparent; /* transparent: a tRNS chunk */
} variant;

/* Sample of channel c at (x, y): any value of the depth, spread over the image. */
static unsigned sample(const variant *v, size_t x, size_t y, size_t c)
{
    unsigned value = (unsigned)(x * 2579 + y * 40961 + c * 12345 + x * y * 771) & 0xffff;
    return value >> (16 - v->depth);
}

static size_t n_channels(int color_type)
{
    switch (color_type) {
    case PNG_COLOR_TYPE_RGB:
        return 3;
    case PNG_COLOR_TYPE_RGB_ALPHA:
        return 4;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
        return 2;
    default:
        return 1;
    }
}

static void palette_entry(unsigned i, uint8_t rgb[3])
{
    rgb[0] = (uint8_t)(i * 7);
    rgb[1] = (uint8_t)(255 - i);
    rgb[2] = (uint8_t)(i * 31 + 5);
}

static void write_bytes(png_structp png, png_bytep data, png_size_t n)
{
    bytes_append(png_get_io_ptr(png), data, n);
}

static void flush_bytes(png_structp png)
{
    (void)png;
}

/* The sample that a tRNS chunk of grey or RGB images makes transparent: that of pixel (3, 2). */
static void key_of(const variant *v, unsigned key[3])
{
    for (size_t c = 0; c < 3; c++) {
        key[c] = sample(v, 3, 2, c < n_channels(v->color_type) ? c : 0);
    }
}

static void write_transparency(png_structp png, png_infop info, const variant *v)
{
    uint8_t alpha[16];
    unsigned key[3];
    png_color_16 color = {0};
    key_of(v, key);
    color.gray = (png_uint_16)key[0];
    color.red = (png_uint_16)key[0];
    color.green = (png_uint_16)key[1];
    color.blue = (png_uint_16)key[2];
    int n = v->depth < 4 ? 1 << v->depth : 16;
    for (int i = 0; i < n; i++) {
        alpha[i] = (uint8_t)(i * 17); /* further palette entries stay opaque */
    }
    bool palette = v->color_type == PNG_COLOR_TYPE_PALETTE;
    png_set_tRNS(png, info, palette ? alpha : NULL, palette ? n : 0, palette ? NULL : &color);
}

static void encode(bytes *out, const variant *v)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    size_t channels = n_channels(v->color_type);
    size_t row_bytes = (W * channels * (size_t)v->depth + 7) / 8;
    uint8_t rows[H][W * 8];
    png_bytep pointers[H];
    memset(rows, 0, sizeof rows);
    for (size_t y = 0; y < H; y++) {
        pointers[y] = rows[y];
        for (size_t i = 0; i < W * channels; i++) {
            unsigned s = sample(v, i / channels, y, i % channels);
            if (v->depth == 16) {
                rows[y][2 * i] = (uint8_t)(s >> 8);
                rows[y][2 * i + 1] = (uint8_t)s;
            } else {
                size_t bit = i * (size_t)v->depth;
                rows[y][bit / 8] |= (uint8_t)(s << (8 - (size_t)v->depth - bit % 8));
            }
        }
    }
    CHECK(row_bytes <= sizeof rows[0]);
    png_set_write_fn(png, out, write_bytes, flush_bytes);
    png_set_IHDR(png, info, W, H, v->depth, v->color_type,
                 v->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (v->color_type == PNG_COLOR_TYPE_PALETTE) {
        png_color palette[256];
        for (unsigned i = 0; i < 256; i++) {
            uint8_t rgb[3];
            palette_entry(i, rgb);
            palette[i] = (png_color){rgb[0], rgb[1], rgb[2]};
        }
        png_set_PLTE(png, info, palette, 1 << v->depth);
    }
    if (v->transparent) {
        write_transparency(png, info, v);
    }
    png_set_gAMA(png, info, 1.0); /* ignored */
    png_text text = {
        .compression = PNG_TEXT_COMPRESSION_zTXt, .key = (char *)"Comment", .text = (char *)"ignored"};
    png_set_text(png, info, &text, 1);
    png_set_rows(png, info, pointers);
    png_write_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    png_destroy_write_struct(&png, &info);
}

static uint8_t over_white(unsigned c, unsigned a)
{
    return (uint8_t)floor((c * (double)a + 255.0 * (255 - a)) / 255.0 + 0.5);
}

static void expected_pixel(const variant *v, size_t x, size_t y, uint8_t rgb[3])
{
    unsigned s[4] = {0}, key[3], max = (1u << v->depth) - 1, alpha = 255;
    size_t channels = n_channels(v->color_type);
    bool is_key = v->transparent;
    key_of(v, key);
    for (size_t c = 0; c < channels; c++) {
        unsigned raw = sample(v, x, y, c);
        is_key = is_key && raw == key[c < 3 ? c : 2];
        s[c] = v->depth == 16 ? raw >> 8 : raw * 255 / max;
    }
    if (v->color_type == PNG_COLOR_TYPE_PALETTE) {
        unsigned i = sample(v, x, y, 0);
        palette_entry(i, rgb);
        alpha = v->transparent && i < 16 ? i * 17 : 255;
        for (size_t c = 0; c < 3; c++) {
            rgb[c] = over_white(rgb[c], alpha);
        }
        return;
    }
    if (channels == 2 || channels == 4) {
        alpha = s[channels - 1];
    } else if (is_key) {
        alpha = 0;
    }
    for (size_t c = 0; c < 3; c++) {
        rgb[c] = over_white(s[channels < 3 ? 0 : c], alpha);
    }
}

static void check_variant(const variant *v)
{
    bytes file;
    image img = {0};
    err_detail d = {0};
    bytes_init(&file, 1 << 20);
    encode(&file, v);
    CHECK_OK(image_decode(&img, (const uint8_t *)file.data, file.len, &LIMITS, &d), d);
    CHECK_INT(img.width, W);
    CHECK_INT(img.height, H);
    CHECK_INT(img.format, IMAGE_PNG);
    size_t n_wrong = 0;
    for (size_t i = 0; img.rgb && i < W * H; i++) {
        uint8_t want[3];
        expected_pixel(v, i % W, i / W, want);
        n_wrong += memcmp(img.rgb + 3 * i, want, 3) != 0;
    }
    if (n_wrong) {
        fprintf(stderr, "  colour type %d, depth %d, interlaced %d, tRNS %d: %zu wrong pixels\n",
                v->color_type, v->depth, v->interlaced, v->transparent, n_wrong);
    }
    CHECK_INT(n_wrong, 0);
    image_deinit(&img);

    /* Cut off anywhere, the file must be refused. */
    size_t n_accepted = 0;
    for (size_t n = 0; n < file.len; n++) {
        uint8_t *cut = malloc(n + 1); /* its own block, so that a sanitizer sees a read beyond the end */
        memcpy(cut, file.data, n);
        err_code err = image_decode(&img, cut, n, &LIMITS, &d);
        n_accepted += err == ERR_OK;
        CHECK(err != ERR_INTERNAL && err != ERR_NOMEM && img.rgb == NULL);
        free(cut);
    }
    CHECK_INT(n_accepted, 0);
    bytes_deinit(&file);
}

static void test_every_kind(void)
{
    static const struct {
        int color_type;
        int depths[5];
        bool may_have_trns;
    } KINDS[] = {
        {PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}, true}, {PNG_COLOR_TYPE_RGB, {8, 16}, true},
        {PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}, true},  {PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}, false},
        {PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}, false},
    };
    for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++) {
        for (size_t i = 0; i < 5 && KINDS[k].depths[i]; i++) {
            for (int bits = 0; bits < (KINDS[k].may_have_trns ? 4 : 2); bits++) {
                variant v = {KINDS[k].color_type, KINDS[k].depths[i], bits & 1, bits & 2};
                check_variant(&v);
            }
        }
    }
}

/* Interlaced images of one to eight pixels a side have empty passes. */
static void test_tiny_interlaced(void)
{
    for (png_uint_32 w = 1; w <= 9; w++) {
        for (png_uint_32 h = 1; h <= 9; h++) {
            png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
            png_infop info = png_create_info_struct(png);
            bytes file;
            uint8_t rows[9][9];
            png_bytep pointers[9];
            image img = {0};
            err_detail d = {0};
            bytes_init(&file, 1 << 16);
            for (size_t i = 0; i < 81; i++) {
                rows[i / 9][i % 9] = (uint8_t)(i * 3);
                pointers[i / 9] = rows[i / 9];
            }
            png_set_write_fn(png, &file, write_bytes, flush_bytes);
            png_set_IHDR(png, info, w, h, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_ADAM7, 0, 0);
            png_set_rows(png, info, pointers);
            png_write_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
            png_destroy_write_struct(&png, &info);
            CHECK_OK(image_decode(&img, (const uint8_t *)file.data, file.len, &LIMITS, &d), d);
            size_t n_wrong = 0;
            for (size_t i = 0; img.rgb && i < (size_t)w * h; i++) {
                n_wrong += img.rgb[3 * i] != rows[i / w][i % w];
            }
            CHECK_INT(n_wrong, 0);
            image_deinit(&img);
            bytes_deinit(&file);
        }
    }
}

/* Adds a chunk (its checksum is not looked at for chunks that are passed over). */
static void append_chunk(bytes *out, const char *type, const void *data, size_t n)
{
    uint8_t head[8] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    memcpy(head + 4, type, 4);
    bytes_append(out, head, 8);
    bytes_append(out, data, n);
    bytes_append(out, "\0\0\0\0", 4);
}

/* Chunks that pixels do not depend on have no effect, however large, many or broken; eXIf turns the
 * image. */
static void test_other_chunks(void)
{
    const variant v = {PNG_COLOR_TYPE_RGB, 8, false, false};
    bytes plain, file;
    image img = {0};
    err_detail d = {0};
    bytes_init(&plain, 1 << 20);
    bytes_init(&file, 8 << 20);
    encode(&plain, &v);
    static uint8_t junk[3 << 20];
    static const uint8_t EXIF[] = {'M', 'M', 0, '*', 0, 0, 0, 8, 0, 1, 1, 0x12, 0,
                                   3,   0,   0, 0,   1, 0, 6, 0, 0, 0, 0, 0,    0};
    bytes_append(&file, plain.data, 33); /* signature and IHDR */
    append_chunk(&file, "iCCP", junk, sizeof junk);
    for (int i = 0; i < 2000; i++) {
        append_chunk(&file, "zTXt", "x\0\0broken", 9);
    }
    append_chunk(&file, "acTL", junk, 8);
    append_chunk(&file, "eXIf", EXIF, sizeof EXIF);
    append_chunk(&file, "fdAT", junk, 100);
    bytes_append(&file, plain.data + 33, plain.len - 33);
    CHECK_OK(image_decode(&img, (const uint8_t *)file.data, file.len, &LIMITS, &d), d);
    CHECK_INT(img.width, H);
    CHECK_INT(img.height, W);
    size_t n_wrong = 0;
    for (size_t i = 0; img.rgb && i < W * H; i++) {
        uint8_t want[3]; /* turned right: stored column x becomes row x, counted from the right */
        expected_pixel(&v, i / H, H - 1 - i % H, want);
        n_wrong += memcmp(img.rgb + 3 * i, want, 3) != 0;
    }
    CHECK_INT(n_wrong, 0);
    image_deinit(&img);

    /* An unknown chunk that says it is needed (the first letter alone does) is refused. */
    static const char *const NEEDED[] = {"ABCD", "AbCD", "Abcd"};
    for (size_t i = 0; i < sizeof NEEDED / sizeof NEEDED[0]; i++) {
        bytes_clear(&file);
        bytes_append(&file, plain.data, 33);
        append_chunk(&file, NEEDED[i], junk, 8);
        bytes_append(&file, plain.data + 33, plain.len - 33);
        CHECK_INT(image_decode(&img, (const uint8_t *)file.data, file.len, &LIMITS, &d), ERR_CORRUPT);
    }

    /* A flipped bit in the pixels is found by the checksum. */
    bytes_clear(&file);
    bytes_append(&file, plain.data, plain.len);
    file.data[file.len - 40] ^= 1;
    CHECK_INT(image_decode(&img, (const uint8_t *)file.data, file.len, &LIMITS, &d), ERR_CORRUPT);
    CHECK_STR(d.name, "image_parse_error");
    bytes_deinit(&file);
    bytes_deinit(&plain);
}

int main(void)
{
    test_every_kind();
    test_tiny_interlaced();
    test_other_chunks();
    CHECK_DONE();
}
