#include "vision/video/image_reader.h"

#include <stdlib.h>
#include <string.h>

#include "vision/video/video_worker.h"

/* What the other process has at its start: the program and its libraries. */
static const size_t PROCESS_BYTES = (size_t)32 << 20;

static bool is_decoded_elsewhere(const image_read_job *job, image_format format)
{
    return job->program && format != IMAGE_PNG && format != IMAGE_JPEG;
}

static size_t worker_memory(const image_read_job *job, const image_plan *plan)
{
    const size_t n = plan->bytes - PROCESS_BYTES;
    return n < job->max_memory ? n : job->max_memory;
}

err_code image_reader_measure(image_plan *out, const image_read_job *job, err_detail *detail)
{
    err_code err = image_measure(out, job->data, job->bytes, &job->limits, detail);
    if (err == ERR_OK && is_decoded_elsewhere(job, out->format)) {
        out->bytes = PROCESS_BYTES + (out->bytes < job->max_memory ? out->bytes : job->max_memory);
    }
    return err;
}

/* Takes over the frame's pixels. */
static err_code keep_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    image *out = ctx;
    (void)i;
    const size_t n = (size_t)frame->width * (size_t)frame->height * 3;
    *out = *frame;
    out->rgb = malloc(n);
    if (!out->rgb) {
        return err_set(detail, ERR_NOMEM, "not enough memory to read the image");
    }
    memcpy(out->rgb, frame->rgb, n);
    return ERR_OK;
}

/* Says of the image what the other process's end means. */
static err_code explain(err_code err, const image_read_job *job, const image_plan *plan, err_detail *detail)
{
    if (err == ERR_TIMEOUT) {
        return err_set_param(detail, err, NULL, "image_timeout", "reading the image took too long");
    }
    if (err == ERR_CANCELLED) {
        return err_set(detail, err, "reading the image was stopped");
    }
    if (detail && strcmp(detail->name, "video_too_large") == 0) {
        return err_set_param(detail, ERR_LIMIT, NULL, "image_too_large",
                             "the %s image (%zu bytes, %d x %d pixels) needs more than the %zu MiB of memory "
                             "that this server allows for decoding it (--media-mem); send a smaller one, or "
                             "PNG or JPEG",
                             image_format_name(plan->format), job->bytes, plan->width, plan->height,
                             worker_memory(job, plan) >> 20);
    }
    if (detail && strcmp(detail->name, "video_parse_error") == 0) {
        return err_set_param(detail, err, NULL, "image_parse_error", "the %s image is damaged or incomplete",
                             image_format_name(plan->format));
    }
    return err;
}

err_code image_reader_read(image *out, const image_read_job *job, const image_plan *plan, int32_t width,
                           int32_t height, err_detail *detail)
{
    *out = (image){0};
    if (!is_decoded_elsewhere(job, plan->format)) {
        return image_decode(out, job->data, job->bytes, &job->limits, detail);
    }
    video_job work = {
        .source = {.data = job->data, .bytes = job->bytes},
        .limits = video_limits_default(),
        .program = job->program,
        .image = {job->limits, width, height},
    };
    err_detail own = {0}; /* the name decides, so it must be there */
    work.limits.max_memory = worker_memory(job, plan);
    work.limits.max_wall_s = job->max_wall_s;
    work.limits.cancelled = job->cancelled;
    work.limits.ctx = job->ctx;
    err_code err = video_worker_read(&work, &(video_consumer){.frame = keep_frame, .ctx = out}, &own);
    if (err != ERR_OK) {
        image_deinit(out);
        err = explain(err, job, plan, &own);
        if (detail) {
            *detail = own;
        }
    }
    return err;
}
