/* An answer with several choices: n of a chat or a completion, and the prompts of a list. The first
 * choice is the answer; the others are answers of their own, without a client, that write to it
 * (answer.h). The prompt of n choices is computed once, by the engine. */
#include <stdlib.h>

#include "server/service/serve_state.h"

static answer *make_choice(serve *s, answer *first, int index)
{
    answer *a = answer_create(first->dialect, ++s->next_answer, 0);
    if (!a || !id_table_put(&s->answers, a->id, a)) {
        answer_destroy(a);
        return NULL;
    }
    a->first = first;
    a->index = index;
    a->scope = first->scope;
    a->server = first->server;
    a->media_ms = first->media_ms;
    a->opt.stream = first->opt.stream;
    a->opt.logprobs = first->opt.logprobs;
    a->opt.timings_per_token = first->opt.timings_per_token;
    a->is_accepted = a->is_begun = true;
    memcpy(a->opt.model, first->opt.model, sizeof a->opt.model);
    memcpy(a->request_id, first->request_id, sizeof a->request_id);
    return a;
}

bool serve_make_choices(serve *s, answer *a)
{
    gen_request *r = a->request ? gen_request_next(a->request) : NULL;
    upstream_request *q = a->remote ? upstream_request_next(a->remote) : NULL;
    while (r || q) {
        answer **others = realloc(a->others, ((size_t)a->n_others + 1) * sizeof(answer *));
        a->others = others ? others : a->others;
        answer *one = others ? make_choice(s, a, a->n_others + 1) : NULL;
        if (!one) {
            return false;
        }
        a->others[a->n_others++] = one;
        if (r) {
            gen_request_set_id(r, one->id);
            one->info = gen_request_get_info(r);
            r = gen_request_next(r);
        } else {
            one->info = upstream_request_info(q);
            q = upstream_request_next(q);
        }
    }
    a->n_open = 1 + a->n_others;
    return true;
}

err_code serve_submit_choices(serve *s, answer *a, err_detail *d)
{
    err_code err = ERR_OK;
    if (a->request) {
        err = engine_submit(s->engine, a->request, a->id, d);
        a->request = err == ERR_OK ? NULL : a->request;
        return err;
    }
    for (int i = 0; a->remote; i++) {
        upstream_request *q = a->remote;
        upstream_request *next = upstream_request_detach(q);
        a->remote = next;
        err = upstreams_submit(s->upstreams, q, i ? a->others[i - 1]->id : a->id, d);
        if (err != ERR_OK) {
            upstream_request_free(q);
            serve_stop_answer(s, a->id);
            return err;
        }
    }
    return ERR_OK;
}

void serve_begin_choices(serve *s, answer *a)
{
    for (int i = 0; i < a->n_others; i++) {
        answer_begin(a->others[i], &a->others[i]->info, a->dialect->has_tools ? s->tool_form : NULL);
    }
}

void serve_share_prompt(serve *s, answer *first, const answer *a, const gen_event *event)
{
    const int n = first->opt.n_choices > 1 ? first->opt.n_choices : 1;
    for (int i = a->index + 1; i < (a->index / n + 1) * n; i++) {
        answer_take_prompt(first->others[i - 1], s->engine, event);
    }
}

void serve_stop_choices(serve *s, const answer *a)
{
    for (int i = 0; i < a->n_others; i++) {
        serve_stop_one(s, a->others[i]->id);
    }
}

void serve_drop_choices(serve *s, answer *a)
{
    serve_stop_choices(s, a);
    for (int i = 0; i < a->n_others; i++) {
        id_table_remove(&s->answers, a->others[i]->id);
        answer_destroy(a->others[i]);
    }
    a->n_others = 0;
}

void serve_end_thinking(serve *s, const answer *a)
{
    engine_end_thinking(s->engine, a->id);
    for (int i = 0; i < a->n_others; i++) {
        engine_end_thinking(s->engine, a->others[i]->id);
    }
}
