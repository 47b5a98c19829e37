/* family: what one family of models is: how its config is read. Constant tables; any thread.
 *
 *     const family *f = family_find("qwen3_5_moe");
 *     f->read(&cfg, &top, &text);
 *
 * A family is one file, model/config/family_NAME.c, a line in family.c, and a row in
 * docs/adding-a-model.md. Its reader turns config.json into a model_config, which holds everything
 * that the layers and weights.c need to know: the kind of every layer and of its feed-forward part,
 * the norm convention, which projections carry a gate, how positions are rotated. Nothing else in
 * the program asks for a family's name.
 */
#ifndef PARLEY_MODEL_CONFIG_FAMILY_H
#define PARLEY_MODEL_CONFIG_FAMILY_H

#include "model/config/config_read.h"

typedef struct family {
    /* model_type at the top of config.json, NULL-terminated. */
    const char *const *model_types;
    /* Fills cfg, which is zeroed but for its family; text is text_config, or top if there is none;
     * a fault is kept there (config_read.h). Special tokens, the tying of embeddings, eos and
     * vision are read afterwards, alike for all. */
    void (*read)(model_config *cfg, const config_section *top, const config_section *text);
    /* quant_method of files whose packed tensors are read as they were published; NULL: none but those
     * that are read for all families. */
    const char *packed_by;
} family;

extern const family FAMILY_QWEN3_5, FAMILY_QWEN3_NEXT, FAMILY_QWEN3, FAMILY_QWEN3_VL, FAMILY_NEMOTRON_H,
    FAMILY_MINIMAX_M2, FAMILY_GPT_OSS, FAMILY_LLAMA, FAMILY_MISTRAL, FAMILY_QWEN2, FAMILY_SMOLLM3,
    FAMILY_GLM4_MOE, FAMILY_GRANITE, FAMILY_GEMMA4;

/* The family of a model_type, or NULL. */
const family *family_find(const char *model_type);

/* Appends all model_types, for messages: "qwen3_5, qwen3_5_text, ...". */
void family_list(bytes *out);

#endif
