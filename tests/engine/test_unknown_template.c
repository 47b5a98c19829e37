/* A chat template that uses what is not known here: refused where every conversation comes to it, else used
 * as it is; what, where and what to do are named. One that does not show an image once refuses those alone. */
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "engine/request.h"
#include "tests/engine/answers.h"

static char file[] = "/tmp/parley_unknown_XXXXXX";
static err_detail d;

/* Opens the model with this template. */
static err_code open_with(const char *text)
{
    engine *e = NULL;
    engine_options opt = {.model_dir = check_data("tiny"),
                          .template_file = file,
                          .n_ctx = 256,
                          .n_parallel = 1,
                          .n_threads = 1};
    gen_params_init(&opt.defaults);
    FILE *f = fopen(file, "wb");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
    d = (err_detail){0};
    const err_code err = engine_open(&e, &opt, &d);
    CHECK((e != NULL) == (err == ERR_OK));
    engine_close(e);
    return err;
}

static void names(const char *what)
{
    if (!strstr(d.text, what)) {
        fprintf(stderr, "  \"%s\" does not name %s\n", d.text, what);
        CHECK(!"message");
    }
}

/* n images in one message, by a template that shows all of them so often. */
static err_code show_images(size_t n, const char *text)
{
    engine *e = NULL;
    gen_request *r = NULL;
    bytes png = bytes_empty(1 << 20);
    FILE *f = fopen(file, "wb");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
    CHECK_OK(file_read(&png, check_data("tiny/cases/img_a.png"), &d), d);
    e = answers_open(&(engine_options){.model_dir = check_data("tiny"),
                                       .template_file = file,
                                       .n_ctx = 1024,
                                       .n_parallel = 1,
                                       .n_threads = 1});
    chat_input *in = chat_input_create((size_t)1 << 20);
    chat_part parts[2];
    for (size_t i = 0; i < n; i++) {
        parts[i] = (chat_part){.kind = CHAT_IMAGE, .data = (const uint8_t *)png.data, .data_bytes = png.len};
    }
    chat_message one = {.role = CHAT_USER, .parts = parts, .n_parts = n};
    in->messages = &one;
    in->n_messages = 1;
    gen_params_init(&in->params);
    const err_code err = engine_prepare(e, &r, in, NULL, &d);
    CHECK((r != NULL) == (err == ERR_OK));
    gen_request_free(r);
    chat_input_destroy(in);
    engine_close(e);
    bytes_deinit(&png);
    return err;
}

static void test_images(void)
{
#define EACH(twice)                                                                                          \
    "{% for part in messages[0].content %}<|vision_start|><|image_pad|><|vision_end|>" twice "{% endfor %}"
#define AGAIN "<|vision_start|><|image_pad|><|vision_end|>"
    for (size_t n = 1; n <= 2; n++) {
        CHECK_OK(show_images(n, EACH("")), d);
        CHECK_INT(show_images(n, EACH(AGAIN)), ERR_INVALID);
        names(n == 1 ? "does not place the 1 images" : "does not place the 2 images");
        CHECK_INT(show_images(n, EACH("") AGAIN), ERR_INVALID);
        names("cannot show them all");
        CHECK_INT(show_images(n, "What?"), ERR_INVALID);
        names("cannot show them all");
    }
    CHECK_INT(show_images(2, AGAIN), ERR_INVALID);
    names("does not place the 2 images");
#undef EACH
#undef AGAIN
}

int main(void)
{
    log_set_level(LOG_OFF);
    const int fd = mkstemp(file);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK_OK(open_with("{{ messages[0].content }}{% if tools %}{{ tools | zork }}{% endif %}"), d);
    CHECK_INT(open_with("{% for m in messages %}\n{{ m.content | zork }}{% endfor %}"), ERR_UNSUPPORTED);
    names("the filter 'zork' (line 2)");
    names("--chat-template-file");
    names(file);
    CHECK_INT(open_with("{{ zork(messages) }}"), ERR_UNSUPPORTED);
    names("the function 'zork' (line 1)");
    CHECK_INT(open_with("{% zork %}"), ERR_INVALID);
    names("unknown tag 'zork'");
    names(file);
    answers_begin();
    test_images();
    answers_end();
    CHECK_INT(unlink(file), 0);
    CHECK_DONE();
}
