/* upstream_media: the images and videos of a chat as parts of another server's body. Images go as data URIs, no
 * larger than the server's limit; videos as video_url where the engine takes them with the settings that are wanted,
 * else as images of their frames, each with its time in front of it. Prep threads.
 *
 *     upstream_media m = {.copier = copier, .hooks = hooks, .memory = &hold, .engine = UPSTREAM_VLLM};
 *     upstream_media_begin(&m, r->in, UPSTREAM_VIDEO_AUTO, UPSTREAM_UNKNOWN);
 *     err = upstream_media_write(&m, &body, &part, detail);      // {"type":"image_url",..}, or several with commas
 *     upstream_media_end(&m, &body);                             // ,"media_io_kwargs":{..}
 */
#ifndef PARLEY_SERVER_UPSTREAM_UPSTREAM_MEDIA_H
#define PARLEY_SERVER_UPSTREAM_UPSTREAM_MEDIA_H

#include "base/bytes.h"
#include "base/ledger.h"
#include "engine/media_copy.h"
#include "server/upstream/upstream_config.h"
#include "server/upstream/upstream_engine.h"

typedef struct upstream_media {
    const media_copier *copier;
    const prepare_hooks *hooks;
    ledger_hold *memory; /* of the body; what is written of media is reserved there */
    upstream_engine engine;
    int64_t max_pixels; /* of an image; 0: LIMIT_UPSTREAM_PIXELS, or what a Parley shows a model */
    /* set by upstream_media_begin */
    bool sends_files;        /* videos go as video_url */
    const chat_video *video; /* how all of them are sampled, for vLLM's body; NULL: there is none */
} upstream_media;

/* Decides how the videos of a chat go. way: what the options say of the server; sees_videos: what it says of the
 * model. */
void upstream_media_begin(upstream_media *m, const chat_input *in, upstream_video way,
                          upstream_answer sees_videos);
/* Appends an image or a video. Errors as for media of engine_prepare, at the part's place in the request. */
MUST_CHECK err_code upstream_media_write(upstream_media *m, bytes *out, const chat_part *part, err_detail *d);
/* Appends what the body says of its videos. */
void upstream_media_end(const upstream_media *m, bytes *out);

#endif
