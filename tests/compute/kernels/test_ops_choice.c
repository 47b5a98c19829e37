/* Which table of kernels is chosen of those that a processor can run. */
#include <string.h>

#include "compute/kernels/cpu.h"
#include "compute/kernels/ops.h"
#include "tests/check.h"

/* Tables of every processor, which a build has only of its own: cmake/tests.cmake wraps what returns them. */
static bool all_builds;     /* whether stand-ins take their place */
static const char *missing; /* then, too, there is none of this name */

#define TABLE(which)                                                                                         \
    const ops *__real_##which(void);                                                                         \
    const ops *__wrap_##which(void);                                                                         \
    const ops *__wrap_##which(void)                                                                          \
    {                                                                                                        \
        static const ops stand_in = {.name = #which};                                                        \
        if (!all_builds) {                                                                                   \
            return __real_##which();                                                                         \
        }                                                                                                    \
        return missing && strcmp(missing, #which) == 0 ? NULL : &stand_in;                                   \
    }
TABLE(ops_avx512_amx)
TABLE(ops_avx512_bf16)
TABLE(ops_avx512_vnni)
TABLE(ops_avx512)
TABLE(ops_avx2)
TABLE(ops_neon_i8mm)
TABLE(ops_neon_dotprod)
TABLE(ops_neon)
static const char *const TABLES[] = {"ops_avx512_amx",   "ops_avx512_bf16", "ops_avx512_vnni",
                                     "ops_avx512",       "ops_avx2",        "ops_neon_i8mm",
                                     "ops_neon_dotprod", "ops_neon",        NULL};

/* Of every set of flags the best table that it has all of, and the build. */
static void check_choice(void)
{
    enum { ALL = 2 * CPU_AMX - 1, VNNI = CPU_AVX2 | CPU_AVX512 | CPU_AVX512_VNNI };
    static const struct {
        unsigned needed;
        const ops *(*table)(void);
    } best_first[] = {
        {VNNI | CPU_AVX512_BF16 | CPU_AMX, ops_avx512_amx},
        {VNNI | CPU_AVX512_BF16 | CPU_BF16_IS_FAST, ops_avx512_bf16},
        {VNNI, ops_avx512_vnni},
        {CPU_AVX2 | CPU_AVX512, ops_avx512},
        {CPU_AVX2, ops_avx2},
        {CPU_NEON | CPU_NEON_DOTPROD | CPU_NEON_I8MM, ops_neon_i8mm},
        {CPU_NEON | CPU_NEON_DOTPROD, ops_neon_dotprod},
        {CPU_NEON, ops_neon},
        {0, ops_generic},
    };
    for (unsigned flags = 0; flags <= ALL; flags++) {
        size_t i = 0;
        while ((flags & best_first[i].needed) != best_first[i].needed || !best_first[i].table()) {
            i++;
        }
        CHECK(ops_select(flags) == best_first[i].table());
    }
}

int main(void)
{
    check_choice();
    all_builds = true;
    for (const char *const *name = TABLES; *name; name++) {
        missing = *name;
        check_choice();
    }
    missing = NULL;
    check_choice();
    CHECK_DONE();
}
