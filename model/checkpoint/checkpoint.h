/* checkpoint: what a model is made from, whatever form it has (checkpoint_form.h): documents,
 * tensors, tokenizer and chat template. Immutable after opening, so any thread may read it.
 *
 *     checkpoint *ck; err = checkpoint_open(&ck, "DIR", NULL, &detail);
 *     const named_tensor *t = tensor_table_find(checkpoint_tensors(ck), "layers.0.mlp.up_proj.weight");
 *     checkpoint_close(ck);
 *
 * Canonical names are the published ones without what precedes them in this or that export:
 *   embed_tokens.weight, norm.weight, layers.N.PART    the decoder
 *   lm_head.weight                                     the logits head; none if the embedding table serves
 *   mtp.PART                                           the draft head
 *   visual.PART                                        the vision tower
 *   layers.N.mlp.experts.gate_up_proj, .down_proj      experts in one tensor; or .gate_proj and .up_proj [E, MI, H];
 *   layers.N.mlp.experts.E.gate_proj.weight ...        or each by itself
 * Documents have the names and fields of Hugging Face's files (config.json, generation_config.json,
 * ...): a form that keeps them in another way writes what it knows as such a document.
 */
#ifndef PARLEY_MODEL_CHECKPOINT_CHECKPOINT_H
#define PARLEY_MODEL_CHECKPOINT_CHECKPOINT_H

#include "model/checkpoint/checkpoint_form.h"

typedef struct checkpoint checkpoint;

/* Opens the checkpoint at `path`: a file NAME.gguf, a folder, or a folder with one GGUF model.
 * mmproj: the file of a GGUF model's vision tower; NULL: looked for beside the model. ERR_NOT_FOUND
 * if there is none, ERR_CORRUPT names the damaged file or tensor, ERR_UNSUPPORTED what is not known
 * here, ERR_INVALID a vision tower that does not belong to the model. The caller closes *out. */
MUST_CHECK err_code checkpoint_open(checkpoint **out, const char *path, const char *mmproj,
                                    err_detail *detail);
void checkpoint_close(checkpoint *ck); /* NULL allowed */

const char *checkpoint_path(const checkpoint *ck);
const checkpoint_traits *checkpoint_get_traits(const checkpoint *ck);

/* Its documents. Valid while the checkpoint is open. */
json_source checkpoint_documents(const checkpoint *ck);

MUST_CHECK err_code checkpoint_open_tokenizer(const checkpoint *ck, tokenizer **out, err_detail *detail);
MUST_CHECK err_code checkpoint_read_template(const checkpoint *ck, bytes *out, err_detail *detail);

/* By canonical names. */
const tensor_table *checkpoint_tensors(const checkpoint *ck);

#endif
