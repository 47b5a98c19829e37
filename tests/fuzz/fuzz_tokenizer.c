/* tokenizer: any text and any ids with a real vocabulary. The first byte chooses what the rest
 * is. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/say.h"
#include "text/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TEXT_BYTES = 4096 };

static const tokenizer *vocabulary(void)
{
    static tokenizer *tok;
    if (!tok) {
        must(tokenizer_open(&tok, PARLEY_SOURCE_DIR "/tests/data/tiny/tokenizer.json", NULL) == ERR_OK);
    }
    return tok;
}

static void say_ids(const token_ids *ids)
{
    bytes line = bytes_empty(SIZE_MAX / 2);
    for (size_t i = 0; i < ids->len; i++) {
        bytes_printf(&line, "%s%d", i > 0 ? " " : "", (int)ids->ids[i]);
    }
    say_text("ids", bytes_str(&line), line.len);
    bytes_deinit(&line);
}

/* Decoding and encoding once more gives the same ids. */
static void check_text(const tokenizer *tok, const char *text, size_t len)
{
    token_ids ids, again;
    bytes decoded;
    token_ids_init(&ids);
    token_ids_init(&again);
    bytes_init(&decoded, 64 * MAX_TEXT_BYTES);
    err_code err = tokenizer_encode(tok, &ids, text, len, TOKENIZER_PLAIN, NULL);
    must(err == (utf8_valid(text, len) ? ERR_OK : ERR_INVALID));
    if (err == ERR_OK) {
        say_ids(&ids);
        tokenizer_decode(tok, &decoded, ids.ids, ids.len, false);
        must(!decoded.failed && utf8_valid(bytes_str(&decoded), decoded.len));
        err = tokenizer_encode(tok, &again, bytes_str(&decoded), decoded.len, TOKENIZER_PLAIN, NULL);
        must(err == ERR_OK && again.len == ids.len);
        must(ids.len == 0 || memcmp(ids.ids, again.ids, ids.len * sizeof *ids.ids) == 0);
    }
    token_ids_deinit(&ids);
    token_ids_deinit(&again);
    bytes_deinit(&decoded);
}

/* What a user wrote never becomes a special token. */
static void check_guard(const tokenizer *tok, const char *text, size_t len)
{
    token_ids ids;
    bytes guarded;
    token_ids_init(&ids);
    bytes_init(&guarded, 8 * MAX_TEXT_BYTES);
    tokenizer_guard(tok, &guarded, text, len);
    must(!guarded.failed);
    say_text("guarded", bytes_str(&guarded), guarded.len);
    if (tokenizer_encode(tok, &ids, bytes_str(&guarded), guarded.len, TOKENIZER_SPECIALS, NULL) == ERR_OK) {
        say_ids(&ids);
        for (size_t i = 0; i < ids.len; i++) {
            size_t n;
            bool special = true;
            must(ids.ids[i] >= 0 && ids.ids[i] < tokenizer_n_tokens(tok));
            must(tokenizer_token_bytes(tok, ids.ids[i], &n, &special) != NULL && n > 0);
            must(!special);
        }
    }
    token_ids_deinit(&ids);
    bytes_deinit(&guarded);
}

/* Ids from two bytes each, some far outside the vocabulary. */
static void check_ids(const tokenizer *tok, const uint8_t *data, size_t size)
{
    size_t n = size / 2;
    int32_t *ids = malloc((n + 1) * sizeof *ids);
    must(ids != NULL);
    for (size_t i = 0; i < n; i++) {
        ids[i] = (int32_t)(data[2 * i] | data[2 * i + 1] << 8);
        ids[i] = ids[i] == 0xFFFF ? -1 : ids[i] == 0xFFFE ? INT32_MAX : ids[i];
    }
    bytes all, visible;
    bytes_init(&all, 64u << 20);
    bytes_init(&visible, 64u << 20);
    tokenizer_decode(tok, &all, ids, n, false);
    tokenizer_decode(tok, &visible, ids, n, true);
    say_text("all", bytes_str(&all), all.len);
    say_text("visible", bytes_str(&visible), visible.len);
    must(utf8_valid(bytes_str(&all), all.len) && utf8_valid(bytes_str(&visible), visible.len));
    bytes_deinit(&all);
    bytes_deinit(&visible);
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > MAX_TEXT_BYTES) {
        return 0;
    }
    const tokenizer *tok = vocabulary();
    const char *text = (const char *)data + 1;
    switch (data[0] % 3) {
    case 0:
        check_text(tok, text, size - 1);
        break;
    case 1:
        check_guard(tok, text, size - 1);
        break;
    default:
        check_ids(tok, data + 1, size - 1);
        break;
    }
    return 0;
}
