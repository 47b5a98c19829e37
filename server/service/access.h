/* access: access control: Host and Origin lists, cross-site requests, API keys. Any thread; no
 * state but the constant lists.
 *
 *     access_rules a; access_init(&a, keys, n_keys, hosts, n_hosts, origins, n_origins);
 *     int status = access_check(&a, &head, is_public, &why);      // 200, 401, 403, 421
 *
 * The Host check stops DNS rebinding: only IP literals, localhost, *.localhost and --allowed-hosts
 * are served. The Origin check stops other pages: an Origin must name the very host it talks to, or
 * be listed.
 */
#ifndef PARLEY_SERVER_SERVICE_ACCESS_H
#define PARLEY_SERVER_SERVICE_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "server/net/net.h"

typedef struct access_rules {
    /* [n_keys]; digests, so that comparison takes constant time */
    uint8_t (*key_hashes)[HASH_BYTES];
    size_t n_keys;
    uint8_t admin_hash[HASH_BYTES];
    bool has_admin;
    const char *const *hosts; /* not owned */
    size_t n_hosts;
    const char *const *origins; /* not owned */
    size_t n_origins;
} access_rules;

/* False if out of memory. */
MUST_CHECK bool access_init(access_rules *a, const char *const *keys, size_t n_keys, const char *const *hosts,
                            size_t n_hosts, const char *const *origins, size_t n_origins);
void access_deinit(access_rules *a); /* frees the hashes */

/* Sets the key of who manages models (--admin-key), which is a key like the others as well; NULL: none. */
void access_set_admin(access_rules *a, const char *key);
/* Whether the request is of who may manage models: it has the admin's key; without one, it comes from a
 * browser on this machine that named it so (localhost, 127.0.0.1, [::1]). */
bool access_is_admin(const access_rules *a, const net_head *head);

/* 200, or the status to refuse with and a constant sentence in *why. */
int access_check(const access_rules *a, const net_head *head, bool is_public, const char **why);

/* The owner of a request, for prefixes and answers that are private to it: bits of the hash of the
 * accepted API key; 0 without keys. */
uint64_t access_scope(const access_rules *a, const net_head *head);

/* The owner that a request with key i of n_keys has. */
uint64_t access_scope_of_key(const access_rules *a, size_t i);

/* Which key an owner has, counted from 1; 0: none, or one that is no longer accepted. */
int64_t access_key_of(const access_rules *a, uint64_t scope);

/* Single rules, for tests. */
bool access_host_allowed(const access_rules *a, const char *host);
bool access_origin_listed(const access_rules *a, const char *origin);
bool access_origin_allowed(const access_rules *a, const char *origin, const char *host);
bool access_key_allowed(const access_rules *a, const net_head *head);

#endif
