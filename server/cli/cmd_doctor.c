/* doctor: which kernels this processor gets, and what the sandbox of `parley serve` holds on this system. */
#include <stdio.h>
#include <sys/utsname.h>

#include "engine/engine.h"
#include "server/cli/commands.h"
#include "server/sandbox.h"

static void print_row(const char *what, bool holds, const char *needs)
{
    printf("  %-3s  %s%s%s%s\n", holds ? "yes" : "NO", what, holds ? "" : " (needs ", holds ? "" : needs,
           holds ? "" : ")");
}

int command_doctor(void)
{
    const sandbox_support s = sandbox_look();
    struct utsname u;
    printf("kernel %s, Landlock %d, seccomp %s\n", uname(&u) == 0 ? u.release : "unknown", s.landlock,
           s.seccomp ? "there" : "not there");
    printf("processor: %s (--cpu)\n", engine_cpu());
    if (s.is_sanitized) {
        printf("this build has a sanitizer and no sandbox\n");
        return 0;
    }
    printf("Whoever takes over `parley serve` (without --no-sandbox) is kept from\n");
    print_row("reading and writing files beside those that its options name", s.landlock >= 1,
              "Landlock, Linux 5.13");
    print_row("starting other programs than this one", s.landlock >= 1, "Landlock, Linux 5.13");
    print_row("emptying files that it may not write", s.landlock >= 3, "Landlock 3, Linux 6.2");
    print_row("opening TCP connections", s.landlock >= 4 || s.seccomp, "Landlock 4, Linux 6.7, or seccomp");
    print_row("sending signals to other processes", s.landlock >= 6, "Landlock 6, Linux 6.12");
    print_row("opening sockets of any kind (unless --media-domains, --upstream or MCP over HTTP is given)",
              s.seccomp, "seccomp");
    print_row("looking into other processes, mounting, loading modules", s.seccomp, "seccomp");
    print_row("gaining privileges by a program that has them", true, "");
    return 0;
}
