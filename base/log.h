/* log: one line per event to stderr or a file. Any thread; lines never mix.
 *
 *     log_info("srv", "req=%s 200 prompt=%d gen=%d", id, n_prompt, n_gen);
 *
 * writes
 *   2026-11-20T12:07:01.123Z INFO srv req=r_8f 200 prompt=12 gen=40
 *
 * Lines of one request begin with the same word, req=ID, wherever they come from: a thread that works
 * for one request at a time says which with log_set_request, others write it themselves.
 *
 * Control characters in the finished line are written as \xNN, so no input can forge a line. As
 * JSON the same line is {"time":"...","level":"info","area":"srv","message":"req=r_8f ...",
 * "req":"r_8f",...}; in the systemd journal, which records the time itself, <6>srv req=r_8f 200 ...
 * Never log prompt text; there are no colours.
 */
#ifndef PARLEY_BASE_LOG_H
#define PARLEY_BASE_LOG_H

#include <stdbool.h>

#include "base/err.h"

typedef enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF } log_level;

/* Lowest level that is written; LOG_INFO at start. Set before threads start. */
void log_set_level(log_level level);
log_level log_get_level(void);

/* Parses "debug", "info", "warn", "error", "off"; false for anything else. */
bool log_parse_level(const char *text, log_level *out);

typedef enum log_format { LOG_TEXT, LOG_JSON, LOG_JOURNAL } log_format;

/* LOG_TEXT at start. Set before threads start. */
void log_set_format(log_format format);

/* True if standard error goes to the systemd journal ($JOURNAL_STREAM names its device and
 * inode). */
bool log_is_journal(void);

/* Appends lines to a file from now on; it is created if missing. Before threads start. ERR_INVALID
 * with the reason. */
MUST_CHECK err_code log_open(const char *path, err_detail *detail);
/* Reopens the file by its name, for log rotation. Does nothing without log_open; the old file is
 * kept if the new one cannot be opened. */
void log_reopen(void);

/* From now on lines of this thread begin with "req=ID "; copied, cut to 63 bytes. NULL: no longer. */
void log_set_request(const char *id);

/* Writes one line. `area` is a short tag: srv, eng, load, media, ws. */
void log_write(log_level level, const char *area, const char *format, ...) PRINTF_LIKE(3, 4);

#define log_debug(area, ...) log_write(LOG_DEBUG, area, __VA_ARGS__)
#define log_info(area, ...)  log_write(LOG_INFO, area, __VA_ARGS__)
#define log_warn(area, ...)  log_write(LOG_WARN, area, __VA_ARGS__)
#define log_error(area, ...) log_write(LOG_ERROR, area, __VA_ARGS__)

#endif
