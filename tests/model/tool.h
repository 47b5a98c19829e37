/* tool: runs one of our programs from a test; those of the build, or of the folder $PROGRAMS_FOLDER (no
 * name of an option in the environment, PARLEY_...). */
#ifndef PARLEY_TESTS_MODEL_TOOL_H
#define PARLEY_TESTS_MODEL_TOOL_H

#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;

/* Runs NAME with up to four arguments (NULL ends them) and returns its exit code, or -1. */
static inline int tool_run_4(const char *name, const char *first, const char *second, const char *third,
                             const char *fourth)
{
    char path[4096];
    const char *folder = getenv("PROGRAMS_FOLDER");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : PARLEY_BUILD_DIR, name);
    char *argv[] = {
#ifdef PARLEY_EMULATOR
        PARLEY_EMULATOR,
#endif
        path,
        (char *)(uintptr_t)first,
        (char *)(uintptr_t)second,
        (char *)(uintptr_t)third,
        (char *)(uintptr_t)fourth,
        NULL};
    pid_t pid;
    int status;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0 || waitpid(pid, &status, 0) != pid) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline int tool_run_3(const char *name, const char *first, const char *second, const char *third)
{
    return tool_run_4(name, first, second, third, NULL);
}

static inline int tool_run(const char *name, const char *first, const char *second)
{
    return tool_run_3(name, first, second, NULL);
}

#endif
