/* Filters over many items: join, map, select, sort and the like. */
#include <string.h>

#include "text/jinja/jinja_library.h"

/* ---- attributes of items ---- */

/* item.a.b for "a.b"; a part made of digits is an index. None of them missing is an error by
 * itself. */
static bool get_path(jinja_render *r, const jinja_value *item, const jinja_value *path,
                     const jinja_value *fallback, jinja_value *out)
{
    enum { INDEX_DIGITS = 9 };
    jinja_value v = *item, key, next;
    if (path->type != JINJA_STR) {
        return jinja_getitem(r, item, path, out);
    }
    for (size_t at = 0; at <= path->len;) {
        const char *begin = path->as.text + at;
        const char *dot = at < path->len ? memchr(begin, '.', path->len - at) : NULL;
        size_t len = dot ? (size_t)(dot - begin) : path->len - at;
        key = jinja_borrow(begin, len);
        int64_t index = 0;
        size_t n_digits = 0;
        while (n_digits < len && n_digits < INDEX_DIGITS && begin[n_digits] >= '0' &&
               begin[n_digits] <= '9') {
            index = index * 10 + (begin[n_digits++] - '0');
        }
        if (n_digits > 0 && n_digits == len) {
            key = jinja_make_int(index);
        }
        if (!jinja_getitem(r, &v, &key, &next)) {
            return false;
        }
        v = next.type == JINJA_UNDEFINED && fallback ? *fallback : next;
        at += len + 1;
    }
    *out = v;
    return true;
}

/* item itself, or its attribute if one is asked for. */
static bool key_of(jinja_render *r, const jinja_value *item, const jinja_value *attribute, jinja_value *out)
{
    *out = *item;
    return !attribute || attribute->type == JINJA_NONE || get_path(r, item, attribute, NULL, out);
}

/* Text compared without regard to case. */
static bool fold(jinja_render *r, jinja_value *v, bool case_sensitive)
{
    const jinja_args none = {0};
    const jinja_value given = *v;
    return case_sensitive || v->type != JINJA_STR || jinja_call_str_method(r, &given, "lower", &none, v);
}

/* A list of several attributes, "a,b.c", each as `fold` leaves it. */
static bool keys_of(jinja_render *r, const jinja_value *item, const jinja_value *attributes,
                    bool case_sensitive, jinja_value *out)
{
    const char *text = attributes->as.text, *end = text + attributes->len;
    *out = jinja_new_list(&r->m);
    while (text <= end) {
        const char *comma = text < end ? memchr(text, ',', (size_t)(end - text)) : NULL;
        const jinja_value one = jinja_borrow(text, (size_t)((comma ? comma : end) - text));
        jinja_value key;
        if (!get_path(r, item, &one, NULL, &key) || !fold(r, &key, case_sensitive) ||
            !jinja_check_memory(r)) {
            return false;
        }
        jinja_push(&r->m, out->as.seq, key);
        text += one.len + 1;
    }
    return jinja_work(r, attributes->len);
}

/* ---- asking ---- */

static bool filter_length(const jinja_frame *f, jinja_value *out)
{
    size_t n = 0;
    bool ok = jinja_length(f->self, &n);
    *out = jinja_make_int((int64_t)n);
    return ok || jinja_fail(f->r, "object of type '%s' has no len()", jinja_type_name(f->self));
}

static bool filter_first(const jinja_frame *f, jinja_value *out)
{
    jinja_iter it;
    if (!jinja_walk(f->r, &it, f->self)) {
        return false;
    }
    if (!jinja_iter_next(&f->r->m, &it, out)) {
        *out = jinja_missing("No first item, sequence was empty.");
    }
    return true;
}

static bool filter_last(const jinja_frame *f, jinja_value *out)
{
    jinja_value list, minus_one = jinja_make_int(-1);
    if (f->self->type == JINJA_GENERATOR) {
        return jinja_fail(f->r, "'generator' object is not reversible");
    }
    list = *f->self;
    if (list.type != JINJA_STR && !jinja_is_seq(&list) && !jinja_to_list(f->r, f->self, &list)) {
        return false;
    }
    size_t n;
    if (jinja_length(&list, &n) && n > 0) {
        return jinja_getitem(f->r, &list, &minus_one, out);
    }
    *out = jinja_missing("No last item, sequence was empty.");
    return true;
}

/* ---- changing ---- */

static bool filter_list(const jinja_frame *f, jinja_value *out)
{
    return jinja_to_list(f->r, f->self, out);
}

static bool filter_items(const jinja_frame *f, jinja_value *out)
{
    jinja_value view = *f->self;
    if (f->self->type != JINJA_DICT && f->self->type != JINJA_UNDEFINED) {
        return jinja_fail(f->r, "Can only get item pairs from a mapping.");
    }
    view.type = f->self->type == JINJA_DICT ? JINJA_ITEMS : JINJA_UNDEFINED;
    bool ok = jinja_to_list(f->r, &view, out);
    out->type = JINJA_GENERATOR;
    return ok;
}

static bool filter_reverse(const jinja_frame *f, jinja_value *out)
{
    jinja_value minus_one = jinja_make_int(-1), list;
    const jinja_value *part[3] = {NULL, NULL, &minus_one};
    if (f->self->type == JINJA_STR) {
        return jinja_slice(f->r, f->self, part, out);
    }
    bool ok = jinja_to_list(f->r, f->self, &list) && jinja_slice(f->r, &list, part, out);
    /* Of a generator there is only a list to be had; of anything else an iterator, which has no
     * length. */
    out->type = f->self->type == JINJA_GENERATOR ? JINJA_LIST : JINJA_GENERATOR;
    return ok;
}

static bool filter_join(const jinja_frame *f, jinja_value *out)
{
    jinja_value glue = jinja_borrow("", 0), item, key, text, joined = glue;
    jinja_iter it;
    if ((f->v[0] && !jinja_to_str(f->r, f->v[0], &glue)) || !jinja_walk(f->r, &it, f->self)) {
        return false;
    }
    for (size_t i = 0; jinja_iter_next(&f->r->m, &it, &item); i++) {
        if (!key_of(f->r, &item, f->v[1], &key) || !jinja_to_str(f->r, &key, &text) ||
            !jinja_work(f->r, text.len + glue.len)) {
            return false;
        }
        joined = i ? jinja_concat(&f->r->m, &joined, &glue) : joined;
        joined = jinja_concat(&f->r->m, &joined, &text);
    }
    joined.markup = false;
    *out = joined;
    return true;
}

/* ---- map and select ---- */

/* The arguments behind the first `skip` positional ones. */
static jinja_args rest_args(const jinja_args *args, size_t skip)
{
    jinja_args rest = *args;
    rest.pos += skip;
    rest.n_pos -= skip;
    return rest;
}

/* The filter or test that an argument names. */
static bool find_named(jinja_render *r, const jinja_value *name,
                       const jinja_callable *(*find)(const char *name, size_t len),
                       const jinja_callable **out)
{
    const jinja_value text = name->type == JINJA_STR ? *name : jinja_borrow("", 0);
    *out = find(text.as.text, text.len);
    return *out || jinja_fail(r, "No filter or test named '%.*s'.", (int)(text.len < 40 ? text.len : 40),
                              text.as.text);
}

/* map(attribute='a', default=...) or map('filter', args...). */
static bool filter_map(const jinja_frame *f, jinja_value *out)
{
    jinja_render *r = f->r;
    const jinja_args *args = f->args;
    jinja_iter it;
    jinja_value item, mapped;
    const jinja_value *attribute = args->n_pos == 0 ? jinja_named_arg(args, "attribute", 9) : NULL;
    const jinja_value *fallback = attribute ? jinja_named_arg(args, "default", 7) : NULL;
    const jinja_callable *filter = NULL;
    *out = jinja_new_seq(&r->m, JINJA_GENERATOR, 0);
    if (!jinja_truth(f->self)) {
        return true; /* also for none */
    }
    if (!attribute && args->n_pos == 0) {
        return jinja_fail(r, "map requires a filter argument");
    }
    if (!jinja_walk(r, &it, f->self) ||
        (!attribute && !find_named(r, &args->pos[0], jinja_find_filter, &filter))) {
        return false;
    }
    jinja_args rest = filter ? rest_args(args, 1) : *args;
    while (jinja_iter_next(&r->m, &it, &item)) {
        bool ok = filter ? jinja_invoke(r, filter, &item, &rest, &mapped)
                         : get_path(r, &item, attribute, fallback, &mapped);
        if (!ok || !jinja_work(r, sizeof item)) {
            return false;
        }
        jinja_push(&r->m, out->as.seq, mapped);
    }
    return true;
}

enum { REJECT = 1, BY_ATTRIBUTE = 2 };

/* select, reject, selectattr and rejectattr: items for which a test of them or of an attribute
 * holds, or does not. */
static bool filter_choose(const jinja_frame *f, jinja_value *out)
{
    jinja_render *r = f->r;
    const jinja_args *args = f->args;
    const jinja_value *attribute = f->mode & BY_ATTRIBUTE ? args->pos : NULL;
    const bool wanted = !(f->mode & REJECT);
    jinja_iter it;
    jinja_value item, key, holds;
    size_t skip = attribute != NULL;
    const jinja_callable *test = NULL;
    *out = jinja_new_seq(&r->m, JINJA_GENERATOR, 0);
    if (!jinja_truth(f->self)) {
        return true; /* also for none */
    }
    if (f->mode & BY_ATTRIBUTE && args->n_pos == 0) {
        return jinja_fail(r, "Missing parameter for attribute name");
    }
    if (!jinja_walk(r, &it, f->self) ||
        (args->n_pos > skip && !find_named(r, &args->pos[skip++], jinja_find_test, &test))) {
        return false;
    }
    jinja_args rest = rest_args(args, skip);
    while (jinja_iter_next(&r->m, &it, &item)) {
        key = item;
        if ((attribute && !get_path(r, &item, attribute, NULL, &key)) || !jinja_work(r, sizeof item)) {
            return false;
        }
        holds = key;
        if (test && !jinja_invoke(r, test, &key, &rest, &holds)) {
            return false;
        }
        if (jinja_truth(&holds) == wanted) {
            jinja_push(&r->m, out->as.seq, item);
        }
    }
    return true;
}

/* ---- order ---- */

/* Items with the keys by which they are ordered: themselves or an attribute, folded. */
typedef struct keyed_item {
    jinja_value key, item;
} keyed_item;

typedef struct keyed_items {
    keyed_item *at; /* [len], and as much space behind */
    size_t len;
} keyed_items;

/* by_several: text with commas names more than one attribute; else it is one name. */
static bool read_keyed(jinja_render *r, const jinja_value *self, const jinja_value *attribute,
                       bool by_several, bool case_sensitive, keyed_items *out)
{
    const bool several = by_several && attribute && attribute->type == JINJA_STR &&
                         memchr(attribute->as.text, ',', attribute->len);
    jinja_value list;
    if (!jinja_to_list(r, self, &list)) {
        return false;
    }
    out->len = list.as.seq->len;
    out->at = jinja_alloc(&r->m, (2 * out->len + 1) * sizeof *out->at);
    for (size_t i = 0; out->at && i < out->len; i++) {
        keyed_item *k = &out->at[i];
        k->item = list.as.seq->items[i];
        bool ok = several ? keys_of(r, &k->item, attribute, case_sensitive, &k->key)
                          : key_of(r, &k->item, attribute, &k->key) && fold(r, &k->key, case_sensitive);
        if (!ok) {
            return false;
        }
    }
    return jinja_check_memory(r);
}

/* Fails for an undefined key, if there is another one to compare it with. */
static bool check_keys(jinja_render *r, const keyed_items *items)
{
    for (size_t i = 0; items->len > 1 && i < items->len; i++) {
        if (!jinja_defined(r, &items->at[i].key)) {
            return false;
        }
    }
    return true;
}

/* Stable merge sort; *ok turns false when two keys cannot be compared. */
static void merge_sort(keyed_item *a, keyed_item *space, size_t n, bool descending, bool *ok)
{
    if (n < 2) {
        return;
    }
    size_t half = n / 2;
    merge_sort(a, space, half, descending, ok);
    merge_sort(a + half, space + half, n - half, descending, ok);
    for (size_t i = 0, left = 0, right = half; i < n; i++) {
        int order = 0;
        if (left < half && right < n) {
            *ok = *ok && jinja_compare(&a[left].key, &a[right].key, &order);
        }
        bool take_left = right >= n || (left < half && (descending ? order >= 0 : order <= 0));
        space[i] = take_left ? a[left++] : a[right++];
    }
    memcpy(a, space, n * sizeof *a);
}

static bool sort_keyed(jinja_render *r, keyed_items *items, bool descending)
{
    bool ok = true;
    if (!check_keys(r, items)) {
        return false;
    }
    merge_sort(items->at, items->at + items->len, items->len, descending, &ok);
    return ok ? jinja_work(r, items->len * sizeof(keyed_item) * 16)
              : jinja_fail(r, "items of different types cannot be sorted");
}

/* The items of an iterable as a list, sorted by attributes of them or by themselves. */
static bool sorted_list(jinja_render *r, const jinja_value *self, const jinja_value *attribute,
                        bool case_sensitive, bool descending, jinja_value *out)
{
    keyed_items items;
    if (!read_keyed(r, self, attribute, true, case_sensitive, &items) || !sort_keyed(r, &items, descending)) {
        return false;
    }
    *out = jinja_new_seq(&r->m, JINJA_LIST, items.len);
    for (size_t i = 0; i < items.len; i++) {
        jinja_push(&r->m, out->as.seq, items.at[i].item);
    }
    return true;
}

static bool filter_sort(const jinja_frame *f, jinja_value *out)
{
    return sorted_list(f->r, f->self, f->v[2], jinja_arg_truth(f->v[1], false),
                       jinja_arg_truth(f->v[0], false), out);
}

static bool filter_dictsort(const jinja_frame *f, jinja_value *out)
{
    jinja_value view = *f->self, by;
    if (!jinja_defined(f->r, f->self)) {
        return false;
    }
    if (f->self->type != JINJA_DICT || !jinja_arg_str(f->r, f->v[1], "key", &by)) {
        return jinja_fail(f->r, "'%s' object has no attribute 'items'", jinja_type_name(f->self));
    }
    view.type = JINJA_ITEMS;
    const jinja_value index = jinja_make_int(jinja_is_text(&by, "value"));
    return sorted_list(f->r, &view, &index, jinja_arg_truth(f->v[0], false), jinja_arg_truth(f->v[2], false),
                       out);
}

static bool filter_unique(const jinja_frame *f, jinja_value *out)
{
    keyed_items items;
    jinja_value seen = jinja_new_map(&f->r->m, JINJA_DICT);
    *out = jinja_new_seq(&f->r->m, JINJA_GENERATOR, 0);
    if (!read_keyed(f->r, f->self, f->v[1], false, jinja_arg_truth(f->v[0], false), &items)) {
        return false;
    }
    for (size_t i = 0; i < items.len; i++) {
        const keyed_item *k = &items.at[i];
        if (!jinja_hashable(&k->key)) {
            return jinja_fail(f->r, "unhashable type: '%s'", jinja_type_name(&k->key));
        }
        if (!jinja_map_get(seen.as.map, &k->key)) {
            jinja_map_set(&f->r->m, seen.as.map, k->key, jinja_make_none());
            jinja_push(&f->r->m, out->as.seq, k->item);
        }
    }
    return true;
}

/* max (mode 1) and min (mode -1): the item with the largest or smallest key. */
static bool filter_extreme(const jinja_frame *f, jinja_value *out)
{
    keyed_items items;
    if (!read_keyed(f->r, f->self, f->v[1], false, jinja_arg_truth(f->v[0], false), &items) ||
        !check_keys(f->r, &items)) {
        return false;
    }
    size_t best = 0;
    for (size_t i = 1; i < items.len; i++) {
        int order;
        if (!jinja_compare(&items.at[i].key, &items.at[best].key, &order)) {
            return jinja_fail(f->r, "items of different types cannot be compared");
        }
        best = order == f->mode ? i : best;
    }
    *out = items.len ? items.at[best].item : jinja_missing("No aggregated item, sequence was empty.");
    return true;
}

static bool filter_sum(const jinja_frame *f, jinja_value *out)
{
    jinja_iter it;
    jinja_value item, key, total = f->v[1] ? *f->v[1] : jinja_make_int(0);
    if (!jinja_walk(f->r, &it, f->self)) {
        return false;
    }
    while (jinja_iter_next(&f->r->m, &it, &item)) {
        jinja_value before = total;
        if (!key_of(f->r, &item, f->v[0], &key) || !jinja_binary(f->r, OP_ADD, &before, &key, &total)) {
            return false;
        }
    }
    *out = total;
    return true;
}

/* Groups of items with equal attribute, sorted by it: (grouper, list) pairs. */
static bool filter_groupby(const jinja_frame *f, jinja_value *out)
{
    jinja_memory *m = &f->r->m;
    keyed_items items;
    if (!read_keyed(f->r, f->self, f->v[0], false, false, &items) || !sort_keyed(f->r, &items, false)) {
        return false;
    }
    *out = jinja_new_list(m);
    jinja_value group, key;
    for (size_t i = 0; i < items.len; i++) {
        const keyed_item *k = &items.at[i];
        if (i == 0 || !jinja_equal(&k->key, &k[-1].key)) {
            if (!key_of(f->r, &k->item, f->v[0], &key)) {
                return false;
            }
            group = jinja_pair(m, key, jinja_new_list(m));
            if (!jinja_check_memory(f->r)) {
                return false;
            }
            group.as.seq->is_group = true;
            jinja_push(m, out->as.seq, group);
        }
        jinja_push(m, group.as.seq->items[1].as.seq, k->item);
    }
    return true;
}

static bool filter_batch(const jinja_frame *f, jinja_value *out)
{
    jinja_value list;
    int64_t n;
    if (!jinja_to_list(f->r, f->self, &list) || !jinja_arg_int(f->r, f->v[0], 1, &n) || n < 1 ||
        n > JINJA_MAX_RANGE) {
        return jinja_fail(f->r, "batch needs a positive number of items");
    }
    *out = jinja_new_seq(&f->r->m, JINJA_GENERATOR, 0);
    for (size_t i = 0; i < list.as.seq->len; i += (size_t)n) {
        jinja_value row = jinja_new_list(&f->r->m);
        const size_t left = list.as.seq->len - i, n_row = left < (size_t)n ? left : (size_t)n;
        jinja_push_all(&f->r->m, row.as.seq, list.as.seq->items + i, n_row);
        for (size_t k = n_row; k < (size_t)n && f->v[1] && f->v[1]->type != JINJA_NONE; k++) {
            jinja_push(&f->r->m, row.as.seq, *f->v[1]);
        }
        jinja_push(&f->r->m, out->as.seq, row);
    }
    return true;
}

static bool filter_slice(const jinja_frame *f, jinja_value *out)
{
    jinja_value list;
    int64_t slices;
    if (!jinja_to_list(f->r, f->self, &list) || !jinja_arg_int(f->r, f->v[0], 1, &slices) || slices < 1 ||
        slices > JINJA_MAX_RANGE) {
        return jinja_fail(f->r, "slice needs a positive number of slices");
    }
    size_t n = (size_t)slices, per = list.as.seq->len / n, extra = list.as.seq->len % n, at = 0;
    *out = jinja_new_seq(&f->r->m, JINJA_GENERATOR, 0);
    for (size_t i = 0; i < n; i++) {
        jinja_value row = jinja_new_list(&f->r->m);
        jinja_push_all(&f->r->m, row.as.seq, list.as.seq->items + at, per + (i < extra));
        at += per + (i < extra);
        if (f->v[1] && f->v[1]->type != JINJA_NONE && i >= extra) {
            jinja_push(&f->r->m, row.as.seq, *f->v[1]);
        }
        jinja_push(&f->r->m, out->as.seq, row);
    }
    return true;
}

const jinja_callable JINJA_SEQUENCE_FILTERS[] = {
    JINJA_ONE("batch", "linecount,fill_with", 1, filter_batch),
    JINJA_ONE("count", "", 0, filter_length),
    JINJA_ONE("dictsort", "case_sensitive,by,reverse", 0, filter_dictsort),
    JINJA_ONE("first", "", 0, filter_first),
    JINJA_ONE("groupby", "attribute", 1, filter_groupby),
    JINJA_ONE("items", "", 0, filter_items),
    JINJA_ONE("join", "d,attribute", 0, filter_join),
    JINJA_ONE("last", "", 0, filter_last),
    JINJA_ONE("length", "", 0, filter_length),
    JINJA_ONE("list", "", 0, filter_list),
    JINJA_ONE("map", NULL, 0, filter_map),
    {"max", "case_sensitive,attribute", 0, filter_extreme, 1},
    {"min", "case_sensitive,attribute", 0, filter_extreme, -1},
    {"reject", NULL, 0, filter_choose, REJECT},
    {"rejectattr", NULL, 0, filter_choose, REJECT | BY_ATTRIBUTE},
    JINJA_ONE("reverse", "", 0, filter_reverse),
    {"select", NULL, 0, filter_choose, 0},
    {"selectattr", NULL, 0, filter_choose, BY_ATTRIBUTE},
    JINJA_ONE("slice", "slices,fill_with", 1, filter_slice),
    JINJA_ONE("sort", "reverse,case_sensitive,attribute", 0, filter_sort),
    JINJA_ONE("sum", "attribute,start", 0, filter_sum),
    JINJA_ONE("unique", "case_sensitive,attribute", 0, filter_unique),
    {NULL, NULL, 0, NULL, 0},
};
