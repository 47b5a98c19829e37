/* tool_value: the text that a model wrote for a parameter, as JSON of the kind that the tool's
 * schema asks for. Any thread; no state.
 *
 *     tool_value_write(&out, "3.0", 3, TOOL_INTEGER);     // 3
 */
#ifndef PARLEY_SERVER_PROTOCOL_OUTPUT_TOOL_VALUE_H
#define PARLEY_SERVER_PROTOCOL_OUTPUT_TOOL_VALUE_H

#include <stddef.h>

#include "base/bytes.h"

/* Appends one JSON value. kinds: bits of tool_set.h. Kinds other than string are tried first, from
 * what the text looks like: null (None), booleans in any case, numbers (3.0 counts as the integer
 * 3), objects and lists (JSON, JSON inside a string, or a Python literal). What fits no kind
 * becomes the JSON it is, or else a string: always valid JSON, so that the client can say what is
 * wrong with it. */
void tool_value_write(bytes *out, const char *text, size_t len, unsigned kinds);

/* The same for a literal: a string in quotes of Python, JSON or between `quote` (NULL: none such),
 * numbers and words, lists, tuples and objects of these, whose keys may stand without quotes. What is
 * open at the end is closed. A string is never read as anything else where kinds allow one. */
void tool_value_literal(bytes *out, const char *text, size_t len, const char *quote, unsigned kinds);

/* What JSON says for Python's True, False and None; NULL for any other word. */
const char *tool_value_of_python(const char *word, size_t len);

/* Appends text[0..len) as the inside of a JSON string, without quotes. */
void tool_value_escape(bytes *out, const char *text, size_t len);

#endif
