/* Models without recurrent layers take up any common beginning of two prompts: the answer is the one
 * without a cache at every cut, with a draft head and without. */
#include "tests/engine/answers.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/file.h"
#include "base/log.h"
#include "tests/model/random_families.h"

enum { PROMPT = 150, LENGTH = 10 };

/* A draft head above full attention alone. */
static const random_family WITH_HEAD = {
    "qwen3_5 without recurrent layers", 0,
    "{\"model_type\":\"qwen3_5\",\"text_config\":{" RANDOM_SIZES
    ",\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,\"linear_key_head_dim\":16,"
    "\"linear_value_head_dim\":16,\"layer_types\":[\"full_attention\",\"full_attention\",\"full_attention\","
    "\"full_attention\"],\"intermediate_size\":80,\"mtp_num_hidden_layers\":1" RANDOM_ROPE(
        ",\"mrope_section\":[1,1,0]") "}}"};

static uint64_t next_id = 1;

/* From token other_at on the prompt is another one each time. */
static answer ask(engine *e, int32_t other_at, bool no_cache)
{
    int32_t ids[PROMPT];
    for (int32_t i = 0; i < PROMPT; i++) {
        ids[i] = 300 + (i * 7) % 500;
    }
    if (other_at < PROMPT) {
        ids[other_at] = 900 + other_at; /* a token that stands nowhere else */
    }
    return answers_to_tokens(e, ids, PROMPT, 0, LENGTH, no_cache, next_id++);
}

static void check_family(const random_family *f, bool exact)
{
    char dir[FOLDER_NAME];
    bytes text;
    err_detail d = {0};
    random_checkpoint_make(dir, f->config, f->forms);
    bytes_init(&text, 1 << 24);
    CHECK_OK(file_read(&text, check_data("tiny/tokenizer.json"), &d), d);
    random_text(dir, "tokenizer.json", bytes_str(&text));
    bytes_deinit(&text);
    const int before = check_failures;
    engine *e = answers_open(&(engine_options){.model_dir = dir,
                                               .n_ctx = 512,
                                               .n_parallel = 1,
                                               .cache_mib = 64,
                                               .prefill_chunk = 48,
                                               .exact = exact,
                                               .n_threads = 1});
    /* The draft head needs the state of the last common token: that one is computed again. */
    const int32_t again = engine_get_info(e)->has_mtp ? 1 : 0;
    int32_t n_drafts = 0;
    ask(e, PROMPT, false);
    for (int32_t at = 1; at < PROMPT; at++) {
        const answer a = ask(e, at, false);
        const answer plain = ask(e, at, true);
        /* all but the last token is kept as it is, with its state */
        CHECK_INT(a.timings.cache_n, at == PROMPT - 1 ? at : at - again);
        CHECK(memcmp(a.ids, plain.ids, sizeof a.ids) == 0);
        n_drafts += a.timings.draft_n;
    }
    CHECK((n_drafts > 0) == (again > 0));
    CHECK_INT(ask(e, 0, false).timings.cache_n, 0);
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
        const random_family *f = &RANDOM_FAMILIES[i];
        if (strcmp(f->name, "qwen3") == 0 || strcmp(f->name, "qwen3_moe") == 0) {
            check_family(f, true);
            check_family(f, false);
        }
    }
    check_family(&WITH_HEAD, true);
    answers_end();
    CHECK_DONE();
}
