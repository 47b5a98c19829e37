/* load_bar: progress bar of model loading on the terminal; nothing is drawn if standard error is
 * not a terminal. One thread.
 *
 *     load_bar bar; load_bar_begin(&bar); eo.on_load = load_bar_on_load; eo.on_load_ctx = &bar;
 *     load_bar_end(&bar);
 */
#ifndef PARLEY_SERVER_LOAD_BAR_H
#define PARLEY_SERVER_LOAD_BAR_H

#include <stdbool.h>

typedef struct load_bar {
    bool is_drawn;   /* standard error is a terminal, and it is not over */
    double began_ms; /* clock_ms */
} load_bar;

void load_bar_begin(load_bar *bar); /* nothing is drawn yet */
/* Draws it; fraction 0..1 of the total. Other output then starts at the beginning of its line. */
void load_bar_show(load_bar *bar, const char *stage, double fraction);
/* The same in the form of engine_options.on_load; ctx is the bar. */
void load_bar_on_load(void *ctx, const char *stage, double fraction);
/* Erases it. May be called twice. */
void load_bar_end(load_bar *bar);

#endif
