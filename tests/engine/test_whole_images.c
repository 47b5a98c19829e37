/* Images and videos of a model whose images see all of themselves, or none of what comes later: what
 * stands around them in the prompt, and that chunks, company and the prefix cache leave every answer as
 * it is. */
#include <unistd.h>

#include "base/compiler.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/request.h"
#include "tests/engine/answers.h"

enum { N_ANSWER = 12, N_FRAMES = 12, N_SHOWN = 6, ROWS_OF_IMAGE = 70, ROWS_OF_FRAME = 60, N_COMPANY = 3 };

static const char TEMPLATE[] =
    "{{ bos_token }}{% for m in messages %}<|turn>{{ m.role }}\n{% if m.content is string %}{{ m.content }}"
    "{% else %}{% for c in m.content %}{% if c.type == 'text' %}{{ c.text }}{% else %}<|{{ c.type }}|>"
    "{% endif %}{% endfor %}{% endif %}<turn|>\n{% endfor %}{% if add_generation_prompt %}<|turn>model\n"
    "{% endif %}";

static char template_file[] = "/tmp/parley_whole_images_XXXXXX";
static bytes png, frame_bytes[N_FRAMES];
static chat_file frames[N_FRAMES];

static chat_part text_part(const char *text)
{
    return (chat_part){.kind = CHAT_TEXT, .text = text, .text_len = strlen(text)};
}

static chat_part image_part(void)
{
    return (chat_part){.kind = CHAT_IMAGE, .data = (const uint8_t *)png.data, .data_bytes = png.len};
}

static chat_part video_part(void)
{
    return (chat_part){.kind = CHAT_VIDEO, .video = {.list = frames, .n_list = N_FRAMES, .list_fps = 4}};
}

/* A question about an image, its answer, and one about the image and a video; n_messages 1 or 3. */
static chat_input *talk(size_t n_messages)
{
    chat_input *in = chat_input_create(1 << 20);
    chat_part *parts = arena_calloc(in->arena, 7, sizeof *parts);
    parts[0] = text_part("This is the first of them, ");
    parts[1] = image_part();
    parts[2] = text_part(" and what is in the picture?");
    parts[3] = text_part("It is a house.");
    parts[4] = video_part();
    parts[5] = text_part(" Is that the same as ");
    parts[6] = image_part();
    in->messages = arena_calloc(in->arena, 3, sizeof *in->messages);
    in->messages[0] = (chat_message){.role = CHAT_USER, .parts = parts, .n_parts = 3};
    in->messages[1] =
        (chat_message){.role = CHAT_ASSISTANT, .parts = parts + 3, .n_parts = 1, .is_string = true};
    in->messages[2] = (chat_message){.role = CHAT_USER, .parts = parts + 4, .n_parts = 3};
    in->n_messages = n_messages;
    in->params.max_tokens = N_ANSWER;
    in->params.ignore_eos = true;
    in->params.n_top_logprobs = 0;
    return in;
}

static gen_request *prepared(engine *e, size_t n_messages)
{
    gen_request *r = NULL;
    err_detail d = {0};
    chat_input *in = talk(n_messages);
    CHECK_OK(engine_prepare(e, &r, in, NULL, &d), d);
    chat_input_destroy(in);
    if (!r) {
        exit(1);
    }
    return r;
}

static answer said(engine *e, size_t n_messages, uint64_t id)
{
    answer a = {0};
    answers_submit(e, prepared(e, n_messages), id);
    answers_collect(&a, id, 1);
    CHECK_INT(a.n, N_ANSWER);
    return a;
}

static engine *open_as(const char *name, int32_t chunk, int64_t cache_mib, bool exact)
{
    char dir[4096];
    snprintf(dir, sizeof dir, "%s", check_data(name));
    return answers_open(&(engine_options){.model_dir = dir,
                                          .template_file = template_file,
                                          .n_ctx = 1024,
                                          .n_parallel = N_COMPANY,
                                          .n_threads = 2,
                                          .cache_type = "f32",
                                          .prefill_chunk = chunk,
                                          .cache_mib = cache_mib,
                                          .exact = exact});
}

/* The prompt's text, one sign for the rows of an image or a frame. */
static void check_prompt(engine *e)
{
    static const char wanted[] =
        "<bos><|turn>user\nThis is the first of them, <|image>#<image|> and what is in the picture?<turn|>\n"
        "<|turn>assistant\nIt is a house.<turn|>\n<|turn>user\n"
        "00:00 <|image>#<image|> 00:00 <|image>#<image|> 00:01 <|image>#<image|> "
        "00:01 <|image>#<image|> 00:02 <|image>#<image|> 00:02 <|image>#<image|>"
        " Is that the same as <|image>#<image|><turn|>\n<|turn>model\n";
    gen_request *r = prepared(e, 3);
    bytes text = bytes_empty(1 << 16);
    int32_t row = 0;
    CHECK_INT(r->n_embed_rows, 2 * ROWS_OF_IMAGE + N_SHOWN * ROWS_OF_FRAME);
    for (int32_t i = 0; i < (int32_t)r->prompt.len; i++) {
        const bool is_row = row < r->n_embed_rows && r->embed_rows[row] == i;
        size_t n = 0;
        const char *piece = engine_token_bytes(e, r->prompt.ids[i], &n, NULL);
        if (is_row && (row == 0 || r->embed_rows[row - 1] != i - 1)) {
            bytes_append_char(&text, '#');
        } else if (!is_row) {
            bytes_append(&text, piece, n);
        }
        row += is_row;
        CHECK_INT(r->positions[i].t, i); /* media are counted as text is */
    }
    CHECK_STR(bytes_str(&text), wanted);
    CHECK_INT(r->rope_delta, 0);
    bytes_deinit(&text);
    gen_request_free(r);
}

static void check_same(const answer *a, const answer *b, bool bits)
{
    for (int32_t i = 0; i < N_ANSWER; i++) {
        CHECK_INT(a->ids[i], b->ids[i]);
        CHECK_NEAR(a->logprobs[i], b->logprobs[i], bits ? 0 : 2e-3);
    }
}

/* Chunks of 8 tokens are as large as an image where it must be whole; where it need not, they stay. */
static void check_model(const char *name, bool is_whole)
{
    engine *plain = open_as(name, 512, 0, true);
    check_prompt(plain);
    const answer whole = said(plain, 3, 1);
    answer together[N_COMPANY] = {0};
    for (size_t i = 0; i < N_COMPANY; i++) {
        answers_submit(plain, prepared(plain, i == 1 ? 1 : 3), 10 + i);
    }
    answers_collect(together, 10, N_COMPANY);
    check_same(&together[0], &whole, true);
    check_same(&together[2], &whole, true);
    engine_close(plain);

    engine *small = open_as(name, 8, 0, true);
    const answer chunks = said(small, 3, 20);
    check_same(&chunks, &whole, true);
    const int32_t n = chunks.timings.prompt_n;
    CHECK(is_whole ? chunks.n_chunks >= 2 + N_SHOWN && chunks.n_chunks < n / 8 : chunks.n_chunks >= n / 8);
    if (check_failures) {
        fprintf(stderr, "  %d chunks of %d tokens\n", chunks.n_chunks, n);
    }
    engine_close(small);

    engine *cached = open_as(name, 512, 64, true);
    said(cached, 1, 30);
    const answer second = said(cached, 3, 31), again = said(cached, 3, 32);
    CHECK(second.timings.cache_n > ROWS_OF_IMAGE);
    CHECK(again.timings.cache_n > second.timings.cache_n);
    check_same(&second, &whole, true);
    check_same(&again, &whole, true);
    engine_close(cached);

    engine *fast = open_as(name, 64, 0, false); /* in tiles, which round in other places */
    const answer rounded = said(fast, 1, 40), other = said(fast, 1, 41);
    check_same(&rounded, &other, true);
    engine_close(fast);
}

int main(void)
{
    char path[64];
    err_detail d = {0};
    const int fd = mkstemp(template_file);
    CHECK(fd >= 0 && write(fd, TEMPLATE, sizeof TEMPLATE - 1) == (ssize_t)sizeof TEMPLATE - 1 &&
          close(fd) == 0);
    bytes_init(&png, 1 << 20);
    CHECK_OK(file_read(&png, check_data("tiny_gemma4_images/cases/img_a.png"), &d), d);
    for (int i = 0; i < N_FRAMES; i++) {
        snprintf(path, sizeof path, "tiny/cases/frames/%03d.png", i);
        bytes_init(&frame_bytes[i], 1 << 20);
        CHECK_OK(file_read(&frame_bytes[i], check_data(path), &d), d);
        frames[i] = (chat_file){.data = (const uint8_t *)frame_bytes[i].data, .bytes = frame_bytes[i].len};
    }
    log_set_level(LOG_OFF);
    answers_begin();
    check_model("tiny_gemma4_images", true);
    check_model("tiny_gemma4_clipped", false);
    answers_end();
    for (int i = 0; i < N_FRAMES; i++) {
        bytes_deinit(&frame_bytes[i]);
    }
    bytes_deinit(&png);
    CHECK(unlink(template_file) == 0);
    CHECK_DONE();
}
