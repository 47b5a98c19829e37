/* bench: prompt and answer speed of the loaded model, one sequence, through the engine's own door. The prompt is
 * repeated plain text; the answer runs on past stop tokens, so that every run does the same work. A model with a draft
 * head answers each time with and without drafts, one after the other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mailbox.h"
#include "server/commands.h"

typedef struct bench {
    engine *e;
    mailbox *events; /* gen_event, engine thread -> main thread */
    uint64_t n_requests;
} bench;

static void on_event(void *ctx, gen_event *ev)
{
    bench *b = ctx;
    if (ev->type != GEN_DONE || !mailbox_push(b->events, ev)) {
        gen_event_free(ev);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* A text of at least n tokens: the words repeat, the weights do not care. */
static err_code make_prompt(bytes *text, const engine *e, int64_t n, err_detail *detail)
{
    static const char WORDS[] = "A red circle and a blue square stand beside a green star. ";
    bytes ids;
    bytes_init(&ids, (size_t)64 << 20);
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

/* One run; *t receives its timings. */
static err_code run_once(bench *b, const bytes *text, int64_t n_predict, bool no_draft, gen_timings *t,
                         err_detail *detail)
{
    gen_params p;
    gen_params_init(&p);
    p.temperature = 0.0f;
    p.ignore_eos = true;
    p.max_tokens = (int32_t)n_predict;
    p.no_draft = no_draft;
    engine_clear_cache(b->e); /* or the second run would find its prompt computed */
    gen_request *r = NULL;
    err_code err = engine_prepare_text(b->e, &r, bytes_str(text), text->len, false, 0, &p, detail);
    if (err == ERR_OK) {
        err = engine_submit(b->e, r, ++b->n_requests, detail);
    }
    if (err != ERR_OK) {
        gen_request_free(r);
        return err;
    }
    void *message = NULL;
    if (!mailbox_pop(b->events, &message)) {
        return err_set(detail, ERR_INTERNAL, "the engine stopped before the run was over");
    }
    gen_event *done = message;
    *t = done->timings;
    if (done->finish == GEN_FINISH_ERROR) {
        err = err_set(detail, done->error, "%s", done->message);
    }
    gen_event_free(done);
    return err;
}

static double median(double *values, int64_t n)
{
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    return values[n / 2];
}

/* Medians of the runs; drafted and ratio are 0 without a draft head. */
typedef struct speeds {
    double prompt, predict, drafted, ratio;
    int64_t draft_n, draft_accepted_n;
} speeds;

static void print_result(const options *o, const engine_info *info, const gen_timings *t, const speeds *v)
{
    double gbs = v->predict * (double)info->weight_bytes / 1e9;
    if (o->json) {
        printf("{\"model\":\"%s\",\"compute\":\"%s\",\"prompt_tokens\":%d,\"predicted_tokens\":%d,"
               "\"prompt_per_second\":%.2f,\"predicted_per_second\":%.2f,\"drafted_per_second\":%.2f,"
               "\"draft_ratio\":%.3f,\"draft_n\":%lld,\"draft_accepted_n\":%lld,\"runs\":%lld}\n",
               info->model_name, info->compute, t->prompt_n, t->predicted_n, v->prompt, v->predict,
               v->drafted, v->ratio, (long long)v->draft_n, (long long)v->draft_accepted_n,
               (long long)o->bench_repeat);
        return;
    }
    printf("%s, %.1f M parameters, %s\n", info->model_name, (double)info->n_params / 1e6, info->compute);
    printf("%-14s %8s %14s\n", "what", "tokens", "tokens/s");
    printf("%-14s %8d %14.1f\n", "prompt", t->prompt_n, v->prompt);
    printf("%-14s %8d %14.1f   (at most %.1f GB/s of weights)\n", "answer", t->predicted_n, v->predict, gbs);
    if (v->drafted > 0.0) {
        printf("%-14s %8d %14.1f   (%.2fx; %lld of %lld drafts right)\n", "with drafts", t->predicted_n,
               v->drafted, v->ratio, (long long)v->draft_accepted_n, (long long)v->draft_n);
    }
}

/* Run -1 warms up. */
static err_code run_all(bench *b, const options *o, const bytes *text, gen_timings *t, speeds *v,
                        err_detail *detail)
{
    const size_t n = (size_t)o->bench_repeat;
    const bool drafts = engine_get_info(b->e)->has_mtp && o->mtp;
    double *values = calloc(n * 4, sizeof *values);
    if (!values) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory to start");
    }
    double *prompt = values, *predict = prompt + n, *drafted = predict + n, *ratio = drafted + n;
    err_code err = ERR_OK;
    for (int64_t i = -1; err == ERR_OK && i < o->bench_repeat; i++) {
        size_t at = i < 0 ? 0 : (size_t)i;
        err = run_once(b, text, o->bench_predict, true, t, detail);
        if (err == ERR_OK) {
            prompt[at] = (double)t->prompt_n * 1e3 / t->prompt_ms;
            predict[at] = (double)(t->predicted_n - 1) * 1e3 / t->predicted_ms;
        }
        if (err == ERR_OK && drafts) {
            err = run_once(b, text, o->bench_predict, false, t, detail);
            drafted[at] = (double)(t->predicted_n - 1) * 1e3 / t->predicted_ms;
            ratio[at] = drafted[at] / predict[at];
            v->draft_n += i < 0 ? 0 : t->draft_n;
            v->draft_accepted_n += i < 0 ? 0 : t->draft_accepted_n;
        }
    }
    if (err == ERR_OK) {
        v->prompt = median(prompt, o->bench_repeat);
        v->predict = median(predict, o->bench_repeat);
        v->drafted = median(drafted, o->bench_repeat);
        v->ratio = median(ratio, o->bench_repeat);
    }
    free(values);
    return err;
}

int command_bench(const options *o)
{
    bench b = {0};
    bytes text;
    engine_options eo;
    err_detail detail = {0};
    err_code err = ERR_OK;
    bytes_init(&text, (size_t)64 << 20);
    b.events = mailbox_create(4);
    if (!b.events) {
        err = err_set(&detail, ERR_NOMEM, "there is not enough memory to start");
        goto out;
    }
    if (!command_engine_options(&eo, o)) {
        err = err_set(&detail, ERR_INVALID, "bench was not started");
        goto out;
    }
    eo.on_event = on_event;
    eo.on_event_ctx = &b;
    err = engine_open(&b.e, &eo, &detail);
    if (err == ERR_OK) {
        err = make_prompt(&text, b.e, o->bench_prompt, &detail);
    }
    gen_timings t = {0};
    speeds v = {0};
    if (err == ERR_OK) {
        err = run_all(&b, o, &text, &t, &v, &detail);
    }
    if (err == ERR_OK) {
        print_result(o, engine_get_info(b.e), &t, &v);
    }
out:
    engine_close(b.e);
    mailbox_destroy(b.events, NULL);
    bytes_deinit(&text);
    return err == ERR_OK ? 0 : command_fail(err, &detail);
}
