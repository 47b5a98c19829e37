/* Requests of every dialect when allocations fail, one after the other and all from one on: a request is read whole, or
 * says that memory was short; it never goes on without a part. */
#include "server/protocol/context_fit.h"
#include "server/protocol/dialects/chat_request.h"
#include "server/protocol/dialects/completion_request.h"
#include "server/protocol/dialects/messages_request.h"
#include "server/protocol/dialects/ollama_request.h"
#include "server/protocol/dialects/responses_request.h"
#include "server/protocol/dialects/vectors.h"

#include "base/clock.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"

#define WORDS "words of more than a few letters, which take memory of their own"
#define SCHEMA                                                                                               \
    "{\"type\":\"object\",\"properties\":{\"place\":{\"type\":\"string\"}},\"required\":[\"place\"]}"

enum {
    CHAT,
    COMPLETION,
    ECHO,
    MESSAGES,
    OLLAMA,
    RESPONSES,
    CONTINUED,
    TALK,
    COMPACT,
    RERANK,
    FORCED,
    THREAD,
    ITEMS,
    FILES,
    DIALECTS
};

static const char *const BODIES[DIALECTS] = {
    "{\"messages\":[{\"role\":\"system\",\"content\":\"" WORDS
    "\"},{\"role\":\"user\",\"content\":[{\"type\":"
    "\"text\",\"text\":\"" WORDS "\"},{\"type\":\"image_url\",\"image_url\":{\"url\":"
    "\"data:image/png;base64,Zm9v\"}}]},{\"role\":\"assistant\",\"reasoning_content\":\"" WORDS
    "\",\"content\":"
    "\"" WORDS
    "\",\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
    "\"{\\\"place\\\":\\\"x\\\"}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"" WORDS
    "\"}],"
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":" SCHEMA "}}],"
    "\"stop\":[\"" WORDS "\",\"b\"],\"chat_template_kwargs\":{\"a\":\"" WORDS "\"},\"logit_bias\":{\"5\":2},"
    "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\",\"schema\":" SCHEMA "}}}",
    "{\"prompt\":[\"" WORDS "\",\"" WORDS "\"],\"stop\":\"" WORDS "\",\"logit_bias\":{\"5\":2}}",
    "{\"prompt\":[\"" WORDS "\",\"b\"],\"echo\":true}",
    "{\"max_tokens\":9,\"system\":[{\"type\":\"text\",\"text\":\"" WORDS
    "\"}],\"messages\":[{\"role\":\"user\","
    "\"content\":[{\"type\":\"text\",\"text\":\"" WORDS
    "\"},{\"type\":\"image\",\"source\":{\"type\":\"base64\","
    "\"media_type\":\"image/"
    "png\",\"data\":\"Zm9v\"}}]},{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\","
    "\"thinking\":\"" WORDS "\",\"signature\":\"\"},{\"type\":\"thinking\",\"thinking\":\"" WORDS "\","
    "\"signature\":\"\"},{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"f\",\"input\":{\"place\":\"x\"}}]},"
    "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c1\",\"content\":\"" WORDS
    "\"}]}],"
    "\"tools\":[{\"name\":\"f\",\"input_schema\":" SCHEMA "}],\"stop_sequences\":[\"" WORDS "\"]}",
    "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"" WORDS
    "\"},{\"role\":\"user\",\"content\":"
    "\"" WORDS "\",\"images\":[\"Zm9v\"]}],\"options\":{\"stop\":[\"" WORDS "\"]},\"format\":" SCHEMA "}",
    "{\"instructions\":\"" WORDS
    "\",\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":"
    "\"" WORDS "\"},{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,Zm9v\"}]},{\"type\":"
    "\"function_call\",\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"{\\\"place\\\":\\\"x\\\"}\"},{"
    "\"type\":"
    "\"function_call_output\",\"call_id\":\"c1\",\"output\":\"" WORDS
    "\"}],\"tools\":[{\"type\":\"function\","
    "\"name\":\"f\",\"parameters\":" SCHEMA "}],\"metadata\":{\"a\":\"" WORDS
    "\"},\"text\":{\"verbosity\":\"low\"}}",
    "{\"previous_response_id\":\"resp_1\",\"input\":[{\"type\":\"item_reference\",\"id\":\"m1\"},{\"type\":"
    "\"reasoning\","
    "\"summary\":[],\"content\":[{\"type\":\"reasoning_text\",\"text\":\"" WORDS
    "\"}]},{\"role\":\"user\",\"content\":\"" WORDS "\"}]}",
    "{\"conversation\":\"conv_1\",\"input\":\"" WORDS "\"}",
    "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"" WORDS "\"}]}",
    "{\"query\":\"" WORDS "\",\"documents\":[\"" WORDS "\",\"b\"],\"return_documents\":true}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tool_choice\":\"required\",\"tools\":[{\"type\":"
    "\"function\",\"function\":{\"name\":\"f\",\"parameters\":" SCHEMA
    "}},{\"type\":\"function\",\"function\":{"
    "\"name\":\"g\",\"parameters\":" SCHEMA "}}]}",
    "{\"max_tokens\":9,\"thread\":{\"type\":\"create\"},\"system\":\"" WORDS
    "\",\"messages\":[{\"role\":\"user\","
    "\"content\":[{\"type\":\"document\",\"title\":\"" WORDS
    "\",\"source\":{\"type\":\"content\",\"content\":["
    "{\"type\":\"text\",\"text\":\"" WORDS
    "\"},{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":"
    "\"image/png\",\"data\":\"Zm9v\"}},{\"type\":\"text\",\"text\":\"" WORDS "\"}]}}]}]}",
    "{\"input\":[{\"role\":\"user\",\"content\":\"" WORDS
    "\"},{\"type\":\"compaction\",\"encrypted_content\":"
    "\"d2hhdCB3YXMgc2FpZA==\"},{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":"
    "\"d2hhdCB3YXMgc2FpZA==\"},"
    "{\"type\":\"mcp_call\",\"id\":\"m\",\"server_label\":\"s\",\"name\":\"n\",\"arguments\":\"[" WORDS "]\","
    "\"output\":\"" WORDS "\"},{\"role\":\"user\",\"content\":\"" WORDS "\"}]}"};

/* What responses go on from. */
static response_store *store;

#define OLD "{\"id\":\"m1\",\"type\":\"message\",\"role\":\"user\",\"content\":\"" WORDS "\"}"

static void fill_store(void)
{
    static const char HEAD[] = "{\"created_at\":1,\"metadata\":{}},";
    store = response_store_create(10000, 4, 3600, NULL);
    CHECK(store && response_store_put(store, 0, "resp_1", OLD, sizeof OLD - 1, 0, clock_ms()));
    char text[sizeof HEAD + sizeof OLD];
    const int n = snprintf(text, sizeof text, "%s%s", HEAD, OLD);
    CHECK(store && response_store_put(store, 0, "conv_1", text, (size_t)n, 0, clock_ms()));
}

/* Everything of a request that a lack of memory could lose. */
static void digest(char *out, size_t cap, const api_request *r, const completion_prompt *prompt)
{
    const chat_input *in = r->in;
    size_t n = (size_t)snprintf(out, cap, "%zu %d %zu %zu|", in->n_messages, in->form != NULL, prompt->n_ids,
                                r->reply.fields ? strlen(r->reply.fields) : 0); /* there are new ids in it */
    n += (size_t)snprintf(out + n, cap - n, "%zu %d|", r->reply.items.len, in->form_is_calls);
    if (r->reply.conversation[0]) { /* what is added to it */
        n += (size_t)snprintf(out + n, cap - n, "%zu %s|", r->reply.items.len, r->reply.conversation);
    }
    for (size_t i = 0; i < r->reply.n_echoes && n < cap; i++) {
        n += (size_t)snprintf(out + n, cap - n, "%s|", r->reply.echoes[i]);
    }
    for (const completion_prompt *p = prompt; p && n < cap; p = p->next) {
        n += (size_t)snprintf(out + n, cap - n, "%s/", p->text ? p->text : "-");
    }
    for (size_t i = 0; i < in->n_messages && n < cap; i++) {
        const chat_message *m = &in->messages[i];
        n += (size_t)snprintf(out + n, cap - n, "%d %zu %zu %s/", (int)m->role, m->n_parts, m->n_tool_calls,
                              m->reasoning ? m->reasoning : "-");
        for (size_t k = 0; k < m->n_parts && n < cap; k++) {
            const chat_part *p = &m->parts[k];
            n += (size_t)snprintf(out + n, cap - n, "%d %zu %s/", (int)p->kind, p->data_bytes,
                                  p->text ? p->text : "-");
        }
        for (size_t k = 0; k < m->n_tool_calls && n < cap; k++) {
            n += (size_t)snprintf(out + n, cap - n, "%s/", m->tool_calls[k].name);
        }
    }
}

typedef struct reading {
    int dialect;
    char whole[8192]; /* of the request without a failure */
} reading;

/* An uploaded text and an uploaded image, as their names are known. */
static file_store *files;
static char file_ids[2][FILE_ID_MAX];

static void fill_files(void)
{
    static const char *const TEXTS[] = {WORDS, "GIF89a " WORDS};
    files = file_store_create(
        &(file_store_options){.dir = "/tmp", .max_bytes = 1 << 20, .quota = 1 << 20, .expire_s = 60});
    for (size_t i = 0; i < 2; i++) {
        stored_file kept;
        err_detail d = {0};
        file_writer *w = NULL;
        const size_t n = strlen(TEXTS[i]);
        const file_facts facts = {.name = "a", .purpose = "user_data"};
        CHECK_OK(file_store_reserve(files, 0, n, &d), d);
        CHECK_OK(file_writer_create(&w, "/tmp", n, &d), d);
        CHECK_OK(file_writer_add(w, TEXTS[i], n, &d), d);
        CHECK_OK(file_store_add(files, w, n, &facts, &kept, &d), d);
        snprintf(file_ids[i], sizeof file_ids[i], "%s", kept.id);
    }
}

static err_code parse(api_request *r, completion_prompt *prompt, int dialect, err_detail *d)
{
    char with_files[1024];
    snprintf(with_files, sizeof with_files,
             "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"document\","
             "\"source\":{\"type\":"
             "\"file\",\"file_id\":\"%s\"}},{\"type\":\"image\",\"source\":{\"type\":\"file\",\"file_id\":\"%"
             "s\"}}]}]}",
             file_ids[0], file_ids[1]);
    const char *body = dialect == FILES ? with_files : BODIES[dialect];
    const size_t len = strlen(body);
    switch (dialect) {
    case CHAT:
    case FORCED:
        return chat_request_parse(r, body, len, NULL, d);
    case COMPLETION:
    case ECHO:
        return completion_request_parse(r, prompt, body, len, NULL, d);
    case MESSAGES:
    case THREAD:
    case FILES:
        return messages_request_parse(r, body, len, true, NULL, d);
    case OLLAMA:
        return ollama_request_parse(r, body, len, false, NULL, d);
    case COMPACT:
        return responses_compact_parse(r, body, len, NULL, d);
    case RERANK:
        return rerank_request_parse(r, prompt, body, len, NULL, d);
    default:
        return responses_request_parse(r, body, len, false, NULL, d);
    }
}

static err_code read_one(void *context)
{
    reading *one = context;
    char now[sizeof one->whole];
    api_request r;
    completion_prompt prompt = {0};
    err_detail d = {0};
    api_request_init(&r);
    r.response_store = store;
    r.form = &TOOL_FORM_HERMES;
    r.files = files;
    err_code err = parse(&r, &prompt, one->dialect, &d);
    if (err == ERR_OK) {
        digest(now, sizeof now, &r, &prompt);
        if (!one->whole[0]) {
            snprintf(one->whole, sizeof one->whole, "%s", now);
        } else if (strcmp(now, one->whole) != 0) {
            fprintf(stderr, "%s\ninstead of\n%s\n", now, one->whole);
            err = ERR_INTERNAL;
        }
    } else if (err != ERR_NOMEM) {
        fprintf(stderr, "%s\n", d.text);
    }
    api_request_deinit(&r);
    return err;
}

/* ---- what is left out of a conversation that is too long ---- */

/* Too long whatever is left: as many tokens as there are bytes. */
static err_code measure(gen_request **out, const api_request *r, const struct completion_prompt *prompt,
                        engine *e, const prepare_hooks *hooks, err_detail *d)
{
    int64_t n = 0;
    (void)out, (void)prompt, (void)e, (void)hooks;
    for (size_t i = 0; i < r->in->n_messages; i++) {
        const chat_message *m = &r->in->messages[i];
        n += m->reasoning ? (int64_t)strlen(m->reasoning) : 0;
        for (size_t k = 0; k < m->n_parts; k++) {
            n += (int64_t)m->parts[k].text_len;
        }
    }
    err_set(d, ERR_CONTEXT, "it is too long");
    d->amount = n;
    d->limit = 10;
    return ERR_CONTEXT;
}

static err_code fit_once(void *context)
{
    static const char BODY[] =
        "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
        "\"content\":[{\"type\":"
        "\"thinking\",\"thinking\":\"" WORDS
        "\",\"signature\":\"\"},{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}]},{"
        "\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":\"" WORDS
            WORDS
        "\"}]}],\"context_management\":{\"edits\":[{\"type\":\"clear_thinking_20251015\",\"keep\":{\"type\":"
        "\"thinking_turns\",\"value\":0}},{\"type\":\"clear_tool_uses_20250919\",\"trigger\":{\"type\":"
        "\"tool_uses\",\"value\":"
        "0},\"keep\":{\"type\":\"tool_uses\",\"value\":0},\"clear_tool_inputs\":true}]}}";
    reading *one = context;
    api_request r;
    gen_request *request = NULL;
    err_detail d = {0};
    api_request_init(&r);
    context_fit fit = {.r = &r, .prepare = measure, .told = bytes_empty(4096)};
    err_code err = messages_request_parse(&r, BODY, sizeof BODY - 1, true, NULL, &d);
    err = err == ERR_OK ? context_fit_prepare(&request, &fit, &d) : err;
    if (err == ERR_CONTEXT) { /* which is what comes of it */
        err = fit.told.failed ? ERR_INTERNAL : ERR_OK;
        if (err == ERR_OK && !one->whole[0]) {
            snprintf(one->whole, sizeof one->whole, "%s", bytes_str(&fit.told));
        }
        if (err == ERR_OK && strcmp(bytes_str(&fit.told), one->whole) != 0) {
            fprintf(stderr, "%s\ninstead of\n%s\n", bytes_str(&fit.told), one->whole);
            err = ERR_INTERNAL;
        }
    }
    bytes_deinit(&fit.told);
    api_request_deinit(&r);
    return err;
}

static void test_fit(void)
{
    reading one = {0};
    CHECK(alloc_fail_each(fit_once, &one, 5000) > 3);
    CHECK_STR(
        one.whole,
        "[{\"type\":\"clear_thinking_20251015\",\"cleared_thinking_turns\":1,\"cleared_input_tokens\":64},{"
        "\"type\":\"clear_tool_uses_20250919\",\"cleared_tool_uses\":1,\"cleared_input_tokens\":89}]");
}

int main(void)
{
    fill_store();
    fill_files();
    for (int dialect = 0; dialect < DIALECTS; dialect++) {
        reading one = {.dialect = dialect};
        CHECK_INT(read_one(&one), ERR_OK);
        CHECK(strlen(one.whole) > 10);
        CHECK(alloc_fail_each(read_one, &one, 5000) > 3); /* our own, behind a sanitizer */
    }
    test_fit();
    response_store_destroy(store);
    file_store_destroy(files);
    CHECK_DONE();
}
