/* content_parts: message content of any protocol (a string, or a list of typed parts) into chat
 * parts. Prep threads.
 *
 *     content_reader r = {.in = in, .info = info};
 *     err = content_read(&r, &message, json_get(m, "content"), "messages[0].content", &detail);
 *
 * Understands Chat Completions parts (text, image_url, video_url, input_video, and "video" with a
 * URL or a list of images), Responses parts (input_text, output_text, input_image, input_video),
 * and files (file, input_file). Media are decoded from base64 into the arena, or name an uploaded
 * file ("file_id", or the URL "upload:file_..."): an image is read into the arena, a video stays on
 * disk. Remote URLs are kept, for remote_media to fetch later.
 */
#ifndef PARLEY_SERVER_PROTOCOL_CONTENT_PARTS_H
#define PARLEY_SERVER_PROTOCOL_CONTENT_PARTS_H

#include "engine/chat.h"
#include "engine/engine.h"
#include "server/media/file_store.h"
#include "server/media/remote_media.h"

typedef struct content_reader {
    chat_input *in;
    const engine_info *info;    /* NULL: assume that images and videos are understood */
    file_store *files;          /* the store of uploaded files; NULL: none */
    uint64_t scope;             /* whose files those are */
    const remote_media *remote; /* what may be named by URL; NULL: nothing */
    int n_media;                /* so far, over all messages */
    chat_video video;           /* sampling of videos whose part does not set it */
} content_reader;

/* Fills parts, n_parts and is_string of `m`. `path` names the field in errors. A null content gives
 * no parts. */
MUST_CHECK err_code content_read(content_reader *r, chat_message *m, const json *content, const char *path,
                                 err_detail *d);

#endif
