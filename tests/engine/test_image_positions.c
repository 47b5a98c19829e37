/* Positions behind an image: an image takes many places of the cache and few positions. What is decoded token by
 * token must be what a prompt of the same tokens gives at positions counted by hand, and what a cached text in
 * front of an image leaves behind must not shift them. */
#include "base/file.h"
#include "engine/request.h"
#include "tests/engine/answers.h"

enum { N_ANSWER = 16 };

static bytes png;

/* A question, then an answer and a second question with the image; n_messages 1 or 3. */
static chat_input *talk(bool image_first, size_t n_messages)
{
    static const char *const texts[] = {
        "Tell me about the first thing, in many words so that this is not short.",
        "It is round and red, and it stands at the left.", "And what is this?"};
    chat_input *in = chat_input_create(1 << 20);
    in->messages = arena_calloc(in->arena, n_messages, sizeof *in->messages);
    in->n_messages = n_messages;
    for (size_t i = 0; i < n_messages; i++) {
        chat_part *parts = arena_calloc(in->arena, 2, sizeof *parts);
        size_t k = 0;
        if (i == (image_first ? 0 : 2)) {
            parts[k++] =
                (chat_part){.kind = CHAT_IMAGE, .data = (const uint8_t *)png.data, .data_bytes = png.len};
        }
        parts[k++] = (chat_part){.kind = CHAT_TEXT, .text = texts[i], .text_len = strlen(texts[i])};
        in->messages[i] = (chat_message){
            .role = i % 2 ? CHAT_ASSISTANT : CHAT_USER, .parts = parts, .n_parts = k, .is_string = k == 1};
    }
    in->params.max_tokens = N_ANSWER;
    in->params.ignore_eos = true;
    in->params.n_top_logprobs =
        0; /* a small model's words hardly depend on positions, their likelihoods do */
    return in;
}

static gen_request *prepared(engine *e, chat_input *in)
{
    gen_request *r = NULL;
    err_detail d = {0};
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    return r;
}

static answer said(engine *e, gen_request *r, uint64_t id)
{
    answer a = {0};
    answers_submit(e, r, id);
    answers_collect(&a, id, 1);
    return a;
}

/* The prompt with the first n tokens of its answer behind it, each one position further than the largest before. */
static void extend(gen_request *r, const int32_t *tokens, int32_t n)
{
    const int32_t len = (int32_t)r->prompt.len;
    int32_t next = 0;
    for (int32_t i = 0; i < len; i++) {
        const position p = r->positions[i];
        next = p.t >= next ? p.t + 1 : next;
        next = p.h >= next ? p.h + 1 : next;
        next = p.w >= next ? p.w + 1 : next;
    }
    CHECK(next < len); /* else the image took as many positions as places, and this proves nothing */
    r->positions = realloc(r->positions, (size_t)(len + n + 1) * sizeof *r->positions);
    for (int32_t i = 0; i < n; i++) {
        CHECK_INT(token_ids_push(&r->prompt, tokens[i]), ERR_OK);
        r->positions[len + i] = (position){next + i, next + i, next + i};
    }
}

static void test_decoded_is_prefilled(void)
{
    engine *e = answers_open(
        &(engine_options){.model_dir = check_data("tiny"),
                          .template_file = PARLEY_SOURCE_DIR "/tools/seedling/chat_template.jinja",
                          .n_ctx = 1024,
                          .n_parallel = 1,
                          .n_threads = 1,
                          .cache_type = "f32",
                          .exact = true});
    for (int drafts = 0; drafts <= 1; drafts++) {
        chat_input *in = talk(true, 1);
        in->params.no_draft = !drafts;
        const answer whole = said(e, prepared(e, in), 1);
        CHECK_INT(whole.n, N_ANSWER);
        for (int32_t n = 1; n < N_ANSWER; n++) {
            gen_request *r = prepared(e, in);
            extend(r, whole.ids, n);
            r->params.max_tokens = r->max_tokens = 1;
            const answer one = said(e, r, 10 + (uint64_t)n);
            CHECK_INT(one.n, 1);
            CHECK_INT(one.ids[0], whole.ids[n]);
            CHECK_NEAR(one.logprobs[0], whole.logprobs[n], 1e-3);
        }
        chat_input_destroy(in);
    }
    engine_close(e);
}

/* A text in the cache has no offset; the image behind it has one. */
static void test_image_behind_cached_text(void)
{
    const char *const template = PARLEY_SOURCE_DIR "/tools/seedling/chat_template.jinja";
    engine_options opt = {.model_dir = check_data("tiny"),
                          .template_file = template,
                          .n_ctx = 1024,
                          .n_parallel = 1,
                          .n_threads = 1,
                          .cache_type = "f32",
                          .exact = true};
    engine *cold = answers_open(&opt);
    opt.cache_mib = 64;
    engine *cached = answers_open(&opt);
    chat_input *first = talk(false, 1), *then = talk(false, 3);
    said(cached, prepared(cached, first), 1);
    const answer a = said(cached, prepared(cached, then), 2), b = said(cold, prepared(cold, then), 3);
    CHECK(a.timings.cache_n > 0);
    CHECK_INT(b.timings.cache_n, 0);
    CHECK_INT(a.n, N_ANSWER);
    for (int32_t i = 0; i < a.n; i++) {
        CHECK_INT(a.ids[i], b.ids[i]);
        CHECK_NEAR(a.logprobs[i], b.logprobs[i], 1e-3);
    }
    chat_input_destroy(first);
    chat_input_destroy(then);
    engine_close(cold);
    engine_close(cached);
}

/* Where a model takes videos whole: one run of placeholders between the template's own pair, and frames whose
 * times are positions. Six images at two a second are three pairs, a second apart: two positions. */
static void test_whole_video(void)
{
    enum { N_FRAMES = 6, VIDEO = 262 };
    engine *e = answers_open(&(engine_options){.model_dir = check_data("tiny_qwen2_5_vl"),
                                               .n_ctx = 1024,
                                               .n_parallel = 1,
                                               .n_threads = 1,
                                               .cache_mib = 8});
    chat_input *in = chat_input_create(1 << 20);
    chat_part parts[2] = {{.kind = CHAT_VIDEO}, {.kind = CHAT_TEXT, .text = "What?", .text_len = 5}};
    chat_file list[N_FRAMES];
    in->messages = arena_calloc(in->arena, 1, sizeof *in->messages);
    in->n_messages = 1;
    in->messages[0] = (chat_message){.role = CHAT_USER, .parts = parts, .n_parts = 2};
    for (size_t i = 0; i < N_FRAMES; i++) {
        list[i] = (chat_file){.data = (const uint8_t *)png.data, .bytes = png.len};
    }
    parts[0].video = (chat_video){.list = list, .n_list = N_FRAMES, .list_fps = 2, .fps = 2};
    in->params.max_tokens = N_ANSWER;
    in->params.ignore_eos = true;
    gen_request *r = prepared(e, in);
    size_t first = 0, n = 0;
    while (first < r->prompt.len && r->prompt.ids[first] != VIDEO) {
        first++;
    }
    while (first + n < r->prompt.len && r->prompt.ids[first + n] == VIDEO) {
        n++;
    }
    CHECK(n > 0 && n % 3 == 0 && n == (size_t)r->n_embed_rows);
    CHECK_INT(r->positions[first + n / 3].t - r->positions[first].t, 2);
    CHECK_INT(r->positions[first + n - 1].t - r->positions[first].t, 4);
    CHECK_INT(r->positions[first + n / 3].h, r->positions[first].h);
    const answer once = said(e, r, 1), again = said(e, prepared(e, in), 2);
    CHECK(once.n == N_ANSWER && again.n == N_ANSWER && again.timings.cache_n > 0);
    CHECK(memcmp(once.ids, again.ids, N_ANSWER * sizeof *once.ids) == 0);
    chat_input_destroy(in);
    engine_close(e);
}

int main(void)
{
    err_detail d = {0};
    bytes_init(&png, 1 << 20);
    CHECK_OK(file_read(&png, check_data("tiny/cases/img_a.png"), &d), d);
    answers_begin();
    test_decoded_is_prefilled();
    test_image_behind_cached_text();
    test_whole_video();
    answers_end();
    bytes_deinit(&png);
    CHECK_DONE();
}
