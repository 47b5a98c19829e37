/* prep_calls: what workers say where a message finds no memory, where other servers and hosts are asked, and whose their lines in
 * the log are. Those who are asked are the test. */
#include <stdatomic.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/media/preview.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/server/service/prep_jobs.h"

/* ---- who is asked ---- */

ONE_FAILS(loop_message *, loop_message_create, (loop_message_type type, uint64_t id), (type, id), NULL)
ONE_FAILS(err_code, engine_tokenize,
          (const engine *of, bytes *out, const char *text, size_t len, bool special, err_detail *d),
          (of, out, text, len, special, d), ERR_NOMEM)

static char none[1]; /* other servers, that only these know: */
static bool is_named, is_elsewhere;
static int64_t n_counted;
static const char *asked_text;
static size_t asked_len;
static atomic_int n_asked, n_queued, n_appended, n_freed; /* by workers, too */
static int fails_at;
static uint64_t seeds[8];
static err_code fetched;

bool __wrap_upstreams_is_named(const upstreams *u, const char *name);
bool __wrap_upstreams_is_local_only(const upstreams *u);
const upstream_rule *__wrap_upstreams_route(const upstreams *u, const json *body, upstream_case c,
                                            upstream_count_fn *count, void *ctx);
upstream_search __wrap_upstreams_find(upstreams *u, const char *name, upstream_model *out, err_code *code,
                                      err_detail *d);
err_code __wrap_upstreams_prepare(upstreams *u, upstream_request **out, const upstream_model *m,
                                  const api_request *r, const upstream_prompt *prompt,
                                  const prepare_hooks *hooks, err_detail *d);
void __wrap_upstream_request_append(upstream_request *q, upstream_request *more);
void __wrap_upstream_request_free(upstream_request *q);
gen_request_info __wrap_upstream_request_info(const upstream_request *q);
bool __wrap_remote_media_wanted(const chat_input *in);
err_code __wrap_remote_media_fetch(const remote_media *rm, chat_input *in, const prepare_hooks *hooks,
                                   err_detail *d);
void __wrap_preview_run(bytes *out, const preview_task *task);

bool __wrap_upstreams_is_named(const upstreams *u, const char *name)
{
    (void)u, (void)name;
    return is_named;
}

bool __wrap_upstreams_is_local_only(const upstreams *u)
{
    (void)u;
    return false;
}

const upstream_rule *__wrap_upstreams_route(const upstreams *u, const json *body, upstream_case c,
                                            upstream_count_fn *count, void *ctx)
{
    (void)u, (void)body;
    n_queued = c.queue;
    one_fails("engine_tokenize", fails_at);
    n_counted = count(ctx, asked_text, asked_len);
    (void)one_fails_over();
    return NULL;
}

upstream_search __wrap_upstreams_find(upstreams *u, const char *name, upstream_model *out, err_code *code,
                                      err_detail *d)
{
    (void)u, (void)name, (void)code, (void)d;
    *out = (upstream_model){.name = "far/one", .info = *engine_get_info(e)};
    return UPSTREAM_FOUND;
}

err_code __wrap_upstreams_prepare(upstreams *u, upstream_request **out, const upstream_model *m,
                                  const api_request *r, const upstream_prompt *prompt,
                                  const prepare_hooks *hooks, err_detail *d)
{
    (void)u, (void)m, (void)prompt, (void)hooks;
    seeds[n_asked++] = r->in->params.seed;
    if (n_asked == fails_at) {
        return err_set(d, ERR_NOMEM, "no memory");
    }
    *out = (upstream_request *)(none + 0);
    return ERR_OK;
}

void __wrap_upstream_request_append(upstream_request *q, upstream_request *more)
{
    CHECK(q && more);
    n_appended++;
}

void __wrap_upstream_request_free(upstream_request *q)
{
    n_freed += q != NULL;
}

gen_request_info __wrap_upstream_request_info(const upstream_request *q)
{
    CHECK(q != NULL);
    return (gen_request_info){0};
}

bool __wrap_remote_media_wanted(const chat_input *in)
{
    (void)in;
    return is_elsewhere;
}

err_code __wrap_remote_media_fetch(const remote_media *rm, chat_input *in, const prepare_hooks *hooks,
                                   err_detail *d)
{
    (void)rm, (void)in, (void)hooks;
    if (fetched == ERR_CANCELLED) { /* its client leaves meanwhile */
        prep_ticket_cancel(ticket);
        return ERR_OK;
    }
    return fetched == ERR_OK ? ERR_OK : err_set(d, fetched, "away");
}

/* What is found out of a file goes out with what is known of it, if there is memory to say so. */
void __wrap_preview_run(bytes *out, const preview_task *task)
{
    for (int fails = 1; fails >= 0; fails--) {
        bytes facts = bytes_empty(10);
        bytes_append_str(&facts, fails ? "lost" : "kept");
        one_fails("loop_message_create", fails);
        task->on_facts(task->ctx, &facts);
        CHECK(one_fails_over());
        CHECK_INT(facts.len, fails ? 4 : 0);
        bytes_deinit(&facts);
    }
    bytes_append_str(out, "seen");
}

/* ---- tests ---- */

/* What there is no memory to say is left out, and what must be said is refused. */
static void test_no_message(void)
{
    prep *p = begin(1, 8, 1 << 20);
    const prep_order order = {.dialect = &CHAT, .id = 1};
    CHECK_INT(submit(p, (prep_order){.id = 4}, "file_of_nobody"), ERR_OK);
    CHECK_STR(heard(2), "facts 4 kept|preview 4 seen|");
    wait_until_idle(p);
    for (int n = 1; n <= 2; n++) {
        one_fails("loop_message_create", n);
        CHECK_INT(submit(p, order, HI), ERR_NOMEM);
        CHECK(one_fails_over());
        CHECK(prep_is_idle(p));
    }
    prep_order later = order;
    later.turns = "[";
    CHECK_INT(submit(p, later, HI), ERR_NOMEM);
    CHECK(prep_is_idle(p));
    prep_destroy(p);
}

static void lose_progress(const api_request *r, const prepare_hooks *hooks)
{
    (void)r;
    one_fails("loop_message_create", 1);
    hooks->progress(hooks->ctx, GEN_PHASE_MEDIA, 1, 9);
    CHECK(one_fails_over());
    hooks->progress(hooks->ctx, GEN_PHASE_VISION, 2, 9);
}

static void test_lost_progress(void)
{
    char want[100];
    prep *p = begin(1, 8, 1 << 20);
    on_prepare = lose_progress;
    CHECK_INT(submit(p, (prep_order){.dialect = &CHAT, .id = 1}, HI), ERR_OK);
    snprintf(want, sizeof want, "progress 1 %d 2/9|prepared 1 with its request|", GEN_PHASE_VISION);
    CHECK_STR(heard(2), want);
    prep_destroy(p);
}

/* The rules of other servers hear how many tokens a text has, or that nobody knows. */
static void test_count(void)
{
    static char text[LIMIT_TEXT_BODY_BYTES + 2];
    static const struct {
        bool has_model, fails;
        size_t len;
        int64_t n;
    } CASES[] = {{true, false, 0, 0}, {true, false, 1, 1},   {true, false, 2, 2},
                 {true, true, 2, -1}, {false, false, 2, -1}, {true, false, sizeof text - 1, -1}};
    memset(text, 'a', sizeof text - 1);
    prep *p = begin(1, 8, 1 << 20);
    is_named = false;
    asked_text = text;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        bytes body = body_of(HI);
        json_doc *doc = NULL;
        ledger_hold hold = {0};
        n_counted = 77;
        asked_len = CASES[i].len;
        fails_at = CASES[i].fails;
        const prep_order order = {.dialect = &CHAT,
                                  .id = 1,
                                  .engine = CASES[i].has_model ? e : NULL,
                                  .upstreams = (upstreams *)(none + 0)};
        CHECK_INT(prep_submit(p, &order, &body, &doc, &hold, ticket), ERR_OK);
        CHECK_STR(heard(1), CASES[i].has_model ? "prepared 1 with its request|" : "other 1 |");
        CHECK_INT(n_counted, CASES[i].n);
        CHECK_INT(n_queued, 0);
    }
    prep_destroy(p);
}

/* Names that are longer than any may be are none. */
static void test_names(void)
{
    static const size_t ROOM[] = {REQUEST_MODEL_MAX, REQUEST_EVENT_ID_MAX + 1, REQUEST_ID_MAX + 1};
    static const char *const FIELDS[] = {"model", "event_id", "stream_id"};
    prep *p = begin(1, 8, 1 << 20);
    for (int i = 0; i < 3; i++) {
        for (size_t more = 0; more < 2; more++) {
            const size_t len = ROOM[i] - 1 + more;
            bytes body = bytes_empty(10000);
            json_doc *doc = NULL;
            ledger_hold hold = {0};
            bytes_printf(&body, "{\"%s\": \"%0*d\"}", FIELDS[i], (int)len, 0);
            const prep_order order = {.dialect = &CHAT, .id = 1};
            CHECK_INT(prep_submit(p, &order, &body, &doc, &hold, ticket), ERR_OK);
            wait_until_idle(p);
            const reply_options *o = &messages[0]->options;
            const char *const got[] = {o->model, o->event_id, o->stream_id};
            for (int k = 0; k < 3; k++) {
                CHECK_INT(strlen(got[k]), k == i && more == 0 ? len : 0);
            }
            (void)heard(1);
        }
    }
    prep_destroy(p);
}

/* Media of other hosts: nothing is asked of the engine for who has left, or without them. */
static void test_fetch(void)
{
    static const struct {
        err_code fetched;
        const char *said;
    } CASES[] = {{ERR_OK, "prepared 1 with its request|"},
                 {ERR_NOT_FOUND, "refused 1 404 |"},
                 {ERR_CANCELLED, "refused 1 499 cancelled|"}};
    prep *p = begin(1, 8, 1 << 20);
    is_elsewhere = true;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        fetched = CASES[i].fetched;
        CHECK_INT(submit(p, (prep_order){.dialect = &CHAT, .id = 1}, HI), ERR_OK);
        CHECK_STR(heard(1), CASES[i].said);
    }
    is_elsewhere = false;
    prep_destroy(p);
}

/* Each choice is a request to the other server, with a seed of its own; where one cannot be made, the answer fails. */
static void test_choices(void)
{
    prep *p = begin(1, 8, 1 << 20);
    is_named = true;
    for (int fails = 0; fails <= 3; fails++) {
        new_ticket();
        n_asked = n_appended = n_freed = 0;
        fails_at = fails;
        const prep_order order = {.dialect = &CHAT, .id = 1, .upstreams = (upstreams *)(none + 0)};
        CHECK_INT(submit(p, order,
                         "{\"model\": \"far/one\", \"n\": 3, \"seed\": 40, \"messages\": [{\"role\": "
                         "\"user\", \"content\": \"hi\"}]}"),
                  ERR_OK);
        CHECK_STR(heard(1), fails ? "refused 1 503 out_of_memory|" : "prepared 1|");
        CHECK_INT(n_asked, fails ? fails : 3);
        CHECK_INT(n_appended, fails > 1 ? fails - 2 : fails == 0 ? 2 : 0);
        CHECK_INT(n_freed, fails != 1);
        for (int i = 0; i < n_asked; i++) {
            CHECK_INT(seeds[i], 40 + i);
        }
    }
    is_named = false;
    prep_destroy(p);
}

/* Lines of a worker say whose they are, and of whom they are not any more. */
static void test_log(void)
{
    static const char *const NAMES[] = {"req_a", "", "req_b"};
    char root[FOLDER_NAME], path[2 * FOLDER_NAME];
    bytes text = bytes_empty(10000);
    err_detail d = {0};
    folder_make(root);
    snprintf(path, sizeof path, "%s/log", root);
    CHECK_OK(log_open(path, &d), d);
    log_set_level(LOG_DEBUG);
    prep *p = begin(1, 8, 1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        prep_order order = {.dialect = &CHAT, .id = 1};
        snprintf(order.request_id, sizeof order.request_id, "%s", NAMES[i]);
        CHECK_INT(submit(p, order, HI), ERR_OK);
        (void)heard(1);
    }
    prep_destroy(p);
    log_set_level(LOG_OFF);
    CHECK_INT(file_read(&text, path, &d), ERR_OK);
    const char *at = bytes_str(&text);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        at = strstr(at, " prep ");
        CHECK(at != NULL);
        char want[100];
        snprintf(want, sizeof want, " prep %s%s%sprepared chat", NAMES[i][0] ? "req=" : "", NAMES[i],
                 NAMES[i][0] ? " " : "");
        CHECK_INT(strncmp(at, want, strlen(want)), 0);
        at += 5;
    }
    bytes_deinit(&text);
}

int main(void)
{
    log_set_level(LOG_OFF);
    jobs_begin();
    test_no_message();
    test_lost_progress();
    test_count();
    test_names();
    test_fetch();
    test_choices();
    test_log();
    jobs_end();
    CHECK_DONE();
}
