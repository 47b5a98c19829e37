/* data_uri: what decodes is canonical, so encoding it again gives the same text. */
#include <stdlib.h>
#include <string.h>

#include "server/media/data_uri.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 4096 };

/* RFC 4648 section 4, with padding; out holds 4 * (n + 2) / 3 characters. */
static size_t encode(char *out, const uint8_t *data, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t len = 0;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)data[i] << 16;
        v |= i + 1 < n ? (uint32_t)data[i + 1] << 8 : 0;
        v |= i + 2 < n ? data[i + 2] : 0;
        for (int k = 0; k < 4; k++) {
            out[len++] = digits[v >> (18 - 6 * k) & 63];
        }
    }
    for (size_t i = 0; i < (3 - n % 3) % 3; i++) {
        out[len - 1 - i] = '=';
    }
    return len;
}

static void check_base64(const char *text, size_t len)
{
    uint8_t *out = malloc(len / 4 * 3 + 1);
    char *again = malloc(len + 4);
    must(out != NULL && again != NULL);
    size_t n = 0;
    if (base64_decode(out, &n, text, len)) {
        say_text("base64 of", (const char *)out, n);
        bytes written = bytes_empty(SIZE_MAX / 2);
        base64_encode(&written, out, n);
        must(written.len == len && memcmp(bytes_str(&written), text, len) == 0);
        bytes_deinit(&written);
        must(n <= len / 4 * 3);
        must(encode(again, out, n) == len && (len == 0 || memcmp(again, text, len) == 0));
    }
    free(out);
    free(again);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_words(data, size, max, seed, "data_uri");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    check_base64(text, size);
    say("kind %d", (int)data_uri_classify(text, size));
    if (data_uri_classify(text, size) != DATA_URI_INLINE) {
        return 0;
    }
    arena *a = arena_create(1u << 20);
    must(a != NULL);
    const uint8_t *out = NULL;
    size_t n = 0;
    err_detail detail = {0};
    err_code err = data_uri_decode(a, &out, &n, text, size, MAX_BYTES, &detail);
    must(err == ERR_OK || detail.text[0] != '\0');
    if (err != ERR_OK) {
        say_error(err, &detail);
    }
    if (err == ERR_OK) {
        say_text("bytes", (const char *)out, n);
        must(n <= MAX_BYTES && (n == 0 || out != NULL));
        uint8_t sum = 0;
        for (size_t i = 0; i < n; i++) {
            sum ^= out[i];
        }
        volatile uint8_t used = sum;
        (void)used;
    }
    arena_destroy(a);
    return 0;
}
