#include "server/upstream/affinity.h"

#include <stdlib.h>
#include <string.h>

/* 16384 places of 4 entries: a MiB. */
enum { SETS = 16384, WAYS = 4, BLOCK = 1024, BLOCKS_MAX = 8192 };

typedef struct entry {
    uint64_t hash; /* 0: empty */
    uint32_t used; /* the clock when it was put */
    int32_t replica;
} entry;

struct affinity {
    uint32_t clock;
    entry entries[SETS][WAYS];
};

/* ---- chains ---- */

/* Mixes eight bytes at a time: hundreds of KiB a request, whose hash nobody else chooses for a purpose. */
static uint64_t mix(uint64_t h, const void *data, size_t n)
{
    const uint8_t *p = data;
    h ^= n * 0x9e3779b97f4a7c15ULL;
    while (n > 0) {
        uint64_t word = 0;
        const size_t step = n < 8 ? n : 8;
        memcpy(&word, p, step);
        h = (h ^ word) * 0xff51afd7ed558ccdULL;
        h ^= h >> 32;
        p += step;
        n -= step;
    }
    return h ? h : 1;
}

static uint64_t mix_text(uint64_t h, const char *text)
{
    return mix(h, text, strlen(text));
}

static uint64_t mix_part(uint64_t h, const chat_part *p)
{
    if (p->kind == CHAT_TEXT) {
        return mix(h, p->text, p->text_len);
    }
    h = p->hash ? mix(h, p->hash, 32) : h;
    return p->data && !p->hash ? mix(h, p->data, p->data_bytes) : h;
}

/* What an assistant has written comes back as the client kept it, perhaps without its thoughts: the
 * thoughts say nothing of where it was. */
static uint64_t mix_message(uint64_t h, const chat_message *m)
{
    const uint8_t role = (uint8_t)m->role;
    h = mix(h, &role, 1);
    for (size_t i = 0; i < m->n_parts; i++) {
        h = mix_part(h, &m->parts[i]);
    }
    for (size_t i = 0; i < m->n_tool_calls; i++) {
        h = mix_text(h, m->tool_calls[i].name);
    }
    return h;
}

static uint64_t mix_tools(uint64_t h, const json *tools)
{
    for (const json *t = json_child(tools); t; t = json_next(t)) {
        h = mix_text(h, json_str(json_get(json_get(t, "function"), "name"), ""));
    }
    return h;
}

void affinity_begin(affinity_chain *chain, size_t server, const chat_input *in)
{
    uint64_t h = mix_tools(mix(1, &server, sizeof server), in->tools);
    bool has_begun = false;
    *chain = (affinity_chain){.hashes = calloc(in->n_messages + 1, sizeof *chain->hashes)};
    h = mix(h, &in->scope, sizeof in->scope);
    for (size_t i = 0; chain->hashes && i < in->n_messages; i++) {
        h = mix_message(h, &in->messages[i]);
        has_begun = has_begun || in->messages[i].role != CHAT_SYSTEM;
        if (has_begun) {
            chain->hashes[chain->n++] = h;
        }
    }
}

void affinity_begin_text(affinity_chain *chain, size_t server, const void *data, size_t n)
{
    uint64_t h = mix(2, &server, sizeof server);
    const size_t n_blocks = n / BLOCK < BLOCKS_MAX ? n / BLOCK : BLOCKS_MAX;
    *chain = (affinity_chain){.hashes = calloc(n_blocks + 1, sizeof *chain->hashes)};
    for (size_t i = 0; chain->hashes && i < n_blocks; i++) {
        h = mix(h, (const char *)data + i * BLOCK, BLOCK);
        chain->hashes[chain->n++] = h;
    }
}

void affinity_chain_deinit(affinity_chain *chain)
{
    free(chain->hashes);
    *chain = (affinity_chain){0};
}

/* ---- the table ---- */

affinity *affinity_create(void)
{
    return calloc(1, sizeof(affinity));
}

void affinity_destroy(affinity *t)
{
    free(t);
}

static const entry *look_up(const affinity *t, uint64_t hash)
{
    const entry *set = t->entries[hash >> 20 & (SETS - 1)];
    for (int i = 0; i < WAYS; i++) {
        if (set[i].hash == hash) {
            return &set[i];
        }
    }
    return NULL;
}

int affinity_find(const affinity *t, const affinity_chain *chain)
{
    for (size_t i = chain->n; i > 0; i--) {
        const entry *e = look_up(t, chain->hashes[i - 1]);
        if (e) {
            return e->replica;
        }
    }
    return -1;
}

static void put(affinity *t, uint64_t hash, int replica)
{
    entry *set = t->entries[hash >> 20 & (SETS - 1)], *oldest = set;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].hash == hash || set[i].hash == 0) {
            oldest = &set[i];
            break;
        }
        oldest = t->clock - set[i].used > t->clock - oldest->used ? &set[i] : oldest;
    }
    *oldest = (entry){.hash = hash, .used = t->clock, .replica = replica};
}

/* Of a text every beginning may be gone on from elsewhere; of a chat its end is, and earlier ends were put in
 * their time: the last few do for both. */
void affinity_put(affinity *t, const affinity_chain *chain, int replica)
{
    enum { LAST = 4 };
    t->clock++;
    for (size_t i = chain->n > LAST ? chain->n - LAST : 0; i < chain->n; i++) {
        put(t, chain->hashes[i], replica);
    }
}

int affinity_bound(int running, int n_up)
{
    enum { SLACK = 3 }; /* of few answers, a quarter is less than they fluctuate by */
    const int all = running + 1;
    if (n_up <= 0) {
        return all;
    }
    const int quarter_more = (5 * all + 4 * n_up - 1) / (4 * n_up),
              some_more = (all + n_up - 1) / n_up + SLACK;
    return quarter_more > some_more ? quarter_more : some_more;
}
