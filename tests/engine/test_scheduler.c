#include "engine/scheduler.h"

#include "tests/check.h"

static slot_view view(gen_phase phase, int32_t left)
{
    return (slot_view){.used = true, .phase = phase, .prompt_left = left};
}

static void test_idle(void)
{
    scheduler s = {0};
    slot_view slots[2] = {0};
    step_plan p = scheduler_plan(&s, slots, 2, 512);
    CHECK(!p.decode);
    CHECK_INT(p.prompt_slot, -1);
}

/* Every step decodes all answers and does at most one piece of prompt work. */
static void test_decode_beside_prefill(void)
{
    scheduler s = {0};
    slot_view slots[3] = {view(GEN_PHASE_DECODE, 0), view(GEN_PHASE_PREFILL, 2000),
                          view(GEN_PHASE_DECODE, 0)};
    step_plan p = scheduler_plan(&s, slots, 3, 512);
    CHECK(p.decode);
    CHECK_INT(p.prompt_slot, 1);
    CHECK(!p.vision);
    CHECK_INT(p.n_tokens, 512);
    slots[1].prompt_left = 7;
    p = scheduler_plan(&s, slots, 3, 512);
    CHECK_INT(p.n_tokens, 7);
}

/* Two prompts and an image take turns: none starves. */
static void test_round_robin(void)
{
    scheduler s = {0};
    slot_view slots[4] = {view(GEN_PHASE_PREFILL, 9000), view(GEN_PHASE_VISION, 90),
                          view(GEN_PHASE_DECODE, 0), view(GEN_PHASE_PREFILL, 9000)};
    int turns[4] = {0};
    for (int i = 0; i < 30; i++) {
        step_plan p = scheduler_plan(&s, slots, 4, 256);
        CHECK(p.prompt_slot >= 0 && p.prompt_slot != 2);
        CHECK_INT(p.vision, p.prompt_slot == 1);
        turns[p.prompt_slot]++;
    }
    CHECK_INT(turns[0], 10);
    CHECK_INT(turns[1], 10);
    CHECK_INT(turns[3], 10);
}

/* A chunk that was begun goes on before anything else, and takes nobody's turn. */
static void test_chunk_under_way(void)
{
    scheduler s = {0};
    slot_view slots[3] = {view(GEN_PHASE_DECODE, 0), view(GEN_PHASE_PREFILL, 2000),
                          view(GEN_PHASE_PREFILL, 2000)};
    step_plan p = scheduler_plan(&s, slots, 3, 512);
    CHECK_INT(p.prompt_slot, 1);
    CHECK_INT(p.n_tokens, 512);
    slots[1].under_way = true;
    for (int i = 0; i < 5; i++) {
        p = scheduler_plan(&s, slots, 3, 512);
        CHECK(p.decode && p.n_tokens == 0);
        CHECK_INT(p.prompt_slot, 1);
    }
    slots[1].under_way = false;
    CHECK_INT(scheduler_plan(&s, slots, 3, 512).prompt_slot, 2);
}

static void test_slices(void)
{
    CHECK(scheduler_more_pieces(1, 4.0, 10.0)); /* answers wait: a second piece would end in time */
    CHECK(!scheduler_more_pieces(2, 9.0, 10.0));
    CHECK(!scheduler_more_pieces(1, 6.0, 10.0));
    CHECK(scheduler_more_pieces(9, 80.0, 0.0)); /* nobody waits */
    CHECK(!scheduler_more_pieces(9, 99.0, 0.0));
}

int main(void)
{
    test_chunk_under_way();
    test_slices();
    test_idle();
    test_decode_beside_prefill();
    test_round_robin();
    CHECK_DONE();
}
