/* video_worker: reads a video frame by frame in a separate process, so that a decoder that crashes,
 * hangs or is exploited affects that video alone. Prep worker threads; video_worker_main is the
 * other process.
 *
 *     video_job job = {.source = s, .limits = video_limits_default(), .processor = &pc, .max_shown = 256,
 *                     .program = "/proc/self/exe"};
 *     err = video_worker_read(&job, &consumer, &detail);
 *
 * The program is started as `PROGRAM video-worker` and must call video_worker_main then. It gets
 * the video as descriptor 0 and a socket as 1: the job goes in; out come the plan, the frames,
 * already of the size that the model wants, and the end. Every message from it is checked. It is
 * killed at the wall-clock limit, when it stalls, and when the caller cancels.
 */
#ifndef PARLEY_VISION_VIDEO_VIDEO_WORKER_H
#define PARLEY_VISION_VIDEO_VIDEO_WORKER_H

#include "vision/video/video.h"

#define VIDEO_WORKER_COMMAND "video-worker"

typedef struct video_job {
    video_source source;
    video_limits limits;
    video_request request;
    const processor_config *processor;
    int32_t max_shown; /* frames; the plan is kept within it */
    /* width > 0: the file is an image, which becomes frame 0 in this size; of `limits` time, memory
     * and cancelling count, and request, processor, max_shown and the viewer's begin are not used.
     * See image_target.h. */
    struct {
        image_limits limits;
        int32_t width, height;
    } image;
    const char *program; /* NULL: the video is read in this process, with one decoder thread */
    const char *command; /* NULL: VIDEO_WORKER_COMMAND */
} video_job;

/* Receives the properties and the plan first, valid during the call, then frames 0..n-1, in the
 * size that processor_video_size gives for them. */
typedef struct video_consumer {
    err_code (*begin)(void *ctx, const video_info *info, int32_t n, const double *times, err_detail *detail);
    video_frame_fn *frame;
    void *ctx;
} video_consumer;

/* Errors as video_open, video_plan and video_read; a worker that died is video_parse_error
 * (ERR_CORRUPT), one that took too long or stalled is video_timeout (ERR_TIMEOUT). Blocks until the
 * video was read; no process is left behind. */
MUST_CHECK err_code video_worker_read(const video_job *job, const video_consumer *viewer, err_detail *detail);

/* The worker: serves one job and returns the exit code of the process. */
int video_worker_main(void);

#endif
