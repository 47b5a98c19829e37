/* preview: describes an uploaded image or video as JSON: its properties, a few thumbnails, and
 * about how many tokens it takes. Prep threads.
 *
 *     preview_run(&text, &(preview_task){.engine = e, .files = files, .scope = scope, .file_id = "file_..."});
 */
#ifndef PARLEY_SERVER_MEDIA_PREVIEW_H
#define PARLEY_SERVER_MEDIA_PREVIEW_H

#include "base/bytes.h"
#include "engine/media_copy.h"
#include "server/media/file_store.h"

enum { PREVIEW_BYTES = 1 << 19 }; /* of the message */

typedef struct preview_task {
    const engine *engine;      /* NULL: media shows it */
    const media_copier *media; /* for what the engine's model does not see; NULL: that is not shown */
    file_store *files;
    uint64_t scope;
    const char *file_id;
    bool (*cancelled)(void *ctx);
    /* Called at most once, as soon as they are known: the members of upload.completed.media besides
     * kind and mime_type, each with a leading comma; the receiver may move the bytes. */
    void (*on_facts)(void *ctx, bytes *members);
    void *ctx;
} preview_task;

/* Writes the message media.preview to out; nothing if there is nothing to show. Blocks for up to
 * about 10 s. */
void preview_run(bytes *out, const preview_task *task);

#endif
