#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "server/history/history_state.h"

/* SHARE: a fresh reserve takes at most this part of what is free; LEFT: one that was used leaves
 * this part. VACUUM_PASSES: pieces in which space is given back. SMALLEST: less is of no use. */
enum { SHARE = 4, LEFT = 8, VACUUM_PASSES = 4096, SMALLEST = 1 << 16 };

static uint64_t free_bytes(int fd)
{
    struct statvfs v;
    return fstatvfs(fd, &v) == 0 ? (uint64_t)v.f_bavail * v.f_frsize : 0;
}

uint64_t history_file_limit(void)
{
    struct rlimit most;
    return getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY ? (uint64_t)most.rlim_cur
                                                                                 : UINT64_MAX;
}

void history_reserve_open(history_store *st)
{
    char path[HISTORY_PATH_MAX];
    snprintf(path, sizeof path, "%s/reserve", st->dir); /* which leaves room for it */
    st->reserve_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
}

void history_reserve_fill(history_store *st)
{
    struct stat have;
    if (fstat(st->reserve_fd, &have) != 0) { /* there is none */
        return;
    }
    const uint64_t held = (uint64_t)have.st_size, most = history_file_limit();
    const uint64_t room = free_bytes(st->reserve_fd) + held, back = room - room / LEFT;
    uint64_t wanted = back < st->reserve_was ? back : st->reserve_was;
    wanted = wanted < room / SHARE ? room / SHARE : wanted;
    wanted = wanted > LIMIT_HISTORY_RESERVE_BYTES ? LIMIT_HISTORY_RESERVE_BYTES : wanted;
    wanted = wanted > most ? most : wanted;
    if (wanted > held && wanted >= SMALLEST && posix_fallocate(st->reserve_fd, 0, (off_t)wanted) != 0 &&
        ftruncate(st->reserve_fd, have.st_size) != 0) {
        log_warn("history", "%s: no room could be set aside for deleting", st->dir);
    }
}

void history_reserve_free(history_store *st)
{
    struct stat have;
    if (fstat(st->reserve_fd, &have) == 0 && have.st_size > 0) {
        st->reserve_was = (uint64_t)have.st_size;
    }
    if (st->reserve_fd >= 0 && ftruncate(st->reserve_fd, 0) != 0) {
        log_warn("history", "%s: the room set aside for deleting cannot be freed", st->dir);
    }
}

bool history_make_room(history_store *st)
{
    log_warn("history", "%s has no room: using what is set aside for deleting", st->dir);
    history_reserve_free(st);
    database_checkpoint(st->db);
    return database_be_frugal(st->db, true);
}

void history_give_back(history_store *st)
{
    for (int i = 0; i < VACUUM_PASSES && database_vacuum_piece(st->db); i++) {
    }
    database_be_frugal(st->db, false);
    history_reserve_fill(st);
}
