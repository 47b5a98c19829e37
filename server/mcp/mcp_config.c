#include "server/mcp/mcp_config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/limits.h"
#include "server/media/fetch.h"
#include "server/media/remote_host.h"

enum { CONFIG_BYTES = 1 << 20, TEXT_BYTES = 64 << 10, ARENA_BYTES = 16 << 20 };

/* ---- texts ---- */

/* The first problem counts. */
static void problem(mcp_server_config *s, const char *format, ...) PRINTF_LIKE(2, 3);

static void problem(mcp_server_config *s, const char *format, ...)
{
    if (!s->problem[0]) {
        va_list args;
        va_start(args, format);
        vsnprintf(s->problem, sizeof s->problem, format, args);
        va_end(args);
    }
}

static char *copy(mcp_config *c, const char *text, size_t len)
{
    char *out = arena_strdup(c->arena, text, len);
    c->is_short = c->is_short || !out;
    return out;
}

static void append(mcp_server_config *s, bytes *out, const char *text, size_t len)
{
    if (len > out->max - out->len) {
        problem(s, "one of its texts is longer than %d bytes", TEXT_BYTES);
    } else {
        bytes_append(out, text, len);
    }
}

/* Appends the value of NAME, env:NAME or NAME:-other, which stands in ${..}. */
static void append_variable(mcp_server_config *s, bytes *out, const char *text, size_t len)
{
    char name[256];
    const char *minus = memchr(text, ':', len);
    if (len > 4 && strncmp(text, "env:", 4) == 0) {
        text += 4;
        len -= 4;
        minus = memchr(text, ':', len);
    }
    const bool has_other = minus && minus + 1 < text + len && minus[1] == '-';
    const size_t n = has_other ? (size_t)(minus - text) : len;
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    const char *value = n < sizeof name ? getenv(name) : NULL;
    if (value) {
        append(s, out, value, strlen(value));
    } else if (has_other) {
        append(s, out, minus + 2, len - n - 2);
    } else {
        problem(s, "the variable %.100s of the environment is not set", name);
    }
}

/* A text of the file with the variables in it, in the arena; NULL if v is no text. */
static char *expand(mcp_config *c, mcp_server_config *s, const json *v)
{
    const char *p = json_str(v, NULL);
    bytes text = bytes_empty(TEXT_BYTES);
    for (const char *end; p && *p; p = end) {
        const char *close = strncmp(p, "${", 2) == 0 ? strchr(p, '}') : NULL;
        if (close) {
            append_variable(s, &text, p + 2, (size_t)(close - p - 2));
            end = close + 1;
        } else {
            append(s, &text, p, 1);
            end = p + 1;
        }
    }
    c->is_short |= text.failed;
    char *out = p ? copy(c, bytes_str(&text), text.len) : NULL;
    bytes_deinit(&text);
    return out;
}

static void add_word(mcp_config *c, mcp_words *w, char *word)
{
    if ((w->n & (w->n + 1)) == 0) { /* room for 1, 3, 7 ... and the NULL */
        char **larger = arena_calloc(c->arena, 2 * w->n + 2, sizeof *larger);
        if (!larger) {
            c->is_short = true;
            return;
        }
        if (w->n) {
            memcpy(larger, w->items, w->n * sizeof *larger);
        }
        w->items = larger;
    }
    if (word) {
        w->items[w->n++] = word;
        w->items[w->n] = NULL;
    }
}

bool mcp_words_have(const mcp_words *w, const char *text)
{
    size_t i = 0;
    while (i < w->n && strcmp(w->items[i], text) != 0) {
        i++;
    }
    return i < w->n;
}

/* A list of texts; `name` is its member. */
static void read_words(mcp_config *c, mcp_server_config *s, mcp_words *w, const json *entry, const char *name)
{
    const json *list = json_get(entry, name);
    if (json_typeof(list) == JSON_NULL) {
        return;
    }
    if (!json_is(list, JSON_ARRAY)) {
        problem(s, "%s must be a list of texts", name);
        return;
    }
    for (const json *v = json_child(list); v; v = json_next(v)) {
        if (!json_is(v, JSON_STRING)) {
            problem(s, "%s must be a list of texts", name);
            return;
        }
        add_word(c, w, expand(c, s, v));
    }
}

/* An object of texts, each as NAMEjoinVALUE. */
static void read_pairs(mcp_config *c, mcp_server_config *s, mcp_words *w, const json *entry, const char *name,
                       const char *join)
{
    const json *object = json_get(entry, name);
    if (json_typeof(object) != JSON_NULL && !json_is(object, JSON_OBJECT)) {
        problem(s, "%s must be an object of texts", name);
        return;
    }
    for (const json *v = json_child(object); v; v = json_next(v)) {
        const char *value = expand(c, s, v);
        bytes text = bytes_empty(2 * TEXT_BYTES);
        if (!value || !json_key(v)[0] || json_key(v)[strcspn(json_key(v), "=: \r\n")] ||
            value[strcspn(value, "\r\n")]) {
            problem(s, "%s.%.80s must be a text on one line", name, json_key(v));
        }
        bytes_printf(&text, "%s%s%s", json_key(v), join, value ? value : "");
        c->is_short |= text.failed;
        add_word(c, w, copy(c, bytes_str(&text), text.len));
        bytes_deinit(&text);
    }
}

/* ---- the three kinds ---- */

/* What a program gets of this environment, besides what the file gives it. */
static void add_environment(mcp_config *c, mcp_server_config *s)
{
    static const char *const KEPT[] = {"PATH", "HOME",   "USER",     "LOGNAME", "SHELL",
                                       "LANG", "LC_ALL", "LC_CTYPE", "TZ",      "TMPDIR"};
    for (size_t i = 0; i < ARRAY_LEN(KEPT); i++) {
        const char *value = getenv(KEPT[i]);
        const size_t n = strlen(KEPT[i]);
        bool is_given = false;
        for (size_t k = 0; k < s->env.n; k++) {
            is_given = is_given || (strncmp(s->env.items[k], KEPT[i], n) == 0 && s->env.items[k][n] == '=');
        }
        if (value && !is_given && strlen(value) < TEXT_BYTES) {
            bytes text = bytes_empty(TEXT_BYTES + 64);
            bytes_printf(&text, "%s=%s", KEPT[i], value);
            c->is_short |= text.failed;
            add_word(c, &s->env, copy(c, bytes_str(&text), text.len));
            bytes_deinit(&text);
        }
    }
    add_word(c, &s->env, NULL);
}

static void read_program(mcp_config *c, mcp_server_config *s, const json *entry)
{
    char *command = expand(c, s, json_get(entry, "command"));
    s->kind = MCP_STDIO;
    if (!command || !command[0]) {
        problem(s, "it needs a command (a program) or a url");
        return;
    }
    add_word(c, &s->argv, command);
    read_words(c, s, &s->argv, entry, "args");
    read_pairs(c, s, &s->env, entry, "env", "=");
    add_environment(c, s);
    s->cwd = expand(c, s, json_get(entry, "cwd"));
}

static void read_address(mcp_config *c, mcp_server_config *s, const json *entry)
{
    fetch_target target = {0};
    s->kind = MCP_HTTP;
    s->url = expand(c, s, json_get(entry, "url"));
    if (!s->problem[0] && (!s->url || !fetch_parse(&target, s->url) || strchr(s->url, '#'))) {
        problem(s, "its url must be http://HOST:PORT/PATH or https://HOST/PATH, without a user "
                   "(a key goes into headers)");
    }
    c->is_short |= target.is_short;
    read_pairs(c, s, &s->headers, entry, "headers", ": ");
    if (s->headers.n > MCP_HEADERS_MAX) {
        problem(s, "it has more than %d headers", MCP_HEADERS_MAX);
    }
}

static void read_folder(mcp_config *c, mcp_server_config *s, const json *entry)
{
    struct stat st;
    const char *path = expand(c, s, json_get(entry, "path"));
    char *real = path && path[0] ? realpath(path, NULL) : NULL;
    c->is_short |= path && path[0] && !real && errno == ENOMEM;
    if (!path || !path[0]) {
        problem(s, "folder needs a path: the folder that is read");
    } else if (!real || stat(real, &st) != 0 || !S_ISDIR(st.st_mode)) {
        problem(s, "there is no folder %.200s", path);
    } else {
        s->folder = copy(c, real, strlen(real));
    }
    free(real);
}

/* Without a list every host may be asked, at its public addresses. */
static void check_domains(mcp_config *c, mcp_server_config *s)
{
    static const char ALL[] = "*";
    for (size_t i = 0; i < s->domains.n; i++) {
        if (!remote_rule_is_valid(s->domains.items[i])) {
            problem(s, "\"%.100s\" is not a host; it takes hosts, *.hosts, addresses and *",
                    s->domains.items[i]);
        }
    }
    if (s->domains.n == 0) {
        add_word(c, &s->domains, copy(c, ALL, sizeof ALL - 1));
    }
}

static void read_builtin(mcp_config *c, mcp_server_config *s, const json *entry)
{
    s->kind = MCP_BUILTIN;
    s->builtin = expand(c, s, json_get(entry, "builtin"));
    s->consent = MCP_NEVER_ASK; /* they change nothing and tell nobody; who turned them on wants them */
    const char *name = s->builtin ? s->builtin : "";
    if (strcmp(name, "folder") == 0) {
        read_folder(c, s, entry);
    } else if (strcmp(name, "fetch") == 0) {
        s->consent = MCP_ASK; /* an address tells another host what the model wrote into it */
        read_words(c, s, &s->domains, entry, "domains");
        check_domains(c, s);
    } else if (strcmp(name, "calculator") != 0 && strcmp(name, "time") != 0) {
        problem(s, "builtin must be calculator, time, folder or fetch");
    }
}

/* ---- a server ---- */

static bool is_label(const char *text)
{
    const size_t n = strlen(text);
    for (const char *p = text; *p; p++) {
        if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_' && *p != '.') {
            return false;
        }
    }
    return n > 0 && n <= MCP_LABEL_MAX;
}

static void read_consent(mcp_server_config *s, const json *entry)
{
    static const char *const NAMES[] = {[MCP_ASK] = "always",
                                        [MCP_ASK_TO_WRITE] = "writes",
                                        [MCP_ASK_ONCE] = "first",
                                        [MCP_NEVER_ASK] = "never"};
    const json *v = json_get(entry, "approval");
    if (json_typeof(v) == JSON_NULL) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        if (strcmp(json_str(v, ""), NAMES[i]) == 0) {
            s->consent = (mcp_consent)i;
            return;
        }
    }
    problem(s, "approval must be always, writes, first or never");
}

/* Seconds ("timeout"), MiB ("memoryMiB"). */
static int64_t read_number(mcp_server_config *s, const json *entry, const char *name, int64_t standard,
                           int64_t max)
{
    const json *v = json_get(entry, name);
    int64_t out = standard;
    if (json_typeof(v) != JSON_NULL && !json_int(v, 1, max, &out)) {
        problem(s, "%s must be a whole number from 1 to %lld", name, (long long)max);
        out = standard;
    }
    return out;
}

static void read_server(mcp_config *c, const char *label, const json *entry)
{
    if (c->n == MCP_SERVERS) {
        problem(&c->servers[MCP_SERVERS - 1], "there are more than %d servers; what follows it is left out",
                MCP_SERVERS);
        return;
    }
    const bool is_double = mcp_config_find(c, label) != NULL;
    mcp_server_config *s = &c->servers[c->n++];
    snprintf(s->label, sizeof s->label, "%.*s", MCP_LABEL_MAX, label);
    if (!is_label(label)) {
        problem(s, "its name must be 1 to %d letters, digits, - _ and .", MCP_LABEL_MAX);
        snprintf(s->label, sizeof s->label, "server-%zu", c->n);
    } else if (is_double) {
        problem(s, "another server has the name %s, too; the first counts", label);
        snprintf(s->label, sizeof s->label, "%.*s-%zu", MCP_LABEL_MAX - 8, label, c->n);
    }
    if (!json_is(entry, JSON_OBJECT)) {
        problem(s, "it must be an object with a command or a url");
        return;
    }
    if (json_typeof(json_get(entry, "builtin")) != JSON_NULL) {
        read_builtin(c, s, entry);
    } else if (json_typeof(json_get(entry, "url")) != JSON_NULL) {
        read_address(c, s, entry);
    } else {
        read_program(c, s, entry);
    }
    read_consent(s, entry);
    read_words(c, s, &s->always, entry, "alwaysAllow");
    read_words(c, s, &s->hidden, entry, "disabledTools");
    s->is_off = json_is_true(json_get(entry, "disabled"));
    s->timeout_s = (int)read_number(s, entry, "timeout", LIMIT_MCP_CALL_S, 3600);
    s->memory_mib = (size_t)read_number(s, entry, "memoryMiB", LIMIT_MCP_MEMORY_MIB, 1 << 20);
}

/* ---- both sources ---- */

static err_code read_file(mcp_config *c, const char *file, err_detail *d)
{
    json_doc *doc = NULL;
    const err_code err = json_parse_file(&doc, file, CONFIG_BYTES, d);
    const json *servers = err == ERR_OK ? json_get(json_root(doc), "mcpServers") : NULL;
    for (const json *v = json_child(servers); v; v = json_next(v)) {
        read_server(c, json_key(v), v);
    }
    const bool is_wrong = err == ERR_OK && !json_is(servers, JSON_OBJECT);
    json_free(doc);
    return is_wrong ? err_set(d, ERR_INVALID,
                              "%s has no object mcpServers: {\"mcpServers\": {\"NAME\": {...}}}", file)
                    : err;
}

/* An item NAME=VALUE of --tools, if its name is this; its value, NULL otherwise. */
static const char *value_of(const char *item, size_t len, const char *name)
{
    const size_t n = strlen(name);
    return len > n + 1 && strncmp(item, name, n) == 0 && item[n] == '=' ? item + n + 1 : NULL;
}

/* Appends the members of an entry for a built-in server: all hosts of --tools are those of one. */
static void write_tool(bytes *out, const char *tools, const char *item, size_t len)
{
    const char *folder = value_of(item, len, "folder"), *host = value_of(item, len, "fetch");
    if (folder) {
        bytes_json(out, "{\"builtin\":\"folder\",\"path\":%.*s}", (int)(item + len - folder), folder);
    } else if (host) {
        bytes_append_str(out, "{\"builtin\":\"fetch\",\"domains\":[");
        const char *comma = "";
        for (const char *p = tools; *p;) {
            const size_t blank = strspn(p, " "), n = strcspn(p, ",");
            const char *one = value_of(p + blank, n - blank, "fetch");
            if (one) {
                bytes_json(out, "%-s%.*s", comma, (int)(p + n - one), one);
                comma = ",";
            }
            p += n + (p[n] == ',');
        }
        bytes_append_str(out, "]}");
    } else {
        bytes_json(out, "{\"builtin\":%.*s}", (int)len, item);
    }
}

/* An item of --tools, as an entry of the file would say it. */
static err_code read_tool(mcp_config *c, const char *tools, const char *item, size_t len, err_detail *d)
{
    char label[MCP_LABEL_MAX + 1];
    bytes text = bytes_empty(TEXT_BYTES);
    json_doc *doc = NULL;
    write_tool(&text, tools, item, len);
    c->is_short |= text.failed;
    err_code err = json_parse(&doc, bytes_str(&text), text.len, LIMIT_JSON_DEPTH, d);
    bytes_deinit(&text);
    if (err == ERR_OK) {
        const char *builtin = json_str(json_get(json_root(doc), "builtin"), "");
        const bool is_known = mcp_config_find(c, builtin) != NULL;
        snprintf(label, sizeof label, is_known ? "%.*s-%zu" : "%.*s", MCP_LABEL_MAX - 8, builtin, c->n + 1);
        if (is_known && value_of(item, len, "fetch")) { /* read with the first of them */
            json_free(doc);
            return ERR_OK;
        }
        read_server(c, label, json_root(doc));
        const char *why = c->servers[c->n - 1].problem;
        err = why[0] ? err_set(d, ERR_INVALID, "--tools %.*s: %s", (int)len, item, why) : ERR_OK;
        json_free(doc);
    }
    return err;
}

err_code mcp_config_read(mcp_config **out, const char *file, const char *tools, err_detail *d)
{
    mcp_config *c = calloc(1, sizeof *c);
    err_code err = ERR_OK;
    *out = NULL;
    if (!c || !(c->arena = arena_create(ARENA_BYTES))) {
        mcp_config_destroy(c);
        return err_set(d, ERR_NOMEM, "there is no memory for --mcp-config");
    }
    if (file) {
        err = read_file(c, file, d);
    }
    for (const char *p = tools; p && *p && err == ERR_OK;) {
        const size_t n = strcspn(p, ",");
        const size_t blank = strspn(p, " ");
        if (n > blank) {
            err = read_tool(c, tools, p + blank, n - blank, d);
        }
        p += n + (p[n] == ',');
    }
    if (c->is_short) { /* a server would be missing for as long as this runs */
        err = err_set(d, ERR_NOMEM, "there is no memory for --mcp-config");
    }
    if (err != ERR_OK) {
        mcp_config_destroy(c);
        return err;
    }
    *out = c;
    return ERR_OK;
}

void mcp_config_destroy(mcp_config *c)
{
    if (c) {
        arena_destroy(c->arena);
        free(c);
    }
}

const mcp_server_config *mcp_config_find(const mcp_config *c, const char *label)
{
    for (size_t i = 0; c && i < c->n; i++) {
        if (strcmp(c->servers[i].label, label) == 0) {
            return &c->servers[i];
        }
    }
    return NULL;
}

static bool is_used(const mcp_server_config *s)
{
    return !s->is_off && !s->problem[0];
}

bool mcp_config_connects(const mcp_config *c)
{
    for (size_t i = 0; c && i < c->n; i++) {
        const mcp_server_config *s = &c->servers[i];
        if (is_used(s) && (s->kind == MCP_HTTP || s->domains.n > 0)) {
            return true;
        }
    }
    return false;
}

bool mcp_config_spawns(const mcp_config *c)
{
    for (size_t i = 0; c && i < c->n; i++) {
        if (is_used(&c->servers[i]) && c->servers[i].kind == MCP_STDIO) {
            return true;
        }
    }
    return false;
}
