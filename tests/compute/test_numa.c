/* Threads and nodes: plans for machines that are made up, what the system is asked for, results with more threads than
 * processors, and how evenly the products of a step are cut for 2 to 128 threads. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "compute/numa.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "compute/context.h"
#include "tests/check.h"
#include "tests/folder.h"
#include "tests/one_fails.h"

ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)
ONE_FAILS(int, pthread_create,
          (pthread_t * thread, const pthread_attr_t *how, void *(*fn)(void *), void *ctx),
          (thread, how, fn, ctx), EAGAIN)
ONE_FAILS(int, pthread_setaffinity_np, (pthread_t thread, size_t n, const cpu_set_t *set), (thread, n, set),
          EINVAL)

static char folder[FOLDER_NAME];

/* Writes a file below the folder of the present machine. */
static void put(const char *machine, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s/%s", folder, machine, name);
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    fputs(text, f);
    fclose(f);
}

static err_code read_plan(numa_plan *plan, const char *machine, const bool *allowed, err_detail *d)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, machine);
    return numa_plan_read(plan, path, allowed, d);
}

/* Two nodes of four cores of two threads, as Linux numbers them; a third has memory alone. */
static void make_two_nodes(void)
{
    put("two", "node/node0/cpulist", "0-3,8-11\n");
    put("two", "node/node1/cpulist", "4-7,12-15\n");
    put("two", "node/node2/cpulist", "\n");
    for (int i = 0; i < 16; i++) {
        char name[64], text[16];
        snprintf(name, sizeof name, "cpu/cpu%d/topology/thread_siblings_list", i);
        snprintf(text, sizeof text, "%d,%d\n", i % 8, i % 8 + 8);
        put("two", name, text);
    }
}

static void check_cpus(const numa_plan *plan, size_t n_threads, const int *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(numa_cpu(plan, i, n_threads), want[i]);
    }
}

static void test_plans(void)
{
    bool all[NUMA_CPUS], some[NUMA_CPUS] = {[2] = true, [10] = true, [12] = true, [13] = true};
    err_detail d;
    numa_plan plan;
    memset(all, 1, sizeof all);
    make_two_nodes();
    CHECK_INT(read_plan(&plan, "two", all, &d), ERR_OK);
    CHECK(plan.nodes == 3 && plan.n_nodes == 2 && plan.n_cores == 8 && plan.n_cpus == 16);
    check_cpus(&plan, 8, (const int[]){0, 1, 2, 3, 4, 5, 6, 7}, 8);
    check_cpus(&plan, 4, (const int[]){0, 2, 4, 6}, 4); /* two of each node */
    check_cpus(&plan, 2, (const int[]){0, 4}, 2);
    check_cpus(&plan, 18, (const int[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1}, 18);
    /* Of core 2 both threads, of 4 and 5 the second alone, which then stands for it. */
    CHECK_INT(read_plan(&plan, "two", some, &d), ERR_OK);
    CHECK(plan.nodes == 3 && plan.n_cores == 3 && plan.n_cpus == 4);
    check_cpus(&plan, 4, (const int[]){2, 12, 13, 10}, 4);
    /* No nodes: one. */
    put("plain", "cpu/online", "0-1\n");
    CHECK_INT(read_plan(&plan, "plain", some, &d), ERR_OK);
    CHECK(plan.n_nodes == 1 && plan.n_cores == 4);
    CHECK_INT(numa_spread_memory(&plan, &d), ERR_OK);
    /* A node whose number is the last one that is known. */
    put("far", "node/node63/cpulist", "2");
    CHECK_INT(read_plan(&plan, "far", some, &d), ERR_OK);
    CHECK(plan.nodes == UINT64_C(1) << 63 && plan.n_cpus == 1);
}

static void test_bad_lists(void)
{
    static const char *const lists[] = {"x",      "3-1",  "-1",   "1-", "1;2",
                                        "0-1024", "1024", "1,,2", " 1", "99999999999999999999"};
    bool all[NUMA_CPUS];
    err_detail d;
    numa_plan plan;
    memset(all, 1, sizeof all);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        put("bad", "node/node0/cpulist", lists[i]);
        CHECK_INT(read_plan(&plan, "bad", all, &d), ERR_INVALID);
        CHECK(strstr(d.text, "node0/cpulist is not a list of processors") != NULL);
    }
    put("bad", "node/node0/cpulist", "900-901");
    all[900] = all[901] = false;
    CHECK_INT(read_plan(&plan, "bad", all, &d), ERR_INVALID);
    CHECK(strstr(d.text, "no node in") != NULL);
    memset(all, 1, sizeof all);
    CHECK_INT(read_plan(&plan, "bad", all, &d), ERR_OK);
    CHECK_INT(plan.n_cpus, 2);
}

static void *ask_policy(void *mode)
{
    CHECK(syscall(SYS_get_mempolicy, mode, NULL, 0ul, NULL, 0ul) == 0);
    return NULL;
}

/* The policy reaches this thread and those that it starts; a node that is not there is refused in words. One node of
 * this machine is said to be two. */
static void test_memory(void)
{
    numa_plan plan = {.nodes = 1, .n_nodes = 2};
    err_detail d;
    int mode = 0, started_mode = 0;
    pthread_t started;
    if (numa_spread_memory(&plan, &d) != ERR_OK) {
        printf("not checked here: memory policies (%s)\n", d.text);
        return;
    }
    ask_policy(&mode);
    CHECK(pthread_create(&started, NULL, ask_policy, &started_mode) == 0);
    CHECK(pthread_join(started, NULL) == 0);
    CHECK_INT(mode, 3 /* MPOL_INTERLEAVE */);
    CHECK_INT(started_mode, 3);
    CHECK(syscall(SYS_set_mempolicy, 0l, NULL, 0ul) == 0);
    plan.nodes = UINT64_C(1) << 63;
    CHECK_INT(numa_spread_memory(&plan, &d), ERR_UNSUPPORTED);
    CHECK(strstr(d.text, "use --numa off") != NULL);
}

typedef struct seen {
    const numa_plan *plan;
    size_t n_threads;
} seen;

static void look_where(void *ctx, size_t task, size_t thread)
{
    const seen *s = ctx;
    cpu_set_t here;
    (void)task;
    CPU_ZERO(&here);
    CHECK(sched_getaffinity(0, sizeof here, &here) == 0);
    if (thread > 0 && (CPU_COUNT(&here) != 1 || !CPU_ISSET(numa_cpu(s->plan, thread, s->n_threads), &here))) {
        CHECK(thread == 0);
    }
}

/* Every thread is where the plan has it, and results are those of one thread. */
static void test_bound(void)
{
    enum { N = 300, K = 256, T = 3, THREADS = 5 };
    static float w[N * K], x[T * K], want[T * N], got[T * N];
    numa_plan plan;
    err_detail d;
    compute *one, *many;
    cpu_set_t before, after;
    for (size_t i = 0; i < N * K; i++) {
        w[i] = (float)(i * 7919 % 1009) / 1009.0f - 0.5f;
    }
    for (size_t i = 0; i < T * K; i++) {
        x[i] = (float)(i * 104729 % 997) / 997.0f - 0.5f;
    }
    const tensor weights = {.type = DTYPE_F32, .n_dims = 2, .dims = {N, K}, .data = w, .bytes = sizeof w};
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    CHECK_INT(compute_create(&one, &(compute_options){.n_threads = 1, .cpu_mask = ~0u}, &d), ERR_OK);
    CHECK_INT(
        compute_create(&many, &(compute_options){.n_threads = THREADS, .cpu_mask = ~0u, .spread = true}, &d),
        ERR_OK);
    CHECK(strstr(compute_describe(many), "5 threads on ") != NULL);
    CHECK(strstr(compute_describe(one), " on ") == NULL);
    CHECK(strstr(compute_describe(one), ", 1 thread, ") != NULL);
    compute *two = NULL;
    CHECK_OK(compute_create(&two, &(compute_options){.n_threads = 2}, &d), d);
    CHECK(strstr(compute_describe(two), ", 2 threads, ") != NULL);
    compute_destroy(two);
    CHECK_INT(numa_plan_read(&plan, NUMA_SYSTEM_DIR, NULL, &d), ERR_OK);
    pool_run(many->pool, look_where, &(seen){&plan, THREADS}, 200);
    compute_bind_caller(one);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&before, &after));
    compute_bind_caller(many);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_COUNT(&after) == 1);
    CHECK(CPU_ISSET(numa_cpu(&plan, 0, THREADS), &after));
    nn_linear(one, want, x, &weights, NULL, T);
    nn_linear(many, got, x, &weights, NULL, T);
    CHECK(memcmp(want, got, sizeof want) == 0);
    compute_destroy(one);
    compute_destroy(many);
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
}

/* Threads are not started where memory lacks or the system refuses; where one cannot be bound, the option is named. */
static void test_failing(void)
{
    static const struct {
        const char *call;
        int n_least;
        err_code err;
        const char *words;
    } ROWS[] = {
        {"calloc", 4, ERR_NOMEM, "cannot start 3 compute threads"},
        {"pthread_create", 2, ERR_NOMEM, "cannot start 3 compute threads"},
        {"pthread_setaffinity_np", 2, ERR_UNSUPPORTED, "--numa spread: the system does not bind a thread"}};
    const compute_options opt = {.n_threads = 3, .cpu_mask = ~0u, .spread = true};
    compute *c = NULL;
    err_detail d = {0};
    one_fails(NULL, 0);
    CHECK_OK(compute_create(&c, &opt, &d), d);
    one_fails_over();
    compute_destroy(c);
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const int n_calls = one_fails_counted(ROWS[i].call);
        CHECK(n_calls >= ROWS[i].n_least);
        for (int n = 1; n <= n_calls; n++) {
            d = (err_detail){0};
            one_fails(ROWS[i].call, n);
            CHECK_INT(compute_create(&c, &opt, &d), ROWS[i].err);
            CHECK(one_fails_over());
            CHECK(strstr(d.text, ROWS[i].words) || strcmp(d.text, "no memory for the compute context") == 0);
        }
    }
}

/* Tasks that the next free of n_threads equal threads takes, in order: what equal shares would take / the time of the
 * last thread. */
static double balance(const slice *tasks, size_t n_rows, size_t n_threads, size_t *n_tasks)
{
    static size_t busy[NUMA_CPUS];
    size_t row = 0, last = 0, n = 0;
    memset(busy, 0, sizeof busy);
    for (; row < n_rows; n++) {
        size_t first = 0;
        CHECK(tasks[n].n0 == row && tasks[n].n1 > row);
        for (size_t i = 1; i < n_threads; i++) {
            first = busy[i] < busy[first] ? i : first;
        }
        busy[first] += tasks[n].n1 - row;
        last = busy[first] > last ? busy[first] : last;
        row = tasks[n].n1;
    }
    *n_tasks = n;
    return (double)n_rows / (double)n_threads / (double)last;
}

/* The forks of a layer of the 0.8B shape (rows, columns) in bf16, of one row that decodes. From 32 threads on slices end
 * at 16 KiB: at 64 KiB it was 0.85 with 32 threads, 0.82 with 64, 0.62 with 128. */
static void test_balance(void)
{
    static const size_t forks[][2] = {{8224, 1024}, {1024, 2048}, {7168, 1024}, {1024, 3584}};
    static const struct {
        size_t n_threads;
        double least;
    } wanted[] = {{2, 0.99}, {16, 0.94}, {32, 0.97}, {64, 0.95}, {128, 0.90}};
    enum { MOST = 8224 * 1024, MOST_ROWS = 8224, MOST_COLUMNS = 3584 };
    uint16_t *weights = calloc(MOST, sizeof *weights);
    float *x = calloc(MOST_COLUMNS, sizeof *x), *out = calloc(MOST_ROWS, sizeof *out);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        err_detail d;
        compute *c;
        double ideal = 0, taken = 0;
        size_t n_tasks = 0;
        CHECK_INT(
            compute_create(&c, &(compute_options){.n_threads = wanted[i].n_threads, .cpu_mask = ~0u}, &d),
            ERR_OK);
        for (size_t k = 0; k < ARRAY_LEN(forks); k++) {
            const size_t N = forks[k][0], K = forks[k][1], n_bytes = N * K * sizeof *weights;
            const tensor w = {
                .type = DTYPE_BF16, .n_dims = 2, .dims = {N, K}, .data = weights, .bytes = n_bytes};
            size_t n;
            nn_linear(c, out, x, &w, NULL, 1);
            ideal += (double)n_bytes;
            taken += (double)n_bytes / balance(c->slices, N, wanted[i].n_threads, &n);
            n_tasks += n;
        }
        printf("%zu threads: %.2f of equal shares, %zu tasks a fork\n", wanted[i].n_threads, ideal / taken,
               n_tasks / ARRAY_LEN(forks));
        CHECK(ideal / taken >= wanted[i].least);
        compute_destroy(c);
    }
    free(weights), free(x), free(out);
}

int main(void)
{
    folder_make(folder);
    test_plans();
    test_bad_lists();
    test_memory();
    test_bound();
    test_failing();
    test_balance();
    CHECK_DONE();
}
