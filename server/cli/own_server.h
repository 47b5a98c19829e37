/* own_server: a server of this program's own, for `parley chat` alone: a child process behind a socket
 * file that only this user can open. It ends with this program, however that ends. Main thread.
 *
 *     own_server s; err_code err = own_server_start(&s, o, &detail);
 *     int code; while (own_server_look(&s, &code) == OWN_SERVER_LOADS) { code = 0; }
 *     own_server_stop(&s);
 */
#ifndef PARLEY_SERVER_CLI_OWN_SERVER_H
#define PARLEY_SERVER_CLI_OWN_SERVER_H

#include <sys/types.h>

#include "base/err.h"
#include "server/cli/options.h"

enum { OWN_SERVER_PATH_MAX = 100 };

typedef struct own_server {
    pid_t pid;
    char folder[OWN_SERVER_PATH_MAX];
    char host[OWN_SERVER_PATH_MAX + 16]; /* "unix:/PATH", for chat_server_parse */
} own_server;

typedef enum own_server_state { OWN_SERVER_LOADS, OWN_SERVER_READY, OWN_SERVER_ENDED } own_server_state;

/* Starts to load o->model, with the engine's options of o. ERR_IO. */
MUST_CHECK err_code own_server_start(own_server *s, const options *o, err_detail *detail);
/* How far it is; *code: with what it has ended, after saying why on standard error. */
own_server_state own_server_look(own_server *s, int *code);
/* Ends it and removes its socket. */
void own_server_stop(own_server *s);

#endif
