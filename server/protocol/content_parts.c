#include "server/protocol/content_parts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "server/media/data_uri.h"
#include "server/protocol/request_fields.h"
#include "server/protocol/video_fields.h"

enum { PATH_MAX_BYTES = ERR_PARAM_MAX, FILE_HEAD = 384 };

static err_code no_memory(err_detail *d)
{
    return err_set(d, ERR_NOMEM, "no memory for this request");
}

static err_code set_text(content_reader *r, chat_part *part, const char *text, err_detail *d)
{
    part->kind = CHAT_TEXT;
    part->text_len = strlen(text);
    part->text = arena_strdup(r->in->arena, text, part->text_len);
    return part->text ? ERR_OK : no_memory(d);
}

/* The URL of a media part: a string, or an object with url (or data). */
static const char *media_url(const json *part, const char *field)
{
    const json *v = json_get(part, field);
    const char *url = json_str(v, NULL);
    if (!url) {
        url = json_str(json_get(v, "url"), NULL);
    }
    return url ? url : json_str(json_get(v, "data"), NULL);
}

/* The id of an uploaded file that a URL or a part names, or NULL. */
static const char *file_id_of(const json *part, const char *field, const char *url)
{
    static const char UPLOAD[] = "upload:";
    const char *id = json_str(json_get(part, "file_id"), NULL);
    id = id ? id : json_str(json_get(json_get(part, field), "file_id"), NULL);
    return id ? id : url && strncmp(url, UPLOAD, sizeof UPLOAD - 1) == 0 ? url + sizeof UPLOAD - 1 : NULL;
}

/* A file in memory, or open. */
typedef struct media_file {
    chat_file file;
    int fd; /* 0: none, and the bytes are in `file` */
    const uint8_t *hash;
} media_file;

/* Finds an uploaded file. An image comes into memory, within the limit of one that is sent along; a
 * video is read where it lies. */
static err_code open_upload(content_reader *r, media_file *out, bool is_image, const char *id,
                            const char *path, err_detail *d)
{
    file_handle h = {.fd = -1};
    err_code err = r->files
                       ? file_store_open(r->files, r->scope, id, &h, d)
                       : err_set_param(d, ERR_NOT_FOUND, NULL, "file_not_found", "there is no such file");
    if (err != ERR_OK) {
        goto out;
    }
    uint8_t *hash = arena_alloc(r->in->arena, HASH_BYTES);
    if (!hash) {
        err = no_memory(d);
        goto out;
    }
    memcpy(hash, h.hash, HASH_BYTES);
    out->hash = hash;
    out->file.bytes = (size_t)h.bytes;
    if (!is_image) {
        r->in->fds[r->in->n_fds++] = out->fd = h.fd; /* as many as there may be media */
        h.fd = -1;
        goto out;
    }
    if (h.bytes > LIMIT_BODY_BYTES) {
        err = err_set_param(d, ERR_LIMIT, NULL, "image_too_large", "an image may have %zu bytes at most",
                            LIMIT_BODY_BYTES);
        goto out;
    }
    uint8_t *data = arena_alloc(r->in->arena, (size_t)h.bytes + 1);
    if (!data) {
        err = no_memory(d);
    } else if (file_read_at(h.fd, data, (size_t)h.bytes, 0) != (int64_t)h.bytes) {
        err = err_set(d, ERR_IO, "an uploaded file cannot be read");
    }
    out->file.data = data;
out:
    if (h.fd >= 0) {
        close(h.fd);
    }
    if (err != ERR_OK && d) {
        snprintf(d->param, sizeof d->param, "%s", path);
    }
    return err;
}

/* Decodes the file of a data: URL; a remote one is only noted. */
static err_code read_file(content_reader *r, chat_file *file, bool is_image, const char *url,
                          const char *path, err_detail *d)
{
    const char *what = is_image ? "image" : "video";
    if (!url) {
        return err_set_param(d, ERR_INVALID, path, "invalid_type", "%s must hold a data: URL with the %s",
                             path, what);
    }
    size_t len = strlen(url);
    err_code err = ERR_OK;
    switch (data_uri_classify(url, len)) {
    case DATA_URI_REMOTE:
        err = remote_media_check(r->remote, url, is_image, path, d);
        if (err == ERR_OK) {
            file->url = arena_strdup(r->in->arena, url, len);
            err = file->url ? ERR_OK : no_memory(d);
        }
        return err;
    case DATA_URI_UPLOAD:
        return err_set_param(d, ERR_UNSUPPORTED, path, "not_supported",
                             "an uploaded file can be a part of its own only");
    default:
        break;
    }
    err_detail inner = {0};
    err = data_uri_decode(r->in->arena, &file->data, &file->bytes, url, len, LIMIT_BODY_BYTES, &inner);
    if (err != ERR_OK) {
        return err_set_param(d, err, path, is_image ? "image_parse_error" : "video_parse_error", "%s: %s",
                             path, inner.text);
    }
    return ERR_OK;
}

/* Makes `part` an image or a video without its file yet, if the model and the limits allow one
 * more. */
static err_code begin_media(content_reader *r, chat_part *part, chat_part_kind kind, const char *path,
                            err_detail *d)
{
    bool is_image = kind == CHAT_IMAGE;
    if (r->info && !(is_image ? r->info->has_vision : r->info->has_video)) {
        return err_set_param(d, ERR_UNSUPPORTED, path,
                             is_image ? "image_not_supported" : "video_not_supported",
                             "this model cannot read %s", is_image ? "images" : "videos");
    }
    const int max = r->info ? r->info->max_images : LIMIT_IMAGES;
    if (++r->n_media > max) {
        return err_set_param(d, ERR_LIMIT, path, "too_many_images",
                             "a request may hold at most %d images and videos", max);
    }
    part->kind = kind;
    part->param = arena_strdup(r->in->arena, path, strlen(path));
    return part->param ? ERR_OK : no_memory(d);
}

/* Makes `part` an image or a video in one file: a data: URL, or an uploaded file. */
static err_code set_media(content_reader *r, chat_part *part, chat_part_kind kind, const char *url,
                          const char *id, const char *path, err_detail *d)
{
    media_file m = {0};
    const bool is_image = kind == CHAT_IMAGE;
    err_code err = begin_media(r, part, kind, path, d);
    if (err == ERR_OK) {
        err = id ? open_upload(r, &m, is_image, id, path, d) : read_file(r, &m.file, is_image, url, path, d);
    }
    part->data = m.file.data;
    part->data_bytes = m.file.bytes;
    part->fd = m.fd;
    part->hash = m.hash;
    part->url = m.file.url;
    return err;
}

static err_code set_image(content_reader *r, chat_part *part, const json *v, const char *part_path,
                          err_detail *d)
{
    static const char FIELD[] = "image_url";
    char path[PATH_MAX_BYTES];
    const char *url = media_url(v, FIELD), *id = file_id_of(v, FIELD, url);
    request_path(path, "%s.%s", part_path, json_get(v, "file_id") ? "file_id" : FIELD);
    return set_media(r, part, CHAT_IMAGE, url, id, path, d);
}

/* A video in one file; v is the part, whose settings may also stand in the object that holds the
 * URL. */
static err_code set_video(content_reader *r, chat_part *part, const json *v, const char *field,
                          const char *part_path, err_detail *d)
{
    char path[PATH_MAX_BYTES];
    const char *url = media_url(v, field), *id = file_id_of(v, field, url);
    request_path(path, "%s.%s", part_path, json_get(v, "file_id") ? "file_id" : field);
    err_code err = set_media(r, part, CHAT_VIDEO, url, id, path, d);
    part->video = r->video;
    if (err == ERR_OK && json_is(json_get(v, field), JSON_OBJECT)) {
        err = video_fields_part(&part->video, json_get(v, field), path, d);
    }
    return err == ERR_OK ? video_fields_part(&part->video, v, part_path, d) : err;
}

/* A video as a list of images. Its fps is the rate of the list, not the rate shown. */
static err_code set_video_list(content_reader *r, chat_part *part, const json *v, const char *part_path,
                               err_detail *d)
{
    char path[PATH_MAX_BYTES];
    const json *list = json_get(v, "video");
    const size_t n = json_len(list);
    request_path(path, "%s.video", part_path);
    err_code err = begin_media(r, part, CHAT_VIDEO, path, d);
    if (err == ERR_OK && (n == 0 || n > LIMIT_VIDEO_FRAMES_MAX)) {
        err = err_set_param(d, n ? ERR_LIMIT : ERR_INVALID, path, n ? "video_too_large" : "invalid_value",
                            "%s must hold 1 to %d images", path, LIMIT_VIDEO_FRAMES_MAX);
    }
    if (err != ERR_OK) {
        return err;
    }
    chat_file *files = arena_calloc(r->in->arena, n, sizeof *files);
    if (!files) {
        return no_memory(d);
    }
    size_t i = 0;
    for (const json *url = json_child(list); url && err == ERR_OK; url = json_next(url), i++) {
        char image_path[PATH_MAX_BYTES];
        request_path(image_path, "%s[%zu]", path, i);
        err = read_file(r, &files[i], true, json_str(url, NULL), image_path, d);
    }
    part->video = r->video;
    if (err == ERR_OK) {
        err = video_fields_part(&part->video, v, part_path, d);
    }
    part->video.list_fps = json_get(v, "fps") ? part->video.fps : 0;
    part->video.fps = r->video.fps;
    part->video.list = files;
    part->video.n_list = n;
    return err;
}

/* A file of whatever kind: {"type":"file","file":{"file_id" or "file_data"}}, or
 * {"type":"input_file",...} with the same beside the type. Its first bytes say whether it is an
 * image or a video. */
static err_code set_any_file(content_reader *r, chat_part *part, const json *v, const char *type,
                             const char *part_path, err_detail *d)
{
    char path[PATH_MAX_BYTES];
    const json *file = strcmp(type, "file") == 0 ? json_get(v, "file") : v;
    const char *id = json_str(json_get(file, "file_id"), NULL),
               *url = json_str(json_get(file, "file_data"), NULL);
    const char *mime = NULL;
    uint8_t head[FILE_HEAD];
    size_t n = 0;
    request_path(path, "%s.%s%s", part_path, file == v ? "" : "file.", id ? "file_id" : "file_data");
    if (id) {
        file_handle h;
        err_code err = r->files
                           ? file_store_open(r->files, r->scope, id, &h, d)
                           : err_set_param(d, ERR_NOT_FOUND, NULL, "file_not_found", "there is no such file");
        if (err != ERR_OK) {
            if (d) {
                snprintf(d->param, sizeof d->param, "%s", path);
            }
            return err;
        }
        close(h.fd);
        mime = h.mime;
    } else if (url) {
        const char *comma = strncmp(url, "data:", 5) == 0 ? strchr(url, ',') : NULL;
        const char *text = comma ? comma + 1 : url;
        const size_t len = strlen(text) < FILE_HEAD / 3 * 4 ? strlen(text) / 4 * 4 : FILE_HEAD / 3 * 4;
        mime = base64_decode(head, &n, text, len) ? engine_media_type(head, n) : NULL;
    }
    if (!mime) {
        return err_set_param(d, ERR_UNSUPPORTED, path, "unsupported_file",
                             "%s is neither an image nor a video; other files are not read", path);
    }
    const bool is_video = strncmp(mime, "video/", 6) == 0;
    part->video = r->video;
    return set_media(r, part, is_video ? CHAT_VIDEO : CHAT_IMAGE, url, id, path, d);
}

static bool is_any(const char *type, const char *a, const char *b, const char *c)
{
    return strcmp(type, a) == 0 || (b && strcmp(type, b) == 0) || (c && strcmp(type, c) == 0);
}

static err_code read_part(content_reader *r, chat_part *part, const json *v, const char *path, err_detail *d)
{
    char inner[PATH_MAX_BYTES];
    const char *type = json_str(json_get(v, "type"), NULL);
    if (!json_is(v, JSON_OBJECT) || !type) {
        return err_set_param(d, ERR_INVALID, path, "invalid_type", "%s must be an object with a type", path);
    }
    if (is_any(type, "text", "input_text", "output_text")) {
        const char *text = json_str(json_get(v, "text"), NULL);
        if (!text) {
            request_path(inner, "%s.text", path);
            return err_set_param(d, ERR_INVALID, inner, "invalid_type", "%s must be a string", inner);
        }
        return set_text(r, part, text, d);
    }
    if (is_any(type, "refusal", NULL, NULL)) {
        return set_text(r, part, json_str(json_get(v, "refusal"), ""), d);
    }
    if (is_any(type, "image_url", "input_image", NULL)) {
        return set_image(r, part, v, path, d);
    }
    if (is_any(type, "file", "input_file", NULL)) {
        return set_any_file(r, part, v, type, path, d);
    }
    if (is_any(type, "video", NULL, NULL) && json_is(json_get(v, "video"), JSON_ARRAY)) {
        return set_video_list(r, part, v, path, d);
    }
    if (is_any(type, "video_url", "input_video", "video")) {
        const char *field = json_get(v, "video_url")     ? "video_url"
                            : json_get(v, "input_video") ? "input_video"
                                                         : type;
        return set_video(r, part, v, field, path, d);
    }
    request_path(inner, "%s.type", path);
    return err_set_param(d, ERR_UNSUPPORTED, inner, "unsupported_content_type",
                         "%s: only text, images and videos are understood", inner);
}

err_code content_read(content_reader *r, chat_message *m, const json *content, const char *path,
                      err_detail *d)
{
    m->parts = NULL;
    m->n_parts = 0;
    m->is_string = true;
    if (json_typeof(content) == JSON_NULL) {
        return ERR_OK;
    }
    bool is_string = json_is(content, JSON_STRING);
    if (!is_string && !json_is(content, JSON_ARRAY)) {
        return err_set_param(d, ERR_INVALID, path, "invalid_type", "%s must be a string or a list of parts",
                             path);
    }
    size_t n = is_string ? 1 : json_len(content);
    if (n > LIMIT_PARTS_PER_MESSAGE) {
        return err_set_param(d, ERR_INVALID, path, "too_many_parts", "%s has more than %d parts", path,
                             LIMIT_PARTS_PER_MESSAGE);
    }
    m->is_string = is_string;
    m->parts = arena_calloc(r->in->arena, n + 1, sizeof *m->parts);
    if (!m->parts) {
        return no_memory(d);
    }
    if (is_string) {
        m->n_parts = 1;
        return set_text(r, &m->parts[0], json_str(content, ""), d);
    }
    for (const json *v = json_child(content); v; v = json_next(v)) {
        char part_path[PATH_MAX_BYTES];
        request_path(part_path, "%s[%zu]", path, m->n_parts);
        err_code err = read_part(r, &m->parts[m->n_parts], v, part_path, d);
        if (err != ERR_OK) {
            return err;
        }
        m->n_parts++;
    }
    return ERR_OK;
}
