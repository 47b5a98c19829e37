/* disk_cache: a folder with a file of an entry, one of a block and one of a name, of which a stranger may have
 * written anything behind a good header: it opens, what is found in it holds together, and what makes no
 * sense is gone. The first byte chooses the header; three parts follow, each behind two bytes of length. */
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "engine/cache/disk_cache.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PARTS = 3, MAX_BYTES = 16384, BLOCK_BYTES = 256, HIDDEN = 8 };

static const disk_kind KINDS[PARTS] = {DISK_BLOCK, DISK_ENTRY, DISK_NAME};
static char folder[] = "/dev/shm/parley_cache_XXXXXX";

static void path_of(char *path, size_t cap, disk_kind kind)
{
    char name[DISK_NAME_CHARS];
    const disk_id id = {{0}};
    disk_file_name(name, kind, &id);
    snprintf(path, cap, "%s/%s", folder, name);
}

static void remove_files(void)
{
    char path[256];
    for (size_t i = 0; i < PARTS; i++) {
        path_of(path, sizeof path, KINDS[i]);
        unlink(path);
    }
}

static void remove_folder(void)
{
    char path[256];
    remove_files();
    snprintf(path, sizeof path, "%s/parley-cache.lock", folder);
    unlink(path);
    rmdir(folder);
}

/* A file whose header and checksum are right, or whose header is cut or changed at one place. */
static void put_file(int dir, disk_kind kind, const uint8_t *data, size_t n, uint8_t fault)
{
    char path[256];
    err_detail d = {0};
    const disk_file f = {.kind = kind, .fingerprint = {{fault & 8}}};
    const disk_part part = {(void *)(uintptr_t)data, n};
    must(disk_file_write(dir, &f, &part, 1, &d) == ERR_OK);
    if (fault & 1) {
        path_of(path, sizeof path, kind);
        const int fd = open(path, O_RDWR | O_CLOEXEC);
        must(fd >= 0 && pwrite(fd, &fault, 1, (fault >> 1) & (DISK_HEADER_BYTES - 1)) == 1);
        close(fd);
    }
}

static void look(void *ctx, const disk_entry *e)
{
    size_t *n = ctx;
    must(e->n_tokens > 0 && e->mtp_len >= 0 && e->n_blocks > 0);
    must(strlen(e->given) <= PREFIX_GIVEN_MAX && (!e->given[0] || prefix_cache_is_name(e->given)));
    say("entry: %d tokens, mtp %d, %d blocks, given %s", (int)e->n_tokens, (int)e->mtp_len, (int)e->n_blocks,
        e->given);
    *n += 1;
}

static void wake(void *ctx)
{
    (void)ctx;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    edit e = edit_begin(data, size, max, seed);
    size_t at = 1;
    for (size_t i = edit_below(&e, PARTS); i > 0 && at + 2 <= size; i--) {
        at += 2 + (data[at] | (size_t)data[at + 1] << 8);
    }
    const size_t n = at + 2 <= size ? data[at] | (size_t)data[at + 1] << 8 : size;
    if (n + at + 2 > size || edit_below(&e, 10) == 0) {
        return LLVMFuzzerMutate(data, size, max);
    }
    edit_bytes(&e, at + 2, at + 2 + n);
    const size_t now = n + e.size - size;
    data[at] = (uint8_t)now;
    data[at + 1] = (uint8_t)(now >> 8);
    return e.size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int dir;
    if (!dir) {
        log_set_level(LOG_OFF);
        must(mkdtemp(folder) != NULL);
        dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        must(dir > 0);
        atexit(remove_folder);
    }
    if (size < 1 || size > MAX_BYTES) {
        return 0;
    }
    size_t at = 1;
    for (size_t i = 0; i < PARTS && at + 2 <= size; i++) {
        size_t n = data[at] | (size_t)data[at + 1] << 8;
        n = n < size - at - 2 ? n : size - at - 2;
        put_file(dir, KINDS[i], data + at + 2, n, i == data[0] % PARTS ? data[0] / PARTS : 0);
        at += 2 + n;
    }
    disk_cache *dc = NULL;
    err_detail d = {0};
    const disk_cache_options options = {.dir = folder,
                                        .budget = 1 << 20,
                                        .block_bytes = BLOCK_BYTES,
                                        .hidden_size = HIDDEN,
                                        .own_bytes = 64,
                                        .can_cut = true,
                                        .wake = wake};
    must(disk_cache_open(&dc, &options, &d) == ERR_OK);
    size_t n_listed = 0;
    disk_cache_list(dc, 0, look, &n_listed);
    const disk_cache_stats s = disk_cache_get_stats(dc);
    must(s.n_entries <= 1 && n_listed <= s.n_entries);
    say("%llu entries, %llu bytes, %llu errors", (unsigned long long)s.n_entries, (unsigned long long)s.bytes,
        (unsigned long long)s.n_errors);
    uint64_t key[64] = {0};
    disk_hit hit;
    if (disk_cache_find(dc, key, sizeof key / sizeof key[0], 0, &hit)) {
        must(hit.n_tokens > 0 && hit.n_tokens < 64);
        say("found: %d tokens, mtp %d, cut %d", (int)hit.n_tokens, (int)hit.mtp_len, hit.is_cut);
    }
    disk_cache_clear(dc, NULL);
    disk_cache_close(dc);
    remove_files();
    return 0;
}
