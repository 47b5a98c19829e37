/* metrics: counters and histograms of the server, written in the Prometheus text format 0.0.4. Loop
 * thread.
 *
 *     metrics_request(&m, "chat_completions", 200);
 *     metrics_answer(&m, &sample);
 *     metrics_write(&out, &m, &gauges);
 */
#ifndef PARLEY_SERVER_SERVICE_METRICS_H
#define PARLEY_SERVER_SERVICE_METRICS_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/ledger.h"
#include "engine/engine.h"

enum { METRICS_BUCKETS = 14, METRICS_REQUEST_KINDS = 192 };

typedef struct histogram {
    uint64_t counts[METRICS_BUCKETS + 1]; /* the last one is +Inf */
    double sum;
    uint64_t n;
} histogram;

typedef struct metrics {
    struct {
        const char *endpoint; /* constant */
        int status;
        uint64_t n;
    } requests[METRICS_REQUEST_KINDS];
    size_t n_requests;
    uint64_t finished[5]; /* by gen_finish */
    uint64_t routed[2];   /* by gen_route */
    uint64_t prompt_tokens, cached_tokens, generated_tokens;
    uint64_t ws_resumes, upload_bytes;
    histogram ttft, inter_token, e2e, queue, prefill, decode, vision, media;
} metrics;

/* What is true right now. */
typedef struct metrics_gauges {
    int connections, sockets, answers;
    int n_resident;                 /* models in memory */
    uint64_t n_files, stored_bytes; /* uploaded files, and what is set aside for more */
    const engine_status *engine;    /* NULL while loading */
    const char *compute;            /* or NULL */
    ledger_status memory;           /* what requests have reserved */
    size_t kept_bytes;              /* what kept answers and conversations have beside */
} metrics_gauges;

/* One finished answer. */
typedef struct metrics_sample {
    gen_finish finish;
    gen_timings timings;
    int32_t n_generated;
    double e2e_ms, ttft_ms; /* ttft_ms 0: no token came */
} metrics_sample;

void metrics_request(metrics *m, const char *endpoint, int status); /* counts a request */
void metrics_answer(metrics *m, const metrics_sample *s);           /* counts a finished answer */
/* Memory of this process that is in RAM, in bytes; 0 if unknown. */
uint64_t metrics_resident_bytes(void);
void metrics_write(bytes *out, const metrics *m, const metrics_gauges *g); /* appends all of it as text */

#endif
