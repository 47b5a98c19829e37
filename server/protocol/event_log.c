#include "server/protocol/event_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void event_log_init(event_log *log, size_t max_bytes)
{
    memset(log, 0, sizeof *log);
    bytes_init(&log->data, max_bytes);
}

void event_log_deinit(event_log *log)
{
    bytes_deinit(&log->data);
    free(log->entries);
    memset(log, 0, sizeof *log);
}

int64_t event_log_next(const event_log *log)
{
    return log->first_seq + (int64_t)log->n;
}

/* Drops events from the front until at least `bytes` are free; a quarter at least, so that it
 * happens seldom. */
static void trim(event_log *log, size_t need)
{
    size_t goal = need > log->data.max / 4 ? need : log->data.max / 4;
    size_t drop = 0;
    while (drop < log->n && log->data.len - (log->entries[drop].offset) + goal > log->data.max) {
        drop++;
    }
    size_t cut = drop < log->n ? log->entries[drop].offset : log->data.len;
    bytes_consume(&log->data, cut);
    log->n -= drop;
    memmove(log->entries, log->entries + drop, log->n * sizeof *log->entries);
    for (size_t i = 0; i < log->n; i++) {
        log->entries[i].offset -= cut;
    }
    log->first_seq += (int64_t)drop;
}

/* The next number is given to an event that the log cannot hold, and all before it go, too: there
 * are no holes. */
void event_log_skip(event_log *log)
{
    bytes_clear(&log->data);
    log->first_seq += (int64_t)log->n + 1;
    log->n = 0;
}

void event_log_append(event_log *log, const char *type, const char *text, size_t len)
{
    if (!memory_grow(&log->entries, &log->cap, log->n + 1, 64, sizeof *log->entries)) {
        event_log_skip(log);
        return;
    }
    if (log->data.len + len > log->data.max) {
        trim(log, len);
    }
    size_t offset = log->data.len;
    bytes_append(&log->data, text, len);
    if (log->data.failed) { /* larger than the whole log, or no memory */
        event_log_skip(log);
        return;
    }
    log->entries[log->n++] = (log_entry){.type = type, .offset = offset, .len = len};
}

void event_log_close(event_log *log)
{
    log->closed = true;
}

event_log_state event_log_read(const event_log *log, int64_t seq, event_view *out)
{
    if (seq < log->first_seq) {
        return EVENT_LOG_TRIMMED;
    }
    if (seq >= event_log_next(log)) {
        return log->closed ? EVENT_LOG_END : EVENT_LOG_WAIT;
    }
    const log_entry *e = &log->entries[seq - log->first_seq];
    *out = (event_view){.type = e->type, .text = log->data.data + e->offset, .len = e->len};
    return EVENT_LOG_EVENT;
}
