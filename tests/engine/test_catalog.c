/* catalog: which folders and files are models, their names, damaged ones, what changes on the disk,
 * and names that lead nowhere. */
#include "engine/catalog.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "engine/inspect.h"
#include "tests/open_files.h"
#include "tests/model/tool.h"
#include "tests/said.h"

enum { PATH_BYTES = 4096 };

static const char *in(const char *root, const char *name)
{
    static char paths[4][PATH_BYTES];
    static int next;
    char *path = paths[next++ % 4];
    CHECK(snprintf(path, PATH_BYTES, "%.1000s/%.1000s", root, name) < PATH_BYTES);
    return path;
}

/* The small checkpoint as a folder of links. */
static void add_folder(const char *root, const char *name)
{
    const char *files[] = {"config.json", "model.safetensors", "model-mtp.safetensors", "tokenizer.json"};
    CHECK_INT(mkdir(in(root, name), 0700), 0);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char link_path[PATH_BYTES];
        snprintf(link_path, sizeof link_path, "%.1000s/%.100s/%s", root, name, files[i]);
        CHECK_INT(symlink(in(check_data("tiny"), files[i]), link_path), 0);
    }
}

static void remove_all(const char *path)
{
    char child[PATH_BYTES];
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            snprintf(child, sizeof child, "%s/%s", path, e->d_name);
            struct stat st;
            if (lstat(child, &st) == 0 && S_ISDIR(st.st_mode)) {
                remove_all(child);
            } else {
                CHECK_INT(unlink(child), 0);
            }
        }
    }
    if (d) {
        closedir(d);
    }
    CHECK_INT(rmdir(path), 0);
}

static void copy(const char *from, const char *to, long n_bytes)
{
    FILE *in_file = fopen(from, "rb"), *out = fopen(to, "wb");
    CHECK(in_file && out);
    for (int c; n_bytes-- > 0 && in_file && out && (c = fgetc(in_file)) != EOF;) {
        fputc(c, out);
    }
    if (in_file) {
        fclose(in_file);
    }
    if (out) {
        CHECK_INT(fclose(out), 0);
    }
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Folders, a file with its vision tower, a damaged folder and file, side files alone, and what is
 * none of these. */
static void fill(const char *root)
{
    add_folder(root, "tiny");
    CHECK_INT(mkdir(in(root, "org"), 0700), 0);
    add_folder(root, "org/second");
    CHECK_INT(tool_run_3("make_gguf", check_data("tiny"), in(root, "packed.gguf"), "q8_0"), 0);
    CHECK_INT(rename(in(root, "mmproj-packed.gguf"), in(root, "eyes.gguf")),
              0); /* known by its header alone */
    CHECK_INT(mkdir(in(root, "org/alone"), 0700), 0);
    copy(in(root, "packed.gguf"), in(root, "org/alone/some-file.gguf"), 1 << 24);
    copy(in(root, "packed.gguf"), in(root, "short.gguf"), 100000);
    copy(in(root, "packed.gguf"), in(root, "parts-00002-of-00003.gguf"), 1000);
    CHECK_INT(mkdir(in(root, "empty"), 0700), 0);
    CHECK_INT(mkdir(in(root, "bare"), 0700), 0);
    write_text(in(root, "bare/config.json"), "{\"model_type\":\"qwen3_5\"}");
    write_text(in(root, "notes.txt"), "not a model");
    CHECK_INT(mkdir(in(root, ".hidden"), 0700), 0);
    write_text(in(root, ".hidden/config.json"), "{}");
    CHECK_INT(mkdir(in(root, "new\nline"), 0700), 0);
    write_text(in(root, "new\nline/config.json"), "{}");
}

static void check_names(const catalog *c, const char *expected)
{
    bytes text;
    bytes_init(&text, 1 << 16);
    for (size_t i = 0; i < catalog_count(c); i++) {
        const catalog_model *m = catalog_at(c, i);
        bytes_printf(&text, "%s%s%s", i ? " " : "", m->name, m->error ? "!" : "");
    }
    CHECK_STR(bytes_str(&text), expected);
    bytes_deinit(&text);
}

static void test_list(const catalog *c, const char *root)
{
    err_detail d = {0};
    check_names(c, "bare! org/alone org/second packed short! tiny");
    const catalog_model *m = catalog_find(c, "tiny");
    CHECK(m && m->has_vision && m->has_mtp && m->context == 32768 && m->n_bytes > 1000000);
    CHECK_STR(m ? m->family : "", "qwen3_5");
    m = catalog_find(c, "packed");
    CHECK(m && !m->has_vision && m->has_mtp); /* its vision tower has another name than *mmproj* */
    m = catalog_find(c, "bare");
    CHECK(m && strstr(m->reason, "config.json") && !strstr(m->reason, root));
    m = catalog_find(c, "short");
    CHECK(m && m->error == ERR_CORRUPT && strncmp(m->reason, "short.gguf", 10) == 0);
    static const char *const NONE[] = {
        "", ".", "..", "../tiny", "org", "org/../tiny", "/etc/passwd", "tiny/", ".hidden"};
    for (size_t i = 0; i < ARRAY_LEN(NONE); i++) {
        CHECK(catalog_find(c, NONE[i]) == NULL);
    }
    CHECK_INT(catalog_unknown(c, "secnod", &d), ERR_NOT_FOUND);
    CHECK(strstr(d.text, "nearest are org/second"));
}

/* The list again: what is new, gone, made whole, or known to be wrong. */
static void test_refresh(catalog *c, const char *root)
{
    catalog_set_error(c, "tiny", ERR_NOMEM, "too large");
    copy(in(root, "packed.gguf"), in(root, "short.gguf"), 1 << 24);
    copy(in(root, "eyes.gguf"), in(root, "mmproj-eyes.gguf"), 1 << 24);
    add_folder(root, "zebra");
    CHECK_INT(mkdir(in(root, "packed"), 0700), 0);
    write_text(in(root, "packed/config.json"), "{}");
    remove_all(in(root, "org/alone"));
    catalog_refresh(c);
    check_names(c, "bare! org/second packed! packed.gguf short tiny! zebra");
    const catalog_model *m = catalog_find(c, "packed.gguf");
    CHECK(m && m->has_vision);
    CHECK_STR(catalog_find(c, "tiny")->reason, "too large");
    CHECK_INT(unlink(in(root, "tiny/model-mtp.safetensors")), 0); /* the files changed: that may be over */
    catalog_refresh(c);
    m = catalog_find(c, "tiny");
    CHECK(m && !m->error && !m->has_mtp);
}

/* A folder whose weights lie elsewhere: they become whole, and nothing of the folder itself changes. */
static void test_whole_later(const char *root)
{
    catalog *c = NULL;
    err_detail d = {0};
    const char *weights = in(check_data("tiny"), "model.safetensors");
    CHECK_INT(mkdir(in(root, ".store"), 0700), 0);
    CHECK_INT(mkdir(in(root, "later"), 0700), 0);
    CHECK_INT(symlink(in(check_data("tiny"), "config.json"), in(root, "later/config.json")), 0);
    CHECK_INT(symlink(in(check_data("tiny"), "tokenizer.json"), in(root, "later/tokenizer.json")), 0);
    copy(weights, in(root, ".store/weights"), 1000);
    CHECK_INT(symlink(in(root, ".store/weights"), in(root, "later/model.safetensors")), 0);
    log_set_level(LOG_INFO);
    said_begin();
    const err_code err = catalog_open(&c, root, &d);
    said_end();
    log_set_level(LOG_OFF);
    CHECK_OK(err, d);
    CHECK_HAS(said_err, "<6>mod later cannot be loaded: ");
    CHECK_HAS(said_err, in(root, "later/model.safetensors"));
    if (c) {
        check_names(c, "later!");
        copy(in(check_data("tiny"), "model.safetensors"), in(root, ".store/weights"), 1 << 24);
        catalog_refresh(c);
        check_names(c, "later");
    }
    catalog_close(c);
}

/* Names that look nearly like those of parts, that cannot be shown, that are too long, and files that are none. */
static void test_odd_names(void)
{
    static const char *const FILES[] = {"a-00001-of-00002.gguf",
                                        "a-00002-of-00002.gguf",
                                        "b-00002-of-0000x.gguf",
                                        "c-0000:-of-00002.gguf",
                                        "d_00002-of-00002.gguf",
                                        "e-00002_of-00002.gguf",
                                        "f-00002-of-00002-.gguf",
                                        "-00002-of-00002.gguf",
                                        "g\x7f.gguf",
                                        "h\x1f.gguf",
                                        "i\xff.gguf",
                                        "\xc3\xa9 k.gguf",
                                        ".gguf",
                                        "l.GGUF",
                                        "m.gguf.txt",
                                        "mmproj.gguf"};
    char root[] = "/tmp/parley_catalog_XXXXXX", name[200];
    catalog *c = NULL;
    err_detail d = {0};
    CHECK(mkdtemp(root) != NULL);
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        write_text(in(root, FILES[i]), "GGUF");
    }
    for (size_t n = CATALOG_NAME_MAX - 1; n <= CATALOG_NAME_MAX; n++) {
        snprintf(name, sizeof name, "%0*d.gguf", (int)n, 7);
        write_text(in(root, name), "GGUF");
    }
    CHECK_INT(symlink("/nowhere", in(root, "gone.gguf")), 0);
    CHECK_INT(mkdir(in(root, "n.gguf"), 0700), 0); /* a folder, in spite of its name */
    write_text(in(root, "n.gguf/config.json"), "{}");
    CHECK_INT(mkdir(in(root, "o"), 0700), 0);
    CHECK_INT(mkdir(in(root, "o/p"), 0700), 0);
    write_text(in(root, "o/p/q.gguf"), "GGUF"); /* alone: it is named after its folder */
    CHECK_INT(mkdir(in(root, "o/p/r"), 0700), 0);
    write_text(in(root, "o/p/r/s.gguf"), "GGUF"); /* too deep */
    CHECK_OK(catalog_open(&c, root, &d), d);
    if (c) {
        snprintf(name, sizeof name, "%0*d! ", CATALOG_NAME_MAX - 1, 7);
        char wanted[1024];
        snprintf(wanted, sizeof wanted,
                 "-00002-of-00002! %sa! b-00002-of-0000x! c-0000:-of-00002! d_00002-of-00002! "
                 "e-00002_of-00002! f-00002-of-00002-! n.gguf! o/p! \xc3\xa9 k!",
                 name);
        check_names(c, wanted);
        /* of a folder and a file of one name the file keeps its end, whichever came first */
        CHECK(catalog_offer(c, "n.gguf", in(root, "a-00001-of-00002.gguf")));
        CHECK(catalog_find(c, "n.gguf") && catalog_find(c, "n.gguf.gguf"));
        CHECK(catalog_offer(c, "a", in(root, "n.gguf")));
        CHECK(catalog_find(c, "a") && catalog_find(c, "a.gguf"));
    }
    catalog_close(c);
    remove_all(root);
    /* A single file in the folder itself has its own name. */
    CHECK_INT(mkdir(root, 0700), 0);
    write_text(in(root, "alone.gguf"), "GGUF");
    CHECK_OK(catalog_open(&c, root, &d), d);
    if (c) {
        check_names(c, "alone!");
        char text[64], path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/a, %sb/c and %s", root, root, root);
        catalog_hide_folder(c, text, sizeof text, path); /* a folder beside it is another one */
        snprintf(path, sizeof path, "a, %sb/c and %s", root, root);
        CHECK(strncmp(text, path, sizeof text - 1) == 0 && strlen(text) == sizeof text - 1);
    }
    catalog_close(c);
    remove_all(root);
}

/* With times that were set: what is known of a file is looked at again when its time, its size or its
 * folder changes, and only then. */
static void test_stamps(const char *root_of_packed)
{
    char packed[PATH_BYTES];
    snprintf(packed, sizeof packed, "%s/packed.gguf", root_of_packed);
    static const struct {
        long n_bytes; /* then it is that long, with zeros in its header */
        time_t file_time, folder_time;
        bool is_read;
    } CASES[] = {{0, 5, 5, false}, {0, 6, 5, true}, {100, 5, 5, true}, {0, 5, 6, true}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char root[] = "/tmp/parley_catalog_XXXXXX";
        catalog *c = NULL;
        err_detail d = {0};
        struct timespec times[2] = {{5, 0}, {5, 0}};
        CHECK(mkdtemp(root) != NULL);
        copy(packed, in(root, "p.gguf"), 1 << 24);
        CHECK(utimensat(AT_FDCWD, in(root, "p.gguf"), times, 0) == 0);
        CHECK(utimensat(AT_FDCWD, root, times, 0) == 0);
        CHECK_OK(catalog_open(&c, root, &d), d);
        check_names(c, "p");
        FILE *f = fopen(in(root, "p.gguf"), "r+");
        CHECK(f && fwrite("zeros", 1, 4, f) == 4 && fclose(f) == 0);
        CHECK(CASES[i].n_bytes == 0 || truncate(in(root, "p.gguf"), CASES[i].n_bytes) == 0);
        times[1].tv_sec = CASES[i].file_time;
        CHECK(utimensat(AT_FDCWD, in(root, "p.gguf"), times, 0) == 0);
        times[1].tv_sec = CASES[i].folder_time;
        CHECK(utimensat(AT_FDCWD, root, times, 0) == 0);
        catalog_refresh(c);
        check_names(c, CASES[i].is_read ? "p!" : "p");
        catalog_close(c);
        remove_all(root);
    }
}

/* More than there may be: the rest is left out. */
static void test_many(void)
{
    char root[] = "/tmp/parley_catalog_XXXXXX", name[32];
    catalog *c = NULL;
    err_detail d = {0};
    CHECK(mkdtemp(root) != NULL);
    for (int i = 0; i < LIMIT_CATALOG_MODELS + 1; i++) {
        snprintf(name, sizeof name, "m%d.gguf", i);
        write_text(in(root, name), "GGUF");
    }
    log_set_level(LOG_WARN);
    said_begin();
    const err_code err = catalog_open(&c, root, &d);
    said_end();
    log_set_level(LOG_OFF);
    CHECK_OK(err, d);
    CHECK_INT(c ? (int)catalog_count(c) : 0, LIMIT_CATALOG_MODELS);
    char said[512];
    snprintf(
        said, sizeof said,
        "<4>mod a model in %s is left out: its name is too long or unreadable, or there are more than %d\n",
        root, LIMIT_CATALOG_MODELS);
    CHECK_STR(said_err, said);
    catalog_close(c);
    remove_all(root);
}

/* The same of a folder: of its own time, and of the time and size of its config.json; to a nanosecond. */
static void test_folder_stamps(void)
{
    static const struct {
        bool is_longer;
        struct timespec config, folder;
        bool is_read;
    } CASES[] = {{false, {5, 1}, {5, 1}, false}, {false, {6, 0}, {5, 1}, true}, {false, {5, 2}, {5, 1}, true},
                 {false, {5, 1}, {6, 0}, true},  {false, {5, 1}, {5, 0}, true}, {true, {5, 1}, {5, 1}, true}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char root[] = "/tmp/parley_catalog_XXXXXX";
        catalog *c = NULL;
        err_detail d = {0};
        struct timespec times[2] = {{5, 1}, {5, 1}};
        CHECK(mkdtemp(root) != NULL);
        add_folder(root, "f");
        CHECK_INT(unlink(in(root, "f/config.json")), 0);
        copy(in(check_data("tiny"), "config.json"), in(root, "f/config.json"), 1 << 16);
        CHECK(utimensat(AT_FDCWD, in(root, "f/config.json"), times, 0) == 0);
        CHECK(utimensat(AT_FDCWD, in(root, "f"), times, 0) == 0);
        CHECK_OK(catalog_open(&c, root, &d), d);
        check_names(c, "f");
        FILE *f = fopen(in(root, "f/config.json"), CASES[i].is_longer ? "a" : "r+");
        CHECK(f && fputs("no", f) >= 0 && fclose(f) == 0);
        times[1] = CASES[i].config;
        CHECK(utimensat(AT_FDCWD, in(root, "f/config.json"), times, 0) == 0);
        times[1] = CASES[i].folder;
        CHECK(utimensat(AT_FDCWD, in(root, "f"), times, 0) == 0);
        catalog_refresh(c);
        check_names(c, CASES[i].is_read ? "f!" : "f");
        catalog_close(c);
        remove_all(root);
    }
}

/* The nearest names, at most three, the nearest one first, and of those as near the one that is listed before; that of an
 * organisation need not be said. */
static void test_unknown(const char *root)
{
    static const char *const OFFERS[] = {"org/abcdef", "abcxyz", "abcd", "xbcd", "abzz", "other/abcx"};
    static const struct {
        const char *name;
        size_t n_offers;
        const char *said;
    } CASES[] = {{"abcd", 0, ", which holds none"},
                 {"abcde", 1, "; the nearest are org/abcdef"},
                 {"abcde", 2, "; the nearest are org/abcdef, abcxyz"},
                 {"abcde", 3, "; the nearest are abcd, org/abcdef, abcxyz"},
                 {"abcde", 4, "; the nearest are abcd, org/abcdef, xbcd"},
                 {"abcd", 6, "; the nearest are abcd, org/abcdef, other/abcx"},
                 {"abz", 6, "; the nearest are abzz, abcd, other/abcx"},
                 {"org/abcxyz", 6, "; the nearest are org/abcdef, abcxyz, other/abcx"}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        catalog *c = NULL;
        err_detail d = {0};
        char said[256];
        CHECK_INT(catalog_open(&c, NULL, NULL), ERR_OK);
        for (size_t k = 0; k < CASES[i].n_offers; k++) {
            CHECK(catalog_offer(c, OFFERS[k], in(root, "tiny")));
        }
        snprintf(said, sizeof said, "there is no model %s, neither as a path nor in %s", CASES[i].name,
                 CASES[i].said);
        CHECK_INT(catalog_unknown(c, CASES[i].name, &d), ERR_NOT_FOUND);
        CHECK_STR(d.text, said);
        catalog_close(c);
    }
}

static void test_inspect(const char *root)
{
    bytes out;
    err_detail d = {0};
    bytes_init(&out, 1 << 20);
    CHECK_OK(inspect_folder(&out, root, false, &d), d);
    CHECK(strstr(bytes_str(&out), "org/second ") && strstr(bytes_str(&out), "cannot be loaded: "));
    bytes_clear(&out);
    CHECK_OK(inspect_folder(&out, root, true, &d), d);
    CHECK(strstr(bytes_str(&out), "{\"name\":\"bare\",\"error\":\"") &&
          strstr(bytes_str(&out), "\"weight_bytes_q4\":"));
    bytes_clear(&out);
    CHECK_INT(inspect_folder(&out, in(root, "empty"), false, &d), ERR_NOT_FOUND);
    bytes_deinit(&out);
}

/* A name of that many bytes for the root, in a path of that many; whether it is taken, and then found again. */
static bool offers(catalog *c, size_t n_name, size_t n_path)
{
    char name[2 * CATALOG_NAME_MAX] = "", path[2 * PATH_BYTES] = "";
    memset(name, 'n', n_name);
    memset(path, '/', n_path);
    const bool taken = catalog_offer(c, name, path);
    CHECK_INT((int)catalog_count(c), taken);
    CHECK((catalog_find(c, name) != NULL) == taken);
    catalog_withdraw(c, name);
    CHECK_INT((int)catalog_count(c), 0);
    return taken;
}

/* Both sides of what a list has room for. */
static void test_long_offers(void)
{
    catalog *c = NULL;
    CHECK_INT(catalog_open(&c, NULL, NULL), ERR_OK);
    CHECK(offers(c, CATALOG_NAME_MAX - 1, 10));
    CHECK(!offers(c, CATALOG_NAME_MAX, 10));
    CHECK(offers(c, 5, PATH_BYTES - 1));
    CHECK(!offers(c, 5, PATH_BYTES));
    catalog_close(c);
}

/* Models that are elsewhere, in a list without a folder. */
static void test_offers(const char *root)
{
    catalog *c = NULL;
    CHECK_INT(catalog_open(&c, NULL, NULL), ERR_OK);
    CHECK_INT((int)catalog_count(c), 0);
    CHECK(catalog_offer(c, "org/tiny", in(root, "tiny")));
    CHECK(catalog_offer(c, "org/gone", "/nowhere"));
    const catalog_model *m = catalog_find(c, "org/tiny");
    CHECK(m && m->error == ERR_OK && m->n_bytes > 0);
    CHECK_INT((int)catalog_count(c), 1); /* what is not there is not listed */
    CHECK(catalog_offer(c, "org/tiny", in(root, "tiny")));
    CHECK_INT((int)catalog_count(c), 1);
    char text[64];
    catalog_hide_folder(c, text, sizeof text, "/a/path");
    CHECK_STR(text, "/a/path");
    catalog_withdraw(c, "org/tiny");
    catalog_withdraw(c, "org/other");
    CHECK_INT((int)catalog_count(c), 0);
    catalog_close(c);
}

int main(void)
{
    char root[] = "/tmp/parley_catalog_XXXXXX";
    catalog *c = NULL;
    err_detail d = {0};
    log_set_level(LOG_OFF);
    log_set_format(LOG_JOURNAL);
    CHECK_INT(catalog_open(&c, "/nowhere", &d), ERR_NOT_FOUND);
    CHECK(mkdtemp(root) != NULL);
    fill(root);
    CHECK_OK(catalog_open(&c, root, &d), d);
    if (c) {
        test_list(c, root);
        test_refresh(c, root);
        test_offers(root);
        test_long_offers();
        test_inspect(root);
        test_stamps(root);
        test_folder_stamps();
        test_unknown(root);
    }
    char other[] = "/tmp/parley_catalog_XXXXXX";
    CHECK(mkdtemp(other) != NULL);
    test_whole_later(other);
    remove_all(other);
    test_many();
    test_odd_names();
    remove_all(root);
    const size_t n = c ? catalog_count(c) : 0;
    if (c) {
        log_set_level(LOG_INFO);
        said_begin();
        catalog_refresh(c); /* the folder is gone: the old list stays */
        said_end();
        CHECK_HAS(said_err, "<4>mod --models-dir ");
        CHECK_HAS(said_err, "there is no such folder");
        log_set_level(LOG_OFF);
        CHECK(n > 0 && catalog_count(c) == n);
    }
    catalog_close(c);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
