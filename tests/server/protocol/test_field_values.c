/* Every field of every dialect with values of each type, and on both sides of each bound that its errors tell: what a
 * request becomes, or the error with its place, as one recorded text. */
#include <math.h>

#include "server/protocol/dialects/chat_request.h"
#include "server/protocol/dialects/completion_request.h"
#include "server/protocol/dialects/messages_request.h"
#include "server/protocol/dialects/ollama_request.h"
#include "server/protocol/dialects/responses_request.h"
#include "server/protocol/dialects/vectors.h"
#include "tests/recorded.h"

enum { CHAT, COMPLETION, MESSAGES, RESPONSES, COMPACT, OLLAMA, GENERATE, EMBEDDING, RERANK, DIALECTS };

#define IMAGE "data:image/png;base64,Zm9v"
#define VIDEO "{\"type\":\"video_url\",\"video_url\":{\"url\":\"data:video/mp4;base64,Zm9v\"}}"

/* The least body of each, into which a field goes. */
static const struct {
    const char *name, *body;
} ROWS[DIALECTS] = {
    {"chat", "{%s\"messages\":[{\"role\":\"user\",\"content\":[" VIDEO
             "]},{\"role\":\"assistant\",\"content\":\"a\"}]}"},
    {"completion", "{%s\"prompt\":\"x\"}"},
    {"messages",
     "{%s\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{"
     "\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"Zm9v\"}}]}]}"},
    {"responses",
     "{%s\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"image_url\":\"" IMAGE
     "\"}]},{\"role\":\"assistant\",\"content\":\"a\"}]}"},
    {"compact", "{%s\"model\":\"m\",\"input\":\"x\"}"},
    {"ollama", "{%s\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}"},
    {"generate", "{%s\"prompt\":\"x\"}"},
    {"embedding", "{%s\"input\":\"x\"}"},
    {"rerank", "{%s\"query\":\"x\",\"documents\":[\"a\",\"b\"]}"}};

/* A dot: of an object. */
static const char *const FIELDS[] = {"temperature",
                                     "top_p",
                                     "min_p",
                                     "top_k",
                                     "presence_penalty",
                                     "frequency_penalty",
                                     "repetition_penalty",
                                     "repeat_penalty",
                                     "seed",
                                     "logit_bias",
                                     "logit_bias.99",
                                     "logit_bias.100",
                                     "mtp",
                                     "prompt_lookup",
                                     "use_cache",
                                     "cache_prompt",
                                     "specprefill",
                                     "specprefill_keep_pct",
                                     "specprefill_backbone_pct",
                                     "parley",
                                     "parley.mtp",
                                     "parley.specprefill",
                                     "timeout",
                                     "min_tokens",
                                     "ignore_eos",
                                     "max_tokens",
                                     "max_completion_tokens",
                                     "max_output_tokens",
                                     "n_predict",
                                     "stop",
                                     "stop_sequences",
                                     "stream",
                                     "stream_options",
                                     "stream_options.include_usage",
                                     "return_progress",
                                     "timings_per_token",
                                     "model",
                                     "n",
                                     "best_of",
                                     "logprobs",
                                     "top_logprobs",
                                     "echo",
                                     "suffix",
                                     "store",
                                     "background",
                                     "thinking_token_budget",
                                     "thinking_budget_tokens",
                                     "enable_thinking",
                                     "reasoning_effort",
                                     "reasoning",
                                     "reasoning.effort",
                                     "reasoning.summary",
                                     "thinking",
                                     "thinking.budget_tokens",
                                     "output_config",
                                     "output_config.effort",
                                     "chat_template_kwargs",
                                     "chat_template_kwargs.enable_thinking",
                                     "min_pixels",
                                     "max_pixels",
                                     "video_fps",
                                     "video_max_frames",
                                     "pair_tokens",
                                     "fps",
                                     "media_io_kwargs",
                                     "media_io_kwargs.video",
                                     "mm_processor_kwargs",
                                     "mm_processor_kwargs.fps",
                                     "mm_processor_kwargs.num_frames",
                                     "mm_processor_kwargs.do_sample_frames",
                                     "continue_final_message",
                                     "parallel_tool_calls",
                                     "tool_choice",
                                     "tools",
                                     "disable_parallel_tool_use",
                                     "max_tool_calls",
                                     "response_format",
                                     "text",
                                     "format",
                                     "thread",
                                     "context_management",
                                     "previous_response_id",
                                     "conversation",
                                     "instructions",
                                     "stream_id",
                                     "event_id",
                                     "on_disconnect",
                                     "metadata",
                                     "truncation",
                                     "include",
                                     "think",
                                     "raw",
                                     "template",
                                     "context",
                                     "images",
                                     "system",
                                     "options",
                                     "options.num_predict",
                                     "options.stop",
                                     "options.temperature",
                                     "keep_alive",
                                     "encoding_format",
                                     "dimensions",
                                     "truncate",
                                     "top_n",
                                     "return_documents",
                                     "instruction",
                                     "user",
                                     "safety_identifier",
                                     "prompt_cache_key",
                                     "prompt_cache_options",
                                     "prompt_cache_options.mode",
                                     "prompt_cache_options.ttl",
                                     "prompt_cache_options.prewarm",
                                     "prompt_cache_options.comparison_response_id",
                                     "prompt_cache_retention",
                                     "service_tier",
                                     "container",
                                     "id_slot",
                                     "modalities",
                                     "functions",
                                     "web_search_options",
                                     "prompt"};

static const char *const VALUES[] = {"null",       "true",
                                     "false",      "0",
                                     "1",          "2",
                                     "-1",         "0.5",
                                     "3000000000", "1e300",
                                     "\"\"",       "\"x\"",
                                     "\"none\"",   "\"auto\"",
                                     "\"high\"",   "\"text\"",
                                     "[]",         "[1]",
                                     "[\"x\"]",    "{}",
                                     "{\"x\":1}",  "{\"type\":\"text\"}"};
static const engine_info SMALL = {.n_ctx = 4096,
                                  .n_vocab = 100,
                                  .n_embd = 8,
                                  .max_images = 2,
                                  .has_vision = true,
                                  .has_video = true,
                                  .has_template = true,
                                  .has_thinking = true};

static err_code parse(api_request *r, completion_prompt *prompt, int dialect, const char *body, err_detail *d)
{
    const size_t len = strlen(body);
    switch (dialect) {
    case CHAT:
        return chat_request_parse(r, body, len, &SMALL, d);
    case COMPLETION:
        return completion_request_parse(r, prompt, body, len, &SMALL, d);
    case MESSAGES:
        return messages_request_parse(r, body, len, true, &SMALL, d);
    case RESPONSES:
        return responses_request_parse(r, body, len, false, &SMALL, d);
    case COMPACT:
        return responses_compact_parse(r, body, len, &SMALL, d);
    case OLLAMA:
    case GENERATE:
        return ollama_request_parse(r, body, len, dialect == GENERATE, &SMALL, d);
    case EMBEDDING:
        return embedding_request_parse(r, prompt, body, len, &SMALL, d);
    default:
        return rerank_request_parse(r, prompt, body, len, &SMALL, d);
    }
}

/* ---- what a request is, a word for each thing ---- */

static void put(bytes *out, const char *name, double value)
{
    if (!isnan(value)) {
        bytes_printf(out, " %s=%.9g", name, value);
    }
}

static void put_params(bytes *out, const gen_params *p)
{
    const struct {
        const char *name;
        double value;
    } ALL[] = {{"temperature", (double)p->temperature},
               {"top_p", (double)p->top_p},
               {"min_p", (double)p->min_p},
               {"top_k", p->top_k},
               {"repetition", (double)p->repetition_penalty},
               {"presence", (double)p->presence_penalty},
               {"frequency", (double)p->frequency_penalty},
               {"has_seed", p->has_seed},
               {"seed", (double)p->seed},
               {"max_tokens", p->max_tokens},
               {"min_tokens", p->min_tokens},
               {"logprobs", p->n_top_logprobs},
               {"choices", p->n_choices},
               {"think", p->think_tokens},
               {"sparse", p->spec_prefill},
               {"keep", (double)p->spec_keep},
               {"backbone", (double)p->spec_backbone},
               {"biases", (double)p->n_biases},
               {"scores", p->scores_prompt},
               {"no_draft", p->no_draft},
               {"no_lookup", p->no_lookup},
               {"no_cache", p->no_cache}};
    for (size_t i = 0; i < ARRAY_LEN(ALL); i++) {
        put(out, ALL[i].name, ALL[i].value);
    }
    for (size_t i = 0; i < p->n_biases; i++) {
        bytes_printf(out, " bias=%d:%.9g", p->biases[i].id, (double)p->biases[i].bias);
    }
}

static void put_reply(bytes *out, const reply_options *o)
{
    const struct {
        const char *name;
        double value;
    } ALL[] = {{"stream", o->stream},
               {"usage", o->include_usage},
               {"progress", o->return_progress},
               {"timings", o->timings_per_token},
               {"logprobs", o->logprobs},
               {"n", o->n_choices},
               {"store", o->store},
               {"store_given", o->store_given},
               {"cancels", o->cancel_on_disconnect},
               {"goes_on", o->keep_on_disconnect},
               {"echoes", (double)o->n_echoes},
               {"scores", o->scores_prompt},
               {"tool_calls", o->max_tool_calls},
               {"dims", o->n_dims},
               {"top", o->n_top},
               {"base64", o->is_base64},
               {"plain", o->is_plain},
               {"background", o->background},
               {"encrypts", o->encrypts},
               {"timeout", o->timeout_s},
               {"one_call", o->one_call}};
    for (size_t i = 0; i < ARRAY_LEN(ALL); i++) {
        put(out, ALL[i].name, ALL[i].value);
    }
    bytes_printf(out, " model=%s lane=%s event=%s conversation=%s summary=%s", o->model, o->stream_id,
                 o->event_id, o->conversation, o->summary);
    for (size_t i = 0; i < o->n_stops; i++) {
        bytes_printf(out, " stop=%s", o->stops[i]);
    }
}

static void put_media(bytes *out, const chat_message *m)
{
    const chat_part *p = m->parts;
    const struct {
        const char *name;
        double value;
    } ALL[] = {{"fps", p->video.fps},
               {"frames", p->video.n_frames},
               {"min_frames", p->video.min_frames},
               {"max_frames", p->video.max_frames},
               {"pair", p->video.pair_tokens},
               {"start", p->video.start_s},
               {"end", p->video.end_s},
               {"min_pixels", (double)p->pixels.min},
               {"max_pixels", (double)p->pixels.max}};
    for (size_t i = 0; i < ARRAY_LEN(ALL); i++) {
        put(out, ALL[i].name, ALL[i].value);
    }
}

static void put_request(bytes *out, const api_request *r, const completion_prompt *prompt)
{
    const chat_input *in = r->in;
    put_params(out, &in->params);
    put_reply(out, &r->reply);
    bytes_printf(out, " forces=%d drops=%d edits=%d,%zu compact_at=%d budget=%d", r->forces_calls,
                 r->drops_oldest, r->asks_edits, r->n_edits, (int)r->compact_at, r->gives_budget);
    bytes_printf(out, " messages=%zu continues=%d form=%d tools=%zu kwargs=", in->n_messages, in->continues,
                 in->form != NULL, json_len(in->tools));
    json_write(out, in->template_kwargs);
    if (in->n_messages > 0 && in->messages[0].n_parts > 0) {
        put_media(out, &in->messages[0]);
    }
    for (const completion_prompt *p = in->n_messages ? NULL : prompt; p; p = p->next) {
        bytes_printf(out, " prompt=%s,%zu", p->text ? p->text : "-", p->n_ids);
    }
}

/* Only the words that the request without the field has not. */
static void put_news(bytes *out, const char *now, const char *before)
{
    for (const char *p = now + 1; *p;) {
        const size_t n = strcspn(p, " ");
        char word[600];
        snprintf(word, sizeof word, " %.*s ", (int)n, p);
        if (!strstr(before, word)) {
            bytes_printf(out, " %.*s", (int)n, p);
        }
        p += n + (p[n] == ' ');
    }
}

static char usual[4096]; /* what the least body of a dialect becomes */

static void tell(bytes *out, int dialect, const char *field, const char *value)
{
    api_request r;
    completion_prompt prompt = {0};
    err_detail d = {0};
    bytes given = bytes_empty(4096), body = bytes_empty(8192), now = bytes_empty(8192);
    const char *dot = strchr(field, '.');
    if (dot) {
        bytes_printf(&given, "\"%.*s\":{\"%s\":%s},", (int)(dot - field), field, dot + 1, value);
    } else if (field[0]) {
        bytes_printf(&given, "\"%s\":%s,", field, value);
    }
    const char *mark = strstr(ROWS[dialect].body, "%s");
    bytes_printf(&body, "%.*s%s%s", (int)(mark - ROWS[dialect].body), ROWS[dialect].body, bytes_str(&given),
                 mark + 2);
    api_request_init(&r);
    const err_code err = parse(&r, &prompt, dialect, bytes_str(&body), &d);
    if (err != ERR_OK) {
        bytes_printf(out, " %s %s at %s: %s", err_name(err), d.name, d.param, d.text);
    } else {
        put_request(&now, &r, &prompt);
        bytes_append_char(&now, ' ');
        if (field[0]) {
            put_news(out, bytes_str(&now), usual);
        } else {
            bytes_append(out, now.data, now.len);
        }
    }
    api_request_deinit(&r);
    bytes_deinit(&given);
    bytes_deinit(&body);
    bytes_deinit(&now);
}

/* ---- the table ---- */

enum { CASES = 64, CASE = 40 };

static size_t n_cases;
static char cases[CASES][CASE];
static bytes outcomes[CASES];

static void try_value(int dialect, const char *field, const char *value)
{
    for (size_t i = 0; i < n_cases; i++) {
        if (strcmp(cases[i], value) == 0) {
            return;
        }
    }
    CHECK(n_cases < CASES);
    snprintf(cases[n_cases], CASE, "%s", value);
    outcomes[n_cases] = bytes_empty(8192);
    tell(&outcomes[n_cases++], dialect, field, value);
}

/* Both sides of the numbers that an error says. */
static void try_bounds(int dialect, const char *field, const char *said)
{
    static const double STEPS[] = {-1, -0.01, 0, 0.01, 1};
    double bounds[2] = {0, 0};
    const char *from = strstr(said, " from ");
    const int n = from ? sscanf(from, " from %lf to %lf", &bounds[0], &bounds[1]) : 0;
    for (int i = 0; i < n; i++) {
        for (size_t k = 0; k < ARRAY_LEN(STEPS); k++) {
            char value[CASE];
            snprintf(value, sizeof value, "%.15g", bounds[i] + STEPS[k]);
            try_value(dialect, field, value);
        }
    }
}

/* A line for each outcome, with the values of which it came. Of what is read nowhere, and so changes nothing, there is none. */
static void put_field(bytes *out, int dialect, const char *field)
{
    n_cases = 0;
    for (size_t i = 0; i < ARRAY_LEN(VALUES); i++) {
        try_value(dialect, field, VALUES[i]);
        try_bounds(dialect, field, bytes_str(&outcomes[n_cases - 1]));
    }
    bool changes = false;
    for (size_t i = 0; i < n_cases; i++) {
        changes = changes || outcomes[i].len > 0;
    }
    if (changes) {
        bytes_printf(out, "%s %s\n", ROWS[dialect].name, field);
    }
    for (size_t i = 0; i < n_cases; i++) {
        if (!changes || !cases[i][0]) {
            continue;
        }
        bytes_append_str(out, " ");
        for (size_t k = n_cases; k-- > i;) {
            if (k > i && cases[k][0] && strcmp(bytes_str(&outcomes[k]), bytes_str(&outcomes[i])) == 0) {
                bytes_printf(out, " %s", cases[k]);
                cases[k][0] = '\0';
            }
        }
        bytes_printf(out, " %s:%s\n", cases[i], bytes_str(&outcomes[i]));
    }
    for (size_t i = 0; i < n_cases; i++) {
        bytes_deinit(&outcomes[i]);
    }
}

int main(void)
{
    bytes out = bytes_empty(8 << 20);
    for (int dialect = 0; dialect < DIALECTS; dialect++) {
        bytes least = bytes_empty(4096);
        tell(&least, dialect, "", "");
        snprintf(usual, sizeof usual, "%s", bytes_str(&least));
        bytes_printf(&out, "%s\n %s\n", ROWS[dialect].name, usual);
        bytes_deinit(&least);
        for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
            put_field(&out, dialect, FIELDS[i]);
        }
    }
    recorded_check("server/protocol/field_values.txt", bytes_str(&out));
    bytes_deinit(&out);
    CHECK_DONE();
}
