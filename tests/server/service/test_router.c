/* router, access, id_table, assets: who gets where. */
#include "server/service/router.h"

#include <stdlib.h>

#include "server/service/access.h"
#include "server/service/assets.h"
#include "server/id_table.h"
#include "tests/check.h"

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
    char allow[64];
    router_allow(allow, sizeof allow, NET_GET | NET_POST);
    CHECK_STR(allow, "GET, HEAD, POST, OPTIONS");
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
    } SITS[] = {
        {"localhost:80", true, true},  {"127.0.0.1", true, true},   {"[::1]:80", true, true},
        {"a.localhost", true, true},   {"localhost", false, false}, {"192.168.0.1", true, false},
        {"chat.example", true, false}, {"[::2]", true, false},      {"127.chat.example", true, false}};
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

static int asset_status(const char *dir, const char *path)
{
    asset_reply r;
    assets_find(&r, dir, path, "gzip", "");
    int status = r.reply.status;
    asset_reply_deinit(&r);
    return status;
}

static void test_assets(void)
{
    CHECK_STR(asset_mime("/a/b.mjs"), "text/javascript; charset=utf-8");
    CHECK_STR(asset_mime("/LICENSE"), "text/plain; charset=utf-8");
    CHECK(asset_is_immutable("/js/app-0123abcd.js"));
    CHECK(asset_is_immutable("/js/app.0123abcdef.js"));
    CHECK(!asset_is_immutable("/js/views/app.js"));
    CHECK(!asset_is_immutable("/vendor/marked-18.min.js"));
    CHECK_INT(asset_status(NULL, "/"), 200);
    CHECK_INT(asset_status(NULL, "/nothing"), 404);
    const char *dir = PARLEY_SOURCE_DIR "/web";
    CHECK_INT(asset_status(dir, "/"), 200);
    CHECK_INT(asset_status(dir, "/../README.md"), 404);
    CHECK_INT(asset_status(dir, "/js/../index.html"), 404);
    CHECK_INT(asset_status(dir, "/js"), 404);
    CHECK_INT(asset_status(dir, "//etc/passwd"), 404);
    CHECK_INT(asset_status(dir, "/.hidden"), 404);
}

int main(void)
{
    test_routes();
    test_table();
    test_access();
    test_id_table();
    test_assets();
    CHECK_DONE();
}
