#include "server/hub/hub_place.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "server/media/fetch.h"

static const char STANDARD[] = "https://huggingface.co";

/* A variable that is set to something, or NULL. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static err_code too_long(err_detail *detail, const char *name)
{
    return err_set(detail, ERR_INVALID, "%s is too long", name);
}

static err_code find_endpoint(hub_place *out, err_detail *detail)
{
    const char *given = variable("HF_ENDPOINT");
    fetch_target target;
    if (given && (!fetch_parse(&target, given) || strpbrk(given, "?#"))) {
        return err_set(detail, ERR_INVALID, "HF_ENDPOINT is not an address of the form https://HOST");
    }
    if (snprintf(out->endpoint, sizeof out->endpoint, "%s", given ? given : STANDARD) >=
        (int)sizeof out->endpoint) {
        return too_long(detail, "HF_ENDPOINT");
    }
    size_t n = strlen(out->endpoint);
    while (out->endpoint[n - 1] == '/') {
        out->endpoint[--n] = '\0';
    }
    return ERR_OK;
}

/* Where the tools of the hub keep their things: $HF_HOME, or below the user's cache. False if nothing
 * says where that is. */
static bool find_home(char *out, size_t cap)
{
    const char *home = variable("HF_HOME"), *cache = variable("XDG_CACHE_HOME"), *user = variable("HOME");
    const char *base = home ? home : cache ? cache : user;
    if (!base) {
        return false;
    }
    const int n = snprintf(out, cap, "%s%s", base,
                           home    ? ""
                           : cache ? "/huggingface"
                                   : "/.cache/huggingface");
    return n < (int)cap;
}

static err_code find_cache(hub_place *out, const char *home, err_detail *detail)
{
    char here[HUB_CACHE_MAX] = "", given[HUB_CACHE_MAX];
    const char *cache = variable("HF_HUB_CACHE");
    if (!cache && !home) {
        return err_set(detail, ERR_INVALID, "there is no place for models: set HF_HOME or HF_HUB_CACHE");
    }
    int n =
        cache ? snprintf(given, sizeof given, "%s", cache) : snprintf(given, sizeof given, "%s/hub", home);
    if (given[0] != '/' && !getcwd(here, sizeof here)) {
        return err_set(detail, ERR_IO, "the current folder is gone");
    }
    if (n < (int)sizeof given) {
        n = snprintf(out->cache, sizeof out->cache, "%s%s%s", here, here[0] ? "/" : "", given);
    }
    return n < (int)sizeof out->cache ? ERR_OK : too_long(detail, cache ? "HF_HUB_CACHE" : "HF_HOME");
}

/* A key goes into a header: one word of visible characters. */
static err_code take_key(hub_place *out, const char *text, size_t n, const char *from, err_detail *detail)
{
    while (n > 0 && isspace((unsigned char)text[n - 1])) {
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        if (text[i] <= ' ' || text[i] > '~') {
            return err_set(detail, ERR_INVALID, "%s is not a key: it holds blanks or odd characters", from);
        }
    }
    if (n >= sizeof out->key) {
        return too_long(detail, from);
    }
    memcpy(out->key, text, n);
    out->key[n] = '\0';
    return ERR_OK;
}

static err_code find_key(hub_place *out, const char *home, err_detail *detail)
{
    const char *given = variable("HF_TOKEN"), *path = variable("HF_TOKEN_PATH");
    char file[HUB_CACHE_MAX];
    if (given) {
        return take_key(out, given, strlen(given), "HF_TOKEN", detail);
    }
    if (!path && home && file_join(file, sizeof file, home, "token")) {
        path = file;
    }
    bytes text = bytes_empty(4096);
    err_code err = ERR_OK;
    if (path && file_exists(path) && file_read(&text, path, NULL) == ERR_OK) {
        err = take_key(out, bytes_str(&text), text.len, path, detail);
    }
    bytes_deinit(&text);
    return err;
}

err_code hub_place_find(hub_place *out, err_detail *detail)
{
    char home[HUB_CACHE_MAX];
    const char *offline = variable("HF_HUB_OFFLINE");
    const bool has_home = find_home(home, sizeof home);
    *out = (hub_place){.is_offline = offline && strcmp(offline, "0") != 0};
    err_code err = find_endpoint(out, detail);
    err = err ? err : find_cache(out, has_home ? home : NULL, detail);
    return err ? err : find_key(out, has_home ? home : NULL, detail);
}
