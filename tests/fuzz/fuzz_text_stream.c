/* text_stream and reply_parser: the text is the same however it was cut into pushes, and always valid UTF-8.
 * The first two bytes choose the cuts; the stop strings are fixed. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "server/reply_parser.h"
#include "server/text_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TEXT_BYTES = 8192 };

static void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* Length of the next push: pseudo-random, 1 to 16, or all at once with seed 0. */
static size_t next_cut(uint32_t *seed, size_t left)
{
    if (*seed == 0) {
        return left;
    }
    *seed = *seed * 1664525u + 1013904223u;
    size_t n = (*seed >> 24) % 16 + 1;
    return n < left ? n : left;
}

static void stream(bytes *out, bool *stopped, const char *text, size_t len, uint32_t seed)
{
    static char stop_a[] = "END", stop_b[] = "ENDE\xC3\xA9", stop_c[] = "\n\n";
    char *const stops[] = {stop_a, stop_b, stop_c};
    text_stream s;
    text_stream_init(&s, stops, sizeof stops / sizeof stops[0]);
    for (size_t at = 0, n; at < len; at += n) {
        n = next_cut(&seed, len - at);
        text_stream_push(&s, out, text + at, n);
        must(utf8_valid(bytes_str(out), out->len));
    }
    text_stream_finish(&s, out);
    *stopped = s.stopped;
    text_stream_deinit(&s);
}

static void split(bytes *reasoning, bytes *content, const char *text, size_t len, uint32_t seed,
                  bool thinking)
{
    reply_parser p;
    reply_parser_init(&p, thinking, true);
    for (size_t at = 0, n; at < len; at += n) {
        n = next_cut(&seed, len - at);
        reply_parser_push(&p, text + at, n);
    }
    reply_parser_finish(&p);
    bytes_append(reasoning, bytes_str(&p.reasoning), p.reasoning.len);
    bytes_append(content, bytes_str(&p.content), p.content.len);
    reply_parser_deinit(&p);
}

static bool same(const bytes *a, const bytes *b)
{
    return a->len == b->len && memcmp(bytes_str(a), bytes_str(b), a->len) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > MAX_TEXT_BYTES) {
        return 0;
    }
    uint32_t seed = ((uint32_t)data[0] << 8 | data[1]) + 1;
    const char *text = (const char *)data + 2;
    size_t len = size - 2;
    bytes whole[3], cut[3];
    for (int i = 0; i < 3; i++) {
        bytes_init(&whole[i], 4 * MAX_TEXT_BYTES);
        bytes_init(&cut[i], 4 * MAX_TEXT_BYTES);
    }
    bool stopped_whole, stopped_cut;
    stream(&whole[0], &stopped_whole, text, len, 0);
    stream(&cut[0], &stopped_cut, text, len, seed);
    must(utf8_valid(bytes_str(&whole[0]), whole[0].len));
    must(same(&whole[0], &cut[0]) && stopped_whole == stopped_cut);
    must(strstr(bytes_str(&whole[0]), "END") == NULL);

    bool thinking = data[0] & 1;
    split(&whole[1], &whole[2], text, len, 0, thinking);
    split(&cut[1], &cut[2], text, len, seed, thinking);
    must(same(&whole[1], &cut[1]) && same(&whole[2], &cut[2]));
    must(whole[1].len + whole[2].len <= len);
    for (int i = 0; i < 3; i++) {
        bytes_deinit(&whole[i]);
        bytes_deinit(&cut[i]);
    }
    return 0;
}
