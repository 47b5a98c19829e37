/* Every allocation of preparing a request, and of what an engine's sequences are made of, fails once. */
#include "engine/cache/vision_cache.h"
#include "engine/draft/draft.h"
#include "engine/draft/lookup.h"
#include "engine/request.h"
#include "tests/alloc_fail.h"
#include "tests/engine/answers.h"
#include "base/file.h"

enum { MAX_POINTS = 5000, LENGTH = 12 };

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

static err_code prepare_chat(void *context)
{
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

/* ---- the engine's own thread ---- */

/* From the end of this request to that of the next the nth allocation fails; 0: none. */
static _Atomic uint64_t fail_behind;
static _Atomic size_t fail_n;

static void on_event(void *ctx, gen_event *ev)
{
    const bool is_end = ev->type == GEN_DONE, begins = is_end && ev->request_id == fail_behind;
    if (is_end) {
        alloc_fail_at(0);
    }
    answers_on_event(ctx, ev);
    if (begins) {
        alloc_fail_at(fail_n);
    }
}

typedef struct ending {
    int32_t ids[LENGTH], n;
    gen_finish finish;
    err_code error;
} ending;

static ending run(engine *e, uint64_t id)
{
    ending end = {.n = 0};
    gen_request *r = NULL;
    gen_params p;
    err_detail d = {0};
    bool is_done = false;
    gen_params_init(&p);
    p.temperature = 0;
    p.max_tokens = LENGTH;
    p.ignore_eos = true;
    p.n_top_logprobs = 1;
    CHECK_OK(engine_prepare_text(e, &r, "What is 7 plus 5?", 17, true, 0, &p, &d), d);
    p.biases = &(gen_bias){.id = 5, .bias = -1};
    p.n_biases = 1;
    answers_submit(e, r, id);
    while (!is_done) {
        void *message = NULL;
        if (!mailbox_pop_wait(answer_events, &message, ANSWER_WAIT_MS)) {
            check_fail(__FILE__, __LINE__, "no event for a minute");
            exit(1);
        }
        gen_event *ev = message;
        CHECK_INT(ev->request_id, id);
        for (int32_t i = 0; ev->type == GEN_TOKENS && i < ev->n_tokens && end.n < LENGTH; i++) {
            end.ids[end.n++] = ev->tokens[i];
        }
        if (ev->type == GEN_DONE) {
            is_done = true;
            end.finish = ev->finish;
            end.error = ev->error;
        }
        gen_event_free(ev);
    }
    return end;
}

/* An answer that memory lacks for ends with that error, once, or is what it would be; the next one is. */
static void test_answers(const char *dir)
{
    enum { POINTS = 44 };
    engine *e = NULL;
    err_detail d = {0};
    engine_options opt = {.model_dir = dir,
                          .n_ctx = 1024,
                          .n_parallel = 1,
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
    int32_t n_failed = 0, n_begun = 0;
    const ending wanted = run(e, id++);
    CHECK_INT(wanted.finish, GEN_FINISH_LENGTH);
    for (size_t n = 0; n <= POINTS; n++) { /* the end of each lets an allocation of the next fail */
        engine_clear_cache(e, NULL);
        fail_behind = id;
        fail_n = n < POINTS ? n + 1 : 0;
        const ending end = run(e, id++);
        CHECK(end.n <= LENGTH && memcmp(end.ids, wanted.ids, (size_t)end.n * sizeof *end.ids) == 0);
        const bool failed = end.finish == GEN_FINISH_ERROR;
        CHECK(failed ? n > 0 && end.error == ERR_NOMEM : end.finish == GEN_FINISH_LENGTH && end.n == LENGTH);
        n_failed += failed;
        n_begun += failed && end.n > 0;
    }
    const ending after = run(e, id);
    CHECK(after.n == LENGTH && memcmp(after.ids, wanted.ids, sizeof wanted.ids) == 0);
    printf("answers that ended for lack of memory: %d, of them in the middle %d\n", n_failed, n_begun);
    CHECK(n_failed > n_begun && n_begun >= LENGTH / 2);
    engine_close(e);
}

int main(void)
{
    static char dir[4096], tiny[4096], template[] = PARLEY_SOURCE_DIR "/tools/seedling/chat_template.jinja";
    snprintf(dir, sizeof dir, "%s/assets/seedling", PARLEY_SOURCE_DIR);
    answers_begin();
    engine *e =
        answers_open(&(engine_options){.model_dir = dir, .n_ctx = 1024, .n_parallel = 1, .n_threads = 1});
    const size_t n_lookup = alloc_fail_each(use_lookup, NULL, MAX_POINTS),
                 n_text = alloc_fail_each(prepare_text, e, MAX_POINTS),
                 n_tokens = alloc_fail_each(prepare_tokens, e, MAX_POINTS),
                 n_chat = alloc_fail_each(prepare_chat, e, MAX_POINTS);
    printf("allocations: lookup %zu, text %zu, tokens %zu, chat %zu\n", n_lookup, n_text, n_tokens, n_chat);
    CHECK_INT(n_lookup, 3);
    CHECK(n_text >= 5 && n_tokens >= 3 && n_chat >= 10);
    engine_close(e);
    snprintf(tiny, sizeof tiny, "%s", check_data("tiny"));
    test_answers(tiny);
    e = answers_open(&(engine_options){
        .model_dir = tiny, .template_file = template, .n_ctx = 1024, .n_parallel = 1, .n_threads = 1});
    CHECK_INT(prepare_image(e), ERR_OK);
    const size_t n_image = alloc_fail_each(prepare_image, e, MAX_POINTS);
    printf("image %zu\n", n_image);
    CHECK(n_image >= 10);
    engine_close(e);
    answers_end();
    CHECK_DONE();
}
