/* Completions for three shells. What completes a value follows from the row: its choices, or files
 * or folders by its metavar.
 */
#include <stdio.h>
#include <string.h>

#include "server/cli/options_text.h"

static bool takes_file(const option_row *r) /* one with a value */
{
    return strcmp(r->metavar, "FILE") == 0;
}

static bool takes_folder(const option_row *r)
{
    return r->metavar && strcmp(r->metavar, "DIR") == 0;
}

static bool can_be_negated(const option_row *r)
{
    return r->kind == OPTION_SWITCH && r->place != PLACE_LINE;
}

/* Text inside single quotes; `escaped` are further characters that get a backslash. */
static void print_quoted(const char *text, const char *escaped)
{
    for (; *text; text++) {
        if (*text == '\'') {
            printf("'\\''");
        } else {
            printf(strchr(escaped, *text) ? "\\%c" : "%c", *text);
        }
    }
}

/* ---- bash ---- */

static void print_bash_value(const option_row *r)
{
    printf("        --%s", r->name);
    if (r->also) {
        printf("|--%s", r->also);
    }
    if (r->letters) {
        printf("|-%s", r->letters);
    }
    if (r->choices) {
        printf(") COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n", r->choices);
    } else if (takes_file(r) || takes_folder(r)) {
        printf(") compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen -%c -- \"$cur\")); return ;;\n",
               takes_file(r) ? 'f' : 'd');
    } else {
        printf(") return ;;\n");
    }
}

/* What completes a command's values, and its options. */
static void print_bash_command(unsigned bit)
{
    printf("        case $prev in\n");
    for (const option_row *r = NULL; (r = option_next(r, OPTION_GROUPS, bit));) {
        if (r->metavar) {
            print_bash_value(r);
        }
    }
    printf("        esac\n        options=\"");
    for (const option_row *r = NULL; (r = option_next(r, OPTION_GROUPS, bit));) {
        printf(can_be_negated(r) ? "--%s --no-%s " : "--%s ", r->name, r->name);
    }
    printf("\"\n");
}

static void print_bash(void)
{
    size_t n;
    const command_row *commands = option_commands(&n);
    printf("# bash completion for parley; made by `parley --completion bash`\n"
           "_parley() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} options=\n"
           "    [[ $cur == = ]] && cur=\n"
           "    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
           "    COMPREPLY=()\n"
           "    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 1; i < n; i++) { /* the first, serve, is meant without a command too */
        printf("    %s)\n", commands[i].name);
        print_bash_command(commands[i].bit);
        printf("        ;;\n");
    }
    printf("    *)\n");
    print_bash_command(commands[0].bit);
    printf("        ((COMP_CWORD == 1)) && options+=\"");
    for (size_t i = 0; i < n; i++) {
        printf(" %s", commands[i].name);
    }
    printf("\"\n        ;;\n    esac\n"
           "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
           "}\n"
           "complete -o default -F _parley parley\n");
}

/* ---- zsh ---- */

static void print_zsh_spec(const option_row *r, const char *prefix)
{
    printf("            '%s[", prefix);
    print_quoted(r->help, "[]:");
    printf("]");
    if (r->metavar) {
        printf(":%s:", r->metavar);
        if (r->choices) {
            printf("(%s)", r->choices);
        } else if (takes_file(r)) {
            printf("_files");
        } else if (takes_folder(r)) {
            printf("_files -/");
        }
    }
    printf("' \\\n");
}

static void print_zsh(void)
{
    size_t n_commands;
    const command_row *commands = option_commands(&n_commands);
    printf("#compdef parley\n# made by `parley --completion zsh`\n\n_parley() {\n    local command=serve\n"
           "    if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n        local -a commands=(\n");
    for (size_t i = 0; i < n_commands; i++) {
        printf("            '%s:", commands[i].name);
        print_quoted(commands[i].help, "");
        printf("'\n");
    }
    printf("        )\n        _describe command commands\n        return\n    fi\n"
           "    if [[ $words[2] != -* ]]; then\n        command=$words[2]\n        shift words\n"
           "        ((CURRENT--))\n    fi\n    case $command in\n");
    for (size_t i = 0; i < n_commands; i++) {
        printf("    %s)\n        _arguments \\\n", commands[i].name);
        for (const option_row *r = NULL; (r = option_next(r, OPTION_GROUPS, commands[i].bit));) {
            char prefix[128];
            snprintf(prefix, sizeof prefix, r->metavar ? "--%s=" : "--%s", r->name);
            print_zsh_spec(r, prefix);
            if (r->letters) {
                snprintf(prefix, sizeof prefix, "-%s", r->letters);
                print_zsh_spec(r, prefix);
            }
            if (can_be_negated(r)) {
                snprintf(prefix, sizeof prefix, "--no-%s", r->name);
                print_zsh_spec(r, prefix);
            }
        }
        printf("            '*:file:_files'\n        ;;\n");
    }
    printf("    esac\n}\n\n_parley \"$@\"\n");
}

/* ---- fish ---- */

static void print_fish_option(const command_row *c, const option_row *r)
{
    printf("complete -c parley -n '__parley_does %s' -l %s", c->name, r->name);
    if (r->letters) {
        printf(strlen(r->letters) == 1 ? " -s %s" : " -o %s", r->letters);
    }
    if (r->choices) {
        printf(" -x -a '%s'", r->choices);
    } else if (takes_folder(r)) {
        printf(" -x -a '(__fish_complete_directories)'");
    } else if (r->metavar) {
        printf(takes_file(r) ? " -r -F" : " -x");
    }
    printf(" -d '");
    print_quoted(r->help, "");
    printf("'\n");
    if (can_be_negated(r)) {
        printf("complete -c parley -n '__parley_does %s' -l no-%s -d 'not: ", c->name, r->name);
        print_quoted(r->help, "");
        printf("'\n");
    }
}

static void print_fish(void)
{
    size_t n_commands;
    const command_row *commands = option_commands(&n_commands);
    printf("# fish completion for parley; made by `parley --completion fish`\n"
           "function __parley_does\n"
           "    set -l words (commandline -opc)\n"
           "    if set -q words[2]; and not string match -q -- '-*' $words[2]\n"
           "        test $words[2] = $argv[1]\n"
           "    else\n"
           "        test $argv[1] = serve\n"
           "    end\n"
           "end\n"
           "function __parley_begins\n"
           "    test (count (commandline -opc)) -eq 1\n"
           "end\n");
    for (size_t i = 0; i < n_commands; i++) {
        printf("complete -c parley -f -n __parley_begins -a %s -d '", commands[i].name);
        print_quoted(commands[i].help, "");
        printf("'\n");
    }
    for (size_t i = 0; i < n_commands; i++) {
        for (const option_row *r = NULL; (r = option_next(r, OPTION_GROUPS, commands[i].bit));) {
            print_fish_option(&commands[i], r);
        }
    }
}

void options_print_completion(const char *shell)
{
    if (strcmp(shell, "bash") == 0) {
        print_bash();
    } else if (strcmp(shell, "zsh") == 0) {
        print_zsh();
    } else {
        print_fish();
    }
}
