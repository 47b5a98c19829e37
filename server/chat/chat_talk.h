/* chat_talk: what was said so far: a system prompt, questions with images and videos, answers. One
 * thread.
 *
 *     chat_talk *t = chat_talk_create();
 *     err = chat_talk_attach(t, "cat.png", "image", &detail);
 *     if (chat_talk_ask(t, "What is it?")) { chat_talk_write(t, &body); }       // a JSON array
 *     bool ok = chat_talk_answer(t, "A cat.", 6);
 *     chat_talk_destroy(t);
 *
 * A question without an answer (the server failed, or was stopped before the first word) can be asked
 * again; the next question takes its place.
 */
#ifndef PARLEY_SERVER_CHAT_CHAT_TALK_H
#define PARLEY_SERVER_CHAT_CHAT_TALK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/err.h"

typedef struct chat_talk chat_talk;

/* NULL without memory. */
MUST_CHECK chat_talk *chat_talk_create(void);
void chat_talk_destroy(chat_talk *t); /* NULL allowed */

/* The system prompt from the next question on; "" is none. False without memory. */
MUST_CHECK bool chat_talk_set_system(chat_talk *t, const char *text);
const char *chat_talk_system(const chat_talk *t); /* "" if there is none */

/* Reads a file that goes with the next question. kind: "image" or "video". ERR_NOT_FOUND, ERR_IO,
 * ERR_INVALID if it is neither, ERR_LIMIT beyond LIMIT_VIDEO_BYTES. */
MUST_CHECK err_code chat_talk_attach(chat_talk *t, const char *path, const char *kind, err_detail *detail);
/* How many files go with the next question. */
size_t chat_talk_attached(const chat_talk *t);

/* A question with what is attached; false without memory. */
MUST_CHECK bool chat_talk_ask(chat_talk *t, const char *text);
/* The answer to the last question; false without memory. */
MUST_CHECK bool chat_talk_answer(chat_talk *t, const char *text, size_t len);
/* Forgets the last answer, so that its question is asked again; false if there is no question. */
MUST_CHECK bool chat_talk_again(chat_talk *t);
/* Forgets all but the system prompt. */
void chat_talk_clear(chat_talk *t);

/* Appends the messages as a JSON array, images and videos as data: URIs. */
void chat_talk_write(const chat_talk *t, bytes *out);
/* Writes the conversation to a new file: NAME.json as messages, anything else as Markdown. ERR_IO, also
 * if there is such a file. */
MUST_CHECK err_code chat_talk_save(const chat_talk *t, const char *path, err_detail *detail);

#endif
