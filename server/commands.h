/* commands: what `parley COMMAND` does. Each returns the program's exit code: 0 done, 1 failed, 2 usage, 3 the model
 * is missing or invalid, 4 out of memory, 5 the address is in use. Main thread.
 */
#ifndef PARLEY_SERVER_COMMANDS_H
#define PARLEY_SERVER_COMMANDS_H

#include "base/err.h"
#include "engine/engine.h"
#include "server/options.h"

enum { EXIT_MODEL = 3, EXIT_MEMORY = 4 };

int command_serve(const options *o);
int command_run(const options *o);
int command_bench(const options *o);
int command_inspect(const options *o);
int command_convert(const options *o);
int command_health(const options *o);
/* What `parley serve --check` does; the event callback is set here. */
int command_check(engine_options *eo);

/* --quantize and --quantize-head as bits of weights; false if the engine does not know them. */
bool command_formats(const options *o, int *layer_bits, int *head_bits);

/* Fills engine options from the command line; the event callback stays the caller's. False if the engine does not know one
 * of their words. */
bool command_engine_options(engine_options *out, const options *o);

/* Prints "parley: TEXT" and returns the exit code that belongs to err. */
int command_fail(err_code err, const err_detail *detail);

#endif
