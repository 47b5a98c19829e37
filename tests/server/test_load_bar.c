/* load_bar: what a terminal shows for each share and time, and that nothing is written where there is none. */
#include "server/load_bar.h"

#include "tests/said.h"

static bool is_terminal = true;
static double now_ms = 5000.0;

int __wrap_isatty(int fd);
double __wrap_clock_ms(void);

int __wrap_isatty(int fd)
{
    CHECK_INT(fd, STDERR_FILENO);
    return is_terminal;
}

double __wrap_clock_ms(void)
{
    return now_ms;
}

#define FULL "################################"
#define NONE "................................"

static void test_shows(void)
{
    static const struct {
        double took_ms, fraction;
        int n;
        const char *behind;
    } CASES[] = {
        {0, 0.0, 0, "   0 %  weights"},
        {0, -0.5, 0, "   0 %  weights"},
        {0, 0.5, 16, "  50 %  weights"},
        {1000, 0.5, 16, "  50 %  weights"},
        {1001, 0.5, 16, "  50 %  weights, 1 s left"},
        {9000, 0.05, 1, "   5 %  weights"},
        {9000, 0.0625, 2, "   6 %  weights, 135 s left"},
        {9000, 0.25, 8, "  25 %  weights, 27 s left"},
        {9000, 0.99, 31, "  99 %  weights, 0 s left"},
        {9000, 1.0, 32, " 100 %  weights, 0 s left"},
        {9000, 1.5, 32, " 100 %  weights, 0 s left"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        load_bar bar;
        char want[200];
        const double began = now_ms;
        load_bar_begin(&bar);
        now_ms += CASES[i].took_ms;
        said_begin();
        load_bar_on_load(&bar, "weights", CASES[i].fraction);
        said_end();
        snprintf(want, sizeof want, "\r\033[K[%.*s%.*s]%s\r", CASES[i].n, FULL, 32 - CASES[i].n, NONE,
                 CASES[i].behind);
        CHECK_STR(said_err, want);
        CHECK_STR(said_out, "");
        now_ms = began;
    }
}

/* It is erased once, and shows nothing more. */
static void test_end(void)
{
    load_bar bar;
    load_bar_begin(&bar);
    for (int i = 0; i < 2; i++) {
        said_begin();
        load_bar_end(&bar);
        load_bar_show(&bar, "weights", 0.5);
        said_end();
        CHECK_STR(said_err, i == 0 ? "\r\033[K" : "");
    }
    is_terminal = false;
    load_bar_begin(&bar);
    said_begin();
    load_bar_show(&bar, "weights", 0.5);
    load_bar_end(&bar);
    said_end();
    CHECK_STR(said_err, "");
}

int main(void)
{
    test_shows();
    test_end();
    CHECK_DONE();
}
