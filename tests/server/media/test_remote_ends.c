/* remote_media: what is said of each way in which a transfer may end, of an image and of a video. A double of remote_get ends
 * so, in time that is made up. */
#include "server/media/remote_media.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/media/remote_get.h"
#include "tests/check.h"
#include "tests/open_files.h"
#include "tests/server/made_up_time.h"

static remote_end ends;
static uint64_t most;
static double end_ms[3]; /* of each order */
static size_t n_orders;
static int takes_s;

remote_end __wrap_remote_get(remote_reply *out, const remote_order *order);
remote_end __wrap_remote_get(remote_reply *out, const remote_order *order)
{
    CHECK_STR(order->url, "https://h.example/a");
    CHECK_INT(order->n_rules, 1);
    CHECK(!order->cancelled(order->ctx));
    most = order->max_bytes;
    end_ms[n_orders++ % ARRAY_LEN(end_ms)] = order->end_ms;
    made_up_ns += takes_s * MADE_UP_S;
    *out = (remote_reply){.status = 404, .host = "h.example"};
    CHECK(order->write(order->ctx, "data", 4));
    if (ends == REMOTE_UNWRITTEN) {
        CHECK(!order->write(order->ctx, "", (size_t)most + 1));
    }
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
    const err_code err = remote_media_fetch(&rm, in, ends % 2 ? &(prepare_hooks){0} : NULL, d);
    CHECK_INT(part.data_bytes, err == ERR_OK ? 4 : 0);
    CHECK(err == ERR_OK || strcmp(d->param, "input[3]") == 0);
    in->messages = NULL;
    in->n_messages = 0;
    chat_input_destroy(in);
    return err;
}

/* Each has its own time, and all of a request one together. */
static void test_time(void)
{
    static const char *const HOSTS[] = {"*"};
    const remote_media rm = {.domains = HOSTS, .n_domains = 1, .dir = "/tmp", .max_video = 1000};
    static const struct {
        int takes_s;
        bool is_video;
        double ends_s[3];
    } ROWS[] = {
        {0, true, {30, 30, 30}}, {25, true, {30, 55, 60}}, {4, false, {5, 9, 13}}, {29, false, {5, 34, 60}}};
    ends = REMOTE_DONE;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        err_detail d = {0};
        chat_input *in = chat_input_create(1 << 20);
        chat_part parts[3];
        for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
            parts[k] =
                (chat_part){.kind = ROWS[i].is_video ? CHAT_VIDEO : CHAT_IMAGE, .url = "https://h.example/a"};
        }
        chat_message m = {.parts = parts, .n_parts = ARRAY_LEN(parts)};
        in->messages = &m;
        in->n_messages = 1;
        takes_s = ROWS[i].takes_s;
        n_orders = 0;
        const double began_ms = clock_ms();
        CHECK_OK(remote_media_fetch(&rm, in, NULL, &d), d);
        CHECK_INT(n_orders, 3);
        for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
            CHECK_NEAR(end_ms[k] - began_ms, 1000 * ROWS[i].ends_s[k], 1);
        }
        in->messages = NULL;
        in->n_messages = 0;
        chat_input_destroy(in);
    }
    takes_s = 0;
}

/* Without a folder for what comes, and where the memory of a request ends at each place. */
static void test_no_room(void)
{
    static const char *const HOSTS[] = {"*"};
    remote_media rm = {.domains = HOSTS, .n_domains = 1, .dir = "/nowhere/at/all", .max_video = 1000};
    const size_t n_open = open_files();
    ends = REMOTE_DONE;
    for (int is_image = 0; is_image < 2; is_image++) {
        chat_part part = {
            .kind = is_image ? CHAT_IMAGE : CHAT_VIDEO, .url = "https://h.example/a", .param = "p"};
        chat_message m = {.parts = &part, .n_parts = 1};
        err_detail d = {0};
        int n_short = 0;
        err_code err = ERR_NOMEM;
        for (size_t room = 1; room < 1 << 16 && err != ERR_OK; room += 8) {
            chat_input *in = chat_input_create(room);
            if (!in) {
                continue;
            }
            in->messages = &m;
            in->n_messages = 1;
            rm.dir = "/nowhere/at/all";
            CHECK_INT(remote_media_fetch(&rm, in, NULL, &d), ERR_IO);
            CHECK_STR(d.name, "upload_storage_failed");
            rm.dir = "/tmp";
            d = (err_detail){0};
            err = remote_media_fetch(&rm, in, NULL, &d);
            CHECK(err == ERR_OK || (err == ERR_NOMEM && strcmp(d.text, "no memory for this request") == 0));
            CHECK_INT(in->n_fds, err == ERR_OK && !is_image);
            n_short += err != ERR_OK;
            in->messages = NULL;
            in->n_messages = 0;
            chat_input_destroy(in);
            CHECK_INT(open_files(), n_open);
        }
        CHECK_INT(err, ERR_OK);
        CHECK(n_short > 0);
    }
}

int main(void)
{
    log_set_level(LOG_OFF);
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
        {REMOTE_UNWRITTEN, ERR_LIMIT, "upload_too_large",
         "more bytes came than were announced or are allowed", NULL},
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
    test_time();
    test_no_room();
    CHECK_DONE();
}
