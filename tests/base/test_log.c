/* log: levels, the form of a line, no forged lines, threads that do not mix. */
#include "base/log.h"

#include <pthread.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "tests/check.h"

static char path[] = "/tmp/parley_log_XXXXXX";
static int real_stderr;

/* Standard error goes to a fresh file until captured() gives back what was written. */
static void capture(void)
{
    fflush(stderr);
    real_stderr = dup(STDERR_FILENO);
    FILE *f = fopen(path, "w");
    dup2(fileno(f), STDERR_FILENO);
    fclose(f);
}

static void captured(bytes *out)
{
    err_detail d = {0};
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    bytes_clear(out);
    CHECK_OK(file_read(out, path, &d), d);
}

static void test_levels(bytes *out)
{
    log_level level;
    CHECK(log_parse_level("warn", &level) && level == LOG_WARN);
    CHECK(log_parse_level("off", &level) && level == LOG_OFF);
    CHECK(!log_parse_level("WARN", &level) && !log_parse_level("", &level));
    CHECK_INT(log_get_level(), LOG_INFO);
    capture();
    log_debug("srv", "hidden");
    log_info("srv", "shown %d", 1);
    log_set_level(LOG_OFF);
    log_error("srv", "hidden");
    log_set_level(LOG_DEBUG);
    log_debug("eng", "shown %d", 2);
    captured(out);
    CHECK(strstr(bytes_str(out), "hidden") == NULL);
    CHECK(strstr(bytes_str(out), "Z INFO srv shown 1\n") != NULL);
    CHECK(strstr(bytes_str(out), "Z DEBUG eng shown 2\n") != NULL);
    int y, mo, d, h, mi, s, ms;
    CHECK_INT(sscanf(bytes_str(out), "%d-%d-%dT%d:%d:%d.%dZ", &y, &mo, &d, &h, &mi, &s, &ms), 7);
}

static size_t count_lines(const bytes *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++) {
        n += b->data[i] == '\n';
    }
    return n;
}

static void test_forging(bytes *out)
{
    capture();
    log_info("srv", "name=%s", "x\n2026-01-01T00:00:00.000Z INFO srv forged\r\x1b[2J\x7f\xC2\x85 \xC3\xA9");
    captured(out);
    CHECK_INT(count_lines(out), 1);
    CHECK(strstr(bytes_str(out), "name=x\\x0a2026") != NULL);
    CHECK(strstr(bytes_str(out), "forged\\x0d\\x1b[2J\\x7f\\x85 \xC3\xA9\n") != NULL);

    char *huge = malloc(100001);
    memset(huge, '\n', 100000);
    huge[100000] = '\0';
    capture();
    log_info("srv", "%s", huge);
    captured(out);
    CHECK_INT(count_lines(out), 1);
    CHECK(out->len <= 4096 && out->data[out->len - 1] == '\n');
    free(huge);
}

static void *log_many(void *context)
{
    for (int i = 0; i < 300; i++) {
        log_info("t", "thread %d %s", *(int *)context,
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa end");
    }
    return NULL;
}

static void test_threads(bytes *out)
{
    enum { N = 4 };
    pthread_t threads[N];
    int ids[N];
    capture();
    for (int i = 0; i < N; i++) {
        ids[i] = i;
        pthread_create(&threads[i], NULL, log_many, &ids[i]);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
    }
    captured(out);
    size_t good = 0;
    for (const char *line = bytes_str(out); *line;) {
        const char *end = strchr(line, '\n');
        good += end && end - line > 60 && strncmp(end - 4, " end", 4) == 0 && strncmp(line, "20", 2) == 0;
        line = end ? end + 1 : line + strlen(line);
    }
    CHECK_INT(good, N * 300);
    CHECK_INT(count_lines(out), N * 300);
}

int main(void)
{
    bytes out;
    bytes_init(&out, 16u << 20);
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    test_levels(&out);
    test_forging(&out);
    test_threads(&out);
    bytes_deinit(&out);
    remove(path);
    CHECK_DONE();
}
