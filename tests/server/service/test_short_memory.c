/* short_memory: the whole server in this process, with the double of the engine, when an allocation of the loop or of a worker
 * fails. Each request of a small set is asked with the first one failing, then with the second, and so on, and what comes
 * back is compared with a file: an answer is whole, or says that it is not. Which allocation brings what is not recorded, as
 * threads run beside each other; all that may come of a request is.
 */
#define _GNU_SOURCE /* memmem */
#include <errno.h>

#include "base/log.h"
#include "base/memory.h"
#include "tests/recorded.h"
#include "tests/server/fake_options.h"
#include "tests/server/service/transcript_wire.h"

enum { NOBODY, LOOP, WORKER, ROLES, MOST_POINTS = 4000, MOST_KINDS = 64, KIND_BYTES = 700 };

static const char *const ROLE_NAMES[ROLES] = {"", "the loop", "a worker"};

/* ---- what fails ---- */

static _Thread_local int role;
static atomic_int failing_role, left; /* which thread's allocation, and how many it makes until then */

typedef struct beginning {
    void *(*fn)(void *);
    void *ctx;
    int role;
} beginning;

static void *begin(void *ctx)
{
    const beginning b = *(beginning *)ctx;
    free(ctx);
    role = b.role;
    return b.fn(b.ctx);
}

int __real_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx);

/* The test starts the loop, and the loop the workers: the second thread that it needs at its begin (behind the one that
 * writes files), and more of them when it is at work. */
static atomic_int n_begun;
static atomic_bool is_ready;

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx)
{
    const bool is_worker = role == LOOP && (n_begun == 2 || atomic_load(&is_ready));
    const int next = n_begun == 0 ? LOOP : is_worker ? WORKER : NOBODY;
    beginning *b = calloc(1, sizeof *b);
    if (!b) {
        return EAGAIN;
    }
    *b = (beginning){fn, ctx, next};
    n_begun += role == NOBODY ? n_begun == 0 : role == LOOP;
    const int err = __real_pthread_create(out, attr, begin, b);
    if (err != 0) {
        free(b);
    }
    return err;
}

static bool must_fail(void)
{
    return role != NOBODY && role == atomic_load(&failing_role) && atomic_fetch_sub(&left, 1) == 1;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return must_fail() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return must_fail() ? NULL : __real_realloc(old, size);
}

/* ---- what is asked ---- */

#define CALL                                                                                                 \
    "!fast !raw See. <tool_call>\\n<function=calculate>\\n<parameter=expression>\\n2*3\\n</parameter>"       \
    "\\n</function>\\n</tool_call>"
#define CALCULATOR "\"tools\": [{\"type\": \"mcp\", \"server_label\": \"calculator\", \"require_approval\": "

static const struct {
    const char *what, *head, *body; /* NUMBER in the head: another one each time */
} ASKS[] = {
    {"a chat", "POST /v1/chat/completions\n",
     "{\"messages\": [{\"role\": \"user\", \"content\": \"!fast !think hi\"}], \"logprobs\": true}"},
    {"a chat as a stream, twice", "POST /v1/chat/completions\n",
     "{\"messages\": [{\"role\": \"user\", \"content\": \"!fast hi\"}], \"stream\": true, \"n\": 2, "
     "\"stream_options\": {\"include_usage\": true}}"},
    {"a chat that is asked for by a name", "POST /v1/chat/completions\nIdempotency-Key: NUMBER\n",
     "{\"messages\": [{\"role\": \"user\", \"content\": \"!fast hi\"}]}"},
    {"a chat with a call of the client's", "POST /v1/chat/completions\n",
     "{\"messages\": [{\"role\": \"user\", \"content\": \"" CALL "\"}], \"tools\": [{\"type\": "
     "\"function\", \"function\": {\"name\": \"calculate\", \"parameters\": {\"type\": \"object\"}}}]}"},
    {"a response", "POST /v1/responses\n",
     "{\"input\": \"!fast hi\", \"metadata\": {\"a\": \"b\"}, \"instructions\": \"Be kind.\"}"},
    {"a response as a stream", "POST /v1/responses\n", "{\"input\": \"!fast hi\", \"stream\": true}"},
    {"a response with a call", "POST /v1/responses\n",
     "{\"input\": \"" CALL "\", " CALCULATOR "\"never\"}]}"},
    {"a response that asks for leave", "POST /v1/responses\n",
     "{\"input\": \"" CALL "\", " CALCULATOR "\"always\"}], \"stream\": true}"},
    {"a chat with a call that runs here", "POST /v1/chat/completions\n",
     "{\"messages\": [{\"role\": \"user\", \"content\": \"" CALL "\"}], " CALCULATOR "\"never\"}]}"},
    {"a message", "POST /v1/messages\n",
     "{\"max_tokens\": 30, \"messages\": [{\"role\": \"user\", \"content\": \"!fast hi\"}], \"stream\": "
     "true}"},
    {"a completion", "POST /v1/completions\n", "{\"prompt\": [\"ab\", \"cd\"], \"logprobs\": 1}"},
    {"a chat of another dialect", "POST /api/chat\n",
     "{\"model\": \"fake\", \"messages\": [{\"role\": \"user\", \"content\": \"!fast hi\"}]}"},
    {"vectors", "POST /v1/embeddings\n", "{\"input\": [\"a\", \"bc\"]}"},
    {"tokens", "POST /tokenize\n", "{\"content\": \"some words\"}"},
    {"a count", "POST /v1/responses/input_tokens\n", "{\"input\": \"some words\"}"},
    {"a conversation", "POST /v1/conversations\n",
     "{\"items\": [{\"type\": \"message\", \"role\": \"user\", \"content\": \"hi\"}]}"},
    {"a chat with a schema", "POST /v1/chat/completions\n",
     "{\"messages\": [{\"role\": \"user\", \"content\": \"!fast !raw {}\"}], \"stop\": [\"x\"], "
     "\"response_format\": "
     "{\"type\": \"json_schema\", \"json_schema\": {\"name\": \"n\", \"schema\": {\"type\": \"object\"}}}}"},
    {"a chat in the background", "POST /v1/responses\n",
     "{\"input\": \"!fast !delay=1 hi\", \"background\": true, \"stream\": true}"},
    {"ranks", "POST /v1/rerank\n", "{\"query\": \"a\", \"documents\": [\"b\", \"c\"]}"},
    {"a template", "POST /apply-template\n", "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}"},
    {"the tools", "GET /v1/mcp\n", NULL},
    {"the properties", "GET /props\n", NULL},
    {"the places", "GET /slots\n", NULL},
    {"the files", "GET /v1/files\n", NULL},
    {"the models", "GET /v1/models\n", NULL},
    {"the state", "GET /v1/status\n", NULL},
    {"the numbers", "GET /metrics\n", NULL},
    {"what does not exist", "GET /v1/responses/resp_0123456789abcdef01234567\n", NULL},
    {"a page that is unpacked", "GET /\n", NULL},
    {"a model", "GET /v1/models/fake\n", NULL},
    {"the models of another dialect", "GET /api/tags\n", NULL},
    {"a model of another dialect", "POST /api/show\n", "{\"model\": \"fake\"}"},
    {"a cached prompt", "GET /v1/cache/a\n", NULL},
    {"a control", "POST /v1/chat/completions/control\n", "{\"id\": \"none\", \"action\": \"reasoning_end\"}"},
    {"a file", "POST /v1/files\nContent-Type: multipart/form-data; boundary=b\n",
     "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nvision\r\n--b\r\nContent-Disposition: "
     "form-data; "
     "name=\"file\"; filename=\"a\"\r\n\r\nabc\r\n--b--\r\n"},
};

static script s;

/* The reply to a request, with signs. */
static void ask(bytes *reply, size_t which, int number)
{
    bytes sent = bytes_empty(BYTES), got = bytes_empty(BYTES);
    const char *body = ASKS[which].body, *head = ASKS[which].head;
    const int fd = open_socket(&s);
    for (const char *line = head; *line; line += strcspn(line, "\n") + 1) {
        const int len = (int)strcspn(line, "\n");
        const char *at = memmem(line, (size_t)len, "NUMBER", 6);
        if (line == head) {
            bytes_printf(&sent, "%.*s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n", len, line);
        } else if (at) {
            bytes_printf(&sent, "%.*s%d\r\n", (int)(at - line), line, number);
        } else {
            bytes_printf(&sent, "%.*s\r\n", len, line);
        }
    }
    if (body) {
        bytes_printf(&sent, "%sContent-Length: %zu\r\n",
                     strstr(head, "Content-Type:") ? "" : "Content-Type: application/json\r\n", strlen(body));
    }
    bytes_printf(&sent, "\r\n%s", body ? body : "");
    send_all(fd, sent.data, sent.len);
    receive(fd, &got, NULL);
    close(fd);
    bytes_clear(&s.out);
    s.n_ids = 0;
    s.owner[0] = '\0';
    write_reply(&s, bytes_str(&got), got.len, true);
    bytes_clear(reply);
    bytes_append(reply, s.out.data, s.out.len);
    bytes_deinit(&sent);
    bytes_deinit(&got);
}

/* ---- what comes of it ---- */

static char kinds[MOST_KINDS][KIND_BYTES];
static int n_kinds;

static void note(const char *text)
{
    char kind[KIND_BYTES];
    snprintf(kind, sizeof kind, "%s", text);
    int at = 0;
    while (at < n_kinds && strcmp(kinds[at], kind) < 0) {
        at++;
    }
    if (at < n_kinds && strcmp(kinds[at], kind) == 0) {
        return;
    }
    CHECK(n_kinds < MOST_KINDS);
    if (n_kinds < MOST_KINDS) {
        memmove(kinds[at + 1], kinds[at], (size_t)(n_kinds - at) * sizeof kinds[0]);
        memcpy(kinds[at], kind, sizeof kind);
        n_kinds++;
    }
}

static const char *last_line(const char *text)
{
    const char *last = text;
    for (; *text; text += strcspn(text, "\n") + (text[strcspn(text, "\n")] != '\0')) {
        last = strcspn(text, "\n") > 2 ? text : last;
    }
    return last;
}

/* What is said to arguments that there is no memory to read. */
static const char NO_OBJECT[] = "\"the arguments are not a JSON object\"";

/* The line of the head, and the error that is said, if one is. One that says nothing is whole: else it is written down where
 * it parts from that. How an answer that had begun breaks off depends on how the threads went: it is not written down, as
 * long as it says that it did. */
static void note_reply(const bytes *whole, const bytes *reply)
{
    const char *is = bytes_str(reply), *was = bytes_str(whole), *error = NULL, *at = is;
    const bool may_differ = strstr(is, "response.snapshot") || strstr(is, "parley_build_info");
    if (strcmp(was, is) == 0 || (may_differ && strcmp(last_line(was), last_line(is)) == 0)) {
        return;
    }
    while ((at = strstr(at, "\"error\":"))) {
        at += 8;
        error = strncmp(at, "null", 4) == 0 ? error : at;
    }
    const bool is_begun = strncmp(is, "< 200", 5) == 0,
               is_cut = strstr(is, "(chunks are not whole)") || strstr(is, "(the length is wrong)");
    if (is_begun && (is_cut || (error && (memmem(error, strcspn(error, "}\n"), "memory", 6) ||
                                          strncmp(error, NO_OBJECT, strlen(NO_OBJECT)) == 0)))) {
        return;
    }
    bytes text = bytes_empty(BYTES);
    bytes_printf(&text, "%.*s", strncmp(is, "< ", 2) == 0 ? (int)strcspn(is, "\n") - 2 : 0, is + 2);
    if (error) {
        bytes_printf(&text, ", %.*s", (int)strcspn(error, "}\n"), error);
    } else if (is[2] != 'n') { /* nothing */
        size_t same = 0;
        while (is[same] && is[same] == was[same]) {
            same++;
        }
        same -= same > 40 ? 40 : same;
        bytes_printf(&text, ", NOT WHOLE: %.100s INSTEAD OF %.100s", is + same, was + same);
        for (size_t i = 0; i < text.len; i++) {
            text.data[i] = text.data[i] == '\n' ? '|' : text.data[i];
        }
    }
    note(bytes_str(&text));
    bytes_deinit(&text);
}

static void write_kinds(bytes *out, const char *who)
{
    for (int i = 0; i < n_kinds; i++) {
        bytes_printf(out, "  %s: %s\n", who, kinds[i]);
    }
    n_kinds = 0;
}

static void try_each(bytes *out, size_t which, const bytes *whole)
{
    static int number;
    bytes reply = bytes_empty(BYTES);
    for (int r = LOOP; r < ROLES; r++) {
        bool is_reached = true;
        for (int n = 1; is_reached && n < MOST_POINTS; n++) {
            atomic_store(&left, n);
            atomic_store(&failing_role, r);
            ask(&reply, which, ++number);
            atomic_store(&failing_role, NOBODY);
            is_reached = atomic_load(&left) <= 0;
            note_reply(whole, &reply);
        }
        write_kinds(out, ROLE_NAMES[r]);
    }
    bytes_deinit(&reply);
}

/* ---- the begin ---- */

/* Whether it comes to serve; false if it ends before. */
static bool is_up(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    static const char HEALTH[] = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    for (int i = 0; i < 5000; i++) {
        bytes got = bytes_empty(BYTES);
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const bool is_there = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
        if (is_there) {
            send_all(fd, HEALTH, sizeof HEALTH - 1);
            receive(fd, &got, NULL);
        }
        close(fd);
        const bool serves = strncmp(bytes_str(&got), "HTTP/1.1 200 ", 13) == 0;
        bytes_deinit(&got);
        if (serves || !is_there) {
            return serves;
        }
        usleep(1000);
    }
    return false;
}

static void try_begins(bytes *out, const serve_options *opt)
{
    bool is_reached = true;
    for (int n = 1; is_reached && n < MOST_POINTS; n++) {
        char kind[80];
        int port = 0;
        atomic_store(&n_begun, 0);
        atomic_store(&left, n);
        atomic_store(&failing_role, LOOP);
        serve_thread *t = serve_thread_start(opt, &port);
        const bool serves = t && is_up(port);
        atomic_store(&failing_role, NOBODY);
        is_reached = atomic_load(&left) <= 0;
        snprintf(kind, sizeof kind, "it %s, and ends with %d", serves ? "serves" : "does not serve",
                 t ? serve_thread_stop(t) : -port);
        note(kind);
    }
    write_kinds(out, ROLE_NAMES[LOOP]);
}

int main(void)
{
    static fake_options f;
    bytes out = bytes_empty(BYTES), whole = bytes_empty(BYTES);
    char *words[] = {"--tools", "calculator"};
    log_set_level(LOG_OFF);
    s = (script){.path = "short_memory", .out = bytes_empty(BYTES), .skips_numbers = true};
    folder_make(s.folder);
    CHECK(fake_options_read(&f, 2, words));
    f.serve.quiet = true;
    f.serve.drain_timeout_s = 0;
    f.serve.upload_dir = s.folder;
    bytes_append_str(&out, "\nthe begin\n");
    try_begins(&out, &f.serve);
    atomic_store(&n_begun, 0);
    serve_thread *t = serve_thread_start(&f.serve, &s.port);
    CHECK(t != NULL);
    if (!t) {
        CHECK_DONE();
    }
    wait_for(&s, "/health", " 200 ");
    wait_for(&s, "/v1/mcp", "\"state\":\"ready\"");
    atomic_store(&is_ready, true);
    for (size_t i = 0; i < ARRAY_LEN(ASKS); i++) {
        ask(&whole, i, 0);
        ask(&whole, i, 0); /* as it is from the second time on */
        bytes_printf(&out, "\n%s\n", ASKS[i].what);
        try_each(&out, i, &whole);
        wait_for(&s, "/v1/status", "\"running\":[],\"waiting\":[]");
    }
    CHECK_INT(serve_thread_stop(t), 0);
    fake_options_end(&f);
    recorded_check("server/service/recorded/short_memory.txt", bytes_str(&out));
    bytes_deinit(&out);
    bytes_deinit(&whole);
    bytes_deinit(&s.out);
    CHECK_DONE();
}
