#include "vision/image/exif.h"

#include <stdbool.h>
#include <string.h>

#include "base/byte_order.h"

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, IFD_ENTRY_BYTES = 12 };

int exif_orientation(const uint8_t *tiff, size_t bytes)
{
    if (bytes < 8) {
        return 1;
    }
    const bool is_big = memcmp(tiff, "MM\0*", 4) == 0;
    if (!is_big && memcmp(tiff, "II*\0", 4) != 0) {
        return 1;
    }
    uint64_t (*read)(const uint8_t *p, size_t n) = is_big ? big_endian : little_endian;
    size_t ifd = read(tiff + 4, 4);
    if (ifd > bytes - 2) {
        return 1;
    }
    size_t n_entries = read(tiff + ifd, 2);
    size_t room = (bytes - ifd - 2) / IFD_ENTRY_BYTES;
    for (size_t i = 0; i < n_entries && i < room; i++) {
        const uint8_t *entry = tiff + ifd + 2 + i * IFD_ENTRY_BYTES;
        if (read(entry, 2) == TAG_ORIENTATION) {
            const uint64_t value = read(entry + 8, 2);
            bool valid = read(entry + 2, 2) == TYPE_SHORT && value >= 1 && value <= 8;
            return valid ? (int)value : 1;
        }
    }
    return 1;
}
