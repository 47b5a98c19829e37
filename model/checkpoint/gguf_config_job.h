/* gguf_config_job: what the writers of config.json's parts share: where they write, and what they read from
 * a GGUF file. Private to gguf_config*.c. Loading thread.
 *
 *     uint64_t n; bool known = gguf_job_count(j, "attention.head_count", &n);
 */
#ifndef PARLEY_MODEL_CHECKPOINT_GGUF_CONFIG_JOB_H
#define PARLEY_MODEL_CHECKPOINT_GGUF_CONFIG_JOB_H

#include "model/checkpoint/gguf_config.h"

/* What is written and read from. */
typedef struct gguf_job {
    bytes *out;
    const gguf_file *f;
    const char *prefix, *path; /* "qwen35"; for messages */
    const tensor_table *tensors;
    uint64_t n_layers; /* of the decoder */
    err_detail *detail;
} gguf_job;

/* One count: its name in the file and in config.json. */
typedef struct gguf_count {
    const char *name, *field;
    bool required;
} gguf_count;

/* The value PREFIX.name; NULL if there is none. */
const gguf_value *gguf_job_find(const gguf_job *j, const char *name);
/* A count; for lists with a number for each layer the largest counts, as layers of another kind say 0. */
bool gguf_job_count(const gguf_job *j, const char *name, uint64_t *out);
/* ERR_CORRUPT, with that name in its text. */
err_code gguf_job_missing(const gguf_job *j, const char *name);
/* Appends those that the file has; ERR_CORRUPT for one that must be there. */
MUST_CHECK err_code gguf_job_write_counts(const gguf_job *j, const gguf_count *counts, size_t n);
/* A number, where the file has it. */
void gguf_job_write_number(const gguf_job *j, const char *name, const char *field);
/* Whether there is a tensor blk.LAYER.name. */
bool gguf_job_has_tensor(const gguf_job *j, uint64_t layer, const char *name);

/* Gemma 4: what its config.json has beside the sizes; and its vision_config, from the mmproj file. */
MUST_CHECK err_code gguf_write_gemma(const gguf_job *j);
MUST_CHECK err_code gguf_write_gemma_vision(const gguf_config_source *from, bytes *out, err_detail *detail);

#endif
