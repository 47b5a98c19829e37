/* guard: memory that ends where a page without access begins, so that reading one byte too many ends a test program in
 * every build, whoever reads it. An allocation begins at a multiple of 16 bytes only if its size is one. The caller frees
 * with guard_free. Memory and threads as with malloc. What was freed last of a length is kept for the next of that length,
 * as some tests allocate a hundred thousand times.
 *
 *     const char *text = guard_copy("caf", 3);      // text[3] ends the program
 *     guard_free((void *)text);
 */
#ifndef PARLEY_TESTS_GUARD_H
#define PARLEY_TESTS_GUARD_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Mappings that were freed, by their number of pages modulo GUARD_SPARES; NULL: none. */
enum { GUARD_SPARES = 8 };
static _Thread_local char *guard_spare[GUARD_SPARES];

/* The bytes between the page with their number, where a mapping begins, and the page without access. */
static inline size_t guard_room(const char *all)
{
    size_t room;
    memcpy(&room, all, sizeof room);
    return room;
}

/* n bytes of zeros, which the caller gives back with guard_free. In front of them is a page with their number. */
static inline void *guard_alloc(size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (n + page - 1) / page * page;
    char **spare = &guard_spare[room / page % GUARD_SPARES];
    if (*spare && guard_room(*spare) == room) {
        void *p = memset(*spare + page + room - n, 0, n);
        *spare = NULL;
        return p;
    }
    char *all = mmap(NULL, room + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + page + room, page, PROT_NONE) != 0) {
        abort();
    }
    memcpy(all, &room, sizeof room);
    return all + page + room - n;
}

static inline void *guard_calloc(size_t n, size_t item_bytes)
{
    return guard_alloc(n * item_bytes);
}

static inline void guard_free(void *p)
{
    if (p) {
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        char *all = (char *)p - (uintptr_t)p % page - page;
        char **spare = &guard_spare[guard_room(all) / page % GUARD_SPARES];
        if (*spare) {
            munmap(*spare, guard_room(*spare) + 2 * page);
        }
        *spare = all;
    }
}

static inline void *guard_copy(const void *data, size_t n)
{
    void *p = guard_alloc(n);
    if (n > 0) {
        memcpy(p, data, n);
    }
    return p;
}

#endif
