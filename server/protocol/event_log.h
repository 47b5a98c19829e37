/* event_log: the numbered events of one response, independent of any socket. Loop thread.
 *
 *     event_log log; event_log_init(&log, EVENT_LOG_BYTES);
 *     event_log_append(&log, "response.created", json, len);     // gets number event_log_next(&log)
 *     bool more = event_log_read(&log, seq, &event);
 *
 * Readers hold the number of their next event, so any number of sockets may follow, leave and
 * resume. When the limit is reached the oldest events are dropped; a reader that needs one of them
 * gets EVENT_LOG_TRIMMED. The last event may be among them, when it is larger than the log.
 */
#ifndef PARLEY_SERVER_PROTOCOL_EVENT_LOG_H
#define PARLEY_SERVER_PROTOCOL_EVENT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define EVENT_LOG_BYTES ((size_t)4 << 20)
enum { EVENT_LOG_TTL_S = 300 };

typedef struct log_entry {
    const char *type; /* constant string */
    size_t offset, len;
} log_entry;

typedef struct event_log {
    bytes data; /* the JSON texts one behind the other */
    log_entry *entries;
    size_t n, cap;
    int64_t first_seq; /* number of entries[0] */
    bool closed;       /* the terminal event is in */
} event_log;

typedef enum event_log_state {
    EVENT_LOG_EVENT,  /* the event was read */
    EVENT_LOG_WAIT,   /* not there yet */
    EVENT_LOG_END,    /* behind the terminal event */
    EVENT_LOG_TRIMMED /* no longer there */
} event_log_state;

typedef struct event_view {
    const char *type;
    const char *text; /* valid until the next append */
    size_t len;
} event_view;

void event_log_init(event_log *log, size_t max_bytes);
void event_log_deinit(event_log *log);
/* The number the next event gets. */
int64_t event_log_next(const event_log *log);
/* One that does not fit, or finds no memory, is skipped. */
void event_log_append(event_log *log, const char *type, const char *text, size_t len);
/* Gives the next number to an event that could not be made; readers find it, and all before it,
 * trimmed. */
void event_log_skip(event_log *log);
/* No event follows. */
void event_log_close(event_log *log);
event_log_state event_log_read(const event_log *log, int64_t seq, event_view *out);

#endif
