#include "server/chat/chat_screen.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

static const char DIM[] = "\033[2m", PLAIN[] = "\033[0m", ERASE[] = "\r\033[K";

void chat_screen_begin(chat_screen *s, bool is_quiet)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    *s = (chat_screen){.is_terminal = isatty(STDOUT_FILENO), .is_quiet = is_quiet, .at_line_start = true};
    s->has_styles =
        s->is_terminal && !(no_color && no_color[0]) && term && term[0] && strcmp(term, "dumb") != 0;
}

/* C0 without tab and line break, DEL, C1: a terminal obeys them. Marks that turn the direction of text
 * can make it say something else. */
static bool is_control(uint32_t c)
{
    return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

static void write_shown(const char *text, size_t n)
{
    size_t from = 0;
    for (size_t i = 0, used; i < n; i += used) {
        uint32_t c;
        used = utf8_decode(text + i, n - i, &c);
        if (is_control(c)) {
            fwrite(text + from, 1, i - from, stdout);
            printf(c < 0x20 ? "^%c" : "\xef\xbf\xbd", (int)c + '@');
            from = i + used;
        }
    }
    fwrite(text + from, 1, n - from, stdout);
}

static void erase_wait(chat_screen *s)
{
    if (s->is_waiting) {
        fputs(ERASE, stdout);
        s->is_waiting = false;
    }
}

static void set_dim(chat_screen *s, bool is_dim)
{
    if (s->has_styles && s->is_dim != is_dim) {
        fputs(is_dim ? DIM : PLAIN, stdout);
    }
    s->is_dim = is_dim;
}

void chat_screen_text(chat_screen *s, bool is_thought, const char *text, size_t n)
{
    if (n == 0 || (is_thought && s->is_quiet)) {
        return;
    }
    FILE *out = is_thought && !s->is_terminal ? stderr : stdout;
    erase_wait(s);
    if (s->has_thoughts && !is_thought) {
        set_dim(s, false);
        fputs(s->at_line_start ? "" : "\n", s->is_terminal ? stdout : stderr);
    }
    s->has_thoughts = is_thought;
    set_dim(s, is_thought);
    if (s->is_terminal) {
        write_shown(text, n);
    } else {
        fwrite(text, 1, n, out);
    }
    s->at_line_start = text[n - 1] == '\n';
    fflush(out);
}

void chat_screen_wait(chat_screen *s, double seconds)
{
    if (s->has_styles && !s->is_quiet && seconds >= 1.0) {
        printf("%s%s... %.0f s%s", ERASE, DIM, seconds, PLAIN);
        fflush(stdout);
        s->is_waiting = true;
    }
}

void chat_screen_end(chat_screen *s)
{
    erase_wait(s);
    set_dim(s, false);
    if (!s->at_line_start) {
        fputc('\n', stdout);
    }
    s->at_line_start = true;
    s->has_thoughts = false;
    fflush(stdout);
}

void chat_screen_note(const chat_screen *s, const char *format, ...)
{
    FILE *out = s->is_terminal ? stdout : stderr;
    va_list args;
    if (s->is_quiet) {
        return;
    }
    fputs(s->has_styles ? DIM : "", out);
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    fprintf(out, "%s\n", s->has_styles ? PLAIN : "");
    fflush(out);
}
