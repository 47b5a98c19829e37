/* remote_host: which hosts media may be fetched from, and which addresses a host may resolve to.
 * Any thread; no state.
 *
 *     remote_reach reach = remote_host_reach(rules, n_rules, "example.org");
 *     if (reach == REMOTE_NOWHERE) { return ERR_INVALID; }
 *     if (!remote_may_connect(reach, address)) { return ERR_INVALID; }      // the resolved one
 *
 * A rule is a host ("example.org"), the hosts below one ("*.example.org"), all hosts ("*"), or an address. Only
 * public addresses of a host are connected to, whatever its name resolves to; an address in the
 * rules, and localhost, are allowed as given.
 */
#ifndef PARLEY_SERVER_MEDIA_REMOTE_HOST_H
#define PARLEY_SERVER_MEDIA_REMOTE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

typedef enum remote_reach {
    REMOTE_NOWHERE,  /* no rule names the host */
    REMOTE_PUBLIC,   /* at public addresses */
    REMOTE_LOOPBACK, /* localhost, by name: at this machine's own address too */
    REMOTE_ANYWHERE  /* the host is an address that a rule names */
} remote_reach;

/* Whether a text is a valid rule; an address may be in brackets. */
bool remote_rule_is_valid(const char *rule);

/* host: lower case, an IPv6 address without brackets. Names are compared without case. */
remote_reach remote_host_reach(const char *const *rules, size_t n, const char *host);

/* Whether this is a public address: false for private, loopback, link-local, shared, multicast,
 * unspecified, reserved and documentation addresses, for IPv4 ones of these inside of IPv6 (mapped,
 * NAT64), for tunnels (6to4, Teredo), and for what is neither IPv4 nor IPv6. */
bool remote_address_is_public(const struct sockaddr *address);

bool remote_may_connect(remote_reach reach, const struct sockaddr *address);

#endif
