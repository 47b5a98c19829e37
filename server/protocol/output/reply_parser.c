#include "server/protocol/output/reply_parser.h"

#include <stdint.h>
#include <string.h>

static const char OPEN[] = "<think>";
static const char CLOSE[] = "</think>";
enum { OPEN_LEN = sizeof OPEN - 1, CLOSE_LEN = sizeof CLOSE - 1 };

void reply_parser_init(reply_parser *p, const reply_rules *rules)
{
    const bool has_tools = rules->form && rules->tools;
    memset(p, 0, sizeof *p);
    p->state = rules->starts_in_thinking ? IN_THINKING : rules->may_think ? IN_START : IN_CONTENT;
    p->at_edge = rules->starts_in_thinking && !rules->continues;
    p->one_call = rules->one_call;
    bytes_init(&p->held, SIZE_MAX / 2);
    prose_init(&p->prose);
    reply_pieces_init(&p->pieces);
    tool_reader_init(&p->reader, has_tools ? rules->form : NULL, rules->tools, &p->pieces);
}

void reply_parser_deinit(reply_parser *p)
{
    bytes_deinit(&p->held);
    reply_pieces_deinit(&p->pieces);
    tool_reader_deinit(&p->reader);
}

bool reply_parser_is_thinking(const reply_parser *p)
{
    return p->state == IN_THINKING;
}

bool reply_parser_is_content(const reply_parser *p)
{
    return p->state == IN_CONTENT || p->state == IN_START;
}

static size_t without_trailing_space(const char *text, size_t len)
{
    while (len > 0 && strchr(" \n\r\t", text[len - 1]) && text[len - 1]) {
        len--;
    }
    return len;
}

/* Hands on n held bytes. */
static void emit(reply_parser *p, reply_kind kind, size_t n)
{
    reply_pieces_add(&p->pieces, kind, bytes_str(&p->held), n);
    bytes_consume(&p->held, n);
    p->seen = p->seen > n ? p->seen - n : 0;
}

/* Each step returns true if the state changed and the rest of `held` is to be looked at again. */
static bool step_start(reply_parser *p)
{
    size_t space = tool_blank(p->held.data, p->held.len);
    switch (tool_match(p->held.data + space, p->held.len - space, OPEN)) {
    case TOOL_MORE:
        return false;
    case TOOL_DONE:
        bytes_consume(&p->held, space + OPEN_LEN);
        p->state = IN_THINKING;
        p->at_edge = true;
        return true;
    default:
        p->state = IN_CONTENT;
        p->at_edge = false;
        return true;
    }
}

/* The beginning of the reasoning: drops white space, and a marker that repeats the prompt's. */
static bool step_thinking_edge(reply_parser *p)
{
    bytes_consume(&p->held, tool_blank(p->held.data, p->held.len));
    switch (tool_match(p->held.data, p->held.len, OPEN)) {
    case TOOL_MORE:
        return false;
    case TOOL_DONE:
        bytes_consume(&p->held, OPEN_LEN);
        return true;
    default:
        p->at_edge = false;
        return true;
    }
}

static bool step_thinking(reply_parser *p)
{
    const char *text = p->held.data;
    size_t len = p->held.len;
    for (size_t i = 0; i + CLOSE_LEN <= len; i++) {
        if (text[i] == '<' && memcmp(text + i, CLOSE, CLOSE_LEN) == 0) {
            size_t n = without_trailing_space(text, i);
            emit(p, REPLY_REASONING, n);
            bytes_consume(&p->held, i - n + CLOSE_LEN);
            p->state = IN_CONTENT;
            p->at_edge = true;
            return true;
        }
    }
    emit(p, REPLY_REASONING, without_trailing_space(text, len - tool_open_end(text, len, CLOSE)));
    return false;
}

/* ---- content and calls ---- */

/* Does a marker of a call stand at text? *index: which. */
static tool_step match_marker(const tool_form *form, const char *text, size_t len, size_t *index)
{
    tool_step step = TOOL_NO;
    for (size_t i = 0; i < TOOL_MARKERS && form->markers[i] && step != TOOL_DONE; i++) {
        tool_step one = tool_match(text, len, form->markers[i]);
        step = one == TOOL_NO ? step : one;
        *index = i;
    }
    return step;
}

/* Looks for a call at the byte that the prose sees next. TOOL_DONE: it begins, and what is held
 * lies inside of it. */
static tool_step find_call(reply_parser *p, bool is_end)
{
    const tool_form *form = p->reader.form;
    size_t used = 0, marker = 0;
    tool_step step = match_marker(form, p->held.data + p->seen, p->held.len - p->seen, &marker);
    if (step == TOOL_NO) {
        return TOOL_NO;
    }
    emit(p, REPLY_CONTENT, without_trailing_space(p->held.data, p->seen));
    const bool is_word = marker >= form->n_anywhere;
    if (step == TOOL_DONE && is_word && (p->quoted || !prose_may_begin_call(&p->prose))) {
        p->quoted = true;
        p->quote_left = strlen(form->markers[marker]);
        return TOOL_NO;
    }
    if (step == TOOL_DONE) {
        p->reader.blank = p->held.data;
        p->reader.n_blank = p->seen;
        step = form->head(&p->reader, p->held.data + p->seen, p->held.len - p->seen, is_end, &used);
    }
    if (step == TOOL_DONE) {
        bytes_consume(&p->held, p->seen + used);
        p->seen = 0;
        p->state = IN_TOOL_CALL;
    }
    return step == TOOL_MORE && is_end ? TOOL_NO : step;
}

/* Walks over one byte that is text. */
static void pass_byte(reply_parser *p)
{
    char c = p->held.data[p->seen++];
    prose_add(&p->prose, c);
    if (p->quote_left > 0) {
        p->quote_left--;
    } else if (tool_blank(&c, 1) == 0) {
        p->quoted = false;
    }
}

static bool step_content(reply_parser *p, bool is_end)
{
    if (p->at_edge) {
        bytes_consume(&p->held, tool_blank(p->held.data, p->held.len));
        p->at_edge = p->held.len == 0;
    }
    if (!p->reader.form) {
        emit(p, REPLY_CONTENT, p->held.len);
        return false;
    }
    while (p->seen < p->held.len) {
        tool_step step = find_call(p, is_end);
        if (step != TOOL_NO) {
            return step == TOOL_DONE;
        }
        pass_byte(p);
    }
    emit(p, REPLY_CONTENT, is_end ? p->held.len : without_trailing_space(bytes_str(&p->held), p->held.len));
    return false;
}

static bool step_call(reply_parser *p, tool_end end)
{
    if (!p->behind_call && tool_reader_body(&p->reader, &p->held, end) != TOOL_DONE) {
        return false;
    }
    const tool_step next = tool_reader_next(&p->reader, &p->held, end, !p->one_call);
    p->behind_call = next == TOOL_MORE;
    if (next != TOOL_NO) {
        return next == TOOL_DONE;
    }
    p->state = IN_CONTENT;
    p->at_edge = true;
    p->seen = 0;
    prose_init(&p->prose);
    p->stopped = p->one_call;
    return true;
}

static void run(reply_parser *p, tool_end end)
{
    bool again = true;
    while (again && !p->stopped && (p->held.len > 0 || (end != TOOL_GOES_ON && p->state == IN_TOOL_CALL))) {
        switch (p->state) {
        case IN_START:
            again = step_start(p);
            break;
        case IN_THINKING:
            again = p->at_edge ? step_thinking_edge(p) : step_thinking(p);
            break;
        case IN_CONTENT:
            again = step_content(p, end != TOOL_GOES_ON);
            break;
        case IN_TOOL_CALL:
            again = step_call(p, end);
            break;
        }
    }
}

void reply_parser_push(reply_parser *p, const char *data, size_t len)
{
    if (!p->stopped) {
        bytes_append(&p->held, data, len);
        run(p, TOOL_GOES_ON);
    }
}

void reply_parser_finish(reply_parser *p, bool was_cut)
{
    if (p->state == IN_START) {
        p->state = IN_CONTENT; /* the beginning of a marker that never came */
    }
    if (p->state == IN_THINKING) {
        emit(p, REPLY_REASONING, without_trailing_space(bytes_str(&p->held), p->held.len));
    } else {
        run(p, was_cut ? TOOL_CUT : TOOL_ENDED);
    }
    bytes_clear(&p->held);
    p->seen = 0;
}
