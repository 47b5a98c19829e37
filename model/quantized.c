#include "model/config/config_load.h"
#include "model/quantized.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "compute/formats/quant.h"
#include "model/checkpoint/tensor_file.h"

enum { LAYOUT_VERSION = 2, SAMPLE_BYTES = 4096 };

struct quantized {
    tensor_file *file; /* or */
    void *memory;
    compute *c;
};

/* The matrices to be replaced and what they become. entries[n] names the key. */
typedef struct plan {
    writer_entry *entries; /* [n + 1] */
    const matrix_ref **refs;
    tensor *stored; /* what the matrices are now */
    size_t n, bytes;
    char key[2 * HASH_BYTES + 1];
} plan;

/* ---- what is to be made ---- */

/* Samples of a matrix's data: begin, middle and end. */
static void append_samples(bytes *b, const tensor *t)
{
    const size_t n = t->bytes < SAMPLE_BYTES ? t->bytes : SAMPLE_BYTES;
    const size_t at[] = {0, (t->bytes - n) / 2, t->bytes - n};
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        uint8_t hash[HASH_BYTES];
        hash_sha256(hash, (const unsigned char *)t->data + at[i], n);
        bytes_append(b, hash, sizeof hash);
    }
}

static err_code name_plan(plan *p, err_detail *detail)
{
    uint8_t hash[HASH_BYTES];
    bytes text;
    bytes_init(&text, (size_t)64 << 20);
    bytes_printf(&text, "parley blocks %d\n", LAYOUT_VERSION);
    for (size_t i = 0; i < p->n; i++) {
        const tensor *t = p->entries[i].from;
        bytes_printf(&text, "%s %zu %zu\n", p->entries[i].name, t->dims[0], t->dims[1]);
        append_samples(&text, t);
    }
    bool failed = text.failed;
    hash_sha256(hash, text.data, text.len);
    bytes_deinit(&text);
    hash_hex(p->key, hash, sizeof hash);
    snprintf(p->entries[p->n].name, WRITER_NAME_MAX, "parley.key.%s", p->key);
    return failed ? err_set(detail, ERR_NOMEM, "no memory to prepare the weights") : ERR_OK;
}

static void free_plan(plan *p)
{
    free(p->entries);
    free(p->refs);
    free(p->stored);
}

static err_code make_plan(plan *p, const matrix_ref *matrices, size_t n, const quantize_options *opt,
                          err_detail *detail)
{
    p->entries = calloc(n + 1, sizeof *p->entries);
    p->refs = calloc(n + 1, sizeof *p->refs);
    p->stored = calloc(n + 1, sizeof *p->stored);
    if (!p->entries || !p->refs || !p->stored) {
        return err_set(detail, ERR_NOMEM, "no memory to prepare the weights");
    }
    for (size_t i = 0; i < n; i++) {
        const matrix_ref *ref = &matrices[i];
        const int n_bits = ref->is_head ? opt->head_bits : opt->layer_bits;
        if (n_bits == 0 || dtype_is_quantized(ref->at->type)) {
            continue;
        }
        writer_entry *e = &p->entries[p->n];
        p->stored[p->n] = *ref->at;
        p->refs[p->n] = ref;
        e->from = &p->stored[p->n++];
        e->to = quantized_type(ref, n_bits);
        snprintf(e->name, sizeof e->name, "%s.%s", ref->name, dtype_name(e->to));
        p->bytes += writer_entry_bytes(e);
    }
    return p->n ? name_plan(p, detail) : ERR_OK;
}

/* Lets matrix i point at its rows of blocks. */
static void replace(const plan *p, size_t i, const void *data)
{
    tensor *t = p->refs[i]->at;
    t->type = p->entries[i].to;
    t->data = data;
    t->bytes = writer_entry_bytes(&p->entries[i]);
}

/* ---- the file ---- */

/* $XDG_CACHE_HOME/parley or ~/.cache/parley, made if needed. */
static err_code cache_dir(char *out, size_t cap, err_detail *detail)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool own = base && base[0] == '/';
    if (!own && (!home || home[0] != '/')) {
        return err_set(detail, ERR_IO, "neither XDG_CACHE_HOME nor HOME says where");
    }
    for (int part = own ? 1 : 0; part < 3; part++) { /* base, base/.cache or nothing, .../parley */
        int n = snprintf(out, cap, "%s%s%s", own ? base : home, own || part == 0 ? "" : "/.cache",
                         part == 2 ? "/parley" : "");
        if ((size_t)n >= cap) {
            return err_set(detail, ERR_IO, "the path of the cache folder is too long");
        }
        if (mkdir(out, 0755) != 0 && errno != EEXIST) {
            return err_set(detail, ERR_IO, "%s: %s", out, strerror(errno));
        }
    }
    return ERR_OK;
}

/* Opens the file and replaces every matrix, or none. */
static err_code use_file(quantized *q, const plan *p, const char *path, err_detail *detail)
{
    tensor t;
    tensor_file *file = NULL;
    err_code err = tensor_file_open(&file, path, detail);
    if (err != ERR_OK) {
        return err;
    }
    for (size_t i = 0; err == ERR_OK && i <= p->n; i++) {
        const writer_entry *e = &p->entries[i];
        if (!tensor_table_get(tensor_file_tensors(file), e->name, &t) || t.bytes != writer_entry_bytes(e)) {
            err = err_set(detail, ERR_CORRUPT, "%s: %s is not in it as expected", path, e->name);
        }
    }
    if (err != ERR_OK) {
        tensor_file_close(file);
        return err;
    }
    for (size_t i = 0; i < p->n; i++) {
        tensor_table_get(tensor_file_tensors(file), p->entries[i].name, &t);
        replace(p, i, t.data);
    }
    q->file = file;
    return ERR_OK;
}

/* From the file of an earlier start, or by making it now; `detail` is there. */
static err_code from_file(quantized *q, const plan *p, const quantize_options *opt, err_detail *detail)
{
    char dir[3072], path[4096];
    err_code err = cache_dir(dir, sizeof dir, detail);
    if (err != ERR_OK) {
        return err;
    }
    snprintf(path, sizeof path, "%s/%s.safetensors", dir, p->key);
    if (file_exists(path)) {
        err = use_file(q, p, path, detail);
        if (err == ERR_OK || err == ERR_NOMEM) {
            return err;
        }
        log_warn("mod", "%s; it is made anew", detail->text);
    }
    err = tensor_write(path, p->entries, p->n + 1, opt->c, &opt->progress, detail);
    return err == ERR_OK ? use_file(q, p, path, detail) : err;
}

static err_code in_memory(quantized *q, const plan *p, const quantize_options *opt, err_detail *detail)
{
    unsigned char *data = compute_alloc(opt->c, p->bytes);
    if (!data) {
        return err_set(detail, ERR_NOMEM, "no memory for the weights in blocks (%zu MiB)", p->bytes >> 20);
    }
    q->memory = data;
    writer_fill(data, p->entries, p->n, opt->c, &opt->progress);
    for (size_t i = 0; i < p->n; i++) {
        replace(p, i, data);
        data += writer_entry_bytes(&p->entries[i]);
    }
    return ERR_OK;
}

err_code quantized_open(quantized **out, const matrix_ref *matrices, size_t n, const quantize_options *opt,
                        err_detail *detail)
{
    plan p = {0};
    const int64_t start = clock_ns();
    *out = NULL;
    quantized *q = calloc(1, sizeof *q);
    err_code err =
        q ? make_plan(&p, matrices, n, opt, detail) : err_set(detail, ERR_NOMEM, "no memory for the weights");
    if (err == ERR_OK && p.n > 0) {
        q->c = opt->c;
        err_detail why = {0};
        if (from_file(q, &p, opt, &why) != ERR_OK) {
            log_warn("mod", "the weights in blocks are not kept for the next start: %s", why.text);
            err = in_memory(q, &p, opt, detail);
        }
    }
    if (err == ERR_OK && p.n > 0) {
        log_info("mod", "%zu matrices in blocks, %zu MiB, ready in %.1f s", p.n, p.bytes >> 20,
                 (double)(clock_ns() - start) / 1e9);
        *out = q;
        q = NULL;
    }
    free_plan(&p);
    quantized_close(q);
    return err;
}

void quantized_close(quantized *q)
{
    if (!q) {
        return;
    }
    tensor_file_close(q->file);
    if (q->memory) {
        compute_free(q->c, q->memory);
    }
    free(q);
}

/* ---- a checkpoint of its own ---- */

/* The small files that stand beside the weights. */
static const char *const SIDE_FILES[] = {"config.json",
                                         "generation_config.json",
                                         "tokenizer.json",
                                         "tokenizer_config.json",
                                         "chat_template.jinja",
                                         "chat_template.json",
                                         "preprocessor_config.json",
                                         "processor_config.json",
                                         "video_preprocessor_config.json"};

static err_code copy_file(const char *dir, const char *out_dir, const char *name, err_detail *detail)
{
    char from[4096], to[4096];
    bytes text;
    if (!file_join(from, sizeof from, dir, name) || !file_join(to, sizeof to, out_dir, name)) {
        return err_set(detail, ERR_INVALID, "the path of %s is too long", name);
    }
    if (!file_exists(from)) {
        return ERR_OK;
    }
    bytes_init(&text, LIMIT_TOKENIZER_BYTES);
    err_code err = file_read(&text, from, detail);
    FILE *f = err == ERR_OK ? fopen(to, "wbe") : NULL;
    if (err == ERR_OK) {
        bool written = f && fwrite(text.data, 1, text.len, f) == text.len;
        written = f && fclose(f) == 0 && written;
        err = written ? ERR_OK : err_set(detail, ERR_IO, "%s: %s", to, strerror(errno));
    }
    bytes_deinit(&text);
    return err;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of the tensors that the plan replaces, sorted: experts by themselves are tens of
 * thousands. NULL if out of memory; the caller frees. */
static const char **replaced_names(const plan *p)
{
    const char **names = calloc(p->n + 1, sizeof *names);
    for (size_t i = 0; names && i < p->n; i++) {
        names[i] = p->refs[i]->name;
    }
    if (names) {
        qsort(names, p->n, sizeof *names, compare_names);
    }
    return names;
}

/* Every tensor of the checkpoint that the plan does not replace, then the plan's. */
static err_code write_all(const checkpoint *ck, const plan *p, const char *path, const quantize_options *opt,
                          err_detail *detail)
{
    const tensor_table *set = checkpoint_tensors(ck);
    size_t n = 0;
    tensor *kept = calloc(set->n + 1, sizeof *kept);
    writer_entry *all = calloc(set->n + p->n + 1, sizeof *all);
    const char **replaced = replaced_names(p);
    err_code err =
        kept && all && replaced ? ERR_OK : err_set(detail, ERR_NOMEM, "no memory for the list of tensors");
    for (size_t i = 0; err == ERR_OK && i < set->n; i++) {
        const char *name = set->items[i].stored;
        kept[n] = set->items[i].view;
        if (bsearch(&name, replaced, p->n, sizeof *replaced, compare_names)) {
            continue;
        }
        if (kept[n].type >= DTYPE_OTHER) {
            err =
                err_set(detail, ERR_UNSUPPORTED,
                        "tensor %s is neither F32, BF16 nor F16: is the checkpoint converted already?", name);
        } else if (snprintf(all[n].name, WRITER_NAME_MAX, "%s", name) >= WRITER_NAME_MAX) {
            err = err_set(detail, ERR_LIMIT, "tensor %.80s...: its name is too long", name);
        }
        all[n].from = &kept[n];
        all[n].to = kept[n].type;
        n++;
    }
    if (err == ERR_OK) {
        memcpy(all + n, p->entries, p->n * sizeof *all);
        err = tensor_write(path, all, n + p->n, opt->c, &opt->progress, detail);
    }
    free(kept);
    free(all);
    free(replaced);
    return err;
}

err_code model_convert(const char *dir, const char *out_dir, const quantize_options *opt, err_detail *detail)
{
    model_config cfg;
    char path[4096];
    plan p = {0};
    checkpoint *ck = NULL;
    weights *w = NULL;
    err_code err = checkpoint_open(&ck, dir, NULL, detail);
    if (err == ERR_OK && !(file_join(path, sizeof path, dir, "config.json") && file_exists(path))) {
        err = err_set(detail, ERR_UNSUPPORTED,
                      "%s: folders with a config.json are converted; GGUF files are used as they are", dir);
    }
    if (err == ERR_OK) {
        err = model_config_load(&cfg, checkpoint_documents(ck), detail);
    }
    if (err == ERR_OK) {
        err = weights_open(&w, &cfg, ck, NULL, NULL, detail);
    }
    if (err == ERR_OK) {
        err = make_plan(&p, w->matrices, w->n_matrices, opt, detail);
    }
    if (err == ERR_OK && p.n == 0) {
        err = err_set(detail, ERR_INVALID, "%s: there is nothing to convert; choose q8 or q4", dir);
    }
    if (err == ERR_OK && !file_join(path, sizeof path, out_dir, "model.safetensors")) {
        err = err_set(detail, ERR_INVALID, "the path of the new folder is too long");
    }
    if (err == ERR_OK && mkdir(out_dir, 0755) != 0) {
        err = err_set(detail, errno == EEXIST ? ERR_INVALID : ERR_IO, "%s cannot be made: %s", out_dir,
                      strerror(errno));
    }
    for (size_t i = 0; err == ERR_OK && i < ARRAY_LEN(SIDE_FILES); i++) {
        err = copy_file(dir, out_dir, SIDE_FILES[i], detail);
    }
    if (err == ERR_OK) {
        err = write_all(ck, &p, path, opt, detail);
    }
    free_plan(&p);
    weights_close(w);
    checkpoint_close(ck);
    return err;
}
