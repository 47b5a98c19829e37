/* chat: a validated chat, the same for every protocol: messages of typed parts, media bytes, tools.
 * Everything lives in the chat's arena; strings are valid UTF-8 and NUL-terminated.
 *
 *     chat_input *in = chat_input_create(1 << 20);      // filled, then handed to engine_prepare
 *     chat_input_destroy(in);
 */
#ifndef PARLEY_ENGINE_CHAT_H
#define PARLEY_ENGINE_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/limits.h"
#include "engine/gen.h"
#include "engine/grammar_spec.h"

typedef enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT, CHAT_TOOL } chat_role;
typedef enum chat_part_kind { CHAT_TEXT, CHAT_IMAGE, CHAT_VIDEO } chat_part_kind;

/* An encoded file; the bytes are owned by the arena. */
typedef struct chat_file {
    const uint8_t *data;
    size_t bytes;
    const char *url; /* where the bytes must be fetched from before the engine sees them; or NULL */
} chat_file;

/* How a video is sampled; zeros: as the model's configuration says. */
typedef struct chat_video {
    double fps; /* frames a second shown; zeros: as the model says */
    int32_t n_frames, min_frames, max_frames, pair_tokens;
    double start_s, end_s;
    /* a video given as images, list_fps of them per second (0: the fps shown), instead of a file */
    chat_file *list;
    size_t n_list;
    double list_fps;
} chat_video;

/* How large an image is shown, or all frames of a video together; zeros: as the model's
 * configuration says. */
typedef struct chat_pixels {
    int64_t min, max;
} chat_pixels;

typedef struct chat_part {
    chat_part_kind kind;
    const char *text; /* CHAT_TEXT */
    size_t text_len;
    bool is_ours; /* CHAT_TEXT: this program wrote it, and markers in it are meant as such */
    /* CHAT_IMAGE, CHAT_VIDEO: the encoded file; owned by the arena or by `keep` of the input.
     * NULL for a video that is a list of images. */
    const uint8_t *data;
    size_t data_bytes;
    chat_video video; /* CHAT_VIDEO */
    chat_pixels pixels;
    int fd; /* CHAT_VIDEO: an open regular file with the same bytes (data may be NULL), so that they need no copy;
               0: none */
    const uint8_t *hash; /* [HASH_BYTES] SHA-256 of the file if it is known, else NULL */
    const char *url;     /* as in chat_file */
    const char *param;   /* where it stood in the request, for errors: "messages[0].content[1]" */
    bool is_found;       /* CHAT_IMAGE: a tool brought it, nobody sent it: a damaged one becomes words */
} chat_part;

typedef struct chat_tool_call {
    const char *id; /* may be NULL */
    const char *name;
    const json *arguments; /* an object; owned by `keep` */
} chat_tool_call;

typedef struct chat_message {
    chat_role role;
    chat_part *parts;
    size_t n_parts;
    bool is_string;        /* content is one string, not a list of parts (which are pieces of it, then) */
    const char *reasoning; /* reasoning_content, or NULL */
    chat_tool_call *tool_calls;
    size_t n_tool_calls;
    /* the results of these calls, for a template that wants them here; NULL: none */
    const struct chat_message *results;
    size_t n_results;
    const char *tool_call_id; /* CHAT_TOOL, may be NULL */
    const char *name;         /* may be NULL */
} chat_message;

typedef struct chat_input {
    arena *arena;
    json_doc *keep;        /* parsed body that arguments, tools and kwargs point into; may be NULL */
    int fds[LIMIT_IMAGES]; /* closed with the chat */
    size_t n_fds;
    chat_message *messages;
    size_t n_messages;
    const json *tools;           /* array or NULL */
    const json *template_kwargs; /* object or NULL: enable_thinking, ... */
    const grammar_spec *form;    /* constraint on the answer after its reasoning; NULL: none */
    bool form_is_calls;          /* the form is one of tool calls, not of the answer's text */
    bool continues; /* assistant prefill: the last message is an answer to continue, not to reply to */
    /* owner (a hash of the API key; 0: everybody); only equal scopes share cached prefixes */
    uint64_t scope;
    gen_params params;
} chat_input;

/* An empty chat whose arena holds at most max_bytes; NULL if out of memory. */
MUST_CHECK chat_input *chat_input_create(size_t max_bytes);
void chat_input_destroy(chat_input *in); /* frees arena and keep; NULL allowed */

/* True if any message of the conversation holds an image or a video: the only test for routing. */
bool chat_has_media(const chat_input *in);

#endif
