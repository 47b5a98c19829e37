/* json: what RFC 8259 allows must parse, everything else must fail with a place; values keep their
 * text. */
#include "base/json.h"

#include "base/limits.h"
#include "tests/base/json_faults.h"
#include "tests/check.h"

#include <unistd.h>

typedef struct text_case {
    const char *text;
    size_t len; /* 0: the text ends at its NUL */
} text_case;

#define T(literal)                                                                                           \
    {                                                                                                        \
        literal, sizeof(literal) - 1                                                                         \
    }

static const text_case VALID[] = {
    T("null"),
    T("true"),
    T("false"),
    T("0"),
    T("-0"),
    T("1"),
    T("-1"),
    T("1.0"),
    T("-0.5"),
    T("1e5"),
    T("1E5"),
    T("1e+5"),
    T("1e-5"),
    T("0e0"),
    T("0.0e-0"),
    T("123456789012345678901234567890"),
    T("1.7976931348623157e308"),
    T("5e-324"),
    T("1e-400"),
    T("\"\""),
    T("\"a\""),
    T("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""),
    T("\"\\u0001\""),
    T("\"\\u00e9\""),
    T("\"\\u20AC\""),
    T("\"\\ud83d\\ude00\""),
    T("\"\\uDBFF\\uDFFF\""),
    T("\"\xC3\xA9\""),
    T("\"\xE2\x82\xAC\""),
    T("\"\xF0\x9F\x98\x80\""),
    T("\"\xF4\x8F\xBF\xBF\""),
    T("\"\x7F\""),
    T("\"\xEF\xBF\xBF\""),
    T("\"\\uFFFF\""),
    T("[]"),
    T("{}"),
    T("[ ]"),
    T("{ }"),
    T(" [] "),
    T("\t[\n]\r "),
    T("[1]"),
    T("[1,2]"),
    T("[ 1 , 2 ]"),
    T("[[]]"),
    T("[{}]"),
    T("[[],[]]"),
    T("{\"a\":1}"),
    T("{\"a\":1,\"b\":2}"),
    T("{ \"a\" : 1 , \"b\" : 2 }"),
    T("{\"\":0}"),
    T("{\"a\":1,\"a\":2}"),
    T("{\"a\":{\"b\":{\"c\":[]}}}"),
    T("{\"a\":[],\"b\":{}}"),
    T("[null,true,false,0,\"\"]"),
    T("[\"\\u2028\\u2029\"]"),
    T("[\"\xE2\x80\xA8\"]"),
    T("{\"\\u00e9\":1}"),
    T("[\"//not a comment\"]"),
    T("[1e1, 0.1, -1.5e-3]"),
    T("{\"k\":\"a,b]}\"}"),
    T("[\"[\\\"]\"]"),
};

static const text_case INVALID[] = {
    T(""),
    T(" "),
    T("\n"),
    T("nul"),
    T("nulll"),
    T("True"),
    T("NULL"),
    T("tru"),
    T("undefined"),
    T("NaN"),
    T("Infinity"),
    T("-Infinity"),
    T("inf"),
    T("nan"),
    T("+1"),
    T("-"),
    T("--1"),
    T("01"),
    T("-01"),
    T("00"),
    T("1."),
    T(".1"),
    T("-.1"),
    T("1.e1"),
    T("1e"),
    T("1e+"),
    T("1e-"),
    T("1e1.5"),
    T("0x10"),
    T("0b1"),
    T("1_000"),
    T("1,000"),
    T("1 2"),
    T("1e5e5"),
    T("1.2.3"),
    T("0e"),
    T("\xEF\xBC\x91"),
    T("1e400"),
    T("-1e400"),
    T("\""),
    T("\"a"),
    T("'a'"),
    T("a"),
    T("\"\\\""),
    T("\"\\"),
    T("\"\\x41\""),
    T("\"\\a\""),
    T("\"\\v\""),
    T("\"\\0\""),
    T("\"\\'\""),
    T("\"\\u\""),
    T("\"\\u1\""),
    T("\"\\u12\""),
    T("\"\\u123\""),
    T("\"\\u123g\""),
    T("\"\\U0041\""),
    T("\"\\u+041\""),
    T("\"\\u 041\""),
    T("\"\\ud800\""),
    T("\"\\udc00\""),
    T("\"\\ud800\\u0041\""),
    T("\"\\ud800\\ud800\""),
    T("\"\\ud800x\""),
    T("\"\\ud800\\n\""),
    T("\"\\udbff\\udbff\""),
    T("\"\\ud83d\\ude0\""),
    T("\"\\ud83d\\"),
    T("\"\n\""),
    T("\"\t\""),
    T("\"\x01\""),
    T("\"\x1F\""),
    T("\"\0\""),
    T("\"\x80\""),
    T("\"\xC3\""),
    T("\"\xC0\x80\""),
    T("\"\xC1\xBF\""),
    T("\"\xE0\x80\x80\""),
    T("\"\xED\xA0\x80\""),
    T("\"\xED\xBF\xBF\""),
    T("\"\xF4\x90\x80\x80\""),
    T("\"\xF5\x80\x80\x80\""),
    T("\"\xFF\""),
    T("\"\xFE\xFF\""),
    T("\"\xE2\x82\""),
    T("\"\xF0\x9F\x98\""),
    T("\"\xC3("),
    T("\xEF\xBB\xBF{}"),
    T("\xEF\xBB\xBF"),
    T("\0"),
    T("1\0"),
    T("[]\0"),
    T("["),
    T("]"),
    T("{"),
    T("}"),
    T("[[]"),
    T("[]]"),
    T("{}}"),
    T("[}"),
    T("{]"),
    T("[1,]"),
    T("[,1]"),
    T("[,]"),
    T("[1,,2]"),
    T("[1 2]"),
    T("[1;2]"),
    T("[1"),
    T("[1,"),
    T("[\"a\""),
    T("[\"a\",\n"),
    T("[1}"),
    T("{\"a\""),
    T("{\"a\":"),
    T("{\"a\":1"),
    T("{\"a\":1,"),
    T("{\"a\":1,}"),
    T("{,}"),
    T("{\"a\" 1}"),
    T("{\"a\"::1}"),
    T("{a:1}"),
    T("{1:1}"),
    T("{'a':1}"),
    T("{\"a\":1 \"b\":2}"),
    T("{\"a\":1]"),
    T("{null:1}"),
    T("{[]:1}"),
    T("{\"a\",\"b\"}"),
    T("{:1}"),
    T("{\"a\":}"),
    T("[] []"),
    T("{} {}"),
    T("1 //c"),
    T("/*c*/1"),
    T("[1/**/]"),
    T("# c\n1"),
    T("[1]x"),
    T("\"a\"\"b\""),
    T("null,"),
    T("\f1"),
    T("\v1"),
    T("\xC2\xA0"
      "1"),
    T("\xE2\x80\x83"
      "1"),
    T("*"),
    T("<"),
    T("\\u0031"),
    T("[\\n]"),
    T("{\"\xC3\":1}"),
    T("{\"\\ud800\":1}"),
    T("{\"a\n\":1}"),
};

static err_code parse(json_doc **doc, const char *text, size_t len, err_detail *d)
{
    *d = (err_detail){0};
    return json_parse(doc, text, len, LIMIT_JSON_DEPTH, d);
}

static void test_accepts(void)
{
    for (size_t i = 0; i < ARRAY_LEN(VALID); i++) {
        json_doc *doc;
        err_detail d;
        err_code err = parse(&doc, VALID[i].text, VALID[i].len, &d);
        if (err != ERR_OK) {
            fprintf(stderr, "valid %zu: %s\n", i, VALID[i].text);
        }
        CHECK_OK(err, d);
        if (err != ERR_OK) {
            continue;
        }
        /* Written and read again it is the same document. */
        bytes once, twice;
        bytes_init(&once, 4096);
        bytes_init(&twice, 4096);
        json_write(&once, json_root(doc));
        json_free(doc);
        CHECK_OK(parse(&doc, bytes_str(&once), once.len, &d), d);
        json_write(&twice, json_root(doc));
        CHECK_STR(bytes_str(&twice), bytes_str(&once));
        CHECK(!once.failed);
        json_free(doc);
        bytes_deinit(&once);
        bytes_deinit(&twice);
    }
}

static void test_refuses(void)
{
    for (size_t i = 0; i < ARRAY_LEN(INVALID); i++) {
        json_doc *doc;
        err_detail d;
        /* A heap copy of exactly this size: reading past the end shows under ASan. */
        char *text = malloc(INVALID[i].len + 1);
        memcpy(text, INVALID[i].text, INVALID[i].len);
        text = realloc(text, INVALID[i].len ? INVALID[i].len : 1);
        err_code err = parse(&doc, text, INVALID[i].len, &d);
        if (err != ERR_INVALID) {
            fprintf(stderr, "invalid %zu: %s\n", i, INVALID[i].text);
        }
        CHECK_INT(err, ERR_INVALID);
        CHECK(doc == NULL);
        CHECK(strstr(d.text, "line ") && strstr(d.text, "column "));
        CHECK_STR(d.name, "invalid_json");
        free(text);
    }
}

/* JSON with a \u0000 is valid, which the name says, but our strings end at NUL. */
static void test_nul(void)
{
    static const text_case documents[] = {T("\"\\u0000\""), T("[1,\n \"a\\u0000b\\u0000\"]"),
                                          T("{\"a\\u0000\":1}")};
    for (size_t i = 0; i < ARRAY_LEN(documents); i++) {
        json_doc *doc;
        err_detail d;
        CHECK_INT(parse(&doc, documents[i].text, documents[i].len, &d), ERR_INVALID);
        CHECK_STR(d.name, "unsupported_character");
        CHECK(strstr(d.text, i == 1 ? "line 2, column 4" : "line 1, column "));
        CHECK_INT(parse(&doc, documents[i].text, documents[i].len - 1, &d), ERR_INVALID);
        CHECK_STR(d.name, "invalid_json");
    }
}

/* Every prefix of a valid document but the whole is refused. */
static void test_prefixes(void)
{
    static const char text[] =
        "{\"a\":[1.5e3,\"\\ud83d\\ude00\xC3\xA9\",{\"b\":null}],\"c\":[true,false,-0]}";
    for (size_t n = 0; n <= sizeof text - 1; n++) {
        json_doc *doc;
        err_detail d;
        char *copy = malloc(n ? n : 1);
        memcpy(copy, text, n);
        CHECK_INT(parse(&doc, copy, n, &d), n == sizeof text - 1 ? ERR_OK : ERR_INVALID);
        json_free(doc);
        free(copy);
    }
}

static void test_place(void)
{
    json_doc *doc;
    err_detail d;
    static const char text[] = "{\n  \"\xC3\xA9\": 1,\n  \"b\": tru\n}";
    CHECK_INT(parse(&doc, text, sizeof text - 1, &d), ERR_INVALID);
    CHECK_STR(d.text, "JSON is not valid: an unknown word, at line 3, column 8");
    static const char large[] = "[1,\n 2e9, -1e999, x]";
    CHECK_INT(parse(&doc, large, sizeof large - 1, &d), ERR_INVALID);
    CHECK_STR(d.text, "JSON is not valid: a number that is too large, at line 2, column 7");
    static const char wide[] = "[\"\xC3\xA9\xE2\x82\xAC\" x]";
    CHECK_INT(parse(&doc, wide, sizeof wide - 1, &d), ERR_INVALID);
    CHECK_STR(d.text, "JSON is not valid: no ',' or closing bracket behind a value, at line 1, column 7");
}

/* depth opening brackets and as many closing ones. */
static err_code parse_nested(size_t depth, char open, char close, size_t max_depth, err_detail *d)
{
    bytes b;
    bytes_init(&b, 16u << 20);
    for (size_t i = 0; i < depth; i++) {
        bytes_append_char(&b, open);
        if (open == '{' && i + 1 < depth) {
            bytes_append_str(&b, "\"a\":");
        }
    }
    for (size_t i = 0; i < depth; i++) {
        bytes_append_char(&b, close);
    }
    json_doc *doc;
    err_code err = json_parse(&doc, bytes_str(&b), b.len, max_depth, d);
    json_free(doc);
    bytes_deinit(&b);
    return err;
}

static void test_limits(void)
{
    err_detail d;
    CHECK_OK(parse_nested(64, '[', ']', 64, &d), d);
    CHECK_OK(parse_nested(64, '{', '}', 64, &d), d);
    CHECK_INT(parse_nested(65, '[', ']', 64, &d), ERR_LIMIT);
    CHECK_STR(d.text, "JSON is not valid: arrays and objects nested too deeply, at line 1, column 65");
    CHECK_STR(d.name, "invalid_json");
    CHECK_INT(parse_nested(65, '{', '}', 64, &d), ERR_LIMIT);
    CHECK_INT(parse_nested(1, '[', ']', 0, &d), ERR_LIMIT);
    CHECK_OK(parse_nested(1000, '[', ']', 1000000, &d), d);
    CHECK_INT(parse_nested(1001, '[', ']', 1000000, &d), ERR_LIMIT);
    CHECK_INT(parse_nested(1000000, '[', ']', 1000000, &d), ERR_LIMIT);

    bytes b;
    bytes_init(&b, 16u << 20);
    bytes_append_char(&b, '[');
    for (int i = 0; i < LIMIT_JSON_VALUES; i++) {
        bytes_append_str(&b, i ? ",0" : "0");
    }
    bytes_append_char(&b, ']');
    json_doc *doc;
    CHECK_INT(json_parse(&doc, b.data, b.len, 64, &d), ERR_LIMIT);
    CHECK(strstr(d.text, "too many values") != NULL);
    json_free(doc);
    bytes_deinit(&b);
}

static void test_values(void)
{
    static const char text[] = "{\"n\":1,\"f\":1.0,\"s\":\"x\",\"t\":true,\"z\":null,\"a\":[1,2,3],\"n\":2,"
                               "\"big\":9007199254740993,\"e\":1e3,\"o\":{\"k\":-7},\"N\":5}";
    json_doc *doc;
    err_detail d;
    CHECK_OK(parse(&doc, text, sizeof text - 1, &d), d);
    const json *root = json_root(doc);
    CHECK(json_is(root, JSON_OBJECT));
    CHECK_INT(json_len(root), 11);
    CHECK_NEAR(json_num(json_get(root, "n"), -1), 2, 0); /* the last of two wins */
    CHECK_NEAR(json_num(json_get(root, "N"), -1), 5, 0); /* names are compared exactly */
    CHECK_STR(json_str(json_get(root, "s"), "?"), "x");
    CHECK_STR(json_str(json_get(root, "n"), "?"), "?");
    CHECK_STR(json_str(json_get(root, "none"), "?"), "?");
    CHECK(json_bool(json_get(root, "t"), false));
    CHECK(json_bool(json_get(root, "z"), true));
    CHECK(!json_bool(json_get(root, "s"), false));
    CHECK(json_is_true(json_get(root, "t")) && !json_is_true(json_get(root, "n")));
    CHECK(json_is(json_get(root, "z"), JSON_NULL) && json_is(NULL, JSON_NULL));
    CHECK_NEAR(json_num(json_get(root, "s"), -1.5), -1.5, 0);
    CHECK(json_get(json_get(root, "a"), "n") == NULL && json_get(NULL, "n") == NULL);
    CHECK_NEAR(json_num(json_get(json_get(root, "o"), "k"), 0), -7, 0);
    CHECK_STR(json_key(json_child(root)), "n");
    CHECK(json_key(json_child(json_get(root, "a"))) == NULL);
    CHECK(json_child(json_get(root, "s")) == NULL && json_next(NULL) == NULL);
    double sum = 0;
    for (const json *v = json_child(json_get(root, "a")); v; v = json_next(v)) {
        sum += json_num(v, 0);
    }
    CHECK_NEAR(sum, 6, 0);
    CHECK_STR(json_number_text(json_get(root, "n")), "2");
    CHECK_STR(json_number_text(json_get(root, "f")), "1.0");
    CHECK_STR(json_number_text(json_get(root, "e")), "1e3");
    CHECK_STR(json_number_text(json_get(root, "big")), "9007199254740993");
    CHECK(json_number_text(json_get(root, "s")) == NULL);
    json_free(doc);
    json_free(NULL);
}

static bool int_of(const char *text, int64_t min, int64_t max, int64_t *out)
{
    json_doc *doc;
    err_detail d;
    if (parse(&doc, text, strlen(text), &d) != ERR_OK) {
        return false;
    }
    bool ok = json_int(json_root(doc), min, max, out);
    json_free(doc);
    return ok;
}

static void test_ints(void)
{
    int64_t v = 0;
    CHECK(int_of("7", 0, 10, &v) && v == 7);
    CHECK(int_of("-0", 0, 10, &v) && v == 0);
    CHECK(int_of("1.0", 0, 10, &v) && v == 1);
    CHECK(int_of("1e3", 0, 1000, &v) && v == 1000);
    CHECK(int_of("9007199254740993", 0, INT64_MAX, &v) && v == 9007199254740993);
    CHECK(int_of("9223372036854775807", 0, INT64_MAX, &v) && v == INT64_MAX);
    CHECK(int_of("-9223372036854775808", INT64_MIN, 0, &v) && v == INT64_MIN);
    v = 42;
    CHECK(!int_of("9223372036854775808", INT64_MIN, INT64_MAX, &v));
    CHECK(!int_of("1e19", INT64_MIN, INT64_MAX, &v));
    CHECK(!int_of("1.5", 0, 10, &v));
    CHECK(!int_of("11", 0, 10, &v));
    CHECK(!int_of("-1", 0, 10, &v));
    CHECK(!int_of("\"7\"", 0, 10, &v));
    CHECK(!int_of("true", 0, 10, &v));
    CHECK_INT(v, 42);
}

/* Numbers longer than cJSON's own buffer, next to strings that hold digits and quotes. */
static void test_long_numbers(void)
{
    static const char text[] =
        "{\"k-1\":\"\\\"12\",\"a\":0.1000000000000000000000000000000000000000000000000000000000000000001,"
        "\"b\":3,\"c\":100000000000000000000000000000000000000000000000000000000000000000000000}";
    json_doc *doc;
    err_detail d;
    CHECK_OK(parse(&doc, text, sizeof text - 1, &d), d);
    const json *root = json_root(doc);
    CHECK_NEAR(json_num(json_get(root, "a"), 0), 0.1, 0);
    CHECK_NEAR(json_num(json_get(root, "b"), 0), 3, 0);
    CHECK_NEAR(json_num(json_get(root, "c"), 0) / 1e71, 1, 1e-15);
    bytes b;
    bytes_init(&b, 4096);
    json_write(&b, root);
    CHECK_STR(bytes_str(&b), text);
    bytes_deinit(&b);
    json_free(doc);
}

static void test_write(void)
{
    static const char text[] = " { \"a\" : [ 1.0 , \"\\u00e9\\n\" , null ] , \"b\" : { } , \"c\" : [ ] , "
                               "\"d\" : [ { \"e\" : false } ] } ";
    json_doc *doc;
    err_detail d;
    CHECK_OK(parse(&doc, text, sizeof text - 1, &d), d);
    bytes b;
    bytes_init(&b, 4096);
    json_write(&b, json_root(doc));
    CHECK_STR(bytes_str(&b), "{\"a\":[1.0,\"\xC3\xA9\\n\",null],\"b\":{},\"c\":[],\"d\":[{\"e\":false}]}");
    bytes_clear(&b);
    json_write(&b, json_get(json_root(doc), "missing"));
    CHECK_STR(bytes_str(&b), "null");
    bytes_deinit(&b);
    bytes_init(&b, 8);
    json_write(&b, json_root(doc));
    CHECK(b.failed && b.len <= 8);
    bytes_deinit(&b);
    json_free(doc);
}

static void test_file(void)
{
    char path[] = "/tmp/parley_json_XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    FILE *f = fdopen(fd, "w");
    fputs("{\"a\": 1,}", f);
    fclose(f);
    json_doc *doc;
    err_detail d;
    CHECK_INT(json_parse_file(&doc, path, 4096, &d), ERR_INVALID);
    CHECK(strstr(d.text, path) == d.text && strstr(d.text, "line 1, column 9"));
    CHECK_INT(json_parse_file(&doc, path, 4, &d), ERR_LIMIT);
    CHECK(doc == NULL);
    remove(path);
    CHECK_INT(json_parse_file(&doc, path, 4096, &d), ERR_NOT_FOUND);
}

/* A folder whose name leaves no room for that of a file. */
static void test_long_folder(void)
{
    static char dir[4096];
    json_doc *doc = NULL;
    err_detail d = {0};
    memset(dir, 'x', sizeof dir - 5);
    dir[0] = '/';
    const json_source docs = json_folder(dir);
    CHECK_INT(docs.read(docs.ctx, "config.json", &doc, &d), ERR_INVALID);
    CHECK_STR(d.text, "the path of config.json is too long");
    CHECK(doc == NULL);
}

/* What Python writes of an infinite number, in a folder's documents alone, and not in texts. */
static void test_infinity(void)
{
    char dir[] = "/tmp/parley_json_XXXXXX", path[64];
    json_doc *doc = NULL;
    err_detail d;
    CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof path, "%s/config.json", dir);
    FILE *f = fopen(path, "w");
    fputs("{\"limits\":[0.0,Infinity,-Infinity],\"text\":\"Infinity \\\" Infinity\",\"last\":Infinity}", f);
    fclose(f);
    const json_source docs = json_folder(dir);
    CHECK_OK(docs.read(docs.ctx, "config.json", &doc, &d), d);
    const json *limits = json_get(json_root(doc), "limits"), *high = json_next(json_child(limits));
    CHECK_NEAR(json_num(high, 0) / 3e38, 1, 1e-9);
    CHECK_NEAR(json_num(json_next(high), 0) / -3e38, 1, 1e-9);
    CHECK_STR(json_str(json_get(json_root(doc), "text"), ""), "Infinity \" Infinity");
    CHECK(json_num(json_get(json_root(doc), "last"), 0) > 1e38);
    json_free(doc);
    CHECK_INT(json_parse_file(&doc, path, 4096, &d), ERR_INVALID);
    CHECK(remove(path) == 0 && rmdir(dir) == 0);
}

/* A document put together of its own values and of those of another reads and writes as if it had
 * been parsed. */
static void test_build(void)
{
    static const char SOURCE[] = "{\"long\":9007199254740993,\"null\":null,\"deep\":[{\"x\":1.0}]}";
    json_doc *source, *doc;
    err_detail d;
    json *root, *inner;
    CHECK_OK(json_parse(&source, SOURCE, sizeof SOURCE - 1, 8, &d), d);
    doc = json_build(&root, JSON_OBJECT);
    json_add_string(doc, root, "text", "a\"b");
    inner = json_add_object(doc, json_add_array(doc, root, "list"), NULL);
    json_add_bool(doc, inner, "yes", true);
    json_add_shared(doc, inner, "nothing", NULL);
    for (const json *v = json_child(json_root(source)); v; v = json_next(v)) {
        json_add_shared(doc, inner, json_key(v), v);
        json_add_shared(doc, root, json_key(v), v);
    }
    for (int i = 0; i < 40; i++) { /* enough for an index */
        char key[8];
        snprintf(key, sizeof key, "k%d", i);
        json_add_bool(doc, root, key, i % 2);
    }
    CHECK(json_finish(doc));
    CHECK(json_root(doc) == root);
    CHECK(json_is_true(json_get(root, "k31")) && !json_is_true(json_get(root, "k30")));
    CHECK_STR(json_number_text(json_get(root, "long")), "9007199254740993");
    bytes out;
    bytes_init(&out, 4096);
    json_write(&out, json_get(root, "list"));
    CHECK_STR(bytes_str(&out),
              "[{\"yes\":true,\"long\":9007199254740993,\"null\":null,\"deep\":[{\"x\":1.0}]}]");
    json_free(doc);
    out.len = 0;
    json_write(&out, json_root(source)); /* is as it was */
    CHECK_STR(bytes_str(&out), SOURCE);
    bytes_deinit(&out);
    json_free(source);
    CHECK(!json_finish(NULL));
}

/* What a document may take is known before it is read: enough, and not many times of it. */
static void test_memory(void)
{
    char text[2 * 1000 + 2];
    for (size_t n = 1; n <= 1000; n *= 10) {
        for (size_t i = 0; i < n; i++) {
            memcpy(text + 2 * i, i ? ",1" : "[1", 2);
        }
        text[2 * n] = ']';
        const size_t len = 2 * n + 1, took = json_memory(text, len);
        CHECK(took >= (n + 1) * 64 + len && took <= (n + 1) * 160 + len);
    }
    CHECK_INT(json_memory("", 0), json_memory("\n", 1) - 1); /* one value, and the text */
    CHECK_INT(json_memory("{", 1), json_memory("[", 1));
    CHECK_INT(json_memory("{{", 2), 2 * json_memory("[[", 2) - json_memory("{[", 2));
    /* More values than are read take no more. */
    const size_t most = LIMIT_JSON_VALUES + 10;
    char *commas = malloc(most);
    CHECK(commas != NULL);
    if (commas) {
        memset(commas, ',', most);
        CHECK_INT(json_memory(commas, most) - most, json_memory(commas, most - 10) - (most - 10));
        CHECK(json_memory(commas, most - 12) - (most - 12) < json_memory(commas, most) - most);
    }
    free(commas);
}

/* ---- every number up to a length ---- */

enum { NUMBER_BYTES = 7, BOUND = 1000 };

typedef struct decimal {
    bool is_number, is_negative;
    int64_t digits;   /* without the point */
    int64_t exponent; /* of ten */
} decimal;

static size_t read_digits(const char *text, int64_t *value)
{
    size_t n = 0;
    for (; text[n] >= '0' && text[n] <= '9'; n++) {
        *value = *value * 10 + text[n] - '0';
    }
    return n;
}

/* The grammar of RFC 8259, 6, read by hand. */
static decimal read_decimal(const char *text)
{
    decimal d = {.is_negative = *text == '-'};
    text += d.is_negative;
    size_t n = read_digits(text, &d.digits);
    bool ok = n > 0 && (n == 1 || text[0] != '0');
    text += n;
    if (*text == '.') {
        n = read_digits(text + 1, &d.digits);
        ok = ok && n > 0;
        d.exponent = -(int64_t)n;
        text += 1 + n;
    }
    if (*text == 'e' || *text == 'E') {
        const bool is_small = text[1] == '-';
        int64_t e = 0;
        text += 1 + (is_small || text[1] == '+');
        n = read_digits(text, &e);
        ok = ok && n > 0;
        d.exponent += is_small ? -e : e;
        text += n;
    }
    d.is_number = ok && *text == '\0';
    return d;
}

/* Its value if that is a whole number within the bound. What is nearer to 0 than any double is 0. */
static bool whole_value(decimal d, int64_t *value)
{
    enum { NO_DOUBLE = -330 };
    if (d.exponent < NO_DOUBLE) {
        d.digits = 0;
    }
    for (; d.exponent < 0 && d.digits % 10 == 0 && d.digits != 0; d.exponent++) {
        d.digits /= 10;
    }
    for (; d.exponent > 0 && d.digits != 0 && d.digits <= BOUND; d.exponent--) {
        d.digits *= 10;
    }
    *value = d.is_negative ? -d.digits : d.digits;
    return d.digits == 0 || (d.exponent == 0 && d.digits <= BOUND);
}

static void check_number(const char *text)
{
    enum { LARGEST_EXPONENT = 308 };
    const decimal d = read_decimal(text);
    json_doc *doc = NULL;
    int64_t magnitude = d.exponent, found = 0, wanted = 0;
    for (int64_t left = d.digits; left >= 10; left /= 10) {
        magnitude++;
    }
    /* what is between needs more digits than there are here to matter: 1.8e308 has five */
    const bool is_finite = d.digits == 0 || magnitude < LARGEST_EXPONENT ||
                           (magnitude == LARGEST_EXPONENT && strtod(text, NULL) < INFINITY);
    const bool is_read = json_parse(&doc, text, strlen(text), 4, NULL) == ERR_OK;
    bool ok = is_read == (d.is_number && is_finite);
    if (ok && is_read) {
        const json *v = json_root(doc);
        const bool is_whole = whole_value(d, &wanted);
        ok = strcmp(json_number_text(v), text) == 0 && json_int(v, -BOUND, BOUND, &found) == is_whole &&
             (!is_whole || found == wanted);
    }
    if (!ok) {
        fprintf(stderr, "  %s: read %d, a number %d, %lld, expected %lld\n", text, is_read, d.is_number,
                (long long)found, (long long)wanted);
        CHECK(ok);
    }
    json_free(doc);
}

/* All texts of up to NUMBER_BYTES bytes that a number can be made of. */
static void test_every_number(void)
{
    static const char BYTES[] = "015-+.eE";
    enum { N = sizeof BYTES - 1 };
    for (size_t n = 1; n <= NUMBER_BYTES; n++) {
        size_t many = 1;
        for (size_t i = 0; i < n; i++) {
            many *= N;
        }
        for (size_t k = 0; k < many && check_failures == 0; k++) {
            char text[NUMBER_BYTES + 1] = "";
            for (size_t i = 0, left = k; i < n; i++, left /= N) {
                text[i] = BYTES[left % N];
            }
            check_number(text);
        }
    }
}

/* Nothing of what was parsed to look at it stays: the sanitizer of leaks says so. */
static void test_is_object_text(void)
{
    static const char *const YES[] = {"{}", " {\"a\":[1]} "}, *const NO[] = {"",    "[]",   "7",   "{",
                                                                             "{}x", "{}{}", "null"};
    for (size_t i = 0; i < ARRAY_LEN(YES); i++) {
        CHECK(json_is_object_text(YES[i], strlen(YES[i])));
    }
    for (size_t i = 0; i < ARRAY_LEN(NO); i++) {
        CHECK(!json_is_object_text(NO[i], strlen(NO[i])));
    }
    CHECK(json_is_object_text("{}x", 2));
}

int main(void)
{
    test_is_object_text();
    test_every_number();
    test_memory();
    test_infinity();
    test_build();
    test_accepts();
    test_refuses();
    test_nul();
    test_prefixes();
    test_place();
    check_faults();
    test_limits();
    test_values();
    test_ints();
    test_long_numbers();
    test_write();
    test_file();
    test_long_folder();
    CHECK_DONE();
}
