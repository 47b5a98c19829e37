/* prepare: from a chat to a prompt ready to run, on a prep thread. Media come first, because the
 * number of placeholder tokens depends on each image's patch grid; then template, tokens,
 * placeholders, positions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "engine/constrain.h"
#include "engine/engine_private.h"
#include "engine/prepare_video.h"
#include "engine/prompt.h"
#include "vision/video/image_reader.h"

/* ---- media ---- */

/* How far the reading is: images and frames, the latter from when their number is known. */
typedef struct media_progress {
    const prepare_hooks *hooks;
    int32_t done, total;
} media_progress;

static bool is_cancelled(void *ctx)
{
    const prepare_hooks *hooks = ((const media_progress *)ctx)->hooks;
    return hooks && hooks->cancelled && hooks->cancelled(hooks->ctx);
}

static void report(const media_progress *p)
{
    if (p->hooks && p->hooks->progress) {
        p->hooks->progress(p->hooks->ctx, GEN_PHASE_MEDIA, p->done, p->total);
    }
}

static void on_video_planned(void *ctx, int32_t n_frames)
{
    media_progress *p = ctx;
    p->total += n_frames - 1; /* the video itself was counted as one */
    report(p);
}

static void on_frame_shown(void *ctx)
{
    media_progress *p = ctx;
    p->done++;
    report(p);
}

/* Names the request field in an error of a library-free layer below. */
static err_code at_part(err_code err, const chat_part *part, err_detail *detail)
{
    if (err != ERR_OK && detail && part->param) {
        snprintf(detail->param, sizeof detail->param, "%s", part->param);
    }
    return err;
}

/* An image that is still to be decoded. */
typedef struct image_todo {
    size_t medium; /* index into r->media */
    const chat_part *part;
    image_plan plan;
} image_todo;

/* What is found out about the media of a request before images are decoded. */
typedef struct media_plan {
    media_progress progress;
    size_t pixels; /* of all images */
    image_todo images[LIMIT_IMAGES];
    size_t n_images;
    double ms;    /* spent on media */
    size_t extra; /* bytes reserved until they are decoded */
} media_plan;

/* A request in the making: what its stages hand on. */
typedef struct preparation {
    engine *e;
    gen_request *r;
    const chat_input *in; /* NULL: a raw prompt, which has only the last stages */
    const gen_params *params;
    media_plan media;
    size_t text_memory; /* bytes reserved for the text until it is tokens */
    bytes text;         /* as the template wrote it */
    size_t history_len; /* bytes of it */
    int32_t begins;     /* the token that begins the invitation to answer, if there is one */
    token_ids ids;      /* of the text with the videos' frames */
} preparation;

static image_read_job job_of(preparation *p, const chat_part *part)
{
    const image_limits limits = {.max_pixels = p->e->media.max_image_pixels, .max_side = LIMIT_IMAGE_SIDE};
    image_read_job job = prepare_image_job(&p->e->media, part->data, part->data_bytes, &limits);
    job.cancelled = is_cancelled;
    job.ctx = &p->media.progress;
    return job;
}

/* The grid of an image, from its header; it is decoded once it is known that the prompt fits. */
static err_code plan_image(preparation *p, const chat_part *part, err_detail *detail)
{
    gen_request *r = p->r;
    media_plan *plan = &p->media;
    const image_read_job job = job_of(p, part);
    gen_media *m = &r->media[r->n_media];
    image_todo *todo = &plan->images[plan->n_images];
    *todo = (image_todo){.medium = r->n_media, .part = part};
    err_code err = image_reader_measure(&todo->plan, &job, detail);
    if (err != ERR_OK) {
        return err;
    }
    m->pixels = (size_t)todo->plan.width * (size_t)todo->plan.height;
    if (m->pixels > LIMIT_IMAGE_PIXELS_SUM - plan->pixels) {
        return err_set_param(
            detail, ERR_LIMIT, NULL, "image_too_large",
            "the images of this request hold more than %zu megapixels together; send smaller ones",
            LIMIT_IMAGE_PIXELS_SUM >> 20);
    }
    plan->pixels += m->pixels;
    plan->n_images++;
    const processor_config pc = prepare_processor(p->e, part);
    return processor_image_plan(&m->patches, &pc, todo->plan.height, todo->plan.width, detail);
}

/* Fills hash and key, and looks whether the image or video was encoded before: then m gets what the
 * prompt needs to know of it, and nothing has to be decoded. An image that the request has no
 * pixels left for is not taken. */
static err_code find_features(preparation *p, const chat_part *part, err_detail *detail)
{
    gen_media *m = &p->r->media[p->r->n_media];
    vision_cache *vc = p->params->no_cache ? NULL : p->e->vision_cache;
    size_t *pixels = &p->media.pixels;
    m->is_video = part->kind == CHAT_VIDEO;
    if (m->is_video) {
        prepare_video_hash(m->hash, part);
    } else if (part->hash) {
        memcpy(m->hash, part->hash, sizeof m->hash);
    } else {
        hash_sha256(m->hash, part->data, part->data_bytes);
    }
    if (!m->is_video && (part->pixels.min || part->pixels.max)) { /* it is another image to the model */
        struct {
            uint8_t file[HASH_BYTES];
            int64_t pixels[2];
        } shown = {.pixels = {part->pixels.min, part->pixels.max}};
        memcpy(shown.file, m->hash, sizeof shown.file);
        hash_sha256(m->hash, &shown, sizeof shown);
    }
    const processor_config pc = prepare_processor(p->e, part);
    vision_cache_key(m->key, p->r->scope, m->hash, m->is_video, &pc);
    if (!vc) {
        return ERR_OK;
    }
    const vision_features *f = vision_cache_find(vc, m->key);
    if (!f || f->pixels > LIMIT_IMAGE_PIXELS_SUM - *pixels) {
        vision_cache_release(f);
        return ERR_OK;
    }
    m->patches = (patches){.t = f->t, .h = f->h, .w = f->w, .n_tokens = f->n_rows};
    if (f->timestamps) {
        m->patches.timestamps = malloc((size_t)f->t * sizeof *f->timestamps);
        if (!m->patches.timestamps) {
            vision_cache_release(f);
            return err_set(detail, ERR_NOMEM, "there is not enough memory for the videos of this request");
        }
        memcpy(m->patches.timestamps, f->timestamps, (size_t)f->t * sizeof *f->timestamps);
    }
    m->features = f;
    *pixels += f->pixels;
    return ERR_OK;
}

static size_t media_rows(const gen_request *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_media; i++) {
        n += (size_t)r->media[i].patches.n_tokens;
    }
    return n;
}

static err_code check_context(const engine *e, size_t n_tokens, err_detail *detail)
{
    if (n_tokens < (size_t)e->info.n_ctx) {
        return ERR_OK;
    }
    err_set_param(detail, ERR_CONTEXT, "messages", "context_length_exceeded",
                  "the prompt has %zu tokens; the context holds %d (--ctx-size) and needs room for the "
                  "answer: shorten the conversation",
                  n_tokens, e->info.n_ctx);
    return err_set_numbers(detail, ERR_CONTEXT, (int64_t)n_tokens, e->info.n_ctx);
}

/* A video's grid is known: refuses it before memory is taken if the media alone are more than the
 * context holds. */
static err_code video_fits(void *ctx, const patches *grid, err_detail *detail)
{
    const preparation *p = ctx;
    return check_context(p->e, media_rows(p->r) + (size_t)grid->n_tokens, detail);
}

/* Finds out what the prompt must know of an image or a video, into the next of r->media. A video is
 * read for it. */
static err_code plan_part(preparation *p, const chat_part *part, err_detail *detail)
{
    gen_request *r = p->r;
    gen_media *m = &r->media[r->n_media];
    media_progress *progress = &p->media.progress;
    if (is_cancelled(progress)) {
        return err_set(detail, ERR_CANCELLED, "cancelled while reading media");
    }
    err_code err = find_features(p, part, detail);
    const bool is_new = err == ERR_OK && !m->features;
    if (is_new && m->is_video) {
        const video_hooks hooks = {on_video_planned, on_frame_shown, is_cancelled, progress, video_fits, p};
        err = prepare_video(p->e, r, m, part, &hooks, detail);
    } else if (is_new) {
        err = plan_image(p, part, detail);
    } else {
        on_frame_shown(progress);
    }
    r->n_images += err == ERR_OK && !m->is_video;
    r->n_videos += err == ERR_OK && m->is_video;
    r->n_media += err == ERR_OK;
    return at_part(err, part, detail);
}

/* Makes r->media of all images and videos of the chat; images are measured only. */
static err_code plan_media(preparation *p, err_detail *detail)
{
    const engine *e = p->e;
    gen_request *r = p->r;
    const chat_input *in = p->in;
    media_plan *plan = &p->media;
    size_t total = 0;
    for (size_t i = 0; i < in->n_messages; i++) {
        for (size_t k = 0; k < in->messages[i].n_parts; k++) {
            total += in->messages[i].parts[k].kind != CHAT_TEXT;
        }
    }
    if (total == 0) {
        return ERR_OK;
    }
    if (!e->vision) {
        return err_set_param(detail, ERR_UNSUPPORTED, "messages", "unsupported_modality",
                             "%s reads text only; load a model with a vision tower to send images",
                             e->info.model_name);
    }
    if (total > (size_t)e->info.max_images) {
        return err_set_param(detail, ERR_LIMIT, "messages", "too_many_images",
                             "%zu images are in this conversation; at most %d are allowed", total,
                             e->info.max_images);
    }
    r->media = calloc(total, sizeof *r->media);
    if (!r->media) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for the images of this request");
    }
    const double start = clock_ms();
    plan->progress.total = (int32_t)total;
    report(&plan->progress);
    for (size_t i = 0; i < in->n_messages; i++) {
        for (size_t k = 0; k < in->messages[i].n_parts; k++) {
            const chat_part *part = &in->messages[i].parts[k];
            err_code err = part->kind == CHAT_TEXT ? ERR_OK : plan_part(p, part, detail);
            if (err != ERR_OK) {
                return err;
            }
        }
    }
    plan->ms = clock_ms() - start;
    return ERR_OK;
}

/* ---- memory ---- */

/* Bytes that a byte of text takes, at most, on its way through the template and the tokenizer. */
enum { TEXT_BYTES = 20 };

/* Reserves that for all text of the chat. */
static err_code reserve_text(preparation *p, err_detail *detail)
{
    const chat_input *in = p->in;
    const ledger_patience patience = {is_cancelled, &p->media.progress};
    size_t text = 0;
    for (size_t i = 0; i < in->n_messages; i++) {
        for (size_t k = 0; k < in->messages[i].n_parts; k++) {
            text += in->messages[i].parts[k].kind == CHAT_TEXT ? in->messages[i].parts[k].text_len : 0;
        }
    }
    ledger_hold *memory = &p->r->memory;
    const size_t held = memory->bytes;
    err_code err = ledger_take(memory, "the text of this request", TEXT_BYTES * text, &patience, detail);
    p->text_memory = memory->bytes - held;
    return err;
}

/* Bytes that decoding one of the images takes at most, beside its patches. */
static size_t decoding_bytes(const gen_request *r, const media_plan *plan)
{
    size_t most = 0;
    for (size_t i = 0; i < plan->n_images; i++) {
        /* resized, and on its way from another process */
        const size_t resized = 2 * patches_bytes(&r->media[plan->images[i].medium].patches);
        const size_t n = plan->images[i].plan.bytes + resized;
        most = n > most ? n : most;
    }
    return most;
}

/* The length of the prompt whose placeholders, one for each image or frame, become as many as there
 * are rows. */
static size_t expanded_len(const engine *e, const gen_request *r, const token_ids *ids)
{
    const model_config *cfg = model_get_config(e->model);
    size_t n = ids->len + media_rows(r);
    for (size_t i = 0; i < ids->len && r->n_media; i++) {
        n -= ids->ids[i] == cfg->image_token_id || ids->ids[i] == cfg->video_token_id;
    }
    return n;
}

/* Reserves what the request needs until it is answered, and what decoding one image after another
 * takes, in one step: nobody waits for memory with half of it in hand. The context is checked
 * before, and this before anything is decoded. */
static err_code reserve_memory(preparation *p, err_detail *detail)
{
    const engine *e = p->e;
    gen_request *r = p->r;
    media_plan *plan = &p->media;
    const size_t n_tokens = expanded_len(e, r, &p->ids);
    err_code err = check_context(e, n_tokens, detail);
    if (err != ERR_OK) {
        return err;
    }
    ledger_give(&r->memory, p->text_memory); /* what is left of it is as small as the context */
    const size_t width = model_config_feature_width(model_get_config(e->model)), n_rows = media_rows(r);
    const ledger_patience patience = {is_cancelled, &plan->progress};
    size_t frame = 0;
    size_t n = n_tokens * (sizeof *r->positions + 2 * sizeof *r->prompt.ids + sizeof *r->boundaries) +
               n_rows * (width * sizeof *r->embeds + sizeof *r->embed_rows);
    for (size_t i = 0; i < plan->n_images; i++) {
        n += patches_bytes(&r->media[plan->images[i].medium].patches);
    }
    for (size_t i = 0; i < r->n_media; i++) {
        const patches *grid = &r->media[i].patches;
        const size_t area = r->media[i].features ? 0 : (size_t)grid->h * (size_t)grid->w;
        frame = area > frame ? area : frame;
    }
    r->scratch_bytes = frame ? vit_scratch_bytes(e->vision, frame) : 0;
    plan->extra = decoding_bytes(r, plan);
    return ledger_take(&r->memory, n_rows ? "this request with its images and videos" : "this request",
                       n + r->scratch_bytes + plan->extra, &patience, detail);
}

/* Decodes the images, one after another. Their memory is reserved. */
static err_code decode_images(preparation *p, err_detail *detail)
{
    const engine *e = p->e;
    gen_request *r = p->r;
    media_plan *plan = &p->media;
    const double start = clock_ms();
    err_code err = ERR_OK;
    for (size_t i = 0; i < plan->n_images && err == ERR_OK; i++) {
        const image_todo *todo = &plan->images[i];
        patches *grid = &r->media[todo->medium].patches;
        const image_read_job job = job_of(p, todo->part);
        image img = {0};
        if (is_cancelled(&plan->progress)) {
            return err_set(detail, ERR_CANCELLED, "cancelled while reading media");
        }
        err = image_reader_read(&img, &job, &todo->plan, grid->w * e->processor.patch_size,
                                grid->h * e->processor.patch_size, detail);
        if (err == ERR_OK) {
            err = patches_alloc(grid, detail);
        }
        if (err == ERR_OK) {
            err = processor_image_fill(grid, &e->processor, &img, detail);
        }
        image_deinit(&img);
        on_frame_shown(&plan->progress);
        err = at_part(err, todo->part, detail);
    }
    ledger_give(&r->memory, plan->extra);
    r->media_ms = r->n_media ? plan->ms + clock_ms() - start : 0;
    return err;
}

/* ---- placeholders ---- */

/* The media of a prompt, met one after the other. */
typedef struct media_walk {
    size_t next;   /* of r->media */
    int32_t frame; /* temporal patches of that video met so far */
} media_walk;

/* How many rows stand for the placeholder `id`, the next one of the prompt; -1 if no such medium
 * comes next. whole: one placeholder stands for all of a video. */
static int32_t rows_of_placeholder(gen_request *r, media_walk *w, bool is_video, bool whole)
{
    gen_media *m = &r->media[w->next];
    if (w->next == r->n_media || m->is_video != is_video) {
        return -1;
    }
    if (w->frame == 0) {
        m->first_row = r->n_embed_rows;
        m->n_rows = m->patches.n_tokens;
        m->n_units = m->patches.t;
    }
    w->frame += whole ? m->n_units : 1;
    const int32_t n = whole ? m->n_rows : m->n_rows / m->n_units;
    if (w->frame == m->n_units) {
        w->next++;
        w->frame = 0;
    }
    return n;
}

/* One placeholder id per image or frame (or whole video) in `ids` becomes as many as it has embedding rows;
 * r->prompt receives the result and r->embed_rows the indices of the placeholders. */
static err_code expand_placeholders(preparation *p, err_detail *detail)
{
    gen_request *r = p->r;
    const token_ids *ids = &p->ids;
    const model_config *cfg = model_get_config(p->e->model);
    const size_t n_rows = media_rows(r);
    media_walk walk = {0};
    if (n_rows) {
        r->embed_rows = malloc(n_rows * sizeof *r->embed_rows);
        r->embeds = malloc(n_rows * model_config_feature_width(cfg) * sizeof *r->embeds);
        if (!r->embed_rows || !r->embeds) {
            return err_set(detail, ERR_NOMEM, "there is not enough memory for the images of this request");
        }
    }
    for (size_t i = 0; i < ids->len; i++) {
        const bool is_video = ids->ids[i] == cfg->video_token_id;
        if (r->n_media == 0 || (!is_video && ids->ids[i] != cfg->image_token_id)) {
            err_code err = token_ids_push(&r->prompt, ids->ids[i]);
            if (err != ERR_OK) {
                return err_set(detail, err, "there is not enough memory for this prompt");
            }
            continue;
        }
        const int32_t n = rows_of_placeholder(r, &walk, is_video, cfg->whole_videos);
        if (n < 0) {
            walk.next = 0;
            break;
        }
        for (int32_t k = 0; k < n; k++) {
            r->embed_rows[r->n_embed_rows++] = (int32_t)r->prompt.len;
            err_code err = token_ids_push(&r->prompt, ids->ids[i]);
            if (err != ERR_OK) {
                return err_set(detail, err, "there is not enough memory for this prompt");
            }
        }
    }
    if (walk.next != r->n_media || (size_t)r->n_embed_rows != n_rows) {
        return err_set(detail, ERR_INVALID,
                       "the chat template does not place the %zu images and videos of this conversation; "
                       "this model's template cannot show them all",
                       r->n_media);
    }
    return ERR_OK;
}

static err_code assign_positions(preparation *p, err_detail *detail)
{
    gen_request *r = p->r;
    media_grid images[LIMIT_IMAGES], videos[LIMIT_IMAGES];
    size_t n_images = 0, n_videos = 0;
    for (size_t i = 0; i < r->n_media; i++) {
        const patches *shown = &r->media[i].patches;
        media_grid *grid = r->media[i].is_video ? &videos[n_videos++] : &images[n_images++];
        const bool moves = shown->t > 1 && shown->timestamps;
        const double length = moves ? shown->timestamps[shown->t - 1] - shown->timestamps[0] : 0;
        *grid = (media_grid){shown->t, shown->h, shown->w, moves ? length / (shown->t - 1) : 0};
    }
    r->positions = malloc((r->prompt.len + 1) * sizeof *r->positions);
    if (!r->positions) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for this prompt");
    }
    return positions_assign(r->positions, &r->rope_delta, model_get_config(p->e->model), r->prompt.ids,
                            r->prompt.len, images, n_images, videos, n_videos, p->e->processor.merge_size,
                            detail);
}

/* ---- boundaries ---- */

enum { BOUNDARY_GAP = 1024, BOUNDARY_LAST = 3 };

/* The invitation to answer is what comes behind `history_len` bytes of the text. */
static err_code find_invitation(preparation *p, err_detail *detail)
{
    token_ids invitation;
    if (p->history_len == 0 || p->history_len >= p->text.len) {
        return ERR_OK;
    }
    token_ids_init(&invitation);
    const err_code err =
        tokenizer_encode(model_tokenizer(p->e->model), &invitation, bytes_str(&p->text) + p->history_len,
                         p->text.len - p->history_len, TOKENIZER_SPECIALS, detail);
    if (err == ERR_OK && invitation.len > 0 && invitation.len < p->r->prompt.len) {
        p->r->n_invitation = (int32_t)invitation.len;
        p->begins = invitation.ids[0];
    }
    token_ids_deinit(&invitation);
    return err;
}

/* Every message of a chat begins with a boundary. The prefix cache keeps states (one that may not use
 * it is computed alike, so that its answer is the same) at the end of the system prompt, of the last
 * messages, and here and there in a long history. Messages are told by the token that begins the
 * invitation to answer, which also begins every message. Where chunks end at every boundary, there
 * are no others. */
static void find_boundaries(const preparation *p)
{
    gen_request *r = p->r;
    const int32_t end = (int32_t)r->prompt.len - r->n_invitation;
    int32_t n_begins = 0, seen = 0, last = 0;
    for (int32_t i = 1; i <= end; i++) {
        n_begins += r->prompt.ids[i] == p->begins;
    }
    for (int32_t i = 1; i <= end; i++) {
        if (r->prompt.ids[i] != p->begins) {
            continue;
        }
        seen++;
        const bool keeps = seen == 1 || seen > n_begins - BOUNDARY_LAST || i - last >= BOUNDARY_GAP;
        if (keeps || nn_many_is_exact(p->e->compute)) {
            r->boundaries[r->n_boundaries++] = (prompt_boundary){i, keeps};
        }
        last = keeps ? i : last;
    }
}

static err_code choose_boundaries(preparation *p, err_detail *detail)
{
    gen_request *r = p->r;
    r->boundaries = malloc((r->prompt.len + 1) * sizeof *r->boundaries);
    if (!r->boundaries) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for this prompt");
    }
    if (p->history_len > 0 && p->history_len < p->text.len) {
        if (r->n_invitation > 0) {
            find_boundaries(p);
        }
        return ERR_OK;
    }
    /* A raw prompt may come again as it is, or go on: what is in front of its last token is kept. Where that
     * would cut a block of the delta rule, which one that goes on has whole, its whole blocks are kept. */
    int32_t len = (int32_t)r->prompt.len - 1;
    r->has_whole_blocks =
        model_get_config(p->e->model)->n_recurrent_layers > 0 && nn_many_is_exact(p->e->compute);
    if (r->has_whole_blocks) {
        len -= len % NN_DELTA_BLOCK;
    }
    if (len > 0) {
        r->boundaries[r->n_boundaries++] = (prompt_boundary){len, true};
    }
    return ERR_OK;
}

/* ---- stages ---- */

static err_code check_shares(const gen_params *p, err_detail *detail)
{
    if (!(p->spec_keep > 0.0f && p->spec_keep <= 1.0f)) {
        return err_set_param(
            detail, ERR_INVALID, "specprefill_keep_pct", "invalid_value",
            "specprefill_keep_pct is the share of the prompt that is read: a number above 0, at "
            "most 1");
    }
    if (!(p->spec_backbone >= 0.0f && p->spec_backbone <= 1.0f)) {
        return err_set_param(
            detail, ERR_INVALID, "specprefill_backbone_pct", "invalid_value",
            "specprefill_backbone_pct is the share of the prompt that is spread evenly: a number "
            "from 0 to 1");
    }
    return ERR_OK;
}

/* Checks the context and completes the parameters. */
static err_code finish_request(preparation *p, err_detail *detail)
{
    const engine *e = p->e;
    gen_request *r = p->r;
    const gen_params *params = p->params;
    if (r->prompt.len == 0) {
        return err_set(detail, ERR_INVALID, "the prompt is empty");
    }
    err_code err = check_context(e, r->prompt.len, detail);
    if (err != ERR_OK) {
        return err;
    }
    gen_bias *biases = NULL;
    if (params->n_biases) {
        biases = malloc(params->n_biases * sizeof *biases);
        if (!biases) {
            return err_set(detail, ERR_NOMEM, "there is not enough memory for this request");
        }
        memcpy(biases, params->biases, params->n_biases * sizeof *biases);
    }
    r->params = *params;
    r->params.biases = biases;
    gen_params_fill(&r->params, &e->info.defaults);
    if (p->in && prompt_wants_no_thinking(e->template, p->in)) {
        r->params.think_tokens = 0;
    }
    err = check_shares(&r->params, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (r->params.scores_prompt) {
        r->params.no_cache = true;
        r->params.spec_prefill = 0;
    }
    int32_t room = e->info.n_ctx - (int32_t)r->prompt.len;
    r->max_tokens = r->params.max_tokens < room ? r->params.max_tokens : room;
    return ERR_OK;
}

static err_code build_form(preparation *p, err_detail *detail)
{
    const prepare_hooks *hooks = p->media.progress.hooks;
    work_count work = {.cancelled = hooks ? hooks->cancelled : NULL, .ctx = hooks ? hooks->ctx : NULL};
    const ledger_patience patience = {is_cancelled, &p->media.progress};
    return constrain_request(p->e, p->r, p->in, &work, &patience, detail);
}

static err_code render_prompt(preparation *p, err_detail *detail)
{
    return prompt_render(&p->text, &p->history_len, model_tokenizer(p->e->model), p->e->template,
                         &p->e->prompts, p->in, detail);
}

/* The text, with what stands around images and frames, as tokens; and what can be told of the answer's reasoning. */
static err_code encode_prompt(preparation *p, err_detail *detail)
{
    gen_request *r = p->r;
    const tokenizer *tok = model_tokenizer(p->e->model);
    const think_form *form = p->e->prompts.think;
    const bytes *prompt = &p->text;
    bytes placed;
    bytes_init(&placed, LIMIT_RENDERED_BYTES);
    if (r->n_videos || (r->n_media && model_get_config(p->e->model)->bare_placeholders)) {
        prompt_place_media(&placed, p->e, bytes_str(prompt), prompt->len, r->media, r->n_media);
        prompt = &placed;
    }
    err_code err = placed.failed ? err_set(detail, ERR_NOMEM, "there is not enough memory for this prompt")
                                 : tokenizer_encode(tok, &p->ids, bytes_str(prompt), prompt->len,
                                                    TOKENIZER_SPECIALS, detail);
    bytes_deinit(&placed);
    r->continues = p->in->continues;
    r->starts_in_thinking = r->continues ? prompt_continues_thinking(p->in)
                                         : prompt_starts_in_thinking(form, bytes_str(&p->text), p->text.len);
    r->may_think = !r->continues && tokenizer_added_id(tok, form->tokens[0]) >= 0;
    r->think = form;
    if (err == ERR_OK && (r->starts_in_thinking || r->may_think)) {
        bytes closing = bytes_empty(LIMIT_RENDERED_BYTES);
        prompt_write_closing(&closing, form, p->in, r->grammar != NULL);
        err = tokenizer_encode(tok, &r->think_close, bytes_str(&closing), closing.len, TOKENIZER_SPECIALS,
                               detail);
        bytes_deinit(&closing);
    }
    return err;
}

/* The other answers to the prompt, and memory for what they begin with. The last stage. */
static err_code share_prompt(preparation *p, err_detail *detail)
{
    gen_request *r = p->r;
    const model_config *cfg = model_get_config(p->e->model);
    const int32_t n = r->params.n_choices;
    if (n <= 1) {
        return ERR_OK;
    }
    const ledger_patience patience = {is_cancelled, &p->media.progress};
    const size_t state = seq_state_own_bytes(cfg, p->e->cache_type);
    const size_t rows = ((size_t)cfg->vocab_size + (size_t)cfg->hidden_size) * sizeof(float);
    const err_code err = ledger_take(&r->memory, "several answers to this request",
                                     state + rows + (size_t)n * sizeof *r, &patience, detail);
    return err == ERR_OK && !gen_request_share(r, n - 1)
               ? err_set(detail, ERR_NOMEM, "there is not enough memory for several answers")
               : err;
}

typedef err_code (*stage)(preparation *p, err_detail *detail);

/* Runs one stage after the other, each of which takes a time in proportion to the text or the media,
 * for as long as the request is wanted. *out: the request, or NULL after an error. */
static err_code run_stages(gen_request **out, preparation *p, const stage *stages, size_t n,
                           err_detail *detail)
{
    err_code err = ERR_OK;
    for (size_t i = 0; i < n && err == ERR_OK; i++) {
        err = stages[i](p, detail);
        if (err == ERR_OK && is_cancelled(&p->media.progress)) {
            err = err_set(detail, ERR_CANCELLED, "cancelled while the prompt was made");
        }
    }
    if (err != ERR_OK) {
        gen_request_free(p->r);
    }
    *out = err == ERR_OK ? p->r : NULL;
    return err;
}

err_code engine_prepare(engine *e, gen_request **out, const chat_input *in, const prepare_hooks *hooks,
                        err_detail *detail)
{
    static const stage STAGES[] = {build_form,     plan_media,       reserve_text,        render_prompt,
                                   encode_prompt,  reserve_memory,   expand_placeholders, decode_images,
                                   finish_request, assign_positions, find_invitation,     choose_boundaries,
                                   share_prompt};
    *out = NULL;
    if (!e->template) {
        return err_set(detail, ERR_UNSUPPORTED,
                       "%s has no chat template; give one with --chat-template-file or use /v1/completions",
                       e->info.model_name);
    }
    preparation p = {.e = e,
                     .r = gen_request_create(),
                     .in = in,
                     .params = &in->params,
                     .media = {.progress = {.hooks = hooks}}};
    if (!p.r) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for this request");
    }
    token_ids_init(&p.ids);
    bytes_init(&p.text, LIMIT_RENDERED_BYTES);
    p.r->memory.ledger = e->memory;
    p.r->scope = e->share_cache ? 0 : in->scope;
    p.r->route = chat_has_media(in) ? GEN_ROUTE_MEDIA : GEN_ROUTE_TEXT;
    err_code err = run_stages(out, &p, STAGES, ARRAY_LEN(STAGES), detail);
    bytes_deinit(&p.text);
    token_ids_deinit(&p.ids);
    return err;
}

/* Completes a request whose prompt stands, unless making it failed with err; frees it then. */
static err_code finish_raw(engine *e, gen_request **out, gen_request *r, err_code err, uint64_t scope,
                           const gen_params *params, err_detail *detail)
{
    static const stage STAGES[] = {finish_request, assign_positions, choose_boundaries, share_prompt};
    preparation p = {.e = e, .r = r, .params = params};
    if (err != ERR_OK) {
        gen_request_free(r);
        return err;
    }
    r->memory.ledger = e->memory;
    r->scope = e->share_cache ? 0 : scope;
    return run_stages(out, &p, STAGES, ARRAY_LEN(STAGES), detail);
}

err_code engine_prepare_text(engine *e, gen_request **out, const char *prompt, size_t len, bool parse_special,
                             uint64_t scope, const gen_params *params, err_detail *detail)
{
    *out = NULL;
    gen_request *r = gen_request_create();
    if (!r) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for this request");
    }
    err_code err = tokenizer_encode(model_tokenizer(e->model), &r->prompt, prompt, len,
                                    parse_special ? TOKENIZER_SPECIALS : TOKENIZER_PLAIN, detail);
    return finish_raw(e, out, r, err, scope, params, detail);
}

err_code engine_prepare_tokens(engine *e, gen_request **out, const int32_t *ids, size_t n, uint64_t scope,
                               const gen_params *params, err_detail *detail)
{
    *out = NULL;
    gen_request *r = gen_request_create();
    if (!r) {
        return err_set(detail, ERR_NOMEM, "there is not enough memory for this request");
    }
    err_code err = ERR_OK;
    for (size_t i = 0; i < n && err == ERR_OK; i++) {
        if (ids[i] < 0 || ids[i] >= e->info.n_vocab) {
            err = err_set_param(detail, ERR_INVALID, "prompt", "invalid_value",
                                "prompt[%zu] must be a token from 0 to %d", i, e->info.n_vocab - 1);
        } else {
            err = token_ids_push(&r->prompt, ids[i]);
        }
    }
    return finish_raw(e, out, r, err, scope, params, detail);
}

err_code engine_render(const engine *e, bytes *out, const chat_input *in, err_detail *detail)
{
    if (!e->template) {
        return err_set(detail, ERR_UNSUPPORTED, "%s has no chat template; give one with --chat-template-file",
                       e->info.model_name);
    }
    return prompt_render(out, NULL, model_tokenizer(e->model), e->template, &e->prompts, in, detail);
}
