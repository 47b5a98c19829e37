/* Every allocation of text/ fails once: a tokenizer, a template, the grammar of a schema and a walk through it. */
#include "base/limits.h"
#include "engine/grammar_spec.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"
#include "text/grammar/grammar_cursor.h"
#include "text/grammar/grammar_private.h"
#include "text/jinja/chat_template.h"
#include "text/jinja/template_habits.h"
#include "text/tokenizer/guard.h"
#include "text/tokenizer/tokenizer.h"

enum { MAX_POINTS = 20000, MARKERS = 80 };

static bytes file; /* a tokenizer.json of 64 byte tokens and MARKERS added ones */
static bytes words;

static void write_tokenizer(void)
{
    bytes_init(&file, 1 << 16);
    bytes_append_str(&file, "{\"added_tokens\":[");
    for (int i = 0; i < MARKERS; i++) {
        bytes_printf(&file, "%s{\"id\":%d,\"content\":\"<|m%d|>\",\"special\":true}", i ? "," : "", 100 + i,
                     i);
    }
    bytes_append_str(&file,
                     "],\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\","
                     "\"add_prefix_space\":false,\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\"},"
                     "\"model\":{\"vocab\":{");
    int other = 0x100;
    for (int byte = 0; byte < 256; byte++) {
        const bool same = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
        bytes_printf(&file, "\"\\u%04x\":%d,", same ? byte : other, byte < 100 ? byte : byte + MARKERS);
        other += !same;
    }
    bytes_append_str(&file, "\"ab\":400},\"merges\":[[\"a\",\"b\"]]}}");
    CHECK(!file.failed);
}

/* A file of characters, whose merges come of scores. */
static void write_scored(bytes *out)
{
    static const char mark[] = "\xE2\x96\x81";
    bytes_printf(
        out,
        "{\"added_tokens\":[],\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"%s\",\"split\":"
        "false},\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{"
        "\"String\":\"%s\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":"
        "\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},\"model\":{\"byte_fallback\":true,\"vocab\":{",
        mark, mark);
    for (int byte = 0; byte < 256; byte++) {
        bytes_printf(out, "\"<0x%02X>\":%d,", byte, byte);
    }
    bytes_append_str(out, "\"a\":256,\"b\":257,\"ab\":258},\"scores\":[0");
    for (int id = 1; id < 258; id++) {
        bytes_append_str(out, ",0");
    }
    bytes_append_str(out, ",-1]}}");
    CHECK(!out->failed);
}

/* Words that come again while the ids need more room, and one that is longer than most. */
static void write_words(bytes *out)
{
    bytes_append_str(out, "ab caf\xC3\xA9 e\xCC\x81 <|m7|> ab");
    for (int i = 0; i < 64; i++) {
        bytes_append_str(out, " ab");
    }
    bytes_append_str(out, " abababababababababababababababababababab");
    CHECK(!out->failed);
}

static err_code use_tokenizer(void *context)
{
    const bytes *given = context;
    tokenizer *tok = NULL;
    token_ids ids;
    bytes text;
    token_ids_init(&ids);
    bytes_init(&text, 1000);
    err_code err = tokenizer_open_json(&tok, bytes_str(given), given->len, "test", NULL);
    CHECK((tok != NULL) == (err == ERR_OK));
    if (err == ERR_OK) {
        err = tokenizer_encode(tok, &ids, bytes_str(&words), words.len, TOKENIZER_SPECIALS, NULL);
        CHECK(err == ERR_OK || ids.len == 0);
    }
    if (err == ERR_OK) {
        tokenizer_decode(tok, &text, ids.ids, ids.len, false);
        tokenizer_guard(tok, &text, "a <|m7|> b", 10);
        err = text.failed ? ERR_NOMEM : ERR_OK;
    }
    bytes_deinit(&text);
    token_ids_deinit(&ids);
    tokenizer_close(tok);
    return err;
}

static err_code read_markers(void *context)
{
    (void)context;
    added_tokens markers = {0};
    const err_code err = guard_read_markers(&markers, bytes_str(&file), file.len, NULL);
    added_tokens_deinit(&markers);
    return err;
}

static err_code use_template(void *context)
{
    static const char text[] =
        "{%- macro role(m) %}<|m1|>{{ m.role | upper }}{% endmacro -%}"
        "{% set ns = namespace(n=0) %}{% for m in messages if m.content is string %}{{ role(m) ~ ' ' }}"
        "{{ m['content'].split('a') | join('-') | replace('b', 'c') }}{% set ns.n = ns.n + loop.index %}"
        "{% else %}none{% endfor %}{{ ns.n }}{{ {'a': [1, 2.5, true]} | tojson }}{{ '%s of %d' | format('x', "
        "3) }}";
    const json *given = context;
    chat_template *t = NULL;
    arena *a = arena_create(1u << 20);
    bytes out;
    bytes_init(&out, 1 << 16);
    err_code err = a ? chat_template_compile(&t, text, sizeof text - 1, NULL) : ERR_NOMEM;
    if (err == ERR_OK) {
        const jinja_value *vars = jinja_from_json(a, given);
        err = chat_template_render(t, &out, NULL, vars, NULL, a, NULL);
    }
    if (err == ERR_OK) {
        CHECK_STR(bytes_str(&out), "<|m1|>USER c-c1{\"a\": [1, 2.5, true]}x of 3");
    }
    bytes_deinit(&out);
    chat_template_close(t);
    arena_destroy(a);
    return err;
}

/* What a template does, found by rendering it. */
static err_code find_habits(void *context)
{
    template_habits habits;
    const err_code err = template_habits_try(context, NULL);
    return err ? err : template_habits_find(&habits, context, NULL);
}

static err_code make_trie(void *context)
{
    static const int32_t stops[] = {100, 101};
    token_trie *trie = NULL;
    err_detail d = {0};
    const err_code err = token_trie_create(&trie, context, stops, ARRAY_LEN(stops), &d);
    CHECK((trie != NULL) == (err == ERR_OK));
    CHECK_STR(d.text, err ? "no memory for the vocabulary's trie" : "");
    token_trie_destroy(trie);
    return err;
}

typedef struct schema_case {
    const json *schema;
    int32_t n_nodes; /* of its grammar; 0: not built yet */
} schema_case;

/* What a schema is built of that the walk below has not: it is built, or it is said that memory was lacking. */
static err_code build_schema(void *context)
{
    schema_case *c = context;
    grammar *g = NULL;
    err_detail d = {0};
    const grammar_spec specs[] = {{.kind = SPEC_MARKER, .text = "<|m1|>"},
                                  {.kind = SPEC_SCHEMA, .schema = c->schema},
                                  {.kind = SPEC_PARAMETERS, .schema = c->schema},
                                  {.kind = SPEC_UNTIL, .text = "</x>"}},
                       all = {.kind = SPEC_SEQUENCE, .items = specs, .n_items = ARRAY_LEN(specs)};
    const err_code err = grammar_build(&g, &all, NULL, &d);
    CHECK((g != NULL) == (err == ERR_OK));
    CHECK(err == ERR_OK || strstr(d.text, "memory"));
    CHECK(err != ERR_OK || c->n_nodes == 0 || g->n_nodes == c->n_nodes); /* and all of it is there */
    c->n_nodes = err == ERR_OK ? g->n_nodes : c->n_nodes;
    grammar_destroy(g);
    return err;
}

typedef struct grammar_case {
    const json *schema;
    const token_trie *trie;
} grammar_case;

static err_code use_grammar(void *context)
{
    const grammar_case *c = context;
    const grammar_spec spec = {.kind = SPEC_SCHEMA, .schema = c->schema};
    grammar *g = NULL;
    grammar_cursor *cursor = NULL;
    err_code err = grammar_build(&g, &spec, NULL, NULL);
    if (err == ERR_OK) {
        err = grammar_cursor_create(&cursor, g, c->trie, false, NULL);
    }
    static const char text[] = "{\"word\":\"ab\",\"n\":[17]}";
    for (size_t i = 0; err == ERR_OK && i < sizeof text - 1; i++) {
        const bool masked = grammar_cursor_mask(cursor, grammar_cursor_state(cursor)) != NULL;
        const bool taken = masked && grammar_cursor_accept(cursor, token_trie_find(c->trie, text + i, 1));
        err = grammar_cursor_failure(cursor);
        CHECK(taken || err == ERR_NOMEM);
    }
    CHECK(err != ERR_OK || grammar_cursor_is_complete(cursor, grammar_cursor_state(cursor)));
    grammar_cursor_destroy(cursor);
    grammar_destroy(g);
    return err;
}

static json_doc *parse(const char *text)
{
    json_doc *doc = NULL;
    err_detail d = {0};
    CHECK_OK(json_parse(&doc, text, strlen(text), LIMIT_JSON_DEPTH, &d), d);
    return doc;
}

int main(void)
{
    err_detail d = {0};
    write_tokenizer();
    bytes scored = bytes_empty(1 << 16);
    write_scored(&scored);
    words = bytes_empty(1 << 10);
    write_words(&words);
    const size_t n_tokenizer = alloc_fail_each(use_tokenizer, &file, MAX_POINTS);
    CHECK(n_tokenizer > MARKERS);
    CHECK(alloc_fail_each(use_tokenizer, &scored, MAX_POINTS) > 20); /* our own alone, under a sanitizer */
    bytes_deinit(&scored);
    CHECK(alloc_fail_each(read_markers, NULL, MAX_POINTS) > MARKERS);

    json_doc *vars = parse("{\"messages\":[{\"role\":\"user\",\"content\":\"bab\"},{\"role\":\"x\"}]}");
    const size_t n_template = alloc_fail_each(use_template, (void *)json_root(vars), MAX_POINTS);
    CHECK(n_template > 4);
    json_free(vars);
    static const char turns[] = "{% for m in messages %}<|m1|>{{ m.role }} {{ m.content }}{% endfor %}"
                                "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}";
    chat_template *template = NULL;
    CHECK_OK(chat_template_compile(&template, turns, sizeof turns - 1, &d), d);
    const size_t n_habits = alloc_fail_each(find_habits, template, MAX_POINTS);
    CHECK(n_habits > 4);
    chat_template_close(template);

    tokenizer *tok = NULL;
    token_trie *trie = NULL;
    const int32_t stop = 100;
    CHECK_OK(tokenizer_open_json(&tok, bytes_str(&file), file.len, "test", &d), d);
    CHECK(alloc_fail_each(make_trie, tok, MAX_POINTS) > 0);
    CHECK_OK(token_trie_create(&trie, tok, &stop, 1, &d), d);
    json_doc *schema =
        parse("{\"type\":\"object\",\"required\":[\"word\",\"n\"],\"additionalProperties\":false,"
              "\"properties\":{\"word\":{\"type\":\"string\",\"pattern\":\"^[a-c]{1,3}$\"},"
              "\"n\":{\"type\":\"array\",\"maxItems\":2,\"items\":{\"anyOf\":[{\"type\":\"integer\","
              "\"minimum\":3},{\"const\":null}]}}}}");
    grammar_case c = {json_root(schema), trie};
    const size_t n_grammar = alloc_fail_each(use_grammar, &c, MAX_POINTS);
    CHECK(n_grammar > 50);
    static const char *const schemas[] = {
        "{\"enum\":[\"ab\",\"abc\",3,null,{\"a\":[1,\"b\"]}]}",
        "{\"allOf\":[{\"enum\":[\"ab\",\"b\",1]},{\"enum\":[\"b\",1,2]}]}",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"maximum\":30}}}",
        "{\"$ref\":\"#/$defs/day\",\"$defs\":{\"day\":{\"type\":\"string\",\"format\":\"date\"}}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(schemas); i++) {
        json_doc *more = parse(schemas[i]);
        schema_case one = {.schema = json_root(more)};
        CHECK_INT(build_schema(&one), ERR_OK);
        CHECK(alloc_fail_each(build_schema, &one, MAX_POINTS) > 20);
        json_free(more);
    }
    printf("allocations: tokenizer %zu, template %zu, grammar %zu\n", n_tokenizer, n_template, n_grammar);
    json_free(schema);
    token_trie_destroy(trie);
    tokenizer_close(tok);
    bytes_deinit(&words);
    bytes_deinit(&file);
    CHECK_DONE();
}
