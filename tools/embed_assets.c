/* embed_assets: writes the files of the page as a C table (server/service/assets.h), gzipped where that is
 * smaller. Runs at build time.
 *
 *     embed_assets OUT.c ROOT FILE...        (FILE is relative to ROOT; NAME=FILE gives it another name)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"

#define MAX_BYTES ((size_t)32 << 20)

enum { LINE_BYTES = 100 };

/* Gzips `in` (no time stamp, so that builds repeat); false if zlib fails. */
static int gzip_to(bytes *out, const bytes *in)
{
    z_stream z;
    memset(&z, 0, sizeof z);
    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
        return 0;
    }
    z.next_in = (Bytef *)in->data;
    z.avail_in = (uInt)in->len;
    int rc = Z_OK;
    while (rc == Z_OK) {
        unsigned char piece[16384];
        z.next_out = piece;
        z.avail_out = sizeof piece;
        rc = deflate(&z, Z_FINISH);
        bytes_append(out, piece, sizeof piece - z.avail_out);
    }
    deflateEnd(&z);
    return rc == Z_STREAM_END && !out->failed;
}

/* A C string literal; octal escapes always take three digits, so that a digit may follow. */
static void write_literal(FILE *f, const bytes *data)
{
    for (size_t i = 0; i < data->len; i += LINE_BYTES) {
        fputs("\n    \"", f);
        for (size_t k = i; k < data->len && k < i + LINE_BYTES; k++) {
            fprintf(f, "\\%03o", (unsigned)(unsigned char)data->data[k]);
        }
        fputc('"', f);
    }
    if (data->len == 0) {
        fputs("\"\"", f);
    }
}

static int embed(FILE *f, bytes *table, const char *root, const char *name, int index)
{
    const char *equals = strchr(name, '=');
    const int name_len = (int)(equals ? (size_t)(equals - name) : strlen(name));
    char path[4096], hex[2 * HASH_BYTES + 1];
    uint8_t hash[HASH_BYTES];
    err_detail detail = {0};
    bytes plain, packed;
    bytes_init(&plain, MAX_BYTES);
    bytes_init(&packed, MAX_BYTES);
    int ok = file_join(path, sizeof path, root, equals ? equals + 1 : name) &&
             file_read(&plain, path, &detail) == ERR_OK && gzip_to(&packed, &plain);
    if (!ok) {
        fprintf(stderr, "embed_assets: %s: %s\n", name, detail.text[0] ? detail.text : "cannot be packed");
    } else {
        int is_gzip = packed.len < plain.len - plain.len / 20;
        hash_sha256(hash, bytes_str(&plain), plain.len);
        hash_hex(hex, hash, 16);
        fprintf(f, "static const char FILE_%d[] =", index);
        write_literal(f, is_gzip ? &packed : &plain);
        fputs(";\n", f);
        bytes_printf(table, "    {\"/%.*s\", FILE_%d, sizeof FILE_%d - 1, %zu, %s, \"\\\"%s\\\"\"},\n",
                     name_len, name, index, index, plain.len, is_gzip ? "true" : "false", hex);
    }
    bytes_deinit(&plain);
    bytes_deinit(&packed);
    return ok;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: embed_assets OUT.c ROOT FILE...\n");
        return 2;
    }
    FILE *f = fopen(argv[1], "w");
    if (!f) {
        fprintf(stderr, "embed_assets: cannot write %s\n", argv[1]);
        return 1;
    }
    bytes table;
    bytes_init(&table, MAX_BYTES);
    fputs("/* Made by tools/embed_assets; do not edit. */\n#include \"server/service/assets.h\"\n\n", f);
    int ok = 1;
    for (int i = 3; i < argc && ok; i++) {
        ok = embed(f, &table, argv[2], argv[i], i);
    }
    fprintf(f, "\nconst asset ASSETS[] = {\n%s    {NULL, NULL, 0, 0, false, NULL},\n};\n", bytes_str(&table));
    fprintf(f, "const size_t N_ASSETS = sizeof ASSETS / sizeof ASSETS[0] - 1;\n");
    ok = ok && !table.failed && fclose(f) == 0;
    bytes_deinit(&table);
    return ok ? 0 : 1;
}
