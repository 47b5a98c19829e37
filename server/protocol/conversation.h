/* conversation: the messages of a request as its dialect's reader finds them, one after the other.
 * Prep threads.
 *
 *     conversation c;
 *     conversation_open(&c, r, root, info, n_messages);
 *     chat_message *m = conversation_add(&c, CHAT_USER);
 *     content_read(&c.content, m, json_get(v, "content"), "messages[0].content");
 *     conversation_close(&c, root);
 *
 * Errors go to r->error; what is read behind one is thrown away. Results of tools are matched with
 * their calls. Templates show results without ids, so consecutive results are put into the order of
 * their calls: only the order identifies them.
 */
#ifndef PARLEY_SERVER_PROTOCOL_CONVERSATION_H
#define PARLEY_SERVER_PROTOCOL_CONVERSATION_H

#include "server/protocol/content_parts.h"

typedef struct matched_call {
    const char *id; /* NULL: the client gave none */
    bool answered;
} matched_call;

typedef struct conversation {
    api_request *r;
    content_reader content;
    size_t cap;          /* messages that there is room for */
    chat_message spare;  /* what is filled behind an error */
    matched_call *calls; /* of the assistant so far, in the chat's arena */
    size_t n_calls;
    size_t first_open;   /* calls before it are answered */
    size_t *order;       /* [cap] of a message that is a result: its call */
    const json *earlier; /* items that were read first: what approvals may be about */
} conversation;

/* Makes room for n messages in r->in, and for those of r->turns. root: the body, whose fields of images and videos count for all
 * of them. */
void conversation_open(conversation *c, api_request *r, const json *root, const engine_info *info, size_t n);

/* The next message, empty; never NULL. */
chat_message *conversation_add(conversation *c, chat_role role);
/* The message last added; NULL if there is none. */
chat_message *conversation_last(const conversation *c);

/* Adds a call to m. id may be NULL. arguments: an object, or the text of one; NULL: none. `path`
 * names the call in errors. */
void conversation_call(conversation *c, chat_message *m, const char *id, const char *name,
                       const json *arguments, const char *path);
/* Makes m, the message last added, the result of the call `id` (may be NULL). */
void conversation_result(conversation *c, chat_message *m, const char *id, const char *path);

/* Forgets all messages so far but for those of the system, with the calls in them. */
void conversation_forget(conversation *c);

/* Puts results behind their calls. With continue_final_message in root
 * (may be NULL), or r->in->continues, the last must be an assistant message without calls. */
void conversation_close(conversation *c, const json *root);

/* The image at `param` of an error becomes words if a tool has brought it; false: it did not. */
bool conversation_leave_out(chat_input *in, const char *param);
/* Leaves out the oldest messages of a chat that is too long, about that share of its text (0 to 1), at
 * least one turn: from behind the system's to the next of the user. False if none can go. */
bool conversation_drop_oldest(chat_input *in, double share);

#endif
