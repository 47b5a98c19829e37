/* Responses that are kept, and conversations (/v1/responses/{id}, /v1/conversations): reading,
 * deleting, their items. A conversation is kept among the responses (response_store): a head, which
 * says what it is, then its items. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/protocol/dialects/response_items.h"
#include "server/service/serve_state.h"

enum { LIST_LIMIT = 100, LIST_USUAL = 20, METADATA_BYTES = 16384, BODY_BYTES = 1 << 20 };

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

static void send_deleted(serve *s, conn *c, const char *object)
{
    bytes body;
    bytes_init(&body, 4096);
    bytes_json(&body, "{\"id\":%s,\"object\":%s,\"deleted\":true}", c->param, object);
    serve_send_body(s, c, &body);
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
    send_deleted(s, c, "response");
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
    bytes_init(&body, SIZE_MAX / 2);
    responses_reply_write(&body, &a->reply);
    serve_send_body(s, c, &body);
}

/* ---- lists of items ---- */

/* The items of a text without brackets; NULL without memory, and a reply is sent. */
static json_doc *parse_items(serve *s, conn *c, bytes *text)
{
    json_doc *doc = NULL;
    bytes list = bytes_empty(LIMIT_STORED_RESPONSE_BYTES + 2);
    bytes_append_char(&list, '[');
    bytes_append(&list, text->data, text->len);
    bytes_append_char(&list, ']');
    const err_code err =
        list.failed ? ERR_NOMEM : json_parse(&doc, list.data, list.len, LIMIT_JSON_DEPTH + 2, NULL);
    bytes_deinit(&list);
    if (err != ERR_OK) {
        api_error e;
        api_error_from(&e, ERR_NOMEM, NULL);
        serve_send_error(s, c, &e);
    }
    return doc;
}

static void send_list(serve *s, conn *c, const json *items)
{
    char order[8], after[REQUEST_RESPONSE_ID_MAX];
    response_items_page page = {.after = after, .limit = LIST_USUAL};
    if (!serve_query_string_value(s, c, "order", order, sizeof order) ||
        !serve_query_string_value(s, c, "after", after, sizeof after)) {
        return;
    }
    page.newest_first = strcmp(order, "asc") != 0;
    if (page.newest_first && order[0] && strcmp(order, "desc") != 0) {
        serve_send_fault(s, c, 400, "invalid_value", "order", "order must be asc or desc");
        return;
    }
    if (!serve_query_string_int(c, "limit", 1, LIST_LIMIT, &page.limit)) {
        serve_send_fault(s, c, 400, "invalid_value", "limit", "limit must be a number from 1 to 100");
        return;
    }
    bytes body;
    bytes_init(&body, SIZE_MAX / 2);
    if (response_items_list(&body, items, &page)) {
        serve_send_json(s, c, 200, &body, NULL);
    } else {
        serve_send_fault(s, c, 400, "invalid_value", "after", "after must be the id of one of these items");
    }
    bytes_deinit(&body);
}

void serve_on_input_items(serve *s, conn *c)
{
    bytes text = bytes_empty(LIMIT_STORED_RESPONSE_BYTES);
    if (!response_store_get_input(s->response_store, c->scope, c->param, clock_ms(), &text)) {
        no_response(s, c);
    } else {
        json_doc *doc = parse_items(s, c, &text);
        if (doc) {
            send_list(s, c, json_root(doc));
        }
        json_free(doc);
    }
    bytes_deinit(&text);
}

/* ---- conversations ---- */

/* A conversation that is being read or changed. */
typedef struct talk {
    char id[REQUEST_RESPONSE_ID_MAX];
    json_doc *doc;
    const json *head; /* {"created_at","metadata"}; its items follow */
    json *items;
    json_doc *list;
} talk;

static void close_talk(talk *t)
{
    json_free(t->list);
    json_free(t->doc);
}

/* False if there is none; then a reply is sent. */
static bool open_talk(serve *s, conn *c, talk *t)
{
    static const char PREFIX[] = "/v1/conversations/";
    const char *id = c->path + sizeof PREFIX - 1;
    *t = (talk){0};
    snprintf(t->id, sizeof t->id, "%.*s", (int)strcspn(id, "/"), id);
    bytes text = bytes_empty(LIMIT_STORED_RESPONSE_BYTES);
    if (strncmp(t->id, "conv_", 5) != 0 ||
        !response_store_get(s->response_store, c->scope, t->id, clock_ms(), &text)) {
        serve_send_fault(s, c, 404, "conversation_not_found", "conversation_id",
                         "there is no such conversation, or it is no longer kept");
    } else {
        t->doc = parse_items(s, c, &text);
    }
    bytes_deinit(&text);
    t->head = t->doc ? json_child(json_root(t->doc)) : NULL;
    t->list = json_build(&t->items, JSON_ARRAY);
    for (const json *v = t->head ? json_next(t->head) : NULL; v; v = json_next(v)) {
        json_add_shared(t->list, t->items, NULL, v);
    }
    if (!t->head || !json_finish(t->list)) {
        close_talk(t);
        return false;
    }
    return true;
}

static void write_head(bytes *out, int64_t created_at, const json *metadata)
{
    bytes_printf(out, "{\"created_at\":%lld,\"metadata\":", (long long)created_at);
    json_is(metadata, JSON_OBJECT) ? json_write(out, metadata) : bytes_append_str(out, "{}");
    bytes_append_char(out, '}');
}

static void write_kept(bytes *out, const json *items)
{
    for (const json *v = json_child(items); v; v = json_next(v)) {
        bytes_append_char(out, ',');
        json_write(out, v);
    }
}

/* Keeps it as `text` says; sends an error and is false if it cannot. */
static bool keep_talk(serve *s, conn *c, const char *id, const bytes *text)
{
    if (!text->failed &&
        response_store_put(s->response_store, c->scope, id, text->data, text->len, 0, clock_ms())) {
        return true;
    }
    serve_send_fault(s, c, 413, "conversation_too_large", NULL, "the conversation is too long to be kept");
    return false;
}

static void send_talk(serve *s, conn *c, const char *id, int64_t created_at, const json *metadata)
{
    bytes body;
    bytes_init(&body, 2 * METADATA_BYTES);
    bytes_json(&body, "{\"id\":%s,\"object\":\"conversation\",\"created_at\":%lld,\"metadata\":", id,
               (long long)created_at);
    json_is(metadata, JSON_OBJECT) ? json_write(&body, metadata) : bytes_append_str(&body, "{}");
    bytes_append_char(&body, '}');
    serve_send_body(s, c, &body);
}

/* The object of the body; false if it is none, or a field is wrong: then an error is sent. */
static bool read_body(serve *s, conn *c, const bytes *body, json_doc **doc)
{
    err_detail d = {0};
    api_error e;
    bytes text = bytes_empty(METADATA_BYTES);
    err_code err = body->len > BODY_BYTES
                       ? err_set_param(&d, ERR_LIMIT, NULL, "body_too_large", "a body may have 1 MiB here")
                       : json_parse(doc, bytes_str(body), body->len, LIMIT_JSON_DEPTH, &d);
    const json *root = *doc ? json_root(*doc) : NULL, *metadata = json_get(root, "metadata"),
               *items = json_get(root, "items");
    json_write(&text, metadata);
    if (err == ERR_OK && !json_is(root, JSON_OBJECT)) {
        err = err_set_param(&d, ERR_INVALID, NULL, "invalid_type", "the body must be a JSON object");
    } else if (err == ERR_OK && json_typeof(metadata) != JSON_NULL &&
               (!json_is(metadata, JSON_OBJECT) || text.failed)) {
        err = err_set_param(&d, ERR_INVALID, "metadata", "invalid_value",
                            "metadata must be an object of at most %d bytes", METADATA_BYTES);
    } else if (err == ERR_OK && json_typeof(items) != JSON_NULL && !json_is(items, JSON_ARRAY)) {
        err = err_set_param(&d, ERR_INVALID, "items", "invalid_type", "items must be a list");
    }
    for (const json *v = json_child(items); v && err == ERR_OK; v = json_next(v)) {
        if (!json_is(v, JSON_OBJECT)) {
            err = err_set_param(&d, ERR_INVALID, "items", "invalid_type", "every item must be an object");
        }
    }
    bytes_deinit(&text);
    if (err != ERR_OK) {
        api_error_from(&e, err, &d);
        serve_send_error(s, c, &e);
    }
    return err == ERR_OK;
}

static void append_items(bytes *text, const json *items)
{
    if (json_child(items)) {
        bytes_append_char(text, ',');
        response_items_keep(text, items);
    }
}

static void create_talk(serve *s, conn *c, const json *root)
{
    char id[REQUEST_RESPONSE_ID_MAX];
    const int64_t now = clock_unix_s();
    bytes text = bytes_empty(LIMIT_STORED_RESPONSE_BYTES);
    hash_random_id(id, sizeof id, "conv_");
    write_head(&text, now, json_get(root, "metadata"));
    append_items(&text, json_get(root, "items"));
    if (keep_talk(s, c, id, &text)) {
        send_talk(s, c, id, now, json_get(root, "metadata"));
    }
    bytes_deinit(&text);
}

static int64_t created_at(const talk *t)
{
    return (int64_t)json_num(json_get(t->head, "created_at"), 0);
}

static void update_talk(serve *s, conn *c, const talk *t, const json *root)
{
    bytes text = bytes_empty(LIMIT_STORED_RESPONSE_BYTES);
    const json *metadata = json_get(root, "metadata");
    write_head(&text, created_at(t), metadata);
    write_kept(&text, t->items);
    if (keep_talk(s, c, t->id, &text)) {
        send_talk(s, c, t->id, created_at(t), metadata);
    }
    bytes_deinit(&text);
}

/* Adds the items and sends the list of those. */
static void add_items(serve *s, conn *c, const talk *t, const json *root)
{
    bytes added = bytes_empty(LIMIT_STORED_RESPONSE_BYTES), text = bytes_empty(LIMIT_STORED_RESPONSE_BYTES);
    response_items_keep(&added, json_get(root, "items"));
    json_doc *doc = parse_items(s, c, &added);
    write_head(&text, created_at(t), json_get(t->head, "metadata"));
    write_kept(&text, t->items);
    write_kept(&text, doc ? json_root(doc) : NULL);
    if (doc && keep_talk(s, c, t->id, &text)) {
        const response_items_page all = {.limit = LIMIT_MESSAGES};
        bytes body;
        bytes_init(&body, SIZE_MAX / 2);
        if (response_items_list(&body, json_root(doc), &all)) {
            serve_send_json(s, c, 200, &body, NULL);
        }
        bytes_deinit(&body);
    }
    json_free(doc);
    bytes_deinit(&added);
    bytes_deinit(&text);
}

/* GET and DELETE of one item. */
static void on_item(serve *s, conn *c, const talk *t)
{
    const json *item = response_items_find(t->items, c->param);
    bytes body;
    bytes_init(&body, LIMIT_STORED_RESPONSE_BYTES);
    if (!item) {
        serve_send_fault(s, c, 404, "item_not_found", "item_id",
                         "there is no such item in this conversation");
    } else if (c->method != NET_DELETE) {
        response_items_write(&body, item);
        serve_send_json(s, c, 200, &body, NULL);
    } else {
        write_head(&body, created_at(t), json_get(t->head, "metadata"));
        for (const json *v = json_child(t->items); v; v = json_next(v)) {
            if (v != item && strcmp(json_str(json_get(v, "id"), ""), c->param) != 0) {
                bytes_append_char(&body, ',');
                json_write(&body, v);
            }
        }
        if (keep_talk(s, c, t->id, &body)) {
            send_talk(s, c, t->id, created_at(t), json_get(t->head, "metadata"));
        }
    }
    bytes_deinit(&body);
}

void serve_on_conversations(serve *s, conn *c, const bytes *body)
{
    json_doc *doc = NULL;
    talk t;
    const bool writes = c->method == NET_POST;
    if (writes && !read_body(s, c, body, &doc)) {
        json_free(doc);
        return;
    }
    if (c->route->id == ROUTE_CONVERSATIONS) {
        create_talk(s, c, json_root(doc));
    } else if (open_talk(s, c, &t)) {
        if (c->route->id == ROUTE_CONV_ITEM) {
            on_item(s, c, &t);
        } else if (c->route->id == ROUTE_CONV_ITEMS) {
            writes ? add_items(s, c, &t, json_root(doc)) : send_list(s, c, t.items);
        } else if (c->method == NET_DELETE) {
            (void)response_store_remove(s->response_store, c->scope, t.id, clock_ms()); /* it was there */
            send_deleted(s, c, "conversation.deleted");
        } else if (writes) {
            update_talk(s, c, &t, json_root(doc));
        } else {
            send_talk(s, c, t.id, created_at(&t), json_get(t.head, "metadata"));
        }
        close_talk(&t);
    }
    json_free(doc);
}

void serve_extend_conversation(serve *s, const answer *a)
{
    const bytes *items = &a->opt.items;
    const char *own = bytes_str(items) + a->opt.n_before;
    own += *own == ',';
    bytes text = bytes_empty(LIMIT_STORED_RESPONSE_BYTES);
    if (!response_store_get(s->response_store, a->scope, a->opt.conversation, clock_ms(), &text)) {
        bytes_deinit(&text);
        return; /* it was deleted meanwhile */
    }
    bytes_append_char(&text, ',');
    bytes_append_str(&text, own);
    if (text.failed || !response_store_put(s->response_store, a->scope, a->opt.conversation, text.data,
                                           text.len, 0, clock_ms())) {
        log_warn("srv", "req=%s the conversation %s is too long to be added to", a->request_id,
                 a->opt.conversation);
    }
    bytes_deinit(&text);
}
