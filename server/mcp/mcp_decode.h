/* mcp_decode: text of whatever encoding as UTF-8, by iconv. Any thread; no state.
 *
 *     bytes text = bytes_empty(4096);
 *     mcp_decode(&text, data, n, "shift_jis");       // what its sender calls it; "": he does not say
 *     bool no_text = mcp_is_binary(data, n);
 */
#ifndef PARLEY_SERVER_MCP_MCP_DECODE_H
#define PARLEY_SERVER_MCP_MCP_DECODE_H

#include "base/bytes.h"

/* Whether bytes are no text: a NUL among the first, unless they begin as UTF-16 does. */
bool mcp_is_binary(const char *data, size_t n);

/* Appends data[0..n). What it begins with (a byte order mark) counts before the charset; without either
 * it is UTF-8 if it can be, else windows-1252, as browsers take it. What is no character becomes U+FFFD. */
void mcp_decode(bytes *out, const char *data, size_t n, const char *charset);

#endif
