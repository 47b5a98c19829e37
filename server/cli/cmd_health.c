/* health: asks the server of this machine whether it is ready, as a container's health check does. */
#include <stdio.h>
#include <string.h>

#include "server/cli/commands.h"
#include "server/local_server.h"

int command_health(const options *o)
{
    const local_address at = {.hosts = o->host, .port = o->port, .prefix = o->api_prefix};
    local_reply r;
    int code = 1;
    if (!local_server_get(&r, &at, "/health", NULL)) {
        fprintf(stderr, "parley: %s: %s\n", r.where, r.why);
    } else if (r.status == 200) {
        code = 0;
        puts("ok");
    } else if (r.status == 503) {
        const char *message = strstr(bytes_str(&r.body), "\"message\":\"");
        message = message ? message + strlen("\"message\":\"") : "not ready";
        fprintf(stderr, "parley: %s: %.*s\n", r.where, (int)strcspn(message, "\""), message);
    } else {
        fprintf(stderr, "parley: %s: no Parley server answers there\n", r.where);
    }
    local_reply_deinit(&r);
    return code;
}
