/* Built-in tools: servers of the protocol in this process, so that there is one way to run a tool. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "server/mcp/mcp_calculator.h"
#include "server/mcp/mcp_state.h"

/* A tool of a built-in server: run appends the text of the result; false: it says what was wrong. */
typedef struct builtin_tool {
    const char *server, *name, *description;
    const char *properties, *required; /* of its schema, as JSON */
    bool (*run)(const mcp_server_config *config, const json *arguments, bytes *out);
} builtin_tool;

static bool run_calculator(const mcp_server_config *config, const json *arguments, bytes *out)
{
    char why[200];
    double v;
    const json *given = json_get(arguments, "expression");
    const char *text = json_str(given, json_number_text(given));
    (void)config;
    if (!text) {
        bytes_append_str(out, "expression is missing: the text of what is to be calculated");
        return false;
    }
    if (!mcp_calculate(&v, text, why, sizeof why)) {
        bytes_printf(out, "the expression cannot be calculated: %s", why);
        return false;
    }
    /* 0.1 + 0.2 is 0.3 for people: 15 digits are what a double holds of a decimal number */
    fabs(v) < 1e15 && floor(v) >= v ? bytes_printf(out, "%.0f", v + 0.0) : bytes_printf(out, "%.15g", v);
    return true;
}

static bool run_time(const mcp_server_config *config, const json *arguments, bytes *out)
{
    const time_t now = (time_t)clock_unix_s();
    struct tm local, utc;
    char text[128];
    (void)config, (void)arguments;
    if (!localtime_r(&now, &local) || !gmtime_r(&now, &utc)) {
        bytes_append_str(out, "the clock cannot be read");
        return false;
    }
    strftime(text, sizeof text, "%A, %Y-%m-%d %H:%M:%S %z (%Z)", &local);
    bytes_append_str(out, text);
    strftime(text, sizeof text, "; UTC %Y-%m-%dT%H:%M:%SZ", &utc);
    bytes_append_str(out, text);
    return true;
}

static const builtin_tool TOOLS[] = {
    {"calculator", "calculate", "Calculates an arithmetic expression and returns its value.",
     "{\"expression\":{\"type\":\"string\",\"description\":\"For example 12 * (3 + 4.5) or sqrt(2)\"}}",
     "[\"expression\"]", run_calculator},
    {"time", "current_time", "Returns the current date and time.", "{}", "[]", run_time},
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

static void write_call(bytes *out, const mcp_server_config *config, const json *params)
{
    const char *name = json_str(json_get(params, "name"), "");
    bytes text = bytes_empty(LIMIT_MCP_RESULT_BYTES * 2);
    bool ok = false;
    size_t i = 0;
    while (i < ARRAY_LEN(TOOLS) &&
           (strcmp(TOOLS[i].server, config->builtin) != 0 || strcmp(TOOLS[i].name, name) != 0)) {
        i++;
    }
    if (i < ARRAY_LEN(TOOLS)) {
        ok = TOOLS[i].run(config, json_get(params, "arguments"), &text);
    } else {
        bytes_printf(&text, "there is no tool %.100s", name);
    }
    bytes_json(out, "{\"content\":[{\"type\":\"text\",\"text\":%.*s}],\"isError\":%hhd}", BYTES_ARG(&text),
               !ok);
    bytes_deinit(&text);
}

void mcp_builtin_answer(const mcp_server_config *config, const json *request, bytes *out)
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
        write_call(out, config, json_get(request, "params"));
    }
    bytes_append_char(out, '}');
}
