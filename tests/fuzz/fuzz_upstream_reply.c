/* upstream_reply: what another server streams gives the same texts, reason and error however it was
 * cut, calls are whole, and an error never repeats the key. The first byte chooses the wire, the
 * kind of body, the status and the cuts. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/upstream/upstream_reply.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 16384 };
static const char SECRET[] = "sk-1234567";

/* Pieces of one kind behind each other are one text. */
static void append(upstream_reply *r, bytes *out, int *last)
{
    gen_text *text = upstream_reply_take(r);
    for (size_t i = 0; text && i < text->n; i++) {
        const gen_text_piece *p = &text->pieces[i];
        const bool is_mark = p->kind == GEN_TEXT_CALL || p->kind == GEN_TEXT_CALL_END;
        if (is_mark || *last != (int)p->kind) {
            bytes_append_char(out, (char)('0' + (int)p->kind));
        }
        bytes_append(out, p->text, p->len);
        *last = (int)p->kind;
    }
    free(text);
}

static void read_all(bytes *out, const char *text, size_t len, uint8_t flags, size_t step)
{
    upstream_reply r;
    int last = -1;
    upstream_reply_init(&r, "gpu", SECRET, flags & 1 ? UPSTREAM_COMPLETION : UPSTREAM_CHAT);
    upstream_reply_head(&r, flags & 4 ? 400 : 200, flags & 2 ? "application/json" : "text/event-stream");
    for (size_t at = 0; at < len; at += step) {
        const bool wants_more = upstream_reply_push(&r, text + at, len - at < step ? len - at : step);
        append(&r, out, &last);
        if (!wants_more) {
            break;
        }
    }
    upstream_reply_finish(&r);
    append(&r, out, &last);
    must(r.error == ERR_OK || (r.detail.text[0] && !strstr(r.detail.text, SECRET)));
    must(r.error != ERR_OK || r.finish != GEN_FINISH_ERROR);
    bytes_printf(out, "\n%d %d %s", (int)r.error, (int)r.finish, r.error == ERR_OK ? "" : r.detail.text);
    bytes_printf(out, " %d: %d %d %d %d, %d", r.usage.is_known, (int)r.usage.prompt, (int)r.usage.cached,
                 (int)r.usage.completion, (int)r.usage.reasoning, r.is_done);
    upstream_reply_deinit(&r);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_behind(1, mutate_lines, data, size, max, seed, "upstream_reply");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > MAX_BYTES) {
        return 0;
    }
    const char *text = (const char *)data + 1;
    bytes whole = bytes_empty(SIZE_MAX / 2), cut = bytes_empty(SIZE_MAX / 2);
    read_all(&whole, text, size - 1, data[0], size);
    say_text("", bytes_str(&whole), whole.len);
    read_all(&cut, text, size - 1, data[0], 1 + (size_t)(data[0] >> 3) % 31);
    must(whole.len == cut.len && memcmp(whole.data, cut.data, whole.len) == 0);
    bytes_deinit(&whole);
    bytes_deinit(&cut);
    return 0;
}
