/* A chat template that uses what is not known here: refused where every conversation comes to it, else used
 * as it is; what, where and what to do are named. */
#include <unistd.h>

#include "base/log.h"
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
    CHECK_INT(unlink(file), 0);
    CHECK_DONE();
}
