#include "server/hub/hub_pull.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/limits.h"
#include "server/media/fetch.h"

enum { GGUF_HEAD_BYTES = 1 << 16, GGUF_HEAD_GROWTH = 16, ROOM_BYTES = 16 << 20 };
#define LISTING_BYTES  ((size_t)64 << 20)
#define DOCUMENT_BYTES ((size_t)64 << 20)

typedef struct pull {
    const hub_place *place;
    const hub_name *name;
    const hub_pull_hooks *hooks;
    hub_client *client;
    hub_listing listing;
    hub_selection selection;
    json_doc *index;
    char repo_dir[HUB_FULL_PATH_MAX], locks_dir[HUB_FULL_PATH_MAX];
    hub_task *tasks;
    char (*paths)[HUB_PATH_MAX * 3 + HUB_REPO_MAX + HUB_HEX_MAX + 16];
    size_t n_tasks;
} pull;

/* Appends text as a part of a URL's path, whose signs stay as they are. */
static void append_escaped(char *out, size_t cap, const char *text, const char *signs)
{
    size_t n = strlen(out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        const bool plain = (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z') ||
                           strchr(signs, *c);
        n += (size_t)snprintf(out + n, cap - n, plain ? "%c" : "%%%02X", *c);
    }
}

/* "/ORG/NAME/resolve/COMMIT/PATH" */
static void path_of_file(const pull *p, char *out, size_t cap, const char *path)
{
    snprintf(out, cap, "/%s/resolve/%s/", p->name->repo, p->listing.commit);
    append_escaped(out, cap, path, "-_.~/");
}

static err_code fetch_text(const pull *p, bytes *into, const char *path, size_t first_bytes,
                           err_detail *detail)
{
    hub_task t = {.path = path, .into = into, .first_bytes = first_bytes};
    return hub_client_run(p->client, &t, 1, 1, NULL, NULL, detail);
}

static err_code fetch_document(const pull *p, bytes *into, const hub_file *f, size_t first_bytes,
                               err_detail *detail)
{
    char path[sizeof *p->paths];
    path_of_file(p, path, sizeof path, f->path);
    return fetch_text(p, into, path, first_bytes, detail);
}

/* ---- what there is, and whether it is of use ---- */

static err_code list_files(pull *p, err_detail *detail)
{
    char path[HUB_REPO_MAX + 3 * HUB_REVISION_MAX + 64];
    bytes text = bytes_empty(LISTING_BYTES);
    snprintf(path, sizeof path, "/api/models/%s/revision/", p->name->repo);
    append_escaped(path, sizeof path, p->name->revision, "-_.~"); /* a slash in it is none of the path */
    snprintf(path + strlen(path), sizeof path - strlen(path), "?blobs=true");
    err_code err = fetch_text(p, &text, path, 0, detail);
    err = err ? err : hub_listing_read(&p->listing, bytes_str(&text), text.len, detail);
    bytes_deinit(&text);
    return err;
}

static err_code read_index(pull *p, const hub_file *f, err_detail *detail)
{
    bytes text = bytes_empty(DOCUMENT_BYTES);
    err_code err = fetch_document(p, &text, f, 0, detail);
    if (!err) {
        err = json_parse(&p->index, bytes_str(&text), text.len, LIMIT_JSON_DEPTH, NULL);
        if (err == ERR_NOMEM) {
            err = err_set(detail, err, "there is not enough memory for its %s", HUB_INDEX);
        } else if (err) {
            err = err_set(detail, ERR_CORRUPT, "its %s is not JSON", HUB_INDEX);
        }
    }
    bytes_deinit(&text);
    return err;
}

/* Reads as much of a GGUF file as its header takes: mostly its vocabulary. */
static err_code check_gguf(const pull *p, const hub_file *f, err_detail *detail)
{
    bytes head = bytes_empty(DOCUMENT_BYTES);
    bool is_whole = false;
    err_code err = ERR_OK;
    for (size_t n = GGUF_HEAD_BYTES; !err && !is_whole; n *= GGUF_HEAD_GROWTH) {
        err = fetch_document(p, &head, f, n < DOCUMENT_BYTES ? n : DOCUMENT_BYTES, detail);
        err = err ? err
                  : p->hooks->check_gguf(bytes_str(&head), head.len, (uint64_t)f->size,
                                         f == p->selection.files[0], &is_whole, detail);
        is_whole = is_whole || n >= DOCUMENT_BYTES;
    }
    bytes_deinit(&head);
    return err;
}

/* Weights are the larger part by far: whether they are of use is known before. Of GGUF files those that are
 * there already have been looked at. */
static err_code check_model(const pull *p, err_detail *detail)
{
    const hub_selection *s = &p->selection;
    err_code err = ERR_OK;
    if (!s->is_gguf) {
        bytes text = bytes_empty(DOCUMENT_BYTES);
        err = fetch_document(p, &text, s->files[0], 0, detail);
        err = err ? err : p->hooks->check_config(bytes_str(&text), text.len, detail);
        bytes_deinit(&text);
        return err;
    }
    char repo_dir[HUB_FULL_PATH_MAX];
    hub_cache_repo(repo_dir, p->place->cache, p->name->repo);
    for (size_t i = 0; !err && i < s->n; i++) {
        /* the tower's architecture is its own, and it is read as its file says */
        if (s->files[i] != s->vision && !hub_blob_is_there(repo_dir, s->files[i])) {
            err = check_gguf(p, s->files[i], detail);
        }
    }
    return err;
}

static err_code choose(pull *p, err_detail *detail)
{
    const hub_file *index = hub_listing_find(&p->listing, HUB_INDEX);
    err_code err = ERR_OK;
    if (index && hub_wants_folder(&p->listing, p->name->quant)) {
        err = read_index(p, index, detail);
    }
    return err ? err
               : hub_select(&p->selection, &p->listing, p->name->quant, p->index ? json_root(p->index) : NULL,
                            detail);
}

/* ---- fetching ---- */

/* Whether there is space for it, and whether it is wanted. */
static err_code check_room(const pull *p, err_detail *detail)
{
    struct statvfs disk;
    int64_t need = 0;
    for (size_t i = 0; i < p->n_tasks; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): each task has its file */
        need += p->tasks[i].file->size - hub_blob_left_over(p->repo_dir, p->tasks[i].file);
    }
    if (need == 0) {
        return ERR_OK;
    }
    const bool knows = statvfs(p->repo_dir, &disk) == 0;
    const double room = knows ? (double)disk.f_bavail * (double)disk.f_frsize : 0.0;
    if (!knows || (double)need + ROOM_BYTES <= room) {
        return !p->hooks->may_fetch || p->hooks->may_fetch(p->hooks->ctx, p->n_tasks, need)
                   ? ERR_OK
                   : err_set(detail, ERR_CANCELLED, "nothing was fetched");
    }
    return err_set(
        detail, ERR_IO,
        "there is not enough space: %.2f GB are to be fetched, and %.200s has %.2f GB left; HF_HOME "
        "names another place",
        (double)need / 1e9, p->place->cache, room / 1e9);
}

static void tick(void *ctx)
{
    const pull *p = ctx;
    if (p->hooks->on_tick) {
        p->hooks->on_tick(p->hooks->ctx, p->tasks, p->n_tasks);
    }
}

/* A task for each file that is not there. */
static err_code make_tasks(pull *p, err_detail *detail)
{
    p->tasks = calloc(p->selection.n + 1, sizeof *p->tasks);
    p->paths = calloc(p->selection.n + 1, sizeof *p->paths);
    if (!p->tasks || !p->paths) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for the list of files");
    }
    for (size_t i = 0; i < p->selection.n; i++) {
        const hub_file *f = p->selection.files[i];
        bool is_there = hub_blob_is_there(p->repo_dir, f);
        for (size_t k = 0; k < p->n_tasks && !is_there; k++) {
            is_there = strcmp(p->tasks[k].file->key, f->key) == 0; /* two names of one content */
        }
        if (!is_there) {
            path_of_file(p, p->paths[p->n_tasks], sizeof *p->paths, f->path);
            p->tasks[p->n_tasks] = (hub_task){
                .path = p->paths[p->n_tasks], .file = f, .repo_dir = p->repo_dir, .locks_dir = p->locks_dir};
            p->n_tasks++;
        }
    }
    return ERR_OK;
}

static err_code fetch_all(pull *p, err_detail *detail)
{
    err_code err = hub_cache_prepare(p->repo_dir, p->locks_dir, p->place->cache, p->name->repo, detail);
    err = err ? err : make_tasks(p, detail);
    err = err ? err : check_room(p, detail);
    err = err ? err : hub_client_run(p->client, p->tasks, p->n_tasks, HUB_AT_ONCE, tick, p, detail);
    return err ? err : hub_cache_link(p->repo_dir, &p->listing, &p->selection, p->name->revision, detail);
}

err_code hub_pull(hub_found *out, const hub_place *place, const hub_name *name, const hub_pull_hooks *hooks,
                  err_detail *detail)
{
    pull p = {.place = place, .name = name, .hooks = hooks};
    if (place->is_offline) {
        return err_set(detail, ERR_UPSTREAM, "HF_HUB_OFFLINE is set, so nothing is fetched");
    }
    if (!fetch_start()) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory to fetch a model");
    }
    p.client = hub_client_create(place);
    err_code err = p.client ? list_files(&p, detail)
                            : err_set(detail, ERR_NOMEM, "there is not enough memory to fetch a model");
    err = err ? err : choose(&p, detail);
    err = err ? err : check_model(&p, detail);
    err = err ? err : fetch_all(&p, detail);
    err = err ? err : hub_cache_find(out, place->cache, name, detail);
    free(p.tasks);
    free(p.paths);
    json_free(p.index);
    hub_selection_deinit(&p.selection);
    hub_listing_deinit(&p.listing);
    hub_client_destroy(p.client);
    fetch_stop();
    return err;
}
