/* serve_dialects: whole replies of each dialect for each end of an answer, streams step by step, vectors of models of each kind,
 * summaries and cached prompts; recorded. Answers are filled in by the test. */
#include "base/limits.h"
#include "tests/recorded.h"
#include "tests/server/service/made_serve.h"

static bool is_found;

bool __wrap_engine_find_named(engine *e, uint64_t scope, const char *name, bool forgets, engine_cached *out);
bool __wrap_engine_find_named(engine *e, uint64_t scope, const char *name, bool forgets, engine_cached *out)
{
    CHECK(e && scope == 5 && !forgets);
    CHECK_STR(name, "n");
    if (is_found) {
        *out = (engine_cached){.n_tokens = 11, .n_bytes = 12, .used_at = 13, .is_on_disk = true};
    }
    return is_found;
}

double __wrap_clock_ms(void);
double __wrap_clock_ms(void)
{
    return 5000.0;
}

int64_t __wrap_clock_unix_s(void);
int64_t __wrap_clock_unix_s(void)
{
    return 1000;
}

void __wrap_hash_random_id(char *out, size_t cap, const char *prefix);
void __wrap_hash_random_id(char *out, size_t cap, const char *prefix)
{
    snprintf(out, cap, "%s0", prefix);
}

static char some[1];
static bytes all;

/* An answer whose numbers are all different. */
static answer *begin(serve *s, const dialect *d, gen_finish finish)
{
    answer *a = made_answer(s, d);
    snprintf(s->model_name, sizeof s->model_name, "ash");
    snprintf(a->chat_id, sizeof a->chat_id, "id_1");
    a->created_at = 101;
    a->finish = finish;
    a->info = (gen_request_info){.n_prompt_tokens = 302, .max_tokens = 103};
    a->timings = (gen_timings){
        .prompt_n = 104, .cache_n = 105, .predicted_n = 106, .prompt_ms = 107, .predicted_ms = 108};
    a->n_tokens = 109;
    a->n_reasoning_tokens = 110;
    reply_pieces_add(&a->whole, REPLY_REASONING, "why", 3);
    reply_pieces_add(&a->whole, REPLY_CONTENT, "said", 4);
    return a;
}

/* Text without the version, which does not stay the same, and without empty lines. */
static void put_text(const char *what, const char *text)
{
    static const char VERSION[] = PARLEY_VERSION;
    bytes_printf(&all, "%s: ", what);
    for (const char *at; (at = strstr(text, VERSION)); text = at + sizeof VERSION - 1) {
        bytes_append(&all, text, (size_t)(at - text));
        bytes_append_str(&all, "VERSION");
    }
    for (size_t n; (n = strcspn(text, "\n")) > 0; text += n + strspn(text + n, "\n")) {
        bytes_append(&all, text, n);
        bytes_append_char(&all, '\n');
    }
}

static void write_whole(const serve *s, const answer *a, const char *what)
{
    bytes out = bytes_empty(1 << 16);
    a->dialect->whole(s, a, &out);
    CHECK(!out.failed);
    put_text(what, bytes_str(&out));
    bytes_deinit(&out);
}

/* ---- tests ---- */

static void test_ends(void)
{
    static const dialect *const DIALECTS[] = {
        &dialect_chat,        &dialect_completion,      &dialect_messages,
        &dialect_ollama_chat, &dialect_ollama_generate, &dialect_compact};
    for (size_t i = 0; i < ARRAY_LEN(DIALECTS); i++) {
        bytes_printf(&all, "%s\n", DIALECTS[i]->name);
        for (int finish = GEN_FINISH_STOP; finish <= GEN_FINISH_FILTERED; finish++) {
            char what[32];
            serve *s = made_serve();
            answer *a = begin(s, DIALECTS[i], (gen_finish)finish);
            snprintf(what, sizeof what, "  end %d", finish);
            write_whole(s, a, what);
            made_end(s);
        }
    }
}

/* What was written since the last step: to the stream of `first`, or to its log from event *seq on. */
static void put_step(answer *first, const char *what, int64_t *seq)
{
    event_view event;
    if (first->sse.len > 0) {
        put_text(what, bytes_str(&first->sse));
        bytes_clear(&first->sse);
    }
    while (first->has_reply && event_log_read(&first->reply.log, *seq, &event) == EVENT_LOG_EVENT) {
        bytes text = bytes_empty(1 << 16);
        bytes_append(&text, event.text, event.len);
        put_text(event.type, bytes_str(&text));
        bytes_deinit(&text);
        ++*seq;
    }
}

/* One answer from its begin to its end. first: whose stream it is. */
static void stream(serve *s, answer *a, answer *first, const api_error *e)
{
    const dialect *d = a->dialect;
    int64_t seq = 0;
    if (d->first) {
        d->first(s, a);
        put_step(first, "    first", &seq);
    }
    for (int phase = GEN_PHASE_QUEUED; d->progress && phase <= GEN_PHASE_DECODE; phase++) {
        a->phase = (gen_phase)phase;
        d->progress(s, a);
        put_step(first, phase == GEN_PHASE_PREFILL ? "    read" : "    phase", &seq);
    }
    for (int with = 0; with < 2; with++) {
        reply_pieces_add(&a->pieces, with ? REPLY_CONTENT : REPLY_REASONING, with ? "text" : "hm",
                         with ? 4 : 2);
        bytes_printf(&a->logprobs, "%s{\"n\":%d}", a->logprobs.len ? "," : "", with);
        d->delta(s, a);
        put_step(first, "    text", &seq);
        bytes_printf(&all, "    logprobs left: %s\n", bytes_str(&a->logprobs));
        reply_pieces_clear(&a->pieces);
    }
    d->last(s, a, e);
    put_step(first, "    last", &seq);
    if (d->end) {
        d->end(s, a);
        put_step(a, "    end", &seq);
    }
}

/* With and without what a request may wish for in its stream. */
static void test_streams(void)
{
    static const dialect *const DIALECTS[] = {&dialect_chat,        &dialect_completion,
                                              &dialect_messages,    &dialect_responses,
                                              &dialect_ollama_chat, &dialect_ollama_generate};
    for (size_t i = 0; i < ARRAY_LEN(DIALECTS); i++) {
        const int step = i < 2 ? 1 : 5; /* the others know nothing of these wishes */
        for (int with = 0; with < 6; with += step) {
            serve *s = made_serve();
            answer *a = begin(s, DIALECTS[i], GEN_FINISH_STOP);
            a->opt.stream = with != 5;
            a->opt.include_usage = with == 1;
            a->opt.timings_per_token = with == 2;
            a->opt.logprobs = with == 3;
            a->opt.return_progress = with >= 4;
            a->phase_start_ms = 4000.0;
            a->processed = 201;
            a->total = 202;
            a->cached = 203;
            if (with == 1) {
                snprintf(a->opt.model, sizeof a->opt.model, "asked");
            }
            bytes_printf(&all, "stream of %s, %d\n", DIALECTS[i]->name, with);
            stream(s, a, a, NULL);
            made_end(s);
        }
    }
    serve *s = made_serve(); /* the second of two choices writes to the stream of the first */
    answer *a = begin(s, &dialect_chat, GEN_FINISH_STOP), *b = begin(s, &dialect_chat, GEN_FINISH_LENGTH);
    snprintf(a->chat_id, sizeof a->chat_id, "id_0");
    b->first = a;
    b->index = 1;
    bytes_append_str(&all, "stream of another choice\n");
    stream(s, b, a, NULL);
    b->first = NULL;
    made_end(s);
}

/* How a response ends, and what a conversation has of an answer: behind its end, or of a round behind which there are more. */
static void test_responses(void)
{
    static const dialect *const DIALECTS[] = {&dialect_responses, &dialect_messages};
    for (size_t i = 0; i < ARRAY_LEN(DIALECTS); i++) {
        for (int finish = GEN_FINISH_STOP; finish <= GEN_FINISH_FILTERED; finish++) {
            api_error e;
            err_detail d = {0};
            bytes items = bytes_empty(1 << 16);
            serve *s = made_serve();
            answer *a = begin(s, DIALECTS[i], (gen_finish)finish);
            api_error_from(&e, err_set(&d, ERR_INTERNAL, "it broke"), &d);
            bytes_printf(&all, "kept of %s, end %d\n", DIALECTS[i]->name, finish);
            if (i == 0) {
                stream(s, a, a, finish == GEN_FINISH_CANCELLED || finish == GEN_FINISH_ERROR ? &e : NULL);
                write_whole(s, a, "    whole");
            }
            DIALECTS[i]->append_kept(s, a, &items);
            put_text("    kept", bytes_str(&items));
            bytes_deinit(&items);
            made_end(s);
        }
    }
    bytes items = bytes_empty(1 << 16);
    serve *s = made_serve();
    answer *a = begin(s, &dialect_responses, GEN_FINISH_STOP);
    dialect_responses.first(s, a);
    reply_pieces_add(&a->pieces, REPLY_CONTENT, "half", 4);
    dialect_responses.delta(s, a);
    dialect_responses.append_kept(s, a, &items);
    put_text("kept of a round", bytes_str(&items));
    bytes_deinit(&items);
    made_end(s);
}

/* Of a prompt that is saved the prompt counts alone, whatever else the body says. */
static void test_saving(void)
{
    static const char *const BODIES[] = {
        "{\"prompt\":\"a b\"}",
        "{\"prompt\":\"a "
        "b\",\"stream\":true,\"logprobs\":3,\"max_tokens\":50,\"cache_prompt\":false,\"model\":\"m\"}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"stream\":true,\"logprobs\":true,\"top_"
        "logprobs\":4,"
        "\"max_tokens\":50,\"spec_prefill\":true,\"model\":\"m\"}",
        "{\"messages\":[]}",
        "{}",
        "[]"};
    static const dialect *const DIALECTS[] = {&dialect_cache_save, &dialect_cache_load};
    bytes_append_str(&all, "bodies for cached prompts\n");
    for (size_t i = 0; i < 2 * ARRAY_LEN(BODIES); i++) {
        const char *body = BODIES[i / 2];
        api_request r;
        completion_prompt prompt = {0};
        err_detail d = {0};
        api_request_init(&r);
        CHECK_OK(json_parse(&r.doc, body, strlen(body), LIMIT_JSON_DEPTH, &d), d);
        const err_code err = DIALECTS[i % 2]->parse(&r, &prompt, body, strlen(body), NULL, &d);
        bytes_printf(&all, "  %s %s: %s %s", i % 2 ? "load" : "save", body, err_name(err), d.text);
        if (err == ERR_OK) {
            const gen_params *p = &r.in->params;
            bytes_printf(&all, "%d tokens, sparse %d, logprobs %d,%s%s%s%s model \"%s\", %zu messages",
                         p->max_tokens, p->spec_prefill, p->n_top_logprobs, p->no_cache ? " no cache" : "",
                         p->no_draft ? " no draft" : "", r.reply.stream ? " stream" : "",
                         r.reply.logprobs ? " logprobs" : "", r.reply.model, r.in->n_messages);
        }
        bytes_append_char(&all, '\n');
        api_request_deinit(&r);
    }
}

/* Of a model that was made for them or not, and whose states are taken in one way or another. */
static void test_vectors(void)
{
    static const dialect *const DIALECTS[] = {&dialect_embedding, &dialect_ollama_embed, &dialect_rerank};
    static const float VALUES[] = {1.0f, 0.0f, 0.5f, 0.25f};
    bytes_append_str(&all, "vectors\n");
    for (size_t i = 0; i < ARRAY_LEN(DIALECTS); i++) {
        for (int with = 0; with < 5; with++) {
            const engine_info info = {.pool = with & 1 ? GEN_POOL_MEAN : GEN_POOL_LAST,
                                      .is_embedder = with & 2};
            serve *s = made_serve();
            answer *a = begin(s, DIALECTS[i], GEN_FINISH_STOP);
            s->info = with < 4 ? &info : NULL;
            a->n_vectors = DIALECTS[i] == &dialect_rerank ? 4 : 2;
            a->vector_size = DIALECTS[i] == &dialect_rerank ? 1 : 2;
            bytes_append(&a->vectors, VALUES, sizeof VALUES);
            write_whole(s, a, DIALECTS[i]->name);
            made_end(s);
        }
    }
}

/* The text of a summary is its content alone, behind what the users said. */
static void test_summary(void)
{
    bytes_append_str(&all, "summaries\n");
    for (int with = 0; with < 4; with++) {
        serve *s = made_serve();
        answer *a = begin(s, &dialect_compact, with & 1 ? GEN_FINISH_LENGTH : GEN_FINISH_STOP);
        reply_pieces_add(&a->whole, REPLY_REASONING, "again", 5);
        reply_pieces_add(&a->whole, REPLY_CONTENT, " more", 5);
        a->opt.fields = with & 2 ? strdup("{\"before\":1},") : NULL;
        write_whole(s, a, "  summary");
        made_end(s);
    }
}

static void test_cached(void)
{
    static const dialect *const DIALECTS[] = {&dialect_cache_save, &dialect_cache_load};
    bytes_append_str(&all, "cached prompts\n");
    for (int with = 0; with < 6; with++) {
        serve *s = made_serve();
        answer *a = begin(s, DIALECTS[with % 2], GEN_FINISH_LENGTH);
        s->engine = with < 4 ? (engine *)some : NULL;
        is_found = with >= 2;
        snprintf(a->cache_name, sizeof a->cache_name, "n");
        write_whole(s, a, with % 2 ? "  loaded" : "  saved");
        made_end(s);
    }
}

int main(void)
{
    all = bytes_empty(1 << 20);
    test_ends();
    test_vectors();
    test_summary();
    test_cached();
    test_streams();
    test_responses();
    test_saving();
    recorded_check("server/service/recorded/dialects.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
