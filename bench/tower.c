/* tower: the vision encoder of Qwen3.5-0.8B's shape with random weights, as stored (bf16) and in 8 bits, in turns:
 * time, processor time and the share of the float32 limit, medians; and how alike their features are.
 *
 *     build/bench_tower [threads [rounds [rows columns [frames]]]]      # patches, 64 64; frames, 1
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/compiler.h"
#include "base/json.h"
#include "base/limits.h"
#include "compute/formats/quant.h"
#include "compute/kernels/cpu.h"
#include "compute/kernels/ops.h"
#include "vision/vit.h"

enum { DEPTH = 12, WIDTH = 768, FFN = 3072, OUT = 1024, PATCH = 1536, MOST_ROUNDS = 32, N_NOISE = 1 << 24 };

static const char CONFIG[] =
    "{\"torch_dtype\":\"bfloat16\",\"vision_config\":{\"model_type\":\"qwen3_5_vision\",\"depth\":12,"
    "\"hidden_size\":768,\"intermediate_size\":3072,\"num_heads\":12,\"out_hidden_size\":1024}}";

static err_code read_config(void *ctx, const char *name, json_doc **out, err_detail *detail)
{
    (void)ctx;
    (void)name;
    return json_parse(out, CONFIG, sizeof CONFIG - 1, LIMIT_JSON_DEPTH, detail);
}

/* A tensor of noise whose rows keep the size of what they multiply. */
static bool find_tensor(void *ctx, const char *name, tensor *out)
{
    static const struct {
        const char *part;
        size_t rows, columns;
    } parts[] = {{"attn.qkv.weight", 3 * WIDTH, WIDTH},
                 {"attn.proj.weight", WIDTH, WIDTH},
                 {"mlp.linear_fc1.weight", FFN, WIDTH},
                 {"mlp.linear_fc2.weight", WIDTH, FFN},
                 {"merger.linear_fc1.weight", FFN, FFN},
                 {"merger.linear_fc2.weight", OUT, FFN},
                 {"patch_embed.proj.weight", WIDTH, PATCH},
                 {"pos_embed.weight", 2304, WIDTH},
                 {"attn.qkv.bias", 3 * WIDTH, 1},
                 {"mlp.linear_fc1.bias", FFN, 1},
                 {"merger.linear_fc1.bias", FFN, 1},
                 {"merger.linear_fc2.bias", OUT, 1},
                 {"norm.weight", WIDTH, 1},
                 {"norm1.weight", WIDTH, 1},
                 {"norm2.weight", WIDTH, 1},
                 {"bias", WIDTH, 1}};
    static uint16_t ones[WIDTH];
    const size_t len = strlen(name);
    for (size_t i = 0; i < WIDTH; i++) {
        ones[i] = 0x3f80;
    }
    if (strncmp(name, "visual.", strlen("visual.")) != 0) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const size_t n = strlen(parts[i].part), values = parts[i].rows * parts[i].columns;
        if (len >= n && strcmp(name + len - n, parts[i].part) == 0) {
            *out = (tensor){.type = DTYPE_BF16,
                            .n_dims = 2,
                            .dims = {parts[i].rows, parts[i].columns},
                            .data =
                                strstr(parts[i].part, "norm")
                                    ? ones
                                    : (const uint16_t *)ctx + (len * 977 + (size_t)name[len / 2] * 13) % 4096,
                            .bytes = 2 * values};
            return true;
        }
    }
    return false;
}

/* Normal numbers of variance 1 / WIDTH as bf16, from sums of uniform ones. */
static uint16_t *make_noise(void)
{
    uint16_t *noise = malloc(N_NOISE * sizeof *noise);
    uint32_t state = 1;
    for (size_t i = 0; noise && i < N_NOISE; i++) {
        float sum = -2.0f;
        for (int k = 0; k < 4; k++) {
            state = state * 1664525u + 1013904223u;
            sum += (float)(state >> 8) / 16777216.0f;
        }
        const float x = sum * sqrtf(3.0f / WIDTH);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        noise[i] = (uint16_t)(bits >> 16);
    }
    return noise;
}

typedef struct tower {
    const char *name;
    vit *v;
    void *matrices;
    float *out;
    double wall[MOST_ROUNDS], processor[MOST_ROUNDS];
} tower;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double processor_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + 1e-6 * (double)u.ru_utime.tv_usec;
}

/* The limit of a core by processor time: other programs do not lower it. */
static double core_gflops(void)
{
    enum { ROUNDS = 1 << 22 };
    const double start = processor_s();
    const float sum = ops_select(cpu_flags())->peak_f32(ROUNDS);
    const double time = processor_s() - start;
    return sum != 0 ? 1e-9 * ROUNDS * PEAK_F32_FLOPS / time : 0; /* so that it is computed */
}

/* False if out of memory. */
static bool quantize(tower *t, compute *c)
{
    size_t total = 0, at = 0;
    const tensor *w;
    for (size_t i = 0; (w = vit_matrix(t->v, i)); i++) {
        total += w->data ? w->dims[0] * quant_row_bytes(DTYPE_Q8, w->dims[1]) : 0;
    }
    t->matrices = compute_alloc(c, total);
    for (size_t i = 0; t->matrices && (w = vit_matrix(t->v, i)); i++) {
        if (w->data) {
            tensor q = {DTYPE_Q8, 2, {w->dims[0], w->dims[1]}, (unsigned char *)t->matrices + at, 0};
            q.bytes = w->dims[0] * quant_row_bytes(DTYPE_Q8, w->dims[1]);
            nn_quantize(c, (unsigned char *)t->matrices + at, DTYPE_Q8, w);
            *vit_matrix(t->v, i) = q;
            at += q.bytes;
        }
    }
    return t->matrices != NULL;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, compare);
    return x[n / 2];
}

static void read_rows(const void *ctx, float *rows, size_t first, size_t n)
{
    (void)ctx;
    for (size_t i = 0; i < n * PATCH; i++) {
        const size_t at = first * PATCH + i;
        rows[i] = sinf((float)(at % 48271) * 0.013f + (float)(at / PATCH % 61) * 0.3f);
    }
}

static void report(tower *t, size_t n_rounds, double gflop, double limit, size_t n_threads)
{
    const double wall = median(t->wall, n_rounds), processor = median(t->processor, n_rounds);
    printf("%-5s %8.1f ms, %8.1f ms of the processor; %.2f of the float32 limit, %.2f by processor time\n",
           t->name, wall * 1e3, processor * 1e3, gflop / wall / limit,
           gflop / (processor / (double)n_threads) / limit);
}

/* The least and the mean cosine of rows. */
static void compare_features(const tower *a, const tower *b, size_t n_rows)
{
    double least = 1, sum = 0;
    for (size_t r = 0; r < n_rows; r++) {
        double xy = 0, xx = 0, yy = 0;
        for (size_t i = r * OUT; i < (r + 1) * OUT; i++) {
            xy += (double)a->out[i] * (double)b->out[i];
            xx += (double)a->out[i] * (double)a->out[i];
            yy += (double)b->out[i] * (double)b->out[i];
        }
        const double cosine = xy / sqrt(xx * yy);
        least = cosine < least ? cosine : least;
        sum += cosine;
    }
    printf("cosine of the features: %.6f, at least %.6f\n", sum / (double)n_rows, least);
}

static double number(int argc, char **argv, int i, double otherwise)
{
    return argc > i ? strtod(argv[i], NULL) : otherwise;
}

int main(int argc, char **argv)
{
    const compute_options opt = {
        .n_threads = (size_t)number(argc, argv, 1, 0), .cpu_mask = ~0u, .fast = true};
    const size_t n_rounds = (size_t)fmin(number(argc, argv, 2, 5), MOST_ROUNDS);
    const int32_t h = (int32_t)number(argc, argv, 3, 64), w = (int32_t)number(argc, argv, 4, 64),
                  frames = (int32_t)number(argc, argv, 5, 1);
    const size_t n = (size_t)h * (size_t)w;
    uint16_t *noise = make_noise();
    const tensor_source tensors = {.find = find_tensor, .ctx = noise};
    tower towers[] = {{.name = "bf16"}, {.name = "q8"}};
    double limit = 0;
    compute *c = NULL;
    err_detail d = {0};
    err_code err = noise ? compute_create(&c, &opt, &d) : ERR_NOMEM;
    for (size_t i = 0; !err && i < ARRAY_LEN(towers); i++) {
        towers[i].out = malloc((size_t)frames * n / 4 * OUT * sizeof *towers[i].out);
        err = towers[i].out ? vit_open(&towers[i].v, (json_source){.read = read_config, .where = "built in"},
                                       &tensors, c, &d)
                            : ERR_NOMEM;
        const double start = processor_s();
        if (!err && i == 1) {
            err = quantize(&towers[i], c) ? ERR_OK : ERR_NOMEM;
            printf("%s; quantized in %.2f s of the processor\n", compute_describe(c), processor_s() - start);
        }
    }
    for (size_t round = 0; !err && round < n_rounds; round++) {
        limit = fmax(limit, core_gflops() * (double)compute_n_threads(c));
        for (size_t i = 0; !err && i < ARRAY_LEN(towers); i++) {
            const double wall = now_s(), processor = processor_s();
            err = vit_encode(towers[i].v, c, towers[i].out, NULL, &(vit_rows){.read = read_rows}, frames, h,
                             w, &d);
            towers[i].wall[round] = now_s() - wall;
            towers[i].processor[round] = processor_s() - processor;
        }
    }
    if (err) {
        fprintf(stderr, "%s\n", d.text[0] ? d.text : "there is not enough memory");
        return 1;
    }
    const double linear =
        DEPTH * 2.0 * WIDTH * (4 * WIDTH + 2 * FFN) + 2.0 * WIDTH * PATCH + 0.5 * FFN * (FFN + OUT);
    const double gflop = 1e-9 * (double)n * frames * (linear + DEPTH * 4.0 * WIDTH * (double)n);
    printf("%d x %d x %d patches, %.0f GFLOP\n", frames, h, w, gflop);
    for (size_t i = 0; i < ARRAY_LEN(towers); i++) {
        report(&towers[i], n_rounds, gflop, limit, compute_n_threads(c));
    }
    printf("q8 / bf16: %.2f, %.2f by processor time\n",
           towers[1].wall[n_rounds / 2] / towers[0].wall[n_rounds / 2],
           towers[1].processor[n_rounds / 2] / towers[0].processor[n_rounds / 2]);
    compare_features(&towers[0], &towers[1], (size_t)frames * n / 4);
    for (size_t i = 0; i < ARRAY_LEN(towers); i++) {
        vit_close(towers[i].v);
        compute_free(c, towers[i].matrices);
        free(towers[i].out);
    }
    compute_destroy(c);
    free(noise);
    return 0;
}
