#include "server/protocol/dialects/completion_reply.h"

#include "base/json.h"

enum { ENTRY_DEPTH = 8 };

/* {"token": logprob, ..} of the alternatives of one token. */
static void write_top(bytes *out, const json *entry)
{
    bool is_first = true;
    if (json_typeof(json_get(entry, "logprob")) == JSON_NULL) { /* of the prompt's first token */
        bytes_append_str(out, "null");
        return;
    }
    bytes_append_char(out, '{');
    for (const json *v = json_child(json_get(entry, "top_logprobs")); v; v = json_next(v)) {
        bytes_append_str(out, is_first ? "" : ",");
        json_write(out, json_get(v, "token"));
        bytes_append_char(out, ':');
        json_write(out, json_get(v, "logprob"));
        is_first = false;
    }
    bytes_append_char(out, '}');
}

static bool begins_character(int64_t byte)
{
    return (byte & 0xC0) != 0x80;
}

/* The characters that begin in a token. The first one of a prompt has no bytes of its own. */
static size_t count_characters(const json *entry)
{
    const json *list = json_get(entry, "bytes");
    size_t n = 0;
    for (const json *v = json_child(list); v; v = json_next(v)) {
        int64_t byte = 0;
        n += json_int(v, 0, 255, &byte) && begins_character(byte);
    }
    for (const char *p = json_child(list) ? "" : json_str(json_get(entry, "token"), ""); *p; p++) {
        n += begins_character((unsigned char)*p);
    }
    return n;
}

/* Where in the text each token begins, in characters. */
static void write_offsets(bytes *out, const json *list)
{
    size_t n = 0;
    bytes_append_str(out, ",\"text_offset\":[");
    for (const json *v = json_child(list); v; v = json_next(v)) {
        bytes_printf(out, "%zu%s", n, json_next(v) ? "," : "");
        n += count_characters(v);
    }
    bytes_append_char(out, ']');
}

/* The parallel lists of this older form, from the entries that a chat's reply shows as they are; of the whole
 * text also its offsets. */
static void write_logprobs(bytes *out, const char *entries, bool is_whole)
{
    static const char *const MEMBERS[] = {"token", "logprob", NULL};
    static const char *const NAMES[] = {"tokens", "token_logprobs", "top_logprobs"};
    json_doc *doc = NULL;
    err_detail d = {0};
    if (!entries) {
        bytes_append_str(out, "null");
        return;
    }
    bytes text = bytes_empty(SIZE_MAX);
    bytes_printf(&text, "[%s]", entries);
    if (json_parse(&doc, bytes_str(&text), text.len, ENTRY_DEPTH, &d) != ERR_OK) {
        out->failed = true;
    }
    const json *list = doc ? json_root(doc) : NULL;
    for (int k = 0; k < 3; k++) {
        bytes_printf(out, "%s\"%s\":[", k ? "]," : "{", NAMES[k]);
        for (const json *v = json_child(list); v; v = json_next(v)) {
            MEMBERS[k] ? json_write(out, json_get(v, MEMBERS[k])) : write_top(out, v);
            bytes_append_str(out, json_next(v) ? "," : "");
        }
    }
    bytes_append_char(out, ']');
    if (is_whole) {
        write_offsets(out, list);
    }
    bytes_append_char(out, '}');
    json_free(doc);
    bytes_deinit(&text);
}

static void write_choice(bytes *out, int index, const reply_pieces *pieces, const char *logprobs,
                         const char *finish, bool is_whole)
{
    bytes text = bytes_empty(SIZE_MAX);
    for (size_t i = 0; pieces && i < pieces->n; i++) {
        bytes_append(&text, pieces->items[i].text.data, pieces->items[i].text.len);
    }
    bytes_json(out, "{\"index\":%d,\"text\":%.*s,\"logprobs\":", index, BYTES_ARG(&text));
    write_logprobs(out, logprobs, is_whole);
    bytes_json(out, ",\"finish_reason\":%s}", finish);
    out->failed = out->failed || text.failed;
    bytes_deinit(&text);
}

void completion_reply_choice_whole(bytes *out, const chat_reply_meta *m, const chat_reply_choice *choice)
{
    write_choice(out, m->index, choice->pieces, choice->logprobs, choice->finish, true);
}

static void write_chunk(bytes *out, const chat_reply_meta *m, const reply_pieces *pieces,
                        const char *logprobs, const char *finish, const gen_timings *t)
{
    bytes_append_str(out, "data: ");
    chat_reply_identity(out, m, COMPLETION_REPLY_OBJECT);
    bytes_append_str(out, ",\"choices\":[");
    write_choice(out, m->index, pieces, logprobs, finish, false);
    bytes_append_char(out, ']');
    bytes_append_str(out, m->include_usage ? ",\"usage\":null" : "");
    reply_json_timings(out, t);
    bytes_append_str(out, "}\n\n");
}

void completion_reply_delta(bytes *out, const chat_reply_meta *m, const reply_pieces *pieces,
                            const char *logprobs, const gen_timings *t)
{
    write_chunk(out, m, pieces, logprobs, NULL, t);
}

void completion_reply_last(bytes *out, const chat_reply_meta *m, const char *finish, const gen_timings *t)
{
    write_chunk(out, m, NULL, NULL, finish, t);
}
