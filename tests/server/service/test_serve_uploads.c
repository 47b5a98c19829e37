/* serve_uploads: uploads in parts over HTTP, from their first request to the file, and what becomes of all uploads by time and
 * as the disk writes; recorded. The uploads, the stores, the disk and the net are the test. */
#include "tests/recorded.h"
#include "tests/server/service/made_serve.h"
#include "tests/server/service/told.h"

/* ---- what is asked of others ---- */

static char some[1];
static upload *found; /* by uploads_find and uploads_begin */
static err_code begun, assembled, stepped;
static bool is_done, is_known, has_news;
static bool says_nothing; /* what fails does not say why */
static int64_t now_s;
static size_t form_waiting, sink_waiting;
static upload *written; /* of which something was written */

static err_code say_err(err_code err, err_detail *d, const char *name)
{
    return err == ERR_OK || says_nothing ? err : err_set_param(d, err, "x", name, "the %s", name);
}

static void say_facts(const char *what, uint64_t n_bytes, const file_facts *f)
{
    tell("%s: %lld bytes of %d, \"%s\" for %s", what, (long long)n_bytes, (int)f->scope, f->name, f->purpose);
}

WRAP(int64_t, clock_unix_s, (void), return now_s;)
WRAP(void, serve_send_body, (serve * s, conn *c, bytes *body), (void)s;
     tell("to %d: %s%s", (int)c->id, bytes_str(body), body->failed ? " (cut)" : ""); bytes_deinit(body);)
WRAP(void, serve_send_error, (serve * s, conn *c, const api_error *e), (void)s;
     tell("to %d: %d %s \"%s\" %s", (int)c->id, e->status, e->code, e->param, e->message);)
WRAP(void, serve_write_file, (bytes * out, const stored_file *f), bytes_printf(out, "\"%s\"", f->id);)
WRAP(const file_store_options *, file_store_get_options, (const file_store *fs), (void)fs;
     static const file_store_options FILES = {.max_bytes = 5000}; return &FILES;)
WRAP(bool, file_store_link,
     (file_store * fs, const uint8_t hash[HASH_BYTES], uint64_t n_bytes, const file_facts *f,
      stored_file *out),
     (void)fs;
     say_facts("known?", n_bytes, f); tell("from %d to %d", hash[0], hash[HASH_BYTES - 1]);
     CHECK_STR(out->id, ""); snprintf(out->id, sizeof out->id, "file_k"); return is_known;)
WRAP(void, file_store_expire, (file_store * fs, int64_t now), (void)fs; tell("old files at %d", (int)now);)
WRAP(err_code, uploads_begin,
     (uploads * us, upload **out, const file_facts *f, uint64_t n_bytes, upload_kind kind, err_detail *d),
     (void)us;
     say_facts(kind == UPLOAD_BY_PARTS ? "begin parts" : "begin chunks", n_bytes, f);
     *out = begun == ERR_OK ? found : NULL; return say_err(begun, d, "begin");)
WRAP(upload *, uploads_find, (uploads * us, uint64_t scope, const char *id), (void)us;
     tell("find \"%s\" of %d", id, (int)scope); return found;)
WRAP(err_code, uploads_assemble, (uploads * us, upload *up, const char *const *ids, size_t n, err_detail *d),
     (void)us;
     tell("%s of %d parts, the first \"%s\", the last \"%s\", hash %d from %d to %d", up->id, (int)n,
          n > 0 ? ids[0] : "", n > 0 ? ids[n - 1] : "", up->has_hash, up->hash[0], up->hash[HASH_BYTES - 1]);
     return say_err(assembled, d, "assemble");)
WRAP(void, uploads_drop, (uploads * us, upload *up), (void)us; tell("drop %s", up->id);)
WRAP(void, uploads_expire, (uploads * us, int64_t now), (void)us; tell("old uploads at %d", (int)now);)
WRAP(err_code, uploads_step, (uploads * us, upload *up, bool *done, err_detail *d), (void)us;
     tell("step %s", up->id); CHECK(!*done); *done = is_done; return say_err(stepped, d, "step");)
WRAP(void, serve_tell_ended, (serve * s, upload *up, const api_error *e), (void)s;
     tell("%s has ended: %d %s", up->id, e ? e->status : 0, e ? e->code : "");)
WRAP(size_t, serve_form_waiting, (const conn *c), (void)c; return form_waiting;)
WRAP(size_t, file_sink_waiting, (const file_sink *f), CHECK((const char *)f == some); return sink_waiting;)
WRAP(bool, file_sink_poll, (file_sink * f), CHECK((char *)f == some); tell("poll");
     return !written || written->sink == f;)
WRAP(void, net_pause, (net * n, uint64_t id, bool is_paused), (void)n;
     tell("%s %d", is_paused ? "pause" : "read", (int)id);)
WRAP(bool, write_queue_has_news, (write_queue * q), CHECK((char *)q == some); return has_news;)
WRAP(void, serve_chunks_written, (serve * s, upload *up), (void)s; tell("%s was written", up->id);)
WRAP(void, serve_form_written, (serve * s, conn *c), (void)s; tell("the form of %d", (int)c->id);)
WRAP(void, serve_ack_all, (serve * s), (void)s; tell("acks");)
WRAP(void, serve_tick_previews, (serve * s), (void)s; tell("previews");)

static serve *begin(const char *what)
{
    serve *s = made_serve();
    s->writes = (write_queue *)some;
    found = written = NULL;
    begun = assembled = stepped = ERR_OK;
    is_done = is_known = has_news = says_nothing = false;
    now_s = 1234;
    form_waiting = sink_waiting = 0;
    told_case("\n%s", what);
    return s;
}

static upload made_upload(void)
{
    return (upload){.id = "up_1",
                    .kind = UPLOAD_BY_PARTS,
                    .bytes = 7000000000,
                    .created_at = 6000000000,
                    .expires_at = 8000000000,
                    .facts = {.name = "a \"b\"", .purpose = "vision"},
                    .file = {.id = "file_1"}};
}

static void post(serve *s, const char *path, const char *body)
{
    conn *c = serve_conn(s, 3);
    c = c ? c : made_conn(s, 3);
    bytes text = bytes_empty(1 << 20);
    made_route(c, NET_POST, path);
    bytes_append_str(&text, body);
    tell("> %s %s", path, body);
    serve_on_uploads(s, c, &text);
    bytes_deinit(&text);
}

#define HASH "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"

/* ---- requests ---- */

static void test_begin(void)
{
    static const char *const BODIES[] = {
        "{\"bytes\":7,\"filename\":\"a.png\",\"purpose\":\"user_data\"}",
        "{\"bytes\":7}",
        "{\"bytes\":1}",
        "{\"bytes\":0}",
        "{\"bytes\":-1}",
        "{}",
        "{\"bytes\":null}",
        "{\"bytes\":5000}",
        "{\"bytes\":5001}",
        "{\"bytes\":2305843009213693951}",
        "{\"bytes\":2305843009213693952}",
        "{\"bytes\":7,\"purpose\":\"other\"}",
        "{\"bytes\":7,\"purpose\":\"0123456789012345678901234567890\"}",
        "{\"bytes\":7,\"purpose\":\"01234567890123456789012345678901\"}",
        "{\"bytes\":7,\"sha256\":\"" HASH "\"}",
        "{\"bytes\":7,\"sha256\":\"x\"}",
        "{\"bytes\":7,\"sha256\":\"" HASH "0\"}",
        "{\"bytes\":5001,\"purpose\":\"Vision\",\"sha256\":\"x\"}",
        "{\"bytes\":5001,\"sha256\":\"x\"}",
        "{\"purpose\":\"Vision\"}",
        "{\"bytes\":7,\"filename\":7}",
        "[]",
        "{",
        "",
    };
    for (size_t i = 0; i < ARRAY_LEN(BODIES); i++) {
        serve *s = begin("an upload begins");
        upload up = made_upload();
        found = &up;
        is_known = true; /* which counts for chunks alone */
        post(s, "/v1/uploads", BODIES[i]);
        tell("hash %d, from %d to %d", up.has_hash, up.has_hash ? up.hash[0] : 0,
             up.has_hash ? up.hash[HASH_BYTES - 1] : 0);
        made_end(s);
    }
    serve *s = begin("it cannot begin");
    begun = ERR_LIMIT;
    post(s, "/v1/uploads", BODIES[0]);
    says_nothing = true;
    post(s, "/v1/uploads", BODIES[0]);
    made_end(s);
    for (size_t more = 0; more < 2; more++) {
        char body[512];
        s = begin(more ? "too long a name" : "a long name");
        upload up = made_upload();
        found = &up;
        snprintf(body, sizeof body, "{\"bytes\":7,\"filename\":\"%0*d\"}", (int)(FILE_NAME_MAX - 1 + more),
                 7);
        post(s, "/v1/uploads", body);
        made_end(s);
    }
}

/* By chunks, where the same bytes may be here. */
static void test_chunks(void)
{
    static const char *const BODIES[] = {"{\"bytes\":7,\"sha256\":\"" HASH "\",\"filename\":\"n\"}",
                                         "{\"bytes\":7}", "{\"bytes\":0}"};
    for (int with = 0; with < 4; with++) {
        for (size_t i = 0; i < ARRAY_LEN(BODIES); i++) {
            serve *s = begin("an upload by chunks");
            upload up = made_upload(), *out = &up;
            stored_file known = {.id = "x"};
            json_doc *doc = NULL;
            err_detail d = {0};
            found = &up;
            is_known = with & 1;
            begun = with & 2 ? ERR_LIMIT : ERR_OK;
            CHECK_OK(json_parse(&doc, BODIES[i], strlen(BODIES[i]), 8, &d), d);
            const err_code err = serve_begin_upload(s, 6, json_root(doc), UPLOAD_BY_CHUNKS, &out, &known, &d);
            tell("%d %s: %s %s, %d", err, d.text, out ? out->id : "none", known.id, up.has_hash);
            json_free(doc);
            made_end(s);
        }
    }
}

/* Each request for an upload, in each of its states. */
static void test_upload(void)
{
    for (int state = UPLOAD_PENDING; state <= UPLOAD_COMPLETED + 1; state++) {
        static const char *const STATES[] = {"a pending upload", "one that ends", "a completed one", "none"};
        serve *s = begin(STATES[state]);
        upload up = made_upload();
        up.status = (upload_status)state;
        found = state <= UPLOAD_COMPLETED ? &up : NULL;
        post(s, "/v1/uploads/up_1/cancel", "");
        post(s, "/v1/uploads/up_1/complete", "{\"part_ids\":[\"p\"]}");
        post(s, "/v1/uploads/up_1/complete", "{");
        post(s, "/v1/uploads/up_1/complete", "[]");
        tell("it has %d", (int)up.conn);
        made_end(s);
    }
    serve *s = begin("a part");
    upload up = made_upload();
    const upload_part part = {.id = "part_1"};
    conn *c = made_conn(s, 3);
    now_s = 9000000000;
    serve_send_part(s, c, &up, &part);
    made_end(s);
}

static void test_complete(void)
{
    static const char *const BODIES[] = {
        "{\"part_ids\":[\"a\",\"b\"]}",
        "{\"part_ids\":[]}",
        "{\"part_ids\":[7,null]}",
        "{\"part_ids\":\"a\"}",
        "{}",
        "{\"part_ids\":[\"a\"],\"md5\":\"x\"}",
        "{\"part_ids\":[\"a\"],\"md5\":null}",
        "{\"part_ids\":[\"a\"],\"sha256\":\"" HASH "\"}",
        "{\"part_ids\":[\"a\"],\"sha256\":\"x\"}",
        "{\"part_ids\":[\"a\"],\"sha256\":\"" HASH "0\"}",
        "{\"part_ids\":[\"a\"],\"sha256\":7}",
    };
    for (int with = 0; with < 4; with++) {
        for (size_t i = 0; i < ARRAY_LEN(BODIES); i++) {
            serve *s =
                begin(with & 1 ? "its parts are together, and it has a hash" : "its parts are together");
            upload up = made_upload();
            up.has_hash = with & 1;
            found = &up;
            assembled = with & 2 ? ERR_INVALID : ERR_OK;
            post(s, "/v1/uploads/up_1/complete", BODIES[i]);
            tell("it has %d, and %s", (int)up.conn, up.has_hash ? "a hash" : "no hash");
            made_end(s);
        }
    }
    for (int more = 0; more < 2; more++) {
        serve *s = begin(more ? "too many parts" : "many parts");
        upload up = made_upload();
        bytes body = bytes_empty(1 << 20);
        found = &up;
        bytes_append_str(&body, "{\"part_ids\":[\"first\"");
        for (int i = 2; i < LIMIT_UPLOAD_PARTS + more; i++) {
            bytes_append_str(&body, ",1");
        }
        bytes_append_str(&body, ",\"last\"]}");
        post(s, "/v1/uploads/up_1/complete", bytes_str(&body));
        bytes_deinit(&body);
        made_end(s);
    }
}

/* ---- the end ---- */

/* Who waits for it hears of it, unless it is gone or asks for something else by now. */
static void test_step(void)
{
    static const char *const WHAT[] = {"who waits",
                                       "who is gone",
                                       "who asks for nothing",
                                       "who asks for something else",
                                       "who waits for another",
                                       "by chunks"};
    for (size_t i = 0; i < ARRAY_LEN(WHAT); i++) {
        for (int how = 0; how < 4; how++) {
            serve *s = begin(WHAT[i]);
            says_nothing = how == 3;
            upload up = made_upload();
            conn *c = made_conn(s, 3);
            made_route(c, NET_POST, i == 3 ? "/v1/uploads/up_1/cancel" : "/v1/uploads/up_1/complete");
            up.conn = i == 1 ? 4 : 3;
            if (i == 2) {
                c->route = NULL;
            } else if (i == 4) {
                snprintf(c->param, sizeof c->param, "up_2");
            } else if (i == 5) {
                up.kind = UPLOAD_BY_CHUNKS;
            }
            is_done = how == 1;
            stepped = how >= 2 ? ERR_LIMIT : ERR_OK;
            up.status = how == 1 ? UPLOAD_COMPLETED : UPLOAD_ENDING;
            serve_step_upload(s, &up);
            tell("it has %d", (int)up.conn);
            made_end(s);
        }
    }
    /* One that is cancelled is told to who completes it, too. */
    serve *s = begin("cancelled by another");
    upload up = made_upload();
    found = &up;
    made_route(made_conn(s, 7), NET_POST, "/v1/uploads/up_1/complete");
    up.conn = 7;
    up.status = UPLOAD_ENDING;
    post(s, "/v1/uploads/up_1/cancel", "");
    tell("it has %d", (int)up.conn);
    made_end(s);
}

/* ---- what was written, and time ---- */

/* Reading stops while too much of a connection waits: of its form and of its uploads. */
static void test_pace(void)
{
    static const struct {
        const char *what;
        size_t form, sinks;
    } CASES[] = {
        {"nothing waits", 0, 0},
        {"as much as may be", LIMIT_UPLOAD_WAITING, 0},
        {"a byte more", LIMIT_UPLOAD_WAITING + 1, 0},
        {"of two uploads", 0, LIMIT_UPLOAD_WAITING / 2},
        {"a byte more of each", 0, LIMIT_UPLOAD_WAITING / 2 + 1},
        {"and of the form", 1, LIMIT_UPLOAD_WAITING / 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin(CASES[i].what);
        conn *c = made_conn(s, 3);
        upload ups[4];
        for (size_t k = 0; k < ARRAY_LEN(ups); k++) {
            ups[k] = made_upload();
            ups[k].sink = k == 2 ? NULL : (file_sink *)some;
            ups[k].conn = k == 1 ? 4 : 3;
            s->uploads.list[s->uploads.n++] = &ups[k];
        }
        form_waiting = CASES[i].form;
        sink_waiting = CASES[i].sinks;
        for (int was = 0; was < 2; was++) {
            c->is_paused = was;
            serve_pace(s, c);
            tell("%s", c->is_paused ? "paused" : "read");
        }
        made_end(s);
    }
}

static void test_news(void)
{
    for (int with = 0; with < 4; with++) {
        serve *s = begin(with & 1 ? "something was written" : "nothing was written");
        upload ups[4];
        for (size_t k = 0; k < ARRAY_LEN(ups); k++) {
            ups[k] = made_upload();
            snprintf(ups[k].id, sizeof ups[k].id, "up_%d", (int)k);
            ups[k].sink = k == 2 ? NULL : (file_sink *)some;
            ups[k].status = k == 1 ? UPLOAD_ENDING : UPLOAD_PENDING;
            s->uploads.list[s->uploads.n++] = &ups[k];
        }
        for (uint64_t id = 1; id <= 5; id++) {
            made_conn(s, id)->is_paused = id % 2;
        }
        has_news = with & 1;
        written = with & 2 ? &ups[2] : NULL; /* of no sink: none has news */
        serve_on_written(s);
        made_end(s);
    }
}

static void test_tick(void)
{
    serve *s = begin("time passes");
    made_conn(s, 1)->is_paused = true;
    made_conn(s, 2);
    for (int i = 0; i < 4; i++) {
        now_s = i < 2 ? 50 : 48 + i;
        tell("at %d", (int)now_s);
        serve_tick_uploads(s);
    }
    tell("%d", (int)s->files_checked_s);
    made_end(s);
    static const uint64_t IDS[] = {62, 17}; /* they come to the first and the last place of a table */
    for (size_t k = 0; k < ARRAY_LEN(IDS); k++) {
        s = begin("wherever a connection stands");
        made_conn(s, IDS[k])->is_paused = true;
        has_news = true;
        serve_on_written(s);
        made_end(s);
    }
}

int main(void)
{
    test_begin();
    test_chunks();
    test_upload();
    test_complete();
    test_step();
    test_pace();
    test_news();
    test_tick();
    recorded_check("server/service/recorded/uploads.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
