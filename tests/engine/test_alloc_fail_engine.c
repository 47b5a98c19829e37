/* Every allocation of preparing a request, and of what an engine's sequences are made of, fails once. */
#include "engine/cache/vision_cache.h"
#include "engine/draft/draft.h"
#include "engine/draft/lookup.h"
#include "engine/request.h"
#include "tests/alloc_fail.h"
#include "tests/engine/answers.h"

enum { MAX_POINTS = 5000 };

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

int main(void)
{
    static char dir[4096];
    snprintf(dir, sizeof dir, "%s/assets/seedling", PARLEY_SOURCE_DIR);
    answers_begin();
    engine *e =
        answers_open(&(engine_options){.model_dir = dir, .n_ctx = 1024, .n_parallel = 1, .n_threads = 1});
    const size_t n_lookup = alloc_fail_each(use_lookup, NULL, MAX_POINTS),
                 n_text = alloc_fail_each(prepare_text, e, MAX_POINTS),
                 n_chat = alloc_fail_each(prepare_chat, e, MAX_POINTS);
    printf("allocations: lookup %zu, text %zu, chat %zu\n", n_lookup, n_text, n_chat);
    CHECK_INT(n_lookup, 3);
    CHECK(n_text >= 5 && n_chat >= 10);
    engine_close(e);
    answers_end();
    CHECK_DONE();
}
