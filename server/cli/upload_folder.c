#include "server/cli/upload_folder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

const char *upload_folder(char out[PATH_MAX])
{
    const char *temporary = getenv("TMPDIR");
    const char *around = temporary && temporary[0] ? temporary : "/var/tmp";
    struct stat st;
    const int n = snprintf(out, PATH_MAX, "%s/parley-%ju", around, (uintmax_t)geteuid());
    const bool there = n < PATH_MAX && (mkdir(out, S_IRWXU) == 0 || errno == EEXIST) && lstat(out, &st) == 0;
    if (!there || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IRWXG | S_IRWXO))) {
        if (there) {
            log_warn("srv", "%s is not a folder of this user alone: uploads are kept in %s", out, around);
        }
        snprintf(out, PATH_MAX, "%s", around);
    }
    return out;
}
