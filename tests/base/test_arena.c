/* arena: alignment, separate pieces, the bound, overflow. */
#include "base/arena.h"

#include <stdint.h>

#include "tests/check.h"

static void test_pieces(void)
{
    enum { N = 500 };
    arena *a = arena_create(64u << 20);
    CHECK(a != NULL);
    unsigned char *p[N];
    for (size_t i = 0; i < N; i++) {
        size_t bytes = i * i % 3000 + (i % 50 == 0 ? 200000 : 0);
        p[i] = arena_alloc(a, bytes);
        CHECK(p[i] != NULL && (uintptr_t)p[i] % 64 == 0);
        memset(p[i], (int)(i & 255), bytes);
    }
    for (size_t i = 0; i < N; i++) {
        size_t bytes = i * i % 3000 + (i % 50 == 0 ? 200000 : 0);
        size_t wrong = 0;
        for (size_t k = 0; k < bytes; k++) {
            wrong += p[i][k] != (i & 255);
        }
        CHECK_INT(wrong, 0);
    }
    arena_destroy(a);
    arena_destroy(NULL);
}

static void test_bound(void)
{
    arena *a = arena_create(1000);
    CHECK(arena_alloc(a, 1001) == NULL);
    CHECK(arena_alloc(a, 600) != NULL);
    CHECK(arena_alloc(a, 401) == NULL);
    CHECK(arena_alloc(a, 400) != NULL);
    CHECK(arena_alloc(a, 1) == NULL);
    arena_destroy(a);

    a = arena_create(SIZE_MAX);
    CHECK(arena_alloc(a, SIZE_MAX) == NULL);
    CHECK(arena_alloc(a, SIZE_MAX - 100) == NULL);
    CHECK(arena_calloc(a, SIZE_MAX / 2, 3) == NULL);
    CHECK(arena_alloc(a, 10) != NULL);
    arena_destroy(a);
}

static void test_helpers(void)
{
    arena *a = arena_create(1u << 20);
    char *copy = arena_strdup(a, "hello world", 5);
    CHECK_STR(copy, "hello");
    CHECK_STR(arena_strdup(a, NULL, 0), "");
    CHECK(arena_strdup(a, "x", SIZE_MAX) == NULL);
    int *zeros = arena_calloc(a, 100, sizeof *zeros);
    int sum = 0;
    for (int i = 0; i < 100; i++) {
        sum |= zeros[i];
    }
    CHECK_INT(sum, 0);
    void *none = arena_alloc(a, 0);
    CHECK(none != NULL && none != arena_alloc(a, 0));
    arena_destroy(a);

    /* A block of 64 KiB and its head for what is small, one of its own for what is large. */
    a = arena_create(1u << 20);
    const size_t empty = arena_bytes(a);
    CHECK(empty > 0 && empty < 1000);
    CHECK(arena_alloc(a, 1) && arena_alloc(a, 64 * 1024 - 64));
    CHECK_INT(arena_bytes(a), empty + 64 + 64 * 1024);
    CHECK(arena_alloc(a, 100000) != NULL);
    CHECK_INT(arena_bytes(a), empty + 64 + 64 * 1024 + 64 + 100032);
    arena_destroy(a);
}

int main(void)
{
    test_pieces();
    test_bound();
    test_helpers();
    CHECK_DONE();
}
