/* mcp_config: all that is read of an entry, whichever member is there, missing or odd, as one recorded text. */
#include <stdlib.h>

#include "base/limits.h"
#include "server/mcp/mcp_config.h"
#include "tests/folder.h"
#include "tests/recorded.h"

static char path[FOLDER_NAME + 16];

static void tell_words(bytes *out, const char *name, const mcp_words *w)
{
    if (w->n == 0) {
        return;
    }
    bytes_printf(out, ", %s", name);
    for (size_t i = 0; i < w->n; i++) {
        bytes_append_str(out, " [");
        for (const char *p = w->items[i]; *p; p++) {
            bytes_append_char(out, *p == '\n' || *p == '\r' ? '|' : *p);
        }
        bytes_append_char(out, ']');
    }
    CHECK(!w->items[w->n]); /* as execve wants it */
}

static void tell_server(bytes *out, const mcp_server_config *s)
{
    static const char *const KINDS[] = {
        [MCP_STDIO] = "program", [MCP_HTTP] = "address", [MCP_BUILTIN] = "builtin"};
    static const char *const CONSENTS[] = {[MCP_ASK] = "asks",
                                           [MCP_ASK_TO_WRITE] = "asks to write",
                                           [MCP_ASK_ONCE] = "asks once",
                                           [MCP_NEVER_ASK] = "never asks"};
    bytes_printf(out, "<%s: %s%s, %s, %d s, %zu MiB", s->label, KINDS[s->kind], s->is_off ? ", off" : "",
                 CONSENTS[s->consent], s->timeout_s, s->memory_mib);
    CHECK((s->argv.n > 0) == (s->env.items != NULL)); /* a program has an environment, be it empty */
    CHECK(!s->env.items || !s->env.items[s->env.n]);
    tell_words(out, "runs", &s->argv);
    tell_words(out, "with", &s->env);
    bytes_printf(out, "%s%s%s%s%s%s%s%s", s->cwd ? ", in " : "", s->cwd ? s->cwd : "", s->url ? ", at " : "",
                 s->url ? s->url : "", s->builtin ? ", has " : "", s->builtin ? s->builtin : "",
                 s->folder ? ", reads " : "", s->folder ? s->folder : "");
    tell_words(out, "sends", &s->headers);
    tell_words(out, "asks hosts", &s->domains);
    tell_words(out, "always", &s->always);
    tell_words(out, "hides", &s->hidden);
    bytes_printf(out, "%s%s\n", s->problem[0] ? "; " : "", s->problem);
}

static const char *const KEPT[][2] = {
    {"PATH", "/bin"},    {"HOME", "/home/one"}, {"USER", "one"}, {"LOGNAME", NULL}, {"SHELL", "/bin/sh"},
    {"LANG", "C.UTF-8"}, {"LC_ALL", NULL},      {"TZ", "UTC"},   {"TMPDIR", NULL},  {"LC_CTYPE", "de_DE"}};

static void set_environment(bool is_bare)
{
    for (size_t i = 0; i < ARRAY_LEN(KEPT); i++) {
        const char *value = is_bare ? NULL : KEPT[i][1];
        CHECK_INT(value ? setenv(KEPT[i][0], value, 1) : unsetenv(KEPT[i][0]), 0);
    }
}

static void tell_config(bytes *out, const char *text, bool is_file)
{
    mcp_config *c = NULL;
    err_detail d = {0};
    if (is_file) {
        FILE *f = fopen(path, "w");
        CHECK(f && fprintf(f, "{\"mcpServers\":%s}", text) > 0);
        CHECK(f && fclose(f) == 0);
    }
    const err_code err = mcp_config_read(&c, is_file ? path : NULL, is_file ? NULL : text, &d);
    if (err != ERR_OK) {
        const char *at = strstr(d.text, path);
        bytes_printf(out, "<%s: %s%s\n", err_name(err), at ? "FILE" : "", at ? at + strlen(path) : d.text);
    } else {
        for (size_t i = 0; i < c->n; i++) {
            tell_server(out, &c->servers[i]);
        }
        bytes_printf(out, "<%s%s\n", mcp_config_connects(c) ? "it connects" : "no connections",
                     mcp_config_spawns(c) ? ", it starts programs" : "");
        mcp_config_destroy(c);
    }
}

/* A line is what mcpServers holds, the same behind "bare" in an environment without variables, or what --tools says. */
static void tell(void *ctx, bytes *out, const char *line, size_t len)
{
    static const char BARE[] = "bare ";
    (void)ctx;
    if (*line == '#' || len == 0) {
        return;
    }
    const bool is_bare = strncmp(line, BARE, sizeof BARE - 1) == 0;
    bytes text = bytes_empty(1 << 16);
    bytes_append(&text, is_bare ? line + sizeof BARE - 1 : line, is_bare ? len - (sizeof BARE - 1) : len);
    set_environment(is_bare);
    tell_config(out, bytes_str(&text), strchr("{[7", bytes_str(&text)[0]) != NULL);
    bytes_deinit(&text);
}

int main(void)
{
    char folder[FOLDER_NAME];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/mcp.json", folder);
    CHECK_INT(setenv("OWN", "mine", 1) | unsetenv("NONE"), 0);
    recorded_answers(PARLEY_SOURCE_DIR "/tests/server/mcp/entries.txt", tell, NULL);
    CHECK_DONE();
}
