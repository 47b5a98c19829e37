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
    const int n = snprintf(
        text, sizeof text, PARLEY_VERSION " %s %s %s kv=%s page=%d mtp=%d bits=%d/%d/%d exact=%d cpu=%x",
        hex[0], hex[1], hex[2], kv_type_name(e->cache_type), SEQ_PAGE_TOKENS, e->drafting, opt->layer_bits,
        opt->head_bits, opt->vision_bits, opt->exact, cpu_flags() & opt->cpu_mask);
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
    for (int32_t i = 0; i < e->n_slots; i++) {
        e->slots[i].naming = e->slots[i].naming == entry ? NULL : e->slots[i].naming;
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
    if (!e->cache) {
        err =
            err_set(&detail, ERR_INVALID, "there is no prefix cache in memory (--cache-ram, --cache-scope)");
    } else if (!shape) {
        err = err_set(&detail, ERR_NOMEM, "there is not enough memory");
    } else {
        disk_cache_options o = {.dir = opt->cache_disk,
                                .budget = mib << 20,
                                .block_bytes = block,
                                .own_bytes = seq_state_own_bytes(cfg, e->cache_type),
                                .hidden_size = (size_t)cfg->hidden_size,
                                .can_cut = seq_snapshot_can_be_cut(shape) && !model_config_has_ring(cfg),
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

err_code disk_begin_named_load(engine *e, slot *s, err_detail *detail)
{
    const gen_request *r = s->req;
    disk_entry found;
    if (!disk_cache_find_given(e->disk, r->scope, r->cache_name, &found)) {
        return err_set_param(detail, ERR_NOT_FOUND, "name", "cache_entry_not_found",
                             "the entry %s has just been removed", r->cache_name);
    }
    const disk_hit hit = {.name = found.name, .n_tokens = found.n_tokens, .mtp_len = found.mtp_len};
    seq_snapshot *snapshot = seq_snapshot_alloc(s->seq, hit.n_tokens, hit.mtp_len);
    if (snapshot) {
        (void)prefix_cache_make_room(e->cache, seq_snapshot_bytes(snapshot));
        s->load = disk_cache_load_given(e->disk, &hit, r->scope, snapshot);
    }
    return s->load ? ERR_OK : err_set(detail, ERR_NOMEM, "there is not enough memory for this entry");
}

static void end_named_load(engine *e, slot *s, int32_t n_read)
{
    err_detail detail = {0};
    s->timings.cache_n = n_read;
    if (n_read > 0) {
        slot_finish(e, s, GEN_FINISH_STOP, ERR_OK, NULL);
        return;
    }
    slot_fail(e, s, ERR_NOT_FOUND,
              (err_set_param(&detail, ERR_NOT_FOUND, "name", "cache_entry_not_found",
                             "the entry %s could not be read back, and is gone", s->req->cache_name),
               &detail));
}

void disk_end_loads(engine *e)
{
    for (int32_t i = 0; i < e->n_slots; i++) {
        slot *s = &e->slots[i];
        if (!s->load || !disk_load_has_ended(e->disk, s->load)) {
            continue;
        }
        const int32_t n_read = disk_load_finish(s->load, e->cache);
        s->load = NULL;
        if (!s->req) {
            continue; /* cancelled meanwhile */
        }
        err_detail detail = {0};
        if (s->req->loads_cache) {
            end_named_load(e, s, n_read);
            continue;
        }
        const err_code err = slot_resume(e, s, &detail);
        if (err != ERR_OK) {
            slot_fail(e, s, err, &detail);
        } else {
            slot_emit_start(e, s);
        }
    }
}

/* ---- writing ---- */

/* The entry of a prompt that waits for its name was written, or could not be. */
static void end_naming(engine *e, const prefix_entry *entry, bool ok)
{
    for (int32_t i = 0; i < e->n_slots; i++) {
        slot *s = &e->slots[i];
        err_detail detail = {0};
        if (!s->req || !s->names || s->naming != entry) {
            continue;
        }
        s->naming = NULL;
        if (ok) {
            slot_finish(e, s, GEN_FINISH_STOP, ERR_OK, NULL);
        } else {
            (void)err_set_param(
                &detail, ERR_IO, NULL, "cache_storage_failed", "%s",
                entry ? "the prompt could not be written to the folder of --cache-disk; the log says why"
                      : "there was no room in memory to keep the prompt until it was written (--cache-ram)");
            slot_fail(e, s, ERR_IO, &detail);
        }
    }
}

/* Takes note of the end of a save. One that failed is not tried again. */
static void end_save(engine *e, bool wait)
{
    bool ok = false;
    if (!disk_cache_end_save(e->disk, wait, &ok) || !e->saving) {
        return;
    }
    prefix_entry *entry = e->saving;
    e->saving = NULL;
    /* one that was given a name meanwhile is written once more */
    entry->saved = entry->given[0] && !e->saving_names ? PREFIX_NEW : PREFIX_SAVED;
    if (e->saving_names) {
        entry->given[0] = '\0';
        end_naming(e, entry, ok);
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
    e->saving_names = next->given[0] != '\0';
    return true;
}

void disk_begin_naming(engine *e, slot *s)
{
    gen_request *r = s->req;
    char name[PREFIX_GIVEN_MAX + 1];
    memcpy(name, r->cache_name, sizeof name);
    r->cache_name[0] = '\0'; /* what comes now is the end */
    const size_t n = r->n_boundaries ? (size_t)r->boundaries[r->n_boundaries - 1].len : r->prompt.len;
    prefix_entry *entry = e->disk ? prefix_cache_get(e->cache, s->key, 1 + n) : NULL;
    if (!entry || entry->given[0]) { /* nothing, or another request is giving it a name */
        err_detail detail = {0};
        (void)err_set_param(&detail, ERR_LIMIT, NULL, "prompt_not_kept", "%s",
                            entry
                                ? "another request is saving this prompt"
                                : "this prompt is too short to be kept, or --cache-ram is too small for it");
        slot_fail(e, s, ERR_LIMIT, &detail);
        return;
    }
    memcpy(entry->given, name, sizeof name);
    entry->saved = entry->saved == PREFIX_BEING_SAVED ? PREFIX_BEING_SAVED : PREFIX_NEW;
    s->names = true;
    s->naming = entry;
    s->phase = GEN_PHASE_PREFILL; /* it decodes nothing more */
}

void disk_save_next(engine *e)
{
    if (e->disk) {
        end_save(e, false);
        end_naming(e, NULL, false);
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

static engine_cached facts_of(const disk_entry *e)
{
    engine_cached one = {.n_tokens = e->n_tokens,
                         .n_bytes = e->n_bytes,
                         .used_at = e->used_ns / 1000000000,
                         .is_on_disk = true};
    _Static_assert(sizeof one.name == sizeof e->given, "a name is as long in either header");
    memcpy(one.name, e->given, sizeof one.name);
    return one;
}

static void list_on_disk(void *ctx, const disk_entry *e)
{
    const listing *l = ctx;
    const engine_cached one = facts_of(e);
    l->each(l->ctx, &one);
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

/* ---- entries with a name: any thread ---- */

err_code engine_check_name(const engine *e, const char *name, err_detail *detail)
{
    if (!e->disk) {
        return err_set_param(detail, ERR_UNSUPPORTED, NULL, "not_supported",
                             "entries have names on disk alone: start the server with --cache-disk DIR");
    }
    return prefix_cache_is_name(name)
               ? ERR_OK
               : err_set_param(detail, ERR_INVALID, "name", "invalid_value",
                               "a name has 1 to %d letters, digits, '-', '_' and '.', the first no dot",
                               PREFIX_GIVEN_MAX);
}

typedef struct wanted_name {
    const disk_cache *disk;
    const disk_entry *entry;
} wanted_name;

static bool is_wanted(void *ctx, const prefix_entry *e)
{
    const wanted_name *w = ctx;
    if (prefix_entry_len(e) != w->entry->n_tokens) {
        return false;
    }
    const disk_id name = disk_cache_name_of(w->disk, e->key, e->n_key);
    return memcmp(&name, &w->entry->name, sizeof name) == 0;
}

bool engine_find_named(engine *e, uint64_t scope, const char *name, bool forgets, engine_cached *out)
{
    const uint64_t own = e->share_cache ? 0 : scope;
    disk_entry found;
    if (!e->disk || !(forgets ? disk_cache_drop_given : disk_cache_find_given)(e->disk, own, name, &found)) {
        return false;
    }
    *out = facts_of(&found);
    if (forgets) {
        wanted_name w = {e->disk, &found};
        prefix_cache_forget_those(e->cache, own, is_wanted, &w);
        atomic_store(&e->sweep_cache, true);
        inbox_wake(e->inbox);
    }
    return true;
}

err_code engine_prepare_load(engine *e, gen_request **out, uint64_t scope, const char *name,
                             err_detail *detail)
{
    engine_cached found;
    *out = NULL;
    err_code err = engine_check_name(e, name, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (!engine_find_named(e, scope, name, false, &found)) {
        return err_set_param(detail, ERR_NOT_FOUND, "name", "cache_entry_not_found",
                             "this key has saved no prompt under this name with this model");
    }
    if (found.n_tokens >= e->info.n_ctx) {
        return err_set_param(detail, ERR_LIMIT, "name", "entry_too_long",
                             "this prompt has %d tokens, which the context of %d has no room for",
                             found.n_tokens, e->info.n_ctx);
    }
    gen_request *r = gen_request_create();
    if (!r) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for this request");
    }
    gen_params_init(&r->params);
    gen_params_fill(&r->params, &e->info.defaults);
    r->scope = e->share_cache ? 0 : scope;
    r->loads_cache = true;
    gen_request_keep_as(r, name);
    *out = r;
    return ERR_OK;
}
