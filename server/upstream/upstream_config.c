#include "server/upstream/upstream_config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/limits.h"
#include "server/media/fetch.h"

enum { UPSTREAM_PIXELS_MIN = 1024, CA_BYTES = 8 << 20 };

/* ---- lists ---- */

/* The next item of a list with commas, cut to fit: its length, which is cap or more if it was; 0 at the end. */
static size_t next_item(const char **list, char *out, size_t cap)
{
    const char *p = *list;
    while (p && (*p == ',' || isspace((unsigned char)*p))) {
        p++;
    }
    if (!p || !*p) {
        return 0;
    }
    const size_t n = strcspn(p, ", \t\r\n");
    snprintf(out, cap, "%.*s", (int)n, p);
    *list = p + n;
    return n;
}

static bool is_name(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && (isalnum((unsigned char)text[i]) || strchr("-_.", text[i]))) {
        i++;
    }
    return len > 0 && len <= UPSTREAM_NAME_MAX && i == len;
}

static upstream_server *find(upstream_config *c, const char *name, size_t len)
{
    for (size_t i = 0; i < c->n_servers; i++) {
        if (strlen(c->servers[i].name) == len && memcmp(c->servers[i].name, name, len) == 0) {
            return &c->servers[i];
        }
    }
    return NULL;
}

/* ---- --upstream ---- */

bool upstream_base_url(char *out, size_t cap, const char *url)
{
    fetch_target target;
    if (!strstr(url, "://") || !fetch_parse(&target, url) || url[strcspn(url, "?#")]) {
        return false;
    }
    size_t n = strlen(url);
    while (url[n - 1] == '/') { /* there is a host in front of them */
        n--;
    }
    const char *path = strchr(strstr(url, "://") + 3, '/');
    const char *last = url + n;
    while (path && last > path && last[-1] != '/') {
        last--;
    }
    const bool has_version = path && last > path && last[0] == 'v' && isdigit((unsigned char)last[1]);
    return (size_t)snprintf(out, cap, "%.*s%s", (int)n, url, has_version ? "" : "/v1") < cap;
}

static err_code add_url(upstream_server *s, const char *url, err_detail *d)
{
    char full[FETCH_URL_MAX + 8];
    if (!strstr(url, "://")) {
        return err_set(d, ERR_INVALID, "--upstream %s: %s has no scheme; write http://%s or https://%s",
                       s->name, url, url, url);
    }
    if (!upstream_base_url(full, sizeof full, url)) {
        return err_set(
            d, ERR_INVALID,
            "--upstream %s: %s is no address of a server; it takes http://HOST:PORT or "
            "https://HOST/PATH, without a user, a query or a fragment (a key goes into --upstream-key)",
            s->name, url);
    }
    if (s->n_urls == UPSTREAM_REPLICAS) {
        return err_set(d, ERR_INVALID, "--upstream %s has more than %d addresses", s->name,
                       UPSTREAM_REPLICAS);
    }
    for (size_t i = 0; i < s->n_urls; i++) {
        if (strcmp(s->urls[i], full) == 0) {
            return err_set(d, ERR_INVALID, "--upstream %s names %s twice", s->name, url);
        }
    }
    s->urls[s->n_urls] = strdup(full);
    return s->urls[s->n_urls++] ? ERR_OK : err_set(d, ERR_NOMEM, "no memory for the server");
}

/* NAME= in front of an address begins a new one. */
static err_code read_servers(upstream_config *c, const char *list, err_detail *d)
{
    char item[FETCH_URL_MAX + UPSTREAM_NAME_MAX];
    size_t len;
    upstream_server *s = NULL;
    while ((len = next_item(&list, item, sizeof item)) > 0) {
        const char *equals = strchr(item, '='), *scheme = strstr(item, "://");
        const char *url = item;
        if (len >= sizeof item) {
            return err_set(d, ERR_INVALID, "--upstream: an address is longer than %d bytes", FETCH_URL_MAX);
        }
        if (equals && (!scheme || equals < scheme)) {
            const size_t n = (size_t)(equals - item);
            if (!is_name(item, n)) {
                return err_set(d, ERR_INVALID,
                               "--upstream: \"%.*s\" is no name; it takes 1 to %d letters, digits, - _ and .",
                               (int)n, item, UPSTREAM_NAME_MAX);
            }
            if (find(c, item, n)) {
                return err_set(d, ERR_INVALID, "--upstream: the name %.*s is given twice", (int)n, item);
            }
            if (c->n_servers == UPSTREAM_SERVERS) {
                return err_set(d, ERR_INVALID, "--upstream: at most %d are possible", UPSTREAM_SERVERS);
            }
            s = &c->servers[c->n_servers++];
            snprintf(s->name, sizeof s->name, "%.*s", (int)n, item);
            url = equals + 1;
        }
        if (!s) {
            return err_set(d, ERR_INVALID, "--upstream %s: a name is missing in front; write NAME=URL", item);
        }
        const err_code err = add_url(s, url, d);
        if (err != ERR_OK) {
            return err;
        }
    }
    return ERR_OK;
}

/* ---- --upstream-key, --upstream-model ---- */

static err_code read_keys(upstream_config *c, const char *list, err_detail *d)
{
    char item[512];
    size_t len;
    while ((len = next_item(&list, item, sizeof item)) > 0) {
        char *equals = strchr(item, '=');
        upstream_server *s = equals ? find(c, item, (size_t)(equals - item)) : NULL;
        if (!equals || len >= sizeof item || !equals[1]) {
            return err_set(d, ERR_INVALID,
                           "--upstream-key takes NAME=VARIABLE, the variable of the environment "
                           "that holds the key");
        }
        if (!s || s->key) {
            return err_set(d, ERR_INVALID, "--upstream-key: %s %.*s",
                           s ? "there are two for" : "no --upstream has the name", (int)(equals - item),
                           item);
        }
        const char *key = getenv(equals + 1);
        if (!key || !key[0] || key[strcspn(key, "\r\n")]) {
            return err_set(d, ERR_INVALID, "--upstream-key %s: the variable %s of the environment %s",
                           s->name, equals + 1,
                           key && key[0] ? "has more than one line" : "is empty or not set");
        }
        s->key = strdup(key);
        if (!s->key) {
            return err_set(d, ERR_NOMEM, "no memory for the server");
        }
    }
    return ERR_OK;
}

static err_code read_aliases(upstream_config *c, const char *list, err_detail *d)
{
    char item[1024];
    size_t len;
    while ((len = next_item(&list, item, sizeof item)) > 0) {
        char *equals = strchr(item, '=');
        char *slash = equals ? strchr(equals, '/') : NULL;
        if (!equals || equals == item || !slash || !slash[1] || len >= sizeof item) {
            return err_set(d, ERR_INVALID, "--upstream-model takes ALIAS=NAME/ID, such as big=gpu/Qwen3-32B");
        }
        *equals = '\0';
        if (!find(c, equals + 1, (size_t)(slash - equals - 1))) {
            return err_set(d, ERR_INVALID, "--upstream-model %s: no --upstream has the name %.*s", item,
                           (int)(slash - equals - 1), equals + 1);
        }
        if (strcmp(item, "default") == 0) {
            return err_set(d, ERR_INVALID,
                           "--upstream-model: default is the name of whatever answers; take another");
        }
        for (size_t i = 0; i < c->n_aliases; i++) {
            if (strcmp(c->aliases[i].name, item) == 0) {
                return err_set(d, ERR_INVALID, "--upstream-model: the alias %s is given twice", item);
            }
        }
        if (c->n_aliases == UPSTREAM_ALIASES) {
            return err_set(d, ERR_INVALID, "--upstream-model: at most %d are possible", UPSTREAM_ALIASES);
        }
        upstream_alias *a = &c->aliases[c->n_aliases++];
        a->name = strdup(item);
        a->model = strdup(equals + 1);
        if (!a->name || !a->model) {
            return err_set(d, ERR_NOMEM, "no memory for the server");
        }
    }
    return ERR_OK;
}

/* ---- --upstream-video, --upstream-pixels ---- */

/* The next NAME=VALUE of a list: *s and *value, which points into item; ERR_INVALID. False at the end. */
static bool next_setting(upstream_config *c, const char **list, char *item, size_t cap, const char *option,
                         upstream_server **s, const char **value, err_code *err, err_detail *d)
{
    const size_t n = next_item(list, item, cap);
    if (n == 0) {
        return false;
    }
    const char *equals = strchr(item, '=');
    *s = equals ? find(c, item, (size_t)(equals - item)) : NULL;
    *value = equals ? equals + 1 : "";
    if (!equals || n >= cap) {
        *err = err_set(d, ERR_INVALID, "%s takes NAME=VALUE", option);
    } else if (!*s) {
        *err = err_set(d, ERR_INVALID, "%s: no --upstream has the name %.*s", option, (int)(equals - item),
                       item);
    }
    return *err == ERR_OK;
}

static err_code read_videos(upstream_config *c, const char *list, err_detail *d)
{
    static const char *const WAYS[] = {[UPSTREAM_VIDEO_AUTO] = "auto",
                                       [UPSTREAM_VIDEO_URL] = "url",
                                       [UPSTREAM_VIDEO_FRAMES] = "frames",
                                       [UPSTREAM_VIDEO_NONE] = "none"};
    char item[256];
    upstream_server *s;
    const char *value;
    err_code err = ERR_OK;
    while (next_setting(c, &list, item, sizeof item, "--upstream-video", &s, &value, &err, d)) {
        size_t way = 0;
        while (way < ARRAY_LEN(WAYS) && strcmp(WAYS[way], value) != 0) {
            way++;
        }
        if (way == ARRAY_LEN(WAYS)) {
            return err_set(d, ERR_INVALID, "--upstream-video %s: %s is neither auto, url, frames nor none",
                           s->name, value);
        }
        s->video = (upstream_video)way;
    }
    return err;
}

static err_code read_pixels(upstream_config *c, const char *list, err_detail *d)
{
    char item[256];
    upstream_server *s;
    const char *value;
    err_code err = ERR_OK;
    while (next_setting(c, &list, item, sizeof item, "--upstream-pixels", &s, &value, &err, d)) {
        char *end;
        const long long n = strtoll(value, &end, 10);
        if (!isdigit((unsigned char)value[0]) || *end || n < UPSTREAM_PIXELS_MIN ||
            n > (long long)LIMIT_IMAGE_PIXELS) {
            return err_set(d, ERR_INVALID, "--upstream-pixels %s: %s is no number from %d to %zu", s->name,
                           value, UPSTREAM_PIXELS_MIN, LIMIT_IMAGE_PIXELS);
        }
        s->max_pixels = n;
    }
    return err;
}

/* Whether the models that rules name can be there. */
static err_code check_rules(upstream_config *c, err_detail *d)
{
    for (size_t i = 0; i < c->rules.n; i++) {
        const char *model = c->rules.items[i].model;
        const char *slash = strchr(model, '/');
        bool found = slash && find(c, model, (size_t)(slash - model));
        for (size_t j = 0; j < c->n_aliases; j++) {
            found = found || strcmp(c->aliases[j].name, model) == 0;
        }
        if (!found) {
            return err_set(d, ERR_INVALID,
                           "--route: %s is neither an alias of --upstream-model nor NAME/ID of an "
                           "--upstream",
                           model);
        }
    }
    return ERR_OK;
}

/* libcurl says what is wrong with such a file with every connection only. */
static err_code check_certificates(const char *path, err_detail *d)
{
    bytes text = bytes_empty(CA_BYTES);
    err_code err = file_read(&text, path, NULL);
    if (err == ERR_NOMEM) {
        err = err_set(d, ERR_NOMEM, "no memory for the server");
    } else if (err != ERR_OK) {
        err = err_set(d, ERR_INVALID, "--upstream-ca: %s cannot be read", path);
    } else if (!text.data || !strstr(bytes_str(&text), "-----BEGIN ")) {
        err = err_set(d, ERR_INVALID, "--upstream-ca: %s holds no certificate (PEM)", path);
    }
    bytes_deinit(&text);
    return err;
}

err_code upstream_config_read(upstream_config *out, const upstream_settings *s, err_detail *d)
{
    memset(out, 0, sizeof *out);
    out->connect_timeout_s = s->connect_timeout_s > 0 ? s->connect_timeout_s : LIMIT_UPSTREAM_CONNECT_S;
    out->silence_timeout_s = s->silence_timeout_s > 0 ? s->silence_timeout_s : LIMIT_UPSTREAM_SILENCE_S;
    if (s->ca_file) {
        const err_code read = check_certificates(s->ca_file, d);
        if (read != ERR_OK) {
            return read;
        }
    }
    out->ca_file = s->ca_file ? strdup(s->ca_file) : NULL;
    err_code err = s->ca_file && !out->ca_file ? err_set(d, ERR_NOMEM, "no memory for the server") : ERR_OK;
    err = err == ERR_OK ? read_servers(out, s->servers, d) : err;
    err = err == ERR_OK ? read_keys(out, s->keys, d) : err;
    err = err == ERR_OK ? read_aliases(out, s->models, d) : err;
    err = err == ERR_OK ? read_videos(out, s->videos, d) : err;
    err = err == ERR_OK ? read_pixels(out, s->pixels, d) : err;
    err = err == ERR_OK ? upstream_rules_read(&out->rules, s->rules, d) : err;
    out->local_only = s->local_only;
    return err == ERR_OK ? check_rules(out, d) : err;
}

void upstream_config_deinit(upstream_config *c)
{
    for (size_t i = 0; i < c->n_servers; i++) {
        upstream_server *s = &c->servers[i];
        if (s->key) {
            memset(s->key, 0, strlen(s->key));
        }
        free(s->key);
        for (size_t j = 0; j < s->n_urls; j++) {
            free(s->urls[j]);
        }
    }
    for (size_t i = 0; i < c->n_aliases; i++) {
        free(c->aliases[i].name);
        free(c->aliases[i].model);
    }
    upstream_rules_deinit(&c->rules);
    free(c->ca_file);
    memset(c, 0, sizeof *c);
}
