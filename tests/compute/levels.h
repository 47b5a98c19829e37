/* levels: the kernel tables that a test goes through, lowest first. All that this processor can run are tested,
 * also those that it would not choose itself; what it cannot run is named on standard output. PARLEY_CPU
 * leaves out what is above its level.
 *
 *     for (const test_level *l = test_levels(); l->name; l++) {
 *         CHECK(l->table() != NULL);
 *     }
 *
 * test_contexts() has them, and tables that no processor has: of generic kernels, with the members of better ones. Contexts
 * with them go every way that a context can go, on every processor and at every level.
 *
 *     for (const test_level *l = test_contexts(); l->name; l++) {
 *         compute *c = test_context(l, (compute_options){.n_threads = 2, .fast = true});
 *         compute_destroy(c);
 *     }
 */
#ifndef PARLEY_TESTS_COMPUTE_LEVELS_H
#define PARLEY_TESTS_COMPUTE_LEVELS_H

#include "compute/context.h"
#include "compute/kernels/ops.h"
#include "tests/cpu.h"

typedef struct test_level {
    const char *name; /* as cpu_describe() has it; NULL ends the list */
    unsigned mask;    /* for compute_options.cpu_mask */
    const ops *(*table)(void);
} test_level;

/* The levels that can be run here and now. The list is the function's own. */
static inline const test_level *test_levels(void)
{
    enum {
        AVX512 = CPU_AVX2 | CPU_AVX512,
        VNNI = AVX512 | CPU_AVX512_VNNI,
        BF16 = VNNI | CPU_AVX512_BF16,
        AMX = BF16 | CPU_AMX,
    };
    static const test_level all[] = {
        {"generic", 0, ops_generic},
        {"avx2", CPU_AVX2, ops_avx2},
        {"avx512", AVX512, ops_avx512},
        {"avx512+vnni", VNNI, ops_avx512_vnni},
        {"avx512+vnni+bf16", BF16, ops_avx512_bf16},
        {"avx512+vnni+bf16+amx", AMX, ops_avx512_amx},
        {"neon", CPU_NEON, ops_neon},
        {"neon+dotprod", CPU_NEON | CPU_NEON_DOTPROD, ops_neon_dotprod},
        {"neon+dotprod+i8mm", CPU_NEON | CPU_NEON_DOTPROD | CPU_NEON_I8MM, ops_neon_i8mm},
    };
    enum { N = sizeof all / sizeof all[0] };
    static test_level here[N + 1];
    const unsigned flags = cpu_flags() & test_cpu_mask();
    size_t n = 0;
    for (size_t i = 0; i < N; i++) {
        if ((flags & all[i].mask) == all[i].mask && all[i].table()) {
            here[n] = all[i];
            /* Whether the dot instruction of BF16 pays is the program's choice, not the test's. */
            here[n++].mask |= all[i].mask == BF16 ? CPU_BF16_IS_FAST : 0;
        } else {
            printf("not checked here: the kernels for %s\n", all[i].name);
        }
    }
    here[n].name = NULL;
    return here;
}

/* What prompts and images of tables with AVX-512 VNNI and BF16 take: weights are turned. */
static inline const ops *ops_made_turned(void)
{
    static ops table;
    table = *ops_generic();
    table.name = "generic, weights turned";
    table.tiles_best = true;
    return &table;
}

/* Of those with AMX: x is turned. */
static inline const ops *ops_made_panels(void)
{
    static ops table;
    table = *ops_made_turned();
    table.name = "generic, x turned";
    table.pack_x = NULL, table.turn_q = NULL, table.tile_turned = NULL;
    table.round_bf16 = NULL, table.dot_bf16 = NULL;
    return &table;
}

/* Of those with AVX-512: nothing is rounded to bf16, nothing but weights is in 8 bits. */
static inline const ops *ops_made_floats(void)
{
    static ops table;
    table = *ops_made_panels();
    table.name = "generic, floats in tiles";
    table.dot_rows_best = true;
    table.pack_bf16 = NULL, table.tile_bf16 = NULL, table.attend_q = NULL;
    memset(table.panel_q, 0, sizeof table.panel_q);
    return &table;
}

/* The levels that can be run here and now, then the tables that are made up. The list is the function's own. */
static inline const test_level *test_contexts(void)
{
    static const test_level made[] = {
        {"generic, weights turned", 0, ops_made_turned},
        {"generic, x turned", 0, ops_made_panels},
        {"generic, floats in tiles", 0, ops_made_floats},
        {NULL, 0, NULL},
    };
    static test_level all[16];
    size_t n = 0;
    for (const test_level *l = test_levels(); l->name; l++) {
        all[n++] = *l;
    }
    memcpy(all + n, made, sizeof made);
    return all;
}

/* A context with the table of a level, whatever its mask is in the options; compute_destroy frees it. */
static inline compute *test_context(const test_level *level, compute_options options)
{
    compute *c = NULL;
    err_detail detail = {0};
    options.cpu_mask = level->mask;
    CHECK_OK(compute_create(&c, &options, &detail), detail);
    c->ops = level->table();
    return c;
}

#endif
