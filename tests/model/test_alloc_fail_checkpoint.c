/* Every allocation of our own (--wrap) fails once while checkpoints of different forms are opened: with experts one by one,
 * whose table of tensors grows; with experts in blocks; with a tower; a folder in parts; as GGUF; converted at load. */
#include "tests/alloc_fail.h"

#include <dirent.h>

#include "tests/folder.h"
#include "tests/model/random_families.h"
#include "tests/model/tiny.h"
#include "tests/model/tool.h"
#include "tests/open_files.h"

#include "base/log.h"
#include "model/checkpoint/checkpoint.h"
#include "model/model_parts.h"

enum { MAX_POINTS = 3000 };

typedef struct form {
    const char *path;
    compute *c;
    int n_bits;
    ino_t kept; /* of the file of quantized weights that is there already; 0: none */
} form;

static char cache[FOLDER_NAME];

/* The number of the only file of quantized weights. */
static ino_t kept_file(void)
{
    char dir[FOLDER_NAME + 10];
    int n = 0;
    ino_t found = 0;
    snprintf(dir, sizeof dir, "%s/parley", cache);
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] != '.') {
            found = e->d_ino;
            n++;
        }
    }
    if (d) {
        closedir(d);
    }
    CHECK_INT(n, 1);
    return found;
}

static const random_family *family_of(const char *name)
{
    size_t i = 0;
    while (strcmp(RANDOM_FAMILIES[i].name, name) != 0) {
        i++;
    }
    return &RANDOM_FAMILIES[i];
}

static err_code open_parts(void *context)
{
    const form *f = context;
    checkpoint *ck = NULL;
    tokenizer *tok = NULL;
    bytes text;
    bytes_init(&text, 1 << 20);
    err_code err = checkpoint_open(&ck, f->path, NULL, NULL);
    CHECK((ck != NULL) == (err == ERR_OK));
    err_code read = err ? err : checkpoint_read_template(ck, &text, NULL);
    err = read == ERR_NOT_FOUND ? ERR_OK : read; /* it needs none */
    read = err ? err : checkpoint_open_tokenizer(ck, &tok, NULL);
    CHECK((tok != NULL) == (read == ERR_OK && ck));
    err = read == ERR_NOT_FOUND ? ERR_OK : read;
    tokenizer_close(tok);
    checkpoint_close(ck);
    bytes_deinit(&text);
    return err;
}

static err_code open_model(void *context)
{
    const form *f = context;
    const model_open_options mo = {.weights_only = true,
                                   .quantize = {.layer_bits = f->n_bits, .head_bits = f->n_bits, .c = f->c}};
    model *m = NULL;
    const err_code err = model_open(&m, f->path, &mo, NULL);
    CHECK((m != NULL) == (err == ERR_OK));
    const weights *w = m && f->n_bits ? model_get_parts(m)->weights : NULL;
    for (size_t i = 0; w && i < w->n_matrices; i++) {
        CHECK_INT(w->matrices[i].at->type,
                  DTYPE_Q8); /* also where the file of an earlier call was not read */
    }
    model_close(m);
    CHECK(f->kept == 0 || kept_file() == f->kept); /* a lack of memory is no reason to make it anew */
    return err;
}

static void check_form(const char *name, form f)
{
    CHECK_INT(open_model(&f), ERR_OK);
    f.kept = f.n_bits ? kept_file() : 0;
    const size_t n_parts = f.n_bits ? 1 : alloc_fail_each(open_parts, &f, MAX_POINTS),
                 n_model = alloc_fail_each(open_model, &f, MAX_POINTS);
    printf("%s: %zu and %zu allocations\n", name, n_parts, n_model);
    CHECK(n_parts > 0 && n_parts < MAX_POINTS && n_model > 10 && n_model < MAX_POINTS);
}

/* The folder's weights in a file that an index names for each of them. */
static void make_index(const char *dir)
{
    char from[128], to[128], index[128];
    tensor_file *f = NULL;
    err_detail d = {0};
    snprintf(from, sizeof from, "%s/model.safetensors", dir);
    snprintf(to, sizeof to, "%s/a.safetensors", dir);
    snprintf(index, sizeof index, "%s/model.safetensors.index.json", dir);
    CHECK_OK(tensor_file_open(&f, from, &d), d);
    FILE *out = fopen(index, "w");
    CHECK(f && out);
    for (size_t i = 0; f && out && i < tensor_file_tensors(f)->n; i++) {
        fprintf(out, "%s\"%s\":\"a.safetensors\"", i ? "," : "{\"weight_map\":{",
                tensor_file_tensors(f)->items[i].name);
    }
    CHECK(out && fputs("}}", out) >= 0 && fclose(out) == 0);
    tensor_file_close(f);
    CHECK_INT(rename(from, to), 0);
}

int main(void)
{
    static const char *const folders[] = {"tiny", "tiny_moe", "tiny_gpt_oss", "tiny_gemma4_clipped",
                                          "tiny_vl_moe"};
    static const char many[] = "{\"model_type\":\"qwen3_moe\"," RANDOM_SIZES
                               ",\"num_experts\":80,\"num_experts_per_tok\":2,\"moe_intermediate_size\":16,"
                               "\"intermediate_size\":80" RANDOM_ROPE("") "}";
    char dir[64], path[128];
    err_detail d = {0};
    compute *c = NULL;
    log_set_level(LOG_OFF);
    folder_make(cache);
    setenv("XDG_CACHE_HOME", cache, 1);
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 1}, &d), d);
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        char folder[4096];
        snprintf(folder, sizeof folder, "%s", check_data(folders[i]));
        check_form(folders[i], (form){folder, c, 0, 0});
    }
    check_form("in 8 bits", (form){check_data("tiny"), c, 8, 0});
    random_checkpoint_make(dir, many, RANDOM_PER_EXPERT | RANDOM_TEXT_ONLY);
    check_form("80 experts", (form){dir, c, 0, 0});
    snprintf(path, sizeof path, "%s/m.gguf", dir);
    CHECK_INT(tool_run_3("make_gguf", check_data("tiny_gpt_oss"), path, "bf16"), 0);
    check_form("GGUF", (form){path, c, 0, 0});
    static const char *const changed[] = {"llama",
                                          "qwen3_5"}; /* rows in another order; decays as their powers */
    for (size_t i = 0; i < ARRAY_LEN(changed); i++) {
        random_checkpoint_make(dir, family_of(changed[i])->config, family_of(changed[i])->forms);
        snprintf(path, sizeof path, "%s/tokenizer.json", dir);
        CHECK_INT(symlink(check_data("tiny/tokenizer.json"), path), 0);
        snprintf(path, sizeof path, "%s/m.gguf", dir);
        CHECK_INT(tool_run_3("make_gguf", dir, path, "bf16"), 0);
        check_form(changed[i], (form){path, c, 0, 0});
    }
    snprintf(path, sizeof path, "%s/tower.gguf", dir);
    CHECK_INT(tool_run_3("make_gguf", check_data("tiny"), path, "bf16"), 0);
    check_form("GGUF with a tower", (form){path, c, 0, 0});
    random_checkpoint_make(dir, family_of("qwen3_vl_moe")->config, family_of("qwen3_vl_moe")->forms);
    check_form("experts that are turned", (form){dir, c, 0, 0});
    random_checkpoint_make(dir, family_of("qwen3")->config, family_of("qwen3")->forms);
    make_index(dir);
    check_form("files that an index names", (form){dir, c, 0, 0});
    compute_destroy(c);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
