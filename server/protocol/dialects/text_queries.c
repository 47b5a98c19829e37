#include "server/protocol/dialects/text_queries.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "server/protocol/context_fit.h"
#include "server/protocol/dialects/messages_request.h"
#include "server/protocol/dialects/responses_request.h"

/* ---- tokens of a text ---- */

/* A token's text, or its bytes as numbers if it is a part of a character. */
static void write_piece(bytes *out, const engine *e, int32_t id)
{
    size_t len = 0;
    bool special = false;
    const char *text = engine_token_bytes(e, id, &len, &special);
    bytes_printf(out, "{\"id\":%d,\"piece\":", id);
    if (!text || utf8_valid(text, len)) {
        bytes_append_json(out, text ? text : "", len);
    } else {
        for (size_t i = 0; i < len; i++) {
            bytes_printf(out, i ? ",%d" : "[%d", (unsigned char)text[i]);
        }
        bytes_append_char(out, ']');
    }
    bytes_append_char(out, '}');
}

static void write_pieces(bytes *out, const engine *e, const char *ids)
{
    while (*ids) {
        char *end = NULL;
        write_piece(out, e, (int32_t)strtol(ids, &end, 10));
        ids = end + (*end == ',');
        bytes_append_str(out, *ids ? "," : "");
    }
}

static err_code tokenize(bytes *out, const json *root, api_request *r, const engine *e, err_detail *d)
{
    const char *content = NULL;
    bool parse_special = true, with_pieces = false;
    request_string(&r->error, &content, root, "content", LIMIT_BODY_BYTES);
    if (!content) {
        request_fail(&r->error, ERR_INVALID, "content", "missing_field", "content is missing");
    }
    request_bool(&r->error, &parse_special, root, "parse_special");
    request_bool(&r->error, &with_pieces, root, "with_pieces");
    err_code err = r->error.code;
    if (err != ERR_OK) {
        return err;
    }
    bytes ids;
    bytes_init(&ids, SIZE_MAX);
    err = engine_tokenize(e, &ids, content, strlen(content), parse_special, d);
    bytes_append_str(out, "{\"tokens\":[");
    if (with_pieces) {
        write_pieces(out, e, bytes_str(&ids));
    } else {
        bytes_append(out, ids.data, ids.len);
    }
    bytes_append_str(out, "]}");
    out->failed = out->failed || ids.failed;
    bytes_deinit(&ids);
    return err;
}

static err_code detokenize(bytes *out, const json *root, const engine *e, err_detail *d)
{
    const json *tokens = json_get(root, "tokens");
    if (!json_is(tokens, JSON_ARRAY)) {
        return err_set_param(d, ERR_INVALID, "tokens", "invalid_type", "tokens must be a list of token ids");
    }
    const int64_t last = engine_get_info(e)->n_vocab - 1;
    bytes text;
    bytes_init(&text, LIMIT_BODY_BYTES);
    err_code err = ERR_OK;
    for (const json *v = json_child(tokens); v && err == ERR_OK; v = json_next(v)) {
        int64_t id = 0;
        if (json_int(v, 0, last, &id)) {
            size_t len = 0;
            bool special = false;
            const char *piece = engine_token_bytes(e, (int32_t)id, &len, &special);
            bytes_append(&text, piece ? piece : "", len);
        } else {
            err = err_set_param(d, ERR_INVALID, "tokens", "invalid_value",
                                "tokens must be numbers from 0 to %d", (int)last);
        }
    }
    if (err == ERR_OK && text.no_memory) {
        err = err_set(d, ERR_NOMEM, "no memory for the text of these tokens");
    } else if (err == ERR_OK && text.failed) {
        err = err_set_param(d, ERR_LIMIT, "tokens", "too_large", "the text of these tokens is too long");
    }
    bytes_append_str(out, "{\"content\":");
    bytes_append_json(out, bytes_str(&text), text.len);
    bytes_append_char(out, '}');
    bytes_deinit(&text);
    return err;
}

/* ---- prompts ---- */

static err_code apply_template(bytes *out, const api_request *r, engine *e, err_detail *d)
{
    bytes prompt;
    bytes_init(&prompt, LIMIT_RENDERED_BYTES);
    err_code err = engine_render(e, &prompt, r->in, d);
    bytes_append_str(out, "{\"prompt\":");
    bytes_append_json(out, bytes_str(&prompt), prompt.len);
    bytes_append_char(out, '}');
    out->failed = out->failed || prompt.failed;
    bytes_deinit(&prompt);
    return err;
}

static err_code prepare_chat(gen_request **out, const api_request *r, const struct completion_prompt *prompt,
                             engine *e, const prepare_hooks *hooks, err_detail *d)
{
    (void)prompt;
    return engine_prepare(e, out, r->in, hooks, d);
}

/* members: of the reply, in front of input_tokens. */
static err_code count_tokens(bytes *out, const char *members, api_request *r, engine *e,
                             const prepare_hooks *hooks, err_detail *d)
{
    gen_request *request = NULL;
    context_fit fit = {.r = r, .prepare = prepare_chat, .e = e, .hooks = hooks, .told = bytes_empty(4096)};
    r->in->scope = r->scope;
    r->compact_at = 0; /* what was sent is counted */
    err_code err = remote_media_fetch(r->remote, r->in, hooks, d);
    if (err == ERR_OK) {
        err = context_fit_prepare(&request, &fit, d);
    }
    if (err == ERR_OK) {
        bytes_printf(out, "{%s\"input_tokens\":%d", members, gen_request_get_info(request).n_prompt_tokens);
        if (r->asks_edits) {
            bytes_printf(out, ",\"context_management\":{\"original_input_tokens\":%lld}",
                         (long long)fit.n_original);
        }
        bytes_append_char(out, '}');
        gen_request_free(request);
    }
    bytes_deinit(&fit.told);
    return err;
}

err_code text_query_run(bytes *out, text_query query, api_request *r, engine *e, const char *text, size_t len,
                        const prepare_hooks *hooks, err_detail *d)
{
    static const char OBJECT[] = "\"object\":\"response.input_tokens\",";
    const engine_info *info = engine_get_info(e);
    const json *root = NULL;
    err_code err = ERR_OK;
    switch (query) {
    case QUERY_TOKENIZE:
        err = api_request_open(r, &root, text, len, d);
        return err == ERR_OK ? tokenize(out, root, r, e, d) : err;
    case QUERY_DETOKENIZE:
        err = api_request_open(r, &root, text, len, d);
        return err == ERR_OK ? detokenize(out, root, e, d) : err;
    case QUERY_TEMPLATE:
        err = chat_request_parse(r, text, len, info, d);
        return err == ERR_OK ? apply_template(out, r, e, d) : err;
    case QUERY_COUNT_CHAT:
        err = chat_request_parse(r, text, len, info, d);
        return err == ERR_OK ? count_tokens(out, OBJECT, r, e, hooks, d) : err;
    case QUERY_COUNT_MESSAGES:
        err = messages_request_parse(r, text, len, false, info, d);
        return err == ERR_OK ? count_tokens(out, "", r, e, hooks, d) : err;
    default:
        err = responses_request_parse(r, text, len, false, info, d);
        return err == ERR_OK ? count_tokens(out, OBJECT, r, e, hooks, d) : err;
    }
}
