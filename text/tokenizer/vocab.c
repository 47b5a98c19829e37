#include "text/tokenizer/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/utf8.h"

enum { SLOTS_MIN = 1024 };

/* Byte behind a character of GPT-2's table, or -1. Printable Latin-1 stands for itself; the 68
 * other bytes in ascending order are U+0100 ... U+0143. */
static int byte_of_char(uint32_t c)
{
    static const struct {
        uint32_t first_char, n;
        uint32_t first_byte;
    } others[] = {{0x100, 33, 0}, {0x121, 34, 127}, {0x143, 1, 173}};
    if ((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255)) {
        return (int)c;
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (c >= others[i].first_char && c < others[i].first_char + others[i].n) {
            return (int)(others[i].first_byte + (c - others[i].first_char));
        }
    }
    return -1;
}

bool vocab_unmap(char *out, size_t *out_len, const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        uint32_t c;
        i += utf8_decode(text + i, len - i, &c);
        int byte = byte_of_char(c);
        if (byte < 0) {
            return false;
        }
        out[n++] = (char)byte;
    }
    *out_len = n;
    return true;
}

size_t vocab_unspace(char *out, const char *text, size_t len)
{
    static const char mark[] = "\xe2\x96\x81";
    const size_t n_mark = sizeof mark - 1;
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        const bool is_mark = len - i >= n_mark && memcmp(text + i, mark, n_mark) == 0;
        out[n++] = is_mark ? ' ' : text[i];
        i += is_mark ? n_mark : 1;
    }
    return n;
}

err_code vocab_init(vocab *v, size_t n_entries, int32_t max_id, err_detail *detail)
{
    memset(v, 0, sizeof *v);
    bytes_init(&v->blob, LIMIT_TOKENIZER_BYTES);
    v->n_ids = max_id + 1;
    v->n_slots = SLOTS_MIN;
    while (v->n_slots < n_entries * 2) {
        v->n_slots *= 2;
    }
    v->entries = calloc((size_t)v->n_ids, sizeof *v->entries);
    v->slots = malloc(v->n_slots * sizeof *v->slots);
    if (!v->entries || !v->slots) {
        vocab_deinit(v);
        return err_set(detail, ERR_NOMEM, "no memory for a vocabulary of %d tokens", max_id + 1);
    }
    memset(v->slots, 0xFF, v->n_slots * sizeof *v->slots);
    return ERR_OK;
}

void vocab_deinit(vocab *v)
{
    bytes_deinit(&v->blob);
    free(v->entries);
    free(v->slots);
    memset(v, 0, sizeof *v);
}

static size_t hash_bytes(const char *raw, size_t len)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < len; i++) {
        h = (h ^ (unsigned char)raw[i]) * 0x100000001B3u;
    }
    return (size_t)(h ^ (h >> 29));
}

/* Slot that holds these bytes, or the free slot where they belong. */
static size_t find_slot(const vocab *v, const char *raw, size_t len)
{
    size_t slot = hash_bytes(raw, len) & (v->n_slots - 1);
    while (v->slots[slot] >= 0) {
        const vocab_entry *e = &v->entries[v->slots[slot]];
        if (e->len == len && memcmp(v->blob.data + e->offset, raw, len) == 0) {
            break;
        }
        slot = (slot + 1) & (v->n_slots - 1);
    }
    return slot;
}

err_code vocab_add(vocab *v, int32_t id, const char *text, size_t len, vocab_form form, err_detail *detail)
{
    if (id < 0 || id >= v->n_ids) {
        return err_set(detail, ERR_INVALID, "token id %d is out of range", id);
    }
    vocab_entry *e = &v->entries[id];
    e->offset = v->blob.len;
    bytes_append(&v->blob, text, len);
    if (v->blob.failed) {
        return err_set(detail, ERR_NOMEM, "the vocabulary's texts do not fit the memory");
    }
    size_t raw_len = len;
    bool mapped = form == VOCAB_BYTE_LEVEL && vocab_unmap(v->blob.data + e->offset, &raw_len, text, len);
    if (form == VOCAB_BYTE_LEVEL && !mapped) {
        /* TRAP: an entry with a character outside the table is kept as its own text, as the format
         * wants; vocab_unmap may have overwritten part of it. Byte pairs never produce it. */
        memcpy(v->blob.data + e->offset, text, len);
    }
    if (form == VOCAB_SPACED) {
        raw_len = vocab_unspace(v->blob.data + e->offset, text, len);
        mapped = true;
    }
    v->blob.len = e->offset + raw_len;
    e->len = (uint32_t)raw_len;
    e->used = true;
    e->added = form == VOCAB_LITERAL;
    if (mapped && raw_len > 0) {
        v->slots[find_slot(v, v->blob.data + e->offset, raw_len)] = id;
    }
    return ERR_OK;
}

int32_t vocab_find(const vocab *v, const char *raw, size_t len)
{
    return v->slots[find_slot(v, raw, len)];
}
