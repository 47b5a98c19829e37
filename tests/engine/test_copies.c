/* Drafts that are copied from the text change nothing: greedy, sampled, under a grammar, side by
 * side, alone and behind those of the draft head; and where the text repeats itself they are right. */
#include "base/file.h"
#include "tests/engine/answers.h"

enum { N_ANSWERS = 4, LENGTH = 120 };

/* The id of a letter. */
static int32_t token_of(engine *e, const char *letter)
{
    bytes ids;
    err_detail d = {0};
    bytes_init(&ids, 4096);
    CHECK_OK(engine_tokenize(e, &ids, letter, 1, false, &d), d);
    const char *number = strpbrk(bytes_str(&ids), "0123456789");
    const int32_t id = number ? (int32_t)strtol(number, NULL, 10) : -1;
    bytes_deinit(&ids);
    return id;
}

/* A request that says one letter over and over, but for answer 1, whose draws are free; the last one
 * has a grammar that ends it. */
static gen_request *request(engine *e, int i, gen_bias *bias, bool no_draft)
{
    static char letters[LENGTH + 1];
    const grammar_spec form = {.kind = SPEC_TEXT, .text = letters};
    chat_input *in = chat_input_create(1 << 20);
    chat_part *part = arena_calloc(in->arena, 1, sizeof *part);
    gen_request *r = NULL;
    err_detail d = {0};
    memset(letters, 'x', LENGTH - 50);
    *part = (chat_part){.kind = CHAT_TEXT, .text = "Hello there. Hello there.", .text_len = 25};
    in->messages = arena_calloc(in->arena, 1, sizeof *in->messages);
    in->n_messages = 1;
    in->messages[0] = (chat_message){.role = CHAT_USER, .parts = part, .n_parts = 1, .is_string = true};
    in->form = i == N_ANSWERS - 1 ? &form : NULL;
    in->params.max_tokens = LENGTH + i;
    in->params.ignore_eos = i < N_ANSWERS - 1;
    in->params.temperature = i % 2 ? 1.2f : 0.0f;
    in->params.has_seed = true;
    in->params.seed = 5;
    in->params.no_draft = no_draft;
    in->params.biases = bias;
    in->params.n_biases = i != 1;
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    chat_input_destroy(in);
    return r;
}

static void compare(bool no_head)
{
    static char template[4096];
    static answer plain[N_ANSWERS], copied[N_ANSWERS];
    snprintf(template, sizeof template, "%s/tools/seedling/chat_template.jinja", PARLEY_SOURCE_DIR);
    engine *e = answers_open(&(engine_options){.model_dir = check_data("tiny"),
                                               .template_file = template,
                                               .n_ctx = 2048,
                                               .n_parallel = N_ANSWERS,
                                               .n_queue = 8,
                                               .n_threads = 2,
                                               .no_draft = no_head,
                                               .prompt_lookup = 8});
    gen_bias bias = {.id = token_of(e, "x"), .bias = 100.0f};
    uint64_t id = 1;
    int32_t n_copied = 0;
    for (int round = 0; round < 3; round++) { /* alone; then all at once */
        memset(plain, 0, sizeof plain);
        memset(copied, 0, sizeof copied);
        for (int with = 0; with < 2; with++) {
            answer *a = with ? copied : plain;
            const uint64_t first = id;
            for (int i = 0; i < N_ANSWERS; i++) {
                answers_submit(e, request(e, i, &bias, !with), id++);
                if (round == 0) {
                    answers_collect(&a[i], id - 1, 1);
                }
            }
            if (round > 0) {
                answers_collect(a, first, N_ANSWERS);
            }
        }
        for (int i = 0; i < N_ANSWERS; i++) {
            CHECK_INT(plain[i].timings.lookup_n, 0);
            CHECK_INT(plain[i].n, copied[i].n);
            CHECK(plain[i].n > LENGTH / 3);
            CHECK(memcmp(plain[i].ids, copied[i].ids, sizeof plain[i].ids) == 0);
            CHECK(copied[i].timings.lookup_accepted_n <= copied[i].timings.lookup_n);
            n_copied += copied[i].timings.lookup_accepted_n;
        }
    }
    CHECK(!no_head || n_copied > LENGTH);
    engine_status st;
    engine_get_status(e, &st);
    CHECK(st.n_copied_accepted == (uint64_t)n_copied && st.n_copied >= st.n_copied_accepted);
    engine_close(e);
}

int main(void)
{
    if (!file_exists(check_data("tiny/config.json"))) {
        CHECK_SKIP("tests/data/tiny is not in this checkout");
    }
    answers_begin();
    compare(true);
    compare(false);
    answers_end();
    CHECK_DONE();
}
