#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "server/history/history_state.h"

/* SQLite up to 3.45 puts a level on top of an index with each of these merges, and then takes one of
 * more than 2,000 for damaged. One that is written anew begins at none. */
enum { LEVELS_MOST = 1000, LEVELS_DAMAGED = 2000 };

/* levels: the record that says how an index is built. empty: what a new one has in its place.
 * `rebuild` is not for texts: it would take those in that are still being written. */
static const struct {
    const char *levels, *merge, *empty, *write;
} INDEXES[] = {
    {"SELECT block FROM text_search_data WHERE id = 10",
     "INSERT INTO text_search(text_search, rank) VALUES('merge', -500)",
     "DELETE FROM text_search_data; INSERT INTO text_search_data VALUES(1, x''), (10, x'00000000000000');",
     "INSERT INTO text_search(text_search) VALUES('delete-all');"
     "INSERT INTO text_search(rowid, text) SELECT num, text FROM messages WHERE settled;"},
    {"SELECT block FROM title_search_data WHERE id = 10",
     "INSERT INTO title_search(title_search, rank) VALUES('merge', -50)",
     "DELETE FROM title_search_data; INSERT INTO title_search_data VALUES(1, x''), (10, x'00000000000000');",
     "INSERT INTO title_search(title_search) VALUES('delete-all');"
     "INSERT INTO title_search(rowid, title) SELECT num, title FROM chats;"},
};

/* How many levels an index has: the number behind four bytes, seven bits a byte; newer forms have
 * a mark of four bytes between. */
static int64_t count_levels(database *db, const char *sql)
{
    static const uint8_t MARK[] = {0xff, 0, 0, 1};
    query *q = database_query(db, sql, "");
    int64_t n = 0;
    size_t len = 0;
    const uint8_t *record = query_step(q) ? query_blob(q, 0, &len) : NULL;
    size_t at = len >= 8 && memcmp(record + 4, MARK, sizeof MARK) == 0 ? 8 : 4;
    while (at < len && n <= LEVELS_DAMAGED) {
        n = n << 7 | (record[at] & 0x7f);
        if (!(record[at++] & 0x80)) {
            break;
        }
    }
    while (query_step(q)) {
    }
    return n;
}

void history_tidy_search(history_store *st)
{
    bool anew = false;
    database_begin(st->db);
    for (size_t i = 0; i < ARRAY_LEN(INDEXES); i++) {
        const int64_t n = count_levels(st->db, INDEXES[i].levels);
        if (n > LEVELS_DAMAGED) { /* SQLite does not even open this one */
            database_be_careful(st->db, false);
            database_run(st->db, INDEXES[i].empty);
        }
        anew = anew || n > LEVELS_MOST;
        database_run(st->db, n > LEVELS_MOST ? INDEXES[i].write : INDEXES[i].merge);
    }
    const err_code err = database_end(st->db, ERR_OK, NULL);
    database_be_careful(st->db, true);
    if (err != ERR_OK) {
        log_warn("history", "the search index in %s could not be tidied (%s)", st->dir, err_name(err));
    } else if (anew) {
        log_info("history", "the search index in %s was written anew", st->dir);
    }
}
