#include "engine/scheduler.h"

step_plan scheduler_plan(scheduler *s, const slot_view *slots, int32_t n_slots, int32_t chunk)
{
    step_plan plan = {.prompt_slot = -1};
    for (int32_t i = 0; i < n_slots; i++) {
        plan.decode = plan.decode || (slots[i].used && slots[i].phase == GEN_PHASE_DECODE);
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
