/* Commands that load a model (bench, run, convert, --check) with an engine that is made up: what they ask of it, in order, and
 * what they print of what it says. Each of its calls is let fail once; then nothing may be left of it. */
#include "server/cli/commands.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/inspect.h"
#include "engine/think.h"
#include "server/cli/command.h"
#include "server/cli/options_parse.h"
#include "server/load_bar.h"
#include "tests/alloc_fail.h"
#include "tests/folder.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "tests/said.h"
#include "tests/server/cli/typed_options.h"

/* ---- the engine ---- */

struct engine {
    engine_options opt;
};

struct gen_request {
    gen_request_info info;
};

static char asked[1 << 16]; /* a line for each call */
static size_t asked_len;
static int n_engines, n_requests, n_left; /* n_left: calls that go well; the next one fails */
static engine_info info;
static gen_request_info next_info;
static err_code failure; /* of the call that fails */
/* Of answers, in turns. */
static gen_timings timings[16];
static int n_timings, timing_at;
static gen_event script[16]; /* of `run`; n_script 0: GEN_DONE with the next timings alone */
static int n_script;
static const char *tokens[16];

static bytes all; /* of all commands */

static void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(asked + asked_len, sizeof asked - asked_len, format, args);
    va_end(args);
    asked_len += n > 0 && asked_len + (size_t)n < sizeof asked ? (size_t)n : 0;
}

/* ---- a terminal and a pipe ---- */

static bool is_terminal, is_silent;

int isatty(int fd)
{
    return fd == STDERR_FILENO && is_terminal;
}

int poll(struct pollfd *fds, nfds_t n, int ms)
{
    CHECK(fds && n == 1);
    CHECK_INT(ms, 2000);
    return is_silent ? 0 : 1;
}

/* The engine's own memory, which is not what fails. */
static void *take(size_t size)
{
    void *p;
    while (!(p = calloc(1, size))) {
    }
    return p;
}

static err_code fails(const char *what, err_detail *d)
{
    return n_left-- == 0 ? err_set(d, failure, "%s fails", what) : ERR_OK;
}

err_code engine_open(engine **out, const engine_options *opt, err_detail *d)
{
    note("open %s n=%d ctx=%d bits=%d,%d\n", opt->model_dir, opt->n_parallel, opt->n_ctx, opt->layer_bits,
         opt->head_bits);
    opt->on_load(opt->on_load_ctx, "weights", 0.5);
    *out = NULL;
    if (fails("open", d)) {
        return failure;
    }
    *out = take(sizeof **out);
    (*out)->opt = *opt;
    n_engines++;
    return ERR_OK;
}

void engine_close(engine *e)
{
    note(e ? "close\n" : "");
    n_engines -= e != NULL;
    free(e);
}

const engine_info *engine_get_info(const engine *e)
{
    return e ? &info : NULL;
}

bool engine_measure_limits(const engine *e, engine_limits *best)
{
    note(e && best->bandwidth_gbs > 0 ? "limits again\n" : "limits\n");
    best->bandwidth_gbs += 1;
    best->f32_gflops = 200;
    best->q8_gops = info.has_thinking ? 0 : 400;
    return fails("limits", NULL) == ERR_OK;
}

void engine_clear_cache(engine *e, const uint64_t *scope)
{
    note(e && !scope ? "clear\n" : "?\n");
}

err_code engine_tokenize(const engine *e, bytes *out, const char *text, size_t len, bool parse_special,
                         err_detail *d)
{
    note("tokenize %zu%s\n", len, parse_special || !e ? "?" : "");
    bytes_append_str(out, text[0] == 'A' ? "1,2,3,4,5,6,7,8,9,10,11,12,13,14" : "");
    return fails("tokenize", d);
}

static void note_params(const gen_params *p)
{
    note(" temp=%g top_k=%d max=%d%s%s", (double)p->temperature, p->top_k, p->max_tokens,
         p->ignore_eos ? " on" : "", p->no_draft ? " alone" : "");
}

static gen_request *make_request(void)
{
    gen_request *r = take(sizeof *r);
    r->info = next_info;
    n_requests++;
    return r;
}

err_code engine_prepare_text(engine *e, gen_request **out, const char *prompt, size_t len, bool parse_special,
                             uint64_t scope, const gen_params *params, err_detail *d)
{
    note("text %zu %.5s%s", len, prompt, parse_special || scope || !e ? "?" : "");
    note_params(params);
    note("\n");
    *out = NULL;
    if (fails("text", d)) {
        return failure;
    }
    *out = make_request();
    return ERR_OK;
}

err_code engine_prepare(engine *e, gen_request **out, const chat_input *in, const prepare_hooks *hooks,
                        err_detail *d)
{
    int32_t n_images = 0;
    note("chat");
    note_params(&in->params);
    bytes kwargs = bytes_empty(1000);
    if (in->template_kwargs) {
        json_write(&kwargs, in->template_kwargs);
    }
    note(" %s\n", bytes_str(&kwargs));
    bytes_deinit(&kwargs);
    for (size_t i = 0; i < in->n_messages; i++) {
        const chat_message *m = &in->messages[i];
        note("  %s%s",
             m->role == CHAT_SYSTEM ? "system"
             : m->role == CHAT_USER ? "user"
                                    : "?",
             m->is_string ? " string" : "");
        for (size_t k = 0; k < m->n_parts; k++) {
            const chat_part *p = &m->parts[k];
            if (p->kind == CHAT_TEXT) {
                note(" \"%.*s\"%s", (int)p->text_len, p->text, strlen(p->text) == p->text_len ? "" : "?");
            } else {
                char same[8] = "";
                const ssize_t n = p->kind == CHAT_VIDEO ? pread(p->fd, same, sizeof same, 0) : 0;
                uint32_t sum = 2166136261u; /* of all bytes */
                for (size_t b = 0; b < p->data_bytes; b++) {
                    sum = (sum ^ p->data[b]) * 16777619u;
                }
                note(" %s %zu %08x %s%.*s", p->kind == CHAT_IMAGE ? "image" : "video", p->data_bytes,
                     (unsigned)sum, p->param, (int)n, same);
                CHECK(p->kind == CHAT_IMAGE || fcntl(p->fd, F_GETFD) == FD_CLOEXEC); /* no program gets it */
                n_images++;
            }
        }
        note("\n");
    }
    if (hooks) {
        hooks->progress(hooks->ctx, GEN_PHASE_MEDIA, 1, 2);
    }
    *out = NULL;
    if (fails("chat", d)) {
        snprintf(d->param, sizeof d->param, "%s", n_images ? "the file" : "");
        return failure;
    }
    *out = make_request();
    (*out)->info.n_prompt_tokens = 20 + 66 * n_images;
    return e ? ERR_OK : ERR_INTERNAL;
}

gen_request_info gen_request_get_info(const gen_request *r)
{
    return r->info;
}

void gen_request_free(gen_request *r)
{
    n_requests -= r != NULL;
    free(r);
}

err_code engine_submit(engine *e, gen_request *r, uint64_t id, err_detail *d)
{
    note("submit %d\n", (int)id);
    if (fails("submit", d)) {
        return failure;
    }
    gen_request_free(r);
    for (int i = 0; i < (n_script ? n_script : 1); i++) {
        gen_event *ev = take(sizeof *ev);
        if (n_script) {
            *ev = script[i];
        } else {
            *ev = (gen_event){.type = GEN_DONE, .timings = timings[timing_at++ % n_timings]};
            if (fails("answer", d)) {
                ev->finish = GEN_FINISH_ERROR;
                ev->error = failure;
                snprintf(ev->message, sizeof ev->message, "answer fails");
            }
        }
        ev->request_id = id;
        e->opt.on_event(e->opt.on_event_ctx, ev);
    }
    return ERR_OK;
}

const char *engine_token_bytes(const engine *e, int32_t id, size_t *len, bool *special)
{
    const char *text = e ? tokens[id] : NULL;
    *special = text && text[0] == '<';
    *len = text ? strlen(text) : 0;
    return text;
}

err_code engine_convert(const char *dir, const char *out_dir, const engine_convert_options *o, err_detail *d)
{
    note("convert %s to %s bits=%d,%d threads=%zu\n", dir, out_dir, o->layer_bits, o->head_bits,
         o->n_threads);
    o->on_load(o->on_load_ctx, "weights", 0.5);
    return fails("convert", d);
}

bool engine_parse_cpu(const char *text, unsigned *mask)
{
    *mask = ~0u;
    return strcmp(text, "neon") != 0;
}

bool engine_parse_quantize(const char *text, int *n_bits)
{
    *n_bits = text[0] == 'q' ? text[1] - '0' : 0;
    return strcmp(text, "nonsense") != 0;
}

err_code inspect_config(const char *text, size_t n, err_detail *d)
{
    return text && n ? ERR_OK : err_set(d, ERR_CORRUPT, "nothing");
}

err_code inspect_gguf_head(const void *data, size_t n, uint64_t n_file, bool is_first, bool *is_whole,
                           err_detail *d)
{
    *is_whole = n_file && is_first;
    return inspect_config(data, n, d);
}

/* ---- running a command ---- */

static size_t allocation; /* of a command, which fails; 0: none */

static options line(const char *words)
{
    options o = typed_options(words);
    o.model = o.model ? o.model : "M";
    return o;
}

static int check(const options *o)
{
    engine_options eo;
    return command_engine_options(&eo, o) ? command_check(&eo) : -1;
}

/* The command where call number n of those that can fail does; n < 0: none. */
static int run(int (*does)(const options *), const char *words, int n)
{
    static int n_runs;
    const long had = alloc_fail_held();
    options o = line(words);
    asked_len = 0;
    asked[0] = '\0';
    timing_at = 0;
    n_left = n;
    said_begin();
    alloc_fail_at(allocation);
    const int code = does(&o);
    alloc_fail_at(0);
    said_end();
    options_deinit(&o);
    CHECK_INT(n_engines, 0);
    CHECK_INT(n_requests, 0);
    CHECK(n_runs++ == 0 || alloc_fail_held() <= had); /* at first libraries take what they keep */
    return code;
}

/* Lines that are the same are one, with their number. */
static void record_lines(const char *text)
{
    for (size_t n; *text; text += n) {
        int times = 1;
        n = strcspn(text, "\n") + 1;
        while (strncmp(text, text + n * (size_t)times, n) == 0) {
            times++;
        }
        bytes_printf(&all, times > 1 ? "%.*s (%d times)\n" : "%.*s\n", (int)n - 1, text, times);
        n *= (size_t)times;
    }
}

static void record(int (*does)(const options *), const char *words, const char *why)
{
    const int code = run(does, words, -1);
    bytes_printf(&all, "==== %s: %s\n", words, why);
    bytes_append_str(&all, said_out);
    bytes_printf(&all, "---- says, and ends with %d:\n", code);
    for (const char *c = said_err; *c; c++) {
        *c == '\r' ? bytes_append_str(&all, "\\r")
        : *c == 27 ? bytes_append_str(&all, "\\e")
                   : bytes_append(&all, c, 1);
    }
    bytes_append_str(&all, said_err[0] && said_err[strlen(said_err) - 1] != '\n' ? "|\n" : "");
    bytes_append_str(&all, "---- asks:\n");
    record_lines(asked);
}

/* Lets one call after the other fail: the message is of the one that failed, and the code of its error. */
static void each_fails(int (*does)(const options *), const char *words, int code, int n_calls)
{
    int n = 0;
    for (;; n++) {
        const int got = run(does, words, n);
        if (n_left >= 0) {
            CHECK_INT(got, 0);
            break;
        }
        const bool is_limits = strstr(said_err, "there is no memory to measure the machine's limits\n");
        CHECK_INT(got, is_limits ? 4 : code);
        CHECK(strncmp(said_err, "parley: ", 8) == 0 && (is_limits || strstr(said_err, " fails\n")));
        CHECK(!said_out[0] || strcmp(said_out, "\n") == 0);
    }
    CHECK_INT(n, n_calls);
}

/* What comes from standard input: a file, or a pipe. */
static void feed(const char *text, size_t n, bool is_pipe)
{
    int fds[2];
    CHECK(pipe(fds) == 0);
    if (!is_pipe) {
        FILE *f = tmpfile();
        CHECK(f && dup2(fileno(f), fds[0]) == fds[0] && dup2(fileno(f), fds[1]) == fds[1] && fclose(f) == 0);
    }
    CHECK(write(fds[1], text, n) == (ssize_t)n);
    close(fds[1]);
    if (!is_pipe) {
        CHECK(lseek(fds[0], 0, SEEK_SET) == 0);
    }
    CHECK(dup2(fds[0], STDIN_FILENO) == STDIN_FILENO);
    close(fds[0]);
}

static void no_input(void)
{
    const int fd = open("/dev/null", O_RDONLY);
    CHECK(dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    close(fd);
}

/* ---- bench ---- */

static void test_bench(void)
{
    for (int i = 0; i < 7; i++) {
        timings[i] = (gen_timings){.prompt_n = 500 + i,
                                   .prompt_ms = 100 + i * 7 % 5,
                                   .predicted_n = 65 + i,
                                   .predicted_ms = 320 + i * 5 % 7,
                                   .draft_n = 10 + i,
                                   .draft_accepted_n = 7 + i,
                                   .vision_ms = 50 + i * 3 % 7};
    }
    n_timings = 7;
    record(command_bench, "parley bench -m DIR --repeat 4 --quantize q4", "a table");
    record(command_bench, "parley bench --repeat 1 --csv -p 29 -n 5", "the least");
    record(command_bench, "parley bench --repeat 2 --json --full", "all rows");
    info.n_ctx = 32768;
    record(command_bench, "parley bench --repeat 1 --json --full", "a large context");
    info.n_ctx = 8192 + 64 + 64;
    record(command_bench, "parley bench --repeat 1 --csv --full", "room for this one");
    info.n_ctx--;
    info.has_vision = false;
    record(command_bench, "parley bench --repeat 1 --csv --full", "and not, without images");
    info.has_vision = true;
    info.has_template = false;
    info.has_thinking = true; /* no 8 bits */
    record(command_bench, "parley bench --repeat 1 --no-mtp --full", "no drafts, no template");
    info.has_template = true;
    info.has_mtp = false;
    record(command_bench, "parley bench --repeat 1", "no draft head");
    info.has_mtp = true;
    info.has_thinking = false;
    info.n_ctx = 4096;
    static const struct {
        err_code err;
        int code;
    } CODES[] = {{ERR_UNSUPPORTED, 3}, {ERR_IO, 1}, {ERR_NOMEM, 4}};
    for (size_t i = 0; i < ARRAY_LEN(CODES); i++) {
        failure = CODES[i].err;
        each_fails(command_bench, "parley bench --repeat 1 --csv", CODES[i].code, 18);
    }
    for (int n = 28; n < 42; n++) { /* those of the image */
        const int code = run(command_bench, "parley bench --repeat 1 --csv --full", n);
        CHECK(code == 4 && n_left < 0 && !said_out[0]);
    }
    info.has_vision = false;
    each_fails(command_bench, "parley bench --repeat 1 --csv --full", 4, 141 - 14);
    info.has_vision = true;
    /* An image for which there is no room is left out. */
    failure = ERR_CONTEXT;
    CHECK_INT(run(command_bench, "parley bench --repeat 1 --csv --full", 29), 0);
    CHECK(n_left < 0 && !strstr(said_out, "\nimage,") && strstr(said_out, "\nanswers,"));
    CHECK_INT(run(command_bench, "parley bench --cpu neon", -1), 2);
    CHECK_HAS(said_err, "parley: bench was not started\n");
    CHECK_STR(asked, "");
    n_timings = 0;
}

/* ---- run ---- */

static char folder[FOLDER_NAME], image[128], empty[128], video[128];

static void make(char path[128], const char *name, const char *text)
{
    snprintf(path, 128, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static gen_event said(int32_t first, int32_t n)
{
    gen_event ev = {.type = GEN_TOKENS, .n_tokens = n};
    for (int32_t i = 0; i < n; i++) {
        ev.tokens[i] = first + i;
    }
    return ev;
}

static gen_event told(gen_phase phase, int32_t processed, int32_t total)
{
    return (gen_event){.type = GEN_PROGRESS, .phase = phase, .processed = processed, .total = total};
}

static gen_event done(gen_finish finish, const gen_timings *t)
{
    gen_event ev = {.type = GEN_DONE, .finish = finish, .error = ERR_NOMEM, .timings = *t};
    snprintf(ev.message, sizeof ev.message, "%s", finish == GEN_FINISH_ERROR ? "it broke" : "");
    return ev;
}

static void use_script(int n, const gen_event *events)
{
    memcpy(script, events, (size_t)n * sizeof *events);
    n_script = n;
}

#define SCRIPT(...)                                                                                          \
    use_script((int)(sizeof((gen_event[]){__VA_ARGS__}) / sizeof(gen_event)), (gen_event[]){__VA_ARGS__})

static void test_answers(void)
{
    const gen_timings t = {.prompt_n = 12, .prompt_ms = 34.5, .predicted_n = 11, .predicted_ms = 250};
    static const char *const TEXTS[] = {"Hel",    "lo ",     "<|end|>",  "th\xc3",   "\xa9.",     NULL, " <",
                                        "think>", "<think>", "Let me. ", "</think>", "\n\nSeven", "."};
    memcpy(tokens, TEXTS, sizeof TEXTS);
    SCRIPT(told(GEN_PHASE_QUEUED, 0, 1), told(GEN_PHASE_PREFILL, 5, 12), told(GEN_PHASE_PREFILL, 12, 12),
           said(0, 3), said(3, 5), done(GEN_FINISH_STOP, &t));
    no_input();
    record(command_run, "parley run -m DIR Hi", "a question");
    record(command_run, "parley run -q Hi", "in silence");
    is_terminal = true;
    record(command_run, "parley run Hi", "on a terminal");
    record(command_run, "parley run -q Hi", "there in silence");
    SCRIPT(told(GEN_PHASE_QUEUED, 0, 0), told(GEN_PHASE_PREFILL, 12, 12), done(GEN_FINISH_STOP, &t));
    record(command_run, "parley run Hi", "there, of how much is not known");
    is_terminal = false;
    SCRIPT(said(8, 5), done(GEN_FINISH_LENGTH, &t));
    record(command_run, "parley run --thinking Hi", "a think block that was not expected");
    next_info.may_think = true;
    next_info.think = &THINK_TAGS;
    record(command_run, "parley run --thinking --system Short Hi", "thoughts");
    record(command_run, "parley run -q --thinking Hi", "thoughts in silence");
    next_info.starts_in_thinking = true;
    SCRIPT(said(9, 1), done(GEN_FINISH_LENGTH, &t));
    record(command_run, "parley run --thinking Hi", "thoughts that are cut");
    SCRIPT(said(9, 1), said(3, 1), done(GEN_FINISH_LENGTH, &t));
    record(command_run, "parley run --thinking Hi", "thoughts that are cut inside a letter");
    record(command_run, "parley run -q --thinking Hi", "the same in silence");
    SCRIPT(said(9, 2), said(6, 1), done(GEN_FINISH_STOP, &t));
    record(command_run, "parley run --thinking Hi", "what may begin a marker");
    next_info.starts_in_thinking = false;
    SCRIPT(said(6, 1), done(GEN_FINISH_LENGTH, &t));
    record(command_run, "parley run --thinking Hi", "what may begin a think block");
    next_info = (gen_request_info){0};
    SCRIPT(said(0, 4), done(GEN_FINISH_LENGTH, &t));
    record(command_run, "parley run Hi", "an answer that is cut inside a letter");
    SCRIPT(said(6, 1), said(0, 1), done(GEN_FINISH_ERROR, &t));
    record(command_run, "parley run Hi", "an error in the middle");
    const gen_timings zero = {0},
                      one = {.route = GEN_ROUTE_MEDIA,
                             .predicted_n = 2,
                             .predicted_ms = 1,
                             .n_images = 1,
                             .media_ms = 1.6,
                             .vision_ms = 2.6},
                      two = {.predicted_n = 3, .predicted_ms = 0.5, .n_images = 2, .n_videos = 1},
                      more = {.n_videos = 2, .media_ms = 7};
    const gen_timings *const ALL[] = {&zero, &one, &two, &more};
    for (size_t i = 0; i < ARRAY_LEN(ALL); i++) {
        SCRIPT(done(GEN_FINISH_STOP, ALL[i]));
        record(command_run, "parley run Hi", "figures");
    }
}

static void test_questions(void)
{
    const gen_timings t = {0};
    char words[1024];
    SCRIPT(done(GEN_FINISH_STOP, &t));
    make(image, "image", "PNG!");
    make(empty, "empty", "");
    make(video, "video", "MPEG");
    CHECK(chdir(folder) == 0);
    record(command_run, "parley run --image image --video video --image empty --system Be What?", "files");
    record(command_run, "parley run --video video What?", "a video");
    record(command_run, "parley run --image nothing What?", "no file");
    record(command_run, "parley run --video video --video nothing What?", "no video");
    record(command_run, "parley run", "no question");
    record(command_run, "parley run --system Be", "a system prompt alone");
    record(command_run, "parley run --cpu neon Hi", "an option");
    static const char RAW[] = "a\0b\xff\xc3\xa9\xe2\x82";
    feed(RAW, sizeof RAW - 1, false);
    record(command_run, "parley run", "a file alone");
    feed("log\n", 4, false);
    record(command_run, "parley run What?", "a file");
    feed("7", 1, true);
    record(command_run, "parley run What?", "a pipe of one byte");
    feed("", 0, true);
    record(command_run, "parley run What?", "a pipe without anything");
    is_silent = true;
    feed("late", 4, true);
    record(command_run, "parley run What?", "a pipe that comes late");
    feed("late", 4, true);
    record(command_run, "parley run -q What?", "the same in silence");
    is_silent = false;
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && write(pair[1], "other", 5) == 5);
    CHECK(dup2(pair[0], STDIN_FILENO) == STDIN_FILENO);
    close(pair[0]);
    close(pair[1]);
    record(command_run, "parley run What?", "a socket, which is left alone");
    snprintf(words, sizeof words, "%s", "parley run Hi --image image");
    no_input();
    failure = ERR_INVALID;
    CHECK_INT(run(command_run, words, 0), 2); /* open */
    CHECK_STR(said_err, "parley: open fails\n");
    CHECK_INT(run(command_run, words, 1), 1); /* prepare: of a file, with its name */
    CHECK_STR(said_err, "parley: the file: chat fails\n");
    CHECK_INT(run(command_run, "parley run Hi", 1), 1);
    CHECK_STR(said_err, "parley: chat fails\n");
    CHECK_INT(run(command_run, words, 2), 1);
    CHECK_STR(said_err, "parley: submit fails\n");
    n_script = 0;
    /* More than it takes: a sparse file. */
    int fd = open("large", O_RDWR | O_CREAT, 0600);
    CHECK(ftruncate(fd, (off_t)LIMIT_BODY_BYTES + 1) == 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    close(fd);
    CHECK_INT(run(command_run, "parley run Hi", -1), 2);
    snprintf(words, sizeof words, "parley: standard input holds more than %zu MiB\n", LIMIT_BODY_BYTES >> 20);
    CHECK_STR(said_err, words);
    CHECK_STR(asked, "");
    no_input();
}

/* ---- the others ---- */

static void test_check_and_convert(void)
{
    failure = ERR_UNSUPPORTED;
    timings[0] = (gen_timings){0};
    n_timings = 1;
    record(check, "parley serve -m DIR --check -np 3", "it starts");
    each_fails(check, "parley serve --check", 3, 4);
    record(command_convert, "parley convert in out --quantize q4 -t 3", "a folder");
    record(command_convert, "parley convert in out --quantize q8 --quantize-head q4", "the head otherwise");
    record(command_convert, "parley convert in", "no target");
    record(command_convert, "parley convert", "nothing");
    record(command_convert, "parley convert in out --models-dir /nowhere", "no model");
    each_fails(command_convert, "parley convert in out --quantize q8", 3, 1);
    is_terminal = true;
    record(check, "parley serve -m DIR --check", "on a terminal");
    record(command_convert, "parley convert in out --quantize q8", "on a terminal");
    is_terminal = false;
    options o = line("parley convert in out --quantize q8");
    o.quantize = "nonsense";
    asked[asked_len = 0] = '\0';
    CHECK_INT(command_convert(&o), 2);
    CHECK_STR(asked, "");
    options_deinit(&o);
}

/* Lets one allocation after the other fail: what the commands say is that memory lacks, or nothing and the same as ever. */
static void test_memory(void)
{
    static const struct {
        int (*does)(const options *);
        const char *words;
        int code, n_least;
    } ROWS[] = {{command_run, "parley run --system Be --image image --video video Hi", 1, 4},
                {command_run, "parley run --image wide Hi", 1, 4},
                {command_bench, "parley bench --repeat 1 --csv", 4, 1},
                {command_bench, "parley bench --repeat 1 --csv --full", 4, 20},
                {check, "parley serve --check", 4, 1}};
    static char whole[SAID_BYTES];
    const gen_timings t = {0};
    char wide[128];
    make(wide, "wide", "");
    CHECK(truncate("wide", 300000) == 0); /* larger than the chat's first piece of memory */
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        int n_failed = 0;
        if (ROWS[i].does == command_run) {
            SCRIPT(done(GEN_FINISH_STOP, &t));
        }
        CHECK_INT(run(ROWS[i].does, ROWS[i].words, -1), 0);
        snprintf(whole, sizeof whole, "%s", said_out);
        for (int same = 0; same < 100 && allocation < 2000; same++) {
            allocation++;
            const int code = run(ROWS[i].does, ROWS[i].words, -1);
            if (code == 0) {
                CHECK_STR(said_out, whole);
                continue;
            }
            same = -1;
            n_failed++;
            CHECK(code == ROWS[i].code || code == 4);
            CHECK_HAS(said_err, "parley: ");
            CHECK_HAS(said_err, "memory");
        }
        CHECK(n_failed >= ROWS[i].n_least);
        allocation = 0;
        n_script = 0;
    }
}

static void test_load_bar(void)
{
    static const struct {
        double took_ms, fraction;
        const char *shown;
    } ROWS[] = {{0, 0, "[................................]   0 %  weights"},
                {0, -1, "[................................]   0 %  weights"},
                {0, 0.5, "[################................]  50 %  weights"},
                {0, 1.5, "[################################] 100 %  weights"},
                {900, 0.5, "[################................]  50 %  weights"},
                {5000, 0.5, "[################................]  50 %  weights, 5 s left"},
                {6000, 0.25, "[########........................]  25 %  weights, 18 s left"},
                {5000, 0.05, "[#...............................]   5 %  weights"},
                {5000, 0.0625, "[##..............................]   6 %  weights, 75 s left"},
                {5000, 1, "[################################] 100 %  weights, 0 s left"}};
    char expected[256];
    for (int is_one = 0; is_one < 2; is_one++) {
        is_terminal = is_one;
        for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
            load_bar bar;
            said_begin();
            load_bar_begin(&bar);
            CHECK(clock_ms() - bar.began_ms < 500);
            bar.began_ms -= ROWS[i].took_ms;
            load_bar_on_load(&bar, "weights", ROWS[i].fraction);
            load_bar_end(&bar);
            load_bar_show(&bar, "more", 0.5); /* nothing, nor with a second end */
            load_bar_end(&bar);
            said_end();
            snprintf(expected, sizeof expected, "\r\033[K%s\r\r\033[K", ROWS[i].shown);
            CHECK_STR(said_err, is_one ? expected : "");
        }
    }
    is_terminal = false;
}

int main(void)
{
    setenv("PARLEY_CONFIG", "none", 1);
    log_set_level(LOG_WARN);
    folder_make(folder);
    all = bytes_empty((size_t)1 << 20);
    info = (engine_info){.model_name = "made-up",
                         .compute = "avx9, 2 threads",
                         .n_ctx = 4096,
                         .n_params = 25300000,
                         .step_bytes = 5e7,
                         .slot_bytes = 1e4,
                         .layer_flops = 4e7,
                         .head_flops = 1e7,
                         .slot_flops = 3e3,
                         .patch_flops = 2e6,
                         .patch_pair_flops = 500,
                         .merge_size = 2,
                         .has_mtp = true,
                         .has_vision = true,
                         .has_template = true};
    test_bench();
    test_answers();
    test_questions();
    test_check_and_convert();
    test_memory();
    test_load_bar();
    CHECK_ALL_CLOSED();
    recorded_check("server/cli/engine_commands.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
