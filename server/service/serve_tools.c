/* The rounds of an answer whose tools this server runs: the model asks, the tools run beside each other, what they
 * bring goes behind the conversation, the model goes on. One place for all dialects: they see items (REPLY_ITEM). */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "server/protocol/dialects/response_items.h"
#include "server/service/serve_state.h"

/* ---- what the model writes ---- */

/* t NULL: the model means a tool that does not exist, `name`; its item is one of the first server. */
static tool_run *add_run(answer *a, const planned_tool *t, const char *name, const char *approval_id)
{
    const tool_plan *p = a->opt.plan;
    tool_rounds *r = &a->tools;
    if (!memory_grow(&r->runs, &r->cap_runs, r->n_runs + 1, 4, sizeof *r->runs)) {
        a->has_lost = true;
        return NULL;
    }
    tool_run *run = &r->runs[r->n_runs++];
    *run = (tool_run){.runs_unasked = t && t->runs_unasked, .is_unknown = !t};
    hash_random_id(run->id, sizeof run->id, "mcp_");
    snprintf(run->approval_id, sizeof run->approval_id, "%s", approval_id);
    bytes *const texts[] = {&run->label, &run->tool, &run->name, &run->arguments};
    const char *const values[] = {(t ? t->server : p->servers[0])->config->label, t ? t->tool->name : name,
                                  t ? t->name : name, ""};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        bytes_init(texts[i], LIMIT_MCP_MESSAGE_BYTES);
        bytes_append_str(texts[i], values[i]);
        a->has_lost = a->has_lost || texts[i]->failed;
    }
    return run;
}

/* True if the piece belongs to a call that is run here. */
static bool take_piece(answer *a, const reply_piece *p)
{
    tool_rounds *r = &a->tools;
    tool_run *last = r->is_open ? &r->runs[r->n_runs - 1] : NULL;
    const planned_tool *t;
    switch (p->kind) {
    case REPLY_REASONING:
        bytes_append(&r->reasoning, p->text.data, p->text.len);
        return false;
    case REPLY_CONTENT:
        bytes_append(&r->content, p->text.data, p->text.len);
        return false;
    case REPLY_CALL:
        if (tool_plan_is_own(a->opt.plan, bytes_str(&p->text), p->text.len)) {
            r->has_own = true;
            return false;
        }
        t = tool_plan_find(a->opt.plan, bytes_str(&p->text), p->text.len);
        r->is_open = add_run(a, t, bytes_str(&p->text), "") != NULL;
        return true;
    case REPLY_ARGUMENTS:
        if (last) {
            bytes_append(&last->arguments, p->text.data, p->text.len);
            a->has_lost = a->has_lost || last->arguments.failed;
        }
        return last != NULL;
    case REPLY_CALL_END:
        a->n_calls -= last != NULL; /* those of the client are counted */
        r->is_open = false;
        return last != NULL;
    case REPLY_CALL_CUT:
        if (last) {
            r->n_runs--;
            bytes *const texts[] = {&last->label, &last->tool, &last->name, &last->arguments};
            for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                bytes_deinit(texts[i]);
            }
        }
        r->is_open = false;
        return last != NULL;
    default:
        return false;
    }
}

void serve_take_runs(answer *a)
{
    reply_pieces kept;
    if (a->tools.is_summary) {
        for (size_t i = 0; i < a->pieces.n; i++) {
            (void)take_piece(a, &a->pieces.items[i]);
        }
        reply_pieces_clear(&a->pieces);
        return;
    }
    if (!a->opt.plan) {
        return;
    }
    reply_pieces_init(&kept);
    for (size_t i = 0; i < a->pieces.n; i++) {
        const reply_piece *p = &a->pieces.items[i];
        if (!take_piece(a, p)) {
            reply_pieces_add(&kept, p->kind, bytes_str(&p->text), p->text.len);
        }
    }
    kept.failed = kept.failed || a->pieces.failed;
    a->has_lost = a->has_lost || kept.failed || a->tools.content.failed || a->tools.reasoning.failed;
    reply_pieces_deinit(&a->pieces);
    a->pieces = kept;
}

/* ---- items ---- */

/* The call as an item; result NULL: it runs. */
static void emit_call(serve *s, answer *a, const tool_run *run, const mcp_result *result)
{
    bytes item = bytes_empty(SIZE_MAX);
    const bool is_over = result && result->progress < 0.0;
    bytes_json(
        &item,
        "{\"id\":%s,\"type\":\"mcp_call\",\"status\":%s,\"approval_request_id\":%s,\"server_label\":%s,"
        "\"name\":%s,\"arguments\":%.*s",
        run->id,
        !is_over             ? "in_progress"
        : result->has_failed ? "failed"
                             : "completed",
        run->approval_id[0] ? run->approval_id : NULL, bytes_str(&run->label), bytes_str(&run->tool),
        BYTES_ARG(&run->arguments));
    if (is_over && result->has_failed) {
        bytes_json(&item, ",\"output\":null,\"error\":%.*s", BYTES_ARG(&result->text));
    } else if (is_over) {
        bytes_json(&item, ",\"output\":%.*s,\"error\":null", BYTES_ARG(&result->text));
    } else {
        bytes_append_str(&item, ",\"output\":null,\"error\":null");
    }
    if (is_over) {
        bytes_json(&item, ",\"images\":[%-s],\"duration_ms\":%lld", bytes_str(&result->images),
                   (long long)result->ms);
    } else if (result) {
        bytes_json(&item, ",\"progress\":%g,\"message\":%.*s", result->progress, BYTES_ARG(&result->text));
    }
    bytes_append_char(&item, '}');
    serve_emit_item(s, a, &item, is_over);
    bytes_deinit(&item);
}

static void emit_question(serve *s, answer *a, const tool_run *run)
{
    char id[48];
    bytes item = bytes_empty(SIZE_MAX);
    hash_random_id(id, sizeof id, "mcpr_");
    bytes_json(
        &item,
        "{\"id\":%s,\"type\":\"mcp_approval_request\",\"server_label\":%s,\"name\":%s,\"arguments\":%.*s}",
        id, bytes_str(&run->label), bytes_str(&run->tool), BYTES_ARG(&run->arguments));
    serve_emit_item(s, a, &item, true);
    bytes_deinit(&item);
}

void serve_emit_lists(serve *s, answer *a)
{
    const tool_plan *p = a->opt.plan;
    if (p && a->has_reply) {
        responses_reply_in_progress(&a->reply);
    }
    for (size_t i = 0; p && a->dialect->has_log && i < p->n_servers; i++) {
        char id[48];
        bytes item = bytes_empty(SIZE_MAX);
        const char *comma = "";
        hash_random_id(id, sizeof id, "mcpl_");
        bytes_json(&item,
                   "{\"id\":%s,\"type\":\"mcp_list_tools\",\"server_label\":%s,\"error\":null,\"tools\":[",
                   id, p->servers[i]->config->label);
        for (size_t k = 0; k < p->n_tools; k++) {
            const mcp_tool *t = p->tools[k].tool;
            if (p->tools[k].server == p->servers[i]) {
                bytes_json(
                    &item,
                    "%-s{\"name\":%s,\"description\":%s,\"annotations\":{\"title\":%s,\"readOnlyHint\":"
                    "%hhd},\"input_schema\":",
                    comma, t->name, t->description, t->title, t->is_read_only);
                json_write(&item, t->schema);
                bytes_append_char(&item, '}');
                comma = ",";
            }
        }
        bytes_append_str(&item, "]}");
        serve_emit_item(s, a, &item, true);
        bytes_deinit(&item);
    }
}

/* ---- a round ---- */

static void add_turn(answer *a, const char *format_of_head, const bytes *text)
{
    bytes *out = &a->tools.turns;
    bytes_append_str(out, out->len ? "," : "");
    bytes_append_str(out, format_of_head);
    bytes_append_json(out, bytes_str(text), text->len);
}

static bool is_object(const bytes *text)
{
    return json_is_object_text(bytes_str(text), text->len);
}

/* What the model has said and called in this round, as it goes back to it. Arguments that are no object go as none:
 * the result says what was wrong. */
static void keep_words(answer *a)
{
    tool_rounds *r = &a->tools;
    if (r->reasoning.len > 0) {
        add_turn(
            a, "{\"type\":\"reasoning\",\"content\":[{\"type\":\"reasoning_text\",\"text\":", &r->reasoning);
        bytes_append_str(&r->turns, "}]}");
    }
    if (r->content.len > 0) {
        add_turn(a, "{\"type\":\"message\",\"role\":\"assistant\",\"content\":", &r->content);
        bytes_append_char(&r->turns, '}');
    }
    for (size_t i = 0; i < r->n_runs; i++) {
        const tool_run *run = &r->runs[i];
        bytes_append_str(&r->turns, r->turns.len ? "," : "");
        bytes_json(&r->turns, "{\"type\":\"function_call\",\"call_id\":%s,\"name\":%.*s,\"arguments\":%s}",
                   run->id, BYTES_ARG(&run->name),
                   is_object(&run->arguments) ? bytes_str(&run->arguments) : "{}");
    }
    bytes_clear(&r->reasoning);
    bytes_clear(&r->content);
}

/* What a call has brought, for the model. */
static void keep_result(const serve *s, answer *a, const tool_run *run, const mcp_result *result)
{
    bytes *out = &a->tools.turns;
    const bool sees = a->server || (s->info && s->info->has_vision);
    const char *note = result->n_images > 0 && !sees ? "\n[an image is left out: this model sees none]" : "";
    bytes text = bytes_empty(SIZE_MAX);
    bytes_printf(&text, "%s%s%s", result->has_failed ? "Error: " : "",
                 result->text.len || result->n_images ? bytes_str(&result->text) : "(nothing)", note);
    bytes_json(out,
               ",{\"type\":\"function_call_output\",\"call_id\":%s,\"output\":[{\"type\":\"input_text\","
               "\"text\":%.*s}",
               run->id, BYTES_ARG(&text));
    out->failed = out->failed || text.failed;
    bytes_deinit(&text);
    /* each image stands in quotes, and base64 holds none (mcp_result.c) */
    const char *p = bytes_str(&result->images);
    for (size_t i = 0; sees && i < result->n_images; i++) {
        const char *end = strchr(p + 1, '"');
        bytes_append_str(out, ",{\"type\":\"input_image\",\"image_url\":");
        bytes_append(out, p, (size_t)(end - p) + 1);
        bytes_append_char(out, '}');
        p = end + 2; /* behind the comma */
    }
    bytes_append_str(out, "]}");
}

static void end_round(serve *s, answer *a);

static void take_result(serve *s, answer *a, tool_run *run, const mcp_result *result)
{
    run->is_done = true;
    a->tools.n_waiting--;
    emit_call(s, a, run, result);
    keep_result(s, a, run, result);
    log_info("srv", "req=%s %s.%s %s in %.0f ms", a->request_id, bytes_str(&run->label),
             bytes_str(&run->tool), result->has_failed ? "failed" : "done", result->ms);
}

/* It does not run, for this reason. */
static void refuse_run(serve *s, answer *a, tool_run *run, const char *why)
{
    mcp_result *r = mcp_result_create(a->id, 0);
    if (r) {
        mcp_result_fail(r, "%s", why);
        take_result(s, a, run, r);
        mcp_result_free(r);
    } else {
        run->is_done = true;
        a->tools.n_waiting--;
        a->has_lost = true;
    }
}

/* Tells the model what there is in place of what it has called. */
static void refuse_unknown(serve *s, answer *a, tool_run *run)
{
    bytes why = bytes_empty(LIMIT_MCP_MESSAGE_BYTES);
    bytes_printf(&why, "there is no tool %s; there are: ", bytes_str(&run->name));
    tool_plan_write_names(a->opt.plan, &why);
    refuse_run(s, a, run, bytes_str(&why));
    bytes_deinit(&why);
}

/* Runs it, asks for it, or says why not. */
static void start_run(serve *s, answer *a, size_t place)
{
    tool_run *run = &a->tools.runs[place];
    err_detail d = {0};
    if (run->arguments.len == 0) {
        bytes_append_str(&run->arguments, "{}");
    }
    if (!run->runs_unasked && !run->is_unknown && a->dialect->has_log) {
        a->tools.asks = true;
        run->is_done = true;
        a->tools.n_waiting--;
        emit_question(s, a, run);
        return;
    }
    emit_call(s, a, run, NULL);
    run->begun_ms = clock_ms();
    const bool is_last = a->opt.max_tool_calls > 0 && a->tools.n_ran >= a->opt.max_tool_calls;
    if (a->has_lost) { /* it would be another call */
        refuse_run(s, a, run, "there is no memory to run it");
    } else if (a->tools.n_rounds > s->opt->tool_rounds || is_last) {
        refuse_run(s, a, run, "no more calls of tools are allowed in this answer; answer with what is known");
    } else if (run->is_unknown) {
        refuse_unknown(s, a, run);
    } else if (place >= (size_t)LIMIT_MCP_CALLS_A_ROUND) {
        refuse_run(s, a, run, "too many calls at once");
    } else if (!run->runs_unasked) {
        refuse_run(s, a, run, "this tool needs the approval of a person, and here nobody can be asked");
    } else if (!is_object(&run->arguments)) {
        refuse_run(s, a, run, "the arguments are not a JSON object");
    } else {
        const mcp_order order = {.owner = a->id,
                                 .place = (uint32_t)place,
                                 .what = MCP_CALL_TOOL,
                                 .server = bytes_str(&run->label),
                                 .name = bytes_str(&run->tool),
                                 .arguments = bytes_str(&run->arguments)};
        a->tools.n_ran++;
        if (mcp_call(s->mcp, &order, &d) != ERR_OK) {
            refuse_run(s, a, run, d.text);
        }
    }
}

static void start_round(serve *s, answer *a)
{
    tool_rounds *r = &a->tools;
    r->n_rounds++;
    r->stage = TOOLS_CALLING;
    r->n_waiting = r->n_runs;
    a->state = ANSWER_RUNNING;
    keep_words(a);
    for (size_t i = 0; i < r->n_runs; i++) {
        start_run(s, a, i);
    }
    if (r->n_waiting == 0) {
        end_round(s, a);
    }
}

/* What stands in the conversation's place is the next item; then the model answers. */
static void take_summary(serve *s, answer *a)
{
    tool_rounds *r = &a->tools;
    bytes item = bytes_empty(SIZE_MAX);
    response_items_compaction(&item, bytes_str(&r->content), r->content.len);
    bytes_append_str(&r->turns, r->turns.len ? "," : "");
    bytes_append(&r->turns, item.data, item.len);
    r->turns.failed = r->turns.failed || item.failed;
    serve_emit_item(s, a, &item, true);
    bytes_deinit(&item);
    bytes_clear(&r->content);
    bytes_clear(&r->reasoning);
    r->is_summary = false;
    r->has_summary = true;
    r->summary_tokens = a->n_tokens - r->summary_tokens;
    a->state = ANSWER_RUNNING;
    end_round(s, a);
}

bool serve_begin_round(serve *s, answer *a)
{
    tool_rounds *r = &a->tools;
    const bool has_ended = a->finish == GEN_FINISH_STOP || a->finish == GEN_FINISH_LENGTH;
    if (r->is_summary && has_ended && !a->cancelled && !a->has_lost && a->timeout == ANSWER_IN_TIME) {
        r->prompt_tokens += a->info.n_prompt_tokens;
        r->cached_tokens += a->timings.cache_n;
        take_summary(s, a);
        return true;
    }
    if (!a->opt.plan || r->n_runs == 0 || a->finish != GEN_FINISH_STOP || a->cancelled || a->has_lost ||
        a->timeout != ANSWER_IN_TIME || r->n_rounds > s->opt->tool_rounds) {
        return false;
    }
    r->prompt_tokens += a->info.n_prompt_tokens;
    r->cached_tokens += a->timings.cache_n;
    start_round(s, a);
    return true;
}

void serve_run_allowed(serve *s, answer *a)
{
    const tool_plan *p = a->opt.plan;
    for (size_t i = 0; i < p->n_calls; i++) {
        tool_run *run = add_run(a, p->calls[i].tool, "", p->calls[i].approval_id);
        if (run) {
            run->runs_unasked = true;
            bytes_append_str(&run->arguments, p->calls[i].arguments);
            a->has_lost = a->has_lost || run->arguments.failed;
        }
    }
    start_round(s, a);
}

/* The answer ends between two rounds. */
static void end_between(serve *s, answer *a, gen_finish finish)
{
    tool_rounds *r = &a->tools;
    mcp_cancel(s->mcp, a->id);
    for (size_t i = 0; i < r->n_runs; i++) {
        if (!r->runs[i].is_done) {
            refuse_run(s, a, &r->runs[i], "stopped");
        }
    }
    r->stage = TOOLS_IDLE;
    a->state = ANSWER_FINISHED;
    a->finished_ms = clock_ms();
    a->finish = finish;
    a->info.n_prompt_tokens = 0; /* counted with the rounds before */
    a->timings.cache_n = 0;
    serve_end_answer(s, a);
}

static void end_round(serve *s, answer *a)
{
    tool_rounds *r = &a->tools;
    const bool ends = r->asks || r->has_own;
    answer_check_lost(a);
    if (a->finish == GEN_FINISH_ERROR || r->turns.failed) {
        a->error = ERR_NOMEM;
        end_between(s, a, GEN_FINISH_ERROR);
        return;
    }
    if (ends) { /* a person, or the client, has the next word */
        end_between(s, a, GEN_FINISH_STOP);
        return;
    }
    answer_clear_runs(a);
    r->stage = TOOLS_PREPARING;
    const err_code err = serve_prepare_answer(s, a);
    if (err != ERR_OK) {
        a->error = err;
        end_between(s, a, GEN_FINISH_ERROR);
    }
}

void serve_on_result(serve *s, answer *a, const mcp_result *result)
{
    tool_rounds *r = &a->tools;
    if (r->stage != TOOLS_CALLING || result->place >= r->n_runs || r->runs[result->place].is_done) {
        return;
    }
    tool_run *run = &r->runs[result->place];
    if (result->progress >= 0.0) {
        emit_call(s, a, run, result);
        return;
    }
    take_result(s, a, run, result);
    if (r->n_waiting == 0) {
        end_round(s, a);
    }
}

void serve_end_rounds(serve *s, answer *a, err_code code, const api_error *e)
{
    const bool is_cancelled = code == ERR_CANCELLED && a->timeout == ANSWER_IN_TIME;
    a->error = code;
    if (e) {
        snprintf(a->error_text, sizeof a->error_text, "%.255s", e->message);
        snprintf(a->error_name, sizeof a->error_name, "%s", e->code);
    }
    end_between(s, a, is_cancelled ? GEN_FINISH_CANCELLED : GEN_FINISH_ERROR);
}

void serve_stop_rounds(serve *s, answer *a)
{
    a->tools.is_stopped = true;
    if (a->tools.stage == TOOLS_PREPARING) {
        prep_ticket_cancel(a->ticket); /* LOOP_REFUSED follows */
    }
    serve_schedule(s, 1); /* the tick ends it: whoever stops it may still look at it */
}

/* ---- the servers ---- */

/* On the thread of the MCP servers. */
void serve_on_mcp_result(void *ctx, mcp_result *result)
{
    loop_message *m = serve_new_message(ctx, LOOP_RESULT, result->owner, result->progress < 0.0);
    if (!m) {
        mcp_result_free(result);
        return;
    }
    m->result = result;
    serve_post(ctx, m);
}

void serve_on_mcp(serve *s, conn *c)
{
    bytes body = bytes_empty(SIZE_MAX);
    if (c->method == NET_POST) {
        if (!s->mcp || !mcp_retry(s->mcp, c->param)) {
            serve_send_fault(
                s, c, 404, "unknown_server", "server_label",
                "there is no MCP server of this name in the configuration (--mcp-config, --tools)");
            return;
        }
        bytes_json(&body, "{\"server_label\":%s,\"object\":\"mcp.retry\"}", c->param);
    } else {
        mcp_catalog *servers = mcp_take_catalog(s->mcp);
        mcp_catalog_write(&body, servers);
        mcp_catalog_release(servers);
    }
    serve_send_body(s, c, &body);
}

void serve_on_mcp_order(serve *s, conn *c, const bytes *body)
{
    err_detail d = {0};
    json_doc *doc = NULL;
    const bool is_resource = c->route->id == ROUTE_MCP_RESOURCE;
    const char *member = is_resource ? "uri" : "name";
    const bool is_json = json_parse(&doc, bytes_str(body), body->len, LIMIT_JSON_DEPTH, &d) == ERR_OK;
    const json *root = is_json ? json_root(doc) : NULL;
    const char *name = json_str(json_get(root, member), NULL);
    const json *given = json_get(root, "arguments");
    bytes arguments = bytes_empty(LIMIT_MCP_MESSAGE_BYTES);
    mcp_catalog *servers = mcp_take_catalog(s->mcp);
    const mcp_server_view *v = mcp_catalog_find(servers, c->param);
    if (json_is(given, JSON_OBJECT)) {
        json_write(&arguments, given);
    }
    if (!is_json) {
        serve_send_fault(s, c, 400, "invalid_json", NULL, d.text);
    } else if (!name || !name[0] || (json_typeof(given) != JSON_NULL && !json_is(given, JSON_OBJECT))) {
        serve_send_fault(s, c, 400, "invalid_type", name && name[0] ? "arguments" : member,
                         is_resource ? "uri must be the address of a resource of this server"
                                     : "name must be that of a prompt of this server, arguments an object");
    } else if (!v) {
        serve_send_fault(s, c, 404, "unknown_server", "server_label",
                         "there is no MCP server of this name in the configuration (--mcp-config, --tools)");
    } else if (v->state != MCP_READY) {
        serve_send_fault(s, c, 502, "mcp_server_unavailable", "server_label",
                         v->why[0] ? v->why : "it is still being connected; try again");
    } else {
        const mcp_order order = {.owner = ++s->next_answer,
                                 .what = is_resource ? MCP_READ_RESOURCE : MCP_GET_PROMPT,
                                 .server = c->param,
                                 .name = name,
                                 .arguments = arguments.len ? bytes_str(&arguments) : NULL};
        c->mcp_ticket = order.owner;
        if (mcp_call(s->mcp, &order, &d) != ERR_OK) {
            c->mcp_ticket = 0;
            serve_send_fault(s, c, 429, "queue_full", NULL, d.text);
        }
    }
    mcp_catalog_release(servers);
    bytes_deinit(&arguments);
    json_free(doc);
}

void serve_on_mcp_reply(serve *s, uint64_t ticket, const mcp_result *result)
{
    conn *c = NULL;
    for (size_t i = 0; i < s->conns.cap && !c; i++) {
        conn *one = id_table_at(&s->conns, i);
        c = one && one->mcp_ticket == ticket ? one : NULL;
    }
    if (!c || result->progress >= 0.0) {
        return; /* who asked is gone; or it is not the end */
    }
    c->mcp_ticket = 0;
    if (result->has_failed) {
        serve_send_fault(s, c, 502, "mcp_error", NULL, bytes_str(&result->text));
        return;
    }
    bytes body = bytes_empty(SIZE_MAX);
    bytes_json(&body, "{\"object\":%s,\"server_label\":%s,\"result\":",
               c->route->id == ROUTE_MCP_RESOURCE ? "mcp.resource" : "mcp.prompt", c->param);
    bytes_append(&body, result->whole.data, result->whole.len);
    bytes_append_char(&body, '}');
    serve_send_body(s, c, &body);
}
