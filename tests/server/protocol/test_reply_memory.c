/* The events of a response when allocations fail, one after the other and all from one on: whoever
 * reads comes to a last event, numbers have no gaps that are not said, and what misses text does
 * not end as if it were whole. A chunk of a chat has its text or says that it failed. */
#include "base/json.h"
#include "server/protocol/dialects/chat_reply.h"
#include "server/protocol/dialects/responses_reply.h"
#include "server/protocol/dialects/vectors.h"

#include "tests/alloc_fail.h"
#include "tests/check.h"
#include "tests/server/protocol/tool_writer.h"
#include "tests/server/protocol/tools_of.h"
#include "tests/server/protocol/transcript.h"

static char room[1 << 16];

/* Reads what there is; *last is the type of the last event. False if the log does not end. */
static bool read_all(const responses_reply *r, bytes *event, const char **last)
{
    int64_t next = 0;
    for (int i = 0; i < 100; i++) {
        event_view view;
        switch (event_log_read(&r->log, next, &view)) {
        case EVENT_LOG_EVENT:
            *last = view.type;
            next++;
            break;
        case EVENT_LOG_TRIMMED:
            bytes_clear(event);
            *last = responses_reply_catch_up(event, r, &next);
            break;
        case EVENT_LOG_END:
            return true;
        case EVENT_LOG_WAIT:
            return false;
        }
    }
    return false;
}

static err_code answer(void *context)
{
    const reply_options *opt = context;
    responses_reply r;
    reply_pieces pieces;
    bytes logprobs, event = {.data = room, .cap = sizeof room - 1, .max = sizeof room - 1};
    response_result result = {.status = RESPONSE_COMPLETED};
    const char *last = "";
    reply_pieces_init(&pieces);
    bytes_init(&logprobs, 1000);
    responses_reply_init(&r, opt, "m", 4096);
    responses_reply_created(&r);
    responses_reply_in_progress(&r);
    for (int i = 0; i < 6; i++) {
        reply_pieces_add(&pieces, i < 2 ? REPLY_REASONING : REPLY_CONTENT, "some words ", 11);
        const bool has_lost = pieces.failed;
        responses_reply_delta(&r, &pieces, &logprobs);
        r.has_lost = r.has_lost || has_lost;
        reply_pieces_clear(&pieces);
    }
    const bool has_lost = r.has_lost;
    result.status = has_lost ? RESPONSE_FAILED : RESPONSE_COMPLETED;
    responses_reply_finish(&r, &result);
    const bool is_read = read_all(&r, &event, &last);
    const bool is_right = strcmp(last, has_lost ? "response.failed" : "response.completed") == 0;
    bool is_whole = has_lost || (r.n_items == 2 && r.items[0].text.len == 22 && r.items[1].text.len == 44);
    const bool is_lost_late = r.has_lost && !has_lost; /* an item that the end adds: there is no text in it */
    responses_reply_deinit(&r);
    reply_pieces_deinit(&pieces);
    bytes_deinit(&logprobs);
    if (!is_read || !is_right || !is_whole || event.failed) {
        fprintf(stderr, "last event %s, read %d, right %d, whole %d\n", last, is_read, is_right, is_whole);
        return ERR_INTERNAL;
    }
    return has_lost || is_lost_late ? ERR_NOMEM : ERR_OK;
}

static err_code chunk(void *context)
{
    static const char *const TEXTS[] = {"thoughts", "some words"};
    static const chat_reply_meta META = {.id = "c", .model = "m"};
    (void)context;
    bytes out = {.data = room, .cap = sizeof room - 1, .max = sizeof room - 1};
    chat_reply_state state = {0};
    reply_pieces pieces;
    reply_pieces_init(&pieces);
    reply_pieces_add(&pieces, REPLY_REASONING, TEXTS[0], strlen(TEXTS[0]));
    reply_pieces_add(&pieces, REPLY_CONTENT, TEXTS[1], strlen(TEXTS[1]));
    bool has_failed = pieces.failed;
    room[0] = '\0';
    (void)chat_reply_delta(&out, &META, &state, &pieces, NULL, NULL);
    has_failed = has_failed || out.failed;
    const bool is_whole = strstr(room, TEXTS[0]) && strstr(room, TEXTS[1]);
    reply_pieces_deinit(&pieces);
    return has_failed ? ERR_NOMEM : is_whole ? ERR_OK : ERR_INTERNAL;
}

/* What this server's tools have done stands in the response whole, or not at all. */
static err_code item(void *context)
{
    static const char TEXT[] =
        "{\"id\":\"mcp_1\",\"type\":\"mcp_call\",\"status\":\"completed\",\"arguments\":\"{}\"}";
    responses_reply r;
    reply_pieces pieces;
    json_doc *doc = NULL;
    bytes logprobs = bytes_empty(8), out = {.data = room, .cap = sizeof room - 1, .max = sizeof room - 1};
    reply_pieces_init(&pieces);
    reply_pieces_add(&pieces, REPLY_ITEM, TEXT, sizeof TEXT - 1);
    reply_pieces_add(&pieces, REPLY_CONTENT, "words", 5);
    responses_reply_init(&r, context, "m", 4096);
    responses_reply_delta(&r, &pieces, &logprobs);
    const bool has_lost = r.has_lost || pieces.failed;
    responses_reply_write(&out, &r);
    err_code err = json_parse(&doc, bytes_str(&out), out.len, 32, NULL);
    const size_t n = err == ERR_OK ? json_len(json_get(json_root(doc), "output")) : 0;
    err = err == ERR_OK && has_lost ? ERR_NOMEM : err;
    json_free(doc);
    responses_reply_deinit(&r);
    reply_pieces_deinit(&pieces);
    return err == ERR_OK && n != 2 ? ERR_INTERNAL : err;
}

/* Documents by their scores, with their texts or not at all. */
static err_code ranks(void *context)
{
    static const float SCORES[] = {0.25f, 0.5f};
    const vectors_meta m = {.id = "r", .model = "m", .opt = context, .values = SCORES, .n = 2, .size = 1};
    bytes out = {.data = room, .cap = sizeof room - 1, .max = sizeof room - 1};
    room[0] = '\0';
    rerank_reply_write(&out, &m);
    const char *first = strstr(room, "\"two\""), *second = strstr(room, "\"one\"");
    return out.no_memory                                       ? ERR_NOMEM
           : out.failed || !first || !second || second < first ? ERR_INTERNAL
                                                               : ERR_OK;
}

/* Vectors as floats or as base64, whole or not at all. */
static err_code vectors(void *context)
{
    static const float VALUES[] = {3, 4, 0, 5};
    const reply_options *opt = context;
    const vectors_meta m = {
        .id = "v", .model = "m", .pooling = "last", .opt = opt, .values = VALUES, .n = 2, .size = 2};
    bytes out = {.data = room, .cap = sizeof room - 1, .max = sizeof room - 1};
    room[0] = '\0';
    embedding_reply_write(&out, &m);
    const bool is_whole = opt->is_base64 ? strstr(room, "\"embedding\":\"mpkZP83MTD8=\"") &&
                                               strstr(room, "\"embedding\":\"AAAAAAAAgD8=\"")
                                         : strstr(room, "[0.600000024,0.800000012]") && strstr(room, "[0,1]");
    return out.failed ? ERR_NOMEM : is_whole ? ERR_OK : ERR_INTERNAL;
}

typedef struct calls_case {
    const tool_form *form;
    const json *tools;
    bytes text, whole; /* what the model writes; what comes of it without a failure */
} calls_case;

/* Calls come out whole, or whoever reads hears of it. */
static err_code read_calls(void *context)
{
    calls_case *c = context;
    bytes out = {.data = room, .cap = sizeof room - 1, .max = sizeof room - 1};
    tool_set *tools = NULL;
    reply_parser p;
    err_detail d = {0};
    if (tool_set_create(&tools, c->tools, &d) != ERR_OK) {
        return strcmp(d.text, "no memory for the tools of this request") == 0 ? ERR_NOMEM : ERR_INTERNAL;
    }
    reply_parser_init(
        &p, &(reply_rules){
                .form = c->form, .think = tool_writer_think(c->form), .may_think = true, .tools = tools});
    for (size_t at = 0; at < c->text.len; at += 7) {
        const size_t left = c->text.len - at;
        reply_parser_push(&p, c->text.data + at, left < 7 ? left : 7);
    }
    reply_parser_finish(&p, false);
    const bool has_lost = p.pieces.failed || p.held.failed || p.reader.value.failed;
    transcript_write(&out, &p.pieces);
    reply_parser_deinit(&p);
    tool_set_destroy(tools);
    if (c->whole.len == 0) {
        bytes_append(&c->whole, out.data, out.len);
    }
    const bool is_same = out.len == c->whole.len && memcmp(out.data, c->whole.data, out.len) == 0;
    if (!has_lost && !is_same) {
        fprintf(stderr, "%s: %.*s\n", c->form->name, (int)out.len, room);
    }
    return has_lost ? ERR_NOMEM : is_same ? ERR_OK : ERR_INTERNAL;
}

static void check_calls_of(calls_case *c)
{
    CHECK_INT(read_calls(c), ERR_OK);
    CHECK(alloc_fail_each(read_calls, c, 1000) > 10);
    bytes_deinit(&c->text);
    bytes_deinit(&c->whole);
}

static void test_calls(void)
{
#define LONG "many words, in more than a few bytes of memory, so that there is not enough"
    static const struct {
        const tool_form *form;
        const char *text, *whole;
    } OTHERS[] = {
        {&TOOL_FORM_HERMES,
         "<think>" LONG "</think>\n\n" LONG "\n<tool_call>{\"arguments\": {\"s\": \"" LONG
         "\"}, \"name\": \"f\"}</tool_call>\n" LONG,
         "R{" LONG "}C{" LONG "}[f {\"s\": \"" LONG "\"}]C{" LONG "}"},
        {&TOOL_FORM_HERMES,
         "<tool_call>{\"arguments\": \"{\\\"s\\\": \\\"" LONG "\\\"}\", \"name\": \"f\"}</tool_call>",
         "[f {\"s\": \"" LONG "\"}]"},
        {&TOOL_FORM_XML,
         "<tool_call><function=f><parameter=o>{'" LONG "': None}</parameter><parameter=o>\"{\\\"a\\\": 1}\""
         "</parameter><parameter=any>" LONG "</parameter></function></tool_call>",
         "[f {\"o\":{\"" LONG "\": null},\"o\":{\"a\": 1},\"any\":\"" LONG "\"}]"},
        {&TOOL_FORM_HARMONY,
         "<|channel|>analysis<|message|>" LONG "<|end|><|start|>assistant<|channel|>final<|message|>" LONG
         "<|end|><|start|>assistant<|channel|>commentary to=functions.f<|message|>{\"s\":\"" LONG
         "\"}<|call|>" LONG,
         "R{" LONG "}C{" LONG "}[f {\"s\":\"" LONG "\"}]C{" LONG "}"},
    };
    static const char CALLS[] =
        "[{\"name\":\"f\",\"arguments\":{\"s\":\"many words, in more than a few bytes of memory\",\"i\":7,"
        "\"o\":{\"a\":[1,{\"b\":\"c d\"}]},\"a\":[\"x\",null]}},{\"name\":\"g\",\"arguments\":{}}]",
                      TOOLS[] =
                          "[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{\"s\":{\"type\":"
                          "\"string\"},\"i\":{\"type\":\"integer\"},\"o\":{\"type\":\"object\"},\"a\":{"
                          "\"anyOf\":[{\"type\":\"array\"},{\"type\":\"null\"}]}}}}},"
                          "{\"function\":{\"name\":\"g\"}}]";
    json_doc *calls = NULL, *tools = NULL;
    CHECK(json_parse(&calls, CALLS, sizeof CALLS - 1, 32, NULL) == ERR_OK);
    CHECK(json_parse(&tools, TOOLS, sizeof TOOLS - 1, 32, NULL) == ERR_OK);
    for (size_t w = 0; w < ARRAY_LEN(TOOL_WRITERS); w++) {
        calls_case c = {.form = TOOL_WRITERS[w].form,
                        .tools = json_root(tools),
                        .text = bytes_empty(4096),
                        .whole = bytes_empty(4096)};
        tool_writer_calls(&c.text, &TOOL_WRITERS[w], json_root(calls));
        check_calls_of(&c);
    }
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++) {
        calls_case c = {.form = OTHERS[i].form,
                        .tools = json_root(tools),
                        .text = bytes_empty(4096),
                        .whole = bytes_empty(4096)};
        bytes_append_str(&c.text, OTHERS[i].text);
        bytes_append_str(&c.whole, OTHERS[i].whole);
        check_calls_of(&c);
    }
    json_free(calls);
    json_free(tools);
}

int main(void)
{
    test_calls();
    reply_options opt;
    reply_options_init(&opt);
    CHECK(alloc_fail_each(answer, &opt, 1000) > 10);
    CHECK(alloc_fail_each(chunk, NULL, 1000) > 4);
    CHECK(alloc_fail_each(item, &opt, 1000) > 4);
    opt.fields = strdup("[\"one\",\"two\"]");
    CHECK(opt.fields && alloc_fail_each(ranks, &opt, 1000) > 1);
    opt.is_base64 = true;
    CHECK(alloc_fail_each(vectors, &opt, 1000) > 1);
    opt.is_base64 = false;
    CHECK_INT(vectors(&opt), ERR_OK);
    reply_options_deinit(&opt);
    CHECK_DONE();
}
