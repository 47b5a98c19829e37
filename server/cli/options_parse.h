/* options_parse: the command line, the environment and config files into `options`. Main thread.
 *
 *     options o;
 *     int code = options_parse(&o, argc, argv); // prints and returns an exit code, or -1: go on
 *     options_deinit(&o);                       // after -1 only
 */
#ifndef PARLEY_SERVER_CLI_OPTIONS_PARSE_H
#define PARLEY_SERVER_CLI_OPTIONS_PARSE_H

#include "server/cli/options.h"

/* Parses the command line. Returns -1 to go on, else the exit code (help was printed, or a mistake
 * was named). Secrets in argv are overwritten, so that the process list does not show them. */
int options_parse(options *o, int argc, char **argv);
void options_deinit(options *o); /* frees what the strings point to */

#endif
