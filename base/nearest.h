/* nearest: which known word a misspelt one may mean. Any thread; no state.
 *
 *     int d = nearest_distance("quantise", "quantize");   // 1
 */
#ifndef PARLEY_BASE_NEAREST_H
#define PARLEY_BASE_NEAREST_H

enum { NEAREST_FAR = 999 }; /* words that are too long to compare */

/* How many letters to insert, delete or change; a beginning of three letters or more counts as 1. known NULL: NEAREST_FAR. */
int nearest_distance(const char *word, const char *known);

#endif
