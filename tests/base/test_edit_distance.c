/* edit_distance: each kind of change counts one, whatever comes before and behind; beginnings; words that are too long. */
#include "base/edit_distance.h"

#include <string.h>

#include "base/compiler.h"
#include "tests/check.h"

int main(void)
{
    static const struct {
        const char *word, *known;
        int distance;
    } cases[] = {
        {"", "", 0},
        {"port", "port", 1}, /* a beginning, if of the whole */
        {"", "abc", 3},
        {"x", "", 1},
        {"xyz", "", 3},
        {"ab", "ab", 0},
        {"ab", "abcdef", 4}, /* two letters are no beginning */
        {"abc", "abcdef", 1},
        {"quantise", "quantize", 1},
        {"xuantize", "quantize", 1},
        {"quantizx", "quantize", 1},
        {"uantize", "quantize", 1},
        {"quntize", "quantize", 1},
        {"qquantize", "quantize", 1},
        {"quantizee", "quantize", 1},
        {"uqantize", "quantize", 2}, /* two that changed places */
        {"kitten", "sitting", 3},
        {"sitting", "kitten", 3},
        {"saturday", "sunday", 3},
        {"abcd", "wxyz", 4},
        {"abcdefgh", "efgh", 4},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const int d = edit_distance_between(cases[i].word, cases[i].known);
        if (d != cases[i].distance) {
            fprintf(stderr, "  %s, %s: %d\n", cases[i].word, cases[i].known, d);
            CHECK(!"distance");
        }
    }
    CHECK_INT(edit_distance_between("word", NULL), EDIT_DISTANCE_MAX);
    char known[162];
    memset(known, 'a', sizeof known);
    known[159] = '\0';
    CHECK_INT(edit_distance_between("b", known), 159);
    CHECK_INT(edit_distance_between("aab", known), 157);
    known[159] = 'a';
    known[160] = '\0';
    CHECK_INT(edit_distance_between("b", known), EDIT_DISTANCE_MAX);
    CHECK_INT(edit_distance_between("aaaa", known), 1); /* nothing is compared for a beginning */
    known[160] = 'a';
    known[161] = '\0';
    CHECK_INT(edit_distance_between("b", known), EDIT_DISTANCE_MAX);
    CHECK_INT(edit_distance_between(known, "b"), 161);
    CHECK_DONE();
}
