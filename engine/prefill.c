/* prefill: a prompt, piece by piece: its images and groups of video frames through the encoder,
 * then chunks of its tokens. Engine thread, but for engine_open_vision.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/step.h"

/* Patches that one vision unit may hold; an image is one unit, a video goes in groups of frames. */
/* SCRATCH_KEPT: bytes of the encoder's scratch that stay between images. */
enum { VISION_UNIT_PATCHES = 4096, VISION_SCRATCH_KEPT = 32 << 20 };

/* ---- the vision encoder ---- */

/* Lets the vision encoder compute with matrices in 8 bits, kept like those of the text model. */
static err_code quantize_vision(engine *e, const quantize_options *opt, err_detail *detail)
{
    enum { NAME_CHARS = 32 };
    size_t n_all = 0, n = 0;
    while (vit_matrix(e->vision, n_all)) {
        n_all++;
    }
    matrix_ref *refs = calloc(n_all + 1, sizeof *refs);
    char(*names)[NAME_CHARS] = calloc(n_all + 1, sizeof *names);
    err_code err = refs && names ? ERR_OK : err_set(detail, ERR_NOMEM, "not enough memory to load the model");
    for (size_t i = 0; err == ERR_OK && i < n_all; i++) {
        tensor *at = vit_matrix(e->vision, i);
        if (at->data) {
            snprintf(names[i], sizeof names[i], "visual.%zu", i);
            refs[n++] = (matrix_ref){.at = at, .name = names[i]};
        }
    }
    err = err ? err : quantized_open(&e->vision_matrices, refs, n, opt, detail);
    free(refs);
    free(names);
    return err;
}

err_code engine_open_vision(engine *e, const engine_options *opt, err_detail *detail)
{
    if (!model_get_config(e->model)->has_vision) {
        return ERR_OK;
    }
    const tensor_source tensors = model_tensors(e->model);
    const json_source docs = model_documents(e->model);
    err_code err = processor_config_load(&e->processor, docs, detail);
    if (err == ERR_OK) {
        err = vit_open(&e->vision, docs, &tensors, e->compute, detail);
    }
    if (err == ERR_OK && opt->vision_bits) {
        const quantize_options to = {.layer_bits = opt->vision_bits, .c = e->compute};
        err = quantize_vision(e, &to, detail);
    }
    const model_config *cfg = model_get_config(e->model);
    if (err == ERR_OK && vit_get_config(e->vision)->out_hidden_size != cfg->hidden_size) {
        err =
            err_set(detail, ERR_CORRUPT, "vision_config.out_hidden_size is %d, but the text model is %d wide",
                    vit_get_config(e->vision)->out_hidden_size, cfg->hidden_size);
    }
    if (err == ERR_OK && vit_get_config(e->vision)->n_deepstack != cfg->n_deepstack) {
        err = err_set(
            detail, ERR_UNSUPPORTED,
            "vision_config.deepstack_visual_indexes names %d blocks, but in the family %s nothing reads them",
            vit_get_config(e->vision)->n_deepstack, cfg->family);
    }
    if (err == ERR_OK && e->processor.merge_size != vit_get_config(e->vision)->spatial_merge_size) {
        err = err_set(detail, ERR_CORRUPT,
                      "the image processor's settings join %d x %d patches, but the vision tower %d x %d",
                      e->processor.merge_size, e->processor.merge_size,
                      vit_get_config(e->vision)->spatial_merge_size,
                      vit_get_config(e->vision)->spatial_merge_size);
    }
    return err;
}

/* ---- images ---- */

/* All rows of the current image or video are there. */
static void finish_medium(engine *e, slot *s)
{
    gen_request *r = s->req;
    gen_request_drop_media(r, s->media_done);
    s->frames_done = 0;
    s->media_done++;
    slot_emit_vision_progress(e, s);
    if (s->media_done == r->n_media) {
        s->phase = GEN_PHASE_PREFILL;
        vit_trim(e->vision, VISION_SCRATCH_KEPT);
        gen_request_drop_scratch(r);
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

void vision_step(engine *e, slot *s)
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
        slot_fail(e, s, err, &detail);
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
        slot_emit_vision_progress(e, s);
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

/* ---- chunks ---- */

/* The last place up to `end` at which no image, or frame, whose rows see each other is cut. A chunk has
 * room for a whole one. */
static int32_t before_image(const gen_request *r, int32_t begin, int32_t end)
{
    int32_t i = 0, at = end;
    while (i < r->n_embed_rows && r->embed_rows[i] < end) {
        i++;
    }
    for (; i > 0 && i < r->n_embed_rows && r->embed_rows[i] == at && r->embed_rows[i - 1] == at - 1; i--) {
        at--;
    }
    return at > begin ? at : end;
}

/* A chunk goes on past boundaries, where its state is taken, so that a few short messages read the
 * weights once. It ends at a boundary, or whole blocks of the delta rule behind one: then an answer
 * has the same bits wherever the cache lets it begin. Where rows depend on their number, chunks end
 * at every boundary instead. */
int32_t prefill_stop(const engine *e, const slot *s)
{
    const gen_request *r = s->req;
    const int32_t total = (int32_t)r->prompt.len, begin = s->prompt_done;
    const bool is_whole = model_get_config(e->model)->media_see_both_ways;
    int32_t end = total - begin < e->prefill_chunk ? total : begin + e->prefill_chunk;
    int32_t last = begin, n = 0;
    end = is_whole ? before_image(r, begin, end) : end;
    for (size_t i = s->next_boundary; i < r->n_boundaries && r->boundaries[i].len <= end; i++) {
        last = r->boundaries[i].len;
        if (++n == CHUNK_MARKS || !nn_many_is_exact(e->compute)) {
            return last;
        }
    }
    const int32_t whole = is_whole ? end - last : (end - last) / NN_DELTA_BLOCK * NN_DELTA_BLOCK;
    return end == total || last + whole == begin ? end : last + whole;
}

/* The boundaries within the next n tokens. The last ones are the most useful, if there is not room
 * for all. */
static void begin_marks(engine *e, const slot *s, int32_t n)
{
    const gen_request *r = s->req;
    size_t end = s->next_boundary, pending = 0;
    while (end < r->n_boundaries && r->boundaries[end].len <= s->prompt_done + n) {
        end++;
    }
    e->n_chunk_marks = (int32_t)(end - s->next_boundary);
    for (int32_t i = e->n_chunk_marks - 1; i >= 0; i--) {
        const prompt_boundary *at = &r->boundaries[s->next_boundary + (size_t)i];
        seq_snapshot *snapshot = at->keeps ? slot_begin_keeping(e, s, at->len, pending) : NULL;
        e->chunk_marks[i] = (batch_mark){at->len, snapshot};
        pending += snapshot ? seq_snapshot_bytes(snapshot) : 0;
    }
}

void prefill_give_up(engine *e, slot *s)
{
    for (int32_t i = 0; s->chunk > 0 && i < e->n_chunk_marks; i++) {
        seq_snapshot_free(e->chunk_marks[i].into);
        e->chunk_marks[i].into = NULL;
    }
    s->chunk = 0;
}

/* The states at the boundaries of a chunk that is computed. */
static void end_marks(engine *e, slot *s, int32_t begin)
{
    for (int32_t i = 0; i < e->n_chunk_marks; i++) {
        batch_mark *m = &e->chunk_marks[i];
        slot_end_keeping(e, s, m->into, m->len, decoder_hidden(e->prompt_scratch, m->len - begin - 1));
        m->into = NULL;
        s->next_boundary++;
    }
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
    const bool is_end = begin + n == (int32_t)r->prompt.len;
    begin_marks(e, s, n);
    const batch_run run = {
        .seq = s->seq, .first_row = 0, .n_rows = n, .marks = e->chunk_marks, .n_marks = e->n_chunk_marks};
    const batch b = {
        .n_rows = n,
        .tokens = r->prompt.ids + begin,
        .positions = r->positions + begin,
        .runs = &run,
        .n_runs = 1,
        .logit_rows = &logit_row,
        .n_logit_rows = is_end && (!r->pool || r->pool == GEN_POOL_YES) ? 1 : 0,
        .embed_rows = e->chunk_rows,
        .embeds = n_rows ? r->embeds + (size_t)first * model_config_feature_width(model_get_config(e->model))
                         : NULL,
        .n_embed_rows = n_rows,
        /* hidden rows are for the answer, the draft head, a cached state, a vector and the prompt's own logprobs */
        .states_only =
            !is_end && !slot_may_draft(e, s) && e->n_chunk_marks == 0 && !r->pool && !r->params.scores_prompt,
    };
    s->chunk = n;
    s->n_scored = -1;
    return decoder_begin(e->model, e->compute, &b, e->prompt_scratch, detail);
}

/* The vector of an input that is computed; false if the slot is free afterwards. */
static bool emit_vector(engine *e, slot *s)
{
    const gen_request *r = s->req;
    const size_t n = r->pool == GEN_POOL_YES ? 1 : (size_t)e->info.n_embd;
    gen_event *ev = slot_event(s, GEN_VECTOR);
    float *vector = malloc(n * sizeof *vector);
    if (!ev || !vector) {
        free(vector);
        gen_event_free(ev);
        slot_finish(e, s, GEN_FINISH_ERROR, ERR_NOMEM, "there is not enough memory for this vector");
        return false;
    }
    if (r->pool == GEN_POOL_YES) {
        const float *logits = decoder_logits(e->prompt_scratch, 0);
        vector[0] = 1.0f / (1.0f + expf(logits[e->no_id] - logits[e->yes_id]));
    }
    for (size_t i = 0; i < n && r->pool != GEN_POOL_YES; i++) {
        vector[i] = (float)(r->pooled[i] / (r->pool == GEN_POOL_MEAN ? (double)r->prompt.len : 1.0));
    }
    ev->vector = vector;
    ev->n_vector = (int32_t)n;
    slot_emit(e, ev);
    return true;
}

/* A chunk of an input of which a vector is wanted; behind the last chunk comes the next input. */
static void pool_chunk(engine *e, slot *s, int32_t n)
{
    gen_request *r = s->req;
    const size_t H = (size_t)e->info.n_embd;
    const bool is_end = s->prompt_done == (int32_t)r->prompt.len;
    const int32_t first = r->pool == GEN_POOL_MEAN ? 0 : is_end ? n - 1 : n;
    for (int32_t row = first; row < n; row++) {
        const float *hidden = decoder_hidden(e->prompt_scratch, row);
        for (size_t i = 0; i < H; i++) {
            r->pooled[i] += (double)hidden[i];
        }
    }
    s->timings.prompt_n = r->n_before + s->prompt_done;
    slot_emit_progress(e, s, s->timings.prompt_n, r->n_all);
    if (!is_end || !emit_vector(e, s)) {
        return;
    }
    if (!gen_request_next_input(r)) {
        slot_finish(e, s, GEN_FINISH_STOP, ERR_OK, NULL);
        return;
    }
    memset(r->pooled, 0, H * sizeof *r->pooled);
    seq_state_reset(s->seq);
    s->prompt_done = 0;
}

/* Tells the logprobs of some tokens of the prompt by the rows in front of them, in the chunk that is computed. True:
 * there are more. */
static bool score_rows(engine *e, slot *s)
{
    enum { MOST = GEN_EVENT_TOKENS - 1 };
    const gen_request *r = s->req;
    const gen_params *p = &r->params;
    const int32_t total = (int32_t)r->prompt.len, begin = s->prompt_done + s->n_scored;
    const int32_t end = s->prompt_done + s->chunk < total ? s->prompt_done + s->chunk : total - 1;
    const int32_t wanted = end - begin < MOST ? end - begin : MOST;
    gen_event *ev = slot_event(s, GEN_PROMPT);
    gen_logprob *lp = calloc(GEN_EVENT_TOKENS, sizeof *lp);
    if (!ev || !lp) {
        gen_event_free(ev);
        free(lp);
        slot_finish(e, s, GEN_FINISH_ERROR, ERR_NOMEM,
                    "there is not enough memory for the prompt's logprobs");
        return false;
    }
    ev->logprobs = lp;
    if (begin == 0) {
        lp->logprob = NAN;
        ev->tokens[ev->n_tokens++] = r->prompt.ids[0];
    }
    const int32_t n = wanted > 0 ? decoder_head(e->model, e->compute, e->scratch,
                                                decoder_hidden(e->prompt_scratch, s->n_scored), wanted)
                                 : 0;
    for (int32_t i = 0; i < n; i++) {
        gen_logprob *one = &lp[ev->n_tokens];
        const int32_t id = r->prompt.ids[begin + i + 1];
        one->n_top = p->n_top_logprobs;
        one->logprob = sampler_logprobs(decoder_logits(e->scratch, i), e->info.n_vocab, id, one->top_ids,
                                        one->top_logprobs, (size_t)one->n_top);
        ev->tokens[ev->n_tokens++] = id;
    }
    s->n_scored += n;
    ev->processed = begin + n + 1;
    ev->total = total;
    slot_emit(e, ev);
    return begin + n < end;
}

/* Computes the next piece of the chunk. True: there are more. */
static bool next_piece(engine *e, slot *s, bool small)
{
    if (s->n_scored < 0) {
        if (decoder_next(e->model, e->prompt_scratch, small)) {
            return true;
        }
        s->n_scored = 0;
        return s->req->params.scores_prompt;
    }
    return score_rows(e, s);
}

/* The chunk is computed; behind the prompt's last token the first one of the answer is drawn. */
static void end_chunk(engine *e, slot *s)
{
    const gen_request *r = s->req;
    const int32_t begin = s->prompt_done, n = s->chunk, total = (int32_t)r->prompt.len;
    err_detail detail = {0};
    err_code err = ERR_OK;
    s->prompt_done += n;
    s->timings.prompt_n = s->prompt_done - s->timings.cache_n;
    slot_update_timings(s);
    if (r->pool) {
        s->chunk = 0;
        pool_chunk(e, s, n);
        return;
    }
    if (slot_may_draft(e, s)) {
        err = show_drafter(e, s, begin, n, &detail);
        if (err != ERR_OK) {
            slot_fail(e, s, err, &detail);
            return;
        }
    }
    s->chunk = 0;
    end_marks(e, s, begin);
    slot_emit_progress(e, s, s->prompt_done + s->n_skipped, total + s->n_skipped);
    if (s->prompt_done < total) {
        return;
    }
    if (r->n_others > 0) {
        err = slot_share_prompt(e, s, n - 1, &detail);
        if (err != ERR_OK) {
            slot_fail(e, s, err, &detail);
            return;
        }
    }
    slot_begin_answer(e, s, decoder_logits(e->prompt_scratch, 0), decoder_hidden(e->prompt_scratch, n - 1));
}

void slot_begin_answer(engine *e, slot *s, float *logits, const float *hidden)
{
    err_detail detail = {0};
    err_code err = ERR_OK;
    if (s->req->max_tokens == 0) {
        slot_finish(e, s, GEN_FINISH_LENGTH, ERR_OK, NULL);
        return;
    }
    if (!take_token(e, s, logits, NO_DRAFT, NULL)) {
        return;
    }
    if (slot_may_draft(e, s)) {
        const draft_context ctx = drafting_context(e);
        err = drafter_note(&s->drafter, &ctx, s->seq, hidden, s->next_token, &detail);
    }
    if (err != ERR_OK) {
        slot_fail(e, s, err, &detail);
    }
}

void prefill_step(engine *e, slot *s, int32_t n, double decode_ms)
{
    const int64_t start = clock_ns();
    if (s->sparse != SPARSE_NONE) {
        sparse_step(e, s, decode_ms);
        return;
    }
    if (s->chunk == 0) {
        err_detail detail = {0};
        err_code err = begin_chunk(e, s, n, &detail);
        if (err != ERR_OK) {
            slot_fail(e, s, err, &detail);
            return;
        }
    }
    int32_t n_pieces = 0;
    bool more;
    do {
        more = next_piece(e, s, decode_ms > 0.0);
        n_pieces++;
    } while (more && scheduler_more_pieces(n_pieces, ms_between(start, clock_ns()), decode_ms));
    if (!more && s->req) {
        end_chunk(e, s);
    }
}
