/* net_unread: who takes what is sent, and who does not, by what the kernel says; the kernel is the test. */
#include "server/net/net_unread.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "tests/check.h"

enum { FD = 77 };

/* What the kernel says: bytes on their way, and bytes that were taken; -1: it does not. */
static int waiting;
static int64_t taken;
static bool is_old; /* a kernel that does not count what was taken */

int __wrap_ioctl(int fd, unsigned long what, ...);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *n);

int __wrap_ioctl(int fd, unsigned long what, ...)
{
    va_list args;
    va_start(args, what);
    int *out = va_arg(args, int *);
    va_end(args);
    CHECK(fd == FD && what == SIOCOUTQ);
    *out = waiting == -1 ? 50 : waiting;
    return waiting == -1 ? -1 : 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *n)
{
    CHECK(fd == FD && level == IPPROTO_TCP && name == TCP_INFO && *n == sizeof(struct tcp_info));
    struct tcp_info info = {.tcpi_bytes_acked = (uint64_t)taken};
    memcpy(value, &info, sizeof info);
    const size_t counted = offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked;
    *n = (socklen_t)(is_old ? counted - 1 : counted);
    return taken < 0 ? -1 : 0;
}

typedef struct look {
    double at_s; /* since the begin, which is at 1 s */
    int waiting;
    int64_t taken;
    bool has_more, is_stalled;
    double since_s; /* from when on it is watched then; 0: it is not */
    int64_t from,
        wanted; /* what had been taken then, and where that ends which was on its way; -1: nowhere */
} look;

static void check(const look *looks, size_t n, int timeout_s, size_t rate)
{
    net_unread u = {0};
    for (size_t i = 0; i < n; i++) {
        const look *l = &looks[i];
        waiting = l->waiting;
        taken = l->taken;
        const int64_t now = (int64_t)((1.0 + l->at_s) * 1e9);
        const bool is_stalled = net_unread_look(&u, FD, 1000, l->has_more, now, timeout_s, rate);
        if (is_stalled != l->is_stalled) {
            fprintf(stderr, "look %zu\n", i);
        }
        CHECK_INT(is_stalled, l->is_stalled);
        CHECK_INT(u.since_ns, (int64_t)(l->since_s * 1e9));
        if (l->since_s > 0) {
            CHECK_INT(u.taken, l->from);
            CHECK_INT((int64_t)u.wanted, l->wanted);
        }
    }
}

#define CHECK_LOOKS(looks, timeout_s, rate) check(looks, sizeof(looks) / sizeof *(looks), timeout_s, rate)

/* 30 s for 10 bytes a second. */
static void test_share(void)
{
    static const look SLOW[] = {
        {0, 500, 100, true, false, 1, 100, -1},
        {29.5, 500, 100, true, false, 1, 100, -1},
        {30, 500, 400, true, false, 31, 400, -1}, /* its share to the byte */
        {60, 500, 699, true, true, 31, 400, -1},  /* a byte less */
    };
    static const look LATE[] = {
        /* a longer wait is a larger share */
        {0, 500, 100, true, false, 1, 100, -1},
        {59, 500, 689, true, true, 1, 100, -1},
        {59, 500, 690, true, false, 60, 690, -1},
    };
    static const look END[] = {
        /* what was on its way when they began is enough */
        {0, 50, 100, false, false, 1, 100, 150},   {30, 50, 149, false, true, 1, 100, 150},
        {30, 50, 150, false, false, 31, 150, 200}, {40, 0, 200, false, false, 0, 0, 0},
        {50, 7, 200, true, false, 51, 200, -1}, /* from here on anew */
        {79, 7, 200, true, false, 51, 200, -1},    {80, 7, 200, true, true, 51, 200, -1},
    };
    static const look UNKNOWN[] = {
        {0, 500, 100, true, false, 1, 100, -1},
        {10, -1, 100, true, false, 0, 0, 0},
        {20, -7, 100, true, false, 0, 0, 0},
        {30, 500, 100, true, false, 31, 100, -1},
    };
    CHECK_LOOKS(SLOW, 30, 10);
    CHECK_LOOKS(LATE, 30, 10);
    CHECK_LOOKS(END, 30, 10);
    CHECK_LOOKS(UNKNOWN, 30, 10);
}

/* Any byte will do. */
static void test_any(void)
{
    static const look ANY[] = {
        {0, 500, 100, true, false, 1, 100, -1},
        {30, 500, 101, true, false, 31, 101, -1},
        {60, 500, 101, true, true, 31, 101, -1},
    };
    CHECK_LOOKS(ANY, 30, 0);
}

/* Where the kernel does not count what was taken, it is what was sent without what is on its way. */
static void test_uncounted(void)
{
    static const look FILES[] = {
        {0, 900, -1, true, false, 1, 100, -1},
        {30, 899, -1, true, false, 31, 101, -1},
        {60, 899, -1, true, true, 31, 101, -1},
    };
    static const look ALL[] = {{0, 1000, -1, false, false, 1, 0, 1000},
                               {30, 2000, -1, false, true, 1, 0, 1000}};
    CHECK_LOOKS(FILES, 30, 0);
    CHECK_LOOKS(ALL, 30, 0);
    is_old = true;
    static const look OLD[] = {{0, 900, 5, true, false, 1, 100, -1}};
    CHECK_LOOKS(OLD, 30, 0);
    is_old = false;
    static const look NEW[] = {{0, 900, 5, true, false, 1, 5, -1}};
    CHECK_LOOKS(NEW, 30, 0);
}

int main(void)
{
    test_share();
    test_any();
    test_uncounted();
    CHECK_DONE();
}
