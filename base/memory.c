#include "base/memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

bool memory_grow(void *items, size_t *cap, size_t n, size_t first, size_t item_bytes)
{
    size_t more = *cap ? 2 * *cap : first, n_bytes = 0;
    void *array;
    if (n <= *cap) {
        return true;
    }
    more = more < n ? n : more;
    memcpy(&array, items, sizeof array);
    array = size_mul(&n_bytes, more, item_bytes) ? realloc(array, n_bytes) : NULL;
    if (array) {
        memcpy(items, &array, sizeof array);
        *cap = more;
    }
    return array != NULL;
}

void memory_share_heaps(void)
{
    (void)mallopt(M_ARENA_MAX, 2);
}

/* ---- what the system has left ---- */

enum { SYSTEM_PATH_MAX = 4096, LINE_MAX_BYTES = 256 };

/* A file below the root; NULL if there is none. */
static FILE *open_below(const char *root, const char *format, const char *a, const char *b)
{
    char name[SYSTEM_PATH_MAX], path[2 * SYSTEM_PATH_MAX];
    const int n = snprintf(name, sizeof name, format, a, b);
    if (n < 0 || (size_t)n >= sizeof name) {
        return NULL;
    }
    snprintf(path, sizeof path, "%s%s", root, name);
    return fopen(path, "r");
}

/* The number behind a word at the beginning of a line ("" for the first line's number); SIZE_MAX
 * without one. Closes the file. */
static size_t number_of(FILE *f, const char *word)
{
    size_t n = 0;
    bool found = false;
    char line[LINE_MAX_BYTES];
    const size_t len = strlen(word);
    while (f && !found && fgets(line, sizeof line, f)) {
        char *end = line + len;
        n = strncmp(line, word, len) == 0 ? strtoull(line + len, &end, 10) : 0;
        found = end > line + len;
    }
    if (f) {
        fclose(f);
    }
    return found ? n : SIZE_MAX;
}

/* The files of a control group's memory in either version of the interface. */
typedef struct group_files {
    const char *limit, *usage, *stat; /* formats of folder and group */
    const char *cached[2];            /* lines of `stat`: pages of files */
} group_files;

static const group_files GROUP_V1 = {
    "%s%s/memory.limit_in_bytes",
    "%s%s/memory.usage_in_bytes",
    "%s%s/memory.stat",
    {"total_inactive_file ", "total_active_file "},
};
static const group_files GROUP_V2 = {
    "%s%s/memory.max",
    "%s%s/memory.current",
    "%s%s/memory.stat",
    {"inactive_file ", "active_file "},
};

/* Lowers what is available to what a group and those above it leave. group: its path, cut here. */
static void read_groups(memory_state *m, const char *root, const group_files *files, const char *folder,
                        char *group)
{
    for (;;) {
        const char *name = strcmp(group, "/") == 0 ? "" : group;
        const size_t limit = number_of(open_below(root, files->limit, folder, name), "");
        size_t used = number_of(open_below(root, files->usage, folder, name), "");
        if (limit < m->total && used != SIZE_MAX) {
            m->total = limit;
        }
        if (limit != SIZE_MAX && used != SIZE_MAX) {
            for (size_t i = 0; i < 2; i++) {
                const size_t files_of =
                    number_of(open_below(root, files->stat, folder, name), files->cached[i]);
                used -= files_of == SIZE_MAX ? 0 : files_of < used ? files_of : used;
            }
            const size_t left = limit > used ? limit - used : 0;
            m->available = left < m->available ? left : m->available;
        }
        if (strcmp(group, "/") == 0) {
            break;
        }
        char *last = strrchr(group, '/'); /* it begins with one */
        last[last == group ? 1 : 0] = '\0';
    }
}

/* The part of ten seconds in which every task waited, by the kernel's pressure stall information. */
static double stalled_of(FILE *f)
{
    static const char WORD[] = "full avg10=";
    double percent = 0;
    char line[LINE_MAX_BYTES];
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, WORD, sizeof WORD - 1) == 0) {
            percent = strtod(line + sizeof WORD - 1, NULL);
        }
    }
    if (f) {
        fclose(f);
    }
    return percent >= 0 && percent <= 100 ? percent / 100 : 0;
}

/* A line of /proc/self/cgroup: "7:memory:/a/b", or "0::/a/b" of version 2. */
static void read_group_line(memory_state *m, const char *root, char *line, bool *stall_known)
{
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group || group[1] != '/') {
        return;
    }
    *controllers++ = '\0';
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (*controllers == '\0') {
        FILE *pressure = strcmp(group, "/") == 0
                             ? NULL
                             : open_below(root, "%s%s/memory.pressure", "/sys/fs/cgroup", group);
        if (pressure) {
            *stall_known = true;
            m->stalled = stalled_of(pressure);
        }
        read_groups(m, root, &GROUP_V2, "/sys/fs/cgroup", group);
    } else if (strstr(controllers, "memory")) {
        read_groups(m, root, &GROUP_V1, "/sys/fs/cgroup/memory", group);
    }
}

memory_state memory_read_state(const char *root)
{
    root = root ? root : "";
    memory_state m = {.total = SIZE_MAX, .available = SIZE_MAX};
    const size_t total = number_of(open_below(root, "%s%s", "/proc/meminfo", ""), "MemTotal:");
    const size_t free_kib = number_of(open_below(root, "%s%s", "/proc/meminfo", ""), "MemAvailable:");
    m.total = total > SIZE_MAX >> 10 ? SIZE_MAX : total << 10;
    m.available = free_kib > SIZE_MAX >> 10 ? SIZE_MAX : free_kib << 10;
    bool stall_known = false; /* a neighbour's waiting is not ours, where the kernel tells them apart */
    char line[SYSTEM_PATH_MAX];
    FILE *f = open_below(root, "%s%s", "/proc/self/cgroup", "");
    while (f && fgets(line, sizeof line, f)) {
        read_group_line(&m, root, line, &stall_known);
    }
    if (f) {
        fclose(f);
    }
    if (!stall_known) {
        m.stalled = stalled_of(open_below(root, "%s%s", "/proc/pressure/memory", ""));
    }
    return m;
}

/* Short: less than such a part is left, at most so many bytes; or such a part of the time is lost. */
enum { SHORT_PART = 32 };
#define SHORT_BYTES   ((size_t)512 << 20)
#define SHORT_STALLED 0.1

bool memory_is_short(const memory_state *m)
{
    const size_t part = m->total / SHORT_PART;
    return m->available < (part < SHORT_BYTES ? part : SHORT_BYTES) || m->stalled >= SHORT_STALLED;
}

size_t memory_available(void)
{
    return memory_read_state(NULL).available;
}
