#include "server/cli/options_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_int(const char *text, double min, double max, int64_t *out)
{
    char *end = NULL;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *out = v;
    return end != text && *end == '\0' && errno == 0 && (double)v >= min && (double)v <= max;
}

static bool parse_number(const char *text, double min, double max, double *out)
{
    char *end = NULL;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= min && *out <= max;
}

static bool is_word_of(const char *words, const char *text)
{
    const size_t len = strlen(text);
    for (const char *w = words; *w; w += strcspn(w, " "), w += *w == ' ') {
        if (len > 0 && strcspn(w, " ") == len && memcmp(w, text, len) == 0) {
            return true;
        }
    }
    return false;
}

static bool parse_switch(const char *text, bool *out)
{
    *out = is_word_of("1 true on yes", text);
    return *out || is_word_of("0 false off no", text);
}

/* "first,second" in the options' memory; NULL if out of memory. */
static const char *join(options *o, const char *first, const char *second)
{
    const size_t bytes_needed = strlen(first) + strlen(second) + 2;
    char *joined = arena_alloc(o->memory, bytes_needed);
    if (joined) {
        snprintf(joined, bytes_needed, "%s,%s", first, second);
    }
    return joined;
}

static bool add_file(options *o, const option_row *r, const char *path, const char *origin)
{
    if (o->n_files == OPTIONS_MAX_FILES) {
        fprintf(stderr, "parley: %s may be given %d times at most\n", origin, OPTIONS_MAX_FILES);
        return false;
    }
    o->files[o->n_files++] = (option_file){.path = path, .is_video = r->kind == OPTION_VIDEO};
    return true;
}

static bool refuse(const option_row *r, const char *text, const char *origin)
{
    fprintf(stderr, "parley: %s is \"%s\"; it takes ", origin, r->is_secret ? "..." : text);
    if (r->kind == OPTION_SWITCH) {
        fprintf(stderr, "on or off");
    } else if (r->kind == OPTION_CHOICE) {
        for (const char *w = r->choices; *w;) {
            const size_t len = strcspn(w, " ");
            const bool is_last = w[len] == '\0', is_first = w == r->choices;
            fprintf(stderr, "%s%.*s", is_first ? "" : is_last ? " or " : ", ", (int)len, w);
            w += len + !is_last;
        }
    } else if (r->kind == OPTION_NUMBER) {
        fprintf(stderr, "a number from %g to %g", r->min, r->max);
    } else {
        fprintf(stderr, "a number from %.0f to %.0f", r->min, r->max);
    }
    fputc('\n', stderr);
    return false;
}

bool options_store(options *o, const option_row *r, const char *text, option_source source,
                   const char *origin)
{
    size_t n_rows;
    void *field = (char *)o + r->at;
    uint8_t *said = &o->sources[r - option_rows(&n_rows)];
    const char **word = field;
    bool ok = true;
    switch (r->kind) {
    case OPTION_TEXT:
        *word = text;
        break;
    case OPTION_LIST:
        *word = *word && *said == source && source == SOURCE_LINE ? join(o, *word, text) : text;
        ok = *word != NULL;
        break;
    case OPTION_CHOICE:
        ok = is_word_of(r->choices, text);
        *word = text;
        break;
    case OPTION_INT:
        ok = parse_int(text, r->min, r->max, field);
        break;
    case OPTION_SEED:
        ok = parse_int(text, r->min, r->max, field);
        o->has_seed = ok;
        break;
    case OPTION_NUMBER:
        ok = parse_number(text, r->min, r->max, field);
        break;
    case OPTION_SWITCH:
        ok = parse_switch(text, field);
        break;
    case OPTION_IMAGE:
    case OPTION_VIDEO:
        return add_file(o, r, text, origin);
    }
    *said = (uint8_t)source;
    return ok || refuse(r, text, origin);
}

void options_set_standards(options *o, const command_row *c)
{
    *o = (options){.command = c->id, .memory = o->memory};
    for (const option_row *r = NULL; (r = option_next(r, OPTION_GROUPS, IN_EVERY));) {
        void *field = (char *)o + r->at;
        switch (r->kind) {
        case OPTION_INT:
        case OPTION_SEED:
            *(int64_t *)field = (int64_t)r->standard;
            break;
        case OPTION_NUMBER:
            *(double *)field = r->standard;
            break;
        case OPTION_SWITCH:
            *(bool *)field = r->standard != 0.0;
            break;
        case OPTION_TEXT:
        case OPTION_LIST:
        case OPTION_CHOICE:
            *(const char **)field = r->standard_text;
            break;
        default: /* images and videos share one list, which is empty */
            break;
        }
    }
}
