/* What becomes of a folder of safetensors, and of one that differs from it in a place: folder_changed.txt (changed.h says
 * how it is written). An entry is a file and its text, or a tensor of model.safetensors: @NAME TYPE ROWSxCOLUMNS...
 * [VALUE,VALUE...], by itself 1, 2, 3 ... or, of types without numbers here, bytes that count up. "~" before a tensor: it is
 * of other.safetensors. "FILE ->": a folder of that name. */
#include <errno.h>
#include <sys/stat.h>

#include "tests/model/checkpoint/changed.h"
#include "tests/open_files.h"

enum { FILE_BYTES = 1 << 20 };

/* Appends an entry's numbers to the data and its part to the header. */
static void put_tensor(bytes *header, bytes *data, const char *entry)
{
    static const struct {
        const char *name;
        size_t n_bytes;
    } TYPES[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2},    {"U8", 1},      {"I8", 1},
                 {"U32", 4}, {"I64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"BOOL", 1}};
    char name[ENTRY_BYTES], type[16], shape[64], values[ENTRY_BYTES] = "";
    size_t n = 1, k = 0;
    if (sscanf(entry, "@%399s %15s %63s %399s", name, type, shape, values) < 3) {
        CHECK_STR(entry, "@NAME TYPE SHAPE");
        return;
    }
    while (k < ARRAY_LEN(TYPES) && strcmp(TYPES[k].name, type) != 0) {
        k++;
    }
    if (k == ARRAY_LEN(TYPES)) {
        CHECK_STR(entry, "a known type");
        return;
    }
    for (char *at = shape; *at; at++) {
        n *= at == shape || at[-1] == ',' ? strtoull(at, NULL, 10) : 1;
        *at = *at == 'x' ? ',' : *at;
    }
    const size_t begin = data->len;
    const char *given = values;
    for (size_t i = 0; i < (k == 0 ? n : n * TYPES[k].n_bytes); i++) {
        char *end = NULL;
        const float v = *given ? strtof(given, &end) : (float)(i + 1);
        given = *given && *end == ',' ? end + 1 : *given ? end : given;
        if (k == 0) {
            bytes_append(data, &v, sizeof v);
        } else {
            bytes_append_char(data, end ? (char)v : (char)(i % 251));
        }
    }
    bytes_printf(header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                 header->len > 1 ? "," : "", name, type, shape, begin, data->len);
}

/* The file of the tensors of model.safetensors, or with a mark; none if there are none. */
static void write_weights(const description *d, const char *path, bool marked)
{
    bytes header = bytes_empty(FILE_BYTES), data = bytes_empty(FILE_BYTES);
    bytes_append_char(&header, '{');
    for (size_t i = 0; i < d->n; i++) {
        const char *entry = d->entries[i] + (d->entries[i][0] == '~');
        if (*entry == '@' && (d->entries[i][0] == '~') == marked) {
            put_tensor(&header, &data, entry);
        }
    }
    bytes_append_char(&header, '}');
    while (header.len % 8) {
        bytes_append_char(&header, ' ');
    }
    if (data.len > 0) {
        const uint64_t n = header.len;
        FILE *f = fopen(path, "wb");
        CHECK(f && fwrite(&n, 1, 8, f) == 8 && fwrite(header.data, 1, header.len, f) == header.len);
        CHECK(f && fwrite(data.data, 1, data.len, f) == data.len && fclose(f) == 0);
    }
    bytes_deinit(&header);
    bytes_deinit(&data);
}

static void write_text(const char *folder, const char *entry)
{
    char path[512];
    const size_t n = strcspn(entry, " ");
    const char *text = entry + n + strspn(entry + n, " ");
    for (const char *slash = entry; (slash = memchr(slash, '/', (size_t)(entry + n - slash))); slash++) {
        snprintf(path, sizeof path, "%s/%.*s", folder, (int)(slash - entry), entry);
        CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
    }
    snprintf(path, sizeof path, "%s/%.*s", folder, (int)n, entry);
    if (strcmp(text, "->") == 0) {
        CHECK_INT(mkdir(path, 0700), 0);
        return;
    }
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void tell(bytes *out, const description *d, const char *folder)
{
    char path[512];
    for (size_t i = 0; i < d->n; i++) {
        if (d->entries[i][0] != '@' && d->entries[i][0] != '~') {
            write_text(folder, d->entries[i]);
        }
    }
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    write_weights(d, path, false);
    snprintf(path, sizeof path, "%s/other.safetensors", folder);
    write_weights(d, path, true);
    checkpoint *ck = tell_opening(out, folder, NULL);
    if (ck) {
        tell_checkpoint(out, ck);
        tell_probe(out, folder);
    }
    checkpoint_close(ck);
    if (d->is_whole) {
        check_memory(folder);
    }
}

int main(void)
{
    changed_check("model/checkpoint/folder_changed.txt", tell);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
