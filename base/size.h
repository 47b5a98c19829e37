/* size: multiplication and addition of sizes that may come from a file or a request. Any thread.
 *
 *     if (!size_mul(&n, rows, row_bytes)) { return ERR_LIMIT; }
 */
#ifndef PARLEY_BASE_SIZE_H
#define PARLEY_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

/* *out = a * b; false (and *out untouched in meaning) if the product does not fit. */
static inline MUST_CHECK bool size_mul(size_t *out, size_t a, size_t b)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* *out = a + b; false if the sum does not fit. */
static inline MUST_CHECK bool size_add(size_t *out, size_t a, size_t b)
{
    return !__builtin_add_overflow(a, b, out);
}

#endif
