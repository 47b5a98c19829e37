/* options_read: what options.c and options_config.c share. Private. Main thread. */
#ifndef PARLEY_SERVER_OPTIONS_READ_H
#define PARLEY_SERVER_OPTIONS_READ_H

#include "server/options_table.h"

/* Stores a value that `source` says; a lower source never overwrites a higher one, as they are read in that order. On a
 * wrong value prints what is allowed and returns false. origin: how the value's place is named in that sentence. */
bool options_store(options *o, const option_row *r, const char *text, option_source source,
                   const char *origin);

/* Reads the file that --config names, or those of the standard places. False after printing what is wrong. */
bool options_read_config(options *o, const command_row *c);

#endif
