/* catalog: the models in a folder, by name, as their headers show them. One thread.
 *
 *     catalog *c; catalog_open(&c, "/models", &detail);
 *     const catalog_model *m = catalog_find(c, "Qwen/Qwen3.5-0.8B");   // m->path is what engine_options.model_dir takes
 *     catalog_refresh(c);
 *     catalog_close(c);
 *
 * Models are folders with config.json, and GGUF files, in the folder itself or one folder deeper
 * (NAME, ORG/NAME). A split model counts once; files that hold only a vision tower or draft head
 * are not models. The name of a GGUF file lacks ".gguf" and the number of its part; one that is
 * alone in its folder has the folder's name. Nothing outside the folder can be named, as a name
 * counts only if it is in the list. A damaged model is listed with the reason why it cannot be
 * loaded.
 */
#ifndef PARLEY_ENGINE_CATALOG_H
#define PARLEY_ENGINE_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

enum { CATALOG_NAME_MAX = 128 };

typedef struct catalog catalog;

typedef struct catalog_model {
    char name[CATALOG_NAME_MAX];
    char *path;
    char family[48]; /* this and what follows: zeros if it cannot be loaded */
    int32_t context;
    uint64_t n_bytes;
    bool has_vision, has_mtp;
    err_code error;            /* why it cannot be loaded; ERR_OK: no known problem */
    char reason[ERR_TEXT_MAX]; /* in words, without the path of the catalog's folder; "" */
} catalog_model;

/* Reads the folder; dir NULL: only what is offered is in it. ERR_NOT_FOUND if there is none, ERR_NOMEM. The caller closes *out. */
MUST_CHECK err_code catalog_open(catalog **out, const char *dir, err_detail *detail);
void catalog_close(catalog *c); /* NULL allowed */

/* Reads it again; headers only of what changed on the disk. What catalog_at and catalog_find gave
 * is no longer valid. If the folder is gone or there is no memory the old list stays. */
void catalog_refresh(catalog *c);

/* Adds a model that is elsewhere (a hub's cache), under a name of its own, or takes it out again; both read
 * the list anew. False without memory; then the list is as it was. */
MUST_CHECK bool catalog_offer(catalog *c, const char *name, const char *path);
void catalog_withdraw(catalog *c, const char *name);

/* In alphabetical order of names. */
size_t catalog_count(const catalog *c);
const catalog_model *catalog_at(const catalog *c, size_t index);
const catalog_model *catalog_find(const catalog *c, const char *name); /* NULL if there is none */

/* Loading the model failed: it stays listed so until its files change. */
void catalog_set_error(catalog *c, const char *name, err_code error, const char *text);

/* Fills *detail for a name that is not in the list, with those that may be meant; returns
 * ERR_NOT_FOUND. */
err_code catalog_unknown(const catalog *c, const char *name, err_detail *detail);

/* Copies text without the path of the catalog's folder, as a client may read it. */
void catalog_hide_folder(const catalog *c, char *out, size_t cap, const char *text);

#endif
