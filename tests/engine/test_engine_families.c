/* The engine on a small random model of each family: greedy answers are the same with drafts and
 * without, alone and in company, and behind a prefix from the cache, also where a state is nothing
 * but keys and values. */
#include "tests/engine/answers.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/file.h"
#include "base/log.h"
#include "tests/model/random_families.h"

enum { LENGTH = 24, AT_ONCE = 3 };

static const char *const PROMPTS[AT_ONCE] = {
    "a red circle stands beside a blue square, and behind both of them there is a small green tree",
    "what is left of the house?", "one two three four five six seven eight nine ten"};

static gen_request *request(engine *e, size_t prompt, bool no_draft, bool no_cache)
{
    gen_params p;
    gen_params_init(&p);
    p.temperature = 0.0f;
    p.max_tokens = LENGTH;
    p.ignore_eos = true;
    p.no_draft = no_draft;
    p.no_cache = no_cache;
    gen_request *r = NULL;
    err_detail d = {0};
    CHECK_OK(engine_prepare_text(e, &r, PROMPTS[prompt], strlen(PROMPTS[prompt]), true, 0, &p, &d), d);
    if (!r) {
        exit(1);
    }
    return r;
}

static answer ask(engine *e, uint64_t id, bool no_draft, bool no_cache)
{
    answer a = {0};
    answers_submit(e, request(e, 0, no_draft, no_cache), id);
    answers_collect(&a, id, 1);
    CHECK_INT(a.n, LENGTH);
    return a;
}

static void check_same(const answer *a, const answer *b)
{
    CHECK(a->n == b->n && memcmp(a->ids, b->ids, (size_t)a->n * sizeof *a->ids) == 0);
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
    const int before = check_failures;
    engine *e = answers_open(&(engine_options){
        .model_dir = dir, .n_ctx = 512, .n_parallel = AT_ONCE, .cache_mib = 16, .n_threads = 2});
    answer plain = ask(e, 1, true, true), drafted = ask(e, 2, false, true);
    answer first = ask(e, 3, false, false), again = ask(e, 4, false, false);
    check_same(&drafted, &plain);
    check_same(&first, &plain);
    check_same(&again, &plain);
    CHECK((drafted.timings.draft_n > 0) == engine_get_info(e)->has_mtp);
    CHECK(again.timings.cache_n > 0);
    answer together[AT_ONCE] = {0};
    for (size_t i = 0; i < AT_ONCE; i++) {
        answers_submit(e, request(e, i, false, true), 10 + i);
    }
    answers_collect(together, 10, AT_ONCE);
    check_same(&together[0], &plain);
    engine_close(e);
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
