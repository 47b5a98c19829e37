/* folder: a temporary folder of a test, removed with all that is in it when the program ends.
 *
 *     char folder[FOLDER_NAME]; folder_make(folder);
 */
#ifndef PARLEY_TESTS_FOLDER_H
#define PARLEY_TESTS_FOLDER_H

#include <dirent.h>
#include <unistd.h>

#include "check.h"

enum { FOLDER_NAME = 64 };

static char folder_root[FOLDER_NAME]; /* all folders of the program are in here */
static int folders_made;
static pid_t folder_maker; /* a child that ends removes nothing */

static inline void folder_remove(const char *path)
{
    struct stat st;
    DIR *d = lstat(path, &st) == 0 && S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            char inside[4096];
            if (snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name) < (int)sizeof inside) {
                folder_remove(inside);
            }
        }
    }
    if (d) {
        closedir(d);
    }
    remove(path);
}

static inline void folder_remove_all(void)
{
    if (getpid() == folder_maker) {
        folder_remove(folder_root);
    }
}

/* Makes an empty folder whose name goes to `out` [FOLDER_NAME]. */
static inline void folder_make(char *out)
{
    if (folders_made == 0) {
        snprintf(folder_root, sizeof folder_root, "/tmp/parley_test_XXXXXX");
        folder_maker = getpid();
        if (!mkdtemp(folder_root)) {
            fprintf(stderr, "no temporary folder can be made in /tmp\n");
            exit(1);
        }
        atexit(folder_remove_all);
    }
    snprintf(out, FOLDER_NAME, "%.40s/%d", folder_root, folders_made++);
    CHECK(mkdir(out, 0700) == 0);
}

#endif
