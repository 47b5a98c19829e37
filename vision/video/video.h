/* video: decodes a video: its properties, which frames are shown to the model, and those frames as
 * images. Prep worker threads or a worker process; no state outside the video.
 *
 *     video *f; video_open(&f, &(video_source){.data = data, .bytes = bytes}, &limits, &detail);
 *     video_plan(video_get_info(f), &pc, &(video_request){0}, indices, times, cap, &n, &detail);
 *     video_read(f, indices, n, on_frame, ctx, &detail);   video_close(f);
 *
 * MP4/MOV, WebM/Matroska, AVI, animated GIF, PNG and WebP; H.264, HEVC, VP8, VP9, AV1, MPEG-4 and
 * Motion JPEG. The container is recognised by its first bytes and never probed. A video cannot open
 * other files or addresses: playlists and external tracks are refused. Sound and subtitles are
 * ignored.
 *
 * Frames are chosen by presentation time: frame i of the sample is what is visible i / fps seconds
 * after the first frame, so videos of variable rate are sampled evenly in time. Opening demuxes the
 * whole video once without decoding; reading decodes up to the last requested frame and converts
 * only the requested frames, one at a time.
 */
#ifndef PARLEY_VISION_VIDEO_VIDEO_H
#define PARLEY_VISION_VIDEO_VIDEO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "vision/image/image.h"
#include "vision/processor.h"
#include "vision/video/video_header.h"

typedef struct video video;

typedef struct video_limits {
    size_t max_bytes;  /* of the file */
    size_t max_pixels; /* of one frame */
    int32_t max_side;
    double max_duration_s;
    int64_t max_packets; /* of all tracks */
    int64_t max_frames;  /* of the video track */
    /* Decoder threads, at least 1. TRAP: with more than one, the library can deadlock on a damaged
     * video (seen with frame threads), so use it only in a worker process that is killed at a
     * deadline. */
    int32_t n_threads;
    double max_wall_s;            /* for opening, and again for each reading; 0: none */
    size_t max_memory;            /* of a worker process, beyond what it has at its start */
    bool (*cancelled)(void *ctx); /* may be NULL; polled on the calling thread */
    void *ctx;
} video_limits;

typedef struct video_info {
    video_format format;
    const char *codec;     /* "H.264" */
    int32_t width, height; /* as shown, after rotation */
    int64_t n_frames;
    double fps;        /* mean rate; 0 if unknown (one frame) */
    double duration_s; /* from the first frame to the end of the last */
    bool variable_rate, has_audio;
} video_info;

/* Which frames to sample; zero: as the processor's configuration says. */
typedef struct video_request {
    double fps;       /* frames per second shown to the model */
    int32_t n_frames; /* that many instead */
    int32_t max_frames;
    double start_s, end_s; /* the part of the video; end 0: to its end */
} video_request;

/* The default limits of the server. */
video_limits video_limits_default(void);

/* ERR_UNSUPPORTED (unsupported_video_media_type), ERR_CORRUPT (video_parse_error; a truncated video
 * is one), ERR_LIMIT (video_too_large), ERR_TIMEOUT (video_timeout), ERR_CANCELLED, ERR_NOMEM. The
 * caller closes *out. */
MUST_CHECK err_code video_open(video **out, const video_source *source, const video_limits *limits,
                               err_detail *detail);
void video_close(video *f); /* NULL allowed */
const video_info *video_get_info(const video *f);

/* Frame numbers [cap] and their seconds from the start of the video [cap], both ascending, count in
 * *n. ERR_INVALID if the wanted part is empty (video_range), ERR_LIMIT if more than cap are wanted
 * (video_too_large). */
MUST_CHECK err_code video_plan(const video_info *info, const processor_config *pc,
                               const video_request *request, int32_t *indices, double *times, int32_t cap,
                               int32_t *n, err_detail *detail);

/* Frame number i of the plan; it belongs to the video and is valid until the function returns.
 * Another value than ERR_OK ends the reading and is returned from video_read. */
typedef err_code video_frame_fn(void *ctx, int32_t i, const image *frame, err_detail *detail);

/* Calls on_frame for indices[0..n), which ascend, in order. Errors as for video_open. May be called
 * again. */
MUST_CHECK err_code video_read(video *f, const int32_t *indices, int32_t n, video_frame_fn *on_frame,
                               void *ctx, err_detail *detail);

#endif
