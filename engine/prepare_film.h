/* prepare_film: a film of a chat: its patches, and its place in the rendered prompt. Prep threads; private to engine/.
 *
 *     prepare_film(e, &media, part, &hooks, &detail);
 *     prompt_place_films(&out, e, text, len, r->media, r->n_media);
 */
#ifndef PARLEY_ENGINE_PREPARE_FILM_H
#define PARLEY_ENGINE_PREPARE_FILM_H

#include "engine/engine_private.h"
#include "vision/image_reader.h"

/* What a film needs of the request it is in. */
typedef struct film_hooks {
    void (*planned)(void *ctx, int32_t n_frames); /* how many frames will be shown */
    void (*shown)(void *ctx);                     /* one more was */
    bool (*cancelled)(void *ctx);
    void *ctx;
    /* Whether the prompt has room for the film of that grid; asked before memory is taken for it. */
    err_code (*fits)(void *fits_ctx, const patches *p, err_detail *detail);
    void *fits_ctx;
} film_hooks;

/* What tells two films apart: the file or files, and what of them is shown. */
void prepare_film_hash(uint8_t out[HASH_BYTES], const chat_part *part);

/* Reads the film, or the list of pictures, of `part` into m->patches, whose memory is reserved in r->memory; on error they
 * are empty. */
MUST_CHECK err_code prepare_film(const engine *e, gen_request *r, gen_media *m, const chat_part *part,
                                 const film_hooks *hooks, err_detail *detail);

/* What a picture of a request is read with; cancelling is the caller's. */
image_read_job prepare_picture_job(const engine *e, const uint8_t *data, size_t n, const image_limits *limits);
/* Bytes that the process that reads a film may take beyond its start, and all that is to be reserved for it. */
size_t prepare_film_memory(const engine *e, size_t *reserve);

/* Appends the prompt with each film's placeholder written out as its frames: the time of each, and a placeholder of its
 * own. Placeholders without a film stay as they are. */
void prompt_place_films(bytes *out, const engine *e, const char *text, size_t len, const gen_media *media,
                        size_t n_media);

#endif
