/* options_store: how the text of a value becomes a field of `options`; config files.
 * Main thread.
 *
 *     options_set_standards(&o, c);
 *     if (!options_store(&o, row, "8081", SOURCE_LINE, "--port")) { return OPTIONS_EXIT_USAGE; }
 */
#ifndef PARLEY_SERVER_CLI_OPTIONS_STORE_H
#define PARLEY_SERVER_CLI_OPTIONS_STORE_H

#include "server/cli/options_table.h"

/* Sets every field to its default; keeps o->memory. */
void options_set_standards(options *o, const command_row *c);

/* Stores a value from `source`. Sources are read from the lowest precedence up, so a later one
 * overwrites. On a wrong value prints what is allowed and returns false. origin: how that sentence
 * names the place of the value. */
bool options_store(options *o, const option_row *r, const char *text, option_source source,
                   const char *origin);

/* Prints that there is no memory for the options; false. */
bool options_no_memory(void);

/* Reads the file that --config names, or those in the standard places. False after
 * printing what is wrong. */
bool options_read_config(options *o, const command_row *c);

#endif
