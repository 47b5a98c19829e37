#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>

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
