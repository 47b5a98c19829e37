#include "engine/gen.h"

#include <math.h>
#include <stdlib.h>

void gen_params_init(gen_params *p)
{
    *p = (gen_params){
        .temperature = NAN,
        .top_p = NAN,
        .min_p = NAN,
        .top_k = -1,
        .repetition_penalty = NAN,
        .presence_penalty = 0.0f,
        .frequency_penalty = 0.0f,
        .max_tokens = -1,
        .n_top_logprobs = -1,
        .think_tokens = -1,
        .spec_prefill = -1,
        .spec_keep = NAN,
        .spec_backbone = NAN,
    };
}

void gen_params_fill(gen_params *p, const gen_params *defaults)
{
    if (isnan(p->temperature)) {
        p->temperature = defaults->temperature;
    }
    if (isnan(p->top_p)) {
        p->top_p = defaults->top_p;
    }
    if (isnan(p->min_p)) {
        p->min_p = defaults->min_p;
    }
    if (p->top_k < 0) {
        p->top_k = defaults->top_k;
    }
    if (isnan(p->repetition_penalty)) {
        p->repetition_penalty = defaults->repetition_penalty;
    }
    if (!p->has_seed && defaults->has_seed) {
        p->has_seed = true;
        p->seed = defaults->seed;
    }
    if (p->think_tokens < 0) {
        p->think_tokens = defaults->think_tokens;
    }
    if (p->spec_prefill < 0) {
        p->spec_prefill = defaults->spec_prefill;
    }
    if (isnan(p->spec_keep)) {
        p->spec_keep = defaults->spec_keep;
    }
    if (isnan(p->spec_backbone)) {
        p->spec_backbone = defaults->spec_backbone;
    }
    if (p->max_tokens < 0) {
        p->max_tokens = defaults->max_tokens;
    }
}

const char *gen_phase_name(gen_phase p)
{
    switch (p) {
    case GEN_PHASE_QUEUED:
        return "queued";
    case GEN_PHASE_MEDIA:
        return "media_decode";
    case GEN_PHASE_VISION:
        return "vision_encode";
    case GEN_PHASE_PREFILL:
        return "prefill";
    case GEN_PHASE_DECODE:
        return "decode";
    }
    return "unknown";
}

const char *gen_route_name(gen_route r)
{
    return r == GEN_ROUTE_MEDIA ? "media" : "text";
}

void gen_event_free(gen_event *e)
{
    if (e) {
        free(e->logprobs);
        free(e->text);
        free(e->vector);
        free(e);
    }
}
