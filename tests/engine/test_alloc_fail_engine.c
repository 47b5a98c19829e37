/* Every allocation of preparing a request, and of what an engine's sequences are made of, fails once. */
#include "base/compiler.h"
#include "base/log.h"
#include "engine/cache/disk_cache_state.h"
#include "engine/cache/vision_cache.h"
#include "engine/catalog.h"
#include "engine/draft/draft.h"
#include "engine/draft/lookup.h"
#include "engine/engine_private.h"
#include "engine/inbox.h"
#include "engine/request.h"
#include "tests/alloc_fail.h"
#include "tests/engine/answers.h"
#include "tests/folder.h"
#include "tests/model/tiny.h"
#include "tests/recorded.h"

enum { MAX_POINTS = 5000, LENGTH = 12, DISK_TOKENS = SEQ_PAGE_TOKENS + 20 };

/* What could not be made holds nothing. */
static err_code use_lookup(void *context)
{
    lookup l = {0};
    drafter d = {0};
    (void)context;
    const bool ok = lookup_init(&l, 100) && drafter_init(&d, 64);
    CHECK((l.last != NULL) == (l.before != NULL));
    drafter_deinit(&d);
    lookup_deinit(&l);
    return ok ? ERR_OK : ERR_NOMEM;
}

static err_code prepare_text(void *context)
{
    gen_request *r = NULL;
    gen_params p;
    gen_params_init(&p);
    p.n_choices = 2;
    const err_code err = engine_prepare_text(context, &r, "What is 7 plus 5?", 17, true, 0, &p, NULL);
    CHECK((r != NULL) == (err == ERR_OK));
    gen_request_free(r);
    return err;
}

/* Texts with others around them: each is whole, or there is no request. */
static err_code prepare_inputs(void *context)
{
    static const gen_input inputs[] = {
        {.text = "What is it?",
         .len = 11,
         .before = "Question: what is 1 plus 1, and what is 2 plus 2? ",
         .behind = " Answer:"},
        {.text = "What else is it, if it is not that which it was?", .len = 48}};
    static size_t expected[2];
    gen_request *r = NULL;
    const err_code err =
        engine_prepare_inputs(context, &r, inputs, ARRAY_LEN(inputs), GEN_POOL_LAST, 0, NULL);
    CHECK((r != NULL) == (err == ERR_OK));
    for (size_t i = 0; r && i < ARRAY_LEN(inputs); i++) {
        expected[i] = expected[i] ? expected[i] : r->inputs[i].len;
        CHECK_INT(r->inputs[i].len, expected[i]);
    }
    gen_request_free(r);
    return err;
}

static err_code prepare_tokens(void *context)
{
    static const int32_t ids[] = {1, 2, 3};
    gen_request *r = NULL;
    gen_params p;
    gen_params_init(&p);
    const err_code err = engine_prepare_tokens(context, &r, ids, 3, 0, &p, NULL);
    CHECK((r != NULL) == (err == ERR_OK));
    gen_request_free(r);
    return err;
}

/* A prompt that could be made without some memory is the one that is made with all of it. */
typedef struct prompt_ids {
    int32_t ids[1024];
    size_t n; /* 0: not known yet */
} prompt_ids;

static void check_prompt(prompt_ids *expected, const gen_request *r)
{
    if (!r) {
        return;
    }
    CHECK(r->prompt.len <= ARRAY_LEN(expected->ids));
    if (expected->n == 0) {
        memcpy(expected->ids, r->prompt.ids, r->prompt.len * sizeof *expected->ids);
        expected->n = r->prompt.len;
    }
    CHECK(r->prompt.len == expected->n &&
          memcmp(r->prompt.ids, expected->ids, expected->n * sizeof *expected->ids) == 0);
}

static err_code prepare_chat(void *context)
{
    static prompt_ids expected;
    chat_input *in = chat_input_create((size_t)1 << 20);
    if (!in) {
        return ERR_NOMEM;
    }
    chat_part question = {.kind = CHAT_TEXT, .text = "What is <think>?", .text_len = 16},
              said = {.kind = CHAT_TEXT, .text = "A thought.", .text_len = 10};
    chat_message all[] = {{.role = CHAT_SYSTEM, .parts = &said, .n_parts = 1},
                          {.role = CHAT_USER, .parts = &question, .n_parts = 1},
                          {.role = CHAT_ASSISTANT, .parts = &said, .n_parts = 1},
                          {.role = CHAT_USER, .parts = &question, .n_parts = 1}};
    gen_request *r = NULL;
    in->messages = all;
    in->n_messages = sizeof all / sizeof *all;
    gen_params_init(&in->params);
    const err_code err = engine_prepare(context, &r, in, NULL, NULL);
    CHECK((r != NULL) == (err == ERR_OK));
    check_prompt(&expected, r);
    gen_request_free(r);
    chat_input_destroy(in);
    return err;
}

/* The rounds of calls before the last question stand as they stood when they were answered, which takes further prompts. */
static err_code prepare_rounds(void *context)
{
    static prompt_ids expected;
    static json_doc *arguments;
    chat_input *in = chat_input_create((size_t)1 << 20);
    if (!in) {
        return ERR_NOMEM;
    }
    if (!arguments) {
        CHECK_INT(json_parse(&arguments, "{\"a\":1}", 7, 4, NULL), ERR_OK);
    }
    chat_part question = {.kind = CHAT_TEXT, .text = "What is it?", .text_len = 11},
              said = {.kind = CHAT_TEXT, .text = "It is that.", .text_len = 11};
    chat_tool_call calls = {.id = "a", .name = "look", .arguments = json_root(arguments)};
    chat_message all[] = {
        {.role = CHAT_USER, .parts = &question, .n_parts = 1},
        {.role = CHAT_ASSISTANT, .reasoning = "Shall I?", .tool_calls = &calls, .n_tool_calls = 1},
        {.role = CHAT_TOOL, .parts = &said, .n_parts = 1, .tool_call_id = "a", .name = "look"},
        {.role = CHAT_ASSISTANT, .parts = &said, .n_parts = 1, .reasoning = "So it is."},
        {.role = CHAT_USER, .parts = &question, .n_parts = 1}};
    gen_request *r = NULL;
    in->messages = all;
    in->n_messages = ARRAY_LEN(all);
    gen_params_init(&in->params);
    const err_code err = engine_prepare(context, &r, in, NULL, NULL);
    CHECK((r != NULL) == (err == ERR_OK));
    check_prompt(&expected, r);
    gen_request_free(r);
    chat_input_destroy(in);
    return err;
}

static err_code prepare_image(void *context)
{
    static bytes png;
    err_detail d = {0};
    if (!png.data) {
        bytes_init(&png, 1 << 20);
        CHECK_OK(file_read(&png, check_data("tiny/cases/img_a.png"), &d), d);
        return ERR_OK;
    }
    chat_input *in = chat_input_create((size_t)1 << 20);
    if (!in) {
        return ERR_NOMEM;
    }
    /* The prompt's memory, which is for 64 tokens at first, is used up within the image. */
    static const char before[] = "9876543210987654321098765432109876543210987654321098765",
                      behind[] = "What is it?";
    chat_part parts[] = {{.kind = CHAT_TEXT, .text = before, .text_len = strlen(before)},
                         {.kind = CHAT_IMAGE, .data = (const uint8_t *)png.data, .data_bytes = png.len},
                         {.kind = CHAT_TEXT, .text = behind, .text_len = strlen(behind)}};
    chat_message one = {.role = CHAT_USER, .parts = parts, .n_parts = 3};
    gen_request *r = NULL;
    in->messages = &one;
    in->n_messages = 1;
    gen_params_init(&in->params);
    const err_code err = engine_prepare(context, &r, in, NULL, NULL);
    CHECK((r != NULL) == (err == ERR_OK));
    CHECK(!r || (r->embed_rows[0] < 64 && r->embed_rows[r->n_embed_rows - 1] >= 64));
    gen_request_free(r);
    chat_input_destroy(in);
    return err;
}

/* The parts of an engine that have no thread; what could not be made is NULL and holds nothing. */
static err_code make_parts(void *context)
{
    prefix_cache *prefixes = prefix_cache_create(1 << 20, 4, 8);
    vision_cache *images = vision_cache_create(1 << 20, 8);
    inbox *in = inbox_create(4, 2);
    disk_index *index = disk_index_create();
    catalog *list = NULL;
    const bool is_listed = catalog_open(&list, context, NULL) == ERR_OK;
    CHECK((list != NULL) == is_listed);
    const bool ok = prefixes && images && in && index && is_listed;
    prefix_cache_destroy(prefixes);
    vision_cache_destroy(images);
    inbox_destroy(in);
    disk_index_destroy(index);
    catalog_close(list);
    return ok ? ERR_OK : ERR_NOMEM;
}

/* Rows of a video that there is no memory for are not found, and nothing else. */
static err_code keep_rows(void *context)
{
    static const float rows[4 * 8] = {1, 2};
    const uint8_t key[HASH_BYTES] = {7};
    double times[] = {0.5, 1.5};
    const patches p = {.t = 2, .h = 2, .w = 4, .n_tokens = 4, .timestamps = times};
    vision_cache *images = context;
    vision_cache_clear(images, NULL);
    vision_cache_store(images, key, &p, 0, rows);
    const vision_features *f = vision_cache_find(images, key);
    const bool ok = f != NULL;
    CHECK(!f || (memcmp(f->rows, rows, sizeof rows) == 0 && memcmp(f->timestamps, times, sizeof times) == 0));
    CHECK_INT(vision_cache_get_stats(images).bytes > 0, ok);
    vision_cache_release(f);
    return ok ? ERR_OK : ERR_NOMEM;
}

static void test_parts(void)
{
    char folder[FOLDER_NAME], one[FOLDER_NAME + 8];
    folder_make(folder);
    snprintf(one, sizeof one, "%s/one", folder);
    CHECK_INT(symlink(check_data("tiny"), one), 0);
    const size_t n_parts = alloc_fail_each(make_parts, folder, MAX_POINTS);
    vision_cache *images = vision_cache_create(1 << 20, 8);
    const size_t n_rows = alloc_fail_each(keep_rows, images, MAX_POINTS);
    printf("parts %zu, rows %zu\n", n_parts, n_rows);
    CHECK(n_parts >= 10 && n_rows >= 3);
    vision_cache_destroy(images);
}

/* ---- the cache on disk, whose thread is this one ---- */

typedef struct disk_play {
    tiny t;
    prefix_cache *pc;
    seq_state *seq;
    uint64_t key[1 + DISK_TOKENS];
    disk_cache_options options;
    disk_cache *dc; /* its own thread has ended */
} disk_play;

static void wake(void *ctx)
{
    (void)ctx;
}

/* Opens it, and ends its thread: what that does is asked of it here. */
static err_code open_disk(void *context)
{
    disk_play *p = context;
    const err_code err = disk_cache_open(&p->dc, &p->options, NULL);
    CHECK((p->dc != NULL) == (err == ERR_OK));
    if (p->dc) {
        pthread_mutex_lock(&p->dc->lock);
        p->dc->is_stopping = true;
        pthread_cond_broadcast(&p->dc->work);
        pthread_mutex_unlock(&p->dc->lock);
        pthread_join(p->dc->thread, NULL);
        p->dc->thread_started = p->dc->is_stopping = false;
    }
    return err;
}

static err_code open_and_close_disk(void *context)
{
    disk_play *p = context;
    const err_code err = open_disk(context);
    disk_cache_close(p->dc);
    p->dc = NULL;
    return err;
}

static void forget_all(disk_cache *dc)
{
    disk_cache_clear(dc, NULL);
    disk_drop_unused(dc);
    CHECK_INT(disk_index_bytes(dc->index), 0);
}

/* What is saved is whole, or nothing of it is left. */
static err_code save_to_disk(void *context)
{
    disk_play *p = context;
    size_t n = 0;
    p->dc->source = prefix_cache_get(p->pc, p->key, 1 + DISK_TOKENS);
    const bool ok = disk_run_save(p->dc);
    p->dc->source = NULL;
    (void)disk_index_entries(p->dc->index, &n);
    CHECK_INT(n, ok);
    CHECK_INT(disk_index_bytes(p->dc->index) > 0, ok);
    forget_all(p->dc);
    return ok ? ERR_OK : ERR_NOMEM;
}

/* What cannot be read for lack of memory stays, as it is not damaged. */
static err_code load_from_disk(void *context)
{
    disk_play *p = context;
    disk_hit hit;
    p->dc->source = prefix_cache_get(p->pc, p->key, 1 + DISK_TOKENS);
    if (!disk_run_save(p->dc)) {
        forget_all(p->dc);
        return ERR_NOMEM;
    }
    p->dc->source = NULL;
    const bool found = disk_cache_find(p->dc, p->key, 1 + DISK_TOKENS, 0, &hit);
    seq_snapshot *snapshot = found ? seq_snapshot_alloc(p->seq, hit.n_tokens, hit.mtp_len) : NULL;
    disk_load *l = snapshot ? disk_cache_load(p->dc, &hit, p->key, snapshot) : NULL;
    bool ok = false;
    if (l) {
        disk_serve_loads(p->dc);
        CHECK(disk_load_has_ended(p->dc, l));
        ok = l->state == LOAD_DONE;
        disk_load_free(p->dc, l);
    }
    size_t n = 0;
    (void)disk_index_entries(p->dc->index, &n);
    CHECK_INT(n, 1);
    forget_all(p->dc);
    return ok ? ERR_OK : ERR_NOMEM;
}

static void test_disk(void)
{
    int32_t ids[DISK_TOKENS];
    char folder[FOLDER_NAME];
    disk_play p = {.t = tiny_open(1, ~0u, KV_F16)};
    folder_make(folder);
    p.pc = prefix_cache_create(64 << 20, 8, TINY_H);
    for (int32_t i = 0; i < DISK_TOKENS; i++) {
        ids[i] = 100 + i;
        p.key[1 + i] = (uint64_t)ids[i];
    }
    p.seq = tiny_seq(&p.t);
    tiny_run(&p.t, p.seq, ids, DISK_TOKENS, false, false);
    CHECK(prefix_cache_store(p.pc, p.key, 1 + DISK_TOKENS, p.seq, decoder_hidden(p.t.sc, DISK_TOKENS - 1)));
    const seq_snapshot_parts parts =
        seq_snapshot_get_parts(prefix_cache_get(p.pc, p.key, 1 + DISK_TOKENS)->snapshot);
    p.options = (disk_cache_options){.dir = folder,
                                     .budget = 1 << 20,
                                     .block_bytes = parts.block_bytes,
                                     .own_bytes = seq_snapshot_own_bytes(&parts),
                                     .hidden_size = TINY_H,
                                     .wake = wake};
    const size_t n_open = alloc_fail_each(open_and_close_disk, &p, MAX_POINTS);
    CHECK_INT(open_disk(&p), ERR_OK);
    const size_t n_save = alloc_fail_each(save_to_disk, &p, MAX_POINTS),
                 n_load = alloc_fail_each(load_from_disk, &p, MAX_POINTS);
    printf("disk: open %zu, save %zu, load %zu\n", n_open, n_save, n_load);
    CHECK(n_open >= 6 && n_save >= 4 && n_load >= n_save + 8);
    disk_cache_close(p.dc);
    seq_state_destroy(p.seq);
    prefix_cache_destroy(p.pc);
    tiny_close(&p.t);
}

/* A request that only reads a cached prompt by its name. */
static err_code prepare_load(void *context)
{
    gen_request *r = NULL;
    const err_code err = engine_prepare_load(context, &r, 0, "one", NULL);
    CHECK((r != NULL) == (err == ERR_OK));
    gen_request_free(r);
    return err;
}

static void test_named(const char *dir)
{
    static int32_t ids[2 * NN_DELTA_BLOCK];
    char folder[FOLDER_NAME];
    gen_request *r = NULL;
    gen_params p;
    err_detail d = {0};
    folder_make(folder);
    engine *e = answers_open(&(engine_options){.model_dir = dir,
                                               .n_ctx = 512,
                                               .n_parallel = 1,
                                               .n_threads = 1,
                                               .cache_mib = 16,
                                               .cache_disk = folder,
                                               .cache_disk_mib = 16});
    gen_params_init(&p);
    p.max_tokens = 0;
    CHECK_OK(engine_prepare_tokens(e, &r, ids, ARRAY_LEN(ids), 0, &p, &d), d);
    gen_request_keep_as(r, "one");
    answer a = {.n = 0};
    answers_submit(e, r, 1);
    answers_collect(&a, 1, 1);
    const size_t n = alloc_fail_each(prepare_load, e, MAX_POINTS);
    printf("load %zu\n", n);
    CHECK(n >= 1);
    engine_close(e);
}

/* The vision tower of a model that is open, with its matrices in 8 bits. */
static err_code open_vision(void *context)
{
    const engine *open = context;
    engine e = {.model = open->model, .compute = open->compute};
    const engine_options opt = {.vision_bits = 8};
    const err_code err = engine_open_vision(&e, &opt, NULL);
    CHECK(err != ERR_OK || (e.vision && e.vision_matrices));
    vit_close(e.vision);
    quantized_close(e.vision_matrices);
    return err;
}

/* A whole engine, with another model that judges its prompts. */
static err_code open_whole(void *context)
{
    engine_options opt = {
        .model_dir = context,
        .n_ctx = 256,
        .n_parallel = 1,
        .n_threads = 1,
        .cache_mib = 1,
        .vision_cache_mib = 1,
        .prompt_lookup = 5,
        .sparse = {.threshold = 64, .on = true, .chunk = 8, .keep = 0.5f, .draft_dir = context},
        .on_event = answers_on_event};
    engine *e = NULL;
    gen_params_init(&opt.defaults);
    const err_code err = engine_open(&e, &opt, NULL);
    CHECK((e != NULL) == (err == ERR_OK));
    engine_close(e);
    return err;
}

/* With a template that is refused, for what it uses and not for a lack of memory. */
static err_code open_refused(void *context)
{
    engine_options opt = {.model_dir = check_data("tiny"),
                          .template_file = context,
                          .n_ctx = 256,
                          .n_parallel = 1,
                          .n_threads = 1};
    engine *e = NULL;
    err_detail d = {0};
    gen_params_init(&opt.defaults);
    const err_code err = engine_open(&e, &opt, &d);
    CHECK(!e);
    CHECK(err == ERR_NOMEM || !strstr(d.text, "memory"));
    return err == ERR_UNSUPPORTED ? ERR_OK : err;
}

/* ---- the engine's own thread ---- */

/* The nth allocation fails: from the end of the answers that run to that of the next ones, or from what is first told of those
 * that run. How many there are before an answer begins is not always the same. 0: none. */
static _Atomic int32_t n_running;
static _Atomic size_t fail_next, fail_n;

static void on_event(void *ctx, gen_event *ev)
{
    const bool is_last = ev->type == GEN_DONE && --n_running == 0;
    const size_t next = fail_next; /* who waits for the event sets that of the next ones */
    const size_t n = fail_n;
    if (is_last) {
        alloc_fail_at(0);
    }
    answers_on_event(ctx, ev);
    if (is_last) {
        alloc_fail_at(next);
    } else if (n) {
        fail_n = 0;
        alloc_fail_at(n);
    }
}

typedef struct ending {
    int32_t ids[LENGTH], n, n_vectors, n_scored;
    gen_finish finish;
    err_code error;
    char message[256];
} ending;

/* Requests whose answers memory lacks for. */
typedef enum request_kind {
    PLAIN,
    CACHED,
    UNDRAFTED,
    CHOICES,
    FORMED,
    IMAGE,
    SCORED,
    VECTORS,
    RANKS,
    N_KINDS
} request_kind;

/* scope: another one has other cached prompts. */
static gen_request *prepare_kind(engine *e, request_kind kind, uint64_t scope)
{
    static const char TEXT[] = "What is 7 plus 5?";
    static const grammar_spec form = {.kind = SPEC_TEXT, .text = "xxxxxxxxxxxx"};
    static bytes png;
    const gen_input inputs[] = {{.text = TEXT, .len = 4}, {.text = TEXT, .len = 7}};
    gen_bias bias = {.id = 5, .bias = -1};
    gen_request *r = NULL;
    gen_params p;
    err_detail d = {0};
    gen_params_init(&p);
    p.temperature = 0;
    p.max_tokens = LENGTH;
    p.ignore_eos = true;
    p.n_top_logprobs = 1;
    p.biases = &bias;
    p.n_biases = 1;
    p.n_choices = kind == CHOICES ? 2 : 1;
    p.scores_prompt = kind == SCORED;
    p.no_draft = kind == UNDRAFTED;
    if (kind == VECTORS || kind == RANKS) {
        const gen_pool pool = kind == VECTORS ? GEN_POOL_MEAN : GEN_POOL_YES;
        CHECK_OK(engine_prepare_inputs(e, &r, inputs, 2, pool, scope, &d), d);
        return r;
    }
    if (kind != FORMED && kind != IMAGE) {
        CHECK_OK(engine_prepare_text(e, &r, TEXT, sizeof TEXT - 1, true, scope, &p, &d), d);
        return r;
    }
    if (!png.data) {
        png = bytes_empty(1 << 20);
        CHECK_OK(file_read(&png, check_data("tiny/cases/img_a.png"), &d), d);
    }
    chat_input *in = chat_input_create((size_t)1 << 20);
    chat_part parts[] = {{.kind = CHAT_TEXT, .text = TEXT, .text_len = sizeof TEXT - 1},
                         {.kind = CHAT_IMAGE, .data = (const uint8_t *)png.data, .data_bytes = png.len}};
    chat_message one = {.role = CHAT_USER, .parts = parts, .n_parts = kind == IMAGE ? 2 : 1};
    CHECK(in != NULL);
    in->messages = &one;
    in->n_messages = 1;
    in->params = p;
    in->scope = scope;
    in->form = kind == FORMED ? &form : NULL;
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    chat_input_destroy(in);
    return r;
}

static ending run(engine *e, uint64_t id, request_kind kind)
{
    ending end = {.n = 0};
    gen_request *r = prepare_kind(e, kind, kind == CACHED ? 0 : id);
    int32_t n_left = 1;
    if (gen_request_next(r)) {
        gen_request_set_id(gen_request_next(r), id + 1);
        n_left++;
    }
    n_running = n_left;
    answers_submit(e, r, id);
    while (n_left > 0) {
        void *message = NULL;
        if (!mailbox_pop_wait(answer_events, &message, ANSWER_WAIT_MS)) {
            check_fail(__FILE__, __LINE__, "no event for a minute");
            exit(1);
        }
        gen_event *ev = message;
        CHECK(ev->request_id - id <= 1);
        for (int32_t i = 0;
             ev->type == GEN_TOKENS && ev->request_id == id && i < ev->n_tokens && end.n < LENGTH; i++) {
            end.ids[end.n++] = ev->tokens[i];
        }
        end.n_vectors += ev->type == GEN_VECTOR;
        end.n_scored += ev->type == GEN_PROMPT ? ev->n_tokens : 0;
        if (ev->type == GEN_DONE) {
            n_left--;
            if (end.finish != GEN_FINISH_ERROR) { /* of several the first that failed */
                end.finish = ev->finish;
                end.error = ev->error;
                snprintf(end.message, sizeof end.message, "%s", ev->message);
            }
        }
        gen_event_free(ev);
    }
    return end;
}

/* What came of the answers of a kind, each once. */
typedef struct outcomes {
    char lines[32][300];
    size_t n;
} outcomes;

static void note_ending(outcomes *o, const ending *end)
{
    char is[300];
    size_t at = 0;
    snprintf(is, sizeof is, "%s", end->finish == GEN_FINISH_ERROR ? end->message : "whole");
    while (at < o->n && strcmp(o->lines[at], is) < 0) {
        at++;
    }
    if (at < o->n && strcmp(o->lines[at], is) == 0) {
        return;
    }
    CHECK(o->n < ARRAY_LEN(o->lines));
    memmove(o->lines + at + 1, o->lines + at, (o->n - at) * sizeof *o->lines);
    memcpy(o->lines[at], is, sizeof is);
    o->n++;
}

/* An answer that memory lacks for ends with that error, once, or is what it would be; the next one is. */
static void test_answers(const char *dir, const char *template)
{
    static const char *const NAMES[] = {"plain", "cached", "undrafted", "choices", "formed",
                                        "image", "scored", "vectors",   "ranks"};
    enum { PASSES = 4, EARLY = 12, CALM = 12 };
    engine *e = NULL;
    err_detail d = {0};
    bytes out = bytes_empty(1 << 16);
    engine_options opt = {.model_dir = dir,
                          .template_file = template,
                          .n_ctx = 1024,
                          .n_parallel = 2,
                          .n_threads = 1,
                          .cache_mib = 16,
                          .cpu_mask = test_cpu_mask(),
                          .on_event = on_event};
    gen_params_init(&opt.defaults);
    CHECK_OK(engine_open(&e, &opt, &d), d);
    if (!e) {
        exit(1);
    }
    uint64_t id = 1;
    for (request_kind kind = 0; kind < N_KINDS; kind++, id += 2) {
        outcomes seen = {.n = 0};
        int32_t n_calm = 0;
        const ending wanted = run(e, id, kind);
        CHECK(wanted.finish != GEN_FINISH_ERROR);
        for (size_t n = 0; n < PASSES * EARLY || n_calm < CALM; n++) {
            const bool is_early = n < PASSES * EARLY;
            fail_next = n + 1 < PASSES * EARLY ? 1 + (n + 1) % EARLY : 0;
            fail_n = is_early ? 0 : n + 1 - PASSES * EARLY;
            id += 2;
            const ending end = run(e, id, kind);
            const bool failed = end.finish == GEN_FINISH_ERROR;
            CHECK(end.n <= LENGTH && memcmp(end.ids, wanted.ids, (size_t)end.n * sizeof *end.ids) == 0);
            CHECK(failed ? end.error == ERR_NOMEM
                         : end.n == wanted.n && end.n_vectors == wanted.n_vectors &&
                               end.n_scored == wanted.n_scored);
            n_calm = failed || is_early ? 0 : n_calm + 1;
            note_ending(&seen, &end);
        }
        fail_n = 0;
        id += 2;
        const ending after = run(e, id, kind);
        CHECK(after.n == wanted.n && memcmp(after.ids, wanted.ids, (size_t)after.n * sizeof *after.ids) == 0);
        bytes_printf(&out, "%s\n", NAMES[kind]);
        for (size_t i = 0; i < seen.n; i++) {
            bytes_printf(&out, "  %s\n", seen.lines[i]);
        }
    }
    recorded_check("engine/alloc_fail_engine.txt", bytes_str(&out));
    bytes_deinit(&out);
    engine_close(e);
}

int main(void)
{
    log_set_level(LOG_OFF);
    static char dir[4096], tiny_dir[4096],
        template[] = PARLEY_SOURCE_DIR "/tools/seedling/chat_template.jinja";
    snprintf(dir, sizeof dir, "%s/assets/seedling", PARLEY_SOURCE_DIR);
    answers_begin();
    engine *e =
        answers_open(&(engine_options){.model_dir = dir, .n_ctx = 1024, .n_parallel = 1, .n_threads = 1});
    const size_t n_lookup = alloc_fail_each(use_lookup, NULL, MAX_POINTS),
                 n_text = alloc_fail_each(prepare_text, e, MAX_POINTS),
                 n_tokens = alloc_fail_each(prepare_tokens, e, MAX_POINTS),
                 n_chat = alloc_fail_each(prepare_chat, e, MAX_POINTS);
    CHECK_INT(prepare_inputs(e), ERR_OK);
    CHECK(alloc_fail_each(prepare_inputs, e, MAX_POINTS) >= 5);
    CHECK_INT(prepare_rounds(e), ERR_OK);
    const size_t n_rounds = alloc_fail_each(prepare_rounds, e, MAX_POINTS);
    printf("allocations: lookup %zu, text %zu, tokens %zu, chat %zu\n", n_lookup, n_text, n_tokens, n_chat);
    CHECK_INT(n_lookup, 3);
    CHECK(n_text >= 5 && n_tokens >= 3 && n_chat >= 10 && n_rounds > n_chat);
    engine_close(e);
    snprintf(tiny_dir, sizeof tiny_dir, "%s", check_data("tiny"));
    test_answers(tiny_dir, template);
    e = answers_open(&(engine_options){
        .model_dir = tiny_dir, .template_file = template, .n_ctx = 1024, .n_parallel = 1, .n_threads = 1});
    CHECK_INT(prepare_image(e), ERR_OK);
    const size_t n_image = alloc_fail_each(prepare_image, e, MAX_POINTS);
    const size_t n_vision = alloc_fail_each(open_vision, e, MAX_POINTS);
    printf("image %zu, vision %zu\n", n_image, n_vision);
    CHECK(n_image >= 10 && n_vision >= 10);
    test_parts();
    test_disk();
    engine_close(e);
    test_named(tiny_dir);
    const size_t n_whole = alloc_fail_each(open_whole, tiny_dir, MAX_POINTS);
    printf("whole %zu\n", n_whole);
    CHECK(n_whole >= 300);
    char folder[FOLDER_NAME], refused[FOLDER_NAME + 16];
    folder_make(folder);
    snprintf(refused, sizeof refused, "%s/zork.jinja", folder);
    FILE *f = fopen(refused, "w");
    CHECK(f && fputs("{{ zork(messages) }}", f) >= 0 && fclose(f) == 0);
    CHECK(alloc_fail_each(open_refused, refused, MAX_POINTS) >= 100);
    answers_end();
    CHECK_DONE();
}
