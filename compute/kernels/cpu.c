#define _GNU_SOURCE /* sched_getaffinity, syscall */
#include "compute/kernels/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* The tiles' state is 8 KiB of each thread that uses them, so Linux wants to be asked first; its headers in Debian 12
 * have no names for that. */
static bool has_amx(void)
{
    enum { BF16 = 1 << 22, TILE = 1 << 24, INT8 = 1 << 25, ALL = BF16 | TILE | INT8 };
    enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & ALL) == ALL &&
           syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
}

unsigned cpu_flags(void)
{
    unsigned flags = 0;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c()) {
        flags |= CPU_AVX2;
    }
    if (flags && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        flags |= CPU_AVX512;
        flags |= __builtin_cpu_supports("avx512vnni") ? CPU_AVX512_VNNI : 0;
        flags |= __builtin_cpu_supports("avx512bf16") ? CPU_AVX512_BF16 : 0;
        flags |= __builtin_cpu_is("amd") ? CPU_BF16_IS_FAST : 0;
        flags |= has_amx() ? CPU_AMX : 0;
    }
    return flags;
}
#elif defined(__aarch64__)
#include <sys/auxv.h>

unsigned cpu_flags(void)
{
    const bool dotprod = getauxval(AT_HWCAP) & HWCAP_ASIMDDP, i8mm = getauxval(AT_HWCAP2) & HWCAP2_I8MM;
    return CPU_NEON | (dotprod ? CPU_NEON_DOTPROD : 0) | (i8mm ? CPU_NEON_I8MM : 0);
}
#else
unsigned cpu_flags(void)
{
    return 0;
}
#endif

bool cpu_parse_level(const char *text, unsigned *mask)
{
    static const struct {
        const char *name;
        unsigned mask;
    } levels[] = {
        {"native", ~0u},
        {"generic", 0},
        {"avx2", CPU_AVX2},
        {"avx512", CPU_AVX2 | CPU_AVX512},
        {"avx512+vnni", CPU_AVX2 | CPU_AVX512 | CPU_AVX512_VNNI},
        {"avx512+vnni+bf16", CPU_AVX2 | CPU_AVX512 | CPU_AVX512_VNNI | CPU_AVX512_BF16 | CPU_BF16_IS_FAST},
        {"avx512+vnni+bf16+amx",
         CPU_AVX2 | CPU_AVX512 | CPU_AVX512_VNNI | CPU_AVX512_BF16 | CPU_BF16_IS_FAST | CPU_AMX},
        {"neon", CPU_NEON},
        {"neon+dotprod", CPU_NEON | CPU_NEON_DOTPROD},
    };
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(text, levels[i].name) == 0) {
            *mask = levels[i].mask;
            return true;
        }
    }
    return false;
}

const char *cpu_describe(unsigned flags)
{
    if (flags & CPU_NEON) {
        return !(flags & CPU_NEON_DOTPROD) ? "neon"
               : flags & CPU_NEON_I8MM     ? "neon+dotprod+i8mm"
                                           : "neon+dotprod";
    }
    if (!(flags & CPU_AVX2)) {
        return "generic";
    }
    if (!(flags & CPU_AVX512)) {
        return "avx2";
    }
    switch (flags & (CPU_AVX512_VNNI | CPU_AVX512_BF16)) {
    case CPU_AVX512_VNNI:
        return "avx512+vnni";
    case CPU_AVX512_BF16:
        return "avx512+bf16";
    case CPU_AVX512_VNNI | CPU_AVX512_BF16:
        return flags & CPU_AMX ? "avx512+vnni+bf16+amx" : "avx512+vnni+bf16";
    default:
        return "avx512";
    }
}

int cpu_first_sibling(const char *dir, int processor)
{
    char path[512];
    int first = processor;
    snprintf(path, sizeof path, "%s/cpu/cpu%d/topology/thread_siblings_list", dir, processor);
    FILE *f = fopen(path, "r");
    if (f) {
        if (fscanf(f, "%d", &first) != 1) {
            first = processor;
        }
        fclose(f);
    }
    return first;
}

size_t cpu_physical_cores(void)
{
    cpu_set_t allowed, cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return 1;
    }
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &allowed)) {
            int first = cpu_first_sibling("/sys/devices/system", i);
            CPU_SET(first >= 0 && first < CPU_SETSIZE ? first : i, &cores);
        }
    }
    int n = CPU_COUNT(&cores);
    return n > 0 ? (size_t)n : 1;
}
