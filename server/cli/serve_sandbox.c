#include "server/cli/serve_sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/engine.h"
#include "server/cli/command.h"
#include "server/cli/options_table.h"
#include "server/sandbox.h"

/* Options with which the server itself opens connections. */
static const char *const CONNECTING[] = {"media-domains", "upstream"};

static bool connects(const options *o)
{
    size_t n;
    const option_row *rows = option_rows(&n);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < ARRAY_LEN(CONNECTING); k++) {
            if (strcmp(rows[i].name, CONNECTING[k]) == 0 && o->sources[i] != SOURCE_STANDARD) {
                return true;
            }
        }
    }
    return false;
}

static size_t count_threads(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/task");
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        n += e->d_name[0] != '.';
    }
    if (d) {
        closedir(d);
    }
    return n;
}

/* Whether a command is one of them; without one the program serves. */
static bool is_one_of(const char *word, const char *const *words, size_t n)
{
    bool found = !word || word[0] == '-';
    for (size_t i = 0; i < n; i++) {
        found = found || strcmp(word, words[i]) == 0;
    }
    return found;
}

static bool has_idle_threads(void)
{
    const char *n_threads = getenv("OPENBLAS_NUM_THREADS");
    const sandbox_support there = sandbox_look();
    return !there.is_sanitized && there.landlock && count_threads() > 1 &&
           !(n_threads && strcmp(n_threads, "1") == 0);
}

void serve_sandbox_start_again(char **argv)
{
    static const char *const SERVING[] = {"serve", "chat"}, *const COMPUTING[] = {"serve", "chat", "run",
                                                                                  "bench"};
    const char *word = argv[0] ? argv[1] : NULL, *core = NULL;
    char program[PATH_MAX];
    if (is_one_of(word, COMPUTING, ARRAY_LEN(COMPUTING)) && !getenv("OPENBLAS_CORETYPE")) {
        core = engine_wanted_blas();
    }
    const bool sheds = is_one_of(word, SERVING, ARRAY_LEN(SERVING)) && has_idle_threads();
    if (!core && !sheds) {
        return;
    }
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n > 0 && (!core || setenv("OPENBLAS_CORETYPE", core, 1) == 0) &&
        (!sheds || setenv("OPENBLAS_NUM_THREADS", "1", 1) == 0)) {
        program[n] = '\0';
        execv(program, argv); /* if it fails, it is slower, and the sandbox says what it does not hold */
    }
}

/* The folder that a path is in. */
static const char *folder_of(char out[PATH_MAX], const char *path)
{
    const char *slash = strrchr(path, '/');
    const int n = slash == path ? 1 : slash ? (int)(slash - path) : 0;
    snprintf(out, PATH_MAX, "%.*s", n, path);
    return slash ? out : ".";
}

/* A file that is replaced by another one of its name is read again if its folder may be: but not all
 * of a home, or of a folder at the root. */
static void allow_with_folder(sandbox *s, const char *path, sandbox_use use)
{
    char folder[PATH_MAX], full[PATH_MAX];
    const char *home = getenv("HOME");
    if (!path) {
        return;
    }
    sandbox_allow(s, path, use);
    const bool is_deep = realpath(folder_of(folder, path), full) && strchr(full + 1, '/');
    if (is_deep && (!home || strncmp(home, full, strlen(full)) != 0)) {
        sandbox_allow(s, full, use);
    }
}

/* What the files of a model's folder, and of the one of its draft head, lead to: a hub's cache keeps
 * links there. */
static void allow_linked(sandbox *s, const char *path)
{
    static const char *const PARTS[] = {"", "mtp"};
    char folder[PATH_MAX], file[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(PARTS); i++) {
        DIR *d = file_join(folder, sizeof folder, path, PARTS[i]) ? opendir(folder) : NULL;
        for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
            struct stat st;
            if (file_join(file, sizeof file, folder, e->d_name) && lstat(file, &st) == 0 &&
                S_ISLNK(st.st_mode)) {
                sandbox_allow(s, file, SANDBOX_READ);
            }
        }
        if (d) {
            closedir(d);
        }
    }
}

/* A model is a folder, or a file with others of its kind beside it: perhaps in a home, of which nothing
 * else is read. */
static void allow_model(sandbox *s, const char *path)
{
    static const char END[] = ".gguf";
    char folder[PATH_MAX], file[PATH_MAX];
    struct stat st;
    if (!path || stat(path, &st) != 0) {
        return;
    }
    sandbox_allow(s, path, SANDBOX_READ);
    if (S_ISDIR(st.st_mode)) {
        allow_linked(s, path);
        return;
    }
    sandbox_allow(s, folder_of(folder, path), SANDBOX_LIST);
    DIR *d = opendir(folder_of(folder, path));
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        const size_t n = strlen(e->d_name), n_end = sizeof END - 1;
        if (n > n_end && strcmp(e->d_name + n - n_end, END) == 0 &&
            file_join(file, sizeof file, folder_of(folder, path), e->d_name)) {
            sandbox_allow(s, file, SANDBOX_READ);
        }
    }
    if (d) {
        closedir(d);
    }
}

/* The C library reads tables of charsets when a text needs them: built-in tools read such texts. */
static void allow_charsets(sandbox *s, const char *library)
{
    char path[PATH_MAX], folder[PATH_MAX];
    if (strstr(library, "/libc.so") && file_join(path, sizeof path, folder_of(folder, library), "gconv")) {
        sandbox_allow(s, path, SANDBOX_BELOW);
    }
}

/* The libraries of this process, so that the one that reads videos can start: each by itself, as their
 * folders have programs, too. */
static void allow_program(sandbox *s)
{
    char line[PATH_MAX + 128];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps)) {
        char *path = strchr(line, '/');
        if (path) {
            path[strcspn(path, "\n")] = '\0';
            allow_charsets(s, path);
            sandbox_allow(s, path,
                          strstr(path, "/ld-linux") || strstr(path, "/ld-musl") ? SANDBOX_RUN : SANDBOX_READ);
        }
    }
    if (maps) {
        fclose(maps);
    }
    sandbox_allow(s, "/proc/self/exe", SANDBOX_RUN);
    sandbox_allow(s, "/etc/ld.so.cache", SANDBOX_READ);
}

static void allow_system(sandbox *s, bool has_names)
{
    static const char *const READ[] = {"/proc/self/",
                                       "/proc/meminfo",
                                       "/proc/pressure",
                                       "/proc/cpuinfo",
                                       "/sys/devices/system/cpu",
                                       "/sys/devices/system/node",
                                       "/sys/fs/cgroup",
                                       "/dev/urandom"};
    static const char *const NAMES[] = {"/etc/resolv.conf",
                                        "/etc/hosts",
                                        "/etc/nsswitch.conf",
                                        "/etc/host.conf",
                                        "/etc/gai.conf",
                                        "/etc/ssl",
                                        "/usr/lib/ssl",
                                        "/usr/share/ca-certificates",
                                        "/usr/local/share/ca-certificates"};
    for (size_t i = 0; i < ARRAY_LEN(READ); i++) {
        sandbox_allow(s, READ[i], SANDBOX_READ);
    }
    for (size_t i = 0; has_names && i < ARRAY_LEN(NAMES); i++) {
        sandbox_allow(s, NAMES[i], SANDBOX_READ);
    }
    sandbox_allow(s, "/dev/null", SANDBOX_WRITE);
}

/* A folder that is written to; it is made here, as its own may not be written to later. */
static void allow_own_folder(sandbox *s, const char *path, mode_t mode)
{
    if (path && (mkdir(path, mode) == 0 || errno == EEXIST)) {
        sandbox_allow(s, path, SANDBOX_WRITE);
    }
}

/* Where --quantize keeps what it has made. */
static void allow_cache(sandbox *s)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char path[PATH_MAX];
    const bool own = base && base[0] == '/';
    if (!own && (!home || home[0] != '/')) {
        return;
    }
    snprintf(path, sizeof path, "%s%s", own ? base : home, own ? "" : "/.cache");
    (void)mkdir(path, 0755); /* what goes wrong is said when it is used */
    snprintf(path, sizeof path, "%s%s/parley", own ? base : home, own ? "" : "/.cache");
    allow_own_folder(s, path, 0755);
}

static void allow_options(sandbox *s, const options *o, const char *uploads)
{
    const char *credentials = getenv("CREDENTIALS_DIRECTORY");
    char folder[PATH_MAX];
    allow_model(s, o->model);
    allow_model(s, o->mmproj);
    allow_model(s, o->draft_model);
    sandbox_allow(s, o->models_dir, SANDBOX_READ);
    sandbox_allow(s, o->chat_template_file, SANDBOX_READ);
    sandbox_allow(s, o->warm_prompts, SANDBOX_READ);
    sandbox_allow(s, o->ui_dir, SANDBOX_READ);
    sandbox_allow(s, o->media_path, SANDBOX_READ);
    sandbox_allow(s, credentials, SANDBOX_READ);
    allow_with_folder(s, o->api_key_file, SANDBOX_READ);
    allow_with_folder(s, o->upstream_ca, SANDBOX_READ);
    allow_with_folder(s, o->log_file, SANDBOX_WRITE);
    sandbox_allow(s, uploads, SANDBOX_WRITE);
    allow_own_folder(s, o->history, S_IRWXU);
    allow_own_folder(s, o->cache_disk, S_IRWXU);
    allow_cache(s);
    for (const char *at = o->host ? strstr(o->host, "unix:/") : NULL; at; at = strstr(at + 1, "unix:/")) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%.*s", (int)strcspn(at + 5, ", "), at + 5);
        sandbox_allow(s, folder_of(folder, path), SANDBOX_SOCKET);
    }
}

/* Models of a hub are read from its cache, whose folders are made here, as they may not be made later. */
static void allow_hub(sandbox *s, const char *cache)
{
    char path[PATH_MAX];
    for (const char *slash = cache ? strchr(cache + 1, '/') : NULL; cache; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof path, "%.*s", slash ? (int)(slash - cache) : (int)strlen(cache), cache);
        if ((mkdir(path, 0755) != 0 && errno != EEXIST) || !slash) {
            break;
        }
    }
    sandbox_allow(s, cache, SANDBOX_READ);
}

void serve_sandbox_begin(serve_sandbox *box, const options *o, const char *uploads, const mcp_config *mcp,
                         const char *hub_cache)
{
    const sandbox_support there = sandbox_look();
    *box = (serve_sandbox){.is_on = o->sandbox && !there.is_sanitized,
                           .connects = connects(o) || mcp_config_connects(mcp)};
    if (!o->sandbox) {
        log_warn("srv", "--no-sandbox: whoever takes this process over has all that its user has");
        return;
    }
    if (there.is_sanitized) {
        return;
    }
    uint8_t warm[HASH_BYTES];
    hash_sha256(warm, "", 0); /* the library reads its settings with the first call */
    sandbox *s = sandbox_create(box->connects);
    if (s) {
        allow_program(s);
        allow_system(s, box->connects);
        allow_options(s, o, uploads);
        allow_hub(s, hub_cache);
        for (size_t i = 0; mcp && i < mcp->n; i++) {
            sandbox_allow(s, mcp->servers[i].folder, SANDBOX_BELOW);
        }
    } else {
        log_warn("srv", "sandbox: this kernel has no Landlock, so files stay as they are; see parley doctor");
    }
    if (count_threads() > 1) {
        log_warn("srv", "sandbox: threads of a library began before it, and keep what it takes");
    }
    if (!sandbox_enter_files(s)) {
        log_warn("srv", "sandbox: the kernel refused to close files: %s", strerror(errno));
    }
}

void serve_sandbox_listening(const serve_sandbox *box)
{
    if (box->is_on && !sandbox_enter_calls(box->connects)) {
        log_warn("srv", "sandbox: the kernel refused to close system calls: %s", strerror(errno));
    }
}
