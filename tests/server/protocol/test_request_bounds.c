/* What is too much: vectors of a reply, documents with their query, a conversation and the body that adds to it; and what a
 * socket hears of an answer that is computed, and of one that fails. */
#include <math.h>

#include "base/limits.h"
#include "server/protocol/dialects/messages_reply.h"
#include "server/protocol/dialects/responses_reply.h"
#include "server/protocol/dialects/talks.h"
#include "server/protocol/dialects/vectors.h"
#include "tests/check.h"

/* ---- vectors ---- */

/* So many inputs of a model with vectors of so many numbers. */
static err_code embed(size_t n, int32_t n_embd, err_detail *d)
{
    const engine_info info = {.n_embd = n_embd};
    completion_prompt inputs;
    api_request r;
    bytes body = bytes_empty(1 << 20);
    bytes_append_str(&body, "{\"input\":[");
    for (size_t i = 0; i < n; i++) {
        bytes_append_str(&body, i ? ",\"a\"" : "\"a\"");
    }
    bytes_append_str(&body, "]}");
    api_request_init(&r);
    *d = (err_detail){0};
    const err_code err = embedding_request_parse(&r, &inputs, bytes_str(&body), body.len, &info, d);
    api_request_deinit(&r);
    bytes_deinit(&body);
    return err;
}

/* So many documents for a query of so many bytes. */
static err_code rank(size_t n, size_t n_query, err_detail *d)
{
    static const char TASK[] = "i";
    completion_prompt inputs;
    api_request r;
    bytes body = bytes_empty(LIMIT_BODY_BYTES);
    bytes_printf(&body, "{\"instruction\":\"%s\",\"query\":\"", TASK);
    for (size_t i = strlen(TASK); i < n_query; i++) {
        bytes_append_char(&body, 'q');
    }
    bytes_append_str(&body, "\",\"documents\":[");
    for (size_t i = 0; i < n; i++) {
        bytes_append_str(&body, i ? ",\"\"" : "\"\"");
    }
    bytes_append_str(&body, "]}");
    api_request_init(&r);
    *d = (err_detail){0};
    const err_code err = rerank_request_parse(&r, &inputs, bytes_str(&body), body.len, NULL, d);
    api_request_deinit(&r);
    bytes_deinit(&body);
    return err;
}

static void test_vectors(void)
{
    err_detail d;
    CHECK_OK(embed(LIMIT_INPUTS, LIMIT_INPUT_VALUES / LIMIT_INPUTS, &d), d);
    CHECK_INT(embed(LIMIT_INPUTS, LIMIT_INPUT_VALUES / LIMIT_INPUTS + 1, &d), ERR_LIMIT);
    CHECK_STR(d.name, "too_many_inputs");
    CHECK_STR(d.text,
              "2048 vectors of 2049 numbers; a reply may hold 4194304 numbers in all: send several requests");
    CHECK_INT(embed(LIMIT_INPUTS + 1, 1, &d), ERR_LIMIT);
    CHECK_INT(rank(16, LIMIT_BODY_BYTES / 16 + 1, &d), ERR_LIMIT);
    CHECK_STR(d.name, "input_too_long");
    CHECK_STR(d.text, "the query with each document is too much text: send several requests");
    CHECK(rank(16, LIMIT_BODY_BYTES / 16, &d) != ERR_LIMIT || strcmp(d.name, "input_too_long") != 0);
    CHECK_OK(rank(16, 4096, &d), d);
    CHECK_INT(rank(LIMIT_INPUTS + 1, 2, &d), ERR_LIMIT);
    CHECK_STR(d.name, "too_many_inputs");
}

/* ---- conversations ---- */

static void test_talks(void)
{
    response_store *store = response_store_create((size_t)64 << 20, 10, 60, NULL);
    const talk_keeper keeper = talk_keeper_in_memory(store);
    talk_order o = {.verb = TALK_CREATE, .scope = 7, .body = bytes_empty(SIZE_MAX / 2)};
    bytes reply = bytes_empty(SIZE_MAX / 2);
    err_detail d = {0};
    err_code err = ERR_OK;
    bytes_append_str(&o.body, "{}");
    CHECK_OK(talk_run(&o, &keeper, &reply, &d), d);
    const char *id = strstr(bytes_str(&reply), "conv_");
    snprintf(o.id, sizeof o.id, "%.*s", (int)strcspn(id, "\""), id);
    o.verb = TALK_ADD;
    bytes_clear(&o.body);
    bytes_append_str(&o.body, "{\"items\":[{\"role\":\"user\",\"content\":\"");
    while (o.body.len < ((size_t)1 << 20) - 5) {
        bytes_append_char(&o.body, 'x');
    }
    bytes_append_str(&o.body, "\"}]}");
    bytes_append_char(&o.body, ' '); /* a MiB, which is all there may be */
    CHECK_INT(o.body.len, 1 << 20);
    int n = 0;
    for (; err == ERR_OK && n < 20; n++) {
        bytes_clear(&reply);
        err = talk_run(&o, &keeper, &reply, &d);
    }
    CHECK_INT(n, 16); /* a little is added to each */
    CHECK_INT(err, ERR_LIMIT);
    CHECK_STR(d.name, "conversation_too_large");
    CHECK_STR(d.text, "a conversation may have 16 MiB; begin another");
    bytes_append_char(&o.body, ' ');
    CHECK_INT(talk_run(&o, &keeper, &reply, &d), ERR_LIMIT);
    CHECK_STR(d.name, "body_too_large");
    CHECK_STR(d.text, "a body may have 1 MiB here");
    talk_order_deinit(&o);
    bytes_deinit(&reply);
    response_store_destroy(store);
}

/* ---- answers ---- */

static const char *progress(const responses_reply *r, gen_phase phase, double eta_ms)
{
    static char text[512];
    bytes out = bytes_empty(512);
    responses_reply_progress(&out, r, phase, 3, 9, 2, 12.4, eta_ms);
    const char *from = strstr(bytes_str(&out), ",\"phase\"");
    CHECK(strncmp(bytes_str(&out), "{\"type\":\"response.progress\",\"response_id\":\"resp_", 46) == 0);
    snprintf(text, sizeof text, "%s", from ? from : "?");
    bytes_deinit(&out);
    return text;
}

static void test_answers(void)
{
    const reply_options opt = {.n_choices = 1};
    responses_reply r;
    api_error e;
    responses_reply_init(&r, &opt, "m", 1 << 16);
    CHECK_STR(progress(&r, GEN_PHASE_MEDIA, 24.8), ",\"phase\":\"media_decode\",\"processed\":3,\"total\":9,"
                                                   "\"cached\":2,\"unit\":\"frames\",\"elapsed_ms\":12,"
                                                   "\"eta_ms\":24.8}");
    CHECK_STR(progress(&r, GEN_PHASE_VISION, NAN), ",\"phase\":\"vision_encode\",\"processed\":3,\"total\":9,"
                                                   "\"cached\":2,\"unit\":\"tiles\",\"elapsed_ms\":12,"
                                                   "\"eta_ms\":null}");
    CHECK_STR(progress(&r, GEN_PHASE_PREFILL, INFINITY), ",\"phase\":\"prefill\",\"processed\":3,\"total\":9,"
                                                         "\"cached\":2,\"unit\":\"tokens\",\"elapsed_ms\":12,"
                                                         "\"eta_ms\":null}");
    api_error_set(&e, 400, "image_parse_error", "input[0]", "no image");
    const response_result result = {.status = RESPONSE_FAILED, .error = &e};
    responses_reply_finish(&r, &result);
    bytes out = bytes_empty(1 << 16);
    responses_reply_write(&out, &r);
    CHECK(strstr(
        bytes_str(&out),
        "\"error\":{\"code\":\"image_parse_error\",\"message\":\"no image\",\"type\":\"invalid_request_"
        "error\",\"param\":\"input[0]\"}"));
    responses_reply_deinit(&r);
    bytes_clear(&out);
    messages_reply_error_body(&out, &e);
    CHECK_STR(bytes_str(&out),
              "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"no image\","
              "\"details\":{\"error_code\":\"image_parse_error\"}}}");
    api_error_set(&e, 500, NULL, NULL, "it broke");
    bytes_clear(&out);
    messages_reply_error_body(&out, &e);
    CHECK_STR(
        bytes_str(&out),
        "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"it broke\",\"details\":null}}");
    bytes_deinit(&out);
}

int main(void)
{
    test_vectors();
    test_talks();
    test_answers();
    CHECK_DONE();
}
