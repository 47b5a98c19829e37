#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/file.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/utf8.h"

/* cJSON accepts more than RFC 8259, says nothing about why it refuses and forgets how a number was
 * written. So one strict pass goes over the text first and hands it on with every number as a
 * string that begins with a byte that no text holds. After it, cJSON can only fail for want of
 * memory.
 *
 * TRAP: cJSON stores its last error in a process-wide variable without a lock. Nobody here reads
 * it. */

enum {
    CJSON_DEPTH_MAX = 1000, /* cJSON's own nesting limit (CJSON_NESTING_LIMIT) */
    FINITE_DIGITS = 300,    /* as many digits without an exponent are surely no infinite number */
};

#define NUMBER_MARK "\xFF"

struct json_doc {
    cJSON *root;
    bool failed; /* while it was built: no memory */
};

/* ---- the strict pass ---- */

typedef struct scan {
    const char *text;
    size_t len;
    size_t pos;      /* where reading goes on; after a failure, where the fault is */
    size_t n_values; /* values seen so far, containers included */
    size_t max_depth;
    bytes marked;  /* what cJSON reads: text[0..copied) with its numbers marked */
    size_t copied; /* 0 while no number was seen */
    bool has_nul;  /* a string holds \u0000, the first at nul_pos */
    size_t nul_pos;
    const char *fault; /* what is wrong at pos; NULL while all is well */
    bool over_limit;   /* the fault is a limit, not bad syntax */
} scan;

static bool fail(scan *s, const char *fault)
{
    s->fault = fault;
    return false;
}

/* The character at pos, or -1 at the end. */
static int peek(const scan *s)
{
    return s->pos < s->len ? (unsigned char)s->text[s->pos] : -1;
}

static bool accept(scan *s, int c)
{
    bool found = peek(s) == c;
    s->pos += found;
    return found;
}

static void skip_space(scan *s)
{
    int c = peek(s);
    while (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
        s->pos++;
        c = peek(s);
    }
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

/* Four hex digits at pos + 2 (behind a backslash and u) into *unit; false if they are not there. */
static bool read_unit(const scan *s, size_t pos, unsigned *unit)
{
    if (s->len - pos < 6 || s->text[pos] != '\\' || s->text[pos + 1] != 'u') {
        return false;
    }
    *unit = 0;
    for (size_t i = 2; i < 6; i++) {
        int digit = hex_digit(s->text[pos + i]);
        if (digit < 0) {
            return false;
        }
        *unit = *unit << 4 | (unsigned)digit;
    }
    return true;
}

/* An escape sequence; pos is at the backslash. */
static bool scan_escape(scan *s)
{
    int c = s->pos + 1 < s->len ? (unsigned char)s->text[s->pos + 1] : -1;
    if (c > 0 && strchr("\"\\/bfnrt", c)) {
        s->pos += 2;
        return true;
    }
    if (c != 'u') {
        return fail(s, "an unknown escape sequence");
    }
    unsigned unit;
    if (!read_unit(s, s->pos, &unit)) {
        return fail(s, "\\u without four hexadecimal digits");
    }
    if (unit == 0 && !s->has_nul) {
        s->has_nul = true;
        s->nul_pos = s->pos;
    }
    if (unit >= 0xDC00 && unit <= 0xDFFF) {
        return fail(s, "half of a surrogate pair");
    }
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        unsigned low;
        if (!read_unit(s, s->pos + 6, &low) || low < 0xDC00 || low > 0xDFFF) {
            return fail(s, "half of a surrogate pair");
        }
        s->pos += 6;
    }
    s->pos += 6;
    return true;
}

/* A string; pos is at the opening quote. */
static bool scan_string(scan *s)
{
    s->pos++;
    for (;;) {
        int c = peek(s);
        if (c < 0) {
            return fail(s, "the end of the text inside a string");
        }
        if (c == '"') {
            s->pos++;
            return true;
        }
        if (c == '\\') {
            if (!scan_escape(s)) {
                return false;
            }
        } else if (c < 0x20) {
            return fail(s, "a control character inside a string");
        } else if (c < 0x80) {
            s->pos++;
        } else {
            uint32_t code_point;
            size_t n = utf8_decode(s->text + s->pos, s->len - s->pos, &code_point);
            if (!utf8_valid(s->text + s->pos, n)) {
                return fail(s, "invalid UTF-8");
            }
            s->pos += n;
        }
    }
}

static bool scan_digits(scan *s)
{
    if (!is_digit(peek(s))) {
        return fail(s, "a malformed number");
    }
    while (is_digit(peek(s))) {
        s->pos++;
    }
    return true;
}

static bool scan_number(scan *s)
{
    const size_t start = s->pos;
    bool exponent = false;
    accept(s, '-');
    if (accept(s, '0')) {
        if (is_digit(peek(s))) {
            return fail(s, "a number with a leading zero");
        }
    } else if (!scan_digits(s)) {
        return false;
    }
    if (accept(s, '.') && !scan_digits(s)) {
        return false;
    }
    if (accept(s, 'e') || accept(s, 'E')) {
        exponent = true;
        if (!accept(s, '+')) {
            accept(s, '-');
        }
        if (!scan_digits(s)) {
            return false;
        }
    }
    const size_t n = s->pos - start;
    bytes_append(&s->marked, s->text + s->copied, start - s->copied);
    bytes_append_str(&s->marked, "\"" NUMBER_MARK);
    bytes_append(&s->marked, s->text + start, n);
    s->copied = s->pos;
    if ((exponent || n > FINITE_DIGITS) && !s->marked.failed &&
        !isfinite(strtod(s->marked.data + s->marked.len - n, NULL))) {
        s->pos = start;
        return fail(s, "a number that is too large");
    }
    bytes_append_char(&s->marked, '"');
    return true;
}

static bool scan_word(scan *s, const char *word)
{
    size_t n = strlen(word);
    if (s->len - s->pos < n || memcmp(s->text + s->pos, word, n) != 0) {
        return fail(s, "an unknown word");
    }
    s->pos += n;
    return true;
}

/* A member name and its colon. */
static bool scan_key(scan *s)
{
    if (peek(s) != '"') {
        return fail(s, "no member name in quotes where one is expected");
    }
    if (!scan_string(s)) {
        return false;
    }
    skip_space(s);
    return accept(s, ':') || fail(s, "no ':' behind a member name");
}

static bool scan_value(scan *s, size_t depth);

/* An array or object up to its closing bracket; pos is at the opening one. */
static bool scan_items(scan *s, size_t depth, char closing)
{
    if (depth == s->max_depth) {
        s->over_limit = true;
        return fail(s, "arrays and objects nested too deeply");
    }
    s->pos++;
    skip_space(s);
    if (accept(s, closing)) {
        return true;
    }
    do {
        skip_space(s);
        if ((closing == '}' && !scan_key(s)) || !scan_value(s, depth + 1)) {
            return false;
        }
        skip_space(s);
        if (accept(s, closing)) {
            return true;
        }
    } while (accept(s, ','));
    return fail(s, peek(s) < 0 ? "the end of the text inside an array or object"
                               : "no ',' or closing bracket behind a value");
}

/* Recursion is as deep as the document may be nested. */
static bool scan_value(scan *s, size_t depth)
{
    skip_space(s);
    if (++s->n_values > LIMIT_JSON_VALUES) {
        s->over_limit = true;
        return fail(s, "too many values");
    }
    int c = peek(s);
    switch (c) {
    case '[':
        return scan_items(s, depth, ']');
    case '{':
        return scan_items(s, depth, '}');
    case '"':
        return scan_string(s);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    case -1:
        return fail(s, "the end of the text where a value is expected");
    default:
        return c == '-' || is_digit(c) ? scan_number(s)
                                       : fail(s, "an unexpected character where a value is expected");
    }
}

static bool scan_document(scan *s)
{
    if (!scan_value(s, 0)) {
        return false;
    }
    skip_space(s);
    return peek(s) < 0 || fail(s, "text behind the end of the document");
}

/* The error for what is at s->pos. Column 1 is the first character of a line. */
static err_code report(const scan *s, err_detail *detail)
{
    size_t line = 1, column = 1;
    const bool is_json = !s->fault; /* and holds what our strings cannot */
    for (size_t i = 0; i < s->pos && i < s->len; i++) {
        unsigned char c = (unsigned char)s->text[i];
        if (c == '\n') {
            line++;
            column = 1;
        } else if ((c & 0xC0) != 0x80) {
            column++;
        }
    }
    return err_set_param(detail, s->over_limit ? ERR_LIMIT : ERR_INVALID, NULL,
                         is_json ? "unsupported_character" : "invalid_json", "%s%s, at line %zu, column %zu",
                         is_json ? "a string holds the character \\u0000, which is not supported"
                                 : "JSON is not valid: ",
                         is_json ? "" : s->fault, line, column);
}

/* ---- names of many members ---- */

/* The item behind v in document order, NULL at the end. `stack` holds the open containers. */
static cJSON *next_item(cJSON *v, cJSON **stack, size_t *depth)
{
    if (v->child) {
        stack[(*depth)++] = v;
        return v->child;
    }
    while (!v->next && *depth > 0) {
        v = stack[--*depth];
    }
    return *depth > 0 ? v->next : NULL;
}

enum { INDEXED_MEMBERS = 16 };

/* The members of a large object by name, kept in the item's valuestring: cJSON does not use that
 * field for objects and frees it with the item. Sorted rather than hashed: no choice of names makes
 * looking one up slow. */
typedef struct member_index {
    size_t n;
    const cJSON *members[];
} member_index;

typedef struct numbered_member {
    const cJSON *item;
    size_t place;
} numbered_member;

static int compare_members(const void *a, const void *b)
{
    const numbered_member *x = a, *y = b;
    const int order = strcmp(x->item->string, y->item->string);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* The last of equal names counts. */
static bool index_object(cJSON *v)
{
    size_t n = json_len(v);
    if (n < INDEXED_MEMBERS) {
        return true;
    }
    numbered_member *sorted = cJSON_malloc(n * sizeof *sorted);
    member_index *index = sorted ? cJSON_malloc(sizeof *index + n * sizeof index->members[0]) : NULL;
    if (!index) {
        cJSON_free(sorted);
        return false;
    }
    n = 0;
    for (const cJSON *item = v->child; item; item = item->next) {
        sorted[n] = (numbered_member){item, n};
        n++;
    }
    qsort(sorted, n, sizeof *sorted, compare_members);
    index->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || strcmp(sorted[i].item->string, sorted[i + 1].item->string) != 0) {
            index->members[index->n++] = sorted[i].item;
        }
    }
    cJSON_free(sorted);
    v->valuestring = (char *)index;
    return true;
}

static err_code index_objects(cJSON *root, err_detail *detail)
{
    cJSON *stack[CJSON_DEPTH_MAX];
    size_t depth = 0;
    for (cJSON *v = root; v; v = next_item(v, stack, &depth)) {
        /* What is shared with another document has its index there. */
        if (cJSON_IsObject(v) && !v->valuestring && !index_object(v)) {
            return err_set(detail, ERR_NOMEM, "no memory to read JSON");
        }
    }
    return ERR_OK;
}

static const json *find_indexed(const member_index *index, const char *key)
{
    for (size_t from = 0, to = index->n; from < to;) {
        const size_t middle = from + (to - from) / 2;
        const int order = strcmp(index->members[middle]->string, key);
        if (order == 0) {
            return index->members[middle];
        }
        from = order < 0 ? middle + 1 : from;
        to = order < 0 ? to : middle;
    }
    return NULL;
}

/* ---- documents ---- */

size_t json_memory(const char *text, size_t len)
{
    /* An item, and the allocations of its name and its text, with what malloc adds to each. */
    const size_t per_value = sizeof(cJSON) + 16 + 2 * 32;
    size_t n_values = 1;
    for (size_t i = 0; i < len; i++) {
        n_values += text[i] == ',' || text[i] == '[' || text[i] == '{';
    }
    n_values = n_values < LIMIT_JSON_VALUES ? n_values : LIMIT_JSON_VALUES;
    return n_values * per_value + len;
}

err_code json_parse(json_doc **out, const char *text, size_t len, size_t max_depth, err_detail *detail)
{
    *out = NULL;
    scan s = {
        .text = text, .len = len, .max_depth = max_depth < CJSON_DEPTH_MAX ? max_depth : CJSON_DEPTH_MAX};
    bytes_init(&s.marked, SIZE_MAX);
    json_doc *doc = NULL;
    err_code err = ERR_OK;
    if (!scan_document(&s)) {
        err = report(&s, detail);
        goto out;
    }
    if (s.has_nul) {
        s.pos = s.nul_pos;
        err = report(&s, detail);
        goto out;
    }
    if (s.copied > 0) {
        bytes_append(&s.marked, text + s.copied, len - s.copied);
    }
    doc = calloc(1, sizeof *doc);
    if (doc && !s.marked.failed) {
        doc->root = s.copied > 0 ? cJSON_ParseWithLength(s.marked.data, s.marked.len)
                                 : cJSON_ParseWithLength(text, len);
    }
    if (!doc || !doc->root) {
        err = err_set(detail, ERR_NOMEM, "no memory to read JSON");
        goto out;
    }
    err = index_objects(doc->root, detail);
    if (err == ERR_OK) {
        *out = doc;
        doc = NULL;
    }
out:
    json_free(doc);
    bytes_deinit(&s.marked);
    return err;
}

/* Python writes a number without an end as Infinity, which is no JSON: in its place, outside texts, stands
 * about the largest float. */
static void bound_infinity(char *text, size_t n)
{
    static const char word[] = "Infinity", number[] = "3e38    ";
    const size_t len = sizeof word - 1;
    bool is_quoted = false;
    for (size_t i = 0; i < n; i++) {
        if (is_quoted && text[i] == '\\') {
            i++;
        } else if (text[i] == '"') {
            is_quoted = !is_quoted;
        } else if (!is_quoted && n - i >= len && memcmp(text + i, word, len) == 0) {
            memcpy(text + i, number, len);
        }
    }
}

static err_code parse_file(json_doc **out, const char *path, size_t max_bytes, bool is_pythons,
                           err_detail *detail)
{
    *out = NULL;
    bytes text;
    bytes_init(&text, max_bytes);
    err_code err = file_read(&text, path, detail);
    if (err == ERR_OK) {
        if (is_pythons && text.len > 0) {
            bound_infinity(text.data, text.len);
        }
        err = json_parse(out, bytes_str(&text), text.len, LIMIT_JSON_DEPTH, detail);
        if (err != ERR_OK) {
            err_prefix(detail, err, "%s", path);
        }
    }
    bytes_deinit(&text);
    return err;
}

err_code json_parse_file(json_doc **out, const char *path, size_t max_bytes, err_detail *detail)
{
    return parse_file(out, path, max_bytes, false, detail);
}

static err_code read_from_folder(void *ctx, const char *name, json_doc **out, err_detail *detail)
{
    char path[4096];
    *out = NULL;
    if (!file_join(path, sizeof path, ctx, name)) {
        return err_set(detail, ERR_INVALID, "the path of %s is too long", name);
    }
    return file_exists(path) ? parse_file(out, path, LIMIT_CONFIG_BYTES, true, detail) : ERR_OK;
}

json_source json_folder(const char *dir)
{
    return (json_source){read_from_folder, (void *)(uintptr_t)dir, dir};
}

void json_free(json_doc *doc)
{
    if (doc) {
        cJSON_Delete(doc->root);
        free(doc);
    }
}

bool json_is_object_text(const char *text, size_t len)
{
    json_doc *doc = NULL;
    const bool is_object =
        json_parse(&doc, text, len, LIMIT_JSON_DEPTH, NULL) == ERR_OK && json_is(json_root(doc), JSON_OBJECT);
    json_free(doc);
    return is_object;
}

const json *json_root(const json_doc *doc)
{
    return doc->root;
}

/* ---- building ---- */

json_doc *json_build(json **root, json_type type)
{
    json_doc *doc = calloc(1, sizeof *doc);
    *root = !doc ? NULL : type == JSON_ARRAY ? cJSON_CreateArray() : cJSON_CreateObject();
    if (!*root) {
        free(doc);
        return NULL;
    }
    doc->root = *root;
    return doc;
}

/* Takes over item; returns it, or NULL if there is no memory. */
static json *add(json_doc *doc, json *to, const char *key, json *item)
{
    if (item && to && (key ? cJSON_AddItemToObject(to, key, item) : cJSON_AddItemToArray(to, item))) {
        return item;
    }
    cJSON_Delete(item);
    if (doc) {
        doc->failed = true;
    }
    return NULL;
}

json *json_add_object(json_doc *doc, json *to, const char *key)
{
    return add(doc, to, key, cJSON_CreateObject());
}

json *json_add_array(json_doc *doc, json *to, const char *key)
{
    return add(doc, to, key, cJSON_CreateArray());
}

void json_add_shared(json_doc *doc, json *to, const char *key, const json *v)
{
    if (!v || !doc || doc->failed || !to) {
        return;
    }
    json *item = cJSON_CreateNull(); /* cJSON's own references are lost without memory for their key */
    if (item) {
        *item = *v;
        item->type |= cJSON_IsReference;
        item->string = NULL;
        item->next = item->prev = NULL;
    }
    add(doc, to, key, item);
}

void json_add_string(json_doc *doc, json *to, const char *key, const char *text)
{
    add(doc, to, key, cJSON_CreateString(text));
}

void json_add_bool(json_doc *doc, json *to, const char *key, bool value)
{
    add(doc, to, key, cJSON_CreateBool(value));
}

bool json_finish(json_doc *doc)
{
    return doc && !doc->failed && index_objects(doc->root, NULL) == ERR_OK;
}

/* ---- values ---- */

json_type json_typeof(const json *v)
{
    switch (v ? v->type & 0xFF : cJSON_NULL) {
    case cJSON_True:
    case cJSON_False:
        return JSON_BOOL;
    case cJSON_String:
        return v->valuestring[0] == NUMBER_MARK[0] ? JSON_NUMBER : JSON_STRING;
    case cJSON_Array:
        return JSON_ARRAY;
    case cJSON_Object:
        return JSON_OBJECT;
    default:
        return JSON_NULL;
    }
}

const json *json_get(const json *v, const char *key)
{
    const json *found = NULL;
    if (json_typeof(v) == JSON_OBJECT && v->valuestring) {
        return find_indexed((const member_index *)(const void *)v->valuestring, key);
    }
    if (json_typeof(v) == JSON_OBJECT) {
        for (const json *item = v->child; item; item = item->next) {
            if (strcmp(item->string, key) == 0) {
                found = item;
            }
        }
    }
    return found;
}

const json *json_child(const json *v)
{
    return v ? v->child : NULL;
}

const json *json_next(const json *v)
{
    return v ? v->next : NULL;
}

const char *json_key(const json *v)
{
    return v ? v->string : NULL;
}

size_t json_len(const json *v)
{
    size_t n = 0;
    for (const json *item = json_child(v); item; item = item->next) {
        n++;
    }
    return n;
}

bool json_is(const json *v, json_type type)
{
    return json_typeof(v) == type;
}

bool json_is_true(const json *v)
{
    return cJSON_IsTrue(v);
}

const char *json_str(const json *v, const char *fallback)
{
    return json_is(v, JSON_STRING) ? v->valuestring : fallback;
}

double json_num(const json *v, double fallback)
{
    return json_is(v, JSON_NUMBER) ? strtod(json_number_text(v), NULL) : fallback;
}

bool json_bool(const json *v, bool fallback)
{
    return json_is(v, JSON_BOOL) ? json_is_true(v) : fallback;
}

bool json_int(const json *v, int64_t min, int64_t max, int64_t *out)
{
    const char *text = json_number_text(v);
    if (!text) {
        return false;
    }
    int64_t value;
    if (!strpbrk(text, ".eE")) {
        /* By the digits, because a double loses those of integers beyond 2^53. */
        errno = 0;
        value = strtoll(text, NULL, 10);
        if (errno != 0) {
            return false;
        }
    } else {
        double d = strtod(text, NULL);
        if (d != floor(d) || d < -0x1p63 || d >= 0x1p63) {
            return false;
        }
        value = (int64_t)d;
    }
    if (value < min || value > max) {
        return false;
    }
    *out = value;
    return true;
}

const char *json_number_text(const json *v)
{
    return json_is(v, JSON_NUMBER) ? v->valuestring + 1 : NULL;
}

void json_write(bytes *out, const json *v)
{
    switch (json_typeof(v)) {
    case JSON_NULL:
        bytes_append_str(out, "null");
        return;
    case JSON_BOOL:
        bytes_append_str(out, json_is_true(v) ? "true" : "false");
        return;
    case JSON_NUMBER:
        bytes_append_str(out, json_number_text(v));
        return;
    case JSON_STRING:
        bytes_append_json(out, v->valuestring, strlen(v->valuestring));
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    /* Recursion is as deep as the document, which json_parse bounds. */
    bool object = json_is(v, JSON_OBJECT);
    bytes_append_char(out, object ? '{' : '[');
    for (const json *item = v->child; item && !out->failed; item = item->next) {
        if (item != v->child) {
            bytes_append_char(out, ',');
        }
        if (object) {
            bytes_append_json(out, item->string, strlen(item->string));
            bytes_append_char(out, ':');
        }
        json_write(out, item);
    }
    bytes_append_char(out, object ? '}' : ']');
}
