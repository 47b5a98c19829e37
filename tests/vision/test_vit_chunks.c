/* Images of more tokens than a tower works on at once: where a patch knows of no other (or of none but those of its
 * window), the left half of a wide image is that of a narrow one, although its rows stand elsewhere. But for rounding:
 * BLAS may add in another order for another number of rows. And several frames at once, and what each tower makes of
 * an image, recorded. */
#include "tests/check.h"
#include "tests/cpu.h"

#include <math.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "compute/nn.h"
#include "tests/compute/sums.h"
#include "tests/vision/safetensors.h"
#include "vision/vit.h"

enum { TOKENS_H = 24, TOKENS_WIDE = 16, TOKENS_NARROW = 8, MOST_VALUES = 1 << 12 };

/* A tower whose tensors of these names are zeros. */
typedef struct source {
    safetensors file;
    const char *const *zeros;
} source;

static float nothing[MOST_VALUES];

static bool find(void *ctx, const char *name, tensor *out)
{
    source *s = ctx;
    const bool found = safetensors_find_tower(&s->file, name, out);
    for (size_t i = 0; found && s->zeros[i]; i++) {
        if (strstr(name, s->zeros[i])) {
            CHECK(out->bytes <= sizeof nothing);
            out->data = nothing;
        }
    }
    return found;
}

/* The patches of h x w tokens, block by block: values by the place in the image alone. */
static float *make_rows(const vit_config *vc, size_t h, size_t w)
{
    const size_t merge = (size_t)vc->spatial_merge_size, area = merge * merge;
    const size_t dim = (size_t)(vc->in_channels * vc->temporal_patch_size * vc->patch_size * vc->patch_size);
    float *rows = malloc(h * w * area * dim * sizeof *rows), *to = rows;
    CHECK(rows != NULL);
    for (size_t token = 0; token < h * w; token++) {
        for (size_t cell = 0; cell < area; cell++) {
            const size_t place = (token / w * TOKENS_WIDE + token % w) * area + cell;
            for (size_t i = 0; i < dim; i++) {
                *to++ = (float)((place * 2654435761u + i * 40503u) % 2001) / 1000.0f - 1.0f;
            }
        }
    }
    return rows;
}

typedef struct image {
    size_t dim;
    const float *rows;
} image;

static void read_rows(const void *ctx, float *to, size_t first, size_t n)
{
    const image *m = ctx;
    memcpy(to, m->rows + first * m->dim, n * m->dim * sizeof *to);
}

static float *encode(vit *v, compute *c, size_t h, size_t w, bool by_function)
{
    const vit_config *vc = vit_get_config(v);
    const size_t width = (size_t)vc->out_hidden_size * (size_t)(1 + vc->n_deepstack);
    const int32_t merge = vc->spatial_merge_size;
    const image m = {(size_t)(vc->in_channels * vc->temporal_patch_size * vc->patch_size * vc->patch_size),
                     make_rows(vc, h, w)};
    const vit_rows rows = {.rows = by_function ? NULL : m.rows, .read = read_rows, .ctx = &m};
    float *out = malloc(h * w * width * sizeof *out);
    err_detail d = {0};
    CHECK(out != NULL);
    CHECK_OK(vit_encode(v, c, out, NULL, &rows, 1, (int32_t)h * merge, (int32_t)w * merge, &d), d);
    free((void *)m.rows);
    return out;
}

static bool is_alike(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!(fabsf(a[i] - b[i]) <= 1e-4f * (1 + fabsf(b[i])))) {
            return false;
        }
    }
    return true;
}

/* Frames of a video do not see each other: each is shown as it is alone. */
static void check_frames(vit *v, compute *c, size_t h, size_t w)
{
    enum { FRAMES = 3 };
    const vit_config *vc = vit_get_config(v);
    const size_t width = (size_t)vc->out_hidden_size * (size_t)(1 + vc->n_deepstack);
    const size_t n = h * w * (size_t)(vc->spatial_merge_size * vc->spatial_merge_size) *
                     (size_t)(vc->in_channels * vc->temporal_patch_size * vc->patch_size * vc->patch_size);
    const int32_t high = (int32_t)h * vc->spatial_merge_size, wide = (int32_t)w * vc->spatial_merge_size;
    float *one = make_rows(vc, h, w), *all = malloc(FRAMES * n * sizeof *all);
    float *alone = malloc(h * w * width * sizeof *alone),
          *together = malloc(FRAMES * h * w * width * sizeof *alone);
    err_detail d = {0};
    CHECK(all && alone && together);
    for (size_t i = 0; i < FRAMES * n; i++) {
        all[i] = one[i % n] * (float)(i / n + 1) / 2.0f;
    }
    CHECK_OK(vit_encode(v, c, together, NULL, &(vit_rows){.rows = all}, FRAMES, high, wide, &d), d);
    for (size_t f = 0; f < FRAMES; f++) {
        CHECK_OK(vit_encode(v, c, alone, NULL, &(vit_rows){.rows = all + f * n}, 1, high, wide, &d), d);
        CHECK(is_alike(alone, together + f * h * w * width, h * w * width));
        CHECK(f == 0 || memcmp(alone, together, h * w * width * sizeof *alone) !=
                            0); /* of other pixels it is another */
    }
    free(one), free(all), free(alone), free(together);
}

static void check_tower(const char *name, const char *const *zeros)
{
    char path[256];
    source s = {.zeros = zeros};
    const tensor_source tensors = {.find = find, .ctx = &s};
    compute *c = NULL;
    vit *v = NULL;
    err_detail d = {0};
    snprintf(path, sizeof path, "%s/model.safetensors", name);
    CHECK(safetensors_open(&s.file, check_data(path)));
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 1, .cpu_mask = test_cpu_mask()}, &d), d);
    CHECK_OK(vit_open(&v, json_folder(check_data(name)), &tensors, c, &d), d);
    const vit_config *vc = vit_get_config(v);
    const size_t width = (size_t)vc->out_hidden_size * (size_t)(1 + vc->n_deepstack);
    float *narrow = encode(v, c, TOKENS_H, TOKENS_NARROW, false);
    for (int by_function = 0; by_function < 2; by_function++) {
        float *wide = encode(v, c, TOKENS_H, TOKENS_WIDE, by_function);
        size_t differ = 0;
        for (size_t row = 0; row < TOKENS_H; row++) {
            differ += !is_alike(wide + row * TOKENS_WIDE * width, narrow + row * TOKENS_NARROW * width,
                                TOKENS_NARROW * width);
        }
        CHECK_INT(differ, 0);
        /* The values are not all the same. */
        CHECK(memcmp(wide, wide + (TOKENS_H * TOKENS_WIDE - 1) * width, width * sizeof *wide) != 0);
        free(wide);
    }
    free(narrow);
    check_frames(v, c, 3, 5);
    check_frames(v, c, 10, 9); /* several windows, of which some are smaller */
    vit_close(v);
    compute_destroy(c);
    safetensors_close(&s.file);
}

/* Two frames in all the tower's own numbers: the features, and the hidden rows that they are made of. */
static void record_tower(const char *name, const char *hidden)
{
    enum { FRAMES = 2, HIGH = 6, WIDE = 5 };
    static const char *const none[] = {NULL};
    char path[256];
    source s = {.zeros = none};
    const tensor_source tensors = {.find = find, .ctx = &s};
    compute *c = NULL;
    vit *v = NULL;
    err_detail d = {0};
    snprintf(path, sizeof path, "%s/model.safetensors", name);
    CHECK(safetensors_open(&s.file, check_data(path)));
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 2, .cpu_mask = test_cpu_mask()}, &d), d);
    CHECK_OK(vit_open(&v, json_folder(check_data(name)), &tensors, c, &d), d);
    const vit_config *vc = vit_get_config(v);
    const size_t width = (size_t)vc->out_hidden_size * (size_t)(1 + vc->n_deepstack);
    const int32_t merge = vc->spatial_merge_size;
    const size_t n_tokens = (size_t)FRAMES * HIGH * WIDE, n_out = n_tokens * width,
                 n_last = n_tokens * (size_t)(merge * merge) * (size_t)vc->hidden_size;
    float *rows = make_rows(vc, FRAMES * HIGH, WIDE), *out = calloc(n_out, sizeof *out),
          *last = calloc(n_last, sizeof *last);
    CHECK(out && last);
    CHECK_OK(vit_encode(v, c, out, last, &(vit_rows){.rows = rows}, FRAMES, HIGH * merge, WIDE * merge, &d),
             d);
    sums_add(name, out, n_out);
    sums_add(hidden, last, n_last);
    free(rows), free(out), free(last);
    vit_close(v);
    compute_destroy(c);
    safetensors_close(&s.file);
}

/* Grids without a side, of parts of a block, of more patches than there are numbers for, or than the tower has positions. */
static void check_grids(vit *v, compute *c)
{
    static const float none;
    const vit_config *vc = vit_get_config(v);
    const int32_t m = vc->spatial_merge_size, most = vc->pools ? 1024 / m * m + m : INT32_MAX / m * m;
    const int32_t grids[][3] = {{0, m, m},
                                {-1, m, m},
                                {1, 0, m},
                                {1, m, 0},
                                {1, -m, m},
                                {1, m, -m},
                                {1, m + 1, m},
                                {1, m, m + 1},
                                {1, most, m},
                                {1, m, most},
                                {1, 46340 / m * m, 46340 / m * m + m}};
    for (size_t i = 0; i < ARRAY_LEN(grids); i++) {
        char says[96];
        float out;
        err_detail d = {0};
        const int32_t *g = grids[i];
        snprintf(says, sizeof says, "a grid of %d x %d x %d patches cannot be encoded", g[0], g[1], g[2]);
        CHECK_INT(vit_encode(v, c, &out, NULL, &(vit_rows){.rows = &none}, g[0], g[1], g[2], &d),
                  ERR_INVALID);
        CHECK_STR(d.text, says);
    }
}

/* What a tower says that it takes, with kernels that work on one frame at a time. */
static void check_scratch(const char *name, size_t of_one, size_t of_many)
{
    static const char *const none[] = {NULL};
    char path[256];
    source s = {.zeros = none};
    compute *c = NULL;
    vit *v = NULL;
    err_detail d = {0};
    snprintf(path, sizeof path, "%s/model.safetensors", name);
    CHECK(safetensors_open(&s.file, check_data(path)));
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 1, .cpu_mask = 0}, &d), d);
    CHECK_OK(vit_open(&v, json_folder(check_data(name)), &(tensor_source){.find = find, .ctx = &s}, c, &d),
             d);
    const size_t area =
        (size_t)(vit_get_config(v)->spatial_merge_size * vit_get_config(v)->spatial_merge_size);
    CHECK_INT(vit_scratch_bytes(v, area), of_one);
    CHECK_INT(vit_scratch_bytes(v, 1000 * area), of_many);
    CHECK(vit_scratch_bytes(v, 0) < of_one); /* what a chunk takes alone */
    check_grids(v, c);
    vit_close(v);
    compute_destroy(c);
    safetensors_close(&s.file);
}

int main(void)
{
    /* The outputs of attention, and positions that depend on the size of the image. */
    static const char *const all[] = {"attn.proj.", "self_attn.o_proj.weight", "pos_embed", NULL};
    static const char *const whole_frames[] = {"blocks.1.attn.proj.", NULL};
    static const struct {
        const char *name, *hidden;
        const char *const *zeros;
        size_t of_one, of_many; /* bytes of an image of one token, and of a thousand */
    } towers[] = {
        {"tiny", "tiny, hidden", all, 6967312, 11067208},
        {"tiny_vl_moe", "tiny_vl_moe, hidden", all, 1770896, 3185480},
        {"tiny_gemma4_images", "tiny_gemma4_images, hidden", all, 9438224, 18653000},
        {"tiny_qwen2_vl", "tiny_qwen2_vl, hidden", all, 755088, 2169672},
        {"tiny_gemma4_clipped", "tiny_gemma4_clipped, hidden", all, 10359824, 19574600},
        {"tiny_qwen2_5_vl", "tiny_qwen2_5_vl, hidden", whole_frames, 755092, 2173672},
    };
    for (size_t i = 0; i < ARRAY_LEN(towers); i++) {
        check_tower(towers[i].name, towers[i].zeros);
        record_tower(towers[i].name, towers[i].hidden);
        check_scratch(towers[i].name, towers[i].of_one, towers[i].of_many);
    }
    sums_check("vision/tower_sums.txt", 2e-4);
    CHECK_DONE();
}
