/* scheduler: decides what the next step does. Pure policy: no threads, no I/O, no tensors, so that
 * tests can simulate it.
 *
 *     step_plan plan = scheduler_plan(&sched, views, n_slots, chunk);
 *
 * A step advances every decoding sequence by one block, then does at most one unit of prompt work:
 * one vision unit, or some pieces of one prefill chunk of one sequence, round-robin among the
 * waiting ones. So a running answer waits for at most one such unit between two tokens, and a long
 * prompt cannot starve another prompt.
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
    bool under_way;      /* a chunk of its prompt was begun and is not complete */
} slot_view;

typedef struct scheduler {
    int32_t last_prompt_slot; /* round-robin memory */
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
