#include "model/checkpoint.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { NAME_IN_MESSAGE = 200 };
#define ARENA_BYTES_MAX ((size_t)1 << 40) /* tensors that a form converts may be all of a model */

struct checkpoint {
    const checkpoint_form *form;
    void *self;
    checkpoint_traits traits;
    arena *memory;
    checkpoint_tensor *tensors; /* [n], sorted by name once sealed */
    size_t n, cap;
    char path[4096];
};

static bool is_gguf_name(const char *path)
{
    const size_t n = strlen(path), n_suffix = strlen(".gguf");
    return n > n_suffix && strcmp(path + n - n_suffix, ".gguf") == 0;
}

/* The one GGUF model of a folder without config.json; false, and nothing said, if there is no such file. */
static bool find_gguf(char *out, size_t cap, const char *dir, size_t *n_found)
{
    char path[4096];
    DIR *d = opendir(dir);
    *n_found = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *part = strstr(e->d_name, "-of-");
        const bool later =
            part && part - e->d_name >= 6 && strncmp(part - 6, "-00001", 6) != 0; /* part 2, 3 ... */
        if (is_gguf_name(e->d_name) && !later && !strstr(e->d_name, "mmproj") &&
            file_join(path, sizeof path, dir, e->d_name)) {
            ++*n_found;
            snprintf(out, cap, "%s", path);
        }
    }
    if (d) {
        closedir(d);
    }
    return *n_found > 0;
}

err_code checkpoint_open(checkpoint **out, const char *path, err_detail *detail)
{
    return checkpoint_open_with(out, path, NULL, detail);
}

err_code checkpoint_open_with(checkpoint **out, const char *path, const char *mmproj, err_detail *detail)
{
    char inside[4096];
    size_t n_found = 0;
    *out = NULL;
    if (is_gguf_name(path)) {
        return checkpoint_gguf_open(out, path, mmproj, detail);
    }
    if (!(file_join(inside, sizeof inside, path, "config.json") && file_exists(inside)) &&
        find_gguf(inside, sizeof inside, path, &n_found)) {
        return n_found == 1 ? checkpoint_gguf_open(out, inside, mmproj, detail)
                            : err_set(detail, ERR_INVALID, "%s holds %zu GGUF models: name the file of one",
                                      path, n_found);
    }
    if (mmproj) {
        return err_set(detail, ERR_INVALID,
                       "%s: a vision tower in a file of its own (--mmproj) goes with a GGUF file alone",
                       mmproj);
    }
    return checkpoint_folder_open(out, path, detail);
}

err_code checkpoint_create(checkpoint **out, const checkpoint_form *form, void *self, const char *path,
                           err_detail *detail)
{
    *out = NULL;
    checkpoint *ck = calloc(1, sizeof *ck);
    arena *memory = ck ? arena_create(ARENA_BYTES_MAX) : NULL;
    err_code err = memory ? ERR_OK : err_set(detail, ERR_NOMEM, "no memory to open %s", path);
    if (!err && snprintf(ck->path, sizeof ck->path, "%s", path) >= (int)sizeof ck->path) {
        err = err_set(detail, ERR_INVALID, "the path of the model is too long");
    }
    if (err) {
        arena_destroy(memory);
        free(ck);
        form->close(self);
        return err;
    }
    ck->form = form;
    ck->self = self;
    ck->memory = memory;
    *out = ck;
    return ERR_OK;
}

void checkpoint_close(checkpoint *ck)
{
    if (!ck) {
        return;
    }
    ck->form->close(ck->self);
    arena_destroy(ck->memory);
    free(ck->tensors);
    free(ck);
}

arena *checkpoint_memory(checkpoint *ck)
{
    return ck->memory;
}

checkpoint_traits *checkpoint_traits_of(checkpoint *ck)
{
    return &ck->traits;
}

err_code checkpoint_add(checkpoint *ck, const char *name, const char *stored, const tensor *view,
                        err_detail *detail)
{
    if (ck->n == ck->cap) {
        const size_t cap = ck->cap ? 2 * ck->cap : 256;
        checkpoint_tensor *more = realloc(ck->tensors, cap * sizeof *more);
        if (!more) {
            return err_set(detail, ERR_NOMEM, "no memory for the table of tensors");
        }
        ck->tensors = more;
        ck->cap = cap;
    }
    ck->tensors[ck->n++] = (checkpoint_tensor){name, stored, *view};
    return ERR_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const checkpoint_tensor *)a)->name, ((const checkpoint_tensor *)b)->name);
}

/* Sorts the tensors by name. */
static err_code sort_tensors(checkpoint *ck, err_detail *detail)
{
    if (ck->n > 1) {
        qsort(ck->tensors, ck->n, sizeof *ck->tensors, compare_names);
    }
    for (size_t i = 1; i < ck->n; i++) {
        if (compare_names(&ck->tensors[i - 1], &ck->tensors[i]) == 0) {
            return err_set(
                detail, ERR_CORRUPT,
                "%s: the tensors %.*s and %.*s are the same part of a model; are these the files of two "
                "models?",
                ck->path, NAME_IN_MESSAGE, ck->tensors[i - 1].stored, NAME_IN_MESSAGE, ck->tensors[i].stored);
        }
    }
    return ERR_OK;
}

err_code checkpoint_seal(checkpoint **out, checkpoint *ck, err_code added, err_detail *detail)
{
    const err_code err = added ? added : sort_tensors(ck, detail);
    if (err) {
        checkpoint_close(ck);
        return err;
    }
    *out = ck;
    return ERR_OK;
}

const char *checkpoint_path(const checkpoint *ck)
{
    return ck->path;
}

const checkpoint_traits *checkpoint_get_traits(const checkpoint *ck)
{
    return &ck->traits;
}

json_source checkpoint_documents(const checkpoint *ck)
{
    return (json_source){ck->form->read_document, ck->self, ck->path};
}

err_code checkpoint_open_tokenizer(const checkpoint *ck, tokenizer **out, err_detail *detail)
{
    return ck->form->open_tokenizer(ck->self, out, detail);
}

err_code checkpoint_read_template(const checkpoint *ck, bytes *out, err_detail *detail)
{
    return ck->form->read_template(ck->self, out, detail);
}

/* Index of the first tensor whose name is not below `name`. */
static size_t lower_bound(const checkpoint *ck, const char *name)
{
    size_t low = 0, high = ck->n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (strcmp(ck->tensors[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const checkpoint_tensor *checkpoint_find(const checkpoint *ck, const char *name)
{
    const size_t at = lower_bound(ck, name);
    return at < ck->n && strcmp(ck->tensors[at].name, name) == 0 ? &ck->tensors[at] : NULL;
}

const checkpoint_tensor *checkpoint_first(const checkpoint *ck, const char *prefix)
{
    const size_t at = lower_bound(ck, prefix);
    return at < ck->n && strncmp(ck->tensors[at].name, prefix, strlen(prefix)) == 0 ? &ck->tensors[at] : NULL;
}

size_t checkpoint_count(const checkpoint *ck)
{
    return ck->n;
}

const checkpoint_tensor *checkpoint_at(const checkpoint *ck, size_t index)
{
    return &ck->tensors[index];
}

static bool find_view(void *ctx, const char *name, tensor *out)
{
    const checkpoint_tensor *t = checkpoint_find(ctx, name);
    if (t) {
        *out = t->view;
    }
    return t != NULL;
}

tensor_source checkpoint_tensors(const checkpoint *ck)
{
    return (tensor_source){find_view, (void *)(uintptr_t)ck};
}
