/* Commands that look for a model (-m, pull, list) or ask a server of this machine (health, status, stop), with a hub, a cache, a
 * server and processes that are made up (or are not to be had): what is asked of them in each case, and what is said. */
#define _GNU_SOURCE /* pidfd */
#include "server/cli/commands.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/inspect.h"
#include "server/cli/command.h"
#include "server/cli/hub_model.h"
#include "server/cli/options_parse.h"
#include "server/cli/own_server.h"
#include "server/cli/pull_bars.h"
#include "server/hub/hub_place.h"
#include "server/hub/hub_pull.h"
#include "server/local_server.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/recorded.h"
#include "tests/said.h"
#include "tests/server/cli/typed_options.h"

static bytes all, calls; /* what was recorded; what was called meanwhile */

/* ---- calls that fail ---- */

ONE_FAILS(char *, arena_strdup, (arena * a, const char *text, size_t len), (a, text, len), NULL)
ONE_FAILS(ssize_t, readlink, (const char *path, char *out, size_t n), (path, out, n), (errno = EACCES, -1))

ONE_FAILS(err_code, command_print, (const bytes *text, err_detail *d), (text, d),
          err_set(d, ERR_NOMEM, "no memory for this"))

ONE_FAILS(pid_t, fork, (void), (), (errno = EAGAIN, -1))

static int n_folders = 1; /* that can be made; the next one cannot */

char *__real_mkdtemp(char *name);
char *__wrap_mkdtemp(char *name);
char *__wrap_mkdtemp(char *name)
{
    bytes_printf(&calls, "makes %.60s\n", name);
    errno = EROFS;
    return n_folders-- > 0 ? __real_mkdtemp(name) : NULL;
}

/* ---- a hub and its cache ---- */

static err_code place_err, find_err, pull_err, list_err;
static bool is_offline, has_vision, is_terminal[3];
static size_t n_kept;

int __wrap_isatty(int fd);
int __wrap_isatty(int fd)
{
    return is_terminal[fd];
}

err_code __wrap_hub_place_find(hub_place *out, err_detail *d);
err_code __wrap_hub_place_find(hub_place *out, err_detail *d)
{
    *out = (hub_place){.endpoint = "https://hub", .cache = "/cache", .is_offline = is_offline};
    return place_err ? err_set(d, place_err, "HF_ENDPOINT is odd") : ERR_OK;
}

static void find(hub_found *out)
{
    *out = (hub_found){.path = "/cache/model"};
    snprintf(out->mmproj, sizeof out->mmproj, "%s", has_vision ? "/cache/mmproj" : "");
}

err_code __wrap_hub_cache_find(hub_found *out, const char *cache, const hub_name *name, err_detail *d);
err_code __wrap_hub_cache_find(hub_found *out, const char *cache, const hub_name *name, err_detail *d)
{
    bytes_printf(&calls, "looks for %s:%s@%s in %s\n", name->repo, name->quant, name->revision, cache);
    find(out);
    return find_err ? err_set(d, find_err, "the cache is odd") : ERR_OK;
}

err_code __wrap_hub_pull(hub_found *out, const hub_place *place, const hub_name *name,
                         const hub_pull_hooks *hooks, err_detail *d);
err_code __wrap_hub_pull(hub_found *out, const hub_place *place, const hub_name *name,
                         const hub_pull_hooks *hooks, err_detail *d)
{
    bytes_printf(&calls, "fetches %s:%s@%s from %s\n", name->repo, name->quant, name->revision,
                 place->endpoint);
    CHECK(hooks->check_config == inspect_config && hooks->check_gguf == inspect_gguf_head);
    hooks->on_tick(hooks->ctx, NULL, 3);
    if (hooks->may_fetch) {
        CHECK(!hooks->may_fetch(hooks->ctx, 1, 2500000)); /* nobody answers */
        static char answers[] = "yes\nY\nn\n\nx\n";
        FILE *before = stdin;
        stdin = fmemopen(answers, strlen(answers), "r");
        for (size_t i = 2; i < 7; i++) {
            bytes_append_str(&calls,
                             hooks->may_fetch(hooks->ctx, i, 7000000000) ? "it may\n" : "it may not\n");
        }
        fclose(stdin);
        stdin = before;
    }
    find(out);
    return pull_err ? err_set(d, pull_err, "it broke off") : ERR_OK;
}

err_code __wrap_hub_cache_list(hub_kept **out, size_t *n, const char *cache, err_detail *d);
err_code __wrap_hub_cache_list(hub_kept **out, size_t *n, const char *cache, err_detail *d)
{
    CHECK_STR(cache, "/cache");
    if (list_err) {
        return err_set(d, list_err, "the cache is odd");
    }
    hub_kept *kept = calloc(n_kept + 1, sizeof *kept);
    for (size_t i = 0; i < n_kept; i++) {
        kept[i] = (hub_kept){
            .path = "/cache/\"x\"", .n_bytes = 4999999999 + (int64_t)i * 10000000, .is_whole = i != 1};
        snprintf(kept[i].name, sizeof kept[i].name, "org/name%zu", i);
    }
    *out = kept;
    *n = n_kept;
    return ERR_OK;
}

void __wrap_pull_bars_begin(pull_bars *b);
void __wrap_pull_bars_begin(pull_bars *b)
{
    *b = (pull_bars){.n = 77};
    bytes_append_str(&calls, "bars begin\n");
}

void __wrap_pull_bars_tick(void *ctx, const hub_task *tasks, size_t n);
void __wrap_pull_bars_tick(void *ctx, const hub_task *tasks, size_t n)
{
    CHECK_INT(((pull_bars *)ctx)->n, 77);
    bytes_printf(&calls, "bars of %zu%s\n", n, tasks ? "" : "");
}

void __wrap_pull_bars_end(pull_bars *b);
void __wrap_pull_bars_end(pull_bars *b)
{
    CHECK_INT(b->n, 77);
    bytes_append_str(&calls, "bars end\n");
}

/* ---- a server and its process ---- */

enum { OTHER = 1, ITS_OWN, PIDFD = 4000 };

static bool answers, is_signalled;
static int status, pids[2], pid_at, n_polls, ends_with_poll;
static int known_process; /* whose name /proc tells */
static bool has_process;
static const char *body;

bool __wrap_local_server_get(local_reply *out, const local_address *at, const char *path, const char *key);
bool __wrap_local_server_get(local_reply *out, const local_address *at, const char *path, const char *key)
{
    bytes_printf(&calls, "GET %s%s of %s port %d, key %s\n", at->prefix ? at->prefix : "", path,
                 at->hosts ? at->hosts : "-", (int)at->port, key ? key : "-");
    *out = (local_reply){
        .where = "there", .why = "nobody", .status = status, .body = bytes_empty(8192), .fd = -1};
    bytes_append_str(&out->body, body);
    return answers;
}

pid_t __wrap_local_server_process(const local_reply *r);
pid_t __wrap_local_server_process(const local_reply *r)
{
    CHECK_STR(r->where, "there");
    return pids[pid_at < 1 ? pid_at++ : 1];
}

int __wrap_pidfd_open(pid_t pid, unsigned flags);
int __wrap_pidfd_open(pid_t pid, unsigned flags)
{
    bytes_printf(&calls, "opens process %s, %u\n", pid == known_process ? "there" : "gone", flags);
    return has_process ? dup(STDIN_FILENO) : -1;
}

int __wrap_pidfd_send_signal(int fd, int number, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int fd, int number, siginfo_t *info, unsigned flags)
{
    CHECK(fd >= 0 && !info && flags == 0);
    bytes_printf(&calls, "signal %d\n", number);
    errno = EPERM;
    return is_signalled ? 0 : -1;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
    CHECK(n == 1 && fds->fd >= 0 && fds->events == POLLIN);
    bytes_printf(&calls, "waits %d ms\n", ms);
    n_polls++;
    errno = EINTR;
    return n_polls >= ends_with_poll ? 1 : ms < 0 ? -1 : 0;
}

/* ---- running a command ---- */

/* Wherever that is. */
static void leave_out_source(char *text)
{
    for (char *at = text; (at = strstr(at, PARLEY_SOURCE_DIR));) {
        memmove(at, at + sizeof PARLEY_SOURCE_DIR - 1, strlen(at) - sizeof PARLEY_SOURCE_DIR + 2);
    }
}

static void record(int (*does)(const options *), const char *words, const char *why)
{
    options o = typed_options(words);
    said_begin();
    const int code = does(&o);
    said_end();
    options_deinit(&o);
    leave_out_source(said_out);
    leave_out_source(said_err);
    bytes_printf(&all, "==== %.60s: %s\n%s%s%s---- says, and ends with %d:\n%s", words, why,
                 bytes_str(&calls), said_out[0] ? "---- prints:\n" : "", said_out, code, said_err);
    bytes_clear(&calls);
}

/* Which model is meant, as every command finds it. */
static int which(const options *o)
{
    const char *model = o->model, *mmproj = NULL;
    err_detail d = {0};
    const err_code err = command_find_model(o, &model, o->mmproj ? NULL : &mmproj, &d);
    if (err) {
        return command_fail(err, &d);
    }
    printf("%s, with %s\n", model ? model : "-", mmproj ? mmproj : "-");
    return 0;
}

static void test_names(void)
{
    static const char DATA[] = PARLEY_SOURCE_DIR "/tests/data";
    char words[1024];
    record(which, "parley run -m org/name:q4@v1", "in the cache");
    has_vision = true;
    record(which, "parley run -m org/name", "with eyes");
    record(which, "parley run -m org/name --mmproj X", "with others");
    for (int i = 1; i <= 2; i++) {
        one_fails("arena_strdup", i);
        record(which, "parley run -m org/name", "without memory");
        CHECK(one_fails_over());
    }
    has_vision = false;
    one_fails("arena_strdup", 1);
    record(which, "parley run -m org/name", "without memory, and blind");
    CHECK(one_fails_over());
    place_err = ERR_INVALID;
    record(which, "parley run -m org/name", "the environment is odd");
    place_err = ERR_OK;
    find_err = ERR_IO;
    record(which, "parley run -m org/name", "the cache is odd");
    find_err = ERR_NOT_FOUND;
    for (int i = 0; i < 16; i++) {
        is_terminal[STDIN_FILENO] = i & 1;
        is_terminal[STDERR_FILENO] = i & 2;
        is_offline = i & 4;
        snprintf(words, sizeof words, "parley run -m org/name%s", i & 8 ? " --pull" : "");
        record(which, words,
               !(i & 7)       ? "not there"
               : (i & 7) == 3 ? "on a terminal"
               : (i & 7) == 7 ? "offline"
                              : "or not");
    }
    is_terminal[STDIN_FILENO] = is_terminal[STDERR_FILENO] = is_offline = false;
    pull_err = ERR_UPSTREAM;
    record(which, "parley run -m org/name --pull", "it breaks off");
    pull_err = ERR_OK;
    CHECK(chdir(DATA) == 0);
    record(which, "parley run -m org/name --models-dir families", "not in the folder, nor in the cache");
    record(which, "parley run -m org/name --models-dir families --pull", "but from the hub");
    pull_err = ERR_UPSTREAM;
    record(which, "parley run -m org/name --models-dir families --pull", "and not from there");
    pull_err = ERR_NOT_FOUND;
    record(which, "parley run -m org/name --models-dir families --pull", "nor known there");
    pull_err = ERR_OK;
    find_err = ERR_IO;
    record(which, "parley run -m org/name --models-dir families", "not in the folder, and an odd cache");
    find_err = ERR_OK;
    record(which, "parley run -m org/name --models-dir families", "not in the folder, but in the cache");
    record(which, "parley run -m org/name --models-dir nothing", "no folder");
    record(which, "parley run -m org/name --models-dir tokenizer-cases.json", "a file");
    record(which, "parley run -m tiny --models-dir families", "a path beside it");
    record(which, "parley run -m glm4_moe --models-dir families", "one that cannot be loaded");
    record(which, "parley run --models-dir families", "none that can be loaded");
    record(which, "parley run --models-dir .", "the first that can be loaded");
    record(which, "parley run", "none is named");
    one_fails(NULL, 0);
    record(which, "parley run -m tiny --models-dir .", "in the folder");
    one_fails("arena_strdup", one_fails_counted("arena_strdup")); /* those before are the catalog's */
    record(which, "parley run -m tiny --models-dir .", "without memory");
    CHECK(one_fails_over());
    CHECK(chdir("..") == 0);
    one_fails(NULL, 0);
    record(which, "parley run -m families/glm4_moe --models-dir data", "in a folder of the folder");
    one_fails("arena_strdup", one_fails_counted("arena_strdup"));
    record(which, "parley run -m families/glm4_moe --models-dir data", "without memory");
    CHECK(one_fails_over());
}

/* The demonstration model is beside the program, in one of some places. */
static void test_default(void)
{
    CHECK_HAS(command_default_model(), "/../assets/seedling");
    one_fails("readlink", 1);
    CHECK(!command_default_model());
    CHECK(one_fails_over());
}

static void test_cache(void)
{
    record(command_pull, "parley pull org/name:q4", "it is fetched");
    pull_err = ERR_CANCELLED;
    record(command_pull, "parley pull org/name", "it is not");
    record(command_pull, "parley pull name", "no name");
    record(command_pull, "parley pull", "none");
    pull_err = ERR_OK;
    place_err = ERR_INVALID;
    record(command_pull, "parley pull org/name", "the environment is odd");
    record(command_list, "parley list", "the environment is odd");
    place_err = ERR_OK;
    list_err = ERR_IO;
    record(command_list, "parley list", "the cache is odd");
    list_err = ERR_OK;
    for (n_kept = 0; n_kept < 4; n_kept += 3) {
        record(command_list, "parley list", "for people");
        record(command_list, "parley list --json", "for programs");
    }
    one_fails("command_print", 1);
    record(command_list, "parley list --json", "without memory");
    CHECK(one_fails_over());
}

static void test_server(void)
{
    static const struct {
        int status;
        const char *body;
    } ROWS[] = {{200, "{\"state\":\"ready\",\"uptime_s\":5}"},
                {200, "no JSON"},
                {401, "{}"},
                {403, "{}"},
                {500, "{}"},
                {200, "{\"state\":\"loading\",\"uptime_s\":5}"}};
    char words[128];
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        answers = true;
        status = ROWS[i].status;
        body = ROWS[i].body;
        pids[0] = pids[1] = i == 0 ? 77 : 0;
        pid_at = 0;
        record(command_status, "parley status --host a,b --port 5 --api-prefix /p --api-key k", "an answer");
    }
    answers = false;
    record(command_status, "parley status", "no answer");
    record(command_health, "parley health", "no answer");
    record(command_stop, "parley stop", "no answer");
    answers = true;
    status = 200;
    static const struct {
        const char *why;
        int first, second; /* the process at the other end: OTHER, ITS_OWN, 0 */
        bool opens, is_signalled;
        int ends_with_poll;
    } STOPS[] = {{"it is another user's", 0, 0, true, true, 1},
                 {"its process is gone", ITS_OWN, ITS_OWN, false, true, 1},
                 {"another one is there by then", ITS_OWN, OTHER, true, true, 1},
                 {"no process is there by then", ITS_OWN, 0, true, true, 1},
                 {"a process that has ended", OTHER, OTHER, true, true, 1},
                 {"no signal", ITS_OWN, ITS_OWN, true, false, 1},
                 {"it ends at once", ITS_OWN, ITS_OWN, true, true, 1},
                 {"it ends later", ITS_OWN, ITS_OWN, true, true, 2},
                 {"it ends later, with signals meanwhile", ITS_OWN, ITS_OWN, true, true, 4}};
    FILE *f = fopen("/proc/self/comm", "w"); /* of a parley */
    CHECK(f && fputs("parley-test", f) >= 0 && fclose(f) == 0);
    known_process = getpid();
    for (size_t i = 0; i < ARRAY_LEN(STOPS); i++) {
        const int processes[] = {0, INT32_MAX, known_process};
        pids[0] = processes[STOPS[i].first];
        pids[1] = processes[STOPS[i].second];
        pid_at = n_polls = 0;
        has_process = STOPS[i].opens;
        is_signalled = STOPS[i].is_signalled;
        ends_with_poll = STOPS[i].ends_with_poll;
        snprintf(words, sizeof words, "parley stop --port 5");
        record(command_stop, words, STOPS[i].why);
    }
}

/* The server of a chat needs a folder, and a process. */
static int start(const options *o)
{
    own_server s;
    err_detail d = {0};
    const err_code err = own_server_start(&s, o, &d);
    CHECK_INT(err, ERR_IO);
    CHECK(s.pid <= 0 && (!s.folder[0] || access(s.folder, F_OK) != 0));
    return command_fail(err, &d);
}

static void test_own_server(void)
{
    char longest[sizeof((own_server *)0)->folder];
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    setenv("XDG_RUNTIME_DIR", "/run/nowhere", 1);
    setenv("TMPDIR", "/tmp/nowhere", 1);
    record(start, "parley chat", "no folder");
    setenv("XDG_RUNTIME_DIR", "relative", 1);
    unsetenv("TMPDIR");
    record(start, "parley chat", "none at all");
    for (int n = 0; n < 2; n++) { /* a name for whose socket there is no room, and one byte less */
        longest[sizeof longest - sizeof "/parley-XXXXXX" - sizeof "/chat" - (size_t)n] = '\0';
        setenv("XDG_RUNTIME_DIR", longest, 1);
        record(start, "parley chat", "a long name");
    }
    unsetenv("XDG_RUNTIME_DIR");
    n_folders = 1;
    one_fails("fork", 1);
    record(start, "parley chat", "no process");
    CHECK(one_fails_over());
}

int main(void)
{
    char folder[FOLDER_NAME];
    folder_make(folder);
    setenv("PARLEY_CONFIG", "none", 1);
    log_set_level(LOG_WARN);
    all = bytes_empty(1 << 20);
    calls = bytes_empty(1 << 16);
    CHECK(freopen("/dev/null", "r", stdin) != NULL);
    test_names();
    test_default();
    test_cache();
    test_server();
    test_own_server();
    recorded_check("server/cli/command_calls.txt", bytes_str(&all));
    bytes_deinit(&all);
    bytes_deinit(&calls);
    CHECK_DONE();
}
