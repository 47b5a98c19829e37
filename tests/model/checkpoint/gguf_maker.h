/* gguf_maker: writes GGUF files for tests, right ones and, through the parts it is made of, broken
 * ones. One thread.
 *
 *     gguf_maker m; maker_init(&m);
 *     maker_text(&m, "general.architecture", "qwen35");
 *     maker_tensor(&m, "output_norm.weight", 0, (uint64_t[]){4}, 1, data, 16);
 *     maker_write(&m, path);   // frees it
 */
#ifndef PARLEY_TESTS_MODEL_CHECKPOINT_GGUF_MAKER_H
#define PARLEY_TESTS_MODEL_CHECKPOINT_GGUF_MAKER_H

#include <stdint.h>

#include "base/bytes.h"
#include "model/checkpoint/gguf_file.h"
#include "tests/check.h"

enum { MAKER_MAX = 256 << 20 };

typedef struct gguf_maker {
    bytes values, infos, data; /* may be appended to by hand */
    uint64_t n_values, n_tensors;
    uint32_t version;
    const char *magic;
    uint32_t alignment; /* of the data; a value of that name is the caller's */
} gguf_maker;

static inline void maker_init(gguf_maker *m)
{
    *m = (gguf_maker){.version = 3, .magic = "GGUF", .alignment = 32};
    bytes_init(&m->values, MAKER_MAX);
    bytes_init(&m->infos, MAKER_MAX);
    bytes_init(&m->data, MAKER_MAX);
}

static inline void put_number(bytes *b, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bytes_append_char(b, (char)(v >> (8 * i) & 0xff));
    }
}

static inline void put_text(bytes *b, const char *text)
{
    put_number(b, strlen(text), 8);
    bytes_append_str(b, text);
}

static inline void maker_key(gguf_maker *m, const char *key, uint32_t type)
{
    put_text(&m->values, key);
    put_number(&m->values, type, 4);
    m->n_values++;
}

static inline void maker_array(gguf_maker *m, const char *key, uint32_t type, uint64_t n)
{
    maker_key(m, key, GGUF_ARRAY);
    put_number(&m->values, type, 4);
    put_number(&m->values, n, 8);
}

static inline void maker_u32(gguf_maker *m, const char *key, uint32_t v)
{
    maker_key(m, key, GGUF_U32);
    put_number(&m->values, v, 4);
}

static inline void maker_f32(gguf_maker *m, const char *key, float v)
{
    maker_key(m, key, GGUF_F32);
    bytes_append(&m->values, &v, sizeof v);
}

static inline void maker_bool(gguf_maker *m, const char *key, bool v)
{
    maker_key(m, key, GGUF_BOOL);
    put_number(&m->values, v, 1);
}

static inline void maker_text(gguf_maker *m, const char *key, const char *text)
{
    maker_key(m, key, GGUF_TEXT);
    put_text(&m->values, text);
}

/* The entry of a tensor alone. dims as in the file: the length of a row first. */
static inline void maker_info(gguf_maker *m, const char *name, uint32_t type, const uint64_t *dims,
                              uint32_t n_dims, uint64_t offset)
{
    put_text(&m->infos, name);
    put_number(&m->infos, n_dims, 4);
    for (uint32_t i = 0; i < n_dims; i++) {
        put_number(&m->infos, dims[i], 8);
    }
    put_number(&m->infos, type, 4);
    put_number(&m->infos, offset, 8);
    m->n_tensors++;
}

static inline void maker_pad(bytes *b, size_t alignment)
{
    while (b->len % alignment) {
        bytes_append_char(b, 0);
    }
}

/* A tensor behind the last one. */
static inline void maker_tensor(gguf_maker *m, const char *name, uint32_t type, const uint64_t *dims,
                                uint32_t n_dims, const void *data, size_t n)
{
    maker_pad(&m->data, m->alignment);
    maker_info(m, name, type, dims, n_dims, m->data.len);
    bytes_append(&m->data, data, n);
}

/* Everything as one file in out, which the caller initialised; frees m. */
static inline void maker_finish(gguf_maker *m, bytes *out)
{
    bytes_append(out, m->magic, 4);
    put_number(out, m->version, 4);
    put_number(out, m->n_tensors, 8);
    put_number(out, m->n_values, 8);
    bytes_append(out, bytes_str(&m->values), m->values.len);
    bytes_append(out, bytes_str(&m->infos), m->infos.len);
    if (m->data.len > 0) {
        maker_pad(out, m->alignment);
        bytes_append(out, m->data.data, m->data.len);
    }
    bytes_deinit(&m->values);
    bytes_deinit(&m->infos);
    bytes_deinit(&m->data);
}

static inline void maker_save(const bytes *b, const char *path)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && (b->len == 0 || fwrite(b->data, b->len, 1, f) == 1));
    CHECK(f && fclose(f) == 0);
}

static inline void maker_write(gguf_maker *m, const char *path)
{
    bytes out;
    bytes_init(&out, MAKER_MAX);
    maker_finish(m, &out);
    CHECK(!out.failed);
    maker_save(&out, path);
    bytes_deinit(&out);
}

#endif
