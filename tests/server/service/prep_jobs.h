/* prep_jobs: jobs for prep's workers, and what they say of them. A job can wait for the test within its parser.
 *
 *     jobs_begin();                                    // an engine, the double
 *     prep *p = begin(1, 8, 1 << 20);
 *     CHECK_INT(submit(p, (prep_order){.dialect = &CHAT, .id = 1}, HI), ERR_OK);
 *     CHECK_STR(heard(1), "prepared 1 with its request|");
 *     prep_destroy(p);
 *     jobs_end();
 */
#ifndef PARLEY_TESTS_SERVER_SERVICE_PREP_JOBS_H
#define PARLEY_TESTS_SERVER_SERVICE_PREP_JOBS_H

#include <pthread.h>

#include "server/service/prep.h"
#include "tests/check.h"

/* ---- what is said ---- */

enum { MOST = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static loop_message *messages[MOST];
static int n_messages, n_inside;
static bool is_open;

static void post(void *ctx, loop_message *m)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    messages[n_messages++] = m;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* The first n messages as "TYPE id more|"; they are freed. */
static inline const char *heard(int n)
{
    static const char *const NAMES[] = {
        [LOOP_ACCEPTED] = "accepted", [LOOP_PROGRESS] = "progress", [LOOP_PREPARED] = "prepared",
        [LOOP_OTHER_MODEL] = "other", [LOOP_REPLIED] = "replied",   [LOOP_FACTS] = "facts",
        [LOOP_PREVIEW] = "preview",   [LOOP_REFUSED] = "refused",   [LOOP_TOOLS] = "tools",
    };
    static char out[8192];
    size_t len = 0;
    pthread_mutex_lock(&lock);
    while (n_messages < n) {
        pthread_cond_wait(&changed, &lock);
    }
    out[0] = '\0';
    for (int i = 0; i < n_messages; i++) {
        loop_message *m = messages[i];
        len += (size_t)snprintf(out + len, sizeof out - len, "%s %d", NAMES[m->type], (int)m->id);
        if (m->type == LOOP_REFUSED) {
            len += (size_t)snprintf(out + len, sizeof out - len, " %d %s%s", m->error.status, m->error.code,
                                    m->options.event_id);
        } else if (m->type == LOOP_PROGRESS) {
            len +=
                (size_t)snprintf(out + len, sizeof out - len, " %d %d/%d", m->phase, m->processed, m->total);
        } else if (m->type == LOOP_PREPARED) {
            len += (size_t)snprintf(out + len, sizeof out - len, "%s", m->request ? " with its request" : "");
        } else {
            len += (size_t)snprintf(out + len, sizeof out - len, " %s%s", m->options.event_id,
                                    bytes_str(&m->reply));
        }
        len += (size_t)snprintf(out + len, sizeof out - len, "%s|", m->options.body_hash[0] ? " hashed" : "");
        loop_message_free(m);
    }
    n_messages = 0;
    pthread_mutex_unlock(&lock);
    return out;
}

/* ---- jobs ---- */

static void (*on_parse)(api_request *r);
static void (*on_prepare)(const api_request *r, const prepare_hooks *hooks);
static prep_ticket *ticket;
static engine *e;

static err_code parse(api_request *r, completion_prompt *prompt, const char *text, size_t len,
                      const engine_info *info, err_detail *d)
{
    const err_code err = dialect_chat.parse(r, prompt, text, len, info, d);
    if (err == ERR_OK && on_parse) {
        on_parse(r);
    }
    return err;
}

static err_code prepare(gen_request **out, const api_request *r, const completion_prompt *prompt, engine *of,
                        const prepare_hooks *hooks, err_detail *d)
{
    if (on_prepare) {
        on_prepare(r, hooks);
    }
    return dialect_chat.prepare(out, r, prompt, of, hooks, d);
}

static const dialect CHAT = {.name = "chat", .id_prefix = "chat-", .parse = parse, .prepare = prepare};

static inline void wait_for_test(api_request *r)
{
    (void)r;
    pthread_mutex_lock(&lock);
    n_inside++;
    pthread_cond_broadcast(&changed);
    while (!is_open) {
        pthread_cond_wait(&changed, &lock);
    }
    n_inside--;
    pthread_mutex_unlock(&lock);
}

static inline void wait_until_inside(int n)
{
    pthread_mutex_lock(&lock);
    while (n_inside < n) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static inline void let_go(bool go)
{
    pthread_mutex_lock(&lock);
    is_open = go;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static inline void wait_until_idle(const prep *p)
{
    while (!prep_is_idle(p)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

static const char HI[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}";

static bytes body_of(const char *text)
{
    bytes body = bytes_empty(SIZE_MAX / 2);
    bytes_append_str(&body, text);
    return body;
}

/* The ticket is cancelled or not; the body is taken, or freed. */
static inline err_code submit(prep *p, prep_order order, const char *text)
{
    bytes body = body_of(text);
    json_doc *doc = NULL;
    ledger_hold hold = {0};
    order.engine = e;
    const err_code err = prep_submit(p, &order, &body, &doc, &hold, ticket);
    CHECK_INT(body.len, err == ERR_OK ? 0 : strlen(text));
    bytes_deinit(&body);
    return err;
}

static void new_ticket(void)
{
    prep_ticket_release(ticket);
    ticket = prep_ticket_create();
    CHECK(ticket != NULL);
}

static prep *begin(int n_threads, size_t n_queue, size_t max_bytes)
{
    prep *p = prep_create(1, n_threads, n_queue, max_bytes, NULL, NULL, NULL, post, NULL);
    CHECK(p != NULL);
    new_ticket();
    on_parse = NULL;
    on_prepare = NULL;
    is_open = false;
    return p;
}

static void on_event(void *ctx, gen_event *event)
{
    (void)ctx;
    gen_event_free(event);
}

static inline void jobs_begin(void)
{
    CHECK_INT(engine_open(&e, &(engine_options){.model_dir = "fake", .on_event = on_event}, NULL), ERR_OK);
}

static inline void jobs_end(void)
{
    prep_ticket_release(ticket);
    engine_close(e);
}

#endif
