#include "server/responses_reply.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

static const char *status_name(response_status s)
{
    static const char *const NAMES[] = {"queued",     "in_progress", "completed",
                                        "incomplete", "cancelled",   "failed"};
    return NAMES[s];
}

void responses_reply_init(responses_reply *r, const reply_options *opt, const char *model)
{
    memset(r, 0, sizeof *r);
    event_log_init(&r->log, EVENT_LOG_BYTES);
    hash_random_id(r->id, sizeof r->id, "resp_");
    snprintf(r->model, sizeof r->model, "%s", model);
    r->opt = opt;
    r->created_at = clock_unix_s();
    bytes_init(&r->reasoning.text, SIZE_MAX / 2);
    bytes_init(&r->message.text, SIZE_MAX / 2);
    bytes_init(&r->error_json, 8192);
    bytes_init(&r->line, SIZE_MAX / 2);
    r->status = RESPONSE_IN_PROGRESS;
}

void responses_reply_deinit(responses_reply *r)
{
    event_log_deinit(&r->log);
    bytes_deinit(&r->reasoning.text);
    bytes_deinit(&r->message.text);
    bytes_deinit(&r->error_json);
    bytes_deinit(&r->line);
}

bool responses_reply_is_finished(const responses_reply *r)
{
    return r->log.closed;
}

/* ---- the response object ---- */

static void write_part(bytes *out, const reply_item *item, bool is_reasoning)
{
    bytes_append_str(out, is_reasoning ? "{\"type\":\"reasoning_text\",\"text\":"
                                       : "{\"type\":\"output_text\",\"text\":");
    bytes_append_json(out, bytes_str(&item->text), item->text.len);
    bytes_append_str(out, is_reasoning ? "}" : ",\"annotations\":[],\"logprobs\":[]}");
}

static void write_item(bytes *out, const reply_item *item, bool is_reasoning, bool with_content,
                       const char *status)
{
    if (is_reasoning) {
        bytes_printf(out,
                     "{\"id\":\"%s\",\"type\":\"reasoning\",\"status\":\"%s\",\"summary\":[],\"content\":[",
                     item->id, status);
    } else {
        bytes_printf(
            out, "{\"id\":\"%s\",\"type\":\"message\",\"status\":\"%s\",\"role\":\"assistant\",\"content\":[",
            item->id, status);
    }
    if (with_content) {
        write_part(out, item, is_reasoning);
    }
    bytes_append_str(out, "]}");
}

static const char *item_status(const responses_reply *r, const reply_item *item)
{
    if (item->open) {
        return "in_progress";
    }
    /* Only the last item is cut short. */
    bool is_last = item->output_index == r->n_items - 1;
    return is_last && r->log.closed && r->status != RESPONSE_COMPLETED ? "incomplete" : "completed";
}

static void write_number_or(bytes *out, const char *name, double value, const char *otherwise)
{
    if (isfinite(value)) {
        bytes_printf(out, ",\"%s\":%g", name, value);
    } else {
        bytes_printf(out, ",\"%s\":%s", name, otherwise);
    }
}

static void write_end(bytes *out, const responses_reply *r)
{
    bytes_append_str(out, ",\"error\":");
    bytes_append_str(out, r->error_json.len ? bytes_str(&r->error_json) : "null");
    bytes_append_str(out, ",\"incomplete_details\":");
    bytes_append_str(out, r->status == RESPONSE_INCOMPLETE  ? "{\"reason\":\"max_output_tokens\"}"
                          : r->status == RESPONSE_CANCELLED ? "{\"reason\":\"cancelled\"}"
                                                            : "null");
    if (!r->completed_at) {
        bytes_append_str(out, ",\"usage\":null");
        return;
    }
    bytes_printf(out, ",\"completed_at\":%lld,\"usage\":", (long long)r->completed_at);
    reply_json_responses_usage(out, &r->result.usage);
    bytes_append_str(out, ",\"timings\":");
    reply_json_timings(out, &r->result.timings);
}

void responses_reply_write(bytes *out, const responses_reply *r)
{
    bytes_printf(
        out, "{\"id\":\"%s\",\"object\":\"response\",\"created_at\":%lld,\"status\":\"%s\",\"model\":", r->id,
        (long long)r->created_at, status_name(r->status));
    bytes_append_json(out, r->model, strlen(r->model));
    bytes_append_str(out, ",\"output\":[");
    if (r->reasoning.exists) {
        write_item(out, &r->reasoning, true, true, item_status(r, &r->reasoning));
    }
    if (r->message.exists) {
        bytes_append_str(out, r->reasoning.exists ? "," : "");
        write_item(out, &r->message, false, true, item_status(r, &r->message));
    }
    bytes_append_char(out, ']');
    write_end(out, r);
    write_number_or(out, "temperature", r->opt->temperature, "null");
    write_number_or(out, "top_p", r->opt->top_p, "null");
    write_number_or(out, "max_output_tokens",
                    r->opt->max_tokens > 0 ? (double)r->opt->max_tokens : (double)NAN, "null");
    bytes_printf(out, ",\"instructions\":null,\"metadata\":%s", r->opt->metadata ? r->opt->metadata : "{}");
    bytes_printf(out,
                 ",\"parallel_tool_calls\":true,\"previous_response_id\":null,\"store\":%s,\"text\":{"
                 "\"format\":{\"type\":"
                 "\"text\"}},\"tool_choice\":\"auto\",\"tools\":[],\"truncation\":\"disabled\"}",
                 r->opt->keep_on_disconnect ? "true" : "false");
}

/* ---- events ---- */

static void write_identity(bytes *out, const responses_reply *r)
{
    bytes_printf(out, ",\"response_id\":\"%s\"", r->id);
    if (r->opt->stream_id[0]) {
        bytes_printf(out, ",\"stream_id\":\"%s\"", r->opt->stream_id); /* the alphabet needs no escape */
    }
}

/* Begins an event with its number; the caller appends members and calls end_event. */
static bytes *begin_event(responses_reply *r, const char *type)
{
    bytes_clear(&r->line);
    bytes_printf(&r->line, "{\"type\":\"%s\",\"sequence_number\":%lld", type,
                 (long long)event_log_next(&r->log));
    write_identity(&r->line, r);
    return &r->line;
}

static void end_event(responses_reply *r, const char *type)
{
    bytes_append_char(&r->line, '}');
    if (r->line.failed) {
        r->log.failed = true;
        return;
    }
    event_log_append(&r->log, type, r->line.data, r->line.len);
}

static void response_event(responses_reply *r, const char *type)
{
    bytes *line = begin_event(r, type);
    bytes_append_str(line, ",\"response\":");
    responses_reply_write(line, r);
    end_event(r, type);
}

void responses_reply_created(responses_reply *r)
{
    if (!r->is_created) {
        r->is_created = true;
        response_event(r, "response.created");
    }
}

void responses_reply_queued(responses_reply *r, int32_t position)
{
    if (r->is_queued || r->is_started || r->log.closed) {
        return;
    }
    r->is_queued = true;
    r->status = RESPONSE_QUEUED;
    bytes *line = begin_event(r, "response.queued");
    bytes_printf(line, ",\"queue_position\":%d,\"response\":", position);
    responses_reply_write(line, r);
    end_event(r, "response.queued");
}

void responses_reply_in_progress(responses_reply *r)
{
    if (!r->is_started && !r->log.closed) {
        r->is_started = true;
        r->status = RESPONSE_IN_PROGRESS;
        response_event(r, "response.in_progress");
    }
}

static void write_place(bytes *line, const reply_item *item)
{
    bytes_printf(line, ",\"item_id\":\"%s\",\"output_index\":%d,\"content_index\":0", item->id,
                 item->output_index);
}

static void open_item(responses_reply *r, reply_item *item)
{
    if (item->exists) {
        return;
    }
    bool is_reasoning = item == &r->reasoning;
    item->exists = item->open = true;
    item->output_index = r->n_items++;
    hash_random_id(item->id, sizeof item->id, is_reasoning ? "rs_" : "msg_");
    bytes *line = begin_event(r, "response.output_item.added");
    bytes_printf(line, ",\"output_index\":%d,\"item\":", item->output_index);
    write_item(line, item, is_reasoning, false, "in_progress");
    end_event(r, "response.output_item.added");
    line = begin_event(r, "response.content_part.added");
    write_place(line, item);
    bytes_append_str(line, ",\"part\":");
    write_part(line, item, is_reasoning);
    end_event(r, "response.content_part.added");
}

static void close_item(responses_reply *r, reply_item *item, const char *status)
{
    if (!item->open) {
        return;
    }
    bool is_reasoning = item == &r->reasoning;
    item->open = false;
    const char *type = is_reasoning ? "response.reasoning_text.done" : "response.output_text.done";
    bytes *line = begin_event(r, type);
    write_place(line, item);
    bytes_append_str(line, ",\"text\":");
    bytes_append_json(line, bytes_str(&item->text), item->text.len);
    bytes_append_str(line, is_reasoning ? "" : ",\"logprobs\":[]");
    end_event(r, type);
    line = begin_event(r, "response.content_part.done");
    write_place(line, item);
    bytes_append_str(line, ",\"part\":");
    write_part(line, item, is_reasoning);
    end_event(r, "response.content_part.done");
    line = begin_event(r, "response.output_item.done");
    bytes_printf(line, ",\"output_index\":%d,\"item\":", item->output_index);
    write_item(line, item, is_reasoning, true, status);
    end_event(r, "response.output_item.done");
}

static void add_text(responses_reply *r, reply_item *item, const bytes *text)
{
    bool is_reasoning = item == &r->reasoning;
    const char *type = is_reasoning ? "response.reasoning_text.delta" : "response.output_text.delta";
    open_item(r, item);
    bytes_append(&item->text, text->data, text->len);
    bytes *line = begin_event(r, type);
    write_place(line, item);
    bytes_append_str(line, ",\"delta\":");
    bytes_append_json(line, text->data, text->len);
    bytes_append_str(line, is_reasoning ? "" : ",\"logprobs\":[]");
    end_event(r, type);
}

void responses_reply_delta(responses_reply *r, const bytes *reasoning, const bytes *content)
{
    if (r->log.closed) {
        return;
    }
    if (reasoning->len > 0) {
        add_text(r, &r->reasoning, reasoning);
    }
    if (content->len > 0) {
        close_item(r, &r->reasoning, "completed");
        add_text(r, &r->message, content);
    }
}

static void set_error(responses_reply *r, const api_error *e)
{
    bytes_append_str(&r->error_json, "{\"code\":");
    const char *code = e->code[0] ? e->code : "server_error";
    bytes_append_json(&r->error_json, code, strlen(code));
    bytes_append_str(&r->error_json, ",\"message\":");
    bytes_append_json(&r->error_json, e->message, strlen(e->message));
    bytes_printf(&r->error_json, ",\"type\":\"%s\"", e->type);
    if (e->param[0]) {
        bytes_append_str(&r->error_json, ",\"param\":");
        bytes_append_json(&r->error_json, e->param, strlen(e->param));
    }
    bytes_append_char(&r->error_json, '}');
}

void responses_reply_finish(responses_reply *r, const response_result *result)
{
    if (r->log.closed) {
        return;
    }
    responses_reply_created(r);
    if (result->status == RESPONSE_COMPLETED || result->status == RESPONSE_INCOMPLETE) {
        responses_reply_in_progress(r);
        if (!r->message.exists && (!r->reasoning.exists || result->status == RESPONSE_COMPLETED)) {
            close_item(r, &r->reasoning, "completed");
            open_item(r, &r->message); /* an empty answer is still an answer */
        }
    }
    const char *last = result->status == RESPONSE_COMPLETED ? "completed" : "incomplete";
    close_item(r, &r->reasoning, last);
    close_item(r, &r->message, last);
    r->status = result->status;
    r->result = *result;
    r->result.error = NULL;
    r->completed_at = clock_unix_s();
    if (result->error) {
        set_error(r, result->error);
    }
    const char *type = result->status == RESPONSE_COMPLETED ? "response.completed"
                       : result->status == RESPONSE_FAILED  ? "response.failed"
                                                            : "response.incomplete";
    event_log_close(&r->log); /* first, so that the object shows its final state */
    response_event(r, type);
}

void responses_reply_snapshot(bytes *out, const responses_reply *r, int64_t *next)
{
    *next = event_log_next(&r->log);
    bytes_printf(out, "{\"type\":\"response.snapshot\",\"sequence_number\":%lld", (long long)*next - 1);
    write_identity(out, r);
    bytes_append_str(out, ",\"response\":");
    responses_reply_write(out, r);
    bytes_append_char(out, '}');
}

/* ---- ephemeral events ---- */

void responses_reply_progress(bytes *out, const responses_reply *r, gen_phase phase, int32_t processed,
                              int32_t total, int32_t cached, double elapsed_ms, double eta_ms)
{
    const char *unit = phase == GEN_PHASE_MEDIA ? "frames" : phase == GEN_PHASE_VISION ? "tiles" : "tokens";
    bytes_append_str(out, "{\"type\":\"response.progress\"");
    write_identity(out, r);
    bytes_printf(
        out,
        ",\"phase\":\"%s\",\"processed\":%d,\"total\":%d,\"cached\":%d,\"unit\":\"%s\",\"elapsed_ms\":%.0f",
        gen_phase_name(phase), processed, total, cached, unit, elapsed_ms);
    write_number_or(out, "eta_ms", eta_ms, "null");
    bytes_append_char(out, '}');
}

void responses_reply_stats(bytes *out, const responses_reply *r, const gen_timings *t, int32_t n_ctx)
{
    bytes_append_str(out, "{\"type\":\"response.stats\"");
    write_identity(out, r);
    bytes_append_str(out, ",\"timings\":");
    reply_json_timings(out, t);
    bytes_printf(out, ",\"context\":{\"n_ctx\":%d,\"used\":%d}}", n_ctx,
                 t->cache_n + t->prompt_n + t->predicted_n);
}
