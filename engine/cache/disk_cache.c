#include "engine/cache/disk_cache_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the thread ---- */

static void *run_thread(void *arg)
{
    disk_cache *dc = arg;
    pthread_mutex_lock(&dc->lock);
    while (!dc->is_stopping) {
        if (dc->has_unused) {
            dc->has_unused = false;
            disk_drop_unused(dc);
        } else if (dc->loads) {
            pthread_mutex_unlock(&dc->lock);
            disk_serve_loads(dc);
            pthread_mutex_lock(&dc->lock);
        } else if (dc->save == SAVE_ASKED) {
            dc->save = SAVE_UNDER_WAY;
            pthread_mutex_unlock(&dc->lock);
            const bool ok = disk_run_save(dc);
            pthread_mutex_lock(&dc->lock);
            dc->save = ok ? SAVE_DONE : SAVE_FAILED;
            dc->source = NULL;
            pthread_cond_broadcast(&dc->ended);
            pthread_mutex_unlock(&dc->lock);
            dc->options.wake(dc->options.wake_ctx);
            pthread_mutex_lock(&dc->lock);
        } else {
            pthread_cond_wait(&dc->work, &dc->lock);
        }
    }
    disk_drop_unused(dc);
    pthread_mutex_unlock(&dc->lock);
    return NULL;
}

err_code disk_cache_open(disk_cache **out, const disk_cache_options *options, err_detail *d)
{
    *out = NULL;
    disk_cache *dc = calloc(1, sizeof *dc);
    if (!dc) {
        return err_set(d, ERR_NOMEM, "there is not enough memory for a cache on disk");
    }
    dc->options = *options;
    dc->stats.budget = options->budget;
    dc->dir = dc->lock_file = -1;
    pthread_mutex_init(&dc->lock, NULL);
    pthread_cond_init(&dc->work, NULL);
    pthread_cond_init(&dc->ended, NULL);
    dc->index = disk_index_create();
    dc->block = malloc(options->block_bytes + 1);
    dc->own = malloc(options->own_bytes + 1);
    dc->hidden = malloc(options->hidden_size * sizeof *dc->hidden);
    err_code err = dc->index && dc->block && dc->own && dc->hidden
                       ? disk_take_folder(dc, options->dir, d)
                       : err_set(d, ERR_NOMEM, "there is not enough memory for a cache on disk");
    if (err == ERR_OK && pthread_create(&dc->thread, NULL, run_thread, dc) != 0) {
        err = err_set(d, ERR_NOMEM, "the system refused another thread");
    }
    dc->thread_started = err == ERR_OK;
    if (err != ERR_OK) {
        disk_cache_close(dc);
        return err;
    }
    *out = dc;
    return ERR_OK;
}

void disk_cache_close(disk_cache *dc)
{
    if (!dc) {
        return;
    }
    disk_cache_abandon_save(dc);
    pthread_mutex_lock(&dc->lock);
    dc->is_stopping = true;
    pthread_cond_broadcast(&dc->work);
    pthread_mutex_unlock(&dc->lock);
    if (dc->thread_started) {
        pthread_join(dc->thread, NULL);
    }
    if (dc->lock_file >= 0) {
        close(dc->lock_file); /* and unlocks the folder */
    }
    if (dc->dir >= 0) {
        close(dc->dir);
    }
    disk_index_destroy(dc->index);
    free(dc->block);
    free(dc->own);
    free(dc->hidden);
    pthread_cond_destroy(&dc->work);
    pthread_cond_destroy(&dc->ended);
    pthread_mutex_destroy(&dc->lock);
    free(dc);
}

/* ---- the engine thread ---- */

bool disk_cache_save(disk_cache *dc, const prefix_entry *e)
{
    pthread_mutex_lock(&dc->lock);
    const bool ok = dc->save == SAVE_NONE;
    if (ok) {
        dc->save = SAVE_ASKED;
        dc->source = e;
        memcpy(dc->given, e->given, sizeof dc->given); /* the entry's may change meanwhile */
        pthread_cond_signal(&dc->work);
    }
    pthread_mutex_unlock(&dc->lock);
    return ok;
}

bool disk_cache_end_save(disk_cache *dc, bool wait, bool *ok)
{
    pthread_mutex_lock(&dc->lock);
    while (wait && (dc->save == SAVE_ASKED || dc->save == SAVE_UNDER_WAY)) {
        pthread_cond_wait(&dc->ended, &dc->lock);
    }
    const bool has_ended = dc->save == SAVE_DONE || dc->save == SAVE_FAILED;
    *ok = dc->save == SAVE_DONE;
    if (has_ended) {
        dc->save = SAVE_NONE;
    }
    pthread_mutex_unlock(&dc->lock);
    return has_ended;
}

void disk_cache_abandon_save(disk_cache *dc)
{
    pthread_mutex_lock(&dc->lock);
    dc->source = NULL;
    pthread_mutex_unlock(&dc->lock);
}

bool disk_cache_find(disk_cache *dc, const uint64_t *key, size_t n_key, int32_t more_than, disk_hit *hit)
{
    const size_t n_tokens = n_key - 1, n_full = disk_full_blocks(n_tokens);
    disk_id *chains = malloc((n_full + 1) * sizeof *chains), *ids = malloc((n_full + 1) * sizeof *ids);
    const disk_id scope = disk_scope_of(dc, key[0]);
    size_t n = 0;
    *hit = (disk_hit){.n_tokens = more_than};
    bool found = false;
    if (!chains || !ids) {
        free(chains);
        free(ids);
        return false;
    }
    chains[0] = disk_chain_root(dc, &scope);
    for (size_t b = 0; b < n_full; b++) {
        chains[b + 1] = disk_next_chain(&chains[b], key, b + 1);
        ids[b] = disk_full_name(&chains[b + 1], key, b);
    }
    pthread_mutex_lock(&dc->lock);
    disk_entry *const *entries = disk_index_entries(dc->index, &n);
    for (size_t i = 0; i < n; i++) {
        const disk_entry *e = entries[i];
        if (e->is_foreign || !disk_is_same(&e->scope, &scope)) {
            continue;
        }
        const size_t e_full = disk_full_blocks((size_t)e->n_tokens), most = e_full < n_full ? e_full : n_full;
        size_t n_same = 0;
        while (n_same < most && disk_is_same(&e->blocks[n_same], &ids[n_same])) {
            n_same++;
        }
        disk_id name;
        if (n_same == e_full && (size_t)e->n_tokens <= n_tokens && e->n_tokens > hit->n_tokens &&
            (name = disk_end_name(HASH_ENTRY, &chains[e_full], key, (size_t)e->n_tokens),
             disk_is_same(&name, &e->name))) {
            *hit = (disk_hit){.name = e->name, .n_tokens = e->n_tokens, .mtp_len = e->mtp_len};
            found = true;
        } else if (dc->options.can_cut && (int32_t)(n_same * SEQ_PAGE_TOKENS) > hit->n_tokens) {
            const int32_t len = (int32_t)(n_same * SEQ_PAGE_TOKENS);
            *hit = (disk_hit){.name = e->name,
                              .n_tokens = len,
                              .mtp_len = e->mtp_len < len ? e->mtp_len : len,
                              .is_cut = true};
            found = true;
        }
    }
    pthread_mutex_unlock(&dc->lock);
    free(chains);
    free(ids);
    return found;
}

/* key: of n_key elements, or of the scope alone. */
static disk_load *begin_load(disk_cache *dc, const disk_hit *hit, const uint64_t *key, size_t n_key,
                             seq_snapshot *snapshot)
{
    disk_load *l = calloc(1, sizeof *l);
    if (l) {
        *l = (disk_load){.hit = *hit, .snapshot = snapshot, .reads_key = n_key == 1};
        l->key = calloc(1 + (size_t)hit->n_tokens, sizeof *key);
        l->hidden = hit->is_cut ? NULL : malloc(dc->options.hidden_size * sizeof *l->hidden);
    }
    if (!l || !l->key || (!hit->is_cut && !l->hidden)) {
        seq_snapshot_free(snapshot);
        if (l) {
            free(l->key);
            free(l->hidden);
        }
        free(l);
        return NULL;
    }
    memcpy(l->key, key, n_key * sizeof *key);
    pthread_mutex_lock(&dc->lock);
    disk_load **last = &dc->loads;
    while (*last) {
        last = &(*last)->next;
    }
    *last = l;
    pthread_cond_signal(&dc->work);
    pthread_mutex_unlock(&dc->lock);
    return l;
}

disk_load *disk_cache_load(disk_cache *dc, const disk_hit *hit, const uint64_t *key, seq_snapshot *snapshot)
{
    return begin_load(dc, hit, key, 1 + (size_t)hit->n_tokens, snapshot);
}

disk_load *disk_cache_load_given(disk_cache *dc, const disk_hit *hit, uint64_t scope, seq_snapshot *snapshot)
{
    return begin_load(dc, hit, &scope, 1, snapshot);
}

static bool has_ended(const disk_load *l)
{
    return l->state == LOAD_DONE || l->state == LOAD_FAILED;
}

bool disk_load_has_ended(disk_cache *dc, const disk_load *l)
{
    pthread_mutex_lock(&dc->lock);
    const bool ended = has_ended(l);
    pthread_mutex_unlock(&dc->lock);
    return ended;
}

static void free_load(disk_load *l)
{
    seq_snapshot_free(l->snapshot);
    free(l->hidden);
    free(l->key);
    free(l);
}

int32_t disk_load_finish(disk_load *l, prefix_cache *pc)
{
    const int32_t n_read = l->state == LOAD_DONE ? l->hit.n_tokens : 0;
    if (n_read > 0) {
        prefix_cache_insert(pc, l->key, 1 + (size_t)l->hit.n_tokens, l->snapshot, l->hidden);
        l->snapshot = NULL;
        l->hidden = NULL;
    }
    free_load(l);
    return n_read;
}

void disk_load_free(disk_cache *dc, disk_load *l)
{
    if (!l) {
        return;
    }
    pthread_mutex_lock(&dc->lock);
    while (!has_ended(l)) {
        pthread_cond_wait(&dc->ended, &dc->lock);
    }
    pthread_mutex_unlock(&dc->lock);
    free_load(l);
}

/* ---- any thread ---- */

static bool find_given(disk_cache *dc, uint64_t scope, const char *given, bool drops, disk_entry *out)
{
    const disk_id own = disk_scope_of(dc, scope);
    pthread_mutex_lock(&dc->lock);
    disk_entry *e = disk_index_find_given(dc->index, &own, given);
    if (e) {
        *out = *e;
        out->blocks = NULL;
    }
    if (e && drops) {
        disk_drop_entry(dc, e);
        dc->has_unused = true;
        pthread_cond_signal(&dc->work);
    }
    pthread_mutex_unlock(&dc->lock);
    return e != NULL;
}

bool disk_cache_find_given(disk_cache *dc, uint64_t scope, const char *given, disk_entry *out)
{
    return find_given(dc, scope, given, false, out);
}

bool disk_cache_drop_given(disk_cache *dc, uint64_t scope, const char *given, disk_entry *out)
{
    return find_given(dc, scope, given, true, out);
}

void disk_cache_clear(disk_cache *dc, const uint64_t *scope)
{
    size_t n = 0;
    pthread_mutex_lock(&dc->lock);
    const disk_id wanted = disk_scope_of(dc, scope ? *scope : 0);
    disk_entry *const *entries = disk_index_entries(dc->index, &n);
    for (size_t i = n; i-- > 0;) {
        if (!entries[i]->is_foreign && (!scope || disk_is_same(&entries[i]->scope, &wanted))) {
            disk_drop_entry(dc, entries[i]);
        }
    }
    if (dc->source && (!scope || dc->source->key[0] == *scope)) {
        dc->source = NULL; /* what is being written is not kept either */
    }
    dc->has_unused = true;
    pthread_cond_signal(&dc->work);
    pthread_mutex_unlock(&dc->lock);
}

void disk_cache_list(disk_cache *dc, uint64_t scope, void (*each)(void *ctx, const disk_entry *e), void *ctx)
{
    const disk_id wanted = disk_scope_of(dc, scope);
    size_t n = 0;
    pthread_mutex_lock(&dc->lock);
    disk_entry *const *entries = disk_index_entries(dc->index, &n);
    for (size_t i = 0; i < n; i++) {
        if (!entries[i]->is_foreign && disk_is_same(&entries[i]->scope, &wanted)) {
            each(ctx, entries[i]);
        }
    }
    pthread_mutex_unlock(&dc->lock);
}

disk_cache_stats disk_cache_get_stats(disk_cache *dc)
{
    size_t n = 0;
    pthread_mutex_lock(&dc->lock);
    disk_cache_stats s = dc->stats;
    disk_index_entries(dc->index, &n);
    s.n_entries = n;
    s.bytes = disk_index_bytes(dc->index);
    pthread_mutex_unlock(&dc->lock);
    return s;
}
