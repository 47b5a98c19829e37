/* What is too much: vectors of a reply, documents with their query, a conversation and the body that adds to it; and what a
 * socket hears of an answer that is computed, and of one that fails. */
#include <math.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "server/protocol/conversation.h"
#include "server/protocol/dialects/chat_request.h"
#include "server/protocol/dialects/messages_reply.h"
#include "server/protocol/dialects/messages_request.h"
#include "server/protocol/dialects/responses_reply.h"
#include "server/protocol/dialects/responses_request.h"
#include "server/protocol/dialects/talks.h"
#include "server/protocol/dialects/vectors.h"
#include "tests/check.h"

/* ---- vectors ---- */

/* So many inputs of a model with vectors of so many numbers. */
static err_code embed(size_t n, int32_t n_embd, err_detail *d)
{
    const engine_info info = {.n_embd = n_embd};
    completion_prompt inputs;
    api_request r;
    bytes body = bytes_empty(1 << 20);
    bytes_append_str(&body, "{\"input\":[");
    for (size_t i = 0; i < n; i++) {
        bytes_append_str(&body, i ? ",\"a\"" : "\"a\"");
    }
    bytes_append_str(&body, "]}");
    api_request_init(&r);
    *d = (err_detail){0};
    const err_code err = embedding_request_parse(&r, &inputs, bytes_str(&body), body.len, &info, d);
    api_request_deinit(&r);
    bytes_deinit(&body);
    return err;
}

/* So many documents for a query of so many bytes. */
static err_code rank(size_t n, size_t n_query, err_detail *d)
{
    static const char TASK[] = "i";
    completion_prompt inputs;
    api_request r;
    bytes body = bytes_empty(LIMIT_BODY_BYTES);
    bytes_printf(&body, "{\"instruction\":\"%s\",\"query\":\"", TASK);
    for (size_t i = strlen(TASK); i < n_query; i++) {
        bytes_append_char(&body, 'q');
    }
    bytes_append_str(&body, "\",\"documents\":[");
    for (size_t i = 0; i < n; i++) {
        bytes_append_str(&body, i ? ",\"\"" : "\"\"");
    }
    bytes_append_str(&body, "]}");
    api_request_init(&r);
    *d = (err_detail){0};
    const err_code err = rerank_request_parse(&r, &inputs, bytes_str(&body), body.len, NULL, d);
    api_request_deinit(&r);
    bytes_deinit(&body);
    return err;
}

static void test_vectors(void)
{
    err_detail d;
    CHECK_OK(embed(LIMIT_INPUTS, LIMIT_INPUT_VALUES / LIMIT_INPUTS, &d), d);
    CHECK_INT(embed(LIMIT_INPUTS, LIMIT_INPUT_VALUES / LIMIT_INPUTS + 1, &d), ERR_LIMIT);
    CHECK_STR(d.name, "too_many_inputs");
    CHECK_STR(d.text,
              "2048 vectors of 2049 numbers; a reply may hold 4194304 numbers in all: send several requests");
    CHECK_INT(embed(LIMIT_INPUTS + 1, 1, &d), ERR_LIMIT);
    CHECK_INT(rank(16, LIMIT_BODY_BYTES / 16 + 1, &d), ERR_LIMIT);
    CHECK_STR(d.name, "input_too_long");
    CHECK_STR(d.text, "the query with each document is too much text: send several requests");
    CHECK(rank(16, LIMIT_BODY_BYTES / 16, &d) != ERR_LIMIT || strcmp(d.name, "input_too_long") != 0);
    CHECK_OK(rank(16, 4096, &d), d);
    CHECK_INT(rank(LIMIT_INPUTS + 1, 2, &d), ERR_LIMIT);
    CHECK_STR(d.name, "too_many_inputs");
}

/* ---- conversations ---- */

static void test_talks(void)
{
    response_store *store = response_store_create((size_t)64 << 20, 10, 60, NULL);
    const talk_keeper keeper = talk_keeper_in_memory(store);
    talk_order o = {.verb = TALK_CREATE, .scope = 7, .body = bytes_empty(SIZE_MAX / 2)};
    bytes reply = bytes_empty(SIZE_MAX / 2);
    err_detail d = {0};
    err_code err = ERR_OK;
    bytes_append_str(&o.body, "{}");
    CHECK_OK(talk_run(&o, &keeper, &reply, &d), d);
    const char *id = strstr(bytes_str(&reply), "conv_");
    snprintf(o.id, sizeof o.id, "%.*s", (int)strcspn(id, "\""), id);
    o.verb = TALK_ADD;
    bytes_clear(&o.body);
    bytes_append_str(&o.body, "{\"items\":[{\"role\":\"user\",\"content\":\"");
    while (o.body.len < ((size_t)1 << 20) - 5) {
        bytes_append_char(&o.body, 'x');
    }
    bytes_append_str(&o.body, "\"}]}");
    bytes_append_char(&o.body, ' '); /* a MiB, which is all there may be */
    CHECK_INT(o.body.len, 1 << 20);
    int n = 0;
    for (; err == ERR_OK && n < 20; n++) {
        bytes_clear(&reply);
        err = talk_run(&o, &keeper, &reply, &d);
    }
    CHECK_INT(n, 16); /* a little is added to each */
    CHECK_INT(err, ERR_LIMIT);
    CHECK_STR(d.name, "conversation_too_large");
    CHECK_STR(d.text, "a conversation may have 16 MiB; begin another");
    bytes_append_char(&o.body, ' ');
    CHECK_INT(talk_run(&o, &keeper, &reply, &d), ERR_LIMIT);
    CHECK_STR(d.name, "body_too_large");
    CHECK_STR(d.text, "a body may have 1 MiB here");
    talk_order_deinit(&o);
    bytes_deinit(&reply);
    response_store_destroy(store);
}

/* ---- what requests go on from ---- */

static err_code read_answer; /* of what keeps conversations */

static err_code read_talk(void *ctx, uint64_t scope, const char *id, bytes *out, err_detail *d)
{
    (void)ctx;
    if (read_answer != ERR_OK) {
        return err_set_param(d, read_answer, "disk", "disk_error", "the disk is gone");
    }
    bytes_printf(out, "{\"scope\":%d},{\"id\":\"%s\",\"role\":\"user\",\"content\":\"kept\"}", (int)scope,
                 id);
    return ERR_OK;
}

/* How many messages come of a request, or why there are none. */
static const char *gone_on(response_store *store, bool has_talks, uint64_t scope, uint64_t chain,
                           const char *fields)
{
    static const kept_talks TALKS = {.read = read_talk};
    static char text[1024];
    char body[512];
    api_request r;
    err_detail d = {0};
    snprintf(body, sizeof body, "{%s}", fields);
    api_request_init(&r);
    r.response_store = store;
    r.talks = has_talks ? &TALKS : NULL;
    r.scope = scope;
    r.chain = chain;
    const err_code err = responses_request_parse(&r, body, strlen(body), false, NULL, &d);
    if (err == ERR_OK) {
        snprintf(text, sizeof text, "%zu messages", r.in->n_messages);
    } else {
        snprintf(text, sizeof text, "%s at %s: %s", err_name(err), d.param, d.text);
    }
    api_request_deinit(&r);
    return text;
}

static void test_stored(void)
{
    static const char
        NEXT[] = "\"previous_response_id\":\"resp_3\",\"input\":\"q\"",
        FIRST[] = "\"previous_response_id\":\"resp_0\",\"input\":\"q\"",
        NONE[] = "\"previous_response_id\":\"resp_9\",\"input\":\"q\"",
        ITEM[] = "\"input\":[{\"type\":\"item_reference\",\"id\":\"i3\"}]",
        TALK[] = "\"conversation\":\"conv_1\",\"input\":\"q\"",
        GONE[] = "invalid at previous_response_id: this response is unknown, was not stored or is gone; send "
                 "the whole conversation in input",
        NO_ITEM[] = "not_found at input[0].id: input[0].id: there is no such item, or it is no longer kept; "
                    "send it whole";
    response_store *store = response_store_create(1000, 3, 60, NULL);
    for (int i = 0; i < 4; i++) { /* the first has to go */
        char id[16], item[64];
        snprintf(id, sizeof id, "resp_%d", i);
        const int n = snprintf(item, sizeof item, "{\"id\":\"i%d\",\"role\":\"user\",\"content\":\"a\"}", i);
        CHECK(response_store_put(store, 7, id, item, (size_t)n, 0, clock_ms()));
    }
    CHECK_STR(gone_on(store, false, 7, 0, NEXT), "2 messages");
    CHECK_STR(gone_on(store, false, 7, 0, FIRST),
              "invalid at previous_response_id: this response had to go early, as this key has more than its "
              "share of what is "
              "kept, or as requests needed the memory; send the whole conversation in input");
    CHECK_STR(gone_on(store, false, 7, 0, NONE), GONE);
    CHECK_STR(gone_on(store, false, 8, 0, NEXT), GONE);
    CHECK_STR(gone_on(store, false, 8, 0, FIRST), GONE); /* of another one's nothing is told */
    CHECK_STR(gone_on(store, false, 8, 7, NEXT), "2 messages");
    CHECK_STR(gone_on(NULL, false, 7, 7, NEXT), GONE);
    response_store *of_all = response_store_create(1000, 3, 60, NULL); /* of a server without keys */
    static const char KEPT[] = "{\"id\":\"i3\",\"role\":\"user\",\"content\":\"a\"}";
    CHECK(response_store_put(of_all, 0, "resp_3", KEPT, sizeof KEPT - 1, 0, clock_ms()));
    CHECK_STR(gone_on(of_all, false, 0, 0, NEXT), "2 messages");
    CHECK_STR(gone_on(of_all, false, 8, 0, NEXT), GONE); /* and nobody's chain */
    CHECK_STR(gone_on(of_all, false, 8, 0, ITEM), NO_ITEM);
    response_store_destroy(of_all);
    CHECK_STR(gone_on(store, false, 7, 0, ITEM), "1 messages");
    CHECK_STR(gone_on(store, false, 8, 0, ITEM), NO_ITEM);
    CHECK_STR(gone_on(store, false, 8, 7, ITEM), "1 messages");
    CHECK_STR(gone_on(NULL, false, 7, 7, ITEM), NO_ITEM);
    for (int i = 0; i < 3; i++) {
        static const err_code READ[] = {ERR_OK, ERR_NOT_FOUND, ERR_IO};
        static const char *const ITEMS[] = {"1 messages", NO_ITEM, "io at disk: the disk is gone"};
        static const char *const TALKS[] = {
            "2 messages", "not_found at conversation: there is no such conversation, or it is no longer kept",
            "io at disk: the disk is gone"};
        read_answer = READ[i];
        CHECK_STR(gone_on(store, true, 8, 0, ITEM), ITEMS[i]);
        CHECK_STR(gone_on(store, true, 7, 0, ITEM), "1 messages"); /* nobody has to be asked */
        CHECK_STR(gone_on(NULL, true, 7, 0, ITEM), ITEMS[i]);
        CHECK_STR(gone_on(store, true, 7, 0, TALK), TALKS[i]);
        CHECK_STR(gone_on(store, false, 7, 0, TALK), TALKS[1]);
    }
    response_store_destroy(store);
}

/* ---- what is left out ---- */

/* A conversation of such roles, each with a text of 10 bytes ('U', 'A': of 100) or, for 'i', an image: what is left of it. */
static const char *dropped(const char *roles, double share)
{
    static char left[64];
    static const char TEXT[100] = "";
    chat_part parts[20];
    chat_message messages[20];
    chat_input in = {.messages = messages, .n_messages = strlen(roles)};
    for (size_t i = 0; i < in.n_messages; i++) {
        const char role = roles[i];
        parts[i] = (chat_part){.kind = role == 'i' ? CHAT_IMAGE : CHAT_TEXT,
                               .text = TEXT,
                               .text_len = role < 'a' ? 100 : 10,
                               .param = &roles[i]};
        messages[i] = (chat_message){.role = role == 's'                  ? CHAT_SYSTEM
                                             : role == 'a' || role == 'A' ? CHAT_ASSISTANT
                                             : role == 't'                ? CHAT_TOOL
                                                                          : CHAT_USER,
                                     .parts = &parts[i],
                                     .n_parts = 1};
    }
    const bool has = conversation_drop_oldest(&in, share);
    snprintf(left, sizeof left, "%d ", has);
    for (size_t i = 0; i < in.n_messages; i++) {
        snprintf(left + strlen(left), sizeof left - strlen(left), "%c", in.messages[i].parts->param[0]);
    }
    return left;
}

static void test_dropped(void)
{
    static const struct {
        const char *roles;
        double share;
        const char *left;
    } ROWS[] = {
        {"uaua", 0.1, "1 ua"},     {"uauaua", 0.1, "1 uaua"}, {"uauaua", 0.5, "1 ua"},
        {"uauaua", 1.0, "1 ua"},   {"suaua", 0.1, "1 sua"},   {"ssuaua", 0.9, "1 ssua"},
        {"u", 0.5, "0 u"},         {"su", 0.5, "0 su"},       {"s", 0.5, "0 s"},
        {"ss", 0.5, "0 ss"},       {"ua", 0.5, "0 ua"},       {"uatat", 0.5, "0 uatat"},
        {"uatatua", 0.1, "1 ua"},  {"auau", 0.1, "1 uau"},    {"aaa", 0.5, "0 aaa"},
        {"aau", 0.5, "1 u"},       {"uAuaUa", 0.1, "1 uaUa"}, {"uaUAua", 0.2, "1 ua"},
        {"UAuaua", 0.5, "1 uaua"}, {"iaiaua", 0.1, "1 iaua"}, {"iaiaua", 0.4, "1 ua"},
        {"usua", 0.1, "1 ua"},     {"uausua", 0.3, "1 usua"}, {"tua", 0.1, "1 ua"},
        {"", 0.5, "0 "},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const char *left = dropped(ROWS[i].roles, ROWS[i].share);
        if (strcmp(left, ROWS[i].left) != 0) {
            fprintf(stderr, "  %s, %g\n", ROWS[i].roles, ROWS[i].share);
        }
        CHECK_STR(left, ROWS[i].left);
    }
}

/* ---- uploaded files ---- */

static file_store *files;

/* The id of a new file. */
static const char *upload(const char *bytes_of_it, size_t n)
{
    static stored_file kept;
    err_detail d = {0};
    file_writer *w = NULL;
    const file_facts facts = {.scope = 7, .name = "a", .purpose = "user_data"};
    CHECK_OK(file_store_reserve(files, 7, n, &d), d);
    CHECK_OK(file_writer_create(&w, "/tmp", n, &d), d);
    CHECK_OK(file_writer_add(w, bytes_of_it, n, &d), d);
    CHECK_OK(file_store_add(files, w, n, &facts, &kept, &d), d);
    return kept.id;
}

/* Something else has cut it. */
static void cut_file(const char *id)
{
    char path[64];
    file_handle h;
    err_detail d;
    CHECK_OK(file_store_open(files, 7, id, &h, &d), d);
    snprintf(path, sizeof path, "/proc/self/fd/%d", h.fd);
    CHECK(truncate(path, 1) == 0);
    close(h.fd);
}

/* A video is read where it lies, and closed with the request. */
static const char *of_video(const chat_input *in, const char *id)
{
    static char text[128];
    const chat_part *p = in->messages[0].parts;
    char data[64] = "";
    file_handle h;
    err_detail d;
    CHECK_OK(file_store_open(files, 7, id, &h, &d), d);
    CHECK(p->kind == CHAT_VIDEO && !p->data && p->hash && memcmp(p->hash, h.hash, HASH_BYTES) == 0);
    CHECK(in->n_fds == 1 && in->fds[0] == p->fd && p->data_bytes < sizeof data);
    CHECK_INT(pread(p->fd, data, sizeof data, 0), p->data_bytes);
    snprintf(text, sizeof text, "%zu bytes: %s", p->data_bytes, data);
    close(h.fd);
    return text;
}

/* What comes of an uploaded file in a message; `type` is "document" or "image", or "video_url" of a chat. */
static const char *of_file(file_store *store, const char *type, const char *id)
{
    static char text[1024];
    char body[512];
    api_request r;
    err_detail d = {0};
    const bool is_chat = strcmp(type, "video_url") == 0;
    snprintf(body, sizeof body,
             "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"%s\",\"source\":{"
             "\"type\":"
             "\"file\",\"file_id\":\"%s\"}}]}]}",
             type, id);
    if (is_chat) {
        snprintf(body, sizeof body,
                 "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"%s\",\"%s\":\"upload:%s\"}]}]}",
                 type, type, id);
    }
    api_request_init(&r);
    r.files = store;
    r.scope = 7;
    const err_code err = is_chat ? chat_request_parse(&r, body, strlen(body), NULL, &d)
                                 : messages_request_parse(&r, body, strlen(body), true, NULL, &d);
    if (err != ERR_OK) {
        snprintf(text, sizeof text, "%s at %s: %s", err_name(err), d.param, d.text);
    } else if (is_chat) {
        snprintf(text, sizeof text, "%s", of_video(r.in, id));
    } else {
        const chat_part *p = r.in->messages[0].parts;
        snprintf(text, sizeof text, "%zu bytes: %.*s", p->data_bytes, p->data ? (int)p->data_bytes : 99,
                 p->data ? (const char *)p->data : p->text);
        CHECK(!p->data || (p->hash && p->kind == CHAT_IMAGE));
    }
    api_request_deinit(&r);
    return text;
}

/* One byte more than a body has: a video may be as long. */
static void test_large_files(void)
{
    char *large = calloc(1, LIMIT_BODY_BYTES + 1);
    CHECK(large != NULL);
    memcpy(large, "GIF89a", 6);
    CHECK_STR(of_file(files, "image", upload(large, LIMIT_BODY_BYTES)), "67108864 bytes: GIF89a");
    char id[FILE_ID_MAX];
    snprintf(id, sizeof id, "%s", upload(large, LIMIT_BODY_BYTES + 1));
    CHECK_STR(of_file(files, "image", id),
              "limit at messages[0].content[0].file_id: an image may have 67108864 bytes at most");
    CHECK_STR(of_file(files, "document", id),
              "limit at messages[0].content[0].source: a text may have 67108864 bytes at most");
    free(large);
}

static void test_files(void)
{
    static const char NO_TEXT[] =
        "unsupported at messages[0].content[0].source: messages[0].content[0].source is no text in UTF-8",
                      CUT[] = "io at messages[0].content[0].source: an uploaded file cannot be read",
                      GONE[] = "not_found at messages[0].content[0].file_id: there is no such file";
    char id[FILE_ID_MAX];
    files = file_store_create(
        &(file_store_options){.dir = "/tmp", .max_bytes = 1 << 28, .quota = 1 << 28, .expire_s = 60});
    CHECK_STR(of_file(files, "video_url", upload("\x1a\x45\xdf\xa3 webm", 9)),
              "9 bytes: \x1a\x45\xdf\xa3 webm");
    test_large_files();
    CHECK_STR(of_file(files, "document", upload("some words, ä", 14)),
              "0 bytes: <document>\nsome words, ä\n</document>\n");
    CHECK_STR(of_file(files, "document", upload("w\xff\xfe", 3)), NO_TEXT);
    CHECK_STR(of_file(files, "document", upload("a\0b", 3)), NO_TEXT);
    CHECK_STR(of_file(files, "document", upload("GIF89a 11 b", 11)), NO_TEXT);
    CHECK_STR(of_file(files, "image", upload("GIF89a 11 c", 11)), "11 bytes: GIF89a 11 c");
    snprintf(id, sizeof id, "%s", upload("to be cut", 9));
    CHECK_STR(of_file(files, "document", id), "0 bytes: <document>\nto be cut\n</document>\n");
    cut_file(id);
    CHECK_STR(of_file(files, "document", id), CUT);
    snprintf(id, sizeof id, "%s", upload("GIF89a to be cut", 16));
    cut_file(id);
    CHECK_STR(of_file(files, "image", id),
              "io at messages[0].content[0].file_id: an uploaded file cannot be read");
    CHECK(file_store_delete(files, 7, id));
    CHECK(strncmp(of_file(files, "image", id), GONE, sizeof GONE - 1) == 0);
    CHECK_STR(of_file(NULL, "image", id), GONE);
    file_store_destroy(files);
}

/* ---- long texts ---- */

/* A response whose input, or whose object text, has so many bytes. */
static const char *of_long(const char *fields, size_t n_input, size_t n_text, response_store *store)
{
    static char said[1024];
    api_request r;
    err_detail d = {0};
    bytes body = bytes_empty((size_t)40 << 20);
    bytes_printf(&body, "{%s\"text\":{\"a\":\"", fields);
    for (size_t i = 0; i < n_text; i++) {
        bytes_append_char(&body, 't');
    }
    bytes_append_str(&body, "\"},\"input\":\"");
    for (size_t i = 0; i < n_input; i++) {
        bytes_append_char(&body, 'i');
    }
    bytes_append_str(&body, "\"}");
    api_request_init(&r);
    r.response_store = store;
    const err_code err = responses_request_parse(&r, bytes_str(&body), body.len, false, NULL, &d);
    snprintf(said, sizeof said, "%s at %s: %s; %s", err_name(err), d.param, d.text,
             r.reply.items.len ? "kept" : "not kept");
    api_request_deinit(&r);
    bytes_deinit(&body);
    return said;
}

static void test_large(void)
{
    static const char HEAD[] = "{\"created_at\":1,\"metadata\":{}}";
    response_store *store = response_store_create(1000, 3, 60, NULL);
    CHECK(response_store_put(store, 0, "conv_1", HEAD, sizeof HEAD - 1, 0, clock_ms()));
    CHECK_STR(of_long("", 10, 10, store), "ok at : ; kept");
    CHECK_STR(of_long("", 10, ((size_t)4 << 20) - 8, store), "ok at : ; kept");
    CHECK_STR(of_long("", 10, ((size_t)4 << 20) - 7, store),
              "invalid at text: text must be an object of at most 4194304 bytes; not kept");
    CHECK_STR(of_long("", LIMIT_STORED_RESPONSE_BYTES, 10, store), "ok at : ; not kept");
    CHECK_STR(of_long("\"conversation\":\"conv_1\",", 10, 10, store), "ok at : ; kept");
    CHECK_STR(
        of_long("\"conversation\":\"conv_1\",", LIMIT_STORED_RESPONSE_BYTES, 10, store),
        "limit at conversation: the conversation may have 16 MiB with this input; begin another; not kept");
    response_store_destroy(store);
}

/* ---- tools ---- */

static err_code offer(size_t n, err_detail *d)
{
    api_request r;
    bytes body = bytes_empty(1 << 20);
    bytes_append_str(&body, "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"tools\":[");
    for (size_t i = 0; i < n; i++) {
        bytes_printf(&body, "%s{\"type\":\"function\",\"function\":{\"name\":\"t%zu\"}}", i ? "," : "", i);
    }
    bytes_append_str(&body, "]}");
    api_request_init(&r);
    *d = (err_detail){0};
    const err_code err = chat_request_parse(&r, bytes_str(&body), body.len, NULL, d);
    api_request_deinit(&r);
    bytes_deinit(&body);
    return err;
}

/* Tools as the template gets them. */
static const char *template_tools(const char *fields)
{
    static char text[1024];
    char body[1024];
    api_request r;
    err_detail d = {0};
    bytes out = {.data = text, .cap = sizeof text - 1, .max = sizeof text - 1};
    snprintf(body, sizeof body, "{\"input\":\"q\",%s}", fields);
    api_request_init(&r);
    CHECK_OK(responses_request_parse(&r, body, strlen(body), false, NULL, &d), d);
    text[0] = '\0';
    if (r.in->tools) {
        json_write(&out, r.in->tools);
    }
    api_request_deinit(&r);
    return text;
}

static void test_tools(void)
{
#define FLAT(name)                                                                                           \
    "{\"type\":\"function\",\"name\":\"" name                                                                \
    "\",\"strict\":true,\"description\":\"d\",\"parameters\":{},\"more\":1}"
#define NESTED(name)                                                                                         \
    "{\"type\":\"function\",\"function\":{\"name\":\"" name                                                  \
    "\",\"description\":\"d\",\"parameters\":{},\"more\":1}}"
#define ALLOWED(mode, name)                                                                                  \
    "\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"" mode                                           \
    "\",\"tools\":[{\"type\":\"function\",\"name\":\"" name "\"}]}"
    CHECK_STR(template_tools("\"tools\":[" FLAT("f") "," FLAT("g") "]"), "[" NESTED("f") "," NESTED("g") "]");
    CHECK_STR(template_tools("\"tools\":[" FLAT("f") "," FLAT("g") "]," ALLOWED("auto", "g")),
              "[" NESTED("g") "]");
    CHECK_STR(template_tools("\"tools\":[" FLAT("f") "],\"tool_choice\":\"none\""), "");
    CHECK_STR(template_tools("\"tools\":[]"), "");
    err_detail d;
    CHECK_OK(offer(LIMIT_TOOLS, &d), d);
    CHECK_INT(offer(LIMIT_TOOLS + 1, &d), ERR_INVALID);
    CHECK_STR(d.text, "tools must be a list of at most 512 tools");
}

/* ---- answers ---- */

static const char *progress(const responses_reply *r, gen_phase phase, double eta_ms)
{
    static char text[512];
    bytes out = bytes_empty(512);
    responses_reply_progress(&out, r, phase, 3, 9, 2, 12.4, eta_ms);
    const char *from = strstr(bytes_str(&out), ",\"phase\"");
    CHECK(strncmp(bytes_str(&out), "{\"type\":\"response.progress\",\"response_id\":\"resp_", 46) == 0);
    snprintf(text, sizeof text, "%s", from ? from : "?");
    bytes_deinit(&out);
    return text;
}

static void test_answers(void)
{
    const reply_options opt = {.n_choices = 1};
    responses_reply r;
    api_error e;
    responses_reply_init(&r, &opt, "m", 1 << 16);
    CHECK_STR(progress(&r, GEN_PHASE_MEDIA, 24.8), ",\"phase\":\"media_decode\",\"processed\":3,\"total\":9,"
                                                   "\"cached\":2,\"unit\":\"frames\",\"elapsed_ms\":12,"
                                                   "\"eta_ms\":24.8}");
    CHECK_STR(progress(&r, GEN_PHASE_VISION, NAN), ",\"phase\":\"vision_encode\",\"processed\":3,\"total\":9,"
                                                   "\"cached\":2,\"unit\":\"tiles\",\"elapsed_ms\":12,"
                                                   "\"eta_ms\":null}");
    CHECK_STR(progress(&r, GEN_PHASE_PREFILL, INFINITY), ",\"phase\":\"prefill\",\"processed\":3,\"total\":9,"
                                                         "\"cached\":2,\"unit\":\"tokens\",\"elapsed_ms\":12,"
                                                         "\"eta_ms\":null}");
    api_error_set(&e, 400, "image_parse_error", "input[0]", "no image");
    const response_result result = {.status = RESPONSE_FAILED, .error = &e};
    responses_reply_finish(&r, &result);
    bytes out = bytes_empty(1 << 16);
    responses_reply_write(&out, &r);
    CHECK(strstr(
        bytes_str(&out),
        "\"error\":{\"code\":\"image_parse_error\",\"message\":\"no image\",\"type\":\"invalid_request_"
        "error\",\"param\":\"input[0]\"}"));
    responses_reply_deinit(&r);
    bytes_clear(&out);
    messages_reply_error_body(&out, &e);
    CHECK_STR(bytes_str(&out),
              "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"no image\","
              "\"details\":{\"error_code\":\"image_parse_error\"}}}");
    api_error_set(&e, 500, NULL, NULL, "it broke");
    bytes_clear(&out);
    messages_reply_error_body(&out, &e);
    CHECK_STR(
        bytes_str(&out),
        "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"it broke\",\"details\":null}}");
    bytes_deinit(&out);
}

int main(void)
{
    test_vectors();
    test_talks();
    test_stored();
    test_dropped();
    test_files();
    test_large();
    test_tools();
    test_answers();
    CHECK_DONE();
}
