/* hash: SHA-256 (OpenSSL) for content keys and random ids, and the hash that Git gives a file. Any thread.
 *
 *     uint8_t key[HASH_BYTES]; hash_sha256(key, data, n);
 */
#ifndef PARLEY_BASE_HASH_H
#define PARLEY_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum { HASH_BYTES = 32, HASH_GIT_BYTES = 20, HASH_ID_CHARS = 32 };

/* SHA-256 of data[0..n). */
void hash_sha256(uint8_t out[HASH_BYTES], const void *data, size_t n);

/* SHA-256 of what arrives piece by piece. */
typedef struct hash_stream hash_stream;
MUST_CHECK hash_stream *hash_stream_create(void); /* NULL if out of memory */
/* The same for the hash of a file of so many bytes in Git, a SHA-1 over its length and contents; its
 * end writes HASH_GIT_BYTES. */
MUST_CHECK hash_stream *hash_stream_create_git(uint64_t n_bytes);
void hash_stream_destroy(hash_stream *h); /* NULL allowed */
void hash_stream_add(hash_stream *h, const void *data, size_t n);
/* The hash of all that was added; nothing may be added afterwards. */
void hash_stream_end(hash_stream *h, uint8_t out[HASH_BYTES]);

/* Reads 64 hex digits of either case; false, and nothing is written, if the text is anything else. */
bool hash_parse_hex(uint8_t out[HASH_BYTES], const char *text);

/* Writes 2*n lower-case hex digits and a NUL; `out` holds 2*n+1 bytes. */
void hash_hex(char *out, const uint8_t *data, size_t n);

/* Writes `prefix` followed by 32 random hex digits (128 bit, unguessable); out holds the prefix +
 * 33. */
void hash_random_id(char *out, size_t out_cap, const char *prefix);

/* A random 64-bit number from the system's generator. */
uint64_t hash_random_u64(void);

#endif
