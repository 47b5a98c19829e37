/* Built-in tools: servers of the protocol in this process, so that there is one way to run a tool. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "server/mcp/mcp_builtin.h"
#include "server/mcp/mcp_calculator.h"
#include "server/mcp/mcp_state.h"

/* A tool of a built-in server. */
typedef struct builtin_tool {
    const char *server, *name, *description;
    const char *properties, *required; /* of its schema, as JSON */
    bool (*run)(const builtin_call *call, bytes *out);
} builtin_tool;

const char *builtin_text(const builtin_call *call, const char *name)
{
    const json *v = json_get(call->arguments, name);
    const char *number = json_number_text(v);
    return json_str(v, number ? number : "");
}

int64_t builtin_number(const builtin_call *call, const char *name, int64_t standard)
{
    int64_t out = standard;
    return json_int(json_get(call->arguments, name), INT64_MIN, INT64_MAX, &out) ? out : standard;
}

static bool run_calculator(const builtin_call *call, bytes *out)
{
    char why[200];
    double v;
    const char *text = builtin_text(call, "expression");
    if (!mcp_calculate(&v, text, why, sizeof why)) {
        bytes_printf(out, "the expression cannot be calculated: %s", why);
        return false;
    }
    /* 0.1 + 0.2 is 0.3 for people: 15 digits are what a double holds of a decimal number */
    fabs(v) < 1e15 && floor(v) >= v ? bytes_printf(out, "%.0f", v + 0.0) : bytes_printf(out, "%.15g", v);
    return true;
}

static bool run_time(const builtin_call *call, bytes *out)
{
    const time_t now = (time_t)clock_unix_s();
    struct tm local, utc;
    char text[128];
    (void)call;
    localtime_r(&now, &local); /* either fails only in years that no clock has */
    gmtime_r(&now, &utc);
    strftime(text, sizeof text, "%A, %Y-%m-%d %H:%M:%S %z (%Z)", &local);
    bytes_append_str(out, text);
    strftime(text, sizeof text, "; UTC %Y-%m-%dT%H:%M:%SZ", &utc);
    bytes_append_str(out, text);
    return true;
}

#define PATH "\"path\":{\"type\":\"string\",\"description\":"

static const builtin_tool TOOLS[] = {
    {"calculator", "calculate", "Calculates an arithmetic expression and returns its value.",
     "{\"expression\":{\"type\":\"string\",\"description\":\"For example 12 * (3 + 4.5) or sqrt(2)\"}}",
     "[\"expression\"]", run_calculator},
    {"time", "current_time", "Returns the current date and time.", "{}", "[]", run_time},
    {"folder", "list_folder", "Lists the files and folders in a folder.",
     "{" PATH "\"The folder, for example docs/2026; without it the topmost one\"}}", "[]", mcp_folder_list},
    {"folder", "read_file", "Reads a text file, or a part of it.",
     "{" PATH "\"The file, for example docs/notes.txt\"},"
     "\"first_line\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"Where to begin; 1 without it\"},"
     "\"lines\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"How many; 1000 without it\"}}",
     "[\"path\"]", mcp_folder_read},
    {"folder", "search_files",
     "Searches a folder and all below it: for files whose text has some words, or whose names fit a pattern. "
     "What begins with a dot is passed over.",
     "{\"text\":{\"type\":\"string\",\"description\":\"Words that a line has, in this order; upper and lower "
     "case "
     "are one\"},"
     "\"name\":{\"type\":\"string\",\"description\":\"A pattern of file names, for example *.md\"}," PATH
     "\"The folder; without it the topmost one\"}}",
     "[]", mcp_folder_search},
    {"fetch", "fetch_page", "Fetches a page of the web and returns its text.",
     "{\"url\":{\"type\":\"string\",\"description\":\"For example https://example.org/page\"},"
     "\"start\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"Where in the text to go on, as an "
     "earlier "
     "result said\"}}",
     "[\"url\"]", mcp_fetch_page},
};

static void write_list(bytes *out, const mcp_server_config *config)
{
    const char *comma = "";
    bytes_append_str(out, "{\"tools\":[");
    for (size_t i = 0; i < ARRAY_LEN(TOOLS); i++) {
        const builtin_tool *t = &TOOLS[i];
        if (strcmp(t->server, config->builtin) == 0) {
            bytes_json(out,
                       "%-s{\"name\":%s,\"description\":%s,\"annotations\":{\"readOnlyHint\":true},"
                       "\"inputSchema\":{\"type\":\"object\",\"properties\":%-s,\"required\":%-s}}",
                       comma, t->name, t->description, t->properties, t->required);
            comma = ",";
        }
    }
    bytes_append_str(out, "]}");
}

/* Whether the arguments are as the tool's schema says; if not, says so for the model. A number in the place of a
 * text is taken as it was written. */
static bool check_arguments(const builtin_tool *t, const json *arguments, bytes *out)
{
    json_doc *properties = NULL, *required = NULL;
    const size_t before = out->len;
    if (json_parse(&properties, t->properties, strlen(t->properties), LIMIT_JSON_DEPTH, NULL) != ERR_OK ||
        json_parse(&required, t->required, strlen(t->required), LIMIT_JSON_DEPTH, NULL) != ERR_OK) {
        bytes_append_str(out, "there is no memory for this call");
    }
    for (const json *v = json_child(json_root(required)); v && out->len == before; v = json_next(v)) {
        if (json_typeof(json_get(arguments, json_str(v, ""))) == JSON_NULL) {
            bytes_printf(out, "the argument %s is missing", json_str(v, ""));
        }
    }
    for (const json *v = json_child(arguments); v && out->len == before; v = json_next(v)) {
        const json *schema = json_get(json_root(properties), json_key(v));
        int64_t number, least = 0;
        (void)json_int(json_get(schema, "minimum"), 0, 1, &least);
        const bool is_text = strcmp(json_str(json_get(schema, "type"), ""), "string") == 0;
        if (!schema) {
            bytes_printf(out, "there is no argument %.100s", json_key(v));
        } else if (is_text && !json_is(v, JSON_STRING) && !json_number_text(v) &&
                   json_typeof(v) != JSON_NULL) {
            bytes_printf(out, "the argument %s must be a text", json_key(v));
        } else if (!is_text && json_typeof(v) != JSON_NULL && !json_int(v, least, INT32_MAX, &number)) {
            bytes_printf(out, "the argument %s must be a whole number, %lld or more", json_key(v),
                         (long long)least);
        }
    }
    json_free(properties);
    json_free(required);
    return out->len == before;
}

static void write_call(bytes *out, const mcp_server_config *config, const json *params,
                       bool (*may_go_on)(void *ctx), void *ctx)
{
    const char *name = json_str(json_get(params, "name"), "");
    const builtin_call call = {
        .config = config, .arguments = json_get(params, "arguments"), .may_go_on = may_go_on, .ctx = ctx};
    bytes text = bytes_empty(LIMIT_MCP_RESULT_BYTES * 2);
    bool ok = false;
    size_t i = 0;
    while (i < ARRAY_LEN(TOOLS) &&
           (strcmp(TOOLS[i].server, config->builtin) != 0 || strcmp(TOOLS[i].name, name) != 0)) {
        i++;
    }
    if (i < ARRAY_LEN(TOOLS)) {
        ok = check_arguments(&TOOLS[i], call.arguments, &text) && TOOLS[i].run(&call, &text);
    } else {
        bytes_printf(&text, "there is no tool %.100s", name);
    }
    bytes_json(out, "{\"content\":[{\"type\":\"text\",\"text\":%.*s}],\"isError\":%hhd}", BYTES_ARG(&text),
               !ok);
    bytes_deinit(&text);
}

void mcp_builtin_answer(const mcp_server_config *config, const json *request, bytes *out,
                        bool (*may_go_on)(void *ctx), void *ctx)
{
    const char *method = json_str(json_get(request, "method"), "");
    bytes_append_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    json_write(out, json_get(request, "id"));
    bytes_append_str(out, ",\"result\":");
    if (strcmp(method, "server/discover") == 0) {
        bytes_json(out,
                   "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{"
                   "\"tools\":{}},\"serverInfo\":{\"name\":%s,\"version\":\"" PARLEY_VERSION "\"}}",
                   config->builtin);
    } else if (strcmp(method, "tools/list") == 0) {
        write_list(out, config);
    } else {
        write_call(out, config, json_get(request, "params"), may_go_on, ctx);
    }
    bytes_append_char(out, '}');
}
