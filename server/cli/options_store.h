/* options_store: how the text of a value becomes a field of `options`. Main thread.
 *
 *     options_set_standards(&o, c);
 *     if (!options_store(&o, row, "8081", SOURCE_LINE, "--port")) { return OPTIONS_EXIT_USAGE; }
 */
#ifndef PARLEY_SERVER_CLI_OPTIONS_STORE_H
#define PARLEY_SERVER_CLI_OPTIONS_STORE_H

#include "server/cli/options_table.h"

/* Every field to its default; keeps o->memory. */
void options_set_standards(options *o, const command_row *c);

/* Stores a value that `source` says; a lower source never overwrites a higher one, as they are read
 * in that order. On a wrong value prints what is allowed and returns false. origin: how the value's
 * place is named in that sentence. */
bool options_store(options *o, const option_row *r, const char *text, option_source source,
                   const char *origin);

#endif
