/* upstream_engine: what another server is, told from what it says of its models. Plain data.
 *
 *     upstream_engine e = upstream_engine_of("llamacpp");
 *     const char *name = upstream_engine_name(e);        // "llama.cpp"
 */
#ifndef PARLEY_SERVER_UPSTREAM_UPSTREAM_ENGINE_H
#define PARLEY_SERVER_UPSTREAM_UPSTREAM_ENGINE_H

/* OTHER: OpenAI's API, whatever is behind it. */
typedef enum upstream_engine {
    UPSTREAM_OTHER,
    UPSTREAM_VLLM,
    UPSTREAM_SGLANG,
    UPSTREAM_LLAMA_CPP,
    UPSTREAM_PARLEY
} upstream_engine;

/* What is not said is not known: an image may be tried then. */
typedef enum upstream_answer { UPSTREAM_UNKNOWN, UPSTREAM_YES, UPSTREAM_NO } upstream_answer;

/* "other", "vllm", "sglang", "llama.cpp", "parley" */
const char *upstream_engine_name(upstream_engine e);
/* By the owned_by of its models. */
upstream_engine upstream_engine_of(const char *owner);

#endif
