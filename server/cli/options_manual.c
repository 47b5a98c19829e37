/* The manual pages, in man(7) macros, and the table of docs/options.md. */
#include <stdio.h>
#include <string.h>

#include "server/cli/options_text.h"

enum { TEXT_BYTES = 512 };

/* Roff: a dash that people type is \-. Texts of the tables have no backslash, and begin with no dot or quote. */
static void print_roff(const char *text)
{
    for (; *text; text++) {
        printf(*text == '-' ? "\\-" : "%c", *text);
    }
}

/* Roff as it is, around a text that becomes roff. */
static void print_around(const char *before, const char *text, const char *behind)
{
    printf("%s", before);
    print_roff(text);
    printf("%s", behind);
}

static void print_names(const option_row *r)
{
    printf(".TP\n\\fB");
    if (r->letters) {
        printf("\\-%s\\fR, \\fB", r->letters);
    }
    print_around("\\-\\-", r->name, r->metavar ? "\\fR \\fI" : "");
    printf("%s\\fR\n", r->metavar ? r->metavar : "");
}

static void print_option(const option_row *r, bool has_flags)
{
    char standard[TEXT_BYTES], variable[64];
    if (has_flags) {
        print_names(r);
    } else {
        print_around(".TP\n\\fB", r->name, "\\fR = ");
        printf("\\fI%s\\fR\n", r->metavar ? r->metavar : "on\\fR|\\fIoff");
    }
    print_around("", r->help, ".\n");
    if (r->more) {
        print_around("", r->more, "\n");
    }
    if (has_flags && r->kind == OPTION_SWITCH && r->place != PLACE_LINE) {
        print_around("\\fB\\-\\-no\\-", r->name, "\\fR turns it off.\n");
    }
    if (has_flags && r->also) {
        print_around("The same: \\fB\\-\\-", r->also, "\\fR.\n");
    }
    option_standard_text(standard, sizeof standard, r);
    if (standard[0]) {
        print_around("Default: ", standard, ".\n");
    }
    if (has_flags && r->place != PLACE_LINE) {
        option_environment_name(variable, sizeof variable, r->name);
        printf("Environment: \\fB%s\\fR.\n", variable);
    }
}

/* "serve, run" */
static void print_commands_of(const option_row *r)
{
    size_t n;
    const command_row *commands = option_commands(&n);
    const char *separator = "";
    for (size_t i = 0; i < n; i++) {
        if (commands[i].bit & r->commands) {
            printf("%s%s", separator, commands[i].name);
            separator = ", ";
        }
    }
}

static void print_options(bool has_flags)
{
    for (option_group group = 0; group < OPTION_GROUPS; group++) {
        bool is_first = true;
        for (const option_row *r = NULL; (r = option_next(r, group, IN_EVERY));) {
            if (!has_flags && r->place != PLACE_ANY) {
                continue;
            }
            if (is_first) {
                printf(".SS %s\n", option_group_name(group));
                is_first = false;
            }
            print_option(r, has_flags);
            if (r->commands != IN_EVERY) {
                printf("For: ");
                print_commands_of(r);
                printf(".\n");
            }
        }
    }
}

static void print_program(void)
{
    size_t n;
    const command_row *commands = option_commands(&n);
    printf(".TH PARLEY 1 \"\" \"Parley " PARLEY_VERSION "\" \"User Commands\"\n"
           ".SH NAME\nparley \\- multimodal chat server\n"
           ".SH SYNOPSIS\n");
    for (size_t i = 0; i < n; i++) {
        print_around(i ? ".br\n" : "", commands[i].usage, "\n");
    }
    printf(".SH DESCRIPTION\n"
           "Parley loads a Qwen3.5 checkpoint (text, images, videos, multi\\-token prediction), serves a "
           "chat page\n"
           "to the browser, and answers over WebSocket and an OpenAI\\-compatible HTTP API. It runs on the "
           "CPU.\n"
           "Without a checkpoint folder it serves the built\\-in demonstration model.\n"
           ".SH COMMANDS\n");
    for (size_t i = 0; i < n; i++) {
        printf(".TP\n\\fB%s\\fR\n", commands[i].name);
        print_around("", commands[i].help, ".\n");
    }
    printf(
        ".SH OPTIONS\n"
        "Long options take their value as the next word or behind an equals sign. \\fB\\-\\-\\fR ends the "
        "options.\n"
        "A value from the command line comes before one from the environment, that before one from a config\n"
        "file (\\fBparley.conf\\fR(5)), that before the model's own defaults.\n");
    print_options(true);
}

static void print_program_end(void)
{
    printf(".SH EXIT STATUS\n"
           ".TP\n0\nDone; also after SIGTERM or SIGINT, once running answers have ended or were cut.\n"
           ".TP\n1\nA failure while running.\n"
           ".TP\n2\nWrong usage or configuration.\n"
           ".TP\n3\nThe model is missing or invalid.\n"
           ".TP\n4\nNot enough memory.\n"
           ".TP\n5\nThe address is in use.\n"
           ".TP\n128+n\nEnded at once by a second signal n.\n"
           ".SH ENVIRONMENT\n"
           "Each option above names its variable. Also heeded: \\fBTMPDIR\\fR, \\fBXDG_CONFIG_HOME\\fR,\n"
           "\\fBXDG_CACHE_HOME\\fR. For models of a hub, as other tools use them: \\fBHF_ENDPOINT\\fR,\n"
           "\\fBHF_TOKEN\\fR (or the file \\fBHF_TOKEN_PATH\\fR, \\fI$HF_HOME/token\\fR), "
           "\\fBHF_HUB_CACHE\\fR, \\fBHF_HOME\\fR,\n\\fBHF_HUB_OFFLINE\\fR, \\fBHTTPS_PROXY\\fR.\n"
           ".SH SIGNALS\n"
           ".TP\nSIGTERM, SIGINT\nStop accepting, let running answers end (\\fB\\-\\-drain\\-timeout\\fR), "
           "exit. The second one\n"
           "ends the program at once.\n"
           ".SH FILES\n"
           "\\fI/etc/parley/parley.conf\\fR, \\fI$XDG_CONFIG_HOME/parley/parley.conf\\fR: see "
           "\\fBparley.conf\\fR(5).\n"
           ".SH EXAMPLES\n"
           ".nf\nparley\nparley serve \\-m ~/models/qwen \\-\\-quantize q8 \\-\\-port 8081\n"
           "parley run \\-\\-image cat.png \"What is it?\"\n"
           "cat build.log | parley run \"What failed?\"\nparley chat\n.fi\n"
           ".SH SEE ALSO\n\\fBparley.conf\\fR(5)\n");
}

static void print_file(void)
{
    printf(".TH PARLEY.CONF 5 \"\" \"Parley " PARLEY_VERSION "\" \"File Formats\"\n"
           ".SH NAME\nparley.conf \\- configuration of parley\n"
           ".SH SYNOPSIS\n\\fI/etc/parley/parley.conf\\fR\n.br\n\\fI$XDG_CONFIG_HOME/parley/parley.conf\\fR\n"
           ".SH DESCRIPTION\n"
           "Lines of \\fIkey\\fR = \\fIvalue\\fR. A key is the name of an option of \\fBparley\\fR(1) "
           "without its dashes.\n"
           "Switches are \\fBon\\fR or \\fBoff\\fR (also true, yes, 1, and false, no, 0). A value may stand "
           "in double\n"
           "quotes. A key that takes a list may stand on several lines. Lines that begin with # or ; are "
           "comments. What follows a line with the name of a "
           "command in\n"
           "brackets, as in \\fB[serve]\\fR, is for that command only; what stands in front of the first one "
           "is for\n"
           "every command that knows the key.\n"
           ".PP\n"
           "The second file wins over the first, the environment and the command line over both.\n"
           "\\fBparley \\-\\-config\\fR \\fIFILE\\fR reads that file instead of them; \\fBparley "
           "\\-\\-print\\-config\\fR\n"
           "prints what is in force.\n"
           ".SH KEYS\n");
    print_options(false);
    printf(".SH EXAMPLE\n.nf\nmodel = /srv/models/qwen\nquantize = q8\n\n[serve]\nhost = 0.0.0.0\n"
           "api\\-key\\-file = /etc/parley/keys\n.fi\n.SH SEE ALSO\n\\fBparley\\fR(1)\n");
}

/* ---- Markdown ---- */

static void print_cell(const char *text)
{
    for (; *text; text++) {
        printf(*text == '|' || *text == '<' || *text == '*' ? "\\%c" : "%c", *text);
    }
}

static void print_markdown_row(const option_row *r)
{
    char standard[TEXT_BYTES];
    option_standard_text(standard, sizeof standard, r);
    printf("| ");
    if (r->letters) {
        printf("`-%s`, ", r->letters);
    }
    printf(r->metavar ? "`--%s %s`" : "`--%s`", r->name, r->metavar);
    if (r->also) {
        printf(", `--%s`", r->also);
    }
    printf(" | ");
    print_cell(r->help);
    printf(".%s", r->more ? " " : "");
    print_cell(r->more ? r->more : "");
    printf(" | ");
    print_cell(standard);
    printf(" | ");
    if (r->commands == IN_EVERY) {
        printf("every command");
    } else {
        print_commands_of(r);
    }
    printf(" |\n");
}

static void print_markdown(void)
{
    printf("# Options\n\n"
           "Made by `parley manual options > docs/options.md`; a test compares. `--some-flag` is "
           "`PARLEY_SOME_FLAG` in\n"
           "the environment and `some-flag = value` in a config file (`man 5 parley.conf`). The command line "
           "comes before\n"
           "the environment, the environment before config files, these before the model's own defaults. "
           "Switches are\n"
           "turned off by `--no-some-flag`, or by `off`.\n");
    for (option_group group = 0; group < OPTION_GROUPS; group++) {
        printf("\n## %s\n\n| option | what it does | default | for |\n|---|---|---|---|\n",
               option_group_name(group));
        for (const option_row *r = NULL; (r = option_next(r, group, IN_EVERY));) {
            print_markdown_row(r);
        }
    }
}

bool options_print_manual(const char *page)
{
    if (strcmp(page, "parley.1") == 0) {
        print_program();
        print_program_end();
    } else if (strcmp(page, "parley.conf.5") == 0) {
        print_file();
    } else if (strcmp(page, "options") == 0) {
        print_markdown();
    } else {
        return false;
    }
    return true;
}
