/* copy: a text that repeats another one but for small edits, for bench_text. One thread.
 *
 *     copy_edit(&said, text); err = copy_favour(e, &params, &said, &detail);
 */
#ifndef PARLEY_BENCH_COPY_H
#define PARLEY_BENCH_COPY_H

#include "base/bytes.h"
#include "engine/engine.h"

/* Appends text with every 40th word replaced by another one. */
void copy_edit(bytes *out, const char *text);

/* Favours the tokens of the text, long ones most: a grammar takes any pieces of its text, and a
 * random model would not take those of the prompt, as trained models do. params points to static
 * memory then. */
MUST_CHECK err_code copy_favour(const engine *e, gen_params *params, const bytes *text, err_detail *detail);

#endif
