/* serve_forms: a form from its head to the reply: what is set aside, written, kept and given back, where it breaks off, where
 * its upload is gone or the disk fails; recorded. The disk, the stores and the net are the test. */
#include "base/limits.h"
#include "tests/one_fails.h"
#include "tests/recorded.h"
#include "tests/server/service/made_serve.h"
#include "tests/wrap.h"

enum { MOST = 5000, STEP = 1 << 20, OVERHEAD = 65536 };

/* ---- what is asked of others ---- */

static bytes all;
static char sink[1], writer[1];
static upload up; /* of parts; without an id there is none */
static bool is_idle, has_news;
static size_t waiting;
static uint64_t n_queued;
static const char *fails; /* what fails once; NULL: nothing */
static const file_store_options FILES = {.max_bytes = MOST, .dir = "/dir"};
static const upload_part PART = {.id = "part_1"};

ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)

static err_code can(const char *what, err_detail *d)
{
    if (fails && strcmp(fails, what) == 0) {
        fails = NULL;
        return err_set(d, ERR_IO, "%s fails", what);
    }
    return ERR_OK;
}

static void is_sink(const file_sink *f)
{
    CHECK((const char *)f == sink);
}

WRAP(const file_store_options *, file_store_get_options, (const file_store *fs), (void)fs; return &FILES;)
WRAP(upload *, uploads_find, (uploads * us, uint64_t scope, const char *id), (void)us; CHECK_INT(scope, 5);
     return strcmp(id, up.id) == 0 && up.id[0] ? &up : NULL;)
WRAP(err_code, uploads_open_file,
     (uploads * us, uint64_t scope, uint64_t n_bytes, size_t ahead, file_sink **out, err_detail *d), (void)us;
     (void)scope; (void)ahead; *out = (file_sink *)sink; bytes_printf(&all, "  open for %d\n", (int)n_bytes);
     return can("open", d);)
WRAP(err_code, file_sink_open,
     (file_sink * *out, write_queue *q, const char *dir, uint64_t max_bytes, size_t ahead, err_detail *d),
     (void)q;
     (void)ahead; *out = (file_sink *)sink;
     bytes_printf(&all, "  open in %s for at most %d\n", dir, (int)max_bytes); return can("open", d);)
WRAP(err_code, file_sink_add, (file_sink * f, const void *data, size_t n, err_detail *d), is_sink(f);
     n_queued += n; bytes_printf(&all, "  write %.*s\n", n > 20 ? 0 : (int)n, (const char *)data);
     return can("write", d);)
WRAP(uint64_t, file_sink_queued, (const file_sink *f), is_sink(f); return n_queued;)
WRAP(size_t, file_sink_waiting, (const file_sink *f), is_sink(f); return waiting;)
WRAP(bool, file_sink_poll, (file_sink * f), is_sink(f); return has_news;)
WRAP(bool, file_sink_is_idle, (const file_sink *f), is_sink(f); return is_idle;)
WRAP(err_code, file_sink_error, (const file_sink *f, err_detail *d), is_sink(f); return can("disk", d);)
WRAP(file_writer *, file_sink_take, (file_sink * f), is_sink(f); return (file_writer *)writer;)
WRAP(void, file_sink_drop, (file_sink * f), bytes_append_str(&all, f ? "  dropped\n" : "");)
WRAP(err_code, upload_part_begin, (const uploads *us, const upload *u, file_sink **out, err_detail *d),
     (void)us;
     CHECK(u == &up); *out = (file_sink *)sink; bytes_append_str(&all, "  begin a part\n");
     return can("part", d);)
WRAP(err_code, upload_part_add, (upload * u, file_sink *f, const void *data, size_t n, err_detail *d),
     is_sink(f);
     CHECK(u == &up); bytes_printf(&all, "  add %.*s\n", (int)n, (const char *)data); return can("add", d);)
WRAP(err_code, upload_part_end, (upload * u, file_sink *f, const upload_part **out, err_detail *d),
     is_sink(f);
     CHECK(u == &up); *out = &PART; bytes_append_str(&all, "  end the part\n"); return can("end", d);)
WRAP(void, upload_part_abort, (upload * u, file_sink *f), CHECK(u == &up);
     bytes_printf(&all, "  give up the part%s\n", f ? "" : ", which is kept");)
WRAP(err_code, file_store_reserve, (file_store * fs, uint64_t scope, uint64_t n_bytes, err_detail *d),
     (void)fs;
     CHECK_INT(scope, 5); bytes_printf(&all, "  set aside %d\n", (int)n_bytes); return can("reserve", d);)
WRAP(void, file_store_release, (file_store * fs, uint64_t scope, uint64_t n_bytes), (void)fs;
     CHECK_INT(scope, 5); bytes_printf(&all, "  give back %d\n", (int)n_bytes);)
WRAP(err_code, file_store_add,
     (file_store * fs, file_writer *w, uint64_t n_bytes, const file_facts *facts, stored_file *out,
      err_detail *d),
     (void)fs;
     CHECK((char *)w == writer);
     *out = ((stored_file){.id = "file_1", .facts = *facts, .bytes = 7, .created_at = 8, .expires_at = 9});
     bytes_printf(&all, "  keep %s for %s, %d s, of %d set aside\n", facts->name, facts->purpose,
                  (int)facts->expire_s, (int)n_bytes);
     return can("keep", d);)
WRAP(void, net_stream_body, (net * n, uint64_t id), (void)n; CHECK_INT(id, 3);
     bytes_append_str(&all, "  in pieces\n");)
WRAP(void, net_pause, (net * n, uint64_t id, bool is_paused), (void)n; CHECK_INT(id, 3);
     bytes_append_str(&all, is_paused ? "  pause\n" : "");)
WRAP(void, net_send_reply, (net * n, uint64_t id, const net_reply *reply), (void)n; CHECK_INT(id, 3);
     bytes_printf(&all, "  reply %d %.*s\n", reply->status, (int)reply->body_bytes,
                  (const char *)reply->body);)
WRAP(int64_t, clock_unix_s, (void), return 1000;)

static serve *begin(const char *what, const char *path)
{
    serve *s = made_serve();
    conn *c = made_conn(s, 3);
    made_route(c, NET_POST, path);
    up = (upload){.id = "upload_1"};
    is_idle = has_news = true;
    waiting = 0;
    n_queued = 0;
    fails = NULL;
    bytes_printf(&all, "%s\n", what);
    return s;
}

/* False if it is refused. */
static bool opens(serve *s, uint64_t n_bytes, const char *type)
{
    net_head h = {.method = NET_POST, .body_bytes = n_bytes};
    api_error e;
    snprintf(h.content_type, sizeof h.content_type, "%s", type);
    const bool is_open = serve_begin_form(s, id_table_get(&s->conns, 3), &h, &e);
    if (!is_open) {
        bytes_printf(&all, "  refused %d %s: %s\n", e.status, e.code, e.message);
    }
    return is_open;
}

static bool feed(serve *s, const char *text)
{
    net_reply refusal = {0};
    const bool goes_on = serve_on_body(s, 3, text, strlen(text), &refusal);
    if (!goes_on) {
        bytes_printf(&all, "  refused %d %.*s\n", refusal.status, (int)refusal.body_bytes,
                     (const char *)refusal.body);
    }
    return goes_on;
}

static conn *client(serve *s)
{
    return id_table_get(&s->conns, 3);
}

#define TYPE          "multipart/form-data; boundary=b"
#define FIELD(name)   "--b\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"
#define FILE_OF(name) "--b\r\nContent-Disposition: form-data; name=\"" name "\"; filename=\"f.png\"\r\n\r\n"
#define END           "\r\n--b--\r\n"

/* ---- tests ---- */

/* Whole forms, and those that are wrong in one place. */
static void test_forms(void)
{
    static const struct {
        const char *what, *text;
    } FORMS[] = {
        {"a file", FILE_OF("file") "0123" END},
        {"a file and its facts", FIELD("purpose") "vision\r\n" FIELD("expires_after[seconds]") "60\r\n" FIELD(
                                     "other") "x\r\n" FILE_OF("file") "0123" END},
        {"no file", FIELD("purpose") "vision" END},
        {"another field", FILE_OF("data") "0123" END},
        {"two files", FILE_OF("file") "01\r\n" FILE_OF("file") "23" END},
        {"an odd purpose", FIELD("purpose") "Vision" END},
        {"no purpose", FIELD("purpose") "" END},
        {"no number", FIELD("expires_after[seconds]") "x" END},
        {"more than a number", FIELD("expires_after[seconds]") "60x" END},
        {"no time", FIELD("expires_after[seconds]") "0" END},
        {"a moment", FIELD("expires_after[seconds]") "1\r\n" FILE_OF("file") "0" END},
        {"it ends too early", FILE_OF("file") "0123"},
        {"it is none", "x"},
    };
    for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
        serve *s = begin(FORMS[i].what, "/v1/files");
        if (opens(s, 300, TYPE) && feed(s, FORMS[i].text)) {
            serve_finish_form(s, client(s));
        }
        CHECK(!client(s)->form);
        made_end(s);
    }
    for (size_t more = 0; more < 2; more++) { /* what stands beside the file is short */
        bytes text = bytes_empty(10000);
        bytes_printf(&text, FIELD("other") "%0*d\r\n" FILE_OF("file") "0" END, (int)(4096 + more), 0);
        serve *s = begin(more ? "a field that is too long" : "a long field", "/v1/files");
        CHECK(opens(s, 300, TYPE));
        if (feed(s, bytes_str(&text))) {
            serve_finish_form(s, client(s));
        }
        bytes_deinit(&text);
        made_end(s);
    }
}

static void test_heads(void)
{
    static const struct {
        const char *what, *type, *fails;
        uint64_t n_bytes;
    } HEADS[] = {
        {"no form", "application/json", NULL, 10},
        {"no boundary", "multipart/form-data", NULL, 10},
        {"as long as it may be", TYPE, NULL, MOST + OVERHEAD},
        {"longer", TYPE, NULL, MOST + OVERHEAD + 1},
        {"a file that is as long as it may be", TYPE, NULL, MOST},
        {"no file can be made", TYPE, "open", 10},
        {"nor of unknown length", TYPE, "open", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(HEADS); i++) {
        serve *s = begin(HEADS[i].what, "/v1/files");
        fails = HEADS[i].fails;
        if (opens(s, HEADS[i].n_bytes, HEADS[i].type)) {
            serve_drop_form(client(s)); /* its client is gone */
        }
        serve_drop_form(client(s));
        CHECK(!client(s)->form);
        made_end(s);
    }
}

/* Of unknown length: more is set aside as it comes. */
static void test_grows(void)
{
    for (int ends = 0; ends < 3; ends++) {
        serve *s = begin("of unknown length", "/v1/files");
        CHECK(opens(s, 0, TYPE));
        CHECK(feed(s, FILE_OF("file")));
        CHECK(feed(s, "0"));
        bytes_append_str(&all, "  as much as was set aside\n");
        n_queued = STEP - 7; /* four bytes may be a part of a boundary: they are held back */
        CHECK(feed(s, "0123456789"));
        bytes_append_str(&all, "  a byte more\n");
        fails = ends == 1 ? "reserve" : ends == 2 ? "write" : NULL;
        const bool goes_on = feed(s, "0");
        CHECK_INT(goes_on, ends == 0);
        if (goes_on) {
            bytes_append_str(&all, "  more than a step\n");
            n_queued = 4 * STEP - 1;
            CHECK(feed(s, "01"));
            CHECK(feed(s, END));
            serve_finish_form(s, client(s));
        }
        made_end(s);
    }
}

/* What waits for the disk is replied to when it is written; what the disk refuses, at once. */
static void test_written(void)
{
    serve *short_one = begin("no memory", "/v1/files");
    one_fails("calloc", 1);
    const bool goes_on = opens(short_one, 300, TYPE);
    CHECK(one_fails_over());
    CHECK(!goes_on && !client(short_one)->form);
    made_end(short_one);
    serve *s = begin("it waits for the disk", "/v1/files");
    CHECK(opens(s, 300, TYPE) && feed(s, FILE_OF("file") "0123" END));
    serve_form_written(s, client(s)); /* not whole yet */
    is_idle = false;
    serve_finish_form(s, client(s));
    bytes_append_str(&all, "  written\n");
    serve_form_written(s, client(s)); /* but not all of it */
    has_news = false;
    is_idle = true;
    serve_form_written(s, client(s)); /* nothing new */
    CHECK(client(s)->form);
    has_news = true;
    serve_form_written(s, client(s));
    CHECK(!client(s)->form);
    serve_form_written(s, client(s));
    made_end(s);
    s = begin("the disk fails", "/v1/files");
    CHECK(opens(s, 300, TYPE) && feed(s, FILE_OF("file") "0123" END));
    CHECK_INT(s->metrics.upload_bytes, 4);
    fails = "disk";
    is_idle = false;
    serve_finish_form(s, client(s));
    CHECK(!client(s)->form);
    made_end(s);
    s = begin("the store fails", "/v1/files");
    CHECK(opens(s, 300, TYPE) && feed(s, FILE_OF("file") "0123" END));
    fails = "keep";
    serve_finish_form(s, client(s));
    made_end(s);
}

static void test_parts(void)
{
    static const struct {
        const char *what, *fails;
        int gone; /* the upload, from this step on */
    } CASES[] = {{"a part", NULL, 9},
                 {"no upload", NULL, 0},
                 {"no part can begin", "part", 9},
                 {"it is gone at once", NULL, 1},
                 {"it is gone later", NULL, 2},
                 {"it is gone at the end", NULL, 3},
                 {"it cannot be added to", "add", 9},
                 {"nor ended", "end", 9}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin(CASES[i].what, "/v1/uploads/upload_1/parts");
        fails = CASES[i].fails;
        up.id[0] = CASES[i].gone == 0 ? '\0' : 'u';
        bool goes_on = opens(s, 300, TYPE);
        up.id[0] = CASES[i].gone <= 1 ? '\0' : 'u';
        goes_on = goes_on && feed(s, FILE_OF("data") "01");
        up.id[0] = CASES[i].gone <= 2 ? '\0' : 'u';
        goes_on = goes_on && feed(s, "23" END);
        up.id[0] = CASES[i].gone <= 3 ? '\0' : 'u';
        if (goes_on) {
            serve_finish_form(s, client(s));
        }
        CHECK(!client(s)->form);
        made_end(s);
    }
    serve *s = begin("a part without its field", "/v1/uploads/upload_1/parts");
    CHECK(opens(s, 300, TYPE) && feed(s, FILE_OF("file") "01" END));
    serve_finish_form(s, client(s));
    made_end(s);
}

/* Nothing more is read while too much waits for the disk: of its form, and of its uploads. */
static void test_pace(void)
{
    static const struct {
        size_t waits;
        int n_uploads;
        bool is_paused;
    } CASES[] = {{LIMIT_UPLOAD_WAITING, 0, false},
                 {LIMIT_UPLOAD_WAITING + 1, 0, true},
                 {LIMIT_UPLOAD_WAITING / 2, 1, false},
                 {LIMIT_UPLOAD_WAITING / 2 + 1, 1, true},
                 {LIMIT_UPLOAD_WAITING / 4 + 1, 3, true}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        upload others[5] = {{.conn = 4, .sink = (file_sink *)sink},
                            {.conn = 3}}; /* another's, and one without a file */
        serve *s = begin("its pace", "/v1/files");
        s->uploads.n = 2 + (size_t)CASES[i].n_uploads;
        for (size_t k = 0; k < s->uploads.n; k++) {
            others[k].conn = k == 0 ? 4 : 3;
            others[k].sink = k == 1 ? NULL : (file_sink *)sink;
            s->uploads.list[k] = &others[k];
        }
        CHECK(opens(s, 300, TYPE));
        waiting = CASES[i].waits;
        serve_pace(s, client(s));
        CHECK_INT(client(s)->is_paused, CASES[i].is_paused);
        waiting = 0;
        serve_drop_form(client(s)); /* it goes on */
        CHECK(!client(s)->is_paused);
        s->uploads.n = 0;
        made_end(s);
    }
}

int main(void)
{
    all = bytes_empty(1 << 20);
    test_forms();
    test_heads();
    test_grows();
    test_written();
    test_parts();
    test_pace();
    recorded_check("server/service/recorded/forms.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
