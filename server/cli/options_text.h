/* options_text: what the program prints about its options, generated from the table: help, the
 * configuration in force, completions, manual pages. Standard output. Main thread.
 *
 *     options_print_help(option_find_command("serve"));
 */
#ifndef PARLEY_SERVER_CLI_OPTIONS_TEXT_H
#define PARLEY_SERVER_CLI_OPTIONS_TEXT_H

#include "server/cli/options_table.h"

enum { HELP_COLUMNS = 79 };

/* The commands, and how to get more help. */
void options_print_overview(void);
/* A command's options in groups, at most 80 columns wide. */
void options_print_help(const command_row *c);
/* The value of every option of the command as a config file; a value that is not a default is marked
 * with its source. Secrets are left out. */
void options_print_config(const options *o, const command_row *c);
/* For bash, zsh or fish. */
void options_print_completion(const char *shell);
/* "parley.1" or "parley.conf.5" as roff, "options" as Markdown; false for another page. */
bool options_print_manual(const char *page);

#endif
