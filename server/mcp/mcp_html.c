#include "server/mcp/mcp_html.h"

#include <ctype.h>
#include <libxml/HTMLparser.h>
#include <libxml/uri.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

enum {
    CHUNK_BYTES = 4096,
    DEEPEST = 512, /* closing an element looks at all that are open */
    LOOK_BYTES = 4096,
    LINK_BYTES = 500,
};

/* What an element does to the text. */
typedef enum element_use {
    USE_NONE,
    USE_SKIP,  /* nothing of it is read */
    USE_BLOCK, /* an empty line around it */
    USE_LINE,  /* a line of its own */
    USE_BREAK,
    USE_ITEM,
    USE_HEADING,
    USE_CELL,
    USE_PLAIN, /* as it is written */
    USE_LINK,
    USE_IMAGE,
    USE_TITLE,
} element_use;

static const struct {
    const char *name;
    element_use use;
} ELEMENTS[] = {
    {"script", USE_SKIP},    {"style", USE_SKIP},      {"noscript", USE_SKIP}, {"template", USE_SKIP},
    {"svg", USE_SKIP},       {"math", USE_SKIP},       {"iframe", USE_SKIP},   {"object", USE_SKIP},
    {"select", USE_SKIP},    {"button", USE_SKIP},     {"textarea", USE_SKIP}, {"nav", USE_SKIP},
    {"dialog", USE_SKIP},    {"canvas", USE_SKIP},     {"audio", USE_SKIP},    {"video", USE_SKIP},
    {"p", USE_BLOCK},        {"div", USE_LINE},        {"section", USE_BLOCK}, {"article", USE_BLOCK},
    {"main", USE_BLOCK},     {"header", USE_BLOCK},    {"footer", USE_BLOCK},  {"aside", USE_BLOCK},
    {"ul", USE_BLOCK},       {"ol", USE_BLOCK},        {"dl", USE_BLOCK},      {"dt", USE_LINE},
    {"dd", USE_LINE},        {"table", USE_BLOCK},     {"caption", USE_LINE},  {"blockquote", USE_BLOCK},
    {"figure", USE_BLOCK},   {"figcaption", USE_LINE}, {"address", USE_BLOCK}, {"form", USE_BLOCK},
    {"fieldset", USE_BLOCK}, {"details", USE_BLOCK},   {"summary", USE_LINE},  {"hr", USE_BLOCK},
    {"tr", USE_LINE},        {"td", USE_CELL},         {"th", USE_CELL},       {"li", USE_ITEM},
    {"h1", USE_HEADING},     {"h2", USE_HEADING},      {"h3", USE_HEADING},    {"h4", USE_HEADING},
    {"h5", USE_HEADING},     {"h6", USE_HEADING},      {"pre", USE_PLAIN},     {"br", USE_BREAK},
    {"a", USE_LINK},         {"img", USE_IMAGE},       {"title", USE_TITLE},   {"option", USE_SKIP},
};

typedef struct reader {
    bytes *out, *title;
    const char *base;
    int depth, skipped_at; /* of the element that is left out; 0: none */
    int n_plain;           /* elements around that keep blanks */
    bool in_title, wants_blank;
    int wants_lines;
    size_t row_at, link_at; /* where the row, the link began in `out` */
    char link[LINK_BYTES];
} reader;

/* ---- text ---- */

static void want_lines(reader *r, int n)
{
    r->wants_lines = n > r->wants_lines ? n : r->wants_lines;
    r->wants_blank = false;
}

/* What is due before the next word. */
static void settle(reader *r)
{
    if (r->wants_lines && r->out->len > 0) {
        bytes_append(r->out, "\n\n", (size_t)r->wants_lines);
    } else if (r->wants_blank && r->out->len > 0 && bytes_str(r->out)[r->out->len - 1] != '\n') {
        bytes_append_char(r->out, ' ');
    }
    r->wants_lines = 0;
    r->wants_blank = false;
}

static void add_text(reader *r, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (r->n_plain > 0 && (c == '\n' || c == '\t' || c == ' ')) {
            settle(r);
            bytes_append_char(r->out, (char)c);
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            r->wants_blank = true;
        } else if (c >= ' ' && c != 0x7f) {
            settle(r);
            bytes_append_char(r->out, (char)c);
        }
    }
}

static void add_mark(reader *r, const char *mark)
{
    settle(r);
    bytes_append_str(r->out, mark);
}

/* ---- elements ---- */

static element_use use_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(ELEMENTS); i++) {
        if (strcmp(ELEMENTS[i].name, name) == 0) {
            return ELEMENTS[i].use;
        }
    }
    return USE_NONE;
}

static const char *attribute(const xmlChar **list, const char *name)
{
    for (size_t i = 0; list && list[i]; i += 2) {
        if (strcmp((const char *)list[i], name) == 0) {
            return list[i + 1] ? (const char *)list[i + 1] : "";
        }
    }
    return NULL;
}

/* Words that nobody sees are often meant for models alone. */
static bool is_hidden(const xmlChar **attributes)
{
    const char *style = attribute(attributes, "style"), *aria = attribute(attributes, "aria-hidden");
    char plain[256];
    size_t n = 0;
    for (; style && *style && n + 1 < sizeof plain; style++) {
        if (!isspace((unsigned char)*style)) {
            plain[n++] = (char)tolower((unsigned char)*style);
        }
    }
    plain[n] = '\0';
    return attribute(attributes, "hidden") || (aria && strcasecmp(aria, "true") == 0) ||
           strstr(plain, "display:none") || strstr(plain, "visibility:hidden");
}

static void begin_link(reader *r, const char *href)
{
    r->link[0] = '\0';
    r->link_at = r->out->len;
    if (!href || href[0] == '#' || strlen(href) >= LINK_BYTES) {
        return;
    }
    xmlChar *whole = xmlBuildURI((const xmlChar *)href, (const xmlChar *)r->base);
    const char *text = (const char *)whole;
    if (text && (strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0) &&
        strlen(text) < LINK_BYTES && !text[strcspn(text, " <>()\n\t")]) {
        snprintf(r->link, sizeof r->link, "%s", text);
    }
    xmlFree(whole);
}

static void end_link(reader *r)
{
    if (r->link[0] && r->out->len > r->link_at) {
        bytes_printf(r->out, " (%s)", r->link);
    }
    r->link[0] = '\0';
}

static void on_start(void *ctx, const xmlChar *name, const xmlChar **attributes)
{
    reader *r = ctx;
    const element_use use = use_of((const char *)name);
    r->depth++;
    if (r->skipped_at) {
        return;
    }
    if (use == USE_SKIP || is_hidden(attributes)) {
        r->skipped_at = r->depth;
        return;
    }
    switch (use) {
    case USE_BLOCK:
        want_lines(r, 2);
        break;
    case USE_PLAIN:
        want_lines(r, 2);
        r->n_plain++;
        break;
    case USE_LINE:
        want_lines(r, 1);
        r->row_at = SIZE_MAX;
        break;
    case USE_BREAK:
        want_lines(r, r->wants_lines ? 2 : 1);
        break;
    case USE_ITEM:
        want_lines(r, 1);
        add_mark(r, "- ");
        break;
    case USE_HEADING:
        want_lines(r, 2);
        add_mark(r, "######" + ('6' - name[1]));
        bytes_append_char(r->out, ' ');
        break;
    case USE_CELL:
        if (r->row_at != SIZE_MAX && r->out->len > r->row_at) {
            r->wants_lines = 0;
            add_mark(r, " | ");
        }
        r->wants_blank = false;
        r->row_at = r->row_at == SIZE_MAX ? r->out->len : r->row_at;
        break;
    case USE_LINK:
        begin_link(r, attribute(attributes, "href"));
        break;
    case USE_IMAGE:
        if (attribute(attributes, "alt") && attribute(attributes, "alt")[0]) {
            add_mark(r, "[image: ");
            add_text(r, attribute(attributes, "alt"), strlen(attribute(attributes, "alt")));
            bytes_append_char(r->out, ']');
        }
        break;
    case USE_TITLE:
        r->in_title = true;
        break;
    default:
        break;
    }
}

static void on_end(void *ctx, const xmlChar *name)
{
    reader *r = ctx;
    const element_use use = use_of((const char *)name);
    const bool was_skipped = r->skipped_at > 0;
    if (r->skipped_at == r->depth) {
        r->skipped_at = 0;
    }
    r->depth -= r->depth > 0;
    if (was_skipped) {
        return;
    }
    if (use == USE_BLOCK || use == USE_HEADING || use == USE_PLAIN) {
        want_lines(r, 2);
    } else if (use == USE_LINE || use == USE_ITEM) {
        want_lines(r, 1);
    } else if (use == USE_LINK) {
        end_link(r);
    }
    r->n_plain -= use == USE_PLAIN;
    r->in_title = use == USE_TITLE ? false : r->in_title;
}

static void on_text(void *ctx, const xmlChar *text, int n)
{
    reader *r = ctx;
    if (r->skipped_at) {
        return;
    }
    if (r->in_title) {
        bytes_append(r->title, text, (size_t)n);
    } else {
        add_text(r, (const char *)text, (size_t)n);
    }
}

static void on_error(void *ctx, const char *format, ...) PRINTF_LIKE(2, 3);

static void on_error(void *ctx, const char *format, ...)
{
    (void)ctx, (void)format; /* pages are full of them */
}

/* ---- a page ---- */

void mcp_html_charset(char *out, size_t out_cap, const char *data, size_t n)
{
    static const char WORD[] = "charset=";
    const size_t n_word = sizeof WORD - 1, end = n < LOOK_BYTES ? n : LOOK_BYTES;
    out[0] = '\0';
    for (size_t i = 0; i + n_word < end; i++) {
        if (strncasecmp(data + i, WORD, n_word) == 0) {
            size_t k = 0;
            i += n_word;
            i += data[i] == '"' || data[i] == '\'';
            while (i + k < end && k + 1 < out_cap &&
                   (isalnum((unsigned char)data[i + k]) || strchr("-_:.", data[i + k]))) {
                k++;
            }
            snprintf(out, out_cap, "%.*s", (int)k, data + i);
            /* a page that can be read so far is in none of these, whatever it says */
            if (strncasecmp(out, "utf-16", 6) == 0 || strncasecmp(out, "utf-32", 6) == 0) {
                snprintf(out, out_cap, "UTF-8");
            }
            return;
        }
    }
}

bool mcp_html_text(bytes *out, bytes *title, const char *html, size_t n, const char *base,
                   bool (*may_go_on)(void *ctx), void *ctx)
{
    htmlSAXHandler sax = {.startElement = on_start,
                          .endElement = on_end,
                          .characters = on_text,
                          .ignorableWhitespace = on_text,
                          .error = on_error,
                          .warning = on_error};
    reader r = {.out = out, .title = title, .base = base, .row_at = SIZE_MAX};
    htmlParserCtxtPtr parser = htmlCreatePushParserCtxt(&sax, &r, NULL, 0, NULL, XML_CHAR_ENCODING_UTF8);
    if (!parser) {
        return false;
    }
    (void)htmlCtxtUseOptions(parser, HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                                         HTML_PARSE_NONET | HTML_PARSE_IGNORE_ENC);
    size_t at = 0;
    while (at < n && r.depth <= DEEPEST && !out->failed && may_go_on(ctx)) {
        size_t piece = n - at < CHUNK_BYTES ? n - at : CHUNK_BYTES;
        piece -= piece < n - at ? utf8_incomplete_tail(html + at, piece) : 0;
        (void)htmlParseChunk(parser, html + at, (int)piece, 0); /* its errors are the page's */
        at += piece;
    }
    const bool ok = at == n && r.depth <= DEEPEST;
    if (ok) {
        (void)htmlParseChunk(parser, NULL, 0, 1);
    }
    htmlFreeParserCtxt(parser);
    return ok && !out->failed;
}
