/* model_gguf: a GGUF file, and a vision tower beside it, become a model or are refused with a reason: their
 * settings, vocabulary, template and tensors. Four bytes say how long the head of the first file is; behind it
 * stands that of the second, if there is one. What follows a head, the weights, are zeros. */
#include <string.h>

#include "base/utf8.h"
#include "model/checkpoint/checkpoint.h"
#include "model/model.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"
#include "tests/fuzz/say_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WEIGHTS = 4 << 20, MAX_BYTES = 1 << 18 };

static char folder[] = "/tmp/parley_gguf_XXXXXX";
static char model_path[64], tower_path[64];
static int model_file, tower_file;

static void remove_folder(void)
{
    unlink(model_path);
    unlink(tower_path);
    rmdir(folder);
}

static void link_file(char *path, const char *name, int *fd)
{
    char target[64];
    memory_file_write(fd, "", 0, 0);
    snprintf(path, sizeof model_path, "%s/%s", folder, name);
    snprintf(target, sizeof target, "/proc/self/fd/%d", *fd);
    must(symlink(target, path) == 0);
}

size_t fuzz_each(uint8_t *data, size_t size, size_t max, unsigned number)
{
    return mutate_first_each(mutate_gguf_each, data, size, max, number);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_two_parts(3, mutate_gguf, data, size, max, seed, "gguf");
}

/* The tensors under their canonical names. */
static void say_contents(const char *tower)
{
    checkpoint *ck = NULL;
    if (checkpoint_open(&ck, model_path, tower, NULL) == ERR_OK) {
        const tensor_table *all = checkpoint_tensors(ck);
        for (size_t i = 0; i < all->n; i++) {
            const tensor *t = &all->items[i].view;
            bytes dims = bytes_empty(SIZE_MAX / 2);
            for (int32_t k = 0; k < t->n_dims; k++) {
                bytes_printf(&dims, " %zu", t->dims[k]);
            }
            say("%s: %d,%s, %zu bytes", all->items[i].name, (int)t->type, bytes_str(&dims), t->bytes);
            bytes_deinit(&dims);
        }
    }
    checkpoint_close(ck);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!model_file) {
        must(mkdtemp(folder) != NULL);
        link_file(model_path, "model.gguf", &model_file);
        link_file(tower_path, "tower.gguf", &tower_file);
        atexit(remove_folder);
    }
    if (size <= MUTATE_LENGTH || size > MAX_BYTES) {
        return 0;
    }
    const size_t n = mutate_first_part(data, size), behind = size - MUTATE_LENGTH - n;
    memory_file_write(&model_file, data + MUTATE_LENGTH, n, WEIGHTS);
    memory_file_write(&tower_file, data + MUTATE_LENGTH + n, behind, WEIGHTS);
    model *m = NULL;
    err_detail detail = {0};
    model_open_options options = {.mmproj = behind > 0 ? tower_path : NULL};
    say_hide(folder);
    say_contents(options.mmproj);
    err_code err = model_open(&m, model_path, &options, &detail);
    if (err != ERR_OK && strstr(detail.text, "tokenizer.")) {
        say_error(err, &detail);
        options.weights_only = true;
        err = model_open(&m, model_path, &options, &detail);
    }
    if (err != ERR_OK) {
        say_error(err, &detail);
        must(m == NULL && detail.text[0] != '\0' && utf8_valid(detail.text, strlen(detail.text)));
        return 0;
    }
    const model_config *cfg = model_get_config(m);
    must(cfg->n_layers > 0);
    must(!model_tokenizer(m) || cfg->vocab_size >= tokenizer_n_tokens(model_tokenizer(m)));
    must(cfg->has_vision <= (behind > 0));
    say("%llu numbers in %llu bytes, mtp %d, %d ids, template %d", (unsigned long long)model_n_params(m),
        (unsigned long long)model_weight_bytes(m), model_has_mtp(m),
        model_tokenizer(m) ? (int)tokenizer_n_tokens(model_tokenizer(m)) : 0, model_chat_template(m) != NULL);
    say_config(cfg);
    model_close(m);
    return 0;
}
