#define _GNU_SOURCE /* dup3 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"

enum {
    LINE_MAX_BYTES = 4096,
    MESSAGE_MAX_BYTES = 2048,
    JSON_MAX_BYTES = 16384,
    TIME_BYTES = 64,
    FIELDS_MAX = 24,
    REQUEST_BYTES = 64,
    PATH_BYTES = 4096
};

/* Relaxed everywhere: a level change needs no order with other memory. */
static _Atomic int current_level = LOG_INFO;

/* Set before threads start. */
static log_format current_format = LOG_TEXT;
static int current_fd = STDERR_FILENO;
static char current_path[PATH_BYTES]; /* "" for standard error */

static _Thread_local char current_request[REQUEST_BYTES]; /* "": the thread works for none */

static const char *const LEVEL_WORDS[] = {"debug", "info", "warn", "error", "off"};
static const char *const LEVEL_NAMES[] = {"DEBUG", "INFO", "WARN", "ERROR"};

void log_set_level(log_level level)
{
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

log_level log_get_level(void)
{
    return (log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

bool log_parse_level(const char *text, log_level *out)
{
    for (size_t i = 0; i < ARRAY_LEN(LEVEL_WORDS); i++) {
        if (strcmp(text, LEVEL_WORDS[i]) == 0) {
            *out = (log_level)i;
            return true;
        }
    }
    return false;
}

void log_set_request(const char *id)
{
    snprintf(current_request, sizeof current_request, "%s", id ? id : "");
}

void log_set_format(log_format format)
{
    current_format = format;
}

bool log_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    char here[64];
    if (!stream || fstat(STDERR_FILENO, &st) != 0) {
        return false;
    }
    snprintf(here, sizeof here, "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    return strcmp(here, stream) == 0;
}

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
}

err_code log_open(const char *path, err_detail *detail)
{
    if (strlen(path) >= sizeof current_path) {
        return err_set(detail, ERR_INVALID, "the name of the log file is longer than %d bytes",
                       PATH_BYTES - 1);
    }
    const int fd = open_file(path);
    if (fd < 0) {
        return err_set(detail, ERR_INVALID, "the log file %s cannot be opened: %s", path, strerror(errno));
    }
    snprintf(current_path, sizeof current_path, "%s", path);
    current_fd = fd;
    return ERR_OK;
}

void log_reopen(void)
{
    const int fd = current_path[0] ? open_file(current_path) : -1;
    if (fd >= 0) {
        /* The number stays, so that other threads need not be told. */
        dup3(fd, current_fd, O_CLOEXEC);
        close(fd);
    } else if (current_path[0]) {
        log_warn("log", "the log file cannot be opened again: %s", strerror(errno));
    }
}

/* Copies text to out[0..cap) with control characters as \xNN, so that no message holds a line
 * break. Returns the bytes written; a piece that does not fit ends the copy. C1 controls come as C2
 * 80..9F. */
static size_t escape(char *out, size_t cap, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    for (size_t i = 0; text[i]; i++) {
        unsigned char c = (unsigned char)text[i];
        unsigned char next = (unsigned char)text[i + 1];
        bool c1 = c == 0xC2 && next >= 0x80 && next <= 0x9F;
        if (c >= 0x20 && c != 0x7F && !c1) {
            if (n + 1 > cap) {
                break;
            }
            out[n++] = (char)c;
            continue;
        }
        if (n + 4 > cap) {
            break;
        }
        if (c1) {
            c = next;
            i++;
        }
        out[n++] = '\\';
        out[n++] = 'x';
        out[n++] = digits[c >> 4];
        out[n++] = digits[c & 15];
    }
    return n;
}

/* "2026-11-20T12:07:01.123Z" */
static size_t write_time(char *out, size_t cap)
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t n = strftime(out, cap, "%Y-%m-%dT%H:%M:%S", &utc);
    return n + (size_t)snprintf(out + n, cap - n, ".%03dZ", (int)(now.tv_nsec / 1000000));
}

/* One write a line: lines of several threads never mix. A lost log line is not an error. */
static void write_line(const char *line, size_t n)
{
    ssize_t written = write(current_fd, line, n);
    (void)written;
}

static void write_text(log_level level, const char *area, const char *message)
{
    static const int PRIORITIES[] = {7, 6, 4, 3}; /* of syslog */
    char line[LINE_MAX_BYTES];
    size_t n;
    if (current_format == LOG_JOURNAL) {
        n = (size_t)snprintf(line, sizeof line, "<%d>", PRIORITIES[level]);
    } else {
        n = write_time(line, sizeof line);
        n += (size_t)snprintf(line + n, sizeof line - n, " %s ", LEVEL_NAMES[level]);
    }
    n += escape(line + n, sizeof line - n - 2, area);
    line[n++] = ' ';
    n += escape(line + n, sizeof line - n - 1, message);
    line[n++] = '\n';
    write_line(line, n);
}

/* The words `key=value` of a message as members of their own, the first of each name; a number
 * stays one. */
static void append_fields(bytes *line, const char *message)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_", digits[] = "-.0123456789";
    static const char *const taken[] = {"time", "level", "area", "message"};
    struct {
        const char *name;
        size_t len;
    } seen[FIELDS_MAX];
    size_t n_seen = 0;
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        seen[n_seen].name = taken[i];
        seen[n_seen++].len = strlen(taken[i]);
    }
    for (const char *word = message; *word && n_seen < FIELDS_MAX; word += strspn(word, " ")) {
        const size_t n_word = strcspn(word, " "), n_name = strspn(word, letters);
        bool is_field = n_name > 0 && n_name + 1 < n_word && word[n_name] == '=';
        for (size_t i = 0; i < n_seen; i++) {
            is_field &= seen[i].len != n_name || memcmp(seen[i].name, word, n_name) != 0;
        }
        if (is_field) {
            const char *value = word + n_name + 1;
            const size_t n_value = n_word - n_name - 1;
            char *end = NULL;
            const double number = strtod(value, &end);
            const bool is_number =
                strspn(value, digits) == n_value && isfinite(number) && end == value + n_value;
            bytes_printf(line, ",\"%.*s\":", (int)n_name, word);
            if (is_number) {
                bytes_printf(line, "%.17g", number);
            } else {
                bytes_append_json(line, value, n_value);
            }
            seen[n_seen].name = word;
            seen[n_seen++].len = n_name;
        }
        word += n_word;
    }
}

static void write_json(log_level level, const char *area, const char *message)
{
    char time[TIME_BYTES];
    bytes line;
    write_time(time, sizeof time);
    bytes_init(&line, JSON_MAX_BYTES);
    bytes_printf(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"area\":", time, LEVEL_WORDS[level]);
    bytes_append_json(&line, area, strlen(area));
    bytes_append_str(&line, ",\"message\":");
    bytes_append_json(&line, message, strlen(message));
    append_fields(&line, message);
    bytes_append_str(&line, "}\n");
    if (!line.failed) {
        write_line(line.data, line.len);
    }
    bytes_deinit(&line);
}

void log_write(log_level level, const char *area, const char *format, ...)
{
    if (level < log_get_level() || level >= LOG_OFF) {
        return;
    }
    char message[MESSAGE_MAX_BYTES];
    const char *id = current_request;
    const int n = snprintf(message, sizeof message, id[0] ? "req=%s " : "", id);
    va_list args;
    va_start(args, format);
    vsnprintf(message + n, sizeof message - (size_t)n, format, args);
    va_end(args);
    if (current_format == LOG_JSON) {
        write_json(level, area, message);
    } else {
        write_text(level, area, message);
    }
}
