/* The engine on a small random model of each family: greedy answers are the same with drafts (of a head
 * and of the text) and without, alone and in company, and behind a prefix from the cache, also where a
 * state is nothing but keys and values; so they are with weights in blocks, and where a part of the
 * prompt is not read. Grammars, which see tokens alone, are the business of constrain's tests; images
 * of Gemma 4 of test_whole_images. */
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

/* Weights in blocks of so many bits; 0: as they are. */
static void check_answers(const char *dir, int n_bits)
{
    engine *e = answers_open(&(engine_options){.model_dir = dir,
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
