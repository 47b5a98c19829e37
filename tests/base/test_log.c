/* log: levels, the forms of a line, no forged lines, threads that do not mix, files that are
 * rotated. */
#include "base/log.h"

#include <pthread.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "tests/check.h"
#include "tests/open_files.h"

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
    capture();
    log_write(LOG_OFF, "srv", "no level of a line");
    log_write((log_level)(LOG_OFF + 1), "srv", "nor this");
    log_set_level(LOG_ERROR);
    log_error("srv", "the last");
    log_warn("srv", "hidden");
    log_set_level(LOG_DEBUG);
    bytes last = bytes_empty(1 << 16);
    captured(&last);
    CHECK(last.len > 0 && strcmp(strchr(bytes_str(&last), 'Z'), "Z ERROR srv the last\n") == 0);
    bytes_deinit(&last);
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

    capture(); /* what begins as a control character of two bytes and is none */
    log_info("srv", "a\xC2\x7F b\xC2\x80 c\xC2\x9F d\xC2\xA0 e\xC2z f\xC2");
    captured(out);
    CHECK(strstr(bytes_str(out), " a\xC2\\x7f b\\x80 c\\x9f d\xC2\xA0 e\xC2z f\xC2\n") != NULL);

    /* An area that fills the line leaves no room for a message; one that leaves some is followed by as much as fits. */
    for (int n = 4060; n < 4110; n++) {
        static char area[4200];
        memset(area, 'a', sizeof area);
        area[n] = '\0';
        capture();
        log_info(area, "%s", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
        captured(out);
        const char *said = strchr(bytes_str(out), 'a');
        CHECK_INT(out->len, 4096);
        const size_t n_area = strspn(said, "a"), n_message = strspn(said + n_area + 1, "b");
        CHECK_INT(n_area,
                  n < 4064 ? n : 4064); /* 30 of the line's bytes are its time and level, and two an end */
        CHECK_STR(said + n_area + 1 + n_message, "\n");
        CHECK_INT(said[n_area], ' ');
    }

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

static void test_json(bytes *out)
{
    capture();
    log_set_format(LOG_JSON);
    log_warn("srv", "a \"quoted\" word\nand \\ \xC3\xA9 \xFF");
    log_set_format(LOG_TEXT);
    captured(out);
    CHECK_INT(count_lines(out), 1);
    json_doc *doc = NULL;
    err_detail d = {0};
    CHECK_OK(json_parse(&doc, out->data, out->len, 4, &d), d);
    const json *root = json_root(doc);
    CHECK_STR(json_str(json_get(root, "level"), ""), "warn");
    CHECK_STR(json_str(json_get(root, "area"), ""), "srv");
    CHECK_STR(json_str(json_get(root, "message"), ""), "a \"quoted\" word\nand \\ \xC3\xA9 \xEF\xBF\xBD");
    CHECK_INT(strlen(json_str(json_get(root, "time"), "")), strlen("2026-11-20T12:07:01.123Z"));
    json_free(doc);

    /* Words key=value are members too; what would be twice, what is no name and what has no value
     * is not. */
    capture();
    log_set_format(LOG_JSON);
    log_warn("srv", "req=r_1 GET /x?a=b 200 prompt=1432 (cached 1200) ttft=3.2s n=-0.5 big=1e99 level=debug "
                    "req=r_2 empty= =7 A=1");
    log_set_format(LOG_TEXT);
    captured(out);
    CHECK_OK(json_parse(&doc, out->data, out->len, 4, &d), d);
    root = json_root(doc);
    CHECK_STR(json_str(json_get(root, "req"), ""), "r_1");
    CHECK_STR(json_str(json_get(root, "ttft"), ""), "3.2s");
    CHECK_STR(json_str(json_get(root, "big"), ""), "1e99");
    CHECK_STR(json_str(json_get(root, "level"), ""), "warn");
    CHECK_NEAR(json_num(json_get(root, "prompt"), 0), 1432, 0);
    CHECK_NEAR(json_num(json_get(root, "n"), 0), -0.5, 0);
    CHECK_INT(json_len(root), 4 + 5);
    json_free(doc);

    /* A number is one from its begin to its end, and has an end. */
    capture();
    log_set_format(LOG_JSON);
    char nines[401];
    memset(nines, '9', 400);
    nines[400] = '\0';
    log_warn("srv", "a=1-2 b=1.2.3 c=- d=%s e=-7 f=.5 g=1.", nines);
    log_set_format(LOG_TEXT);
    captured(out);
    CHECK_OK(json_parse(&doc, out->data, out->len, 4, &d), d);
    root = json_root(doc);
    CHECK_STR(json_str(json_get(root, "a"), ""), "1-2");
    CHECK_STR(json_str(json_get(root, "b"), ""), "1.2.3");
    CHECK_STR(json_str(json_get(root, "c"), ""), "-");
    CHECK_STR(json_str(json_get(root, "d"), ""), nines);
    CHECK_NEAR(json_num(json_get(root, "e"), 0), -7, 0);
    CHECK_NEAR(json_num(json_get(root, "f"), 0), 0.5, 0);
    CHECK_NEAR(json_num(json_get(root, "g"), 0), 1, 0);
    json_free(doc);

    /* A line that would be longer than a line may be is none. */
    static char long_value[2001];
    memset(long_value, 1, 2000);
    capture();
    log_set_format(LOG_JSON);
    log_warn("srv", "a=%s", long_value);
    log_warn("srv", "a=%.200s", long_value);
    log_set_format(LOG_TEXT);
    captured(out);
    CHECK_INT(count_lines(out), 1);
    CHECK(out->len > 2 * 6 * 200 && out->len < 3 * 6 * 200);

    /* None of the words that every line has; a line said twice has the same members, and there are at most 20. */
    static const struct {
        const char *said;
        size_t n;
    } cases[] = {{"time=1 area=2 message=3 level=4 timer=5", 5},
                 {"a=1 b=2 c=3", 7},
                 {"a=1 b=2 c=3", 7},
                 {"a=x b=x c=x d=x e=x f=x g=x h=x i=x j=x k=x l=x m=x n=x o=x p=x q=x r=x s=x t=x", 24},
                 {"a=x b=x c=x d=x e=x f=x g=x h=x i=x j=x k=x l=x m=x n=x o=x p=x q=x r=x s=x t=x u=x", 24}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        capture();
        log_set_format(LOG_JSON);
        log_warn("srv", "%s", cases[i].said);
        log_set_format(LOG_TEXT);
        captured(out);
        CHECK_OK(json_parse(&doc, out->data, out->len, 4, &d), d);
        CHECK_INT(json_len(json_root(doc)), cases[i].n);
        CHECK_STR(json_str(json_get(json_root(doc), "message"), ""), cases[i].said);
        json_free(doc);
    }
}

/* The longest message, with the name of a request in front of it; and the longest line of JSON. */
static void test_longest(bytes *out)
{
    enum { N_ESCAPED = 1350, MOST = 16384 };
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int has_request = 0; has_request < 2; has_request++) {
        capture();
        log_set_request(has_request ? "r_1234" : NULL);
        log_info("srv", "%s", text);
        log_set_request(NULL);
        captured(out);
        const char *said = strstr(bytes_str(out), has_request ? "srv req=r_1234 x" : "srv x");
        CHECK(said && strlen(said) == 4 + 2047 + 1);
    }
    size_t first = 0;
    for (int n = 0; n < 200; n++) { /* each makes the line longer by one */
        memset(text, 1, N_ESCAPED);
        memset(text + N_ESCAPED, 'x', (size_t)n);
        text[N_ESCAPED] = n ? ' ' : '\0';
        text[N_ESCAPED + n] = '\0';
        capture();
        log_set_format(LOG_JSON);
        log_warn("srv", "a=%s", text);
        log_set_format(LOG_TEXT);
        captured(out);
        first = n == 0 ? out->len : first;
        CHECK_INT(out->len, first + (size_t)n <= MOST ? first + (size_t)n : 0);
    }
    CHECK(first > MOST - 200 && first < MOST);
}

static void test_journal(bytes *out)
{
    struct stat st;
    char here[64];
    capture();
    unsetenv("JOURNAL_STREAM");
    CHECK(!log_is_journal());
    CHECK(fstat(STDERR_FILENO, &st) == 0);
    snprintf(here, sizeof here, "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", here, 1);
    CHECK(log_is_journal());
    const int kept = dup(STDERR_FILENO);
    close(STDERR_FILENO); /* there is no standard error */
    CHECK(!log_is_journal());
    dup2(kept, STDERR_FILENO);
    close(kept);
    CHECK(log_is_journal());
    setenv("JOURNAL_STREAM", "8:1", 1);
    CHECK(!log_is_journal());
    log_set_format(LOG_JOURNAL);
    log_info("srv", "one");
    log_set_request("r_1");
    log_error("eng", "two");
    log_set_request(NULL);
    log_info("srv", "three");
    log_set_format(LOG_TEXT);
    captured(out);
    CHECK_STR(bytes_str(out), "<6>srv one\n<3>eng req=r_1 two\n<6>srv three\n");
    char id[200];
    memset(id, 'r', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    capture();
    log_set_request(id); /* 63 bytes of it are kept */
    log_info("srv", "four");
    log_set_request(NULL);
    captured(out);
    const char *said = strstr(bytes_str(out), "req=");
    CHECK(said != NULL);
    CHECK_INT(said ? strspn(said + 4, "r") : 0, 63);
}

/* Last: from here on standard error gets no lines. */
static void test_file(bytes *out)
{
    static char name[] = "/tmp/parley_log_file_XXXXXX";
    char moved[64];
    err_detail d = {0};
    for (size_t n = 4095; n <= 4096; n++) {
        char longest[4097];
        memset(longest, 'x', n);
        longest[n] = '\0';
        CHECK_INT(log_open(longest, &d), ERR_INVALID);
        CHECK(strstr(d.text, "the name of the log file is longer than 4095 bytes") != NULL || n < 4096);
        CHECK(strstr(d.text, "is longer than") == NULL || n > 4095);
    }
    CHECK_INT(log_open("/nowhere/at/all", &d), ERR_INVALID);
    CHECK(strstr(d.text, "/nowhere/at/all") != NULL);
    int fd = mkstemp(name);
    CHECK(fd >= 0);
    close(fd);
    CHECK_OK(log_open(name, &d), d);
    log_info("srv", "first");
    snprintf(moved, sizeof moved, "%s.1", name);
    CHECK(rename(name, moved) == 0);
    log_info("srv", "second");
    const size_t n_open = open_files();
    log_reopen();
    CHECK_INT(open_files(), n_open);
    log_info("srv", "third");
    bytes_clear(out);
    CHECK_OK(file_read(out, moved, &d), d);
    CHECK(strstr(bytes_str(out), "first") && strstr(bytes_str(out), "second") && count_lines(out) == 2);
    bytes_clear(out);
    CHECK_OK(file_read(out, name, &d), d);
    CHECK(strstr(bytes_str(out), "third") && count_lines(out) == 1);
    remove(name);
    remove(moved);
    /* Where it cannot be opened again, the file that is open gets a line which says so; however short its name. */
    static const char *const names[] = {"l", "logfile"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char folder[] = "/tmp/parley_log_folder_XXXXXX";
        CHECK(mkdtemp(folder) && chdir(folder) == 0);
        CHECK_OK(log_open(names[i], &d), d);
        CHECK(rename(names[i], moved) == 0 && rmdir(folder) == 0);
        log_reopen();
        bytes_clear(out);
        CHECK_OK(file_read(out, moved, &d), d);
        CHECK(strstr(bytes_str(out), "WARN log the log file cannot be opened again: ") &&
              count_lines(out) == 1);
        remove(moved);
    }
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
    test_json(&out);
    test_longest(&out);
    test_journal(&out);
    test_file(&out);
    bytes_deinit(&out);
    remove(path);
    CHECK_DONE();
}
