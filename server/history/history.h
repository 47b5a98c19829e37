/* history: the thread that stores chats (history_store), so that the loop thread never waits for
 * the disk.
 *
 *     history *h; err = history_create(&h, &(history_options){.dir = dir, .quota = quota}, post, ctx, &detail);
 *     history_job *job = history_job_create(HISTORY_PUT);     // and job->body, job->id
 *     err = history_submit(h, job);            // ERR_BUSY: answer 429; the job stays ours
 *     // post(ctx, reply) is called on the thread; the loop frees it with history_reply_free
 *     history_destroy(h);                      // finishes what was submitted
 *
 * Threads: create, submit and destroy on the loop thread, history_call on others. One job after the other, in the order of
 * submitting.
 */
#ifndef PARLEY_SERVER_HISTORY_HISTORY_H
#define PARLEY_SERVER_HISTORY_HISTORY_H

#include "server/history/history_store.h"

typedef struct history history;

typedef enum history_verb {
    HISTORY_INFO,
    HISTORY_LIST,
    HISTORY_SEARCH, /* body: {"query": ...} */
    HISTORY_GET,
    HISTORY_PUT, /* body: the chat's JSON */
    HISTORY_DELETE,
    HISTORY_ADD_FILE, /* file */
    HISTORY_GET_FILE,
    HISTORY_EXPORT,
    HISTORY_IMPORT, /* body: exported JSON */
    HISTORY_SHARE,  /* body: see history_store_share */
    HISTORY_SHARES,
    HISTORY_UNSHARE,     /* id: the token */
    HISTORY_SHARED,      /* token */
    HISTORY_SHARED_FILE, /* token; id: the file's hash */
    HISTORY_WORK         /* work */
} history_verb;

/* What is done with the store, on its thread; appends the reply. */
typedef err_code history_work(history_store *st, void *ctx, bytes *reply, err_detail *detail);

enum { HISTORY_AFTER_MAX = 64, HISTORY_JOB_ID_MAX = 80 };

typedef struct history_job {
    history_verb verb;
    uint64_t ticket; /* returned in the reply */
    uint64_t conn;
    uint64_t scope;
    char id[HISTORY_JOB_ID_MAX]; /* of a chat, or a file's hash */
    char after[HISTORY_AFTER_MAX];
    char token[HASH_ID_CHARS + 1]; /* of a link */
    int limit;
    int64_t since;
    int64_t revision; /* HISTORY_DELETE: the one that the chat must have, or ANY_REVISION */
    bytes body;       /* owned */
    file_handle file; /* owned; fd -1: none */
    history_work *work;
    void *ctx;               /* of work; owned, if there is drop */
    void (*drop)(void *ctx); /* frees it; NULL: nothing does */
    uint64_t answer;         /* returned in the reply: the answer that the work is about; 0: none */
    bool waits;              /* of history_call: ctx is its own, and there is no reply */
} history_job;

typedef struct history_reply {
    uint64_t ticket, conn, scope;
    uint64_t answer; /* of the job */
    int status;      /* HTTP */
    err_code code;   /* what went wrong, and its detail */
    err_detail detail;
    bytes body;       /* JSON */
    file_handle file; /* to be sent instead of the body; owned; fd -1: none */
    bool is_changed;  /* a chat was written or deleted: change */
    bool is_deleted;
    bool is_import; /* many chats were added */
    chat_change change;
} history_reply;

/* Opens the store (its errors) and starts the thread. post takes the reply over. */
MUST_CHECK err_code history_create(history **out, const history_options *opt,
                                   void (*post)(void *ctx, history_reply *r), void *ctx, err_detail *detail);
void history_destroy(history *h); /* NULL allowed */

MUST_CHECK history_job *history_job_create(history_verb verb); /* NULL if out of memory */
void history_job_free(history_job *job);                       /* NULL allowed */
/* Queues the job. ERR_BUSY: too many jobs or bytes are queued; the job stays with the caller. */
MUST_CHECK err_code history_submit(history *h, history_job *job);
void history_reply_free(history_reply *r); /* NULL allowed */
/* Any thread but the loop's: waits until the work is done, behind what was submitted before, and returns
 * what it returned. ERR_BUSY: too many jobs are queued. */
MUST_CHECK err_code history_call(history *h, history_work *work, void *ctx, bytes *out, err_detail *detail);

#endif
