/* check_tool: what the check programs share: they end with exit code 2 where they cannot go on.
 * CHECK_TOOL_NAME, defined before the include, begins every message. Main thread.
 */
#ifndef PARLEY_TOOLS_CHECK_TOOL_H
#define PARLEY_TOOLS_CHECK_TOOL_H

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
