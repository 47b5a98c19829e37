#define _GNU_SOURCE /* sched_getaffinity, syscall */
#include "compute/numa.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compute/kernels/cpu.h"

enum { LIST_MAX = 4096, INTERLEAVE = 3 /* MPOL_INTERLEAVE */ };

/* Marks the processors of a list like "0-3,8,10-11"; false if it is none. */
static bool parse_list(const char *text, bool *in)
{
    while (*text && *text != '\n') {
        char *end;
        const unsigned long first = strtoul(text, &end, 10);
        unsigned long last = first;
        if (end == text || *text < '0' || *text > '9') {
            return false;
        }
        if (*end == '-') {
            text = end + 1;
            last = strtoul(text, &end, 10);
            if (end == text || *text < '0' || *text > '9') {
                return false;
            }
        }
        if (last < first || last >= NUMA_CPUS || (*end != ',' && *end != '\n' && *end != '\0')) {
            return false;
        }
        for (unsigned long i = first; i <= last; i++) {
            in[i] = true;
        }
        text = *end == ',' ? end + 1 : end;
    }
    return true;
}

/* The list of a node's processors; false if there is no such node. */
static bool read_node(char list[LIST_MAX], const char *dir, size_t node)
{
    char path[512];
    const int n = snprintf(path, sizeof path, "%s/node/node%zu/cpulist", dir, node);
    FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "r") : NULL;
    if (!f) {
        return false;
    }
    list[fread(list, 1, LIST_MAX - 1, f)] = '\0';
    fclose(f);
    return true;
}

static void allow_own(bool *allowed)
{
    cpu_set_t own;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof own, &own) != 0) {
        CPU_SET(0, &own);
    }
    for (int i = 0; i < NUMA_CPUS; i++) {
        allowed[i] = CPU_ISSET(i, &own);
    }
}

/* Adds the processors of a node, those that stand for their core or the others. */
static void add_cpus(numa_plan *p, const bool *in, const int *core_of, bool of_cores)
{
    for (int i = 0; i < NUMA_CPUS; i++) {
        if (in[i] && (core_of[i] == i) == of_cores) {
            p->cpus[p->n_cpus++] = i;
        }
    }
}

err_code numa_plan_read(numa_plan *out, const char *dir, const bool *allowed, err_detail *detail)
{
    static const bool NOBODY[NUMA_CPUS] = {false};
    bool own[NUMA_CPUS], in[NUMA_NODES][NUMA_CPUS];
    int core_of[NUMA_CPUS], stands_for[NUMA_CPUS];
    char list[LIST_MAX];
    size_t n_found = 0;
    memset(out, 0, sizeof *out);
    memset(in, 0, sizeof in);
    if (!allowed) {
        allow_own(own);
        allowed = own;
    }
    for (size_t node = 0; node < NUMA_NODES; node++) {
        if (!read_node(list, dir, node)) {
            continue;
        }
        n_found++;
        if (!parse_list(list, in[node])) {
            return err_set(detail, ERR_INVALID,
                           "%s/node/node%zu/cpulist is not a list of processors below %d", dir, node,
                           NUMA_CPUS);
        }
    }
    if (n_found == 0) {
        memcpy(in[0], allowed, sizeof in[0]);
    }
    /* The first processor of a core that may be used stands for it. */
    memset(stands_for, -1, sizeof stands_for);
    for (int i = 0; i < NUMA_CPUS; i++) {
        const int first = allowed[i] ? cpu_first_sibling(dir, i) : -1;
        const int core = first >= 0 && first < NUMA_CPUS ? first : i;
        stands_for[core] = allowed[i] && stands_for[core] < 0 ? i : stands_for[core];
        core_of[i] = stands_for[core];
    }
    for (size_t node = 0; node < NUMA_NODES; node++) {
        for (size_t i = 0; i < NUMA_CPUS; i++) {
            in[node][i] = in[node][i] && allowed[i];
        }
        const bool used = memcmp(in[node], NOBODY, sizeof NOBODY) != 0;
        out->nodes |= (uint64_t)used << node;
        out->n_nodes += used;
        add_cpus(out, in[node], core_of, true);
    }
    out->n_cores = out->n_cpus;
    for (size_t node = 0; node < NUMA_NODES; node++) {
        add_cpus(out, in[node], core_of, false);
    }
    if (out->n_cpus == 0) {
        return err_set(detail, ERR_INVALID, "no node in %s/node has a processor that this process may use",
                       dir);
    }
    return ERR_OK;
}

int numa_cpu(const numa_plan *plan, size_t thread, size_t n_threads)
{
    return n_threads <= plan->n_cores ? plan->cpus[thread * plan->n_cores / n_threads]
                                      : plan->cpus[thread % plan->n_cpus];
}

err_code numa_spread_memory(const numa_plan *plan, err_detail *detail)
{
    const unsigned long nodes = (unsigned long)plan->nodes;
    if (plan->n_nodes < 2) {
        return ERR_OK;
    }
    if (syscall(SYS_set_mempolicy, (long)INTERLEAVE, &nodes, (unsigned long)NUMA_NODES + 1) != 0) {
        return err_set(
            detail, ERR_UNSUPPORTED,
            "--numa spread: the system does not spread memory over %zu nodes (%s); use --numa off, and "
            "numactl --interleave=all from outside",
            plan->n_nodes, strerror(errno));
    }
    return ERR_OK;
}
