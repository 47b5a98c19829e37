/* api_error: every error's status, type and code; id_table: ids that come and go. */
#include "server/api_error.h"

#include "server/id_table.h"
#include "tests/check.h"

static void test_statuses(void)
{
    static const struct {
        err_code code;
        const char *name;
        int status;
        const char *type, *said;
    } CASES[] = {
        {ERR_INVALID, "x", 400, "invalid_request_error", "x"},
        {ERR_CORRUPT, "x", 400, "invalid_request_error", "x"},
        {ERR_LIMIT, "x", 400, "invalid_request_error", "x"},
        {ERR_UNSUPPORTED, "x", 400, "invalid_request_error", "x"},
        {ERR_LIMIT, "body_too_large", 413, "request_too_large", "body_too_large"},
        {ERR_LIMIT, "memory_limit", 413, "request_too_large", "memory_limit"},
        {ERR_LIMIT, "upload_too_large", 413, "request_too_large", "upload_too_large"},
        {ERR_LIMIT, "upload_quota_exceeded", 413, "request_too_large", "upload_quota_exceeded"},
        {ERR_LIMIT, "too_many_files", 413, "request_too_large", "too_many_files"},
        {ERR_LIMIT, "too_many_parts", 413, "request_too_large", "too_many_parts"},
        {ERR_LIMIT, "too_many_uploads", 429, "rate_limit_error", "too_many_uploads"},
        {ERR_LIMIT, "too_many_chats", 413, "request_too_large", "too_many_chats"},
        {ERR_LIMIT, "too_many_shares", 413, "request_too_large", "too_many_shares"},
        {ERR_LIMIT, "chat_too_large", 413, "request_too_large", "chat_too_large"},
        {ERR_LIMIT, "too_many_conversations", 413, "request_too_large", "too_many_conversations"},
        {ERR_LIMIT, "conversation_too_large", 413, "request_too_large", "conversation_too_large"},
        {ERR_LIMIT, "history_full", 507, "invalid_request_error", "history_full"},
        {ERR_CORRUPT, "history_damaged", 500, "server_error", "history_damaged"},
        {ERR_INVALID, "revision_conflict", 409, "invalid_request_error", "revision_conflict"},
        {ERR_INVALID, "body_too_large", 400, "invalid_request_error", "body_too_large"}, /* of another kind */
        {ERR_NOT_FOUND, "x", 404, "not_found_error", "x"},
        {ERR_BUSY, "memory_busy", 429, "rate_limit_error", "memory_busy"},
        {ERR_BUSY, "upstream_busy", 429, "rate_limit_error", "upstream_busy"},
        {ERR_BUSY, "x", 429, "rate_limit_error", "queue_full"},
        {ERR_NOMEM, "x", 503, "unavailable_error", "out_of_memory"},
        {ERR_UPSTREAM, "x", 502, "upstream_error", "x"},
        {ERR_UPSTREAM, "", 502, "upstream_error", "upstream_failed"},
        {ERR_TIMEOUT, "x", 504, "timeout_error", "x"},
        {ERR_IO, "upload_storage_failed", 507, "invalid_request_error", "upload_storage_failed"},
        {ERR_IO, "x", 500, "server_error", "server_error"},
        {ERR_CANCELLED, "x", 499, "invalid_request_error", "cancelled"},
        {ERR_INTERNAL, "x", 500, "server_error", "server_error"},
        {ERR_CONTEXT, "x", 400, "exceed_context_size_error", "context_length_exceeded"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        api_error e;
        err_detail d = {0};
        (void)err_set_param(&d, CASES[i].code, "field", CASES[i].name, "the text");
        d.amount = 7;
        d.limit = 5;
        api_error_from(&e, CASES[i].code, &d);
        CHECK_INT(e.status, CASES[i].status);
        CHECK_STR(e.type, CASES[i].type);
        CHECK_STR(e.code, CASES[i].said);
        CHECK_INT(e.retry_after_s, e.status == 429 ? 1 : e.status == 503 ? 5 : 0);
        CHECK_INT(e.n_ctx, CASES[i].code == ERR_CONTEXT ? 5 : 0);
        CHECK_INT(e.n_prompt_tokens, CASES[i].code == ERR_CONTEXT ? 7 : 0);
        /* What is ours alone says nothing of itself. */
        const bool is_ours = strcmp(e.code, "server_error") == 0 || CASES[i].code == ERR_NOMEM ||
                             CASES[i].code == ERR_CANCELLED || strcmp(e.code, "queue_full") == 0;
        CHECK(is_ours != (strcmp(e.message, "the text") == 0));
        CHECK_STR(e.param, is_ours || CASES[i].code == ERR_BUSY ? "" : "field");
    }
    api_error e;
    api_error_from(&e, ERR_INVALID, NULL);
    CHECK_STR(e.message, err_name(ERR_INVALID));
    api_error_from(&e, ERR_CONTEXT, NULL);
    CHECK_INT(e.n_ctx, 0);
    CHECK_INT(e.n_prompt_tokens, 0);
    static const struct {
        int status;
        const char *type;
    } TYPES[] = {{401, "authentication_error"},
                 {403, "permission_error"},
                 {405, "invalid_request_error"},
                 {501, "not_supported_error"}};
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        api_error_set(&e, TYPES[i].status, NULL, NULL, "n %d", 7);
        CHECK_STR(e.type, TYPES[i].type);
        CHECK_STR(e.message, "n 7");
        CHECK(e.code[0] == '\0' && e.param[0] == '\0' && e.retry_after_s == 0);
    }
}

static void test_body(void)
{
    bytes out = bytes_empty(1000);
    api_error e;
    api_error_set(&e, 400, "c", "p", "say \"no\"");
    api_error_write_body(&out, &e);
    CHECK_STR(bytes_str(&out),
              "{\"error\":{\"message\":\"say "
              "\\\"no\\\"\",\"type\":\"invalid_request_error\",\"param\":\"p\",\"code\":\"c\"}}");
    out.len = 0;
    api_error_set(&e, 401, NULL, NULL, "m");
    e.n_ctx = 5;
    e.n_prompt_tokens = 7;
    api_error_write(&out, &e, ",\"x\":1");
    CHECK_STR(bytes_str(&out), "{\"message\":\"m\",\"type\":\"authentication_error\",\"param\":null,\"code\":"
                               "null,\"n_prompt_tokens\":7,\"n_ctx\":5,\"x\":1}");
    bytes_deinit(&out);
}

/* Against a plain array, over ids that fall together. */
static void test_ids(void)
{
    enum { N = 200 };
    static void *expected[N];
    static int things[N];
    id_table t;
    id_table_init(&t);
    CHECK(id_table_get(&t, 1) == NULL && id_table_remove(&t, 1) == NULL);
    uint32_t x = 1;
    size_t n = 0;
    for (int round = 0; round < 5000; round++) {
        x = x * 1103515245 + 12345;
        const size_t i = (x >> 16) % N;
        const uint64_t id = (uint64_t)(i + 1) << (i % 3 * 20); /* many have the same low bits */
        if ((x >> 8) % 3) {
            CHECK(id_table_put(&t, id, &things[(i + (size_t)round) % N]));
            n += expected[i] == NULL;
            expected[i] = &things[(i + (size_t)round) % N];
        } else {
            CHECK(id_table_remove(&t, id) == expected[i]);
            n -= expected[i] != NULL;
            expected[i] = NULL;
        }
        CHECK_INT(t.len, n);
        CHECK(id_table_get(&t, id) == expected[i]);
    }
    size_t walked = 0;
    for (size_t i = 0; i < t.cap; i++) {
        walked += id_table_at(&t, i) != NULL;
    }
    CHECK_INT(walked, n);
    for (size_t i = 0; i < N; i++) {
        CHECK(id_table_get(&t, (uint64_t)(i + 1) << (i % 3 * 20)) == expected[i]);
    }
    CHECK(t.cap >= n && (t.cap & (t.cap - 1)) == 0);
    id_table_deinit(&t);
}

/* Without a detail the code alone is known. */
static void test_no_detail(void)
{
    for (int code = ERR_OK + 1; code < (int)ERR_N_CODES; code++) {
        api_error e, named;
        const err_detail none = {0};
        memset(&e, 1, sizeof e);
        memset(&named, 1, sizeof named);
        api_error_from(&e, (err_code)code, NULL);
        api_error_from(&named, (err_code)code, &none);
        CHECK_INT(e.status, named.status);
        CHECK_STR(e.message, named.message);
        CHECK_INT(e.n_prompt_tokens, 0);
        CHECK_INT(e.n_ctx, 0);
    }
}

int main(void)
{
    test_statuses();
    test_no_detail();
    test_body();
    test_ids();
    CHECK_DONE();
}
