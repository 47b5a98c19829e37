/* sparse_prompt: sparse prefill of a slot: the draft model, or the words of the question, judge the
 * prompt; what is left of it goes the way of every prompt, at its own positions. Whatever goes wrong,
 * the prompt is computed whole. Engine thread but for opening.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/sparse/lexical.h"
#include "engine/step.h"

/* ---- opening ---- */

void sparse_open(engine *e, const engine_options *opt)
{
    sparse_state *st = &e->sparse;
    st->set = opt->sparse;
    st->set.threshold = st->set.threshold ? st->set.threshold : LIMIT_SPARSE_THRESHOLD;
    st->set.chunk = st->set.chunk ? st->set.chunk : SELECT_CHUNK;
    if (!st->set.draft_dir) {
        return;
    }
    /* A judge need not be exact, and in blocks it reads prompts twice as fast. */
    const int bits = opt->exact ? 0 : 8;
    const lookahead_options lo = {.path = st->set.draft_dir,
                                  .target = e->model,
                                  .c = e->compute,
                                  .cache_type = e->cache_type,
                                  .chunk = e->prefill_chunk,
                                  .quantize = {bits, bits, e->compute, {NULL, NULL}},
                                  .huge_pages = opt->huge_pages,
                                  .rope_bf16 = opt->rope_bf16};
    err_detail detail = {0};
    st->failed = lookahead_open(&st->draft, &lo, &detail) != ERR_OK;
    if (st->failed) {
        log_error("eng", "--draft-model cannot be used, prompts are computed whole: %s", detail.text);
    }
}

/* The longest prompt that is thinned out, of a context of n_ctx tokens. */
static int32_t longest_prompt(const engine *e, int32_t n_ctx)
{
    const sparse_state *st = &e->sparse;
    const int32_t readable = st->draft ? lookahead_longest(st->draft) : n_ctx;
    const int32_t n = st->set.most && st->set.most < n_ctx ? st->set.most : n_ctx;
    return n < readable ? n : readable;
}

static size_t room_bytes(const sparse_state *st, int32_t n)
{
    return (size_t)n * (sizeof *st->importance + sizeof *st->kept) +
           ((size_t)n / (size_t)st->set.chunk + 1) * sizeof *st->order;
}

size_t sparse_bytes(const engine *e, int32_t n_ctx)
{
    const int32_t n = longest_prompt(e, n_ctx);
    return room_bytes(&e->sparse, n) + (e->sparse.draft ? lookahead_state_bytes(e->sparse.draft, n) : 0);
}

err_code sparse_create(engine *e, err_detail *detail)
{
    sparse_state *st = &e->sparse;
    const int32_t n = longest_prompt(e, e->info.n_ctx);
    st->n_longest = n;
    st->importance = malloc((size_t)n * sizeof *st->importance);
    st->kept = malloc((size_t)n * sizeof *st->kept);
    st->order = malloc(((size_t)n / (size_t)st->set.chunk + 1) * sizeof *st->order);
    if (!st->importance || !st->kept || !st->order) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory to start the engine");
    }
    if (st->set.on && st->set.threshold > e->info.n_ctx) {
        log_warn(
            "eng",
            "--spec-prefill-threshold is %d and the context holds %d tokens: only prompts that ask for it "
            "are sparse; lower the threshold or raise --ctx-size",
            st->set.threshold, e->info.n_ctx);
    }
    return st->draft ? lookahead_reserve(st->draft, n, detail) : ERR_OK;
}

void sparse_close(engine *e)
{
    lookahead_close(e->sparse.draft);
    free(e->sparse.importance);
    free(e->sparse.kept);
    free(e->sparse.order);
}

/* ---- a prompt ---- */

static void compute_whole(slot *s, const char *why)
{
    log_warn("eng", "request %llu: the prompt is computed whole: %s", (unsigned long long)s->req->id, why);
    s->sparse = SPARSE_NONE;
}

void sparse_start(engine *e, slot *s)
{
    const gen_request *r = s->req;
    const gen_params *p = &r->params;
    const sparse_state *st = &e->sparse;
    const int32_t n = (int32_t)r->prompt.len, left = n - s->prompt_done;
    const bool asked = p->spec_prefill > 0;
    s->sparse = SPARSE_NONE;
    s->n_skipped = 0;
    if (!(asked || (p->spec_prefill < 0 && st->set.on && left >= st->set.threshold)) ||
        select_share(p->spec_keep) >= 1.0 || left <= st->set.chunk) {
        return;
    }
    s->sparse = SPARSE_WAITS;
    if (st->failed) {
        compute_whole(s, "the draft model could not be used");
    } else if (n > st->n_longest) {
        compute_whole(
            s, "it is longer than sparse prefill reads (--spec-prefill-max, the draft model's context)");
    } else if (r->n_embed_rows > 0 && r->embed_rows[r->n_embed_rows - 1] >= s->prompt_done) {
        compute_whole(s, "it holds images or videos that are new");
    }
}

void sparse_stop(engine *e, slot *s)
{
    if (e->sparse.slot == s) {
        lookahead_end(e->sparse.draft);
        e->sparse.slot = NULL;
    }
    s->sparse = SPARSE_NONE;
}

bool sparse_must_wait(const engine *e, const slot *s)
{
    return s->sparse == SPARSE_WAITS && e->sparse.slot;
}

/* Leaves of the prompt behind the cached prefix what is to be read. shares: of all tokens. */
static void thin_out(engine *e, slot *s, const float *shares)
{
    gen_request *r = s->req;
    sparse_state *st = &e->sparse;
    const int32_t done = s->prompt_done, n = (int32_t)r->prompt.len - done;
    const select_choice choice = {.chunk = st->set.chunk,
                                  .keep = select_share(r->params.spec_keep),
                                  .backbone = select_share(r->params.spec_backbone),
                                  .tail = r->n_invitation};
    const int32_t n_kept = select_tokens(st->kept, st->order, shares + done, n, &choice);
    s->sparse = SPARSE_NONE;
    if (n_kept == n) {
        return;
    }
    select_gather(r->prompt.ids + done, r->positions + done, st->kept, n_kept);
    r->prompt.len = (size_t)done + (size_t)n_kept;
    s->n_skipped = n - n_kept;
    r->rope_delta += s->n_skipped;
    seq_state_set_rope_delta(s->seq, r->rope_delta);
    /* A state that has not seen everything must never serve another request. */
    s->cache_fed = false;
    r->n_boundaries = s->next_boundary;
    s->timings.sparse_n = n;
    s->timings.sparse_kept_n = n_kept;
}

/* Without a draft model, in one go: it takes milliseconds. */
static void judge_by_words(engine *e, slot *s)
{
    const gen_request *r = s->req;
    if (lexical_score(e->sparse.importance, model_tokenizer(e->model), r->prompt.ids, (int32_t)r->prompt.len,
                      select_share(r->params.spec_keep))) {
        thin_out(e, s, e->sparse.importance);
    } else {
        compute_whole(s, "there is not enough memory to look for the question's words");
    }
}

/* What the draft model has read shows as progress over the part of the prompt that will likely be
 * left out. */
static void show_reading(engine *e, const slot *s)
{
    const gen_request *r = s->req;
    const int32_t n = (int32_t)r->prompt.len;
    const double kept = select_share(r->params.spec_keep) * (n - s->prompt_done) + e->sparse.set.chunk;
    const double skipped = n - s->prompt_done > kept ? n - s->prompt_done - kept : 0;
    slot_emit_progress(e, s, s->prompt_done + (int32_t)(skipped * lookahead_n_read(e->sparse.draft) / n), n);
}

void sparse_step(engine *e, slot *s, double decode_ms)
{
    sparse_state *st = &e->sparse;
    const int64_t start = clock_ns();
    err_detail detail = {0};
    err_code err = ERR_OK;
    bool more = true;
    int32_t n_pieces = 0;
    if (!st->draft) {
        judge_by_words(e, s);
        return;
    }
    if (s->sparse == SPARSE_WAITS) {
        err = lookahead_begin(st->draft, s->req->prompt.ids, (int32_t)s->req->prompt.len, &detail);
        st->slot = err == ERR_OK ? s : NULL;
        s->sparse = SPARSE_READS;
    }
    while (err == ERR_OK && more) {
        const int32_t n_read = lookahead_n_read(st->draft);
        err = lookahead_next(st->draft, decode_ms > 0.0, &more, &detail);
        n_pieces++;
        if (err == ERR_OK && lookahead_n_read(st->draft) > n_read) {
            slot_update_timings(s);
            show_reading(e, s);
        }
        if (!scheduler_more_pieces(n_pieces, ms_between(start, clock_ns()), decode_ms)) {
            break;
        }
    }
    slot_update_timings(s);
    if (err != ERR_OK) {
        sparse_stop(e, s);
        compute_whole(s, detail.text);
    } else if (!more) {
        thin_out(e, s, lookahead_importance(st->draft));
        sparse_stop(e, s);
    }
}
