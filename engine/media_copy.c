#include "engine/media_copy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/json_source.h"
#include "engine/prepare_video.h"
#include "vision/image/image.h"
#include "vision/image/image_write.h"
#include "vision/video/video.h"
#include "vision/video/video_worker.h"

enum { IMAGE_QUALITY = 92, FRAME_QUALITY = 85 };

struct media_copier {
    media_settings settings;
    processor_config processor; /* of previews */
};

/* One order while it is carried out. */
typedef struct copying {
    const media_copier *c;
    const media_copy_order *order;
    processor_config pc; /* sizes to the pixel: no patches */
    media_copy_file file;
    const double *times; /* [file.n] */
    double own_times[LIMIT_VIDEO_FRAMES_MAX];
} copying;

media_copier *media_copier_create(const engine_options *options)
{
    media_copier *c = calloc(1, sizeof *c);
    if (c) {
        c->settings = media_settings_of(options, options->memory);
        processor_config_init(&c->processor);
    }
    return c;
}

void media_copier_destroy(media_copier *c)
{
    free(c);
}

static bool is_cancelled(void *ctx)
{
    const media_copy_order *o = ((const copying *)ctx)->order;
    return o->cancelled && o->cancelled(o->ctx);
}

/* What the part asks for, within what the order allows. */
static processor_config pixels_of(const media_copier *c, const media_copy_order *o)
{
    const chat_part *part = o->part;
    const int64_t max =
        part->pixels.max > 0 && part->pixels.max < o->max_pixels ? part->pixels.max : o->max_pixels;
    const int64_t min = part->pixels.min < max ? part->pixels.min : max;
    processor_config pc = c->processor;
    pc.patch_size = pc.merge_size = pc.temporal_patch_size = 1;
    pc.image_min_pixels = pc.video_min_pixels = min > 0 ? min : 1;
    pc.image_max_pixels = pc.video_max_pixels = max;
    return pc;
}

/* Passes it on as JPEG. Its memory: the resized pixels, and about as many bytes of the file. */
static err_code give_jpeg(copying *job, const image *img, image_size size, int quality, err_detail *detail)
{
    const media_copy_order *o = job->order;
    const size_t n = 6 * (size_t)size.width * (size_t)size.height;
    const ledger_patience patience = {is_cancelled, job};
    bytes jpeg = bytes_empty(n + 4096);
    err_code err = ledger_take(o->memory, "the image", n, &patience, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = image_write_jpeg(&jpeg, img, size, quality, detail);
    if (err == ERR_OK) {
        job->file.mime = "image/jpeg";
        job->file.data = (const uint8_t *)jpeg.data;
        job->file.n_bytes = jpeg.len;
        job->file.width = size.width;
        job->file.height = size.height;
        err = o->each(o->ctx, &job->file, detail);
    }
    bytes_deinit(&jpeg);
    ledger_give(o->memory, n);
    return err;
}

/* ---- images ---- */

static bool is_taken(const copying *job, const image_plan *plan, image_size size)
{
    const bool is_common = plan->format == IMAGE_PNG || plan->format == IMAGE_JPEG;
    const bool is_known = is_common || plan->format == IMAGE_WEBP || plan->format == IMAGE_GIF;
    return size.width == plan->width && size.height == plan->height && !plan->is_turned &&
           (is_common || (is_known && !job->order->only_common));
}

static err_code give_itself(copying *job, const image_plan *plan, const uint8_t *data, size_t n_bytes,
                            err_detail *detail)
{
    job->file.mime = image_format_mime(plan->format);
    job->file.data = data;
    job->file.n_bytes = n_bytes;
    job->file.width = plan->width;
    job->file.height = plan->height;
    return job->order->each(job->order->ctx, &job->file, detail);
}

/* of_video: a frame of a list, as small as the video's frames are; else in its own size or a smaller one. */
static err_code copy_image(copying *job, const uint8_t *data, size_t n_bytes, bool of_video,
                           err_detail *detail)
{
    const media_copy_order *o = job->order;
    const image_limits limits = {.max_pixels = job->c->settings.max_image_pixels,
                                 .max_side = LIMIT_IMAGE_SIDE};
    const ledger_patience patience = {is_cancelled, job};
    image_read_job read = prepare_image_job(&job->c->settings, data, n_bytes, &limits);
    image_plan plan;
    image_size size = {0};
    image img = {0};
    read.cancelled = is_cancelled;
    read.ctx = job;
    err_code err = image_reader_measure(&plan, &read, detail);
    if (err == ERR_OK && of_video) {
        err = processor_video_size(&job->pc, job->file.n, plan.height, plan.width, &size.height, &size.width,
                                   detail);
    } else if (err == ERR_OK) {
        err = processor_image_size(&job->pc, plan.height, plan.width, &size.height, &size.width, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    const bool goes_as_it_is = is_taken(job, &plan, size);
    if (goes_as_it_is && !o->checks) {
        return give_itself(job, &plan, data, n_bytes, detail);
    }
    err = ledger_take(o->memory, "the image", plan.bytes, &patience, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = image_reader_read(&img, &read, &plan, size.width, size.height, detail);
    if (err == ERR_OK) {
        err = goes_as_it_is ? give_itself(job, &plan, data, n_bytes, detail)
                            : give_jpeg(job, &img, size, of_video ? FRAME_QUALITY : IMAGE_QUALITY, detail);
    }
    image_deinit(&img);
    ledger_give(o->memory, plan.bytes);
    return err;
}

/* ---- videos ---- */

static err_code begin_video(void *ctx, const video_info *info, int32_t n, const double *times,
                            err_detail *detail)
{
    copying *job = ctx;
    (void)detail;
    memcpy(job->own_times, times, (size_t)n * sizeof *times);
    job->times = job->own_times;
    job->file.n = n;
    job->file.duration_s = info->duration_s;
    return ERR_OK;
}

static err_code add_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    copying *job = ctx;
    job->file.i = i;
    job->file.t_s = job->times[i];
    return give_jpeg(job, frame, (image_size){frame->width, frame->height}, FRAME_QUALITY, detail);
}

static err_code copy_file(copying *job, const video_request *wanted, err_detail *detail)
{
    static const uint8_t NOTHING[1];
    const chat_part *part = job->order->part;
    const media_settings *settings = &job->c->settings;
    video_job read = {
        .source = {.data = part->fd > 0 ? NULL
                           : part->data ? part->data
                                        : NOTHING,
                   .bytes = part->data_bytes,
                   .fd = part->fd},
        .limits = settings->video_limits,
        .request = *wanted,
        .processor = &job->pc,
        .max_shown = settings->max_video_frames,
        .program = settings->video_program,
    };
    const ledger_patience patience = {is_cancelled, job};
    size_t reserve = 0;
    read.limits.max_memory = prepare_video_memory(settings, &reserve);
    read.limits.cancelled = is_cancelled;
    read.limits.ctx = job;
    err_code err = ledger_take(job->order->memory, "reading the video", reserve, &patience, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = video_worker_read(&read, &(video_consumer){.begin = begin_video, .frame = add_frame, .ctx = job},
                            detail);
    ledger_give(job->order->memory, reserve);
    return err;
}

static err_code copy_list(copying *job, const video_request *wanted, err_detail *detail)
{
    const chat_video *v = &job->order->part->video;
    int32_t indices[LIMIT_VIDEO_FRAMES_MAX];
    video_info info = {.n_frames = (int64_t)v->n_list,
                       .fps = v->list_fps > 0 ? v->list_fps : job->pc.video_fps};
    info.duration_s = (double)info.n_frames / info.fps;
    err_code err = video_plan(&info, &job->pc, wanted, indices, job->own_times,
                              job->c->settings.max_video_frames, &job->file.n, detail);
    job->file.duration_s = info.duration_s;
    for (int32_t i = 0; i < job->file.n && err == ERR_OK; i++) {
        const chat_file *file = &v->list[indices[i]];
        job->file.i = i;
        job->file.t_s = job->own_times[i];
        err = is_cancelled(job) ? err_set(detail, ERR_CANCELLED, "cancelled while reading media")
                                : copy_image(job, file->data, file->bytes, true, detail);
    }
    return err;
}

static err_code copy_video(copying *job, err_detail *detail)
{
    const chat_video *v = &job->order->part->video;
    const int32_t most = job->c->settings.max_video_frames;
    const video_request wanted = {.fps = v->fps,
                                  .n_frames = v->n_frames,
                                  .max_frames = v->max_frames,
                                  .start_s = v->start_s,
                                  .end_s = v->end_s};
    int32_t max = v->max_frames > 0 || v->fps > 0 || v->min_frames > 0 ? most : job->order->max_frames;
    max = max < most ? max : most;
    job->pc.video_max_frames = max;
    job->pc.video_min_frames = v->min_frames > 0 ? v->min_frames : job->pc.video_min_frames;
    max = v->max_frames > 0 && v->max_frames < max ? v->max_frames : max;
    job->pc.video_min_frames = job->pc.video_min_frames < max ? job->pc.video_min_frames : max;
    return v->n_list ? copy_list(job, &wanted, detail) : copy_file(job, &wanted, detail);
}

err_code media_copy(const media_copier *c, const media_copy_order *order, err_detail *detail)
{
    copying *job = calloc(1, sizeof *job);
    if (!job) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory");
    }
    job->c = c;
    job->order = order;
    job->pc = pixels_of(c, order);
    job->file.n = 1;
    err_code err = order->part->kind == CHAT_VIDEO
                       ? copy_video(job, detail)
                       : copy_image(job, order->part->data, order->part->data_bytes, false, detail);
    free(job);
    return err;
}

/* ---- previews: what is uploaded, for the person who did ---- */

/* PIXELS: of an image that is decoded for this; WORDS: tokens around an image, and around each pair
 * of frames. */
enum { SIDE = 160, QUALITY = 70, PIXELS = 16 << 20, WALL_S = 10, WORDS_IMAGE = 2, WORDS_PAIR = 9 };

typedef struct previewer {
    const media_settings *media;
    const processor_config *pc;
    const preview_hooks *hooks;
    preview_tokens *tokens;
    ledger_hold memory;
    int32_t n_shown; /* frames that became thumbs */
    double thumb_times[ENGINE_PREVIEW_THUMBS];
    int32_t thumb_frames[ENGINE_PREVIEW_THUMBS];
    int32_t n_thumbs;
} previewer;

static bool preview_cancelled(void *ctx)
{
    const previewer *p = ctx;
    return p->hooks->cancelled && p->hooks->cancelled(p->hooks->ctx);
}

static int32_t tokens_of(const processor_config *pc, int32_t height, int32_t width)
{
    const int32_t unit = pc->patch_size * pc->merge_size;
    return (height / unit) * (width / unit);
}

static err_code show_thumb(previewer *p, const image *img, double t_s, err_detail *detail)
{
    bytes jpeg;
    const image_size size = image_fit(img, SIDE);
    bytes_init(&jpeg, SIDE * SIDE * 4);
    err_code err = image_write_jpeg(&jpeg, img, size, QUALITY, detail);
    if (err == ERR_OK) {
        const preview_thumb thumb = {t_s, size.width, size.height, (const uint8_t *)jpeg.data, jpeg.len};
        p->hooks->thumb(p->hooks->ctx, &thumb);
    }
    bytes_deinit(&jpeg);
    return err;
}

static err_code begin_preview(void *ctx, const video_info *info, int32_t n, const double *times,
                              err_detail *detail)
{
    previewer *p = ctx;
    const processor_config *pc = p->pc;
    int32_t height = 0, width = 0;
    err_code err = processor_video_size(pc, n, info->height, info->width, &height, &width, detail);
    if (err != ERR_OK) {
        return err;
    }
    const int32_t n_pairs = (n + pc->temporal_patch_size - 1) / pc->temporal_patch_size;
    *p->tokens = (preview_tokens){n, n_pairs * (tokens_of(pc, height, width) + WORDS_PAIR)};
    p->n_thumbs = n < ENGINE_PREVIEW_THUMBS ? n : ENGINE_PREVIEW_THUMBS;
    for (int32_t i = 0; i < p->n_thumbs; i++) {
        p->thumb_frames[i] = (int32_t)((int64_t)i * n / p->n_thumbs);
        p->thumb_times[i] = times[p->thumb_frames[i]];
    }
    const engine_media_facts facts = {.width = info->width,
                                      .height = info->height,
                                      .duration_s = info->duration_s,
                                      .fps = info->fps,
                                      .n_frames = info->n_frames,
                                      .codec = info->codec,
                                      .has_audio = info->has_audio};
    p->hooks->facts(p->hooks->ctx, &facts);
    return ERR_OK;
}

static err_code preview_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    previewer *p = ctx;
    if (p->n_shown == p->n_thumbs || i != p->thumb_frames[p->n_shown]) {
        return ERR_OK;
    }
    return show_thumb(p, frame, p->thumb_times[p->n_shown++], detail);
}

static err_code preview_video(previewer *p, int fd, size_t n_bytes, err_detail *detail)
{
    video_job job = {
        .source = {.bytes = n_bytes, .fd = fd},
        .limits = p->media->video_limits,
        .processor = p->pc,
        .max_shown = p->media->max_video_frames,
        .program = p->media->video_program,
    };
    const ledger_patience patience = {preview_cancelled, p};
    size_t reserve = 0;
    job.limits.max_memory = prepare_video_memory(p->media, &reserve);
    job.limits.cancelled = preview_cancelled;
    job.limits.ctx = p;
    err_code err = ledger_take(&p->memory, "the preview", reserve, &patience, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (job.limits.max_wall_s > WALL_S) {
        job.limits.max_wall_s = WALL_S;
    }
    return video_worker_read(
        &job, &(video_consumer){.begin = begin_preview, .frame = preview_frame, .ctx = p}, detail);
}

static err_code preview_image(previewer *p, int fd, size_t n_bytes, err_detail *detail)
{
    const processor_config *pc = p->pc;
    const size_t most = p->media->max_image_pixels < PIXELS ? p->media->max_image_pixels : PIXELS;
    const image_limits limits = {.max_pixels = most, .max_side = LIMIT_IMAGE_SIDE};
    image img = {0};
    int32_t height = 0, width = 0;
    if (n_bytes == 0 || n_bytes > LIMIT_BODY_BYTES) {
        return err_set(detail, ERR_LIMIT, "the image is too large to be shown");
    }
    /* Nobody else has this file, so it cannot become shorter under the reader. */
    void *data = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        return err_set(detail, ERR_IO, "the image cannot be read");
    }
    image_read_job job = prepare_image_job(p->media, data, n_bytes, &limits);
    image_plan plan;
    job.cancelled = preview_cancelled;
    job.ctx = p;
    err_code err = image_reader_measure(&plan, &job, detail);
    if (err == ERR_OK) {
        err = processor_image_size(pc, plan.height, plan.width, &height, &width, detail);
    }
    if (err == ERR_OK) {
        const ledger_patience patience = {preview_cancelled, p};
        const size_t resized = 6 * (size_t)height * (size_t)width;
        err = ledger_take(&p->memory, "the preview", n_bytes + plan.bytes + resized, &patience, detail);
    }
    if (err == ERR_OK) {
        err = image_reader_read(&img, &job, &plan, width, height, detail);
    }
    if (err == ERR_OK) {
        const engine_media_facts facts = {.width = plan.width, .height = plan.height};
        *p->tokens = (preview_tokens){1, tokens_of(pc, height, width) + WORDS_IMAGE};
        p->hooks->facts(p->hooks->ctx, &facts);
        err = show_thumb(p, &img, 0.0, detail);
    }
    image_deinit(&img);
    munmap(data, n_bytes);
    return err;
}

static err_code show_preview(const media_settings *m, const processor_config *pc, preview_tokens *out, int fd,
                             size_t n_bytes, bool is_video, const preview_hooks *hooks, err_detail *detail)
{
    previewer p = {.media = m, .pc = pc, .hooks = hooks, .tokens = out, .memory = {.ledger = m->memory}};
    *out = (preview_tokens){0};
    err_code err = (is_video ? preview_video : preview_image)(&p, fd, n_bytes, detail);
    ledger_give_all(&p.memory);
    return err;
}

err_code engine_preview(const engine *e, preview_tokens *out, int fd, size_t n_bytes, bool is_video,
                        const preview_hooks *hooks, err_detail *detail)
{
    if (!e->vision || (is_video && !e->info.has_video)) {
        *out = (preview_tokens){0};
        return err_set(detail, ERR_UNSUPPORTED, "this model cannot see it");
    }
    return show_preview(&e->media, &e->processor, out, fd, n_bytes, is_video, hooks, detail);
}

err_code media_copier_preview(const media_copier *c, preview_tokens *out, int fd, size_t n_bytes,
                              bool is_video, const preview_hooks *hooks, err_detail *detail)
{
    return show_preview(&c->settings, &c->processor, out, fd, n_bytes, is_video, hooks, detail);
}
