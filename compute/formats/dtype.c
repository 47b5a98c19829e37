#include "compute/formats/dtype.h"

size_t dtype_bytes(dtype type)
{
    return type == DTYPE_F32 ? 4 : type < DTYPE_OTHER ? 2 : 0;
}

const char *dtype_name(dtype type)
{
    static const char *const names[DTYPES] = {
        "f32",  "bf16", "f16",  "other", "q8",   "q4",   "q5",     "q8_0",   "q4_0",  "q4_1", "q5_0",
        "q5_1", "q2_k", "q3_k", "q4_k",  "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4", "af4",  "af8",
    };
    return names[type];
}
