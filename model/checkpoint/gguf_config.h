/* gguf_config: the metadata of a GGUF model as the documents of a folder (config.json,
 * generation_config.json, preprocessor_config.json). Loading thread.
 *
 *     gguf_config_source from = {set, mmproj, "model.gguf", "mmproj.gguf"};
 *     err = gguf_config_json(&text, &from, &detail);
 */
#ifndef PARLEY_MODEL_CHECKPOINT_GGUF_CONFIG_H
#define PARLEY_MODEL_CHECKPOINT_GGUF_CONFIG_H

#include "base/bytes.h"
#include "model/checkpoint/gguf_set.h"

typedef struct gguf_config_source {
    const gguf_set *set;
    const gguf_file *vision;        /* the mmproj file, or NULL */
    const char *path, *vision_path; /* for messages */
} gguf_config_source;

/* Whether an architecture (general.architecture) is known; ERR_UNSUPPORTED names those that are. path: for
 * the message. */
MUST_CHECK err_code gguf_config_check(const char *path, const char *name, size_t n, err_detail *detail);

/* Numbers of layers in the file: those of the decoder, then those of the draft head.
 * ERR_UNSUPPORTED names an architecture that is not known, ERR_CORRUPT a value that is missing or
 * wrong. */
MUST_CHECK err_code gguf_config_layers(const gguf_config_source *from, uint64_t *n_layers, uint64_t *n_draft,
                                       err_detail *detail);

/* Whether its GatedDeltaNet value heads are in tiled order: head h uses key head h % nk. */
bool gguf_config_is_tiled(const gguf_config_source *from);

/* What names of tensors mean: some are of Mamba-2's, not of GatedDeltaNet's state space layers; some of
 * Gemma's norms on both sides of a part. */
typedef enum gguf_names { GGUF_NAMES_USUAL, GGUF_NAMES_MAMBA, GGUF_NAMES_GEMMA } gguf_names;
gguf_names gguf_config_names(const gguf_config_source *from);

/* Whether an mmproj file, or NULL, holds Gemma 4's tower. */
bool gguf_config_is_gemma_tower(const gguf_file *vision);

/* The size of a head whose rows of q_proj and k_proj are stored pair by pair: rows 2i and 2i + 1 are
 * published as i and size / 2 + i. 0: they are as published. */
uint64_t gguf_config_permuted_head(const gguf_config_source *from);

/* Appends the document; the second and third append nothing if there is nothing to say. out->failed says that memory
 * lacked. */
MUST_CHECK err_code gguf_config_json(bytes *out, const gguf_config_source *from, err_detail *detail);
void gguf_generation_json(bytes *out, const gguf_config_source *from);
void gguf_preprocessor_json(bytes *out, const gguf_config_source *from);

#endif
