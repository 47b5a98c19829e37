#include "server/history/database.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

enum { MAX_QUERIES = 64, BUSY_MS = 2000, SQL_MAX = 96 };

struct query {
    database *db;
    const char *sql;
    sqlite3_stmt *statement; /* NULL: it could not be prepared */
};

struct database {
    sqlite3 *handle;
    query queries[MAX_QUERIES];
    int n_queries;
    query broken; /* given out when nothing better can be */
    int failed;   /* SQLite's code of the first failure of this transaction */
};

static err_code code_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return ERR_OK;
    case SQLITE_FULL:
        return ERR_LIMIT;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ERR_CORRUPT;
    case SQLITE_NOMEM:
        return ERR_NOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ERR_BUSY;
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return ERR_IO;
    default:
        return ERR_INTERNAL;
    }
}

static err_code report(int rc, err_detail *d)
{
    const err_code err = code_of(rc);
    if (err != ERR_OK) {
        return err_set(d, err, "the database: %s", sqlite3_errstr(rc));
    }
    return ERR_OK;
}

/* Remembers the first failure, and writes it to the log with SQLite's own words. */
static void note(database *db, int rc)
{
    if (db->failed == SQLITE_OK && code_of(rc) != ERR_OK) {
        db->failed = rc;
        log_error("history", "database: %s (%d)", sqlite3_errmsg(db->handle), rc);
    }
}

static void reset_queries(database *db)
{
    for (int i = 0; i < db->n_queries; i++) {
        sqlite3_reset(db->queries[i].statement);
    }
}

static bool is_whole(database *db)
{
    query *q = database_query(db, "PRAGMA quick_check(1)", "");
    size_t len;
    return query_step(q) && strcmp(query_text(q, 0, &len), "ok") == 0;
}

err_code database_open(database **out, const char *path, err_detail *d)
{
    *out = NULL;
    database *db = calloc(1, sizeof *db);
    if (!db) {
        return err_set(d, ERR_NOMEM, "no memory for the database");
    }
    db->broken.db = db;
    int rc = sqlite3_open_v2(path, &db->handle,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                                 SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE,
                             NULL);
    if (rc == SQLITE_OK) {
        sqlite3_busy_timeout(db->handle, BUSY_MS);
        database_be_careful(db, true);
        /* What was deleted is overwritten, and a commit is on the disk when it returns. */
        database_run(db,
                     "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                     "PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON; PRAGMA cell_size_check = ON;"
                     "PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 4194304;");
        const bool whole = db->failed == SQLITE_OK && is_whole(db);
        rc = db->failed != SQLITE_OK ? db->failed : whole ? SQLITE_OK : SQLITE_CORRUPT;
        db->failed = SQLITE_OK;
        reset_queries(db);
    }
    const err_code err = report(rc, d);
    if (err != ERR_OK) {
        database_close(db);
        return err;
    }
    *out = db;
    return ERR_OK;
}

void database_close(database *db)
{
    if (!db) {
        return;
    }
    for (int i = 0; i < db->n_queries; i++) {
        sqlite3_finalize(db->queries[i].statement);
    }
    sqlite3_close(db->handle);
    free(db);
}

static int64_t pragma(database *db, const char *sql)
{
    query *q = database_query(db, sql, "");
    const int64_t value = query_step(q) ? query_int(q, 0) : 0;
    sqlite3_reset(q->statement);
    return value;
}

int database_version(database *db)
{
    return (int)pragma(db, "PRAGMA user_version");
}

void database_set_version(database *db, int version)
{
    char sql[SQL_MAX];
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", version);
    database_run(db, sql);
}

static uint64_t page_bytes(database *db)
{
    const int64_t n = pragma(db, "PRAGMA page_size");
    return n > 0 ? (uint64_t)n : 4096;
}

void database_set_max_bytes(database *db, uint64_t n_bytes)
{
    char sql[SQL_MAX];
    const uint64_t n_pages = n_bytes / page_bytes(db);
    snprintf(sql, sizeof sql, "PRAGMA max_page_count = %llu",
             (unsigned long long)(n_pages < UINT32_MAX - 1 ? n_pages : UINT32_MAX - 1));
    database_run(db, sql);
}

void database_set_log_bytes(database *db, uint64_t n_bytes)
{
    const uint64_t n_pages = n_bytes / page_bytes(db);
    sqlite3_wal_autocheckpoint(db->handle, n_pages < 1 ? 1 : n_pages < INT32_MAX ? (int)n_pages : INT32_MAX);
}

void database_checkpoint(database *db)
{
    reset_queries(db);
    const int rc = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if (rc != SQLITE_OK) {
        log_warn("history", "the write-ahead log cannot be emptied: %s", sqlite3_errstr(rc));
    }
}

bool database_be_frugal(database *db, bool frugal)
{
    const char *sql = frugal ? "PRAGMA secure_delete = FAST" : "PRAGMA secure_delete = ON";
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK;
}

void database_be_careful(database *db, bool careful)
{
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, careful ? 1 : 0, NULL);
}

bool database_vacuum_piece(database *db)
{
    const int64_t before = pragma(db, "PRAGMA freelist_count");
    reset_queries(db);
    const int rc = sqlite3_exec(db->handle, "PRAGMA incremental_vacuum(64)", NULL, NULL, NULL);
    database_checkpoint(db);
    return rc == SQLITE_OK && pragma(db, "PRAGMA freelist_count") < before;
}

uint64_t database_used_bytes(database *db)
{
    const int64_t n = pragma(db, "PRAGMA page_count") - pragma(db, "PRAGMA freelist_count");
    return n > 0 ? (uint64_t)n * page_bytes(db) : 0;
}

/* ---- transactions ---- */

void database_begin(database *db)
{
    db->failed = SQLITE_OK;
    database_run(db, "BEGIN IMMEDIATE");
}

err_code database_end(database *db, err_code err, err_detail *d)
{
    reset_queries(db); /* an open one would hold the commit up */
    if (err == ERR_OK && db->failed == SQLITE_OK) {
        database_run(db, "COMMIT");
    }
    err = err == ERR_OK ? report(db->failed, d) : err;
    /* After some failures SQLite has rolled back by itself. */
    if (err != ERR_OK && !sqlite3_get_autocommit(db->handle)) {
        sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    }
    db->failed = SQLITE_OK;
    return err;
}

bool database_failed(const database *db)
{
    return db->failed != SQLITE_OK;
}

void database_run(database *db, const char *sql)
{
    if (db->failed == SQLITE_OK) {
        note(db, sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
    }
}

/* ---- statements ---- */

/* The statement, prepared and without values. */
static query *find_query(database *db, const char *sql)
{
    for (int i = 0; i < db->n_queries; i++) {
        query *q = &db->queries[i];
        if (q->sql == sql) { /* constants: the same text elsewhere is only prepared twice */
            sqlite3_reset(q->statement);
            sqlite3_clear_bindings(q->statement);
            return q;
        }
    }
    if (db->n_queries == MAX_QUERIES) {
        note(db, SQLITE_MISUSE);
        return &db->broken;
    }
    query *q = &db->queries[db->n_queries];
    *q = (query){.db = db, .sql = sql};
    const int rc = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &q->statement, NULL);
    if (rc != SQLITE_OK) {
        note(db, rc);
        return &db->broken;
    }
    db->n_queries++;
    return q;
}

void query_bind_text(query *q, int at, const char *text, size_t len)
{
    note(q->db, q->statement ? sqlite3_bind_text64(q->statement, at, text, len, SQLITE_TRANSIENT, SQLITE_UTF8)
                             : SQLITE_OK);
}

query *database_query(database *db, const char *sql, const char *kinds, ...)
{
    query *q = find_query(db, sql);
    va_list args;
    va_start(args, kinds);
    for (int at = 1; q->statement && kinds[at - 1]; at++) {
        if (kinds[at - 1] == 'i') {
            note(db, sqlite3_bind_int64(q->statement, at, va_arg(args, int64_t)));
        } else if (kinds[at - 1] == 't') {
            const char *text = va_arg(args, const char *);
            query_bind_text(q, at, text, text ? strlen(text) : 0);
        } else {
            const void *data = va_arg(args, const void *);
            note(db, sqlite3_bind_blob64(q->statement, at, data, va_arg(args, size_t), SQLITE_TRANSIENT));
        }
    }
    va_end(args);
    return q;
}

bool query_step(query *q)
{
    if (!q->statement || q->db->failed != SQLITE_OK) {
        return false;
    }
    const int rc = sqlite3_step(q->statement);
    note(q->db, rc);
    return rc == SQLITE_ROW;
}

int64_t query_returned(query *q)
{
    const int64_t value = query_step(q) ? query_int(q, 0) : 0;
    /* TRAP: foreign keys are counted when the statement ends, so it must not be left at its row. */
    while (query_step(q)) {
    }
    return value;
}

int64_t query_int(query *q, int column)
{
    return sqlite3_column_int64(q->statement, column);
}

bool query_is_null(query *q, int column)
{
    return sqlite3_column_type(q->statement, column) == SQLITE_NULL;
}

const char *query_text(query *q, int column, size_t *len)
{
    const unsigned char *text = sqlite3_column_text(q->statement, column);
    *len = text ? (size_t)sqlite3_column_bytes(q->statement, column) : 0;
    return text ? (const char *)text : "";
}

const void *query_blob(query *q, int column, size_t *n)
{
    const void *data = sqlite3_column_blob(q->statement, column);
    *n = (size_t)sqlite3_column_bytes(q->statement, column);
    return data;
}
