/* checkpoint_form: what a form of checkpoints (a folder of safetensors, a GGUF file) has to do.
 * Loading thread; afterwards immutable.
 *
 *     void *self = NULL; checkpoint_contents contents = {.memory = memory};
 *     err = CHECKPOINT_FOLDER.open(&self, &contents, "DIR", NULL, &detail);
 *
 * A form is one file with one such table. Its open function adds every tensor under its canonical
 * name (checkpoint.h) to the contents and states the traits. What stands behind that, config,
 * families, layers and vision encoder, knows no forms.
 */
#ifndef PARLEY_MODEL_CHECKPOINT_CHECKPOINT_FORM_H
#define PARLEY_MODEL_CHECKPOINT_CHECKPOINT_FORM_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/json.h"
#include "model/checkpoint/tensor_table.h"
#include "text/tokenizer/tokenizer.h"

/* How the stored numbers differ between forms. Zeros: as published. */
typedef struct checkpoint_traits {
    /* Zero-centred norms are stored with their 1 added: those of the decoder and vision tower; of
     * the draft head. */
    bool norms_hold_one, mtp_norms_hold_one;
    /* Value head h of GatedDeltaNet reads key head h % nk; otherwise h / (nv / nk). */
    bool value_heads_tiled;
} checkpoint_traits;

/* What a form fills in. Names and data must live as long as the checkpoint. */
typedef struct checkpoint_contents {
    arena *memory; /* as long as the checkpoint, for names and converted tensors */
    checkpoint_traits traits;
    tensor_table tensors;
} checkpoint_contents;

/* self is what open gave. */
typedef struct checkpoint_form {
    /* path lives as long as the checkpoint; mmproj: the file of the vision tower, or NULL. *self is
     * closed by the caller, also after a failure. */
    err_code (*open)(void **self, checkpoint_contents *out, const char *path, const char *mmproj,
                     err_detail *detail);
    /* See json_source. */
    err_code (*read_document)(void *self, const char *name, json_doc **out, err_detail *detail);
    err_code (*open_tokenizer)(void *self, tokenizer **out, err_detail *detail);
    /* Appends the chat template; nothing if there is none. */
    err_code (*read_template)(void *self, bytes *out, err_detail *detail);
    void (*close)(void *self); /* NULL allowed */
} checkpoint_form;

/* config.json, safetensors, tokenizer.json, chat_template.jinja. */
extern const checkpoint_form CHECKPOINT_FOLDER;
/* A file, or one of its parts; the vision tower from the file mmproj or, if that is NULL, from a
 * *mmproj*.gguf in the same folder. */
extern const checkpoint_form CHECKPOINT_GGUF;

#endif
