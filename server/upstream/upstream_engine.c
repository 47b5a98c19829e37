#include "server/upstream/upstream_engine.h"

#include <string.h>

#include "base/compiler.h"

const char *upstream_engine_name(upstream_engine e)
{
    static const char *const NAMES[] = {"other", "vllm", "sglang", "llama.cpp", "parley"};
    return NAMES[e];
}

upstream_engine upstream_engine_of(const char *owner)
{
    static const struct {
        const char *owner;
        upstream_engine engine;
    } ROWS[] = {{"vllm", UPSTREAM_VLLM},
                {"sglang", UPSTREAM_SGLANG},
                {"llamacpp", UPSTREAM_LLAMA_CPP},
                {"parley", UPSTREAM_PARLEY}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        if (strcmp(ROWS[i].owner, owner) == 0) {
            return ROWS[i].engine;
        }
    }
    return UPSTREAM_OTHER;
}
