#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/file.h"
#include "server/history/history_state.h"

/* Step N brings a database of version N to N + 1. A step that has been released is never changed:
 * another follows. */
static const char *const MIGRATIONS[] = {
    /* Revisions come from one counter, so that one never comes again, also of a chat that was
     * deleted and made anew. settled: 0 while the answer is being written. rest: the message's JSON
     * without its text. */
    "CREATE TABLE counter(revision INTEGER NOT NULL);"
    "INSERT INTO counter VALUES(0);"
    "CREATE TABLE chats(num INTEGER PRIMARY KEY, scope INTEGER NOT NULL, id TEXT NOT NULL,"
    " revision INTEGER NOT NULL, title TEXT NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL,"
    " head TEXT, options TEXT NOT NULL, n_messages INTEGER NOT NULL, n_bytes INTEGER NOT NULL, UNIQUE(scope, "
    "id));"
    "CREATE INDEX chats_by_time ON chats(scope, updated, num);"
    "CREATE TABLE messages(num INTEGER PRIMARY KEY, chat INTEGER NOT NULL REFERENCES chats(num) ON DELETE "
    "CASCADE,"
    " id TEXT NOT NULL, parent TEXT, revision INTEGER NOT NULL, settled INTEGER NOT NULL, text TEXT NOT NULL,"
    " rest TEXT NOT NULL, UNIQUE(chat, id));"
    "CREATE INDEX messages_by_revision ON messages(chat, revision);"
    "CREATE TABLE files(scope INTEGER NOT NULL, hash BLOB NOT NULL, n_bytes INTEGER NOT NULL, added INTEGER "
    "NOT NULL,"
    " PRIMARY KEY(scope, hash)) WITHOUT ROWID;"
    "CREATE INDEX files_by_hash ON files(hash);"
    "CREATE TABLE message_files(message INTEGER NOT NULL REFERENCES messages(num) ON DELETE CASCADE,"
    " hash BLOB NOT NULL, PRIMARY KEY(message, hash)) WITHOUT ROWID;"
    "CREATE INDEX message_files_by_hash ON message_files(hash);",

    /* Search: pieces of three characters, so that any part of a word is found in any language. The
     * texts themselves stay in their tables. */
    "CREATE VIRTUAL TABLE title_search USING fts5(title, content='chats', content_rowid='num', "
    "tokenize='trigram');"
    "CREATE TRIGGER title_added AFTER INSERT ON chats BEGIN"
    " INSERT INTO title_search(rowid, title) VALUES(new.num, new.title); END;"
    "CREATE TRIGGER title_removed AFTER DELETE ON chats BEGIN"
    " INSERT INTO title_search(title_search, rowid, title) VALUES('delete', old.num, old.title); END;"
    "CREATE TRIGGER title_changed AFTER UPDATE OF title ON chats BEGIN"
    " INSERT INTO title_search(title_search, rowid, title) VALUES('delete', old.num, old.title);"
    " INSERT INTO title_search(rowid, title) VALUES(new.num, new.title); END;"
    "CREATE VIRTUAL TABLE text_search USING fts5(text, content='messages', content_rowid='num', "
    "tokenize='trigram');"
    "CREATE TRIGGER text_added AFTER INSERT ON messages WHEN new.settled BEGIN"
    " INSERT INTO text_search(rowid, text) VALUES(new.num, new.text); END;"
    "CREATE TRIGGER text_removed AFTER DELETE ON messages WHEN old.settled BEGIN"
    " INSERT INTO text_search(text_search, rowid, text) VALUES('delete', old.num, old.text); END;"
    "CREATE TRIGGER text_left AFTER UPDATE OF text, settled ON messages WHEN old.settled BEGIN"
    " INSERT INTO text_search(text_search, rowid, text) VALUES('delete', old.num, old.text); END;"
    "CREATE TRIGGER text_came AFTER UPDATE OF text, settled ON messages WHEN new.settled BEGIN"
    " INSERT INTO text_search(rowid, text) VALUES(new.num, new.text); END;"
    "INSERT INTO title_search(rowid, title) SELECT num, title FROM chats;"
    "INSERT INTO text_search(rowid, text) SELECT num, text FROM messages WHERE settled;",

    /* Links that show a chat up to the message `head`; expires NULL: never. */
    "CREATE TABLE shares(token TEXT PRIMARY KEY, chat INTEGER NOT NULL REFERENCES chats(num) ON DELETE "
    "CASCADE,"
    " head TEXT NOT NULL, created INTEGER NOT NULL, expires INTEGER) WITHOUT ROWID;"
    "CREATE INDEX shares_by_chat ON shares(chat);",

    /* Conversations of the API (/v1/conversations): head and items are JSON text; place: from 1, with
     * gaps where items were deleted. n_bytes: of the whole text. */
    "CREATE TABLE talks(num INTEGER PRIMARY KEY, scope INTEGER NOT NULL, id TEXT NOT NULL, head TEXT NOT "
    "NULL,"
    " n_bytes INTEGER NOT NULL, UNIQUE(scope, id));"
    "CREATE TABLE talk_items(talk INTEGER NOT NULL REFERENCES talks(num) ON DELETE CASCADE, place INTEGER "
    "NOT "
    "NULL,"
    " id TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY(talk, place));"
    "CREATE INDEX talk_items_by_id ON talk_items(id);",
};

enum { SCHEMA_VERSION = ARRAY_LEN(MIGRATIONS) };

/* What deleting needs although the history is full. */
#define HEADROOM_BYTES ((uint64_t)8 << 20)
/* Where files may not grow, the write-ahead log must be emptied before it meets that limit. */
#define LOG_BYTES ((uint64_t)4 << 20)
enum { LOG_SHARE = 4 };

static err_code migrate(history_store *st, err_detail *d)
{
    const int version = database_version(st->db);
    if (version < 0 || version > SCHEMA_VERSION) {
        return err_set(d, ERR_UNSUPPORTED,
                       "the history in %s was written by a newer Parley (form %d, this one knows %d): "
                       "start that one, or name another folder with --history",
                       st->dir, version, (int)SCHEMA_VERSION);
    }
    for (int i = version; i < SCHEMA_VERSION; i++) {
        database_begin(st->db);
        database_run(st->db, MIGRATIONS[i]);
        database_set_version(st->db, i + 1);
        const err_code err = database_end(st->db, ERR_OK, d);
        if (err != ERR_OK) {
            return err_set(d, err, "the history in %s could not be brought to the form of this Parley (%s)",
                           st->dir, err_name(err));
        }
    }
    return ERR_OK;
}

/* Only this user may read the chats. */
static err_code make_folder(const char *path, err_detail *d)
{
    if (mkdir(path, S_IRWXU) != 0 && errno != EEXIST) {
        return err_set(d, ERR_INVALID, "the folder %s cannot be made (%s); name another with --history", path,
                       strerror(errno));
    }
    return ERR_OK;
}

/* st->dir leaves room for the names below it. */
static void path_below(const history_store *st, const char *name, char out[HISTORY_PATH_MAX])
{
    snprintf(out, HISTORY_PATH_MAX, "%s/%s", st->dir, name);
}

err_code history_make_folders(history_store *st, err_detail *d)
{
    char path[HISTORY_PATH_MAX];
    path_below(st, "files", path);
    const err_code err = make_folder(st->dir, d);
    return err == ERR_OK ? make_folder(path, d) : err;
}

static err_code take_lock(history_store *st, err_detail *d)
{
    char path[HISTORY_PATH_MAX];
    path_below(st, "lock", path);
    st->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (st->lock_fd < 0) {
        return err_set(d, ERR_INVALID,
                       "the history cannot be written in %s (%s); let this user write there, or name another "
                       "folder with --history",
                       st->dir, strerror(errno));
    }
    if (flock(st->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        return err_set(
            d, ERR_BUSY,
            "another Parley keeps its history in %s; stop it, or name another folder with --history",
            st->dir);
    }
    return ERR_OK;
}

static err_code open_database(history_store *st, err_detail *d)
{
    char path[HISTORY_PATH_MAX];
    path_below(st, "history.db", path);
    /* Made here, so that nobody else can read it; what SQLite puts beside it takes the same
     * mode. */
    file_close(open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    history_reserve_open(st);
    err_code err = database_open(&st->db, path, d);
    if (err == ERR_LIMIT ||
        err == ERR_IO) { /* a full disk has no room for the files that SQLite needs beside it */
        history_reserve_free(st);
        err = database_open(&st->db, path, d);
    }
    switch (err) {
    case ERR_OK:
        return ERR_OK;
    case ERR_CORRUPT:
        return err_set(d, err,
                       "%s is damaged; put back a copy of it, save what can be read with "
                       "`sqlite3 history.db .recover`, or name another folder with --history",
                       path);
    case ERR_NOMEM:
        return err_set(d, err, "no memory for the history");
    case ERR_BUSY:
        return err_set(d, err, "another program holds %s; end it, or name another folder with --history",
                       path);
    default:
        return err_set(d, ERR_INVALID,
                       "the history cannot be opened in %s (%s); let this user read and write there, or name "
                       "another folder with --history",
                       st->dir, d->text);
    }
}

err_code history_store_open(history_store **out, const history_options *opt, err_detail *d)
{
    *out = NULL;
    history_store *st = calloc(1, sizeof *st);
    if (!st) {
        return err_set(d, ERR_NOMEM, "no memory for the history");
    }
    st->lock_fd = st->reserve_fd = -1;
    st->quota = opt->quota;
    err_code err = ERR_OK;
    if (strlen(opt->dir) >= sizeof st->dir) {
        err = err_set(d, ERR_INVALID, "the name of the history folder is too long");
    } else {
        snprintf(st->dir, sizeof st->dir, "%s", opt->dir);
    }
    err = err == ERR_OK ? history_make_folders(st, d) : err;
    err = err == ERR_OK ? take_lock(st, d) : err;
    err = err == ERR_OK ? open_database(st, d) : err;
    err = err == ERR_OK ? migrate(st, d) : err;
    if (err != ERR_OK) {
        history_store_close(st);
        return err;
    }
    const uint64_t most = history_file_limit(), wanted = opt->quota + HEADROOM_BYTES;
    database_set_max_bytes(st->db, wanted < most ? wanted : most);
    st->database_quota =
        most < UINT64_MAX ? most / 2 : most; /* deleting, too, makes the index grow at first */
    if (most / LOG_SHARE < LOG_BYTES) {
        database_set_log_bytes(st->db, most / LOG_SHARE);
    }
    const int dir_fd = open(st->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd >= 0) {
        fsync(dir_fd); /* the names of what was made just now */
        close(dir_fd);
    }
    history_tidy_search(st);
    history_sweep_files(st);
    history_sweep_folder(st);
    history_reserve_fill(st);
    *out = st;
    return ERR_OK;
}

void history_store_close(history_store *st)
{
    if (st) {
        database_close(st->db);
        file_close(st->lock_fd);
        file_close(st->reserve_fd);
        free(st);
    }
}
