/* bench_report: the results of `parley bench` as a table, CSV or JSON. One thread.
 *
 *     bench_report r = {0};  r.rows[r.n_rows++] = (bench_row){.what = "prompt"};
 *     bench_print(&r, BENCH_TABLE);
 */
#ifndef PARLEY_SERVER_CLI_BENCH_REPORT_H
#define PARLEY_SERVER_CLI_BENCH_REPORT_H

#include "engine/engine.h"

enum { BENCH_ROWS_MAX = 32 };

/* Zero: does not apply. */
typedef struct bench_row {
    const char *what;
    int32_t context;   /* tokens of context */
    int32_t sequences; /* at once */
    int32_t tokens;    /* of each; of an image: patches */
    double per_second; /* tokens (patches) of all together */
    double ms;         /* a decode step; else the whole */
    double gbs;        /* bytes that a step must read, over its time */
    double gflops;     /* multiply-adds needed, over the time */
    double ratio;      /* to the same without drafts; to one answer alone */
} bench_row;

typedef struct bench_report {
    const char *model, *compute;
    double n_params;
    engine_limits limits;
    bench_row rows[BENCH_ROWS_MAX];
    size_t n_rows;
    /* medians of the first rows again, under their established names */
    int32_t prompt_n, predicted_n;
    double prompt, predict, drafted, draft_ratio;
    int64_t draft_n, draft_accepted_n, runs;
} bench_report;

typedef enum bench_format { BENCH_TABLE, BENCH_CSV, BENCH_JSON } bench_format;

/* Prints the report to standard output. */
void bench_print(const bench_report *r, bench_format format);

#endif
