/* Memory that is kept ready: as many pieces of one size as are wanted, filled step by step, handed out
 * and taken back; other sizes come and go. */
#include "model/spares.h"

#include <string.h>

#include "tests/check.h"

enum { BYTES = 5 << 20 };

static void test_nothing_wanted(void)
{
    spares s = {0};
    CHECK(!spares_fill(&s));
    unsigned char *memory = spares_take(&s, BYTES);
    CHECK(memory != NULL);
    memset(memory, 1, BYTES);
    spares_give(&s, memory, BYTES);
    spares_give(&s, NULL, BYTES);
    CHECK_INT(s.n_ready, 0);
    spares_drop(&s);
}

static void test_ready(void)
{
    spares s = {0};
    int n_steps = 0;
    spares_want(&s, BYTES, 2);
    while (spares_fill(&s)) {
        n_steps++;
    }
    CHECK_INT(n_steps, 2 * 3); /* of 2 MiB each */
    CHECK_INT(s.n_ready, 2);
    unsigned char *a = spares_take(&s, BYTES), *b = spares_take(&s, BYTES), *c = spares_take(&s, BYTES);
    unsigned char *other = spares_take(&s, 100);
    CHECK(a && b && c && other && a != b && b != c);
    CHECK_INT(s.n_ready, 0);
    memset(a, 1, BYTES);
    memset(c, 1, BYTES);
    spares_give(&s, other, 100);
    CHECK_INT(s.n_ready, 0);
    CHECK(spares_fill(&s)); /* a piece is begun ... */
    spares_give(&s, a, BYTES);
    spares_give(&s, b, BYTES);
    spares_give(&s, c, BYTES);
    CHECK_INT(s.n_ready, 2);
    CHECK(!spares_fill(&s));            /* ... and not needed any more */
    CHECK(spares_take(&s, BYTES) == b); /* what was written last */
    spares_give(&s, b, BYTES);
    spares_drop(&s); /* and no leak */
}

int main(void)
{
    test_nothing_wanted();
    test_ready();
    CHECK_DONE();
}
