/* talks: conversations (/v1/conversations): what a request makes of one, wherever they are kept. Any
 * thread, as far as the keeper allows it.
 *
 *     talk_order o = {.verb = TALK_LIST, .page = {.limit = 20}};   // and o.scope, o.id
 *     err = talk_run(&o, &keeper, &reply, &detail);
 *     talk_order_deinit(&o);
 *
 * A conversation is kept as text: a head, {"created_at","metadata"}, then its items, with commas between
 * them and without brackets. Every item has an id.
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_TALKS_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_TALKS_H

#include "server/protocol/dialects/response_items.h"
#include "server/protocol/request_fields.h"
#include "server/protocol/response_store.h"

typedef enum talk_verb {
    TALK_CREATE, /* body: {"items","metadata"} */
    TALK_GET,
    TALK_UPDATE, /* body: {"metadata"} */
    TALK_DELETE,
    TALK_LIST, /* page */
    TALK_ADD,  /* body: {"items"} */
    TALK_GET_ITEM,
    TALK_DELETE_ITEM,
    TALK_EXTEND /* body: what an answer adds, items as they are kept; there is no reply */
} talk_verb;

enum { TALK_ITEM_ID_MAX = 512 };

typedef struct talk_order {
    talk_verb verb;
    uint64_t scope;                                           /* the owner */
    char id[REQUEST_RESPONSE_ID_MAX], item[TALK_ITEM_ID_MAX]; /* a client's own id may be long */
    char after[REQUEST_RESPONSE_ID_MAX];
    response_items_page page; /* without `after` */
    bytes body;               /* owned */
} talk_order;

void talk_order_deinit(talk_order *o);

/* Where conversations are kept. Each returns ERR_NOT_FOUND if this owner has none of this id, ERR_LIMIT
 * if there is no room for it, or what else went wrong, with a detail. */
typedef struct talk_keeper {
    void *ctx;
    err_code (*get)(void *ctx, uint64_t scope, const char *id, bytes *out, err_detail *d); /* appends */
    /* In place of what it was, if it was there. */
    err_code (*put)(void *ctx, uint64_t scope, const char *id, const bytes *text, err_detail *d);
    err_code (*add)(void *ctx, uint64_t scope, const char *id, const bytes *items, err_detail *d);
    err_code (*remove)(void *ctx, uint64_t scope, const char *id, err_detail *d);
} talk_keeper;

/* Among the responses that are kept in memory. */
talk_keeper talk_keeper_in_memory(response_store *store);

/* Does it and appends the reply. ERR_INVALID, ERR_NOT_FOUND and ERR_LIMIT with what is wrong; ERR_NOMEM. */
MUST_CHECK err_code talk_run(const talk_order *o, const talk_keeper *keeper, bytes *reply, err_detail *d);

#endif
