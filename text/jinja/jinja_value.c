#include "text/jinja/jinja_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/unicode.h"
#include "base/utf8.h"

enum { ALIGN = 16, INDEX_FROM = 8, INDEX_MIN = 32, GROW_MIN = 64 };

const char JINJA_MESSAGE[] = "";

/* ---- memory ---- */

void *jinja_alloc(jinja_memory *m, size_t n)
{
    if (m->block == 0 || n > m->block / 4) {
        void *p = arena_calloc(m->arena, 1, n ? n : 1);
        m->failed = m->failed || !p;
        return p;
    }
    n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (n > m->left) {
        m->at = arena_calloc(m->arena, 1, m->block);
        m->left = m->at ? m->block : 0;
        if (!m->at) {
            m->failed = true;
            return NULL;
        }
    }
    void *p = m->at;
    m->at += n;
    m->left -= n;
    return p;
}

void *jinja_grow(jinja_memory *m, void *items, size_t len, size_t *cap, size_t item_bytes)
{
    if (m->failed || len < *cap) {
        return m->failed ? NULL : items;
    }
    size_t more = *cap ? *cap * 2 : 4, n_bytes;
    void *copy = size_mul(&n_bytes, more, item_bytes) ? jinja_alloc(m, n_bytes) : NULL;
    m->failed = !copy;
    if (copy && len) {
        memcpy(copy, items, len * item_bytes);
    }
    *cap = copy ? more : *cap;
    return copy;
}

/* ---- making values ---- */

jinja_value jinja_make_none(void)
{
    return (jinja_value){.type = JINJA_NONE};
}

jinja_value jinja_make_bool(bool b)
{
    return (jinja_value){.type = JINJA_BOOL, .as.boolean = b};
}

jinja_value jinja_make_int(int64_t i)
{
    return (jinja_value){.type = JINJA_INT, .as.integer = i};
}

jinja_value jinja_make_float(double d)
{
    return (jinja_value){.type = JINJA_FLOAT, .as.number = d};
}

jinja_value jinja_borrow(const char *text, size_t len)
{
    return (jinja_value){.type = JINJA_STR, .as.text = text, .len = len};
}

jinja_value jinja_text(jinja_memory *m, const char *text, size_t len)
{
    char *copy = len ? jinja_alloc(m, len) : NULL;
    if (!copy) {
        return jinja_borrow("", 0);
    }
    memcpy(copy, text, len);
    return jinja_borrow(copy, len);
}

const char *jinja_c_string(jinja_memory *m, const jinja_value *text)
{
    char *copy = jinja_alloc(m, text->len + 1);
    if (copy && text->len) {
        memcpy(copy, text->as.text, text->len);
    }
    return copy;
}

jinja_value jinja_undefined(const char *name, size_t len, const char *owner)
{
    return (jinja_value){.type = JINJA_UNDEFINED, .as.text = name, .len = len, .extra.owner = owner};
}

jinja_value jinja_missing(const char *message)
{
    return jinja_undefined(message, strlen(message), JINJA_MESSAGE);
}

jinja_value jinja_new_seq(jinja_memory *m, jinja_type type, size_t cap)
{
    static jinja_seq none; /* what a failed allocation gives: stays empty, as m->failed stops all pushes */
    jinja_value v = {.type = type, .as.seq = jinja_alloc(m, sizeof(jinja_seq))};
    if (!v.as.seq) {
        v.as.seq = &none;
        return v;
    }
    size_t n_bytes;
    if (cap > 0 && size_mul(&n_bytes, cap, sizeof(jinja_value))) {
        v.as.seq->items = jinja_alloc(m, n_bytes);
        v.as.seq->cap = v.as.seq->items ? cap : 0;
    }
    return v;
}

jinja_value jinja_new_list(jinja_memory *m)
{
    return jinja_new_seq(m, JINJA_LIST, 0);
}

jinja_value jinja_new_range(jinja_memory *m, int64_t start, int64_t step, size_t len)
{
    static const jinja_range none = {.step = 1};
    jinja_range *range = jinja_alloc(m, sizeof *range);
    if (range) {
        *range = (jinja_range){start, step, len};
    }
    return (jinja_value){.type = JINJA_RANGE, .as.range = range ? range : &none};
}

void jinja_push(jinja_memory *m, jinja_seq *seq, jinja_value item)
{
    jinja_value *items = jinja_grow(m, seq->items, seq->len, &seq->cap, sizeof item);
    if (items) {
        seq->items = items;
        seq->items[seq->len++] = item;
    }
}

void jinja_push_all(jinja_memory *m, jinja_seq *seq, const jinja_value *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        jinja_push(m, seq, items[i]);
    }
}

jinja_value jinja_pair(jinja_memory *m, jinja_value a, jinja_value b)
{
    jinja_value t = jinja_new_seq(m, JINJA_TUPLE, 2);
    jinja_push(m, t.as.seq, a);
    jinja_push(m, t.as.seq, b);
    return t;
}

jinja_value jinja_new_map(jinja_memory *m, jinja_type type)
{
    static jinja_map none; /* as in jinja_new_seq */
    jinja_value v = {.type = type, .as.map = jinja_alloc(m, sizeof(jinja_map))};
    if (!v.as.map) {
        v.as.map = &none;
    }
    return v;
}

jinja_value jinja_concat(jinja_memory *m, const jinja_value *a, const jinja_value *b)
{
    if (b->len == 0 || a->len == 0) {
        return b->len == 0 ? *a : *b;
    }
    jinja_buffer *buf = a->extra.buffer;
    bool at_end = buf && a->as.text == buf->data && a->len == buf->len;
    if (!at_end || buf->cap - buf->len < b->len) {
        size_t need, cap;
        if (!size_add(&need, a->len, b->len) || !size_mul(&cap, need, at_end ? 2 : 1)) {
            m->failed = true;
            return *a;
        }
        cap = cap < GROW_MIN ? GROW_MIN : cap;
        buf = jinja_alloc(m, sizeof *buf);
        char *data = jinja_alloc(m, cap);
        if (!buf || !data) {
            return *a;
        }
        memcpy(data, a->as.text, a->len);
        *buf = (jinja_buffer){data, a->len, cap};
    }
    memcpy(buf->data + buf->len, b->as.text, b->len);
    buf->len += b->len;
    jinja_value v = jinja_borrow(buf->data, buf->len);
    v.extra.buffer = buf;
    return v;
}

static bool in_set(const jinja_value *set, const char *raw, size_t n, uint32_t c)
{
    if (!set) {
        return unicode_is_space(c);
    }
    for (size_t i = 0; i < set->len;) {
        uint32_t other;
        size_t k = utf8_decode(set->as.text + i, set->len - i, &other);
        if (k == n && memcmp(set->as.text + i, raw, n) == 0) {
            return true;
        }
        i += k;
    }
    return false;
}

jinja_value jinja_strip(const jinja_value *text, const jinja_value *set, bool left, bool right)
{
    const char *s = text->as.text;
    size_t begin = 0, end = text->len;
    uint32_t c;
    while (left && begin < end) {
        size_t n = utf8_decode(s + begin, end - begin, &c);
        if (!in_set(set, s + begin, n, c)) {
            break;
        }
        begin += n;
    }
    while (right && end > begin) {
        size_t last = begin + utf8_last(s + begin, end - begin);
        size_t n = utf8_decode(s + last, end - last, &c);
        if (!in_set(set, s + last, n, c)) {
            break;
        }
        end = last;
    }
    jinja_value v = *text;
    v.as.text = s + begin;
    v.len = end - begin;
    return v;
}

/* ---- dicts ---- */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9FB21C651E98DF25u;
    return h ^ (h >> 32);
}

static uint64_t hash_bytes(uint64_t h, const char *text, size_t len)
{
    h = mix(h, len);
    for (; len >= 8; text += 8, len -= 8) {
        uint64_t x;
        memcpy(&x, text, 8);
        h = mix(h, x);
    }
    uint64_t rest = 0;
    if (len) {
        memcpy(&rest, text, len);
    }
    return mix(h, rest);
}

/* Equal values have equal hashes. The address makes collisions hard to prepare. */
static uint64_t hash_value(const jinja_map *map, const jinja_value *v)
{
    uint64_t seed = (uint64_t)(uintptr_t)map;
    double d;
    switch (v->type) {
    case JINJA_STR:
    case JINJA_BIGINT:
        return hash_bytes(seed, v->as.text, v->len);
    case JINJA_BOOL:
    case JINJA_INT:
    case JINJA_FLOAT:
        jinja_as_double(v, &d);
        d = d == 0 ? 0 : d;
        return hash_bytes(seed, (const char *)&d, sizeof d);
    case JINJA_TUPLE:
        for (size_t i = 0; i < v->as.seq->len; i++) {
            seed = mix(seed, hash_value(map, &v->as.seq->items[i]));
        }
        return seed;
    default:
        return seed;
    }
}

bool jinja_hashable(const jinja_value *v)
{
    switch (v->type) {
    case JINJA_LIST:
    case JINJA_DICT:
    case JINJA_KEYS:
    case JINJA_ITEMS:
        return false;
    case JINJA_TUPLE:
        for (size_t i = 0; i < v->as.seq->len; i++) {
            if (v->as.seq->items[i].type == JINJA_TUPLE || !jinja_hashable(&v->as.seq->items[i])) {
                return false; /* tuples in tuples are not needed, and need no recursion then */
            }
        }
        return true;
    default:
        return true;
    }
}

static jinja_entry *find_entry(const jinja_map *map, const jinja_value *key, uint64_t hash)
{
    if (!map->index) {
        for (size_t i = 0; i < map->len; i++) {
            if (map->entries[i].hash == hash && jinja_equal(&map->entries[i].key, key)) {
                return &map->entries[i];
            }
        }
        return NULL;
    }
    for (size_t slot = (size_t)hash & (map->n_index - 1); map->index[slot];
         slot = (slot + 1) & (map->n_index - 1)) {
        jinja_entry *e = &map->entries[map->index[slot] - 1];
        if (e->hash == hash && jinja_equal(&e->key, key)) {
            return e;
        }
    }
    return NULL;
}

const jinja_value *jinja_map_get(const jinja_map *map, const jinja_value *key)
{
    if (map->len == 0) {
        return NULL;
    }
    jinja_entry *e = find_entry(map, key, hash_value(map, key));
    return e ? &e->value : NULL;
}

const jinja_value *jinja_map_get_text(const jinja_map *map, const char *key, size_t len)
{
    jinja_value k = jinja_borrow(key, len);
    return jinja_map_get(map, &k);
}

static void index_entry(jinja_map *map, size_t i)
{
    size_t slot = (size_t)map->entries[i].hash & (map->n_index - 1);
    while (map->index[slot]) {
        slot = (slot + 1) & (map->n_index - 1);
    }
    map->index[slot] = (uint32_t)(i + 1);
}

/* Room for one more entry, and an index that is at most half full. */
static bool reserve_entry(jinja_memory *m, jinja_map *map)
{
    /* fewer than 2^31: the memory is bounded, and each takes more than 32 bytes */
    jinja_entry *entries = jinja_grow(m, map->entries, map->len, &map->cap, sizeof *entries);
    if (!entries) {
        m->failed = true;
        return false;
    }
    map->entries = entries;
    if (map->len + 1 > INDEX_FROM && (map->len + 1) * 2 > map->n_index) {
        size_t n = map->n_index ? map->n_index * 2 : INDEX_MIN;
        uint32_t *index = jinja_alloc(m, n * sizeof *index);
        if (!index) {
            return false;
        }
        map->index = index;
        map->n_index = n;
        for (size_t i = 0; i < map->len; i++) {
            index_entry(map, i);
        }
    }
    return true;
}

void jinja_map_set(jinja_memory *m, jinja_map *map, jinja_value key, jinja_value value)
{
    if (m->failed) {
        return;
    }
    uint64_t hash = hash_value(map, &key);
    jinja_entry *e = find_entry(map, &key, hash);
    if (e) {
        e->value = value;
        return;
    }
    if (!reserve_entry(m, map)) {
        return;
    }
    map->entries[map->len] = (jinja_entry){key, value, hash};
    map->len++;
    if (map->index) {
        index_entry(map, map->len - 1);
    }
}

/* ---- asking ---- */

bool jinja_as_int(const jinja_value *v, int64_t *out)
{
    if (v->type == JINJA_BOOL) {
        *out = v->as.boolean;
        return true;
    }
    *out = v->as.integer;
    return v->type == JINJA_INT;
}

bool jinja_as_double(const jinja_value *v, double *out)
{
    int64_t i;
    if (jinja_as_int(v, &i)) {
        *out = (double)i;
        return true;
    }
    if (v->type == JINJA_BIGINT && v->len < 400) { /* JSON has none of more than 309 digits */
        char digits[400];
        memcpy(digits, v->as.text, v->len);
        digits[v->len] = '\0';
        *out = strtod(digits, NULL);
        return true;
    }
    *out = v->as.number;
    return v->type == JINJA_FLOAT;
}

bool jinja_truth(const jinja_value *v)
{
    size_t n;
    switch (v->type) {
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        return false;
    case JINJA_BOOL:
        return v->as.boolean;
    case JINJA_INT:
        return v->as.integer != 0;
    case JINJA_FLOAT:
        return v->as.number != 0;
    case JINJA_STR:
        return v->len > 0;
    default:
        return v->type == JINJA_LOOP || !jinja_length(v, &n) || n > 0;
    }
}

bool jinja_is_seq(const jinja_value *v)
{
    return v->type == JINJA_LIST || v->type == JINJA_TUPLE;
}

bool jinja_is_text(const jinja_value *v, const char *text)
{
    return v->type == JINJA_STR && v->len == strlen(text) && memcmp(v->as.text, text, v->len) == 0;
}

static bool is_number(const jinja_value *v)
{
    return v->type >= JINJA_BOOL && v->type <= JINJA_FLOAT;
}

static bool equal_at(const jinja_value *a, const jinja_value *b, int depth);

static bool equal_items(const jinja_seq *a, const jinja_seq *b, int depth)
{
    if (a->len != b->len) {
        return false;
    }
    for (size_t i = 0; i < a->len; i++) {
        if (!equal_at(&a->items[i], &b->items[i], depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool equal_maps(const jinja_map *a, const jinja_map *b, int depth)
{
    if (a->len != b->len) {
        return false;
    }
    for (size_t i = 0; i < a->len; i++) {
        const jinja_value *other = jinja_map_get(b, &a->entries[i].key);
        if (!other || !equal_at(&a->entries[i].value, other, depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool equal_numbers(const jinja_value *a, const jinja_value *b)
{
    int64_t i, k;
    double x, y;
    if (jinja_as_int(a, &i) && jinja_as_int(b, &k)) {
        return i == k;
    }
    if (a->type == JINJA_BIGINT && b->type == JINJA_BIGINT) {
        return a->len == b->len && memcmp(a->as.text, b->as.text, a->len) == 0;
    }
    return jinja_as_double(a, &x) && jinja_as_double(b, &y) && x == y;
}

/* Values nested too deeply count as different. */
static bool equal_at(const jinja_value *a, const jinja_value *b, int depth)
{
    if (is_number(a) && is_number(b)) {
        return equal_numbers(a, b);
    }
    if (a->type != b->type || depth > JINJA_VALUE_DEPTH) {
        return false;
    }
    switch (a->type) {
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        return true;
    case JINJA_STR:
        return a->len == b->len && (a->len == 0 || memcmp(a->as.text, b->as.text, a->len) == 0);
    case JINJA_LIST:
    case JINJA_TUPLE:
        return a->as.seq == b->as.seq || equal_items(a->as.seq, b->as.seq, depth);
    case JINJA_DICT:
        return a->as.map == b->as.map || equal_maps(a->as.map, b->as.map, depth);
    case JINJA_RANGE:
        return a->as.range->len == b->as.range->len &&
               (a->as.range->len == 0 || (a->as.range->start == b->as.range->start &&
                                          (a->as.range->len == 1 || a->as.range->step == b->as.range->step)));
    default:
        return a->as.seq == b->as.seq;
    }
}

bool jinja_equal(const jinja_value *a, const jinja_value *b)
{
    return equal_at(a, b, 0);
}

static bool compare_at(const jinja_value *a, const jinja_value *b, int *order, int depth)
{
    double x, y;
    int64_t i, k;
    if (jinja_as_int(a, &i) && jinja_as_int(b, &k)) {
        *order = (i > k) - (i < k);
        return true;
    }
    if (jinja_as_double(a, &x) && jinja_as_double(b, &y)) {
        *order = isnan(x) || isnan(y) ? 2 : (x > y) - (x < y); /* 2: neither less, equal nor greater */
        return true;
    }
    if (a->type == JINJA_STR && b->type == JINJA_STR) {
        /* The order of UTF-8 bytes is the order of code points. */
        size_t n = a->len < b->len ? a->len : b->len;
        int c = n ? memcmp(a->as.text, b->as.text, n) : 0;
        *order = c ? (c > 0) - (c < 0) : (a->len > b->len) - (a->len < b->len);
        return true;
    }
    if (!jinja_is_seq(a) || a->type != b->type || depth > JINJA_VALUE_DEPTH) {
        return false;
    }
    for (size_t n = 0; n < a->as.seq->len && n < b->as.seq->len; n++) {
        if (!jinja_equal(&a->as.seq->items[n], &b->as.seq->items[n])) {
            return compare_at(&a->as.seq->items[n], &b->as.seq->items[n], order, depth + 1);
        }
    }
    *order = (a->as.seq->len > b->as.seq->len) - (a->as.seq->len < b->as.seq->len);
    return true;
}

bool jinja_compare(const jinja_value *a, const jinja_value *b, int *order)
{
    return compare_at(a, b, order, 0);
}

size_t jinja_n_chars(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    }
    return n;
}

bool jinja_length(const jinja_value *v, size_t *len)
{
    switch (v->type) {
    case JINJA_UNDEFINED:
        *len = 0;
        return true;
    case JINJA_STR:
        *len = jinja_n_chars(v->as.text, v->len);
        return true;
    case JINJA_LIST:
    case JINJA_TUPLE:
        *len = v->as.seq->len;
        return true;
    case JINJA_DICT:
    case JINJA_KEYS:
    case JINJA_VALUES:
    case JINJA_ITEMS:
        *len = v->as.map->len;
        return true;
    case JINJA_RANGE:
        *len = v->as.range->len;
        return true;
    default:
        return false;
    }
}

static const struct {
    const char *name, *repr;
} TYPE_NAMES[] = {
    [JINJA_UNDEFINED] = {"Undefined", "jinja2.runtime.Undefined object"},
    [JINJA_NONE] = {"NoneType", "None"},
    [JINJA_BOOL] = {"bool", "bool object"},
    [JINJA_INT] = {"int", "int object"},
    [JINJA_BIGINT] = {"int", "int object"},
    [JINJA_FLOAT] = {"float", "float object"},
    [JINJA_STR] = {"str", "str object"},
    [JINJA_LIST] = {"list", "list object"},
    [JINJA_TUPLE] = {"tuple", "tuple object"},
    [JINJA_DICT] = {"dict", "dict object"},
    [JINJA_RANGE] = {"range", "range object"},
    [JINJA_GENERATOR] = {"generator", "generator object"},
    [JINJA_KEYS] = {"dict_keys", "dict_keys object"},
    [JINJA_VALUES] = {"dict_values", "dict_values object"},
    [JINJA_ITEMS] = {"dict_items", "dict_items object"},
    [JINJA_NAMESPACE] = {"Namespace", "jinja2.utils.Namespace object"},
    [JINJA_LOOP] = {"LoopContext", "jinja2.runtime.LoopContext object"},
    [JINJA_MACRO] = {"Macro", "jinja2.runtime.Macro object"},
    [JINJA_FUNCTION] = {"function", "function object"},
    [JINJA_METHOD] = {"builtin_function_or_method", "builtin_function_or_method object"},
    [JINJA_CYCLER] = {"Cycler", "jinja2.utils.Cycler object"},
    [JINJA_JOINER] = {"Joiner", "jinja2.utils.Joiner object"},
};

const char *jinja_type_name(const jinja_value *v)
{
    return TYPE_NAMES[v->type].name;
}

const char *jinja_type_repr(const jinja_value *v)
{
    return TYPE_NAMES[v->type].repr;
}

/* ---- walking ---- */

bool jinja_iter_init(jinja_iter *it, const jinja_value *v)
{
    *it = (jinja_iter){.over = *v};
    return v->type == JINJA_UNDEFINED || (v->type >= JINJA_STR && v->type <= JINJA_ITEMS);
}

static bool next_of_map(jinja_memory *m, jinja_iter *it, jinja_value *item)
{
    const jinja_map *map = it->over.as.map;
    if (it->i >= map->len) {
        return false;
    }
    const jinja_entry *e = &map->entries[it->i++];
    *item = it->over.type == JINJA_VALUES  ? e->value
            : it->over.type == JINJA_ITEMS ? jinja_pair(m, e->key, e->value)
                                           : e->key;
    return true;
}

bool jinja_iter_next(jinja_memory *m, jinja_iter *it, jinja_value *item)
{
    const jinja_value *v = &it->over;
    switch (v->type) {
    case JINJA_STR: {
        if (it->i >= v->len) {
            return false;
        }
        uint32_t c;
        size_t n = utf8_decode(v->as.text + it->i, v->len - it->i, &c);
        *item = jinja_borrow(v->as.text + it->i, n);
        it->i += n;
        return true;
    }
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_GENERATOR: {
        size_t *at = v->type == JINJA_GENERATOR ? &v->as.seq->pos : &it->i;
        if (*at >= v->as.seq->len) {
            return false;
        }
        *item = v->as.seq->items[(*at)++];
        return true;
    }
    case JINJA_RANGE:
        if (it->i >= v->as.range->len) {
            return false;
        }
        *item = jinja_make_int(v->as.range->start + (int64_t)it->i++ * v->as.range->step);
        return true;
    case JINJA_DICT:
    case JINJA_KEYS:
    case JINJA_VALUES:
    case JINJA_ITEMS:
        return next_of_map(m, it, item);
    default:
        return false;
    }
}
