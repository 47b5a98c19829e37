/* Every number of the processor's settings: the least and the most that is taken, what is refused beyond them and by which
 * message, where the value goes, and what an absent one leaves; sizes and counts at both sides of their limits. */
#include "vision/processor.h"

#include <math.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/json.h"
#include "base/limits.h"
#include "tests/check.h"

enum kind { SIDE, COUNT, NUMBER, TRIPLE };

/* tower: the vision_config beside the settings, or NULL. */
static const struct row {
    const char *document, *tower, *before, *name;
    double min, max;
    enum kind kind;
    size_t at;
    double times; /* what the value is multiplied with before it is kept */
} ROWS[] = {
#define AT(member) offsetof(processor_config, member)
#define IMAGE      "preprocessor_config.json", NULL
#define VIDEO      "video_preprocessor_config.json", NULL
#define GEMMA      "{\"pooling_kernel_size\":3,\"patch_size\":16}"
    {IMAGE, "", "patch_size", 1, 256, SIDE, AT(patch_size), 1},
    {IMAGE, "", "temporal_patch_size", 1, 16, SIDE, AT(temporal_patch_size), 1},
    {IMAGE, "", "merge_size", 1, 16, SIDE, AT(merge_size), 1},
    {IMAGE, "", "min_pixels", 1, 16777216, COUNT, AT(image_min_pixels), 1},
    {IMAGE, "", "max_pixels", 65536, 1099511627776, COUNT, AT(image_max_pixels), 1},
    {IMAGE, "\"size\":{", "shortest_edge", 1, 16777216, COUNT, AT(image_min_pixels), 1},
    {IMAGE, "\"size\":{", "longest_edge", 65536, 1099511627776, COUNT, AT(image_max_pixels), 1},
    {IMAGE, "", "image_mean", -1e3, 1e3, TRIPLE, AT(mean), 1},
    {IMAGE, "", "image_std", 1e-6, 1e3, TRIPLE, AT(std), 1},
    {VIDEO, "", "min_pixels", 1, 25165824, COUNT, AT(video_min_pixels), 1},
    {VIDEO, "", "max_pixels", 4096, 1099511627776, COUNT, AT(video_max_pixels), 1},
    {VIDEO, "", "fps", 1e-3, 1000, NUMBER, AT(video_fps), 1},
    {VIDEO, "", "min_frames", 1, 768, SIDE, AT(video_min_frames), 1},
    {VIDEO, "", "max_frames", 4, 1 << 20, SIDE, AT(video_max_frames), 1},
    {"preprocessor_config.json", GEMMA, "", "max_soft_tokens", 1, 1 << 16, COUNT, AT(image_max_pixels), 2304},
    {"preprocessor_config.json", GEMMA, "", "pooling_kernel_size", 1, 16, SIDE, AT(merge_size), 1},
    {"video_preprocessor_config.json", GEMMA, "", "max_soft_tokens", 1, 1 << 16, COUNT, AT(video_max_pixels),
     2304},
    {"video_preprocessor_config.json", GEMMA, "", "num_frames", 1, 1 << 20, SIDE, AT(video_frames), 1},
};

typedef struct documents {
    const char *name, *text, *tower;
} documents;

static err_code read_text(void *ctx, const char *name, json_doc **out, err_detail *detail)
{
    const documents *all = ctx;
    char config[256];
    const char *text = strcmp(name, all->name) == 0 ? all->text : NULL;
    *out = NULL;
    if (strcmp(name, "config.json") == 0 && all->tower) {
        snprintf(config, sizeof config, "{\"vision_config\":%s}", all->tower);
        text = config;
    }
    return text ? json_parse(out, text, strlen(text), LIMIT_JSON_DEPTH, detail) : ERR_OK;
}

static err_code load(processor_config *pc, const struct row *row, const char *value, err_detail *d)
{
    char text[256], all[128];
    const bool is_list = row->kind == TRIPLE && strcmp(value, "null") != 0;
    snprintf(all, sizeof all, is_list ? "[0.5,%s,0.25]" : "%s", value);
    snprintf(text, sizeof text, "{%s\"%s\":%s%s}", row->before, row->name, all, row->before[0] ? "}" : "");
    documents docs = {row->document, text, row->tower};
    *d = (err_detail){0};
    return processor_config_load(pc, (json_source){.read = read_text, .ctx = &docs, .where = "memory"}, d);
}

static double found(const processor_config *pc, const struct row *row)
{
    const char *at = (const char *)pc + row->at;
    switch (row->kind) {
    case SIDE:
        return *(const int32_t *)(const void *)at;
    case COUNT:
        return (double)*(const int64_t *)(const void *)at;
    case NUMBER:
        return *(const double *)(const void *)at;
    default:
        return (double)((const float *)(const void *)at)[1];
    }
}

/* Whether the value is taken, and stands in its place, is what is wanted. */
static void check_value(const struct row *row, double value, bool is_taken)
{
    processor_config pc;
    err_detail d;
    char text[64], says[256];
    snprintf(text, sizeof text, "%.17g", value);
    snprintf(says, sizeof says, "%s: \"%s\" has a value that cannot be used", row->document, row->name);
    const err_code err = load(&pc, row, text, &d);
    const bool ok =
        is_taken
            ? err == ERR_OK && fabs(found(&pc, row) - value * row->times) <= 1e-6 * fabs(value * row->times)
            : err == ERR_INVALID && (strcmp(d.text, says) == 0 || strstr(d.text, "is above") != NULL);
    if (!ok) {
        fprintf(stderr, "  %s of %s as %s: %d, \"%s\"\n", row->name, row->document, text, (int)err, d.text);
    }
    CHECK(ok);
}

static void test_fields(void)
{
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const struct row *row = &ROWS[i];
        const bool whole = row->kind == SIDE || row->kind == COUNT;
        processor_config pc, plain;
        err_detail d;
        check_value(row, row->min, true);
        check_value(row, row->max, true);
        check_value(row, whole ? row->max + 1 : row->max * 1.001, false);
        if (row->kind == NUMBER) {
            check_value(row, 0, false);
        } else {
            check_value(row, whole ? row->min - 1 : row->min - fabs(row->min) * 0.001, false);
        }
        if (whole) {
            check_value(row, row->min + 0.5, false);
        }
        struct row other = *row;
        other.name = "none";
        CHECK_OK(load(&pc, row, "null", &d), d); /* as if it were absent */
        CHECK_OK(load(&plain, &other, "null", &d), d);
        CHECK_NEAR(found(&pc, row), found(&plain, row), 0);
        CHECK(load(&pc, row, "\"x\"", &d) == ERR_INVALID);
    }
}

static void test_sizes(void)
{
    processor_config pc;
    err_detail d = {0};
    int32_t h = 0, w = 0, n = 0, indices[8];
    processor_config_init(&pc);
    CHECK_OK(processor_image_size(&pc, 10, 2000, &h, &w, &d), d); /* 200 to 1, and one more */
    CHECK_INT(processor_image_size(&pc, 10, 2001, &h, &w, &d), ERR_INVALID);
    CHECK_STR(d.name, "image_aspect_ratio");
    CHECK_OK(processor_image_size(&pc, 2000, 10, &h, &w, &d), d);
    CHECK_INT(processor_image_size(&pc, 2001, 10, &h, &w, &d), ERR_INVALID);
    CHECK_INT(processor_image_size(&pc, 0, 1, &h, &w, &d), ERR_INVALID);
    CHECK_INT(processor_image_size(&pc, 1, 0, &h, &w, &d), ERR_INVALID);
    CHECK_INT(processor_video_size(&pc, 0, 32, 32, &h, &w, &d), ERR_INVALID);
    CHECK_STR(d.text, "the video has no frames");
    CHECK_INT(processor_video_size(&pc, 1, 0, 32, &h, &w, &d), ERR_INVALID);
    CHECK_INT(processor_video_size(&pc, 1, 32, 0, &h, &w, &d), ERR_INVALID);
    CHECK_OK(processor_video_size(&pc, 1, 1, 1, &h, &w, &d), d);
    /* A side of 2^20 pixels, and one unit more. */
    pc.image_min_pixels = 1;
    pc.image_max_pixels = (int64_t)1 << 40;
    CHECK_OK(processor_image_size(&pc, 1 << 20, 1 << 20, &h, &w, &d), d);
    CHECK_INT(h, 1 << 20);
    CHECK_INT(processor_image_size(&pc, 1 << 18, (1 << 20) + 32, &h, &w, &d), ERR_LIMIT);
    CHECK(strstr(d.text, "would be enlarged to 1048608 x 262144 pixels") != NULL);
    CHECK_INT(processor_image_size(&pc, (1 << 20) + 32, 1 << 18, &h, &w, &d), ERR_LIMIT);
    /* 2^31 patches and more are too many. */
    patches p;
    pc.patch_size = 8;
    pc.merge_size = 1;
    CHECK_OK(processor_image_plan(&p, &pc, 1 << 18, 1 << 18, &d), d);
    CHECK_INT(p.n_tokens, 1 << 30);
    CHECK_INT(processor_image_plan(&p, &pc, 1 << 18, 1 << 19, &d), ERR_LIMIT);
    CHECK_STR(d.text, "the image has too many patches");
    processor_config_init(&pc);
    CHECK_INT(processor_sample_frames(&pc, 0, 24, 0, 8, indices, 8, &n, &d), ERR_INVALID);
    CHECK_STR(d.text, "the video has 0 frames");
    CHECK_OK(processor_sample_frames(&pc, 1, 24, 0, 8, indices, 8, &n, &d), d);
    CHECK_OK(processor_sample_frames(&pc, INT32_MAX, 24, 0, 8, indices, 8, &n, &d), d);
    CHECK_INT(n, 8);
    CHECK_INT(indices[7], INT32_MAX - 1);
    CHECK_INT(processor_sample_frames(&pc, (int64_t)INT32_MAX + 1, 24, 0, 8, indices, 8, &n, &d), ERR_LIMIT);
    CHECK_INT(processor_sample_frames(&pc, 100, 24, 0, 9, indices, 8, &n, &d), ERR_LIMIT);
    CHECK_STR(d.text, "9 frames of the video would be needed; at most 8 are allowed");
}

int main(void)
{
    test_fields();
    test_sizes();
    CHECK_DONE();
}
