/* video_fields: what a request says about its videos, rate, number of frames, the part wanted, and how
 * large they and its images are shown. Prep threads.
 *
 *     chat_video v = {0}; chat_pixels pixels = {0};
 *     video_fields_body(&e, &v, &pixels, root);        // for all of the request
 *     video_fields_part(&e, &v, part, "messages[0].content[1]");    // what the part itself says wins
 *     video_fields_pixels(&e, &pixels, part, "messages[0].content[1]");
 */
#ifndef PARLEY_SERVER_PROTOCOL_VIDEO_FIELDS_H
#define PARLEY_SERVER_PROTOCOL_VIDEO_FIELDS_H

#include "base/json.h"
#include "engine/chat.h"
#include "server/protocol/first_error.h"

/* Of a body, the latter of these wins: video_fps, video_max_frames, min_pixels and max_pixels;
 * media_io_kwargs.video (fps, num_frames); mm_processor_kwargs (fps, num_frames, min_frames,
 * max_frames, min_pixels, max_pixels, and do_sample_frames, true only). */
void video_fields_body(first_error *e, chat_video *v, chat_pixels *pixels, const json *root);

/* fps, num_frames (or nframes), min_frames, max_frames, start_ms and end_ms of a part or of its url
 * object; others are not looked at. `path` names the object in errors. */
void video_fields_part(first_error *e, chat_video *v, const json *object, const char *path);

/* Likewise min_pixels and max_pixels. */
void video_fields_pixels(first_error *e, chat_pixels *pixels, const json *object, const char *path);

#endif
