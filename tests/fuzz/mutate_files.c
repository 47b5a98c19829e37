/* Mutators of files whose parts have lengths. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/limits.h"
#include "tests/fuzz/mutate.h"

static uint64_t little_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = n; i-- > 0;) {
        v = v << 8 | p[i];
    }
    return v;
}

static void put_little_endian(uint8_t *p, size_t n, uint64_t v)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = (uint8_t)(v >> 8 * i);
    }
}

/* Numbers at which something changes. */
static uint64_t border(edit *e)
{
    static const uint64_t BORDERS[] = {0,
                                       1,
                                       2,
                                       3,
                                       4,
                                       32,
                                       255,
                                       256,
                                       65535,
                                       1 << 20,
                                       0x7FFFFFFF,
                                       0x80000000,
                                       0xFFFFFFFF,
                                       1ull << 32,
                                       ~0ull >> 1,
                                       ~0ull,
                                       (1ull << 62) + 1};
    const uint64_t v = BORDERS[edit_below(e, ARRAY_LEN(BORDERS))];
    return edit_below(e, 4) == 0 ? v + edit_below(e, 9) - 4 : v;
}

/* ---- safetensors ---- */

enum { LENGTH_BYTES = 8 };

static size_t type_bytes(const char *type)
{
    static const struct {
        const char *name;
        size_t n;
    } TYPES[] = {{"F64", 8}, {"I64", 8},  {"F32", 4}, {"I32", 4},
                 {"U32", 4}, {"BF16", 2}, {"F16", 2}, {"I16", 2}};
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        if (strcmp(type, TYPES[i].name) == 0) {
            return TYPES[i].n;
        }
    }
    return 1;
}

bool mutate_lay_out(bytes *out, size_t *total, const uint8_t *header, size_t n)
{
    enum { MOST = 1 << 24 };
    json_doc *doc = NULL;
    bool ok = json_parse(&doc, (const char *)header, n, LIMIT_JSON_DEPTH, NULL) == ERR_OK &&
              json_is(json_root(doc), JSON_OBJECT);
    *total = 0;
    bytes_append_char(out, '{');
    for (const json *t = ok ? json_child(json_root(doc)) : NULL; t && ok; t = json_next(t)) {
        const char *type = json_str(json_get(t, "dtype"), "");
        uint64_t size = type_bytes(type);
        if (out->len > 1) {
            bytes_append_char(out, ',');
        }
        bytes_append_json(out, json_key(t), strlen(json_key(t)));
        bytes_append_char(out, ':');
        if (!json_get(t, "data_offsets")) {
            json_write(out, t);
            continue;
        }
        for (const json *d = json_child(json_get(t, "shape")); d && size <= MOST; d = json_next(d)) {
            int64_t side = 0;
            ok = ok && json_int(d, 0, MOST, &side);
            size *= (uint64_t)side;
        }
        bytes_append_str(out, "{\"dtype\":");
        bytes_append_json(out, type, strlen(type));
        bytes_append_str(out, ",\"shape\":");
        json_write(out, json_get(t, "shape"));
        bytes_printf(out, ",\"data_offsets\":[%zu,%zu]}", *total, *total + (size_t)size);
        *total += (size_t)size;
        ok = ok && *total <= MOST && !out->failed && json_get(t, "shape");
    }
    bytes_append_char(out, '}');
    json_free(doc);
    return ok;
}

size_t mutate_safetensors(uint8_t *data, size_t size, size_t max, unsigned seed, const char *dictionary)
{
    edit e = edit_begin(data, size, max, seed);
    const uint64_t n = size >= LENGTH_BYTES ? little_endian(data, LENGTH_BYTES) : 0;
    if (n < 2 || n > size - LENGTH_BYTES || edit_below(&e, 12) == 0) {
        return max > 0 ? LLVMFuzzerMutate(data, size, max) : 0;
    }
    const size_t behind = size - LENGTH_BYTES - (size_t)n;
    edit_part(&e, LENGTH_BYTES, LENGTH_BYTES + (size_t)n, mutate_json, dictionary);
    size_t header = e.size - LENGTH_BYTES - behind, total = 0;
    bytes laid = bytes_empty(1 << 20);
    if (edit_below(&e, 4) > 0 && mutate_lay_out(&laid, &total, data + LENGTH_BYTES, header) &&
        LENGTH_BYTES + laid.len + total <= max) {
        edit_splice(&e, LENGTH_BYTES, LENGTH_BYTES + header, laid.data, laid.len);
        header = laid.len;
        const size_t wanted = LENGTH_BYTES + header + total;
        if (wanted > e.size) {
            memset(data + e.size, 1, wanted - e.size);
        }
        e.size = wanted;
    }
    bytes_deinit(&laid);
    put_little_endian(data, LENGTH_BYTES, edit_below(&e, 16) > 0 ? header : border(&e));
    return e.size;
}

/* ---- GGUF ---- */

enum { PARTS_MAX = 2048, GGUF_HEAD = 24, GGUF_ALIGNMENT = 32, GGUF_TEXT_TYPE = 8, GGUF_ARRAY_TYPE = 9 };

typedef struct gguf_part {
    size_t from, name_to, to; /* its name with the length in front ends at name_to */
} gguf_part;

typedef struct gguf_parts {
    const uint8_t *data;
    size_t size, at, n_values, n; /* tensors behind the values */
    gguf_part parts[PARTS_MAX];
} gguf_parts;

static bool skip(gguf_parts *g, uint64_t n)
{
    const bool fits = n <= g->size - g->at;
    g->at += fits ? (size_t)n : 0;
    return fits;
}

static bool take(gguf_parts *g, size_t n, uint64_t *v)
{
    const size_t at = g->at;
    *v = 0;
    if (!skip(g, n)) {
        return false;
    }
    *v = little_endian(g->data + at, n);
    return true;
}

static bool skip_text(gguf_parts *g)
{
    uint64_t n;
    return take(g, 8, &n) && skip(g, n);
}

static bool skip_value(gguf_parts *g, uint64_t type)
{
    static const uint8_t SIZES[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    uint64_t of, n;
    if (type == GGUF_TEXT_TYPE) {
        return skip_text(g);
    }
    if (type != GGUF_ARRAY_TYPE) {
        return type < sizeof SIZES && skip(g, SIZES[type]);
    }
    if (!take(g, 4, &of) || !take(g, 8, &n) || of == GGUF_ARRAY_TYPE || of >= sizeof SIZES) {
        return false;
    }
    if (of != GGUF_TEXT_TYPE) {
        return n <= g->size && skip(g, n * SIZES[of]);
    }
    bool ok = true;
    for (uint64_t i = 0; i < n && ok; i++) {
        ok = skip_text(g);
    }
    return ok;
}

static bool read_parts(gguf_parts *g, const uint8_t *data, size_t size)
{
    uint64_t n_tensors, n_values, v;
    *g = (gguf_parts){.data = data, .size = size, .at = 8};
    bool ok = size >= GGUF_HEAD && take(g, 8, &n_tensors) && take(g, 8, &n_values) && n_values <= PARTS_MAX &&
              n_tensors <= PARTS_MAX - n_values;
    for (uint64_t i = 0; ok && i < n_values + n_tensors; i++) {
        gguf_part *p = &g->parts[g->n];
        p->from = g->at;
        ok = skip_text(g);
        p->name_to = g->at;
        if (i < n_values) {
            ok = ok && take(g, 4, &v) && skip_value(g, v);
        } else {
            ok = ok && take(g, 4, &v) && v <= 8 && skip(g, 8 * v + 12);
        }
        p->to = g->at;
        g->n += ok ? 1 : 0;
    }
    g->n_values = ok ? (size_t)n_values : 0;
    return ok;
}

/* Data [from, to) behind a length of eight bytes. */
static void put_text(edit *e, size_t from, size_t to, const char *text, size_t n)
{
    const size_t before = e->size;
    edit_splice(e, from + 8, to, text, n);
    if (e->size != before || n == to - from - 8) {
        put_little_endian(e->data + from, 8, n);
    }
}

static void change_gguf_value(edit *e, const gguf_part *p, const char *dictionary)
{
    const uint64_t type = little_endian(e->data + p->name_to, 4);
    const size_t from = p->name_to + 4, width = p->to - from;
    size_t n = 0;
    if (edit_below(e, 10) == 0) {
        put_little_endian(e->data + p->name_to, 4, edit_below(e, 14));
    } else if (type == GGUF_TEXT_TYPE && edit_below(e, 2) == 0) {
        const char *word = edit_word(e, dictionary, &n);
        put_text(e, from, p->to, word, n);
    } else if (type == GGUF_TEXT_TYPE && width > 8) {
        const size_t before = e->size;
        edit_bytes(e, from + 8, p->to);
        put_little_endian(e->data + from, 8, width - 8 + e->size - before);
    } else if (type == GGUF_ARRAY_TYPE && edit_below(e, 3) == 0) {
        put_little_endian(e->data + from + 4, 8, border(e));
    } else if (type == GGUF_ARRAY_TYPE && width > 12) {
        edit_bytes(e, from + 12, p->to);
    } else if (width <= 8) {
        put_little_endian(e->data + from, width, border(e));
    }
}

static void change_gguf_tensor(edit *e, const gguf_part *p)
{
    const uint64_t n_dims = little_endian(e->data + p->name_to, 4);
    uint8_t *dims = e->data + p->name_to + 4;
    switch (edit_below(e, 4)) {
    case 0:
        put_little_endian(e->data + p->name_to, 4, edit_below(e, 6));
        break;
    case 1:
        put_little_endian(dims + 8 * n_dims, 4, edit_below(e, 42));
        break;
    case 2:
        put_little_endian(dims + 8 * n_dims + 4, 8, edit_below(e, 2) ? border(e) : 32 * edit_below(e, 64));
        break;
    default:
        if (n_dims > 0) {
            put_little_endian(dims + 8 * edit_below(e, (size_t)n_dims), 8,
                              edit_below(e, 3) ? 1 + edit_below(e, 300) : border(e));
        }
        break;
    }
}

static void change_gguf(edit *e, const gguf_parts *g, const char *dictionary)
{
    const size_t i = edit_below(e, g->n);
    const gguf_part *p = &g->parts[i];
    const bool is_value = i < g->n_values;
    const size_t from = is_value ? 0 : g->n_values, count = is_value ? g->n_values : g->n - g->n_values;
    const gguf_part *other = &g->parts[from + edit_below(e, count)];
    uint8_t *counter = e->data + (is_value ? 16 : 8);
    const size_t before = e->size;
    size_t n = 0;
    const char *word;
    switch (edit_below(e, 6)) {
    case 0:
        edit_splice(e, p->from, p->to, "", 0);
        put_little_endian(counter, 8, count - 1);
        break;
    case 1:
        edit_splice(e, other->from, other->from, e->data + p->from, p->to - p->from);
        put_little_endian(counter, 8, count + (e->size > before));
        break;
    case 2:
        word = edit_word(e, dictionary, &n);
        put_text(e, p->from, p->name_to, word, n);
        break;
    case 3: /* the name of one for what the other is */
        edit_splice(e, p->name_to, p->to, e->data + other->name_to, other->to - other->name_to);
        break;
    default:
        if (is_value) {
            change_gguf_value(e, p, dictionary);
        } else {
            change_gguf_tensor(e, p);
        }
        break;
    }
}

static size_t aligned(size_t n)
{
    return (n + GGUF_ALIGNMENT - 1) / GGUF_ALIGNMENT * GGUF_ALIGNMENT;
}

/* What is behind the head must begin where it is looked for: its length, with the space in front taken away. */
static size_t gguf_cut(edit *e, const gguf_parts *g)
{
    const size_t behind = aligned(g->at) < e->size ? e->size - aligned(g->at) : 0;
    edit_splice(e, g->at, e->size - behind, "", 0);
    return behind;
}

static void gguf_join(edit *e, size_t behind)
{
    static const uint8_t zeros[GGUF_ALIGNMENT] = {0};
    if (e->size > behind) { /* else what followed the head was taken for parts of it, and is gone */
        const size_t end = e->size - behind;
        edit_splice(e, end, end, zeros, aligned(end) - end);
    }
}

size_t mutate_gguf(uint8_t *data, size_t size, size_t max, unsigned seed, const char *dictionary)
{
    static gguf_parts g;
    edit e = edit_begin(data, size, max, seed);
    if (!read_parts(&g, data, size) || g.n == 0 || edit_below(&e, 16) == 0) {
        return max > 0 ? LLVMFuzzerMutate(data, size, max) : 0;
    }
    const size_t behind = gguf_cut(&e, &g);
    for (size_t left = 1 + edit_below(&e, 3); left > 0; left--) {
        if (g.n > 0) {
            change_gguf(&e, &g, dictionary);
        }
        if (!read_parts(&g, e.data, e.size)) {
            break;
        }
    }
    gguf_join(&e, behind);
    return e.size;
}

/* One of a few changes of a value: one more, nothing, as much as there can be. */
static bool change_gguf_value_to(edit *e, const gguf_part *p, unsigned kind)
{
    const uint64_t type = little_endian(e->data + p->name_to, 4);
    const size_t from = p->name_to + 4, width = p->to - from;
    if (type == GGUF_TEXT_TYPE) {
        put_text(e, from, p->to, "x", kind == 0);
        return kind < 2;
    }
    if (type == GGUF_ARRAY_TYPE) {
        const size_t n = (size_t)little_endian(e->data + from + 4, 8), each = n ? (width - 12) / n : 0;
        if (little_endian(e->data + from, 4) == GGUF_TEXT_TYPE || n == 0) {
            return false;
        }
        if (kind == 0) { /* one element less */
            edit_splice(e, p->to - each, p->to, "", 0);
            put_little_endian(e->data + from + 4, 8, n - 1);
        } else {
            put_little_endian(e->data + from + 12, each,
                              kind == 1 ? 0 : little_endian(e->data + from + 12, each) + 1);
        }
        return true;
    }
    put_little_endian(e->data + from, width,
                      kind == 0   ? little_endian(e->data + from, width) + 1
                      : kind == 1 ? 0
                                  : ~0ull);
    return true;
}

size_t mutate_gguf_each(uint8_t *data, size_t size, size_t max, unsigned number)
{
    enum { KINDS = 4 };
    static gguf_parts g;
    edit e = edit_begin(data, size, max, 0);
    if (!read_parts(&g, data, size) || number / KINDS >= g.n) {
        return MUTATE_NO_MORE;
    }
    const gguf_part *p = &g.parts[number / KINDS];
    const bool is_value = number / KINDS < g.n_values;
    const unsigned kind = number % KINDS;
    const size_t behind = gguf_cut(&e, &g);
    bool is_changed = true;
    if (kind == 0) {
        edit_splice(&e, p->from, p->to, "", 0);
        put_little_endian(data + (is_value ? 16 : 8), 8, (is_value ? g.n_values : g.n - g.n_values) - 1);
    } else if (is_value) {
        is_changed = change_gguf_value_to(&e, p, kind - 1);
    } else if (kind < 3) { /* a side longer, or another type of the same size or twice that */
        uint8_t *dims = data + p->name_to + 4;
        const size_t at = kind == 1 ? 0 : 8 * (size_t)little_endian(data + p->name_to, 4);
        put_little_endian(dims + at, kind == 1 ? 8 : 4, little_endian(dims + at, kind == 1 ? 8 : 4) + 1);
    } else {
        is_changed = false;
    }
    gguf_join(&e, behind);
    return is_changed ? e.size : 0;
}

/* ---- PNG and JPEG ---- */

typedef struct file_part {
    size_t from, data, to, end; /* its head, what it holds, and what ends it */
} file_part;

static size_t big_endian(const uint8_t *p, size_t n)
{
    size_t v = 0;
    for (size_t i = 0; i < n; i++) {
        v = v << 8 | p[i];
    }
    return v;
}

/* A part comes, goes, or changes; its length of `width` bytes stands `back` bytes in front of its data, and
 * counts `extra` more. */
static void change_part(edit *e, const file_part *parts, size_t n, size_t width, size_t back, size_t extra)
{
    const file_part *p = &parts[edit_below(e, n)], *other = &parts[edit_below(e, n)];
    const size_t before = e->size;
    switch (edit_below(e, 5)) {
    case 0:
        edit_splice(e, p->from, p->end, "", 0);
        return;
    case 1:
        edit_splice(e, other->from, other->from, e->data + p->from, p->end - p->from);
        return;
    case 2: /* one number in it */
        if (p->to > p->data) {
            const uint64_t v = border(e);
            const size_t at = p->data + edit_below(e, p->to - p->data);
            for (size_t i = 0; i < 1 + edit_below(e, 4) && at + i < p->to; i++) {
                e->data[at + i] = (uint8_t)(v >> 8 * i);
            }
        }
        return;
    default:
        if (p->to > p->data) {
            edit_bytes(e, p->data, p->to);
        }
        break;
    }
    const size_t length = p->to - p->data + e->size - before + extra;
    for (size_t i = 0; i < width; i++) {
        e->data[p->data - back + i] = (uint8_t)(length >> 8 * (width - 1 - i));
    }
}

size_t mutate_png(uint8_t *data, size_t size, size_t max, unsigned seed, const char *dictionary)
{
    enum { SIGNATURE = 8, HEAD = 8, CHECKSUM = 4, CHUNKS_MAX = 256 };
    file_part parts[CHUNKS_MAX];
    edit e = edit_begin(data, size, max, seed);
    size_t n = 0;
    (void)dictionary;
    for (size_t at = SIGNATURE; n < CHUNKS_MAX && at + HEAD + CHECKSUM <= size; n++) {
        const size_t length = big_endian(data + at, 4);
        if (length > size - at - HEAD - CHECKSUM) {
            break;
        }
        parts[n] = (file_part){at, at + HEAD, at + HEAD + length, at + HEAD + length + CHECKSUM};
        at = parts[n].end;
    }
    if (n == 0 || edit_below(&e, 10) == 0) {
        return max > 0 ? LLVMFuzzerMutate(data, size, max) : 0;
    }
    change_part(&e, parts, n, 4, HEAD, 0);
    return e.size;
}

size_t mutate_jpeg(uint8_t *data, size_t size, size_t max, unsigned seed, const char *dictionary)
{
    enum { HEAD = 4, SEGMENTS_MAX = 256, SCAN = 0xDA };
    file_part parts[SEGMENTS_MAX];
    edit e = edit_begin(data, size, max, seed);
    size_t n = 0;
    (void)dictionary;
    for (size_t at = 2; n < SEGMENTS_MAX && at + HEAD <= size && data[at] == 0xFF; n++) {
        size_t end = at + 2 + big_endian(data + at + 2, 2);
        if (end > size || end < at + HEAD) {
            break;
        }
        parts[n] = (file_part){at, at + HEAD, end, end};
        if (data[at + 1] == SCAN) { /* coded rows up to the next marker */
            while (end + 1 < size &&
                   (data[end] != 0xFF || data[end + 1] == 0 || data[end + 1] / 8 == 0xD0 / 8)) {
                end++;
            }
            parts[n].end = end;
        }
        at = end;
    }
    if (n == 0 || edit_below(&e, 8) == 0) {
        return max > 0 ? LLVMFuzzerMutate(data, size, max) : 0;
    }
    change_part(&e, parts, n, 2, 2, 2);
    return e.size;
}
