#include "server/protocol/dialects/response_items.h"

#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "server/media/data_uri.h"

static const char *type_of(const json *item)
{
    return json_str(json_get(item, "type"), "message");
}

static const char *prefix_of(const char *type)
{
    static const char *const ROWS[][2] = {{"function_call", "fc_"},
                                          {"function_call_output", "fco_"},
                                          {"reasoning", "rs_"},
                                          {"compaction", "cmp_"}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        if (strcmp(type, ROWS[i][0]) == 0) {
            return ROWS[i][1];
        }
    }
    return "msg_";
}

bool response_items_is_known(const json *item)
{
    static const char *const TYPES[] = {
        "message",  "reasoning",      "function_call",        "function_call_output", "compaction",
        "mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"};
    bool is_known = false;
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        is_known = is_known || strcmp(type_of(item), TYPES[i]) == 0;
    }
    return is_known;
}

static void keep_item(bytes *out, const json *item)
{
    char id[48];
    hash_random_id(id, sizeof id, prefix_of(type_of(item)));
    bytes_json(out, "{\"id\":%s,\"type\":%s", json_str(json_get(item, "id"), id), type_of(item));
    for (const json *v = json_child(item); v; v = json_next(v)) {
        if (strcmp(json_key(v), "id") != 0 && strcmp(json_key(v), "type") != 0) {
            bytes_json(out, ",%s:", json_key(v));
            json_write(out, v);
        }
    }
    bytes_append_char(out, '}');
}

void response_items_keep(bytes *out, const json *items)
{
    if (json_is(items, JSON_STRING)) {
        char id[48];
        hash_random_id(id, sizeof id, "msg_");
        bytes_json(out, "{\"id\":%s,\"type\":\"message\",\"role\":\"user\",\"content\":%s}", id,
                   json_str(items, ""));
        return;
    }
    for (const json *v = json_is(items, JSON_ARRAY) ? json_child(items) : NULL; v; v = json_next(v)) {
        keep_item(out, v);
        bytes_append_str(out, json_next(v) ? "," : "");
    }
}

const json *response_items_find(const json *items, const char *id)
{
    for (const json *v = json_child(items); v; v = json_next(v)) {
        if (strcmp(json_str(json_get(v, "id"), ""), id) == 0) {
            return v;
        }
    }
    return NULL;
}

void response_items_write(bytes *out, const json *item)
{
    const bool is_answer = strcmp(json_str(json_get(item, "role"), ""), "assistant") == 0;
    const char *comma = "{";
    for (const json *v = json_child(item); v; v = json_next(v), comma = ",") {
        bytes_json(out, "%-s%s:", comma, json_key(v));
        if (strcmp(json_key(v), "content") == 0 && json_is(v, JSON_STRING)) {
            bytes_json(out, "[{\"type\":%s,\"text\":%s%-s}]", is_answer ? "output_text" : "input_text",
                       json_str(v, ""), is_answer ? ",\"annotations\":[]" : "");
        } else {
            json_write(out, v);
        }
    }
    if (!json_get(item, "status")) {
        bytes_append_str(out, ",\"status\":\"completed\"");
    }
    bytes_append_char(out, '}');
}

/* The item at place i from the page's beginning, where place 0 is the first or the last of all. */
static const json *at_place(const json *items, size_t n, size_t i, bool newest_first)
{
    const json *v = json_child(items);
    for (size_t k = newest_first ? n - 1 - i : i; k > 0; k--) {
        v = json_next(v);
    }
    return v;
}

bool response_items_list(bytes *out, const json *items, const response_items_page *page)
{
    const size_t n = json_len(items);
    size_t begin = 0, end;
    if (page->after && page->after[0]) {
        const json *after = response_items_find(items, page->after);
        if (!after) {
            return false;
        }
        while (at_place(items, n, begin++, page->newest_first) != after) {
        }
    }
    end = n - begin > (size_t)page->limit ? begin + (size_t)page->limit : n;
    bytes_append_str(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = begin; i < end; i++) {
        bytes_append_str(out, i > begin ? "," : "");
        response_items_write(out, at_place(items, n, i, page->newest_first));
    }
    const json *first = begin < end ? at_place(items, n, begin, page->newest_first) : NULL;
    const json *last = begin < end ? at_place(items, n, end - 1, page->newest_first) : NULL;
    bytes_json(out, "],\"first_id\":%s,\"last_id\":%s,\"has_more\":%hhd}",
               json_str(json_get(first, "id"), NULL), json_str(json_get(last, "id"), NULL), (bool)(end < n));
    return true;
}

void response_items_users(bytes *out, const json *items)
{
    json_doc *doc = NULL;
    bytes kept = bytes_empty(LIMIT_STORED_RESPONSE_BYTES + 2);
    bytes_append_char(&kept, '[');
    response_items_keep(&kept, items);
    bytes_append_char(&kept, ']');
    out->failed = out->failed || kept.failed ||
                  json_parse(&doc, bytes_str(&kept), kept.len, LIMIT_JSON_DEPTH + 1, NULL) != ERR_OK;
    for (const json *v = doc ? json_child(json_root(doc)) : NULL; v; v = json_next(v)) {
        if (strcmp(type_of(v), "message") == 0 && strcmp(json_str(json_get(v, "role"), ""), "user") == 0) {
            response_items_write(out, v);
            bytes_append_char(out, ',');
        }
    }
    json_free(doc);
    bytes_deinit(&kept);
}

void response_items_compaction(bytes *out, const char *summary, size_t len)
{
    char id[48];
    hash_random_id(id, sizeof id, "cmp_");
    bytes_json(out, "{\"id\":%s,\"type\":\"compaction\",\"encrypted_content\":\"", id);
    base64_encode(out, (const uint8_t *)summary, len);
    bytes_append_str(out, "\"}");
}
