/* stop_filter: the text is the same however it was cut into pushes, and always valid UTF-8.
 * The first two bytes choose the cuts; the stop strings are fixed. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "server/protocol/output/stop_filter.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/say.h"
#include "tests/server/protocol/transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TEXT_BYTES = 8192 };

static void stream(bytes *out, bool *stopped, const char *text, size_t len, uint32_t seed)
{
    static char stop_a[] = "END", stop_b[] = "ENDE\xC3\xA9", stop_c[] = "\n\n";
    char *const stops[] = {stop_a, stop_b, stop_c};
    stop_filter s;
    stop_filter_init(&s, stops, sizeof stops / sizeof stops[0]);
    for (size_t at = 0, n; at < len; at += n) {
        n = transcript_cut(0, &seed, len - at);
        stop_filter_push(&s, out, text + at, n);
        must(utf8_valid(bytes_str(out), out->len));
    }
    stop_filter_finish(&s, out);
    *stopped = s.stopped;
    stop_filter_deinit(&s);
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
    bytes whole, cut;
    bytes_init(&whole, 4 * MAX_TEXT_BYTES);
    bytes_init(&cut, 4 * MAX_TEXT_BYTES);
    bool stopped_whole, stopped_cut;
    stream(&whole, &stopped_whole, text, len, 0);
    stream(&cut, &stopped_cut, text, len, seed);
    must(utf8_valid(bytes_str(&whole), whole.len));
    say_text(stopped_whole ? "stopped" : "", bytes_str(&whole), whole.len);
    must(same(&whole, &cut) && stopped_whole == stopped_cut);
    must(strstr(bytes_str(&whole), "END") == NULL);

    bytes_deinit(&whole);
    bytes_deinit(&cut);
    return 0;
}
