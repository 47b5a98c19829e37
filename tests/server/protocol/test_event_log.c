/* event_log: numbers without gaps, trimming, the end. */
#include "server/protocol/event_log.h"

#include "tests/check.h"

static void add(event_log *log, const char *text)
{
    event_log_append(log, "t", text, strlen(text));
}

static void test_order(void)
{
    event_log log;
    event_view v;
    event_log_init(&log, 1000);
    CHECK_INT(event_log_read(&log, 0, &v), EVENT_LOG_WAIT);
    add(&log, "zero");
    add(&log, "one");
    CHECK_INT(event_log_next(&log), 2);
    CHECK_INT(event_log_read(&log, 1, &v), EVENT_LOG_EVENT);
    CHECK_INT(v.len, 3);
    CHECK(memcmp(v.text, "one", 3) == 0);
    CHECK_INT(event_log_read(&log, 2, &v), EVENT_LOG_WAIT);
    event_log_close(&log);
    CHECK_INT(event_log_read(&log, 2, &v), EVENT_LOG_END);
    CHECK_INT(event_log_read(&log, 0, &v), EVENT_LOG_EVENT);
    CHECK_INT(event_log_read(&log, -1, &v), EVENT_LOG_TRIMMED);
    event_log_deinit(&log);
}

static void test_trim(void)
{
    event_log log;
    event_view v;
    event_log_init(&log, 1000);
    for (int i = 0; i < 500; i++) {
        char text[32];
        snprintf(text, sizeof text, "event %d", i);
        add(&log, text);
        CHECK_INT(event_log_next(&log), i + 1);
        CHECK_INT(event_log_read(&log, i, &v), EVENT_LOG_EVENT);
        CHECK(v.len == strlen(text) && memcmp(v.text, text, v.len) == 0);
        CHECK(log.data.len <= 1000);
    }
    CHECK_INT(event_log_read(&log, 0, &v), EVENT_LOG_TRIMMED);
    CHECK_INT(event_log_read(&log, log.first_seq, &v), EVENT_LOG_EVENT);
    CHECK_INT(event_log_read(&log, log.first_seq - 1, &v), EVENT_LOG_TRIMMED);
    CHECK(500 - log.first_seq > 60); /* no more is dropped than is needed */
    event_log_deinit(&log);
}

static void test_huge(void)
{
    event_log log;
    event_view v;
    char text[200];
    memset(text, 'x', sizeof text);
    event_log_init(&log, 100);
    add(&log, "small");
    event_log_append(&log, "t", text, sizeof text);
    CHECK_INT(event_log_next(&log), 2);
    CHECK_INT(event_log_read(&log, 1, &v), EVENT_LOG_TRIMMED);
    add(&log, "after");
    CHECK_INT(event_log_read(&log, 2, &v), EVENT_LOG_EVENT);
    CHECK(v.len == 5 && memcmp(v.text, "after", 5) == 0);
    event_log_deinit(&log);
}

int main(void)
{
    test_order();
    test_trim();
    test_huge();
    CHECK_DONE();
}
