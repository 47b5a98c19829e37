#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/utf8.h"

/* cJSON accepts more than RFC 8259 and says nothing about why it refuses. So a pre-scan of our own checks
 * the whole text first, without recursion and without taking memory; after it, cJSON can only fail for
 * want of memory.
 *
 * TRAP: cJSON stores its last error in a process-wide variable without a lock. Nobody here reads it. */

enum {
    CJSON_DEPTH_MAX = 1000, /* cJSON's own nesting limit (CJSON_NESTING_LIMIT) */
    CJSON_NUMBER_MAX = 63,  /* TRAP: cJSON reads at most 63 characters of a number and then fails */
};

struct json_doc {
    cJSON *root;
};

/* ---- pre-scan ---- */

typedef enum scan_state {
    WANT_VALUE,
    WANT_VALUE_OR_END, /* just after '[' */
    WANT_KEY,
    WANT_KEY_OR_END, /* just after '{' */
    AFTER_VALUE
} scan_state;

typedef struct scan {
    const char *text;
    size_t len;
    size_t pos;      /* where reading goes on; after a failure, where the fault is */
    size_t n_values; /* values seen so far, containers included */
    bool long_number;
    bool has_nul; /* a string holds \u0000, the first at nul_pos */
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

static int hex_value(int c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Four hex digits at pos + 2 (behind a backslash and u) into *unit; false if they are not there. */
static bool read_unit(const scan *s, size_t pos, unsigned *unit)
{
    if (s->len - pos < 6 || s->text[pos] != '\\' || s->text[pos + 1] != 'u') {
        return false;
    }
    *unit = 0;
    for (size_t i = 2; i < 6; i++) {
        int digit = hex_value((unsigned char)s->text[pos + i]);
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
    size_t start = s->pos;
    if (peek(s) == '-') {
        s->pos++;
    }
    if (peek(s) == '0') {
        s->pos++;
        if (is_digit(peek(s))) {
            return fail(s, "a number with a leading zero");
        }
    } else if (!scan_digits(s)) {
        return false;
    }
    if (peek(s) == '.') {
        s->pos++;
        if (!scan_digits(s)) {
            return false;
        }
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->pos++;
        if (peek(s) == '+' || peek(s) == '-') {
            s->pos++;
        }
        if (!scan_digits(s)) {
            return false;
        }
    }
    if (s->pos - start > CJSON_NUMBER_MAX) {
        s->long_number = true;
    }
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

/* A value that is no array and no object. */
static bool scan_scalar(scan *s)
{
    int c = peek(s);
    switch (c) {
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
        if (c == '-' || is_digit(c)) {
            return scan_number(s);
        }
        return fail(s, "an unexpected character where a value is expected");
    }
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
    if (peek(s) != ':') {
        return fail(s, "no ':' behind a member name");
    }
    s->pos++;
    return true;
}

/* Checks the whole text. `open` remembers the closing bracket of each container around pos. */
static bool scan_document(scan *s, size_t max_depth)
{
    char open[CJSON_DEPTH_MAX];
    size_t depth = 0;
    scan_state state = WANT_VALUE;
    for (;;) {
        skip_space(s);
        int c = peek(s);
        if (state == AFTER_VALUE && depth == 0) {
            return c < 0 ? true : fail(s, "text behind the end of the document");
        }
        bool may_end = state == AFTER_VALUE || state == WANT_VALUE_OR_END || state == WANT_KEY_OR_END;
        if (may_end && c == open[depth - 1]) {
            s->pos++;
            depth--;
            state = AFTER_VALUE;
        } else if (state == AFTER_VALUE) {
            if (c != ',') {
                return fail(s, c < 0 ? "the end of the text inside an array or object"
                                     : "no ',' or closing bracket behind a value");
            }
            s->pos++;
            state = open[depth - 1] == '}' ? WANT_KEY : WANT_VALUE;
        } else if (state == WANT_KEY || state == WANT_KEY_OR_END) {
            if (!scan_key(s)) {
                return false;
            }
            state = WANT_VALUE;
        } else if (++s->n_values > LIMIT_JSON_VALUES) {
            s->over_limit = true;
            return fail(s, "too many values");
        } else if (c == '[' || c == '{') {
            if (depth == max_depth) {
                s->over_limit = true;
                return fail(s, "arrays and objects nested too deeply");
            }
            open[depth++] = c == '[' ? ']' : '}';
            state = c == '[' ? WANT_VALUE_OR_END : WANT_KEY_OR_END;
            s->pos++;
        } else {
            if (!scan_scalar(s)) {
                return false;
            }
            state = AFTER_VALUE;
        }
    }
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

/* ---- numbers as they were written ---- */

/* Finds the next number of a valid document at or behind *pos; returns its length, 0 if there is none. */
static size_t next_number(const char *text, size_t len, size_t *pos)
{
    size_t i = *pos;
    while (i < len) {
        char c = text[i];
        if (c == '"') {
            for (i++; text[i] != '"'; i++) {
                i += text[i] == '\\';
            }
        } else if (c == '-' || is_digit(c)) {
            size_t end = i;
            while (end < len && (is_digit(text[end]) || strchr("+-.eE", text[end]))) {
                end++;
            }
            *pos = i;
            return end - i;
        }
        i++;
    }
    return 0;
}

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

/* Gives every number its source text, kept in the item's valuestring: cJSON does not use that field for
 * numbers and frees it with the item. */
static err_code keep_number_texts(cJSON *root, const char *text, size_t len, err_detail *detail)
{
    cJSON *stack[CJSON_DEPTH_MAX];
    size_t depth = 0;
    size_t pos = 0;
    for (cJSON *v = root; v; v = next_item(v, stack, &depth)) {
        if (!cJSON_IsNumber(v)) {
            continue;
        }
        size_t n = next_number(text, len, &pos);
        char *copy = cJSON_malloc(n + 1);
        if (!copy) {
            return err_set(detail, ERR_NOMEM, "no memory to read JSON");
        }
        memcpy(copy, text + pos, n);
        copy[n] = '\0';
        v->valuestring = copy;
        if (n > CJSON_NUMBER_MAX) {
            v->valuedouble = strtod(copy, NULL);
        }
        if (!isfinite(v->valuedouble)) {
            scan s = {.text = text, .len = len, .pos = pos, .fault = "a number that is too large"};
            return report(&s, detail);
        }
        pos += n;
    }
    return ERR_OK;
}

/* A copy of a valid text in which numbers too long for cJSON are a 0 and spaces; NULL without memory. */
static char *without_long_numbers(const char *text, size_t len)
{
    char *copy = malloc(len);
    if (!copy) {
        return NULL;
    }
    memcpy(copy, text, len);
    size_t pos = 0;
    for (size_t n; (n = next_number(text, len, &pos)) > 0; pos += n) {
        if (n > CJSON_NUMBER_MAX) {
            memset(copy + pos, ' ', n);
            copy[pos] = '0';
        }
    }
    return copy;
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
    scan s = {.text = text, .len = len};
    if (!scan_document(&s, max_depth < CJSON_DEPTH_MAX ? max_depth : CJSON_DEPTH_MAX)) {
        return report(&s, detail);
    }
    if (s.has_nul) {
        s.pos = s.nul_pos;
        return report(&s, detail);
    }
    err_code err = ERR_OK;
    char *shortened = NULL;
    json_doc *doc = calloc(1, sizeof *doc);
    if (s.long_number) {
        shortened = without_long_numbers(text, len);
    }
    if (!doc || (s.long_number && !shortened)) {
        err = err_set(detail, ERR_NOMEM, "no memory to read JSON");
        goto out;
    }
    doc->root = cJSON_ParseWithLength(shortened ? shortened : text, len);
    if (!doc->root) {
        err = err_set(detail, ERR_NOMEM, "no memory to read JSON");
        goto out;
    }
    err = keep_number_texts(doc->root, text, len, detail);
    if (err == ERR_OK) {
        *out = doc;
        doc = NULL;
    }
out:
    json_free(doc);
    free(shortened);
    return err;
}

err_code json_parse_file(json_doc **out, const char *path, size_t max_bytes, err_detail *detail)
{
    *out = NULL;
    bytes text;
    bytes_init(&text, max_bytes);
    err_code err = file_read(&text, path, detail);
    if (err == ERR_OK) {
        err = json_parse(out, bytes_str(&text), text.len, LIMIT_JSON_DEPTH, detail);
        if (err != ERR_OK) {
            err_prefix(detail, err, "%s", path);
        }
    }
    bytes_deinit(&text);
    return err;
}

static err_code read_from_folder(void *ctx, const char *name, json_doc **out, err_detail *detail)
{
    char path[4096];
    *out = NULL;
    if (!file_join(path, sizeof path, ctx, name)) {
        return err_set(detail, ERR_INVALID, "the path of %s is too long", name);
    }
    return file_exists(path) ? json_parse_file(out, path, LIMIT_CONFIG_BYTES, detail) : ERR_OK;
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

const json *json_root(const json_doc *doc)
{
    return doc->root;
}

/* ---- values ---- */

json_type json_typeof(const json *v)
{
    switch (v ? v->type & 0xFF : cJSON_NULL) {
    case cJSON_True:
    case cJSON_False:
        return JSON_BOOL;
    case cJSON_Number:
        return JSON_NUMBER;
    case cJSON_String:
        return JSON_STRING;
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
    return json_is(v, JSON_NUMBER) ? v->valuedouble : fallback;
}

bool json_bool(const json *v, bool fallback)
{
    return json_is(v, JSON_BOOL) ? json_is_true(v) : fallback;
}

bool json_int(const json *v, int64_t min, int64_t max, int64_t *out)
{
    if (!json_is(v, JSON_NUMBER)) {
        return false;
    }
    int64_t value;
    if (!strpbrk(v->valuestring, ".eE")) {
        /* By the digits, because a double loses those of integers beyond 2^53. */
        errno = 0;
        value = strtoll(v->valuestring, NULL, 10);
        if (errno != 0) {
            return false;
        }
    } else {
        double d = v->valuedouble;
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
    return json_is(v, JSON_NUMBER) ? v->valuestring : NULL;
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
        bytes_append_str(out, v->valuestring);
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
