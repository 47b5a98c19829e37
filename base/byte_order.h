/* byte_order: unsigned numbers as files have them, in either order of bytes. Any thread; no state.
 *
 *     uint64_t n = little_endian(data, 8);
 */
#ifndef PARLEY_BASE_BYTE_ORDER_H
#define PARLEY_BASE_BYTE_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* The number in n bytes, at most 8: the last one counts least. */
static inline uint64_t big_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        v = v << 8 | p[i];
    }
    return v;
}

/* The same: the first one counts least. */
static inline uint64_t little_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    while (n-- > 0) {
        v = v << 8 | p[n];
    }
    return v;
}

#endif
