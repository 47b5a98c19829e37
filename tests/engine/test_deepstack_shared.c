/* Images through the whole engine on a model with DeepStack: an answer is the same when the image's
 * features, or the state behind it, come from a cache. */
#include "tests/engine/answers.h"

#include "base/bytes.h"
#include "base/file.h"
#include "base/log.h"
#include "tests/folder.h"

enum { LENGTH = 16 };

static const char *text = "What is this?";

/* An image, with `before` said first by the system if it is not NULL. */
static gen_request *request(engine *e, const bytes *image, const char *before, bool no_cache)
{
    err_detail d = {0};
    gen_request *r = NULL;
    chat_input *in = chat_input_create((size_t)32 << 20);
    in->messages = arena_calloc(in->arena, 2, sizeof *in->messages);
    if (before) {
        chat_message *system = &in->messages[in->n_messages++];
        *system = (chat_message){.role = CHAT_SYSTEM, .n_parts = 1, .is_string = true};
        system->parts = arena_calloc(in->arena, 1, sizeof *system->parts);
        system->parts[0] = (chat_part){.kind = CHAT_TEXT, .text = before, .text_len = strlen(before)};
    }
    chat_message *user = &in->messages[in->n_messages++];
    *user = (chat_message){.role = CHAT_USER, .n_parts = 2};
    user->parts = arena_calloc(in->arena, 2, sizeof *user->parts);
    user->parts[0] =
        (chat_part){.kind = CHAT_IMAGE, .data = (const uint8_t *)image->data, .data_bytes = image->len};
    user->parts[1] = (chat_part){.kind = CHAT_TEXT, .text = text, .text_len = strlen(text)};
    gen_params_init(&in->params);
    in->params.max_tokens = LENGTH;
    in->params.temperature = 0.0f;
    in->params.ignore_eos = true;
    in->params.no_cache = no_cache;
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    chat_input_destroy(in);
    if (!r) {
        exit(1);
    }
    return r;
}

static answer ask(engine *e, const bytes *image, const char *before, bool no_cache)
{
    static uint64_t id;
    answer a = {0};
    answers_submit(e, request(e, image, before, no_cache), ++id);
    answers_collect(&a, id, 1);
    CHECK_INT(a.n, LENGTH);
    return a;
}

static void check_same(const answer *a, const answer *b)
{
    CHECK(memcmp(a->ids, b->ids, LENGTH * sizeof *a->ids) == 0);
}

int main(void)
{
    char dir[4096], path[4200];
    const char *shared = check_shared_dir();
    bytes image;
    err_detail d = {0};
    if (!shared) {
        CHECK_SKIP("the full reference outputs are not beside the checkout");
    }
    log_set_level(LOG_OFF);
    snprintf(dir, sizeof dir, "%s/reference/qwen3_vl", shared);
    snprintf(path, sizeof path, "%s/cases/img_a.png", dir);
    bytes_init(&image, 1 << 20);
    CHECK_OK(file_read(&image, path, &d), d);
    answers_begin();
    engine *e = answers_open(&(engine_options){.model_dir = dir,
                                               .n_ctx = 2048,
                                               .n_parallel = 2,
                                               .cache_mib = 64,
                                               .vision_cache_mib = 16,
                                               .n_threads = 2});
    const answer plain = ask(e, &image, NULL, true), first = ask(e, &image, NULL, false),
                 again = ask(e, &image, NULL, false);
    check_same(&first, &plain);
    check_same(&again, &plain);
    CHECK(again.timings.cache_n > 0);
    /* elsewhere in the prompt: the features alone are known */
    const answer moved_plain = ask(e, &image, "Be brief.", true), moved = ask(e, &image, "Be brief.", false);
    check_same(&moved, &moved_plain);
    CHECK_INT(moved.timings.n_media_cached, 1);
    engine_close(e);

    /* Read back from disk in blocks of tokens, which may end inside the image: its rest is encoded
     * again, with what is added in the first layers. */
    char folder[FOLDER_NAME];
    folder_make(folder);
    const engine_options kept = {.model_dir = dir,
                                 .n_ctx = 2048,
                                 .n_parallel = 1,
                                 .cache_mib = 64,
                                 .vision_cache_mib = 0,
                                 .cache_disk = folder,
                                 .exact = true,
                                 .n_threads = 2};
    e = answers_open(&kept);
    const char *before = "Be brief, be brief, be brief, be brief, be brief, be brief, be brief, be brief.";
    ask(e, &image, before, false);
    engine_close(e);
    text = "Who made it?";
    e = answers_open(&kept);
    const answer other = ask(e, &image, before, false), other_plain = ask(e, &image, before, true);
    check_same(&other, &other_plain);
    printf("%d of %d tokens were read back\n", other.timings.cache_n, other_plain.timings.prompt_n);
    CHECK(other.timings.cache_n > 0);
    engine_close(e);
    answers_end();
    bytes_deinit(&image);
    CHECK_DONE();
}
