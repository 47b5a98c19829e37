/* check_greedy: asks a model recorded questions and compares its greedy tokens with the recorded
 * ones.
 *
 *     build/check_greedy MODEL_DIR SAMPLES_JSON [EVERY]
 *
 * SAMPLES_JSON is a list of objects: "prompt" (rendered, one placeholder an image or video frame)
 * and/or "prompt_ids"; "greedy_ids", the tokens that follow; for media "files" beside SAMPLES_JSON
 * and "kind" image or video. Where both prompt and prompt_ids are given, the tokenizer must agree
 * too. EVERY: of so many samples one is asked, the first among them. A sample that cannot be asked (media
 * without a vision tower) is skipped. The last line
 * counts; exit 0 only if every sample that was asked agrees.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "compute/nn.h"
#include "model/decoder.h"
#include "model/model.h"
#include "vision/video/video.h"
#include "vision/image/image.h"
#include "vision/processor.h"
#include "vision/vit.h"

#define CHECK_TOOL_NAME "check_greedy"
#include "tools/check_tool.h"

enum { MAX_MEDIA = 16, MAX_FRAMES = 768, MAX_ANSWER = 1024, MAX_PROMPT = 32768 };

typedef struct context {
    model *m;
    const model_config *cfg;
    compute *c;
    vit *encoder; /* NULL without vision tensors */
    processor_config pc;
    char samples_dir[4096];
} context;

/* One question, ready to be asked. */
typedef struct question {
    token_ids ids;
    patches media[MAX_MEDIA];
    size_t n_media;
    bool is_video;
} question;

/* Keeps a copy of a frame: video_read hands each out for the time of the call only. */
static err_code keep_frame(void *ctx, int32_t i, const image *frame, err_detail *detail)
{
    image *frames = ctx;
    size_t n = (size_t)frame->width * (size_t)frame->height * 3;
    (void)detail;
    frames[i] = *frame;
    frames[i].rgb = must(malloc(n));
    memcpy(frames[i].rgb, frame->rgb, n);
    return ERR_OK;
}

/* The sampled frames of a video as patches. */
static void load_video(const context *cx, patches *out, const char *path)
{
    err_detail d = {0};
    file_map map;
    video *f = NULL;
    video_limits limits = video_limits_default();
    int32_t n = 0, chosen[MAX_FRAMES];
    double times[MAX_FRAMES];
    image *frames = must(calloc(MAX_FRAMES, sizeof *frames));
    require(file_map_open(&map, path, &d), &d);
    require(video_open(&f, &(video_source){.data = map.data, .bytes = map.bytes}, &limits, &d), &d);
    require(video_plan(video_get_info(f), &cx->pc, &(video_request){0}, chosen, times, MAX_FRAMES, &n, &d),
            &d);
    require(video_read(f, chosen, n, keep_frame, frames, &d), &d);
    require(processor_video(out, &cx->pc, frames, n, times, &d), &d);
    for (int32_t i = 0; i < n; i++) {
        free(frames[i].rgb);
    }
    free(frames);
    video_close(f);
    file_map_close(&map);
}

/* Reads the sample's media; NULL, or why it cannot be asked. */
static const char *load_media(const context *cx, const json *sample, question *q)
{
    char path[8192];
    err_detail d = {0};
    const json *files = json_get(sample, "files");
    q->is_video = strcmp(json_str(json_get(sample, "kind"), ""), "video") == 0;
    for (const json *f = json_child(files); f; f = json_next(f)) {
        image img;
        if (!cx->encoder) {
            return "the model has no vision tower";
        }
        if (q->n_media == MAX_MEDIA) {
            return "it has too many files";
        }
        snprintf(path, sizeof path, "%s/%s", cx->samples_dir, json_str(f, ""));
        if (q->is_video) {
            load_video(cx, &q->media[q->n_media], path);
        } else {
            load_image(&img, path);
            require(processor_image(&q->media[q->n_media], &cx->pc, &img, &d), &d);
            image_deinit(&img);
        }
        q->n_media++;
    }
    return NULL;
}

/* prompt with the i-th placeholder repeated as often as the i-th image or frame needs. */
static void expand(const context *cx, const question *q, bytes *out, const char *prompt)
{
    size_t n_pad = 0, file = 0;
    int32_t frame = 0;
    int32_t pad_id = q->is_video ? cx->cfg->video_token_id : cx->cfg->image_token_id;
    const char *pad = q->n_media ? tokenizer_token_bytes(model_tokenizer(cx->m), pad_id, &n_pad, NULL) : NULL;
    while (*prompt) {
        if (pad && file < q->n_media && strncmp(prompt, pad, n_pad) == 0) {
            const patches *p = &q->media[file];
            for (int32_t i = 0; i < p->n_tokens / p->t; i++) {
                bytes_append(out, pad, n_pad);
            }
            if (++frame == p->t) {
                frame = 0;
                file++;
            }
            prompt += n_pad;
        } else {
            bytes_append_char(out, *prompt++);
        }
    }
}

/* Fills q->ids; NULL, or what disagrees with the recorded prompt. */
static const char *encode_prompt(const context *cx, const json *sample, question *q)
{
    err_detail d = {0};
    bytes text;
    const char *prompt = json_str(json_get(sample, "prompt"), NULL), *fault = NULL;
    const json *recorded = json_get(sample, "prompt_ids");
    size_t i = 0;
    int64_t id = 0;
    bytes_init(&text, LIMIT_RENDERED_BYTES);
    if (prompt) {
        expand(cx, q, &text, prompt);
        require(tokenizer_encode(model_tokenizer(cx->m), &q->ids, bytes_str(&text), text.len,
                                 TOKENIZER_SPECIALS, &d),
                &d);
        if (recorded && json_len(recorded) != q->ids.len) {
            fault = "prompt_ids differ";
        }
        for (const json *v = json_child(recorded); v && !fault; v = json_next(v), i++) {
            fault = json_int(v, 0, INT32_MAX, &id) && q->ids.ids[i] == id ? NULL : "prompt_ids differ";
        }
    } else {
        for (const json *v = json_child(recorded); v; v = json_next(v)) {
            require(json_int(v, 0, INT32_MAX, &id) ? token_ids_push(&q->ids, (int32_t)id) : ERR_INVALID, &d);
        }
    }
    bytes_deinit(&text);
    if (q->ids.len == 0 || q->ids.len > MAX_PROMPT) {
        return "it has no usable prompt";
    }
    return fault;
}

static int32_t best_token(const float *logits, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* Feature rows of all media, and the prompt rows they belong to. Returns their number. */
static int32_t encode_media(context *cx, const question *q, float *embeds, int32_t *rows)
{
    err_detail d = {0};
    const size_t width = model_config_feature_width(cx->cfg);
    size_t at = 0;
    int32_t n = 0;
    for (size_t i = 0; i < q->n_media; i++) {
        const patches *p = &q->media[i];
        const size_t n_patches = (size_t)p->t * (size_t)p->h * (size_t)p->w;
        float *patch_rows = malloc(n_patches * p->row_len * sizeof *patch_rows);
        require(patch_rows ? ERR_OK : ERR_NOMEM, &d);
        processor_rows(patch_rows, p, &cx->pc, 0, n_patches);
        require(vit_encode(cx->encoder, cx->c, embeds + at * width, NULL, &(vit_rows){.rows = patch_rows},
                           p->t, p->h, p->w, &d),
                &d);
        free(patch_rows);
        at += (size_t)p->n_tokens;
    }
    for (size_t i = 0; i < q->ids.len; i++) {
        if (q->ids.ids[i] == cx->cfg->image_token_id || q->ids.ids[i] == cx->cfg->video_token_id) {
            rows[n++] = (int32_t)i;
        }
    }
    if ((size_t)n != at) {
        fprintf(stderr, "check_greedy: %d placeholders for %zu feature rows\n", n, at);
        exit(2);
    }
    return n;
}

/* Greedy answer of n tokens. */
static void answer(context *cx, const question *q, int32_t *out, int32_t n)
{
    err_detail d = {0};
    seq_state *seq = NULL;
    kv_pool *pool = NULL;
    decoder_scratch *sc = NULL;
    media_grid grids[MAX_MEDIA];
    int32_t n_prompt = (int32_t)q->ids.len, delta = 0, n_rows = 0, last = n_prompt - 1;
    size_t n_features = 0;
    for (size_t i = 0; i < q->n_media; i++) {
        grids[i] = (media_grid){q->media[i].t, q->media[i].h, q->media[i].w, 0};
        n_features += (size_t)q->media[i].n_tokens;
    }
    position *positions = must(calloc((size_t)n_prompt, sizeof *positions));
    float *embeds = must(calloc(n_features * model_config_feature_width(cx->cfg) + 1, sizeof *embeds));
    int32_t *rows = must(calloc((size_t)n_prompt, sizeof *rows));
    if (q->n_media) {
        n_rows = encode_media(cx, q, embeds, rows);
    }
    require(positions_assign(positions, &delta, cx->cfg, q->ids.ids, q->ids.len, grids,
                             q->is_video ? 0 : q->n_media, grids, q->is_video ? q->n_media : 0,
                             cx->encoder ? cx->pc.merge_size : 2, &d),
            &d);
    require(kv_pool_create(&pool, cx->cfg, KV_F32, false, kv_pool_blocks_for(n_prompt + n),
                           kv_pool_blocks_for(n_prompt + n), cx->c, &d),
            &d);
    require(seq_state_create(&seq, cx->cfg, pool, n_prompt + n, cx->c, &d), &d);
    require(decoder_scratch_create(&sc, cx->m, cx->c, n_prompt, 1, &d), &d);
    batch_run run = {.seq = seq, .n_rows = n_prompt};
    batch b = {.n_rows = n_prompt,
               .tokens = q->ids.ids,
               .positions = positions,
               .runs = &run,
               .n_runs = 1,
               .logit_rows = &last,
               .n_logit_rows = 1,
               .embed_rows = rows,
               .embeds = embeds,
               .n_embed_rows = n_rows};
    require(decoder_forward(cx->m, cx->c, &b, sc, &d), &d);
    out[0] = best_token(decoder_logits(sc, 0), cx->cfg->vocab_size);
    for (int32_t i = 1; i < n; i++) {
        int32_t at = seq_state_len(seq) + delta, row_0 = 0;
        position p = {at, at, at};
        batch_run one = {.seq = seq, .n_rows = 1, .exact_rows = true};
        batch step = {.n_rows = 1,
                      .tokens = &out[i - 1],
                      .positions = &p,
                      .runs = &one,
                      .n_runs = 1,
                      .logit_rows = &row_0,
                      .n_logit_rows = 1};
        require(decoder_forward(cx->m, cx->c, &step, sc, &d), &d);
        out[i] = best_token(decoder_logits(sc, 0), cx->cfg->vocab_size);
    }
    decoder_scratch_destroy(sc);
    seq_state_destroy(seq);
    kv_pool_destroy(pool);
    free(positions);
    free(embeds);
    free(rows);
}

typedef enum outcome { AGREES, DIFFERS, SKIPPED } outcome;

static outcome ask(context *cx, const json *sample, size_t number)
{
    question q = {0};
    int32_t ours[MAX_ANSWER] = {0};
    const json *recorded = json_get(sample, "greedy_ids");
    size_t n = json_len(recorded), same = 0;
    outcome result = SKIPPED;
    token_ids_init(&q.ids);
    const char *why = n == 0 || n > MAX_ANSWER ? "it has no usable greedy_ids" : load_media(cx, sample, &q);
    if (!why && (why = encode_prompt(cx, sample, &q)) == NULL) {
        answer(cx, &q, ours, (int32_t)n);
        for (const json *v = json_child(recorded); v; v = json_next(v), same++) {
            int64_t id = -1;
            if (!json_int(v, 0, INT32_MAX, &id) || ours[same] != id) {
                break;
            }
        }
        result = same == n ? AGREES : DIFFERS;
    } else if (strcmp(why, "prompt_ids differ") == 0) {
        result = DIFFERS;
    }
    printf("%3zu %-20s %s", number, json_str(json_get(sample, "skill"), ""),
           result == AGREES    ? "agrees"
           : result == DIFFERS ? "DIFFERS"
                               : "skipped");
    if (why) {
        printf(": %s\n", why);
    } else {
        printf(": %zu of %zu tokens\n", same, n);
    }
    for (size_t i = 0; i < q.n_media; i++) {
        patches_deinit(&q.media[i]);
    }
    token_ids_deinit(&q.ids);
    return result;
}

int main(int argc, char **argv)
{
    err_detail d = {0};
    context cx = {0};
    json_doc *doc = NULL;
    size_t counts[3] = {0}, number = 0;
    const unsigned long every = argc == 4 ? strtoul(argv[3], NULL, 10) : 1;
    if (argc < 3 || argc > 4 || every == 0) {
        fprintf(stderr, "usage: check_greedy MODEL_DIR SAMPLES_JSON [EVERY]\n");
        return 2;
    }
    const char *slash = strrchr(argv[2], '/');
    snprintf(cx.samples_dir, sizeof cx.samples_dir, "%.*s", slash ? (int)(slash - argv[2]) : 1,
             slash ? argv[2] : ".");
    require(json_parse_file(&doc, argv[2], LIMIT_CONFIG_BYTES, &d), &d);
    require(compute_create(&cx.c, &(compute_options){.cpu_mask = ~0u}, &d), &d);
    require(model_open(&cx.m, argv[1], &(model_open_options){0}, &d), &d);
    cx.cfg = model_get_config(cx.m);
    if (cx.cfg->has_vision) {
        tensor_source tensors = model_tensors(cx.m);
        require(processor_config_load(&cx.pc, model_documents(cx.m), &d), &d);
        require(vit_open(&cx.encoder, model_documents(cx.m), &tensors, cx.c, &d), &d);
    }
    for (const json *v = json_child(json_root(doc)); v; v = json_next(v)) {
        if (number++ % every == 0) {
            counts[ask(&cx, v, number)]++;
        }
    }
    printf("%zu of %zu agree, %zu differ, %zu skipped\n", counts[AGREES], number, counts[DIFFERS],
           counts[SKIPPED]);
    vit_close(cx.encoder);
    model_close(cx.m);
    compute_destroy(cx.c);
    json_free(doc);
    return counts[AGREES] > 0 && counts[DIFFERS] == 0 ? 0 : 1;
}
