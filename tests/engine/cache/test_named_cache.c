/* Cached prompts under a name: which names there are, whose they are, what is told of them, that they outlive the engine,
 * are read back and are forgotten in both places. */
#include "tests/engine/answers.h"
#include "tests/folder.h"
#include "tests/open_files.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/log.h"
#include "engine/request.h"

enum { PROMPT = 5 * NN_DELTA_BLOCK + 1, MINE = 5, OTHERS = 6, LENGTH = 4 };

static uint64_t next_id = 1;

static bool is_shared; /* all scopes are one */

/* Names that were written, and of them those behind which the folder was synchronized before another file was written. */
static atomic_int n_names, n_names_kept;
static _Thread_local bool was_name;

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    was_name = strstr(to, ".name") != NULL;
    n_names += was_name;
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

/* While it is held, who writes a name waits where its file is synchronized. */
static atomic_bool is_held;
static atomic_int n_waiting;
static sem_t held;

int fsync(int fd)
{
    char link[64], path[512] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (is_held && readlink(link, path, sizeof path - 1) > 0 && strstr(path, ".name")) {
        n_waiting++;
        sem_wait(&held);
    }
    struct stat st;
    n_names_kept += was_name && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    was_name = false;
    return (int)syscall(SYS_fsync, fd);
}

/* template: a file, or NULL for that of the model. */
static engine *open_with(const char *disk, int32_t n_ctx, const char *template)
{
    return answers_open(&(engine_options){.model_dir = check_data("tiny"),
                                          .template_file = template,
                                          .n_ctx = n_ctx,
                                          .n_parallel = 1,
                                          .cache_mib = 64,
                                          .vision_cache_mib = 0,
                                          .cache_disk = disk,
                                          .cache_disk_mib = 64,
                                          .share_cache = is_shared,
                                          .exact = true,
                                          .n_threads = 1});
}

static engine *open_engine(const char *disk, int32_t n_ctx)
{
    return open_with(disk, n_ctx, NULL);
}

/* The cached tokens of a request that runs, or minus the error of its end, whose name goes to `why`. */
static int32_t end_of(uint64_t id, char why[ERR_NAME_MAX])
{
    for (;;) {
        void *message = NULL;
        CHECK(mailbox_pop_wait(answer_events, &message, ANSWER_WAIT_MS));
        gen_event *ev = message;
        const bool is_end = ev->type == GEN_DONE && ev->request_id == id;
        const int32_t result = ev->finish == GEN_FINISH_ERROR ? -(int32_t)ev->error : ev->timings.cache_n;
        if (is_end && why) {
            snprintf(why, ERR_NAME_MAX, "%s", ev->error_name);
        }
        gen_event_free(ev);
        if (is_end) {
            return result;
        }
    }
}

static int32_t run(engine *e, gen_request *r, char why[ERR_NAME_MAX])
{
    const uint64_t id = next_id++;
    answers_submit(e, r, id);
    return end_of(id, why);
}

static gen_request *request_of(engine *e, int32_t n, uint64_t scope, const char *keep_as)
{
    int32_t ids[PROMPT];
    gen_params p;
    gen_request *r = NULL;
    err_detail d = {0};
    for (int32_t i = 0; i < n; i++) {
        ids[i] = 300 + i * 7 % 500;
    }
    gen_params_init(&p);
    p.max_tokens = LENGTH;
    p.temperature = 0;
    p.ignore_eos = true;
    CHECK_OK(engine_prepare_tokens(e, &r, ids, (size_t)n, scope, &p, &d), d);
    if (keep_as) {
        gen_request_keep_as(r, keep_as);
    }
    return r;
}

static int32_t ask(engine *e, int32_t n, uint64_t scope, const char *keep_as, char why[ERR_NAME_MAX])
{
    return run(e, request_of(e, n, scope, keep_as), why);
}

/* An engine over a new folder, which keeps the prompt of mine as "one". */
static engine *open_with_one(char disk[FOLDER_NAME])
{
    folder_make(disk);
    engine *e = open_engine(disk, 512);
    CHECK_INT(ask(e, PROMPT, MINE, "one", NULL), 0);
    return e;
}

/* What is listed, by place. What an answer leaves is saved without a name, sooner or later. */
typedef struct list {
    size_t n[2], n_named;
    engine_cached last, named; /* last: in memory */
} list;

static void add(void *ctx, const engine_cached *one)
{
    list *l = ctx;
    l->n[one->is_on_disk]++;
    l->n_named += one->name[0] != '\0';
    if (one->name[0]) {
        l->named = *one;
    } else if (!one->is_on_disk) {
        l->last = *one;
    }
}

static list list_of(engine *e, uint64_t scope)
{
    list l = {.n_named = 0};
    engine_list_cache(e, scope, add, &l);
    return l;
}

static void test_names(void)
{
    char longest[66];
    err_detail d = {0};
    engine_cached found;
    gen_request *r = NULL;
    engine *e = open_engine(NULL, 512);
    CHECK_INT(engine_check_name(e, "one", &d), ERR_UNSUPPORTED);
    CHECK_STR(d.name, "not_supported");
    CHECK(!engine_find_named(e, MINE, "one", false, &found));
    CHECK_INT(engine_prepare_load(e, &r, MINE, "one", &d), ERR_UNSUPPORTED);
    CHECK(r == NULL);
    CHECK_INT(ask(e, PROMPT, MINE, NULL, NULL), 0);
    const list l = list_of(e, MINE);
    CHECK(l.n[0] > 0 && l.n[1] == 0);
    engine_close(e);

    char disk[FOLDER_NAME];
    folder_make(disk);
    e = open_engine(disk, 512);
    memset(longest, 'x', sizeof longest);
    longest[64] = '\0';
    const char *const good[] = {"a", "Z9", "a.b-c_d", "0", "_", "-", longest};
    const char *const bad[] = {"", ".", ".a", "a/b", "a b", "\xc3\xa4", "a\n", "a:"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK_OK(engine_check_name(e, good[i], &d), d);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_INT(engine_check_name(e, bad[i], &d), ERR_INVALID);
        CHECK_STR(d.param, "name");
        CHECK(strstr(d.text, "1 to 64 letters") != NULL);
    }
    longest[64] = 'x';
    longest[65] = '\0';
    CHECK_INT(engine_check_name(e, longest, &d), ERR_INVALID);
    char why[ERR_NAME_MAX] = "";
    CHECK_INT(ask(e, 3, MINE, "short", why), -(int32_t)ERR_LIMIT);
    CHECK_STR(why, "prompt_not_kept");
    CHECK(!engine_find_named(e, MINE, "short", false, &found));
    engine_close(e);
}

static void test_kept(void)
{
    char disk[FOLDER_NAME];
    err_detail d = {0};
    engine_cached found, again;
    gen_request *r = NULL;
    const int64_t before = (int64_t)time(NULL) - 1; /* its clock may lag behind the finer one by a tick */
    engine *e = open_with_one(disk);
    CHECK(engine_find_named(e, MINE, "one", false, &found));
    CHECK_STR(found.name, "one");
    CHECK(found.is_on_disk && found.n_bytes > 0 && found.n_tokens > NN_DELTA_BLOCK &&
          found.n_tokens < PROMPT);
    CHECK(found.used_at >= before && found.used_at <= (int64_t)time(NULL) + 1);
    CHECK(!engine_find_named(e, OTHERS, "one", false, &again));
    CHECK(!engine_find_named(e, MINE, "on", false, &again) &&
          !engine_find_named(e, MINE, "onee", false, &again));
    list l = list_of(e, MINE);
    CHECK(l.n[0] > 0 && l.n[1] >= 1 && l.n_named == 1);
    CHECK_STR(l.named.name, "one");
    CHECK_INT(l.named.n_tokens, found.n_tokens);
    CHECK_INT(l.named.n_bytes, found.n_bytes);
    CHECK(!l.last.is_on_disk && l.last.n_bytes > 0 && l.last.n_tokens >= found.n_tokens);
    CHECK(l.last.used_at >= before && l.last.used_at <= (int64_t)time(NULL) + 1);
    l = list_of(e, OTHERS);
    CHECK(l.n[0] == 0 && l.n[1] == 0);
    engine_close(e);

    /* Another engine reads it back when it is asked to, and then has it. */
    e = open_engine(disk, 512);
    l = list_of(e, MINE);
    CHECK(l.n[0] == 0 && l.n[1] >= 1);
    CHECK_INT(engine_prepare_load(e, &r, OTHERS, "one", &d), ERR_NOT_FOUND);
    CHECK_STR(d.name, "cache_entry_not_found");
    CHECK_INT(engine_prepare_load(e, &r, MINE, "two", &d), ERR_NOT_FOUND);
    CHECK_INT(engine_prepare_load(e, &r, MINE, "../one", &d), ERR_INVALID);
    CHECK(r == NULL);
    CHECK_OK(engine_prepare_load(e, &r, MINE, "one", &d), d);
    CHECK_INT(run(e, r, NULL), found.n_tokens);
    l = list_of(e, MINE);
    CHECK_INT(l.n[0], 1);
    CHECK_INT(l.last.n_tokens, found.n_tokens);
    CHECK(ask(e, PROMPT, MINE, NULL, NULL) >= found.n_tokens);
    CHECK_INT(ask(e, PROMPT, OTHERS, NULL, NULL), 0);

    /* It is forgotten in both places, once; a stranger cannot. */
    CHECK(!engine_find_named(e, OTHERS, "one", true, &again));
    CHECK(engine_find_named(e, MINE, "one", true, &again));
    CHECK_STR(again.name, "one");
    CHECK_INT(again.n_tokens, found.n_tokens);
    CHECK(!engine_find_named(e, MINE, "one", true, &again) &&
          !engine_find_named(e, MINE, "one", false, &again));
    CHECK_INT(engine_prepare_load(e, &r, MINE, "one", &d), ERR_NOT_FOUND);
    engine_close(e);
}

/* What is forgotten between the request for it and its turn is told as not there, and answers go on. */
static void test_forgotten(void)
{
    char disk[FOLDER_NAME], why[ERR_NAME_MAX] = "";
    err_detail d = {0};
    engine_cached found;
    gen_request *r = NULL;
    engine *e = open_with_one(disk);
    CHECK_OK(engine_prepare_load(e, &r, MINE, "one", &d), d);
    CHECK(engine_find_named(e, MINE, "one", true, &found));
    CHECK_INT(run(e, r, why), -(int32_t)ERR_NOT_FOUND);
    CHECK_STR(why, "cache_entry_not_found");
    CHECK(ask(e, PROMPT, MINE, NULL, why) >= 0);
    engine_close(e);
}

/* A context of as many tokens as the prompt has no room for an answer. */
static void test_too_long(void)
{
    char disk[FOLDER_NAME];
    err_detail d = {0};
    engine_cached found;
    gen_request *r = NULL;
    engine *e = open_with_one(disk);
    CHECK(engine_find_named(e, MINE, "one", false, &found));
    engine_close(e);
    for (int32_t more = 0; more < 2; more++) {
        e = open_engine(disk, found.n_tokens + more);
        const err_code err = engine_prepare_load(e, &r, MINE, "one", &d);
        CHECK_INT(err, more ? ERR_OK : ERR_LIMIT);
        if (err) {
            CHECK_STR(d.name, "entry_too_long");
        } else {
            CHECK_INT(run(e, r, NULL), found.n_tokens);
        }
        engine_close(e);
    }
}

/* A prompt has one name, the last; also one of a single letter. */
static void test_renamed(void)
{
    static const char *const NAMES[] = {"one", "two", "x", "one", "y"};
    char disk[FOLDER_NAME];
    engine_cached found;
    folder_make(disk);
    engine *e = open_engine(disk, 512);
    const int n_before = n_names;
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        const int32_t n = ask(e, PROMPT, MINE, NAMES[i], NULL);
        CHECK(i == 0 ? n == 0 : n > NN_DELTA_BLOCK);
        CHECK(engine_find_named(e, MINE, NAMES[i], false, &found));
        CHECK(i == 0 || !engine_find_named(e, MINE, NAMES[i - 1], false, &found));
        const list l = list_of(e, MINE);
        CHECK_INT(l.n_named, 1);
        CHECK_STR(l.named.name, NAMES[i]);
        CHECK_INT(n_names, n_before + 1 + (int)i);
        CHECK_INT(n_names_kept, n_names); /* a name that was told as kept outlives a loss of power */
    }
    engine_close(e);
}

/* Of a chat all is named up to the end of its last message, not of an earlier one. */
static void test_chat(void)
{
    static const char texts[][32] = {"You say what you are asked for.", "Say seven words about rivers."};
    static char template[4096];
    char disk[FOLDER_NAME];
    err_detail d = {0};
    engine_cached found = {0};
    gen_request *r = NULL;
    folder_make(disk);
    snprintf(template, sizeof template, "%s/tools/seedling/chat_template.jinja", PARLEY_SOURCE_DIR);
    engine *e = open_with(disk, 512, template);
    chat_input *in = chat_input_create(1 << 20);
    chat_part *parts = arena_calloc(in->arena, 2, sizeof *parts);
    in->messages = arena_calloc(in->arena, 2, sizeof *in->messages);
    in->n_messages = 2;
    for (size_t i = 0; i < 2; i++) {
        parts[i] = (chat_part){.kind = CHAT_TEXT, .text = texts[i], .text_len = strlen(texts[i])};
        in->messages[i] = (chat_message){
            .role = i ? CHAT_USER : CHAT_SYSTEM, .parts = &parts[i], .n_parts = 1, .is_string = true};
    }
    gen_params_init(&in->params);
    in->scope = MINE;
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    chat_input_destroy(in);
    CHECK(r->n_boundaries >= 2);
    const int32_t last = (int32_t)r->boundaries[r->n_boundaries - 1].len;
    gen_request_keep_as(r, "chat");
    CHECK_INT(run(e, r, NULL), 0);
    CHECK(engine_find_named(e, MINE, "chat", false, &found));
    CHECK_INT(found.n_tokens, last);
    engine_close(e);
}

/* A folder that is gone takes no prompt: that is told, and answers go on. */
static void test_lost_folder(void)
{
    char disk[FOLDER_NAME], why[ERR_NAME_MAX] = "";
    engine_cached found;
    folder_make(disk);
    engine *e = open_engine(disk, 512);
    folder_remove(disk);
    CHECK_INT(ask(e, PROMPT, MINE, "one", why), -(int32_t)ERR_IO);
    CHECK_STR(why, "cache_storage_failed");
    CHECK(!engine_find_named(e, MINE, "one", false, &found));
    CHECK(ask(e, PROMPT, MINE, NULL, why) >= 0);
    CHECK_STR(why, "");
    engine_close(e);
}

/* A prompt that is cleared while it is being written ends its request with that; nothing of it is left. */
static void test_cleared_meanwhile(void)
{
    const uint64_t mine = MINE;
    char disk[FOLDER_NAME], why[ERR_NAME_MAX] = "";
    engine_cached found;
    folder_make(disk);
    engine *e = open_engine(disk, 512);
    sem_init(&held, 0, 0);
    n_waiting = 0;
    is_held = true;
    const uint64_t id = next_id++;
    answers_submit(e, request_of(e, PROMPT, MINE, "one"), id);
    while (n_waiting == 0) {
        usleep(200);
    }
    engine_clear_cache(e, &mine);
    CHECK_INT(end_of(id, why), -(int32_t)ERR_IO);
    CHECK_STR(why, "cache_storage_failed");
    is_held = false;
    sem_post(&held);
    CHECK(!engine_find_named(e, MINE, "one", false, &found));
    CHECK(ask(e, PROMPT, MINE, "two", why) >= 0);
    CHECK(engine_find_named(e, MINE, "two", false, &found));
    engine_close(e);
    sem_destroy(&held);
}

/* A file that was changed is told as not there when it is asked for, and is gone then. */
static void test_damaged(void)
{
    char disk[FOLDER_NAME], path[512], why[ERR_NAME_MAX] = "";
    err_detail d = {0};
    engine_cached found;
    gen_request *r = NULL;
    engine_close(open_with_one(disk));
    DIR *dir = opendir(disk);
    for (struct dirent *file; dir && (file = readdir(dir));) {
        if (strstr(file->d_name, ".entry")) {
            snprintf(path, sizeof path, "%s/%s", disk, file->d_name);
            const int fd = open(path, O_RDWR | O_CLOEXEC);
            CHECK(fd >= 0 && lseek(fd, -7, SEEK_END) > 0 && write(fd, "changed", 7) == 7 && close(fd) == 0);
        }
    }
    closedir(dir);
    engine *e = open_engine(disk, 512);
    CHECK_OK(engine_prepare_load(e, &r, MINE, "one", &d), d);
    CHECK_INT(run(e, r, why), -(int32_t)ERR_NOT_FOUND);
    CHECK_STR(why, "cache_entry_not_found");
    CHECK(!engine_find_named(e, MINE, "one", false, &found));
    CHECK(ask(e, PROMPT, MINE, NULL, why) >= 0);
    engine_close(e);
}

/* Where all share one cache, names are of all, too. */
static void test_shared(void)
{
    char disk[FOLDER_NAME];
    err_detail d = {0};
    engine_cached found;
    gen_request *r = NULL;
    is_shared = true;
    engine *e = open_with_one(disk);
    CHECK(engine_find_named(e, OTHERS, "one", false, &found));
    const list l = list_of(e, OTHERS);
    CHECK(l.n[0] > 0 && l.n[1] >= 1 && l.n_named == 1);
    CHECK_OK(engine_prepare_load(e, &r, OTHERS, "one", &d), d);
    CHECK_INT(run(e, r, NULL), found.n_tokens);
    CHECK(engine_find_named(e, OTHERS, "one", true, &found));
    CHECK(!engine_find_named(e, MINE, "one", false, &found));
    engine_close(e);
    is_shared = false;
}

int main(void)
{
    log_set_level(LOG_OFF);
    answers_begin();
    test_names();
    test_kept();
    test_forgotten();
    test_too_long();
    test_renamed();
    test_chat();
    test_lost_folder();
    test_cleared_meanwhile();
    test_damaged();
    test_shared();
    answers_end();
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
