#include "server/protocol/dialects/responses_reply.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/memory.h"
#include "server/media/data_uri.h"

static const char *status_name(response_status s)
{
    static const char *const NAMES[] = {"queued",     "in_progress", "completed",
                                        "incomplete", "cancelled",   "failed"};
    return NAMES[s];
}

void responses_reply_init(responses_reply *r, const reply_options *opt, const char *model, size_t log_bytes)
{
    memset(r, 0, sizeof *r);
    event_log_init(&r->log, log_bytes);
    hash_random_id(r->id, sizeof r->id, "resp_");
    snprintf(r->model, sizeof r->model, "%s", model);
    r->opt = opt;
    r->created_at = clock_unix_s();
    bytes_init(&r->error_json, 8192);
    bytes_init(&r->line, SIZE_MAX);
    r->status = RESPONSE_IN_PROGRESS;
}

void responses_reply_deinit(responses_reply *r)
{
    event_log_deinit(&r->log);
    for (int i = 0; i < r->n_items; i++) {
        bytes_deinit(&r->items[i].name);
        bytes_deinit(&r->items[i].text);
        bytes_deinit(&r->items[i].logprobs);
    }
    free(r->items);
    bytes_deinit(&r->error_json);
    bytes_deinit(&r->line);
}

/* ---- the response object ---- */

static void write_logprobs(bytes *out, const bytes *entries)
{
    bytes_json(out, ",\"logprobs\":[%-s]", bytes_str(entries));
}

/* How the text of an item is named. Reasoning stands in the item's content, or, if the request
 * asked for a summary, in its summary: never in both, as clients show both. */
typedef struct text_names {
    const char *part, *index;
    const char *part_added, *part_done, *delta, *done;
} text_names;

#define TEXT_NAMES(part, index, part_event, text_event)                                                      \
    {                                                                                                        \
        part, index, "response." part_event ".added", "response." part_event ".done",                        \
            "response." text_event ".delta", "response." text_event ".done"                                  \
    }

static const text_names *names_of(const responses_reply *r, reply_kind kind)
{
    static const text_names OUTPUT =
        TEXT_NAMES("output_text", "content_index", "content_part", "output_text");
    static const text_names THOUGHT =
        TEXT_NAMES("reasoning_text", "content_index", "content_part", "reasoning_text");
    static const text_names SUMMARY =
        TEXT_NAMES("summary_text", "summary_index", "reasoning_summary_part", "reasoning_summary_text");
    static const text_names ARGUMENTS = {.delta = "response.function_call_arguments.delta",
                                         .done = "response.function_call_arguments.done"};
    if (kind == REPLY_REASONING) {
        return r->opt->summary[0] ? &SUMMARY : &THOUGHT;
    }
    return kind == REPLY_CALL ? &ARGUMENTS : &OUTPUT;
}

static void write_part(bytes *out, const responses_reply *r, const reply_item *item)
{
    bytes_json(out, "{\"type\":%s,\"text\":%.*s", names_of(r, item->kind)->part, BYTES_ARG(&item->text));
    if (item->kind != REPLY_REASONING) {
        bytes_append_str(out, ",\"annotations\":[]");
        write_logprobs(out, &item->logprobs);
    }
    bytes_append_char(out, '}');
}

static void write_parts(bytes *out, const responses_reply *r, const reply_item *item, const char *name,
                        bool with_part)
{
    bytes_printf(out, ",\"%s\":[", name);
    if (with_part) {
        write_part(out, r, item);
    }
    bytes_append_char(out, ']');
}

static void write_item(bytes *out, const responses_reply *r, const reply_item *item, bool with_content,
                       const char *status)
{
    if (item->kind == REPLY_ITEM) {
        bytes_append(out, item->text.data, item->text.len);
        return;
    }
    static const char *const TYPES[] = {
        [REPLY_REASONING] = "reasoning", [REPLY_CONTENT] = "message", [REPLY_CALL] = "function_call"};
    bytes_json(out, "{\"id\":%s,\"type\":%s,\"status\":%s", item->id, TYPES[item->kind], status);
    switch (item->kind) {
    case REPLY_CALL:
        bytes_json(out, ",\"call_id\":%s,\"name\":%.*s,\"arguments\":%.*s", item->call_id,
                   BYTES_ARG(&item->name), BYTES_ARG(&item->text));
        break;
    case REPLY_REASONING:
        write_parts(out, r, item, "summary", with_content && r->opt->summary[0]);
        write_parts(out, r, item, "content", with_content && !r->opt->summary[0]);
        if (r->opt->encrypts && with_content) {
            bytes_append_str(out, ",\"encrypted_content\":\"");
            base64_encode(out, (const uint8_t *)item->text.data, item->text.len);
            bytes_append_char(out, '"');
        }
        break;
    default:
        bytes_append_str(out, ",\"role\":\"assistant\"");
        write_parts(out, r, item, "content", with_content);
        break;
    }
    bytes_append_char(out, '}');
}

static const char *item_status(const reply_item *item)
{
    return item->open ? "in_progress" : item->was_cut ? "incomplete" : "completed";
}

/* NAN is written as null. */
static void write_number(bytes *out, const char *name, double value)
{
    bytes_json(out, ",%s:", name);
    isfinite(value) ? bytes_printf(out, "%g", value) : bytes_append_str(out, "null");
}

static void write_end(bytes *out, const responses_reply *r)
{
    static const char NO_MEMORY[] = "{\"code\":\"out_of_memory\",\"message\":\"there is not enough memory\","
                                    "\"type\":\"server_error\"}";
    bytes_json(out, ",\"error\":%-s,\"incomplete_details\":%-s",
               r->error_json.failed ? NO_MEMORY
               : r->error_json.len  ? bytes_str(&r->error_json)
                                    : "null",
               r->result.is_filtered              ? "{\"reason\":\"content_filter\"}"
               : r->status == RESPONSE_INCOMPLETE ? "{\"reason\":\"max_output_tokens\"}"
               : r->status == RESPONSE_CANCELLED  ? "{\"reason\":\"cancelled\"}"
                                                  : "null");
    if (!r->completed_at) {
        bytes_append_str(out, ",\"completed_at\":null,\"usage\":null");
        return;
    }
    bytes_json(out, ",\"completed_at\":%lld", (long long)r->completed_at);
    reply_json_responses_usage(out, &r->result.usage);
    reply_json_timings(out, &r->result.timings);
}

void responses_reply_write(bytes *out, const responses_reply *r)
{
    bytes_json(
        out, "{\"id\":%s,\"object\":\"response\",\"created_at\":%lld,\"status\":%s,\"model\":%s,\"output\":[",
        r->id, (long long)r->created_at, status_name(r->status), r->model);
    for (int i = 0; i < r->n_items; i++) {
        bytes_append_str(out, i ? "," : "");
        write_item(out, r, &r->items[i], true, item_status(&r->items[i]));
    }
    bytes_append_char(out, ']');
    write_end(out, r);
    bytes_append_str(out, r->opt->fields ? r->opt->fields : "");
    bytes_append_char(out, '}');
}

void responses_reply_append_output(bytes *out, const responses_reply *r)
{
    for (int i = 0; i < r->n_items; i++) {
        const reply_item *item = &r->items[i];
        if (item->kind != REPLY_CALL || !item->was_cut) {
            bytes_append_char(out, ',');
            write_item(out, r, item, true, item_status(item));
        }
    }
}

/* ---- events ---- */

static void write_identity(bytes *out, const responses_reply *r)
{
    bytes_json(out, ",\"response_id\":%s", r->id);
    if (r->opt->stream_id[0]) {
        bytes_json(out, ",\"stream_id\":%s", r->opt->stream_id);
    }
}

static void write_head(bytes *out, const responses_reply *r, const char *type, int64_t number)
{
    bytes_json(out, "{\"type\":%s,\"sequence_number\":%lld", type, (long long)number);
    write_identity(out, r);
}

/* Begins an event with its number; the caller appends members and calls end_event. */
static bytes *begin_event(responses_reply *r, const char *type)
{
    bytes_clear(&r->line);
    write_head(&r->line, r, type, event_log_next(&r->log));
    return &r->line;
}

static void log_line(responses_reply *r, const char *type)
{
    if (r->line.failed) {
        event_log_skip(&r->log);
        return;
    }
    event_log_append(&r->log, type, r->line.data, r->line.len);
}

static void end_event(responses_reply *r, const char *type)
{
    bytes_append_char(&r->line, '}');
    log_line(r, type);
}

/* The whole event, as it also stands in the log. */
static void write_response_event(bytes *out, const responses_reply *r, const char *type, int64_t number)
{
    write_head(out, r, type, number);
    bytes_append_str(out, ",\"response\":");
    responses_reply_write(out, r);
    bytes_append_char(out, '}');
}

static void response_event(responses_reply *r, const char *type)
{
    bytes_clear(&r->line);
    write_response_event(&r->line, r, type, event_log_next(&r->log));
    log_line(r, type);
}

/* Of the event that ends the response. */
static const char *last_type(const responses_reply *r)
{
    return r->status == RESPONSE_COMPLETED ? "response.completed"
           : r->status == RESPONSE_FAILED  ? "response.failed"
                                           : "response.incomplete";
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

static int index_of(const responses_reply *r, const reply_item *item)
{
    return (int)(item - r->items);
}

static void write_place(const responses_reply *r, bytes *line, const reply_item *item)
{
    bytes_json(line, ",\"item_id\":%s,\"output_index\":%d", item->id, index_of(r, item));
    if (names_of(r, item->kind)->index) {
        bytes_json(line, ",%s:0", names_of(r, item->kind)->index);
    }
}

static void item_event(responses_reply *r, const reply_item *item, const char *type, bool with_content,
                       const char *status)
{
    bytes *line = begin_event(r, type);
    bytes_printf(line, ",\"output_index\":%d,\"item\":", index_of(r, item));
    write_item(line, r, item, with_content, status);
    end_event(r, type);
}

static void part_event(responses_reply *r, const reply_item *item, const char *type)
{
    bytes *line = begin_event(r, type);
    write_place(r, line, item);
    bytes_append_str(line, ",\"part\":");
    write_part(line, r, item);
    end_event(r, type);
}

/* The last item if it is open and of this kind. */
static reply_item *open_last(responses_reply *r, reply_kind kind)
{
    reply_item *last = r->n_items ? &r->items[r->n_items - 1] : NULL;
    return last && last->open && last->kind == kind ? last : NULL;
}

/* Adds an item behind the others, which are closed; NULL if out of memory (what it would hold is
 * then lost). */
static reply_item *open_item(responses_reply *r, reply_kind kind, const bytes *name)
{
    static const char *const PREFIXES[] = {
        [REPLY_REASONING] = "rs_", [REPLY_CONTENT] = "msg_", [REPLY_CALL] = "fc_"};
    if (!memory_grow(&r->items, &r->cap_items, (size_t)r->n_items + 1, 4, sizeof *r->items)) {
        r->has_lost = true;
        return NULL;
    }
    reply_item *item = &r->items[r->n_items++];
    *item = (reply_item){.kind = kind, .open = true};
    bytes_init(&item->name, SIZE_MAX);
    bytes_init(&item->text, SIZE_MAX);
    bytes_init(&item->logprobs, SIZE_MAX);
    hash_random_id(item->id, sizeof item->id, PREFIXES[kind]);
    if (kind == REPLY_CALL) {
        hash_random_id(item->call_id, sizeof item->call_id, "call_");
        bytes_append(&item->name, name->data, name->len);
        r->has_lost = r->has_lost || item->name.failed;
    }
    item_event(r, item, "response.output_item.added", false, "in_progress");
    if (names_of(r, kind)->part) {
        part_event(r, item, names_of(r, kind)->part_added);
    }
    return item;
}

static void close_item(responses_reply *r, const char *status)
{
    reply_item *item = r->n_items ? &r->items[r->n_items - 1] : NULL;
    if (!item || !item->open) {
        return;
    }
    const text_names *names = names_of(r, item->kind);
    item->open = false;
    bytes *line = begin_event(r, names->done);
    write_place(r, line, item);
    if (item->kind == REPLY_CALL) {
        bytes_json(line, ",\"name\":%.*s", BYTES_ARG(&item->name));
    }
    bytes_json(line, ",%s:%.*s", item->kind == REPLY_CALL ? "arguments" : "text", BYTES_ARG(&item->text));
    if (item->kind == REPLY_CONTENT) {
        write_logprobs(line, &item->logprobs);
    }
    end_event(r, names->done);
    if (names->part) {
        part_event(r, item, names->part_done);
    }
    item_event(r, item, "response.output_item.done", true, status);
}

/* logprobs: see responses_reply_delta. */
static void add_text(responses_reply *r, reply_kind kind, const bytes *text, bytes *logprobs)
{
    reply_item *item = open_last(r, kind);
    if (!item && kind != REPLY_CALL) {
        close_item(r, "completed");
        item = open_item(r, kind, NULL);
    }
    if (!item) {
        return;
    }
    bytes_append(&item->text, text->data, text->len);
    r->has_lost = r->has_lost || item->text.failed;
    const char *type = names_of(r, kind)->delta;
    bytes *line = begin_event(r, type);
    write_place(r, line, item);
    bytes_json(line, ",\"delta\":%.*s", BYTES_ARG(text));
    if (kind == REPLY_CONTENT) {
        write_logprobs(line, logprobs);
        bytes_append_str(&item->logprobs, item->logprobs.len > 0 && logprobs->len > 0 ? "," : "");
        bytes_append(&item->logprobs, logprobs->data, logprobs->len);
        r->has_lost = r->has_lost || logprobs->failed || item->logprobs.failed;
        bytes_clear(logprobs);
    }
    end_event(r, type);
}

/* ---- items of tools that this server runs ---- */

/* An event about the item, type and item_id and output_index, with a member more or "". */
static void run_event(responses_reply *r, const reply_item *item, const char *type, const char *member,
                      const char *text)
{
    bytes *line = begin_event(r, type);
    bytes_json(line, ",\"item_id\":%s,\"output_index\":%d", item->id, index_of(r, item));
    if (member) {
        bytes_json(line, ",%s:%s", member, text);
    }
    end_event(r, type);
}

static reply_item *add_run(responses_reply *r, const char *id)
{
    close_item(r, "completed");
    if (!memory_grow(&r->items, &r->cap_items, (size_t)r->n_items + 1, 4, sizeof *r->items)) {
        r->has_lost = true;
        return NULL;
    }
    reply_item *item = &r->items[r->n_items++];
    *item = (reply_item){.kind = REPLY_ITEM};
    bytes_init(&item->name, SIZE_MAX);
    bytes_init(&item->text, SIZE_MAX);
    bytes_init(&item->logprobs, SIZE_MAX);
    snprintf(item->id, sizeof item->id, "%s", id);
    return item;
}

/* The item as far as it is known: added the first time, then changed. */
static void take_run(responses_reply *r, const bytes *text)
{
    json_doc *doc = NULL;
    reply_item *item = NULL;
    bytes copy = bytes_empty(SIZE_MAX);
    bytes_append(&copy, text->data, text->len);
    if (copy.failed || json_parse(&doc, bytes_str(text), text->len, LIMIT_JSON_DEPTH, NULL) != ERR_OK) {
        r->has_lost = true;
        bytes_deinit(&copy);
        return;
    }
    const json *v = json_root(doc);
    const char *id = json_str(json_get(v, "id"), ""), *type = json_str(json_get(v, "type"), "");
    const char *status = json_str(json_get(v, "status"), "completed");
    const char *arguments = json_str(json_get(v, "arguments"), "{}");
    const bool is_call = strcmp(type, "mcp_call") == 0, is_over = strcmp(status, "in_progress") != 0;
    for (int i = r->n_items - 1; i >= 0 && !item; i--) {
        item = r->items[i].kind == REPLY_ITEM && strcmp(r->items[i].id, id) == 0 ? &r->items[i] : NULL;
    }
    const bool is_new = !item;
    item = item ? item : add_run(r, id);
    if (item) {
        bytes_deinit(&item->text);
        item->text = copy;
    } else {
        bytes_deinit(&copy);
    }
    if (item && is_new) {
        item_event(r, item, "response.output_item.added", false, status);
        if (is_call) {
            run_event(r, item, "response.mcp_call.in_progress", NULL, NULL);
            run_event(r, item, "response.mcp_call_arguments.delta", "delta", arguments);
            run_event(r, item, "response.mcp_call_arguments.done", "arguments", arguments);
        } else if (strcmp(type, "mcp_list_tools") == 0) {
            run_event(r, item, "response.mcp_list_tools.in_progress", NULL, NULL);
            run_event(r, item, "response.mcp_list_tools.completed", NULL, NULL);
        }
    }
    if (item && is_call && is_over) {
        const bool is_done = strcmp(status, "completed") == 0;
        run_event(r, item, is_done ? "response.mcp_call.completed" : "response.mcp_call.failed", NULL, NULL);
    } else if (item && is_call && !is_new) {
        bytes *line = begin_event(r, "response.mcp_call.progress");
        bytes_json(line, ",\"item_id\":%s,\"output_index\":%d,\"progress\":%g,\"message\":%s", item->id,
                   index_of(r, item), json_num(json_get(v, "progress"), 0.0),
                   json_str(json_get(v, "message"), ""));
        end_event(r, "response.mcp_call.progress");
    }
    if (item && (is_over || !is_call)) {
        item_event(r, item, "response.output_item.done", true, status);
    }
    json_free(doc);
}

void responses_reply_delta(responses_reply *r, const reply_pieces *pieces, bytes *logprobs)
{
    for (size_t i = 0; i < pieces->n && !r->log.closed; i++) {
        const reply_piece *p = &pieces->items[i];
        reply_item *call = open_last(r, REPLY_CALL);
        switch (p->kind) {
        case REPLY_REASONING:
        case REPLY_CONTENT:
            add_text(r, p->kind, &p->text, logprobs);
            break;
        case REPLY_BLANK: /* never shown */
            break;
        case REPLY_CALL:
            close_item(r, "completed");
            open_item(r, REPLY_CALL, &p->text);
            break;
        case REPLY_ARGUMENTS:
            add_text(r, REPLY_CALL, &p->text, logprobs);
            break;
        case REPLY_CALL_END:
        case REPLY_CALL_CUT:
            if (call) {
                call->was_cut = p->kind == REPLY_CALL_CUT;
                close_item(r, call->was_cut ? "incomplete" : "completed");
            }
            break;
        case REPLY_ITEM:
            take_run(r, &p->text);
            break;
        }
    }
}

static void set_error(responses_reply *r, const api_error *e)
{
    bytes_json(&r->error_json, "{\"code\":%s,\"message\":%s,\"type\":%s",
               e->code[0] ? e->code : "server_error", e->message, e->type);
    if (e->param[0]) {
        bytes_json(&r->error_json, ",\"param\":%s", e->param);
    }
    bytes_append_char(&r->error_json, '}');
}

void responses_reply_close(responses_reply *r, response_status status)
{
    const bool is_completed = status == RESPONSE_COMPLETED;
    reply_item *last = r->n_items ? &r->items[r->n_items - 1] : NULL;
    if (r->log.closed) {
        return;
    }
    responses_reply_created(r);
    if (is_completed || status == RESPONSE_INCOMPLETE) {
        responses_reply_in_progress(r);
        bool is_thought = last && last->kind == REPLY_REASONING;
        if (!last || (is_thought && is_completed)) {
            close_item(r, "completed");
            last = open_item(r, REPLY_CONTENT, NULL); /* an empty answer is still an answer */
        }
    }
    if (last && last->kind != REPLY_CALL) { /* only the last item is cut short */
        last->was_cut = !is_completed;
    }
    close_item(r, is_completed ? "completed" : "incomplete");
}

void responses_reply_finish(responses_reply *r, const response_result *result)
{
    if (r->log.closed) {
        return;
    }
    responses_reply_close(r, result->status);
    r->status = result->status;
    r->result = *result;
    r->result.error = NULL;
    r->completed_at = clock_unix_s();
    if (result->error) {
        set_error(r, result->error);
    }
    event_log_close(&r->log); /* first, so that the object shows its final state */
    response_event(r, last_type(r));
    bytes_deinit(&r->line);
}

const char *responses_reply_catch_up(bytes *out, const responses_reply *r, int64_t *next)
{
    const int64_t end = event_log_next(&r->log);
    if (r->log.closed && *next == end - 1) { /* the last event, which the log could not hold */
        *next = end;
        write_response_event(out, r, last_type(r), end - 1);
        return last_type(r);
    }
    *next = r->log.closed ? end - 1 : end;
    write_response_event(out, r, "response.snapshot", *next - 1);
    return "response.snapshot";
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
    write_number(out, "eta_ms", eta_ms);
    bytes_append_char(out, '}');
}

void responses_reply_stats(bytes *out, const responses_reply *r, const gen_timings *t, int32_t n_ctx)
{
    bytes_append_str(out, "{\"type\":\"response.stats\"");
    write_identity(out, r);
    reply_json_timings(out, t);
    bytes_printf(out, ",\"context\":{\"n_ctx\":%d,\"used\":%d}}", n_ctx,
                 t->cache_n + t->prompt_n + t->sparse_n - t->sparse_kept_n + t->predicted_n);
}
