#include "server/api_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *type_of_status(int status)
{
    static const struct {
        int status;
        const char *type;
    } ROWS[] = {{401, "authentication_error"}, {403, "permission_error"}, {404, "not_found_error"},
                {413, "request_too_large"},    {429, "rate_limit_error"}, {500, "server_error"},
                {501, "not_supported_error"},  {502, "upstream_error"},   {503, "unavailable_error"},
                {504, "timeout_error"}};
    size_t i = 0;
    while (i < ARRAY_LEN(ROWS) && ROWS[i].status != status) {
        i++;
    }
    return i < ARRAY_LEN(ROWS) ? ROWS[i].type : "invalid_request_error";
}

void api_error_set(api_error *e, int status, const char *code, const char *param, const char *format, ...)
{
    memset(e, 0, sizeof *e);
    e->status = status;
    e->type = type_of_status(status);
    snprintf(e->code, sizeof e->code, "%s", code ? code : "");
    snprintf(e->param, sizeof e->param, "%s", param ? param : "");
    va_list args;
    va_start(args, format);
    vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
    if (status == 429 || status == 503) {
        e->retry_after_s = status == 429 ? 1 : 5;
    }
}

/* The status of a fault of what was sent; 400 unless its name says more. */
static int status_of_fault(err_code code, const char *name)
{
    static const struct {
        const char *name;
        err_code code;
        int status;
    } ROWS[] = {
        {"body_too_large", ERR_LIMIT, 413},         {"memory_limit", ERR_LIMIT, 413},
        {"upload_too_large", ERR_LIMIT, 413},       {"upload_quota_exceeded", ERR_LIMIT, 413},
        {"too_many_files", ERR_LIMIT, 413},         {"too_many_parts", ERR_LIMIT, 413},
        {"too_many_uploads", ERR_LIMIT, 429},       {"too_many_chats", ERR_LIMIT, 413},
        {"too_many_shares", ERR_LIMIT, 413},        {"chat_too_large", ERR_LIMIT, 413},
        {"too_many_conversations", ERR_LIMIT, 413}, {"conversation_too_large", ERR_LIMIT, 413},
        {"history_full", ERR_LIMIT, 507},           {"history_damaged", ERR_CORRUPT, 500},
        {"revision_conflict", ERR_INVALID, 409},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        if (ROWS[i].code == code && strcmp(ROWS[i].name, name) == 0) {
            return ROWS[i].status;
        }
    }
    return 400;
}

void api_error_from(api_error *e, err_code code, const err_detail *d)
{
    const char *text = d && d->text[0] ? d->text : err_name(code);
    const char *name = d ? d->name : "";
    const char *param = d ? d->param : "";
    switch (code) {
    case ERR_INVALID:
    case ERR_CORRUPT:
    case ERR_LIMIT:
    case ERR_UNSUPPORTED:
        api_error_set(e, status_of_fault(code, name), name, param, "%s", text);
        return;
    case ERR_NOT_FOUND:
        api_error_set(e, 404, name, param, "%s", text);
        return;
    case ERR_CONTEXT:
        api_error_set(e, 400, "context_length_exceeded", param, "%s", text);
        e->type = "exceed_context_size_error";
        e->n_prompt_tokens = d ? d->amount : 0;
        e->n_ctx = d ? d->limit : 0;
        return;
    case ERR_BUSY:
        if (strcmp(name, "memory_busy") == 0 || strcmp(name, "upstream_busy") == 0) {
            api_error_set(e, 429, name, NULL, "%s", text);
        } else {
            api_error_set(e, 429, "queue_full", NULL, "the queue is full; try again in a moment");
        }
        return;
    case ERR_NOMEM:
        api_error_set(e, 503, "out_of_memory", NULL, "no memory for this request; try again or shorten it");
        return;
    case ERR_UPSTREAM:
        api_error_set(e, 502, name[0] ? name : "upstream_failed", param, "%s", text);
        return;
    case ERR_TIMEOUT:
        api_error_set(e, 504, name, param, "%s", text);
        return;
    case ERR_IO:
        if (strstr(name, "storage_failed")) { /* the disk: a cause that a person can mend */
            api_error_set(e, 507, name, param, "%s", text);
            return;
        }
        api_error_set(e, 500, "server_error", NULL, "the server failed to answer this request");
        return;
    case ERR_CANCELLED:
        api_error_set(e, 499, "cancelled", NULL, "the request was cancelled");
        return;
    default:
        api_error_set(e, 500, "server_error", NULL, "the server failed to answer this request");
        return;
    }
}

static void write_nullable(bytes *out, const char *text)
{
    if (text[0]) {
        bytes_append_json(out, text, strlen(text));
    } else {
        bytes_append_str(out, "null");
    }
}

void api_error_write(bytes *out, const api_error *e, const char *extra_members)
{
    bytes_append_str(out, "{\"message\":");
    bytes_append_json(out, e->message, strlen(e->message));
    bytes_printf(out, ",\"type\":\"%s\",\"param\":", e->type);
    write_nullable(out, e->param);
    bytes_append_str(out, ",\"code\":");
    write_nullable(out, e->code);
    if (e->n_ctx) {
        bytes_printf(out, ",\"n_prompt_tokens\":%lld,\"n_ctx\":%lld", (long long)e->n_prompt_tokens,
                     (long long)e->n_ctx);
    }
    bytes_append_str(out, extra_members ? extra_members : "");
    bytes_append_char(out, '}');
}

void api_error_write_body(bytes *out, const api_error *e)
{
    bytes_append_str(out, "{\"error\":");
    api_error_write(out, e, NULL);
    bytes_append_char(out, '}');
}
