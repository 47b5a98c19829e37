#include "server/hub/hub_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define INDEX_BYTES ((size_t)64 << 20)

static err_code refused(err_detail *detail, const char *path)
{
    return err_set(detail, ERR_IO, "%.300s: %s", path, strerror(errno));
}

void hub_cache_repo(char repo_dir[HUB_FULL_PATH_MAX], const char *cache, const char *repo)
{
    char folder[HUB_REPO_MAX + 16];
    hub_name_folder(folder, repo);
    const bool fits = file_join(repo_dir, HUB_FULL_PATH_MAX, cache, folder);
    (void)fits; /* as hub_path has room */
}

/* ---- finding ---- */

/* The commit of a branch or tag, or the commit itself; ERR_NOT_FOUND if it is not known here, ERR_NOMEM. */
static err_code read_ref(char commit[HUB_HEX_MAX], const char *repo_dir, const char *revision)
{
    char path[HUB_FULL_PATH_MAX];
    bytes text = bytes_empty(256);
    hub_path(path, "%s/refs/%s", repo_dir, revision);
    const err_code err = file_exists(path) ? file_read(&text, path, NULL) : ERR_NOT_FOUND;
    if (err == ERR_OK) {
        snprintf(commit, HUB_HEX_MAX, "%.*s", (int)strcspn(bytes_str(&text), "\r\n "), bytes_str(&text));
    } else {
        snprintf(commit, HUB_HEX_MAX, "%.64s", revision);
    }
    bytes_deinit(&text);
    return err == ERR_NOMEM ? err : hub_is_hex(commit, 7) ? ERR_OK : ERR_NOT_FOUND;
}

static err_code found_files(hub_found *out, const char *snapshot, const hub_listing *l, const char *quant,
                            err_detail *detail)
{
    const bool is_folder = hub_wants_folder(l, quant);
    char index[HUB_FULL_PATH_MAX];
    json_doc *doc = NULL;
    hub_selection s = {0};
    err_code err = ERR_OK;
    if (is_folder && hub_listing_find(l, HUB_INDEX)) {
        hub_path(index, "%s/%s", snapshot, HUB_INDEX);
        err = json_parse_file(&doc, index, INDEX_BYTES, detail);
    }
    if (err) {
        return err == ERR_NOMEM || err == ERR_IO ? err : ERR_CORRUPT;
    }
    err = hub_select(&s, l, quant, doc ? json_root(doc) : NULL, detail);
    json_free(doc);
    if (is_folder) { /* something is missing: another tool was broken off */
        snprintf(out->path, sizeof out->path, "%s", snapshot);
        err = err ? err_set(detail, ERR_NOT_FOUND, "%s", "") : ERR_OK;
    } else if (!err) {
        hub_path(out->path, "%s/%s", snapshot, s.files[0]->path);
        if (s.vision) {
            hub_path(out->mmproj, "%s/%s", snapshot, s.vision->path);
        }
    }
    hub_selection_deinit(&s);
    return err;
}

err_code hub_cache_find(hub_found *out, const char *cache, const hub_name *name, err_detail *detail)
{
    char repo_dir[HUB_FULL_PATH_MAX], commit[HUB_HEX_MAX], snapshot[HUB_FULL_PATH_MAX];
    hub_listing l;
    *out = (hub_found){0};
    hub_cache_repo(repo_dir, cache, name->repo);
    err_code err = read_ref(commit, repo_dir, name->revision);
    if (!err) {
        hub_path(snapshot, "%s/snapshots/%s", repo_dir, commit);
        err = hub_listing_of_folder(&l, snapshot, NULL);
    }
    if (err) { /* what cannot be read now would be fetched once more if it were not found */
        return err == ERR_NOMEM ? err_set(detail, err, "there is not enough memory to look for the model")
                                : err_set(detail, ERR_NOT_FOUND, "%s", "");
    }
    err =
        l.n ? found_files(out, snapshot, &l, name->quant, detail) : err_set(detail, ERR_NOT_FOUND, "%s", "");
    hub_listing_deinit(&l);
    return err;
}

/* ---- writing ---- */

/* Makes a folder and those that it is in; false with errno. */
static bool make_folders(const char *path)
{
    char part[HUB_FULL_PATH_MAX];
    for (const char *at = path + 1;; at++) {
        at += strcspn(at, "/");
        snprintf(part, sizeof part, "%.*s", (int)(at - path), path);
        if (mkdir(part, 0777) != 0 && errno != EEXIST) {
            struct stat st; /* a folder on the way may be one that nobody may write to */
            const int error = errno;
            if (stat(part, &st) != 0 || !S_ISDIR(st.st_mode)) {
                errno = error;
                return false;
            }
        }
        if (!*at) {
            return true;
        }
    }
}

static err_code no_folder(err_detail *detail, const char *path)
{
    return err_set(detail, ERR_IO, "%.300s: %s; HF_HOME names another place", path, strerror(errno));
}

err_code hub_cache_prepare(char repo_dir[HUB_FULL_PATH_MAX], char locks_dir[HUB_FULL_PATH_MAX],
                           const char *cache, const char *repo, err_detail *detail)
{
    static const char *const INSIDE[] = {"blobs", "snapshots", "refs"};
    char folder[HUB_REPO_MAX + 16], path[HUB_FULL_PATH_MAX];
    hub_name_folder(folder, repo);
    hub_cache_repo(repo_dir, cache, repo);
    hub_path(locks_dir, "%s/.locks/%s", cache, folder);
    for (size_t i = 0; i < ARRAY_LEN(INSIDE); i++) {
        hub_path(path, "%s/%s", repo_dir, INSIDE[i]);
        if (!make_folders(path)) {
            return no_folder(detail, path);
        }
    }
    return make_folders(locks_dir) ? ERR_OK : no_folder(detail, locks_dir);
}

/* Opens the folder of a path below `root`, made where it is missing, without following a link on the way;
 * *name is the path's last name. -1 and errno on failure. */
static int open_parent(const char *root, const char *path, const char **name, int *depth)
{
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *depth = 0;
    for (const char *slash = strchr(path, '/'); fd >= 0 && slash; slash = strchr(path, '/')) {
        char part[256];
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        const bool made = mkdirat(fd, part, 0777) == 0 || errno == EEXIST;
        const int next = made ? openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        const int error = errno;
        close(fd);
        errno = error;
        fd = next;
        path = slash + 1;
        ++*depth;
    }
    *name = path;
    return fd;
}

/* Puts a link of this name into a folder, in place of what it may have been. */
static bool put_link(int dir, const char *name, const char *target)
{
    char before[256 + HUB_HEX_MAX], fresh[64];
    const ssize_t n = readlinkat(dir, name, before, sizeof before - 1);
    if (n >= 0 && (size_t)n == strlen(target) && memcmp(before, target, (size_t)n) == 0) {
        return true;
    }
    snprintf(fresh, sizeof fresh, ".link-%ld.incomplete", (long)getpid());
    (void)unlinkat(dir, fresh, 0);
    if (symlinkat(target, dir, fresh) != 0) {
        return false;
    }
    if (renameat(dir, fresh, dir, name) == 0) {
        return true;
    }
    const int error = errno;
    (void)unlinkat(dir, fresh, 0);
    errno = error;
    return false;
}

static err_code link_file(const char *snapshot, const hub_file *f, err_detail *detail)
{
    char target[HUB_PATH_MAX * 2 + HUB_HEX_MAX] = "../../";
    const char *name = NULL;
    int depth = 0;
    const int dir = open_parent(snapshot, f->path, &name, &depth);
    for (size_t n = strlen(target); dir >= 0 && depth > 0; depth--, n += 3) {
        memcpy(target + n, "../", 4);
    }
    snprintf(target + strlen(target), HUB_HEX_MAX + 8, "blobs/%s", f->key);
    const bool ok = dir >= 0 && put_link(dir, name, target);
    const err_code err =
        ok ? ERR_OK : err_set(detail, ERR_IO, "%.300s/%.100s: %s", snapshot, f->path, strerror(errno));
    file_close(dir);
    return err;
}

/* A small file in one step: there is the old one or the new one. */
static bool replace_file(const char *path, const char *text)
{
    char fresh[HUB_FULL_PATH_MAX];
    hub_path(fresh, "%s.%ld", path, (long)getpid());
    const int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    bool ok = fd >= 0 && file_write_all(fd, text, strlen(text)) && fsync(fd) == 0;
    ok = (fd < 0 || close(fd) == 0) && ok && rename(fresh, path) == 0;
    const int error = errno;
    if (!ok && fd >= 0) {
        (void)unlink(fresh);
    }
    errno = error;
    return ok;
}

static err_code write_ref(const char *repo_dir, const char *revision, const char *commit, err_detail *detail)
{
    char path[HUB_FULL_PATH_MAX], folder[HUB_FULL_PATH_MAX];
    hub_path(path, "%s/refs/%s", repo_dir, revision);
    hub_path(folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    return make_folders(folder) && replace_file(path, commit) ? ERR_OK : refused(detail, path);
}

err_code hub_cache_link(const char *repo_dir, const hub_listing *l, const hub_selection *s,
                        const char *revision, err_detail *detail)
{
    char snapshot[HUB_FULL_PATH_MAX];
    hub_path(snapshot, "%s/snapshots/%s", repo_dir, l->commit);
    err_code err = make_folders(snapshot) ? ERR_OK : refused(detail, snapshot);
    for (size_t i = s->n; !err && i-- > 0;) { /* the first, which is opened, at last */
        err = link_file(snapshot, s->files[i], detail);
    }
    return err || strcmp(revision, l->commit) == 0 ? err : write_ref(repo_dir, revision, l->commit, detail);
}
