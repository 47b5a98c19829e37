/* The prefix cache's second tier: prompts outlive the engine, belong to their owner and their model,
 * and no fault of a file or of the folder is ever more than a miss. Answers are those without a
 * cache. */
#include "tests/engine/answers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <utime.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/cache/disk_file.h"
#include "tests/model/random_families.h"
#include "tests/said.h"

/* Under TSan there is one model, and each file is damaged in one way, another one than the file before: what the
 * threads do is the same each time. */
#ifdef __SANITIZE_THREAD__
enum { WAYS_EACH = 1, N_MODELS = 1 };
#else
enum { WAYS_EACH = 4, N_MODELS = 2 };
#endif

enum { PROMPT = 5 * NN_DELTA_BLOCK + 1, MORE = NN_DELTA_BLOCK + 40, LENGTH = 12, FILES_MAX = 512 };

static uint64_t next_id = 1;

typedef struct places {
    const char *model;
    char disk[FOLDER_NAME + 16];
    const char *cache_type;
    bool no_draft;
    int64_t mib;
} places;

static engine *open_engine(const places *p)
{
    return answers_open(&(engine_options){.model_dir = p->model,
                                          .n_ctx = 1024,
                                          .n_parallel = 2,
                                          .cache_mib = 64,
                                          .vision_cache_mib = 0,
                                          .cache_disk = p->disk,
                                          .cache_disk_mib = p->mib,
                                          .cache_type = p->cache_type,
                                          .no_draft = p->no_draft,
                                          .exact = true,
                                          .n_threads = 1});
}

/* A prompt of n tokens; from token `other_at` on it is another one. */
static answer ask(engine *e, int32_t n, int32_t other_at, uint64_t scope, bool no_cache)
{
    int32_t ids[PROMPT + MORE];
    for (int32_t i = 0; i < n; i++) {
        ids[i] = 300 + (i * 7 + (i < other_at ? 0 : 13)) % 500;
    }
    return answers_to_tokens(e, ids, (size_t)n, scope, LENGTH, no_cache, next_id++);
}

static void check_same(const answer *a, const answer *b)
{
    CHECK(a->n == b->n && memcmp(a->ids, b->ids, (size_t)a->n * sizeof *a->ids) == 0);
}

/* Cached tokens of an answer, which must be the one without a cache. */
static int32_t cached(engine *e, int32_t n, int32_t other_at, uint64_t scope)
{
    const answer a = ask(e, n, other_at, scope, false), plain = ask(e, n, other_at, scope, true);
    check_same(&a, &plain);
    return a.timings.cache_n;
}

static int32_t cached_after_restart(const places *p, int32_t n, int32_t other_at, uint64_t scope)
{
    engine *e = open_engine(p);
    const int32_t got = cached(e, n, other_at, scope);
    engine_close(e);
    return got;
}

static places new_places(const char *model, int64_t mib)
{
    places p = {.model = model, .mib = mib};
    char root[FOLDER_NAME];
    folder_make(root);
    snprintf(p.disk, sizeof p.disk, "%s/kept", root);
    return p;
}

/* One prompt of PROMPT tokens, written by an engine that has ended. */
static places filled(const char *model)
{
    const places p = new_places(model, 64);
    CHECK_INT(cached_after_restart(&p, PROMPT, PROMPT, 5), 0);
    return p;
}

typedef struct file_list {
    size_t n;
    char names[FILES_MAX][DISK_NAME_CHARS];
    uint64_t bytes;
} file_list;

/* The files with this ending; "": all of ours. */
static file_list list_files(const places *p, const char *ending)
{
    file_list l = {0};
    DIR *d = opendir(p->disk);
    for (struct dirent *file; d && (file = readdir(d));) {
        const size_t n = strlen(file->d_name), n_end = strlen(ending);
        char path[512];
        struct stat st;
        if (n < 60 || n < n_end || strcmp(file->d_name + n - n_end, ending) != 0 || l.n == FILES_MAX) {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", p->disk, file->d_name);
        CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
        l.bytes += (uint64_t)st.st_size;
        snprintf(l.names[l.n++], DISK_NAME_CHARS, "%s", file->d_name);
    }
    if (d) {
        closedir(d);
    }
    return l;
}

static void test_restart(const char *model)
{
    places p = filled(model);
    struct stat st;
    CHECK(stat(p.disk, &st) == 0 && (st.st_mode & 0777) == 0700);
    engine *e = open_engine(&p);
    CHECK_INT(cached(e, PROMPT, PROMPT, 5), PROMPT - 1);
    engine_status status;
    engine_get_status(e, &status);
    CHECK_INT(status.n_disk_hits, 1);
    CHECK_INT(status.n_disk_tokens, PROMPT - 1);
    CHECK_INT(cached(e, PROMPT, PROMPT, 6), 0); /* another key */
    engine_close(e);
    CHECK_INT(cached_after_restart(&p, PROMPT + MORE, PROMPT + MORE, 5), PROMPT - 1);
    CHECK(cached_after_restart(&p, PROMPT + MORE, PROMPT + MORE, 5) > PROMPT); /* its own has come */
    CHECK_INT(cached_after_restart(&p, PROMPT, PROMPT, 6), PROMPT - 1);
    /* another kind of keys and values, no drafts: another cache */
    places other = p;
    other.cache_type = "q8";
    CHECK_INT(cached_after_restart(&other, PROMPT, PROMPT, 5), 0);
    CHECK_INT(cached_after_restart(&other, PROMPT, PROMPT, 5), PROMPT - 1);
    CHECK_INT(cached_after_restart(&p, PROMPT, PROMPT, 5), PROMPT - 1);
}

/* What is removed is removed for its owner alone. */
static void test_clear(const char *model)
{
    places p = filled(model);
    const uint64_t mine = 5, other = 6;
    engine *e = open_engine(&p);
    CHECK_INT(cached(e, PROMPT, PROMPT, other), 0);
    engine_clear_cache(e, &other);
    CHECK_INT(cached(e, PROMPT, PROMPT, mine), PROMPT - 1);
    CHECK_INT(cached(e, PROMPT, PROMPT, other), 0);
    engine_close(e);
    e = open_engine(&p);
    engine_clear_cache(e, &mine);
    CHECK_INT(cached(e, PROMPT, PROMPT, other), PROMPT - 1);
    engine_close(e);
    CHECK_INT(cached_after_restart(&p, PROMPT, PROMPT, mine), 0);
    e = open_engine(&p);
    engine_clear_cache(e, NULL);
    engine_close(e);
    CHECK_INT(list_files(&p, "").n, 0);
}

static void damage(const places *p, const char *name, int how)
{
    char path[512];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", p->disk, name);
    CHECK(stat(path, &st) == 0);
    const int fd = open(path, O_RDWR);
    unsigned char byte = 0;
    const off_t middle = st.st_size / 2;
    if (how == 0) {
        CHECK(ftruncate(fd, middle) == 0);
    } else if (how == 1) {
        CHECK(pread(fd, &byte, 1, middle) == 1);
        byte ^= 4;
        CHECK(pwrite(fd, &byte, 1, middle) == 1);
    } else if (how == 2) {
        CHECK(ftruncate(fd, 0) == 0);
    } else {
        CHECK(unlink(path) == 0);
    }
    close(fd);
}

/* Any one file damaged in any way: a right answer, and afterwards a cache that works. */
static void test_damage(const char *model)
{
    places p = filled(model);
    const size_t n = list_files(&p, "").n;
    CHECK(n > 5);
    for (size_t i = 0; i < n; i++) {
        for (int way = 0; way < WAYS_EACH; way++) {
            const file_list all = list_files(&p, "");
            if (all.n == 0) {
                CHECK(!"no file is left");
                return;
            }
            damage(&p, all.names[i % all.n], ((int)i + way) % 4);
            CHECK(cached_after_restart(&p, PROMPT, PROMPT, 5) < PROMPT);
            CHECK_INT(cached_after_restart(&p, PROMPT, PROMPT, 5), PROMPT - 1);
        }
    }
    CHECK_INT(list_files(&p, "").n, n); /* nothing was left over */
}

static void set_version(const places *p, const char *name, uint32_t version)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", p->disk, name);
    const int fd = open(path, O_RDWR);
    CHECK(fd >= 0 && pwrite(fd, &version, sizeof version, 8) == sizeof version);
    close(fd);
}

/* Files of older versions go, those of newer ones stay and are not used; leftovers of a kill go;
 * what is not ours is not touched. */
static void test_other_files(const char *model)
{
    places p = filled(model);
    char path[512], said[512];
    const file_list all = list_files(&p, "");
    for (size_t i = 0; i < all.n; i++) {
        set_version(&p, all.names[i], 77);
    }
    snprintf(path, sizeof path, "%s/%.64s.block.tmp", p.disk, all.names[0]);
    random_text(p.disk, strrchr(path, '/') + 1, "half");
    random_text(p.disk, "thesis.txt", "not ours");
    const size_t n_prompts = list_files(&p, ".entry").n, n_blocks = list_files(&p, ".block").n;
    CHECK(n_prompts > 0 && n_prompts + n_blocks == all.n);
    log_set_level(LOG_INFO);
    said_begin();
    CHECK_INT(cached_after_restart(&p, PROMPT, PROMPT, 6), 0);
    said_end();
    snprintf(said, sizeof said,
             "removed from %s: 1 unfinished files, 0 damaged ones, 0 of an older version\n", p.disk);
    CHECK_HAS(said_err, said);
    snprintf(said, sizeof said, "%zu prompts in %s are of a newer version: ", n_prompts, p.disk);
    CHECK_HAS(said_err, said);
    snprintf(said, sizeof said, "%s holds 0 prompts of this model and 0 of others, ", p.disk);
    CHECK_HAS(said_err, said);
    CHECK(list_files(&p, "").n == 2 * all.n && access(path, F_OK) != 0);
    for (size_t i = 0; i < all.n; i++) {
        set_version(&p, all.names[i], 0);
    }
    said_begin();
    CHECK_INT(cached_after_restart(&p, PROMPT, PROMPT, 6), PROMPT - 1);
    said_end();
    log_set_level(LOG_OFF);
    snprintf(said, sizeof said,
             "removed from %s: %zu unfinished files, 0 damaged ones, %zu of an older version\n", p.disk,
             n_blocks, n_prompts);
    CHECK_HAS(said_err, said);
    CHECK(!strstr(said_err, "of a newer version"));
    CHECK_INT(list_files(&p, "").n, all.n);
    snprintf(path, sizeof path, "%s/thesis.txt", p.disk);
    CHECK(access(path, F_OK) == 0);
}

/* Least recently used prompts make room, and the limit is kept. */
static void test_budget(const char *model)
{
    places p = new_places(model, 1);
    for (int32_t i = 0; i < 24; i++) {
        engine *e = open_engine(&p);
        CHECK_INT(cached(e, PROMPT, i * 8, 5), 0);
        engine_status status;
        engine_get_status(e, &status);
        CHECK(status.disk_bytes <= 1 << 20 && status.disk_budget == 1 << 20);
        engine_close(e);
        CHECK(list_files(&p, "").bytes <= 1 << 20);
    }
    CHECK_INT(cached_after_restart(&p, PROMPT, 23 * 8, 5), PROMPT - 1);
}

/* What memory has no room for is on disk. */
static void test_evicted(const char *model)
{
    places p = new_places(model, 64);
    engine *e = answers_open(&(engine_options){.model_dir = model,
                                               .n_ctx = 512,
                                               .n_parallel = 1,
                                               .cache_mib = 1,
                                               .cache_disk = p.disk,
                                               .n_threads = 1});
    engine_status status;
    for (int32_t i = 0; i < 40; i++) {
        ask(e, PROMPT, i, 5, false);
        do { /* one after the other: the disk need not keep up with this model */
            engine_get_status(e, &status);
        } while (status.n_disk_saves <= (uint64_t)i);
    }
    CHECK(status.n_cache_entries < 40);
    CHECK_INT(ask(e, PROMPT, 0, 5, false).timings.cache_n, PROMPT - 1);
    engine_get_status(e, &status);
    CHECK_INT(status.n_disk_hits, 1);
    engine_close(e);
}

/* A folder that another engine uses, that cannot be written to, that is no folder: served without. */
static void test_bad_folders(const char *model)
{
    places p = filled(model);
    engine *first = open_engine(&p), *second = open_engine(&p);
    CHECK_INT(cached(second, PROMPT, PROMPT, 5), 0);
    CHECK_INT(cached(first, PROMPT, PROMPT, 5), PROMPT - 1);
    engine_close(second);
    engine_close(first);
    places file = p;
    snprintf(file.disk, sizeof file.disk, "/dev/null");
    CHECK_INT(cached_after_restart(&file, PROMPT, PROMPT, 5), 0);
    snprintf(file.disk, sizeof file.disk, "/proc/nowhere");
    CHECK_INT(cached_after_restart(&file, PROMPT, PROMPT, 5), 0);
}

/* Without recurrent layers any beginning counts, on disk in whole blocks. */
static void test_cuts(const char *model)
{
    places p = filled(model);
    static const int32_t at[] = {63, 64, 65, 66, 127, 128, 129, 200, 256, 257, 258, 298};
    engine *e = open_engine(&p);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        engine_close(e);
        places copy = filled(model);
        e = open_engine(&copy);
        const int32_t got = cached(e, PROMPT, at[i], 5);
        CHECK(got <= at[i] && got >= (at[i] - 1) / 64 * 64);
        CHECK_INT(cached(e, PROMPT, at[i], 5), PROMPT - 1);
    }
    engine_close(e);
}

/* A copy of the tiny model whose images may be of at most so many pixels. */
static void copy_tiny(char dir[FOLDER_NAME], const char *most)
{
    static const char *const FILES[] = {"config.json",       "generation_config.json",
                                        "model.safetensors", "model-mtp.safetensors",
                                        "tokenizer.json",    "tokenizer_config.json"};
    static const char EDGE[] = "\"longest_edge\": 65536";
    char from[256], to[256];
    bytes text;
    err_detail d = {0};
    folder_make(dir);
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        snprintf(from, sizeof from, "tiny/%s", FILES[i]);
        snprintf(to, sizeof to, "%s/%s", dir, FILES[i]);
        CHECK_INT(symlink(check_data(from), to), 0);
    }
    bytes_init(&text, 1 << 16);
    CHECK_OK(file_read(&text, check_data("tiny/processor_config.json"), &d), d);
    const char *at = strstr(bytes_str(&text), EDGE);
    CHECK(at != NULL);
    bytes changed;
    bytes_init(&changed, 1 << 16);
    bytes_printf(&changed, "%.*s\"longest_edge\": %s%s", (int)(at - bytes_str(&text)), bytes_str(&text), most,
                 at + strlen(EDGE));
    random_text(dir, "processor_config.json", bytes_str(&changed));
    bytes_deinit(&changed);
    bytes_deinit(&text);
}

/* How images are read is a part of the model that a prompt belongs to; where its files lie is none. */
static void test_processor(void)
{
    static char same[FOLDER_NAME], smaller[FOLDER_NAME];
    copy_tiny(same, "65536");
    copy_tiny(smaller, "32768");
    places p = filled(check_data("tiny"));
    p.model = same;
    CHECK_INT(cached_after_restart(&p, PROMPT, PROMPT, 5), PROMPT - 1);
    p.model = smaller;
    CHECK_INT(cached_after_restart(&p, PROMPT, PROMPT, 5), 0);
}

/* Layers that keep their window alone: what it holds is the entry's, which can be used whole and not cut. */
static void test_windows(const char *model)
{
    places p = filled(model);
    test_restart(model);
    test_damage(model);
    CHECK_INT(cached_after_restart(&p, PROMPT, PROMPT / 2, 5), 0);
    CHECK_INT(cached_after_restart(&p, PROMPT, PROMPT, 5), PROMPT - 1);
}

/* A random checkpoint of a family, with a tokenizer; wide: its window spans several pages of keys and values. */
static void make_random(char dir[64], const char *family, bool wide)
{
    bytes text, config;
    err_detail d = {0};
    size_t i = 0;
    while (strcmp(RANDOM_FAMILIES[i].name, family) != 0) {
        i++;
    }
    const char *all = RANDOM_FAMILIES[i].config, *window = strstr(all, "\"sliding_window\":20");
    bytes_init(&config, 1 << 16);
    bytes_append_str(&config, all);
    if (wide) {
        CHECK(window != NULL);
        bytes_clear(&config);
        bytes_printf(&config, "%.*s\"sliding_window\":150%s", (int)(window - all), all, strchr(window, ','));
    }
    random_checkpoint_make(dir, bytes_str(&config), RANDOM_FAMILIES[i].forms);
    bytes_deinit(&config);
    bytes_init(&text, 1 << 24);
    CHECK_OK(file_read(&text, check_data("tiny/tokenizer.json"), &d), d);
    random_text(dir, "tokenizer.json", bytes_str(&text));
    bytes_deinit(&text);
}

int main(void)
{
    static char attention_only[64], windowed[64], wide[64], hybrid[4096];
    log_set_level(LOG_OFF);
    answers_begin();
    snprintf(hybrid, sizeof hybrid, "%s", check_data("tiny"));
    make_random(attention_only, "qwen3", false);
    make_random(windowed, "gpt_oss", false);
    make_random(wide, "gpt_oss", true);
    const char *const models[] = {hybrid, attention_only};
    for (size_t i = 0; i < N_MODELS; i++) {
        test_restart(models[i]);
        test_clear(models[i]);
        test_damage(models[i]);
        test_other_files(models[i]);
        test_bad_folders(models[i]);
    }
    if (N_MODELS > 1) {
        test_windows(windowed);
        test_cuts(attention_only);
        const places p = filled(wide);
        CHECK_INT(cached_after_restart(&p, PROMPT, PROMPT, 5), PROMPT - 1);
    }
    test_processor();
    test_budget(hybrid);
    test_evicted(hybrid);
    answers_end();
    CHECK_DONE();
}
