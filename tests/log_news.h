/* log_news: what was logged since a test last asked.
 *
 *     log_news_open(path);                             // the log goes to this file from now on
 *     for (char *line = log_news(), *end; (end = strchr(line, '\n')); line = end + 1) {
 *         *end = '\0';
 *     }
 *     close(log_news_fd);
 */
#ifndef PARLEY_TESTS_LOG_NEWS_H
#define PARLEY_TESTS_LOG_NEWS_H

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/check.h"

static int log_news_fd;
static off_t log_news_at; /* what was told of it */

static inline void log_news_open(const char *path)
{
    err_detail d = {0};
    CHECK_OK(log_open(path, &d), d);
    log_news_fd = open(path, O_RDONLY);
    CHECK(log_news_fd >= 0);
}

/* Valid until the next call, and may be changed; 8191 bytes at most. */
static inline char *log_news(void)
{
    static char text[8192];
    const ssize_t n = pread(log_news_fd, text, sizeof text - 1, log_news_at);
    text[n > 0 ? n : 0] = '\0';
    log_news_at += n > 0 ? n : 0;
    return text;
}

#endif
