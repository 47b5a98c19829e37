/* A video of more patches than are encoded together: the rows of each pair of its frames are those of that pair alone,
 * and what is told in between counts the pairs. */
#include "base/file.h"
#include "engine/engine_private.h"
#include "tests/engine/answers.h"

enum { N_FRAMES = 6, N_PAIRS = N_FRAMES / 2, PIXELS_OF_PAIR = 2 * 360000, MOST_TOLD = 16 };

static bytes pngs[N_FRAMES];
static int32_t told[MOST_TOLD], n_told; /* of the pairs of a video, in order */

static void on_event(void *ctx, gen_event *ev)
{
    if (ev->type == GEN_PROGRESS && ev->phase == GEN_PHASE_VISION && n_told < MOST_TOLD) {
        told[n_told++] = ev->processed;
    }
    answers_on_event(ctx, ev);
}

/* The rows of the video of frames first .. first + n - 1. The caller releases them. */
static const vision_features *rows_of(engine *e, size_t first, size_t n, uint64_t id)
{
    chat_input *in = chat_input_create(1 << 20);
    chat_file files[N_FRAMES];
    gen_request *r = NULL;
    err_detail d = {0};
    answer a = {0};
    uint8_t key[HASH_BYTES];
    for (size_t i = 0; i < n; i++) {
        files[i] = (chat_file){.data = (const uint8_t *)pngs[first + i].data, .bytes = pngs[first + i].len};
    }
    chat_part parts[] = {{.kind = CHAT_VIDEO,
                          .video = {.list = files, .n_list = n, .list_fps = 2},
                          .pixels = {.min = (int64_t)(n / 2) * PIXELS_OF_PAIR}},
                         {.kind = CHAT_TEXT, .text = "?", .text_len = 1}};
    chat_message one = {.role = CHAT_USER, .parts = parts, .n_parts = 2};
    CHECK(in != NULL);
    in->messages = &one;
    in->n_messages = 1;
    in->params.max_tokens = 1;
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    chat_input_destroy(in);
    CHECK_INT(r->n_media, 1);
    memcpy(key, r->media[0].key, sizeof key);
    n_told = 0;
    answers_submit(e, r, id);
    answers_collect(&a, id, 1);
    return vision_cache_find(e->vision_cache, key);
}

int main(void)
{
    char dir[4096], path[4200];
    err_detail d = {0};
    engine *e = NULL;
    engine_options opt = {.n_ctx = 2048,
                          .n_parallel = 1,
                          .n_threads = 1,
                          .vision_cache_mib = 16,
                          .template_file = PARLEY_SOURCE_DIR "/tools/seedling/chat_template.jinja",
                          .exact = true,
                          .cpu_mask = test_cpu_mask(),
                          .on_event = on_event};
    answers_begin();
    for (size_t i = 0; i < N_FRAMES; i++) {
        snprintf(path, sizeof path, "%s/%03zu.png", check_data("tiny/cases/frames"), 2 * i);
        pngs[i] = bytes_empty(1 << 20);
        CHECK_OK(file_read(&pngs[i], path, &d), d);
    }
    snprintf(dir, sizeof dir, "%s", check_data("tiny"));
    opt.model_dir = dir;
    gen_params_init(&opt.defaults);
    CHECK_OK(engine_open(&e, &opt, &d), d);
    const vision_features *whole = rows_of(e, 0, N_FRAMES, 1);
    CHECK(whole && whole->t == N_PAIRS && whole->n_rows % N_PAIRS == 0);
    CHECK(whole->h * whole->w * 2 <= 4096 && whole->h * whole->w * N_PAIRS > 4096); /* two pairs, then one */
    CHECK(n_told == 3 && told[0] == 0 && told[1] == 2 && told[2] == N_PAIRS);
    const size_t n =
        (size_t)(whole->n_rows / N_PAIRS) * (size_t)model_config_feature_width(model_get_config(e->model));
    for (size_t i = 0; i < N_PAIRS; i++) {
        const vision_features *pair = rows_of(e, 2 * i, 2, 2 + i);
        CHECK(pair && pair->t == 1 && pair->h == whole->h && pair->w == whole->w);
        CHECK(n_told == 2 && told[1] == 1);
        CHECK(memcmp(pair->rows, whole->rows + i * n, n * sizeof *pair->rows) == 0);
        CHECK(i == 0 || memcmp(pair->rows, whole->rows, n * sizeof *pair->rows) != 0);
        vision_cache_release(pair);
    }
    vision_cache_release(whole);
    engine_status st;
    engine_get_status(e, &st);
    CHECK_INT(st.n_vision_encodes, 1 + N_PAIRS);
    engine_close(e);
    for (size_t i = 0; i < N_FRAMES; i++) {
        bytes_deinit(&pngs[i]);
    }
    answers_end();
    CHECK_DONE();
}
