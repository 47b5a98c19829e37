#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "server/service/serve_state.h"

static const char REQUEST_PREFIX[] = "req_";

/* ---- which answer ---- */

answer *serve_find_answer(serve *s, uint64_t scope, const char *id)
{
    const size_t n = sizeof REQUEST_PREFIX - 1;
    uint64_t number = strncmp(id, REQUEST_PREFIX, n) == 0 ? strtoull(id + n, NULL, 10) : 0;
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer *a = id_table_at(&s->answers, i);
        if (a && a->scope == scope && (a->id == number || strcmp(a->chat_id, id) == 0)) {
            return a;
        }
    }
    return NULL;
}

void serve_on_cancel(serve *s, conn *c)
{
    answer *a = serve_find_answer(s, c->scope, c->param);
    if (!a || a->state == ANSWER_FINISHED) {
        serve_send_fault(s, c, 404, "request_not_found", NULL, "no such request runs or waits");
        return;
    }
    serve_cancel_answer(s, a); /* may free it */
    bytes body;
    bytes_init(&body, 16384);
    bytes_json(&body, "{\"id\":%s,\"object\":\"request\",\"cancelled\":true}", c->param);
    serve_send_body(s, c, &body);
}

err_code serve_control_answer(serve *s, answer *a, const char *action, err_detail *d)
{
    if (!action || strcmp(action, "reasoning_end") != 0) {
        return err_set_param(d, ERR_INVALID, "action", action ? "invalid_value" : "missing_field",
                             "action must be \"reasoning_end\"");
    }
    if (a->server) {
        return err_set_param(d, ERR_UNSUPPORTED, "action", "not_supported",
                             "the reasoning of a model on another server cannot be ended from here");
    }
    a->ends_thinking = true;
    if (a->state == ANSWER_RUNNING) {
        serve_end_thinking(s, a);
    }
    return ERR_OK;
}

void serve_on_control(serve *s, conn *c, const bytes *body)
{
    json_doc *doc = NULL;
    err_detail d = {0};
    err_code err = json_parse(&doc, bytes_str(body), body->len, LIMIT_JSON_DEPTH, &d);
    const json *root = err == ERR_OK ? json_root(doc) : NULL;
    const char *id = json_str(json_get(root, "id"), NULL);
    const char *action = json_str(json_get(root, "action"), NULL);
    answer *a = id ? serve_find_answer(s, c->scope, id) : NULL;
    if (err == ERR_OK && !id) {
        err = err_set_param(&d, ERR_INVALID, "id", "missing_field",
                            "id must name an answer: that of its chunks or of its response");
    } else if (err == ERR_OK && !a) {
        err = err_set_param(&d, ERR_NOT_FOUND, "id", "request_not_found", "no such request runs or waits");
    } else if (err == ERR_OK) {
        err = serve_control_answer(s, a, action, &d);
    }
    if (err != ERR_OK) {
        api_error e;
        api_error_from(&e, err, &d);
        serve_send_error(s, c, &e);
    } else {
        bytes reply;
        bytes_init(&reply, 16384);
        bytes_json(&reply,
                   "{\"id\":%s,\"object\":\"request.control\",\"action\":\"reasoning_end\",\"success\":true}",
                   id);
        serve_send_body(s, c, &reply);
    }
    json_free(doc);
}

void serve_write_cached(bytes *out, const engine_cached *one)
{
    bytes_json(out, "{\"object\":\"cache.entry\",\"name\":%s", one->name[0] ? one->name : NULL);
    bytes_printf(out, ",\"tokens\":%d,\"bytes\":%" PRIu64 ",\"where\":\"%s\",\"last_used\":%" PRId64,
                 one->n_tokens, one->n_bytes, one->is_on_disk ? "disk" : "memory", one->used_at);
}

/* ctx: the list so far. */
static void write_cached(void *ctx, const engine_cached *one)
{
    bytes *out = ctx;
    bytes_append_str(out, out->data[out->len - 1] == '[' ? "" : ",");
    serve_write_cached(out, one);
    bytes_append_char(out, '}');
}

void serve_on_cache_entry(serve *s, conn *c)
{
    const bool forgets = c->method == NET_DELETE;
    api_error e;
    err_detail d = {0};
    engine_cached one;
    if (!serve_is_ready(s, &e)) {
        serve_send_error(s, c, &e);
        return;
    }
    const err_code err = s->engine ? engine_check_name(s->engine, c->param, &d) : ERR_OK;
    if (err != ERR_OK) {
        api_error_from(&e, err, &d);
        serve_send_error(s, c, &e);
        return;
    }
    if (!s->engine || !engine_find_named(s->engine, c->scope, c->param, forgets, &one)) {
        serve_send_fault(s, c, 404, "cache_entry_not_found", "name",
                         "this key has saved no prompt under this name with this model");
        return;
    }
    bytes body;
    bytes_init(&body, SIZE_MAX);
    serve_write_cached(&body, &one);
    bytes_append_str(&body, forgets ? ",\"deleted\":true}" : "}");
    serve_send_json(s, c, 200, &body, "Cache-Control: no-store\r\n");
    bytes_deinit(&body);
}

void serve_on_cache(serve *s, conn *c)
{
    api_error e;
    if (!serve_is_ready(s, &e)) {
        serve_send_error(s, c, &e);
        return;
    }
    bytes body;
    bytes_init(&body, SIZE_MAX);
    if (!s->engine) { /* models of other servers alone */
        bytes_append_str(&body, c->method == NET_DELETE ? "{\"object\":\"cache\",\"cleared\":true}"
                                                        : "{\"object\":\"list\",\"data\":[]}");
    } else if (c->method == NET_DELETE) {
        engine_clear_cache(s->engine, &c->scope);
        bytes_append_str(&body, "{\"object\":\"cache\",\"cleared\":true}");
    } else {
        bytes_append_str(&body, "{\"object\":\"list\",\"data\":[");
        engine_list_cache(s->engine, c->scope, write_cached, &body);
        bytes_append_str(&body, "]}");
    }
    serve_send_json(s, c, 200, &body, "Cache-Control: no-store\r\n");
    bytes_deinit(&body);
}

/* ---- what runs ---- */

/* With the engine and past its queue. */
static bool is_running(const answer *a)
{
    return a->state == ANSWER_RUNNING && (a->started || a->first_token_ms > 0.0);
}

static const char *phase_of(const answer *a)
{
    if (a->state == ANSWER_PREPARING) {
        return a->phase == GEN_PHASE_MEDIA ? gen_phase_name(a->phase) : "prepare";
    }
    return gen_phase_name(!is_running(a)            ? GEN_PHASE_QUEUED
                          : a->first_token_ms > 0.0 ? GEN_PHASE_DECODE
                                                    : a->phase);
}

static double rate(double n, double ms)
{
    return ms > 0.0 ? 1000.0 * n / ms : 0.0;
}

static double ratio(uint64_t part, uint64_t all)
{
    return all ? (double)part / (double)all : 0.0;
}

static void write_request(bytes *out, const answer *a)
{
    const gen_timings *t = &a->timings;
    const bool prepared = a->state > ANSWER_PREPARING;
    bytes_json(out, "{\"id\":\"%-s%" PRIu64 "\",\"kind\":%s,\"phase\":%s,\"route\":%s,", REQUEST_PREFIX,
               a->id, a->dialect->name, phase_of(a), prepared ? gen_route_name(a->info.route) : NULL);
    bytes_json(out, "\"processed\":%d,\"total\":%d,\"prompt_tokens\":%d,\"cached_tokens\":%d,", a->processed,
               a->total, prepared ? a->info.n_prompt_tokens : 0, t->cache_n);
    bytes_json(out, "\"tokens\":%d,\"max_tokens\":%d,\"tokens_per_second\":%.3f,\"elapsed_ms\":%.0f}",
               a->n_tokens, prepared ? a->info.max_tokens : 0, rate(t->predicted_n, t->predicted_ms),
               clock_ms() - a->created_ms);
}

/* The open answers of this key, those that run or those that wait. */
static void write_requests(bytes *out, const serve *s, uint64_t scope, bool running)
{
    bool is_first = true;
    bytes_append_char(out, '[');
    for (size_t i = 0; i < s->answers.cap; i++) {
        const answer *a = id_table_at(&s->answers, i);
        if (a && a->scope == scope && a->state != ANSWER_FINISHED && is_running(a) == running) {
            bytes_append_str(out, is_first ? "" : ",");
            write_request(out, a);
            is_first = false;
        }
    }
    bytes_append_char(out, ']');
}

static void write_totals(bytes *out, const engine_status *e)
{
    bytes_printf(out,
                 ",\"totals\":{\"requests\":%" PRIu64 ",\"prompt_tokens\":%" PRIu64
                 ",\"cached_tokens\":%" PRIu64 ",\"generated_tokens\":%" PRIu64 ",\"steps\":%" PRIu64
                 ",\"vision_encodes\":%" PRIu64 ",\"prompt_per_second\":%.3f,\"predicted_per_second\":%.3f}",
                 e->n_requests, e->n_prompt_tokens + e->n_cached_tokens, e->n_cached_tokens,
                 e->n_generated_tokens, e->n_steps, e->n_vision_encodes,
                 rate((double)e->n_prompt_tokens, e->prefill_ms_sum),
                 rate((double)e->n_generated_tokens, e->decode_ms_sum));
    bytes_printf(out,
                 ",\"cache\":{\"entries\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"queries\":%" PRIu64
                 ",\"hits\":%" PRIu64 ",\"hit_rate\":%.4f",
                 e->n_cache_entries, e->cache_bytes, e->n_cache_queries, e->n_cache_hits,
                 ratio(e->n_cache_hits, e->n_cache_queries));
    if (e->disk_budget) {
        bytes_printf(out,
                     ",\"disk\":{\"entries\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"limit\":%" PRIu64
                     ",\"hits\":%" PRIu64 ",\"tokens\":%" PRIu64 ",\"saves\":%" PRIu64 ",\"errors\":%" PRIu64
                     "}}",
                     e->n_disk_entries, e->disk_bytes, e->disk_budget, e->n_disk_hits, e->n_disk_tokens,
                     e->n_disk_saves, e->n_disk_errors);
    } else {
        bytes_append_str(out, ",\"disk\":null}");
    }
    bytes_printf(out,
                 ",\"vision_cache\":{\"entries\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"hits\":%" PRIu64
                 ",\"hit_rate\":%.4f}",
                 e->n_vision_entries, e->vision_cache_bytes, e->n_vision_hits,
                 ratio(e->n_vision_hits, e->n_vision_hits + e->n_vision_encodes));
}

static void write_mtp(bytes *out, const engine_status *e, const engine_info *info)
{
    bytes_printf(out,
                 ",\"mtp\":{\"available\":%s,\"drafted\":%" PRIu64 ",\"accepted\":%" PRIu64
                 ",\"acceptance_rate\":%.4f,\"parked_steps\":%" PRIu64 "}",
                 info && info->has_mtp ? "true" : "false", e->n_drafted, e->n_draft_accepted,
                 ratio(e->n_draft_accepted, e->n_drafted), e->n_parked_steps);
    bytes_printf(
        out, ",\"prompt_lookup\":{\"drafted\":%" PRIu64 ",\"accepted\":%" PRIu64 ",\"acceptance_rate\":%.4f}",
        e->n_copied, e->n_copied_accepted, ratio(e->n_copied_accepted, e->n_copied));
}

static void write_model(bytes *out, const serve *s)
{
    const engine_info *info = s->info;
    if (info) {
        bytes_json(out, ",\"model\":{\"id\":%s,\"compute\":%s,\"n_ctx\":%d,\"n_params\":%" PRIu64 "}",
                   s->model_name, info->compute, info->n_ctx, info->n_params);
    } else {
        bytes_append_str(out, ",\"model\":null");
    }
    bytes_append_str(out, ",\"residents\":[");
    serve_write_residents(s, out);
    bytes_append_char(out, ']');
    size_t kept;
    const ledger_status memory = serve_memory_status(s, &kept);
    bytes_printf(out,
                 ",\"memory\":{\"rss_bytes\":%" PRIu64 ",\"weight_bytes\":%" PRIu64
                 ",\"state_bytes\":%" PRIu64
                 ",\"available_bytes\":%zu,\"request_limit\":%zu,\"request_bytes\":%zu,"
                 "\"kept_bytes\":%zu,\"cache_type\":\"%s\"}",
                 metrics_resident_bytes(), info ? info->weight_bytes : 0, info ? info->state_bytes : 0,
                 memory_available(), memory.limit, memory.used, kept, info ? info->cache_type : "");
}

/* The work that comes before the engine, of everybody. */
static void write_preparation(bytes *out, const serve *s)
{
    prep_status p;
    prep_get_status(s->prep, &p);
    bytes_printf(out,
                 ",\"preparation\":{\"begun\":%d,\"computing\":%d,\"waiting\":%d,\"oldest_ms\":%.0f,"
                 "\"silent_ms\":%.0f,\"stalled\":%s}",
                 p.n_begun, p.n_computing, p.n_waiting, p.oldest_ms, p.silent_ms,
                 s->is_prep_stalled ? "true" : "false");
}

/* A row for each place: the running answers of this key, and the places that are free or
 * another's. */
void serve_on_slots(serve *s, conn *c)
{
    engine_status status = {0};
    api_error e;
    if (!serve_is_ready(s, &e)) {
        serve_send_error(s, c, &e);
        return;
    }
    if (!s->engine) { /* models of other servers alone */
        bytes none = bytes_empty(8);
        bytes_append_str(&none, "[]");
        serve_send_body(s, c, &none);
        return;
    }
    engine_get_status(s->engine, &status);
    char fails[4];
    if (!serve_query_string_value(s, c, "fail_on_no_slot", fails, sizeof fails)) {
        return;
    }
    if (strcmp(fails, "1") == 0 && status.n_running >= s->info->n_parallel) {
        serve_send_fault(s, c, 503, "no_slot_available", NULL, "every slot is taken");
        return;
    }
    bytes body;
    bytes_init(&body, SIZE_MAX);
    int n = 0;
    for (size_t i = 0; i < s->answers.cap && n < s->info->n_parallel; i++) {
        const answer *a = id_table_at(&s->answers, i);
        if (a && a->scope == c->scope && a->state == ANSWER_RUNNING && is_running(a)) {
            bytes_printf(&body,
                         "%s{\"id\":%d,\"n_ctx\":%d,\"is_processing\":true,\"id_task\":%" PRIu64
                         ",\"next_token\":{\"n_decoded\":%d,\"n_remain\":%d}}",
                         n ? "," : "[", n, s->info->n_ctx, a->id, a->n_tokens,
                         a->info.max_tokens - a->n_tokens);
            n++;
        }
    }
    for (; n < s->info->n_parallel; n++) {
        bytes_printf(&body, "%s{\"id\":%d,\"n_ctx\":%d,\"is_processing\":%s}", n ? "," : "[", n,
                     s->info->n_ctx, n < status.n_running ? "true" : "false");
    }
    bytes_append_char(&body, ']');
    serve_send_json(s, c, 200, &body, "Cache-Control: no-store\r\n");
    bytes_deinit(&body);
}

void serve_on_status(serve *s, conn *c)
{
    static const char *const PHASES[] = {"loading", "ready", "draining", "empty"};
    engine_status status = {0};
    if (s->engine) {
        engine_get_status(s->engine, &status);
    }
    bytes body;
    bytes_init(&body, SIZE_MAX);
    bytes_printf(
        &body, "{\"object\":\"status\",\"state\":\"%s\",\"version\":\"" PARLEY_VERSION "\",\"uptime_s\":%.3f",
        s->is_stalled || s->is_prep_stalled ? "stalled" : PHASES[s->phase],
        (clock_ms() - s->started_ms) / 1000.0);
    write_model(&body, s);
    bytes_printf(&body, ",\"queue\":{\"running\":%d,\"waiting\":%d,\"slots\":%d}", status.n_running,
                 status.n_waiting, s->info ? s->info->n_parallel : 0);
    write_preparation(&body, s);
    bytes_append_str(&body, ",\"running\":");
    write_requests(&body, s, c->scope, true);
    bytes_append_str(&body, ",\"waiting\":");
    write_requests(&body, s, c->scope, false);
    write_totals(&body, &status);
    write_mtp(&body, &status, s->info);
    if (s->upstreams) {
        bytes_append_str(&body, ",\"upstreams\":");
        upstreams_write_status(s->upstreams, &body);
    }
    uint64_t n_bytes = 0;
    size_t n_files = 0;
    file_store_usage_of(s->files, c->scope, &n_bytes, &n_files);
    bytes_printf(&body, ",\"uploads\":{\"files\":%zu,\"bytes\":%" PRIu64 ",\"quota\":%" PRIu64 "}", n_files,
                 n_bytes, file_store_get_options(s->files)->quota);
    bytes_append_char(&body, '}');
    serve_send_json(s, c, 200, &body, "Cache-Control: no-store\r\n");
    bytes_deinit(&body);
}
