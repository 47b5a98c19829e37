/* sandbox: what the server process gives up, so that who takes it over gains little: files by Landlock,
 * system calls by seccomp, privileges by no_new_privs. Cannot be undone; child processes have it, too.
 *
 *     sandbox *s = sandbox_create(false);
 *     sandbox_allow(s, "/srv/model", SANDBOX_READ);
 *     bool ok = sandbox_enter_files(s) && sandbox_enter_calls(false);
 *
 * Threads: Landlock binds the calling thread and those that it makes, so sandbox_enter_files comes
 * before the first other thread; sandbox_enter_calls binds all threads at once. Builds with a
 * sanitizer, which looks at files of its own, have no sandbox.
 */
#ifndef PARLEY_SERVER_SANDBOX_H
#define PARLEY_SERVER_SANDBOX_H

#include <stdbool.h>

#include "base/compiler.h"

typedef struct sandbox sandbox;

typedef enum sandbox_use {
    SANDBOX_READ,
    SANDBOX_BELOW,  /* the same without what is linked to */
    SANDBOX_WRITE,  /* and read, make, remove, rename */
    SANDBOX_RUN,    /* start this program, and read it */
    SANDBOX_LIST,   /* names in this folder, not what the files hold */
    SANDBOX_SOCKET, /* make and remove socket files in this folder */
} sandbox_use;

typedef struct sandbox_support {
    int landlock; /* version of its interface; 0: not there */
    bool seccomp;
    bool is_sanitized; /* this build has no sandbox */
} sandbox_support;

/* What this kernel and this build offer. */
sandbox_support sandbox_look(void);

/* A sandbox without any file, and without outgoing TCP unless it connects; NULL if out of memory or
 * without Landlock. */
MUST_CHECK sandbox *sandbox_create(bool connects);
void sandbox_destroy(sandbox *s); /* NULL allowed; before sandbox_enter_files */

/* Opens a file, or a folder with all below it; what is not there is passed over. What is linked to from
 * a folder that is read, or from one below it, is opened as well. NULL allowed for both. */
void sandbox_allow(sandbox *s, const char *path, sandbox_use use);

/* Privileges are given up and, with a sandbox (NULL: none), all files but those that were allowed, TCP as
 * said when it was made and, where the kernel can, signals to other processes. s is freed. False if the
 * kernel refused. */
bool sandbox_enter_files(sandbox *s);

/* All threads lose the system calls that a server never needs once it listens: new sockets and
 * connections (unless connects), other processes, mounts, modules, keys. False if the kernel refused. */
bool sandbox_enter_calls(bool connects);

#endif
