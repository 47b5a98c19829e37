/* disk: the engine's part of the prefix cache's second tier: what is written and when, and slots
 * that wait for what is read. Engine thread.
 */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "compute/kernels/cpu.h"
#include "engine/step.h"

enum { CACHE_DISK_DEFAULT_MIB = 4096, WORTH_READING = 32 };

/* ---- opening ---- */

/* Everything that states and keys depend on. */
static err_code fingerprint(const engine *e, const engine_options *opt, disk_id *out, err_detail *detail)
{
    static const uint8_t NO_FILE[HASH_BYTES] = {0};
    uint8_t of_model[HASH_BYTES], template[HASH_BYTES], processor[HASH_BYTES] = {0};
    char text[512], hex[3][2 * HASH_BYTES + 1];
    const char *source = e->template ? chat_template_text(e->template) : "";
    err_code err = model_fingerprint(e->model, of_model, detail);
    if (err != ERR_OK) {
        return err;
    }
    hash_sha256(template, source, strlen(source));
    if (e->vision) {
        vision_cache_key(processor, 0, NO_FILE, true, &e->processor);
    }
    hash_hex(hex[0], of_model, HASH_BYTES);
    hash_hex(hex[1], template, HASH_BYTES);
    hash_hex(hex[2], processor, HASH_BYTES);
    const int n = snprintf(text, sizeof text,
                           PARLEY_VERSION " %s %s %s kv=%s page=%d mtp=%d bits=%d/%d exact=%d cpu=%x", hex[0],
                           hex[1], hex[2], kv_type_name(e->cache_type), SEQ_PAGE_TOKENS, e->drafting,
                           opt->layer_bits, opt->head_bits, opt->exact, cpu_flags() & opt->cpu_mask);
    hash_sha256(out->bytes, text, (size_t)n);
    return ERR_OK;
}

/* The disk cache's thread. */
static void wake(void *ctx)
{
    inbox_wake(ctx);
}

/* An entry goes while it is written. */
static void on_drop(void *ctx, const prefix_entry *entry)
{
    engine *e = ctx;
    if (e->saving == entry) {
        disk_cache_abandon_save(e->disk);
        e->saving = NULL;
    }
}

void engine_open_disk(engine *e, const engine_options *opt)
{
    if (!opt->cache_disk) {
        return;
    }
    const model_config *cfg = model_get_config(e->model);
    const size_t block = kv_pool_block_bytes(cfg, e->cache_type, e->drafting);
    const uint64_t mib = opt->cache_disk_mib > 0 ? (uint64_t)opt->cache_disk_mib : CACHE_DISK_DEFAULT_MIB;
    err_detail detail = {0};
    err_code err = ERR_OK;
    seq_snapshot *shape = e->cache ? seq_state_snapshot(e->slots[0].seq) : NULL;
    if (model_config_has_ring(cfg)) {
        err = err_set(&detail, ERR_UNSUPPORTED,
                      "this model's sliding layers keep their window alone, which the disk tier does not");
    } else if (!e->cache) {
        err =
            err_set(&detail, ERR_INVALID, "there is no prefix cache in memory (--cache-ram, --cache-scope)");
    } else if (!shape) {
        err = err_set(&detail, ERR_NOMEM, "there is not enough memory");
    } else {
        disk_cache_options o = {.dir = opt->cache_disk,
                                .budget = mib << 20,
                                .block_bytes = block,
                                .n_floats = seq_snapshot_get_parts(shape).n_floats,
                                .hidden_size = (size_t)cfg->hidden_size,
                                .max_tokens = e->info.n_ctx - 1,
                                .can_cut = seq_snapshot_can_be_cut(shape),
                                .wake = wake,
                                .wake_ctx = e->inbox};
        err = fingerprint(e, opt, &o.fingerprint, &detail);
        err = err == ERR_OK ? disk_cache_open(&e->disk, &o, &detail) : err;
    }
    seq_snapshot_free(shape);
    if (err != ERR_OK) {
        log_warn("cache", "--cache-disk is not used: %s", detail.text);
        return;
    }
    prefix_cache_on_drop(e->cache, on_drop, e);
}

/* ---- reading ---- */

void disk_begin_load(engine *e, slot *s)
{
    disk_hit hit;
    if (!e->disk) {
        return;
    }
    const int32_t known = prefix_cache_peek(e->cache, s->key, s->n_key - 1);
    if (!disk_cache_find(e->disk, s->key, s->n_key - 1, known ? known + WORTH_READING : 0, &hit)) {
        return;
    }
    seq_snapshot *snapshot = seq_snapshot_alloc(s->seq, hit.n_tokens, hit.mtp_len);
    if (snapshot) {
        (void)prefix_cache_make_room(e->cache, seq_snapshot_bytes(snapshot));
        s->load = disk_cache_load(e->disk, &hit, s->key, snapshot);
    }
}

void disk_end_loads(engine *e)
{
    for (int32_t i = 0; i < e->n_slots; i++) {
        slot *s = &e->slots[i];
        if (!s->load || !disk_load_has_ended(e->disk, s->load)) {
            continue;
        }
        disk_load_finish(s->load, e->cache);
        s->load = NULL;
        if (!s->req) {
            continue; /* cancelled meanwhile */
        }
        err_detail detail = {0};
        const err_code err = slot_resume(e, s, &detail);
        if (err != ERR_OK) {
            slot_fail(e, s, err, &detail);
        } else {
            slot_emit_start(e, s);
        }
    }
}

/* ---- writing ---- */

/* Takes note of the end of a save. One that failed is not tried again. */
static void end_save(engine *e, bool wait)
{
    bool ok = false;
    if (disk_cache_end_save(e->disk, wait, &ok) && e->saving) {
        e->saving->saved = PREFIX_SAVED;
        e->saving = NULL;
    }
}

static bool begin_save(engine *e, bool newest)
{
    prefix_entry *next = e->saving ? NULL : prefix_cache_next_unsaved(e->cache, newest);
    if (!next || !disk_cache_save(e->disk, next)) {
        return false;
    }
    next->saved = PREFIX_BEING_SAVED;
    e->saving = next;
    return true;
}

void disk_save_next(engine *e)
{
    if (e->disk) {
        end_save(e, false);
        begin_save(e, false);
    }
}

void disk_save_all(engine *e)
{
    if (!e->disk) {
        return;
    }
    end_save(e, true);
    while (begin_save(e, true)) {
        end_save(e, true);
    }
}

/* ---- what there is: any thread ---- */

typedef struct listing {
    void (*each)(void *ctx, const engine_cached *one);
    void *ctx;
} listing;

static void list_in_memory(void *ctx, const prefix_entry *e)
{
    const listing *l = ctx;
    l->each(l->ctx,
            &(engine_cached){.n_tokens = prefix_entry_len(e), .n_bytes = e->bytes, .used_at = e->used_at});
}

static void list_on_disk(void *ctx, const disk_entry *e)
{
    const listing *l = ctx;
    l->each(l->ctx,
            &(engine_cached){
                .n_tokens = e->n_tokens, .n_bytes = e->n_bytes, .used_at = e->used_at, .is_on_disk = true});
}

void engine_list_cache(engine *e, uint64_t scope, void (*each)(void *ctx, const engine_cached *one),
                       void *ctx)
{
    listing l = {each, ctx};
    const uint64_t own = e->share_cache ? 0 : scope;
    if (e->cache) {
        prefix_cache_list(e->cache, own, list_in_memory, &l);
    }
    if (e->disk) {
        disk_cache_list(e->disk, own, list_on_disk, &l);
    }
}
