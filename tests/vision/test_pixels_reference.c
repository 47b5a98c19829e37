/* Patch rows against what Hugging Face's processor computed from the same files: the images and the
 * video of the reference sets. All values are equal but for the rounding of the last float
 * operation. */
#include "tests/check.h"

#include "tests/vision/safetensors.h"
#include "vision/image/image.h"
#include "vision/processor.h"

enum { MAX_DIR = 4096, MAX_PATH = 8192, TRACK_FRAMES = 12 };

static const image_limits LIMITS = {.max_pixels = 1 << 26, .max_side = 16384};

static void decode(image *img, const char *path)
{
    file_map m = {0};
    err_detail d = {0};
    CHECK_OK(file_map_open(&m, path, &d), d);
    CHECK_OK(image_decode(img, m.data, m.bytes, &LIMITS, &d), d);
    file_map_close(&m);
}

/* Compares rows with the reference tensor beginning at element `begin`; returns the elements
 * used. */
static size_t compare(const char *what, const patches *p, const processor_config *pc, const tensor *expected,
                      size_t begin)
{
    size_t n = (size_t)p->t * (size_t)p->h * (size_t)p->w * p->row_len, n_equal = 0;
    CHECK_INT(expected->type, DTYPE_F32);
    CHECK(begin + n <= expected->bytes / sizeof(float));
    if (begin + n > expected->bytes / sizeof(float)) {
        return n;
    }
    double worst = 0;
    float *rows = malloc(n * sizeof *rows);
    processor_rows(rows, p, pc, 0, n / p->row_len);
    for (size_t i = 0; i < n; i++) {
        float want;
        memcpy(&want, (const char *)expected->data + (begin + i) * sizeof want, sizeof want);
        double diff = fabs((double)rows[i] - (double)want);
        n_equal += diff < 1e-6;
        worst = diff > worst ? diff : worst;
    }
    printf("%s: %d x %d x %d patches, worst difference %.3f steps, %.4f %% equal\n", what, p->t, p->h, p->w,
           worst * 127.5, 100.0 * (double)n_equal / (double)n);
    CHECK_INT(n_equal, n);
    free(rows);
    return n;
}

static void check_grid(const safetensors *f, const char *name, size_t row, const patches *p)
{
    tensor t = {0};
    int64_t grid[3] = {0};
    CHECK(safetensors_find((void *)f, name, &t));
    if (!t.data) {
        return;
    }
    memcpy(grid, (const char *)t.data + row * sizeof grid, sizeof grid);
    CHECK_INT(p->t, grid[0]);
    CHECK_INT(p->h, grid[1]);
    CHECK_INT(p->w, grid[2]);
    CHECK_INT(p->n_tokens, grid[0] * grid[1] * grid[2] / 4);
}

/* Returns 1, or 0 if the set has no such case. */
static size_t check_images(const char *dir, const char *name, const char *const *files, size_t n_files)
{
    char path[MAX_PATH];
    safetensors f;
    tensor expected = {0};
    err_detail d = {0};
    processor_config pc;
    snprintf(path, sizeof path, "%s/cases/%s.safetensors", dir, name);
    if (!file_exists(path)) {
        return 0;
    }
    CHECK_OK(processor_config_load(&pc, json_folder(dir), &d), d);
    CHECK(safetensors_open(&f, path) && safetensors_find(&f, "pixel_values", &expected) && expected.data);
    size_t at = 0;
    for (size_t i = 0; i < n_files; i++) {
        image img = {0};
        patches p = {0};
        snprintf(path, sizeof path, "%s/cases/%s", dir, files[i]);
        decode(&img, path);
        CHECK_OK(processor_image(&p, &pc, &img, &d), d);
        check_grid(&f, "image_grid_thw", i, &p);
        at += compare(files[i], &p, &pc, &expected, at);
        patches_deinit(&p);
        image_deinit(&img);
    }
    CHECK_INT(at * sizeof(float), expected.bytes);
    safetensors_close(&f);
    return 1;
}

static size_t check_video(const char *dir, const char *name)
{
    char path[MAX_PATH];
    safetensors f;
    tensor expected = {0};
    err_detail d = {0};
    processor_config pc;
    int32_t indices[TRACK_FRAMES], n = 0;
    image frames[TRACK_FRAMES] = {{0}};
    double times[TRACK_FRAMES];
    patches p = {0};
    snprintf(path, sizeof path, "%s/cases/%s.safetensors", dir, name);
    if (!file_exists(path)) {
        return 0;
    }
    CHECK_OK(processor_config_load(&pc, json_folder(dir), &d), d);
    CHECK(safetensors_open(&f, path) && safetensors_find(&f, "pixel_values_videos", &expected));
    CHECK_OK(processor_sample_frames(&pc, TRACK_FRAMES, 4.0, 2.0, 0, indices, TRACK_FRAMES, &n, &d), d);
    for (int32_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/cases/frames/%03d.png", dir, indices[i]);
        decode(&frames[i], path);
        times[i] = indices[i] / 4.0;
    }
    CHECK_OK(processor_video(&p, &pc, frames, n, times, &d), d);
    check_grid(&f, "video_grid_thw", 0, &p);
    CHECK_INT(compare(name, &p, &pc, &expected, 0) * sizeof(float), expected.bytes);
    patches_deinit(&p);
    for (int32_t i = 0; i < n; i++) {
        image_deinit(&frames[i]);
    }
    safetensors_close(&f);
    return 1;
}

int main(void)
{
    char dir[MAX_DIR];
    size_t n_cases = 0;
    for (size_t i = 0; reference_dir(dir, sizeof dir, i); i++) {
        n_cases += check_images(dir, "image", (const char *const[]){"img_a.png"}, 1);
        n_cases += check_images(dir, "image_big", (const char *const[]){"img_big.png"}, 1);
        n_cases += check_images(dir, "two_images", (const char *const[]){"img_b.png", "img_c.png"}, 2);
        n_cases += check_video(dir, "video");
        n_cases += check_video(dir, "image_video");
    }
    if (n_cases == 0) {
        CHECK_SKIP("there are no reference outputs in tests/data/tiny or beside the checkout");
    }
    CHECK_DONE();
}
