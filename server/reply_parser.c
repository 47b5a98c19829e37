#include "server/reply_parser.h"

#include <stdint.h>
#include <string.h>

static const char OPEN[] = "<think>";
static const char CLOSE[] = "</think>";
enum { OPEN_LEN = sizeof OPEN - 1, CLOSE_LEN = sizeof CLOSE - 1 };

void reply_parser_init(reply_parser *p, bool starts_in_thinking, bool may_think)
{
    p->state = starts_in_thinking ? REPLY_THINKING : may_think ? REPLY_START : REPLY_CONTENT;
    p->at_edge = starts_in_thinking;
    bytes_init(&p->held, SIZE_MAX / 2);
    bytes_init(&p->reasoning, SIZE_MAX / 2);
    bytes_init(&p->content, SIZE_MAX / 2);
}

void reply_parser_continue(reply_parser *p)
{
    p->at_edge = false;
}

void reply_parser_deinit(reply_parser *p)
{
    bytes_deinit(&p->held);
    bytes_deinit(&p->reasoning);
    bytes_deinit(&p->content);
}

bool reply_parser_is_thinking(const reply_parser *p)
{
    return p->state == REPLY_THINKING;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static size_t leading_space(const bytes *b)
{
    size_t n = 0;
    while (n < b->len && is_space(b->data[n])) {
        n++;
    }
    return n;
}

typedef enum marker { MARKER_NO, MARKER_PERHAPS, MARKER_YES } marker;

/* Does the text start with <think>? Perhaps: it ends too early to know. */
static marker starts_with_open(const char *text, size_t len)
{
    size_t n = len < OPEN_LEN ? len : OPEN_LEN;
    if (n > 0 && memcmp(text, OPEN, n) != 0) {
        return MARKER_NO;
    }
    return n == OPEN_LEN ? MARKER_YES : MARKER_PERHAPS;
}

/* Each step returns true if the state changed and the rest of `held` is to be looked at again. */
static bool step_start(reply_parser *p)
{
    size_t space = leading_space(&p->held);
    switch (starts_with_open(p->held.data + space, p->held.len - space)) {
    case MARKER_PERHAPS:
        return false;
    case MARKER_YES:
        bytes_consume(&p->held, space + OPEN_LEN);
        p->state = REPLY_THINKING;
        p->at_edge = true;
        return true;
    default:
        p->state = REPLY_CONTENT;
        p->at_edge = false;
        return true;
    }
}

/* The beginning of the reasoning: drops white space, and a marker that repeats the prompt's. */
static bool step_thinking_edge(reply_parser *p)
{
    bytes_consume(&p->held, leading_space(&p->held));
    switch (starts_with_open(p->held.data, p->held.len)) {
    case MARKER_PERHAPS:
        return false;
    case MARKER_YES:
        bytes_consume(&p->held, OPEN_LEN);
        return true;
    default:
        p->at_edge = false;
        return true;
    }
}

static size_t without_trailing_space(const char *text, size_t len)
{
    while (len > 0 && is_space(text[len - 1])) {
        len--;
    }
    return len;
}

/* How many bytes at the end may be the beginning of </think>. */
static size_t open_end(const char *text, size_t len)
{
    for (size_t n = len < CLOSE_LEN - 1 ? len : CLOSE_LEN - 1; n > 0; n--) {
        if (memcmp(text + len - n, CLOSE, n) == 0) {
            return n;
        }
    }
    return 0;
}

static bool step_thinking(reply_parser *p)
{
    const char *text = p->held.data;
    size_t len = p->held.len;
    for (size_t i = 0; i + CLOSE_LEN <= len; i++) {
        if (text[i] == '<' && memcmp(text + i, CLOSE, CLOSE_LEN) == 0) {
            bytes_append(&p->reasoning, text, without_trailing_space(text, i));
            bytes_consume(&p->held, i + CLOSE_LEN);
            p->state = REPLY_CONTENT;
            p->at_edge = true;
            return true;
        }
    }
    size_t sure = without_trailing_space(text, len - open_end(text, len));
    bytes_append(&p->reasoning, text, sure);
    bytes_consume(&p->held, sure);
    return false;
}

static bool step_content(reply_parser *p)
{
    if (p->at_edge) {
        bytes_consume(&p->held, leading_space(&p->held));
        p->at_edge = p->held.len == 0;
    }
    bytes_append(&p->content, p->held.data, p->held.len);
    bytes_consume(&p->held, p->held.len);
    return false;
}

void reply_parser_push(reply_parser *p, const char *data, size_t len)
{
    bytes_append(&p->held, data, len);
    bool again = true;
    while (again && p->held.len > 0) {
        switch (p->state) {
        case REPLY_START:
            again = step_start(p);
            break;
        case REPLY_THINKING:
            again = p->at_edge ? step_thinking_edge(p) : step_thinking(p);
            break;
        default:
            again = step_content(p);
            break;
        }
    }
}

void reply_parser_finish(reply_parser *p)
{
    if (p->held.len == 0) {
        return;
    }
    if (p->state == REPLY_THINKING) {
        bytes_append(&p->reasoning, p->held.data, without_trailing_space(p->held.data, p->held.len));
    } else {
        bytes_append(&p->content, p->held.data, p->held.len);
    }
    bytes_consume(&p->held, p->held.len);
}
