/* serve_inbox: who gets what workers, the loader and the engine say, in which order, and what is done behind all of it. Those
 * who get it are the test. */
#include "tests/check.h"
#include "tests/server/service/made_serve.h"
#include "tests/wrap.h"

static bytes said;
static bool is_idle;

static void note(const char *who, uint64_t id)
{
    bytes_printf(&said, "%s %d|", who, (int)id);
}

WRAP(void, serve_on_loading, (serve * s, loop_message *m), (void)s; note("loading", m->id);)
WRAP(void, serve_on_loaded, (serve * s, loop_message *m), (void)s; note("loaded", m->id);)
WRAP(void, serve_on_preview, (serve * s, loop_message *m), (void)s; note("preview", m->id);)
WRAP(void, serve_on_upstreams, (serve * s), (void)s; note("upstreams", 0);)
WRAP(void, serve_on_history_reply, (serve * s, history_reply *r), (void)s; CHECK(r == NULL);
     note("history", 0);)
WRAP(void, serve_handle_message, (serve * s, loop_message *m), (void)s; note("answer", m->id);)
WRAP(void, serve_on_written, (serve * s), (void)s; note("written", 0);)
WRAP(void, serve_advance_switch, (serve * s), (void)s; note("switch", 0);)
WRAP(bool, prep_is_idle, (const prep *p), (void)p; note("idle?", 0); return is_idle;)
WRAP(void, warm_on_event, (warm * w, gen_event *event), CHECK((char *)w == (char *)&said);
     note("warm", event->request_id & 0xff);)
WRAP(void, net_wake, (net * n), (void)n;)

static serve *begin(void)
{
    serve *s = made_serve();
    s->inbox = mailbox_create(32);
    s->warm = (warm *)&said;
    CHECK(s->inbox != NULL);
    bytes_clear(&said);
    return s;
}

static void end(serve *s)
{
    mailbox_destroy(s->inbox, serve_drop_message);
    made_end(s);
}

static void test_messages(void)
{
    serve *s = begin();
    for (int type = 0; type <= LOOP_UPSTREAMS; type++) {
        loop_message *m = loop_message_create((loop_message_type)type, (uint64_t)type);
        CHECK(m && mailbox_push(s->inbox, m));
    }
    serve_on_wake(s);
    CHECK_STR(bytes_str(&said),
              "idle? 0|answer 0|answer 1|answer 2|answer 3|answer 4|answer 5|answer 6|answer "
              "7|preview 8|preview 9|answer 10|loading 11|loaded 12|history 0|upstreams "
              "0|written 0|");
    is_idle = true;
    bytes_clear(&said);
    serve_on_wake(s);
    CHECK_STR(bytes_str(&said), "idle? 0|written 0|switch 0|");
    is_idle = false;
    end(s);
}

/* Of prompts that are computed at the start the loop hears nothing. */
static void test_events(void)
{
    serve *s = begin();
    gen_event warm_one = {.type = GEN_TOKENS, .request_id = WARM_ID | 3};
    gen_event *event = calloc(1, sizeof *event);
    CHECK(event != NULL);
    event->request_id = 5;
    serve_on_engine_event(s, &warm_one);
    serve_on_engine_event(s, event);
    CHECK_STR(bytes_str(&said), "warm 3|");
    serve_on_wake(s);
    CHECK_STR(bytes_str(&said), "warm 3|idle? 0|answer 5|written 0|");
    end(s);
}

int main(void)
{
    said = bytes_empty(1 << 16);
    test_messages();
    test_events();
    bytes_deinit(&said);
    CHECK_DONE();
}
