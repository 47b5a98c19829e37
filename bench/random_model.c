/* random_model: a checkpoint folder of a real Qwen3.5 shape with random weights, so that speed can
 * be measured without a download. What it says is noise; what it costs is real. a3b has the layers
 * of 35B-A3B, but four of them and a quarter of the experts: a token goes through as many of each
 * layer.
 *
 *     build/random_model --shape 0.8b|2b|4b|9b|a3b|seedling [--seed N] [--layers N] [--experts N] OUT
 *
 * --layers: a shallower model of that shape, a multiple of 4. --experts: another number of them (a3b).
 * Weights are bf16, normal with deviation 0.02 (norms as after initialisation), so that activations
 * stay finite. The tokenizer is the small one of the tests: ids beyond it exist in the head and are
 * never produced.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_MAX_LEN = 96, TENSORS_MAX = 1200, PATCH = 16, FRAMES = 2, MERGE = 2 };

typedef struct shape {
    const char *name;
    int vocab, width, layers, ffn, heads, kv_heads, head_dim;
    int delta_k, delta_v, delta_dim; /* heads for keys and values, size of both */
    bool tied;
    int section[3], positions; /* rotary pairs of time, height, width */
    double theta;
    int vision_layers, vision_width, vision_ffn, vision_heads, vision_positions;
    int experts, experts_used, expert_ffn; /* 0: dense; the shared expert is as wide as the others */
} shape;

static const shape SHAPES[] = {
    {"0.8b",       248320, 1024, 24, 3584, 8,    2,  256,  16, 16, 128, true,
     {11, 11, 10}, 262144, 1e7,  12, 768,  3072, 12, 2304, 0,  0,  0},
    {"2b",         248320, 2048, 24, 6144, 8,    2,  256,  16, 16, 128, true,
     {11, 11, 10}, 262144, 1e7,  24, 1024, 4096, 16, 2304, 0,  0,  0},
    {"4b",         248320, 2560, 32, 9216, 16,   4,  256,  16, 32, 128, true,
     {11, 11, 10}, 262144, 1e7,  24, 1024, 4096, 16, 2304, 0,  0,  0},
    {"9b",         248320, 4096, 32, 12288, 16,   4,  256,  16, 32, 128, false,
     {11, 11, 10}, 262144, 1e7,  27, 1152,  4304, 16, 2304, 0,  0,  0},
    {"a3b",        65536,  2048, 4,  0,   16,   2,  256,  16, 32, 128, false,
     {11, 11, 10}, 262144, 1e7,  12, 768, 3072, 12, 2304, 64, 8,  512},
    {"seedling", 3072,  384, 8, 832, 6,    2, 64,  6, 6, 64, true,
     {3, 3, 2},  32768, 1e4, 8, 256, 1024, 4, 576, 0, 0, 0},
};

/* How a tensor's values are drawn. */
typedef enum filling { NORMAL, ZEROS, ONES, DECAYS, TAPS } filling;

typedef struct tensor_plan {
    char name[NAME_MAX_LEN];
    uint64_t dims[5];
    int n_dims;
    filling how;
} tensor_plan;

typedef struct plan {
    tensor_plan tensors[TENSORS_MAX];
    size_t n;
} plan;

static uint64_t n_values(const tensor_plan *t)
{
    uint64_t n = 1;
    for (int i = 0; i < t->n_dims; i++) {
        n *= t->dims[i];
    }
    return n;
}

static void die(const char *what, const char *path)
{
    fprintf(stderr, "random_model: %s %s: %s\n", what, path, strerror(errno));
    exit(1);
}

/* ---- the list of tensors ---- */

/* Adds "prefix" + "name" with one or two dimensions (cols 0: one). */
static tensor_plan *add(plan *p, const char *prefix, const char *name, filling how, int rows, int cols)
{
    if (p->n == TENSORS_MAX) {
        fprintf(stderr, "random_model: more than %d tensors\n", TENSORS_MAX);
        exit(1);
    }
    tensor_plan *t = &p->tensors[p->n++];
    *t = (tensor_plan){.dims = {(uint64_t)rows, (uint64_t)cols}, .n_dims = cols ? 2 : 1, .how = how};
    if (snprintf(t->name, sizeof t->name, "%s%s", prefix, name) >= (int)sizeof t->name) {
        fprintf(stderr, "random_model: a tensor's name is too long\n");
        exit(1);
    }
    return t;
}

static void add_attention(plan *p, const shape *s, const char *prefix)
{
    add(p, prefix, "self_attn.q_proj.weight", NORMAL, s->heads * 2 * s->head_dim, s->width);
    add(p, prefix, "self_attn.k_proj.weight", NORMAL, s->kv_heads * s->head_dim, s->width);
    add(p, prefix, "self_attn.v_proj.weight", NORMAL, s->kv_heads * s->head_dim, s->width);
    add(p, prefix, "self_attn.o_proj.weight", NORMAL, s->width, s->heads * s->head_dim);
    add(p, prefix, "self_attn.q_norm.weight", ZEROS, s->head_dim, 0);
    add(p, prefix, "self_attn.k_norm.weight", ZEROS, s->head_dim, 0);
}

static void add_deltanet(plan *p, const shape *s, const char *prefix)
{
    const int keys = s->delta_k * s->delta_dim, values = s->delta_v * s->delta_dim,
              channels = 2 * keys + values;
    add(p, prefix, "linear_attn.in_proj_qkv.weight", NORMAL, channels, s->width);
    add(p, prefix, "linear_attn.in_proj_z.weight", NORMAL, values, s->width);
    add(p, prefix, "linear_attn.in_proj_b.weight", NORMAL, s->delta_v, s->width);
    add(p, prefix, "linear_attn.in_proj_a.weight", NORMAL, s->delta_v, s->width);
    tensor_plan *conv = add(p, prefix, "linear_attn.conv1d.weight", TAPS, channels, 1);
    conv->dims[2] = 4;
    conv->n_dims = 3;
    add(p, prefix, "linear_attn.A_log", DECAYS, s->delta_v, 0);
    add(p, prefix, "linear_attn.dt_bias", NORMAL, s->delta_v, 0);
    add(p, prefix, "linear_attn.norm.weight", ONES, s->delta_dim, 0);
    add(p, prefix, "linear_attn.out_proj.weight", NORMAL, s->width, values);
}

static void add_ffn(plan *p, const char *prefix, const char *name, int ffn, int width)
{
    char both[NAME_MAX_LEN];
    snprintf(both, sizeof both, "%s%s", prefix, name);
    add(p, both, "gate_proj.weight", NORMAL, ffn, width);
    add(p, both, "up_proj.weight", NORMAL, ffn, width);
    add(p, both, "down_proj.weight", NORMAL, width, ffn);
}

static void add_experts(plan *p, const shape *s, const char *prefix)
{
    const int ffn = s->expert_ffn;
    add(p, prefix, "mlp.gate.weight", NORMAL, s->experts, s->width);
    tensor_plan *in = add(p, prefix, "mlp.experts.gate_up_proj", NORMAL, s->experts, 2 * ffn);
    tensor_plan *out = add(p, prefix, "mlp.experts.down_proj", NORMAL, s->experts, s->width);
    in->dims[2] = (uint64_t)s->width;
    out->dims[2] = (uint64_t)ffn;
    in->n_dims = out->n_dims = 3;
    add_ffn(p, prefix, "mlp.shared_expert.", ffn, s->width);
    add(p, prefix, "mlp.shared_expert_gate.weight", NORMAL, 1, s->width);
}

static void add_layer(plan *p, const shape *s, const char *prefix, bool attention)
{
    add(p, prefix, "input_layernorm.weight", ZEROS, s->width, 0);
    add(p, prefix, "post_attention_layernorm.weight", ZEROS, s->width, 0);
    if (attention) {
        add_attention(p, s, prefix);
    } else {
        add_deltanet(p, s, prefix);
    }
    s->experts ? add_experts(p, s, prefix) : add_ffn(p, prefix, "mlp.", s->ffn, s->width);
}

static void add_text(plan *p, const shape *s)
{
    add(p, "model.language_model.", "embed_tokens.weight", NORMAL, s->vocab, s->width);
    for (int i = 0; i < s->layers; i++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "model.language_model.layers.%d.", i);
        add_layer(p, s, prefix, i % 4 == 3);
    }
    add(p, "model.language_model.", "norm.weight", ZEROS, s->width, 0);
    if (!s->tied) {
        add(p, "", "lm_head.weight", NORMAL, s->vocab, s->width);
    }
    add(p, "mtp.", "fc.weight", NORMAL, s->width, 2 * s->width);
    add(p, "mtp.", "pre_fc_norm_embedding.weight", ZEROS, s->width, 0);
    add(p, "mtp.", "pre_fc_norm_hidden.weight", ZEROS, s->width, 0);
    add_layer(p, s, "mtp.layers.0.", true);
    add(p, "mtp.", "norm.weight", ZEROS, s->width, 0);
}

/* A linear layer or a norm with bias of the vision tower; in 0: a norm. */
static void add_biased(plan *p, const char *prefix, const char *name, int out, int in)
{
    char both[NAME_MAX_LEN];
    snprintf(both, sizeof both, "%s%s", prefix, name);
    add(p, both, ".weight", in ? NORMAL : ONES, out, in);
    add(p, both, ".bias", ZEROS, out, 0);
}

static void add_vision(plan *p, const shape *s)
{
    const char *top = "model.visual.";
    const int w = s->vision_width, merged = w * MERGE * MERGE;
    add_biased(p, top, "patch_embed.proj", w, 3);
    tensor_plan *patch = &p->tensors[p->n - 2];
    patch->dims[2] = FRAMES;
    patch->dims[3] = patch->dims[4] = PATCH;
    patch->n_dims = 5;
    add(p, top, "pos_embed.weight", NORMAL, s->vision_positions, w);
    for (int i = 0; i < s->vision_layers; i++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "%sblocks.%d.", top, i);
        add_biased(p, prefix, "norm1", w, 0);
        add_biased(p, prefix, "norm2", w, 0);
        add_biased(p, prefix, "attn.qkv", 3 * w, w);
        add_biased(p, prefix, "attn.proj", w, w);
        add_biased(p, prefix, "mlp.linear_fc1", s->vision_ffn, w);
        add_biased(p, prefix, "mlp.linear_fc2", w, s->vision_ffn);
    }
    add_biased(p, top, "merger.norm", w, 0);
    add_biased(p, top, "merger.linear_fc1", merged, merged);
    add_biased(p, top, "merger.linear_fc2", s->width, merged);
}

/* ---- values ---- */

/* splitmix64: good enough for weights, and the same on every machine. */
static uint64_t next_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Four 16-bit numbers added: near enough to a normal distribution; deviation 1. */
static float next_normal(uint64_t *state)
{
    const uint64_t b = next_bits(state);
    const int32_t sum = (int32_t)((b & 0xffff) + (b >> 16 & 0xffff) + (b >> 32 & 0xffff) + (b >> 48));
    return (float)(sum - 2 * 0xffff) * (1.0f / 37837.2f);
}

static uint16_t to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float next_value(filling how, uint64_t *state)
{
    switch (how) {
    case NORMAL:
        return 0.02f * next_normal(state);
    case ONES:
        return 1.0f;
    case DECAYS: /* A in 1 .. 16, as layers start before training */
        return logf(1.0f + 15.0f * (float)(next_bits(state) >> 40) * 0x1p-24f);
    case TAPS:
        return 0.3f * next_normal(state);
    case ZEROS:
        break;
    }
    return 0.0f;
}

static void write_values(FILE *f, const tensor_plan *t, uint64_t *state)
{
    enum { BLOCK = 1 << 15 };
    static uint16_t block[BLOCK];
    for (uint64_t left = n_values(t); left > 0;) {
        size_t n = left < BLOCK ? (size_t)left : BLOCK;
        for (size_t i = 0; i < n; i++) {
            block[i] = to_bf16(next_value(t->how, state));
        }
        if (fwrite(block, sizeof block[0], n, f) != n) {
            return; /* close_file reports it */
        }
        left -= n;
    }
}

/* ---- files ---- */

static FILE *open_file(const char *dir, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    if (!f) {
        die("cannot write", path);
    }
    /* Written in large pieces, a file may be kept in huge pages. One is open at a time. */
    static char buffer[8 << 20];
    setvbuf(f, buffer, _IOFBF, sizeof buffer);
    return f;
}

static void close_file(FILE *f, const char *name)
{
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad) {
        die("cannot write", name);
    }
}

static void write_weights(const char *dir, const plan *p, uint64_t seed)
{
    FILE *f = open_file(dir, "model.safetensors");
    char *header = NULL;
    size_t len = 0;
    FILE *h = open_memstream(&header, &len);
    if (!h) {
        die("no memory for", "the header");
    }
    uint64_t at = 0;
    for (size_t i = 0; i < p->n; i++) {
        const tensor_plan *t = &p->tensors[i];
        fprintf(h, "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[", i ? "," : "{", t->name);
        for (int d = 0; d < t->n_dims; d++) {
            fprintf(h, "%s%llu", d ? "," : "", (unsigned long long)t->dims[d]);
        }
        const uint64_t end = at + 2 * n_values(t);
        fprintf(h, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at, (unsigned long long)end);
        at = end;
    }
    fputc('}', h);
    while (ftell(h) % 64 != 56) { /* data starts at a multiple of 64 */
        fputc(' ', h);
    }
    fclose(h);
    unsigned char length[8];
    for (int i = 0; i < 8; i++) {
        length[i] = (unsigned char)((uint64_t)len >> 8 * i);
    }
    fwrite(length, 1, sizeof length, f);
    fwrite(header, 1, len, f);
    free(header);
    uint64_t state = seed;
    for (size_t i = 0; i < p->n; i++) {
        write_values(f, &p->tensors[i], &state);
    }
    close_file(f, "model.safetensors");
    printf("%zu tensors, %.1f M parameters, %.2f GB\n", p->n, (double)at / 2e6, (double)at / 1e9);
}

static void write_config(const char *dir, const shape *s)
{
    FILE *f = open_file(dir, "config.json");
    fprintf(f,
            "{\"architectures\":[\"Qwen3_5ForConditionalGeneration\"],\"model_type\":\"%s\","
            "\"dtype\":\"bfloat16\",\"image_token_id\":1812,\"video_token_id\":1813,"
            "\"vision_start_token_id\":1809,\"vision_end_token_id\":1810,\"tie_word_embeddings\":%s,\n",
            s->experts ? "qwen3_5_moe" : "qwen3_5", s->tied ? "true" : "false");
    fprintf(f,
            "\"text_config\":{\"model_type\":\"qwen3_5_text\",\"vocab_size\":%d,\"hidden_size\":%d,"
            "\"intermediate_size\":%d,\"num_hidden_layers\":%d,\"num_attention_heads\":%d,"
            "\"num_key_value_heads\":%d,\"head_dim\":%d,\"hidden_act\":\"silu\",\"attention_bias\":false,\n",
            s->vocab, s->width, s->ffn, s->layers, s->heads, s->kv_heads, s->head_dim);
    if (s->experts) {
        fprintf(f,
                "\"num_experts\":%d,\"num_experts_per_tok\":%d,\"moe_intermediate_size\":%d,"
                "\"shared_expert_intermediate_size\":%d,\n",
                s->experts, s->experts_used, s->expert_ffn, s->expert_ffn);
    }
    fprintf(f,
            "\"full_attention_interval\":4,\"linear_conv_kernel_dim\":4,\"linear_num_key_heads\":%d,"
            "\"linear_num_value_heads\":%d,\"linear_key_head_dim\":%d,\"linear_value_head_dim\":%d,"
            "\"max_position_embeddings\":%d,\"rms_norm_eps\":1e-6,\"mtp_num_hidden_layers\":1,"
            "\"eos_token_id\":1802,\"tie_word_embeddings\":%s,\n",
            s->delta_k, s->delta_v, s->delta_dim, s->delta_dim, s->positions, s->tied ? "true" : "false");
    fprintf(
        f,
        "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":%.1f,\"partial_rotary_factor\":0.25,"
        "\"mrope_section\":[%d,%d,%d],\"mrope_interleaved\":true}},\n",
        s->theta, s->section[0], s->section[1], s->section[2]);
    fprintf(
        f,
        "\"vision_config\":{\"model_type\":\"qwen3_5_vision\",\"depth\":%d,\"hidden_size\":%d,"
        "\"intermediate_size\":%d,\"num_heads\":%d,\"in_channels\":3,\"hidden_act\":\"gelu_pytorch_tanh\","
        "\"num_position_embeddings\":%d,\"out_hidden_size\":%d,\"patch_size\":%d,\"spatial_merge_size\":%d,"
        "\"temporal_patch_size\":%d}}\n",
        s->vision_layers, s->vision_width, s->vision_ffn, s->vision_heads, s->vision_positions, s->width,
        PATCH, MERGE, FRAMES);
    close_file(f, "config.json");
}

static void write_small_files(const char *dir)
{
    static const char IMAGE[] =
        "\"do_convert_rgb\":true,\"do_normalize\":true,\"do_rescale\":true,\"do_resize\":true,"
        "\"image_mean\":[0.5,0.5,0.5],\"image_std\":[0.5,0.5,0.5],\"rescale_factor\":0.00392156862745098,"
        "\"resample\":3,\"patch_size\":16,\"merge_size\":2,\"temporal_patch_size\":2,";
    FILE *f = open_file(dir, "preprocessor_config.json");
    fprintf(f, "{%s\"size\":{\"longest_edge\":16777216,\"shortest_edge\":65536}}\n", IMAGE);
    close_file(f, "preprocessor_config.json");
    f = open_file(dir, "video_preprocessor_config.json");
    fprintf(f,
            "{%s\"do_sample_frames\":true,\"fps\":2,\"min_frames\":4,\"max_frames\":768,"
            "\"size\":{\"longest_edge\":25165824,\"shortest_edge\":4096}}\n",
            IMAGE);
    close_file(f, "video_preprocessor_config.json");
    f = open_file(dir, "generation_config.json");
    fputs(
        "{\"eos_token_id\":[1802,1800],\"do_sample\":true,\"temperature\":1.0,\"top_k\":20,\"top_p\":0.95}\n",
        f);
    close_file(f, "generation_config.json");
    f = open_file(dir, "tokenizer_config.json");
    fputs("{\"eos_token\":\"<|im_end|>\",\"pad_token\":\"<|endoftext|>\"}\n", f);
    close_file(f, "tokenizer_config.json");
}

static void copy_file(const char *from, const char *dir, const char *name)
{
    FILE *in = fopen(from, "rb");
    if (!in) {
        die("cannot read", from);
    }
    FILE *out = open_file(dir, name);
    char block[1 << 14];
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;) {
        fwrite(block, 1, n, out);
    }
    fclose(in);
    close_file(out, name);
}

static const shape *find_shape(const char *name)
{
    for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++) {
        if (strcmp(SHAPES[i].name, name) == 0) {
            return &SHAPES[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const shape *s = NULL;
    const char *dir = NULL;
    uint64_t seed = 1;
    long layers = 0, experts = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--shape") == 0 && i + 1 < argc) {
            s = find_shape(argv[++i]);
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--layers") == 0 && i + 1 < argc) {
            layers = strtol(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--experts") == 0 && i + 1 < argc) {
            experts = strtol(argv[++i], NULL, 10);
        } else {
            dir = argv[i];
        }
    }
    if (!s || !dir || dir[0] == '-' || layers < 0 || layers > s->layers || layers % 4 != 0 || experts < 0 ||
        experts > 1024 || (experts > 0 && experts < s->experts_used)) {
        fprintf(stderr, "usage: random_model --shape 0.8b|2b|4b|9b|a3b|seedling [--seed N] [--layers N] "
                        "[--experts N] OUT\n");
        return 2;
    }
    shape shallow = *s;
    shallow.layers = layers ? (int)layers : s->layers;
    shallow.experts = experts && s->experts ? (int)experts : s->experts;
    s = &shallow;
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        die("cannot make", dir);
    }
    static plan p;
    add_text(&p, s);
    add_vision(&p, s);
    write_config(dir, s);
    write_small_files(dir);
    copy_file(PARLEY_SOURCE_DIR "/tests/data/tiny/tokenizer.json", dir, "tokenizer.json");
    copy_file(PARLEY_SOURCE_DIR "/tools/seedling/chat_template.jinja", dir, "chat_template.jinja");
    write_weights(dir, &p, seed);
    return 0;
}
