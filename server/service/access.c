#include "server/service/access.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HOST_MAX = 256 };

static const char KEY_PROTOCOL[] = "openai-insecure-api-key.";

bool access_init(access_rules *a, const char *const *keys, size_t n_keys, const char *const *hosts,
                 size_t n_hosts, const char *const *origins, size_t n_origins)
{
    memset(a, 0, sizeof *a);
    a->key_hashes = n_keys ? calloc(n_keys, HASH_BYTES) : NULL;
    if (n_keys && !a->key_hashes) {
        return false;
    }
    for (size_t i = 0; i < n_keys; i++) {
        hash_sha256(a->key_hashes[i], keys[i], strlen(keys[i]));
    }
    a->n_keys = n_keys;
    a->hosts = hosts;
    a->n_hosts = n_hosts;
    a->origins = origins;
    a->n_origins = n_origins;
    return true;
}

void access_deinit(access_rules *a)
{
    free(a->key_hashes);
    memset(a, 0, sizeof *a);
}

void access_set_admin(access_rules *a, const char *key)
{
    a->has_admin = key != NULL;
    if (key) {
        hash_sha256(a->admin_hash, key, strlen(key));
    }
}

/* ---- host ---- */

/* Splits "name:port" or "[v6]:port"; false if it is neither. The name comes without brackets. */
static bool split_host(const char *host, char *name, size_t cap, bool *is_v6)
{
    const char *end;
    *is_v6 = host[0] == '[';
    if (*is_v6) {
        host++;
        end = strchr(host, ']');
        if (!end || (end[1] != '\0' && end[1] != ':')) {
            return false;
        }
    } else {
        end = host + strcspn(host, ":");
    }
    const char *port = *is_v6 ? end + 1 : end;
    if (*port == ':') {
        for (const char *p = port + 1; *p; p++) {
            if (!isdigit((unsigned char)*p)) {
                return false;
            }
        }
    }
    size_t n = (size_t)(end - host);
    if (n == 0 || n >= cap) {
        return false;
    }
    memcpy(name, host, n);
    name[n] = '\0';
    return true;
}

bool access_host_allowed(const access_rules *a, const char *host)
{
    char name[HOST_MAX];
    unsigned char address[16];
    bool is_v6;
    if (!split_host(host, name, sizeof name, &is_v6)) {
        return false;
    }
    if (is_v6) {
        return inet_pton(AF_INET6, name, address) == 1;
    }
    size_t len = strlen(name);
    static const char suffix[] = ".localhost";
    size_t n = sizeof suffix - 1;
    if (inet_pton(AF_INET, name, address) == 1 || strcasecmp(name, "localhost") == 0 ||
        (len > n && strcasecmp(name + len - n, suffix) == 0)) {
        return true;
    }
    for (size_t i = 0; i < a->n_hosts; i++) {
        if (strcasecmp(a->hosts[i], name) == 0 || strcasecmp(a->hosts[i], host) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- origin ---- */

bool access_origin_listed(const access_rules *a, const char *origin)
{
    for (size_t i = 0; i < a->n_origins; i++) {
        if (strcmp(a->origins[i], origin) == 0) {
            return true;
        }
    }
    return false;
}

bool access_origin_allowed(const access_rules *a, const char *origin, const char *host)
{
    if (access_origin_listed(a, origin)) {
        return true;
    }
    const char *rest = strncasecmp(origin, "http://", 7) == 0    ? origin + 7
                       : strncasecmp(origin, "https://", 8) == 0 ? origin + 8
                                                                 : NULL;
    return rest && strcasecmp(rest, host) == 0;
}

/* ---- key ---- */

static bool same_digest(const uint8_t *a, const uint8_t *b)
{
    uint8_t difference = 0;
    for (size_t i = 0; i < HASH_BYTES; i++) {
        difference |= (uint8_t)(a[i] ^ b[i]);
    }
    return difference == 0;
}

/* Whether the key is known; if so, *scope (unless it was set by another key) is told apart by the
 * key's hash. */
static bool is_known_key(const access_rules *a, const char *key, size_t len, uint64_t *scope)
{
    uint8_t digest[HASH_BYTES];
    bool found = false;
    hash_sha256(digest, key, len);
    /* Always compares with every key, so that the time taken reveals nothing. */
    for (size_t i = 0; i < a->n_keys; i++) {
        found |= same_digest(digest, a->key_hashes[i]);
    }
    found |= a->has_admin && same_digest(digest, a->admin_hash);
    found = found && len > 0;
    if (found && *scope == 0) {
        memcpy(scope, digest, sizeof *scope);
    }
    return found;
}

/* A browser cannot set headers on a WebSocket; the key comes as an item of the sub-protocol
 * list. */
static bool has_protocol_key(const access_rules *a, const char *protocols, uint64_t *scope)
{
    bool found = false;
    for (const char *p = protocols; *p;) {
        p += strspn(p, " ,\t");
        size_t n = strcspn(p, " ,\t");
        if (strncmp(p, KEY_PROTOCOL, sizeof KEY_PROTOCOL - 1) == 0) { /* all of it is before a separator */
            found |= is_known_key(a, p + sizeof KEY_PROTOCOL - 1, n - (sizeof KEY_PROTOCOL - 1), scope);
        }
        p += n;
    }
    return found;
}

/* Looks at all places where a key may stand; the first known one is whose request it is. */
static bool find_key(const access_rules *a, const net_head *head, uint64_t *scope)
{
    bool ok = false;
    *scope = 0;
    if (strncasecmp(head->authorization, "Bearer ", 7) == 0) {
        const char *key = head->authorization + 7;
        key += strspn(key, " ");
        ok |= is_known_key(a, key, strlen(key), scope);
    }
    ok |= is_known_key(a, head->x_api_key, strlen(head->x_api_key), scope);
    return ok | (head->is_upgrade && has_protocol_key(a, head->ws_protocols, scope));
}

bool access_key_allowed(const access_rules *a, const net_head *head)
{
    uint64_t scope;
    return a->n_keys == 0 || find_key(a, head, &scope);
}

uint64_t access_scope(const access_rules *a, const net_head *head)
{
    uint64_t scope = 0;
    if (a->n_keys > 0) {
        find_key(a, head, &scope);
    }
    return scope;
}

uint64_t access_scope_of_key(const access_rules *a, size_t i)
{
    uint64_t scope;
    memcpy(&scope, a->key_hashes[i], sizeof scope);
    return scope;
}

int64_t access_key_of(const access_rules *a, uint64_t scope)
{
    for (size_t i = 0; i < a->n_keys; i++) {
        if (access_scope_of_key(a, i) == scope) {
            return (int64_t)i + 1;
        }
    }
    return 0;
}

/* Whether the Host is a name of this machine that no other machine uses for it. */
static bool is_localhost(const char *host)
{
    char name[HOST_MAX];
    bool is_v6;
    if (!split_host(host, name, sizeof name, &is_v6)) {
        return false;
    }
    const size_t n = strlen(name), n_end = sizeof ".localhost" - 1;
    unsigned char address[4];
    if (is_v6) {
        return strcmp(name, "::1") == 0;
    }
    return strcasecmp(name, "localhost") == 0 ||
           (n > n_end && strcasecmp(name + n - n_end, ".localhost") == 0) ||
           (inet_pton(AF_INET, name, address) == 1 && address[0] == 127);
}

bool access_is_admin(const access_rules *a, const net_head *head)
{
    access_rules only = {.has_admin = a->has_admin};
    uint64_t scope;
    memcpy(only.admin_hash, a->admin_hash, sizeof only.admin_hash);
    return a->has_admin ? find_key(&only, head, &scope) : head->is_direct && is_localhost(head->host);
}

int access_check(const access_rules *a, const net_head *head, bool is_public, const char **why)
{
    if (!access_host_allowed(a, head->host)) {
        *why = "this Host is not served; add it with --allowed-hosts";
        return 421;
    }
    if (head->origin[0] && !access_origin_allowed(a, head->origin, head->host)) {
        *why = "this Origin may not use the server; add it with --allowed-origins";
        return 403;
    }
    if (!head->origin[0] && strcasecmp(head->sec_fetch_site, "cross-site") == 0 && !is_public) {
        *why = "requests from other sites are refused";
        return 403;
    }
    if (!is_public && !access_key_allowed(a, head)) {
        *why = "a valid API key is needed: Authorization: Bearer KEY";
        return 401;
    }
    return 200;
}
