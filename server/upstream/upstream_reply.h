/* upstream_reply: what another server streams, into the engine's own texts. Chat Completions and
 * Completions, as chunks (server-sent events) or as one document. One answer; one thread.
 *
 *     upstream_reply r; upstream_reply_init(&r, "gpu", key, UPSTREAM_CHAT);
 *     upstream_reply_head(&r, 200, "text/event-stream");
 *     upstream_reply_push(&r, data, n);                      // as it arrives
 *     gen_text *text = upstream_reply_take(&r);              // NULL: nothing new; the caller frees it
 *     upstream_reply_finish(&r);                             // the server has ended
 *     if (r.error == ERR_OK && r.usage.is_known) { printf("%d", r.usage.prompt); }
 *     upstream_reply_deinit(&r);
 *
 * Understood: content, reasoning (vLLM), reasoning_content (SGLang, llama.cpp, DeepSeek), tool calls in
 * pieces or whole, logprobs, usage in a chunk of its own or in the last one, comments, errors in the
 * stream. What a server promises and does not keep is an error that names it: an end without a
 * finish_reason, JSON that is none, two reasons to finish, text behind the end, more than the limits.
 */
#ifndef PARLEY_SERVER_UPSTREAM_UPSTREAM_REPLY_H
#define PARLEY_SERVER_UPSTREAM_UPSTREAM_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/json.h"
#include "engine/gen.h"

typedef enum upstream_wire { UPSTREAM_CHAT, UPSTREAM_COMPLETION } upstream_wire;

/* A piece that was found: its text is in `texts`, from `at` on. */
typedef struct upstream_piece {
    gen_text_kind kind;
    size_t at, len;
} upstream_piece;

typedef struct upstream_reply {
    const char *name;   /* the server's, for errors; not owned */
    const char *secret; /* its key, which no error may repeat; NULL: none; not owned */
    upstream_wire wire;
    int status;
    bool is_stream; /* server-sent events; else one document */
    bytes held;     /* a line that is not complete, or the document so far */
    bytes event;    /* data lines of the event so far */
    bytes texts;    /* of the pieces */
    upstream_piece *pieces;
    size_t n_pieces, cap_pieces;
    int32_t n_tokens;   /* chunks with text that were not taken */
    size_t n_bytes;     /* received */
    int64_t call;       /* index of the tool call that is open; -1: none */
    int64_t last_call;  /* the highest index seen */
    bool has_arguments; /* of the open call */
    char reason[32];    /* finish_reason; "": none yet */
    bool is_done;       /* [DONE], the document's end, or an error: nothing more is read */
    gen_finish finish;
    gen_usage usage;
    err_code error; /* ERR_OK so far; ERR_UPSTREAM, or what the server blames the request for */
    err_detail detail;
} upstream_reply;

/* name: of the server; secret: its key, or NULL. Both outlive r. */
void upstream_reply_init(upstream_reply *r, const char *name, const char *secret, upstream_wire wire);
void upstream_reply_deinit(upstream_reply *r);

/* The reply's status and Content-Type. */
void upstream_reply_head(upstream_reply *r, int status, const char *content_type);
/* The next bytes of the body. False once nothing more is wanted (is_done). */
bool upstream_reply_push(upstream_reply *r, const char *data, size_t n);
/* What was found since the last call, as one block of memory; NULL if nothing was, and without memory
 * (then r->error says so). */
gen_text *upstream_reply_take(upstream_reply *r);
/* The body has ended: sets finish, usage and error. */
void upstream_reply_finish(upstream_reply *r);

#endif
