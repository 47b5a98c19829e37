#include "base/unicode.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "base/compiler.h"
#include "base/utf8.h"

/* Growable list of code points, for the characters that a cheap look cannot clear. */
typedef struct code_points {
    utf8proc_int32_t *at;
    size_t len, cap;
} code_points;

enum { DECOMPOSED_MAX = 8, SHORT_RUN = 16, N_CLASSES = 256 };

typedef struct range {
    uint32_t first, last;
} range;

/* ranges[n] are in ascending order. */
static bool in_ranges(uint32_t c, const range *ranges, size_t n)
{
    for (size_t i = 0; i < n && c >= ranges[i].first; i++) {
        if (c <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

/* TRAP: the tokenizers that the checkpoints were trained with normalize by Unicode 9. Marks that
 * are younger neither move nor combine there, so they are ordinary characters here. */
static bool is_younger_mark(uint32_t c)
{
    static const range marks[] = {
        {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
        {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
        {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
        {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11930, 0x11938},
        {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47},
        {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x16FF0, 0x16FF1},
        {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
    };
    return c <= marks[ARRAY_LEN(marks) - 1].last && in_ranges(c, marks, ARRAY_LEN(marks));
}

/* True for characters that are their own NFC, do not combine with what precedes them and have
 * class 0. */
static bool is_plain(uint32_t c)
{
    static const range plain[] = {
        {0x0400, 0x0482},   /* Cyrillic */
        {0x2010, 0x2027},   /* punctuation */
        {0x3000, 0x3029},   /* CJK punctuation */
        {0x3041, 0x3096},   /* Hiragana */
        {0x30A1, 0x30FA},   /* Katakana */
        {0x4E00, 0x9FFF},   /* CJK ideographs */
        {0xAC00, 0xD7A3},   /* Hangul syllables */
        {0xFF01, 0xFF9D},   /* full-width forms */
        {0x1F300, 0x1FAFF}, /* emoji */
    };
    return c < 0x300 || in_ranges(c, plain, ARRAY_LEN(plain)) || is_younger_mark(c);
}

bool unicode_surely_nfc(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len) {
        if ((unsigned char)text[i] < 0xCC) { /* U+0300 begins with CC 80 */
            i++;
            continue;
        }
        uint32_t c;
        i += utf8_decode(text + i, len - i, &c);
        if (!is_plain(c)) {
            return false;
        }
    }
    return true;
}

static bool code_points_push(code_points *p, const utf8proc_int32_t *more, size_t n)
{
    if (p->cap - p->len < n) {
        size_t cap = p->cap ? p->cap * 2 : 256;
        utf8proc_int32_t *at = realloc(p->at, cap * sizeof *at);
        if (!at) {
            return false;
        }
        p->at = at;
        p->cap = cap;
    }
    memcpy(p->at + p->len, more, n * sizeof *more);
    p->len += n;
    return true;
}

static int combining_class(utf8proc_int32_t c)
{
    return utf8proc_get_property(c)->combining_class;
}

/* Stable sort of one run of combining marks by class. The library's own ordering swaps neighbours,
 * which takes quadratic time on a long run. */
static bool sort_run(utf8proc_int32_t *run, size_t n)
{
    if (n <= SHORT_RUN) {
        for (size_t i = 1; i < n; i++) {
            utf8proc_int32_t c = run[i];
            size_t j = i;
            while (j > 0 && combining_class(run[j - 1]) > combining_class(c)) {
                run[j] = run[j - 1];
                j--;
            }
            run[j] = c;
        }
        return true;
    }
    utf8proc_int32_t *sorted = malloc(n * sizeof *sorted);
    if (!sorted) {
        return false;
    }
    size_t start[N_CLASSES + 1] = {0};
    for (size_t i = 0; i < n; i++) {
        start[combining_class(run[i]) + 1]++;
    }
    for (size_t k = 1; k <= N_CLASSES; k++) {
        start[k] += start[k - 1];
    }
    for (size_t i = 0; i < n; i++) {
        sorted[start[combining_class(run[i])]++] = run[i];
    }
    memcpy(run, sorted, n * sizeof *run);
    free(sorted);
    return true;
}

static bool order_marks(code_points *p)
{
    size_t i = 0;
    while (i < p->len) {
        size_t end = i;
        while (end < p->len && combining_class(p->at[end]) != 0) {
            end++;
        }
        if (end - i > 1 && !sort_run(p->at + i, end - i)) {
            return false;
        }
        i = end + 1;
    }
    return true;
}

/* What a character consists of by these options of utf8proc: how many, or itself alone where it is unknown there. */
static size_t decompose(utf8proc_int32_t parts[DECOMPOSED_MAX], uint32_t c, int options)
{
    const utf8proc_ssize_t n =
        utf8proc_decompose_char((utf8proc_int32_t)c, parts, DECOMPOSED_MAX, (utf8proc_option_t)options, NULL);
    if (n < 1 || n > DECOMPOSED_MAX) {
        parts[0] = (utf8proc_int32_t)c;
        return 1;
    }
    return (size_t)n;
}

/* Appends the NFC of a slice, of a character at least, that does not interact with its neighbours. */
static void compose_slice(bytes *out, code_points *p, const char *text, size_t len)
{
    p->len = 0;
    for (size_t i = 0; i < len;) {
        uint32_t c;
        i += utf8_decode(text + i, len - i, &c);
        utf8proc_int32_t parts[DECOMPOSED_MAX];
        const size_t n = decompose(parts, c, UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
        if (!code_points_push(p, parts, n)) {
            bytes_fail_memory(out);
            return;
        }
    }
    if (!order_marks(p)) {
        bytes_fail_memory(out);
        return;
    }
    utf8proc_ssize_t n =
        utf8proc_normalize_utf32(p->at, (utf8proc_ssize_t)p->len, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        char buf[4];
        bytes_append(out, buf, utf8_encode(buf, (uint32_t)p->at[i]));
    }
}

void unicode_nfc(bytes *out, const char *text, size_t len)
{
    code_points p = {0};
    size_t done = 0; /* text[0..done) is written */
    size_t last = 0; /* start of the character before i, if that can be a base */
    for (size_t i = 0; i < len;) {
        uint32_t c;
        size_t n = utf8_decode(text + i, len - i, &c);
        if (is_plain(c)) {
            last = is_younger_mark(c) ? i + n : i;
            i += n;
            continue;
        }
        /* A slice: the plain character before (it may be the base) up to the next plain one. */
        size_t end = i;
        while (end < len) {
            n = utf8_decode(text + end, len - end, &c);
            if (is_plain(c)) {
                break;
            }
            end += n;
        }
        size_t begin = last < done ? done : last;
        bytes_append(out, text + done, begin - done);
        compose_slice(out, &p, text + begin, end - begin);
        done = last = i = end;
    }
    bytes_append(out, text + done, len - done);
    free(p.at);
}

bool unicode_is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
           c == 0x3000;
}

bool unicode_is_alpha(uint32_t c)
{
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool unicode_is_decimal(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ND;
}

/* Digits that are not decimal, with Numeric_Type=Digit: raised, lowered, in circles and the like. */
bool unicode_is_digit(uint32_t c)
{
    static const range digits[] = {
        {0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
        {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
        {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
        {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A},
    };
    return unicode_is_decimal(c) || in_ranges(c, digits, ARRAY_LEN(digits));
}

bool unicode_is_numeric(uint32_t c)
{
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

bool unicode_is_upper(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LU;
}

bool unicode_is_lower(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LL;
}

bool unicode_is_printable(uint32_t c)
{
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return c == ' ' || (k != UTF8PROC_CATEGORY_CN && k < UTF8PROC_CATEGORY_ZS);
}

/* Characters whose upper case is several characters; title case capitalises only the first of them.
 */
static const struct {
    uint32_t c;
    const char *upper, *title;
} MULTI_UPPER[] = {
    {0x00DF, "SS", "Ss"},
    {0x0149, "\xCA\xBCN", "\xCA\xBCN"},
    {0x01F0, "J\xCC\x8C", "J\xCC\x8C"},
    {0x0587, "\xD4\xB5\xD5\x92", "\xD4\xB5\xD6\x82"},
    {0x1E96, "H\xCC\xB1", "H\xCC\xB1"},
    {0x1E97, "T\xCC\x88", "T\xCC\x88"},
    {0x1E98, "W\xCC\x8A", "W\xCC\x8A"},
    {0x1E99, "Y\xCC\x8A", "Y\xCC\x8A"},
    {0x1E9A, "A\xCA\xBE", "A\xCA\xBE"},
    {0xFB00, "FF", "Ff"},
    {0xFB01, "FI", "Fi"},
    {0xFB02, "FL", "Fl"},
    {0xFB03, "FFI", "Ffi"},
    {0xFB04, "FFL", "Ffl"},
    {0xFB05, "ST", "St"},
    {0xFB06, "ST", "St"},
};

void unicode_append_case(bytes *out, uint32_t c, unicode_case to)
{
    if (to == UNICODE_LOWER && c == 0x130) {
        bytes_append_str(out, "i\xCC\x87");
        return;
    }
    if (to != UNICODE_LOWER && c >= 0xDF) {
        for (size_t i = 0; i < ARRAY_LEN(MULTI_UPPER); i++) {
            if (MULTI_UPPER[i].c == c) {
                bytes_append_str(out, to == UNICODE_UPPER ? MULTI_UPPER[i].upper : MULTI_UPPER[i].title);
                return;
            }
        }
    }
    utf8proc_int32_t mapped = to == UNICODE_LOWER   ? utf8proc_tolower((utf8proc_int32_t)c)
                              : to == UNICODE_UPPER ? utf8proc_toupper((utf8proc_int32_t)c)
                                                    : utf8proc_totitle((utf8proc_int32_t)c);
    char buf[4];
    bytes_append(out, buf, utf8_encode(buf, (uint32_t)mapped));
}

/* A capital sigma at the end of a word becomes the final form. */
static bool is_final_sigma(const char *text, size_t len, size_t at, bool letter_before)
{
    uint32_t next;
    if (at == len) {
        return letter_before;
    }
    utf8_decode(text + at, len - at, &next);
    return letter_before && !unicode_is_alpha(next);
}

void unicode_convert(bytes *out, const char *text, size_t len, unicode_case to)
{
    bool letter_before = false;
    for (size_t i = 0; i < len;) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < 0x80) {
            bool is_up = byte >= 'A' && byte <= 'Z', is_low = byte >= 'a' && byte <= 'z';
            bool flip = to == UNICODE_LOWER ? is_up : is_low;
            bytes_append_char(out, (char)(flip ? byte ^ 0x20 : byte));
            letter_before = is_up || is_low;
            i++;
            continue;
        }
        uint32_t c;
        i += utf8_decode(text + i, len - i, &c);
        if (to == UNICODE_LOWER && c == 0x3A3 && is_final_sigma(text, len, i, letter_before)) {
            bytes_append_str(out, "\xCF\x82");
        } else {
            unicode_append_case(out, c, to);
        }
        letter_before = unicode_is_alpha(c);
    }
}

void unicode_fold(bytes *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t c;
        i += utf8_decode(text + i, len - i, &c);
        utf8proc_int32_t parts[DECOMPOSED_MAX];
        const size_t n = decompose(parts, c, UTF8PROC_CASEFOLD);
        for (size_t k = 0; k < n; k++) {
            char buf[4];
            bytes_append(out, buf, utf8_encode(buf, (uint32_t)parts[k]));
        }
    }
}
