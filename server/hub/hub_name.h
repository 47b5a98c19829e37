/* hub_name: the name of a model on a hub, as people write it, and which paths of a repository are
 * taken. Any thread; plain values.
 *
 *     hub_name name;                                  // "unsloth/Qwen3.5-0.8B-GGUF:Q4_K_M"
 *     if (!hub_name_parse(&name, text)) { return; }   // name.repo, name.quant
 */
#ifndef PARLEY_SERVER_HUB_HUB_NAME_H
#define PARLEY_SERVER_HUB_HUB_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum { HUB_REPO_MAX = 200, HUB_QUANT_MAX = 48, HUB_REVISION_MAX = 200, HUB_PATH_MAX = 512, HUB_HEX_MAX = 65 };

typedef struct hub_name {
    char repo[HUB_REPO_MAX];         /* ORG/NAME */
    char quant[HUB_QUANT_MAX];       /* "" if none is named */
    char revision[HUB_REVISION_MAX]; /* a branch, tag or commit; "main" if none is named */
} hub_name;

/* Reads ORG/NAME[:QUANT][@REVISION]; false for anything else. */
bool hub_name_parse(hub_name *out, const char *text);

/* The repository's folder in the cache: "models--ORG--NAME"; and back, false for another folder. */
void hub_name_folder(char out[HUB_REPO_MAX + 16], const char *repo);
bool hub_name_of_folder(char out[HUB_REPO_MAX], const char *folder);

/* Whether a path of a repository stays in it: relative, of plain names, without "." and "..", a
 * backslash or a control character, of at most HUB_PATH_MAX bytes. */
bool hub_path_is_safe(const char *path);

/* Whether a text is lower-case hex digits, from `least` to 64 of them. */
bool hub_is_hex(const char *text, size_t least);

#endif
