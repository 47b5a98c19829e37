/* model: one checkpoint, opened: config, mapped weights, tokenizer, chat template. Immutable after
 * model_open, so any thread may read it. The three structs of this folder are model_config
 * (recipe), model (weights) and seq_state (one sequence's mutable state).
 *
 *     model *m; err = model_open(&m, "DIR", &(model_open_options){0}, &detail);
 *     const model_config *cfg = model_get_config(m);
 *     model_close(m);
 */
#ifndef PARLEY_MODEL_MODEL_H
#define PARLEY_MODEL_MODEL_H

#include "base/err.h"
#include "base/hash.h"
#include "compute/tensor.h"
#include "text/jinja/chat_template.h"
#include "model/config/config.h"
#include "model/quantized.h"
#include "text/tokenizer/tokenizer.h"

typedef struct model model;

typedef struct model_open_options {
    const char *mmproj; /* the file of a GGUF model's vision tower; NULL: looked for beside it */
    bool weights_only;  /* no tokenizer and no template needed (benchmarks on random weights) */
    /* For comparisons with programs that cast a whole model to bf16, rotary frequencies
     * included. */
    bool rope_bf16;
    /* Quantization of the matrices, computed by c, which must outlive the model. c NULL: as
     * stored. */
    quantize_options quantize;
    compute *huge_pages; /* copies the weights into huge pages (weights_copy.h); NULL: no copy */
    /* Called with bytes done and total while weights are prepared; may be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *progress_ctx;
} model_open_options;

/* Opens the checkpoint at `path` (checkpoint.h). ERR_NOT_FOUND names the missing file or tensor,
 * ERR_CORRUPT the damaged one or what does not fit together, ERR_UNSUPPORTED the config field. The
 * caller closes *out. */
MUST_CHECK err_code model_open(model **out, const char *path, const model_open_options *opt,
                               err_detail *detail);
void model_close(model *m); /* NULL allowed */

const model_config *model_get_config(const model *m);
const char *model_dir(const model *m);
const tokenizer *model_tokenizer(const model *m);         /* NULL if weights_only */
const chat_template *model_chat_template(const model *m); /* NULL if the checkpoint has none */
bool model_has_mtp(const model *m);
uint64_t model_n_params(const model *m);     /* text + head + mtp + vision tensors in the files */
uint64_t model_weight_bytes(const model *m); /* in the files */
/* Bytes of the weights with this quantization (8, 4, or 0: as stored); already quantized ones
 * stay. */
uint64_t model_weight_bytes_as(const model *m, int layer_bits, int head_bits);
/* Bytes of the tensors of a type. */
uint64_t model_type_bytes(const model *m, dtype type);

/* A hash that tells this checkpoint from every other one, without reading all of it: config.json,
 * names, types, shapes and samples of the tensors, sizes and times of the weight files, the
 * vocabulary. ERR_NOMEM; ERR_IO if the folder cannot be read any more. */
MUST_CHECK err_code model_fingerprint(const model *m, uint8_t out[HASH_BYTES], err_detail *detail);

/* All tensors by canonical name, and the documents, for the vision tower. Valid while the model is
 * open. */
tensor_source model_tensors(const model *m);
json_source model_documents(const model *m);

#endif
