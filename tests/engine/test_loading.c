/* What an engine says and does while it loads: stages for the loading page, in order and with growing shares; warnings where
 * answers will be slower than they need be, and nowhere else; which weights of the tower are quantized. */
#define _GNU_SOURCE /* MCL_ONFAULT */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "base/file.h"
#include "base/log.h"
#include "compute/kernels/cpu.h"
#include "engine/engine.h"
#include "engine/engine_private.h"
#include "tests/check.h"
#include "tests/cpu.h"
#include "tests/model/random_families.h"
#include "tests/one_fails.h"

ONE_FAILS(int, pthread_create,
          (pthread_t * thread, const pthread_attr_t *how, void *(*run)(void *), void *ctx),
          (thread, how, run, ctx), EAGAIN)

/* Locks nothing. */
int __wrap_mlockall(int flags);
int __wrap_mlockall(int flags)
{
    CHECK_INT(flags, MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
    errno = ENOMEM;
    return one_fails_now("mlockall") ? -1 : 0;
}

static char log_path[FOLDER_NAME + 16];

typedef struct told {
    char stages[200]; /* each once, with a blank behind */
    double fraction;
    int n_quantizing;
} told;

static void on_load(void *ctx, const char *stage, double fraction)
{
    told *t = ctx;
    const size_t len = strlen(t->stages);
    CHECK(fraction >= t->fraction && fraction <= 1.0);
    t->fraction = fraction;
    t->n_quantizing += strcmp(stage, "quantizing") == 0;
    if (!strstr(t->stages, stage)) {
        (void)snprintf(t->stages + len, sizeof t->stages - len, "%s ", stage);
    }
}

static void on_event(void *ctx, gen_event *ev)
{
    (void)ctx;
    gen_event_free(ev);
}

/* Opens the tiny model; what was logged goes to `said`. */
static told load(bytes *said, size_t n_threads, unsigned cpu_mask, int n_bits)
{
    static char dir[4096];
    told t = {.fraction = 0};
    err_detail d = {0};
    engine *e = NULL;
    (void)snprintf(dir, sizeof dir, "%s", check_data("tiny"));
    engine_options opt = {.model_dir = dir,
                          .n_ctx = 512,
                          .n_parallel = 1,
                          .n_threads = n_threads,
                          .cpu_mask = cpu_mask,
                          .layer_bits = n_bits,
                          .vision_bits = n_bits,
                          .on_event = on_event,
                          .on_load = on_load,
                          .on_load_ctx = &t};
    gen_params_init(&opt.defaults);
    (void)remove(log_path);
    log_reopen();
    CHECK_OK(engine_open(&e, &opt, &d), d);
    size_t n = 0;
    for (const tensor *at; e && (at = vit_matrix(e->vision, n)); n++) { /* all of the tower's, or none */
        CHECK_INT(at->data && at->type == DTYPE_Q8, at->data && n_bits == 8);
    }
    CHECK(n > 5);
    engine_close(e);
    bytes_clear(said);
    CHECK_OK(file_read(said, log_path, &d), d);
    return t;
}

/* A model with sliding attention. */
static void make_windowed(char dir[FOLDER_NAME])
{
    char path[FOLDER_NAME + 16];
    const random_family *f = &RANDOM_FAMILIES[0];
    while (strcmp(f->name, "gpt_oss") != 0) {
        f++;
    }
    random_checkpoint_make(dir, f->config, f->forms);
    (void)snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    CHECK_INT(symlink(check_data("tiny/tokenizer.json"), path), 0);
}

/* Windows have room for so many rows of a prompt; who asks for more is told. */
static void test_batch_size(bytes *said)
{
    static const struct {
        bool has_windows;
        int32_t size;
    } CASES[] = {{true, 0}, {true, KV_WINDOW_ROWS}, {true, KV_WINDOW_ROWS + 1}, {false, KV_WINDOW_ROWS + 1}};
    char windowed[FOLDER_NAME];
    make_windowed(windowed);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        const int32_t size = CASES[i].size;
        const bool is_told = CASES[i].has_windows && size > KV_WINDOW_ROWS;
        char dir[4096], wanted[128];
        err_detail d = {0};
        engine *e = NULL;
        (void)snprintf(dir, sizeof dir, "%s", CASES[i].has_windows ? windowed : check_data("tiny"));
        engine_options opt = {.model_dir = dir,
                              .n_ctx = 512,
                              .n_parallel = 1,
                              .n_threads = 1,
                              .prefill_chunk = size,
                              .cpu_mask = test_cpu_mask(),
                              .on_event = on_event};
        gen_params_init(&opt.defaults);
        (void)remove(log_path);
        log_reopen();
        CHECK_OK(engine_open(&e, &opt, &d), d);
        CHECK_INT(e ? e->prefill_chunk : 0, is_told ? KV_WINDOW_ROWS
                                            : size > 0
                                                ? size
                                                : model_config_prompt_rows(model_get_config(e->model)));
        engine_close(e);
        bytes_clear(said);
        CHECK_OK(file_read(said, log_path, &d), d);
        (void)snprintf(wanted, sizeof wanted,
                       "--batch-size is %d; the windows of this model have room for %d", size,
                       KV_WINDOW_ROWS);
        CHECK_INT(strstr(bytes_str(said), "--batch-size") != NULL, is_told);
        CHECK_INT(strstr(bytes_str(said), wanted) != NULL, is_told);
    }
}

/* A folder with the files of the tiny model, of which one has `to` in the place of `from`. */
static void make_other(char folder[FOLDER_NAME], const char *file, const char *from, const char *to)
{
    static const char *const files[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                        "model.safetensors", "chat_template.jinja"};
    folder_make(folder);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char was[4200], path[FOLDER_NAME + 32], dir[4096];
        (void)snprintf(dir, sizeof dir, "%s", check_data("tiny"));
        (void)snprintf(was, sizeof was, "%s/%s", dir, files[i]);
        (void)snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        if (strcmp(files[i], file) != 0) {
            CHECK_INT(symlink(was, path), 0);
            continue;
        }
        bytes text = bytes_empty(1 << 24);
        err_detail d = {0};
        CHECK_OK(file_read(&text, was, &d), d);
        const char *at = strstr(bytes_str(&text), from);
        FILE *out = fopen(path, "w");
        CHECK(at && out);
        if (at && out) {
            CHECK(fprintf(out, "%.*s%s%s", (int)(at - bytes_str(&text)), bytes_str(&text), to,
                          at + strlen(from)) > 0);
            CHECK_INT(fclose(out), 0);
        }
        bytes_deinit(&text);
    }
}

/* A draft model that cannot judge the prompts of this one is refused, and told why. */
static void test_judges(bytes *said)
{
    char short_one[FOLDER_NAME], longer[FOLDER_NAME], other_word[FOLDER_NAME], windowed[FOLDER_NAME];
    char dir[4096], larger[4096];
    make_other(short_one, "config.json", "\"max_position_embeddings\": 32768",
               "\"max_position_embeddings\": 8");
    make_other(longer, "config.json", "\"max_position_embeddings\": 32768", "\"max_position_embeddings\": 9");
    make_other(other_word, "tokenizer.json", "\"content\": \"<|endoftext|>\"",
               "\"content\": \"<|endoftexts|>\"");
    make_windowed(windowed);
    (void)snprintf(dir, sizeof dir, "%s", check_data("tiny"));
    (void)snprintf(larger, sizeof larger, "%s", check_data("tiny_gemma4"));
    const struct {
        const char *dir, *why;
    } CASES[] = {
        {short_one, "has a context of 8 tokens, too few to judge prompts"},
        {longer, NULL}, /* one token more may be judged */
        {other_word, "has another vocabulary (token 1800 differs): take a small model of the same family"},
        {windowed, "has sliding attention, which sees too little to judge prompts"},
        {larger,
         "has a vocabulary of 263 tokens, the model one of 1826: take a small model of the same family"},
        {dir, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        engine_options opt = {
            .model_dir = dir,
            .n_ctx = 512,
            .n_parallel = 1,
            .n_threads = 1,
            .cpu_mask = test_cpu_mask(),
            .sparse = {.threshold = 64, .on = true, .chunk = 8, .keep = 0.5f, .draft_dir = CASES[i].dir},
            .on_event = on_event};
        char wanted[ERR_TEXT_MAX];
        err_detail d = {0};
        engine *e = NULL;
        gen_params_init(&opt.defaults);
        (void)remove(log_path);
        log_reopen();
        CHECK_OK(engine_open(&e, &opt, &d), d);
        CHECK(e && (e->sparse.draft != NULL) == !CASES[i].why);
        engine_close(e);
        bytes_clear(said);
        CHECK_OK(file_read(said, log_path, &d), d);
        (void)snprintf(wanted, sizeof wanted, "the draft model %s %s", CASES[i].dir,
                       CASES[i].why ? CASES[i].why : "");
        CHECK_INT(strstr(bytes_str(said), wanted) != NULL, CASES[i].why != NULL);
        if (CASES[i].why && !strstr(bytes_str(said), wanted)) {
            fprintf(stderr, "  wanted: %s\n  said: %s\n", wanted, bytes_str(said));
        }
    }
}

/* What the system refuses: memory that stays, which is told, and threads, without which there is no engine. */
static void test_refused(bytes *said)
{
    static const struct {
        const char *call;
        int n;
        size_t n_threads;
        const char *error, *warning;
    } CASES[] = {
        {NULL, 0, 2, NULL, NULL},
        {"mlockall", 1, 1, NULL,
         "memory is not locked: Cannot allocate memory; raise the limit (ulimit -l, or LimitMEMLOCK= of a"},
        {"pthread_create", 1, 1, "the system refused another thread", NULL},
        {"pthread_create", 2, 2, "the system refused another thread", NULL},
        {"pthread_create", 1, 2, "", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        static char dir[4096];
        err_detail d = {0}, d_log = {0};
        engine *e = NULL;
        (void)snprintf(dir, sizeof dir, "%s", check_data("tiny"));
        engine_options opt = {.model_dir = dir,
                              .n_ctx = 512,
                              .n_parallel = 1,
                              .n_threads = CASES[i].n_threads,
                              .lock_memory = true,
                              .cpu_mask = test_cpu_mask(),
                              .on_event = on_event};
        gen_params_init(&opt.defaults);
        (void)remove(log_path);
        log_reopen();
        one_fails(CASES[i].call, CASES[i].n);
        const err_code err = engine_open(&e, &opt, &d);
        CHECK(one_fails_over());
        CHECK_INT(err, CASES[i].error ? ERR_NOMEM : ERR_OK);
        CHECK(!CASES[i].error || !CASES[i].error[0] || strcmp(d.text, CASES[i].error) == 0);
        engine_close(e);
        bytes_clear(said);
        CHECK_OK(file_read(said, log_path, &d_log), d_log);
        CHECK_INT(strstr(bytes_str(said), "not locked") != NULL, CASES[i].warning != NULL);
        CHECK(!CASES[i].warning || strstr(bytes_str(said), CASES[i].warning));
    }
}

int main(void)
{
    static const char SLOW[] = "plain C kernels", MANY[] = "fewer would be faster";
    char folder[FOLDER_NAME];
    bytes said = bytes_empty(1 << 20);
    err_detail d = {0};
    const size_t n_cores = cpu_physical_cores();
    folder_make(folder);
    setenv("XDG_CACHE_HOME", folder, 1);
    (void)snprintf(log_path, sizeof log_path, "%s/log", folder);
    CHECK_OK(log_open(log_path, &d), d);

    told t = load(&said, n_cores, test_cpu_mask(), 0);
    CHECK_STR(t.stages, "text vision memory ready ");
    CHECK(t.fraction == 1.0);
    CHECK(!strstr(bytes_str(&said), MANY));
    CHECK_INT(strstr(bytes_str(&said), SLOW) != NULL,
              (cpu_flags() & test_cpu_mask() & (CPU_AVX2 | CPU_NEON)) == 0);
    t = load(&said, n_cores + 1, 0, 8);
    CHECK_STR(t.stages, "text quantizing vision memory ready ");
    CHECK(t.n_quantizing > 5);
    CHECK(strstr(bytes_str(&said), MANY) && strstr(bytes_str(&said), SLOW));
    test_batch_size(&said);
    test_judges(&said);
    test_refused(&said);
    bytes_deinit(&said);
    CHECK_DONE();
}
