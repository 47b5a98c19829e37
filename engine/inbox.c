#include "engine/inbox.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/gen.h"

/* A live request. Waiting entries stand in the order of submission. */
typedef struct entry {
    uint64_t id;
    gen_request *waiting; /* NULL before it is handed over, and once it runs */
    bool reserved;        /* its place is taken, it has not been handed over */
    bool cancelled, ends_thinking;
} entry;

struct inbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    entry *entries;               /* {lock} [n_entries], oldest first */
    int32_t n_entries, n_waiting; /* {lock} */
    int32_t n_reserved;           /* {lock} */
    int32_t queue_cap, cap;
    bool closed; /* {lock} */
    bool woken;  /* {lock} */
};

inbox *inbox_create(int32_t n_queue, int32_t n_running)
{
    inbox *in = calloc(1, sizeof *in);
    if (!in) {
        return NULL;
    }
    in->queue_cap = n_queue;
    in->cap = n_queue + n_running;
    in->entries = calloc((size_t)in->cap, sizeof *in->entries);
    if (!in->entries || !clock_init_condition(&in->changed)) {
        free(in->entries);
        free(in);
        return NULL;
    }
    pthread_mutex_init(&in->lock, NULL);
    return in;
}

void inbox_destroy(inbox *in)
{
    if (!in) {
        return;
    }
    for (int32_t i = 0; i < in->n_entries; i++) {
        gen_request_free(in->entries[i].waiting);
    }
    pthread_cond_destroy(&in->changed);
    pthread_mutex_destroy(&in->lock);
    free(in->entries);
    free(in);
}

/* {lock} */
static void remove_entry(inbox *in, int32_t at)
{
    for (int32_t i = at; i + 1 < in->n_entries; i++) {
        in->entries[i] = in->entries[i + 1];
    }
    in->n_entries--;
}

/* {lock} Index of a live request, or -1. */
static int32_t find(const inbox *in, uint64_t id)
{
    for (int32_t i = 0; i < in->n_entries; i++) {
        if (in->entries[i].id == id) {
            return i;
        }
    }
    return -1;
}

bool inbox_reserve(inbox *in, const gen_request *r)
{
    int32_t n = 0;
    for (const gen_request *q = r; q; q = q->next) {
        n++;
    }
    pthread_mutex_lock(&in->lock);
    const bool ok =
        !in->closed && in->n_waiting + in->n_reserved + n <= in->queue_cap && in->n_entries + n <= in->cap;
    for (const gen_request *q = r; q && ok; q = q->next) {
        in->entries[in->n_entries++] = (entry){.id = q->id, .reserved = true};
        in->n_reserved++;
    }
    pthread_mutex_unlock(&in->lock);
    return ok;
}

int32_t inbox_room(const inbox *in)
{
    return in->queue_cap;
}

void inbox_submit(inbox *in, gen_request *r)
{
    pthread_mutex_lock(&in->lock);
    while (r) {
        gen_request *next = r->next;
        entry *place = &in->entries[find(in, r->id)];
        r->next = NULL;
        place->reserved = false;
        place->waiting = r;
        in->n_reserved--;
        in->n_waiting++;
        r = next;
    }
    pthread_cond_signal(&in->changed);
    pthread_mutex_unlock(&in->lock);
}

void inbox_cancel(inbox *in, uint64_t id)
{
    pthread_mutex_lock(&in->lock);
    int32_t at = find(in, id);
    if (at >= 0) {
        in->entries[at].cancelled = true;
    }
    pthread_mutex_unlock(&in->lock);
}

void inbox_end_thinking(inbox *in, uint64_t id)
{
    pthread_mutex_lock(&in->lock);
    int32_t at = find(in, id);
    if (at >= 0) {
        in->entries[at].ends_thinking = true;
    }
    pthread_mutex_unlock(&in->lock);
}

bool inbox_ends_thinking(inbox *in, uint64_t id)
{
    pthread_mutex_lock(&in->lock);
    int32_t at = find(in, id);
    bool ends = at >= 0 && in->entries[at].ends_thinking;
    pthread_mutex_unlock(&in->lock);
    return ends;
}

void inbox_close(inbox *in)
{
    pthread_mutex_lock(&in->lock);
    in->closed = true;
    pthread_cond_broadcast(&in->changed);
    pthread_mutex_unlock(&in->lock);
}

bool inbox_take(inbox *in, gen_request **r)
{
    bool found = false;
    pthread_mutex_lock(&in->lock);
    for (int32_t i = 0; i < in->n_entries && !found; i++) {
        if (in->entries[i].waiting) {
            *r = in->entries[i].waiting;
            in->entries[i].waiting = NULL;
            in->n_waiting--;
            found = true;
        }
    }
    pthread_mutex_unlock(&in->lock);
    return found;
}

bool inbox_take_cancelled(inbox *in, gen_request **r)
{
    bool found = false;
    pthread_mutex_lock(&in->lock);
    for (int32_t i = 0; i < in->n_entries && !found; i++) {
        if (in->entries[i].waiting && (in->entries[i].cancelled || in->closed)) {
            *r = in->entries[i].waiting;
            in->n_waiting--;
            remove_entry(in, i);
            found = true;
        }
    }
    pthread_mutex_unlock(&in->lock);
    return found;
}

bool inbox_is_cancelled(inbox *in, uint64_t id)
{
    pthread_mutex_lock(&in->lock);
    int32_t at = find(in, id);
    bool cancelled = in->closed || (at >= 0 && in->entries[at].cancelled);
    pthread_mutex_unlock(&in->lock);
    return cancelled;
}

void inbox_finish(inbox *in, uint64_t id)
{
    pthread_mutex_lock(&in->lock);
    int32_t at = find(in, id);
    if (at >= 0) {
        remove_entry(in, at);
    }
    pthread_mutex_unlock(&in->lock);
}

void inbox_wake(inbox *in)
{
    pthread_mutex_lock(&in->lock);
    in->woken = true;
    pthread_cond_signal(&in->changed);
    pthread_mutex_unlock(&in->lock);
}

bool inbox_wait(inbox *in, int64_t ms)
{
    const struct timespec end = clock_deadline(ms);
    int rc = 0;
    pthread_mutex_lock(&in->lock);
    while (in->n_waiting == 0 && !in->woken && !in->closed && rc == 0) {
        rc = ms < 0 ? pthread_cond_wait(&in->changed, &in->lock)
                    : pthread_cond_timedwait(&in->changed, &in->lock, &end);
    }
    in->woken = false;
    bool open = !in->closed;
    pthread_mutex_unlock(&in->lock);
    return open;
}

bool inbox_is_closed(inbox *in)
{
    pthread_mutex_lock(&in->lock);
    bool closed = in->closed;
    pthread_mutex_unlock(&in->lock);
    return closed;
}

void inbox_count(inbox *in, int32_t *n_waiting, int32_t *n_running)
{
    pthread_mutex_lock(&in->lock);
    *n_waiting = in->n_waiting + in->n_reserved;
    *n_running = in->n_entries - *n_waiting;
    pthread_mutex_unlock(&in->lock);
}
