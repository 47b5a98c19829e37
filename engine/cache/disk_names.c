#include "engine/cache/disk_cache_state.h"

#include <string.h>

static disk_id hash_of(hash_kind kind, const disk_id *before, const void *data, size_t n)
{
    unsigned char text[1 + HASH_BYTES + (SEQ_PAGE_TOKENS + 1) * sizeof(uint64_t)];
    disk_id out;
    text[0] = (unsigned char)kind;
    memcpy(text + 1, before, HASH_BYTES);
    memcpy(text + 1 + HASH_BYTES, data, n);
    hash_sha256(out.bytes, text, 1 + HASH_BYTES + n);
    return out;
}

disk_id disk_scope_of(const disk_cache *dc, uint64_t scope)
{
    return hash_of(HASH_SCOPE, &dc->salt, &scope, sizeof scope);
}

size_t disk_full_blocks(size_t n_tokens)
{
    return n_tokens ? (n_tokens - 1) / SEQ_PAGE_TOKENS : 0;
}

disk_id disk_next_chain(const disk_id *chain, const uint64_t *key, size_t b)
{
    return hash_of(HASH_CHAIN, chain, key + 1 + (b - 1) * SEQ_PAGE_TOKENS, SEQ_PAGE_TOKENS * sizeof *key);
}

disk_id disk_chain_root(const disk_cache *dc, const disk_id *scope)
{
    return hash_of(HASH_ROOT, &dc->options.fingerprint, scope, sizeof *scope);
}

disk_id disk_full_name(const disk_id *chain, const uint64_t *key, size_t b)
{
    return hash_of(HASH_FULL, chain, key + 1 + (b + 1) * SEQ_PAGE_TOKENS, sizeof *key);
}

disk_id disk_end_name(hash_kind kind, const disk_id *chain, const uint64_t *key, size_t n_tokens)
{
    const size_t begin = disk_full_blocks(n_tokens) * SEQ_PAGE_TOKENS;
    return hash_of(kind, chain, key + 1 + begin, (n_tokens - begin) * sizeof *key);
}

disk_id disk_name_blocks(const disk_cache *dc, disk_id *ids, const disk_id *scope, const uint64_t *key,
                         size_t n_tokens)
{
    disk_id chain = disk_chain_root(dc, scope);
    const size_t n_full = disk_full_blocks(n_tokens);
    for (size_t b = 0; b < n_full; b++) {
        chain = disk_next_chain(&chain, key, b + 1);
        ids[b] = disk_full_name(&chain, key, b);
    }
    ids[n_full] = disk_end_name(HASH_PART, &chain, key, n_tokens);
    return disk_end_name(HASH_ENTRY, &chain, key, n_tokens);
}

disk_id disk_cache_name_of(const disk_cache *dc, const uint64_t *key, size_t n_key)
{
    const disk_id scope = disk_scope_of(dc, key[0]);
    disk_id chain = disk_chain_root(dc, &scope);
    for (size_t b = 0; b < disk_full_blocks(n_key - 1); b++) {
        chain = disk_next_chain(&chain, key, b + 1);
    }
    return disk_end_name(HASH_ENTRY, &chain, key, n_key - 1);
}

bool disk_is_same(const disk_id *a, const disk_id *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}
