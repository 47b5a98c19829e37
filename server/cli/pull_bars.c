#include "server/cli/pull_bars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

enum { COLUMNS = 80, LEAST_COLUMNS = 20, FIGURES = 46, LEAST_BAR = 10, MOST_BAR = 30, LOOK_MS = 500 };
#define PLAIN_BYTES ((int64_t)100 << 20) /* of a file whose tenths are told */

static int count_columns(void)
{
    struct winsize size = {0};
    (void)ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
    return size.ws_col > 0 ? size.ws_col : COLUMNS;
}

void pull_bars_begin(pull_bars *b)
{
    *b = (pull_bars){.on_terminal = isatty(STDERR_FILENO)};
    if (b->on_terminal && count_columns() < LEAST_COLUMNS) {
        fprintf(stderr, "the terminal is too narrow for bars, which take %d columns\n", LEAST_COLUMNS);
    }
}

/* "1.3 GB" */
static void size_text(char out[32], double n)
{
    static const char *const UNITS[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    for (; n >= 999.5 && unit + 1 < ARRAY_LEN(UNITS); unit++) {
        n /= 1000.0;
    }
    snprintf(out, 32, unit > 0 && n < 100.0 ? "%.1f %s" : "%.0f %s", n, UNITS[unit]);
}

static void time_text(char out[32], double seconds)
{
    const long long s = (long long)(seconds + 0.5);
    if (s >= 3600) {
        snprintf(out, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    } else {
        snprintf(out, 32, "%lld:%02lld", s / 60, s % 60);
    }
}

/* The rate of late, so that a pause or a slow beginning is soon forgotten. */
static void look(pull_bar *bar, const hub_task *t)
{
    const double now = clock_ms();
    if (!bar->is_begun) {
        *bar = (pull_bar){.is_begun = true, .from = t->at, .seen = t->at, .since_ms = now, .seen_ms = now};
    } else if (t->phase == HUB_CHECKING || t->at < bar->seen) {
        bar->from = bar->seen = t->at;
        bar->since_ms = bar->seen_ms = now;
    } else if (now - bar->seen_ms >= LOOK_MS) {
        const double rate = (double)(t->at - bar->seen) * 1000.0 / (now - bar->seen_ms);
        bar->rate = bar->rate > 0.0 ? 0.7 * bar->rate + 0.3 * rate : rate;
        bar->seen = t->at;
        bar->seen_ms = now;
    }
}

static void figures(char *out, size_t cap, const pull_bar *bar, const hub_task *t)
{
    char total[32], rate[32], left[32];
    const int percent = t->file->size ? (int)(t->at * 100 / t->file->size) : 100;
    size_text(total, (double)t->file->size);
    if (t->phase == HUB_CHECKING) {
        snprintf(out, cap, "%3d %% of %s, checking what is there", percent, total);
    } else if (t->phase == HUB_PAUSED && t->wait_why[0]) {
        const double wait_s = (t->until_ms - clock_ms()) / 1000.0;
        snprintf(out, cap, "%3d %%, %s: %.0f s", percent, t->wait_why, wait_s > 0.0 ? wait_s : 0.0);
    } else if (bar->rate > 0.0) {
        size_text(rate, bar->rate);
        time_text(left, (double)(t->file->size - t->at) / bar->rate);
        snprintf(out, cap, "%3d %% of %s, %s/s, %s left", percent, total, rate, left);
    } else {
        snprintf(out, cap, "%3d %% of %s", percent, total);
    }
}

/* The end of a path, which tells more than its beginning; of one that is too long without its suffix, as
 * parts of a model differ before it. */
static void shorten(char out[HUB_PATH_MAX], const char *path, int columns)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    const size_t room = (size_t)columns; /* where there is none, the line is cut before the name */
    size_t n = strlen(path), from = 0;
    if (n > room && dot && (!slash || dot > slash)) {
        n = (size_t)(dot - path);
    }
    from = n > room ? n - room : 0;
    while (((unsigned char)path[from] & 0xC0) == 0x80) {
        from++;
    }
    snprintf(out, HUB_PATH_MAX, "%.*s", (int)(n - from), path + from);
}

static void draw_line(const pull_bar *bar, const hub_task *t)
{
    char numbers[128], name[HUB_PATH_MAX], line[HUB_PATH_MAX + 256], graph[MOST_BAR + 3] = "";
    const int columns = count_columns() - 1;
    figures(numbers, sizeof numbers, bar, t);
    const int for_bar = (columns - FIGURES) / 3, n_bar = for_bar > MOST_BAR ? MOST_BAR : for_bar;
    const int n_name = columns - FIGURES - n_bar - 4;
    if (n_bar >= LEAST_BAR) {
        const int done = t->file->size ? (int)(t->at * n_bar / t->file->size) : n_bar;
        graph[0] = '[';
        memset(graph + 1, '#', (size_t)done);
        memset(graph + 1 + done, '.', (size_t)(n_bar - done));
        graph[n_bar + 1] = ']';
        shorten(name, t->file->path, n_name);
        snprintf(line, sizeof line, "%-*s %s %s", n_name, name, graph, numbers);
    } else {
        char left[32] = "";
        if (bar->rate > 0.0 && t->phase == HUB_FETCHING) {
            time_text(left, (double)(t->file->size - t->at) / bar->rate);
        }
        shorten(name, t->file->path, columns - 7 - (int)strlen(left));
        snprintf(line, sizeof line, "%.5s %s%s%s", numbers, left, left[0] ? " " : "", name);
    }
    fprintf(stderr, "\r\033[K%.*s\n", columns, line);
}

static void tell_done(pull_bar *bar, const hub_task *t)
{
    char total[32], rate[32];
    const double took_s = (clock_ms() - bar->since_ms) / 1000.0;
    size_text(total, (double)t->file->size);
    if (took_s > 1.0) {
        size_text(rate, (double)(t->file->size - bar->from) / took_s);
        fprintf(stderr, "%s: %s, %s/s\n", t->file->path, total, rate);
    } else {
        fprintf(stderr, "%s: %s\n", t->file->path, total);
    }
    bar->is_told = true;
}

static void tell_plainly(pull_bar *bar, const hub_task *t)
{
    char total[32], here[32];
    size_text(total, (double)t->file->size);
    size_text(here, (double)t->at);
    const int tenths = t->file->size ? (int)(t->at * 10 / t->file->size) : 10;
    if (!bar->goes_on && t->blob.before > 0) {
        fprintf(stderr, "%s: going on behind %s of %s\n", t->file->path, here, total);
        bar->tenths = tenths;
        bar->goes_on = true;
    } else if (t->file->size >= PLAIN_BYTES && tenths > bar->tenths && t->phase == HUB_FETCHING) {
        fprintf(stderr, "%s: %d %% of %s\n", t->file->path, tenths * 10, total);
        bar->tenths = tenths;
    }
}

void pull_bars_tick(void *ctx, const hub_task *tasks, size_t n)
{
    pull_bars *b = ctx;
    if (!b->bars) {
        b->bars = calloc(n + 1, sizeof *b->bars);
        b->n = n;
    }
    if (!b->bars) {
        return; /* no memory for the show */
    }
    if (b->n_drawn > 0) {
        fprintf(stderr, "\033[%dA\r\033[J", b->n_drawn);
        b->n_drawn = 0;
    }
    const bool draws = b->on_terminal && count_columns() >= LEAST_COLUMNS;
    for (size_t i = 0; i < n && i < b->n; i++) {
        pull_bar *bar = &b->bars[i];
        if (tasks[i].phase == HUB_WAITING || bar->is_told) {
            continue;
        }
        look(bar, &tasks[i]);
        if (tasks[i].phase == HUB_DONE) {
            tell_done(bar, &tasks[i]);
        } else if (!draws && tasks[i].phase != HUB_CHECKING) {
            tell_plainly(bar, &tasks[i]);
        }
    }
    for (size_t i = 0; draws && i < n && i < b->n; i++) {
        if (tasks[i].phase != HUB_WAITING && tasks[i].phase != HUB_DONE) {
            draw_line(&b->bars[i], &tasks[i]);
            b->n_drawn++;
        }
    }
}

void pull_bars_end(pull_bars *b)
{
    if (b->n_drawn > 0) {
        fprintf(stderr, "\033[%dA\r\033[J", b->n_drawn);
    }
    free(b->bars);
    *b = (pull_bars){0};
}
