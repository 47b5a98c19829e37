#include "model/checkpoint/gguf_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { PATH_BYTES = 4096, PART_SUFFIX = 20 }; /* "-00001-of-00003.gguf" */

struct gguf_set {
    gguf_file **parts;
    size_t n_parts;
    tensor_table tensors; /* of all parts */
};

/* The path of part no, from that of another part; false if its name does not say which part it
 * is. */
static bool part_path(char out[PATH_BYTES], const char *path, size_t no, size_t n_parts)
{
    char suffix[64];
    const size_t n = strlen(path);
    unsigned of = 0, found = 0;
    int end = 0;
    if (n < PART_SUFFIX || n >= PATH_BYTES ||
        sscanf(path + n - PART_SUFFIX, "-%5u-of-%5u.gguf%n", &found, &of, &end) != 2 || end != PART_SUFFIX ||
        of != n_parts) {
        return false;
    }
    snprintf(suffix, sizeof suffix, "-%05zu-of-%05zu.gguf", no + 1, n_parts);
    memcpy(out, path, n - PART_SUFFIX);
    memcpy(out + n - PART_SUFFIX, suffix, PART_SUFFIX + 1);
    return true;
}

/* Opens part no in its place. */
static err_code open_part(gguf_set *set, const char *path, size_t no, err_detail *detail)
{
    char other[PATH_BYTES];
    size_t part = 0, n_parts = 0;
    if (!part_path(other, path, no, set->n_parts)) {
        return err_set(
            detail, ERR_INVALID,
            "%s is one of %zu parts, but is not named NAME-00001-of-%05zu.gguf: the others cannot be found",
            path, set->n_parts, set->n_parts);
    }
    if (!file_exists(other)) {
        return err_set(detail, ERR_NOT_FOUND, "%s: part %zu of %zu is missing", other, no + 1, set->n_parts);
    }
    err_code err = gguf_file_open(&set->parts[no], other, detail);
    if (err) {
        return err;
    }
    gguf_file_part(set->parts[no], &part, &n_parts);
    if (part != no || n_parts != set->n_parts) {
        return err_set(detail, ERR_CORRUPT,
                       "%s: split.no and split.count say part %zu of %zu, its name says %zu of %zu", other,
                       part + 1, n_parts, no + 1, set->n_parts);
    }
    return ERR_OK;
}

static err_code in_two_parts(const gguf_set *set, const char *name, const char *path, err_detail *detail)
{
    size_t found[2] = {0}, n = 0;
    for (size_t i = 0; i < set->n_parts && n < 2; i++) {
        if (tensor_table_find(gguf_file_tensors(set->parts[i]), name)) {
            found[n++] = i + 1;
        }
    }
    return err_set(detail, ERR_CORRUPT, "%s: tensor %.120s is in parts %zu and %zu", path, name, found[0],
                   found[1]);
}

/* Puts the tensors of all parts together: none in two parts, and as many as the first part
 * promises. */
static err_code join_parts(gguf_set *set, const char *path, err_detail *detail)
{
    uint64_t promised = 0;
    for (size_t i = 0; i < set->n_parts; i++) {
        const tensor_table *part = gguf_file_tensors(set->parts[i]);
        for (size_t k = 0; k < part->n; k++) {
            if (!tensor_table_add(&set->tensors, &part->items[k])) {
                return err_set(detail, ERR_NOMEM, "%s: no memory for the table of tensors", path);
            }
        }
    }
    if (set->n_parts > 1 && gguf_uint(gguf_find(set->parts[0], "split.tensors.count"), &promised) &&
        promised != set->tensors.n) {
        return err_set(detail, ERR_CORRUPT, "%s: split.tensors.count is %llu, but the parts hold %zu tensors",
                       path, (unsigned long long)promised, set->tensors.n);
    }
    const named_tensor *twice = tensor_table_sort(&set->tensors);
    return twice ? in_two_parts(set, twice->name, path, detail) : ERR_OK;
}

err_code gguf_set_open(gguf_set **out, const char *path, err_detail *detail)
{
    gguf_file *named = NULL;
    size_t part = 0, n_parts = 0;
    *out = NULL;
    err_code err = gguf_file_open(&named, path, detail);
    if (err) {
        return err;
    }
    gguf_file_part(named, &part, &n_parts);
    gguf_set *set = calloc(1, sizeof *set);
    gguf_file **parts = set ? calloc(n_parts, sizeof *parts) : NULL;
    if (!parts) {
        free(set);
        gguf_file_close(named);
        return err_set(detail, ERR_NOMEM, "%s: no memory to open it", path);
    }
    *set = (gguf_set){.parts = parts, .n_parts = n_parts};
    if (n_parts == 1) {
        parts[0] = named;
    } else {
        gguf_file_close(named);
    }
    for (size_t i = 0; !err && n_parts > 1 && i < n_parts; i++) {
        err = open_part(set, path, i, detail);
    }
    err = err ? err : join_parts(set, path, detail);
    if (err) {
        gguf_set_close(set);
        return err;
    }
    *out = set;
    return ERR_OK;
}

void gguf_set_close(gguf_set *set)
{
    if (!set) {
        return;
    }
    for (size_t i = 0; i < set->n_parts; i++) {
        gguf_file_close(set->parts[i]);
    }
    tensor_table_free(&set->tensors);
    free(set->parts);
    free(set);
}

const gguf_file *gguf_set_head(const gguf_set *set)
{
    return set->parts[0];
}

const tensor_table *gguf_set_tensors(const gguf_set *set)
{
    return &set->tensors;
}
