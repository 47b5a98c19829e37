#include "server/media/multipart.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/hex.h"
#include "base/utf8.h"

enum { HEADERS_MAX = 8192, HELD_MAX = 1 << 20 };

static err_code malformed(err_detail *d, const char *what)
{
    return err_set_param(d, ERR_INVALID, NULL, "invalid_multipart", "the form is malformed: %s", what);
}

/* ---- parameters of a header: name="value" ---- */

/* Finds ;name= in a header's value and copies what it says, without quotes; false if it is absent
 * or too long. */
static bool read_parameter(char *out, size_t cap, const char *header, const char *name)
{
    const size_t n_name = strlen(name);
    bool in_quotes = false;
    for (const char *p = header; *p; p++) {
        if (*p == '\\' && in_quotes && p[1]) {
            p++;
        } else if (*p == '"') {
            in_quotes = !in_quotes;
        } else if (*p == ';' && !in_quotes) {
            const char *q = p + 1 + strspn(p + 1, " \t");
            if (strncasecmp(q, name, n_name) != 0 || q[n_name] != '=') {
                continue;
            }
            q += n_name + 1;
            const bool quoted = *q == '"';
            size_t n = 0;
            for (q += quoted; *q && (quoted ? *q != '"' : !strchr("; \t", *q)); q++) {
                /* Browsers escape nothing but quotes, and those as %22; others put a backslash in
                 * front. */
                q += quoted && *q == '\\' && (q[1] == '"' || q[1] == '\\');
                if (n + 1 >= cap) {
                    return false;
                }
                out[n++] = *q;
            }
            out[n] = '\0';
            return true;
        }
    }
    return false;
}

static void decode_percent(char *text)
{
    char *out = text;
    for (const char *p = text; *p; p++) {
        const int byte = *p == '%' ? hex_byte(p + 1) : -1;
        *out++ = byte >= 0 ? (char)byte : *p;
        p += byte >= 0 ? 2 : 0;
    }
    *out = '\0';
}

/* Keeps the last component and what can be shown. */
static void clean_filename(char *name)
{
    const char *base = name;
    for (const char *p = name; *p; p++) {
        base = *p == '/' || *p == '\\' ? p + 1 : base;
    }
    char *out = name;
    for (const char *p = base; *p; p++) {
        if ((unsigned char)*p >= ' ' && *p != 127) {
            *out++ = *p;
        }
    }
    *out = '\0';
    if (!utf8_valid(name, strlen(name))) {
        for (char *p = name; *p; p++) {
            *p = (unsigned char)*p < 128 ? *p : '_';
        }
    }
}

static err_code read_disposition(multipart_field *f, const char *value, err_detail *d)
{
    static const char FORM[] = "form-data", UTF8[] = "utf-8''";
    char text[2 * MULTIPART_FILENAME_MAX];
    if (strncasecmp(value, FORM, sizeof FORM - 1) != 0) {
        return malformed(d, "a field is not form-data");
    }
    if (!read_parameter(f->name, sizeof f->name, value, "name") || !f->name[0]) {
        return malformed(d, "a field has no name, or a long one");
    }
    if (read_parameter(text, sizeof text, value, "filename*") &&
        strncasecmp(text, UTF8, sizeof UTF8 - 1) == 0) {
        memmove(text, text + sizeof UTF8 - 1, strlen(text) - (sizeof UTF8 - 1) + 1);
        decode_percent(text);
        f->is_file = true;
    } else {
        f->is_file = read_parameter(text, sizeof text, value, "filename");
    }
    if (f->is_file) {
        clean_filename(text);
        snprintf(f->filename, sizeof f->filename, "%s", text);
        f->filename[strlen(f->filename) - utf8_incomplete_tail(f->filename, strlen(f->filename))] = '\0';
    }
    return ERR_OK;
}

/* The header lines of a field, text[0..len) without the empty line. */
static err_code read_headers(multipart_field *f, char *text, err_detail *d)
{
    static const char NAME[] = "content-disposition:";
    memset(f, 0, sizeof *f);
    for (char *line = text; line;) {
        char *end = strstr(line, "\r\n");
        if (end) {
            *end = '\0';
        }
        if (strncasecmp(line, NAME, sizeof NAME - 1) == 0) {
            const char *value = line + sizeof NAME - 1;
            return read_disposition(f, value + strspn(value, " \t"), d);
        }
        line = end ? end + 2 : NULL;
    }
    return malformed(d, "a field has no Content-Disposition");
}

/* ---- states ---- */

bool multipart_init(multipart *m, const char *content_type, const multipart_sink *sink)
{
    static const char TYPE[] = "multipart/form-data";
    char boundary[MULTIPART_BOUNDARY_MAX + 1];
    memset(m, 0, sizeof *m);
    m->sink = *sink;
    bytes_init(&m->held, HELD_MAX);
    if (strncasecmp(content_type, TYPE, sizeof TYPE - 1) != 0 ||
        !read_parameter(boundary, sizeof boundary, content_type, "boundary") || !boundary[0]) {
        return false;
    }
    m->n_delimiter = (size_t)snprintf(m->delimiter, sizeof m->delimiter, "\r\n--%s", boundary);
    bytes_append_str(&m->held, "\r\n"); /* so that the first delimiter looks like all others */
    return true;
}

void multipart_deinit(multipart *m)
{
    bytes_deinit(&m->held);
}

bool multipart_is_complete(const multipart *m)
{
    return m->state == MULTIPART_END;
}

/* Where the text begins in data[0..n), or n. */
static size_t find_text(const char *data, size_t n, const char *text, size_t n_text)
{
    for (size_t i = 0; i + n_text <= n; i++) {
        const char *p = memchr(data + i, text[0], n - n_text + 1 - i);
        if (!p) {
            break;
        }
        i = (size_t)(p - data);
        if (memcmp(p, text, n_text) == 0) {
            return i;
        }
    }
    return n;
}

/* Data up to the delimiter, or all that cannot be a part of one. */
static err_code take_data(multipart *m, size_t *used, err_detail *d)
{
    const char *data = m->held.data;
    const size_t n = m->held.len, at = find_text(data, n, m->delimiter, m->n_delimiter);
    const bool found = at < n;
    const size_t keep = m->n_delimiter - 1;
    const size_t n_data = found ? at : n > keep ? n - keep : 0;
    err_code err = ERR_OK;
    if (m->state == MULTIPART_DATA && n_data > 0) {
        err = m->sink.data(m->sink.ctx, data, n_data, d);
    }
    *used = found ? at + m->n_delimiter : n_data;
    if (err == ERR_OK && found) {
        err = m->state == MULTIPART_DATA ? m->sink.end(m->sink.ctx, d) : ERR_OK;
        m->state = MULTIPART_BOUNDARY;
    }
    return err;
}

/* Behind a delimiter: "--" at the end of all, else a line break, perhaps behind blanks. */
static err_code take_boundary(multipart *m, size_t *used, err_detail *d)
{
    const char *data = m->held.data;
    const size_t n = m->held.len;
    size_t blanks = 0;
    *used = 0;
    if (n >= 2 && memcmp(data, "--", 2) == 0) {
        m->state = MULTIPART_END;
        return ERR_OK;
    }
    while (blanks < n && (data[blanks] == ' ' || data[blanks] == '\t')) {
        blanks++;
    }
    if (blanks > HEADERS_MAX || (n >= blanks + 2 && memcmp(data + blanks, "\r\n", 2) != 0)) {
        return malformed(d, "something else than a line break stands behind a boundary");
    }
    if (n >= blanks + 2) {
        *used = blanks + 2;
        m->state = MULTIPART_HEADERS;
    }
    return ERR_OK;
}

static err_code take_headers(multipart *m, size_t *used, err_detail *d)
{
    multipart_field field;
    const size_t n = m->held.len, at = find_text(m->held.data, n, "\r\n\r\n", 4);
    *used = 0;
    if (at == n) {
        return n > HEADERS_MAX ? malformed(d, "the headers of a field are too long") : ERR_OK;
    }
    if (memchr(m->held.data, '\0', at)) {
        return malformed(d, "a header holds a NUL");
    }
    m->held.data[at] = '\0';
    err_code err = read_headers(&field, m->held.data, d);
    *used = at + 4;
    m->state = MULTIPART_DATA;
    return err == ERR_OK ? m->sink.begin(m->sink.ctx, &field, d) : err;
}

err_code multipart_feed(multipart *m, const void *data, size_t n, err_detail *d)
{
    bytes_append(&m->held, data, n);
    if (m->held.failed) {
        return err_set(d, ERR_NOMEM, "no memory for this form");
    }
    for (bool moved = true; moved;) {
        const multipart_state before = m->state;
        size_t used = 0;
        err_code err = ERR_OK;
        switch (m->state) {
        case MULTIPART_PREAMBLE:
        case MULTIPART_DATA:
            err = take_data(m, &used, d);
            break;
        case MULTIPART_BOUNDARY:
            err = take_boundary(m, &used, d);
            break;
        case MULTIPART_HEADERS:
            err = take_headers(m, &used, d);
            break;
        case MULTIPART_END:
            used = m->held.len; /* an epilogue means nothing */
            break;
        }
        if (err != ERR_OK) {
            return err;
        }
        bytes_consume(&m->held, used);
        moved = m->state != before;
    }
    return ERR_OK;
}
