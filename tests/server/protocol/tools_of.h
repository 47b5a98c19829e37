/* tools_of: the tools of a request, for tests.
 *
 *     tool_set *tools = tools_of("[{\"type\":\"function\",\"function\":{\"name\":\"now\"}}]");
 *     tool_set_destroy(tools);
 */
#ifndef PARLEY_TESTS_SERVER_PROTOCOL_TOOLS_OF_H
#define PARLEY_TESTS_SERVER_PROTOCOL_TOOLS_OF_H

#include "base/json.h"
#include "base/limits.h"
#include "server/protocol/output/tool_set.h"
#include "tests/check.h"

/* From JSON text; the caller frees it. NULL, and a failed check, where it cannot be had. */
static inline tool_set *tools_of(const char *text)
{
    json_doc *doc = NULL;
    tool_set *tools = NULL;
    err_detail d = {0};
    CHECK_OK(json_parse(&doc, text, strlen(text), LIMIT_JSON_DEPTH, &d), d);
    CHECK_OK(tool_set_create(&tools, json_root(doc), &d), d);
    json_free(doc);
    return tools;
}

#endif
