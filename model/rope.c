#include "model/rope.h"

#include <math.h>

#include "compute/formats/half.h"

/* Position along the axis that pair i reads. */
static int32_t axis_position(const model_config *cfg, const position *p, int32_t pair)
{
    const int32_t *section = cfg->mrope_section;
    if (!cfg->mrope_interleaved) {
        return pair < section[0] ? p->t : pair < section[0] + section[1] ? p->h : p->w;
    }
    if (pair % 3 == 1 && pair < 3 * section[1]) {
        return p->h;
    }
    if (pair % 3 == 2 && pair < 3 * section[2]) {
        return p->w;
    }
    return p->t;
}

/* The pair that turns so many times over YaRN's original context. */
static double yarn_pair(const rope_spec *r, double turns)
{
    static const double two_pi = 6.283185307179586;
    return r->pairs * log(r->yarn_original / (turns * two_pi)) / log(r->theta);
}

/* What is left of a pair's own frequency; the rest is divided by the factor. */
static float yarn_share(const rope_spec *r, int32_t pair)
{
    double low = yarn_pair(r, r->yarn_fast), high = yarn_pair(r, r->yarn_slow);
    if (r->yarn_truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = low > 0 ? low : 0;
    high = high < 2 * r->pairs - 1 ? high : 2 * r->pairs - 1;
    high = high == low ? low + 0.001 : high;
    const double ramp = (pair - low) / (high - low);
    return 1.0f - (float)(ramp < 0 ? 0 : ramp > 1 ? 1 : ramp);
}

/* What Llama 3 multiplies a frequency with. */
static float llama3_share(const rope_spec *r, double frequency)
{
    static const double two_pi = 6.283185307179586;
    const double turns = r->llama3_original * frequency / two_pi; /* over the original context */
    const double ramp = (turns - r->llama3_slow) / (r->llama3_fast - r->llama3_slow);
    const double kept = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    return (float)((1 - kept) / r->llama3_factor + kept);
}

/* float32, as the reference forms it; long contexts see the same rounding. */
static float frequency_of(const rope_spec *r, int32_t pair)
{
    if (pair >= r->pairs - r->n_still) {
        return 0.0f;
    }
    const float power = (float)pow(r->theta, (double)pair / (double)r->pairs), own = 1.0f / power;
    if (r->linear_factor > 0) {
        return own / (float)r->linear_factor;
    }
    if (r->llama3_factor > 0) {
        return own * llama3_share(r, (double)own);
    }
    if (r->yarn_factor == 0) {
        return own;
    }
    const float kept = yarn_share(r, pair);
    return 1.0f / ((float)r->yarn_factor * power) * (1.0f - kept) + own * kept;
}

void rope_tables(float *cos_out, float *sin_out, const model_config *cfg, const rope_spec *rope,
                 const position *positions, size_t n)
{
    const size_t pairs = (size_t)rope->pairs;
    const float magnitude = (float)rope->magnitude;
    for (int32_t pair = 0; pair < rope->pairs; pair++) {
        float frequency = frequency_of(rope, pair);
        if (cfg->rope_bf16) {
            frequency = bf16_to_f32(bf16_from_f32(frequency));
        }
        for (size_t row = 0; row < n; row++) {
            float angle = (float)axis_position(cfg, &positions[row], pair) * frequency;
            cos_out[row * pairs + (size_t)pair] = cosf(angle) * magnitude;
            sin_out[row * pairs + (size_t)pair] = sinf(angle) * magnitude;
        }
    }
}

/* The grids of one kind of media; videos are taken frame by frame, or whole. */
typedef struct grid_list {
    const media_grid *grids;
    size_t n, next;
    int32_t frames_left; /* of grids[next], when it has been begun */
    bool whole;
    const char *what;
} grid_list;

/* A run of placeholders: merged rows and columns of so many frames. */
typedef struct run_grid {
    int32_t frames, rows, cols;
    double step; /* from one frame to the next on the first axis */
} run_grid;

/* The grid of the next image, of the next frame, or of a whole video. */
static err_code next_grid(grid_list *list, const model_config *cfg, int32_t merge, run_grid *out,
                          err_detail *detail)
{
    if (list->next == list->n) {
        return err_set(detail, ERR_INVALID, "the prompt has more %s placeholders than %s", list->what,
                       list->what);
    }
    const media_grid *g = &list->grids[list->next];
    if (list->frames_left == 0) {
        if (g->t < 1 || g->h < merge || g->w < merge || g->h % merge != 0 || g->w % merge != 0) {
            return err_set(detail, ERR_INVALID, "%s %zu has the impossible grid %d x %d x %d", list->what,
                           list->next + 1, g->t, g->h, g->w);
        }
        list->frames_left = g->t;
    }
    *out =
        (run_grid){.frames = list->whole ? g->t : 1, .rows = g->h / merge, .cols = g->w / merge, .step = 1};
    if (cfg->positions_per_second > 0 && g->seconds > 0) {
        out->step = g->seconds * cfg->positions_per_second;
    }
    list->frames_left -= out->frames;
    list->next += list->frames_left == 0;
    return ERR_OK;
}

/* Whether no pair of a head reads height or width: then media are counted like text. */
static bool has_one_axis(const model_config *cfg)
{
    return cfg->mrope_section[1] == 0 && cfg->mrope_section[2] == 0;
}

/* What frame i of a run adds on the first axis: whole positions, and a step that is off by the rounding of
 * times is not one less. */
static int32_t frame_offset(const run_grid *g, int32_t i)
{
    return (int32_t)floor(i * g->step + 1e-3);
}

/* One run of placeholders beginning at ids[0]: time counts frames, height and width count rows and
 * columns; with one axis it counts all of them. */
static err_code place_grid(position *out, const int32_t *ids, size_t n_left, int32_t cur, const run_grid *g,
                           bool one_axis, const char *what, err_detail *detail)
{
    const size_t area = (size_t)g->rows * (size_t)g->cols, n = area * (size_t)g->frames;
    for (size_t i = 0; i < n; i++) {
        if (i == n_left || ids[i] != ids[0]) {
            return err_set(detail, ERR_INVALID, "%s: %zu placeholders stand where %zu are needed", what, i,
                           n);
        }
        const int32_t at = cur + (int32_t)i, in_frame = (int32_t)(i % area);
        out[i] = one_axis ? (position){at, at, at}
                          : (position){cur + frame_offset(g, (int32_t)(i / area)), cur + in_frame / g->cols,
                                       cur + in_frame % g->cols};
    }
    return ERR_OK;
}

err_code positions_assign(position *out, int32_t *delta, const model_config *cfg, const int32_t *ids,
                          size_t n, const media_grid *images, size_t n_images, const media_grid *videos,
                          size_t n_videos, int32_t merge, err_detail *detail)
{
    grid_list image_list = {.grids = images, .n = n_images, .what = "image"};
    grid_list video_list = {.grids = videos, .n = n_videos, .whole = cfg->whole_videos, .what = "video"};
    const bool one_axis = has_one_axis(cfg);
    int32_t cur = 0;
    for (size_t i = 0; i < n;) {
        bool is_image = ids[i] == cfg->image_token_id && ids[i] >= 0;
        bool is_video = ids[i] == cfg->video_token_id && ids[i] >= 0;
        if (!is_image && !is_video) {
            out[i++] = (position){cur, cur, cur};
            cur++;
            continue;
        }
        grid_list *list = is_image ? &image_list : &video_list;
        run_grid g = {0};
        err_code err = next_grid(list, cfg, merge, &g, detail);
        if (!err) {
            err = place_grid(out + i, ids + i, n - i, cur, &g, one_axis, list->what, detail);
        }
        if (err) {
            return err;
        }
        const int32_t side = g.rows > g.cols ? g.rows : g.cols, last = frame_offset(&g, g.frames - 1) + 1;
        i += (size_t)g.frames * (size_t)g.rows * (size_t)g.cols;
        cur += one_axis ? g.frames * g.rows * g.cols : last > side ? last : side;
    }
    if (image_list.next != n_images || video_list.next != n_videos) {
        return err_set(detail, ERR_INVALID,
                       "the prompt has too few placeholders for %zu images and %zu videos", n_images,
                       n_videos);
    }
    *delta = cur - (int32_t)n;
    return ERR_OK;
}
