/* Each file of tests/engine/transcripts/ is a load, and what the engine does with it, event by event: whose chunk of how many
 * tokens is computed, who waits, what the cache had, what was guessed and was right, when it was. After each event the
 * parts of the engine must fit together (check_engine).
 *
 *     ! parallel 2 chunk 64 draft shared    of the engine; parallel, chunk, context, cache, queue, images: numbers
 *     > ask 1 at 5 prompt 100 answer 4      at: the first token; flags as in ask()
 *     > wait 3                              events, or "all": until all that was asked for has ended
 *     > starve 0                            so many blocks of keys and values are free, until "feed"
 *     > fail mtp_forward 2                  the second such call from now on fails (transcript_calls.h)
 *     > keep 7, load 7, forget 7, disk      of the cache on disk: the last question is kept by that name; what is there
 *     > hold, release                       what is being saved there waits
 *     > keys                                what the prefix cache knows the prompts by that are computed
 *     > pieces 25                           each piece of a prompt takes 2.5 ms from now on
 *     ! parallel 2 chunk 64 disk 4          again: the engine is closed, and another one opened over the same folder
 *                                           lacking: what the processor has not is allowed, which is nothing new; debug: all is logged
 *     < #1 prefill 64/100                   what the engine said, and warnings that it logged
 *
 * Time passes only from event to event, a millisecond each (the tokens of a step of an answer come at once), and a little
 * when the engine looks at the clock. All but the first question comes from inside of an event, so that nothing depends on
 * other work on the machine. Tokens are not told: they are other tests'. The kernels are the plain ones, as it depends on
 * them how a prompt is cut. PARLEY_WRITE=1 writes the events anew; the difference is then to be read.
 */
#include "engine/engine_private.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "compute/kernels/cpu.h"
#include "tests/check.h"
#include "tests/engine/transcript_calls.h"
#include "tests/folder.h"
#include "tests/log_news.h"
#include "tests/recorded.h"

/* Under TSan, where the plain kernels take minutes, one file is enough: all is of one thread. */
#ifdef __SANITIZE_THREAD__
static const char ONLY[] = "choices.txt";
#else
static const char ONLY[] = "";
#endif

enum {
    N_CTX = 256,
    MOST_CTX = 2048,
    N_TOKENS = 90,
    MS = 1000000,
    MOST_IDS = 64,
    SCOPES = 4,
    TEXT_BYTES = 1 << 20,
    MOST_BLOCKS = 4096
};

/* ---- time ---- */

static _Atomic int64_t now_ns = 5000LL * 1000 * MS;

/* Looks at the clock since the last event while something is asked for. An engine that has nothing to do looks again and
 * again, as no time passes; one that computes seldom does. */
enum { MOST_LOOKS = 1000000, LOOK_NS = 300000 };
static _Thread_local bool
    is_at_work; /* the engine's thread, from its first event on: each of its looks takes LOOK_NS */
static atomic_int n_looks, n_open;

int made_up_clock(clockid_t id, struct timespec *out) __asm__("clock_gettime");

int made_up_clock(clockid_t id, struct timespec *out)
{
    if (id != CLOCK_MONOTONIC) {
        return (int)syscall(SYS_clock_gettime, id, out);
    }
    if (atomic_load(&n_open) > 0 && atomic_fetch_add(&n_looks, 1) > MOST_LOOKS) {
        fprintf(stderr, "the engine has forgotten what it was asked for\n");
        _exit(1);
    }
    const int64_t ns = is_at_work && atomic_load(&n_open) > 0 ? atomic_fetch_add(&now_ns, LOOK_NS) + LOOK_NS
                                                              : atomic_load(&now_ns);
    *out = (struct timespec){.tv_sec = ns / (1000LL * MS), .tv_nsec = ns % (1000LL * MS)};
    return 0;
}

static int32_t piece_tenths; /* of a millisecond that each piece of a prompt takes */

bool __real_decoder_next(const model *m, decoder_scratch *sc, bool small);
bool __wrap_decoder_next(const model *m, decoder_scratch *sc, bool small);

bool __wrap_decoder_next(const model *m, decoder_scratch *sc, bool small)
{
    atomic_fetch_add(&now_ns, (int64_t)piece_tenths * (MS / 10));
    return __real_decoder_next(m, sc, small);
}

/* ---- a script ---- */

typedef struct script {
    engine *e;
    const char *at;      /* the next line */
    const char *opened;  /* the line of its options */
    const char *options; /* of the next one, if there is to be another */
    char folder[FOLDER_NAME];
    bytes out;
    int32_t n_waits; /* events until the next action; -1: until all is done */
    int32_t n_asked, n_done;
    int32_t n_prompt[MOST_IDS], n_predicted[MOST_IDS]; /* by id */
    bool is_done[MOST_IDS];
    void *taken[MOST_BLOCKS]; /* so that nobody else has them */
    size_t n_taken;
    uint64_t last_id, last_step; /* of the last event */
    pthread_mutex_t lock;        /* who acts, or takes an event; the first question is this thread's */
    atomic_bool is_over;
} script;

/* A number behind a word of a line; `other` if it is not there. */
static int32_t number(const char *line, const char *word, int32_t other)
{
    const size_t n = strlen(word), end = strcspn(line, "\n");
    for (const char *at = line; (at = strstr(at, word)) != NULL && at < line + end; at += n) {
        if (at > line && at[-1] == ' ' && (at[n] == ' ' || at[n] == '\n')) {
            return at[n] == ' ' && strchr("0123456789", at[n + 1]) ? (int32_t)strtol(at + n + 1, NULL, 10)
                                                                   : 1;
        }
    }
    return other;
}

static bool flag(const char *line, const char *word)
{
    return number(line, word, -1) >= 0;
}

/* The tokens of a prompt: a walk through the vocabulary, or one that comes back after `every` tokens. */
static void make_prompt(int32_t *ids, const char *line, int32_t n)
{
    const int32_t first = number(line, "at", 0), every = number(line, "every", N_CTX);
    for (int32_t i = 0; i < n; i++) {
        ids[i] = 5 + (first + i % every * 7 + i % every / 13) % N_TOKENS;
    }
}

static void make_params(gen_params *p, const char *line)
{
    gen_params_init(p);
    p->max_tokens = number(line, "answer", 1);
    p->n_choices = number(line, "choices", 1);
    p->temperature = 0.0f;
    p->ignore_eos = !flag(line, "stops");
    p->min_tokens = number(line, "least", 0);
    p->no_cache = flag(line, "uncached");
    p->no_draft = flag(line, "undrafted");
    p->no_lookup = flag(line, "uncopied");
    if (flag(line, "thinks")) {
        p->think_tokens = number(line, "thinks", 0);
    }
    if (flag(line, "scored")) {
        p->n_top_logprobs = 0;
        p->scores_prompt = true;
    }
    if (flag(line, "sparse")) {
        p->spec_prefill = 1;
        p->spec_keep = 0.01f * (float)number(line, "sparse", 0);
        p->spec_backbone = 0.1f;
    }
}

/* A chat of some messages, one of them with an image; its answer may have to be so many x. */
static gen_request *make_chat(script *s, const char *line)
{
    static const char *const TEXTS[] = {"What is in this picture, and what is beside it?", "A square.",
                                        "And which color has it? Say it in a word.", "Red.", "Are you sure?"};
    static const char THINKING[] = "{\"enable_thinking\":true}";
    static unsigned char bytes_of_image[65536];
    static char letters[N_CTX];
    const size_t n = (size_t)number(line, "turns", 1), with_image = (size_t)number(line, "image", 0);
    const grammar_spec form = {.kind = SPEC_TEXT, .text = letters};
    chat_input *in = chat_input_create(1 << 20);
    gen_request *r = NULL;
    err_detail d = {0};
    FILE *file = fopen(PARLEY_SOURCE_DIR "/assets/samples/color.png", "rb");
    CHECK(file && in);
    const size_t n_image = fread(bytes_of_image, 1, sizeof bytes_of_image, file);
    fclose(file);
    memset(letters, 0, sizeof letters);
    memset(letters, 'x', (size_t)number(line, "form", 0));
    in->messages = arena_calloc(in->arena, n, sizeof *in->messages);
    in->n_messages = n;
    for (size_t i = 0; i < n; i++) {
        chat_part *parts = arena_calloc(in->arena, 2, sizeof *parts);
        size_t k = 0;
        if (i + 1 == with_image) {
            parts[k++] = (chat_part){.kind = CHAT_IMAGE, .data = bytes_of_image, .data_bytes = n_image};
        }
        parts[k++] = (chat_part){.kind = CHAT_TEXT,
                                 .text = TEXTS[i % ARRAY_LEN(TEXTS)],
                                 .text_len = strlen(TEXTS[i % ARRAY_LEN(TEXTS)])};
        in->messages[i] = (chat_message){
            .role = i % 2 ? CHAT_ASSISTANT : CHAT_USER, .parts = parts, .n_parts = k, .is_string = k == 1};
    }
    in->form = flag(line, "form") ? &form : NULL;
    json_doc *kwargs = NULL;
    CHECK_OK(json_parse(&kwargs, THINKING, sizeof THINKING - 1, LIMIT_JSON_DEPTH, &d), d);
    in->template_kwargs = flag(line, "thinks") ? json_root(kwargs) : NULL;
    in->scope = (uint64_t)number(line, "scope", 0);
    make_params(&in->params, line);
    CHECK_OK(engine_prepare(s->e, &r, in, NULL, &d), d);
    chat_input_destroy(in);
    json_free(kwargs);
    return r;
}

static gen_request *make_request(script *s, const char *line)
{
    if (flag(line, "turns")) {
        return make_chat(s, line);
    }
    int32_t ids[N_CTX];
    const int32_t n = number(line, "prompt", 1);
    const uint64_t scope = (uint64_t)number(line, "scope", 0);
    gen_params p;
    gen_request *r = NULL;
    err_detail d = {0};
    make_prompt(ids, line, n);
    if (flag(line, "vectors")) {
        const gen_input inputs[] = {{.ids = ids, .n_ids = (size_t)n},
                                    {.ids = ids + 1, .n_ids = (size_t)n - 1}};
        CHECK_OK(engine_prepare_inputs(s->e, &r, inputs, ARRAY_LEN(inputs), GEN_POOL_MEAN, scope, &d), d);
        return r;
    }
    const gen_bias only = {.id = number(line, "says", 0), .bias = 1e9f};
    make_params(&p, line);
    p.biases = (gen_bias *)&only;
    p.n_biases = flag(line, "says");
    CHECK_OK(engine_prepare_tokens(s->e, &r, ids, (size_t)n, scope, &p, &d), d);
    return r;
}

/* > ask ID: flags are prompt, at, every, answer, choices (with the ids behind it), says (one token alone), stops (at an end),
 * least (tokens), scope, uncached, undrafted, uncopied, scored, sparse PERCENT, vectors, keep NAME, load NAME (alone, with
 * scope); of a chat turns, image (in which of
 * them), form (of so many letters), thinks (at most so many tokens) */
static void ask(script *s, const char *line)
{
    const int32_t id = number(line, "ask", 0);
    char name[32];
    err_detail d = {0};
    err_code prepared = ERR_OK;
    gen_request *r = NULL;
    int32_t n = 0;
    if (flag(line, "load")) {
        snprintf(name, sizeof name, "p%d", number(line, "load", 0));
        prepared = engine_prepare_load(s->e, &r, (uint64_t)number(line, "scope", 0), name, &d);
    } else {
        r = make_request(s, line);
    }
    for (gen_request *q = r; q; q = gen_request_next(q), n++) {
        CHECK(id + n < MOST_IDS);
        s->n_prompt[id + n] = gen_request_get_info(q).n_prompt_tokens;
        if (n) {
            gen_request_set_id(q, (uint64_t)(id + n));
        }
    }
    s->n_asked += n;
    atomic_fetch_add(&n_open, n);
    if (r && flag(line, "keep")) {
        snprintf(name, sizeof name, "p%d", number(line, "keep", 0));
        gen_request_keep_as(r, name);
    }
    const err_code err = r ? engine_submit(s->e, r, (uint64_t)id, &d) : prepared;
    if (err != ERR_OK) {
        bytes_printf(&s->out, "< #%d refused: %s\n", id, d.text);
        s->n_asked -= n;
        atomic_fetch_sub(&n_open, n);
        gen_request_free(r);
    }
}

/* A policy that has learned that guesses of the head are always right and cost nothing, or never right. */
static draft_policy learned(bool right)
{
    draft_policy p = {0};
    for (int32_t i = 0; i < 2000; i++) {
        const int32_t k = draft_policy_depth(&p, 1, DRAFT_MAX);
        draft_policy_result(&p, k, right ? k : 0);
        draft_policy_cost(&p, 1, k, right ? 10 : 10 + k);
    }
    return p;
}

static void tell_status(script *s)
{
    engine_status st;
    engine_get_status(s->e, &st);
    bytes_printf(
        &s->out,
        "< running %d waiting %d done %llu tokens %llu+%llu cached %llu queries %llu hits %llu entries %zu\n",
        st.n_running, st.n_waiting, (unsigned long long)st.n_requests, (unsigned long long)st.n_prompt_tokens,
        (unsigned long long)st.n_generated_tokens, (unsigned long long)st.n_cached_tokens,
        (unsigned long long)st.n_cache_queries, (unsigned long long)st.n_cache_hits,
        (size_t)st.n_cache_entries);
    bytes_printf(&s->out, "< drafted %llu/%llu copied %llu/%llu first %llu/%llu parked %llu steps %llu\n",
                 (unsigned long long)st.n_draft_accepted, (unsigned long long)st.n_drafted,
                 (unsigned long long)st.n_copied_accepted, (unsigned long long)st.n_copied,
                 (unsigned long long)st.n_first_accepted, (unsigned long long)st.n_first_drafts,
                 (unsigned long long)st.n_parked_steps, (unsigned long long)st.n_steps);
    bytes_printf(&s->out, "< ms %g %g %g blocks free %zu of %zu\n", st.prefill_ms_sum, st.vision_ms_sum,
                 st.decode_ms_sum, kv_pool_n_free(s->e->pool, KV_ALL), kv_pool_n_blocks(s->e->pool, KV_ALL));
}

static void tell_keys(script *s)
{
    for (int32_t i = 0; i < s->e->n_slots; i++) {
        const slot *at = &s->e->slots[i];
        uint8_t hash[HASH_BYTES];
        char hex[2 * HASH_BYTES + 1];
        if (at->req) {
            hash_sha256(hash, at->key, at->n_key * sizeof *at->key);
            hash_hex(hex, hash, HASH_BYTES);
            bytes_printf(&s->out, "< #%d has a key of %zu, %.16s\n", (int)at->req->id, at->n_key, hex);
        }
    }
}

/* Takes all blocks of keys and values, for which the cache gives way, but so many. */
static void starve(script *s, size_t n_left)
{
    void *block;
    while ((block = kv_pool_take(s->e->pool, KV_ALL)) != NULL) {
        CHECK(s->n_taken < MOST_BLOCKS);
        s->taken[s->n_taken++] = block;
    }
    for (size_t i = 0; i < n_left && s->n_taken; i++) {
        kv_pool_release(s->e->pool, s->taken[--s->n_taken]);
    }
}

static void feed(script *s)
{
    while (s->n_taken) {
        kv_pool_release(s->e->pool, s->taken[--s->n_taken]);
    }
}

/* What was logged since the last event, but for the time: lines with these words. */
static void tell_log(script *s, const char *words)
{
    for (char *line = log_news(), *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        const char *said = strchr(line, ' ');
        for (char *at = line; (at = strstr(at, PARLEY_SOURCE_DIR)) != NULL;) { /* another one elsewhere */
            memmove(at, at + strlen(PARLEY_SOURCE_DIR), strlen(at + strlen(PARLEY_SOURCE_DIR)) + 1);
        }
        if (strstr(line, words)) {
            bytes_printf(&s->out, "< log:%s\n", said ? said : line);
        }
    }
}

typedef struct kept {
    engine_cached all[32];
    size_t n;
} kept;

static int by_length(const void *a, const void *b)
{
    const engine_cached *x = a, *y = b;
    return x->is_on_disk != y->is_on_disk ? x->is_on_disk - y->is_on_disk
           : x->n_tokens != y->n_tokens   ? x->n_tokens - y->n_tokens
                                          : strcmp(x->name, y->name);
}

static void add_kept(void *ctx, const engine_cached *one)
{
    kept *k = ctx;
    CHECK(k->n < ARRAY_LEN(k->all) && one->used_at > 0);
    k->all[k->n++] = *one;
}

/* What a scope has in memory and on disk, shorter ones first. */
static void tell_kept(script *s, uint64_t scope)
{
    kept k = {.n = 0};
    engine_list_cache(s->e, scope, add_kept, &k);
    qsort(k.all, k.n, sizeof *k.all, by_length);
    for (size_t i = 0; i < k.n; i++) {
        const engine_cached *one = &k.all[i];
        bytes_printf(&s->out, "< %s: %d tokens, %llu bytes%s%s\n", one->is_on_disk ? "on disk" : "in memory",
                     one->n_tokens, (unsigned long long)one->n_bytes, one->name[0] ? ", named " : "",
                     one->name);
    }
    if (s->e->disk) {
        const size_t n_blocks = transcript_disk_blocks(s->e->disk);
        bytes_printf(&s->out, "< %zu files of blocks\n", n_blocks);
        const disk_cache_stats st = disk_cache_get_stats(s->e->disk);
        bytes_printf(&s->out,
                     "< hits %llu of %llu tokens, saves %llu, evictions %llu, errors %llu, bytes %llu\n",
                     (unsigned long long)st.n_hits, (unsigned long long)st.n_hit_tokens,
                     (unsigned long long)st.n_saves, (unsigned long long)st.n_evictions,
                     (unsigned long long)st.n_errors, (unsigned long long)st.bytes);
    }
}

static void find_name(script *s, const char *line, bool forgets)
{
    char name[32];
    engine_cached one;
    const int n_before = n_wakes;
    snprintf(name, sizeof name, "p%d", number(line, forgets ? "forget" : "find", 0));
    if (engine_find_named(s->e, (uint64_t)number(line, "scope", 0), name, forgets, &one)) {
        CHECK((n_wakes > n_before) == forgets); /* an engine that sleeps gives the memory back */
        bytes_printf(&s->out, "< %s: %d tokens, %llu bytes\n", one.name, one.n_tokens,
                     (unsigned long long)one.n_bytes);
    } else {
        bytes_printf(&s->out, "< no %s\n", name);
    }
}

/* Lets a call fail, once. */
static void fail(const char *line)
{
    for (size_t i = 0; i < ARRAY_LEN(TRANSCRIPT_CALLS); i++) {
        if (flag(line, TRANSCRIPT_CALLS[i])) {
            one_fails(TRANSCRIPT_CALLS[i], number(line, TRANSCRIPT_CALLS[i], 1));
            return;
        }
    }
    CHECK(!"a call");
}

/* Does what the script says until it waits. */
static void act(script *s)
{
    while (*s->at) {
        const char *line = s->at;
        const size_t len = strcspn(line, "\n") + 1;
        s->at += len;
        if (*line == '<') {
            continue;
        }
        if (*line == '!' && line != s->opened) {
            s->at = s->options = line;
            break;
        }
        bytes_append(&s->out, line, len);
        if (*line == '!') {
            tell_log(s, " --"); /* of the options; the rest is the machine's */
        }
        if (*line != '>') {
            continue; /* a remark */
        }
        if (flag(line, "ask")) {
            ask(s, line);
        } else if (flag(line, "cancel")) {
            engine_cancel(s->e, (uint64_t)number(line, "cancel", 0));
        } else if (flag(line, "starve")) {
            starve(s, (size_t)number(line, "starve", 0));
        } else if (flag(line, "feed")) {
            feed(s);
        } else if (flag(line, "fail")) {
            fail(line);
        } else if (flag(line, "hold") || flag(line, "release")) {
            transcript_disk_hold(s->e->disk, flag(line, "hold"));
        } else if (flag(line, "disk")) {
            tell_kept(s, (uint64_t)number(line, "scope", 0));
        } else if (flag(line, "find") || flag(line, "forget")) {
            find_name(s, line, flag(line, "forget"));
        } else if (flag(line, "pieces")) {
            piece_tenths = number(line, "pieces", 0);
        } else if (flag(line, "status")) {
            tell_status(s);
        } else if (flag(line, "keys")) {
            tell_keys(s);
        } else if (flag(line, "clear")) {
            const uint64_t scope = (uint64_t)number(line, "clear", 0);
            const int n_before = n_wakes;
            engine_clear_cache(s->e, &scope);
            CHECK(n_wakes > n_before);
        } else if (flag(line, "policy")) {
            s->e->draft_policy = learned(flag(line, "right"));
            s->e->lookup_policy = (lookup_policy){0};
        } else if (flag(line, "wait")) {
            s->n_waits = flag(line, "all") ? -1 : number(line, "wait", 1);
            return;
        } else {
            CHECK(!"an action");
        }
    }
    atomic_store(&s->is_over, true);
}

/* ---- what must always hold ---- */

typedef struct entry_sum {
    size_t n, n_bytes;
} entry_sum;

static void add_entry(void *ctx, const prefix_entry *e)
{
    entry_sum *sum = ctx;
    sum->n++;
    sum->n_bytes += e->bytes;
    CHECK(prefix_entry_len(e) > 0 && prefix_entry_len(e) <= MOST_CTX && prefix_entry_snapshot(e));
}

/* The request of a slot and how far it is. */
static void check_slot(const script *s, const engine *e, const slot *at)
{
    const gen_request *r = at->req;
    if (!r) {
        CHECK(!at->sampler && !at->cursor && at->chunk == 0 && !at->names && !at->awaits_prompt);
        return;
    }
    const int32_t total = (int32_t)r->prompt.len, predicted = at->timings.predicted_n;
    CHECK(at->sampler && at->prompt_done >= 0 && at->chunk >= 0 && at->prompt_done + at->chunk <= total);
    CHECK(at->next_boundary <= r->n_boundaries && at->media_done <= r->n_media);
    CHECK(r->scratch_bytes == 0 || at->phase == GEN_PHASE_VISION);
    CHECK(at->next_boundary == r->n_boundaries || r->boundaries[at->next_boundary].len > at->prompt_done ||
          at->chunk > 0);
    CHECK(at->next_boundary == 0 || r->boundaries[at->next_boundary - 1].len <= at->prompt_done);
    CHECK(seq_state_len(at->seq) <= seq_state_cap(at->seq));
    CHECK_INT(at->timings.predicted_n, s->n_predicted[r->id]);
    CHECK(at->first_token_ns == 0 ? predicted == 0 : at->phase == GEN_PHASE_DECODE || at->names);
    if (at->names || at->awaits_prompt || at->sparse != SPARSE_NONE || at->n_skipped || r->pool) {
        return; /* its prompt is not what the key says, or not yet */
    }
    CHECK_INT(at->n_key, 1 + total + predicted);
    int32_t n_rows = 0;
    for (int32_t i = 0; i < total; i++) { /* a token, or bits of an image */
        const bool is_row = n_rows < r->n_embed_rows && r->embed_rows[n_rows] == i;
        CHECK(is_row ? at->key[1 + i] >> 63 : (int32_t)(uint32_t)at->key[1 + i] == r->prompt.ids[i]);
        n_rows += is_row;
    }
    CHECK_INT(n_rows, r->n_embed_rows);
    CHECK_INT(at->key[0], r->scope);
    CHECK(at->phase == GEN_PHASE_DECODE || at->chunk > 0 || seq_state_len(at->seq) == at->prompt_done);
    CHECK(at->phase != GEN_PHASE_DECODE || seq_state_len(at->seq) >= total + (predicted ? predicted - 1 : 0));
    CHECK(at->drafter.n_drafts < NN_ROWS_EXACT);
    CHECK(e->drafting || at->timings.draft_n == 0);
}

/* Who has reserved the memory of a request. */
static const gen_request *owner_of(const gen_request *r)
{
    return r->of ? r->of : r;
}

/* Whether no slot before this one has another answer to the same prompt. */
static bool is_first_of(const engine *e, int32_t i)
{
    for (int32_t k = 0; k < i; k++) {
        if (e->slots[k].req && owner_of(e->slots[k].req) == owner_of(e->slots[i].req)) {
            return false;
        }
    }
    return true;
}

static void check_engine(const script *s)
{
    const engine *e = s->e;
    int32_t n_waiting = 0, n_running = 0, n_slots = 0;
    size_t n_reserved = 0;
    for (int32_t i = 0; i < e->n_slots; i++) {
        const gen_request *r = e->slots[i].req;
        check_slot(s, e, &e->slots[i]);
        n_slots += r != NULL;
        n_reserved += r && is_first_of(e, i) ? owner_of(r)->memory.bytes : 0;
    }
    inbox_count(e->inbox, &n_waiting, &n_running);
    CHECK_INT(n_waiting + n_running, s->n_asked - s->n_done);
    CHECK_INT(n_running, n_slots);
    CHECK(kv_pool_n_free(e->pool, KV_ALL) <= kv_pool_n_blocks(e->pool, KV_ALL));
    if (n_waiting == 0) { /* what is reserved is that of the requests that run */
        CHECK_INT(ledger_get_status(e->memory).used, n_reserved);
    }
    if (e->cache) {
        entry_sum sum = {0};
        for (uint64_t scope = 0; scope < SCOPES; scope++) {
            prefix_cache_list(e->cache, scope, add_entry, &sum);
        }
        const prefix_cache_stats st = prefix_cache_get_stats(e->cache);
        CHECK(sum.n <= st.n_entries && sum.n_bytes <= st.bytes && st.bytes <= e->cache_bytes);
        CHECK(st.n_entries - sum.n == 0 ? sum.n_bytes == st.bytes : sum.n_bytes < st.bytes);
        CHECK(st.n_hits <= st.n_queries && st.n_stores >= st.n_entries + st.n_evictions);
    }
}

/* ---- events ---- */

static void tell_event(script *s, const gen_event *ev)
{
    static const char *const ENDS[] = {"stop", "length", "cancelled", "error"};
    const gen_timings *t = &ev->timings;
    bytes_printf(&s->out, "< #%d ", (int)ev->request_id);
    switch (ev->type) {
    case GEN_PROGRESS:
        bytes_printf(&s->out, "%s %d/%d\n", gen_phase_name(ev->phase), ev->processed, ev->total);
        break;
    case GEN_PROMPT:
        bytes_printf(&s->out, "scored %d: %d/%d\n", ev->n_tokens, ev->processed, ev->total);
        break;
    case GEN_VECTOR:
        bytes_printf(&s->out, "vector of %d\n", ev->n_vector);
        break;
    case GEN_TOKENS:
        bytes_printf(&s->out, "token %d", t->predicted_n);
        if (t->draft_n + t->lookup_n) {
            bytes_printf(&s->out, ", drafts %d/%d %d/%d", t->draft_accepted_n, t->draft_n,
                         t->lookup_accepted_n, t->lookup_n);
        }
        bytes_printf(&s->out, "\n");
        break;
    default:
        bytes_printf(&s->out, "%s %s%s%s: prompt %d cached %d", ENDS[ev->finish], ev->error_name,
                     ev->error_name[0] ? ", " : "", ev->message, t->prompt_n, t->cache_n);
        if (t->sparse_n) {
            bytes_printf(&s->out, " read %d of %d", t->sparse_kept_n, t->sparse_n);
        }
        bytes_printf(&s->out, " answer %d drafts %d/%d %d/%d, ms %g %g %g %g\n", t->predicted_n,
                     t->draft_accepted_n, t->draft_n, t->lookup_accepted_n, t->lookup_n, t->queue_ms,
                     t->prompt_ms, t->ttft_ms, t->predicted_ms);
    }
}

/* Engine thread. */
static void on_event(void *ctx, gen_event *ev)
{
    script *s = ctx;
    const uint64_t id = ev->request_id;
    is_at_work = is_of_engine = true;
    pthread_mutex_lock(&s->lock);
    CHECK(id > 0 && id < MOST_IDS && !s->is_done[id]);
    tell_log(s, "");
    tell_event(s, ev);
    s->n_predicted[id] = ev->timings.predicted_n;
    if (ev->type == GEN_TOKENS) {
        CHECK_INT(ev->n_tokens, 1);
        CHECK(ev->tokens[0] >= 0 && ev->tokens[0] < engine_get_info(s->e)->n_vocab);
    }
    s->is_done[id] = ev->type == GEN_DONE;
    s->n_done += ev->type == GEN_DONE;
    atomic_fetch_sub(&n_open, ev->type == GEN_DONE);
    atomic_store(&n_looks, 0);
    engine_status st;
    engine_get_status(s->e, &st);
    if (ev->type != GEN_TOKENS || id != s->last_id || st.n_steps != s->last_step) {
        atomic_fetch_add(&now_ns, MS);
    }
    s->last_id = id;
    s->last_step = st.n_steps;
    gen_event_free(ev);
    check_engine(s);
    s->n_waits -= s->n_waits > 0;
    if (s->n_waits == 0 || (s->n_waits < 0 && s->n_done == s->n_asked)) {
        act(s);
    }
    pthread_mutex_unlock(&s->lock);
}

/* The folder of the model behind a word of a line; `other` if it is not there. */
static const char *model_dir_of(char *out, size_t cap, const char *line, const char *word, const char *other)
{
    const char *at = strstr(line, word);
    char name[64] = "";
    if (!at || at > line + strcspn(line, "\n")) {
        return other;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at + strlen(word), " \n"), at + strlen(word));
    snprintf(out, cap, "%s", check_data(name));
    return out;
}

static engine *open_engine(script *s, const char *line)
{
    static char dir[4096], judge_dir[4096];
    const int32_t disk = number(line, "disk", 0);
    snprintf(dir, sizeof dir, "%s", check_data("tiny"));
    (void)model_dir_of(dir, sizeof dir, line, " model ", NULL);
    engine_options opt = {.model_dir = dir,
                          .n_threads = 1,
                          .n_ctx = number(line, "context", N_CTX),
                          .n_parallel = number(line, "parallel", 1),
                          .n_queue = number(line, "queue", 0),
                          .prefill_chunk = number(line, "chunk", 64),
                          .cache_mib = number(line, "cache", 64),
                          .share_cache = flag(line, "shared"),
                          .no_draft = !flag(line, "draft"),
                          .prompt_lookup = number(line, "lookup", 0),
                          .sparse = {.threshold = number(line, "threshold", 0),
                                     .on = flag(line, "on"),
                                     .chunk = 8,
                                     .keep = 0.5f,
                                     .draft_dir = model_dir_of(judge_dir, sizeof judge_dir, line, " judge ",
                                                               flag(line, "judged") ? dir : NULL)},
                          .exact = true,
                          .cache_disk_mib = disk,
                          .cache_disk = disk ? s->folder : NULL,
                          .vision_cache_mib = number(line, "images", 0),
                          .template_file = PARLEY_SOURCE_DIR "/tools/seedling/chat_template.jinja",
                          .on_event = on_event,
                          .on_event_ctx = s};
    engine *e = NULL;
    err_detail d = {0};
    log_set_level(flag(line, "debug") ? LOG_DEBUG : LOG_WARN);
    CHECK(engine_parse_cpu("generic", &opt.cpu_mask));
    opt.cpu_mask |= flag(line, "lacking") ? ~cpu_flags() : 0;
    gen_params_init(&opt.defaults);
    CHECK_OK(engine_open(&e, &opt, &d), d);
    if (!e) {
        exit(1);
    }
    return e;
}

/* From the opening of an engine to its end. */
static void run_engine(script *s)
{
    s->opened = s->options;
    log_news_at = lseek(log_news_fd, 0, SEEK_END);
    s->e = open_engine(s, s->options);
    s->options = NULL;
    atomic_store(&s->is_over, false);
    pthread_mutex_lock(&s->lock);
    act(s);
    pthread_mutex_unlock(&s->lock);
    while (!atomic_load(&s->is_over)) {
        usleep(200);
    }
    engine_close(s->e);
    s->e = NULL;
    CHECK_INT(s->n_done, s->n_asked);
}

static void run(const char *path)
{
    static script s;
    static char text[TEXT_BYTES];
    s = (script){.out = bytes_empty(TEXT_BYTES), .lock = PTHREAD_MUTEX_INITIALIZER};
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
    if (file) {
        fclose(file);
    }
    const char *options = strstr(text, "! ");
    CHECK(options != NULL);
    s.at = text;
    s.options = options ? options : text;
    folder_make(s.folder);
    atomic_store(&now_ns, 5000LL * 1000 * MS);
    piece_tenths = 0;
    while (s.options) {
        run_engine(&s);
    }
    folder_remove(s.folder);
    recorded_compare(path, text, bytes_str(&s.out));
    bytes_deinit(&s.out);
}

int main(int argc, char **argv)
{
    static const char PLACE[] = PARLEY_SOURCE_DIR "/tests/engine/transcripts";
    struct dirent **found = NULL;
    log_set_level(LOG_WARN);
    FILE *log = tmpfile();
    char log_path[64];
    err_detail d = {0};
    CHECK(log != NULL);
    log_news_fd = fileno(log);
    snprintf(log_path, sizeof log_path, "/proc/self/fd/%d", log_news_fd);
    CHECK_OK(log_open(log_path, &d), d);
    const int n = scandir(PLACE, &found, NULL, alphasort);
    int n_run = 0;
    for (int i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", PLACE, found[i]->d_name);
        const size_t len = strlen(path);
        if (strcmp(path + len - 4, ".txt") == 0 && strstr(path, argc > 1 ? argv[1] : ONLY)) {
            run(path);
            n_run++;
        }
        free(found[i]);
    }
    free(found);
    fclose(log);
    CHECK(n_run > 0);
    CHECK_DONE();
}
