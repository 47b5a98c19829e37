#include "engine/prepare_video.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "vision/video/video_worker.h"

/* ---- reading ---- */

/* A video on its way into patches. */
typedef struct video_reader {
    const processor_config *pc;
    patches *patches;
    const video_hooks *hooks;
    ledger_hold *memory;
    size_t kept; /* of it: the patches */
    int32_t n;
} video_reader;

static bool video_cancelled(void *ctx)
{
    const video_reader *r = ctx;
    return r->hooks->cancelled(r->hooks->ctx);
}

static err_code begin_video(void *ctx, const video_info *info, int32_t n, const double *times,
                            err_detail *detail)
{
    video_reader *r = ctx;
    r->n = n;
    r->hooks->planned(r->hooks->ctx, n);
    err_code err = processor_video_plan(r->patches, r->pc, n, info->height, info->width, times, detail);
    if (err == ERR_OK) {
        err = r->hooks->fits(r->hooks->fits_ctx, r->patches, detail);
    }
    if (err == ERR_OK) {
        /* one frame of them is on its way, too */
        const ledger_patience patience = {video_cancelled, r};
        const size_t n_bytes = patches_bytes(r->patches), frame = n_bytes / (size_t)r->patches->t;
        err = ledger_take(r->memory, "the video", n_bytes + frame, &patience, detail);
        r->kept = err == ERR_OK ? n_bytes : 0;
    }
    return err == ERR_OK ? patches_alloc(r->patches, detail) : err;
}

static err_code add_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    video_reader *r = ctx;
    err_code err = processor_video_add(r->patches, r->pc, r->n, i, frame, detail);
    r->hooks->shown(r->hooks->ctx);
    return err;
}

static err_code read_file(const engine *e, video_reader *r, const chat_part *part,
                          const video_request *wanted, err_detail *detail)
{
    static const uint8_t NOTHING[1];
    video_job job = {
        .source = {.data = part->fd > 0 ? NULL
                           : part->data ? part->data
                                        : NOTHING,
                   .bytes = part->data_bytes,
                   .fd = part->fd},
        .limits = e->media.video_limits,
        .request = *wanted,
        .processor = r->pc,
        .max_shown = e->media.max_video_frames,
        .program = e->media.video_program,
    };
    const ledger_patience patience = {video_cancelled, r};
    size_t reserve = 0;
    job.limits.max_memory = prepare_video_memory(&e->media, &reserve);
    job.limits.cancelled = video_cancelled;
    job.limits.ctx = r;
    err_code err = ledger_take(r->memory, "reading the video",
                               reserve + (part->fd > 0 ? 0 : part->data_bytes), &patience, detail);
    return err != ERR_OK
               ? err
               : video_worker_read(
                     &job, &(video_consumer){.begin = begin_video, .frame = add_frame, .ctx = r}, detail);
}

/* The images of a list are frames of a video of video.list_fps; those are shown that such a video
 * would show. */
static err_code read_list(const engine *e, video_reader *r, const chat_video *settings,
                          const video_request *wanted, err_detail *detail)
{
    const image_limits limits = {.max_pixels = e->media.video_limits.max_pixels,
                                 .max_side = LIMIT_IMAGE_SIDE};
    int32_t indices[LIMIT_VIDEO_FRAMES_MAX], n = 0;
    double times[LIMIT_VIDEO_FRAMES_MAX];
    video_info info = {.n_frames = (int64_t)settings->n_list,
                       .fps = settings->list_fps > 0 ? settings->list_fps : r->pc->video_fps};
    info.duration_s = (double)info.n_frames / info.fps;
    err_code err = video_plan(&info, r->pc, wanted, indices, times, e->media.max_video_frames, &n, detail);
    for (int32_t i = 0; i < n && err == ERR_OK; i++) {
        const chat_file *file = &settings->list[indices[i]];
        image img = {0};
        if (video_cancelled(r)) {
            return err_set(detail, ERR_CANCELLED, "cancelled while reading media");
        }
        image_read_job job = prepare_image_job(&e->media, file->data, file->bytes, &limits);
        image_plan plan;
        job.cancelled = video_cancelled;
        job.ctx = r;
        err = image_reader_measure(&plan, &job, detail);
        if (err == ERR_OK && i == 0) {
            info.width = plan.width;
            info.height = plan.height;
            err = begin_video(r, &info, n, times, detail);
        }
        if (err == ERR_OK) {
            const ledger_patience patience = {video_cancelled, r};
            err = ledger_take(r->memory, "an image of the video", plan.bytes, &patience, detail);
        }
        if (err == ERR_OK) {
            err = image_reader_read(&img, &job, &plan, r->patches->w * r->pc->patch_size,
                                    r->patches->h * r->pc->patch_size, detail);
            if (err == ERR_OK) {
                err = add_frame(r, i, &img, detail);
            }
            image_deinit(&img);
            ledger_give(r->memory, plan.bytes);
        }
    }
    return err;
}

void prepare_video_hash(uint8_t out[HASH_BYTES], const chat_part *part)
{
    const chat_video *v = &part->video;
    struct {
        uint8_t files[HASH_BYTES], file[HASH_BYTES];
        double numbers[10];
    } key;
    memset(&key, 0, sizeof key);
    if (part->hash) {
        memcpy(key.files, part->hash, HASH_BYTES);
    } else if (part->data) {
        hash_sha256(key.files, part->data, part->data_bytes);
    } else if (part->fd > 0) { /* unknown bytes are like no others */
        const uint64_t nonce = hash_random_u64();
        memcpy(key.files, &nonce, sizeof nonce);
    }
    for (size_t i = 0; i < v->n_list; i++) {
        hash_sha256(key.file, v->list[i].data, v->list[i].bytes);
        hash_sha256(key.files, &key, sizeof key);
    }
    key.numbers[0] = v->fps;
    key.numbers[1] = v->n_frames;
    key.numbers[2] = v->max_frames;
    key.numbers[3] = v->start_s;
    key.numbers[4] = v->end_s;
    key.numbers[5] = v->min_frames;
    key.numbers[6] = v->n_list ? v->list_fps : 0;
    key.numbers[7] = (double)part->pixels.min;
    key.numbers[8] = (double)part->pixels.max;
    key.numbers[9] = v->pair_tokens;
    hash_sha256(out, &key, sizeof key);
}

processor_config prepare_processor(const engine *e, const chat_part *part)
{
    enum { MOST_TOKENS = 1120 }; /* that models whose images fill a budget were made with */
    processor_config pc = e->processor;
    int64_t *min = part->kind == CHAT_VIDEO ? &pc.video_min_pixels : &pc.image_min_pixels;
    int64_t *max = part->kind == CHAT_VIDEO ? &pc.video_max_pixels : &pc.image_max_pixels;
    if (part->pixels.max > 0) {
        *max = part->pixels.max;
        *min = *min < *max ? *min : *max;
    }
    if (part->pixels.min > 0) {
        *min = part->pixels.min;
        *max = *max > *min ? *max : *min;
    }
    if (part->pixels.max > 0 || part->pixels.min > 0) {
        pc.video_by_frame = false; /* what a request says is of all frames together */
    }
    if (pc.fills_budget) { /* no image is made larger than it is of use, nor than a chunk that has it whole */
        const int64_t unit = (int64_t)pc.patch_size * pc.merge_size;
        const bool is_whole = model_get_config(e->model)->media_see_both_ways;
        const int64_t most = (is_whole ? e->prefill_chunk : MOST_TOKENS) * unit * unit;
        *max = *max < most ? *max : most;
    }
    return pc;
}

media_settings media_settings_of(const engine_options *opt, ledger *memory)
{
    const engine_video_limits *videos = &opt->videos;
    media_settings m = {.video_program = opt->video_program,
                        .video_limits = video_limits_default(),
                        .max_video_frames = videos->max_frames > 0 ? videos->max_frames : LIMIT_VIDEO_FRAMES,
                        .max_image_pixels = LIMIT_IMAGE_PIXELS,
                        .memory = memory};
    video_limits *l = &m.video_limits;
    l->max_bytes = videos->max_bytes > 0 ? (size_t)videos->max_bytes : l->max_bytes;
    l->max_pixels = videos->max_pixels > 0 ? (size_t)videos->max_pixels : l->max_pixels;
    l->max_duration_s = videos->max_duration_s > 0 ? videos->max_duration_s : l->max_duration_s;
    l->max_wall_s = videos->max_time_s > 0 ? videos->max_time_s : l->max_wall_s;
    l->max_memory = videos->max_memory > 0 ? (size_t)videos->max_memory : l->max_memory;
    l->n_threads = LIMIT_VIDEO_THREADS;
    if (m.max_video_frames > LIMIT_VIDEO_FRAMES_MAX) {
        m.max_video_frames = LIMIT_VIDEO_FRAMES_MAX;
    }
    if (opt->max_image_pixels > 0 && (size_t)opt->max_image_pixels < LIMIT_IMAGE_PIXELS) {
        m.max_image_pixels = (size_t)opt->max_image_pixels;
    }
    return m;
}

image_read_job prepare_image_job(const media_settings *m, const uint8_t *data, size_t n,
                                 const image_limits *limits)
{
    return (image_read_job){.data = data,
                            .bytes = n,
                            .limits = *limits,
                            .max_memory = m->video_limits.max_memory,
                            .max_wall_s = m->video_limits.max_wall_s,
                            .program = m->video_program};
}

size_t prepare_video_memory(const media_settings *m, size_t *reserve)
{
    /* What the program has at its start, and a few frames on their way through the socket. */
    enum { START_BYTES = 40 << 20 };
    const size_t half = m->memory ? ledger_get_status(m->memory).limit / 2 : SIZE_MAX;
    const size_t n = m->video_limits.max_memory < half ? m->video_limits.max_memory : half;
    *reserve = m->video_program ? n + START_BYTES : n;
    return n;
}

err_code prepare_video(const engine *e, gen_request *r, gen_media *m, const chat_part *part,
                       const video_hooks *hooks, err_detail *detail)
{
    const size_t held = r->memory.bytes;
    const chat_video *settings = &part->video;
    const video_request wanted = {.fps = settings->fps,
                                  .n_frames = settings->n_frames,
                                  .max_frames = settings->max_frames,
                                  .start_s = settings->start_s,
                                  .end_s = settings->end_s};
    processor_config pc = prepare_processor(e, part);
    if (!e->info.has_video) {
        return err_set_param(detail, ERR_UNSUPPORTED, NULL, "unsupported_modality", "%s cannot read videos",
                             e->info.model_name);
    }
    pc.video_min_frames = settings->min_frames > 0 ? settings->min_frames : pc.video_min_frames;
    pc.video_pair_tokens = settings->pair_tokens;
    if (settings->max_frames > 0 && settings->max_frames < pc.video_min_frames) {
        pc.video_min_frames = settings->max_frames;
    }
    video_reader reader = {.pc = &pc, .patches = &m->patches, .hooks = hooks, .memory = &r->memory};
    err_code err = settings->n_list ? read_list(e, &reader, settings, &wanted, detail)
                                    : read_file(e, &reader, part, &wanted, detail);
    if (err != ERR_OK) {
        patches_deinit(&m->patches);
        reader.kept = 0;
    }
    ledger_give(&r->memory, r->memory.bytes - held - reader.kept);
    return err;
}

int engine_video_worker(void)
{
    enum { WORD_BYTES = sizeof ENGINE_VIDEO_COMMAND };
    _Static_assert(WORD_BYTES == sizeof VIDEO_WORKER_COMMAND, "one word in two headers");
    return video_worker_main();
}

/* ---- the prompt ---- */

typedef struct token_text {
    const char *text;
    size_t len;
} token_text;

static token_text text_of(const engine *e, int32_t id)
{
    token_text t = {0};
    t.text = tokenizer_token_bytes(model_tokenizer(e->model), id, &t.len, NULL);
    return t;
}

/* Where `t` begins in text[0..len), or len. */
static size_t find_text(const char *text, size_t len, token_text t)
{
    for (size_t i = 0; t.len > 0 && i + t.len <= len; i++) {
        if (text[i] == t.text[0] && memcmp(text + i, t.text, t.len) == 0) {
            return i;
        }
    }
    return len;
}

/* The time of a frame, as the model's prompts have it. */
static void write_time(bytes *out, const model_config *cfg, double seconds)
{
    if (cfg->bare_placeholders) {
        const int s = (int)seconds;
        bytes_printf(out, "%02d:%02d ", s / 60, s % 60);
    } else {
        bytes_printf(out, "<%.1f seconds>", seconds);
    }
}

void prompt_place_media(bytes *out, const engine *e, const char *text, size_t len, const gen_media *media,
                        size_t n_media)
{
    const model_config *cfg = model_get_config(e->model);
    const token_text start = text_of(e, cfg->vision_start_token_id),
                     end = text_of(e, cfg->vision_end_token_id);
    for (size_t m = 0; m < n_media; m++) {
        if (cfg->whole_videos || (!media[m].is_video && !cfg->bare_placeholders)) {
            continue;
        }
        const token_text pad = text_of(e, media[m].is_video ? cfg->video_token_id : cfg->image_token_id);
        size_t at = find_text(text, len, pad);
        if (at == len) {
            break;
        }
        /* The template's own pair around the video goes, unless the model was made with it. */
        size_t before = at, after = at + pad.len;
        bool paired = at >= start.len && memcmp(text + at - start.len, start.text, start.len) == 0 &&
                      len - after >= end.len && memcmp(text + after, end.text, end.len) == 0;
        if (paired && !e->video_outer_pair) {
            before -= start.len;
            after += end.len;
        }
        bytes_append(out, text, before);
        for (int32_t t = 0; t < media[m].patches.t; t++) {
            if (t > 0 && cfg->bare_placeholders) {
                bytes_append_char(out, ' ');
            }
            if (media[m].is_video) {
                write_time(out, cfg, media[m].patches.timestamps[t]);
            }
            bytes_append(out, start.text, start.len);
            bytes_append(out, pad.text, pad.len);
            bytes_append(out, end.text, end.len);
        }
        text += after;
        len -= after;
    }
    bytes_append(out, text, len);
}
