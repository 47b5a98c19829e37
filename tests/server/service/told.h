/* told: what is asked of the neighbours of a part of the server, and what an answer is then, as text: a line each.
 *
 *     told_case("a client that is gone");      // the title of what follows
 *     tell("drop %d", (int)a->id);             // in a neighbour (tests/wrap.h)
 *     told_answer(a);                          // what is in it that is not so from its begin
 *     told_check("");                          // or recorded_check(file, bytes_str(&told))
 */
#ifndef PARLEY_TESTS_SERVER_SERVICE_TOLD_H
#define PARLEY_TESTS_SERVER_SERVICE_TOLD_H

#include <stdarg.h>

#include "base/json.h"
#include "base/log.h"
#include "tests/recorded.h"
#include "tests/server/service/made_serve.h"
#include "tests/wrap.h"

static bytes told = {.max = 1 << 24};

/* Ids that are at the first and the last place of a small table: whoever looks through it finds both. */
enum { FIRST_PLACE = 62, LAST_PLACE = 17 };

static inline void told_places(const id_table *t)
{
    CHECK(id_table_at(t, 0) == id_table_get(t, FIRST_PLACE) && id_table_at(t, 0));
    CHECK(id_table_at(t, t->cap - 1) == id_table_get(t, LAST_PLACE) && id_table_at(t, t->cap - 1));
}

PRINTF_LIKE(1, 2) static inline void tell(const char *format, ...)
{
    static char text[1 << 16];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    CHECK(told.failed || (n >= 0 && (size_t)n < sizeof text));
    bytes_append_str(&told, "  ");
    for (const char *p = text; *p; p++) { /* each call is one line */
        bytes_append_str(&told, *p == '\n' ? "\\n" : (const char[]){*p, '\0'});
    }
    bytes_append_char(&told, '\n');
}

/* Of programs that have log_write wrapped: what is logged. */
PRINTF_LIKE(3, 4) void __wrap_log_write(log_level level, const char *area, const char *format, ...);
void __wrap_log_write(log_level level, const char *area, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tell("log %d %s: %s", level, area, text);
}

/* What comes of a case is below its name. */
PRINTF_LIKE(1, 2) static inline void told_case(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bytes_printf(&told, "%s\n", text);
}

static inline void told_flag(const char *name, bool is_set)
{
    if (is_set) {
        bytes_printf(&told, " %s", name);
    }
}

static inline void told_number(const char *name, double n)
{
    if (n < 0.0 || n > 0.0) {
        bytes_printf(&told, " %s=%.9g", name, n);
    }
}

/* A long one by its length. */
static inline void told_text(const char *name, const bytes *text)
{
    enum { SHOWN = 2000 };
    if (text->len > SHOWN) {
        bytes_printf(&told, " %s=(%zu bytes)", name, text->len);
    } else if (text->len > 0) {
        bytes_printf(&told, " %s='", name);
        for (size_t i = 0; i < text->len; i++) {
            bytes_append_char(&told, text->data[i] == '\n' ? '~' : text->data[i]);
        }
        bytes_append_char(&told, '\'');
    }
    if (text->failed) {
        bytes_printf(&told, " %s_failed", name);
    }
}

static inline void told_str(const char *name, const char *text)
{
    if (text && text[0]) {
        bytes_printf(&told, " %s=%s", name, text);
    }
}

static inline void told_rounds(const tool_rounds *r)
{
    static const char *const STAGES[] = {"", "calling", "preparing"};
    told_flag(STAGES[r->stage], r->stage != TOOLS_IDLE);
    told_number("rounds", r->n_rounds);
    told_number("ran", r->n_ran);
    told_number("waiting", (double)r->n_waiting);
    for (size_t i = 0; i < r->n_runs; i++) {
        const tool_run *t = &r->runs[i];
        bytes_printf(&told, " run(%s.%s %s %s", bytes_str(&t->label), bytes_str(&t->tool),
                     bytes_str(&t->name), bytes_str(&t->arguments));
        told_str("approval", t->approval_id);
        told_flag("unknown", t->is_unknown);
        told_flag("unasked", t->runs_unasked);
        told_flag("done", t->is_done);
        told_number("begun", t->begun_ms);
        bytes_append_char(&told, ')');
    }
    told_flag("open", r->is_open);
    told_flag("own", r->has_own);
    told_flag("asks", r->asks);
    told_flag("stopped", r->is_stopped);
    told_text("turns", &r->turns);
    told_text("thoughts", &r->reasoning);
    told_text("content", &r->content);
    told_number("round_prompt", r->prompt_tokens);
    told_number("round_cached", r->cached_tokens);
    told_flag("is_summary", r->is_summary);
    told_flag("has_summary", r->has_summary);
    told_number("summary_tokens", r->summary_tokens);
}

static inline void told_answer(const answer *a)
{
    static const char *const STATES[] = {"held", "preparing", "ready", "running", "finished"};
    static const char *const ENDS[] = {"", "length", "cancelled", "error", "filtered"};
    static const char *const LATE[] = {"", "waited", "took", "stalled", "ends"};
    static const char *const TALKS[] = {"", "talk_waiting", "talk_writing", "talk_added"};
    bytes_printf(&told, "  =%d %s", (int)a->id, STATES[a->state]);
    told_flag(ENDS[a->finish], a->finish != GEN_FINISH_STOP);
    told_flag(LATE[a->timeout], a->timeout != ANSWER_IN_TIME);
    told_flag(TALKS[a->talk_stage], a->talk_stage != TALK_IDLE);
    told_number("err", a->error);
    told_str("name", a->error_name);
    told_str("text", a->error_text);
    told_number("conn", (double)a->conn);
    told_flag("cancelled", a->cancelled);
    told_flag("accepted", a->is_accepted);
    told_flag("begun", a->is_begun);
    told_flag("kept_on", a->opt.keep_on_disconnect);
    told_flag("knows_model", a->knows_model);
    told_flag("started", a->started);
    told_flag("lost", a->has_lost);
    told_flag("sse_end", a->sse_end);
    told_flag("sse_lost", a->sse_lost);
    told_flag("doc", a->doc != NULL);
    told_flag("request", a->request != NULL);
    told_flag("remote", a->remote != NULL);
    told_str("server", a->server);
    told_str("key", a->idempotency_key);
    told_str("cache", a->cache_name);
    told_str("model", a->opt.model);
    told_str("event", a->opt.event_id);
    told_str("stream", a->opt.stream_id);
    told_number("held", (double)a->memory.bytes);
    told_number("media_ms", a->media_ms);
    told_number("prompt", a->info.n_prompt_tokens);
    told_number("cached", a->cached);
    told_number("cache_n", a->timings.cache_n);
    told_number("calls", a->n_calls);
    told_number("submitted", a->submitted_ms);
    told_number("finished", a->finished_ms);
    told_number("flushed", a->last_flush_ms);
    told_number("stats", a->last_stats_ms);
    told_number("stats_version", a->stats_version);
    told_number("progress_version", a->progress_version);
    told_number("phase", a->phase);
    told_number("phase_start", a->phase_start_ms);
    told_number("processed", a->processed);
    told_number("total", a->total);
    told_number("kept_input", (double)a->n_kept_input);
    told_number("open", a->n_open);
    told_text("body", &a->body);
    told_text("edits", &a->edits);
    told_text("items", &a->opt.items);
    told_text("sse", &a->sse);
    told_text("logprobs", &a->logprobs);
    told_text("whole_logprobs", &a->whole_logprobs);
    for (size_t i = 0; i < a->pieces.n; i++) {
        bytes_printf(&told, " piece%d=%s", a->pieces.items[i].kind, bytes_str(&a->pieces.items[i].text));
    }
    for (size_t i = 0; i < a->whole.n; i++) {
        bytes_printf(&told, " whole%d=%s", a->whole.items[i].kind, bytes_str(&a->whole.items[i].text));
    }
    told_rounds(&a->tools);
    bytes_append_char(&told, '\n');
}

static inline void told_check(const char *expected)
{
    CHECK_STR(bytes_str(&told), expected);
    bytes_clear(&told);
}

#endif
