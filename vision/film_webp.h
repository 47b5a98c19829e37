/* film_webp: the frames of an animated WebP, which libavformat cannot take apart; for film.c, and the only file with
 * libwebpdemux in it. Any thread; no state outside the object.
 *
 *     film_webp *w; film_webp_open(&w, &source);   film_webp_size(w, &width, &height); ... check the limits ...
 *     while (film_webp_next(w, &rgba)) { ... }     film_webp_close(w);
 */
#ifndef PARLEY_VISION_FILM_WEBP_H
#define PARLEY_VISION_FILM_WEBP_H

#include "vision/film.h"

typedef struct film_webp film_webp;

/* Reads the whole file into memory and looks through its headers; no pixel is decoded. ERR_CORRUPT, ERR_NOMEM. */
MUST_CHECK err_code film_webp_open(film_webp **out, const film_source *source);
void film_webp_close(film_webp *w); /* NULL allowed */

void film_webp_size(const film_webp *w, int32_t *width, int32_t *height);
int64_t film_webp_count(const film_webp *w); /* frames, at least 1 */
/* Milliseconds that frame i is seen, at least 1; what browsers make of absurdly short ones. */
int32_t film_webp_duration(const film_webp *w, int64_t i);

/* Goes back to before the first frame. ERR_NOMEM. */
MUST_CHECK err_code film_webp_rewind(film_webp *w);
/* Draws the next frame on the canvas: rgba [height, width, 4], valid until the next call. False at the end or if the
 * frame is damaged. */
MUST_CHECK bool film_webp_next(film_webp *w, const uint8_t **rgba);

#endif
