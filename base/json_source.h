/* json_source: looks up documents by file name ("config.json"), so that readers need not know
 * whether they are files. Any thread.
 *
 *     json_doc *doc; json_source docs = json_folder("DIR");
 *     err_code err = docs.read(docs.ctx, "config.json", &doc, &detail);   // doc NULL: there is none
 */
#ifndef PARLEY_BASE_JSON_SOURCE_H
#define PARLEY_BASE_JSON_SOURCE_H

#include "base/err.h"

typedef struct json_doc json_doc; /* owns a parsed document; see json.h */

typedef struct json_source {
    /* The document of that name, to be freed by the caller, or *out NULL if there is none. */
    err_code (*read)(void *ctx, const char *name, json_doc **out, err_detail *detail);
    void *ctx;
    const char *where; /* for messages: the folder or file */
} json_source;

/* The files of a folder; the name is not copied. A bare Infinity, which Python writes, is read as 3e38. */
json_source json_folder(const char *dir);

#endif
