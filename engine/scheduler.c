#include "engine/scheduler.h"

step_plan scheduler_plan(scheduler *s, const slot_view *slots, int32_t n_slots, int32_t chunk)
{
    step_plan plan = {.prompt_slot = -1};
    for (int32_t i = 0; i < n_slots; i++) {
        plan.decode = plan.decode || (slots[i].used && slots[i].phase == GEN_PHASE_DECODE);
    }
    for (int32_t i = 0; i < n_slots; i++) {
        if (slots[i].used && slots[i].under_way) {
            plan.prompt_slot = i;
            return plan;
        }
    }
    for (int32_t step = 1; step <= n_slots; step++) {
        int32_t i = (s->last_prompt_slot + step) % n_slots;
        if (!slots[i].used || slots[i].phase == GEN_PHASE_DECODE) {
            continue;
        }
        plan.prompt_slot = i;
        plan.vision = slots[i].phase == GEN_PHASE_VISION;
        plan.n_tokens = slots[i].prompt_left < chunk ? slots[i].prompt_left : chunk;
        s->last_prompt_slot = i;
        break;
    }
    return plan;
}

/* Of the time of a decode step, how much prompts may take before the next one; alone, a chunk goes
 * on until it is time to look who was cancelled. */
#define PROMPT_FRACTION 1.0
#define ALONE_MS        100.0

bool scheduler_more_pieces(int32_t n, double spent_ms, double decode_ms)
{
    const double most = decode_ms > 0.0 ? PROMPT_FRACTION * decode_ms : ALONE_MS;
    return spent_ms * (n + 1) <= most * n;
}
