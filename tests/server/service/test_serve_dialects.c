/* serve_dialects: whole replies of each dialect for each end of an answer, vectors of models of each kind, summaries and cached
 * prompts; recorded. Answers are filled in by the test. */
#include "tests/recorded.h"
#include "tests/server/service/made_serve.h"

static bool is_found;

bool __wrap_engine_find_named(engine *e, uint64_t scope, const char *name, bool forgets, engine_cached *out);
bool __wrap_engine_find_named(engine *e, uint64_t scope, const char *name, bool forgets, engine_cached *out)
{
    CHECK(e && scope == 5 && !forgets);
    CHECK_STR(name, "n");
    if (is_found) {
        *out = (engine_cached){.n_tokens = 11, .n_bytes = 12, .used_at = 13, .is_on_disk = true};
    }
    return is_found;
}

int64_t __wrap_clock_unix_s(void);
int64_t __wrap_clock_unix_s(void)
{
    return 1000;
}

void __wrap_hash_random_id(char *out, size_t cap, const char *prefix);
void __wrap_hash_random_id(char *out, size_t cap, const char *prefix)
{
    snprintf(out, cap, "%s0", prefix);
}

static char some[1];
static bytes all;

/* An answer whose numbers are all different. */
static answer *begin(serve *s, const dialect *d, gen_finish finish)
{
    answer *a = made_answer(s, d);
    snprintf(s->model_name, sizeof s->model_name, "ash");
    snprintf(a->chat_id, sizeof a->chat_id, "id_1");
    a->created_at = 101;
    a->finish = finish;
    a->info = (gen_request_info){.n_prompt_tokens = 302, .max_tokens = 103};
    a->timings = (gen_timings){
        .prompt_n = 104, .cache_n = 105, .predicted_n = 106, .prompt_ms = 107, .predicted_ms = 108};
    a->n_tokens = 109;
    a->n_reasoning_tokens = 110;
    reply_pieces_add(&a->whole, REPLY_REASONING, "why", 3);
    reply_pieces_add(&a->whole, REPLY_CONTENT, "said", 4);
    return a;
}

static void write_whole(const serve *s, const answer *a, const char *what)
{
    bytes out = bytes_empty(1 << 16);
    a->dialect->whole(s, a, &out);
    CHECK(!out.failed);
    const char *at = strstr(bytes_str(&out), PARLEY_VERSION); /* it does not stay the same */
    const size_t n = at ? (size_t)(at - out.data) : out.len;
    bytes_printf(&all, "%s: %.*s%s%s\n", what, (int)n, out.data, at ? "VERSION" : "",
                 at ? at + sizeof PARLEY_VERSION - 1 : "");
    bytes_deinit(&out);
}

/* ---- tests ---- */

static void test_ends(void)
{
    static const dialect *const DIALECTS[] = {
        &dialect_chat,        &dialect_completion,      &dialect_messages,
        &dialect_ollama_chat, &dialect_ollama_generate, &dialect_compact};
    for (size_t i = 0; i < ARRAY_LEN(DIALECTS); i++) {
        bytes_printf(&all, "%s\n", DIALECTS[i]->name);
        for (int finish = GEN_FINISH_STOP; finish <= GEN_FINISH_FILTERED; finish++) {
            char what[32];
            serve *s = made_serve();
            answer *a = begin(s, DIALECTS[i], (gen_finish)finish);
            snprintf(what, sizeof what, "  end %d", finish);
            write_whole(s, a, what);
            made_end(s);
        }
    }
}

/* Of a model that was made for them or not, and whose states are taken in one way or another. */
static void test_vectors(void)
{
    static const dialect *const DIALECTS[] = {&dialect_embedding, &dialect_ollama_embed, &dialect_rerank};
    static const float VALUES[] = {1.0f, 0.0f, 0.5f, 0.25f};
    bytes_append_str(&all, "vectors\n");
    for (size_t i = 0; i < ARRAY_LEN(DIALECTS); i++) {
        for (int with = 0; with < 5; with++) {
            const engine_info info = {.pool = with & 1 ? GEN_POOL_MEAN : GEN_POOL_LAST,
                                      .is_embedder = with & 2};
            serve *s = made_serve();
            answer *a = begin(s, DIALECTS[i], GEN_FINISH_STOP);
            s->info = with < 4 ? &info : NULL;
            a->n_vectors = DIALECTS[i] == &dialect_rerank ? 4 : 2;
            a->vector_size = DIALECTS[i] == &dialect_rerank ? 1 : 2;
            bytes_append(&a->vectors, VALUES, sizeof VALUES);
            write_whole(s, a, DIALECTS[i]->name);
            made_end(s);
        }
    }
}

/* The text of a summary is its content alone, behind what the users said. */
static void test_summary(void)
{
    bytes_append_str(&all, "summaries\n");
    for (int with = 0; with < 4; with++) {
        serve *s = made_serve();
        answer *a = begin(s, &dialect_compact, with & 1 ? GEN_FINISH_LENGTH : GEN_FINISH_STOP);
        reply_pieces_add(&a->whole, REPLY_REASONING, "again", 5);
        reply_pieces_add(&a->whole, REPLY_CONTENT, " more", 5);
        a->opt.fields = with & 2 ? strdup("{\"before\":1},") : NULL;
        write_whole(s, a, "  summary");
        made_end(s);
    }
}

static void test_cached(void)
{
    static const dialect *const DIALECTS[] = {&dialect_cache_save, &dialect_cache_load};
    bytes_append_str(&all, "cached prompts\n");
    for (int with = 0; with < 6; with++) {
        serve *s = made_serve();
        answer *a = begin(s, DIALECTS[with % 2], GEN_FINISH_LENGTH);
        s->engine = with < 4 ? (engine *)some : NULL;
        is_found = with >= 2;
        snprintf(a->cache_name, sizeof a->cache_name, "n");
        write_whole(s, a, with % 2 ? "  loaded" : "  saved");
        made_end(s);
    }
}

int main(void)
{
    all = bytes_empty(1 << 20);
    test_ends();
    test_vectors();
    test_summary();
    test_cached();
    recorded_check("server/service/dialects.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
