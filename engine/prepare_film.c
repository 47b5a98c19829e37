#include "engine/prepare_film.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "vision/film_worker.h"

/* ---- reading ---- */

/* A film on its way into patches. */
typedef struct film_reader {
    const processor_config *pc;
    patches *patches;
    const film_hooks *hooks;
    ledger_hold *memory;
    size_t kept; /* of it: the patches */
    int32_t n;
} film_reader;

static bool film_cancelled(void *ctx)
{
    const film_reader *r = ctx;
    return r->hooks->cancelled(r->hooks->ctx);
}

static err_code begin_film(void *ctx, const film_info *info, int32_t n, const double *times,
                           err_detail *detail)
{
    film_reader *r = ctx;
    r->n = n;
    r->hooks->planned(r->hooks->ctx, n);
    err_code err = processor_video_plan(r->patches, r->pc, n, info->height, info->width, times, detail);
    if (err == ERR_OK) {
        err = r->hooks->fits(r->hooks->fits_ctx, r->patches, detail);
    }
    if (err == ERR_OK) {
        /* one frame of them is on its way, too */
        const ledger_patience patience = {film_cancelled, r};
        const size_t n_bytes = patches_bytes(r->patches), frame = n_bytes / (size_t)r->patches->t;
        err = ledger_take(r->memory, "the film", n_bytes + frame, &patience, detail);
        r->kept = err == ERR_OK ? n_bytes : 0;
    }
    return err == ERR_OK ? patches_alloc(r->patches, detail) : err;
}

static err_code add_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    film_reader *r = ctx;
    err_code err = processor_video_add(r->patches, r->pc, r->n, i, frame, detail);
    r->hooks->shown(r->hooks->ctx);
    return err;
}

static err_code read_file(const engine *e, film_reader *r, const chat_part *part, const film_request *wanted,
                          err_detail *detail)
{
    static const uint8_t NOTHING[1];
    film_job job = {
        .source = {.data = part->fd > 0 ? NULL
                           : part->data ? part->data
                                        : NOTHING,
                   .bytes = part->data_bytes,
                   .fd = part->fd},
        .limits = e->film_limits,
        .request = *wanted,
        .processor = r->pc,
        .max_shown = e->max_film_frames,
        .program = e->film_program,
    };
    const ledger_patience patience = {film_cancelled, r};
    size_t reserve = 0;
    job.limits.max_memory = prepare_film_memory(e, &reserve);
    job.limits.cancelled = film_cancelled;
    job.limits.ctx = r;
    err_code err = ledger_take(r->memory, "reading the film", reserve + (part->fd > 0 ? 0 : part->data_bytes),
                               &patience, detail);
    return err != ERR_OK
               ? err
               : film_show(&job, &(film_viewer){.begin = begin_film, .frame = add_frame, .ctx = r}, detail);
}

/* The pictures of a list are frames of a film of video.list_fps; those are shown that such a film would show. */
static err_code read_list(const engine *e, film_reader *r, const chat_video *video,
                          const film_request *wanted, err_detail *detail)
{
    const image_limits limits = {.max_pixels = e->film_limits.max_pixels, .max_side = LIMIT_IMAGE_SIDE};
    int32_t indices[LIMIT_VIDEO_FRAMES_MAX], n = 0;
    double times[LIMIT_VIDEO_FRAMES_MAX];
    film_info info = {.n_frames = (int64_t)video->n_list,
                      .fps = video->list_fps > 0 ? video->list_fps : r->pc->video_fps};
    info.duration_s = (double)info.n_frames / info.fps;
    err_code err = film_plan(&info, r->pc, wanted, indices, times, e->max_film_frames, &n, detail);
    for (int32_t i = 0; i < n && err == ERR_OK; i++) {
        const chat_file *file = &video->list[indices[i]];
        image img = {0};
        if (film_cancelled(r)) {
            return err_set(detail, ERR_CANCELLED, "cancelled while reading media");
        }
        image_read_job job = prepare_picture_job(e, file->data, file->bytes, &limits);
        image_plan plan;
        job.cancelled = film_cancelled;
        job.ctx = r;
        err = image_reader_measure(&plan, &job, detail);
        if (err == ERR_OK && i == 0) {
            info.width = plan.width;
            info.height = plan.height;
            err = begin_film(r, &info, n, times, detail);
        }
        if (err == ERR_OK) {
            const ledger_patience patience = {film_cancelled, r};
            err = ledger_take(r->memory, "a picture of the film", plan.bytes, &patience, detail);
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

void prepare_film_hash(uint8_t out[HASH_BYTES], const chat_part *part)
{
    const chat_video *v = &part->video;
    struct {
        uint8_t files[HASH_BYTES], file[HASH_BYTES];
        double numbers[7];
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
    hash_sha256(out, &key, sizeof key);
}

image_read_job prepare_picture_job(const engine *e, const uint8_t *data, size_t n, const image_limits *limits)
{
    return (image_read_job){.data = data,
                            .bytes = n,
                            .limits = *limits,
                            .max_memory = e->film_limits.max_memory,
                            .max_wall_s = e->film_limits.max_wall_s,
                            .program = e->film_program};
}

size_t prepare_film_memory(const engine *e, size_t *reserve)
{
    /* What the program has at its start, and a few frames on their way through the socket. */
    enum { START_BYTES = 40 << 20 };
    const size_t half = e->memory ? ledger_get_status(e->memory).limit / 2 : SIZE_MAX;
    const size_t n = e->film_limits.max_memory < half ? e->film_limits.max_memory : half;
    *reserve = e->film_program ? n + START_BYTES : n;
    return n;
}

err_code prepare_film(const engine *e, gen_request *r, gen_media *m, const chat_part *part,
                      const film_hooks *hooks, err_detail *detail)
{
    const size_t held = r->memory.bytes;
    const chat_video *video = &part->video;
    const film_request wanted = {.fps = video->fps,
                                 .n_frames = video->n_frames,
                                 .max_frames = video->max_frames,
                                 .start_s = video->start_s,
                                 .end_s = video->end_s};
    processor_config pc = e->processor;
    if (!e->info.has_video) {
        return err_set_param(detail, ERR_UNSUPPORTED, NULL, "unsupported_modality", "%s cannot watch films",
                             e->info.model_name);
    }
    pc.video_min_frames = video->min_frames > 0 ? video->min_frames : pc.video_min_frames;
    if (video->max_frames > 0 && video->max_frames < pc.video_min_frames) {
        pc.video_min_frames = video->max_frames;
    }
    film_reader reader = {.pc = &pc, .patches = &m->patches, .hooks = hooks, .memory = &r->memory};
    err_code err = video->n_list ? read_list(e, &reader, video, &wanted, detail)
                                 : read_file(e, &reader, part, &wanted, detail);
    if (err != ERR_OK) {
        patches_deinit(&m->patches);
        reader.kept = 0;
    }
    ledger_give(&r->memory, r->memory.bytes - held - reader.kept);
    return err;
}

int engine_film_worker(void)
{
    _Static_assert(sizeof ENGINE_FILM_COMMAND == sizeof FILM_WORKER_COMMAND, "one word in two headers");
    return film_worker_main();
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

void prompt_place_films(bytes *out, const engine *e, const char *text, size_t len, const gen_media *media,
                        size_t n_media)
{
    const model_config *cfg = model_get_config(e->model);
    const token_text pad = text_of(e, cfg->video_token_id), start = text_of(e, cfg->vision_start_token_id),
                     end = text_of(e, cfg->vision_end_token_id);
    for (size_t m = 0; m < n_media; m++) {
        if (!media[m].is_video) {
            continue;
        }
        size_t at = find_text(text, len, pad);
        if (at == len) {
            break;
        }
        /* The template's own pair around the film goes, unless the model was made with it. */
        size_t before = at, after = at + pad.len;
        bool paired = at >= start.len && memcmp(text + at - start.len, start.text, start.len) == 0 &&
                      len - after >= end.len && memcmp(text + after, end.text, end.len) == 0;
        if (paired && !e->film_outer_pair) {
            before -= start.len;
            after += end.len;
        }
        bytes_append(out, text, before);
        for (int32_t t = 0; t < media[m].patches.t; t++) {
            bytes_printf(out, "<%.1f seconds>", media[m].patches.timestamps[t]);
            bytes_append(out, start.text, start.len);
            bytes_append(out, pad.text, pad.len);
            bytes_append(out, end.text, end.len);
        }
        text += after;
        len -= after;
    }
    bytes_append(out, text, len);
}
