/* what a schema takes, and what is said where there is no room: each call for a grammar's memory fails once
 * as if LIMIT_GRAMMAR_BYTES were reached, and the work ends at each of its steps.
 * tests/text/grammar/room.txt has what comes of it.
 */
#include "base/arena.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/limits.h"
#include "engine/grammar_spec.h"
#include "tests/check.h"
#include "tests/one_fails.h"
#include "tests/recorded.h"
#include "text/grammar/grammar_private.h"
#include "text/grammar/token_trie.h"

ONE_FAILS(void *, arena_alloc, (arena * a, size_t n), (a, n), NULL)
ONE_FAILS(void *, arena_calloc, (arena * a, size_t n, size_t item_bytes), (a, n, item_bytes), NULL)
ONE_FAILS(char *, arena_strdup, (arena * a, const char *text, size_t len), (a, text, len), NULL)

static uint64_t steps;

bool __real_work_do(work_count *w, size_t n);
bool __wrap_work_do(work_count *w, size_t n);
/* Not counted: steps of 2, which are the edges of automata (test_regex counts them) and the conjunctions met
 * in a bucket, whose number depends on addresses. */
bool __wrap_work_do(work_count *w, size_t n)
{
    if (n != 2) {
        steps += n;
        if (w && one_fails_now("work_do")) {
            w->err = ERR_CANCELLED;
        }
    }
    return __real_work_do(w, n);
}

/* most: behind so many it is the same code for the next part. */
static const struct {
    const char *name;
    int most;
} CALLS[] = {{"arena_alloc", 12}, {"arena_calloc", 30}, {"arena_strdup", 12}, {"work_do", 20}};

/* ' stands for a quote. */
static const char *const SCHEMAS[] = {
    "{'items':{'type':'array'}}",
    "{'type':'null','title':'x','default':1}",
    "{'type':['boolean','integer','number']}",
    "{'type':'string','minLength':2,'maxLength':9}",
    "{'type':'string','pattern':'^[a-c]x$','maxLength':3}",
    "{'type':'string','format':'time'}",
    "{'type':'integer','minimum':-3,'exclusiveMaximum':40}",
    "{'type':'number','minimum':0.5}",
    "{'enum':['a','ab','b\\n',1,null,[1,{'x':'y'}]]}",
    "{'enum':['a','bbb',1,7],'maxLength':2,'maximum':3}",
    "{'allOf':[{'enum':['a','b',1]},{'enum':['b',1,2]},{'const':'b'}]}",
    "{'items':{'type':'null'},'prefixItems':[{'type':'boolean'},{'const':3}],'minItems':1,'maxItems':4}",
    "{'type':'array','items':[{'type':'null'}],'additionalItems':{'type':'boolean'}}",
    "{'properties':{'a':{'type':'null'},'b':{'type':'boolean'}},'required':['b','c']}",
    "{'properties':{'a':{'type':'null'}},'additionalProperties':{'type':'boolean'}}",
    "{'allOf':[{'$ref':'#/$defs/a~1b'},{'$ref':'#/$defs/a~1b'}],'$defs':{'a/b':{'type':'null'}}}",
    "{'$ref':'#/$defs/1','$defs':[{'type':'boolean'},{'type':'null'}]}",
    "{'$ref':'#/$defs/n','$defs':{'n':{'type':'array','items':{'$ref':'#/$defs/n'}}}}",
    "{'anyOf':[{'type':'null'},{'type':'boolean'},{'$ref':'#'}]}",
    "{'oneOf':[{'type':'null'},{'enum':['a','b']},{'type':'integer'}]}",
    "{'oneOf':[{'const':1},{'const':2},{'const':3},{'const':4},{'const':5},{'enum':[6,7]},{'const':8},{'"
    "const':'9'}]}",
    "{'oneOf':[{'required':['k'],'properties':{'k':{'const':1}}},{'required':['k'],'properties':{'k':{'const'"
    ":2}}}]}",
};

static void build(bytes *out, grammar_spec_kind kind, const json *schema)
{
    const grammar_spec parts[] = {{.kind = SPEC_TEXT, .text = "("},
                                  {.kind = kind, .schema = schema, .path = "schema"},
                                  {.kind = SPEC_UNTIL, .text = "</x>"},
                                  {.kind = SPEC_UNTIL, .text = "</x>"},
                                  {.kind = SPEC_MARKER, .text = "<m>"}},
                       all = {.kind = SPEC_SEQUENCE, .items = parts, .n_items = ARRAY_LEN(parts)};
    grammar *g = NULL;
    err_detail d = {0};
    work_count w = {0};
    const err_code err = grammar_build(&g, kind == SPEC_SCHEMA ? &parts[1] : &all, &w, &d);
    bytes_clear(out);
    if (err == ERR_OK) {
        bytes_printf(out, "%d nodes, %zu automata of %zu bytes, %d kinds of bytes, depth %d", (int)g->n_nodes,
                     g->n_automata, g->automata_bytes, (int)g->n_classes, (int)g->nodes[g->root].height);
    } else {
        char *at = strstr(d.text, " at character "); /* of a pattern: else each is a line */
        if (at) {
            *at = '\0';
        }
        bytes_printf(out, "%s: %s%s%s", err_name(err), d.param, d.param[0] ? ": " : "", d.text);
    }
    grammar_destroy(g);
}

static void try_schema(bytes *all, const char *written, grammar_spec_kind kind)
{
    char text[1024];
    json_doc *doc = NULL;
    err_detail d = {0};
    bytes out = bytes_empty(1 << 16);
    snprintf(text, sizeof text, "%s", written);
    for (char *p = text; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    CHECK_OK(json_parse(&doc, text, strlen(text), LIMIT_JSON_DEPTH, &d), d);
    build(&out, kind, json_root(doc)); /* the first one makes indexes of the JSON */
    int n_calls[ARRAY_LEN(CALLS)];
    steps = 0;
    one_fails(NULL, 0);
    build(&out, kind, json_root(doc));
    (void)one_fails_over();
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        n_calls[i] = one_fails_counted(CALLS[i].name);
    }
    bytes_printf(all, "%s%s\n  %s\n  %llu steps, calls:", kind == SPEC_SCHEMA ? "" : "parameters ", written,
                 bytes_str(&out), (unsigned long long)steps);
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        bytes_printf(all, " %s %d", CALLS[i].name, n_calls[i]);
    }
    bytes_append_str(all, "\n");
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        for (int n = 1; n <= n_calls[i] && n <= CALLS[i].most; n++) {
            one_fails(CALLS[i].name, n);
            build(&out, kind, json_root(doc));
            CHECK(one_fails_over());
            one_fails_say(all, CALLS[i].name, n, bytes_str(&out));
        }
    }
    one_fails_say(all, NULL, 0, NULL);
    bytes_deinit(&out);
    json_free(doc);
}

/* A trie takes so many pieces of memory, and is not made without one of them. */
static void try_trie(bytes *all)
{
    tokenizer *tok = NULL;
    token_trie *trie = NULL;
    err_detail d = {0};
    const int32_t stop = 3;
    CHECK_OK(tokenizer_open(&tok, check_data("tiny/tokenizer.json"), &d), d);
    one_fails(NULL, 0);
    CHECK_OK(token_trie_create(&trie, tok, &stop, 1, &d), d);
    (void)one_fails_over();
    token_trie_destroy(trie);
    bytes_append_str(all, "a trie\n");
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        const int n_calls = one_fails_counted(CALLS[i].name);
        for (int n = 1; n <= n_calls; n++) {
            one_fails(CALLS[i].name, n);
            const err_code err = token_trie_create(&trie, tok, &stop, 1, &d);
            CHECK(one_fails_over() && err != ERR_OK && !trie);
            one_fails_say(all, CALLS[i].name, n, d.text);
        }
    }
    one_fails_say(all, NULL, 0, NULL);
    tokenizer_close(tok);
}

int main(void)
{
    bytes all = bytes_empty(1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(SCHEMAS); i++) {
        try_schema(&all, SCHEMAS[i], SPEC_SCHEMA);
    }
    try_schema(&all,
               "{'properties':{'a':{'type':'string'},'b':{'type':'integer'},'c':{'enum':['x','y']}},'"
               "required':['a']}",
               SPEC_PARAMETERS);
    try_schema(&all, "{'properties':{'a':{'pattern':'x+','maxLength':4}}}", SPEC_PARAMETERS);
    try_trie(&all);
    recorded_check("text/grammar/room.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
