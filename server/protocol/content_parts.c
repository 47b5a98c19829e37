#include "server/protocol/content_parts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "server/media/data_uri.h"
#include "server/protocol/video_fields.h"

enum { FILE_HEAD = 384 };

static void set_text(content_reader *c, chat_part *part, const char *text)
{
    part->kind = CHAT_TEXT;
    part->text_len = strlen(text);
    part->text = request_strdup(&c->r->error, c->r->in->arena, text);
}

void content_leave_out(chat_part *part)
{
    static const char WORDS[] = "[an image is left out: it cannot be read]";
    *part = (chat_part){.kind = CHAT_TEXT, .text = WORDS, .text_len = sizeof WORDS - 1};
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

/* The id of an uploaded file that a URL (or NULL) names, or NULL. */
static const char *upload_id(const char *url)
{
    static const char UPLOAD[] = "upload:";
    return url && strncmp(url, UPLOAD, sizeof UPLOAD - 1) == 0 ? url + sizeof UPLOAD - 1 : NULL;
}

/* The id of an uploaded file that a URL or a part names, or NULL. */
static const char *file_id_of(const json *part, const char *field, const char *url)
{
    const char *id = json_str(json_get(part, "file_id"), NULL);
    id = id ? id : json_str(json_get(json_get(part, field), "file_id"), NULL);
    return id ? id : upload_id(url);
}

/* Opens an uploaded file; false and an error at `path` if that fails. */
static bool open_stored(api_request *r, file_handle *h, const char *id, const char *path)
{
    first_error *e = &r->error;
    if (!r->files) {
        request_fail(e, ERR_NOT_FOUND, path, "file_not_found", "there is no such file");
    }
    if (e->code != ERR_OK) {
        return false;
    }
    e->code = file_store_open(r->files, r->scope, id, h, e->detail);
    if (e->code != ERR_OK) {
        snprintf(e->detail->param, sizeof e->detail->param, "%s", path);
    }
    return e->code == ERR_OK;
}

/* Finds an uploaded file. An image comes into memory, within the limit of one that is sent along; a
 * video is read where it lies. */
static void open_upload(api_request *r, chat_part *part, const char *id, const char *path)
{
    first_error *e = &r->error;
    chat_input *in = r->in;
    file_handle h;
    if (!open_stored(r, &h, id, path)) {
        return;
    }
    uint8_t *hash = request_calloc(e, in->arena, 1, HASH_BYTES), *data = NULL;
    if (hash) {
        memcpy(hash, h.hash, HASH_BYTES);
    }
    part->hash = hash;
    part->data_bytes = (size_t)h.bytes;
    if (part->kind == CHAT_VIDEO && hash) {
        in->fds[in->n_fds++] = part->fd = h.fd; /* as many as there may be media */
        return;
    }
    if (h.bytes > LIMIT_BODY_BYTES) {
        request_fail(e, ERR_LIMIT, path, "image_too_large", "an image may have %zu bytes at most",
                     LIMIT_BODY_BYTES);
    } else {
        data = arena_alloc(in->arena, (size_t)h.bytes + 1);
    }
    if (!data) {
        request_fail(e, ERR_NOMEM, path, NULL, "no memory for this request");
    } else if (file_read_at(h.fd, data, (size_t)h.bytes, 0) != (int64_t)h.bytes) {
        request_fail(e, ERR_IO, path, NULL, "an uploaded file cannot be read");
    }
    part->data = data;
    close(h.fd);
}

/* Decodes the file of a data: URL; a remote one is only noted. */
static void read_file(api_request *r, chat_file *file, bool is_image, const char *url, const char *path)
{
    first_error *e = &r->error;
    const char *what = is_image ? "image" : "video";
    if (!url) {
        request_fail(e, ERR_INVALID, path, "invalid_type", "%s must hold a data: URL with the %s", path,
                     what);
    }
    if (e->code != ERR_OK) {
        return;
    }
    const data_uri_kind kind = data_uri_classify(url, strlen(url));
    if (kind == DATA_URI_REMOTE) {
        e->code = remote_media_check(r->remote, url, is_image, path, e->detail);
        file->url = request_strdup(e, r->in->arena, url);
        return;
    }
    if (kind == DATA_URI_UPLOAD) {
        request_fail(e, ERR_UNSUPPORTED, path, "not_supported",
                     "an uploaded file can be a part of its own only");
        return;
    }
    err_detail inner = {0};
    const err_code err =
        data_uri_decode(r->in->arena, &file->data, &file->bytes, url, strlen(url), LIMIT_BODY_BYTES, &inner);
    if (err != ERR_OK) {
        request_fail(e, err, path, is_image ? "image_parse_error" : "video_parse_error", "%s: %s", path,
                     inner.text);
    }
}

/* Makes `part` an image or a video without its file yet, if the model and the limits allow one
 * more. */
static void begin_media(content_reader *c, chat_part *part, chat_part_kind kind, const char *path)
{
    first_error *e = &c->r->error;
    const bool is_image = kind == CHAT_IMAGE;
    const int max = c->info ? c->info->max_images : LIMIT_IMAGES;
    if (c->info && !(is_image ? c->info->has_vision : c->info->has_video)) {
        request_fail(e, ERR_UNSUPPORTED, path, is_image ? "image_not_supported" : "video_not_supported",
                     "this model cannot read %s", is_image ? "images" : "videos");
    }
    if (++c->n_media > max) {
        request_fail(e, ERR_LIMIT, path, "too_many_images", "a request may hold at most %d images and videos",
                     max);
    }
    part->kind = kind;
    part->pixels = c->pixels;
    part->param = request_strdup(e, c->r->in->arena, path);
}

/* Makes `part` an image or a video in one file: a URL, or an uploaded file. */
static void set_media(content_reader *c, chat_part *part, chat_part_kind kind, const char *url,
                      const char *id, const char *path)
{
    first_error *e = &c->r->error;
    begin_media(c, part, kind, path);
    part->is_found = c->is_found;
    if (id) {
        open_upload(c->r, part, id, path);
        return;
    }
    chat_file file = {0};
    read_file(c->r, &file, kind == CHAT_IMAGE, url, path);
    part->data = file.data;
    part->data_bytes = file.bytes;
    part->url = file.url;
    if (c->is_found && e->code != ERR_OK && e->code != ERR_NOMEM) {
        e->code = ERR_OK;
        *e->detail = (err_detail){0};
        c->n_media--;
        content_leave_out(part);
    }
}

/* An image or a video in one file. The settings of a video stand in the part, or in the object that
 * holds the URL. */
static void set_one_file(content_reader *c, chat_part *part, chat_part_kind kind, const json *v,
                         const char *field, const char *part_path)
{
    char path[ERR_PARAM_MAX];
    const char *url = media_url(v, field), *id = file_id_of(v, field, url);
    request_path(path, "%s.%s", part_path, json_get(v, "file_id") ? "file_id" : field);
    set_media(c, part, kind, url, id, path);
    video_fields_pixels(&c->r->error, &part->pixels, json_get(v, field), path);
    video_fields_pixels(&c->r->error, &part->pixels, v, part_path);
    if (kind == CHAT_VIDEO) {
        part->video = c->video;
        video_fields_part(&c->r->error, &part->video, json_get(v, field), path);
        video_fields_part(&c->r->error, &part->video, v, part_path);
    }
}

/* A video as a list of images. Its fps is the rate of the list, not the rate shown. */
static void set_video_list(content_reader *c, chat_part *part, const json *v, const char *part_path)
{
    first_error *e = &c->r->error;
    char path[ERR_PARAM_MAX];
    const json *list = json_get(v, "video");
    const size_t n = json_len(list);
    request_path(path, "%s.video", part_path);
    begin_media(c, part, CHAT_VIDEO, path);
    if (n == 0 || n > LIMIT_VIDEO_FRAMES_MAX) {
        request_fail(e, n ? ERR_LIMIT : ERR_INVALID, path, n ? "video_too_large" : "invalid_value",
                     "%s must hold 1 to %d images", path, LIMIT_VIDEO_FRAMES_MAX);
    }
    chat_file *files = request_calloc(e, c->r->in->arena, n, sizeof *files);
    size_t i = 0;
    for (const json *url = json_child(list); url && e->code == ERR_OK; url = json_next(url), i++) {
        char image_path[ERR_PARAM_MAX];
        request_path(image_path, "%s[%zu]", path, i);
        read_file(c->r, &files[i], true, json_str(url, NULL), image_path);
    }
    part->video = c->video;
    video_fields_part(e, &part->video, v, part_path);
    video_fields_pixels(e, &part->pixels, v, part_path);
    part->video.list_fps = json_get(v, "fps") ? part->video.fps : 0;
    part->video.fps = c->video.fps;
    part->video.list = files;
    part->video.n_list = n;
}

/* A file of whatever kind: {"type":"file","file":{"file_id" or "file_data"}}, or
 * {"type":"input_file",...} with the same beside the type. Its first bytes say whether it is an
 * image or a video. */
static void set_any_file(content_reader *c, chat_part *part, const json *v, const char *type,
                         const char *part_path)
{
    char path[ERR_PARAM_MAX];
    const json *file = strcmp(type, "file") == 0 ? json_get(v, "file") : v;
    const char *id = json_str(json_get(file, "file_id"), NULL),
               *url = json_str(json_get(file, "file_data"), NULL);
    const char *mime = NULL;
    uint8_t head[FILE_HEAD];
    size_t n = 0;
    request_path(path, "%s.%s%s", part_path, file == v ? "" : "file.", id ? "file_id" : "file_data");
    if (id) {
        file_handle h;
        if (!open_stored(c->r, &h, id, path)) {
            return;
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
        request_fail(&c->r->error, ERR_UNSUPPORTED, path, "unsupported_file",
                     "%s is neither an image nor a video; other files are not read", path);
        return;
    }
    part->video = c->video;
    set_media(c, part, strncmp(mime, "video/", 6) == 0 ? CHAT_VIDEO : CHAT_IMAGE, url, id, path);
}

static bool is_any(const char *type, const char *a, const char *b, const char *c)
{
    return strcmp(type, a) == 0 || (b && strcmp(type, b) == 0) || (c && strcmp(type, c) == 0);
}

static void read_part(content_reader *c, chat_part *part, const json *v, const char *path)
{
    first_error *e = &c->r->error;
    char inner[ERR_PARAM_MAX];
    const char *type = json_str(json_get(v, "type"), NULL);
    if (!type) {
        request_fail(e, ERR_INVALID, path, "invalid_type", "%s must be an object with a type", path);
    } else if (is_any(type, "text", "input_text", "output_text")) {
        const char *text = json_str(json_get(v, "text"), NULL);
        if (!text) {
            request_path(inner, "%s.text", path);
            request_fail(e, ERR_INVALID, inner, "invalid_type", "%s must be a string", inner);
        } else {
            set_text(c, part, text);
        }
    } else if (is_any(type, "refusal", NULL, NULL)) {
        set_text(c, part, json_str(json_get(v, "refusal"), ""));
    } else if (is_any(type, "image_url", "input_image", NULL)) {
        set_one_file(c, part, CHAT_IMAGE, v, "image_url", path);
    } else if (is_any(type, "file", "input_file", NULL)) {
        set_any_file(c, part, v, type, path);
    } else if (is_any(type, "video", NULL, NULL) && json_is(json_get(v, "video"), JSON_ARRAY)) {
        set_video_list(c, part, v, path);
    } else if (is_any(type, "video_url", "input_video", "video")) {
        const char *field = json_get(v, "video_url")     ? "video_url"
                            : json_get(v, "input_video") ? "input_video"
                                                         : type;
        set_one_file(c, part, CHAT_VIDEO, v, field, path);
    } else {
        request_path(inner, "%s.type", path);
        request_fail(e, ERR_UNSUPPORTED, inner, "unsupported_content_type",
                     "%s: only text, images and videos are understood", inner);
    }
}

void content_begin(content_reader *c, chat_message *m, size_t n, const char *path)
{
    first_error *e = &c->r->error;
    if (n > LIMIT_PARTS_PER_MESSAGE) {
        request_fail(e, ERR_INVALID, path, "too_many_parts", "%s has more than %d parts", path,
                     LIMIT_PARTS_PER_MESSAGE);
    }
    m->parts = request_calloc(e, c->r->in->arena, n + 1, sizeof *m->parts);
    m->n_parts = 0;
    m->is_string = false;
}

void content_add_text(content_reader *c, chat_message *m, const char *text)
{
    if (c->r->error.code == ERR_OK) {
        set_text(c, &m->parts[m->n_parts++], text);
    }
}

void content_add_image(content_reader *c, chat_message *m, const char *url, const char *id, const char *path)
{
    if (c->r->error.code == ERR_OK) {
        id = id ? id : upload_id(url);
        set_media(c, &m->parts[m->n_parts++], CHAT_IMAGE, url, id, path);
    }
}

void content_append_file(content_reader *c, bytes *out, const char *id, const char *path)
{
    first_error *e = &c->r->error;
    file_handle h;
    if (!open_stored(c->r, &h, id, path)) {
        return;
    }
    char *text = h.bytes <= LIMIT_BODY_BYTES ? arena_alloc(c->r->in->arena, (size_t)h.bytes + 1) : NULL;
    if (h.bytes > LIMIT_BODY_BYTES) {
        request_fail(e, ERR_LIMIT, path, "too_large", "a text may have %zu bytes at most", LIMIT_BODY_BYTES);
    } else if (!text) {
        request_no_memory(e);
    } else if (file_read_at(h.fd, text, (size_t)h.bytes, 0) != (int64_t)h.bytes) {
        request_fail(e, ERR_IO, path, NULL, "an uploaded file cannot be read");
    } else if (h.mime || !utf8_valid(text, (size_t)h.bytes) || memchr(text, '\0', (size_t)h.bytes)) {
        request_fail(e, ERR_UNSUPPORTED, path, "unsupported_file", "%s is no text in UTF-8", path);
    } else {
        bytes_append(out, text, (size_t)h.bytes);
    }
    close(h.fd);
}

void content_read(content_reader *c, chat_message *m, const json *content, const char *path)
{
    first_error *e = &c->r->error;
    m->parts = NULL;
    m->n_parts = 0;
    m->is_string = true;
    if (json_typeof(content) == JSON_NULL) {
        return;
    }
    const bool is_string = json_is(content, JSON_STRING);
    if (!is_string && !json_is(content, JSON_ARRAY)) {
        request_fail(e, ERR_INVALID, path, "invalid_type", "%s must be a string or a list of parts", path);
    }
    content_begin(c, m, is_string ? 1 : json_len(content), path);
    m->is_string = is_string;
    if (is_string) {
        content_add_text(c, m, json_str(content, ""));
        return;
    }
    for (const json *v = json_child(content); v && e->code == ERR_OK; v = json_next(v)) {
        char part_path[ERR_PARAM_MAX];
        request_path(part_path, "%s[%zu]", path, m->n_parts);
        read_part(c, &m->parts[m->n_parts++], v, part_path);
    }
}
