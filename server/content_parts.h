/* content_parts: message content of any protocol (a string, or a list of typed parts) into chat parts. Prep threads.
 *
 *     content_reader r = {.in = in, .info = info};
 *     err = content_read(&r, &message, json_get(m, "content"), "messages[0].content", &detail);
 *
 * Understands Chat Completions parts (text, image_url, video_url, input_video, and "video" with a URL or a list of
 * pictures) and Responses parts (input_text, output_text, input_image, input_video). Media are decoded from base64 into
 * the arena; remote addresses are refused.
 */
#ifndef PARLEY_SERVER_CONTENT_PARTS_H
#define PARLEY_SERVER_CONTENT_PARTS_H

#include "engine/chat.h"
#include "engine/engine.h"

typedef struct content_reader {
    chat_input *in;
    const engine_info *info; /* NULL: assume that pictures and films are understood */
    int n_media;             /* so far, over all messages */
    chat_video video;        /* how films are shown whose part does not say it */
} content_reader;

/* Fills parts, n_parts and is_string of `m`. `path` names the field in errors. A null content gives no parts. */
MUST_CHECK err_code content_read(content_reader *r, chat_message *m, const json *content, const char *path,
                                 err_detail *d);

#endif
