/* scheduler: decides what the next step does. Pure policy: no threads, no I/O, no tensors, so that
 * tests can simulate it.
 *
 *     step_plan plan = scheduler_plan(&sched, views, n_slots, chunk);
 *
 * A step advances every decoding sequence by one block, then does at most one unit of prompt work:
 * one vision unit, or some pieces of one prefill chunk of one sequence. So a running answer waits for
 * at most one such unit between two tokens.
 *
 * Among the waiting ones the shortest prompt is next, since that keeps the mean time to a first token
 * least; but one that waits longest is passed over for SCHEDULER_PATIENCE chunks' tokens at most, then a
 * chunk of it is due. So a short prompt waits for those that are shorter and one chunk in four of an old
 * one, and a long prompt takes at most four times what it takes alone, whatever comes behind it.
 */
#ifndef PARLEY_ENGINE_SCHEDULER_H
#define PARLEY_ENGINE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/gen.h"

/* What the policy sees of a slot. */
typedef struct slot_view {
    bool used;
    gen_phase phase;     /* VISION, PREFILL or DECODE when used */
    int32_t prompt_left; /* prompt tokens of the next chunk */
    int32_t prompt_rest; /* prompt tokens that are not computed */
    int64_t since;       /* when it was asked for: less is earlier */
    bool under_way;      /* a chunk of its prompt was begun and is not complete */
} slot_view;

/* Chunks of others for one of the prompt that waits longest. */
enum { SCHEDULER_PATIENCE = 3 };

typedef struct scheduler {
    int32_t n_passed; /* prompt tokens for which the one that waits longest was passed over */
} scheduler;

typedef struct step_plan {
    bool decode;         /* every slot in GEN_PHASE_DECODE takes part */
    int32_t prompt_slot; /* slot whose prompt work is done, or -1 */
    bool vision;         /* that work is a vision unit, else a prefill chunk */
    int32_t n_tokens;    /* of a new chunk; 0: the rest of the one that is under way */
} step_plan;

/* chunk: most prompt tokens a step. */
step_plan scheduler_plan(scheduler *s, const slot_view *slots, int32_t n_slots, int32_t chunk);

/* Whether one more piece of a chunk may follow n pieces that took spent_ms, after decode_ms of the
 * same step (0: nothing decodes). */
bool scheduler_more_pieces(int32_t n, double spent_ms, double decode_ms);

#endif
