#include "server/service/metrics.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"

/* Seconds. From one fast token to a long image on a slow machine. */
static const double BOUNDS[METRICS_BUCKETS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                               0.25,  0.5,    1.0,   2.5,  5.0,   15.0, 60.0};

static void observe(histogram *h, double seconds)
{
    size_t i = 0;
    while (i < METRICS_BUCKETS && seconds > BOUNDS[i]) {
        i++;
    }
    h->counts[i]++;
    h->sum += seconds;
    h->n++;
}

void metrics_request(metrics *m, const char *endpoint, int status)
{
    for (size_t i = 0; i < m->n_requests; i++) {
        if (m->requests[i].status == status && strcmp(m->requests[i].endpoint, endpoint) == 0) {
            m->requests[i].n++;
            return;
        }
    }
    if (m->n_requests < METRICS_REQUEST_KINDS) {
        m->requests[m->n_requests].endpoint = endpoint;
        m->requests[m->n_requests].status = status;
        m->requests[m->n_requests++].n = 1;
    }
}

void metrics_answer(metrics *m, const metrics_sample *s)
{
    const gen_timings *t = &s->timings;
    m->finished[s->finish]++;
    m->routed[t->route]++;
    m->prompt_tokens += (uint64_t)(t->prompt_n + t->cache_n + t->sparse_n - t->sparse_kept_n);
    m->cached_tokens += (uint64_t)t->cache_n;
    m->generated_tokens += (uint64_t)s->n_generated;
    observe(&m->e2e, s->e2e_ms / 1000.0);
    observe(&m->queue, t->queue_ms / 1000.0);
    observe(&m->prefill, t->prompt_ms / 1000.0);
    observe(&m->decode, t->predicted_ms / 1000.0);
    if (s->ttft_ms > 0.0) {
        observe(&m->ttft, s->ttft_ms / 1000.0);
    }
    if (t->predicted_n > 1) {
        observe(&m->inter_token, t->predicted_ms / 1000.0 / t->predicted_n);
    }
    if (t->route == GEN_ROUTE_MEDIA) {
        observe(&m->vision, t->vision_ms / 1000.0);
        observe(&m->media, t->media_ms / 1000.0);
    }
}

/* ---- text ---- */

static void write_head(bytes *out, const char *name, const char *type, const char *help)
{
    bytes_printf(out, "# HELP parley_%s %s\n# TYPE parley_%s %s\n", name, help, name, type);
}

static void write_histogram(bytes *out, const char *name, const char *help, const histogram *h)
{
    uint64_t sum = 0;
    write_head(out, name, "histogram", help);
    for (size_t i = 0; i < METRICS_BUCKETS; i++) {
        sum += h->counts[i];
        bytes_printf(out, "parley_%s_bucket{le=\"%g\"} %llu\n", name, BOUNDS[i], (unsigned long long)sum);
    }
    bytes_printf(out, "parley_%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)h->n);
    bytes_printf(out, "parley_%s_sum %.9g\nparley_%s_count %llu\n", name, h->sum, name,
                 (unsigned long long)h->n);
}

uint64_t metrics_resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) {
        return 0;
    }
    pages = fscanf(f, "%*s %llu", &pages) == 1 ? pages : 0;
    fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_process(bytes *out)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        double cpu = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
        bytes_printf(out, "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total %.3f\n", cpu);
    }
    bytes_printf(out, "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes %llu\n",
                 (unsigned long long)metrics_resident_bytes());
}

/* A number among others: its name without the prefix (a counter's ends with "_total"). */
typedef struct value_row {
    const char *name, *help;
    double value;
} value_row;

static void write_values(bytes *out, const value_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        write_head(out, rows[i].name, strstr(rows[i].name, "_total") ? "counter" : "gauge", rows[i].help);
        bytes_printf(out, "parley_%s %.17g\n", rows[i].name, rows[i].value);
    }
}

static void write_engine(bytes *out, const engine_status *e)
{
    const value_row rows[] = {
        {"engine_steps_total", "Engine steps.", (double)e->n_steps},
        {"vision_encodes_total", "Images and videos encoded.", (double)e->n_vision_encodes},
        {"vision_cache_hits_total", "Images and videos that needed no encoding.", (double)e->n_vision_hits},
        {"vision_cache_entries", "Encoded images and videos kept.", (double)e->n_vision_entries},
        {"vision_cache_bytes", "Memory of the encoded images and videos kept.",
         (double)e->vision_cache_bytes},
        {"prefix_cache_queries_total", "Prompts looked up in the prefix cache.", (double)e->n_cache_queries},
        {"prefix_cache_hits_total", "Prompts of which it held a beginning.", (double)e->n_cache_hits},
        {"prefix_cache_entries", "States in the prefix cache.", (double)e->n_cache_entries},
        {"prefix_cache_bytes", "Memory of the states in the prefix cache.", (double)e->cache_bytes},
        {"disk_cache_entries", "Prompts in the prefix cache on disk.", (double)e->n_disk_entries},
        {"disk_cache_bytes", "Bytes of the prefix cache on disk.", (double)e->disk_bytes},
        {"disk_cache_hits_total", "Prompts of which a beginning was read from disk.", (double)e->n_disk_hits},
        {"disk_cache_tokens_total", "Prompt tokens read from disk.", (double)e->n_disk_tokens},
        {"disk_cache_saves_total", "Prompts written to disk.", (double)e->n_disk_saves},
        {"disk_cache_errors_total", "Files of the cache that could not be written or read.",
         (double)e->n_disk_errors},
        {"draft_tokens_total", "Tokens guessed by the draft head.", (double)e->n_drafted},
        {"draft_tokens_accepted_total", "Guessed tokens that were right.", (double)e->n_draft_accepted},
        {"lookup_tokens_total", "Tokens guessed from the text.", (double)e->n_copied},
        {"lookup_tokens_accepted_total", "Tokens guessed from the text that were right.",
         (double)e->n_copied_accepted},
        {"draft_parked_steps_total", "Decode steps in which drafting did not pay.",
         (double)e->n_parked_steps},
    };
    write_values(out, rows, ARRAY_LEN(rows));
}

static void write_counters(bytes *out, const metrics *m)
{
    static const char *const FINISH[] = {"stop", "length", "cancelled", "error", "content_filter"};
    static const char *const ROUTE[] = {"text", "media"};
    write_head(out, "requests_total", "counter",
               "HTTP requests and WebSocket responses by endpoint and status.");
    for (size_t i = 0; i < m->n_requests; i++) {
        bytes_printf(out, "parley_requests_total{endpoint=\"%s\",status=\"%d\"} %llu\n",
                     m->requests[i].endpoint, m->requests[i].status, (unsigned long long)m->requests[i].n);
    }
    write_head(out, "request_success_total", "counter", "Answers by how they ended.");
    for (size_t i = 0; i < ARRAY_LEN(FINISH); i++) {
        bytes_printf(out, "parley_request_success_total{finished_reason=\"%s\"} %llu\n", FINISH[i],
                     (unsigned long long)m->finished[i]);
    }
    write_head(out, "requests_routed_total", "counter", "Answers by the way they took.");
    for (size_t i = 0; i < 2; i++) {
        bytes_printf(out, "parley_requests_routed_total{route=\"%s\"} %llu\n", ROUTE[i],
                     (unsigned long long)m->routed[i]);
    }
    const value_row rows[] = {
        {"prompt_tokens_total", "Prompt tokens, cached ones included.", (double)m->prompt_tokens},
        {"prompt_tokens_cached_total", "Prompt tokens taken from the prefix cache.",
         (double)m->cached_tokens},
        {"generation_tokens_total", "Generated tokens.", (double)m->generated_tokens},
        {"ws_resumes_total", "Responses followed again after a lost socket.", (double)m->ws_resumes},
        {"upload_bytes_total", "Bytes of uploads that arrived.", (double)m->upload_bytes},
    };
    write_values(out, rows, ARRAY_LEN(rows));
}

void metrics_write(bytes *out, const metrics *m, const metrics_gauges *g)
{
    const value_row rows[] = {
        {"requests_running", "Sequences in the batch.", g->engine ? g->engine->n_running : 0},
        {"requests_waiting", "Requests in the engine's queue.", g->engine ? g->engine->n_waiting : 0},
        {"models_resident", "Models in memory.", g->n_resident},
        {"connections", "Open connections.", g->connections},
        {"ws_connections", "Open WebSockets.", g->sockets},
        {"files", "Uploaded files that are kept.", (double)g->n_files},
        {"files_bytes", "Disk that uploads take or have set aside.", (double)g->stored_bytes},
        {"answers_open", "Answers that are not finished.", g->answers},
        {"memory_available_bytes", "Memory that the system and the process's control group have left.",
         (double)memory_available()},
        {"request_memory_bytes", "Memory that requests have reserved.", (double)g->memory.used},
        {"kept_memory_bytes", "Memory of answers and conversations that are kept; requests may have it.",
         (double)g->kept_bytes},
        {"request_memory_peak_bytes", "The most that both have had.", (double)g->memory.peak},
        {"request_memory_limit_bytes", "Memory that there is for requests.", (double)g->memory.limit},
        {"request_memory_waits_total", "Requests that waited for memory.", (double)g->memory.n_waited},
        {"request_memory_refusals_total", "Requests that got none in time.", (double)g->memory.n_refused},
    };
    write_head(out, "build_info", "gauge", "Version and instruction sets.");
    bytes_json(out, "parley_build_info{version=\"" PARLEY_VERSION "\",simd=%s} 1\n",
               g->compute ? g->compute : "");
    write_values(out, rows, ARRAY_LEN(rows));
    if (g->engine) {
        write_engine(out, g->engine);
    }
    write_counters(out, m);
    write_histogram(out, "time_to_first_token_seconds", "From the request to its first token.", &m->ttft);
    write_histogram(out, "inter_token_latency_seconds", "Mean time between tokens of an answer.",
                    &m->inter_token);
    write_histogram(out, "e2e_request_latency_seconds", "From the request to its end.", &m->e2e);
    write_histogram(out, "request_queue_time_seconds", "Time in the engine's queue.", &m->queue);
    write_histogram(out, "request_prefill_time_seconds", "Time to compute the prompt.", &m->prefill);
    write_histogram(out, "request_decode_time_seconds", "Time to generate the answer.", &m->decode);
    write_histogram(out, "vision_encode_seconds", "Time in the vision encoder.", &m->vision);
    write_histogram(out, "media_decode_seconds", "Time to decode images and videos.", &m->media);
    write_process(out);
}
