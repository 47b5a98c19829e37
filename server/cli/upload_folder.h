/* upload_folder: where uploads are kept if nobody says where. At the start, before threads. */
#ifndef PARLEY_SERVER_CLI_UPLOAD_FOLDER_H
#define PARLEY_SERVER_CLI_UPLOAD_FOLDER_H

#include <limits.h>

/* A folder of this user alone, parley-UID below TMPDIR or /var/tmp (which is on a disk where /tmp may be
 * memory); made if it is missing. Where another has taken that name, or it is open to others, the
 * folder around it, with a warning. Returns out. */
const char *upload_folder(char out[PATH_MAX]);

#endif
