/* The kernels on packed keys and values: packing against the definitions of its types, every table against the generic
 * one, the vector tables against each other bit for bit; tails, misalignment, guards. */
#include "compute/ops_kv.h"

#include "base/compiler.h"
#include "compute/cpu.h"
#include "compute/half.h"
#include "compute/ops.h"
#include "tests/check.h"
#include "tests/compute/rng.h"

enum { MAX_HD = 300, MAX_ROWS = 80, MAX_R = 21, GUARD = 64, SLACK = 3 };

static const size_t lengths[] = {1, 2, 3, 7, 15, 16, 17, 31, 32, 40, 63, 64, 65, 128, 131, 256, 300};

/* Numbers of every size, and now and then one that hurts. */
static void fill_extreme(float *x, size_t n)
{
    static const float hurting[] = {0.0f,     -0.0f, INFINITY, -INFINITY,  NAN,      1e-40f,
                                    -1e-7f,   3e38f, -3e38f,   1.0f,       65504.0f, 65519.0f,
                                    -65520.f, 6e-8f, 6.2e-5f,  1.00390625f};
    for (size_t i = 0; i < n; i++) {
        x[i] = i % 5 == 4 ? hurting[rng_u32() % ARRAY_LEN(hurting)] : rng_f32() * powf(10, 4 * rng_f32());
    }
}

/* ---- the definitions ---- */

/* Every 16-bit number that is one comes back from its own float, and what lies between two goes to the nearer one. */
static void test_half(void)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float b = bf16_to_f32((uint16_t)bits), f = f16_to_f32((uint16_t)bits);
        if (b == b) {
            CHECK_INT(bf16_from_f32(b), bits);
        } else {
            CHECK(isnan(bf16_to_f32(bf16_from_f32(b))));
        }
        if (isfinite(f)) {
            CHECK_INT(f16_from_f32(f), bits);
        }
        float next = f16_to_f32((uint16_t)(bits + 1));
        if ((bits & 0x7fff) < 0x7bff) {
            float middle = (f + next) / 2;
            CHECK_INT(f16_from_f32(middle), bits + (bits & 1)); /* ties to even */
            CHECK_INT(f16_from_f32(nextafterf(middle, f)), bits);
            CHECK_INT(f16_from_f32(nextafterf(middle, next)), bits + 1);
        }
    }
    CHECK_INT(bf16_from_f32(1.00390625f), 0x3f80); /* halfway to the next */
    CHECK_INT(bf16_from_f32(1.01171875f), 0x3f82);
    CHECK_INT(f16_from_f32(INFINITY), 0x7bff);
    CHECK_INT(f16_from_f32(-1e6f), 0xfbff);
    CHECK(isnan(f16_to_f32(f16_from_f32(NAN))));
}

static void test_names(void)
{
    kv_type type = KV_F16;
    for (kv_type i = KV_F32; i < KV_TYPES; i++) {
        CHECK(kv_type_parse(&type, kv_type_name(i)));
        CHECK_INT(type, i);
    }
    type = KV_F16;
    CHECK(!kv_type_parse(&type, "q4") && !kv_type_parse(&type, "") && !kv_type_parse(&type, "bf16 "));
    CHECK_INT(type, KV_F16);
    CHECK_INT(kv_row_bytes(KV_F32, 5), 20);
    CHECK_INT(kv_row_bytes(KV_BF16, 5), 10);
    CHECK_INT(kv_row_bytes(KV_F16, 5), 10);
    CHECK_INT(kv_row_bytes(KV_Q8, 5), 12);
    CHECK_INT(kv_row_bytes(KV_Q8, 256), 260);
}

/* A row comes back within half a step of its type. */
static void test_round_trip(const kv_ops *kv)
{
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        const size_t hd = lengths[i];
        float x[MAX_HD], back[MAX_HD], top = 0;
        unsigned char row[4 * MAX_HD];
        rng_fill(x, hd, 3);
        for (size_t k = 0; k < hd; k++) {
            top = fabsf(x[k]) > top ? fabsf(x[k]) : top;
        }
        for (kv_type type = KV_F32; type < KV_TYPES; type++) {
            static const double share[KV_TYPES] = {0, 0x1p-8, 0x1p-11, 0};
            kv[type].pack(row, x, hd);
            kv[type].widen(back, row, hd);
            for (size_t k = 0; k < hd; k++) {
                double step = type == KV_Q8 ? (double)top / 127 / 2 * 1.00001 : share[type] * 3;
                CHECK_NEAR(back[k], x[k], step);
            }
        }
        memset(x, 0, sizeof x);
        kv[KV_Q8].pack(row, x, hd);
        kv[KV_Q8].widen(back, row, hd);
        CHECK(memcmp(back, x, hd * sizeof *x) == 0);
    }
}

/* ---- tables against each other ---- */

static void check_pack(const kv_ops *a, const kv_ops *b)
{
    for (size_t round = 0; round < 300; round++) {
        const size_t hd = lengths[round % ARRAY_LEN(lengths)], off = round % 3;
        float x[MAX_HD], wide_a[MAX_HD], wide_b[MAX_HD];
        unsigned char row_a[4 * MAX_HD + GUARD], row_b[4 * MAX_HD + GUARD];
        round % 2 ? rng_fill(x, hd, 10) : fill_extreme(x, hd);
        for (kv_type type = KV_F32; type < KV_TYPES; type++) {
            const size_t n = kv_row_bytes(type, hd);
            memset(row_a, 0x5a, sizeof row_a);
            memset(row_b, 0x5a, sizeof row_b);
            a[type].pack(row_a + 2 * off, x, hd);
            b[type].pack(row_b + 2 * off, x, hd);
            CHECK(memcmp(row_a, row_b, sizeof row_a) == 0);
            CHECK(row_a[2 * off + n] == 0x5a);
            a[type].widen(wide_a, row_a + 2 * off, hd);
            b[type].widen(wide_b, row_b + 2 * off, hd);
            for (size_t i = 0; i < hd; i++) {
                CHECK(memcmp(&wide_a[i], &wide_b[i], sizeof(float)) == 0 ||
                      (isnan(wide_a[i]) && isnan(wide_b[i])));
            }
        }
    }
}

static void check_close(const float *a, const float *b, size_t n, double abs)
{
    for (size_t i = 0; i < n; i++) {
        if (!(fabs((double)a[i] - (double)b[i]) <= abs)) {
            CHECK_NEAR(a[i], b[i], abs);
            return;
        }
    }
}

/* R queries against n rows of hd in n_parts pieces: a and b within rounding (exact: the same bits), a row alone the same
 * bits. */
static void rows_case(const kv_ops *a, const kv_ops *b, kv_type type, size_t R, size_t n, size_t hd,
                      size_t n_parts, bool exact)
{
    const size_t row_bytes = kv_row_bytes(type, hd) + 2 * SLACK, q_stride = hd + SLACK, s_stride = n + SLACK;
    float *q = rng_floats(R * q_stride, 1), *p = rng_floats(R * s_stride, 1), *x = rng_floats(n * hd, 1);
    float *s_a = rng_floats(R * s_stride, 1), *s_b = malloc(R * s_stride * sizeof *s_b);
    float *o_a = rng_floats(R * q_stride, 1), *o_b = malloc(R * q_stride * sizeof *o_b);
    float *start = malloc(R * q_stride * sizeof *start);
    kv_rows rows = {.n_parts = n_parts, .n = n, .row_bytes = row_bytes, .hd = hd};
    unsigned char *memory[KV_PARTS];
    const size_t part_bytes = n / n_parts * row_bytes + 2;
    for (size_t i = 0; i < n_parts; i++) {
        memory[i] = malloc(part_bytes);
        memset(memory[i], 0xff, part_bytes); /* between the rows: NaN */
        rows.parts[i] = memory[i] + 2;
    }
    for (size_t k = 0; k < n; k++) {
        unsigned char *row = memory[k % n_parts] + 2 + k / n_parts * row_bytes;
        CHECK(kv_row_at(&rows, k) == row);
        KV_OPS_GENERIC[type].pack(row, x + k * hd, hd);
    }
    memcpy(s_b, s_a, R * s_stride * sizeof *s_b);
    memcpy(o_b, o_a, R * q_stride * sizeof *o_b);
    memcpy(start, o_a, R * q_stride * sizeof *start);
    a->dot(s_a, s_stride, q, q_stride, R, &rows);
    b->dot(s_b, s_stride, q, q_stride, R, &rows);
    a->mix(o_a, q_stride, p, s_stride, R, &rows);
    b->mix(o_b, q_stride, p, s_stride, R, &rows);
    check_close(s_a, s_b, R * s_stride, exact ? 0 : 1.2e-7 * (double)(hd + 1));
    check_close(o_a, o_b, R * q_stride, exact ? 0 : 1.2e-7 * (double)(n + 2));

    float score = 0;
    const size_t r = rng_u32() % R, k = rng_u32() % n;
    const kv_rows one = {{kv_row_at(&rows, k)}, 1, 1, row_bytes, hd};
    a->dot(&score, 1, q + r * q_stride, hd, 1, &one);
    CHECK(memcmp(&score, &s_a[r * s_stride + k], sizeof score) == 0);
    kv_rows first = rows, second = rows; /* in two calls, alone */
    first.n = n / 2 / n_parts * n_parts;
    second.n = n - first.n;
    for (size_t i = 0; i < n_parts; i++) {
        second.parts[i] = kv_row_at(&rows, first.n + i);
    }
    a->mix(start + r * q_stride, hd, p + r * s_stride, s_stride, 1, &first);
    a->mix(start + r * q_stride, hd, p + r * s_stride + first.n, s_stride, 1, &second);
    CHECK(memcmp(start + r * q_stride, o_a + r * q_stride, hd * sizeof *start) == 0);
    for (size_t i = 0; i < n_parts; i++) {
        free(memory[i]);
    }
    free(q), free(p), free(x), free(s_a), free(s_b), free(o_a), free(o_b), free(start);
}

static void check_rows(const kv_ops *a, const kv_ops *b, bool exact)
{
    for (kv_type type = KV_F32; type < KV_TYPES; type++) {
        for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
            for (size_t k = 0; k < 6; k++) {
                const size_t n_parts = k % 2 ? KV_PARTS : 1,
                             n = (1 + rng_u32() % (MAX_ROWS / n_parts)) * n_parts;
                rows_case(&a[type], &b[type], type, 1 + (i + k) % MAX_R, n, lengths[i], n_parts, exact);
            }
        }
        rows_case(&a[type], &b[type], type, 4, 256, 256, KV_PARTS, exact);
        rows_case(&a[type], &b[type], type, 8, 70, 128, 1, exact);
    }
}

int main(void)
{
    const bool has_avx2 = (cpu_flags() & CPU_AVX2) && ops_avx2(),
               has_avx512 = (cpu_flags() & CPU_AVX512) && ops_avx512();
    const ops *tables[3] = {ops_generic(), has_avx2 ? ops_avx2() : NULL, has_avx512 ? ops_avx512() : NULL};
    test_half();
    test_names();
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        if (tables[i]) {
            printf("%s\n", tables[i]->name);
            test_round_trip(tables[i]->kv);
            check_pack(tables[i]->kv, KV_OPS_GENERIC);
            check_rows(tables[i]->kv, KV_OPS_GENERIC, false);
        }
    }
    if (has_avx2 && has_avx512) {
        check_rows(ops_avx2()->kv, ops_avx512()->kv, true);
    }
    CHECK_DONE();
}
