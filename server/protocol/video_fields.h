/* video_fields: what a request says about its videos: rate, number of frames, the part wanted. Prep
 * threads.
 *
 *     chat_video v = {0};
 *     video_fields_body(&e, &v, root);        // mm_processor_kwargs: for all videos of the request
 *     video_fields_part(&e, &v, part, "messages[0].content[1]");    // what the part itself says wins
 */
#ifndef PARLEY_SERVER_PROTOCOL_VIDEO_FIELDS_H
#define PARLEY_SERVER_PROTOCOL_VIDEO_FIELDS_H

#include "base/json.h"
#include "engine/chat.h"
#include "server/protocol/first_error.h"

/* mm_processor_kwargs of a body: fps, num_frames, min_frames, max_frames, do_sample_frames (true
 * only). */
void video_fields_body(first_error *e, chat_video *v, const json *root);

/* fps, num_frames, min_frames, max_frames, start_ms and end_ms of a part or of its url object;
 * others are not looked at. `path` names the object in errors. */
void video_fields_part(first_error *e, chat_video *v, const json *object, const char *path);

#endif
