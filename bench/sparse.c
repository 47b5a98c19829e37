/* sparse: what sparse prefill gains, and what it changes, through the engine's own door.
 *
 *     build/bench_sparse -m DIR --draft DIR [--tokens N] [--keep X] [-r ROUNDS] [-n TOKENS] [-t THREADS] [--quantize q8]
 *     build/bench_sparse -m DIR --draft DIR --prompts FILE [--keep X] [--chunk N]
 *
 * First form: a prompt of random tokens, whole and sparse in turns; medians of the time to the first
 * token, of tokens a second behind it, and of their ratios, also of the program's own processor time,
 * which other programs do not lengthen. Second form: one question a line, with
 * the checkpoint's chat template, greedily; how many answers stay what they are. No --draft: judged
 * by the question's words.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/mailbox.h"
#include "bench/stats.h"
#include "engine/engine.h"

enum { ROUNDS_MAX = 20, ANSWER_MAX = 1024, N_SPARE = 1280 };

typedef struct settings {
    const char *dir, *draft, *prompts, *quantize;
    int tokens, rounds, n_answer, chunk;
    size_t n_threads;
    double keep;
} settings;

typedef struct answer {
    int32_t ids[ANSWER_MAX], n;
    gen_timings timings;
} answer;

static mailbox *events;

static void on_event(void *ctx, gen_event *ev)
{
    (void)ctx;
    if (!mailbox_push(events, ev)) {
        gen_event_free(ev);
    }
}

static gen_params params_of(const settings *set, bool sparse)
{
    gen_params p;
    gen_params_init(&p);
    p.temperature = 0.0f;
    p.max_tokens = set->n_answer;
    p.no_cache = true;
    p.spec_prefill = sparse;
    p.spec_keep = (float)set->keep;
    return p;
}

/* Runs a request, which is the engine's from now on. */
static err_code run(engine *e, gen_request *r, answer *a, err_detail *detail)
{
    static uint64_t id;
    *a = (answer){0};
    err_code err = engine_submit(e, r, ++id, detail);
    if (err != ERR_OK) {
        gen_request_free(r);
        return err;
    }
    for (bool done = false; !done;) {
        void *message = NULL;
        if (!mailbox_pop(events, &message)) {
            return err_set(detail, ERR_INTERNAL, "the engine stopped");
        }
        gen_event *ev = message;
        for (int32_t i = 0; ev->type == GEN_TOKENS && i < ev->n_tokens && a->n < ANSWER_MAX; i++) {
            a->ids[a->n++] = ev->tokens[i];
        }
        done = ev->type == GEN_DONE;
        a->timings = ev->timings;
        err = ev->finish == GEN_FINISH_ERROR ? err_set(detail, ev->error, "%s", ev->message) : ERR_OK;
        gen_event_free(ev);
    }
    return err;
}

/* ---- time ---- */

static double rate(const gen_timings *t)
{
    return t->predicted_ms > 0 ? (t->predicted_n - 1) * 1e3 / t->predicted_ms : 0.0;
}

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static err_code measure_time(engine *e, const settings *set, err_detail *detail)
{
    static answer a;
    double first[2][ROUNDS_MAX], rates[2][ROUNDS_MAX], gain[ROUNDS_MAX], decode[ROUNDS_MAX];
    double spent[2], work[ROUNDS_MAX];
    int32_t *ids = calloc((size_t)set->tokens, sizeof *ids);
    err_code err = ids ? ERR_OK : err_set(detail, ERR_NOMEM, "no memory for a prompt");
    uint32_t state = 1;
    for (int i = 0; ids && i < set->tokens; i++) {
        state = state * 1664525u + 1013904223u;
        ids[i] = (int32_t)(256 + (state >> 16) % 1024);
    }
    for (int i = 0; err == ERR_OK && i < set->rounds; i++) {
        for (int sparse = 0; err == ERR_OK && sparse < 2; sparse++) {
            gen_params p = params_of(set, sparse);
            gen_request *r = NULL;
            p.ignore_eos = true;
            err = engine_prepare_tokens(e, &r, ids, (size_t)set->tokens, 0, &p, detail);
            spent[sparse] = -processor_s();
            err = err == ERR_OK ? run(e, r, &a, detail) : err;
            spent[sparse] += processor_s();
            first[sparse][i] = a.timings.prompt_ms;
            rates[sparse][i] = rate(&a.timings);
            if (err == ERR_OK) {
                printf("%-8s first token after %9.1f ms, then %6.2f tokens/s, %d of %d tokens read, %.1f s "
                       "of the "
                       "processor\n",
                       sparse ? "sparse" : "whole", first[sparse][i], rates[sparse][i], a.timings.prompt_n,
                       set->tokens, spent[sparse]);
                fflush(stdout);
            }
        }
        gain[i] = first[0][i] / first[1][i];
        work[i] = spent[0] / spent[1];
        decode[i] = rates[1][i] / rates[0][i];
    }
    free(ids);
    if (err == ERR_OK) {
        const size_t n = (size_t)set->rounds;
        printf("median: first token %.2fx as soon, decoding %.3fx; %.2fx less processor time in all\n",
               stats_median(gain, n), stats_median(decode, n), stats_median(work, n));
    }
    return err;
}

/* ---- answers ---- */

static err_code ask(engine *e, const char *question, const gen_params *p, answer *a, err_detail *detail)
{
    chat_input *in = chat_input_create((size_t)4 << 20);
    chat_part *part = in ? arena_calloc(in->arena, 1, sizeof *part) : NULL;
    chat_message *message = in ? arena_calloc(in->arena, 1, sizeof *message) : NULL;
    gen_request *r = NULL;
    err_code err = ERR_OK;
    if (!part || !message) {
        err = err_set(detail, ERR_NOMEM, "no memory for a chat");
    } else {
        *part = (chat_part){.kind = CHAT_TEXT, .text = question, .text_len = strlen(question)};
        *message = (chat_message){.role = CHAT_USER, .parts = part, .n_parts = 1, .is_string = true};
        in->messages = message;
        in->n_messages = 1;
        in->params = *p;
        err = engine_prepare(e, &r, in, &(prepare_hooks){0}, detail);
    }
    chat_input_destroy(in);
    return err == ERR_OK ? run(e, r, a, detail) : err;
}

static err_code measure_answers(engine *e, const settings *set, err_detail *detail)
{
    static answer whole, sparse;
    bytes file;
    bytes_init(&file, (size_t)1 << 20);
    err_code err = file_read(&file, set->prompts, detail);
    char *text = err == ERR_OK ? strdup(bytes_str(&file)) : NULL, *rest = NULL;
    int n = 0, n_same = 0;
    long n_tokens = 0, n_read = 0;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line && err == ERR_OK;
         line = strtok_r(NULL, "\n", &rest)) {
        const gen_params dense = params_of(set, false), thin = params_of(set, true);
        err = ask(e, line, &dense, &whole, detail);
        err = err == ERR_OK ? ask(e, line, &thin, &sparse, detail) : err;
        n++;
        n_same +=
            whole.n == sparse.n && memcmp(whole.ids, sparse.ids, (size_t)whole.n * sizeof *whole.ids) == 0;
        n_tokens += whole.timings.prompt_n;
        n_read += sparse.timings.prompt_n;
    }
    free(text);
    bytes_deinit(&file);
    if (err == ERR_OK && n > 0) {
        printf("%d of %d answers unchanged; %ld of %ld prompt tokens read\n", n_same, n, n_read, n_tokens);
    }
    return err;
}

static bool parse_arguments(settings *set, int argc, char **argv)
{
    *set = (settings){.dir = "assets/seedling", .tokens = 16384, .rounds = 3, .n_answer = 64, .keep = 0.2};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *flag = argv[i], *value = argv[i + 1];
        if (strcmp(flag, "-m") == 0) {
            set->dir = value;
        } else if (strcmp(flag, "--draft") == 0) {
            set->draft = value;
        } else if (strcmp(flag, "--prompts") == 0) {
            set->prompts = value;
        } else if (strcmp(flag, "--quantize") == 0) {
            set->quantize = value;
        } else if (strcmp(flag, "--tokens") == 0) {
            set->tokens = (int)strtol(value, NULL, 10);
        } else if (strcmp(flag, "--keep") == 0) {
            set->keep = strtod(value, NULL);
        } else if (strcmp(flag, "--chunk") == 0) {
            set->chunk = (int)strtol(value, NULL, 10);
        } else if (strcmp(flag, "-r") == 0) {
            set->rounds = (int)strtol(value, NULL, 10);
        } else if (strcmp(flag, "-n") == 0) {
            set->n_answer = (int)strtol(value, NULL, 10);
        } else if (strcmp(flag, "-t") == 0) {
            set->n_threads = strtoul(value, NULL, 10);
        } else {
            return false;
        }
    }
    return argc % 2 == 1 && set->chunk >= 0 && set->tokens > 0 && set->tokens <= 1 << 20 &&
           set->rounds >= 1 && set->rounds <= ROUNDS_MAX && set->n_answer >= 2 && set->n_answer <= ANSWER_MAX;
}

int main(int argc, char **argv)
{
    settings set;
    err_detail detail = {0};
    if (!parse_arguments(&set, argc, argv)) {
        fprintf(
            stderr,
            "usage: bench_sparse [-m DIR] [--draft DIR] [--prompts FILE] [--chunk N] [--tokens N] [--keep X] "
            "[-r ROUNDS] [-n TOKENS] [-t THREADS] [--quantize q8]\n");
        return 2;
    }
    engine_options opt = {.model_dir = set.dir,
                          .n_ctx = set.prompts ? 0 : set.tokens + N_SPARE,
                          .n_parallel = 1,
                          .n_threads = set.n_threads,
                          .cpu_mask = ~0u,
                          .on_event = on_event,
                          .sparse = {.draft_dir = set.draft, .chunk = set.chunk}};
    gen_params_init(&opt.defaults);
    engine *e = NULL;
    events = mailbox_create(4 * ANSWER_MAX + 65536);
    err_code err = events && (!set.quantize || engine_parse_quantize(set.quantize, &opt.layer_bits))
                       ? engine_open(&e, &opt, &detail)
                       : err_set(&detail, ERR_INVALID, "--quantize takes none, q8 or q4");
    if (err == ERR_OK) {
        err = (set.prompts ? measure_answers : measure_time)(e, &set, &detail);
    }
    engine_close(e);
    mailbox_destroy(events, NULL);
    if (err != ERR_OK) {
        fprintf(stderr, "bench_sparse: %s\n", detail.text);
        return 1;
    }
    return 0;
}
