#include "engine/request.h"

#include <stdio.h>
#include <stdlib.h>

gen_request *gen_request_create(void)
{
    gen_request *r = calloc(1, sizeof *r);
    if (r) {
        token_ids_init(&r->prompt);
        token_ids_init(&r->think_close);
        gen_params_init(&r->params);
    }
    return r;
}

void gen_request_drop_media(gen_request *r, size_t i)
{
    gen_media *m = &r->media[i];
    const size_t n = m->patches.pixels ? patches_bytes(&m->patches) : 0;
    patches_deinit(&m->patches);
    vision_cache_release(m->features);
    m->features = NULL;
    ledger_give(&r->memory, n);
}

void gen_request_drop_scratch(gen_request *r)
{
    ledger_give(&r->memory, r->scratch_bytes);
    r->scratch_bytes = 0;
}

bool gen_request_share(gen_request *r, int32_t n)
{
    gen_request *first = NULL, *last = NULL;
    for (int32_t i = 0; i < n; i++) {
        gen_request *other = malloc(sizeof *other);
        if (!other) {
            gen_request_free(first);
            return false;
        }
        *other = *r;
        other->of = r;
        other->next = NULL;
        other->done = NULL;
        other->n_others = 0;
        other->params.seed += (uint64_t)i + 1;
        other->memory = (ledger_hold){0};
        r->n_others++;
        *(last ? &last->next : &first) = other;
        last = other;
    }
    if (last) {
        last->next = r->next;
        r->next = first;
    }
    return true;
}

void gen_request_take_prompt(gen_request *r)
{
    const gen_request *of = r->of;
    r->prompt = of->prompt;
    r->positions = of->positions;
    r->rope_delta = of->rope_delta;
    r->n_boundaries = of->n_boundaries;
}

bool gen_request_next_input(gen_request *r)
{
    if (r->prompt.len > 0) {
        r->n_before += (int32_t)r->prompt.len;
        r->input_at++;
        token_ids_deinit(&r->prompt);
        token_ids_init(&r->prompt);
    }
    if (r->input_at == r->n_inputs) {
        return false;
    }
    r->prompt = r->inputs[r->input_at];
    token_ids_init(&r->inputs[r->input_at]);
    return true;
}

gen_request *gen_request_next(const gen_request *r)
{
    return r->next;
}

void gen_request_append(gen_request *r, gen_request *more)
{
    while (r->next) {
        r = r->next;
    }
    r->next = more;
}

void gen_request_set_id(gen_request *r, uint64_t id)
{
    r->id = id;
}

/* One that names another: nothing but its last event is its own. */
static void free_other(gen_request *r)
{
    gen_request *of = r->of;
    gen_event_free(r->done);
    free(r);
    if (--of->n_others == 0 && of->is_over) {
        gen_request_free(of);
    }
}

void gen_request_free(gen_request *r)
{
    while (r && r->next) { /* never submitted */
        gen_request *next = r->next;
        r->next = next->next;
        next->next = NULL;
        gen_request_free(next);
    }
    if (!r) {
        return;
    }
    if (r->of) {
        free_other(r);
        return;
    }
    if (r->n_others > 0) {
        r->is_over = true;
        return;
    }
    seq_snapshot_free(r->end.state);
    free(r->end.logits);
    free(r->end.hidden);
    for (size_t i = 0; i < r->n_media; i++) {
        gen_request_drop_media(r, i);
    }
    for (size_t i = 0; i < r->n_inputs; i++) {
        token_ids_deinit(&r->inputs[i]);
    }
    free(r->inputs);
    free(r->pooled);
    free(r->media);
    free(r->embeds);
    free(r->embed_rows);
    free(r->positions);
    free(r->boundaries);
    free(r->params.biases);
    grammar_destroy(r->grammar);
    token_ids_deinit(&r->prompt);
    token_ids_deinit(&r->think_close);
    gen_event_free(r->done);
    ledger_give_all(&r->memory);
    free(r);
}

void gen_request_set_name(gen_request *r, const char *name)
{
    for (; r; r = r->next) {
        snprintf(r->name, sizeof r->name, "%s", name);
    }
}

void gen_request_keep_as(gen_request *r, const char *name)
{
    snprintf(r->cache_name, sizeof r->cache_name, "%s", name);
}

gen_request_info gen_request_get_info(const gen_request *r)
{
    return (gen_request_info){
        .route = r->route,
        .n_prompt_tokens = r->pool ? r->n_all : (int32_t)r->prompt.len,
        .max_tokens = r->max_tokens,
        .starts_in_thinking = r->starts_in_thinking,
        .may_think = r->may_think,
        .think = r->think,
        .continues = r->continues,
        .n_images = r->n_images,
        .n_videos = r->n_videos,
    };
}
