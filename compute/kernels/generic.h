/* generic: what the plain loops that specify the kernels share. For ops_generic.c, ops_kv_generic.c
 * and ops_ggml_generic.c. Any thread.
 *
 *     float lane[LANES] = {0}, sum = add_lanes(lane);
 */
#ifndef PARLEY_COMPUTE_KERNELS_GENERIC_H
#define PARLEY_COMPUTE_KERNELS_GENERIC_H

#include <stddef.h>

#include "compute/kernels/ops.h"

enum { LANES = 16 };

/* Lanes l and l+8, l+4, l+2, l+1 are added. */
static inline float add_lanes(float lane[LANES])
{
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t l = 0; l < half; l++) {
            lane[l] += lane[l + half];
        }
    }
    return lane[0];
}

/* Of the table in ops.h; in ops_kv_generic.c. */
void attend_q_generic(attend_queries *to, const attend_keys *keys);

#endif
