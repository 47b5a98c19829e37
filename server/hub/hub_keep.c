/* What lies in the cache: listed, and removed. */
#define _XOPEN_SOURCE 700 /* nftw */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "server/hub/hub_cache.h"

enum { OPEN_FOLDERS = 32 };

static err_code no_memory(err_detail *detail)
{
    return err_set(detail, ERR_NOMEM, "there is not enough memory for the list of models");
}

/* ---- listing ---- */

typedef struct kept_list {
    hub_kept *items;
    size_t n, cap;
    bool failed;
} kept_list;

/* commit: named where no branch means it, else "". */
static hub_kept *add(kept_list *l, const char *repo, const char *quant, const char *commit)
{
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 16;
        hub_kept *items = realloc(l->items, cap * sizeof *items);
        if (!items) {
            l->failed = true;
            return NULL;
        }
        l->items = items;
        l->cap = cap;
    }
    hub_kept *k = &l->items[l->n++];
    *k = (hub_kept){.is_whole = true};
    snprintf(k->name, sizeof k->name, "%s%s%s%s%s", repo, quant[0] ? ":" : "", quant, commit[0] ? "@" : "",
             commit);
    return k;
}

static int64_t sum(const hub_listing *l)
{
    int64_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        n += l->files[i].size;
    }
    return n;
}

/* The models that a snapshot holds; false if there are none. */
static bool add_snapshot(kept_list *out, const char *repo, const char *snapshot, const char *commit)
{
    hub_listing l;
    hub_quant *quants = NULL;
    const err_code err = hub_listing_of_folder(&l, snapshot, NULL);
    if (err != ERR_OK) {
        out->failed |= err == ERR_NOMEM;
        return false;
    }
    const bool is_folder = hub_wants_folder(&l, "");
    const size_t n = hub_quants(&quants, &l);
    out->failed |= !quants;
    if (is_folder) {
        hub_kept *k = add(out, repo, "", commit);
        if (k) {
            k->n_bytes = sum(&l);
            snprintf(k->path, sizeof k->path, "%s", snapshot);
        }
    }
    for (size_t i = 0; i < n; i++) {
        hub_kept *k = add(out, repo, quants[i].name, commit);
        if (k) {
            k->n_bytes = quants[i].size;
            hub_path(k->path, "%s/%s", snapshot, quants[i].first->path);
        }
    }
    free(quants);
    hub_listing_deinit(&l);
    return is_folder || n > 0;
}

static void add_repo(kept_list *out, const char *cache, const char *repo)
{
    const size_t before = out->n;
    char repo_dir[HUB_FULL_PATH_MAX], path[HUB_FULL_PATH_MAX], snapshot[HUB_FULL_PATH_MAX];
    hub_cache_repo(repo_dir, cache, repo);
    hub_path(path, "%s/refs/main", repo_dir);
    bytes commit = bytes_empty(256);
    const err_code ref = file_exists(path) ? file_read(&commit, path, NULL) : ERR_NOT_FOUND;
    hub_path(snapshot, "%s/snapshots/%.64s", repo_dir, bytes_str(&commit));
    const bool is_known = ref == ERR_OK && add_snapshot(out, repo, snapshot, "");
    bytes_deinit(&commit);
    out->failed |= ref == ERR_NOMEM;
    DIR *d = NULL;
    if (!is_known) {
        hub_path(path, "%s/snapshots", repo_dir);
        d = opendir(path);
        out->failed |= !d && errno == ENOMEM;
    }
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (hub_is_hex(e->d_name, 7)) {
            hub_path(snapshot, "%s/snapshots/%s", repo_dir, e->d_name);
            (void)add_snapshot(out, repo, snapshot, e->d_name);
        }
    }
    if (d) {
        closedir(d);
    }
    if (out->n > before) {
        return;
    }
    hub_listing blobs;
    hub_path(path, "%s/blobs", repo_dir);
    const err_code err = hub_listing_of_folder(&blobs, path, NULL);
    out->failed |= err == ERR_NOMEM;
    if (err == ERR_OK) {
        hub_kept *k = blobs.n ? add(out, repo, "", "") : NULL;
        if (k) {
            k->is_whole = false;
            k->n_bytes = sum(&blobs);
            snprintf(k->path, sizeof k->path, "%s", repo_dir);
        }
        hub_listing_deinit(&blobs);
    }
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const hub_kept *)a)->name, ((const hub_kept *)b)->name);
}

err_code hub_cache_list(hub_kept **out, size_t *n, const char *cache, err_detail *detail)
{
    kept_list l = {0};
    DIR *d = opendir(cache);
    *out = NULL;
    *n = 0;
    if (!d && errno == ENOMEM) {
        return no_memory(detail);
    }
    if (!d && errno != ENOENT) {
        return err_set(detail, ERR_IO, "%.300s: %s", cache, strerror(errno));
    }
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        char repo[HUB_REPO_MAX];
        if (hub_name_of_folder(repo, e->d_name)) {
            add_repo(&l, cache, repo);
        }
    }
    if (d) {
        closedir(d);
    }
    if (l.failed) {
        free(l.items);
        return no_memory(detail);
    }
    if (l.n > 1) {
        qsort(l.items, l.n, sizeof *l.items, compare);
    }
    *out = l.items;
    *n = l.n;
    return ERR_OK;
}

/* ---- removing ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

/* Removes a folder with all that is in it; links are removed, not followed. */
static bool remove_folder(const char *path)
{
    return nftw(path, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT;
}

/* Whether a link of any snapshot leads to this blob, or may: one does perhaps where something cannot be read. */
static bool is_used(const char *dir, const char *key)
{
    char path[HUB_FULL_PATH_MAX], target[HUB_FULL_PATH_MAX];
    DIR *d = opendir(dir);
    bool used = !d && errno != ENOENT;
    for (const struct dirent *e = d ? readdir(d) : NULL; !used && e; e = readdir(d)) {
        struct stat st;
        ssize_t n = -1;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        if (!file_join(path, sizeof path, dir, e->d_name) || lstat(path, &st) != 0 ||
            (S_ISLNK(st.st_mode) && (n = readlink(path, target, sizeof target - 1)) < 0)) {
            used = true;
        } else if (S_ISDIR(st.st_mode)) {
            used = is_used(path, key);
        } else if (n >= 0) {
            target[n] = '\0';
            const char *slash = strrchr(target, '/');
            used = slash && strcmp(slash + 1, key) == 0;
        }
    }
    if (d) {
        closedir(d);
    }
    return used;
}

static err_code sweep(const char *repo_dir, int64_t *n_bytes, err_detail *detail)
{
    char blobs[HUB_FULL_PATH_MAX], snapshots[HUB_FULL_PATH_MAX], path[HUB_FULL_PATH_MAX];
    hub_listing l;
    hub_path(blobs, "%s/blobs", repo_dir);
    hub_path(snapshots, "%s/snapshots", repo_dir);
    err_code err = hub_listing_of_folder(&l, blobs, detail);
    for (size_t i = 0; !err && i < l.n; i++) {
        if (!is_used(snapshots, l.files[i].path)) {
            hub_path(path, "%s/%s", blobs, l.files[i].path);
            if (unlink(path) != 0) {
                err = err_set(detail, ERR_IO, "%.300s: %s", path, strerror(errno));
            } else {
                *n_bytes += l.files[i].size;
            }
        }
    }
    hub_listing_deinit(&l);
    return err;
}

/* Removes the links of one quantization; *is_empty: no other model is left in the snapshot. */
static err_code unlink_quant(const char *snapshot, const char *quant, bool *is_empty, err_detail *detail)
{
    hub_listing l;
    hub_selection s = {0};
    hub_quant *quants = NULL;
    err_code err = hub_listing_of_folder(&l, snapshot, detail);
    if (err) {
        return err;
    }
    err = hub_select(&s, &l, quant, NULL, detail);
    *is_empty = hub_quants(&quants, &l) == 1 && !hub_wants_folder(&l, "");
    err = !err && !quants ? no_memory(detail) : err;
    for (size_t i = 0; !err && i < s.n; i++) {
        char path[HUB_FULL_PATH_MAX];
        hub_path(path, "%s/%s", snapshot, s.files[i]->path);
        if (s.files[i] != s.vision && unlink(path) != 0) {
            err = err_set(detail, ERR_IO, "%.300s: %s", path, strerror(errno));
        }
    }
    free(quants);
    hub_selection_deinit(&s);
    hub_listing_deinit(&l);
    return err;
}

/* The snapshot that a path, found there, is in. */
static void snapshot_of(char out[HUB_FULL_PATH_MAX], const char *repo_dir, const char *path)
{
    const size_t n = strlen(repo_dir) + strlen("/snapshots/");
    snprintf(out, HUB_FULL_PATH_MAX, "%.*s", (int)(n + strcspn(path + n, "/")), path);
}

err_code hub_cache_remove(const char *cache, const hub_name *name, int64_t *n_bytes, err_detail *detail)
{
    char folder[HUB_REPO_MAX + 16], repo_dir[HUB_FULL_PATH_MAX], path[HUB_FULL_PATH_MAX];
    hub_listing blobs;
    struct stat st;
    hub_found found;
    bool is_all = !name->quant[0];
    *n_bytes = 0;
    hub_name_folder(folder, name->repo);
    hub_cache_repo(repo_dir, cache, name->repo);
    if (stat(repo_dir, &st) != 0) {
        return err_set(detail, ERR_NOT_FOUND, "there is no %s; parley list names what there is", name->repo);
    }
    if (!is_all) {
        err_code err = hub_cache_find(&found, cache, name, detail);
        if (err) {
            return detail && detail->text[0]
                       ? err
                       : err_set(detail, ERR_NOT_FOUND, "there is no %s:%s; parley list names what there is",
                                 name->repo, name->quant);
        }
        snapshot_of(path, repo_dir, found.path);
        err = unlink_quant(path, name->quant, &is_all, detail);
        if (err || !is_all) {
            return err ? err : sweep(repo_dir, n_bytes, detail);
        }
    }
    hub_path(path, "%s/blobs", repo_dir);
    if (hub_listing_of_folder(&blobs, path, NULL) == ERR_OK) {
        *n_bytes = sum(&blobs);
        hub_listing_deinit(&blobs);
    }
    if (!remove_folder(repo_dir)) {
        return err_set(detail, ERR_IO, "%.300s: %s", repo_dir, strerror(errno));
    }
    hub_path(path, "%s/.locks/%s", cache, folder);
    (void)remove_folder(path); /* of no use without the model, and of no harm */
    return ERR_OK;
}
