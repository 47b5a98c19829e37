/* readers: what readers of images and videos are asked for, as lines of a recorded file. The program is linked with --wrap of
 * video_worker_read, image_reader_measure and image_reader_read (cmake/tests.cmake).
 *
 *     bytes out; readers_told = &out;        // from now on; NULL: no more
 */
#ifndef PARLEY_TESTS_ENGINE_READERS_H
#define PARLEY_TESTS_ENGINE_READERS_H

#include "base/bytes.h"
#include "vision/video/image_reader.h"
#include "vision/video/video_worker.h"

static bytes *readers_told;
static _Thread_local double
    readers_ms; /* that readers took, as it were: an image 2 to measure and 5 to read, a video 7 */

err_code __real_video_worker_read(const video_job *job, const video_consumer *viewer, err_detail *detail);
err_code __wrap_video_worker_read(const video_job *job, const video_consumer *viewer, err_detail *detail);
err_code __real_image_reader_measure(image_plan *out, const image_read_job *job, err_detail *detail);
err_code __wrap_image_reader_measure(image_plan *out, const image_read_job *job, err_detail *detail);
err_code __real_image_reader_read(image *out, const image_read_job *job, const image_plan *plan,
                                  int32_t width, int32_t height, err_detail *detail);
err_code __wrap_image_reader_read(image *out, const image_read_job *job, const image_plan *plan,
                                  int32_t width, int32_t height, err_detail *detail);

err_code __wrap_video_worker_read(const video_job *job, const video_consumer *viewer, err_detail *detail)
{
    const video_limits *l = &job->limits;
    if (readers_told) {
        bytes_printf(
            readers_told,
            "< reads a video of %zu bytes%s%s: at most %zu bytes, %zu pixels, %d a side, %g s, %lld packets, "
            "%lld frames, in %g s with %zu bytes and %d threads, shown %d%s\n",
            job->source.bytes, job->source.data ? " in memory" : "", job->source.fd > 0 ? " in a file" : "",
            l->max_bytes, l->max_pixels, l->max_side, l->max_duration_s, (long long)l->max_packets,
            (long long)l->max_frames, l->max_wall_s, l->max_memory, l->n_threads, job->max_shown,
            job->program ? ", apart" : "");
    }
    readers_ms += 7;
    return __real_video_worker_read(job, viewer, detail);
}

static inline void readers_tell_image(const char *what, const image_read_job *job)
{
    if (readers_told) {
        bytes_printf(readers_told,
                     "< %s an image of %zu bytes: at most %zu pixels, %d a side, in %g s with %zu bytes%s\n",
                     what, job->bytes, job->limits.max_pixels, job->limits.max_side, job->max_wall_s,
                     job->max_memory, job->program ? ", apart" : "");
    }
}

err_code __wrap_image_reader_measure(image_plan *out, const image_read_job *job, err_detail *detail)
{
    readers_tell_image("measures", job);
    readers_ms += 2;
    return __real_image_reader_measure(out, job, detail);
}

err_code __wrap_image_reader_read(image *out, const image_read_job *job, const image_plan *plan,
                                  int32_t width, int32_t height, err_detail *detail)
{
    readers_tell_image("reads", job);
    readers_ms += 5;
    return __real_image_reader_read(out, job, plan, width, height, detail);
}

#endif
