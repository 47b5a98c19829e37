#include "server/cli/own_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/cli/commands.h"
#include "server/local_server.h"

enum { BODY_MIB = 1024 };

static const char NAME[] = "/parley-XXXXXX";

/* A folder of this user's alone, with room for a socket's name. */
static bool make_folder(own_server *s)
{
    const char *places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const char *place = places[i];
        if (place && place[0] == '/' && strlen(place) + sizeof NAME + sizeof "/chat" < sizeof s->folder) {
            snprintf(s->folder, sizeof s->folder, "%s%s", place, NAME);
            if (mkdtemp(s->folder)) {
                snprintf(s->host, sizeof s->host, "unix:%s/chat", s->folder);
                return true;
            }
        }
    }
    s->folder[0] = '\0';
    return false;
}

/* The child's part. Ctrl-C on the terminal is not for it: it has a session of its own. */
static int serve(const own_server *s, const options *o, pid_t parent)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
    options own = *o;
    own.command = COMMAND_SERVE;
    own.host = s->host;
    own.max_body_mib = BODY_MIB;
    own.parallel = 1;
    own.drain_timeout = 0;
    own.ui = false;
    for (size_t i = 0; i < ARRAY_LEN(SIGNALS); i++) {
        signal(SIGNALS[i], SIG_DFL);
    }
    (void)setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    const int null = open("/dev/null", O_RDWR);
    if (getppid() != parent || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        unsetenv("CREDENTIALS_DIRECTORY") != 0) {
        return 1;
    }
    close(null);
    return command_serve(&own);
}

err_code own_server_start(own_server *s, const options *o, err_detail *detail)
{
    *s = (own_server){0};
    if (!make_folder(s)) {
        return err_set(detail, ERR_IO,
                       "no folder for a socket can be made in XDG_RUNTIME_DIR, TMPDIR or /tmp: %s",
                       strerror(errno));
    }
    fflush(NULL);
    const pid_t parent = getpid();
    s->pid = fork();
    if (s->pid == 0) {
        _exit(serve(s, o, parent));
    }
    if (s->pid < 0) {
        const err_code err = err_set(detail, ERR_IO, "no server can be started: %s", strerror(errno));
        own_server_stop(s);
        return err;
    }
    return ERR_OK;
}

own_server_state own_server_look(own_server *s, int *code)
{
    int status = 0;
    local_reply reply;
    if (waitpid(s->pid, &status, WNOHANG) == s->pid) {
        s->pid = 0;
        *code = WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1;
        if (!WIFEXITED(status)) {
            fprintf(stderr, "parley: the server of this chat was ended by signal %d\n", WTERMSIG(status));
        }
        return OWN_SERVER_ENDED;
    }
    const local_address at = {.hosts = s->host};
    const bool is_ready = local_server_get(&reply, &at, "/health", NULL) && reply.status == 200;
    local_reply_deinit(&reply);
    return is_ready ? OWN_SERVER_READY : OWN_SERVER_LOADS;
}

void own_server_stop(own_server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGTERM);
        (void)waitpid(s->pid, NULL, 0);
        s->pid = 0;
    }
    if (s->folder[0]) {
        (void)unlink(s->host + strlen("unix:"));
        (void)rmdir(s->folder);
        s->folder[0] = '\0';
    }
}
