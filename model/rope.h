/* rope: the positions of a prompt's tokens on three axes, and their rotation tables (M-RoPE). Any thread; no state.
 *
 *     err = positions_assign(positions, &delta, cfg, ids, n, images, n_images, NULL, 0, merge, &detail);
 *     rope_tables(cos, sin, cfg, &cfg->full.rope, positions, n);
 */
#ifndef PARLEY_MODEL_ROPE_H
#define PARLEY_MODEL_ROPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/config/config.h"

/* Rotary position of a token along time, height and width; equal for text. */
typedef struct position {
    int32_t t, h, w;
} position;

/* cos, sin [n, rope->pairs] of the angle position(axis) * theta^(-i / pairs) of every pair i, or of
 * YaRN's frequencies; the axis of pair i follows from mrope_section (docs/model.md C.2: i % 3 == 1
 * height, i % 3 == 2 width, while the section lasts; else time. Or, where it is not interleaved, the
 * first pairs time, then height, then width). rope is one of cfg's. */
void rope_tables(float *cos, float *sin, const model_config *cfg, const rope_spec *rope,
                 const position *positions, size_t n);

/* Positions of a prompt (docs/model.md C.3). ids [n] with placeholders expanded; grids of the
 * images and of the videos in order of appearance; out [n]. *delta = next position - n. ERR_INVALID
 * if placeholders and grids do not match. */
typedef struct media_grid {
    int32_t t, h, w; /* in patches */
    double seconds;  /* from one pair of a video's frames to the next */
} media_grid;
MUST_CHECK err_code positions_assign(position *out, int32_t *delta, const model_config *cfg,
                                     const int32_t *ids, size_t n, const media_grid *images, size_t n_images,
                                     const media_grid *videos, size_t n_videos, int32_t merge,
                                     err_detail *detail);

#endif
