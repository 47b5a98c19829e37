/* history_store: chats in a folder: a database (chats, their messages as a tree, a search index)
 * and the attached files beside it, by their hash. Every call is one transaction, durable when it
 * returns. One thread at a time.
 *
 *     history_store *st;
 *     err = history_store_open(&st, &(history_options){.dir = "/srv/chats", .quota = 1 << 30}, &detail);
 *     err = history_store_put(st, scope, "c_1", json_root(doc), &change, &detail);
 *     err = history_store_get(st, &out, scope, "c_1", 0, &detail);
 *     history_store_close(st);
 *
 * Input and output are JSON in the form of docs/api.md, "History". A chat belongs to a scope (a
 * hash of an API key, see access.h) and is seen by it alone. Names of errors: history_full,
 * history_damaged, history_storage_failed, chat_not_found, revision_conflict, file_not_found,
 * invalid_value, missing_field, too_many_chats, chat_too_large, share_not_found, too_many_shares, and those of conversations.
 */
#ifndef PARLEY_SERVER_HISTORY_HISTORY_STORE_H
#define PARLEY_SERVER_HISTORY_HISTORY_STORE_H

#include "base/bytes.h"
#include "base/hash.h"
#include "base/json.h"
#include "server/media/file_store.h"

enum { CHAT_ID_MAX = 65 };

typedef struct history_store history_store;

typedef struct history_options {
    const char *dir; /* created if missing; its parent must exist */
    uint64_t quota;  /* bytes of the database and all files */
} history_options;

/* What a write did. */
typedef struct chat_change {
    char id[CHAT_ID_MAX];
    int64_t revision; /* the chat's new one; after revision_conflict the one it has */
    int64_t updated;  /* milliseconds of the epoch */
} chat_change;

/* ERR_INVALID (no such folder, not writable), ERR_BUSY (another server uses it), ERR_CORRUPT,
 * ERR_UNSUPPORTED (a newer Parley wrote it), ERR_IO, ERR_NOMEM; the detail names the folder
 * and says what to do. */
MUST_CHECK err_code history_store_open(history_store **out, const history_options *opt, err_detail *detail);
void history_store_close(history_store *st); /* NULL allowed */

/* Appends how much is stored: {"object":"history",...}. */
MUST_CHECK err_code history_store_info(history_store *st, bytes *out, uint64_t scope, err_detail *detail);
/* Appends up to `limit` chats, the latest first, after the cursor `after` ("": from the first);
 * `words` NULL, or a text all of whose words must occur in a chat's title or messages. */
MUST_CHECK err_code history_store_list(history_store *st, bytes *out, uint64_t scope, int limit,
                                       const char *after, const char *words, err_detail *detail);
/* Appends a chat with its messages that are newer than revision `since` (0: all). */
MUST_CHECK err_code history_store_get(history_store *st, bytes *out, uint64_t scope, const char *id,
                                      int64_t since, err_detail *detail);
/* Creates a chat (revision 0) or changes one: the fields and messages that `given` has. */
MUST_CHECK err_code history_store_put(history_store *st, uint64_t scope, const char *id, const json *given,
                                      chat_change *change, err_detail *detail);
/* Deletes a chat; with a revision (other than ANY_REVISION) only if it still has that one, so that
 * what was written to it since is not lost. */
enum { ANY_REVISION = -1 };
MUST_CHECK err_code history_store_delete(history_store *st, uint64_t scope, const char *id, int64_t revision,
                                         chat_change *change, err_detail *detail);

/* Copies an open file into the folder, for messages to name by its hash. */
MUST_CHECK err_code history_store_add_file(history_store *st, uint64_t scope, const file_handle *file,
                                           err_detail *detail);
/* Opens a file for reading; the caller closes out->fd. */
MUST_CHECK err_code history_store_open_file(history_store *st, uint64_t scope, const char *hash_hex_text,
                                            file_handle *out, err_detail *detail);

/* Makes a link that shows a chat, without a key, up to a message: {"chat": id, "head": id or null (the
 * chat's own), "expires_in": seconds or null (never)}. Appends {"object":"share","token",...}. */
MUST_CHECK err_code history_store_share(history_store *st, bytes *out, uint64_t scope, const json *given,
                                        err_detail *detail);
/* Appends the links of a scope, the latest first. */
MUST_CHECK err_code history_store_shares(history_store *st, bytes *out, uint64_t scope, err_detail *detail);
/* Takes a link of this scope back. */
MUST_CHECK err_code history_store_unshare(history_store *st, bytes *out, uint64_t scope, const char *token,
                                          err_detail *detail);
/* Appends what a link shows: title and messages of its branch as they are now, without thoughts, tool
 * calls and settings. For any scope. ERR_NOT_FOUND (share_not_found). */
MUST_CHECK err_code history_store_shared(history_store *st, bytes *out, const char *token,
                                         err_detail *detail);
/* Opens a file of that branch; the caller closes out->fd. */
MUST_CHECK err_code history_store_shared_file(history_store *st, const char *token, const char *hash_hex_text,
                                              file_handle *out, err_detail *detail);

/* Conversations of the API (server/protocol/dialects/talks.h): texts "{head},{item},{item}", items with an
 * id each. ERR_NOT_FOUND (conversation_not_found), ERR_LIMIT (conversation_too_large,
 * too_many_conversations, history_full). */
MUST_CHECK err_code history_talk_get(history_store *st, uint64_t scope, const char *id, bytes *out,
                                     err_detail *detail);
/* The item that was added last under this id, of any conversation. */
MUST_CHECK err_code history_talk_item(history_store *st, uint64_t scope, const char *id, bytes *out,
                                      err_detail *detail);
MUST_CHECK err_code history_talk_put(history_store *st, uint64_t scope, const char *id, const bytes *text,
                                     err_detail *detail);
MUST_CHECK err_code history_talk_add(history_store *st, uint64_t scope, const char *id, const bytes *items,
                                     err_detail *detail);
MUST_CHECK err_code history_talk_remove(history_store *st, uint64_t scope, const char *id,
                                        err_detail *detail);

/* Writes all chats of a scope, with their files inside, to a nameless file; the caller closes
 * out->fd. */
MUST_CHECK err_code history_store_export(history_store *st, uint64_t scope, file_handle *out,
                                         err_detail *detail);
/* Adds the chats of such a file, under new ids, all of them or none. */
MUST_CHECK err_code history_store_import(history_store *st, uint64_t scope, const json *given, int *n_chats,
                                         err_detail *detail);

#endif
