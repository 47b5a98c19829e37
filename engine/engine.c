#include "engine/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "compute/kernels/cpu.h"
#include "compute/limits.h"
#include "engine/engine_private.h"
#include "model/cost.h"

enum { CACHE_DEFAULT_MIB = 1024, VISION_CACHE_DEFAULT_MIB = 256 };
enum { N_CTX_DEFAULT_MAX = 32768, N_CTX_SHORT = 4096, N_CTX_MIN = 256, N_PARALLEL_DEFAULT = 4 };

static void report_load(const engine_options *opt, const char *stage, double fraction)
{
    if (opt->on_load) {
        opt->on_load(opt->on_load_ctx, stage, fraction);
    }
}

bool engine_parse_cpu(const char *text, unsigned *mask)
{
    return cpu_parse_level(text, mask);
}

const char *engine_cpu(void)
{
    return cpu_describe(cpu_flags());
}

const char *engine_wanted_blas(void)
{
    return compute_wanted_blas();
}

/* ---- opening, part by part ---- */

static err_code read_template(engine *e, const char *file, err_detail *detail)
{
    if (!file) {
        e->template = model_chat_template(e->model);
        return ERR_OK;
    }
    bytes text;
    bytes_init(&text, LIMIT_TEMPLATE_BYTES);
    err_code err = file_read(&text, file, detail);
    if (err == ERR_OK) {
        err = chat_template_compile(&e->own_template, bytes_str(&text), text.len, detail);
        err = err ? err_prefix(detail, err, "chat template of %s", file) : ERR_OK;
        e->template = e->own_template;
    }
    bytes_deinit(&text);
    return err;
}

/* The text of a token: as the tokenizer's configuration says, or else of its id. */
static void token_text(char *out, size_t cap, const engine *e, const char *given, int32_t id)
{
    size_t len = 0;
    const char *text =
        given[0] || id < 0 ? given : tokenizer_token_bytes(model_tokenizer(e->model), id, &len, NULL);
    len = given[0] ? strlen(given) : len;
    snprintf(out, cap, "%.*s", (int)(len < cap ? len : 0), text ? text : "");
}

/* A template that uses what is not known here may still do for most conversations. One that fails on the
 * simplest is refused; else whoever starts the program is told, and conversations that come to it fail. */
static err_code check_template(const engine *e, const char *file, err_detail *detail)
{
    err_detail why = {0};
    const char *unknown = e->template ? chat_template_unknown(e->template) : "";
    if (!unknown[0]) {
        return ERR_OK;
    }
    const err_code tried = template_habits_try(e->template, &why);
    if (tried == ERR_NOMEM) {
        return err_set(detail, tried, "%s", why.text);
    }
    if (tried != ERR_OK) {
        return err_set(
            detail, ERR_UNSUPPORTED,
            "chat template of %s: it uses %s, which this version does not know, for every conversation "
            "(%s); --chat-template-file gives the model another one",
            file ? file : model_dir(e->model), unknown, why.text);
    }
    log_warn(
        "eng",
        "chat template of %s: it uses %s, which this version does not know; it is used as it is, and "
        "conversations that come to that place are refused; --chat-template-file gives the model another one",
        file ? file : model_dir(e->model), unknown);
    return ERR_OK;
}

static err_code open_template(engine *e, const engine_options *opt, err_detail *detail)
{
    err_code err = read_template(e, opt->template_file, detail);
    if (err == ERR_OK && e->template) {
        err = template_habits_find(&e->prompts.habits, e->template, detail);
    }
    err = err ? err : check_template(e, opt->template_file, detail);
    e->prompts.think = opt->reasoning_form
                           ? think_form_find(opt->reasoning_form)
                           : think_form_of_template(e->template ? chat_template_text(e->template) : NULL);
    const model_config *cfg = model_get_config(e->model);
    token_text(e->prompts.bos_token, sizeof e->prompts.bos_token, e, cfg->bos_token, cfg->bos_token_id);
    token_text(e->prompts.eos_token, sizeof e->prompts.eos_token, e, cfg->eos_token,
               cfg->n_stop_ids ? cfg->stop_ids[0] : -1);
    e->prompts.as_published = opt->published_history;
    e->prompts.hoists_system = opt->hoist_system;
    return err == ERR_OK && !e->prompts.think
               ? err_set(detail, ERR_INVALID, "no form of reasoning has the name %s", opt->reasoning_form)
               : err;
}

/* Tokens of a prompt that are computed together: as many as was asked for and as windows have room
 * for, and an image whose rows see each other is not cut. */
static err_code choose_chunk(engine *e, const engine_options *opt, err_detail *detail)
{
    const model_config *cfg = model_get_config(e->model);
    const int64_t unit = (int64_t)e->processor.patch_size * e->processor.merge_size;
    int64_t whole = e->vision && cfg->media_see_both_ways ? e->processor.image_max_pixels / (unit * unit) : 0;
    e->prefill_chunk = opt->prefill_chunk ? opt->prefill_chunk : model_config_prompt_rows(cfg);
    if (e->prefill_chunk > KV_WINDOW_ROWS && model_config_has_ring(cfg)) {
        if (opt->prefill_chunk) {
            log_warn("eng", "--batch-size is %d; the windows of this model have room for %d",
                     e->prefill_chunk, KV_WINDOW_ROWS);
        }
        e->prefill_chunk = KV_WINDOW_ROWS;
    }
    if (whole > KV_WINDOW_ROWS) {
        return err_set(detail, ERR_UNSUPPORTED,
                       "the image processor's \"max_soft_tokens\" is %lld; in this model, whose images see "
                       "all of themselves, at most %d are supported",
                       (long long)whole, KV_WINDOW_ROWS);
    }
    e->prefill_chunk = whole > e->prefill_chunk ? (int32_t)whole : e->prefill_chunk;
    return ERR_OK;
}

/* Drafts of a sequence in a step. */
static int32_t most_drafts(const engine *e)
{
    const int32_t by_head = e->drafting ? DRAFT_MAX : 0;
    return e->max_copied > by_head ? e->max_copied : by_head;
}

/* Rows of the largest decode step. */
static int32_t most_rows(const engine *e)
{
    return most_drafts(e) ? NN_ROWS_EXACT : e->n_slots;
}

/* What every sequence takes, with the states that a step with drafts goes back to. */
static size_t sequence_bytes(const engine *e, int32_t n_ctx)
{
    const model_config *cfg = model_get_config(e->model);
    const size_t rows = most_drafts(e) ? seq_state_rows_bytes(cfg, 1 + most_drafts(e)) : 0;
    const size_t n_bytes = seq_state_bytes(cfg, e->cache_type, e->drafting, n_ctx);
    return n_bytes > SIZE_MAX / 2 ? n_bytes : n_bytes + rows;
}

/* A prompt that several answers go on from holds one block that they do not: its last, which each
 * copies. Of them one runs as long as others wait. */
static size_t shared_bytes(const engine *e)
{
    return (size_t)e->n_slots * kv_pool_block_bytes(model_get_config(e->model), e->cache_type, e->drafting);
}

static size_t state_bytes(const engine *e, int32_t n_ctx)
{
    return sequence_bytes(e, n_ctx) * (size_t)e->n_slots +
           decoder_scratch_bytes(e->model, most_rows(e), most_rows(e)) +
           decoder_scratch_bytes(e->model, e->prefill_chunk, 1) + e->cache_bytes + e->vision_cache_bytes +
           sparse_bytes(e, n_ctx) + e->disk_bytes + shared_bytes(e);
}

static size_t weight_bytes(const engine *e)
{
    return (size_t)model_weight_bytes(e->model) +
           (e->sparse.draft ? (size_t)lookahead_weight_bytes(e->sparse.draft) : 0);
}

/* The bytes of a cache: what was asked for, else the default within its share of the free
 * memory. */
static size_t cache_budget(int64_t asked_mib, size_t default_mib, size_t share)
{
    const size_t wanted = (asked_mib < 0 ? default_mib : (size_t)asked_mib) << 20;
    return asked_mib < 0 && wanted > share ? share : wanted;
}

/* What states and caches may take: `most` at all, and `easy` without being asked for so much. */
static err_code room_for_states(const engine *e, const engine_options *opt, size_t *most, size_t *easy,
                                err_detail *detail)
{
    const size_t fixed = weight_bytes(e), limit = (size_t)opt->mem_limit_mib << 20;
    *most = memory_available();
    *easy = *most / 2;
    if (limit && limit <= fixed + LIMIT_REQUEST_MEMORY) {
        return err_set(
            detail, ERR_NOMEM,
            "--mem-limit is %zu MiB; %zu MiB of weights and %zu MiB for requests do not fit; raise it, "
            "or make the weights smaller with --quantize",
            limit >> 20, fixed >> 20, LIMIT_REQUEST_MEMORY >> 20);
    }
    const size_t left = limit ? limit - fixed - LIMIT_REQUEST_MEMORY : *most;
    *most = left < *most ? left : *most;
    *easy = left < *easy ? left : *easy;
    return ERR_OK;
}

/* Chooses what was not asked for so that all state fits `most` bytes: a shorter context, but fewer
 * sequences before it gets short. */
static void choose_sizes(engine *e, const engine_options *opt, size_t most)
{
    int32_t *n_ctx = &e->info.n_ctx;
    while (state_bytes(e, *n_ctx) > most) {
        const bool is_short = opt->n_ctx || *n_ctx / 2 < N_CTX_SHORT;
        if (is_short && !opt->n_parallel && e->n_slots > 1) {
            e->n_slots /= 2;
        } else if (!opt->n_ctx && *n_ctx / 2 >= N_CTX_MIN) {
            *n_ctx /= 2;
        } else {
            break;
        }
    }
    if (!opt->n_parallel && e->n_slots < N_PARALLEL_DEFAULT) {
        log_warn("eng", "memory is short: answers at a time are %d, not %d; --parallel sets it", e->n_slots,
                 N_PARALLEL_DEFAULT);
    }
}

/* Chooses the context length so that all state fits, or refuses the one that was asked for. */
static err_code plan_memory(engine *e, const engine_options *opt, err_detail *detail)
{
    const int32_t asked = opt->n_ctx;
    const int32_t trained = model_get_config(e->model)->max_position_embeddings;
    size_t available, easy;
    err_code err = room_for_states(e, opt, &available, &easy, detail);
    if (err != ERR_OK) {
        return err;
    }
    e->cache_bytes = cache_budget(opt->cache_mib, CACHE_DEFAULT_MIB, available / 8);
    e->vision_cache_bytes =
        e->vision ? cache_budget(opt->vision_cache_mib, VISION_CACHE_DEFAULT_MIB, available / 32) : 0;
    if (opt->cache_disk && e->cache_bytes) { /* what the disk cache copies to write it */
        const model_config *cfg = model_get_config(e->model);
        e->disk_bytes = kv_pool_block_bytes(cfg, e->cache_type, e->drafting) +
                        seq_state_own_bytes(cfg, e->cache_type) + (size_t)cfg->hidden_size * sizeof(float);
    }
    int32_t n_ctx = asked ? asked : trained < N_CTX_DEFAULT_MAX ? trained : N_CTX_DEFAULT_MAX;
    if (n_ctx < N_CTX_MIN || n_ctx > trained) {
        return err_set(detail, ERR_INVALID, "--ctx-size is %d; this model takes %d to %d", n_ctx, N_CTX_MIN,
                       trained);
    }
    e->info.n_ctx = n_ctx;
    choose_sizes(e, opt, asked ? available : easy);
    n_ctx = e->info.n_ctx;
    e->info.state_bytes = state_bytes(e, n_ctx);
    if (e->info.state_bytes > available) {
        return err_set(
            detail, ERR_NOMEM,
            "%d sequences of %d tokens and the cache need %zu MiB and %zu MiB are %s; "
            "lower --ctx-size, --parallel, --cache-ram or --vision-cache, or take --cache-type q8 or q4",
            e->n_slots, n_ctx, (size_t)e->info.state_bytes >> 20, available >> 20,
            opt->mem_limit_mib ? "left of --mem-limit" : "free");
    }
    /* Requests get what is left: of the limit, or half of what is free now. */
    const size_t left = available - (size_t)e->info.state_bytes;
    e->info.request_bytes = opt->mem_limit_mib                ? LIMIT_REQUEST_MEMORY + left
                            : left / 2 > LIMIT_REQUEST_MEMORY ? left / 2
                                                              : LIMIT_REQUEST_MEMORY;
    ledger_set_limit(e->memory, (size_t)e->info.request_bytes - LIMIT_PROCESS_MEMORY);
    return ERR_OK;
}

/* States that the next prompt keeps, whose memory is ready before: as many, at most such a part of
 * the cache. */
enum { SPARES = 5, SPARE_SHARE = 5 };

/* One pool of blocks for all sequences and the prefix cache: half of the cache's budget goes to
 * blocks, half to copied states. A sequence always finds its blocks, because the cache gives
 * way. */
static err_code create_pool(engine *e, err_detail *detail)
{
    const model_config *cfg = model_get_config(e->model);
    size_t per_sequence = kv_pool_blocks_for(e->info.n_ctx);
    size_t block_bytes = kv_pool_block_bytes(cfg, e->cache_type, e->drafting);
    size_t window_bytes = kv_pool_window_bytes(cfg, e->cache_type);
    /* where windows have blocks of their own, either kind gets its half of that */
    const size_t share = window_bytes ? e->cache_bytes / 4 : e->cache_bytes / 2;
    const size_t n_slots = (size_t)e->n_slots;
    size_t n_cached = block_bytes ? share / block_bytes : 0;
    size_t n_window =
        window_bytes ? kv_pool_window_blocks_for(cfg, e->info.n_ctx) * n_slots + share / window_bytes : 0;
    err_code err = kv_pool_create(&e->pool, cfg, e->cache_type, e->drafting,
                                  per_sequence * n_slots + n_slots + n_cached, n_window, e->compute, detail);
    if (err != ERR_OK || e->cache_bytes == 0) {
        return err;
    }
    const size_t budget = e->cache_bytes / 2;
    const size_t state = seq_state_bytes(cfg, e->cache_type, e->drafting, 1) - block_bytes - window_bytes;
    if (state > budget) {
        log_warn("eng",
                 "--cache-ram is %zu MiB and one state of this model needs %zu MiB: no prompts are cached",
                 e->cache_bytes >> 20, (2 * state >> 20) + 1);
        return ERR_OK;
    }
    const size_t n_all = budget / state,
                 n_spares = n_all / SPARE_SHARE < SPARES ? n_all / SPARE_SHARE : SPARES;
    const size_t n_states = n_all - n_spares;
    e->cache = prefix_cache_create(budget - n_spares * state,
                                   n_states < LIMIT_CACHED_PREFIXES ? n_states : LIMIT_CACHED_PREFIXES,
                                   cfg->hidden_size);
    if (!e->cache) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory to start the engine");
    }
    e->n_spares = n_spares;
    kv_pool_set_reclaim(e->pool, prefix_cache_evict_one, e->cache);
    return ERR_OK;
}

static err_code create_state(engine *e, err_detail *detail)
{
    const model_config *cfg = model_get_config(e->model);
    e->slots = calloc((size_t)e->n_slots, sizeof *e->slots);
    e->raw_logits = malloc((size_t)cfg->vocab_size * sizeof *e->raw_logits);
    e->first_logits = malloc((size_t)cfg->vocab_size * sizeof *e->first_logits);
    e->chunk_rows = malloc((size_t)e->prefill_chunk * sizeof *e->chunk_rows);
    if (!e->slots || !e->raw_logits || !e->first_logits || !e->chunk_rows) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory to start the engine");
    }
    for (int32_t i = 0; i < e->n_slots; i++) {
        slot *s = &e->slots[i];
        err_code err = seq_state_create(&s->seq, cfg, e->pool, e->info.n_ctx, e->compute, detail);
        s->key = malloc(((size_t)e->info.n_ctx + 2) * sizeof *s->key);
        if (err == ERR_OK && !s->key) {
            err = err_set(detail, ERR_NOMEM, "there is not enough memory to start the engine");
        }
        if (err == ERR_OK && most_drafts(e)) {
            err = seq_state_reserve_rows(s->seq, 1 + most_drafts(e), detail);
        }
        if (err == ERR_OK && (!drafter_init(&s->drafter, cfg->hidden_size) ||
                              (e->max_copied && !lookup_init(&s->lookup, e->info.n_ctx + 1)))) {
            err = err_set(detail, ERR_NOMEM, "there is not enough memory to start the engine");
        }
        if (err != ERR_OK) {
            return err;
        }
    }
    seq_state_keep_spares(e->slots[0].seq, e->n_spares);
    err_code err = ERR_OK;
    if (e->vision_cache_bytes) {
        e->vision_cache =
            vision_cache_create(e->vision_cache_bytes, (int32_t)model_config_feature_width(cfg));
        if (!e->vision_cache) {
            return err_set(detail, ERR_NOMEM, "there is not enough memory to start the engine");
        }
    }
    e->pressure = (cache_pressure){.prefixes = e->cache, .images = e->vision_cache, .pool = e->pool};
    if (e->drafting) {
        const int32_t rows = e->prefill_chunk > DRAFT_PENDING_MAX ? e->prefill_chunk : DRAFT_PENDING_MAX;
        err = mtp_scratch_create(&e->mtp, e->model, e->compute, rows, 1, detail);
    }
    if (err == ERR_OK) {
        err = decoder_scratch_create(&e->scratch, e->model, e->compute, most_rows(e), most_rows(e), detail);
    }
    return err == ERR_OK
               ? decoder_scratch_create(&e->prompt_scratch, e->model, e->compute, e->prefill_chunk, 1, detail)
               : err;
}

/* The command line wins over generation_config.json. */
static void set_defaults(engine *e, const engine_options *opt)
{
    const model_config *cfg = model_get_config(e->model);
    gen_params model_defaults;
    gen_params_init(&model_defaults);
    model_defaults.temperature = cfg->do_sample ? cfg->temperature : 0.0f;
    model_defaults.top_k = cfg->top_k;
    model_defaults.top_p = cfg->top_p;
    model_defaults.min_p = cfg->min_p;
    model_defaults.repetition_penalty = cfg->repetition_penalty;
    model_defaults.spec_keep = opt->sparse.keep > 0 ? opt->sparse.keep : (float)LIMIT_SPARSE_KEEP;
    model_defaults.spec_backbone = opt->sparse.backbone;
    model_defaults.max_tokens = opt->default_max_tokens ? opt->default_max_tokens : LIMIT_MAX_TOKENS_DEFAULT;
    e->info.defaults = opt->defaults;
    gen_params_fill(&e->info.defaults, &model_defaults);
}

static void set_info(engine *e)
{
    const model_config *cfg = model_get_config(e->model);
    const char *slash = strrchr(e->dir, '/');
    snprintf(e->model_name, sizeof e->model_name, "%.255s", slash ? slash + 1 : e->dir);
    snprintf(e->compute_text, sizeof e->compute_text, "%s", compute_describe(e->compute));
    e->info.model_name = e->model_name;
    e->info.model_dir = e->dir;
    e->info.compute = e->compute_text;
    e->info.cache_type = kv_type_name(e->cache_type);
    e->info.family = cfg->family;
    e->info.n_ctx_train = cfg->max_position_embeddings;
    e->info.n_vocab = cfg->vocab_size;
    e->info.n_embd = cfg->hidden_size;
    e->info.n_parallel = e->n_slots;
    e->info.n_params = model_n_params(e->model);
    e->info.weight_bytes = weight_bytes(e);
    const model_cost cost = model_costs(e->model, e->cache_type);
    e->info.step_bytes = cost.step_bytes;
    e->info.slot_bytes = cost.slot_bytes;
    e->info.layer_flops = cost.layer_flops;
    e->info.head_flops = cost.head_flops;
    e->info.slot_flops = cost.slot_flops;
    if (e->vision) {
        const vit_config *v = vit_get_config(e->vision);
        const double D = v->hidden_size;
        const double matrices = v->is_gated ? 3.0 : 2.0; /* of the MLP */
        e->info.patch_flops = 2.0 * v->depth * (4.0 * D * D + matrices * D * v->intermediate_size);
        e->info.patch_pair_flops = 4.0 * v->depth * D;
    }
    e->info.has_vision = e->vision != NULL;
    e->info.has_video = e->vision && cfg->video_token_id >= 0 && cfg->vision_start_token_id >= 0 &&
                        cfg->vision_end_token_id >= 0;
    e->info.video_fps = e->processor.video_fps;
    e->info.video_min_frames = e->processor.video_min_frames;
    e->info.video_max_frames = e->processor.video_max_frames < e->media.max_video_frames
                                   ? e->processor.video_max_frames
                                   : e->media.max_video_frames;
    e->info.patch_size = e->processor.patch_size;
    e->info.merge_size = e->processor.merge_size;
    e->info.temporal_patch_size = e->processor.temporal_patch_size;
    e->info.video_fixed_frames = e->processor.video_frames;
    e->info.video_fills_budget = e->processor.fills_budget;
    e->info.video_min_pixels = e->processor.video_min_pixels;
    e->info.video_max_pixels = e->processor.video_max_pixels;
    e->info.has_mtp = model_has_mtp(e->model);
    e->info.has_template = e->template != NULL;
    e->info.template_text = e->template ? chat_template_text(e->template) : NULL;
    e->info.writes_tools = e->template && !e->prompts.habits.takes_tools;
    e->info.has_thinking = e->template && chat_template_has_variable(e->template, "enable_thinking");
}

/* ctx: the engine_options. A line a tenth of the way, and the loading page's bar. */
static void report_quantizing(void *ctx, uint64_t done, uint64_t total)
{
    const engine_options *opt = ctx;
    report_load(opt, "quantizing", total ? 0.5 * (double)done / (double)total : 0.0);
}

static err_code open_parts(engine *e, const engine_options *opt, err_detail *detail)
{
    const compute_options co = {
        .n_threads = opt->n_threads, .cpu_mask = opt->cpu_mask, .fast = !opt->exact, .spread = opt->spread};
    err_code err = compute_create(&e->compute, &co, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (opt->n_threads > cpu_physical_cores()) {
        log_warn("eng", "%zu compute threads on %zu cores: fewer would be faster", opt->n_threads,
                 cpu_physical_cores());
    }
    if ((cpu_flags() & opt->cpu_mask & (CPU_AVX2 | CPU_NEON)) == 0) {
        log_warn("eng", "plain C kernels: answers are slow");
    }
    report_load(opt, "text", 0.0);
    const model_open_options mo = {.mmproj = opt->mmproj,
                                   .rope_bf16 = opt->rope_bf16,
                                   .quantize = {opt->layer_bits,
                                                opt->head_bits,
                                                e->compute,
                                                {report_quantizing, (void *)(uintptr_t)opt}},
                                   .huge_pages = opt->huge_pages ? e->compute : NULL};
    err = model_open(&e->model, e->dir, &mo, detail);
    if (err != ERR_OK) {
        return err;
    }
    report_load(opt, "vision", 0.5);
    err = engine_open_vision(e, opt, detail);
    if (err == ERR_OK) {
        err = open_template(e, opt, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (opt->lock_memory && mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) {
        log_warn("eng",
                 "memory is not locked: %s; raise the limit (ulimit -l, or LimitMEMLOCK= of a service)",
                 strerror(errno));
    }
    report_load(opt, "memory", 0.8);
    e->drafting = model_has_mtp(e->model) && !opt->no_draft;
    e->max_copied = opt->prompt_lookup < LOOKUP_MAX ? opt->prompt_lookup : LOOKUP_MAX;
    err = choose_chunk(e, opt, detail);
    if (err != ERR_OK) {
        return err;
    }
    sparse_open(e, opt);
    err = plan_memory(e, opt, detail);
    if (err == ERR_OK) {
        err = create_pool(e, detail);
    }
    if (err == ERR_OK) {
        err = create_state(e, detail);
    }
    if (err == ERR_OK) {
        err = sparse_create(e, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    set_info(e);
    engine_find_pool(e);
    set_defaults(e, opt);
    log_info(
        "eng",
        "%d sequences of %d tokens, keys and values in %s, and %zu MiB of cached prompts take at most %zu "
        "MiB; %s",
        e->n_slots, e->info.n_ctx, e->info.cache_type, e->cache_bytes >> 20,
        (size_t)e->info.state_bytes >> 20,
        e->drafting               ? "drafting with the multi-token-prediction head"
        : model_has_mtp(e->model) ? "drafting is off"
                                  : "the model has no multi-token-prediction head: plain decoding");
    const size_t fixed = (size_t)e->info.weight_bytes, states = (size_t)e->info.state_bytes,
                 requests = (size_t)e->info.request_bytes;
    log_info(
        "eng",
        "memory: %zu MiB of weights, %zu MiB of states and caches, %zu MiB for requests: at most %zu MiB",
        fixed >> 20, states >> 20, requests >> 20, (fixed + states + requests) >> 20);
    e->inbox = inbox_create(opt->n_queue ? opt->n_queue : LIMIT_QUEUE, e->n_slots);
    if (!e->inbox) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory to start the engine");
    }
    engine_open_disk(e, opt);
    if (pthread_create(&e->thread, NULL, engine_thread, e) != 0) {
        return err_set(detail, ERR_NOMEM, "the system refused another thread");
    }
    e->thread_started = true;
    report_load(opt, "ready", 1.0);
    return ERR_OK;
}

err_code engine_open(engine **out, const engine_options *opt, err_detail *detail)
{
    *out = NULL;
    engine *e = calloc(1, sizeof *e);
    if (!e) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory to start the engine");
    }
    pthread_mutex_init(&e->status_lock, NULL);
    pthread_mutex_init(&e->trie_lock, NULL);
    e->own_memory = opt->memory ? NULL : ledger_create(SIZE_MAX);
    e->memory = opt->memory ? opt->memory : e->own_memory;
    e->on_event = opt->on_event;
    e->on_event_ctx = opt->on_event_ctx;
    e->media = media_settings_of(opt, e->memory);
    e->info.max_images =
        opt->max_images > 0 && opt->max_images < LIMIT_IMAGES ? opt->max_images : LIMIT_IMAGES;
    e->video_outer_pair = opt->video_outer_pair;
    e->share_cache = opt->share_cache;
    e->n_slots = opt->n_parallel ? opt->n_parallel : N_PARALLEL_DEFAULT;
    e->cache_type = opt->exact ? KV_F32 : KV_F16;
    err_code err = ERR_OK;
    char *full = realpath(opt->model_dir, NULL);
    if (!e->memory) {
        err = err_set(detail, ERR_NOMEM, "there is not enough memory to start the engine");
    } else if (!full || strlen(full) >= sizeof e->dir) {
        err = err_set(detail, ERR_NOT_FOUND, "there is no model folder at %s", opt->model_dir);
    } else if (e->n_slots < 1 || e->n_slots > NN_ROWS_EXACT) {
        err =
            err_set(detail, ERR_INVALID, "--parallel is %d; 1 to %d is possible", e->n_slots, NN_ROWS_EXACT);
    } else if (opt->cache_type && !kv_type_parse(&e->cache_type, opt->cache_type)) {
        err = err_set(detail, ERR_INVALID, "--cache-type is \"%s\"; it takes f32, bf16, f16, q8 or q4",
                      opt->cache_type);
    } else {
        memcpy(e->dir, full, strlen(full) + 1);
        err = open_parts(e, opt, detail);
    }
    free(full);
    if (err != ERR_OK) {
        engine_close(e);
        return err;
    }
    *out = e;
    return ERR_OK;
}

void engine_close(engine *e)
{
    if (!e) {
        return;
    }
    if (e->thread_started) {
        inbox_close(e->inbox);
        pthread_join(e->thread, NULL);
    }
    for (int32_t i = 0; e->slots && i < e->n_slots; i++) {
        disk_load_free(e->disk, e->slots[i].load);
    }
    disk_cache_close(e->disk);
    inbox_destroy(e->inbox);
    for (int32_t i = 0; e->slots && i < e->n_slots; i++) {
        seq_state_destroy(e->slots[i].seq);
        drafter_deinit(&e->slots[i].drafter);
        lookup_deinit(&e->slots[i].lookup);
        free(e->slots[i].key);
    }
    prefix_cache_destroy(e->cache);
    vision_cache_destroy(e->vision_cache);
    kv_pool_destroy(e->pool);
    free(e->slots);
    free(e->raw_logits);
    free(e->first_logits);
    free(e->chunk_rows);
    decoder_scratch_destroy(e->scratch);
    decoder_scratch_destroy(e->prompt_scratch);
    mtp_scratch_destroy(e->mtp);
    sparse_close(e);
    vit_close(e->vision);
    quantized_close(e->vision_matrices);
    chat_template_close(e->own_template);
    token_trie_destroy(e->trie);
    model_close(e->model);
    compute_destroy(e->compute);
    ledger_destroy(e->own_memory);
    pthread_mutex_destroy(&e->status_lock);
    pthread_mutex_destroy(&e->trie_lock);
    free(e);
}

const engine_info *engine_get_info(const engine *e)
{
    return &e->info;
}

/* ---- requests ---- */

err_code engine_admit(engine *e, gen_request *r, uint64_t id, err_detail *detail)
{
    int32_t n = 0;
    r->id = id;
    for (gen_request *q = r; q; q = q->next) {
        if (!q->done) {
            q->done = calloc(1, sizeof *q->done);
        }
        if (!q->done) {
            return err_set(detail, ERR_NOMEM, "there is not enough memory for this request");
        }
        if (!q->name[0]) {
            snprintf(q->name, sizeof q->name, "%" PRIu64, q->id);
        }
        q->submitted_ns = clock_ns();
        n++;
    }
    if (n > inbox_room(e->inbox)) {
        return err_set_param(detail, ERR_LIMIT, NULL, "too_many_answers",
                             "the request asks for %d answers; at most %d wait for their turn here (--queue)",
                             n, inbox_room(e->inbox));
    }
    if (!inbox_reserve(e->inbox, r)) {
        return err_set_param(detail, ERR_BUSY, NULL, "queue_full",
                             "the queue is full; try again in a moment");
    }
    return ERR_OK;
}

void engine_start(engine *e, gen_request *r)
{
    inbox_submit(e->inbox, r);
}

err_code engine_submit(engine *e, gen_request *r, uint64_t id, err_detail *detail)
{
    const err_code err = engine_admit(e, r, id, detail);
    if (err == ERR_OK) {
        engine_start(e, r);
    }
    return err;
}

void engine_cancel(engine *e, uint64_t id)
{
    inbox_cancel(e->inbox, id);
}

void engine_end_thinking(engine *e, uint64_t id)
{
    inbox_end_thinking(e->inbox, id);
}

void engine_clear_cache(engine *e, const uint64_t *scope)
{
    const uint64_t own = scope && !e->share_cache ? *scope : 0;
    if (e->vision_cache) {
        vision_cache_clear(e->vision_cache, scope ? &own : NULL);
    }
    if (e->disk) {
        disk_cache_clear(e->disk, scope ? &own : NULL);
    }
    if (e->cache) {
        prefix_cache_forget(e->cache, scope ? &own : NULL);
        atomic_store(&e->sweep_cache, true);
        inbox_wake(e->inbox);
    }
}

void engine_get_status(engine *e, engine_status *out)
{
    pthread_mutex_lock(&e->status_lock);
    *out = e->status;
    pthread_mutex_unlock(&e->status_lock);
    out->progress_counter = compute_progress_counter(e->compute) + (out->n_steps << 48);
    inbox_count(e->inbox, &out->n_waiting, &out->n_running);
    if (e->vision_cache) {
        const vision_cache_stats s = vision_cache_get_stats(e->vision_cache);
        out->n_vision_hits = s.n_hits;
        out->n_vision_entries = s.n_entries;
        out->vision_cache_bytes = s.bytes;
    }
    if (e->disk) {
        const disk_cache_stats s = disk_cache_get_stats(e->disk);
        out->n_disk_entries = s.n_entries;
        out->disk_bytes = s.bytes;
        out->disk_budget = s.budget;
        out->n_disk_hits = s.n_hits;
        out->n_disk_tokens = s.n_hit_tokens;
        out->n_disk_saves = s.n_saves;
        out->n_disk_errors = s.n_errors;
    }
}

bool engine_measure_limits(const engine *e, engine_limits *best)
{
    compute_limits l = {best->bandwidth_gbs, best->f32_gflops, best->q8_gops};
    const bool done = compute_measure(&l, e->compute, (size_t)e->info.step_bytes);
    *best = (engine_limits){l.bandwidth_gbs, l.f32_gflops, l.q8_gops};
    return done;
}

/* ---- vocabulary services ---- */

const char *engine_token_bytes(const engine *e, int32_t id, size_t *len, bool *special)
{
    return tokenizer_token_bytes(model_tokenizer(e->model), id, len, special);
}

bool engine_is_stop_token(const engine *e, int32_t id)
{
    return model_config_is_stop(model_get_config(e->model), id);
}

err_code engine_tokenize(const engine *e, bytes *out, const char *text, size_t len, bool parse_special,
                         err_detail *detail)
{
    token_ids ids;
    token_ids_init(&ids);
    err_code err = tokenizer_encode(model_tokenizer(e->model), &ids, text, len,
                                    parse_special ? TOKENIZER_SPECIALS : TOKENIZER_PLAIN, detail);
    for (size_t i = 0; i < ids.len && err == ERR_OK; i++) {
        bytes_printf(out, i ? ",%d" : "%d", ids.ids[i]);
    }
    token_ids_deinit(&ids);
    return err;
}
