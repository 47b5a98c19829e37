/* video_fields: what a request says about its videos: rate, number of frames, the part wanted. Prep
 * threads.
 *
 *     chat_video v = {0};
 *     err = video_fields_body(&v, root, &detail);             // mm_processor_kwargs: for all videos of the request
 *     err = video_fields_part(&v, part, "messages[0].content[1]", &detail);      // what the part itself says wins
 */
#ifndef PARLEY_SERVER_PROTOCOL_VIDEO_FIELDS_H
#define PARLEY_SERVER_PROTOCOL_VIDEO_FIELDS_H

#include "base/json.h"
#include "engine/chat.h"

/* mm_processor_kwargs of a body: fps, num_frames, min_frames, max_frames, do_sample_frames (true
 * only). */
MUST_CHECK err_code video_fields_body(chat_video *v, const json *root, err_detail *d);

/* fps, num_frames, min_frames, max_frames, start_ms and end_ms of a part or of its url object;
 * others are not looked at. `path` names the object in errors. */
MUST_CHECK err_code video_fields_part(chat_video *v, const json *object, const char *path, err_detail *d);

#endif
