#include "model/checkpoint/tensor_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/limits.h"
#include "compute/formats/quant.h"

enum { HEADER_ALIGN = 64, PREFIX_BYTES = 8 };

static size_t row_length(const tensor *t)
{
    return t->dims[0] ? tensor_len(t) / t->dims[0] : 0;
}

size_t writer_entry_bytes(const writer_entry *e)
{
    if (!e->from) {
        return 0;
    }
    return dtype_is_quantized(e->to) ? e->from->dims[0] * quant_row_bytes(e->to, row_length(e->from))
                                     : e->from->bytes;
}

void writer_fill(unsigned char *data, const writer_entry *entries, size_t n, compute *c,
                 const load_progress *progress)
{
    uint64_t done = 0, total = 0;
    for (size_t i = 0; i < n; i++) {
        total += writer_entry_bytes(&entries[i]);
    }
    for (size_t i = 0; i < n; i++) {
        const writer_entry *e = &entries[i];
        const size_t n_bytes = writer_entry_bytes(e);
        if (n_bytes > 0 && dtype_is_quantized(e->to)) {
            nn_quantize(c, data + done, e->to, e->from);
        } else if (n_bytes > 0) {
            memcpy(data + done, e->from->data, n_bytes);
        }
        done += n_bytes;
        if (progress && progress->fn) {
            progress->fn(progress->ctx, done, total);
        }
    }
}

static const char *stored_type(dtype type)
{
    static const char *const floats[] = {[DTYPE_F32] = "F32", [DTYPE_BF16] = "BF16", [DTYPE_F16] = "F16"};
    return type < DTYPE_OTHER ? floats[type] : "U8";
}

/* The JSON header, padded so that the data begins on a cache line. Returns the bytes of data. */
static size_t append_header(bytes *b, const writer_entry *entries, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const writer_entry *e = &entries[i];
        size_t end = at + writer_entry_bytes(e);
        bytes_append_char(b, i ? ',' : '{');
        bytes_append_json(b, e->name, strlen(e->name));
        bytes_printf(b, ":{\"dtype\":\"%s\",\"shape\":[", e->from ? stored_type(e->to) : "U8");
        if (!e->from) {
            bytes_append_char(b, '0');
        } else if (dtype_is_quantized(e->to)) {
            bytes_printf(b, "%zu,%zu", e->from->dims[0], quant_row_bytes(e->to, row_length(e->from)));
        } else {
            for (int32_t d = 0; d < e->from->n_dims; d++) {
                bytes_printf(b, d ? ",%zu" : "%zu", e->from->dims[d]);
            }
        }
        bytes_printf(b, "],\"data_offsets\":[%zu,%zu]}", at, end);
        at = end;
    }
    bytes_append_str(b, n ? "}" : "{}");
    while ((b->len + PREFIX_BYTES) % HEADER_ALIGN != 0 && !b->failed) {
        bytes_append_char(b, ' ');
    }
    return at;
}

/* Writes header and data into the open file. */
static err_code write_file(int fd, const char *path, const bytes *header, size_t n_data,
                           const writer_entry *entries, size_t n, compute *c, const load_progress *progress,
                           err_detail *detail)
{
    const size_t total = PREFIX_BYTES + header->len + n_data;
    int refused = posix_fallocate(fd, 0, (off_t)total);
    if (refused != 0) {
        return err_set(detail, ERR_IO, "%s: %zu MiB cannot be written: %s", path, total >> 20,
                       strerror(refused));
    }
    unsigned char *map = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        return err_set(detail, ERR_IO, "%s: %s", path, strerror(errno));
    }
    file_map_ask_for_huge_pages(map, total);
    for (int i = 0; i < PREFIX_BYTES; i++) {
        map[i] = (unsigned char)((uint64_t)header->len >> (8 * i));
    }
    memcpy(map + PREFIX_BYTES, header->data, header->len);
    writer_fill(map + PREFIX_BYTES + header->len, entries, n, c, progress);
    bool synced = msync(map, total, MS_SYNC) == 0;
    int why = errno;
    munmap(map, total);
    return synced ? ERR_OK : err_set(detail, ERR_IO, "%s: %s", path, strerror(why));
}

err_code tensor_write(const char *path, const writer_entry *entries, size_t n, compute *c,
                      const load_progress *progress, err_detail *detail)
{
    char part[4096];
    int fd = -1;
    err_code err = ERR_OK;
    bytes header = bytes_empty(LIMIT_SAFETENSORS_HEADER_BYTES);
    const size_t n_data = append_header(&header, entries, n);
    if (header.failed) {
        err = err_set(detail, ERR_NOMEM, "%s: no memory for the list of tensors", path);
        goto out;
    }
    if (snprintf(part, sizeof part, "%s.%ld.part", path, (long)getpid()) >= (int)sizeof part) {
        err = err_set(detail, ERR_INVALID, "the path is too long: %s", path);
        goto out;
    }
    (void)unlink(part); /* left by an earlier process of this number */
    fd = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) {
        err = err_set(detail, ERR_IO, "%s: %s", part, strerror(errno));
        goto out;
    }
    err = write_file(fd, path, &header, n_data, entries, n, c, progress, detail);
    if (err == ERR_OK && rename(part, path) != 0) {
        err = err_set(detail, ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (err != ERR_OK) {
        (void)unlink(part);
    }
out:
    file_close(fd);
    bytes_deinit(&header);
    return err;
}
