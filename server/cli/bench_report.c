#include "server/cli/bench_report.h"

#include <stdio.h>

/* A column of the table: a value and its share of a limit, or nothing. */
static void print_fraction(double value, const char *unit, double limit)
{
    if (value <= 0.0) {
        printf(" %22s", "");
    } else if (limit > 0.0) {
        printf(" %8.1f %-7s %3.0f %%", value, unit, 100.0 * value / limit);
    } else {
        printf(" %8.1f %-7s      ", value, unit);
    }
}

static void print_table(const bench_report *r)
{
    printf("%s, %.1f M parameters, %s\n", r->model, r->n_params / 1e6, r->compute);
    printf("limits of this run: %.1f GB/s read, %.0f GFLOP/s in float32", r->limits.bandwidth_gbs,
           r->limits.f32_gflops);
    r->limits.q8_gops > 0.0 ? printf(", %.0f GOP/s in 8 bits\n", r->limits.q8_gops) : printf("\n");
    printf("%-12s %8s %8s %8s %10s %10s   (shares: of the memory bandwidth, of the float32 limit)\n", "what",
           "behind", "at once", "tokens", "a second", "ms");
    for (size_t i = 0; i < r->n_rows; i++) {
        const bench_row *row = &r->rows[i];
        printf("%-12s %8d %8d %8d %10.1f %10.2f", row->what, row->context, row->sequences, row->tokens,
               row->per_second, row->ms);
        print_fraction(row->gbs, "GB/s", r->limits.bandwidth_gbs);
        print_fraction(row->gflops, "GFLOP/s", r->limits.f32_gflops);
        row->ratio > 0.0 ? printf("  %.2fx\n", row->ratio) : printf("\n");
    }
    if (r->draft_n > 0) {
        printf("%lld of %lld drafts were right\n", (long long)r->draft_accepted_n, (long long)r->draft_n);
    }
}

static void print_csv(const bench_report *r)
{
    printf("what,context,sequences,tokens,per_second,ms,gbs,gflops,ratio,read_limit_gbs,f32_limit_gflops,q8_"
           "limit_gops\n");
    for (size_t i = 0; i < r->n_rows; i++) {
        const bench_row *row = &r->rows[i];
        printf("%s,%d,%d,%d,%.2f,%.3f,%.2f,%.1f,%.3f,%.2f,%.1f,%.1f\n", row->what, row->context,
               row->sequences, row->tokens, row->per_second, row->ms, row->gbs, row->gflops, row->ratio,
               r->limits.bandwidth_gbs, r->limits.f32_gflops, r->limits.q8_gops);
    }
}

static void print_json(const bench_report *r)
{
    printf("{\"model\":\"%s\",\"compute\":\"%s\",\"prompt_tokens\":%d,\"predicted_tokens\":%d,"
           "\"prompt_per_second\":%.2f,\"predicted_per_second\":%.2f,\"drafted_per_second\":%.2f,"
           "\"draft_ratio\":%.3f,\"draft_n\":%lld,\"draft_accepted_n\":%lld,\"runs\":%lld,",
           r->model, r->compute, r->prompt_n, r->predicted_n, r->prompt, r->predict, r->drafted,
           r->draft_ratio, (long long)r->draft_n, (long long)r->draft_accepted_n, (long long)r->runs);
    printf("\"limits\":{\"bandwidth_gbs\":%.2f,\"f32_gflops\":%.1f,\"q8_gops\":%.1f},\"rows\":[",
           r->limits.bandwidth_gbs, r->limits.f32_gflops, r->limits.q8_gops);
    for (size_t i = 0; i < r->n_rows; i++) {
        const bench_row *row = &r->rows[i];
        printf("%s{\"what\":\"%s\",\"context\":%d,\"sequences\":%d,\"tokens\":%d,\"per_second\":%.2f,\"ms\":%"
               ".3f,"
               "\"gbs\":%.2f,\"gflops\":%.1f,\"ratio\":%.3f}",
               i ? "," : "", row->what, row->context, row->sequences, row->tokens, row->per_second, row->ms,
               row->gbs, row->gflops, row->ratio);
    }
    printf("]}\n");
}

void bench_print(const bench_report *r, bench_format format)
{
    switch (format) {
    case BENCH_CSV:
        print_csv(r);
        break;
    case BENCH_JSON:
        print_json(r);
        break;
    default:
        print_table(r);
    }
}
