/* inspect: what it says of a folder and of a GGUF file, and why one cannot be loaded. */
#include "engine/inspect.h"

#include <unistd.h>

#include "base/json.h"
#include "tests/check.h"
#include "tests/model/tool.h"

enum { DEPTH = 4 };

static double number(const json_doc *doc, const char *name)
{
    return json_num(json_get(json_root(doc), name), -1);
}

static json_doc *inspect(const char *path)
{
    json_doc *doc = NULL;
    bytes out;
    err_detail d = {0};
    bytes_init(&out, 1 << 16);
    CHECK_OK(inspect_model(&out, path, NULL, true, &d), d);
    CHECK_OK(json_parse(&doc, bytes_str(&out), out.len, DEPTH, &d), d);
    bytes_deinit(&out);
    return doc;
}

/* Every row of the report of tests/data/tiny, in order. What can be computed by hand is: bf16 takes two bytes a
 * parameter; the states' sizes differ by their 4096 x 2 heads x 32 x 2 numbers. */
static void check_rows(const json_doc *doc)
{
    static const struct {
        const char *name, *text; /* text NULL: a number */
        double number;
    } ROWS[] = {
        {"folder", "", 0},
        {"family", "qwen3_5", 0},
        {"parameters", NULL, 608556},
        {"weight_bytes", NULL, 2 * 608556},
        {"bytes_bf16", NULL, 2 * 608556},
        {"weight_bytes_q8", NULL, 1081464},
        {"weight_bytes_q4", NULL, 957464},
        {"layers", NULL, 4},
        {"attention_layers", NULL, 1},
        {"deltanet_layers", NULL, 3},
        {"hidden_size", NULL, 64},
        {"vocab_size", NULL, 1888},
        {"context", NULL, 32768},
        {"vision", "yes", 0},
        {"mtp", "yes", 0},
        {"chat_template", "no", 0},
        {"state_bytes_4096", NULL, 30016 + 4096 * 128 * 2},
        {"state_bytes_4096_q8", NULL, 619840},
        {"state_bytes_4096_q4", NULL, 357696},
        {"state_bytes_4096_f32", NULL, 30016 + 4096 * 128 * 4},
    };
    const json *member = json_child(json_root(doc));
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++, member = json_next(member)) {
        CHECK_STR(member ? json_key(member) : NULL, ROWS[i].name);
        if (member && !ROWS[i].text) {
            CHECK_NEAR(json_num(member, -1), ROWS[i].number, 0);
        } else if (member && ROWS[i].text[0]) {
            CHECK_STR(json_str(member, ""), ROWS[i].text);
        }
        if (!member) {
            return;
        }
    }
    CHECK(member == NULL);
}

int main(void)
{
    char folder[] = "/tmp/parley_inspect_XXXXXX", path[4096], vision[4096];
    CHECK(mkdtemp(folder) != NULL);
    json_doc *a = inspect(check_data("tiny"));
    check_rows(a);
    CHECK(number(a, "bytes_bf16") > 0 && number(a, "bytes_q8_0") < 0);
    /* All but norms, vision and embeddings shrinks. */
    CHECK(number(a, "weight_bytes_q8") < number(a, "weight_bytes"));
    CHECK(number(a, "weight_bytes_q4") < number(a, "weight_bytes_q8"));
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    snprintf(vision, sizeof vision, "%s/mmproj-m.gguf", folder);
    CHECK_INT(tool_run_3("make_gguf", check_data("tiny"), path, "q8_0"), 0);
    json_doc *b = inspect(path);
    CHECK(number(b, "parameters") == number(a, "parameters"));
    CHECK(number(b, "bytes_q8_0") > 0 && number(b, "bytes_f32") > 0);
    CHECK(number(b, "weight_bytes") < number(a, "weight_bytes"));
    CHECK(number(b, "weight_bytes_q4") <= number(b, "weight_bytes"));
    CHECK_INT(truncate(path, 100000), 0);
    bytes out;
    err_detail d = {0};
    bytes_init(&out, 1 << 16);
    CHECK_INT(inspect_model(&out, path, NULL, false, &d), ERR_CORRUPT);
    CHECK(strstr(d.text, "m.gguf") != NULL && out.len == 0);
    bytes_deinit(&out);
    json_free(a);
    json_free(b);
    CHECK(unlink(path) == 0 && unlink(vision) == 0 && rmdir(folder) == 0);
    CHECK_DONE();
}
