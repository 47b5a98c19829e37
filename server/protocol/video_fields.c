#include "server/protocol/video_fields.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "server/protocol/request_fields.h"

#define FPS_MIN 0.001
#define FPS_MAX 240.0
enum { VIDEO_MS_MAX = 100 * 3600 * 1000 };

/* Puts the object's name in front of the field's. */
static err_code at_path(err_code err, const char *path, err_detail *d)
{
    if (err != ERR_OK && d && d->param[0]) {
        char full[ERR_PARAM_MAX];
        request_path(full, "%s.%s", path, d->param);
        memcpy(d->param, full, sizeof full);
    }
    return err;
}

static err_code read_count(int32_t *out, const json *object, const char *name, err_detail *d)
{
    int64_t value = *out;
    err_code err = request_int(&value, object, name, 1, LIMIT_VIDEO_FRAMES_MAX, d);
    *out = (int32_t)value;
    return err;
}

/* A time in milliseconds, kept in seconds. */
static err_code read_time(double *out, const json *object, const char *name, err_detail *d)
{
    double ms = *out * 1e3;
    err_code err = request_number(&ms, object, name, 0, VIDEO_MS_MAX, d);
    *out = ms / 1e3;
    return err;
}

static err_code read_sampling(chat_video *v, const json *object, err_detail *d)
{
    err_code err = request_number(&v->fps, object, "fps", FPS_MIN, FPS_MAX, d);
    if (err == ERR_OK) {
        err = read_count(&v->n_frames, object, "num_frames", d);
    }
    if (err == ERR_OK) {
        err = read_count(&v->min_frames, object, "min_frames", d);
    }
    return err == ERR_OK ? read_count(&v->max_frames, object, "max_frames", d) : err;
}

err_code video_fields_part(chat_video *v, const json *object, const char *path, err_detail *d)
{
    err_code err = read_sampling(v, object, d);
    if (err == ERR_OK) {
        err = read_time(&v->start_s, object, "start_ms", d);
    }
    if (err == ERR_OK) {
        err = read_time(&v->end_s, object, "end_ms", d);
    }
    return at_path(err, path, d);
}

err_code video_fields_body(chat_video *v, const json *root, err_detail *d)
{
    static const char NAME[] = "mm_processor_kwargs";
    static const char *const KNOWN[] = {"fps", "num_frames", "min_frames", "max_frames", "do_sample_frames"};
    const json *object = json_get(root, NAME);
    if (!object || json_typeof(object) == JSON_NULL) {
        return ERR_OK;
    }
    if (!json_is(object, JSON_OBJECT)) {
        return err_set_param(d, ERR_INVALID, NAME, "invalid_type", "%s must be an object", NAME);
    }
    for (const json *field = json_child(object); field; field = json_next(field)) {
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(KNOWN); i++) {
            known = known || strcmp(json_key(field), KNOWN[i]) == 0;
        }
        if (!known) {
            return err_set_param(d, ERR_UNSUPPORTED, NAME, "not_supported",
                                 "%s may hold fps, num_frames, min_frames, max_frames and do_sample_frames",
                                 NAME);
        }
    }
    bool sample = true;
    err_code err = at_path(request_bool(&sample, object, "do_sample_frames", d), NAME, d);
    if (err == ERR_OK && !sample) {
        return err_set_param(d, ERR_UNSUPPORTED, "mm_processor_kwargs.do_sample_frames", "not_supported",
                             "videos are always sampled; num_frames says how many frames are shown");
    }
    return err == ERR_OK ? at_path(read_sampling(v, object, d), NAME, d) : err;
}
