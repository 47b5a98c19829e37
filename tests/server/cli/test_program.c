/* The program as it is started: each command is the one that is called, with its exit code, what must be right before one
 * is, and what becomes of output that nobody takes. What the commands do has tests of its own. */
#include <fcntl.h>
#include <signal.h>

#include "base/compiler.h"
#include "tests/folder.h"
#include "tests/model/tool.h"
#include "tests/said.h"

#define TINY PARLEY_SOURCE_DIR "/tests/data/tiny"

static int run(const char *first, const char *second, const char *third, const char *fourth)
{
    said_begin();
    const int code = tool_run_4("parley", first, second, third, fourth);
    said_end();
    return code;
}

static void test_commands(void)
{
    static const struct {
        const char *words[4];
        int code;
        const char *out, *error; /* what it begins with */
    } ROWS[] = {
        {{"--version"}, 0, "parley " PARLEY_VERSION "\n", ""},
        {{"nonsense"}, 2, "", "parley: "},
        {{"--licenses"}, 0, "== Parley ==\n\nMIT License", ""},
        {{"doctor"}, 0, "kernel ", ""},
        {{"convert", "in"}, 2, "", "parley: convert needs a checkpoint folder"},
        {{"health", "--port", "1"}, 1, "", "parley: 127.0.0.1 port 1: no server answers there"},
        {{"status", "--json", "--port", "1"}, 1, "", "parley: 127.0.0.1 port 1: no server answers there"},
        {{"stop", "--port", "1"}, 1, "", "parley: 127.0.0.1 port 1: no server answers there"},
        {{"pull"}, 2, "", "parley: which model? parley pull"},
        {{"remove"}, 2, "", "parley: which model? parley remove"},
        {{"list", "--json"}, 0, "[]\n", ""},
        {{"inspect", "-m", TINY}, 0, "folder  ", ""},
        {{"inspect", TINY "/.."}, 0, "name  ", ""},
        {{"inspect", "--models-dir", TINY "/.."}, 0, "name  ", ""}, /* all of them */
        {{"-q", "--check", "--models-dir", TINY "/.."}, 0, "ok: model qwen3_embedding, ", ""}, /* the first */
        {{"bench", "-m", "/nowhere"}, 3, "", "parley: there is no model folder at /nowhere"},
        {{"run", "-m", "/nowhere", "Hi"}, 3, "", "parley: there is no model folder at /nowhere"},
        {{"run", "-m", "org/none", "Hi"},
         3,
         "",
         "parley: there is no model org/none, neither as a path nor in "},
        {{"serve", "--check", "-m", TINY}, 0, "ok: model tiny, context ", "20"}, /* it logs */
        {{"-q", "--check", "-m", TINY}, 0, "ok: model tiny, context ", ""},
        {{"--check", "--upstream", "u=http://127.0.0.1:1"}, 0, "", ""},
        {{"--check", "-m", TINY, "--log-file=/nowhere/log"},
         2,
         "",
         "parley: the log file /nowhere/log cannot be opened"},
        {{"--check", "-m", TINY, "--log-format=json"}, 0, "ok: model tiny, context ", "{\"time\":"},
        {{"--check", "-q", "-m", TINY "/../none"}, 3, "", "parley: "},
        {{"chat", "--connect", "http://127.0.0.1:1", "-m=name"}, 0, "", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const char *const *w = ROWS[i].words;
        const int code = run(w[0], w[1], w[2], w[3]);
        const char *out = ROWS[i].out, *error = ROWS[i].error;
        if (code != ROWS[i].code || strncmp(said_out, out, strlen(out)) != 0 ||
            strncmp(said_err, error, strlen(error)) != 0 || (error[0] == '\0') != (said_err[0] == '\0')) {
            fprintf(stderr, "parley %s %s %s %s ends with %d, not %d:\n%.300s----\n%.600s\n", w[0],
                    w[1] ? w[1] : "", w[2] ? w[2] : "", w[3] ? w[3] : "", code, ROWS[i].code, said_out,
                    said_err);
            check_failures++;
        }
    }
}

/* A model of a hub that is in the cache is found by its name, and a folder of models is shown without -m. */
static void test_cached(const char *cache)
{
#define COMMIT "0123456789abcdef0123456789abcdef01234567"
    static const char *const FOLDERS[] = {"", "/refs", "/snapshots", "/snapshots/" COMMIT};
    static const char *const FILES[] = {
        "config.json",           "model.safetensors",      "tokenizer.json",
        "tokenizer_config.json", "generation_config.json", "chat_template.jinja"};
    char path[512], target[512];
    for (size_t i = 0; i < ARRAY_LEN(FOLDERS); i++) {
        snprintf(path, sizeof path, "%s/models--org--whole%s", cache, FOLDERS[i]);
        CHECK(mkdir(path, 0700) == 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        const size_t n = strlen(path);
        snprintf(target, sizeof target, TINY "/%s", FILES[i]);
        snprintf(path + n, sizeof path - n, "/%s", FILES[i]);
        CHECK(access(target, R_OK) != 0 || symlink(target, path) == 0);
        path[n] = '\0';
    }
    snprintf(target, sizeof target, "%s/models--org--whole/refs/main", cache);
    FILE *f = fopen(target, "w");
    CHECK(f && fputs(COMMIT, f) >= 0 && fclose(f) == 0);
    CHECK_INT(run("inspect", "-m", "org/whole", NULL), 0);
    CHECK_HAS(said_out, path);
    CHECK_INT(run("-q", "--check", "-m", "org/whole"), 0);
    CHECK_HAS(said_out, "ok: model ");
    CHECK_INT(run("inspect", "--models-dir", TINY, NULL), 0);
    CHECK_HAS(said_out, "folder  ");
}

/* A disk that is full, a reader that has left. */
static void test_output(void)
{
    const int kept = dup(STDOUT_FILENO), full = open("/dev/full", O_WRONLY);
    int fds[2];
    CHECK(pipe(fds) == 0 && full >= 0);
    close(fds[0]);
    static const char *const WORDS[][4] = {{"--version"},
                                           {"--help"},
                                           {"list", "--json"},
                                           {"serve", "--print-config"},
                                           {"-q", "--check", "-m", TINY}};
    for (size_t i = 0; i < 2 * ARRAY_LEN(WORDS); i++) {
        const bool is_full = i % 2 == 0;
        const char *const *w = WORDS[i / 2];
        said_begin();
        fflush(stdout);
        const int was = dup(STDOUT_FILENO);
        dup2(is_full ? full : fds[1], STDOUT_FILENO);
        const int code = tool_run_4("parley", w[0], w[1], w[2], w[3]);
        dup2(was, STDOUT_FILENO);
        close(was);
        said_end();
        CHECK_STR(said_err, is_full ? "parley: the output was not written: No space left on device\n" : "");
        CHECK_INT(code, is_full ? 1 : 0);
    }
    close(full);
    close(fds[1]);
    close(kept);
}

int main(void)
{
    char folder[FOLDER_NAME];
    folder_make(folder);
    signal(SIGPIPE, SIG_IGN); /* the program gets what this one has */
    setenv("PARLEY_CONFIG", "none", 1);
    setenv("HF_HUB_CACHE", folder, 1);
    setenv("HF_HUB_OFFLINE", "1", 1);
    unsetenv("JOURNAL_STREAM");
    const int null = open("/dev/null", O_RDONLY);
    CHECK(dup2(null, STDIN_FILENO) == STDIN_FILENO);
    close(null);
    test_commands();
    test_cached(folder);
    test_output();
    CHECK_DONE();
}
