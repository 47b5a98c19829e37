#include "model/checkpoint/tensor_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/byte_order.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/size.h"

enum { MAX_SHARDS = 4096, PREFIX_BYTES = 8, NAME_IN_MESSAGE = 160 };

struct tensor_file {
    file_map map;
    arena *names;
    tensor_table tensors;
};

/* Its tensors are those of its files, whose names and data they point to. */
struct tensor_set {
    tensor_file *files[MAX_SHARDS];
    size_t n_files;
    tensor_table tensors;
};

/* Every type that the format knows; bits, as some are smaller than a byte. */
static const struct {
    const char *name;
    dtype type;
    unsigned bits;
} TYPES[] = {
    {"F32", DTYPE_F32, 32},      {"BF16", DTYPE_BF16, 16},    {"F16", DTYPE_F16, 16},
    {"F64", DTYPE_OTHER, 64},    {"I64", DTYPE_OTHER, 64},    {"U64", DTYPE_OTHER, 64},
    {"I32", DTYPE_OTHER, 32},    {"U32", DTYPE_OTHER, 32},    {"I16", DTYPE_OTHER, 16},
    {"U16", DTYPE_OTHER, 16},    {"I8", DTYPE_OTHER, 8},      {"U8", DTYPE_OTHER, 8},
    {"BOOL", DTYPE_OTHER, 8},    {"F8_E4M3", DTYPE_OTHER, 8}, {"F8_E5M2", DTYPE_OTHER, 8},
    {"F8_E8M0", DTYPE_OTHER, 8}, {"F4", DTYPE_OTHER, 4},      {"F6_E2M3", DTYPE_OTHER, 6},
    {"F6_E3M2", DTYPE_OTHER, 6},
};

static err_code no_memory(err_detail *detail, const char *path)
{
    err_set(detail, ERR_NOMEM, "%s: no memory for the list of tensors", path);
    return ERR_NOMEM;
}

/* What a header entry is read from, for messages. */
typedef struct reading {
    const char *path;
    err_detail *detail;
} reading;

static err_code fault(const reading *r, const char *name, const char *what)
{
    return err_set(r->detail, ERR_CORRUPT, "%s: tensor %.*s: %s", r->path, NAME_IN_MESSAGE, name, what);
}

/* A JSON integer 0 .. 2^53 as a size. */
static bool json_size(const json *v, size_t *out)
{
    int64_t n = 0;
    if (!json_int(v, 0, (int64_t)1 << 53, &n)) {
        return false;
    }
    *out = (size_t)n;
    return true;
}

/* dtype and shape of a header entry; *n_bytes becomes the size they imply. */
static err_code read_shape(named_tensor *e, const json *v, size_t *n_bytes, const reading *r)
{
    const char *type_name = json_str(json_get(v, "dtype"), "");
    const json *shape = json_get(v, "shape");
    size_t n = 1, t = 0, bits = 0;
    while (t < ARRAY_LEN(TYPES) && strcmp(TYPES[t].name, type_name) != 0) {
        t++;
    }
    if (t == ARRAY_LEN(TYPES)) {
        return fault(r, e->name, "its \"dtype\" is missing or unknown");
    }
    e->type_name = TYPES[t].name;
    e->view.type = TYPES[t].type;
    if (!json_is(shape, JSON_ARRAY)) {
        return fault(r, e->name, "its \"shape\" is missing");
    }
    if (json_len(shape) > TENSOR_MAX_DIMS) {
        return fault(r, e->name, "it has more than 5 dimensions");
    }
    for (const json *d = json_child(shape); d; d = json_next(d)) {
        size_t *dim = &e->view.dims[e->view.n_dims++];
        if (!json_size(d, dim) || !size_mul(&n, n, *dim)) {
            return fault(r, e->name, "its \"shape\" is no list of possible sizes");
        }
    }
    if (!size_mul(&bits, n, TYPES[t].bits) || bits % 8 != 0) {
        return fault(r, e->name, "its \"shape\" is no list of possible sizes");
    }
    *n_bytes = bits / 8;
    return ERR_OK;
}

/* One member of the header, {dtype, shape, data_offsets}; data [n_data] follows the header. */
static err_code read_entry(named_tensor *e, const json *v, const uint8_t *data, size_t n_data,
                           const reading *r)
{
    const json *offsets = json_get(v, "data_offsets");
    size_t begin = 0, end = 0, n_bytes = 0;
    if (!json_is(v, JSON_OBJECT)) {
        return fault(r, e->name, "its entry is no object");
    }
    err_code err = read_shape(e, v, &n_bytes, r);
    if (err) {
        return err;
    }
    if (!json_is(offsets, JSON_ARRAY) || json_len(offsets) != 2 || !json_size(json_child(offsets), &begin) ||
        !json_size(json_next(json_child(offsets)), &end)) {
        return fault(r, e->name, "its \"data_offsets\" are not two positions");
    }
    if (begin > end) {
        return fault(r, e->name, "its data ends before it begins");
    }
    if (end > n_data) {
        return err_set(r->detail, ERR_CORRUPT,
                       "%s: tensor %.*s: its data ends at byte %zu, but the file holds %zu (truncated?)",
                       r->path, NAME_IN_MESSAGE, e->name, end, n_data);
    }
    if (end - begin != n_bytes) {
        return err_set(r->detail, ERR_CORRUPT,
                       "%s: tensor %.*s: type and shape need %zu bytes, but its data_offsets span %zu",
                       r->path, NAME_IN_MESSAGE, e->name, n_bytes, end - begin);
    }
    e->view.data = data + begin;
    e->view.bytes = n_bytes;
    /* TRAP: kernels read 16-bit elements; an odd header length would leave every one of them
     * unaligned. */
    if (dtype_bytes(e->view.type) > 1 && (uintptr_t)e->view.data % 2 != 0) {
        return fault(r, e->name, "its data begins at an odd position");
    }
    return ERR_OK;
}

static int compare_begin(const void *a, const void *b)
{
    const tensor *x = &((const named_tensor *)a)->view, *y = &((const named_tensor *)b)->view;
    const uintptr_t x_at = (uintptr_t)x->data, y_at = (uintptr_t)y->data;
    if (x_at != y_at) {
        return x_at < y_at ? -1 : 1;
    }
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes; /* empty ones first */
}

/* The ranges must tile the data: no overlap, no gap, no rest. Leaves the tensors sorted by name. */
static err_code check_layout(tensor_table *all, const uint8_t *data, size_t n_data, const reading *r)
{
    size_t at = 0;
    if (all->n > 1) {
        qsort(all->items, all->n, sizeof *all->items, compare_begin);
    }
    for (size_t i = 0; i < all->n; i++) {
        const named_tensor *e = &all->items[i];
        const size_t begin = (size_t)((const uint8_t *)e->view.data - data);
        if (begin < at) {
            return err_set(r->detail, ERR_CORRUPT, "%s: tensor %.*s overlaps tensor %.*s", r->path,
                           NAME_IN_MESSAGE, e->name, NAME_IN_MESSAGE, e[-1].name);
        }
        if (begin > at) {
            return fault(r, e->name, "there is a gap before its data");
        }
        at = begin + e->view.bytes;
    }
    if (at != n_data) {
        return err_set(r->detail, ERR_CORRUPT, "%s: %zu bytes after the last tensor belong to none", r->path,
                       n_data - at);
    }
    const named_tensor *twice = tensor_table_sort(all);
    return twice ? fault(r, twice->name, "the name occurs twice") : ERR_OK;
}

/* Reads header and entries of the mapped file. */
static err_code read_header(tensor_file *f, const reading *r)
{
    json_doc *doc = NULL;
    if (f->map.bytes < PREFIX_BYTES) {
        return err_set(r->detail, ERR_CORRUPT, "%s: %zu bytes are too few for a safetensors file", r->path,
                       f->map.bytes);
    }
    const uint64_t header = little_endian(f->map.data, PREFIX_BYTES);
    if (header > LIMIT_SAFETENSORS_HEADER_BYTES || header > f->map.bytes - PREFIX_BYTES) {
        return err_set(r->detail, ERR_CORRUPT,
                       "%s: the header should be %llu bytes long, but the file holds %zu", r->path,
                       (unsigned long long)header, f->map.bytes);
    }
    const uint8_t *data = f->map.data + PREFIX_BYTES + header;
    size_t n_data = f->map.bytes - PREFIX_BYTES - (size_t)header;
    err_code err = json_parse(&doc, (const char *)f->map.data + PREFIX_BYTES, (size_t)header,
                              LIMIT_JSON_DEPTH, r->detail);
    if (err) {
        return err_prefix(r->detail, err == ERR_INVALID ? ERR_CORRUPT : err, "%s: header", r->path);
    }
    const json *root = json_root(doc);
    if (!json_is(root, JSON_OBJECT)) {
        err = err_set(r->detail, ERR_CORRUPT, "%s: the header is not a JSON object", r->path);
        goto out;
    }
    for (const json *v = json_child(root); v; v = json_next(v)) {
        const char *key = json_key(v), *name = arena_strdup(f->names, key, strlen(key));
        named_tensor e = {.name = name, .stored = name};
        if (strcmp(key, "__metadata__") == 0) {
            continue;
        }
        err = name ? read_entry(&e, v, data, n_data, r) : no_memory(r->detail, r->path);
        if (!err && !tensor_table_add(&f->tensors, &e)) {
            err = no_memory(r->detail, r->path);
        }
        if (err) {
            goto out;
        }
    }
    err = check_layout(&f->tensors, data, n_data, r);
out:
    json_free(doc);
    return err;
}

err_code tensor_file_open(tensor_file **out, const char *path, err_detail *detail)
{
    *out = NULL;
    tensor_file *f = calloc(1, sizeof *f);
    if (f) {
        f->names = arena_create(SIZE_MAX / 2);
    }
    err_code err = f && f->names ? file_map_open(&f->map, path, detail) : no_memory(detail, path);
    err = err ? err : read_header(f, &(reading){path, detail});
    if (err) {
        tensor_file_close(f);
        return err;
    }
    *out = f;
    return ERR_OK;
}

void tensor_file_close(tensor_file *f)
{
    if (!f) {
        return;
    }
    tensor_table_free(&f->tensors);
    arena_destroy(f->names);
    file_map_close(&f->map);
    free(f);
}

const tensor_table *tensor_file_tensors(const tensor_file *f)
{
    return &f->tensors;
}

/* ---- the files of a checkpoint ---- */

static err_code add_file(tensor_set *set, const char *path, err_detail *detail)
{
    if (set->n_files == MAX_SHARDS) {
        return err_set(detail, ERR_LIMIT, "%s: more than %d files", path, MAX_SHARDS);
    }
    err_code err = tensor_file_open(&set->files[set->n_files], path, detail);
    set->n_files += err == ERR_OK;
    return err;
}

/* Takes over every tensor of the file that was opened last. */
static err_code add_last(tensor_set *set, err_detail *detail)
{
    const tensor_table *from = &set->files[set->n_files - 1]->tensors;
    for (size_t i = 0; i < from->n; i++) {
        if (!tensor_table_add(&set->tensors, &from->items[i])) {
            return no_memory(detail, "model");
        }
    }
    return ERR_OK;
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A shard's name must stay inside the folder. */
static bool safe_name(const char *name)
{
    return name[0] != '\0' && name[0] != '/' && !strstr(name, "..");
}

/* Opens each file that the weight_map mentions once; names [n] receives them in order (sorted,
 * without repeats). */
static err_code open_shards(tensor_set *set, const char **names, size_t n_map, const char *dir,
                            size_t *n_names, err_detail *detail)
{
    char path[4096];
    size_t n = 0;
    qsort(names, n_map, sizeof *names, compare_text);
    for (size_t i = 0; i < n_map; i++) {
        if (n > 0 && strcmp(names[n - 1], names[i]) == 0) {
            continue;
        }
        names[n++] = names[i];
        if (!file_join(path, sizeof path, dir, names[i])) {
            return err_set(detail, ERR_INVALID, "the path of a shard is too long");
        }
        err_code err = add_file(set, path, detail);
        if (err) {
            return err;
        }
    }
    *n_names = n;
    return ERR_OK;
}

static err_code open_index(tensor_set *set, const char *dir, const char *index_path, err_detail *detail)
{
    json_doc *doc = NULL;
    const char **names = NULL;
    size_t n_map = 0, n_names = 0, i = 0;
    err_code err = json_parse_file(&doc, index_path, LIMIT_SAFETENSORS_HEADER_BYTES, detail);
    if (err) {
        return err;
    }
    const json *map = json_get(json_root(doc), "weight_map");
    n_map = json_is(map, JSON_OBJECT) ? json_len(map) : 0;
    names = calloc(n_map + 1, sizeof *names);
    err = names ? ERR_OK : no_memory(detail, index_path);
    if (!err && n_map == 0) {
        err = err_set(detail, ERR_CORRUPT, "%s: \"weight_map\" is missing or empty", index_path);
    }
    for (const json *v = json_child(map); !err && v; v = json_next(v)) {
        names[i] = json_str(v, "");
        if (!safe_name(names[i++])) {
            err = err_set(detail, ERR_CORRUPT, "%s: tensor %.*s: its file name is not acceptable", index_path,
                          NAME_IN_MESSAGE, json_key(v));
        }
    }
    err = err ? err : open_shards(set, names, n_map, dir, &n_names, detail);
    for (const json *v = json_child(map); !err && v; v = json_next(v)) {
        const char *shard = json_str(v, "");
        const char **at = bsearch(&shard, names, n_names, sizeof *names, compare_text);
        const named_tensor *e = tensor_table_find(&set->files[at - names]->tensors, json_key(v));
        if (!e) {
            err = err_set(detail, ERR_CORRUPT, "%s: tensor %.*s is not in %s", index_path, NAME_IN_MESSAGE,
                          json_key(v), shard);
        } else if (!tensor_table_add(&set->tensors, e)) {
            err = no_memory(detail, index_path);
        }
    }
    free(names);
    json_free(doc);
    return err;
}

/* A name that two files define is a fault. */
static err_code sort_tensors(tensor_set *set, const char *dir, err_detail *detail)
{
    const named_tensor *twice = tensor_table_sort(&set->tensors);
    return twice ? err_set(detail, ERR_CORRUPT, "%s: tensor %.*s is in two files", dir, NAME_IN_MESSAGE,
                           twice->name)
                 : ERR_OK;
}

/* A draft head that was published by itself has names without their beginning. */
static err_code name_draft_head(tensor_file *f, const char *path, err_detail *detail)
{
    static const char prefix[] = "mtp.";
    const size_t n = tensor_table_find(&f->tensors, "fc.weight") ? f->tensors.n : 0;
    for (size_t i = 0; i < n; i++) { /* the order stays */
        named_tensor *e = &f->tensors.items[i];
        const size_t n_bytes = sizeof prefix + strlen(e->name);
        char *name = arena_alloc(f->names, n_bytes);
        if (!name) {
            return no_memory(detail, path);
        }
        snprintf(name, n_bytes, "%s%s", prefix, e->name);
        e->name = e->stored = name;
    }
    return ERR_OK;
}

/* The draft head's file, where a checkpoint keeps it apart. */
static err_code open_side_file(tensor_set *set, const char *dir, err_detail *detail)
{
    static const char *const sides[] = {"model-mtp.safetensors", "mtp/weights.safetensors",
                                        "mtp/model.safetensors"};
    char path[4096];
    if (tensor_table_find(&set->tensors, "mtp.fc.weight")) {
        return ERR_OK;
    }
    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        if (file_join(path, sizeof path, dir, sides[i]) && file_exists(path)) {
            err_code err = add_file(set, path, detail);
            err = err ? err : name_draft_head(set->files[set->n_files - 1], path, detail);
            err = err ? err : add_last(set, detail);
            return err ? err : sort_tensors(set, dir, detail);
        }
    }
    return ERR_OK;
}

err_code tensor_set_open(tensor_set **out, const char *dir, err_detail *detail)
{
    char path[4096], index_path[4096];
    *out = NULL;
    if (!file_join(path, sizeof path, dir, "model.safetensors") ||
        !file_join(index_path, sizeof index_path, dir, "model.safetensors.index.json")) {
        return err_set(detail, ERR_INVALID, "the path of the model folder is too long");
    }
    tensor_set *set = calloc(1, sizeof *set);
    if (!set) {
        return no_memory(detail, dir);
    }
    err_code err = ERR_OK;
    if (file_exists(index_path)) {
        err = open_index(set, dir, index_path, detail);
    } else if (file_exists(path)) {
        err = add_file(set, path, detail);
        err = err ? err : add_last(set, detail);
    } else {
        err = err_set(detail, ERR_NOT_FOUND,
                      "%s holds neither model.safetensors nor model.safetensors.index.json: the weights are "
                      "missing, or of weights in several files the index",
                      dir);
    }
    err = err ? err : sort_tensors(set, dir, detail);
    err = err ? err : open_side_file(set, dir, detail);
    if (err) {
        tensor_set_close(set);
        return err;
    }
    *out = set;
    return ERR_OK;
}

void tensor_set_close(tensor_set *set)
{
    if (!set) {
        return;
    }
    for (size_t i = 0; i < set->n_files; i++) {
        tensor_file_close(set->files[i]);
    }
    tensor_table_free(&set->tensors);
    free(set);
}

const tensor_table *tensor_set_tensors(const tensor_set *set)
{
    return &set->tensors;
}
