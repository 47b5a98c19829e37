#include "model/weights_copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

struct weights_copy {
    compute *c;
    unsigned char *data;
};

/* Bytes that a matrix takes there: the next one begins at a line of the caches. */
static size_t room_of(const tensor *t)
{
    enum { LINE = 64 };
    return (t->bytes + LINE - 1) / LINE * LINE;
}

void weights_copy_open(weights_copy **out, weights *w, compute *c)
{
    const int64_t start = clock_ns();
    size_t n_bytes = 0;
    for (size_t i = 0; i < w->n_matrices; i++) {
        n_bytes += room_of(w->matrices[i].at);
    }
    *out = NULL;
    weights_copy *copy = n_bytes > 0 && n_bytes < memory_available() ? calloc(1, sizeof *copy) : NULL;
    if (copy) {
        copy->c = c;
        copy->data = compute_alloc(c, n_bytes);
    }
    if (!copy || !copy->data) {
        free(copy);
        log_warn("mod", "no memory for a copy of the weights (%zu MiB): they are read from the files",
                 n_bytes >> 20);
        return;
    }
    unsigned char *at = copy->data;
    for (size_t i = 0; i < w->n_matrices; i++) {
        tensor *t = w->matrices[i].at;
        memcpy(at, t->data, t->bytes);
        t->data = at;
        at += room_of(t);
    }
    log_info("mod", "%zu matrices in huge pages, %zu MiB, ready in %.1f s", w->n_matrices, n_bytes >> 20,
             (double)(clock_ns() - start) / 1e9);
    *out = copy;
}

void weights_copy_close(weights_copy *copy)
{
    if (copy) {
        compute_free(copy->c, copy->data);
        free(copy);
    }
}
