#include "server/cli/options_parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli/options_store.h"
#include "server/cli/options_text.h"

enum { MEMORY_BYTES = 8 << 20, NAME_BYTES = 64 };

/* ---- the environment ---- */

static bool read_variable(options *o, const option_row *r, const char *row_name)
{
    char name[NAME_BYTES];
    option_environment_name(name, sizeof name, row_name);
    const char *value = getenv(name);
    return !value || !*value || options_store(o, r, value, SOURCE_ENVIRONMENT, name);
}

static bool read_environment(options *o, const command_row *c)
{
    for (const option_row *r = NULL; (r = option_next(r, OPTION_GROUPS, c->bit));) {
        if (r->place != PLACE_LINE &&
            ((r->also && !read_variable(o, r, r->also)) || !read_variable(o, r, r->name))) {
            return false;
        }
    }
    return true;
}

/* ---- the command line ---- */

static int unknown_option(const char *arg, const char *name, const command_row *c)
{
    const option_row *best = option_nearest(name, c->bit);
    fprintf(stderr, "parley: %s has no option %s", c->name, arg);
    if (best) {
        fprintf(stderr, "; did you mean --%s?", best->name);
    }
    fprintf(stderr, " (parley %s --help lists them)\n", c->name);
    return OPTIONS_EXIT_USAGE;
}

/* An option of the command line, taken apart. */
typedef struct line_option {
    const option_row *row;
    char *value; /* behind = or the letter; NULL: none */
    bool is_negated;
} line_option;

static line_option find_long(char *arg, const command_row *c)
{
    const char *name = arg + 2;
    char *equals = strchr(arg, '=');
    const size_t len = equals ? (size_t)(equals - name) : strlen(name);
    line_option found = {.row = option_find(name, len, c->bit), .value = equals ? equals + 1 : NULL};
    if (!found.row && !equals && len > 3 && memcmp(name, "no-", 3) == 0) {
        const option_row *r = option_find(name + 3, len - 3, c->bit);
        found.is_negated = r && r->kind == OPTION_SWITCH && r->place != PLACE_LINE;
        found.row = found.is_negated ? r : NULL;
    }
    return found;
}

/* -m DIR, -mDIR, -np 4 */
static line_option find_short(char *arg, const command_row *c)
{
    line_option found = {.row = option_find_letters(arg + 1, c->bit)};
    if (!found.row) {
        const char first[2] = {arg[1], '\0'};
        found.row = option_find_letters(first, c->bit);
        found.value = arg + 2;
        if (found.row && found.row->kind == OPTION_SWITCH) {
            found.row = NULL;
        }
    }
    return found;
}

/* A copy for the program; what stood in argv, where every user can see it, is blanked. */
static const char *hide(options *o, char *value)
{
    const size_t len = strlen(value);
    const char *copy = arena_strdup(o->memory, value, len);
    memset(value, 'x', len);
    return copy;
}

/* Handles argv[*at] as an option of command c, perhaps with the next word as its value. -1: go
 * on. */
static int parse_option(options *o, const command_row *c, int argc, char **argv, int *at, bool hides)
{
    char *arg = argv[*at];
    char origin[NAME_BYTES + 8];
    line_option found = arg[1] == '-' ? find_long(arg, c) : find_short(arg, c);
    const option_row *r = found.row;
    if (!r) {
        return unknown_option(arg, arg + 1 + (arg[1] == '-'), c);
    }
    snprintf(origin, sizeof origin, "--%s", r->name);
    const char *value = found.value;
    if (r->kind == OPTION_SWITCH) {
        value = value ? value : found.is_negated ? "off" : "on";
    } else {
        char *given = found.value;
        if (!given && *at + 1 >= argc) {
            fprintf(stderr, "parley: %s needs a value: %s\n", arg, r->metavar);
            return OPTIONS_EXIT_USAGE;
        }
        given = given ? given : argv[++*at];
        value = r->is_secret && hides ? hide(o, given) : given;
    }
    if (!(value ? options_store(o, r, value, SOURCE_LINE, origin) : options_no_memory())) {
        return OPTIONS_EXIT_USAGE;
    }
    if (o->help) {
        options_print_help(c);
        return 0;
    }
    return -1;
}

/* A word that is no option. -1: go on. */
static int take_word(options *o, const command_row *c, const char *text)
{
    for (int i = 0; i < c->n_words; i++) {
        const char **word = (const char **)((char *)o + c->words[i]);
        if (!*word) {
            *word = text;
            return -1;
        }
    }
    fprintf(stderr, "parley: \"%s\" is one word too many; %s\n", text, c->usage);
    return OPTIONS_EXIT_USAGE;
}

static int read_line(options *o, const command_row *c, int argc, char **argv, int at, bool hides)
{
    int code = -1;
    for (bool flags = true; at < argc && code < 0; at++) {
        if (flags && strcmp(argv[at], "--") == 0) {
            flags = false;
        } else if (flags && argv[at][0] == '-' && argv[at][1]) {
            code = parse_option(o, c, argc, argv, &at, hides);
        } else {
            code = take_word(o, c, argv[at]);
        }
    }
    return code;
}

/* The command, and in *at where its arguments begin; NULL after printing that there is none. */
static const command_row *read_command(int argc, char **argv, int *at)
{
    const char *first = argc > 1 ? argv[1] : "";
    *at = 1;
    if (!first[0] || first[0] == '-') {
        return option_find_command("serve");
    }
    const command_row *c = option_find_command(first);
    *at = 2;
    if (!c) {
        fprintf(stderr, "parley: there is no command \"%s\"; parley --help lists them\n", first);
    }
    return c;
}

/* What an option asks for instead of the command. -1: nothing. */
static int answer_questions(options *o, const command_row *c)
{
    if (o->version) {
        o->command = COMMAND_VERSION;
        return -1;
    }
    if (o->completion) {
        options_print_completion(o->completion);
        return 0;
    }
    if (c->id == COMMAND_MANUAL) {
        const char *page = o->page ? o->page : "parley.1";
        if (options_print_manual(page)) {
            return 0;
        }
        fprintf(stderr, "parley: there is no page \"%s\"; %s\n", page, c->usage);
        return OPTIONS_EXIT_USAGE;
    }
    return -1;
}

/* The line is read twice: first for its mistakes and for --config, then again over what that file
 * says. */
static int parse(options *o, const command_row *c, int argc, char **argv, int at)
{
    options_set_standards(o, c);
    int code = read_line(o, c, argc, argv, at, false);
    if (code < 0) {
        code = answer_questions(o, c);
    }
    if (code >= 0 || o->version) {
        return code;
    }
    const char *config = o->config;
    options_set_standards(o, c);
    o->config = config;
    if (!config) { /* it may be any text */
        (void)read_variable(o, option_find("config", strlen("config"), IN_EVERY), "config");
    }
    if (!options_read_config(o, c) || !read_environment(o, c)) {
        return OPTIONS_EXIT_USAGE;
    }
    code = read_line(o, c, argc, argv, at, true);
    if (code < 0 && o->print_config) {
        options_print_config(o, c);
        code = 0;
    }
    return code;
}

int options_parse(options *o, int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : "";
    int at;
    o->memory = NULL;
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0) {
        options_print_overview();
        return 0;
    }
    const command_row *c = read_command(argc, argv, &at);
    if (!c) {
        return OPTIONS_EXIT_USAGE;
    }
    o->memory = arena_create(MEMORY_BYTES);
    if (!o->memory) {
        (void)options_no_memory();
        return 4;
    }
    int code = parse(o, c, argc, argv, at);
    if (code >= 0) {
        options_deinit(o);
    }
    return code;
}

void options_deinit(options *o)
{
    arena_destroy(o->memory);
    o->memory = NULL;
}
