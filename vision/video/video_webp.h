/* video_webp: the frames of an animated WebP, which libavformat cannot demux; for video.c, and the
 * only file that uses libwebpdemux. Any thread; no state outside the object.
 *
 *     video_webp *w; video_webp_open(&w, &source);   video_webp_size(w, &width, &height);
 *     while (video_webp_next(w, &rgba)) { height--; }     video_webp_close(w);
 */
#ifndef PARLEY_VISION_VIDEO_VIDEO_WEBP_H
#define PARLEY_VISION_VIDEO_VIDEO_WEBP_H

#include "base/err.h"
#include "vision/video/video_header.h"

typedef struct video_webp video_webp;

/* Reads the whole file into memory and looks through its headers; no pixel is decoded. ERR_CORRUPT,
 * ERR_NOMEM. */
MUST_CHECK err_code video_webp_open(video_webp **out, const video_source *source);
void video_webp_close(video_webp *w); /* NULL allowed */

void video_webp_size(const video_webp *w, int32_t *width, int32_t *height);
int64_t video_webp_count(const video_webp *w); /* frames, at least 1 */
/* Milliseconds that frame i is shown, at least 1; very short durations are treated as browsers
 * do. */
int32_t video_webp_duration(const video_webp *w, int64_t i);

/* Goes back to before the first frame. ERR_NOMEM. */
MUST_CHECK err_code video_webp_rewind(video_webp *w);
/* Draws the next frame on the canvas: rgba [height, width, 4], valid until the next call. False at
 * the end or if the frame is damaged. */
MUST_CHECK bool video_webp_next(video_webp *w, const uint8_t **rgba);

#endif
