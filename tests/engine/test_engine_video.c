/* Videos through the whole engine: the reference outputs (ids, positions, greedy tokens), the
 * default model's answers about real files, what a request may choose, bad videos, and no second
 * encoding of a video that is still known.
 */
#include "engine/engine.h"

#include <stdbool.h>
#include <string.h>

#include "base/file.h"
#include "base/mailbox.h"
#include "engine/request.h"
#include "tests/check.h"
#include "tests/cpu.h"
#include "tests/vision/safetensors.h"
#include "vision/video/video_worker.h"

enum { MAX_IDS = 256, MAX_PARTS = 4, FRAMES_CAP = 16 };

typedef struct answer {
    int32_t ids[MAX_IDS], n;
    bytes text;
    gen_finish finish;
    gen_timings timings;
    int32_t vision_done, vision_total; /* of the last progress event in that phase */
} answer;

static mailbox *events;

static void on_event(void *ctx, gen_event *ev)
{
    (void)ctx;
    if (!mailbox_push(events, ev)) {
        check_fail(__FILE__, __LINE__, "the event mailbox is full");
        gen_event_free(ev);
    }
}

/* as_reference: the way in which the reference outputs were made. Only exact rows give their tokens
 * on every processor: in fast mode prompts are rounded where the hardware does so. */
static engine *open_engine(const char *dir, bool as_reference, const char *video_program)
{
    engine_options opt = {.model_dir = dir,
                          .n_ctx = 2048,
                          .n_parallel = 1,
                          .n_threads = 2,
                          .cpu_mask = test_cpu_mask(),
                          .on_event = on_event,
                          .cache_mib = 64,
                          .video_outer_pair = as_reference,
                          .exact = as_reference,
                          .video_program = video_program};
    gen_params_init(&opt.defaults);
    opt.defaults.temperature = 0.0f;
    engine *e = NULL;
    err_detail d = {0};
    CHECK_OK(engine_open(&e, &opt, &d), d);
    return e;
}

/* Runs a prepared request to its end. */
static void answer_request(engine *e, gen_request *r, answer *a)
{
    static uint64_t id = 1;
    err_detail d = {0};
    *a = (answer){0};
    bytes_init(&a->text, 1 << 16);
    CHECK_OK(engine_submit(e, r, ++id, &d), d);
    for (bool done = false; !done;) {
        void *message = NULL;
        if (!mailbox_pop_wait(events, &message, 300000)) {
            check_fail(__FILE__, __LINE__, "no event for five minutes");
            return;
        }
        gen_event *ev = message;
        for (int32_t i = 0; ev->type == GEN_TOKENS && i < ev->n_tokens && a->n < MAX_IDS; i++) {
            size_t len = 0;
            bool special = false;
            const char *text = engine_token_bytes(e, ev->tokens[i], &len, &special);
            a->ids[a->n++] = ev->tokens[i];
            if (!special) {
                bytes_append(&a->text, text, len);
            }
        }
        if (ev->type == GEN_PROGRESS && ev->total > 0 && ev->phase == GEN_PHASE_VISION) {
            a->vision_done = ev->processed;
            a->vision_total = ev->total;
        }
        if (ev->type == GEN_DONE) {
            a->finish = ev->finish;
            a->timings = ev->timings;
            done = true;
        }
        gen_event_free(ev);
    }
}

/* ---- chats ---- */

static chat_part text_part(const char *text)
{
    return (chat_part){.kind = CHAT_TEXT, .text = text, .text_len = strlen(text)};
}

/* Reads a file into the chat's arena. */
static chat_file load(chat_input *in, const char *path)
{
    err_detail d = {0};
    bytes file;
    bytes_init(&file, (size_t)16 << 20);
    CHECK_OK(file_read(&file, path, &d), d);
    uint8_t *copy = arena_alloc(in->arena, file.len + 1);
    if (file.len) {
        memcpy(copy, file.data, file.len);
    }
    chat_file f = {.data = copy, .bytes = file.len};
    bytes_deinit(&file);
    return f;
}

static chat_part file_part(chat_input *in, chat_part_kind kind, const char *path)
{
    chat_file f = load(in, path);
    return (chat_part){
        .kind = kind, .data = f.data, .data_bytes = f.bytes, .param = "messages[0].content[0]"};
}

/* A user's message of up to MAX_PARTS parts; the chat keeps `kwargs`. */
static void set_message(chat_input *in, const chat_part *parts, size_t n, const char *kwargs)
{
    err_detail d = {0};
    in->messages = arena_calloc(in->arena, 1, sizeof *in->messages);
    in->messages[0] = (chat_message){.role = CHAT_USER, .n_parts = n};
    in->messages[0].parts = arena_calloc(in->arena, n, sizeof *parts);
    memcpy(in->messages[0].parts, parts, n * sizeof *parts);
    in->n_messages = 1;
    CHECK_OK(json_parse(&in->keep, kwargs, strlen(kwargs), 8, &d), d);
    in->template_kwargs = json_root(in->keep);
}

/* ---- the reference ---- */

static void check_reference(const char *dir, const char *name, bool with_image)
{
    char path[4200];
    safetensors f;
    tensor ids = {0}, positions = {0}, delta = {0}, greedy = {0};
    snprintf(path, sizeof path, "%s/cases/%s.safetensors", dir, name);
    if (!safetensors_open(&f, path)) {
        check_fail(__FILE__, __LINE__, path);
        return;
    }
    if (!safetensors_find(&f, "input_ids", &ids) || !safetensors_find(&f, "position_ids", &positions) ||
        !safetensors_find(&f, "rope_delta", &delta) || !safetensors_find(&f, "greedy", &greedy)) {
        check_fail(__FILE__, __LINE__, "a tensor is missing");
        safetensors_close(&f);
        return;
    }
    engine *e = open_engine(dir, true, NULL);
    chat_input *in = chat_input_create((size_t)16 << 20);
    chat_file frames[FRAMES_CAP];
    chat_part moving = {.kind = CHAT_VIDEO, .video = {.list = frames, .list_fps = 4}, .param = "video"};
    for (size_t i = 0; i < FRAMES_CAP; i++) {
        snprintf(path, sizeof path, "%s/cases/frames/%03zu.png", dir, i);
        if (!file_exists(path)) {
            break;
        }
        frames[moving.video.n_list++] = load(in, path);
    }
    snprintf(path, sizeof path, "%s/cases/img_a.png", dir);
    if (with_image) {
        const chat_part parts[] = {file_part(in, CHAT_IMAGE, path), text_part("picture, then film "), moving,
                                   text_part("same?")};
        set_message(in, parts, 4, "{}");
    } else {
        set_message(in, (const chat_part[]){moving, text_part("What happens?")}, 2, "{}");
    }
    in->params.max_tokens = (int32_t)greedy.dims[0];
    in->params.ignore_eos = true;
    gen_request *r = NULL;
    err_detail d = {0};
    answer a;
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    if (r) {
        const int64_t *expected = (const int64_t *)ids.data, *where = (const int64_t *)positions.data;
        size_t n = ids.dims[0], n_wrong = 0;
        CHECK_INT(r->prompt.len, n);
        for (size_t i = 0; i < n && r->prompt.len == n; i++) {
            const position p = r->positions[i];
            n_wrong += r->prompt.ids[i] != expected[i] || p.t != where[i] || p.h != where[n + i] ||
                       p.w != where[2 * n + i];
        }
        CHECK_INT(n_wrong, 0);
        CHECK_INT(r->rope_delta, *(const int64_t *)delta.data);
        answer_request(e, r, &a);
        CHECK_INT(a.n, greedy.dims[0]);
        for (int32_t i = 0; i < a.n; i++) {
            CHECK_INT(a.ids[i], ((const int64_t *)greedy.data)[i]);
        }
        printf("%s %s: %zu prompt tokens, %d greedy tokens as in the reference\n", strrchr(dir, '/') + 1,
               name, n, a.n);
        bytes_deinit(&a.text);
    }
    chat_input_destroy(in);
    engine_close(e);
    safetensors_close(&f);
}

static void test_reference(void)
{
    static const char *const SETS[] = {"qwen3_5", "qwen3_5_tied"};
    const char *shared = check_shared_dir();
    char dir[4096];
    for (size_t i = 0; shared && i < ARRAY_LEN(SETS); i++) {
        snprintf(dir, sizeof dir, "%s/reference/%s", shared, SETS[i]);
        check_reference(dir, "video", false);
        check_reference(dir, "image_video", true);
    }
}

/* ---- the default model ---- */

static const char *asset(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/assets/%s", PARLEY_SOURCE_DIR, name);
    return path;
}

/* The prepared request about a sample video; NULL with detail filled. */
static gen_request *ask(engine *e, const char *file, const char *question, const chat_video *settings,
                        const prepare_hooks *hooks, err_detail *d)
{
    char name[256];
    chat_input *in = chat_input_create((size_t)32 << 20);
    snprintf(name, sizeof name, "samples/%s", file);
    chat_part parts[2] = {file_part(in, CHAT_VIDEO, asset(name)), text_part(question)};
    parts[0].video = *settings;
    set_message(in, parts, 2, "{\"enable_thinking\":false}");
    in->params.max_tokens = 80;
    gen_request *r = NULL;
    *d = (err_detail){0};
    err_code err = engine_prepare(e, &r, in, hooks, d);
    CHECK((err == ERR_OK) == (r != NULL));
    chat_input_destroy(in);
    return r;
}

static bool contains(const char *text, const char *part)
{
    size_t n = strlen(part);
    for (; *text; text++) {
        if (strncasecmp(text, part, n) == 0) {
            return true;
        }
    }
    return false;
}

/* Every question of the samples, read in a process of its own, is answered rightly. The race
 * detector needs a minute for each of them: there one says all about the threads. */
#ifdef __SANITIZE_THREAD__
enum { SAMPLES_LEAST = 1, SAMPLES_MOST = 1 };
#else
enum { SAMPLES_LEAST = 6, SAMPLES_MOST = 100 };
#endif
static void test_samples(void)
{
    err_detail d = {0};
    bytes file;
    json_doc *doc = NULL;
    int n = 0;
    engine *e = open_engine(asset("seedling"), false, "/proc/self/exe");
    CHECK(engine_get_info(e)->has_video);
    bytes_init(&file, 1 << 20);
    CHECK_OK(file_read(&file, asset("samples/samples.json"), &d), d);
    CHECK_OK(json_parse(&doc, bytes_str(&file), file.len, 16, &d), d);
    for (const json *s = json_child(json_root(doc)); s; s = json_next(s)) {
        if (strcmp(json_str(json_get(s, "kind"), ""), "video") != 0 || n == SAMPLES_MOST) {
            continue;
        }
        const char *sample = json_str(json_child(json_get(s, "files")), ""),
                   *question = json_str(json_get(s, "question"), "");
        gen_request *r = ask(e, sample, question, &(chat_video){0}, NULL, &d);
        CHECK_OK(r ? ERR_OK : ERR_INVALID, d);
        if (!r) {
            continue;
        }
        answer a;
        CHECK_INT(gen_request_get_info(r).n_videos, 1);
        CHECK_INT(gen_request_get_info(r).n_images, 0);
        answer_request(e, r, &a);
        printf("%s | %s | %s\n", sample, question, bytes_str(&a.text));
        for (const json *must = json_child(json_get(s, "expected")); must; must = json_next(must)) {
            CHECK(contains(bytes_str(&a.text), json_str(must, "?")));
        }
        CHECK_INT(a.timings.n_videos, 1);
        CHECK_INT(a.timings.route, GEN_ROUTE_MEDIA);
        CHECK(a.vision_total == 0 || a.vision_done == a.vision_total);
        bytes_deinit(&a.text);
        n++;
    }
    CHECK(n >= SAMPLES_LEAST);
    json_free(doc);
    bytes_deinit(&file);
    engine_close(e);
}

typedef struct progress {
    int32_t done, total;
    bool cancel;
} progress;

static void on_progress(void *ctx, gen_phase phase, int32_t done, int32_t total)
{
    progress *p = ctx;
    CHECK_INT(phase, GEN_PHASE_MEDIA);
    CHECK(done <= total);
    p->done = done;
    p->total = total;
}

static bool wants_cancel(void *ctx)
{
    return ((progress *)ctx)->cancel;
}

/* What a request chooses, how the reading is told, and that it can be stopped. */
static void test_requests(void)
{
    static const struct {
        chat_video video;
        int32_t frames, units;
        double first, last; /* times of the first and last unit */
    } CASES[] = {
        {{0}, 8, 4, 0.28, 3.68},
        {{.fps = 1}, 4, 2, 0.66, 3.3},
        {{.n_frames = 5}, 5, 3, 0.5, 3.96},
        {{.max_frames = 2}, 2, 1, 1.98, 1.98},
        {{.start_s = 2, .end_s = 3, .n_frames = 2}, 2, 1, 2.48, 2.48},
    };
    engine *e = open_engine(asset("seedling"), false, NULL);
    err_detail d;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        progress p = {0};
        const prepare_hooks hooks = {on_progress, wants_cancel, &p};
        gen_request *r = ask(e, "ball-moves.mp4", "What happens?", &CASES[i].video, &hooks, &d);
        CHECK_OK(r ? ERR_OK : ERR_INVALID, d);
        if (!r) {
            continue;
        }
        const patches *shown = &r->media[0].patches;
        CHECK_INT(p.total, CASES[i].frames);
        CHECK_INT(p.done, CASES[i].frames);
        CHECK_INT(shown->t, CASES[i].units);
        CHECK_NEAR(shown->timestamps[0], CASES[i].first, 0.05);
        CHECK_NEAR(shown->timestamps[shown->t - 1], CASES[i].last, 0.05);
        gen_request_free(r);
    }
    progress stop = {.cancel = true};
    const prepare_hooks hooks = {on_progress, wants_cancel, &stop};
    CHECK(ask(e, "ball-moves.mp4", "What happens?", &(chat_video){0}, &hooks, &d) == NULL);
    CHECK(ask(e, "ball-moves.mp4", "?", &(chat_video){.start_s = 60}, NULL, &d) == NULL);
    CHECK_STR(d.name, "video_range");
    CHECK_STR(d.param, "messages[0].content[0]");
    CHECK(ask(e, "ball-moves.mp4", "?", &(chat_video){.n_frames = 5000}, NULL, &d) == NULL);
    CHECK(ask(e, "read-text.jpg", "?", &(chat_video){0}, NULL, &d) == NULL);
    CHECK_STR(d.name, "unsupported_video_media_type");
    engine_close(e);
}

/* The same question again is answered from the kept state; other frames of the same video are
 * another video. */
static void test_known_video(void)
{
    engine *e = open_engine(asset("seedling"), false, NULL);
    static const chat_video VIDEOS[] = {{.fps = 0}, {.fps = 0}, {.start_s = 0.04}};
    answer answers[ARRAY_LEN(VIDEOS)] = {0};
    engine_status before, after;
    for (size_t i = 0; i < ARRAY_LEN(VIDEOS); i++) {
        err_detail d;
        engine_get_status(e, &before);
        gen_request *r = ask(e, "ball-moves.mp4", "Which way does the circle move?", &VIDEOS[i], NULL, &d);
        answer_request(e, r, &answers[i]);
        engine_get_status(e, &after);
        CHECK_INT(after.n_vision_encodes - before.n_vision_encodes, i == 1 ? 0 : 1);
    }
    CHECK(answers[1].timings.cache_n > 100);
    CHECK(answers[2].timings.cache_n < 40);
    CHECK_STR(bytes_str(&answers[0].text), bytes_str(&answers[1].text));
    for (size_t i = 0; i < ARRAY_LEN(VIDEOS); i++) {
        bytes_deinit(&answers[i].text);
    }
    engine_close(e);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], VIDEO_WORKER_COMMAND) == 0) {
        return video_worker_main();
    }
    events = mailbox_create(1 << 12);
    test_samples();
    test_requests();
    test_known_video();
    test_reference();
    mailbox_destroy(events, NULL);
    CHECK_DONE();
}
