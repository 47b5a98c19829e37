/* content_parts: message content of any protocol (a string, or a list of typed parts) into chat
 * parts. Prep threads.
 *
 *     content_reader reader = {.r = r, .info = info};
 *     content_read(&reader, &message, json_get(m, "content"), "messages[0].content");
 *
 * Understands Chat Completions parts (text, image_url, video_url, input_video, and "video" with a
 * URL or a list of images), Responses parts (input_text, output_text, input_image, input_video),
 * and files (file, input_file). Media are decoded from base64 into the arena, or name an uploaded
 * file ("file_id", or the URL "upload:file_..."): an image is read into the arena, a video stays on
 * disk. Remote URLs are kept, for remote_media to fetch later.
 */
#ifndef PARLEY_SERVER_PROTOCOL_CONTENT_PARTS_H
#define PARLEY_SERVER_PROTOCOL_CONTENT_PARTS_H

#include "server/protocol/api_request.h"

typedef struct content_reader {
    api_request *r;          /* whose error, arena and files these are */
    const engine_info *info; /* NULL: assume that images and videos are understood */
    int n_media;             /* so far, over all messages */
    chat_video video;        /* sampling of videos whose part does not set it */
    chat_pixels pixels;      /* likewise the size of images and videos */
    bool is_found; /* what is read now came from a tool: an image that cannot be had becomes words */
} content_reader;

/* Fills parts, n_parts and is_string of `m`. `path` names the field in errors. A null content gives
 * no parts. */
void content_read(content_reader *c, chat_message *m, const json *content, const char *path);

/* The same one by one: room for n parts in `m` (ERR_INVALID: too many), then each part. */
void content_begin(content_reader *c, chat_message *m, size_t n, const char *path);
void content_add_text(content_reader *c, chat_message *m, const char *text);
/* Such an image, which turned out to be damaged, as words. */
void content_leave_out(chat_part *part);
/* An image given by a URL or, with url NULL, by the id of an uploaded file. */
void content_add_image(content_reader *c, chat_message *m, const char *url, const char *id, const char *path);
/* Appends the words of an uploaded text file to `out`; ERR_UNSUPPORTED for a file that is no UTF-8 text. */
void content_append_file(content_reader *c, bytes *out, const char *id, const char *path);

#endif
