/* check_reference: runs every DIR/cases/NAME.safetensors of a reference checkpoint against the
 * engine.
 *
 *     build/check_reference [--exact-rope] DIR [generic|avx2|avx512|native [MODEL]]
 *
 * DIR is a checkpoint folder with cases/; MODEL is the same model in another form (FILE.gguf), to
 * be checked in its place. A case holds input_ids and what a trusted implementation computed from
 * them in float32; everything present is compared and printed as one row: case, what, worst
 * difference, largest reference value, verdict. Exit 0 only if all agree:
 *   - floats: max |ours - reference| <= 2e-3 * max |reference|;
 *   - tokens, grids and positions: equal;
 *   - pixel_values: within one 8-bit step (2/255) everywhere and equal in 99 % of the values.
 *
 * Most references cast their models to bf16 as a whole before they computed in float32, so their
 * rotary frequencies are rounded to bf16; so are ours here, and here alone. --exact-rope: not in
 * this one; nor in those whose cases hold mm_token_type_ids, which were computed from float32 models.
 *
 * A folder without tokenizer.json can be checked in all that needs no text.
 *
 * The media of a case follow from its name (MEDIA below): images are cases/img_*.png, the video is
 * cases/frames/000.png ... at 4 frames a second. NAME.prompt.txt is the prompt before placeholders
 * are expanded. A case of another name with pixel values is still computed from those.
 *
 * Pixels are NAME [patches, values] with grids (KIND_grid_thw), or bytes, NAME_u8 [.., patches,
 * values], with the column and row of each (KIND_position_ids [.., patches, 2]; -1: padding).
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/limits.h"
#include "compute/kernels/cpu.h"
#include "compute/nn.h"
#include "model/decoder.h"
#include "model/model.h"
#include "model/mtp.h"
#include "model/sampler.h"
#include "model/checkpoint/tensor_file.h"
#include "vision/image/image.h"
#include "vision/processor.h"
#include "vision/vit.h"

#define CHECK_TOOL_NAME "check_reference"
#include "tools/check_tool.h"
#include "tools/check_case.h"

#define TOLERANCE      2e-3
#define PIXEL_STEP     (2.0 / 255.0 + 1e-5)
#define PIXEL_EQUAL    1e-5
#define PIXEL_FRACTION 0.99
#define VIDEO_FPS      4.0

enum { MAX_FRAMES = 256, SPARE_TOKENS = 64, CHUNK = 37, STEPWISE_MAX = 128 };

static const struct {
    const char *name;
    const char *images[MAX_IMAGES];
    bool video;
} MEDIA[] = {
    {"image", {"img_a.png"}, false},         {"image_big", {"img_big.png"}, false},
    {"image_wide", {"img_wide.png"}, false}, {"two_images", {"img_b.png", "img_c.png"}, false},
    {"image_video", {"img_a.png"}, true},    {"video", {NULL}, true},
};

/* The opened checkpoint; shared by all cases. */
typedef struct context {
    const char *dir;
    model *m;
    const model_config *cfg;
    compute *c;
    vit *encoder;        /* NULL without vision tensors */
    processor_config pc; /* if encoder */
    int n_rows, n_failed;
} context;

/* One case file, and what the engine computed for it. */
typedef struct ref_case {
    case_file cf;
    const int32_t *ids; /* [n] */
    int32_t n;
    position *positions;
    int32_t rope_delta;
    float *embeds; /* [n_embed_rows, model_config_feature_width]: media features in token order */
    int32_t *embed_rows;
    int32_t n_embed_rows;
    float *hidden; /* [n, H] after the final norm, whole prefill */
    float *last_logits;
} ref_case;

/* ---- rows of the report ---- */

static void row(context *cx, const ref_case *rc, const char *what, double worst, double largest, bool ok,
                const char *note)
{
    printf("%-12s %-28s %10.2e %10.2e  %s%s%s\n", rc->cf.name, what, worst, largest, ok ? "ok" : "DIFFERS",
           note[0] ? "  " : "", note);
    cx->n_rows++;
    cx->n_failed += !ok;
}

static void compare_floats(context *cx, const ref_case *rc, const char *what, const float *ours,
                           const float *reference, size_t n)
{
    double worst = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        double difference = fabs((double)ours[i] - (double)reference[i]);
        worst = !(difference <= worst) ? difference : worst; /* a NaN sticks */
        largest = fabs((double)reference[i]) > largest ? fabs((double)reference[i]) : largest;
    }
    char note[48];
    snprintf(note, sizeof note, "%.1e relative", worst / largest);
    row(cx, rc, what, worst, largest, worst <= TOLERANCE * largest, note);
}

static void compare_ids(context *cx, const ref_case *rc, const char *what, const int32_t *ours, size_t n_ours,
                        const int32_t *reference, size_t n)
{
    char note[64] = "";
    size_t i = 0;
    while (i < n && i < n_ours && ours[i] == reference[i]) {
        i++;
    }
    if (i < n || n_ours != n) {
        snprintf(note, sizeof note, "%zu of %zu agree", i, n);
    }
    row(cx, rc, what, (double)(n - i), (double)n, i == n && n_ours == n, note);
}

static void compare_pixels(context *cx, const ref_case *rc, const char *what, const float *ours,
                           const float *reference, size_t n)
{
    double worst = 0;
    size_t equal = 0;
    char note[48];
    for (size_t i = 0; i < n; i++) {
        double difference = fabs((double)ours[i] - (double)reference[i]);
        worst = !(difference <= worst) ? difference : worst;
        equal += difference <= PIXEL_EQUAL;
    }
    double share = n ? (double)equal / (double)n : 1.0;
    snprintf(note, sizeof note, "%.2f %% equal", 100.0 * share);
    row(cx, rc, what, worst, 1.0, worst <= PIXEL_STEP && share >= PIXEL_FRACTION, note);
}

/* ---- vision ---- */

/* The sampled frames of cases/frames as patches; false without such a folder. */
static bool load_video(const context *cx, patches *out)
{
    char path[4096];
    err_detail d = {0};
    image frames[MAX_FRAMES];
    double times[MAX_FRAMES];
    int32_t total = 0, n = 0, chosen[MAX_FRAMES];
    for (;; total++) {
        snprintf(path, sizeof path, "%s/cases/frames/%03d.png", cx->dir, total);
        if (!file_exists(path)) {
            break;
        }
    }
    if (total == 0) {
        return false;
    }
    require(processor_sample_frames(&cx->pc, total, VIDEO_FPS, 0, 0, chosen, MAX_FRAMES, &n, &d), &d);
    for (int32_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/cases/frames/%03d.png", cx->dir, chosen[i]);
        load_image(&frames[i], path);
        times[i] = chosen[i] / VIDEO_FPS;
    }
    require(processor_video(out, &cx->pc, frames, n, times, &d), &d);
    for (int32_t i = 0; i < n; i++) {
        image_deinit(&frames[i]);
    }
    return true;
}

/* Patches made from the case's files, in the order of the prompt: images, then the video. Returns
 * how many. */
static size_t load_media(const context *cx, const ref_case *rc, patches *out, size_t *n_images, bool *video)
{
    char path[4096];
    err_detail d = {0};
    size_t n = 0;
    *n_images = 0;
    *video = false;
    for (size_t i = 0; i < ARRAY_LEN(MEDIA); i++) {
        if (strcmp(MEDIA[i].name, rc->cf.name) != 0) {
            continue;
        }
        for (size_t p = 0; p < MAX_IMAGES && MEDIA[i].images[p]; p++) {
            image img;
            snprintf(path, sizeof path, "%s/cases/%s", cx->dir, MEDIA[i].images[p]);
            if (!file_exists(path)) {
                return 0;
            }
            load_image(&img, path);
            require(processor_image(&out[n++], &cx->pc, &img, &d), &d);
            image_deinit(&img);
        }
        *n_images = n;
        *video = MEDIA[i].video && load_video(cx, &out[n]);
        n += *video;
    }
    return n;
}

/* Our patches of one kind against the reference's rows and grids. */
static void compare_patches(context *cx, const ref_case *rc, const patches *ours, size_t n_ours,
                            const char *kind, const char *pixels)
{
    char grid[64];
    ref_media reference = read_media(cx->encoder ? &cx->pc : NULL, &rc->cf, kind, pixels);
    int32_t found[3 * MAX_IMAGES] = {0}, wanted[3 * MAX_IMAGES] = {0};
    size_t n = 0;
    snprintf(grid, sizeof grid, "%s grids", kind);
    for (size_t i = 0; i < n_ours; i++) {
        found[3 * i] = ours[i].t;
        found[3 * i + 1] = ours[i].h;
        found[3 * i + 2] = ours[i].w;
        n += (size_t)ours[i].t * (size_t)ours[i].h * (size_t)ours[i].w * ours[i].row_len;
    }
    for (size_t i = 0; i < reference.n_grids; i++) {
        wanted[3 * i] = reference.grids[i].t;
        wanted[3 * i + 1] = reference.grids[i].h;
        wanted[3 * i + 2] = reference.grids[i].w;
    }
    if (reference.n_grids) {
        compare_ids(cx, rc, grid, found, 3 * n_ours, wanted, 3 * reference.n_grids);
    }
    if (reference.rows && n == reference.n_rows * reference.row_len) {
        float *all = floats(n);
        for (size_t i = 0, at = 0; i < n_ours; i++) {
            size_t len = (size_t)ours[i].t * (size_t)ours[i].h * (size_t)ours[i].w * ours[i].row_len;
            processor_rows(all + at, &ours[i], &cx->pc, 0, len / ours[i].row_len);
            at += len;
        }
        compare_pixels(cx, rc, pixels, all, reference.rows, n);
        free(all);
    } else if (reference.rows) {
        row(cx, rc, pixels, (double)n, (double)(reference.n_rows * reference.row_len), false,
            "another number of values");
    }
    ref_media_free(&reference);
}

/* The text of a token; of -1 nothing. */
static void append_token(bytes *out, const tokenizer *tok, int32_t id)
{
    size_t n = 0;
    const char *text = id < 0 ? "" : tokenizer_token_bytes(tok, id, &n, NULL);
    bytes_append(out, text, n);
}

/* The prompt's text with every placeholder expanded, tokenized, against input_ids. */
static void compare_prompt(context *cx, const ref_case *rc, const patches *media, size_t n_images, bool video)
{
    char path[4096];
    err_detail d = {0};
    bytes text, expanded;
    token_ids ids;
    const tokenizer *tok = model_tokenizer(cx->m);
    size_t n_image_pad = 0, n_video_pad = 0, n_seen = 0;
    snprintf(path, sizeof path, "%s/cases/%s.prompt.txt", cx->dir, rc->cf.name);
    if (!file_exists(path) || cx->cfg->image_token_id < 0) {
        return;
    }
    const char *image_pad = tokenizer_token_bytes(tok, cx->cfg->image_token_id, &n_image_pad, NULL);
    const char *video_pad = tokenizer_token_bytes(tok, cx->cfg->video_token_id, &n_video_pad, NULL);
    const bool is_bare = cx->cfg->bare_placeholders;
    bytes_init(&text, LIMIT_RENDERED_BYTES);
    bytes_init(&expanded, LIMIT_RENDERED_BYTES);
    token_ids_init(&ids);
    require(file_read(&text, path, &d), &d);
    for (size_t at = 0; at < text.len;) {
        if (strncmp(text.data + at, image_pad, n_image_pad) == 0 && n_seen < n_images) {
            append_token(&expanded, tok, is_bare ? cx->cfg->vision_start_token_id : -1);
            for (int32_t i = 0; i < media[n_seen].n_tokens; i++) {
                bytes_append(&expanded, image_pad, n_image_pad);
            }
            append_token(&expanded, tok, is_bare ? cx->cfg->vision_end_token_id : -1);
            n_seen++;
            at += n_image_pad;
        } else if (strncmp(text.data + at, video_pad, n_video_pad) == 0 && video) {
            const patches *p = &media[n_images];
            for (int32_t t = 0; t < p->t; t++) { /* the layout that keeps an outer pair of vision tokens */
                const int s = (int)p->timestamps[t];
                if (is_bare) {
                    bytes_printf(&expanded, t ? " %02d:%02d " : "%02d:%02d ", s / 60, s % 60);
                } else {
                    bytes_printf(&expanded, "<%.1f seconds>", p->timestamps[t]);
                }
                append_token(&expanded, tok, cx->cfg->vision_start_token_id);
                for (int32_t i = 0; i < p->n_tokens / p->t; i++) {
                    bytes_append(&expanded, video_pad, n_video_pad);
                }
                append_token(&expanded, tok, cx->cfg->vision_end_token_id);
            }
            at += n_video_pad;
        } else {
            bytes_append_char(&expanded, text.data[at++]);
        }
    }
    require(tokenizer_encode(tok, &ids, bytes_str(&expanded), expanded.len, TOKENIZER_SPECIALS, &d), &d);
    compare_ids(cx, rc, "input_ids (tokenizer)", ids.ids, ids.len, rc->ids, (size_t)rc->n);
    token_ids_deinit(&ids);
    bytes_deinit(&expanded);
    bytes_deinit(&text);
}

/* Pixels, grids and tokens made from the case's own files. */
static void check_inputs(context *cx, const ref_case *rc)
{
    patches media[MAX_IMAGES + 1];
    size_t n_images = 0, n = 0;
    bool video = false;
    memset(media, 0, sizeof media);
    if (cx->encoder) {
        n = load_media(cx, rc, media, &n_images, &video);
    }
    if (n_images) {
        compare_patches(cx, rc, media, n_images, "image", "pixel_values");
    }
    if (video) {
        compare_patches(cx, rc, media + n_images, 1, "video", "pixel_values_videos");
    }
    if (n > 0) {
        compare_prompt(cx, rc, media, n_images, video);
    }
    for (size_t i = 0; i < n; i++) {
        patches_deinit(&media[i]);
    }
}

/* The reference's features as rows of ours: [n, H], then [n_deepstack, n, H] of the same rows; NULL
 * if it has none. */
static float *case_features(const context *cx, const ref_case *rc, const char *features, size_t *n)
{
    char deep[80];
    tensor t, td;
    const size_t H = (size_t)cx->cfg->hidden_size, width = model_config_feature_width(cx->cfg);
    snprintf(deep, sizeof deep, "%s_deepstack", features);
    float *main = case_floats(&rc->cf, features, &t), *inner = case_floats(&rc->cf, deep, &td);
    float *out = NULL;
    if (main && (inner != NULL) == (width > H)) {
        *n = t.dims[0];
        out = floats(*n * width);
        for (size_t i = 0; i < *n; i++) {
            memcpy(out + i * width, main + i * H, H * sizeof *out);
            for (size_t k = 0; (k + 1) * H < width; k++) {
                memcpy(out + i * width + (k + 1) * H, inner + (k * *n + i) * H, H * sizeof *out);
            }
        }
    }
    free(main);
    free(inner);
    return out;
}

/* Features of one kind ("image" or "video") from the reference's pixel values; appended to
 * rc->embeds for the tokens `pad`. Without an encoder or pixels the reference's own features are used. */
static void encode_media(context *cx, ref_case *rc, const char *kind, const ref_media *media, int32_t pad)
{
    char features[64], last[64];
    tensor tl = {0};
    err_detail d = {0};
    size_t width = model_config_feature_width(cx->cfg), n = 0;
    snprintf(features, sizeof features, "%s_features", kind);
    snprintf(last, sizeof last, "%s_features_last_hidden", kind);
    float *reference = case_features(cx, rc, features, &n), *reference_last = case_floats(&rc->cf, last, &tl);
    if (!reference) {
        free(reference_last);
        return;
    }
    float *ours = floats(n * width), *ours_last = reference_last ? floats(tensor_len(&tl)) : NULL;
    memcpy(ours, reference, n * width * sizeof *ours);
    if (cx->encoder && media->rows) {
        size_t merge = (size_t)vit_get_config(cx->encoder)->spatial_merge_size, at = 0;
        for (size_t g = 0; g < media->n_grids; g++) {
            const media_grid *grid = &media->grids[g];
            require(vit_encode(cx->encoder, cx->c, ours + at / (merge * merge) * width,
                               ours_last ? ours_last + at * tl.dims[1] : NULL,
                               &(vit_rows){.rows = media->rows + at * media->row_len}, grid->t, grid->h,
                               grid->w, &d),
                    &d);
            at += grid_patches(grid);
        }
        compare_floats(cx, rc, features, ours, reference, n * width);
        if (reference_last) {
            compare_floats(cx, rc, last, ours_last, reference_last, tensor_len(&tl));
        }
    }
    for (int32_t i = 0, k = 0; i < rc->n && k < (int32_t)n; i++) {
        if (rc->ids[i] == pad) {
            rc->embed_rows[rc->n_embed_rows] = i;
            memcpy(rc->embeds + (size_t)rc->n_embed_rows++ * width, ours + (size_t)k++ * width,
                   width * sizeof *ours);
        }
    }
    free(ours);
    free(ours_last);
    free(reference);
    free(reference_last);
}

/* embed_rows must ascend, but images and videos were appended one kind after the other. */
static void sort_embeds(const context *cx, ref_case *rc)
{
    size_t width = model_config_feature_width(cx->cfg), row_bytes = width * sizeof(float);
    float *swap = floats(width);
    for (int32_t i = 1; i < rc->n_embed_rows; i++) {
        for (int32_t k = i; k > 0 && rc->embed_rows[k] < rc->embed_rows[k - 1]; k--) {
            int32_t r = rc->embed_rows[k];
            rc->embed_rows[k] = rc->embed_rows[k - 1];
            rc->embed_rows[k - 1] = r;
            float *a = rc->embeds + (size_t)k * width, *b = a - width;
            memcpy(swap, a, row_bytes);
            memcpy(a, b, row_bytes);
            memcpy(b, swap, row_bytes);
        }
    }
    free(swap);
}

static void compare_positions(context *cx, const ref_case *rc)
{
    size_t n = (size_t)rc->n, n_ref = 0, n_delta = 0;
    int32_t *reference = case_ids(&rc->cf, "position_ids", &n_ref),
            *delta = case_ids(&rc->cf, "rope_delta", &n_delta);
    if (reference) {
        int32_t *ours = must(calloc(3 * n, sizeof *ours));
        for (size_t i = 0; i < n; i++) {
            ours[i] = rc->positions[i].t;
            ours[n + i] = rc->positions[i].h;
            ours[2 * n + i] = rc->positions[i].w;
        }
        compare_ids(cx, rc, "position_ids", ours, 3 * n, reference, n_ref);
        free(ours);
    }
    if (delta) {
        compare_ids(cx, rc, "rope_delta", &rc->rope_delta, 1, delta, n_delta);
    }
    free(reference);
    free(delta);
}

/* Media features and positions of the prompt. */
static void prepare(context *cx, ref_case *rc)
{
    err_detail d = {0};
    size_t n = (size_t)rc->n;
    ref_media images = read_media(cx->encoder ? &cx->pc : NULL, &rc->cf, "image", "pixel_values");
    ref_media videos = read_media(cx->encoder ? &cx->pc : NULL, &rc->cf, "video", "pixel_values_videos");
    int32_t merge = cx->encoder ? cx->pc.merge_size : 2;
    rc->embeds = floats(n * model_config_feature_width(cx->cfg));
    rc->embed_rows = must(calloc(n, sizeof *rc->embed_rows));
    rc->positions = must(calloc(n, sizeof *rc->positions));
    encode_media(cx, rc, "image", &images, cx->cfg->image_token_id);
    encode_media(cx, rc, "video", &videos, cx->cfg->video_token_id);
    sort_embeds(cx, rc);
    err_code err = positions_assign(rc->positions, &rc->rope_delta, cx->cfg, rc->ids, n, images.grids,
                                    images.n_grids, videos.grids, videos.n_grids, merge, &d);
    ref_media_free(&images);
    ref_media_free(&videos);
    require(err, &d);
    compare_positions(cx, rc);
}

/* ---- the decoder ---- */

static int32_t best_token(const float *logits, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* Runs rows [first, first + n) of the prompt; logits of the last n_logits of them are kept in
 * sc. */
static void forward_prompt(context *cx, const ref_case *rc, seq_state *seq, decoder_scratch *sc,
                           int32_t first, int32_t n, int32_t n_logits, bool exact)
{
    err_detail d = {0};
    int32_t *logit_rows = must(calloc((size_t)n_logits + 1, sizeof *logit_rows));
    int32_t *embed_rows = must(calloc((size_t)rc->n_embed_rows + 1, sizeof *embed_rows)), skip = 0, taken = 0;
    for (int32_t i = 0; i < n_logits; i++) {
        logit_rows[i] = n - n_logits + i;
    }
    for (int32_t i = 0; i < rc->n_embed_rows; i++) {
        skip += rc->embed_rows[i] < first;
        if (rc->embed_rows[i] >= first && rc->embed_rows[i] < first + n) {
            embed_rows[taken++] = rc->embed_rows[i] - first;
        }
    }
    batch_run run = {.seq = seq, .n_rows = n, .exact_rows = exact};
    batch b = {.n_rows = n,
               .tokens = rc->ids + first,
               .positions = rc->positions + first,
               .runs = &run,
               .n_runs = 1,
               .logit_rows = logit_rows,
               .n_logit_rows = n_logits,
               .embed_rows = embed_rows,
               .embeds = rc->embeds + (size_t)skip * model_config_feature_width(cx->cfg),
               .n_embed_rows = taken};
    require(decoder_forward(cx->m, cx->c, &b, sc, &d), &d);
    free(logit_rows);
    free(embed_rows);
}

/* What the trace hook compares against. */
typedef struct trace_check {
    context *cx;
    const ref_case *rc;
    const float *reference; /* [L+1, n, H] */
} trace_check;

static void check_layer(void *ctx, int32_t layer, const float *rows, int32_t n_rows)
{
    const trace_check *tc = ctx;
    char what[48];
    size_t n = (size_t)n_rows * (size_t)tc->cx->cfg->hidden_size;
    snprintf(what, sizeof what, "hidden_states[%d]", layer);
    compare_floats(tc->cx, tc->rc, what, rows, tc->reference + (size_t)layer * n, n);
}

/* The whole prompt at once: hidden states of all layers, logits of the last rows. */
static void check_prefill(context *cx, ref_case *rc, seq_state *seq, decoder_scratch *sc)
{
    tensor t, tl;
    size_t H = (size_t)cx->cfg->hidden_size, n_last = 1;
    float *states = case_floats(&rc->cf, "hidden_states", &t);
    trace_check tc = {cx, rc, states};
    float *logits = case_floats(&rc->cf, "logits_last", &tl);
    n_last = logits ? tl.dims[0] : 1;
    decoder_set_trace(sc, states ? check_layer : NULL, &tc);
    forward_prompt(cx, rc, seq, sc, 0, rc->n, (int32_t)n_last, false);
    decoder_set_trace(sc, NULL, NULL);
    rc->hidden = floats((size_t)rc->n * H);
    memcpy(rc->hidden, decoder_hidden(sc, 0), (size_t)rc->n * H * sizeof(float));
    rc->last_logits = floats((size_t)cx->cfg->vocab_size);
    memcpy(rc->last_logits, decoder_logits(sc, (int32_t)n_last - 1),
           (size_t)cx->cfg->vocab_size * sizeof(float));
    if (logits) {
        compare_floats(cx, rc, "logits_last", decoder_logits(sc, 0), logits, tensor_len(&tl));
    }
    free(states);
    free(logits);
    float *hidden = case_floats(&rc->cf, "hidden_last", &t);
    if (hidden) {
        compare_floats(cx, rc, "hidden_last", rc->hidden + ((size_t)rc->n - t.dims[0]) * H, hidden,
                       tensor_len(&t));
    }
    free(hidden);
}

/* The first row from `end` on at which no image is cut, where its rows see each other. */
static int32_t whole_media(const context *cx, const ref_case *rc, int32_t end)
{
    for (int32_t i = 1; i < rc->n_embed_rows && cx->cfg->media_see_both_ways; i++) {
        end += rc->embed_rows[i] == end && rc->embed_rows[i - 1] == end - 1;
    }
    return end;
}

/* The prompt in pieces of `chunk` rows, or a few more, gives the same last logits; leaves seq at the end of the
 * prompt. */
static void check_pieces(context *cx, const ref_case *rc, seq_state *seq, decoder_scratch *sc, int32_t chunk,
                         bool exact, const char *what)
{
    seq_state_reset(seq);
    for (int32_t at = 0; at < rc->n;) {
        int32_t n = rc->n - at < chunk ? rc->n - at : chunk;
        n = whole_media(cx, rc, at + n) - at;
        forward_prompt(cx, rc, seq, sc, at, n, at + n == rc->n ? 1 : 0, exact);
        at += n;
    }
    compare_floats(cx, rc, what, decoder_logits(sc, 0), rc->last_logits, (size_t)cx->cfg->vocab_size);
}

/* Greedy decoding, one exact row at a time, from the end of the prompt. */
static void check_greedy(context *cx, const ref_case *rc, seq_state *seq, decoder_scratch *sc,
                         const char *what)
{
    err_detail d = {0};
    size_t n = 0;
    int32_t *reference = case_ids(&rc->cf, "greedy", &n), *ours = must(calloc(n + 1, sizeof *ours)),
            row_0 = 0;
    if (!reference) {
        free(ours);
        return;
    }
    ours[0] = best_token(rc->last_logits, cx->cfg->vocab_size);
    for (size_t i = 1; i < n; i++) {
        int32_t at = seq_state_len(seq) + rc->rope_delta;
        position p = {at, at, at};
        batch_run run = {.seq = seq, .n_rows = 1, .exact_rows = true};
        batch b = {.n_rows = 1,
                   .tokens = &ours[i - 1],
                   .positions = &p,
                   .runs = &run,
                   .n_runs = 1,
                   .logit_rows = &row_0,
                   .n_logit_rows = 1};
        require(decoder_forward(cx->m, cx->c, &b, sc, &d), &d);
        ours[i] = best_token(decoder_logits(sc, 0), cx->cfg->vocab_size);
    }
    compare_ids(cx, rc, what, ours, n, reference, n);
    free(reference);
    free(ours);
}

/* The draft head: entries of the whole prompt, then three tokens drafted one after another. */
static void check_mtp(context *cx, const ref_case *rc, seq_state *seq, mtp_scratch *ms)
{
    err_detail d = {0};
    tensor th, tl, td;
    size_t n_drafts = 0, H = (size_t)cx->cfg->hidden_size, V = (size_t)cx->cfg->vocab_size;
    float *hidden = case_floats(&rc->cf, "mtp_hidden_last", &th),
          *logits = case_floats(&rc->cf, "mtp_logits_last", &tl);
    float *draft_logits = case_floats(&rc->cf, "mtp_draft_logits", &td);
    int32_t *drafts = case_ids(&rc->cf, "mtp_drafts", &n_drafts);
    if (hidden && logits && rc->n > 1) {
        mtp_input in = {seq, rc->hidden, rc->ids + 1, rc->positions, rc->n - 1};
        require(mtp_forward(cx->m, cx->c, ms, &in, (int32_t)tl.dims[0], &d), &d);
        compare_floats(cx, rc, "mtp_hidden_last", mtp_hidden(ms, 0), hidden, tensor_len(&th));
        compare_floats(cx, rc, "mtp_logits_last", mtp_logits(ms, 0), logits, tensor_len(&tl));
    }
    if (drafts && draft_logits) {
        int32_t *ours = must(calloc(n_drafts + 1, sizeof *ours)), token = 0;
        float *all = floats(n_drafts * V);
        const float *h = rc->hidden + (size_t)(rc->n - 1) * H;
        token = best_token(rc->last_logits, cx->cfg->vocab_size);
        for (size_t i = 0; i < n_drafts; i++) {
            int32_t at = rc->n - 1 + (int32_t)i + rc->rope_delta;
            position p = {at, at, at};
            mtp_input in = {seq, h, &token, &p, 1};
            require(mtp_forward(cx->m, cx->c, ms, &in, 1, &d), &d);
            memcpy(all + i * V, mtp_logits(ms, 0), V * sizeof *all);
            ours[i] = token = best_token(mtp_logits(ms, 0), cx->cfg->vocab_size);
            h = mtp_hidden(ms, 0);
        }
        compare_ids(cx, rc, "mtp_drafts", ours, n_drafts, drafts, n_drafts);
        compare_floats(cx, rc, "mtp_draft_logits", all, draft_logits, n_drafts * V);
        free(ours);
        free(all);
    }
    free(hidden);
    free(logits);
    free(draft_logits);
    free(drafts);
}

static void check_model(context *cx, ref_case *rc)
{
    err_detail d = {0};
    kv_pool *pool = NULL;
    seq_state *seq = NULL;
    decoder_scratch *sc = NULL;
    mtp_scratch *ms = NULL;
    bool has_mtp = model_has_mtp(cx->m);
    const int32_t n_ctx = rc->n + SPARE_TOKENS;
    require(kv_pool_create(&pool, cx->cfg, KV_F32, has_mtp, kv_pool_blocks_for(n_ctx),
                           kv_pool_blocks_for(n_ctx), cx->c, &d),
            &d);
    require(seq_state_create(&seq, cx->cfg, pool, n_ctx, cx->c, &d), &d);
    require(decoder_scratch_create(&sc, cx->m, cx->c, rc->n, rc->n, &d), &d);
    check_prefill(cx, rc, seq, sc);
    if (has_mtp) {
        require(mtp_scratch_create(&ms, cx->m, cx->c, rc->n, rc->n, &d), &d);
        check_mtp(cx, rc, seq, ms);
    }
    check_greedy(cx, rc, seq, sc, "greedy");
    check_pieces(cx, rc, seq, sc, CHUNK, false, "prefill in chunks of 37");
    check_greedy(cx, rc, seq, sc, "greedy after chunks");
    if (rc->n <= STEPWISE_MAX) {
        check_pieces(cx, rc, seq, sc, 1, true, "prefill token by token");
        check_greedy(cx, rc, seq, sc, "greedy after token by token");
    }
    mtp_scratch_destroy(ms);
    decoder_scratch_destroy(sc);
    seq_state_destroy(seq);
    kv_pool_destroy(pool);
}

static void check_case(context *cx, const char *name)
{
    char path[4096];
    err_detail d = {0};
    ref_case rc = {0};
    size_t n = 0;
    snprintf(rc.cf.name, sizeof rc.cf.name, "%s", name);
    snprintf(path, sizeof path, "%s/cases/%s.safetensors", cx->dir, name);
    require(tensor_file_open(&rc.cf.file, path, &d), &d);
    int32_t *ids = case_ids(&rc.cf, "input_ids", &n);
    if (!ids || n == 0) {
        fprintf(stderr, "check_reference: %s holds no input_ids\n", path);
        exit(2);
    }
    rc.ids = ids;
    rc.n = (int32_t)n;
    check_inputs(cx, &rc);
    prepare(cx, &rc);
    check_model(cx, &rc);
    free(ids);
    free(rc.positions);
    free(rc.embeds);
    free(rc.embed_rows);
    free(rc.hidden);
    free(rc.last_logits);
    tensor_file_close(rc.cf.file);
}

/* Whether the reference was computed by a model that never was bf16. */
static bool is_from_f32(const char *dir, const char *name)
{
    char path[4096];
    tensor t;
    tensor_file *file = NULL;
    err_detail d = {0};
    snprintf(path, sizeof path, "%s/cases/%s.safetensors", dir, name);
    require(tensor_file_open(&file, path, &d), &d);
    const bool found = tensor_table_get(tensor_file_tensors(file), "mm_token_type_ids", &t);
    tensor_file_close(file);
    return found;
}

int main(int argc, char **argv)
{
    char *names[MAX_CASES];
    err_detail d = {0};
    context cx = {0};
    compute_options options = {.n_threads = 0, .cpu_mask = ~0u};
    bool exact_rope = argc > 1 && strcmp(argv[1], "--exact-rope") == 0;
    argc -= exact_rope;
    argv += exact_rope;
    if (argc < 2 || argc > 4 || (argc > 2 && !cpu_parse_level(argv[2], &options.cpu_mask))) {
        fprintf(stderr, "usage: check_reference [--exact-rope] DIR [generic|avx2|avx512|native [MODEL]]\n");
        return 2;
    }
    cx.dir = argv[1];
    size_t n = list_cases(cx.dir, names);
    exact_rope = exact_rope || (n > 0 && is_from_f32(cx.dir, names[0]));
    require(compute_create(&cx.c, &options, &d), &d);
    char tokenizer_path[4096];
    const bool has_tokenizer = file_join(tokenizer_path, sizeof tokenizer_path, cx.dir, "tokenizer.json") &&
                               file_exists(tokenizer_path);
    const model_open_options opt = {.rope_bf16 = !exact_rope, .weights_only = !has_tokenizer};
    require(model_open(&cx.m, argc > 3 ? argv[3] : cx.dir, &opt, &d), &d);
    cx.cfg = model_get_config(cx.m);
    if (cx.cfg->has_vision) {
        tensor_source tensors = model_tensors(cx.m);
        require(processor_config_load(&cx.pc, model_documents(cx.m), &d), &d);
        if (cx.pc.fills_budget && argc > 3) { /* whose other forms do not hold the processor's settings */
            require(processor_config_load(&cx.pc, json_folder(cx.dir), &d), &d);
        }
        require(vit_open(&cx.encoder, model_documents(cx.m), &tensors, cx.c, &d), &d);
    }
    printf("%s: %s\n%-12s %-28s %10s %10s  verdict\n", cx.dir, compute_describe(cx.c), "case", "compared",
           "worst", "largest");
    for (size_t i = 0; i < n; i++) {
        check_case(&cx, names[i]);
        free(names[i]);
    }
    printf("%zu cases, %d comparisons, %d differ\n", n, cx.n_rows, cx.n_failed);
    vit_close(cx.encoder);
    model_close(cx.m);
    compute_destroy(cx.c);
    return n > 0 && cx.n_failed == 0 ? 0 : 1;
}
