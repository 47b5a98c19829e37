/* remote_host: which addresses are public, in every notation, and which hosts the rules name. */
#include "server/media/remote_host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "base/compiler.h"
#include "tests/check.h"

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} any_address;

static any_address address_of(const char *text)
{
    any_address a = {0};
    if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1) {
        a.v4.sin_family = AF_INET;
    } else {
        CHECK_INT(inet_pton(AF_INET6, text, &a.v6.sin6_addr), 1);
        a.v6.sin6_family = AF_INET6;
    }
    return a;
}

static bool is_public(const char *text)
{
    const any_address a = address_of(text);
    return remote_address_is_public(&a.any);
}

static void test_addresses(void)
{
    static const char *const PUBLIC[] = {
        "1.1.1.1",         "8.8.8.8",        "9.255.255.255",        "11.0.0.0",
        "100.63.255.255",  "100.128.0.0",    "126.255.255.255",      "128.0.0.1",
        "169.253.255.255", "169.255.0.0",    "172.15.255.255",       "172.32.0.0",
        "192.0.1.0",       "192.0.3.0",      "192.88.98.255",        "192.167.255.255",
        "192.169.0.0",     "198.17.255.255", "198.20.0.0",           "203.0.114.0",
        "223.255.255.255", "2001:200::1",    "2606:4700:4700::1111", "2a00:1450:4001::1",
        "3fff:1000::1",    "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",     "2001:4860:4860::8888",
    };
    static const char *const CLOSED[] = {
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::8.8.8.8",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:0:8.8.8.8",
        "64:ff9b::127.0.0.1",
        "64:ff9b::10.1.1.1",
        "64:ff9b:1::8.8.8.8",
        "100::1",
        "2001::1",
        "2001:1ff::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::1",
        "3fff::1",
        "4000::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
    };
    /* The last of each block, and what lies in front of it and behind it. */
    static const struct {
        const char *before, *first, *last, *behind;
    } BLOCKS[] = {{NULL, "0.0.0.0", "0.255.255.255", "1.0.0.0"},
                  {"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"},
                  {"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"},
                  {"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"},
                  {"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"},
                  {"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"},
                  {"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"},
                  {"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"},
                  {"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"},
                  {"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"},
                  {"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"},
                  {"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"},
                  {"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"},
                  {"223.255.255.255", "224.0.0.0", "255.255.255.255", NULL},
                  {NULL, "2001::", "2001:1ff:ffff::", "2001:200::"},
                  {"2001:db7:ffff::", "2001:db8::", "2001:db8:ffff:ffff::", "2001:db9::"},
                  {"2001:ffff:ffff::", "2002::", "2002:ffff:ffff::", "2003::"},
                  {"3ffe:ffff:ffff::", "3fff::", "3fff:fff:ffff::", "3fff:1000::"},
                  {"3fff:ffff:ffff::", "4000::", "ffff::", NULL}};
    for (size_t i = 0; i < ARRAY_LEN(BLOCKS); i++) {
        if ((BLOCKS[i].before && !is_public(BLOCKS[i].before)) || is_public(BLOCKS[i].first) ||
            is_public(BLOCKS[i].last) || (BLOCKS[i].behind && !is_public(BLOCKS[i].behind))) {
            check_fail(__FILE__, __LINE__, BLOCKS[i].first);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(PUBLIC); i++) {
        if (!is_public(PUBLIC[i])) {
            check_fail(__FILE__, __LINE__, PUBLIC[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(CLOSED); i++) {
        if (is_public(CLOSED[i])) {
            check_fail(__FILE__, __LINE__, CLOSED[i]);
        }
    }
    const struct sockaddr_un local = {.sun_family = AF_UNIX};
    CHECK(!remote_address_is_public((const struct sockaddr *)&local));
}

static void test_reach(void)
{
    static const char *const RULES[] = {"Example.org", "*.cdn.example.net", "10.1.2.3", "[fd00::7]"};
    static const char *const LOCAL[] = {"localhost", "*.localhost"}, *const ALL[] = {"*"};
    static const struct {
        const char *host;
        remote_reach reach;
    } CASES[] = {
        {"example.org", REMOTE_PUBLIC},
        {"EXAMPLE.ORG", REMOTE_PUBLIC},
        {"www.example.org", REMOTE_NOWHERE},
        {"example.org.", REMOTE_NOWHERE},
        {"badexample.org", REMOTE_NOWHERE},
        {"example.org.evil.com", REMOTE_NOWHERE},
        {"a.cdn.example.net", REMOTE_PUBLIC},
        {"a.b.cdn.example.net", REMOTE_PUBLIC},
        {"cdn.example.net", REMOTE_NOWHERE},
        {".cdn.example.net", REMOTE_NOWHERE},
        {"xcdn.example.net", REMOTE_NOWHERE},
        {"10.1.2.3", REMOTE_ANYWHERE},
        {"10.1.2.4", REMOTE_NOWHERE},
        {"fd00::7", REMOTE_ANYWHERE},
        {"fd00:0:0:0:0:0:0:7", REMOTE_ANYWHERE},
        {"::ffff:10.1.2.3", REMOTE_NOWHERE},
        {"localhost", REMOTE_NOWHERE},
        {"", REMOTE_NOWHERE},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        if (remote_host_reach(RULES, ARRAY_LEN(RULES), CASES[i].host) != CASES[i].reach) {
            check_fail(__FILE__, __LINE__, CASES[i].host);
        }
    }
    CHECK_INT(remote_host_reach(RULES, 0, "example.org"), REMOTE_NOWHERE);
    CHECK_INT(remote_host_reach(ALL, 1, "example.org"), REMOTE_PUBLIC);
    CHECK_INT(remote_host_reach(ALL, 1, "10.1.2.3"), REMOTE_PUBLIC); /* which is no public address */
    CHECK_INT(remote_host_reach(ALL, 1, "localhost"), REMOTE_PUBLIC);
    CHECK_INT(remote_host_reach(LOCAL, 2, "localhost"), REMOTE_LOOPBACK);
    CHECK_INT(remote_host_reach(LOCAL, 2, "a.localhost"), REMOTE_PUBLIC);
    CHECK_INT(remote_host_reach(LOCAL, 2, "127.0.0.1"), REMOTE_NOWHERE);
}

static void test_connections(void)
{
    const any_address public = address_of("1.1.1.1"), private = address_of("10.0.0.1"),
                      here = address_of("127.0.0.1"), here6 = address_of("::1");
    CHECK(!remote_may_connect(REMOTE_NOWHERE, &public.any));
    CHECK(remote_may_connect(REMOTE_PUBLIC, &public.any));
    CHECK(!remote_may_connect(REMOTE_PUBLIC, &private.any));
    CHECK(!remote_may_connect(REMOTE_PUBLIC, &here.any));
    CHECK(remote_may_connect(REMOTE_LOOPBACK, &here.any));
    CHECK(remote_may_connect(REMOTE_LOOPBACK, &here6.any));
    const struct sockaddr_un local = {.sun_family = AF_UNIX};
    CHECK(!remote_may_connect(REMOTE_LOOPBACK, (const struct sockaddr *)&local));
    for (size_t i = 0; i < sizeof here6.v6.sin6_addr.s6_addr; i++) { /* one bit away from ::1 */
        any_address near = here6;
        near.v6.sin6_addr.s6_addr[i] ^= 2;
        CHECK(!remote_may_connect(REMOTE_LOOPBACK, &near.any) || remote_address_is_public(&near.any));
    }
    CHECK(!remote_may_connect(REMOTE_LOOPBACK, &private.any));
    CHECK(remote_may_connect(REMOTE_ANYWHERE, &private.any));
}

static void test_rules(void)
{
    static const char *const GOOD[] = {"example.org", "*.example.org", "localhost", "127.0.0.1",
                                       "::1",         "[::1]",         "a-b_c.d",   "*"};
    static const char *const BAD[] = {
        "",     "**",   "*.",           "*.*.org", "http://example.org", "example.org/x", "example.org:80",
        ".org", "a..b", "example.org.", "a b",     "[127.0.0.1]",        "[::1",          "*.[::1]"};
    for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
        if (!remote_rule_is_valid(GOOD[i])) {
            check_fail(__FILE__, __LINE__, GOOD[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        if (remote_rule_is_valid(BAD[i])) {
            check_fail(__FILE__, __LINE__, BAD[i]);
        }
    }
    char longest[260];
    for (int n = 252; n <= 255; n++) {
        for (int k = 0; k < 2; k++) { /* of a host, and of those below it */
            snprintf(longest, sizeof longest, "%s%0*d", k ? "*." : "", n, 0);
            CHECK_INT(remote_rule_is_valid(longest), n <= 253);
            const char *const rules[] = {longest};
            CHECK_INT(remote_host_reach(rules, 1, longest), REMOTE_PUBLIC);
        }
    }
}

int main(void)
{
    test_addresses();
    test_reach();
    test_connections();
    test_rules();
    CHECK_DONE();
}
