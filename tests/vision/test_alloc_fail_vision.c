/* Every allocation of opening and running a vision tower, of cutting images and videos into patches, and of reading a
 * video fails once. TRAP: decoders of libraries may crash when their own allocations fail, so only ours do (--wrap). */
#include "tests/alloc_fail.h"
#include "tests/check.h"

#include "base/file.h"
#include "compute/nn.h"
#include "tests/vision/safetensors.h"
#include "vision/image/image_write.h"
#include "vision/processor.h"
#include "vision/video/video.h"
#include "vision/vit.h"

enum { MAX_POINTS = 400, SIDE = 64 };

enum { N_OUT = 2 * 8 * 64 * 2 };
static float rows[2 * 2 * 2 * 4 * 4 * 3 * 2 * 16 * 16];

typedef struct tower {
    const char *folder;
    safetensors weights;
    compute *c;
    float expected[3][N_OUT]; /* what comes of its images and of its video */
    bool is_expecting;        /* which is known */
} tower;

/* Images of one or two rows of two tokens, and two frames of one: what is kept between two is there or not, but never in part. */
static err_code use_tower(void *context)
{
    static float out[N_OUT];
    tower *t = context;
    const tensor_source source = {.find = safetensors_find_tower, .ctx = &t->weights};
    vit *v = NULL;
    err_code err = vit_open(&v, json_folder(t->folder), &source, t->c, NULL);
    CHECK((v != NULL) == (err == ERR_OK));
    const vit_rows all = {.rows = rows};
    const long n_opened = alloc_fail_held();
    const int32_t side = v ? vit_get_config(v)->spatial_merge_size : 0; /* patches of a token's side */
    static const int32_t sizes[3][2] = {{1, 1}, {1, 2}, {2, 1}};        /* frames of so many rows */
    for (int32_t i = 0; !err && i < 3; i++) {
        const int32_t n = sizes[i][0], h = side * sizes[i][1];
        const err_code once = vit_encode(v, t->c, out, NULL, &all, n, h, 2 * side, NULL);
        CHECK(once == ERR_OK || alloc_fail_held() == n_opened); /* memory is short: nothing is kept of it */
        memset(out, 0, sizeof out);
        err = vit_encode(v, t->c, out, NULL, &all, n, h, 2 * side, NULL); /* memory may be there again */
        if (!t->is_expecting) {
            memcpy(t->expected[i], out, sizeof out);
        }
        CHECK(err || memcmp(out, t->expected[i], sizeof out) == 0);
        CHECK(once == ERR_OK || once == ERR_NOMEM);
        CHECK(!err || once);
        err = err ? err : once;
    }
    vit_close(v);
    return err;
}

/* Scratch is kept for the next image as long as it is not above a bound, and grows with the images. */
static void check_trim(tower *t)
{
    static float out[N_OUT];
    const tensor_source source = {.find = safetensors_find_tower, .ctx = &t->weights};
    const vit_rows all = {.rows = rows};
    vit *v = NULL;
    err_detail d = {0};
    CHECK_OK(vit_open(&v, json_folder(t->folder), &source, t->c, &d), d);
    const int32_t side = vit_get_config(v)->spatial_merge_size;
    const long n_opened = alloc_fail_held();
    vit_trim(v, 0); /* there is none yet */
    for (int more = 1; more >= -1; more--) {
        CHECK_OK(vit_encode(v, t->c, out, NULL, &all, 1, side, 2 * side, &d), d);
        const long n_used = alloc_fail_held();
        CHECK(n_used > n_opened);
        vit_trim(v, vit_scratch_bytes(v, 2 * (size_t)(side * side)) + (size_t)more);
        CHECK_INT(alloc_fail_held(), more < 0 ? n_opened : n_used);
    }
    vit_close(v);
}

static err_code cut_image(void *context)
{
    static uint8_t rgb[SIDE * SIDE * 3];
    const image img = {.width = SIDE, .height = SIDE, .rgb = rgb};
    patches p = {0};
    const err_code err = processor_image(&p, context, &img, NULL);
    CHECK((p.pixels != NULL) == (err == ERR_OK));
    if (!err) { /* else nothing is left */
        patches_deinit(&p);
    }
    return err;
}

static err_code cut_video(void *context)
{
    static uint8_t rgb[SIDE * SIDE * 3];
    static const double times[4] = {0, 0.5, 1, 1.5};
    const image frames[4] = {{.width = SIDE, .height = SIDE, .rgb = rgb},
                             {.width = SIDE, .height = SIDE, .rgb = rgb},
                             {.width = SIDE / 2, .height = SIDE, .rgb = rgb},
                             {.width = SIDE, .height = SIDE, .rgb = rgb}};
    patches p = {0};
    err_code err = processor_video_begin(&p, context, 4, SIDE, SIDE, times, NULL);
    if (err) {
        CHECK(p.pixels == NULL && p.timestamps == NULL); /* nothing is left */
        return err;
    }
    CHECK(p.pixels != NULL && p.timestamps != NULL);
    for (int32_t i = 0; !err && i < 4; i++) {
        err = processor_video_add(&p, context, 4, i, &frames[i], NULL);
    }
    patches_deinit(&p);
    return err;
}

static err_code write_image(void *context)
{
    static uint8_t rgb[SIDE * SIDE * 3];
    const image img = {.width = SIDE, .height = SIDE, .rgb = rgb};
    bytes *out = context;
    bytes_clear(out);
    const err_code err = image_write_jpeg(out, &img, (image_size){SIDE / 2, SIDE / 4}, 80, NULL);
    CHECK((out->len > 0) == (err == ERR_OK));
    return err;
}

static err_code count_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    int32_t *n = ctx;
    (void)detail;
    CHECK(i == *n && frame->rgb != NULL);
    (*n)++;
    return ERR_OK;
}

static err_code read_video(void *context)
{
    static const int32_t indices[] = {0, 2, 3};
    const file_map *file = context;
    video_limits limits = video_limits_default();
    video *f = NULL;
    int32_t n = 0;
    limits.n_threads = 1;
    err_code err =
        video_open(&f, &(video_source){.data = file->data, .bytes = file->bytes, .fd = -1}, &limits, NULL);
    CHECK((f != NULL) == (err == ERR_OK));
    err = err ? err : video_read(f, indices, 3, count_frame, &n, NULL);
    CHECK(err || n == 3);
    video_close(f);
    return err;
}

int main(void)
{
    static const char *const towers[] = {"tiny",
                                         "tiny_vl_moe",
                                         "tiny_qwen2_vl",
                                         "tiny_qwen2_5_vl",
                                         "tiny_gemma4_images",
                                         "tiny_gemma4_clipped"};
    err_detail d = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        rows[i] = (float)(i % 17) / 17.0f;
    }
    for (size_t i = 0; i < ARRAY_LEN(towers); i++) {
        char folder[4096], path[4200];
        tower t = {.folder = folder};
        snprintf(folder, sizeof folder, "%s", check_data(towers[i]));
        CHECK(file_join(path, sizeof path, folder, "model.safetensors"));
        CHECK(safetensors_open(&t.weights, path));
        CHECK_OK(compute_create(&t.c, &(compute_options){.n_threads = 1}, &d), d);
        CHECK_INT(use_tower(&t), ERR_OK);
        t.is_expecting = true;
        const size_t n = alloc_fail_each(use_tower, &t, MAX_POINTS);
        printf("%s: %zu allocations\n", towers[i], n);
        CHECK(n >= 15 && n < MAX_POINTS);
        check_trim(&t);
        compute_destroy(t.c);
        safetensors_close(&t.weights);
    }
    processor_config pc;
    processor_config_init(&pc);
    const size_t n_image = alloc_fail_each(cut_image, &pc, MAX_POINTS),
                 n_video = alloc_fail_each(cut_video, &pc, MAX_POINTS);
    printf("an image: %zu, a video: %zu\n", n_image, n_video);
    CHECK(n_image >= 1 && n_video >= 2);
    bytes jpeg = bytes_empty(1 << 16);
    CHECK_INT(write_image(&jpeg), ERR_OK); /* there is room from now on */
    const size_t n_written = alloc_fail_each(write_image, &jpeg, MAX_POINTS);
    printf("an image that is written: %zu\n", n_written);
    CHECK(n_written >= 2);
    bytes_deinit(&jpeg);
    static const char *const videos[] = {"webp.webp", "h264_b_frames.mp4", "gif.gif"};
    for (size_t i = 0; i < ARRAY_LEN(videos); i++) {
        char path[4200];
        file_map file;
        CHECK(file_join(path, sizeof path, check_data("videos"), videos[i]));
        CHECK_OK(file_map_open(&file, path, &d), d);
        CHECK_INT(read_video(&file), ERR_OK);
        const size_t n = alloc_fail_each(read_video, &file, MAX_POINTS);
        printf("%s: %zu allocations\n", videos[i], n);
        CHECK(n > 0);
        file_map_close(&file);
    }
    CHECK_DONE();
}
