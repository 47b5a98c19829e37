/* preview: what an image or video is, and how the model would see it, for the person who uploaded
 * it. Prep threads. */
#include <sys/mman.h>

#include "engine/prepare_video.h"
#include "vision/video/video_worker.h"
#include "vision/image/image_write.h"

/* PIXELS: of an image that is decoded for this; WORDS: tokens around an image, and around each pair
 * of frames. */
enum { SIDE = 160, QUALITY = 70, PIXELS = 16 << 20, WALL_S = 10, WORDS_IMAGE = 2, WORDS_PAIR = 9 };

typedef struct previewer {
    const engine *e;
    const preview_hooks *hooks;
    preview_tokens *tokens;
    ledger_hold memory;
    int32_t n_shown; /* frames that became thumbs */
    double thumb_times[ENGINE_PREVIEW_THUMBS];
    int32_t thumb_frames[ENGINE_PREVIEW_THUMBS];
    int32_t n_thumbs;
} previewer;

static bool is_cancelled(void *ctx)
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
    image_size size;
    bytes_init(&jpeg, SIDE * SIDE * 4);
    err_code err = image_write_jpeg(&jpeg, img, SIDE, QUALITY, &size, detail);
    if (err == ERR_OK) {
        const preview_thumb thumb = {t_s, size.width, size.height, (const uint8_t *)jpeg.data, jpeg.len};
        p->hooks->thumb(p->hooks->ctx, &thumb);
    }
    bytes_deinit(&jpeg);
    return err;
}

/* ---- videos ---- */

static err_code begin_video(void *ctx, const video_info *info, int32_t n, const double *times,
                            err_detail *detail)
{
    previewer *p = ctx;
    const processor_config *pc = &p->e->processor;
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

static err_code add_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
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
        .limits = p->e->video_limits,
        .processor = &p->e->processor,
        .max_shown = p->e->max_video_frames,
        .program = p->e->video_program,
    };
    const ledger_patience patience = {is_cancelled, p};
    size_t reserve = 0;
    job.limits.max_memory = prepare_video_memory(p->e, &reserve);
    job.limits.cancelled = is_cancelled;
    job.limits.ctx = p;
    err_code err = ledger_take(&p->memory, "the preview", reserve, &patience, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (job.limits.max_wall_s <= 0.0 || job.limits.max_wall_s > WALL_S) {
        job.limits.max_wall_s = WALL_S;
    }
    return video_worker_read(&job, &(video_consumer){.begin = begin_video, .frame = add_frame, .ctx = p},
                             detail);
}

/* ---- images ---- */

static err_code preview_image(previewer *p, int fd, size_t n_bytes, err_detail *detail)
{
    const processor_config *pc = &p->e->processor;
    const size_t most = p->e->max_image_pixels < PIXELS ? p->e->max_image_pixels : PIXELS;
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
    image_read_job job = prepare_image_job(p->e, data, n_bytes, &limits);
    image_plan plan;
    job.cancelled = is_cancelled;
    job.ctx = p;
    err_code err = image_reader_measure(&plan, &job, detail);
    if (err == ERR_OK) {
        err = processor_image_size(pc, plan.height, plan.width, &height, &width, detail);
    }
    if (err == ERR_OK) {
        const ledger_patience patience = {is_cancelled, p};
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

err_code engine_preview(const engine *e, preview_tokens *out, int fd, size_t n_bytes, bool is_video,
                        const preview_hooks *hooks, err_detail *detail)
{
    previewer p = {.e = e, .hooks = hooks, .tokens = out, .memory = {.ledger = e->memory}};
    *out = (preview_tokens){0};
    if (!e->vision || (is_video && !e->info.has_video)) {
        return err_set(detail, ERR_UNSUPPORTED, "this model cannot see it");
    }
    err_code err = (is_video ? preview_video : preview_image)(&p, fd, n_bytes, detail);
    ledger_give_all(&p.memory);
    return err;
}
