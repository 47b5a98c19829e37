/* Sparse prefill against a plain implementation of what it is: token by token, in double where that
 * matters; through the engine and through build/check_sparse_prefill, which must also notice what is
 * wrong. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/log.h"
#include "model/decoder.h"
#include "model/seq_layout.h"
#include "tests/engine/answers.h"
#include "tests/model/random_families.h"
#include "tests/model/tool.h"

enum { N = 203, CHUNK = 16, LOOK = 8, WINDOW = 13, LAST = 48, GREEDY = 16, V = 1888, WIDTH = 64, LAYERS = 4 };
#define KEEP 0.3

typedef struct reference {
    int32_t ids[N], lookahead[LOOK], selected[N], n_selected, greedy[GREEDY], n_last;
    float importance[N], scores[N], logits[LAST * V];
} reference;

/* A model, read token by token. */
typedef struct reader {
    compute *c;
    model *m;
    kv_pool *pool;
    seq_state *seq;
    decoder_scratch *sc;
} reader;

static reader reader_open(const char *dir)
{
    reader r = {0};
    err_detail d = {0};
    CHECK_OK(compute_create(&r.c, &(compute_options){.n_threads = 1, .cpu_mask = test_cpu_mask()}, &d), d);
    CHECK_OK(model_open(&r.m, dir, &(model_open_options){.weights_only = true}, &d), d);
    CHECK_OK(kv_pool_create(&r.pool, model_get_config(r.m), KV_F32, false, 8, 8, r.c, &d), d);
    CHECK_OK(seq_state_create(&r.seq, model_get_config(r.m), r.pool, 512, r.c, &d), d);
    CHECK_OK(decoder_scratch_create(&r.sc, r.m, r.c, 1, 1, &d), d);
    if (check_failures) {
        exit(1);
    }
    return r;
}

static void reader_close(reader *r)
{
    decoder_scratch_destroy(r->sc);
    seq_state_destroy(r->seq);
    kv_pool_destroy(r->pool);
    model_close(r->m);
    compute_destroy(r->c);
}

/* The logits behind one token at a position. */
static const float *read_token(reader *r, int32_t id, int32_t p)
{
    err_detail d = {0};
    const int32_t zero = 0;
    const batch_run run = {.seq = r->seq, .n_rows = 1, .exact_rows = true};
    const batch b = {.n_rows = 1,
                     .tokens = &id,
                     .positions = &(position){p, p, p},
                     .runs = &run,
                     .n_runs = 1,
                     .logit_rows = &zero,
                     .n_logit_rows = 1};
    CHECK_OK(decoder_forward(r->m, r->c, &b, r->sc, &d), d);
    return decoder_logits(r->sc, 0);
}

static int32_t best_of(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < V; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

static float queries[LAYERS][LOOK][WIDTH];
static int32_t looking; /* the token whose queries are taken */

static void take_queries(void *ctx, size_t layer, const float *q, size_t n_rows, size_t row_stride,
                         size_t head_stride)
{
    const model_config *cfg = ctx;
    (void)row_stride;
    CHECK_INT(n_rows, 1);
    for (int32_t h = 0; h < cfg->n_heads; h++) {
        memcpy(queries[layer][looking] + h * cfg->full.head_dim, q + (size_t)h * head_stride,
               (size_t)cfg->full.head_dim * sizeof *q);
    }
}

static const float *key_of(const seq_state *seq, const model_config *cfg, size_t layer, int32_t head,
                           int32_t slot)
{
    const kv_pages kv = seq_kv(seq, layer);
    const float *page = kv.pages[slot / SEQ_PAGE_TOKENS];
    const int32_t group = cfg->n_heads / cfg->full.n_kv_heads;
    return page + ((2 * (head / group)) * SEQ_PAGE_TOKENS + slot % SEQ_PAGE_TOKENS) * cfg->full.head_dim;
}

/* peaks = max(peaks, the window's mean of the softmax of one query over the prompt). */
static void look(double *peaks, const reader *r, size_t layer, int32_t head, int32_t row)
{
    const model_config *cfg = model_get_config(r->m);
    double p[N], sum = 0;
    for (int32_t i = 0; i < N; i++) {
        const float *k = key_of(r->seq, cfg, layer, head, i),
                    *q = queries[layer][row] + head * cfg->full.head_dim;
        double dot = 0;
        for (int32_t x = 0; x < cfg->full.head_dim; x++) {
            dot += (double)q[x] * (double)k[x];
        }
        p[i] = exp(dot / sqrt(cfg->full.head_dim));
        sum += p[i];
    }
    for (int32_t i = 0; i < N; i++) {
        double mean = 0;
        for (int32_t k = i - WINDOW / 2; k <= i + WINDOW / 2; k++) {
            mean += k >= 0 && k < N ? p[k] / sum / WINDOW : 0;
        }
        peaks[i] = mean > peaks[i] ? mean : peaks[i];
    }
}

static void judge(reference *ref, const char *dir)
{
    reader r = reader_open(dir);
    const model_config *cfg = model_get_config(r.m);
    const float *logits = NULL;
    double importance[N] = {0};
    CHECK(cfg->n_heads * cfg->full.head_dim <= WIDTH && cfg->n_attention_layers <= LAYERS);
    for (int32_t i = 0; i < N; i++) {
        logits = read_token(&r, ref->ids[i], i);
    }
    decoder_set_query_tap(r.sc, take_queries, (void *)(uintptr_t)cfg);
    for (looking = 0; looking < LOOK; looking++) {
        ref->lookahead[looking] = best_of(logits);
        logits = read_token(&r, ref->lookahead[looking], N + looking);
    }
    for (int32_t row = 0; row < LOOK; row++) {
        double peaks[N] = {0};
        for (int32_t layer = 0; layer < cfg->n_attention_layers; layer++) {
            for (int32_t head = 0; head < cfg->n_heads; head++) {
                look(peaks, &r, (size_t)layer, head, row);
            }
        }
        for (int32_t i = 0; i < N; i++) {
            importance[i] += peaks[i] / LOOK;
        }
    }
    for (int32_t i = 0; i < N; i++) {
        ref->importance[i] = (float)importance[i];
    }
    reader_close(&r);
}

/* The best chunk that is left, again and again. */
static void choose(reference *ref)
{
    const int32_t n_chunks = (N + CHUNK - 1) / CHUNK;
    bool taken[N] = {false};
    int32_t n_taken = 0, n_tokens = 0;
    for (int32_t c = 0; c < n_chunks; c++) {
        const int32_t end = (c + 1) * CHUNK < N ? (c + 1) * CHUNK : N;
        double sum = 0;
        for (int32_t i = c * CHUNK; i < end; i++) {
            sum += (double)ref->importance[i];
        }
        ref->scores[c] = (float)(sum / (end - c * CHUNK));
    }
    while (n_taken < ceil(n_chunks * KEEP) || n_tokens < ceil(N * KEEP)) {
        int32_t best = -1;
        for (int32_t c = 0; c < n_chunks; c++) {
            best = !taken[c] && (best < 0 || ref->scores[c] > ref->scores[best]) ? c : best;
        }
        taken[best] = true;
        n_taken++;
        n_tokens += best + 1 < n_chunks ? CHUNK : N - best * CHUNK;
    }
    for (int32_t i = 0; i < N; i++) {
        if (taken[i / CHUNK]) {
            ref->selected[ref->n_selected++] = i;
        }
    }
}

static void answer_sparsely(reference *ref, const char *dir)
{
    if (ref->n_selected <= 0) {
        check_fail(__FILE__, __LINE__, "no token is read");
        exit(1);
    }
    reader r = reader_open(dir);
    const float *logits = NULL;
    ref->n_last = ref->n_selected < LAST ? ref->n_selected : LAST;
    for (int32_t i = 0; i < ref->n_selected; i++) {
        const int32_t p = ref->selected[i], row = i - (ref->n_selected - ref->n_last);
        logits = read_token(&r, ref->ids[p], p);
        if (row >= 0) {
            memcpy(ref->logits + row * V, logits, V * sizeof *logits);
        }
    }
    for (int32_t i = 0; i < GREEDY; i++) {
        ref->greedy[i] = best_of(logits);
        logits = read_token(&r, ref->greedy[i], N + i);
    }
    reader_close(&r);
}

/* ---- the engine ---- */

static void check_engine(const reference *ref, const char *target, const char *draft)
{
    engine *e = answers_open(&(engine_options){.model_dir = target,
                                               .n_ctx = 512,
                                               .n_parallel = 1,
                                               .n_threads = 2,
                                               .exact = true,
                                               .sparse = {.draft_dir = draft, .chunk = CHUNK}});
    err_detail d = {0};
    for (int way = 0; way < 2; way++) { /* with drafts and without */
        gen_params p;
        gen_request *r = NULL;
        answer a = {0};
        gen_params_init(&p);
        p.max_tokens = GREEDY;
        p.ignore_eos = true;
        p.no_draft = way == 1;
        p.spec_prefill = 1;
        p.spec_keep = (float)KEEP;
        CHECK_OK(engine_prepare_tokens(e, &r, ref->ids, N, 0, &p, &d), d);
        answers_submit(e, r, 1 + (uint64_t)way);
        answers_collect(&a, 1 + (uint64_t)way, 1);
        CHECK_INT(a.timings.sparse_n, N);
        CHECK_INT(a.timings.sparse_kept_n, ref->n_selected);
        CHECK_INT(a.n, GREEDY);
        for (int32_t i = 0; i < GREEDY && ref->greedy[i] < 1826; i++) { /* what the tokenizer can spell */
            CHECK_INT(a.ids[i], ref->greedy[i]);
        }
    }
    engine_close(e);
}

/* ---- the tool ---- */

typedef struct entry {
    const char *name, *type;
    const void *data;
    size_t bytes, dims[2];
} entry;

static void write_case(const reference *ref, const char *path)
{
    int64_t ids[N], lookahead[LOOK], selected[N], greedy[GREEDY], chunk = CHUNK;
    const float keep = (float)KEEP;
    for (int32_t i = 0; i < N; i++) {
        ids[i] = ref->ids[i];
        selected[i] = ref->selected[i];
    }
    for (int32_t i = 0; i < GREEDY; i++) {
        greedy[i] = ref->greedy[i];
        lookahead[i % LOOK] = ref->lookahead[i % LOOK];
    }
    const size_t n_chunks = (N + CHUNK - 1) / CHUNK, n_kept = (size_t)ref->n_selected,
                 n_last = (size_t)ref->n_last;
    const entry entries[] = {
        {"input_ids", "I64", ids, sizeof ids, {N, 0}},
        {"lookahead", "I64", lookahead, sizeof lookahead, {LOOK, 0}},
        {"selected", "I64", selected, n_kept * 8, {n_kept, 0}},
        {"greedy", "I64", greedy, sizeof greedy, {GREEDY, 0}},
        {"chunk", "I64", &chunk, 8, {1, 0}},
        {"keep", "F32", &keep, 4, {1, 0}},
        {"importance", "F32", ref->importance, sizeof ref->importance, {N, 0}},
        {"chunk_scores", "F32", ref->scores, n_chunks * 4, {n_chunks, 0}},
        {"logits_last", "F32", ref->logits, n_last * V * 4, {n_last, V}},
    };
    bytes head;
    size_t at = 0;
    bytes_init(&head, 1 << 16);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const entry *e = &entries[i];
        bytes_printf(&head, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%zu", i ? "," : "{", e->name, e->type,
                     e->dims[0]);
        if (e->dims[1]) {
            bytes_printf(&head, ",%zu", e->dims[1]);
        }
        bytes_printf(&head, "],\"data_offsets\":[%zu,%zu]}", at, at + e->bytes);
        at += e->bytes;
    }
    bytes_append_char(&head, '}');
    while (head.len % 8 != 0) {
        bytes_append_char(&head, ' ');
    }
    const uint64_t n = head.len;
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(&n, sizeof n, 1, f) == 1 && fwrite(bytes_str(&head), 1, head.len, f) == head.len);
    for (size_t i = 0; f && i < sizeof entries / sizeof *entries; i++) {
        CHECK(fwrite(entries[i].data, 1, entries[i].bytes, f) == entries[i].bytes);
    }
    CHECK(f && fclose(f) == 0);
    bytes_deinit(&head);
}

static int run_tool(const char *dir)
{
    return tool_run_3("check_sparse_prefill", "--exact-rope", dir, "native");
}

/* What agrees passes, and each thing that does not is noticed. */
static void check_tool(reference *ref, const char *target, const char *draft)
{
    char dir[FOLDER_NAME], path[256], inside[128];
    folder_make(dir);
    CHECK_INT(run_tool(dir), 2); /* no cases, no models */
    snprintf(inside, sizeof inside, "%s/cases", dir);
    CHECK(mkdir(inside, 0700) == 0);
    CHECK_INT(run_tool(dir), 2);
    snprintf(path, sizeof path, "%s/one.safetensors", inside);
    write_case(ref, path);
    CHECK_INT(run_tool(dir), 2);
    snprintf(inside, sizeof inside, "%s/target", dir);
    CHECK(symlink(target, inside) == 0);
    snprintf(inside, sizeof inside, "%s/draft", dir);
    CHECK(symlink(draft, inside) == 0);
    CHECK_INT(run_tool(dir), 0);
    CHECK_INT(tool_run_3("check_sparse_prefill", "--exact-rope", dir, "generic"), 0);
    int32_t *const numbers[] = {&ref->lookahead[5], &ref->selected[3], &ref->greedy[2]};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        (*numbers[i])++;
        write_case(ref, path);
        CHECK_INT(run_tool(dir), 1);
        (*numbers[i])--;
    }
    float *const floats[] = {&ref->importance[N - 1], &ref->scores[0], &ref->logits[V + 7]};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        const float was = *floats[i];
        *floats[i] += i < 2 ? 1e-5f : 0.1f;
        write_case(ref, path);
        CHECK_INT(run_tool(dir), 1);
        *floats[i] = was;
    }
    CHECK(truncate(path, 100) == 0);
    CHECK_INT(run_tool(dir), 2);
}

static void make_model(char *dir, const char *family)
{
    bytes text;
    err_detail d = {0};
    size_t i = 0;
    while (strcmp(RANDOM_FAMILIES[i].name, family) != 0) {
        i++;
    }
    random_checkpoint_make(dir, RANDOM_FAMILIES[i].config, RANDOM_FAMILIES[i].forms);
    bytes_init(&text, 1 << 24);
    CHECK_OK(file_read(&text, check_data("tiny/tokenizer.json"), &d), d);
    random_text(dir, "tokenizer.json", bytes_str(&text));
    bytes_deinit(&text);
}

int main(void)
{
    static reference ref;
    char target[FOLDER_NAME], hybrid[FOLDER_NAME], attention[FOLDER_NAME], shared[4096];
    log_set_level(LOG_OFF);
    make_model(target, "qwen3_5");
    make_model(hybrid, "qwen3_5_moe");
    make_model(attention, "qwen3");
    answers_begin();
    for (int i = 0; i < 2; i++) {
        const char *draft = i == 0 ? hybrid : attention;
        ref = (reference){0};
        for (int32_t k = 0; k < N; k++) {
            ref.ids[k] = (int32_t)((uint32_t)(k * k * 31 + 7 * k + i) % 1700);
        }
        judge(&ref, draft);
        choose(&ref);
        answer_sparsely(&ref, target);
        check_engine(&ref, target, draft);
        check_tool(&ref, target, draft);
    }
    answers_end();
    if (check_shared_dir()) {
        snprintf(shared, sizeof shared, "%s/reference/sparse_prefill", check_shared_dir());
        struct stat st;
        if (stat(shared, &st) == 0) {
            CHECK_INT(tool_run("check_sparse_prefill", shared, "native"), 0);
        }
    }
    CHECK_DONE();
}
