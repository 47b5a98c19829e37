/* hub_select: which files of a repository Parley needs. One thread.
 *
 *     hub_selection s; err_code err = hub_select(&s, &listing, name.quant, index, &detail);
 *     for (size_t i = 0; i < s.n; i++) { puts(s.files[i]->path); }
 *     hub_selection_deinit(&s);
 *
 * Of a checkpoint in safetensors: config.json, the tokenizer, the chat template, what processors are
 * told, the weights that the index names, and a draft head beside them. Of GGUF files: those of one
 * quantization, and a vision tower.
 */
#ifndef PARLEY_SERVER_HUB_HUB_SELECT_H
#define PARLEY_SERVER_HUB_HUB_SELECT_H

#include "base/json.h"
#include "server/hub/hub_listing.h"

typedef struct hub_selection {
    const hub_file **files; /* of the listing, which lives longer; the first is the one that is opened */
    size_t n;
    const hub_file *vision; /* the vision tower of a GGUF model, or NULL */
    bool is_gguf;
    char quant[HUB_QUANT_MAX]; /* of a GGUF model: the one that was chosen */
} hub_selection;

/* A model that may be chosen. */
typedef struct hub_quant {
    char name[HUB_QUANT_MAX]; /* "Q4_K_M", "UD-Q4_K_XL", or the file's name if it tells none */
    const hub_file *first;    /* of a model in parts the first */
    int64_t size;             /* of all its parts */
} hub_quant;

#define HUB_INDEX "model.safetensors.index.json"

/* Whether the files are a checkpoint in safetensors, and nobody asked for a GGUF file. */
bool hub_wants_folder(const hub_listing *l, const char *quant);

/* The GGUF models of a listing in *out (the caller frees it), their number; 0 also without memory. */
size_t hub_quants(hub_quant **out, const hub_listing *l);

/* Selects. quant: "" for the usual one (Q4_K_M, or else Q8_0, or the only one). index: the document HUB_INDEX,
 * NULL if there is none. ERR_NOT_FOUND says what is missing, or which
 * quantizations there are. The caller calls hub_selection_deinit, on failure too. */
MUST_CHECK err_code hub_select(hub_selection *out, const hub_listing *l, const char *quant, const json *index,
                               err_detail *detail);
void hub_selection_deinit(hub_selection *s);

#endif
