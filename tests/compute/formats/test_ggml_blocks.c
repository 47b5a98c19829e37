/* The block types of GGUF files: every table reads a row as the packing code meant it, bit for bit;
 * products are those of the specification, bit for bit, near the product of the floats, and the
 * same alone and in company; bytes of a known pattern mean what another implementation of the
 * formats made of them. */
#include "compute/formats/ggml_blocks.h"

#include "base/compiler.h"
#include "compute/nn.h"
#include "tests/check.h"
#include "tests/compute/levels.h"
#include "tests/compute/formats/ggml_pack.h"
#include "tests/compute/rng.h"

enum { MAX_K = 1536, MAX_N = 7, MAX_T = 9 };

static const ops *tables[8];
static size_t n_tables;

/* Numbers of very different size, a block of zeros, one that stands out. */
static void fill_row(float *w, size_t K, size_t n)
{
    for (size_t k = 0; k < K; k++) {
        w[k] = rng_f32() * 0.05f * (float)(1 + k / 32 % 5);
    }
    if (n == 1) {
        memset(w, 0, (K < 64 ? K : 64) * sizeof *w);
    }
    if (n == 2) {
        w[K / 2] = 3;
    }
}

static void test_type(dtype type, size_t T, size_t N, size_t K)
{
    static float w[MAX_K], kept[MAX_N][MAX_K], wide[MAX_K], x[MAX_T * MAX_K];
    static float expected[MAX_T * MAX_N], found[MAX_T * (MAX_N + 1) + 1];
    const size_t row_bytes = ggml_row_bytes(type, K), x_bytes = quant_x_bytes(K);
    /* Rows begin at any byte. */
    uint8_t *memory = malloc(N * row_bytes + 1), *rows = memory + 1, *packed = calloc(T, x_bytes);
    for (size_t n = 0; n < N; n++) {
        fill_row(w, K, n);
        ggml_pack(rows + n * row_bytes, kept[n], type, w, K);
    }
    rng_fill(x, T * K, 2);
    for (size_t t = 0; t < T; t++) {
        quant_x row = quant_x_at(packed, K, t);
        tables[0]->quantize_x(&row, x + t * K, K);
    }
    for (size_t i = 0; i < n_tables; i++) {
        const ggml_kernels *kernels = ggml_kernels_of(tables[i]->ggml, type);
        for (size_t n = 0; n < N; n++) {
            kernels->widen(wide, rows + n * row_bytes, K);
            for (size_t k = 0; k < K; k++) {
                if (wide[k] != kept[n][k]) {
                    fprintf(stderr, "  %s, %s: row %zu column %zu is %.9g, not %.9g\n", tables[i]->name,
                            dtype_name(type), n, k, (double)wide[k], (double)kept[n][k]);
                    CHECK(!"widen");
                    break;
                }
            }
        }
        memset(found, 0, sizeof found);
        kernels->dot(found, N + 1, packed, T, rows, N, K);
        for (size_t t = 0; t < T; t++) {
            CHECK(found[t * (N + 1) + N] == 0); /* nothing behind the row */
            for (size_t n = 0; n < N; n++) {
                const float value = found[t * (N + 1) + n];
                if (i == 0) {
                    double sum = 0, size = 0;
                    for (size_t k = 0; k < K; k++) {
                        sum += (double)kept[n][k] * (double)x[t * K + k];
                        size += fabs((double)kept[n][k]);
                    }
                    CHECK_NEAR(value, sum, size * 2.0 / 254 + 1e-6); /* x is rounded */
                    expected[t * N + n] = value;
                }
                CHECK(memcmp(&value, &expected[t * N + n], sizeof value) == 0);
            }
        }
        /* alone: one row of x, one row of weights */
        kernels->dot(found, 1, packed + (T - 1) * x_bytes, 1, rows + (N - 1) * row_bytes, 1, K);
        CHECK(memcmp(found, &expected[T * N - 1], sizeof *found) == 0);
    }
    free(memory), free(packed);
}

/* Rows for tiles: each table gives the same bytes and scales, and they mean the numbers that were
 * packed. */
static void test_tile_rows(dtype type, size_t K)
{
    enum { MOST = 1344 };
    uint8_t row[MOST * 2], u[MOST];
    float w[MOST], kept[MOST], scale[MOST / 16], minimum[MOST / 32];
    static uint8_t first_u[MOST];
    static float first_scale[MOST / 16], first_minimum[MOST / 32];
    const bool minima = ggml_format_of(type)->minimum != 0;
    const size_t of_scale = ggml_has_halves(type) ? 16 : 32;
    fill_row(w, K, 1);
    ggml_pack(row, kept, type, w, K);
    for (size_t i = 0; i < n_tables; i++) {
        ggml_kernels_of(tables[i]->ggml, type)->unpack(u, scale, minimum, row, K);
        for (size_t k = 0; k < K; k++) {
            const float m = minima ? minimum[k / 32] : 0;
            CHECK(fmaf(scale[k / of_scale], (float)(u[k] - (minima ? 0 : 128)), m) == kept[k]);
            CHECK(!minima || !ggml_is_small(type) || u[k] <= 15);
        }
        for (size_t k = K; k < quant_columns(K); k++) { /* columns that x has zeros for */
            CHECK(isfinite(scale[k / of_scale]) && (!minima || isfinite(minimum[k / 32])));
        }
        if (i == 0) {
            memcpy(first_u, u, sizeof u);
            memcpy(first_scale, scale, sizeof scale);
            memcpy(first_minimum, minimum, sizeof minimum);
        }
        CHECK(memcmp(u, first_u, K) == 0 && memcmp(scale, first_scale, K / of_scale * sizeof *scale) == 0);
        CHECK(!minima || memcmp(minimum, first_minimum, K / 32 * sizeof *minimum) == 0);
    }
}

static void test_all_types(void)
{
    static const size_t spans[] = {256, 512, 1280}, blocks[] = {32, 64, 96, 224, 256, 288, 544, 1056};
    for (dtype type = DTYPE_Q8_0; type < DTYPES; type++) {
        const bool small = ggml_format_of(type)->columns == 32;
        const size_t n = small ? ARRAY_LEN(blocks) : ARRAY_LEN(spans);
        for (size_t i = 0; i < n; i++) {
            test_type(type, 1 + i * 3 % MAX_T, 3 + i % 5, small ? blocks[i] : spans[i]);
            if (ggml_has_tiles(type)) {
                test_tile_rows(type, small ? blocks[i] : spans[i]);
            }
        }
        test_type(type, MAX_T, MAX_N, 512);
    }
}

/* Bytes i*i*7 + i*13 + 5 with sensible f16 numbers, and what the gguf package for Python says that
 * they are: the sum of w[i] * (i % 17 + 1), and w[0], w[37], w[130], w[255]. MXFP4, which it cannot
 * read, was written out by hand. */
static void test_known_bytes(void)
{
    static const struct {
        dtype type;
        int halves[2]; /* where f16 numbers lie; -1: none */
        double sum, some[4];
    } known[] = {
        {DTYPE_Q8_0,
         {0, -1},
         458.563720703125,
         {3.69110107421875, 1.066650390625, 1.07598876953125, -1.0853271484375}},
        {DTYPE_Q4_0,
         {0, -1},
         -49.24090576171875,
         {0.18768310546875, -0.439208984375, -0.44305419921875, -0.127685546875}},
        {DTYPE_Q4_1,
         {0, 2},
         1341.8397216796875,
         {0.64227294921875, 0.89508056640625, 1.02935791015625, 0.39971923828125}},
        {DTYPE_Q5_0,
         {0, -1},
         140.70220947265625,
         {0.93841552734375, 0.564697265625, -0.69622802734375, -0.76611328125}},
        {DTYPE_Q5_1,
         {0, 2},
         2741.693603515625,
         {1.89349365234375, 1.39703369140625, 0.26983642578125, 0.27203369140625}},
        {DTYPE_Q2_K,
         {80, 82},
         710.9430541992188,
         {0.31280517578125, 0.45050048828125, 2.28143310546875, 0.7677001953125}},
        {DTYPE_Q3_K,
         {108, -1},
         -382.4981689453125,
         {-0.68817138671875, -5.06744384765625, -3.3782958984375, 0.6256103515625}},
        {DTYPE_Q4_K,
         {0, 2},
         40641.04443359375,
         {9.25994873046875, 2.74951171875, 21.99664306640625, 12.7303466796875}},
        {DTYPE_Q5_K,
         {0, 2},
         94052.15283203125,
         {50.29998779296875, 22.6439208984375, 21.99664306640625, 53.8955078125}},
        {DTYPE_Q6_K,
         {208, -1},
         -9556.698608398438,
         {40.60211181640625, 3.44085693359375, -32.09381103515625, -73.50921630859375}},
        {DTYPE_IQ4_NL,
         {0, -1},
         -472.582275390625,
         {2.3773193359375, -6.525390625, -6.58251953125, -1.404541015625}},
        {DTYPE_IQ4_XS,
         {0, -1},
         -3290.7730102539062,
         {107.91778564453125, 43.1671142578125, -126.06048583984375, 20.33233642578125}},
    };
    static const size_t places[] = {0, 37, 130, 255};
    uint8_t bytes[8 * 40];
    float wide[256];
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const ggml_format *f = ggml_format_of(known[i].type);
        for (size_t k = 0; k < ggml_row_bytes(known[i].type, 256); k++) {
            bytes[k] = (uint8_t)(k * k * 7 + k * 13 + 5);
        }
        for (size_t k = 0; k < 256u / f->columns; k++) {
            for (size_t j = 0; j < 2 && known[i].halves[j] >= 0; j++) {
                const size_t v = 0x2c01 + k * 3 + j * 0x111, at = k * f->bytes + (size_t)known[i].halves[j];
                bytes[at] = (uint8_t)v;
                bytes[at + 1] = (uint8_t)(v >> 8);
            }
        }
        ggml_kernels_of(tables[0]->ggml, known[i].type)->widen(wide, bytes, 256);
        double sum = 0;
        for (size_t k = 0; k < 256; k++) {
            sum += (double)wide[k] * (double)(k % 17 + 1);
        }
        CHECK_NEAR(sum, known[i].sum, 1e-6 * fabs(known[i].sum));
        for (size_t k = 0; k < 4; k++) {
            CHECK_NEAR(wide[places[k]], known[i].some[k], 1e-6 * fabs(known[i].some[k]));
        }
    }
    const uint8_t fp4[17] = {127, 0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
    ggml_kernels_of(tables[0]->ggml, DTYPE_MXFP4)->widen(wide, fp4, 32);
    CHECK(wide[0] == 0 && wide[1] == 1 && wide[3] == 4 && wide[7] == -4); /* low halves 0 2 4 6 8 a c e */
    CHECK(wide[16] == 0.5f && wide[19] == 6 && wide[23] == -6 && wide[20] == -0.5f);
}

/* The extremes of scales: powers of two below the normal numbers, and all bits set. */
static void test_extremes(void)
{
    uint8_t bytes[8 * 40];
    float a[256], b[256];
    for (dtype type = DTYPE_Q8_0; type < DTYPES; type++) {
        for (int fill = 0; fill < 3; fill++) {
            memset(bytes, fill == 0 ? 0x00 : fill == 1 ? 0x01 : 0x7b, sizeof bytes);
            ggml_kernels_of(tables[0]->ggml, type)->widen(a, bytes, 256);
            for (size_t i = 1; i < n_tables; i++) {
                ggml_kernels_of(tables[i]->ggml, type)->widen(b, bytes, 256);
                CHECK(memcmp(a, b, sizeof a) == 0);
            }
        }
    }
}

/* Whole layers: a table of embeddings, a product, and the rows of a prompt. */
static void test_layers(void)
{
    enum { K = 512, N = 50, T = 70 };
    static float w[K], kept[N * K], x[T * K], out[T * N], one[N], rows_out[3 * K];
    const int32_t ids[] = {49, 0, 7};
    err_detail d = {0};
    compute *c = NULL;
    CHECK_OK(
        compute_create(&c, &(compute_options){.n_threads = 2, .cpu_mask = test_cpu_mask(), .fast = true}, &d),
        d);
    rng_fill(x, T * K, 1);
    for (dtype type = DTYPE_Q8_0; c && type < DTYPES; type++) {
        const size_t row = ggml_row_bytes(type, K);
        uint8_t *data = malloc(N * row);
        tensor t = {.type = type, .n_dims = 2, .dims = {N, K}, .data = data, .bytes = N * row};
        for (size_t n = 0; n < N; n++) {
            fill_row(w, K, n);
            ggml_pack(data + n * row, kept + n * K, type, w, K);
        }
        CHECK_INT(tensor_row_bytes(&t), row);
        nn_embed(c, rows_out, &t, ids, 3);
        for (size_t k = 0; k < K; k++) {
            CHECK(rows_out[k] == kept[49 * K + k] && rows_out[2 * K + k] == kept[7 * K + k]);
        }
        nn_linear(c, out, x, &t, NULL, 8);
        nn_linear(c, one, x + 5 * K, &t, NULL, 1);
        CHECK(memcmp(out + 5 * N, one, sizeof one) == 0);
        const linear_part part = {out, &t, NULL};
        nn_linear_many(c, &part, 1, x, T);
        for (size_t i = 0; i < T * N; i += 13) {
            double sum = 0, size = 0;
            for (size_t k = 0; k < K; k++) {
                sum += (double)kept[i % N * K + k] * (double)x[i / N * K + k];
                size += fabs((double)kept[i % N * K + k]);
            }
            CHECK_NEAR(out[i], sum, size / 254 + 1e-5);
        }
        free(data);
    }
    compute_destroy(c);
}

int main(void)
{
    for (const test_level *l = test_levels(); l->name; l++) {
        tables[n_tables++] = l->table();
    }
    test_known_bytes();
    test_extremes();
    test_all_types();
    test_layers();
    CHECK_DONE();
}
