/* Encoded images and videos are kept and found again: the store by itself (budget, order of use,
 * what is held), and in the whole engine: a second question encodes nothing, the answers stay the
 * same, and nothing is ever taken for something else: another image, another key, other frames of a
 * video. */
#include "engine/cache/vision_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mailbox.h"
#include "engine/engine.h"
#include "engine/prepare_video.h"
#include "engine/request.h"
#include "tests/check.h"
#include "tests/cpu.h"

enum { WIDTH = 4, MAX_IDS = 64 };

/* ---- the store ---- */

static void key_of(uint8_t key[HASH_BYTES], const char *name)
{
    hash_sha256(key, name, strlen(name));
}

static void store(vision_cache *vc, const char *name, int32_t n_rows, float value)
{
    uint8_t key[HASH_BYTES];
    float rows[64 * WIDTH];
    double times[2] = {value, value + 1};
    patches p = {.t = 2, .h = 2, .w = n_rows, .n_tokens = n_rows, .timestamps = times};
    key_of(key, name);
    for (int32_t i = 0; i < n_rows * WIDTH; i++) {
        rows[i] = value;
    }
    vision_cache_store(vc, key, &p, 7, rows);
}

static const vision_features *find(vision_cache *vc, const char *name)
{
    uint8_t key[HASH_BYTES];
    key_of(key, name);
    return vision_cache_find(vc, key);
}

static bool has(vision_cache *vc, const char *name)
{
    const vision_features *f = find(vc, name);
    vision_cache_release(f);
    return f != NULL;
}

static void test_store(void)
{
    vision_cache *vc = vision_cache_create(1 << 20, WIDTH);
    CHECK(!has(vc, "a"));
    store(vc, "a", 3, 1.0f);
    const vision_features *f = find(vc, "a");
    CHECK(f != NULL);
    if (f) {
        CHECK_INT(f->n_rows, 3);
        CHECK_INT(f->t, 2);
        CHECK_INT(f->pixels, 7);
        CHECK(f->rows[3 * WIDTH - 1] == 1.0f && f->timestamps[1] == 2.0);
    }
    store(vc, "a", 5, 2.0f); /* a key means one thing for ever */
    const vision_features *again = find(vc, "a");
    CHECK(again == f);
    vision_cache_clear(vc, NULL);
    CHECK(!has(vc, "a"));
    CHECK(f && f->rows[0] == 1.0f); /* held, so still there */
    CHECK_INT(vision_cache_get_stats(vc).bytes, 0);
    vision_cache_release(f);
    vision_cache_release(again);
    vision_cache_release(NULL);
    vision_cache_destroy(vc);
}

static void test_budget(void)
{
    vision_cache *vc = vision_cache_create(1 << 20, WIDTH);
    store(vc, "one", 32, 0);
    const size_t each = vision_cache_get_stats(vc).bytes;
    vision_cache_destroy(vc);

    vc = vision_cache_create(3 * each + each / 2, WIDTH);
    store(vc, "a", 32, 1);
    store(vc, "b", 32, 2);
    store(vc, "c", 32, 3);
    CHECK(has(vc, "a")); /* b is now the least recently used */
    const vision_features *held = find(vc, "c");
    store(vc, "d", 32, 4);
    CHECK(!has(vc, "b") && has(vc, "a") && has(vc, "c") && has(vc, "d"));
    store(vc, "e", 32, 5);
    store(vc, "f", 32, 6);
    store(vc, "g", 32, 7);
    CHECK(!has(vc, "c") && held && held->rows[0] == 3.0f);
    vision_cache_release(held);
    vision_cache_stats s = vision_cache_get_stats(vc);
    CHECK_INT(s.n_entries, 3);
    CHECK_INT(s.bytes, 3 * each);
    CHECK_INT(s.n_evictions, 4);
    vision_cache_destroy(vc);

    vc = vision_cache_create(each - 1, WIDTH);
    store(vc, "too large", 32, 1);
    CHECK(!has(vc, "too large"));
    vision_cache_destroy(vc);
    vision_cache_destroy(NULL);
}

/* Of one scope alone; one at a time, the least recently used first. */
static void test_dropping(void)
{
    const processor_config pc = {.patch_size = 16};
    vision_cache *vc = vision_cache_create(1 << 20, WIDTH);
    uint8_t file[HASH_BYTES], key[HASH_BYTES];
    float rows[WIDTH] = {0};
    const patches p = {.t = 1, .h = 1, .w = 1, .n_tokens = 1}; /* an image: no times */
    const uint64_t second = 6;
    key_of(file, "file");
    CHECK(!vision_cache_evict_one(vc));
    for (uint64_t scope = 5; scope < 8; scope++) {
        vision_cache_key(key, scope, file, false, &pc);
        vision_cache_store(vc, key, &p, 1, rows);
        const vision_features *f = vision_cache_find(vc, key);
        CHECK(f && f->timestamps == NULL && f->n_rows == 1 && f->h == 1 && f->w == 1);
        vision_cache_release(f);
    }
    CHECK_INT(vision_cache_get_stats(vc).n_hits, 3);
    vision_cache_clear(vc, &second);
    CHECK_INT(vision_cache_get_stats(vc).n_entries, 2);
    CHECK(vision_cache_find(vc, key) && vision_cache_evict_one(vc)); /* the last one is held */
    vision_cache_key(key, 5, file, false, &pc);
    CHECK(!vision_cache_find(vc, key));
    vision_cache_key(key, 7, file, false, &pc);
    const vision_features *held = vision_cache_find(vc, key);
    CHECK(held != NULL);
    vision_cache_release(held);
    vision_cache_release(held);
    CHECK_INT(vision_cache_get_stats(vc).n_evictions, 1);
    CHECK_INT(vision_cache_get_stats(vc).n_hits, 5);
    vision_cache_destroy(vc);
}

/* Leaves `byte` where the next function's variables will lie. */
static __attribute__((noinline)) void soil_stack(int byte)
{
    volatile uint8_t room[4096];
    for (size_t i = 0; i < sizeof room; i++) {
        room[i] = (uint8_t)byte;
    }
}

/* Everything that the rows depend on changes the key, and nothing else does. */
static void test_keys(void)
{
    processor_config pc = {.patch_size = 16, .temporal_patch_size = 2, .merge_size = 2, .video_fps = 2};
    uint8_t file[HASH_BYTES], other_file[HASH_BYTES], keys[21][HASH_BYTES];
    size_t n = 0;
    key_of(file, "file");
    key_of(other_file, "other file");
    vision_cache_key(keys[n++], 0, file, false, &pc);
    vision_cache_key(keys[n++], 1, file, false, &pc);
    vision_cache_key(keys[n++], 0, other_file, false, &pc);
    vision_cache_key(keys[n++], 0, file, true, &pc);
    pc.patch_size++;
    vision_cache_key(keys[n++], 0, file, false, &pc);
    pc.temporal_patch_size++;
    vision_cache_key(keys[n++], 0, file, false, &pc);
    pc.merge_size++;
    vision_cache_key(keys[n++], 0, file, false, &pc);
    int32_t *const frames[] = {&pc.video_min_frames, &pc.video_max_frames, &pc.video_frames};
    int64_t *const pixels[] = {&pc.image_min_pixels, &pc.image_max_pixels, &pc.video_min_pixels,
                               &pc.video_max_pixels};
    for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
        *frames[i] = 9;
        vision_cache_key(keys[n++], 0, file, false, &pc);
    }
    for (size_t i = 0; i < ARRAY_LEN(pixels); i++) {
        *pixels[i] = 9;
        vision_cache_key(keys[n++], 0, file, false, &pc);
    }
    pc.video_fps = 3;
    vision_cache_key(keys[n++], 0, file, false, &pc);
    for (int i = 0; i < 3; i++) {
        pc.mean[i] = 0.5f;
        vision_cache_key(keys[n++], 0, file, false, &pc);
        pc.std[i] = 0.5f;
        vision_cache_key(keys[n++], 0, file, false, &pc);
    }
    CHECK(n == ARRAY_LEN(keys));
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) {
            CHECK(memcmp(keys[i], keys[k], HASH_BYTES) != 0);
        }
    }
    uint8_t again[HASH_BYTES];
    vision_cache_key(again, 0, file, false, &pc);
    CHECK(memcmp(again, keys[n - 1], HASH_BYTES) == 0);
    for (int byte = 1; byte < 3; byte++) {
        soil_stack(byte);
        vision_cache_key(again, 0, file, false, &pc);
        CHECK(memcmp(again, keys[n - 1], HASH_BYTES) == 0);
    }
}

/* ---- the engine ---- */

static mailbox *events;

static void on_event(void *ctx, gen_event *ev)
{
    (void)ctx;
    if (!mailbox_push(events, ev)) {
        check_fail(__FILE__, __LINE__, "the event mailbox is full");
        gen_event_free(ev);
    }
}

static engine *open_engine(int64_t vision_cache_mib)
{
    static char dir[4096], template[4096];
    snprintf(dir, sizeof dir, "%s", check_data("tiny"));
    snprintf(template, sizeof template, "%s/tools/seedling/chat_template.jinja", PARLEY_SOURCE_DIR);
    engine_options opt = {.model_dir = dir,
                          .template_file = template,
                          .n_ctx = 2048,
                          .n_parallel = 2,
                          .n_threads = 1,
                          .cpu_mask = test_cpu_mask(),
                          .vision_cache_mib = vision_cache_mib,
                          .on_event = on_event};
    gen_params_init(&opt.defaults);
    opt.defaults.temperature = 0.0f;
    engine *e = NULL;
    err_detail d = {0};
    CHECK_OK(engine_open(&e, &opt, &d), d);
    if (!e) {
        exit(1);
    }
    return e;
}

/* One question about samples. */
typedef struct question {
    const char *before; /* a system prompt, or NULL */
    const char *files[2];
    const char *text;
    chat_video video;
    uint64_t scope;
    bool no_cache;
} question;

typedef struct answer {
    int32_t ids[MAX_IDS], n;
    float logprobs[MAX_IDS]; /* tell apart what a small model says the same words about */
    gen_timings timings;
} answer;

static chat_part file_part(chat_input *in, const char *name)
{
    char path[4096];
    bytes file;
    err_detail d = {0};
    snprintf(path, sizeof path, "%s/assets/samples/%s", PARLEY_SOURCE_DIR, name);
    bytes_init(&file, (size_t)16 << 20);
    CHECK_OK(file_read(&file, path, &d), d);
    uint8_t *copy = arena_alloc(in->arena, file.len);
    memcpy(copy, file.data, file.len);
    bool is_video = strstr(name, ".mp4") || strstr(name, ".webm");
    chat_part part = {.kind = is_video ? CHAT_VIDEO : CHAT_IMAGE, .data = copy, .data_bytes = file.len};
    bytes_deinit(&file);
    return part;
}

static gen_request *prepare(engine *e, const question *q)
{
    err_detail d = {0};
    gen_request *r = NULL;
    chat_input *in = chat_input_create((size_t)32 << 20);
    size_t n_files = q->files[1] ? 2 : 1;
    in->messages = arena_calloc(in->arena, 2, sizeof *in->messages);
    if (q->before) {
        chat_message *system = &in->messages[in->n_messages++];
        *system = (chat_message){.role = CHAT_SYSTEM, .n_parts = 1, .is_string = true};
        system->parts = arena_calloc(in->arena, 1, sizeof *system->parts);
        system->parts[0] = (chat_part){.kind = CHAT_TEXT, .text = q->before, .text_len = strlen(q->before)};
    }
    chat_message *user = &in->messages[in->n_messages++];
    *user = (chat_message){.role = CHAT_USER, .n_parts = n_files + 1};
    user->parts = arena_calloc(in->arena, n_files + 1, sizeof *user->parts);
    for (size_t i = 0; i < n_files; i++) {
        user->parts[i] = file_part(in, q->files[i]);
        user->parts[i].video = q->video;
    }
    user->parts[n_files] = (chat_part){.kind = CHAT_TEXT, .text = q->text, .text_len = strlen(q->text)};
    CHECK_OK(json_parse(&in->keep, "{\"enable_thinking\":false}", 25, 8, &d), d);
    in->template_kwargs = json_root(in->keep);
    in->params.max_tokens = 6;
    in->params.n_top_logprobs = 0;
    in->params.no_cache = q->no_cache;
    in->scope = q->scope;
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    chat_input_destroy(in);
    return r;
}

/* Runs prepared requests together to their ends; answers[i] belongs to requests[i]. */
static void run_all(engine *e, gen_request **requests, answer *answers, int n)
{
    static uint64_t next_id = 1;
    const uint64_t first = next_id;
    err_detail d = {0};
    memset(answers, 0, (size_t)n * sizeof *answers);
    for (int i = 0; i < n; i++) {
        CHECK_OK(engine_submit(e, requests[i], next_id++, &d), d);
    }
    for (int n_done = 0; n_done < n;) {
        void *message = NULL;
        if (!mailbox_pop_wait(events, &message, 300000)) {
            check_fail(__FILE__, __LINE__, "no event for five minutes");
            return;
        }
        gen_event *ev = message;
        answer *a = &answers[ev->request_id - first];
        for (int32_t i = 0; ev->type == GEN_TOKENS && i < ev->n_tokens && a->n < MAX_IDS; i++) {
            a->logprobs[a->n] = ev->logprobs[i].logprob;
            a->ids[a->n++] = ev->tokens[i];
        }
        if (ev->type == GEN_DONE) {
            CHECK(ev->finish != GEN_FINISH_ERROR);
            a->timings = ev->timings;
            n_done++;
        }
        gen_event_free(ev);
    }
}

static answer ask(engine *e, const question *q)
{
    answer a;
    gen_request *r = prepare(e, q);
    run_all(e, &r, &a, 1);
    return a;
}

static bool is_same(const answer *a, const answer *b)
{
    return a->n == b->n && memcmp(a->ids, b->ids, (size_t)a->n * sizeof a->ids[0]) == 0 &&
           memcmp(a->logprobs, b->logprobs, (size_t)a->n * sizeof a->logprobs[0]) == 0;
}

static uint64_t encodes(engine *e)
{
    engine_status s;
    engine_get_status(e, &s);
    return s.n_vision_encodes;
}

static uint64_t hits(engine *e)
{
    engine_status s;
    engine_get_status(e, &s);
    return s.n_vision_hits;
}

/* The same question with and without the cache: the answers must agree, and so many media must be
 * encoded. */
static void check_question(engine *e, const question *q, uint64_t n_encodes, int32_t n_cached)
{
    question plain = *q;
    plain.no_cache = true;
    const uint64_t before = encodes(e);
    const answer a = ask(e, q);
    CHECK_INT(encodes(e) - before, n_encodes);
    CHECK_INT(a.timings.n_media_cached, n_cached);
    const answer b = ask(e, &plain);
    CHECK_INT(b.timings.n_media_cached, 0);
    CHECK(is_same(&a, &b));
    CHECK(a.n > 0);
}

static void test_images(engine *e)
{
    const char *color = "color.png", *star = "count-color.jpg";
    check_question(e, &(question){.files = {color}, .text = "What color is it?"}, 1, 0);
    check_question(e, &(question){.files = {color}, .text = "Where is it?"}, 0, 1);
    /* another prompt in front of it */
    check_question(e, &(question){.before = "Answer in one word.", .files = {color}, .text = "What is it?"},
                   0, 1);
    /* another image under the same words is never taken for it, alone or side by side */
    check_question(e, &(question){.files = {star}, .text = "What color is it?"}, 1, 0);
    check_question(e, &(question){.files = {star, color}, .text = "What color is it?"}, 0, 2);
    check_question(e, &(question){.files = {color, star}, .text = "What color is it?"}, 0, 2);
    const answer a = ask(e, &(question){.files = {color}, .text = "What color is it?"}),
                 b = ask(e, &(question){.files = {star}, .text = "What color is it?"});
    CHECK(!is_same(&a, &b)); /* so the comparisons here can fail */
    /* another key shares nothing */
    check_question(e, &(question){.files = {color}, .text = "What color is it?", .scope = 1}, 1, 0);
    check_question(e, &(question){.files = {color}, .text = "What color is it?", .scope = 1}, 0, 1);
    CHECK(hits(e) >= 7);
    engine_clear_cache(e, NULL);
    check_question(e, &(question){.files = {color}, .text = "What color is it?"}, 1, 0);
}

static void test_videos(engine *e)
{
    const char *ball = "ball-moves.mp4";
    check_question(e, &(question){.files = {ball}, .text = "What happens?"}, 1, 0);
    gen_request *r = prepare(e, &(question){.files = {ball}, .text = "Which way?"});
    CHECK(r && r->media[0].features && !r->media[0].patches.pixels); /* not even decoded */
    gen_request_free(r);
    check_question(e, &(question){.files = {ball}, .text = "Which way does the circle move?"}, 0, 1);
    /* other frames of it are something else */
    const chat_video few = {.n_frames = 4}, late = {.start_s = 1};
    check_question(e, &(question){.files = {ball}, .text = "What happens?", .video = few}, 1, 0);
    check_question(e, &(question){.files = {ball}, .text = "What happens?", .video = late}, 1, 0);
    check_question(e, &(question){.files = {ball}, .text = "Really?", .video = few}, 0, 1);
}

/* Frames of a list at another rate: the same files, but other ones of them are shown. */
static void test_list_rates(void)
{
    chat_file list[3] = {
        {(const uint8_t *)"a", 1, NULL}, {(const uint8_t *)"b", 1, NULL}, {(const uint8_t *)"c", 1, NULL}};
    chat_part part = {.kind = CHAT_VIDEO, .video = {.list = list, .n_list = 3, .list_fps = 1}};
    uint8_t one[HASH_BYTES], two[HASH_BYTES], known[HASH_BYTES];
    prepare_video_hash(one, &part);
    part.video.list_fps = 2;
    prepare_video_hash(two, &part);
    CHECK(memcmp(one, two, HASH_BYTES) != 0);
    /* a video whose hash is known is the same as the one whose bytes are */
    chat_part whole = {.kind = CHAT_VIDEO, .data = (const uint8_t *)"video", .data_bytes = 4};
    prepare_video_hash(one, &whole);
    hash_sha256(known, "video", 4);
    whole.hash = known;
    whole.data = NULL;
    prepare_video_hash(two, &whole);
    CHECK(memcmp(one, two, HASH_BYTES) == 0);
    /* and one of which neither is known is like no other */
    whole.hash = NULL;
    whole.fd = 1;
    prepare_video_hash(one, &whole);
    prepare_video_hash(two, &whole);
    CHECK(memcmp(one, two, HASH_BYTES) != 0);
}

/* Two requests prepared before either has encoded: the later one takes what the earlier one
 * made. */
static void test_together(engine *e)
{
    engine_clear_cache(e, NULL);
    const question q = {.files = {"size.png"}, .text = "Which is larger?"};
    const uint64_t before = encodes(e);
    gen_request *both[2] = {prepare(e, &q), prepare(e, &q)};
    answer answers[2];
    CHECK(!both[0]->media[0].features && !both[1]->media[0].features);
    run_all(e, both, answers, 2);
    CHECK_INT(encodes(e) - before, 1);
    CHECK(is_same(&answers[0], &answers[1]));
    CHECK_INT(answers[0].timings.n_media_cached + answers[1].timings.n_media_cached, 1);
}

int main(void)
{
    if (!check_data("tiny")) {
        CHECK_SKIP("tests/data/tiny is not in this checkout");
    }
    test_store();
    test_budget();
    test_dropping();
    test_keys();
    test_list_rates();
    events = mailbox_create(4096);
    engine *e = open_engine(64);
    test_images(e);
    test_videos(e);
    test_together(e);
    engine_close(e);
    e = open_engine(0);
    check_question(e, &(question){.files = {"color.png"}, .text = "What color is it?"}, 1, 0);
    check_question(e, &(question){.files = {"color.png"}, .text = "What color is it?"}, 1, 0);
    CHECK_INT(hits(e), 0);
    engine_close(e);
    mailbox_destroy(events, NULL);
    CHECK_DONE();
}
