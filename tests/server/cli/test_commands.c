/* Commands that ask a server of this machine (health, status, stop) or look into the cache of a hub (list, remove, pull), and
 * what all of them share: the engine's options, exit codes, the model that is meant. */
#define _GNU_SOURCE /* prctl */
#include "server/cli/commands.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/cli/command.h"
#include "server/cli/hub_model.h"
#include "server/cli/options_parse.h"
#include "server/cli/upload_folder.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/said.h"

static char folder[FOLDER_NAME];
static bool is_of_another; /* what lies there */

int __real_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st)
{
    const int failed = one_fails_now("lstat") ? -1 : __real_lstat(path, st);
    st->st_uid += is_of_another;
    return failed;
}

/* The options of a line of words with one space between. */
static options line(const char *words)
{
    static char text[8][1024];
    static int turn;
    char *argv[64], *c = text[turn++ % 8];
    int argc = 0;
    options o;
    snprintf(c, sizeof text[0], "%s", words);
    for (char *next = c; next; c = next) {
        next = strchr(c, ' ');
        if (next) {
            *next++ = '\0';
        }
        argv[argc++] = c;
    }
    argv[argc] = NULL;
    CHECK_INT(options_parse(&o, argc, argv), -1);
    return o;
}

static int run(int (*does)(const options *), const char *words)
{
    options o = line(words);
    said_begin();
    const int code = does(&o);
    said_end();
    options_deinit(&o);
    return code;
}

/* ---- a server ---- */

/* A process that answers every request alike: `wants` must be in it, else it is refused. Its port is in *port. */
static pid_t serve(int *port, const char *name, const char *wants, const char *status, const char *body)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 8) == 0 &&
          getsockname(fd, (struct sockaddr *)&address, &len) == 0);
    *port = ntohs(address.sin_port);
    const pid_t child = fork();
    if (child == 0) {
        /* Inherited by the connection: who is at its other end. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, name);
        listen(fd, 8); /* this process is the one that is seen */
        for (;;) {
            const int c = accept(fd, NULL, NULL);
            char text[8192], reply[8192];
            size_t n = 0;
            text[0] = '\0';
            for (ssize_t got;
                 !strstr(text, "\r\n\r\n") && (got = read(c, text + n, sizeof text - 1 - n)) > 0;) {
                n += (size_t)got;
                text[n] = '\0';
            }
            const bool is_good = strstr(text, wants) != NULL;
            const char *sent = is_good ? body : "{}";
            snprintf(reply, sizeof reply, "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                     is_good ? status : "401 Unauthorized", strlen(sent), sent);
            if (write(c, reply, strlen(reply)) < 0) {
                _exit(1);
            }
            while (read(c, text, sizeof text) > 0) { /* until the other side has looked who it speaks to */
            }
            close(c);
        }
    }
    close(fd);
    return child;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void test_health(void)
{
    static const struct {
        const char *status, *body, *out, *error;
        int code;
    } ROWS[] = {
        {"200 OK", "{}", "ok\n", "", 0},
        {"503 Service Unavailable", "{\"error\":{\"message\":\"the model is loading\",\"x\":1}}", "",
         "parley: 127.0.0.1 port %d: the model is loading\n", 1},
        {"503 Service Unavailable", "", "", "parley: 127.0.0.1 port %d: not ready\n", 1},
        {"404 Not Found", "{}", "", "parley: 127.0.0.1 port %d: no Parley server answers there\n", 1}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char words[128], expected[256];
        int port;
        const pid_t child =
            serve(&port, "parley", "GET /ai/health HTTP/1.1\r\n", ROWS[i].status, ROWS[i].body);
        snprintf(words, sizeof words, "parley health --api-prefix /ai --port %d", port);
        CHECK_INT(run(command_health, words), ROWS[i].code);
        snprintf(expected, sizeof expected, ROWS[i].error, port);
        CHECK_STR(said_out, ROWS[i].out);
        CHECK_STR(said_err, expected);
        end(child);
    }
    CHECK_INT(run(command_health, "parley health --port 1"), 1);
    CHECK_STR(said_err, "parley: 127.0.0.1 port 1: no server answers there (Connection refused)\n");
    CHECK_STR(said_out, "");
    CHECK_INT(run(command_stop, "parley stop --port 1"), 1);
    CHECK_STR(said_err, "parley: 127.0.0.1 port 1: no server answers there (Connection refused)\n");
}

static const char STATE[] = "{\"object\":\"status\",\"state\":\"ready\",\"version\":\"1.2.3\",\"uptime_s\":%"
                            "s,\"model\":{\"id\":\"m\",\"compute\":\"avx2\","
                            "\"n_ctx\":4096},\"memory\":{\"rss_bytes\":3145728,\"weight_bytes\":1048576},"
                            "\"queue\":{\"running\":1,\"waiting\":2,\"slots\":4},"
                            "\"totals\":{\"requests\":5,\"prompt_tokens\":60,\"cached_tokens\":7,\"generated_"
                            "tokens\":80,\"predicted_per_second\":9.25},"
                            "\"cache\":{\"entries\":10,\"bytes\":11534336}}";

static void test_status(void)
{
    static const struct {
        const char *seconds, *shown;
    } TIMES[] = {{"119.9", "119 s"},
                 {"120", "2 min"},
                 {"7199", "119 min"},
                 {"7200", "2 h 0 min"},
                 {"90061", "25 h 1 min"}};
    char words[256], expected[1200], body[1024];
    int port;
    for (size_t i = 0; i < ARRAY_LEN(TIMES); i++) {
        snprintf(body, sizeof body, STATE, TIMES[i].seconds);
        const pid_t child = serve(&port, "parley", "GET /v1/status HTTP/1.1\r\n", "200 OK", body);
        snprintf(words, sizeof words, "parley status --port %d", port);
        CHECK_INT(run(command_status, words), 0);
        snprintf(expected, sizeof expected, "127.0.0.1 port %d: ready, Parley 1.2.3, up %s", port,
                 TIMES[i].shown);
        CHECK_HAS(said_out, expected);
        CHECK_HAS(said_out, "\nmodel     m, context 4096, avx2\nmemory    3 MiB, of it weights 1\n"
                            "requests  1 running on 4 slots, 2 waiting, 5 since the start\n"
                            "tokens    60 of prompts (7 more from the cache), 80 of answers at 9.2 a second\n"
                            "cache     10 prompts, 11 MiB\n");
        CHECK_STR(said_err, "");
        snprintf(words, sizeof words, "parley status --json --port %d", port);
        CHECK_INT(run(command_status, words), 0);
        snprintf(expected, sizeof expected, "%s\n", body);
        CHECK_STR(said_out, expected);
        end(child);
    }
    /* One that loads, without a model yet; others that are none. */
    static const struct {
        const char *status, *body, *error;
    } ROWS[] = {
        {"200 OK", "{\"state\":\"loading\"}", ""},
        {"200 OK", "{\"state\":", "parley: 127.0.0.1 port %d: no Parley server answers there\n"},
        {"500 Failed", "{}", "parley: 127.0.0.1 port %d: no Parley server answers there\n"},
        {"403 Forbidden", "{}",
         "parley: 127.0.0.1 port %d: the server wants a key: --api-key-file FILE, or PARLEY_API_KEY\n"}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const pid_t child = serve(&port, "parley", "", ROWS[i].status, ROWS[i].body);
        snprintf(words, sizeof words, "parley status --port %d", port);
        CHECK_INT(run(command_status, words), 1);
        snprintf(expected, sizeof expected, ROWS[i].error, port);
        CHECK_STR(said_err, expected);
        CHECK(i == 0 ? strstr(said_out, ": loading, Parley ?, up 0 s") && !strstr(said_out, "model")
                     : said_out[0] == '\0');
        end(child);
    }
    /* The first of the keys is sent. */
    snprintf(body, sizeof body, STATE, "1");
    const pid_t child = serve(&port, "parley", "uthorization: Bearer first-key\r\n", "200 OK", body);
    char file[128];
    snprintf(file, sizeof file, "%s/keys", folder);
    FILE *f = fopen(file, "w");
    CHECK(f && fputs("\n first-key\r\nsecond-key\n", f) >= 0 && fclose(f) == 0);
    static const char *const KEYS[] = {"--api-key first-key",  "--api-key first-key,second-key",
                                       "--api-key-file %s",    "",
                                       "--api-key second-key", "--api-key second-key --api-key-file %s"};
    for (int i = 0; i < 6; i++) {
        char key[192];
        snprintf(key, sizeof key, KEYS[i], file);
        snprintf(words, sizeof words, "parley status --port %d%s%s", port, key[0] ? " " : "", key);
        CHECK_INT(run(command_status, words), i < 3 ? 0 : 1);
        CHECK((strstr(said_err, "the server wants a key") != NULL) == (i >= 3));
    }
    snprintf(words, sizeof words, "parley status --port %d --api-key-file /nowhere/keys", port);
    CHECK_INT(run(command_status, words), 1);
    CHECK_HAS(said_err, "parley: --api-key-file: ");
    end(child);
}

static void test_stop(void)
{
    char words[64];
    int port, status;
    pid_t child = serve(&port, "other", "", "200 OK", "{}");
    snprintf(words, sizeof words, "parley stop --port %d", port);
    CHECK_INT(run(command_stop, words), 1);
    CHECK_STR(said_out, "");
    CHECK_HAS(said_err, "what answers there is no Parley server that can be stopped from here");
    CHECK_INT(waitpid(child, &status, WNOHANG), 0); /* it lives */
    end(child);
    child = serve(&port, "parley", "", "200 OK", "{}");
    snprintf(words, sizeof words, "parley stop --port %d", port);
    CHECK_INT(run(command_stop, words), 0);
    CHECK_STR(said_out, "stopped\n");
    CHECK_STR(said_err, "");
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* ---- models of a hub ---- */

static void make(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/hub%s", folder, path);
    for (char *c = whole + strlen(folder) + 1; (c = strchr(c, '/')); c++) {
        *c = '\0';
        mkdir(whole, 0700);
        *c = '/';
    }
    FILE *f = fopen(whole, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static void test_hub(void)
{
    char cache[128], expected[1024], at[512];
    snprintf(cache, sizeof cache, "%s/hub", folder);
    setenv("HF_HUB_CACHE", cache, 1);
    setenv("HF_HUB_OFFLINE", "1", 1);
    CHECK_INT(run(command_list, "parley list"), 0);
    snprintf(expected, sizeof expected, "There are no models in %s; `parley pull ORG/NAME` fetches one.\n",
             cache);
    CHECK_STR(said_err, expected);
    CHECK_STR(said_out, "");
    CHECK_INT(run(command_list, "parley list --json"), 0);
    CHECK_STR(said_out, "[]\n");
    CHECK_STR(said_err, "");

    make("/models--org--name/blobs/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "{}");
    make("/models--org--name/refs/main", COMMIT);
    make("/models--org--name/snapshots/" COMMIT "/config.json", "{}");
    make("/models--org--name/snapshots/" COMMIT "/tokenizer.json", "{}");
    make("/models--org--name/snapshots/" COMMIT "/model.safetensors", "x");
    CHECK_INT(run(command_list, "parley list"), 0);
    CHECK_STR(said_err, "");
    CHECK(strncmp(said_out, "org/name ", 9) == 0);
    CHECK_INT(strcspn(said_out, "\n"), 60 + 1 + 9 + 3);
    CHECK_HAS(said_out, " 0.00 GB\n");
    CHECK_INT(run(command_list, "parley list --json"), 0);
    snprintf(expected, sizeof expected,
             ",\"path\":\"%s/models--org--name/snapshots/" COMMIT "\",\"complete\":true}]\n", cache);
    CHECK_HAS(said_out, "[{\"name\":\"org/name\",\"bytes\":");
    CHECK_HAS(said_out, expected);

    /* By its name, as -m takes it; a path is left as it is. */
    options o = line("parley run -m org/name");
    err_detail d = {0};
    const char *mmproj = NULL;
    CHECK_OK(command_find_model(&o, &o.model, &mmproj, &d), d);
    snprintf(at, sizeof at, "%s/models--org--name/snapshots/" COMMIT, cache);
    CHECK_STR(o.model, at);
    CHECK(mmproj == NULL);
    CHECK_OK(command_find_model(&o, &o.model, &mmproj, &d), d);
    CHECK_STR(o.model, at);
    o.model = "org/none";
    CHECK_INT(command_find_model(&o, &o.model, &mmproj, &d), ERR_NOT_FOUND);
    snprintf(expected, sizeof expected,
             "there is no model org/none, neither as a path nor in %s; `parley pull org/none` fetches it, "
             "and so does --pull",
             cache);
    CHECK_STR(d.text, expected);
    o.model = "/nowhere/at/all";
    CHECK_OK(command_find_model(&o, &o.model, &mmproj, &d), d); /* no name of a hub: what opens it says so */
    hub_found found;
    CHECK_INT(hub_model_find(&found, "no name", false, &d), ERR_NOT_FOUND);
    CHECK_STR(d.text, "there is no model no name, neither a folder nor a file");
    CHECK_INT(hub_model_pull(&found, "no name", false, &d), ERR_INVALID);
    CHECK_STR(d.text,
              "\"no name\" is not the name of a model: it is ORG/NAME, ORG/NAME:QUANT or ORG/NAME@REVISION");
    o.model = NULL;
    CHECK_OK(command_find_model(&o, &o.model, &mmproj, &d), d);
    CHECK(o.model == NULL);

    /* Below --models-dir: by name, the first that can be loaded, or with what is near it. */
    o.models_dir = cache;
    o.model = "nothing";
    CHECK_INT(command_find_model(&o, &o.model, &mmproj, &d), ERR_NOT_FOUND);
    CHECK_HAS(d.text, "nothing");
    o.model = "org/none";
    CHECK_INT(command_find_model(&o, &o.model, &mmproj, &d), ERR_NOT_FOUND);
    CHECK(!strstr(d.text, "parley pull")); /* what the folder says */
    o.model = "org/name";
    CHECK_OK(command_find_model(&o, &o.model, &mmproj, &d), d);
    CHECK_STR(o.model, at);
    o.models_dir = "/nowhere";
    o.model = "x";
    CHECK(command_find_model(&o, &o.model, &mmproj, &d) != ERR_OK);
    o.models_dir = PARLEY_SOURCE_DIR "/tests/data";
    o.model = "tiny";
    CHECK_OK(command_find_model(&o, &o.model, &mmproj, &d), d);
    CHECK_STR(o.model, PARLEY_SOURCE_DIR "/tests/data/tiny");
    o.model = NULL;
    CHECK_OK(command_find_model(&o, &o.model, &mmproj, &d), d);
    CHECK(o.model && strncmp(o.model, PARLEY_SOURCE_DIR "/tests/data/", sizeof PARLEY_SOURCE_DIR + 11) == 0);
    options_deinit(&o);

    static const char USAGE[] =
        "parley: which model? parley remove ORG/NAME[:QUANT], as parley list names them\n";
    static const char *const WRONG[] = {"parley remove", "parley remove nothing",
                                        "parley remove org/name@" COMMIT};
    for (int i = 0; i < 3; i++) {
        CHECK_INT(run(command_remove, WRONG[i]), 2);
        CHECK_STR(said_err, USAGE);
    }
    CHECK_INT(run(command_remove, "parley remove org/other"), 3);
    CHECK(strncmp(said_err, "parley: ", 8) == 0);
    CHECK_INT(run(command_remove, "parley remove org/name"), 0);
    CHECK_STR(said_out, "org/name: 0.00 GB are free again\n");
    CHECK_INT(run(command_list, "parley list --json"), 0);
    CHECK_STR(said_out, "[]\n");
    CHECK_INT(run(command_pull, "parley pull"), 2);
    CHECK_STR(said_err, "parley: which model? parley pull ORG/NAME[:QUANT|@REVISION]\n");
    CHECK_INT(run(command_pull, "parley pull nothing"), 2);
    CHECK(run(command_pull, "parley pull org/name") != 0); /* offline */
    CHECK(strncmp(said_err, "parley: org/name: ", 18) == 0);
    CHECK_STR(said_out, "");
    setenv("HF_ENDPOINT", "nonsense", 1);
    CHECK_INT(run(command_list, "parley list"), 2);
    CHECK_INT(run(command_remove, "parley remove org/name"), 2);
    CHECK_INT(run(command_pull, "parley pull org/name"), 2);
    CHECK_STR(said_out, "");
    unsetenv("HF_ENDPOINT");
}

/* ---- what is in the program, and in a model ---- */

static void test_licenses(void)
{
    said_begin();
    CHECK_INT(command_licenses(), 0);
    said_end();
    CHECK_STR(said_err, "");
    /* The heads, and whether the text behind each is that of its file. */
    char heads[4096] = "", path[512];
    int n_texts = 0;
    for (const char *line = said_out; (line = strstr(line, "== ")); line += strcspn(line, "\n")) {
        const int n = (int)strcspn(line, "\n");
        snprintf(heads + strlen(heads), sizeof heads - strlen(heads), "%.*s\n", n, line);
        const int n_name = (int)strcspn(line + 3, ",=");
        line[n - 1] == '=' && strstr(line, "embedded") == line + 3 + n_name + 2
            ? snprintf(path, sizeof path, PARLEY_SOURCE_DIR "/web/vendor/licenses/%.*s.txt", n_name, line + 3)
            : snprintf(path, sizeof path, PARLEY_SOURCE_DIR "/LICENSE");
        bytes text = bytes_empty(1 << 20);
        err_detail d = {0};
        if (!strstr(line, "Libraries") || strstr(line, "Libraries") > line + n) {
            CHECK_OK(file_read(&text, path, &d), d);
            CHECK(strncmp(line + n + 2, bytes_str(&text), text.len) == 0);
            n_texts++;
        }
        bytes_deinit(&text);
    }
    CHECK(strncmp(heads, "== Parley ==\n== ", 16) == 0);
    CHECK_HAS(heads, "\n== Libraries that the program is linked to ==\n");
    CHECK(n_texts > 3);
    const char *libraries = strstr(said_out, "== Libraries");
    CHECK_HAS(
        libraries,
        "==\n\nlibwebsockets: MIT; parts BSD-3-Clause, Zlib\nOpenSSL (libcrypto): Apache-2.0\ncJSON: MIT\n");
    CHECK_HAS(libraries, "\nlibedit: BSD-3-Clause\nlibxml2: MIT\n");
}

static void test_inspect(void)
{
    static const char DATA[] = PARLEY_SOURCE_DIR "/tests/data";
    char words[512], one[128], cached[256];
    const struct {
        const char *path, *out, *error;
        int code;
    } ROWS[] = {{"tiny", "folder  ", "", 0},
                {"tiny --json", "{\"", "", 0},
                {"nothing", "", "parley: ", 3},
                {"images", "", "parley: ", 3},
                {"tiny --mmproj nothing", "", "parley: ", 2}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        snprintf(words, sizeof words, "parley inspect -m %s/%s", DATA, ROWS[i].path);
        CHECK_INT(run(command_inspect, words), ROWS[i].code);
        CHECK(strncmp(said_out, ROWS[i].out, strlen(ROWS[i].out)) == 0 && !said_out[0] == !ROWS[i].out[0]);
        CHECK(strncmp(said_err, ROWS[i].error, strlen(ROWS[i].error)) == 0 &&
              !said_err[0] == !ROWS[i].error[0]);
    }
    /* A folder of several, and one with a single model in a folder of its own: a list. */
    snprintf(words, sizeof words, "parley inspect -m %s --json", DATA);
    CHECK_INT(run(command_inspect, words), 0);
    CHECK(said_out[0] == '[' && strstr(said_out, "\"tiny\"") && strstr(said_out, "\"tiny_moe\""));
    snprintf(one, sizeof one, "%s/one", folder);
    snprintf(cached, sizeof cached, "%s/tiny", one);
    CHECK(mkdir(one, 0700) == 0 && symlink(PARLEY_SOURCE_DIR "/tests/data/tiny", cached) == 0);
    snprintf(words, sizeof words, "parley inspect -m %s --json", one);
    CHECK_INT(run(command_inspect, words), 0);
    CHECK(said_out[0] == '[' && strstr(said_out, "\"tiny\"") && !strstr(said_out, "tiny_moe"));
}

/* ---- what commands share ---- */

static void test_exit_codes(void)
{
    static const struct {
        err_code err;
        int code;
    } CODES[] = {{ERR_NOMEM, 4},   {ERR_NOT_FOUND, 3}, {ERR_CORRUPT, 3}, {ERR_UNSUPPORTED, 3},
                 {ERR_INVALID, 2}, {ERR_IO, 1},        {ERR_INTERNAL, 1}};
    for (size_t i = 0; i < ARRAY_LEN(CODES); i++) {
        const err_detail d = {.text = "why"};
        said_begin();
        const int code = command_fail(CODES[i].err, &d);
        said_end();
        CHECK_INT(code, CODES[i].code);
        CHECK_STR(said_err, "parley: why\n");
    }
    bytes text = bytes_empty(4);
    err_detail d;
    bytes_append_str(&text, "abcd");
    said_begin();
    const err_code err = command_print(&text, &d);
    said_end();
    CHECK_INT(err, ERR_OK);
    CHECK_STR(said_out, "abcd");
    bytes_append_str(&text, "e");
    said_begin();
    CHECK_INT(command_print(&text, &d), ERR_NOMEM);
    said_end();
    CHECK_STR(said_out, "");
    CHECK_STR(d.text, "there is not enough memory for the output");
    bytes_deinit(&text);
    CHECK_HAS(command_default_model(), "/../assets/seedling");
}

static void test_engine_options(void)
{
    engine_options e;
    options o = line("parley");
    o.model = "M";
    CHECK(command_engine_options(&e, &o));
    CHECK_STR(e.model_dir, "M");
    CHECK(!e.reasoning_form && !e.published_history && !e.hoist_system && !e.share_cache && !e.no_draft &&
          !e.spread && !e.exact);
    CHECK(!e.huge_pages && !e.lock_memory && !e.sparse.on && !e.cache_disk && !e.mmproj && !e.template_file &&
          !e.defaults.has_seed);
    CHECK_INT(e.n_queue, LIMIT_QUEUE);
    CHECK_INT(e.cache_mib, -1);
    CHECK_INT(e.vision_cache_mib, -1);
    CHECK_INT(e.cache_disk_mib, 4096);
    CHECK_INT(e.layer_bits, 0);
    CHECK_INT(e.head_bits, 0);
    CHECK_INT(e.vision_bits, 0);
    CHECK_INT(e.videos.max_bytes, LIMIT_VIDEO_BYTES);
    CHECK_INT(e.videos.max_memory, LIMIT_VIDEO_MEMORY);
    CHECK_INT(e.default_max_tokens, LIMIT_MAX_TOKENS_DEFAULT);
    CHECK_STR(e.video_program, "/proc/self/exe");
    CHECK_INT(e.cpu_mask, ~0u);
    CHECK(isnan(e.defaults.temperature));
    CHECK_INT(e.defaults.think_tokens, -1);
    options_deinit(&o);

    o = line("parley -m M --mmproj P --chat-template-file T --reasoning-parser think --template-history "
             "published --late-system "
             "hoist -c 1000 -np 3 --queue 5 -b 32 --cache-type q8 --cache-ram 7 --cache-disk D "
             "--cache-disk-mib 8 --vision-cache 9 "
             "--mem-limit 10 --cache-scope all --no-mtp --draft-model S --spec-prefill "
             "--spec-prefill-threshold 11 "
             "--spec-prefill-max 12 --spec-prefill-keep 0.5 --spec-prefill-backbone 0.25 --prompt-lookup 13 "
             "-t 2 --numa spread "
             "--huge-pages --mlock --max-images 14 --max-image-pixels 1000");
    CHECK(command_engine_options(&e, &o));
    CHECK_STR(e.mmproj, "P");
    CHECK_STR(e.template_file, "T");
    CHECK_STR(e.reasoning_form, "think");
    CHECK(e.published_history && e.hoist_system && e.share_cache && e.no_draft && e.spread && e.huge_pages &&
          e.lock_memory);
    CHECK_INT(e.n_ctx, 1000);
    CHECK_INT(e.n_parallel, 3);
    CHECK_INT(e.n_queue, 5);
    CHECK_INT(e.prefill_chunk, 32);
    CHECK_STR(e.cache_type, "q8");
    CHECK_INT(e.cache_mib, 7);
    CHECK_STR(e.cache_disk, "D");
    CHECK_INT(e.cache_disk_mib, 8);
    CHECK_INT(e.vision_cache_mib, 9);
    CHECK_INT(e.mem_limit_mib, 10);
    CHECK_STR(e.sparse.draft_dir, "S");
    CHECK(e.sparse.on);
    CHECK_INT(e.sparse.threshold, 11);
    CHECK_INT(e.sparse.most, 12);
    CHECK_NEAR(e.sparse.keep, 0.5, 1e-6);
    CHECK_NEAR(e.sparse.backbone, 0.25, 1e-6);
    CHECK_INT(e.prompt_lookup, 13);
    CHECK_INT(e.n_threads, 2);
    CHECK_INT(e.max_images, 14);
    CHECK_INT(e.max_image_pixels, 1000);
    options_deinit(&o);
}

static void test_answer_options(void)
{
    engine_options e;
    options o = line(
        "parley --max-video-mib 2 --max-video-pixels 300 --max-video-frames 4 --max-video-duration 5 "
        "--max-video-time 6 "
        "--media-mem 7 --video-outer-pair --n-predict 8 --temp 0.5 --top-k 9 --top-p 0.25 --min-p 0.125 "
        "--repeat-penalty 1.5 "
        "--presence-penalty 1.25 --frequency-penalty 0.75 --seed 10 --reasoning-budget 11 --cache-scope none "
        "--no-prefix-cache --cache-disk D");
    CHECK(command_engine_options(&e, &o));
    CHECK_INT(e.videos.max_bytes, 2 << 20);
    CHECK_INT(e.videos.max_pixels, 300);
    CHECK_INT(e.videos.max_frames, 4);
    CHECK_NEAR(e.videos.max_duration_s, 5, 0);
    CHECK_NEAR(e.videos.max_time_s, 6, 0);
    CHECK_INT(e.videos.max_memory, 7 << 20);
    CHECK(e.video_outer_pair && e.defaults.has_seed);
    CHECK_INT(e.default_max_tokens, 8);
    CHECK_NEAR(e.defaults.temperature, 0.5, 0);
    CHECK_INT(e.defaults.top_k, 9);
    CHECK_NEAR(e.defaults.top_p, 0.25, 0);
    CHECK_NEAR(e.defaults.min_p, 0.125, 0);
    CHECK_NEAR(e.defaults.repetition_penalty, 1.5, 0);
    CHECK_NEAR(e.defaults.presence_penalty, 1.25, 0);
    CHECK_NEAR(e.defaults.frequency_penalty, 0.75, 0);
    CHECK_INT(e.defaults.seed, 10);
    CHECK_INT(e.defaults.think_tokens, 11);
    CHECK_INT(e.cache_mib, 0);
    CHECK_INT(e.vision_cache_mib, 0);
    CHECK(!e.cache_disk && !e.share_cache);
    options_deinit(&o);

    o = line("parley --no-prefix-cache --cache-ram 7 --vision-cache 9");
    CHECK(command_engine_options(&e, &o));
    CHECK_INT(e.cache_mib, 0);
    CHECK_INT(e.vision_cache_mib, 9);
    options_deinit(&o);

    o = line("parley run --reasoning-parser auto"); /* one answer at a time, nothing is kept */
    CHECK(command_engine_options(&e, &o));
    CHECK_INT(e.n_parallel, 1);
    CHECK_INT(e.cache_mib, 0);
    CHECK_INT(e.vision_cache_mib, 0);
    CHECK(!e.reasoning_form && !e.cache_disk);
    options_deinit(&o);
}

static void test_weight_options(void)
{
    engine_options e;
    options o;
    static const struct {
        const char *words;
        int layers, head, vision;
        bool is_exact;
    } BITS[] = {{"parley run --quantize q8", 8, 8, 8, false},
                {"parley run --quantize q4", 4, 8, 8, false},
                {"parley run --quantize q4 --quantize-head q4", 4, 4, 8, false},
                {"parley run --quantize q8 --quantize-head none", 8, 0, 8, false},
                {"parley run --quantize-head q8", 0, 8, 0, false},
                {"parley run --quantize q8 --compute exact", 8, 8, 0, true},
                {"parley run --compute exact --quantize-vision q8", 0, 0, 8, true},
                {"parley run --quantize q8 --quantize-vision none", 8, 8, 0, false}};
    for (size_t i = 0; i < ARRAY_LEN(BITS); i++) {
        o = line(BITS[i].words);
        CHECK(command_engine_options(&e, &o));
        CHECK_INT(e.layer_bits, BITS[i].layers);
        CHECK_INT(e.head_bits, BITS[i].head);
        CHECK_INT(e.vision_bits, BITS[i].vision);
        CHECK_INT(e.exact, BITS[i].is_exact);
        options_deinit(&o);
    }
    o = line("parley run");
    const char **const WORDS[] = {&o.quantize, &o.quantize_head, &o.quantize_vision, &o.cpu};
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        const char *was = *WORDS[i];
        *WORDS[i] = "nonsense";
        said_begin();
        CHECK(!command_engine_options(&e, &o));
        said_end();
        *WORDS[i] = was;
    }
    o.reasoning_parser = "nonsense";
    said_begin();
    CHECK(!command_engine_options(&e, &o));
    said_end();
    CHECK(strncmp(said_err, "parley: --reasoning-parser nonsense is unknown; it may be auto, ", 64) == 0);
    options_deinit(&o);
}

static void test_upload_folder(void)
{
    char out[PATH_MAX], expected[256];
    setenv("TMPDIR", folder, 1);
    snprintf(expected, sizeof expected, "%s/parley-%u", folder, (unsigned)geteuid());
    for (int i = 0; i < 2; i++) { /* made, then found */
        CHECK_STR(upload_folder(out), expected);
        struct stat st;
        CHECK(stat(out, &st) == 0 && (st.st_mode & 07777) == 0700);
    }
    static const mode_t OPEN[] = {0710, 0701, 0720, 0702};
    for (size_t i = 0; i < ARRAY_LEN(OPEN); i++) { /* others could look into it */
        CHECK(chmod(expected, OPEN[i]) == 0);
        said_begin();
        CHECK_STR(upload_folder(out), folder);
        said_end();
        CHECK_HAS(said_err, "is not a folder of this user alone: uploads are kept in ");
    }
    CHECK(rmdir(expected) == 0 && symlink("/tmp", expected) == 0); /* where another leads to */
    said_begin();
    CHECK_STR(upload_folder(out), folder);
    said_end();
    unlink(expected);
    setenv("TMPDIR", "/nowhere/at/all", 1);
    said_begin();
    CHECK_STR(upload_folder(out), "/nowhere/at/all");
    said_end();
    CHECK_STR(said_err, "");
    setenv("TMPDIR", "", 1);
    CHECK(strncmp(upload_folder(out), "/var/tmp", 8) == 0);
    unsetenv("TMPDIR");
    CHECK(strncmp(upload_folder(out), "/var/tmp", 8) == 0);

    /* One of another user; a place whose name leaves no room; a folder that is gone again. */
    setenv("TMPDIR", folder, 1);
    is_of_another = true;
    said_begin();
    CHECK_STR(upload_folder(out), folder);
    said_end();
    is_of_another = false;
    CHECK_HAS(said_err, "is not a folder of this user alone: uploads are kept in ");
    one_fails("lstat", 1);
    said_begin();
    CHECK_STR(upload_folder(out), folder);
    said_end();
    CHECK(one_fails_over());
    CHECK_STR(said_err, "");
    static char longest[PATH_MAX];
    for (int n = 0; n < 2; n++) {
        memset(longest, '/', sizeof longest);
        memcpy(longest, folder, strlen(folder));
        longest[PATH_MAX - strlen(expected) + strlen(folder) - (n == 0)] = '\0';
        setenv("TMPDIR", longest, 1);
        CHECK_INT(strlen(upload_folder(out)), n == 0 ? PATH_MAX - 1 : (int)strlen(longest));
    }
}

int main(void)
{
    folder_make(folder);
    setenv("PARLEY_CONFIG", "none", 1);
    unsetenv("HF_HOME");
    log_set_level(LOG_WARN);
    test_health();
    test_status();
    test_stop();
    CHECK_ALL_CLOSED();
    test_hub();
    test_licenses();
    test_inspect();
    test_exit_codes();
    test_engine_options();
    test_answer_options();
    test_weight_options();
    test_upload_folder();
    CHECK_DONE();
}
