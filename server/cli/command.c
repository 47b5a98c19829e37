#include "server/cli/command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/catalog.h"
#include "engine/think.h"
#include "server/cli/hub_model.h"
#include "server/load_bar.h"

const char *command_default_model(void)
{
    static const char *const PLACES[] = {"/../assets/seedling", "/../../assets/seedling",
                                         "/../share/parley/seedling", "/assets/seedling"};
    static char path[4096];
    char program[2048];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0) {
        return NULL;
    }
    program[n] = '\0';
    *strrchr(program, '/') = '\0'; /* the path is absolute */
    for (size_t i = 0; i < ARRAY_LEN(PLACES); i++) {
        snprintf(path, sizeof path, "%s%s", program, PLACES[i]);
        if (access(path, R_OK) == 0) {
            return path;
        }
    }
    return NULL;
}

/* The path of a model below --models-dir; *path stays NULL if there is none of this name. */
static err_code find_in_folder(const options *o, const char *name, const char **path, err_detail *detail)
{
    catalog *c = NULL;
    err_code err = catalog_open(&c, o->models_dir, detail);
    if (err != ERR_OK) {
        return err;
    }
    const catalog_model *found = name ? catalog_find(c, name) : NULL;
    for (size_t i = 0; !name && !found && i < catalog_count(c); i++) {
        found = catalog_at(c, i)->error == ERR_OK ? catalog_at(c, i) : NULL;
    }
    if (found) {
        *path = arena_strdup(o->memory, found->path, strlen(found->path));
        err = *path ? ERR_OK : err_set(detail, ERR_NOMEM, "there is not enough memory");
    } else if (name && access(name, F_OK) != 0) {
        err = catalog_unknown(c, name, detail);
    }
    catalog_close(c);
    return err;
}

static err_code find_of_hub(const options *o, const char **model, const char **mmproj, err_detail *detail)
{
    hub_found found;
    err_code err = hub_model_find(&found, *model, o->pull, detail);
    if (err) {
        return err;
    }
    const bool sees = mmproj && found.mmproj[0];
    *model = arena_strdup(o->memory, found.path, strlen(found.path));
    if (sees) {
        *mmproj = arena_strdup(o->memory, found.mmproj, strlen(found.mmproj));
    }
    return *model && !(sees && !*mmproj) ? ERR_OK : err_set(detail, ERR_NOMEM, "there is not enough memory");
}

err_code command_find_model(const options *o, const char **model, const char **mmproj, err_detail *detail)
{
    const char *path = NULL;
    hub_name name;
    err_code err = o->models_dir ? find_in_folder(o, *model, &path, detail) : ERR_OK;
    if (path) {
        *model = path;
        return ERR_OK;
    }
    if (!*model || access(*model, F_OK) == 0 || !hub_name_parse(&name, *model)) {
        return err;
    }
    if (!err) {
        return find_of_hub(o, model, mmproj, detail);
    }
    if (err != ERR_NOT_FOUND) {
        return err;
    }
    err_detail other = {0};
    const err_code found = find_of_hub(o, model, mmproj, &other);
    if (found == ERR_NOT_FOUND && !o->pull) {
        return err; /* in the folder there may be one with nearly this name */
    }
    if (found) {
        *detail = other;
    }
    return found;
}

err_code command_open_engine(engine **out, const engine_options *eo, bool is_quiet, err_detail *detail)
{
    load_bar bar = {0};
    engine_options watched = *eo;
    if (!is_quiet) {
        load_bar_begin(&bar);
    }
    watched.on_load = load_bar_on_load;
    watched.on_load_ctx = &bar;
    const err_code err = engine_open(out, &watched, detail);
    load_bar_end(&bar);
    return err;
}

void command_on_event(void *ctx, gen_event *ev)
{
    if (ev->type != GEN_DONE || !mailbox_push(ctx, ev)) {
        gen_event_free(ev);
    }
}

void command_drop_event(void *ev)
{
    gen_event_free(ev);
}

err_code command_submit(engine *e, gen_request *r, uint64_t id, err_code err, err_detail *detail)
{
    err = err == ERR_OK ? engine_submit(e, r, id, detail) : err;
    if (err != ERR_OK) {
        gen_request_free(r);
    }
    return err;
}

err_code command_wait(mailbox *events, gen_timings *t, err_detail *detail)
{
    void *message = NULL;
    (void)mailbox_pop(events, &message); /* nobody closes it: there will be one */
    gen_event *done = message;
    *t = done->timings;
    const err_code err =
        done->finish == GEN_FINISH_ERROR ? err_set(detail, done->error, "%s", done->message) : ERR_OK;
    gen_event_free(done);
    return err;
}

err_code command_print(const bytes *text, err_detail *detail)
{
    if (text->failed) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for the output");
    }
    fwrite(bytes_str(text), 1, text->len, stdout);
    return ERR_OK;
}

int command_fail(err_code err, const err_detail *detail)
{
    fprintf(stderr, "parley: %s\n", detail->text);
    switch (err) {
    case ERR_NOMEM:
        return EXIT_MEMORY;
    case ERR_NOT_FOUND:
    case ERR_CORRUPT:
    case ERR_UNSUPPORTED:
        return EXIT_MODEL;
    case ERR_INVALID:
        return OPTIONS_EXIT_USAGE;
    default:
        return 1;
    }
}

bool command_formats(const options *o, int *layer_bits, int *head_bits)
{
    *layer_bits = *head_bits = 0;
    bool is_known = engine_parse_quantize(o->quantize, layer_bits);
    *head_bits = *layer_bits ? 8 : 0; /* half of a small model is its head, and it feels 4 bits most */
    if (o->quantize_head) {
        is_known = engine_parse_quantize(o->quantize_head, head_bits) && is_known;
    }
    return is_known;
}

/* Behind the bits of layers. */
static bool choose_vision_bits(engine_options *out, const options *o)
{
    out->vision_bits = out->layer_bits && !out->exact ? 8 : 0;
    return !o->quantize_vision || engine_parse_quantize(o->quantize_vision, &out->vision_bits);
}

bool command_engine_options(engine_options *out, const options *o)
{
    const bool finds_reasoning = !o->reasoning_parser || strcmp(o->reasoning_parser, "auto") == 0;
    if (!finds_reasoning && !think_form_find(o->reasoning_parser)) {
        fprintf(stderr, "parley: --reasoning-parser %s is unknown; it may be auto, %s\n", o->reasoning_parser,
                think_form_names());
        return false;
    }
    const bool caches = o->command == COMMAND_SERVE && strcmp(o->cache_scope, "none") != 0;
    *out = (engine_options){
        .model_dir = o->model,
        .mmproj = o->mmproj,
        .template_file = o->chat_template_file,
        .reasoning_form = finds_reasoning ? NULL : o->reasoning_parser,
        .published_history = strcmp(o->template_history, "published") == 0,
        .hoist_system = strcmp(o->late_system, "hoist") == 0,
        .n_ctx = (int32_t)o->ctx_size,
        .n_parallel = o->command == COMMAND_SERVE ? (int32_t)o->parallel : 1,
        .n_queue = (int32_t)o->queue,
        .prefill_chunk = (int32_t)o->batch_size,
        .cache_type = o->cache_type,
        .cache_mib = caches && o->prefix_cache ? o->cache_ram : 0,
        .cache_disk = o->command == COMMAND_SERVE && o->prefix_cache ? o->cache_disk : NULL,
        .cache_disk_mib = o->cache_disk_mib,
        .vision_cache_mib = caches ? o->vision_cache : 0,
        .mem_limit_mib = o->mem_limit,
        .share_cache = caches && strcmp(o->cache_scope, "all") == 0,
        .no_draft = !o->mtp,
        .sparse = {.draft_dir = o->draft_model,
                   .on = o->spec_prefill,
                   .threshold = (int32_t)o->spec_prefill_threshold,
                   .most = (int32_t)o->spec_prefill_max,
                   .keep = (float)o->spec_prefill_keep,
                   .backbone = (float)o->spec_prefill_backbone},
        .prompt_lookup = (int32_t)o->prompt_lookup,
        .n_threads = (size_t)o->threads,
        .spread = strcmp(o->numa, "spread") == 0,
        .huge_pages = o->huge_pages,
        .lock_memory = o->mlock,
        .cpu_mask = ~0u,
        .video_program = "/proc/self/exe",
        .max_images = (int32_t)o->max_images,
        .max_image_pixels = o->max_image_pixels,
        .videos = {.max_bytes = o->max_video_mib << 20,
                   .max_pixels = o->max_video_pixels,
                   .max_frames = (int32_t)o->max_video_frames,
                   .max_duration_s = (double)o->max_video_duration,
                   .max_time_s = (double)o->max_video_time,
                   .max_memory = o->media_mem << 20},
        .video_outer_pair = o->video_outer_pair,
        .default_max_tokens = (int32_t)o->n_predict,
    };
    gen_params_init(&out->defaults);
    out->defaults.temperature = (float)o->temperature;
    out->defaults.top_k = (int32_t)o->top_k;
    out->defaults.top_p = (float)o->top_p;
    out->defaults.min_p = (float)o->min_p;
    out->defaults.repetition_penalty = (float)o->repeat_penalty;
    out->defaults.presence_penalty = (float)o->presence_penalty;
    out->defaults.frequency_penalty = (float)o->frequency_penalty;
    out->defaults.has_seed = o->has_seed;
    out->defaults.seed = (uint64_t)o->seed;
    out->defaults.think_tokens = (int32_t)o->reasoning_budget;
    out->exact = strcmp(o->compute, "exact") == 0;
    return engine_parse_cpu(o->cpu, &out->cpu_mask) &&
           command_formats(o, &out->layer_bits, &out->head_bits) && choose_vision_bits(out, o);
}
