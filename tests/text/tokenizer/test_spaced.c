/* A vocabulary in SentencePiece's form (Gemma): spaces as U+2581, characters, bytes for those that are
 * no token; words are cut where no merge goes across, and nowhere else. */
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "text/tokenizer/tokenizer.h"

#define MARK "\xe2\x96\x81"

static tokenizer *make(const char *merges, const char *decoder, err_code expected)
{
    tokenizer *tok = NULL;
    err_detail d = {0};
    bytes text;
    bytes_init(&text, 1 << 20);
    bytes_append_str(&text,
                     "{\"added_tokens\":[{\"id\":0,\"content\":\"<bos>\",\"special\":true}],\"normalizer\":{"
                     "\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" MARK "\"},"
                     "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":"
                     "\"MergedWithPrevious\",\"invert\":false},\"decoder\":");
    bytes_append_str(&text, decoder);
    bytes_append_str(&text, ",\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,"
                            "\"vocab\":{\"<bos>\":0");
    for (int byte = 0; byte < 256; byte++) {
        bytes_printf(&text, ",\"<0x%02X>\":%d", byte, 1 + byte);
    }
    bytes_append_str(&text, ",\"" MARK "\":300,\"a\":301,\"b\":302,\"" MARK "a\":303,\"" MARK MARK
                            "\":304,\"a" MARK "\":305,\"\\n\":306,\"ab\":307},\"merges\":[");
    bytes_append_str(&text, merges);
    bytes_append_str(&text, "]}}");
    CHECK_INT(tokenizer_open_json(&tok, bytes_str(&text), text.len, "test", &d), expected);
    bytes_deinit(&text);
    return tok;
}

static void check_ids(const tokenizer *tok, const char *text, const int32_t *ids, size_t n)
{
    token_ids out;
    err_detail d = {0};
    bytes back;
    token_ids_init(&out);
    bytes_init(&back, 1 << 16);
    CHECK_OK(tokenizer_encode(tok, &out, text, strlen(text), TOKENIZER_SPECIALS, &d), d);
    CHECK_INT(out.len, n);
    for (size_t i = 0; i < n && i < out.len; i++) {
        CHECK_INT(out.ids[i], ids[i]);
    }
    tokenizer_decode(tok, &back, out.ids, out.len, false);
    CHECK(strcmp(bytes_str(&back), strcmp(text, "a" MARK "b") == 0 ? "a b" : text) == 0);
    bytes_deinit(&back);
    token_ids_deinit(&out);
}

#define IDS(...) (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)

/* The space before a text, as Llama 2 (before each part) and Mistral (before the first) have it. */
static void test_prefix(void)
{
    static const char *const forms[] = {
        "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"" MARK
        "\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" MARK
        "\"}]},\"pre_tokenizer\":null",
        "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" MARK
        "\",\"prepend_scheme\":\"first\",\"split\":false}"};
    for (size_t form = 0; form < 2; form++) {
        tokenizer *tok = NULL;
        token_ids out;
        err_detail d = {0};
        bytes text;
        bytes_init(&text, 1 << 20);
        bytes_printf(&text, "{\"added_tokens\":[{\"id\":0,\"content\":\"<bos>\",\"special\":true}],%s,",
                     forms[form]);
        bytes_append_str(
            &text,
            "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{"
            "\"String\":\"" MARK "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
            "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},\"model\":{\"type\":\"BPE\","
            "\"byte_fallback\":true,\"merges\":[[\"" MARK "\",\"a\"]],\"vocab\":{\"<bos>\":0");
        for (int byte = 0; byte < 256; byte++) {
            bytes_printf(&text, ",\"<0x%02X>\":%d", byte, 1 + byte);
        }
        bytes_append_str(&text, ",\"" MARK "\":300,\"a\":301,\"\":302,\"" MARK "a\":303}}}");
        CHECK_OK(tokenizer_open_json(&tok, bytes_str(&text), text.len, "test", &d), d);
        const int32_t each[] = {303, 0, 303, 0, 300, 303}, first[] = {303, 0, 301, 0, 303};
        token_ids_init(&out);
        CHECK_OK(tokenizer_encode(tok, &out, "a<bos>a<bos> a", 14, TOKENIZER_SPECIALS, &d), d);
        CHECK(form == 0 ? out.len == 6 && memcmp(out.ids, each, sizeof each) == 0
                        : out.len == 5 && memcmp(out.ids, first, sizeof first) == 0);
        bytes_clear(&text);
        tokenizer_decode(tok, &text, out.ids, 1, false);
        CHECK_STR(bytes_str(&text), "a");
        static const struct {
            int32_t ids[3];
            size_t n;
            const char *text;
        } decoded[] = {{{301, 303}, 2, "a a"},    {{303, 301}, 2, "aa"},         {{300}, 1, ""},
                       {{300, 300}, 2, " "},      {{302, 303, 303}, 3, "a a"},   {{302, 301}, 2, "a"},
                       {{302, 302}, 2, ""},       {{0, 303}, 2, "<bos> a"},      {{1 + ' ', 301}, 2, "a"},
                       {{302, 300, 300}, 3, " "}, {{301, 0, 303}, 3, "a<bos> a"}};
        for (size_t i = 0; i < ARRAY_LEN(decoded); i++) {
            bytes_clear(&text);
            tokenizer_decode(tok, &text, decoded[i].ids, decoded[i].n, false);
            CHECK_STR(bytes_str(&text), decoded[i].text);
        }
        token_ids_deinit(&out);
        tokenizer_close(tok);
        bytes_deinit(&text);
    }
}

int main(void)
{
    static const char decoder[] =
        "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"" MARK
        "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]}";
    tokenizer *tok = make("[\"" MARK "\",\"a\"],[\"" MARK "\",\"" MARK "\"],[\"a\",\"b\"]", decoder, ERR_OK);
    check_ids(tok, "a a", IDS(301, 303));
    check_ids(tok, "<bos>ab  ab", IDS(0, 307, 300, 303, 302));
    check_ids(tok, "\n\t", IDS(306, 1 + 9)); /* a token of its own, and a byte */
    check_ids(tok,
              "\xc3\xa9"
              "a",
              IDS(1 + 0xc3, 1 + 0xa9, 301));
    check_ids(tok, "a" MARK "b", IDS(301, 300, 302)); /* the character is a space */
    tokenizer_close(tok);
    /* a merge across the space: no cut there */
    tok = make("[\"a\",\"" MARK "\"],[\"a\",\"b\"]", decoder, ERR_OK);
    check_ids(tok, "a b ab", IDS(305, 302, 300, 307));
    tokenizer_close(tok);
    CHECK(make("", "{\"type\":\"ByteLevel\"}", ERR_UNSUPPORTED) == NULL);
    test_prefix();
    CHECK_DONE();
}
