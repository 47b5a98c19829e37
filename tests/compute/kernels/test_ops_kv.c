/* The kernels on packed keys and values: packing against the definitions of its types, every table
 * against the generic one, the vector tables against each other bit for bit; tails, misalignment,
 * guards; and attention in 8 bits. */
#include "compute/kernels/ops.h"

#include "base/compiler.h"
#include "compute/formats/half.h"
#include "tests/check.h"
#include "tests/compute/levels.h"
#include "tests/compute/rng.h"
#include "tests/compute/sums.h"

enum { MAX_HD = 1100, MAX_ROWS = 80, MAX_R = 21, GUARD = 64, SLACK = 3 };

static const size_t lengths[] = {1, 2, 3, 7, 15, 16, 17, 31, 32, 40, 63, 64, 65, 128, 131, 256, 300};

/* Numbers of every size, and now and then one that hurts. */
static void fill_extreme(float *x, size_t n)
{
    static const float hurting[] = {0.0f,     -0.0f, INFINITY, -INFINITY,  NAN,      1e-40f,
                                    -1e-7f,   3e38f, -3e38f,   1.0f,       65504.0f, 65519.0f,
                                    -65520.f, 6e-8f, 6.2e-5f,  1.00390625f};
    for (size_t i = 0; i < n; i++) {
        const int exponent = (int)(rng_u32() % 27) - 13;
        const float number = ldexpf(rng_f32(), exponent);
        x[i] = i % 5 == 4 ? hurting[rng_u32() % ARRAY_LEN(hurting)] : number;
    }
}

/* ---- the definitions ---- */

/* Every 16-bit number that is one comes back from its own float, and what lies between two goes to
 * the nearer one. */
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
    CHECK(!kv_type_parse(&type, "q5") && !kv_type_parse(&type, "") && !kv_type_parse(&type, "bf16 "));
    CHECK_INT(type, KV_F16);
    CHECK_INT(kv_row_bytes(KV_F32, 5), 20);
    CHECK_INT(kv_row_bytes(KV_BF16, 5), 10);
    CHECK_INT(kv_row_bytes(KV_F16, 5), 10);
    CHECK_INT(kv_row_bytes(KV_Q8, 5), 8);
    CHECK_INT(kv_row_bytes(KV_Q8, 256), 256);
    CHECK_INT(kv_row_bytes(KV_Q4, 1), 16);
    CHECK_INT(kv_row_bytes(KV_Q4, 33), 32);
    CHECK_INT(kv_row_bytes(KV_Q4, 256), 128);
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
        for (kv_type type = KV_F32; type < KV_Q4; type++) {
            static const double share[KV_Q4] = {0, 0x1p-8, 0x1p-11, 0};
            const float scale = kv[type].pack(row, x, hd);
            kv[type].widen(back, row, scale, hd);
            for (size_t k = 0; k < hd; k++) {
                double step = type == KV_Q8 ? (double)top / 127 / 2 * 1.00001 : share[type] * 3;
                CHECK_NEAR(back[k], x[k], step);
            }
        }
        memset(x, 0, sizeof x);
        kv[KV_Q8].widen(back, row, kv[KV_Q8].pack(row, x, hd), hd);
        CHECK(memcmp(back, x, hd * sizeof *x) == 0);
        kv[KV_Q4].widen(back, row, kv[KV_Q4].pack(row, x, hd), hd);
        CHECK(memcmp(back, x, hd * sizeof *x) == 0);
    }
}

/* Of normally distributed numbers, 16 levels and one scale leave the error that is the least
 * possible, 0.0095 of the variance, but for few per cent; every level comes back as it is; the
 * nibbles lie where kv_type.h says. */
static void test_q4(const kv_ops *q4)
{
    enum { HD = 256, ROUNDS = 200 };
    float x[HD], back[HD];
    unsigned char row[HD / 2], spelled[HD / 2] = {0};
    double squares = 0, errors = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < HD; i++) { /* the sum of twelve even ones is near to normal */
            x[i] = 0;
            for (int j = 0; j < 12; j++) {
                x[i] += rng_f32();
            }
            squares += (double)x[i] * (double)x[i];
        }
        q4->widen(back, row, q4->pack(row, x, HD), HD);
        for (size_t i = 0; i < HD; i++) {
            errors += ((double)back[i] - (double)x[i]) * ((double)back[i] - (double)x[i]);
        }
    }
    CHECK_NEAR(errors / squares, 0.0095, 0.0006);
    for (size_t i = 0; i < HD; i++) {
        const size_t level = i / 16 < 12 ? 4 + i % 8 : i % 16, at = i % 32;
        x[i] = (float)KV_Q4_NUMBERS[level] * 0.5f;
        spelled[i / 32 * 16 + at % 8 * 2 + at / 16] |= (unsigned char)(level << at / 8 % 2 * 4);
    }
    const float scale = q4->pack(row, x, HD);
    CHECK_NEAR(scale, 0.5, 0.01);
    q4->widen(back, spelled, 0.5f, HD);
    CHECK(memcmp(back, x, sizeof x) == 0);
    x[7] = INFINITY;
    CHECK(isinf(q4->pack(row, x, HD)));
    x[7] = NAN;
    CHECK(isinf(q4->pack(row, x, HD)));
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
            const float scale_a = a[type].pack(row_a + 2 * off, x, hd);
            const float scale_b = b[type].pack(row_b + 2 * off, x, hd);
            CHECK(memcmp(row_a, row_b, sizeof row_a) == 0);
            CHECK(memcmp(&scale_a, &scale_b, sizeof scale_a) == 0);
            CHECK(row_a[2 * off + n] == 0x5a);
            if (a == b) {
                sums_bytes("rows", row_a + 2 * off, n);
                sums_add("scales", &scale_a, 1);
            }
            a[type].widen(wide_a, row_a + 2 * off, scale_a, hd);
            b[type].widen(wide_b, row_b + 2 * off, scale_b, hd);
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

/* What rounding a number of at most 1 to a whole number of steps may cost a product with a number
 * of at most 1. */
#define Q8_STEP (1.01 / 2 / 32767)

/* Sums of a query's products with whole numbers of the rows are those of its products with the
 * rows' numbers, but for the rounding of query and weights. */
static void check_whole(kv_type type, const float *scores, const float *mixed, const float *start,
                        const float *q, const float *p, const kv_rows *rows)
{
    const size_t hd = rows->hd;
    double sums[MAX_HD] = {0};
    float row[MAX_HD];
    for (size_t k = 0; k < rows->n; k++) {
        double score = 0;
        KV_OPS_GENERIC[type].widen(row, kv_row_at(rows, k), kv_scale_at(rows, k), hd);
        for (size_t i = 0; i < hd; i++) {
            score += (double)q[i] * (double)row[i];
            sums[i] += (double)p[k] * (double)row[i];
        }
        CHECK_NEAR(scores[k], score, (double)hd * Q8_STEP * (hd > 512 ? (double)hd / 512 : 1) + 1e-6);
    }
    for (size_t i = 0; i < hd; i++) {
        CHECK_NEAR(mixed[i], (double)start[i] + sums[i], (double)rows->n * Q8_STEP + 1e-6);
    }
}

/* R queries against n rows of hd in n_parts pieces: a and b within rounding (exact: the same bits),
 * a row alone the same bits. */
static void rows_case(const kv_ops *a, const kv_ops *b, kv_type type, size_t R, size_t n, size_t hd,
                      size_t n_parts, bool exact)
{
    const size_t row_bytes = kv_row_bytes(type, hd) + 2 * SLACK, q_stride = hd + SLACK, s_stride = n + SLACK;
    float *q = rng_floats(R * q_stride, 1), *p = rng_floats(R * s_stride, 1), *x = rng_floats(n * hd, 1);
    float *s_a = rng_floats(R * s_stride, 1), *s_b = malloc(R * s_stride * sizeof *s_b);
    float *o_a = rng_floats(R * q_stride, 1), *o_b = malloc(R * q_stride * sizeof *o_b);
    float *start = malloc(R * q_stride * sizeof *start), *alone = malloc(R * q_stride * sizeof *alone);
    kv_rows rows = {.n_parts = n_parts, .n = n, .row_bytes = row_bytes, .hd = hd};
    unsigned char *memory[KV_PARTS];
    float *scales[KV_PARTS];
    const size_t part_bytes = n / n_parts * row_bytes + 2;
    for (size_t i = 0; i < n_parts; i++) {
        memory[i] = malloc(part_bytes);
        memset(memory[i], 0xff, part_bytes); /* between the rows: NaN */
        rows.parts[i] = memory[i] + 2;
        rows.scales[i] = scales[i] = malloc(n / n_parts * sizeof *scales[i]);
    }
    for (size_t k = 0; k < n; k++) {
        unsigned char *row = memory[k % n_parts] + 2 + k / n_parts * row_bytes;
        CHECK(kv_row_at(&rows, k) == row);
        scales[k % n_parts][k / n_parts] = KV_OPS_GENERIC[type].pack(row, x + k * hd, hd);
    }
    memcpy(s_b, s_a, R * s_stride * sizeof *s_b);
    memcpy(o_b, o_a, R * q_stride * sizeof *o_b);
    memcpy(start, o_a, R * q_stride * sizeof *start);
    memcpy(alone, o_a, R * q_stride * sizeof *alone);
    a->dot(s_a, s_stride, q, q_stride, R, &rows);
    b->dot(s_b, s_stride, q, q_stride, R, &rows);
    a->mix(o_a, q_stride, p, s_stride, R, &rows);
    b->mix(o_b, q_stride, p, s_stride, R, &rows);
    check_close(s_a, s_b, R * s_stride, exact ? 0 : 1.2e-7 * (double)(hd + 1));
    check_close(o_a, o_b, R * q_stride, exact ? 0 : 1.2e-7 * (double)(n + 2));

    if (a == b) {
        sums_add(kv_type_name(type), s_a, R * s_stride);
        sums_add(kv_type_name(type), o_a, R * q_stride);
    }

    float score = 0;
    const size_t r = rng_u32() % R, k = rng_u32() % n;
    if (type >= KV_Q8) {
        check_whole(type, s_a + r * s_stride, o_a + r * q_stride, start + r * q_stride, q + r * q_stride,
                    p + r * s_stride, &rows);
    }
    const kv_rows one = {{kv_row_at(&rows, k)}, 1, 1, row_bytes, hd, {&scales[k % n_parts][k / n_parts]}};
    a->dot(&score, 1, q + r * q_stride, hd, 1, &one);
    CHECK(memcmp(&score, &s_a[r * s_stride + k], sizeof score) == 0);
    kv_rows first = rows, second = rows; /* in two calls, alone */
    first.n = n / 2 / n_parts * n_parts;
    second.n = n - first.n;
    for (size_t i = 0; i < n_parts; i++) {
        second.parts[i] = kv_row_at(&rows, first.n + i);
        second.scales[i] = scales[i] + first.n / n_parts;
    }
    a->mix(start + r * q_stride, hd, p + r * s_stride, s_stride, 1, &first);
    a->mix(start + r * q_stride, hd, p + r * s_stride + first.n, s_stride, 1, &second);
    if (type >= KV_Q8) { /* each call has steps of its own */
        check_close(start + r * q_stride, o_a + r * q_stride, hd, 2 * Q8_STEP * (double)n + 1e-6);
        a->mix(alone + r * q_stride, hd, p + r * s_stride, s_stride, 1, &rows);
        CHECK(memcmp(alone + r * q_stride, o_a + r * q_stride, hd * sizeof *start) == 0);
    } else {
        CHECK(memcmp(start + r * q_stride, o_a + r * q_stride, hd * sizeof *start) == 0);
    }
    for (size_t i = 0; i < n_parts; i++) {
        free(memory[i]), free(scales[i]);
    }
    free(q), free(p), free(x), free(s_a), free(s_b), free(o_a), free(o_b), free(start), free(alone);
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
        rows_case(&a[type], &b[type], type, 7, 700, 65, KV_PARTS,
                  exact); /* more rows than q8 takes together */
        rows_case(&a[type], &b[type], type, 8, 70, 128, 1, exact);
        rows_case(&a[type], &b[type], type, 3, 20, MAX_HD, KV_PARTS,
                  exact); /* larger than q8's vectors take */
    }
}

/* Sums of q8 and q4 that are as large as they can be. */
static void test_largest_sums(const kv_ops *kv, kv_type type)
{
    enum { N = KV_Q8_ROWS };
    static const size_t heads[] = {256, 512, 513, MAX_HD};
    static unsigned char memory[N * MAX_HD];
    static float ones[MAX_HD], scores[N], out[MAX_HD], scales[N];
    for (size_t i = 0; i < MAX_HD; i++) {
        ones[i] = 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        const size_t hd = heads[i], row_bytes = kv_row_bytes(type, hd);
        const kv_rows rows = {{memory}, 1, N, row_bytes, hd, {scales}};
        for (size_t k = 0; k < N; k++) {
            scales[k] = kv->pack(memory + k * row_bytes, ones, hd);
        }
        memset(out, 0, sizeof out);
        kv->dot(scores, N, ones, hd, 1, &rows);
        kv->mix(out, hd, ones, N, 1, &rows);
        CHECK_NEAR(scores[N - 1], (double)hd, 1e-3);
        CHECK_NEAR(out[hd - 1], N, 1e-3);
    }
}

/* ---- attention in 8 bits ---- */

/* Words of random numbers of 8 bits, from -127 to 127, with an offset. */
static uint32_t *random_words(size_t n, int offset)
{
    uint8_t *q = malloc(n * sizeof(uint32_t));
    for (size_t i = 0; i < n * sizeof(uint32_t); i++) {
        q[i] = (uint8_t)((int)(rng_u32() % 255) - 127 + offset);
    }
    return (uint32_t *)(void *)q;
}

/* The softmax of queries that met the same tiles: the same bits, where there are columns. */
static void check_attended(const attend_queries *a, const attend_queries *b, size_t hd)
{
    for (size_t l = 0; l < ATTEND_SIDE; l++) {
        CHECK(a->max[l] == b->max[l]);
        CHECK(a->sum[l] == b->sum[l]);
    }
    for (size_t i = 0; i < hd * ATTEND_SIDE; i++) {
        CHECK(a->mix[i] == b->mix[i]);
    }
}

/* Two tiles of n keys one after the other; in the second the largest scores stand far out, or are far below. */
static void attend_case(const ops *o, size_t n, size_t hd)
{
    const size_t words = (hd + 3) / 4, columns = (hd + ATTEND_COLUMNS - 1) / ATTEND_COLUMNS * ATTEND_COLUMNS;
    uint32_t *q = random_words(words * ATTEND_SIDE, 128);
    float *mix[2];
    attend_queries to[2] = {{.q = q}, {.q = q}};
    for (size_t l = 0; l < ATTEND_SIDE; l++) {
        to[0].scale[l] = to[1].scale[l] = l == 3 ? 0 : 0.01f * (float)(1 + rng_u32() % 8);
        to[0].max[l] = to[1].max[l] = -ATTEND_FAR;
    }
    for (size_t i = 0; i < 2; i++) {
        to[i].mix = mix[i] = calloc(columns * ATTEND_SIDE, sizeof **mix);
    }
    for (size_t round = 0; round < 2; round++) {
        uint32_t *k = random_words(words * ATTEND_KEYS, 0), *v = random_words(columns * ATTEND_KEYS / 4, 0);
        float *scales = rng_floats(ATTEND_KEYS, 1), *v_scales = rng_floats(columns, 1);
        int32_t offsets[ATTEND_KEYS];
        for (size_t i = 0; i < ATTEND_KEYS; i++) {
            offsets[i] = (int32_t)(rng_u32() % 2000) - 1000;
            scales[i] = fabsf(scales[i]) * (i % 97 == 5 ? 1 : 0.02f) * (round && n % 2 ? 1e-3f : 1);
        }
        const attend_keys keys = {n, hd, k, scales, offsets, v, v_scales};
        o->attend_q(&to[0], &keys);
        ops_generic()->attend_q(&to[1], &keys);
        check_attended(&to[0], &to[1], hd);
        if (o == ops_generic()) {
            sums_add("attended", mix[0], hd * ATTEND_SIDE);
            sums_add("attended, sums", to[0].sum, ATTEND_SIDE);
        }
        free(k), free(v), free(scales), free(v_scales);
    }
    free(q), free(mix[0]), free(mix[1]);
}

static void check_attend(const ops *o)
{
    static const size_t keys[] = {1, 2, 3, 5, 16, 63, 64, 65, 127, 194, 255, 256},
                        heads[] = {1, 8, 24, 64, 72, 130};
    for (size_t i = 0; o->attend_q && i < ARRAY_LEN(keys) * ARRAY_LEN(heads); i++) {
        attend_case(o, keys[i / ARRAY_LEN(heads)], heads[i % ARRAY_LEN(heads)]);
    }
}

int main(void)
{
    const kv_ops *below = NULL; /* the vector tables agree bit for bit, each with the one below it */
    test_half();
    test_names();
    for (const test_level *l = test_levels(); l->name; l++) {
        const kv_ops *kv = l->table()->kv;
        printf("%s\n", l->name);
        test_round_trip(kv);
        test_q4(&kv[KV_Q4]);
        test_largest_sums(&kv[KV_Q8], KV_Q8);
        test_largest_sums(&kv[KV_Q4], KV_Q4);
        check_pack(kv, KV_OPS_GENERIC);
        check_rows(kv, KV_OPS_GENERIC, false);
        if (kv == KV_OPS_GENERIC) { /* the first, beside which nothing stands */
            check_attend(l->table());
            sums_check("compute/kernels/generic_kv_sums.txt", 1e-5);
        }
        if (below) {
            check_rows(below, kv, true);
        }
        below = l->mask ? kv : NULL;
    }
    for (const test_level *l = test_levels(); l->name; l++) {
        if (l->mask) {
            check_attend(l->table());
        }
    }
    CHECK_DONE();
}
