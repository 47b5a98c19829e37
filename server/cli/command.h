/* command: what several commands need: the model that is meant, the engine's options from the
 * command line, errors as exit codes. Main thread.
 */
#ifndef PARLEY_SERVER_CLI_COMMAND_H
#define PARLEY_SERVER_CLI_COMMAND_H

#include "base/err.h"
#include "base/mailbox.h"
#include "engine/engine.h"
#include "server/cli/options.h"

/* Exit codes: the model is missing or invalid, there is not enough memory. */
enum { EXIT_MODEL = 3, EXIT_MEMORY = 4 };

/* --quantize and --quantize-head as bits of weights; false if the engine does not know them. */
bool command_formats(const options *o, int *layer_bits, int *head_bits);

/* Fills engine options from the command line; the event callback stays the caller's. False if the
 * engine does not know one of the values. */
bool command_engine_options(engine_options *out, const options *o);

/* engine_open, with a progress bar on the terminal unless it is to be quiet. */
MUST_CHECK err_code command_open_engine(engine **out, const engine_options *eo, bool is_quiet,
                                        err_detail *detail);

/* engine_options.on_event for commands that wait for the end of an answer alone; ctx: a mailbox. */
void command_on_event(void *ctx, gen_event *ev);
/* For mailbox_destroy: an event that nobody waits for any more. */
void command_drop_event(void *ev);
/* Submits a request that was prepared with `err`, and takes it over: it is freed on failure. */
MUST_CHECK err_code command_submit(engine *e, gen_request *r, uint64_t id, err_code err, err_detail *detail);
/* Waits for the end of an answer, which command_on_event hands to `events`; its timings are in *t. */
MUST_CHECK err_code command_wait(mailbox *events, gen_timings *t, err_detail *detail);

/* Replaces the name of a model below --models-dir, or of a model of a hub, by its path; a path is left as
 * it is. A model of a hub that is not here is fetched with --pull, or if that is answered with yes. *model
 * NULL: the first model of --models-dir that can be loaded, if any. *mmproj (may be NULL) receives the vision
 * tower of a hub's GGUF model. ERR_NOT_FOUND if it is neither a name nor a path; else as hub_pull. */
MUST_CHECK err_code command_find_model(const options *o, const char **model, const char **mmproj,
                                       err_detail *detail);

/* Seedling's folder: where it was installed, or assets/ beside the build folder. Static buffer;
 * NULL if not found. */
const char *command_default_model(void);

/* Prints a text; ERR_NOMEM, and nothing, if it is not whole. Whether it was written is seen at the end. */
MUST_CHECK err_code command_print(const bytes *text, err_detail *detail);

/* Prints "parley: TEXT" and returns the exit code that belongs to err. */
int command_fail(err_code err, const err_detail *detail);

#endif
