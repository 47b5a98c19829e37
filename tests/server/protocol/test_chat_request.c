/* chat_request, messages_request and responses_request: what a body becomes. (Every field's range is walked by
 * live_guards.mjs.) */
#include "server/protocol/dialects/chat_request.h"

#include "server/protocol/dialects/messages_request.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "server/protocol/dialects/responses_request.h"
#include "tests/check.h"

static err_code parse(api_request *r, const char *body, bool responses, err_detail *d)
{
    memset(d, 0, sizeof *d);
    api_request_init(r);
    return responses ? responses_request_parse(r, body, strlen(body), false, NULL, d)
                     : chat_request_parse(r, body, strlen(body), NULL, d);
}

static const char *text_of(const chat_message *m, size_t part)
{
    return part < m->n_parts && m->parts[part].kind == CHAT_TEXT ? m->parts[part].text : "(none)";
}

static void test_conversation(void)
{
    api_request r;
    err_detail d;
    CHECK_OK(
        parse(
            &r,
            "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"developer\",\"content\":\"s1\"}"
            ","
            "{\"role\":\"user\",\"content\":\"b\"},{\"role\":\"assistant\",\"content\":null,\"reasoning_"
            "content\":\"r\","
            "\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
            "\"{\\\"x\\\": 1}\"}},{\"id\":\"c2\",\"function\":{\"name\":\"g\"}}]},"
            "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"t1\"},"
            "{\"role\":\"tool\",\"tool_call_id\":\"c2\",\"content\":\"t2\"},{\"role\":\"system\",\"content\":"
            "[{\"type\":"
            "\"text\",\"text\":\"s2\"}]},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"c\"}]}"
            ","
            "{\"role\":\"user\",\"content\":\"d\"}]}",
            false, &d),
        d);
    const chat_input *in = r.in;
    CHECK_INT(in->n_messages, 9); /* as they came: the engine knows what the template takes */
    CHECK_STR(text_of(&in->messages[0], 0), "a");
    CHECK_INT(in->messages[1].role, CHAT_SYSTEM);
    CHECK_STR(text_of(&in->messages[1], 0), "s1");
    CHECK_INT(in->messages[3].role, CHAT_ASSISTANT);
    CHECK_STR(in->messages[3].reasoning, "r");
    CHECK_INT(in->messages[3].n_tool_calls, 2);
    int64_t x = 0;
    CHECK(json_int(json_get(in->messages[3].tool_calls[0].arguments, "x"), 0, 9, &x));
    CHECK_INT(x, 1);
    CHECK_STR(text_of(&in->messages[4], 0), "t1");
    CHECK_STR(in->messages[5].tool_call_id, "c2");
    CHECK_INT(in->messages[6].role, CHAT_SYSTEM);
    CHECK(!in->messages[7].is_string);
    api_request_deinit(&r);
}

static void test_parameters(void)
{
    api_request r;
    err_detail d;
    CHECK_OK(parse(&r,
                   "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
                   "\"temperature\":0.5,"
                   "\"top_k\":-1,\"seed\":7,\"max_completion_tokens\":9,\"stop\":[\"a\",\"b\"],\"logit_"
                   "bias\":{\"3\":-100},"
                   "\"logprobs\":true,\"top_logprobs\":4,\"reasoning_effort\":\"none\",\"chat_template_"
                   "kwargs\":{\"k\":1},"
                   "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
                   false, &d),
             d);
    const gen_params *p = &r.in->params;
    CHECK(r.reply.stream && r.reply.include_usage);
    CHECK_STR(r.reply.model, "m");
    CHECK_NEAR(p->temperature, 0.5, 1e-6);
    CHECK(isnan(p->top_p));
    CHECK_INT(p->top_k, 0);
    CHECK(p->has_seed && p->seed == 7);
    CHECK_INT(p->max_tokens, 9);
    CHECK_INT(p->n_top_logprobs, 4);
    CHECK_INT(p->n_biases, 1);
    CHECK_INT(p->biases[0].id, 3);
    CHECK_INT(r.reply.n_stops, 2);
    CHECK_STR(r.reply.stops[1], "b");
    CHECK(!json_bool(json_get(r.in->template_kwargs, "enable_thinking"), true));
    CHECK(json_get(r.in->template_kwargs, "k") != NULL);
    api_request_deinit(&r);

    CHECK_OK(parse(&r, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", false, &d), d);
    CHECK_INT(r.in->params.top_k, -1);
    CHECK_INT(r.in->params.max_tokens, -1);
    CHECK_INT(r.in->params.n_top_logprobs, -1);
    CHECK(r.in->template_kwargs == NULL && r.in->tools == NULL);
    CHECK(!r.in->params.no_draft && !r.in->params.no_cache);
    api_request_deinit(&r);

    CHECK_OK(
        parse(&r,
              "{\"mtp\":false,\"cache_prompt\":false,\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
              false, &d),
        d);
    CHECK(r.in->params.no_draft && r.in->params.no_cache);
    api_request_deinit(&r);
    CHECK_OK(parse(&r, "{\"input\":\"x\",\"parley\":{\"mtp\":false,\"cache_prompt\":null}}", true, &d), d);
    CHECK(r.in->params.no_draft && !r.in->params.no_cache);
    api_request_deinit(&r);
    CHECK_INT(parse(&r, "{\"input\":\"x\",\"parley\":{\"mtp\":0}}", true, &d), ERR_INVALID);
    CHECK_STR(d.param, "mtp");
    api_request_deinit(&r);

    CHECK_INT(parse(&r,
                    "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":3,\"max_completion_"
                    "tokens\":4}",
                    false, &d),
              ERR_INVALID);
    CHECK_STR(d.param, "max_completion_tokens");
    api_request_deinit(&r);
}

static void test_media(void)
{
    api_request r;
    err_detail d;
    CHECK_OK(
        parse(&r,
              "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":"
              "\"data:image/png;base64,Zm9v\",\"detail\":\"low\"}},{\"type\":\"text\",\"text\":\"?\"},"
              "{\"type\":\"video_url\",\"video_url\":{\"url\":\"Zm9vYmFy\"}}]}]}",
              false, &d),
        d);
    const chat_message *m = &r.in->messages[0];
    CHECK_INT(m->n_parts, 3);
    CHECK_INT(m->parts[0].kind, CHAT_IMAGE);
    CHECK_INT(m->parts[0].data_bytes, 3);
    CHECK(memcmp(m->parts[0].data, "foo", 3) == 0);
    CHECK_STR(m->parts[0].param, "messages[0].content[0].image_url");
    CHECK_INT(m->parts[2].kind, CHAT_VIDEO);
    CHECK(chat_has_media(r.in));
    api_request_deinit(&r);
}

/* A body of n messages, of two blocks each but in Responses. */
static err_code parse_many(size_t n, int dialect, err_detail *d)
{
    static const char *const BEGIN[] = {"{\"messages\":[", "{\"max_tokens\":1,\"messages\":[",
                                        "{\"input\":["};
    static const char TWO[] = "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":"
                              "\"text\",\"text\":\"b\"}]}";
    api_request r;
    bytes body = bytes_empty(1 << 20);
    bytes_append_str(&body, BEGIN[dialect]);
    for (size_t i = 0; i < n; i++) {
        bytes_append_str(&body, i ? "," : "");
        bytes_append_str(&body, dialect == 2 ? "{\"role\":\"user\",\"content\":\"a\"}" : TWO);
    }
    bytes_append_str(&body, "]}");
    memset(d, 0, sizeof *d);
    api_request_init(&r);
    err_code err = dialect == 0   ? chat_request_parse(&r, bytes_str(&body), body.len, NULL, d)
                   : dialect == 1 ? messages_request_parse(&r, bytes_str(&body), body.len, false, NULL, d)
                                  : responses_request_parse(&r, bytes_str(&body), body.len, false, NULL, d);
    if (err == ERR_OK) {
        CHECK_INT(r.in->n_messages, n);
    }
    api_request_deinit(&r);
    bytes_deinit(&body);
    return err;
}

static void test_number_of_messages(void)
{
    static const char *const NAMES[] = {"messages", "messages", "input"};
    for (int dialect = 0; dialect < 3; dialect++) {
        err_detail d;
        CHECK_OK(parse_many(1, dialect, &d), d);
        CHECK_OK(parse_many(LIMIT_MESSAGES, dialect, &d), d);
        CHECK_INT(parse_many(LIMIT_MESSAGES + 1, dialect, &d), ERR_INVALID);
        CHECK_STR(d.param, NAMES[dialect]);
        CHECK(strstr(d.text, "1024") != NULL);
        CHECK(parse_many(0, dialect, &d) != ERR_OK);
    }
}

/* A video's settings: in the part, in its url object, for the whole request; as one file and as a
 * list of images. */
static void test_videos(void)
{
    api_request r;
    err_detail d;
    CHECK_OK(
        parse(&r,
              "{\"mm_processor_kwargs\":{\"fps\":1,\"max_frames\":9,\"do_sample_frames\":true},\"messages\":["
              "{\"role\":"
              "\"user\",\"content\":[{\"type\":\"video_url\",\"video_url\":{\"url\":\"data:video/"
              "mp4;base64,Zm9v\","
              "\"num_frames\":6},\"fps\":0.5,\"start_ms\":1500,\"end_ms\":4000},{\"type\":\"input_video\","
              "\"input_video\":{\"data\":\"Zm9v\"},\"min_frames\":2},{\"type\":\"video\",\"video\":\"data:;"
              "base64,Zm9v\"},"
              "{\"type\":\"video\",\"video\":[\"data:image/"
              "png;base64,Zm9v\",\"data:;base64,YmFy\"],\"fps\":4}]}]}",
              false, &d),
        d);
    const chat_part *parts = r.in->messages[0].parts;
    CHECK_INT(r.in->messages[0].n_parts, 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(parts[i].kind, CHAT_VIDEO);
        CHECK_INT(parts[i].video.max_frames, 9);
        CHECK_INT(parts[i].data_bytes, i < 3 ? 3 : 0);
    }
    CHECK_NEAR(parts[0].video.fps, 0.5, 0);
    CHECK_INT(parts[0].video.n_frames, 6);
    CHECK_NEAR(parts[0].video.start_s, 1.5, 1e-9);
    CHECK_NEAR(parts[0].video.end_s, 4, 1e-9);
    CHECK_STR(parts[0].param, "messages[0].content[0].video_url");
    CHECK_NEAR(parts[1].video.fps, 1, 0);
    CHECK_INT(parts[1].video.min_frames, 2);
    CHECK_INT(parts[1].video.n_frames, 0);
    CHECK(parts[3].data == NULL);
    CHECK_INT(parts[3].video.n_list, 2);
    CHECK_NEAR(parts[3].video.list_fps, 4, 0);
    CHECK_NEAR(parts[3].video.fps, 1, 0);
    CHECK(memcmp(parts[3].video.list[1].data, "bar", 3) == 0);
    api_request_deinit(&r);

    static const struct {
        const char *body, *content, *param;
    } BAD[] = {
        {"", "{\"type\":\"video_url\",\"video_url\":{\"url\":\"Zm9v\"},\"fps\":0}",
         "messages[0].content[0].fps"},
        {"", "{\"type\":\"video_url\",\"video_url\":{\"url\":\"Zm9v\",\"num_frames\":1.5}}",
         "messages[0].content[0].video_url.num_frames"},
        {"", "{\"type\":\"video_url\",\"video_url\":{\"url\":\"Zm9v\"},\"num_frames\":769}",
         "messages[0].content[0].num_frames"},
        {"", "{\"type\":\"video_url\",\"video_url\":{\"url\":\"Zm9v\"},\"start_ms\":-1}",
         "messages[0].content[0].start_ms"},
        {"", "{\"type\":\"video_url\",\"video_url\":{\"url\":\"https://example.org/a.mp4\"}}",
         "messages[0].content[0].video_url"},
        {"", "{\"type\":\"video_url\",\"video_url\":{\"url\":\"file:///etc/passwd\"}}",
         "messages[0].content[0].video_url"},
        {"", "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"Zm9v\",\"format\":\"wav\"}}",
         "messages[0].content[0].type"},
        {"", "{\"type\":\"video\"}", "messages[0].content[0].video"},
        {"", "{\"type\":\"video\",\"video\":[]}", "messages[0].content[0].video"},
        {"", "{\"type\":\"video\",\"video\":[\"Zm9v\",7]}", "messages[0].content[0].video[1]"},
        {"\"mm_processor_kwargs\":{\"fps\":\"2\"},", "{\"type\":\"text\",\"text\":\"x\"}",
         "mm_processor_kwargs.fps"},
        {"\"mm_processor_kwargs\":{\"size\":{}},", "{\"type\":\"text\",\"text\":\"x\"}",
         "mm_processor_kwargs"},
        {"\"mm_processor_kwargs\":{\"do_sample_frames\":false},", "{\"type\":\"text\",\"text\":\"x\"}",
         "mm_processor_kwargs.do_sample_frames"},
        {"\"mm_processor_kwargs\":3,", "{\"type\":\"text\",\"text\":\"x\"}", "mm_processor_kwargs"},
    };
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        char body[512];
        snprintf(body, sizeof body, "{%s\"messages\":[{\"role\":\"user\",\"content\":[%s]}]}", BAD[i].body,
                 BAD[i].content);
        CHECK(parse(&r, body, false, &d) != ERR_OK);
        CHECK_STR(d.param, BAD[i].param);
        api_request_deinit(&r);
    }
}

static void test_responses(void)
{
    api_request r;
    err_detail d;
    CHECK_OK(
        parse(&r,
              "{\"input\":\"hi\",\"instructions\":\"be kind\",\"stream_id\":\"s.1\",\"max_output_tokens\":5}",
              true, &d),
        d);
    CHECK_INT(r.in->n_messages, 2);
    CHECK_INT(r.in->messages[0].role, CHAT_SYSTEM);
    CHECK_STR(text_of(&r.in->messages[1], 0), "hi");
    CHECK_STR(r.reply.stream_id, "s.1");
    CHECK_INT(r.in->params.max_tokens, 5);
    api_request_deinit(&r);

    CHECK_OK(
        parse(&r,
              "{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"q\"},{"
              "\"type\":\"input_image\","
              "\"image_url\":\"data:;base64,Zm9v\"}]},{\"type\":\"reasoning\",\"summary\":[],\"content\":[{"
              "\"type\":"
              "\"reasoning_text\",\"text\":\"why\"}]},{\"type\":\"message\",\"role\":\"assistant\","
              "\"content\":[{\"type\":"
              "\"output_text\",\"text\":\"a\",\"annotations\":[]}]},{\"type\":\"function_call\",\"call_id\":"
              "\"c\",\"name\":\"f\","
              "\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"o\"},"
              "{\"role\":\"user\",\"content\":\"next\"}],\"tools\":[{\"type\":\"function\",\"name\":\"f\","
              "\"parameters\":{}}]}",
              true, &d),
        d);
    CHECK_INT(r.in->n_messages, 4);
    CHECK_INT(r.in->messages[0].parts[1].kind, CHAT_IMAGE);
    CHECK_STR(r.in->messages[1].reasoning, "why");
    CHECK_STR(text_of(&r.in->messages[1], 0), "a");
    CHECK_STR(r.in->messages[1].tool_calls[0].name, "f");
    CHECK_INT(r.in->messages[2].role, CHAT_TOOL);
    CHECK_STR(json_str(json_get(json_get(json_child(r.in->tools), "function"), "name"), ""), "f");
    api_request_deinit(&r);

    CHECK_INT(parse(&r, "{\"input\":[{\"role\":\"user\",\"content\":\"x\"},{\"type\":\"web_search_call\"}]}",
                    true, &d),
              ERR_UNSUPPORTED);
    CHECK_STR(d.param, "input[1].type");
    api_request_deinit(&r);
    api_request_init(&r);
    const char *other = "{\"type\":\"ping\",\"event_id\":\"e\"}";
    CHECK_INT(responses_request_parse(&r, other, strlen(other), true, NULL, &d), ERR_INVALID);
    CHECK_STR(d.name, "invalid_event");
    CHECK_STR(r.reply.event_id, "e");
    api_request_deinit(&r);
}

static void test_continue(void)
{
    api_request r;
    err_detail d;
    CHECK_OK(parse(&r,
                   "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
                   "\"content\":\"a b\"}],\"continue_final_message\":true}",
                   false, &d),
             d);
    CHECK(r.in->continues);
    api_request_deinit(&r);
    CHECK_OK(parse(&r,
                   "{\"input\":[{\"role\":\"user\",\"content\":\"q\"},{\"type\":\"reasoning\",\"content\":["
                   "{\"type\":\"reasoning_text\",\"text\":\"why\"}]}],\"continue_final_message\":true}",
                   true, &d),
             d);
    CHECK(r.in->continues);
    CHECK_STR(r.in->messages[1].reasoning, "why");
    api_request_deinit(&r);
    static const char *const BAD[] = {
        "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"continue_final_message\":true}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":null}],"
        "\"continue_final_message\":true}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":\"a\","
        "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}],"
        "\"continue_final_message\":true}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"continue_final_message\":1}"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        CHECK_INT(parse(&r, BAD[i], false, &d), ERR_INVALID);
        CHECK_STR(d.param, "continue_final_message");
        api_request_deinit(&r);
    }
}

#define ASKED       "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},"
#define MADE(calls) "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" calls "]}"
#define CALL(id)                                                                                             \
    "{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"
#define GAVE(id, out) "{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"" out "\"}"

static void check_bad_history(const char *text, bool is_responses, const char *param, const char *words)
{
    api_request r;
    err_detail d = {0};
    CHECK_INT(parse(&r, text, is_responses, &d), ERR_INVALID);
    CHECK_STR(d.param, param);
    CHECK(strstr(d.text, words) != NULL);
    api_request_deinit(&r);
}

static void test_tool_history(void)
{
    api_request r;
    err_detail d;
    /* results stand in the order of their calls; ids may come again once they are answered */
    CHECK_OK(parse(&r,
                   ASKED MADE(CALL("a") "," CALL("b") "," CALL("c")) "," GAVE("c", "3") "," GAVE(
                       "a", "1") "," GAVE("b", "2") "," MADE(CALL("a")) "," GAVE("a", "4") "]}",
                   false, &d),
             d);
    const char *const said[] = {"1", "2", "3"};
    for (size_t i = 0; i < 3; i++) {
        CHECK_STR(text_of(&r.in->messages[2 + i], 0), said[i]);
    }
    CHECK_STR(text_of(&r.in->messages[6], 0), "4");
    api_request_deinit(&r);
    /* results without ids, in parts, and the old fields */
    CHECK_OK(
        parse(&r,
              ASKED MADE(CALL("a") "," CALL("b")) ",{\"role\":\"tool\",\"content\":\"1\"},{\"role\":\"tool\","
                                                  "\"content\":[{\"type\":\"text\",\"text\":\"2\"}]},{"
                                                  "\"role\":\"assistant\",\"content\":null,"
                                                  "\"function_call\":{\"name\":\"g\",\"arguments\":\"{"
                                                  "\\\"x\\\":1}\"}},{\"role\":\"function\","
                                                  "\"name\":\"g\",\"content\":\"3\"}]}",
              false, &d),
        d);
    CHECK_STR(r.in->messages[4].tool_calls[0].name, "g");
    CHECK_STR(text_of(&r.in->messages[3], 0), "2");
    api_request_deinit(&r);

    check_bad_history(ASKED GAVE("a", "1") "]}", false, "messages[1].tool_call_id", "no call comes before");
    check_bad_history(ASKED MADE(CALL("a")) "," GAVE("b", "1") "]}", false, "messages[2].tool_call_id",
                      "id b");
    check_bad_history(ASKED MADE(CALL("a")) "," GAVE("a", "1") "," GAVE("a", "2") "]}", false,
                      "messages[3].tool_call_id", "already");
    check_bad_history(ASKED MADE(CALL("a") "," CALL("a")) "]}", false, "messages[1].tool_calls[1].function",
                      "ids must differ");
    check_bad_history(
        ASKED MADE("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\"}}") "]}", false,
        "messages[1].tool_calls[0].function", "JSON object");
    check_bad_history("{\"input\":[{\"role\":\"user\",\"content\":\"q\"},{\"type\":\"function_call_output\","
                      "\"call_id\":\"a\",\"output\":\"1\"}]}",
                      true, "input[1].call_id", "no call comes before");
}

static void test_thinking(void)
{
    static const struct {
        const char *fields;
        int on;         /* 1, 0, or -1: the template is not told */
        int32_t budget; /* -1: unset */
    } CASES[] = {
        {"\"x\":1", -1, -1},
        {"\"reasoning_effort\":\"none\"", 0, -1},
        {"\"reasoning_effort\":\"minimal\"", 1, 128},
        {"\"reasoning_effort\":\"low\"", 1, 512},
        {"\"reasoning_effort\":\"medium\"", 1, 1024},
        {"\"reasoning_effort\":\"high\"", 1, -1},
        {"\"enable_thinking\":true,\"reasoning_budget\":7", 1, 7},
        {"\"reasoning_effort\":\"low\",\"thinking_budget\":0", 1, 0},
        {"\"reasoning_budget\":-1", -1, INT32_MAX},
        {"\"enable_thinking\":false,\"reasoning_effort\":\"high\"", 0, -1},
        {"\"reasoning_effort\":\"high\",\"chat_template_kwargs\":{\"enable_thinking\":false}", 0, -1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char text[512];
        api_request r;
        err_detail d;
        snprintf(text, sizeof text, "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],%s}",
                 CASES[i].fields);
        CHECK_OK(parse(&r, text, false, &d), d);
        const json *on = json_get(r.in->template_kwargs, "enable_thinking");
        CHECK_INT(on ? json_is_true(on) : -1, CASES[i].on);
        CHECK_INT(r.in->params.think_tokens, CASES[i].budget);
        api_request_deinit(&r);
    }
}

#define FLAT(name)   "{\"type\":\"function\",\"name\":\"" name "\"}"
#define NESTED(name) "{\"type\":\"function\",\"function\":{\"name\":\"" name "\"}}"

static void check_allowed(const char *body, bool responses, const char *want)
{
    api_request r;
    err_detail d;
    char names[32] = "";
    CHECK_OK(parse(&r, body, responses, &d), d);
    for (const json *t = json_child(r.in->tools); t; t = json_next(t)) {
        strncat(names, json_str(json_get(json_get(t, "function"), "name"), "?"), 8);
    }
    CHECK_STR(names, want);
    api_request_deinit(&r);
}

static void test_allowed_tools(void)
{
    static const char *const BAD[] = {"{\"mode\":\"auto\",\"tools\":[" NESTED("d") "]}",
                                      "{\"mode\":\"auto\",\"tools\":[]}",
                                      "{\"mode\":\"any\",\"tools\":[" NESTED("a") "]}",
                                      "{\"mode\":\"auto\",\"tools\":[1]}",
                                      "{\"mode\":\"auto\"}",
                                      "7"};
    check_allowed(
        ASKED "{\"role\":\"user\",\"content\":\"b\"}],\"tools\":[" NESTED("a") "," NESTED("b") "," NESTED(
            "c") "],\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"auto\","
                 "\"tools\":[" NESTED("c") "," NESTED("a") "]}}}",
        false, "ac");
    check_allowed("{\"input\":\"x\",\"tools\":[" FLAT("a") "," FLAT(
                      "b") "],\"tool_choice\":{\"type\":\"allowed_tools\","
                           "\"mode\":\"auto\",\"tools\":[" FLAT("b") "]}}",
                  true, "b");
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        char body[512];
        api_request r;
        err_detail d;
        snprintf(body, sizeof body,
                 ASKED "{\"role\":\"user\",\"content\":\"b\"}],\"tools\":[" NESTED(
                     "a") "],\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":%s}}",
                 BAD[i]);
        CHECK_INT(parse(&r, body, false, &d), ERR_INVALID);
        CHECK_STR(d.param, "tool_choice");
        api_request_deinit(&r);
    }
}

/* Results are messages of their own in a chat; errors say where they stand in the body. */
static void test_messages(void)
{
#define CALLS                                                                                                \
    "{\"max_tokens\":9,\"system\":\"s\",\"unknown\":7,\"tools\":[{\"name\":\"f\",\"input_schema\":{}}],"     \
    "\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":["              \
    "{\"type\":\"thinking\",\"thinking\":\"why\"},{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\","       \
    "\"input\":{\"x\":9007199254740993}},{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"f\",\"input\":{}},"  \
    "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{}}]},{\"role\":\"user\",\"content\":["    \
    "{\"type\":\"tool_result\",\"tool_use_id\":\"b\",\"content\":\"2\"},"                                    \
    "{\"type\":\"tool_result\",\"tool_use_id\":\"a\"},"
    static const struct {
        const char *block, *param;
    } BAD[] = {
        {"{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"data\":\"?\"}}",
         "messages[2].content[2].image_url"},
        {"{\"type\":\"tool_result\",\"tool_use_id\":\"z\"}", "messages[2].content[2].tool_use_id"},
        {"{\"type\":\"text\"}", "messages[2].content[2]"},
        {"{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":[{\"type\":\"thinking\"}]}",
         "messages[2].content[2].content"},
    };
    static const char GOOD[] = CALLS "{\"type\":\"text\",\"text\":\"and?\"}]}]}";
    api_request r;
    err_detail d;
    api_request_init(&r);
    CHECK_OK(messages_request_parse(&r, GOOD, sizeof GOOD - 1, true, NULL, &d), d);
    const chat_message *m = r.in->messages;
    CHECK_INT(r.in->n_messages, 6);
    CHECK_INT(m[0].role, CHAT_SYSTEM);
    CHECK_STR(m[2].reasoning, "why");
    CHECK_INT(m[2].n_tool_calls, 3);
    CHECK_INT(m[2].n_parts, 0);
    CHECK_STR(json_number_text(json_get(m[2].tool_calls[0].arguments, "x")), "9007199254740993");
    CHECK_STR(m[3].tool_call_id, "a"); /* in the order of the calls */
    CHECK_STR(text_of(&m[3], 0), "");
    CHECK_STR(text_of(&m[4], 0), "2");
    CHECK_STR(text_of(&m[5], 0), "and?");
    CHECK(!json_bool(json_get(r.in->template_kwargs, "enable_thinking"), true));
    CHECK_STR(json_str(json_get(json_get(json_child(r.in->tools), "function"), "name"), ""), "f");
    CHECK(!r.in->continues);
    api_request_deinit(&r);
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        char body[2048];
        snprintf(body, sizeof body, "%s%s]}]}", CALLS, BAD[i].block);
        CHECK(messages_request_parse(&r, body, strlen(body), true, NULL, &d) != ERR_OK);
        CHECK_STR(d.param, BAD[i].param);
        api_request_deinit(&r);
    }
#undef CALLS
}

/* With tools an answer has the asked form, or is one call after the other. */
static void test_form(void)
{
#define FORM(format, tools)                                                                                  \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"response_format\":" format tools "}"
#define TOOLS ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]"
    static const char *const BAD[][2] = {
        {"{\"type\":\"xml\"}", "response_format"},
        {"{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"a b\",\"schema\":{}}}",
         "response_format.json_schema.name"},
        {"{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"\",\"schema\":{}}}",
         "response_format.json_schema.name"},
        {"{\"type\":\"json_schema\",\"json_schema\":7}", "response_format.json_schema"},
        {"{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\"}}", "response_format.json_schema.schema"},
        {"{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\",\"schema\":7}}",
         "response_format.json_schema.schema"},
        {"{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\",\"schema\":{},\"strict\":7}}",
         "response_format.json_schema.strict"},
    };
    api_request r;
    err_detail d;
    CHECK_OK(parse(&r, FORM("{\"type\":\"json_object\"}", TOOLS), false, &d), d);
    const grammar_spec *choice = r.in->form;
    CHECK(choice && choice->kind == SPEC_CHOICE && choice->n_items == 2);
    if (choice) {
        CHECK(choice->items[0].kind == SPEC_SCHEMA && choice->items[0].schema == NULL);
        const grammar_spec *calls = &choice->items[1];
        CHECK(calls->kind == SPEC_REPEAT && calls->n_items == 2 && calls->min == 1 &&
              calls->max == SPEC_MANY);
        for (size_t i = 0; i < 2; i++) { /* the first call, and each further one behind a line break */
            const grammar_spec *call = &calls->items[i], *part = call->items;
            CHECK(call->kind == SPEC_SEQUENCE && call->n_items == 2 + i);
            if (i == 1) {
                CHECK(part->kind == SPEC_TEXT);
                CHECK_STR(part->text, "\n");
                part++;
            }
            CHECK(part[0].kind == SPEC_MARKER && part[1].kind == SPEC_UNTIL);
            CHECK_STR(part[0].text, "<tool_call>");
            CHECK_STR(part[1].text, "</tool_call>");
        }
        CHECK(r.answer_form && r.answer_form->kind == SPEC_SCHEMA);
    }
    api_request_deinit(&r);
    CHECK_OK(parse(&r,
                   FORM("{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\",\"strict\":true,"
                        "\"schema\":{\"a\":1}}}",
                        ""),
                   false, &d),
             d);
    CHECK(r.in->form && r.in->form->kind == SPEC_SCHEMA && json_get(r.in->form->schema, "a"));
    CHECK_STR(r.in->form ? r.in->form->path : "", "response_format.json_schema.schema");
    api_request_deinit(&r);
    CHECK_OK(parse(&r, FORM("{\"type\":\"text\"}", TOOLS), false, &d), d);
    CHECK(r.in->form == NULL && r.answer_form == NULL);
    api_request_deinit(&r);
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        char body[512];
        snprintf(body, sizeof body,
                 "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"response_format\":%s}", BAD[i][0]);
        CHECK(parse(&r, body, false, &d) != ERR_OK);
        CHECK_STR(d.param, BAD[i][1]);
        api_request_deinit(&r);
    }
#undef FORM
#undef TOOLS
}

static void add_paths(bytes *out, const grammar_spec *spec)
{
    if (spec->path) {
        bytes_printf(out, "%s ", spec->path);
    }
    for (size_t i = 0; i < spec->n_items; i++) {
        add_paths(out, &spec->items[i]);
    }
}

/* A schema that cannot be kept is named where it stands in the request. */
static void test_forced_paths(void)
{
#define SOME(list) "{\"type\":\"allowed_tools\",\"mode\":\"required\",\"tools\":[" list "]}"
#define WITHIN(list)                                                                                         \
    "{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"required\",\"tools\":[" list "]}}"
    static const struct {
        const char *choice[2], *paths[2]; /* of chats, of responses */
    } ROWS[] = {
        {{"\"required\"", "\"required\""},
         {"tools[0].function.parameters tools[1].function.parameters tools[2].function.parameters ",
          "tools[0].parameters tools[1].parameters tools[2].parameters "}},
        {{NESTED("g"), FLAT("g")}, {"tools[1].function.parameters ", "tools[1].parameters "}},
        {{WITHIN(NESTED("h") "," NESTED("g")), SOME(FLAT("h") "," FLAT("g"))},
         {"tools[1].function.parameters tools[2].function.parameters ",
          "tools[1].parameters tools[2].parameters "}},
        {{"\"auto\"", "\"auto\""}, {"", ""}},
    };
    for (size_t i = 0; i < 2 * ARRAY_LEN(ROWS); i++) {
        const size_t is_flat = i % 2;
        char body[1024];
        api_request r;
        err_detail d = {0};
        bytes found = bytes_empty(1024);
        snprintf(body, sizeof body,
                 "{\"%s\":[{\"role\":\"user\",\"content\":\"q\"}],\"parallel_tool_calls\":false,"
                 "\"tools\":[%s],\"tool_choice\":%s}",
                 is_flat ? "input" : "messages",
                 is_flat ? FLAT("f") "," FLAT("g") "," FLAT("h")
                         : NESTED("f") "," NESTED("g") "," NESTED("h"),
                 ROWS[i / 2].choice[is_flat]);
        api_request_init(&r);
        r.form = &TOOL_FORM_HERMES;
        CHECK_OK(is_flat ? responses_request_parse(&r, body, strlen(body), false, NULL, &d)
                         : chat_request_parse(&r, body, strlen(body), NULL, &d),
                 d);
        if (r.in->form) {
            add_paths(&found, r.in->form);
        }
        CHECK_STR(bytes_str(&found), ROWS[i / 2].paths[is_flat]);
        CHECK(r.in->form_is_calls == (r.in->form != NULL));
        bytes_deinit(&found);
        api_request_deinit(&r);
    }
#undef SOME
#undef WITHIN
}

/* A large variable of the template is taken with an effort beside it as it is without. */
static void test_large_kwargs(void)
{
    static const char HEAD[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],"
                               "\"reasoning_effort\":\"low\",\"chat_template_kwargs\":{\"long\":\"";
    enum { N = 2 << 20 };
    char *body = malloc(N + 512);
    api_request r;
    err_detail d;
    memcpy(body, HEAD, sizeof HEAD - 1);
    memset(body + sizeof HEAD - 1, 'x', N);
    memcpy(body + sizeof HEAD - 1 + N, "\"}}", 4);
    CHECK_OK(parse(&r, body, false, &d), d);
    CHECK_INT(strlen(json_str(json_get(r.in->template_kwargs, "long"), "")), N);
    CHECK_STR(json_str(json_get(r.in->template_kwargs, "reasoning_effort"), ""), "low");
    CHECK(json_is_true(json_get(r.in->template_kwargs, "enable_thinking")));
    api_request_deinit(&r);
    free(body);
}

/* What a request that a tool has run for is, with its first round: the call, and what it brought. */
static void test_turns(void)
{
    static const char TURNS[] =
        "[{\"type\":\"function_call\",\"call_id\":\"x\",\"name\":\"f\",\"arguments\":\"{}\"},"
        "{\"type\":\"function_call_output\",\"call_id\":\"x\",\"output\":\"so\"}]";
    static const char TALK[] = "\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
                               "\"content\":\"so far\"}]",
                      TOOLS[] = "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]";
    json_doc *turns = NULL;
    err_detail d = {0};
    CHECK_OK(json_parse(&turns, TURNS, sizeof TURNS - 1, 8, &d), d);
    for (int has_turns = 0; has_turns < 2; has_turns++) {
        for (int i = 0; i < 3; i++) {
            char body[600];
            api_request r;
            snprintf(body, sizeof body, "{%s%s,%s}",
                     i == 0   ? "\"continue_final_message\":true"
                     : i == 1 ? "\"max_tokens\":9"
                              : "\"tool_choice\":\"required\",",
                     i == 2 ? TOOLS : "", TALK);
            api_request_init(&r);
            r.form = &TOOL_FORM_HERMES;
            r.turns = has_turns ? json_root(turns) : NULL;
            CHECK_OK(i == 1 ? messages_request_parse(&r, body, strlen(body), true, NULL, &d)
                            : chat_request_parse(&r, body, strlen(body), NULL, &d),
                     d);
            CHECK_INT(r.in->n_messages, has_turns ? 3 : 2);  /* the call is part of the answer */
            CHECK_INT(r.in->continues, i < 2 && !has_turns); /* its words are in front of what was done */
            CHECK_INT(r.forces_calls, i == 2 && !has_turns); /* that was the call */
            api_request_deinit(&r);
        }
    }
    json_free(turns);
}

/* Images that a tool has brought are shown to a model that sees. */
static void test_brought_images(void)
{
    static const char BODY[] =
        "{\"input\":[{\"role\":\"user\",\"content\":\"q\"},{\"type\":\"mcp_call\",\"id\":\"m\","
        "\"server_label\":\"s\",\"name\":\"n\",\"arguments\":\"{}\",\"output\":\"o\","
        "\"images\":[\"data:image/png;base64,Zm9v\"]}]}";
    for (int sees = -1; sees < 2; sees++) {
        const engine_info info = {.n_ctx = 4096, .max_images = 9, .has_vision = sees == 1};
        api_request r;
        err_detail d = {0};
        api_request_init(&r);
        CHECK_OK(responses_request_parse(&r, BODY, sizeof BODY - 1, false, sees < 0 ? NULL : &info, &d), d);
        const chat_message *m = &r.in->messages[r.in->n_messages - 1];
        CHECK_INT(m->n_parts, sees == 1 ? 2 : 1);
        CHECK_STR(text_of(m, 0), "o");
        CHECK_STR(m[-1].tool_calls[0].name, "n"); /* nothing here has tools, so it has its own */
        api_request_deinit(&r);
    }
}

/* A title of one letter is one. */
static void test_document(void)
{
    static const char BODY[] =
        "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"document\","
        "\"title\":\"t\",\"context\":\"\",\"source\":{\"type\":\"text\",\"data\":\"d\"}}]}]}";
    api_request r;
    err_detail d = {0};
    api_request_init(&r);
    CHECK_OK(messages_request_parse(&r, BODY, sizeof BODY - 1, true, NULL, &d), d);
    CHECK_STR(text_of(&r.in->messages[0], 0), "<document title=\"t\">\nd\n</document>\n");
    api_request_deinit(&r);
}

int main(void)
{
    test_document();
    test_turns();
    test_brought_images();
    test_conversation();
    test_form();
    test_forced_paths();
    test_large_kwargs();
    test_allowed_tools();
    test_tool_history();
    test_thinking();
    test_messages();
    test_parameters();
    test_media();
    test_number_of_messages();
    test_videos();
    test_responses();
    test_continue();
    CHECK_DONE();
}
