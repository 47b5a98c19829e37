#include "engine/catalog.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/edit_distance.h"
#include "base/utf8.h"
#include "model/probe.h"

enum { PATH_BYTES = 4096, PART_CHARS = 15 /* "-00001-of-00003" */, SUGGESTIONS = 3 };

/* What changes when a model's files do. */
typedef struct stamp {
    int64_t folder_ns, file_ns, n_bytes;
} stamp;

typedef struct entry {
    catalog_model m; /* the public part first: catalog_at gives it away */
    stamp seen;
    bool failed_probe; /* its error may be gone without a new stamp: a file that grows */
} entry;

typedef struct entry_list {
    entry *items;
    size_t n, cap;
    bool failed; /* no memory */
} entry_list;

typedef struct offer {
    char name[CATALOG_NAME_MAX];
    char path[PATH_BYTES];
} offer;

struct catalog {
    char dir[PATH_BYTES]; /* "": none */
    offer *offers;
    size_t n_offers;
    entry_list list; /* sorted by name */
};

static void drop(entry_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->items[i].m.path);
    }
    free(l->items);
    *l = (entry_list){0};
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->m.name, ((const entry *)b)->m.name);
}

/* ---- names ---- */

static bool is_gguf(const char *name)
{
    const size_t n = strlen(name);
    return n > strlen(".gguf") && strcmp(name + n - strlen(".gguf"), ".gguf") == 0;
}

static bool are_digits(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return false;
        }
    }
    return true;
}

/* The beginning of "-0000N-of-0000M" at the end of a name of n bytes without ".gguf"; NULL if it is not that of a part. */
static const char *part_of(const char *name, size_t n)
{
    const char *part = n > PART_CHARS ? name + n - PART_CHARS : NULL;
    const bool is_part = part && part[0] == '-' && are_digits(part + 1, 5) &&
                         strncmp(part + 6, "-of-", 4) == 0 && are_digits(part + 10, 5);
    return is_part ? part : NULL;
}

/* A GGUF file that stands for a model: no vision tower, and of a model in parts the first. */
static bool is_model_file(const char *name)
{
    if (!is_gguf(name) || strstr(name, "mmproj")) {
        return false;
    }
    const char *part = part_of(name, strlen(name) - strlen(".gguf"));
    return !part || strncmp(part, "-00001-", 7) == 0;
}

/* "NAME" of "NAME-00001-of-00003.gguf". */
static int stem_length(const char *name)
{
    const size_t n = strlen(name) - strlen(".gguf");
    const char *part = part_of(name, n);
    return (int)(part ? part - name : (ptrdiff_t)n);
}

/* Names go into logs, headers of requests and JSON. */
static bool is_plain(const char *name)
{
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        if (*p < ' ' || *p == 0x7f) {
            return false;
        }
    }
    return utf8_valid(name, strlen(name));
}

/* ---- looking ---- */

static int64_t nanoseconds(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static stamp stamp_of(const char *path, bool is_file)
{
    char other[PATH_BYTES];
    struct stat st;
    stamp s = {0};
    if (is_file) {
        const char *slash = strrchr(path, '/');
        snprintf(other, sizeof other, "%.*s", (int)(slash - path),
                 path); /* a vision tower may come beside it */
        s.folder_ns = stat(other, &st) == 0 ? nanoseconds(&st.st_mtim) : 0;
        snprintf(other, sizeof other, "%s", path);
    } else {
        s.folder_ns = stat(path, &st) == 0 ? nanoseconds(&st.st_mtim) : 0;
        if (!file_join(other, sizeof other, path, "config.json")) {
            return s;
        }
    }
    if (stat(other, &st) == 0) {
        s.file_ns = nanoseconds(&st.st_mtim);
        s.n_bytes = (int64_t)st.st_size;
    }
    return s;
}

void catalog_hide_folder(const catalog *c, char *out, size_t cap, const char *text)
{
    const size_t n = strlen(c->dir);
    size_t used = 0;
    while (*text && used + 1 < cap) {
        if (n > 0 && strncmp(text, c->dir, n) == 0 && text[n] == '/') {
            text += n + 1;
        } else {
            out[used++] = *text++;
        }
    }
    out[used] = '\0';
}

static void set_error(const catalog *c, entry *e, err_code error, const char *text)
{
    e->m.error = error;
    catalog_hide_folder(c, e->m.reason, sizeof e->m.reason, text);
}

/* Fills e from the headers; false if it is no model of its own. */
static bool look(const catalog *c, entry *e)
{
    model_probe g;
    err_detail d = {0};
    const err_code err = model_probe_at(&g, e->m.path, &d);
    if (err != ERR_OK) {
        e->failed_probe = true;
        set_error(c, e, err, d.text);
        log_info("mod", "%s cannot be loaded: %s", e->m.name, d.text);
        return true;
    }
    memcpy(e->m.family, g.family, sizeof e->m.family);
    e->m.context = g.context;
    e->m.n_bytes = g.n_bytes;
    e->m.has_vision = g.has_vision;
    e->m.has_mtp = g.has_mtp;
    return !g.is_side_file;
}

static bool same_stamp(const stamp *a, const stamp *b)
{
    return a->folder_ns == b->folder_ns && a->file_ns == b->file_ns && a->n_bytes == b->n_bytes;
}

/* What was known of these files, if they did not change. */
static const entry *known(const catalog *c, const char *path, const stamp *s)
{
    for (size_t i = 0; i < c->list.n; i++) {
        const entry *e = &c->list.items[i];
        if (strcmp(e->m.path, path) == 0) {
            return same_stamp(&e->seen, s) && !e->failed_probe ? e : NULL;
        }
    }
    return NULL;
}

static bool grow(entry_list *l)
{
    if (l->n < l->cap) {
        return true;
    }
    const size_t cap = l->cap ? 2 * l->cap : 16;
    entry *more = realloc(l->items, cap * sizeof *more);
    if (more) {
        l->items = more;
        l->cap = cap;
    }
    return more != NULL;
}

static void add(const catalog *c, entry_list *fresh, const char *name, const char *path, bool is_file)
{
    if (!is_plain(name) || strlen(name) >= CATALOG_NAME_MAX || fresh->n == LIMIT_CATALOG_MODELS) {
        log_warn("mod",
                 "a model in %s is left out: its name is too long or unreadable, or there are more than %d",
                 c->dir, LIMIT_CATALOG_MODELS);
        return;
    }
    entry e = {.seen = stamp_of(path, is_file)};
    const entry *old = known(c, path, &e.seen);
    if (old) {
        e = *old;
    }
    snprintf(e.m.name, sizeof e.m.name, "%s", name);
    e.m.path = strdup(path);
    if (!e.m.path || !grow(fresh)) {
        free(e.m.path);
        fresh->failed = true;
    } else if (old || look(c, &e)) {
        fresh->items[fresh->n++] = e;
    } else {
        free(e.m.path);
    }
}

/* ---- walking ---- */

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static size_t count_files(const char *dir)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        n += e->d_name[0] != '.' && is_model_file(e->d_name);
    }
    if (d) {
        closedir(d);
    }
    return n;
}

/* Reads `dir`, whose models are named PREFIX/...; depth: folders below it that may hold some. */
static void walk(const catalog *c, entry_list *fresh, const char *dir, const char *prefix, int depth)
{
    char path[PATH_BYTES], config[PATH_BYTES], name[2 * CATALOG_NAME_MAX];
    const size_t n_files = count_files(dir);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *slash = prefix[0] ? "/" : "";
        if (e->d_name[0] == '.' || !file_join(path, sizeof path, dir, e->d_name)) {
            continue;
        }
        if (is_model_file(e->d_name) && file_exists(path)) {
            if (n_files == 1 && prefix[0]) {
                snprintf(name, sizeof name, "%s", prefix);
            } else {
                snprintf(name, sizeof name, "%s%s%.*s", prefix, slash, stem_length(e->d_name), e->d_name);
            }
            add(c, fresh, name, path, true);
        } else if (depth > 0 && is_directory(path)) {
            snprintf(name, sizeof name, "%s%s%s", prefix, slash, e->d_name);
            if (file_join(config, sizeof config, path, "config.json") && file_exists(config)) {
                add(c, fresh, name, path, false);
            } else {
                walk(c, fresh, path, name, depth - 1);
            }
        }
    }
    if (d) {
        closedir(d);
    }
}

/* A folder and a file may have one name: then the file keeps its ".gguf". */
static void part_names(entry_list *l)
{
    for (size_t i = 1; i < l->n; i++) {
        if (compare_names(&l->items[i - 1], &l->items[i]) == 0) {
            catalog_model *m = is_gguf(l->items[i].m.path) ? &l->items[i].m : &l->items[i - 1].m;
            const size_t n = strlen(m->name);
            snprintf(m->name + n, sizeof m->name - n, ".gguf");
        }
    }
    if (l->n > 1) {
        qsort(l->items, l->n, sizeof *l->items, compare_names);
    }
}

/* ---- the list ---- */

static err_code read_folder(catalog *c, err_detail *detail)
{
    entry_list fresh = {0};
    if (c->dir[0] && !is_directory(c->dir)) {
        return err_set(detail, ERR_NOT_FOUND, "--models-dir %s: there is no such folder", c->dir);
    }
    if (c->dir[0]) {
        walk(c, &fresh, c->dir, "", 2);
    }
    for (size_t i = 0; i < c->n_offers; i++) {
        if (is_directory(c->offers[i].path) || file_exists(c->offers[i].path)) {
            add(c, &fresh, c->offers[i].name, c->offers[i].path, is_gguf(c->offers[i].path));
        }
    }
    if (fresh.failed) {
        drop(&fresh);
        return err_set(detail, ERR_NOMEM, "there is not enough memory for the list of models");
    }
    if (fresh.n > 1) {
        qsort(fresh.items, fresh.n, sizeof *fresh.items, compare_names);
    }
    part_names(&fresh);
    drop(&c->list);
    c->list = fresh;
    return ERR_OK;
}

err_code catalog_open(catalog **out, const char *dir, err_detail *detail)
{
    *out = NULL;
    catalog *c = calloc(1, sizeof *c);
    if (!c) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for the list of models");
    }
    char *full = dir ? realpath(dir, NULL) : NULL;
    err_code err = !dir || (full && strlen(full) < sizeof c->dir)
                       ? ERR_OK
                       : err_set(detail, ERR_NOT_FOUND, "--models-dir %s: there is no such folder", dir);
    if (!err && full) {
        memcpy(c->dir, full, strlen(full) + 1);
        err = read_folder(c, detail);
    }
    free(full);
    if (err) {
        catalog_close(c);
        return err;
    }
    *out = c;
    return ERR_OK;
}

void catalog_close(catalog *c)
{
    if (c) {
        drop(&c->list);
        free(c->offers);
        free(c);
    }
}

static size_t find_offer(const catalog *c, const char *name)
{
    size_t i = 0;
    while (i < c->n_offers && strcmp(c->offers[i].name, name) != 0) {
        i++;
    }
    return i;
}

bool catalog_offer(catalog *c, const char *name, const char *path)
{
    const size_t at = find_offer(c, name);
    if (strlen(name) >= CATALOG_NAME_MAX || strlen(path) >= PATH_BYTES) {
        return false;
    }
    if (at == c->n_offers) {
        offer *more = realloc(c->offers, (at + 1) * sizeof *more);
        if (!more) {
            return false;
        }
        c->offers = more;
        c->n_offers++;
    }
    snprintf(c->offers[at].name, sizeof c->offers[at].name, "%s", name);
    snprintf(c->offers[at].path, sizeof c->offers[at].path, "%s", path);
    catalog_refresh(c);
    return true;
}

void catalog_withdraw(catalog *c, const char *name)
{
    const size_t at = find_offer(c, name);
    if (at < c->n_offers) {
        c->n_offers--;
        memmove(&c->offers[at], &c->offers[at + 1], (c->n_offers - at) * sizeof *c->offers);
        catalog_refresh(c);
    }
}

void catalog_refresh(catalog *c)
{
    err_detail d = {0};
    if (read_folder(c, &d) != ERR_OK) {
        log_warn("mod", "%s", d.text);
    }
}

size_t catalog_count(const catalog *c)
{
    return c->list.n;
}

const catalog_model *catalog_at(const catalog *c, size_t index)
{
    return &c->list.items[index].m;
}

static entry *find(const catalog *c, const char *name)
{
    for (size_t i = 0; i < c->list.n; i++) {
        if (strcmp(c->list.items[i].m.name, name) == 0) {
            return &c->list.items[i];
        }
    }
    return NULL;
}

const catalog_model *catalog_find(const catalog *c, const char *name)
{
    const entry *e = find(c, name);
    return e ? &e->m : NULL;
}

void catalog_set_error(catalog *c, const char *name, err_code error, const char *text)
{
    entry *e = find(c, name);
    if (e) {
        set_error(c, e, error, text);
    }
}

/* The shorter of the distances to ORG/NAME and to NAME. */
static int distance(const char *name, const char *known_name)
{
    const char *slash = strrchr(known_name, '/');
    const int whole = edit_distance_between(name, known_name);
    const int last = slash ? edit_distance_between(name, slash + 1) : whole;
    return last < whole ? last : whole;
}

err_code catalog_unknown(const catalog *c, const char *name, err_detail *detail)
{
    const char *best[SUGGESTIONS] = {0};
    int distances[SUGGESTIONS];
    char text[ERR_TEXT_MAX] = "";
    for (size_t i = 0; i < c->list.n; i++) {
        const char *candidate = c->list.items[i].m.name;
        int d = distance(name, candidate);
        for (size_t k = 0; k < SUGGESTIONS; k++) {
            if (!best[k] || d < distances[k]) {
                const char *moved = best[k];
                const int moved_distance = moved ? distances[k] : 0;
                best[k] = candidate;
                distances[k] = d;
                if (!moved) {
                    break;
                }
                candidate = moved;
                d = moved_distance;
            }
        }
    }
    for (size_t k = 0, used = 0; k < SUGGESTIONS && best[k] && used < sizeof text; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", k ? ", " : "; the nearest are ",
                                 best[k]);
    }
    return err_set(detail, ERR_NOT_FOUND, "there is no model %.120s, neither as a path nor in %.120s%s", name,
                   c->dir, c->list.n ? text : ", which holds none");
}
