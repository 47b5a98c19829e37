#include "server/chat/chat_line.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/memory.h"
#include "base/utf8.h"

/* A pasted line longer than this, or of several lines, is shown by its size alone. */
enum { HISTORY_LINES = 1000, INPUT_BYTES = 65536, PASTE_SHOWN_MAX = 400, NAME_BYTES = 64, INTERRUPT_KEY = 3 };

static const char PASTE_ON[] = "\033[?2004h", PASTE_OFF[] = "\033[?2004l", PASTE_END[] = "\033[201~";
static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
static const char MORE_PROMPT[] = "... ";

typedef struct paste {
    char name[NAME_BYTES]; /* what stands for it in the line */
    bytes text;
} paste;

struct chat_line {
    bool is_typed;
    const char *history_file; /* NULL: lines are not kept, or there is no such file */
    EditLine *edit;           /* NULL: a pipe */
    History *history;
    const char *prompt;
    bool was_stopped;
    bool takes_pastes; /* the terminal marks them */
    paste *pastes;
    size_t n_pastes, cap_pastes, paste_bytes;
    size_t at, n; /* of input */
    char input[INPUT_BYTES];
};

/* By the handlers, which any thread of a library may run: who waits for a key is woken by wake_fd (-1: nobody
 * does). */
static atomic_bool interrupted, resized, ended;
static atomic_int wake_fd = -1;

static void on_signal(int number)
{
    const int kept = errno;
    const uint64_t one = 1;
    if (number == SIGWINCH) {
        resized = true;
    } else {
        interrupted = true; /* an answer that comes stops, too */
        ended = ended || number != SIGINT;
    }
    const ssize_t written = write(wake_fd, &one, sizeof one);
    (void)written;
    errno = kept;
}

static unsigned short columns_of(int fd)
{
    struct winsize size = {0};
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* ---- keys ---- */

/* libedit would write beside the screen if it were told that there is so little of it. */
static void take_resize(chat_line *l)
{
    const unsigned short n = columns_of(STDOUT_FILENO);
    resized = false;
    if (l->edit && n >= CHAT_LINE_COLUMNS_MIN) {
        el_resize(l->edit);
        el_set(l->edit, EL_REFRESH);
    }
}

/* Makes at least one byte of input ready. False at the end; *is_interrupt: Ctrl-C came instead. */
static bool fill(chat_line *l, bool *is_interrupt)
{
    struct pollfd in[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = wake_fd, .events = POLLIN}};
    uint64_t count;
    *is_interrupt = false;
    while (l->at == l->n) {
        if (resized) {
            take_resize(l);
        }
        if (ended) {
            return false;
        }
        if (interrupted) {
            interrupted = false;
            *is_interrupt = true;
            return true;
        }
        if (poll(in, ARRAY_LEN(in), -1) < 0) {
            if (errno == EINTR) {
                continue;
            }
            return false;
        }
        if (read(in[1].fd, &count, sizeof count) > 0) {
            continue;
        }
        const ssize_t n = read(STDIN_FILENO, l->input, sizeof l->input);
        if (n <= 0 && !(n < 0 && (errno == EINTR || errno == EAGAIN))) {
            return false;
        }
        l->at = 0;
        l->n = n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* EL_GETCFN: a key as a character, 0 at the end. */
static int next_key(EditLine *e, wchar_t *out)
{
    chat_line *l = NULL;
    char text[4];
    size_t n = 0;
    bool is_interrupt;
    el_get(e, EL_CLIENTDATA, &l);
    do {
        if (!fill(l, &is_interrupt)) {
            *out = L'\0';
            return 0;
        }
        if (is_interrupt) {
            *out = INTERRUPT_KEY;
            return 1;
        }
        text[n++] = l->input[l->at++];
    } while (n < sizeof text && utf8_incomplete_tail(text, n) == n);
    uint32_t c;
    const size_t used = utf8_decode(text, n, &c);
    l->at -= n - used; /* what follows an ill-formed beginning is looked at again */
    *out = (wchar_t)c;
    return 1;
}

static unsigned char on_interrupt_key(EditLine *e, int key)
{
    chat_line *l = NULL;
    (void)key;
    el_get(e, EL_CLIENTDATA, &l);
    l->was_stopped = true;
    return CC_NEWLINE;
}

static unsigned char on_newline_key(EditLine *e, int key)
{
    (void)key;
    return el_insertstr(e, "\n") == 0 ? CC_REFRESH : CC_ERROR;
}

/* ---- pastes ---- */

static bool ends_with(const bytes *b, const char *end)
{
    const size_t n = strlen(end);
    return b->data && b->len >= n && memcmp(b->data + b->len - n, end, n) == 0;
}

/* Line breaks as they are in files; no other control characters, which would be keys. */
static void tidy_paste(bytes *text)
{
    size_t n = 0;
    for (size_t i = 0; i < text->len; i++) {
        const char c = text->data[i];
        if (c == '\r') {
            i += text->data[i + 1] == '\n'; /* a zero stands behind the text */
            text->data[n++] = '\n';
        } else if ((unsigned char)c >= 0x20 || c == '\n' || c == '\t') {
            text->data[n++] = c;
        }
    }
    if (text->data) {
        text->data[n] = '\0';
    }
    text->len = n;
}

/* Keeps the text under a name that is put into the line. */
static bool keep_paste(chat_line *l, bytes *text)
{
    size_t n_lines = text->data[text->len - 1] != '\n';
    if (!memory_grow(&l->pastes, &l->cap_pastes, l->n_pastes + 1, 8, sizeof *l->pastes)) {
        return false;
    }
    for (const char *at = text->data; (at = strchr(at, '\n')); at++) { /* there is no zero in it */
        n_lines++;
    }
    paste *p = &l->pastes[l->n_pastes];
    *p = (paste){.text = *text};
    snprintf(p->name, sizeof p->name, "[pasted %zu: %zu line%s, %zu bytes]", l->n_pastes + 1, n_lines,
             n_lines == 1 ? "" : "s", text->len);
    if (el_insertstr(l->edit, p->name) != 0) {
        return false;
    }
    l->n_pastes++;
    l->paste_bytes += text->len;
    *text = (bytes){0}; /* the paste owns it */
    return true;
}

/* The terminal has said that what follows is pasted. */
static unsigned char on_paste(EditLine *e, int key)
{
    enum { N_END = sizeof PASTE_END - 1 };
    chat_line *l = NULL;
    bool is_interrupt;
    (void)key;
    el_get(e, EL_CLIENTDATA, &l);
    bytes text = bytes_empty(LIMIT_BODY_BYTES - l->paste_bytes + N_END);
    size_t n_end = 0; /* bytes of the end that were seen; its first one is not in it again */
    while (n_end < N_END) {
        if (!fill(l, &is_interrupt) || is_interrupt) {
            break; /* the terminal is gone, or its paste never ends */
        }
        const char c = l->input[l->at++];
        n_end = c == PASTE_END[n_end] ? n_end + 1 : c == PASTE_END[0];
        bytes_append_char(&text, c);
    }
    if (!text.failed && n_end == N_END) {
        text.len -= N_END;
        text.data[text.len] = '\0';
    }
    bool ok = !text.failed;
    tidy_paste(&text);
    const bool is_plain = text.len <= PASTE_SHOWN_MAX && utf8_valid(bytes_str(&text), text.len) &&
                          !memchr(bytes_str(&text), '\n', text.len);
    if (ok && text.len) {
        ok = is_plain ? el_insertstr(e, bytes_str(&text)) == 0 : keep_paste(l, &text);
    }
    bytes_deinit(&text);
    return ok ? CC_REFRESH : CC_REFRESH_BEEP;
}

/* The paste whose name line[0..n) begins with; NULL: none. */
static const paste *paste_at(const chat_line *l, const char *line, size_t n)
{
    for (size_t i = 0; i < l->n_pastes; i++) {
        const size_t len = strlen(l->pastes[i].name);
        if (len <= n && memcmp(line, l->pastes[i].name, len) == 0) {
            return &l->pastes[i];
        }
    }
    return NULL;
}

/* The line with every paste in the place of its name. */
static void expand(const chat_line *l, bytes *out, const char *line, size_t n)
{
    for (size_t at = 0; at < n;) {
        const paste *found = line[at] == '[' ? paste_at(l, line + at, n - at) : NULL;
        if (found) {
            bytes_append(out, bytes_str(&found->text), found->text.len);
            at += strlen(found->name);
        } else {
            bytes_append_char(out, line[at++]);
        }
    }
}

/* ---- a line ---- */

static char *prompt_of(EditLine *e)
{
    chat_line *l = NULL;
    el_get(e, EL_CLIENTDATA, &l);
    return (char *)(uintptr_t)l->prompt; /* libedit does not write to it */
}

static void mark_pastes(const chat_line *l, const char *code)
{
    if (l->takes_pastes) {
        fputs(code, stdout);
        fflush(stdout);
    }
}

/* One line of the terminal, without its line break; NULL at the end. */
static const char *edit_line(chat_line *l, const char *prompt, size_t *n)
{
    int count = 0;
    l->prompt = prompt;
    l->was_stopped = false;
    el_set(l->edit, EL_PREP_TERM, 1); /* before the prompt: who sees it may type any key */
    mark_pastes(l, PASTE_ON);
    const char *line = el_gets(l->edit, &count);
    mark_pastes(l, PASTE_OFF);
    *n = line ? (size_t)count : 0; /* NULL instead of nothing */
    if (*n && line[*n - 1] == '\n') {
        --*n;
    }
    return line;
}

static chat_line_end read_typed(chat_line *l, const char *prompt, bytes *out)
{
    HistEvent event;
    size_t n = 0;
    bool is_pasted = false;
    for (;;) {
        const char *line = edit_line(l, out->len ? MORE_PROMPT : prompt, &n);
        if (l->was_stopped) {
            puts("^C");
            return CHAT_LINE_STOPPED;
        }
        if (!line) {
            putchar('\n');
            return CHAT_LINE_END;
        }
        const bool goes_on = n > 0 && line[n - 1] == '\\';
        if (n > 0) {
            history(l->history, &event, H_ENTER, line);
        }
        is_pasted = is_pasted || (out->len == 0 && paste_at(l, line, n));
        expand(l, out, line, goes_on ? n - 1 : n);
        if (!goes_on) {
            return is_pasted ? CHAT_LINE_PASTED : CHAT_LINE_TEXT;
        }
        bytes_append_char(out, '\n');
    }
}

static chat_line_end read_plain(chat_line *l, bytes *out)
{
    bool is_interrupt;
    while (fill(l, &is_interrupt)) {
        if (is_interrupt) {
            return CHAT_LINE_END;
        }
        const char *end = memchr(l->input + l->at, '\n', l->n - l->at);
        const size_t n = end ? (size_t)(end - l->input) - l->at : l->n - l->at;
        bytes_append(out, l->input + l->at, n);
        l->at += n + (end != NULL);
        if (end && ends_with(out, "\\")) {
            out->data[out->len - 1] = '\n';
        } else if (end) {
            return CHAT_LINE_TEXT;
        }
    }
    return out->len ? CHAT_LINE_TEXT : CHAT_LINE_END;
}

chat_line_end chat_line_read(chat_line *l, const char *prompt, bytes *out)
{
    bytes_clear(out);
    interrupted = false; /* what was pressed during the answer was for it */
    return l->edit ? read_typed(l, prompt, out) : read_plain(l, out);
}

bool chat_line_take_interrupt(chat_line *l)
{
    (void)l;
    const bool was = interrupted;
    interrupted = false;
    return was;
}

bool chat_line_is_typed(const chat_line *l)
{
    return l->is_typed;
}

/* ---- beginning and end ---- */

static err_code open_history(chat_line *l, const char *file, err_detail *detail)
{
    HistEvent event;
    history(l->history, &event, H_SETSIZE, HISTORY_LINES);
    history(l->history, &event, H_SETUNIQUE, 1);
    if (!file) {
        return ERR_OK;
    }
    const int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_set(detail, ERR_IO, "--input-history %s: %s", file, strerror(errno));
    }
    close(fd);
    l->history_file = file;
    history(l->history, &event, H_LOAD, file); /* of an empty file nothing is read */
    return ERR_OK;
}

static err_code open_editor(chat_line *l, const char *history_file, err_detail *detail)
{
    const char *term = getenv("TERM");
    const unsigned short n = columns_of(STDOUT_FILENO);
    if (n > 0 && n < CHAT_LINE_COLUMNS_MIN) {
        return err_set(detail, ERR_INVALID, "the terminal has %d columns; chat needs at least %d", n,
                       CHAT_LINE_COLUMNS_MIN);
    }
    l->edit = el_init("parley", stdin, stdout, stderr);
    l->history = history_init();
    if (!l->edit || !l->history) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for the terminal");
    }
    l->takes_pastes = term && term[0] && strcmp(term, "dumb") != 0;
    el_set(l->edit, EL_CLIENTDATA, l);
    el_set(l->edit, EL_PROMPT, prompt_of);
    el_set(l->edit, EL_EDITOR, "emacs");
    el_set(l->edit, EL_HIST, history, l->history);
    el_set(l->edit, EL_GETCFN, next_key);
    el_set(l->edit, EL_ADDFN, "chat-interrupt", "drop the line", on_interrupt_key);
    el_set(l->edit, EL_ADDFN, "chat-newline", "begin another line", on_newline_key);
    el_set(l->edit, EL_ADDFN, "chat-paste", "take what is pasted", on_paste);
    el_set(l->edit, EL_BIND, "^C", "chat-interrupt", NULL);
    el_set(l->edit, EL_BIND, "\\e\\r", "chat-newline", NULL);
    el_set(l->edit, EL_BIND, "\\e\\n", "chat-newline", NULL);
    el_set(l->edit, EL_BIND, "\\e[200~", "chat-paste", NULL);
    el_set(l->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    return open_history(l, history_file, detail);
}

err_code chat_line_open(chat_line **out, const char *history_file, err_detail *detail)
{
    const struct sigaction action = {.sa_handler = on_signal,
                                     .sa_flags = SA_RESTART}; /* what is drawn is drawn */
    chat_line *l = calloc(1, sizeof *l);
    *out = l;
    if (!l) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory to start");
    }
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0) {
        return err_set(detail, ERR_IO, "no terminal can be waited for: %s", strerror(errno));
    }
    l->is_typed = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1) {
        setlocale(LC_CTYPE, "C.UTF-8");
    }
    for (size_t i = 0; i < ARRAY_LEN(SIGNALS); i++) {
        sigaction(SIGNALS[i], &action, NULL);
    }
    return l->is_typed ? open_editor(l, history_file, detail) : ERR_OK;
}

void chat_line_close(chat_line *l)
{
    HistEvent event;
    if (!l) {
        return;
    }
    if (l->history_file) {
        history(l->history, &event, H_SAVE, l->history_file);
    }
    if (l->edit) {
        el_end(l->edit);
    }
    if (l->history) {
        history_end(l->history);
    }
    for (size_t i = 0; i < l->n_pastes; i++) {
        bytes_deinit(&l->pastes[i].text);
    }
    free(l->pastes);
    free(l);
    close(atomic_exchange(&wake_fd, -1));
}
