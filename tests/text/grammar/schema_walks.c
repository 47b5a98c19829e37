/* schema_walks: random texts of schemas, for a validator of another make (tests/text/grammar/schemas).
 * Reads lines of {"schema": ..., "texts": N, "seed": K} and writes for each one line {"texts":
 * [...], "unfinished": N} or {"error": NAME, "param": PATH, "message": TEXT}.
 *
 *     schema_walks tests/data/tiny/tokenizer.json < requests > replies
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "engine/grammar_spec.h"
#include "tests/text/grammar/grammar_walk.h"

enum { TOKENS_MAX = 4000 };

/* Appends the texts of g to the reply. */
static bool walk(bytes *reply, const grammar *g, const token_trie *trie, int64_t n, int64_t seed)
{
    int unfinished = 0;
    bytes_append_str(reply, "{\"texts\":[");
    for (int64_t i = 0, written = 0; i < n; i++) {
        grammar_cursor *c;
        bytes text;
        if (grammar_cursor_create(&c, g, trie, false, NULL) != ERR_OK) {
            return false;
        }
        bytes_init(&text, 1 << 20);
        if (walk_text(&text, c, trie, (uint64_t)(seed + i), "\"}", TOKENS_MAX)) {
            bytes_append_str(reply, written++ ? "," : "");
            bytes_append_json(reply, bytes_str(&text), text.len);
        } else {
            unfinished++;
            if (grammar_cursor_failure(c) != ERR_OK) {
                fprintf(stderr, "cursor failed: %s\n", err_name(grammar_cursor_failure(c)));
                return false;
            }
        }
        bytes_deinit(&text);
        grammar_cursor_destroy(c);
    }
    bytes_printf(reply, "],\"unfinished\":%d}\n", unfinished);
    return true;
}

static bool answer(const char *line, size_t len, const token_trie *trie)
{
    json_doc *doc;
    grammar *g;
    err_detail d = {0};
    int64_t n = 1, seed = 0;
    bytes reply;
    if (json_parse(&doc, line, len, LIMIT_JSON_DEPTH, &d) != ERR_OK) {
        fprintf(stderr, "%s\n", d.text);
        return false;
    }
    const json *root = json_root(doc);
    (void)json_int(json_get(root, "texts"), 0, 1000, &n);
    (void)json_int(json_get(root, "seed"), 0, INT32_MAX, &seed);
    const grammar_spec spec = {.kind = SPEC_SCHEMA, .schema = json_get(root, "schema"), .path = "schema"};
    bytes_init(&reply, 64 << 20);
    bool ok = true;
    const err_code err = grammar_build(&g, &spec, NULL, &d);
    if (err == ERR_OK) {
        ok = walk(&reply, g, trie, n, seed);
        grammar_destroy(g);
    } else {
        bytes_printf(&reply, "{\"error\":\"%s\",\"param\":", err_name(err));
        bytes_append_json(&reply, d.param, strlen(d.param));
        bytes_append_str(&reply, ",\"message\":");
        bytes_append_json(&reply, d.text, strlen(d.text));
        bytes_append_str(&reply, "}\n");
    }
    ok = ok && !reply.failed && fwrite(reply.data, 1, reply.len, stdout) == reply.len;
    bytes_deinit(&reply);
    json_free(doc);
    return ok;
}

int main(int argc, char **argv)
{
    tokenizer *tok;
    token_trie *trie;
    err_detail d = {0};
    if (argc != 2 || tokenizer_open(&tok, argv[1], &d) != ERR_OK) {
        fprintf(stderr, "usage: schema_walks TOKENIZER < requests; %s\n", d.text);
        return 1;
    }
    const int32_t stop = tokenizer_added_id(tok, "<|im_end|>");
    if (token_trie_create(&trie, tok, &stop, 1, &d) != ERR_OK) {
        return 1;
    }
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    bool ok = true;
    while (ok && (len = getline(&line, &cap, stdin)) > 0) {
        ok = answer(line, (size_t)len, trie);
    }
    free(line);
    token_trie_destroy(trie);
    tokenizer_close(tok);
    return ok ? 0 : 1;
}
