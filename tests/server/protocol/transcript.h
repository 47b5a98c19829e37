/* transcript: the pieces of an answer as one readable line, so that tests compare texts:
 *
 *   R{reasoning}C{content}[name {"a":1}]      a call that is whole
 *   [name {"a":1!]                            a call that was cut
 *
 * White space in front of a call is left out.
 */
#ifndef PARLEY_TESTS_SERVER_PROTOCOL_TRANSCRIPT_H
#define PARLEY_TESTS_SERVER_PROTOCOL_TRANSCRIPT_H

#include "server/protocol/output/reply_parser.h"

static inline void transcript_write(bytes *out, const reply_pieces *p)
{
    static const char *const BEFORE[] = {"R{", "C{", "", "[", " ", "]", "!]"};
    static const char *const AFTER[] = {"}", "}", "", "", "", "", ""};
    for (size_t i = 0; i < p->n; i++) {
        if (p->items[i].kind == REPLY_BLANK) {
            continue;
        }
        bytes_append_str(out, BEFORE[p->items[i].kind]);
        bytes_append(out, bytes_str(&p->items[i].text), p->items[i].text.len);
        bytes_append_str(out, AFTER[p->items[i].kind]);
    }
}

/* Length of the next push: step > 0: always that; 0: pseudo-random, 1 to 16, from *seed; with seed
 * 0 all at once. */
static inline size_t transcript_cut(size_t step, uint32_t *seed, size_t left)
{
    size_t n = step;
    if (step == 0 && *seed == 0) {
        return left;
    }
    if (step == 0) {
        *seed = *seed * 1664525u + 1013904223u;
        n = (*seed >> 24) % 16 + 1;
    }
    return n < left ? n : left;
}

/* Parses text in pushes and appends the transcript. */
static inline void transcript_parse(bytes *out, const reply_rules *rules, const char *text, size_t len,
                                    size_t step, uint32_t seed, bool was_cut)
{
    reply_parser p;
    reply_parser_init(&p, rules);
    for (size_t at = 0, n; at < len; at += n) {
        n = transcript_cut(step, &seed, len - at);
        reply_parser_push(&p, text + at, n);
    }
    reply_parser_finish(&p, was_cut);
    transcript_write(out, &p.pieces);
    reply_parser_deinit(&p);
}

/* A text as it comes byte by byte, with a | behind each byte by which more of the answer was told (|n: n bytes of it): what is
 * held back although nothing can come of it, or told too soon, shows in no transcript. */
static inline void transcript_told(bytes *out, const reply_rules *rules, const char *text)
{
    reply_parser p;
    size_t told = 0;
    reply_parser_init(&p, rules);
    for (const char *c = text; *c; c++) {
        reply_parser_push(&p, c, 1);
        size_t n = 0;
        for (size_t i = 0; i < p.pieces.n; i++) {
            n += p.pieces.items[i].text.len;
        }
        const unsigned char sign = (unsigned char)*c;
        bytes_printf(out, sign == '\n' ? "\\n" : sign < 0x80 ? "%c" : "\\x%02x", sign);
        if (n > told) {
            bytes_printf(out, n > told + 1 ? "|%zu" : "|", n - told);
        }
        told = n;
    }
    bytes_append_char(out, '\n');
    reply_parser_deinit(&p);
}

/* The same for two pushes. */
static inline void transcript_parse_split(bytes *out, const reply_rules *rules, const char *text, size_t len,
                                          size_t cut, bool was_cut)
{
    reply_parser p;
    reply_parser_init(&p, rules);
    reply_parser_push(&p, text, cut);
    reply_parser_push(&p, text + cut, len - cut);
    reply_parser_finish(&p, was_cut);
    transcript_write(out, &p.pieces);
    reply_parser_deinit(&p);
}

#endif
