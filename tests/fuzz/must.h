/* must: what a fuzz target says of every input; the program ends where it does not hold. Any thread. */
#ifndef PARLEY_TESTS_FUZZ_MUST_H
#define PARLEY_TESTS_FUZZ_MUST_H

#include <stdbool.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/limits.h"

static inline void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* text was written by this program as JSON, and is it. */
static inline void must_be_json(const bytes *text)
{
    json_doc *doc = NULL;
    must(!text->failed);
    must(json_parse(&doc, bytes_str(text), text->len, 2 * LIMIT_JSON_DEPTH, NULL) == ERR_OK);
    json_free(doc);
}

#endif
