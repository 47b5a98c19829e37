#include "server/protocol/output/reply_pieces.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void reply_pieces_init(reply_pieces *p)
{
    memset(p, 0, sizeof *p);
}

void reply_pieces_deinit(reply_pieces *p)
{
    for (size_t i = 0; i < p->cap; i++) {
        bytes_deinit(&p->items[i].text);
    }
    free(p->items);
    reply_pieces_init(p);
}

void reply_pieces_clear(reply_pieces *p)
{
    p->n = 0;
    p->failed = false;
}

static bool reserve(reply_pieces *p)
{
    const size_t had = p->cap;
    const bool ok = memory_grow(&p->items, &p->cap, p->n + 1, 4, sizeof *p->items);
    for (size_t i = had; i < p->cap; i++) {
        bytes_init(&p->items[i].text, SIZE_MAX);
    }
    return ok;
}

void reply_pieces_add(reply_pieces *p, reply_kind kind, const char *text, size_t len)
{
    bool is_mark = kind == REPLY_CALL_END || kind == REPLY_CALL_CUT;
    if (p->failed || (len == 0 && !is_mark)) {
        return;
    }
    reply_piece *last = p->n > 0 ? &p->items[p->n - 1] : NULL;
    if (!last || last->kind != kind || is_mark || kind == REPLY_CALL || kind == REPLY_ITEM) {
        if (!reserve(p)) {
            p->failed = true;
            return;
        }
        last = &p->items[p->n++];
        last->kind = kind;
        bytes_clear(&last->text);
    }
    bytes_append(&last->text, text, len);
    p->failed = last->text.failed;
}
