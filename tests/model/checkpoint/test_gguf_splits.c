/* How the splittings that tokenizer.ggml.pre may name cut a text, seen through a vocabulary in
 * which digits and two words merge: the sizes of the tokens; and what the tokenizer is told of each: splits.txt. */
#include <unistd.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "model/checkpoint/gguf_tokenizer.h"
#include "tests/model/checkpoint/gguf_maker.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "text/tokenizer/tokenizer.h"

/* Behind the bytes; "two" has no merge. */
static const char *const MORE[] = {"12",
                                   "123",
                                   "1234",
                                   "ab",
                                   "\xC4\xA0"
                                   "ab",
                                   "two"};
static const char *const MERGES[] = {"1 2", "12 3", "123 4", "a b", "\xC4\xA0 ab"};

/* The character that stands for a byte in byte-level vocabularies. */
static void put_byte(bytes *b, int byte)
{
    const bool plain = (byte > ' ' && byte < 127) || (byte > 160 && byte != 173);
    uint32_t c = (uint32_t)byte;
    if (!plain) {
        c = byte <= ' ' ? 256u + (uint32_t)byte : byte == 173 ? 323u : 289u + (uint32_t)byte - 127u;
    }
    char text[4];
    const size_t n = utf8_encode(text, c);
    put_number(b, n, 8);
    bytes_append(b, text, n);
}

/* A vocabulary with the splitting `pre`, without a token for control character 1. */
static void write_vocabulary(const char *path, const char *pre)
{
    gguf_maker m;
    maker_init(&m);
    maker_text(&m, "tokenizer.ggml.model", "gpt2");
    maker_text(&m, "tokenizer.ggml.pre", pre);
    maker_array(&m, "tokenizer.ggml.tokens", GGUF_TEXT, 256 + ARRAY_LEN(MORE));
    for (int byte = 0; byte < 256; byte++) {
        if (byte == 1) {
            put_text(&m.values, "unused");
        } else {
            put_byte(&m.values, byte);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(MORE); i++) {
        put_text(&m.values, MORE[i]);
    }
    maker_array(&m, "tokenizer.ggml.merges", GGUF_TEXT, ARRAY_LEN(MERGES));
    for (size_t i = 0; i < ARRAY_LEN(MERGES); i++) {
        put_text(&m.values, MERGES[i]);
    }
    maker_write(&m, path);
}

/* The text as tokens with bars between them. */
static void cut(bytes *out, const tokenizer *tok, const char *text)
{
    token_ids ids;
    err_detail d = {0};
    token_ids_init(&ids);
    CHECK_OK(tokenizer_encode(tok, &ids, text, strlen(text), TOKENIZER_SPECIALS, &d), d);
    bytes_clear(out);
    for (size_t i = 0; i < ids.len; i++) {
        size_t n = 0;
        const char *token = tokenizer_token_bytes(tok, ids.ids[i], &n, NULL);
        bytes_append_str(out, i ? "|" : "");
        bytes_append(out, token, n);
    }
    token_ids_deinit(&ids);
}

int main(void)
{
    static const struct {
        const char *pre, *digits, *word;
    } cases[] = {
        {"qwen2", "1|2|3|4", "t|w|o"},
        {"qwen35", "1|2|3|4", "t|w|o"},
        {"llama-bpe", "123|4", "two"},
        {"gpt-2", "1234", "t|w|o"},
        {"gpt-4o", "123|4", "two"},
        {"mpt", "1234", "t|w|o"},
        {"starcoder", "1|2|3|4", "t|w|o"},
        {"refact", "1|2|3|4", "t|w|o"},
        {"command-r", "1|2|3|4", "t|w|o"},
        {"falcon", "123|4", "t|w|o"},
        {"deepseek-coder", "1|2|3|4", "t|w|o"},
    };
    char folder[] = "/tmp/parley_splits_XXXXXX", path[64];
    bytes json, found, told = bytes_empty(1 << 20);
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/v.gguf", folder);
    bytes_init(&json, 1 << 20);
    bytes_init(&found, 1 << 10);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        gguf_file *f = NULL;
        tokenizer *tok = NULL;
        err_detail d = {0};
        write_vocabulary(path, cases[i].pre);
        CHECK_OK(gguf_file_open(&f, path, &d), d);
        bytes_clear(&json);
        CHECK_OK(gguf_tokenizer_json(&json, f, path, &d), d);
        CHECK_OK(tokenizer_open_json(&tok, bytes_str(&json), json.len, path, &d), d);
        const char *vocabulary = strstr(bytes_str(&json), ",\"vocab\"");
        CHECK(vocabulary != NULL);
        bytes_printf(&told, "%s: %.*s\n", cases[i].pre, vocabulary ? (int)(vocabulary - bytes_str(&json)) : 0,
                     bytes_str(&json));
        if (tok) {
            cut(&found, tok, "1234");
            CHECK_STR(bytes_str(&found), cases[i].digits);
            cut(&found, tok, "two");
            CHECK_STR(bytes_str(&found), cases[i].word);
            cut(&found, tok, "ab ab");
            CHECK_STR(bytes_str(&found), "ab| ab");
            cut(&found, tok,
                "a\x01"
                "b\x01");
            CHECK(strstr(bytes_str(&found), "\x01") == NULL); /* there is no token for it */
        }
        tokenizer_close(tok);
        gguf_file_close(f);
    }
    recorded_check("model/checkpoint/splits.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(rmdir(folder), 0);
    bytes_deinit(&json);
    bytes_deinit(&found);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
