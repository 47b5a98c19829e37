#include "server/cli/options_store.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"

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

bool options_no_memory(void)
{
    fprintf(stderr, "parley: there is not enough memory to start\n");
    return false;
}

/* Never a secret: those may be any text. */
static bool refuse(const option_row *r, const char *text, const char *origin)
{
    fprintf(stderr, "parley: %s is \"%s\"; it takes ", origin, text);
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
        if (!*word) {
            return options_no_memory();
        }
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

/* ---- config files ---- */

/* Lines of `key = value`, keys being the names of options without dashes. `#` or `;` begins a
 * comment line. What stands under `[run]` is for that command only.
 */
enum { CONFIG_BYTES = 1 << 20, PATH_BYTES = 4096, ORIGIN_BYTES = PATH_BYTES + 128 };

#define SYSTEM_CONFIG "/etc/parley/parley.conf"

typedef struct config_reader {
    options *o;
    const command_row *command;
    const char *path;
    int line;
    bool is_for_us; /* the section is this command's */
    bool *has;      /* [rows] lists that this file has set: further lines append */
} config_reader;

static char *trim(char *text)
{
    while (isspace((unsigned char)*text)) {
        text++;
    }
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1])) {
        end--;
    }
    *end = '\0';
    return text;
}

static bool complain(const config_reader *r, const char *what, const char *text)
{
    fprintf(stderr, "parley: %s line %d: %s \"%s\"\n", r->path, r->line, what, text);
    return false;
}

static bool read_section(config_reader *r, char *text)
{
    char *end = strchr(text, ']');
    if (!end || end[1]) {
        return complain(r, "a section is a command's name in brackets, not", text);
    }
    *end = '\0';
    const command_row *c = option_find_command(trim(text + 1));
    r->is_for_us = c == r->command;
    return c || complain(r, "there is no command", trim(text + 1));
}

static bool read_entry(config_reader *r, char *text)
{
    char origin[ORIGIN_BYTES];
    char *equals = strchr(text, '=');
    if (!equals) {
        return complain(r, "a line is `key = value`, not", text);
    }
    *equals = '\0';
    const char *key = trim(text);
    char *value = trim(equals + 1);
    const size_t len = strlen(value);
    if (len >= 2 && value[0] == '"' && value[len - 1] == '"') {
        value[len - 1] = '\0';
        value++;
    }
    const option_row *row = option_find(key, strlen(key), r->command->bit);
    const option_row *of_any = row ? row : option_find(key, strlen(key), IN_EVERY);
    if (!of_any || of_any->place != PLACE_ANY) {
        const option_row *best = of_any ? NULL : option_nearest(key, IN_EVERY);
        fprintf(stderr, "parley: %s line %d: %s \"%s\"", r->path, r->line,
                of_any ? "a config file cannot set" : "there is no option", key);
        fprintf(stderr, best ? "; did you mean %s?\n" : "\n", best ? best->name : "");
        return false;
    }
    if (!row || !r->is_for_us) {
        return true;
    }
    size_t n_rows;
    bool *has = &r->has[row - option_rows(&n_rows)];
    const char *kept = arena_strdup(r->o->memory, value, strlen(value));
    if (kept && *has && row->kind == OPTION_LIST) {
        kept = join(r->o, *(const char **)((char *)r->o + row->at), kept);
    }
    *has = true;
    snprintf(origin, sizeof origin, "%s line %d: %s", r->path, r->line, row->name);
    return kept ? options_store(r->o, row, kept, SOURCE_CONFIG, origin) : options_no_memory();
}

static bool read_lines(config_reader *r, char *text)
{
    r->is_for_us = true;
    for (char *next = text; next;) {
        char *line = next;
        next = strchr(line, '\n');
        if (next) {
            *next++ = '\0';
        }
        r->line++;
        line = trim(line);
        const bool is_comment = !line[0] || line[0] == '#' || line[0] == ';';
        if (!is_comment && !(line[0] == '[' ? read_section(r, line) : read_entry(r, line))) {
            return false;
        }
    }
    return true;
}

static bool read_file(options *o, const command_row *c, const char *path)
{
    err_detail detail = {0};
    bytes text = bytes_empty(CONFIG_BYTES);
    err_code err = file_read(&text, path, &detail);
    bool ok = err == ERR_OK;
    config_reader r = {.o = o, .command = c, .path = path};
    size_t n_rows;
    option_rows(&n_rows);
    r.has = arena_calloc(o->memory, n_rows, sizeof *r.has);
    if (ok && !r.has) {
        ok = options_no_memory();
    } else if (!ok) {
        fprintf(stderr, "parley: the config file cannot be read: %s\n", detail.text);
    } else if (text.len && memchr(text.data, '\0', text.len)) {
        ok = complain(&r, "not a text file:", path);
    } else if (text.len) {
        ok = read_lines(&r, text.data);
    }
    bytes_deinit(&text);
    return ok;
}

/* $XDG_CONFIG_HOME/parley/parley.conf, or below ~/.config; false without a home. */
static bool user_path(char *out, size_t cap)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = 0;
    if (config && config[0] == '/') {
        n = snprintf(out, cap, "%s/parley/parley.conf", config);
    } else if (home && home[0] == '/') {
        n = snprintf(out, cap, "%s/.config/parley/parley.conf", home);
    }
    return n > 0 && (size_t)n < cap;
}

bool options_read_config(options *o, const command_row *c)
{
    char path[PATH_BYTES];
    const bool reads_none = o->config && strcmp(o->config, "none") == 0;
    if (reads_none || !option_find("config", strlen("config"), c->bit)) {
        return true;
    }
    if (o->config) {
        return read_file(o, c, o->config);
    }
    return (access(SYSTEM_CONFIG, F_OK) != 0 || read_file(o, c, SYSTEM_CONFIG)) &&
           (!user_path(path, sizeof path) || access(path, F_OK) != 0 || read_file(o, c, path));
}
