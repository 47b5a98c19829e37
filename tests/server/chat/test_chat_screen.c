/* chat_screen: what a terminal, a plain one and a pipe get: each character at the edge of what is shown and not obeyed, thoughts
 * beside content, the wait, notes. */
#include "server/chat/chat_screen.h"

#include "base/utf8.h"
#include "tests/said.h"

static bool is_terminal;

int __wrap_isatty(int fd);
int __wrap_isatty(int fd)
{
    CHECK_INT(fd, STDOUT_FILENO);
    return is_terminal;
}

static chat_screen begin(bool on_terminal, const char *term, const char *no_color, bool is_quiet)
{
    chat_screen s;
    is_terminal = on_terminal;
    term ? setenv("TERM", term, 1) : unsetenv("TERM");
    no_color ? setenv("NO_COLOR", no_color, 1) : unsetenv("NO_COLOR");
    chat_screen_begin(&s, is_quiet);
    return s;
}

static void test_begin(void)
{
    static const struct {
        bool on_terminal;
        const char *term, *no_color;
        bool has_styles;
    } CASES[] = {{true, "xterm", NULL, true},   {true, "xterm", "", true},   {true, "xterm", "1", false},
                 {true, "dumb", NULL, false},   {true, "", NULL, false},     {true, NULL, NULL, false},
                 {false, "xterm", NULL, false}, {true, "dumber", NULL, true}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const chat_screen s = begin(CASES[i].on_terminal, CASES[i].term, CASES[i].no_color, i % 2);
        CHECK_INT(s.is_terminal, CASES[i].on_terminal);
        CHECK_INT(s.has_styles, CASES[i].has_styles);
        CHECK_INT(s.is_quiet, i % 2);
        CHECK(s.at_line_start && !s.is_dim && !s.is_waiting && !s.has_thoughts);
    }
}

/* Between two letters, at both sides of each range; a pipe gets what was said. */
static void test_characters(void)
{
    static const uint32_t EDGES[] = {0x01,   0x08,   '\t',   '\n',   0x0b,   '\r',   0x1b,   0x1f,
                                     ' ',    '~',    0x7f,   0x80,   0x9f,   0xa0,   0x2029, 0x202a,
                                     0x202e, 0x202f, 0x2065, 0x2066, 0x2069, 0x206a, 0x20ac, 0x1f600};
    for (size_t i = 0; i < sizeof EDGES / sizeof *EDGES; i++) {
        const uint32_t c = EDGES[i];
        char text[16], want[16];
        const size_t n = 1 + utf8_encode(text + 1, c);
        text[0] = 'a';
        text[n] = 'b';
        text[n + 1] = '\0';
        const bool is_plain = c == '\t' || c == '\n' || (c >= ' ' && c < 0x7f) ||
                              (c >= 0xa0 && (c < 0x202a || c > 0x202e) && (c < 0x2066 || c > 0x2069));
        if (is_plain) {
            snprintf(want, sizeof want, "%s", text);
        } else if (c < ' ') {
            snprintf(want, sizeof want, "a^%cb", (int)c + 64);
        } else {
            snprintf(want, sizeof want,
                     "a\xef\xbf\xbd"
                     "b");
        }
        for (int on_terminal = 0; on_terminal < 2; on_terminal++) {
            chat_screen s = begin(on_terminal, "dumb", NULL, false);
            said_begin();
            chat_screen_text(&s, false, text, n + 1);
            said_end();
            CHECK_STR(said_out, on_terminal ? want : text);
            CHECK_STR(said_err, "");
            CHECK(!s.at_line_start);
        }
    }
    chat_screen s = begin(true, "dumb", NULL, false);
    said_begin();
    chat_screen_text(&s, false,
                     "\x1b"
                     "a\x1b\x1b"
                     "b\0c\x1b",
                     8); /* several, at both ends, and a NUL */
    said_end();
    CHECK_STR(said_out, "^[a^[^[b^@c^[");
}

#define DIM   "\033[2m"
#define PLAIN "\033[0m"
#define ERASE "\r\033[K"

/* An answer with thoughts, a wait in it, and a note behind it. */
static void answer(chat_screen *s, bool breaks)
{
    said_begin();
    chat_screen_wait(s, 0.99);
    chat_screen_wait(s, 1.0);
    chat_screen_wait(s, 2.6);
    chat_screen_text(s, true, "", 0);
    chat_screen_text(s, true, "hm", 2);
    chat_screen_text(s, true, breaks ? "so\n" : "so", breaks ? 3 : 2);
    chat_screen_text(s, false, "Yes", 3);
    chat_screen_text(s, true, "or", 2);
    chat_screen_wait(s, 5.0);
    chat_screen_end(s);
    chat_screen_end(s);
    chat_screen_note(s, "[%d tokens]", 2);
    said_end();
    CHECK(s->at_line_start && !s->is_dim && !s->is_waiting && !s->has_thoughts);
}

static void test_answers(void)
{
    chat_screen s = begin(true, "xterm", NULL, false);
    answer(&s, false);
    CHECK_STR(said_out,
              ERASE DIM "... 1 s" PLAIN ERASE DIM "... 3 s" PLAIN ERASE DIM "hmso" PLAIN "\nYes" DIM
                        "or" ERASE DIM "... 5 s" PLAIN ERASE PLAIN "\n" DIM "[2 tokens]" PLAIN "\n");
    CHECK_STR(said_err, "");
    s = begin(true, "xterm", NULL, false);
    answer(&s, true);
    CHECK_STR(said_out,
              ERASE DIM "... 1 s" PLAIN ERASE DIM "... 3 s" PLAIN ERASE DIM "hmso\n" PLAIN "Yes" DIM
                        "or" ERASE DIM "... 5 s" PLAIN ERASE PLAIN "\n" DIM "[2 tokens]" PLAIN "\n");
    s = begin(true, "dumb", NULL, false);
    answer(&s, false);
    CHECK_STR(said_out, "hmso\nYesor\n[2 tokens]\n");
    CHECK_STR(said_err, "");
    s = begin(false, "xterm", NULL, false);
    answer(&s, false);
    CHECK_STR(said_out, "Yes\n");
    CHECK_STR(said_err, "hmso\nor[2 tokens]\n");
    s = begin(false, "xterm", NULL, false);
    answer(&s, true);
    CHECK_STR(said_out, "Yes\n");
    CHECK_STR(said_err, "hmso\nor[2 tokens]\n");
    for (int on_terminal = 0; on_terminal < 2; on_terminal++) {
        s = begin(on_terminal, "xterm", NULL, true);
        answer(&s, false);
        CHECK_STR(said_out, "Yes\n");
        CHECK_STR(said_err, "");
    }
}

int main(void)
{
    test_begin();
    test_characters();
    test_answers();
    CHECK_DONE();
}
