/* serve_choices: the answers that are made for the choices of one, who computes them, and what becomes of them without memory.
 * Requests are a list of the test's, and so are those who take them. */
#include "tests/alloc_fail.h"
#include "tests/server/service/made_serve.h"
#include "tests/wrap.h"

enum { MOST = 6 };

/* ---- what is asked of others ---- */

/* Requests are places in here: the one behind the last is none. */
static char requests[MOST + 1];
static int n_requests, fails_at;
static uint64_t ids[MOST];
static bytes said;

static int place_of(const void *q)
{
    return (int)((const char *)q - requests);
}

static void *next_of(const void *q)
{
    return place_of(q) + 1 < n_requests ? &requests[place_of(q) + 1] : NULL;
}

static gen_request_info info_of(const void *q)
{
    return (gen_request_info){.n_prompt_tokens = 100 + place_of(q)};
}

WRAP(upstream_request *, upstream_request_next, (const upstream_request *q), return next_of(q);)
WRAP(upstream_request *, upstream_request_detach, (upstream_request * q), return next_of(q);)
WRAP(gen_request_info, upstream_request_info, (const upstream_request *q), return info_of(q);)
WRAP(void, upstream_request_free, (upstream_request * q),
     if (q) bytes_printf(&said, "free %d|", place_of(q));)
WRAP(gen_request *, gen_request_next, (const gen_request *r), return next_of(r);)
WRAP(gen_request_info, gen_request_get_info, (const gen_request *r), return info_of(r);)
WRAP(void, gen_request_set_id, (gen_request * r, uint64_t id), ids[place_of(r)] = id;)
WRAP(void, gen_request_free, (gen_request * r), if (r) bytes_printf(&said, "free %d|", place_of(r));)
WRAP(err_code, upstreams_submit, (upstreams * u, upstream_request *q, uint64_t id, err_detail *d), (void)u,
     (void)d;
     if (place_of(q) == fails_at) return ERR_BUSY; ids[place_of(q)] = id; return ERR_OK;)
WRAP(err_code, engine_submit, (engine * e, gen_request *r, uint64_t id, err_detail *d), (void)e, (void)d;
     CHECK(place_of(r) == 0); ids[0] = id; return fails_at == 0 ? ERR_BUSY : ERR_OK;)
WRAP(void, engine_end_thinking, (engine * e, uint64_t id), (void)e;
     bytes_printf(&said, "thinks no more %d|", (int)id);)
WRAP(void, serve_stop_answer, (serve * s, uint64_t id), (void)s; bytes_printf(&said, "stop %d|", (int)id);)
WRAP(void, serve_stop_one, (serve * s, uint64_t id), (void)s; bytes_printf(&said, "stop one %d|", (int)id);)
WRAP(void, answer_begin, (answer * a, const gen_request_info *info, const tool_form *form), (void)info;
     bytes_printf(&said, "begin %d%s|", (int)a->id, form ? " with tools" : "");)
WRAP(void, answer_take_prompt, (answer * a, const engine *e, const gen_event *event), (void)e, (void)event;
     bytes_printf(&said, "prompt of %d|", (int)a->id);)

static void check_said(const char *expected)
{
    CHECK_STR(bytes_str(&said), expected);
    bytes_clear(&said);
}

static answer *begin(serve *s, int n, bool is_remote)
{
    answer *a = made_answer(s, &dialect_chat);
    n_requests = n;
    fails_at = -1;
    memset(ids, 0, sizeof ids);
    bytes_clear(&said);
    a->scope = 9;
    a->server = "far";
    a->media_ms = 3.0;
    a->opt.stream = a->opt.timings_per_token = true;
    a->opt.logprobs = true;
    snprintf(a->opt.model, sizeof a->opt.model, "ash");
    snprintf(a->request_id, sizeof a->request_id, "req_1");
    a->request = is_remote ? NULL : (gen_request *)requests;
    a->remote = is_remote ? (upstream_request *)requests : NULL;
    return a;
}

/* ---- tests ---- */

/* Each request behind the first gets an answer that knows what the first does, and an id. */
static void test_made(void)
{
    for (int with = 0; with < 2 * MOST; with++) {
        const bool is_remote = with & 1;
        const int n = with / 2 + 1;
        serve *s = made_serve();
        answer *a = begin(s, n, is_remote);
        CHECK(serve_make_choices(s, a));
        CHECK_INT(a->n_others, n - 1);
        CHECK_INT(a->n_open, n);
        CHECK_INT(s->answers.len, (size_t)n);
        for (int i = 1; i < n; i++) {
            const answer *one = a->others[i - 1];
            CHECK(id_table_get(&s->answers, one->id) == one && one->first == a &&
                  one->id == a->id + (uint64_t)i);
            CHECK(one->index == i && one->info.n_prompt_tokens == 100 + i && one->scope == 9 &&
                  one->conn == 0);
            CHECK(one->server == a->server && one->media_ms == 3.0 && one->dialect == a->dialect);
            CHECK(one->opt.stream && one->opt.timings_per_token && one->opt.logprobs);
            CHECK(one->is_accepted && one->is_begun);
            CHECK_STR(one->opt.model, "ash");
            CHECK_STR(one->request_id, "req_1");
            CHECK_INT(ids[i], is_remote ? 0 : one->id);
        }
        err_detail d = {0};
        CHECK_INT(serve_submit_choices(s, a, &d), ERR_OK);
        CHECK(!a->request && !a->remote);
        CHECK_INT(ids[0], a->id);
        for (int i = 1; i < n; i++) {
            CHECK_INT(ids[i], a->others[i - 1]->id);
        }
        check_said("");
        made_end(s);
    }
}

/* Without memory for one there is none of them: what was made goes with the first. */
static void test_no_memory(void)
{
    bool is_over = false;
    size_t n = 1;
    for (; !is_over && n < 1000; n++) {
        serve *s = made_serve();
        answer *a = begin(s, 3, true);
        alloc_fail_at(n);
        is_over = serve_make_choices(s, a);
        alloc_fail_at(0);
        CHECK(is_over ? a->n_others == 2 : a->n_others < 2);
        CHECK_INT(s->answers.len, 1 + (size_t)a->n_others);
        a->remote = NULL;
        serve_drop_choices(s, a);
        CHECK_INT(s->answers.len, 1);
        CHECK_INT(a->n_others, 0);
        made_end(s);
    }
    CHECK(n > 4);
}

/* What cannot be handed over is freed, and the rest of it stopped. */
static void test_refused(void)
{
    err_detail d = {0};
    for (int i = 0; i < 3; i++) {
        serve *s = made_serve();
        answer *a = begin(s, 3, true);
        char want[64];
        CHECK(serve_make_choices(s, a));
        fails_at = i;
        CHECK_INT(serve_submit_choices(s, a, &d), ERR_BUSY);
        snprintf(want, sizeof want, "free %d|stop %d|", i, (int)a->id);
        check_said(want);
        CHECK(i == 2 ? !a->remote : place_of(a->remote) == i + 1);
        a->remote = NULL;
        made_end(s);
    }
    serve *s = made_serve();
    answer *a = begin(s, 1, false);
    fails_at = 0;
    CHECK_INT(serve_submit_choices(s, a, &d), ERR_BUSY);
    CHECK(a->request == (gen_request *)requests); /* whoever fails the answer frees it */
    a->request = NULL;
    made_end(s);
}

/* What is said of the first is said of all. */
static void test_all(void)
{
    static const tool_form form;
    serve *s = made_serve();
    answer *a = begin(s, 3, true);
    CHECK(serve_make_choices(s, a));
    serve_begin_choices(s, a);
    check_said("begin 2|begin 3|");
    s->tool_form = &form;
    serve_begin_choices(s, a);
    check_said("begin 2 with tools|begin 3 with tools|");
    a->dialect = &dialect_completion;
    serve_begin_choices(s, a);
    check_said("begin 2|begin 3|");
    serve_stop_choices(s, a);
    check_said("stop one 2|stop one 3|");
    serve_end_thinking(s, a);
    check_said("thinks no more 1|thinks no more 2|thinks no more 3|");
    serve_drop_choices(s, a);
    check_said("stop one 2|stop one 3|");
    CHECK(!id_table_get(&s->answers, 2) && !id_table_get(&s->answers, 3) && a->n_others == 0);
    a->remote = NULL;
    made_end(s);
}

/* A prompt is that of as many choices as were asked for of it. */
static void test_shared(void)
{
    static const struct {
        int n_choices, of;
        const char *said;
    } CASES[] = {
        {0, 0, ""},
        {1, 2, ""},
        {6, 0, "prompt of 2|prompt of 3|prompt of 4|prompt of 5|prompt of 6|"},
        {6, 3, "prompt of 5|prompt of 6|"},
        {2, 0, "prompt of 2|"},
        {2, 1, ""},
        {2, 2, "prompt of 4|"},
        {2, 4, "prompt of 6|"},
        {3, 3, "prompt of 5|prompt of 6|"},
        {3, 4, "prompt of 6|"},
        {3, 5, ""},
    };
    const gen_event event = {0};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = made_serve();
        answer *a = begin(s, MOST, true);
        CHECK(serve_make_choices(s, a));
        const answer one = {.index = CASES[i].of};
        a->opt.n_choices = CASES[i].n_choices;
        serve_share_prompt(s, a, &one, &event);
        check_said(CASES[i].said);
        a->remote = NULL;
        made_end(s);
    }
}

int main(void)
{
    said = bytes_empty(1 << 20);
    test_made();
    test_no_memory();
    test_refused();
    test_all();
    test_shared();
    bytes_deinit(&said);
    CHECK_DONE();
}
