#include "compute/tensor.h"

#include "compute/kernels/cpu.h"
#include "tests/check.h"

/* The value of 16 bits by definition: sign, exponent, fraction. */
static double half_value(uint16_t bits, int exponent_bits)
{
    int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    double fraction = bits & ((1 << fraction_bits) - 1), sign = bits >> 15 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) {
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    }
    if (exponent == 0) {
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    }
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

static void test_half(dtype type, int exponent_bits)
{
    /* odd address: no alignment is promised beyond what callers give */
    static unsigned char bytes[1 + 65536 * 2];
    static float out[65536];
    unsigned char *data = bytes + 1;
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t bits = (uint16_t)i;
        memcpy(data + 2 * i, &bits, 2);
    }
    tensor t = {type, 1, {65536}, data, 65536 * 2};
    tensor_to_f32(out, &t, 0, 65536);
    for (uint32_t i = 0; i < 65536; i++) {
        double want = half_value((uint16_t)i, exponent_bits);
        CHECK(isnan(want) ? isnan(out[i]) : (double)out[i] == want && !signbit(out[i]) == !(i >> 15));
    }
    float part[3];
    tensor_to_f32(part, &t, 1000, 3);
    CHECK(memcmp(part, out + 1000, sizeof part) == 0);
}

static void test_names(void)
{
    tensor t = {DTYPE_F32, 3, {2, 3, 4}, NULL, 96};
    CHECK_INT(tensor_len(&t), 24);
    CHECK_INT(dtype_bytes(DTYPE_F32), 4);
    CHECK_INT(dtype_bytes(DTYPE_BF16), 2);
    CHECK_INT(dtype_bytes(DTYPE_F16), 2);
    CHECK_INT(dtype_bytes(DTYPE_OTHER), 0);
    CHECK_STR(dtype_name(DTYPE_BF16), "bf16");
    CHECK_STR(dtype_name(DTYPE_OTHER), "other");
}

static void test_cpu(void)
{
    unsigned mask = 1;
    CHECK(cpu_parse_level("generic", &mask) && mask == 0);
    CHECK(cpu_parse_level("avx2", &mask) && mask == CPU_AVX2);
    CHECK(cpu_parse_level("avx512+vnni+bf16", &mask) && (mask & CPU_AVX512_BF16) && !(mask & CPU_AMX));
    CHECK(cpu_parse_level("avx512+vnni+bf16+amx", &mask) && (mask & CPU_AMX));
    CHECK_STR(cpu_describe(mask), "avx512+vnni+bf16+amx");
    CHECK_STR(cpu_describe(CPU_AVX2 | CPU_AVX512 | CPU_AVX512_VNNI | CPU_AMX),
              "avx512+vnni"); /* AMX alone has no table */
    CHECK(cpu_parse_level("native", &mask) && mask == ~0u);
    CHECK(!cpu_parse_level("sse9", &mask) && mask == ~0u);
    CHECK_STR(cpu_describe(0), "generic");
    CHECK_STR(cpu_describe(CPU_AVX2), "avx2");
    CHECK_STR(cpu_describe(CPU_AVX2 | CPU_AVX512), "avx512");
    CHECK_STR(cpu_describe(CPU_AVX2 | CPU_AVX512 | CPU_AVX512_VNNI | CPU_AVX512_BF16), "avx512+vnni+bf16");
    CHECK(cpu_physical_cores() >= 1);
}

int main(void)
{
    test_half(DTYPE_BF16, 8);
    test_half(DTYPE_F16, 5);
    float f[2] = {1.5f, NAN}, out[2];
    tensor t = {DTYPE_F32, 1, {2}, f, 8};
    tensor_to_f32(out, &t, 0, 2);
    CHECK(memcmp(out, f, sizeof f) == 0);
    test_names();
    test_cpu();
    CHECK_DONE();
}
