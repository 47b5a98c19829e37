#include "engine/think.h"

#include <string.h>

static const char OPEN[] = "<think>";
/* "</think>" as a number. */
static const uint64_t CLOSE = 0x3C2F7468696E6B3E;

void think_init(think_watch *w, bool starts_in_thinking, bool may_think, int32_t budget, const int32_t *close,
                size_t n_close)
{
    *w = (think_watch){.budget = budget, .close = close, .n_close = n_close};
    w->phase = starts_in_thinking ? THINK_OPEN : may_think ? THINK_START : THINK_CLOSED;
}

int32_t think_choose(think_watch *w, int32_t drawn, bool is_stop)
{
    const bool is_spent = w->budget >= 0 && w->n_tokens >= w->budget;
    if (w->phase == THINK_OPEN && w->n_close > 0 && (is_stop || is_spent)) {
        w->phase = THINK_FORCED_CLOSE;
    }
    return w->phase == THINK_FORCED_CLOSE ? w->close[w->n_closed] : drawn;
}

void think_end(think_watch *w)
{
    w->budget = 0;
}

static void watch_start(think_watch *w, char c)
{
    if (w->n_matched == 0 && strchr(" \n\r\t", c) && c) {
        return;
    }
    if (c != OPEN[w->n_matched]) {
        w->phase = THINK_CLOSED;
        return;
    }
    w->n_matched++;
    w->phase = w->n_matched == sizeof OPEN - 1 ? THINK_OPEN : THINK_START;
}

void think_accept(think_watch *w, const char *text, size_t len)
{
    if (w->phase == THINK_FORCED_CLOSE) {
        w->n_closed++;
        w->phase = w->n_closed == w->n_close ? THINK_CLOSED : THINK_FORCED_CLOSE;
        return;
    }
    w->n_tokens += w->phase == THINK_OPEN;
    for (size_t i = 0; i < len; i++) {
        if (w->phase == THINK_START) {
            watch_start(w, text[i]);
        }
        w->tail = w->tail << 8 | (unsigned char)text[i];
        if (w->phase == THINK_OPEN && w->tail == CLOSE) {
            w->phase = THINK_CLOSED;
        }
    }
}
