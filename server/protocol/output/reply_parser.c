#include "server/protocol/output/reply_parser.h"

#include <stdint.h>
#include <string.h>

void reply_parser_init(reply_parser *p, const reply_rules *rules)
{
    const bool has_tools = rules->form && rules->tools && !rules->is_told;
    memset(p, 0, sizeof *p);
    p->think = rules->think ? rules->think : &THINK_TAGS;
    p->tools = has_tools ? rules->tools : NULL;
    p->state = rules->starts_in_thinking                     ? IN_THINKING
               : p->think->has_channels && !rules->continues ? IN_HEAD
               : rules->may_think                            ? IN_START
                                                             : IN_CONTENT;
    p->at_edge = rules->starts_in_thinking && !rules->continues;
    p->one_call = rules->one_call;
    p->is_told = rules->is_told;
    p->keeps_space = rules->is_told && rules->tools;
    bytes_init(&p->held, SIZE_MAX);
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

/* Drops what is held; whoever reads hears of it if that had not found memory. */
static void drop_held(reply_parser *p)
{
    tool_clear(&p->reader, &p->held);
}

/* Each step returns true if the state changed and the rest of `held` is to be looked at again. */
static bool step_start(reply_parser *p)
{
    size_t space = tool_blank(p->held.data, p->held.len);
    switch (tool_match(p->held.data + space, p->held.len - space, p->think->open)) {
    case TOOL_MORE:
        return false;
    case TOOL_DONE:
        bytes_consume(&p->held, space + strlen(p->think->open));
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
    switch (tool_match(p->held.data, p->held.len, p->think->open)) {
    case TOOL_MORE:
        return false;
    case TOOL_DONE:
        bytes_consume(&p->held, strlen(p->think->open));
        return true;
    default:
        p->at_edge = false;
        return true;
    }
}

static bool step_thinking(reply_parser *p)
{
    const char *text = p->held.data, *close = p->think->close;
    const size_t len = p->held.len, close_len = strlen(close);
    for (size_t i = 0; i + close_len <= len; i++) {
        if (text[i] == close[0] && memcmp(text + i, close, close_len) == 0) {
            size_t n = without_trailing_space(text, i);
            emit(p, REPLY_REASONING, n);
            bytes_consume(&p->held, i - n + close_len);
            p->state = IN_CONTENT;
            p->at_edge = true;
            return true;
        }
    }
    emit(p, REPLY_REASONING, without_trailing_space(text, len - tool_open_end(text, len, close)));
    return false;
}

/* ---- content and calls ---- */

/* Does a marker of a call stand at text? *index: which. */
static tool_step match_marker(const tool_form *form, const char *text, size_t len, size_t *index)
{
    tool_step step = TOOL_NO;
    for (size_t i = 0; form->markers[i] && step != TOOL_DONE; i++) {
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
        const bool keeps = p->keeps_space && !is_end;
        emit(p, REPLY_CONTENT,
             keeps ? without_trailing_space(bytes_str(&p->held), p->held.len) : p->held.len);
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

/* ---- channels ---- */

static const char MESSAGE[] = "<|message|>", CHANNEL[] = "<|channel|>",
                  RECIPIENT[] = " to=", FUNCTIONS[] = "functions.";
/* What ends a message; the last two begin the head of the next. */
static const char *const ENDS[] = {"<|end|>", "<|call|>", "<|return|>", "<|start|>", CHANNEL};
enum { N_ENDS = 5, N_TAKEN_ENDS = 3, HEAD_BYTES = 1024 };

/* The first mark in text[0..len) that ends a message; len if there is none. *open: bytes at the end that
 * may be the begin of one. */
static size_t find_end(const char *text, size_t len, size_t *which, size_t *open)
{
    *open = 0;
    *which = N_ENDS;
    for (size_t i = 0; i < len; i++) {
        for (size_t k = 0; text[i] == '<' && k < N_ENDS; k++) {
            const tool_step step = tool_match(text + i, len - i, ENDS[k]);
            if (step == TOOL_DONE) {
                *which = k;
                return i;
            }
            *open = step == TOOL_MORE && *open == 0 ? len - i : *open;
        }
    }
    return len;
}

/* A word of the head: what stands behind `mark`, up to white space or the next mark. */
static const char *find_word(const char *head, size_t len, const char *mark, size_t *n)
{
    const size_t n_mark = strlen(mark);
    for (size_t i = 0; i + n_mark <= len; i++) {
        if (memcmp(head + i, mark, n_mark) == 0) {
            const char *word = head + i + n_mark;
            for (*n = 0; word + *n < head + len && word[*n] != '<' && !tool_blank(word + *n, 1); ++*n) {
            }
            return word;
        }
    }
    *n = 0;
    return NULL;
}

static bool is_word(const char *word, size_t n, const char *text)
{
    return n == strlen(text) && memcmp(word, text, n) == 0;
}

static void begin_text(reply_parser *p, reply_state state)
{
    p->state = state;
    p->at_edge = true;
    p->needs_gap = state == IN_THINKING ? p->has_reasoning : p->has_content;
}

/* Hands on n held bytes of a message, behind an empty line if another of its kind precedes it. */
static void emit_text(reply_parser *p, size_t n)
{
    const reply_kind kind = p->state == IN_THINKING ? REPLY_REASONING : REPLY_CONTENT;
    bool *has = p->state == IN_THINKING ? &p->has_reasoning : &p->has_content;
    if (n > 0) {
        reply_pieces_add(&p->pieces, kind, "\n\n", p->needs_gap ? 2 : 0);
        p->needs_gap = false;
        *has = true;
    }
    emit(p, kind, n);
}

/* The head of a message is held whole: what is said in it, and to whom? */
static void read_head(reply_parser *p, size_t head_len)
{
    const char *head = bytes_str(&p->held);
    size_t n_channel = 0, n_to = 0;
    const char *channel = find_word(head, head_len, CHANNEL, &n_channel);
    const char *to = find_word(head, head_len, RECIPIENT, &n_to);
    const size_t prefix = sizeof FUNCTIONS - 1;
    bool is_call = to && p->tools;
    if (is_call && n_to > prefix && memcmp(to, FUNCTIONS, prefix) == 0) {
        to += prefix;
        n_to -= prefix;
    } else {
        is_call = is_call && tool_set_find(p->tools, to, n_to);
    }
    if (is_call && tool_is_name(to, n_to)) {
        p->reader.form = &TOOL_FORM_HARMONY;
        tool_begin(&p->reader, to, n_to);
        p->reader.is_named = true;
        p->state = IN_TOOL_CALL;
    } else {
        begin_text(p, channel && is_word(channel, n_channel, "analysis") ? IN_THINKING : IN_CONTENT);
    }
    bytes_consume(&p->held, head_len + sizeof MESSAGE - 1);
    p->seen = 0;
}

/* What should be a head and is none is text, with the mark that it begins with; such a mark has ended no
 * message, so that the text in front of it goes on. */
static void take_stray(reply_parser *p)
{
    begin_text(p, IN_CONTENT);
    bytes_consume(&p->held, tool_blank(p->held.data, p->held.len));
    for (size_t i = N_TAKEN_ENDS; i < N_ENDS; i++) { /* the others were taken before */
        if (tool_match(bytes_str(&p->held), p->held.len, ENDS[i]) == TOOL_DONE) {
            p->needs_gap = false;
            emit_text(p, strlen(ENDS[i]));
            p->at_edge = false;
        }
    }
}

/* Whether what is held may be a head, and its length if it is whole. */
static tool_step match_head(const reply_parser *p, size_t *len)
{
    static const char *const BEGINS[] = {"<|start|>", CHANNEL, "<|constrain|>", MESSAGE, "assistant", "to="};
    const char *text = bytes_str((bytes *)&p->held);
    const size_t blank = tool_blank(text, p->held.len), n = p->held.len;
    tool_step begins = TOOL_NO;
    for (size_t i = 0; i < ARRAY_LEN(BEGINS) && begins != TOOL_DONE; i++) {
        const tool_step one = tool_match(text + blank, n - blank, BEGINS[i]);
        begins = one == TOOL_NO ? begins : one;
    }
    for (*len = 0; begins == TOOL_DONE && *len < n; ++*len) {
        const tool_step message = text[*len] == '<' ? tool_match(text + *len, n - *len, MESSAGE) : TOOL_NO;
        if (message != TOOL_NO) { /* what may become one is waited for, also beyond the limit */
            return message;
        }
        if (text[*len] == '\n' || *len > HEAD_BYTES) {
            return TOOL_NO;
        }
    }
    return begins == TOOL_NO ? TOOL_NO : TOOL_MORE;
}

static bool step_head(reply_parser *p, tool_end end_of_text)
{
    size_t len = 0, which = 0, open = 0;
    const size_t blank = tool_blank(p->held.data, p->held.len);
    const size_t end = find_end(p->held.data, p->held.len, &which, &open);
    if (end == blank && which < N_TAKEN_ENDS) {
        bytes_consume(&p->held, end + strlen(ENDS[which])); /* behind a call */
        return true;
    }
    const tool_step step = match_head(p, &len);
    if (step == TOOL_DONE) {
        read_head(p, len);
        return true;
    }
    const bool is_bare =
        !memchr(p->held.data, '<', p->held.len) || memchr(p->held.data + blank, ' ', p->held.len - blank);
    if (p->held.len > blank && (step == TOOL_NO || (end_of_text == TOOL_ENDED && is_bare))) {
        take_stray(p);
        return true;
    }
    if (end_of_text != TOOL_GOES_ON) {
        drop_held(p); /* a head without a message says nothing */
    }
    return false;
}

/* The text of a message, up to what ends it. */
static bool step_message(reply_parser *p, bool is_end)
{
    if (p->at_edge) {
        bytes_consume(&p->held, tool_blank(p->held.data, p->held.len));
        p->at_edge = p->held.len == 0;
        if (p->at_edge) {
            return false;
        }
    }
    size_t which = 0, open = 0;
    const size_t end = find_end(p->held.data, p->held.len, &which, &open);
    const bool ends = which < N_ENDS;
    size_t n = ends || is_end ? end : end - open;
    if (p->state == IN_THINKING || !is_end || ends) {
        n = without_trailing_space(p->held.data, n);
    }
    emit_text(p, n);
    if (ends) {
        bytes_consume(&p->held, end - n + (which < N_TAKEN_ENDS ? strlen(ENDS[which]) : 0));
        p->state = IN_HEAD;
    }
    return ends;
}

/* Where a call has ended the next head is looked for. */
static bool step_channel_call(reply_parser *p, tool_end end)
{
    if (tool_reader_body(&p->reader, &p->held, end) != TOOL_DONE) {
        return false;
    }
    p->state = IN_HEAD;
    p->has_content = p->has_reasoning = false;
    p->stopped = p->one_call;
    return true;
}

static bool step_channels(reply_parser *p, tool_end end)
{
    const bool is_end = end != TOOL_GOES_ON;
    return p->state == IN_HEAD        ? step_head(p, end)
           : p->state == IN_TOOL_CALL ? step_channel_call(p, end)
                                      : step_message(p, is_end);
}

static void run(reply_parser *p, tool_end end)
{
    bool again = true;
    while (again && !p->stopped && (p->held.len > 0 || (end != TOOL_GOES_ON && p->state == IN_TOOL_CALL))) {
        switch (p->think->has_channels ? IN_HEAD : p->state) {
        case IN_HEAD:
            again = step_channels(p, end);
            break;
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

/* Reasoning has ended, if there was any: what follows is something else. */
static void end_thinking(reply_parser *p)
{
    if (p->state == IN_THINKING && p->told_thinking) {
        drop_held(p); /* white space behind it */
        p->state = IN_CONTENT;
        p->at_edge = true;
        p->told_thinking = false;
    }
}

static void add_reasoning(reply_parser *p, const char *data, size_t len)
{
    if (p->state != IN_THINKING) { /* at the start, or between texts and calls */
        emit(p, REPLY_CONTENT, without_trailing_space(bytes_str(&p->held), p->held.len));
        drop_held(p);
        p->state = IN_THINKING;
        p->at_edge = p->told_thinking = true;
    }
    bytes_append(&p->held, data, len);
    if (p->at_edge) {
        bytes_consume(&p->held, tool_blank(bytes_str(&p->held), p->held.len));
        p->at_edge = p->held.len == 0;
    }
    emit(p, REPLY_REASONING, without_trailing_space(bytes_str(&p->held), p->held.len));
}

/* A call begins: the text in front of it is complete. */
static void begin_call(reply_parser *p, const char *name, size_t len)
{
    if (p->state == IN_THINKING) { /* a think block that was found, and not closed */
        emit(p, REPLY_REASONING, without_trailing_space(bytes_str(&p->held), p->held.len));
        drop_held(p);
    }
    emit(p, REPLY_CONTENT, without_trailing_space(bytes_str(&p->held), p->held.len));
    if (!p->at_edge) {
        emit(p, REPLY_BLANK, p->held.len);
    }
    drop_held(p);
    p->state = IN_CONTENT;
    p->at_edge = true; /* white space behind it is dropped */
    p->told_call = true;
    reply_pieces_add(&p->pieces, REPLY_CALL, name, len);
}

void reply_parser_add(reply_parser *p, reply_kind kind, const char *data, size_t len)
{
    if (p->stopped) {
        return;
    }
    if (kind == REPLY_REASONING) {
        if (len > 0) {
            add_reasoning(p, data, len);
        }
        return;
    }
    if (kind == REPLY_CONTENT) {
        if (len > 0) {
            end_thinking(p);
            reply_parser_push(p, data, len);
        }
        return;
    }
    end_thinking(p);
    if (kind == REPLY_CALL) {
        begin_call(p, data, len);
    } else {
        reply_pieces_add(&p->pieces, kind, data, len);
        p->told_call = p->told_call && kind != REPLY_CALL_END;
        p->stopped = kind == REPLY_CALL_END && p->one_call;
    }
}

void reply_parser_finish(reply_parser *p, bool was_cut)
{
    if (p->state == IN_START) {
        p->state = IN_CONTENT; /* the beginning of a marker that never came */
    }
    if (p->state == IN_THINKING && !p->think->has_channels) {
        emit(p, REPLY_REASONING, without_trailing_space(bytes_str(&p->held), p->held.len));
    } else {
        run(p, was_cut ? TOOL_CUT : TOOL_ENDED);
    }
    drop_held(p);
    p->seen = 0;
    if (p->told_call) {
        reply_pieces_add(&p->pieces, REPLY_CALL_CUT, NULL, 0);
        p->told_call = false;
    }
}
