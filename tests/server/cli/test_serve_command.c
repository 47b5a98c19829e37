/* parley serve without its server: what the options become for serve_run and for the sandbox, what is refused with which
 * words, keys that are read again. What the server, the kernel and the processes beside it do is made up. */
#include "server/cli/commands.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/limits.h"
#include "base/log.h"
#include "server/cli/options_parse.h"
#include "server/cli/own_server.h"
#include "server/cli/serve_sandbox.h"
#include "server/hub/hub_jobs.h"
#include "server/sandbox.h"
#include "server/service/serve.h"
#include "tests/folder.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "tests/said.h"

static char folder[FOLDER_NAME];
static bytes all;                       /* of all commands */
static bytes options_were, options_are; /* a line each: of the first command, of this one */
static bytes boxed;                     /* what the sandbox opens */

/* The folder of the test is DIR, and its user UID. */
static void write_masked(bytes *out, const char *text)
{
    char own[32];
    snprintf(own, sizeof own, "parley-%u", (unsigned)geteuid());
    while (*text) {
        if (strncmp(text, folder, strlen(folder)) == 0) {
            bytes_append_str(out, "DIR");
            text += strlen(folder);
        } else if (strncmp(text, own, strlen(own)) == 0 && !isalnum((unsigned char)text[strlen(own)])) {
            bytes_append_str(out, "parley-UID");
            text += strlen(own);
        } else {
            bytes_append(out, text++, 1);
        }
    }
}

static void note(bytes *out, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    write_masked(out, text);
}

/* ---- the server ---- */

static int serve_code;
static const char *new_keys; /* the file of keys before they are read again */
static char key_path[128];

static void note_list(const char *name, const char *const *words, size_t n)
{
    note(&options_are, "%s:", name);
    for (size_t i = 0; i < n; i++) {
        note(&options_are, " %s", words[i]);
    }
    note(&options_are, "\n");
}

#define TEXT(field)   note(&options_are, #field "=%s\n", so->field ? so->field : "-")
#define NUMBER(field) note(&options_are, #field "=%lld\n", (long long)so->field)

static void note_options(const serve_options *so)
{
    note_list("hosts", so->hosts, so->n_hosts);
    NUMBER(port);
    TEXT(path_prefix);
    NUMBER(no_metrics);
    NUMBER(no_slots);
    bytes kwargs = bytes_empty(100000);
    if (so->template_kwargs) {
        json_write(&kwargs, so->template_kwargs);
    }
    note(&options_are, "template_kwargs=%s\n", bytes_str(&kwargs));
    bytes_deinit(&kwargs);
    NUMBER(allows_no_key);
    TEXT(engine->model_dir);
    NUMBER(engine->n_queue);
    NUMBER(engine->n_parallel);
    NUMBER(has_no_model);
    TEXT(upstreams.servers);
    TEXT(upstreams.keys);
    TEXT(upstreams.models);
    TEXT(upstreams.videos);
    TEXT(upstreams.pixels);
    TEXT(upstreams.rules);
    NUMBER(upstreams.local_only);
    TEXT(upstreams.ca_file);
    NUMBER(upstreams.connect_timeout_s);
    NUMBER(upstreams.silence_timeout_s);
    note(&options_are, "mcp=%d spawner=%d\n", so->mcp ? (int)so->mcp->n : -1, so->mcp_spawner != NULL);
    NUMBER(tool_rounds);
    TEXT(warm_prompts);
    TEXT(alias);
    TEXT(tool_scanner);
    TEXT(reasoning_field);
    TEXT(ui_dir);
    NUMBER(no_ui);
    NUMBER(strict_model);
    TEXT(models_dir);
    NUMBER(switches_model);
    NUMBER(models_max);
    note_list("pinned", so->pinned, so->n_pinned);
    NUMBER(idle_unload_s);
    note_list("api_keys", so->api_keys, so->n_api_keys);
    TEXT(admin_key);
    note(&options_are, "hub=%d\n", so->hub != NULL);
    note_list("allowed_hosts", so->allowed_hosts, so->n_allowed_hosts);
    note_list("allowed_origins", so->allowed_origins, so->n_allowed_origins);
    NUMBER(max_body);
    NUMBER(max_ws_message);
    NUMBER(max_header);
    NUMBER(event_log_bytes);
    TEXT(upload_dir);
    NUMBER(needs_uploads);
    note_list("media_domains", so->media_domains, so->n_media_domains);
    TEXT(media_path);
    NUMBER(max_upload);
    NUMBER(upload_quota);
    NUMBER(upload_expire_s);
    TEXT(history_dir);
    NUMBER(history_quota);
    NUMBER(max_connections);
    NUMBER(max_connections_per_address);
    NUMBER(n_prep_threads);
    NUMBER(n_queue);
    NUMBER(header_timeout_s);
    NUMBER(body_timeout_s);
    NUMBER(queue_timeout_s);
    NUMBER(request_timeout_s);
    NUMBER(step_timeout_s);
    NUMBER(keepalive_s);
    NUMBER(ws_ping_s);
    NUMBER(ws_pong_s);
    NUMBER(min_body_rate);
    NUMBER(send_timeout_s);
    NUMBER(send_rate);
    NUMBER(max_unread);
    NUMBER(finish_on_disconnect);
    NUMBER(drain_timeout_s);
    NUMBER(access_log);
    NUMBER(quiet);
}

void serve_options_init(serve_options *so)
{
    *so = (serve_options){.n_queue = 20, .event_log_bytes = 1, .n_prep_threads = 2, .ws_pong_s = 3};
}

/* That of a chat: tells its options in a file, then answers until it is ended, or ends as it shall. */
static bool is_own;
static int own_signal;

static int serve_own(const serve_options *so)
{
    FILE *f = fopen("told", "w");
    fputs(bytes_str(&options_are), f);
    fprintf(f, "credentials=%s session=%d\n", getenv("CREDENTIALS_DIRECTORY") ? "there" : "none",
            getsid(0) == getpid());
    for (int fd = 0; fd < 2; fd++) {
        char path[64] = "";
        fprintf(f, "%d=%s\n", fd,
                readlink(fd ? "/proc/self/fd/1" : "/proc/self/fd/0", path, sizeof path - 1) > 0 ? path : "?");
    }
    struct sigaction was;
    sigaction(SIGHUP, NULL, &was);
    fprintf(f, "hangup=%s\n", was.sa_handler == SIG_DFL ? "ends" : "?");
    fclose(f);
    if (serve_code >= 0) {
        raise(own_signal);
        return serve_code;
    }
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", so->hosts[0] + strlen("unix:"));
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 8) != 0) {
        return 9;
    }
    for (int n = 0;; n++) { /* ready with the second request */
        char text[4096];
        const int c = accept(fd, NULL, NULL);
        const ssize_t got = read(c, text, sizeof text - 1);
        const bool is_good = got > 12 && strncmp(text, "GET /health ", 12) == 0 && n > 0;
        const char *reply = is_good ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
                                    : "HTTP/1.1 503 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
        if (write(c, reply, strlen(reply)) < 0) {
            return 8;
        }
        close(c);
    }
}

int serve_run(const serve_options *so)
{
    note_options(so);
    if (is_own) {
        return serve_own(so);
    }
    if (new_keys) {
        const char *const *keys = NULL;
        size_t n = 0;
        err_detail d = {0};
        FILE *f = fopen(key_path, "w");
        CHECK(f && fputs(new_keys, f) >= 0 && fclose(f) == 0);
        CHECK(strcmp(new_keys, "none") != 0 || unlink("credentials/api-key") == 0);
        const err_code err = so->read_keys(so->read_keys_ctx, &keys, &n, &d);
        if (err == ERR_OK) {
            note_list("api_keys, read again", keys, n);
        } else {
            note(&options_are, "api_keys, read again: %s\n", d.text);
        }
    }
    so->on_listening(so->on_listening_ctx, 1);
    return serve_code;
}

/* ---- processes beside it ---- */

static int n_beside; /* that have not been ended */
static bool hub_fails, spawner_fails;

struct hub_jobs {
    hub_place place;
};

err_code hub_jobs_create(hub_jobs **out, const hub_jobs_hooks *hooks, err_detail *d)
{
    CHECK(hooks->check_config && hooks->check_gguf && hooks->inspect);
    if (hub_fails) {
        return err_set(d, ERR_INVALID, "no place");
    }
    *out = calloc(1, sizeof **out);
    snprintf((*out)->place.cache, sizeof(*out)->place.cache, "%s/cache/hub/models", folder);
    n_beside++;
    return ERR_OK;
}

void hub_jobs_destroy(hub_jobs *j)
{
    n_beside -= j != NULL;
    free(j);
}

const hub_place *hub_jobs_place(const hub_jobs *j)
{
    return &j->place;
}

struct mcp_spawner {
    int unused;
};

err_code mcp_spawner_create(mcp_spawner **out, const mcp_config *config, err_detail *d)
{
    if (spawner_fails) {
        return err_set(d, ERR_IO, "no process");
    }
    CHECK(mcp_config_spawns(config));
    *out = calloc(1, sizeof **out);
    n_beside++;
    return ERR_OK;
}

void mcp_spawner_destroy(mcp_spawner *s)
{
    n_beside -= s != NULL;
    free(s);
}

/* ---- the kernel ---- */

struct sandbox {
    bool connects;
};

static sandbox_support support;
static bool files_refused, calls_refused;
static int n_libraries, n_loaders, n_charsets;

sandbox_support sandbox_look(void)
{
    return support;
}

sandbox *sandbox_create(bool connects)
{
    sandbox *s = support.landlock ? calloc(1, sizeof *s) : NULL;
    note(&boxed, "sandbox%s\n", connects ? " that connects" : "");
    return s;
}

void sandbox_allow(sandbox *s, const char *path, sandbox_use use)
{
    static const char *const USES[] = {"read", "below", "write", "run", "list", "socket"};
    CHECK(s);
    if (!path) {
        return;
    }
    const bool is_loader = strstr(path, "/ld-linux") != NULL,
               is_library = strstr(path, ".so") && path[0] == '/' && strcmp(path, "/etc/ld.so.cache") != 0;
    if (strstr(path, "/gconv")) {
        n_charsets++;
        CHECK(use == SANDBOX_BELOW && strcmp(strrchr(path, '/'), "/gconv") == 0);
    } else if (is_library || strstr(path, PARLEY_BUILD_DIR) || strncmp(path, "/usr/lib/locale", 15) == 0 ||
               strchr(path, '[')) {
        n_libraries++;
        n_loaders += is_loader;
        CHECK(use == (is_loader ? SANDBOX_RUN : SANDBOX_READ));
    } else {
        note(&boxed, "%s %s\n", USES[use], path);
    }
}

bool sandbox_enter_files(sandbox *s)
{
    note(&boxed, s ? "files\n" : "privileges\n");
    free(s);
    errno = EPERM;
    return !files_refused;
}

bool sandbox_enter_calls(bool connects)
{
    note(&boxed, connects ? "calls, but connects\n" : "calls\n");
    errno = EPERM;
    return !calls_refused;
}

/* ---- running it ---- */

static void make(const char *name, const char *text, mode_t mode)
{
    FILE *f = fopen(name, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0 && chmod(name, mode) == 0);
}

/* What it says: without times. */
static void record_said(void)
{
    for (const char *line = said_err; *line;) {
        const size_t n = strcspn(line, "\n") + 1;
        char text[4096];
        const size_t skipped = strncmp(line, "20", 2) == 0 ? 25 : 0;
        snprintf(text, sizeof text, "%.*s", (int)(n - skipped), line + skipped);
        write_masked(&all, text);
        line += n;
    }
}

/* Only what differs from the first one. */
static void record_options(void)
{
    const char *a = bytes_str(&options_are), *b = bytes_str(&options_were);
    while (*a) {
        const size_t n = strcspn(a, "\n") + 1, m = *b ? strcspn(b, "\n") + 1 : 0;
        if (n != m || strncmp(a, b, n) != 0) {
            bytes_append(&all, a, n);
        }
        a += n;
        b += m;
    }
    if (!options_were.len) {
        bytes_append(&options_were, bytes_str(&options_are), options_are.len);
    }
}

/* shows: what the sandbox gets, too. */
static void serve(const char *words, bool shows)
{
    static char text[8192];
    char *argv[128];
    int argc = 0;
    options o;
    snprintf(text, sizeof text, "parley serve -m model%s%s", words[0] ? " " : "", words);
    for (char *next = text; next;) {
        argv[argc++] = next;
        next = strchr(next, ' ');
        if (next) {
            *next++ = '\0';
        }
    }
    argv[argc] = NULL;
    note(&all, "==== %s\n", words);
    said_begin();
    int code = options_parse(&o, argc, argv);
    if (code < 0) {
        if (o.upstream && strstr(words, "--upstream m=")) {
            o.model = NULL; /* as choose_model leaves it */
        }
        code = command_serve(&o);
        options_deinit(&o);
    }
    said_end();
    record_said();
    CHECK_STR(said_out, "");
    CHECK_INT(n_beside, 0);
    record_options();
    if (shows) {
        bytes_append(&all, bytes_str(&boxed), boxed.len);
    }
    if (code) {
        note(&all, "ends with %d\n", code);
    }
    bytes_clear(&options_are);
    bytes_clear(&boxed);
}

static void each(const char *const *words, size_t n, bool shows)
{
    for (size_t i = 0; i < n; i++) {
        serve(words[i], shows);
    }
}

#define EACH(shows, ...)                                                                                     \
    each((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),    \
         shows)

static void test_options(void)
{
    EACH(false, "",
         "--host 0.0.0.0,[::1] --port 81 --api-prefix /ai --no-metrics --no-slots --insecure-no-key --queue "
         "30",
         "--queue 20", "--queue 21",
         "--upstream u=http://127.0.0.1:1 --upstream-key u=K --upstream-model a=u/b --upstream-video u=url "
         "--upstream-pixels u=5 --route images=u --local-only --upstream-ca ca --upstream-timeout 6 "
         "--upstream-connect-timeout 7",
         "--upstream m=http://127.0.0.1:1", "--upstream m=http://127.0.0.1:1 --models-dir d",
         "--warm-prompts w --alias A --tool-call-parser hermes --reasoning-field both --ui-dir u --no-ui "
         "--strict-model "
         "--models-dir d --no-model-switch --models-max 3 --pin a,b --idle-unload 8",
         "--admin-key 0123456789abcdef --allowed-hosts a.example,b.example --media-domains "
         "c.example,d.example "
         "--media-path p",
         "--max-body 2 --max-header 3 --upload-dir up --max-upload 4 --upload-quota 5 --upload-expire 6 "
         "--history h "
         "--history-quota 7",
         "--max-body 2 --max-ws-message 8 --max-conns 9 --max-conns-per-ip 10 --header-timeout 11 "
         "--body-timeout 12 "
         "--queue-timeout 13 --request-timeout 14 --step-timeout 15",
         "--keepalive 16 --ws-ping 17 --min-body-rate 18 --send-timeout 19 --send-rate 20 --max-ws-queue 64 "
         "--on-disconnect finish --drain-timeout 22 --access-log -q",
         "--mem-fraction 0.5 --no-continuous-batching", "--on-disconnect cancel --no-hub");
    serve_code = 5;
    hub_fails = true;
    serve("", false);
    serve("--no-ui", false);
    serve_code = 0;
    hub_fails = false;
}

static void test_refused(void)
{
    char words[4096];
    EACH(false, "--tool-call-parser nonsense", "--tool-call-parser auto", "--tool-call-parser none",
         "--reasoning-parser nonsense");
    EACH(false, "--api-prefix ai", "--api-prefix /", "--api-prefix /a/", "--api-prefix /a/b",
         "--api-prefix /a?b", "--api-prefix /a#b", "--api-prefix /a%b");
    for (int n = 254; n < 257; n++) {
        snprintf(words, sizeof words, "--api-prefix /%0*d", n, 0);
        serve(words, false);
    }
    EACH(false, "--allowed-origins https://Chat.Example:8443/,null,http://b",
         "--allowed-origins chat.example", "--allowed-origins https://", "--allowed-origins https:///",
         "--allowed-origins https://a/b", "--allowed-origins https://a?b", "--allowed-origins https://a#b",
         "--allowed-origins https://*.a", "--allowed-origins a,null");
    EACH(false, "--admin-key 0123456789abcde");
    for (int n = 64; n < 66; n++) { /* as many names as there may be, and one more */
        static const char *const LISTS[] = {"host", "allowed-hosts", "allowed-origins", "media-domains",
                                            "pin"};
        for (size_t k = 0; k < ARRAY_LEN(LISTS); k++) {
            size_t at = (size_t)snprintf(words, sizeof words, "--%s ", LISTS[k]);
            for (int i = 0; i < n; i++) {
                at += (size_t)snprintf(words + at, sizeof words - at, "%s%s%d", i ? "," : "",
                                       k == 2 ? "http://h" : "h", i);
            }
            serve(words, false);
        }
    }
    EACH(false, "--chat-template-kwargs {\"a\":1,\"b\":[2]}", "--reasoning on", "--reasoning off",
         "--reasoning auto", "--reasoning on --chat-template-kwargs {\"a\":1,\"b\":\"x\"}",
         "--reasoning off --chat-template-kwargs {\"a\":1,\"enable_thinking\":true}",
         "--chat-template-kwargs []", "--chat-template-kwargs {", "--reasoning on --chat-template-kwargs 1",
         "--reasoning auto --chat-template-kwargs {\"b\":2}");
    char kwargs[(1 << 16) + 1]; /* with one that is given, more than there is room for */
    snprintf(kwargs, sizeof kwargs, "{\"a\":\"%0*d\"}", (1 << 16) - 10, 0);
    setenv("PARLEY_CHAT_TEMPLATE_KWARGS", kwargs, 1);
    serve("--reasoning on", false);
    unsetenv("PARLEY_CHAT_TEMPLATE_KWARGS");
}

static void test_keys(void)
{
    char many[1200] = "";
    for (int i = 0; i < 65; i++) {
        snprintf(many + strlen(many), 32, "key-0123456789%02d\n", i);
    }
    make("many", many, 0600);
    many[strlen(many) - 17] = '\0'; /* one less */
    make("most", many, 0600);
    make("keys", "\n first-0123456789\r\nsecond-0123456789, third-0123456789\n", 0600);
    make("open", "first-0123456789\n", 0604);
    make("group", "first-0123456789\n", 0640);
    make("none", " \r\n,\n", 0600);
    make("empty", "", 0600);
    make("short", "first-0123456789 0123456789abcde", 0600);
    EACH(false, "--api-key 0123456789abcdef", "--api-key 0123456789abcdef,0123456789abcdeg",
         "--api-key 0123456789abcde", "--api-key-file keys", "--api-key-file open", "--api-key-file group",
         "--api-key-file none", "--api-key-file empty", "--api-key-file short", "--api-key-file most",
         "--api-key-file many", "--api-key-file nothing", "--api-key 0123456789abcdef --api-key-file keys");
    CHECK(mkdir("credentials", 0700) == 0);
    setenv("CREDENTIALS_DIRECTORY", "credentials", 1);
    serve("", false); /* no key in it */
    make("credentials/api-key", "credential-0123456789", 0600);
    EACH(false, "", "--api-key 0123456789abcdef", "--api-key-file keys");
    new_keys = "none";
    serve("", false); /* it is gone when it is read again */
    new_keys = NULL;
    make("credentials/api-key", "credential-0123456789", 0600);
    unsetenv("CREDENTIALS_DIRECTORY");
    /* Read again. */
    static const char *const NEW[] = {"fourth-0123456789\nfifth-0123456789\n", "", "0123", " \n"};
    for (size_t i = 0; i < ARRAY_LEN(NEW); i++) {
        make("keys", "first-0123456789\n", 0600);
        new_keys = NEW[i];
        serve("--api-key-file keys", false);
    }
    new_keys = "other";
    serve("--api-key 0123456789abcdef", false);
    serve("", false);
    new_keys = NULL;
    make("keys", "first-0123456789\n", 0600);
}

static void test_tools(void)
{
    make("mcp.json", "{\"mcpServers\":{\"far\":{\"url\":\"http://127.0.0.1:1/\"}}}", 0600);
    make("bad.json", "{", 0600);
    make("near.json", "{\"mcpServers\":{\"near\":{\"command\":\"x\"}}}", 0600);
    EACH(true, "--tools time --mcp-rounds 3", "--tools folder=shown", "--tools nonsense",
         "--mcp-config mcp.json", "--mcp-config near.json --tools time", "--mcp-config bad.json",
         "--mcp-config nothing.json");
    spawner_fails = true;
    serve("--mcp-config near.json", false);
    serve("--mcp-config mcp.json", false); /* no program */
    spawner_fails = false;
}

static void test_sandbox(void)
{
    CHECK(mkdir("model", 0700) == 0 && mkdir("model/mtp", 0700) == 0 && mkdir("blobs", 0700) == 0 &&
          mkdir("in", 0700) == 0 && mkdir("in/more", 0700) == 0);
    make("blobs/a", "", 0600);
    make("model/config.json", "{}", 0600);
    CHECK(symlink("../blobs/a", "model/model.safetensors") == 0 &&
          symlink("../../blobs/a", "model/mtp/head") == 0);
    make("in/a.gguf", "", 0600);
    make("in/b.gguf", "", 0600);
    make("in/.gguf", "", 0600);
    make("in/c.ggufs", "", 0600);
    make("in/more/key", "0123456789abcdef", 0600);
    char words[512], folder_key[160];
    snprintf(folder_key, sizeof folder_key, "--api-key-file %s/in/more/key", folder);
    EACH(true, "", "--no-sandbox",
         "--mmproj in/a.gguf --draft-model nowhere --models-dir in --chat-template-file t",
         "--warm-prompts w --ui-dir u --media-path p --upload-dir up", "--history kept --cache-disk cached",
         "--media-domains a.example",
         "--upstream u=http://127.0.0.1:1 --upstream-ca in/more/ca --log-file log", "--history no/such/place",
         "--api-key-file keys", "--upstream-ca /certificates", "--upstream-ca no/such/ca", "--mmproj keys");
    serve(folder_key, true);
    snprintf(words, sizeof words, "%s/in", folder);
    setenv("HOME", words, 1); /* a folder in it is one, it and what is above are not */
    serve(folder_key, true);
    snprintf(words, sizeof words, "%s/in/more/deep", folder);
    setenv("HOME", words, 1);
    serve(folder_key, true);
    unsetenv("HOME");
    serve(folder_key, true);
    snprintf(words, sizeof words, "--host unix:%s/in/a,127.0.0.1,unix:/socket,unix:%s/in/more/b", folder,
             folder);
    serve(words, true);
    /* Where --quantize keeps what it made. */
    setenv("HOME", "relative", 1);
    serve("", true);
    setenv("XDG_CACHE_HOME", "relative", 1);
    serve("", true);
    snprintf(words, sizeof words, "%s/home", folder);
    CHECK(mkdir(words, 0700) == 0);
    setenv("HOME", words, 1);
    serve("", true);
    struct stat st;
    CHECK(stat("home/.cache/parley", &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0755 & ~022) == 0755);
    snprintf(words, sizeof words, "%s/xdg", folder);
    setenv("XDG_CACHE_HOME", words, 1);
    serve("", true);
    CHECK(stat("xdg/parley", &st) == 0 && stat("cache/hub/models", &st) == 0);
    CHECK(stat("kept", &st) == 0 && (st.st_mode & 0777) == 0700);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    setenv("CREDENTIALS_DIRECTORY", "credentials", 1);
    serve("", true);
    unsetenv("CREDENTIALS_DIRECTORY");
    /* A kernel with less. */
    files_refused = calls_refused = true;
    serve("", true);
    files_refused = calls_refused = false;
    support.landlock = 0;
    serve("", true);
    support.is_sanitized = true;
    serve("", true);
    serve("--no-sandbox", true);
    CHECK(n_libraries > 20 && n_loaders > 3 && n_charsets > 3);
}

/* The server of a chat is another process. */
static own_server_state wait_for(own_server *s, int *code)
{
    own_server_state state = OWN_SERVER_LOADS;
    for (int i = 0; i < 20000 && (state = own_server_look(s, code)) == OWN_SERVER_LOADS; i++) {
        usleep(500);
    }
    return state;
}

static void test_own_server(void)
{
    char *argv[] = {"parley", "chat", "-m", "model", "--max-images", "3", NULL};
    char place[256], expected[512];
    own_server s;
    err_detail d = {0};
    options o;
    int code = 0;
    CHECK_INT(options_parse(&o, 6, argv), -1);
    is_own = true;
    serve_code = -1;
    CHECK(mkdir("run", 0700) == 0);
    snprintf(place, sizeof place, "%s/run", folder);
    setenv("XDG_RUNTIME_DIR", place, 1);
    setenv("CREDENTIALS_DIRECTORY", "credentials", 1);
    signal(SIGHUP, SIG_IGN);
    said_begin();
    CHECK_OK(own_server_start(&s, &o, &d), d);
    snprintf(expected, sizeof expected, "%s/parley-", place);
    CHECK(strncmp(s.folder, expected, strlen(expected)) == 0 && strlen(s.folder) == strlen(expected) + 6);
    snprintf(expected, sizeof expected, "unix:%s/chat", s.folder);
    CHECK_STR(s.host, expected);
    CHECK_INT(wait_for(&s, &code), OWN_SERVER_READY);
    const pid_t pid = s.pid;
    char was[sizeof s.folder];
    snprintf(was, sizeof was, "%s", s.folder);
    own_server_stop(&s);
    CHECK(kill(pid, 0) != 0 && errno == ESRCH);
    CHECK(access(was, F_OK) != 0);
    CHECK_INT(s.pid, 0);
    CHECK_STR(s.folder, "");
    own_server_stop(&s); /* again */
    said_end();
    CHECK_STR(said_out, "");
    signal(SIGHUP, SIG_DFL);
    bytes told = bytes_empty(1 << 20);
    CHECK_OK(file_read(&told, "told", &d), d);
    for (char *c = (char *)(uintptr_t)bytes_str(&told);
         (c = strstr(c, "parley-")) && !strncmp(c + 13, "/chat", 5);) {
        memset(c += 7, 'X', 6); /* a name at random */
    }
    write_masked(&options_are, bytes_str(&told));
    bytes_append_str(&all, "==== the server of a chat\n");
    record_options();
    bytes_clear(&options_are);
    bytes_deinit(&told);
    unsetenv("CREDENTIALS_DIRECTORY");
    /* One that ends by itself. */
    static const struct {
        int code, signal, seen;
    } ENDS[] = {{3, 0, 3}, {0, 0, 1}, {0, SIGKILL, 1}};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        serve_code = ENDS[i].code;
        own_signal = ENDS[i].signal;
        code = 0;
        said_begin();
        CHECK_OK(own_server_start(&s, &o, &d), d);
        CHECK_INT(wait_for(&s, &code), OWN_SERVER_ENDED);
        said_end();
        CHECK_INT(code, ENDS[i].seen);
        CHECK_INT(s.pid, 0);
        CHECK((strstr(said_err, "parley: the server of this chat was ended by signal 9\n") != NULL) ==
              (i == 2));
        own_server_stop(&s);
    }
    own_signal = 0;
    /* Where its socket is: the first place that is one, and short enough. */
    char longest[256];
    const size_t room = sizeof s.folder - sizeof "/parley-XXXXXX" - sizeof "/chat" - 1;
    for (size_t n = room; n <= room + 1; n++) {
        const size_t at = (size_t)snprintf(longest, sizeof longest, "%s/", folder);
        memset(longest + at, 'l', n - at);
        longest[n] = '\0';
        CHECK(mkdir(longest, 0700) == 0);
        setenv("XDG_RUNTIME_DIR", longest, 1);
        said_begin();
        CHECK_OK(own_server_start(&s, &o, &d), d);
        CHECK_INT(wait_for(&s, &code), OWN_SERVER_ENDED);
        said_end();
        CHECK_INT(strncmp(s.folder, longest, n) == 0, n == room);
        own_server_stop(&s);
    }
    static const char *const NONE[] = {"run", "/nowhere/at/all", NULL};
    for (size_t i = 0; i < ARRAY_LEN(NONE);
         i++) { /* no absolute one, none that is there, none at all: $TMPDIR */
        NONE[i] ? setenv("XDG_RUNTIME_DIR", NONE[i], 1) : unsetenv("XDG_RUNTIME_DIR");
        said_begin();
        CHECK_OK(own_server_start(&s, &o, &d), d);
        CHECK_INT(wait_for(&s, &code), OWN_SERVER_ENDED);
        said_end();
        snprintf(expected, sizeof expected, "%s/parley-", folder);
        CHECK(strncmp(s.folder, expected, strlen(expected)) == 0);
        own_server_stop(&s);
    }
    options_deinit(&o);
    is_own = false;
    serve_code = 0;
}

static int gate[2];

/* A thread, as libraries make them. */
static void *wait_at_gate(void *unused)
{
    char c;
    CHECK(read(gate[0], &c, 1) == 0);
    return unused;
}

int main(void)
{
    pthread_t other;
    folder_make(folder);
    umask(022);
    CHECK(pipe(gate) == 0 && pthread_create(&other, NULL, wait_at_gate, NULL) == 0);
    CHECK(chdir(folder) == 0);
    setenv("PARLEY_CONFIG", "none", 1);
    setenv("TMPDIR", folder, 1);
    setenv("HF_HUB_CACHE", "/nowhere", 1);
    unsetenv("CREDENTIALS_DIRECTORY");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    snprintf(key_path, sizeof key_path, "%s/keys", folder);
    log_set_level(LOG_INFO);
    support = (sandbox_support){.landlock = 6, .seccomp = true};
    bytes_init(&all, (size_t)1 << 22);
    bytes_init(&options_were, (size_t)1 << 20);
    bytes_init(&options_are, (size_t)1 << 20);
    bytes_init(&boxed, (size_t)1 << 20);
    CHECK(mkdir("shown", 0700) == 0);
    test_options();
    test_refused();
    test_keys();
    test_tools();
    test_sandbox();
    test_own_server();
    close(gate[1]);
    pthread_join(other, NULL);
    close(gate[0]);
    CHECK_ALL_CLOSED();
    recorded_check("server/cli/serve_command.txt", bytes_str(&all));
    bytes_deinit(&all);
    bytes_deinit(&options_were);
    bytes_deinit(&options_are);
    bytes_deinit(&boxed);
    CHECK_DONE();
}
