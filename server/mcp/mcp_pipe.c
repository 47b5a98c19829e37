/* Messages over standard streams: a line each. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "server/mcp/mcp_state.h"

enum { READ_BYTES = 64 << 10, UNWRITTEN_BYTES = 32 << 20 };

err_code mcp_pipe_open(mcp_session *s, err_detail *d)
{
    if (!s->all->spawner) {
        return err_set(d, ERR_UNSUPPORTED, "programs cannot be started here");
    }
    bytes_deinit(&s->in);
    bytes_deinit(&s->out);
    bytes_init(&s->in, LIMIT_MCP_MESSAGE_BYTES + READ_BYTES);
    bytes_init(&s->out, UNWRITTEN_BYTES);
    s->said[0] = '\0';
    return mcp_spawner_start(s->all->spawner, s->index, &s->child, d);
}

void mcp_pipe_close(mcp_session *s)
{
    mcp_child_end(&s->child);
    bytes_deinit(&s->in);
    bytes_deinit(&s->out);
}

static void write_out(mcp_session *s)
{
    while (!s->is_failing && s->out.len > 0) {
        const ssize_t n = write(s->child.in, s->out.data, s->out.len);
        if (n > 0) {
            bytes_consume(&s->out, (size_t)n);
        } else if (errno != EINTR) {
            if (errno != EAGAIN) {
                mcp_session_fail(s, "it has closed its input%s%.200s", s->said[0] ? ": " : "", s->said);
            }
            return;
        }
    }
}

void mcp_pipe_send(mcp_session *s, const char *text, size_t len)
{
    bytes_append(&s->out, text, len);
    bytes_append_char(&s->out, '\n');
    if (s->out.failed) {
        mcp_session_fail(s, "it does not read what it is sent");
        return;
    }
    write_out(s);
}

/* Its last line of errors is what is said when it ends. */
static void read_errors(mcp_session *s)
{
    char text[4096];
    ssize_t n = -1;
    for (int i = 0; i < 16 && (n = read(s->child.errors, text, sizeof text - 1)) > 0; i++) {
        text[n] = '\0';
        char *end = text + n;
        while (end > text && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' ')) {
            *--end = '\0';
        }
        const char *line = strrchr(text, '\n');
        line = line ? line + 1 : text;
        if (line[0]) {
            bytes clean = bytes_empty(sizeof s->said + 4);
            mcp_clean_text(&clean, line, sizeof s->said - 8, false);
            snprintf(s->said, sizeof s->said, "%s", bytes_str(&clean));
            bytes_deinit(&clean);
            log_debug("mcp", "%s: %s", s->config->label, s->said);
        }
    }
    if (n == 0) {
        close(s->child.errors);
        s->child.errors = -1;
    }
}

/* Hands every whole line on. */
static void take_lines(mcp_session *s)
{
    size_t from = 0;
    const char *end;
    while (!s->is_failing && (end = memchr(bytes_str(&s->in) + from, '\n', s->in.len - from))) {
        const size_t n = (size_t)(end - s->in.data) - from;
        if (n > 1 && s->in.data[from] == '{') { /* many programs write other lines, too */
            mcp_session_read(s, NULL, s->in.data + from, n);
        }
        from += n + 1;
    }
    bytes_consume(&s->in, from);
}

static void read_in(mcp_session *s)
{
    char text[READ_BYTES];
    const ssize_t n = read(s->child.out, text, sizeof text);
    if (n > 0) {
        bytes_append(&s->in, text, (size_t)n);
        s->n_read += (size_t)n;
        take_lines(s);
        if (s->n_read > MCP_FLOOD_BYTES) {
            mcp_session_fail(s, "it sends without end");
        } else if (s->in.failed) {
            mcp_session_fail(s, "there is no memory for its message");
        } else if (s->in.len > LIMIT_MCP_MESSAGE_BYTES) {
            mcp_session_fail(s, "a message of it is longer than %zu MiB", LIMIT_MCP_MESSAGE_BYTES >> 20);
        }
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        read_errors(s);
        mcp_session_fail(s, "its program has ended%s%.200s", s->said[0] ? ": " : "", s->said);
    }
}

void mcp_pipe_ready(mcp_session *s, bool can_read, bool can_write, bool has_errors)
{
    if (has_errors) {
        read_errors(s);
    }
    if (can_write) {
        write_out(s);
    }
    if (can_read && !s->is_failing) {
        read_in(s);
    }
}
