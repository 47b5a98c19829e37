/* What becomes of a GGUF file, and of one that differs from it in a place: gguf_changed.txt (changed.h says how it is
 * written). An entry is KEY TYPE VALUE (lists as VALUE,VALUE; "e": an empty one; "." before a key stands for the
 * architecture, "#" for tokenizer.ggml.), or a tensor: @NAME TYPE COLUMNSxROWS... [VALUE,VALUE...], by itself 1, 2, 3
 * ..., no data with "none", below zero where a decay is stored, and from 101 on in a second half. "~" before an entry:
 * it is of the tower, mmproj.gguf beside the model; "&": of a-mmproj.gguf, which comes before it. "%": of the second
 * of two parts. "broken": the file has other first bytes. "!n": the tower is named; "!2": the second part is; "!1": it
 * is not there; "!f": the folder is, in place of the file; "!t": the tower is looked at as if it were a model. */
#include "model/checkpoint/checkpoint.h"

#include <unistd.h>

#include "base/file.h"
#include "model/checkpoint/gguf_tokenizer.h"
#include "tests/model/checkpoint/changed.h"
#include "tests/model/checkpoint/gguf_maker.h"
#include "tests/open_files.h"

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
    } KINDS[] = {{"f32", 0, 1, 4},      {"f16", 1, 1, 2},         {"q8_0", 8, 32, 34}, {"bf16", 30, 1, 2},
                 {"mxfp4", 39, 32, 17}, {"iq2_xxs", 16, 256, 66}, {"i8", 24, 1, 1}};
    char name[ENTRY_BYTES], kind[16], shape[64], values[ENTRY_BYTES] = "";
    uint64_t dims[4] = {0}, n = 1;
    uint32_t n_dims = 0;
    size_t k = 0;
    if (sscanf(entry, "@%399s %15s %63s %399s", name, kind, shape, values) < 3) {
        CHECK_STR(entry, "@NAME TYPE SHAPE");
        return;
    }
    for (const char *at = strcmp(shape, "-") == 0 ? NULL : shape; at && n_dims < 4; n_dims++) {
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
    if (strcmp(values, "none") == 0) { /* no data: too much */
        maker_info(m, name, KINDS[k].type, dims, n_dims, m->data.len);
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
        const bool marked = strchr("~&%", *entry) != NULL;
        if (marked ? *entry != mark : mark != 0) {
            continue;
        }
        entry += marked;
        sscanf(entry, "general.architecture text %63s", arch);
        sscanf(entry, "general.alignment u32 %u", &m.alignment);
        m.alignment = m.alignment >= 8 && m.alignment <= 1 << 16 ? m.alignment : 32;
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

/* The files of the folder, and all that is read of them. */
static void tell(bytes *out, const description *d, const char *folder)
{
    char path[128], second[128], mmproj[128], first[128];
    bool has_tower = false, has_first = false, has_parts = false;
    for (size_t i = 0; i < d->n; i++) {
        has_tower = has_tower || d->entries[i][0] == '~';
        has_first = has_first || d->entries[i][0] == '&';
        has_parts = has_parts || d->entries[i][0] == '%';
    }
    snprintf(path, sizeof path, "%s/model%s.gguf", folder, has_parts ? "-00001-of-00002" : "");
    snprintf(mmproj, sizeof mmproj, "%s/mmproj.gguf", folder);
    write_file(d, path, 0);
    if (has_tower) {
        write_file(d, mmproj, '~');
    }
    if (has_parts) {
        snprintf(second, sizeof second, "%s/model-00002-of-00002.gguf", folder);
        write_file(d, second, '%');
        if (strcmp(d->own, "!2") == 0) {
            snprintf(path, sizeof path, "%s", second);
        } else if (strcmp(d->own, "!1") == 0) {
            CHECK_INT(unlink(second), 0);
        }
    }
    if (has_first) {
        snprintf(first, sizeof first, "%s/a-mmproj.gguf", folder);
        write_file(d, first, '&');
    }
    const char *named = strcmp(d->own, "!n") == 0 ? mmproj : NULL;
    checkpoint *ck = tell_opening(out, strcmp(d->own, "!f") == 0 ? folder : path, named);
    if (ck) {
        tell_checkpoint(out, ck);
        tell_vocabulary(out, path);
        tell_probe(out, strcmp(d->own, "!t") == 0 ? mmproj : path);
    }
    checkpoint_close(ck);
    if (d->is_whole) {
        check_memory(path);
    }
}

int main(void)
{
    changed_check("model/checkpoint/gguf_changed.txt", tell);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
