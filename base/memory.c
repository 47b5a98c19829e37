#include "base/memory.h"

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

size_t memory_available(void)
{
    size_t kib = SIZE_MAX >> 10;
    FILE *f = fopen("/proc/meminfo", "r");
    char line[128];
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemAvailable: %zu kB", &kib) == 1) {
            break;
        }
    }
    if (f) {
        fclose(f);
    }
    return kib << 10;
}
