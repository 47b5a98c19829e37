/* check_tokenizer: runs the cases of a JSON file against a tokenizer.json.
 *
 *     build/check_tokenizer TOKENIZER_JSON CASES_JSON
 *
 * CASES_JSON is a list of {"text", "ids", "decoded", "decoded_skip_special"}; the last two may be
 * missing. Prints a row per failure and the totals. Exit code 0: all agree, 1: some do not, 2:
 * wrong use or unreadable files.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "text/tokenizer/tokenizer.h"

enum { EXIT_USE = 2, SHOWN_BYTES = 60 };

/* U+FDD1 stands for NUL while the file is parsed: our JSON refuses \u0000, but tokenizers meet it.
 */
static const char NUL_STAND_IN[] = "\xEF\xB7\x91";

/* The file's text with every \u0000 escape replaced by the stand-in. */
static void replace_nul_escapes(bytes *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        if (text[i] == '\\' && len - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0) {
            bytes_append_str(out, NUL_STAND_IN);
            i += 6;
        } else {
            size_t n = text[i] == '\\' && len - i >= 2 ? 2 : 1;
            bytes_append(out, text + i, n);
            i += n;
        }
    }
}

/* A string of the file with its NUL characters back in place. */
static void restore_nul(bytes *out, const json *v)
{
    const char *from = json_str(v, "");
    for (const char *at; (at = strstr(from, NUL_STAND_IN)); from = at + strlen(NUL_STAND_IN)) {
        bytes_append(out, from, (size_t)(at - from));
        bytes_append_char(out, '\0');
    }
    bytes_append_str(out, from);
}

static bool same_ids(const token_ids *got, const json *want)
{
    const json *item = json_child(want);
    for (size_t i = 0; i < got->len; i++, item = json_next(item)) {
        int64_t id;
        if (!item || !json_int(item, 0, INT32_MAX, &id) || id != got->ids[i]) {
            return false;
        }
    }
    return item == NULL;
}

static bool same_text(const tokenizer *tok, const token_ids *ids, const json *want, bool skip_special)
{
    if (!want) {
        return true;
    }
    bytes got, wanted;
    bytes_init(&got, LIMIT_RENDERED_BYTES);
    bytes_init(&wanted, LIMIT_RENDERED_BYTES);
    tokenizer_decode(tok, &got, ids->ids, ids->len, skip_special);
    restore_nul(&wanted, want);
    bool same = !got.failed && !wanted.failed && got.len == wanted.len &&
                memcmp(bytes_str(&got), bytes_str(&wanted), got.len) == 0;
    bytes_deinit(&got);
    bytes_deinit(&wanted);
    return same;
}

static void show_failure(size_t i, const char *what, const bytes *text, const token_ids *got,
                         const json *want)
{
    bytes row;
    bytes_init(&row, LIMIT_RENDERED_BYTES);
    bytes_append_json(&row, bytes_str(text), text->len < SHOWN_BYTES ? text->len : SHOWN_BYTES);
    bytes_append_str(&row, "\n  got ");
    for (size_t k = 0; k < got->len; k++) {
        bytes_printf(&row, " %" PRId32, got->ids[k]);
    }
    bytes_append_str(&row, "\n  want ");
    json_write(&row, want);
    printf("case %zu: %s differ: %s\n", i, what, bytes_str(&row));
    bytes_deinit(&row);
}

/* What is wrong with one case, or NULL. */
static const char *check_case(const tokenizer *tok, const json *c, const bytes *text, token_ids *ids)
{
    static err_detail detail;
    if (tokenizer_encode(tok, ids, bytes_str(text), text->len, TOKENIZER_SPECIALS, &detail)) {
        return detail.text;
    }
    if (!same_ids(ids, json_get(c, "ids"))) {
        return "ids";
    }
    if (!same_text(tok, ids, json_get(c, "decoded"), false)) {
        return "decoded texts";
    }
    if (!same_text(tok, ids, json_get(c, "decoded_skip_special"), true)) {
        return "decoded texts without special tokens";
    }
    return NULL;
}

static err_code read_cases(json_doc **doc, const char *path, err_detail *detail)
{
    bytes raw, text;
    bytes_init(&raw, LIMIT_TOKENIZER_BYTES);
    bytes_init(&text, LIMIT_TOKENIZER_BYTES);
    err_code err = file_read(&raw, path, detail);
    if (!err) {
        replace_nul_escapes(&text, bytes_str(&raw), raw.len);
        err = json_parse(doc, bytes_str(&text), text.len, LIMIT_JSON_DEPTH, detail);
    }
    bytes_deinit(&raw);
    bytes_deinit(&text);
    return err;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: check_tokenizer TOKENIZER_JSON CASES_JSON\n");
        return EXIT_USE;
    }
    err_detail detail;
    tokenizer *tok = NULL;
    json_doc *doc = NULL;
    if (tokenizer_open(&tok, argv[1], &detail) || read_cases(&doc, argv[2], &detail)) {
        fprintf(stderr, "check_tokenizer: %s\n", detail.text);
        tokenizer_close(tok);
        return EXIT_USE;
    }
    size_t n = 0, n_failed = 0;
    for (const json *c = json_child(json_root(doc)); c; c = json_next(c), n++) {
        bytes text;
        token_ids ids;
        bytes_init(&text, LIMIT_RENDERED_BYTES);
        token_ids_init(&ids);
        restore_nul(&text, json_get(c, "text"));
        const char *what = check_case(tok, c, &text, &ids);
        if (what) {
            show_failure(n, what, &text, &ids, json_get(c, "ids"));
            n_failed++;
        }
        token_ids_deinit(&ids);
        bytes_deinit(&text);
    }
    printf("%zu cases, %zu agree, %zu fail\n", n, n - n_failed, n_failed);
    json_free(doc);
    tokenizer_close(tok);
    return n_failed || n == 0 ? 1 : 0;
}
