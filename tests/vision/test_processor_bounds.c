/* Every number of the processor's settings: the least and the most that is taken, what is refused beyond them and by which
 * message, where the value goes, and what an absent one leaves; sizes and counts at both sides of their limits. */
#include "vision/processor.h"

#include <math.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/limits.h"
#include "tests/check.h"
#include "tests/recorded.h"

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

/* Of several settings that cannot be used the first is named, in the order in which they are read: all from one on are wrong. A
 * name with a point is one of "size". */
static void test_first_fault(void)
{
    static const char QWEN[] = "{\"embed_dim\":64}";
    static const struct {
        const char *document, *tower, *names[10];
    } CHAINS[] = {
        {"preprocessor_config.json",
         NULL,
         {"patch_size", "temporal_patch_size", "merge_size", "image_mean", "image_std", ".shortest_edge",
          ".longest_edge", "min_pixels", "max_pixels"}},
        {"preprocessor_config.json",
         GEMMA,
         {"patch_size", "temporal_patch_size", "merge_size", "pooling_kernel_size", "image_mean", "image_std",
          "max_soft_tokens"}},
        {"preprocessor_config.json", QWEN, {"patch_size", "image_std", ".longest_edge", "max_pixels"}},
        {"video_preprocessor_config.json",
         NULL,
         {".shortest_edge", ".longest_edge", "min_pixels", "max_pixels", "fps", "min_frames", "max_frames"}},
        {"video_preprocessor_config.json",
         GEMMA,
         {"max_soft_tokens", "fps", "min_frames", "max_frames", "num_frames"}},
        {"config.json",
         "\"embed_dim\":64",
         {"patch_size", "temporal_patch_size", "merge_size", "image_mean", "image_std",
          "spatial_merge_size"}},
        {"config.json",
         "\"pooling_kernel_size\":3",
         {"patch_size", "temporal_patch_size", "merge_size", "image_mean", "image_std"}},
        {"config.json", "\"patch_size\":0", {"pooling_kernel_size"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(CHAINS); i++) {
        for (size_t first = 0; CHAINS[i].names[first]; first++) {
            char text[1024] = "{", size[256] = "", says[128];
            for (size_t k = first; CHAINS[i].names[k]; k++) {
                const char *name = CHAINS[i].names[k];
                char *to = name[0] == '.' ? size : text;
                snprintf(to + strlen(to), (to == size ? sizeof size : sizeof text) - strlen(to),
                         "%s\"%s\":%s", to[0] && strcmp(to, "{") != 0 ? "," : "", name + (to == size),
                         strncmp(name, "image_", 6) == 0 ? "{\"a\":1,\"b\":1,\"c\":1}" : "\"x\"");
            }
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s\"size\":{%s}}",
                     strcmp(text, "{") != 0 ? "," : "", size);
            const bool is_config = strcmp(CHAINS[i].document, "config.json") == 0;
            char tower[1200];
            snprintf(tower, sizeof tower, "{%s,%s", CHAINS[i].tower ? CHAINS[i].tower : "", text + 1);
            documents docs = {is_config ? "none" : CHAINS[i].document, text,
                              is_config ? tower : CHAINS[i].tower};
            processor_config pc;
            err_detail d = {0};
            const char *wrong = CHAINS[i].names[first];
            if (strcmp(wrong, "pooling_kernel_size") == 0 && is_config) {
                wrong = "patch_size";
            }
            snprintf(says, sizeof says, "%s: \"%s\" has a value that cannot be used", CHAINS[i].document,
                     wrong + (wrong[0] == '.'));
            CHECK_INT(processor_config_load(
                          &pc, (json_source){.read = read_text, .ctx = &docs, .where = "memory"}, &d),
                      ERR_INVALID);
            CHECK_STR(d.text, says);
        }
    }
}

/* How large images and videos become, and which frames are taken, of each kind of settings. */
static void record_sizes(void)
{
    static const int32_t SIZES[][2] = {{1, 1},     {5, 40},      {31, 33},   {32, 32},    {33, 47}, {48, 48},
                                       {28, 4000}, {4000, 28},   {100, 300}, {201, 1},    {7, 900}, {900, 7},
                                       {480, 640}, {1080, 1920}, {640, 481}, {5000, 5000}};
    static const int32_t FRAMES[] = {1, 2, 3, 5, 16, 65, 300, 768};
    static const char *const TOWERS[] = {NULL, GEMMA, "{\"embed_dim\":64}"};
    static const struct {
        int64_t total;
        double source_fps, fps;
        int32_t n;
    } TAKEN[] = {{1, 24, 0, 0},     {2, 24, 0, 0},   {3, 0, 0, 0},      {10, 1, 0, 0},   {10, 1, 0.25, 0},
                 {100, 24, 0, 0},   {100, 0, 1, 0},  {99, 29.97, 1, 0}, {100, 25, 3, 0}, {1000, 24, 0, 0},
                 {1000, 30, 30, 0}, {5000, 1, 1, 0}, {100, 24, 0, 1},   {100, 24, 5, 2}, {100, 24, 0, 7},
                 {3, 24, 0, 7},     {7, 24, 0, 7}};
    bytes out = bytes_empty(1 << 20);
    for (size_t kind = 0; kind < ARRAY_LEN(TOWERS); kind++) {
        documents docs = {"none", NULL, TOWERS[kind]};
        processor_config pc;
        err_detail d = {0};
        CHECK_OK(
            processor_config_load(&pc, (json_source){.read = read_text, .ctx = &docs, .where = "memory"}, &d),
            d);
        for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
            int32_t h = 0, w = 0;
            d = (err_detail){0};
            const err_code err = processor_image_size(&pc, SIZES[i][0], SIZES[i][1], &h, &w, &d);
            bytes_printf(&out, "%s %d x %d: ", TOWERS[kind] ? TOWERS[kind] : "usual", SIZES[i][0],
                         SIZES[i][1]);
            if (err) {
                bytes_printf(&out, "%s", d.text);
            } else {
                bytes_printf(&out, "%d x %d", h, w);
            }
            for (int tokens = 0; tokens <= 500; tokens += tokens ? 493 : 7) {
                pc.video_pair_tokens = tokens;
                bytes_printf(&out, tokens ? "\n  at most %d:" : "\n  frames:", tokens);
                for (size_t k = 0; k < ARRAY_LEN(FRAMES); k++) {
                    d = (err_detail){0};
                    if (processor_video_size(&pc, FRAMES[k], SIZES[i][0], SIZES[i][1], &h, &w, &d)) {
                        bytes_printf(&out, " %d: %s", FRAMES[k], d.text);
                    } else {
                        bytes_printf(&out, " %d: %d x %d", FRAMES[k], h, w);
                    }
                }
            }
            bytes_printf(&out, "\n");
        }
        pc.video_pair_tokens = 0;
        for (size_t i = 0; i < ARRAY_LEN(TAKEN); i++) {
            int32_t indices[800], n = 0;
            d = (err_detail){0};
            const err_code err =
                processor_sample_frames(&pc, TAKEN[i].total, TAKEN[i].source_fps, TAKEN[i].fps, TAKEN[i].n,
                                        indices, ARRAY_LEN(indices), &n, &d);
            bytes_printf(&out, "%d of %d at %g, %g wanted: %s", (int)TAKEN[i].n, (int)TAKEN[i].total,
                         TAKEN[i].source_fps, TAKEN[i].fps, err ? d.text : "");
            for (int32_t k = 0; k < n && !err; k += k < 12 || k > n - 4 ? 1 : n / 7 + 1) {
                bytes_printf(&out, " %d", indices[k]);
            }
            bytes_printf(&out, "\n");
        }
    }
    recorded_check("vision/processor_sizes.txt", bytes_str(&out));
    bytes_deinit(&out);
}

int main(void)
{
    test_fields();
    test_first_fault();
    record_sizes();
    test_sizes();
    CHECK_DONE();
}
