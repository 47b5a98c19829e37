/* tokenizer_file: any tokenizer.json either opens and then works, or is refused with a reason. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"
#include "text/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_json(data, size, max, seed, "tokenizer_file");
}

/* What the file defines: how many ids, the texts of all, and its markers. */
static void say_tokenizer(const tokenizer *tok)
{
    bytes texts = bytes_empty(SIZE_MAX / 2);
    const added_tokens *markers = tokenizer_markers(tok);
    for (int32_t i = 0; i < tokenizer_n_tokens(tok); i++) {
        size_t n = 0;
        bool special = false;
        const char *text = tokenizer_token_bytes(tok, i, &n, &special);
        bytes_append(&texts, text, text ? n : 0);
        bytes_append_str(&texts, special ? "!," : ",");
    }
    say("%d ids, %zu markers, <|im_end|> is %d", (int)tokenizer_n_tokens(tok), markers->len,
        (int)tokenizer_added_id(tok, "<|im_end|>"));
    say_text("texts", bytes_str(&texts), texts.len);
    bytes_deinit(&texts);
    for (size_t i = 0; i < markers->len && i < 8; i++) {
        say_text("marker", markers->items[i].text, markers->items[i].len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "Hello, w\xC3\xB6rld!  123 <|im_start|>\n\nit's e\xCC\x81";
    tokenizer *tok = NULL;
    err_detail detail = {0};
    const char *path = memory_file(data, size);
    say_hide(path);
    err_code err = tokenizer_open(&tok, path, &detail);
    if (err != ERR_OK) {
        must(tok == NULL && detail.text[0] != '\0' && utf8_valid(detail.text, strlen(detail.text)));
        say_error(err, &detail);
        return 0;
    }
    token_ids ids;
    bytes decoded;
    token_ids_init(&ids);
    bytes_init(&decoded, 1u << 20);
    say_tokenizer(tok);
    err = tokenizer_encode(tok, &ids, text, sizeof text - 1, TOKENIZER_SPECIALS, &detail);
    if (err != ERR_OK) {
        say_error(err, &detail);
    } else {
        bytes line = bytes_empty(SIZE_MAX / 2);
        for (size_t i = 0; i < ids.len; i++) {
            bytes_printf(&line, " %d", (int)ids.ids[i]);
        }
        say("ids%s", bytes_str(&line));
        bytes_deinit(&line);
        for (size_t i = 0; i < ids.len; i++) {
            must(ids.ids[i] >= 0 && ids.ids[i] < tokenizer_n_tokens(tok));
        }
        tokenizer_decode(tok, &decoded, ids.ids, ids.len, false);
        say_text("decoded", bytes_str(&decoded), decoded.len);
        bytes_clear(&decoded);
        tokenizer_decode(tok, &decoded, ids.ids, ids.len, true);
        say_text("visible", bytes_str(&decoded), decoded.len);
        must(decoded.failed || utf8_valid(bytes_str(&decoded), decoded.len));
    }
    token_ids_deinit(&ids);
    bytes_deinit(&decoded);
    tokenizer_close(tok);
    return 0;
}
