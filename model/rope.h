/* rope: rotation tables for three-axis positions (interleaved M-RoPE). Any thread; no state.
 *
 *     rope_tables(cos, sin, cfg, positions, n);
 *
 * positions_assign, which gives the tokens of a prompt their positions, is declared in model/decoder.h.
 */
#ifndef PARLEY_MODEL_ROPE_H
#define PARLEY_MODEL_ROPE_H

#include <stddef.h>

#include "model/config.h"
#include "model/decoder.h"

/* cos, sin [n, cfg->rope_pairs] of the angle position(axis) * theta^(-i / pairs) of every pair i; the axis of pair i
 * follows from mrope_section (docs/model.md C.2: i % 3 == 1 height, i % 3 == 2 width, while the section lasts; else time). */
void rope_tables(float *cos, float *sin, const model_config *cfg, const position *positions, size_t n);

#endif
