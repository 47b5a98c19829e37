/* history_state: what the history_*.c files of the store share. Private; the store's thread.
 *
 * history_schema.c    opening, the form of the tables
 * history_store.c     reading: lists, search, one chat
 * history_put.c       writing and deleting chats
 * history_files.c     attached files
 * history_search.c    upkeep of the search index
 * history_reserve.c   room for deleting on a full disk
 * history_transfer.c  export and import
 * history_share.c     links that show a chat to who has no key
 * history_talks.c     conversations of the API
 */
#ifndef PARLEY_SERVER_HISTORY_HISTORY_STATE_H
#define PARLEY_SERVER_HISTORY_HISTORY_STATE_H

#include "server/history/database.h"
#include "server/history/history_store.h"

enum { HISTORY_PATH_MAX = 4096 };

struct history_store {
    database *db;
    char dir[HISTORY_PATH_MAX - 128]; /* room for the names below it */
    uint64_t quota;
    uint64_t database_quota; /* of the database alone, where files may not grow (RLIMIT_FSIZE) */
    int lock_fd;             /* locks the folder against a second server */
    int reserve_fd;          /* a file that only takes room; -1: none */
    uint64_t reserve_was;    /* bytes that it had when it was freed */
};

/* history_reserve.c: room on the disk that is kept for deleting, which needs some before it gives
 * some back. */
void history_reserve_open(history_store *st);
/* Takes up to LIMIT_HISTORY_RESERVE_BYTES again, as far as the disk allows. */
void history_reserve_fill(history_store *st);
void history_reserve_free(history_store *st); /* gives it back to the disk */
/* After a deletion found no room: frees the reserve and what the write-ahead log holds. False if
 * that does not help. */
bool history_make_room(history_store *st);
/* After it: gives free pages back to the disk, piece by piece, and fills the reserve. */
void history_give_back(history_store *st);
/* The largest file that this process may write (RLIMIT_FSIZE); UINT64_MAX: any. */
uint64_t history_file_limit(void);

/* Ends a transaction and describes a failure of the database. */
/* (libedit has a history_end.) */
MUST_CHECK err_code history_commit(history_store *st, err_code err, err_detail *d);
/* ERR_LIMIT (history_full) if n_bytes more would be beyond the quota. Inside a transaction. */
MUST_CHECK err_code history_check_room(history_store *st, uint64_t n_bytes, err_detail *d);
/* ERR_IO (history_storage_failed); what: the file that could not be written. */
MUST_CHECK err_code history_bad_disk(err_detail *d, const char *what);
MUST_CHECK err_code history_no_chat(err_detail *d); /* ERR_NOT_FOUND, chat_not_found */
/* A chat's or message's id: letters, digits, '-' and '_', at most 64. */
bool history_valid_id(const char *id);
int64_t history_now_ms(void); /* since 1970 */

/* Writes what `given` says of a chat; inside a transaction. is_import: a new chat whatever its
 * revision says, whose attachments hold their bytes ("data") instead of naming a file
 * ("sha256"). */
MUST_CHECK err_code history_write_chat(history_store *st, uint64_t scope, const char *id, const json *given,
                                       bool is_import, chat_change *change, err_detail *d);

/* Begins a member of an object that is being written: its name and the colon. */
void history_begin_member(bytes *out, const char *key, bool is_first);

/* history_search.c */
/* Words of deleted chats leave the search index when its parts are merged: some of them each time. */
void history_tidy_search(history_store *st);

/* history_files.c */
/* Puts bytes that lie in memory, or (data NULL) in a file, into the folder and into the table; in a
 * transaction. */
MUST_CHECK err_code history_keep_file(history_store *st, uint64_t scope, const void *data,
                                      const file_handle *file, err_detail *d);
/* A nameless file in the folder; -1 on failure. */
int history_temporary_file(const history_store *st);
/* Forgets files that no message names, and what lies in the folder without being in the table. */
void history_sweep_files(history_store *st);
void history_sweep_folder(history_store *st);
MUST_CHECK err_code history_make_folders(history_store *st, err_detail *d); /* both, if they are absent */

#endif
