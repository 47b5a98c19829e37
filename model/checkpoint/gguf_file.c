#include "model/checkpoint/gguf_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/byte_order.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/size.h"
#include "base/utf8.h"

enum {
    MAX_DIMS = 4,
    DEFAULT_ALIGNMENT = 32,
    MAX_ALIGNMENT = 1 << 20,
    IN_MESSAGE = 120,
    /* The least that a value (length of the key, a letter, type, a byte) and a tensor (length of
     * the name, a letter, number of sizes, one size, type, offset) take. */
    VALUE_BYTES = 8 + 1 + 4 + 1,
    TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8,
    MAX_PARTS = 4096,
};

/* The types that the format numbers: columns and bytes of a block. columns 0: a number that was
 * withdrawn. */
typedef struct type_info {
    const char *name;
    uint16_t columns, bytes;
    dtype type;
} type_info;

static const type_info TYPES[] = {
    [0] = {"F32", 1, 4, DTYPE_F32},           [1] = {"F16", 1, 2, DTYPE_F16},
    [2] = {"Q4_0", 32, 18, DTYPE_Q4_0},       [3] = {"Q4_1", 32, 20, DTYPE_Q4_1},
    [6] = {"Q5_0", 32, 22, DTYPE_Q5_0},       [7] = {"Q5_1", 32, 24, DTYPE_Q5_1},
    [8] = {"Q8_0", 32, 34, DTYPE_Q8_0},       [9] = {"Q8_1", 32, 36, DTYPE_OTHER},
    [10] = {"Q2_K", 256, 84, DTYPE_Q2_K},     [11] = {"Q3_K", 256, 110, DTYPE_Q3_K},
    [12] = {"Q4_K", 256, 144, DTYPE_Q4_K},    [13] = {"Q5_K", 256, 176, DTYPE_Q5_K},
    [14] = {"Q6_K", 256, 210, DTYPE_Q6_K},    [15] = {"Q8_K", 256, 292, DTYPE_OTHER},
    [16] = {"IQ2_XXS", 256, 66, DTYPE_OTHER}, [17] = {"IQ2_XS", 256, 74, DTYPE_OTHER},
    [18] = {"IQ3_XXS", 256, 98, DTYPE_OTHER}, [19] = {"IQ1_S", 256, 50, DTYPE_OTHER},
    [20] = {"IQ4_NL", 32, 18, DTYPE_IQ4_NL},  [21] = {"IQ3_S", 256, 110, DTYPE_OTHER},
    [22] = {"IQ2_S", 256, 82, DTYPE_OTHER},   [23] = {"IQ4_XS", 256, 136, DTYPE_IQ4_XS},
    [24] = {"I8", 1, 1, DTYPE_OTHER},         [25] = {"I16", 1, 2, DTYPE_OTHER},
    [26] = {"I32", 1, 4, DTYPE_OTHER},        [27] = {"I64", 1, 8, DTYPE_OTHER},
    [28] = {"F64", 1, 8, DTYPE_OTHER},        [29] = {"IQ1_M", 256, 56, DTYPE_OTHER},
    [30] = {"BF16", 1, 2, DTYPE_BF16},        [34] = {"TQ1_0", 256, 54, DTYPE_OTHER},
    [35] = {"TQ2_0", 256, 66, DTYPE_OTHER},   [39] = {"MXFP4", 32, 17, DTYPE_MXFP4},
};

/* A tensor while the header is read. */
typedef struct entry {
    named_tensor tensor;
    uint64_t begin; /* in the data */
} entry;

struct gguf_file {
    file_map map;
    arena *names;       /* of tensors and values */
    gguf_value *values; /* sorted by key */
    size_t n_values;
    tensor_table tensors;
    size_t part, n_parts;
};

/* What is read, how far, and for messages from where. */
typedef struct reading {
    arena *names;
    const uint8_t *data;
    size_t n, at;
    const char *path;
    err_detail *detail;
    uint64_t n_file; /* bytes of the whole file, of which the first n are at hand */
    bool is_cut;     /* what was to be read lies behind them */
} reading;

static err_code no_memory(const reading *r)
{
    return err_set(r->detail, ERR_NOMEM, "%s: no memory for the lists of the header", r->path);
}

static err_code cut(const reading *r, const char *what)
{
    return err_set(r->detail, ERR_CORRUPT, "%s: the file ends inside %s (truncated?)", r->path, what);
}

static err_code value_fault(const reading *r, const char *key, const char *what)
{
    return err_set(r->detail, ERR_CORRUPT, "%s: metadata %.*s: %s", r->path, IN_MESSAGE, key, what);
}

static err_code tensor_fault(const reading *r, const char *name, const char *what)
{
    return err_set(r->detail, ERR_CORRUPT, "%s: tensor %.*s: %s", r->path, IN_MESSAGE, name, what);
}

/* Whether the next n items of so many bytes are there; what the file has behind the bytes at hand is
 * cut, not wrong. */
static bool has(reading *r, uint64_t n, size_t item_bytes)
{
    if (n <= (r->n - r->at) / item_bytes) {
        return true;
    }
    r->is_cut = n <= (r->n_file - r->at) / item_bytes;
    return false;
}

/* The next n bytes as a number. */
static bool take(reading *r, size_t n, uint64_t *out)
{
    if (!has(r, n, 1)) {
        return false;
    }
    *out = little_endian(r->data + r->at, n);
    r->at += n;
    return true;
}

/* A length and that many bytes. */
static bool take_text(reading *r, const uint8_t **text, uint64_t *n)
{
    if (!take(r, 8, n) || !has(r, *n, 1)) {
        return false;
    }
    *text = r->data + r->at;
    r->at += (size_t)*n;
    return true;
}

/* A key or a name as a terminated copy: UTF-8 of 1 .. max bytes. what says whose for messages. */
static err_code take_name(reading *r, const char **out, size_t max, const char *what, size_t index)
{
    const uint8_t *text = NULL;
    uint64_t n = 0;
    if (!take_text(r, &text, &n)) {
        return err_set(r->detail, ERR_CORRUPT, "%s: %s %zu: its length passes the end of the file", r->path,
                       what, index);
    }
    if (n == 0 || n > max || memchr(text, 0, (size_t)n) || !utf8_valid((const char *)text, (size_t)n)) {
        return err_set(r->detail, ERR_CORRUPT, "%s: %s %zu is empty, longer than %zu bytes or not UTF-8",
                       r->path, what, index, max);
    }
    *out = arena_strdup(r->names, (const char *)text, (size_t)n);
    return *out ? ERR_OK : no_memory(r);
}

/* ---- metadata ---- */

static size_t type_bytes(gguf_type type)
{
    static const uint8_t widths[GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return widths[type];
}

/* The elements of an array of texts. */
static err_code skip_texts(reading *r, const gguf_value *v)
{
    const uint8_t *text = NULL;
    uint64_t n = 0;
    if (!has(r, v->n, 8)) {
        return value_fault(r, v->key, "it holds more texts than the file has bytes for");
    }
    for (uint64_t i = 0; i < v->n; i++) {
        if (!take_text(r, &text, &n)) {
            return err_set(r->detail, ERR_CORRUPT, "%s: metadata %.*s: text %llu passes the end of the file",
                           r->path, IN_MESSAGE, v->key, (unsigned long long)i);
        }
    }
    return ERR_OK;
}

static err_code check_bools(const reading *r, const gguf_value *v)
{
    for (uint64_t i = 0; i < v->n; i++) {
        if (v->data[i] > 1) {
            return value_fault(r, v->key, "a truth value is neither 0 nor 1");
        }
    }
    return ERR_OK;
}

/* The value itself; v->key, type and is_array are known. */
static err_code take_data(reading *r, gguf_value *v)
{
    const uint8_t *text = NULL;
    uint64_t n = 0;
    v->data = r->data + r->at;
    if (v->type == GGUF_TEXT && v->is_array) {
        return skip_texts(r, v);
    }
    if (v->type == GGUF_TEXT) {
        if (!take_text(r, &text, &n)) {
            return value_fault(r, v->key, "its text passes the end of the file");
        }
        bool good = !memchr(text, 0, (size_t)n) && utf8_valid((const char *)text, (size_t)n);
        return good ? ERR_OK : value_fault(r, v->key, "its text is not UTF-8");
    }
    if (!has(r, v->n, type_bytes(v->type))) {
        return value_fault(r, v->key, "it passes the end of the file");
    }
    r->at += (size_t)v->n * type_bytes(v->type);
    return v->type == GGUF_BOOL ? check_bools(r, v) : ERR_OK;
}

static err_code take_value(reading *r, gguf_value *v, size_t index)
{
    uint64_t type = 0;
    err_code err = take_name(r, &v->key, LIMIT_GGUF_KEY, "metadata key", index);
    if (err) {
        return err;
    }
    if (!take(r, 4, &type)) {
        return value_fault(r, v->key, "the file ends before its type");
    }
    v->n = 1;
    if (type == GGUF_ARRAY) {
        v->is_array = true;
        if (!take(r, 4, &type) || !take(r, 8, &v->n)) {
            return value_fault(r, v->key, "the file ends inside its type");
        }
        if (type == GGUF_ARRAY) {
            return err_set(r->detail, ERR_UNSUPPORTED,
                           "%s: metadata %.*s: arrays of arrays are not supported", r->path, IN_MESSAGE,
                           v->key);
        }
    }
    if (type >= GGUF_TYPES) {
        return err_set(r->detail, ERR_CORRUPT, "%s: metadata %.*s: its type %llu does not exist", r->path,
                       IN_MESSAGE, v->key, (unsigned long long)type);
    }
    v->type = (gguf_type)type;
    return take_data(r, v);
}

static int compare_key(const void *a, const void *b)
{
    return strcmp(((const gguf_value *)a)->key, ((const gguf_value *)b)->key);
}

static err_code take_values(gguf_file *f, reading *r, uint64_t n)
{
    f->values = calloc((size_t)n + 1, sizeof *f->values);
    if (!f->values) {
        return no_memory(r);
    }
    err_code err = ERR_OK;
    for (size_t i = 0; !err && i < n; i++) {
        err = take_value(r, &f->values[i], i);
        f->n_values += !err;
    }
    qsort(f->values, f->n_values, sizeof *f->values, compare_key);
    if (err) {
        return err;
    }
    for (size_t i = 1; i < f->n_values; i++) {
        if (compare_key(&f->values[i - 1], &f->values[i]) == 0) {
            return value_fault(r, f->values[i].key, "the key occurs twice");
        }
    }
    return ERR_OK;
}

/* ---- tensors ---- */

/* Sizes as the file has them: the first is the length of a row. */
static err_code take_shape(reading *r, const char *name, tensor *view)
{
    uint64_t n_dims = 0, dim = 0;
    size_t n = 1;
    if (!take(r, 4, &n_dims)) {
        return tensor_fault(r, name, "the file ends before its number of dimensions");
    }
    if (n_dims > MAX_DIMS) {
        return err_set(r->detail, ERR_CORRUPT,
                       "%s: tensor %.*s: it has %llu dimensions; at most %d are possible", r->path,
                       IN_MESSAGE, name, (unsigned long long)n_dims, MAX_DIMS);
    }
    /* converters write a single number (Gemma 4's layer_output_scale) without any */
    view->n_dims = n_dims > 0 ? (int32_t)n_dims : 1;
    view->dims[0] = 1;
    for (size_t i = 0; i < n_dims; i++) {
        if (!take(r, 8, &dim)) {
            return tensor_fault(r, name, "the file ends inside its dimensions");
        }
        if (dim < 1 || dim > INT64_MAX || !size_mul(&n, n, (size_t)dim) || n > INT64_MAX) {
            return tensor_fault(r, name, "its dimensions are no possible sizes");
        }
        view->dims[n_dims - 1 - i] = (size_t)dim;
    }
    return ERR_OK;
}

static err_code take_type(reading *r, entry *e)
{
    const char *name = e->tensor.name;
    tensor *view = &e->tensor.view;
    uint64_t number = 0;
    if (!take(r, 4, &number) || !take(r, 8, &e->begin)) {
        return tensor_fault(r, name, "the file ends inside its type and offset");
    }
    if (number >= ARRAY_LEN(TYPES) || TYPES[number].columns == 0) {
        return err_set(r->detail, ERR_UNSUPPORTED, "%s: tensor %.*s: its type %llu is not known here",
                       r->path, IN_MESSAGE, name, (unsigned long long)number);
    }
    const type_info *type = &TYPES[number];
    e->tensor.type_name = type->name;
    view->type = type->type;
    const size_t row = view->dims[view->n_dims - 1];
    if (row % type->columns != 0) {
        return err_set(r->detail, ERR_CORRUPT,
                       "%s: tensor %.*s: its rows of %zu are not whole blocks of %d (%s)", r->path,
                       IN_MESSAGE, name, row, type->columns, type->name);
    }
    if (!size_mul(&view->bytes, tensor_len(view) / type->columns, type->bytes)) {
        return tensor_fault(r, name, "its dimensions are no possible sizes");
    }
    return ERR_OK;
}

static int compare_begin(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static err_code take_tensors(entry *entries, reading *r, uint64_t n)
{
    err_code err = ERR_OK;
    for (size_t i = 0; !err && i < n; i++) {
        named_tensor *t = &entries[i].tensor;
        err = take_name(r, &t->name, LIMIT_GGUF_NAME, "tensor name", i);
        t->stored = t->name;
        err = err ? err : take_shape(r, t->name, &t->view);
        err = err ? err : take_type(r, &entries[i]);
    }
    return err;
}

static uint64_t aligned(uint64_t n, uint64_t alignment)
{
    return (n + alignment - 1) & ~(alignment - 1);
}

/* The tensors must fill the data one behind the other, each begun at a multiple of the alignment;
 * what follows the last is of no concern. Sets the views and puts them into the file's table. */
static err_code place_tensors(gguf_file *f, entry *entries, size_t n, const reading *r, uint64_t alignment)
{
    const uint64_t start = aligned(r->at, alignment), n_data = start < r->n_file ? r->n_file - start : 0;
    uint64_t expected = 0;
    qsort(entries, n, sizeof *entries, compare_begin);
    for (size_t i = 0; i < n; i++) {
        const uint64_t begin = entries[i].begin;
        named_tensor *t = &entries[i].tensor;
        if (begin % alignment != 0) {
            return err_set(r->detail, ERR_CORRUPT,
                           "%s: tensor %.*s: its offset %llu is not a multiple of the alignment %llu",
                           r->path, IN_MESSAGE, t->name, (unsigned long long)begin,
                           (unsigned long long)alignment);
        }
        if (begin < expected) {
            return err_set(r->detail, ERR_CORRUPT, "%s: tensor %.*s overlaps tensor %.*s", r->path,
                           IN_MESSAGE, t->name, IN_MESSAGE, entries[i ? i - 1 : 0].tensor.name);
        }
        if (begin > expected) {
            return tensor_fault(r, t->name, "there is a gap before its data");
        }
        if (begin > n_data || t->view.bytes > n_data - begin) {
            return err_set(
                r->detail, ERR_CORRUPT,
                "%s: tensor %.*s: its %zu bytes at offset %llu pass the end of the file (truncated?)",
                r->path, IN_MESSAGE, t->name, t->view.bytes, (unsigned long long)begin);
        }
        t->view.data = r->n == r->n_file ? r->data + start + begin : NULL;
        expected = aligned(begin + t->view.bytes, alignment);
        if (!tensor_table_add(&f->tensors, t)) {
            return no_memory(r);
        }
    }
    const named_tensor *twice = tensor_table_sort(&f->tensors);
    return twice ? tensor_fault(r, twice->name, "the name occurs twice") : ERR_OK;
}

/* ---- the file ---- */

/* general.alignment: TRAP: a value that is no power of two would round offsets into other
 * tensors. */
static err_code read_alignment(const gguf_file *f, const reading *r, uint64_t *out)
{
    const gguf_value *v = gguf_find(f, "general.alignment");
    *out = DEFAULT_ALIGNMENT;
    if (!v) {
        return ERR_OK;
    }
    if (v->type != GGUF_U32 || !gguf_uint(v, out) || *out < 8 || *out > MAX_ALIGNMENT ||
        (*out & (*out - 1)) != 0) {
        return value_fault(r, v->key, "it must be a power of two from 8 to 1048576, as a 32-bit number");
    }
    return ERR_OK;
}

static err_code read_split(gguf_file *f, const reading *r)
{
    const gguf_value *no = gguf_find(f, "split.no"), *count = gguf_find(f, "split.count");
    uint64_t part = 0, n_parts = 1;
    if (count && (!gguf_uint(count, &n_parts) || n_parts > MAX_PARTS)) {
        return value_fault(r, "split.count", "it is no possible number of files");
    }
    n_parts = n_parts ? n_parts : 1; /* some writers say 0 for a file that is whole */
    if ((no && !gguf_uint(no, &part)) || part >= n_parts) {
        return value_fault(r, "split.no", "it must be a whole number below split.count");
    }
    f->part = (size_t)part;
    f->n_parts = (size_t)n_parts;
    return ERR_OK;
}

static err_code check_version(reading *r)
{
    uint64_t version = 0;
    if (r->n < 4 || memcmp(r->data, "GGUF", 4) != 0) {
        return err_set(r->detail, ERR_CORRUPT, "%s is not a GGUF file: it does not begin with \"GGUF\"",
                       r->path);
    }
    r->at = 4;
    if (!take(r, 4, &version)) {
        return cut(r, "the version");
    }
    if (version != 0 && (version & 0xffff) == 0) {
        return err_set(r->detail, ERR_UNSUPPORTED,
                       "%s: it was written for big-endian computers, which is not supported", r->path);
    }
    if (version != 2 && version != 3) {
        return err_set(r->detail, ERR_UNSUPPORTED, "%s: version %llu of GGUF is not supported; 2 and 3 are",
                       r->path, (unsigned long long)version);
    }
    return ERR_OK;
}

static err_code read_header(gguf_file *f, reading *r)
{
    uint64_t n_tensors = 0, n_values = 0, alignment = 0;
    entry *entries = NULL;
    err_code err = check_version(r);
    if (err) {
        return err;
    }
    if (!take(r, 8, &n_tensors) || !take(r, 8, &n_values)) {
        return cut(r, "the numbers of tensors and values");
    }
    const uint64_t left = r->n_file - r->at;
    if (n_tensors > LIMIT_GGUF_TENSORS || n_tensors > left / TENSOR_BYTES) {
        return err_set(r->detail, ERR_CORRUPT, "%s: the number of tensors, %llu, cannot be true", r->path,
                       (unsigned long long)n_tensors);
    }
    if (n_values > LIMIT_GGUF_VALUES || n_values > left / VALUE_BYTES) {
        return err_set(r->detail, ERR_CORRUPT, "%s: the number of metadata values, %llu, cannot be true",
                       r->path, (unsigned long long)n_values);
    }
    err = take_values(f, r, n_values);
    err = err ? err : read_alignment(f, r, &alignment);
    err = err ? err : read_split(f, r);
    if (!err) {
        entries = calloc((size_t)n_tensors + 1, sizeof *entries);
        err = entries ? take_tensors(entries, r, n_tensors) : no_memory(r);
    }
    err = err ? err : place_tensors(f, entries, (size_t)n_tensors, r, alignment);
    free(entries);
    return err;
}

static gguf_file *create_file(void)
{
    gguf_file *f = calloc(1, sizeof *f);
    if (f) {
        f->names = arena_create(SIZE_MAX / 2);
    }
    if (!f || !f->names) {
        free(f);
        return NULL;
    }
    return f;
}

err_code gguf_file_open(gguf_file **out, const char *path, err_detail *detail)
{
    *out = NULL;
    gguf_file *f = create_file();
    err_code err = f ? file_map_open(&f->map, path, detail)
                     : err_set(detail, ERR_NOMEM, "%s: no memory to open it", path);
    if (!err) {
        reading r = {.names = f->names,
                     .data = f->map.data,
                     .n = f->map.bytes,
                     .path = path,
                     .detail = detail,
                     .n_file = f->map.bytes};
        err = read_header(f, &r);
    }
    if (err) {
        gguf_file_close(f);
        return err;
    }
    *out = f;
    return ERR_OK;
}

err_code gguf_file_open_head(gguf_file **out, const void *data, size_t n, uint64_t n_file, const char *path,
                             bool *is_whole, err_detail *detail)
{
    *out = NULL;
    gguf_file *f = create_file();
    if (!f) {
        return err_set(detail, ERR_NOMEM, "%s: no memory to open it", path);
    }
    reading r = {.names = f->names,
                 .data = data,
                 .n = n,
                 .path = path,
                 .detail = detail,
                 .n_file = n_file > n ? n_file : n};
    const err_code err = read_header(f, &r);
    *is_whole = !r.is_cut;
    if (err && *is_whole) {
        gguf_file_close(f);
        return err;
    }
    *out = f;
    return ERR_OK;
}

void gguf_file_close(gguf_file *f)
{
    if (!f) {
        return;
    }
    tensor_table_free(&f->tensors);
    free(f->values);
    arena_destroy(f->names);
    file_map_close(&f->map);
    free(f);
}

/* ---- reading ---- */

size_t gguf_n_values(const gguf_file *f)
{
    return f->n_values;
}

const gguf_value *gguf_value_at(const gguf_file *f, size_t index)
{
    return &f->values[index];
}

const gguf_value *gguf_find(const gguf_file *f, const char *key)
{
    const gguf_value wanted = {.key = key};
    return f->n_values ? bsearch(&wanted, f->values, f->n_values, sizeof wanted, compare_key) : NULL;
}

bool gguf_int_at(const gguf_value *v, uint64_t i, int64_t *out)
{
    if (!v || i >= v->n) {
        return false;
    }
    const size_t n = type_bytes(v->type);
    const uint64_t bits = little_endian(v->data + i * n, n);
    switch (v->type) {
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64:
        *out = (int64_t)bits;
        return bits <= INT64_MAX;
    case GGUF_I8:
        *out = (int8_t)bits;
        return true;
    case GGUF_I16:
        *out = (int16_t)bits;
        return true;
    case GGUF_I32:
        *out = (int32_t)bits;
        return true;
    case GGUF_I64:
        *out = (int64_t)bits;
        return true;
    default:
        return false;
    }
}

bool gguf_number_at(const gguf_value *v, uint64_t i, double *out)
{
    int64_t whole = 0;
    if (gguf_int_at(v, i, &whole)) {
        *out = (double)whole;
        return true;
    }
    if (!v || i >= v->n) {
        return false;
    }
    if (v->type == GGUF_F32) {
        float single = 0;
        memcpy(&single, v->data + i * sizeof single, sizeof single);
        *out = (double)single;
        return isfinite(single);
    }
    if (v->type == GGUF_F64) {
        memcpy(out, v->data + i * sizeof *out, sizeof *out);
        return isfinite(*out);
    }
    return false;
}

bool gguf_uint(const gguf_value *v, uint64_t *out)
{
    int64_t whole = -1;
    if (!v || v->is_array || !gguf_int_at(v, 0, &whole) || whole < 0) {
        return false;
    }
    *out = (uint64_t)whole;
    return true;
}

bool gguf_number(const gguf_value *v, double *out)
{
    return v && !v->is_array && gguf_number_at(v, 0, out);
}

bool gguf_bool(const gguf_value *v, bool *out)
{
    if (!v || v->is_array || v->type != GGUF_BOOL) {
        return false;
    }
    *out = v->data[0] == 1;
    return true;
}

bool gguf_text(const gguf_value *v, const char **text, size_t *n)
{
    if (!v || v->is_array || v->type != GGUF_TEXT) {
        return false;
    }
    const uint8_t *cursor = v->data;
    gguf_next_text(&cursor, text, n);
    return true;
}

bool gguf_is_text(const gguf_value *v, const char *expected)
{
    const char *text;
    size_t n;
    return gguf_text(v, &text, &n) && n == strlen(expected) && memcmp(text, expected, n) == 0;
}

void gguf_next_text(const uint8_t **cursor, const char **text, size_t *n)
{
    *n = (size_t)little_endian(*cursor, 8);
    *text = (const char *)*cursor + 8;
    *cursor += 8 + *n;
}

const tensor_table *gguf_file_tensors(const gguf_file *f)
{
    return &f->tensors;
}

err_code gguf_file_refuse_type(const named_tensor *t, const char *path, err_detail *detail)
{
    return err_set(detail, ERR_UNSUPPORTED,
                   "%s: tensor %.200s is of type %s, which is not supported; take a file with Q8_0, Q4_0 "
                   "to Q5_1, Q2_K to Q6_K, IQ4_NL, IQ4_XS or MXFP4",
                   path, t->stored, t->type_name);
}

void gguf_file_part(const gguf_file *f, size_t *no, size_t *count)
{
    *no = f->part;
    *count = f->n_parts;
}
