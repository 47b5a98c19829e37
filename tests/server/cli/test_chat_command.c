/* parley chat with a terminal, a server and a process that are made up: what is typed, what is asked of the server, what is
 * shown. */
#include "server/cli/commands.h"

#include <stdarg.h>
#include <sys/types.h>

#include "base/log.h"
#include "server/chat/chat_client.h"
#include "server/chat/chat_line.h"
#include "server/chat/chat_talk.h"
#include "server/cli/options_parse.h"
#include "server/cli/own_server.h"
#include "server/media/fetch.h"
#include "tests/alloc_fail.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "tests/said.h"
#include "tests/server/cli/typed_options.h"

ONE_FAILS(bool, fetch_start, (void), (), false)
ONE_FAILS(bool, chat_talk_set_system, (chat_talk * t, const char *text), (t, text), false)

static char all_room[1 << 20], asked_room[1 << 16]; /* memory that does not fail */
static bytes all = {.data = all_room, .cap = sizeof all_room - 1, .max = sizeof all_room - 1};
/* What the others were told. */
static bytes asked = {.data = asked_room, .cap = sizeof asked_room - 1, .max = sizeof asked_room - 1};

/* ---- the terminal ---- */

struct chat_line {
    int unused;
};

static chat_line the_line;

static const char *typed[32]; /* "^C": stopped, "^V" in front: pasted; NULL ends */
static int at_line, n_open, interrupts_left;
static bool is_typed, line_fails;

err_code chat_line_open(chat_line **out, const char *history, err_detail *d)
{
    bytes_printf(&asked, "terminal, history %s\n", history ? history : "-");
    if (line_fails) {
        return err_set(d, ERR_INVALID, "no terminal");
    }
    *out = &the_line;
    n_open++;
    return ERR_OK;
}

void chat_line_close(chat_line *l)
{
    n_open -= l != NULL;
}

bool chat_line_is_typed(const chat_line *l)
{
    return l && is_typed;
}

chat_line_end chat_line_read(chat_line *l, const char *prompt, bytes *out)
{
    const char *text = typed[at_line++];
    CHECK(l);
    CHECK_STR(prompt, "> ");
    bytes_clear(out);
    if (!text) {
        return CHAT_LINE_END;
    }
    if (strcmp(text, "^C") == 0) {
        return CHAT_LINE_STOPPED;
    }
    const bool is_pasted = strncmp(text, "^V", 2) == 0;
    bytes_append_str(out, text + (is_pasted ? 2 : 0));
    const char *shown = strchr(text, '\xff') ? "(no text)" : text;
    bytes_printf(&asked, "> %s\n", shown);
    printf("> %s\n", shown);
    out->no_memory = out->no_memory || strcmp(text, "no memory") == 0;
    out->failed = out->failed || out->no_memory || strcmp(text, "too long") == 0;
    return is_pasted ? CHAT_LINE_PASTED : CHAT_LINE_TEXT;
}

bool chat_line_take_interrupt(chat_line *l)
{
    CHECK(l);
    return interrupts_left-- == 0;
}

/* ---- the server ---- */

struct chat_client {
    int unused;
};

static chat_client the_client;

static bool client_fails, model_fails;
static err_code answer_error;
static chat_result answer_result;

err_code chat_server_parse(chat_server *out, const char *text, err_detail *d)
{
    bytes_printf(&asked, "server %s\n", text);
    *out = (chat_server){0};
    return strcmp(text, "bad") == 0 ? err_set(d, ERR_INVALID, "no address") : ERR_OK;
}

chat_client *chat_client_create(const chat_server *s, const char *key)
{
    bytes_printf(&asked, "client, key %s\n", key ? key : "-");
    if (client_fails || !s) {
        return NULL;
    }
    n_open++;
    return &the_client;
}

void chat_client_destroy(chat_client *c)
{
    n_open -= c != NULL;
}

err_code chat_client_model(chat_client *c, bytes *out, err_detail *d)
{
    bytes_append_str(&asked, "which model\n");
    bytes_append_str(out, "first");
    return out->failed         ? err_set(d, ERR_NOMEM, "no memory for its name")
           : model_fails || !c ? err_set(d, ERR_NOT_FOUND, "no models")
                               : ERR_OK;
}

err_code chat_client_ask(chat_client *c, const char *body, size_t n, const chat_hooks *hooks,
                         chat_result *out, err_detail *d)
{
    bytes_printf(&asked, "asks %.*s\n", (int)n, body);
    *out = answer_result;
    hooks->on_wait(hooks->ctx, 3);
    if (hooks->is_stopped(hooks->ctx)) {
        out->is_stopped = true;
        hooks->on_text(hooks->ctx, false, "Begun", 5);
        return c ? ERR_OK : ERR_INTERNAL;
    }
    if (answer_error != ERR_UPSTREAM) { /* which says nothing at all */
        hooks->on_text(hooks->ctx, true, "Hm.", 3);
        hooks->on_text(hooks->ctx, false, "Yes", 3);
        hooks->on_text(hooks->ctx, false, ".", 1);
    }
    return answer_error ? err_set(d, answer_error, "it broke off") : ERR_OK;
}

/* ---- its own server ---- */

static int n_looks, ends_with; /* ready with look n_looks; ends_with < 0: it does */
static bool start_fails, own_is_odd;
static size_t fails_at; /* the allocation of a chat that fails; 0: none */

err_code own_server_start(own_server *s, const options *o, err_detail *d)
{
    bytes_printf(&asked, "starts %s\n", o->model ? o->model : "-");
    *s = (own_server){.pid = 7};
    snprintf(s->host, sizeof s->host, own_is_odd ? "bad" : "unix:/own");
    n_open++;
    return start_fails ? err_set(d, ERR_IO, "no process") : ERR_OK;
}

own_server_state own_server_look(own_server *s, int *code)
{
    CHECK_INT(s->pid, 7);
    if (n_looks-- > 0) {
        return OWN_SERVER_LOADS;
    }
    *code = ends_with;
    return ends_with >= 0 ? OWN_SERVER_ENDED : (*code = 0, OWN_SERVER_READY);
}

void own_server_stop(own_server *s)
{
    n_open -= s->pid == 7;
}

int usleep(useconds_t us)
{
    CHECK_INT(us, 50000);
    return 0;
}

/* ---- running it ---- */

static void chat(const char *words, ...) __attribute__((sentinel));

static void chat(const char *words, ...)
{
    static char text[4096];
    int n = 0;
    va_list args;
    va_start(args, words);
    while ((typed[n] = va_arg(args, const char *))) {
        n++;
    }
    va_end(args);
    at_line = 0;
    snprintf(text, sizeof text, "parley chat%s%s", words[0] ? " " : "", words);
    bytes_printf(&all, "==== %s\n", text);
    options o = typed_options(text);
    said_begin();
    alloc_fail_at(fails_at);
    const int code = command_chat(&o);
    alloc_fail_at(0);
    said_end();
    options_deinit(&o);
    CHECK_INT(n_open, 0);
    bytes_printf(&all, "%s---- errors, and %d:\n%s---- asked:\n%s", said_out, code, said_err,
                 bytes_str(&asked));
    bytes_clear(&asked);
    interrupts_left = -1;
}

static void test_answers(void)
{
    answer_result =
        (chat_result){.n_prompt = 30, .n_cached = 20, .n_tokens = 11, .first_ms = 100, .all_ms = 600};
    chat("--connect http://h --connect-key k -m M --system Be --input-history file", "Hi", "", " \t\n",
         "More?", NULL);
    chat("--connect http://h -q", "Hi", NULL);
    chat("-m DIR", "Hi", NULL);
    is_typed = true;
    chat("--connect http://h", "Hi", "^C", "^V/help", "//help", "too long", "a\xff", NULL);
    chat("--connect http://h", "", "no memory", "Hi", NULL);
    chat("--connect http://h --model=", "Hi", NULL);
    answer_result.is_cut = true;
    answer_result.n_cached = -1;
    chat("--connect http://h --thinking --temp 0.5 --top-p 0.25 --min-p 0.125 --repeat-penalty 1.5 "
         "--presence-penalty 1 "
         "--frequency-penalty 2 --top-k 3 --seed 4 -n 5",
         "Hi", NULL);
    answer_result.is_cut = false;
    answer_result.all_ms = 100;
    chat("--connect http://h --no-thinking --top-k 0", "Hi", NULL);
    answer_result.n_tokens = 1;
    chat("--connect http://h", "Hi", NULL);
    answer_result.n_tokens = 0;
    chat("-m DIR --temp 0.5 -n 5", "Hi", NULL);
    interrupts_left = 0;
    chat("--connect http://h", "Hi", "Again?", NULL);
    /* What broke off counts as far as it came; nothing as nothing. */
    answer_error = ERR_IO;
    chat("--connect http://h", "Hi", NULL);
    is_typed = false;
    chat("--connect http://h", "Hi", NULL);
    answer_error = ERR_UPSTREAM;
    chat("--connect http://h", "Hi", "You?", NULL);
    answer_error = ERR_OK;
}

static void test_commands(void)
{
    FILE *f = fopen("an image.png", "w");
    CHECK(f && fputs("\x89PNG\r\n\x1a\n", f) >= 0 && fclose(f) == 0);
    f = fopen("clip.mp4", "w");
    CHECK(f && fputs("clip", f) >= 0 && fclose(f) == 0);
    setenv("HOME", ".", 1);
    is_typed = true;
    chat("--connect http://h", "/help", "/nothing",
         "/a-name-that-is-longer-than-forty-characters-are-at-most x", "/", "/imag", "/images", NULL);
    chat("--connect http://h", "/image", "/image none.png", "/image an\\ image.png",
         "/image \"an image.png\"", "/image 'an image.png' ", "/image ~/an\\ image.png", "/image \"",
         "/image \"an image.png'", "/image none\\", "/image ~none", "/video clip.mp4", "/video", "What?",
         "And?", NULL);
    unsetenv("HOME");
    chat("--connect http://h", "/image ~/an\\ image.png", NULL);
    setenv("HOME", ".", 1);
    chat("--connect http://h", "/system", "/system Be  brief. \n", "/system", "Hi", "/system none", "/system",
         "Hi", NULL);
    chat("--connect http://h", "/thinking", "/thinking on", "Hi", "/thinking off", "Hi", "/thinking of",
         "/thinking", NULL);
    chat("--connect http://h", "/regen", "Hi", "/regen", "/new", "/regen", "Ho", "/save", "/save out.json",
         "/save out.json", "/save no/where", "/quit", "not read", NULL);
}

static void test_start(void)
{
    is_typed = false;
    n_looks = 3;
    ends_with = -1;
    chat("-m DIR", NULL);
    ends_with = 3;
    n_looks = 1;
    chat("-m DIR", "Hi", NULL);
    ends_with = 0;
    chat("-m DIR", "Hi", NULL);
    ends_with = -1;
    n_looks = 9;
    interrupts_left = 2;
    chat("-m DIR", "Hi", NULL);
    n_looks = 0;
    start_fails = true;
    chat("-m DIR", "Hi", NULL);
    start_fails = false;
    line_fails = true;
    chat("-m DIR", "Hi", NULL);
    chat("--connect http://h", "Hi", NULL);
    line_fails = false;
    own_is_odd = true;
    chat("-m DIR", "Hi", NULL);
    own_is_odd = false;
    one_fails("fetch_start", 1);
    chat("--connect http://h", "Hi", NULL);
    CHECK(one_fails_over());
    for (int i = 1; i <= 2; i++) {
        one_fails("chat_talk_set_system", i);
        chat("--connect http://h --system Be", "/system Or", "Hi", NULL);
        CHECK(one_fails_over());
    }
    /* The code of the end is that of the last question. */
    chat("--connect http://h", "Hi", "too long", NULL);
    chat("--connect http://h", "Hi", "no memory", NULL);
    chat("--connect http://h", "Hi", "\xff", NULL);
    chat("--connect http://h", "\xff", "Hi", NULL);
    client_fails = true;
    chat("--connect http://h", "Hi", NULL);
    client_fails = false;
    model_fails = true;
    chat("--connect http://h", "Hi", NULL);
    chat("--connect http://h -m M", "Hi", NULL);
    model_fails = false;
    chat("--connect bad", "Hi", NULL);
    /* Options of a server of its own. */
    chat("--connect http://h -t 2", "Hi", NULL);
    chat("--connect http://h --ctx-size 1000", "Hi", NULL);
    chat("--connect http://h --max-images 1", "Hi", NULL);
    chat("--connect http://h --reasoning-budget 5", "Hi", NULL);
    chat("-m DIR -t 2", "Hi", NULL);
}

/* The same chat while one allocation after the other fails. */
static void test_short_memory(void)
{
    bytes kept = all;
    is_typed = false;
    for (fails_at = 1; fails_at < 40; fails_at++) {
        char what[1 << 12];
        all.len = kept.len;
        chat("--connect http://h -m M --system Be", "Hi", "/system Or", "More?", NULL);
        const char *said = strstr(all.data + kept.len, "\n") + 1;
        snprintf(what, sizeof what, "%s", said);
        all.len = kept.len;
        one_fails_say(&all, "allocation", (int)fails_at, what);
        kept = all;
    }
    fails_at = 0;
    one_fails_say(&all, NULL, 0, NULL);
}

int main(void)
{
    char folder[FOLDER_NAME];
    folder_make(folder);
    CHECK(chdir(folder) == 0);
    setenv("PARLEY_CONFIG", "none", 1);
    log_set_level(LOG_ERROR);
    interrupts_left = ends_with = -1;
    test_answers();
    test_commands();
    test_start();
    test_short_memory();
    CHECK_ALL_CLOSED();
    recorded_check("server/cli/chat_command.txt", bytes_str(&all));
    CHECK(!all.failed && !asked.failed);
    CHECK_DONE();
}
