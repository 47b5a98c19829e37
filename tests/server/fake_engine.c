/* A double of the engine for tests of the server: same header, no model. Every byte is a token; the
 * answer repeats what the last message said. Words that start with '!' in that message steer it:
 *
 *     !len=N    answer with N characters          !delay=MS   wait between events
 *     !think    answer inside a think block first !fail       fail after some tokens
 *     !think=N  with N characters of thoughts     !fast       a 20th of a millisecond between events, not a whole
 *     !queued   report a place in the queue       !phases     report vision and prefill progress
 *     !phases=MS  that, and wait as long behind each; from 2000 on prefill is reported once more
 *     !who      say the request's scope and switches  !recall say the role and the text of every message
 *     !which    say the model's name              !choice     say which of several answers it is
 *     !kwargs   say the template's variables
 *     !raw      what follows is the answer, as it stands (!think writes its block in front of it)
 *     !stuck    stall after some tokens, until the file $FAKE_STUCK_UNTIL exists
 *     !slowprep take 500 ms in engine_prepare, in steps that look for a cancel; !slowprep=N: N times as long
 *     !stallprep stall there, until that file exists
 *
 * The model's name is that of its folder. Loading fails with a file in it of those of LOAD_FAILS (fake_said.c); it goes on as
 * long as there is a file "slow". With a file "blind" it sees no images, with a file "ranks" it is a reranker, with a file
 * "heavy" it has 3 MiB of weights. One whose folder has the name "videos" sees videos, too, "disk" keeps prefixes on a disk,
 * "tight" leaves 92 KiB to requests.
 *
 * An image must start like a PNG and end with IEND, else it is "damaged".
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "engine/engine.h"
#include "engine/think.h"
#include "tests/server/fake_engine.h"

/* LONG: answers of so many characters, without a delay, come in events that are as large as events
 * can be. */
enum { N_CTX = 20000, N_SLOTS = 4, MAX_WAITING = 80, TOKENS_PER_EVENT = 4, LONG = 20000, CACHED = 3 };

/* The double's own memory, which must not be what fails where memory is made to. */
static void *take(size_t n, size_t size)
{
    void *p;
    while (!(p = calloc(n, size))) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return p;
}

struct gen_request {
    gen_request_info info;
    char *text; /* the answer */
    size_t len;
    int delay_ms;
    double pace_ms; /* between events without a delay */
    bool fails, sticks, reports_queue, reports_phases;
    int phase_ms, n_phases; /* the wait behind each that is reported; those that were */
    int32_t n_top;
    size_t n_prompt,
        n_scored;   /* the prompt is scored before the answer, which begins like it; 0: it is not */
    float *vectors; /* [n_vectors, vector_size] in place of an answer; NULL: none */
    size_t n_vectors;
    int32_t vector_size;
    /* while running */
    uint64_t id;
    size_t done;
    double submitted_ms, next_ms, paced_ms; /* paced_ms: of a clock that no test stops */
    bool admitted;         /* {lock} it has a place in the list, and has not been handed over */
    atomic_bool cancelled; /* also while a step of it runs */
    bool ends_thinking;    /* {lock} until the step that heeds it */
    gen_request *next;
    gen_request *behind; /* as gen_request_next; NULL once it is submitted */
};

struct engine {
    engine_options opt;
    engine_info info;
    char name[256];
    char table[256]; /* the token of every byte */
    pthread_t thread;
    pthread_mutex_t lock;
    gen_request *list;    /* {lock} in order of arrival; the first N_SLOTS run */
    int n_list;           /* {lock} */
    bool closing;         /* {lock} */
    engine_status status; /* {lock} */
    bool steps;           /* {lock} a step runs */
    atomic_bool stalls;   /* it does not come to its end */
    uint64_t counter;     /* {lock} progress_counter when fake_engine_due was asked last */
    engine *next;         /* of all */
};

static struct {
    pthread_mutex_t lock;
    engine *first;
} engines = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double paced_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}

/* ---- prepare ---- */

static err_code check_image(const chat_part *p, err_detail *d)
{
    static const unsigned char png[] = {0x89, 'P', 'N', 'G'};
    if (p->data_bytes < sizeof png || memcmp(p->data, png, sizeof png) != 0) {
        return err_set_param(d, ERR_CORRUPT, p->param, "image_parse_error",
                             "the image is in no known format");
    }
    if (p->data_bytes < 12 || memcmp(p->data + p->data_bytes - 8, "IEND", 4) != 0) {
        return err_set_param(d, ERR_CORRUPT, p->param, "image_parse_error", "the image ends too early");
    }
    return ERR_OK;
}

/* Says nothing and hears of nothing until a file exists. */
static void stall(void)
{
    for (const char *until = getenv("FAKE_STUCK_UNTIL"); until && access(until, F_OK) != 0;) {
        sleep_ms(5);
    }
}

static err_code wait_in_prepare(const prepare_hooks *hooks, int n_steps, err_detail *d)
{
    for (int i = 0; i < n_steps; i++) {
        if (hooks && hooks->cancelled && hooks->cancelled(hooks->ctx)) {
            return err_set(d, ERR_CANCELLED, "cancelled");
        }
        if (hooks && hooks->progress) {
            hooks->progress(hooks->ctx, GEN_PHASE_MEDIA, i, n_steps);
        }
        sleep_ms(10);
    }
    return ERR_OK;
}

/* Puts the other answers behind r. */
static void add_choices(gen_request *r, const char *said, int32_t n)
{
    for (int32_t i = 1; i < n; i++) {
        gen_request *other = take(1, sizeof *other);
        *other = *r;
        other->behind = NULL;
        other->n_prompt = 0; /* those of the first are for all */
        other->text = take(r->len + 16, 1);
        other->len = (size_t)snprintf(other->text, r->len + 16, strstr(said, "!choice") ? "%.*s%d" : "%.*s",
                                      (int)r->len, r->text, i);
        other->info.max_tokens += (int32_t)(other->len - r->len);
        gen_request_append(r, other);
    }
}

err_code engine_prepare(engine *e, gen_request **out, const chat_input *in, const prepare_hooks *hooks,
                        err_detail *d)
{
    size_t n_bytes = 0;
    int n_images = 0;
    const char *said = "";
    for (size_t i = 0; i < in->n_messages; i++) {
        for (size_t k = 0; k < in->messages[i].n_parts; k++) {
            const chat_part *p = &in->messages[i].parts[k];
            if (p->kind == CHAT_TEXT) {
                said = p->text;
                n_bytes += p->text_len;
                continue;
            }
            err_code err = p->kind == CHAT_IMAGE ? check_image(p, d) : ERR_OK;
            if (err != ERR_OK) {
                return err;
            }
            n_images++;
        }
    }
    if (n_bytes >= N_CTX) {
        err_set(d, ERR_CONTEXT, "the prompt is too long; shorten it");
        return err_set_numbers(d, ERR_CONTEXT, (int64_t)n_bytes, N_CTX);
    }
    if (strstr(said, "!slowprep")) {
        err_code err = wait_in_prepare(hooks, 50 * fake_option(said, "!slowprep", 1), d);
        if (err != ERR_OK) {
            return err;
        }
    }
    if (strstr(said, "!stallprep")) {
        if (hooks && hooks->progress) {
            hooks->progress(hooks->ctx, GEN_PHASE_MEDIA, 1, 50);
        }
        stall();
    }
    gen_request *r = take(1, sizeof *r);
    bytes text;
    bytes_init(&text, 1 << 24);
    fake_write_answer(&text, said, n_images);
    if (strstr(said, "!who")) {
        bytes_printf(&text, " scope=%016llx mtp=%d cache=%d", (unsigned long long)in->scope,
                     !in->params.no_draft, !in->params.no_cache);
        if (in->params.no_lookup) {
            bytes_append_str(&text, " lookup=0");
        }
    }
    if (strstr(said, "!which")) {
        bytes_printf(&text, " model=%s", e->name);
    }
    if (strstr(said, "!kwargs") && in->template_kwargs) {
        bytes_append_char(&text, ' ');
        json_write(&text, in->template_kwargs);
    }
    if (strstr(said, "!recall")) {
        fake_write_messages(&text, in);
    }
    bytes_append_char(&text, '\0');
    if (text.failed) {
        bytes_deinit(&text);
        free(r);
        return err_set(d, ERR_NOMEM, "there is not enough memory for this prompt");
    }
    r->text = text.data;
    r->len = text.len - 1;
    int32_t max = in->params.max_tokens >= 0 ? in->params.max_tokens : LIMIT_MAX_TOKENS_DEFAULT * 4;
    bool thinks =
        !(in->template_kwargs && !json_bool(json_get(in->template_kwargs, "enable_thinking"), true));
    r->info =
        (gen_request_info){.route = n_images ? GEN_ROUTE_MEDIA : GEN_ROUTE_TEXT,
                           .n_prompt_tokens = (int32_t)n_bytes + 4,
                           .max_tokens = max,
                           .may_think = thinks,
                           .think = e->opt.reasoning_form ? think_form_find(e->opt.reasoning_form) : NULL,
                           .n_images = n_images};
    r->delay_ms = fake_option(said, "!delay", 0);
    r->pace_ms = strstr(said, "!fast") ? 0.05 : 1.0;
    r->fails = strstr(said, "!fail") != NULL;
    r->sticks = strstr(said, "!stuck") != NULL;
    r->reports_queue = strstr(said, "!queued") != NULL;
    r->reports_phases = strstr(said, "!phases") != NULL;
    r->phase_ms = strstr(said, "!phases=") ? fake_option(said, "!phases", 0) : 0;
    r->n_top = in->params.n_top_logprobs;
    add_choices(r, said, in->params.n_choices);
    *out = r;
    return ERR_OK;
}

/* A raw prompt is answered with itself. */
err_code engine_prepare_text(engine *e, gen_request **out, const char *prompt, size_t len, bool parse_special,
                             uint64_t scope, const gen_params *params, err_detail *d)
{
    (void)e, (void)parse_special, (void)scope, (void)d;
    gen_request *r = take(1, sizeof *r);
    r->text = strdup(prompt);
    r->len = params->max_tokens >= 0 && (size_t)params->max_tokens < len ? (size_t)params->max_tokens : len;
    r->info = (gen_request_info){.n_prompt_tokens = (int32_t)len, .max_tokens = (int32_t)r->len};
    r->n_top = params->n_top_logprobs;
    r->n_prompt = params->scores_prompt ? len : 0;
    add_choices(r, prompt, params->n_choices);
    *out = r;
    return ERR_OK;
}

/* Of every input the vector (its length, 3, 4, 0); of a document how many letters it has. */
err_code engine_prepare_inputs(engine *e, gen_request **out, const gen_input *inputs, size_t n, gen_pool pool,
                               uint64_t scope, err_detail *d)
{
    (void)e, (void)scope, (void)d;
    gen_request *r = take(1, sizeof *r);
    r->vectors = take(n, 4 * sizeof(float));
    r->n_vectors = n;
    r->vector_size = pool == GEN_POOL_YES ? 1 : 4;
    r->text = take(1, 1);
    for (size_t i = 0; i < n; i++) {
        const size_t len = inputs[i].text ? inputs[i].len : inputs[i].n_ids;
        const float vector[4] = {(float)len, 3, 4, 0};
        memcpy(r->vectors + i * (size_t)r->vector_size, vector, (size_t)r->vector_size * sizeof(float));
        r->info.n_prompt_tokens += (int32_t)len;
    }
    *out = r;
    return ERR_OK;
}

void gen_request_free(gen_request *r)
{
    while (r) {
        gen_request *behind = r->behind;
        free(r->text);
        free(r->vectors);
        free(r);
        r = behind;
    }
}

gen_request *gen_request_next(const gen_request *r)
{
    return r->behind;
}

void gen_request_append(gen_request *r, gen_request *more)
{
    while (r->behind) {
        r = r->behind;
    }
    r->behind = more;
}

void gen_request_set_id(gen_request *r, uint64_t id)
{
    r->id = id;
}

gen_request_info gen_request_get_info(const gen_request *r)
{
    return r->info;
}

/* ---- running ---- */

static gen_event *new_event(const gen_request *r, gen_event_type type)
{
    gen_event *event = take(1, sizeof *event);
    event->request_id = r->id;
    event->type = type;
    event->timings = (gen_timings){.route = r->info.route,
                                   .prompt_n = r->info.n_prompt_tokens - CACHED,
                                   .cache_n = CACHED,
                                   .predicted_n = (int32_t)r->done,
                                   .n_images = r->info.n_images,
                                   .vision_ms = r->info.n_images ? 1.5 : 0.0,
                                   .prompt_ms = 2.0,
                                   .predicted_ms = clock_ms() - r->submitted_ms,
                                   .ttft_ms = 2.5};
    return event;
}

static void send(engine *e, gen_event *event)
{
    e->opt.on_event(e->opt.on_event_ctx, event);
}

static void send_progress(engine *e, const gen_request *r, gen_phase phase, int32_t processed, int32_t total)
{
    gen_event *event = new_event(r, GEN_PROGRESS);
    event->phase = phase;
    event->processed = processed;
    event->total = total;
    send(e, event);
}

/* Leaves out the rest of the thoughts. */
static void cut_thoughts(gen_request *r)
{
    char *close = strstr(r->text, "\n</think>");
    if (close && close > r->text + r->done) {
        memmove(r->text + r->done, close, strlen(close) + 1);
        r->len = strlen(r->text);
    }
}

/* The next phases; true if something is waited for behind one. */
static bool report_phases(engine *e, gen_request *r)
{
    static const struct {
        gen_phase phase;
        int32_t processed, total;
    } PHASES[] = {{GEN_PHASE_VISION, 1, 2},
                  {GEN_PHASE_PREFILL, 64, 128},
                  {GEN_PHASE_PREFILL, 96, 128},
                  {GEN_PHASE_PREFILL, 128, 128}};
    while (r->reports_phases && r->n_phases < (int)ARRAY_LEN(PHASES)) {
        const int i = r->n_phases++;
        if (i == 2 && r->phase_ms < 2000) {
            continue;
        }
        send_progress(e, r, PHASES[i].phase, PHASES[i].processed, PHASES[i].total);
        if (r->phase_ms > 0) {
            r->next_ms = clock_ms() + r->phase_ms;
            return true;
        }
    }
    return false;
}

/* Scores the next tokens of the prompt. */
static void score(engine *e, gen_request *r)
{
    gen_event *event = new_event(r, GEN_PROMPT);
    event->logprobs = take(GEN_EVENT_TOKENS, sizeof *event->logprobs);
    while (event->n_tokens < GEN_EVENT_TOKENS && r->n_scored < r->n_prompt) {
        gen_logprob *one = &event->logprobs[event->n_tokens];
        const int32_t token = (unsigned char)r->text[r->n_scored];
        const bool has_top = r->n_top > 0 && r->n_scored > 0;
        *one = (gen_logprob){.logprob = r->n_scored++ > 0 ? -0.5f : NAN, .n_top = has_top};
        one->top_ids[0] = token;
        one->top_logprobs[0] = -0.5f;
        event->tokens[event->n_tokens++] = token;
    }
    event->processed = (int32_t)r->n_scored;
    event->total = (int32_t)r->n_prompt;
    send(e, event);
}

/* One step of one request; true when it is over. */
static bool step(engine *e, gen_request *r)
{
    if (!r->cancelled && report_phases(e, r)) {
        return false;
    }
    while (r->n_scored < r->n_prompt) { /* before the other choices begin */
        score(e, r);
    }
    if (r->sticks && r->done > 4) {
        e->stalls = true;
        stall();
        e->stalls = false;
        r->sticks = false;
    }
    if (r->done < r->n_vectors && !r->cancelled) {
        gen_event *event = new_event(r, GEN_VECTOR);
        event->n_vector = r->vector_size;
        event->vector = take((size_t)r->vector_size, sizeof *event->vector);
        memcpy(event->vector, r->vectors + r->done++ * (size_t)r->vector_size,
               (size_t)r->vector_size * sizeof(float));
        send(e, event);
        return false;
    }
    size_t limit = r->len < (size_t)r->info.max_tokens ? r->len : (size_t)r->info.max_tokens;
    bool failed = r->fails && r->done > 4;
    if (r->cancelled || failed || r->done >= limit) {
        gen_event *event = new_event(r, GEN_DONE);
        event->finish = failed            ? GEN_FINISH_ERROR
                        : r->cancelled    ? GEN_FINISH_CANCELLED
                        : limit == r->len ? GEN_FINISH_STOP
                                          : GEN_FINISH_LENGTH;
        event->error = failed ? ERR_INTERNAL : ERR_OK;
        snprintf(event->message, sizeof event->message, "%s", failed ? "secret detail 0xdeadbeef" : "");
        pthread_mutex_lock(&e->lock);
        e->status.n_generated_tokens += r->done; /* whoever hears of the end finds it counted */
        e->status.n_steps++;
        pthread_mutex_unlock(&e->lock);
        send(e, event);
        return true;
    }
    gen_event *event = new_event(r, GEN_TOKENS);
    const int32_t most = r->len >= LONG && r->delay_ms == 0 ? GEN_EVENT_TOKENS : TOKENS_PER_EVENT;
    while (event->n_tokens < most && r->done < limit) {
        event->tokens[event->n_tokens++] = (unsigned char)r->text[r->done++];
    }
    if (r->n_top >= 0) {
        event->logprobs = take((size_t)event->n_tokens, sizeof *event->logprobs);
        for (int32_t i = 0; i < event->n_tokens; i++) {
            event->logprobs[i] = (gen_logprob){.logprob = -0.25f,
                                               .n_top = r->n_top > 0,
                                               .top_ids = {event->tokens[i]},
                                               .top_logprobs = {-0.25f}};
        }
    }
    event->timings.predicted_n = (int32_t)r->done;
    send(e, event);
    r->next_ms = clock_ms() + r->delay_ms;
    return false;
}

/* {lock} */
static void unlink_request(engine *e, gen_request *r)
{
    gen_request **p = &e->list;
    while (*p != r) {
        p = &(*p)->next;
    }
    *p = r->next;
    e->n_list--;
}

static bool is_due(const gen_request *r, double now)
{
    return r->cancelled || now >= r->next_ms;
}

/* {lock} */
static int64_t due_of(engine *e)
{
    const double now = clock_ms();
    int64_t due = INT64_MAX;
    int place = 0;
    if (e->steps || !e->list) {
        return e->steps && !e->stalls ? -1 : due;
    }
    for (const gen_request *r = e->list; r; r = r->next, place++) {
        if (r->admitted) {
            return -1; /* it is about to be started */
        }
        if (r->cancelled || place < N_SLOTS) {
            const int64_t at = is_due(r, now) ? -1 : (int64_t)ceil(r->next_ms * 1e6);
            due = at < due ? at : due;
        }
    }
    if (e->status.progress_counter == e->counter) {
        return -1;
    }
    e->counter = due < 0 ? e->counter : e->status.progress_counter;
    return due;
}

int64_t fake_engine_due(void)
{
    int64_t due = INT64_MAX;
    pthread_mutex_lock(&engines.lock);
    for (engine *e = engines.first; e && due >= 0; e = e->next) {
        pthread_mutex_lock(&e->lock);
        const int64_t at = due_of(e);
        pthread_mutex_unlock(&e->lock);
        due = at < due ? at : due;
    }
    pthread_mutex_unlock(&engines.lock);
    return due;
}

static void *engine_thread(void *ctx)
{
    engine *e = ctx;
    pthread_mutex_lock(&e->lock);
    while (!e->closing || e->list) {
        const double now = clock_ms(), paced = paced_ms();
        double wait_ms = 1.0;
        e->status.progress_counter++;
        gen_request *due = NULL;
        int place = 0;
        for (gen_request *r = e->list; r && !due; r = r->next, place++) {
            r->cancelled = r->cancelled || e->closing;
            const bool runs = !r->admitted && (r->cancelled || place < N_SLOTS);
            due = runs && is_due(r, now) && (r->cancelled || paced >= r->paced_ms) ? r : NULL;
            const double own =
                r->next_ms - now > r->paced_ms - paced ? r->next_ms - now : r->paced_ms - paced;
            wait_ms = runs && own < wait_ms ? own : wait_ms;
        }
        if (!due) {
            pthread_mutex_unlock(&e->lock);
            nanosleep(&(struct timespec){.tv_nsec = (long)(wait_ms * 1e6)}, NULL);
            pthread_mutex_lock(&e->lock);
            continue;
        }
        if (due->ends_thinking && due->done >= FAKE_OPENING) {
            due->ends_thinking = false;
            cut_thoughts(due);
        }
        e->steps = true;
        pthread_mutex_unlock(&e->lock);
        bool over = step(e, due);
        pthread_mutex_lock(&e->lock);
        e->steps = false;
        e->status.n_steps += !over;
        if (over) {
            unlink_request(e, due);
            gen_request_free(due);
        } else if (due->delay_ms == 0) {
            due->paced_ms = paced_ms() + due->pace_ms;
        }
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

err_code engine_admit(engine *e, gen_request *r, uint64_t id, err_detail *d)
{
    pthread_mutex_lock(&e->lock);
    int n = 1;
    for (const gen_request *q = r->behind; q; q = q->behind) {
        n++;
    }
    if (e->n_list + n > N_SLOTS + (e->opt.n_queue > 0 ? e->opt.n_queue : MAX_WAITING)) {
        pthread_mutex_unlock(&e->lock);
        return err_set(d, ERR_BUSY, "the queue is full");
    }
    r->id = id;
    gen_request **p = &e->list;
    while (*p) {
        p = &(*p)->next;
    }
    for (gen_request *q = r; q; q = q->behind) {
        q->admitted = true;
        *p = q;
        p = &q->next;
        e->n_list++;
        e->status.n_requests++;
    }
    pthread_mutex_unlock(&e->lock);
    return ERR_OK;
}

void engine_start(engine *e, gen_request *r)
{
    pthread_mutex_lock(&e->lock);
    while (r) {
        gen_request *behind = r->behind;
        r->behind = NULL;
        r->admitted = false;
        r->submitted_ms = r->next_ms = clock_ms();
        if (r->reports_queue) {
            send_progress(e, r, GEN_PHASE_QUEUED, 1, 0);
            r->next_ms += 100;
        }
        r = behind;
    }
    pthread_mutex_unlock(&e->lock);
}

err_code engine_submit(engine *e, gen_request *r, uint64_t id, err_detail *d)
{
    const err_code err = engine_admit(e, r, id, d);
    if (err == ERR_OK) {
        engine_start(e, r);
    }
    return err;
}

void engine_cancel(engine *e, uint64_t id)
{
    pthread_mutex_lock(&e->lock);
    for (gen_request *r = e->list; r; r = r->next) {
        if (r->id == id) {
            r->cancelled = true;
        }
    }
    pthread_mutex_unlock(&e->lock);
}

void engine_end_thinking(engine *e, uint64_t id)
{
    pthread_mutex_lock(&e->lock);
    for (gen_request *r = e->list; r; r = r->next) {
        r->ends_thinking = r->ends_thinking || r->id == id;
    }
    pthread_mutex_unlock(&e->lock);
}

/* ---- the rest ---- */

static atomic_bool loads_end;

void fake_engine_end_loads(void)
{
    atomic_store(&loads_end, true);
}

err_code engine_open(engine **out, const engine_options *opt, err_detail *detail)
{
    const char *load_ms = getenv("FAKE_LOAD_MS");
    const int steps = load_ms ? (int)strtol(load_ms, NULL, 10) / 10 : 0;
    for (int i = 0; i < steps; i++) {
        if (opt->on_load) {
            opt->on_load(opt->on_load_ctx, "weights", (double)i / steps);
        }
        sleep_ms(10);
    }
    const char *dir = opt->model_dir, *slash = dir ? strrchr(dir, '/') : NULL;
    if (fake_holds(dir, "slow") && opt->on_load) {
        opt->on_load(opt->on_load_ctx, "weights", 0.5);
    }
    while (fake_holds(dir, "slow") && !atomic_load(&loads_end)) {
        sleep_ms(10);
    }
    const err_code err = fake_load_error(dir, detail);
    if (err != ERR_OK) {
        return err;
    }
    engine *e = take(1, sizeof *e);
    e->opt = *opt;
    snprintf(e->name, sizeof e->name, "%s", slash ? slash + 1 : "fake");
    e->info = (engine_info){.model_name = e->name,
                            .cache_type = "f16",
                            .model_dir = "fake",
                            .family = "fake",
                            .compute = "none",
                            .n_ctx = N_CTX,
                            .n_ctx_train = N_CTX,
                            .n_vocab = 256,
                            .n_parallel = N_SLOTS,
                            .max_images = opt->max_images > 0 ? opt->max_images : LIMIT_IMAGES,
                            .has_vision = !fake_holds(dir, "blind"),
                            .n_embd = 4,
                            .pool = GEN_POOL_LAST,
                            .is_reranker = fake_holds(dir, "ranks"),
                            .weight_bytes = fake_holds(dir, "heavy") ? 3 << 20 : 0,
                            .has_template = true,
                            .template_text = "<tool_call> <function= <parameter=",
                            .has_thinking = true};
    for (int i = 0; i < 256; i++) {
        e->table[i] = (char)i;
    }
    e->status = (engine_status){.n_cache_queries = 8,
                                .n_cache_hits = 6,
                                .n_cache_entries = 3,
                                .cache_bytes = 3000,
                                .n_vision_hits = 1,
                                .n_vision_entries = 2,
                                .vision_cache_bytes = 5000,
                                .n_drafted = 40,
                                .n_draft_accepted = 30,
                                .n_copied = 20,
                                .n_copied_accepted = 15,
                                .n_parked_steps = 2};
    fake_be(slash ? slash + 1 : "", &e->info, &e->status, opt->memory);
    gen_params_init(&e->info.defaults);
    e->info.defaults.temperature = 0.0f;
    pthread_mutex_init(&e->lock, NULL);
    if (pthread_create(&e->thread, NULL, engine_thread, e) != 0) {
        free(e);
        return err_set(detail, ERR_NOMEM, "no thread");
    }
    pthread_mutex_lock(&engines.lock);
    e->next = engines.first;
    engines.first = e;
    pthread_mutex_unlock(&engines.lock);
    *out = e;
    return ERR_OK;
}

void engine_close(engine *e)
{
    if (!e) {
        return;
    }
    pthread_mutex_lock(&engines.lock);
    for (engine **at = &engines.first; *at; at = &(*at)->next) {
        if (*at == e) {
            *at = e->next;
            break;
        }
    }
    pthread_mutex_unlock(&engines.lock);
    pthread_mutex_lock(&e->lock);
    e->closing = true;
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

const engine_info *engine_get_info(const engine *e)
{
    return &e->info;
}

const char *engine_token_bytes(const engine *e, int32_t id, size_t *len, bool *special)
{
    *len = 1;
    *special = false;
    return &e->table[id & 255];
}

void engine_clear_cache(engine *e, const uint64_t *scope)
{
    (void)scope;
    pthread_mutex_lock(&e->lock);
    e->status.n_cache_entries = e->status.cache_bytes = 0;
    pthread_mutex_unlock(&e->lock);
}

void engine_list_cache(engine *e, uint64_t scope, void (*each)(void *ctx, const engine_cached *one),
                       void *ctx)
{
    pthread_mutex_lock(&e->lock);
    const bool is_empty = e->status.n_cache_entries == 0;
    pthread_mutex_unlock(&e->lock);
    (void)scope;
    if (!is_empty) {
        each(ctx, &(engine_cached){.n_tokens = 12, .n_bytes = 4096, .used_at = 1700000000});
    }
}

void engine_get_status(engine *e, engine_status *out)
{
    pthread_mutex_lock(&e->lock);
    *out = e->status;
    int n = e->n_list;
    out->n_running = n < N_SLOTS ? n : N_SLOTS;
    out->n_waiting = n > N_SLOTS ? n - N_SLOTS : 0;
    pthread_mutex_unlock(&e->lock);
}
