#include "model/gguf_tokenizer.h"

#include <string.h>

#include "base/utf8.h"

/* As numbered in the file. */
typedef enum token_kind { TOKEN_CONTROL = 3, TOKEN_ADDED = 4, TOKEN_UNUSED = 5 } token_kind;

/* How text is cut before merging, by the name that tokenizer.ggml.pre has for it. TRAP: Qwen3.5 counts marks as letters,
 * which Qwen2 and Qwen3 do not. */
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES       "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
static const struct {
    const char *name, *pattern;
} SPLITS[] = {
    {"qwen2", CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES},
    {"qwen35", CONTRACTIONS
     "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES},
};

/* What is written and read from, for messages. */
typedef struct job {
    bytes *out;
    const gguf_file *f;
    const char *path;
    err_detail *detail;
} job;

static err_code fault(const job *j, const char *key, const char *what)
{
    return err_set(j->detail, ERR_CORRUPT, "%s: metadata %s %s", j->path, key, what);
}

static bool is_text(const gguf_file *f, const char *key, const char *expected)
{
    const char *text = NULL;
    size_t n = 0;
    return gguf_text(gguf_find(f, key), &text, &n) && n == strlen(expected) && memcmp(text, expected, n) == 0;
}

static const gguf_value *texts_of(const gguf_file *f, const char *key)
{
    const gguf_value *v = gguf_find(f, key);
    return v && v->is_array && v->type == GGUF_TEXT ? v : NULL;
}

/* The splitting that the file names. */
static err_code find_split(const job *j, const char **pattern)
{
    const char *text = "";
    size_t n = 0;
    if (!is_text(j->f, "tokenizer.ggml.model", "gpt2")) {
        bool given = gguf_text(gguf_find(j->f, "tokenizer.ggml.model"), &text, &n);
        return err_set(
            j->detail, ERR_UNSUPPORTED,
            "%s: metadata tokenizer.ggml.model is \"%.*s\"; only \"gpt2\" (byte-level BPE) is supported",
            j->path, given && n < 60 ? (int)n : 0, text);
    }
    for (size_t i = 0; i < ARRAY_LEN(SPLITS); i++) {
        if (is_text(j->f, "tokenizer.ggml.pre", SPLITS[i].name)) {
            *pattern = SPLITS[i].pattern;
            return ERR_OK;
        }
    }
    bool given = gguf_text(gguf_find(j->f, "tokenizer.ggml.pre"), &text, &n);
    return err_set(j->detail, ERR_UNSUPPORTED,
                   "%s: metadata tokenizer.ggml.pre is \"%.*s\"; \"qwen2\" and \"qwen35\" are supported",
                   j->path, given && n < 60 ? (int)n : 0, text);
}

/* Token i's kind; without a list of them all are plain. */
static token_kind kind_of(const gguf_value *kinds, uint64_t i)
{
    int64_t kind = 1;
    return gguf_int_at(kinds, i, &kind) ? (token_kind)kind : (token_kind)1;
}

static err_code append_text(const job *j, const char *key, uint64_t i, const char *text, size_t n)
{
    if (!utf8_valid(text, n)) {
        return err_set(j->detail, ERR_CORRUPT, "%s: metadata %s: text %llu is no UTF-8", j->path, key,
                       (unsigned long long)i);
    }
    bytes_append_json(j->out, text, n);
    return ERR_OK;
}

/* The tokens: added ones as objects of a list, or the others as members "text": id. */
static err_code append_tokens(const job *j, const gguf_value *tokens, const gguf_value *kinds, bool added)
{
    const uint8_t *cursor = tokens->data;
    const char *comma = "", *text = NULL;
    size_t n = 0;
    err_code err = ERR_OK;
    for (uint64_t i = 0; !err && i < tokens->n; i++) {
        const token_kind kind = kind_of(kinds, i);
        gguf_next_text(&cursor, &text, &n);
        if (kind == TOKEN_UNUSED || added != (kind == TOKEN_CONTROL || kind == TOKEN_ADDED)) {
            continue;
        }
        if (added) {
            bytes_printf(j->out, "%s{\"id\":%llu,\"content\":", comma, (unsigned long long)i);
            err = append_text(j, tokens->key, i, text, n);
            bytes_printf(j->out, ",\"special\":%s}", kind == TOKEN_CONTROL ? "true" : "false");
        } else {
            bytes_append_str(j->out, comma);
            err = append_text(j, tokens->key, i, text, n);
            bytes_printf(j->out, ":%llu", (unsigned long long)i);
        }
        comma = ",\n";
    }
    return err;
}

static err_code append_merges(const job *j, const gguf_value *merges)
{
    const uint8_t *cursor = merges->data;
    const char *text = NULL;
    size_t n = 0;
    err_code err = ERR_OK;
    for (uint64_t i = 0; !err && i < merges->n; i++) {
        gguf_next_text(&cursor, &text, &n);
        bytes_append_str(j->out, i ? ",\n" : "");
        err = append_text(j, merges->key, i, text, n);
    }
    return err;
}

err_code gguf_tokenizer_json(bytes *out, const gguf_file *f, const char *path, err_detail *detail)
{
    const job j = {out, f, path, detail};
    const char *pattern = "";
    const gguf_value *tokens = texts_of(f, "tokenizer.ggml.tokens"),
                     *merges = texts_of(f, "tokenizer.ggml.merges");
    const gguf_value *kinds = gguf_find(f, "tokenizer.ggml.token_type");
    err_code err = find_split(&j, &pattern);
    if (!err && !tokens) {
        err = fault(&j, "tokenizer.ggml.tokens", "is missing or no list of texts");
    }
    if (!err && !merges) {
        err = fault(&j, "tokenizer.ggml.merges", "is missing or no list of texts");
    }
    if (!err && kinds && (!kinds->is_array || kinds->n != tokens->n || kinds->type == GGUF_TEXT)) {
        err = fault(&j, "tokenizer.ggml.token_type", "has not one number for each token");
    }
    if (err) {
        return err;
    }
    bytes_append_str(
        out, "{\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
             "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":");
    bytes_append_json(out, pattern, strlen(pattern));
    bytes_append_str(out, "}},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},"
                          "\"decoder\":{\"type\":\"ByteLevel\"},\"added_tokens\":[");
    err = append_tokens(&j, tokens, kinds, true);
    bytes_append_str(out, "],\"model\":{\"type\":\"BPE\",\"vocab\":{");
    if (!err) {
        err = append_tokens(&j, tokens, kinds, false);
    }
    bytes_append_str(out, "},\"merges\":[");
    if (!err) {
        err = append_merges(&j, merges);
    }
    bytes_append_str(out, "]}}");
    if (!err && out->failed) {
        err = err_set(detail, ERR_LIMIT, "%s: the tokenizer is too large", path);
    }
    return err;
}

int32_t gguf_token_id(const gguf_file *f, const char *text)
{
    const gguf_value *tokens = texts_of(f, "tokenizer.ggml.tokens");
    const uint8_t *cursor = tokens ? tokens->data : NULL;
    const size_t wanted = strlen(text);
    const char *found = NULL;
    size_t n = 0;
    for (uint64_t i = 0; tokens && i < tokens->n && i <= INT32_MAX; i++) {
        gguf_next_text(&cursor, &found, &n);
        if (n == wanted && memcmp(found, text, n) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}
