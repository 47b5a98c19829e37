#include "server/mcp/mcp_catalog.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "base/utf8.h"

enum { OFFER_BYTES = 32 << 20, NAME_BYTES = 128, TITLE_BYTES = 200 };

/* ---- texts of strangers ---- */

/* A character that is not shown: of control, of direction, of no width, or of the tag block, which spells words that nobody
 * sees. */
static bool is_hidden(uint32_t c, bool has_lines)
{
    const bool is_control = c < 0x20 || (c >= 0x7f && c <= 0x9f);
    const bool is_mark = (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
                         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
    const bool is_tag = c >= 0xe0000 && c <= 0xe007f;
    return is_control ? !has_lines || (c != '\n' && c != '\t') : is_mark || is_tag;
}

void mcp_clean_text(bytes *out, const char *text, size_t most, bool has_lines)
{
    const size_t begin = out->len;
    for (size_t left = strlen(text), n; left > 0 && !out->failed; text += n, left -= n) {
        uint32_t c;
        char shown[4];
        n = utf8_decode(text, left, &c); /* U+FFFD for what is no text: names of files may be any bytes */
        const size_t n_shown = is_hidden(c, has_lines) ? 0 : utf8_encode(shown, c);
        if (out->len - begin + n_shown > most) {
            bytes_append_str(out, "...");
            return;
        }
        bytes_append(out, shown, n_shown);
    }
}

/* NULL without memory. */
static const char *cleaned(mcp_offer *o, const char *text, size_t most, bool has_lines)
{
    bytes b = bytes_empty(most + 8);
    mcp_clean_text(&b, text, most, has_lines);
    const char *copy = b.failed ? NULL : arena_strdup(o->arena, bytes_str(&b), b.len);
    bytes_deinit(&b);
    return copy;
}

/* A name that every model may write: other characters become _; NULL without memory. */
static const char *clean_name(mcp_offer *o, const char *name)
{
    char out[MCP_CLEAN_NAME_MAX + 1];
    size_t n = 0;
    for (const char *p = name; *p && n < MCP_CLEAN_NAME_MAX; p++) {
        const bool is_plain = isalnum((unsigned char)*p) || *p == '_' || *p == '-';
        if (is_plain || n == 0 || out[n - 1] != '_') {
            out[n++] = is_plain ? *p : '_';
        }
    }
    out[n] = '\0';
    return arena_strdup(o->arena, out, n);
}

/* ---- tools ---- */

static bool is_token(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (!isalnum((unsigned char)*p) && !strchr("!#$%&'*+-.^_`|~", *p)) {
            return false;
        }
    }
    return text[0] != '\0' && strlen(text) <= NAME_BYTES;
}

/* The parameters that go into headers; false if one of them breaks the rules. */
static bool read_headers(mcp_offer *o, mcp_tool *t)
{
    const json *properties = json_get(t->schema, "properties");
    t->headers = arena_calloc(o->arena, json_len(properties) + 1, sizeof *t->headers);
    const json *first = json_is(properties, JSON_OBJECT) ? json_child(properties) : NULL;
    if (!t->headers) {
        return false;
    }
    for (const json *v = first; v; v = json_next(v)) {
        const json *header = json_get(v, "x-mcp-header");
        const char *name = json_str(header, ""), *type = json_str(json_get(v, "type"), "");
        if (!header) {
            continue;
        }
        bool ok = is_token(name) && (strcmp(type, "string") == 0 || strcmp(type, "integer") == 0 ||
                                     strcmp(type, "boolean") == 0);
        for (size_t i = 0; i < t->n_headers; i++) {
            ok = ok && strcasecmp(t->headers[i].header, name) != 0;
        }
        if (!ok) {
            return false;
        }
        t->headers[t->n_headers++] = (mcp_header_param){.param = json_key(v), .header = name};
    }
    return true;
}

/* room: LIMIT_MCP_SCHEMA_BYTES and one. */
static bool fits(const json *schema, char *room)
{
    bytes text = {.data = room, .cap = LIMIT_MCP_SCHEMA_BYTES, .max = LIMIT_MCP_SCHEMA_BYTES};
    json_write(&text, schema);
    return !text.failed;
}

/* Whether it ends above what mcp_prune leaves, so that nothing was cut from it. */
static bool is_shallow(const json *v, int levels)
{
    for (const json *one = json_child(v); one; one = json_next(one)) {
        if (levels <= 0 || !is_shallow(one, levels - 1)) {
            return false;
        }
    }
    return true;
}

static const json *empty_schema(mcp_offer *o)
{
    static const char TEXT[] = "{\"type\":\"object\",\"properties\":{}}";
    if (!o->docs[2] && json_parse(&o->docs[2], TEXT, sizeof TEXT - 1, 8, NULL) != ERR_OK) {
        return NULL;
    }
    return json_root(o->docs[2]);
}

static bool read_tool(mcp_offer *o, mcp_tool *t, const json *v, const mcp_server_config *config, char *room)
{
    const char *name = json_str(json_get(v, "name"), "");
    const json *notes = json_get(v, "annotations"), *schema = json_get(v, "inputSchema");
    /* what can only be run as a task is of no use here */
    const char *task = json_str(json_get(json_get(v, "execution"), "taskSupport"), "");
    if (!name[0] || strlen(name) > NAME_BYTES || strcmp(task, "required") == 0 ||
        mcp_words_have(&config->hidden, name) || mcp_offer_find(o, name)) {
        return false;
    }
    *t = (mcp_tool){.name = name, .schema = schema};
    if (json_typeof(schema) == JSON_NULL) {
        t->schema = empty_schema(o);
    }
    if (!json_is(t->schema, JSON_OBJECT) || !is_shallow(t->schema, LIMIT_JSON_DEPTH + 2) ||
        !fits(t->schema, room) || (config->kind == MCP_HTTP && !read_headers(o, t))) {
        return false;
    }
    const char *title = json_str(json_get(v, "title"), json_str(json_get(notes, "title"), name));
    t->clean = clean_name(o, name);
    t->title = cleaned(o, title, TITLE_BYTES, false);
    t->description = cleaned(o, json_str(json_get(v, "description"), ""), LIMIT_MCP_TEXT_BYTES, true);
    t->is_read_only = json_is_true(json_get(notes, "readOnlyHint"));
    t->runs_unasked = config->consent == MCP_NEVER_ASK || mcp_words_have(&config->always, name) ||
                      (config->consent == MCP_ASK_TO_WRITE && t->is_read_only);
    t->asks_once = config->consent == MCP_ASK_ONCE && !t->runs_unasked;
    return t->clean && t->title && t->description;
}

/* What it holds into *list, NULL for nothing and for what is no list; false without memory. */
static bool parse_list(const json **list, json_doc **doc, const bytes *text)
{
    const err_code err =
        text->len ? json_parse(doc, bytes_str(text), text->len, LIMIT_JSON_DEPTH + 8, NULL) : ERR_OK;
    *doc = err == ERR_OK ? *doc : NULL;
    *list = *doc ? json_root(*doc) : NULL;
    return err != ERR_NOMEM && !text->failed;
}

mcp_offer *mcp_offer_create(const mcp_server_config *config, const bytes *tools, const bytes *resources,
                            const bytes *prompts)
{
    mcp_offer *o = calloc(1, sizeof *o);
    if (!o || !(o->arena = arena_create(OFFER_BYTES))) {
        free(o);
        return NULL;
    }
    atomic_init(&o->refs, 1);
    const json *list = NULL, *both = NULL;
    bytes rest = bytes_empty(2 * LIMIT_MCP_MESSAGE_BYTES + 8);
    bytes_printf(&rest, "[%s,%s]", resources && resources->len ? bytes_str(resources) : "[]",
                 prompts && prompts->len ? bytes_str(prompts) : "[]");
    const bool is_read = parse_list(&list, &o->docs[0], tools) && parse_list(&both, &o->docs[1], &rest);
    bytes_deinit(&rest);
    o->resources = json_child(both);
    o->prompts = o->resources ? json_next(o->resources) : NULL;
    o->tools = arena_calloc(o->arena, json_len(list) + 1, sizeof *o->tools);
    char *room = malloc(LIMIT_MCP_SCHEMA_BYTES + 1);
    if (!is_read || !o->tools || !room) {
        free(room);
        mcp_offer_release(o);
        return NULL;
    }
    for (const json *v = json_child(list); v; v = json_next(v)) {
        const bool is_hidden = mcp_words_have(&config->hidden, json_str(json_get(v, "name"), ""));
        const bool ok = o->n_tools < LIMIT_MCP_TOOLS && read_tool(o, &o->tools[o->n_tools], v, config, room);
        o->n_tools += ok;
        o->left_out += !ok && !is_hidden;
    }
    free(room);
    return o;
}

mcp_offer *mcp_offer_take(mcp_offer *o)
{
    if (o) {
        atomic_fetch_add(&o->refs, 1);
    }
    return o;
}

void mcp_offer_release(mcp_offer *o)
{
    if (o && atomic_fetch_sub(&o->refs, 1) == 1) {
        for (size_t i = 0; i < ARRAY_LEN(o->docs); i++) {
            json_free(o->docs[i]);
        }
        arena_destroy(o->arena);
        free(o);
    }
}

const mcp_tool *mcp_offer_find(const mcp_offer *o, const char *name)
{
    for (size_t i = 0; o && i < o->n_tools; i++) {
        if (strcmp(o->tools[i].name, name) == 0) {
            return &o->tools[i];
        }
    }
    return NULL;
}

/* ---- all servers ---- */

mcp_catalog *mcp_catalog_create(size_t n)
{
    mcp_catalog *c = calloc(1, sizeof *c + n * sizeof *c->servers);
    if (c) {
        atomic_init(&c->refs, 1);
        c->n = n;
    }
    return c;
}

mcp_catalog *mcp_catalog_take(mcp_catalog *c)
{
    if (c) {
        atomic_fetch_add(&c->refs, 1);
    }
    return c;
}

void mcp_catalog_release(mcp_catalog *c)
{
    if (c && atomic_fetch_sub(&c->refs, 1) == 1) {
        for (size_t i = 0; i < c->n; i++) {
            mcp_offer_release(c->servers[i].offer);
        }
        free(c);
    }
}

void mcp_prune(bytes *out, const char *text, size_t len, size_t depth)
{
    size_t level = 0, from = 0;
    bool is_text = false;
    for (size_t i = 0; i < len; i++) {
        const char c = text[i];
        if (is_text) {
            i += c == '\\';
            is_text = c != '"';
        } else if (c == '"') {
            is_text = true;
        } else if (c == '{' || c == '[') {
            if (level++ == depth) {
                bytes_append(out, text + from, i - from);
                bytes_append_str(out, "null");
            }
        } else if ((c == '}' || c == ']') && level > 0 && --level == depth) {
            from = i + 1;
        }
    }
    if (level <= depth) {
        bytes_append(out, text + from, len - from);
    }
}

const mcp_server_view *mcp_catalog_find(const mcp_catalog *c, const char *label)
{
    for (size_t i = 0; c && i < c->n; i++) {
        if (strcmp(c->servers[i].config->label, label) == 0) {
            return &c->servers[i];
        }
    }
    return NULL;
}

static void write_tools(bytes *out, const mcp_offer *o)
{
    for (size_t i = 0; o && i < o->n_tools; i++) {
        const mcp_tool *t = &o->tools[i];
        bytes_json(out,
                   "%-s{\"name\":%s,\"title\":%s,\"description\":%s,\"read_only\":%hhd,\"approval\":%s,"
                   "\"input_schema\":",
                   i ? "," : "", t->name, t->title, t->description, t->is_read_only,
                   t->runs_unasked ? "never"
                   : t->asks_once  ? "first"
                                   : "always");
        json_write(out, t->schema);
        bytes_append_char(out, '}');
    }
}

/* The members of a list that a page shows, each cleaned. */
static void write_list(bytes *out, const json *list, const char *key)
{
    size_t n = 0;
    bytes text = bytes_empty(LIMIT_MCP_TEXT_BYTES + 8);
    bytes_json(out, ",%s:[", key);
    for (const json *v = json_child(list); v && n < LIMIT_MCP_TOOLS; v = json_next(v), n++) {
        static const char *const MEMBERS[] = {"name", "title", "description", "uri", "mimeType"};
        bytes_append_str(out, n ? ",{" : "{");
        const char *comma = "";
        for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++) {
            const char *value = json_str(json_get(v, MEMBERS[i]), NULL);
            if (value) {
                bytes_clear(&text);
                mcp_clean_text(&text, value, LIMIT_MCP_TEXT_BYTES, false);
                bytes_json(out, "%-s%s:%.*s", comma, MEMBERS[i], BYTES_ARG(&text));
                comma = ",";
            }
        }
        if (json_is(json_get(v, "arguments"), JSON_ARRAY)) {
            bytes_append_str(out, comma[0] ? ",\"arguments\":" : "\"arguments\":");
            json_write(out, json_get(v, "arguments"));
        }
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    bytes_deinit(&text);
}

void mcp_catalog_write(bytes *out, const mcp_catalog *c)
{
    static const char *const STATES[] = {
        [MCP_OFF] = "off", [MCP_CONNECTING] = "connecting", [MCP_READY] = "ready", [MCP_DOWN] = "down"};
    static const char *const KINDS[] = {
        [MCP_STDIO] = "stdio", [MCP_HTTP] = "http", [MCP_BUILTIN] = "builtin"};
    bytes_append_str(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; c && i < c->n; i++) {
        const mcp_server_view *v = &c->servers[i];
        bytes_json(out,
                   "%-s{\"server_label\":%s,\"kind\":%s,\"state\":%s,\"error\":%s,\"name\":%s,"
                   "\"version\":%s,\"protocol\":%s,\"tools_left_out\":%zu,\"tools\":[",
                   i ? "," : "", v->config->label, KINDS[v->config->kind], STATES[v->state],
                   v->why[0] ? v->why : NULL, v->name, v->version, v->protocol,
                   v->offer ? v->offer->left_out : 0);
        write_tools(out, v->offer);
        bytes_append_char(out, ']');
        write_list(out, v->offer ? v->offer->resources : NULL, "resources");
        write_list(out, v->offer ? v->offer->prompts : NULL, "prompts");
        bytes_append_char(out, '}');
    }
    bytes_append_str(out, "]}");
}
