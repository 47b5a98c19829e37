/* decode: a step of every running answer: its next token and the drafts behind it in one batch, and
 * what the model says to each. Engine thread.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/constrain.h"
#include "engine/step.h"

static void watch_thinking(const engine *e, slot *s, int32_t id)
{
    size_t len = 0;
    bool special = false;
    const char *text = engine_token_bytes(e, id, &len, &special);
    think_accept(&s->think, text, special && !think_form_reads(s->req->think, text, len) ? 0 : len);
}

/* Nobody draws what would end an answer that is too short yet. A form says itself where it ends. */
static void forbid_end(const engine *e, const slot *s, float *logits)
{
    const model_config *cfg = model_get_config(e->model);
    if (s->timings.predicted_n >= s->req->params.min_tokens || s->cursor) {
        return;
    }
    for (int32_t i = 0; i < cfg->n_stop_ids; i++) {
        logits[cfg->stop_ids[i]] = -INFINITY;
    }
}

bool take_token(engine *e, slot *s, float *logits, int32_t draft, int32_t *n_right)
{
    const gen_params *p = &s->req->params;
    if (p->n_top_logprobs >= 0) {
        memcpy(e->raw_logits, logits, (size_t)e->info.n_vocab * sizeof *logits);
    }
    forbid_end(e, s, logits);
    int32_t id = sampler_pick(s->sampler, logits, 0);
    err_detail detail = {0};
    const err_code err = constrain_check(s->cursor, &detail);
    if (err != ERR_OK) {
        slot_fail(e, s, err, &detail);
        return false;
    }
    if (!s->first_token_ns) {
        slot_update_timings(s);
        s->first_token_ns = clock_ns();
        s->timings.ttft_ms = ms_between(s->req->submitted_ns, s->first_token_ns);
        s->phase = GEN_PHASE_DECODE;
    }
    s->timings.predicted_n++;
    id = think_choose(&s->think, id, !p->ignore_eos && engine_is_stop_token(e, id));
    if (n_right && id == draft) {
        ++*n_right;
    }
    s->next_token = id;
    if ((!p->ignore_eos || s->cursor) && engine_is_stop_token(e, id)) {
        slot_finish(e, s, GEN_FINISH_STOP, ERR_OK, NULL);
        return false;
    }
    sampler_accept(s->sampler, id);
    watch_thinking(e, s, id);
    s->key[s->n_key++] = (uint64_t)(uint32_t)id;
    slot_update_timings(s);
    gen_event *ev = slot_event(s, GEN_TOKENS);
    gen_logprob *lp = ev && p->n_top_logprobs >= 0 ? calloc(1, sizeof *lp) : NULL;
    if (!ev || (p->n_top_logprobs >= 0 && !lp)) {
        gen_event_free(ev);
        slot_finish(e, s, GEN_FINISH_ERROR, ERR_NOMEM,
                    "there is not enough memory to go on with this answer");
        return false;
    }
    if (lp) {
        lp->n_top = p->n_top_logprobs;
        lp->logprob = sampler_logprobs(e->raw_logits, e->info.n_vocab, id, lp->top_ids, lp->top_logprobs,
                                       (size_t)lp->n_top);
        ev->logprobs = lp;
    }
    ev->n_tokens = 1;
    ev->tokens[0] = id;
    slot_emit(e, ev);
    if (s->timings.predicted_n >= s->req->max_tokens) {
        slot_finish(e, s, GEN_FINISH_LENGTH, ERR_OK, NULL);
        return false;
    }
    return true;
}

/* ---- decode blocks ---- */

/* The rows of one decode step: each answer's next token and the drafts behind it. */
typedef struct block {
    int32_t tokens[NN_ROWS_EXACT];
    position positions[NN_ROWS_EXACT];
    int32_t rows[NN_ROWS_EXACT]; /* 0, 1, ...: logits are wanted for all */
    batch_run runs[NN_ROWS_EXACT];
    slot *slots[NN_ROWS_EXACT]; /* of each run */
    int32_t n_rows, n_runs;
} block;

/* How many drafts the slot has use for, at most k: an answer's tokens end before its context does, and a draft that would
 * be its last token saves nothing. */
static int32_t useful_drafts(const slot *s, int32_t k)
{
    const int32_t wanted = s->req->max_tokens - s->timings.predicted_n - 1;
    return wanted < k ? wanted : k;
}

static void add_run(block *b, slot *s)
{
    const int32_t n = 1 + s->drafter.n_drafts - s->drafter.ends;
    b->runs[b->n_runs] = (batch_run){
        .seq = s->seq, .first_row = b->n_rows, .n_rows = n, .exact_rows = true, .keep_rows = n > 1};
    b->slots[b->n_runs++] = s;
    for (int32_t i = 0; i < n; i++) {
        int32_t p = seq_state_len(s->seq) + i + seq_state_rope_delta(s->seq);
        b->tokens[b->n_rows] = i == 0 ? s->next_token : s->drafter.drafts[i - 1];
        b->positions[b->n_rows] = (position){p, p, p};
        b->rows[b->n_rows] = b->n_rows;
        b->n_rows++;
    }
}

/* Says what the model draws at each row of a run for as long as the drafts agree with it; puts the
 * sequence back to the last row that counts. Returns how many drafts were right; *n_judged: how
 * many were compared with a draw. */
static int32_t verify_run(engine *e, slot *s, const batch_run *run, int32_t *n_judged)
{
    const draft_context ctx = drafting_context(e);
    const bool noting = slot_may_draft(e, s);
    const int32_t n_drafts = s->drafter.n_drafts;
    int32_t n_right = 0;
    *n_judged = 0;
    s->timings.draft_n += s->n_head;
    s->timings.lookup_n += n_drafts - s->n_head;
    for (int32_t i = 0; i < run->n_rows; i++) {
        const int32_t draft = i < n_drafts ? s->drafter.drafts[i] : NO_DRAFT;
        err_detail detail = {0};
        err_code err = ERR_OK;
        int32_t *counter = i < s->n_head ? &s->timings.draft_accepted_n : &s->timings.lookup_accepted_n;
        const bool goes_on = take_token(e, s, decoder_logits(e->scratch, run->first_row + i), draft, counter);
        const bool right = s->next_token == draft;
        *n_judged += draft != NO_DRAFT;
        n_right += right;
        if (!goes_on) {
            if (i + 1 < run->n_rows) {
                seq_state_rewind(s->seq, i + 1);
            }
            if (noting) {
                err = drafter_flush(&s->drafter, &ctx, s->seq, &detail);
            }
            if (err == ERR_OK) {
                slot_keep_state(e, s, decoder_hidden(e->scratch, run->first_row + i));
            }
            return n_right;
        }
        if (noting) {
            err = drafter_note(&s->drafter, &ctx, s->seq, decoder_hidden(e->scratch, run->first_row + i),
                               s->next_token, &detail);
        }
        if (err != ERR_OK) {
            slot_fail(e, s, err, &detail);
            return n_right;
        }
        if (!right) {
            if (i + 1 < run->n_rows) {
                seq_state_rewind(s->seq, i + 1);
            }
            break;
        }
    }
    return n_right;
}

/* ---- what is guessed ---- */

/* The text, each token an element (prefix_cache.h). */
static const uint64_t *text_of(const slot *s, int32_t *n)
{
    *n = (int32_t)s->n_key - 1;
    return s->key + 1;
}

/* Cuts what was copied where the answer would end, or the grammar forbids it. */
static void cut_copied(const engine *e, slot *s)
{
    drafter *d = &s->drafter;
    int32_t state = s->cursor ? grammar_cursor_state(s->cursor) : 0;
    for (int32_t i = 0; i < d->n_drafts; i++) {
        state = s->cursor ? grammar_cursor_next(s->cursor, state, d->drafts[i]) : 0;
        const bool ends = (!s->req->params.ignore_eos || s->cursor) && engine_is_stop_token(e, d->drafts[i]);
        if (i >= s->n_head && (state == GRAMMAR_REFUSED || ends)) {
            d->n_drafts = i;
        }
    }
}

/* Copies what the text says behind the drafts of the head, as far as that promises to pay, and takes
 * it into the step. */
static void add_copied(engine *e, slot *s, lookup_step *step)
{
    drafter *d = &s->drafter;
    s->n_head = d->n_drafts;
    if (!slot_may_copy(e, s) || d->ends) {
        return;
    }
    int32_t n, k = useful_drafts(s, e->max_copied) - d->n_drafts;
    const uint64_t *text = text_of(s, &n);
    const lookup_match m = lookup_find(&s->lookup, text, n, d->drafts, d->n_drafts);
    k = k < NN_ROWS_EXACT - step->rows ? k : NN_ROWS_EXACT - step->rows;
    if (m.len > 0 && k > 0) {
        k = lookup_policy_depth(&e->lookup_policy, step, m.len, k);
        d->n_drafts += lookup_copy(&m, text, n, d->drafts, d->n_drafts, k);
        cut_copied(e, s);
        s->match_len = m.len;
        lookup_policy_add(&e->lookup_policy, step, m.len, d->n_drafts - s->n_head);
    }
}

/* The answers of a step, and what was chosen for it. */
typedef struct decode_plan {
    slot *running[NN_ROWS_EXACT];
    int32_t n_running, n_drafting; /* of them, those that may use the head */
    int32_t k;                     /* depth of the head; 0: it does not run */
    double head_ms;                /* its part of the step */
    bool copied;
} decode_plan;

/* Copies alone, or the head with copies behind its drafts: what promises more. Slots that fail are
 * left out. */
static void guess(engine *e, decode_plan *plan)
{
    const int32_t n = plan->n_running, k_max = NN_ROWS_EXACT / n - 1;
    const draft_context ctx = drafting_context(e);
    const lookup_policy *costs = &e->lookup_policy;
    lookup_step step = {.tokens = n, .ms = lookup_policy_ms(costs, n), .chance = 1.0, .rows = n};
    for (int32_t i = 0; i < n; i++) {
        slot *s = plan->running[i];
        s->drafter.n_drafts = 0;
        s->drafter.ends = false;
        add_copied(e, s, &step);
    }
    plan->copied = step.rows > n;
    plan->k = plan->n_drafting ? draft_policy_depth(&e->draft_policy, n, k_max) : 0;
    if (plan->k == 0) {
        return;
    }
    double tokens, chance;
    const double ms = draft_policy_promise(&e->draft_policy, n, plan->k, &tokens, &chance);
    lookup_step head = {.tokens = n + plan->n_drafting * (tokens - 1),
                        .ms = ms,
                        .chance = chance,
                        .rows = n + plan->n_drafting * plan->k};
    if (plan->copied && step.tokens / step.ms > head.tokens / head.ms) {
        plan->k = 0;
        return;
    }
    plan->head_ms = ms - lookup_policy_ms(costs, head.rows);
    const int32_t rows = head.rows;
    for (int32_t i = 0; i < n; i++) {
        slot *s = plan->running[i];
        err_detail detail = {0};
        s->drafter.n_drafts = 0;
        err_code err = slot_may_draft(e, s)
                           ? drafter_draft(&s->drafter, &ctx, s->seq, s->sampler, useful_drafts(s, plan->k),
                                           !s->req->params.ignore_eos, &detail)
                           : ERR_OK;
        if (err != ERR_OK) {
            slot_fail(e, s, err, &detail);
            plan->running[i] = NULL;
        } else {
            head.chance = slot_may_draft(e, s) ? chance : 1.0;
            add_copied(e, s, &head);
        }
    }
    plan->copied = head.rows > rows;
}

/* What the step took, and how often its guesses were right. */
static void learn(engine *e, const decode_plan *plan, int32_t n_rows, double ms)
{
    const bool plain = plan->k == 0 && !plan->copied;
    if (plan->n_drafting && (plain || (plan->k > 0 && !plan->copied))) {
        draft_policy_cost(&e->draft_policy, plan->n_running, plan->k, ms);
    }
    if (e->max_copied && (plain || plan->copied)) {
        lookup_policy_cost(&e->lookup_policy, n_rows, ms - plan->head_ms);
    }
}

static decode_plan find_running(engine *e)
{
    decode_plan plan = {0};
    for (int32_t i = 0; i < e->n_slots; i++) {
        slot *s = &e->slots[i];
        if (s->req && s->phase == GEN_PHASE_DECODE) {
            plan.running[plan.n_running++] = s;
            plan.n_drafting += slot_may_draft(e, s);
        }
    }
    return plan;
}

/* One block of every answer in the decode phase: a row each, and the rows of what was guessed. */
void decode_step(engine *e)
{
    block b = {0};
    decode_plan plan = find_running(e);
    assert(plan.n_running > 0); /* or it was not the step's turn */
    const int64_t start = clock_ns();
    guess(e, &plan);
    for (int32_t i = 0; i < plan.n_running; i++) {
        if (plan.running[i]) {
            add_run(&b, plan.running[i]);
        }
    }
    if (b.n_runs == 0) {
        return;
    }
    const batch all = {.n_rows = b.n_rows,
                       .tokens = b.tokens,
                       .positions = b.positions,
                       .runs = b.runs,
                       .n_runs = b.n_runs,
                       .logit_rows = b.rows,
                       .n_logit_rows = b.n_rows};
    err_detail detail = {0};
    err_code err = decoder_forward(e->model, e->compute, &all, e->scratch, &detail);
    uint64_t n_first = 0, n_first_right = 0;
    for (int32_t i = 0; i < b.n_runs; i++) {
        slot *s = b.slots[i];
        if (err != ERR_OK) {
            slot_fail(e, s, err, &detail);
            continue;
        }
        const int32_t n_head = s->n_head;
        int32_t n_judged = 0, n_right = verify_run(e, s, &b.runs[i], &n_judged);
        const int32_t judged_head = n_judged < n_head ? n_judged : n_head;
        draft_policy_result(&e->draft_policy, judged_head, n_right < n_head ? n_right : n_head);
        lookup_policy_result(&e->lookup_policy, s->match_len, n_judged - judged_head, n_right - n_head);
        n_first += judged_head > 0;
        n_first_right += judged_head > 0 && n_right > 0;
    }
    learn(e, &plan, b.n_rows, ms_between(start, clock_ns()));
    if (plan.n_drafting) {
        pthread_mutex_lock(&e->status_lock);
        e->status.n_parked_steps += plan.k == 0 && !plan.copied;
        e->status.n_first_drafts += n_first;
        e->status.n_first_accepted += n_first_right;
        pthread_mutex_unlock(&e->status_lock);
    }
}
