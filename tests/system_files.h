/* system_files: a folder that stands for the files of /proc and /sys/fs/cgroup, for memory_read_state.
 *
 *     char root[FOLDER_NAME]; folder_make(root); system_file(root, "/proc/meminfo", "MemTotal: 8 kB\n");
 */
#ifndef PARLEY_TESTS_SYSTEM_FILES_H
#define PARLEY_TESTS_SYSTEM_FILES_H

#include "tests/folder.h"

/* Writes a file below the root, with the folders that it needs. */
static inline void system_file(const char *root, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

#endif
