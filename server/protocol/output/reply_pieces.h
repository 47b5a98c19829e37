/* reply_pieces: the parts of an answer in order: reasoning, content, tool calls. A growing list;
 * one thread at a time; embedded by value.
 *
 *     reply_pieces p; reply_pieces_init(&p);
 *     reply_pieces_add(&p, REPLY_CONTENT, "Hello", 5);
 *     for (size_t i = 0; i < p.n; i++) { puts(bytes_str(&p.items[i].text)); }
 *     reply_pieces_clear(&p);  reply_pieces_deinit(&p);
 *
 * Text is appended to the last piece if that is of the same kind, so a list does not depend on how
 * text was cut.
 */
#ifndef PARLEY_SERVER_PROTOCOL_OUTPUT_REPLY_PIECES_H
#define PARLEY_SERVER_PROTOCOL_OUTPUT_REPLY_PIECES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

typedef enum reply_kind {
    REPLY_REASONING,
    REPLY_CONTENT,
    REPLY_BLANK,     /* white space before a call: never shown, but stop strings may match in it */
    REPLY_CALL,      /* a call begins; the text is the function's name */
    REPLY_ARGUMENTS, /* of the call that began last: a piece of a JSON object's text */
    REPLY_CALL_END,  /* the call is complete; no text */
    REPLY_CALL_CUT,  /* the answer ended inside the call; no text */
    REPLY_ITEM /* of a tool that this server runs: an item of a Responses answer, as JSON, whole or as far as it is known */
} reply_kind;

typedef struct reply_piece {
    reply_kind kind;
    bytes text;
} reply_piece;

typedef struct reply_pieces {
    reply_piece *items;
    size_t n, cap; /* items beyond n keep their memory for the next use */
    bool failed;   /* out of memory: something is missing */
} reply_pieces;

void reply_pieces_init(reply_pieces *p);   /* none */
void reply_pieces_deinit(reply_pieces *p); /* frees them */
/* Empties the list and clears `failed`. */
void reply_pieces_clear(reply_pieces *p);

/* Ignores empty text, unless the kind has none. */
void reply_pieces_add(reply_pieces *p, reply_kind kind, const char *text, size_t len);

#endif
