/* upstream: what it is made of and what is handed over, each piece of memory failing once, and more answers than there may
 * be. The thread of the module never runs. */
#include <pthread.h>
#include <stdlib.h>

#include "base/limits.h"
#include "server/media/fetch.h"
#include "server/protocol/dialects/chat_request.h"
#include "server/upstream/upstream_request.h"
#include "server/upstream/upstream_state.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"
#include "tests/server/own_thread.h"

static void on_event(void *ctx, gen_event *event)
{
    (void)ctx;
    gen_event_free(event);
    CHECK(false);
}

/* Two places of one server, so that it counts who has had the beginning of a chat. */
static const upstream_settings TWO = {.servers = "gpu=http://127.0.0.1:9,http://127.0.0.1:10"};

static err_code create(upstreams **out, ledger *memory, err_detail *d)
{
    const upstream_hooks hooks = {.on_event = on_event, .memory = memory};
    const err_code err = upstreams_create(out, &TWO, &hooks, d);
    CHECK((err == ERR_OK) == (*out != NULL) && (err == ERR_OK) == (d->text[0] == '\0'));
    return err;
}

static upstream_model model(void)
{
    return (upstream_model){.name = "gpu/m", .facts = {.id = "m"}};
}

typedef struct asking {
    const api_request *r;
    const upstream_prompt *prompt;
} asking;

/* It is submitted, and freed with what it waits for. */
static err_code submit_once(void *context)
{
    const asking *a = context;
    const upstream_model m = model();
    upstreams *all = NULL;
    upstream_request *q = NULL;
    err_detail d = {0};
    err_code err = create(&all, NULL, &d);
    err = err ? err : upstreams_prepare(all, &q, &m, a->r, a->prompt, NULL, &d);
    CHECK((err == ERR_OK) == (q != NULL));
    err = err ? err : upstreams_submit(all, q, 1, &d);
    CHECK((err == ERR_OK) == (d.text[0] == '\0'));
    upstreams_destroy(all);
    return err == ERR_INVALID && strstr(d.text, "no address of a server")
               ? ERR_NOMEM
               : err; /* libcurl does not say why */
}

static void test_short_memory(const api_request *r)
{
    static const int32_t IDS[] = {1, 2, 3};
    static const upstream_prompt PROMPTS[] = {{0}, {.text = "words"}, {.ids = IDS, .n_ids = 3}};
    for (size_t i = 0; i < ARRAY_LEN(PROMPTS); i++) {
        asking a = {.r = r, .prompt = &PROMPTS[i]};
        CHECK(alloc_fail_each(submit_once, &a, 1000) > 5);
    }
}

/* Calls in two messages, texts of several parts, and a field of each kind. */
static const char CALLS[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\","
    "\"text\":\"b\"}]},{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"so\",\"tool_calls\":["
    "{"
    "\"id\":\"x\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":[1,2]}\"}},{"
    "\"id\":\"y\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"{\\\"long\\\":\\\"%"
    "0600d\\\"}\"}"
    "},{\"id\":\"z\",\"type\":\"function\",\"function\":{\"name\":\"h\",\"arguments\":\"{}\"}}]},"
    "{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"1\"},{\"role\":\"tool\",\"tool_call_id\":\"y\","
    "\"content\":\"2\"},{\"role\":\"tool\",\"tool_call_id\":\"z\",\"content\":\"3\"}],\"tools\":[{\"type\":"
    "\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\"}}}],\"stop\":[\"a\",\"b\"]"
    ","
    "\"logit_bias\":{\"3\":-1},\"guided_choice\":[\"a.b\",\"c\"],\"chat_template_kwargs\":{\"k\":[1]}}";

typedef struct writing {
    const api_request *r;
    upstream_engine engine;
    upstreams *all;
    const char *whole; /* NULL: it is not known yet */
} writing;

/* What is written is all there is. */
static void check_whole(writing *w, const bytes *out)
{
    static char text[1 << 14];
    if (!w->whole) {
        snprintf(text, sizeof text, "%s", bytes_str(out));
        w->whole = text;
    } else {
        CHECK_STR(bytes_str(out), w->whole);
    }
}

/* All there is, or there is no memory: nothing is left out. */
static err_code write_once(void *context)
{
    writing *w = context;
    err_detail d = {0};
    bytes out = bytes_empty(LIMIT_BODY_BYTES);
    upstream_media media = {.engine = w->engine};
    const upstream_facts facts = {.server = "gpu", .model = "m", .engine = w->engine, .media = &media};
    upstream_media_begin(&media, w->r->in, UPSTREAM_VIDEO_AUTO, UPSTREAM_UNKNOWN);
    const err_code err = upstream_request_write(&out, w->r, &(upstream_prompt){0}, &facts, &d);
    if (err == ERR_OK) {
        check_whole(w, &out);
    }
    bytes_deinit(&out);
    return err;
}

static void test_whole(void)
{
    static const upstream_engine ENGINES[] = {UPSTREAM_VLLM, UPSTREAM_SGLANG, UPSTREAM_LLAMA_CPP};
    char body[4096];
    api_request r;
    err_detail d = {0};
    snprintf(body, sizeof body, CALLS, 0);
    api_request_init(&r);
    r.form = tool_form_find("hermes");
    CHECK_OK(chat_request_parse(&r, body, strlen(body), NULL, &d), d);
    for (size_t i = 0; i < ARRAY_LEN(ENGINES); i++) {
        writing w = {.r = &r, .engine = ENGINES[i]};
        r.in->messages[0].is_string = i == 1; /* both parts are one text then */
        CHECK_OK(write_once(&w), d);
        CHECK(strstr(w.whole, "\\\"a\\\":[1,2]") != NULL);
        CHECK(strstr(w.whole, "\\\"long\\\":\\\"000") != NULL);
        CHECK(alloc_fail_each(write_once, &w, 1000) > 5);
    }
    api_request_deinit(&r);
}

/* Each name in a list is whole, or the list is not sent. */
static err_code list_once(void *context)
{
    writing *w = context;
    bytes out = bytes_empty(LIMIT_BODY_BYTES);
    upstreams_write_models(w->all, &out, true, 1700000000);
    upstreams_write_model(w->all, &out, "gpu/m", 1700000000);
    const err_code err = out.no_memory ? ERR_NOMEM : ERR_OK;
    CHECK(out.failed == out.no_memory);
    if (err == ERR_OK) {
        check_whole(w, &out);
    }
    bytes_deinit(&out);
    return err;
}

static void test_lists(void)
{
    static const char MODELS[] = "{\"data\":[{\"id\":\"m\"},{\"id\":\"n\"}]}";
    upstreams *all = NULL;
    err_detail d = {0};
    CHECK_OK(create(&all, NULL, &d), d);
    CHECK_OK(upstream_models_read(&all->servers[0].models, MODELS, sizeof MODELS - 1, &d), d);
    writing w = {.all = all};
    CHECK_OK(list_once(&w), d);
    CHECK(alloc_fail_each(list_once, &w, 1000) > 3);
    upstreams_destroy(all);
}

static void test_threads(void)
{
    upstreams *all = NULL;
    err_detail d = {0};
    own_thread_fails = true;
    CHECK_INT(create(&all, NULL, &d), ERR_NOMEM);
    own_thread_fails = false;
}

/* The body of one fits; that of a second one does not beside it. */
static void test_ledger(const api_request *r)
{
    static const upstream_prompt CHAT = {0};
    const upstream_model m = model();
    upstreams *all = NULL;
    upstream_request *one = NULL, *other = NULL;
    err_detail d = {0};
    ledger *memory = ledger_create(12000);
    CHECK(memory != NULL);
    CHECK_OK(create(&all, memory, &d), d);
    CHECK_OK(upstreams_prepare(all, &one, &m, r, &CHAT, NULL, &d), d);
    CHECK_INT(upstreams_prepare(all, &other, &m, r, &CHAT, NULL, &d), ERR_BUSY);
    CHECK_STR(d.name, "memory_busy");
    CHECK(!other);
    upstream_request_free(one);
    CHECK_OK(upstreams_prepare(all, &other, &m, r, &CHAT, NULL, &d), d);
    upstream_request_free(other);
    upstreams_destroy(all);
    ledger_destroy(memory);
}

static void test_many(const api_request *r)
{
    static const upstream_prompt CHAT = {0};
    const upstream_model m = model();
    upstreams *all = NULL;
    upstream_request *q = NULL;
    err_detail d = {0};
    CHECK_OK(create(&all, NULL, &d), d);
    for (uint64_t id = 0; id < LIMIT_UPSTREAM_RUNNING; id++) {
        CHECK_OK(upstreams_prepare(all, &q, &m, r, &CHAT, NULL, &d), d);
        CHECK_OK(upstreams_submit(all, q, id, &d), d);
    }
    CHECK_OK(upstreams_prepare(all, &q, &m, r, &CHAT, NULL, &d), d);
    CHECK_INT(upstreams_submit(all, q, LIMIT_UPSTREAM_RUNNING, &d), ERR_BUSY);
    CHECK_STR(d.name, "upstream_busy");
    CHECK_STR(d.text, "there are 4096 answers of other servers already");
    upstream_request_free(q); /* stayed the caller's */
    upstreams_destroy(all);
}

int main(void)
{
    static char body[4096];
    api_request r;
    err_detail d = {0};
    CHECK(fetch_start());
    snprintf(body, sizeof body, "{\"messages\":[{\"role\":\"user\",\"content\":\"%03000d\"}]}", 0);
    api_request_init(&r);
    r.form = tool_form_find("hermes");
    CHECK_OK(chat_request_parse(&r, body, strlen(body), NULL, &d), d);
    test_short_memory(&r);
    test_whole();
    test_lists();
    test_threads();
    test_ledger(&r);
    test_many(&r);
    api_request_deinit(&r);
    fetch_stop();
    CHECK_DONE();
}
