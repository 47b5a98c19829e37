#include "server/upstream/upstream_reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"
#include "server/protocol/reply_json.h"

enum { ERROR_BODY_BYTES = 65536, WORD_BYTES = 200 };

void upstream_reply_init(upstream_reply *r, const char *name, const char *secret, upstream_wire wire)
{
    memset(r, 0, sizeof *r);
    r->name = name;
    r->secret = secret;
    r->wire = wire;
    r->call = r->last_call = -1;
    r->held = bytes_empty(LIMIT_UPSTREAM_EVENT_BYTES);
    r->event = bytes_empty(LIMIT_UPSTREAM_EVENT_BYTES);
    r->texts = bytes_empty(LIMIT_UPSTREAM_REPLY_BYTES);
}

void upstream_reply_deinit(upstream_reply *r)
{
    bytes_deinit(&r->held);
    bytes_deinit(&r->event);
    bytes_deinit(&r->texts);
    free(r->pieces);
    r->pieces = NULL;
    r->n_pieces = r->cap_pieces = 0;
}

/* ---- errors ---- */

static void fail(upstream_reply *r, const char *name, const char *text)
{
    if (r->error == ERR_OK) {
        r->error = err_set_param(&r->detail, ERR_UPSTREAM, NULL, name, "%s %s", r->name, text);
    }
    r->is_done = true;
}

static void fail_memory(upstream_reply *r)
{
    if (r->error == ERR_OK) {
        r->error = err_set(&r->detail, ERR_NOMEM, "there is not enough memory");
    }
    r->finish = GEN_FINISH_ERROR;
    r->is_done = true;
}

static bool has_word(const char *text, const char *word)
{
    for (; *text; text++) {
        size_t i = 0;
        while (word[i] && (text[i] | 0x20) == word[i]) {
            i++;
        }
        if (!word[i]) {
            return true;
        }
    }
    return false;
}

/* What a server says is wrong: its own fault, or the request's. {"error":{"message":..}}, {"message":..},
 * {"detail":..} and {"error":".."} are all in use. */
static void take_error(upstream_reply *r, const json *root, int status)
{
    const json *e = json_get(root, "error");
    const json *holder = json_is(e, JSON_OBJECT) ? e : root;
    const char *text = json_str(json_get(holder, "message"),
                                json_str(json_get(holder, "detail"), json_str(e, "gives no reason")));
    const char *code = json_str(json_get(holder, "code"), json_str(json_get(holder, "type"), ""));
    int64_t number = 0;
    status = json_int(json_get(holder, "code"), 400, 599, &number) && status < 400 ? (int)number : status;
    r->is_done = true;
    text = r->secret && strstr(text, r->secret) ? "its reason repeats the key of this server" : text;
    if (r->error != ERR_OK) {
        return;
    }
    err_detail *d = &r->detail;
    const bool is_context = strcmp(code, "context_length_exceeded") == 0 ||
                            strcmp(code, "exceed_context_size_error") == 0 ||
                            has_word(text, "context length") || has_word(text, "context size");
    if (status == 401 || status == 403) { /* it may repeat the key */
        r->error = err_set_param(d, ERR_UPSTREAM, NULL, "upstream_refused",
                                 "%s refuses the key of this server (%d)", r->name, status);
    } else if (status >= 300 && status < 400) {
        r->error = err_set_param(d, ERR_UPSTREAM, NULL, "upstream_redirects",
                                 "%s redirects elsewhere (%d), which is not followed", r->name, status);
    } else if (status == 429) {
        r->error = err_set_param(d, ERR_BUSY, NULL, "upstream_busy", "%s has too many requests: %.*s",
                                 r->name, WORD_BYTES, text);
    } else if (status == 404) {
        r->error = err_set_param(d, ERR_NOT_FOUND, "model", "model_not_found", "%s: %.*s", r->name,
                                 WORD_BYTES, text);
    } else if (is_context || (status >= 400 && status < 500)) {
        r->error = err_set_param(d, is_context ? ERR_CONTEXT : ERR_INVALID, NULL, "upstream_refused",
                                 "%s: %.*s", r->name, WORD_BYTES * 2, text);
    } else {
        r->error = err_set_param(d, ERR_UPSTREAM, NULL, "upstream_failed", "%s failed (%d): %.*s", r->name,
                                 status ? status : 500, WORD_BYTES, text);
    }
}

/* ---- pieces ---- */

static void add(upstream_reply *r, gen_text_kind kind, const char *text, size_t len)
{
    upstream_piece *last = r->n_pieces ? &r->pieces[r->n_pieces - 1] : NULL;
    const bool joins = last && last->kind == kind &&
                       (kind == GEN_TEXT_CONTENT || kind == GEN_TEXT_REASONING || kind == GEN_TEXT_ARGUMENTS);
    if (len == 0 && kind != GEN_TEXT_CALL_END) {
        return;
    }
    if (!joins && !memory_grow(&r->pieces, &r->cap_pieces, r->n_pieces + 1, 4, sizeof *r->pieces)) {
        fail_memory(r);
        return;
    }
    if (!joins) {
        last = &r->pieces[r->n_pieces++];
        *last = (upstream_piece){.kind = kind, .at = r->texts.len};
    }
    bytes_append(&r->texts, text, len);
    last->len = r->texts.len - last->at;
    if (r->texts.failed) {
        fail_memory(r);
    }
}

/* What was written here, and freed. */
static void add_written(upstream_reply *r, gen_text_kind kind, bytes *text)
{
    add(r, kind, bytes_str(text), text->len);
    if (text->failed) {
        fail_memory(r);
    }
    bytes_deinit(text);
}

static void end_call(upstream_reply *r)
{
    if (r->call >= 0) {
        if (!r->has_arguments) {
            add(r, GEN_TEXT_ARGUMENTS, "{}", 2);
        }
        add(r, GEN_TEXT_CALL_END, "", 0);
        r->call = -1;
    }
}

static void take_call(upstream_reply *r, const json *v, int64_t position)
{
    int64_t index = position;
    const json *function = json_get(v, "function");
    const char *name = json_str(json_get(function, "name"), "");
    const json *arguments = json_get(function, "arguments");
    (void)json_int(json_get(v, "index"), 0, LIMIT_TOOLS, &index);
    /* some give every call the index 0: a new name and id begin another */
    if (index == r->call && name[0] && r->has_arguments && json_str(json_get(v, "id"), "")[0]) {
        index = r->last_call + 1;
    }
    if (index != r->call) {
        if (index <= r->last_call || !name[0]) {
            fail(r, "upstream_broken", "mixes up the pieces of its tool calls");
            return;
        }
        end_call(r);
        r->call = r->last_call = index;
        r->has_arguments = false;
        add(r, GEN_TEXT_CALL, name, strlen(name));
    }
    if (json_is(arguments, JSON_OBJECT)) { /* not as text, which some do */
        bytes text = bytes_empty(LIMIT_UPSTREAM_EVENT_BYTES);
        json_write(&text, arguments);
        add_written(r, GEN_TEXT_ARGUMENTS, &text);
        r->has_arguments = true;
    } else {
        const char *text = json_str(arguments, "");
        add(r, GEN_TEXT_ARGUMENTS, text, strlen(text));
        r->has_arguments = r->has_arguments || text[0];
    }
}

/* One entry of logprobs.content, written anew: nothing of it is passed on unread. */
static void write_logprob(bytes *out, const json *v)
{
    uint8_t raw[512];
    size_t n = 0;
    const char *token = json_str(json_get(v, "token"), "");
    for (const json *b = json_child(json_get(v, "bytes")); b && n < sizeof raw; b = json_next(b)) {
        int64_t byte = 0;
        if (json_int(b, 0, 255, &byte)) {
            raw[n++] = (uint8_t)byte;
        }
    }
    if (n == 0) {
        reply_json_logprob_head(out, token, strlen(token), json_num(json_get(v, "logprob"), -9999.0));
    } else {
        reply_json_logprob_head(out, (const char *)raw, n, json_num(json_get(v, "logprob"), -9999.0));
    }
}

static void take_logprobs(upstream_reply *r, const json *list)
{
    bytes out = bytes_empty(LIMIT_UPSTREAM_EVENT_BYTES);
    for (const json *v = json_child(list); v; v = json_next(v)) {
        bytes_append_str(&out, out.len ? "," : "");
        write_logprob(&out, v);
        bytes_append_str(&out, ",\"top_logprobs\":[");
        size_t n = 0;
        for (const json *top = json_child(json_get(v, "top_logprobs")); top && n < LIMIT_TOP_LOGPROBS;
             top = json_next(top)) {
            bytes_append_str(&out, n++ ? "," : "");
            write_logprob(&out, top);
            bytes_append_char(&out, '}');
        }
        bytes_append_str(&out, "]}");
    }
    add_written(r, GEN_TEXT_LOGPROBS, &out);
}

/* logprobs of Completions: {"tokens":[..],"token_logprobs":[..],"top_logprobs":[{token: logprob}]} */
static void take_old_logprobs(upstream_reply *r, const json *v)
{
    bytes out = bytes_empty(LIMIT_UPSTREAM_EVENT_BYTES);
    const json *p = json_child(json_get(v, "token_logprobs")), *top = json_child(json_get(v, "top_logprobs"));
    for (const json *t = json_child(json_get(v, "tokens")); t; t = json_next(t)) {
        const char *token = json_str(t, "");
        bytes_append_str(&out, out.len ? "," : "");
        reply_json_logprob_head(&out, token, strlen(token), json_num(p, -9999.0));
        bytes_append_str(&out, ",\"top_logprobs\":[");
        size_t n = 0;
        for (const json *one = json_is(top, JSON_OBJECT) ? json_child(top) : NULL; one;
             one = json_next(one)) {
            bytes_append_str(&out, n++ ? "," : "");
            reply_json_logprob_head(&out, json_key(one), strlen(json_key(one)), json_num(one, -9999.0));
            bytes_append_char(&out, '}');
        }
        bytes_append_str(&out, "]}");
        p = p ? json_next(p) : NULL;
        top = top ? json_next(top) : NULL;
    }
    add_written(r, GEN_TEXT_LOGPROBS, &out);
}

/* ---- a chunk, or the document ---- */

static int32_t count_of(const json *v, const char *name, int32_t otherwise)
{
    int64_t n = otherwise;
    return json_int(json_get(v, name), 0, INT32_MAX, &n) ? (int32_t)n : otherwise;
}

static void take_usage(upstream_reply *r, const json *u)
{
    if (!json_is(u, JSON_OBJECT)) {
        return;
    }
    const json *completion = json_get(u, "completion_tokens_details");
    const json *prompt = json_get(u, "prompt_tokens_details");
    r->usage = (gen_usage){
        .is_known = true,
        .prompt = count_of(u, "prompt_tokens", 0),
        .completion = count_of(u, "completion_tokens", 0),
        .cached = count_of(prompt, "cached_tokens", count_of(u, "prompt_cache_hit_tokens", 0)),
        .reasoning = count_of(completion, "reasoning_tokens", count_of(u, "reasoning_tokens", -1)),
    };
    if (r->usage.cached > r->usage.prompt) {
        r->usage.cached = r->usage.prompt;
    }
}

static void take_reason(upstream_reply *r, const json *v)
{
    const char *reason = json_str(v, "");
    if (!reason[0]) {
        return;
    }
    if (r->reason[0] && strncmp(r->reason, reason, sizeof r->reason - 1) != 0) {
        fail(r, "upstream_broken", "says twice, and differently, why the answer has ended");
    }
    snprintf(r->reason, sizeof r->reason, "%s", reason);
}

static void take_message(upstream_reply *r, const json *m)
{
    const size_t n_before = r->texts.len;
    const char *reasoning =
        json_str(json_get(m, "reasoning"), json_str(json_get(m, "reasoning_content"), ""));
    const char *content = json_str(json_get(m, "content"), "");
    const char *refusal = json_str(json_get(m, "refusal"), "");
    if (r->reason[0] && (reasoning[0] || content[0])) {
        fail(r, "upstream_broken", "goes on behind the end of its answer");
        return;
    }
    if (reasoning[0] || content[0]) {
        end_call(r);
    }
    add(r, GEN_TEXT_REASONING, reasoning, strlen(reasoning));
    add(r, GEN_TEXT_CONTENT, content, strlen(content));
    add(r, GEN_TEXT_CONTENT, refusal, strlen(refusal));
    int64_t position = 0;
    for (const json *v = json_child(json_get(m, "tool_calls")); v && !r->is_done; v = json_next(v)) {
        take_call(r, v, position++);
    }
    r->n_tokens += r->texts.len > n_before;
}

static void take_document(upstream_reply *r, const json *root)
{
    if (!json_is(root, JSON_OBJECT)) {
        fail(r, "upstream_broken", "has sent something else than an answer");
        return;
    }
    if (json_typeof(json_get(root, "error")) != JSON_NULL ||
        strcmp(json_str(json_get(root, "object"), ""), "error") == 0) {
        take_error(r, root, 0);
        return;
    }
    const json *choice = json_child(json_get(root, "choices"));
    take_usage(r, json_get(root, "usage"));
    if (!choice) {
        return; /* usage alone, or a chunk that keeps the stream alive */
    }
    if (r->wire == UPSTREAM_COMPLETION) {
        const char *text = json_str(json_get(choice, "text"), "");
        if (r->reason[0] && text[0]) {
            fail(r, "upstream_broken", "goes on behind the end of its answer");
            return;
        }
        add(r, GEN_TEXT_CONTENT, text, strlen(text));
        r->n_tokens += text[0] != '\0';
        take_old_logprobs(r, json_get(choice, "logprobs"));
    } else {
        const json *delta = json_get(choice, "delta");
        take_message(r, delta ? delta : json_get(choice, "message"));
        take_logprobs(r, json_get(json_get(choice, "logprobs"), "content"));
    }
    if (!r->is_done) {
        take_reason(r, json_get(choice, "finish_reason"));
    }
}

static void parse(upstream_reply *r, const char *text, size_t len)
{
    json_doc *doc = NULL;
    const err_code err = json_parse(&doc, text, len, LIMIT_JSON_DEPTH, NULL);
    if (err == ERR_NOMEM) {
        fail_memory(r);
    } else if (err != ERR_OK) {
        fail(r, "upstream_broken", "has sent broken JSON");
    } else {
        take_document(r, json_root(doc));
    }
    json_free(doc);
}

/* ---- server-sent events ---- */

static void end_event(upstream_reply *r)
{
    if (r->event.len == 0) {
        return;
    }
    if (r->event.len == 6 && memcmp(r->event.data, "[DONE]", 6) == 0) {
        r->is_done = true;
    } else {
        parse(r, r->event.data, r->event.len);
    }
    bytes_clear(&r->event);
}

/* A line without its end. Comments, and fields but data, say nothing. */
static void take_line(upstream_reply *r, const char *line, size_t len)
{
    if (len > 0 && line[len - 1] == '\r') {
        len--;
    }
    if (len == 0) {
        end_event(r);
        return;
    }
    if (len < 5 || memcmp(line, "data:", 5) != 0) {
        return;
    }
    const size_t skip = len > 5 && line[5] == ' ' ? 6 : 5;
    if (r->event.len > 0) {
        bytes_append_char(&r->event, '\n');
    }
    bytes_append(&r->event, line + skip, len - skip);
}

static void take_lines(upstream_reply *r, const char *data, size_t n)
{
    while (n > 0 && !r->is_done) {
        const char *end = memchr(data, '\n', n);
        const size_t len = end ? (size_t)(end - data) : n;
        if (end && r->held.len == 0) {
            take_line(r, data, len);
        } else {
            bytes_append(&r->held, data, len);
            if (end && !r->held.failed) {
                take_line(r, bytes_str(&r->held), r->held.len);
                bytes_clear(&r->held);
            }
        }
        if (r->held.no_memory || r->event.no_memory) {
            fail_memory(r);
        } else if (r->held.failed || r->event.failed) {
            fail(r, "upstream_too_large", "has sent an event that is too large");
        }
        data += len + (end != NULL);
        n -= len + (end != NULL);
    }
}

/* ---- the whole reply ---- */

void upstream_reply_head(upstream_reply *r, int status, const char *content_type)
{
    r->status = status;
    r->is_stream = status == 200 && strncmp(content_type, "text/event-stream", 17) == 0;
    if (!r->is_stream) {
        r->held.max = status == 200 ? LIMIT_UPSTREAM_REPLY_BYTES : ERROR_BODY_BYTES;
    }
}

bool upstream_reply_push(upstream_reply *r, const char *data, size_t n)
{
    if (r->is_done) {
        return false;
    }
    r->n_bytes += n;
    if (r->n_bytes > LIMIT_UPSTREAM_REPLY_BYTES) {
        fail(r, "upstream_too_large", "has sent an answer that is too large");
    } else if (r->is_stream) {
        take_lines(r, data, n);
    } else {
        bytes_append(&r->held, data, n);
        if (r->held.no_memory) {
            fail_memory(r);
        } else if (r->held.failed) {
            if (r->status != 200) {
                take_error(r, NULL, r->status);
            }
            fail(r, "upstream_too_large", "has sent an answer that is too large");
        }
    }
    return !r->is_done;
}

gen_text *upstream_reply_take(upstream_reply *r)
{
    if (r->n_pieces == 0) {
        return NULL;
    }
    const size_t head = sizeof(gen_text) + r->n_pieces * sizeof(gen_text_piece);
    gen_text *text = malloc(head + r->texts.len + 1);
    if (!text) {
        fail_memory(r);
        return NULL;
    }
    char *chars = (char *)text + head;
    memcpy(chars, bytes_str(&r->texts), r->texts.len + 1);
    *text = (gen_text){.n = r->n_pieces, .n_tokens = r->n_tokens};
    for (size_t i = 0; i < r->n_pieces; i++) {
        const upstream_piece *p = &r->pieces[i];
        text->pieces[i] = (gen_text_piece){.kind = p->kind, .text = chars + p->at, .len = p->len};
    }
    r->n_pieces = 0;
    r->n_tokens = 0;
    bytes_clear(&r->texts);
    return text;
}

/* matched_stop, which SGLang adds, says only which token or text it was. */
static void set_finish(upstream_reply *r)
{
    static const struct {
        const char *reason;
        gen_finish finish;
    } ROWS[] = {{"stop", GEN_FINISH_STOP},
                {"tool_calls", GEN_FINISH_STOP},
                {"function_call", GEN_FINISH_STOP},
                {"eos", GEN_FINISH_STOP},
                {"end_turn", GEN_FINISH_STOP},
                {"stop_sequence", GEN_FINISH_STOP},
                {"length", GEN_FINISH_LENGTH},
                {"max_tokens", GEN_FINISH_LENGTH},
                {"content_filter", GEN_FINISH_FILTERED}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        if (strcmp(r->reason, ROWS[i].reason) == 0) {
            r->finish = ROWS[i].finish;
            if (r->finish == GEN_FINISH_STOP) {
                end_call(r);
            }
            return;
        }
    }
    fail(r, "upstream_aborted",
         strcmp(r->reason, "abort") == 0 || strcmp(r->reason, "error") == 0
             ? "has given up the answer"
             : "has ended the answer for a reason that is not known here");
}

void upstream_reply_finish(upstream_reply *r)
{
    if (r->error == ERR_OK && r->is_stream && !r->is_done) {
        if (r->held.len > 0) { /* the last line may lack its end */
            take_line(r, bytes_str(&r->held), r->held.len);
        }
        end_event(r);
    } else if (r->error == ERR_OK && !r->is_stream && !r->is_done) {
        json_doc *doc = NULL;
        if (r->status == 200) {
            parse(r, bytes_str(&r->held), r->held.len);
        } else {
            const err_code err = json_parse(&doc, bytes_str(&r->held), r->held.len, LIMIT_JSON_DEPTH, NULL);
            if (err == ERR_NOMEM) {
                fail_memory(r);
            }
            take_error(r, err == ERR_OK ? json_root(doc) : NULL, r->status);
            json_free(doc);
        }
    }
    r->is_done = true;
    if (r->error == ERR_OK && !r->reason[0]) {
        fail(r, "upstream_cut_off", "has ended in the middle of its answer");
    } else if (r->error == ERR_OK) {
        set_finish(r);
    }
    if (r->error != ERR_OK) {
        r->finish = GEN_FINISH_ERROR;
    }
}
