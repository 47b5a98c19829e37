/* --licenses: the licence of Parley, those of what is embedded in the page, and which libraries the
 * program is linked to. */
#include <stdio.h>
#include <string.h>

#include "server/service/assets.h"
#include "server/cli/commands.h"

static const struct {
    const char *name, *licence;
} LIBRARIES[] = {
    {"libwebsockets", "MIT; parts BSD-3-Clause, Zlib"},
    {"OpenSSL (libcrypto)", "Apache-2.0"},
    {"cJSON", "MIT"},
    {"PCRE2", "BSD-3-Clause"},
    {"utf8proc", "MIT, Unicode"},
    {"OpenBLAS", "BSD-3-Clause"},
    {"libpng", "libpng-2.0"},
    {"libjpeg-turbo", "IJG, BSD-3-Clause, Zlib"},
    {"FFmpeg (libavformat, libavcodec, libswscale, libavutil)",
     "LGPL-2.1-or-later; GPL-2.0-or-later as some build it"},
    {"libwebp", "BSD-3-Clause"},
    {"zlib", "Zlib"},
    {"SQLite", "public domain"},
    {"libcurl", "curl"},
    {"libedit", "BSD-3-Clause"},
    {"libxml2", "MIT"},
};

static void print_file(const char *path)
{
    asset_reply r;
    assets_find(&r, NULL, path, "", "");
    fwrite(r.reply.body, 1, r.reply.body_bytes, stdout);
    asset_reply_deinit(&r);
}

int command_licenses(void)
{
    static const char FOLDER[] = "/vendor/licenses/";
    const size_t n = sizeof FOLDER - 1;
    printf("== Parley ==\n\n");
    print_file("/LICENSE");
    for (size_t i = 0; i < N_ASSETS; i++) {
        const char *path = ASSETS[i].path;
        if (strncmp(path, FOLDER, n) == 0) {
            printf("\n== %.*s, embedded in the page ==\n\n", (int)strcspn(path + n, "\n") - 4, path + n);
            print_file(path);
        }
    }
    printf("\n== Libraries that the program is linked to ==\n\n");
    for (size_t i = 0; i < ARRAY_LEN(LIBRARIES); i++) {
        printf("%s: %s\n", LIBRARIES[i].name, LIBRARIES[i].licence);
    }
    return 0;
}
