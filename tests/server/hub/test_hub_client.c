/* hub_client: what becomes of every answer of a hub, in time that is made up: refusals, waiting, redirects and who gets the
 * key, transfers that break, ranges, files that are not what was promised. */
#include "server/hub/hub_client.h"

#include <fcntl.h>
#include <sys/file.h>

#include "base/clock.h"
#include "base/hash.h"
#include "server/media/fetch.h"
#include "tests/folder.h"
#include "tests/said.h"
#include "tests/server/made_up_server.h"

enum { HUB, STORE, ASKED = 64, LINE = 512 };

static char folder[FOLDER_NAME], hub_url[64], store_url[64];
static hub_place place;

/* ---- the hub and its store ---- */

static const char *answers[2][20]; /* in turn; the last again and again */
static int n_answered[2];
static char asked[ASKED][LINE]; /* "server path range key" */
static int n_asked;

static void copy_header(char *out, size_t cap, const char *head, const char *name)
{
    const char *at = strstr(head, name);
    const size_t n = at ? strcspn(at + strlen(name), "\r") : 1;
    snprintf(out, cap, "%.*s", (int)n, at ? at + strlen(name) : "-");
}

static const char *answer(int server, const char *head, const char *body)
{
    char range[64], key[64];
    (void)body;
    copy_header(range, sizeof range, head, "\r\nRange: bytes=");
    copy_header(key, sizeof key, head, "\r\nAuthorization: Bearer ");
    snprintf(asked[n_asked++ % ASKED], LINE, "%s %.*s %s %s", server == HUB ? "hub" : "store",
             (int)strcspn(head + 4, " "), head + 4, range, key);
    const int i = n_answered[server]++;
    int last = 0;
    while (answers[server][last + 1] && last < i) {
        last++;
    }
    return answers[server][last];
}

#define SAYS(server, ...)                                                                                    \
    do {                                                                                                     \
        static const char *const list[20] = {__VA_ARGS__};                                                   \
        memcpy(answers[server], list, sizeof list);                                                          \
    } while (0)

/* ---- one task ---- */

static hub_file file; /* that is fetched, if it has a path */
static bytes text;
static err_detail detail;
static double took_s;
static int n_ticks;
static size_t first_bytes;

static void on_tick(void *ctx)
{
    (void)ctx;
    n_ticks++;
}

static void wants(const char *name, const char *contents)
{
    file = (hub_file){.size = (int64_t)strlen(contents)};
    snprintf(file.path, sizeof file.path, "%s", name);
    uint8_t hash[HASH_BYTES];
    hash_stream *h = hash_stream_create_git((uint64_t)file.size);
    CHECK(h != NULL);
    hash_stream_add(h, contents, strlen(contents));
    hash_stream_end(h, hash);
    hash_hex(file.key, hash, HASH_GIT_BYTES);
    hash_stream_destroy(h);
}

static err_code run_tasks(hub_task *tasks, size_t n, size_t at_once)
{
    hub_client *c = hub_client_create(&place);
    const int64_t began = made_up_ns;
    n_asked = n_answered[HUB] = n_answered[STORE] = n_ticks = 0;
    memset(&detail, 0, sizeof detail);
    CHECK(c != NULL);
    const err_code err = hub_client_run(c, tasks, n, at_once, on_tick, NULL, &detail);
    took_s = (double)(made_up_ns - began) / 1e9;
    hub_client_destroy(c);
    return err;
}

static err_code run(void)
{
    hub_task t = {.path = "/x", .into = &text, .first_bytes = first_bytes};
    if (file.path[0]) {
        t = (hub_task){.path = "/x", .file = &file, .repo_dir = folder, .locks_dir = folder};
    }
    const err_code err = run_tasks(&t, 1, 1);
    if (err == ERR_OK) {
        CHECK_INT(t.at, file.path[0] ? file.size : (int64_t)text.len);
    }
    return err;
}

/* ---- what is refused, and what is tried again ---- */

#define STATUS(line, more) "HTTP/1.1 " line "\r\nContent-Length: 0\r\nConnection: close\r\n" more "\r\n" CUT

static void test_refusals(void)
{
    static const struct {
        const char *answer;
        bool has_key, is_file;
        err_code err;
        int asked;
        double took_s;
        const char *text;
    } ROWS[] = {
        {STATUS("401 No", ""), false, false, ERR_NOT_FOUND, 1, 0,
         "the model is private, or there is no such model: set HF_TOKEN"},
        {STATUS("401 No", ""), true, false, ERR_NOT_FOUND, 1, 0, "the hub refuses the key of HF_TOKEN"},
        {STATUS("403 No", ""), false, false, ERR_NOT_FOUND, 1, 0, "the model is private"},
        {STATUS("403 No", "X-Error-Code: GatedRepo\r\n"), true, false, ERR_NOT_FOUND, 1, 0,
         "the model is gated: accept"},
        {STATUS("404 No", ""), false, false, ERR_NOT_FOUND, 1, 0,
         "there is no such model or revision on the hub"},
        {STATUS("404 No", "X-Error-Code: RevisionNotFound\r\n"), false, false, ERR_NOT_FOUND, 1, 0,
         "the model has no such revision"},
        {STATUS("404 No", ""), false, true, ERR_NOT_FOUND, 1, 0, "a/b.bin is listed, but is not on the hub"},
        {STATUS("410 No", ""), false, true, ERR_UPSTREAM, 1, 0, "a/b.bin: the hub answers with status 410"},
        {STATUS("418 No", ""), false, false, ERR_UPSTREAM, 1, 0,
         "the hub's answer: the hub answers with status 418"},
        {STATUS("499 No", ""), false, false, ERR_UPSTREAM, 1, 0, "the hub answers with status 499"},
        /* a quarter of a second, then twice as long each time */
        {STATUS("500 No", ""), false, false, ERR_UPSTREAM, 8, 31.75,
         "the hub is not well (500); is the network there?"},
        {STATUS("503 No", ""), false, true, ERR_UPSTREAM, 8, 31.75,
         "the hub is not well (503); say the same again"},
        {STATUS("408 No", ""), false, false, ERR_UPSTREAM, 8, 31.75, "the hub is not well (408)"},
        {STATUS("429 No", ""), false, false, ERR_UPSTREAM, 8, 31.75, "the hub asks to wait (429)"},
        {STATUS("429 No", "Retry-After: 60\r\n"), false, false, ERR_UPSTREAM, 8, 420,
         "the hub asks to wait (429)"},
        {STATUS("429 No", "Retry-After: 3\r\n"), false, false, ERR_UPSTREAM, 8, 4 * 3 + 4 + 8 + 16,
         "asks to wait"},
        {STATUS("429 No", "Retry-After: 901\r\n"), false, false, ERR_BUSY, 1, 0,
         "the hub asks to come back in 16 minutes (429)"},
        {STATUS("503 No", "Retry-After: 960\r\n"), false, false, ERR_BUSY, 1, 0,
         "come back in 16 minutes (503)"},
        {STATUS("503 No", "Retry-After: 961\r\n"), false, false, ERR_BUSY, 1, 0,
         "come back in 17 minutes (503)"},
        {"", false, false, ERR_UPSTREAM, 3, 0.75,
         "the connection broke ("}, /* nobody knows that it is a hub */
        {MUTE, false, false, ERR_UPSTREAM, 3, 90.75, "says nothing any more ("},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc" CUT, false, false, ERR_UPSTREAM, 8, 31.75,
         "the connection broke ("},
        {"HTTP/1.1 206 Part\r\nContent-Length: 3\r\nContent-Range: bytes 5-7/9\r\n\r\nabc" CUT, false, false,
         ERR_UPSTREAM, 8, 31.75, "it sends another part of the file than was asked for"},
        {STATUS("416 No", ""), false, false, ERR_UPSTREAM, 8, 31.75,
         "it does not send the file; is the network there?"},
        {STATUS("206 Part", "Content-Range: bytes 0-7/8\r\n"), false, true, ERR_UPSTREAM, 8, 31.75,
         "it sends less than it said; say the same again to go on from here"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        answers[HUB][0] = ROWS[i].answer;
        answers[HUB][1] = NULL;
        snprintf(place.key, sizeof place.key, "%s", ROWS[i].has_key ? "secret" : "");
        file.path[0] = '\0';
        if (ROWS[i].is_file) {
            wants("a/b.bin", "contents");
        }
        CHECK_INT(run(), ROWS[i].err);
        CHECK_HAS(detail.text, ROWS[i].text);
        CHECK_INT(n_asked, ROWS[i].asked);
        CHECK(took_s >= ROWS[i].took_s && took_s < ROWS[i].took_s + 0.5);
        if (check_failures) {
            fprintf(stderr, "row %zu: %s took %.2f s\n", i, detail.text, took_s);
            return;
        }
        CHECK_STR(asked[0], ROWS[i].has_key ? "hub /x - secret" : "hub /x - -");
        CHECK(strncmp(detail.text, hub_url, strlen(hub_url)) == 0 || ROWS[i].asked == 1);
    }
    file.path[0] = '\0';
    answers[HUB][0] = STATUS("503 No", "");
    SAYS(HUB, STATUS("503 No", ""), PLAIN("now"));
    CHECK_OK(run(), detail);
    CHECK_STR(bytes_str(&text), "now");
    CHECK(took_s >= 0.25 && took_s < 0.4);
    CHECK(n_ticks >= 3 && n_ticks <= 6); /* ten a second, and one at the end */

    SAYS(HUB, STATUS("429 No", "Retry-After: 900\r\n"), PLAIN("now"));
    CHECK_OK(run(), detail);
    CHECK(took_s >= 900 && took_s < 900.5);

    const hub_place known = place; /* nobody listens */
    snprintf(place.endpoint, sizeof place.endpoint, "http://127.0.0.1:1");
    CHECK_INT(run(), ERR_UPSTREAM);
    CHECK_HAS(detail.text, "http://127.0.0.1:1: cannot be reached (");
    CHECK(took_s >= 0.75 && took_s < 1.0);
    place = known;
}

/* What a refusal says beside its status is read for a while only. */
static void test_long_refusals(void)
{
    enum { MOST = 1 << 16 };
    static const struct {
        size_t n; /* bytes at once, then one a second */
        double took_s;
    } ROWS[] = {{10, 3}, {MOST, 1}, {MOST + 1, 0}};
    static char long_answer[MOST + 512];
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const int n =
            snprintf(long_answer, 256, "HTTP/1.1 404 No\r\nContent-Length: %zu\r\n\r\n", ROWS[i].n + 3);
        memset(long_answer + n, 'x', ROWS[i].n);
        memcpy(long_answer + n + ROWS[i].n, LATER "x" LATER "x" LATER "x", 7);
        answers[HUB][0] = long_answer;
        answers[HUB][1] = NULL;
        CHECK_INT(run(), ERR_NOT_FOUND);
        CHECK(took_s >= ROWS[i].took_s && took_s < ROWS[i].took_s + 0.5);
    }
}

/* ---- redirects ---- */

static void test_redirects(void)
{
    static char there[256], back[256], here[256];
    snprintf(there, sizeof there,
             "HTTP/1.1 302 Found\r\nContent-Length: 4\r\nLocation: %s/y?sig=1\r\n\r\nmove", store_url);
    snprintf(back, sizeof back, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s/z\r\n\r\n", hub_url);
    snprintf(here, sizeof here, "HTTP/1.1 307 Found\r\nContent-Length: 0\r\nLocation: /other\r\n\r\n");
    snprintf(place.key, sizeof place.key, "secret");
    memset(answers, 0, sizeof answers);
    answers[HUB][0] = here;
    answers[HUB][1] = PLAIN("at home");
    CHECK_OK(run(), detail);
    CHECK_STR(bytes_str(&text), "at home");
    CHECK_STR(asked[0], "hub /x - secret");
    CHECK_STR(asked[1], "hub /other - secret");
    CHECK(took_s < 0.3);

    answers[HUB][0] = there;
    answers[STORE][0] = PLAIN("elsewhere");
    CHECK_OK(run(), detail);
    CHECK_STR(bytes_str(&text), "elsewhere");
    CHECK_INT(n_asked, 2);
    CHECK_STR(asked[1], "store /y?sig=1 - -"); /* the key is the hub's alone */

    answers[STORE][0] = back; /* from elsewhere it does not come back */
    answers[HUB][1] = PLAIN("home again");
    CHECK_OK(run(), detail);
    CHECK_STR(bytes_str(&text), "home again");
    CHECK_STR(asked[2], "hub /z - -");

    /* an address that does not hold any more: the hub is asked anew */
    static const char *const GONE[] = {STATUS("401 No", ""), STATUS("403 No", ""), STATUS("404 No", ""),
                                       STATUS("410 No", "")};
    for (size_t i = 0; i < sizeof GONE / sizeof *GONE; i++) {
        memset(answers, 0, sizeof answers);
        answers[HUB][0] = there;
        answers[STORE][0] = GONE[i];
        answers[STORE][1] = PLAIN("fresh");
        CHECK_OK(run(), detail);
        CHECK_STR(bytes_str(&text), "fresh");
        CHECK_INT(n_asked, 4);
        CHECK_STR(asked[2], "hub /x - secret");
        CHECK(took_s >= 0.25 && took_s < 0.7);
        answers[STORE][1] = NULL;
        CHECK_INT(run(), ERR_UPSTREAM);
        CHECK_HAS(detail.text, "the address that it redirects to refuses the file");
        CHECK_INT(n_asked, 16);
    }
    memset(answers, 0, sizeof answers);
    answers[HUB][0] = there; /* what else it says is no sign of that */
    answers[STORE][0] = STATUS("503 No", "");
    answers[STORE][1] = STATUS("418 No", "");
    CHECK_INT(run(), ERR_UPSTREAM);
    CHECK_HAS(detail.text, "the hub answers with status 418");
    CHECK_INT(n_asked, 4);
    CHECK(took_s >= 0.25 && took_s < 0.7);
    memset(answers, 0, sizeof answers);
    answers[HUB][0] = here; /* in a circle */
    CHECK_INT(run(), ERR_UPSTREAM);
    CHECK_HAS(detail.text, "the hub's answer: the hub redirects too often");
    CHECK_INT(n_asked, 9);
    for (int i = 0; i < 8; i++) {
        answers[HUB][i] = here;
    }
    answers[HUB][8] = PLAIN("at last");
    CHECK_OK(run(), detail);
    CHECK_STR(bytes_str(&text), "at last");

    static char far[5000];
    snprintf(far, sizeof far, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /%04200d\r\n\r\n", 0);
    memset(answers, 0, sizeof answers);
    answers[HUB][0] = far;
    CHECK_INT(run(), ERR_UPSTREAM);
    CHECK_HAS(detail.text, "redirects to an address that is not safe");
    place.key[0] = '\0';
}

/* ---- files ---- */

static void is_kept(const char *contents)
{
    char path[256], got[256];
    snprintf(path, sizeof path, "%s/blobs/%s", folder, file.key);
    FILE *f = fopen(path, "r");
    CHECK((f != NULL) == (contents != NULL));
    if (f) {
        got[fread(got, 1, sizeof got - 1, f)] = '\0';
        CHECK_STR(got, contents);
        fclose(f);
        remove(path);
    }
    snprintf(path, sizeof path, "%s/blobs/%s.incomplete", folder, file.key);
    f = fopen(path, "r");
    if (contents) {
        CHECK(f == NULL);
    } else {
        CHECK(f && fgetc(f) == EOF); /* nothing wrong is left */
    }
    if (f) {
        fclose(f);
    }
    remove(path);
}

static void test_files(void)
{
    wants("a.bin", "0123456789");
    SAYS(HUB, PLAIN("0123456789"));
    CHECK_OK(run(), detail);
    is_kept("0123456789");

    SAYS(HUB, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123" CUT,
         "HTTP/1.1 206 Part\r\nContent-Length: 6\r\nContent-Range: bytes 4-9/10\r\n\r\n45" CUT,
         "HTTP/1.1 206 Part\r\nContent-Range: bytes 6-7/10\r\nContent-Length: 2\r\n\r\n67",
         "HTTP/1.1 206 Part\r\nContent-Length: 2\r\nContent-Range: bytes 8-9/10\r\n\r\n89");
    CHECK_OK(run(), detail);
    CHECK_STR(asked[1], "hub /x 4- -");
    CHECK_STR(asked[2], "hub /x 6- -");
    CHECK_STR(asked[3], "hub /x 8- -");
    CHECK(took_s >= 0.75 && took_s < 1.0); /* each brought something: none waits longer than the first */
    is_kept("0123456789");

    SAYS(HUB, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123" CUT,
         PLAIN("0123456789")); /* knows no ranges */
    CHECK_OK(run(), detail);
    CHECK_INT(n_asked, 2);
    is_kept("0123456789");

    SAYS(HUB, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123" CUT, STATUS("416 No", ""),
         PLAIN("0123456789"));
    CHECK_OK(run(), detail);
    CHECK_STR(asked[2], "hub /x - -"); /* from the beginning */
    is_kept("0123456789");

    SAYS(HUB, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123" CUT,
         "HTTP/1.1 206 Part\r\nContent-Length: 5\r\nContent-Range: bytes 5-9/10\r\n\r\n56789",
         "HTTP/1.1 206 Part\r\nContent-Length: 6\r\nContent-Range: bytes 4-9/10\r\n\r\n456789");
    CHECK_OK(run(), detail);
    CHECK_STR(asked[2], "hub /x 4- -"); /* another part is not taken */
    is_kept("0123456789");

    SAYS(HUB, PLAIN("0123456x89"), PLAIN("0123456789")); /* once more from the beginning */
    CHECK_OK(run(), detail);
    CHECK_INT(n_asked, 2);
    CHECK(took_s < 0.3);
    is_kept("0123456789");
    SAYS(HUB, PLAIN("0123456x89"));
    CHECK_INT(run(), ERR_CORRUPT);
    CHECK_INT(n_asked, 2);
    is_kept(NULL);
    SAYS(HUB, PLAIN("0123"));
    CHECK_INT(run(), ERR_CORRUPT);
    is_kept(NULL);
    SAYS(HUB, PLAIN("0123456789+"));
    CHECK_INT(run(), ERR_CORRUPT);
    CHECK_HAS(detail.text, "a.bin is larger than the hub lists it");
    CHECK_INT(n_asked, 1);
    is_kept(NULL);
    SAYS(HUB, PLAIN_HEAD "01234" LATER "56789+" LATER "and on" CUT); /* not what was right of it, either */
    CHECK_INT(run(), ERR_CORRUPT);
    CHECK(took_s >= 1 && took_s < 1.5);
    is_kept(NULL);

    char path[256]; /* all of it lay there */
    snprintf(path, sizeof path, "%s/blobs/%s.incomplete", folder, file.key);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs("0123456789", f) >= 0 && fclose(f) == 0);
    CHECK_OK(run(), detail);
    CHECK_INT(n_asked, 0);
    is_kept("0123456789");
    wants("empty", ""); /* has nothing to ask for */
    CHECK_OK(run(), detail);
    CHECK_INT(n_asked, 0);
    is_kept("");
    static char pointer[1200];
    wants("weights", "a file of more than what comes in its place, which is the pointer of Git LFS");
    SAYS(HUB, PLAIN("version https://git-lfs.github.com/spec/v1\n"));
    CHECK_INT(run(), ERR_CORRUPT);
    CHECK_STR(detail.text,
              "weights: the hub sent the pointer of Git LFS in place of the file (43 bytes, not 76)");
    is_kept(NULL);
    SAYS(HUB, PLAIN("version http://git-lfs.github.com/spec/v1\n"));
    CHECK_INT(run(), ERR_CORRUPT);
    CHECK_STR(detail.text, "weights: 42 bytes came; the hub lists it with 76");
    SAYS(HUB, PLAIN("version https://git-lf"));
    CHECK_INT(run(), ERR_CORRUPT);
    CHECK_STR(detail.text, "weights: 22 bytes came; the hub lists it with 76");
    file.size = 2000;
    for (int more = 0; more < 2; more++) { /* a pointer is short */
        const int n = snprintf(pointer, sizeof pointer, PLAIN_HEAD "version https://git-lfs");
        snprintf(pointer + n, sizeof pointer - (size_t)n, "%0*d" CUT, 1000 + more, 0);
        answers[HUB][0] = pointer;
        answers[HUB][1] = NULL;
        CHECK_INT(run(), ERR_CORRUPT);
        CHECK_HAS(detail.text, more ? "weights: 1024 bytes came" : "the pointer of Git LFS");
    }
    wants("a.bin", "0123456789");
    f = fopen(path, "w"); /* and was wrong */
    CHECK(f && fputs("0123456_89", f) >= 0 && fclose(f) == 0);
    SAYS(HUB, PLAIN("0123456789"));
    CHECK_OK(run(), detail);
    CHECK_INT(n_asked, 1);
    is_kept("0123456789");
    file.path[0] = '\0';
}

static void test_documents(void)
{
    SAYS(HUB, PLAIN("0123456789"));
    first_bytes = 4;
    CHECK_OK(run(), detail);
    CHECK_STR(bytes_str(&text), "0123");
    CHECK_STR(asked[0], "hub /x 0-3 -");
    CHECK_INT(n_asked, 1);
    SAYS(HUB, PLAIN("01"));
    CHECK_OK(run(), detail);
    CHECK_STR(bytes_str(&text), "01");
    first_bytes = 0;
    SAYS(HUB, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123" CUT, PLAIN("0123456789"));
    CHECK_OK(run(), detail);
    CHECK_STR(asked[1], "hub /x - -"); /* of a document that broke nothing is kept */
    CHECK_STR(bytes_str(&text), "0123456789");
    bytes_deinit(&text);
    text = bytes_empty(9);
    SAYS(HUB, PLAIN("0123456789"));
    CHECK_INT(run(), ERR_LIMIT);
    CHECK_HAS(detail.text, "what the hub says is too long");
    bytes_deinit(&text);
    text = bytes_empty(1 << 20);
}

/* Several: so many at once, and the first that fails ends all. */
static void test_many(void)
{
    bytes texts[4];
    hub_task tasks[4];
    static const char *const PATHS[] = {"/0", "/1", "/2", "/3"};
    for (size_t i = 0; i < 4; i++) {
        texts[i] = bytes_empty(100);
        tasks[i] = (hub_task){.path = PATHS[i], .into = &texts[i]};
    }
    SAYS(HUB, LATER PLAIN("a"), LATER LATER PLAIN("b"), PLAIN("c"), LATER LATER PLAIN("d"));
    CHECK_OK(run_tasks(tasks, 4, 2), detail);
    CHECK_STR(asked[0], "hub /0 - -");
    CHECK_STR(asked[1], "hub /1 - -");
    CHECK_STR(asked[2], "hub /2 - -");
    CHECK(took_s >= 3 && took_s < 3.6); /* the last began when the first was there */
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(texts[i].len, 1);
        CHECK_INT(tasks[i].at, 1);
        CHECK_INT(tasks[i].phase, HUB_DONE);
        tasks[i] = (hub_task){.path = PATHS[i], .into = &texts[i]};
    }
    SAYS(HUB, MUTE, STATUS("404 No", ""));
    CHECK_INT(run_tasks(tasks, 4, 2), ERR_NOT_FOUND);
    CHECK_INT(n_asked, 2);
    CHECK(took_s < 0.5);
    for (size_t i = 0; i < 4; i++) {
        CHECK(!tasks[i].transfer);
        tasks[i] = (hub_task){.path = PATHS[i], .into = &texts[i]};
    }
    SAYS(HUB, STATUS("503 No", ""), STATUS("503 No", ""), PLAIN("a")); /* two wait */
    CHECK_OK(run_tasks(tasks, 2, 2), detail);
    CHECK_INT(n_asked, 4);
    CHECK(took_s >= 0.25 && took_s < 0.4);
    SAYS(HUB, STATUS("404 No", ""));
    tasks[0] = (hub_task){.path = PATHS[0], .into = &texts[0]};
    hub_client *c = hub_client_create(&place); /* nobody wants to hear of it */
    CHECK_INT(hub_client_run(c, tasks, 1, 1, NULL, NULL, NULL), ERR_NOT_FOUND);
    hub_client_destroy(c);
    for (size_t i = 0; i < 4; i++) {
        bytes_deinit(&texts[i]);
    }
}

static char lock_file[256];
static bool was_free; /* when a tick came while the second file was fetched */

static void look_at_lock(void *ctx)
{
    const hub_task *tasks = ctx;
    if (tasks[0].phase == HUB_DONE && tasks[1].phase == HUB_FETCHING) {
        const int fd = open(lock_file, O_RDWR | O_CLOEXEC);
        was_free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
        close(fd);
    }
}

/* A file that is whole is let go of, though others are not there yet. */
static void test_locks(void)
{
    hub_file files[2];
    hub_task tasks[2];
    hub_client *c = hub_client_create(&place);
    static const char *const CONTENTS[] = {"first", "second"};
    for (size_t i = 0; i < 2; i++) {
        wants("a", CONTENTS[i]);
        files[i] = file;
        tasks[i] = (hub_task){.path = "/x", .file = &files[i], .repo_dir = folder, .locks_dir = folder};
    }
    snprintf(lock_file, sizeof lock_file, "%s/%s.lock", folder, files[0].key);
    n_answered[HUB] = 0;
    SAYS(HUB, PLAIN("first"), LATER PLAIN("second"));
    CHECK_OK(hub_client_run(c, tasks, 2, 1, look_at_lock, tasks, &detail), detail);
    CHECK(was_free);
    hub_client_destroy(c);
    for (size_t i = 0; i < 2; i++) {
        file = files[i];
        is_kept(CONTENTS[i]);
    }
    file.path[0] = '\0';
}

/* ---- step by step ---- */

static bytes trace;
static size_t n_traced;
static char last_step[128];
static int last_wait = -1;

/* Each change of what the tasks have, and of how long is waited for more. */
static void look_at_tasks(void *ctx)
{
    static const char PHASES[] = {[HUB_WAITING] = 'w',
                                  [HUB_CHECKING] = 'c',
                                  [HUB_FETCHING] = 'f',
                                  [HUB_PAUSED] = 'p',
                                  [HUB_DONE] = 'd'};
    const hub_task *tasks = ctx;
    char now[128] = "";
    for (size_t i = 0, n = 0; i < n_traced; i++) {
        n += (size_t)snprintf(now + n, sizeof now - n, " %c%d", PHASES[tasks[i].phase], (int)tasks[i].at);
    }
    if (strcmp(now, last_step) != 0) {
        bytes_append_str(&trace, now);
        snprintf(last_step, sizeof last_step, "%s", now);
    }
}

void __real_http_client_poll(http_client *c, int timeout_ms);
void __wrap_http_client_poll(http_client *c, int timeout_ms);
void __wrap_http_client_poll(http_client *c, int timeout_ms)
{
    if (n_traced > 0 && timeout_ms != last_wait) {
        bytes_printf(&trace, " (%d)", timeout_ms);
        last_wait = timeout_ms;
    }
    __real_http_client_poll(c, timeout_ms);
}

static const char *steps(hub_task *tasks, size_t n)
{
    hub_client *c = hub_client_create(&place);
    n_asked = n_answered[HUB] = 0;
    n_traced = n;
    last_wait = -1;
    last_step[0] = '\0';
    bytes_clear(&trace);
    const err_code err = hub_client_run(c, tasks, n, n, look_at_tasks, tasks, &detail);
    bytes_printf(&trace, "%s%s", err ? " " : "", err ? err_name(err) : "");
    hub_client_destroy(c);
    n_traced = 0;
    return bytes_str(&trace);
}

static void put_part(const char *part)
{
    char path[256];
    snprintf(path, sizeof path, "%s/blobs/%s.incomplete", folder, file.key);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(part, f) >= 0 && fclose(f) == 0);
}

static void test_steps(void)
{
    bytes texts[2] = {bytes_empty(100), bytes_empty(100)};
#define TEXT_TASK(i) ((hub_task){.path = "/x", .into = &texts[i]})
#define FILE_TASK    ((hub_task){.path = "/x", .file = &file, .repo_dir = folder, .locks_dir = folder})
    hub_task two[2] = {TEXT_TASK(0), TEXT_TASK(1)};
    trace = bytes_empty(1 << 16);
    SAYS(HUB, PLAIN_HEAD "abc" LATER "def" CUT);
    CHECK_STR(steps(two, 1), " c0 (0) (100) f3 d6");
    two[0] = TEXT_TASK(0);
    SAYS(HUB, STATUS("503 No", ""), PLAIN("abc"));
    CHECK_STR(steps(two, 1), " c0 (0) (100) (20) p0 (100) d3");
    two[0] = TEXT_TASK(0); /* one waits, and the other is on its way */
    SAYS(HUB, STATUS("503 No", ""), LATER PLAIN("abcd"), PLAIN("ab"));
    CHECK_STR(steps(two, 2), " c0 c0 (0) (100) (20) p0 f0 (100) d2 f0 d2 d4");
    two[0] = TEXT_TASK(0);
    two[1] = TEXT_TASK(1);
    SAYS(HUB, LATER PLAIN("ab"), STATUS("503 No", ""), PLAIN("abcd"));
    CHECK_STR(steps(two, 2), " c0 c0 (0) (100) (20) f0 p0 (100) f0 d4 d2 d4");

    two[0] = TEXT_TASK(0); /* of a document nothing is there that could be too long */
    SAYS(HUB, STATUS("416 No", ""), PLAIN("abc"));
    CHECK_STR(steps(two, 1), " c0 (0) (100) (20) p0 (100) d3");

    wants("a", "0123456789");
    two[0] = FILE_TASK;
    SAYS(HUB, PLAIN_HEAD "0123" LATER "456789" CUT);
    CHECK_STR(steps(two, 1), " c0 (0) (100) f4 d10");
    is_kept("0123456789");
    put_part("0123");
    two[0] = FILE_TASK;
    SAYS(HUB, STATUS("416 No", ""), PLAIN_HEAD "0123" LATER "456789" CUT);
    CHECK_STR(steps(two, 1), " c0 (0) (100) (20) p0 (100) f4 d10");
    is_kept("0123456789");
    put_part("0123"); /* whoever knows no ranges sends all of it */
    two[0] = FILE_TASK;
    SAYS(HUB, PLAIN_HEAD "01" LATER "23456789" CUT);
    CHECK_STR(steps(two, 1), " c0 (0) (100) f2 d10");
    is_kept("0123456789");
    put_part("01234567_9");
    two[0] = FILE_TASK;
    SAYS(HUB, PLAIN("0123456789"));
    CHECK_STR(steps(two, 1), " c0 (0) (20) (100) d10");
    is_kept("0123456789");
    two[0] = FILE_TASK;
    SAYS(HUB, PLAIN("01234567_9"));
    CHECK_STR(steps(two, 1), " c0 (0) (100) f0 corrupt");
    is_kept(NULL);
    two[0] = FILE_TASK;
    SAYS(HUB, PLAIN("0123456789_"));
    CHECK_STR(steps(two, 1), " c0 (0) (100) f0 corrupt");
    is_kept(NULL);
    file.path[0] = '\0';
    bytes_deinit(&texts[0]);
    bytes_deinit(&texts[1]);
    bytes_deinit(&trace);
}

int main(void)
{
    char path[128];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/blobs", folder);
    CHECK(mkdir(path, 0700) == 0 && fetch_start());
    made_up_answer = answer;
    made_up_world = made_up_serve;
    snprintf(hub_url, sizeof hub_url, "http://127.0.0.1:%d", made_up_listen(NULL));
    snprintf(store_url, sizeof store_url, "http://127.0.0.1:%d", made_up_listen(NULL));
    snprintf(place.endpoint, sizeof place.endpoint, "%s", hub_url);
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    text = bytes_empty(1 << 20);
    test_refusals();
    test_long_refusals();
    test_redirects();
    test_files();
    test_documents();
    test_many();
    test_locks();
    test_steps();
    bytes_deinit(&text);
    made_up_close();
    fetch_stop();
    CHECK_DONE();
}
