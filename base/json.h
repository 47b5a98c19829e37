/* json: reading JSON and putting values together anew (cJSON behind it). One thread at a time per
 * document.
 *
 *     json_doc *doc; err_code err = json_parse(&doc, text, len, LIMIT_JSON_DEPTH, &detail);
 *     const json *m = json_get(json_root(doc), "messages");
 *     json_free(doc);
 *
 * Strict: RFC 8259 only (no trailing text, no leading zeros, no lone surrogates, no \\u0000, valid
 * UTF-8); depth and number of values are bounded before anything is built. Output is written with
 * bytes_append_json and bytes_printf, never through a document.
 */
#ifndef PARLEY_BASE_JSON_H
#define PARLEY_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/json_source.h"

typedef struct cJSON json; /* one value inside it; never freed alone */

typedef enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_type;

/* Parses text[0..len). ERR_INVALID with line and column, ERR_LIMIT if deeper than max_depth; the
 * name is invalid_json, or unsupported_character for a \\u0000 in JSON that is valid. The caller
 * frees *out with json_free. */
MUST_CHECK err_code json_parse(json_doc **out, const char *text, size_t len, size_t max_depth,
                               err_detail *detail);
/* Bytes that json_parse takes for this text at most, told from its punctuation alone. */
size_t json_memory(const char *text, size_t len);
/* Reads and parses a file of at most max_bytes. The detail text names the path. */
MUST_CHECK err_code json_parse_file(json_doc **out, const char *path, size_t max_bytes, err_detail *detail);
void json_free(json_doc *doc); /* NULL allowed */
/* Whether text[0..len) is an object, and nothing else. */
bool json_is_object_text(const char *text, size_t len);
const json *json_root(const json_doc *doc);

json_type json_typeof(const json *v); /* NULL counts as JSON_NULL */
/* Member of an object; NULL if v is not an object or has no such member (exact case; last one
 * wins). */
const json *json_get(const json *v, const char *key);
/* Walks children of an array or object: first = json_child(v), next = json_next(item); NULL at the
 * end. */
const json *json_child(const json *v);
const json *json_next(const json *v);
const char *json_key(const json *v); /* name of an object member, NULL for array items */
size_t json_len(const json *v);      /* number of children (walks them) */

bool json_is(const json *v, json_type type);
bool json_is_true(const json *v);
/* Values with a fallback for a missing, null or wrongly typed v. */
const char *json_str(const json *v, const char *fallback);
double json_num(const json *v, double fallback);
bool json_bool(const json *v, bool fallback);
/* The number as an integer; false if v is not a number, has a fraction (its nearest double, if it is written with
 * a point or an exponent) or is outside [min, max]. */
bool json_int(const json *v, int64_t min, int64_t max, int64_t *out);
/* The number as it was written in the text ("1", "1.0", "1e5"), so that 1 and 1.0 stay different
 * and large integers keep every digit; NULL if v is not a number. Owned by the document. */
const char *json_number_text(const json *v);

/* Building a document in memory, without writing its text first. The adders take an object with
 * key, or an array with key NULL; they do nothing once memory is short, which json_finish tells. */

/* An empty JSON_ARRAY or JSON_OBJECT, *root inside it; both NULL without memory. The caller frees
 * it. */
json_doc *json_build(json **root, json_type type);
/* Adds an empty object or array and returns it, NULL without memory. */
json *json_add_object(json_doc *doc, json *to, const char *key);
json *json_add_array(json_doc *doc, json *to, const char *key);
/* Adds v, which stays where it is and must outlive doc; NULL adds nothing. */
void json_add_shared(json_doc *doc, json *to, const char *key, const json *v);
void json_add_string(json_doc *doc, json *to, const char *key, const char *text);
void json_add_bool(json_doc *doc, json *to, const char *key, bool value);
/* Ends the building; false if memory was short (doc NULL included). */
MUST_CHECK bool json_finish(json_doc *doc);

/* Appends v as compact JSON ({"a":1,"b":[true]}). */
void json_write(bytes *out, const json *v);

#endif
