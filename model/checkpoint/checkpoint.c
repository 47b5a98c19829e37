#include "model/checkpoint/checkpoint.h"

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
    checkpoint_contents contents;
    char path[4096];
};

/* The one GGUF model of a folder without config.json; false, and nothing said, if there is no such
 * file. */
static bool find_gguf(char *out, size_t cap, const char *dir, size_t *n_found)
{
    char path[4096];
    DIR *d = opendir(dir);
    *n_found = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *part = strstr(e->d_name, "-of-");
        /* part 2, 3 ... */
        const bool later = part && part - e->d_name >= 6 && strncmp(part - 6, "-00001", 6) != 0;
        if (name_ends_with(e->d_name, ".gguf") && !later && !strstr(e->d_name, "mmproj") &&
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

/* The form of what is at *path, which becomes that of the file to open (in `inside`). */
static err_code find_form(const checkpoint_form **form, const char **path, char *inside, size_t cap,
                          const char *mmproj, err_detail *detail)
{
    size_t n_found = 0;
    const bool is_folder = file_join(inside, cap, *path, "config.json") && file_exists(inside);
    *form = &CHECKPOINT_GGUF;
    if (name_ends_with(*path, ".gguf")) {
        return ERR_OK;
    }
    if (!is_folder && find_gguf(inside, cap, *path, &n_found)) {
        err_code err = n_found == 1
                           ? ERR_OK
                           : err_set(detail, ERR_INVALID, "%s holds %zu GGUF models: name the file of one",
                                     *path, n_found);
        *path = inside;
        return err;
    }
    if (mmproj) {
        return err_set(detail, ERR_INVALID,
                       "%s: a vision tower in a file of its own (--mmproj) goes with a GGUF file alone",
                       mmproj);
    }
    *form = &CHECKPOINT_FOLDER;
    return ERR_OK;
}

/* Two tensors of one name: then the files are those of two models. */
static err_code sort_tensors(checkpoint *ck, err_detail *detail)
{
    const named_tensor *twice = tensor_table_sort(&ck->contents.tensors);
    if (!twice) {
        return ERR_OK;
    }
    return err_set(
        detail, ERR_CORRUPT,
        "%s: the tensors %.*s and %.*s are the same part of a model; are these the files of two models?",
        ck->path, NAME_IN_MESSAGE, twice[-1].stored, NAME_IN_MESSAGE, twice->stored);
}

err_code checkpoint_open(checkpoint **out, const char *path, const char *mmproj, err_detail *detail)
{
    char inside[4096];
    const checkpoint_form *form = NULL;
    *out = NULL;
    err_code err = find_form(&form, &path, inside, sizeof inside, mmproj, detail);
    if (err) {
        return err;
    }
    checkpoint *ck = calloc(1, sizeof *ck);
    if (!ck) {
        return err_set(detail, ERR_NOMEM, "no memory to open %s", path);
    }
    ck->form = form;
    ck->contents.memory = arena_create(ARENA_BYTES_MAX);
    if (!ck->contents.memory) {
        err = err_set(detail, ERR_NOMEM, "no memory to open %s", path);
    } else if (snprintf(ck->path, sizeof ck->path, "%s", path) >= (int)sizeof ck->path) {
        err = err_set(detail, ERR_INVALID, "the path of the model is too long");
    } else {
        err = form->open(&ck->self, &ck->contents, ck->path, mmproj, detail);
    }
    err = err ? err : sort_tensors(ck, detail);
    if (err) {
        checkpoint_close(ck);
        return err;
    }
    *out = ck;
    return ERR_OK;
}

void checkpoint_close(checkpoint *ck)
{
    if (!ck) {
        return;
    }
    ck->form->close(ck->self);
    tensor_table_free(&ck->contents.tensors);
    arena_destroy(ck->contents.memory);
    free(ck);
}

const char *checkpoint_path(const checkpoint *ck)
{
    return ck->path;
}

const checkpoint_traits *checkpoint_get_traits(const checkpoint *ck)
{
    return &ck->contents.traits;
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

const tensor_table *checkpoint_tensors(const checkpoint *ck)
{
    return &ck->contents.tensors;
}
