/* hub_jobs: fetching, removing and inspecting models for a server that runs, which itself may neither
 * connect nor write to the cache: a process that was made before the server gave that up does it, one of its
 * own for each job, and tells how far it is. It takes the name of a model and one of the actions, nothing
 * else. Threads: one at a time, which never waits.
 *
 *     hub_jobs *j; err_code err = hub_jobs_create(&j, &hooks, &detail);   // before the first thread
 *     err = hub_jobs_start(j, HUB_PULL, "ORG/NAME:Q4_K_M", &detail);
 *     hub_jobs_look(j, on_done, ctx);         // some times a second
 *     hub_jobs_write(j, &out);                // [{"model":"ORG/NAME:Q4_K_M","action":"pull","state":"running",...}]
 *     hub_jobs_destroy(j);
 */
#ifndef PARLEY_SERVER_HUB_HUB_JOBS_H
#define PARLEY_SERVER_HUB_HUB_JOBS_H

#include "base/bytes.h"
#include "server/hub/hub_cache.h"
#include "server/hub/hub_place.h"

enum { HUB_JOBS = 8 };

typedef enum hub_action { HUB_PULL, HUB_REMOVE, HUB_INSPECT } hub_action;

typedef struct hub_jobs hub_jobs;

typedef struct hub_jobs_hooks {
    /* As in hub_pull_hooks. */
    err_code (*check_config)(const char *text, size_t n, err_detail *detail);
    err_code (*check_gguf)(const void *data, size_t n, uint64_t n_file, bool is_first, bool *is_whole,
                           err_detail *detail);
    /* Appends what a model holds, as a table; mmproj: its vision tower, or NULL. */
    err_code (*inspect)(bytes *out, const char *path, const char *mmproj, bool as_json, err_detail *detail);
} hub_jobs_hooks;

/* Forks; hooks is copied. ERR_INVALID for a place that is wrong (hub_place_find), ERR_IO. */
MUST_CHECK err_code hub_jobs_create(hub_jobs **out, const hub_jobs_hooks *hooks, err_detail *detail);
/* Ends it, and with it all jobs: what was fetched stays, and is gone on with the next time. NULL allowed. */
void hub_jobs_destroy(hub_jobs *j);

/* Where its models are, and the hub. */
const hub_place *hub_jobs_place(const hub_jobs *j);

/* Begins a job. ERR_INVALID for a name that is none, ERR_BUSY if one of this model runs, ERR_LIMIT with
 * HUB_JOBS that run, ERR_IO. */
MUST_CHECK err_code hub_jobs_start(hub_jobs *j, hub_action action, const char *model, err_detail *detail);
/* Ends the job of a model, or forgets one that has ended; false if there is none. */
bool hub_jobs_cancel(hub_jobs *j, const char *model);

/* Takes what the jobs have said; on_done is called for each that has succeeded since. */
void hub_jobs_look(hub_jobs *j, void (*on_done)(void *ctx, hub_action action, const char *model), void *ctx);

/* Appends them as a list of JSON objects, the last that was begun first. Beside model, action and state
 * ("running", "done", "failed"): of a pull that runs n_files, n_done, bytes, total, rate (bytes a second) and
 * the files under way; message of one that failed; freed (bytes) of a removal; text of an inspection. */
void hub_jobs_write(const hub_jobs *j, bytes *out);

#endif
