#include "base/edit_distance.h"

#include <string.h>

#include "base/compiler.h"

enum { BEGINNING_MIN = 3 };

/* Levenshtein's, row by row. */
static int edit_distance(const char *a, const char *b)
{
    int row[160];
    const int n = (int)strlen(b);
    if (n >= (int)ARRAY_LEN(row)) {
        return EDIT_DISTANCE_MAX;
    }
    for (int j = 0; j <= n; j++) {
        row[j] = j;
    }
    for (int i = 1; *a; i++, a++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            const int change = diagonal + (*a != b[j - 1]);
            diagonal = row[j];
            const int shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shorter ? change : shorter;
        }
    }
    return row[n];
}

int edit_distance_between(const char *word, const char *known)
{
    if (!known) {
        return EDIT_DISTANCE_MAX;
    }
    const size_t n = strlen(word);
    return n >= BEGINNING_MIN && strncmp(known, word, n) == 0 ? 1 : edit_distance(word, known);
}
