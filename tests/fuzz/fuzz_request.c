/* request: any body of each dialect; what is accepted can be said to another server, and kept. The first byte
 * chooses the dialect, and how the other server is asked. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "server/protocol/dialects/chat_request.h"
#include "server/protocol/dialects/messages_request.h"
#include "server/protocol/dialects/ollama_request.h"
#include "server/protocol/dialects/response_items.h"
#include "server/protocol/dialects/responses_request.h"
#include "server/protocol/dialects/vectors.h"
#include "server/upstream/upstream_request.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static err_code parse(api_request *r, completion_prompt *prompt, unsigned dialect, const char *text,
                      size_t len, err_detail *d)
{
    switch (dialect) {
    case 1:
        return messages_request_parse(r, text, len, true, NULL, d);
    case 2:
        return responses_request_parse(r, text, len, false, NULL, d);
    case 3:
        return responses_compact_parse(r, text, len, NULL, d);
    case 4:
        return completion_request_parse(r, prompt, text, len, NULL, d);
    case 5:
        return ollama_request_parse(r, text, len, false, NULL, d);
    case 6:
        return ollama_request_parse(r, text, len, true, NULL, d);
    case 7:
        return rerank_request_parse(r, prompt, text, len, NULL, d);
    default:
        return chat_request_parse(r, text, len, NULL, d);
    }
}

static bool has_media(const chat_input *in)
{
    bool found = false;
    for (size_t i = 0; i < in->n_messages; i++) {
        for (size_t k = 0; k < in->messages[i].n_parts; k++) {
            found = found || in->messages[i].parts[k].kind != CHAT_TEXT;
        }
    }
    return found;
}

/* What other servers are told is JSON; images would have to be decoded for that. */
static void say(const api_request *r, const completion_prompt *prompt, unsigned number)
{
    err_detail d = {0};
    upstream_media media = {.engine = (upstream_engine)number};
    const upstream_prompt raw = {.text = prompt->text, .ids = prompt->ids, .n_ids = prompt->n_ids};
    const upstream_facts facts = {
        .server = "up", .model = "m", .engine = (upstream_engine)number, .media = &media};
    if (!has_media(r->in)) {
        bytes out = bytes_empty(SIZE_MAX / 2);
        upstream_media_begin(&media, r->in, UPSTREAM_VIDEO_AUTO, UPSTREAM_UNKNOWN);
        if (upstream_request_write(&out, r, &raw, &facts, &d) == ERR_OK) {
            must_be_json(&out);
        } else {
            must(d.text[0] != '\0');
        }
        bytes_deinit(&out);
    }
}

static void keep(const api_request *r)
{
    bytes out = bytes_empty(SIZE_MAX / 2);
    bytes_append_char(&out, '[');
    response_items_keep(&out, json_get(json_root(r->in->keep), "input"));
    bytes_append_char(&out, ']');
    must_be_json(&out);
    bytes_deinit(&out);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_behind(1, mutate_json, data, size, max, seed, "request");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { DIALECTS = 8, ENGINES = 5 };
    if (size < 1) {
        return 0;
    }
    api_request r;
    completion_prompt prompt = {0};
    err_detail d = {0};
    const unsigned dialect = data[0] % DIALECTS;
    api_request_init(&r);
    if (parse(&r, &prompt, dialect, (const char *)data + 1, size - 1, &d) != ERR_OK) {
        must(d.text[0] != '\0' && utf8_valid(d.text, strlen(d.text)) && utf8_valid(d.param, strlen(d.param)));
    } else {
        must(r.in != NULL);
        if (dialect == 2) {
            keep(&r);
        }
        if (dialect < 7) {
            say(&r, &prompt, data[0] / DIALECTS % ENGINES);
        }
    }
    api_request_deinit(&r);
    return 0;
}
