#include "server/protocol/output/tool_scanner.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The first whose signs a template shows is taken. */
static const tool_form *const FORMS[] = {&TOOL_FORM_XML, &TOOL_FORM_HERMES};

static bool shows_all(const char *text, const char *const *signs)
{
    for (; *signs; signs++) {
        if (!strstr(text, *signs)) {
            return false;
        }
    }
    return true;
}

const tool_form *tool_form_of_template(const char *template_text)
{
    for (size_t i = 0; template_text && i < ARRAY_LEN(FORMS); i++) {
        if (shows_all(template_text, FORMS[i]->signs)) {
            return FORMS[i];
        }
    }
    return NULL;
}

const tool_form *tool_form_find(const char *name)
{
    if (strcmp(name, "qwen3_coder") == 0) { /* as vLLM calls it */
        return &TOOL_FORM_XML;
    }
    for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
        if (strcmp(FORMS[i]->name, name) == 0) {
            return FORMS[i];
        }
    }
    return NULL;
}

const char *tool_form_names(void)
{
    return "qwen3_xml (or qwen3_coder), hermes";
}

void tool_reader_init(tool_reader *r, const tool_form *form, const tool_set *tools, reply_pieces *out)
{
    memset(r, 0, sizeof *r);
    r->form = form;
    r->tools = tools;
    r->out = out;
    bytes_init(&r->value, SIZE_MAX / 2);
}

void tool_reader_deinit(tool_reader *r)
{
    bytes_deinit(&r->value);
}

bool tool_spec_sequence(arena *a, grammar_spec *out, const grammar_spec *parts, size_t n)
{
    grammar_spec *copy = arena_calloc(a, n, sizeof *copy);
    if (!copy) {
        return false;
    }
    memcpy(copy, parts, n * sizeof *copy);
    *out = (grammar_spec){.kind = SPEC_SEQUENCE, .items = copy, .n_items = n};
    return true;
}

bool tool_form_write_spec(const tool_form *form, arena *a, grammar_spec *out, const char *name,
                          const json *parameters, const char *path)
{
    char text[TOOL_NAME_BYTES * 2];
    const int n = snprintf(text, sizeof text, "%s%s%s", form->before_name, name, form->behind_name);
    const char *begin = n < (int)sizeof text ? arena_strdup(a, text, (size_t)n) : NULL;
    const grammar_spec parts[] = {{.kind = SPEC_MARKER, .text = TOOL_CALL},
                                  {.kind = SPEC_TEXT, .text = begin},
                                  {.kind = form->arguments, .schema = parameters, .path = path},
                                  {.kind = SPEC_TEXT, .text = form->after},
                                  {.kind = SPEC_MARKER, .text = TOOL_CALL_CLOSE}};
    return begin && tool_spec_sequence(a, out, parts, ARRAY_LEN(parts));
}

tool_step tool_match(const char *text, size_t len, const char *marker)
{
    size_t n = strlen(marker), shown = len < n ? len : n;
    if (shown > 0 && memcmp(text, marker, shown) != 0) {
        return TOOL_NO;
    }
    return shown == n ? TOOL_DONE : TOOL_MORE;
}

size_t tool_open_end(const char *text, size_t len, const char *marker)
{
    size_t most = strlen(marker) - 1;
    for (size_t n = len < most ? len : most; n > 0; n--) {
        if (memcmp(text + len - n, marker, n) == 0) {
            return n;
        }
    }
    return 0;
}

size_t tool_blank(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && strchr(" \n\r\t", text[n]) && text[n]) {
        n++;
    }
    return n;
}

void tool_begin(tool_reader *r, const char *name, size_t len)
{
    r->tool = tool_set_find(r->tools, name, len);
    r->state = 0;
    r->kinds = 0;
    r->n_members = 0;
    r->has_arguments = r->in_string = r->escaped = false;
    r->at_begin = true;
    r->depth = 0;
    bytes_clear(&r->value);
    reply_pieces_add(r->out, REPLY_BLANK, r->blank, r->n_blank);
    reply_pieces_add(r->out, REPLY_CALL, name, len);
}

void tool_arguments(tool_reader *r, const char *text, size_t len)
{
    reply_pieces_add(r->out, REPLY_ARGUMENTS, text, len);
}

void tool_arguments_of(tool_reader *r, bytes *text)
{
    tool_arguments(r, bytes_str(text), text->len);
    bytes_deinit(text);
}

/* Behind a call: takes the closing marker, and the blanks in front of it. TOOL_MORE: undecided. */
static tool_step read_close(bytes *held, tool_end end, const char *blank)
{
    size_t at = 0;
    while (at < held->len && held->data[at] && strchr(blank, held->data[at])) {
        at++;
    }
    const tool_step step = tool_match(bytes_str(held) + at, held->len - at, TOOL_CALL_CLOSE);
    if (step == TOOL_MORE && end == TOOL_GOES_ON) {
        return TOOL_MORE;
    }
    if (step != TOOL_NO) {
        bytes_consume(held, step == TOOL_DONE ? at + sizeof TOOL_CALL_CLOSE - 1 : held->len);
    }
    return TOOL_DONE;
}

tool_step tool_reader_body(tool_reader *r, bytes *held, tool_end end)
{
    tool_step step = TOOL_NO;
    while (step == TOOL_NO && r->state != TOOL_BEHIND_CALL) {
        step = r->form->step(r, held, end);
    }
    if (step == TOOL_NO) {
        return read_close(held, end, r->form->blank);
    }
    if (step == TOOL_MORE && end != TOOL_GOES_ON) {
        bytes_clear(held);
        r->form->end_call(r, end == TOOL_CUT ? REPLY_CALL_CUT : REPLY_CALL_END);
        return TOOL_DONE;
    }
    return step;
}

bool tool_is_name(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!isalnum(c) && !strchr("_-.:/", c)) {
            return false;
        }
    }
    return len > 0 && len <= TOOL_NAME_BYTES;
}
