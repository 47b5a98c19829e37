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

int main(void)
{
    char folder[] = "/tmp/parley_inspect_XXXXXX", path[4096], vision[4096];
    CHECK(mkdtemp(folder) != NULL);
    json_doc *a = inspect(check_data("tiny"));
    CHECK_STR(json_str(json_get(json_root(a), "family"), ""), "qwen3_5");
    CHECK_STR(json_str(json_get(json_root(a), "vision"), ""), "yes");
    CHECK_STR(json_str(json_get(json_root(a), "mtp"), ""), "yes");
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
