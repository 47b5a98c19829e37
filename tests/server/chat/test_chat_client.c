/* chat_client: addresses, an answer piece by piece, its figures and its end, and what goes wrong with a server, in time that
 * is made up. */
#include "server/chat/chat_client.h"

#include <malloc.h>
#include <sys/resource.h>

#include "base/limits.h"
#include "server/media/fetch.h"
#include "tests/alloc_fail.h"
#include "tests/folder.h"
#include "tests/open_files.h"
#include "tests/said.h"
#include "tests/server/made_up_server.h"

static const char *says; /* what the server answers */
static char asked[8192]; /* of the last request: its line, key and body */
static int n_asked;

static const char *answer(int server, const char *head, const char *body)
{
    const char *key = strstr(head, "\r\nAuthorization: ");
    snprintf(asked, sizeof asked, "%d %.*s|%.*s|%s", server, (int)strcspn(head, "\r"), head,
             key ? (int)strcspn(key + 2, "\r") : 0, key ? key + 2 : "", body);
    n_asked++;
    return says;
}

/* ---- an answer ---- */

static char heard[1024];
static int n_waits, stop_at; /* ... after so many looks; 0: never */
static int n_looks;
static double last_wait;
static chat_result result;
static err_detail detail;

static void on_text(void *ctx, bool is_thought, const char *text, size_t n)
{
    (void)ctx;
    const size_t had = strlen(heard);
    snprintf(heard + had, sizeof heard - had, "%s%.*s|", is_thought ? "?" : "", (int)n, text);
}

static void on_wait(void *ctx, double seconds)
{
    (void)ctx;
    CHECK(seconds >= last_wait);
    last_wait = seconds;
    n_waits++;
}

static bool is_stopped(void *ctx)
{
    (void)ctx;
    return ++n_looks == stop_at;
}

static err_code ask(chat_client *c, const char *text)
{
    static const chat_hooks HOOKS = {.on_text = on_text, .on_wait = on_wait, .is_stopped = is_stopped};
    says = text;
    heard[0] = '\0';
    n_waits = n_looks = 0;
    last_wait = 0;
    memset(&detail, 0, sizeof detail);
    return chat_client_ask(c, "{\"q\":1}", 7, &HOOKS, &result, &detail);
}

#define DELTA(name, text)                                                                                    \
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"" name "\":\"" text "\"},\"finish_reason\":null}]}\n\n"
#define END(reason) "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" reason "\"}]}\n\n"
#define USAGE                                                                                                \
    "data: "                                                                                                 \
    "{\"choices\":[],\"usage\":{\"prompt_tokens\":17,\"completion_tokens\":5,\"prompt_tokens_details\":"     \
    "{\"cached_tokens\":3}}}\n\n"
#define DONE "data: [DONE]\n\n"

static void test_answers(chat_client *c)
{
    CHECK_OK(ask(c, LATER LATER EVENTS_HEAD LATER DELTA("reasoning_content", "hm") DELTA("content", "Hel")
                        LATER DELTA("content", "lo") END("stop") USAGE DONE CUT),
             detail);
    CHECK_STR(heard, "?hm|Hel|lo|");
    CHECK(!result.is_stopped && !result.is_cut);
    CHECK_INT(result.n_prompt, 17);
    CHECK_INT(result.n_cached, 3);
    CHECK_INT(result.n_tokens, 5);
    CHECK_NEAR(result.first_ms, 3000, 60);
    CHECK_NEAR(result.all_ms, 4000, 60);
    CHECK(n_waits >= 28 && n_waits <= 37); /* ten times a second, until the first text */
    CHECK(n_looks >= 38 && n_looks <= 50); /* until the end */
    CHECK_NEAR(last_wait, 3.0, 0.15);

    CHECK_OK(ask(c, EVENTS_HEAD DELTA("content", "a") END("length") DONE CUT), detail);
    CHECK(result.is_cut);
    CHECK_INT(result.n_prompt + result.n_cached + result.n_tokens, 0); /* it does not say */
    CHECK_OK(
        ask(c, EVENTS_HEAD
            "data: "
            "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"tool_calls\":[{\"index\":0,\"id\":"
            "\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":"
            "null}]}\n\n" END("tool_calls") DONE CUT),
        detail);
    CHECK_STR(heard, "a|"); /* of calls nothing is said */
    CHECK_OK(ask(c, EVENTS_HEAD LATER END("stop") DONE CUT), detail);
    CHECK_STR(heard, "");
    CHECK_NEAR(result.first_ms, result.all_ms, 1e-9);
    CHECK_OK(ask(c, EVENTS_HEAD DELTA("content", "x") END("stop") DONE MUTE),
             detail); /* behind its end nothing is waited for */
    CHECK_STR(heard, "x|");
    CHECK(result.all_ms < 500);

    while (made_up_serve()) {
    }
    const int gone = made_up_gone;
    stop_at = 25;
    CHECK_OK(ask(c, EVENTS_HEAD LATER DELTA("content", "so far") MUTE), detail);
    stop_at = 0;
    CHECK(result.is_stopped);
    CHECK_STR(heard, "so far|");
    CHECK_INT(n_looks, 25);
    CHECK_NEAR(result.all_ms, 2300, 250);
    CHECK_NEAR(result.first_ms, 1000, 60);
    CHECK_OK(ask(c, EVENTS_HEAD DELTA("content", "next") END("stop") DONE CUT), detail);
    CHECK_INT(made_up_gone, gone + 1); /* the server of the one that was stopped has heard of it */
}

/* ---- what goes wrong ---- */

static void test_faults(chat_client *c, const char *where)
{
    static const struct {
        const char *answer, *heard, *text;
        err_code err;
    } ROWS[] = {
        {EVENTS_HEAD DELTA("content", "half") CUT, "half|",
         "the server has ended in the middle of its answer", ERR_UPSTREAM},
        {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9000\r\n\r\n" DELTA(
             "content", "half") CUT,
         "half|", "the connection to WHERE failed: ", ERR_UPSTREAM},
        {"", "", "the connection to WHERE failed: ", ERR_UPSTREAM},
        {MUTE, "", "the server at WHERE has gone silent", ERR_UPSTREAM},
        {"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "",
         "the server at WHERE refuses this key (401); --connect-key", ERR_INVALID},
        {"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "", "refuses this key (403); --connect-key",
         ERR_INVALID},
        {"HTTP/1.1 400 No\r\nContent-Type: application/json\r\nConnection: "
         "close\r\n\r\n{\"error\":{\"message\":\"too hard it\"}}" CUT,
         "", "too hard", ERR_INVALID},
        {EVENTS_HEAD "data: nonsense\n\n" CUT, "", "the server", ERR_UPSTREAM},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char text[512];
        const char *at = strstr(ROWS[i].text, "WHERE");
        snprintf(text, sizeof text, "%.*s%s%s", at ? (int)(at - ROWS[i].text) : 0, ROWS[i].text,
                 at ? where : "", at ? at + 5 : ROWS[i].text);
        const int64_t began = made_up_ns;
        if (where[0] == '/' && strstr(ROWS[i].text, "silent")) {
            continue; /* an hour takes its time */
        }
        CHECK_INT(ask(c, ROWS[i].answer), ROWS[i].err);
        CHECK_STR(heard, ROWS[i].heard);
        CHECK_HAS(detail.text, text);
        CHECK(!result.is_stopped);
        const double took_s = (double)(made_up_ns - began) / 1e9;
        CHECK(strstr(ROWS[i].text, "silent") ? took_s > 3590 && took_s < 3620 : took_s < 1);
    }
}

/* ---- models ---- */

static void test_models(chat_client *c)
{
    static const struct {
        const char *answer, *model, *text;
    } ROWS[] = {
        {PLAIN("{\"data\":[{\"id\":\"one\"},{\"id\":\"two\",\"status\":{\"value\":\"loaded\"}},{\"id\":"
               "\"three\",\"status\":{\"value\":\"loaded\"}}]}"),
         "two", NULL},
        {PLAIN("{\"data\":[{\"id\":\"one\",\"status\":{\"value\":\"unloaded\"}},{\"id\":\"two\"}]}"), "one",
         NULL},
        {PLAIN("{\"data\":[{\"name\":\"no id\"},{\"id\":\"two\"}]}"), "two", NULL},
        {PLAIN("{\"data\":[]}"), NULL, "/models lists no model"},
        {PLAIN("[]"), NULL, "/models lists no model"},
        {PLAIN("hello"), NULL, "/models answers 200 and no list of models"},
        {"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}", NULL,
         "/models answers 404 and no list of models; does a server"},
        {LATER "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n{}", NULL, "refuses this key (401)"},
        {LATER MUTE, NULL, "has gone silent"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        bytes out = bytes_empty(100);
        const int64_t began = made_up_ns;
        says = ROWS[i].answer;
        const err_code err = chat_client_model(c, &out, &detail);
        CHECK((err == ERR_OK) == (ROWS[i].model != NULL));
        CHECK_STR(bytes_str(&out), ROWS[i].model ? ROWS[i].model : "");
        CHECK(ROWS[i].model || strstr(detail.text, ROWS[i].text));
        CHECK(made_up_ns - began < 31 * MADE_UP_S); /* of a list that does not come */
        bytes_deinit(&out);
    }
    bytes tight = bytes_empty(2);
    says = PLAIN("{\"data\":[{\"id\":\"one\"}]}");
    CHECK_INT(chat_client_model(c, &tight, &detail), ERR_NOMEM);
    bytes_deinit(&tight);

    bytes out = bytes_empty(100); /* in pieces, and one that is too long: it is not read to its end */
    says = PLAIN_HEAD "{\"data\":[{\"id\":" LATER "\"one\"}]}" CUT;
    CHECK_OK(chat_client_model(c, &out, &detail), detail);
    CHECK_STR(bytes_str(&out), "one");
    static char endless[(4 << 20) + 200];
    const int n = snprintf(endless, sizeof endless, "%s", PLAIN_HEAD "{\"data\":[{\"id\":\"one\"},");
    memset(endless + n, ' ', 4 << 20);
    memcpy(endless + n + (4 << 20), LATER "{}]}" CUT, 7);
    says = endless;
    const int64_t began = made_up_ns;
    CHECK_INT(chat_client_model(c, &out, &detail), ERR_UPSTREAM);
    CHECK_HAS(detail.text, "/models answers 200 and no list of models");
    CHECK(made_up_ns - began < MADE_UP_S);
    bytes_deinit(&out);
}

static err_code ask_once(void *c)
{
    return ask(c, EVENTS_HEAD DELTA("content", "one") END("stop") DONE CUT);
}

static err_code model_once(void *c)
{
    bytes out = bytes_empty(100);
    says = PLAIN("{\"data\":[{\"id\":\"one\"}]}");
    const err_code err = chat_client_model(c, &out, &detail);
    bytes_deinit(&out);
    return err;
}

/* The longest address that is taken is asked whole. */
static void test_longest(const char *server)
{
    char text[CHAT_URL_MAX];
    chat_server at;
    snprintf(text, sizeof text, "%s/", server);
    memset(text + strlen(text), 'x', sizeof text - strlen(text));
    for (size_t n = CHAT_URL_MAX - 1; n <= CHAT_URL_MAX; n++) {
        text[n - strlen("/v1")] = '\0';
        CHECK_INT(chat_server_parse(&at, text, &detail), n < CHAT_URL_MAX ? ERR_OK : ERR_INVALID);
        text[n - strlen("/v1")] = 'x';
    }
    text[CHAT_URL_MAX - 1 - strlen("/v1")] = '\0';
    CHECK_OK(chat_server_parse(&at, text, &detail), detail);
    CHECK_INT(strlen(at.base), CHAT_URL_MAX - 1);
    chat_client *c = chat_client_create(&at, NULL);
    CHECK_OK(ask_once(c), detail);
    CHECK_HAS(asked, "x/v1/chat/completions HTTP/1.1|");
    CHECK_OK(model_once(c), detail);
    CHECK_HAS(asked, "x/v1/models HTTP/1.1|");
    chat_client_destroy(c);
}

static err_code create_once(void *server)
{
    chat_client *c = chat_client_create(server, NULL);
    chat_client_destroy(c);
    return c ? ERR_OK : ERR_NOMEM;
}

/* None of many requests leaves anything behind: the libraries keep a few things of the first. */
static void test_kept(chat_client *c)
{
    enum { FIRST = 100, MORE = 200 };
    size_t used = 0;
    for (int i = 0; i < FIRST + MORE; i++) {
        CHECK_OK(model_once(c), detail);
        CHECK_OK(ask_once(c), detail);
        while (made_up_serve()) {
        }
        used = i == FIRST ? mallinfo2().uordblks : used;
    }
    CHECK(mallinfo2().uordblks < used + MORE * 2 * sizeof(void *));
}

static void test_short_memory(chat_client *c, chat_server *server)
{
    CHECK(alloc_fail_each(create_once, server, 100) > 1);
    int n_short = 0, n_server = 0;
    for (size_t i = 1; i < 60; i++) {
        alloc_fail_at(i);
        const err_code err = ask_once(c);
        alloc_fail_at(0);
        n_short += err == ERR_NOMEM;
        n_server +=
            err == ERR_UPSTREAM && strstr(detail.text, " has gone silent"); /* it was the server's memory */
        CHECK(err != ERR_OK || strcmp(heard, "one|") == 0);
        CHECK(err == ERR_OK || detail.text[0]);
    }
    CHECK(n_short > 5);
    CHECK_INT(n_server, 1);
    alloc_fail_at(1);
    CHECK_INT(ask_once(c), ERR_NOMEM);
    alloc_fail_at(0);
    CHECK_STR(detail.text, "there is not enough memory to ask the server");
}

/* Without descriptors there is no client; which server is asked by way of a proxy. */
static void test_ways(const char *proxy)
{
    chat_server far, unheard;
    struct rlimit known, none;
    CHECK_OK(chat_server_parse(&far, "https://far.example", &detail), detail);
    CHECK_OK(chat_server_parse(&unheard, "unix:/no", &detail), detail);
    CHECK(getrlimit(RLIMIT_NOFILE, &known) == 0);
    none = (struct rlimit){.rlim_max = known.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK(!chat_client_create(&far, NULL));
    CHECK(setrlimit(RLIMIT_NOFILE, &known) == 0);

    chat_client *c = chat_client_create(&far, NULL);
    setenv("https_proxy", proxy, 1);
    CHECK_INT(ask(c, "HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n"), ERR_UPSTREAM);
    CHECK_STR(asked, "0 CONNECT far.example:443 HTTP/1.1||");
    const int64_t began = made_up_ns;
    CHECK_INT(ask(c, MUTE), ERR_UPSTREAM); /* there is no connection yet */
    CHECK_STR(detail.text, "the server at https://far.example/v1 has gone silent");
    CHECK_NEAR((double)(made_up_ns - began) / MADE_UP_S, LIMIT_UPSTREAM_CONNECT_S, 0.2);
    unsetenv("https_proxy");
    chat_client_destroy(c);
    c = chat_client_create(&unheard, NULL);
    CHECK_INT(ask(c, ""), ERR_UPSTREAM);
    CHECK_HAS(detail.text, "no server answers at /no: ");
    chat_client_destroy(c);
}

static void test_addresses(void)
{
    static const struct {
        const char *text, *base, *file;
    } ROWS[] = {{"http://h:1", "http://h:1/v1", ""},
                {"http://h/", "http://h/v1", ""},
                {"https://h/a/v1", "https://h/a/v1", ""},
                {"unix:/a/b", "http://localhost/v1", "/a/b"},
                {"unix:a", NULL, NULL},
                {"unix:", NULL, NULL},
                {"ftp://h", NULL, NULL},
                {"h:1", NULL, NULL},
                {"", NULL, NULL}};
    chat_server s;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const err_code err = chat_server_parse(&s, ROWS[i].text, &detail);
        CHECK_INT(err, ROWS[i].base ? ERR_OK : ERR_INVALID);
        if (ROWS[i].base) {
            CHECK_STR(s.base, ROWS[i].base);
            CHECK_STR(s.unix_path, ROWS[i].file);
        }
    }
    for (int n = CHAT_SOCKET_MAX - 1; n <= CHAT_SOCKET_MAX; n++) {
        char text[CHAT_SOCKET_MAX + 16];
        snprintf(text, sizeof text, "unix:/%0*d", n - 1, 0);
        CHECK_INT(chat_server_parse(&s, text, &detail), n < CHAT_SOCKET_MAX ? ERR_OK : ERR_INVALID);
    }
    CHECK_HAS(detail.text, "unix: takes a path from the root of at most 107 bytes");
}

int main(void)
{
    char folder[FOLDER_NAME], path[128], url[160];
    chat_server tcp, file, none;
    folder_make(folder);
    snprintf(path, sizeof path, "%s/s", folder);
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* plain http is of the own network */
    unsetenv("no_proxy");
    unsetenv("NO_PROXY");
    CHECK(fetch_start());
    made_up_answer = answer;
    made_up_world = made_up_serve;
    snprintf(url, sizeof url, "http://127.0.0.1:%d", made_up_listen(NULL));
    made_up_listen(path);
    test_addresses();
    const size_t open = open_files();
    test_ways(url);
    while (made_up_serve()) {
    }
    CHECK_INT(open_files(), open);
    CHECK_OK(chat_server_parse(&tcp, url, &detail), detail);
    chat_client *c = chat_client_create(&tcp, "secret");
    test_answers(c);
    CHECK_STR(asked, "0 POST /v1/chat/completions HTTP/1.1|Authorization: Bearer secret|{\"q\":1}");
    test_faults(c, tcp.base);
    test_models(c);
    CHECK_STR(asked, "0 GET /v1/models HTTP/1.1|Authorization: Bearer secret|");
    test_kept(c);
    test_short_memory(c, &tcp);
    test_longest(url);
    chat_client_destroy(c);

    snprintf(url, sizeof url, "unix:%s", path);
    CHECK_OK(chat_server_parse(&file, url, &detail), detail);
    c = chat_client_create(&file, NULL);
    test_answers(c);
    CHECK_STR(asked, "1 POST /v1/chat/completions HTTP/1.1||{\"q\":1}");
    test_faults(c, path);
    chat_client_destroy(c);

    CHECK_OK(chat_server_parse(&none, "http://127.0.0.1:1", &detail), detail);
    c = chat_client_create(&none, NULL);
    CHECK_INT(ask(c, ""), ERR_UPSTREAM);
    CHECK_HAS(detail.text, "no server answers at http://127.0.0.1:1/v1: ");
    chat_client_destroy(c);
    chat_client_destroy(NULL);
    made_up_close();
    fetch_stop();
    CHECK_DONE();
}
