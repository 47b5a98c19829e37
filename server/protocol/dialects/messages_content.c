#include "server/protocol/dialects/messages_content.h"

#include <string.h>

#include "base/limits.h"

enum { PATH_BYTES = ERR_PARAM_MAX };

static bool has_type(const json *block, const char *type)
{
    return strcmp(json_str(json_get(block, "type"), ""), type) == 0;
}

static void bad(content_reader *c, const char *path, const char *what)
{
    request_fail(&c->r->error, ERR_INVALID, path, "invalid_value", "%s %s", path, what);
}

/* The blocks inside of a document or a search result; NULL for what has none. */
static const json *inner_blocks(const json *block)
{
    const json *content = has_type(block, "document") ? json_get(json_get(block, "source"), "content")
                                                      : json_get(block, "content");
    return json_is(content, JSON_ARRAY) ? content : NULL;
}

static bool is_document(const json *block)
{
    return has_type(block, "document") || has_type(block, "search_result");
}

size_t messages_content_parts(const json *block)
{
    return is_document(block) ? json_len(inner_blocks(block)) + 2 : 1;
}

static void read_image(content_reader *c, chat_message *m, const json *block, const char *path)
{
    char inner[PATH_BYTES];
    const json *source = json_get(block, "source");
    const char *url = has_type(source, "base64") ? json_str(json_get(source, "data"), NULL)
                      : has_type(source, "url")  ? json_str(json_get(source, "url"), NULL)
                                                 : NULL;
    const char *id = has_type(source, "file") ? json_str(json_get(source, "file_id"), NULL) : NULL;
    if (!url && !id) {
        bad(c, path, "needs a source of type base64 with data, url with url, or file with file_id");
    }
    request_path(inner, "%s.%s", path, id ? "file_id" : "image_url");
    content_add_image(c, m, url, id, inner);
}

/* What waits to become a part. */
static void flush_text(content_reader *c, chat_message *m, bytes *text)
{
    if (text->failed) {
        request_no_memory(&c->r->error);
    } else if (text->len > 0) {
        content_add_text(c, m, bytes_str(text));
    }
    bytes_clear(text);
}

static void begin_document(bytes *text, const json *block)
{
    static const char *const NAMES[] = {"title", "context", "source"};
    bytes_append_str(text, has_type(block, "document") ? "<document" : "<search_result");
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        const char *value = json_str(json_get(block, NAMES[i]), "");
        if (value[0]) {
            bytes_json(text, " %-s=%s", NAMES[i], value);
        }
    }
    bytes_append_str(text, ">\n");
}

/* The words of a source that is one text; false and an error for one that is not. */
static bool add_source(content_reader *c, bytes *text, const json *source, const char *path)
{
    const char *data = json_str(json_get(source, "data"), NULL);
    const char *id = json_str(json_get(source, "file_id"), NULL);
    if (json_is(source, JSON_OBJECT) && has_type(source, "text") && data) {
        bytes_append_str(text, data);
    } else if (has_type(source, "content") && json_is(json_get(source, "content"), JSON_STRING)) {
        bytes_append_str(text, json_str(json_get(source, "content"), ""));
    } else if (has_type(source, "file") && id) {
        content_append_file(c, text, id, path);
    } else {
        request_fail(&c->r->error, ERR_UNSUPPORTED, path, "unsupported_content_type",
                     "%s: only documents of text are read here (a source of type text, content, or file with "
                     "a text file)",
                     path);
    }
    return c->r->error.code == ERR_OK;
}

static void read_document(content_reader *c, chat_message *m, const json *block, const char *path)
{
    char inner[PATH_BYTES];
    const json *list = inner_blocks(block);
    bytes text = bytes_empty(LIMIT_BODY_BYTES);
    size_t i = 0;
    if (json_is_true(json_get(json_get(block, "citations"), "enabled"))) {
        request_fail(&c->r->error, ERR_UNSUPPORTED, path, "not_supported",
                     "%s: this model cites nothing; leave citations out", path);
    }
    begin_document(&text, block);
    request_path(inner, "%s.source", path);
    if (!list &&
        (has_type(block, "search_result") || !add_source(c, &text, json_get(block, "source"), inner))) {
        bad(c, path, "needs a list of blocks as its content");
    }
    for (const json *v = json_child(list); v && c->r->error.code == ERR_OK; v = json_next(v), i++) {
        request_path(inner, "%s.content[%zu]", path, i);
        if (has_type(v, "image") && has_type(block, "document")) {
            flush_text(c, m, &text);
            read_image(c, m, v, inner);
        } else if (has_type(v, "text") && json_is(json_get(v, "text"), JSON_STRING)) {
            bytes_append_str(&text, json_str(json_get(v, "text"), ""));
            bytes_append_str(&text, json_next(v) ? "\n" : "");
        } else {
            bad(c, inner, "must be a block of text");
        }
    }
    bytes_append_str(&text, has_type(block, "document") ? "\n</document>\n" : "\n</search_result>\n");
    flush_text(c, m, &text);
    bytes_deinit(&text);
}

void messages_content_read(content_reader *c, chat_message *m, const json *block, const char *path)
{
    const char *text = json_str(json_get(block, "text"), NULL);
    if (has_type(block, "image")) {
        read_image(c, m, block, path);
        return;
    }
    if (is_document(block)) {
        read_document(c, m, block, path);
        return;
    }
    if (!has_type(block, "text")) {
        request_fail(&c->r->error, ERR_UNSUPPORTED, path, "unsupported_content_type",
                     "%s: a block of type \"%s\" is not understood here", path,
                     json_str(json_get(block, "type"), ""));
    } else if (!text) {
        bad(c, path, "needs a text");
    }
    content_add_text(c, m, text);
}
