/* router, access, id_table, assets, metrics: who gets where, and what is counted. */
#include "server/service/router.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <zlib.h>

#include "base/file.h"
#include "server/service/access.h"
#include "server/service/assets.h"
#include "server/service/metrics.h"
#include "server/id_table.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/recorded.h"

ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)
ONE_FAILS(void *, realloc, (void *old, size_t size), (old, size), NULL)
ONE_FAILS(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)
ONE_FAILS(int, getrusage, (__rusage_who_t who, struct rusage *usage), (who, usage), -1)
ONE_FAILS(int, inflateInit2_, (z_streamp z, int bits, const char *version, int size),
          (z, bits, version, size), Z_MEM_ERROR)

static void test_routes(void)
{
    const struct {
        net_method method;
        const char *path;
        int status;
        route_id id;
    } cases[] = {
        {NET_GET, "/", 200, ROUTE_ASSET},
        {NET_GET, "/js/views/app.js", 200, ROUTE_ASSET},
        {NET_POST, "/js/views/app.js", 405, ROUTE_NONE},
        {NET_POST, "/v1/chat/completions", 200, ROUTE_CHAT_COMPLETIONS},
        {NET_GET, "/v1/chat/completions", 405, ROUTE_NONE},
        {NET_OPTIONS, "/v1/chat/completions", 200, ROUTE_CHAT_COMPLETIONS},
        {NET_POST, "/v1/messages", 200, ROUTE_MESSAGES},
        {NET_POST, "/v1/messages/count_tokens", 200, ROUTE_COUNT_MESSAGES},
        {NET_GET, "/v1/messages", 405, ROUTE_NONE},
        {NET_HEAD, "/health", 200, ROUTE_HEALTH},
        {NET_GET, "/v1/models/a-model", 200, ROUTE_MODEL},
        {NET_GET, "/v1/models/", 404, ROUTE_NONE},
        {NET_GET, "/v1/models/a/b", 200, ROUTE_MODEL}, /* ORG/NAME */
        {NET_POST, "/v1/responses/resp_1/cancel", 200, ROUTE_RESPONSE_CANCEL},
        {NET_GET, "/v1/responses/resp_1/cancel", 405, ROUTE_NONE},
        {NET_GET, "/v1", 404, ROUTE_NONE},
        {NET_GET, "/v1/", 404, ROUTE_NONE},
        {NET_GET, "", 404, ROUTE_NONE},
        {NET_DELETE, "/metrics", 405, ROUTE_NONE},
        {NET_GET, "/v1/status", 200, ROUTE_STATUS},
        {NET_POST, "/v1/status", 405, ROUTE_NONE},
        {NET_POST, "/v1/chat/completions/control", 200, ROUTE_CHAT_CONTROL},
        {NET_POST, "/v1/requests/req_1/cancel", 200, ROUTE_REQUEST_CANCEL},
        {NET_DELETE, "/v1/requests/req_1", 200, ROUTE_REQUEST_CANCEL},
        {NET_GET, "/v1/requests/req_1", 405, ROUTE_NONE},
        {NET_GET, "/v1/requests", 404, ROUTE_NONE},
        {NET_DELETE, "/v1/cache", 200, ROUTE_CACHE},
        {NET_GET, "/v1/cache", 200, ROUTE_CACHE},
        {NET_GET, "/v1/cache/a", 200, ROUTE_CACHE_ENTRY},
        {NET_DELETE, "/v1/cache/a", 200, ROUTE_CACHE_ENTRY},
        {NET_POST, "/v1/cache/a", 200, ROUTE_CACHE_SAVE},
        {NET_POST, "/v1/cache/a/load", 200, ROUTE_CACHE_LOAD},
        {NET_GET, "/v1/cache/a/load", 405, ROUTE_NONE},
        {NET_POST, "/v1/responses//cancel", 404, ROUTE_NONE}, /* no name */
        {NET_OPTIONS, "/js/views/app.js", 200, ROUTE_ASSET},
        {NET_HEAD, "/js/views/app.js", 200, ROUTE_ASSET},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        router_match m = router_find(cases[i].method, cases[i].path, false);
        CHECK_INT(m.status, cases[i].status);
        CHECK_INT(m.status == 200 ? m.route->id : ROUTE_NONE, cases[i].id);
    }
    CHECK_STR(router_find(NET_GET, "/v1/models/x", false).param, "x");
    CHECK_STR(router_find(NET_GET, "/v1/models/a/b", false).param, "a/b");
    CHECK_INT(router_find(NET_GET, "/v1/responses", true).route->id, ROUTE_RESPONSES_SOCKET);
    CHECK_INT(router_find(NET_GET, "/", true).status, 404);
    CHECK(!router_find(NET_GET, "/", true).route);
    CHECK_INT(router_find(NET_GET, "/v1/responses", true).status, 200);
    CHECK_INT(router_find(NET_POST, "/v1/responses", true).status, 404);
    char path[NET_PATH_MAX] =
        "/v1/models/"; /* a name of one letter less than there is room for, and one more */
    const size_t cap = sizeof(router_match){0}.param, before = strlen(path);
    memset(path + before, 'm', cap - 1);
    path[before + cap - 1] = '\0';
    CHECK_STR(router_find(NET_GET, path, false).param, path + before);
    path[before + cap - 1] = 'm';
    path[before + cap] = '\0';
    CHECK_INT(router_find(NET_GET, path, false).status, 404);
    char allow[64];
    router_allow(allow, sizeof allow, NET_GET | NET_POST);
    CHECK_STR(allow, "GET, HEAD, POST, OPTIONS");
    router_allow(allow, sizeof allow, NET_GET | NET_POST | NET_PUT | NET_PATCH | NET_DELETE);
    CHECK_STR(allow, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    router_allow(allow, 8, NET_GET | NET_DELETE); /* it is cut where there is no more room */
    CHECK_STR(allow, "GET, HE");
    router_allow(allow, 12, NET_GET | NET_DELETE);
    CHECK_STR(allow, "GET, HEAD, ");
}

/* Every row is found by its own pattern, and takes the body that its methods have: these orders have none. */
static void test_table(void)
{
    size_t n;
    const route *table = router_table(&n);
    for (size_t i = 0; i < n; i++) {
        const route *r = &table[i];
        const route_id id = r->id;
        char path[128];
        size_t len = 0;
        for (const char *p = r->pattern; *p; p++) {
            len += (size_t)snprintf(path + len, sizeof path - len,
                                    *p == '*'   ? "a"
                                    : *p == '+' ? "a/b"
                                                : "%c",
                                    *p);
        }
        for (unsigned method = 1; method <= r->methods; method <<= 1) {
            if (r->methods & method) {
                const router_match m = router_find((net_method)method, path, false);
                CHECK_INT(m.status, 200);
                CHECK(m.route == r);
            }
        }
        CHECK(r->is_public == (id == ROUTE_HEALTH || id == ROUTE_SHARED || id == ROUTE_SHARED_FILE));
        const bool is_form = id == ROUTE_FILE_CREATE || id == ROUTE_UPLOAD_PART;
        const bool is_order = id == ROUTE_RESPONSE_CANCEL || id == ROUTE_REQUEST_CANCEL ||
                              id == ROUTE_CACHE_LOAD || id == ROUTE_MCP || id == ROUTE_UPLOAD_CANCEL;
        CHECK(r->takes_form == is_form);
        if (r->takes_json != ((r->methods & (NET_POST | NET_PUT)) && !is_form && !is_order)) {
            CHECK_STR(r->pattern, "another body");
        }
    }
}

static void test_access(void)
{
    const char *const hosts[] = {"chat.example"}, *const origins[] = {"https://app.example"};
    const char *const keys[] = {"first-key-of-two", "second-key-of-two"};
    access_rules a;
    memset(&a, 0xff, sizeof a); /* whatever was there */
    CHECK(access_init(&a, keys, 2, hosts, 1, origins, 1));
    CHECK(!a.has_admin);
    CHECK(access_host_allowed(&a, "chat.example:443"));
    CHECK(access_host_allowed(&a, "10.0.0.1"));
    CHECK(access_host_allowed(&a, "[::1]:80"));
    CHECK(!access_host_allowed(&a, "[chat.example]"));
    CHECK(!access_host_allowed(&a, "x.chat.example"));
    CHECK(!access_host_allowed(&a, "0x7f.1"));
    CHECK(!access_host_allowed(&a, ""));
    CHECK(!access_host_allowed(&a, "localhost:80x"));
    CHECK(access_origin_allowed(&a, "https://app.example", "chat.example"));
    CHECK(access_origin_allowed(&a, "http://chat.example:8080", "chat.example:8080"));
    CHECK(!access_origin_allowed(&a, "http://chat.example", "chat.example:8080"));
    CHECK(!access_origin_allowed(&a, "file://", "file"));
    CHECK(!access_origin_allowed(&a, "null", "null"));
    net_head h;
    memset(&h, 0, sizeof h);
    CHECK(!access_key_allowed(&a, &h));
    snprintf(h.authorization, sizeof h.authorization, "Bearer second-key-of-two");
    CHECK(access_key_allowed(&a, &h));
    snprintf(h.authorization, sizeof h.authorization, "bearer  first-key-of-two");
    CHECK(access_key_allowed(&a, &h));
    snprintf(h.authorization, sizeof h.authorization, "Basic first-key-of-two");
    CHECK(!access_key_allowed(&a, &h));
    snprintf(h.ws_protocols, sizeof h.ws_protocols, "parley.v1,openai-insecure-api-key.first-key-of-two");
    CHECK(!access_key_allowed(&a, &h)); /* only on an upgrade */
    h.is_upgrade = true;
    CHECK(access_key_allowed(&a, &h));
    net_head other;
    memset(&other, 0, sizeof other);
    snprintf(other.x_api_key, sizeof other.x_api_key, "first-key-of-two");
    CHECK(access_scope(&a, &h) != 0);
    CHECK(access_scope(&a, &h) == access_scope(&a, &other)); /* a key is a key, wherever it stands */
    snprintf(other.authorization, sizeof other.authorization, "Bearer second-key-of-two");
    CHECK(access_scope(&a, &other) != 0);
    CHECK(access_scope(&a, &other) != access_scope(&a, &h));
    snprintf(other.authorization, sizeof other.authorization, "Bearer wrong");
    other.x_api_key[0] = '\0';
    CHECK(access_scope(&a, &other) == 0);
    CHECK_INT(access_key_of(&a, access_scope(&a, &h)), 1); /* for people, keys count from 1 */
    CHECK_INT(access_key_of(&a, access_scope_of_key(&a, 1)), 2);
    CHECK_INT(access_key_of(&a, access_scope_of_key(&a, 1) + 1), 0);
    CHECK_INT(access_key_of(&a, 0), 0);
    access_deinit(&a);
    CHECK_INT(access_key_of(&a, 0), 0);
    CHECK(access_init(&a, NULL, 0, NULL, 0, NULL, 0));
    CHECK(access_scope(&a, &h) == 0); /* without keys all are one */
    static const struct {
        const char *host;
        bool is_direct, manages;
    } SITS[] = {{"localhost:80", true, true},  {"127.0.0.1", true, true},   {"[::1]:80", true, true},
                {"a.localhost", true, true},   {"localhost", false, false}, {"192.168.0.1", true, false},
                {"chat.example", true, false}, {"[::2]", true, false},      {"127.chat.example", true, false},
                {".localhost", true, false},   {"[::1", true, false},       {"localhost:x", true, false},
                {"LOCALHOST", true, true},     {"A.LocalHost", true, true}};
    for (size_t i = 0; i < sizeof SITS / sizeof SITS[0]; i++) {
        snprintf(h.host, sizeof h.host, "%s", SITS[i].host);
        h.is_direct = SITS[i].is_direct;
        CHECK(access_is_admin(&a, &h) == SITS[i].manages);
    }
    access_set_admin(&a, "a-key-of-the-admin");
    snprintf(h.host, sizeof h.host, "localhost");
    h.is_direct = true;
    CHECK(!access_is_admin(&a, &h)); /* then the key alone counts */
    snprintf(h.x_api_key, sizeof h.x_api_key, "a-key-of-the-admin");
    h.is_direct = false;
    CHECK(access_is_admin(&a, &h));
    access_deinit(&a);
}

/* A key is known by all of its hash. */
static void test_hashes(void)
{
    const char *const keys[] = {"a-key", "another"};
    access_rules a;
    net_head h = {.x_api_key = "a-key", .is_upgrade = true};
    CHECK(access_init(&a, keys, 1, NULL, 0, NULL, 0));
    access_set_admin(&a, "a-key");
    for (size_t i = 0; i < HASH_BYTES; i++) {
        a.key_hashes[0][i] ^= 1;
        CHECK(access_key_allowed(&a, &h)); /* the admin's is one, too */
        a.admin_hash[i] ^= 0x80;
        CHECK(!access_key_allowed(&a, &h) && !access_is_admin(&a, &h));
        a.key_hashes[0][i] ^= 1;
        CHECK(access_key_allowed(&a, &h) && !access_is_admin(&a, &h));
        a.admin_hash[i] ^= 0x80;
        CHECK(access_is_admin(&a, &h));
    }
    access_deinit(&a);
    /* Of a list of protocols each item may be one; nothing behind the name is no key. */
    static const struct {
        const char *protocols;
        bool is_known;
    } LISTS[] = {{"openai-insecure-api-key.another", true},
                 {"a, openai-insecure-api-key.wrong,\topenai-insecure-api-key.another , b", true},
                 {"openai-insecure-api-key.anothe", false},
                 {"openai-insecure-api-key.another-one", false},
                 {"openai-insecure-api-key.", false},
                 {"openai-insecure-api-key. another", false},
                 {"openai-insecure-api-key", false},
                 {"xopenai-insecure-api-key.another", false},
                 {"", false}};
    CHECK(access_init(&a, keys, 2, NULL, 0, NULL, 0));
    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        net_head asks = {.is_upgrade = true};
        snprintf(asks.ws_protocols, sizeof asks.ws_protocols, "%s", LISTS[i].protocols);
        CHECK_INT(access_key_allowed(&a, &asks), LISTS[i].is_known);
        CHECK(access_scope(&a, &asks) == (LISTS[i].is_known ? access_scope_of_key(&a, 1) : 0));
    }
    access_deinit(&a);
}

/* What is said to a request, and why. */
static void test_checks(void)
{
    static const char OTHER_HOST[] = "this Host is not served; add it with --allowed-hosts",
                      OTHER_ORIGIN[] = "this Origin may not use the server; add it with --allowed-origins",
                      OTHER_SITE[] = "requests from other sites are refused",
                      NO_KEY[] = "a valid API key is needed: Authorization: Bearer KEY";
    const char *const hosts[] = {"chat.example", "port.example:8080"}, *const origins[] = {
                                                                           "https://app.example"};
    const char *const keys[] = {"", "a-key-of-a-person"}; /* an empty one opens nothing */
    static const struct {
        const char *host, *origin, *site, *key;
        bool is_public;
        int status;
        const char *why;
    } ASKS[] = {
        {"localhost", "", "", "a-key-of-a-person", false, 200, NULL},
        {"localhost", "", "", "", false, 401, NO_KEY},
        {"localhost", "", "", "", true, 200, NULL},
        {"localhost", "", "", "wrong", true, 200, NULL},
        {"elsewhere", "", "", "a-key-of-a-person", false, 421, OTHER_HOST},
        {"elsewhere", "https://no.example", "cross-site", "", true, 421, OTHER_HOST},
        {"localhost", "https://app.example", "cross-site", "a-key-of-a-person", false, 200, NULL},
        {"localhost", "https://no.example", "", "a-key-of-a-person", false, 403, OTHER_ORIGIN},
        {"localhost", "https://no.example", "", "", true, 403, OTHER_ORIGIN},
        {"localhost", "", "cross-site", "a-key-of-a-person", false, 403, OTHER_SITE},
        {"localhost", "", "Cross-Site", "", false, 403, OTHER_SITE},
        {"localhost", "", "cross-site", "", true, 200, NULL},
        {"localhost", "", "same-site", "a-key-of-a-person", false, 200, NULL},
        {"a.localhost", "", "", "", true, 200, NULL},
        {"A.LOCALHOST:80", "", "", "", true, 200, NULL},
        {".localhost", "", "", "", true, 421, OTHER_HOST},
        {"alocalhost", "", "", "", true, 421, OTHER_HOST},
        {"CHAT.example:443", "", "", "", true, 200, NULL},
        {"port.example:8080", "", "", "", true, 200, NULL},
        {"PORT.example:8080", "", "", "", true, 200, NULL},
        {"port.example", "", "", "", true, 421, OTHER_HOST},
        {"port.example:80", "", "", "", true, 421, OTHER_HOST},
        {"[::1]", "", "", "", true, 200, NULL},
        {"[::1]:", "", "", "", true, 200, NULL},
        {"[::1", "", "", "", true, 421, OTHER_HOST},
        {"[::1]8", "", "", "", true, 421, OTHER_HOST},
        {"[]", "", "", "", true, 421, OTHER_HOST},
        {":80", "", "", "", true, 421, OTHER_HOST},
    };
    access_rules a;
    CHECK(access_init(&a, keys, 2, hosts, 2, origins, 1));
    for (size_t i = 0; i < ARRAY_LEN(ASKS); i++) {
        net_head h = {0};
        const char *why = NULL;
        snprintf(h.host, sizeof h.host, "%s", ASKS[i].host);
        snprintf(h.origin, sizeof h.origin, "%s", ASKS[i].origin);
        snprintf(h.sec_fetch_site, sizeof h.sec_fetch_site, "%s", ASKS[i].site);
        snprintf(h.authorization, sizeof h.authorization, "Bearer %s", ASKS[i].key);
        CHECK_INT(access_check(&a, &h, ASKS[i].is_public, &why), ASKS[i].status);
        if (why != ASKS[i].why) {
            CHECK_STR(why ? why : "", ASKS[i].why ? ASKS[i].why : "");
        }
    }
    char host[300]; /* a name that is as long as it may be, one that is not, and both with a port */
    memset(host, 'a', sizeof host);
    for (size_t n = 255; n <= 256; n++) {
        memcpy(host + n - 10, ".localhost", 11);
        CHECK_INT(access_host_allowed(&a, host), n == 255);
        memcpy(host + n, ":1", 3);
        CHECK_INT(access_host_allowed(&a, host), n == 255);
    }
    access_deinit(&a);
    one_fails("calloc", 1);
    CHECK(!access_init(&a, keys, 2, NULL, 0, NULL, 0));
    CHECK(one_fails_over());
    CHECK_INT(a.n_keys, 0);
    access_deinit(&a);
}

static void test_id_table(void)
{
    id_table t;
    static char values[5000];
    id_table_init(&t);
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t i = 1; i < 5000; i++) {
            CHECK(id_table_put(&t, i * (round + 1), &values[i]));
        }
        CHECK_INT(t.len, 4999);
        for (uint64_t i = 1; i < 5000; i += 2) {
            CHECK(id_table_remove(&t, i * (round + 1)) == &values[i]);
        }
        for (uint64_t i = 1; i < 5000; i++) {
            CHECK(id_table_get(&t, i * (round + 1)) == (i % 2 ? NULL : &values[i]));
        }
        for (uint64_t i = 2; i < 5000; i += 2) {
            CHECK(id_table_remove(&t, i * (round + 1)) == &values[i]);
        }
        CHECK_INT(t.len, 0);
    }
    CHECK(id_table_get(&t, 0) == NULL);
    CHECK(id_table_remove(&t, 77) == NULL);
    id_table_deinit(&t);
}

/* ---- files of the page ---- */

/* What is sent for a file, with "ETAG" for its own. same: what a file of these bytes has. */
static void say_asset(bytes *out, const char *dir, const char *path, const char *accept, const char *same,
                      bool is_known)
{
    asset_reply r;
    char etag[80] = "";
    assets_find(&r, dir, path, accept, "");
    const char *from = strstr(r.headers, "ETag: "), *to = from ? strchr(from, '\r') : NULL;
    snprintf(etag, sizeof etag, "%.*s", to ? (int)(to - from - 6) : 0, to ? from + 6 : "");
    asset_reply_deinit(&r);
    assets_find(&r, dir, path, accept, is_known ? etag : "\"another\"");
    bytes_printf(out, "%.60s %s%s: %d %s\n", path, accept, is_known ? ", known" : "", r.reply.status,
                 r.reply.content_type ? r.reply.content_type : "(no type)");
    from = etag[0] ? strstr(r.headers, etag) : NULL;
    bytes_printf(out, "%.*s%s%s", from ? (int)(from - r.headers) : (int)strlen(r.headers), r.headers,
                 from ? "ETAG" : "", from ? from + strlen(etag) : "");
    const unsigned char *body = (const unsigned char *)r.reply.body;
    bytes_printf(out, "%s, %s\n\n",
                 !body ? "nothing"
                 : same && r.reply.body_bytes == strlen(same) && memcmp(body, same, strlen(same)) == 0
                     ? "its bytes"
                 : r.reply.body_bytes > 2 && body[0] == 0x1f && body[1] == 0x8b ? "compressed"
                                                                                : "something else",
                 r.reply.body_lives ? "of the program" : "of its own");
    CHECK(body || r.reply.body_bytes == 0);
    CHECK(r.reply.headers == NULL || r.reply.headers == r.headers);
    asset_reply_deinit(&r);
}

static void make_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void test_embedded(bytes *out)
{
    static const char *const PATHS[] = {"/",         "/shared.html",       "/preview.html",
                                        "/icon.svg", "/js/first-frame.js", "/manifest.webmanifest",
                                        "/nothing",  "index.html",         ""},
                             *const TAKES[] = {"", "gzip", "br, gzip", "*", "identity"};
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        char path[1024];
        bytes text = bytes_empty(1 << 20);
        snprintf(path, sizeof path, PARLEY_SOURCE_DIR "/web%s", i ? PATHS[i] : "/index.html");
        const bool is_there = i < 6 && file_read(&text, path, NULL) == ERR_OK;
        for (size_t k = 0; k < (is_there ? ARRAY_LEN(TAKES) : 1); k++) {
            say_asset(out, NULL, PATHS[i], TAKES[k], is_there ? bytes_str(&text) : NULL, false);
        }
        say_asset(out, NULL, PATHS[i], "gzip", NULL, true);
        bytes_deinit(&text);
    }
    /* Where there is no memory to unpack it, that is said. */
    for (size_t i = 0; i < 2; i++) {
        asset_reply r;
        one_fails(i ? "inflateInit2_" : "realloc", 1);
        assets_find(&r, NULL, "/", "", "");
        CHECK(one_fails_over());
        CHECK_INT(r.reply.status, 503);
        CHECK(!r.reply.body && r.reply.body_bytes == 0);
        asset_reply_deinit(&r);
    }
}

static void test_folder(bytes *out)
{
    char folder[FOLDER_NAME], path[512], etag[80];
    asset_reply r;
    folder_make(folder);
    snprintf(path, sizeof path, "%s/js", folder);
    CHECK(mkdir(path, 0700) == 0);
    make_file(folder, "index.html", "the page");
    make_file(folder, "preview.html", "the frame");
    make_file(folder, "js/a-b_c.d+e@2.mjs", "a script");
    make_file(folder, "a b.txt", "no name for a path");
    make_file(folder, ".hidden", "a secret");
    make_file(folder, "js/..secret", "another");
    make_file(folder, "empty.css", "");
    static const struct {
        const char *path, *text;
    } FILES[] = {{"/", "the page"},
                 {"/index.html", "the page"},
                 {"/preview.html", "the frame"},
                 {"/js/a-b_c.d+e@2.mjs", "a script"},
                 {"/empty.css", ""},
                 {"/a b.txt", NULL},
                 {"/.hidden", NULL},
                 {"/js/..secret", NULL},
                 {"//index.html", NULL},
                 {"/js//a-b_c.d+e@2.mjs", NULL},
                 {"/js/../index.html", NULL},
                 {"/js", NULL},
                 {"/gone.html", NULL},
                 {"index.html", NULL},
                 {"", NULL}};
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        say_asset(out, folder, FILES[i].path, "gzip", FILES[i].text, false);
        if (FILES[i].text) {
            say_asset(out, folder, FILES[i].path, "", NULL, true);
        }
    }
    assets_find(&r, folder, "/", "gzip", ""); /* the first 16 bytes of its hash */
    snprintf(etag, sizeof etag, "%.45s", strstr(r.headers, "ETag: "));
    CHECK_STR(etag, "ETag: \"aafdd3f20726bac0993d94996c006d70\"\r\nCac");
    asset_reply_deinit(&r);
    char long_path[5000]; /* of which no file is */
    memset(long_path, 'a', sizeof long_path);
    long_path[0] = '/';
    long_path[sizeof long_path - 1] = '\0';
    say_asset(out, folder, long_path, "gzip", NULL, false);
    /* A file that is larger than any of a page. */
    snprintf(path, sizeof path, "%s/large.png", folder);
    make_file(folder, "large.png", "");
    CHECK(truncate(path, (32 << 20) + 1) == 0);
    assets_find(&r, folder, "/large.png", "", "");
    CHECK_INT(r.reply.status, 404);
    asset_reply_deinit(&r);
    CHECK(truncate(path, 32 << 20) == 0);
    assets_find(&r, folder, "/large.png", "", "");
    CHECK_INT(r.reply.status, 200);
    CHECK_STR(r.reply.content_type, "image/png");
    asset_reply_deinit(&r);
}

static void test_assets(void)
{
    static const char *const NAMES[] = {".html", ".js",          ".mjs",  ".css", ".json", ".svg",   ".png",
                                        ".jpg",  ".jpeg",        ".webp", ".gif", ".ico",  ".woff2", ".mp4",
                                        ".webm", ".webmanifest", ".txt",  "js",   ".JS"};
    bytes out = bytes_empty(1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        char path[64];
        snprintf(path, sizeof path, "/a%s", NAMES[i]);
        bytes_printf(&out, "%s %s, alone %s\n", path, asset_mime(path), asset_mime(NAMES[i]));
    }
    bytes_append_str(&out, "\n");
    test_embedded(&out);
    test_folder(&out);
    recorded_check("server/service/recorded/assets.txt", bytes_str(&out));
    bytes_deinit(&out);
}

/* ---- metrics ---- */

static void observe(metrics *m, gen_finish finish, gen_route way, double ms, int n)
{
    const metrics_sample sample = {.finish = finish,
                                   .timings = {.route = way,
                                               .prompt_n = 100,
                                               .cache_n = 20,
                                               .sparse_n = 7,
                                               .sparse_kept_n = 3,
                                               .predicted_n = n,
                                               .queue_ms = ms / 2,
                                               .media_ms = ms * 3,
                                               .vision_ms = ms * 4,
                                               .prompt_ms = ms * 5,
                                               .predicted_ms = ms * 6},
                                   .n_generated = n,
                                   .e2e_ms = ms,
                                   .ttft_ms = n ? ms / 10 : 0.0};
    metrics_answer(m, &sample);
}

/* The text without what the machine says. */
static void write_metrics(bytes *out, const metrics *m, const metrics_gauges *g)
{
    static const char *const OTHERS[] = {"parley_memory_available_bytes ", "process_cpu_seconds_total ",
                                         "process_resident_memory_bytes ", "parley_build_info{version="};
    bytes text = bytes_empty(1 << 20);
    metrics_write(&text, m, g);
    for (const char *line = bytes_str(&text); *line; line += strcspn(line, "\n") + 1) {
        size_t i = 0;
        while (i < ARRAY_LEN(OTHERS) && strncmp(line, OTHERS[i], strlen(OTHERS[i])) != 0) {
            i++;
        }
        const char *simd = i == 3 ? strstr(line, ",simd=") : NULL;
        if (i < ARRAY_LEN(OTHERS)) {
            CHECK(strtod(line + strlen(OTHERS[i]), NULL) > 0.0 || i == 1 || simd);
            bytes_printf(out, "%s~%.*s\n", OTHERS[i], simd ? (int)strcspn(simd, "\n") : 0, simd ? simd : "");
        } else {
            bytes_printf(out, "%.*s\n", (int)strcspn(line, "\n"), line);
        }
    }
    bytes_deinit(&text);
}

static void test_metrics(void)
{
    static metrics m;
    bytes out = bytes_empty(1 << 20), text = bytes_empty(1 << 20);
    const engine_status status = {.n_running = 3,
                                  .n_waiting = 4,
                                  .n_vision_encodes = 5,
                                  .n_steps = 6,
                                  .n_vision_hits = 7,
                                  .n_vision_entries = 8,
                                  .vision_cache_bytes = 9,
                                  .n_cache_queries = 10,
                                  .n_cache_hits = 11,
                                  .n_cache_entries = 12,
                                  .cache_bytes = 13,
                                  .n_disk_entries = 14,
                                  .disk_bytes = 15,
                                  .n_disk_hits = 16,
                                  .n_disk_tokens = 17,
                                  .n_disk_saves = 18,
                                  .n_disk_errors = 19,
                                  .n_drafted = 20,
                                  .n_draft_accepted = 21,
                                  .n_copied = 22,
                                  .n_copied_accepted = 23,
                                  .n_parked_steps = 24};
    metrics_gauges g = {.connections = 1,
                        .sockets = 2,
                        .answers = 3,
                        .n_resident = 4,
                        .n_files = 5,
                        .stored_bytes = 6,
                        .memory = {.limit = 7, .used = 8, .peak = 9, .n_waited = 10, .n_refused = 11},
                        .kept_bytes = 12};
    bytes_append_str(&out, "while it loads\n");
    write_metrics(&out, &m, &g);
    metrics_request(&m, "models", 200);
    metrics_request(&m, "models", 404);
    metrics_request(&m, "props", 404);
    metrics_request(&m, "models", 404);
    observe(&m, GEN_FINISH_STOP, GEN_ROUTE_TEXT, 100.0, 0);
    observe(&m, GEN_FINISH_LENGTH, GEN_ROUTE_TEXT, 1.0, 1); /* a bound holds what is as long */
    observe(&m, GEN_FINISH_CANCELLED, GEN_ROUTE_MEDIA, 60000.0, 2);
    observe(&m, GEN_FINISH_ERROR, GEN_ROUTE_MEDIA, 60001.0, 10);
    observe(&m, GEN_FINISH_FILTERED, GEN_ROUTE_TEXT, 7.0, 3);
    m.ws_resumes = 13;
    m.upload_bytes = 14;
    g.engine = &status;
    g.compute = "a \"processor\"";
    bytes_append_str(&out, "\nat work\n");
    write_metrics(&out, &m, &g);
    recorded_check("server/service/recorded/metrics.txt", bytes_str(&out));
    for (int i = 0; i < METRICS_REQUEST_KINDS;
         i++) { /* of more kinds than there is room for nothing is said */
        metrics_request(&m, "many", i);
    }
    metrics_request(&m, "models", 404);
    CHECK_INT(m.n_requests, METRICS_REQUEST_KINDS);
    CHECK_INT(m.requests[1].n, 3);
    CHECK_INT(m.requests[METRICS_REQUEST_KINDS - 1].status, METRICS_REQUEST_KINDS - 4);
    CHECK_INT(m.ws_resumes, 13);
    one_fails("fopen", 1);
    CHECK_INT(metrics_resident_bytes(), 0);
    CHECK(one_fails_over());
    one_fails("getrusage", 1);
    metrics_write(&text, &m, &g);
    CHECK(one_fails_over());
    CHECK(!strstr(bytes_str(&text), "process_cpu_seconds_total"));
    CHECK(strstr(bytes_str(&text), "process_resident_memory_bytes"));
    bytes_deinit(&out);
    bytes_deinit(&text);
}

int main(void)
{
    test_routes();
    test_table();
    test_access();
    test_hashes();
    test_checks();
    test_id_table();
    test_assets();
    test_metrics();
    CHECK_DONE();
}
