#include "model/seq_layout.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

struct seq_snapshot {
    kv_pool *pool;
    seq_shape shape;
    int32_t len, mtp_len, rope_delta;
    size_t n_blocks;           /* blocks in use */
    void **blocks[KV_SHELVES]; /* [n_blocks] references; of KV_WINDOW some at the end, the others NULL */
    size_t n_floats;
    float *data; /* delta states, tails */
};

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Where each layer's keys and values lie in a block; the draft head's come last. */
static void place_layers(seq_shape *s, const model_config *cfg, kv_type type)
{
    size_t used[KV_SHELVES] = {0};
    for (int32_t i = 0; i <= cfg->n_layers; i++) {
        const bool is_draft = i == cfg->n_layers, is_sliding = !is_draft && cfg->layers[i] == LAYER_SLIDING;
        const bool is_shared = !is_draft && i >= cfg->n_layers - cfg->n_shared_layers;
        if (is_shared || (!is_draft && !layer_is_attention(cfg->layers[i]))) {
            continue;
        }
        const size_t kv = (size_t)(is_draft ? cfg->n_attention_layers : cfg->state_of[i]);
        const attention_spec *spec = is_sliding ? &cfg->sliding : &cfg->full;
        s->kv[kv].shelf = is_sliding && model_config_has_ring(cfg) ? KV_WINDOW : KV_ALL;
        s->kv[kv].at = used[s->kv[kv].shelf];
        used[s->kv[kv].shelf] +=
            kv_page_bytes(type, SEQ_PAGE_TOKENS, (size_t)spec->n_kv_heads, (size_t)spec->head_dim);
    }
}

/* config.c bounds every factor, so none of these products can overflow 64 bits. */
static seq_shape shape_of(const model_config *cfg, kv_type type, bool with_mtp, int32_t n_ctx)
{
    seq_shape s = {0};
    place_layers(&s, cfg, type);
    s.n_kv_layers = (size_t)cfg->n_attention_layers + (with_mtp ? 1 : 0);
    s.block_bytes[KV_ALL] = kv_pool_block_bytes(cfg, type, with_mtp);
    s.block_bytes[KV_WINDOW] = kv_pool_window_bytes(cfg, type);
    s.window = s.block_bytes[KV_WINDOW] ? (size_t)cfg->sliding.window : 0;
    s.n_delta_layers = (size_t)cfg->n_recurrent_layers;
    s.delta = (size_t)cfg->delta_n_v * (size_t)cfg->delta_dk * (size_t)cfg->delta_dv;
    s.tail = 3 * model_config_channels(cfg);
    s.n_blocks = round_up((size_t)n_ctx, SEQ_PAGE_TOKENS) / SEQ_PAGE_TOKENS;
    return s;
}

/* Floats of the delta states and tails; false if that many cannot be addressed. */
static bool memory_floats(const seq_shape *s, size_t *out)
{
    size_t in_bytes = 0;
    return size_mul(out, s->n_delta_layers, round_up(s->delta, 16) + round_up(s->tail, 16)) &&
           size_mul(&in_bytes, *out, sizeof(float));
}

size_t seq_state_bytes(const model_config *cfg, kv_type type, bool with_mtp, int32_t n_ctx)
{
    seq_shape s = shape_of(cfg, type, with_mtp, n_ctx);
    size_t states = 0, blocks = 0, windows = 0, n_bytes = 0;
    if (!memory_floats(&s, &states) || !size_mul(&blocks, s.block_bytes[KV_ALL], s.n_blocks) ||
        !size_mul(&windows, s.block_bytes[KV_WINDOW], kv_pool_window_blocks_for(cfg, n_ctx)) ||
        !size_add(&n_bytes, blocks, windows) || !size_add(&n_bytes, n_bytes, states * sizeof(float)) ||
        n_bytes > SIZE_MAX / 2) {
        return SIZE_MAX;
    }
    return sizeof(seq_state) + n_bytes + (KV_SHELVES + s.n_kv_layers) * s.n_blocks * sizeof(void *);
}

/* Puts a block (or NULL) at place b of the page tables of its layers. */
static void set_block(seq_state *s, kv_shelf shelf, size_t b, void *block)
{
    const seq_shape *sh = &s->shape;
    unsigned char *pages = block;
    s->blocks[shelf][b] = block;
    for (size_t layer = 0; layer < sh->n_kv_layers; layer++) {
        if (sh->kv[layer].shelf == shelf) {
            s->pages[layer * sh->n_blocks + b] = pages ? pages + sh->kv[layer].at : NULL;
        }
    }
}

/* Gives back blocks 0 .. end-1 of a shelf. */
static void release_blocks(seq_state *s, kv_shelf shelf, size_t end)
{
    for (size_t b = 0; b < end; b++) {
        if (s->blocks[shelf][b]) {
            kv_pool_release(s->pool, s->blocks[shelf][b]);
            set_block(s, shelf, b, NULL);
        }
    }
}

static void release_all(seq_state *s)
{
    for (kv_shelf shelf = 0; shelf < KV_SHELVES; shelf++) {
        release_blocks(s, shelf, s->shape.n_blocks);
    }
}

static err_code reserve_blocks(seq_state *s, kv_shelf shelf, int32_t first, int32_t n, err_detail *detail)
{
    assert(first >= 0 && n > 0 && n <= s->cap - first);
    size_t end = ((size_t)first + (size_t)n - 1) / SEQ_PAGE_TOKENS;
    for (size_t b = (size_t)first / SEQ_PAGE_TOKENS; b <= end; b++) {
        void *old = s->blocks[shelf][b];
        if (old && !kv_pool_is_shared(s->pool, old)) {
            continue;
        }
        void *block = kv_pool_take(s->pool, shelf);
        if (!block) {
            return err_set(detail, ERR_NOMEM,
                           "all %zu KV cache blocks are in use; lower --ctx-size or --parallel",
                           kv_pool_n_blocks(s->pool, shelf));
        }
        if (old) {
            memcpy(block, old, s->shape.block_bytes[shelf]);
            kv_pool_release(s->pool, old);
        }
        set_block(s, shelf, b, block);
    }
    return ERR_OK;
}

/* Blocks before the window of a row in slot `slot`. */
static size_t blocks_left_behind(const seq_shape *sh, int32_t slot)
{
    const size_t end = (size_t)slot + 1;
    return end > sh->window ? (end - sh->window) / SEQ_PAGE_TOKENS : 0;
}

err_code seq_reserve(seq_state *s, int32_t first, int32_t n, err_detail *detail)
{
    err_code err = reserve_blocks(s, KV_ALL, first, n, detail);
    if (!err && s->shape.window > 0) {
        release_blocks(s, KV_WINDOW, blocks_left_behind(&s->shape, first));
        err = reserve_blocks(s, KV_WINDOW, first, n, detail);
    }
    return err;
}

err_code seq_reserve_draft(seq_state *s, int32_t first, int32_t n, err_detail *detail)
{
    return reserve_blocks(s, KV_ALL, first, n, detail);
}

err_code seq_state_create(seq_state **out, const model_config *cfg, kv_pool *pool, int32_t n_ctx, compute *c,
                          err_detail *detail)
{
    const bool with_mtp = kv_pool_has_mtp(pool);
    *out = NULL;
    if (n_ctx < 1) {
        return err_set(detail, ERR_INVALID, "a context needs room for at least one token");
    }
    seq_shape sh = shape_of(cfg, kv_pool_type(pool), with_mtp, n_ctx);
    size_t floats = 0;
    bool possible = memory_floats(&sh, &floats);
    seq_state *s = calloc(1, sizeof *s);
    if (s && possible) {
        s->c = c;
        s->pool = pool;
        s->shape = sh;
        s->cap = n_ctx;
        s->memory = compute_alloc(c, (floats + 1) * sizeof(float));
        s->blocks[KV_ALL] = calloc(KV_SHELVES * sh.n_blocks, sizeof *s->blocks[0]);
        s->blocks[KV_WINDOW] = s->blocks[KV_ALL] ? s->blocks[KV_ALL] + sh.n_blocks : NULL;
        s->pages = calloc(sh.n_kv_layers * sh.n_blocks + 1, sizeof *s->pages);
    }
    if (!s || !s->memory || !s->blocks[KV_ALL] || !s->pages) {
        seq_state_destroy(s);
        return err_set(detail, ERR_NOMEM, "no memory for a context of %d tokens (%zu bytes wanted)", n_ctx,
                       seq_state_bytes(cfg, kv_pool_type(pool), with_mtp, n_ctx));
    }
    s->delta = s->memory;
    s->tails = s->delta + sh.n_delta_layers * round_up(sh.delta, 16);
    *out = s;
    return ERR_OK;
}

static void free_rows(seq_state *s)
{
    free(s->rows.delta);
    compute_free(s->c, s->rows.memory);
    compute_free(s->c, s->rows.conv_input);
    s->rows = (seq_rows){0};
}

void seq_state_destroy(seq_state *s)
{
    if (!s) {
        return;
    }
    if (s->pages && s->blocks[KV_ALL]) {
        release_all(s);
    }
    free_rows(s);
    compute_free(s->c, s->memory);
    free(s->blocks[KV_ALL]);
    free(s->pages);
    free(s);
}

void seq_state_reset(seq_state *s)
{
    release_all(s);
    memset(s->delta, 0, s->shape.n_delta_layers * s->shape.delta * sizeof(float));
    memset(s->tails, 0, s->shape.n_delta_layers * s->shape.tail * sizeof(float));
    s->len = s->mtp_len = s->rope_delta = 0;
    s->rows.n_rows = 0;
}

int32_t seq_state_len(const seq_state *s)
{
    return s->len;
}

int32_t seq_state_cap(const seq_state *s)
{
    return s->cap;
}

int32_t seq_state_rope_delta(const seq_state *s)
{
    return s->rope_delta;
}

void seq_state_set_rope_delta(seq_state *s, int32_t delta)
{
    s->rope_delta = delta;
}

/* ---- going back inside a verify block ---- */

/* Floats of the states after all rows of a block but the last, and of its convolution's inputs. */
static size_t spare_floats(const seq_shape *sh)
{
    return sh->n_delta_layers * round_up(sh->delta, 16);
}

static size_t input_floats(const seq_shape *sh, int32_t max_rows)
{
    return sh->n_delta_layers * (3 + (size_t)max_rows) * (sh->tail / 3);
}

size_t seq_state_rows_bytes(const model_config *cfg, int32_t max_rows)
{
    const seq_shape sh = shape_of(cfg, KV_F32, false, 1);
    size_t n_floats = 0, n_bytes = 0;
    const bool possible = size_mul(&n_floats, (size_t)max_rows - 1, spare_floats(&sh)) &&
                          size_add(&n_floats, n_floats, input_floats(&sh, max_rows)) &&
                          size_mul(&n_bytes, n_floats, sizeof(float)) && n_bytes <= SIZE_MAX / 2;
    return possible ? n_bytes : SIZE_MAX / 2;
}

err_code seq_state_reserve_rows(seq_state *s, int32_t max_rows, err_detail *detail)
{
    const seq_shape *sh = &s->shape;
    assert(max_rows > 0 && max_rows <= NN_ROWS_EXACT && s->rows.max_rows == 0);
    const size_t n_spare = (size_t)max_rows - 1, n_state = spare_floats(sh);
    const size_t n_inputs = input_floats(sh, max_rows);
    s->rows.delta = calloc(n_spare + 1, sizeof *s->rows.delta);
    s->rows.memory = compute_alloc(s->c, (n_spare * n_state + 1) * sizeof(float));
    s->rows.conv_input = compute_alloc(s->c, (n_inputs + 1) * sizeof(float));
    if (!s->rows.delta || !s->rows.memory || !s->rows.conv_input) {
        free_rows(s);
        return err_set(detail, ERR_NOMEM, "no memory for the states of a verify block (%zu bytes wanted)",
                       (n_spare * n_state + n_inputs) * sizeof(float));
    }
    for (size_t i = 0; i < n_spare; i++) {
        s->rows.delta[i] = s->rows.memory + i * n_state;
    }
    s->rows.max_rows = max_rows;
    return ERR_OK;
}

void seq_state_rewind(seq_state *s, int32_t n_keep)
{
    const seq_shape *sh = &s->shape;
    const seq_rows *rows = &s->rows;
    assert(n_keep >= 1 && n_keep <= rows->n_rows);
    if (n_keep < rows->n_rows) {
        float *kept = rows->delta[n_keep - 1];
        rows->delta[n_keep - 1] = s->delta;
        s->delta = kept;
        for (size_t layer = 0; layer < sh->n_delta_layers; layer++) {
            size_t channels = sh->tail / 3;
            memcpy(seq_tail(s, layer), seq_row_inputs(s, layer) + (size_t)n_keep * channels,
                   sh->tail * sizeof(float));
        }
        s->len -= rows->n_rows - n_keep;
    }
    s->rows.n_rows = 0;
}

/* ---- snapshots ---- */

static size_t blocks_in_use(const seq_state *s)
{
    int32_t n = s->len > s->mtp_len ? s->len : s->mtp_len;
    return round_up((size_t)n, SEQ_PAGE_TOKENS) / SEQ_PAGE_TOKENS;
}

static size_t data_bytes(const seq_snapshot *snap)
{
    return (snap->n_floats + 1) * sizeof(float);
}

/* One without blocks, but with memory for n_blocks of them. */
static seq_snapshot *make_snapshot(const seq_state *s, size_t n_blocks)
{
    const seq_shape *sh = &s->shape;
    seq_snapshot *snap = calloc(1, sizeof *snap);
    if (!snap) {
        return NULL;
    }
    snap->pool = s->pool;
    snap->shape = *sh;
    snap->n_floats = sh->n_delta_layers * (sh->delta + sh->tail);
    snap->data = spares_take(kv_pool_spares(s->pool), data_bytes(snap));
    snap->blocks[KV_ALL] = calloc(KV_SHELVES * n_blocks + 1, sizeof *snap->blocks[0]);
    if (!snap->data || !snap->blocks[KV_ALL]) {
        seq_snapshot_free(snap);
        return NULL;
    }
    snap->blocks[KV_WINDOW] = snap->blocks[KV_ALL] + n_blocks;
    return snap;
}

/* One more reference to blocks 0 .. n-1. */
static void share_blocks(const seq_snapshot *snap, size_t n)
{
    for (size_t b = 0; b < KV_SHELVES * n; b++) {
        void *block = snap->blocks[b % KV_SHELVES][b / KV_SHELVES];
        if (block) {
            kv_pool_share(snap->pool, block);
        }
    }
}

/* The blocks of s, but those that the row behind the snapshot does not see. */
static void take_blocks(seq_snapshot *snap, const seq_state *s, size_t n_blocks)
{
    const size_t behind = blocks_left_behind(&s->shape, snap->len);
    for (size_t b = 0; b < n_blocks; b++) {
        snap->blocks[KV_ALL][b] = s->blocks[KV_ALL][b];
        snap->blocks[KV_WINDOW][b] = b < behind ? NULL : s->blocks[KV_WINDOW][b];
    }
    snap->n_blocks = n_blocks;
    share_blocks(snap, n_blocks);
}

seq_snapshot *seq_state_snapshot(const seq_state *s)
{
    seq_snapshot *snap = make_snapshot(s, blocks_in_use(s));
    if (!snap) {
        return NULL;
    }
    snap->len = s->len;
    snap->mtp_len = s->mtp_len;
    snap->rope_delta = s->rope_delta;
    take_blocks(snap, s, blocks_in_use(s));
    for (size_t layer = 0; layer < s->shape.n_delta_layers; layer++) {
        seq_snapshot_take(snap, s, layer);
    }
    return snap;
}

void seq_snapshot_take(seq_snapshot *snap, const seq_state *s, size_t layer)
{
    const seq_shape *sh = &s->shape;
    float *tails = snap->data + sh->n_delta_layers * sh->delta;
    memcpy(snap->data + layer * sh->delta, seq_delta(s, layer), sh->delta * sizeof(float));
    memcpy(tails + layer * sh->tail, seq_tail(s, layer), sh->tail * sizeof(float));
}

seq_snapshot *seq_snapshot_begin(const seq_state *s, int32_t len)
{
    seq_snapshot *snap = make_snapshot(s, kv_pool_blocks_for(len));
    if (snap) {
        snap->len = len;
        snap->rope_delta = s->rope_delta;
    }
    return snap;
}

void seq_snapshot_end(seq_snapshot *snap, const seq_state *s)
{
    assert(s->len >= snap->len);
    snap->mtp_len = s->mtp_len < snap->len ? s->mtp_len : snap->len;
    take_blocks(snap, s, kv_pool_blocks_for(snap->len));
}

static bool same_model(const seq_shape *a, const seq_shape *b)
{
    return a->n_kv_layers == b->n_kv_layers && a->window == b->window &&
           memcmp(a->block_bytes, b->block_bytes, sizeof a->block_bytes) == 0 &&
           a->n_delta_layers == b->n_delta_layers && a->delta == b->delta && a->tail == b->tail;
}

seq_snapshot *seq_snapshot_alloc(const seq_state *s, int32_t len, int32_t mtp_len)
{
    const size_t n_blocks = kv_pool_blocks_for(len);
    seq_snapshot *snap = make_snapshot(s, n_blocks);
    if (!snap) {
        return NULL;
    }
    snap->len = len;
    snap->mtp_len = mtp_len < len ? mtp_len : len;
    while (snap->n_blocks < n_blocks) {
        void *block = kv_pool_take(s->pool, KV_ALL);
        if (!block) {
            seq_snapshot_free(snap);
            return NULL;
        }
        snap->blocks[KV_ALL][snap->n_blocks++] = block;
    }
    for (size_t b = blocks_left_behind(&s->shape, len); s->shape.window > 0 && b < n_blocks; b++) {
        snap->blocks[KV_WINDOW][b] = kv_pool_take(s->pool, KV_WINDOW);
        if (!snap->blocks[KV_WINDOW][b]) {
            seq_snapshot_free(snap);
            return NULL;
        }
    }
    return snap;
}

seq_snapshot_parts seq_snapshot_get_parts(const seq_snapshot *snap)
{
    const size_t n_blocks = kv_pool_blocks_for(snap->len), window_bytes = snap->shape.block_bytes[KV_WINDOW];
    const size_t behind = window_bytes ? blocks_left_behind(&snap->shape, snap->len) : n_blocks;
    const size_t first = behind < n_blocks ? behind : n_blocks;
    return (seq_snapshot_parts){.len = snap->len,
                                .mtp_len = snap->mtp_len < snap->len ? snap->mtp_len : snap->len,
                                .blocks = snap->blocks[KV_ALL],
                                .n_blocks = n_blocks,
                                .block_bytes = snap->shape.block_bytes[KV_ALL],
                                .floats = snap->data,
                                .n_floats = snap->n_floats,
                                .windows = snap->blocks[KV_WINDOW] + first,
                                .n_windows = n_blocks - first,
                                .window_bytes = window_bytes};
}

size_t seq_snapshot_own_bytes(const seq_snapshot_parts *parts)
{
    return parts->n_floats * sizeof(float) + parts->n_windows * parts->window_bytes;
}

size_t seq_state_own_bytes(const model_config *cfg, kv_type type)
{
    const seq_shape sh = shape_of(cfg, type, false, 1);
    const size_t n_windows = sh.window ? kv_pool_blocks_for((int32_t)sh.window) + 1 : 0;
    return sh.n_delta_layers * (sh.delta + sh.tail) * sizeof(float) + n_windows * sh.block_bytes[KV_WINDOW];
}

bool seq_snapshot_can_be_cut(const seq_snapshot *snap)
{
    return seq_snapshot_shortest(snap) == 1;
}

int32_t seq_snapshot_shortest(const seq_snapshot *snap)
{
    size_t first = 0; /* block of a window that is there */
    if (snap->shape.n_delta_layers > 0) {
        return snap->len;
    }
    while (snap->shape.window > 0 && first < snap->n_blocks && !snap->blocks[KV_WINDOW][first]) {
        first++;
    }
    /* a row in slot n sees from n + 1 - window on */
    const size_t n = first * SEQ_PAGE_TOKENS + snap->shape.window - 1;
    return first == 0 ? 1 : n < (size_t)snap->len ? (int32_t)n : snap->len;
}

err_code seq_state_restore(seq_state *s, const seq_snapshot *snap, err_detail *detail)
{
    return seq_state_restore_prefix(s, snap, snap->len, detail);
}

err_code seq_state_restore_prefix(seq_state *s, const seq_snapshot *snap, int32_t n, err_detail *detail)
{
    if (n < 1 || n > snap->len || n < seq_snapshot_shortest(snap)) {
        return err_set(detail, ERR_INVALID, "a snapshot of %d tokens cannot be cut behind %d", snap->len, n);
    }
    const size_t n_blocks = n < snap->len ? kv_pool_blocks_for(n) : snap->n_blocks;
    const seq_shape *sh = &s->shape;
    if (s->pool != snap->pool || !same_model(sh, &snap->shape)) {
        return err_set(detail, ERR_INVALID, "the snapshot belongs to another model");
    }
    if (n > s->cap || n_blocks > sh->n_blocks) {
        return err_set(detail, ERR_LIMIT, "a snapshot of %d tokens does not fit a context of %d", n, s->cap);
    }
    size_t n_delta = sh->n_delta_layers * sh->delta, n_tails = sh->n_delta_layers * sh->tail;
    share_blocks(snap, n_blocks); /* before the release: they may be the same blocks */
    release_all(s);
    for (size_t b = 0; b < n_blocks; b++) {
        set_block(s, KV_ALL, b, snap->blocks[KV_ALL][b]);
        set_block(s, KV_WINDOW, b, snap->blocks[KV_WINDOW][b]);
    }
    memcpy(s->delta, snap->data, n_delta * sizeof(float));
    memcpy(s->tails, snap->data + n_delta, n_tails * sizeof(float));
    s->len = n;
    s->mtp_len = n < snap->len && n < snap->mtp_len ? n : snap->mtp_len;
    s->rope_delta = snap->rope_delta;
    s->rows.n_rows = 0;
    return ERR_OK;
}

void seq_state_keep_spares(const seq_state *s, size_t n)
{
    const size_t n_floats = s->shape.n_delta_layers * (s->shape.delta + s->shape.tail);
    const seq_snapshot like = {.n_floats = n_floats};
    spares_want(kv_pool_spares(s->pool), data_bytes(&like), n_floats ? n : 0);
}

size_t seq_snapshot_bytes(const seq_snapshot *snap)
{
    return sizeof *snap + snap->n_floats * sizeof(float) + KV_SHELVES * snap->n_blocks * sizeof(void *);
}

void seq_snapshot_free(seq_snapshot *snap)
{
    if (!snap) {
        return;
    }
    for (size_t b = 0; b < KV_SHELVES * snap->n_blocks; b++) {
        void *block = snap->blocks[b % KV_SHELVES][b / KV_SHELVES];
        if (block) {
            kv_pool_release(snap->pool, block);
        }
    }
    spares_give(kv_pool_spares(snap->pool), snap->data, data_bytes(snap));
    free(snap->blocks[KV_ALL]);
    free(snap);
}
