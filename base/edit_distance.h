/* edit_distance: finds the known word closest to a misspelt one. Any thread; no state.
 *
 *     int d = edit_distance_between("quantise", "quantize");   // 1
 */
#ifndef PARLEY_BASE_EDIT_DISTANCE_H
#define PARLEY_BASE_EDIT_DISTANCE_H

enum { EDIT_DISTANCE_MAX = 999 }; /* returned for strings that are too long to compare */

/* Insertions, deletions and changes; a prefix of three letters or more counts as 1. known NULL:
 * EDIT_DISTANCE_MAX. */
int edit_distance_between(const char *word, const char *known);

#endif
