#include "server/load_bar.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { WIDTH = 32, ESTIMATE_AFTER_MS = 1000 };

void load_bar_begin(load_bar *bar)
{
    *bar = (load_bar){.is_drawn = isatty(STDERR_FILENO), .began_ms = clock_ms()};
}

void load_bar_show(load_bar *bar, const char *stage, double fraction)
{
    if (!bar->is_drawn) {
        return;
    }
    static const char full[] = "################################",
                      none[] = "................................";
    char left[32] = "";
    const double done = fraction < 0.0 ? 0.0 : fraction > 1.0 ? 1.0 : fraction;
    const double took_ms = clock_ms() - bar->began_ms;
    if (took_ms > ESTIMATE_AFTER_MS && done > 0.05) {
        snprintf(left, sizeof left, ", %.0f s left", took_ms * (1.0 - done) / done / 1000.0);
    }
    const int n = (int)(done * WIDTH);
    fprintf(stderr, "\r\033[K[%.*s%.*s] %3.0f %%  %s%s\r", n, full, WIDTH - n, none, done * 100.0, stage,
            left);
}

void load_bar_on_load(void *ctx, const char *stage, double fraction)
{
    load_bar_show(ctx, stage, fraction);
}

void load_bar_end(load_bar *bar)
{
    if (bar->is_drawn) {
        fprintf(stderr, "\r\033[K");
        bar->is_drawn = false;
    }
}
