/* model_folder: a folder with any config.json and any header of its safetensors becomes a model or is refused
 * with a reason, whatever the family and the form of its weights. Four bytes say how long the config is; behind
 * it stands the header. The weights are zeros. */
#include <string.h>

#include "base/utf8.h"
#include "model/model.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"
#include "tests/fuzz/say_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LENGTH_BYTES = 8, WEIGHTS = 4 << 20, MAX_BYTES = 1 << 18 };

static char folder[] = "/tmp/parley_folder_XXXXXX";
static const char *const NAMES[] = {"config.json", "model.safetensors"};
static int files[2];

static void path_of(char *path, size_t cap, size_t i)
{
    snprintf(path, cap, "%s/%s", folder, NAMES[i]);
}

static void remove_folder(void)
{
    char path[64];
    for (size_t i = 0; i < 2; i++) {
        path_of(path, sizeof path, i);
        unlink(path);
    }
    rmdir(folder);
}

static void make_folder(void)
{
    char path[64], target[64];
    must(mkdtemp(folder) != NULL);
    for (size_t i = 0; i < 2; i++) {
        memory_file_write(&files[i], "", 0, 0);
        path_of(path, sizeof path, i);
        snprintf(target, sizeof target, "/proc/self/fd/%d", files[i]);
        must(symlink(target, path) == 0);
    }
    atexit(remove_folder);
}

/* With each tensor behind the one before, as otherwise hardly a change would come farther. */
static void write_weights(const uint8_t *header, size_t n)
{
    size_t total = WEIGHTS;
    bytes file = bytes_empty(SIZE_MAX / 2), laid = bytes_empty(SIZE_MAX / 2);
    const bool is_laid = mutate_lay_out(&laid, &total, header, n);
    while (is_laid && laid.len % LENGTH_BYTES != 0) {
        bytes_append_char(&laid, ' ');
    }
    const char *text = is_laid ? laid.data : (const char *)header;
    const uint64_t len = is_laid ? laid.len : n;
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        bytes_append_char(&file, (char)(len >> 8 * i));
    }
    bytes_append(&file, text, (size_t)len);
    memory_file_write(&files[1], file.data, file.len, file.len + total);
    bytes_deinit(&laid);
    bytes_deinit(&file);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_two_parts(2, mutate_json, data, size, max, seed, "config");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!files[0]) {
        make_folder();
    }
    if (size <= MUTATE_LENGTH || size > MAX_BYTES) {
        return 0;
    }
    const size_t n = mutate_first_part(data, size), header = size - MUTATE_LENGTH - n;
    memory_file_write(&files[0], data + MUTATE_LENGTH, n, 0);
    write_weights(data + MUTATE_LENGTH + n, header);
    model *m = NULL;
    err_detail detail = {0};
    const model_open_options options = {.weights_only = true};
    say_hide(folder);
    const err_code err = model_open(&m, folder, &options, &detail);
    if (err != ERR_OK) {
        say_error(err, &detail);
        must(m == NULL && detail.text[0] != '\0' && utf8_valid(detail.text, strlen(detail.text)));
        return 0;
    }
    must(model_get_config(m)->n_layers > 0);
    say("%llu numbers in %llu bytes, mtp %d", (unsigned long long)model_n_params(m),
        (unsigned long long)model_weight_bytes(m), model_has_mtp(m));
    say_config(model_get_config(m));
    model_close(m);
    return 0;
}
