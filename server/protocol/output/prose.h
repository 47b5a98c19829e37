/* prose: tracks the text shown so far to decide where a tool call may begin: on its own line or
 * after a complete sentence, and not inside a fenced code block (CommonMark 4.5). One text;
 * embedded by value; allocates nothing.
 *
 *     prose p; prose_init(&p);
 *     if (prose_may_begin_call(&p)) { return true; }
 *     prose_add(&p, c);      // every byte, in order
 */
#ifndef PARLEY_SERVER_PROTOCOL_OUTPUT_PROSE_H
#define PARLEY_SERVER_PROTOCOL_OUTPUT_PROSE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct prose {
    bool fenced;
    char fence; /* '`' or '~', of the open block */
    int fence_len;
    /* the line so far */
    int indent;
    char run; /* the line begins with run_len of these; 0: with something else */
    int run_len;
    bool in_run, is_blank;
    bool rest_blank, rest_has_run; /* behind the run */
    uint32_t last;                 /* the last bytes that were no blanks */
} prose;

void prose_init(prose *p);                 /* no text yet */
void prose_add(prose *p, char c);          /* the next byte */
bool prose_may_begin_call(const prose *p); /* in front of the next byte */

#endif
