/* think: the think block of an answer: how the families write one, and the block of one answer, which
 * is followed and closed when its budget is exhausted, or when the model would end its answer inside
 * it. Forms are constant tables, for any thread; a watch is the engine thread's, embedded by value.
 *
 *     const think_form *form = think_form_of_template(text);
 *     think_init(&w, form, starts_in_thinking, may_think, budget, close_ids, n_close);
 *     int32_t id = think_choose(&w, drawn, is_stop);       // the token to emit: the drawn one, or the next of the closing text
 *     think_accept(&w, token_bytes, len);          // what was said
 *
 * Closing tokens are emitted like drawn ones: they enter the sequence, the cache and the client's
 * text. What is emitted depends only on what was emitted and drawn before, so it is the same with
 * drafts and in a batch.
 *
 * As in server/protocol/output/reply_parser.h, an answer can think only at its start, but for one in
 * channels.
 */
#ifndef PARLEY_ENGINE_THINK_H
#define PARLEY_ENGINE_THINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { THINK_MARK_BYTES = 48 }; /* of the longest marker */

typedef struct think_form {
    const char *name;
    const char *const *aliases; /* what other servers call it; ends with NULL, may be NULL */
    const char *sign;           /* a template that contains it uses this form; NULL: those of no other */
    const char *open, *close;
    /* What templates write in front of reasoning, and behind it. */
    const char *opening, *closing;
    /* The tokens in these; ends with NULL. Control tokens among them must reach who reads an answer. */
    const char *const *tokens;
    /* OpenAI's harmony: an answer is messages in channels, each with a head; that of "analysis" is
     * reasoning and may come more than once. */
    bool has_channels;
    const char *text_opening; /* has_channels: what stands in front of an answer's text; NULL: nothing */
} think_form;

/* <think>, as most families write it. */
extern const think_form THINK_TAGS;

/* The form that a chat template uses; text NULL: THINK_TAGS. */
const think_form *think_form_of_template(const char *text);
/* By its name or an alias; NULL if there is none. */
const think_form *think_form_find(const char *name);
/* The names of all forms, for messages. */
const char *think_form_names(void);
/* Whether a control token of this text must reach who reads the answer. form NULL: none must. */
bool think_form_reads(const think_form *form, const char *text, size_t len);

typedef enum think_phase {
    THINK_START, /* the answer may begin with the form's open marker */
    THINK_OPEN,
    THINK_FORCED_CLOSE,
    THINK_CLOSED
} think_phase;

typedef struct think_watch {
    const think_form *form;
    think_phase phase;
    int32_t budget;       /* tokens that the blocks may have; -1: no limit */
    int32_t n_tokens;     /* of them */
    const int32_t *close; /* ids of the form's closing text; not owned */
    size_t n_close, n_closed;
    size_t n_matched; /* bytes of the open marker at the beginning of the answer */
    char tail[THINK_MARK_BYTES];
    size_t n_tail; /* the last bytes */
} think_watch;

/* Without closing ids a block is never closed. */
void think_init(think_watch *w, const think_form *form, bool starts_in_thinking, bool may_think,
                int32_t budget, const int32_t *close, size_t n_close);

/* The token to emit where the model drew `drawn`; is_stop: that one would end the answer. */
int32_t think_choose(think_watch *w, int32_t drawn, bool is_stop);

/* Ends the reasoning: the block is closed at the next token, or as soon as it opens. */
void think_end(think_watch *w);

/* A token with this text became part of the answer; len 0 for one that is never shown. */
void think_accept(think_watch *w, const char *text, size_t len);

#endif
