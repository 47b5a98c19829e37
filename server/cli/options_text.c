#include "server/cli/options_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { INDENT = 28, TEXT_BYTES = 512 };

void options_print_overview(void)
{
    size_t n;
    const command_row *commands = option_commands(&n);
    printf("Parley " PARLEY_VERSION
           ": a multimodal chat server that runs on your own machine.\n\nCommands:\n");
    for (size_t i = 0; i < n; i++) {
        printf("  %-9s %s\n", commands[i].name, commands[i].help);
    }
    printf("\nWith no command: serve. `parley COMMAND --help` lists a command's options,\n"
           "`parley manual | man -l -` is the manual.\n"
           "Start now: parley        then open http://127.0.0.1:8080/\n");
}

/* Prints text in lines of at most HELP_COLUMNS columns, later lines indented. */
static void print_wrapped(const char *text, int indent)
{
    int column = indent;
    while (*text) {
        const int word = (int)strcspn(text, " ");
        if (column > indent && column + 1 + word > HELP_COLUMNS) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", word, text);
        column += word;
        text += word + (text[word] == ' ');
    }
    putchar('\n');
}

static void print_row(const option_row *r)
{
    char letters[16] = "", standard[TEXT_BYTES], text[TEXT_BYTES * 2];
    if (r->letters) {
        snprintf(letters, sizeof letters, "-%s, ", r->letters);
    }
    int n = printf("  %4s--%s%s%s", letters, r->name, r->metavar ? " " : "", r->metavar ? r->metavar : "");
    if (n >= INDENT - 1) {
        printf("\n");
        n = 0;
    }
    option_standard_text(standard, sizeof standard, r);
    const bool is_on = r->kind == OPTION_SWITCH && r->standard != 0.0;
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s", r->help, is_on ? "; --no-" : "", is_on ? r->name : "",
             is_on ? " turns it off" : "", standard[0] ? " [" : "", standard, standard[0] ? "]" : "");
    printf("%*s", INDENT - n, "");
    print_wrapped(text, INDENT);
}

void options_print_help(const command_row *c)
{
    printf("%s\n%s\n", c->usage, c->help);
    for (option_group group = 0; group < OPTION_GROUPS; group++) {
        const option_row *r = option_next(NULL, group, c->bit);
        if (r) {
            printf("\n%s:\n", option_group_name(group));
        }
        for (; r; r = option_next(r, group, c->bit)) {
            print_row(r);
        }
    }
    printf("\nIn brackets: the default. The environment variable of --some-flag is\n"
           "PARLEY_SOME_FLAG; in a config file it is `some-flag = value`.\n");
}

/* ---- the configuration in force ---- */

/* The value as a config file has it; false if there is none to write. */
static bool write_value(char *out, size_t cap, const options *o, const option_row *r, option_source source)
{
    const void *field = (const char *)o + r->at;
    const char *text = NULL;
    out[0] = '\0';
    switch (r->kind) {
    case OPTION_INT:
        snprintf(out, cap, "%lld", (long long)*(const int64_t *)field);
        return source != SOURCE_STANDARD || !r->note;
    case OPTION_SEED:
        snprintf(out, cap, "%lld", (long long)o->seed);
        return o->has_seed;
    case OPTION_NUMBER:
        snprintf(out, cap, "%.9g", *(const double *)field);
        return !isnan(*(const double *)field);
    case OPTION_SWITCH:
        snprintf(out, cap, "%s", *(const bool *)field ? "on" : "off");
        return true;
    default: /* a text: images and videos are of the line alone */
        text = *(const char *const *)field;
        snprintf(out, cap, "%s", text ? text : "");
        return text != NULL;
    }
}

static void print_entry(const options *o, const option_row *r, option_source source)
{
    static const char *const PLACES[] = {"", "config file", "environment", "command line"};
    char value[4096], standard[TEXT_BYTES];
    const bool has_value = write_value(value, sizeof value, o, r, source);
    option_standard_text(standard, sizeof standard, r);
    if (source != SOURCE_STANDARD) {
        printf("# %s:\n", PLACES[source]);
    }
    if (has_value && r->is_secret) {
        printf("# %s = (set; not shown)\n", r->name);
    } else if (has_value) {
        printf("%s = %s\n", r->name, value);
    } else {
        printf("# %s =%s%s%s\n", r->name, standard[0] ? " (" : "", standard, standard[0] ? ")" : "");
    }
}

void options_print_config(const options *o, const command_row *c)
{
    size_t n;
    const option_row *rows = option_rows(&n);
    printf("# parley " PARLEY_VERSION "\n[%s]\n", c->name);
    for (size_t i = 0; i < n; i++) {
        if ((rows[i].commands & c->bit) && rows[i].place == PLACE_ANY) {
            print_entry(o, &rows[i], (option_source)o->sources[i]);
        }
    }
}
