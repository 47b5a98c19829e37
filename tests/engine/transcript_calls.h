/* transcript_calls: what the engine of a transcript calls and what fails there when the script says so; and its cache on disk,
 * whose own thread is waited for, so that it takes no time.
 *
 *     one_fails("mtp_forward", 2);        // the second call from now on, of this thread
 *     transcript_disk_hold(dc, true);     // saves and loads wait, until this says false
 */
#ifndef PARLEY_TESTS_ENGINE_TRANSCRIPT_CALLS_H
#define PARLEY_TESTS_ENGINE_TRANSCRIPT_CALLS_H

#include <dirent.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "engine/cache/disk_cache_state.h"
#include "engine/constrain.h"
#include "engine/engine_private.h"
#include "engine/sparse/lexical.h"
#include "tests/check.h"
#include "tests/one_fails.h"

static const char *const TRANSCRIPT_CALLS[] = {"decoder_begin",
                                               "decoder_forward",
                                               "mtp_forward",
                                               "vit_encode",
                                               "sampler_create",
                                               "seq_state_restore_prefix",
                                               "seq_state_restore",
                                               "seq_state_snapshot",
                                               "constrain_start",
                                               "constrain_check",
                                               "seq_snapshot_begin",
                                               "seq_snapshot_alloc",
                                               "lookahead_begin",
                                               "lookahead_next",
                                               "lexical_score",
                                               "disk_cache_load_given",
                                               "disk_cache_load",
                                               "drafter_note",
                                               "drafter_flush",
                                               "drafter_prompt",
                                               "prefix_cache_make_room",
                                               "disk_load_finish"};

#define MADE_TO_FAIL(name) err_set(detail, ERR_INTERNAL, "%s was made to fail", name)

ONE_FAILS(err_code, decoder_begin,
          (const model *m, compute *c, const batch *b, decoder_scratch *sc, err_detail *detail),
          (m, c, b, sc, detail), MADE_TO_FAIL("decoder_begin"))
ONE_FAILS(err_code, decoder_forward,
          (const model *m, compute *c, const batch *b, decoder_scratch *sc, err_detail *detail),
          (m, c, b, sc, detail), MADE_TO_FAIL("decoder_forward"))
ONE_FAILS(err_code, mtp_forward,
          (const model *m, compute *c, mtp_scratch *sc, const mtp_input *in, int32_t n, err_detail *detail),
          (m, c, sc, in, n, detail), MADE_TO_FAIL("mtp_forward"))
ONE_FAILS(err_code, drafter_note,
          (drafter * d, const draft_context *ctx, seq_state *seq, const float *hidden, int32_t token,
           err_detail *detail),
          (d, ctx, seq, hidden, token, detail), MADE_TO_FAIL("drafter_note"))
ONE_FAILS(err_code, drafter_flush,
          (drafter * d, const draft_context *ctx, seq_state *seq, err_detail *detail), (d, ctx, seq, detail),
          MADE_TO_FAIL("drafter_flush"))
ONE_FAILS(err_code, drafter_prompt,
          (drafter * d, const draft_context *ctx, seq_state *seq, const float *hidden,
           const int32_t *next_tokens, const position *positions, int32_t n, err_detail *detail),
          (d, ctx, seq, hidden, next_tokens, positions, n, detail), MADE_TO_FAIL("drafter_prompt"))
ONE_FAILS(err_code, vit_encode,
          (vit * v, compute *c, float *out, float *before, const vit_rows *rows, int32_t t, int32_t h,
           int32_t w, err_detail *detail),
          (v, c, out, before, rows, t, h, w, detail), MADE_TO_FAIL("vit_encode"))
ONE_FAILS(err_code, sampler_create,
          (sampler * *out, const sampler_params *p, int32_t vocab_size, int32_t n_valid, err_detail *detail),
          (out, p, vocab_size, n_valid, detail), MADE_TO_FAIL("sampler_create"))
ONE_FAILS(err_code, constrain_start,
          (const engine *e, grammar_cursor **cursor, const gen_request *r, err_detail *detail),
          (e, cursor, r, detail), MADE_TO_FAIL("constrain_start"))
ONE_FAILS(err_code, constrain_check, (const grammar_cursor *cursor, err_detail *detail), (cursor, detail),
          MADE_TO_FAIL("constrain_check"))
ONE_FAILS(err_code, seq_state_restore_prefix,
          (seq_state * s, const seq_snapshot *snap, int32_t n, err_detail *detail), (s, snap, n, detail),
          MADE_TO_FAIL("seq_state_restore_prefix"))
ONE_FAILS(err_code, seq_state_restore, (seq_state * s, const seq_snapshot *snap, err_detail *detail),
          (s, snap, detail), MADE_TO_FAIL("seq_state_restore"))
ONE_FAILS(seq_snapshot *, seq_state_snapshot, (const seq_state *s), (s), NULL)
ONE_FAILS(seq_snapshot *, seq_snapshot_begin, (const seq_state *s, int32_t len), (s, len), NULL)
ONE_FAILS(seq_snapshot *, seq_snapshot_alloc, (const seq_state *s, int32_t len, int32_t mtp_len),
          (s, len, mtp_len), NULL)
ONE_FAILS(bool, prefix_cache_make_room, (prefix_cache * pc, size_t n_bytes), (pc, n_bytes), false)
ONE_FAILS(err_code, lookahead_begin, (lookahead * la, const int32_t *ids, int32_t n, err_detail *detail),
          (la, ids, n, detail), MADE_TO_FAIL("lookahead_begin"))
ONE_FAILS(err_code, lookahead_next, (lookahead * la, bool small, bool *more, err_detail *detail),
          (la, small, more, detail), MADE_TO_FAIL("lookahead_next"))
ONE_FAILS(bool, lexical_score, (float *out, const tokenizer *tok, const int32_t *ids, int32_t n, double keep),
          (out, tok, ids, n, keep), false)

/* ---- the cache on disk ---- */

static atomic_bool disk_is_held;
static sem_t disk_may_go_on;
static disk_load *disk_held_loads[8]; /* begun meanwhile */
static size_t n_disk_held_loads;
static _Thread_local bool is_of_engine; /* what wakes the engine beside it is not the script's */
static atomic_int n_wakes;              /* of the engine, which may sleep */

bool __real_disk_run_save(disk_cache *dc);
bool __wrap_disk_run_save(disk_cache *dc);
void __real_disk_serve_loads(disk_cache *dc);
void __wrap_disk_serve_loads(disk_cache *dc);
bool __real_disk_cache_save(disk_cache *dc, const prefix_entry *e);
bool __wrap_disk_cache_save(disk_cache *dc, const prefix_entry *e);
void __real_inbox_wake(inbox *in);
void __wrap_inbox_wake(inbox *in);
disk_load *__real_disk_cache_load(disk_cache *dc, const disk_hit *hit, const uint64_t *key,
                                  seq_snapshot *snapshot);
disk_load *__wrap_disk_cache_load(disk_cache *dc, const disk_hit *hit, const uint64_t *key,
                                  seq_snapshot *snapshot);
disk_load *__real_disk_cache_load_given(disk_cache *dc, const disk_hit *hit, uint64_t scope,
                                        seq_snapshot *snapshot);
disk_load *__wrap_disk_cache_load_given(disk_cache *dc, const disk_hit *hit, uint64_t scope,
                                        seq_snapshot *snapshot);

void __wrap_inbox_wake(inbox *in)
{
    n_wakes++;
    if (is_of_engine) {
        __real_inbox_wake(in);
    }
}

bool __wrap_disk_run_save(disk_cache *dc)
{
    if (disk_is_held) {
        sem_wait(&disk_may_go_on);
    }
    return __real_disk_run_save(dc);
}

void __wrap_disk_serve_loads(disk_cache *dc)
{
    if (disk_is_held) {
        sem_wait(&disk_may_go_on);
    }
    __real_disk_serve_loads(dc);
}

static void transcript_disk_wait(disk_cache *dc)
{
    pthread_mutex_lock(&dc->lock);
    while (dc->save == SAVE_ASKED || dc->save == SAVE_UNDER_WAY) {
        pthread_cond_wait(&dc->ended, &dc->lock);
    }
    pthread_mutex_unlock(&dc->lock);
    dc->options.wake(dc->options.wake_ctx);
}

bool __wrap_disk_cache_save(disk_cache *dc, const prefix_entry *e)
{
    const bool is_begun = __real_disk_cache_save(dc, e);
    is_of_engine = true;
    if (is_begun && !disk_is_held) {
        transcript_disk_wait(dc);
    }
    return is_begun;
}

static disk_load *transcript_loaded(disk_cache *dc, disk_load *l)
{
    if (l && disk_is_held) {
        CHECK(n_disk_held_loads < ARRAY_LEN(disk_held_loads));
        disk_held_loads[n_disk_held_loads++] = l;
        return l;
    }
    while (l && !disk_load_has_ended(dc, l)) {
        usleep(50);
    }
    is_of_engine = true;
    dc->options.wake(dc->options.wake_ctx);
    return l;
}

disk_load *__wrap_disk_cache_load(disk_cache *dc, const disk_hit *hit, const uint64_t *key,
                                  seq_snapshot *snapshot)
{
    if (one_fails_now("disk_cache_load")) {
        seq_snapshot_free(snapshot);
        return NULL;
    }
    return transcript_loaded(dc, __real_disk_cache_load(dc, hit, key, snapshot));
}

disk_load *__wrap_disk_cache_load_given(disk_cache *dc, const disk_hit *hit, uint64_t scope,
                                        seq_snapshot *snapshot)
{
    if (one_fails_now("disk_cache_load_given")) {
        seq_snapshot_free(snapshot);
        return NULL;
    }
    return transcript_loaded(dc, __real_disk_cache_load_given(dc, hit, scope, snapshot));
}

int32_t __real_disk_load_finish(disk_load *l, prefix_cache *pc);
int32_t __wrap_disk_load_finish(disk_load *l, prefix_cache *pc);

/* What was read is damaged. */
int32_t __wrap_disk_load_finish(disk_load *l, prefix_cache *pc)
{
    if (one_fails_now("disk_load_finish")) {
        l->state = LOAD_FAILED;
    }
    return __real_disk_load_finish(l, pc);
}

/* The files of blocks in its folder, when those that nobody needs are gone. */
static inline size_t transcript_disk_blocks(disk_cache *dc)
{
    size_t n = 0;
    pthread_mutex_lock(&dc->lock);
    while (dc->has_unused) {
        pthread_mutex_unlock(&dc->lock);
        usleep(50);
        pthread_mutex_lock(&dc->lock);
    }
    DIR *d = opendir(dc->options.dir);
    for (struct dirent *file; d && (file = readdir(d)) != NULL;) {
        n += strstr(file->d_name, ".block") != NULL;
    }
    closedir(d);
    pthread_mutex_unlock(&dc->lock);
    return n;
}

/* While it is held, what was begun does not end. */
static inline void transcript_disk_hold(disk_cache *dc, bool holds)
{
    const bool was_held = atomic_exchange(&disk_is_held, holds);
    if (was_held && !holds) {
        sem_post(&disk_may_go_on);
        while (n_disk_held_loads > 0) {
            (void)transcript_loaded(dc, disk_held_loads[--n_disk_held_loads]);
        }
        transcript_disk_wait(dc);
        while (sem_trywait(&disk_may_go_on) == 0) { /* none was held */
        }
    }
}

#endif
