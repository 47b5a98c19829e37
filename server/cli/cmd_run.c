/* run: one answer on the terminal. The answer goes to standard output as it comes, thoughts and
 * figures to standard error, so that `parley run -q ... > file` holds the answer alone. What is piped in
 * belongs to the question.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mailbox.h"
#include "base/utf8.h"
#include "server/cli/command.h"
#include "server/cli/commands.h"
#include "server/protocol/output/reply_parser.h"
#include "server/protocol/output/stop_filter.h"

enum { EVENTS_MAX = 1 << 16, REQUEST_ID = 1, PIPE_SILENT_MS = 2000 };

typedef struct open_video {
    file_map map;
    int fd;
} open_video;

typedef struct run {
    const options *o;
    const bytes *question;                /* that of the command line, and what is piped in */
    open_video videos[OPTIONS_MAX_FILES]; /* until the question is prepared */
    int n_videos;
    engine *e;
    mailbox *events; /* gen_event, engine thread -> main thread */
    reply_parser parser;
    stop_filter content, reasoning;
    const think_form *think;
    bool has_thoughts; /* what was written last is one */
    bool on_terminal;  /* standard error is one: progress may be redrawn */
} run;

static void on_event(void *ctx, gen_event *ev)
{
    run *r = ctx;
    if (!mailbox_push(r->events, ev)) {
        gen_event_free(ev);
    }
}

/* ---- the question ---- */

/* A video is mapped, not read: it may be larger than the memory for requests. */
static err_code add_video(run *r, chat_part *part, const char *path, err_detail *detail)
{
    open_video *video = &r->videos[r->n_videos];
    err_code err = file_map_open(&video->map, path, detail);
    if (err != ERR_OK) {
        return err;
    }
    video->fd = open(path, O_RDONLY | O_CLOEXEC);
    r->n_videos++;
    *part = (chat_part){.kind = CHAT_VIDEO,
                        .data = video->map.data,
                        .data_bytes = video->map.bytes,
                        .fd = video->fd,
                        .param = path};
    return ERR_OK;
}

static void close_videos(run *r)
{
    for (int i = 0; i < r->n_videos; i++) {
        file_map_close(&r->videos[i].map);
        file_close(r->videos[i].fd);
    }
}

static err_code add_image(chat_input *in, chat_part *part, const char *path, err_detail *detail)
{
    bytes file = bytes_empty(LIMIT_BODY_BYTES);
    err_code err = file_read(&file, path, detail);
    uint8_t *copy = err == ERR_OK ? arena_alloc(in->arena, file.len + 1) : NULL;
    if (err == ERR_OK && !copy) {
        err = err_set(detail, ERR_NOMEM, "there is not enough memory for %s", path);
    }
    if (err == ERR_OK && file.len) {
        memcpy(copy, file.data, file.len);
    }
    *part = (chat_part){.kind = CHAT_IMAGE, .data = copy, .data_bytes = file.len, .param = path};
    bytes_deinit(&file);
    return err;
}

/* A log may hold any bytes; a question is text. */
static void append_text(bytes *out, const bytes *raw)
{
    for (size_t i = 0; i < raw->len;) {
        char character[4];
        uint32_t c;
        i += utf8_decode(raw->data + i, raw->len - i, &c);
        bytes_append(out, character, utf8_encode(character, c ? c : 0xfffd));
    }
}

/* `cat log | parley run "What failed?"`: the question, an empty line, what is piped in. Anything else than a
 * pipe or a file (a terminal, a socket of whoever started this) is left alone. */
static err_code read_question(bytes *out, const options *o, err_detail *detail)
{
    struct stat st;
    const char *asked = o->prompt ? o->prompt : "";
    bytes raw = bytes_empty(LIMIT_BODY_BYTES);
    bytes_append_str(out, asked);
    if (fstat(STDIN_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode))) {
        char piece[16384];
        ssize_t n = 0;
        if (poll(&(struct pollfd){.fd = STDIN_FILENO, .events = POLLIN}, 1, PIPE_SILENT_MS) == 0 &&
            !o->quiet) {
            fprintf(stderr, "waiting for the end of standard input (< /dev/null: there is none)\n");
        }
        while (!raw.failed && (n = read(STDIN_FILENO, piece, sizeof piece)) > 0) {
            bytes_append(&raw, piece, (size_t)n);
        }
    }
    if (raw.len && asked[0]) {
        bytes_append_str(out, "\n\n");
    }
    append_text(out, &raw);
    bytes_fail_as(out, &raw);
    bytes_deinit(&raw);
    if (out->no_memory) {
        return err_set(detail, ERR_NOMEM, "not enough memory for the question");
    }
    return out->failed
               ? err_set(detail, ERR_LIMIT, "standard input holds more than %zu MiB", LIMIT_BODY_BYTES >> 20)
               : ERR_OK;
}

static chat_part text_part(const char *text)
{
    return (chat_part){.kind = CHAT_TEXT, .text = text, .text_len = strlen(text)};
}

/* System prompt, images, videos and question as a chat; keep_kwargs receives the template's
 * switches. */
static err_code make_chat(run *r, chat_input *in, err_detail *detail)
{
    const options *o = r->o;
    chat_message *messages = arena_calloc(in->arena, 2, sizeof *messages);
    chat_part *parts = arena_calloc(in->arena, (size_t)o->n_files + 2, sizeof *parts);
    if (!messages || !parts) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for this question");
    }
    const char *kwargs = o->thinking ? "{\"enable_thinking\":true}" : "{\"enable_thinking\":false}";
    err_code err = json_parse(&in->keep, kwargs, strlen(kwargs), LIMIT_JSON_DEPTH, detail);
    if (err != ERR_OK) {
        return err;
    }
    in->template_kwargs = json_root(in->keep);
    in->messages = messages;
    size_t n_parts = 0;
    if (o->system) {
        parts[0] = text_part(o->system);
        messages[in->n_messages++] =
            (chat_message){.role = CHAT_SYSTEM, .parts = parts, .n_parts = 1, .is_string = true};
        parts++;
    }
    for (int i = 0; i < o->n_files; i++) {
        const option_file *f = &o->files[i];
        err = f->is_video ? add_video(r, &parts[n_parts++], f->path, detail)
                          : add_image(in, &parts[n_parts++], f->path, detail);
        if (err != ERR_OK) {
            return err;
        }
    }
    parts[n_parts++] = text_part(bytes_str(r->question));
    messages[in->n_messages++] =
        (chat_message){.role = CHAT_USER, .parts = parts, .n_parts = n_parts, .is_string = n_parts == 1};
    return ERR_OK;
}

/* ---- the answer ---- */

/* Writes what the parser has found so far: thoughts to standard error, a line break behind them. */
static void print_found(run *r, bool last)
{
    bytes out = bytes_empty(LIMIT_BODY_BYTES);
    for (size_t i = 0; i < r->parser.pieces.n; i++) {
        const reply_piece *p = &r->parser.pieces.items[i];
        const bool is_thought = p->kind == REPLY_REASONING;
        if (!is_thought && r->has_thoughts) {
            stop_filter_finish(&r->reasoning, &out);
            bytes_append_char(&out, '\n');
        }
        if (is_thought) {
            stop_filter_push(&r->reasoning, &out, bytes_str(&p->text), p->text.len);
        }
        if (!r->o->quiet) {
            fwrite(bytes_str(&out), 1, out.len, stderr);
        }
        bytes_clear(&out);
        r->has_thoughts = is_thought;
        if (!is_thought) {
            stop_filter_push(&r->content, &out, bytes_str(&p->text), p->text.len);
            fwrite(bytes_str(&out), 1, out.len, stdout);
            bytes_clear(&out);
        }
    }
    if (last && r->has_thoughts) { /* it was cut inside of them */
        stop_filter_finish(&r->reasoning, &out);
        bytes_append_char(&out, '\n');
        fwrite(bytes_str(&out), 1, r->o->quiet ? 0 : out.len, stderr);
        bytes_clear(&out);
    }
    if (last) {
        stop_filter_finish(&r->content, &out);
        fwrite(bytes_str(&out), 1, out.len, stdout);
    }
    fflush(stdout);
    bytes_deinit(&out);
    reply_pieces_clear(&r->parser.pieces);
}

/* Redraws the line of progress: images and frames read, then encoded, then tokens of the prompt. */
static void print_progress(void *ctx, gen_phase phase, int32_t processed, int32_t total)
{
    const run *r = ctx;
    if (r->on_terminal && !r->o->quiet && total > 0) {
        fprintf(stderr, "\r\033[K%s %d/%d", gen_phase_name(phase), processed, total);
        if (phase == GEN_PHASE_PREFILL && processed == total) {
            fprintf(stderr, "\r\033[K");
        }
    }
}

static void print_figures(const run *r, const gen_timings *t)
{
    if (r->o->quiet) {
        return;
    }
    double speed = t->predicted_ms > 0 ? (double)(t->predicted_n - 1) * 1e3 / t->predicted_ms : 0.0;
    fprintf(stderr, "[%s path, %d prompt tokens in %.0f ms", gen_route_name(t->route), t->prompt_n,
            t->prompt_ms);
    if (t->n_images) {
        fprintf(stderr, ", %d image%s", t->n_images, t->n_images > 1 ? "s" : "");
    }
    if (t->n_videos) {
        fprintf(stderr, ", %d video%s", t->n_videos, t->n_videos > 1 ? "s" : "");
    }
    if (t->n_images || t->n_videos) {
        fprintf(stderr, " read in %.0f ms and encoded in %.0f ms", t->media_ms, t->vision_ms);
    }
    fprintf(stderr, ", %d tokens at %.1f a second]\n", t->predicted_n, speed);
}

/* Shows events until the request is done. */
static err_code show_answer(run *r, err_detail *detail)
{
    for (;;) {
        void *message = NULL;
        (void)mailbox_pop(r->events, &message); /* nobody closes it: there will be one */
        gen_event *ev = message;
        if (ev->type == GEN_PROGRESS) {
            print_progress(r, ev->phase, ev->processed, ev->total);
        }
        for (int32_t i = 0; ev->type == GEN_TOKENS && i < ev->n_tokens; i++) {
            size_t len = 0;
            bool special = false;
            const char *data = engine_token_bytes(r->e, ev->tokens[i], &len, &special);
            if (data && (!special || think_form_reads(r->think, data, len))) {
                reply_parser_push(&r->parser, data, len);
            }
            print_found(r, false);
        }
        if (ev->type == GEN_DONE) {
            reply_parser_finish(&r->parser, ev->finish != GEN_FINISH_STOP);
            print_found(r, true);
            printf("\n");
            fflush(stdout);
            err_code err = ERR_OK;
            if (ev->finish == GEN_FINISH_ERROR) {
                err = err_set(detail, ev->error, "%s", ev->message);
            } else {
                print_figures(r, &ev->timings);
            }
            gen_event_free(ev);
            return err;
        }
        gen_event_free(ev);
    }
}

static err_code ask(run *r, err_detail *detail)
{
    chat_input *in = chat_input_create(LIMIT_BODY_BYTES * OPTIONS_MAX_FILES);
    if (!in) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for this question");
    }
    gen_request *request = NULL;
    err_code err = make_chat(r, in, detail);
    if (err == ERR_OK) {
        err = engine_prepare(r->e, &request, in, &(prepare_hooks){.progress = print_progress, .ctx = r},
                             detail);
        if (err != ERR_OK && detail->param[0] && r->o->n_files) {
            err = err_prefix(detail, err, "%s", detail->param);
        }
    }
    chat_input_destroy(in);
    close_videos(r);
    if (err != ERR_OK) {
        return err;
    }
    gen_request_info info = gen_request_get_info(request);
    reply_parser_init(&r->parser, &(reply_rules){.starts_in_thinking = info.starts_in_thinking,
                                                 .may_think = info.may_think,
                                                 .think = info.think});
    r->think = info.think;
    stop_filter_init(&r->content, NULL, 0);
    stop_filter_init(&r->reasoning, NULL, 0);
    err = engine_submit(r->e, request, REQUEST_ID, detail);
    if (err == ERR_OK) {
        err = show_answer(r, detail);
    } else {
        gen_request_free(request);
    }
    stop_filter_deinit(&r->content);
    stop_filter_deinit(&r->reasoning);
    reply_parser_deinit(&r->parser);
    return err;
}

/* With the question in r; the exit code. */
static int answer(run *r)
{
    engine_options eo;
    err_detail detail = {0};
    if (!command_engine_options(&eo, r->o)) {
        return OPTIONS_EXIT_USAGE;
    }
    r->events = mailbox_create(EVENTS_MAX);
    if (!r->events) {
        return command_fail(err_set(&detail, ERR_NOMEM, "there is not enough memory to start"), &detail);
    }
    eo.on_event = on_event;
    eo.on_event_ctx = r;
    err_code err = command_open_engine(&r->e, &eo, r->o->quiet, &detail);
    int code = err == ERR_OK ? 0 : command_fail(err, &detail);
    if (err == ERR_OK && ask(r, &detail) != ERR_OK) {
        fprintf(stderr, "parley: %s\n", detail.text);
        code = 1;
    }
    engine_close(r->e);
    mailbox_destroy(r->events, command_drop_event);
    return code;
}

int command_run(const options *o)
{
    bytes question = bytes_empty(LIMIT_BODY_BYTES);
    run r = {.o = o, .question = &question, .on_terminal = isatty(STDERR_FILENO)};
    err_detail detail = {0};
    int code = OPTIONS_EXIT_USAGE;
    err_code err = read_question(&question, o, &detail);
    if (err == ERR_NOMEM) {
        code = command_fail(err, &detail);
    } else if (err != ERR_OK) {
        fprintf(stderr, "parley: %s\n", detail.text);
    } else if (!question.len) {
        fprintf(stderr,
                "parley: what is the question? parley run [--image FILE] [--video FILE] \"QUESTION\"\n");
    } else {
        code = answer(&r);
    }
    bytes_deinit(&question);
    return code;
}
