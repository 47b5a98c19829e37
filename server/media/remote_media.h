/* remote_media: fetches images and videos that a request names by URL, within the allowed hosts.
 * Prep threads; constant settings.
 *
 *     err = remote_media_check(rm, url, true, "messages[0].content[1].image_url", &detail);   // while the request is parsed
 *     err = remote_media_fetch(rm, in, &hooks, &detail);     // later: fetches the file of every part with a url
 *
 * Fetched data is stored in unnamed files and then treated like an uploaded file: its first bytes
 * identify the format, and its hash is the key of the vision cache.
 */
#ifndef PARLEY_SERVER_MEDIA_REMOTE_MEDIA_H
#define PARLEY_SERVER_MEDIA_REMOTE_MEDIA_H

#include "engine/chat.h"
#include "engine/engine.h"

typedef struct remote_media {
    const char *const *domains; /* rules of remote_host.h; none: nothing is fetched */
    size_t n_domains;
    const char *folder; /* files below it may be named by file: URLs; NULL: none */
    const char *dir;    /* where fetched files are stored during a request */
    uint64_t max_video; /* bytes of a video, and of all videos of a request */
} remote_media;

/* Whether the URL may be fetched, decided without network access: ERR_INVALID with
 * remote_media_disabled or remote_media_refused. rm NULL: nothing may. path names the field. */
MUST_CHECK err_code remote_media_check(const remote_media *rm, const char *url, bool is_image,
                                       const char *path, err_detail *d);

/* Whether a part of the chat has a url. */
bool remote_media_wanted(const chat_input *in);

/* Fetches what the chat's parts and lists name by url; rm as checked. ERR_INVALID:
 * remote_media_refused (a redirect or host name led to a forbidden address), remote_media_failed;
 * ERR_TIMEOUT: remote_media_failed; ERR_LIMIT: image_too_large, video_too_large; ERR_CANCELLED,
 * ERR_IO, ERR_NOMEM. detail->param names the part. */
MUST_CHECK err_code remote_media_fetch(const remote_media *rm, chat_input *in, const prepare_hooks *hooks,
                                       err_detail *d);

#endif
