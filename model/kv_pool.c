#include "model/kv_pool.h"

#include <assert.h>
#include <stdlib.h>

#include "base/size.h"

struct kv_pool {
    compute *c;
    unsigned char *memory; /* [n_blocks][block_bytes] */
    size_t block_bytes;
    size_t n_blocks;
    uint32_t *n_refs;    /* [n_blocks] */
    size_t *free_blocks; /* stack of numbers */
    size_t n_free;
    kv_type type;
    bool with_mtp;
    bool (*reclaim)(void *ctx);
    void *reclaim_ctx;
};

size_t kv_pool_blocks_for(int32_t n_ctx)
{
    return ((size_t)n_ctx + SEQ_PAGE_TOKENS - 1) / SEQ_PAGE_TOKENS;
}

size_t kv_pool_block_bytes(const model_config *cfg, kv_type type, bool with_mtp)
{
    size_t layers = (size_t)cfg->n_attention_layers + (with_mtp ? 1 : 0), n_bytes = 0;
    size_t page = kv_page_bytes(type, SEQ_PAGE_TOKENS, (size_t)cfg->n_kv_heads, (size_t)cfg->head_dim);
    return size_mul(&n_bytes, layers, page) ? n_bytes : SIZE_MAX;
}

err_code kv_pool_create(kv_pool **out, const model_config *cfg, kv_type type, bool with_mtp, size_t n_blocks,
                        compute *c, err_detail *detail)
{
    *out = NULL;
    size_t block = kv_pool_block_bytes(cfg, type, with_mtp), n_bytes = SIZE_MAX;
    bool possible = size_mul(&n_bytes, block, n_blocks);
    kv_pool *p = calloc(1, sizeof *p);
    if (p && possible) {
        p->c = c;
        p->type = type;
        p->with_mtp = with_mtp;
        p->block_bytes = block;
        p->n_blocks = n_blocks;
        p->memory = compute_alloc(c, n_bytes);
        p->n_refs = calloc(n_blocks + 1, sizeof *p->n_refs);
        p->free_blocks = calloc(n_blocks + 1, sizeof *p->free_blocks);
    }
    if (!p || !p->memory || !p->n_refs || !p->free_blocks) {
        kv_pool_destroy(p);
        return err_set(detail, ERR_NOMEM, "no memory for %zu KV cache blocks (%zu bytes wanted)", n_blocks,
                       n_bytes);
    }
    for (size_t i = 0; i < n_blocks; i++) {
        p->free_blocks[p->n_free++] = n_blocks - 1 - i;
    }
    *out = p;
    return ERR_OK;
}

void kv_pool_destroy(kv_pool *p)
{
    if (!p) {
        return;
    }
    assert(p->n_free == p->n_blocks || !p->free_blocks);
    compute_free(p->c, p->memory);
    free(p->n_refs);
    free(p->free_blocks);
    free(p);
}

kv_type kv_pool_type(const kv_pool *p)
{
    return p->type;
}

bool kv_pool_has_mtp(const kv_pool *p)
{
    return p->with_mtp;
}

size_t kv_pool_n_free(const kv_pool *p)
{
    return p->n_free;
}

size_t kv_pool_n_blocks(const kv_pool *p)
{
    return p->n_blocks;
}

void kv_pool_set_reclaim(kv_pool *p, bool (*reclaim)(void *ctx), void *ctx)
{
    p->reclaim = reclaim;
    p->reclaim_ctx = ctx;
}

static size_t number_of(const kv_pool *p, const void *block)
{
    size_t i = (size_t)((const unsigned char *)block - p->memory) / p->block_bytes;
    assert(i < p->n_blocks && p->memory + i * p->block_bytes == block);
    return i;
}

void *kv_pool_take(kv_pool *p)
{
    while (p->n_free == 0) {
        if (!p->reclaim || !p->reclaim(p->reclaim_ctx)) {
            return NULL;
        }
    }
    size_t i = p->free_blocks[--p->n_free];
    p->n_refs[i] = 1;
    return p->memory + i * p->block_bytes;
}

void kv_pool_share(kv_pool *p, void *block)
{
    p->n_refs[number_of(p, block)]++;
}

void kv_pool_release(kv_pool *p, void *block)
{
    size_t i = number_of(p, block);
    assert(p->n_refs[i] > 0);
    if (--p->n_refs[i] == 0) {
        p->free_blocks[p->n_free++] = i;
    }
}

bool kv_pool_is_shared(const kv_pool *p, const void *block)
{
    return p->n_refs[number_of(p, block)] > 1;
}
