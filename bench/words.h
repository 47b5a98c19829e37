/* words: texts of a wanted length to read.
 *
 *     err = words_make(e, &text, 8192, 0, &detail);
 */
#ifndef PARLEY_BENCH_WORDS_H
#define PARLEY_BENCH_WORDS_H

#include <string.h>

#include "base/bytes.h"
#include "engine/engine.h"

/* Plain words of about n tokens; `variant` makes texts that share no prefix. */
static inline err_code words_make(engine *e, bytes *text, int n, int variant, err_detail *detail)
{
    static const char *const WORDS[] = {"red ",   "circle ", "and ", "a ",     "blue ", "square ",
                                        "stand ", "near ",   "the ", "green ", "star ", "seven ",
                                        "birds ", "over ",   "my ",  "house "};
    uint32_t state = (uint32_t)variant * 2654435761u + 1;
    bytes ids;
    bytes_init(&ids, (size_t)16 << 20);
    err_code err = ERR_OK;
    for (int count = 0; err == ERR_OK && count < n;) {
        for (int i = 0; i < 64 && i < n - count; i++) {
            state = state * 1664525u + 1013904223u;
            const char *word = WORDS[state >> 28];
            bytes_append(text, word, strlen(word));
        }
        bytes_clear(&ids);
        err = engine_tokenize(e, &ids, bytes_str(text), text->len, false, detail);
        count = 1;
        for (size_t i = 0; i < ids.len; i++) {
            count += ids.data[i] == ',';
        }
    }
    bytes_deinit(&ids);
    return err;
}

#endif
