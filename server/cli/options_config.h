/* options_config: config files. Main thread.
 *
 *     if (!options_read_config(&o, c)) { return OPTIONS_EXIT_USAGE; }
 */
#ifndef PARLEY_SERVER_CLI_OPTIONS_CONFIG_H
#define PARLEY_SERVER_CLI_OPTIONS_CONFIG_H

#include "server/cli/options_table.h"

/* Reads the file that --config names, or those in the standard places. False after printing
 * what is wrong. */
bool options_read_config(options *o, const command_row *c);

#endif
