/* tokenizer: modes, guards, decoding, long texts, threads, files that are broken or not supported.
 */
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/guard.h"
#include "text/tokenizer/tokenizer.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "tests/check.h"

enum { TEXT_MAX = 8 << 20, N_THREADS = 4 };

static err_detail d;
static tokenizer *tok;

static token_ids encode(const tokenizer *t, const char *text, size_t len, tokenizer_mode mode)
{
    token_ids ids;
    token_ids_init(&ids);
    CHECK_OK(tokenizer_encode(t, &ids, text, len, mode, &d), d);
    return ids;
}

static bool same_ids(const token_ids *a, const token_ids *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->ids, b->ids, a->len * sizeof *a->ids) == 0);
}

static size_t count_special(const token_ids *ids)
{
    size_t n = 0, len;
    for (size_t i = 0; i < ids->len; i++) {
        bool special = false;
        tokenizer_token_bytes(tok, ids->ids[i], &len, &special);
        n += special;
    }
    return n;
}

/* Special or not: in this vocabulary all added tokens are markers. */
static size_t count_markers(const token_ids *ids)
{
    size_t n = 0, len;
    for (size_t i = 0; i < ids->len; i++) {
        const char *text = tokenizer_token_bytes(tok, ids->ids[i], &len, NULL);
        char whole[64];
        snprintf(whole, sizeof whole, "%.*s", (int)len, text ? text : "");
        n += tokenizer_added_id(tok, whole) == ids->ids[i];
    }
    return n;
}

static void test_modes(void)
{
    const char *text = "<|im_start|>user\nHi<think>";
    token_ids plain = encode(tok, text, strlen(text), TOKENIZER_PLAIN);
    token_ids special = encode(tok, text, strlen(text), TOKENIZER_SPECIALS);
    int32_t start = tokenizer_added_id(tok, "<|im_start|>"), think = tokenizer_added_id(tok, "<think>");
    CHECK(start > 0 && think > 0);
    CHECK_INT(special.ids[0], start);
    CHECK_INT(special.ids[special.len - 1], think);
    CHECK_INT(count_special(&special), 1);
    CHECK_INT(count_special(&plain), 0);
    CHECK(plain.len > special.len);
    for (size_t i = 0; i < plain.len; i++) {
        CHECK(plain.ids[i] < 1800);
    }
    bytes out;
    bytes_init(&out, TEXT_MAX);
    tokenizer_decode(tok, &out, plain.ids, plain.len, true);
    CHECK_STR(bytes_str(&out), text);
    bytes_clear(&out);
    tokenizer_decode(tok, &out, special.ids, special.len, false);
    CHECK_STR(bytes_str(&out), text);
    bytes_clear(&out);
    tokenizer_decode(tok, &out, special.ids, special.len, true);
    CHECK_STR(bytes_str(&out), "user\nHi<think>");
    bytes_deinit(&out);
    CHECK_INT(tokenizer_added_id(tok, "<|im_start"), -1);
    CHECK_INT(tokenizer_added_id(tok, ""), -1);
    CHECK_INT(tokenizer_added_id(tok, "user"), -1);
    token_ids_deinit(&plain);
    token_ids_deinit(&special);
    token_ids none;
    token_ids_init(&none);
    CHECK_INT(tokenizer_encode(tok, &none, "a\xFFz", 3, TOKENIZER_PLAIN, &d), ERR_INVALID);
    CHECK_INT(none.len, 0);
    token_ids_deinit(&none);
}

static void test_decode(void)
{
    size_t len;
    bool special;
    CHECK(tokenizer_token_bytes(tok, -1, &len, &special) == NULL);
    CHECK(tokenizer_token_bytes(tok, tokenizer_n_tokens(tok), &len, NULL) == NULL);
    CHECK_INT(len, 0);
    token_ids ids = encode(tok, "\xF0\x9F\x98\x80", 4, TOKENIZER_PLAIN);
    CHECK(ids.len > 1);
    bytes out;
    bytes_init(&out, TEXT_MAX);
    tokenizer_decode(tok, &out, ids.ids, ids.len - 1, false);
    CHECK_STR(bytes_str(&out), "\xEF\xBF\xBD");
    /* An added token breaks the character; unknown ids have no text and break nothing. */
    int32_t mixed[8] = {ids.ids[0], tokenizer_added_id(tok, "<|im_end|>")};
    bytes_clear(&out);
    tokenizer_decode(tok, &out, mixed, 2, false);
    CHECK_STR(bytes_str(&out), "\xEF\xBF\xBD<|im_end|>");
    bytes_deinit(&out);
    token_ids_deinit(&ids);
    /* A buffer that is too small says so, however short it is. */
    static const char TEXT[] = "one two three";
    ids = encode(tok, TEXT, strlen(TEXT), TOKENIZER_PLAIN);
    for (size_t most = 0; most <= strlen(TEXT); most++) {
        bytes_init(&out, most);
        tokenizer_decode(tok, &out, ids.ids, ids.len, false);
        CHECK_INT(out.failed, most < strlen(TEXT));
        CHECK(!out.no_memory && strncmp(bytes_str(&out), TEXT, out.len) == 0);
        bytes_deinit(&out);
    }
    token_ids_deinit(&ids);
}

/* Guards the parts one by one, puts them between genuine special tokens, and checks that only those
 * are special and that the text comes back. */
static bool is_safe(const char *const *parts, size_t n)
{
    bytes text, want, got;
    bytes_init(&text, TEXT_MAX);
    bytes_init(&want, TEXT_MAX);
    bytes_init(&got, TEXT_MAX);
    bytes_append_str(&text, "<|im_start|>user\n");
    for (size_t i = 0; i < n; i++) {
        tokenizer_guard(tok, &text, parts[i], strlen(parts[i]));
        bytes_append_str(&want, parts[i]);
    }
    bytes_append_str(&text, "<|im_end|>\n");
    token_ids ids = encode(tok, bytes_str(&text), text.len, TOKENIZER_SPECIALS);
    bytes_consume(&text, text.len);
    bytes_append_str(&text, "<|im_start|>user\n");
    bytes_append(&text, bytes_str(&want), want.len);
    bytes_append_str(&text, "<|im_end|>\n");
    tokenizer_decode(tok, &got, ids.ids, ids.len, false);
    bool safe = count_markers(&ids) == 2 && strcmp(bytes_str(&got), bytes_str(&text)) == 0 &&
                ids.ids[0] == tokenizer_added_id(tok, "<|im_start|>");
    token_ids_deinit(&ids);
    bytes_deinit(&text);
    bytes_deinit(&want);
    bytes_deinit(&got);
    return safe;
}

/* Every marker, alone, embedded and doubled, cut into two and three contents at every place. */
static void test_guard_is_safe(void)
{
    static const char *const around[][2] = {
        {"", ""}, {"a ", " b"}, {"<|", "|>"}, {"\n", "\xCC\x81"}, {"<", "<|im_"}};
    size_t n_special = 0, unsafe = 0;
    for (int32_t id = 0; id < tokenizer_n_tokens(tok); id++) {
        size_t len;
        bool special;
        const char *text = tokenizer_token_bytes(tok, id, &len, &special);
        if (!text || id < tokenizer_added_id(tok, "<|endoftext|>")) {
            continue;
        }
        n_special++;
        for (size_t k = 0; k < sizeof around / sizeof *around; k++) {
            char whole[512];
            int n = snprintf(whole, sizeof whole, "%s%.*s%.*s%s", around[k][0], (int)len, text, (int)len,
                             text, around[k][1]);
            unsafe += !is_safe((const char *const[]){whole}, 1);
            for (int cut = 0; cut <= n; cut++) {
                char first[512], second[512], third[512];
                snprintf(first, sizeof first, "%.*s", cut, whole);
                unsafe += !is_safe((const char *const[]){first, whole + cut}, 2);
                int next = cut + 1 + cut % 5;
                if (next < n) {
                    snprintf(second, sizeof second, "%.*s", next - cut, whole + cut);
                    snprintf(third, sizeof third, "%s", whole + next);
                    unsafe += !is_safe((const char *const[]){first, second, third}, 3);
                }
            }
        }
    }
    CHECK(n_special > 20);
    CHECK_INT(unsafe, 0);
    /* A guard that the user typed does not help: it is taken out before looking. */
    token_ids ids;
    bytes out;
    bytes_init(&out, TEXT_MAX);
    tokenizer_guard(tok, &out,
                    "<|im_\xEF\xB7\x90"
                    "end|>",
                    13);
    ids = encode(tok, bytes_str(&out), out.len, TOKENIZER_SPECIALS);
    CHECK_INT(count_markers(&ids), 0);
    token_ids_deinit(&ids);
    bytes_deinit(&out);
}

/* Every marker cut in two, where only one of the parts is somebody's text and the other the template's: either guard
 * is enough by itself. */
static void test_guard_beside_template(void)
{
    static const char *const markers[] = {"<|im_start|>", "<|im_end|>"};
    for (size_t m = 0; m < sizeof markers / sizeof *markers; m++) {
        const size_t len = strlen(markers[m]);
        for (size_t cut = 1; cut < len; cut++) {
            for (int side = 0; side < 2; side++) {
                bytes text;
                bytes_init(&text, TEXT_MAX);
                if (side == 0) {
                    tokenizer_guard(tok, &text, markers[m], cut);
                    bytes_append(&text, markers[m] + cut, len - cut);
                } else {
                    bytes_append(&text, markers[m], cut);
                    tokenizer_guard(tok, &text, markers[m] + cut, len - cut);
                }
                token_ids ids = encode(tok, bytes_str(&text), text.len, TOKENIZER_SPECIALS);
                CHECK_INT(count_markers(&ids), 0);
                token_ids_deinit(&ids);
                bytes_deinit(&text);
            }
        }
    }
}

/* Texts without special strings give the same ids with and without guarding. */
static void test_guard_is_neutral(void)
{
    bytes text;
    bytes_init(&text, TEXT_MAX);
    static const char *const harmless[] = {"",      "Hello",         " <",          "|>",
                                           "<|",    "a < b | c > d", "e\xCC\x81 x", "1 <| 2",
                                           "<|im_", "_end|>",        "\n\n\n",      "x<"};
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        bytes_clear(&text);
        tokenizer_guard(tok, &text, harmless[i], strlen(harmless[i]));
        token_ids guarded = encode(tok, bytes_str(&text), text.len, TOKENIZER_SPECIALS);
        token_ids free_of = encode(tok, harmless[i], strlen(harmless[i]), TOKENIZER_SPECIALS);
        wrong += !same_ids(&guarded, &free_of);
        token_ids_deinit(&guarded);
        token_ids_deinit(&free_of);
    }
    CHECK_INT(wrong, 0);
    bytes_deinit(&text);
}

static double seconds_to_encode(const bytes *text, size_t *n_ids)
{
    clock_t start = clock();
    token_ids ids = encode(tok, bytes_str(text), text->len, TOKENIZER_SPECIALS);
    *n_ids = ids.len;
    token_ids_deinit(&ids);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* Long words, blanks, marks and broken special tokens cost no more than their length. */
static void test_long(void)
{
    static const char *const units[] = {"a",
                                        " ",
                                        "\n",
                                        " \n",
                                        "\xCC\x81\xCC\xA3",
                                        "<|im_",
                                        "!?",
                                        "\xE4\xB8\xAD",
                                        "ab ",
                                        "<|im_start|>",
                                        "\xEF\xB7\x90",
                                        "\xF0\x9F\x98\x80",
                                        "\t"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        bytes text;
        bytes_init(&text, TEXT_MAX);
        while (text.len < 400000) {
            bytes_append_str(&text, units[i]);
        }
        size_t n_ids;
        double s = seconds_to_encode(&text, &n_ids);
        if (s > 4) {
            fprintf(stderr, "  unit %zu took %.1f s\n", i, s);
        }
        CHECK(s <= 4);
        CHECK(n_ids > 0 || strcmp(units[i], "\xEF\xB7\x90") == 0);
        bytes guarded;
        bytes_init(&guarded, TEXT_MAX);
        tokenizer_guard(tok, &guarded, bytes_str(&text), text.len);
        CHECK(!guarded.failed);
        bytes_deinit(&guarded);
        bytes_deinit(&text);
    }
}

static void *encode_often(void *ctx)
{
    const token_ids *want = ctx;
    const char *text = "<|im_start|>user\nThe quick brown caf\xC3\xA9 e\xCC\x81 12345<|im_end|>\n";
    size_t wrong = 0;
    for (int i = 0; i < 300; i++) {
        token_ids got = encode(tok, text, strlen(text), TOKENIZER_SPECIALS);
        wrong += !same_ids(&got, want);
        token_ids_deinit(&got);
    }
    return wrong ? (void *)1 : NULL;
}

/* Words that come again are remembered within one text. Far more of them than are remembered, each in
 * turn with and without a mark and a neighbour, so that places are taken over: line by line, where
 * nothing is remembered, the ids are the same. */
static void test_words_again(void)
{
    enum { LINES = 6000 };
    bytes text;
    token_ids lines;
    bytes_init(&text, SIZE_MAX / 2);
    token_ids_init(&lines);
    for (unsigned i = 0; i < LINES; i++) {
        const size_t from = text.len;
        const unsigned word = i * 2654435761u >> (i % 3 ? 20 : 28);
        bytes_printf(&text, i % 5 ? "w%x caf\xC3\xA9%u %x?\n" : "thewordthatisverylong%x_%u a%x\n", word,
                     word % 7, word);
        token_ids line = encode(tok, text.data + from, text.len - from, TOKENIZER_SPECIALS);
        for (size_t k = 0; k < line.len; k++) {
            CHECK(token_ids_push(&lines, line.ids[k]) == ERR_OK);
        }
        token_ids_deinit(&line);
    }
    token_ids whole = encode(tok, text.data, text.len, TOKENIZER_SPECIALS);
    CHECK(same_ids(&whole, &lines));
    token_ids_deinit(&whole);
    token_ids_deinit(&lines);
    bytes_deinit(&text);
}

static void test_threads(void)
{
    const char *text = "<|im_start|>user\nThe quick brown caf\xC3\xA9 e\xCC\x81 12345<|im_end|>\n";
    token_ids want = encode(tok, text, strlen(text), TOKENIZER_SPECIALS);
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        CHECK_INT(pthread_create(&threads[i], NULL, encode_often, &want), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        CHECK(!wrong);
    }
    token_ids_deinit(&want);
}

/* Writes a tokenizer.json of the 256 byte tokens, "ab" = 256 and what the test wants to vary. */
static const char *write_tokenizer(const char *normalizer, const char *pre, const char *model_extra,
                                   const char *merges, const char *added, const char *decoder)
{
    static char path[] = "/tmp/parley-test-tokenizer-XXXXXX";
    static bool made;
    int fd = made ? -1 : mkstemp(path);
    if (fd >= 0) {
        close(fd);
        made = true;
    }
    FILE *f = fopen(path, "w");
    fprintf(f,
            "{\"added_tokens\":[%s],\"normalizer\":%s,\"pre_tokenizer\":%s,\"decoder\":%s,"
            "\"model\":{%s\"vocab\":{",
            added, normalizer, pre, decoder, model_extra);
    int other = 0x100;
    for (int byte = 0; byte < 256; byte++) {
        bool same = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
        fprintf(f, "\"\\u%04x\":%d,", same ? byte : other, byte);
        other += !same;
    }
    fprintf(f, "\"ab\":256,\"abc\":257,\"bc\":258},\"merges\":%s}}", merges);
    fclose(f);
    return path;
}

#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}"
#define DECODER    "{\"type\":\"ByteLevel\"}"
#define MERGES     "[[\"a\",\"b\"],[\"ab\",\"c\"],[\"b\",\"c\"]]"

/* Opening such a file fails with the code, and the message names the part. */
static void check_refused(const char *path, err_code code, const char *named)
{
    tokenizer *t = NULL;
    memset(&d, 0, sizeof d);
    CHECK_INT(tokenizer_open(&t, path, &d), code);
    CHECK(t == NULL);
    if (!strstr(d.text, named)) {
        CHECK_STR(d.text, named);
    }
    tokenizer_close(t);
}

static void test_refused_files(void)
{
    static const char EMPTY[] = "{\"added_tokens\":[],\"pre_tokenizer\":" BYTE_LEVEL ",\"decoder\":" DECODER
                                ",\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}";
    tokenizer *none = NULL;
    CHECK_INT(tokenizer_open_json(&none, EMPTY, sizeof EMPTY - 1, "test", &d), ERR_CORRUPT);
    CHECK(!none && strstr(d.text, "the vocabulary is empty") != NULL);
    check_refused("/nonexistent/tokenizer.json", ERR_NOT_FOUND, "tokenizer.json");
    check_refused(write_tokenizer("{\"type\":\"Lowercase\"}", BYTE_LEVEL, "", MERGES, "", DECODER),
                  ERR_UNSUPPORTED, "Lowercase");
    check_refused(write_tokenizer("null", "{\"type\":\"Metaspace\"}", "", MERGES, "", DECODER),
                  ERR_UNSUPPORTED, "Metaspace");
    check_refused(write_tokenizer("null", "null", "", MERGES, "", DECODER), ERR_UNSUPPORTED, "pre-tokenizer");
    check_refused(write_tokenizer("null", BYTE_LEVEL, "\"type\":\"Unigram\",", MERGES, "", DECODER),
                  ERR_UNSUPPORTED, "Unigram");
    check_refused(write_tokenizer("null", BYTE_LEVEL, "\"byte_fallback\":true,", MERGES, "", DECODER),
                  ERR_UNSUPPORTED, "byte_fallback");
    check_refused(write_tokenizer("null", BYTE_LEVEL, "\"dropout\":0.1,", MERGES, "", DECODER),
                  ERR_UNSUPPORTED, "dropout");
    check_refused(write_tokenizer("null", BYTE_LEVEL, "", MERGES, "", "{\"type\":\"WordPiece\"}"),
                  ERR_UNSUPPORTED, "WordPiece");
    check_refused(write_tokenizer("null", "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "", MERGES,
                                  "", DECODER),
                  ERR_UNSUPPORTED, "add_prefix_space");
    check_refused(write_tokenizer("null",
                                  "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
                                  "{\"Regex\":\"a(\"},\"behavior\":\"Isolated\"}," BYTE_LEVEL "]}",
                                  "", MERGES, "", DECODER),
                  ERR_UNSUPPORTED, "expression");
    check_refused(
        write_tokenizer("null", "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Removed\"}",
                        "", MERGES, "", DECODER),
        ERR_UNSUPPORTED, "Removed");
    check_refused(write_tokenizer(
                      "null", "{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Isolated\"}",
                      "", MERGES, "", DECODER),
                  ERR_UNSUPPORTED, "Regex");
    check_refused(write_tokenizer("null", BYTE_LEVEL, "", "[[\"a\",\"zz\"]]", "", DECODER), ERR_CORRUPT,
                  "merge 0");
    check_refused(write_tokenizer("null", BYTE_LEVEL, "", "[\"ab\"]", "", DECODER), ERR_CORRUPT, "merge 0");
    check_refused(write_tokenizer("null", BYTE_LEVEL, "", "[[\"a\"]]", "", DECODER), ERR_CORRUPT, "merge 0");
    check_refused(write_tokenizer("null", BYTE_LEVEL, "", "7", "", DECODER), ERR_CORRUPT, "merges");
    check_refused(write_tokenizer("null", BYTE_LEVEL, "", MERGES, "{\"id\":-5,\"content\":\"x\"}", DECODER),
                  ERR_CORRUPT, "added token");
    check_refused(write_tokenizer("null", BYTE_LEVEL, "", MERGES, "{\"id\":1e12,\"content\":\"x\"}", DECODER),
                  ERR_CORRUPT, "added token");
    check_refused(write_tokenizer("null", BYTE_LEVEL, "", MERGES,
                                  "{\"id\":300,\"content\":\"x\",\"lstrip\":true}", DECODER),
                  ERR_UNSUPPORTED, "lstrip");
    check_refused(write_tokenizer("null", BYTE_LEVEL, "", MERGES, "{\"id\":300,\"content\":\"\"}", DECODER),
                  ERR_UNSUPPORTED, "added token 300");
    check_refused(write_tokenizer("nul", BYTE_LEVEL, "", MERGES, "", DECODER), ERR_CORRUPT, "");
}

static void check_ids(const tokenizer *t, const char *text, tokenizer_mode mode, const int32_t *want,
                      size_t n)
{
    token_ids ids = encode(t, text, strlen(text), mode);
    CHECK_INT(ids.len, n);
    for (size_t i = 0; i < n && i < ids.len; i++) {
        CHECK_INT(ids.ids[i], want[i]);
    }
    token_ids_deinit(&ids);
}

/* Variants of the format: merges as strings, ignore_merges, no normalizer, late added tokens,
 * one-letter specials. */
static void test_variants(void)
{
    tokenizer *t = NULL;
    CHECK_OK(
        tokenizer_open(&t, write_tokenizer("null", BYTE_LEVEL, "", "[\"b c\",\"a b\"]", "", DECODER), &d), d);
    check_ids(t, "abc", TOKENIZER_PLAIN, (int32_t[]){'a', 258}, 2);
    check_ids(t, "e\xCC\x81", TOKENIZER_PLAIN, (int32_t[]){'e', 0xCC, 0x81}, 3);
    tokenizer_close(t);
    CHECK_OK(tokenizer_open(&t,
                            write_tokenizer("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}]}",
                                            BYTE_LEVEL, "\"ignore_merges\":true,", "[\"b c\"]", "", DECODER),
                            &d),
             d);
    check_ids(t, "abc", TOKENIZER_PLAIN, (int32_t[]){257}, 1);
    check_ids(t, "abcd", TOKENIZER_PLAIN, (int32_t[]){'a', 258, 'd'}, 3);
    check_ids(t, "e\xCC\x81", TOKENIZER_PLAIN, (int32_t[]){0xC3, 0xA9}, 2);
    tokenizer_close(t);
    const char *added = "{\"id\":300,\"content\":\"\xC3\xA9\",\"normalized\":true,\"special\":"
                        "false},{\"id\":301,\"content\":\"#\",\"special\":true},"
                        "{\"id\":302,\"content\":\"##!\",\"special\":true},{\"id\":303,\"content\":"
                        "\"K\",\"normalized\":true,\"special\":true}";
    CHECK_OK(
        tokenizer_open(&t, write_tokenizer("{\"type\":\"NFC\"}", BYTE_LEVEL, "", MERGES, added, DECODER), &d),
        d);
    CHECK_INT(tokenizer_n_tokens(t), 304);
    check_ids(t, "xe\xCC\x81z", TOKENIZER_SPECIALS, (int32_t[]){'x', 300, 'z'}, 3);
    check_ids(t, "xe\xCC\x81", TOKENIZER_PLAIN, (int32_t[]){'x', 0xC3, 0xA9}, 3);
    check_ids(t, "###!", TOKENIZER_SPECIALS, (int32_t[]){301, 302}, 2);
    check_ids(t, "\xE2\x84\xAA", TOKENIZER_SPECIALS, (int32_t[]){'K'},
              1); /* Kelvin sign: never the special K */
    bytes out;
    bytes_init(&out, 1000);
    tokenizer_guard(t, &out, "a#b##!K", 7);
    check_ids(t, bytes_str(&out), TOKENIZER_SPECIALS, (int32_t[]){'a', '#', 'b', '#', '#', '!', 'K'}, 7);
    bytes_deinit(&out);
    tokenizer_close(t);
    unlink(write_tokenizer("null", BYTE_LEVEL, "", MERGES, "", DECODER));
}

/* The bounds hold for each, the longest of several that match is taken, and a beginning is told from the whole. */
static void test_added_tokens(void)
{
    added_tokens set = {0};
    char text[ADDED_TOKEN_MAX + 2];
    int32_t id = -1;
    memset(text, 'x', sizeof text);
    CHECK_INT(added_tokens_add(&set, text, 0, 1, &d), ERR_UNSUPPORTED);
    CHECK_INT(added_tokens_add(&set, text, ADDED_TOKEN_MAX + 1, 1, &d), ERR_UNSUPPORTED);
    CHECK_INT(set.len, 0);
    CHECK_OK(added_tokens_add(&set, text, ADDED_TOKEN_MAX, 2, &d), d);
    CHECK_OK(added_tokens_add(&set, "x", 1, 3, &d), d);
    CHECK_OK(added_tokens_add(&set, "<a>", 3, 4, &d), d);
    added_tokens_sort(&set);
    CHECK_INT(set.longest, ADDED_TOKEN_MAX);
    CHECK_INT(added_tokens_match(&set, text, sizeof text, &id), ADDED_TOKEN_MAX);
    CHECK_INT(id, 2);
    CHECK_INT(added_tokens_match(&set, text, ADDED_TOKEN_MAX - 1, &id), 1);
    CHECK_INT(id, 3);
    CHECK_INT(added_tokens_match(&set, "<a", 2, &id), 0);
    CHECK_INT(added_tokens_next(&set, "bc<a>", 0, 5), 2);
    CHECK_INT(added_tokens_next(&set, "bc<a>", 3, 5), 5);
    CHECK(added_tokens_has_prefix(&set, "<a", 2) && !added_tokens_has_prefix(&set, "<a>", 3));
    CHECK(added_tokens_begins_with_tail(&set, "a>b", 3) && !added_tokens_begins_with_tail(&set, "b", 1));
    added_tokens_deinit(&set);
}

/* A text that is too long is not looked at; one as long as may be is. */
static void test_too_long(void)
{
    static const char text[] = "\xFF";
    token_ids out;
    token_ids_init(&out);
    CHECK_INT(tokenizer_encode(tok, &out, text, LIMIT_RENDERED_BYTES + 1, TOKENIZER_SPECIALS, &d), ERR_LIMIT);
    CHECK_STR(d.text, "a text of 67108865 bytes is too long; at most 67108864 are allowed");
    char *longest = calloc(1, LIMIT_RENDERED_BYTES);
    CHECK(longest != NULL);
    if (longest) {
        longest[0] = text[0];
        CHECK_INT(tokenizer_encode(tok, &out, longest, LIMIT_RENDERED_BYTES, TOKENIZER_SPECIALS, &d),
                  ERR_INVALID);
    }
    free(longest);
    CHECK_INT(out.len, 0);
    token_ids_deinit(&out);
}

/* Which added tokens are markers: those with a sign that are not one character alone or repeated. */
static void test_is_marker(void)
{
    static const struct {
        uint32_t c;
        bool is_sign;
    } CHARS[] = {
        {' ', false},    {'!', true},      {'/', true},     {'0', false},    {'9', false},    {':', true},
        {'@', true},     {'A', false},     {'[', true},     {'_', true},     {'`', true},     {'a', false},
        {'{', true},     {'~', true},      {0x7f, false},   {0x80, false},   {0xab, false},   {0x200f, false},
        {0x2010, true},  {0x257f, true},   {0x2580, false}, {0x259f, false}, {0x25a0, true},  {0x2bff, true},
        {0x2c00, false}, {0x3000, false},  {0x3001, true},  {0x301f, true},  {0x3020, false}, {0xfe2f, false},
        {0xfe30, true},  {0xfe6f, true},   {0xfe70, false}, {0xff00, false}, {0xff01, true},  {0xff65, true},
        {0xff66, false}, {0x1f600, false},
    };
    static const char *const NONE[] = {
        "", "a", "-", "---", "ab", "a b", "  ", "\n\n", "\xef\xbd\x9c\xef\xbd\x9c"};
    static const char *const MARKERS[] = {"-a", "a-", "--a", "-+", " -", "\xef\xbd\x9c|", "|\xef\xbd\x9c"};
    for (size_t i = 0; i < ARRAY_LEN(CHARS); i++) {
        char text[8] = "a";
        const size_t n = 1 + utf8_encode(text + 1, CHARS[i].c);
        if (guard_is_marker(text, n) != CHARS[i].is_sign) {
            fprintf(stderr, "  U+%04X\n", (unsigned)CHARS[i].c);
            CHECK(!"as it is written");
        }
        CHECK(!guard_is_marker(text + 1, n - 1)); /* alone */
    }
    for (size_t i = 0; i < ARRAY_LEN(NONE); i++) {
        CHECK(!guard_is_marker(NONE[i], strlen(NONE[i])));
    }
    for (size_t i = 0; i < ARRAY_LEN(MARKERS); i++) {
        CHECK(guard_is_marker(MARKERS[i], strlen(MARKERS[i])));
    }
}

/* What of a template's text looks like a marker, in the order of its bytes. */
static void test_read_markers(void)
{
#define TEN "0123456789"
    static const struct {
        const char *text, *found;
    } CASES[] = {
        {"", ""},
        {"<a> <b></b>", "</b> <a> <b>"},
        {"<> [] < > [ ]", ""},
        {"[A] [A_B] [/A] [A/] [A/B] [a] [Ab] [A1] [A B] [_]", "[/A] [A] [A_B] [_]"},
        {"<a b> <a\tb> <a\"b> <a'b> <a\\b> <a{b> <a}b> <a\x7f|b>", "<a\x7f|b>"},
        {"<<a> <b<c> [[D] [E[F]", "<a> <c> [D] [F]"},
        {"<a] [B> <a]> [B>]", "<a]>"},
        {"<a", ""},
        {"[A", ""},
        {"<a>", "<a>"},
        {"<\xc3\xa9> <\xff> <\xc3>", "<\xc3\xa9>"},
        {"<" TEN TEN TEN TEN TEN TEN "12>", "<" TEN TEN TEN TEN TEN TEN "12>"},
        {"<" TEN TEN TEN TEN TEN TEN "123>", ""},
        {"<a> <a>", "<a> <a>"},
    };
#undef TEN
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        added_tokens markers = {0};
        bytes found = bytes_empty(1024);
        CHECK_OK(guard_read_markers(&markers, CASES[i].text, strlen(CASES[i].text), &d), d);
        for (size_t k = 0; k < markers.len; k++) {
            bytes_append_str(&found, k ? " " : "");
            bytes_append(&found, markers.items[k].text, markers.items[k].len);
        }
        CHECK_STR(bytes_str(&found), CASES[i].found);
        bytes_deinit(&found);
        added_tokens_deinit(&markers);
    }
}

int main(void)
{
    test_is_marker();
    test_read_markers();
    test_added_tokens();
    CHECK_OK(tokenizer_open(&tok, check_data("tiny/tokenizer.json"), &d), d);
    if (!tok) {
        CHECK_DONE();
    }
    test_modes();
    test_decode();
    test_guard_is_safe();
    test_guard_beside_template();
    test_guard_is_neutral();
    test_long();
    test_too_long();
    test_words_again();
    test_threads();
    tokenizer_close(tok);
    test_refused_files();
    test_variants();
    CHECK_DONE();
}
