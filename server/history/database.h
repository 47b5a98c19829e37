/* database: one SQLite file: opening with the settings that make a commit durable, prepared
 * statements, transactions. The only file that sees SQLite. One thread at a time.
 *
 *     database *db; err = database_open(&db, "/srv/chats.db", &detail);
 *     database_begin(db);
 *     query *q = database_query(db, "SELECT id FROM chats WHERE scope = ?1", "i", scope);
 *     while (query_step(q)) { puts(query_text(q, 0, &len)); }
 *     err = database_end(db, err, &detail);                                    // commits, or rolls back
 *
 * Errors are sticky, as in bytes: after a failed statement every later one of the transaction does
 * nothing, and database_end reports it. What database_end has committed is on the disk (write-ahead
 * log, synchronous FULL).
 */
#ifndef PARLEY_SERVER_HISTORY_DATABASE_H
#define PARLEY_SERVER_HISTORY_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct database database;
typedef struct query query; /* a prepared statement; owned by the database */

/* Opens or makes the file, and checks that it is whole. ERR_CORRUPT (damaged, or no database),
 * ERR_IO, ERR_BUSY (another program writes to it), ERR_NOMEM. The caller closes it. */
MUST_CHECK err_code database_open(database **out, const char *path, err_detail *detail);
void database_close(database *db); /* NULL allowed */

/* The number the file carries for the form of its tables; 0 in a new one. */
int database_version(database *db);
void database_set_version(database *db, int version); /* inside a transaction */
/* The file never grows beyond this: what would is ERR_LIMIT. */
void database_set_max_bytes(database *db, uint64_t n_bytes);
/* The write-ahead log is emptied into the file when it has this many bytes (SQLite's standard:
 * 1,000 pages). */
void database_set_log_bytes(database *db, uint64_t n_bytes);
/* Empties it now, as far as there is room. Outside of transactions, as the following. */
void database_checkpoint(database *db);
/* True: what is deleted is not overwritten with zeros, which a write-ahead log would have to hold;
 * database_vacuum_piece then takes it out of the file. False if that cannot be set. */
bool database_be_frugal(database *db, bool frugal);
/* False: statements may write tables that belong to SQLite's own indexes. */
void database_be_careful(database *db, bool careful);
/* Gives some free pages back to the disk; false if there are none left, or no room to do it. */
bool database_vacuum_piece(database *db);
/* Bytes of the file that are in use. */
uint64_t database_used_bytes(database *db);

/* Begins a transaction that may write. */
void database_begin(database *db);
/* Commits if err and everything since database_begin is ERR_OK, else rolls back. Returns err, or
 * else what failed: ERR_LIMIT (no room), ERR_CORRUPT, ERR_IO, ERR_BUSY, ERR_NOMEM, ERR_INTERNAL. */
MUST_CHECK err_code database_end(database *db, err_code err, err_detail *detail);
/* True if a statement has failed since database_begin. */
bool database_failed(const database *db);

/* Several statements without parameters. */
void database_run(database *db, const char *sql);

/* The statement of this constant text, which is prepared once, with its parameters ?1, ?2, ... bound
 * to the values that follow, a letter each in `kinds`: 'i' an int64_t (TRAP: nothing narrower), 't' a
 * const char * (NULL: SQL's NULL), 'b' a const void * and the size_t of its bytes. Texts and bytes
 * are copied. One use at a time. Never NULL: what cannot be prepared has no rows and makes
 * database_end fail. */
query *database_query(database *db, const char *sql, const char *kinds, ...);
/* Binds one more parameter, counted from 1. */
void query_bind_text(query *q, int at, const char *text, size_t len); /* NULL text: SQL's NULL */
/* True: there is a row. False: no more rows, or a failure. A statement without rows is run by one
 * step. */
bool query_step(query *q);
/* For a statement with RETURNING one number: steps to the end; returns that of the first row, or
 * 0. */
int64_t query_returned(query *q);
/* Columns count from 0; valid until the next step. NULL counts as 0 and "". */
int64_t query_int(query *q, int column);
bool query_is_null(query *q, int column);                  /* SQL's NULL */
const char *query_text(query *q, int column, size_t *len); /* with a NUL behind it */
const void *query_blob(query *q, int column, size_t *n);   /* NULL if it is empty */

#endif
