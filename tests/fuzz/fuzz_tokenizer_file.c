/* tokenizer_file: any tokenizer.json either opens and then works, or is refused with a reason. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "text/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_json(data, size, max, seed, "tokenizer_file");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "Hello, w\xC3\xB6rld!  123 <|im_start|>\n\nit's e\xCC\x81";
    tokenizer *tok = NULL;
    err_detail detail = {0};
    if (tokenizer_open(&tok, memory_file(data, size), &detail) != ERR_OK) {
        must(tok == NULL && detail.text[0] != '\0' && utf8_valid(detail.text, strlen(detail.text)));
        return 0;
    }
    token_ids ids;
    bytes decoded;
    token_ids_init(&ids);
    bytes_init(&decoded, 1u << 20);
    if (tokenizer_encode(tok, &ids, text, sizeof text - 1, TOKENIZER_SPECIALS, &detail) == ERR_OK) {
        for (size_t i = 0; i < ids.len; i++) {
            must(ids.ids[i] >= 0 && ids.ids[i] < tokenizer_n_tokens(tok));
        }
        tokenizer_decode(tok, &decoded, ids.ids, ids.len, false);
        must(decoded.failed || utf8_valid(bytes_str(&decoded), decoded.len));
    }
    token_ids_deinit(&ids);
    bytes_deinit(&decoded);
    tokenizer_close(tok);
    return 0;
}
