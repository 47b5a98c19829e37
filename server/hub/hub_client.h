/* hub_client: several requests to a hub at once, each repeated until it succeeds or cannot: redirects,
 * waiting as the hub asks, going on where a transfer broke. One thread.
 *
 *     hub_client *c = hub_client_create(&place);
 *     hub_task t = {.path = "/api/models/ORG/NAME/revision/main?blobs=true", .into = &text};
 *     err_code err = hub_client_run(c, &t, 1, 1, NULL, NULL, &detail);
 *     hub_client_destroy(c);
 *
 * The key goes to the hub's own address alone, never to where a redirect leads.
 */
#ifndef PARLEY_SERVER_HUB_HUB_CLIENT_H
#define PARLEY_SERVER_HUB_HUB_CLIENT_H

#include "base/bytes.h"
#include "server/http_client.h"
#include "server/hub/hub_blob.h"
#include "server/hub/hub_place.h"

typedef struct hub_client hub_client;

typedef enum hub_phase {
    HUB_WAITING,  /* for its turn */
    HUB_CHECKING, /* what an earlier try left */
    HUB_FETCHING,
    HUB_PAUSED, /* until the next try */
    HUB_DONE
} hub_phase;

/* What is fetched: a document into memory, or a file. The caller zeroes it and sets what is above the
 * line. */
typedef struct hub_task {
    const char *path;                 /* behind the endpoint, from the slash on */
    bytes *into;                      /* a document, initialised with its maximum; or */
    const hub_file *file;             /* a file of a model, */
    const char *repo_dir, *locks_dir; /* and where it goes */
    size_t first_bytes;               /* of a document: no more than so many are wanted; 0: all */
    /* ---- */
    hub_phase phase;
    int64_t at;        /* bytes that are there */
    int64_t most;      /* that ever were when a try ended */
    char wait_why[64]; /* HUB_PAUSED: why */
    double until_ms;   /* HUB_PAUSED: clock_ms */
    hub_client *client;
    http_transfer *transfer;
    hub_blob blob;
    char url[4096], range[48];
    int status, n_redirects, n_tries;
    int64_t retry_after_s;
    size_t n_other; /* bytes of a reply that is not the file */
    bool at_hub, takes_data, is_full, has_redirect, was_wrong;
    char error_code[32];
    err_code err;
    err_detail detail;
} hub_task;

/* NULL if out of memory. `place` is kept by pointer. */
MUST_CHECK hub_client *hub_client_create(const hub_place *place);
void hub_client_destroy(hub_client *c); /* NULL allowed */

/* Runs tasks to their end, at most at_once of them at a time; the first that fails ends all, with its
 * error. on_tick (may be NULL) is called some times a second. */
MUST_CHECK err_code hub_client_run(hub_client *c, hub_task *tasks, size_t n, size_t at_once,
                                   void (*on_tick)(void *ctx), void *ctx, err_detail *detail);

#endif
