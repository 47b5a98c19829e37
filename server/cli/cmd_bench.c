/* bench: prompt and answer speed of the loaded model through the engine's own door, beside what the
 * machine can do at most in the same run. Prompts are repeated plain text; answers run on past stop
 * tokens, so that every run does the same work. A model with a draft head answers each time with
 * and without drafts, one after the other. --full adds long contexts, 1 to 16 answers at once, and
 * an image of one megapixel.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/mailbox.h"
#include "server/cli/command.h"
#include "server/cli/commands.h"

enum { BATCH_MAX = 16, BATCH_CONTEXT = 512, IMAGE_SIDE = 1024 };

typedef struct bench {
    const options *o;
    engine_options eo;
    engine *e;
    mailbox *events; /* gen_event, engine thread -> main thread */
    uint64_t n_requests;
    engine_limits limits; /* raised between the measurements */
} bench;

/* ---- the report ---- */

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

/* A column of the table: a value and its share of a limit, or nothing. */
static void print_fraction(double value, const char *unit, double limit)
{
    if (value <= 0.0) {
        printf(" %22s", "");
    } else {
        printf(" %8.1f %-7s %3.0f %%", value, unit, 100.0 * value / limit);
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
        printf("%s,%d,%d,%d,%.2f,%.3f,%.2f,%.4f,%.3f,%.2f,%.1f,%.1f\n", row->what, row->context,
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
               "\"gbs\":%.2f,\"gflops\":%.4f,\"ratio\":%.3f}",
               i ? "," : "", row->what, row->context, row->sequences, row->tokens, row->per_second, row->ms,
               row->gbs, row->gflops, row->ratio);
    }
    printf("]}\n");
}

static void print_report(const bench_report *r, bench_format format)
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

/* ---- measuring ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* A text of at least n tokens: the words repeat, the weights do not care. */
static err_code make_prompt(bytes *text, const engine *e, int64_t n, err_detail *detail)
{
    static const char WORDS[] = "A red circle and a blue square stand beside a green star. ";
    bytes ids = bytes_empty((size_t)64 << 20);
    err_code err = engine_tokenize(e, &ids, WORDS, sizeof WORDS - 1, false, detail);
    int64_t per_copy = 1;
    for (size_t i = 0; i < ids.len; i++) {
        per_copy += ids.data[i] == ',';
    }
    bytes_deinit(&ids);
    for (int64_t i = 0; err == ERR_OK && i * per_copy < n; i++) {
        bytes_append(text, WORDS, sizeof WORDS - 1);
    }
    return err;
}

static gen_params params_for(int64_t n_predict, bool no_draft)
{
    gen_params p;
    gen_params_init(&p);
    p.temperature = 0.0f;
    p.ignore_eos = true;
    p.max_tokens = (int32_t)n_predict;
    p.no_draft = no_draft;
    return p;
}

static err_code raise_limits(bench *b, err_detail *detail)
{
    return engine_measure_limits(b->e, &b->limits)
               ? ERR_OK
               : err_set(detail, ERR_NOMEM, "there is no memory to measure the machine's limits");
}

/* One run; *t receives its timings. The limits are measured before it. */
static err_code run_once(bench *b, const bytes *text, int64_t n_predict, bool no_draft, gen_timings *t,
                         err_detail *detail)
{
    const gen_params p = params_for(n_predict, no_draft);
    engine_clear_cache(b->e, NULL); /* or the second run would find its prompt computed */
    gen_request *r = NULL;
    err_code err = raise_limits(b, detail);
    err =
        err == ERR_OK ? engine_prepare_text(b->e, &r, bytes_str(text), text->len, false, 0, &p, detail) : err;
    err = command_submit(b->e, r, ++b->n_requests, err, detail);
    return err == ERR_OK ? command_wait(b->events, t, detail) : err;
}

static double median(double *values, int64_t n)
{
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    return values[n / 2];
}

/* ---- rows ---- */

static void add_row(bench_report *r, bench_row row)
{
    assert(r->n_rows < BENCH_ROWS_MAX);
    r->rows[r->n_rows++] = row;
}

/* A prompt of n tokens from the start. */
static void add_prompt(bench_report *r, const engine_info *info, int32_t n, double per_second)
{
    const double flops = info->layer_flops + info->slot_flops * n / 2;
    add_row(r, (bench_row){.what = "prompt",
                           .sequences = 1,
                           .tokens = n,
                           .per_second = per_second,
                           .ms = n * 1e3 / per_second,
                           .gflops = (flops + info->head_flops / n) * per_second * 1e-9});
}

/* n tokens of each of n_sequences answers behind `context` tokens. */
static void add_answer(bench_report *r, const engine_info *info, const char *what, int32_t context,
                       int32_t n_sequences, int32_t n, double per_second)
{
    const double steps = per_second / n_sequences, slots = context + n / 2.0;
    const double state = n_sequences * info->slot_bytes * slots;
    const double flops = info->layer_flops + info->head_flops + info->slot_flops * slots;
    add_row(r, (bench_row){.what = what,
                           .context = context,
                           .sequences = n_sequences,
                           .tokens = n,
                           .per_second = per_second,
                           .ms = 1e3 / steps,
                           .gbs = (info->step_bytes + state) * steps * 1e-9,
                           .gflops = flops * per_second * 1e-9});
}

/* Prompt and answer as the options say, with and without drafts. Run -1 warms up. */
static err_code measure_short(bench *b, bench_report *r, err_detail *detail)
{
    const options *o = b->o;
    const size_t n = (size_t)o->bench_repeat;
    const engine_info *info = engine_get_info(b->e);
    const bool drafts = info->has_mtp && o->mtp;
    double *values = calloc(n * 4, sizeof *values);
    gen_timings t = {0};
    bytes text = bytes_empty((size_t)64 << 20);
    err_code err = values ? make_prompt(&text, b->e, o->bench_prompt, detail)
                          : err_set(detail, ERR_NOMEM, "there is not enough memory to start");
    double *prompt = values, *predict = prompt + n, *drafted = predict + n, *ratio = drafted + n;
    for (int64_t i = -1; err == ERR_OK && i < o->bench_repeat; i++) {
        size_t at = i < 0 ? 0 : (size_t)i;
        err = run_once(b, &text, o->bench_predict, true, &t, detail);
        if (err == ERR_OK) {
            prompt[at] = (double)t.prompt_n * 1e3 / t.prompt_ms;
            predict[at] = (double)(t.predicted_n - 1) * 1e3 / t.predicted_ms;
        }
        if (err == ERR_OK && drafts) {
            err = run_once(b, &text, o->bench_predict, false, &t, detail);
            drafted[at] = (double)(t.predicted_n - 1) * 1e3 / t.predicted_ms;
            ratio[at] = drafted[at] / predict[at];
            r->draft_n += i < 0 ? 0 : t.draft_n;
            r->draft_accepted_n += i < 0 ? 0 : t.draft_accepted_n;
        }
    }
    if (err == ERR_OK) {
        r->prompt_n = t.prompt_n;
        r->predicted_n = t.predicted_n;
        r->prompt = median(prompt, o->bench_repeat);
        r->predict = median(predict, o->bench_repeat);
        r->drafted = median(drafted, o->bench_repeat);
        r->draft_ratio = median(ratio, o->bench_repeat);
        add_prompt(r, info, t.prompt_n, r->prompt);
        add_answer(r, info, "answer", t.prompt_n, 1, t.predicted_n, r->predict);
    }
    if (err == ERR_OK && drafts) {
        add_row(r, (bench_row){.what = "with drafts",
                               .context = t.prompt_n,
                               .sequences = 1,
                               .tokens = t.predicted_n,
                               .per_second = r->drafted,
                               .ms = 1e3 / r->drafted,
                               .ratio = r->draft_ratio});
    }
    free(values);
    bytes_deinit(&text);
    return err;
}

/* Prompts of these lengths and answers behind them, once each. */
static err_code measure_contexts(bench *b, bench_report *r, err_detail *detail)
{
    static const int32_t contexts[] = {1, 2048, 8192, 32768};
    const engine_info *info = engine_get_info(b->e);
    const int64_t room = info->n_ctx - b->o->bench_predict;
    err_code err = ERR_OK;
    for (size_t i = 0; err == ERR_OK && i < ARRAY_LEN(contexts); i++) {
        gen_timings t = {0};
        bytes text = bytes_empty((size_t)64 << 20);
        /* the longest one gives way to its answer; repeated words come out up to a copy longer */
        const int64_t n = contexts[i] == info->n_ctx ? room - 64 : contexts[i];
        if (n + 64 <= room) {
            err = make_prompt(&text, b->e, n, detail);
            err = err == ERR_OK ? run_once(b, &text, b->o->bench_predict, true, &t, detail) : err;
        }
        if (err == ERR_OK && t.prompt_n > 0) {
            if (contexts[i] > 1) {
                add_prompt(r, info, t.prompt_n, t.prompt_n * 1e3 / t.prompt_ms);
            }
            add_answer(r, info, "answer", t.prompt_n, 1, t.predicted_n,
                       (t.predicted_n - 1) * 1e3 / t.predicted_ms);
        }
        bytes_deinit(&text);
    }
    return err;
}

/* n answers at once. The first ones wait for the prompts of the last, so the slowest counts. */
static err_code measure_batch(bench *b, bench_report *r, int32_t n, double *alone, err_detail *detail)
{
    const gen_params p = params_for(b->o->bench_predict, true);
    gen_timings t = {0};
    double slowest = 0.0;
    bytes text = bytes_empty((size_t)64 << 20);
    engine_clear_cache(b->e, NULL);
    err_code err = make_prompt(&text, b->e, 1, detail);
    int32_t n_submitted = 0;
    for (; err == ERR_OK && n_submitted < n; n_submitted++) {
        gen_request *request = NULL;
        err = engine_prepare_text(b->e, &request, bytes_str(&text), text.len, false, 0, &p, detail);
        err = command_submit(b->e, request, ++b->n_requests, err, detail);
    }
    for (int32_t i = 0; err == ERR_OK && i < n; i++) {
        err = command_wait(b->events, &t, detail);
        slowest = t.predicted_ms > slowest ? t.predicted_ms : slowest;
    }
    if (err == ERR_OK) {
        const double per_second = (double)n * (t.predicted_n - 1) * 1e3 / slowest;
        add_answer(r, engine_get_info(b->e), "answers", t.prompt_n, n, t.predicted_n, per_second);
        *alone = n == 1 ? per_second : *alone;
        r->rows[r->n_rows - 1].ratio = per_second / *alone;
    }
    bytes_deinit(&text);
    return err;
}

static void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

/* An image of IMAGE_SIDE x IMAGE_SIDE: BMP, 24 bits, a repeatable pattern. */
static bool make_image(bytes *out)
{
    enum { HEADER = 54, INFO = 40, PIXELS = IMAGE_SIDE * IMAGE_SIDE };
    uint8_t header[HEADER] = {'B', 'M', [26] = 1, [28] = 24};
    put_u32(header + 2, HEADER + 3 * PIXELS);
    put_u32(header + 10, HEADER);
    put_u32(header + 14, INFO);
    put_u32(header + 18, IMAGE_SIDE);
    put_u32(header + 22, IMAGE_SIDE);
    bytes_append(out, header, sizeof header);
    for (uint32_t i = 0; i < PIXELS; i++) {
        const uint8_t pixel[3] = {(uint8_t)(i * 2654435761u >> 24), (uint8_t)i, (uint8_t)(i / IMAGE_SIDE)};
        bytes_append(out, pixel, sizeof pixel);
    }
    return !out->failed;
}

/* Prepares the image with a question, or without the image the question alone. */
static err_code prepare_image(bench *b, gen_request **r, const bytes *file, bool with_image,
                              err_detail *detail)
{
    chat_input *in = chat_input_create(LIMIT_BODY_BYTES);
    if (!in) {
        return err_set(detail, ERR_NOMEM, "there is no memory for an image");
    }
    chat_part parts[] = {
        {.kind = CHAT_TEXT, .text = "What is this?", .text_len = 13},
        {.kind = CHAT_IMAGE, .data = (const uint8_t *)file->data, .data_bytes = file->len, .param = "image"}};
    chat_message message = {.role = CHAT_USER, .parts = parts, .n_parts = with_image ? 2 : 1};
    in->messages = &message;
    in->n_messages = 1;
    in->params = params_for(1, true);
    err_code err = engine_prepare(b->e, r, in, NULL, detail);
    chat_input_destroy(in);
    return err;
}

/* Patches that the model sees of the image: what its tokens, without the two around it, were merged
 * from. */
static err_code count_patches(bench *b, const bytes *file, int32_t *n, err_detail *detail)
{
    const int32_t merge = engine_get_info(b->e)->merge_size;
    int32_t n_tokens[2] = {0, 0};
    err_code err = ERR_OK;
    for (int i = 0; err == ERR_OK && i < 2; i++) {
        gen_request *request = NULL;
        err = prepare_image(b, &request, file, i == 1, detail);
        n_tokens[i] = err == ERR_OK ? gen_request_get_info(request).n_prompt_tokens : 0;
        gen_request_free(request);
    }
    *n = (n_tokens[1] - n_tokens[0] - 2) * merge * merge;
    return err;
}

static err_code measure_image(bench *b, bench_report *r, err_detail *detail)
{
    const engine_info *info = engine_get_info(b->e);
    double ms[3];
    int32_t n = 0;
    bytes file = bytes_empty(LIMIT_BODY_BYTES);
    err_code err = make_image(&file) ? count_patches(b, &file, &n, detail)
                                     : err_set(detail, ERR_NOMEM, "there is no memory for an image");
    for (size_t i = 0; err == ERR_OK && i < ARRAY_LEN(ms); i++) {
        gen_request *request = NULL;
        gen_timings t = {0};
        engine_clear_cache(b->e, NULL);
        err = raise_limits(b, detail);
        err = err == ERR_OK ? prepare_image(b, &request, &file, true, detail) : err;
        err = command_submit(b->e, request, ++b->n_requests, err, detail);
        err = err == ERR_OK ? command_wait(b->events, &t, detail) : err;
        ms[i] = t.vision_ms;
    }
    if (err == ERR_OK) {
        const double time = median(ms, ARRAY_LEN(ms));
        const double flops = n * (info->patch_flops + n * info->patch_pair_flops);
        add_row(r, (bench_row){.what = "image",
                               .sequences = 1,
                               .tokens = n,
                               .per_second = n * 1e3 / time,
                               .ms = time,
                               .gflops = flops / time * 1e-6});
    }
    bytes_deinit(&file);
    return err;
}

static err_code measure_full(bench *b, bench_report *r, err_detail *detail)
{
    double alone = 0.0;
    err_code err = measure_contexts(b, r, detail);
    if (err == ERR_OK && engine_get_info(b->e)->has_vision && engine_get_info(b->e)->has_template) {
        err = measure_image(b, r, detail);
    }
    if (err == ERR_CONTEXT) { /* no room for the image: no row */
        err = ERR_OK;
    }
    if (err == ERR_OK) { /* many short answers want another engine */
        engine_close(b->e);
        b->e = NULL;
        b->eo.n_parallel = BATCH_MAX;
        b->eo.n_ctx = BATCH_CONTEXT;
        err = command_open_engine(&b->e, &b->eo, false, detail);
    }
    for (int32_t n = 1; err == ERR_OK && n <= BATCH_MAX; n *= 2) {
        err = measure_batch(b, r, n, &alone, detail);
    }
    return err;
}

int command_bench(const options *o)
{
    bench b = {.o = o};
    bench_report r = {.runs = o->bench_repeat};
    err_detail detail = {0};
    err_code err = ERR_OK;
    b.events = mailbox_create(BATCH_MAX);
    if (!b.events) {
        err = err_set(&detail, ERR_NOMEM, "there is not enough memory to start");
        goto out;
    }
    if (!command_engine_options(&b.eo, o)) {
        err = err_set(&detail, ERR_INVALID, "bench was not started");
        goto out;
    }
    b.eo.on_event = command_on_event;
    b.eo.on_event_ctx = b.events;
    err = command_open_engine(&b.e, &b.eo, false, &detail);
    err = err == ERR_OK ? measure_short(&b, &r, &detail) : err;
    if (err == ERR_OK && o->bench_full) {
        err = measure_full(&b, &r, &detail);
    }
    if (err == ERR_OK) {
        const engine_info *info = engine_get_info(b.e);
        r.model = info->model_name;
        r.compute = info->compute;
        r.n_params = (double)info->n_params;
        r.limits = b.limits;
        print_report(&r, o->json ? BENCH_JSON : o->csv ? BENCH_CSV : BENCH_TABLE);
    }
out:
    engine_close(b.e);
    mailbox_destroy(b.events, command_drop_event);
    return err == ERR_OK ? 0 : command_fail(err, &detail);
}
