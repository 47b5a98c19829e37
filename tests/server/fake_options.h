/* fake_options: the options of the server with the double of the engine, from words as on a command line.
 *
 *     fake_options f; fake_options_read(&f, 2, (char *[]){"--key", "a-key-of-enough-letters"});
 *     f.serve.quiet = true;
 *     fake_options_end(&f);
 */
#ifndef PARLEY_TESTS_SERVER_FAKE_OPTIONS_H
#define PARLEY_TESTS_SERVER_FAKE_OPTIONS_H

#include "server/service/serve.h"

/* Points into itself and into the words. */
typedef struct fake_options {
    serve_options serve;
    engine_options engine;
    mcp_config *tools;
    mcp_spawner *spawner;
    json_doc *kwargs;
    const char *keys[8], *hosts[8], *origins[8], *listening[9], *domains[8], *pinned[4];
} fake_options;

/* Reads pairs of --NAME and VALUE; false after saying which name is unknown. Any free port, if none is named. */
bool fake_options_read(fake_options *f, int argc, char **argv);
void fake_options_end(fake_options *f); /* frees what they point to; after the server's end */

#endif
