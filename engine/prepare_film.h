/* prepare_film: a film of a chat: its patches, and its place in the rendered prompt. Prep threads; private to engine/.
 *
 *     prepare_film(e, &media, part, &hooks, &detail);
 *     prompt_place_films(&out, e, text, len, r->media, r->n_media);
 */
#ifndef PARLEY_ENGINE_PREPARE_FILM_H
#define PARLEY_ENGINE_PREPARE_FILM_H

#include "engine/engine_private.h"

/* What a film needs of the request it is in. */
typedef struct film_hooks {
    void (*planned)(void *ctx, int32_t n_frames); /* how many frames will be shown */
    void (*shown)(void *ctx);                     /* one more was */
    bool (*cancelled)(void *ctx);
    void *ctx;
} film_hooks;

/* What tells two films apart: the file or files, and what of them is shown. */
void prepare_film_hash(uint8_t out[HASH_BYTES], const chat_part *part);

/* Reads the film, or the list of pictures, of `part` into m->patches; on error they are empty. */
MUST_CHECK err_code prepare_film(const engine *e, gen_media *m, const chat_part *part,
                                 const film_hooks *hooks, err_detail *detail);

/* Appends the prompt with each film's placeholder written out as its frames: the time of each, and a placeholder of its
 * own. Placeholders without a film stay as they are. */
void prompt_place_films(bytes *out, const engine *e, const char *text, size_t len, const gen_media *media,
                        size_t n_media);

#endif
