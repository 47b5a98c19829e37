#include "server/protocol/video_fields.h"

#include <string.h>

#include "base/limits.h"
#include "server/protocol/request_fields.h"

#define FPS_MIN 0.001
#define FPS_MAX 240.0
enum { VIDEO_MS_MAX = 100 * 3600 * 1000, PAIR_TOKENS_MAX = 1 << 16 };

static void read_count(first_error *e, int32_t *out, const json *object, const char *name)
{
    int64_t value = *out;
    request_int(e, &value, object, name, 1, LIMIT_VIDEO_FRAMES_MAX);
    *out = (int32_t)value;
}

/* A time in milliseconds, kept in seconds. */
static void read_time(first_error *e, double *out, const json *object, const char *name)
{
    double ms = *out * 1e3;
    request_number(e, &ms, object, name, 0, VIDEO_MS_MAX);
    *out = ms / 1e3;
}

static void read_sampling(first_error *e, chat_video *v, const json *object)
{
    request_number(e, &v->fps, object, "fps", FPS_MIN, FPS_MAX);
    read_count(e, &v->n_frames, object, "nframes");
    read_count(e, &v->n_frames, object, "num_frames");
    read_count(e, &v->min_frames, object, "min_frames");
    read_count(e, &v->max_frames, object, "max_frames");
    int64_t pair_tokens = v->pair_tokens;
    request_int(e, &pair_tokens, object, "pair_tokens", 1, PAIR_TOKENS_MAX);
    v->pair_tokens = (int32_t)pair_tokens;
}

/* Puts the object's name in front of the field's. */
static void name_object(const first_error *e, const char *path)
{
    if (e->code != ERR_OK && e->detail->param[0]) {
        char full[ERR_PARAM_MAX];
        request_path(full, "%s.%s", path, e->detail->param);
        memcpy(e->detail->param, full, sizeof full);
    }
}

void video_fields_part(first_error *e, chat_video *v, const json *object, const char *path)
{
    if (e->code != ERR_OK) {
        return;
    }
    read_sampling(e, v, object);
    read_time(e, &v->start_s, object, "start_ms");
    read_time(e, &v->end_s, object, "end_ms");
    name_object(e, path);
}

static void read_pixels(first_error *e, chat_pixels *pixels, const json *object)
{
    request_int(e, &pixels->min, object, "min_pixels", 1, (int64_t)LIMIT_IMAGE_PIXELS);
    request_int(e, &pixels->max, object, "max_pixels", 1, (int64_t)LIMIT_IMAGE_PIXELS);
    if (pixels->min > 0 && pixels->max > 0 && pixels->min > pixels->max) {
        request_fail(e, ERR_INVALID, "min_pixels", "invalid_value",
                     "min_pixels is %lld, more than max_pixels, which is %lld", (long long)pixels->min,
                     (long long)pixels->max);
    }
}

void video_fields_pixels(first_error *e, chat_pixels *pixels, const json *object, const char *path)
{
    if (e->code == ERR_OK && json_is(object, JSON_OBJECT)) {
        read_pixels(e, pixels, object);
        name_object(e, path);
    }
}

static void read_processor_kwargs(first_error *e, chat_video *v, chat_pixels *pixels, const json *root)
{
    static const char NAME[] = "mm_processor_kwargs";
    static const char *const KNOWN[] = {"fps",        "num_frames",  "nframes",
                                        "min_frames", "max_frames",  "min_pixels",
                                        "max_pixels", "pair_tokens", "do_sample_frames"};
    const json *object = request_object(e, root, NAME);
    for (const json *field = json_child(object); field; field = json_next(field)) {
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(KNOWN); i++) {
            known = known || strcmp(json_key(field), KNOWN[i]) == 0;
        }
        if (!known) {
            request_fail(e, ERR_UNSUPPORTED, NAME, "not_supported",
                         "%s may hold fps, num_frames, min_frames, max_frames, min_pixels, max_pixels, "
                         "pair_tokens and do_sample_frames",
                         NAME);
        }
    }
    if (e->code != ERR_OK) {
        return;
    }
    bool sample = true;
    request_bool(e, &sample, object, "do_sample_frames");
    if (!sample) {
        request_fail(e, ERR_UNSUPPORTED, "do_sample_frames", "not_supported",
                     "videos are always sampled; num_frames says how many frames are shown");
    }
    read_sampling(e, v, object);
    read_pixels(e, pixels, object);
    name_object(e, NAME);
}

void video_fields_body(first_error *e, chat_video *v, chat_pixels *pixels, const json *root)
{
    const json *io = request_object(e, request_object(e, root, "media_io_kwargs"), "video");
    request_number(e, &v->fps, root, "video_fps", FPS_MIN, FPS_MAX);
    read_count(e, &v->max_frames, root, "video_max_frames");
    read_pixels(e, pixels, root);
    video_fields_part(e, v, io, "media_io_kwargs.video");
    read_processor_kwargs(e, v, pixels, root);
}
