/* content_parts: message content of any protocol (a string, or a list of typed parts) into chat parts. Prep threads.
 *
 *     content_reader r = {.in = in, .info = info};
 *     err = content_read(&r, &message, json_get(m, "content"), "messages[0].content", &detail);
 *
 * Understands Chat Completions parts (text, image_url, video_url, input_video, and "video" with a URL or a list of
 * pictures), Responses parts (input_text, output_text, input_image, input_video), and files (file, input_file). Media are
 * decoded from base64 into the arena, or name an uploaded file ("file_id", or the URL "upload:file_..."): a picture is
 * read into the arena, a film stays on disk. What a remote address names stays an url, which remote_media brings later.
 */
#ifndef PARLEY_SERVER_CONTENT_PARTS_H
#define PARLEY_SERVER_CONTENT_PARTS_H

#include "engine/chat.h"
#include "engine/engine.h"
#include "server/file_store.h"
#include "server/remote_media.h"

typedef struct content_reader {
    chat_input *in;
    const engine_info *info;    /* NULL: assume that pictures and films are understood */
    file_store *files;          /* where uploaded files are found; NULL: nowhere */
    uint64_t scope;             /* whose files those are */
    const remote_media *remote; /* what may be named by its address; NULL: nothing */
    int n_media;                /* so far, over all messages */
    chat_video video;           /* how films are shown whose part does not say it */
} content_reader;

/* Fills parts, n_parts and is_string of `m`. `path` names the field in errors. A null content gives no parts. */
MUST_CHECK err_code content_read(content_reader *r, chat_message *m, const json *content, const char *path,
                                 err_detail *d);

#endif
