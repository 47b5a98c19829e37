#include "server/media/preview.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "server/media/data_uri.h"

typedef struct preview_writer {
    const preview_task *task;
    bytes thumbs; /* "{..},{..}" */
} preview_writer;

static void on_facts(void *ctx, const engine_media_facts *f)
{
    const preview_writer *w = ctx;
    bytes text = bytes_empty(4096);
    bytes_printf(&text, ",\"width\":%d,\"height\":%d", f->width, f->height);
    if (f->codec) {
        bytes_printf(&text, ",\"duration_ms\":%.0f,\"fps\":%.3f,\"frames\":%" PRId64 ",\"codec\":",
                     f->duration_s * 1e3, f->fps, f->n_frames);
        bytes_append_json(&text, f->codec, strlen(f->codec));
        bytes_printf(&text, ",\"has_audio\":%s", f->has_audio ? "true" : "false");
    }
    if (!text.failed) {
        w->task->on_facts(w->task->ctx, &text);
    }
    bytes_deinit(&text);
}

static void on_thumb(void *ctx, const preview_thumb *thumb)
{
    preview_writer *w = ctx;
    bytes_printf(&w->thumbs,
                 "%s{\"t_ms\":%.0f,\"width\":%d,\"height\":%d,\"data_uri\":\"data:image/jpeg;base64,",
                 w->thumbs.len ? "," : "", thumb->t_s * 1e3, thumb->width, thumb->height);
    base64_encode(&w->thumbs, thumb->jpeg, thumb->n_bytes);
    bytes_append_str(&w->thumbs, "\"}");
}

static bool is_cancelled(void *ctx)
{
    const preview_writer *w = ctx;
    return w->task->cancelled(w->task->ctx);
}

void preview_run(bytes *out, const preview_task *task)
{
    preview_writer w = {.task = task};
    const preview_hooks hooks = {.facts = on_facts, .thumb = on_thumb, .cancelled = is_cancelled, .ctx = &w};
    preview_tokens tokens = {0};
    file_handle h = {.fd = -1};
    bytes_init(&w.thumbs, PREVIEW_BYTES);
    if (file_store_open(task->files, task->scope, task->file_id, &h, NULL) == ERR_OK && h.mime) {
        /* What was seen until a video ended early is shown all the same: asking about the video
         * will say what is wrong with it. */
        err_detail ignored = {0};
        const bool is_video = strncmp(h.mime, "video/", 6) == 0;
        const engine_info *info = task->engine ? engine_get_info(task->engine) : NULL;
        const bool sees = info && (is_video ? info->has_video : info->has_vision);
        const err_code err =
            sees || !task->media
                ? engine_preview(task->engine, &tokens, h.fd, (size_t)h.bytes, is_video, &hooks, &ignored)
                : media_copier_preview(task->media, &tokens, h.fd, (size_t)h.bytes, is_video, &hooks,
                                       &ignored);
        if (err != ERR_CANCELLED && w.thumbs.len > 0 && !w.thumbs.failed) {
            bytes_printf(out, "{\"type\":\"media.preview\",\"file_id\":\"%s\",\"thumbs\":[", task->file_id);
            bytes_append(out, w.thumbs.data, w.thumbs.len);
            bytes_printf(out, "],\"sampled_frames\":%d,\"est_tokens\":%d}", tokens.n_frames, tokens.n_tokens);
        }
    }
    file_close(h.fd);
    bytes_deinit(&w.thumbs);
}
