#include "server/hub/hub_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { NAME_MAX_BYTES = 96, COMPONENT_MAX = 255 };

static const char PREFIX[] = "models--";

/* A part of a repository's name. "--" stands for the slash in the cache, so no part holds it. */
static bool is_part(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("-_.", text[i])) {
            return false;
        }
        if (i > 0 && text[i] == text[i - 1] && strchr("-.", text[i])) {
            return false;
        }
    }
    return n > 0 && n <= NAME_MAX_BYTES && !strchr("-.", text[0]) && !strchr("-.", text[n - 1]);
}

static bool is_repo(const char *text, size_t n)
{
    const char *slash = memchr(text, '/', n);
    return slash && is_part(text, (size_t)(slash - text)) &&
           is_part(slash + 1, n - (size_t)(slash - text) - 1);
}

static bool copy(char *out, size_t cap, const char *text, size_t n, const char *others)
{
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr(others, text[i])) {
            return false;
        }
    }
    if (n == 0 || n >= cap) {
        return false;
    }
    memcpy(out, text, n);
    out[n] = '\0';
    return true;
}

bool hub_name_parse(hub_name *out, const char *text)
{
    const size_t n_repo = strcspn(text, ":@");
    const char *rest = text + n_repo;
    *out = (hub_name){.revision = "main"};
    if (!is_repo(text, n_repo) || !copy(out->repo, sizeof out->repo, text, n_repo, "-_./")) {
        return false;
    }
    if (*rest == ':') {
        const size_t n = strcspn(++rest, "@");
        if (!copy(out->quant, sizeof out->quant, rest, n, "-_.")) {
            return false;
        }
        rest += n;
    }
    return !*rest || (copy(out->revision, sizeof out->revision, rest + 1, strlen(rest + 1), "-_./") &&
                      hub_path_is_safe(out->revision));
}

void hub_name_folder(char out[HUB_REPO_MAX + 16], const char *repo)
{
    const int n = (int)strcspn(repo, "/");
    snprintf(out, HUB_REPO_MAX + 16, "%s%.*s--%s", PREFIX, n, repo, repo + n + (repo[n] == '/'));
}

bool hub_name_of_folder(char out[HUB_REPO_MAX], const char *folder)
{
    const size_t n_prefix = sizeof PREFIX - 1;
    if (strncmp(folder, PREFIX, n_prefix) != 0) {
        return false;
    }
    const char *org = folder + n_prefix, *cut = strstr(org, "--");
    const int n = cut ? snprintf(out, HUB_REPO_MAX, "%.*s/%s", (int)(cut - org), org, cut + 2) : 0;
    return n < HUB_REPO_MAX && is_repo(out, (size_t)n);
}

bool hub_path_is_safe(const char *path)
{
    const size_t n = strlen(path);
    if (n == 0 || n >= HUB_PATH_MAX || !utf8_valid(path, n)) {
        return false;
    }
    for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
        if (*c < ' ' || *c == 0x7f || *c == '\\') {
            return false;
        }
    }
    for (const char *at = path;; at++) {
        const size_t len = strcspn(at, "/");
        if (len == 0 || len > COMPONENT_MAX || (len == 1 && at[0] == '.') ||
            (len == 2 && at[0] == '.' && at[1] == '.')) {
            return false;
        }
        at += len;
        if (!*at) {
            return true;
        }
    }
}

bool hub_is_hex(const char *text, size_t least)
{
    const size_t n = strspn(text, "0123456789abcdef");
    return text[n] == '\0' && n >= least && n < HUB_HEX_MAX;
}
