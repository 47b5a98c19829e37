/* Finished answers stay for readers that come back: a response for as long as its log lives, a
 * request with a name (Idempotency-Key, event_id) for as long as it may be sent again. What
 * somebody reads stays in any case. There are bounds to their number and bytes; then the key that
 * has most gives the oldest of its own, and that is remembered to be said. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/service/serve_state.h"

static const char *idempotency_key(const answer *a)
{
    return a->is_socket ? a->opt.event_id : a->idempotency_key;
}

/* Until when it may be asked for. */
static double expires_ms(const answer *a)
{
    double end = a->finished_ms + EVENT_LOG_TTL_S * 1000.0;
    double repeat = a->created_ms + SERVE_IDEMPOTENCY_S * 1000.0;
    return idempotency_key(a)[0] && repeat > end ? repeat : end;
}

enum { REPEAT_NAME = 2 * HASH_BYTES + NET_IDEMPOTENCY_KEY_MAX + 4 };

/* What a request that is sent again is known by; "" if it is not to be. */
static void repeat_name(const answer *a, char out[REPEAT_NAME])
{
    char hash[2 * HASH_BYTES + 1] = "";
    if (a->is_socket) { /* sockets count alike: only the same bytes are the same request */
        hash_hex(hash, a->opt.body_hash, HASH_BYTES);
    }
    snprintf(out, REPEAT_NAME, idempotency_key(a)[0] ? "%c:%s:%s" : "", a->is_socket ? 's' : 'h', hash,
             idempotency_key(a));
}

/* It goes before its time. */
static void evict(serve *s, answer *a)
{
    char name[REPEAT_NAME];
    repeat_name(a, name);
    log_info("srv", "req=%s is forgotten early: there is no room to keep more answers", a->request_id);
    if (a->has_reply) {
        shares_note_gone(&s->kept, a->scope, a->reply.id, expires_ms(a));
    }
    if (name[0]) {
        shares_note_gone(&s->kept, a->scope, name, a->created_ms + SERVE_IDEMPOTENCY_S * 1000.0);
    }
    serve_drop_answer(s, a);
}

/* The one of this key that nobody reads and that would go first. */
static answer *find_oldest(const serve *s, uint64_t scope)
{
    answer *first = NULL;
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer *a = id_table_at(&s->answers, i);
        if (a && a->kept_bytes && a->scope == scope && (!first || expires_ms(a) < expires_ms(first)) &&
            !serve_find_follower(s, a)) {
            first = a;
        }
    }
    return first;
}

/* For n more of n_bytes, and for requests that wait for memory. */
static void make_room(serve *s, size_t n, size_t n_bytes)
{
    uint64_t scope;
    while (shares_is_over(&s->kept, n, n_bytes, &scope)) {
        answer *a = find_oldest(s, scope);
        if (!a) {
            return; /* all are being read; connections are bounded, too */
        }
        evict(s, a);
    }
}

void serve_keep_answer(serve *s, answer *a)
{
    if (!a->has_reply && !a->idempotency_key[0]) {
        if (!serve_find_follower(s, a)) {
            serve_drop_answer(s, a);
        } /* else with its connection */
        return;
    }
    const size_t n = answer_bytes(a);
    make_room(s, 1, n);
    a->kept_bytes = shares_add(&s->kept, a->scope, n) ? n : 0;
    if (a->kept_bytes == 0 && !serve_find_follower(s, a)) {
        evict(s, a);
    }
}

ledger_status serve_memory_status(const serve *s, size_t *kept)
{
    ledger_status memory = ledger_get_status(s->memory);
    *kept = s->kept.n_bytes + response_store_bytes(s->response_store);
    memory.used -= *kept < memory.used ? *kept : memory.used;
    return memory;
}

void serve_expire_answers(serve *s, double now)
{
    if (now - s->expired_ms < SERVE_TICK_MS) {
        return;
    }
    s->expired_ms = now;
    make_room(s, 0, 0);
    response_store_tick(s->response_store, now);
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer *a = id_table_at(&s->answers, i);
        if (a && a->state == ANSWER_FINISHED && now > expires_ms(a) && !serve_find_follower(s, a)) {
            serve_drop_answer(s, a);
            i--; /* another may have moved to its place */
        }
    }
}

static void set_evicted(api_error *e, const char *code, const char *param, const char *what)
{
    api_error_set(e, 404, code, param,
                  "%s was kept, but had to go early: this key has more than its share of the %d answers and "
                  "%d MiB that are kept, or other requests needed the memory",
                  what, SERVE_KEPT_ANSWERS, SERVE_KEPT_BYTES >> 20);
}

void serve_no_response(const serve *s, uint64_t scope, const char *response_id, api_error *e)
{
    if (shares_is_gone(&s->kept, scope, response_id, clock_ms())) {
        set_evicted(e, "response_evicted", "response_id", "this response");
    } else {
        api_error_set(e, 404, "response_not_found", "response_id",
                      "there is no such response, or it is too old");
    }
}

bool serve_is_repeat_gone(const serve *s, const answer *a, api_error *e)
{
    char name[REPEAT_NAME];
    repeat_name(a, name);
    if (!name[0] || !shares_is_gone(&s->kept, a->scope, name, a->created_ms)) {
        return false;
    }
    set_evicted(e, a->is_socket ? "response_evicted" : "idempotency_reply_evicted", NULL,
                "the answer to this request");
    return true;
}
