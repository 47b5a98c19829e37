/* serve_files: what clients of both dialects get of their files: lists with each parameter on both sides of its bounds, one file, its
 * content, its end; recorded. The store and the net are the test. */
#include "tests/recorded.h"
#include "tests/server/service/made_serve.h"
#include "tests/wrap.h"

/* ---- what is asked of others ---- */

static bytes all;
static char some[1];
static int n_files; /* in the store */
static bool is_known, has_place;
static err_code opens;

/* Each third is a video, each second of another purpose. */
static stored_file file_of(int i)
{
    stored_file f = {.bytes = 1000 + (uint64_t)i,
                     .created_at = 86400 * (int64_t)i,
                     .expires_at = 86400 * (int64_t)i + 3600,
                     .mime = i % 3 ? "image/png" : NULL};
    snprintf(f.id, sizeof f.id, "file_%d", i);
    snprintf(f.facts.name, sizeof f.facts.name, "a \"%d\" \xc3\xa4_z-0.9~\r\n", i);
    snprintf(f.facts.purpose, sizeof f.facts.purpose, "%s", i % 2 ? "vision" : "user_data");
    for (size_t k = 0; k < HASH_BYTES; k++) {
        f.hash[k] = (uint8_t)(16 * (size_t)i + k);
    }
    return f;
}

WRAP(
    bool, file_store_list,
    (file_store * fs, uint64_t scope, const char *after, bool newest, bool (*fn)(void *, const stored_file *),
     void *ctx),
    CHECK((char *)fs == some);
    CHECK_INT(scope, 5);
    bytes_printf(&all, "  files after \"%s\", the %s first\n", after, newest ? "newest" : "oldest");
    bool more = has_place; int i = 1; for (; i <= n_files && more; i++) {
        const stored_file f = file_of(i);
        more = fn(ctx, &f);
    } bytes_printf(&all, "  %d were shown\n", i - 1);
    return has_place;)
WRAP(bool, file_store_get, (file_store * fs, uint64_t scope, const char *id, stored_file *out),
     CHECK((char *)fs == some && scope == 5);
     bytes_printf(&all, "  get %s\n", id); *out = file_of(2); return is_known;)
WRAP(bool, file_store_delete, (file_store * fs, uint64_t scope, const char *id),
     CHECK((char *)fs == some && scope == 5);
     bytes_printf(&all, "  delete %s\n", id); return is_known;)
WRAP(err_code, file_store_open,
     (file_store * fs, uint64_t scope, const char *id, file_handle *out, err_detail *d),
     CHECK((char *)fs == some && scope == 5);
     bytes_printf(&all, "  open %s\n", id); *out = (file_handle){.fd = 77};
     return opens == ERR_OK ? ERR_OK : err_set(d, opens, "it cannot be read");)
WRAP(void, metrics_request, (metrics * m, const char *endpoint, int status), (void)m;
     bytes_printf(&all, "  counted %s %d\n", endpoint, status);)
WRAP(
    void, net_send_reply, (net * n, uint64_t id, const net_reply *r), (void)n; CHECK_INT(id, 3);
    bytes_printf(&all, "  %d %s %s", r->status, r->content_type, r->headers ? r->headers : "");
    if (r->has_file) { bytes_printf(&all, "file %d, %zu bytes", r->file, r->body_bytes); } else {
        bytes_append(&all, r->body, r->body_bytes);
    } bytes_append_char(&all, '\n');)

static void ask(net_method method, const char *path, const char *query, bool is_anthropic)
{
    serve *s = made_serve();
    conn *c = made_conn(s, 3);
    made_route(c, method, path);
    c->is_anthropic = is_anthropic;
    s->files = (file_store *)some;
    snprintf(c->query_string, sizeof c->query_string, "%s", query);
    bytes_printf(&all, "%d %s?%s%s\n", (int)method, path, query, is_anthropic ? " as the other" : "");
    serve_on_files(s, c);
    made_end(s);
}

/* ---- tests ---- */

static void test_lists(void)
{
    static const char *const QUERIES[] = {
        "",
        "limit=2",
        "limit=3",
        "limit=1",
        "limit=0",
        "limit=10000",
        "limit=10001",
        "limit=-1",
        "limit=x",
        "limit=",
        "limit=2x",
        "limit=%202",
        "limit=00000000000000000000002",
        "limit=000000000000000000000002",
        "order=asc",
        "order=desc",
        "order=up",
        "order=ascendi",
        "order=ascendin",
        "purpose=vision",
        "purpose=vision&limit=1",
        "purpose=other",
        "purpose=0123456789012345678901234567890",
        "purpose=01234567890123456789012345678901",
        "after=file_1",
        "page=file_1",
        "after=01234567890123456789012345678901234567890123456",
        "after=012345678901234567890123456789012345678901234567",
    };
    has_place = true;
    n_files = 3;
    for (size_t i = 0; i < ARRAY_LEN(QUERIES); i++) {
        ask(NET_GET, "/v1/files", QUERIES[i], false);
    }
    ask(NET_GET, "/v1/files", "page=file_1&after=file_2&limit=2", true);
    n_files = 0;
    ask(NET_GET, "/v1/files", "", false);
    has_place = false;
    ask(NET_GET, "/v1/files", "after=x", false);
}

static void test_one(void)
{
    static const char *const PATHS[] = {"/v1/files/f_1", "/v1/files/f_1/content"};
    for (int known = 0; known < 2; known++) {
        is_known = known;
        ask(NET_DELETE, "/v1/files/f_1", "", known);
        for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
            ask(NET_GET, PATHS[i], "", false);
            ask(NET_GET, PATHS[i], "", true);
        }
    }
    opens = ERR_IO;
    ask(NET_GET, PATHS[1], "", false);
}

static void test_purposes(void)
{
    static const char *const PURPOSES[] = {"",
                                           "a",
                                           "a_b-z",
                                           "A",
                                           "a1",
                                           "a b",
                                           "abcdefghijklmnopqrstuvwxyzabcde",
                                           "abcdefghijklmnopqrstuvwxyzabcdef"};
    for (size_t i = 0; i < ARRAY_LEN(PURPOSES); i++) {
        bytes_printf(&all, "purpose \"%s\": %d\n", PURPOSES[i], serve_valid_purpose(PURPOSES[i]));
    }
}

int main(void)
{
    all = bytes_empty(1 << 20);
    test_lists();
    test_one();
    test_purposes();
    for (char *p = all.data; p < all.data + all.len; p++) {
        *p = *p == '\r' ? '|' : *p;
    }
    recorded_check("server/service/recorded/stored_files.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
