#include "text/grammar/json_schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "text/grammar/json_schema_private.h"

/* ---- places and errors ---- */

static void append_path(bytes *out, const place *at)
{
    if (at->up && !at->reference) {
        append_path(out, at->up);
    }
    if (at->up) {
        bytes_append_char(out, '.');
        bytes_append_str(out, at->step);
    }
}

err_code schema_refuse(schema_compiler *c, const place *at, const char *keyword, err_code code,
                       const char *format, ...)
{
    char why[ERR_TEXT_MAX];
    va_list args;
    if (c->err != ERR_OK) {
        return c->err;
    }
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    bytes path = bytes_empty(LIMIT_VALUE_BYTES);
    bytes_append_str(&path, c->path);
    append_path(&path, at);
    if (keyword) {
        bytes_append_char(&path, '.');
        bytes_append_str(&path, keyword);
    }
    c->err = err_set_param(c->detail, code, bytes_str(&path),
                           code == ERR_UNSUPPORTED ? "not_supported" : "invalid_schema", "%s: %s",
                           bytes_str(&path), why);
    bytes_deinit(&path);
    return c->err;
}

void schema_add_place(schema_compiler *c, const place *at, const char *keyword)
{
    const err_code err = c->err;
    if (err != ERR_OK && c->detail && !c->detail->param[0]) {
        char why[ERR_TEXT_MAX];
        snprintf(why, sizeof why, "%s", c->detail->text);
        c->err = ERR_OK;
        schema_refuse(c, at, keyword, err, "%s", why);
    }
}

enum { PLACE_STEPS = 50 };

const place *schema_place(schema_compiler *c, const place *up, const json *schema, bool same_value,
                          const char *format, ...)
{
    char step[ERR_PARAM_MAX];
    va_list args;
    (void)work_do(c->work, PLACE_STEPS);
    va_start(args, format);
    const int n = vsnprintf(step, sizeof step, format, args);
    va_end(args);
    const size_t len = n < (int)sizeof step ? (size_t)n : sizeof step - 1;
    place *made = arena_calloc(grammar_arena(c->g), 1, sizeof *made);
    char *copy = made ? arena_strdup(grammar_arena(c->g), step, len) : NULL;
    if (!copy) {
        return NULL;
    }
    *made = (place){.schema = schema, .up = up, .step = copy, .same_value = same_value};
    return made;
}

static void too_large(schema_compiler *c)
{
    if (c->err == ERR_OK) {
        c->err = err_set_param(c->detail, ERR_LIMIT, c->path, "invalid_schema",
                               "%s: the schema is too large: its grammar would take more than %zu MiB",
                               c->path, LIMIT_GRAMMAR_BYTES >> 20);
    }
}

/* One step of a JSON pointer, `~0`, `~1` and percent escapes undone; a list is indexed. A name of more than 1023 bytes is not
 * found. */
static const json *follow_step(const json *at, const char *step, size_t len, work_count *work)
{
    char name[1024];
    size_t n = 0;
    (void)work_do(work, len + PLACE_STEPS);
    for (size_t i = 0; i < len; i++) {
        unsigned byte;
        if (n + 1 == sizeof name) {
            return NULL;
        }
        if (step[i] == '~' && i + 1 < len) {
            name[n++] = step[++i] == '1' ? '/' : '~';
        } else if (step[i] == '%' && i + 2 < len && sscanf(step + i + 1, "%2x", &byte) == 1) {
            name[n++] = (char)byte;
            i += 2;
        } else {
            name[n++] = step[i];
        }
    }
    name[n] = '\0';
    if (!json_is(at, JSON_ARRAY)) {
        return json_get(at, name);
    }
    char *end;
    long index = strtol(name, &end, 10);
    const json *item = *name && !*end ? json_child(at) : NULL;
    while (item && index-- > 0 && work_do(work, 1)) {
        item = json_next(item);
    }
    return item;
}

const json *schema_resolve(const json *root, const char *reference, work_count *work)
{
    const json *at = *reference == '#' ? root : NULL;
    const char *p = reference + (*reference == '#');
    while (at && *p == '/') {
        const size_t len = strcspn(++p, "/");
        at = follow_step(at, p, len, work);
        p += len;
    }
    return *p ? NULL : at;
}

/* ---- conjunctions ---- */

static int compare_members(const void *a, const void *b)
{
    const member *x = a, *y = b;
    const uintptr_t p = (uintptr_t)x->at->schema, q = (uintptr_t)y->at->schema;
    return (p > q) - (p < q); /* none is a member twice */
}

static bool same_members(const conjunction *a, const member *members, size_t n, bool raw)
{
    bool same = a->n == n && a->raw == raw;
    for (size_t i = 0; i < n && same; i++) {
        same = a->key[i].at->schema == members[i].at->schema && a->key[i].done == members[i].done;
    }
    return same;
}

/* The node of what satisfies all members, at most SCHEMA_MERGED_MAX; one that is not known yet is
 * queued. The order of the members is that of their properties, but does not tell conjunctions
 * apart. */
static int32_t node_of(schema_compiler *c, const member *members, size_t n, bool raw)
{
    arena *a = grammar_arena(c->g);
    uint64_t hash = raw;
    (void)work_do(c->work, PLACE_STEPS + 8 * n);
    member key[SCHEMA_MERGED_MAX];
    memcpy(key, members, n * sizeof *key);
    qsort(key, n, sizeof *key, compare_members);
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ (uintptr_t)key[i].at->schema ^ key[i].done) * 0x100000001b3u;
        hash ^= hash >> 31;
    }
    conjunction **bucket = &c->buckets[hash % (sizeof c->buckets / sizeof c->buckets[0])];
    for (conjunction *k = *bucket; k && work_do(c->work, 2); k = k->bucket_next) {
        if (k->hash == hash && same_members(k, key, n, raw)) {
            return k->node;
        }
    }
    conjunction *made = arena_calloc(a, 1, sizeof *made);
    member *copy = arena_calloc(a, 2 * n + 1, sizeof *copy);
    if (!made || !copy) {
        too_large(c);
        return GRAMMAR_NEVER;
    }
    memcpy(copy, members, n * sizeof *copy);
    memcpy(copy + n, key, n * sizeof *copy);
    *made = (conjunction){.members = copy,
                          .key = copy + n,
                          .n = n,
                          .raw = raw,
                          .node = grammar_hole(c->g),
                          .hash = hash,
                          .bucket_next = *bucket};
    *bucket = made;
    *(c->first ? &c->last->next : &c->first) = made;
    c->last = made;
    return made->node;
}

/* Whether the reference of `at` to `target` begins anew with the same value: such a schema demands
 * itself. */
static bool is_circular(const place *at, const json *target)
{
    for (;; at = at->up) {
        if (at->schema == target) {
            return true;
        }
        if (!at->up || !at->same_value) {
            return false;
        }
    }
}

typedef struct flat {
    member members[SCHEMA_MERGED_MAX];
    size_t n;
    bool never;
} flat;

static bool has_member(schema_compiler *c, const flat *f, const json *schema)
{
    (void)work_do(c->work, f->n);
    for (size_t i = 0; i < f->n; i++) {
        if (f->members[i].at->schema == schema) {
            return true;
        }
    }
    return false;
}

/* at NULL: there was no memory for the place. */
static void add_member(schema_compiler *c, flat *f, const place *at)
{
    if (!at) {
        too_large(c);
    } else if (json_is(at->schema, JSON_BOOL)) {
        f->never = f->never || !json_is_true(at->schema);
    } else if (!json_is(at->schema, JSON_OBJECT)) {
        schema_refuse(c, at, NULL, ERR_INVALID, "a schema must be an object, true or false");
    } else if (has_member(c, f, at->schema)) {
        return;
    } else if (f->n == SCHEMA_MERGED_MAX) {
        schema_refuse(c, at, NULL, ERR_LIMIT, "more than %d schemas hold for one value", SCHEMA_MERGED_MAX);
    } else {
        f->members[f->n++] = (member){at, 0};
    }
}

static void add_reference(schema_compiler *c, flat *f, const place *at, const json *value)
{
    const char *text = json_str(value, "");
    const json *target = schema_resolve(c->root, text, c->work);
    if (!target) {
        schema_refuse(c, at, "$ref", ERR_INVALID,
                      "$ref \"%.100s\" leads nowhere; it must be \"#/...\", a place in the same schema",
                      text);
    } else if (is_circular(at, target)) {
        f->never = true;
    } else {
        place *to = (place *)schema_place(c, at, target, true, "%s", text[1] ? text + 2 : "");
        for (char *p = to ? (char *)to->step : NULL; p && *p; p++) {
            *p = *p == '/' ? '.' : *p;
        }
        if (to) {
            to->reference = true;
        }
        add_member(c, f, to);
    }
}

/* Adds what $ref and allOf of the members mean, until nothing is left to add. */
static void flatten(schema_compiler *c, flat *f, const conjunction *from)
{
    f->never = false;
    f->n = 0;
    for (size_t i = 0; i < from->n; i++) {
        add_member(c, f, from->members[i].at);
        if (f->n && f->members[f->n - 1].at == from->members[i].at) {
            f->members[f->n - 1].done = from->members[i].done;
        }
    }
    for (size_t i = 0; i < f->n && c->err == ERR_OK; i++) {
        const place *at = f->members[i].at;
        const json *reference = json_get(at->schema, "$ref"), *all = json_get(at->schema, "allOf");
        if (f->members[i].done & DONE_LINKS) {
            continue;
        }
        f->members[i].done |= DONE_LINKS;
        if (reference) {
            add_reference(c, f, at, reference);
        }
        if (all && (!json_is(all, JSON_ARRAY) || !json_child(all))) {
            schema_refuse(c, at, "allOf", ERR_INVALID, "allOf must be a list that is not empty");
        }
        int k = 0;
        for (const json *v = json_child(all); v && c->err == ERR_OK; v = json_next(v)) {
            add_member(c, f, schema_place(c, at, v, true, "allOf[%d]", k++));
        }
    }
}

/* ---- choices ---- */

/* Also an error: the work has ended. */
static void check_one_of(schema_compiler *c, const place *at, const json *list)
{
    size_t i, k;
    if (schema_find_overlap(&i, &k, c->root, list, c->work)) {
        schema_refuse(c, at, "oneOf", ERR_UNSUPPORTED,
                      "a value could satisfy alternatives %zu and %zu of oneOf: use anyOf, or give them "
                      "different types or different values of a required property",
                      i, k);
    }
    c->err = c->err ? c->err : work_error(c->work);
}

/* Replaces a member's anyOf or oneOf by a choice of conjunctions, each with one branch more. */
static int32_t choose(schema_compiler *c, const flat *f, size_t chosen, unsigned which, bool raw)
{
    const char *keyword = which == DONE_ANY_OF ? "anyOf" : "oneOf";
    const place *at = f->members[chosen].at;
    const json *list = json_get(at->schema, keyword);
    const size_t n = json_is(list, JSON_ARRAY) ? json_len(list) : 0;
    c->n_branches += n < LIMIT_SCHEMA_BRANCHES ? (int32_t)n : LIMIT_SCHEMA_BRANCHES;
    if (n == 0) {
        schema_refuse(c, at, keyword, ERR_INVALID, "%s must be a list that is not empty", keyword);
    } else if (c->n_branches > LIMIT_SCHEMA_BRANCHES || f->n == SCHEMA_MERGED_MAX) {
        schema_refuse(c, at, keyword, ERR_LIMIT, "all alternatives multiplied out are more than %d",
                      LIMIT_SCHEMA_BRANCHES);
    } else if (which == DONE_ONE_OF) {
        check_one_of(c, at, list);
    }
    int32_t *nodes = c->err == ERR_OK ? arena_calloc(grammar_arena(c->g), n, sizeof *nodes) : NULL;
    member members[SCHEMA_MERGED_MAX];
    size_t i = 0;
    if (!nodes) {
        too_large(c); /* unless something else was said before */
        return GRAMMAR_NEVER;
    }
    for (const json *v = json_child(list); v && c->err == ERR_OK; v = json_next(v), i++) {
        memcpy(members, f->members, f->n * sizeof *members);
        members[chosen].done |= which;
        members[f->n] = (member){schema_place(c, at, v, true, "%s[%zu]", keyword, i), 0};
        if (members[f->n].at) {
            nodes[i] = node_of(c, members, f->n + 1, raw);
        } else {
            too_large(c);
        }
    }
    return grammar_choice(c->g, nodes, n);
}

/* ---- arrays ---- */

/* What one member says of a list's items. */
typedef struct item_rules {
    const json **prefix; /* [n] of the first ones */
    size_t n;
    const json *others; /* or NULL */
    const char *name;   /* of the keyword that says it */
} item_rules;

static void read_item_rules(schema_compiler *c, item_rules *r, const json *schema)
{
    const json *items = json_get(schema, "items"), *prefix = json_get(schema, "prefixItems");
    *r = (item_rules){.others = items, .name = "items"};
    if (!prefix && json_is(items, JSON_ARRAY)) { /* as before draft 2020-12 */
        prefix = items;
        *r = (item_rules){.others = json_get(schema, "additionalItems"), .name = "additionalItems"};
    }
    const size_t n = json_len(prefix);
    r->prefix = arena_calloc(grammar_arena(c->g), n + 1, sizeof *r->prefix);
    for (const json *v = json_child(prefix); v && r->prefix; v = json_next(v)) {
        r->prefix[r->n++] = v;
    }
    if (!work_do(c->work, n) || !r->prefix) {
        too_large(c);
    }
}

/* The item at `index` must satisfy what every member says of it. */
static int32_t item_node(schema_compiler *c, const conjunction *all, const item_rules *rules, size_t index)
{
    flat f = {.n = 0};
    for (size_t i = 0; i < all->n; i++) {
        const place *at = all->members[i].at;
        const item_rules *r = &rules[i];
        if (index < r->n) {
            add_member(c, &f, schema_place(c, at, r->prefix[index], false, "prefixItems[%zu]", index));
        } else if (r->others) {
            add_member(c, &f, schema_place(c, at, r->others, false, "%s", r->name));
        }
    }
    return f.never ? GRAMMAR_NEVER : node_of(c, f.members, f.n, false); /* no member: anything */
}

static int32_t pair(schema_compiler *c, int32_t a, int32_t b)
{
    const int32_t parts[] = {a, b};
    return grammar_sequence(c->g, parts, 2);
}

static int32_t either(schema_compiler *c, int32_t a, int32_t b)
{
    const int32_t parts[] = {a, b};
    return a == GRAMMAR_NEVER ? b : b == GRAMMAR_NEVER ? a : grammar_choice(c->g, parts, 2);
}

/* open space inside space close, or open close if `inside` may be left out. */
static int32_t enclose(schema_compiler *c, const char *marks, int32_t inside, bool may_be_empty)
{
    const int32_t space = grammar_space(c->g), close = grammar_text(c->g, marks + 1, 1);
    const int32_t full[] = {space, inside, space, close};
    const int32_t body = grammar_sequence(c->g, full, 4);
    return pair(c, grammar_text(c->g, marks, 1), may_be_empty ? either(c, body, close) : body);
}

static int32_t array_node(schema_compiler *c, const merged *m, const conjunction *all)
{
    size_t n_all = 0;
    item_rules *rules = arena_calloc(grammar_arena(c->g), all->n + 1, sizeof *rules);
    if (!rules) {
        too_large(c);
        return GRAMMAR_NEVER;
    }
    for (size_t i = 0; i < all->n; i++) {
        read_item_rules(c, &rules[i], all->members[i].at->schema);
        n_all = rules[i].n > n_all ? rules[i].n : n_all;
    }
    const int32_t max = m->max_items, n = n_all < (size_t)max ? (int32_t)n_all : max;
    int32_t item = item_node(c, all, rules, (size_t)n);
    if (c->err != ERR_OK || m->min_items > max) {
        return GRAMMAR_NEVER;
    }
    const int32_t more = pair(c, schema_comma(c), item), left = max == GRAMMAR_MANY ? max : max - n;
    const int32_t missing = m->min_items > n ? m->min_items - n : 0;
    int32_t rest;
    if (n == 0) {
        rest = grammar_repeat(c->g, item, more, missing > 1 ? missing : 1, left > 1 ? left : 1);
    } else {
        rest = grammar_repeat(c->g, more, more, missing, left);
    }
    /* rest: what may stand behind i + 1 items */
    for (int32_t i = n - 1; i >= 0; i--) {
        item = item_node(c, all, rules, (size_t)i);
        const int32_t parts[] = {i > 0 ? schema_comma(c) : GRAMMAR_EMPTY, item, rest};
        rest = grammar_sequence(c->g, parts, 3);
        rest = i > 0 && i >= m->min_items ? either(c, rest, GRAMMAR_EMPTY) : rest;
    }
    return max == 0 ? grammar_text(c->g, "[]", 2) : enclose(c, "[]", rest, m->min_items == 0);
}

/* ---- objects ---- */

typedef struct property {
    const char *name;
    bool required;
    int32_t node;
} property;

typedef struct property_list {
    property *items;
    size_t n;
    const char **names;
} property_list;

/* One mention of a name, the `order`-th of all. */
typedef struct mention {
    const char *name;
    size_t order;
    bool required;
} mention;

static int compare_mentions(const void *a, const void *b)
{
    const mention *x = a, *y = b;
    const int names = strcmp(x->name, y->name);
    return names ? names : (x->order > y->order) - (x->order < y->order);
}

static int compare_orders(const void *a, const void *b)
{
    const mention *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

/* Joins the mentions of each name to the first; the others are left out. */
static size_t join_mentions(mention *mentions, size_t n)
{
    size_t n_names = 0;
    qsort(mentions, n, sizeof *mentions, compare_mentions);
    for (size_t i = 0; i < n; i++) {
        if (n_names && strcmp(mentions[n_names - 1].name, mentions[i].name) == 0) {
            mentions[n_names - 1].required = mentions[n_names - 1].required || mentions[i].required;
        } else {
            mentions[n_names++] = mentions[i];
        }
    }
    qsort(mentions, n_names, sizeof *mentions, compare_orders);
    return n_names;
}

static void too_many_properties(schema_compiler *c, const conjunction *all)
{
    schema_refuse(c, all->members[0].at, "properties", ERR_LIMIT, "an object has more than %d properties",
                  LIMIT_SCHEMA_PROPERTIES);
}

enum { MENTION_STEPS = 30 };

/* The names in the members' properties and required, in the order of their first mention. */
static void list_properties(schema_compiler *c, property_list *l, const conjunction *all)
{
    size_t most = 1;
    for (size_t i = 0; i < all->n; i++) {
        const place *at = all->members[i].at;
        const json *properties = json_get(at->schema, "properties"),
                   *required = json_get(at->schema, "required");
        if (properties && !json_is(properties, JSON_OBJECT)) {
            schema_refuse(c, at, "properties", ERR_INVALID, "properties must be an object");
        }
        if (required && !json_is(required, JSON_ARRAY)) {
            schema_refuse(c, at, "required", ERR_INVALID, "required must be a list of names");
        }
        most += json_len(properties) + json_len(required);
    }
    if (most - 1 > 2 * (size_t)LIMIT_SCHEMA_PROPERTIES * (all->n ? all->n : 1)) {
        too_many_properties(c, all);
    }
    mention *mentions = c->err ? NULL : arena_calloc(grammar_arena(c->g), most, sizeof *mentions);
    if (!mentions || !work_do(c->work, MENTION_STEPS * most)) {
        too_large(c);
        return;
    }
    size_t n = 0;
    for (int required = 0; required < 2; required++) {
        for (size_t i = 0; i < all->n; i++) {
            const json *list = json_get(all->members[i].at->schema, required ? "required" : "properties");
            for (const json *v = json_child(list); v; v = json_next(v), n++) {
                mentions[n] = (mention){required ? json_str(v, "") : json_key(v), n, required};
            }
        }
    }
    n = join_mentions(mentions, n);
    if (n > LIMIT_SCHEMA_PROPERTIES) {
        too_many_properties(c, all);
    }
    l->items = arena_calloc(grammar_arena(c->g), n + 1, sizeof *l->items);
    l->names = arena_calloc(grammar_arena(c->g), n + 1, sizeof *l->names);
    if (!l->items || !l->names) {
        too_large(c);
    }
    for (; l->n < n && c->err == ERR_OK; l->n++) {
        l->names[l->n] = mentions[l->n].name;
        l->items[l->n] = (property){.name = mentions[l->n].name, .required = mentions[l->n].required};
    }
}

/* The value of the property must satisfy what every member says of it; name NULL: of those that no
 * one names. */
static int32_t property_node(schema_compiler *c, const conjunction *all, const char *name, bool raw)
{
    flat f = {.n = 0};
    for (size_t i = 0; i < all->n; i++) {
        const place *at = all->members[i].at;
        const json *own = name ? json_get(json_get(at->schema, "properties"), name) : NULL;
        const json *others = json_get(at->schema, "additionalProperties");
        if (own) {
            add_member(c, &f, schema_place(c, at, own, false, "properties.%s", name));
        } else if (others) {
            add_member(c, &f, schema_place(c, at, others, false, "additionalProperties"));
        }
    }
    return f.never ? GRAMMAR_NEVER : node_of(c, f.members, f.n, raw); /* no member: anything */
}

/* Whether properties may be written that no member names: only if one says so, or none names
 * any. */
static bool is_open(const conjunction *all)
{
    bool named = false, asked = false;
    for (size_t i = 0; i < all->n; i++) {
        const json *schema = all->members[i].at->schema, *others = json_get(schema, "additionalProperties");
        if (json_get(schema, "unevaluatedProperties") ||
            (json_is(others, JSON_BOOL) && !json_is_true(others))) {
            return false;
        }
        named = named || json_get(schema, "properties");
        asked = asked || others;
    }
    return asked || !named;
}

/* The properties behind those that are named: `first` if nothing was written yet, `after`
 * otherwise. */
static void other_properties(schema_compiler *c, int32_t *first, int32_t *after, const property_list *l,
                             const conjunction *all)
{
    const int32_t value = is_open(all) ? property_node(c, all, NULL, false) : GRAMMAR_NEVER;
    *first = GRAMMAR_NEVER;
    *after = GRAMMAR_EMPTY;
    if (c->err != ERR_OK || value == GRAMMAR_NEVER) {
        return;
    }
    const int32_t key = schema_other_key(c, l->names, l->n), parts[] = {key, schema_colon(c), value};
    const int32_t entry = grammar_sequence(c->g, parts, 3);
    const int32_t more = pair(c, schema_comma(c), entry);
    *after = grammar_repeat(c->g, more, more, 0, GRAMMAR_MANY);
    *first = pair(c, entry, *after);
}

static void check_counts(schema_compiler *c, const merged *m, const property_list *l, const conjunction *all,
                         size_t n_required)
{
    const bool open = is_open(all);
    if ((size_t)m->min_properties > (n_required ? n_required : 1) ||
        (m->max_properties != GRAMMAR_MANY && (open || (size_t)m->max_properties < l->n))) {
        schema_refuse(c, all->members[0].at,
                      m->max_properties != GRAMMAR_MANY ? "maxProperties" : "minProperties", ERR_UNSUPPORTED,
                      "minProperties and maxProperties are supported only where `required` and `properties` "
                      "say the same");
    }
}

static int32_t object_node(schema_compiler *c, const merged *m, const conjunction *all)
{
    property_list l = {0};
    int32_t first, after;
    size_t n_required = 0;
    list_properties(c, &l, all);
    for (size_t i = 0; i < l.n && c->err == ERR_OK; i++) {
        (void)work_do(c->work, MENTION_STEPS * all->n);
        n_required += l.items[i].required;
        l.items[i].node = property_node(c, all, l.items[i].name, false);
    }
    check_counts(c, m, &l, all, n_required);
    other_properties(c, &first, &after, &l, all);
    for (size_t i = l.n; i-- > 0;) {
        const property *p = &l.items[i];
        if (p->node == GRAMMAR_NEVER && !p->required) {
            continue;
        }
        const int32_t parts[] = {schema_quoted(c, p->name), schema_colon(c), p->node, after};
        const int32_t entry = grammar_sequence(c->g, parts, 4), more = pair(c, schema_comma(c), entry);
        first = p->required ? entry : either(c, entry, first);
        after = p->required ? more : either(c, more, after);
    }
    const bool may_be_empty = n_required == 0 && m->min_properties == 0;
    if (first == GRAMMAR_NEVER) {
        return may_be_empty ? grammar_text(c->g, "{}", 2) : GRAMMAR_NEVER;
    }
    return enclose(c, "{}", first, may_be_empty);
}

/* ---- all kinds ---- */

/* A conjunction without choices. */
static int32_t value_node_of(schema_compiler *c, const conjunction *all)
{
    merged m;
    int32_t choices[8] = {0};
    size_t n = 0;
    c->err = schema_merge(c, &m, all);
    if (c->err != ERR_OK || m.has_values) {
        return c->err != ERR_OK ? GRAMMAR_NEVER : schema_values(c, &m, all->raw);
    }
    if (m.types & TYPE_STRING) {
        choices[n++] = schema_string(c, &m, all->raw);
    }
    const size_t n_closed = n;
    if (m.types & TYPE_NUMBER) {
        choices[n++] = schema_number(c, &m);
    }
    if (m.types & TYPE_ARRAY) {
        choices[n++] = array_node(c, &m, all);
    }
    if (m.types & TYPE_OBJECT) {
        choices[n++] = object_node(c, &m, all);
    }
    if (m.types & TYPE_BOOL) {
        choices[n++] = either(c, grammar_text(c->g, "true", 4), grammar_text(c->g, "false", 5));
    }
    if (m.types & TYPE_NULL) {
        choices[n++] = grammar_text(c->g, "null", 4);
    }
    for (size_t i = n_closed; i < n; i++) {
        choices[i] = schema_closed(c, choices[i], all->raw);
    }
    return grammar_choice(c->g, choices, n);
}

static void build(schema_compiler *c, const conjunction *from)
{
    flat f;
    int32_t node = GRAMMAR_NEVER;
    flatten(c, &f, from);
    size_t chosen = f.n;
    unsigned which = 0;
    for (size_t i = 0; i < f.n && !which && !f.never; i++) {
        const json *schema = f.members[i].at->schema;
        which = json_get(schema, "anyOf") && !(f.members[i].done & DONE_ANY_OF)   ? DONE_ANY_OF
                : json_get(schema, "oneOf") && !(f.members[i].done & DONE_ONE_OF) ? DONE_ONE_OF
                                                                                  : 0;
        chosen = i;
    }
    if (which) {
        node = choose(c, &f, chosen, which, from->raw);
    } else if (!f.never && c->err == ERR_OK) {
        const conjunction all = {.members = f.members, .n = f.n, .raw = from->raw};
        node = value_node_of(c, &all);
    }
    grammar_fill(c->g, from->node, node);
}

static err_code build_all(schema_compiler *c)
{
    for (conjunction *k = c->first; k && c->err == ERR_OK; k = k->next) {
        if (work_do(c->work, PLACE_STEPS)) {
            build(c, k);
        } else {
            c->err = work_error(c->work);
        }
        if (k->n) {
            schema_add_place(c, k->members[0].at, NULL);
        }
    }
    return c->err;
}

static void open_compiler(schema_compiler *c, const schema_target *target, const json *schema,
                          err_detail *detail)
{
    *c = (schema_compiler){.g = target->g,
                           .root = schema,
                           .path = target->path,
                           .close = target->close,
                           .work = grammar_work(target->g),
                           .detail = detail};
    c->root_place = (place){.schema = schema, .step = ""};
    if (detail) {
        *detail = (err_detail){0};
    }
}

err_code json_schema_compile(int32_t *node, const schema_target *target, const json *schema,
                             err_detail *detail)
{
    schema_compiler c;
    open_compiler(&c, target, schema, detail);
    member one = {&c.root_place, 0};
    *node = node_of(&c, &one, 1, target->close != NULL);
    return build_all(&c);
}

err_code json_schema_compile_parameters(int32_t *node, const schema_target *target, const json *schema,
                                        const schema_parameters *form, err_detail *detail)
{
    schema_compiler c;
    property_list l = {0};
    flat f;
    open_compiler(&c, target, schema, detail);
    c.close = form->close;
    member one = {&c.root_place, 0};
    const conjunction root = {.members = &one, .n = 1};
    flatten(&c, &f, &root);
    const conjunction all = {.members = f.members, .n = f.n};
    list_properties(&c, &l, &all);
    int32_t rest = f.never ? GRAMMAR_NEVER : GRAMMAR_EMPTY;
    for (size_t i = l.n; i-- > 0;) {
        bytes open = bytes_empty(LIMIT_VALUE_BYTES);
        bytes_printf(&open, "%s%s%s", form->begin, l.items[i].name, form->name_end);
        const int32_t value = property_node(&c, &all, l.items[i].name, form->close != NULL);
        const int32_t parts[] = {grammar_text(c.g, bytes_str(&open), open.len), value,
                                 grammar_text(c.g, form->after, strlen(form->after)), rest};
        const int32_t entry = grammar_sequence(c.g, parts, 4);
        rest = l.items[i].required ? entry : either(&c, entry, rest);
        grammar_note_text(c.g, &open);
        bytes_deinit(&open);
    }
    *node = rest;
    return build_all(&c);
}
