#include "server/hub/hub_listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"

enum { FOLDERS_DEEP = 8, GIT_HEX = 40, SHA256_HEX = 64, COMMIT_HEX = 7 };

static err_code no_memory(err_detail *detail)
{
    return err_set(detail, ERR_NOMEM, "there is not enough memory for the list of files");
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const hub_file *)a)->path, ((const hub_file *)b)->path);
}

static void sort(hub_listing *l)
{
    if (l->n > 1) {
        qsort(l->files, l->n, sizeof *l->files, compare);
    }
}

void hub_listing_deinit(hub_listing *l)
{
    free(l->files);
    *l = (hub_listing){0};
}

const hub_file *hub_listing_find(const hub_listing *l, const char *path)
{
    hub_file key = {.size = 0};
    const int n = snprintf(key.path, sizeof key.path, "%s", path);
    return l->n && n < (int)sizeof key.path ? bsearch(&key, l->files, l->n, sizeof *l->files, compare) : NULL;
}

/* ---- as the hub says it ---- */

static err_code read_file(hub_file *out, const json *item, err_detail *detail)
{
    const char *path = json_str(json_get(item, "rfilename"), "");
    const json *lfs = json_get(item, "lfs");
    const char *key = json_str(json_get(item, "blobId"), "");
    int64_t size = 0;
    if (!hub_path_is_safe(path)) {
        return err_set(detail, ERR_CORRUPT,
                       "the hub lists a file with a name that leads out of the model's folder or cannot be "
                       "one: \"%.100s\"; nothing is fetched",
                       path);
    }
    out->is_large = json_is(lfs, JSON_OBJECT);
    if (out->is_large) {
        key = json_str(json_get(lfs, "sha256"), json_str(json_get(lfs, "oid"), ""));
        key = strncmp(key, "sha256:", 7) == 0 ? key + 7 : key;
    }
    const json *given = out->is_large ? json_get(lfs, "size") : json_get(item, "size");
    if (!json_int(given, 0, (int64_t)1 << 50, &size) ||
        !hub_is_hex(key, out->is_large ? SHA256_HEX : GIT_HEX) ||
        (!out->is_large && strlen(key) != GIT_HEX)) {
        return err_set(detail, ERR_CORRUPT, "the hub does not say the size and the hash of %.100s", path);
    }
    snprintf(out->path, sizeof out->path, "%s", path);
    snprintf(out->key, sizeof out->key, "%s", key);
    out->size = size;
    return ERR_OK;
}

static err_code read_all(hub_listing *out, const json *root, err_detail *detail)
{
    const json *files = json_get(root, "siblings");
    const char *commit = json_str(json_get(root, "sha"), "");
    const size_t n = json_len(files);
    err_code err = ERR_OK;
    if (!json_is(files, JSON_ARRAY) || !hub_is_hex(commit, COMMIT_HEX)) {
        return err_set(detail, ERR_CORRUPT,
                       "what answers there is not a hub of models: it sends no list of files");
    }
    if (n > HUB_FILES_MAX) {
        return err_set(detail, ERR_LIMIT, "the model has %zu files; at most %d are possible", n,
                       HUB_FILES_MAX);
    }
    snprintf(out->commit, sizeof out->commit, "%s", commit);
    out->files = calloc(n + 1, sizeof *out->files);
    if (!out->files) {
        return no_memory(detail);
    }
    for (const json *item = json_child(files); !err && item; item = json_next(item)) {
        err = read_file(&out->files[out->n++], item, detail);
    }
    sort(out);
    for (size_t i = 1; !err && i < out->n; i++) {
        if (compare(&out->files[i - 1], &out->files[i]) == 0) {
            err = err_set(detail, ERR_CORRUPT, "the hub lists %.100s twice", out->files[i].path);
        }
    }
    return err;
}

err_code hub_listing_read(hub_listing *out, const char *text, size_t n, err_detail *detail)
{
    json_doc *doc = NULL;
    *out = (hub_listing){0};
    const err_code parsed = json_parse(&doc, text, n, LIMIT_JSON_DEPTH, NULL);
    if (parsed == ERR_NOMEM) {
        return no_memory(detail);
    }
    if (parsed != ERR_OK) {
        return err_set(detail, ERR_CORRUPT, "what answers there is not a hub of models: it sends no JSON");
    }
    const err_code err = read_all(out, json_root(doc), detail);
    json_free(doc);
    if (err) {
        hub_listing_deinit(out);
    }
    return err;
}

/* ---- as they lie in a folder ---- */

static bool add(hub_listing *out, size_t *cap, const char *path, int64_t size)
{
    if (out->n == *cap) {
        const size_t more = *cap ? 2 * *cap : 32;
        hub_file *files = more <= HUB_FILES_MAX * 2 ? realloc(out->files, more * sizeof *files) : NULL;
        if (!files) {
            return false;
        }
        out->files = files;
        *cap = more;
    }
    hub_file *f = &out->files[out->n++];
    *f = (hub_file){.size = size};
    snprintf(f->path, sizeof f->path, "%s", path);
    return true;
}

/* `inside`: the folder's path in the listing, "" for the whole. */
static bool walk(hub_listing *out, size_t *cap, const char *dir, const char *inside, int depth)
{
    char full[4096], path[HUB_PATH_MAX];
    struct stat st, link;
    DIR *d = opendir(dir);
    bool ok = d || errno != ENOMEM;
    for (const struct dirent *e = d ? readdir(d) : NULL; ok && e; e = readdir(d)) {
        const int n = snprintf(path, sizeof path, "%s%s%s", inside, inside[0] ? "/" : "", e->d_name);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || n >= (int)sizeof path ||
            !file_join(full, sizeof full, dir, e->d_name) || lstat(full, &link) != 0 ||
            stat(full, &st) != 0) {
            continue;
        }
        if (S_ISREG(st.st_mode)) {
            ok = add(out, cap, path, (int64_t)st.st_size);
        } else if (S_ISDIR(link.st_mode) && depth > 0) {
            ok = walk(out, cap, full, path, depth - 1);
        }
    }
    if (d) {
        closedir(d);
    }
    return ok;
}

err_code hub_listing_of_folder(hub_listing *out, const char *dir, err_detail *detail)
{
    size_t cap = 0;
    struct stat st;
    *out = (hub_listing){0};
    if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return err_set(detail, ERR_NOT_FOUND, "%s: there is no such folder", dir);
    }
    if (!walk(out, &cap, dir, "", FOLDERS_DEEP)) {
        hub_listing_deinit(out);
        return no_memory(detail);
    }
    sort(out);
    return ERR_OK;
}
