/* open_flags: with which flags, and for whom, a file was opened, in words.
 *
 *     char text[OPEN_FLAGS_CHARS];
 *     open_flags(text, O_RDWR | O_CREAT | O_CLOEXEC, 0600);     // "read write new cloexec 600"
 */
#ifndef PARLEY_TESTS_OPEN_FLAGS_H
#define PARLEY_TESTS_OPEN_FLAGS_H

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

enum { OPEN_FLAGS_CHARS = 160 };

/* Allocates nothing, so that it can be asked where allocations count. */
static inline const char *open_flags(char out[OPEN_FLAGS_CHARS], int flags, mode_t mode)
{
    static const struct {
        int bit;
        const char *name;
    } NAMES[] = {{O_CREAT, "new"},         {O_EXCL, "alone"},       {O_TRUNC, "empty"},
                 {O_APPEND, "append"},     {O_DIRECTORY, "folder"}, {O_NOFOLLOW, "nofollow"},
                 {O_NONBLOCK, "nonblock"}, {O_CLOEXEC, "cloexec"}};
    const int how = flags & O_ACCMODE;
    size_t n = (size_t)snprintf(out, OPEN_FLAGS_CHARS, "%s",
                                how == O_RDONLY   ? "read"
                                : how == O_WRONLY ? "write"
                                : how == O_RDWR   ? "read write"
                                                  : "nothing");
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (flags & NAMES[i].bit) {
            n += (size_t)snprintf(out + n, OPEN_FLAGS_CHARS - n, " %s", NAMES[i].name);
        }
    }
    if (flags & O_CREAT) {
        snprintf(out + n, OPEN_FLAGS_CHARS - n, " %03o", mode);
    }
    return out;
}

#endif
