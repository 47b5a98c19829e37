/* checkpoint: what a model is made from, whatever form it has: documents, tensors, tokenizer and chat template.
 * Immutable after opening, so any thread may read it.
 *
 *     checkpoint *ck; checkpoint_open(&ck, "DIR", &detail);
 *     const checkpoint_tensor *t = checkpoint_find(ck, "layers.0.mlp.up_proj.weight");
 *     checkpoint_close(ck);
 *
 * A form (a folder of safetensors, ...) is one file. Its opener makes a checkpoint with checkpoint_create, adds every
 * tensor under its canonical name, states the traits, and ends with checkpoint_seal. What stands behind that, config,
 * families, layers and vision encoder, knows no forms.
 *
 * Canonical names are the published ones without what stands before them in this or that export:
 *     embed_tokens.weight, norm.weight, layers.N.PART    the decoder
 *     lm_head.weight                                     the logits head; none if the embedding table serves
 *     mtp.PART                                           the draft head
 *     visual.PART                                        the vision tower
 *     layers.N.mlp.experts.gate_up_proj, .down_proj      experts in one tensor; or .gate_proj and .up_proj [E, MI, H];
 *     layers.N.mlp.experts.E.gate_proj.weight ...        or each by itself
 * Documents have the names and fields of Hugging Face's files (config.json, generation_config.json, ...): a form that
 * keeps them in another way writes what it knows as such a document.
 */
#ifndef PARLEY_MODEL_CHECKPOINT_H
#define PARLEY_MODEL_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/json.h"
#include "compute/tensor.h"
#include "text/tokenizer.h"

typedef struct checkpoint checkpoint;

/* A tensor and its two names. A matrix of a layer may be packed (dtype_is_quantized): dims are those of the numbers, of
 * which the last may count the padding of a row. */
typedef struct checkpoint_tensor {
    const char *name;   /* canonical */
    const char *stored; /* in the file; for messages and converted folders */
    tensor view;
} checkpoint_tensor;

/* What differs between forms in how the numbers are meant. Zeros: as published. */
typedef struct checkpoint_traits {
    /* Zero-centred norms are stored with their 1 added: those of the decoder and vision tower; of the draft head. */
    bool norms_hold_one, mtp_norms_hold_one;
    /* Value head h of GatedDeltaNet reads key head h % nk; otherwise h / (nv / nk). */
    bool value_heads_tiled;
} checkpoint_traits;

/* What a form does; self is what it gave to checkpoint_create. */
typedef struct checkpoint_form {
    /* See json_source. */
    err_code (*read_document)(void *self, const char *name, json_doc **out, err_detail *detail);
    err_code (*open_tokenizer)(void *self, tokenizer **out, err_detail *detail);
    /* Appends the chat template; nothing if there is none. */
    err_code (*read_template)(void *self, bytes *out, err_detail *detail);
    void (*close)(void *self);
} checkpoint_form;

/* Opens the checkpoint at `path`: a file NAME.gguf, a folder, or a folder with one GGUF model. ERR_NOT_FOUND if there is
 * none, ERR_CORRUPT names the damaged file or tensor, ERR_UNSUPPORTED what is not known here. The caller closes *out. */
MUST_CHECK err_code checkpoint_open(checkpoint **out, const char *path, err_detail *detail);
/* The same with the file of a GGUF model's vision tower; NULL: looked for beside the model. ERR_INVALID if it does not
 * belong to it. */
MUST_CHECK err_code checkpoint_open_with(checkpoint **out, const char *path, const char *mmproj,
                                         err_detail *detail);
void checkpoint_close(checkpoint *ck); /* NULL allowed */

const char *checkpoint_path(const checkpoint *ck);
const checkpoint_traits *checkpoint_get_traits(const checkpoint *ck);

/* Its documents. Valid while the checkpoint is open. */
json_source checkpoint_documents(const checkpoint *ck);

MUST_CHECK err_code checkpoint_open_tokenizer(const checkpoint *ck, tokenizer **out, err_detail *detail);
MUST_CHECK err_code checkpoint_read_template(const checkpoint *ck, bytes *out, err_detail *detail);

/* The tensor of that canonical name, or NULL. */
const checkpoint_tensor *checkpoint_find(const checkpoint *ck, const char *name);
/* All of them, in order of their canonical names: index 0 .. checkpoint_count - 1. */
size_t checkpoint_count(const checkpoint *ck);
const checkpoint_tensor *checkpoint_at(const checkpoint *ck, size_t index);
/* The first tensor whose canonical name begins so, or NULL. */
const checkpoint_tensor *checkpoint_first(const checkpoint *ck, const char *prefix);

/* The tensors by canonical name as the interface that the vision encoder reads. */
tensor_source checkpoint_tensors(const checkpoint *ck);

/* ---- for forms ---- */

/* An empty checkpoint; self is closed with it, on failure at once. */
MUST_CHECK err_code checkpoint_create(checkpoint **out, const checkpoint_form *form, void *self,
                                      const char *path, err_detail *detail);
/* Memory that lives as long as the checkpoint, for names and converted tensors. */
arena *checkpoint_memory(checkpoint *ck);
/* May be changed until the checkpoint is sealed. */
checkpoint_traits *checkpoint_traits_of(checkpoint *ck);
/* Names and data must live as long as the checkpoint. ERR_NOMEM. */
MUST_CHECK err_code checkpoint_add(checkpoint *ck, const char *name, const char *stored, const tensor *view,
                                   err_detail *detail);
/* Ends the adding, which went as `added` says, and hands the checkpoint out; after a failure, returned, it is closed.
 * ERR_CORRUPT if two tensors have one name: then the files are those of two models. */
MUST_CHECK err_code checkpoint_seal(checkpoint **out, checkpoint *ck, err_code added, err_detail *detail);

/* The folder form: config.json, safetensors, tokenizer.json, chat_template.jinja. */
MUST_CHECK err_code checkpoint_folder_open(checkpoint **out, const char *dir, err_detail *detail);
/* The GGUF form: a file, or one of its parts; the vision tower from the file mmproj or, if that is NULL, from a
 * *mmproj*.gguf in the same folder. */
MUST_CHECK err_code checkpoint_gguf_open(checkpoint **out, const char *path, const char *mmproj,
                                         err_detail *detail);

#endif
