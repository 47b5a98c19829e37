/* think: watches the think block of one answer and closes it when its budget is spent, or when the model would end
 * its answer inside of it. Engine thread; embedded by value.
 *
 *     think_init(&w, starts_in_thinking, may_think, budget, close_ids, n_close);
 *     id = think_choose(&w, drawn, is_stop);       // what is said: the drawn token, or the next of the closing text
 *     think_accept(&w, token_bytes, len);          // what was said
 *
 * Closing tokens are said like drawn ones: they enter the sequence, the cache and the client's text. What is said
 * depends on nothing but what was said and drawn before, so it is the same with drafts and in a batch.
 *
 * As in server/reply_parser.h, an answer thinks at its beginning or not at all.
 */
#ifndef PARLEY_ENGINE_THINK_H
#define PARLEY_ENGINE_THINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text that closes a block, as templates write it. */
#define THINK_CLOSING "\n</think>\n\n"

typedef enum think_phase {
    THINK_START, /* the answer may begin with <think> */
    THINK_OPEN,
    THINK_CLOSING_IT,
    THINK_OVER
} think_phase;

typedef struct think_watch {
    think_phase phase;
    int32_t budget;       /* tokens that the block may have; -1: no limit */
    int32_t n_tokens;     /* of the block */
    const int32_t *close; /* ids of THINK_CLOSING; not owned */
    size_t n_close, n_closed;
    size_t n_matched; /* bytes of <think> at the beginning of the answer */
    uint64_t tail;    /* the last eight bytes */
} think_watch;

/* Without closing ids a block is never closed. */
void think_init(think_watch *w, bool starts_in_thinking, bool may_think, int32_t budget, const int32_t *close,
                size_t n_close);

/* The token to say where the model drew `drawn`; is_stop: that would end the answer. */
int32_t think_choose(think_watch *w, int32_t drawn, bool is_stop);

/* The block has had enough: it is closed at the next token, or as soon as it opens. */
void think_end(think_watch *w);

/* A token with this text became part of the answer; len 0 for one that is never shown. */
void think_accept(think_watch *w, const char *text, size_t len);

#endif
