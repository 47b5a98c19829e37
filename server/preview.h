/* preview: what there is to say of an uploaded picture or film, as JSON: what it is, a few small pictures of it, about how many
 * tokens it takes. Prep threads.
 *
 *     preview_run(&text, &(preview_task){.engine = e, .files = files, .scope = scope, .file_id = "file_...", ...});
 */
#ifndef PARLEY_SERVER_PREVIEW_H
#define PARLEY_SERVER_PREVIEW_H

#include "base/bytes.h"
#include "engine/engine.h"
#include "server/file_store.h"

enum { PREVIEW_BYTES = 1 << 19 }; /* of the message */

typedef struct preview_task {
    const engine *engine;
    file_store *files;
    uint64_t scope;
    const char *file_id;
    bool (*cancelled)(void *ctx);
    /* Called at most once, as soon as it is known: the members that upload.completed.media has beside kind and mime_type, each
     * with a comma in front; the bytes are the receiver's to move. */
    void (*on_facts)(void *ctx, bytes *members);
    void *ctx;
} preview_task;

/* Writes the message media.preview to out; nothing if there is nothing to show. Blocks for up to some 10 s. */
void preview_run(bytes *out, const preview_task *task);

#endif
