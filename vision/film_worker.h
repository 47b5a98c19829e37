/* film_worker: shows a film frame by frame, read in a process of its own, so that a decoder that crashes, hangs or is
 * taken over by a film costs that film alone. Prep worker threads; film_worker_main is the other process.
 *
 *     film_job job = {.source = s, .limits = film_limits_default(), .processor = &pc, .max_shown = 256,
 *                     .program = "/proc/self/exe"};
 *     err = film_show(&job, &(film_viewer){begin, frame, ctx}, &detail);
 *
 * The program is started as `PROGRAM film-worker` and must call film_worker_main then. It gets the film as descriptor 0
 * and a socket as 1: the job goes in; out come the plan, the frames, already of the size that the model wants, and the
 * end. Every message from it is checked. It is killed when the wall time is over, when it stops working, and when the
 * caller gives up.
 */
#ifndef PARLEY_VISION_FILM_WORKER_H
#define PARLEY_VISION_FILM_WORKER_H

#include "vision/film.h"

#define FILM_WORKER_COMMAND "film-worker"

typedef struct film_job {
    film_source source;
    film_limits limits;
    film_request request;
    const processor_config *processor;
    int32_t max_shown; /* frames; the plan is kept within it */
    /* width > 0: the file is a picture, which becomes frame 0 in this size; of `limits` time, memory and cancelling count,
     * and request, processor, max_shown and the viewer's begin are not used. See picture.h. */
    struct {
        image_limits limits;
        int32_t width, height;
    } picture;
    const char *program; /* NULL: the film is read in this process, with one decoder thread */
    const char *command; /* NULL: FILM_WORKER_COMMAND */
} film_job;

/* What the caller is shown: first the facts and the plan, valid during the call, then frames 0..n-1, in the size that
 * processor_video_size gives for them. */
typedef struct film_viewer {
    err_code (*begin)(void *ctx, const film_info *info, int32_t n, const double *times, err_detail *detail);
    film_frame_fn *frame;
    void *ctx;
} film_viewer;

/* Errors as film_open, film_plan and film_read; a worker that died is video_parse_error (ERR_CORRUPT), one that took
 * too long or stood still is video_timeout (ERR_TIMEOUT). Blocks until the film was shown; no process is left behind. */
MUST_CHECK err_code film_show(const film_job *job, const film_viewer *viewer, err_detail *detail);

/* The worker: serves one job and returns the exit code of the process. */
int film_worker_main(void);

#endif
