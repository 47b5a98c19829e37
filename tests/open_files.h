/* open_files: what a test program has open, to see that everything was closed: descriptors, and maps of files below a
 * temporary folder or this tree (programs and libraries do not count).
 *
 *     CHECK_ALL_CLOSED();     // as many as when the program began
 *     CHECK_DONE();
 */
#ifndef PARLEY_TESTS_OPEN_FILES_H
#define PARLEY_TESTS_OPEN_FILES_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"

static inline size_t open_files(void)
{
    char line[8192];
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) {
        n++;
    }
    if (d) {
        closedir(d);
    }
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        const char *path = strchr(line, '/');
        n += path && !strstr(line, "r-xp") && !strstr(path, PARLEY_BUILD_DIR) &&
             (strncmp(path, "/tmp/parley", 11) == 0 ||
              strncmp(path, PARLEY_SOURCE_DIR, strlen(PARLEY_SOURCE_DIR)) == 0);
    }
    if (maps) {
        fclose(maps);
    }
    return n;
}

static size_t open_files_at_start;

__attribute__((constructor)) static void open_files_begin(void)
{
    open_files_at_start = open_files();
}

#define CHECK_ALL_CLOSED() CHECK_INT(open_files(), open_files_at_start)

#endif
