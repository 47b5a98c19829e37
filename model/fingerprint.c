#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "model/model_parts.h"

enum { SAMPLES = 8, SAMPLE_BYTES = 64, CONFIG_BYTES = 1 << 24 };

/* So that two texts in a row are not taken for one. */
static void add(hash_stream *h, const void *data, size_t n)
{
    const uint64_t len = n;
    hash_stream_add(h, &len, sizeof len);
    hash_stream_add(h, data, n);
}

static void add_tensors(hash_stream *h, const tensor_table *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const named_tensor *t = &all->items[i];
        const size_t n = t->view.bytes;
        add(h, t->name, strlen(t->name));
        add(h, t->type_name ? t->type_name : "", t->type_name ? strlen(t->type_name) : 0);
        for (int32_t d = 0; d < t->view.n_dims; d++) {
            const uint64_t dim = t->view.dims[d];
            add(h, &dim, sizeof dim);
        }
        for (size_t k = 0; k < SAMPLES; k++) {
            const size_t at = n > SAMPLE_BYTES ? (n - SAMPLE_BYTES) / (SAMPLES - 1) * k : 0;
            add(h, (const char *)t->view.data + at, n < SAMPLE_BYTES ? n : SAMPLE_BYTES);
        }
    }
}

/* Size and time of a weight file, whatever the order of files: out gets the exclusive or. */
static void add_file(uint8_t out[HASH_BYTES], int dir, const char *name)
{
    struct stat st;
    if (fstatat(dir, name, &st, 0) != 0 || !S_ISREG(st.st_mode)) {
        return;
    }
    const int64_t facts[] = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
    uint8_t one[HASH_BYTES];
    hash_sha256(one, facts, sizeof facts);
    for (size_t i = 0; i < HASH_BYTES; i++) {
        out[i] ^= one[i];
    }
}

static err_code add_files(hash_stream *h, const char *path, err_detail *detail)
{
    uint8_t sum[HASH_BYTES] = {0};
    DIR *d = opendir(path);
    if (!d && errno != ENOTDIR) { /* TRAP: without its files a folder that was changed would look the same */
        return err_set(detail, errno == ENOMEM ? ERR_NOMEM : ERR_IO, "%s: %s", path, strerror(errno));
    }
    for (struct dirent *file; d && (file = readdir(d)) != NULL;) {
        if (name_ends_with(file->d_name, ".safetensors") || name_ends_with(file->d_name, ".gguf")) {
            add_file(sum, dirfd(d), file->d_name);
        }
    }
    if (d) {
        closedir(d);
    } else {
        add_file(sum, AT_FDCWD, path);
    }
    add(h, sum, sizeof sum);
    return ERR_OK;
}

static void add_vocabulary(hash_stream *h, const tokenizer *tok)
{
    for (int32_t id = 0; tok && id < tokenizer_n_tokens(tok); id++) {
        size_t n = 0;
        const char *text = tokenizer_token_bytes(tok, id, &n, NULL);
        add(h, text ? text : "", text ? n : 0);
    }
}

err_code model_fingerprint(const model *m, uint8_t out[HASH_BYTES], err_detail *detail)
{
    json_doc *doc = NULL;
    bytes text;
    bytes_init(&text, CONFIG_BYTES);
    hash_stream *h = hash_stream_create();
    const json_source docs = model_documents(m);
    err_code err = h ? docs.read(docs.ctx, "config.json", &doc, detail)
                     : err_set(detail, ERR_NOMEM, "there is no memory");
    if (err == ERR_OK && !doc) { /* there was one when the model was opened */
        err = err_set(detail, ERR_IO, "%s/config.json is not there any more", model_dir(m));
    }
    if (err == ERR_OK) {
        json_write(&text, json_root(doc));
        err = text.failed ? err_set(detail, ERR_NOMEM, "there is no memory") : ERR_OK;
    }
    if (err == ERR_OK) {
        add(h, bytes_str(&text), text.len);
        add_tensors(h, checkpoint_tensors(model_get_parts(m)->checkpoint));
        err = add_files(h, model_dir(m), detail);
        add_vocabulary(h, model_tokenizer(m));
        hash_stream_end(h, out);
    }
    hash_stream_destroy(h);
    json_free(doc);
    bytes_deinit(&text);
    return err;
}
