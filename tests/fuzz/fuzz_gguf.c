/* GGUF: any file either opens with every value and tensor inside it, or is refused with a
 * reason. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "model/checkpoint/gguf_config.h"
#include "model/checkpoint/gguf_file.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"
#include "tests/fuzz/say_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Touches every byte: a view outside the file would crash. */
static void touch(const void *data, size_t n)
{
    unsigned sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += ((const uint8_t *)data)[i];
    }
    volatile unsigned used = sum;
    (void)used;
}

static void check_value(const gguf_file *f, const gguf_value *v)
{
    const char *text = NULL;
    const uint8_t *cursor = v->data;
    uint64_t whole = 0;
    int64_t element = 0;
    size_t n = 0;
    double number = 0;
    bool truth = false;
    must(gguf_find(f, v->key) == v && utf8_valid(v->key, strlen(v->key)));
    say("%s: %d, array %d, %llu", v->key, (int)v->type, v->is_array, (unsigned long long)v->n);
    if (v->type == GGUF_TEXT) {
        for (uint64_t i = 0; i < v->n; i++) {
            gguf_next_text(&cursor, &text, &n);
            touch(text, n);
            if (i < 3) {
                say_text("", text, n);
            }
        }
    }
    for (uint64_t i = 0; i < v->n && i < 1000; i++) {
        bool is_int = gguf_int_at(v, i, &element), is_number = gguf_number_at(v, i, &number);
        must(is_number || !is_int);
        if (i < 3) {
            say("%d %lld, %d %.17g", is_int, is_int ? (long long)element : 0ll, is_number,
                is_number ? number : 0);
        }
    }
    must(!gguf_int_at(v, v->n, &element) && !gguf_number_at(v, v->n, &number));
    must(!gguf_uint(v, &whole) || !v->is_array);
    if (gguf_uint(v, &whole) || gguf_bool(v, &truth)) {
        say("%llu, %d", (unsigned long long)whole, truth);
    }
    must(!gguf_text(v, &text, &n) || utf8_valid(text, n));
    must(!gguf_bool(v, &truth) || v->type == GGUF_BOOL);
}

size_t fuzz_each(uint8_t *data, size_t size, size_t max, unsigned number)
{
    return mutate_gguf_each(data, size, max, number);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_gguf(data, size, max, seed, "gguf");
}

static void say_document(const char *name, err_code err, const bytes *text, const err_detail *d)
{
    if (err != ERR_OK) {
        say_error(err, d);
    } else if (text->len > 0) {
        /* a line for each member */
        for (const char *at = bytes_str(text), *end = at + text->len; at < end;) {
            const size_t n = strcspn(at, ",");
            say_text(name, at, n);
            at += n + 1;
        }
    }
}

/* What would stand in a folder, made of its metadata. */
static void say_documents(const char *path)
{
    gguf_set *set = NULL;
    err_detail d = {0};
    if (gguf_set_open(&set, path, &d) != ERR_OK) {
        say_error(ERR_CORRUPT, &d);
        return;
    }
    const gguf_config_source from = {set, NULL, "model", ""};
    bytes text = bytes_empty(SIZE_MAX / 2);
    uint64_t n_layers = 0, n_draft = 0;
    err_code err = gguf_config_layers(&from, &n_layers, &n_draft, &d);
    if (err == ERR_OK) {
        say("layers %llu and %llu, tiled %d, names %d, heads of %llu", (unsigned long long)n_layers,
            (unsigned long long)n_draft, gguf_config_is_tiled(&from), (int)gguf_config_names(&from),
            (unsigned long long)gguf_config_permuted_head(&from));
    }
    err = gguf_config_json(&text, &from, &d);
    say_document("config", err, &text, &d);
    bytes_clear(&text);
    gguf_generation_json(&text, &from);
    say_document("generation", ERR_OK, &text, &d);
    bytes_clear(&text);
    gguf_preprocessor_json(&text, &from);
    say_document("preprocessor", ERR_OK, &text, &d);
    bytes_deinit(&text);
    gguf_set_close(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gguf_file *file = NULL;
    err_detail detail = {0};
    const char *path = memory_file(data, size);
    say_hide(path);
    const err_code err = gguf_file_open(&file, path, &detail);
    if (err != ERR_OK) {
        say_error(err, &detail);
        must(file == NULL && detail.text[0] != '\0' && utf8_valid(detail.text, strlen(detail.text)));
        return 0;
    }
    size_t sum = 0, part = 0, n_parts = 0;
    for (size_t i = 0; i < gguf_n_values(file); i++) {
        check_value(file, gguf_value_at(file, i));
    }
    for (size_t i = 0; i < gguf_file_tensors(file)->n; i++) {
        const named_tensor *t = &gguf_file_tensors(file)->items[i];
        must(t->name != NULL && t->type_name != NULL && t->view.n_dims >= 1 && t->view.n_dims <= 4);
        must(tensor_table_find(gguf_file_tensors(file), t->name) == t);
        touch(t->view.data, t->view.bytes);
        sum += t->view.bytes;
    }
    must(sum <= size); /* no overlap */
    say_tensors(gguf_file_tensors(file));
    gguf_file_part(file, &part, &n_parts);
    must(part < n_parts);
    say("part %zu of %zu", part, n_parts);
    gguf_file_close(file);
    say_documents(path);
    return 0;
}
