#include "engine/scheduler.h"

static bool waits(const slot_view *slot)
{
    return slot->used && slot->phase != GEN_PHASE_DECODE;
}

static bool is_shorter(const slot_view *a, const slot_view *b)
{
    return a->prompt_rest != b->prompt_rest ? a->prompt_rest < b->prompt_rest : a->since < b->since;
}

step_plan scheduler_plan(scheduler *s, const slot_view *slots, int32_t n_slots, int32_t chunk)
{
    step_plan plan = {.prompt_slot = -1};
    int32_t shortest = -1, oldest = -1;
    for (int32_t i = 0; i < n_slots; i++) {
        plan.decode = plan.decode || (slots[i].used && slots[i].phase == GEN_PHASE_DECODE);
    }
    for (int32_t i = 0; i < n_slots; i++) {
        if (slots[i].used && slots[i].under_way) {
            plan.prompt_slot = i;
            return plan;
        }
        if (waits(&slots[i])) {
            shortest = shortest < 0 || is_shorter(&slots[i], &slots[shortest]) ? i : shortest;
            oldest = oldest < 0 || slots[i].since < slots[oldest].since ? i : oldest;
        }
    }
    if (oldest < 0) {
        s->n_passed = 0;
        return plan;
    }
    const int32_t next = s->n_passed >= SCHEDULER_PATIENCE * chunk ? oldest : shortest;
    const bool vision = slots[next].phase == GEN_PHASE_VISION;
    plan.prompt_slot = next;
    plan.vision = vision;
    plan.n_tokens = slots[next].prompt_left < chunk ? slots[next].prompt_left : chunk;
    s->n_passed = next == oldest ? 0 : s->n_passed + (vision ? chunk : plan.n_tokens); /* about as long */
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
