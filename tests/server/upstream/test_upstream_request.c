/* upstream_request: a chat as each engine takes it, and what is refused because it has no word for it. */
#include "server/upstream/upstream_request.h"

#include "base/limits.h"
#include "server/protocol/dialects/chat_request.h"
#include "server/protocol/dialects/completion_request.h"
#include "server/protocol/dialects/messages_request.h"
#include "server/protocol/dialects/ollama_request.h"
#include "server/protocol/dialects/responses_request.h"
#include "tests/recorded.h"

#define ZEROS ",\"presence_penalty\":0,\"frequency_penalty\":0"
#define HEAD  "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true}"
#define Q     ",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]"

/* The body for a request with these fields, without what all begin with; "! FIELD" where it is refused. */
static const char *sent_with(upstream_engine e, const char *fields, const upstream_prompt *prompt)
{
    static char out[4096];
    char body[2048];
    api_request r;
    err_detail d = {0};
    bytes text = bytes_empty(LIMIT_BODY_BYTES);
    snprintf(body, sizeof body, "{%s}", fields);
    api_request_init(&r);
    r.form = tool_form_find("hermes");
    CHECK_OK(chat_request_parse(&r, body, strlen(body), NULL, &d), d);
    upstream_media media = {.engine = e};
    const upstream_facts facts = {.server = "gpu", .model = "m", .engine = e, .media = &media};
    upstream_media_begin(&media, r.in, UPSTREAM_VIDEO_AUTO, UPSTREAM_UNKNOWN);
    const err_code err = upstream_request_write(&text, &r, prompt, &facts, &d);
    const size_t n = sizeof HEAD - 1;
    if (err == ERR_OK) {
        CHECK(strncmp(bytes_str(&text), HEAD, n) == 0);
    }
    snprintf(out, sizeof out, "%s%s", err ? "! " : "", err ? d.param : bytes_str(&text) + n);
    char *zeros = strstr(out, ZEROS); /* which say nothing, and are always sent */
    if (zeros) {
        memmove(zeros, zeros + sizeof ZEROS - 1, strlen(zeros + sizeof ZEROS - 1) + 1);
    }
    bytes_deinit(&text);
    api_request_deinit(&r);
    return out;
}

#define MESSAGES "\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]"
static const char *sent(upstream_engine e, const char *fields)
{
    static const upstream_prompt CHAT = {0};
    static char out[4096];
    char all[1024];
    snprintf(all, sizeof all, MESSAGES "%s%s", fields[0] ? "," : "", fields);
    const char *body = sent_with(e, all, &CHAT);
    const size_t n = strncmp(body, Q, sizeof Q - 1) == 0 ? sizeof Q - 1 : 0;
    snprintf(out, sizeof out, "%s", body + n);
    return out;
}

static void test_sampling(void)
{
    static const char *const FIELDS =
        "\"temperature\":0.5,\"top_p\":0.25,\"min_p\":0.125,\"presence_penalty\":1,\"frequency_penalty\":-1,"
        "\"repetition_penalty\":1.5,\"seed\":7,\"max_tokens\":9,\"stop\":[\"a\",\"b\"],\"logit_bias\":{\"3\":"
        "-1,\"5\":2}";
    static const char *const TAIL =
        ",\"seed\":7,\"max_tokens\":9,\"stop\":[\"a\",\"b\"],\"logit_bias\":{\"3\":-1,\"5\":2}}";
    char expected[512];
    for (upstream_engine e = UPSTREAM_OTHER; e <= UPSTREAM_PARLEY; e++) {
        snprintf(expected, sizeof expected,
                 ",\"temperature\":0.5,\"top_p\":0.25,\"min_p\":0.125,\"presence_penalty\":1,\"frequency_"
                 "penalty\":-1,\"%s\":1.5%s",
                 e == UPSTREAM_LLAMA_CPP ? "repeat_penalty" : "repetition_penalty", TAIL);
        CHECK_STR(sent(e, FIELDS), expected);
        CHECK_STR(sent(e, ""), "}");
        CHECK_STR(sent(e, "\"top_k\":5"), ",\"top_k\":5}");
        CHECK_STR(sent(e, "\"top_k\":0"), e == UPSTREAM_LLAMA_CPP ? ",\"top_k\":0}" : ",\"top_k\":-1}");
        CHECK_STR(sent(e, "\"max_completion_tokens\":4"),
                  e == UPSTREAM_OTHER ? ",\"max_completion_tokens\":4}" : ",\"max_tokens\":4}");
        CHECK_STR(sent(e, "\"logprobs\":true,\"top_logprobs\":3"), ",\"logprobs\":true,\"top_logprobs\":3}");
        CHECK_STR(sent(e, "\"logprobs\":true"), ",\"logprobs\":true,\"top_logprobs\":0}");
        CHECK_STR(sent(e, "\"user\":\"u\""), ",\"user\":\"u\"}");
    }
    CHECK_STR(sent(UPSTREAM_VLLM, "\"min_tokens\":3,\"stop_token_ids\":[1]"),
              ",\"min_tokens\":3,\"stop_token_ids\":[1]}");
    CHECK_STR(sent(UPSTREAM_PARLEY, "\"min_tokens\":3,\"stop_token_ids\":[1]"), ",\"min_tokens\":3}");
    CHECK_STR(sent(UPSTREAM_OTHER, "\"min_tokens\":3,\"stop_token_ids\":[1],\"verbosity\":\"low\""),
              ",\"verbosity\":\"low\"}");
}

static void test_thinking(void)
{
    static const char *const EFFORT = "\"reasoning_effort\":\"low\"";
    for (upstream_engine e = UPSTREAM_OTHER; e <= UPSTREAM_PARLEY; e++) {
        const char *said = sent(e, EFFORT);
        const char *kwargs = strstr(said, "chat_template_kwargs"),
                   *effort = strstr(said, "\"reasoning_effort\":\"low\"");
        CHECK(effort && (kwargs && effort > kwargs) == (e == UPSTREAM_LLAMA_CPP));
        CHECK((strstr(said, "chat_template_kwargs") != NULL) == (e != UPSTREAM_OTHER));
        said = sent(e, "\"chat_template_kwargs\":{\"k\":[1]}");
        CHECK(strstr(said, ",\"chat_template_kwargs\":{") != NULL && strstr(said, "\"k\":[1]") != NULL);
        said = sent(e, "\"thinking_token_budget\":50");
        CHECK_STR(e == UPSTREAM_OTHER || e == UPSTREAM_SGLANG ? said : "! reasoning_budget",
                  "! reasoning_budget");
        CHECK((strstr(said, ",\"thinking_token_budget\":50}") != NULL) ==
              (e == UPSTREAM_VLLM || e == UPSTREAM_PARLEY));
        CHECK((strstr(said, ",\"reasoning_budget_tokens\":50,\"thinking_budget_tokens\":50}") != NULL) ==
              (e == UPSTREAM_LLAMA_CPP));
    }
}

static void test_forms(void)
{
    static const struct {
        const char *fields, *bodies[5]; /* other, vllm, sglang, llama.cpp, parley */
    } CASES[] = {
        {"\"response_format\":{\"type\":\"json_object\"}",
         {",\"response_format\":{\"type\":\"json_object\"}}",
          ",\"response_format\":{\"type\":\"json_object\"}}",
          ",\"response_format\":{\"type\":\"json_object\"}}",
          ",\"response_format\":{\"type\":\"json_object\"}}",
          ",\"response_format\":{\"type\":\"json_object\"}}"}},
        {"\"structured_outputs\":{\"regex\":\"a+\"}",
         {"! structured_outputs", ",\"structured_outputs\":{\"regex\":\"a+\"}}", ",\"regex\":\"a+\"}",
          "! structured_outputs", "! structured_outputs"}},
        {"\"guided_choice\":[\"a.b\",\"c\\\"\"]",
         {"! guided_choice", ",\"structured_outputs\":{\"choice\":[\"a.b\",\"c\\\"\"]}}",
          ",\"regex\":\"(a\\\\.b|c\\\")\"}", ",\"grammar\":\"root ::= \\\"a.b\\\" | \\\"c\\\\\\\"\\\"\"}",
          "! guided_choice"}},
        {"\"guided_grammar\":\"g\"",
         {"! guided_grammar", ",\"structured_outputs\":{\"grammar\":\"g\"}}", ",\"ebnf\":\"g\"}",
          ",\"grammar\":\"g\"}", "! guided_grammar"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        for (int e = 0; e < 5; e++) {
            CHECK_STR(sent((upstream_engine)e, CASES[i].fields), CASES[i].bodies[e]);
        }
    }
#define SCHEMA ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"answer\","
    CHECK_STR(sent(UPSTREAM_OTHER, "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":"
                                   "\"n\",\"strict\":true,\"schema\":{\"a\":1}}}"),
              SCHEMA "\"strict\":true,\"schema\":{\"a\":1}}}}");
    CHECK_STR(sent(UPSTREAM_OTHER, "\"guided_json\":{\"a\":1}"), SCHEMA "\"schema\":{\"a\":1}}}}");
    CHECK_STR(sent(UPSTREAM_OTHER, "\"json_schema\":\"{\\\"a\\\":1}\""), SCHEMA "\"schema\":{\"a\":1}}}}");
    CHECK_STR(sent(UPSTREAM_VLLM, "\"guided_json\":\"[1]\""), "! guided_json");
    CHECK_STR(sent(UPSTREAM_VLLM, "\"guided_choice\":[]"), "! guided_choice");
    CHECK_STR(sent(UPSTREAM_VLLM, "\"guided_regex\":7"), "! guided_regex");
}

static void test_tools(void)
{
#define TOOLS "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]"
    CHECK_STR(sent(UPSTREAM_OTHER, TOOLS), "," TOOLS "}");
    CHECK_STR(sent(UPSTREAM_OTHER, TOOLS ",\"tool_choice\":\"required\",\"parallel_tool_calls\":false"),
              "," TOOLS ",\"tool_choice\":\"required\",\"parallel_tool_calls\":false}");
    CHECK_STR(
        sent(UPSTREAM_OTHER, TOOLS ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}"),
        "," TOOLS ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}}");
}

static void test_messages(void)
{
    static const upstream_prompt CHAT = {0};
    static const char *const TALK =
        "\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":[{\"type\":"
        "\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}],\"name\":\"n\"},"
        "{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"r\",\"tool_calls\":[{\"id\":\"c1\","
        "\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}},"
        "{\"function\":{\"name\":\"g\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"t1\"},{"
        "\"role\":\"tool\",\"content\":\"t2\"},{\"role\":\"user\",\"content\":\"\"}]";
    static const char *const NAMES[] = {"", ",\"reasoning\":\"r\"", ",\"reasoning_content\":\"r\"",
                                        ",\"reasoning_content\":\"r\"", ",\"reasoning_content\":\"r\""};
    char expected[1024];
    for (int e = 0; e < 5; e++) {
        snprintf(expected, sizeof expected,
                 ",\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":[{"
                 "\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}],\"name\":\"n\"},"
                 "{\"role\":\"assistant\",\"content\":null%s,\"tool_calls\":[{\"id\":\"c1\",\"type\":"
                 "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}},"
                 "{\"id\":\"call_2_1\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"{}"
                 "\"}}]},{\"role\":\"tool\",\"content\":\"t1\",\"tool_call_id\":\"c1\"},"
                 "{\"role\":\"tool\",\"content\":\"t2\",\"tool_call_id\":\"call_2_1\"},{\"role\":\"user\","
                 "\"content\":\"\"}]}",
                 NAMES[e]);
        CHECK_STR(sent_with((upstream_engine)e, TALK, &CHAT), expected);
        /* An answer that is given is gone on with, where that can be said. */
        const char *said =
            sent_with((upstream_engine)e,
                      "\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
                      "\"content\":\"a\"}],\"continue_final_message\":true,\"add_generation_prompt\":false",
                      &CHAT);
        const char *end = strstr(said, "\"a\"}]");
        CHECK_STR(e == UPSTREAM_OTHER ? said
                  : end               ? end + 5
                                      : "?",
                  e == UPSTREAM_OTHER ? "! messages"
                  : e == UPSTREAM_LLAMA_CPP
                      ? "}"
                      : ",\"continue_final_message\":true,\"add_generation_prompt\":false}");
    }
    /* Raw prompts: a text, or ids. */
    const int32_t ids[] = {3, 1, 4};
    CHECK_STR(sent_with(UPSTREAM_VLLM, MESSAGES ",\"max_tokens\":2", &(upstream_prompt){.text = "say \""}),
              ",\"prompt\":\"say \\\"\",\"max_tokens\":2}");
    CHECK_STR(sent_with(UPSTREAM_VLLM, MESSAGES, &(upstream_prompt){.ids = ids, .n_ids = 3}),
              ",\"prompt\":[3,1,4]}");
    CHECK_STR(sent_with(UPSTREAM_VLLM, MESSAGES ",\"logprobs\":true,\"top_logprobs\":2",
                        &(upstream_prompt){.text = "x"}),
              ",\"prompt\":\"x\",\"logprobs\":2}");
}

/* Messages that are written by hand: texts of several parts are one where they came as one, and only there. */
static void test_contents(void)
{
    chat_part parts[] = {{.kind = CHAT_TEXT, .text = "a", .text_len = 1},
                         {.kind = CHAT_TEXT, .text = "\"b", .text_len = 2}};
    chat_tool_call calls[] = {{.name = "f", .id = ""}};
    static const struct {
        bool is_string;
        size_t n_parts, n_calls;
        const char *content;
    } CASES[] = {{true, 2, 0, "\"a\\\"b\""},
                 {false, 2, 0, "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"\\\"b\"}]"},
                 {true, 1, 0, "\"a\""},
                 {false, 1, 0, "\"a\""},
                 {true, 0, 0, "\"\""},
                 {true, 0, 1, "null"}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        api_request r;
        err_detail d = {0};
        char expected[256];
        bytes text = bytes_empty(LIMIT_BODY_BYTES);
        static const char BODY[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}";
        api_request_init(&r);
        CHECK_OK(chat_request_parse(&r, BODY, sizeof BODY - 1, NULL, &d), d);
        r.in->messages[0] = (chat_message){.role = CHAT_ASSISTANT,
                                           .parts = parts,
                                           .n_parts = CASES[i].n_parts,
                                           .is_string = CASES[i].is_string,
                                           .tool_calls = calls,
                                           .n_tool_calls = CASES[i].n_calls};
        upstream_media media = {.engine = UPSTREAM_OTHER};
        const upstream_facts facts = {
            .server = "gpu", .model = "m", .engine = UPSTREAM_OTHER, .media = &media};
        upstream_media_begin(&media, r.in, UPSTREAM_VIDEO_AUTO, UPSTREAM_UNKNOWN);
        CHECK_OK(upstream_request_write(&text, &r, &(upstream_prompt){0}, &facts, &d), d);
        snprintf(expected, sizeof expected,
                 HEAD ",\"messages\":[{\"role\":\"assistant\",\"content\":%s%s}]" ZEROS "}", CASES[i].content,
                 CASES[i].n_calls
                     ? ",\"tool_calls\":[{\"id\":\"call_0_0\",\"type\":\"function\",\"function\":{\"name\":"
                       "\"f\",\"arguments\":\"{}\"}}]"
                     : "");
        CHECK_STR(bytes_str(&text), expected);
        const size_t n = text.len;
        for (size_t most = n - 1; most <= n; most++) { /* where it is too large it is refused */
            bytes_deinit(&text);
            bytes_init(&text, most);
            CHECK_INT(upstream_request_write(&text, &r, &(upstream_prompt){0}, &facts, &d),
                      most < n ? ERR_LIMIT : ERR_OK);
        }
        CHECK_STR(d.name, "body_too_large");
        CHECK_STR(d.text, "the request is too large for gpu");
        bytes_deinit(&text);
        api_request_deinit(&r);
    }
}

/* Results without ids are those of the calls in their order, whichever messages these stand in. */
static void test_order_of_results(void)
{
    static const char BODY[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},"
                               "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{"
                               "\"name\":\"f\",\"arguments\":{}}},"
                               "{\"function\":{\"name\":\"g\",\"arguments\":{}}}]},"
                               "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{"
                               "\"name\":\"h\",\"arguments\":{}}}]},"
                               "{\"role\":\"tool\",\"content\":\"1\"},{\"role\":\"tool\",\"content\":\"2\"},{"
                               "\"role\":\"tool\",\"content\":\"3\"}]}";
    static const char *const IDS[] = {"call_1_0", "call_1_1", "call_2_0"};
    api_request r;
    err_detail d = {0};
    json_doc *doc = NULL;
    bytes text = bytes_empty(LIMIT_BODY_BYTES);
    api_request_init(&r);
    CHECK_OK(ollama_request_parse(&r, BODY, sizeof BODY - 1, false, NULL, &d), d);
    upstream_media media = {.engine = UPSTREAM_OTHER};
    const upstream_facts facts = {.server = "gpu", .model = "m", .engine = UPSTREAM_OTHER, .media = &media};
    upstream_media_begin(&media, r.in, UPSTREAM_VIDEO_AUTO, UPSTREAM_UNKNOWN);
    CHECK_OK(upstream_request_write(&text, &r, &(upstream_prompt){0}, &facts, &d), d);
    CHECK_OK(json_parse(&doc, bytes_str(&text), text.len, 16, &d), d);
    size_t n_calls = 0, n_results = 0;
    for (const json *m = json_child(json_get(json_root(doc), "messages")); m; m = json_next(m)) {
        for (const json *c = json_child(json_get(m, "tool_calls")); c; c = json_next(c)) {
            CHECK_STR(json_str(json_get(c, "id"), ""), IDS[n_calls++]);
        }
        if (json_get(m, "tool_call_id")) {
            CHECK_STR(json_str(json_get(m, "tool_call_id"), ""), IDS[n_results++]);
        }
    }
    CHECK(n_calls == 3 && n_results == 3);
    json_free(doc);
    bytes_deinit(&text);
    api_request_deinit(&r);
}

/* What no other server is asked for, and numbers at their bounds. */
static void test_refused(void)
{
    CHECK_STR(sent(UPSTREAM_VLLM, "\"max_tokens\":1"), ",\"max_tokens\":1}");
    CHECK_STR(sent(UPSTREAM_VLLM, "\"seed\":-1"), "}");
    CHECK_STR(sent(UPSTREAM_VLLM, "\"top_k\":-1"), ",\"top_k\":-1}");
    CHECK_STR(sent(UPSTREAM_VLLM, "\"user\":null"), "}");
    CHECK_STR(sent(UPSTREAM_VLLM, "\"thinking_token_budget\":0"), ",\"thinking_token_budget\":0}");
    CHECK_STR(sent(UPSTREAM_VLLM, "\"thinking_token_budget\":-1"), "}");
    CHECK_STR(sent(UPSTREAM_OTHER, "\"enable_thinking\":false"),
              ",\"chat_template_kwargs\":{\"enable_thinking\":false}}");
    CHECK_STR(sent(UPSTREAM_OTHER, "\"json_schema\":\"[]\""), "! json_schema");
    CHECK_STR(sent(UPSTREAM_OTHER, "\"json_schema\":\"{\""), "! json_schema");
    CHECK_STR(sent(UPSTREAM_SGLANG, "\"guided_choice\":[\"a\"]"), ",\"regex\":\"(a)\"}");
    CHECK_STR(sent(UPSTREAM_SGLANG, "\"regex\":\"a|b\""), ",\"regex\":\"a|b\"}");
    CHECK_STR(sent(UPSTREAM_LLAMA_CPP, "\"grammar\":\"g\""), ",\"grammar\":\"g\"}");
    CHECK_STR(sent(UPSTREAM_VLLM, "\"structured_outputs\":{\"json\":{\"a\":1}}"),
              SCHEMA "\"schema\":{\"a\":1}}}}");
    CHECK_STR(sent(UPSTREAM_VLLM, "\"structured_outputs\":{\"choice\":[\"a\"]}"),
              ",\"structured_outputs\":{\"choice\":[\"a\"]}}");
    CHECK_STR(sent(UPSTREAM_VLLM, "\"structured_outputs\":{\"grammar\":\"g\"}"),
              ",\"structured_outputs\":{\"grammar\":\"g\"}}");
    err_detail d = {0};
    api_request r;
    static const char BODY[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}";
    for (int i = 0; i < 5; i++) {
        bytes text = bytes_empty(LIMIT_BODY_BYTES);
        upstream_media media = {.engine = UPSTREAM_VLLM};
        const upstream_facts facts = {
            .server = "gpu", .model = "m", .engine = UPSTREAM_VLLM, .media = &media};
        api_request_init(&r);
        CHECK_OK(chat_request_parse(&r, BODY, sizeof BODY - 1, NULL, &d), d);
        upstream_media_begin(&media, r.in, UPSTREAM_VIDEO_AUTO, UPSTREAM_UNKNOWN);
        r.in->params.scores_prompt = i == 1;
        r.asks_edits = i == 2;
        r.compact_at = i == 3;
        r.in->params.max_tokens = i == 4 ? 0 : r.in->params.max_tokens;
        CHECK_INT(upstream_request_write(&text, &r, &(upstream_prompt){0}, &facts, &d),
                  i ? ERR_UNSUPPORTED : ERR_OK);
        if (i) {
            CHECK_STR(d.param, i == 1 ? "echo" : i == 4 ? "max_tokens" : "context_management");
            CHECK_STR(d.name, "not_supported");
        }
        bytes_deinit(&text);
        api_request_deinit(&r);
    }
    CHECK_STR(d.text,
              "gpu (vllm) is asked for answers alone; logprobs of a prompt are for models of this server");
}

static void test_engines(void)
{
    static const char *const OWNERS[][2] = {{"vllm", "vllm"},          {"sglang", "sglang"},
                                            {"llamacpp", "llama.cpp"}, {"parley", "parley"},
                                            {"somebody", "other"},     {"", "other"}};
    for (size_t i = 0; i < ARRAY_LEN(OWNERS); i++) {
        CHECK_STR(upstream_engine_name(upstream_engine_of(OWNERS[i][0])), OWNERS[i][1]);
    }
}

/* A line is a dialect and a body in it: "<other vllm {...}", what is sent to which engines, or why it is not. */
static void tell(void *ctx, bytes *out, const char *line, size_t len)
{
    (void)ctx;
    const size_t n = strcspn(line, " ");
    if (*line == '#' || n >= len) {
        return;
    }
    bytes said[5], names[5];
    size_t n_said = 0;
    for (upstream_engine e = UPSTREAM_OTHER; e <= UPSTREAM_PARLEY; e++) {
        api_request r;
        err_detail d = {0};
        completion_prompt ids = {0};
        const char *body = line + n + 1;
        const size_t n_body = len - n - 1;
        bytes text = bytes_empty(LIMIT_BODY_BYTES);
        api_request_init(&r);
        r.form = tool_form_find("hermes");
        err_code err = *line == 'c'   ? chat_request_parse(&r, body, n_body, NULL, &d)
                       : *line == 'm' ? messages_request_parse(&r, body, n_body, true, NULL, &d)
                       : *line == 'r' ? responses_request_parse(&r, body, n_body, false, NULL, &d)
                                      : completion_request_parse(&r, &ids, body, n_body, NULL, &d);
        upstream_media media = {.engine = e};
        const upstream_facts facts = {.server = "gpu", .model = "m", .engine = e, .media = &media};
        const upstream_prompt prompt = {.text = ids.text, .ids = ids.ids, .n_ids = ids.n_ids};
        bool is_parsed = !err;
        if (is_parsed) {
            upstream_media_begin(&media, r.in, UPSTREAM_VIDEO_AUTO, UPSTREAM_UNKNOWN);
            err = upstream_request_write(&text, &r, &prompt, &facts, &d);
        }
        if (err) {
            bytes_clear(&text);
            bytes_printf(&text, "%s%s of %s: %s", is_parsed ? "" : "not read: ", err_name(err), d.param,
                         d.text);
        } else {
            CHECK(strncmp(bytes_str(&text), HEAD, sizeof HEAD - 1) == 0);
            bytes_consume(&text, sizeof HEAD - 1);
        }
        size_t i = 0;
        while (i < n_said && strcmp(bytes_str(&said[i]), bytes_str(&text)) != 0) {
            i++;
        }
        if (i == n_said) {
            said[n_said] = text;
            names[n_said++] = bytes_empty(64);
        } else {
            bytes_deinit(&text);
        }
        bytes_printf(&names[i], "%s ", upstream_engine_name(e));
        api_request_deinit(&r);
    }
    for (size_t i = 0; i < n_said; i++) {
        bytes_printf(out, "<%s%s\n", n_said > 1 ? bytes_str(&names[i]) : "", bytes_str(&said[i]));
        bytes_deinit(&said[i]);
        bytes_deinit(&names[i]);
    }
}

int main(void)
{
    recorded_answers(PARLEY_SOURCE_DIR "/tests/server/upstream/asked.txt", tell, NULL);
    test_sampling();
    test_thinking();
    test_forms();
    test_tools();
    test_messages();
    test_contents();
    test_order_of_results();
    test_refused();
    test_engines();
    CHECK_DONE();
}
