/* Runs a fuzz target without a fuzzer: every seed as it is, cut at many places, and changed a
 * little in ways that are the same each time, also by the target's own mutator. So each build checks what
 * the fuzzer once found.
 *
 *     build/fuzz_json tests/fuzz/seeds/json        (folders or single files)
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/file.h"
#include "tests/fuzz/mutate.h"

#pragma weak LLVMFuzzerCustomMutator

enum { MAX_SEED_BYTES = 1 << 20, N_PREFIXES = 100, N_CHANGES = 200, MAX_CHANGES_PER_INPUT = 8 };

/* Slow targets stop changing a seed after this long; the seeds themselves always run. */
static const double CHANGE_BUDGET_MS = 4000;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t n_runs;
static double started_ms, budget_ms;

static bool in_budget(void)
{
    return clock_ms() - started_ms < budget_ms;
}

/* The target gets a heap copy of exactly n bytes, so that one byte too many shows under ASan. */
static void run_input(const char *data, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);
    if (!copy) {
        abort();
    }
    if (n > 0) {
        memcpy(copy, data, n);
    }
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
    n_runs++;
}

/* xorshift64*: the same numbers on every machine. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

/* One small change: a bit, a byte of special value, a piece removed or repeated at the end. */
static void change(bytes *b, uint64_t *state)
{
    static const uint8_t special[] = {0, 1, 0x7F, 0x80, 0xFF, '"', '\\', '{', '[', '<', '\n'};
    if (b->len == 0) {
        return;
    }
    size_t at = (size_t)(next_random(state) % b->len);
    size_t n = (size_t)(next_random(state) % 16) + 1;
    n = n < b->len - at ? n : b->len - at;
    switch (next_random(state) % 4) {
    case 0:
        b->data[at] = (char)(b->data[at] ^ (1 << next_random(state) % 8));
        break;
    case 1:
        b->data[at] = (char)special[next_random(state) % sizeof special];
        break;
    case 2:
        memmove(b->data + at, b->data + at + n, b->len - at - n);
        b->len -= n;
        break;
    default:
        for (size_t i = 0; i < n; i++) {
            bytes_append_char(b, b->data[at + i]);
        }
        break;
    }
}

/* What libFuzzer has; for the mutators of the targets. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
    static uint64_t state = 0x9E3779B97F4A7C15u;
    bytes b = bytes_empty(2 * MAX_SEED_BYTES);
    bytes_append(&b, data, size);
    change(&b, &state);
    const size_t n = b.len < max ? b.len : max;
    memcpy(data, bytes_str(&b), n);
    bytes_deinit(&b);
    return n;
}

/* The seed, changed some times over by the target's own mutator. */
static void run_own_changes(const bytes *seed, unsigned number)
{
    enum { ROOM = 4096, TIMES = 4 };
    uint8_t *data = malloc(seed->len + ROOM);
    if (!data) {
        abort();
    }
    memcpy(data, bytes_str(seed), seed->len);
    size_t n = seed->len;
    for (unsigned i = 0; i < TIMES; i++) {
        n = LLVMFuzzerCustomMutator(data, n, seed->len + ROOM, TIMES * number + i);
        run_input((const char *)data, n);
    }
    free(data);
}

static void run_seed(const char *path)
{
    err_detail detail = {0};
    bytes seed, changed;
    bytes_init(&seed, MAX_SEED_BYTES);
    bytes_init(&changed, 2 * MAX_SEED_BYTES);
    if (file_read(&seed, path, &detail) != ERR_OK) {
        fprintf(stderr, "%s\n", detail.text);
        exit(1);
    }
    run_input(bytes_str(&seed), seed.len);
    started_ms = clock_ms();
    size_t step = seed.len / N_PREFIXES + 1;
    for (size_t n = 0; n < seed.len && in_budget(); n += step) {
        run_input(bytes_str(&seed), n);
    }
    uint64_t state = 0x9E3779B97F4A7C15u ^ seed.len;
    for (int i = 0; i < N_CHANGES && in_budget(); i++) {
        bytes_clear(&changed);
        bytes_append(&changed, bytes_str(&seed), seed.len);
        size_t n = (size_t)(next_random(&state) % MAX_CHANGES_PER_INPUT) + 1;
        for (size_t k = 0; k < n; k++) {
            change(&changed, &state);
        }
        run_input(bytes_str(&changed), changed.len);
        if (LLVMFuzzerCustomMutator) {
            run_own_changes(&seed, (unsigned)i);
        }
    }
    bytes_deinit(&seed);
    bytes_deinit(&changed);
}

static int run_folder(const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0) {
        run_seed(path);
        return 1;
    }
    int n_seeds = 0;
    budget_ms = CHANGE_BUDGET_MS / (n > 2 ? n - 2 : 1);
    for (int i = 0; i < n; i++) {
        char file[PATH_MAX];
        if (entries[i]->d_name[0] != '.' && file_join(file, sizeof file, path, entries[i]->d_name)) {
            run_seed(file);
            n_seeds++;
        }
        free(entries[i]);
    }
    free(entries);
    return n_seeds;
}

int main(int argc, char **argv)
{
    int n_seeds = 0;
    budget_ms = CHANGE_BUDGET_MS;
    for (int i = 1; i < argc; i++) {
        n_seeds += run_folder(argv[i]);
    }
    printf("%d seeds, %zu runs\n", n_seeds, n_runs);
    return n_seeds > 0 ? 0 : 1;
}
