/* store: folders of chats for tests of the history.
 *
 *     folder_make(root);
 *     history_store *st = open_store("chats", QUOTA);
 *     err_code err = check_store(st, &detail);          // ERR_OK: the whole database is sound
 */
#ifndef PARLEY_TESTS_SERVER_HISTORY_STORE_H
#define PARLEY_TESTS_SERVER_HISTORY_STORE_H

#include "server/history/history_state.h"
#include "tests/check.h"
#include "tests/folder.h"

enum { SCOPE = 7, PATH_BYTES = 512 };
static const uint64_t QUOTA = (uint64_t)64 << 20;

static char root[FOLDER_NAME];

static inline const char *folder(const char *name)
{
    static char path[2 * PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

/* Checks the whole database. */
static inline err_code check_store(history_store *st, err_detail *d)
{
    database_begin(st->db);
    query *q = database_query(st->db, "PRAGMA integrity_check", "");
    size_t len;
    err_code err = ERR_OK;
    if (!query_step(q) || strcmp(query_text(q, 0, &len), "ok") != 0) {
        err = err_set(d, ERR_CORRUPT, "integrity_check: %s", query_text(q, 0, &len));
    }
    q = database_query(st->db, "PRAGMA foreign_key_check", "");
    if (query_step(q)) {
        err = err_set(d, ERR_CORRUPT, "a row names one that is not there");
    }
    database_run(st->db, "INSERT INTO text_search(text_search) VALUES('integrity-check');"
                         "INSERT INTO title_search(title_search) VALUES('integrity-check');");
    return database_end(st->db, err, d);
}

static inline history_store *open_store(const char *name, uint64_t quota)
{
    history_store *st = NULL;
    err_detail d = {0};
    CHECK_OK(history_store_open(&st, &(history_options){.dir = folder(name), .quota = quota}, &d), d);
    if (!st) {
        exit(1);
    }
    return st;
}

#endif
