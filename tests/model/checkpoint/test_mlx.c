/* mlx: codes of every width with their scales, how config.json says that they are packed, what does not fit, and the names and
 * axes that MLX's tools change. */
#include "model/checkpoint/mlx.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "compute/formats/ggml_blocks.h"
#include "compute/formats/half.h"
#include "compute/kernels/ops.h"
#include "tests/check.h"
#include "tests/guard.h"

enum { ROWS = 3, GROUPS = 3, MOST_COLUMNS = 128 * GROUPS, ROOM = 1 << 20, NAME_MAX_BYTES = 64 };

typedef struct configs {
    const char *own, *mtp;
} configs;

static err_code read_config(void *ctx, const char *name, json_doc **out, err_detail *detail)
{
    const configs *c = ctx;
    const char *text = strcmp(name, "config.json") == 0       ? c->own
                       : strcmp(name, "mtp/config.json") == 0 ? c->mtp
                                                              : NULL;
    *out = NULL;
    return text ? json_parse(out, text, strlen(text), LIMIT_JSON_DEPTH, detail) : ERR_OK;
}

static size_t room = ROOM; /* of the arena for what is made */

/* What becomes of item 0 of a folder of n tensors. */
typedef struct adapted {
    err_code err;
    err_detail detail;
    char name[NAME_MAX_BYTES];
    tensor t;
    bool skip, is_mlx;
    checkpoint_traits traits;
    arena *memory;
} adapted;

static adapted adapt(const named_tensor *items, size_t n, configs c)
{
    tensor_table all = {0};
    adapted a = {.memory = arena_create(room), .t = items[0].view, .skip = true};
    mlx *m = NULL;
    for (size_t i = 0; i < n; i++) {
        CHECK(tensor_table_add(&all, &items[i]));
    }
    tensor_table_sort(&all);
    snprintf(a.name, sizeof a.name, "%s", items[0].stored);
    a.err = mlx_open(&m, &all, &(json_source){read_config, &c, "here"}, a.memory, &a.detail);
    a.is_mlx = m != NULL;
    CHECK(!m || a.err == ERR_OK);
    if (m) {
        mlx_traits(m, &a.traits);
        a.err = mlx_adapt(m, items[0].stored, a.name, &a.t, &a.skip, &a.detail);
    }
    mlx_close(m);
    tensor_table_free(&all);
    return a;
}

static named_tensor item(const char *name, const tensor *view)
{
    return (named_tensor){.name = name, .stored = name, .type_name = "", .view = *view};
}

/* A matrix of ROWS rows of `columns` codes, each in the bits of its row as one stream, the lowest first. */
typedef struct matrix {
    tensor weight, scales, biases;
    uint8_t codes[ROWS][MOST_COLUMNS];
    float scale[ROWS][GROUPS], bias[ROWS][GROUPS];
} matrix;

static void fill(matrix *m, unsigned bits, size_t group, dtype type)
{
    const size_t columns = group * GROUPS, row_bytes = columns * bits / 8, one = type == DTYPE_F32 ? 4 : 2;
    uint8_t *words = guard_alloc(ROWS * row_bytes), *scales = guard_alloc(ROWS * GROUPS * one),
            *biases = guard_alloc(ROWS * GROUPS * one);
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t k = 0; k < columns; k++) {
            const unsigned code = (unsigned)(k * 7 + r * 3 + k / 5) & ((1u << bits) - 1);
            m->codes[r][k] = (uint8_t)code;
            for (size_t b = 0; b < bits; b++) {
                const size_t at = k * bits + b;
                words[r * row_bytes + at / 8] |= (uint8_t)((code >> b & 1) << at % 8);
            }
        }
        for (size_t g = 0; g < GROUPS; g++) {
            const size_t at = (r * GROUPS + g) * one;
            m->scale[r][g] = (float)(1 + r) / 4 + (float)g; /* exact in every type */
            m->bias[r][g] = -(float)(2 * g) - (float)r / 2;
            if (type == DTYPE_F32) {
                memcpy(scales + at, &m->scale[r][g], one);
                memcpy(biases + at, &m->bias[r][g], one);
            } else {
                (type == DTYPE_F16 ? f16_put : bf16_put)(scales + at, m->scale[r][g]);
                (type == DTYPE_F16 ? f16_put : bf16_put)(biases + at, m->bias[r][g]);
            }
        }
    }
    m->weight = (tensor){DTYPE_OTHER, 2, {ROWS, columns * bits / 32}, words, ROWS * row_bytes};
    m->scales = (tensor){type, 2, {ROWS, GROUPS}, scales, ROWS * GROUPS * one};
    m->biases = (tensor){type, 2, {ROWS, GROUPS}, biases, ROWS * GROUPS * one};
}

static void drop(matrix *m)
{
    guard_free((void *)(uintptr_t)m->weight.data);
    guard_free((void *)(uintptr_t)m->scales.data);
    guard_free((void *)(uintptr_t)m->biases.data);
}

static adapted adapt_matrix(const matrix *m, const char *own)
{
    const named_tensor items[] = {item("a.weight", &m->weight), item("a.scales", &m->scales),
                                  item("a.biases", &m->biases)};
    return adapt(items, 3, (configs){own, NULL});
}

static const float E2M1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6};

/* Every number of what a matrix became. */
static void check_numbers(const matrix *m, const adapted *a, size_t group, dtype type)
{
    const size_t columns = group * GROUPS, row_bytes = ggml_row_bytes(type, columns);
    size_t wrong = 0;
    CHECK(a->err == ERR_OK && !a->skip && a->t.type == type && a->t.dims[0] == ROWS &&
          a->t.dims[1] == columns);
    CHECK_INT(a->t.bytes, ROWS * row_bytes);
    for (size_t r = 0; r < ROWS && a->err == ERR_OK; r++) {
        float numbers[MOST_COLUMNS];
        const uint8_t *row = (const uint8_t *)a->t.data + r * row_bytes;
        ggml_kernels_of(ops_generic()->ggml, type)->widen(numbers, row, columns);
        for (size_t k = 0; k < columns; k++) {
            const float code = type == DTYPE_MXFP4 ? E2M1[m->codes[r][k]] : (float)m->codes[r][k];
            wrong += numbers[k] != m->scale[r][k / group] * code + m->bias[r][k / group];
        }
    }
    CHECK_INT(wrong, 0);
}

static void test_affine(void)
{
    static const unsigned BITS[] = {2, 3, 4, 5, 6, 8};
    static const size_t SIZES[] = {32, 64, 128};
    static const dtype TYPES[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};
    static matrix m;
    char own[128];
    for (size_t i = 0; i < ARRAY_LEN(BITS) * ARRAY_LEN(SIZES) * ARRAY_LEN(TYPES); i++) {
        const unsigned bits = BITS[i % ARRAY_LEN(BITS)];
        const size_t group = SIZES[i / ARRAY_LEN(BITS) % ARRAY_LEN(SIZES)];
        const dtype type = TYPES[i / ARRAY_LEN(BITS) / ARRAY_LEN(SIZES)];
        fill(&m, bits, group, type);
        snprintf(own, sizeof own, "{\"%s\":{\"bits\":%u,\"group_size\":%zu,\"mode\":\"affine\"}}",
                 i % 2 ? "quantization" : "quantization_config", bits, group);
        adapted a = adapt_matrix(&m, own);
        check_numbers(&m, &a, group,
                      bits > 4 || type == DTYPE_F32 ? DTYPE_AF8
                      : type == DTYPE_F16           ? DTYPE_Q4_1
                                                    : DTYPE_AF4);
        arena_destroy(a.memory);
        drop(&m);
    }
}

/* Powers of two as scales, no biases. */
static void test_mxfp4(void)
{
    static const char OWN[] = "{\"quantization\":{\"bits\":4,\"group_size\":32,\"mode\":\"mxfp4\"}}";
    static matrix m;
    uint8_t powers[ROWS * GROUPS];
    fill(&m, 4, 32, DTYPE_F32);
    for (size_t i = 0; i < sizeof powers; i++) {
        powers[i] = (uint8_t)(125 + i % 5);
        m.scale[i / GROUPS][i % GROUPS] = (float)(1u << i % 5) / 4;
        m.bias[i / GROUPS][i % GROUPS] = 0;
    }
    const tensor view = {DTYPE_OTHER, 2, {ROWS, GROUPS}, powers, sizeof powers};
    const named_tensor items[] = {item("a.weight", &m.weight), item("a.scales", &view)};
    adapted a = adapt(items, 2, (configs){OWN, NULL});
    check_numbers(&m, &a, 32, DTYPE_MXFP4);
    arena_destroy(a.memory);
    /* Scales of another kind, or one too few. */
    tensor other = view;
    for (int i = 0; i < 2; i++) {
        other = view;
        other.type = i ? DTYPE_OTHER : DTYPE_BF16;
        other.bytes -= (size_t)i;
        a = adapt((named_tensor[]){items[0], item("a.scales", &other)}, 2, (configs){OWN, NULL});
        CHECK_INT(a.err, ERR_CORRUPT);
        arena_destroy(a.memory);
    }
    drop(&m);
}

/* What config.json says of all, of one module, and of a draft head that has one of its own; 4 bits in groups of 64 if nothing. */
static void test_configs(void)
{
#define ALL(inner)   "{\"quantization\":{" inner "}}"
#define B4_G64       "\"bits\":4,\"group_size\":64"
#define B8_G32       "\"bits\":8,\"group_size\":32"
#define OF(m, inner) ",\"" m "\":{" inner "}"
    static const char SUPPORTED[] = "(2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128 are)";
    static const struct {
        const char *module, *own, *mtp;
        unsigned bits;
        size_t group;
        err_code err;
        const char *says;
    } CASES[] = {
        {"a", ALL(""), NULL, 4, 64, ERR_OK, NULL},
        {"a", ALL(B8_G32), NULL, 8, 32, ERR_OK, NULL},
        {"a", ALL(B4_G64 OF("a", B8_G32)), NULL, 8, 32, ERR_OK, NULL},
        {"b", ALL(B4_G64 OF("a", B8_G32)), NULL, 4, 64, ERR_OK, NULL},
        {"a", ALL(B4_G64 OF("a", "\"bits\":8")), NULL, 8, 64, ERR_OK, NULL},
        {"a", ALL(B4_G64) "", ALL(B8_G32), 4, 64, ERR_OK, NULL},
        {"mtp.a", ALL(B4_G64), ALL(B8_G32), 8, 32, ERR_OK, NULL},
        {"mtp.a", ALL(B4_G64), ALL(B4_G64 OF("a", B8_G32)), 8, 32, ERR_OK, NULL},
        {"mtp.a", ALL(B4_G64), ALL(B4_G64 OF("mtp.a", B8_G32)), 4, 64, ERR_OK, NULL},
        {"mtp.a", ALL(B4_G64 OF("mtp.a", B8_G32)), NULL, 8, 32, ERR_OK, NULL},
        {"x.mtp.a", ALL(B4_G64), ALL(B4_G64 OF("x.mtp.a", B8_G32)), 8, 32, ERR_OK, NULL},
        {"a", "{}", NULL, 4, 64, ERR_CORRUPT,
         "tensor a.weight is packed, but config.json has no \"quantization\""},
        {"a", NULL, NULL, 4, 64, ERR_CORRUPT, "has no \"quantization\""},
        {"a", ALL("\"bits\":1"), NULL, 4, 64, ERR_UNSUPPORTED, SUPPORTED},
        {"a", ALL("\"bits\":7"), NULL, 4, 64, ERR_UNSUPPORTED,
         "a.weight is packed with 7 bits in groups of 64"},
        {"a", ALL("\"bits\":9"), NULL, 4, 64, ERR_UNSUPPORTED, SUPPORTED},
        {"a", ALL("\"group_size\":16"), NULL, 4, 64, ERR_UNSUPPORTED, "4 bits in groups of 16"},
        {"a", ALL(B4_G64 ",\"mode\":\"mxfp4\""), NULL, 4, 64, ERR_UNSUPPORTED, SUPPORTED},
        {"a", ALL(B8_G32 ",\"mode\":\"mxfp4\""), NULL, 8, 32, ERR_UNSUPPORTED, SUPPORTED},
        {"a", ALL("\"mode\":\"nvfp4\""), NULL, 4, 64, ERR_UNSUPPORTED,
         "in the mode \"nvfp4\", which is not supported"},
        {"a", ALL(B4_G64 OF("a", "\"mode\":\"x\"")), NULL, 4, 64, ERR_UNSUPPORTED, "in the mode \"x\""},
        {"a", "{", NULL, 4, 64, ERR_INVALID, NULL},
        {"a", ALL(B4_G64), "{", 4, 64, ERR_INVALID, NULL},
        /* of another width or group than it is */
        {"a", ALL("\"bits\":3"), NULL, 4, 64, ERR_CORRUPT,
         "tensor a.weight: words, scales and biases do not fit 3 bits in groups of 64"},
        {"a", ALL("\"group_size\":128"), NULL, 4, 64, ERR_CORRUPT, "do not fit 4 bits in groups of 128"},
    };
#undef ALL
#undef B4_G64
#undef B8_G32
#undef OF
    static matrix m;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char names[3][NAME_MAX_BYTES];
        static const char *const PARTS[] = {"weight", "scales", "biases"};
        for (size_t k = 0; k < 3; k++) {
            snprintf(names[k], sizeof names[k], "%s.%s", CASES[i].module, PARTS[k]);
        }
        fill(&m, CASES[i].bits, CASES[i].group, DTYPE_BF16);
        adapted a = adapt(
            (named_tensor[]){item(names[0], &m.weight), item(names[1], &m.scales), item(names[2], &m.biases)},
            3, (configs){CASES[i].own, CASES[i].mtp});
        CHECK_INT(a.err, CASES[i].err);
        if (a.err == ERR_OK) {
            check_numbers(&m, &a, CASES[i].group, CASES[i].bits > 4 ? DTYPE_AF8 : DTYPE_AF4);
        } else if (CASES[i].says) {
            CHECK(strstr(a.detail.text, CASES[i].says) != NULL);
        }
        arena_destroy(a.memory);
        drop(&m);
    }
}

/* Parts of a matrix that do not fit each other. */
static void test_misfits(void)
{
    static const char OWN[] = "{\"quantization\":{}}";
    static matrix m;
    for (int i = 0; i <= 9; i++) {
        fill(&m, 4, 64, DTYPE_BF16);
        matrix was = m;
        size_t n = 3;
        switch (i) {
        case 0:
            n = 2;
            break;
        case 1:
            m.biases.type = DTYPE_F16;
            break;
        case 2:
            m.biases.dims[1]--;
            break;
        case 3:
            m.scales.dims[0]--;
            break;
        case 4:
            m.scales.type = DTYPE_OTHER;
            break;
        case 5:
            m.weight.type = DTYPE_F32;
            break;
        case 6:
            m.weight.bytes--;
            break;
        case 7:
            m.weight.n_dims = m.scales.n_dims = m.biases.n_dims = 1;
            m.weight.dims[0] = m.weight.bytes / 4;
            m.scales.dims[0] = m.biases.dims[0] = (size_t)ROWS * GROUPS;
            break;
        case 8:
            m.scales.n_dims = 3;
            m.scales.dims[2] = 1;
            break;
        default:
            m.weight.dims[1] = m.weight.bytes = 0;
            m.scales.dims[1] = m.biases.dims[1] = 0;
        }
        adapted a = adapt((named_tensor[]){item("a.weight", &m.weight), item("a.scales", &m.scales),
                                           item("a.biases", &m.biases)},
                          n, (configs){OWN, NULL});
        CHECK_INT(a.err, ERR_CORRUPT);
        CHECK(strstr(a.detail.text,
                     "tensor a.weight: words, scales and biases do not fit 4 bits in groups of 64, which") !=
              NULL);
        arena_destroy(a.memory);
        drop(&was);
    }
}

/* No memory for what is made of a matrix, or of an embedding with other axes. */
static void test_no_room(void)
{
    static const float numbers[2 * 1 * 2 * 2 * 3];
    static const tensor one = {DTYPE_F32, 1, {1}, numbers, sizeof *numbers},
                        patches = {DTYPE_F32, 5, {2, 1, 2, 2, 3}, numbers, sizeof numbers};
    static matrix m;
    fill(&m, 4, 64, DTYPE_BF16);
    room = 64;
    adapted a = adapt_matrix(&m, "{\"quantization\":{\"bits\":4,\"group_size\":64}}");
    CHECK_INT(a.err, ERR_NOMEM);
    CHECK_STR(a.detail.text, "no memory for tensor a.weight (0 MiB)");
    CHECK(a.t.data == m.weight.data && a.t.type == m.weight.type);
    arena_destroy(a.memory);
    drop(&m);
    a = adapt((named_tensor[]){item("v.patch_embed.proj.weight", &patches), item("l.switch_glu.x", &one)}, 2,
              (configs){"{}", NULL});
    CHECK_INT(a.err, ERR_NOMEM);
    CHECK_STR(a.detail.text, "no memory for the patch embedding");
    CHECK(a.t.data == numbers && a.t.dims[4] == 3);
    arena_destroy(a.memory);
    room = ROOM;
}

/* A stack of matrices is packed as one is. */
static void test_stack(void)
{
    static matrix m;
    fill(&m, 4, 64, DTYPE_BF16);
    tensor *const all[] = {&m.weight, &m.scales, &m.biases};
    for (size_t i = 0; i < 3; i++) {
        *all[i] = (tensor){all[i]->type, 3, {1, ROWS, all[i]->dims[1]}, all[i]->data, all[i]->bytes};
    }
    adapted a = adapt_matrix(&m, "{\"quantization\":{}}");
    CHECK_INT(a.err, ERR_OK);
    CHECK_INT(a.t.n_dims, 3);
    CHECK_INT(a.t.dims[0], 1);
    a.t = (tensor){a.t.type, 2, {a.t.dims[1], a.t.dims[2]}, a.t.data, a.t.bytes};
    check_numbers(&m, &a, 64, DTYPE_AF4);
    arena_destroy(a.memory);
    drop(&m);
}

/* Names and axes, in a folder that MLX's tools made, which a stack of experts says. */
static void test_names_and_axes(void)
{
    static const float numbers[2 * 1 * 2 * 2 * 3] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                                     13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24};
    static const tensor one = {DTYPE_F32, 1, {1}, numbers, sizeof *numbers};
    static const struct {
        const char *stored, *name;
        tensor t;
        size_t dims[5];
        bool skip, turns;
    } CASES[] = {
        {"l.mlp.switch_mlp.up_proj.weight",
         "l.mlp.experts.up_proj",
         {DTYPE_F32, 1, {1}, numbers, 4},
         {1},
         false,
         false},
        {"l.mlp.switch_mlp.up_proj.bias",
         "l.mlp.switch_mlp.up_proj.bias",
         {DTYPE_F32, 1, {1}, numbers, 4},
         {1},
         false,
         false},
        {"l.conv1d.weight",
         "l.conv1d.weight",
         {DTYPE_F32, 3, {6, 4, 1}, numbers, 96},
         {6, 1, 4},
         false,
         false},
        {"l.conv1d.weight",
         "l.conv1d.weight",
         {DTYPE_F32, 3, {6, 1, 4}, numbers, 96},
         {6, 1, 4},
         false,
         false},
        {"l.conv2d.weight",
         "l.conv2d.weight",
         {DTYPE_F32, 3, {6, 4, 1}, numbers, 96},
         {6, 4, 1},
         false,
         false},
        {"v.patch_embed.proj.weight",
         "v.patch_embed.proj.weight",
         {DTYPE_F32, 5, {2, 1, 2, 2, 3}, numbers, 96},
         {2, 3, 1, 2, 2},
         false,
         true},
        {"v.patch_embed.proj.weight",
         "v.patch_embed.proj.weight",
         {DTYPE_F32, 5, {2, 3, 1, 2, 2}, numbers, 96},
         {2, 3, 1, 2, 2},
         false,
         false},
        {"v.patch_embed.proj.weight",
         "v.patch_embed.proj.weight",
         {DTYPE_F32, 5, {2, 3, 1, 1, 3}, numbers, 72},
         {2, 3, 1, 1, 3},
         false,
         false},
        {"v.patch_embed.proj.weight",
         "v.patch_embed.proj.weight",
         {DTYPE_F32, 4, {2, 2, 2, 3}, numbers, 96},
         {2, 2, 2, 3},
         false,
         false},
        {"v.other.proj.weight",
         "v.other.proj.weight",
         {DTYPE_F32, 5, {2, 1, 2, 2, 3}, numbers, 96},
         {2, 1, 2, 2, 3},
         false,
         false},
        {"x.scales", "x.scales", {DTYPE_F32, 1, {1}, numbers, 4}, {1}, true, false},
        {"x.biases", "x.biases", {DTYPE_F32, 1, {1}, numbers, 4}, {1}, true, false},
        {"y.scales", "y.scales", {DTYPE_F32, 1, {1}, numbers, 4}, {1}, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        const named_tensor items[] = {item(CASES[i].stored, &CASES[i].t), item("l.switch_glu.x", &one),
                                      item("x.weight", &one)};
        adapted a = adapt(items, 3, (configs){"{}", NULL});
        CHECK_INT(a.err, ERR_OK);
        CHECK(a.is_mlx);
        CHECK_INT(a.skip, CASES[i].skip);
        CHECK_STR(a.name, CASES[i].name);
        CHECK(memcmp(a.t.dims, CASES[i].dims, (size_t)a.t.n_dims * sizeof *a.t.dims) == 0);
        CHECK(CASES[i].turns || a.t.data == numbers);
        for (size_t k = 0; CASES[i].turns && k < ARRAY_LEN(numbers);
             k++) { /* [2, 4 places, 3] became [2, 3, 4 places] */
            CHECK(((const float *)a.t.data)[k] == numbers[k / 12 * 12 + k % 4 * 3 + k / 4 % 3]);
        }
        arena_destroy(a.memory);
    }
}

/* What says that MLX's tools made a folder, and how its norms are stored: by their mean, those of the draft head by their own. */
static void test_traits(void)
{
    static const float ones[] = {1, 1, 0.75f}, zeros[] = {0.5f, 0.5f, 0.5f}, few[] = {0, 0, 1.5f},
                       more[] = {0.5f, 0.5f, 0.53f};
#define VIEW(d)                                                                                              \
    {                                                                                                        \
        DTYPE_F32, 1, {3}, d, sizeof d                                                                       \
    }
#define TURNED                                                                                               \
    {                                                                                                        \
        DTYPE_F32, 3, {1, 3, 1}, ones, sizeof ones                                                           \
    }
#define STRAIGHT                                                                                             \
    {                                                                                                        \
        DTYPE_F32, 3, {1, 1, 3}, ones, sizeof ones                                                           \
    }
#define NORM(p) p "layers.0.input_layernorm.weight"
    static const struct {
        const char *names[3];
        tensor views[3];
        bool is_mlx, trunk, mtp;
    } CASES[] = {
        {{"a.conv1d.weight", NORM(""), NORM("mtp.")}, {TURNED, VIEW(ones), VIEW(zeros)}, true, true, false},
        {{"a.conv1d.weight", NORM(""), NORM("mtp.")}, {TURNED, VIEW(zeros), VIEW(ones)}, true, false, true},
        {{"a.conv1d.weight", NORM(""), NORM("x.mtp.")}, {TURNED, VIEW(few), VIEW(ones)}, true, false, true},
        {{"a.conv1d.weight", NORM(""), NORM("mtp.")}, {TURNED, VIEW(more), VIEW(more)}, true, true, true},
        {{"a.switch_mlp.x", NORM(""), "other.weight"},
         {VIEW(ones), VIEW(ones), VIEW(zeros)},
         true,
         true,
         false},
        {{"a.switch_glu.x", NORM("a."), NORM("b.")}, {VIEW(ones), VIEW(few), VIEW(ones)}, true, true, false},
        {{"a.switch_glu.x", "a.norm.weight", "mtp.norm.weight"},
         {VIEW(ones), VIEW(ones), VIEW(ones)},
         true,
         false,
         false},
        {{"a.conv1d.weight", NORM(""), NORM("mtp.")},
         {STRAIGHT, VIEW(ones), VIEW(zeros)},
         false,
         false,
         false},
        {{"a.conv2d.weight", NORM(""), NORM("mtp.")}, {TURNED, VIEW(ones), VIEW(zeros)}, false, false, false},
        {{"a.weight", "b.scales", NORM("")}, {VIEW(ones), VIEW(ones), VIEW(ones)}, false, false, false},
    };
#undef VIEW
#undef TURNED
#undef STRAIGHT
#undef NORM
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        named_tensor items[3];
        for (size_t k = 0; k < 3; k++) {
            items[k] = item(CASES[i].names[k], &CASES[i].views[k]);
        }
        adapted a = adapt(items, 3, (configs){"{}", NULL});
        CHECK_INT(a.err, ERR_OK);
        CHECK_INT(a.is_mlx, CASES[i].is_mlx);
        CHECK_INT(a.traits.norms_hold_one, CASES[i].trunk);
        CHECK_INT(a.traits.mtp_norms_hold_one, CASES[i].mtp);
        arena_destroy(a.memory);
    }
}

int main(void)
{
    test_affine();
    test_mxfp4();
    test_configs();
    test_misfits();
    test_stack();
    test_no_room();
    test_names_and_axes();
    test_traits();
    CHECK_DONE();
}
