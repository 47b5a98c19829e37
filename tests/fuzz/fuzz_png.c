/* png: checksums are put right first, because libpng drops a chunk whose checksum is wrong and a
 * changed file would never get past it. */
#include "tests/fuzz/image_target.h"
#include "tests/fuzz/mutate.h"

enum { SIGNATURE_BYTES = 8, CHUNK_EXTRA_BYTES = 12 };

static uint32_t crc32_of(const uint8_t *data, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
        }
    }
    return ~crc;
}

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Length, name, content, checksum: the checksum covers name and content. */
static void fix_checksums(uint8_t *data, size_t size)
{
    size_t at = SIGNATURE_BYTES;
    while (at < size && size - at >= CHUNK_EXTRA_BYTES) {
        size_t n = big_endian(data + at);
        if (n > size - at - CHUNK_EXTRA_BYTES) {
            return;
        }
        uint32_t crc = crc32_of(data + at + 4, n + 4);
        for (int i = 0; i < 4; i++) {
            data[at + 8 + n + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        }
        at += n + CHUNK_EXTRA_BYTES;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_png(data, size, max, seed, "png");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    image_check(data, size);
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy && size > 0) {
        memcpy(copy, data, size);
        fix_checksums(copy, size);
        image_check(copy, size);
    }
    free(copy);
    return 0;
}
