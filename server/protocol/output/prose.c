#include "server/protocol/output/prose.h"

#include <string.h>

enum { FENCE_MIN = 3, FENCE_INDENT = 3 };

static void begin_line(prose *p)
{
    p->indent = 0;
    p->run_len = 0;
    p->is_blank = true;
    p->rest_blank = true;
    p->rest_has_run = false;
}

void prose_init(prose *p)
{
    memset(p, 0, sizeof *p);
    begin_line(p);
}

static void end_line(prose *p)
{
    bool is_fence = p->run_len >= FENCE_MIN && p->indent <= FENCE_INDENT;
    if (is_fence && !p->fenced && !(p->run == '`' && p->rest_has_run)) {
        p->fenced = true;
        p->fence = p->run;
        p->fence_len = p->run_len;
    } else if (is_fence && p->fenced && p->run == p->fence && p->run_len >= p->fence_len && p->rest_blank) {
        p->fenced = false;
    }
    begin_line(p);
}

void prose_add(prose *p, char c)
{
    bool is_space = c == ' ' || c == '\t' || c == '\r';
    if (c == '\n') {
        end_line(p);
        return;
    }
    if (!is_space) {
        p->last = p->last << 8 | (unsigned char)c;
    }
    if (p->is_blank && is_space) {
        p->indent += c == '\t' ? 4 : 1;
        return;
    }
    if (p->is_blank) {
        p->is_blank = false;
        p->in_run = c == '`' || c == '~';
        p->run = p->in_run ? c : '\0';
    }
    if (p->in_run && c == p->run) {
        p->run_len++;
        return;
    }
    p->in_run = false;
    p->rest_blank = p->rest_blank && is_space;
    p->rest_has_run = p->rest_has_run || c == '`';
}

/* . ! ? and, in three bytes of UTF-8, the ellipsis and their East Asian relatives. */
static bool ends_sentence(uint32_t last)
{
    uint32_t c = last & 0xFF, wide = last & 0xFFFFFF;
    return c == '.' || c == '!' || c == '?' || wide == 0xE280A6 || wide == 0xE38082 || wide == 0xEFBC81 ||
           wide == 0xEFBC9F;
}

bool prose_may_begin_call(const prose *p)
{
    return !p->fenced && (p->is_blank || ends_sentence(p->last));
}
