/* vision_config of each family of towers, field by field: the largest number that is read, one more and
 * none, what stands for a field that is absent, and what does not fit together. */
#include "vision/vit_parts.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "tests/check.h"

/* A number of vision_config. fallback 0: it must be there. at: where it is kept, or NO_PLACE. */
typedef struct number {
    const char *name;
    int32_t good, max, fallback;
    size_t at;
} number;

/* A family, the fields of a config that it reads, and the text of what else stands there. */
typedef struct tower {
    const char *name;
    const vit_family *family;
    const char *rest, *text_config;
    number numbers[12];
} tower;

#define AT(member) offsetof(vit_config, member)
#define NO_PLACE   SIZE_MAX

static const tower TOWERS[] = {
    {"gemma4",
     &VIT_GEMMA4,
     "\"model_type\":\"gemma4_vision\"",
     ",\"text_config\":{\"hidden_size\":65536}",
     {{"num_hidden_layers", 2, 1024, 0, AT(depth)},
      {"hidden_size", 64, 1 << 16, 0, AT(hidden_size)},
      {"intermediate_size", 96, 1 << 18, 0, AT(intermediate_size)},
      {"num_attention_heads", 4, 1024, 0, NO_PLACE},
      {"num_key_value_heads", 4, 1024, 0, NO_PLACE},
      {"head_dim", 16, 1024, 64, AT(head_dim)},
      {"patch_size", 8, 256, 16, AT(patch_size)},
      {"pooling_kernel_size", 2, 16, 3, AT(spatial_merge_size)},
      {"position_embedding_size", 100, 1 << 20, 10240, NO_PLACE}}},
    {"qwen",
     &VIT_QWEN,
     "\"hidden_act\":\"gelu_pytorch_tanh\"",
     "",
     {{"depth", 2, VIT_MAX_DEPTH, 0, AT(depth)},
      {"hidden_size", 64, 1 << 16, 0, AT(hidden_size)},
      {"intermediate_size", 96, 1 << 18, 0, AT(intermediate_size)},
      {"num_heads", 4, 1024, 0, AT(n_heads)},
      {"out_hidden_size", 32, 1 << 16, 0, AT(out_hidden_size)},
      {"in_channels", 3, 3, 3, AT(in_channels)},
      {"patch_size", 8, 256, 16, AT(patch_size)},
      {"temporal_patch_size", 1, 16, 2, AT(temporal_patch_size)},
      {"spatial_merge_size", 4, 16, 2, AT(spatial_merge_size)},
      {"num_position_embeddings", 16, 1 << 20, 2304, NO_PLACE}}},
    {"qwen2",
     &VIT_QWEN2,
     "\"mlp_ratio\":3",
     "",
     {{"depth", 2, VIT_MAX_DEPTH, 32, AT(depth)},
      {"num_heads", 4, 1024, 16, AT(n_heads)},
      {"in_channels", 3, 3, 3, AT(in_channels)},
      {"in_chans", 3, 3, 3, AT(in_channels)},
      {"patch_size", 8, 256, 14, AT(patch_size)},
      {"temporal_patch_size", 1, 16, 2, AT(temporal_patch_size)},
      {"spatial_merge_size", 4, 16, 2, AT(spatial_merge_size)},
      {"embed_dim", 64, 1 << 16, 0, AT(hidden_size)},
      {"hidden_size", 32, 1 << 16, 0, AT(out_hidden_size)}}},
    {"qwen2.5",
     &VIT_QWEN2,
     "\"hidden_act\":\"silu\"",
     "",
     {{"depth", 32, VIT_MAX_DEPTH, 32, AT(depth)},
      {"num_heads", 4, 1024, 16, AT(n_heads)},
      {"patch_size", 8, 256, 14, AT(patch_size)},
      {"temporal_patch_size", 1, 16, 2, AT(temporal_patch_size)},
      {"spatial_merge_size", 1, 16, 2, AT(spatial_merge_size)},
      {"intermediate_size", 96, 1 << 18, 0, AT(intermediate_size)},
      {"hidden_size", 64, 1 << 16, 0, AT(hidden_size)},
      {"out_hidden_size", 32, 1 << 16, 0, AT(out_hidden_size)},
      {"window_size", 64, 1 << 16, 112, NO_PLACE}}},
};

static vit_config config;
static int32_t side;
static err_detail d;

/* Reads the config of a tower in which one field has another value; value NULL: it is absent; name NULL:
 * as it is. more: what is added to vision_config, a comma in front. */
static err_code read_with(const tower *t, const char *name, const char *value, const char *more)
{
    bytes text;
    json_doc *doc = NULL;
    bytes_init(&text, 1 << 16);
    bytes_printf(&text, "{\"vision_config\":{%s%s", t->rest, more);
    for (const number *n = t->numbers; n->name; n++) {
        const bool is_this = name && strcmp(n->name, name) == 0;
        if (!is_this) {
            bytes_printf(&text, ",\"%s\":%d", n->name, n->good);
        } else if (value) {
            bytes_printf(&text, ",\"%s\":%s", n->name, value);
        }
    }
    bytes_printf(&text, "}%s}", t->text_config);
    CHECK_OK(json_parse(&doc, bytes_str(&text), text.len, LIMIT_JSON_DEPTH, &d), d);
    memset(&config, 0, sizeof config);
    memset(&d, 0, sizeof d);
    const err_code err = t->family->read(&config, &side, json_root(doc), &d);
    json_free(doc);
    bytes_deinit(&text);
    return err;
}

/* Whether a config is refused because this field is missing or out of range, and says so. */
static bool is_refused(const tower *t, const char *name, const char *value)
{
    char expected[128];
    snprintf(expected, sizeof expected, "config.json: vision_config.%s is missing or out of range", name);
    return read_with(t, name, value, "") == ERR_INVALID && strcmp(d.text, expected) == 0;
}

static int32_t kept(const number *n)
{
    int32_t value = n->fallback;
    if (n->at != NO_PLACE) {
        memcpy(&value, (const char *)&config + n->at, sizeof value);
    }
    return value;
}

static void test_number(const tower *t, const number *n)
{
    char text[16];
    const int before = check_failures;
    snprintf(text, sizeof text, "%d", n->max);
    CHECK(!is_refused(t, n->name, text)); /* it may not fit to others, but is read */
    CHECK_INT(n->at == NO_PLACE ? n->max : kept(n), n->max);
    snprintf(text, sizeof text, "%d", n->max + 1);
    CHECK(is_refused(t, n->name, text));
    CHECK(is_refused(t, n->name, "0"));
    CHECK(is_refused(t, n->name, "-1"));
    CHECK(is_refused(t, n->name, "\"7\""));
    CHECK(!is_refused(t, n->name, "1"));
    if (strcmp(n->name, "embed_dim") != 0) { /* by which Qwen2-VL is known */
        CHECK_INT(is_refused(t, n->name, NULL), n->fallback == 0);
        CHECK_INT(n->fallback ? kept(n) : 0, n->fallback);
    }
    if (check_failures != before) {
        fprintf(stderr, "  (%s of %s)\n", n->name, t->name);
    }
}

static void test_numbers(void)
{
    for (size_t i = 0; i < ARRAY_LEN(TOWERS); i++) {
        CHECK_OK(read_with(&TOWERS[i], NULL, NULL, ""), d);
        for (const number *n = TOWERS[i].numbers; n->name; n++) {
            test_number(&TOWERS[i], n);
        }
    }
}

/* What is read of a good config beside its numbers. */
static void test_kinds(void)
{
    CHECK_OK(read_with(&TOWERS[0], NULL, NULL, ",\"use_clipped_linears\":true"), d);
    CHECK(config.is_clipped && !config.is_standardized && config.is_gated && config.pools);
    CHECK_INT(config.out_hidden_size, 1 << 16);
    CHECK_INT(side, 100);
    CHECK_NEAR(config.rope_theta, 100, 0);
    CHECK_NEAR(config.norm_eps, 1e-6, 1e-9);
    CHECK_NEAR(config.attention_scale, 1, 0);
    CHECK_OK(read_with(&TOWERS[1], NULL, NULL, ",\"deepstack_visual_indexes\":[0,1]"), d);
    CHECK_INT(config.n_deepstack, 2);
    CHECK_INT(config.deepstack[1], 1);
    CHECK_INT(side, 4);
    CHECK_INT(config.head_dim, 16);
    CHECK_NEAR(config.attention_scale, 0.25, 0);
    CHECK_NEAR(config.rope_theta, 10000, 0);
    CHECK_OK(read_with(&TOWERS[2], NULL, NULL, ""), d);
    CHECK_INT(config.intermediate_size, 192);
    CHECK(config.activation == VIT_QUICK_GELU && config.window == 0 && !config.is_gated);
    CHECK_OK(read_with(&TOWERS[3], NULL, NULL, ""), d);
    CHECK(config.activation == VIT_SILU && config.is_gated);
    CHECK_INT(config.window, 8);
    for (int32_t i = 0; i < 32; i++) { /* the blocks of the released models */
        CHECK_INT(config.sees_frame[i], i % 8 == 7);
    }
    CHECK_OK(read_with(&TOWERS[3], NULL, NULL, ",\"fullatt_block_indexes\":[0,31]"), d);
    CHECK(config.sees_frame[0] && !config.sees_frame[7] && config.sees_frame[31]);
}

/* One field that is wrong in another way than its range. */
static void test_misfits(void)
{
    static const struct {
        int tower;
        err_code code;
        const char *name, *value, *more, *says;
    } CASES[] = {
        {0, ERR_INVALID, "", "", ",\"rope_parameters\":{\"rope_theta\":1}", "rope_parameters"},
        {0, ERR_OK, "", "", ",\"rope_parameters\":{\"rope_theta\":1.5}", ""},
        {0, ERR_INVALID, "", "", ",\"rms_norm_eps\":1", "rms_norm_eps"},
        {0, ERR_INVALID, "", "", ",\"rms_norm_eps\":-0.1", "rms_norm_eps"},
        {0, ERR_OK, "", "", ",\"rms_norm_eps\":0", ""},
        {0, ERR_UNSUPPORTED, "", "", ",\"hidden_activation\":\"relu\"", "hidden_activation"},
        {0, ERR_UNSUPPORTED, "", "", ",\"attention_bias\":true", "attention_bias"},
        {0, ERR_UNSUPPORTED, "num_key_value_heads", "2", "", "num_key_value_heads"},
        {0, ERR_UNSUPPORTED, "head_dim", "18", "", "head_dim"},
        {1, ERR_UNSUPPORTED, "", "", ",\"hidden_act\":\"relu\"", ""}, /* the first of two counts */
        {1, ERR_INVALID, "", "", ",\"rope_parameters\":{\"rope_theta\":1}", "rope_theta"},
        {1, ERR_INVALID, "num_position_embeddings", "15", "", "not a square"},
        {1, ERR_INVALID, "hidden_size", "66", "", "num_heads times a multiple of 4"},
        {1, ERR_INVALID, "hidden_size", "72", "", "num_heads times a multiple of 4"},
        {1, ERR_INVALID, "", "", ",\"deepstack_visual_indexes\":[1,1]", "rising numbers"},
        {1, ERR_INVALID, "", "", ",\"deepstack_visual_indexes\":[2]", "rising numbers"},
        {2, ERR_INVALID, "embed_dim", "66", "", "num_heads times a multiple of 4"},
        {2, ERR_INVALID, "embed_dim", "72", "", "num_heads times a multiple of 4"},
        {2, ERR_UNSUPPORTED, "", "", ",\"hidden_act\":\"gelu\"", "hidden_act is \"gelu\"; only quick_gelu"},
        {3, ERR_INVALID, "window_size", "7", "", "window_size is smaller than a block"},
        {3, ERR_INVALID, "", "", ",\"fullatt_block_indexes\":[32]", "fullatt_block_indexes"},
        {3, ERR_INVALID, "", "", ",\"fullatt_block_indexes\":[-1]", "fullatt_block_indexes"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        tower t = TOWERS[CASES[i].tower];
        if (strstr(CASES[i].more, "hidden_act\"")) {
            t.rest = "\"norm\":1"; /* the case names its own */
        }
        const err_code err = read_with(&t, CASES[i].name, CASES[i].value, CASES[i].more);
        if (err != CASES[i].code || !strstr(d.text, CASES[i].says)) {
            fprintf(stderr, "  case %zu: %d, \"%s\"\n", i, (int)err, d.text);
        }
        CHECK_INT(err, CASES[i].code);
        CHECK(strstr(d.text, CASES[i].says) != NULL);
    }
    /* The width that a product may have: 2^18, as the ratio gives it. */
    tower wide = TOWERS[2];
    wide.rest = "\"mlp_ratio\":4096";
    CHECK_OK(read_with(&wide, NULL, NULL, ""), d);
    CHECK_INT(config.intermediate_size, 1 << 18);
    wide.rest = "\"mlp_ratio\":4097";
    CHECK_INT(read_with(&wide, NULL, NULL, ""), ERR_INVALID);
    wide.rest = "\"mlp_ratio\":0.01";
    CHECK_INT(read_with(&wide, NULL, NULL, ""), ERR_INVALID);
    wide.rest = "\"mlp_ratio\":-3";
    CHECK_INT(read_with(&wide, NULL, NULL, ""), ERR_INVALID);
    tower gemma = TOWERS[0];
    gemma.text_config = ",\"text_config\":{\"hidden_size\":65537}";
    CHECK_INT(read_with(&gemma, NULL, NULL, ""), ERR_INVALID);
    CHECK(strstr(d.text, "text_config.hidden_size"));
}

/* As many blocks as may feed the model, and one more. */
static void test_deepstack(void)
{
    const tower *t = TOWERS;
    while (t->family != &VIT_QWEN) {
        t++;
    }
    for (int n = VIT_MAX_DEEPSTACK; n <= VIT_MAX_DEEPSTACK + 1; n++) {
        char list[200] = ",\"deepstack_visual_indexes\":[0";
        for (int i = 1; i < n; i++) {
            snprintf(list + strlen(list), sizeof list - strlen(list), ",%d", i);
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "]");
        d = (err_detail){0};
        CHECK_INT(read_with(t, "depth", "40", list), n > VIT_MAX_DEEPSTACK ? ERR_UNSUPPORTED : ERR_OK);
        CHECK_STR(d.text,
                  n > VIT_MAX_DEEPSTACK
                      ? "config.json: vision_config.deepstack_visual_indexes names more than 16 blocks"
                      : "");
    }
}

static bool find_typed(void *ctx, const char *name, tensor *out)
{
    static const uint8_t values[64];
    const dtype *type = ctx;
    *out = (tensor){*type, 2, {4, 4}, values, sizeof values};
    return strcmp(name, "visual.blocks.3.norm1.weight") == 0;
}

/* Types of numbers that a matrix, or a vector, cannot have. */
static void test_types(void)
{
    static const struct {
        dtype type;
        bool is_vector;
        err_code code;
        const char *text;
    } CASES[] = {
        {DTYPE_F32, false, ERR_OK, ""},
        {DTYPE_F32, true, ERR_OK, ""},
        {DTYPE_OTHER, false, ERR_UNSUPPORTED,
         "tensor visual.blocks.3.norm1.weight has a number type that is not supported"},
        {DTYPE_OTHER, true, ERR_UNSUPPORTED,
         "tensor visual.blocks.3.norm1.weight has a number type that is not supported"},
        {DTYPE_Q8, false, ERR_OK, ""},
        {DTYPE_Q8, true, ERR_UNSUPPORTED, "tensor visual.blocks.3.norm1.weight must be F32, BF16 or F16"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        dtype type = CASES[i].type;
        const tensor_source from = {find_typed, &type};
        vit_loader l = {.tensors = &from, .prefix = "visual.", .memory = arena_create(1 << 16), .detail = &d};
        tensor t;
        d = (err_detail){0};
        if (CASES[i].is_vector) {
            CHECK((vit_load_f32(&l, 4, 4, "blocks.3", "norm1.weight") != NULL) == (CASES[i].code == ERR_OK));
        } else {
            vit_load_matrix(&l, &t, 4, 4, "blocks.3", "norm1.weight");
        }
        CHECK_INT(l.err, CASES[i].code);
        CHECK_STR(d.text, CASES[i].text);
        arena_destroy(l.memory);
    }
}

static bool find_shaped(void *ctx, const char *name, tensor *out)
{
    static const float values[64];
    const tensor *shape = ctx;
    *out = *shape;
    out->data = values;
    out->bytes = sizeof values;
    return strcmp(name, "visual.std_bias") == 0;
}

/* A tensor of 4 x 6 is wanted: its first dimension counts, and how many numbers there are, in whatever shape. */
static void test_shapes(void)
{
    static const struct {
        tensor shape;
        const char *says;
    } CASES[] = {
        {{.n_dims = 2, .dims = {4, 6}}, ""},
        {{.n_dims = 3, .dims = {4, 2, 3}}, ""},
        {{.n_dims = 4, .dims = {4, 1, 3, 2}}, ""},
        {{.n_dims = 2, .dims = {6, 4}}, "6 x 4 elements; 4 x 6 are needed"},
        {{.n_dims = 2, .dims = {4, 5}}, "4 x 5 elements; 4 x 6 are needed"},
        {{.n_dims = 2, .dims = {4, 7}}, "4 x 7 elements; 4 x 6 are needed"},
        {{.n_dims = 2, .dims = {3, 8}}, "3 x 8 elements; 4 x 6 are needed"},
        {{.n_dims = 2, .dims = {0, 6}}, "0 x 0 elements; 4 x 6 are needed"},
        {{.n_dims = 1, .dims = {24}}, "24 x 1 elements; 4 x 6 are needed"},
        {{.n_dims = 0}, "1 x 1 elements; 4 x 6 are needed"},
    };
    for (size_t i = 0; i <= ARRAY_LEN(CASES); i++) {
        tensor shape = CASES[i % ARRAY_LEN(CASES)].shape, t = {0};
        const tensor_source from = {find_shaped, &shape};
        vit_loader l = {.tensors = &from, .prefix = "visual.", .memory = arena_create(1 << 16), .detail = &d};
        const bool is_missing = i == ARRAY_LEN(CASES);
        char says[128] = "";
        d = (err_detail){0};
        vit_load_matrix(&l, &t, 4, 6, "", is_missing ? "std_scale" : "std_bias");
        if (is_missing) {
            snprintf(says, sizeof says, "tensor visual.std_scale is missing");
        } else if (CASES[i].says[0]) {
            snprintf(says, sizeof says, "tensor visual.std_bias has %s", CASES[i].says);
        }
        CHECK_STR(d.text, says);
        CHECK_INT(l.err, is_missing ? ERR_NOT_FOUND : says[0] ? ERR_INVALID : ERR_OK);
        CHECK(says[0] || (t.n_dims == 2 && t.dims[0] == 4 && t.dims[1] == 6 && t.data));
        /* The first fault is kept, and nothing is asked for behind it. */
        CHECK((vit_load_ones(&l, 3) != NULL) == !says[0]);
        (void)vit_load_f32(&l, 1, 1, "", "other");
        CHECK_INT(l.err, says[0] ? (is_missing ? ERR_NOT_FOUND : ERR_INVALID) : ERR_NOT_FOUND);
        CHECK(!says[0] || strcmp(d.text, says) == 0);
        arena_destroy(l.memory);
    }
}

/* Each product of a tower once, in their order, and none behind the last. */
static void test_linears(void)
{
    for (int32_t n_deepstack = 0; n_deepstack < 3; n_deepstack++) {
        static vit_block blocks[2];
        static vit_parts p;
        p = (vit_parts){.config = {.depth = 2, .n_deepstack = n_deepstack}, .blocks = blocks};
        size_t i = 0;
        for (vit_block *b = blocks; b < blocks + 2; b++) {
            vit_linear *const of_block[] = {&b->qkv[0], &b->qkv[1], &b->qkv[2], &b->proj,
                                            &b->gate,   &b->up,     &b->down};
            for (size_t k = 0; k < ARRAY_LEN(of_block); k++) {
                CHECK(vit_linear_at(&p, i++) == of_block[k]);
            }
        }
        for (int32_t k = -1; k < n_deepstack; k++) {
            vit_merger *m = k < 0 ? &p.merger : &p.deepstack[k];
            CHECK(vit_linear_at(&p, i++) == &m->fc1);
            CHECK(vit_linear_at(&p, i++) == &m->fc2);
        }
        CHECK(vit_linear_at(&p, i++) == &p.projection);
        CHECK(!vit_linear_at(&p, i) && !vit_linear_at(&p, i + 1));
    }
}

static err_code read_config_text(void *ctx, const char *name, json_doc **out, err_detail *detail)
{
    const char *text = ctx;
    CHECK_STR(name, "config.json");
    *out = NULL;
    return text ? json_parse(out, text, strlen(text), LIMIT_JSON_DEPTH, detail) : ERR_OK;
}

static bool find_first(void *ctx, const char *name, tensor *out)
{
    const char *wanted = ctx;
    *out = (tensor){0};
    return wanted && strcmp(name, wanted) == 0;
}

/* A folder without a config, or one that has no tower; how the tensors are called; and which family reads it. */
static void test_open(void)
{
    static const struct {
        const char *config, *tensor, *says;
    } CASES[] = {
        {NULL, NULL, "memory: there is no config.json"},
        {"{}", NULL, "config.json: there is no vision_config"},
        {"{\"model_type\":\"qwen2_vl\"}", NULL, "config.json: there is no vision_config"},
        {"{\"vision_config\":{}}", NULL, "config.json: vision_config.depth is missing or out of range"},
        {"{\"vision_config\":{\"model_type\":\"gemma4_vision\"}}", NULL,
         "config.json: vision_config.num_hidden_layers is missing or out of range"},
        {"{\"model_type\":\"gemma4_vision\",\"vision_config\":{}}", NULL,
         "config.json: vision_config.num_hidden_layers is missing or out of range"},
        {"{\"vision_config\":{\"model_type\":\"qwen2_vl\"}}", NULL,
         "config.json: vision_config.intermediate_size is missing or out of range"},
        {"{\"model_type\":\"qwen2_vl\",\"vision_config\":{\"embed_dim\":64,\"hidden_size\":64,\"mlp_ratio\":"
         "2,\"num_heads\":4}}",
         NULL, "tensor model.visual.patch_embed.proj.weight is missing"},
        {"{\"model_type\":\"qwen2_vl\",\"vision_config\":{\"embed_dim\":64,\"hidden_size\":64,\"mlp_ratio\":"
         "2,\"num_heads\":4}}",
         "visual.patch_embedder.input_proj.weight", "tensor visual.patch_embed.proj.weight is missing"},
        {"{\"model_type\":\"qwen2_vl\",\"vision_config\":{\"embed_dim\":64,\"hidden_size\":64,\"mlp_ratio\":"
         "2,\"num_heads\":4}}",
         "visual.patch_embed.proj.weight",
         "tensor visual.patch_embed.proj.weight has 1 x 1 elements; 64 x 1176 are needed"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        const json_source docs = {
            .read = read_config_text, .ctx = (void *)CASES[i].config, .where = "memory"};
        const tensor_source tensors = {find_first, (void *)CASES[i].tensor};
        vit *v = NULL;
        d = (err_detail){0};
        CHECK(vit_open(&v, docs, &tensors, NULL, &d) != ERR_OK && !v);
        CHECK_STR(d.text, CASES[i].says);
    }
}

int main(void)
{
    test_numbers();
    test_kinds();
    test_misfits();
    test_deepstack();
    test_types();
    test_shapes();
    test_linears();
    test_open();
    CHECK_DONE();
}
