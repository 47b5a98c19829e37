/* film_header: checks on a film's container before a demuxer sees it; for film.c. Any thread; nothing is allocated.
 *
 *     if (!film_is_complete(&source, format)) { ... the file was cut off ... }
 */
#ifndef PARLEY_VISION_FILM_HEADER_H
#define PARLEY_VISION_FILM_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vision/film.h"

/* Copies bytes at .. at+n-1 of the file; false if they are not all there. */
bool film_read_at(const film_source *source, size_t at, uint8_t *to, size_t n);

/* True if the container's own sizes fit the file: nothing was cut off at the end. */
bool film_is_complete(const film_source *source, film_format format);

#endif
