/* chat: a conversation on the terminal, with a server: one that --connect names, or one of its own. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "server/chat/chat_client.h"
#include "server/chat/chat_line.h"
#include "server/chat/chat_screen.h"
#include "server/chat/chat_talk.h"
#include "server/cli/command.h"
#include "server/cli/commands.h"
#include "server/cli/options_table.h"
#include "server/cli/own_server.h"
#include "server/media/fetch.h"

enum { LOOK_US = 50000 };

static const char PROMPT[] = "> ";

typedef enum thinking { THINKING_AS_MODEL, THINKING_ON, THINKING_OFF } thinking;

typedef struct chat {
    const options *o;
    own_server own;
    chat_client *client;
    chat_line *line;
    chat_talk *talk;
    chat_screen screen;
    bytes model;  /* "": the only one */
    bytes answer; /* the content of the one that comes */
    thinking thinks;
    bool failed; /* the last question has no whole answer */
} chat;

static option_source source_of(const options *o, const char *name)
{
    size_t n;
    const option_row *rows = option_rows(&n), *r = option_find(name, strlen(name), IN_CHAT);
    return (option_source)o->sources[r - rows];
}

/* ---- an answer ---- */

static void on_text(void *ctx, bool is_thought, const char *text, size_t n)
{
    chat *c = ctx;
    if (!is_thought) {
        bytes_append(&c->answer, text, n);
    }
    chat_screen_text(&c->screen, is_thought, text, n);
}

static void on_wait(void *ctx, double seconds)
{
    chat_screen_wait(&((chat *)ctx)->screen, seconds);
}

static bool is_stopped(void *ctx)
{
    return chat_line_take_interrupt(((chat *)ctx)->line);
}

/* What was asked for on the command line or in the environment; a server of our own has it already. */
static void write_sampling(const chat *c, bytes *out)
{
    const options *o = c->o;
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"temperature", o->temperature},
                   {"top_p", o->top_p},
                   {"min_p", o->min_p},
                   {"repetition_penalty", o->repeat_penalty},
                   {"presence_penalty", o->presence_penalty},
                   {"frequency_penalty", o->frequency_penalty},
                   {"top_k", o->top_k >= 0 ? (double)o->top_k : NAN},
                   {"seed", o->has_seed ? (double)o->seed : NAN},
                   {"max_tokens", source_of(o, "n-predict") != SOURCE_STANDARD ? (double)o->n_predict : NAN}};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (!isnan(numbers[i].value)) {
            bytes_printf(out, ",\"%s\":%.15g", numbers[i].name, numbers[i].value);
        }
    }
}

static void write_request(const chat *c, bytes *out)
{
    bytes_append_str(out, "{\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    if (c->model.len) {
        bytes_json(out, ",\"model\":%.*s", BYTES_ARG(&c->model));
    }
    if (c->thinks != THINKING_AS_MODEL) {
        bytes_json(out, ",\"chat_template_kwargs\":{\"enable_thinking\":%hhd}", c->thinks == THINKING_ON);
    }
    if (c->o->connect) {
        write_sampling(c, out);
    }
    bytes_append_str(out, ",\"messages\":");
    chat_talk_write(c->talk, out);
    bytes_append_char(out, '}');
}

static void print_figures(const chat *c, const chat_result *r)
{
    const double took_ms = r->all_ms - r->first_ms;
    if (r->is_stopped) {
        chat_screen_note(&c->screen, "[stopped]");
    } else if (r->n_tokens > 0) {
        chat_screen_note(&c->screen, "[%d tokens of prompt, %d of them cached; %d tokens at %.1f a second%s]",
                         r->n_prompt, r->n_cached > 0 ? r->n_cached : 0, r->n_tokens,
                         took_ms > 0.0 ? (r->n_tokens - 1) * 1e3 / took_ms : 0.0,
                         r->is_cut ? "; cut off at the limit of tokens, see --n-predict" : "");
    }
}

/* Asks the open question. */
static void ask(chat *c)
{
    static const chat_hooks HOOKS = {.on_text = on_text, .on_wait = on_wait, .is_stopped = is_stopped};
    chat_hooks hooks = HOOKS;
    chat_result result;
    err_detail detail = {0};
    bytes body = bytes_empty(SIZE_MAX);
    hooks.ctx = c;
    bytes_clear(&c->answer);
    write_request(c, &body);
    err_code err = body.failed
                       ? err_set(&detail, ERR_NOMEM, "there is not enough memory for this question")
                       : chat_client_ask(c->client, bytes_str(&body), body.len, &hooks, &result, &detail);
    bytes_deinit(&body);
    chat_screen_end(&c->screen);
    if (!err && c->answer.failed) {
        err = err_set(&detail, ERR_NOMEM, "there is not enough memory for this answer");
    }
    /* Of an answer that was stopped or broke off the beginning counts: the next question may be about it. */
    if (c->answer.len && !c->answer.failed &&
        !chat_talk_answer(c->talk, bytes_str(&c->answer), c->answer.len)) {
        err = err_set(&detail, ERR_NOMEM, "there is not enough memory for this answer");
    }
    c->failed = err != ERR_OK;
    if (err) {
        fprintf(stderr, "parley: %s\n", detail.text);
    } else {
        print_figures(c, &result);
    }
}

/* ---- commands ---- */

/* A path as it is typed or dropped into a terminal: perhaps in quotes, with backslashes before spaces,
 * with ~/ in front. In place. */
static char *tidy_path(char *text, char *out, size_t cap)
{
    const size_t n = strlen(text);
    const char quote = text[0];
    const char *home = getenv("HOME");
    if (n >= 2 && (quote == '"' || quote == '\'') && text[n - 1] == quote) {
        text[n - 1] = '\0';
        text++;
    } else {
        char *to = text;
        for (const char *from = text; *from; from++) {
            from += from[0] == '\\' && from[1];
            *to++ = *from;
        }
        *to = '\0';
    }
    const bool is_home = home && text[0] == '~' && text[1] == '/';
    snprintf(out, cap, "%s%s", is_home ? home : "", text + is_home);
    return out;
}

static void attach(chat *c, char *text, const char *kind)
{
    char path[4096];
    err_detail detail = {0};
    if (!text[0]) {
        fprintf(stderr, "parley: /%s takes the path of a file\n", kind);
    } else if (chat_talk_attach(c->talk, tidy_path(text, path, sizeof path), kind, &detail) != ERR_OK) {
        fprintf(stderr, "parley: %s\n", detail.text);
    } else {
        chat_screen_note(&c->screen, "[%s goes with the next question; %zu in all]", path,
                         chat_talk_attached(c->talk));
    }
}

static void do_image(chat *c, char *text)
{
    attach(c, text, "image");
}

static void do_video(chat *c, char *text)
{
    attach(c, text, "video");
}

static void do_system(chat *c, char *text)
{
    if (!text[0]) {
        const char *now = chat_talk_system(c->talk);
        chat_screen_note(&c->screen, now[0] ? "[system prompt: %s]" : "[there is no system prompt]%s", now);
    } else if (!chat_talk_set_system(c->talk, strcmp(text, "none") == 0 ? "" : text)) {
        fprintf(stderr, "parley: there is not enough memory\n");
    } else {
        chat_screen_note(&c->screen, "[system prompt set from the next question on]");
    }
}

static void do_thinking(chat *c, char *text)
{
    if (strcmp(text, "on") == 0 || strcmp(text, "off") == 0) {
        c->thinks = text[1] == 'n' ? THINKING_ON : THINKING_OFF;
    } else if (text[0]) {
        fprintf(stderr, "parley: /thinking takes on or off\n");
        return;
    }
    chat_screen_note(&c->screen, "[thinking: %s]",
                     c->thinks == THINKING_ON    ? "on"
                     : c->thinks == THINKING_OFF ? "off"
                                                 : "as the model has it");
}

static void do_save(chat *c, char *text)
{
    char path[4096];
    err_detail detail = {0};
    if (!text[0]) {
        fprintf(stderr, "parley: /save takes the path of a new file\n");
    } else if (chat_talk_save(c->talk, tidy_path(text, path, sizeof path), &detail) != ERR_OK) {
        fprintf(stderr, "parley: %s\n", detail.text);
    } else {
        chat_screen_note(&c->screen, "[saved as %s]", path);
    }
}

static void do_again(chat *c, char *text)
{
    (void)text;
    if (chat_talk_again(c->talk)) {
        ask(c);
    } else {
        fprintf(stderr, "parley: there is no question to answer again\n");
    }
}

static void do_new(chat *c, char *text)
{
    (void)text;
    chat_talk_clear(c->talk);
    chat_screen_note(&c->screen, "[a new conversation]");
}

static void do_help(chat *c, char *text);

static const struct {
    const char *name, *usage, *help;
    void (*act)(chat *c, char *text); /* NULL: leaves */
} COMMANDS[] = {
    {"image", "/image FILE", "an image for the next question", do_image},
    {"video", "/video FILE", "a video for the next question", do_video},
    {"system", "/system TEXT", "the system prompt; none: without, nothing: which", do_system},
    {"thinking", "/thinking on|off", "whether the model thinks first", do_thinking},
    {"regen", "/regen", "answer the last question again", do_again},
    {"new", "/new", "forget what was said", do_new},
    {"save", "/save FILE", "the conversation as Markdown, or as messages if FILE ends in .json", do_save},
    {"help", "/help", "this list", do_help},
    {"quit", "/quit", "leave, as Ctrl-D", NULL},
};

static void do_help(chat *c, char *text)
{
    (void)text;
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++) {
        printf("%-17s %s\n", COMMANDS[i].usage, COMMANDS[i].help);
    }
    printf("Alt-Enter, or a backslash at the end of a line, begins another line of the same question.\n"
           "Ctrl-C stops an answer. What begins with // is a question that begins with /.\n");
    (void)c;
}

/* Whether the chat goes on. */
static bool run_command(chat *c, char *text)
{
    const size_t n = strcspn(text, " \t\n");
    char *rest = text + n + strspn(text + n, " \t\n");
    for (size_t end = strlen(rest); end > 0 && isspace((unsigned char)rest[end - 1]);) {
        rest[--end] = '\0';
    }
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++) {
        if (strlen(COMMANDS[i].name) == n && memcmp(COMMANDS[i].name, text, n) == 0) {
            if (COMMANDS[i].act) {
                COMMANDS[i].act(c, rest);
            }
            return COMMANDS[i].act != NULL;
        }
    }
    fprintf(stderr, "parley: there is no command /%.*s; /help lists them, and // asks what begins with /\n",
            (int)(n > 40 ? 40 : n), text);
    return true;
}

/* ---- the loop ---- */

static void refuse_text(chat *c, const char *why)
{
    c->failed = true;
    fprintf(stderr, "parley: %s\n", why);
}

/* Whether the chat goes on. */
static bool take_text(chat *c, bytes *text, bool is_pasted)
{
    if (text->failed && text->no_memory) {
        refuse_text(c, "not enough memory for this text");
        return true;
    }
    if (text->failed) {
        char why[64];
        snprintf(why, sizeof why, "that is more than %zu MiB", LIMIT_BODY_BYTES >> 20);
        refuse_text(c, why);
        return true;
    }
    if (!utf8_valid(bytes_str(text), text->len)) {
        refuse_text(c, "that is no UTF-8 text");
        return true;
    }
    char *start = text->data;
    if (!start || !start[strspn(start, " \t\n")]) {
        return true;
    }
    const bool has_slash = !is_pasted && start[0] == '/';
    if (has_slash && start[1] != '/') {
        return run_command(c, start + 1);
    }
    if (!chat_talk_ask(c->talk, start + has_slash)) {
        refuse_text(c, "there is not enough memory for this question");
        return true;
    }
    ask(c);
    return true;
}

static void talk(chat *c)
{
    bytes text = bytes_empty(LIMIT_BODY_BYTES);
    if (chat_line_is_typed(c->line)) {
        chat_screen_note(&c->screen, "%.*s. /help lists the commands, Ctrl-D leaves.", BYTES_ARG(&c->model));
    }
    for (bool goes_on = true; goes_on;) {
        const chat_line_end end = chat_line_read(c->line, PROMPT, &text);
        goes_on = end == CHAT_LINE_STOPPED ||
                  (end != CHAT_LINE_END && take_text(c, &text, end == CHAT_LINE_PASTED));
    }
    bytes_deinit(&text);
}

/* Starts a server and waits until it is ready; 0, or the exit code. */
static int start_server(chat *c, chat_server *at)
{
    int code = 0;
    err_detail detail = {0};
    err_code err = own_server_start(&c->own, c->o, &detail);
    if (err || (err = chat_server_parse(at, c->own.host, &detail))) {
        return command_fail(err, &detail);
    }
    for (;;) {
        const own_server_state state = own_server_look(&c->own, &code);
        if (state == OWN_SERVER_READY) {
            return 0;
        }
        if (state == OWN_SERVER_ENDED || chat_line_take_interrupt(c->line)) {
            return code ? code : 1;
        }
        usleep(LOOK_US);
    }
}

/* Options that are the other server's own. */
static bool check_options(const options *o)
{
    size_t n;
    const option_row *rows = option_rows(&n);
    for (size_t i = 0; i < n && o->connect; i++) {
        const bool is_engines = rows[i].group == GROUP_MODEL || rows[i].group == GROUP_SPEED ||
                                rows[i].group == GROUP_MEDIA ||
                                rows[i].at == offsetof(options, reasoning_budget);
        if (o->sources[i] == SOURCE_LINE && is_engines && rows[i].at != offsetof(options, model)) {
            fprintf(stderr, "parley: --%s is for a server of this chat's own, and --connect names another\n",
                    rows[i].name);
            return false;
        }
    }
    return true;
}

/* The model that is asked: as -m says, or what the server has. */
static err_code find_model(chat *c, err_detail *detail)
{
    if (c->o->connect && c->o->model) {
        bytes_append_str(&c->model, c->o->model);
        return c->model.failed ? err_set(detail, ERR_NOMEM, "there is not enough memory to start") : ERR_OK;
    }
    return chat_client_model(c->client, &c->model, detail);
}

int command_chat(const options *o)
{
    chat c = {.o = o, .model = bytes_empty(4096), .answer = bytes_empty(LIMIT_UPSTREAM_REPLY_BYTES)};
    chat_server at;
    err_detail detail = {0};
    int code = 0;
    if (!check_options(o)) {
        return OPTIONS_EXIT_USAGE;
    }
    if (source_of(o, "thinking") != SOURCE_STANDARD) {
        c.thinks = o->thinking ? THINKING_ON : THINKING_OFF;
    }
    chat_screen_begin(&c.screen, o->quiet);
    err_code err = o->connect ? chat_server_parse(&at, o->connect, &detail) : ERR_OK;
    err = err ? err : chat_line_open(&c.line, o->input_history, &detail);
    if (!err && !o->connect) {
        code = start_server(&c, &at);
        if (code) {
            goto out;
        }
    }
    c.talk = chat_talk_create();
    if (!err && !(fetch_start() && c.talk && (c.client = chat_client_create(&at, o->connect_key)) &&
                  (!o->system || chat_talk_set_system(c.talk, o->system)))) {
        err = err_set(&detail, ERR_NOMEM, "there is not enough memory to start");
    }
    err = err ? err : find_model(&c, &detail);
    if (err) {
        code = command_fail(err, &detail);
        goto out;
    }
    talk(&c);
    code = c.failed && !chat_line_is_typed(c.line) ? 1 : 0;
out:
    chat_client_destroy(c.client);
    chat_talk_destroy(c.talk);
    chat_line_close(c.line);
    own_server_stop(&c.own);
    bytes_deinit(&c.model);
    bytes_deinit(&c.answer);
    return code;
}
