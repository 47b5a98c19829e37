/* think: tracks the think block of one answer and closes it when its budget is exhausted, or when
 * the model would end its answer inside it. Engine thread; embedded by value.
 *
 *     think_init(&w, starts_in_thinking, may_think, budget, close_ids, n_close);
 *     int32_t id = think_choose(&w, drawn, is_stop);       // the token to emit: the drawn one, or the next of the closing text
 *     think_accept(&w, token_bytes, len);          // what was said
 *
 * Closing tokens are emitted like drawn ones: they enter the sequence, the cache and the client's
 * text. What is emitted depends only on what was emitted and drawn before, so it is the same with
 * drafts and in a batch.
 *
 * As in server/protocol/output/reply_parser.h, an answer can think only at its start.
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
    THINK_FORCED_CLOSE,
    THINK_CLOSED
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

/* The token to emit where the model drew `drawn`; is_stop: that one would end the answer. */
int32_t think_choose(think_watch *w, int32_t drawn, bool is_stop);

/* Ends the reasoning: the block is closed at the next token, or as soon as it opens. */
void think_end(think_watch *w);

/* A token with this text became part of the answer; len 0 for one that is never shown. */
void think_accept(think_watch *w, const char *text, size_t len);

#endif
