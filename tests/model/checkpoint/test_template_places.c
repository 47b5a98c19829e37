/* checkpoint: the places where a folder's chat template may stand, and which of them counts. */
#include "model/checkpoint/checkpoint.h"

#include "base/limits.h"
#include "tests/check.h"
#include "tests/folder.h"

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "we");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* The template of a folder with the weights of "tiny". */
static void check_template(const char *folder, const char *expected)
{
    checkpoint *ck = NULL;
    err_detail d = {0};
    bytes text;
    bytes_init(&text, LIMIT_TEMPLATE_BYTES);
    CHECK_OK(checkpoint_open(&ck, folder, NULL, &d), d);
    CHECK_OK(checkpoint_read_template(ck, &text, &d), d);
    CHECK_STR(bytes_str(&text), expected);
    checkpoint_close(ck);
    bytes_deinit(&text);
}

int main(void)
{
    static const char *const WEIGHTS[] = {"config.json", "model.safetensors", "tokenizer.json"};
    char folder[FOLDER_NAME], from[8192], to[8192];
    folder_make(folder);
    for (size_t i = 0; i < ARRAY_LEN(WEIGHTS); i++) {
        snprintf(from, sizeof from, "%s/%s", check_data("tiny"), WEIGHTS[i]);
        snprintf(to, sizeof to, "%s/%s", folder, WEIGHTS[i]);
        CHECK(symlink(from, to) == 0);
    }
    check_template(folder, "");
    write_file(folder, "tokenizer_config.json", "{\"chat_template\":\"of the tokenizer\"}");
    check_template(folder, "of the tokenizer");
    write_file(folder, "tokenizer_config.json",
               "{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"tools\"},{\"name\":\"default\","
               "\"template\":\"the default\"}]}");
    check_template(folder, "the default");
    write_file(folder, "processor_config.json", "{\"patch_size\":16}");
    check_template(folder, "the default");
    write_file(folder, "processor_config.json", "{\"chat_template\":\"of the processor\"}");
    check_template(folder, "of the processor");
    write_file(folder, "chat_template.json", "{\"chat_template\":\"in its own document\"}");
    check_template(folder, "in its own document");
    write_file(folder, "chat_template.jinja", "in its own file");
    check_template(folder, "in its own file");
    CHECK_DONE();
}
