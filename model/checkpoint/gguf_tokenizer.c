#include "model/checkpoint/gguf_tokenizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* As numbered in the file. */
typedef enum token_kind {
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_ADDED = 4,
    TOKEN_UNUSED = 5
} token_kind;

/* How text is cut before merging, by the name that tokenizer.ggml.pre has for it: each pattern cuts
 * the pieces of the one before. TRAP: Qwen3.5 counts marks as letters, which Qwen2 and Qwen3 do
 * not. */
enum { PATTERNS_MAX = 5 };
#define MARK           "\xe2\x96\x81"
#define CONTRACTIONS   "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES         "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORDS          CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define SIGNS          "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES
#define UPPER          "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER          "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define LEAD           "[^\\r\\n\\p{L}\\p{N}]?"
#define CASED          LEAD UPPER "*" LOWER "+" CONTRACTIONS "?|" LEAD UPPER "+" LOWER "*" CONTRACTIONS "?|\\p{N}{1,3}"
#define SIGNS_OR_PATHS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES
#define GPT2           "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define HAN_KANA       "[\\x{4e00}-\\x{9fa5}\\x{0800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
typedef struct split {
    const char *name;
    bool nfc;                           /* text is composed first */
    bool whole_tokens;                  /* a piece that is a token is taken whole, whatever the merges say */
    const char *patterns[PATTERNS_MAX]; /* none: SentencePiece's form, where spaces become U+2581 */
} split;
/* tokenizer.ggml.model says it, without tokenizer.ggml.pre. */
static const split SPACED = {.name = "gemma4"}, SCORED = {.name = "llama"}; /* scores in place of merges */
static const split SPLITS[] = {
    {"qwen2", true, false, {WORDS "\\p{N}" SIGNS}},
    {"qwen35",
     true,
     false,
     {CONTRACTIONS
      "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES}},
    {"llama-bpe", false, true, {WORDS "\\p{N}{1,3}" SIGNS}},
    {"gpt-4o", false, true, {CASED SIGNS_OR_PATHS}},
    {"gpt-2", false, false, {GPT2}},
    {"mpt", true, false, {GPT2}},
    {"starcoder", false, false, {"\\p{N}", GPT2}},
    {"refact", false, false, {"\\p{N}", GPT2}},
    {"command-r", true, false, {"\\p{N}", GPT2}},
    {"falcon", false, false, {"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"}},
    {"deepseek-coder", false, false, {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", HAN_KANA, "\\p{N}"}},
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

static const gguf_value *texts_of(const gguf_file *f, const char *key)
{
    const gguf_value *v = gguf_find(f, key);
    return v && v->is_array && v->type == GGUF_TEXT ? v : NULL;
}

/* The splitting that the file names. */
static err_code find_split(const job *j, const split **found)
{
    const char *text = "";
    size_t n = 0;
    const gguf_value *model = gguf_find(j->f, "tokenizer.ggml.model");
    if (gguf_is_text(model, SPACED.name) || gguf_is_text(model, SCORED.name)) {
        *found = gguf_is_text(model, SPACED.name) ? &SPACED : &SCORED;
        return ERR_OK;
    }
    if (!gguf_is_text(model, "gpt2")) {
        bool given = gguf_text(model, &text, &n);
        return err_set(j->detail, ERR_UNSUPPORTED,
                       "%s: metadata tokenizer.ggml.model is \"%.*s\"; only \"gpt2\" (byte-level BPE), "
                       "\"llama\" (SentencePiece) and \"gemma4\" are supported",
                       j->path, given && n < 60 ? (int)n : 0, text);
    }
    for (size_t i = 0; i < ARRAY_LEN(SPLITS); i++) {
        if (gguf_is_text(gguf_find(j->f, "tokenizer.ggml.pre"), SPLITS[i].name)) {
            *found = &SPLITS[i];
            return ERR_OK;
        }
    }
    char known[200] = "";
    for (size_t i = 0, at = 0; i < ARRAY_LEN(SPLITS); i++) {
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "", SPLITS[i].name);
    }
    bool given = gguf_text(gguf_find(j->f, "tokenizer.ggml.pre"), &text, &n);
    return err_set(j->detail, ERR_UNSUPPORTED,
                   "%s: metadata tokenizer.ggml.pre is \"%.*s\"; supported are %s", j->path,
                   given && n < 60 ? (int)n : 0, text, known);
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
        return err_set(j->detail, ERR_CORRUPT, "%s: metadata %s: text %llu is not UTF-8", j->path, key,
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
        const bool is_added = kind == TOKEN_CONTROL || kind == TOKEN_ADDED || kind == TOKEN_UNKNOWN;
        if (kind == TOKEN_UNUSED || added != is_added) {
            continue;
        }
        if (added) {
            bytes_printf(j->out, "%s{\"id\":%llu,\"content\":", comma, (unsigned long long)i);
            err = append_text(j, tokens->key, i, text, n);
            bytes_printf(j->out, ",\"special\":%s}", kind == TOKEN_ADDED ? "false" : "true");
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

static err_code append_scores(const job *j, const gguf_value *scores)
{
    bytes_append_str(j->out, "},\"scores\":[");
    for (uint64_t i = 0; i < scores->n; i++) {
        double score = 0;
        if (!gguf_number_at(scores, i, &score) || !isfinite(score)) {
            return fault(j, "tokenizer.ggml.scores", "has an entry that is no number");
        }
        bytes_printf(j->out, i ? ",%.9g" : "%.9g", score);
    }
    return ERR_OK;
}

/* SentencePiece's form; prefixed: a space goes before each text, and is dropped on the way back. */
static void write_spaced_steps(bytes *out, bool prefixed)
{
    static const char replace[] =
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" MARK "\"}";
    bytes_printf(out,
                 prefixed ? "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
                            "\"prepend\":\"" MARK "\"},%s]},"
                          : "{\"normalizer\":%s,",
                 replace);
    bytes_printf(
        out,
        "\"pre_tokenizer\":null,\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\","
        "\"pattern\":{\"String\":\"" MARK "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},"
        "{\"type\":\"Fuse\"}%s]},\"added_tokens\":[",
        prefixed ? ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}" : "");
}

/* What is done to a text before tokens are looked for, and on the way back. */
static void write_steps(bytes *out, const split *how)
{
    bytes_printf(out, "{\"normalizer\":%s,\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[",
                 how->nfc ? "{\"type\":\"NFC\"}" : "null");
    for (size_t i = 0; i < PATTERNS_MAX && how->patterns[i]; i++) {
        bytes_append_str(out, "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":");
        bytes_append_json(out, how->patterns[i], strlen(how->patterns[i]));
        bytes_append_str(out, "}},");
    }
    bytes_append_str(out, "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},"
                          "\"decoder\":{\"type\":\"ByteLevel\"},\"added_tokens\":[");
}

err_code gguf_tokenizer_json(bytes *out, const gguf_file *f, const char *path, err_detail *detail)
{
    const job j = {out, f, path, detail};
    const split *how = NULL;
    const gguf_value *tokens = texts_of(f, "tokenizer.ggml.tokens"),
                     *merges = texts_of(f, "tokenizer.ggml.merges");
    const gguf_value *kinds = gguf_find(f, "tokenizer.ggml.token_type"),
                     *scores = gguf_find(f, "tokenizer.ggml.scores");
    err_code err = find_split(&j, &how);
    if (!err && !tokens) {
        err = fault(&j, "tokenizer.ggml.tokens", "is missing or no list of texts");
    }
    if (!err && how == &SCORED && (!scores || !scores->is_array || scores->n != tokens->n)) {
        err = fault(&j, "tokenizer.ggml.scores", "has not one number for each token");
    }
    if (!err && how != &SCORED && !merges) {
        err = fault(&j, "tokenizer.ggml.merges", "is missing or no list of texts");
    }
    if (!err && kinds && (!kinds->is_array || kinds->n != tokens->n || kinds->type == GGUF_TEXT)) {
        err = fault(&j, "tokenizer.ggml.token_type", "has not one number for each token");
    }
    if (err) {
        return err;
    }
    const bool spaced = how == &SPACED || how == &SCORED;
    if (spaced) {
        bool prefixed = true;
        gguf_bool(gguf_find(f, "tokenizer.ggml.add_space_prefix"), &prefixed);
        write_spaced_steps(out, prefixed && how == &SCORED);
    } else {
        write_steps(out, how);
    }
    err = append_tokens(&j, tokens, kinds, true);
    bytes_printf(out, "],\"model\":{\"type\":\"BPE\",\"byte_fallback\":%s,\"ignore_merges\":%s,\"vocab\":{",
                 spaced ? "true" : "false", how->whole_tokens ? "true" : "false");
    err = err ? err : append_tokens(&j, tokens, kinds, false);
    if (!err && how == &SCORED) {
        err = append_scores(&j, scores);
    } else if (!err) {
        bytes_append_str(out, "},\"merges\":[");
        err = append_merges(&j, merges);
    }
    bytes_append_str(out, "]}}");
    if (!err && out->failed) {
        err = out->no_memory ? err_set(detail, ERR_NOMEM, "%s: no memory to read the tokenizer", path)
                             : err_set(detail, ERR_LIMIT, "%s: the tokenizer is too large", path);
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
