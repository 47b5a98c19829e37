/* tool_scanner: the tool-call scanner: extracts one tool call from an answer's text. Each model
 * family has its own syntax ("form"): a row of the table in tool_scanner.c, read by the file of its
 * kind. tool_scanner_json.c reads JSON between markers, tool_scanner_xml.c parameters between tags,
 * tool_scanner_literal.c calls with named values. Loop thread; works on bytes.
 *
 *     const tool_form *form = tool_form_of_template(template_text);     // or tool_form_find("hermes")
 *     tool_reader r; tool_reader_init(&r, form, tools, &pieces);
 *     // at a marker: form->head(&r, text, len, is_end, &used) says whether a call begins here
 *     // then tool_reader_body(&r, &held, end) until TOOL_DONE; arguments come out as pieces
 *     // then tool_reader_next(&r, &held, end, true): does the list that the call stands in go on?
 *     tool_reader_deinit(&r);
 *
 * The form of a checkpoint is detected from its chat template, never from its name.
 */
#ifndef PARLEY_SERVER_PROTOCOL_OUTPUT_TOOL_SCANNER_H
#define PARLEY_SERVER_PROTOCOL_OUTPUT_TOOL_SCANNER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "engine/chat.h"
#include "server/protocol/output/reply_pieces.h"
#include "server/protocol/output/tool_set.h"

enum { TOOL_NAME_BYTES = 256, TOOL_MARKERS = 3, TOOL_CLOSERS = 3 };

/* How the text ends. */
typedef enum tool_end {
    TOOL_GOES_ON, /* more may come */
    TOOL_ENDED,   /* the model ended its answer: what is open is closed */
    TOOL_CUT      /* the answer was cut off: open calls stay incomplete */
} tool_end;

typedef enum tool_step {
    TOOL_MORE, /* undecided: needs more text */
    TOOL_NO,   /* head: no call */
    TOOL_DONE  /* head: a call begins; body: it is over */
} tool_step;

typedef struct tool_form tool_form;

/* One call being read. The members behind `out` belong to the form. */
typedef struct tool_reader {
    const tool_form *form;
    const tool_set *tools;
    reply_pieces *out;
    const tool_def *tool; /* NULL: a name that is not among the tools */
    const char *blank;    /* for head: the white space in front of the marker */
    size_t n_blank;
    int state;
    unsigned kinds;   /* of the value being read */
    bytes value;      /* gathered until it is whole */
    size_t n_members; /* of the arguments so far */
    bool has_arguments, in_string, escaped, at_begin;
    bool is_named;   /* the name stood in front of the arguments, not beside them */
    bool in_list;    /* further calls may stand beside this one, without a marker */
    bool in_section; /* the marker around several calls is open */
    int depth;
    unsigned char open[64]; /* closing brackets that are due */
} tool_reader;

struct tool_form {
    const char *name;
    const char *const *aliases; /* what other servers call it; ends with NULL, may be NULL */
    /* A template that contains all of these uses this form. NULL: none does. */
    const char *const *signs;
    const void *syntax; /* what the file that reads it must know */
    /* A call begins with one of these; NULL behind the last. */
    const char *markers[TOOL_MARKERS + 1];
    /* The first so many of them are no words: with these a call may begin anywhere in a text, not just
     * on its own line. */
    size_t n_anywhere;
    /* Control tokens inside of a call that must reach the reader; ends with NULL, may be NULL. Markers
     * and closers do so without being named here. */
    const char *const *inner;
    /* Looks at text[0..len), which starts with a marker. TOOL_DONE: the name is known, was added to
     * r->out, and *used bytes were understood. Keeps nothing between calls. With r->in_list it stands
     * behind a separator, and markers may be missing. */
    tool_step (*head)(tool_reader *r, const char *text, size_t len, bool is_end, size_t *used);
    /* Takes what it understands from `held`, and adds arguments to r->out. TOOL_NO: r->state changed,
     * or is TOOL_BEHIND_CALL as the call has ended. TOOL_DONE: what is left in `held` lies behind it. */
    tool_step (*step)(tool_reader *r, bytes *held, tool_end end);
    /* Adds how the call ended: REPLY_CALL_END, and what is missing of the arguments, or
     * REPLY_CALL_CUT. */
    tool_step (*end_call)(tool_reader *r, reply_kind how);
    const char *blank; /* what may stand between a call and its closing marker */
    /* Closing markers, any of which may follow; the last one of a form that has sections closes these; NULL behind it. */
    const char *closers[TOOL_CLOSERS + 1];
    char separator, list_end; /* of calls in a list; 0: there is none */
    /* A forced call: before, the name, behind, the arguments, after. `all` and `all_close` stand around
     * all of them, `between` between two (NULL: there can be one only). Markers, closers and `inner`
     * tokens in these texts are written as tokens; NULL: nothing. */
    const char *before_name, *behind_name, *after, *all, *all_close, *between;
    grammar_spec_kind arguments;
    const grammar_marks *marks; /* SPEC_PARAMETERS: how each is written; NULL: as Qwen3.5 does */
};

/* r->state of every form whose call has ended; a call begins with 0. */
enum { TOOL_BEHIND_CALL = -1 };

/* Read by tool_scanner_xml.c. */
extern const tool_form TOOL_FORM_XML, TOOL_FORM_SEED, TOOL_FORM_MINIMAX, TOOL_FORM_DEEPSEEK_V32,
    TOOL_FORM_GLM;
/* Read by tool_scanner_json.c. */
extern const tool_form TOOL_FORM_HERMES, TOOL_FORM_MISTRAL, TOOL_FORM_MISTRAL_LIST, TOOL_FORM_LLAMA3_JSON,
    TOOL_FORM_HARMONY, TOOL_FORM_DEEPSEEK_V3, TOOL_FORM_DEEPSEEK_V31, TOOL_FORM_KIMI, TOOL_FORM_GRANITE,
    TOOL_FORM_NEMOTRON;
/* Read by tool_scanner_literal.c. */
extern const tool_form TOOL_FORM_GEMMA4, TOOL_FORM_LFM2, TOOL_FORM_PYTHONIC;

/* The form that a chat template uses; NULL if unknown. template_text may be NULL. */
const tool_form *tool_form_of_template(const char *template_text);
/* By its name or an alias; NULL if there is none. */
const tool_form *tool_form_find(const char *name);
/* The names of all forms, for messages. */
const char *tool_form_names(void);

/* Whether a control token of this text must reach the reader. */
bool tool_form_reads(const tool_form *form, const char *text, size_t len);

/* A call as a grammar, for answers that must be one: `name` is the function's, `parameters` its
 * schema (or NULL). Everything is taken from the arena; false if out of memory. */
bool tool_form_write_spec(const tool_form *form, arena *a, grammar_spec *out, const char *name,
                          const json *parameters, const char *path);
/* An answer of one such call, or with `several` of one or more; n of them are offered. */
bool tool_form_write_answer(const tool_form *form, arena *a, grammar_spec *out, const grammar_spec *calls,
                            size_t n, bool several);

/* For calls of this form (NULL: none); what they say goes to `out`. Nothing is copied. */
void tool_reader_init(tool_reader *r, const tool_form *form, const tool_set *tools, reply_pieces *out);
void tool_reader_deinit(tool_reader *r);
/* Behind a head: takes what it understands from `held`. TOOL_DONE: what is left in `held` lies behind
 * the arguments. Never TOOL_MORE unless the end is TOOL_GOES_ON. */
tool_step tool_reader_body(tool_reader *r, bytes *held, tool_end end);
/* Behind a body: takes the closing markers. TOOL_DONE: the next call of a list begins, and its head
 * was read (never without goes_on); TOOL_NO: what is left in `held` is text. Never TOOL_MORE unless the
 * end is TOOL_GOES_ON. */
tool_step tool_reader_next(tool_reader *r, bytes *held, tool_end end, bool goes_on);

/* ---- for the forms ---- */

/* A sequence of n parts, copied to the arena; false if out of memory. */
bool tool_spec_sequence(arena *a, grammar_spec *out, const grammar_spec *parts, size_t n);
/* The markers that stand around a call in the forms of Qwen and others. */
#define TOOL_CALL       "<tool_call>"
#define TOOL_CALL_CLOSE "</tool_call>"

/* Compares text[0..len) with a marker: TOOL_DONE if it starts with it, TOOL_MORE if it may,
 * TOOL_NO. */
tool_step tool_match(const char *text, size_t len, const char *marker);
/* How many bytes at the end of the text may be the beginning of the marker. */
size_t tool_open_end(const char *text, size_t len, const char *marker);
/* Leading white space. */
size_t tool_blank(const char *text, size_t len);
/* Begins a call of this name, behind the white space in front of it, and looks up its tool. */
void tool_begin(tool_reader *r, const char *name, size_t len);
void tool_arguments(tool_reader *r, const char *text, size_t len); /* hands on a piece of the arguments */
/* Hands on what was gathered in `text`, and frees it. */
void tool_arguments_of(tool_reader *r, bytes *text);
/* Empties what was gathered; whoever reads the pieces hears of it if that had not found memory. */
void tool_clear(tool_reader *r, bytes *text);
/* Arguments that were not gone on with: "{}" if there were none, then how the call ended. */
tool_step tool_end_plain(tool_reader *r, reply_kind how);
/* Whether text can be the name of a function. */
bool tool_is_name(const char *text, size_t len);

#endif
