#include "compute/formats/kv_type.h"

#include <string.h>

static const char *const NAMES[KV_TYPES] = {"f32", "bf16", "f16", "q8", "q4"};

const int8_t KV_Q4_NUMBERS[KV_Q4_LEVELS] = {-127, -96, -75, -58, -44, -31, -18, -6,
                                            6,    18,  31,  44,  58,  75,  96,  127};

const char *kv_type_name(kv_type type)
{
    return NAMES[type];
}

bool kv_type_parse(kv_type *out, const char *text)
{
    for (kv_type type = KV_F32; type < KV_TYPES; type++) {
        if (strcmp(text, NAMES[type]) == 0) {
            *out = type;
            return true;
        }
    }
    return false;
}
