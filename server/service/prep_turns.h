/* prep_turns: which of the requests that are being prepared may compute now. A few take turns; the
 * one that has had the least time goes first, and gives way in its hook to one that had less. So a
 * short job waits for slices of the others, never for their ends, and what it waits for is bounded
 * by their number.
 *
 *     prep_turn turn = {.used_ms = guess, .cancelled = is_cancelled, .ctx = ctx};
 *     if (prep_turns_enter(t, &turn)) { while (prep_turns_hook(t, &turn)) { break; } }      // one step a round
 *     prep_turns_leave(t, &turn);
 *
 * Threads: any; a turn belongs to one. cancelled is called on that thread, with no lock held.
 */
#ifndef PARLEY_SERVER_SERVICE_PREP_TURNS_H
#define PARLEY_SERVER_SERVICE_PREP_TURNS_H

#include <stdbool.h>

#include "base/compiler.h"

typedef struct prep_turns prep_turns;

typedef struct prep_turn {
    /* set by the owner: a guess of what it will take before its first hook, which counts as had */
    double used_ms;
    bool (*cancelled)(void *ctx);
    void *ctx;
    /* private */
    double guess_ms, began_ms, heard_ms; /* heard: its last hook */
    double since_ms, computed_ms; /* its last charge, by the clock and by the processor time of its thread */
    bool holds, waits, pauses, is_evicted;
    struct prep_turn *next; /* of all that entered, the newest first */
} prep_turn;

enum {
    PREP_SLICE_MS = 10, /* by so much less must another have had, to be given way to */
    PREP_LONG_MS = 500, /* from then on a job leaves one turn to others */
    PREP_ROOM_MS = 50,  /* what a job must have had, to be ended for want of room */
};

/* n turns at a time; NULL if out of memory. */
MUST_CHECK prep_turns *prep_turns_create(int n);
void prep_turns_destroy(prep_turns *t); /* NULL allowed; nobody is inside */

/* Waits for a turn. False if the job should end instead, as after a hook; leave in any case. */
bool prep_turns_enter(prep_turns *t, prep_turn *turn);
/* Gives way if another has had less. False if the job should end: it was cancelled or evicted. */
bool prep_turns_hook(prep_turns *t, prep_turn *turn);
/* Around what needs no processor: others take the turn meanwhile. pause fails if too many do that
 * already. */
bool prep_turns_pause(prep_turns *t, prep_turn *turn, int most);
MUST_CHECK bool prep_turns_resume(prep_turns *t, prep_turn *turn);
void prep_turns_leave(prep_turns *t, prep_turn *turn);

/* Asks the job that has had the most, if it is more than PREP_ROOM_MS, to end: it is evicted, and
 * its hook fails. */
void prep_turns_make_room(prep_turns *t);
/* Whether this job was asked to end for want of room. */
bool prep_turns_is_evicted(prep_turns *t, const prep_turn *turn);

typedef struct prep_turns_status {
    int n_begun, n_computing;
    double oldest_ms; /* since the oldest began; 0: there is none */
    double silent_ms; /* no turn was given back and no hook called for so long, while all turns are taken */
} prep_turns_status;
void prep_turns_get_status(prep_turns *t, prep_turns_status *out);

#endif
