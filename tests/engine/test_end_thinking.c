/* engine_end_thinking: told after k tokens, an answer goes on as with a budget of k tokens for its
 * thoughts. */
#include "engine/request.h"
#include "tests/engine/answers.h"

enum { MAX_TOKENS = 40 };

/* Whom to tell and when; used by the engine thread between submit and the last event. */
typedef struct teller {
    engine *e;
    uint64_t id;
    int32_t after, seen;
} teller;

static void on_event(void *ctx, gen_event *ev)
{
    teller *t = ctx;
    if (ev->type == GEN_TOKENS && ev->request_id == t->id) {
        t->seen += ev->n_tokens;
        if (t->seen == t->after) {
            engine_end_thinking(t->e, t->id);
        }
    }
    answers_on_event(NULL, ev);
}

static answer ask(engine *e, int32_t budget, uint64_t id)
{
    static const char KWARGS[] = "{\"enable_thinking\":true}";
    answer a = {0};
    gen_request *r = NULL;
    err_detail d = {0};
    chat_input *in = chat_input_create(1 << 20);
    CHECK_OK(json_parse(&in->keep, KWARGS, sizeof KWARGS - 1, LIMIT_JSON_DEPTH, &d), d);
    in->template_kwargs = json_root(in->keep);
    in->messages = arena_calloc(in->arena, 1, sizeof *in->messages);
    in->n_messages = 1;
    in->messages[0] = (chat_message){.role = CHAT_USER, .is_string = true, .n_parts = 1};
    in->messages[0].parts = arena_calloc(in->arena, 1, sizeof *in->messages[0].parts);
    in->messages[0].parts[0] = (chat_part){.kind = CHAT_TEXT, .text = "Why?", .text_len = 4};
    gen_params_init(&in->params);
    in->params.max_tokens = MAX_TOKENS;
    in->params.ignore_eos = true;
    in->params.no_draft = true;
    in->params.think_tokens = budget;
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    chat_input_destroy(in);
    CHECK(gen_request_get_info(r).starts_in_thinking);
    answers_submit(e, r, id);
    answers_collect(&a, id, 1);
    return a;
}

/* What closes a block is at hand wherever the answer thinks or may begin to: not where an answer is gone on with. */
static void test_closing(engine *e)
{
    static const struct {
        const char *kwargs;
        bool continues, thinks;
    } CASES[] = {{"{\"enable_thinking\":true}", false, true},
                 {"{\"enable_thinking\":false}", false, false},
                 {"{\"enable_thinking\":false}", true, false},
                 {"{\"enable_thinking\":true}", true, true}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        gen_request *r = NULL;
        err_detail d = {0};
        const bool more = CASES[i].continues;
        chat_input *in = chat_input_create(1 << 20);
        CHECK_OK(json_parse(&in->keep, CASES[i].kwargs, strlen(CASES[i].kwargs), LIMIT_JSON_DEPTH, &d), d);
        in->template_kwargs = json_root(in->keep);
        in->messages = arena_calloc(in->arena, 2, sizeof *in->messages);
        in->n_messages = more ? 2 : 1;
        chat_part *parts = arena_calloc(in->arena, 2, sizeof *parts);
        parts[0] = (chat_part){.kind = CHAT_TEXT, .text = "Why?", .text_len = 4};
        parts[1] = (chat_part){.kind = CHAT_TEXT, .text = "As", .text_len = 2};
        in->messages[0] =
            (chat_message){.role = CHAT_USER, .is_string = true, .n_parts = 1, .parts = &parts[0]};
        in->messages[1] = (chat_message){.role = CHAT_ASSISTANT,
                                         .is_string = true,
                                         .n_parts = CASES[i].thinks ? 0 : 1,
                                         .parts = &parts[1],
                                         .reasoning = CASES[i].thinks ? "It is" : NULL};
        in->continues = more;
        gen_params_init(&in->params);
        CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
        chat_input_destroy(in);
        if (r) {
            CHECK_INT(r->starts_in_thinking, CASES[i].thinks);
            CHECK_INT(r->may_think, !more);
            CHECK_INT(r->think_close.len > 0, CASES[i].thinks || !more);
        }
        gen_request_free(r);
    }
}

int main(void)
{
    static char template[4096];
    teller t = {0};
    engine *e = NULL;
    err_detail d = {0};
    snprintf(template, sizeof template, "%s/tools/seedling/chat_template.jinja", PARLEY_SOURCE_DIR);
    answers_begin();
    engine_options opt = {.model_dir = check_data("tiny"),
                          .template_file = template,
                          .n_ctx = 1024,
                          .n_parallel = 1,
                          .n_threads = 1,
                          .cpu_mask = test_cpu_mask(),
                          .on_event = on_event,
                          .on_event_ctx = &t};
    gen_params_init(&opt.defaults);
    opt.defaults.temperature = 0.0f;
    CHECK_OK(engine_open(&e, &opt, &d), d);
    if (!e) {
        return 1;
    }
    test_closing(e);
    uint64_t id = 1;
    const answer free_one = ask(e, -1, id++);
    for (int32_t k = 1; k <= 20; k += 6) {
        const answer budgeted = ask(e, k, id++);
        t = (teller){.e = e, .id = id++, .after = k};
        const answer told = ask(e, -1, t.id);
        CHECK_INT(told.n, MAX_TOKENS);
        CHECK(memcmp(told.ids, budgeted.ids, MAX_TOKENS * sizeof told.ids[0]) == 0);
        CHECK(memcmp(told.ids, free_one.ids, MAX_TOKENS * sizeof told.ids[0]) != 0);
        CHECK(memcmp(told.ids, free_one.ids, (size_t)k * sizeof told.ids[0]) == 0);
    }
    engine_end_thinking(e, 999); /* unknown: nothing */
    engine_close(e);
    answers_end();
    CHECK_DONE();
}
