/* Sizes, frame sampling, times and patch order: the vectors of the specification, and images whose
 * patches are known from their coordinates. */
#include "tests/check.h"
#include "tests/guard.h"

#include <stdbool.h>
#include <unistd.h>

#include "vision/processor.h"

static processor_config defaults(void)
{
    processor_config pc;
    err_detail d = {0};
    CHECK_OK(processor_config_load(&pc, json_folder("/nonexistent"), &d), d);
    return pc;
}

static void test_image_sizes(void)
{
    static const int32_t V[][5] = {
        {480, 640, 480, 640, 300},       {1080, 1920, 1088, 1920, 2040}, {224, 224, 256, 256, 64},
        {100, 300, 160, 448, 70},        {48, 80, 224, 352, 77},         {1, 1, 256, 256, 64},
        {272, 304, 256, 320, 80},        {16, 3000, 32, 3520, 110},      {5000, 5000, 4096, 4096, 16384},
        {6000, 8000, 3520, 4704, 16170},
    };
    processor_config pc = defaults();
    err_detail d = {0};
    for (size_t i = 0; i < sizeof V / sizeof V[0]; i++) {
        int32_t h = 0, w = 0;
        CHECK_OK(processor_image_size(&pc, V[i][0], V[i][1], &h, &w, &d), d);
        CHECK_INT(h, V[i][2]);
        CHECK_INT(w, V[i][3]);
        CHECK_INT(h / 32 * (w / 32), V[i][4]);
    }
    int32_t h, w;
    CHECK_OK(processor_image_size(&pc, 200, 1, &h, &w, &d), d);
    CHECK_INT(processor_image_size(&pc, 201, 1, &h, &w, &d), ERR_INVALID);
    CHECK_INT(processor_image_size(&pc, 1, 201, &h, &w, &d), ERR_INVALID);
    CHECK_INT(processor_image_size(&pc, 0, 5, &h, &w, &d), ERR_INVALID);
}

static void test_video_sizes(void)
{
    static const int32_t V[][5] = {
        {16, 1080, 1920, 928, 1664}, {7, 1080, 1920, 1088, 1920}, {768, 1080, 1920, 128, 224},
        {5, 480, 640, 480, 640},     {1, 480, 640, 480, 640}, /* one frame fills a temporal patch alone */
        {4, 16, 64, 32, 128}, /* smaller than a merged patch: enlarged first */
    };
    processor_config pc = defaults();
    err_detail d = {0};
    int32_t h = 0, w = 0;
    for (size_t i = 0; i < sizeof V / sizeof V[0]; i++) {
        CHECK_OK(processor_video_size(&pc, V[i][0], V[i][1], V[i][2], &h, &w, &d), d);
        CHECK_INT(h, V[i][3]);
        CHECK_INT(w, V[i][4]);
    }
    CHECK_INT(processor_video_size(&pc, 0, 10, 10, &h, &w, &d), ERR_INVALID);
}

static void check_samples(int64_t total, double source_fps, double fps, int32_t n_wanted,
                          const int32_t *expected, int32_t n_expected)
{
    processor_config pc = defaults();
    err_detail d = {0};
    int32_t indices[768], n = 0;
    indices[n_expected] = -7; /* no more than there are places is written */
    CHECK_OK(processor_sample_frames(&pc, total, source_fps, fps, n_wanted, indices, n_expected, &n, &d), d);
    CHECK_INT(n, n_expected);
    CHECK_INT(indices[n_expected], -7);
    for (int32_t i = 0; i < n && i < n_expected; i++) {
        CHECK_INT(indices[i], expected[i]);
    }
}

static void test_sampling(void)
{
    static const int32_t LONG[] = {0,   16,  31,  47,  63,  79,  94,  110, 126, 142,
                                   157, 173, 189, 205, 220, 236, 252, 268, 283, 299};
    static const int32_t SHORT[] = {0, 14, 28, 42, 57, 71, 85, 99};
    static const int32_t FEW[] = {0, 1, 2};
    check_samples(300, 30, 0, 0, LONG, 20);
    check_samples(100, 24, 0, 0, SHORT, 8);
    check_samples(100, 0, 0, 0, SHORT, 8); /* unknown rate: 24 */
    check_samples(3, 30, 0, 0, FEW, 3);
    check_samples(1, 30, 0, 0, FEW, 1);
    check_samples(100, 24, 1, 8, SHORT, 8); /* a wanted count outranks fps */
    check_samples(3, 30, 0, 1, FEW, 1);

    processor_config pc = defaults();
    err_detail d = {0};
    int32_t indices[8], n;
    CHECK_INT(processor_sample_frames(&pc, 0, 30, 0, 0, indices, 8, &n, &d), ERR_INVALID);
    CHECK_INT(processor_sample_frames(&pc, 3000, 30, 0, 0, indices, 8, &n, &d), ERR_LIMIT);
    CHECK_INT(processor_sample_frames(&pc, INT64_MAX, 30, 0, 0, indices, 8, &n, &d), ERR_LIMIT);
}

/* An image that is not resized: red = column / 16, green = row / 16, blue = position inside the
 * patch. */
static image coordinate_image(int32_t width, int32_t height, int32_t shift)
{
    image img = {.width = width, .height = height, .rgb = malloc((size_t)width * (size_t)height * 3)};
    for (int32_t y = 0; y < height; y++) {
        for (int32_t x = 0; x < width; x++) {
            uint8_t *px = img.rgb + ((size_t)y * (size_t)width + (size_t)x) * 3;
            px[0] = (uint8_t)(x / 16 + shift);
            px[1] = (uint8_t)(y / 16);
            px[2] = (uint8_t)(y % 16 * 16 + x % 16);
        }
    }
    return img;
}

static int level(float v)
{
    return (int)lrintf(v * 127.5f + 127.5f);
}

/* Every value of a patch row against the coordinates it must come from. */
static bool row_is(const float *row, int32_t gx, int32_t gy, int32_t shift0, int32_t shift1)
{
    for (int32_t i = 0; i < 256; i++) {
        bool ok = level(row[i]) == gx + shift0 && level(row[256 + i]) == gx + shift1 &&
                  level(row[512 + i]) == gy && level(row[768 + i]) == gy && level(row[1024 + i]) == i &&
                  level(row[1280 + i]) == i;
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* All rows as floats; the caller frees. */
static float *rows_of(const patches *p, const processor_config *pc)
{
    const size_t n = (size_t)p->t * (size_t)p->h * (size_t)p->w;
    float *rows = malloc(n * p->row_len * sizeof *rows);
    processor_rows(rows, p, pc, 0, n);
    return rows;
}

static void test_patch_order(void)
{
    processor_config pc = defaults();
    err_detail d = {0};
    patches p = {0};
    image img = coordinate_image(320, 256, 0);
    CHECK_OK(processor_image(&p, &pc, &img, &d), d);
    CHECK_INT(p.t, 1);
    CHECK_INT(p.h, 16);
    CHECK_INT(p.w, 20);
    CHECK_INT(p.n_tokens, 80);
    CHECK_INT(p.row_len, 1536);
    CHECK(p.timestamps == NULL);
    CHECK_INT(patches_bytes(&p), 16 * 20 * 768); /* bytes, and one slice of the two */
    float *rows = rows_of(&p, &pc);
    /* four rows are one merged token; the second token lies two columns on, the eleventh two rows
     * down */
    CHECK(row_is(rows + 0 * 1536, 0, 0, 0, 0));
    CHECK(row_is(rows + 1 * 1536, 1, 0, 0, 0));
    CHECK(row_is(rows + 2 * 1536, 0, 1, 0, 0));
    CHECK(row_is(rows + 3 * 1536, 1, 1, 0, 0));
    CHECK(row_is(rows + 4 * 1536, 2, 0, 0, 0));
    CHECK(row_is(rows + 40 * 1536, 0, 2, 0, 0));
    CHECK(row_is(rows + 319 * 1536, 19, 15, 0, 0));
    CHECK(fabsf(rows[0] + 1.0f) < 1e-6f);
    /* Some of the rows are the same as these of all. */
    float some[2 * 1536];
    processor_rows(some, &p, &pc, 41, 2);
    CHECK(memcmp(some, rows + 41 * 1536, sizeof some) == 0);
    memset(some, 0, sizeof some);
    patch_reader_read(&(patch_reader){&p, &pc, 30}, some, 11, 2);
    CHECK(memcmp(some, rows + 41 * 1536, sizeof some) == 0);
    free(rows);
    patches_deinit(&p);
    image_deinit(&img);
}

static void test_video_patches(void)
{
    processor_config pc = defaults();
    err_detail d = {0};
    patches p = {0};
    image frames[3];
    for (int32_t i = 0; i < 3; i++) {
        frames[i] = coordinate_image(96, 64, 10 * i);
    }
    CHECK_OK(processor_video(&p, &pc, frames, 3, (const double[]){0.0, 0.5, 1.25}, &d), d);
    CHECK_INT(p.t, 2);
    CHECK_INT(p.h, 4);
    CHECK_INT(p.w, 6);
    CHECK_INT(p.n_tokens, 12);
    CHECK_NEAR(p.timestamps[0], 0.25, 1e-12);
    CHECK_NEAR(p.timestamps[1], 1.25, 1e-12);
    float *rows = rows_of(&p, &pc);
    CHECK(row_is(rows + 1 * 1536, 1, 0, 0, 10));
    CHECK(row_is(rows + 24 * 1536, 0, 0, 20, 20)); /* the last frame is repeated */
    free(rows);
    patches_deinit(&p);

    /* Frame by frame the same comes out, also when they come in another order. */
    patches q = {0};
    CHECK_OK(processor_video(&p, &pc, frames, 3, (const double[]){0.0, 0.5, 1.25}, &d), d);
    CHECK_OK(processor_video_begin(&q, &pc, 3, 64, 96, (const double[]){0.0, 0.5, 1.25}, &d), d);
    for (int32_t i = 2; i >= 0; i--) {
        CHECK_OK(processor_video_add(&q, &pc, 3, i, &frames[i], &d), d);
    }
    CHECK(memcmp(p.pixels, q.pixels, patches_bytes(&p)) == 0);
    patches_deinit(&p);
    patches_deinit(&q);

    frames[2].width = 64; /* frames of different sizes */
    CHECK_INT(processor_video(&p, &pc, frames, 3, (const double[]){0, 1, 2}, &d), ERR_INVALID);
    CHECK(!p.pixels && !p.timestamps && p.t == 0 && p.n_tokens == 0);
    CHECK_INT(processor_video(&p, &pc, NULL, 0, NULL, &d), ERR_INVALID);
    for (int32_t i = 0; i < 3; i++) {
        image_deinit(&frames[i]);
    }
}

/* An image of which one side alone is another one than the grid's, in memory that ends with it. */
static void test_one_side(void)
{
    processor_config pc = defaults();
    for (int i = 0; i < 2; i++) {
        err_detail d = {0};
        patches p = {0};
        image img = {.width = i ? 256 : 250, .height = i ? 250 : 256};
        img.rgb = guard_alloc((size_t)img.width * (size_t)img.height * 3);
        memset(img.rgb, 77, (size_t)img.width * (size_t)img.height * 3);
        CHECK_OK(processor_image(&p, &pc, &img, &d), d);
        CHECK(p.h == 16 && p.w == 16);
        size_t other = 0;
        for (size_t k = 0; k < patches_bytes(&p); k++) {
            other += p.pixels[k] != 77;
        }
        CHECK_INT(other, 0);
        patches_deinit(&p);
        guard_free(img.rgb);
    }
}

static void write_config(const char *dir, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

static void remove_file(const char *dir, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CHECK(unlink(path) == 0);
}

static void test_config(void)
{
    char dir[] = "/tmp/parley-processor-XXXXXX", path[512];
    processor_config pc;
    err_detail d = {0};
    CHECK(mkdtemp(dir) != NULL);
    write_config(
        dir, "preprocessor_config.json",
        "{\"size\":{\"shortest_edge\":100,\"longest_edge\":5000},\"max_pixels\":6000,\"patch_size\":14,"
        "\"image_mean\":[0.1,0.2,0.3],\"image_std\":[1,2,4]}");
    write_config(
        dir, "video_preprocessor_config.json",
        "{\"size\":{\"shortest_edge\":7,\"longest_edge\":70},\"fps\":3,\"min_frames\":2,\"max_frames\":9}");
    CHECK_OK(processor_config_load(&pc, json_folder(dir), &d), d);
    CHECK_INT(pc.image_min_pixels, 100);
    CHECK_INT(pc.image_max_pixels, 6000);
    CHECK_INT(pc.video_min_pixels, 7);
    CHECK_INT(pc.video_max_pixels, 70);
    CHECK_INT(pc.patch_size, 14);
    CHECK_INT(pc.video_min_frames, 2);
    CHECK_INT(pc.video_max_frames, 9);
    CHECK_NEAR(pc.video_fps, 3, 0);
    CHECK_NEAR(pc.mean[1], 0.2, 1e-7);
    CHECK_NEAR(pc.std[2], 4, 0);

    for (int normalizes = 0; normalizes < 3; normalizes++) { /* not, yes, and as usual */
        static const char *const TEXTS[] = {
            "{\"do_normalize\":false,\"image_mean\":[0.1,0.2,0.3],\"image_std\":[1,2,4]}",
            "{\"do_normalize\":true,\"image_mean\":[0.1,0.2,0.3],\"image_std\":[1,2,4]}", "{}"};
        static const float MEANS[][3] = {{0, 0, 0}, {0.1f, 0.2f, 0.3f}, {0.5f, 0.5f, 0.5f}},
                           STDS[][3] = {{1, 1, 1}, {1, 2, 4}, {0.5f, 0.5f, 0.5f}};
        write_config(dir, "preprocessor_config.json", TEXTS[normalizes]);
        CHECK_OK(processor_config_load(&pc, json_folder(dir), &d), d);
        CHECK(memcmp(pc.mean, MEANS[normalizes], sizeof pc.mean) == 0);
        CHECK(memcmp(pc.std, STDS[normalizes], sizeof pc.std) == 0);
    }

    static const char *const BAD[] = {
        "{\"patch_size\":0}",     "{\"patch_size\":1.5}",         "{\"merge_size\":\"2\"}",
        "{\"image_mean\":[0.5]}", "{\"image_std\":[0,0,0]}",      "{\"min_pixels\":10,\"max_pixels\":9}",
        "{\"max_pixels\":1e30}",  "{\"image_mean\":[0,0,\"x\"]}", "not json",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        write_config(dir, "preprocessor_config.json", BAD[i]);
        CHECK_INT(processor_config_load(&pc, json_folder(dir), &d), ERR_INVALID);
        CHECK(d.text[0] != '\0');
    }
    static const char *const NAMES[] = {"preprocessor_config.json", "video_preprocessor_config.json"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, NAMES[i]);
        unlink(path);
    }
    rmdir(dir);
}

/* What stands for settings that a folder of Qwen2-VL or Qwen2.5-VL leaves out. */
static void test_qwen2_defaults(void)
{
    static const struct {
        const char *config;
        int32_t patch, merge;
        int64_t area; /* of a block of patches, in pixels */
    } CASES[] = {
        {"{\"vision_config\":{\"embed_dim\":64}}", 14, 2, 784},
        {"{\"vision_config\":{\"window_size\":64,\"patch_size\":8,\"spatial_merge_size\":3}}", 8, 3, 576},
    };
    char dir[] = "/tmp/parley_processor_XXXXXX";
    err_detail d = {0};
    CHECK(mkdtemp(dir) != NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        processor_config pc;
        write_config(dir, "config.json", CASES[i].config);
        CHECK_OK(processor_config_load(&pc, json_folder(dir), &d), d);
        CHECK(pc.video_by_frame && !pc.fills_budget);
        CHECK_INT(pc.patch_size, CASES[i].patch);
        CHECK_INT(pc.merge_size, CASES[i].merge);
        CHECK_INT(pc.temporal_patch_size, 2);
        CHECK_INT(pc.image_min_pixels, 4 * CASES[i].area);
        CHECK_INT(pc.image_max_pixels, 1280 * CASES[i].area);
        CHECK_INT(pc.video_min_pixels, 128 * CASES[i].area);
        CHECK_INT(pc.video_max_pixels, 768 * CASES[i].area);
        static const double MEAN[] = {0.48145466, 0.4578275, 0.40821073},
                            STD[] = {0.26862954, 0.26130258, 0.27577711};
        for (int c = 0; c < 3; c++) {
            CHECK_NEAR(pc.mean[c], MEAN[c], 1e-7);
            CHECK_NEAR(pc.std[c], STD[c], 1e-7);
        }
    }
    remove_file(dir, "config.json");
    rmdir(dir);
}

/* Gemma 4's sizes: as large as 280 rows of 48 x 48 pixels allow, in the image's own proportions. The
 * wanted numbers were computed by hand from the rule (docs/model.md E.5). */
static void test_budget(void)
{
    static const int32_t V[][4] = {/* height, width; of the grid shown */
                                   {100, 70, 960, 672},   {1080, 1920, 576, 1056}, {48, 48, 768, 768},
                                   {24, 700, 144, 4320},  {10, 9000, 48, 13440},   {9000, 10, 13440, 48},
                                   {3000, 10, 13440, 48}, {5000, 5000, 768, 768}};
    char dir[] = "/tmp/parley_processor_XXXXXX";
    err_detail d = {0};
    processor_config pc;
    int32_t h = 0, w = 0, n = 0, indices[64];
    CHECK(mkdtemp(dir) != NULL);
    write_config(dir, "config.json", "{\"vision_config\":{\"pooling_kernel_size\":3,\"patch_size\":16}}");
    CHECK_OK(processor_config_load(&pc, json_folder(dir), &d), d);
    CHECK(pc.fills_budget && pc.temporal_patch_size == 1 && pc.merge_size == 3 && pc.video_min_frames == 1);
    write_config(dir, "config.json", "{\"vision_config\":{\"pooling_kernel_size\":null,\"patch_size\":16}}");
    CHECK_OK(processor_config_load(&pc, json_folder(dir), &d), d);
    CHECK(pc.fills_budget && pc.merge_size == 3);
    for (int c = 0; c < 3; c++) { /* the tower's 2 x - 1 */
        CHECK_NEAR(pc.mean[c], 0.5, 0);
        CHECK_NEAR(pc.std[c], 0.5, 0);
    }
    for (size_t i = 0; i < sizeof V / sizeof V[0]; i++) {
        CHECK_OK(processor_image_size(&pc, V[i][0], V[i][1], &h, &w, &d), d);
        CHECK_INT(h, V[i][2]);
        CHECK_INT(w, V[i][3]);
    }
    CHECK_OK(processor_video_size(&pc, 500, 64, 96, &h, &w, &d), d); /* of one frame, 70 rows */
    CHECK_INT(h, 288);
    CHECK_INT(w, 480);
    CHECK_INT(processor_image_size(&pc, 0, 5, &h, &w, &d), ERR_INVALID);
    CHECK_OK(processor_sample_frames(&pc, 100, 24, 0, 0, indices, 64, &n, &d), d);
    CHECK_INT(n, 32);
    CHECK_INT(indices[31], 96); /* floor(31 * 100 / 32) */
    CHECK_OK(processor_sample_frames(&pc, 100, 25, 2, 0, indices, 64, &n, &d), d);
    CHECK_INT(n, 8); /* by the rate that was asked for */
    CHECK_INT(indices[7], 87);
    CHECK_OK(processor_sample_frames(&pc, 100, 25, 0.5, 0, indices, 64, &n, &d), d);
    CHECK_INT(n, 2);
    indices[5] = -7;
    CHECK_OK(processor_sample_frames(&pc, 5, 24, 0, 0, indices, 5, &n, &d), d);
    CHECK_INT(n, 5);
    CHECK_INT(indices[5], -7); /* no more than are asked for are written */
    write_config(dir, "processor_config.json", "{\"image_processor\":{},\"video_processor\":{}}");
    CHECK_OK(processor_config_load(&pc, json_folder(dir), &d), d);
    CHECK_INT(pc.image_max_pixels, 280 * 48 * 48); /* the tower's own */
    CHECK_INT(pc.video_max_pixels, 70 * 48 * 48);
    write_config(
        dir, "processor_config.json",
        "{\"image_processor\":{\"max_soft_tokens\":70,\"do_normalize\":false,\"image_mean\":[1,1,1]},"
        "\"video_processor\":{\"max_soft_tokens\":140,\"num_frames\":6}}");
    CHECK_OK(processor_config_load(&pc, json_folder(dir), &d), d);
    CHECK_INT(pc.image_max_pixels, 70 * 48 * 48);
    CHECK_INT(pc.video_max_pixels, 140 * 48 * 48);
    CHECK_INT(pc.video_frames, 6);
    for (int c = 0; c < 3; c++) { /* nothing is normalised */
        CHECK_NEAR(pc.mean[c], 0.5, 0);
        CHECK_NEAR(pc.std[c], 0.5, 0);
    }
    for (pc.video_frames = 1; pc.video_frames <= 2; pc.video_frames++) { /* a small number is one, too */
        CHECK_OK(processor_sample_frames(&pc, 100, 24, 0, 0, indices, 64, &n, &d), d);
        CHECK_INT(n, pc.video_frames);
        CHECK_OK(processor_sample_frames(&pc, 100, 24, 0, 4, indices, 64, &n, &d), d);
        CHECK_INT(n, 4);
        CHECK_INT(indices[3], 75); /* the starts of four parts, not the last frame */
    }
    write_config(dir, "processor_config.json", "{\"image_processor\":{\"max_soft_tokens\":0}}");
    CHECK_INT(processor_config_load(&pc, json_folder(dir), &d), ERR_INVALID);
    remove_file(dir, "processor_config.json");
    remove_file(dir, "config.json");
    rmdir(dir);
}

int main(void)
{
    test_qwen2_defaults();
    test_budget();
    test_image_sizes();
    test_video_sizes();
    test_sampling();
    test_patch_order();
    test_video_patches();
    test_one_side();
    test_config();
    CHECK_DONE();
}
