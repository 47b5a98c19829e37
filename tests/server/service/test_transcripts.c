/* transcripts: the whole server in this process, with the double of the engine, asked what the files in transcripts/ say, and
 * its answers compared with them, byte for byte (an argument names some: "clock/", "tools/rounds"):
 *
 *     ! --key a-key-of-enough-letters     options of the server (fake_options.h); FOLDER is an empty folder, SOURCE this
 *                                         repository
 *     !! --alias far                      options of a second server, whose port is OTHER
 *     > POST /v1/chat/completions         a request; headers, and behind an empty line its body
 *     >
 *     > {"messages": []}
 *     < 400                               the reply: status, headers that not every reply has, the body
 *
 * A request for WS is a WebSocket: each line of its body is a message, "wait TYPE" in a line waits for one of that type, "wait N
 * TYPE" until N have come. RAW:
 * its lines are sent as they stand; CUT: and nothing more will come. LEAVE TEXT before a request: its client is gone once it has
 * TEXT, or with LEAVE /PATH TEXT once that page says so; "leave" in a WebSocket likewise. END TEXT and END /PATH TEXT before the last
 * request of a file: the server is told to end then, and the reply is what comes all the same; "end" in a WebSocket likewise.
 * "http [KEY] METHOD /PATH [BODY]" in a WebSocket: a request beside it; "file NAME": makes a file in FOLDER; "chunk HEAD N": a
 * frame with a head in hexadecimals and N bytes behind it.
 * UNTIL /PATH TEXT waits until the page says so. KEEP NAME before a request: its reply is read by TAKE NAME, before that by READ NAME
 * TEXT as far as a text; DROP NAME: its client is gone. FILE NAME and GONE NAME make and remove a file in FOLDER.
 *
 * Behind a line CLOCK time stands still (transcript_clock.h), and LATER SECONDS lets it pass, also before a request, once that is
 * sent, among the lines of RAW and, as "later", in a WebSocket, which shows events of
 * statistics from "stats" on; behind it may stand what is waited for first, as with UNTIL. Times are
 * then seconds since the start, and durations exact. Double of the engine: what stalls goes on when there is a FOLDER/go
 * (without CLOCK, too, where a WebSocket has "file go").
 *
 * LOADING: the model is FOLDER/models/ash, and its load goes on until there is no file "slow" in its folder any more, or a
 * server that ends waits for it. WRONG: no other model can be loaded, each for a reason that lasts. No thread can be started
 * while there is a FOLDER/nothread. "long MESSAGE" in a WebSocket: so long that the loop does not read it.
 *
 * What is not the same each time is written as a sign: ids
 * as #1, #2, ... (in requests too), times @+SECONDS or @TIME, durations ~. Streamed texts are joined. PARLEY_WRITE=1 writes
 * the answers of today into the files.
 */
#define _GNU_SOURCE /* memmem */
#include <errno.h>
#include <glob.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/log.h"
#include "tests/recorded.h"
#include "tests/server/fake_options.h"
#include "tests/server/service/transcript_wire.h"

/* Reads until what was streamed has a text, or until a page has it, and writes what came. */
static void read_some(script *s, int fd, bytes *in, const char *leave)
{
    bytes got = *in, body = bytes_empty(BYTES), shown = bytes_empty(BYTES);
    if (leave[0] == '/') {
        wait_until(s, leave);
    }
    for (size_t had = 1; leave[0] != '/' && !strstr(bytes_str(&body), leave) && got.len != had;) {
        char piece[4096];
        had = got.len;
        const ssize_t n = recv(fd, piece, sizeof piece, 0);
        bytes_append(&got, piece, n > 0 ? (size_t)n : 0);
        const char *from = strstr(bytes_str(&got), "\r\n\r\n");
        bytes_clear(&body);
        (void)(from && without_chunks(&body, from + 4, got.len - (size_t)(from + 4 - got.data)));
    }
    const char *end = strstr(bytes_str(&body), leave);
    write_events(s, &shown, body.data, end ? (size_t)(end - body.data) + strlen(leave) : body.len, "\n\n");
    bytes_append_str(&shown, " ... (left)\n");
    write_lines(s, bytes_str(&shown), shown.len);
    *in = got;
    bytes_deinit(&body);
    bytes_deinit(&shown);
}

static void stop_server(script *s)
{
    clock_run();
    CHECK_INT(serve_thread_stop(s->server), 0);
    s->server = NULL;
    static const char *const LOGS[] = {"*-wal", "*/*-wal"}; /* beside chats that are not closed */
    for (size_t i = 0; i < ARRAY_LEN(LOGS); i++) {
        char pattern[512];
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s/%s", s->folder, LOGS[i]);
        CHECK_INT(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
    }
}

/* Ends the server once it has said `when`, or once a page says so. */
static void end_server(script *s, int fd, bytes *got, const char *when)
{
    if (when[0] == '/') {
        wait_until(s, when);
    } else {
        receive(fd, got, when);
    }
    stop_server(s);
}

static kept *kept_of(script *s, const char *name)
{
    int i = 0;
    while (i < MOST_KEPT && strcmp(s->kept[i].name, name) != 0) {
        i++;
    }
    if (i == MOST_KEPT) {
        fprintf(stderr, "%s: there is no %s, or no room for it\n", s->path, name);
        exit(1);
    }
    return &s->kept[i];
}

static void take_reply(script *s, int fd, bytes *got, bool has_body)
{
    receive(fd, got, NULL);
    write_reply(s, bytes_str(got), got->len, has_body);
    close(fd);
}

static void ask(script *s, const char *head, const char *body, manner *m)
{
    bytes sent = bytes_empty(BYTES), got = bytes_empty(BYTES);
    const int fd = open_socket(s);
    const char *line_end = strchr(head, '\n');
    bytes_printf(&sent, "%.*s HTTP/1.1\r\n%s", (int)(line_end - head), head,
                 strstr(head, "\nHost:") ? "" : "Host: 127.0.0.1\r\n");
    bool has_type = false;
    for (const char *line = line_end + 1; *line;) {
        const size_t len = strcspn(line, "\n");
        has_type = has_type || strncmp(line, "Content-Type:", 13) == 0;
        bytes_printf(&sent, "%.*s\r\n", (int)len, line);
        line += len + 1;
    }
    if (body || strncmp(head, "POST", 4) == 0) {
        bytes_printf(&sent, "%sContent-Length: %zu\r\n",
                     has_type || !body ? "" : "Content-Type: application/json\r\n", body ? strlen(body) : 0);
    }
    bytes_printf(&sent, "Connection: close\r\n\r\n%s", body ? body : "");
    send_all(fd, sent.data, sent.len);
    const bool has_body = strncmp(head, "HEAD", 4) != 0;
    pass_times(s, m);
    if (m->keep) {
        kept *k = kept_of(s, "");
        snprintf(k->name, sizeof k->name, "%s", m->keep);
        k->fd = fd;
        k->has_body = has_body;
        k->got = bytes_empty(BYTES);
    } else if (m->leave) {
        read_some(s, fd, &got, m->leave);
        close(fd);
    } else if (m->ends) {
        end_server(s, fd, &got, m->ends);
        take_reply(s, fd, &got, has_body);
    } else {
        take_reply(s, fd, &got, has_body);
    }
    bytes_deinit(&sent);
    bytes_deinit(&got);
}

/* Lines as they stand, with the ends that HTTP has; all replies to them. */
static void ask_raw(script *s, const char *lines, bool is_cut)
{
    bytes sent = bytes_empty(BYTES), got = bytes_empty(BYTES);
    const int fd = open_socket(s);
    for (const char *line = lines; *line;) {
        const size_t len = strcspn(line, "\n");
        if (strncmp(line, "LATER ", 6) == 0) { /* and what stood before it has been read by then */
            char what[256];
            snprintf(what, sizeof what, "%.*s", (int)len - 6, line + 6);
            send_all(fd, sent.data, sent.len);
            bytes_clear(&sent);
            pass_time(s, what);
            const size_t had = got.len;
            const bool is_open = receive_waiting(fd, &got);
            bytes_append_str(&s->out, !is_open        ? "< (then it ends)\n"
                                      : got.len > had ? "< (then an answer)\n"
                                                      : "< (then nothing)\n");
        } else {
            bytes_printf(&sent, "%.*s\r\n", (int)len, line);
        }
        line += len + (line[len] == '\n');
    }
    send_all(fd, sent.data, sent.len);
    if (is_cut) {
        shutdown(fd, SHUT_WR);
    }
    receive(fd, &got, NULL);
    const char *text = bytes_str(&got);
    for (size_t at = 0; at < got.len || at == 0;) {
        at += write_reply(s, text + at, got.len - at, strncmp(lines, "HEAD", 4) != 0);
        at += got.len == 0;
    }
    close(fd);
    bytes_deinit(&sent);
    bytes_deinit(&got);
}

/* ---- WebSockets ---- */

/* A frame of a client: its mask is of zeros. */
static void add_frame(bytes *out, unsigned char opcode, const char *data, size_t n)
{
    unsigned char head[14] = {(unsigned char)(0x80 | opcode)};
    size_t len = 2;
    if (n < 126) {
        head[1] = (unsigned char)(0x80 | n);
    } else if (n < 65536) {
        head[1] = 0x80 | 126;
        head[2] = (unsigned char)(n >> 8);
        head[3] = (unsigned char)n;
        len = 4;
    } else {
        head[1] = 0x80 | 127;
        for (int i = 0; i < 8; i++) {
            head[2 + i] = (unsigned char)((uint64_t)n >> 8 * (7 - i));
        }
        len = 10;
    }
    bytes_append(out, head, len + 4);
    bytes_append(out, data, n);
}

/* Takes whole frames from `in` to `shown`, a line each; true once the other side has closed. */
static bool take_frames(const script *s, bytes *in, size_t *at, bytes *shown)
{
    while (in->len - *at >= 2) {
        const unsigned char *f = (const unsigned char *)in->data + *at;
        size_t len = f[1] & 127, head = 2;
        if (len == 126 && in->len - *at >= 4) {
            len = (size_t)f[2] << 8 | f[3];
            head = 4;
        } else if (len == 127 && in->len - *at >= 10) {
            len = (size_t)f[6] << 24 | (size_t)f[7] << 16 | (size_t)f[8] << 8 | f[9];
            head = 10;
        } else if (len >= 126) {
            return false;
        }
        if (in->len - *at < head + len) {
            return false;
        }
        const int opcode = f[0] & 15;
        if (opcode == 8) {
            bytes_printf(shown, "close %d %.*s\n", len >= 2 ? f[head] << 8 | f[head + 1] : 0,
                         len >= 2 ? (int)len - 2 : 0, f + head + 2);
            return true;
        }
        if (!s->shows_stats &&
            memmem(f + head, len, "\"type\":\"response.stats\"", 23)) { /* now and then, by the clock */
            *at += head + len;
            continue;
        }
        if (opcode != 1 || f[0] != 0x81) {
            bytes_printf(shown, "(opcode %d) ", opcode);
        }
        bytes_append(shown, f + head, len);
        bytes_append_char(shown, '\n');
        *at += head + len;
    }
    return false;
}

/* A frame of bytes: those of the hexadecimals, and for "chunk" as many as the number behind them says. */
static void add_bytes(bytes *out, const char *hex)
{
    bytes data = bytes_empty(BYTES);
    for (; isxdigit((unsigned char)hex[0]) && isxdigit((unsigned char)hex[1]); hex += 2) {
        const char pair[3] = {hex[0], hex[1], '\0'};
        bytes_append_char(&data, (char)strtol(pair, NULL, 16));
    }
    for (long n = *hex == ' ' ? strtol(hex, NULL, 10) : 0; n > 0; n--) {
        bytes_append_char(&data, 'a');
    }
    add_frame(out, 2, data.data, data.len);
    bytes_deinit(&data);
}

/* "[KEY] METHOD /PATH [BODY]": appends the first line of its reply, all of which has come. */
static void ask_beside(const script *s, bytes *shown, const char *what)
{
    bytes sent = bytes_empty(BYTES), got = bytes_empty(BYTES);
    const char *method = strstr(what, " /"), *path = method + 1, *rest = path + strcspn(path, " ");
    CHECK(method != NULL);
    while (method > what && method[-1] != ' ') {
        method--;
    }
    const char *body = *rest ? rest + 1 : "";
    bytes_printf(&sent, "%.*s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n", (int)(rest - method),
                 method);
    if (method > what) {
        bytes_printf(&sent, "Authorization: Bearer %.*s\r\n", (int)(method - 1 - what), what);
    }
    bytes_printf(&sent, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
                 body);
    const int fd = open_socket(s);
    send_all(fd, sent.data, sent.len);
    receive(fd, &got, NULL);
    close(fd);
    bytes_printf(shown, "(%.*s: %.*s)\n", (int)(rest - method), method, (int)strcspn(bytes_str(&got), "\r\n"),
                 bytes_str(&got));
    bytes_deinit(&sent);
    bytes_deinit(&got);
}

/* How many events have a type. */
static long count_of(const char *events, const char *type)
{
    long n = 0;
    for (const char *line = events; *line;
         line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != '\0')) {
        n += memmem(line, strcspn(line, "\n"), type, strlen(type)) != NULL;
    }
    return n;
}

static void make_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void ask_socket(script *s, const char *head, const char *body)
{
    bytes sent = bytes_empty(BYTES), got = bytes_empty(BYTES), shown = bytes_empty(BYTES);
    const int fd = open_socket(s);
    const size_t path = strcspn(head, "\n");
    bytes_printf(&sent,
                 "GET %.*s HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
                 (int)path - 3, head + 3);
    for (const char *c = head + path + 1; *c; c++) {
        bytes_append_str(&sent, *c == '\n' ? "\r" : "");
        bytes_append_char(&sent, *c);
    }
    bytes_append_str(&sent, "\r\n");
    send_all(fd, sent.data, sent.len);
    bytes_clear(&sent);
    receive(fd, &got, "\r\n\r\n");
    const char *end = memmem(got.data, got.len, "\r\n\r\n", 4);
    size_t at = end ? (size_t)(end - got.data) + 4 : got.len;
    if (!end || strncmp(got.data, "HTTP/1.1 101", 12) != 0) {
        receive(fd, &got, NULL);
        write_reply(s, bytes_str(&got), got.len, true);
    } else {
        write_reply(s, got.data, at, false);
        bool is_over = false;
        s->shows_stats = false;
        for (const char *line = body; *line && !is_over;) {
            const size_t line_len = strcspn(line, "\n");
            bytes known = bytes_empty(BYTES);
            read_signs(s, &known, line, line_len); /* ids of this very conversation, too */
            const char *next = bytes_str(&known);
            const size_t len = known.len;
            if (strncmp(next, "wait ", 5) == 0 || strncmp(next, "later ", 6) == 0 ||
                strncmp(next, "http ", 5) == 0 || strncmp(next, "file ", 5) == 0 ||
                strcmp(next, "leave") == 0) { /* what stands in a row is sent at once */
                send_all(fd, sent.data, sent.len);
                bytes_clear(&sent);
            }
            if (len > 5 && strncmp(next, "wait ", 5) == 0) {
                char type[96], *name;
                const long n_wanted = strtol(next + 5, &name, 10); /* 0: one more */
                snprintf(type, sizeof type, "\"%s\"", name + (n_wanted > 0));
                const size_t before = shown.len, from = n_wanted > 0 ? 0 : before;
                while (!(is_over = take_frames(s, &got, &at, &shown)) &&
                       count_of(bytes_str(&shown) + from, type) < (n_wanted > 0 ? n_wanted : 1)) {
                    const size_t had = got.len;
                    char piece[4096];
                    const ssize_t n = recv(fd, piece, sizeof piece, 0);
                    bytes_append(&got, piece, n > 0 ? (size_t)n : 0);
                    if (got.len == had) {
                        bytes_append_str(&shown, "(nothing more)\n");
                        break;
                    }
                }
                bytes signs = bytes_empty(BYTES);
                write_signs(s, &signs, bytes_str(&shown) + before,
                            shown.len - before); /* its ids are known from now on */
                bytes_deinit(&signs);
            } else if (strncmp(next, "later ", 6) == 0) {
                char *rest;
                const double seconds = strtod(next + 6, &rest);
                wait_until(s, *rest == ' ' ? rest + 1 : s->health);
                (void)receive_waiting(fd, &got);
                is_over = take_frames(s, &got, &at, &shown);
                bytes_printf(&shown, "(%g s later)\n", seconds);
                clock_pass(seconds);
                (void)receive_waiting(fd, &got);
                is_over = is_over || take_frames(s, &got, &at, &shown);
            } else if (strcmp(next, "stats") == 0) {
                s->shows_stats = true;
            } else if (strcmp(next, "end") == 0) {
                stop_server(s);
            } else if (strcmp(next, "pong") == 0) {
                add_frame(&sent, 10, "", 0);
            } else if (strcmp(next, "leave") == 0) {
                is_over = true;
                shutdown(fd, SHUT_RDWR);
            } else if (strncmp(next, "file ", 5) == 0) {
                make_file(s->folder, next + 5, "");
            } else if (strncmp(next, "http ", 5) == 0) {
                ask_beside(s, &shown, next + 5);
            } else if (strncmp(next, "binary ", 7) == 0 || strncmp(next, "chunk ", 6) == 0) {
                add_bytes(&sent, strchr(next, ' ') + 1);
            } else if (strncmp(next, "long ", 5) == 0) {
                for (int i = 0; i < 20000; i++) {
                    bytes_append_char(&known, ' ');
                }
                add_frame(&sent, 1, bytes_str(&known) + 5, known.len - 5);
            } else {
                add_frame(&sent, 1, next, len);
            }
            bytes_deinit(&known);
            line += line_len + (line[line_len] == '\n');
        }
        add_frame(&sent, 8, "\x03\xe8", 2);
        send_all(fd, sent.data, sent.len);
        while (!is_over && !take_frames(s, &got, &at, &shown)) {
            const size_t had = got.len;
            char piece[4096];
            const ssize_t n = recv(fd, piece, sizeof piece, 0);
            bytes_append(&got, piece, n > 0 ? (size_t)n : 0);
            is_over = got.len == had;
        }
        bytes events = bytes_empty(BYTES);
        write_events(s, &events, bytes_str(&shown), shown.len, "\n");
        write_lines(s, bytes_str(&events), events.len);
        bytes_deinit(&events);
    }
    close(fd);
    bytes_deinit(&sent);
    bytes_deinit(&got);
    bytes_deinit(&shown);
}

/* ---- engines ---- */

err_code __real_engine_open(engine **out, const engine_options *opt, err_detail *d);
void __real_engine_close(engine *e);
err_code __wrap_engine_open(engine **out, const engine_options *opt, err_detail *d);
void __wrap_engine_close(engine *e);

static atomic_int n_engines;

err_code __wrap_engine_open(engine **out, const engine_options *opt, err_detail *d)
{
    const err_code err = __real_engine_open(out, opt, d);
    n_engines += err == ERR_OK;
    return err;
}

void __wrap_engine_close(engine *e)
{
    n_engines -= e != NULL;
    __real_engine_close(e);
}

/* ---- threads ---- */

static char no_thread[320]; /* the path of a file */

int __real_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx);

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx)
{
    return access(no_thread, F_OK) == 0 ? EAGAIN : __real_pthread_create(out, attr, fn, ctx);
}

/* ---- a file ---- */

/* Starts a server with the words of the lines that begin with `mark`; its options point to them. */
static serve_thread *start(script *s, fake_options *f, const char *mark, int *port)
{
    static char *all[2][MOST_WORDS];
    const size_t server = strlen(mark) - 2;
    char **words = all[server];
    int n = 0;
    bytes text = bytes_empty(BYTES);
    const size_t skip = strlen(mark);
    for (const char *line = s->text; *line == '!'; line += strcspn(line, "\n") + 1) {
        if (strncmp(line, mark, skip) == 0) {
            read_signs(s, &text, line + skip, strcspn(line, "\n") - skip);
            bytes_append_char(&text, ' ');
        }
    }
    char *c = s->words[server] = strdup(bytes_str(&text));
    bytes_deinit(&text);
    if (!c) {
        exit(1);
    }
    while (*(c += strspn(c, " ")) && n < MOST_WORDS) {
        words[n++] = c;
        c += strcspn(c, " ");
        if (*c) {
            *c++ = '\0';
        }
    }
    if (!fake_options_read(f, n, words)) {
        exit(2);
    }
    f->serve.quiet = true;
    f->serve.drain_timeout_s = s->is_exact ? f->serve.drain_timeout_s : 0;
    if (!f->serve.upload_dir) {
        f->serve.upload_dir = s->folder;
    }
    serve_thread *t = serve_thread_start(&f->serve, port);
    if (!t) {
        fprintf(stderr, "%s: the server does not start: %d\n", s->path, *port);
        exit(1);
    }
    return t;
}

static const char *const MODEL_FILES[] = {"config.json", "model.safetensors", "tokenizer.json"};

/* Models for --models-dir FOLDER/models: three that can be loaded, one that the double says is damaged, one that is none. */
static void make_models(const script *s)
{
    static const struct {
        const char *name, *marks[3]; /* see fake_engine.c */
    } MODELS[] = {{"", {0}},
                  {"ash", {0}},
                  {"birch", {0}},
                  {"cedar", {"blind", "ranks", "heavy"}},
                  {"damaged", {"corrupt"}},
                  {"none", {0}}};
    char folder[256], path[512], target[512];
    for (size_t i = 0; i < sizeof MODELS / sizeof MODELS[0]; i++) {
        const bool is_none = strcmp(MODELS[i].name, "none") == 0;
        snprintf(folder, sizeof folder, "%s/models/%s", s->folder, MODELS[i].name);
        CHECK(mkdir(folder, 0700) == 0);
        for (size_t k = 0; i > 0 && !is_none && k < 3; k++) {
            snprintf(path, sizeof path, "%s/%s", folder, MODEL_FILES[k]);
            snprintf(target, sizeof target, "%s/tests/data/tiny/%s", PARLEY_SOURCE_DIR, MODEL_FILES[k]);
            CHECK(symlink(target, path) == 0);
        }
        for (size_t k = 0; k < 3 && MODELS[i].marks[k]; k++) {
            make_file(folder, MODELS[i].marks[k], "");
        }
        if (is_none) {
            make_file(folder, "config.json", "{");
        }
    }
}

/* The cache of --hub FOLDER/hub: a model that is whole, and one whose download was broken off. */
static void make_cache(const script *s)
{
    static const char *const FOLDERS[] = {
        "",
        "/models--org--whole",
        "/models--org--whole/refs",
        "/models--org--whole/snapshots",
        "/models--org--whole/snapshots/0123456789abcdef0123456789abcdef01234567",
        "/models--org--half",
        "/models--org--half/blobs"};
    char path[512], target[512];
    for (size_t i = 0; i < ARRAY_LEN(FOLDERS); i++) {
        snprintf(path, sizeof path, "%s/hub%s", s->folder, FOLDERS[i]);
        CHECK(mkdir(path, 0700) == 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(MODEL_FILES); i++) {
        snprintf(path, sizeof path, "%s/hub%s/%s", s->folder, FOLDERS[4], MODEL_FILES[i]);
        snprintf(target, sizeof target, "%s/tests/data/tiny/%s", PARLEY_SOURCE_DIR, MODEL_FILES[i]);
        CHECK(symlink(target, path) == 0);
    }
    make_file(s->folder, "hub/models--org--whole/refs/main", "0123456789abcdef0123456789abcdef01234567");
    make_file(s->folder, "hub/models--org--half/blobs/abc.incomplete", "some bytes");
}

/* Does what needs no request, and takes how the next one is to be asked; returns what stands behind that. */
static char *take_manner(script *s, char *text, manner *m)
{
    static const char *const WORDS[] = {"UNTIL ", "FILE ", "GONE ",  "TAKE ",  "READ ",
                                        "DROP ",  "KEEP ", "LATER ", "LEAVE ", "END "};
    for (;;) {
        size_t word = 0;
        while (word < sizeof WORDS / sizeof WORDS[0] &&
               strncmp(text, WORDS[word], strlen(WORDS[word])) != 0) {
            word++;
        }
        if (word == sizeof WORDS / sizeof WORDS[0]) {
            return text;
        }
        char *line_end = strchr(text, '\n'), path[512];
        *line_end = '\0';
        const char *what = text + strlen(WORDS[word]);
        snprintf(path, sizeof path, "%s/%s", s->folder, what);
        if (word < 6) {
            pass_times(s, m);
        }
        if (word == 0) {
            wait_until(s, what);
        } else if (word == 1) {
            const int fd = open(path, O_CREAT | O_WRONLY, 0600);
            CHECK(fd >= 0 && close(fd) == 0);
        } else if (word == 2) {
            CHECK_INT(unlink(path), 0);
        } else if (word == 3) {
            kept *k = kept_of(s, what);
            take_reply(s, k->fd, &k->got, k->has_body);
            bytes_deinit(&k->got);
            k->name[0] = '\0';
        } else if (word == 4) {
            char name[KEPT_NAME];
            const size_t n = strcspn(what, " ");
            snprintf(name, sizeof name, "%.*s", (int)n, what);
            kept *k = kept_of(s, name);
            read_some(s, k->fd, &k->got, what + n + 1);
        } else if (word == 5) {
            kept *k = kept_of(s, what);
            close(k->fd);
            bytes_deinit(&k->got);
            k->name[0] = '\0';
        } else if (word == 6) {
            m->keep = what;
        } else if (word == 7) {
            CHECK(m->n_later < MOST_LATER);
            m->later[m->n_later++] = what;
        } else if (word == 8) {
            m->leave = what;
        } else {
            m->ends = what;
        }
        text = line_end + 1;
    }
}

/* Asks what stands in lines of "> ", from *at on, and goes behind them and the reply. */
static void take_exchange(script *s, const char **at)
{
    bytes lines = bytes_empty(BYTES);
    for (; **at == '>'; *at += strcspn(*at, "\n") + 1) {
        const size_t len = strcspn(*at, "\n");
        bytes_append(&s->out, *at, len + 1);
        const size_t mark = len > 1 ? 2 : 1;
        read_signs(s, &lines, *at + mark, len - mark);
        bytes_append_char(&lines, '\n');
    }
    while (**at == '<') {
        *at += strcspn(*at, "\n") + 1;
    }
    bytes_str(&lines);
    char *text = lines.data;
    manner m = {0};
    text = take_manner(s, text, &m);
    if (!*text) {
        pass_times(s, &m);
        bytes_deinit(&lines);
        return;
    }
    if (strncmp(text, "RAW\n", 4) == 0 || strncmp(text, "CUT\n", 4) == 0) {
        ask_raw(s, text + 4, text[0] == 'C');
        bytes_deinit(&lines);
        return;
    }
    char *body = strstr(text, "\n\n");
    if (body) { /* the head keeps the end of its last line, the body does not */
        lines.data[lines.len - 1] = '\0';
        body[1] = '\0';
        body += 2;
    }
    if (strncmp(text, "WS ", 3) == 0) {
        ask_socket(s, text, body ? body : "");
    } else {
        ask(s, text, body, &m);
    }
    bytes_deinit(&lines);
}

static void run(const char *path)
{
    static script s;
    static fake_options f;
    s = (script){.path = path, .out = bytes_empty(BYTES)};
    folder_make(s.folder);
    snprintf(no_thread, sizeof no_thread, "%s/nothread", s.folder);
    bytes text = bytes_empty(BYTES);
    FILE *file = fopen(path, "r");
    char piece[65536];
    for (size_t n; file && (n = fread(piece, 1, sizeof piece, file)) > 0;) {
        bytes_append(&text, piece, n);
    }
    if (file) {
        fclose(file);
    }
    bytes_str(&text);
    s.text = text.data;
    if (strstr(s.text, "FOLDER/models")) {
        make_models(&s);
    }
    const bool is_loading = strstr(s.text, "\nLOADING\n") != NULL;
    if (is_loading) {
        make_file(s.folder, "models/ash/slow", "");
    }
    if (strstr(s.text, "\nWRONG\n")) {
        make_file(s.folder, "models/birch/foreign", "");
        make_file(s.folder, "models/cedar/unfit", "");
        make_file(s.folder, "models/damaged/absent", "");
    }
    if (strstr(s.text, "FOLDER/hub")) {
        make_cache(&s);
    }
    const bool is_exact = strstr(s.text, "CLOCK\n") != NULL;
    if (is_exact || strstr(s.text, "\n> file go\n")) {
        char go[128];
        snprintf(go, sizeof go, "%s/go", s.folder);
        setenv("FAKE_STUCK_UNTIL", go, 1);
    }
    if (is_exact) {
        clock_stop();
        s.is_exact = true;
        s.began_s = clock_unix_s();
    }
    static fake_options f_other;
    serve_thread *other = strstr(s.text, "!! ") == s.text ? start(&s, &f_other, "!! ", &s.other) : NULL;
    s.server = start(&s, &f, "! ", &s.port);
    snprintf(s.health, sizeof s.health, "%s/health", f.serve.path_prefix ? f.serve.path_prefix : "");
    wait_for(&s, s.health, is_loading ? " 503 " : " 200 ");
    for (size_t i = 0; f.tools && i < f.tools->n; i++) {
        const mcp_server_config *c = &f.tools->servers[i];
        char ready[160];
        snprintf(ready, sizeof ready, "\"server_label\":\"%s\",\"kind\":\"%s\",\"state\":\"%s\"", c->label,
                 c->kind == MCP_STDIO ? "stdio" : "builtin", c->is_off ? "off" : "ready");
        wait_for(&s, "/v1/mcp", ready);
    }
    if (other) {
        wait_for(&s, "/v1/models", "\"owned_by\":\"far\"");
    }
    for (const char *at = s.text; *at;) {
        if (*at == '>') {
            take_exchange(&s, &at);
        } else if (*at == '<') {
            at += strcspn(at, "\n") + 1;
        } else {
            const size_t len = strcspn(at, "\n") + 1;
            bytes_append(&s.out, at, len);
            at += len;
        }
    }
    if (s.server) {
        stop_server(&s);
    }
    fake_options_end(&f);
    if (other) {
        CHECK_INT(serve_thread_stop(other), 0);
    }
    CHECK_INT(s.n_wrong, 0);
    CHECK_INT(n_engines, 0); /* all are closed */
    recorded_compare(path, s.text, bytes_str(&s.out));
    free(s.words[0]);
    free(s.words[1]);
    bytes_deinit(&text);
    bytes_deinit(&s.out);
}

int main(int argc, char **argv)
{
    const char *elsewhere = getenv("PARLEY_TRANSCRIPTS"); /* while one is written */
    const char *place = elsewhere ? elsewhere : PARLEY_SOURCE_DIR "/tests/server/service/transcripts";
    log_set_level(LOG_OFF);
    setenv("PARLEY_TESTS", PARLEY_SOURCE_DIR "/tests", 1);
    char pattern[1024];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "%s/*/*.txt", place);
    CHECK_INT(glob(pattern, 0, NULL, &found), 0);
    static pid_t children[MOST_FILES];
    int n_run = 0;
    for (size_t i = 0; i < found.gl_pathc;
         i++) { /* each in a process of its own, as a server waits more than it computes */
        const char *path = found.gl_pathv[i];
        if (argc < 2 || strstr(path + strlen(place), argv[1])) {
            const pid_t child = n_run < MOST_FILES ? fork() : -1;
            if (child == 0) {
                run(path);
                CHECK_DONE();
            }
            CHECK(child > 0);
            children[n_run++] = child;
        }
    }
    int status;
    for (pid_t ended; (ended = wait(&status)) > 0;) {
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        for (int i = 0; i < n_run; i++) {
            children[i] = children[i] == ended ? 0 : children[i];
            if (check_failures && children[i] > 0) { /* what is wrong may also let the others wait */
                kill(children[i], SIGKILL);
            }
        }
    }
    globfree(&found);
    CHECK(n_run > 0);
    CHECK_DONE();
}
