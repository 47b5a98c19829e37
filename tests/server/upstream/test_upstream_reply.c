/* upstream_reply: streams of other servers, cut everywhere, and their limits. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "server/upstream/upstream_reply.h"
#include "tests/check.h"

/* What was found, as "kind:text|". */
static void append(bytes *out, const gen_text *text)
{
    static const char *const NAMES[] = {"r", "c", "call", "args", "end", "logprobs"};
    for (size_t i = 0; text && i < text->n; i++) {
        const gen_text_piece *p = &text->pieces[i];
        bytes_printf(out, "%s:%.*s|", NAMES[p->kind], (int)p->len, p->text);
    }
}

static const char STREAM[] =
    ": hello\r\n\r\n"
    "data: "
    "{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}"
    "\n\n"
    "event: x\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"h\\u00e4\"}}]}\n\n"
    "data:{\"choices\":[{\"index\":0,\n"
    "data:\"delta\":{\"content\":\"a\"}}]}\r\n\r\n"
    "data: "
    "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":"
    "\"f\"}}]}}]}\n\n"
    "data: "
    "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{"
    "\\\"a\\\"\"}}]}}]}\n\n"
    "data: "
    "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\":1}\"}}"
    "]}}]}\n\n"
    "data: "
    "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"name\":\"g\"}}]}}]}"
    "\n\n"
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n"
    "data: "
    "{\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"prompt_tokens_details\":{"
    "\"cached_tokens\":3}}}\n\n"
    "data: [DONE]\n\n";

/* A stream in pieces of n bytes gives the same, taken after each of them. */
static void test_cut_anywhere(void)
{
    for (size_t n = 1; n <= sizeof STREAM; n++) {
        upstream_reply r;
        bytes seen = bytes_empty(65536);
        upstream_reply_init(&r, "gpu", NULL, UPSTREAM_CHAT);
        upstream_reply_head(&r, 200, "text/event-stream; charset=utf-8");
        for (size_t at = 0; at < sizeof STREAM - 1; at += n) {
            const size_t left = sizeof STREAM - 1 - at;
            (void)upstream_reply_push(&r, STREAM + at, left < n ? left : n);
            gen_text *text = upstream_reply_take(&r);
            append(&seen, text);
            free(text);
        }
        upstream_reply_finish(&r);
        gen_text *text = upstream_reply_take(&r);
        append(&seen, text);
        free(text);
        CHECK_INT(r.error, ERR_OK);
        CHECK_INT(r.finish, GEN_FINISH_STOP);
        CHECK(r.usage.is_known && r.usage.prompt == 9 && r.usage.completion == 4 && r.usage.cached == 3);
        CHECK(strstr(bytes_str(&seen), "r:h\xc3\xa4|c:a|call:f|args:{\"a\"") != NULL);
        CHECK(strstr(bytes_str(&seen), ":1}|end:|call:g|args:{}|end:|") != NULL);
        upstream_reply_deinit(&r);
        bytes_deinit(&seen);
    }
}

static void test_limits(void)
{
    static char block[1 << 16];
    memset(block, 'x', sizeof block);
    upstream_reply r;
    upstream_reply_init(&r, "gpu", NULL, UPSTREAM_CHAT);
    upstream_reply_head(&r, 200, "text/event-stream");
    (void)upstream_reply_push(&r, "data: ", 6);
    size_t n = 0;
    while (upstream_reply_push(&r, block, sizeof block)) {
        n += sizeof block;
    }
    CHECK(n <= LIMIT_UPSTREAM_EVENT_BYTES);
    CHECK_INT(r.error, ERR_UPSTREAM);
    CHECK_STR(r.detail.name, "upstream_too_large");
    upstream_reply_deinit(&r);

    upstream_reply_init(&r, "gpu", NULL, UPSTREAM_CHAT); /* comments without end */
    upstream_reply_head(&r, 200, "text/event-stream");
    block[sizeof block - 1] = '\n';
    for (n = 0; upstream_reply_push(&r, block, sizeof block); n += sizeof block) {
    }
    CHECK(n <= LIMIT_UPSTREAM_REPLY_BYTES);
    CHECK_STR(r.detail.name, "upstream_too_large");
    upstream_reply_finish(&r);
    CHECK_INT(r.finish, GEN_FINISH_ERROR);
    upstream_reply_deinit(&r);
}

/* An error that repeats the key does not go on. */
static void test_secret(void)
{
    static const char BODY[] = "{\"error\":{\"message\":\"wrong key sk-123456\",\"code\":\"x\"}}";
    upstream_reply r;
    upstream_reply_init(&r, "gpu", "sk-123456", UPSTREAM_CHAT);
    upstream_reply_head(&r, 400, "application/json");
    (void)upstream_reply_push(&r, BODY, sizeof BODY - 1);
    upstream_reply_finish(&r);
    CHECK_INT(r.error, ERR_INVALID);
    CHECK(!strstr(r.detail.text, "sk-1"));
    upstream_reply_deinit(&r);
}

int main(void)
{
    test_cut_anywhere();
    test_limits();
    test_secret();
    CHECK_DONE();
}
