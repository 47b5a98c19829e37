/* affinity: which replica has seen the beginning of a conversation, so that its prefix cache is met
 * again. A table of fixed size; the oldest entry of a place goes first. One thread.
 *
 *     affinity_chain chain = {0};
 *     affinity_begin(&chain, server, in);                   // prep threads: of the whole prompt
 *     affinity *t = affinity_create();
 *     int replica = affinity_find(t, &chain);               // -1: nobody has seen it
 *     affinity_put(t, &chain, replica);
 *     affinity_chain_deinit(&chain); affinity_destroy(t);
 *
 * A chain has a hash behind each message, of everything up to there: the tools, the messages, and the
 * bytes of images. What holds system messages alone is no beginning of a conversation: else all of
 * them would go to one replica.
 */
#ifndef PARLEY_SERVER_UPSTREAM_AFFINITY_H
#define PARLEY_SERVER_UPSTREAM_AFFINITY_H

#include <stddef.h>
#include <stdint.h>

#include "engine/chat.h"

typedef struct affinity_chain {
    uint64_t *hashes; /* [n], shortest beginning first; owned */
    size_t n;
} affinity_chain;

/* Of a chat for a server; without memory it stays empty, and any replica will do. */
void affinity_begin(affinity_chain *chain, size_t server, const chat_input *in);
/* Of a raw prompt, a hash each KiB. */
void affinity_begin_text(affinity_chain *chain, size_t server, const void *data, size_t n);
void affinity_chain_deinit(affinity_chain *chain);

typedef struct affinity affinity;

/* NULL if out of memory. */
MUST_CHECK affinity *affinity_create(void);
void affinity_destroy(affinity *t); /* NULL allowed */
/* The replica that has seen the longest beginning of it; -1: none. */
int affinity_find(const affinity *t, const affinity_chain *chain);
/* This replica has all of it now. */
void affinity_put(affinity *t, const affinity_chain *chain, int replica);

/* How many answers a replica may have before it gives way, of `running` among n_up replicas with the new
 * one: 1.25 times its share, and at least three more than that. */
int affinity_bound(int running, int n_up);

#endif
