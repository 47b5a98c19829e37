/* pull_bars: shows on standard error how far a pull is: on a terminal a bar a file with rate and time
 * left, elsewhere plain lines. One thread.
 *
 *     pull_bars bars; pull_bars_begin(&bars);
 *     pull_bars_tick(&bars, tasks, n);
 *     pull_bars_end(&bars);
 */
#ifndef PARLEY_SERVER_CLI_PULL_BARS_H
#define PARLEY_SERVER_CLI_PULL_BARS_H

#include "server/hub/hub_client.h"

/* What is known of one file. */
typedef struct pull_bar {
    bool goes_on;                   /* it was said that it goes on */
    bool is_begun, is_told;         /* bytes came or lay there; its last line is written */
    int64_t from, seen;             /* bytes that lay there, and at the last look */
    double since_ms, seen_ms, rate; /* bytes a second, of late */
    int tenths;                     /* of the file that plain lines have told */
} pull_bar;

typedef struct pull_bars {
    bool on_terminal;
    pull_bar *bars;
    size_t n;
    int n_drawn; /* lines that are drawn again */
} pull_bars;

void pull_bars_begin(pull_bars *b);
/* hub_pull_hooks.on_tick; ctx is the pull_bars. */
void pull_bars_tick(void *ctx, const hub_task *tasks, size_t n);
void pull_bars_end(pull_bars *b);

#endif
