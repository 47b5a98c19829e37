/* previews: what is shown of an uploaded file to the person who sent it, as lines of a recorded file.
 *
 *     const preview_hooks hooks = previews_hooks(&t);
 *     err = engine_preview(e, &tokens, fd, n, is_video, &hooks, detail);
 *     previews_tell(&t, err, &tokens, detail);
 *
 * They are
 *   < facts 320x240, 5 s of 10 a second, 50 frames of h264, sound 0
 *   < thumb 160x120 at 0, scale 10
 *   < 4 frames, 200 tokens
 */
#ifndef PARLEY_TESTS_ENGINE_PREVIEWS_H
#define PARLEY_TESTS_ENGINE_PREVIEWS_H

#include "base/bytes.h"
#include "engine/engine.h"

typedef struct preview_teller {
    bytes *out;
    int32_t n_looks, stops_at; /* 0: never */
} preview_teller;

/* The first number of the first table that a JPEG is made coarser by: 10 for a quality of 70, 5 for 85, 3 for 92. */
static inline int previews_scale(const uint8_t *jpeg, size_t n)
{
    for (size_t i = 0; i + 5 < n; i++) {
        if (jpeg[i] == 0xff && jpeg[i + 1] == 0xdb) {
            return jpeg[i + 5];
        }
    }
    return 0;
}

static inline void previews_facts(void *ctx, const engine_media_facts *f)
{
    const preview_teller *t = ctx;
    bytes_printf(t->out, "< facts %dx%d, %g s of %g a second, %lld frames of %s, sound %d\n", f->width,
                 f->height, f->duration_s, f->fps, (long long)f->n_frames, f->codec ? f->codec : "nothing",
                 f->has_audio);
}

static inline void previews_thumb(void *ctx, const preview_thumb *thumb)
{
    const preview_teller *t = ctx;
    bytes_printf(t->out, "< thumb %dx%d at %g, scale %d\n", thumb->width, thumb->height, thumb->t_s,
                 previews_scale(thumb->jpeg, thumb->n_bytes));
}

static inline bool previews_cancelled(void *ctx)
{
    preview_teller *t = ctx;
    return ++t->n_looks == t->stops_at;
}

static inline preview_hooks previews_hooks(preview_teller *t)
{
    return (preview_hooks){previews_facts, previews_thumb, previews_cancelled, t};
}

static inline void previews_tell(preview_teller *t, err_code err, const preview_tokens *tokens,
                                 const err_detail *d)
{
    if (err != ERR_OK) {
        bytes_printf(t->out, "< error %s: %s\n", err_name(err), d->text);
    }
    bytes_printf(t->out, "< %d frames, %d tokens\n", tokens->n_frames, tokens->n_tokens);
}

#endif
