/* made_serve: the state of a server that a test fills in, without a net, an engine or workers.
 *
 *     serve *s = made_serve();                         // made_options are its options
 *     conn *c = made_conn(s, 1);
 *     made_route(c, NET_GET, "/v1/models");            // it asks for this, of scope 5
 *     answer *a = made_answer(s, &dialect_chat);       // of scope 5
 *     made_end(s);
 */
#ifndef PARLEY_TESTS_SERVER_SERVICE_MADE_SERVE_H
#define PARLEY_TESTS_SERVER_SERVICE_MADE_SERVE_H

#include "server/service/router.h"
#include "server/service/serve_state.h"
#include "tests/check.h"

static serve_options made_options;

static inline serve *made_serve(void)
{
    static serve s;
    memset(&s, 0, sizeof s);
    serve_options_init(&made_options);
    s.opt = &made_options;
    id_table_init(&s.conns);
    id_table_init(&s.answers);
    shares_init(&s.kept, SERVE_KEPT_ANSWERS, SERVE_KEPT_BYTES, NULL);
    s.response_store = response_store_create(1 << 20, 10, 1000, NULL);
    CHECK(s.response_store != NULL);
    return &s;
}

static inline conn *made_conn(serve *s, uint64_t id)
{
    conn *c = calloc(1, sizeof *c);
    CHECK(c && id_table_put(&s->conns, id, c));
    c->id = id;
    return c;
}

static inline void made_route(conn *c, net_method method, const char *path)
{
    const router_match m = router_find(method, path, false);
    CHECK_INT(m.status, 200);
    c->route = m.route;
    c->method = method;
    c->write_error = api_error_write_body;
    c->scope = 5;
    snprintf(c->path, sizeof c->path, "%s", path);
    snprintf(c->param, sizeof c->param, "%s", m.param);
}

static inline answer *made_answer(serve *s, const dialect *d)
{
    const conn client = {.scope = 5};
    api_error e;
    answer *a = serve_new_answer(s, &client, d, &e);
    CHECK(a != NULL);
    return a;
}

static inline void made_end(serve *s)
{
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer_destroy(id_table_at(&s->answers, i));
    }
    for (size_t i = 0; i < s->conns.cap; i++) {
        conn *c = id_table_at(&s->conns, i);
        if (c) {
            bytes_deinit(&c->frames);
        }
        free(c);
    }
    id_table_deinit(&s->answers);
    id_table_deinit(&s->conns);
    shares_deinit(&s->kept);
    response_store_destroy(s->response_store);
}

#endif
