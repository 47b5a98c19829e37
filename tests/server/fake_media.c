/* The double's media for other servers: see fake_engine.c. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/media_copy.h"

/* Until the file $FAKE_STUCK_UNTIL exists; false if nobody wants to know any more. */
static bool wait_for_file(const preview_hooks *hooks)
{
    const char *until = getenv("FAKE_STUCK_UNTIL");
    while (until && access(until, F_OK) != 0) {
        if (hooks->cancelled(hooks->ctx)) {
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return true;
}

/* Every image is 40 x 30 and shows "thumb"; the last byte 'X' makes it one that cannot be read, 'W' one that is looked at
 * only once there is that file, 'V' one whose thumb is. */
err_code engine_preview(const engine *e, preview_tokens *out, int fd, size_t n_bytes, bool is_video,
                        const preview_hooks *hooks, err_detail *d)
{
    (void)e, (void)is_video;
    char last = '\0';
    if (pread(fd, &last, 1, (off_t)n_bytes - 1) != 1 || last == 'X') {
        return err_set(d, ERR_CORRUPT, "damaged");
    }
    const engine_media_facts facts = {.width = 40, .height = 30};
    const preview_thumb thumb = {.width = 40, .height = 30, .jpeg = (const uint8_t *)"thumb", .n_bytes = 5};
    if (last == 'W' && !wait_for_file(hooks)) {
        return err_set(d, ERR_CANCELLED, "cancelled");
    }
    hooks->facts(hooks->ctx, &facts);
    if (last == 'V' && !wait_for_file(hooks)) {
        return err_set(d, ERR_CANCELLED, "cancelled");
    }
    hooks->thumb(hooks->ctx, &thumb);
    *out = (preview_tokens){1, 14};
    return ERR_OK;
}

/* ---- files for other servers ---- */

struct media_copier {
    int unused;
};

media_copier *media_copier_create(const engine_options *options)
{
    (void)options;
    return calloc(1, sizeof(media_copier));
}

void media_copier_destroy(media_copier *c)
{
    free(c);
}

/* An image as it is; a video as two images, its bytes and "second". */
err_code media_copy(const media_copier *c, const media_copy_order *o, err_detail *d)
{
    (void)c;
    const bool is_video = o->part->kind == CHAT_VIDEO;
    media_copy_file f = {.mime = is_video ? "image/jpeg" : "image/png",
                         .data = o->part->data,
                         .n_bytes = o->part->data_bytes,
                         .n = is_video ? 2 : 1,
                         .duration_s = 2.0};
    if (!f.data || (!is_video && (f.n_bytes < 4 || memcmp(f.data, "\x89PNG", 4) != 0))) {
        return err_set_param(d, ERR_CORRUPT, NULL, "image_parse_error", "the image is damaged");
    }
    err_code err = o->each(o->ctx, &f, d);
    f.i = 1;
    f.t_s = 1.0;
    f.data = (const uint8_t *)"second";
    f.n_bytes = 6;
    return err == ERR_OK && is_video ? o->each(o->ctx, &f, d) : err;
}

err_code media_copier_preview(const media_copier *c, preview_tokens *out, int fd, size_t n_bytes,
                              bool is_video, const preview_hooks *hooks, err_detail *d)
{
    (void)c;
    return engine_preview(NULL, out, fd, n_bytes, is_video, hooks, d);
}
