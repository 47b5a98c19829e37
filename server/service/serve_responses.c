/* Responses that are kept, and conversations (/v1/responses/{id}, /v1/conversations): reading,
 * deleting, their items. Conversations are kept by the history, and without one among the responses
 * (response_store); what a request makes of one is the same (talks). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/protocol/dialects/talks.h"
#include "server/service/serve_state.h"

enum { LIST_LIMIT = 100, LIST_USUAL = 20 };

/* ---- responses ---- */

/* GET with ?stream=true: the events from starting_after on, as they were and as they come. False
 * for another query. */
static bool follow_response(serve *s, conn *c, const answer *a)
{
    char stream[8];
    if (c->route->id != ROUTE_RESPONSE) {
        return false;
    }
    if (!serve_query_string_value(s, c, "stream", stream, sizeof stream)) {
        return true;
    }
    if (strcmp(stream, "true") != 0) {
        const bool is_valid = !stream[0] || strcmp(stream, "false") == 0;
        if (!is_valid) {
            serve_send_fault(s, c, 400, "invalid_value", "stream", "stream must be true or false");
        }
        return !is_valid;
    }
    int64_t seen = -1;
    if (!serve_query_string_int(c, "starting_after", -1, INT32_MAX, &seen)) {
        serve_send_fault(s, c, 400, "invalid_value", "starting_after",
                         "starting_after must be the number of an event, or -1 for all");
        return true;
    }
    serve_begin_follow(s, c, a, seen + 1);
    return true;
}

static void no_response(serve *s, conn *c)
{
    api_error e;
    serve_no_response(s, c->scope, c->param, &e);
    serve_send_error(s, c, &e);
}

/* What of it runs is cancelled; nobody can read it any more. */
static void delete_response(serve *s, conn *c, answer *a)
{
    const bool was_kept = response_store_remove(s->response_store, c->scope, c->param, clock_ms());
    if (!was_kept && !(a && a->opt.store)) {
        no_response(s, c);
        return;
    }
    if (a) {
        a->opt.store = false;
        serve_cancel_answer(s, a);
    }
    bytes body = bytes_empty(SIZE_MAX);
    bytes_json(&body, "{\"id\":%s,\"object\":\"response\",\"deleted\":true}", c->param);
    serve_send_body(s, c, &body);
}

void serve_on_response(serve *s, conn *c)
{
    answer *a = serve_find_response(s, c->scope, c->param);
    if (c->method == NET_DELETE) {
        delete_response(s, c, a);
        return;
    }
    if (!a || (c->route->id == ROUTE_RESPONSE && !a->opt.store)) {
        no_response(s, c);
        return;
    }
    if (c->route->id == ROUTE_RESPONSE_CANCEL) {
        serve_cancel_answer(s, a);
    }
    if (follow_response(s, c, a)) {
        return;
    }
    bytes body;
    bytes_init(&body, SIZE_MAX);
    responses_reply_write(&body, &a->reply);
    serve_send_body(s, c, &body);
}

/* ---- lists of items ---- */

/* What the query says of a list; false if it is wrong: then an error is sent. */
static bool read_page(serve *s, conn *c, response_items_page *page, char after[REQUEST_RESPONSE_ID_MAX])
{
    char order[8];
    *page = (response_items_page){.after = after, .limit = LIST_USUAL};
    if (!serve_query_string_value(s, c, "order", order, sizeof order) ||
        !serve_query_string_value(s, c, "after", after, REQUEST_RESPONSE_ID_MAX)) {
        return false;
    }
    page->newest_first = strcmp(order, "asc") != 0;
    if (page->newest_first && order[0] && strcmp(order, "desc") != 0) {
        serve_send_fault(s, c, 400, "invalid_value", "order", "order must be asc or desc");
        return false;
    }
    if (!serve_query_string_int(c, "limit", 1, LIST_LIMIT, &page->limit)) {
        serve_send_fault(s, c, 400, "invalid_value", "limit", "limit must be a number from 1 to 100");
        return false;
    }
    return true;
}

void serve_on_input_items(serve *s, conn *c)
{
    char after[REQUEST_RESPONSE_ID_MAX];
    response_items_page page;
    json_doc *doc = NULL;
    api_error e;
    bytes text = bytes_empty(LIMIT_STORED_RESPONSE_BYTES + 2), body = bytes_empty(SIZE_MAX);
    bytes_append_char(&text, '[');
    if (!response_store_get_input(s->response_store, c->scope, c->param, clock_ms(), &text)) {
        no_response(s, c);
    } else if (read_page(s, c, &page, after)) {
        bytes_append_char(&text, ']');
        if (text.failed || json_parse(&doc, text.data, text.len, LIMIT_JSON_DEPTH + 2, NULL) != ERR_OK) {
            api_error_from(&e, ERR_NOMEM, NULL);
            serve_send_error(s, c, &e);
        } else if (response_items_list(&body, json_root(doc), &page)) {
            serve_send_json(s, c, 200, &body, NULL);
        } else {
            serve_send_fault(s, c, 400, "invalid_value", "after",
                             "after must be the id of one of these items");
        }
    }
    json_free(doc);
    bytes_deinit(&text);
    bytes_deinit(&body);
}

/* ---- conversations ---- */

/* Where --history keeps them: on the thread of the history. */
static err_code get_kept(void *ctx, uint64_t scope, const char *id, bytes *out, err_detail *d)
{
    return history_talk_get(ctx, scope, id, out, d);
}

static err_code put_kept(void *ctx, uint64_t scope, const char *id, const bytes *text, err_detail *d)
{
    return history_talk_put(ctx, scope, id, text, d);
}

static err_code add_kept(void *ctx, uint64_t scope, const char *id, const bytes *items, err_detail *d)
{
    return history_talk_add(ctx, scope, id, items, d);
}

static err_code remove_kept(void *ctx, uint64_t scope, const char *id, err_detail *d)
{
    return history_talk_remove(ctx, scope, id, d);
}

static err_code work_on_talk(history_store *st, void *order, bytes *reply, err_detail *d)
{
    const talk_keeper keeper = {
        .ctx = st, .get = get_kept, .put = put_kept, .add = add_kept, .remove = remove_kept};
    return talk_run(order, &keeper, reply, d);
}

static void drop_order(void *order)
{
    talk_order_deinit(order);
    free(order);
}

/* A copy of the order with its body, for the thread of the history. The body stays on failure. */
static history_job *make_job(talk_order *o)
{
    talk_order *copy = malloc(sizeof *copy);
    history_job *job = copy ? history_job_create(HISTORY_WORK) : NULL;
    if (!job) {
        free(copy);
        return NULL;
    }
    *copy = *o;
    bytes_init(&o->body, 0);
    job->work = work_on_talk;
    job->ctx = copy;
    job->drop = drop_order;
    return job;
}

static talk_verb verb_of(const conn *c)
{
    const bool writes = c->method == NET_POST, deletes = c->method == NET_DELETE;
    switch (c->route->id) {
    case ROUTE_CONVERSATIONS:
        return TALK_CREATE;
    case ROUTE_CONVERSATION:
        return writes ? TALK_UPDATE : deletes ? TALK_DELETE : TALK_GET;
    case ROUTE_CONV_ITEMS:
        return writes ? TALK_ADD : TALK_LIST;
    default:
        return deletes ? TALK_DELETE_ITEM : TALK_GET_ITEM;
    }
}

/* The name behind the collection; one that is too long names nothing. */
static void read_ids(const conn *c, talk_order *o)
{
    static const char PREFIX[] = "/v1/conversations/";
    const char *id = strncmp(c->path, PREFIX, sizeof PREFIX - 1) == 0 ? c->path + sizeof PREFIX - 1 : "";
    const size_t n = strcspn(id, "/");
    snprintf(o->id, sizeof o->id, "%.*s", n < sizeof o->id ? (int)n : 0, id);
    snprintf(o->item, sizeof o->item, "%.*s", TALK_ITEM_ID_MAX - 1, c->param);
}

/* Without a history: at once, in memory. */
static void run_now(serve *s, conn *c, const talk_order *o)
{
    const talk_keeper keeper = talk_keeper_in_memory(s->response_store);
    err_detail d = {0};
    bytes reply = bytes_empty(SIZE_MAX);
    const err_code err = talk_run(o, &keeper, &reply, &d);
    if (err == ERR_OK) {
        serve_send_json(s, c, 200, &reply, NULL);
    } else {
        api_error e;
        api_error_from(&e, err, &d);
        serve_send_error(s, c, &e);
    }
    bytes_deinit(&reply);
}

void serve_on_conversations(serve *s, conn *c, bytes *body)
{
    talk_order o = {.verb = verb_of(c), .scope = c->scope};
    read_ids(c, &o);
    if (!read_page(s, c, &o.page, o.after)) {
        return;
    }
    o.body = *body;
    bytes_init(body, 0); /* the order owns the memory now */
    if (!s->history) {
        run_now(s, c, &o);
        talk_order_deinit(&o);
        return;
    }
    history_job *job = make_job(&o);
    if (job) {
        serve_submit_history(s, c, job);
    } else {
        serve_send_fault(s, c, 503, "out_of_memory", NULL, "no memory for this request");
    }
    talk_order_deinit(&o);
}

/* ---- for requests ---- */

typedef struct reading {
    uint64_t scope;
    const char *id;
} reading;

static err_code read_kept(history_store *st, void *ctx, bytes *out, err_detail *d)
{
    const reading *r = ctx;
    const bool is_talk = strncmp(r->id, "conv_", 5) == 0;
    return (is_talk ? history_talk_get : history_talk_item)(st, r->scope, r->id, out, d);
}

err_code serve_read_talk(void *ctx, uint64_t scope, const char *id, bytes *out, err_detail *d)
{
    const serve *s = ctx;
    reading r = {.scope = scope, .id = id};
    return history_call(s->history, read_kept, &r, out, d);
}

/* ---- what an answer adds ---- */

/* Its conversation could not take it. One that was deleted meanwhile is no fault of the answer. */
static void fail_kept(answer *a, err_code err, const err_detail *d)
{
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        a->finish = GEN_FINISH_ERROR;
        a->error = err;
        snprintf(a->error_name, sizeof a->error_name, "%s", d->name);
        snprintf(a->error_text, sizeof a->error_text, "%.255s", d->text);
    }
}

/* Begins it; a->talk_stage says how far that has come. */
static err_code extend(serve *s, answer *a, talk_order *o, err_detail *d)
{
    const talk_keeper keeper = talk_keeper_in_memory(s->response_store);
    const bytes *items = &a->opt.items;
    const char *own = bytes_str(items) + a->opt.n_before;
    bytes_append_str(&o->body, own + (*own == ','));
    a->talk_stage = TALK_ADDED;
    if (items->failed) {
        return err_set_param(d, ERR_LIMIT, NULL, "conversation_too_large",
                             "the conversation may have %zu MiB with this answer; begin another",
                             LIMIT_STORED_RESPONSE_BYTES >> 20);
    }
    if (o->body.failed) {
        return ERR_NOMEM;
    }
    if (!s->history) {
        return talk_run(o, &keeper, NULL, d);
    }
    history_job *job = make_job(o);
    if (!job) {
        return ERR_NOMEM;
    }
    job->answer = a->id;
    a->talk_stage = TALK_WRITING;
    if (history_submit(s->history, job) != ERR_OK) { /* there is no place now: the tick tries it again */
        a->talk_stage = TALK_WAITING;
        history_job_free(job);
    }
    return ERR_OK;
}

bool serve_extend_conversation(serve *s, answer *a)
{
    err_detail d = {0};
    if (!a->opt.conversation[0] || a->opt.items.len == 0 || a->talk_stage == TALK_ADDED ||
        a->finish == GEN_FINISH_ERROR) {
        return false;
    }
    serve_compose_kept(s, a);
    talk_order o = {.verb = TALK_EXTEND, .scope = a->scope, .body = bytes_empty(LIMIT_STORED_RESPONSE_BYTES)};
    snprintf(o.id, sizeof o.id, "%s", a->opt.conversation);
    const err_code err = extend(s, a, &o, &d);
    fail_kept(a, err, &d);
    talk_order_deinit(&o);
    const bool goes_on = a->talk_stage != TALK_ADDED;
    a->state = goes_on ? ANSWER_RUNNING : a->state;
    return goes_on;
}

void serve_on_extended(serve *s, const history_reply *r)
{
    answer *a = id_table_get(&s->answers, r->answer);
    if (!a || a->talk_stage != TALK_WRITING || a->state != ANSWER_RUNNING) {
        return; /* it has ended otherwise */
    }
    a->talk_stage = TALK_ADDED;
    a->state = ANSWER_FINISHED;
    a->finished_ms = clock_ms();
    fail_kept(a, r->code, &r->detail);
    serve_end_answer(s, a);
}
