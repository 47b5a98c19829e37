/* check_tool: what the check programs share: they end with exit code 2 where they cannot go on.
 * CHECK_TOOL_NAME, defined before the include, begins every message. Main thread.
 */
#ifndef PARLEY_TOOLS_CHECK_TOOL_H
#define PARLEY_TOOLS_CHECK_TOOL_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "vision/image/image.h"

/* Prints the error and ends the program unless err is ERR_OK. */
static inline void require(err_code err, const err_detail *d)
{
    if (err) {
        fprintf(stderr, CHECK_TOOL_NAME ": %s\n", d->text);
        exit(2);
    }
}

/* p, or the end of the program if it is NULL. */
static inline void *must(void *p)
{
    if (!p) {
        fprintf(stderr, CHECK_TOOL_NAME ": out of memory\n");
        exit(2);
    }
    return p;
}

/* For qsort: texts in the order of their bytes. */
static inline int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

enum { MAX_CASES = 256 };

/* Names of the files DIR/cases/NAME.safetensors without their ending, sorted; at most MAX_CASES. The
 * caller frees each. */
static inline size_t list_cases(const char *dir, char **names)
{
    static const char ending[] = ".safetensors";
    char path[8192];
    size_t n = 0, n_ending = sizeof ending - 1;
    snprintf(path, sizeof path, "%s/cases", dir);
    DIR *d = opendir(path);
    if (!d) {
        fprintf(stderr, CHECK_TOOL_NAME ": there is no folder %s\n", path);
        exit(2);
    }
    for (struct dirent *e = readdir(d); e && n < MAX_CASES; e = readdir(d)) {
        const size_t len = strlen(e->d_name);
        if (len > n_ending && strcmp(e->d_name + len - n_ending, ending) == 0) {
            names[n] = must(strdup(e->d_name));
            names[n++][len - n_ending] = '\0';
        }
    }
    closedir(d);
    qsort(names, n, sizeof *names, compare_names);
    return n;
}

/* The index of the largest of n numbers, the first of equal ones. */
static inline size_t best_of(const float *p, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        best = p[i] > p[best] ? i : best;
    }
    return best;
}

/* The decoded image at path; the caller frees it with image_deinit. */
static inline void load_image(image *img, const char *path)
{
    err_detail d = {0};
    file_map map;
    image_limits limits = {LIMIT_IMAGE_PIXELS, LIMIT_IMAGE_SIDE};
    require(file_map_open(&map, path, &d), &d);
    require(image_decode(img, map.data, map.bytes, &limits, &d), &d);
    file_map_close(&map);
}

#endif
