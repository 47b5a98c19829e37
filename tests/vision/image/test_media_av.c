/* media_av: what its libraries may do in this process: one allocation of a bounded size, and no word on standard error. */
#include "vision/image/media_av.h"

#include <libavutil/mem.h>
#include <malloc.h>

#include "tests/said.h"

/* Whether a word of the libraries is read on standard error. */
static bool speaks(void)
{
    said_begin();
    av_log(NULL, AV_LOG_FATAL, "a file is damaged\n");
    said_end();
    return said_err[0] != '\0';
}

static bool has_room(size_t bytes)
{
    void *p = av_malloc(bytes);
    av_free(p);
    return p != NULL;
}

int main(void)
{
    const size_t most = (size_t)512 << 20;
    mallopt(M_PERTURB, 0); /* memory that is not written to costs nothing */
    CHECK(speaks() && has_room(most + (1 << 20)));
    for (int i = 0; i < 2; i++) {
        media_av_init();
        CHECK(!speaks() && !has_room(most + (1 << 20)) && has_room(most - (1 << 20)));
    }
    CHECK_DONE();
}
