#include "compute/formats/kv_type.h"

#include <string.h>

static const char *const NAMES[KV_TYPES] = {"f32", "bf16", "f16", "q8"};

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
