#include "base/hash.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hex.h"

void hash_sha256(uint8_t out[HASH_BYTES], const void *data, size_t n)
{
    /* Fails only without memory or with a broken library: nothing above could go on safely, because
     * a wrong content key would let one image answer for another. */
    if (EVP_Digest(n > 0 ? data : "", n, out, NULL, EVP_sha256(), NULL) != 1) {
        abort();
    }
}

/* As above: a hash that cannot be trusted is worse than none. */
static void must(int ok)
{
    if (ok != 1) {
        abort();
    }
}

static hash_stream *create(const EVP_MD *kind)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context && EVP_DigestInit_ex(context, kind, NULL) != 1) {
        EVP_MD_CTX_free(context);
        context = NULL;
    }
    return (hash_stream *)context;
}

hash_stream *hash_stream_create(void)
{
    return create(EVP_sha256());
}

hash_stream *hash_stream_create_git(uint64_t n_bytes)
{
    char head[32];
    const int n = snprintf(head, sizeof head, "blob %llu", (unsigned long long)n_bytes);
    hash_stream *h = create(EVP_sha1());
    if (h) {
        hash_stream_add(h, head, (size_t)n + 1);
    }
    return h;
}

void hash_stream_destroy(hash_stream *h)
{
    EVP_MD_CTX_free((EVP_MD_CTX *)h);
}

void hash_stream_add(hash_stream *h, const void *data, size_t n)
{
    must(n == 0 || EVP_DigestUpdate((EVP_MD_CTX *)h, data, n));
}

void hash_stream_end(hash_stream *h, uint8_t out[HASH_BYTES])
{
    must(EVP_DigestFinal_ex((EVP_MD_CTX *)h, out, NULL));
}

bool hash_parse_hex(uint8_t out[HASH_BYTES], const char *text)
{
    uint8_t hash[HASH_BYTES];
    if (strlen(text) != 2 * HASH_BYTES) {
        return false;
    }
    for (size_t i = 0; i < 2 * HASH_BYTES; i++) {
        const int digit = hex_digit(text[i]);
        if (digit < 0) {
            return false;
        }
        hash[i / 2] = (uint8_t)(i % 2 ? hash[i / 2] | digit : digit << 4);
    }
    memcpy(out, hash, HASH_BYTES);
    return true;
}

void hash_hex(char *out, const uint8_t *data, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[data[i] >> 4];
        out[2 * i + 1] = digits[data[i] & 15];
    }
    out[2 * n] = '\0';
}

/* Random bytes from the system's generator. */
static void random_bytes(uint8_t *out, size_t n)
{
    size_t have = 0;
    while (have < n) {
        ssize_t got = getrandom(out + have, n - have, 0);
        if (got > 0) {
            have += (size_t)got;
        }
        /* Only EINTR is possible here: the buffer is valid and the flags are 0. */
    }
}

void hash_random_id(char *out, size_t out_cap, const char *prefix)
{
    uint8_t random[HASH_ID_CHARS / 2];
    char hex[HASH_ID_CHARS + 1];
    random_bytes(random, sizeof random);
    hash_hex(hex, random, sizeof random);
    snprintf(out, out_cap, "%s%s", prefix, hex);
}

uint64_t hash_random_u64(void)
{
    uint64_t value;
    random_bytes((uint8_t *)&value, sizeof value);
    return value;
}
