/* The engine on a small checkpoint with random weights: routes, equivalences, cancelling, bad
 * input. */
#include "engine/engine.h"

#include <pthread.h>
#include <sched.h>

#include "base/file.h"
#include "base/mailbox.h"
#include "tests/check.h"
#include "tests/cpu.h"

enum { MAX_IDS = 256 };

/* What one request said. */
typedef struct answer {
    int32_t ids[MAX_IDS];
    int32_t n;
    gen_finish finish;
    err_code error;
    gen_timings timings;
    int n_progress;
} answer;

static mailbox *events;
static const char *cache_type; /* of the engines opened from here on; NULL: the default */

static void on_event(void *ctx, gen_event *ev)
{
    (void)ctx;
    if (!mailbox_push(events, ev)) {
        check_fail(__FILE__, __LINE__, "the event mailbox is full");
        gen_event_free(ev);
    }
}

static engine *open_engine_with(int32_t n_parallel, int32_t chunk, size_t n_threads, int64_t cache_mib)
{
    static char dir[4096], template[4096];
    snprintf(dir, sizeof dir, "%s", check_data("tiny"));
    snprintf(template, sizeof template, "%s/tools/seedling/chat_template.jinja", PARLEY_SOURCE_DIR);
    engine_options opt = {.model_dir = dir,
                          .template_file = template,
                          .n_ctx = 2048,
                          .n_parallel = n_parallel,
                          .prefill_chunk = chunk,
                          .n_threads = n_threads,
                          .cpu_mask = test_cpu_mask(),
                          .n_queue = 8,
                          .on_event = on_event,
                          .cache_type = cache_type,
                          .prompt_lookup = 8,
                          .cache_mib = cache_mib};
    gen_params_init(&opt.defaults);
    opt.defaults.temperature = 0.0f;
    engine *e = NULL;
    err_detail d = {0};
    CHECK_OK(engine_open(&e, &opt, &d), d);
    return e;
}

static engine *open_engine(int32_t n_parallel, int32_t chunk, size_t n_threads)
{
    return open_engine_with(n_parallel, chunk, n_threads, 0);
}

/* Collects events until `n` requests with ids first_id .. are done. */
static void collect(answer *answers, uint64_t first_id, size_t n)
{
    for (size_t done = 0; done < n;) {
        void *message = NULL;
        if (!mailbox_pop_wait(events, &message, 300000)) {
            check_fail(__FILE__, __LINE__, "no event for five minutes");
            return;
        }
        gen_event *ev = message;
        answer *a = &answers[ev->request_id - first_id];
        CHECK(ev->request_id >= first_id && ev->request_id < first_id + n);
        if (ev->type == GEN_PROGRESS) {
            a->n_progress++;
        } else if (ev->type == GEN_TOKENS) {
            for (int32_t i = 0; i < ev->n_tokens && a->n < MAX_IDS; i++) {
                a->ids[a->n++] = ev->tokens[i];
            }
        } else {
            a->finish = ev->finish;
            a->error = ev->error;
            a->timings = ev->timings;
            done++;
        }
        gen_event_free(ev);
    }
}

static gen_request *text_request(engine *e, const char *prompt, int32_t max_tokens)
{
    gen_params p;
    gen_params_init(&p);
    p.max_tokens = max_tokens;
    p.ignore_eos = true;
    gen_request *r = NULL;
    err_detail d = {0};
    CHECK_OK(engine_prepare_text(e, &r, prompt, strlen(prompt), false, 0, &p, &d), d);
    return r;
}

static void submit(engine *e, gen_request *r, uint64_t id)
{
    err_detail d = {0};
    CHECK_OK(engine_submit(e, r, id, &d), d);
}

static void check_same(const answer *a, const answer *b)
{
    CHECK_INT(a->n, b->n);
    CHECK(memcmp(a->ids, b->ids, sizeof a->ids[0] * (size_t)a->n) == 0);
}

static const char *const PROMPTS[] = {"Hello there",
                                      "The quick brown fox jumps over the lazy dog. Again and again.",
                                      "1 2 3 4 5", "What is on the picture?"};
enum { N_PROMPTS = 4 };

/* Alone = beside three others = with other chunk sizes and thread counts. */
static void test_equal_alone_and_together(void)
{
    answer alone[N_PROMPTS] = {0}, together[N_PROMPTS] = {0};
    engine *e = open_engine(4, 512, 1);
    for (uint64_t i = 0; i < N_PROMPTS; i++) {
        submit(e, text_request(e, PROMPTS[i], 40), 100 + i);
        collect(&alone[i], 100 + i, 1);
        CHECK_INT(alone[i].n, 40);
        CHECK_INT(alone[i].finish, GEN_FINISH_LENGTH);
        CHECK_INT(alone[i].timings.route, GEN_ROUTE_TEXT);
    }
    engine_close(e);
    e = open_engine(4, 512, 2);
    for (uint64_t i = 0; i < N_PROMPTS; i++) {
        submit(e, text_request(e, PROMPTS[i], 40), 200 + i);
    }
    collect(together, 200, N_PROMPTS);
    for (size_t i = 0; i < N_PROMPTS; i++) {
        check_same(&alone[i], &together[i]);
    }
    engine_close(e);
}

/* Drafting changes nothing: greedy, sampled, with penalties; with random weights nearly every draft
 * is wrong. */
static void test_drafts_change_nothing(void)
{
    engine *e = open_engine(4, 512, 2);
    uint64_t id = 1000;
    int32_t n_drafted = 0;
    for (int kind = 0; kind < 3; kind++) {
        answer plain[N_PROMPTS] = {0}, drafted[N_PROMPTS] = {0};
        for (int with = 0; with < 2; with++) {
            answer *a = with ? drafted : plain;
            uint64_t first = id;
            for (size_t i = 0; i < N_PROMPTS; i++) {
                gen_params p;
                gen_params_init(&p);
                p.temperature = kind == 0 ? 0.0f : 1.3f;
                p.top_k = kind == 2 ? 20 : 0;
                p.top_p = kind == 2 ? 0.9f : 1.0f;
                p.repetition_penalty = kind == 2 ? 1.1f : 1.0f;
                p.presence_penalty = kind == 2 ? 0.5f : 0.0f;
                p.has_seed = true;
                p.seed = 77 + i;
                p.max_tokens = 60 + (int32_t)i;
                p.ignore_eos = true;
                p.no_draft = !with;
                gen_request *r = NULL;
                err_detail d = {0};
                CHECK_OK(engine_prepare_text(e, &r, PROMPTS[i], strlen(PROMPTS[i]), false, 0, &p, &d), d);
                submit(e, r, id++);
            }
            collect(a, first, N_PROMPTS);
        }
        for (size_t i = 0; i < N_PROMPTS; i++) {
            CHECK_INT(plain[i].n, 60 + (int)i);
            CHECK_INT(plain[i].timings.draft_n, 0);
            CHECK_INT(plain[i].timings.lookup_n, 0);
            check_same(&plain[i], &drafted[i]);
            n_drafted += drafted[i].timings.draft_n;
        }
    }
    CHECK(n_drafted > 0);
    engine_status status;
    engine_get_status(e, &status);
    CHECK_INT(status.n_drafted, n_drafted);
    CHECK(status.n_first_drafts > 0 && status.n_first_drafts <= status.n_drafted);
    CHECK(status.n_first_accepted <= status.n_first_drafts &&
          status.n_first_accepted <= status.n_draft_accepted);
    engine_close(e);
}

/* A seed fixes a sampled answer; another seed gives another one. */
static void test_seed(void)
{
    engine *e = open_engine(2, 512, 1);
    answer a[3] = {0};
    for (uint64_t i = 0; i < 3; i++) {
        gen_params p;
        gen_params_init(&p);
        p.temperature = 1.0f;
        p.has_seed = true;
        p.seed = i < 2 ? 5 : 6;
        p.max_tokens = 30;
        p.ignore_eos = true;
        gen_request *r = NULL;
        err_detail d = {0};
        CHECK_OK(engine_prepare_text(e, &r, "Hello", 5, false, 0, &p, &d), d);
        submit(e, r, 300 + i);
        collect(&a[i], 300 + i, 1);
    }
    check_same(&a[0], &a[1]);
    CHECK(memcmp(a[0].ids, a[2].ids, sizeof a[0].ids) != 0);
    engine_close(e);
}

/* Cancelled while running and while waiting; the other answer is not touched. */
static void test_cancel(void)
{
    engine *e = open_engine_with(1, 512, 1, 64);
    answer a[3] = {0};
    engine_status before;
    engine_get_status(e, &before);
    char lines[256]; /* more than one block of the delta rule, so that a state is kept */
    memset(lines, '\n', sizeof lines);
    for (size_t i = 0; i < sizeof lines; i += 2) {
        lines[i] = (char)('a' + i % 26);
    }
    lines[sizeof lines - 1] = '\0';
    submit(e, text_request(e, PROMPTS[0], 2000), 400);
    submit(e, text_request(e, PROMPTS[1], 2000), 401);
    submit(e, text_request(e, lines, 20), 402);
    engine_cancel(e, 401);
    engine_cancel(e, 400);
    engine_cancel(e, 12345);
    collect(a, 400, 3);
    CHECK_INT(a[0].finish, GEN_FINISH_CANCELLED);
    CHECK_INT(a[1].finish, GEN_FINISH_CANCELLED);
    CHECK_INT(a[2].finish, GEN_FINISH_LENGTH);
    CHECK_INT(a[2].n, 20);
    engine_status st, later;
    /* The last step is counted behind the answer's last event. The cache is emptied between steps:
     * once it is empty, no step is left to count. */
    engine_get_status(e, &st);
    CHECK(st.n_cache_entries > 0);
    engine_clear_cache(e, NULL);
    while (st.n_cache_entries > 0) {
        sched_yield();
        engine_get_status(e, &st);
    }
    engine_get_status(e, &later);
    CHECK(st.progress_counter != before.progress_counter); /* it beat while there was something to compute, */
    CHECK(later.progress_counter == st.progress_counter);  /* and stands while there is not */
    CHECK_INT(st.n_running, 0);
    CHECK_INT(st.n_waiting, 0);
    engine_close(e);
}

/* Closing with work inside: every request still gets its one GEN_DONE. */
static void test_close_while_busy(void)
{
    engine *e = open_engine(1, 512, 1);
    answer a[3] = {0};
    for (uint64_t i = 0; i < 3; i++) {
        submit(e, text_request(e, PROMPTS[i], 2000), 500 + i);
    }
    engine_close(e);
    collect(a, 500, 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(a[i].finish, GEN_FINISH_CANCELLED);
    }
}

static void test_queue_full(void)
{
    engine *e = open_engine(1, 512, 1);
    err_detail d = {0};
    answer a[32] = {0};
    uint64_t id = 600;
    gen_request *r = NULL;
    for (; id < 632; id++) {
        r = text_request(e, PROMPTS[0], 2000);
        if (engine_submit(e, r, id, &d) != ERR_OK) {
            break;
        }
    }
    CHECK(id >= 608 && id <= 609); /* 8 wait, perhaps one runs already */
    CHECK_STR(d.name, "queue_full");
    gen_request_free(r);
    for (uint64_t k = 600; k < id; k++) {
        engine_cancel(e, k);
    }
    collect(a, 600, (size_t)(id - 600));
    engine_close(e);
}

/* ---- chats ---- */

static chat_input *user_chat(const char *text, const uint8_t *image, size_t image_bytes)
{
    chat_input *in = chat_input_create(1 << 20);
    in->messages = arena_calloc(in->arena, 1, sizeof *in->messages);
    in->n_messages = 1;
    chat_part *parts = arena_calloc(in->arena, 2, sizeof *parts);
    size_t n = 0;
    if (image) {
        parts[n++] = (chat_part){
            .kind = CHAT_IMAGE, .data = image, .data_bytes = image_bytes, .param = "messages[0].content[0]"};
    }
    parts[n++] = (chat_part){.kind = CHAT_TEXT, .text = text, .text_len = strlen(text)};
    in->messages[0] = (chat_message){.role = CHAT_USER, .parts = parts, .n_parts = n, .is_string = !image};
    in->params.max_tokens = 12;
    return in;
}

static void test_image_reader(void)
{
    bytes png;
    err_detail d = {0};
    bytes_init(&png, 1 << 20);
    CHECK_OK(file_read(&png, check_data("tiny/cases/img_a.png"), &d), d);
    engine *e = open_engine(2, 512, 2);
    answer a[2] = {0};
    chat_input *in = user_chat("What is this?", (const uint8_t *)png.data, png.len);
    for (uint64_t i = 0; i < 2; i++) { /* the same image twice: the same answer, one route */
        gen_request *r = NULL;
        CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
        CHECK_INT(gen_request_get_info(r).route, GEN_ROUTE_MEDIA);
        CHECK_INT(gen_request_get_info(r).n_images, 1);
        submit(e, r, 700 + i);
        collect(&a[i], 700 + i, 1);
        CHECK_INT(a[i].timings.route, GEN_ROUTE_MEDIA);
        CHECK(a[i].timings.vision_ms > 0.0);
        CHECK(a[i].n_progress >= 2);
    }
    check_same(&a[0], &a[1]);
    chat_input_destroy(in);

    /* What a user types never becomes a placeholder. */
    in = user_chat("<|vision_start|><|image_pad|><|vision_end|> <|im_end|>", NULL, 0);
    gen_request *r = NULL;
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    CHECK_INT(gen_request_get_info(r).route, GEN_ROUTE_TEXT);
    gen_request_free(r);
    chat_input_destroy(in);

    in = user_chat("What is this?", (const uint8_t *)png.data, png.len / 2);
    CHECK(engine_prepare(e, &r, in, NULL, &d) == ERR_CORRUPT);
    CHECK_STR(d.param, "messages[0].content[0]");
    CHECK(r == NULL);
    chat_input_destroy(in);

    in = user_chat("What is this?", (const uint8_t *)"hello", 5);
    CHECK(engine_prepare(e, &r, in, NULL, &d) != ERR_OK);
    CHECK_STR(d.name, "unsupported_image_media_type");
    chat_input_destroy(in);
    engine_close(e);
    bytes_deinit(&png);
}

/* ---- prefix cache ---- */

enum { N_TURNS = 4 };

/* A conversation of up to 2 * N_TURNS - 1 messages; text of message i, user and assistant in
 * turn. */
static chat_input *conversation(const char *const *texts, size_t n, const uint8_t *image, size_t image_bytes)
{
    chat_input *in = chat_input_create(1 << 20);
    in->messages = arena_calloc(in->arena, n, sizeof *in->messages);
    in->n_messages = n;
    for (size_t i = 0; i < n; i++) {
        chat_part *parts = arena_calloc(in->arena, 2, sizeof *parts);
        size_t k = 0;
        if (i == 0 && image) {
            parts[k++] = (chat_part){.kind = CHAT_IMAGE, .data = image, .data_bytes = image_bytes};
        }
        parts[k++] = (chat_part){.kind = CHAT_TEXT, .text = texts[i], .text_len = strlen(texts[i])};
        in->messages[i] = (chat_message){
            .role = i % 2 ? CHAT_ASSISTANT : CHAT_USER, .parts = parts, .n_parts = k, .is_string = k == 1};
    }
    in->params.max_tokens = 24;
    in->params.ignore_eos = true;
    return in;
}

static answer ask(engine *e, chat_input *in, uint64_t id)
{
    answer a = {0};
    gen_request *r = NULL;
    err_detail d = {0};
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    submit(e, r, id);
    collect(&a, id, 1);
    return a;
}

static const char *const TALK[] = {
    "Tell me about the first thing, with many words so that this message is not short at all.",
    "The first thing is round and red, and it stands at the left side of the picture.",
    "And the second thing?",
    "The second thing is square and blue, and it stands beside the first one.",
    "What stands between them?",
    "Nothing stands between them, they touch each other at one point.",
    "Thank you."};

/* Later turns, an edited message and a repeated question take up what is cached, and answer as
 * without a cache. */
static void test_cached_turns(const uint8_t *image, size_t image_bytes)
{
    engine *cached = open_engine_with(2, 512, 1, 64), *cold = open_engine(2, 512, 1);
    uint64_t id = 2000;
    int32_t last_cached = 0;
    for (size_t n = 1; n <= 2 * N_TURNS - 1; n += 2) {
        chat_input *in = conversation(TALK, n, image, image_bytes);
        answer a = ask(cached, in, id++), b = ask(cold, in, id++);
        check_same(&a, &b);
        CHECK_INT(b.timings.cache_n, 0);
        CHECK_INT(a.timings.cache_n + a.timings.prompt_n, b.timings.prompt_n);
        CHECK(n == 1 || a.timings.cache_n > last_cached);
        CHECK(n == 1 || a.timings.vision_ms == 0.0); /* the image is part of what is cached */
        last_cached = a.timings.cache_n;
        chat_input_destroy(in);
    }
    const char *edited[5] = {TALK[0], TALK[1], TALK[2], TALK[3], "What is behind them?"};
    chat_input *in = conversation(edited, 5, image, image_bytes);
    answer a = ask(cached, in, id++), b = ask(cold, in, id++);
    check_same(&a, &b);
    CHECK(a.timings.cache_n > 0);
    answer again = ask(cached, in, id++);
    check_same(&again, &a);
    CHECK(again.timings.prompt_n < 16);
    in->scope = 1; /* somebody else's request finds nothing */
    answer foreign = ask(cached, in, id++);
    check_same(&foreign, &a);
    CHECK_INT(foreign.timings.cache_n, 0);
    in->scope = 0;
    engine_clear_cache(cached, NULL);
    answer cleared = ask(cached, in, id++);
    CHECK_INT(cleared.timings.cache_n, 0);
    chat_input_destroy(in);
    engine_status st;
    engine_get_status(cached, &st);
    CHECK(st.n_cache_hits >= 5);
    engine_close(cached);
    engine_close(cold);
}

/* Two images of one size under the same question: their tokens are equal, their states are not. */
static void test_images_do_not_share(const uint8_t *a_png, size_t a_bytes, const uint8_t *b_png,
                                     size_t b_bytes)
{
    engine *e = open_engine_with(1, 512, 1, 64), *cold = open_engine(1, 512, 1);
    chat_input *a = conversation(TALK, 1, a_png, a_bytes), *b = conversation(TALK, 1, b_png, b_bytes);
    answer first = ask(e, a, 3000), second = ask(e, b, 3001), alone = ask(cold, b, 3002);
    check_same(&second, &alone);
    CHECK(second.timings.vision_ms > 0.0);
    CHECK(second.timings.cache_n < 8); /* at most what precedes the image */
    CHECK(first.n > 0);
    chat_input_destroy(a);
    chat_input_destroy(b);
    engine_close(e);
    engine_close(cold);
}

static void test_prefix_cache(void)
{
    bytes a, b;
    err_detail d = {0};
    bytes_init(&a, 1 << 20);
    bytes_init(&b, 1 << 20);
    CHECK_OK(file_read(&a, check_data("tiny/cases/frames/000.png"), &d), d);
    CHECK_OK(file_read(&b, check_data("tiny/cases/frames/006.png"), &d), d);
    test_cached_turns(NULL, 0);
    test_cached_turns((const uint8_t *)a.data, a.len);
    test_images_do_not_share((const uint8_t *)a.data, a.len, (const uint8_t *)b.data, b.len);
    bytes_deinit(&a);
    bytes_deinit(&b);
}

/* The equivalences hold for keys and values of every type, and smaller ones are counted as
 * smaller. */
static void test_cache_types(void)
{
    static const char *const types[] = {"f32", "bf16", "f16", "q8", "q4"};
    uint64_t size[5] = {0};
    err_detail d = {0};
    for (size_t i = 0; i < 5; i++) {
        cache_type = types[i];
        test_equal_alone_and_together();
        test_drafts_change_nothing();
        test_cached_turns(NULL, 0);
        engine *e = open_engine(2, 64, 1);
        CHECK_STR(engine_get_info(e)->cache_type, types[i]);
        size[i] = engine_get_info(e)->state_bytes;
        engine_close(e);
    }
    cache_type = NULL;
    engine *e = open_engine(2, 64, 1);
    CHECK_STR(engine_get_info(e)->cache_type, "f16");
    engine_close(e);
    /* a layer's and the draft head's keys and values: two heads of 32 in each, for 2 x 2048
     * tokens, and a block of 64 that several answers may hold besides */
    const uint64_t numbers = 2 * 2 * 2 * 32 * 2 * (2048 + 64);
    CHECK_INT(size[0] - size[1], 2 * numbers);
    CHECK_INT(size[1], size[2]);
    CHECK_INT(size[2] - size[3], numbers - numbers / 32 * 4);
    CHECK_INT(size[3] - size[4], numbers / 2);

    engine_options opt = {.model_dir = check_data("tiny"), .cpu_mask = test_cpu_mask(), .cache_type = "q5"};
    gen_params_init(&opt.defaults);
    CHECK_INT(engine_open(&e, &opt, &d), ERR_INVALID);
    CHECK(strstr(d.text, "--cache-type") && strstr(d.text, "q5") && strstr(d.text, "bf16"));
}

static void test_bad_prompts(void)
{
    engine *e = open_engine(1, 512, 1);
    err_detail d = {0};
    gen_params p;
    gen_params_init(&p);
    gen_request *r = NULL;
    static char longer[40000];
    memset(longer, 'x', sizeof longer - 1);
    for (size_t i = 3; i < sizeof longer - 1; i += 4) {
        longer[i] = ' ';
    }
    CHECK(engine_prepare_text(e, &r, longer, strlen(longer), false, 0, &p, &d) == ERR_CONTEXT);
    CHECK_STR(d.name, "context_length_exceeded");
    CHECK(strstr(d.text, "2048") != NULL && d.amount > 2048 && d.limit == 2048);
    CHECK(engine_prepare_text(e, &r, "", 0, false, 0, &p, &d) == ERR_INVALID);
    CHECK(engine_prepare_text(e, &r, "\xff\xfe", 2, false, 0, &p, &d) == ERR_INVALID);
    engine_close(e);

    engine_options opt = {.model_dir = "/nowhere/at/all", .cpu_mask = test_cpu_mask(), .on_event = on_event};
    gen_params_init(&opt.defaults);
    CHECK(engine_open(&e, &opt, &d) == ERR_NOT_FOUND);
    CHECK(e == NULL);
}

int main(void)
{
    if (!file_exists(check_data("tiny/config.json"))) {
        CHECK_SKIP("tests/data/tiny is not in this checkout");
    }
    events = mailbox_create(8192);
    test_cache_types();
    test_seed();
    test_cancel();
    test_close_while_busy();
    test_queue_full();
    test_image_reader();
    test_prefix_cache();
    test_bad_prompts();
    mailbox_destroy(events, NULL);
    CHECK_DONE();
}
