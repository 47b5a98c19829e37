#include "server/service/assets.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/file.h"
#include "base/hash.h"

#define ASSET_MAX_BYTES ((size_t)32 << 20)

static const char SECURITY_HEADERS[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: "
    "blob:; frame-src 'self'; "
    "media-src blob:; connect-src 'self'; font-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri "
    "'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'\r\n"
    "Permissions-Policy: geolocation=(), microphone=(), payment=(), usb=()\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\n";

/* What models write as HTML is shown in this page, in a frame: sandboxed whoever holds it, so of an
 * origin of its own, with scripts and styles inside it and nothing from or to anywhere. */
#define PREVIEW_PATH "/preview.html"
static const char PREVIEW_HEADERS[] =
    "Content-Security-Policy: sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; media-src data:; font-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'; require-trusted-types-for 'script'; trusted-types "
    "default\r\n"
    "Permissions-Policy: geolocation=(), microphone=(), camera=(), payment=(), usb=()\r\n"
    "X-DNS-Prefetch-Control: off\r\nCross-Origin-Resource-Policy: same-origin\r\n";

const char *asset_mime(const char *path)
{
    static const struct {
        const char *end, *mime;
    } TYPES[] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".mjs", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".json", "application/json"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".jpg", "image/jpeg"},
        {".jpeg", "image/jpeg"},
        {".webp", "image/webp"},
        {".gif", "image/gif"},
        {".ico", "image/x-icon"},
        {".woff2", "font/woff2"},
        {".mp4", "video/mp4"},
        {".webm", "video/webm"},
        {".webmanifest", "application/manifest+json"},
    };
    size_t len = strlen(path);
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        size_t n = strlen(TYPES[i].end);
        if (len > n && strcmp(path + len - n, TYPES[i].end) == 0) {
            return TYPES[i].mime;
        }
    }
    return "text/plain; charset=utf-8";
}

static void write_headers(asset_reply *r, const char *path, const char *etag, bool is_gzip)
{
    snprintf(r->headers, sizeof r->headers,
             "%s%sETag: %s\r\nCache-Control: no-cache\r\nVary: Accept-Encoding\r\n",
             strcmp(path, PREVIEW_PATH) == 0 ? PREVIEW_HEADERS : SECURITY_HEADERS,
             is_gzip ? "Content-Encoding: gzip\r\n" : "", etag);
    r->reply.headers = r->headers;
}

static bool inflate_to(bytes *out, const asset *a)
{
    bytes_init(out, a->plain_bytes + 1);
    char *plain = NULL;
    z_stream z;
    memset(&z, 0, sizeof z);
    static const char zeros[4096];
    for (size_t left = a->plain_bytes; left > 0;) { /* grows the buffer, so that zlib can write into it */
        size_t n = left < sizeof zeros ? left : sizeof zeros;
        bytes_append(out, zeros, n);
        left -= n;
    }
    plain = out->data;
    if (out->failed || inflateInit2(&z, 15 + 16) != Z_OK) {
        return false;
    }
    z.next_in = (Bytef *)(uintptr_t)a->data;
    z.avail_in = (uInt)a->bytes;
    z.next_out = (Bytef *)plain;
    z.avail_out = (uInt)a->plain_bytes;
    int rc = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    return rc == Z_STREAM_END;
}

static void reply_embedded(asset_reply *r, const asset *a, const char *accept_encoding,
                           const char *if_none_match)
{
    bool takes_gzip = strstr(accept_encoding, "gzip") != NULL || strchr(accept_encoding, '*') != NULL;
    bool sends_gzip = a->is_gzip && takes_gzip;
    write_headers(r, a->path, a->etag, sends_gzip);
    r->reply.status = 200;
    r->reply.content_type = asset_mime(a->path);
    if (strcmp(if_none_match, a->etag) == 0) {
        r->reply.status = 304;
        r->reply.content_type = NULL;
    } else if (a->is_gzip && !takes_gzip) {
        if (!inflate_to(&r->body, a)) {
            r->reply.status = 503;
            return;
        }
        r->reply.body = r->body.data;
        r->reply.body_bytes = r->body.len;
    } else {
        r->reply.body = a->data;
        r->reply.body_bytes = a->bytes;
        r->reply.body_lives = true;
    }
}

/* ---- a folder, while developing ---- */

static bool is_safe_path(const char *path)
{
    for (const char *p = path; *p; p++) {
        bool plain = isalnum((unsigned char)*p) || strchr("/._-@+", *p) != NULL;
        if (!plain || (*p == '/' && (p[1] == '.' || p[1] == '/'))) {
            return false;
        }
    }
    return path[0] == '/';
}

static void reply_from_folder(asset_reply *r, const char *dir, const char *path, const char *if_none_match)
{
    char file[4096], etag[2 * HASH_BYTES + 3];
    uint8_t hash[HASH_BYTES];
    if (!is_safe_path(path) || !file_join(file, sizeof file, dir, path + 1) || !file_exists(file)) {
        return;
    }
    bytes_init(&r->body, ASSET_MAX_BYTES);
    if (file_read(&r->body, file, NULL) != ERR_OK) {
        return;
    }
    hash_sha256(hash, bytes_str(&r->body), r->body.len);
    etag[0] = '"';
    hash_hex(etag + 1, hash, 16);
    etag[33] = '"';
    etag[34] = '\0';
    write_headers(r, path, etag, false);
    bool same = strcmp(if_none_match, etag) == 0;
    r->reply.status = same ? 304 : 200;
    r->reply.content_type = same ? NULL : asset_mime(path);
    r->reply.body = same ? NULL : r->body.data;
    r->reply.body_bytes = same ? 0 : r->body.len;
}

void assets_find(asset_reply *r, const char *ui_dir, const char *path, const char *accept_encoding,
                 const char *if_none_match)
{
    memset(r, 0, sizeof *r);
    bytes_init(&r->body, 0);
    r->reply.status = 404;
    path = strcmp(path, "/") == 0 ? "/index.html" : path;
    if (ui_dir) {
        reply_from_folder(r, ui_dir, path, if_none_match);
        return;
    }
    for (size_t i = 0; i < N_ASSETS; i++) {
        if (strcmp(ASSETS[i].path, path) == 0) {
            reply_embedded(r, &ASSETS[i], accept_encoding, if_none_match);
            return;
        }
    }
}

void asset_reply_deinit(asset_reply *r)
{
    bytes_deinit(&r->body);
}
