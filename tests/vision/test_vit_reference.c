/* The vision encoder against Hugging Face transformers, from the reference's own patch rows:
 * features after the merger and hidden rows before it, max |ours - theirs| <= 2e-5 * max |theirs|.
 * Also: frames in groups equal the whole video bit for bit, and damaged checkpoints are refused by
 * name. */
#include "tests/check.h"
#include "tests/cpu.h"

#include "compute/nn.h"
#include "tests/vision/safetensors.h"
#include "vision/vit.h"

enum { MAX_DIR = 4096, MAX_PATH = 8192 };
static const double TOLERANCE = 2e-5;

typedef struct setting {
    const char *dir;
    compute *c;
    vit *v;
} setting;

static double worst_fraction(const float *ours, const tensor *theirs)
{
    double worst = 0, largest = 0;
    for (size_t i = 0; i < theirs->bytes / sizeof(float); i++) {
        float want;
        memcpy(&want, (const char *)theirs->data + i * sizeof want, sizeof want);
        double diff = fabs((double)ours[i] - (double)want);
        worst = diff > worst || isnan(diff) ? diff : worst;
        largest = fabs((double)want) > largest ? fabs((double)want) : largest;
    }
    return worst / largest;
}

/* Runs all media of one kind in a case: grids, pixel rows, expected features. Returns false if the
 * case has none. */
static bool check_kind(const setting *s, const safetensors *f, const char *name, const char *grids,
                       const char *pixels, const char *features, const char *last_hidden)
{
    tensor grid_t = {0}, pixel_t = {0}, feature_t = {0}, last_t = {0};
    err_detail d = {0};
    if (!safetensors_find((void *)f, grids, &grid_t)) {
        return false;
    }
    if (!safetensors_find((void *)f, pixels, &pixel_t) ||
        !safetensors_find((void *)f, features, &feature_t) ||
        !safetensors_find((void *)f, last_hidden, &last_t)) {
        check_fail(__FILE__, __LINE__, "a tensor is missing");
        return false;
    }
    const vit_config *vc = vit_get_config(s->v);
    size_t out_width = (size_t)vc->out_hidden_size, width = (size_t)vc->hidden_size;
    float *out = calloc(1, feature_t.bytes), *last = calloc(1, last_t.bytes), *rows = malloc(pixel_t.bytes);
    float *grouped = malloc(feature_t.bytes);
    memcpy(rows, pixel_t.data, pixel_t.bytes);
    size_t patch = 0;
    for (size_t i = 0; i < grid_t.dims[0]; i++) {
        int64_t g[3];
        memcpy(g, (const char *)grid_t.data + i * sizeof g, sizeof g);
        size_t n_frame = (size_t)(g[1] * g[2]), row_len = pixel_t.dims[1];
        CHECK_OK(vit_encode(s->v, s->c, out + patch / 4 * out_width, last + patch * width,
                            &(vit_rows){.rows = rows + patch * row_len}, (int32_t)g[0], (int32_t)g[1],
                            (int32_t)g[2], &d),
                 d);
        for (int64_t t = 0; t < g[0]; t++) {
            size_t at = patch + (size_t)t * n_frame;
            CHECK_OK(vit_encode(s->v, s->c, grouped + at / 4 * out_width, NULL,
                                &(vit_rows){.rows = rows + at * row_len}, 1, (int32_t)g[1], (int32_t)g[2],
                                &d),
                     d);
        }
        patch += (size_t)g[0] * n_frame;
    }
    CHECK_INT(patch * pixel_t.dims[1] * sizeof(float), pixel_t.bytes);
    CHECK_INT(patch / 4 * out_width * sizeof(float), feature_t.bytes);
    CHECK(memcmp(out, grouped, feature_t.bytes) == 0);
    double feature_error = worst_fraction(out, &feature_t), last_error = worst_fraction(last, &last_t);
    printf("%s %s: features %.2e, last hidden %.2e\n", name, pixels, feature_error, last_error);
    CHECK(feature_error <= TOLERANCE);
    CHECK(last_error <= TOLERANCE);
    free(out);
    free(last);
    free(rows);
    free(grouped);
    return true;
}

/* Returns 1, or 0 if the set has no such case. */
static size_t check_case(const setting *s, const char *name)
{
    char path[MAX_PATH];
    safetensors f;
    snprintf(path, sizeof path, "%s/cases/%s.safetensors", s->dir, name);
    if (!file_exists(path)) {
        return 0;
    }
    CHECK(safetensors_open(&f, path));
    bool images = check_kind(s, &f, name, "image_grid_thw", "pixel_values", "image_features",
                             "image_features_last_hidden");
    bool videos = check_kind(s, &f, name, "video_grid_thw", "pixel_values_videos", "video_features",
                             "video_features_last_hidden");
    CHECK(images || videos);
    safetensors_close(&f);
    return 1;
}

/* A source that spoils one tensor. */
typedef struct spoiled {
    safetensors *f;
    const char *name;
    bool missing; /* else its first dimension is one too large */
} spoiled;

static bool find_spoiled(void *ctx, const char *name, tensor *out)
{
    const spoiled *s = ctx;
    bool hit = strcmp(name, s->name) == 0;
    bool found = safetensors_find(s->f, name, out);
    if (hit && s->missing) {
        return false;
    }
    out->dims[0] += hit;
    return found;
}

static void check_bad_weights(const char *dir, safetensors *weights, compute *c)
{
    static const char *const NAMES[] = {"model.visual.blocks.2.attn.qkv.weight",
                                        "model.visual.merger.norm.bias", "model.visual.pos_embed.weight",
                                        "model.visual.patch_embed.proj.weight"};
    for (size_t i = 0; i < 2 * sizeof NAMES / sizeof NAMES[0]; i++) {
        spoiled s = {.f = weights, .name = NAMES[i / 2], .missing = i % 2};
        tensor_source source = {.find = find_spoiled, .ctx = &s};
        err_detail d = {0};
        vit *v = NULL;
        CHECK_INT(vit_open(&v, json_folder(dir), &source, c, &d), s.missing ? ERR_NOT_FOUND : ERR_INVALID);
        CHECK(strstr(d.text, s.name) != NULL);
        CHECK(v == NULL);
    }
}

static size_t check_set(const char *dir)
{
    static const char *const CASES[] = {"image", "image_big", "two_images", "video", "image_video"};
    char path[MAX_PATH];
    safetensors weights;
    setting s = {.dir = dir};
    err_detail d = {0};
    size_t n_cases = 0;
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    if (!file_exists(path)) {
        return 0;
    }
    tensor_source source = {.find = safetensors_find, .ctx = &weights};
    CHECK(safetensors_open(&weights, path));
    CHECK_OK(compute_create(&s.c, &(compute_options){.n_threads = 2, .cpu_mask = test_cpu_mask()}, &d), d);
    CHECK_OK(vit_open(&s.v, json_folder(dir), &source, s.c, &d), d);
    printf("%s\n", strrchr(dir, '/') + 1);
    for (size_t i = 0; s.v && i < ARRAY_LEN(CASES); i++) {
        n_cases += check_case(&s, CASES[i]);
    }
    if (s.v) {
        float out = 0;
        CHECK_INT(vit_encode(s.v, s.c, &out, NULL, &(vit_rows){.rows = &out}, 1, 3, 2, &d), ERR_INVALID);
        CHECK_INT(vit_encode(s.v, s.c, &out, NULL, &(vit_rows){.rows = &out}, 0, 2, 2, &d), ERR_INVALID);
    }
    check_bad_weights(dir, &weights, s.c);
    vit_close(s.v);
    compute_destroy(s.c);
    safetensors_close(&weights);
    return n_cases;
}

int main(void)
{
    char dir[MAX_DIR];
    size_t n_cases = 0;
    for (size_t i = 0; reference_dir(dir, sizeof dir, i); i++) {
        n_cases += check_set(dir);
    }
    if (n_cases == 0) {
        CHECK_SKIP("there are no reference outputs in tests/data/tiny or beside the checkout");
    }
    CHECK_DONE();
}
