/* serve_socket_uploads: what is said of files that arrive over a WebSocket, for each message and each chunk; recorded. The
 * uploads, their disk and the net are the test. */
#include "tests/recorded.h"
#include "tests/server/service/made_serve.h"
#include "tests/server/service/told.h"

/* ---- what is asked of others ---- */

static char some[1];
static upload *found; /* by uploads_find and uploads_find_handle */
static uint64_t written;
static err_code disk, begun, finishes, chunk; /* what fails */
static bool says_nothing;                     /* what fails does not say why */
static bool is_known;                         /* an upload that begins is a file at once */
static uint64_t n_taken;                      /* of a chunk */
static bool was_cut;                          /* the last message that was sent */

static err_code say_err(err_code err, err_detail *d, const char *name)
{
    return err == ERR_OK || says_nothing ? err : err_set_param(d, err, "x", name, "the %s", name);
}

WRAP(void, serve_queue_frame, (serve * s, conn *c, const bytes *text), (void)s; was_cut = text->failed;
     tell("to %d: %s", (int)c->id, bytes_str(text));)
WRAP(void, serve_tell_completed, (serve * s, conn *c, bytes *text, const stored_file *f), (void)s;
     was_cut = text->failed; tell("to %d, of %s: %s", (int)c->id, f->id, bytes_str(text));)
WRAP(void, net_want_write, (net * n, uint64_t id), (void)n; tell("write to %d", (int)id);)
WRAP(void, serve_pace, (serve * s, conn *c), (void)s; tell("pace %d", (int)c->id);)
WRAP(err_code, serve_begin_upload,
     (serve * s, uint64_t scope, const json *root, upload_kind kind, upload **out, stored_file *known,
      err_detail *d),
     (void)s;
     tell("begin for %d, kind %d: %d", (int)scope, kind, (int)json_num(json_get(root, "bytes"), -1));
     *out = is_known || begun != ERR_OK ? NULL : found;
     *known = ((stored_file){.id = "file_k", .bytes = 5000000000, .expires_at = 6000000000});
     return say_err(begun, d, "begin");)
WRAP(void, serve_step_upload, (serve * s, upload *up), (void)s;
     tell("step %s, %s", up->id, up->has_hash ? "of a hash" : "of no hash");)
WRAP(upload *, uploads_find, (uploads * us, uint64_t scope, const char *id), (void)us;
     tell("find \"%s\" of %d", id, (int)scope); return found;)
WRAP(upload *, uploads_find_handle, (uploads * us, uint64_t scope, uint32_t handle), (void)us;
     tell("find %u of %d", handle, (int)scope); return found;)
WRAP(void, uploads_drop, (uploads * us, upload *up), (void)us; tell("drop %s", up->id);)
WRAP(uint64_t, upload_written, (const upload *up), (void)up; return written;)
WRAP(err_code, uploads_finish, (upload * up, err_detail *d), tell("finish %s", up->id);
     return say_err(finishes, d, "finish");)
WRAP(err_code, upload_chunk, (upload * up, uint64_t offset, const void *data, size_t n, err_detail *d),
     tell("chunk at %llu: %.*s", (unsigned long long)offset, (int)n, (const char *)data);
     up->received += n_taken; return say_err(chunk, d, "chunk");)
WRAP(err_code, file_sink_error, (const file_sink *f, err_detail *d), CHECK((const char *)f == some);
     return say_err(disk, d, "disk");)

static serve *begin(const char *what)
{
    serve *s = made_serve();
    found = NULL;
    written = n_taken = 0;
    disk = begun = finishes = chunk = ERR_OK;
    is_known = says_nothing = false;
    told_case("\n%s", what);
    return s;
}

static conn *socket_of(serve *s, uint64_t id)
{
    conn *c = made_conn(s, id);
    c->is_socket = c->is_extended = true;
    c->scope = 5;
    return c;
}

/* Of socket 3. */
static upload made_upload(void)
{
    return (upload){.id = "up_1",
                    .handle = 4000000000,
                    .kind = UPLOAD_BY_CHUNKS,
                    .bytes = 7000000000,
                    .received = 6500000000,
                    .told = 6500000000,
                    .expires_at = 8000000000,
                    .sink = (file_sink *)some,
                    .asked = bytes_empty(40),
                    .file = {.id = "file_1", .bytes = 70, .expires_at = 80},
                    .conn = 3};
}

static void say_upload(const upload *up)
{
    tell("conn %d, told %lld, wanted %d, due %d, gap %d, hash %d, asked %d", (int)up->conn,
         (long long)up->told, up->ack_wanted, up->ack_due, up->gap_told, up->has_hash, (int)up->asked.len);
}

/* ---- acknowledgements ---- */

static void test_acks(void)
{
    serve *s = begin("acknowledgements that are due");
    conn *c = socket_of(s, 3), *other = socket_of(s, 4);
    upload ups[4];
    for (size_t i = 0; i < ARRAY_LEN(ups); i++) {
        ups[i] = made_upload();
        snprintf(ups[i].id, sizeof ups[i].id, "up_%d", (int)i);
        ups[i].ack_due = i != 1;
        ups[i].conn = i == 2 ? 4 : 3;
        s->uploads.list[s->uploads.n++] = &ups[i];
    }
    written = 5500000000;
    for (int i = 0; i < 6; i++) {
        bytes out = bytes_empty(1000);
        const bool any = serve_take_ack(s, i < 4 ? c : other, &out);
        tell("%s: %s", any ? "one" : "none", bytes_str(&out));
        bytes_deinit(&out);
    }
    for (size_t i = 0; i < ARRAY_LEN(ups); i++) {
        say_upload(&ups[i]);
    }
    made_end(s);

    s = begin("those that are due by time");
    for (size_t i = 0; i < ARRAY_LEN(ups); i++) {
        ups[i] = made_upload();
        ups[i].conn = 10 + i;
        ups[i].told = i == 1 ? 5 : 4;
        ups[i].kind = i == 2 ? UPLOAD_BY_PARTS : UPLOAD_BY_CHUNKS;
        s->uploads.list[s->uploads.n++] = &ups[i];
    }
    written = 5;
    serve_ack_all(s);
    for (int status = UPLOAD_PENDING; status <= UPLOAD_COMPLETED; status++) {
        tell("status %d", status);
        ups[0].status = (upload_status)status;
        serve_ack_all(s);
    }
    made_end(s);
}

/* What is acknowledged once it is written. */
static void test_written(void)
{
    enum { QUARTER = LIMIT_UPLOAD_WINDOW / 4 };
    static const struct {
        const char *what;
        uint64_t received, told, written;
        bool is_wanted;
    } CASES[] = {
        {"all of it, as it was wanted", 1000, 1000, 1000, true},
        {"all of it", 1000, 1000, 1000, false},
        {"not all that is wanted", 1000, 900, 999, true},
        {"a quarter of a window", 1 << 20, 7, 7 + QUARTER, false},
        {"a byte less", 1 << 20, 7, 6 + QUARTER, false},
        {"a quarter, and more is wanted", 1 << 20, 7, 7 + QUARTER, true},
        {"all, and a quarter", 7 + QUARTER, 7, 7 + QUARTER, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin(CASES[i].what);
        upload up = made_upload();
        up.received = CASES[i].received;
        up.told = CASES[i].told;
        up.ack_wanted = CASES[i].is_wanted;
        written = CASES[i].written;
        serve_chunks_written(s, &up);
        say_upload(&up);
        made_end(s);
    }
    for (int is_here = 0; is_here < 2; is_here++) {
        serve *s = begin("the disk fails");
        upload up = made_upload();
        socket_of(s, is_here ? 3 : 4);
        up.ack_wanted = true;
        written = up.received;
        disk = ERR_IO;
        serve_chunks_written(s, &up);
        disk = ERR_LIMIT;
        says_nothing = true;
        serve_chunks_written(s, &up);
        made_end(s);
    }
}

/* ---- messages ---- */

static void message(serve *s, conn *c, const char *type, const char *text, const char *event_id)
{
    json_doc *doc = NULL;
    err_detail d;
    CHECK_OK(json_parse(&doc, text, strlen(text), 8, &d), d);
    tell("> %s %s %s", type, text, event_id ? event_id : "-");
    serve_socket_upload(s, c, type, json_root(doc), event_id);
    json_free(doc);
}

static void test_create(void)
{
    for (int with = 0; with < 4; with++) {
        for (int named = 0; named < 2; named++) {
            serve *s = begin(with == 0   ? "an upload begins"
                             : with == 1 ? "it is known already"
                             : with == 2 ? "it cannot begin"
                                         : "there is too much");
            conn *c = socket_of(s, 3);
            upload up = made_upload();
            found = &up;
            up.conn = 0;
            is_known = with == 1;
            begun = with == 2 ? ERR_INVALID : with == 3 ? ERR_LIMIT : ERR_OK;
            says_nothing = with == 3 && named;
            message(s, c, "upload.create", "{\"bytes\":7}", named ? "e\"v" : NULL);
            say_upload(&up);
            made_end(s);
        }
    }
}

#define HASH "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"

static void test_verbs(void)
{
    static const char *const TYPES[] = {"upload.complete", "upload.cancel", "upload.resume",
                                        "upload.",         "upload.other",  "upload.completed",
                                        "uploads.cancel",  "upload_cancel", "later"};
    for (int state = 0; state < 6; state++) {
        for (int named = 0; named < 2; named++) {
            static const char *const STATES[] = {"pending", "ending",   "completed",
                                                 "unknown", "by parts", "that cannot be finished"};
            serve *s = begin(STATES[state]);
            conn *c = socket_of(s, 7);
            for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
                upload up = made_upload();
                up.status = state < 3 ? (upload_status)state : UPLOAD_PENDING;
                up.kind = state == 4 ? UPLOAD_BY_PARTS : UPLOAD_BY_CHUNKS;
                up.gap_told = up.ack_due = up.ack_wanted = true;
                up.file.was_known = named;
                found = state == 3 ? NULL : &up;
                finishes = state == 5 ? ERR_INVALID : ERR_OK;
                says_nothing = named;
                message(s, c, TYPES[i], i == 0 ? "{\"upload_id\":\"up_1\"}" : "{}", named ? "ev" : NULL);
                say_upload(&up);
                if (up.asked.len > 0) {
                    tell("asked %s", bytes_str(&up.asked));
                }
                bytes_deinit(&up.asked);
            }
            made_end(s);
        }
    }
}

static void test_hashes(void)
{
    static const char *const TEXTS[] = {"{\"sha256\":\"" HASH "\"}", "{\"sha256\":\"x\"}",
                                        "{\"sha256\":\"\"}", "{\"sha256\":7}", "{}"};
    for (int status = UPLOAD_PENDING; status <= UPLOAD_COMPLETED; status += UPLOAD_COMPLETED) {
        for (int had = 0; had < 2; had++) {
            for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
                serve *s = begin("a file with its hash");
                conn *c = socket_of(s, 3);
                upload up = made_upload();
                up.status = (upload_status)status;
                up.has_hash = had;
                found = &up;
                message(s, c, "upload.complete", TEXTS[i], "ev");
                say_upload(&up);
                tell("%d to %d", up.hash[0], up.hash[HASH_BYTES - 1]);
                bytes_deinit(&up.asked);
                made_end(s);
            }
        }
    }
}

/* Who asks while an upload ends is answered at its end; so many may. */
static void test_ending(void)
{
    for (int more = 0; more < 2; more++) {
        for (int named = 0; named < 2; named++) {
            serve *s = begin("as much is asked as may be");
            conn *c = socket_of(s, 3);
            upload up = made_upload();
            up.status = UPLOAD_ENDING;
            found = &up;
            message(s, c, "upload.resume", "{}", "0123456789");
            message(s, c, "upload.complete", "{}", NULL);
            message(s, c, "upload.cancel", "{}", NULL);
            while (up.asked.len < (size_t)(named ? 33 : 38) + (size_t)more) {
                bytes_append_char(&up.asked, '-');
            }
            message(s, c, "upload.resume", "{}", named ? "abcde" : NULL);
            bytes_deinit(&up.asked);
            made_end(s);
        }
    }
    static const char *const ASKED[] = {"", "+a", "-", "+a+b", "--", "-+b", "+a-+c"};
    for (int is_here = 0; is_here < 2; is_here++) {
        for (int fails = 0; fails < 2; fails++) {
            for (size_t i = 0; i < ARRAY_LEN(ASKED); i++) {
                serve *s = begin(ASKED[i]);
                socket_of(s, is_here ? 3 : 4);
                upload up = made_upload();
                api_error e;
                up.ack_due = true;
                up.told = 0;
                up.status = UPLOAD_COMPLETED;
                for (const char *p = ASKED[i]; *p; p++) { /* each has its end */
                    bytes_append_char(&up.asked, *p);
                    if (*p == '-' || *p >= 'a') {
                        bytes_append_char(&up.asked, '\0');
                    }
                }
                api_error_set(&e, 500, "odd", "p", "it failed");
                serve_tell_ended(s, &up, fails ? &e : NULL);
                say_upload(&up);
                CHECK_INT(up.asked.max, 40);
                bytes_deinit(&up.asked);
                made_end(s);
            }
        }
    }
}

/* What a small message says comes back whole, also where each of its letters takes six; or the socket is closed. */
static void test_long(void)
{
    static const char *const TYPES[] = {"upload.create", "upload.complete", "upload.cancel", "upload.resume"};
    told_case("\nlong event ids");
    for (int state = 0; state < 10; state++) {
        const bool is_small = state >= 5;
        for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
            told.failed = true; /* it is too long to be recorded */
            serve *s = begin("");
            conn *c = socket_of(s, 3);
            char id[16001];
            memset(id, 'x', 16000);
            memset(id, 0x7f, is_small ? 1000 : 16000);
            made_options.max_unread = is_small ? 20000 : made_options.max_unread;
            id[16000] = '\0';
            upload up = made_upload();
            up.status = state % 5 == 0 ? UPLOAD_PENDING : UPLOAD_COMPLETED;
            found = state % 5 == 2 ? NULL : &up;
            is_known = state % 5 == 3;
            begun = state % 5 == 4 ? ERR_LIMIT : ERR_OK;
            was_cut = false;
            json_doc *doc = NULL;
            CHECK_INT(json_parse(&doc, "{}", 2, 8, NULL), ERR_OK);
            serve_socket_upload(s, c, TYPES[i], json_root(doc), id);
            json_free(doc);
            CHECK_INT(was_cut, is_small && !(state == 5 && i == 3)); /* of which nothing is said */
            told.failed = false;
            bytes_deinit(&up.asked);
            made_end(s);
        }
    }
}

/* ---- chunks ---- */

/* A frame: its head, then data. */
static void send_chunk(serve *s, uint64_t id, int version, int kind, int flags, uint64_t offset,
                       const char *data)
{
    uint8_t frame[256] = {(uint8_t)version, (uint8_t)kind, (uint8_t)flags, (uint8_t)(flags >> 8)};
    const uint32_t handle = 0x80706051;
    for (int i = 0; i < 4; i++) {
        frame[4 + i] = (uint8_t)(handle >> 8 * i);
    }
    for (int i = 0; i < 8; i++) {
        frame[8 + i] = (uint8_t)(offset >> 8 * i);
    }
    memcpy(frame + SERVE_CHUNK_HEADER, data, strlen(data));
    serve_on_binary(s, id, frame, SERVE_CHUNK_HEADER + strlen(data));
}

static void test_frames(void)
{
    serve *s = begin("frames that are no chunk");
    upload up = made_upload();
    socket_of(s, 3);
    found = &up;
    send_chunk(s, 9, 1, 1, 0, 0, "of a socket that is gone");
    send_chunk(s, 3, 1, 1, 0, 0, "");
    send_chunk(s, 3, 0, 1, 0, 0, "x");
    send_chunk(s, 3, 2, 1, 0, 0, "x");
    send_chunk(s, 3, 1, 0, 0, 0, "x");
    send_chunk(s, 3, 1, 2, 0, 0, "x");
    serve_on_binary(s, 3, "\1\1", 2);
    made_end(s);

    s = begin("of what is no upload of this socket");
    conn *c = socket_of(s, 3);
    up.conn = 4;
    for (int i = 0; i < 3; i++) { /* it is said once */
        send_chunk(s, 3, 1, 1, 0, 5, "x");
        c->unknown_handle += i == 1;
    }
    c->unknown_handle = 0;
    up.conn = 3;
    up.kind = UPLOAD_BY_PARTS;
    send_chunk(s, 3, 1, 1, 0, 5, "x");
    c->unknown_handle = 0;
    found = NULL;
    send_chunk(s, 3, 1, 1, 0, 5, "x");
    made_end(s);
}

static void test_chunks(void)
{
    static const struct {
        const char *what;
        uint64_t bytes, received, offset, taken;
        int flags;
        bool is_wanted, gap_told;
        err_code err;
    } CASES[] = {
        {.what = "a chunk", .bytes = 9, .received = 2, .offset = 2, .taken = 3},
        {.what = "far behind", .bytes = 1u << 31, .offset = 0x0102030405060708, .taken = 3},
        {.what = "a large offset", .bytes = (uint64_t)1 << 62, .offset = 0x0102030405060708, .taken = 3},
        {.what = "all of it", .bytes = 9, .received = 6, .offset = 6, .taken = 3},
        {.what = "up to its end", .bytes = 9, .received = 2, .offset = 6, .taken = 3},
        {.what = "beyond", .bytes = 9, .received = 2, .offset = 7, .taken = 3},
        {.what = "at its end", .bytes = 9, .received = 2, .offset = 9, .taken = 3},
        {.what = "behind its end", .bytes = 9, .received = 2, .offset = 10, .taken = 3},
        {.what = "at the end of numbers", .bytes = 9, .received = 2, .offset = UINT64_MAX - 1, .taken = 3},
        {.what = "the last", .bytes = 9, .received = 2, .offset = 2, .taken = 3, .flags = 1},
        {.what = "the last, with more flags", .bytes = 9, .offset = 2, .taken = 3, .flags = 7},
        {.what = "another flag", .bytes = 9, .received = 2, .offset = 2, .taken = 3, .flags = 0x102},
        {.what = "what is there already", .bytes = 9, .received = 5, .offset = 2, .taken = 0},
        {.what = "one is wanted", .bytes = 9, .offset = 2, .taken = 3, .is_wanted = true},
        {.what = "behind a gap", .bytes = 9, .received = 2, .offset = 5, .taken = 0, .err = ERR_INVALID},
        {.what = "behind a gap that was told", .bytes = 9, .offset = 5, .gap_told = true, .err = ERR_INVALID},
        {.what = "no memory", .bytes = 9, .received = 2, .offset = 2, .taken = 1, .err = ERR_INVALID},
        {.what = "the disk fails", .bytes = 9, .received = 2, .offset = 2, .taken = 2, .err = ERR_IO},
        {.what = "it may not be written",
         .bytes = 9,
         .received = 2,
         .offset = 2,
         .taken = 2,
         .err = ERR_LIMIT},
        {.what = "the gap is over", .bytes = 9, .offset = 2, .taken = 3, .gap_told = true},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin(CASES[i].what);
        socket_of(s, 3);
        upload up = made_upload();
        up.bytes = CASES[i].bytes;
        up.received = CASES[i].received;
        up.told = 0;
        up.ack_wanted = CASES[i].is_wanted;
        up.gap_told = CASES[i].gap_told;
        found = &up;
        n_taken = CASES[i].taken;
        chunk = CASES[i].err;
        written = up.received + n_taken;
        s->metrics.upload_bytes = 100;
        send_chunk(s, 3, 1, 1, CASES[i].flags, CASES[i].offset, "abc");
        say_upload(&up);
        tell("%d bytes counted", (int)s->metrics.upload_bytes);
        says_nothing = true;
        written--; /* not all of it is on the disk */
        send_chunk(s, 3, 1, 1, CASES[i].flags, CASES[i].offset, "abc");
        say_upload(&up);
        made_end(s);
    }
}

int main(void)
{
    test_acks();
    test_written();
    test_create();
    test_verbs();
    test_hashes();
    test_ending();
    test_long();
    test_frames();
    test_chunks();
    recorded_check("server/service/recorded/socket_uploads.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
