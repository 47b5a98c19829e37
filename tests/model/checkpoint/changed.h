/* changed: what becomes of a checkpoint, and of one that differs from it in a place. A file has descriptions of checkpoints
 * in words, and behind each what is read of it (recorded_answers). A line "= NAME: ENTRY; ENTRY; ..." is a checkpoint, all
 * of which is told; "NAME: CHANGE; CHANGE; ..." the same with changes, of which is told what differs: "+ ..." is there now,
 * "- ..." was; "* ..." is a remark. The words of an entry up to its first space are its name. A change is an entry that
 * takes the place of one of its name, or comes behind the others; -NAME leaves one out; what begins with "!" is the
 * program's own.
 *
 *     changed_check("model/checkpoint/gguf_changed.txt", tell);
 */
#ifndef PARLEY_TESTS_MODEL_CHECKPOINT_CHANGED_H
#define PARLEY_TESTS_MODEL_CHECKPOINT_CHANGED_H

#include <math.h>

#include "base/compiler.h"
#include "base/log.h"
#include "model/checkpoint/checkpoint.h"
#include "model/probe.h"
#include "tests/alloc_fail.h"
#include "tests/folder.h"
#include "tests/recorded.h"
#include "tests/said.h"

enum { ENTRIES = 120, ENTRY_BYTES = 800, TOLD = 1 << 20, VALUES = 64, TABLE_VALUES = 5000 };

typedef struct description {
    char entries[ENTRIES][ENTRY_BYTES];
    size_t n;
    char own[16];  /* what begins with "!" */
    bool is_whole; /* no changes of another one */
} description;

typedef struct change_log {
    description made; /* the last one that was described whole */
    bytes told_whole; /* what was told of it */
    /* Makes a checkpoint as it is described in an empty folder, and appends what is read of it, a fact in a line. */
    void (*tell)(bytes *out, const description *d, const char *folder);
} change_log;

/* ---- what is read of a checkpoint ---- */

static inline void tell_floats(bytes *out, const tensor *t)
{
    static float values[TABLE_VALUES];
    const size_t n = tensor_len(t);
    double sum = 0;
    if (n > TABLE_VALUES) {
        return;
    }
    tensor_to_f32(values, t, 0, n);
    if (n <= VALUES) {
        for (size_t i = 0; i < n; i++) {
            const char *comma = i ? "," : " ";
            if (isnan(values[i])) { /* of either sign */
                bytes_printf(out, "%snan", comma);
            } else {
                bytes_printf(out, "%s%.4g", comma, (double)values[i]);
            }
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        sum += (double)values[i] * (double)(i % 97 + 1);
    }
    bytes_printf(out, " sum %.7g", sum);
}

static inline void tell_tensors(bytes *out, const tensor_table *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const named_tensor *t = &all->items[i];
        bytes_printf(out, "tensor %s (%s) %s", t->name, t->stored, dtype_name(t->view.type));
        for (int32_t k = 0; k < t->view.n_dims; k++) {
            bytes_printf(out, "%c%zu", k ? 'x' : ' ', t->view.dims[k]);
        }
        bytes_printf(out, " %zu:", t->view.bytes);
        if (t->view.type < DTYPE_OTHER) {
            tell_floats(out, &t->view);
        } else {
            unsigned sum = 0;
            for (size_t k = 0; k < t->view.bytes; k++) {
                sum = sum * 31 + ((const uint8_t *)t->view.data)[k];
            }
            bytes_printf(out, " bytes %08x", sum);
        }
        bytes_append_char(out, '\n');
    }
}

/* Its members one in a line. */
static inline void tell_json(bytes *out, const char *what, const json *v)
{
    for (const json *item = json_child(v); item; item = json_next(item)) {
        bytes_printf(out, "%s.%s ", what, json_key(item));
        json_write(out, item);
        bytes_append_char(out, '\n');
    }
}

static inline void tell_documents(bytes *out, const checkpoint *ck)
{
    static const char *const DOCUMENTS[][2] = {{"config", "config.json"},
                                               {"generation", "generation_config.json"},
                                               {"preprocessor", "preprocessor_config.json"},
                                               {"other", "other.json"}};
    const json_source from = checkpoint_documents(ck);
    for (size_t i = 0; i < ARRAY_LEN(DOCUMENTS); i++) {
        json_doc *doc = NULL;
        err_detail d = {0};
        const err_code err = from.read(from.ctx, DOCUMENTS[i][1], &doc, &d);
        if (err) {
            bytes_printf(out, "%s: %s\n", DOCUMENTS[i][0], d.text);
        } else if (doc) {
            tell_json(out, DOCUMENTS[i][0], json_root(doc));
        }
        json_free(doc);
    }
}

/* Opens a checkpoint and tells what is logged meanwhile, or why it is refused: then NULL; the caller closes it. */
static inline checkpoint *tell_opening(bytes *out, const char *path, const char *mmproj)
{
    checkpoint *ck = NULL;
    err_detail d = {0};
    log_set_level(LOG_INFO);
    said_begin();
    const err_code err = checkpoint_open(&ck, path, mmproj, &d);
    said_end();
    log_set_level(LOG_OFF);
    for (const char *at = said_err; *at;) { /* without the time */
        const size_t n = strcspn(at, "\n"), time = strcspn(at, " ");
        bytes_printf(out, "log %.*s\n", time < n ? (int)(n - time - 1) : 0, at + time + 1);
        at += n + (at[n] == '\n');
    }
    if (err) {
        bytes_printf(out, "refused %d: %s\n", (int)err, d.text);
    }
    return ck;
}

/* Tensors, documents and template. */
static inline void tell_checkpoint(bytes *out, const checkpoint *ck)
{
    const checkpoint_traits *traits = checkpoint_get_traits(ck);
    bytes text = bytes_empty(1 << 20);
    err_detail d = {0};
    bytes_printf(out, "traits%s%s%s\n", traits->norms_hold_one ? " one" : "",
                 traits->mtp_norms_hold_one ? " draft-one" : "", traits->value_heads_tiled ? " tiled" : "");
    tell_tensors(out, checkpoint_tensors(ck));
    tell_documents(out, ck);
    const err_code err = checkpoint_read_template(ck, &text, &d);
    bytes_printf(out, "template %s\n", err ? d.text : bytes_str(&text));
    bytes_deinit(&text);
}

/* Opens it and reads all but the vocabulary. */
static inline err_code read_all(void *context)
{
    static const char *const DOCUMENTS[] = {"config.json", "generation_config.json",
                                            "preprocessor_config.json"};
    checkpoint *ck = NULL;
    bytes text = bytes_empty(1 << 20);
    err_code err = checkpoint_open(&ck, context, NULL, NULL);
    CHECK((ck != NULL) == (err == ERR_OK));
    for (size_t i = 0; !err && i < ARRAY_LEN(DOCUMENTS); i++) {
        json_doc *doc = NULL;
        const json_source from = checkpoint_documents(ck);
        err = from.read(from.ctx, DOCUMENTS[i], &doc, NULL);
        json_free(doc);
    }
    err = err ? err : checkpoint_read_template(ck, &text, NULL);
    checkpoint_close(ck);
    bytes_deinit(&text);
    return err;
}

/* Each allocation of that fails once: it says so, and leaves nothing behind. */
static inline void check_memory(const char *path)
{
    enum { MOST = 1000 };
    char copy[512];
    snprintf(copy, sizeof copy, "%s", path);
    const size_t n = alloc_fail_each(read_all, copy, MOST);
    CHECK(n > 5 && n < MOST);
}

/* What is seen of it without reading weights. */
static inline void tell_probe(bytes *out, const char *path)
{
    model_probe p;
    err_detail d = {0};
    const err_code err = model_probe_at(&p, path, &d);
    if (err) {
        const char *list = strstr(d.text, "; this version"); /* of all that is known */
        bytes_printf(out, "probe: %d: %.*s\n", (int)err,
                     (int)(list ? (size_t)(list - d.text) : strlen(d.text)), d.text);
        return;
    }
    bytes_printf(out, "probe: %s, %d tokens, %llu bytes%s%s%s\n", p.family, p.context,
                 (unsigned long long)p.n_bytes, p.has_vision ? ", sees" : "", p.has_mtp ? ", drafts" : "",
                 p.is_side_file ? ", a part of another" : "");
}

/* ---- lines of the record ---- */

static inline size_t name_length(const char *entry)
{
    return strcspn(entry, " ");
}

/* Puts the entry in the place of that of its name, or behind the others; "-NAME" takes one out. */
static inline void change(description *d, const char *entry, size_t n)
{
    char text[ENTRY_BYTES];
    snprintf(text, sizeof text, "%.*s", (int)n, entry);
    CHECK(n < sizeof text);
    const char *name = *text == '-' ? text + 1 : text;
    size_t i = 0;
    while (i < d->n && (name_length(d->entries[i]) != name_length(name) ||
                        memcmp(d->entries[i], name, name_length(name)) != 0)) {
        i++;
    }
    if (*text == '-') {
        CHECK(i < d->n);
        memmove(d->entries[i], d->entries[i + 1], (d->n - i - 1) * sizeof d->entries[0]);
        d->n--;
    } else if (i < ENTRIES - 1) {
        snprintf(d->entries[i], sizeof d->entries[i], "%s", text);
        d->n += i == d->n;
    }
}

static inline bool has_line(const char *text, const char *line, size_t n)
{
    for (const char *at = text; *at;) {
        const size_t len = strcspn(at, "\n");
        if (len == n && memcmp(at, line, n) == 0) {
            return true;
        }
        at += len + (at[len] == '\n');
    }
    return false;
}

/* Whether the line is of a part that `other` has no more, as its error says. */
static inline bool is_of_lost_part(const char *line, const char *other)
{
    return (strncmp(line, "config.", 7) == 0 && strstr(other, "\nconfig: ")) ||
           (strncmp(line, "vocabulary", 10) == 0 && strstr(other, "\nvocabulary: /")) ||
           (strncmp(line, "probe:", 6) == 0 && strstr(other, "\nconfig: "));
}

/* The lines of `text` that `other` has not, or all. */
static inline void tell_lines(bytes *out, const char *text, const char *other, const char *mark)
{
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, "\n");
        if (!other || (!has_line(other, at, n) && !is_of_lost_part(at, other))) {
            bytes_printf(out, "<%s %.*s\n", mark, (int)n, at);
        }
        at += n + (at[n] == '\n');
    }
}

/* Cuts every occurrence of the folder's name. */
static inline void without(bytes *out, const char *text, const char *folder)
{
    for (const char *found; (found = strstr(text, folder)); text = found + strlen(folder)) {
        bytes_append(out, text, (size_t)(found - text));
    }
    bytes_append_str(out, text);
}

static inline void answer_line(void *ctx, bytes *out, const char *line, size_t len)
{
    static description d;
    change_log *c = ctx;
    char folder[FOLDER_NAME];
    const char *colon = memchr(line, ':', len), *end = line + len;
    const bool is_whole = *line == '=';
    if (len == 0 || *line == '*' || !colon) {
        return;
    }
    d = is_whole ? (description){0} : c->made;
    d.is_whole = is_whole;
    for (const char *at = colon + 1; at < end;) {
        at += strspn(at, " ");
        const char *semicolon = memchr(at, ';', (size_t)(end - at));
        const size_t n = (size_t)((semicolon ? semicolon : end) - at);
        if (n > 0 && *at == '!') {
            snprintf(d.own, sizeof d.own, "%.*s", (int)n, at);
        } else if (n > 0) {
            change(&d, at, n);
        }
        at += n + 1;
    }
    bytes all = bytes_empty(TOLD), seen = bytes_empty(TOLD);
    folder_make(folder);
    c->tell(&all, &d, folder);
    without(&seen, bytes_str(&all), folder);
    if (is_whole) {
        c->made = d;
        tell_lines(out, bytes_str(&seen), NULL, "");
        bytes_clear(&c->told_whole);
        bytes_append(&c->told_whole, seen.data, seen.len);
    } else if (strncmp(bytes_str(&seen), "refused", 7) == 0) {
        tell_lines(out, bytes_str(&seen), NULL, "");
    } else {
        tell_lines(out, bytes_str(&c->told_whole), bytes_str(&seen), " -");
        tell_lines(out, bytes_str(&seen), bytes_str(&c->told_whole), " +");
    }
    bytes_deinit(&all);
    bytes_deinit(&seen);
}

/* The whole file `name` below tests. */
static inline void changed_check(const char *name,
                                 void (*tell)(bytes *out, const description *d, const char *folder))
{
    static change_log c;
    char path[1024];
    snprintf(path, sizeof path, PARLEY_SOURCE_DIR "/tests/%s", name);
    log_set_level(LOG_OFF);
    c = (change_log){.told_whole = bytes_empty(TOLD), .tell = tell};
    recorded_answers(path, answer_line, &c);
    bytes_deinit(&c.told_whole);
}

#endif
