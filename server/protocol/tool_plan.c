#include "server/protocol/tool_plan.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"

enum { PLAN_BYTES = 8 << 20, PATH_BYTES = ERR_PARAM_MAX, NAMES_SHOWN = 32 };

tool_plan *tool_plan_create(mcp_catalog *catalog)
{
    tool_plan *p = calloc(1, sizeof *p);
    if (p) {
        p->catalog = catalog;
        p->arena = arena_create(PLAN_BYTES);
    } else {
        mcp_catalog_release(catalog);
    }
    if (p && !p->arena) {
        tool_plan_destroy(p);
        p = NULL;
    }
    return p;
}

void tool_plan_destroy(tool_plan *p)
{
    if (p) {
        mcp_catalog_release(p->catalog);
        arena_destroy(p->arena);
        free(p->tools);
        free(p->own);
        free(p->calls);
        free(p);
    }
}

/* ---- what a request says of a server ---- */

static bool has_name(const json *list, const char *name)
{
    for (const json *v = json_child(list); v; v = json_next(v)) {
        if (strcmp(json_str(v, ""), name) == 0) {
            return true;
        }
    }
    return false;
}

/* A filter: a list of names, or {"tool_names": [..], "read_only": true}. */
static bool passes(const json *filter, const mcp_tool *t)
{
    const json *names = json_is(filter, JSON_ARRAY) ? filter : json_get(filter, "tool_names");
    const json *read_only = json_get(filter, "read_only");
    return (json_typeof(names) == JSON_NULL || has_name(names, t->name)) &&
           (json_typeof(read_only) == JSON_NULL || json_is_true(read_only) == t->is_read_only);
}

static bool runs_unasked(const json *wish, const mcp_tool *t)
{
    const char *word = json_str(wish, NULL);
    if (word) {
        return strcmp(word, "never") == 0;
    }
    if (json_is(json_get(wish, "never"), JSON_OBJECT) && passes(json_get(wish, "never"), t)) {
        return true;
    }
    if (json_is(json_get(wish, "always"), JSON_OBJECT) && passes(json_get(wish, "always"), t)) {
        return false;
    }
    return t->runs_unasked;
}

static void check_names(first_error *e, const json *names, const mcp_server_view *v, const char *path)
{
    for (const json *n = json_child(names); n && v->offer; n = json_next(n)) {
        if (!mcp_offer_find(v->offer, json_str(n, ""))) {
            request_fail(e, ERR_INVALID, path, "invalid_value", "%s: the server %s has no tool %.100s", path,
                         v->config->label, json_str(n, "of this kind"));
        }
    }
}

static void check_entry(first_error *e, const json *entry, const mcp_server_view *v, const char *path)
{
    char inner[PATH_BYTES];
    const json *wish = json_get(entry, "require_approval"), *allowed = json_get(entry, "allowed_tools");
    const char *word = json_str(wish, NULL), *url = json_str(json_get(entry, "server_url"), NULL);
    request_path(inner, "%s.require_approval", path);
    if ((word && strcmp(word, "never") != 0 && strcmp(word, "always") != 0) ||
        (!word && json_typeof(wish) != JSON_NULL && !json_is(wish, JSON_OBJECT))) {
        request_fail(e, ERR_INVALID, inner, "invalid_value",
                     "%s must be \"always\", \"never\" or an object with filters of these names", inner);
    }
    request_path(inner, "%s.allowed_tools", path);
    const json *names = json_is(allowed, JSON_ARRAY) ? allowed : json_get(allowed, "tool_names");
    if (json_typeof(allowed) != JSON_NULL && !json_is(allowed, JSON_ARRAY) &&
        !json_is(allowed, JSON_OBJECT)) {
        request_fail(e, ERR_INVALID, inner, "invalid_type", "%s must be a list of names or a filter", inner);
    }
    check_names(e, names, v, inner);
    request_path(inner, "%s.server_url", path);
    if (url && url[0] && (!v->config->url || strcmp(url, v->config->url) != 0)) {
        request_fail(
            e, ERR_INVALID, inner, "server_url_not_allowed",
            "%s: this server asks only the MCP servers of its configuration; leave server_url out and "
            "name one of them in server_label",
            inner);
    }
    static const char *const OTHERS[] = {"connector_id", "authorization", "headers"};
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++) {
        if (json_typeof(json_get(entry, OTHERS[i])) != JSON_NULL) {
            request_path(inner, "%s.%s", path, OTHERS[i]);
            request_fail(e, ERR_UNSUPPORTED, inner, "not_supported",
                         "%s: how a server is reached stands in this server's configuration alone", inner);
        }
    }
}

/* ---- names ---- */

void tool_plan_add_own(tool_plan *p, first_error *e, const char *name)
{
    char *copy = arena_strdup(p->arena, name, strlen(name));
    if (!copy || !memory_grow(&p->own, &p->cap_own, p->n_own + 1, 8, sizeof *p->own)) {
        request_no_memory(e);
        return;
    }
    p->own[p->n_own++] = copy;
}

bool tool_plan_is_own(const tool_plan *p, const char *name, size_t len)
{
    for (size_t i = 0; i < p->n_own; i++) {
        if (strlen(p->own[i]) == len && memcmp(p->own[i], name, len) == 0) {
            return true;
        }
    }
    return false;
}

void tool_plan_write_names(const tool_plan *p, bytes *out)
{
    const size_t n = p->n_tools + p->n_own;
    for (size_t i = 0; i < n && i < NAMES_SHOWN; i++) {
        bytes_printf(out, "%s%s", i ? ", " : "", i < p->n_tools ? p->tools[i].name : p->own[i - p->n_tools]);
    }
    bytes_append_str(out, n > NAMES_SHOWN ? ", ..." : "");
}

const planned_tool *tool_plan_find(const tool_plan *p, const char *name, size_t len)
{
    for (size_t i = 0; p && i < p->n_tools; i++) {
        if (strlen(p->tools[i].name) == len && memcmp(p->tools[i].name, name, len) == 0) {
            return &p->tools[i];
        }
    }
    return NULL;
}

const char *tool_plan_name(const tool_plan *p, const char *label, const char *tool)
{
    for (size_t i = 0; p && i < p->n_tools; i++) {
        if (strcmp(p->tools[i].tool->name, tool) == 0 &&
            strcmp(p->tools[i].server->config->label, label) == 0) {
            return p->tools[i].name;
        }
    }
    return NULL;
}

/* Whether another tool of the same servers has this name, so that alone it would say too little. */
static bool is_common(const tool_plan *p, const mcp_tool *t)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_servers; i++) {
        const mcp_offer *o = p->servers[i]->offer;
        for (size_t k = 0; k < o->n_tools; k++) {
            n += strcmp(o->tools[k].clean, t->clean) == 0;
        }
    }
    return n > 1;
}

static const char *name_tool(tool_plan *p, const mcp_server_view *v, const mcp_tool *t,
                             bool (*is_taken)(void *ctx, const char *name), void *ctx)
{
    char name[MCP_CLEAN_NAME_MAX + MCP_LABEL_MAX + 16];
    snprintf(name, sizeof name, "%s", t->clean);
    for (int i = 0;; i++) { /* there are more numbers than names that are taken */
        if ((i > 0 || !is_common(p, t)) && !is_taken(ctx, name) && !tool_plan_find(p, name, strlen(name))) {
            return arena_strdup(p->arena, name, strlen(name));
        }
        snprintf(name, sizeof name, i ? "%.12s__%.40s_%d" : "%.12s__%.48s", v->config->label, t->clean,
                 i + 1);
        for (char *c = name; *c; c++) {
            *c = *c == '.' ? '_' : *c;
        }
    }
}

void tool_plan_add(tool_plan *p, first_error *e, const json *entry, const char *path,
                   bool (*is_taken)(void *ctx, const char *name), void *ctx)
{
    char inner[PATH_BYTES];
    const char *label = json_str(json_get(entry, "server_label"), "");
    const mcp_server_view *v = mcp_catalog_find(p->catalog, label);
    request_path(inner, "%s.server_label", path);
    if (!v) {
        request_fail(
            e, ERR_INVALID, inner, "unknown_server",
            "%s: there is no MCP server \"%.80s\" in this server's configuration (--mcp-config, --tools)",
            inner, label);
    } else {
        check_entry(e, entry, v, path);
        if (v->state != MCP_READY) {
            request_fail(e, v->state == MCP_CONNECTING ? ERR_BUSY : ERR_UPSTREAM, inner,
                         "mcp_server_unavailable", "the MCP server %s cannot be used now: %s", label,
                         v->why[0] ? v->why : "it is still being connected; try again");
        }
    }
    if (e->code != ERR_OK) {
        return;
    }
    bool is_new = true;
    for (size_t i = 0; i < p->n_servers; i++) {
        is_new = is_new && p->servers[i] != v;
    }
    if (!is_new) {
        request_fail(e, ERR_INVALID, inner, "invalid_value", "%s: the server %s is named twice", inner,
                     label);
        return;
    }
    assert(p->n_servers < MCP_SERVERS); /* there are no more */
    p->servers[p->n_servers++] = v;
    for (size_t i = 0; i < v->offer->n_tools && e->code == ERR_OK; i++) {
        const mcp_tool *t = &v->offer->tools[i];
        if (json_typeof(json_get(entry, "allowed_tools")) != JSON_NULL &&
            !passes(json_get(entry, "allowed_tools"), t)) {
            continue;
        }
        const char *name = name_tool(p, v, t, is_taken, ctx);
        if (!name || !memory_grow(&p->tools, &p->cap_tools, p->n_tools + 1, 32, sizeof *p->tools)) {
            request_no_memory(e);
            return;
        }
        p->tools[p->n_tools++] = (planned_tool){
            .name = name,
            .server = v,
            .tool = t,
            .runs_unasked = runs_unasked(json_get(entry, "require_approval"), t),
            .asks_once = t->asks_once && json_typeof(json_get(entry, "require_approval")) == JSON_NULL};
    }
}

void tool_plan_trust(tool_plan *p, const char *label, const char *tool)
{
    for (size_t i = 0; p && i < p->n_tools; i++) {
        planned_tool *t = &p->tools[i];
        t->runs_unasked = t->runs_unasked || (t->asks_once && strcmp(t->tool->name, tool) == 0 &&
                                              strcmp(t->server->config->label, label) == 0);
    }
}

void tool_plan_approve(tool_plan *p, first_error *e, const json *asked, const char *path)
{
    const char *label = json_str(json_get(asked, "server_label"), ""),
               *name = json_str(json_get(asked, "name"), "");
    const char *planned = tool_plan_name(p, label, name);
    if (!planned) {
        request_fail(
            e, ERR_INVALID, path, "invalid_value",
            "%s: the call is one of the tool %.80s of the server %.80s, which is not among the tools of this "
            "request",
            path, name, label);
        return;
    }
    if (p->n_calls == (size_t)LIMIT_MCP_CALLS_A_ROUND) {
        request_fail(e, ERR_LIMIT, path, "too_many_calls", "%s: a round has at most %d calls of tools", path,
                     LIMIT_MCP_CALLS_A_ROUND);
        return;
    }
    planned_call *calls = realloc(p->calls, (p->n_calls + 1) * sizeof *calls);
    const char *id = json_str(json_get(asked, "id"), ""),
               *arguments = json_str(json_get(asked, "arguments"), "{}");
    const char *kept_id = arena_strdup(p->arena, id, strlen(id));
    const char *kept = arena_strdup(p->arena, arguments, strlen(arguments));
    p->calls = calls ? calls : p->calls;
    if (!calls || !kept_id || !kept) {
        request_no_memory(e);
        return;
    }
    p->calls[p->n_calls++] = (planned_call){
        .approval_id = kept_id, .arguments = kept, .tool = tool_plan_find(p, planned, strlen(planned))};
}
