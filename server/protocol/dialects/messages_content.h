/* messages_content: the blocks of Anthropic's messages that are read, by a person or the model: text,
 * images, documents of text, search results. Prep threads.
 *
 *     content_begin(&reader, m, messages_content_parts(block), "messages[0].content");
 *     messages_content_read(&reader, m, block, "messages[0].content[0]");
 *
 * A document and a search result become text between marks that name their title and source.
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_MESSAGES_CONTENT_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_MESSAGES_CONTENT_H

#include "server/protocol/content_parts.h"

/* How many parts a block may become. */
size_t messages_content_parts(const json *block);

/* Appends the parts of a block to m, which has room for them. ERR_UNSUPPORTED for blocks that only
 * Anthropic's own servers read; the error names `path`. */
void messages_content_read(content_reader *c, chat_message *m, const json *block, const char *path);

#endif
