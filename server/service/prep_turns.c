#include "server/service/prep_turns.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

enum { LOOK_MS = 50 }; /* so often one that waits asks whether it is still wanted */

struct prep_turns {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n, n_holders, n_long; /* turns; who holds one; of them those that had long */
    prep_turn *first;
};

prep_turns *prep_turns_create(int n)
{
    prep_turns *t = calloc(1, sizeof *t);
    pthread_condattr_t monotonic;
    if (!t) {
        return NULL;
    }
    t->n = n;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return t;
}

void prep_turns_destroy(prep_turns *t)
{
    if (t) {
        pthread_cond_destroy(&t->changed);
        pthread_mutex_destroy(&t->lock);
        free(t);
    }
}

/* ---- with the lock held ---- */

static bool is_long(const prep_turn *turn)
{
    return turn->used_ms >= PREP_LONG_MS;
}

/* Who comes next: of those that wait the one that has had the least, the older of two. */
static prep_turn *next_of(const prep_turns *t)
{
    prep_turn *best = NULL;
    for (prep_turn *w = t->first; w; w = w->next) {
        best = w->waits && (!best || w->used_ms <= best->used_ms) ? w : best;
    }
    return best;
}

static bool may_take(const prep_turns *t, const prep_turn *turn)
{
    const int most_long = t->n - (t->n > 1);
    return t->n_holders < t->n && next_of(t) == turn && (!is_long(turn) || t->n_long < most_long);
}

static void count_holder(prep_turns *t, const prep_turn *turn, int change)
{
    t->n_holders += change;
    t->n_long += is_long(turn) ? change : 0;
}

static double processor_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

/* Charges the time since the last look: that of this thread, so that a busy machine makes no job a
 * long one; but a tenth of what it held the turn at least, for it may wait for another process. */
static void charge(prep_turn *turn, double now)
{
    const double computed_ms = processor_ms();
    const double used = computed_ms - turn->computed_ms, held = (now - turn->since_ms) / 10.0;
    turn->used_ms += used > held ? used : held;
    turn->computed_ms = computed_ms;
    turn->since_ms = now;
}

static void give_back(prep_turns *t, prep_turn *turn, double now)
{
    if (turn->holds) {
        count_holder(t, turn, -1);
        charge(turn, now);
        turn->holds = false;
        pthread_cond_broadcast(&t->changed);
    }
}

static struct timespec look_again_at(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += LOOK_MS * 1000000L;
    at.tv_sec += at.tv_nsec / 1000000000L;
    at.tv_nsec %= 1000000000L;
    return at;
}

/* Waits for a turn; false if the job should end. The lock is released while cancelled is asked. */
static bool take_turn(prep_turns *t, prep_turn *turn)
{
    bool wanted = true;
    turn->waits = true;
    while (wanted && !turn->is_evicted && !may_take(t, turn)) {
        const struct timespec until = look_again_at();
        if (pthread_cond_timedwait(&t->changed, &t->lock, &until) != 0) {
            pthread_mutex_unlock(&t->lock);
            wanted = !turn->cancelled(turn->ctx);
            pthread_mutex_lock(&t->lock);
        }
    }
    turn->waits = false;
    if (wanted && !turn->is_evicted) {
        turn->holds = true;
        turn->since_ms = turn->heard_ms = clock_ms();
        turn->computed_ms = processor_ms();
        count_holder(t, turn, 1);
    }
    pthread_cond_broadcast(&t->changed); /* another is next now */
    return turn->holds;
}

/* Whether one that waits may have the turn rather than this one. */
static bool must_give_way(prep_turns *t, const prep_turn *turn)
{
    const prep_turn *next = next_of(t);
    return (next && next->used_ms + PREP_SLICE_MS <= turn->used_ms) ||
           (is_long(turn) && t->n > 1 && t->n_long == t->n);
}

/* ---- calls ---- */

bool prep_turns_enter(prep_turns *t, prep_turn *turn)
{
    pthread_mutex_lock(&t->lock);
    turn->guess_ms = turn->used_ms;
    turn->began_ms = turn->heard_ms = clock_ms();
    turn->next = t->first;
    t->first = turn;
    const bool ok = take_turn(t, turn);
    pthread_mutex_unlock(&t->lock);
    return ok;
}

bool prep_turns_hook(prep_turns *t, prep_turn *turn)
{
    if (turn->cancelled(turn->ctx)) {
        return false;
    }
    pthread_mutex_lock(&t->lock);
    const double now = clock_ms();
    bool ok = !turn->is_evicted;
    turn->heard_ms = now;
    if (ok && turn->holds) {
        count_holder(t, turn, -1);
        charge(turn, now);
        count_holder(t, turn, 1);
        if (must_give_way(t, turn)) {
            give_back(t, turn, now);
            ok = take_turn(t, turn);
        }
    }
    pthread_mutex_unlock(&t->lock);
    return ok;
}

bool prep_turns_pause(prep_turns *t, prep_turn *turn, int most)
{
    int n_paused = 0;
    pthread_mutex_lock(&t->lock);
    for (const prep_turn *w = t->first; w; w = w->next) {
        n_paused += w->pauses;
    }
    turn->pauses = n_paused < most;
    if (turn->pauses) {
        give_back(t, turn, clock_ms());
    }
    const bool ok = turn->pauses;
    pthread_mutex_unlock(&t->lock);
    return ok;
}

bool prep_turns_resume(prep_turns *t, prep_turn *turn)
{
    pthread_mutex_lock(&t->lock);
    turn->pauses = false;
    const bool ok = take_turn(t, turn);
    pthread_mutex_unlock(&t->lock);
    return ok;
}

void prep_turns_leave(prep_turns *t, prep_turn *turn)
{
    pthread_mutex_lock(&t->lock);
    give_back(t, turn, clock_ms());
    prep_turn **at = &t->first;
    while (*at != turn) {
        at = &(*at)->next;
    }
    *at = turn->next;
    pthread_mutex_unlock(&t->lock);
}

void prep_turns_make_room(prep_turns *t)
{
    prep_turn *most = NULL;
    double most_ms = PREP_ROOM_MS;
    pthread_mutex_lock(&t->lock);
    for (prep_turn *w = t->first; w; w = w->next) {
        const double had = w->used_ms - w->guess_ms;
        if (!w->is_evicted && !w->pauses && had > most_ms) {
            most = w;
            most_ms = had;
        }
    }
    if (most) {
        most->is_evicted = true;
        pthread_cond_broadcast(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
}

bool prep_turns_is_evicted(prep_turns *t, const prep_turn *turn)
{
    pthread_mutex_lock(&t->lock);
    const bool is_evicted = turn->is_evicted;
    pthread_mutex_unlock(&t->lock);
    return is_evicted;
}

void prep_turns_get_status(prep_turns *t, prep_turns_status *out)
{
    *out = (prep_turns_status){0};
    pthread_mutex_lock(&t->lock);
    const double now = clock_ms();
    double silent_ms = -1.0; /* of none yet */
    for (const prep_turn *w = t->first; w; w = w->next) {
        const double silence = now - w->heard_ms;
        silent_ms = w->holds && (silent_ms < 0.0 || silence < silent_ms) ? silence : silent_ms;
        const double age = now - w->began_ms;
        out->oldest_ms = age > out->oldest_ms ? age : out->oldest_ms;
        out->n_begun++;
    }
    out->n_computing = t->n_holders;
    out->silent_ms = t->n_holders == t->n && silent_ms > 0.0 ? silent_ms : 0.0;
    pthread_mutex_unlock(&t->lock);
}
