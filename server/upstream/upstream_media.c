#include "server/upstream/upstream_media.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "server/media/data_uri.h"
#include "server/media/file_writer.h"
#include "server/protocol/content_parts.h"

/* Of a file that is read in pieces: a multiple of 3, so that their base64 joins. */
enum { PIECE = 3 << 14 };

/* What an image is shown with at most by a Parley (Qwen's processors). */
enum { PARLEY_PIXELS = 16 << 20 };

/* ---- how videos go ---- */

static bool is_plain(const chat_video *v)
{
    return v->fps <= 0 && v->n_frames == 0 && v->min_frames == 0 && v->max_frames == 0 && v->start_s <= 0 &&
           v->end_s <= 0;
}

static bool is_alike(const chat_video *a, const chat_video *b)
{
    return a->n_frames == b->n_frames && a->max_frames == b->max_frames && !(a->fps < b->fps) &&
           !(a->fps > b->fps);
}

/* Whether the engine has words for how the video is sampled. One that shows another video than was asked for would be
 * worse than frames. */
static bool has_words(upstream_engine e, const chat_part *p)
{
    const chat_video *v = &p->video;
    const bool has_part = v->start_s > 0 || v->end_s > 0, has_size = p->pixels.min > 0 || p->pixels.max > 0;
    switch (e) {
    case UPSTREAM_PARLEY:
        return true;
    case UPSTREAM_VLLM: /* media_io_kwargs.video: num_frames, fps */
        return !has_part && !has_size && v->min_frames == 0;
    case UPSTREAM_SGLANG: /* beside the url: fps, max_frames */
        return !has_part && !has_size && v->min_frames == 0 && v->n_frames == 0;
    default:
        return is_plain(v) && !has_size;
    }
}

static bool takes_videos(upstream_engine e, upstream_video way, upstream_answer sees_videos)
{
    if (way != UPSTREAM_VIDEO_AUTO) {
        return way == UPSTREAM_VIDEO_URL;
    }
    return sees_videos == UPSTREAM_YES ||
           (sees_videos == UPSTREAM_UNKNOWN && (e == UPSTREAM_VLLM || e == UPSTREAM_SGLANG));
}

void upstream_media_begin(upstream_media *m, const chat_input *in, upstream_video way,
                          upstream_answer sees_videos)
{
    m->sends_files = takes_videos(m->engine, way, sees_videos);
    for (size_t i = 0; i < in->n_messages; i++) {
        for (size_t j = 0; j < in->messages[i].n_parts; j++) {
            const chat_part *p = &in->messages[i].parts[j];
            if (p->kind != CHAT_VIDEO) {
                continue;
            }
            /* vLLM's settings are of the whole body */
            const bool differs = m->engine == UPSTREAM_VLLM && m->video && !is_alike(m->video, &p->video);
            m->video = &p->video;
            m->sends_files = m->sends_files && has_words(m->engine, p) && !differs && p->video.n_list == 0 &&
                             p->data_bytes <= LIMIT_UPSTREAM_VIDEO_BYTES;
        }
    }
}

void upstream_media_end(const upstream_media *m, bytes *out)
{
    if (m->engine != UPSTREAM_VLLM || !m->sends_files || !m->video || is_plain(m->video)) {
        return;
    }
    const chat_video *v = m->video;
    if (v->n_frames > 0 || v->fps <= 0) {
        bytes_printf(out, ",\"media_io_kwargs\":{\"video\":{\"num_frames\":%d}}",
                     v->n_frames > 0 ? v->n_frames : v->max_frames);
    } else {
        bytes_printf(out, ",\"media_io_kwargs\":{\"video\":{\"fps\":%g,\"num_frames\":%d}}", v->fps,
                     v->max_frames > 0 ? v->max_frames : -1);
    }
}

/* ---- files ---- */

/* One part on its way into a body. */
typedef struct writing {
    upstream_media *m;
    bytes *out;
    const chat_part *part;
} writing;

static bool is_cancelled(void *ctx)
{
    const prepare_hooks *h = ((const writing *)ctx)->m->hooks;
    return h->cancelled && h->cancelled(h->ctx);
}

/* Memory for n bytes as base64. */
static err_code reserve(writing *w, size_t n, err_detail *d)
{
    const ledger_patience patience = {is_cancelled, w};
    return ledger_take(w->m->memory, "the media of this request", n / 3 * 4 + 256, &patience, d);
}

static err_code write_image(void *ctx, const media_copy_file *f, err_detail *d)
{
    writing *w = ctx;
    const bool is_frame = w->part->kind == CHAT_VIDEO;
    const prepare_hooks *h = w->m->hooks;
    const err_code err = reserve(w, f->n_bytes, d);
    if (err != ERR_OK) {
        return err;
    }
    if (is_frame && f->i == 0) {
        bytes_printf(
            w->out,
            "{\"type\":\"text\",\"text\":\"A video of %.1f seconds as %d images, each behind its time:\"},",
            f->duration_s, f->n);
    }
    if (is_frame) {
        bytes_printf(w->out, "%s{\"type\":\"text\",\"text\":\"%.1f seconds:\"},", f->i ? "," : "", f->t_s);
        if (h->progress) {
            h->progress(h->ctx, GEN_PHASE_MEDIA, f->i + 1, f->n);
        }
    }
    bytes_printf(w->out, "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:%s;base64,", f->mime);
    base64_encode(w->out, f->data, f->n_bytes);
    bytes_append_str(w->out, "\"}}");
    return ERR_OK;
}

static err_code append_file(writing *w, err_detail *d)
{
    const chat_part *p = w->part;
    uint8_t piece[PIECE];
    if (p->data) {
        base64_encode(w->out, p->data, p->data_bytes);
        return ERR_OK;
    }
    for (size_t at = 0; at < p->data_bytes; at += PIECE) {
        const size_t n = p->data_bytes - at < PIECE ? p->data_bytes - at : PIECE;
        if (file_read_at(p->fd, piece, n, at) != (int64_t)n) {
            return err_set(d, ERR_IO, "an uploaded file cannot be read");
        }
        base64_encode(w->out, piece, n);
    }
    return ERR_OK;
}

static const char *type_of(const chat_part *p)
{
    uint8_t head[256];
    const size_t n = p->data_bytes < sizeof head ? p->data_bytes : sizeof head;
    if (!p->data && file_read_at(p->fd, head, n, 0) != (int64_t)n) {
        return NULL;
    }
    return engine_media_type(p->data ? p->data : head, n);
}

static void write_count(writing *w, const char *name, int64_t value)
{
    if (value > 0) {
        bytes_printf(w->out, ",\"%s\":%lld", name, (long long)value);
    }
}

/* What stands beside the url, in the words of the engine. */
static void write_words(writing *w)
{
    const chat_video *v = &w->part->video;
    const upstream_engine e = w->m->engine;
    if ((e == UPSTREAM_PARLEY || e == UPSTREAM_SGLANG) && v->fps > 0) {
        bytes_printf(w->out, ",\"fps\":%g", v->fps);
    }
    if (e == UPSTREAM_PARLEY || e == UPSTREAM_SGLANG) {
        write_count(w, "max_frames", v->max_frames);
    }
    if (e == UPSTREAM_PARLEY) {
        write_count(w, "num_frames", v->n_frames);
        write_count(w, "min_frames", v->min_frames);
        write_count(w, "start_ms", (int64_t)(v->start_s * 1e3 + 0.5));
        write_count(w, "end_ms", (int64_t)(v->end_s * 1e3 + 0.5));
        write_count(w, "min_pixels", w->part->pixels.min);
        write_count(w, "max_pixels", w->part->pixels.max);
    }
}

static err_code write_video(writing *w, err_detail *d)
{
    const chat_part *p = w->part;
    const char *type = type_of(p);
    if (!type) {
        return err_set_param(d, ERR_UNSUPPORTED, NULL, "unsupported_video_media_type",
                             "this is no video of a kind that is known here");
    }
    err_code err = reserve(w, p->data_bytes, d);
    if (err == ERR_OK) {
        bytes_printf(w->out, "{\"type\":\"video_url\",\"video_url\":{\"url\":\"data:%s;base64,", type);
        err = append_file(w, d);
        bytes_append_char(w->out, '"');
        write_words(w);
        bytes_append_str(w->out, "}}");
    }
    return err;
}

err_code upstream_media_write(upstream_media *m, bytes *out, const chat_part *part, err_detail *d)
{
    writing w = {.m = m, .out = out, .part = part};
    const bool is_video = part->kind == CHAT_VIDEO;
    const int64_t pixels = m->max_pixels > 0              ? m->max_pixels
                           : m->engine == UPSTREAM_PARLEY ? PARLEY_PIXELS
                                                          : LIMIT_UPSTREAM_PIXELS;
    const media_copy_order order = {.part = part,
                                    .max_pixels = is_video ? LIMIT_UPSTREAM_VIDEO_PIXELS : pixels,
                                    .max_frames = LIMIT_UPSTREAM_FRAMES,
                                    .only_common = m->engine == UPSTREAM_LLAMA_CPP,
                                    .checks = part->is_found,
                                    .memory = m->memory,
                                    .each = write_image,
                                    .cancelled = is_cancelled,
                                    .ctx = &w};
    const err_code err = is_video && m->sends_files ? write_video(&w, d) : media_copy(m->copier, &order, d);
    if (part->is_found && err != ERR_OK && err != ERR_NOMEM && err != ERR_BUSY && err != ERR_CANCELLED) {
        chat_part words = *part;
        content_leave_out(&words); /* as for a model here */
        bytes_json(out, "{\"type\":\"text\",\"text\":%s}", words.text);
        if (d) {
            *d = (err_detail){0};
        }
        return ERR_OK;
    }
    if (err != ERR_OK && d && !d->param[0] && part->param) {
        snprintf(d->param, sizeof d->param, "%s", part->param);
    }
    return err;
}
