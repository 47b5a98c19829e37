/* commands: the commands of the program, one file each: cmd_NAME.c. Each returns the program's exit
 * code: 0 done, 1 failed, 2 usage, 5 the address is in use, or one of command.h. Main thread.
 */
#ifndef PARLEY_SERVER_CLI_COMMANDS_H
#define PARLEY_SERVER_CLI_COMMANDS_H

#include "engine/engine.h"
#include "server/cli/options.h"

int command_serve(const options *o);   /* serves until it is told to stop */
int command_run(const options *o);     /* one answer on the terminal */
int command_chat(const options *o);    /* a conversation on the terminal */
int command_status(const options *o);  /* what the local server does */
int command_stop(const options *o);    /* ends it */
int command_bench(const options *o);   /* measures and prints speeds */
int command_inspect(const options *o); /* describes a checkpoint or a folder */
int command_convert(const options *o); /* writes a checkpoint with quantized weights */
int command_health(const options *o);  /* asks a running server whether it is ready */
int command_pull(const options *o);    /* fetches a model from a hub */
int command_list(const options *o);    /* lists the models of hubs that are here */
int command_remove(const options *o);  /* removes one */
int command_doctor(void);   /* prints the processor's level, and what the sandbox holds on this kernel */
int command_licenses(void); /* prints all licenses */
/* What `parley serve --check` does; the event callback is set here. */
int command_check(engine_options *eo);

#endif
