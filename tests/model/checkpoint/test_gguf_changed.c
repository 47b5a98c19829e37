/* What becomes of a GGUF file, and of one that differs from it in a place: gguf_changed.txt has the files in words, and
 * behind each what is read of it: tensors, documents, vocabulary, template, what is logged; or why it is refused.
 *
 *     = NAME: ENTRY; ENTRY; ...       a file, all of which is told
 *     NAME: CHANGE; CHANGE; ...       the same with changes; told is what differs: "+ ..." is there now, "- ..." was
 *
 * An entry is KEY TYPE VALUE (lists as VALUE,VALUE; "e": an empty one; "." before a key stands for the architecture,
 * "#" for tokenizer.ggml.), or a tensor: @NAME TYPE COLUMNSxROWS... [VALUE,VALUE...], by itself 1, 2, 3 ..., below
 * zero where a decay is stored, and from 101 on in a second half. "~" before an entry: it is of the tower, mmproj.gguf
 * beside the model; "&": of a-mmproj.gguf, which comes before it. "broken": the file has other first bytes. "!n": the
 * tower is named. A change is an entry that takes the place of one of its name, or comes behind the others; -KEY
 * leaves one out. */
#include "model/checkpoint/checkpoint.h"

#include <unistd.h>

#include "base/compiler.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "model/checkpoint/gguf_tokenizer.h"
#include "tests/folder.h"
#include "tests/model/checkpoint/gguf_maker.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "tests/said.h"

enum { ENTRIES = 120, ENTRY_BYTES = 400, TOLD = 1 << 20, VALUES = 64, TABLE_VALUES = 5000 };

typedef struct description {
    char name[32];
    char entries[ENTRIES][ENTRY_BYTES];
    size_t n;
} description;

static description made; /* the last one that was described whole */
static bytes told_whole; /* what was told of it */

static const struct {
    const char *name;
    gguf_type type;
    size_t width;
} TYPES[] = {{"u8", GGUF_U8, 1},   {"i8", GGUF_I8, 1},   {"u16", GGUF_U16, 2},   {"i16", GGUF_I16, 2},
             {"u32", GGUF_U32, 4}, {"i32", GGUF_I32, 4}, {"f32", GGUF_F32, 4},   {"bool", GGUF_BOOL, 1},
             {"u64", GGUF_U64, 8}, {"i64", GGUF_I64, 8}, {"text", GGUF_TEXT, 0}, {"f64", GGUF_F64, 8}};

/* ---- writing what a line describes ---- */

static void put_value(bytes *out, size_t type, const char *text)
{
    if (TYPES[type].type == GGUF_TEXT) {
        put_text(out, text);
    } else if (TYPES[type].type == GGUF_F32) {
        const float v = strtof(text, NULL);
        bytes_append(out, &v, sizeof v);
    } else if (TYPES[type].type == GGUF_F64) {
        const double v = strtod(text, NULL);
        bytes_append(out, &v, sizeof v);
    } else {
        put_number(out, (uint64_t)strtoll(text, NULL, 10), TYPES[type].width);
    }
}

/* KEY TYPE VALUE, TYPE with [] for a list. */
static void put_entry(gguf_maker *m, const char *arch, const char *entry)
{
    char key[ENTRY_BYTES], kind[16] = "", value[ENTRY_BYTES] = "";
    size_t type = 0;
    if (sscanf(entry, "%399s %15s %399[^\n]", value, kind, key) < 2) {
        CHECK_STR(entry, "KEY TYPE VALUE");
        return;
    }
    const char *rest = strstr(entry, kind) + strlen(kind);
    snprintf(key, sizeof key, "%s%s%s",
             *value == '.'   ? arch
             : *value == '#' ? "tokenizer.ggml."
                             : "",
             *value == '.' ? "." : "", value + (*value == '#' || *value == '.'));
    snprintf(value, sizeof value, "%s", rest + strspn(rest, " "));
    const bool is_list = name_ends_with(kind, "[]");
    kind[strcspn(kind, "[")] = '\0';
    while (type < ARRAY_LEN(TYPES) && strcmp(TYPES[type].name, kind) != 0) {
        type++;
    }
    if (type == ARRAY_LEN(TYPES)) {
        CHECK_STR(entry, "a known type");
        return;
    }
    if (!is_list) {
        maker_key(m, key, TYPES[type].type);
        put_value(&m->values, type, value);
        return;
    }
    uint64_t n = 0;
    bytes list = bytes_empty(1 << 20);
    for (char *at = value; strcmp(value, "e") != 0 && at; n++) {
        char *comma = strchr(at, ',');
        if (comma) {
            *comma++ = '\0';
        }
        put_value(&list, type, at);
        at = comma;
    }
    maker_array(m, key, TYPES[type].type, n);
    bytes_append(&m->values, list.data, list.len);
    bytes_deinit(&list);
}

/* @NAME TYPE COLUMNSxROWS... [VALUES]; of types but f32 and f16 the bytes count up. */
static void put_tensor(gguf_maker *m, const char *entry)
{
    static const struct {
        const char *name;
        uint32_t type;
        size_t block, n_bytes;
    } KINDS[] = {{"f32", 0, 1, 4},   {"f16", 1, 1, 2},      {"q8_0", 8, 32, 34},
                 {"bf16", 30, 1, 2}, {"mxfp4", 39, 32, 17}, {"iq2_xxs", 16, 256, 66}};
    char name[ENTRY_BYTES], kind[16], shape[64], values[ENTRY_BYTES] = "";
    uint64_t dims[4] = {0}, n = 1;
    uint32_t n_dims = 0;
    size_t k = 0;
    if (sscanf(entry, "@%399s %15s %63s %399s", name, kind, shape, values) < 3) {
        CHECK_STR(entry, "@NAME TYPE SHAPE");
        return;
    }
    for (const char *at = shape; at && n_dims < 4; n_dims++) {
        dims[n_dims] = strtoull(at, NULL, 10);
        n *= dims[n_dims];
        at = strchr(at, 'x');
        at += at ? 1 : 0;
    }
    while (k < ARRAY_LEN(KINDS) && strcmp(KINDS[k].name, kind) != 0) {
        k++;
    }
    if (k == ARRAY_LEN(KINDS)) {
        CHECK_STR(entry, "a known type");
        return;
    }
    bytes data = bytes_empty(1 << 24);
    const char *given = values;
    const float sign = name_ends_with(name, "ssm_a") ? -1 : 1, before = name_ends_with(name, ".1") ? 100 : 0;
    for (uint64_t i = 0; i < (KINDS[k].type == 0 ? n : n / KINDS[k].block * KINDS[k].n_bytes); i++) {
        char *end = NULL;
        const float v = *given ? strtof(given, &end) : before + sign * (float)(i + 1);
        given = *given && *end == ',' ? end + 1 : *given ? end : given;
        if (KINDS[k].type == 0) {
            bytes_append(&data, &v, sizeof v);
        } else {
            bytes_append_char(&data, (char)(i % 251));
        }
    }
    maker_tensor(m, name, KINDS[k].type, dims, n_dims, data.data, data.len);
    bytes_deinit(&data);
}

/* The file of the entries that begin with `mark` (0: of those with none). */
static void write_file(const description *d, const char *path, char mark)
{
    gguf_maker m;
    char arch[64] = "none";
    maker_init(&m);
    for (size_t i = 0; i < d->n; i++) {
        const char *entry = d->entries[i];
        const bool marked = *entry == '~' || *entry == '&';
        if (marked ? *entry != mark : mark != 0) {
            continue;
        }
        entry += marked;
        sscanf(entry, "general.architecture text %63s", arch);
        if (strcmp(entry, "broken") == 0) {
            m.magic = "GGUX";
        } else if (*entry == '@') {
            put_tensor(&m, entry);
        } else {
            put_entry(&m, arch, entry);
        }
    }
    maker_write(&m, path);
}

/* ---- telling what is read ---- */

static void tell_floats(bytes *out, const tensor *t)
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
            bytes_printf(out, "%s%.4g", i ? "," : " ", (double)values[i]);
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        sum += (double)values[i] * (double)(i % 97 + 1);
    }
    bytes_printf(out, " sum %.7g", sum);
}

static void tell_tensors(bytes *out, const tensor_table *all)
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
static void tell_json(bytes *out, const char *what, const json *v)
{
    for (const json *item = json_child(v); item; item = json_next(item)) {
        bytes_printf(out, "%s.%s ", what, json_key(item));
        json_write(out, item);
        bytes_append_char(out, '\n');
    }
}

static void tell_documents(bytes *out, const checkpoint *ck)
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

static void tell_vocabulary(bytes *out, const char *path)
{
    gguf_file *f = NULL;
    err_detail d = {0};
    bytes text = bytes_empty(1 << 20);
    CHECK_OK(gguf_file_open(&f, path, &d), d);
    const err_code err = f ? gguf_tokenizer_json(&text, f, path, &d) : ERR_OK;
    bytes_printf(out, "vocabulary: %s\n", err ? d.text : "");
    for (const char *at = err ? "" : bytes_str(&text); *at;) { /* a part in a line */
        static const char *const PARTS[] = {"\"pre_tokenizer\"", "\"decoder\"", "\"added_tokens\"",
                                            "\"model\"",         "\"vocab\"",   "\"merges\"",
                                            "\"scores\""};
        size_t n = strcspn(at, "\n");
        for (size_t i = 0; i < ARRAY_LEN(PARTS); i++) {
            const char *part = strstr(at + 1, PARTS[i]);
            n = part && (size_t)(part - at) < n ? (size_t)(part - at) : n;
        }
        bytes_printf(out, "vocabulary %.*s\n", (int)n, at);
        at += n + (at[n] == '\n');
    }
    gguf_file_close(f);
    bytes_deinit(&text);
}

/* All that is read of FOLDER/model.gguf, a fact in a line; the folder's name is left out. */
static void tell(bytes *out, const char *path, const char *mmproj)
{
    checkpoint *ck = NULL;
    err_detail d = {0};
    bytes text = bytes_empty(1 << 20);
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
        return;
    }
    const checkpoint_traits *traits = checkpoint_get_traits(ck);
    bytes_printf(out, "traits%s%s%s\n", traits->norms_hold_one ? " one" : "",
                 traits->mtp_norms_hold_one ? " draft-one" : "", traits->value_heads_tiled ? " tiled" : "");
    tell_tensors(out, checkpoint_tensors(ck));
    tell_documents(out, ck);
    tell_vocabulary(out, checkpoint_path(ck));
    CHECK_OK(checkpoint_read_template(ck, &text, &d), d);
    bytes_printf(out, "template %s\n", bytes_str(&text));
    bytes_deinit(&text);
    checkpoint_close(ck);
}

/* ---- lines of the record ---- */

static size_t name_length(const char *entry)
{
    return strcspn(entry, " ");
}

/* Puts the entry in the place of that of its name, or behind the others; "-NAME" takes one out. */
static void change(description *d, const char *entry, size_t n)
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

static bool has_line(const char *text, const char *line, size_t n)
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
static bool is_of_lost_part(const char *line, const char *other)
{
    return (strncmp(line, "config.", 7) == 0 && strstr(other, "\nconfig: ")) ||
           (strncmp(line, "vocabulary", 10) == 0 && strstr(other, "\nvocabulary: /"));
}

/* The lines of `text` that `other` has not, or all. */
static void tell_lines(bytes *out, const char *text, const char *other, const char *mark)
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
static void without(bytes *out, const char *text, const char *folder)
{
    for (const char *found; (found = strstr(text, folder)); text = found + strlen(folder)) {
        bytes_append(out, text, (size_t)(found - text));
    }
    bytes_append_str(out, text);
}

static void answer(void *ctx, bytes *out, const char *line, size_t len)
{
    static description d;
    char folder[FOLDER_NAME], path[128], mmproj[128], first[128];
    const char *colon = memchr(line, ':', len), *end = line + len;
    const bool is_whole = *line == '=';
    bool has_tower = false, has_first = false, named = false;
    (void)ctx;
    if (len == 0 || *line == '*' || !colon) {
        return;
    }
    d = is_whole ? (description){0} : made;
    for (const char *at = colon + 1; at < end;) {
        at += strspn(at, " ");
        const char *semicolon = memchr(at, ';', (size_t)(end - at));
        const size_t n = (size_t)((semicolon ? semicolon : end) - at);
        named = named || (n == 2 && memcmp(at, "!n", 2) == 0); /* the tower is named */
        if (n > 0 && *at != '!') {
            change(&d, at, n);
        }
        at += n + 1;
    }
    for (size_t i = 0; i < d.n; i++) {
        has_tower = has_tower || d.entries[i][0] == '~';
        has_first = has_first || d.entries[i][0] == '&';
    }
    folder_make(folder);
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    snprintf(mmproj, sizeof mmproj, "%s/mmproj.gguf", folder);
    write_file(&d, path, 0);
    if (has_tower) {
        write_file(&d, mmproj, '~');
    }
    if (has_first) {
        snprintf(first, sizeof first, "%s/a-mmproj.gguf", folder);
        write_file(&d, first, '&');
    }
    bytes all = bytes_empty(TOLD), seen = bytes_empty(TOLD);
    tell(&all, path, named ? mmproj : NULL);
    without(&seen, bytes_str(&all), folder);
    if (is_whole) {
        made = d;
        tell_lines(out, bytes_str(&seen), NULL, "");
        bytes_clear(&told_whole);
        bytes_append(&told_whole, seen.data, seen.len);
    } else if (strncmp(bytes_str(&seen), "refused", 7) == 0) {
        bytes_printf(out, "< %s", bytes_str(&seen));
    } else {
        tell_lines(out, bytes_str(&told_whole), bytes_str(&seen), " -");
        tell_lines(out, bytes_str(&seen), bytes_str(&told_whole), " +");
    }
    bytes_deinit(&all);
    bytes_deinit(&seen);
}

int main(void)
{
    log_set_level(LOG_OFF);
    told_whole = bytes_empty(TOLD);
    recorded_answers(PARLEY_SOURCE_DIR "/tests/model/checkpoint/gguf_changed.txt", answer, NULL);
    bytes_deinit(&told_whole);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
