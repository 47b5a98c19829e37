/* reply_json, ollama_reply: figures as every dialect writes them, from made-up ones. */
#include "server/protocol/reply_json.h"

#include "server/protocol/dialects/ollama_reply.h"
#include "tests/check.h"

static const reply_usage USAGE = {
    .prompt_tokens = 20, .cached_tokens = 7, .completion_tokens = 5, .reasoning_tokens = 3};

static bytes out;

/* What was written since the last time. */
static const char *written(void)
{
    static char text[4096];
    snprintf(text, sizeof text, "%s", bytes_str(&out));
    CHECK(!out.failed);
    bytes_clear(&out);
    return text;
}

static void test_usage(void)
{
    reply_json_usage(&out, &USAGE);
    CHECK_STR(written(), ",\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":5,\"total_tokens\":25,"
                         "\"prompt_tokens_details\":{\"cached_tokens\":7},"
                         "\"completion_tokens_details\":{\"reasoning_tokens\":3}}");
    reply_json_responses_usage(&out, &USAGE);
    CHECK_STR(written(),
              ",\"usage\":{\"input_tokens\":20,\"input_tokens_details\":{\"cached_tokens\":7},"
              "\"output_tokens\":5,\"output_tokens_details\":{\"reasoning_tokens\":3},\"total_tokens\":25}");
    reply_usage sparse = USAGE;
    sparse.sparse_tokens = 1;
    reply_json_usage(&out, &sparse);
    CHECK(strstr(written(), "{\"cached_tokens\":7,\"sparse_tokens\":1,\"sparse_kept_tokens\":0}") != NULL);
}

static void test_timings(void)
{
    gen_timings t = {.prompt_n = 4,
                     .cache_n = 7,
                     .prompt_ms = 2,
                     .predicted_n = 5,
                     .predicted_ms = 20,
                     .queue_ms = 1.5,
                     .media_ms = 2.25,
                     .vision_ms = 3.125,
                     .ttft_ms = 4.0625,
                     .n_images = 1,
                     .n_videos = 2,
                     .n_media_cached = 3,
                     .draft_n = 9,
                     .draft_accepted_n = 8,
                     .lookup_n = 6,
                     .lookup_accepted_n = 4};
#define REST                                                                                                 \
    "\"cache_n\":7,\"prompt_n\":4,\"prompt_ms\":2.000,\"prompt_per_token_ms\":0.500,\"prompt_per_second\":"  \
    "2000.000,\"predicted_n\":5,\"predicted_ms\":20.000,\"predicted_per_token_ms\":4.000,"                   \
    "\"predicted_per_second\":250.000,\"queue_ms\":1.500,\"media_ms\":2.250,\"vision_ms\":3.125,"            \
    "\"ttft_ms\":4.062,"
#define COUNTS                                                                                               \
    "\"n_images\":1,\"n_videos\":2,\"n_media_cached\":3,\"draft_n\":9,\"draft_n_accepted\":8,"               \
    "\"lookup_n\":6,\"lookup_n_accepted\":4}"
    reply_json_timings(&out, &t);
    CHECK_STR(written(), ",\"timings\":{\"server\":null,\"route\":\"text\"," REST COUNTS);
    t.route = GEN_ROUTE_MEDIA;
    t.server = "gpu";
    t.rule = "long";
    t.sparse_n = 1;
    reply_json_timings(&out, &t);
    CHECK_STR(written(), ",\"timings\":{\"server\":\"gpu\",\"rule\":\"long\",\"route\":\"media\"," REST
                         "\"sparse_n\":1,\"sparse_kept_n\":0," COUNTS);
    reply_json_timings(&out, NULL);
    CHECK_STR(written(), "");
    t = (gen_timings){.prompt_ms = 1, .predicted_ms = -1}; /* nothing is divided by nothing */
    reply_json_timings(&out, &t);
    const char *text = written();
    CHECK(strstr(text, "\"prompt_per_token_ms\":0.000,\"prompt_per_second\":0.000,") != NULL);
    CHECK(strstr(text, "\"predicted_per_token_ms\":0.000,\"predicted_per_second\":0.000,") != NULL);
}

static void test_logprob(void)
{
    reply_json_logprob_head(&out, "a\xff", 2, -0.5);
    CHECK_STR(written(), "{\"token\":\"a\xef\xbf\xbd\",\"logprob\":-0.500000,\"bytes\":[97,255]");
    reply_json_logprob_head(&out, "", 0, (double)-INFINITY);
    CHECK_STR(written(), "{\"token\":\"\",\"logprob\":-9999.000000,\"bytes\":[]");
    reply_json_logprob_head(&out, "b", 1, (double)NAN);
    CHECK_STR(written(), "{\"token\":\"b\",\"logprob\":-9999.000000,\"bytes\":[98]");
}

/* ---- Ollama ---- */

#define TAIL                                                                                                 \
    "\"total_duration\":15500000,\"load_duration\":0,\"prompt_eval_count\":20,\"prompt_eval_duration\":"     \
    "4000000,\"eval_count\":5,\"eval_duration\":8500000}\n"

/* Written, with the time of each line left out. */
static const char *without_times(void)
{
    static char text[4096];
    snprintf(text, sizeof text, "%s", written());
    for (char *at = text; (at = strstr(at, "\"created_at\":"));) {
        char *end = strchr(at, ',');
        CHECK(end && end - at > 30);
        memmove(at, end + 1, strlen(end));
    }
    return text;
}

static void test_ollama(void)
{
    const gen_timings t = {
        .queue_ms = 0.25, .media_ms = 0.75, .vision_ms = 2, .prompt_ms = 4, .predicted_ms = 8.5};
    const reply_usage none = {.prompt_tokens = 20};
    ollama_reply_meta m = {.model = "m"};
    reply_pieces p;
    reply_pieces_init(&p);
    reply_pieces_add(&p, REPLY_REASONING, "hm", 2);
    reply_pieces_add(&p, REPLY_CONTENT, "a", 1);
    reply_pieces_add(&p, REPLY_CALL, "f", 1);
    reply_pieces_add(&p, REPLY_ARGUMENTS, "{\"x\":1}", 7);
    reply_pieces_add(&p, REPLY_CALL_END, "", 0);
    reply_pieces_add(&p, REPLY_CALL, "g", 1);
    reply_pieces_add(&p, REPLY_CALL_END, "", 0);
    reply_pieces_add(&p, REPLY_CONTENT, "b", 1);
    ollama_reply_delta(&out, &m, &p);
    CHECK_STR(without_times(),
              "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"hm\"},"
              "\"done\":false}\n"
              "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"a\"},\"done\":false}\n"
              "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"b\"},\"done\":false}\n");
    ollama_reply_end(&out, &m, &p, false, "tool_calls", &USAGE, &t);
#define CALLS                                                                                                \
    "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1}}},{\"function\":{\"name\":\"g\"," \
    "\"arguments\":{}}}]"
    CHECK_STR(
        without_times(),
        "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"ab\",\"thinking\":\"hm\"," CALLS
        "},\"done\":true,\"done_reason\":\"stop\"," TAIL);
    ollama_reply_end(&out, &m, &p, true, "length", &USAGE, &t);
    CHECK_STR(without_times(), "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"," CALLS
                               "},\"done\":true,\"done_reason\":\"length\"," TAIL);
    reply_pieces_clear(&p);
    reply_pieces_add(&p, REPLY_CONTENT, "a", 1);
    reply_pieces_add(&p, REPLY_CALL, "f", 1); /* cut: no call, whatever of it was there */
    reply_pieces_add(&p, REPLY_ARGUMENTS, "{\"", 2);
    reply_pieces_add(&p, REPLY_CALL_CUT, "", 0);
    reply_pieces_add(&p, REPLY_CALL, "f", 1);
    m.is_generate = true;
    ollama_reply_end(&out, &m, &p, false, "length", &none, &t);
    const char *text = without_times();
    CHECK(strstr(text, "{\"model\":\"m\",\"response\":\"a\",\"done\":true,\"done_reason\":\"load\",") ==
          text);
    reply_pieces_clear(&p);
    reply_pieces_add(&p, REPLY_CALL, "f", 1);
    reply_pieces_add(&p, REPLY_ARGUMENTS, "{}", 2);
    p.n = 2; /* the end is not there, though its place still is */
    ollama_reply_end(&out, &m, &p, false, "stop", &none, &t);
    CHECK(strstr(without_times(),
                 "{\"model\":\"m\",\"response\":\"\",\"done\":true,\"done_reason\":\"stop\","));
    reply_pieces_deinit(&p);
    const api_error e = {.message = "no \"x\""};
    ollama_reply_error_body(&out, &e);
    CHECK_STR(written(), "{\"error\":\"no \\\"x\\\"\"}");
    ollama_reply_error(&out, &e);
    CHECK_STR(written(), "{\"error\":\"no \\\"x\\\"\"}\n");
}

int main(void)
{
    bytes_init(&out, 65536);
    test_usage();
    test_timings();
    test_logprob();
    test_ollama();
    CHECK_DONE();
}
