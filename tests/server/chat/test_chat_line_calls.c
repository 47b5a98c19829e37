/* chat_line with an editor and a terminal that are made up: which calls it makes of both, in which order, with what, and what
 * its own functions answer them. tests/server/chat/line_calls.txt has all of it; what comes of real keys has test_chat_line. */
#define _GNU_SOURCE /* sigabbrev_np */
#include "server/chat/chat_line.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/recorded.h"

enum { WAKE_FD = 1000, FILE_FD = 1001, SIGNALS = 64, NAMED = 8 };

static bytes all;

/* ---- a made-up system ---- */

static int columns, wake_count, open_error;
static bool is_terminal[3], insert_fails;
static void (*handlers[SIGNALS])(int);

int __wrap_isatty(int fd);
int __wrap_isatty(int fd)
{
    bytes_printf(&all, "  isatty %d\n", fd);
    return is_terminal[fd];
}

int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    struct winsize *out = va_arg(args, struct winsize *);
    va_end(args);
    bytes_printf(&all, "  size of %d%s\n", fd, request == TIOCGWINSZ ? "" : "?");
    out->ws_col =
        (unsigned short)(columns < 0 ? 5 : columns); /* below 0: it fails, and writes all the same */
    return columns < 0 ? 3 : 0;
}

int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags)
{
    bytes_printf(&all, "  eventfd %u%s%s\n", count, flags & EFD_CLOEXEC ? " cloexec" : "",
                 flags & EFD_NONBLOCK ? " nonblock" : "");
    return WAKE_FD;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const unsigned mode = flags & O_CREAT ? va_arg(args, unsigned) : 0;
    va_end(args);
    if (strcmp(path, "/history") != 0) {
        return __real_open(path, flags, mode);
    }
    CHECK_INT(flags, O_RDWR | O_CREAT | O_CLOEXEC);
    bytes_printf(&all, "  open %s %o\n", path, mode);
    errno = open_error;
    return open_error ? -1 : FILE_FD;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    if (fd >= 0 && fd < WAKE_FD) {
        return __real_close(fd);
    }
    bytes_printf(&all, "  close %d\n", fd);
    return 0;
}

int __wrap_sigaction(int number, const struct sigaction *is, struct sigaction *was);
int __wrap_sigaction(int number, const struct sigaction *is, struct sigaction *was)
{
    CHECK(number < SIGNALS && !was);
    bytes_printf(&all, "  sigaction %s%s\n", sigabbrev_np(number),
                 is->sa_flags & SA_RESTART ? " restart" : "");
    handlers[number] = is->sa_handler;
    return 0;
}

char *__real_setlocale(int kind, const char *name);
char *__wrap_setlocale(int kind, const char *name);
char *__wrap_setlocale(int kind, const char *name)
{
    bytes_printf(&all, "  setlocale %s '%s'\n", kind == LC_CTYPE ? "of characters" : "?", name);
    return __real_setlocale(kind, name);
}

ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n);
ssize_t __wrap_write(int fd, const void *data, size_t n)
{
    if (fd < WAKE_FD && fd != -1) {
        return __real_write(fd, data, n);
    }
    uint64_t count = 0;
    memcpy(&count, data, n == sizeof count ? n : 0);
    bytes_printf(&all, "  write %d: %zu bytes, %d\n", fd, n, (int)count);
    wake_count += fd == WAKE_FD;
    errno = EAGAIN;
    return -1;
}

/* ---- what comes while it waits ---- */

/* Each of these is one wait: text that is typed, "!INT" and the like for signals, "!end", "!eintr" and "!error" of the wait,
 * "!again" and "!broken" of the read. Behind the last one all ends. */
static const char *const *events;
static const char *typed; /* what is read next; NULL: nothing */
static int read_error;

static void signal_comes(const char *name)
{
    int number = 1;
    while (number < SIGNALS && !(sigabbrev_np(number) && strcmp(sigabbrev_np(number), name) == 0)) {
        number++;
    }
    errno = ENOENT;
    bytes_printf(&all, "  signal %s\n", name);
    handlers[number](number);
    CHECK_INT(errno, ENOENT);
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
    bytes_append_str(&all, "  poll");
    for (nfds_t i = 0; i < n; i++) {
        bytes_printf(&all, " %d%s", fds[i].fd, fds[i].events == POLLIN ? "" : "?");
    }
    bytes_printf(&all, ", %d ms\n", ms);
    if (wake_count > 0) {
        return 1;
    }
    const char *event = *events ? *events++ : "!end";
    typed = event[0] == '!' ? NULL : event;
    read_error = 0;
    if (strcmp(event, "!eintr") == 0 || strcmp(event, "!error") == 0) {
        errno = event[2] == 'i' ? EINTR : ENOMEM;
        return -1;
    }
    if (strcmp(event, "!again") == 0 || strcmp(event, "!disturbed") == 0 || strcmp(event, "!broken") == 0) {
        read_error = event[1] == 'a' ? EAGAIN : event[1] == 'd' ? EINTR : EIO;
    } else if (event[0] == '!' && strcmp(event, "!end") != 0) {
        signal_comes(event + 1);
    }
    return 1;
}

ssize_t __real_read(int fd, void *out, size_t n);
ssize_t __wrap_read(int fd, void *out, size_t n);
ssize_t __wrap_read(int fd, void *out, size_t n)
{
    if (fd != STDIN_FILENO && fd != WAKE_FD) {
        return __real_read(fd, out, n);
    }
    bytes_printf(&all, "  read %d: %zu bytes\n", fd, n);
    if (fd == WAKE_FD) {
        errno = EAGAIN;
        const bool was_woken = wake_count > 0;
        wake_count = 0;
        return was_woken ? (ssize_t)sizeof(uint64_t) : -1;
    }
    if (read_error || !typed) {
        errno = read_error;
        return read_error ? -1 : 0;
    }
    const size_t len = strlen(typed);
    CHECK(len <= n);
    memcpy(out, typed, len);
    typed = NULL;
    return (ssize_t)len;
}

/* ---- a made-up editor ---- */

struct editline {
    void *data;
    char *(*prompt)(EditLine *);
    int (*next_key)(EditLine *, wchar_t *);
    struct {
        const char *name;
        unsigned char (*does)(EditLine *, int);
    } named[NAMED];
    size_t n_named;
};

static EditLine editor;
static bytes line; /* what was typed into it */

EditLine *__wrap_el_init(const char *name, FILE *in, FILE *out, FILE *err);
EditLine *__wrap_el_init(const char *name, FILE *in, FILE *out, FILE *err)
{
    bytes_printf(&all, "  el_init %s%s\n", name, in == stdin && out == stdout && err == stderr ? "" : "?");
    editor = (EditLine){0};
    return &editor;
}

void __wrap_el_end(EditLine *e);
void __wrap_el_end(EditLine *e)
{
    CHECK(e == &editor);
    bytes_append_str(&all, "  el_end\n");
}

void __wrap_el_resize(EditLine *e);
void __wrap_el_resize(EditLine *e)
{
    CHECK(e == &editor);
    bytes_append_str(&all, "  el_resize\n");
}

static int set(EditLine *e, int what, va_list args)
{
    switch (what) {
    case EL_CLIENTDATA:
        e->data = va_arg(args, void *);
        bytes_append_str(&all, " data\n");
        break;
    case EL_PROMPT:
        e->prompt = va_arg(args, char *(*)(EditLine *));
        bytes_append_str(&all, " prompt\n");
        break;
    case EL_EDITOR:
        bytes_printf(&all, " editor %s\n", va_arg(args, char *));
        break;
    case EL_HIST:
        CHECK(va_arg(args, int (*)(History *, HistEvent *, int, ...)) == history && va_arg(args, void *));
        bytes_append_str(&all, " history\n");
        break;
    case EL_GETCFN:
        e->next_key = va_arg(args, int (*)(EditLine *, wchar_t *));
        bytes_append_str(&all, " keys\n");
        break;
    case EL_ADDFN: {
        const char *name = va_arg(args, char *), *help = va_arg(args, char *);
        CHECK(e->n_named < NAMED);
        e->named[e->n_named].name = name;
        e->named[e->n_named++].does = va_arg(args, unsigned char (*)(EditLine *, int));
        bytes_printf(&all, " function %s: %s\n", name, help);
        break;
    }
    case EL_BIND:
        bytes_append_str(&all, " bind");
        for (const char *word; (word = va_arg(args, char *));) {
            bytes_printf(&all, " %s", word);
        }
        bytes_append_char(&all, '\n');
        break;
    case EL_PREP_TERM:
        bytes_printf(&all, " prepare %d\n", va_arg(args, int));
        break;
    case EL_REFRESH:
        bytes_append_str(&all, " refresh\n");
        break;
    default:
        bytes_printf(&all, " %d?\n", what);
    }
    return 0;
}

int __wrap_el_set(EditLine *e, int what, ...);
int __wrap_el_set(EditLine *e, int what, ...)
{
    va_list args;
    va_start(args, what);
    bytes_append_str(&all, "  el_set");
    const int result = set(e, what, args);
    va_end(args);
    return result;
}

int __wrap_el_get(EditLine *e, int what, ...);
int __wrap_el_get(EditLine *e, int what, ...)
{
    va_list args;
    va_start(args, what);
    CHECK_INT(what, EL_CLIENTDATA);
    *va_arg(args, void **) = e->data;
    va_end(args);
    return 0;
}

int __wrap_el_insertstr(EditLine *e, const char *text);
int __wrap_el_insertstr(EditLine *e, const char *text)
{
    CHECK(e == &editor);
    bytes_append_str(&all, "  el_insertstr ");
    bytes_append_json(&all, text, strlen(text));
    bytes_append_char(&all, '\n');
    if (!insert_fails) {
        bytes_append_str(&line, text);
    }
    return insert_fails ? 5 : 0;
}

static int run_named(EditLine *e, const char *name)
{
    static const char *const KNOWN[] = {[CC_NEWLINE] = "newline",
                                        [CC_REFRESH] = "refresh",
                                        [CC_ERROR] = "error",
                                        [CC_REFRESH_BEEP] = "refresh and beep"};
    size_t i = 0;
    while (i < e->n_named && strcmp(e->named[i].name, name) != 0) {
        i++;
    }
    CHECK(i < e->n_named);
    const int result = e->named[i].does(e, 0);
    const char *known = result < (int)ARRAY_LEN(KNOWN) ? KNOWN[result] : NULL;
    bytes_printf(&all, "  %s answers %s\n", name, known ? known : "?");
    return result;
}

/* Ctrl-C, "N" and "P" are the keys of our functions; a return ends the line, Ctrl-D and the end of all keys say that there is
 * none. */
const char *__wrap_el_gets(EditLine *e, int *count);
const char *__wrap_el_gets(EditLine *e, int *count)
{
    wchar_t key;
    bytes_clear(&line);
    bytes_append_str(&line, "");
    bytes_printf(&all, "  el_gets, after %s\n", e->prompt(e));
    for (;;) {
        key = L'?';
        const int n = e->next_key(e, &key);
        bytes_printf(&all, "  key: %d, %#x\n", n, (unsigned)key);
        if (n != 1 || key == 4) {
            *count = n == 1 ? 0 : 77;
            return NULL;
        }
        if (key == 3 && run_named(e, "chat-interrupt") == CC_NEWLINE) {
            key = '\r';
        }
        if (key == 'N' || key == 'P') {
            run_named(e, key == 'N' ? "chat-newline" : "chat-paste");
        } else if (key == '\r') {
            bytes_append_char(&line, '\n');
            *count = (int)line.len;
            return bytes_str(&line);
        } else {
            bytes_append_char(&line, key < 0x80 ? (char)key : '?');
        }
    }
}

/* ---- its history ---- */

static char kept; /* a history is its place alone */

History *__wrap_history_init(void);
History *__wrap_history_init(void)
{
    bytes_append_str(&all, "  history_init\n");
    return (History *)(void *)&kept;
}

void __wrap_history_end(History *h);
void __wrap_history_end(History *h)
{
    CHECK((void *)h == &kept);
    bytes_append_str(&all, "  history_end\n");
}

int __wrap_history(History *h, HistEvent *event, int what, ...);
int __wrap_history(History *h, HistEvent *event, int what, ...)
{
    va_list args;
    CHECK((void *)h == &kept && event);
    va_start(args, what);
    if (what == H_SETSIZE || what == H_SETUNIQUE) {
        bytes_printf(&all, "  history %s %d\n", what == H_SETSIZE ? "size" : "unique", va_arg(args, int));
    } else {
        const char *name = what == H_LOAD    ? "load"
                           : what == H_SAVE  ? "save"
                           : what == H_ENTER ? "enter"
                                             : "?";
        bytes_printf(&all, "  history %s ", name);
        const char *text = va_arg(args, char *);
        bytes_append_json(&all, text, strlen(text));
        bytes_append_char(&all, '\n');
    }
    va_end(args);
    return 0;
}

/* ---- what is asked of it ---- */

static chat_line *l;
static bytes text;
static char shown[1 << 16]; /* what is written to standard output */

static void look(void)
{
    fflush(stdout);
    rewind(stdout);
    if (shown[0]) {
        bytes_append_str(&all, "  shown: ");
        bytes_append_json(&all, shown, strlen(shown));
        bytes_append_char(&all, '\n');
    }
    memset(shown, 0, sizeof shown);
}

static void open_line(const char *file, const char *why)
{
    err_detail d = {0};
    bytes_printf(&all, "==== opens: %s\n", why);
    const err_code err = chat_line_open(&l, file, &d);
    bytes_printf(&all, "  %d %s%s\n", (int)err, d.text, !err && chat_line_is_typed(l) ? "typed" : "");
}

static void close_line(void)
{
    bytes_append_str(&all, "==== closes\n");
    chat_line_close(l);
}

static void reads(const char *why, const char *const *comes)
{
    static const char *const ENDS[] = {[CHAT_LINE_TEXT] = "text",
                                       [CHAT_LINE_PASTED] = "pasted",
                                       [CHAT_LINE_STOPPED] = "stopped",
                                       [CHAT_LINE_END] = "end"};
    events = comes;
    bytes_printf(&all, "==== reads: %s\n", why);
    const chat_line_end end = chat_line_read(l, "ask> ", &text);
    look();
    bytes_printf(&all, "  %s ", ENDS[end]);
    bytes_append_json(&all, bytes_str(&text), text.len);
    bytes_printf(&all, "%s\n", *events ? ", and more has come" : "");
}
#define READS(why, ...) reads(why, (const char *const[]){__VA_ARGS__, NULL})

static void interrupts(void)
{
    bytes_printf(&all, "==== was %sinterrupted\n", chat_line_take_interrupt(l) ? "" : "not ");
}

static void test_open(void)
{
    for (columns = -1; columns<22; columns += columns> 0 && columns < 19 ? 18 : 1) {
        open_line(NULL, "some columns");
        close_line();
    }
    columns = 80;
    for (int i = 0; i < 3; i++) {
        is_terminal[STDIN_FILENO] = i & 1;
        is_terminal[STDOUT_FILENO] = i & 2;
        open_line("/history", "no terminal on both sides");
        READS("a line", "plain\n");
        close_line();
    }
    is_terminal[STDIN_FILENO] = is_terminal[STDOUT_FILENO] = true;
    open_error = EACCES;
    open_line("/history", "the history cannot be opened");
    close_line();
    open_error = 0;
}

static void test_typed(void)
{
    setenv("LC_ALL", "C.UTF-8", 1); /* of several bytes already */
    open_line("/history", "a history");
    READS("a line", "ab\r");
    READS("in pieces, with characters of several bytes", "a\xc3", "\xa4\xe2\x82", "\xac\r");
    READS("what is no text", "\xff\xe2\x82x\xf0\x9f\x99\x82\r");
    READS("nothing", "\r");
    READS("more lines", "a\\\rb\\\r", "\\\rc\r");
    READS("the end of all", "ab\004");
    READS("the terminal is gone", "ab", "!end");
    READS("the wait fails", "a", "!eintr", "b", "!error");
    READS("the read fails", "a", "!again", "!disturbed", "b", "!broken");
    READS("a new line", "aNb\r");
    insert_fails = true;
    READS("a new line that finds no place", "aNb\r");
    READS("a paste that finds none", "aPxy\033[201~b\r");
    READS("a long one that finds none", "aPx\ny\033[201~b\r");
    insert_fails = false;
    READS("pastes", "Pxy\033[201~Px\ny\033[201~,\r");
    READS("one first", "Px\r\ny\rz\n\001\033[201~b\\\r", "and\r");
    READS("one that is stopped", "Px", "!INT", "\r");
    READS("one whose terminal goes", "Px", "!end");
    READS("one whose signs come late", "Px\033\033[20", "1~\r");
    READS("one that begins as its end does", "P[201~x\033[201~\r");
    READS("a name of none", "[pasted 7: no]\r");
    READS("Ctrl-C", "ab", "!INT", "!INT");
    READS("Ctrl-C later", "!again", "!INT", "never read");
    columns = 19;
    READS("too narrow", "a", "!WINCH", "b\r");
    columns = 20;
    READS("narrow", "a", "!WINCH", "b\r");
    columns = -1;
    READS("it does not say", "a", "!WINCH", "b\r");
    columns = 80;
    signal_comes("INT");
    interrupts();
    interrupts();
    signal_comes("INT");
    READS("a signal before", "ab\r");
    READS("the end by a signal", "a", "!TERM");
    interrupts();
    READS("which is for good", "a");
    close_line();
    signal_comes("WINCH"); /* nobody waits */
}

int main(void)
{
    all = bytes_empty(1 << 20);
    text = bytes_empty(1 << 16);
    line = bytes_empty(1 << 16);
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C", 1);
    is_terminal[STDIN_FILENO] = is_terminal[STDOUT_FILENO] = true;
    FILE *kept_out = stdout;
    stdout = fmemopen(shown, sizeof shown, "w");
    CHECK(stdout != NULL);
    test_open();
    test_typed();
    fclose(stdout);
    stdout = kept_out;
    recorded_check("server/chat/line_calls.txt", bytes_str(&all));
    bytes_deinit(&all);
    bytes_deinit(&text);
    bytes_deinit(&line);
    CHECK_DONE();
}
