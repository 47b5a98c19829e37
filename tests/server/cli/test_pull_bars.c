/* pull_bars: what is shown of a download, on a terminal of every width and elsewhere. */
#define _GNU_SOURCE /* posix_openpt */
#include "server/cli/pull_bars.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/one_fails.h"
#include "tests/said.h"

ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)

static hub_file file = {.path = "a/model-00001-of-00002.safetensors", .size = 200 << 20};

static hub_task task(hub_phase phase, int64_t at)
{
    return (hub_task){.file = &file, .phase = phase, .at = at};
}

/* One look at one file, elsewhere than on a terminal. */
static const char *tick(pull_bars *b, hub_task t)
{
    said_begin();
    pull_bars_tick(b, &t, 1);
    said_end();
    CHECK_STR(said_out, "");
    return said_err;
}

static void test_plain(void)
{
    pull_bars b;
    said_begin();
    pull_bars_begin(&b);
    said_end();
    CHECK(!b.on_terminal && !b.bars);
    CHECK_STR(said_err, "");
    CHECK_STR(tick(&b, task(HUB_WAITING, 0)), "");
    CHECK_STR(tick(&b, task(HUB_CHECKING, 0)), "");
    CHECK_STR(tick(&b, task(HUB_FETCHING, 0)), "");
    CHECK_STR(tick(&b, task(HUB_FETCHING, (20 << 20) - 1)), "");
    CHECK_STR(tick(&b, task(HUB_FETCHING, 20 << 20)), "a/model-00001-of-00002.safetensors: 10 % of 210 MB\n");
    CHECK_STR(tick(&b, task(HUB_FETCHING, 21 << 20)), ""); /* told */
    CHECK_STR(tick(&b, task(HUB_PAUSED, 60 << 20)), "");
    CHECK_STR(tick(&b, task(HUB_FETCHING, 60 << 20)), "a/model-00001-of-00002.safetensors: 30 % of 210 MB\n");
    CHECK_STR(tick(&b, task(HUB_DONE, 200 << 20)), "a/model-00001-of-00002.safetensors: 210 MB\n");
    CHECK_STR(tick(&b, task(HUB_DONE, 200 << 20)), ""); /* once */
    said_begin();
    pull_bars_end(&b);
    said_end();
    CHECK_STR(said_err, ""); /* there was nothing to wipe */
    CHECK(!b.bars && b.n == 0);

    pull_bars_begin(&b); /* one that goes on where it broke */
    hub_task t = task(HUB_FETCHING, 100 << 20);
    t.blob.before = 1;
    CHECK_STR(tick(&b, t), "a/model-00001-of-00002.safetensors: going on behind 105 MB of 210 MB\n");
    CHECK_STR(tick(&b, t), "");
    t.at = 120 << 20;
    CHECK_STR(tick(&b, t), "a/model-00001-of-00002.safetensors: 60 % of 210 MB\n");
    pull_bars_end(&b);

    /* How long it took, and how fast that was of what came now. */
    pull_bars_begin(&b);
    CHECK_STR(tick(&b, t), "a/model-00001-of-00002.safetensors: going on behind 126 MB of 210 MB\n");
    b.bars[0].since_ms -= 2000;
    CHECK(strncmp(tick(&b, task(HUB_DONE, 200 << 20)), "a/model-00001-of-00002.safetensors: 210 MB, 4", 45) ==
          0);
    CHECK_HAS(said_err, " MB/s\n");
    pull_bars_end(&b);

    /* Tenths of large files alone; sizes in words. */
    static const struct {
        int64_t size;
        const char *shown;
        bool tells;
    } SIZES[] = {{0, "0 B", false},
                 {999, "999 B", false},
                 {1000, "1.0 kB", false},
                 {99949, "99.9 kB", false},
                 {100000, "100 kB", false},
                 {999499, "999 kB", false},
                 {999500, "1.0 MB", false},
                 {(100 << 20) - 1, "105 MB", false},
                 {100 << 20, "105 MB", true},
                 {1300000000, "1.3 GB", true},
                 {2500000000000, "2.5 TB", true},
                 {2500000000000000, "2500 TB", true}};
    for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
        char expected[128];
        hub_file one = {.path = "x", .size = SIZES[i].size};
        pull_bars_begin(&b);
        t = (hub_task){.file = &one, .phase = HUB_FETCHING, .at = SIZES[i].size / 2 + 1};
        snprintf(expected, sizeof expected, "x: 50 %% of %s\n", SIZES[i].shown);
        CHECK_STR(tick(&b, t), SIZES[i].tells ? expected : "");
        t.phase = HUB_DONE;
        snprintf(expected, sizeof expected, "x: %s\n", SIZES[i].shown);
        CHECK_STR(tick(&b, t), expected);
        pull_bars_end(&b);
    }
}

/* ---- on a terminal ---- */

static int master, slave;

/* What `n` tasks become on a terminal of so many columns. */
static const char *draw(pull_bars *b, const hub_task *tasks, size_t n, unsigned short columns)
{
    static char text[8192];
    const struct winsize size = {.ws_col = columns, .ws_row = 40};
    fflush(stderr);
    const int kept = dup(STDERR_FILENO);
    CHECK(ioctl(slave, TIOCSWINSZ, &size) == 0);
    dup2(slave, STDERR_FILENO);
    if (!b->on_terminal) {
        pull_bars_begin(b);
    }
    if (n) {
        pull_bars_tick(b, tasks, n);
    } else {
        pull_bars_end(b);
    }
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    /* What was written arrives in pieces; a sign of our own is the last of it. */
    CHECK(write(slave, "\001", 1) == 1);
    size_t got = 0, len = 0;
    while (got < sizeof text - 1 && !memchr(text, '\001', got)) {
        const ssize_t more = read(master, text + got, sizeof text - 1 - got);
        if (more <= 0) {
            break;
        }
        got += (size_t)more;
    }
    for (size_t i = 0; i + 1 < got; i++) { /* the terminal makes two of an end of a line */
        if (text[i] != '\r' || text[i + 1] != '\n') {
            text[len++] = text[i];
        }
    }
    text[len] = '\0';
    return text;
}

static void test_bars(void)
{
    static const struct {
        unsigned short columns;
        const char *shown;
    } WIDTHS[] = {
        {20, "\r\033[K 25 % 001-of-00002\n"},
        {76, "\r\033[K 25 % a/model-00001-of-00002.safetensors\n"},
        {77, "\r\033[Kl-00001-of-00002 [##........]  25 % of 210 MB\n"},
        {80, "\r\033[Kdel-00001-of-00002 [##.........]  25 % of 210 MB\n"},
        {0, "\r\033[Kdel-00001-of-00002 [##.........]  25 % of 210 MB\n"}, /* nobody knows: 80 */
    };
    hub_task t[2] = {task(HUB_FETCHING, 50 << 20), task(HUB_WAITING, 0)};
    for (size_t i = 0; i < ARRAY_LEN(WIDTHS); i++) {
        pull_bars b = {0};
        CHECK_STR(draw(&b, t, 2, WIDTHS[i].columns), WIDTHS[i].shown);
        CHECK(b.on_terminal);
        CHECK_STR(draw(&b, NULL, 0, 80), "\033[1A\r\033[J");
    }
    /* The bar grows to 30 columns, the name takes the rest. */
    pull_bars b = {0};
    const char *text = draw(&b, t, 2, 137);
    CHECK_HAS(text, "a/model-00001-of-00002.safetensors");
    CHECK_HAS(text, " [#######.......................]  25 % of 210 MB\n");
    CHECK_STR(draw(&b, NULL, 0, 80), "\033[1A\r\033[J");
    b = (pull_bars){0};
    CHECK_HAS(draw(&b, t, 2, 200), " [#######.......................]  25 % of 210 MB\n");

    /* Drawn again in place, with what is known by now. */
    b.bars[0].rate = 1.5e6;
    CHECK_HAS(
        draw(&b, t, 2, 80),
        "\033[1A\r\033[J\r\033[Kdel-00001-of-00002 [##.........]  25 % of 210 MB, 1.5 MB/s, 1:45 left\n");
    b.bars[0].rate = (double)(150 << 20) / 3600;
    CHECK_HAS(draw(&b, t, 2, 80), " 25 % of 210 MB, 43.7 kB/s, 1:00:00 left\n");
    b.bars[0].rate = (double)(150 << 20) / 3599;
    CHECK_HAS(draw(&b, t, 2, 80), " 25 % of 210 MB, 43.7 kB/s, 59:59 left\n");
    b.bars[0].rate = 3.0e4;
    CHECK_HAS(draw(&b, t, 2, 80), " 25 % of 210 MB, 30.0 kB/s, 1:27:23 left\n");
    CHECK_HAS(draw(&b, t, 2, 60), "\r\033[K 25 % 1:27:23 a/model-00001-of-00002.safetensors\n");
    t[0].phase = HUB_CHECKING;
    CHECK_HAS(draw(&b, t, 2, 80), " 25 % of 210 MB, checking what is there\n");
    CHECK_HAS(draw(&b, t, 2, 60), "\r\033[K 25 % a/model-00001-of-00002.safetensors\n");
    t[0].phase = HUB_PAUSED;
    CHECK_HAS(draw(&b, t, 2, 80), " 25 % of 210 MB, 30.0 kB/s, ");
    snprintf(t[0].wait_why, sizeof t[0].wait_why, "the hub is busy");
    t[0].until_ms = clock_ms() + 100000;
    CHECK_HAS(draw(&b, t, 2, 80), " 25 %, the hub is busy: 100 s\n");
    t[0].until_ms = 0;
    CHECK_HAS(draw(&b, t, 2, 80), " 25 %, the hub is busy: 0 s\n");
    /* Two at once; one that is done leaves a line above. */
    t[0].phase = HUB_FETCHING;
    t[1].phase = HUB_FETCHING;
    text = draw(&b, t, 2, 80);
    CHECK(strncmp(text, "\033[1A\r\033[J", 8) == 0);
    CHECK_INT(b.n_drawn, 2);
    CHECK_HAS(text, "[...........]   0 % of 210 MB\n");
    t[0].phase = HUB_DONE;
    text = draw(&b, t, 2, 80);
    CHECK(strncmp(text, "\033[2A\r\033[Ja/model-00001-of-00002.safetensors: 210 MB", 50) == 0);
    CHECK_INT(b.n_drawn, 1);
    CHECK_STR(draw(&b, NULL, 0, 80), "\033[1A\r\033[J");

    /* What is of no size is whole; a name of wide letters begins with a whole one. */
    hub_file none = {.path = "\xc3\xa4\xc3\xb6\xc3\xbc/"
                             "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc",
                     .size = 0};
    t[0] = (hub_task){.file = &none, .phase = HUB_FETCHING};
    b = (pull_bars){0};
    CHECK_HAS(draw(&b, t, 1, 80), "[###########] 100 % of 0 B\n");
    for (unsigned short columns = 22; columns <= 23; columns++) { /* and within one */
        CHECK_HAS(draw(&b, t, 1, columns),
                  "\r\033[K100 % \xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\n");
    }
    draw(&b, NULL, 0, 80);

    /* What is cut: the folder, the beginning, and of a long name its suffix. A time may leave no room at all. */
    static const struct {
        const char *path, *shown;
    } NAMES[] = {{"0123456789ab", "0123456789ab"},       {"0123456789abc", "123456789abc"},
                 {"0123456789abc.gguf", "123456789abc"}, {"folder/0123456789abc.gguf", "123456789abc"},
                 {"v1.5/0123456789abc", "123456789abc"}, {".gguf0123456789abc", ""}};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        char expected[64];
        hub_file named = {.size = 200};
        snprintf(named.path, sizeof named.path, "%s", NAMES[i].path);
        t[0] = (hub_task){.file = &named, .phase = HUB_FETCHING, .at = 100};
        b = (pull_bars){0};
        snprintf(expected, sizeof expected, "\r\033[K 50 %% %s\n", NAMES[i].shown);
        CHECK_STR(draw(&b, t, 1, 20), expected);
        b.bars[0].rate = 1e-9;
        CHECK_HAS(draw(&b, t, 1, 20), "\r\033[K 50 % 27777777:46:4\n");
        draw(&b, NULL, 0, 80);
    }

    /* More files than at first are not shown; nor is any without memory. */
    b = (pull_bars){0};
    t[0] = t[1] = task(HUB_FETCHING, 50 << 20);
    CHECK_STR(draw(&b, t, 1, 20), "\r\033[K 25 % 001-of-00002\n");
    CHECK_STR(draw(&b, t, 2, 20), "\033[1A\r\033[J\r\033[K 25 % 001-of-00002\n");
    draw(&b, NULL, 0, 80);
    b = (pull_bars){0};
    one_fails("calloc", 1);
    CHECK_STR(draw(&b, t, 1, 20), "");
    CHECK(one_fails_over() && !b.bars);
    CHECK_STR(draw(&b, t, 1, 20), "\r\033[K 25 % 001-of-00002\n");
    draw(&b, NULL, 0, 80);

    /* Too narrow: said once, then as elsewhere. */
    b = (pull_bars){0};
    t[0] = task(HUB_FETCHING, 50 << 20);
    CHECK_STR(draw(&b, t, 1, 19), "the terminal is too narrow for bars, which take 20 "
                                  "columns\na/model-00001-of-00002.safetensors: 20 % of 210 MB\n");
    CHECK_INT(b.n_drawn, 0);
    pull_bars_end(&b);
}

/* The rate is that of late: of half a second at least, a third of it new. */
static void test_rate(void)
{
    pull_bars b;
    pull_bars_begin(&b);
    tick(&b, task(HUB_FETCHING, 1000));
    CHECK_INT(b.bars[0].seen, 1000);
    CHECK_INT(b.bars[0].from, 1000);
    tick(&b, task(HUB_FETCHING, 2000));
    CHECK_INT(b.bars[0].seen, 1000); /* too soon */
    b.bars[0].seen_ms -= 100000;
    tick(&b, task(HUB_FETCHING, 1001000));
    CHECK_NEAR(b.bars[0].rate, 10000, 1000);
    CHECK_INT(b.bars[0].seen, 1001000);
    b.bars[0].seen_ms -= 100000;
    tick(&b, task(HUB_FETCHING, 3001000));
    CHECK_NEAR(b.bars[0].rate, 0.7 * 10000 + 0.3 * 20000, 2000);
    b.bars[0].seen_ms -= 100000;
    tick(&b, task(HUB_FETCHING, 3001000)); /* nothing came */
    CHECK_NEAR(b.bars[0].rate, 0.7 * (0.7 * 10000 + 0.3 * 20000), 2000);
    CHECK_INT(b.bars[0].from, 1000);
    tick(&b, task(HUB_FETCHING, 3000)); /* begun anew */
    CHECK_INT(b.bars[0].seen, 3000);
    CHECK_INT(b.bars[0].from, 3000);
    tick(&b, task(HUB_CHECKING, 4000));
    CHECK_INT(b.bars[0].seen, 4000);
    CHECK_INT(b.bars[0].from, 4000);
    CHECK_NEAR(b.bars[0].since_ms, clock_ms(), 60000);
    pull_bars_end(&b);
}

int main(void)
{
    test_plain();
    test_rate();
    master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0 &&
        (slave = open(ptsname(master), O_RDWR | O_NOCTTY)) >= 0) {
        test_bars();
    }
    CHECK_DONE();
}
