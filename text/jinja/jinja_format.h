/* jinja_format: values as text, the way Python's str, repr and json.dumps write them.
 *
 *     bytes b; bytes_init(&b, limit);
 *     if (!jinja_append_str(&b, &value)) { return ERR_INVALID; }      // nested too deeply
 */
#ifndef PARLEY_TEXT_JINJA_JINJA_FORMAT_H
#define PARLEY_TEXT_JINJA_JINJA_FORMAT_H

#include "base/bytes.h"
#include "text/jinja/jinja_value.h"

/* Appends str(v); false if v is nested too deeply. Undefined gives nothing. */
bool jinja_append_str(bytes *out, const jinja_value *v);

/* Appends repr(v): strings with quotes and escapes. */
bool jinja_append_repr(bytes *out, const jinja_value *v);

typedef struct jinja_json_style {
    bool ensure_ascii;
    bool sort_keys;
    const char *indent; /* text for one level, not NUL-terminated; NULL = all on one line */
    size_t indent_len;
    const char *item_separator, *key_separator; /* NUL-terminated */
} jinja_json_style;

/* Appends json.dumps(v). On failure returns what cannot be written (a type name or "deeply nested
 * value"). */
const char *jinja_append_json(bytes *out, const jinja_value *v, const jinja_json_style *style);

#endif
