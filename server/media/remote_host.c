#include "server/media/remote_host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"

enum { HOST_MAX = 253 };

/* ---- addresses ---- */

/* The first n_bits of an address. */
typedef struct block {
    uint8_t bytes[16];
    int n_bits;
} block;

/* What the registries of special-purpose addresses (RFC 6890 and its successors) call not globally
 * reachable. */
static const block CLOSED_V4[] = {
    {{0}, 8},             /* this network */
    {{10}, 8},            /* private */
    {{100, 64}, 10},      /* shared by a provider's customers */
    {{127}, 8},           /* loopback */
    {{169, 254}, 16},     /* link-local; the metadata of clouds */
    {{172, 16}, 12},      /* private */
    {{192, 0, 0}, 24},    /* protocols */
    {{192, 0, 2}, 24},    /* documentation */
    {{192, 88, 99}, 24},  /* relays of 6to4 */
    {{192, 168}, 16},     /* private */
    {{198, 18}, 15},      /* benchmarks */
    {{198, 51, 100}, 24}, /* documentation */
    {{203, 0, 113}, 24},  /* documentation */
    {{224}, 4},           /* multicast */
    {{240}, 4},           /* reserved, broadcast */
};

/* Inside of 2000::/3; whatever is outside of it is no public address. */
static const block CLOSED_V6[] = {
    {{0x20, 0x01}, 23},             /* protocols, Teredo */
    {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
    {{0x20, 0x02}, 16},             /* 6to4: an IPv4 address, any */
    {{0x3f, 0xff}, 20},             /* documentation */
};

static const block GLOBAL_V6 = {{0x20}, 3};
static const block MAPPED_V4 = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96};
static const block NAT64 = {{0, 0x64, 0xff, 0x9b}, 96};

static bool is_in(const uint8_t *address, const block *b)
{
    const int n = b->n_bits / 8, rest = b->n_bits % 8;
    const uint8_t mask = (uint8_t)(0xff00 >> rest);
    return memcmp(address, b->bytes, (size_t)n) == 0 &&
           (rest == 0 || (address[n] & mask) == (b->bytes[n] & mask));
}

static bool is_in_any(const uint8_t *address, const block *blocks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is_in(address, &blocks[i])) {
            return true;
        }
    }
    return false;
}

static bool is_public_v4(const uint8_t *address)
{
    return !is_in_any(address, CLOSED_V4, ARRAY_LEN(CLOSED_V4));
}

static bool is_public_v6(const uint8_t *address)
{
    if (is_in(address, &MAPPED_V4) || is_in(address, &NAT64)) {
        return is_public_v4(address + 12);
    }
    return is_in(address, &GLOBAL_V6) && !is_in_any(address, CLOSED_V6, ARRAY_LEN(CLOSED_V6));
}

bool remote_address_is_public(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        return is_public_v4((const uint8_t *)&((const struct sockaddr_in *)(const void *)address)->sin_addr);
    }
    return address->sa_family == AF_INET6 &&
           is_public_v6(((const struct sockaddr_in6 *)(const void *)address)->sin6_addr.s6_addr);
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        return *(const uint8_t *)&((const struct sockaddr_in *)(const void *)address)->sin_addr == 127;
    }
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

bool remote_may_connect(remote_reach reach, const struct sockaddr *address)
{
    return reach == REMOTE_ANYWHERE || (reach == REMOTE_LOOPBACK && is_loopback(address)) ||
           (reach != REMOTE_NOWHERE && remote_address_is_public(address));
}

/* ---- hosts ---- */

/* An address as text, perhaps in brackets, to 16 bytes of which an IPv4 one takes four; returns its
 * family, 0 for a name. */
static int parse_address(uint8_t out[16], const char *text)
{
    char plain[HOST_MAX + 1];
    size_t len = strlen(text);
    const bool in_brackets = text[0] == '[' && text[len - 1] == ']';
    if (len > HOST_MAX) {
        return 0;
    }
    len -= in_brackets ? 2 : 0;
    memcpy(plain, text + in_brackets, len);
    plain[len] = '\0';
    memset(out, 0, 16);
    return inet_pton(AF_INET6, plain, out) == 1                  ? AF_INET6
           : !in_brackets && inet_pton(AF_INET, plain, out) == 1 ? AF_INET
                                                                 : 0;
}

bool remote_rule_is_valid(const char *rule)
{
    uint8_t address[16];
    const char *name = strncmp(rule, "*.", 2) == 0 ? rule + 2 : rule;
    const size_t len = strlen(name);
    if (parse_address(address, rule) || strcmp(rule, "*") == 0) {
        return true;
    }
    return len > 0 && len <= HOST_MAX && name[0] != '.' && name[len - 1] != '.' && !strstr(name, "..") &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] == '\0';
}

/* What one rule says of the host; address and family: the host's, if it is an address. */
static remote_reach reach_by(const char *rule, const char *host, const uint8_t *address, int family)
{
    uint8_t meant[16];
    const int meant_family = parse_address(meant, rule);
    if (strcmp(rule, "*") == 0) {
        return REMOTE_PUBLIC;
    }
    if (family || meant_family) {
        return family == meant_family && memcmp(meant, address, sizeof meant) == 0 ? REMOTE_ANYWHERE
                                                                                   : REMOTE_NOWHERE;
    }
    if (strncmp(rule, "*.", 2) == 0) {
        const size_t n = strlen(rule + 1), len = strlen(host);
        return len > n && strcasecmp(host + len - n, rule + 1) == 0 ? REMOTE_PUBLIC : REMOTE_NOWHERE;
    }
    return strcasecmp(rule, host) != 0          ? REMOTE_NOWHERE
           : strcasecmp(host, "localhost") == 0 ? REMOTE_LOOPBACK
                                                : REMOTE_PUBLIC;
}

remote_reach remote_host_reach(const char *const *rules, size_t n, const char *host)
{
    uint8_t address[16];
    const int family = parse_address(address, host);
    remote_reach best = REMOTE_NOWHERE;
    for (size_t i = 0; i < n; i++) {
        const remote_reach reach = reach_by(rules[i], host, address, family);
        best = reach > best ? reach : best;
    }
    return best;
}
