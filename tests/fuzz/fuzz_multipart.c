/* multipart: a form gives the same fields however it is cut into pieces. The first byte says where
 * it is cut. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "server/media/multipart.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static err_code on_begin(void *ctx, const multipart_field *f, err_detail *d)
{
    (void)d;
    bytes_printf(ctx, "[%s|%s|%d]", f->name, f->filename, f->is_file);
    return ERR_OK;
}

static err_code on_data(void *ctx, const void *data, size_t n, err_detail *d)
{
    (void)d;
    bytes_append(ctx, data, n);
    return ERR_OK;
}

static err_code on_end(void *ctx, err_detail *d)
{
    (void)d;
    bytes_append_char(ctx, ';');
    return ERR_OK;
}

/* What came out, and how it ended. */
static err_code read_form(bytes *out, err_detail *d, const uint8_t *data, size_t size, size_t step)
{
    multipart m;
    err_code err = ERR_OK;
    bytes_init(out, 1 << 20);
    if (!multipart_init(&m, "multipart/form-data; boundary=b",
                        &(multipart_sink){.ctx = out, .begin = on_begin, .data = on_data, .end = on_end})) {
        abort();
    }
    for (size_t at = 0; at < size && err == ERR_OK; at += step) {
        err = multipart_feed(&m, data + at, size - at < step ? size - at : step, d);
    }
    if (err == ERR_OK) {
        bytes_printf(out, "|%d", multipart_is_complete(&m));
    }
    multipart_deinit(&m);
    return err;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_behind(1, mutate_words, data, size, max, seed, "multipart");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes whole, cut;
    if (size < 2 || size > 4096) {
        return 0;
    }
    err_detail d = {0};
    const err_code err = read_form(&whole, &d, data + 1, size - 1, size);
    if (err != ERR_OK) {
        say_error(err, &d);
    }
    say_text("", bytes_str(&whole), whole.len);
    (void)read_form(&cut, &d, data + 1, size - 1, 1 + data[0] % 32);
    /* A form that is refused may have given more of its data when it came at once. */
    const bool ends = whole.len >= 2 && whole.data[whole.len - 2] == '|';
    if (ends && (whole.len != cut.len || memcmp(whole.data, cut.data, whole.len) != 0)) {
        abort();
    }
    bytes_deinit(&whole);
    bytes_deinit(&cut);
    return 0;
}
