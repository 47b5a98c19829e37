/* grammar: what structured output costs a decode step, on the vocabulary of a given tokenizer.
 *
 *     build/bench_grammar DIR/tokenizer.json [WALKS]
 *
 * Random walks through the grammars of some schemas; for each: the time to compile it, and the mean
 * and the slowest time of a step (mask, forbidding the other tokens' logits, draw, moving on) in
 * walks that begin with nothing remembered. Beside them what the sampler takes for such logits
 * without a grammar: the difference is what a grammar adds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/grammar_spec.h"
#include "model/sampler.h"

enum { STEPS_MAX = 400, N_SCHEMAS = 6 };

static const struct {
    const char *name, *schema;
} SCHEMAS[N_SCHEMAS] = {
    {"any object", "{\"type\":\"object\"}"},
    {"extraction", "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":"
                   "\"integer\",\"maximum\":150},"
                   "\"born\":{\"type\":\"string\",\"format\":\"date\"},\"tags\":{\"type\":\"array\","
                   "\"items\":{\"type\":\"string\"}}},"
                   "\"required\":[\"name\",\"age\",\"born\",\"tags\"]}"},
    {"one long string", "{\"type\":\"string\",\"minLength\":1500}"},
    {"counted string", "{\"type\":\"string\",\"minLength\":1500,\"maxLength\":3000}"},
    {"pattern", "{\"type\":\"string\",\"pattern\":\"^([a-z ]+[.] ){100}$\"}"},
    {"counted pattern", "{\"type\":\"string\",\"pattern\":\"^.{100,120}$\"}"},
};

typedef struct bench {
    token_trie *trie;
    sampler *sampler;
    float *logits, *noise; /* [n_tokens] */
    int32_t n_tokens;
    uint32_t random;
} bench;

static void new_logits(bench *b)
{
    b->random = b->random * 1664525u + 1013904223u;
    const size_t shift = b->random % (uint32_t)b->n_tokens, rest = (size_t)b->n_tokens - shift;
    memcpy(b->logits, b->noise + shift, rest * sizeof *b->logits);
    memcpy(b->logits + rest, b->noise, shift * sizeof *b->logits);
}

/* This thread's own time: neighbours on a busy machine do not count. */
static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

typedef struct timing {
    double sum_ms, worst_ms;
    int n;
} timing;

/* Draws a text; every step is timed without making its logits. Returns its tokens' number. */
static int walk(bench *b, grammar_cursor *c, timing *t)
{
    int n = 0;
    sampler_constrain(b->sampler, c);
    for (; n < STEPS_MAX; n++) {
        new_logits(b);
        const int64_t start = cpu_ns();
        const int32_t id = sampler_pick(b->sampler, b->logits, 0);
        if (token_mask_has(b->trie->stop_mask, id)) {
            break;
        }
        sampler_accept(b->sampler, id);
        const double ms = (double)(cpu_ns() - start) / 1e6;
        t->sum_ms += ms;
        t->worst_ms = ms > t->worst_ms ? ms : t->worst_ms;
        t->n++;
    }
    sampler_constrain(b->sampler, NULL);
    return n;
}

static void measure(bench *b, const char *name, const char *schema, int n_walks)
{
    json_doc *doc = NULL;
    grammar *g = NULL;
    err_detail d = {0};
    timing first = {0}, plain = {0};
    if (json_parse(&doc, schema, strlen(schema), 64, &d) != ERR_OK) {
        return;
    }
    const int64_t start = cpu_ns();
    const grammar_spec spec = {.kind = SPEC_SCHEMA, .schema = json_root(doc)};
    if (grammar_build(&g, &spec, NULL, &d) != ERR_OK) {
        printf("%s: %s\n", name, d.text);
        json_free(doc);
        return;
    }
    const double compile_ms = (double)(cpu_ns() - start) / 1e6;
    for (int i = 0; i < n_walks; i++) {
        grammar_cursor *c = NULL;
        if (grammar_cursor_create(&c, g, b->trie, false, &d) != ERR_OK) {
            break;
        }
        const int n = walk(b, c, &first);
        for (int k = 0; k < n; k++) {
            new_logits(b);
            const int64_t before = cpu_ns();
            (void)sampler_pick(b->sampler, b->logits, 0);
            plain.sum_ms += (double)(cpu_ns() - before) / 1e6;
            plain.n++;
        }
        grammar_cursor_destroy(c);
    }
    printf("%-18s compile %7.2f ms | step: mean %6.3f, worst %6.3f ms | without %6.3f ms | added %6.3f ms "
           "(%d steps)\n",
           name, compile_ms, first.sum_ms / (first.n ? first.n : 1), first.worst_ms,
           plain.sum_ms / (plain.n ? plain.n : 1),
           first.sum_ms / (first.n ? first.n : 1) - plain.sum_ms / (plain.n ? plain.n : 1), first.n);
    grammar_destroy(g);
    json_free(doc);
}

static void measure_all(bench *b, double trie_ms, int n_walks)
{
    printf("%d tokens; their trie: %.0f ms, %d nodes, %d for what follows a string\n", b->n_tokens, trie_ms,
           b->trie->all.n_nodes, b->trie->rests.n_nodes);
    for (int32_t i = 0; i < b->n_tokens; i++) {
        b->random = b->random * 1664525u + 1013904223u;
        b->noise[i] = (float)(b->random >> 8) * 0x1p-20f;
    }
    for (int i = 0; i < N_SCHEMAS; i++) {
        measure(b, SCHEMAS[i].name, SCHEMAS[i].schema, n_walks);
    }
}

int main(int argc, char **argv)
{
    tokenizer *tok = NULL;
    err_detail d = {0};
    if (argc < 2 || tokenizer_open(&tok, argv[1], &d) != ERR_OK) {
        fprintf(stderr, "usage: bench_grammar DIR/tokenizer.json [WALKS]; %s\n", d.text);
        return 1;
    }
    bench b = {.n_tokens = tokenizer_n_tokens(tok), .random = 1};
    const int32_t stop = tokenizer_added_id(tok, "<|im_end|>");
    const sampler_params p = {.temperature = 0, .top_p = 1, .repetition_penalty = 1, .seed = 1};
    b.logits = malloc((size_t)b.n_tokens * sizeof *b.logits);
    b.noise = malloc((size_t)b.n_tokens * sizeof *b.noise);
    const int64_t start = cpu_ns();
    const bool can_run = b.logits && b.noise && token_trie_create(&b.trie, tok, &stop, 1, &d) == ERR_OK &&
                         sampler_create(&b.sampler, &p, b.n_tokens, b.n_tokens, &d) == ERR_OK;
    if (can_run) {
        measure_all(&b, (double)(cpu_ns() - start) / 1e6, argc > 2 ? (int)strtol(argv[2], NULL, 10) : 20);
    } else {
        fprintf(stderr, "%s\n", d.text);
    }
    sampler_destroy(b.sampler);
    token_trie_destroy(b.trie);
    tokenizer_close(tok);
    free(b.logits);
    free(b.noise);
    return can_run ? 0 : 1;
}
