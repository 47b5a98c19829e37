/* slot: what a slot tells its client, what it takes from the prefix cache and gives it, how it
 * starts and ends. Engine thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/constrain.h"
#include "engine/step.h"

/* ---- events ---- */

void slot_emit(engine *e, gen_event *ev)
{
    e->on_event(e->on_event_ctx, ev);
}

gen_event *slot_event(const slot *s, gen_event_type type)
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

void slot_emit_progress(engine *e, const slot *s, int32_t processed, int32_t total)
{
    gen_event *ev = slot_event(s, GEN_PROGRESS);
    if (ev) {
        ev->processed = processed;
        ev->total = total;
        slot_emit(e, ev);
    }
}

void slot_emit_vision_progress(engine *e, const slot *s)
{
    int32_t done = s->frames_done, total = 0;
    for (size_t i = 0; i < s->req->n_media; i++) {
        total += s->req->media[i].n_units;
        done += i < s->media_done ? s->req->media[i].n_units : 0;
    }
    slot_emit_progress(e, s, done, total);
}

void slot_emit_start(engine *e, const slot *s)
{
    if (s->phase == GEN_PHASE_VISION) {
        slot_emit_vision_progress(e, s);
    } else {
        slot_emit_progress(e, s, s->prompt_done, (int32_t)s->req->prompt.len);
    }
}

void slot_count_cache(engine *e)
{
    prefix_cache_stats cache = {0};
    if (e->cache) {
        cache = prefix_cache_get_stats(e->cache);
    }
    pthread_mutex_lock(&e->status_lock);
    e->status.n_cache_queries = cache.n_queries;
    e->status.n_cache_hits = cache.n_hits;
    e->status.n_cache_entries = cache.n_entries;
    e->status.cache_bytes = cache.bytes;
    pthread_mutex_unlock(&e->status_lock);
}

void request_send_done(engine *e, gen_request *r, const gen_timings *timings, gen_finish finish,
                       err_code error, const char *message)
{
    gen_event *ev = r->done;
    r->done = NULL;
    r->end.has_failed = !r->of && !r->end.state; /* nobody else computes it */
    slot_count_cache(e);
    ev->request_id = r->id;
    ev->type = GEN_DONE;
    ev->finish = finish;
    ev->error = error;
    ev->timings = *timings;
    snprintf(ev->message, sizeof ev->message, "%.255s", message ? message : "");
    pthread_mutex_lock(&e->status_lock);
    e->status.n_requests++;
    e->status.n_prompt_tokens += (uint64_t)(timings->prompt_n + timings->sparse_n - timings->sparse_kept_n);
    e->status.n_cached_tokens += (uint64_t)timings->cache_n;
    e->status.n_generated_tokens += (uint64_t)timings->predicted_n;
    e->status.prefill_ms_sum += timings->prompt_ms;
    e->status.vision_ms_sum += timings->vision_ms;
    e->status.decode_ms_sum += timings->predicted_ms;
    e->status.n_drafted += (uint64_t)timings->draft_n;
    e->status.n_draft_accepted += (uint64_t)timings->draft_accepted_n;
    e->status.n_copied += (uint64_t)timings->lookup_n;
    e->status.n_copied_accepted += (uint64_t)timings->lookup_accepted_n;
    pthread_mutex_unlock(&e->status_lock);
    gen_request_free(r);
    slot_emit(e, ev);
}

void slot_update_timings(slot *s)
{
    int64_t now = clock_ns();
    if (s->first_token_ns) {
        s->timings.predicted_ms = ms_between(s->first_token_ns, now);
    } else {
        s->timings.prompt_ms = ms_between(s->started_ns, now) - s->timings.vision_ms;
    }
}

void slot_finish(engine *e, slot *s, gen_finish how, err_code error, const char *message)
{
    gen_request *r = s->req;
    slot_update_timings(s);
    if (r->cache_name[0] && !r->loads_cache && (how == GEN_FINISH_STOP || how == GEN_FINISH_LENGTH)) {
        disk_begin_naming(e, s);
        return;
    }
    s->names = s->awaits_prompt = false;
    sparse_stop(e, s);
    sampler_destroy(s->sampler);
    s->sampler = NULL;
    grammar_cursor_destroy(s->cursor);
    s->cursor = NULL;
    s->req = NULL;
    prefill_give_up(e, s);
    inbox_finish(e->inbox, r->id);
    request_send_done(e, r, &s->timings, how, error, message);
}

void slot_fail(engine *e, slot *s, err_code error, const err_detail *detail)
{
    log_error("eng", "req=%s failed: %s", s->req->name, detail->text);
    memcpy(s->req->done->error_name, detail->name, sizeof detail->name);
    slot_finish(e, s, GEN_FINISH_ERROR, error, detail->text);
}

draft_context drafting_context(const engine *e)
{
    return (draft_context){.model = e->model, .compute = e->compute, .scratch = e->mtp};
}

bool slot_may_draft(const engine *e, const slot *s)
{
    return e->drafting && !s->req->params.no_draft;
}

bool slot_may_copy(const engine *e, const slot *s)
{
    return e->max_copied > 0 && !s->req->params.no_draft && !s->req->params.no_lookup;
}

/* ---- prefix cache ---- */

/* The key of the prompt: the sharing scope, then each token; rows of an image carry bits of its key
 * in the vision cache instead, other ones in each row, so that two images, or one shown in two
 * sizes, differ in all of them. The first token says how blocks of the delta rule are cut. */
static void make_key(slot *s)
{
    const uint64_t IMAGE_ROW = (uint64_t)1 << 63, WHOLE_BLOCKS = (uint64_t)1 << 62;
    const gen_request *r = s->req;
    s->key[0] = r->scope;
    for (size_t i = 0; i < r->prompt.len; i++) {
        s->key[1 + i] = (uint64_t)(uint32_t)r->prompt.ids[i];
    }
    for (size_t m = 0; m < r->n_media; m++) {
        const gen_media *media = &r->media[m];
        uint8_t seed[HASH_BYTES + sizeof(int32_t)], bits[HASH_BYTES];
        memcpy(seed, media->key, HASH_BYTES);
        memcpy(seed + HASH_BYTES, &media->n_rows, sizeof(int32_t));
        hash_sha256(bits, seed, sizeof seed);
        for (int32_t k = 0; k < media->n_rows; k++) {
            uint64_t row;
            memcpy(&row, bits + 8 * (k % (HASH_BYTES / 8)), sizeof row);
            s->key[1 + r->embed_rows[media->first_row + k]] = row | IMAGE_ROW;
        }
    }
    if (r->has_whole_blocks) {
        s->key[1] |= WHOLE_BLOCKS;
    }
    s->n_key = 1 + r->prompt.len;
}

void slot_keep_state(engine *e, slot *s, const float *hidden)
{
    if (s->cache_fed) {
        prefix_cache_store(e->cache, s->key, 1 + (size_t)seq_state_len(s->seq), s->seq, hidden);
    }
}

seq_snapshot *slot_begin_keeping(engine *e, const slot *s, int32_t len, size_t pending)
{
    if (!s->cache_fed || prefix_cache_has(e->cache, s->key, 1 + (size_t)len)) {
        return NULL;
    }
    seq_snapshot *snapshot = seq_snapshot_begin(s->seq, len);
    if (snapshot && !prefix_cache_make_room(e->cache, pending + seq_snapshot_bytes(snapshot))) {
        seq_snapshot_free(snapshot);
        snapshot = NULL;
    }
    return snapshot;
}

void slot_end_keeping(engine *e, slot *s, seq_snapshot *snapshot, int32_t len, const float *hidden)
{
    if (snapshot) {
        seq_snapshot_end(snapshot, s->seq);
        prefix_cache_add(e->cache, s->key, 1 + (size_t)len, snapshot, hidden);
    }
}

/* A medium counts as done when its last row is; the rest of one that was cut is taken from its
 * features again. */
static void skip_done_media(slot *s, int32_t n)
{
    gen_request *r = s->req;
    while (s->media_done < r->n_media) {
        const gen_media *m = &r->media[s->media_done];
        if (m->n_rows == 0 || r->embed_rows[m->first_row + m->n_rows - 1] >= n) {
            break;
        }
        gen_request_drop_media(r, s->media_done++);
    }
}

/* Continues from the longest cached prefix that leaves at least one token to compute. */
static err_code resume_prefix(engine *e, slot *s, err_detail *detail)
{
    gen_request *r = s->req;
    int32_t n = 0;
    const prefix_entry *hit = s->cache_used ? prefix_cache_find(e->cache, s->key, s->n_key - 1, &n) : NULL;
    if (!hit) {
        return ERR_OK;
    }
    const bool lacks_hidden = n < prefix_entry_len(hit) || !prefix_entry_hidden(hit);
    if (lacks_hidden && e->drafting) {
        n--; /* the draft head needs the hidden state of the last token: it is computed again */
    }
    if (n == 0) {
        return ERR_OK;
    }
    err_code err = seq_state_restore_prefix(s->seq, prefix_entry_snapshot(hit), n, detail);
    if (err != ERR_OK) {
        return err;
    }
    seq_state_set_rope_delta(s->seq, r->rope_delta);
    s->prompt_done = s->timings.cache_n = n;
    skip_done_media(s, n);
    while (s->next_boundary < r->n_boundaries && r->boundaries[s->next_boundary].len <= n) {
        s->next_boundary++;
    }
    if (e->drafting) {
        drafter_resume(&s->drafter, s->seq, lacks_hidden ? n + 1 : n);
    }
    if (e->drafting && !lacks_hidden) {
        const draft_context ctx = drafting_context(e);
        err = drafter_prompt(&s->drafter, &ctx, s->seq, prefix_entry_hidden(hit), &r->prompt.ids[n],
                             &r->positions[n - 1], 1, detail);
    }
    return err;
}

/* ---- start ---- */

/* The sampler and the grammar of a request. */
static err_code start_sampling(engine *e, slot *s, const gen_request *r, err_detail *detail)
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

err_code slot_start(engine *e, slot *s, gen_request *r, err_detail *detail)
{
    s->req = r;
    s->cache_used = e->cache && !r->params.no_cache;
    s->cache_fed = s->cache_used && !(e->drafting && r->params.no_draft);
    s->prompt_done = 0;
    s->next_boundary = 0;
    s->media_done = 0;
    s->frames_done = 0;
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
    if (e->max_copied) {
        lookup_reset(&s->lookup);
    }
    seq_state_set_rope_delta(s->seq, r->rope_delta);
    make_key(s);
    think_init(&s->think, r->think ? r->think : &THINK_TAGS, r->starts_in_thinking, r->may_think,
               r->params.think_tokens, r->think_close.ids, r->think_close.len);
    s->phase = GEN_PHASE_PREFILL;
    err_code err = start_sampling(e, s, r, detail);
    s->awaits_prompt = r->of != NULL;
    if (err == ERR_OK && s->awaits_prompt) {
        return ERR_OK;
    }
    if (err == ERR_OK && r->loads_cache) {
        return disk_begin_named_load(e, s, detail);
    }
    if (err == ERR_OK && s->cache_used) {
        disk_begin_load(e, s);
    }
    return err == ERR_OK && !s->load ? slot_resume(e, s, detail) : err;
}

/* ---- prompts with several answers ---- */

err_code slot_share_prompt(engine *e, slot *s, int32_t row, err_detail *detail)
{
    const model_config *cfg = model_get_config(e->model);
    prompt_end *end = &s->req->end;
    const size_t n_logits = (size_t)cfg->vocab_size * sizeof *end->logits;
    const size_t n_hidden = (size_t)cfg->hidden_size * sizeof *end->hidden;
    end->logits = malloc(n_logits);
    end->hidden = malloc(n_hidden);
    end->state = end->logits && end->hidden ? seq_state_snapshot(s->seq) : NULL;
    if (!end->state) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for several answers");
    }
    memcpy(end->logits, decoder_logits(e->prompt_scratch, 0), n_logits);
    memcpy(end->hidden, decoder_hidden(e->prompt_scratch, row), n_hidden);
    end->n_skipped = s->n_skipped;
    end->timings = s->timings;
    return ERR_OK;
}

/* The prompt is there: the slot's answer begins, as if it had been computed here. */
static void begin_shared(engine *e, slot *s)
{
    gen_request *r = s->req;
    const prompt_end *end = &r->of->end;
    err_detail detail = {0};
    gen_request_take_prompt(r);
    make_key(s);
    s->awaits_prompt = false;
    s->n_skipped = end->n_skipped;
    s->cache_fed = s->cache_fed && s->n_skipped == 0;
    s->media_done = r->n_media;
    s->next_boundary = r->n_boundaries;
    s->prompt_done = s->timings.cache_n = (int32_t)r->prompt.len;
    s->timings.sparse_n = end->timings.sparse_n;
    s->timings.sparse_kept_n = end->timings.sparse_kept_n;
    s->timings.n_media_cached = (int32_t)r->n_media;
    err_code err = seq_state_restore(s->seq, end->state, &detail);
    if (err == ERR_OK) {
        seq_state_set_rope_delta(s->seq, r->rope_delta);
        if (e->drafting) {
            drafter_resume(&s->drafter, s->seq, s->prompt_done);
        }
        slot_emit_start(e, s);
        memcpy(e->first_logits, end->logits, (size_t)e->info.n_vocab * sizeof *end->logits);
        slot_begin_answer(e, s, e->first_logits, end->hidden);
    } else {
        slot_fail(e, s, err, &detail);
    }
}

void slot_begin_shared(engine *e)
{
    for (int32_t i = 0; i < e->n_slots; i++) {
        slot *s = &e->slots[i];
        if (!s->req || !s->awaits_prompt) {
            continue;
        }
        if (s->req->of->end.has_failed) {
            slot_finish(e, s, GEN_FINISH_ERROR, ERR_CANCELLED, "the prompt of this answer was not computed");
        } else if (s->req->of->end.state) {
            begin_shared(e, s);
        }
    }
}

err_code slot_resume(engine *e, slot *s, err_detail *detail)
{
    const err_code err = resume_prefix(e, s, detail);
    sparse_start(e, s);
    if (s->media_done < s->req->n_media) {
        s->phase = GEN_PHASE_VISION;
    } else {
        s->phase = GEN_PHASE_PREFILL;
        gen_request_drop_scratch(s->req);
    }
    return err;
}
