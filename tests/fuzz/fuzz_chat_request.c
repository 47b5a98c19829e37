/* chat_request: any body of POST /v1/chat/completions. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "server/protocol/dialects/chat_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    api_request r;
    err_detail detail = {0};
    api_request_init(&r);
    err_code err = chat_request_parse(&r, (const char *)data, size, NULL, &detail);
    if (err != ERR_OK) {
        must(detail.text[0] != '\0' && utf8_valid(detail.text, strlen(detail.text)));
        must(utf8_valid(detail.param, strlen(detail.param)));
    } else {
        must(r.in != NULL);
    }
    api_request_deinit(&r);
    return 0;
}
