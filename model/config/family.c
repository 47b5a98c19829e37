#include "model/config/family.h"

#include <string.h>

#include "base/compiler.h"

static const family *const FAMILIES[] = {
    &FAMILY_QWEN3_5,    &FAMILY_QWEN3_NEXT, &FAMILY_QWEN3,   &FAMILY_QWEN3_VL, &FAMILY_NEMOTRON_H,
    &FAMILY_MINIMAX_M2, &FAMILY_GPT_OSS,    &FAMILY_LLAMA,   &FAMILY_MISTRAL,  &FAMILY_QWEN2,
    &FAMILY_SMOLLM3,    &FAMILY_GLM4_MOE,   &FAMILY_GRANITE, &FAMILY_GEMMA4};

const family *family_find(const char *model_type)
{
    for (size_t i = 0; i < ARRAY_LEN(FAMILIES); i++) {
        for (const char *const *t = FAMILIES[i]->model_types; *t; t++) {
            if (strcmp(*t, model_type) == 0) {
                return FAMILIES[i];
            }
        }
    }
    return NULL;
}

void family_list(bytes *out)
{
    for (size_t i = 0; i < ARRAY_LEN(FAMILIES); i++) {
        for (const char *const *t = FAMILIES[i]->model_types; *t; t++) {
            bytes_printf(out, out->len ? ", %s" : "%s", *t);
        }
    }
}
