/* hub_client over transfers, files and a clock that are made up: what is ordered, with which limits, how long it waits before each
 * try, what is done with files, and what is said in the end. tests/server/hub/client_calls.txt has all of it; real transfers are
 * in test_hub_client. */
#include "server/hub/hub_client.h"

#include <errno.h>
#include <stdarg.h>

#include "base/compiler.h"
#include "tests/recorded.h"

enum { TRANSFERS = 256, ENDLESS = 100000 };

struct http_transfer {
    http_order order;
    bool is_open;
};

static bytes all;
static double now_ms;

/* ---- what is said ---- */

static int n_polls, poll_ms, n_ticks; /* since the last line, each of these as long */

static void end_wait(void)
{
    if (n_polls > 0) {
        bytes_printf(&all, "  %d polls of %d ms, %d ticks, until %.0f\n", n_polls, poll_ms, n_ticks, now_ms);
        n_polls = n_ticks = 0;
    }
}

static void note(const char *format, ...) PRINTF_LIKE(1, 2);
static void note(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    end_wait();
    bytes_printf(&all, "  %s\n", text);
}

double __wrap_clock_ms(void);
double __wrap_clock_ms(void)
{
    return now_ms;
}

/* ---- transfers ---- */

static http_transfer transfers[TRANSFERS];
static size_t n_transfers, n_known;
static int starts_fail; /* the nth from now on; 0: none */
/* What comes, a text for each poll: acts with ';' between them. "~": nothing until a transfer begins. See act. */
static const char *const *script;

http_client *__wrap_http_client_create(void);
http_client *__wrap_http_client_create(void)
{
    static char one;
    return starts_fail == -1 ? NULL : (http_client *)(void *)&one;
}

void __wrap_http_client_destroy(http_client *c);
void __wrap_http_client_destroy(http_client *c)
{
    note("destroy%s", c ? "" : "?");
}

http_transfer *__wrap_http_client_start(http_client *c, const http_order *order);
http_transfer *__wrap_http_client_start(http_client *c, const http_order *order)
{
    CHECK(c && n_transfers < TRANSFERS);
    note("start %zu: %s, key %s, range %s, %s proxy, %d s to connect, silent for %d s", n_transfers,
         order->url, order->key ? order->key : "-", order->range ? order->range : "-",
         order->uses_proxy ? "a" : "no", order->connect_s, order->silence_s);
    CHECK(!order->unix_path && !order->body && !order->method && !order->accept && !order->n_headers &&
          !order->ca_file && !order->timeout_s);
    if (starts_fail > 0 && --starts_fail == 0) {
        return NULL;
    }
    http_transfer *t = &transfers[n_transfers++];
    *t = (http_transfer){.order = *order, .is_open = true};
    return t;
}

void __wrap_http_client_stop(http_client *c, http_transfer *t);
void __wrap_http_client_stop(http_client *c, http_transfer *t)
{
    CHECK(c && t->is_open);
    note("stop %d", (int)(t - transfers));
    t->is_open = false;
}

static void end(http_transfer *t, http_end how, const char *why)
{
    t->is_open = false;
    t->order.on_end(t->order.ctx, how, why);
}

/* "0 head 200 FROM RETRY CODE REDIRECT" ("-": none), "0 data abc", "0 end 0 why", of the transfer's number; "pass 250": ms. */
static void act(const char *text)
{
    unsigned number = 0;
    int a = 0, from = 0, retry = 0, used = 0;
    char code[32] = "-", redirect[300] = "-";
    if (sscanf(text, "pass %d", &a) == 1) {
        now_ms += a;
        return;
    }
    CHECK(sscanf(text, "%u %n", &number, &used) == 1 && number < n_transfers && transfers[number].is_open);
    http_transfer *t = &transfers[number];
    const char *what = text + used;
    bool goes_on = true;
    if (strncmp(what, "head ", 5) == 0) {
        CHECK(sscanf(what + 5, "%d %d %d %31s %299s", &a, &from, &retry, code, redirect) >= 1);
        const http_head head = {.status = a,
                                .content_type = "",
                                .range_from = from,
                                .retry_after_s = retry,
                                .error_code = code[0] == '-' ? NULL : code,
                                .redirect = redirect[0] == '-' ? NULL : redirect};
        goes_on = t->order.on_head(t->order.ctx, &head);
        note("%s: %s", text, goes_on ? "goes on" : "no more");
    } else if (strncmp(what, "data ", 5) == 0) {
        goes_on = t->order.on_data(t->order.ctx, what + 5, strlen(what + 5));
        note("%s: %s", text, goes_on ? "goes on" : "no more");
    } else if (strncmp(what, "much ", 5) == 0) { /* bytes that are not told */
        static char much[1 << 17];
        goes_on = t->order.on_data(t->order.ctx, much, (size_t)strtol(what + 5, NULL, 10));
        note("%s: %s", text, goes_on ? "goes on" : "no more");
    } else {
        CHECK(sscanf(what, "end %d %n", &a, &used) == 1);
        note("%s", text);
        end(t, (http_end)a, what + used);
    }
    if (!goes_on) {
        end(t, HTTP_STOPPED, "");
    }
}

void __wrap_http_client_poll(http_client *c, int timeout_ms);
void __wrap_http_client_poll(http_client *c, int timeout_ms)
{
    static int n_all;
    CHECK(c && n_all++ < ENDLESS);
    if (timeout_ms != poll_ms) {
        end_wait();
    }
    poll_ms = timeout_ms;
    n_polls++;
    bool is_idle = true;
    for (size_t i = 0; i < n_transfers; i++) {
        is_idle = is_idle && !transfers[i].is_open;
    }
    const bool waits = *script && strcmp(*script, "~") == 0;
    if (is_idle || !*script || (waits && n_transfers == n_known)) {
        now_ms += timeout_ms;
        return;
    }
    script += waits;
    n_known = n_transfers;
    const char *next = *script++;
    char one[512];
    for (const char *at = next; *at;) {
        const size_t n = strcspn(at, ";");
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        act(one);
        at += n + (at[n] == ';');
    }
}

/* ---- files ---- */

static int64_t left_over;  /* bytes that lie there already */
static int checks, errors; /* looks that these take; errno of the next write, 0: none */
static err_code open_err;
static const err_code *finishes; /* what comes of files that are whole, one after the other */

err_code __wrap_hub_blob_open(hub_blob *b, const char *repo_dir, const char *locks_dir, const hub_file *file,
                              err_detail *detail);
err_code __wrap_hub_blob_open(hub_blob *b, const char *repo_dir, const char *locks_dir, const hub_file *file,
                              err_detail *detail)
{
    note("open %s in %s, %s", file->path, repo_dir, locks_dir);
    *b = (hub_blob){.file = file, .part = "/the/part", .at = checks ? 0 : left_over, .before = left_over};
    return open_err ? err_set(detail, open_err, "it is locked") : ERR_OK;
}

void __wrap_hub_blob_close(hub_blob *b);
void __wrap_hub_blob_close(hub_blob *b)
{
    note("close %s", b->file ? b->file->path : "nothing");
    b->file = NULL;
}

bool __wrap_hub_blob_check_some(hub_blob *b);
bool __wrap_hub_blob_check_some(hub_blob *b)
{
    if (!b->file || b->at == left_over) {
        return false;
    }
    b->at = --checks > 0 ? b->at + 1 : left_over;
    note("check: %d", (int)b->at);
    b->error = errors;
    return checks > 0;
}

bool __wrap_hub_blob_add(hub_blob *b, const void *data, size_t n);
bool __wrap_hub_blob_add(hub_blob *b, const void *data, size_t n)
{
    note("add %.*s at %d", (int)n, (const char *)data, (int)b->at);
    b->error = errors;
    const bool fits = b->at + (int64_t)n <= b->file->size;
    b->at += fits && !errors ? (int64_t)n : 0;
    return fits && !errors;
}

bool __wrap_hub_blob_restart(hub_blob *b);
bool __wrap_hub_blob_restart(hub_blob *b)
{
    note("restart at %d", (int)b->at);
    b->error = errors;
    b->at = errors ? b->at : 0;
    return !errors;
}

err_code __wrap_hub_blob_finish(hub_blob *b, err_detail *detail);
err_code __wrap_hub_blob_finish(hub_blob *b, err_detail *detail)
{
    const err_code err = *finishes++;
    note("finish at %d: %d", (int)b->at, (int)err);
    return err ? err_set(detail, err, "what came is wrong") : ERR_OK;
}

/* ---- what is done ---- */

static hub_place place = {.endpoint = "https://hub", .key = "hf_key", .cache = "/cache"};
static const hub_file FILES[] = {{.path = "a.gguf", .size = 10}, {.path = "b", .size = 3}};
static bytes texts[3];

static void on_tick(void *ctx)
{
    CHECK(ctx == texts);
    n_ticks++;
}

static const char *const NO_SCRIPT[] = {NULL};

static void run(const char *why, hub_task *tasks, size_t n, size_t at_once, const char *const *comes)
{
    static const char PHASES[] = {[HUB_WAITING] = 'w',
                                  [HUB_CHECKING] = 'c',
                                  [HUB_FETCHING] = 'f',
                                  [HUB_PAUSED] = 'p',
                                  [HUB_DONE] = 'd'};
    static const err_code GOOD[] = {ERR_OK, ERR_OK, ERR_OK, ERR_OK};
    err_detail d = {0};
    script = comes ? comes : NO_SCRIPT;
    finishes = finishes ? finishes : GOOD;
    n_transfers = n_known = 0;
    now_ms = 1000;
    bytes_printf(&all, "==== %s\n", why);
    hub_client *c = hub_client_create(&place);
    const err_code err = hub_client_run(c, tasks, n, at_once, on_tick, texts, &d);
    note("%s %s", err_name(err), d.text);
    for (size_t i = 0; i < n; i++) {
        const hub_task *t = &tasks[i];
        CHECK(!t->transfer);
        note("%c, %d bytes, at most %d, status %d, tries %d, wait '%s' until %.0f%s", PHASES[t->phase],
             (int)t->at, (int)t->most, t->status, t->n_tries, t->wait_why, t->until_ms,
             t->was_wrong ? ", was wrong" : "");
        if (t->into) {
            note("text '%s'", bytes_str(t->into));
        }
    }
    hub_client_destroy(c);
    CHECK(!*script);
    finishes = NULL;
    left_over = checks = errors = starts_fail = 0;
    open_err = ERR_OK;
}

#define TEXT(i) ((hub_task){.path = "/text", .into = &texts[i]})
#define FILE_OF(i)                                                                                           \
    ((hub_task){.path = "/file", .file = &FILES[i], .repo_dir = "/repo", .locks_dir = "/locks"})
/* One task, and what comes. */
#define RUN(why, task, ...)                                                                                  \
    do {                                                                                                     \
        static const char *const comes[] = {__VA_ARGS__, NULL};                                              \
        hub_task one = task;                                                                                 \
        run(why, &one, 1, 1, comes);                                                                         \
    } while (0)

static void test_texts(void)
{
    hub_task first = TEXT(0);
    first.first_bytes = 5;
    RUN("a text", TEXT(0), "0 head 200;0 data ab", "0 data c;0 end 0");
    RUN("its first bytes", first, "0 head 206 0;0 data abcd;0 data efg");
    RUN("no more than these", first, "0 head 206 0;0 data abcde");
    RUN("it is shorter", first, "0 head 206 0;0 data abcd;0 end 0");
    RUN("its range is not known", first, "0 head 200;0 data abcdefg");
    RUN("another part comes", TEXT(0), "0 head 206 7;0 data abc;0 end 0", "~", "1 head 200;1 data x;1 end 0");
    RUN("it is too long", TEXT(1), "0 head 200;0 data abcdefghi");
    starts_fail = 1;
    hub_task short_of_memory = TEXT(0);
    run("there is no memory", &short_of_memory, 1, 1, NULL);
    starts_fail = -1;
    CHECK(!hub_client_create(&place));
    starts_fail = 0;
    place.key[0] = '\0';
    RUN("without a key", TEXT(0), "0 head 401;0 end 0");
    place.key[0] = 'h';
}

static void test_tries(void)
{
    RUN("the hub cannot be reached", TEXT(0), "0 end 1 no name", "~", "1 end 1 no name", "~",
        "2 end 1 no name");
    RUN("it is not well", TEXT(0), "0 head 500;0 end 0", "~", "1 head 502;1 end 0", "~", "2 end 5 nothing",
        "~", "3 end 4 cut", "~", "4 head 408;4 end 0", "~", "5 head 503;5 end 0", "~", "6 head 599;6 end 0",
        "~", "7 head 500;7 end 0");
    RUN("it asks to wait", TEXT(0), "0 head 429 0 2;0 end 0", "~", "1 head 429 0 900;1 end 0", "~",
        "2 head 429 0 901;2 end 0");
    RUN("its certificate is odd", TEXT(0), "0 end 2 expired");
    RUN("it has none", TEXT(0), "0 end 3 plain", "~", "1 head 200;1 end 0");
    RUN("it refuses", TEXT(0), "0 head 403 0 0 GatedRepo;0 end 0");
    RUN("it knows no such revision", TEXT(0), "0 head 404 0 0 RevisionNotFound;0 end 0");
    RUN("nor such a model", TEXT(0), "0 head 404;0 data not found;0 end 0");
    RUN("it answers oddly", TEXT(0), "0 head 418;0 end 0");
    RUN("what it says else is long", TEXT(0), "0 head 404;0 much 65536;0 much 1");
    RUN("what it says else just fits", TEXT(0), "0 head 404;0 much 65536;0 end 0");
}

static void test_redirects(void)
{
    RUN("a redirect", TEXT(0), "0 head 302 0 0 - https://store/x;0 end 0", "~",
        "1 head 302 0 0 - https://store/y;1 end 0", "~", "2 head 200;2 data abc;2 end 0");
    RUN("one that stays", TEXT(0), "0 head 302 0 0 - https://hub/y;0 end 0", "~",
        "1 head 200;1 data a;1 end 0");
    RUN("one that is not safe", TEXT(0), "0 head 302 0 0 - http://hub/x");
    RUN("it refuses where it leads", TEXT(0), "0 head 302 0 0 - https://store/x;0 end 0", "~",
        "1 head 403;1 end 0", "~", "2 head 404;2 end 0");
    RUN("in a circle", TEXT(0), "0 head 302 0 0 - https://hub/1;0 end 0", "~",
        "1 head 302 0 0 - https://hub/2;1 end 0", "~", "2 head 302 0 0 - https://hub/3;2 end 0", "~",
        "3 head 302 0 0 - https://hub/4;3 end 0", "~", "4 head 302 0 0 - https://hub/5;4 end 0", "~",
        "5 head 302 0 0 - https://hub/6;5 end 0", "~", "6 head 302 0 0 - https://hub/7;6 end 0", "~",
        "7 head 302 0 0 - https://hub/8;7 end 0", "~", "8 head 302 0 0 - https://hub/9");
}

static void test_files(void)
{
    static const err_code WRONG[] = {ERR_CORRUPT, ERR_CORRUPT}, ONCE[] = {ERR_CORRUPT, ERR_OK},
                          FULL[] = {ERR_IO};
    RUN("a file", FILE_OF(0), "0 head 200;0 data 01234", "0 data 56789;0 end 0");
    left_over = 4;
    checks = 3;
    RUN("a part of it is there", FILE_OF(0), "0 head 206 4;0 data 456789;0 end 0");
    left_over = 4;
    RUN("ranges are not known", FILE_OF(0), "0 head 200;0 data 0123456789;0 end 0");
    left_over = 4;
    RUN("another part comes", FILE_OF(0), "0 head 206 5;0 data 56789;0 end 0", "~",
        "1 head 206 4;1 data 456789;1 end 0");
    left_over = 4;
    RUN("it is longer than what the hub has", FILE_OF(0), "0 head 416;0 end 0", "~",
        "1 head 200;1 data 0123456789;1 end 0");
    left_over = 10;
    run("all of it is there", (hub_task[]){FILE_OF(0)}, 1, 1, NULL);
    left_over = 10;
    finishes = ONCE;
    RUN("all of it is there, and wrong", FILE_OF(0), "~", "0 head 200;0 data 0123456789;0 end 0");
    finishes = WRONG;
    RUN("it is wrong each time", FILE_OF(0), "0 head 200;0 data 0123456789;0 end 0", "~",
        "1 head 200;1 data 0123456789;1 end 0");
    finishes = FULL;
    RUN("it cannot be named", FILE_OF(0), "0 head 200;0 data 0123456789;0 end 0");
    RUN("it breaks off", FILE_OF(0), "0 head 200;0 data 0123;0 end 4 cut", "~",
        "1 head 206 4;1 data 4;1 end 0", "~", "2 head 206 5;2 end 4 cut", "~",
        "3 head 206 5;3 data 56789;3 end 0");
    RUN("it brings nothing new", FILE_OF(0), "0 head 200;0 data 0;0 end 4 a", "~", "1 head 206 1;1 end 4 b",
        "~", "2 head 206 1;2 end 4 c", "~", "3 head 206 1;3 end 4 d", "~", "4 head 206 1;4 end 4 e", "~",
        "5 head 206 1;5 end 4 f", "~", "6 head 206 1;6 end 4 g", "~", "7 head 206 1;7 end 4 h");
    RUN("it is larger", FILE_OF(0), "0 head 200;0 data 0123456789a");
    RUN("it is not there", FILE_OF(0), "0 head 404;0 end 0");
    RUN("it is refused", FILE_OF(0), "0 head 410;0 end 0");
    open_err = ERR_BUSY;
    run("another one fetches it", (hub_task[]){FILE_OF(0)}, 1, 1, NULL);
    errors = ENOSPC;
    RUN("the disk is full", FILE_OF(0), "0 head 200;0 data 012");
    errors = EDQUOT;
    RUN("the user's part of it is", FILE_OF(0), "0 head 200;0 data 012");
    errors = EIO;
    RUN("it is broken", FILE_OF(0), "0 head 200;0 data 012");
    errors = EIO;
    left_over = 4;
    RUN("it cannot begin anew", FILE_OF(0), "0 head 416;0 end 0");
    errors = EIO;
    left_over = 4;
    RUN("nor with all of it", FILE_OF(0), "0 head 200");
    errors = EIO;
    left_over = 4;
    checks = 2;
    run("what is there cannot be read", (hub_task[]){FILE_OF(0)}, 1, 1, NULL);
}

static void test_many(void)
{
    static const char *const BOTH[] = {"0 head 200;1 head 200",
                                       "0 data 0123456789;0 end 0",
                                       "~",
                                       "1 data 012;2 head 200;2 data c;1 end 0",
                                       "2 end 0",
                                       NULL},
                             *const FAILS[] = {"0 head 200;1 head 404;1 end 0", NULL},
                             *const ONE[] = {"0 head 200;0 data a;0 end 0", "~",
                                             "1 head 200;1 data b;1 end 0", NULL};
    run("three, two at once", (hub_task[]){FILE_OF(0), FILE_OF(1), TEXT(0)}, 3, 2, BOTH);
    run("one fails", (hub_task[]){FILE_OF(0), FILE_OF(1)}, 2, 2, FAILS);
    run("one after the other", (hub_task[]){TEXT(0), TEXT(2)}, 2, 1, ONE);
    run("none", NULL, 0, 1, NULL);
}

int main(void)
{
    all = bytes_empty(1 << 20);
    texts[0] = bytes_empty(1 << 20);
    texts[1] = bytes_empty(8);
    texts[2] = bytes_empty(100);
    test_texts();
    test_tries();
    test_redirects();
    test_files();
    test_many();
    recorded_check("server/hub/client_calls.txt", bytes_str(&all));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        bytes_deinit(&texts[i]);
    }
    bytes_deinit(&all);
    CHECK_DONE();
}
