/* The engine on a small random model of each family: greedy answers are the same with drafts (of a head
 * and of the text) and without, alone and in company, and behind a prefix from the cache, also where a
 * state is nothing but keys and values; so they are with weights in blocks, and where a part of the
 * prompt is not read. Tokens copied from the text are guessed and change nothing, and an answer that has to
 * be JSON by a schema is, also with guesses. Images of Gemma 4 are the business of test_whole_images. */
#include "tests/engine/answers.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/request.h"
#include "tests/model/random_families.h"

enum { LENGTH = 24, LONG = 200, AT_ONCE = 3 };

static const char *const PROMPTS[AT_ONCE] = {
    "a red circle stands beside a blue square, and behind both of them there is a small green tree; a "
    "yellow house stands far away from the tree, and in front of the house there are three white birds, "
    "two brown dogs and a cat that looks at the birds, while the dogs look at the cat and the house is "
    "empty, as those who live in it have gone to the river to see the boats",
    "what is left of the house?", "one two three four five six seven eight nine ten"};

static gen_request *request(engine *e, size_t prompt, bool no_draft, bool no_cache, int32_t sparse)
{
    gen_params p;
    gen_params_init(&p);
    p.spec_prefill = sparse;
    p.temperature = 0.0f;
    p.max_tokens = LENGTH;
    p.ignore_eos = true;
    p.no_draft = p.no_lookup = no_draft;
    p.no_cache = no_cache;
    gen_request *r = NULL;
    err_detail d = {0};
    CHECK_OK(engine_prepare_text(e, &r, PROMPTS[prompt], strlen(PROMPTS[prompt]), true, 0, &p, &d), d);
    if (!r) {
        exit(1);
    }
    return r;
}

static answer ask(engine *e, uint64_t id, bool no_draft, bool no_cache, int32_t sparse)
{
    answer a = {0};
    answers_submit(e, request(e, 0, no_draft, no_cache, sparse), id);
    answers_collect(&a, id, 1);
    CHECK_INT(a.n, LENGTH);
    return a;
}

static void check_same(const answer *a, const answer *b)
{
    CHECK(a->n == b->n && memcmp(a->ids, b->ids, (size_t)a->n * sizeof *a->ids) == 0);
}

static const char SCHEMA[] = "{\"type\":\"object\",\"properties\":{\"kind\":{\"enum\":[\"circle\",\"square\"]"
                             "},\"n\":{\"type\":\"integer\","
                             "\"minimum\":0,\"maximum\":99},\"word\":{\"type\":\"string\",\"maxLength\":6}},"
                             "\"required\":[\"kind\",\"n\","
                             "\"word\"],\"additionalProperties\":false}";

/* The answer as text. */
static void write_answer(bytes *out, const engine *e, const answer *a)
{
    for (int32_t i = 0; i < a->n; i++) {
        size_t n = 0;
        const char *text = engine_token_bytes(e, a->ids[i], &n, NULL);
        if (!engine_is_stop_token(e, a->ids[i])) {
            bytes_append(out, text, n);
        }
    }
}

/* An answer in the form of the schema, with guesses and without. */
static answer ask_for_json(engine *e, const json *schema, uint64_t id, bool no_draft)
{
    static const char SAID[] = "Tell me about the circle.", NO_THINKING[] = "{\"enable_thinking\":false}";
    const grammar_spec spec = {.kind = SPEC_SCHEMA, .schema = schema};
    chat_part part = {.kind = CHAT_TEXT, .text = SAID, .text_len = sizeof SAID - 1};
    chat_message message = {.role = CHAT_USER, .parts = &part, .n_parts = 1, .is_string = true};
    chat_input *in = chat_input_create(1 << 20);
    json_doc *kwargs = NULL;
    gen_request *r = NULL;
    err_detail d = {0};
    answer a = {0};
    in->messages = &message;
    in->n_messages = 1;
    in->form = &spec;
    CHECK_OK(json_parse(&kwargs, NO_THINKING, sizeof NO_THINKING - 1, LIMIT_JSON_DEPTH, &d), d);
    in->template_kwargs = json_root(kwargs);
    in->params.max_tokens = LONG;
    in->params.no_draft = in->params.no_lookup = no_draft;
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    if (!r) {
        exit(1);
    }
    answers_submit(e, r, id);
    answers_collect(&a, id, 1);
    chat_input_destroy(in);
    json_free(kwargs);
    return a;
}

static void check_json(engine *e)
{
    json_doc *schema = NULL, *doc = NULL;
    bytes text;
    err_detail d = {0};
    bytes_init(&text, 1 << 16);
    CHECK_OK(json_parse(&schema, SCHEMA, strlen(SCHEMA), LIMIT_JSON_DEPTH, &d), d);
    const answer plain = ask_for_json(e, json_root(schema), 20, true),
                 guessed = ask_for_json(e, json_root(schema), 21, false);
    check_same(&guessed, &plain);
    write_answer(&text, e, &plain);
    CHECK_OK(json_parse(&doc, bytes_str(&text), text.len, LIMIT_JSON_DEPTH, &d), d);
    const json *root = doc ? json_root(doc) : NULL;
    const char *kind = json_str(json_get(root, "kind"), "");
    int64_t n = 0;
    CHECK(json_len(root) == 3 && json_int(json_get(root, "n"), 0, 99, &n));
    CHECK(strcmp(kind, "circle") == 0 || strcmp(kind, "square") == 0);
    CHECK(json_is(json_get(root, "word"), JSON_STRING));
    json_free(doc);
    json_free(schema);
    bytes_deinit(&text);
}

/* An answer of two words, in the order that the model likes: what it said is guessed again and again, often
 * wrongly. */
static void check_lookup(engine *e)
{
    gen_bias biases[] = {{.id = 100, .bias = 100.0f}, {.id = 200, .bias = 100.0f}};
    answer a[2] = {0};
    for (uint64_t i = 0; i < 2; i++) {
        gen_params p;
        gen_request *r = NULL;
        err_detail d = {0};
        gen_params_init(&p);
        p.temperature = 0.0f;
        p.max_tokens = LONG;
        p.ignore_eos = p.no_cache = true;
        p.no_lookup = i == 0;
        p.biases = biases;
        p.n_biases = 2;
        CHECK_OK(engine_prepare_text(e, &r, PROMPTS[2], strlen(PROMPTS[2]), true, 0, &p, &d), d);
        answers_submit(e, r, 30 + i);
        answers_collect(&a[i], 30 + i, 1);
    }
    CHECK_INT(a[0].n, LONG);
    check_same(&a[1], &a[0]);
    CHECK_INT(a[0].timings.lookup_n, 0);
    CHECK(a[1].timings.lookup_n > 0 || engine_get_info(e)->has_mtp); /* a head may promise more */
}

/* Weights in blocks of so many bits; 0: as they are. */
static void check_answers(const char *dir, int n_bits)
{
    engine *e = answers_open(
        &(engine_options){.model_dir = dir,
                          .template_file = PARLEY_SOURCE_DIR "/tools/seedling/chat_template.jinja",
                          .n_ctx = 512,
                          .n_parallel = AT_ONCE,
                          .cache_mib = 16,
                          .n_threads = 2,
                          .layer_bits = n_bits,
                          .head_bits = n_bits,
                          .prompt_lookup = 8,
                          .sparse = {.threshold = 8, .chunk = 4, .keep = 0.5f}});
    answer plain = ask(e, 1, true, true, 0), drafted = ask(e, 2, false, true, 0);
    answer first = ask(e, 3, false, false, 0), again = ask(e, 4, false, false, 0);
    check_same(&drafted, &plain);
    check_same(&first, &plain);
    check_same(&again, &plain);
    CHECK((drafted.timings.draft_n > 0) == engine_get_info(e)->has_mtp);
    CHECK(again.timings.cache_n > 0);
    answer thinned = ask(e, 5, true, true, 1), thinned_again = ask(e, 6, false, true, 1);
    check_same(&thinned_again, &thinned);
    CHECK(thinned.timings.sparse_kept_n > 0 && thinned.timings.sparse_kept_n < thinned.timings.sparse_n);
    answer together[AT_ONCE] = {0};
    for (size_t i = 0; i < AT_ONCE; i++) {
        answers_submit(e, request(e, i, false, true, 0), 10 + i);
    }
    answers_collect(together, 10, AT_ONCE);
    check_same(&together[0], &plain);
    if (n_bits == 0) {
        check_json(e);
        check_lookup(e);
    }
    engine_close(e);
}

static void check_family(const random_family *f)
{
    char dir[64];
    bytes text;
    err_detail d = {0};
    random_checkpoint_make(dir, f->config, f->forms);
    bytes_init(&text, 1 << 24);
    CHECK_OK(file_read(&text, check_data("tiny/tokenizer.json"), &d), d);
    random_text(dir, "tokenizer.json", bytes_str(&text));
    bytes_deinit(&text);
    random_text(dir, "generation_config.json", "{\"eos_token_id\":1802}");
    const int before = check_failures;
    check_answers(dir, 0);
    check_answers(dir, 8);
    check_answers(dir, 4);
    if (check_failures != before) {
        fprintf(stderr, "  in the family %s\n", f->name);
    }
}

int main(void)
{
    log_set_level(LOG_OFF);
    answers_begin();
    for (size_t i = 0; i < ARRAY_LEN(RANDOM_FAMILIES); i++) {
        check_family(&RANDOM_FAMILIES[i]);
    }
    answers_end();
    CHECK_DONE();
}
