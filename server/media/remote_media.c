#include "server/media/remote_media.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/limits.h"
#include "server/media/file_writer.h"
#include "server/media/open_below.h"
#include "server/media/remote_get.h"

static const char REFUSED[] = "remote_media_refused", FAILED[] = "remote_media_failed";
static const char FILE_SCHEME[] = "file://";
enum { COPY_BYTES = 65536 };

static const char *what(bool is_image)
{
    return is_image ? "image" : "video";
}

static bool is_file_url(const char *url)
{
    return strncasecmp(url, FILE_SCHEME, sizeof FILE_SCHEME - 1) == 0;
}

/* ---- what may be fetched_media ---- */

static err_code disabled(bool is_image, const char *option, err_detail *d)
{
    return err_set_param(
        d, ERR_INVALID, NULL, "remote_media_disabled",
        "remote media are not fetched; send the %s as a data: URL, or start the server with %s",
        what(is_image), option);
}

/* What it means to the client that a URL may not be fetched, or brought no file. end: not REMOTE_DONE. */
static err_code explain(remote_end end, const char *host, int status, bool is_image, err_detail *d)
{
    switch (end) {
    case REMOTE_NO_URL:
        return err_set_param(d, ERR_INVALID, NULL, REFUSED,
                             "media are fetched from http and https URLs that name a host and no password");
    case REMOTE_NO_RULE:
        return err_set_param(
            d, ERR_INVALID, NULL, REFUSED,
            "media are not fetched from %s; --media-domains lists the hosts that are allowed", host);
    case REMOTE_INSECURE:
        return err_set_param(d, ERR_INVALID, NULL, REFUSED, "an https address leads to %s without encryption",
                             host);
    case REMOTE_STATUS:
        return err_set_param(d, ERR_INVALID, NULL, FAILED, "%s answered with status %d instead of the %s",
                             host, status, what(is_image));
    case REMOTE_NOT_PUBLIC:
        return err_set_param(d, ERR_INVALID, NULL, REFUSED,
                             "%s is at an address that is not public; media are not fetched from there",
                             host);
    case REMOTE_TIMEOUT:
        return err_set_param(d, ERR_TIMEOUT, NULL, FAILED, "%s took too long to send the %s", host,
                             what(is_image));
    case REMOTE_CANCELLED:
        return err_set(d, ERR_CANCELLED, "cancelled while fetching media");
    case REMOTE_HOPS:
        return err_set_param(d, ERR_INVALID, NULL, FAILED, "%s is behind more than %d redirects", host,
                             LIMIT_REMOTE_HOPS);
    default:
        return err_set_param(d, ERR_INVALID, NULL, FAILED,
                             "the %s could not be fetched from %s: no such host, no connection, or a reply "
                             "that is broken",
                             what(is_image), host);
    }
}

err_code remote_media_check(const remote_media *rm, const char *url, bool is_image, const char *path,
                            err_detail *d)
{
    char host[FETCH_HOST_MAX];
    const bool is_file = is_file_url(url);
    err_code err = ERR_OK;
    if (is_file && !(rm && rm->folder)) {
        err = disabled(is_image, "--media-path", d);
    } else if (!is_file && !(rm && rm->n_domains)) {
        err = disabled(is_image, "--media-domains", d);
    } else if (!is_file) {
        const remote_end end = remote_check(rm->domains, rm->n_domains, url, host);
        err = end == REMOTE_DONE ? ERR_OK : explain(end, host, 0, is_image, d);
    }
    if (err != ERR_OK && d) {
        snprintf(d->param, sizeof d->param, "%s", path);
    }
    return err;
}

/* ---- one file ---- */

/* A file on its way. */
typedef struct media_fetcher {
    const remote_media *rm;
    chat_input *in;
    const prepare_hooks *hooks;
    uint64_t n_images, n_videos; /* bytes so far */
    double deadline_ms;          /* for all of the request */
    /* of the file */
    file_writer *writer;
    err_code write_error;
    err_detail *detail;
} media_fetcher;

static bool is_cancelled(void *ctx)
{
    const media_fetcher *b = ctx;
    return b->hooks && b->hooks->cancelled && b->hooks->cancelled(b->hooks->ctx);
}

static bool write_file(void *ctx, const void *data, size_t n)
{
    media_fetcher *b = ctx;
    b->write_error = file_writer_add(b->writer, data, n, b->detail);
    return b->write_error == ERR_OK;
}

static err_code too_large(bool is_image, uint64_t max, err_detail *d)
{
    return err_set_param(d, ERR_LIMIT, NULL, is_image ? "image_too_large" : "video_too_large",
                         "the %ss that this request names may have %llu MiB together at most", what(is_image),
                         (unsigned long long)(max >> 20));
}

static err_code fetch_file(media_fetcher *b, const char *url, bool is_image, uint64_t max, uint64_t left,
                           err_detail *d)
{
    const double end_ms = clock_ms() + 1000.0 * (is_image ? LIMIT_REMOTE_IMAGE_S : LIMIT_REMOTE_VIDEO_S);
    const remote_order order = {.rules = b->rm->domains,
                                .n_rules = b->rm->n_domains,
                                .url = url,
                                .end_ms = end_ms < b->deadline_ms ? end_ms : b->deadline_ms,
                                .max_bytes = left,
                                .write = write_file,
                                .cancelled = is_cancelled,
                                .ctx = b};
    remote_reply reply;
    const remote_end end = remote_get(&reply, &order);
    return end == REMOTE_DONE        ? ERR_OK
           : end == REMOTE_TOO_LARGE ? too_large(is_image, max, d)
           : end == REMOTE_UNWRITTEN ? b->write_error
                                     : explain(end, reply.host, reply.status, is_image, d);
}

/* ---- file: URLs ---- */

/* The path in a file: URL, decoded, relative to the folder; false if it is none, or absolute and
 * elsewhere. */
static bool relative_path(char out[PATH_MAX], const char *folder, const char *url)
{
    char real[PATH_MAX];
    size_t n = 0;
    for (const char *p = url + sizeof FILE_SCHEME - 1; *p; p++) {
        const int byte = *p == '%' ? hex_byte(p + 1) : (unsigned char)*p;
        p += *p == '%' && byte > 0 ? 2 : 0;
        if (byte <= 0 || n + 1 == PATH_MAX) {
            return false;
        }
        out[n++] = (char)byte;
    }
    out[n] = '\0';
    if (out[0] != '/') {
        return n > 0;
    }
    const char *roots[] = {folder, realpath(folder, real)};
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        size_t len = roots[i] ? strlen(roots[i]) : 0;
        while (len > 0 && roots[i][len - 1] == '/') {
            len--;
        }
        if (roots[i] && strncmp(out, roots[i], len) == 0 && out[len] == '/') {
            memmove(out, out + len + 1, n - len);
            return true;
        }
    }
    return false;
}

static err_code copy_file(media_fetcher *b, const char *url, bool is_image, uint64_t max, uint64_t left,
                          err_detail *d)
{
    char path[PATH_MAX];
    uint8_t block[COPY_BYTES];
    struct stat st;
    int64_t got = 0;
    uint64_t at = 0;
    const int fd = relative_path(path, b->rm->folder, url) ? open_below(b->rm->folder, path, false) : -1;
    if (fd < 0) {
        return err_set_param(d, ERR_INVALID, NULL, REFUSED,
                             "there is no such file below the folder of --media-path");
    }
    err_code err = ERR_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        err = err_set_param(d, ERR_INVALID, NULL, REFUSED, "a file: URL must name a regular file");
    } else if ((uint64_t)st.st_size > left) {
        err = too_large(is_image, max, d);
    }
    while (err == ERR_OK && (got = file_read_at(fd, block, sizeof block, at)) > 0) {
        at += (uint64_t)got;
        err = is_cancelled(b) ? err_set(d, ERR_CANCELLED, "cancelled while reading media")
              : at > left     ? too_large(is_image, max, d)
                              : file_writer_add(b->writer, block, (size_t)got, d);
    }
    close(fd);
    return err == ERR_OK && got < 0
               ? err_set_param(d, ERR_INVALID, NULL, FAILED, "a file below --media-path cannot be read")
               : err;
}

/* ---- a request ---- */

/* A file that was fetched_media: an image's bytes in the arena, or a video's descriptor, which the
 * chat closes. */
typedef struct fetched_media {
    const uint8_t *data;
    size_t bytes;
    int fd;
    const uint8_t *hash;
} fetched_media;

static err_code keep(media_fetcher *b, fetched_media *out, bool is_image, err_detail *d)
{
    uint8_t *hash = arena_alloc(b->in->arena, HASH_BYTES);
    out->bytes = (size_t)file_writer_bytes(b->writer);
    uint8_t *data = is_image ? arena_alloc(b->in->arena, out->bytes + 1) : NULL;
    if (!hash || (is_image && !data)) {
        return err_set(d, ERR_NOMEM, "no memory for this request");
    }
    const int fd = file_writer_finish(b->writer, hash);
    b->writer = NULL;
    out->hash = hash;
    out->data = data;
    if (!is_image) {
        b->in->fds[b->in->n_fds++] = out->fd = fd; /* as many as there may be media */
        return ERR_OK;
    }
    const bool ok = file_read_at(fd, data, out->bytes, 0) == (int64_t)out->bytes;
    close(fd);
    return ok ? ERR_OK : err_set(d, ERR_IO, "a fetched file cannot be read");
}

static err_code fetch_media(media_fetcher *b, fetched_media *out, const char *url, bool is_image,
                            err_detail *d)
{
    uint64_t *used = is_image ? &b->n_images : &b->n_videos;
    const uint64_t max = is_image ? LIMIT_BODY_BYTES : b->rm->max_video, left = max - *used;
    err_code err = file_writer_create(&b->writer, b->rm->dir, left, d);
    b->detail = d;
    if (err == ERR_OK) {
        err = (is_file_url(url) ? copy_file : fetch_file)(b, url, is_image, max, left, d);
    }
    if (err == ERR_OK) {
        err = keep(b, out, is_image, d);
        *used += out->bytes;
    }
    file_writer_destroy(b->writer);
    b->writer = NULL;
    return err;
}

static err_code fetch_part(media_fetcher *b, chat_part *part, err_detail *d)
{
    fetched_media file = {0};
    const bool is_image = part->kind == CHAT_IMAGE;
    err_code err = ERR_OK;
    if (part->url) {
        err = fetch_media(b, &file, part->url, is_image, d);
        part->data = file.data;
        part->data_bytes = file.bytes;
        part->fd = file.fd;
        part->hash = file.hash;
    }
    for (size_t i = 0; i < part->video.n_list && err == ERR_OK; i++) {
        chat_file *item = &part->video.list[i];
        if (item->url) {
            err = fetch_media(b, &file, item->url, true, d);
            item->data = file.data;
            item->bytes = file.bytes;
        }
    }
    if (err != ERR_OK && d && part->param) {
        snprintf(d->param, sizeof d->param, "%s", part->param);
    }
    return err;
}

static bool names_remote(const chat_part *part)
{
    bool found = part->url != NULL;
    for (size_t i = 0; i < part->video.n_list && !found; i++) {
        found = part->video.list[i].url != NULL;
    }
    return found;
}

bool remote_media_wanted(const chat_input *in)
{
    for (size_t i = 0; i < in->n_messages; i++) {
        for (size_t p = 0; p < in->messages[i].n_parts; p++) {
            const chat_part *part = &in->messages[i].parts[p];
            if (part->kind != CHAT_TEXT && names_remote(part)) {
                return true;
            }
        }
    }
    return false;
}

err_code remote_media_fetch(const remote_media *rm, chat_input *in, const prepare_hooks *hooks, err_detail *d)
{
    media_fetcher b = {
        .rm = rm, .in = in, .hooks = hooks, .deadline_ms = clock_ms() + LIMIT_REMOTE_SUM_S * 1000.0};
    for (size_t i = 0; i < in->n_messages; i++) {
        for (size_t p = 0; p < in->messages[i].n_parts; p++) {
            chat_part *part = &in->messages[i].parts[p];
            err_code err = part->kind == CHAT_TEXT ? ERR_OK : fetch_part(&b, part, d);
            if (err != ERR_OK) {
                return err;
            }
        }
    }
    return ERR_OK;
}
