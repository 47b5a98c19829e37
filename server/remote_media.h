/* remote_media: pictures and films that a request names by their address: which may be brought, and bringing them. Prep threads;
 * plain constant settings.
 *
 *     err = remote_media_check(rm, url, true, "messages[0].content[1].image_url", &detail);   // while the request is parsed
 *     part->url = url;
 *     err = remote_media_bring(rm, in, &hooks, &detail);     // later: every part that has a url gets its file
 *
 * What is brought lies in files without a name and is no different from an uploaded file from then on: its first bytes say
 * what it is, and the hash of its contents is the key of the vision cache.
 */
#ifndef PARLEY_SERVER_REMOTE_MEDIA_H
#define PARLEY_SERVER_REMOTE_MEDIA_H

#include "engine/chat.h"
#include "engine/engine.h"

typedef struct remote_media {
    const char *const *domains; /* rules of remote_host.h; none: nothing is fetched */
    size_t n_domains;
    const char *folder; /* files below it may be named by file: URLs; NULL: none */
    const char *dir;    /* where a file lies while a request needs it */
    uint64_t max_film;  /* bytes of a film, and of all films of a request */
} remote_media;

/* Whether the URL may be brought at all, without asking anybody: ERR_INVALID with remote_media_disabled or
 * remote_media_refused. rm NULL: nothing may. path names the field. */
MUST_CHECK err_code remote_media_check(const remote_media *rm, const char *url, bool is_image,
                                       const char *path, err_detail *d);

/* Whether a part of the chat has a url. */
bool remote_media_wanted(const chat_input *in);

/* Brings what the chat's parts and lists name by url; rm as checked. ERR_INVALID: remote_media_refused (a redirect or a name
 * led where it must not), remote_media_failed; ERR_TIMEOUT: remote_media_failed; ERR_LIMIT: image_too_large,
 * video_too_large; ERR_CANCELLED, ERR_IO, ERR_NOMEM. detail->param names the part. */
MUST_CHECK err_code remote_media_bring(const remote_media *rm, chat_input *in, const prepare_hooks *hooks,
                                       err_detail *d);

#endif
