#include "engine/scheduler.h"

#include "base/compiler.h"

#include "tests/check.h"

static slot_view view(gen_phase phase, int32_t left)
{
    return (slot_view){.used = true, .phase = phase, .prompt_left = left, .prompt_rest = left};
}

static void test_idle(void)
{
    scheduler s = {0};
    slot_view slots[2] = {0};
    step_plan p = scheduler_plan(&s, slots, 2, 512);
    CHECK(!p.decode);
    CHECK_INT(p.prompt_slot, -1);
    /* What a slot did last says nothing; nor does whoever was passed over when there was a queue. */
    slots[0].phase = GEN_PHASE_DECODE;
    slots[1] = view(GEN_PHASE_PREFILL, 100);
    p = scheduler_plan(&s, slots, 2, 512);
    CHECK(!p.decode);
    CHECK_INT(p.prompt_slot, 1);
    slots[1].used = false;
    s.n_passed = 400;
    CHECK_INT(scheduler_plan(&s, slots, 2, 512).prompt_slot, -1);
    CHECK_INT(s.n_passed, 0);
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

/* A load of prompts: slots whose prompts come at some time and are computed as the plans say. */
enum { CHUNK = 512, SLOTS = 12 };

/* Computes prompts of so many tokens, all there at once and in this order, beside 8 answers; to done[i]
 * the tokens that were computed until prompt i was. */
static void serve(const int32_t *tokens, int32_t n, int32_t *done)
{
    scheduler s = {0};
    slot_view slots[SLOTS] = {0};
    int32_t clock = 0, left = n;
    for (int32_t i = 0; i < SLOTS; i++) {
        slots[i] = view(GEN_PHASE_DECODE, 0);
    }
    for (int32_t i = 0; i < n; i++) {
        slots[i] = view(GEN_PHASE_PREFILL, tokens[i]);
        slots[i].since = i;
    }
    while (left > 0) {
        const step_plan p = scheduler_plan(&s, slots, SLOTS, CHUNK);
        CHECK(p.decode && p.prompt_slot >= 0 && p.n_tokens > 0);
        slot_view *at = &slots[p.prompt_slot];
        clock += p.n_tokens;
        at->prompt_rest -= p.n_tokens;
        at->prompt_left = at->prompt_rest;
        if (at->prompt_rest == 0) {
            done[p.prompt_slot] = clock;
            at->phase = GEN_PHASE_DECODE;
            left--;
        }
    }
}

/* Eight answers run, four prompts wait: the shortest first, and the long one that was there before them
 * does not hold them up. */
static void test_shortest_first(void)
{
    int32_t done[4];
    serve((const int32_t[]){8000, 300, 40, 700}, 4, done);
    CHECK_INT(done[2], 40);
    CHECK_INT(done[1], 340);
    CHECK_INT(done[3], 1040);
    CHECK_INT(done[0], 9040);
    serve((const int32_t[]){100, 100, 100, 100}, 4, done); /* alike: who came first */
    CHECK(done[0] < done[1] && done[1] < done[2] && done[2] < done[3]);
    /* Nobody waits for more than four thirds of what is shorter, and a chunk. */
    const int32_t tokens[4] = {4000, 3000, 2000, 1000};
    serve(tokens, 4, done);
    for (int32_t i = 0, sum = 0; i < 4; i++) {
        sum += tokens[3 - i];
        CHECK(done[3 - i] <= sum * 4 / 3 + CHUNK);
    }
}

/* Short prompts without an end: a long one is computed all the same, in four times its own tokens, and
 * each short one waits for a chunk of it at most. */
static void test_aging(void)
{
    const int32_t lengths[] = {10, 200, 512, 900};
    for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
        scheduler s = {0};
        slot_view slots[2] = {view(GEN_PHASE_PREFILL, 8192), view(GEN_PHASE_PREFILL, lengths[k])};
        int32_t others = 0, in_a_row = 0;
        slots[1].since = 1;
        while (slots[0].prompt_rest > 0 && others < 100000) {
            const step_plan p = scheduler_plan(&s, slots, 2, CHUNK);
            slot_view *at = &slots[p.prompt_slot];
            at->prompt_rest -= p.n_tokens;
            others += p.prompt_slot == 1 ? p.n_tokens : 0;
            in_a_row = p.prompt_slot == 1 ? 0 : in_a_row + 1;
            CHECK(in_a_row <= 1 || slots[0].prompt_rest <= lengths[k]);
            if (slots[1].prompt_rest == 0) { /* the next one comes */
                slots[1] = view(GEN_PHASE_PREFILL, lengths[k]);
                slots[1].since = others;
            }
            slots[p.prompt_slot].prompt_left = slots[p.prompt_slot].prompt_rest;
        }
        CHECK_INT(slots[0].prompt_rest, 0);
        CHECK(others <= SCHEDULER_PATIENCE * (8192 + CHUNK) + lengths[k] * 8192 / CHUNK);
    }
}

/* An image counts as a chunk: a long prompt in front of many of them goes on. */
static void test_images(void)
{
    scheduler s = {0};
    slot_view slots[2] = {view(GEN_PHASE_PREFILL, 9000), view(GEN_PHASE_VISION, 90)};
    int turns[2] = {0};
    slots[1].since = 1;
    for (int i = 0; i < 40; i++) {
        const step_plan p = scheduler_plan(&s, slots, 2, 256);
        CHECK_INT(p.vision, p.prompt_slot == 1);
        turns[p.prompt_slot]++;
    }
    CHECK_INT(turns[0], 10);
    CHECK_INT(turns[1], 30);
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
        CHECK(p.decode && !p.vision && p.n_tokens == 0);
        CHECK_INT(p.prompt_slot, 1);
    }
    CHECK_INT(s.n_passed, 0);
    slots[1].under_way = false;
    slots[1].prompt_rest = 3000;
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
    test_shortest_first();
    test_aging();
    test_images();
    CHECK_DONE();
}
