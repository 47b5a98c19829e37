/* remote_media: what is said of each way in which a transfer may end, of an image and of a video. A double of remote_get ends
 * so. */
#include "server/media/remote_media.h"

#include "base/arena.h"
#include "base/limits.h"
#include "server/media/remote_get.h"
#include "tests/check.h"

static remote_end ends;
static uint64_t most;

remote_end __wrap_remote_get(remote_reply *out, const remote_order *order);
remote_end __wrap_remote_get(remote_reply *out, const remote_order *order)
{
    CHECK_STR(order->url, "https://h.example/a");
    CHECK_INT(order->n_rules, 1);
    CHECK(!order->cancelled(order->ctx));
    most = order->max_bytes;
    *out = (remote_reply){.status = 404, .host = "h.example"};
    CHECK(order->write(order->ctx, "data", 4));
    return ends;
}

static err_code fetch(chat_part_kind kind, err_detail *d)
{
    static const char *const HOSTS[] = {"*"};
    const remote_media rm = {.domains = HOSTS, .n_domains = 1, .dir = "/tmp", .max_video = 5 << 20};
    chat_input *in = chat_input_create(1 << 20);
    chat_part part = {.kind = kind, .url = "https://h.example/a", .param = "input[3]"};
    chat_message m = {.parts = &part, .n_parts = 1};
    memset(d, 0, sizeof *d);
    in->messages = &m;
    in->n_messages = 1;
    const err_code err = remote_media_fetch(&rm, in, NULL, d);
    CHECK_INT(part.data_bytes, err == ERR_OK ? 4 : 0);
    CHECK(err == ERR_OK || strcmp(d->param, "input[3]") == 0);
    in->messages = NULL;
    in->n_messages = 0;
    chat_input_destroy(in);
    return err;
}

int main(void)
{
    static const struct {
        remote_end end;
        err_code err;
        const char *code, *image, *video;
    } ROWS[] = {
        {REMOTE_DONE, ERR_OK, "", "", ""},
        {REMOTE_NO_URL, ERR_INVALID, "remote_media_refused",
         "media are fetched from http and https URLs that name a host and no password", NULL},
        {REMOTE_NO_RULE, ERR_INVALID, "remote_media_refused",
         "media are not fetched from h.example; --media-domains lists the hosts that are allowed", NULL},
        {REMOTE_INSECURE, ERR_INVALID, "remote_media_refused",
         "an https address leads to h.example without encryption", NULL},
        {REMOTE_NOT_PUBLIC, ERR_INVALID, "remote_media_refused",
         "h.example is at an address that is not public; media are not fetched from there", NULL},
        {REMOTE_STATUS, ERR_INVALID, "remote_media_failed",
         "h.example answered with status 404 instead of the image",
         "h.example answered with status 404 instead of the video"},
        {REMOTE_TIMEOUT, ERR_TIMEOUT, "remote_media_failed", "h.example took too long to send the image",
         "h.example took too long to send the video"},
        {REMOTE_CANCELLED, ERR_CANCELLED, "", "cancelled while fetching media", NULL},
        {REMOTE_HOPS, ERR_INVALID, "remote_media_failed", "h.example is behind more than 3 redirects", NULL},
        {REMOTE_TOO_LARGE, ERR_LIMIT, "image_too_large",
         "the images that this request names may have 64 MiB together at most",
         "the videos that this request names may have 5 MiB together at most"},
        {REMOTE_FAILED, ERR_INVALID, "remote_media_failed",
         "the image could not be fetched from h.example: no such host, no connection, or a reply that is "
         "broken",
         "the video could not be fetched from h.example: no such host, no connection, or a reply that is "
         "broken"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        for (int is_video = 0; is_video < 2; is_video++) {
            err_detail d;
            ends = ROWS[i].end;
            CHECK_INT(fetch(is_video ? CHAT_VIDEO : CHAT_IMAGE, &d), ROWS[i].err);
            CHECK_STR(d.text, is_video && ROWS[i].video ? ROWS[i].video : ROWS[i].image);
            CHECK_STR(d.name, is_video && ends == REMOTE_TOO_LARGE ? "video_too_large" : ROWS[i].code);
            CHECK_INT(most, is_video ? 5 << 20 : (int64_t)LIMIT_BODY_BYTES);
        }
    }
    CHECK_DONE();
}
