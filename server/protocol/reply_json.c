#include "server/protocol/reply_json.h"

#include <math.h>

/* {"cached_tokens":N}; of a sparse prompt also how many of the others there were and were read. */
static void write_prompt_details(bytes *out, const reply_usage *u)
{
    bytes_printf(out, "{\"cached_tokens\":%d", u->cached_tokens);
    if (u->sparse_tokens > 0) {
        bytes_printf(out, ",\"sparse_tokens\":%d,\"sparse_kept_tokens\":%d", u->sparse_tokens,
                     u->sparse_kept_tokens);
    }
    bytes_append_char(out, '}');
}

void reply_json_usage(bytes *out, const reply_usage *u)
{
    bytes_printf(out,
                 ",\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,"
                 "\"prompt_tokens_details\":",
                 u->prompt_tokens, u->completion_tokens, u->prompt_tokens + u->completion_tokens);
    write_prompt_details(out, u);
    bytes_printf(out, ",\"completion_tokens_details\":{\"reasoning_tokens\":%d}}", u->reasoning_tokens);
}

void reply_json_responses_usage(bytes *out, const reply_usage *u)
{
    bytes_printf(out, ",\"usage\":{\"input_tokens\":%d,\"input_tokens_details\":", u->prompt_tokens);
    write_prompt_details(out, u);
    bytes_printf(out,
                 ",\"output_tokens\":%d,\"output_tokens_details\":{\"reasoning_tokens\":%d},"
                 "\"total_tokens\":%d}",
                 u->completion_tokens, u->reasoning_tokens, u->prompt_tokens + u->completion_tokens);
}

static double ratio(double a, double b)
{
    return b > 0.0 ? a / b : 0.0;
}

void reply_json_timings(bytes *out, const gen_timings *t)
{
    if (!t) {
        return;
    }
    bytes_json(out, ",\"timings\":{\"server\":%s", t->server);
    if (t->rule) {
        bytes_json(out, ",\"rule\":%s", t->rule);
    }
    bytes_printf(out, ",\"route\":\"%s\",\"cache_n\":%d,\"prompt_n\":%d,\"prompt_ms\":%.3f,",
                 t->route == GEN_ROUTE_MEDIA ? "media" : "text", t->cache_n, t->prompt_n, t->prompt_ms);
    bytes_printf(out, "\"prompt_per_token_ms\":%.3f,\"prompt_per_second\":%.3f,\"predicted_n\":%d,",
                 ratio(t->prompt_ms, t->prompt_n), ratio(1000.0 * t->prompt_n, t->prompt_ms), t->predicted_n);
    bytes_printf(out, "\"predicted_ms\":%.3f,\"predicted_per_token_ms\":%.3f,\"predicted_per_second\":%.3f,",
                 t->predicted_ms, ratio(t->predicted_ms, t->predicted_n),
                 ratio(1000.0 * t->predicted_n, t->predicted_ms));
    bytes_printf(out, "\"queue_ms\":%.3f,\"media_ms\":%.3f,\"vision_ms\":%.3f,\"ttft_ms\":%.3f,", t->queue_ms,
                 t->media_ms, t->vision_ms, t->ttft_ms);
    if (t->sparse_n > 0) {
        bytes_printf(out, "\"sparse_n\":%d,\"sparse_kept_n\":%d,", t->sparse_n, t->sparse_kept_n);
    }
    bytes_printf(out, "\"n_images\":%d,\"n_videos\":%d,\"n_media_cached\":%d,", t->n_images, t->n_videos,
                 t->n_media_cached);
    bytes_printf(out, "\"draft_n\":%d,\"draft_n_accepted\":%d,\"lookup_n\":%d,\"lookup_n_accepted\":%d}",
                 t->draft_n, t->draft_accepted_n, t->lookup_n, t->lookup_accepted_n);
}

void reply_json_logprob_head(bytes *out, const char *token, size_t len, double logprob)
{
    /* JSON has no -infinity; OpenAI writes -9999 for a token that could not be drawn. */
    double value = isfinite(logprob) ? logprob : -9999.0;
    bytes_json(out, "{\"token\":%.*s,\"logprob\":%.6f,\"bytes\":[", (int)len, token, value);
    for (size_t i = 0; i < len; i++) {
        bytes_printf(out, "%s%u", i ? "," : "", (unsigned)(unsigned char)token[i]);
    }
    bytes_append_char(out, ']');
}
