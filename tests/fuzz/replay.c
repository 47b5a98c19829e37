/* Runs a fuzz target without a fuzzer: every seed as it is, cut at many places, and changed a
 * little in ways that are the same each time, also by the target's own mutator. So each build checks what
 * the fuzzer once found; and what the target says of these inputs (say.h) must be as it was (outcomes.h).
 *
 *     build/fuzz_json tests/fuzz/seeds/json        compares with tests/fuzz/outcomes/json.txt
 *     build/fuzz_json FILE...                      any inputs; PARLEY_SAY=1 prints what came of each
 *
 * tests/fuzz/lines/NAME.txt has further seeds, small ones: a line each, with \n, \t, \\ and \xHH; # begins a comment.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hex.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/outcomes.h"
#include "tests/fuzz/say.h"

#pragma weak LLVMFuzzerCustomMutator
#pragma weak fuzz_each

/* Changes of a seed, and cuts; of a line fewer. A round is a cut, a change and some by the target's own mutator. */
enum {
    MAX_SEED_BYTES = 1 << 20,
    N_PREFIXES = 101,
    N_CHANGES = 200,
    N_LINE_CHANGES = 8,
    MAX_CHANGES_PER_INPUT = 8,
    MAX_NAME = 80
};

/* Slow targets stop changing seeds after this much time of the processor, which all have a share of; the seeds
 * themselves, and what is recorded, always run. */
static const double CHANGE_BUDGET_MS = 4000;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t n_runs;
static double started_ms, budget_ms; /* of a round; what a seed leaves is for those behind it */
static size_t n_rounds;
static bytes said;
static outcomes recorded;
static bool compares, says, all_ran;

/* Of the processor: other work on the machine leaves nothing out. */
static double used_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Whether there is time, or the input is recorded. */
static bool is_wanted(const char *key)
{
    const bool wanted =
        used_ms() - started_ms < budget_ms * (double)n_rounds || (compares && outcomes_has(&recorded, key));
    all_ran = all_ran && wanted;
    return wanted;
}

/* The target gets a heap copy of exactly n bytes, so that one byte too many shows under ASan. */
static void run_input(const char *key, const char *data, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);
    if (!copy) {
        abort();
    }
    if (n > 0) {
        memcpy(copy, data, n);
    }
    bytes_clear(&said);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
    n_runs++;
    if (compares) {
        outcomes_add(&recorded, key, data, n, &said);
    }
    if (says) {
        printf("%s\n%s", key, bytes_str(&said));
    }
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

static uint64_t mutator_state;

/* What libFuzzer has; for the mutators of the targets. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
    bytes b = bytes_empty(2 * MAX_SEED_BYTES);
    bytes_append(&b, data, size);
    change(&b, &mutator_state);
    const size_t n = b.len < max ? b.len : max;
    memcpy(data, bytes_str(&b), n);
    bytes_deinit(&b);
    return n;
}

/* The seed, changed some times over by the target's own mutator. */
static void run_own_changes(const bytes *seed, unsigned number)
{
    enum { ROOM = 4096, TIMES = 4 };
    char key[32];
    uint8_t *data = malloc(seed->len + ROOM);
    if (!data) {
        abort();
    }
    memcpy(data, bytes_str(seed), seed->len);
    size_t n = seed->len;
    mutator_state = 0x9E3779B97F4A7C15u + number;
    for (unsigned i = 0; i < TIMES; i++) {
        n = LLVMFuzzerCustomMutator(data, n, seed->len + ROOM, TIMES * number + i);
        snprintf(key, sizeof key, " own %u", TIMES * number + i);
        if (is_wanted(key)) {
            run_input(key, (const char *)data, n);
        }
    }
    free(data);
}

static void run_change(const bytes *seed, unsigned number)
{
    char key[32];
    snprintf(key, sizeof key, " change %u", number);
    if (!is_wanted(key)) {
        return;
    }
    bytes changed = bytes_empty(2 * MAX_SEED_BYTES);
    bytes_append(&changed, bytes_str(seed), seed->len);
    uint64_t state = 0x9E3779B97F4A7C15u ^ (seed->len + ((uint64_t)number << 32));
    (void)next_random(&state);
    const size_t n = (size_t)(next_random(&state) % MAX_CHANGES_PER_INPUT) + 1;
    for (size_t k = 0; k < n; k++) {
        change(&changed, &state);
    }
    run_input(key, bytes_str(&changed), changed.len);
    bytes_deinit(&changed);
}

/* Cuts go far and near in turn, as not all may be recorded; N_PREFIXES is prime. */
static void run_cut(const bytes *seed, unsigned number)
{
    const size_t step = seed->len / N_PREFIXES + 1, n = (size_t)number * 61 % N_PREFIXES * step;
    char key[32];
    snprintf(key, sizeof key, " cut %zu", n);
    if (number < N_PREFIXES && n < seed->len && is_wanted(key)) {
        run_input(key, bytes_str(seed), n);
    }
}

/* All small changes that the target numbers; they go before those by chance. */
static void run_each(const bytes *seed)
{
    enum { ROOM = 256 };
    char key[32];
    uint8_t *data = malloc(seed->len + ROOM);
    if (!data) {
        abort();
    }
    for (unsigned i = 0;; i++) {
        memcpy(data, bytes_str(seed), seed->len);
        const size_t n = fuzz_each(data, seed->len, seed->len + ROOM, i);
        if (n == MUTATE_NO_MORE) {
            break;
        }
        snprintf(key, sizeof key, " each %u", i);
        if (n > 0 && (used_ms() - started_ms < CHANGE_BUDGET_MS || outcomes_has(&recorded, key))) {
            run_input(key, (const char *)data, n);
        } else {
            all_ran = all_ran && n == 0;
        }
    }
    free(data);
    if (compares) {
        outcomes_end_seed(&recorded, all_ran);
    }
}

static void run_seed(const char *name, const bytes *seed, unsigned n_changes)
{
    run_input(name, bytes_str(seed), seed->len);
    n_rounds += n_changes;
    all_ran = true;
    if (fuzz_each) {
        run_each(seed);
    }
    for (unsigned i = 0; i < n_changes; i++) {
        run_cut(seed, i);
        run_change(seed, i);
        if (LLVMFuzzerCustomMutator) {
            run_own_changes(seed, i);
        }
    }
    if (compares) {
        outcomes_end_seed(&recorded, all_ran);
    }
}

static void read_whole(bytes *out, const char *path)
{
    err_detail detail = {0};
    *out = bytes_empty(MAX_SEED_BYTES);
    if (file_read(out, path, &detail) != ERR_OK) {
        fprintf(stderr, "%s\n", detail.text);
        exit(1);
    }
}

static void run_file(const char *name, const char *path)
{
    bytes seed;
    read_whole(&seed, path);
    run_seed(name, &seed, N_CHANGES);
    bytes_deinit(&seed);
}

static void unescape(bytes *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char next = i + 1 < n ? text[i + 1] : 0;
        if (text[i] != '\\' || next == 0) {
            bytes_append_char(out, text[i]);
        } else if (next == 'x' && i + 3 < n) {
            bytes_append_char(out, (char)(hex_digit(text[i + 2]) << 4 | hex_digit(text[i + 3])));
            i += 3;
        } else {
            bytes_append_char(out, next == 'n' ? '\n' : next == 't' ? '\t' : next);
            i++;
        }
    }
}

/* The seeds of a file of lines, or only their number. */
static size_t run_lines(const char *path, bool only_count)
{
    bytes text;
    size_t n_seeds = 0;
    if (!file_exists(path)) {
        return 0;
    }
    read_whole(&text, path);
    for (const char *line = bytes_str(&text); *line;) {
        const size_t n = strcspn(line, "\n");
        const bool is_seed = n > 0 && line[0] != '#';
        n_seeds += is_seed;
        if (is_seed && !only_count) {
            bytes seed = bytes_empty(MAX_SEED_BYTES), name = bytes_empty(MAX_SEED_BYTES);
            unescape(&seed, line, n);
            if (n <= MAX_NAME) {
                bytes_printf(&name, "= %.*s", (int)n, line);
            } else {
                bytes_printf(&name, "= %.*s... (%zu, %08x)", MAX_NAME, line, n,
                             (unsigned)say_sum_of(line, n));
            }
            run_seed(bytes_str(&name), &seed, N_LINE_CHANGES);
            bytes_deinit(&seed);
            bytes_deinit(&name);
        }
        line += n + (line[n] != 0);
    }
    bytes_deinit(&text);
    return n_seeds;
}

/* A folder of seeds, and what belongs to it: DIR/../../lines/NAME.txt and DIR/../../outcomes/NAME.txt. */
static size_t run_folder(const char *path, struct dirent **entries, int n)
{
    char lines[PATH_MAX], expected[PATH_MAX], file[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(lines, sizeof lines, "%s/../../lines/%s.txt", path, name);
    snprintf(expected, sizeof expected, "%s/../../outcomes", path);
    DIR *folder = opendir(expected);
    const size_t n_lines = run_lines(lines, true);
    size_t n_files = 0;
    for (int i = 0; i < n; i++) {
        n_files += entries[i]->d_name[0] != '.';
    }
    if (folder) {
        closedir(folder);
    }
    snprintf(expected, sizeof expected, "%s/../../outcomes/%s.txt", path, name);
    compares = folder != NULL;
    if (compares) {
        outcomes_begin(&recorded, expected, n_files + n_lines);
    }
    started_ms = used_ms();
    n_rounds = 0;
    budget_ms = recorded.writes
                    ? 1e9
                    : CHANGE_BUDGET_MS / (double)(N_CHANGES * n_files + N_LINE_CHANGES * n_lines + 1);
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.' && file_join(file, sizeof file, path, entries[i]->d_name)) {
            run_file(entries[i]->d_name, file);
        }
    }
    run_lines(lines, false);
    return n_files + n_lines;
}

int main(int argc, char **argv)
{
    size_t n_seeds = 0;
    bool good = true;
    says = getenv("PARLEY_SAY") != NULL;
    said = bytes_empty(SIZE_MAX / 2);
    say_to(&said);
    for (int i = 1; i < argc; i++) {
        struct dirent **entries;
        const int n = scandir(argv[i], &entries, NULL, alphasort);
        if (n < 0) {
            started_ms = used_ms();
            n_rounds = 0;
            budget_ms = CHANGE_BUDGET_MS / N_CHANGES;
            run_file(argv[i], argv[i]);
            n_seeds++;
            continue;
        }
        n_seeds += run_folder(argv[i], entries, n);
        good = (!compares || outcomes_end(&recorded)) && good;
        compares = false;
        for (int k = 0; k < n; k++) {
            free(entries[k]);
        }
        free(entries);
    }
    bytes_deinit(&said);
    printf("%zu seeds, %zu runs\n", n_seeds, n_runs);
    return good && n_seeds > 0 ? 0 : 1;
}
