/* step: the engine thread. Each turn: drop the cancelled, admit the waiting, ask the scheduler for a
 * plan, run it (a decode step of every answer; one vision unit or prefill chunk), push events.
 *
 * Decode and prefill are separate forward calls, so that an answer's arithmetic never depends on
 * what else runs: decode batches stay within NN_ROWS_EXACT rows, and a prompt is always cut at the
 * same places. A prefill chunk is interrupted between layers, so that answers need not wait for the
 * whole of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/constrain.h"
#include "engine/engine_private.h"

/* Patches that one vision unit may hold; an image is one unit, a video goes in groups of frames. */
/* SCRATCH_KEPT: bytes of the encoder's scratch that stay between images. */
enum { VISION_UNIT_PATCHES = 4096, VISION_SCRATCH_KEPT = 32 << 20 };

/* ---- events ---- */

static double ms_between(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) / 1e6;
}

static void emit(engine *e, gen_event *ev)
{
    e->on_event(e->on_event_ctx, ev);
}

static gen_event *new_event(const slot *s, gen_event_type type)
{
    gen_event *ev = calloc(1, sizeof *ev);
    if (ev) {
        ev->request_id = s->req->id;
        ev->type = type;
        ev->phase = s->phase;
        ev->timings = s->timings;
    }
    return ev;
}

/* Progress is a courtesy: without memory it is left out. */
static void emit_progress(engine *e, const slot *s, int32_t processed, int32_t total)
{
    gen_event *ev = new_event(s, GEN_PROGRESS);
    if (ev) {
        ev->processed = processed;
        ev->total = total;
        emit(e, ev);
    }
}

/* Says how many of the prompt's images and pairs of video frames are encoded. */
static void emit_vision_progress(engine *e, const slot *s)
{
    int32_t done = s->frames_done, total = 0;
    for (size_t i = 0; i < s->req->n_media; i++) {
        total += s->req->media[i].n_units;
        done += i < s->media_done ? s->req->media[i].n_units : 0;
    }
    emit_progress(e, s, done, total);
}

/* Says that a request waits no longer, and how much of it is there already. */
static void emit_start(engine *e, const slot *s)
{
    if (s->phase == GEN_PHASE_VISION) {
        emit_vision_progress(e, s);
    } else {
        emit_progress(e, s, s->prompt_done, (int32_t)s->req->prompt.len);
    }
}

/* Sends the last event of a request, with the event taken at submit, and frees the request. */
static void send_done(engine *e, gen_request *r, const gen_timings *timings, gen_finish finish,
                      err_code error, const char *message)
{
    gen_event *ev = r->done;
    r->done = NULL;
    ev->request_id = r->id;
    ev->type = GEN_DONE;
    ev->finish = finish;
    ev->error = error;
    ev->timings = *timings;
    snprintf(ev->message, sizeof ev->message, "%s", message ? message : "");
    pthread_mutex_lock(&e->status_lock);
    e->status.n_requests++;
    e->status.n_prompt_tokens += (uint64_t)timings->prompt_n;
    e->status.n_cached_tokens += (uint64_t)timings->cache_n;
    e->status.n_generated_tokens += (uint64_t)timings->predicted_n;
    e->status.prefill_ms_sum += timings->prompt_ms;
    e->status.vision_ms_sum += timings->vision_ms;
    e->status.decode_ms_sum += timings->predicted_ms;
    e->status.n_drafted += (uint64_t)timings->draft_n;
    e->status.n_draft_accepted += (uint64_t)timings->draft_accepted_n;
    pthread_mutex_unlock(&e->status_lock);
    gen_request_free(r);
    emit(e, ev);
}

static void update_timings(slot *s)
{
    int64_t now = clock_ns();
    if (s->first_token_ns) {
        s->timings.predicted_ms = ms_between(s->first_token_ns, now);
    } else {
        s->timings.prompt_ms = ms_between(s->started_ns, now) - s->timings.vision_ms;
    }
}

static void finish(engine *e, slot *s, gen_finish how, err_code error, const char *message)
{
    gen_request *r = s->req;
    update_timings(s);
    sampler_destroy(s->sampler);
    s->sampler = NULL;
    grammar_cursor_destroy(s->cursor);
    s->cursor = NULL;
    s->req = NULL;
    s->chunk = 0;
    inbox_finish(e->inbox, r->id);
    send_done(e, r, &s->timings, how, error, message);
}

static void fail(engine *e, slot *s, err_code error, const err_detail *detail)
{
    log_error("eng", "req=%s failed: %s", s->req->name, detail->text);
    finish(e, s, GEN_FINISH_ERROR, error, detail->text);
}

static draft_context drafting_context(const engine *e)
{
    return (draft_context){.model = e->model, .compute = e->compute, .scratch = e->mtp};
}

/* ---- prefix cache ---- */

/* The key of the prompt: the sharing scope, then each token; rows of an image carry bits of its
 * hash instead, other ones in each row, so that two images differ in all of them. */
static void make_key(slot *s)
{
    const gen_request *r = s->req;
    s->key[0] = r->scope;
    for (size_t i = 0; i < r->prompt.len; i++) {
        s->key[1 + i] = (uint64_t)(uint32_t)r->prompt.ids[i];
    }
    for (size_t m = 0; m < r->n_media; m++) {
        const gen_media *media = &r->media[m];
        for (int32_t k = 0; k < media->n_rows; k++) {
            uint64_t bits;
            memcpy(&bits, media->hash + 8 * (k % (HASH_BYTES / 8)), sizeof bits);
            s->key[1 + r->embed_rows[media->first_row + k]] = bits | (uint64_t)1 << 63;
        }
    }
    s->n_key = 1 + r->prompt.len;
}

/* Keeps the state of the slot's sequence as it stands; hidden: the last row's. A full cache is no
 * error. The slot may be free already: the end of an answer is kept too. */
static void keep_state(engine *e, slot *s, const float *hidden)
{
    if (s->cache_fed) {
        prefix_cache_store(e->cache, s->key, 1 + (size_t)seq_state_len(s->seq), s->seq, hidden);
    }
}

/* Continues from the longest cached prefix that leaves at least one token to compute. */
static err_code resume_prefix(engine *e, slot *s, err_detail *detail)
{
    gen_request *r = s->req;
    const prefix_entry *hit = s->cache_used ? prefix_cache_find(e->cache, s->key, s->n_key - 1) : NULL;
    if (!hit || prefix_entry_len(hit) == 0) {
        return ERR_OK;
    }
    const int32_t n = prefix_entry_len(hit);
    err_code err = seq_state_restore(s->seq, prefix_entry_snapshot(hit), detail);
    if (err != ERR_OK) {
        return err;
    }
    seq_state_set_rope_delta(s->seq, r->rope_delta);
    s->prompt_done = s->timings.cache_n = n;
    while (s->media_done < r->n_media && r->embed_rows[r->media[s->media_done].first_row] < n) {
        gen_request_drop_media(r, s->media_done++);
    }
    while (s->next_boundary < r->n_boundaries && r->boundaries[s->next_boundary] <= n) {
        s->next_boundary++;
    }
    if (e->drafting) {
        const draft_context ctx = drafting_context(e);
        drafter_resume(&s->drafter, s->seq, n);
        err = drafter_prompt(&s->drafter, &ctx, s->seq, prefix_entry_hidden(hit), &r->prompt.ids[n],
                             &r->positions[n - 1], 1, detail);
    }
    return err;
}

/* ---- admission ---- */

static err_code start_slot(engine *e, slot *s, gen_request *r, err_detail *detail)
{
    const gen_params *p = &r->params;
    sampler_bias *biases = NULL;
    if (p->n_biases) {
        biases = malloc(p->n_biases * sizeof *biases);
        if (!biases) {
            return err_set(detail, ERR_NOMEM, "there is not enough memory to start this answer");
        }
        for (size_t i = 0; i < p->n_biases; i++) {
            biases[i] = (sampler_bias){p->biases[i].id, p->biases[i].bias};
        }
    }
    const sampler_params sp = {
        .temperature = p->temperature,
        .top_k = p->top_k,
        .top_p = p->top_p,
        .min_p = p->min_p,
        .repetition_penalty = p->repetition_penalty,
        .presence_penalty = p->presence_penalty,
        .frequency_penalty = p->frequency_penalty,
        .seed = p->has_seed ? p->seed : hash_random_u64(),
        .biases = biases,
        .n_biases = p->n_biases,
    };
    const int32_t n_tokens = tokenizer_n_tokens(model_tokenizer(e->model));
    const int32_t n_valid = n_tokens < e->info.n_vocab ? n_tokens : e->info.n_vocab;
    err_code err = sampler_create(&s->sampler, &sp, e->info.n_vocab, n_valid, detail);
    free(biases);
    if (err == ERR_OK) {
        sampler_prompt(s->sampler, r->prompt.ids, r->prompt.len);
        err = constrain_start(e, &s->cursor, r, detail);
        sampler_constrain(s->sampler, s->cursor);
    }
    return err;
}

static void admit(engine *e)
{
    for (int32_t i = 0; i < e->n_slots; i++) {
        slot *s = &e->slots[i];
        gen_request *r = NULL;
        if (s->req || !inbox_take(e->inbox, &r)) {
            continue;
        }
        s->req = r;
        s->cache_used = e->cache && !r->params.no_cache;
        s->cache_fed = s->cache_used && !(e->drafting && r->params.no_draft);
        s->prompt_done = s->frames_done = 0;
        s->next_boundary = s->media_done = 0;
        s->first_token_ns = 0;
        s->started_ns = clock_ns();
        s->timings = (gen_timings){
            .route = r->route,
            .n_images = r->n_images,
            .n_videos = r->n_videos,
            .media_ms = r->media_ms,
            .queue_ms = ms_between(r->submitted_ns, s->started_ns),
        };
        seq_state_reset(s->seq);
        drafter_reset(&s->drafter);
        seq_state_set_rope_delta(s->seq, r->rope_delta);
        err_detail detail = {0};
        make_key(s);
        think_init(&s->think, r->starts_in_thinking, r->may_think, r->params.think_tokens, r->think_close.ids,
                   r->think_close.len);
        err_code err = start_slot(e, s, r, &detail);
        if (err == ERR_OK) {
            err = resume_prefix(e, s, &detail);
        }
        s->phase = s->media_done < r->n_media ? GEN_PHASE_VISION : GEN_PHASE_PREFILL;
        if (err != ERR_OK) {
            fail(e, s, err, &detail);
        } else {
            log_debug("eng", "req=%s begins prompt=%zu cached=%d queue=%.1fms", r->name, r->prompt.len,
                      s->prompt_done, s->timings.queue_ms);
            emit_start(e, s);
        }
    }
}

static void drop_cancelled(engine *e)
{
    gen_request *r = NULL;
    while (inbox_take_cancelled(e->inbox, &r)) {
        gen_timings none = {.route = r->route};
        send_done(e, r, &none, GEN_FINISH_CANCELLED, ERR_CANCELLED, "cancelled while waiting");
    }
    for (int32_t i = 0; i < e->n_slots; i++) {
        slot *s = &e->slots[i];
        if (s->req && inbox_is_cancelled(e->inbox, s->req->id)) {
            finish(e, s, GEN_FINISH_CANCELLED, ERR_CANCELLED, "cancelled");
        }
    }
}

/* Whoever waits for an answer may have had enough of its thoughts. */
static void end_thoughts(engine *e)
{
    for (int32_t i = 0; i < e->n_slots; i++) {
        slot *s = &e->slots[i];
        if (s->req && inbox_ends_thinking(e->inbox, s->req->id)) {
            think_end(&s->think);
        }
    }
}

/* ---- tokens ---- */

static void watch_thinking(const engine *e, slot *s, int32_t id)
{
    size_t len = 0;
    bool special = false;
    const char *text = engine_token_bytes(e, id, &len, &special);
    think_accept(&s->think, text, special ? 0 : len);
}

enum { NO_DRAFT = -1 };

/* Draws the next token of a slot from its logits (overwritten) and says it, or ends the answer;
 * `draft` is what was guessed for it, or NO_DRAFT. False when the slot is free afterwards. */
static bool take_token(engine *e, slot *s, float *logits, int32_t draft)
{
    const gen_params *p = &s->req->params;
    if (p->n_top_logprobs >= 0) {
        memcpy(e->raw_logits, logits, (size_t)e->info.n_vocab * sizeof *logits);
    }
    int32_t id = sampler_pick(s->sampler, logits, 0);
    err_detail detail = {0};
    const err_code err = constrain_check(s->cursor, &detail);
    if (err != ERR_OK) {
        fail(e, s, err, &detail);
        return false;
    }
    if (!s->first_token_ns) {
        update_timings(s);
        s->first_token_ns = clock_ns();
        s->timings.ttft_ms = ms_between(s->req->submitted_ns, s->first_token_ns);
        s->phase = GEN_PHASE_DECODE;
    }
    s->timings.predicted_n++;
    id = think_choose(&s->think, id, !p->ignore_eos && engine_is_stop_token(e, id));
    s->timings.draft_accepted_n += id == draft;
    s->next_token = id;
    if ((!p->ignore_eos || s->cursor) && engine_is_stop_token(e, id)) {
        finish(e, s, GEN_FINISH_STOP, ERR_OK, NULL);
        return false;
    }
    sampler_accept(s->sampler, id);
    watch_thinking(e, s, id);
    s->key[s->n_key++] = (uint64_t)(uint32_t)id;
    update_timings(s);
    gen_event *ev = new_event(s, GEN_TOKENS);
    gen_logprob *lp = ev && p->n_top_logprobs >= 0 ? calloc(1, sizeof *lp) : NULL;
    if (!ev || (p->n_top_logprobs >= 0 && !lp)) {
        gen_event_free(ev);
        finish(e, s, GEN_FINISH_ERROR, ERR_NOMEM, "there is not enough memory to go on with this answer");
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
    emit(e, ev);
    if (s->timings.predicted_n >= s->req->max_tokens) {
        finish(e, s, GEN_FINISH_LENGTH, ERR_OK, NULL);
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

static bool may_draft(const engine *e, const slot *s)
{
    return e->drafting && !s->req->params.no_draft;
}

/* How many drafts the slot has use and room for, at most k. A draft that would end the answer takes
 * neither. */
static int32_t useful_drafts(const slot *s, int32_t k)
{
    int32_t room = seq_state_cap(s->seq) - seq_state_len(s->seq) - 1;
    int32_t wanted = s->req->max_tokens - s->timings.predicted_n - 1;
    int32_t most = room < wanted ? room : wanted;
    return most < 0 ? 0 : most < k ? most : k;
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
    const bool noting = may_draft(e, s);
    const int32_t n_drafts = s->drafter.n_drafts;
    int32_t n_right = 0;
    *n_judged = 0;
    s->timings.draft_n += n_drafts;
    for (int32_t i = 0; i < run->n_rows; i++) {
        const int32_t draft = i < n_drafts ? s->drafter.drafts[i] : NO_DRAFT;
        err_detail detail = {0};
        err_code err = ERR_OK;
        const bool goes_on = take_token(e, s, decoder_logits(e->scratch, run->first_row + i), draft);
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
                keep_state(e, s, decoder_hidden(e->scratch, run->first_row + i));
            }
            return n_right;
        }
        if (noting) {
            err = drafter_note(&s->drafter, &ctx, s->seq, decoder_hidden(e->scratch, run->first_row + i),
                               s->next_token, &detail);
        }
        if (err != ERR_OK) {
            fail(e, s, err, &detail);
            return n_right;
        }
        if (!right) {
            if (i + 1 < run->n_rows) {
                seq_state_rewind(s->seq, i + 1);
            }
            break;
        }
    }
    if (seq_state_len(s->seq) >= seq_state_cap(s->seq)) {
        finish(e, s, GEN_FINISH_LENGTH, ERR_OK, NULL);
    }
    return n_right;
}

/* One block of every answer in the decode phase: a row each, and the rows of what the draft head
 * guessed. */
static void decode_step(engine *e)
{
    block b = {0};
    slot *running[NN_ROWS_EXACT];
    int32_t n_running = 0, n_drafting = 0;
    for (int32_t i = 0; i < e->n_slots; i++) {
        slot *s = &e->slots[i];
        if (s->req && s->phase == GEN_PHASE_DECODE) {
            running[n_running++] = s;
            n_drafting += may_draft(e, s);
        }
    }
    const int64_t start = clock_ns();
    const draft_context ctx = drafting_context(e);
    const int32_t k_max = NN_ROWS_EXACT / n_running - 1;
    const int32_t k = n_drafting ? draft_policy_depth(&e->draft_policy, n_running, k_max) : 0;
    err_detail detail = {0};
    for (int32_t i = 0; i < n_running; i++) {
        slot *s = running[i];
        s->drafter.n_drafts = 0;
        s->drafter.ends = false;
        err_code err = may_draft(e, s)
                           ? drafter_draft(&s->drafter, &ctx, s->seq, s->sampler, useful_drafts(s, k),
                                           !s->req->params.ignore_eos, &detail)
                           : ERR_OK;
        if (err != ERR_OK) {
            fail(e, s, err, &detail);
        } else {
            add_run(&b, s);
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
    err_code err = decoder_forward(e->model, e->compute, &all, e->scratch, &detail);
    uint64_t n_first = 0, n_first_right = 0;
    for (int32_t i = 0; i < b.n_runs; i++) {
        if (err != ERR_OK) {
            fail(e, b.slots[i], err, &detail);
            continue;
        }
        int32_t n_judged = 0, n_right = verify_run(e, b.slots[i], &b.runs[i], &n_judged);
        draft_policy_result(&e->draft_policy, n_judged, n_right);
        n_first += n_judged > 0;
        n_first_right += n_right > 0;
    }
    if (n_drafting) {
        draft_policy_cost(&e->draft_policy, n_running, k, ms_between(start, clock_ns()));
    }
    if (n_drafting) {
        pthread_mutex_lock(&e->status_lock);
        e->status.n_parked_steps += k == 0;
        e->status.n_first_drafts += n_first;
        e->status.n_first_accepted += n_first_right;
        pthread_mutex_unlock(&e->status_lock);
    }
}

/* ---- prompts ---- */

/* All rows of the current image or video are there. */
static void finish_medium(engine *e, slot *s)
{
    gen_request *r = s->req;
    gen_request_drop_media(r, s->media_done);
    s->frames_done = 0;
    s->media_done++;
    emit_vision_progress(e, s);
    if (s->media_done == r->n_media) {
        s->phase = GEN_PHASE_PREFILL;
        vit_trim(e->vision, VISION_SCRATCH_KEPT);
        ledger_give(&r->memory, r->scratch_bytes);
        r->scratch_bytes = 0;
    }
}

/* Takes the rows of the current image or video from the vision cache. What was not there when the
 * request was prepared may have been encoded for another one since. */
static bool take_features(engine *e, slot *s, vision_cache *vc)
{
    gen_media *m = &s->req->media[s->media_done];
    if (!m->features && vc && s->frames_done == 0) {
        m->features = vision_cache_find(vc, m->key);
    }
    if (!m->features) {
        return false;
    }
    const size_t width = model_config_feature_width(model_get_config(e->model));
    memcpy(s->req->embeds + (size_t)m->first_row * width, m->features->rows,
           (size_t)m->n_rows * width * sizeof *m->features->rows);
    s->timings.n_media_cached++;
    finish_medium(e, s);
    return true;
}

/* Encodes the next image, or the next group of frames of a video. */
static void vision_step(engine *e, slot *s)
{
    gen_media *m = &s->req->media[s->media_done];
    const patches *p = &m->patches;
    vision_cache *vc = s->req->params.no_cache ? NULL : e->vision_cache;
    if (take_features(e, s, vc)) {
        return;
    }
    const int32_t frame = p->h * p->w, left = p->t - s->frames_done;
    int32_t n = VISION_UNIT_PATCHES / frame;
    n = n < 1 ? 1 : n > left ? left : n;
    const size_t rows_per_frame = (size_t)(m->n_rows / p->t);
    const size_t width = model_config_feature_width(model_get_config(e->model));
    float *out = s->req->embeds + ((size_t)m->first_row + (size_t)s->frames_done * rows_per_frame) * width;
    const patch_reader reader = {p, &e->processor, (size_t)s->frames_done * (size_t)frame};
    const vit_rows rows = {.read = patch_reader_read, .ctx = &reader};
    int64_t start = clock_ns();
    err_detail detail = {0};
    err_code err = vit_encode(e->vision, e->compute, out, NULL, &rows, n, p->h, p->w, &detail);
    if (err != ERR_OK) {
        fail(e, s, err, &detail);
        return;
    }
    s->timings.vision_ms += ms_between(start, clock_ns());
    s->frames_done += n;
    if (s->frames_done == p->t) {
        if (vc) {
            vision_cache_store(vc, m->key, p, m->pixels, s->req->embeds + (size_t)m->first_row * width);
        }
        pthread_mutex_lock(&e->status_lock);
        e->status.n_vision_encodes++;
        pthread_mutex_unlock(&e->status_lock);
        finish_medium(e, s);
    } else {
        emit_vision_progress(e, s);
    }
}

/* Enters prompt rows begin .. begin+n-1 into the draft head's cache; the last row of the prompt
 * waits for its token. */
static err_code show_drafter(engine *e, slot *s, int32_t begin, int32_t n, err_detail *detail)
{
    const gen_request *r = s->req;
    const draft_context ctx = drafting_context(e);
    const int32_t known = begin + n == (int32_t)r->prompt.len ? n - 1 : n;
    if (known == 0) {
        return ERR_OK;
    }
    return drafter_prompt(&s->drafter, &ctx, s->seq, decoder_hidden(e->prompt_scratch, 0),
                          r->prompt.ids + begin + 1, r->positions + begin, known, detail);
}

/* Begins to compute the next n prompt tokens. */
static err_code begin_chunk(engine *e, slot *s, int32_t n, err_detail *detail)
{
    const gen_request *r = s->req;
    const int32_t begin = s->prompt_done;
    int32_t first = 0, n_rows = 0;
    while (first < r->n_embed_rows && r->embed_rows[first] < begin) {
        first++;
    }
    while (first + n_rows < r->n_embed_rows && r->embed_rows[first + n_rows] < begin + n) {
        e->chunk_rows[n_rows] = r->embed_rows[first + n_rows] - begin;
        n_rows++;
    }
    const int32_t logit_row = n - 1;
    const batch_run run = {.seq = s->seq, .first_row = 0, .n_rows = n};
    const batch b = {
        .n_rows = n,
        .tokens = r->prompt.ids + begin,
        .positions = r->positions + begin,
        .runs = &run,
        .n_runs = 1,
        .logit_rows = &logit_row,
        .n_logit_rows = begin + n == (int32_t)r->prompt.len ? 1 : 0,
        .embed_rows = e->chunk_rows,
        .embeds = n_rows ? r->embeds + (size_t)first * model_config_feature_width(model_get_config(e->model))
                         : NULL,
        .n_embed_rows = n_rows,
    };
    s->chunk = n;
    return decoder_begin(e->model, e->compute, &b, e->prompt_scratch, detail);
}

/* The chunk is computed; behind the prompt's last token the first one of the answer is drawn. */
static void end_chunk(engine *e, slot *s)
{
    const gen_request *r = s->req;
    const int32_t begin = s->prompt_done, n = s->chunk, total = (int32_t)r->prompt.len;
    err_detail detail = {0};
    err_code err = ERR_OK;
    s->chunk = 0;
    s->prompt_done += n;
    s->timings.prompt_n = s->prompt_done - s->timings.cache_n;
    update_timings(s);
    if (may_draft(e, s)) {
        err = show_drafter(e, s, begin, n, &detail);
        if (err != ERR_OK) {
            fail(e, s, err, &detail);
            return;
        }
    }
    if (s->next_boundary < r->n_boundaries && r->boundaries[s->next_boundary] == s->prompt_done) {
        keep_state(e, s, decoder_hidden(e->prompt_scratch, n - 1));
        s->next_boundary++;
    }
    emit_progress(e, s, s->prompt_done, total);
    if (s->prompt_done < total || !take_token(e, s, decoder_logits(e->prompt_scratch, 0), NO_DRAFT)) {
        return;
    }
    if (may_draft(e, s)) {
        const draft_context ctx = drafting_context(e);
        err = drafter_note(&s->drafter, &ctx, s->seq, decoder_hidden(e->prompt_scratch, n - 1), s->next_token,
                           &detail);
    }
    if (err != ERR_OK) {
        fail(e, s, err, &detail);
    } else if (seq_state_len(s->seq) >= seq_state_cap(s->seq)) {
        finish(e, s, GEN_FINISH_LENGTH, ERR_OK, NULL);
    }
}

/* Some pieces of a chunk of n tokens, as many as there is time for: answers that took decode_ms for
 * their last step (0: there are none) wait for the next one. */
static void prefill_step(engine *e, slot *s, int32_t n, double decode_ms)
{
    const int64_t start = clock_ns();
    if (s->chunk == 0) {
        err_detail detail = {0};
        err_code err = begin_chunk(e, s, n, &detail);
        if (err != ERR_OK) {
            fail(e, s, err, &detail);
            return;
        }
    }
    int32_t n_pieces = 0;
    bool more;
    do {
        more = decoder_next(e->model, e->prompt_scratch, decode_ms > 0.0);
        n_pieces++;
    } while (more && scheduler_more_pieces(n_pieces, ms_between(start, clock_ns()), decode_ms));
    if (!more) {
        end_chunk(e, s);
    }
}

/* ---- the loop ---- */

static void count_steps(engine *e, uint64_t n_steps)
{
    prefix_cache_stats cache = {0};
    if (e->cache) {
        cache = prefix_cache_get_stats(e->cache);
    }
    pthread_mutex_lock(&e->status_lock);
    e->status.n_steps += n_steps;
    e->status.n_cache_queries = cache.n_queries;
    e->status.n_cache_hits = cache.n_hits;
    e->status.n_cache_entries = cache.n_entries;
    e->status.cache_bytes = cache.bytes;
    pthread_mutex_unlock(&e->status_lock);
}

/* Where the next prefill chunk must end at the latest: at a boundary, so that the state can be kept
 * there, or at the end of the prompt. */
static int32_t next_stop(const slot *s)
{
    const gen_request *r = s->req;
    return s->next_boundary < r->n_boundaries ? r->boundaries[s->next_boundary] : (int32_t)r->prompt.len;
}

/* Runs one step; false if no slot is in use. */
static bool step(engine *e)
{
    slot_view views[NN_ROWS_EXACT];
    bool any = false;
    for (int32_t i = 0; i < e->n_slots; i++) {
        const slot *s = &e->slots[i];
        views[i] = (slot_view){.used = s->req != NULL, .phase = s->phase};
        if (s->req) {
            any = true;
            views[i].prompt_left = next_stop(s) - s->prompt_done;
            views[i].under_way = s->chunk > 0;
        }
    }
    if (!any) {
        return false;
    }
    step_plan plan = scheduler_plan(&e->scheduler, views, e->n_slots, e->prefill_chunk);
    const int64_t start = clock_ns();
    if (plan.decode) {
        decode_step(e);
    }
    if (plan.prompt_slot >= 0 && plan.vision) {
        vision_step(e, &e->slots[plan.prompt_slot]);
    } else if (plan.prompt_slot >= 0) {
        prefill_step(e, &e->slots[plan.prompt_slot], plan.n_tokens,
                     plan.decode ? ms_between(start, clock_ns()) : 0.0);
    }
    count_steps(e, 1);
    return true;
}

void *engine_thread(void *arg)
{
    engine *e = arg;
    for (;;) {
        if (atomic_exchange(&e->clear_cache, false) && e->cache) {
            prefix_cache_clear(e->cache);
            count_steps(e, 0);
        }
        drop_cancelled(e);
        if (!inbox_is_closed(e->inbox)) {
            admit(e);
            end_thoughts(e);
        }
        if (!step(e) && !inbox_wait(e->inbox)) {
            break;
        }
    }
    drop_cancelled(e);
    return NULL;
}
