/* JPEG of every kind, written here with libjpeg from a smooth image and compared with it: grey,
 * RGB, YCbCr with three subsamplings, CMYK and YCCK, progressive, arithmetic, restarts; EXIF 1-8;
 * cut anywhere; too many scans. */
#include "tests/check.h"

#include <stdbool.h>
#include <jpeglib.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "vision/image/image.h"

enum { W = 61, H = 43 };
static const image_limits LIMITS = {.max_pixels = 1 << 20, .max_side = 4096};

typedef struct kind {
    const char *name;
    int n_components; /* 1, 3, 4 */
    J_COLOR_SPACE stored;
    int h_samp, v_samp;
    bool progressive, arithmetic, separate_scans;
    int restart_rows;
    int orientation; /* 0: no EXIF */
    int tolerance;
} kind;

/* The image: slow gradients, so that JPEG keeps it within a few levels. */
static void pixel(size_t x, size_t y, uint8_t rgb[3])
{
    rgb[0] = (uint8_t)(40 + x * 3);
    rgb[1] = (uint8_t)(30 + y * 4);
    rgb[2] = (uint8_t)(220 - x - y);
}

static uint8_t grey(size_t x, size_t y)
{
    return (uint8_t)(20 + x * 2 + y * 2);
}

/* Inverted CMYK, as Adobe stores it: full ink is 0. K takes a third of the darkness. */
static void cmyk(size_t x, size_t y, uint8_t out[4])
{
    uint8_t rgb[3];
    pixel(x, y, rgb);
    const unsigned k = 240;
    for (int c = 0; c < 3; c++) {
        out[c] = (uint8_t)(rgb[c] * 255u / k > 255 ? 255 : rgb[c] * 255u / k);
    }
    out[3] = k;
}

static void exif_marker(j_compress_ptr cinfo, int orientation)
{
    uint8_t marker[] = {'E',  'x', 'i', 'f', 0, 0, 'I', 'I',  '*',
                        0,    8,   0,   0,   0, 2, 0,   0x0f, 1,
                        2,    0,   1,   0,   0, 0, 'x', 0,    0,
                        0, /* Make */
                        0x12, 1,   3,   0,   1, 0, 0,   0,    (uint8_t)orientation,
                        0,    0,   0, /* Orientation */
                        0,    0,   0,   0};
    jpeg_write_marker(cinfo, JPEG_APP0 + 1, marker, sizeof marker);
}

static void encode(bytes *out, const kind *k)
{
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long n = 0;
    jpeg_scan_info scans[4];
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_compress(&cinfo);
    jpeg_mem_dest(&cinfo, &data, &n);
    cinfo.image_width = W;
    cinfo.image_height = H;
    cinfo.input_components = k->n_components;
    cinfo.in_color_space = k->n_components == 1 ? JCS_GRAYSCALE : k->n_components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&cinfo);
    jpeg_set_colorspace(&cinfo, k->stored);
    jpeg_set_quality(&cinfo, 98, TRUE);
    cinfo.comp_info[0].h_samp_factor = k->h_samp;
    cinfo.comp_info[0].v_samp_factor = k->v_samp;
    cinfo.arith_code = k->arithmetic;
    cinfo.restart_in_rows = k->restart_rows;
    if (k->progressive) {
        jpeg_simple_progression(&cinfo);
    }
    if (k->separate_scans) {
        for (int i = 0; i < k->n_components; i++) {
            scans[i] = (jpeg_scan_info){.comps_in_scan = 1, .component_index = {i}, .Se = 63};
        }
        cinfo.scan_info = scans;
        cinfo.num_scans = k->n_components;
    }
    jpeg_start_compress(&cinfo, TRUE);
    if (k->orientation) {
        exif_marker(&cinfo, k->orientation);
    }
    for (size_t y = 0; y < H; y++) {
        uint8_t row[W * 4];
        JSAMPROW rows[1] = {row};
        for (size_t x = 0; x < W; x++) {
            switch (k->n_components) {
            case 1:
                row[x] = grey(x, y);
                break;
            case 3:
                pixel(x, y, row + 3 * x);
                break;
            default:
                cmyk(x, y, row + 4 * x);
                break;
            }
        }
        (void)jpeg_write_scanlines(&cinfo, rows, 1);
    }
    jpeg_finish_compress(&cinfo);
    jpeg_destroy_compress(&cinfo);
    bytes_append(out, data, n);
    free(data);
}

static const kind KINDS[] = {
    {"grey", 1, JCS_GRAYSCALE, 1, 1, false, false, false, 0, 0, 2},
    {"rgb", 3, JCS_RGB, 1, 1, false, false, false, 0, 0, 3},
    {"4:4:4", 3, JCS_YCbCr, 1, 1, false, false, false, 0, 0, 4},
    {"4:2:2", 3, JCS_YCbCr, 2, 1, false, false, false, 0, 0, 6},
    {"4:2:0", 3, JCS_YCbCr, 2, 2, false, false, false, 0, 0, 6},
    {"progressive", 3, JCS_YCbCr, 2, 2, true, false, false, 0, 0, 6},
    {"arithmetic", 3, JCS_YCbCr, 2, 2, false, true, false, 0, 0, 6},
    {"arithmetic progressive", 3, JCS_YCbCr, 1, 1, true, true, false, 0, 0, 4},
    {"separate scans", 3, JCS_YCbCr, 2, 2, false, false, true, 0, 0, 6},
    {"restarts", 3, JCS_YCbCr, 2, 2, false, false, false, 1, 0, 6},
    {"cmyk", 4, JCS_CMYK, 1, 1, false, false, false, 0, 0, 4},
    {"ycck", 4, JCS_YCCK, 1, 1, false, false, false, 0, 0, 5},
    {"ycck progressive", 4, JCS_YCCK, 2, 2, true, false, false, 0, 0, 7},
};

/* Largest difference from the image, seen through `orientation`. */
static int worst_difference(const image *img, const kind *k)
{
    int worst = 0;
    for (int y = 0; y < img->height; y++) {
        for (int x = 0; x < img->width; x++) {
            const int at[9][2] = {{x, y},         {x, y}, {W - 1 - x, y}, {W - 1 - x, H - 1 - y},
                                  {x, H - 1 - y}, {y, x}, {y, H - 1 - x}, {W - 1 - y, H - 1 - x},
                                  {W - 1 - y, x}};
            size_t sx = (size_t)at[k->orientation][0], sy = (size_t)at[k->orientation][1];
            uint8_t want[3];
            pixel(sx, sy, want);
            if (k->n_components == 1) {
                want[0] = want[1] = want[2] = grey(sx, sy);
            }
            for (int c = 0; c < 3; c++) {
                int diff =
                    abs(img->rgb[((size_t)y * (size_t)img->width + (size_t)x) * 3 + (size_t)c] - want[c]);
                worst = diff > worst ? diff : worst;
            }
        }
    }
    return worst;
}

static void check_kind(const kind *k)
{
    bytes file;
    image img = {0};
    err_detail d = {0};
    image_plan plan;
    bytes_init(&file, 1 << 20);
    encode(&file, k);
    const uint8_t *data = (const uint8_t *)file.data;
    CHECK_OK(image_measure(&plan, data, file.len, &LIMITS, &d), d);
    CHECK_INT(plan.width, k->orientation >= 5 ? H : W);
    CHECK_INT(plan.height, k->orientation >= 5 ? W : H);
    err_code err = image_decode(&img, data, file.len, &LIMITS, &d);
    if (k->arithmetic && err == ERR_UNSUPPORTED) {
        printf("%s: not in this build of libjpeg\n", k->name);
    } else {
        CHECK_OK(err, d);
    }
    if (img.rgb) {
        CHECK_INT(img.width, k->orientation >= 5 ? H : W);
        CHECK_INT(img.height, k->orientation >= 5 ? W : H);
        int worst = worst_difference(&img, k);
        printf("%s, orientation %d: worst difference %d\n", k->name, k->orientation, worst);
        CHECK(worst <= k->tolerance);
    }
    image_deinit(&img);

    size_t n_accepted = 0;
    for (size_t n = 0; n < file.len; n++) {
        uint8_t *cut = malloc(n + 1);
        memcpy(cut, data, n);
        n_accepted += image_decode(&img, cut, n, &LIMITS, &d) == ERR_OK;
        CHECK(img.rgb == NULL);
        free(cut);
    }
    CHECK_INT(n_accepted, 0);
    bytes_deinit(&file);
}

/* The last scan of a non-interleaved file repeated: a small file that asks for thousands of
 * passes. */
static void test_scan_bomb(void)
{
    const kind k = {"separate scans", 3, JCS_YCbCr, 1, 1, false, false, true, 0, 0, 6};
    bytes file, bomb;
    image img = {0};
    err_detail d = {0};
    bytes_init(&file, 1 << 20);
    bytes_init(&bomb, 64 << 20);
    encode(&file, &k);
    size_t last = 0;
    for (size_t i = 0; i + 1 < file.len; i++) {
        if ((uint8_t)file.data[i] == 0xff && (uint8_t)file.data[i + 1] == 0xda) {
            last = i;
        }
    }
    CHECK(last > 0);
    for (int copies = 2; copies <= 5000; copies *= 50) { /* 2 are read, 100 and 5000 refused */
        bytes_clear(&bomb);
        bytes_append(&bomb, file.data, last);
        for (int i = 0; i < copies; i++) {
            bytes_append(&bomb, file.data + last, file.len - last - 2);
        }
        bytes_append(&bomb, "\xff\xd9", 2);
        double begin = clock_ms();
        err_code err = image_decode(&img, (const uint8_t *)bomb.data, bomb.len, &LIMITS, &d);
        printf("%d scans: %s after %.1f ms\n", copies + 2, err_name(err), clock_ms() - begin);
        CHECK_INT(err, copies <= 2 ? ERR_OK : ERR_CORRUPT);
        CHECK(clock_ms() - begin < 30000); /* decoding all scans of the last takes minutes */
        image_deinit(&img);
    }
    bytes_deinit(&file);
    bytes_deinit(&bomb);
}

/* One byte of a file changed, at a place behind a mark: what is valid JPEG, but not for this library, and what is none. */
static void test_refused(void)
{
    static const struct {
        uint8_t mark, at, value;
        err_code code;
    } CASES[] = {
        {0xc0, 4, 12, ERR_UNSUPPORTED},    /* bits of a sample */
        {0xc0, 1, 0xc5, ERR_UNSUPPORTED},  /* differences to another frame */
        {0xc0, 14, 0x31, ERR_UNSUPPORTED}, /* a component of three columns beside one of two */
        {0xc0, 11, 0x51, ERR_CORRUPT},     /* more than four */
        {0xc0, 9, 0, ERR_CORRUPT},         /* no component */
        {0xdb, 4, 0x0f, ERR_CORRUPT},      /* a table of no such number */
        {0xc4, 4, 0x0f, ERR_CORRUPT},      {0xda, 4, 0, ERR_CORRUPT},
    };
    const kind k = {"4:2:0", 3, JCS_YCbCr, 2, 2, false, false, false, 0, 0, 6};
    bytes file = bytes_empty(1 << 20), copy = bytes_empty(1 << 20);
    encode(&file, &k);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        image img = {0};
        err_detail d = {0};
        size_t at = 0;
        while (at + 2 < file.len &&
               ((uint8_t)file.data[at] != 0xff || (uint8_t)file.data[at + 1] != CASES[i].mark)) {
            at++;
        }
        bytes_clear(&copy);
        bytes_append(&copy, file.data, file.len);
        copy.data[at + CASES[i].at] = (char)CASES[i].value;
        const err_code err = image_decode(&img, (const uint8_t *)copy.data, copy.len, &LIMITS, &d);
        if (err != CASES[i].code) {
            fprintf(stderr, "  mark %x, byte %d: %s, %s\n", CASES[i].mark, CASES[i].at, err_name(err),
                    d.text);
        }
        CHECK_INT(err, CASES[i].code);
        CHECK_STR(d.name, err == ERR_CORRUPT ? "image_parse_error" : "unsupported_image_media_type");
        CHECK(!img.rgb);
    }
    bytes_deinit(&file);
    bytes_deinit(&copy);
}

/* A small file whose header asks for more memory than the coefficients of all passes may take. */
static void test_too_much_memory(void)
{
    enum { SIDE = 12001, OTHER_SIDE = 12000 };
    static const image_limits wide = {.max_pixels = SIDE * SIDE, .max_side = SIDE};
    const kind k = {"progressive", 3, JCS_YCbCr, 1, 1, true, false, false, 0, 0, 6};
    bytes file = bytes_empty(1 << 20);
    image img = {0};
    err_detail d = {0};
    encode(&file, &k);
    size_t at = 0;
    while (at + 9 < file.len && ((uint8_t)file.data[at] != 0xff || (uint8_t)file.data[at + 1] != 0xc2)) {
        at++;
    }
    const uint8_t sizes[] = {OTHER_SIDE >> 8, OTHER_SIDE & 0xff, SIDE >> 8, SIDE & 0xff};
    memcpy(file.data + at + 5, sizes, sizeof sizes);
    CHECK_INT(image_decode(&img, (const uint8_t *)file.data, file.len, &wide, &d), ERR_LIMIT);
    CHECK_STR(d.name, "image_too_large");
    CHECK_STR(d.text,
              "the image is 12001 x 12000 pixels in progressive form, which would need too much memory");
    CHECK(!img.rgb);
    bytes_deinit(&file);
}

int main(void)
{
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        check_kind(&KINDS[i]);
    }
    for (int o = 1; o <= 8; o++) {
        kind k = KINDS[2];
        k.orientation = o;
        check_kind(&k);
    }
    test_scan_bomb();
    test_refused();
    test_too_much_memory();
    CHECK_DONE();
}
