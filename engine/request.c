#include "engine/request.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/gen.h"

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

void gen_request_free(gen_request *r)
{
    if (!r) {
        return;
    }
    for (size_t i = 0; i < r->n_media; i++) {
        gen_request_drop_media(r, i);
    }
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
    snprintf(r->name, sizeof r->name, "%s", name);
}

void gen_request_keep_as(gen_request *r, const char *name)
{
    snprintf(r->cache_name, sizeof r->cache_name, "%s", name);
}

gen_request_info gen_request_get_info(const gen_request *r)
{
    return (gen_request_info){
        .route = r->route,
        .n_prompt_tokens = (int32_t)r->prompt.len,
        .max_tokens = r->max_tokens,
        .starts_in_thinking = r->starts_in_thinking,
        .may_think = r->may_think,
        .think = r->think,
        .continues = r->continues,
        .n_images = r->n_images,
        .n_videos = r->n_videos,
    };
}
