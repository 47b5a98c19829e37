/* step: the engine thread's own functions. slot.c is one sequence: its events, its part of the
 * prefix cache, its start and end; prefill.c and decode.c are the two kinds of work; step.c is the
 * loop that plans them. All on the engine thread.
 */
#ifndef PARLEY_ENGINE_STEP_H
#define PARLEY_ENGINE_STEP_H

#include "engine/engine_private.h"

enum { NO_DRAFT = -1 };

static inline double ms_between(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) / 1e6;
}

/* ---- slot.c ---- */

/* Hands the event, and its ownership, to the server. */
void slot_emit(engine *e, gen_event *ev);
/* A zeroed event of the slot's request with its phase and timings; NULL if out of memory. */
gen_event *slot_event(const slot *s, gen_event_type type);
/* Progress is a courtesy: without memory it is left out. */
void slot_emit_progress(engine *e, const slot *s, int32_t processed, int32_t total);
/* Says how many of the prompt's images and pairs of video frames are encoded. */
void slot_emit_vision_progress(engine *e, const slot *s);
/* Says that a request waits no longer, and how much of it is there already. */
void slot_emit_start(engine *e, const slot *s);
/* Times up to now. */
void slot_update_timings(slot *s);
/* What the prefix cache holds, for /v1/status. */
void slot_count_cache(engine *e);
/* Sends the last event of a request, with the event taken at submit, and frees the request. */
void request_send_done(engine *e, gen_request *r, const gen_timings *timings, gen_finish finish,
                       err_code error, const char *message);
/* Ends the slot's answer and frees the slot; message may be NULL. */
void slot_finish(engine *e, slot *s, gen_finish how, err_code error, const char *message);
/* The same after an error, which is logged. */
void slot_fail(engine *e, slot *s, err_code error, const err_detail *detail);

draft_context drafting_context(const engine *e);
/* True if the model has a draft head and the request wants it. */
bool slot_may_draft(const engine *e, const slot *s);
/* True if drafts may be copied from the text. */
bool slot_may_copy(const engine *e, const slot *s);

/* Keeps the state of the slot's sequence as it stands; hidden: the last row's. A full cache is no
 * error. The slot may be free already: the end of an answer is kept too. */
void slot_keep_state(engine *e, slot *s, const float *hidden);
/* Makes a snapshot that is to be taken at a boundary of the prompt, in the next chunk; NULL if the
 * cache needs none, or has no room. pending: bytes of those that were made before. */
seq_snapshot *slot_begin_keeping(engine *e, const slot *s, int32_t len, size_t pending);
/* Gives it to the cache, or frees it; hidden: the last row's. */
void slot_end_keeping(engine *e, slot *s, seq_snapshot *snapshot, int32_t len, const float *hidden);
/* Takes a request (owned from now on, also if this fails: slot_fail): sampler, grammar, and
 * slot_resume, unless s->load says that the disk has to be waited for. */
err_code slot_start(engine *e, slot *s, gen_request *r, err_detail *detail);
/* Keeps the end of the prompt for the other answers to it, which go on from there; row: of the last
 * token in the prompt's scratch, with its logits. */
MUST_CHECK err_code slot_share_prompt(engine *e, slot *s, int32_t row, err_detail *detail);
/* Starts the slots whose prompt another one has computed, or ends them if it never will be. */
void slot_begin_shared(engine *e);
/* Takes up the longest cached prefix. */
err_code slot_resume(engine *e, slot *s, err_detail *detail);

/* ---- disk.c ---- */

/* Begins to read a longer prefix than memory has, if the disk has one. */
void disk_begin_load(engine *e, slot *s);
/* The same for a request that only reads an entry by its name. */
MUST_CHECK err_code disk_begin_named_load(engine *e, slot *s, err_detail *detail);
/* The prompt of a request is to be saved under a name: the slot waits for that, and is finished or failed
 * then. */
void disk_begin_naming(engine *e, slot *s);
/* Resumes the slots whose prefix has been read, or could not be. */
void disk_end_loads(engine *e);
/* Writes the next prompt of the cache once the last one is written. */
void disk_save_next(engine *e);
/* Writes all that is not written yet, the last used first. At the engine's end. */
void disk_save_all(engine *e);

/* ---- sparse_prompt.c ---- */

/* Decides whether the rest of a slot's prompt is to be thinned out, behind what the cache had. */
void sparse_start(engine *e, slot *s);
/* The slot needs it no longer. */
void sparse_stop(engine *e, slot *s);
/* The draft model reads another slot's prompt. */
bool sparse_must_wait(const engine *e, const slot *s);
/* Some pieces of judging the prompt, as many as there is time for; in the end the prompt holds what
 * is to be computed. */
void sparse_step(engine *e, slot *s, double decode_ms);

/* ---- decode.c ---- */

/* Draws the next token of a slot from its logits (overwritten) and says it, or ends the answer;
 * `draft` is what was guessed for it, or NO_DRAFT; *n_right (NULL allowed) is counted up if that was
 * right. False when the slot is free afterwards. */
bool take_token(engine *e, slot *s, float *logits, int32_t draft, int32_t *n_right);
/* One block of every answer in the decode phase. */
void decode_step(engine *e);

/* ---- prefill.c ---- */

/* Encodes the next image, or the next group of frames of a video. */
void vision_step(engine *e, slot *s);
/* How far the slot's next chunk goes, in tokens of the prompt. */
int32_t prefill_stop(const engine *e, const slot *s);
/* Gives up the chunk that is under way, if there is one. */
void prefill_give_up(engine *e, slot *s);
/* The prompt is computed: draws the first token of the answer from the logits of its last one
 * (overwritten), whose hidden state drafts begin with. The slot may be free afterwards. */
void slot_begin_answer(engine *e, slot *s, float *logits, const float *hidden);
/* Some pieces of a chunk of n tokens, as many as there is time for: answers that took decode_ms for
 * their last step (0: there are none) wait for the next one. */
void prefill_step(engine *e, slot *s, int32_t n, double decode_ms);

#endif
