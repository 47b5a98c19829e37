#include "text/tokenizer/pretokenizer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/bytes.h"
#include "base/utf8.h"

const char PRETOKENIZER_GPT2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

enum {
    PATTERN_MAX_BYTES = 1 << 16,
    JIT_STACK_MIN = 32 << 10,
    JIT_STACK_MAX = 64 << 20,
    MATCH_LIMIT_MIN = 10000000,
};

struct pretokenizer {
    size_t n;
    pcre2_code *codes[PRETOKENIZER_MAX_PATTERNS];
};

struct pretokenizer_scratch {
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack; /* made when the machine stack is too small for a match */
};

/* One split in progress. */
typedef struct split_job {
    const pretokenizer *p;
    pretokenizer_scratch *s;
    pretokenizer_fn fn;
    void *ctx;
    err_detail *detail;
} split_job;

/* Copies a pattern with \s and \S spelled as the White_Space property.
 * TRAP: \s of this library also matches U+180E, which is no white space since Unicode 6.3. */
static void append_pattern(bytes *out, const char *pattern)
{
    for (const char *c = pattern; *c; c++) {
        if (*c != '\\' || c[1] == '\0') {
            bytes_append_char(out, *c);
        } else if (c[1] == 's' || c[1] == 'S') {
            bytes_append_str(out, c[1] == 's' ? "\\p{White_Space}" : "\\P{White_Space}");
            c++;
        } else {
            bytes_append(out, c, 2);
            c++;
        }
    }
}

static err_code compile(pcre2_code **out, const char *pattern, err_detail *detail)
{
    bytes text;
    bytes_init(&text, PATTERN_MAX_BYTES);
    append_pattern(&text, pattern);
    int code = 0;
    PCRE2_SIZE offset = 0;
    *out = NULL;
    if (!text.failed) {
        *out = pcre2_compile((PCRE2_SPTR)bytes_str(&text), text.len, PCRE2_UTF | PCRE2_UCP, &code, &offset,
                             NULL);
    }
    const bool no_memory = text.no_memory || code == PCRE2_ERROR_HEAP_FAILED;
    bytes_deinit(&text);
    if (no_memory) {
        return err_set(detail, ERR_NOMEM, "no memory for the pre-tokenizer");
    }
    if (!*out) {
        PCRE2_UCHAR why[128] = "it is too long";
        if (code) {
            pcre2_get_error_message(code, why, sizeof why);
        }
        return err_set(detail, ERR_UNSUPPORTED, "the pre-tokenizer's expression does not compile: %s",
                       (const char *)why);
    }
    /* Without just-in-time compilation (some hardened systems) matching is slower, not wrong. */
    (void)pcre2_jit_compile(*out, PCRE2_JIT_COMPLETE);
    return ERR_OK;
}

err_code pretokenizer_create(pretokenizer **out, const char *const *patterns, size_t n, err_detail *detail)
{
    *out = NULL;
    if (n > PRETOKENIZER_MAX_PATTERNS) {
        return err_set(detail, ERR_UNSUPPORTED, "the pre-tokenizer has %zu splits; at most %d are supported",
                       n, PRETOKENIZER_MAX_PATTERNS);
    }
    pretokenizer *p = calloc(1, sizeof *p);
    if (!p) {
        return err_set(detail, ERR_NOMEM, "no memory for the pre-tokenizer");
    }
    for (; p->n < n; p->n++) {
        err_code err = compile(&p->codes[p->n], patterns[p->n], detail);
        if (err) {
            pretokenizer_destroy(p);
            return err;
        }
    }
    *out = p;
    return ERR_OK;
}

void pretokenizer_destroy(pretokenizer *p)
{
    if (!p) {
        return;
    }
    for (size_t i = 0; i < p->n; i++) {
        pcre2_code_free(p->codes[i]);
    }
    free(p);
}

err_code pretokenizer_scratch_create(pretokenizer_scratch **out, const pretokenizer *p, err_detail *detail)
{
    pretokenizer_scratch *s = calloc(1, sizeof *s);
    *out = s;
    if (s) {
        s->match = pcre2_match_data_create(1, NULL);
        s->context = pcre2_match_context_create(NULL);
    }
    if (!s || !s->match || !s->context) {
        pretokenizer_scratch_destroy(s);
        *out = NULL;
        return err_set(detail, ERR_NOMEM, "no memory to split text (%zu expressions)", p->n);
    }
    return ERR_OK;
}

void pretokenizer_scratch_destroy(pretokenizer_scratch *s)
{
    if (!s) {
        return;
    }
    pcre2_match_data_free(s->match);
    pcre2_match_context_free(s->context);
    pcre2_jit_stack_free(s->stack);
    free(s);
}

/* The next match at or after *begin: true with [*begin, *end), false if there is none. */
static err_code next_match(const split_job *job, const pcre2_code *code, const char *text, size_t len,
                           size_t *begin, size_t *end, bool *found)
{
    pretokenizer_scratch *s = job->s;
    /* TRAP: without NO_UTF_CHECK every call validates the rest of the text, which is quadratic. */
    int n = pcre2_match(code, (PCRE2_SPTR)text, len, *begin, PCRE2_NO_UTF_CHECK, s->match, s->context);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT && !s->stack) {
        s->stack = pcre2_jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX, NULL);
        if (!s->stack) {
            return err_set(job->detail, ERR_NOMEM, "no memory to split a text of %zu bytes", len);
        }
        pcre2_jit_stack_assign(s->context, NULL, s->stack);
        n = pcre2_match(code, (PCRE2_SPTR)text, len, *begin, PCRE2_NO_UTF_CHECK, s->match, s->context);
    }
    *found = n >= 0;
    if (n == PCRE2_ERROR_NOMATCH) {
        return ERR_OK;
    }
    if (n < 0) {
        return err_set(job->detail, n == PCRE2_ERROR_NOMEMORY ? ERR_NOMEM : ERR_LIMIT,
                       "the text cannot be split into words: its expression exceeds a limit (%d)", n);
    }
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(s->match);
    *begin = at[0];
    *end = at[1];
    return ERR_OK;
}

/* Cuts a piece with expression `level` and hands the parts to the next level, at last to fn. */
static err_code split_level(const split_job *job, size_t level, const char *text, size_t len)
{
    if (len == 0) {
        return ERR_OK;
    }
    if (level == job->p->n) {
        return job->fn(job->ctx, text, len, job->detail);
    }
    size_t done = 0, from = 0;
    while (from < len) {
        size_t begin = from, end = len;
        bool found;
        err_code err = next_match(job, job->p->codes[level], text, len, &begin, &end, &found);
        if (err) {
            return err;
        }
        if (!found) {
            break;
        }
        if (end <= begin) { /* an empty match cuts nothing: look on behind the next character */
            uint32_t c;
            from = begin < len ? begin + utf8_decode(text + begin, len - begin, &c) : len;
            continue;
        }
        err = split_level(job, level + 1, text + done, begin - done);
        if (!err) {
            err = split_level(job, level + 1, text + begin, end - begin);
        }
        if (err) {
            return err;
        }
        done = from = end;
    }
    return split_level(job, level + 1, text + done, len - done);
}

err_code pretokenizer_split(const pretokenizer *p, pretokenizer_scratch *s, const char *text, size_t len,
                            pretokenizer_fn fn, void *ctx, err_detail *detail)
{
    /* Every run of blanks is walked twice, so the work allowed grows with the text. */
    uint64_t limit = MATCH_LIMIT_MIN + 16 * (uint64_t)len;
    pcre2_set_match_limit(s->context, limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit);
    split_job job = {p, s, fn, ctx, detail};
    return split_level(&job, 0, text, len);
}
