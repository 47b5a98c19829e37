/* upstream_reply: streams of other servers, cut everywhere, and their limits. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "server/upstream/upstream_reply.h"
#include "tests/alloc_fail.h"
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

/* A reply in one piece, as "kind:text|... finish; tokens; prompt/completion/cached/reasoning" or, with an error,
 * "... code name: message". */
static const char *said(upstream_wire wire, int status, const char *type, const char *body)
{
    static const char *const FINISHES[] = {"stop", "length", "cancelled", "error", "filtered"};
    static char out[8192];
    upstream_reply r;
    bytes seen = bytes_empty(65536);
    upstream_reply_init(&r, "gpu", "sk-123456", wire);
    upstream_reply_head(&r, status, type);
    CHECK_INT(upstream_reply_push(&r, body, strlen(body)), !r.is_done);
    upstream_reply_finish(&r);
    CHECK(r.is_done);
    CHECK(!upstream_reply_push(&r, "x", 1)); /* nothing more is read */
    gen_text *text = upstream_reply_take(&r);
    append(&seen, text);
    const int n_tokens = text ? text->n_tokens : 0;
    free(text);
    CHECK(upstream_reply_take(&r) == NULL && r.n_tokens == (text ? 0 : r.n_tokens));
    int n = snprintf(out, sizeof out, "%s", bytes_str(&seen));
    if (r.error != ERR_OK) {
        CHECK_INT(r.finish, GEN_FINISH_ERROR);
        n += snprintf(out + n, sizeof out - (size_t)n, "%s%s: %s",
                      r.error == ERR_UPSTREAM    ? ""
                      : r.error == ERR_INVALID   ? "invalid "
                      : r.error == ERR_BUSY      ? "busy "
                      : r.error == ERR_CONTEXT   ? "context "
                      : r.error == ERR_NOT_FOUND ? "none "
                                                 : "? ",
                      r.detail.name, r.detail.text);
    } else {
        n += snprintf(out + n, sizeof out - (size_t)n, "%s; %d", FINISHES[r.finish], n_tokens);
    }
    if (r.usage.is_known) {
        snprintf(out + n, sizeof out - (size_t)n, "; %d/%d/%d/%d", r.usage.prompt, r.usage.completion,
                 r.usage.cached, r.usage.reasoning);
    }
    upstream_reply_deinit(&r);
    CHECK(r.pieces == NULL && r.n_pieces == 0 && r.cap_pieces == 0);
    bytes_deinit(&seen);
    return out;
}

#define CHAT(status, body)  said(UPSTREAM_CHAT, status, "application/json", body)
#define STREAMED(body)      said(UPSTREAM_CHAT, 200, "text/event-stream", body)
#define ERROR(status, rest) CHAT(status, "{\"error\":{" rest "}}")
#define MESSAGE(rest)       "{\"choices\":[{\"message\":{" rest "},\"finish_reason\":\"stop\"}]}"
#define DELTA(rest)         "data: {\"choices\":[{\"delta\":{" rest "}}]}\n\n"
#define END                 "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define USAGE(rest)         "{\"choices\":[{\"message\":{},\"finish_reason\":\"stop\"}],\"usage\":{" rest "}}"

/* Whose fault an error is, under which name, and in which words. An error that repeats the key does not go on. */
static void test_errors(void)
{
    CHECK_STR(ERROR(400, "\"message\":\"wrong key sk-123456\",\"code\":\"x\""),
              "invalid upstream_refused: gpu: its reason repeats the key of this server");
    CHECK_STR(ERROR(400, "\"message\":\"bad\""), "invalid upstream_refused: gpu: bad");
    CHECK_STR(ERROR(499, "\"message\":\"bad\""), "invalid upstream_refused: gpu: bad");
    CHECK_STR(CHAT(422, "{\"message\":\"of itself\"}"), "invalid upstream_refused: gpu: of itself");
    CHECK_STR(CHAT(422, "{\"detail\":\"in detail\"}"), "invalid upstream_refused: gpu: in detail");
    CHECK_STR(CHAT(422, "{\"error\":\"a text\"}"), "invalid upstream_refused: gpu: a text");
    CHECK_STR(CHAT(422, "{}"), "invalid upstream_refused: gpu: gives no reason");
    /* A number in the error counts where the status is none. */
    CHECK_STR(CHAT(400, "{\"error\":{\"message\":\"m\",\"code\":404}}"), "invalid upstream_refused: gpu: m");
    CHECK_STR(CHAT(200, "{\"error\":{\"message\":\"m\",\"code\":399}}"),
              "upstream_failed: gpu failed (500): m");
    CHECK_STR(CHAT(200, "{\"error\":{\"message\":\"m\",\"code\":400}}"), "invalid upstream_refused: gpu: m");
    CHECK_STR(CHAT(200, "{\"error\":{\"message\":\"m\",\"code\":599}}"),
              "upstream_failed: gpu failed (599): m");
    CHECK_STR(CHAT(200, "{\"error\":{\"message\":\"m\",\"code\":600}}"),
              "upstream_failed: gpu failed (500): m");
    CHECK_STR(CHAT(422, "<html>"), "invalid upstream_refused: gpu: gives no reason");
    CHECK_STR(ERROR(401, "\"message\":\"m\""), "upstream_refused: gpu refuses the key of this server (401)");
    CHECK_STR(ERROR(403, "\"message\":\"m\""), "upstream_refused: gpu refuses the key of this server (403)");
    CHECK_STR(CHAT(300, ""), "upstream_redirects: gpu redirects elsewhere (300), which is not followed");
    CHECK_STR(CHAT(399, ""), "upstream_redirects: gpu redirects elsewhere (399), which is not followed");
    CHECK_STR(CHAT(299, ""), "upstream_failed: gpu failed (299): gives no reason");
    CHECK_STR(ERROR(404, "\"message\":\"m\""), "none model_not_found: gpu: m");
    CHECK_STR(ERROR(429, "\"message\":\"m\""), "busy upstream_busy: gpu has too many requests: m");
    CHECK_STR(ERROR(500, "\"message\":\"m\""), "upstream_failed: gpu failed (500): m");
    CHECK_STR(ERROR(400, "\"code\":\"context_length_exceeded\""),
              "context upstream_refused: gpu: gives no reason");
    CHECK_STR(ERROR(400, "\"type\":\"exceed_context_size_error\""),
              "context upstream_refused: gpu: gives no reason");
    CHECK_STR(ERROR(500, "\"message\":\"The Context Length is 9\""),
              "context upstream_refused: gpu: The Context Length is 9");
    CHECK_STR(ERROR(400, "\"message\":\"its context size\""),
              "context upstream_refused: gpu: its context size");
    CHECK_STR(ERROR(400, "\"message\":\"context siz\""), "invalid upstream_refused: gpu: context siz");
    /* In a stream the number is that of the document, where it is one of an error. */
    CHECK_STR(STREAMED("data: {\"error\":{\"message\":\"m\",\"code\":400}}\n\n"),
              "invalid upstream_refused: gpu: m");
    CHECK_STR(STREAMED("data: {\"error\":{\"message\":\"m\",\"code\":429}}\n\n"),
              "busy upstream_busy: gpu has too many requests: m");
    CHECK_STR(STREAMED("data: {\"error\":{\"message\":\"m\",\"code\":599}}\n\n"),
              "upstream_failed: gpu failed (599): m");
    CHECK_STR(STREAMED("data: {\"error\":{\"message\":\"m\",\"code\":600}}\n\n"),
              "upstream_failed: gpu failed (500): m");
    CHECK_STR(STREAMED("data: {\"error\":{\"message\":\"m\",\"code\":399}}\n\n"),
              "upstream_failed: gpu failed (500): m");
    CHECK_STR(STREAMED("data: {\"object\":\"error\",\"message\":\"m\"}\n\n"),
              "upstream_failed: gpu failed (500): m");
    CHECK_STR(STREAMED(DELTA("\"content\":\"a\"") "data: {\"error\":\"m\"}\n\n" DELTA("\"content\":\"b\"")),
              "c:a|upstream_failed: gpu failed (500): m");
    CHECK_STR(ERROR(503, "\"code\":429"), "upstream_failed: gpu failed (503): gives no reason");
    /* Reasons are cut. */
    char body[1024], word[801], expected[1024];
    memset(word, 'w', 800);
    word[800] = '\0';
    static const struct {
        int status, len;
        const char *head;
    } CUT[] = {{400, 400, "invalid upstream_refused: gpu: "},
               {404, 200, "none model_not_found: gpu: "},
               {429, 200, "busy upstream_busy: gpu has too many requests: "},
               {500, 200, "upstream_failed: gpu failed (500): "}};
    for (size_t i = 0; i < ARRAY_LEN(CUT); i++) {
        snprintf(body, sizeof body, "{\"error\":\"%s\"}", word);
        snprintf(expected, sizeof expected, "%s%.*s", CUT[i].head, CUT[i].len, word);
        const size_t room = sizeof((err_detail *)NULL)->text - 1 + strcspn(CUT[i].head, ":") + 2;
        expected[room < sizeof expected ? room : sizeof expected - 1] = '\0';
        CHECK_STR(CHAT(CUT[i].status, body), expected);
    }
    static char large[65538];
    memset(large, 'x', sizeof large - 1);
    CHECK_STR(CHAT(500, large), "upstream_failed: gpu failed (500): gives no reason");
    CHECK_STR(CHAT(400, large), "invalid upstream_refused: gpu: gives no reason");
}

/* Everything that is read of a document and of a stream's chunks. */
static void test_pieces(void)
{
    CHECK_STR(CHAT(200, MESSAGE("\"content\":\"a\"")), "c:a|stop; 1");
    CHECK_STR(CHAT(200, MESSAGE("\"content\":\"\"")), "stop; 0");
    CHECK_STR(CHAT(200, MESSAGE("\"refusal\":\"no\",\"reasoning\":\"h\",\"reasoning_content\":\"x\"")),
              "r:h|c:no|stop; 1");
    CHECK_STR(CHAT(200, MESSAGE("\"reasoning_content\":\"x\",\"content\":\"a\",\"refusal\":\"b\"")),
              "r:x|c:ab|stop; 1");
    CHECK_STR(CHAT(200, "[]"), "upstream_broken: gpu has sent something else than an answer");
    CHECK_STR(CHAT(200, "{"), "upstream_broken: gpu has sent broken JSON");
    CHECK_STR(CHAT(200, ""), "upstream_broken: gpu has sent broken JSON");
    CHECK_STR(CHAT(200, "{}"), "upstream_cut_off: gpu has ended in the middle of its answer");
    CHECK_STR(CHAT(200, "{\"choices\":[],\"usage\":{}}"),
              "upstream_cut_off: gpu has ended in the middle of its answer; 0/0/0/-1");
    CHECK_STR(said(UPSTREAM_CHAT, 201, "text/event-stream", "{}"),
              "upstream_failed: gpu failed (201): gives no reason");
    CHECK_STR(said(UPSTREAM_CHAT, 200, "text/event-streams", END), "stop; 0");
    CHECK_STR(said(UPSTREAM_CHAT, 200, "text/event-strea", MESSAGE("\"content\":\"a\"")), "c:a|stop; 1");
    /* Streams: with spaces or without, the last line with its end or without. */
    CHECK_STR(STREAMED("data:{\"choices\":[{\"delta\":{\"content\":\" a\"}}]}\r\n\r\n" DELTA(
                  "\"content\":\"b\"") END),
              "c: ab|stop; 2");
    CHECK_STR(STREAMED(DELTA(
                  "\"content\":\"a\"") "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}"),
              "c:a|stop; 1");
    CHECK_STR(STREAMED("data\n\ndata:\n\ndatum: {\n\n" DELTA("\"content\":\"a\"") END), "c:a|stop; 1");
    CHECK_STR(STREAMED(DELTA("\"content\":\"a\"") "data: [DONE]\n\n" DELTA("\"content\":\"b\"")),
              "c:a|upstream_cut_off: gpu has ended in the middle of its answer");
    CHECK_STR(STREAMED("data: [DOME]\n\n"), "upstream_broken: gpu has sent broken JSON");
    CHECK_STR(STREAMED(END "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"), "stop; 0");
    CHECK_STR(STREAMED(END "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n"),
              "upstream_broken: gpu says twice, and differently, why the answer has ended");
    CHECK_STR(STREAMED(END DELTA("\"content\":\"a\"")),
              "upstream_broken: gpu goes on behind the end of its answer");
    CHECK_STR(STREAMED(END DELTA("\"reasoning\":\"a\"")),
              "upstream_broken: gpu goes on behind the end of its answer");
    CHECK_STR(
        STREAMED(DELTA("\"content\":\"a\"") DELTA("\"reasoning\":\"h\"") DELTA("\"content\":\"b\"") END),
        "c:a|r:h|c:b|stop; 3");
    /* Why an answer has ended. */
    static const char *const REASONS[][2] = {
        {"stop", "stop; 1"},
        {"tool_calls", "stop; 1"},
        {"function_call", "stop; 1"},
        {"eos", "stop; 1"},
        {"end_turn", "stop; 1"},
        {"stop_sequence", "stop; 1"},
        {"length", "length; 1"},
        {"max_tokens", "length; 1"},
        {"content_filter", "filtered; 1"},
        {"abort", "upstream_aborted: gpu has given up the answer"},
        {"error", "upstream_aborted: gpu has given up the answer"},
        {"x", "upstream_aborted: gpu has ended the answer for a reason that is not known here"},
        {"odd", "upstream_aborted: gpu has ended the answer for a reason that is not known here"},
        {"stopped", "upstream_aborted: gpu has ended the answer for a reason that is not known here"}};
    for (size_t i = 0; i < ARRAY_LEN(REASONS); i++) {
        char body[256], expected[256];
        snprintf(body, sizeof body,
                 "{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"%s\"}]}", REASONS[i][0]);
        snprintf(expected, sizeof expected, "c:a|%s", REASONS[i][1]);
        CHECK_STR(CHAT(200, body), expected);
    }
}

#define CALL(index, rest) "{\"index\":" index ",\"function\":{" rest "}}"

static void test_calls(void)
{
    CHECK_STR(CHAT(200, MESSAGE("\"tool_calls\":[" CALL("0", "\"name\":\"f\",\"arguments\":\"{}\"") "," CALL(
                            "1", "\"name\":\"g\",\"arguments\":{\"a\": 1}") "]")),
              "call:f|args:{}|end:|call:g|args:{\"a\":1}|end:|stop; 1");
    /* Without numbers their places count; without arguments there are none. */
    CHECK_STR(
        CHAT(200,
             MESSAGE("\"tool_calls\":[{\"function\":{\"name\":\"f\"}},{\"function\":{\"name\":\"g\"}}]")),
        "call:f|args:{}|end:|call:g|args:{}|end:|stop; 1");
    /* All with the number 0: a new id and name begin another. */
    CHECK_STR(
        STREAMED(DELTA("\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":"
                       "\"{}\"}}]") DELTA("\"tool_calls\":[{\"index\":0,\"id\":\"b\",\"function\":{\"name\":"
                                          "\"g\",\"arguments\":\"{}\"}}]") END),
        "call:f|args:{}|end:|call:g|args:{}|end:|stop; 2");
    CHECK_STR(
        STREAMED(DELTA("\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\"}}]") DELTA(
            "\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]")
                     END),
        "call:f|args:{}|end:|stop; 2");
    CHECK_STR(STREAMED(DELTA("\"tool_calls\":[" CALL("0", "\"name\":\"f\",\"arguments\":\"{\"") "]")
                           DELTA("\"tool_calls\":[" CALL("0", "\"name\":\"f\",\"arguments\":\"}\"") "]") END),
              "call:f|args:{}|end:|stop; 2");
    /* A number with the first piece alone: the others go on with it. */
    CHECK_STR(STREAMED(DELTA("\"tool_calls\":[" CALL("0", "\"name\":\"f\",\"arguments\":\"{\"") "]")
                           DELTA("\"tool_calls\":[{\"function\":{\"arguments\":\"}\"}}]") END),
              "call:f|args:{}|end:|stop; 2");
    /* Text behind a call ends it. */
    CHECK_STR(
        STREAMED(DELTA("\"tool_calls\":[" CALL("0", "\"name\":\"f\"") "]") DELTA("\"content\":\"a\"") END),
        "call:f|args:{}|end:|c:a|stop; 2");
    CHECK_STR(
        STREAMED(DELTA("\"tool_calls\":[" CALL("0", "\"name\":\"f\"") "]") DELTA("\"reasoning\":\"a\"") END),
        "call:f|args:{}|end:|r:a|stop; 2");
    /* What goes back, or has no name. */
    static const char MIXED[] = "upstream_broken: gpu mixes up the pieces of its tool calls";
    const char *back = STREAMED(DELTA("\"tool_calls\":[" CALL("1", "\"name\":\"f\"") "]")
                                    DELTA("\"tool_calls\":[" CALL("0", "\"name\":\"g\"") "]") END);
    CHECK_STR(strchr(back, '|') + 1, MIXED);
    CHECK_STR(CHAT(200, MESSAGE("\"tool_calls\":[" CALL("0", "\"arguments\":\"{}\"") "]")), MIXED);
    CHECK_STR(CHAT(200, MESSAGE("\"tool_calls\":[{\"function\":{}},{\"function\":{\"name\":\"g\"}}]")),
              MIXED);
    /* A call that the limit cut has no end. */
    CHECK_STR(CHAT(200, "{\"choices\":[{\"message\":{\"tool_calls\":[" CALL(
                            "0", "\"name\":\"f\",\"arguments\":\"{\"") "]},\"finish_reason\":\"length\"}]}"),
              "call:f|args:{|length; 1");
}

static void test_usage(void)
{
    CHECK_STR(CHAT(200, USAGE("")), "stop; 0; 0/0/0/-1");
    CHECK_STR(
        CHAT(
            200,
            USAGE(
                "\"prompt_tokens\":9,\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":3},"
                "\"completion_tokens_details\":{\"reasoning_tokens\":2}")),
        "stop; 0; 9/4/3/2");
    CHECK_STR(CHAT(200, USAGE("\"prompt_tokens\":9,\"completion_tokens\":4,\"prompt_cache_hit_tokens\":5,"
                              "\"reasoning_tokens\":0")),
              "stop; 0; 9/4/5/0");
    CHECK_STR(CHAT(200, USAGE("\"prompt_tokens\":9,\"prompt_cache_hit_tokens\":10")), "stop; 0; 9/0/9/-1");
    CHECK_STR(CHAT(200, USAGE("\"prompt_tokens\":-1,\"completion_tokens\":2147483647")),
              "stop; 0; 0/2147483647/0/-1");
    CHECK_STR(CHAT(200, USAGE("\"completion_tokens\":2147483648")), "stop; 0; 0/0/0/-1");
}

#define TOKEN(word, p, rest) "{\"token\":\"" word "\",\"logprob\":" p rest "}"

static void test_logprobs(void)
{
    CHECK_STR(
        CHAT(200, "{\"choices\":[{\"message\":{\"content\":\"ab\"},\"logprobs\":{\"content\":[" TOKEN(
                      "a", "-0.5",
                      ",\"bytes\":[97,98,256,-1],\"top_logprobs\":[" TOKEN("a", "-0.5", "") "," TOKEN(
                          "b", "null",
                          ",\"bytes\":[0,255]") "]") "," TOKEN("\xc3\xa4", "-2",
                                                               "") "]},\"finish_reason\":\"stop\"}]}"),
        "c:ab|logprobs:{\"token\":\"ab\",\"logprob\":-0.500000,\"bytes\":[97,98],\"top_logprobs\":["
        "{\"token\":\"a\",\"logprob\":-0.500000,\"bytes\":[97]},"
        "{\"token\":\"\\u0000\xef\xbf\xbd\",\"logprob\":-9999.000000,\"bytes\":[0,255]}]},"
        "{\"token\":\"\xc3\xa4\",\"logprob\":-2.000000,\"bytes\":[195,164],\"top_logprobs\":[]}|stop; 1");
    CHECK_STR(
        said(UPSTREAM_COMPLETION, 200, "application/json",
             "{\"choices\":[{\"text\":\"ab\",\"logprobs\":{\"tokens\":[\"a\",\"b\",\"c\"],\"token_logprobs\":"
             "[null,-1],"
             "\"top_logprobs\":[null,{\"b\":-1,\"x\":-3}]},\"finish_reason\":\"length\"}],\"usage\":{"
             "\"prompt_tokens\":1}}"),
        "c:ab|logprobs:{\"token\":\"a\",\"logprob\":-9999.000000,\"bytes\":[97],\"top_logprobs\":[]},"
        "{\"token\":\"b\",\"logprob\":-1.000000,\"bytes\":[98],\"top_logprobs\":["
        "{\"token\":\"b\",\"logprob\":-1.000000,\"bytes\":[98]},"
        "{\"token\":\"x\",\"logprob\":-3.000000,\"bytes\":[120]}]},"
        "{\"token\":\"c\",\"logprob\":-9999.000000,\"bytes\":[99],\"top_logprobs\":[]}|length; 1; 1/0/0/-1");
    CHECK_STR(said(UPSTREAM_COMPLETION, 200, "text/event-stream",
                   "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: "
                   "{\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n"
                   "data: {\"choices\":[{\"text\":\"\"}]}\n\n"),
              "c:a|stop; 1");
    CHECK_STR(said(UPSTREAM_COMPLETION, 200, "text/event-stream",
                   "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n"
                   "data: {\"choices\":[{\"text\":\"b\"}]}\n\n"),
              "upstream_broken: gpu goes on behind the end of its answer");
    /* As many others as may be asked for, and bytes of a token up to a bound. */
    bytes body = bytes_empty(65536);
    bytes_append_str(&body, "{\"choices\":[{\"message\":{},\"logprobs\":{\"content\":[{\"token\":\"a\","
                            "\"logprob\":-1,\"top_logprobs\":[");
    for (int i = 0; i < LIMIT_TOP_LOGPROBS + 2; i++) {
        bytes_append_str(&body, i ? "," TOKEN("tt", "-1", "") : TOKEN("tt", "-1", ""));
    }
    bytes_append_str(&body, "],\"bytes\":[65");
    for (int i = 0; i < 600; i++) {
        bytes_append_str(&body, ",65");
    }
    bytes_append_str(&body, "]}]},\"finish_reason\":\"stop\"}]}");
    const char *got = CHAT(200, bytes_str(&body));
    int n = 0;
    for (const char *at = got; (at = strstr(at, "\"tt\"")); at++) {
        n++;
    }
    CHECK_INT(n, LIMIT_TOP_LOGPROBS);
    CHECK_INT(strspn(got + strlen("logprobs:{\"token\":\""), "A"), 512);
    bytes_deinit(&body);
}

/* ---- a lack of memory ---- */

typedef struct sample {
    upstream_wire wire;
    int status;
    const char *type, *body;
    char expected[1024]; /* what is found where there is memory; "": not known yet */
} sample;

/* It is told, and nothing that came is left out in silence. */
static err_code answered(void *context)
{
    static const size_t STEP = 100;
    sample *t = context;
    upstream_reply r;
    char seen[1024] = "";
    int n = 0;
    upstream_reply_init(&r, "gpu", NULL, t->wire);
    upstream_reply_head(&r, t->status, t->type);
    const size_t len = strlen(t->body);
    for (size_t at = 0; at <= len + STEP; at += STEP) { /* the last one is behind the end */
        if (at < len) {
            (void)upstream_reply_push(&r, t->body + at, len - at < STEP ? len - at : STEP);
        } else {
            upstream_reply_finish(&r);
        }
        gen_text *text = upstream_reply_take(&r);
        for (size_t i = 0; text && i < text->n; i++) {
            const bool goes_on =
                text->pieces[i].kind == GEN_TEXT_ARGUMENTS || text->pieces[i].kind == GEN_TEXT_CONTENT;
            n += snprintf(seen + n, sizeof seen - (size_t)n, goes_on ? "%.*s" : "|%.*s|",
                          (int)text->pieces[i].len, text->pieces[i].text);
        }
        free(text);
    }
    err_code err = r.error;
    if (err == ERR_NOMEM) {
        if (!r.is_done || r.finish != GEN_FINISH_ERROR ||
            strcmp(r.detail.text, "there is not enough memory") != 0) {
            err = ERR_INTERNAL;
        }
    } else {
        n += snprintf(seen + n, sizeof seen - (size_t)n, " %d %s", err, r.detail.text);
        if (!t->expected[0]) {
            snprintf(t->expected, sizeof t->expected, "%s", seen);
        }
        err = strcmp(seen, t->expected) == 0 ? ERR_OK : ERR_INTERNAL;
        if (err != ERR_OK) {
            fprintf(stderr, "  %s\n  is not %s\n", seen, t->expected);
        }
    }
    upstream_reply_deinit(&r);
    return err;
}

static void test_memory(void)
{
    static sample samples[] = {
        {UPSTREAM_CHAT, 200, "text/event-stream", STREAM, ""},
        {UPSTREAM_CHAT, 200, "application/json",
         "{\"choices\":[{\"message\":{\"content\":\"a\",\"tool_calls\":[" CALL(
             "0", "\"name\":\"f\",\"arguments\":{\"a\": 1}") "]},\"logprobs\":{\"content\":"
                                                             "[" TOKEN("a", "-1", "") "]},\"finish_reason\":"
                                                                                      "\"stop\"}]}",
         ""},
        {UPSTREAM_COMPLETION, 200, "application/json",
         "{\"choices\":[{\"text\":\"ab\",\"logprobs\":{\"tokens\":[\"a\"],\"token_logprobs\":[-1]"
         "},\"finish_reason\":\"stop\"}]}",
         ""},
        {UPSTREAM_CHAT, 400, "application/json", "{\"error\":\"m\"}", ""}};
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        CHECK_INT(answered(&samples[i]), ERR_OK);
        CHECK(alloc_fail_each(answered, &samples[i], 1000) > 0);
    }
}

int main(void)
{
    test_memory();
    test_cut_anywhere();
    test_limits();
    test_errors();
    test_pieces();
    test_calls();
    test_usage();
    test_logprobs();
    CHECK_DONE();
}
