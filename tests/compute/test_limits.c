/* The limits of the machine are numbers that a machine can have. */
#include "compute/limits.h"

#include "tests/alloc_fail.h"
#include "tests/check.h"

static void measure_into(compute_limits *l, size_t n_threads, unsigned cpu_mask, size_t bytes)
{
    compute *c = NULL;
    err_detail detail = {0};
    const compute_options co = {.n_threads = n_threads, .cpu_mask = cpu_mask};
    CHECK_INT(compute_create(&c, &co, &detail), ERR_OK);
    CHECK(compute_measure(l, c, bytes));
    compute_destroy(c);
}

static compute_limits measure(size_t n_threads, unsigned cpu_mask, size_t bytes)
{
    compute_limits l = {0};
    measure_into(&l, n_threads, cpu_mask, bytes);
    return l;
}

static err_code open_bench(void *context)
{
    bandwidth_bench *r = bandwidth_bench_open(context, 0);
    const bool is_open = r && bandwidth_bench_pass(r) > 0;
    bandwidth_bench_close(r);
    return is_open ? ERR_OK : ERR_NOMEM;
}

/* Without memory there is no measuring, and nothing is left behind. */
static void test_memory(void)
{
    compute *c = NULL;
    err_detail d = {0};
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 2}, &d), d);
    CHECK(alloc_fail_each(open_bench, c, 100) >= 3);
    compute_destroy(c);
}

int main(void)
{
    test_memory();
    compute_limits l = measure(2, ~0u, (size_t)4 << 20);
    CHECK(l.bandwidth_gbs > 0.001 && l.bandwidth_gbs < 1e5);
    CHECK(l.f32_gflops > 0.001 && l.f32_gflops < 1e6);
    CHECK(l.q8_gops >= 0 && l.q8_gops < 1e7);
    l = measure(1, 0, 0); /* plain C, and little to read */
    CHECK(l.bandwidth_gbs > 0.001 && l.f32_gflops > 0.001 && l.q8_gops == 0);
    l = (compute_limits){1e6, 1e7, 1e8}; /* limits are raised, never lowered */
    measure_into(&l, 1, 0, 0);
    CHECK(l.bandwidth_gbs == 1e6 && l.f32_gflops == 1e7 && l.q8_gops == 1e8);
    CHECK_DONE();
}
