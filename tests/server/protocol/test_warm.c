/* warm: which prompts of a file are computed for whom, and which are left out, with the double of the engine: what is logged
 * and told as progress, line by line; text_queries without memory. */
#include "server/protocol/dialects/text_queries.h"
#include "server/protocol/dialects/warm.h"

#include <ctype.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/alloc_fail.h"
#include "tests/folder.h"
#include "tests/said.h"

static engine *e;
static warm *w;
static bytes told;
static atomic_bool stops;
static int stop_at; /* after so many values; 0: never */

static void on_event(void *ctx, gen_event *event)
{
    (void)ctx;
    CHECK(event->request_id & WARM_ID);
    warm_on_event(w, event);
}

static void progress(void *ctx, const char *stage, double fraction)
{
    CHECK(ctx == &told);
    bytes_printf(&told, "%s %.2f\n", stage, fraction);
    if (stop_at > 0 && --stop_at == 0) {
        atomic_store(&stops, true);
    }
}

/* What is said of a file with this text, but for places and times. */
static void check(const char *text, size_t n_scopes, const char *expected)
{
    static const uint64_t SCOPES[] = {7, 8};
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/prompts", folder);
    FILE *f = text ? fopen(path, "w") : NULL;
    CHECK(!text || (f && fputs(text, f) >= 0 && fclose(f) == 0));
    const warm_order o = {.file = path,
                          .engine = e,
                          .scopes = SCOPES,
                          .n_scopes = n_scopes,
                          .stops = &stops,
                          .progress = progress,
                          .ctx = &told};
    bytes_clear(&told);
    atomic_store(&stops, false);
    said_begin();
    warm_run(w, &o);
    said_end();
    for (char *line = said_err, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        const char *place = strstr(line, path), *ms = strstr(line, " tokens computed in ");
        if (ms) {
            bytes_printf(&told, "%.*sFILE%.*s\n", (int)(place - line), line,
                         (int)(ms + 7 - place) - (int)strlen(path), place + strlen(path));
        } else {
            bytes_printf(&told, "%.*sFILE%s\n", place ? (int)(place - line) : 0, line,
                         place ? place + strlen(path) : line);
        }
    }
    if (text) {
        CHECK_STR(bytes_str(&told), expected);
    } else { /* and why, with its path */
        CHECK_HAS(bytes_str(&told), expected);
        CHECK_HAS(bytes_str(&told), "no such file");
    }
}

static err_code create_once(void *ctx)
{
    (void)ctx;
    warm *one = warm_create();
    warm_destroy(one);
    return one ? ERR_OK : ERR_NOMEM;
}

/* ---- questions about texts without memory ---- */

typedef struct question {
    text_query query;
    const char *body;
    char whole[256]; /* the reply without a failure */
} question;

/* The whole reply, or a lack of memory. */
static err_code ask(void *ctx)
{
    question *q = ctx;
    static char room[256];
    bytes out = {.data = room, .cap = sizeof room - 1, .max = sizeof room - 1};
    api_request r;
    err_detail d = {0};
    room[0] = '\0';
    api_request_init(&r);
    err_code err = text_query_run(&out, q->query, &r, e, q->body, strlen(q->body), &(prepare_hooks){0}, &d);
    err = err == ERR_OK && out.failed ? ERR_NOMEM : err;
    api_request_deinit(&r);
    if (err == ERR_OK && !q->whole[0]) {
        snprintf(q->whole, sizeof q->whole, "%s", room);
    }
    if (err == ERR_OK ? strcmp(room, q->whole) != 0 : err != ERR_NOMEM) {
        fprintf(stderr, "  %s, %s instead of %s\n", d.text, room, q->whole);
        return ERR_INTERNAL;
    }
    return err;
}

static void test_questions(void)
{
    question questions[] = {
        {.query = QUERY_TOKENIZE, .body = "{\"content\":\"some words, \u00e9\"}"},
        {.query = QUERY_TOKENIZE, .body = "{\"content\":\"ab\u00e9\",\"with_pieces\":true}"},
        {.query = QUERY_DETOKENIZE, .body = "{\"tokens\":[104,105,33]}"},
        {.query = QUERY_TEMPLATE, .body = "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
        CHECK(alloc_fail_each(ask, &questions[i], 1000) > 3);
    }
    CHECK_STR(questions[1].whole, "{\"tokens\":[{\"id\":97,\"piece\":\"a\"},{\"id\":98,\"piece\":\"b\"},{"
                                  "\"id\":195,\"piece\":[195]},{\"id\":169,"
                                  "\"piece\":[169]}]}");
    CHECK_STR(questions[2].whole, "{\"content\":\"hi!\"}");
}

int main(void)
{
    const engine_options options = {.on_event = on_event};
    err_detail d = {0};
    log_set_format(LOG_JOURNAL);
    bytes_init(&told, 1 << 20);
    w = warm_create();
    CHECK(w != NULL);
    CHECK_OK(engine_open(&e, &options, &d), d);
    check(NULL, 1, "<4>load --warm-prompts FILE is not used: ");
    check("", 1, "<6>load 0 prompts of FILE: 0 tokens\n");
    check("\"a prompt\"\n\n  "
          "\t\r\n{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n[{\"role\":\"user\",\"content\":"
          "\"hello\"}]",
          2,
          "warm prompts 0.00\nwarm prompts 0.33\nwarm prompts 0.67\n<6>load 3 prompts of FILE: 28 tokens\n");
    check(" [\"a\", {\"prompt\":\"b\"}]", 1,
          "warm prompts 0.00\nwarm prompts 0.50\n<6>load 2 prompts of FILE: -4 tokens\n");
    check("[{\"role\":\"user\",\"content\":\"one line\"}]\n[{\"role\":\"user\",\"content\":\"x\"}]\n", 1,
          "warm prompts 0.00\nwarm prompts 0.50\n<6>load 2 prompts of FILE: 11 tokens\n");
    check("5\nnull\n{\"messages\":5}\n{}\n\"x\"", 1,
          "warm prompts 0.00\nwarm prompts 0.20\nwarm prompts 0.40\nwarm prompts 0.60\nwarm prompts "
          "0.80\n<4>load prompt 1 of FILE is left out: it is neither a request, nor messages, nor a "
          "text\n<4>load prompt 2 of FILE is left out: it is neither a request, nor messages, nor a "
          "text\n<4>load prompt 3 of FILE is left out: messages must be a list of 1 to 1024 "
          "messages\n<4>load prompt 4 of FILE is left out: prompt must be a text, a list of token ids, or a "
          "list of texts or of such lists\n<6>load 5 prompts of FILE: -2 tokens\n");
    check("\"broken", 1,
          "<4>load --warm-prompts FILE is not used: JSON is not valid: the end of the text inside a string, "
          "at line 2, column 9\n");
    stop_at = 2;
    check("\"a\"\n\"b\"\n\"c\"\n", 2,
          "warm prompts 0.00\nwarm prompts 0.33\n<6>load 2 prompts of FILE: -4 tokens\n");
    warm_destroy(w);
    warm_destroy(NULL);
    test_questions();
    CHECK(alloc_fail_each(create_once, NULL, 100) > 1);
    engine_close(e);
    bytes_deinit(&told);
    CHECK_DONE();
}
