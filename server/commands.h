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
int command_licenses(void);
/* What `parley serve --check` does; the event callback is set here. */
int command_check(engine_options *eo);

/* --quantize and --quantize-head as bits of weights; false if the engine does not know them. */
bool command_formats(const options *o, int *layer_bits, int *head_bits);

/* Fills engine options from the command line; the event callback stays the caller's. False if the engine does not know one
 * of their words. */
bool command_engine_options(engine_options *out, const options *o);

/* engine_open with a bar on the terminal. */
MUST_CHECK err_code command_open_engine(engine **out, const engine_options *eo, err_detail *detail);

/* Makes a path of the name of a model below --models-dir; what is none stays as it is. *model NULL: the first of them that
 * can be loaded, if there is one. ERR_NOT_FOUND if it is neither a name nor a path. */
MUST_CHECK err_code command_find_model(const options *o, const char **model, err_detail *detail);

/* Prints "parley: TEXT" and returns the exit code that belongs to err. */
int command_fail(err_code err, const err_detail *detail);

#endif
