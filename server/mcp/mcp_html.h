/* mcp_html: what a person would read of an HTML page, by libxml2's parser. Any thread; no state.
 *
 *     mcp_html_charset(charset, sizeof charset, data, n);             // "": the page does not say
 *     mcp_html_text(&text, &title, html, n, "https://example.org/a", may_go_on, ctx);
 *
 * Headings, lists, cells of tables and links are written as Markdown does; scripts, styles, forms'
 * controls, navigation and what is hidden are left out. A page is a stranger's: nesting is bounded.
 */
#ifndef PARLEY_SERVER_MCP_MCP_HTML_H
#define PARLEY_SERVER_MCP_MCP_HTML_H

#include "base/bytes.h"

/* Writes the charset that a page names in its first bytes, where its sender names none. */
void mcp_html_charset(char *out, size_t out_cap, const char *data, size_t n);

/* Appends the text of html[0..n), UTF-8, and its title. base: its address, for links. False if it was not
 * read to its end: nested too deep, or may_go_on said no. */
bool mcp_html_text(bytes *out, bytes *title, const char *html, size_t n, const char *base,
                   bool (*may_go_on)(void *ctx), void *ctx);

#endif
