/* reply_json, ollama_reply: figures as every dialect writes them, from made-up ones; odd answers as each says them; what comes of
 * conversations whose keeper fails. */
#include "server/protocol/reply_json.h"

#include "server/protocol/dialects/chat_reply.h"
#include "server/protocol/dialects/completion_reply.h"
#include "server/protocol/dialects/messages_reply.h"
#include "server/protocol/dialects/ollama_reply.h"
#include "server/protocol/dialects/responses_reply.h"
#include "server/protocol/dialects/talks.h"
#include "server/protocol/dialects/vectors.h"
#include "tests/check.h"
#include "tests/recorded.h"

static const reply_usage USAGE = {
    .prompt_tokens = 20, .cached_tokens = 7, .completion_tokens = 5, .reasoning_tokens = 3};

static bytes out;

/* What was written since the last time. */
static const char *written(void)
{
    static char text[1 << 16];
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
    static char text[1 << 16];
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

/* ---- odd answers, as each dialect says them ---- */

#define RUN(id, status)                                                                                      \
    "{\"id\":\"" id "\",\"type\":\"mcp_call\",\"status\":\"" status                                          \
    "\",\"server_label\":\"s\",\"name\":\"n\","                                                              \
    "\"arguments\":\"{\\\"a\\\":1}\",\"output\":\"o\",\"error\":null}"

typedef struct told {
    reply_kind kind;
    const char *text;
} told;

/* Each list is an answer; {0, NULL} ends it. */
static const told ANSWERS[][14] = {
    {{REPLY_CONTENT, "words"}},
    {{REPLY_REASONING, "why"}},
    {{REPLY_CONTENT, "a"}, {REPLY_CONTENT, "b"}, {REPLY_CONTENT, "c"}, {REPLY_CONTENT, "d"}},
    {{REPLY_REASONING, "why"}, {REPLY_CONTENT, "a"}, {REPLY_BLANK, " "}, {REPLY_CONTENT, "b"}},
    {{REPLY_CONTENT, "a"}, {REPLY_CALL, "f"}, {REPLY_CALL_END, ""}, {REPLY_CONTENT, "b"}},
    {{REPLY_CALL, "f"},
     {REPLY_ARGUMENTS, "{\"a\":1}"},
     {REPLY_CALL_END, ""},
     {REPLY_CALL, "g"},
     {REPLY_ARGUMENTS, "[1]"},
     {REPLY_CALL_END, ""},
     {REPLY_CALL_END, ""},
     {REPLY_CALL, "h"}},
    {{REPLY_CALL, "f"}, {REPLY_ARGUMENTS, "{\"a\":"}, {REPLY_CALL_CUT, ""}, {REPLY_ARGUMENTS, "late"}},
    {{REPLY_ITEM, "{\"id\":\"l\",\"type\":\"mcp_list_tools\",\"tools\":[]}"},
     {REPLY_CONTENT, "a"},
     {REPLY_ITEM, RUN("r1", "in_progress")},
     {REPLY_ITEM, RUN("r1", "in_progress")},
     {REPLY_ITEM, RUN("r1", "completed")},
     {REPLY_ITEM, RUN("r2", "failed")},
     {REPLY_CONTENT, "b"},
     {REPLY_ITEM, "{\"id\":\"q\",\"type\":\"mcp_approval_request\"}"}},
    {{REPLY_REASONING, "why"},
     {REPLY_ITEM, "no JSON \"type\":\"mcp_call\""},
     {REPLY_ITEM, RUN("r3", "completed")},
     {REPLY_CALL, "f"}},
    {{REPLY_ITEM, RUN("r4", "completed")},
     {REPLY_ITEM, "{\"id\":\"l\",\"type\":\"mcp_list_tools\",\"status\":\"in_progress\"}"},
     {REPLY_CALL, "f"}, /* whose end is missing */
     {REPLY_CALL, "g"},
     {REPLY_CALL_END, ""}},
};

static void gather(reply_pieces *pieces, const told *answer, bool one_by_one, size_t which)
{
    for (size_t i = 0; answer[i].text; i++) {
        if (!one_by_one || i == which) {
            reply_pieces_add(pieces, answer[i].kind, answer[i].text, strlen(answer[i].text));
        }
    }
}

/* Appends a text with # for random ids and @ for times. */
static void append_steady(bytes *to, const char *text)
{
    for (const char *p = text; *p;) {
        const size_t n = strspn(p, "0123456789abcdef"), digits = strspn(p, "0123456789");
        const bool is_id = n >= 32, is_time = digits == 10 && n == 10;
        bytes_append(to, is_id ? "#" : is_time ? "@" : p, is_id || is_time ? 1 : n > 0 ? n : 1);
        p += is_id ? 32 : n > 0 ? n : 1;
    }
    bytes_append_char(to, '\n');
}

static void tell_chat(bytes *record, const told *answer)
{
    static const char *const FIELDS[] = {NULL, "content", "reasoning", "both"};
    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
        const chat_reply_meta m = {
            .id = "c", .created = 1, .model = "m", .fingerprint = "p", .reasoning_field = FIELDS[i]};
        reply_pieces pieces;
        chat_reply_state state = {0};
        reply_pieces_init(&pieces);
        gather(&pieces, answer, false, 0);
        chat_reply_choice_whole(&out, &m,
                                &(chat_reply_choice){&pieces, i ? "{\"token\":\"t\"}" : NULL, "stop"});
        append_steady(record, written());
        if (i == 0) {
            bool sent = chat_reply_delta(&out, &m, &state, &pieces, "{\"token\":\"t\"}", NULL);
            append_steady(record, written());
            sent = chat_reply_delta(&out, &m, &state, &pieces, NULL, NULL) && sent; /* more of the same */
            append_steady(record, written());
            bytes_printf(record, "logprobs were sent %d, calls %d\n", sent, state.n_calls);
        }
        reply_pieces_deinit(&pieces);
    }
}

/* Tokens of more than a byte, alternatives, the prompt's first token. */
static void tell_completion(bytes *record, const told *answer)
{
    static const char ENTRIES[] = "{\"token\":\"x\",\"logprob\":null,\"bytes\":null,\"top_logprobs\":[]},{"
                                  "\"token\":\"\u00e9\",\"logprob\":-0.5,\"bytes\":["
                                  "195,169],\"top_logprobs\":[{\"token\":\"a\",\"logprob\":-1},{\"token\":"
                                  "\"b\",\"logprob\":-2}]},{\"token\":\"\",\"logprob\":"
                                  "-0.25,\"bytes\":[130,\"odd\",256,97],\"top_logprobs\":[]},{\"token\":"
                                  "\"y\",\"logprob\":-3,\"bytes\":[121],\"top_logprobs\":[]}";
    const chat_reply_meta m = {.id = "c", .created = 1, .model = "m", .fingerprint = "p"};
    reply_pieces pieces;
    reply_pieces_init(&pieces);
    gather(&pieces, answer, false, 0);
    for (int i = 0; i < 2; i++) {
        completion_reply_choice_whole(&out, &m, &(chat_reply_choice){&pieces, i ? ENTRIES : NULL, "stop"});
        append_steady(record, written());
        completion_reply_delta(&out, &m, &pieces, i ? ENTRIES : NULL, NULL);
        append_steady(record, written());
    }
    reply_pieces_deinit(&pieces);
}

static void tell_messages(bytes *record, const told *answer)
{
    const messages_reply_meta m = {
        .id = "msg_1", .model = "m", .stop_reason = "end_turn", .usage = USAGE, .edits = ""};
    reply_pieces pieces;
    messages_reply_state state = {0};
    reply_pieces_init(&pieces);
    gather(&pieces, answer, false, 0);
    messages_reply_whole(&out, &m, &pieces);
    append_steady(record, written());
    for (size_t i = 0; answer[i].text; i++) {
        reply_pieces_clear(&pieces);
        gather(&pieces, answer, true, i);
        messages_reply_delta(&out, &m, &state, &pieces);
    }
    messages_reply_last(&out, &m, &state);
    append_steady(record, written());
    reply_pieces_deinit(&pieces);
}

static void tell_events(bytes *record, const responses_reply *r)
{
    event_view view;
    for (int64_t i = 0; event_log_read(&r->log, i, &view) == EVENT_LOG_EVENT; i++) {
        bytes_append(&out, view.text, view.len);
        append_steady(record, written());
    }
    responses_reply_append_output(&out, r);
    append_steady(record, written());
    bytes_printf(record, "lost %d\n", r->has_lost);
}

/* order: what else happens, in which order. */
static void tell_response(bytes *record, const told *answer, int order, response_status status)
{
    const reply_options opt = {.n_choices = 1, .logprobs = true};
    api_error e;
    api_error_set(&e, 500, order == 1 ? "c" : NULL, order == 2 ? "p" : NULL, "it broke");
    const response_result result = {.status = status,
                                    .error = status == RESPONSE_FAILED ? &e : NULL,
                                    .is_filtered = order == 1,
                                    .usage = USAGE};
    responses_reply r;
    reply_pieces pieces;
    bytes logprobs = bytes_empty(1000);
    reply_pieces_init(&pieces);
    responses_reply_init(&r, &opt, "m", 1 << 20);
    if (order > 0) {
        responses_reply_created(&r);
        responses_reply_queued(&r, 3);
        responses_reply_queued(&r, 2);
        responses_reply_in_progress(&r);
        responses_reply_queued(&r, 1);
        responses_reply_in_progress(&r);
    }
    for (size_t i = 0; answer[i].text; i++) {
        reply_pieces_clear(&pieces);
        gather(&pieces, answer, true, i);
        bytes_append_str(&logprobs, i % 2 ? "" : "{\"token\":\"t\"}");
        responses_reply_delta(&r, &pieces, &logprobs);
    }
    if (order > 1) {
        responses_reply_close(&r, status);
    }
    for (int i = 0; i < 2; i++) { /* what comes behind the end is nothing */
        responses_reply_finish(&r, &result);
        responses_reply_queued(&r, 1);
        responses_reply_in_progress(&r);
        responses_reply_close(&r, status);
        responses_reply_delta(&r, &pieces, &logprobs);
    }
    tell_events(record, &r);
    reply_pieces_deinit(&pieces);
    responses_reply_deinit(&r);
    bytes_deinit(&logprobs);
}

static void test_answers(void)
{
    static const response_status ENDS[] = {RESPONSE_COMPLETED, RESPONSE_INCOMPLETE, RESPONSE_CANCELLED};
    bytes record = bytes_empty(1 << 22);
    for (size_t i = 0; i <= ARRAY_LEN(ANSWERS); i++) {
        static const told NOTHING[] = {{0, NULL}};
        const told *answer = i < ARRAY_LEN(ANSWERS) ? ANSWERS[i] : NOTHING;
        bytes_printf(&record, "---- answer %zu\n", i);
        tell_chat(&record, answer);
        tell_completion(&record, answer);
        tell_messages(&record, answer);
        for (int k = 0; k < 3; k++) {
            tell_response(&record, answer, k, ENDS[k]);
        }
        tell_response(&record, answer, 2, RESPONSE_COMPLETED);
        for (int k = 0; k < (i ? 1 : 3); k++) {
            tell_response(&record, answer, k, RESPONSE_FAILED);
        }
    }
    recorded_check("server/protocol/odd_answers.txt", bytes_str(&record));
    bytes_deinit(&record);
}

/* ---- conversations, whatever keeps them fails ---- */

typedef enum step { NO_STEP, GET, PUT, ADD, REMOVE, STEPS } step;

static struct {
    step fails;
    bytes kept, steps;
} keeper;

static err_code take_step(step now, const char *id, const bytes *text, err_detail *d)
{
    static const char *const NAMES[] = {"", "get", "put", "add", "remove"};
    bytes_printf(&keeper.steps, "  %s %s %s\n", NAMES[now], id, text ? bytes_str((bytes *)text) : "");
    return keeper.fails == now ? err_set(d, ERR_IO, "the disk is gone") : ERR_OK;
}

static err_code get_kept(void *ctx, uint64_t scope, const char *id, bytes *text, err_detail *d)
{
    CHECK(ctx == &keeper && scope == 7);
    const err_code err = take_step(GET, id, NULL, d);
    bytes_append(text, keeper.kept.data, err ? 0 : keeper.kept.len);
    return err;
}

static err_code put_kept(void *ctx, uint64_t scope, const char *id, const bytes *text, err_detail *d)
{
    CHECK(ctx == &keeper && scope == 7);
    return take_step(PUT, id, text, d);
}

static err_code add_kept(void *ctx, uint64_t scope, const char *id, const bytes *items, err_detail *d)
{
    CHECK(ctx == &keeper && scope == 7);
    return take_step(ADD, id, items, d);
}

static err_code remove_kept(void *ctx, uint64_t scope, const char *id, err_detail *d)
{
    CHECK(ctx == &keeper && scope == 7);
    return take_step(REMOVE, id, NULL, d);
}

static void tell_talk(bytes *record, talk_verb verb, const char *id, const char *item, const char *body)
{
    static const char *const VERBS[] = {"create", "get",      "update",      "delete", "list",
                                        "add",    "get item", "delete item", "extend"};
    const talk_keeper k = {
        .ctx = &keeper, .get = get_kept, .put = put_kept, .add = add_kept, .remove = remove_kept};
    talk_order o = {.verb = verb, .scope = 7, .page = {.limit = 2}, .body = bytes_empty(1000)};
    err_detail d = {0};
    snprintf(o.id, sizeof o.id, "%s", id);
    snprintf(o.item, sizeof o.item, "%s", item);
    snprintf(o.after, sizeof o.after, "%s", verb == TALK_LIST ? item : "");
    bytes_append_str(&o.body, body);
    bytes_clear(&keeper.steps);
    const err_code err = talk_run(&o, &k, &out, &d);
    bytes_printf(record, "%s %s %s %s: %s %s %s\n", VERBS[verb], id, item, body, err_name(err), d.param,
                 d.text);
    append_steady(record, bytes_str(&keeper.steps));
    const char *reply = written();
    append_steady(record, err == ERR_OK ? reply : "");
    talk_order_deinit(&o);
}

static void test_talks(void)
{
    static const char KEPT[] =
        "{\"created_at\":5,\"metadata\":{\"a\":\"b\"}},{\"id\":\"i1\",\"role\":\"user\",\"content\":\"q\"},"
        "{\"id\":\"i2\",\"role\":\"assistant\",\"content\":\"r\"},{\"id\":\"i3\",\"type\":\"reasoning\"}";
    static const char *const BODIES[] = {"{}",
                                         "[]",
                                         "{",
                                         "{\"items\":[]}",
                                         "{\"items\":[{\"role\":\"user\",\"content\":\"s\"}]}",
                                         "{\"items\":[{\"role\":\"user\",\"content\":\"s\"},5,6]}",
                                         "{\"items\":[{\"type\":\"odd\"},5]}",
                                         "{\"metadata\":{\"k\":\"v\"}}",
                                         "{\"metadata\":5}",
                                         "{\"metadata\":{},\"items\":5}"};
    bytes record = bytes_empty(1 << 20);
    keeper.kept = keeper.steps = bytes_empty(1 << 16);
    bytes_append_str(&keeper.kept, KEPT);
    for (step fails = NO_STEP; fails < STEPS; fails++) {
        keeper.fails = fails;
        bytes_printf(&record, "---- failing: %d\n", (int)fails);
        for (size_t i = 0; i < (fails ? 5 : ARRAY_LEN(BODIES)); i++) {
            const size_t which = fails && i == 0 ? 7 : i;
            tell_talk(&record, TALK_CREATE, "", "", BODIES[which]);
            tell_talk(&record, TALK_UPDATE, "conv_1", "", BODIES[which]);
            tell_talk(&record, TALK_ADD, "conv_1", "", BODIES[which]);
        }
        for (int k = 0; k < 2; k++) {
            const char *id = k ? "other" : "conv_1";
            static const char *const ITEMS[] = {"", "i1", "i3", "none"};
            tell_talk(&record, TALK_GET, id, "", "");
            tell_talk(&record, TALK_DELETE, id, "", "");
            tell_talk(&record, TALK_EXTEND, id, "", "{\"id\":\"n\"}");
            for (size_t i = 0; i < (k || fails ? 2 : ARRAY_LEN(ITEMS)); i++) {
                tell_talk(&record, TALK_LIST, id, ITEMS[i], "");
                tell_talk(&record, TALK_GET_ITEM, id, ITEMS[i], "");
                tell_talk(&record, TALK_DELETE_ITEM, id, ITEMS[i], "");
            }
        }
    }
    bytes_clear(&keeper.kept); /* nothing is in it, not even its head */
    keeper.fails = NO_STEP;
    tell_talk(&record, TALK_GET, "conv_1", "", "");
    tell_talk(&record, TALK_LIST, "conv_1", "", "");
    tell_talk(&record, TALK_UPDATE, "conv_1", "", BODIES[7]);
    recorded_check("server/protocol/talk_steps.txt", bytes_str(&record));
    bytes_deinit(&record);
    bytes_deinit(&keeper.kept);
    bytes_deinit(&keeper.steps);
}

/* An error of each status as each dialect says it, with a code and a field, and without. */
static void test_errors(void)
{
    static const int STATUSES[] = {400, 401, 403, 404, 405, 408, 409, 411, 413, 415, 422,
                                   429, 431, 499, 500, 501, 502, 503, 504, 505, 507, 599};
    static void (*const WRITERS[])(bytes *, const api_error *) = {
        api_error_write_body, messages_reply_error_body, ollama_reply_error_body};
    bytes record = bytes_empty(1 << 16);
    for (size_t i = 0; i < ARRAY_LEN(STATUSES); i++) {
        for (int bare = 0; bare < 2; bare++) {
            api_error e;
            api_error_set(&e, STATUSES[i], bare ? NULL : "c", bare ? NULL : "p", "it broke");
            bytes_printf(&record, "%d, again after %d s\n", e.status, e.retry_after_s);
            for (size_t k = 0; k < ARRAY_LEN(WRITERS); k++) {
                WRITERS[k](&out, &e);
                bytes_printf(&record, "  %s\n", written());
            }
        }
    }
    recorded_check("server/protocol/errors.txt", bytes_str(&record));
    bytes_deinit(&record);
}

/* ---- vectors and ranks ---- */

static void test_vectors(void)
{
    static const float VALUES[] = {3, 0, 4, 0, 0, 0, 0.001f, -2, 2}, SCORES[] = {0.5f, 0.9f, 0.5f, -1, 0.9f};
    static const int32_t DIMS[] = {0, 1, 2, 3, 4};
    static char texts[] = "[\"a\",\"b\",\"c\",\"d\",\"e\"]";
    bytes record = bytes_empty(1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(DIMS); i++) {
        for (int way = 0; way < 4; way++) {
            const reply_options opt = {.n_dims = DIMS[i], .is_base64 = way == 1, .is_plain = way == 3};
            const vectors_meta m = {.id = "v",
                                    .model = "m",
                                    .pooling = "last",
                                    .is_embedder = i % 2 == 0,
                                    .opt = &opt,
                                    .usage = USAGE,
                                    .values = VALUES,
                                    .n = 3,
                                    .size = 3};
            (way < 2 ? embedding_reply_write : ollama_embedding_write)(&out, &m);
            bytes_printf(&record, "%d numbers: %s\n", DIMS[i], written());
        }
        for (int has_texts = 0; has_texts < 2; has_texts++) {
            const reply_options opt = {.n_top = DIMS[i] * 2, .fields = has_texts ? texts : NULL};
            const vectors_meta m = {.id = "v",
                                    .model = "m",
                                    .opt = &opt,
                                    .usage = USAGE,
                                    .values = SCORES,
                                    .n = ARRAY_LEN(SCORES),
                                    .size = 1};
            rerank_reply_write(&out, &m);
            bytes_printf(&record, "the best %d: %s\n", opt.n_top, written());
        }
    }
    recorded_check("server/protocol/vectors.txt", bytes_str(&record));
    bytes_deinit(&record);
}

int main(void)
{
    bytes_init(&out, 65536);
    test_usage();
    test_timings();
    test_logprob();
    test_ollama();
    test_answers();
    test_talks();
    test_errors();
    test_vectors();
    CHECK_DONE();
}
