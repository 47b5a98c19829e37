/* mcp_builtin: what the built-in servers say of themselves and of their tools, and how the arguments of a call are held
 * against its schema: every reply as a whole. The tools with files of their own are made up: they say what they were given. */
#include "server/mcp/mcp_builtin.h"

#include <time.h>

#include "base/limits.h"
#include "server/mcp/mcp_state.h"
#include "tests/recorded.h"

static bytes all;

static bool goes_on(void *ctx)
{
    return *(const bool *)ctx;
}

static bool tell(const builtin_call *call, bytes *out, const char *name)
{
    bytes_printf(out, "%s of %s, path %s, url %s, lines %lld, start %lld%s", name, call->config->builtin,
                 builtin_text(call, "path"), builtin_text(call, "url"),
                 (long long)builtin_number(call, "lines", 7), (long long)builtin_number(call, "start", -3),
                 call->may_go_on(call->ctx) ? "" : ", nobody waits");
    return strcmp(builtin_text(call, "path"), "bad") != 0;
}

bool mcp_folder_list(const builtin_call *call, bytes *out)
{
    return tell(call, out, "list");
}

bool mcp_folder_read(const builtin_call *call, bytes *out)
{
    return tell(call, out, "read");
}

bool mcp_folder_search(const builtin_call *call, bytes *out)
{
    return tell(call, out, "search");
}

bool mcp_fetch_page(const builtin_call *call, bytes *out)
{
    return tell(call, out, "page");
}

static const char *answer(const char *builtin, const char *text, bool waits)
{
    static bytes out;
    const mcp_server_config config = {.builtin = builtin};
    json_doc *doc = NULL;
    err_detail d = {0};
    bytes_deinit(&out);
    bytes_init(&out, 1 << 20);
    CHECK_OK(json_parse(&doc, text, strlen(text), LIMIT_JSON_DEPTH, &d), d);
    mcp_builtin_answer(&config, json_root(doc), &out, goes_on, &waits);
    json_free(doc);
    return bytes_str(&out);
}

/* Without the version of the program. */
static void record(const char *builtin, const char *text)
{
    const char *said = answer(builtin, text, true), *version = strstr(said, "\"" PARLEY_VERSION "\"");
    const size_t n = version ? (size_t)(version + 1 - said) : strlen(said);
    bytes_printf(&all, "%s %s\n  %.*s%s\n", builtin, text, (int)n, said,
                 version ? said + n + strlen(PARLEY_VERSION) : "");
}

static void call(const char *builtin, const char *name, const char *arguments)
{
    char text[1024];
    snprintf(text, sizeof text, "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\"%s%s}}", name,
             arguments[0] ? ",\"arguments\":" : "", arguments);
    bytes_printf(&all, "%s %s %s\n  %s\n", builtin, name, arguments,
                 answer(builtin, text, strcmp(arguments, "{\"path\":\"late\"}") != 0));
}

int main(void)
{
    static const char *const SERVERS[] = {"calculator", "time", "folder", "fetch", "other"};
    static const char *const SUMS[] = {"{\"expression\":\"1+2\"}",
                                       "{\"expression\":\"0.1+0.2\"}",
                                       "{\"expression\":\"1/3\"}",
                                       "{\"expression\":\"10^15-1\"}",
                                       "{\"expression\":\"10^15\"}",
                                       "{\"expression\":\"-10^15\"}",
                                       "{\"expression\":\"0-0\"}",
                                       "{\"expression\":\"2.5\"}",
                                       "{\"expression\":\"\"}",
                                       "{\"expression\":12.50}",
                                       "{\"expression\":true}",
                                       "{\"expression\":null}",
                                       "{\"expression\":[1]}",
                                       "{\"sum\":\"1\"}",
                                       "{\"expression\":\"1\",\"more\":1}",
                                       "{}",
                                       "",
                                       "[]"};
    static const char *const LINES[] = {"{\"path\":\"a\",\"lines\":1}",
                                        "{\"path\":\"a\",\"lines\":0}",
                                        "{\"path\":\"a\",\"lines\":2147483647}",
                                        "{\"path\":\"a\",\"lines\":2147483648}",
                                        "{\"path\":\"a\",\"lines\":1.5}",
                                        "{\"path\":\"a\",\"lines\":\"2\"}",
                                        "{\"path\":\"a\",\"lines\":null}",
                                        "{\"path\":\"a\",\"lines\":true}",
                                        "{\"path\":5}",
                                        "{\"path\":\"bad\"}",
                                        "{\"path\":\"late\"}",
                                        "{\"lines\":2}"};
    static const char *const PAGES[] = {"{\"url\":\"u\"}", "{\"url\":\"u\",\"start\":0}",
                                        "{\"url\":\"u\",\"start\":-1}", "{\"url\":\"u\",\"start\":9}",
                                        "{\"url\":{}}"};
    bytes_init(&all, 1 << 20);
    setenv("TZ", "UTC-2", 1);
    tzset();
    for (size_t i = 0; i < sizeof SERVERS / sizeof *SERVERS; i++) {
        record(SERVERS[i], "{\"id\":7,\"method\":\"server/discover\"}");
        record(SERVERS[i], "{\"id\":\"x\",\"method\":\"tools/list\"}");
        record(SERVERS[i], "{\"method\":\"tools/call\",\"params\":{\"name\":\"none\"}}");
        call(SERVERS[i], "calculate", "{\"expression\":\"2\"}"); /* of one of them alone */
    }
    for (size_t i = 0; i < sizeof SUMS / sizeof *SUMS; i++) {
        call("calculator", "calculate", SUMS[i]);
    }
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
        call("folder", "read_file", LINES[i]);
    }
    for (size_t i = 0; i < sizeof PAGES / sizeof *PAGES; i++) {
        call("fetch", "fetch_page", PAGES[i]);
    }
    call("folder", "list_folder", "{}");
    call("folder", "search_files", "{\"path\":\"p\",\"text\":\"t\",\"name\":\"*.md\"}");
    call("folder", "search_files", "{\"path\":null,\"text\":true}");
    call("folder", "search_files", "{\"path\":null,\"text\":null,\"name\":1}");
    call("time", "current_time", "{\"zone\":1}");
    /* The time, of here and of UTC: of this second or of the one before. */
    bool found = false;
    const time_t before = time(NULL);
    const char *said =
        answer("time", "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"current_time\"}}", true);
    for (time_t t = before; t <= time(NULL); t++) {
        struct tm local, utc;
        char a[64], b[64], expected[256];
        strftime(a, sizeof a, "%A, %Y-%m-%d %H:%M:%S +0200 (UTC)", localtime_r(&t, &local));
        strftime(b, sizeof b, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &utc));
        snprintf(expected, sizeof expected,
                 "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"%s; "
                 "UTC %s\"}],\"isError\":false}}",
                 a, b);
        found = found || strcmp(said, expected) == 0;
    }
    if (!found) {
        fprintf(stderr, "%s\n", said);
    }
    CHECK(found);
    recorded_check("server/mcp/builtin.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
