#include "tests/alloc_fail.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

/* Only the thread that tests counts and fails: libraries may have threads of their own. */
static _Thread_local bool armed;
static _Thread_local bool all_after;   /* every allocation from fail_at on fails, not that one alone */
static _Thread_local size_t fail_at;   /* 1-based number of the allocation that fails */
static _Thread_local size_t n_counted; /* allocations since arming */
static _Thread_local long n_held;      /* blocks taken since then, less those given back */

static bool must_fail(void)
{
    if (!armed) {
        return false;
    }
    n_counted++;
    if (n_counted == fail_at || (all_after && n_counted > fail_at)) {
        errno = ENOMEM;
        return true;
    }
    return false;
}

#ifdef ALLOC_FAIL_WRAPPED
#define OURS(name) __wrap_##name
#define REAL(name) __real_##name
void *REAL(aligned_alloc)(size_t alignment, size_t bytes);
#define REAL_ALIGNED REAL(aligned_alloc)
#else
#define OURS(name)   name
#define REAL(name)   __libc_##name
void *__libc_memalign(size_t alignment, size_t bytes);
#define REAL_ALIGNED __libc_memalign
#endif

void *REAL(malloc)(size_t bytes);
void *REAL(calloc)(size_t n, size_t bytes);
void *REAL(realloc)(void *old, size_t bytes);
void REAL(free)(void *p);
void *OURS(malloc)(size_t bytes);
void *OURS(calloc)(size_t n, size_t bytes);
void *OURS(realloc)(void *old, size_t bytes);
void *OURS(aligned_alloc)(size_t alignment, size_t bytes);
int OURS(posix_memalign)(void **out, size_t alignment, size_t bytes);
void OURS(free)(void *p);

static void *held(void *p)
{
    n_held += p != NULL;
    return p;
}

void *OURS(malloc)(size_t bytes)
{
    return must_fail() ? NULL : held(REAL(malloc)(bytes));
}

void *OURS(calloc)(size_t n, size_t bytes)
{
    return must_fail() ? NULL : held(REAL(calloc)(n, bytes));
}

void *OURS(realloc)(void *old, size_t bytes)
{
    if (must_fail()) {
        return NULL;
    }
    void *p = REAL(realloc)(old, bytes);
    return old ? p : held(p);
}

void *OURS(aligned_alloc)(size_t alignment, size_t bytes)
{
    return must_fail() ? NULL : held(REAL_ALIGNED(alignment, bytes));
}

void OURS(free)(void *p)
{
    n_held -= p != NULL;
    REAL(free)(p);
}

int OURS(posix_memalign)(void **out, size_t alignment, size_t bytes)
{
    void *p = must_fail() ? NULL : held(REAL_ALIGNED(alignment, bytes));
    if (!p) {
        return ENOMEM;
    }
    *out = p;
    return 0;
}

void alloc_fail_at(size_t n)
{
    fail_at = n;
    all_after = false;
    n_counted = 0;
    armed = n > 0;
}

long alloc_fail_held(void)
{
    return n_held;
}

typedef struct walk {
    err_code (*fn)(void *context);
    void *context;
    size_t n_wrong; /* calls that returned what they must not, or kept memory */
} walk;

static err_code call(const walk *w, size_t n, bool rest_too)
{
    fail_at = n;
    all_after = rest_too;
    n_counted = 0;
    n_held = 0;
    armed = true;
    const err_code err = w->fn(w->context);
    armed = false;
    return err;
}

/* One call; how many blocks it keeps. One that still holds memory may have made what the next ones use, too: it holds none
 * when it is made again. */
static long call_kept(const walk *w, size_t n, bool rest_too, err_code *err)
{
    *err = call(w, n, rest_too);
    return n_held > 0 ? (call(w, n, rest_too), n_held) : 0;
}

/* One call with the nth allocation failing; true if that allocation was reached. */
static bool run_point(walk *w, size_t n, bool rest_too)
{
    err_code err;
    const long kept = call_kept(w, n, rest_too, &err);
    const bool reached = n_counted >= n;
    if (kept > 0) {
        fprintf(stderr, "allocation %zu failing%s leaves %ld blocks of memory behind\n", n,
                rest_too ? " and all after it" : "", kept);
        w->n_wrong++;
    }
    if (err != ERR_OK && !(reached && err == ERR_NOMEM)) {
        fprintf(stderr, "allocation %zu failing%s gives: %s\n", n, rest_too ? " and all after it" : "",
                err_name(err));
        w->n_wrong++;
    }
    return reached;
}

long alloc_fail_kept(err_code (*fn)(void *context), void *context)
{
    const walk w = {.fn = fn, .context = context};
    err_code err;
    return call_kept(&w, 0, false, &err);
}

size_t alloc_fail_each(err_code (*fn)(void *context), void *context, size_t max_points)
{
    walk w = {.fn = fn, .context = context};
    size_t n = 1;
    while (n <= max_points && run_point(&w, n, false)) {
        n++;
    }
    size_t n_allocations = n - 1;
    for (n = 1; n <= n_allocations; n++) {
        run_point(&w, n, true);
    }
    return w.n_wrong == 0 ? n_allocations : 0;
}
