/* The form of Qwen3.5 and Qwen3-Coder:
 *
 *     <tool_call>
 *     <function=NAME>
 *     <parameter=KEY>
 *     VALUE
 *     </parameter>
 *     </function>
 *     </tool_call>
 *
 * A value has one line break at each edge that is not its own. It is text without escapes, so it
 * may hold markers: a </parameter> ends it only if a new parameter or the end of the function
 * follows. Models forget markers: the outer pair, and the </parameter> in front of the end, may be
 * missing.
 */
#include <string.h>

#include "base/utf8.h"
#include "server/protocol/output/tool_scanner.h"
#include "server/protocol/output/tool_value.h"

static const char FUNCTION[] = "<function=";
static const char FUNCTION_CLOSE[] = "</function>";
static const char PARAMETER[] = "<parameter=";
static const char PARAMETER_CLOSE[] = "</parameter>";

enum { IN_FUNCTION, IN_VALUE };

/* The name between a marker that ends with '=' and the next '>', without quotes and blanks. */
static tool_step read_name(const char *text, size_t len, const char **name, size_t *n, size_t *used)
{
    const char *end = memchr(text, '>', len < TOOL_NAME_BYTES + 8 ? len : TOOL_NAME_BYTES + 8);
    if (!end) {
        return len < TOOL_NAME_BYTES + 8 && !memchr(text, '\n', len) ? TOOL_MORE : TOOL_NO;
    }
    *used = (size_t)(end - text) + 1;
    while (text < end && strchr(" \t\"'", text[0]) && text[0]) {
        text++;
    }
    while (end > text && strchr(" \t\"'", end[-1]) && end[-1]) {
        end--;
    }
    *name = text;
    *n = (size_t)(end - text);
    return *n > 0 && *n <= TOOL_NAME_BYTES && !memchr(text, '\n', *n) ? TOOL_DONE : TOOL_NO;
}

static tool_step head(tool_reader *r, const char *text, size_t len, bool is_end, size_t *used)
{
    size_t at = 0, n = 0, name_bytes = 0;
    const char *name = NULL;
    bool is_bare = tool_match(text, len, TOOL_CALL) != TOOL_DONE;
    if (!is_bare) {
        at = sizeof TOOL_CALL - 1;
        at += tool_blank(text + at, len - at);
    }
    tool_step step = tool_match(text + at, len - at, FUNCTION);
    if (step == TOOL_DONE) {
        at += sizeof FUNCTION - 1;
        step = read_name(text + at, len - at, &name, &n, &name_bytes);
    }
    if (step == TOOL_DONE && (!tool_is_name(name, n) || (is_bare && !tool_set_find(r->tools, name, n)))) {
        step = TOOL_NO;
    }
    if (step != TOOL_DONE) {
        return is_end ? TOOL_NO : step;
    }
    tool_begin(r, name, n);
    tool_arguments(r, "{", 1);
    *used = at + name_bytes;
    return TOOL_DONE;
}

/* ---- values ---- */

static bool is_streamed(const tool_reader *r)
{
    return r->kinds == TOOL_STRING;
}

static void begin_value(tool_reader *r, const char *key, size_t len)
{
    bytes text = bytes_empty(SIZE_MAX / 2);
    r->kinds = tool_def_kinds(r->tool, key, len);
    bytes_json(&text, "%-s%.*s:%-s", r->n_members++ ? "," : "", (int)len, key, is_streamed(r) ? "\"" : "");
    tool_arguments_of(r, &text);
    bytes_clear(&r->value);
    r->state = IN_VALUE;
    r->at_begin = true;
}

/* Takes n bytes of the value, whole characters only if it is streamed. */
static void take_value(tool_reader *r, bytes *held, size_t n)
{
    if (is_streamed(r) && n > 0) {
        bytes text = bytes_empty(SIZE_MAX / 2);
        tool_value_escape(&text, held->data, n);
        tool_arguments_of(r, &text);
    } else {
        bytes_append(&r->value, held->data, n);
    }
    bytes_consume(held, n);
}

static size_t without_line_break(const char *text, size_t len)
{
    len -= len > 0 && text[len - 1] == '\n';
    return len - (len > 0 && text[len - 1] == '\r');
}

/* The value ends behind n bytes; `total` bytes of `held` are done with. */
static void end_value(tool_reader *r, bytes *held, size_t n, size_t total)
{
    n = without_line_break(bytes_str(held), n);
    take_value(r, held, n);
    bytes_consume(held, total - n);
    if (is_streamed(r)) {
        tool_arguments(r, "\"", 1);
    } else {
        bytes text = bytes_empty(SIZE_MAX / 2);
        tool_value_write(&text, bytes_str(&r->value), r->value.len, r->kinds);
        tool_arguments_of(r, &text);
    }
    r->state = IN_FUNCTION;
}

/* Is this the marker that ends the value? It depends on what comes behind it. */
static tool_step ends_value(const char *text, size_t len, size_t *marker_len)
{
    static const char *const BEHIND[] = {PARAMETER, FUNCTION_CLOSE, TOOL_CALL_CLOSE};
    bool is_function = false;
    tool_step step = tool_match(text, len, PARAMETER_CLOSE);
    if (step == TOOL_NO) {
        step = tool_match(text, len, FUNCTION_CLOSE);
        is_function = true;
    }
    if (step != TOOL_DONE) {
        return step;
    }
    size_t at = is_function ? sizeof FUNCTION_CLOSE - 1 : sizeof PARAMETER_CLOSE - 1;
    *marker_len = is_function ? 0 : at;
    at += tool_blank(text + at, len - at);
    step = TOOL_NO;
    for (size_t i = is_function ? 2 : 0; i < 3 && step != TOOL_DONE; i++) {
        tool_step behind = tool_match(text + at, len - at, BEHIND[i]);
        step = behind == TOOL_NO ? step : behind;
    }
    return step;
}

/* Drops the line break in front of the value; false if it is not there yet. */
static bool skip_line_break(tool_reader *r, bytes *held, tool_end end)
{
    const char *text = bytes_str(held);
    size_t skip = tool_match(text, held->len, "\r\n") == TOOL_DONE ? 2 : held->len > 0 && text[0] == '\n';
    if (skip == 0 && end == TOOL_GOES_ON && tool_match(text, held->len, "\r\n") == TOOL_MORE) {
        return false;
    }
    bytes_consume(held, skip);
    r->at_begin = false;
    return true;
}

/* Reads the value as far as it is sure; true if it is over. */
static bool read_value(tool_reader *r, bytes *held, tool_end end)
{
    if (r->at_begin && !skip_line_break(r, held, end)) {
        return false;
    }
    const char *text = bytes_str(held);
    size_t sure = held->len;
    for (size_t i = 0; i < held->len; i++) {
        const char *at = memchr(text + i, '<', held->len - i);
        if (!at) {
            break;
        }
        size_t marker_len = 0;
        i = (size_t)(at - text);
        tool_step step = ends_value(at, held->len - i, &marker_len);
        if (step == TOOL_DONE) {
            end_value(r, held, i, i + marker_len);
            return true;
        }
        if (step == TOOL_MORE) {
            sure = i; /* at the end of the answer an unfinished marker counts */
            break;
        }
    }
    if (end == TOOL_ENDED) {
        end_value(r, held, sure, held->len);
        return true;
    }
    sure = without_line_break(text, sure);
    take_value(r, held, sure - utf8_incomplete_tail(text, sure));
    return false;
}

/* ---- the function ---- */

static tool_step end_call(tool_reader *r, reply_kind how)
{
    if (how == REPLY_CALL_END) {
        tool_arguments(r, "}", 1);
    }
    reply_pieces_add(r->out, how, "", 0);
    return TOOL_DONE;
}

/* Reads what stands between values. TOOL_NO: the state changed, read on. */
static tool_step read_function(tool_reader *r, bytes *held)
{
    const char *name = NULL;
    size_t n = 0, name_bytes = 0;
    bytes_consume(held, tool_blank(bytes_str(held), held->len));
    const char *text = bytes_str(held);
    tool_step parameter = tool_match(text, held->len, PARAMETER);
    if (parameter == TOOL_DONE) {
        size_t at = sizeof PARAMETER - 1;
        parameter = read_name(text + at, held->len - at, &name, &n, &name_bytes);
        if (parameter == TOOL_DONE) {
            begin_value(r, name, n);
            bytes_consume(held, at + name_bytes);
            return TOOL_NO;
        }
    }
    tool_step closed = tool_match(text, held->len, FUNCTION_CLOSE);
    if (closed == TOOL_DONE) {
        bytes_consume(held, sizeof FUNCTION_CLOSE - 1);
        r->state = TOOL_BEHIND_CALL;
        end_call(r, REPLY_CALL_END);
        return TOOL_NO;
    }
    tool_step call_closed = tool_match(text, held->len, TOOL_CALL_CLOSE),
              next = tool_match(text, held->len, TOOL_CALL);
    if (call_closed == TOOL_DONE || next == TOOL_DONE) {
        bytes_consume(held, call_closed == TOOL_DONE ? sizeof TOOL_CALL_CLOSE - 1 : 0);
        return end_call(r, REPLY_CALL_END);
    }
    if (parameter == TOOL_MORE || closed == TOOL_MORE || call_closed == TOOL_MORE || next == TOOL_MORE) {
        return TOOL_MORE;
    }
    /* Words that belong nowhere are dropped. */
    const char *marker = memchr(text + 1, '<', held->len - 1);
    bytes_consume(held, marker ? (size_t)(marker - text) : held->len);
    return TOOL_NO;
}

static tool_step step(tool_reader *r, bytes *held, tool_end end)
{
    if (r->state == IN_VALUE) {
        return read_value(r, held, end) ? TOOL_NO : TOOL_MORE;
    }
    return read_function(r, held);
}

static const char *const SIGNS[] = {"<tool_call>", "<function=", "<parameter=", NULL};

const tool_form TOOL_FORM_XML = {
    .name = "qwen3_xml",
    .signs = SIGNS,
    .markers = {TOOL_CALL, FUNCTION},
    .head = head,
    .step = step,
    .end_call = end_call,
    .blank = " \n\r\t",
    .before_name = "\n<function=",
    .behind_name = ">\n",
    .after = "</function>\n",
    .arguments = SPEC_PARAMETERS,
};
