/* chat_line: what becomes of keys on a terminal that this program makes itself, of what is pasted, of signals, and of a pipe.
 * Keys are typed while chat_line waits for them (made_up_time.h). */
#define _GNU_SOURCE /* posix_openpt, memmem */
#include "server/chat/chat_line.h"

#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "base/limits.h"
#include "tests/alloc_fail.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/said.h"
#include "tests/server/made_up_time.h"

enum { SCREEN = 1 << 16, LONG_PASTE = 401 };

/* One that is made fails alone. */
ONE_FAILS(int, eventfd, (unsigned count, int flags), (count, flags), (errno = EMFILE, -1))
ONE_FAILS(int, el_insertstr, (EditLine * e, const char *text), (e, text), -1)
ONE_FAILS(EditLine *, el_init, (const char *name, FILE *in, FILE *out, FILE *err), (name, in, out, err), NULL)
ONE_FAILS(History *, history_init, (void), (), NULL)

/* ---- the terminal ---- */

static int terminal = -1, line_fd = -1; /* its two ends */
/* Typed one after the other; "!INT" and the like are signals, "!30" columns, "!poll" and "!read" errors of these two,
 * "!memory" and "!insert": the nth call from here on fails. */
static const char *const *keys;
static char screen[SCREEN]; /* what was drawn since the last text */

static void look(void)
{
    size_t n = strlen(screen);
    for (ssize_t got; (got = read(terminal, screen + n, sizeof screen - 1 - n)) > 0;) {
        n += (size_t)got;
    }
    screen[n] = '\0';
}

/* ---- what is read ---- */

static int read_error; /* of the next read; 0: none */
static size_t n_pasted,
    at; /* of a paste that is too long for a terminal's memory, and how much of it was read */

ssize_t __real_read(int fd, void *out, size_t n);
ssize_t __wrap_read(int fd, void *out, size_t n);
ssize_t __wrap_read(int fd, void *out, size_t n)
{
    static const char BEGIN[] = "\033[200~", END[] = "\033[201~";
    const size_t n_sign = sizeof END - 1, all = n_pasted + 2 * n_sign;
    if (fd != STDIN_FILENO || (!read_error && n_pasted == 0)) {
        return __real_read(fd, out, n);
    }
    if (read_error) {
        errno = read_error;
        read_error = 0;
        return -1;
    }
    n = n < all - at ? n : all - at;
    memset(out, 'x', n);
    for (size_t i = 0; i < n; i++) {
        const size_t k = at + i;
        if (k < n_sign || k >= all - n_sign) {
            ((char *)out)[i] = k < n_sign ? BEGIN[k] : END[k - (all - n_sign)];
        }
    }
    at += n;
    n_pasted = at == all ? 0 : n_pasted;
    return (ssize_t)n;
}

static void resize(int columns)
{
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    CHECK(ioctl(terminal, TIOCSWINSZ, &size) == 0);
}

/* The line takes what is typed a moment later. */
static void type(const char *text)
{
    const int n = (int)strlen(text);
    int before = 0, there = 0; /* of earlier keys some may lie there yet */
    CHECK(ioctl(line_fd, FIONREAD, &before) == 0);
    CHECK(write(terminal, text, (size_t)n) == n);
    for (int i = 0; i < 3000 && there < before + n; i++) {
        CHECK(ioctl(line_fd, FIONREAD, &there) == 0);
        usleep(there < before + n ? 1000 : 0);
    }
    CHECK_INT(there, before + n);
}

static bool act(void)
{
    look();
    const char *next = *keys;
    if (!next) {
        return false;
    }
    keys++;
    if (next[0] == '!' && strchr("pr", next[1])) {
        *(next[1] == 'p' ? &made_up_error : &read_error) = (int)strtol(next + 5, NULL, 10);
    } else if (next[0] == '!' && next[1] == 'm') {
        alloc_fail_at((size_t)strtol(next + 7, NULL, 10));
    } else if (next[0] == '!' && next[1] == 'i') {
        one_fails("el_insertstr", 1);
    } else if (next[0] != '!') {
        type(next);
    } else if (next[1] >= '0' && next[1] <= '9') {
        resize((int)strtol(next + 1, NULL, 10));
        raise(SIGWINCH);
    } else {
        raise(strcmp(next, "!INT") == 0 ? SIGINT : SIGTERM);
    }
    return true;
}

static void open_terminal(void)
{
    terminal = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    line_fd = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    CHECK(line_fd >= 0 && fcntl(terminal, F_SETFL, O_NONBLOCK) == 0);
    resize(80);
    fflush(stdout);
    CHECK(dup2(line_fd, STDIN_FILENO) == STDIN_FILENO && dup2(line_fd, STDOUT_FILENO) == STDOUT_FILENO);
}

/* ---- lines ---- */

static bytes text;
static chat_line_end end;

#define READS(l, expected_end, expected, ...)                                                                \
    do {                                                                                                     \
        static const char *const typed[] = {__VA_ARGS__, NULL};                                              \
        reads(l, typed);                                                                                     \
        CHECK_INT(end, expected_end);                                                                        \
        CHECK_STR(bytes_str(&text), expected);                                                               \
        CHECK(!*keys);                                                                                       \
    } while (0)

static void reads(chat_line *l, const char *const *typed)
{
    keys = typed;
    screen[0] = '\0';
    end = chat_line_read(l, "ask> ", &text);
    look();
    CHECK((strstr(screen, "\033[?2004h") != NULL) ==
          (strstr(screen, "\033[?2004l") != NULL)); /* it is told at once */
    fflush(stdout);
    look();
}

static chat_line *open_line(const char *history)
{
    chat_line *l;
    err_detail d = {0};
    CHECK_OK(chat_line_open(&l, history, &d), d);
    return l;
}

#define PASTED(text) "\033[200~" text "\033[201~"

static void test_keys(chat_line *l)
{
    READS(l, CHAT_LINE_TEXT, "hello", "hello\r");
    CHECK_HAS(screen, "ask> ");
    CHECK_HAS(screen, "\033[?2004h");
    CHECK(strstr(screen, "\033[?2004l") > strstr(screen, "\033[?2004h"));
    CHECK(chat_line_is_typed(l));
    READS(l, CHAT_LINE_TEXT, "", "\r");
    READS(l, CHAT_LINE_TEXT, "abXc", "abc\002X\r"); /* Ctrl-B goes back */
    READS(l, CHAT_LINE_TEXT, "one\ntwo\nthree", "one\\\r", "two\\\r", "three\r");
    CHECK_HAS(screen, "... ");
    READS(l, CHAT_LINE_TEXT, "a\nb", "a\033\rb\r");
    READS(l, CHAT_LINE_TEXT, "a\nc", "a\033\nc\r");
    READS(l, CHAT_LINE_TEXT, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82",
          "\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82\r");
    READS(l, CHAT_LINE_TEXT, "\xe2\x82\xac", "\xe2", "\x82\xac\r"); /* in pieces */
    READS(l, CHAT_LINE_END, "", "\004");
    READS(l, CHAT_LINE_STOPPED, "", "not this", "!INT");
    CHECK_HAS(screen, "^C");
    READS(l, CHAT_LINE_TEXT, "this", "this\r"); /* of what was stopped nothing is left */
    READS(l, CHAT_LINE_STOPPED, "half\n", "half\\\r", "more", "!INT");
}

static void test_history(chat_line *l)
{
    READS(l, CHAT_LINE_TEXT, "first", "first\r");
    READS(l, CHAT_LINE_TEXT, "second", "second\r");
    READS(l, CHAT_LINE_TEXT, "second", "\033[A\r"); /* the same again stands there once */
    READS(l, CHAT_LINE_TEXT, "first", "\033[A\033[A\r");
    READS(l, CHAT_LINE_TEXT, "", "\r"); /* nothing is nothing to come back to */
    READS(l, CHAT_LINE_TEXT, "first", "\033[A\r");
    READS(l, CHAT_LINE_TEXT, "second", "\022seco\r"); /* Ctrl-R searches */
}

static void test_pastes(chat_line *l)
{
    READS(l, CHAT_LINE_TEXT, "some words.", PASTED("some words") ".\r");
    CHECK(!strstr(screen, "[pasted"));
    READS(l, CHAT_LINE_PASTED, "one\ntwo\n", PASTED("one\rtwo\n") "\r");
    CHECK_HAS(screen, "[pasted 1: 2 lines, 8 bytes]");
    READS(l, CHAT_LINE_PASTED, "one\ntwo!", PASTED("one\ntwo") "!\r");
    CHECK_HAS(screen, "[pasted 2: 2 lines, 7 bytes]");
    READS(l, CHAT_LINE_TEXT, "see\na\tb, and\nc", "see" PASTED("\n\007a\tb\033") ", and" PASTED("\nc") "\r");
    CHECK_HAS(screen, "[pasted 3: 2 lines, 4 bytes]");
    CHECK_HAS(screen, "[pasted 4: 2 lines, 2 bytes]");
    READS(l, CHAT_LINE_TEXT, "[pasted 9: no]", "[pasted 9: no]\r"); /* a name that is none */
    READS(l, CHAT_LINE_TEXT, "x", PASTED("") "x\r");
    READS(l, CHAT_LINE_PASTED, "\n", PASTED("\n") "\r");
    CHECK_HAS(screen, "[pasted 5: 1 line, 1 bytes]");
    READS(l, CHAT_LINE_PASTED, "a\nb\nand more", PASTED("a\nb") "\\\r", "and more\r");
    READS(l, CHAT_LINE_PASTED, "a\n", PASTED("a\r") "\r");
    READS(l, CHAT_LINE_TEXT, "a", "\033[200~", "!INT", "a\r"); /* nothing was pasted yet */
    READS(l, CHAT_LINE_PASTED, "\xff", PASTED("\xff") "\r");   /* what is no text cannot stand in the line */

    static char longer[LONG_PASTE + 32], name[64];
    for (int n = LONG_PASTE - 1; n <= LONG_PASTE; n++) {
        snprintf(longer, sizeof longer, "\033[200~%0*d\033[201~\r", n, 7);
        const char *const typed[] = {longer, NULL};
        reads(l, typed);
        CHECK_INT(end, n < LONG_PASTE ? CHAT_LINE_TEXT : CHAT_LINE_PASTED);
        CHECK_INT(text.len, n);
        snprintf(name, sizeof name, ": 1 line, %d bytes]", n);
        CHECK((strstr(screen, name) != NULL) == (n == LONG_PASTE));
    }
    READS(l, CHAT_LINE_PASTED, "a\n[201[2x[201", PASTED("a\n\033\033[201\033[2x\033[201\033") "\r");
    READS(l, CHAT_LINE_STOPPED, "", "\033[200~never ends", "!INT", "!INT");
}

/* Pastes of one chat are as large as a request may be. */
static void test_large_pastes(void)
{
    static const struct {
        size_t n;
        bool fits;
    } ROWS[] = {{LIMIT_BODY_BYTES / 2, true},
                {LIMIT_BODY_BYTES / 2 + 1, false},
                {LIMIT_BODY_BYTES / 2, true},
                {1, false}};
    static const char *const enter[] = {"\r", NULL};
    bytes small = text;
    chat_line *l = open_line(NULL);
    text = bytes_empty(LIMIT_BODY_BYTES);
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        n_pasted = ROWS[i].n;
        at = 0;
        reads(l, enter); /* which lies there behind the paste */
        CHECK_INT(end, ROWS[i].fits ? CHAT_LINE_PASTED : CHAT_LINE_TEXT);
        CHECK_INT(text.len, ROWS[i].fits ? ROWS[i].n : 0);
        CHECK((strchr(screen, '\a') != NULL) == !ROWS[i].fits);
    }
    READS(l, CHAT_LINE_TEXT, "", PASTED("") "\r");
    CHECK(!strchr(screen, '\a'));
    chat_line_close(l);
    bytes_deinit(&text);
    text = small;
}

/* What is pasted and finds no memory is left out, with a beep; so is what finds no place in the line. */
static void test_no_room(void)
{
    chat_line *l = open_line(NULL);
#define BEEPS(failing, paste)                                                                                \
    do {                                                                                                     \
        READS(l, CHAT_LINE_TEXT, "ab", "a", failing, PASTED(paste), "!memory0", "b\r");                      \
        CHECK(strchr(screen, '\a') != NULL);                                                                 \
    } while (0)
    BEEPS("!memory1", "x\ny");
    BEEPS("!memory2", "x\ny");
    BEEPS("!insert", "x\ny");
    BEEPS("!insert", "x");
#undef BEEPS
    READS(l, CHAT_LINE_TEXT, "ab", "a", "!insert", "\033\r", "b\r"); /* a line break that finds none */
    READS(l, CHAT_LINE_PASTED, "x\ny", PASTED("x\ny") "\r");
    CHECK_HAS(screen, "[pasted 1: 2 lines, 3 bytes]");
    CHECK(!strchr(screen, '\a'));
    chat_line_close(l);
}

/* What a terminal needs and cannot have. */
static void test_open_fails(void)
{
    static const struct {
        const char *call, *text;
        err_code err;
    } ROWS[] = {{"eventfd", "no terminal can be waited for: Too many open files", ERR_IO},
                {"el_init", "there is not enough memory for the terminal", ERR_NOMEM},
                {"history_init", "there is not enough memory for the terminal", ERR_NOMEM}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        chat_line *l = NULL;
        err_detail d = {0};
        one_fails(ROWS[i].call, 1);
        CHECK_INT(chat_line_open(&l, NULL, &d), ROWS[i].err);
        CHECK(one_fails_over());
        CHECK_STR(d.text, ROWS[i].text);
        chat_line_close(l);
    }
}

/* A wait or a read that fails is the end, unless it was only disturbed. */
static void test_errors(void)
{
    static char wait_again[20], wait_end[20], read_again[20], read_disturbed[20], read_end[20];
    snprintf(wait_again, sizeof wait_again, "!poll%d", EINTR);
    snprintf(wait_end, sizeof wait_end, "!poll%d", ENOMEM);
    snprintf(read_again, sizeof read_again, "!read%d", EAGAIN);
    snprintf(read_disturbed, sizeof read_disturbed, "!read%d", EINTR);
    snprintf(read_end, sizeof read_end, "!read%d", EIO);
    chat_line *l = open_line(NULL);
    READS(l, CHAT_LINE_TEXT, "ab", wait_again, "a", wait_again, "b\r");
    READS(l, CHAT_LINE_TEXT, "abc", read_again, "a", read_disturbed, "bc\r");
    READS(l, CHAT_LINE_END, "", "half", wait_end);
    READS(l, CHAT_LINE_END, "", wait_end);
    READS(l, CHAT_LINE_END, "", read_end, "a");
    READS(l, CHAT_LINE_TEXT, "ab", "b\r"); /* which the error has left there */
    READS(l, CHAT_LINE_END, "", PASTED("\n"), "\033[200~b", wait_end, wait_end);
    chat_line_close(l);
}

static void test_signals(chat_line *l)
{
    CHECK(!chat_line_take_interrupt(l));
    raise(SIGINT);
    CHECK(chat_line_take_interrupt(l));
    CHECK(!chat_line_take_interrupt(l));
    raise(SIGINT); /* during an answer: it is not for the next line */
    READS(l, CHAT_LINE_TEXT, "on", "on\r");
    raise(SIGWINCH);
    CHECK(!chat_line_take_interrupt(l));
    READS(l, CHAT_LINE_TEXT, "wide", "wi", "!40", "de\r");
    CHECK_HAS(screen, "ask> wi"); /* drawn anew */
    READS(l, CHAT_LINE_TEXT, "narrow", "nar", "!20", "row\r");
    READS(l, CHAT_LINE_TEXT, "small", "sm", "!10", "all\r");
    READS(l, CHAT_LINE_TEXT, "unknown", "un", "!0", "known\r");
    resize(80);
}

static void test_columns(void)
{
    chat_line *l = NULL;
    err_detail d = {0};
    for (int n = 0; n <= 21; n += n == 0 ? 19 : 1) {
        resize(n);
        CHECK_INT(chat_line_open(&l, NULL, &d), n == 19 ? ERR_INVALID : ERR_OK);
        chat_line_close(l);
    }
    CHECK_STR(d.text, "the terminal has 19 columns; chat needs at least 20");
    resize(80);
    CHECK_INT(chat_line_open(&l, "/no/such/folder", &d), ERR_IO);
    CHECK_HAS(d.text, "--input-history /no/such/folder: No such file");
    chat_line_close(l);
    chat_line_close(NULL);
}

/* ---- a pipe ---- */

static void pipe_in(const char *data)
{
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], data, strlen(data)) == (ssize_t)strlen(data));
    CHECK(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    close(ends[0]);
    close(ends[1]);
}

static void test_pipe(void)
{
    pipe_in("\\\nbehind\none\n\ntwo\\\nthree\n\xff\nno end");
    chat_line *l = open_line(NULL);
    CHECK(!chat_line_is_typed(l));
    READS(l, CHAT_LINE_TEXT, "\nbehind", NULL); /* a backslash alone goes on, too */
    READS(l, CHAT_LINE_TEXT, "one", NULL);
    READS(l, CHAT_LINE_TEXT, "", NULL);
    READS(l, CHAT_LINE_TEXT, "two\nthree", NULL);
    READS(l, CHAT_LINE_TEXT, "\xff", NULL);
    READS(l, CHAT_LINE_TEXT, "no end", NULL);
    READS(l, CHAT_LINE_END, "", NULL);
    CHECK_STR(screen, ""); /* nothing is drawn */
    chat_line_close(l);
    pipe_in("too long\nshort\n");
    l = open_line(NULL);
    bytes_deinit(&text);
    text = bytes_empty(5);
    CHECK_INT(chat_line_read(l, "", &text), CHAT_LINE_TEXT);
    CHECK(text.failed);
    bytes_deinit(&text);
    text = bytes_empty(1 << 20);
    READS(l, CHAT_LINE_TEXT, "short", NULL);
    raise(SIGWINCH); /* there is nothing to draw */
    raise(SIGINT);
    READS(l, CHAT_LINE_END, "", "!INT");
    chat_line_close(l);
}

/* Where the terminal is not one of both, or says not what it is. */
static void test_kinds(void)
{
    const int out = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY);
    chat_line *l;
    CHECK(dup2(null, STDOUT_FILENO) == STDOUT_FILENO);
    l = open_line(NULL);
    CHECK(!chat_line_is_typed(l));
    raise(SIGWINCH);
    READS(l, CHAT_LINE_TEXT, "as it comes", "as it comes\n");
    chat_line_close(l);
    CHECK(dup2(out, STDOUT_FILENO) == STDOUT_FILENO);
    close(out);
    close(null);
    for (int i = 0; i < 2; i++) {
        (i ? setenv("TERM", "", 1) : unsetenv("TERM"));
        setenv("LC_ALL", i ? "C" : "C.utf8", 1); /* characters are of several bytes all the same */
        l = open_line(NULL);
        CHECK_STR(setlocale(LC_CTYPE, NULL), i ? "C.UTF-8" : "C.utf8");
        READS(l, CHAT_LINE_TEXT, "\xc3\xa4", "a\xc3\xa4\001\004\r"); /* Ctrl-A, Ctrl-D: without the first */
        CHECK(!strstr(screen, "2004"));
        chat_line_close(l);
    }
    setenv("TERM", "xterm", 1);
}

int main(void)
{
    char folder[FOLDER_NAME], path[128];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/history", folder);
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    made_up_world = act;
    text = bytes_empty(1 << 20);
    open_terminal();
    test_columns();
    struct stat kept;
    chat_line *l = open_line(path);
    CHECK(stat(path, &kept) == 0 && (kept.st_mode & 07777) == 0600); /* nobody else reads what is asked */
    test_keys(l);
    test_history(l);
    test_pastes(l);
    test_large_pastes();
    test_errors();
    test_no_room();
    test_open_fails();
    test_signals(l);
    READS(l, CHAT_LINE_TEXT, "the last", "the last\r");
    chat_line_close(l);
    setenv("TERM", "dumb", 1); /* does not mark what is pasted */
    const size_t open = open_files();
    l = open_line(path);
    READS(l, CHAT_LINE_TEXT, "the last", "\020\r"); /* it is there the next time: Ctrl-P */
    CHECK(!strstr(screen, "2004"));
    chat_line_close(l);
    CHECK_INT(open_files(), open);
    test_kinds();
    test_pipe();
    err_detail d = {0};
    alloc_fail_at(1);
    CHECK_INT(chat_line_open(&l, path, &d), ERR_NOMEM);
    alloc_fail_at(0);
    CHECK(!l && strcmp(d.text, "there is not enough memory to start") == 0);
    CHECK(dup2(line_fd, STDIN_FILENO) == STDIN_FILENO);
    l = open_line(NULL);
    READS(l, CHAT_LINE_END, "", "half", "!TERM");
    READS(l, CHAT_LINE_END, "", NULL); /* for good */
    raise(SIGHUP);
    CHECK(chat_line_take_interrupt(l)); /* an answer stops, too */
    chat_line_close(l);
    bytes_deinit(&text);
    CHECK_DONE();
}
