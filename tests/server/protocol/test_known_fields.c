/* Fields that clients of other servers send: sizes of images and videos, time and tokens that an
 * answer may take, the cache, sparse prefill; in every dialect, and each of them refused when it is
 * wrong. */
#include <math.h>

#include "server/protocol/dialects/chat_request.h"
#include "server/protocol/dialects/completion_request.h"
#include "server/protocol/dialects/messages_request.h"
#include "server/protocol/dialects/responses_request.h"
#include "server/protocol/foreign_fields.h"
#include "tests/check.h"

enum { CHAT, COMPLETION, MESSAGES, RESPONSES, DIALECTS };

/* The least body of each dialect, into which fields go. */
static const char *const BODIES[DIALECTS] = {
    "{%s\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":"
    "\"data:image/png;base64,Zm9v\"}}]}]}",
    "{%s\"prompt\":\"x\"}",
    "{%s\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{"
    "\"type\":"
    "\"base64\",\"media_type\":\"image/png\",\"data\":\"Zm9v\"}}]}]}",
    "{%s\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"image_url\":"
    "\"data:image/png;base64,Zm9v\"}]}]}"};

static err_code parse(api_request *r, int dialect, const char *fields, err_detail *d)
{
    char body[4096];
    completion_prompt prompt;
    const int n = snprintf(body, sizeof body, BODIES[dialect], fields);
    const size_t len = (size_t)n;
    api_request_init(r);
    *d = (err_detail){0};
    switch (dialect) {
    case CHAT:
        return chat_request_parse(r, body, len, NULL, d);
    case COMPLETION:
        return completion_request_parse(r, &prompt, body, len, NULL, d);
    case MESSAGES:
        return messages_request_parse(r, body, len, true, NULL, d);
    default:
        return responses_request_parse(r, body, len, false, NULL, d);
    }
}

static void test_every_dialect(void)
{
    for (int dialect = 0; dialect < DIALECTS; dialect++) {
        api_request r;
        err_detail d;
        CHECK_OK(parse(&r, dialect, "", &d), d);
        CHECK(!r.in->params.no_cache && r.in->params.spec_prefill == -1 && r.reply.timeout_s == 0.0);
        CHECK(isnan(r.in->params.spec_keep) && isnan(r.in->params.spec_backbone));
        api_request_deinit(&r);
        CHECK_OK(
            parse(&r, dialect,
                  "\"use_cache\":false,\"timeout\":2.5,\"specprefill\":true,\"specprefill_keep_pct\":0.25,"
                  "\"specprefill_backbone_pct\":0,\"thinking_token_budget\":77,\"min_pixels\":1024,"
                  "\"max_pixels\":4096,\"video_fps\":0.5,\"video_max_frames\":12,\"min_tokens\":3,",
                  &d),
            d);
        const gen_params *p = &r.in->params;
        CHECK(p->no_cache);
        CHECK_INT(p->min_tokens, 3);
        CHECK_NEAR(r.reply.timeout_s, 2.5, 0);
        CHECK_INT(p->spec_prefill, 1);
        CHECK_NEAR(p->spec_keep, 0.25, 0);
        CHECK_NEAR(p->spec_backbone, 0, 0);
        CHECK_INT(p->think_tokens,
                  dialect == COMPLETION ? -1 : 77); /* a raw prompt has no thoughts to close */
        if (dialect != COMPLETION) {
            CHECK_INT(r.in->messages[0].parts[0].pixels.min, 1024);
            CHECK_INT(r.in->messages[0].parts[0].pixels.max, 4096);
        }
        api_request_deinit(&r);
        CHECK_OK(parse(&r, dialect,
                       "\"parley\":{\"specprefill\":false,\"use_cache\":false},\"timeout\":null,", &d),
                 d);
        CHECK_INT(r.in->params.spec_prefill, 0);
        CHECK_INT(r.in->params.min_tokens, 0);
        CHECK(r.in->params.no_cache);
        api_request_deinit(&r);
        CHECK_OK(parse(&r, dialect, "\"ignore_eos\":true,\"min_tokens\":null,", &d), d);
        CHECK_INT(r.in->params.min_tokens, INT32_MAX);
        api_request_deinit(&r);
    }
}

/* The more particular wins: the body, then media_io_kwargs, then mm_processor_kwargs, then the
 * object with the URL, then the part. */
static void test_sizes(void)
{
    api_request r;
    err_detail d;
    const char body[] =
        "{\"video_fps\":3,\"video_max_frames\":30,\"min_pixels\":10,\"max_pixels\":100,"
        "\"media_io_kwargs\":{\"video\":{\"num_frames\":8,\"fps\":2}},"
        "\"mm_processor_kwargs\":{\"fps\":1,\"max_pixels\":200},\"messages\":[{\"role\":\"user\",\"content\":"
        "["
        "{\"type\":\"video_url\",\"video_url\":{\"url\":\"data:video/mp4;base64,Zm9v\"}},"
        "{\"type\":\"video_url\",\"video_url\":{\"url\":\"data:video/mp4;base64,Zm9v\",\"max_pixels\":300},"
        "\"nframes\":5},"
        "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,Zm9v\",\"min_pixels\":20},"
        "\"min_pixels\":30,\"max_pixels\":400}]}]}";
    api_request_init(&r);
    CHECK_OK(chat_request_parse(&r, body, sizeof body - 1, NULL, &d), d);
    const chat_part *p = r.in->messages[0].parts;
    CHECK_NEAR(p[0].video.fps, 1, 0);
    CHECK_INT(p[0].video.n_frames, 8);
    CHECK_INT(p[0].video.max_frames, 30);
    CHECK_INT(p[0].pixels.min, 10);
    CHECK_INT(p[0].pixels.max, 200);
    CHECK_INT(p[1].pixels.max, 300);
    CHECK_INT(p[1].video.n_frames, 5);
    CHECK_INT(p[2].pixels.min, 30);
    CHECK_INT(p[2].pixels.max, 400);
    api_request_deinit(&r);
}

static void test_errors(void)
{
    static const struct {
        const char *fields, *param;
    } BAD[] = {
        {"\"use_cache\":1,", "use_cache"},
        {"\"timeout\":0,", "timeout"},
        {"\"timeout\":-1,", "timeout"},
        {"\"timeout\":\"5\",", "timeout"},
        {"\"specprefill\":\"on\",", "specprefill"},
        {"\"specprefill_keep_pct\":0,", "specprefill_keep_pct"},
        {"\"specprefill_keep_pct\":1.01,", "specprefill_keep_pct"},
        {"\"specprefill_keep_pct\":30,", "specprefill_keep_pct"},
        {"\"specprefill_keep_pct\":\"0.3\",", "specprefill_keep_pct"},
        {"\"specprefill_backbone_pct\":-0.1,", "specprefill_backbone_pct"},
        {"\"parley\":{\"specprefill\":2},", "specprefill"},
        {"\"thinking_token_budget\":-2,", "thinking_token_budget"},
        {"\"thinking_token_budget\":1.5,", "thinking_token_budget"},
        {"\"video_fps\":0,", "video_fps"},
        {"\"video_max_frames\":0,", "video_max_frames"},
        {"\"video_max_frames\":769,", "video_max_frames"},
        {"\"media_io_kwargs\":{\"video\":{\"pair_tokens\":0}},", "media_io_kwargs.video.pair_tokens"},
        {"\"mm_processor_kwargs\":{\"pair_tokens\":65537},", "mm_processor_kwargs.pair_tokens"},
        {"\"min_tokens\":-1,", "min_tokens"},
        {"\"min_tokens\":1.5,", "min_tokens"},
        {"\"ignore_eos\":1,", "ignore_eos"},
        {"\"min_pixels\":0,", "min_pixels"},
        {"\"max_pixels\":1e12,", "max_pixels"},
        {"\"min_pixels\":9,\"max_pixels\":8,", "min_pixels"},
        {"\"media_io_kwargs\":3,", "media_io_kwargs"},
        {"\"media_io_kwargs\":{\"video\":{\"fps\":-1}},", "media_io_kwargs.video.fps"},
        {"\"mm_processor_kwargs\":{\"max_pixels\":\"big\"},", "mm_processor_kwargs.max_pixels"},
    };
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        for (int dialect = 0; dialect < DIALECTS; dialect++) {
            api_request r;
            err_detail d;
            const bool needs_chat = strstr(BAD[i].fields, "pixels") || strstr(BAD[i].fields, "video") ||
                                    strstr(BAD[i].fields, "thinking") || strstr(BAD[i].fields, "kwargs");
            const err_code err = parse(&r, dialect, BAD[i].fields, &d);
            if (dialect != COMPLETION || !needs_chat) {
                CHECK_INT(err, ERR_INVALID);
                CHECK_STR(d.param, BAD[i].param);
            }
            api_request_deinit(&r);
        }
    }
}

/* Fields without effect: their types and words count all the same, and what asks for something is refused by name. */
static void test_others(void)
{
    static const struct {
        int dialect;
        const char *fields, *param; /* param "": it is taken */
        err_code err;
    } ROWS[] = {
        {CHAT, "\"user\":\"me\",\"safety_identifier\":\"me\",\"id_slot\":1,\"store\":true,", "", ERR_OK},
        {CHAT, "\"user\":1,", "user", ERR_INVALID},
        {CHAT, "\"user\":null,", "", ERR_OK},
        {COMPLETION, "\"store\":1,", "store", ERR_INVALID},
        {CHAT, "\"service_tier\":\"auto\",", "", ERR_OK},
        {RESPONSES, "\"service_tier\":\"priority\",", "", ERR_OK},
        {CHAT, "\"service_tier\":\"aut\",", "service_tier", ERR_INVALID},
        {CHAT, "\"service_tier\":\"\",", "service_tier", ERR_INVALID},
        {CHAT, "\"service_tier\":\"auto default\",", "service_tier", ERR_INVALID},
        {CHAT, "\"service_tier\":\"standard_only\",", "service_tier", ERR_INVALID},
        {MESSAGES, "\"service_tier\":\"standard_only\",", "", ERR_OK},
        {MESSAGES, "\"service_tier\":\"default\",", "service_tier", ERR_INVALID},
        {CHAT, "\"modalities\":[\"text\"],", "", ERR_OK},
        {CHAT, "\"modalities\":[],", "", ERR_OK},
        {CHAT, "\"modalities\":[\"text\",\"audio\"],", "modalities", ERR_INVALID},
        {CHAT, "\"modalities\":[1],", "modalities", ERR_INVALID},
        {CHAT, "\"functions\":[],", "", ERR_OK},
        {CHAT, "\"functions\":[{}],", "functions", ERR_UNSUPPORTED},
        {CHAT, "\"web_search_options\":{},", "web_search_options", ERR_UNSUPPORTED},
        {MESSAGES, "\"container\":\"x\",", "container", ERR_UNSUPPORTED},
        {RESPONSES, "\"truncation\":\"disabled\",", "", ERR_OK},
        {RESPONSES, "\"truncation\":\"never\",", "truncation", ERR_INVALID},
        {RESPONSES, "\"include\":[\"reasoning.encrypted_content\",\"web_search_call.results\"],", "", ERR_OK},
        {RESPONSES, "\"include\":[\"reasoning\"],", "include", ERR_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        api_request r;
        err_detail d;
        CHECK_INT(parse(&r, ROWS[i].dialect, ROWS[i].fields, &d), ROWS[i].err);
        CHECK_STR(d.param, ROWS[i].param);
        api_request_deinit(&r);
    }
}

/* A word of a field may have so many letters, and not one more: that is refused for its length. */
static void test_lengths(void)
{
    static const struct {
        int dialect;
        const char *before, *after;
        size_t most;
    } ROWS[] = {
        {CHAT, "\"reasoning_effort\":\"", "\",", 16},
        {CHAT, "\"model\":\"", "\",", REQUEST_MODEL_NAME_MAX - 1},
        {CHAT, "\"model\":\"/", "\",", REQUEST_MODEL_MAX - 2},
        {MESSAGES, "\"output_config\":{\"effort\":\"", "\"},", 16},
        {RESPONSES, "\"reasoning\":{\"effort\":\"", "\"},", 16},
        {RESPONSES, "\"reasoning\":{\"summary\":\"", "\"},", sizeof(((reply_options *)NULL)->summary) - 1},
        {RESPONSES, "\"reasoning_effort\":\"", "\",", 16},
        {RESPONSES, "\"event_id\":\"", "\",", REQUEST_EVENT_ID_MAX},
        {RESPONSES, "\"stream_id\":\"", "\",", REQUEST_ID_MAX},
        {RESPONSES, "\"previous_response_id\":\"", "\",", REQUEST_ID_MAX},
        {RESPONSES, "\"on_disconnect\":\"", "\",", 16},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        for (size_t more = 0; more < 2; more++) {
            char fields[4000] = "", letters[3000] = "";
            api_request r;
            err_detail d;
            memset(letters, 'x', ROWS[i].most + more);
            snprintf(fields, sizeof fields, "%s%s%s", ROWS[i].before, letters, ROWS[i].after);
            const err_code err = parse(&r, ROWS[i].dialect, fields, &d);
            CHECK(!more || err == ERR_INVALID);
            CHECK_INT(strstr(d.text, "is longer than ") != NULL, more);
            api_request_deinit(&r);
        }
    }
}

/* What other servers know and this one does not: refused by name, but not a value that asks for what
 * happens anyway. */
static void test_foreign(void)
{
    static const char *const REFUSED[] = {"{\"typical_p\":0.9}",
                                          "{\"typical_p\":true,\"mirostat\":2}",
                                          "{\"top_n_sigma\":1}",
                                          "{\"samplers\":[\"top_k\"]}",
                                          "{\"samplers\":\"top_k;min_p\"}",
                                          "{\"guided_choice\":[\"a\"]}",
                                          "{\"grammar\":\"root ::= \\\"a\\\"\"}",
                                          "{\"structured_outputs\":{\"regex\":\"a\"}}",
                                          "{\"stop_token_ids\":[7]}",
                                          "{\"skip_special_tokens\":false}",
                                          "{\"add_generation_prompt\":false}",
                                          "{\"echo\":true}",
                                          "{\"prompt_logprobs\":0}",
                                          "{\"truncate_prompt_tokens\":100}",
                                          "{\"reasoning_format\":\"none\"}",
                                          "{\"reasoning_format\":\"deep\"}",
                                          "{\"function_call\":{\"name\":\"f\"}}"};
    static const char *const TAKEN[] = {
        "{}",
        "{\"typical_p\":1,\"mirostat\":0,\"top_n_sigma\":-1,\"samplers\":[],\"grammar\":\"\",\"bad_words\":"
        "null}",
        "{\"skip_special_tokens\":true,\"echo\":false,\"stop_token_ids\":[],\"lora\":{}}",
        "{\"add_generation_prompt\":false,\"continue_final_message\":true}",
        "{\"reasoning_format\":\"auto\",\"function_call\":\"none\",\"truncate_prompt_tokens\":-1}",
        "{\"dry_base\":1.75,\"repeat_last_n\":64,\"priority\":3}"};
    for (size_t i = 0; i < ARRAY_LEN(REFUSED) + ARRAY_LEN(TAKEN); i++) {
        const bool is_taken = i >= ARRAY_LEN(REFUSED);
        const char *body = is_taken ? TAKEN[i - ARRAY_LEN(REFUSED)] : REFUSED[i];
        err_detail d = {0};
        json_doc *doc = NULL;
        CHECK_OK(json_parse(&doc, body, strlen(body), 8, &d), d);
        CHECK_INT(foreign_fields_check(json_root(doc), false, &d), is_taken ? ERR_OK : ERR_UNSUPPORTED);
        CHECK(is_taken || (d.param[0] && strstr(body, d.param) && strstr(d.text, d.param)));
        json_free(doc);
    }
    err_detail d = {0};
    json_doc *doc = NULL;
    const char completion[] =
        "{\"echo\":true,\"response_format\":{\"type\":\"text\"},\"add_generation_prompt\":false}";
    CHECK_OK(json_parse(&doc, completion, sizeof completion - 1, 8, &d), d);
    CHECK_OK(foreign_fields_check(json_root(doc), true, &d), d);
    json_free(doc);
    const char form[] = "{\"response_format\":{\"type\":\"json_object\"}}";
    CHECK_OK(json_parse(&doc, form, sizeof form - 1, 8, &d), d);
    CHECK_INT(foreign_fields_check(json_root(doc), true, &d), ERR_UNSUPPORTED);
    CHECK_OK(foreign_fields_check(json_root(doc), false, &d), d);
    json_free(doc);
}

int main(void)
{
    test_others();
    test_lengths();
    test_foreign();
    test_every_dialect();
    test_sizes();
    test_errors();
    CHECK_DONE();
}
