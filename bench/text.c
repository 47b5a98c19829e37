/* text: how fast the text path is on a model, through the engine's own door, beside the limits
 * measured in the same run.
 *
 *     build/bench_text [-m DIR] [-t THREADS] [-r ROUNDS] [-n TOKENS] [--prompts FILE] [--history TOKENS] [--turn CASE]
 *                      [--template FILE] [--only PART] [--no-mtp] [--json]
 *
 * What is compared runs alternately in one process and medians of ratios are printed, because
 * machines are noisy. --prompts: one question a line, asked with the chat template and answered
 * greedily to the end, with and without drafts; the answers must be the same tokens. --history 0
 * leaves the second turns out (bench/turns.h; --turn: one of them). --template: not the checkpoint's.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/file.h"
#include "base/mailbox.h"
#include "bench/agree.h"
#include "bench/blocks.h"
#include "bench/copy.h"
#include "bench/stats.h"
#include "bench/turns.h"
#include "bench/words.h"
#include "engine/engine.h"

enum { AT_ONCE_MAX = 8, ROUNDS_MAX = 100, TOKENS_MAX = 1024, PROMPTS_MAX = 1000, N_CTX = 16384 };

typedef struct settings {
    const char *dir, *prompts, *only, *template;
    int n_threads, rounds, n_tokens, history; /* n_threads 0: as many as the machine has */
    int turn;                                 /* -1: all of turn_cases */
    bool json, no_mtp;
} settings;

/* One request as its events tell it. Written by the engine thread until its last event is in the
 * mailbox. */
typedef struct answer {
    int32_t tokens[TOKENS_MAX];
    int64_t at_ns[TOKENS_MAX];  /* when each token came */
    float logprobs[TOKENS_MAX]; /* of the likeliest token, if they were asked for */
    float gaps[TOKENS_MAX];     /* from there to the second likeliest */
    int32_t n;
    gen_timings timings;
    err_code error;
} answer;

typedef struct bench {
    settings set;
    engine *e;
    mailbox *done;               /* answer, engine thread -> main thread */
    answer answers[AT_ONCE_MAX]; /* of request id: id % AT_ONCE_MAX */
    uint64_t next_id;
    atomic_int n_said; /* tokens of all answers */
    bool first_row;    /* JSON: no comma yet */
} bench;

static void on_event(void *ctx, gen_event *ev)
{
    bench *b = ctx;
    answer *a = &b->answers[ev->request_id % AT_ONCE_MAX];
    if (ev->type == GEN_TOKENS && a->n < TOKENS_MAX) {
        if (ev->logprobs && ev->logprobs->n_top >= 2) {
            a->logprobs[a->n] = ev->logprobs->top_logprobs[0];
            a->gaps[a->n] = ev->logprobs->top_logprobs[0] - ev->logprobs->top_logprobs[1];
        }
        a->at_ns[a->n] = clock_ns();
        a->tokens[a->n++] = ev->tokens[0];
        atomic_fetch_add(&b->n_said, 1);
    } else if (ev->type == GEN_DONE) {
        a->timings = ev->timings;
        a->error = ev->finish == GEN_FINISH_ERROR ? ev->error : ERR_OK;
        if (!mailbox_push(b->done, a)) {
            fprintf(stderr, "bench_text: an answer was lost\n"); /* the mailbox has room for every answer */
        }
    }
    gen_event_free(ev);
}

/* ---- the report ---- */

/* ratio 0: none. */
static void report(bench *b, const char *what, double value, const char *unit, double ratio, const char *note)
{
    if (b->set.json) {
        printf("%s\n{\"what\":\"%s\",\"value\":%.4g,\"unit\":\"%s\",\"ratio\":%.4g,\"note\":\"%s\"}",
               b->first_row ? "" : ",", what, value, unit, ratio, note);
        b->first_row = false;
        return;
    }
    printf("%-44s %10.1f %-9s", what, value, unit);
    ratio > 0 ? printf(" %7.3fx", ratio) : printf(" %8s", "");
    printf("  %s\n", note);
    fflush(stdout);
}

/* ---- requests ---- */

static err_code submit(bench *b, gen_request *r, answer **slot, err_detail *detail)
{
    const uint64_t id = ++b->next_id;
    *slot = &b->answers[id % AT_ONCE_MAX];
    memset(*slot, 0, sizeof **slot);
    err_code err = engine_submit(b->e, r, id, detail);
    if (err != ERR_OK) {
        gen_request_free(r);
    }
    return err;
}

static err_code wait_for(bench *b, int n, err_detail *detail)
{
    err_code err = ERR_OK;
    for (int i = 0; i < n; i++) {
        void *message = NULL;
        if (!mailbox_pop(b->done, &message)) {
            return err_set(detail, ERR_INTERNAL, "the engine stopped");
        }
        const answer *a = message;
        if (a->error != ERR_OK) {
            err = err_set(detail, a->error, "a request failed");
        }
    }
    return err;
}

static gen_params greedy(int32_t max_tokens, bool no_draft, bool ignore_eos)
{
    gen_params p;
    gen_params_init(&p);
    p.temperature = 0.0f;
    p.max_tokens = max_tokens;
    p.no_draft = no_draft;
    p.ignore_eos = ignore_eos;
    return p;
}

/* Runs n answers of n_tokens each to prompts of n_prompt tokens, side by side. */
static err_code run_words(bench *b, int n, int n_prompt, int n_tokens, bool no_draft, answer **slots,
                          err_detail *detail)
{
    const gen_params p = greedy(n_tokens, no_draft, true);
    int n_sent = 0;
    err_code err = ERR_OK;
    engine_clear_cache(b->e, NULL);
    for (int i = 0; err == ERR_OK && i < n; i++) {
        bytes text;
        bytes_init(&text, (size_t)16 << 20);
        gen_request *r = NULL;
        err = words_make(b->e, &text, n_prompt, i, detail);
        if (err == ERR_OK) {
            err = engine_prepare_text(b->e, &r, bytes_str(&text), text.len, false, 0, &p, detail);
        }
        if (err == ERR_OK) {
            err = submit(b, r, &slots[i], detail);
            n_sent += err == ERR_OK;
        }
        bytes_deinit(&text);
    }
    err_code waited = wait_for(b, n_sent, detail);
    return err == ERR_OK ? waited : err;
}

static double decode_rate(const gen_timings *t)
{
    return t->predicted_ms > 0 ? (t->predicted_n - 1) * 1e3 / t->predicted_ms : 0.0;
}

/* ---- prompts and one answer ---- */

static err_code measure_prefill(bench *b, int n_prompt, err_detail *detail)
{
    double rates[ROUNDS_MAX];
    answer *a = NULL;
    err_code err = ERR_OK;
    int rounds = b->set.rounds > 5 ? 5 : b->set.rounds, n = 0;
    for (int i = -1; err == ERR_OK && i < rounds; i++) {
        err = run_words(b, 1, n_prompt, 1, true, &a, detail);
        if (err == ERR_OK && i >= 0) {
            n = a->timings.prompt_n;
            rates[i] = n * 1e3 / a->timings.prompt_ms;
        }
    }
    if (err == ERR_OK) {
        char what[64];
        snprintf(what, sizeof what, "prompt of %d tokens", n);
        report(b, what, stats_median(rates, (size_t)rounds), "tokens/s", 0, "");
    }
    return err;
}

static err_code measure_decode(bench *b, err_detail *detail)
{
    double plain[ROUNDS_MAX], drafts[ROUNDS_MAX], ratio[ROUNDS_MAX];
    int64_t drafted = 0, accepted = 0;
    engine_status before, after;
    err_code err = ERR_OK;
    answer *a = NULL;
    const bool has_mtp = engine_get_info(b->e)->has_mtp;
    engine_get_status(b->e, &before);
    for (int i = 0; err == ERR_OK && i < b->set.rounds; i++) {
        err = run_words(b, 1, 64, b->set.n_tokens, true, &a, detail);
        plain[i] = err == ERR_OK ? decode_rate(&a->timings) : 0;
        if (err == ERR_OK && has_mtp) {
            err = run_words(b, 1, 64, b->set.n_tokens, false, &a, detail);
            drafts[i] = decode_rate(&a->timings);
            ratio[i] = drafts[i] / plain[i];
            drafted += a->timings.draft_n;
            accepted += a->timings.draft_accepted_n;
        }
    }
    if (err != ERR_OK) {
        return err;
    }
    engine_get_status(b->e, &after);
    report(b, "one answer, plain", stats_median(plain, (size_t)b->set.rounds), "tokens/s", 0, "");
    if (has_mtp) {
        char note[128];
        snprintf(note, sizeof note, "%lld of %lld drafts right, %lld parked steps", (long long)accepted,
                 (long long)drafted, (long long)(after.n_parked_steps - before.n_parked_steps));
        report(b, "one answer, drafts allowed", stats_median(drafts, (size_t)b->set.rounds), "tokens/s",
               stats_median(ratio, (size_t)b->set.rounds), note);
    }
    return ERR_OK;
}

/* ---- several at once ---- */

/* Tokens a second of all together, while all of them run. */
static double combined_rate(answer *const *slots, int n)
{
    int64_t from = 0, to = INT64_MAX;
    int64_t tokens = 0;
    for (int i = 0; i < n; i++) {
        from = slots[i]->at_ns[0] > from ? slots[i]->at_ns[0] : from;
        to = slots[i]->at_ns[slots[i]->n - 1] < to ? slots[i]->at_ns[slots[i]->n - 1] : to;
    }
    for (int i = 0; i < n; i++) {
        for (int32_t k = 0; k < slots[i]->n; k++) {
            tokens += slots[i]->at_ns[k] > from && slots[i]->at_ns[k] <= to;
        }
    }
    return to > from ? (double)tokens * 1e9 / (double)(to - from) : 0.0;
}

static err_code measure_at_once(bench *b, bool no_draft, err_detail *detail)
{
    static const int counts[] = {1, 4, 8};
    double rates[3][ROUNDS_MAX], ratio[3][ROUNDS_MAX];
    answer *slots[AT_ONCE_MAX];
    const int rounds = b->set.rounds > 5 ? 5 : b->set.rounds;
    err_code err = ERR_OK;
    for (int i = 0; err == ERR_OK && i < rounds; i++) {
        for (int k = 0; err == ERR_OK && k < 3; k++) {
            err = run_words(b, counts[k], 32, b->set.n_tokens, no_draft, slots, detail);
            if (err == ERR_OK) {
                rates[k][i] = combined_rate(slots, counts[k]);
                ratio[k][i] = rates[k][i] / rates[0][i];
            }
        }
    }
    for (int k = 1; err == ERR_OK && k < 3; k++) {
        char what[64];
        snprintf(what, sizeof what, "%d answers at once, %s", counts[k],
                 no_draft ? "plain" : "drafts allowed");
        report(b, what, stats_median(rates[k], (size_t)rounds), "tokens/s",
               stats_median(ratio[k], (size_t)rounds), "against one");
    }
    return err;
}

/* ---- questions with natural answers ---- */

static chat_message say(chat_input *in, chat_role role, const char *text)
{
    chat_part *part = arena_calloc(in->arena, 1, sizeof *part);
    if (part) {
        *part = (chat_part){.kind = CHAT_TEXT, .text = text, .text_len = strlen(text)};
    }
    return (chat_message){.role = role, .parts = part, .n_parts = part ? 1 : 0, .is_string = true};
}

/* Asks one question, without thinking; form: of the answer, or NULL. */
static err_code ask(bench *b, const char *text, const grammar_spec *form, const gen_params *p, answer **a,
                    err_detail *detail)
{
    chat_input *in = chat_input_create((size_t)4 << 20);
    if (!in) {
        return err_set(detail, ERR_NOMEM, "no memory for a chat");
    }
    static const char KWARGS[] = "{\"enable_thinking\":false}";
    gen_request *r = NULL;
    in->messages = arena_calloc(in->arena, 1, sizeof *in->messages);
    err_code err = in->messages ? json_parse(&in->keep, KWARGS, sizeof KWARGS - 1, 8, detail)
                                : err_set(detail, ERR_NOMEM, "no memory for a chat");
    if (err == ERR_OK) {
        in->template_kwargs = json_root(in->keep);
        in->params = *p;
        in->form = form;
        in->messages[in->n_messages++] = say(in, CHAT_USER, text);
        err = engine_prepare(b->e, &r, in, &(prepare_hooks){0}, detail);
    }
    chat_input_destroy(in);
    if (err == ERR_OK) {
        err = submit(b, r, a, detail);
    }
    return err == ERR_OK ? wait_for(b, 1, detail) : err;
}

enum { LONG_ANSWER = 24, QUESTION_ROUNDS = 9 };

/* What one question took, round by round. */
typedef struct question {
    const char *text;
    int32_t n_tokens;
    double plain_ms[QUESTION_ROUNDS], head_ms[QUESTION_ROUNDS], draft_ms[QUESTION_ROUNDS];
} question;

typedef struct totals {
    int64_t drafted, accepted, copied, copied_accepted;
    int asked, same;
} totals;

static err_code ask_all_ways(bench *b, question *q, int round, totals *sum, err_detail *detail)
{
    static int32_t tokens[TOKENS_MAX];
    answer *a = NULL;
    gen_params p = greedy(256, true, false);
    engine_clear_cache(b->e, NULL);
    err_code err = ask(b, q->text, NULL, &p, &a, detail);
    if (err != ERR_OK) {
        return err;
    }
    const int32_t n = a->n;
    memcpy(tokens, a->tokens, sizeof tokens);
    q->plain_ms[round] = a->timings.predicted_ms;
    p.no_draft = false;
    p.no_lookup = true;
    engine_clear_cache(b->e, NULL);
    err = ask(b, q->text, NULL, &p, &a, detail);
    if (err != ERR_OK) {
        return err;
    }
    q->head_ms[round] = a->timings.predicted_ms;
    p.no_lookup = false;
    engine_clear_cache(b->e, NULL);
    err = ask(b, q->text, NULL, &p, &a, detail);
    if (err == ERR_OK) {
        q->draft_ms[round] = a->timings.predicted_ms;
        q->n_tokens = a->timings.predicted_n - 1; /* the first one is the prompt's */
        sum->asked++;
        sum->drafted += a->timings.draft_n;
        sum->accepted += a->timings.draft_accepted_n;
        sum->copied += a->timings.lookup_n;
        sum->copied_accepted += a->timings.lookup_accepted_n;
        sum->same += a->n == n && memcmp(a->tokens, tokens, (size_t)n * sizeof *tokens) == 0;
    }
    return err;
}

/* Each question counts with its median over the rounds: what else the machine did meanwhile drops
 * out. */
static void report_questions(bench *b, question *list, int n, int rounds, bool long_ones, const char *note)
{
    double plain_ms = 0, head_ms = 0, draft_ms = 0;
    int64_t tokens = 0;
    int n_counted = 0;
    for (int i = 0; i < n; i++) {
        if (!long_ones || list[i].n_tokens >= LONG_ANSWER) {
            plain_ms += stats_median(list[i].plain_ms, (size_t)rounds);
            head_ms += stats_median(list[i].head_ms, (size_t)rounds);
            draft_ms += stats_median(list[i].draft_ms, (size_t)rounds);
            tokens += list[i].n_tokens;
            n_counted++;
        }
    }
    if (n_counted > 0 && draft_ms > 0) {
        char what[64];
        snprintf(what, sizeof what, "%d questions%s, plain", n_counted,
                 long_ones ? " answered at length" : "");
        report(b, what, (double)tokens * 1e3 / plain_ms, "tokens/s", 0, "");
        snprintf(what, sizeof what, "%d questions%s, drafts", n_counted,
                 long_ones ? " answered at length" : "");
        report(b, what, (double)tokens * 1e3 / draft_ms, "tokens/s", plain_ms / draft_ms, note);
        snprintf(what, sizeof what, "the same, of the draft head's alone");
        report(b, what, (double)tokens * 1e3 / head_ms, "tokens/s", head_ms / draft_ms, "");
    }
}

static err_code measure_questions(bench *b, err_detail *detail)
{
    bytes file;
    bytes_init(&file, (size_t)1 << 20);
    question *list = calloc(PROMPTS_MAX, sizeof *list);
    totals sum = {0};
    engine_status before, after;
    const int rounds = b->set.rounds > QUESTION_ROUNDS ? QUESTION_ROUNDS : b->set.rounds;
    engine_get_status(b->e, &before);
    err_code err = list ? file_read(&file, b->set.prompts, detail)
                        : err_set(detail, ERR_NOMEM, "no memory for the questions");
    char *text = err == ERR_OK ? strdup(bytes_str(&file)) : NULL, *rest = NULL;
    int n = 0;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line && n < PROMPTS_MAX;
         line = strtok_r(NULL, "\n", &rest)) {
        list[n++].text = line;
    }
    for (int i = 0; err == ERR_OK && i < rounds; i++) {
        for (int k = 0; err == ERR_OK && k < n; k++) {
            err = ask_all_ways(b, &list[k], i, &sum, detail);
        }
    }
    engine_get_status(b->e, &after);
    if (err == ERR_OK) {
        const uint64_t first = after.n_first_drafts - before.n_first_drafts;
        const uint64_t first_right = after.n_first_accepted - before.n_first_accepted;
        char note[224];
        snprintf(note, sizeof note,
                 "%d of %d answers the same; right: %.1f %% of first drafts, %.1f %% of all %lld, "
                 "%lld of %lld from the text",
                 sum.same, sum.asked, first ? 100.0 * (double)first_right / (double)first : 0.0,
                 sum.drafted ? 100.0 * (double)sum.accepted / (double)sum.drafted : 0.0,
                 (long long)sum.drafted, (long long)sum.copied_accepted, (long long)sum.copied);
        report_questions(b, list, n, rounds, false, note);
        report_questions(b, list, n, rounds, true, "");
    }
    free(list);
    free(text);
    bytes_deinit(&file);
    return err;
}

/* ---- a text said again ---- */

/* An answer whose form is that of the prompt with small edits, plain and with drafts. */
static err_code measure_copy(bench *b, err_detail *detail)
{
    enum { BYTES = 4000 };
    double plain[ROUNDS_MAX], ratio[ROUNDS_MAX];
    const int rounds = b->set.rounds > 5 ? 5 : b->set.rounds;
    bytes text, said;
    bytes_init(&text, (size_t)1 << 20);
    bytes_init(&said, (size_t)1 << 20);
    answer *a = NULL;
    err_code err = file_read(&text, b->set.prompts, detail);
    bytes_append(&text, "", 1);
    if (err == ERR_OK && text.len > BYTES) {
        text.data[BYTES] = 0;
    }
    copy_edit(&said, bytes_str(&text));
    const grammar_spec form = {.kind = SPEC_TEXT, .text = bytes_str(&said)};
    gen_params p = greedy(TOKENS_MAX, true, false);
    err = err == ERR_OK ? copy_favour(b->e, &p, &said, detail) : err;
    for (int i = 0; err == ERR_OK && i < rounds; i++) {
        p.no_draft = true;
        err = ask(b, bytes_str(&text), &form, &p, &a, detail);
        plain[i] = err == ERR_OK ? decode_rate(&a->timings) : 0;
        p.no_draft = false;
        err = err == ERR_OK ? ask(b, bytes_str(&text), &form, &p, &a, detail) : err;
        ratio[i] = err == ERR_OK ? decode_rate(&a->timings) / plain[i] : 0;
    }
    if (err == ERR_OK && a) {
        char what[64], note[96];
        snprintf(what, sizeof what, "%d tokens of the prompt, edited: plain", a->n);
        report(b, what, stats_median(plain, (size_t)rounds), "tokens/s", 0, "");
        snprintf(note, sizeof note, "%d of %d from the text right, %d of %d of the head",
                 a->timings.lookup_accepted_n, a->timings.lookup_n, a->timings.draft_accepted_n,
                 a->timings.draft_n);
        report(b, "the same, drafts", decode_rate(&a->timings), "tokens/s",
               stats_median(ratio, (size_t)rounds), note);
    }
    bytes_deinit(&text);
    bytes_deinit(&said);
    return err;
}

/* ---- the second turn of a long conversation ---- */

static err_code ask_turn(bench *b, const turn_case *c, int turn, const char *words, answer *said,
                         err_detail *detail)
{
    chat_input *in = NULL;
    gen_request *r = NULL;
    answer *a = NULL;
    err_code err = turns_chat(&in, c, turn, words, detail);
    if (err == ERR_OK) {
        in->params = greedy(8, false, true); /* without drafts nothing would be left for the draft head */
        in->params.n_top_logprobs = 2;
        err = engine_prepare(b->e, &r, in, &(prepare_hooks){0}, detail);
    }
    chat_input_destroy(in);
    if (err == ERR_OK) {
        err = submit(b, r, &a, detail);
    }
    if (err == ERR_OK) {
        err = wait_for(b, 1, detail);
        *said = *a;
    }
    return err;
}

/* Time to the first token of a second turn: with what the first turn left in the cache, and from
 * nothing. */
static err_code measure_turn(bench *b, const turn_case *c, const char *words, err_detail *detail)
{
    double cold[ROUNDS_MAX], warm[ROUNDS_MAX], ratio[ROUNDS_MAX];
    const int rounds = b->set.rounds > 3 ? 3 : b->set.rounds;
    static answer with, without;
    char agree[192] = "";
    int32_t earlier = 1; /* tokens of the first turn */
    err_code err = ERR_OK;
    for (int i = 0; err == ERR_OK && i < rounds; i++) {
        engine_clear_cache(b->e, NULL);
        err = ask_turn(b, c, 0, words, &with, detail);
        if (err == ERR_OK) {
            earlier = with.timings.prompt_n;
            err = ask_turn(b, c, 1, words, &with, detail);
        }
        engine_clear_cache(b->e, NULL);
        if (err == ERR_OK) {
            err = ask_turn(b, c, 1, words, &without, detail);
        }
        if (err == ERR_OK) {
            warm[i] = with.timings.ttft_ms;
            cold[i] = without.timings.ttft_ms;
            ratio[i] = cold[i] / warm[i];
            if (strncmp(agree, "ANOTHER", 7) != 0) { /* the worst round counts */
                agree_write(agree, sizeof agree, &(agree_side){with.tokens, with.logprobs, with.gaps, with.n},
                            &(agree_side){without.tokens, without.logprobs, without.gaps, without.n});
            }
        }
    }
    if (err == ERR_OK) {
        char note[384];
        snprintf(note, sizeof note,
                 "%.0f ms from nothing; %d tokens cached (%.1f %% of the earlier prompt), %d computed; %s",
                 stats_median(cold, (size_t)rounds), with.timings.cache_n,
                 100.0 * with.timings.cache_n / earlier, with.timings.prompt_n, agree);
        report(b, c->name, stats_median(warm, (size_t)rounds), "ms", stats_median(ratio, (size_t)rounds),
               note);
    }
    return err;
}

static err_code measure_second_turns(bench *b, err_detail *detail)
{
    bytes words;
    bytes_init(&words, (size_t)16 << 20);
    err_code err = words_make(b->e, &words, b->set.history, 99, detail);
    for (size_t i = 0; err == ERR_OK && i < TURN_CASES; i++) {
        if (b->set.turn < 0 || b->set.turn == (int)i) {
            err = measure_turn(b, &turn_cases[i], bytes_str(&words), detail);
        }
    }
    bytes_deinit(&words);
    return err;
}

/* ---- answers beside a long prompt ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The 95th percentile of the milliseconds between two tokens of an answer that came in (from, to];
 * 0 if there are too few. */
static double gap_p95(const answer *a, int64_t from, int64_t to, int *n)
{
    static double gaps[TOKENS_MAX];
    *n = 0;
    for (int32_t i = 1; i < a->n; i++) {
        if (a->at_ns[i] > from && a->at_ns[i] <= to) {
            gaps[(*n)++] = (double)(a->at_ns[i] - a->at_ns[i - 1]) / 1e6;
        }
    }
    qsort(gaps, (size_t)*n, sizeof gaps[0], by_value);
    return *n >= 20 ? gaps[*n * 95 / 100] : 0.0;
}

/* One answer; when it has run for QUIET_TOKENS, a long prompt comes in. */
enum { QUIET_TOKENS = 128 };

static err_code measure_gaps(bench *b, err_detail *detail)
{
    double quiet[ROUNDS_MAX], busy[ROUNDS_MAX], ratio[ROUNDS_MAX];
    const int rounds = b->set.rounds > 3 ? 3 : b->set.rounds;
    int n = 0;
    err_code err = ERR_OK;
    for (int i = 0; err == ERR_OK && i < rounds; i++) {
        bytes text;
        bytes_init(&text, (size_t)16 << 20);
        const gen_params one = greedy(1, true, true), many = greedy(TOKENS_MAX, true, true);
        gen_request *talk = NULL, *prompt = NULL;
        answer *a = NULL, *p = NULL;
        engine_clear_cache(b->e, NULL);
        err = engine_prepare_text(b->e, &talk, "Tell me", 7, false, 0, &many, detail);
        if (err == ERR_OK) {
            err = words_make(b->e, &text, b->set.history, 7, detail);
        }
        if (err == ERR_OK) {
            err = engine_prepare_text(b->e, &prompt, bytes_str(&text), text.len, false, 0, &one, detail);
        }
        bytes_deinit(&text);
        if (err != ERR_OK) {
            return err;
        }
        const int said = atomic_load(&b->n_said);
        err = submit(b, talk, &a, detail);
        while (err == ERR_OK && atomic_load(&b->n_said) < said + QUIET_TOKENS) {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        const int64_t from = clock_ns();
        err_code second = submit(b, prompt, &p, detail);
        err_code waited = wait_for(b, (err == ERR_OK) + (second == ERR_OK), detail);
        err = err != ERR_OK ? err : second != ERR_OK ? second : waited;
        if (err == ERR_OK) {
            quiet[i] = gap_p95(a, 0, from, &n);
            busy[i] = gap_p95(a, from, p->at_ns[0], &n);
            ratio[i] = quiet[i] > 0 ? busy[i] / quiet[i] : 0.0;
        }
    }
    if (err == ERR_OK) {
        char note[96];
        report(b, "token gap, 95th percentile, alone", stats_median(quiet, (size_t)rounds), "ms", 0, "");
        snprintf(note, sizeof note, "while a prompt of %d tokens is read (%d gaps)", b->set.history, n);
        report(b, "token gap, 95th percentile, beside", stats_median(busy, (size_t)rounds), "ms",
               stats_median(ratio, (size_t)rounds), note);
    }
    return err;
}

/* ---- all of it ---- */

static err_code measure_blocks(bench *b, err_detail *detail)
{
    block_costs c;
    char note[96];
    err_code err = blocks_measure(&c, b->set.dir, (size_t)b->set.n_threads, b->set.rounds, detail);
    if (err != ERR_OK) {
        return err;
    }
    report(b, "memory bandwidth", c.bandwidth_gbs, "GB/s", 0, "");
    snprintf(note, sizeof note, "of the memory bandwidth; %.3f ms, %.3f GB", c.step_ms, c.step_bytes / 1e9);
    report(b, "one decode step", c.step_gbs, "GB/s", c.share, note);
    for (int rows = 2; rows <= BLOCK_ROWS_MAX; rows++) {
        char what[64];
        snprintf(what, sizeof what, "verify block of %d", rows);
        report(b, what, c.verify[rows] * c.step_ms, "ms", c.verify[rows], "of a step's cost");
    }
    report(b, "4 sequences in one step", c.batch[4] * c.step_ms, "ms", c.batch[4], "of a step's cost");
    report(b, "8 sequences in one step", c.batch[8] * c.step_ms, "ms", c.batch[8], "of a step's cost");
    report(b, "16 sequences in one step", c.batch[16] * c.step_ms, "ms", c.batch[16], "of a step's cost");
    if (c.draft > 0) {
        report(b, "one guess of the draft head", c.draft * c.step_ms, "ms", c.draft, "of a step's cost");
    }
    return ERR_OK;
}

static bool wanted(const bench *b, const char *part)
{
    return !b->set.only || strcmp(b->set.only, part) == 0;
}

static err_code measure_engine(bench *b, err_detail *detail)
{
    const engine_options eo = {.model_dir = b->set.dir,
                               .template_file = b->set.template,
                               .n_ctx = N_CTX,
                               .n_parallel = AT_ONCE_MAX,
                               .cache_mib = -1,
                               .n_threads = (size_t)b->set.n_threads,
                               .cpu_mask = ~0u,
                               .prompt_lookup = 8,
                               .no_draft = b->set.no_mtp,
                               .on_event = on_event,
                               .on_event_ctx = b};
    engine_options with_defaults = eo;
    gen_params_init(&with_defaults.defaults);
    err_code err = engine_open(&b->e, &with_defaults, detail);
    if (err == ERR_OK && wanted(b, "prompt")) {
        err = measure_prefill(b, 512, detail);
    }
    if (err == ERR_OK && wanted(b, "prompt")) {
        err = measure_prefill(b, 2048, detail);
    }
    if (err == ERR_OK && wanted(b, "answer")) {
        err = measure_decode(b, detail);
    }
    if (err == ERR_OK && wanted(b, "batch")) {
        err = measure_at_once(b, true, detail);
    }
    if (err == ERR_OK && wanted(b, "batch") && engine_get_info(b->e)->has_mtp) {
        err = measure_at_once(b, false, detail);
    }
    if (err == ERR_OK && wanted(b, "questions") && b->set.prompts) {
        err = measure_questions(b, detail);
    }
    if (err == ERR_OK && wanted(b, "copy") && b->set.prompts) {
        err = measure_copy(b, detail);
    }
    if (err == ERR_OK && wanted(b, "turns") && b->set.history > 0) {
        err = measure_second_turns(b, detail);
    }
    if (err == ERR_OK && wanted(b, "gaps") && b->set.history > 0) {
        err = measure_gaps(b, detail);
    }
    engine_close(b->e);
    return err;
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_text [-m DIR] [-t THREADS] [-r ROUNDS] [-n TOKENS] [--prompts FILE] "
                    "[--history TOKENS] [--turn CASE] [--template FILE] [--only PART] [--no-mtp] [--json]\n");
    return 2;
}

static bool parse_arguments(settings *set, int argc, char **argv)
{
    *set = (settings){.dir = "assets/seedling", .rounds = 9, .n_tokens = 128, .history = 8192, .turn = -1};
    const struct {
        const char *flag, **text;
        int *number;
    } rows[] = {{"-m", &set->dir, NULL},
                {"--template", &set->template, NULL},
                {"--prompts", &set->prompts, NULL},
                {"--only", &set->only, NULL},
                {"-t", NULL, &set->n_threads},
                {"-r", NULL, &set->rounds},
                {"-n", NULL, &set->n_tokens},
                {"--history", NULL, &set->history},
                {"--turn", NULL, &set->turn}};
    for (int i = 1; i < argc; i++) {
        const char *flag = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(flag, "--json") == 0 || strcmp(flag, "--no-mtp") == 0) {
            *(flag[2] == 'j' ? &set->json : &set->no_mtp) = true;
            continue;
        }
        size_t k = 0;
        while (k < ARRAY_LEN(rows) && strcmp(flag, rows[k].flag) != 0) {
            k++;
        }
        if (!value || k == ARRAY_LEN(rows)) {
            return false;
        }
        if (rows[k].text) {
            *rows[k].text = value;
        } else {
            *rows[k].number = (int)strtol(value, NULL, 10);
        }
        i++;
    }
    return set->rounds >= 1 && set->rounds <= ROUNDS_MAX && set->n_tokens >= 2 &&
           set->n_tokens <= TOKENS_MAX && set->history >= 0 && set->history < N_CTX - 512;
}

int main(int argc, char **argv)
{
    static bench b = {.first_row = true};
    err_detail detail = {0};
    if (!parse_arguments(&b.set, argc, argv)) {
        return usage();
    }
    b.done = mailbox_create(AT_ONCE_MAX);
    if (!b.done) {
        return 1;
    }
    b.set.json ? printf("[") : printf("%s\n", b.set.dir);
    err_code err = wanted(&b, "blocks") ? measure_blocks(&b, &detail) : ERR_OK;
    if (err == ERR_OK && !(b.set.only && strcmp(b.set.only, "blocks") == 0)) {
        err = measure_engine(&b, &detail);
    }
    printf(b.set.json ? "\n]\n" : "");
    mailbox_destroy(b.done, NULL);
    if (err != ERR_OK) {
        fprintf(stderr, "bench_text: %s\n", detail.text);
        return 1;
    }
    return 0;
}
