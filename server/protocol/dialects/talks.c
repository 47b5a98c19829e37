#include "server/protocol/dialects/talks.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"

enum { BODY_BYTES = 1 << 20 };

void talk_order_deinit(talk_order *o)
{
    bytes_deinit(&o->body);
}

static err_code no_talk(err_detail *d)
{
    return err_set_param(d, ERR_NOT_FOUND, "conversation_id", "conversation_not_found",
                         "there is no such conversation, or it is no longer kept");
}

static err_code too_large(err_detail *d)
{
    return err_set_param(d, ERR_LIMIT, NULL, "conversation_too_large",
                         "a conversation may have %zu MiB; begin another", LIMIT_STORED_RESPONSE_BYTES >> 20);
}

/* Why a text is not whole: it is too long, or there was no memory for it. */
static err_code not_whole(const bytes *text, err_detail *d)
{
    return text->no_memory ? ERR_NOMEM : too_large(d);
}

/* ---- in memory ---- */

static err_code get_stored(void *ctx, uint64_t scope, const char *id, bytes *out, err_detail *d)
{
    return response_store_get(ctx, scope, id, clock_ms(), out) ? ERR_OK : no_talk(d);
}

static err_code put_stored(void *ctx, uint64_t scope, const char *id, const bytes *text, err_detail *d)
{
    (void)d;
    return response_store_put(ctx, scope, id, text->data, text->len, 0, clock_ms()) ? ERR_OK : ERR_NOMEM;
}

static err_code add_stored(void *ctx, uint64_t scope, const char *id, const bytes *items, err_detail *d)
{
    bytes text = bytes_empty(LIMIT_STORED_RESPONSE_BYTES);
    err_code err = get_stored(ctx, scope, id, &text, d);
    bytes_append_char(&text, ',');
    bytes_append(&text, items->data, items->len);
    if (err == ERR_OK) {
        err = text.failed ? not_whole(&text, d) : put_stored(ctx, scope, id, &text, d);
    }
    bytes_deinit(&text);
    return err;
}

static err_code remove_stored(void *ctx, uint64_t scope, const char *id, err_detail *d)
{
    return response_store_remove(ctx, scope, id, clock_ms()) ? ERR_OK : no_talk(d);
}

talk_keeper talk_keeper_in_memory(response_store *store)
{
    return (talk_keeper){
        .ctx = store, .get = get_stored, .put = put_stored, .add = add_stored, .remove = remove_stored};
}

/* ---- one that is read or changed ---- */

typedef struct talk {
    json_doc *doc;
    const json *head; /* its items follow */
    json *items;
    json_doc *list;
} talk;

static void close_talk(talk *t)
{
    json_free(t->list);
    json_free(t->doc);
}

static err_code parse_items(json_doc **doc, const bytes *text)
{
    bytes list = bytes_empty(LIMIT_STORED_RESPONSE_BYTES + 2);
    bytes_append_char(&list, '[');
    bytes_append(&list, text->data, text->len);
    bytes_append_char(&list, ']');
    const err_code err = text->failed || list.failed
                             ? ERR_NOMEM
                             : json_parse(doc, list.data, list.len, LIMIT_JSON_DEPTH + 2, NULL);
    bytes_deinit(&list);
    return err == ERR_OK ? ERR_OK : ERR_NOMEM;
}

/* The caller closes it, also after an error. */
static err_code open_talk(talk *t, const talk_order *o, const talk_keeper *keeper, err_detail *d)
{
    *t = (talk){0};
    bytes text = bytes_empty(LIMIT_STORED_RESPONSE_BYTES);
    err_code err =
        strncmp(o->id, "conv_", 5) != 0 ? no_talk(d) : keeper->get(keeper->ctx, o->scope, o->id, &text, d);
    err = err == ERR_OK ? parse_items(&t->doc, &text) : err;
    bytes_deinit(&text);
    t->head = t->doc ? json_child(json_root(t->doc)) : NULL;
    t->list = json_build(&t->items, JSON_ARRAY);
    for (const json *v = json_next(t->head); v; v = json_next(v)) {
        json_add_shared(t->list, t->items, NULL, v);
    }
    return err == ERR_OK && !json_finish(t->list) ? ERR_NOMEM : err;
}

static int64_t created_at(const talk *t)
{
    return (int64_t)json_num(json_get(t->head, "created_at"), 0);
}

static void write_metadata(bytes *out, const json *metadata)
{
    bytes_append_str(out, ",\"metadata\":");
    json_is(metadata, JSON_OBJECT) ? json_write(out, metadata) : bytes_append_str(out, "{}");
    bytes_append_char(out, '}');
}

static void write_head(bytes *out, int64_t created, const json *metadata)
{
    bytes_printf(out, "{\"created_at\":%lld", (long long)created);
    write_metadata(out, metadata);
}

static void write_talk(bytes *out, const char *id, int64_t created, const json *metadata)
{
    bytes_json(out, "{\"id\":%s,\"object\":\"conversation\",\"created_at\":%lld", id, (long long)created);
    write_metadata(out, metadata);
}

static err_code keep(const talk_order *o, const talk_keeper *keeper, const char *id, const bytes *text,
                     err_detail *d)
{
    return text->failed ? not_whole(text, d) : keeper->put(keeper->ctx, o->scope, id, text, d);
}

/* ---- the body ---- */

/* The object of the body; the caller frees *doc, also after an error. */
static err_code read_body(const talk_order *o, json_doc **doc, err_detail *d)
{
    if (o->body.len > BODY_BYTES) {
        return err_set_param(d, ERR_LIMIT, NULL, "body_too_large", "a body may have 1 MiB here");
    }
    err_code err = json_parse(doc, bytes_str(&o->body), o->body.len, LIMIT_JSON_DEPTH, d);
    if (err != ERR_OK) {
        return err;
    }
    const json *root = json_root(*doc), *metadata = json_get(root, "metadata"),
               *items = json_get(root, "items");
    if (!json_is(root, JSON_OBJECT)) {
        err = err_set_param(d, ERR_INVALID, NULL, "invalid_type", "the body must be a JSON object");
    } else if (o->verb == TALK_UPDATE && json_typeof(metadata) == JSON_NULL) {
        err = err_set_param(d, ERR_INVALID, "metadata", "missing_field", "metadata is missing: {} clears it");
    } else if ((o->verb == TALK_ADD || json_typeof(items) != JSON_NULL) && !json_is(items, JSON_ARRAY)) {
        err = err_set_param(d, ERR_INVALID, "items", "invalid_type", "items must be a list");
    } else {
        err = request_metadata_check(metadata, d);
    }
    size_t i = 0;
    for (const json *v = json_child(items); v && err == ERR_OK; v = json_next(v), i++) {
        char path[ERR_PARAM_MAX];
        request_path(path, "items[%zu]", i);
        if (!json_is(v, JSON_OBJECT)) {
            err = err_set_param(d, ERR_INVALID, path, "invalid_type", "%s must be an object", path);
        } else if (!response_items_is_known(v)) {
            err = err_set_param(d, ERR_UNSUPPORTED, path, "unsupported_item_type",
                                "%s is of a type that is not understood", path);
        }
    }
    return err;
}

/* ---- what is asked ---- */

static err_code create(const talk_order *o, const talk_keeper *keeper, const json *root, bytes *reply,
                       err_detail *d)
{
    char id[REQUEST_RESPONSE_ID_MAX];
    const int64_t now = clock_unix_s();
    const json *items = json_get(root, "items");
    bytes text = bytes_empty(LIMIT_STORED_RESPONSE_BYTES);
    hash_random_id(id, sizeof id, "conv_");
    write_head(&text, now, json_get(root, "metadata"));
    bytes_append_str(&text, json_child(items) ? "," : "");
    response_items_keep(&text, items);
    const err_code err = keep(o, keeper, id, &text, d);
    bytes_deinit(&text);
    write_talk(reply, id, now, json_get(root, "metadata"));
    return err;
}

/* Keeps the conversation with this metadata, without the items of the id `but` (NULL: with all). */
static err_code rewrite(const talk_order *o, const talk_keeper *keeper, const talk *t, const json *metadata,
                        const char *but, bytes *reply, err_detail *d)
{
    bytes text = bytes_empty(LIMIT_STORED_RESPONSE_BYTES);
    write_head(&text, created_at(t), metadata);
    for (const json *v = json_child(t->items); v; v = json_next(v)) {
        if (!but || strcmp(json_str(json_get(v, "id"), ""), but) != 0) {
            bytes_append_char(&text, ',');
            json_write(&text, v);
        }
    }
    const err_code err = keep(o, keeper, o->id, &text, d);
    bytes_deinit(&text);
    write_talk(reply, o->id, created_at(t), metadata);
    return err;
}

/* Adds the items; the reply is the list of those. */
static err_code add(const talk_order *o, const talk_keeper *keeper, const json *root, bytes *reply,
                    err_detail *d)
{
    const response_items_page all = {.limit = LIMIT_MESSAGES};
    json_doc *doc = NULL;
    bytes added = bytes_empty(LIMIT_STORED_RESPONSE_BYTES);
    response_items_keep(&added, json_get(root, "items"));
    err_code err = added.failed ? not_whole(&added, d) : parse_items(&doc, &added);
    if (err == ERR_OK && added.len > 0) {
        err = keeper->add(keeper->ctx, o->scope, o->id, &added, d);
    }
    if (err == ERR_OK) {
        (void)response_items_list(reply, json_root(doc), &all); /* without `after` it always is one */
    }
    json_free(doc);
    bytes_deinit(&added);
    return err;
}

static err_code list(const talk_order *o, const talk *t, bytes *reply, err_detail *d)
{
    response_items_page page = o->page;
    page.after = o->after;
    return response_items_list(reply, t->items, &page)
               ? ERR_OK
               : err_set_param(d, ERR_INVALID, "after", "invalid_value",
                               "after must be the id of one of these items");
}

static err_code with_talk(const talk_order *o, const talk_keeper *keeper, const talk *t, const json *root,
                          bytes *reply, err_detail *d)
{
    const json *metadata = json_get(t->head, "metadata"), *item = response_items_find(t->items, o->item);
    switch (o->verb) {
    case TALK_GET:
        write_talk(reply, o->id, created_at(t), metadata);
        return ERR_OK;
    case TALK_UPDATE:
        return rewrite(o, keeper, t, json_get(root, "metadata"), NULL, reply, d);
    case TALK_LIST:
        return list(o, t, reply, d);
    case TALK_ADD:
        return add(o, keeper, root, reply, d);
    default:
        break;
    }
    if (!item) {
        return err_set_param(d, ERR_NOT_FOUND, "item_id", "item_not_found",
                             "there is no such item in this conversation");
    }
    if (o->verb == TALK_DELETE_ITEM) {
        return rewrite(o, keeper, t, metadata, o->item, reply, d);
    }
    response_items_write(reply, item);
    return ERR_OK;
}

err_code talk_run(const talk_order *o, const talk_keeper *keeper, bytes *reply, err_detail *d)
{
    json_doc *doc = NULL;
    talk t = {0};
    const bool has_body = o->verb == TALK_CREATE || o->verb == TALK_UPDATE || o->verb == TALK_ADD;
    err_code err = has_body ? read_body(o, &doc, d) : ERR_OK;
    if (err != ERR_OK) { /* said as it is */
    } else if (o->verb == TALK_EXTEND) {
        err = keeper->add(keeper->ctx, o->scope, o->id, &o->body, d);
    } else if (o->verb == TALK_CREATE) {
        err = create(o, keeper, json_root(doc), reply, d);
    } else if (o->verb == TALK_DELETE) {
        err = strncmp(o->id, "conv_", 5) != 0 ? no_talk(d) : keeper->remove(keeper->ctx, o->scope, o->id, d);
        bytes_json(reply, "{\"id\":%s,\"object\":\"conversation.deleted\",\"deleted\":true}", o->id);
    } else {
        err = open_talk(&t, o, keeper, d);
        err = err == ERR_OK ? with_talk(o, keeper, &t, doc ? json_root(doc) : NULL, reply, d) : err;
        close_talk(&t);
    }
    json_free(doc);
    return err;
}
