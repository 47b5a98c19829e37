/* json_schema: any schema; where it has a grammar, a walk through it gives JSON, and no walk ends
 * in a blind alley. Behind zero bytes there may be texts: which of them the grammar lets through. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "engine/grammar_spec.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"
#include "tests/text/grammar/grammar_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Steps of building, far below the real limit, so that a run is quick; beyond it the same code refuses. */
enum { WORK = 2000000 };

/* The small vocabulary, opened once and kept to the end. */
static const token_trie *open_trie(void)
{
    static token_trie *trie;
    static tokenizer *tok;
    if (!trie) {
        must(tokenizer_open(&tok, PARLEY_SOURCE_DIR "/tests/data/tiny/tokenizer.json", NULL) == ERR_OK);
        const int32_t stop = tokenizer_added_id(tok, "<|im_end|>");
        must(token_trie_create(&trie, tok, &stop, 1, NULL) == ERR_OK);
    }
    return trie;
}

/* How many tokens may come first, and which, by their sum. */
static void say_mask(grammar_cursor *c, const token_trie *trie)
{
    const uint64_t *mask = grammar_cursor_mask(c, grammar_cursor_state(c));
    if (mask) {
        bytes first = bytes_empty(SIZE_MAX / 2);
        for (int32_t id = 0; id < (int32_t)(64 * trie->n_words); id++) {
            if (token_mask_has(mask, id)) {
                bytes_printf(&first, "%d ", (int)id);
            }
        }
        say_text("first", bytes_str(&first), first.len);
        bytes_deinit(&first);
    }
}

/* A text that is let through, "good", or how far it comes. */
static void say_accepts(const grammar *g, const token_trie *trie, const char *text, size_t n)
{
    grammar_cursor *c = NULL;
    size_t i = 0;
    if (grammar_cursor_create(&c, g, trie, false, NULL) != ERR_OK) {
        return;
    }
    while (i < n && grammar_cursor_accept(c, token_trie_find(trie, text + i, 1))) {
        i++;
    }
    if (i < n) {
        say("wrong at %zu: %.*s", i, (int)n, text);
    } else {
        say("%s: %.*s", grammar_cursor_is_complete(c, grammar_cursor_state(c)) ? "good" : "too short", (int)n,
            text);
    }
    grammar_cursor_destroy(c);
}

static void walk(const grammar *g, const token_trie *trie, uint64_t seed)
{
    enum { TOKENS = 60 };
    grammar_cursor *c = NULL;
    json_doc *doc = NULL;
    bytes text;
    if (grammar_cursor_create(&c, g, trie, false, NULL) != ERR_OK) {
        return;
    }
    bytes_init(&text, 1 << 20);
    say_mask(c, trie);
    const bool ended = walk_text(&text, c, trie, seed, "\"}", TOKENS);
    say_text(ended ? "walk" : "walk without end", bytes_str(&text), text.len);
    if (ended) {
        /* JSON itself, but for numbers longer than our own reader takes */
        const err_code err = json_parse(&doc, bytes_str(&text), text.len, LIMIT_JSON_DEPTH + 200, NULL);
        must(err == ERR_OK || err == ERR_LIMIT);
    } else {
        must(grammar_cursor_mask(c, grammar_cursor_state(c)) != NULL || grammar_cursor_failure(c) != ERR_OK);
    }
    json_free(doc);
    bytes_deinit(&text);
    grammar_cursor_destroy(c);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_json(data, size, max, seed, "json_schema");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const token_trie *trie = open_trie();
    json_doc *doc = NULL;
    grammar *g = NULL;
    err_detail d = {0};
    const char *texts = size > 0 ? memchr(data, 0, size) : NULL;
    const size_t n_schema = texts ? (size_t)(texts - (const char *)data) : size;
    if (json_parse(&doc, (const char *)data, n_schema, LIMIT_JSON_DEPTH, NULL) != ERR_OK) {
        return 0;
    }
    const grammar_spec_kind kinds[] = {SPEC_SCHEMA, SPEC_PARAMETERS};
    for (size_t i = 0; i < 2; i++) {
        const grammar_spec spec = {.kind = kinds[i], .schema = json_root(doc), .path = "schema"};
        work_count work = {.limit = WORK};
        const err_code err = grammar_build(&g, &spec, &work, &d);
        if (err != ERR_OK) {
            must(d.text[0] != '\0' && utf8_valid(d.text, strlen(d.text)) &&
                 utf8_valid(d.param, strlen(d.param)));
            say_error(err, &d);
        } else if (i == 0) {
            walk(g, trie, n_schema);
        }
        for (const char *at = texts, *end = (const char *)data + size;
             err == ERR_OK && i == 0 && at && at < end;) {
            const char *next = memchr(at + 1, 0, (size_t)(end - at) - 1);
            say_accepts(g, trie, at + 1, (size_t)((next ? next : end) - at) - 1);
            at = next;
        }
        grammar_destroy(g);
        g = NULL;
    }
    json_free(doc);
    return 0;
}
