#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/log.h"
#include "server/media/file_writer.h"
#include "server/history/history_state.h"

/* A file lies at DIR/files/<hash in hex>. It is whole and on the disk under that name before the
 * table has it, and leaves the table before the folder; so what a crash leaves behind is a file
 * without a row, which the next start sweeps. */

enum { COPY_BYTES = 1 << 16, HEX_CHARS = 2 * HASH_BYTES };

static void path_of(const history_store *st, const uint8_t hash[HASH_BYTES], char out[HISTORY_PATH_MAX])
{
    char hex[HEX_CHARS + 1];
    hash_hex(hex, hash, HASH_BYTES);
    snprintf(out, HISTORY_PATH_MAX, "%s/files/%s", st->dir, hex);
}

/* Makes a file that the next start sweeps if it is still there; its path is in `out`. -1 on
 * failure. */
static int create_temporary(const history_store *st, char out[HISTORY_PATH_MAX])
{
    char name[64];
    hash_random_id(name, sizeof name, "temporary-");
    snprintf(out, HISTORY_PATH_MAX, "%s/files/%s", st->dir, name);
    return open(out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

int history_temporary_file(const history_store *st)
{
    char path[HISTORY_PATH_MAX];
    const int fd = create_temporary(st, path);
    if (fd >= 0) {
        unlink(path);
    }
    return fd;
}

static bool copy_file(int to, const file_handle *from)
{
    char *piece = malloc(COPY_BYTES);
    uint64_t done = 0;
    bool ok = piece != NULL;
    while (ok && done < from->bytes) {
        const int64_t n = file_read_at(from->fd, piece, COPY_BYTES, done);
        ok = n > 0 && file_write_all(to, piece, (size_t)n);
        done += ok ? (uint64_t)n : 0;
    }
    free(piece);
    return ok;
}

static bool sync_folder(const history_store *st)
{
    char path[HISTORY_PATH_MAX];
    snprintf(path, sizeof path, "%s/files", st->dir);
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool ok = fd >= 0 && fsync(fd) == 0;
    file_close(fd);
    return ok;
}

/* Writes the file under its name; one that is there already is the same bytes. */
static err_code place_file(history_store *st, const void *data, const file_handle *file, err_detail *d)
{
    char temporary[HISTORY_PATH_MAX], path[HISTORY_PATH_MAX];
    struct stat known;
    path_of(st, file->hash, path);
    if (stat(path, &known) == 0 && (uint64_t)known.st_size == file->bytes) {
        return ERR_OK;
    }
    const int fd = create_temporary(st, temporary);
    bool ok = fd >= 0 && (data ? file_write_all(fd, data, (size_t)file->bytes) : copy_file(fd, file)) &&
              fsync(fd) == 0;
    file_close(fd);
    ok = ok && rename(temporary, path) == 0 && sync_folder(st);
    if (!ok) {
        log_error("history", "%s: %s", temporary, strerror(errno));
        unlink(temporary);
        return history_bad_disk(d, "a file");
    }
    return ERR_OK;
}

err_code history_keep_file(history_store *st, uint64_t scope, const void *data, const file_handle *file,
                           err_detail *d)
{
    err_code err = history_check_room(st, file->bytes, d);
    err = err == ERR_OK ? place_file(st, data, file, d) : err;
    if (err != ERR_OK) {
        return err;
    }
    query_step(database_query(st->db,
                              "INSERT INTO files(scope, hash, n_bytes, added) VALUES(?1, ?2, ?3, ?4)"
                              " ON CONFLICT DO UPDATE SET added = excluded.added",
                              "ibii", (int64_t)scope, file->hash, (size_t)HASH_BYTES, (int64_t)file->bytes,
                              history_now_ms()));
    return ERR_OK;
}

err_code history_store_add_file(history_store *st, uint64_t scope, const file_handle *file, err_detail *d)
{
    database_begin(st->db);
    return history_commit(st, history_keep_file(st, scope, NULL, file, d), d);
}

err_code history_store_open_file(history_store *st, uint64_t scope, const char *text, file_handle *out,
                                 err_detail *d)
{
    char path[HISTORY_PATH_MAX];
    *out = (file_handle){.fd = -1};
    bool known = hash_parse_hex(out->hash, text);
    database_begin(st->db);
    if (known) {
        query *q = database_query(st->db, "SELECT n_bytes FROM files WHERE scope = ?1 AND hash = ?2", "ib",
                                  (int64_t)scope, out->hash, (size_t)HASH_BYTES);
        known = query_step(q);
        out->bytes = known ? (uint64_t)query_int(q, 0) : 0;
    }
    const err_code err = history_commit(st, ERR_OK, d);
    if (err != ERR_OK) {
        return err;
    }
    if (known) {
        path_of(st, out->hash, path);
        out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (out->fd < 0) {
        return err_set_param(d, ERR_NOT_FOUND, NULL, "file_not_found", "there is no such file");
    }
    posix_fadvise(out->fd, 0, 0, POSIX_FADV_WILLNEED); /* who sends it shall not wait for the disk */
    return ERR_OK;
}

/* ---- sweeping ---- */

static bool is_in_table(history_store *st, const uint8_t hash[HASH_BYTES])
{
    query *q = database_query(st->db, "SELECT 1 FROM files WHERE hash = ?1", "b", hash, (size_t)HASH_BYTES);
    return query_step(q);
}

#define UNUSED                                                                                               \
    " FROM files WHERE added < ?1 AND NOT EXISTS (SELECT 1 FROM message_files f"                             \
    " JOIN messages m ON m.num = f.message JOIN chats c ON c.num = m.chat"                                   \
    " WHERE f.hash = files.hash AND c.scope = files.scope)"

void history_sweep_files(history_store *st)
{
    const int64_t before = history_now_ms() - (int64_t)LIMIT_HISTORY_UNUSED_S * 1000;
    uint8_t(*unused)[HASH_BYTES] = NULL;
    size_t n = 0, cap = 0;
    database_begin(st->db);
    query *q = database_query(st->db, "DELETE" UNUSED " RETURNING hash", "i", before);
    while (query_step(q)) {
        size_t len;
        const void *hash = query_blob(q, 0, &len);
        if (!memory_grow(&unused, &cap, n + 1, 64, sizeof *unused)) {
            break; /* the next start finds the rest in the folder */
        }
        if (len == HASH_BYTES) {
            memcpy(unused[n++], hash, HASH_BYTES);
        }
    }
    database_run(st->db, "PRAGMA incremental_vacuum;"); /* the disk gets back what is free */
    const bool gone = database_end(st->db, ERR_OK, NULL) == ERR_OK;
    database_begin(st->db);
    for (size_t i = 0; gone && i < n; i++) {
        char path[HISTORY_PATH_MAX];
        if (!is_in_table(st, unused[i]) && !database_failed(st->db)) { /* nor for another key */
            path_of(st, unused[i], path);
            unlink(path);
        }
    }
    if (database_end(st->db, ERR_OK, NULL) != ERR_OK) {
        log_warn("history", "%s could not be tidied", st->dir);
    }
    free(unused);
}

void history_sweep_folder(history_store *st)
{
    char path[HISTORY_PATH_MAX];
    uint8_t hash[HASH_BYTES];
    snprintf(path, sizeof path, "%s/files", st->dir);
    DIR *folder = opendir(path);
    if (!folder) {
        return;
    }
    database_begin(st->db);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        const bool is_file = hash_parse_hex(hash, entry->d_name);
        const bool is_leftover = strncmp(entry->d_name, "temporary-", 10) == 0;
        const bool unknown = is_file && !is_in_table(st, hash) && !database_failed(st->db);
        if (is_leftover || unknown) {
            unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
    closedir(folder);
    if (database_end(st->db, ERR_OK, NULL) != ERR_OK) {
        log_warn("history", "%s could not be tidied", path);
    }
}
