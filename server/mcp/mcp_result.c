#include "server/mcp/mcp_result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/utf8.h"

enum { NOTE_BYTES = 1024 };

mcp_result *mcp_result_create(uint64_t owner, uint32_t place)
{
    mcp_result *r = calloc(1, sizeof *r);
    if (r) {
        *r = (mcp_result){.owner = owner,
                          .place = place,
                          .text = bytes_empty(LIMIT_MCP_RESULT_BYTES + NOTE_BYTES),
                          .images = bytes_empty(LIMIT_MCP_IMAGES * (LIMIT_MCP_IMAGE_BYTES + 256)),
                          .whole = bytes_empty(LIMIT_MCP_MESSAGE_BYTES * 2),
                          .progress = -1.0};
    }
    return r;
}

void mcp_result_free(mcp_result *r)
{
    if (r) {
        bytes_deinit(&r->text);
        bytes_deinit(&r->images);
        bytes_deinit(&r->whole);
        free(r);
    }
}

void mcp_result_fail(mcp_result *r, const char *format, ...)
{
    char text[NOTE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->has_failed = true;
    r->n_images = 0;
    bytes_clear(&r->images); /* the last may be cut */
    bytes_clear(&r->text);
    bytes_append_str(&r->text, text);
}

/* Appends on a line of its own, as much as there is room for, whole characters; the rest is counted. */
static void add_text(mcp_result *r, const char *text, size_t len, size_t *n_lost)
{
    if (r->text.len > 0 && r->text.len < LIMIT_MCP_RESULT_BYTES) {
        bytes_append_char(&r->text, '\n');
    }
    const size_t room = r->text.len < LIMIT_MCP_RESULT_BYTES ? LIMIT_MCP_RESULT_BYTES - r->text.len : 0;
    size_t n = len < room ? len : room;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) {
        n--;
    }
    bytes_append(&r->text, text, n);
    *n_lost += len - n;
}

/* An image that models may see: PNG, JPEG, WebP or GIF by its first bytes as base64. */
static const char *image_type(const char *data)
{
    static const struct {
        const char *begin, *type;
    } ROWS[] = {{"iVBORw0KGg", "image/png"},
                {"/9j/", "image/jpeg"},
                {"UklGR", "image/webp"},
                {"R0lGOD", "image/gif"}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        if (strncmp(data, ROWS[i].begin, strlen(ROWS[i].begin)) == 0) {
            return ROWS[i].type;
        }
    }
    return NULL;
}

static void add_image(mcp_result *r, const char *data, size_t *n_lost)
{
    char note[160];
    const size_t n = strlen(data);
    const char *type = image_type(data);
    const char *why = !type                                     ? "of a form that is not read"
                      : n > LIMIT_MCP_IMAGE_BYTES               ? "too large"
                      : r->n_images == (size_t)LIMIT_MCP_IMAGES ? "one too many"
                                                                : NULL;
    if (why) {
        const int len = snprintf(note, sizeof note, "[an image is left out: %s]", why);
        add_text(r, note, (size_t)len, n_lost);
        return;
    }
    bytes_append_str(&r->images, r->n_images++ ? ",\"data:" : "\"data:");
    bytes_append_str(&r->images, type);
    bytes_append_str(&r->images, ";base64,");
    for (char c; (c = *data); data++) { /* what is no base64 would end the text */
        const bool ok = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                        c == '+' || c == '/' || c == '=';
        if (ok) {
            bytes_append_char(&r->images, c);
        }
    }
    bytes_append_char(&r->images, '"');
}

/* {"uri","mimeType","text" or "blob"} */
static void add_resource(mcp_result *r, const json *v, size_t *n_lost)
{
    char note[512];
    const char *text = json_str(json_get(v, "text"), NULL), *blob = json_str(json_get(v, "blob"), NULL);
    if (text) {
        add_text(r, text, strlen(text), n_lost);
    } else if (blob && image_type(blob)) {
        add_image(r, blob, n_lost);
    } else {
        const int n =
            snprintf(note, sizeof note, "[a file: %.200s, %.80s, %zu bytes as base64]",
                     json_str(json_get(v, "uri"), "without a name"),
                     json_str(json_get(v, "mimeType"), "of an unknown type"), blob ? strlen(blob) : 0);
        add_text(r, note, (size_t)n, n_lost);
    }
}

static void add_block(mcp_result *r, const json *v, size_t *n_lost)
{
    char note[640];
    const char *type = json_str(json_get(v, "type"), "");
    if (strcmp(type, "text") == 0) {
        const char *text = json_str(json_get(v, "text"), "");
        add_text(r, text, strlen(text), n_lost);
    } else if (strcmp(type, "image") == 0) {
        add_image(r, json_str(json_get(v, "data"), ""), n_lost);
    } else if (strcmp(type, "resource") == 0) {
        add_resource(r, json_get(v, "resource"), n_lost);
    } else {
        const int n = strcmp(type, "resource_link") == 0
                          ? snprintf(note, sizeof note, "[a resource: %.200s, %.400s]",
                                     json_str(json_get(v, "name"), ""), json_str(json_get(v, "uri"), ""))
                          : snprintf(note, sizeof note, "[%.60s: not shown to the model]", type);
        add_text(r, note, (size_t)n, n_lost);
    }
}

void mcp_result_read(mcp_result *r, const json *result)
{
    size_t n_lost = 0;
    const json *structured = json_get(result, "structuredContent");
    for (const json *v = json_child(json_get(result, "content")); v; v = json_next(v)) {
        add_block(r, v, &n_lost);
    }
    if (r->text.len == 0 && r->n_images == 0 && structured) {
        bytes text = bytes_empty(LIMIT_MCP_MESSAGE_BYTES);
        json_write(&text, structured);
        add_text(r, bytes_str(&text), text.len, &n_lost);
        r->text.failed |= text.failed;
        bytes_deinit(&text);
    }
    if (n_lost > 0) {
        bytes_printf(&r->text, "\n[cut here: %zu more bytes]", n_lost);
    }
    r->has_failed = json_is_true(json_get(result, "isError"));
    if (r->text.failed || r->images.failed) {
        mcp_result_fail(r, "there is no memory for this result");
    }
}
