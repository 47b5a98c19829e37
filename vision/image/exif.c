#include "vision/image/exif.h"

#include <stdbool.h>
#include <string.h>

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, IFD_ENTRY_BYTES = 12 };

static uint32_t read_uint(const uint8_t *p, size_t n, bool big_endian)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++) {
        v = (v << 8) | p[big_endian ? i : n - 1 - i];
    }
    return v;
}

int exif_orientation(const uint8_t *tiff, size_t bytes)
{
    if (bytes < 8) {
        return 1;
    }
    bool big_endian = memcmp(tiff, "MM\0*", 4) == 0;
    if (!big_endian && memcmp(tiff, "II*\0", 4) != 0) {
        return 1;
    }
    size_t ifd = read_uint(tiff + 4, 4, big_endian);
    if (ifd > bytes - 2) {
        return 1;
    }
    size_t n_entries = read_uint(tiff + ifd, 2, big_endian);
    size_t room = (bytes - ifd - 2) / IFD_ENTRY_BYTES;
    for (size_t i = 0; i < n_entries && i < room; i++) {
        const uint8_t *entry = tiff + ifd + 2 + i * IFD_ENTRY_BYTES;
        if (read_uint(entry, 2, big_endian) == TAG_ORIENTATION) {
            uint32_t value = read_uint(entry + 8, 2, big_endian);
            bool valid = read_uint(entry + 2, 2, big_endian) == TYPE_SHORT && value >= 1 && value <= 8;
            return valid ? (int)value : 1;
        }
    }
    return 1;
}
