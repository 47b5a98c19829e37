/* serve_sandbox: what `parley serve` keeps of files and system calls, by its options. Main thread.
 *
 *     serve_sandbox box;
 *     serve_sandbox_start_again(argv);    // first of all
 *     serve_sandbox_begin(&box, o, "/var/tmp/parley", NULL, NULL);    // before any other thread
 *     serve_sandbox_listening(&box);      // once its sockets are open
 */
#ifndef PARLEY_SERVER_CLI_SERVE_SANDBOX_H
#define PARLEY_SERVER_CLI_SERVE_SANDBOX_H

#include <stdbool.h>

#include "server/cli/options.h"
#include "server/mcp/mcp_config.h"

typedef struct serve_sandbox {
    bool is_on, connects;
} serve_sandbox;

/* What OpenBLAS reads of the environment before main. It makes threads, which are not used and would keep what
 * the sandbox takes, and on a processor that it does not know it takes kernels of SSE2: a program that will serve
 * starts itself again without the threads, one that will compute with the kernels of the processor. What
 * OPENBLAS_CORETYPE says already stays. argv is that of main, before anything of it is blanked. Returns if there is nothing to do. */
void serve_sandbox_start_again(char **argv);
/* Gives up every file that no option names. uploads: the folder where uploads are kept; mcp: servers of
 * tools, perhaps at other machines, NULL: none; hub_cache: of models of a hub, NULL: none are offered. */
void serve_sandbox_begin(serve_sandbox *box, const options *o, const char *uploads, const mcp_config *mcp,
                         const char *hub_cache);
/* Gives up the system calls that only the start needs. */
void serve_sandbox_listening(const serve_sandbox *box);

#endif
