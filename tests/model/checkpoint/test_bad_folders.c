/* What is wrong with a folder is said so that a person can put it right: weights or their index
 * missing, files of two models, another model's tokenizer, a vision tower that a conversion left
 * out. */
#include "tests/check.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "model/model.h"
#include "tests/model/random_families.h"
#include "tests/said.h"

static const char PLAIN[] =
    "{\"model_type\":\"qwen3\"," RANDOM_SIZES ",\"intermediate_size\":80" RANDOM_ROPE("") "}";

static err_code open_folder(const char *dir, bool weights_only, bool *sees, err_detail *d)
{
    model *m = NULL;
    err_code err = model_open(&m, dir, &(model_open_options){.weights_only = weights_only}, d);
    CHECK((m != NULL) == (err == ERR_OK));
    *sees = m && model_get_config(m)->has_vision;
    model_close(m);
    return err;
}

#define CHECK_REFUSED(dir, weights_only, code, words)                                                        \
    do {                                                                                                     \
        err_detail detail_ = {0};                                                                            \
        bool sees_ = false;                                                                                  \
        CHECK_INT(open_folder((dir), (weights_only), &sees_, &detail_), (code));                             \
        if (!strstr(detail_.text, (words))) {                                                                \
            fprintf(stderr, "  \"%s\"\n", detail_.text);                                                     \
            CHECK(!"the message holds " words);                                                              \
        }                                                                                                    \
    } while (0)

static void move(const char *dir, const char *from, const char *to)
{
    char a[256], b[256];
    snprintf(a, sizeof a, "%s/%s", dir, from);
    snprintf(b, sizeof b, "%s/%s", dir, to);
    CHECK_INT(rename(a, b), 0);
}

static void test_missing_weights(void)
{
    char dir[64];
    random_checkpoint_make(dir, PLAIN, RANDOM_TEXT_ONLY);
    move(dir, "model.safetensors", "other.safetensors");
    CHECK_REFUSED(dir, true, ERR_NOT_FOUND,
                  "the weights are missing, or of weights in several files the index");
    move(dir, "config.json", "model.safetensors.index.json");
    CHECK_REFUSED(dir, true, ERR_NOT_FOUND, "config.json: there is no such file");
}

/* The second file is that of a wider model; or the same model's under other names. */
static void test_two_models(void)
{
    char dir[64], second[64], from[256], to[256];
    static const char INDEX[] = "{\"weight_map\":{\"model.embed_tokens.weight\":\"model.safetensors\","
                                "\"model.norm.weight\":\"other.safetensors\"%s}}";
    static const struct {
        const char *config;
        unsigned forms;
        const char *map, *words;
    } cases[] = {
        {"{\"model_type\":\"qwen3\"," RANDOM_SIZES
         ",\"hidden_size\":32,\"intermediate_size\":80" RANDOM_ROPE("") "}",
         RANDOM_TEXT_ONLY, "",
         "tensor model.norm.weight should have the shape [64] by config.json, but is [32]"},
        {PLAIN, 0, "", "tensor model.norm.weight is not in other.safetensors"},
        {PLAIN, 0, NULL, "are these the files of two models?"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char index[512];
        random_checkpoint_make(dir, PLAIN, RANDOM_TEXT_ONLY);
        random_checkpoint_make(second, cases[i].config, cases[i].forms);
        snprintf(from, sizeof from, "%s/model.safetensors", second);
        snprintf(to, sizeof to, "%s/other.safetensors", dir);
        CHECK_INT(rename(from, to), 0);
        if (cases[i].map) {
            snprintf(index, sizeof index, INDEX, cases[i].map);
        } else {
            snprintf(index, sizeof index,
                     "{\"weight_map\":{\"model.norm.weight\":\"model.safetensors\","
                     "\"model.language_model.norm.weight\":\"other.safetensors\"}}");
        }
        random_text(dir, "model.safetensors.index.json", index);
        err_detail d = {0};
        bool sees = false;
        CHECK_INT(open_folder(dir, true, &sees, &d), ERR_CORRUPT);
        if (!strstr(d.text, cases[i].words)) {
            fprintf(stderr, "  case %zu: \"%s\"\n", i, d.text);
            CHECK(!"message");
        }
    }
}

static void copy_tokenizer(const char *dir)
{
    bytes text;
    err_detail d = {0};
    bytes_init(&text, 1 << 24);
    CHECK_OK(file_read(&text, check_data("tiny/tokenizer.json"), &d), d);
    random_text(dir, "tokenizer.json", bytes_str(&text));
    bytes_deinit(&text);
}

static void test_tokenizers(void)
{
    char dir[64];
    bool sees = true;
    err_detail d = {0};
    random_checkpoint_make(dir, PLAIN, RANDOM_TEXT_ONLY);
    CHECK_REFUSED(dir, false, ERR_NOT_FOUND, "tokenizer.json");
    copy_tokenizer(dir);
    CHECK_OK(open_folder(dir, false, &sees, &d), d);

    random_checkpoint_make(dir,
                           "{\"model_type\":\"qwen3\"," RANDOM_SIZES
                           ",\"intermediate_size\":80,\"vocab_size\":500" RANDOM_ROPE("") "}",
                           RANDOM_TEXT_ONLY);
    copy_tokenizer(dir);
    CHECK_REFUSED(dir, false, ERR_CORRUPT,
                  ": the tokenizer has ids up to 1825, but the model knows 500: it belongs to another model; "
                  "take the one published with these weights");

    random_checkpoint_make(dir,
                           "{\"model_type\":\"qwen3\"," RANDOM_SIZES
                           ",\"intermediate_size\":80,\"eos_token_id\":1887" RANDOM_ROPE("") "}",
                           RANDOM_TEXT_ONLY);
    copy_tokenizer(dir);
    CHECK_REFUSED(dir, false, ERR_CORRUPT, "eos_token_id is 1887, but the tokenizer ends at 1825: ");
}

/* config.json tells of a tower that is not in the files: the model reads text. */
static void test_blind_conversion(void)
{
    char dir[64];
    bool sees = true;
    err_detail d = {0};
    random_checkpoint_make(
        dir,
        "{\"model_type\":\"qwen3_vl\",\"vision_config\":{\"deepstack_visual_indexes\":[0,2]},"
        "\"text_config\":{" RANDOM_SIZES
        ",\"intermediate_size\":80" RANDOM_ROPE(",\"mrope_section\":[4,2,2]") "}}",
        0);
    CHECK_OK(open_folder(dir, true, &sees, &d), d);
    CHECK(!sees);
}

/* A chat template that cannot be read: where it is, what is wrong, what to do. */
static void test_template(void)
{
    char dir[64];
    random_checkpoint_make(dir, PLAIN, RANDOM_TEXT_ONLY);
    copy_tokenizer(dir);
    random_text(dir, "chat_template.jinja", "{{ 1 }}\n{% if %}");
    CHECK_REFUSED(dir, false, ERR_INVALID, "chat template of /tmp/");
    CHECK_REFUSED(dir, false, ERR_INVALID, "chat template, line 2: ");
    CHECK_REFUSED(dir, false, ERR_INVALID, "; --chat-template-file gives it another one");
    random_text(dir, "chat_template.jinja", "{{ 1 }}");
    bool sees = false;
    err_detail d = {0};
    CHECK_OK(open_folder(dir, false, &sees, &d), d);
    CHECK_STR(d.text, "");
    move(dir, "chat_template.jinja", "no_template.jinja");
    for (size_t more = 0; more < 2; more++) { /* inside a document */
        static const char end[] = "\"}";
        bytes text = bytes_empty(LIMIT_TEMPLATE_BYTES + 100);
        bytes_append_str(&text, "{\"chat_template\":\"");
        for (size_t i = 0; i < LIMIT_TEMPLATE_BYTES + more; i++) {
            bytes_append_char(&text, 'a');
        }
        bytes_append_str(&text, end);
        random_text(dir, "chat_template.json", bytes_str(&text));
        bytes_deinit(&text);
        if (more) {
            CHECK_REFUSED(dir, false, ERR_LIMIT, ": the chat template is too large");
        } else {
            CHECK_OK(open_folder(dir, false, &sees, &d), d);
        }
    }
}

/* A family whose tower is not supported reads text, and the log says so. */
static void test_text_alone(void)
{
    char dir[64], words[200];
    bool sees = true;
    err_detail d = {0};
    random_checkpoint_make(
        dir,
        "{\"model_type\":\"mistral3\",\"vision_config\":{},\"text_config\":{\"model_type\":"
        "\"ministral3\"," RANDOM_SIZES ",\"intermediate_size\":80" RANDOM_ROPE("") "}}",
        RANDOM_TEXT_ONLY);
    log_set_level(LOG_WARN);
    said_begin();
    CHECK_OK(open_folder(dir, true, &sees, &d), d);
    said_end();
    log_set_level(LOG_OFF);
    CHECK(!sees);
    snprintf(words, sizeof words,
             "%s: vision towers of the family mistral3 are not supported; it reads text alone\n", dir);
    CHECK_HAS(said_err, words);
}

int main(void)
{
    log_set_level(LOG_OFF);
    test_template();
    test_missing_weights();
    test_two_models();
    test_tokenizers();
    test_blind_conversion();
    test_text_alone();
    CHECK_DONE();
}
