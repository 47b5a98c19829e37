#include "tests/fuzz/outcomes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/say.h"

/* Bytes of changes in a file; how many outcomes that differ in numbers alone are recorded; mismatches that are shown. */
enum { ROOM = 60000, ALIKE = 2, SHOWN = 4, SHOWN_INPUT = 300 };

void outcomes_begin(outcomes *o, const char *path, size_t n_seeds)
{
    *o = (outcomes){.path = path, .writes = getenv("PARLEY_WRITE") != NULL, .n_seeds_left = n_seeds};
    o->old = o->out = o->seed = o->block = o->shape = bytes_empty(SIZE_MAX / 2);
    if (file_read(&o->old, path, NULL) != ERR_OK && !o->writes) {
        printf("%s cannot be read\n", path);
        o->n_wrong++;
    }
    o->next = bytes_str(&o->old);
    o->cap_seen = 1 << 16;
    o->seen = calloc(o->cap_seen, sizeof *o->seen);
    must(o->seen != NULL);
}

static uint64_t hash_of(uint64_t hash, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    }
    return hash;
}

/* Adds to the shapes that were seen; false if it was there. */
static bool is_new(outcomes *o, uint64_t hash)
{
    size_t at = hash % o->cap_seen;
    while (o->seen[at] != 0 && o->seen[at] != hash) {
        at = (at + 1) % o->cap_seen;
    }
    if (o->seen[at] == hash || o->n_seen == o->cap_seen / 2) {
        return false;
    }
    o->seen[at] = hash;
    o->n_seen++;
    return true;
}

/* Whether an outcome is unlike those before it, but for a few that differ in numbers alone. */
static bool is_of_interest(outcomes *o, const bytes *said)
{
    const char *text = bytes_str(said);
    bytes_clear(&o->shape);
    for (size_t i = 0; i < said->len; i++) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        if (!digit) {
            bytes_append_char(&o->shape, text[i]);
        } else if (i == 0 || text[i - 1] < '0' || text[i - 1] > '9') {
            bytes_append_char(&o->shape, '0');
        }
    }
    if (!is_new(o, hash_of(14695981039346656037u, text, said->len))) {
        return false;
    }
    const uint64_t shape = hash_of(88172645463325252u, bytes_str(&o->shape), o->shape.len);
    for (uint64_t i = 0; i < ALIKE; i++) {
        if (is_new(o, shape + i)) {
            return true;
        }
    }
    return false;
}

static size_t line_len(const char *text)
{
    const char *end = strchr(text, '\n');
    return end ? (size_t)(end - text) + 1 : strlen(text);
}

/* Lines that two texts have in common at their beginning; *bytes: how long they are. */
static size_t same_begin(const bytes *a, const bytes *b, size_t *n_bytes)
{
    const char *x = bytes_str(a), *y = bytes_str(b);
    size_t lines = 0, at = 0;
    while (x[at] && line_len(x + at) == line_len(y + at) && strncmp(x + at, y + at, line_len(x + at)) == 0) {
        at += line_len(x + at);
        lines++;
    }
    *n_bytes = at;
    return lines;
}

static size_t last_line_len(const char *text, size_t n)
{
    size_t len = n > 0;
    while (len < n && text[n - len - 1] != '\n') {
        len++;
    }
    return len;
}

/* Likewise at their end, behind the first `begin` bytes. */
static size_t same_end(const bytes *a, const bytes *b, size_t begin, size_t *n_bytes)
{
    const char *x = bytes_str(a), *y = bytes_str(b);
    size_t lines = 0, n = 0;
    while (begin + n < a->len && begin + n < b->len) {
        const size_t len = last_line_len(x, a->len - n);
        if (len != last_line_len(y, b->len - n) ||
            memcmp(x + a->len - n - len, y + b->len - n - len, len) != 0) {
            break;
        }
        n += len;
        lines++;
    }
    *n_bytes = n;
    return lines;
}

static void append_indented(bytes *out, const char *text, size_t n)
{
    for (const char *end = text + n; text < end; text += line_len(text)) {
        const size_t len = line_len(text) < (size_t)(end - text) ? line_len(text) : (size_t)(end - text);
        bytes_append_str(out, "  ");
        bytes_append(out, text, len);
    }
}

/* The input's lines in the file. */
static void make_block(outcomes *o, const char *key, const bytes *said)
{
    bytes_clear(&o->block);
    bytes_printf(&o->block, "%s\n", key);
    size_t front = 0, back = 0, n_front = 0, n_back = 0;
    if (key[0] == ' ') {
        n_front = same_begin(said, &o->seed, &front);
        n_back = same_end(said, &o->seed, front, &back);
    }
    if (n_front > 0) {
        bytes_printf(&o->block, "  (%zu lines as above)\n", n_front);
    }
    append_indented(&o->block, bytes_str(said) + front, said->len - front - back);
    if (n_back > 0) {
        bytes_printf(&o->block, "  (and the last %zu)\n", n_back);
    }
}

bool outcomes_has(const outcomes *o, const char *key)
{
    const size_t n = strlen(key);
    return o->writes || (strncmp(o->next, key, n) == 0 && o->next[n] == '\n');
}

/* The length of the recorded input at `next`: its line and those indented by two. */
static size_t old_block_len(const outcomes *o)
{
    size_t n = line_len(o->next);
    while (o->next[n] == ' ' && o->next[n + 1] == ' ') {
        n += line_len(o->next + n);
    }
    return n;
}

static void show(outcomes *o, const char *data, size_t n, size_t old_len)
{
    if (o->n_wrong++ >= SHOWN) {
        return;
    }
    bytes input = bytes_empty(SIZE_MAX / 2);
    say_escaped(&input, data, n < SHOWN_INPUT ? n : SHOWN_INPUT);
    printf("%s: not as recorded. Input (%zu bytes): %s\n-- expected:\n%.*s-- got:\n%s", o->path, n,
           bytes_str(&input), (int)old_len, o->next, bytes_str(&o->block));
    bytes_deinit(&input);
}

static void check_block(outcomes *o, const char *data, size_t n)
{
    const size_t old_len = old_block_len(o);
    if (old_len != o->block.len || memcmp(o->next, bytes_str(&o->block), old_len) != 0) {
        show(o, data, n, old_len);
    }
    o->next += old_len;
}

void outcomes_add(outcomes *o, const char *key, const char *data, size_t n, const bytes *said)
{
    const bool is_seed = key[0] != ' ';
    if (is_seed) {
        bytes_clear(&o->seed);
        bytes_append(&o->seed, bytes_str(said), said->len);
        o->n_changes = 0;
        o->sum = 14695981039346656037u;
        const size_t left = o->out.len < ROOM ? ROOM - o->out.len : 0;
        o->full_at = o->out.len + left / (o->n_seeds_left > 0 ? o->n_seeds_left : 1);
        o->n_seeds_left -= o->n_seeds_left > 0;
    } else {
        o->n_changes++;
        o->sum = hash_of(o->sum, bytes_str(said), said->len);
    }
    if (o->writes) {
        const bool is_news = (is_seed || o->out.len < o->full_at) && is_of_interest(o, said);
        if (is_seed || is_news) {
            make_block(o, key, said);
            bytes_append(&o->out, bytes_str(&o->block), o->block.len);
        }
        return;
    }
    if (outcomes_has(o, key)) {
        make_block(o, key, said);
        check_block(o, data, n);
    } else if (is_seed) { /* nothing behind it can be found */
        make_block(o, key, said);
        show(o, data, n, *o->next ? old_block_len(o) : 0);
        o->next = "";
    }
}

void outcomes_end_seed(outcomes *o, bool all)
{
    static const char of_all[] = " all ";
    bytes_clear(&o->block);
    bytes_printf(&o->block, "%s%zu changes: %08x\n", of_all, o->n_changes, (unsigned)(o->sum ^ o->sum >> 32));
    if (o->writes) {
        bytes_append(&o->out, bytes_str(&o->block), o->block.len);
    } else if (strncmp(o->next, of_all, strlen(of_all)) == 0) {
        if (all) {
            check_block(o, "", 0);
        } else {
            o->next += old_block_len(o);
        }
    }
}

bool outcomes_end(outcomes *o)
{
    if (o->writes) {
        FILE *file = fopen(o->path, "w");
        must(file && fwrite(bytes_str(&o->out), 1, o->out.len, file) == o->out.len && fclose(file) == 0);
    } else if (*o->next) {
        bytes_clear(&o->block);
        show(o, "", 0, old_block_len(o));
    }
    const bool good = o->n_wrong == 0;
    if (!good) {
        printf("%zu of the outcomes differ. Are they right? PARLEY_WRITE=1 writes the file anew; read its "
               "difference.\n"
               "PARLEY_SAY=1 says what comes of every input: of two builds, that can be compared.\n",
               o->n_wrong);
    }
    bytes_deinit(&o->old);
    bytes_deinit(&o->out);
    bytes_deinit(&o->seed);
    bytes_deinit(&o->block);
    bytes_deinit(&o->shape);
    free(o->seen);
    return good;
}
