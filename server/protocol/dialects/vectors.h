/* vectors: what is asked of a model that is no text: embeddings (POST /v1/embeddings, Ollama's /api/embed
 * and /api/embeddings) and the order of documents (POST /v1/rerank). Bodies on prep threads, replies
 * on the loop thread.
 *
 *     completion_prompt inputs;
 *     err = embedding_request_parse(&r, &inputs, text, len, info, &detail);
 *     err = embedding_request_prepare(&request, &r, &inputs, e, NULL, &detail);
 *     embedding_reply_write(&out, &meta);
 */
#ifndef PARLEY_SERVER_PROTOCOL_DIALECTS_VECTORS_H
#define PARLEY_SERVER_PROTOCOL_DIALECTS_VECTORS_H

#include "server/protocol/dialects/completion_request.h"
#include "server/protocol/reply_json.h"

/* Fills r and the inputs from the body: input, encoding_format, dimensions; or query, documents, top_n,
 * instruction, return_documents. ERR_INVALID, ERR_LIMIT and ERR_UNSUPPORTED (the model cannot do it)
 * name the field. */
MUST_CHECK err_code embedding_request_parse(api_request *r, completion_prompt *inputs, const char *text,
                                            size_t len, const engine_info *info, err_detail *d);
MUST_CHECK err_code rerank_request_parse(api_request *r, completion_prompt *inputs, const char *text,
                                         size_t len, const engine_info *info, err_detail *d);

/* The request of the engine, which the caller then owns; see engine_prepare_inputs. As dialect.prepare: texts
 * alone need no hooks. */
MUST_CHECK err_code embedding_request_prepare(gen_request **out, const api_request *r,
                                              const completion_prompt *inputs, engine *e,
                                              const prepare_hooks *hooks, err_detail *d);
MUST_CHECK err_code rerank_request_prepare(gen_request **out, const api_request *r,
                                           const completion_prompt *inputs, engine *e,
                                           const prepare_hooks *hooks, err_detail *d);

typedef struct vectors_meta {
    const char *id, *model;
    const char *pooling; /* "last" or "mean" */
    bool is_embedder;    /* the checkpoint is made for embeddings */
    const reply_options *opt;
    reply_usage usage;
    const float *values; /* [n, size] vectors, or [n] scores */
    size_t n, size;
} vectors_meta;

/* The whole reply of the vectors: shortened to opt->n_dims, of length 1. */
void embedding_reply_write(bytes *out, const vectors_meta *m);
/* The same in Ollama's forms. */
void ollama_embedding_write(bytes *out, const vectors_meta *m);
/* The documents by how well they fit, the best first; opt->fields has their texts as a JSON list, or is
 * NULL. */
void rerank_reply_write(bytes *out, const vectors_meta *m);

#endif
