#include "text/grammar/grammar_cursor.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "text/grammar/grammar_private.h"

/* A reading of the text: its innermost open node, and the stack it stands on. Equal stacks have one
 * number, so that readings share what they have in common. */
typedef struct stack {
    int32_t below; /* NO_STACK: nothing */
    int32_t node;
    int32_t pos;   /* TEXT: bytes read; DFA, STRING: state; SEQUENCE: the part that comes next */
    int32_t count; /* STRING: characters read; REPEAT: items begun. Counted no further than matters. */
    int32_t depth; /* stacks below and this */
} stack;

enum { NO_STACK = -1, UNKNOWN = -2, ENDED = 0, NO_MASK = -1, RETURN = -1 };

/* A set of readings. */
typedef struct state {
    int32_t first, n; /* in `members`, ascending */
    bool complete;    /* one of the readings has come to an end */
    int32_t mask;     /* slot of its mask, or NO_MASK */
} state;

/* A growing array; `items` of `width` bytes. */
typedef struct list {
    void *items;
    int32_t n, cap;
} list;

/* Open addressing; numbers of things whose hash was asked for. */
typedef struct index_table {
    int32_t *slots; /* -1: free */
    uint32_t size, n;
} index_table;

typedef struct task {
    int32_t below, node; /* RETURN: the top of `below` is done */
} task;

/* Where a choice was opened last. */
typedef struct opened_choice {
    uint32_t closure;
    int32_t below;
} opened_choice;

struct grammar_cursor {
    const grammar *g;
    const token_trie *trie;
    int32_t current;
    err_code failure;
    list stacks, states, members; /* stack, state, int32_t */
    list next;                    /* int32_t [states, g->n_classes]: UNKNOWN, GRAMMAR_REFUSED or a state */
    index_table stack_table, state_table;
    list tasks, choices;   /* of the closure being made: to do; choices that were done (task both) */
    opened_choice *opened; /* [g->n_nodes] the last of `choices` of each node */
    uint32_t closure;      /* the number of the closure being made */
    uint64_t steps;        /* since the last token */
    list set;              /* int32_t: the set being made */
    bool set_complete;
    list walked;     /* int32_t: readings whose tokens are looked for in the trie */
    uint64_t *masks; /* [n_masks, trie->n_words] */
    int32_t *mask_owner;
    int32_t n_masks, next_mask;
    int32_t walk[TRIE_TOKEN_BYTES + 1]; /* states on the way down a trie */
};

/* ---- memory ---- */

static void *push(grammar_cursor *c, list *l, size_t width, int32_t n)
{
    if (l->n + n > l->cap || !l->items) {
        int32_t cap = l->cap ? l->cap * 2 : 64;
        while (cap < l->n + n) {
            cap *= 2;
        }
        void *items = (size_t)cap * width <= LIMIT_GRAMMAR_STATE_BYTES * 2
                          ? realloc(l->items, (size_t)cap * width)
                          : NULL;
        if (!items) {
            c->failure = (size_t)cap * width <= LIMIT_GRAMMAR_STATE_BYTES * 2 ? ERR_NOMEM : ERR_LIMIT;
            return NULL;
        }
        l->items = items;
        l->cap = cap;
    }
    void *at = (char *)l->items + (size_t)l->n * width;
    l->n += n;
    return at;
}

static void push_number(grammar_cursor *c, list *l, int32_t number)
{
    int32_t *at = push(c, l, sizeof *at, 1);
    if (at) {
        *at = number;
    }
}

static stack *stack_at(const grammar_cursor *c, int32_t i)
{
    return (stack *)c->stacks.items + i;
}

static state *state_at(const grammar_cursor *c, int32_t i)
{
    return (state *)c->states.items + i;
}

static const int32_t *members_of(const grammar_cursor *c, const state *s)
{
    return (const int32_t *)c->members.items + s->first;
}

static uint32_t mix(uint32_t hash, int32_t value)
{
    hash = (hash ^ (uint32_t)value) * 0x9e3779b1u;
    return hash ^ hash >> 15;
}

static uint32_t hash_stack(const stack *s)
{
    return mix(mix(mix(mix(7, s->below), s->node), s->pos), s->count);
}

static uint32_t hash_set(const int32_t *set, int32_t n, bool complete)
{
    uint32_t hash = complete;
    for (int32_t i = 0; i < n; i++) {
        hash = mix(hash, set[i]);
    }
    return hash;
}

static void table_put(index_table *t, uint32_t hash, int32_t number)
{
    uint32_t at = hash & (t->size - 1);
    while (t->slots[at] >= 0) {
        at = (at + 1) & (t->size - 1);
    }
    t->slots[at] = number;
    t->n++;
}

/* Makes room for one more; numbers of stacks if of_stacks, else of states. */
static bool table_grow(grammar_cursor *c, index_table *t, bool of_stacks)
{
    if (t->n * 2 < t->size) {
        return true;
    }
    index_table grown = {.size = t->size ? t->size * 2 : 256};
    grown.slots = malloc(grown.size * sizeof *grown.slots);
    if (!grown.slots) {
        c->failure = ERR_NOMEM;
        return false;
    }
    memset(grown.slots, 0xff, grown.size * sizeof *grown.slots);
    for (uint32_t i = 0; i < t->size; i++) {
        const int32_t number = t->slots[i];
        if (number >= 0) {
            const state *s = of_stacks ? NULL : state_at(c, number);
            table_put(&grown,
                      s ? hash_set(members_of(c, s), s->n, s->complete) : hash_stack(stack_at(c, number)),
                      number);
        }
    }
    free(t->slots);
    *t = grown;
    return true;
}

static int32_t number_stack(grammar_cursor *c, int32_t below, int32_t node, int32_t pos, int32_t count)
{
    const stack wanted = {below, node, pos, count, below == NO_STACK ? 1 : stack_at(c, below)->depth + 1};
    const uint32_t hash = hash_stack(&wanted);
    if (c->failure != ERR_OK || !table_grow(c, &c->stack_table, true)) {
        return NO_STACK;
    }
    for (uint32_t at = hash & (c->stack_table.size - 1); c->stack_table.slots[at] >= 0;
         at = (at + 1) & (c->stack_table.size - 1)) {
        const stack *s = stack_at(c, c->stack_table.slots[at]);
        if (s->below == below && s->node == node && s->pos == pos && s->count == count) {
            return c->stack_table.slots[at];
        }
    }
    stack *made = push(c, &c->stacks, sizeof *made, 1);
    if (!made) {
        return NO_STACK;
    }
    *made = wanted;
    table_put(&c->stack_table, hash, c->stacks.n - 1);
    return c->stacks.n - 1;
}

static int32_t number_state(grammar_cursor *c, const int32_t *set, int32_t n, bool complete)
{
    const uint32_t hash = hash_set(set, n, complete);
    if (c->failure != ERR_OK || !table_grow(c, &c->state_table, false)) {
        return GRAMMAR_REFUSED;
    }
    for (uint32_t at = hash & (c->state_table.size - 1); c->state_table.slots[at] >= 0;
         at = (at + 1) & (c->state_table.size - 1)) {
        const state *s = state_at(c, c->state_table.slots[at]);
        if (s->n == n && s->complete == complete &&
            (n == 0 || memcmp(members_of(c, s), set, (size_t)n * sizeof *set) == 0)) {
            return c->state_table.slots[at];
        }
    }
    const int32_t first = c->members.n;
    int32_t *members = push(c, &c->members, sizeof *members, n);
    int32_t *row = members ? push(c, &c->next, sizeof *row, c->g->n_classes) : NULL;
    state *made = row ? push(c, &c->states, sizeof *made, 1) : NULL;
    if (!made) {
        return GRAMMAR_REFUSED;
    }
    if (n) {
        memcpy(members, set, (size_t)n * sizeof *set);
    }
    for (int32_t i = 0; i < c->g->n_classes; i++) {
        row[i] = UNKNOWN;
    }
    *made = (state){.first = first, .n = n, .complete = complete, .mask = NO_MASK};
    table_put(&c->state_table, hash, c->states.n - 1);
    return c->states.n - 1;
}

/* Counts what a token takes; beyond the limit the cursor gives up. */
static void count_steps(grammar_cursor *c, size_t n)
{
    c->steps += n;
    if (c->steps > LIMIT_GRAMMAR_TOKEN_STEPS && c->failure == ERR_OK) {
        c->failure = ERR_LIMIT;
    }
}

/* ---- closures ---- */

static void add_task(grammar_cursor *c, int32_t below, int32_t node)
{
    task *t = push(c, &c->tasks, sizeof *t, 1);
    if (t) {
        *t = (task){below, node};
    }
}

static void add_reading(grammar_cursor *c, int32_t below, int32_t node, int32_t pos, int32_t count)
{
    const int32_t number = number_stack(c, below, node, pos, count);
    if (number != NO_STACK) {
        push_number(c, &c->set, number);
    }
}

/* A choice that was opened on the same stack before adds nothing; a recursion without a byte
 * between ends here. */
static bool is_new_choice(grammar_cursor *c, task t)
{
    const task *done = c->choices.items;
    opened_choice *last = &c->opened[t.node];
    const bool is_first = last->closure != c->closure;
    if (!is_first && last->below == t.below) {
        return false;
    }
    *last = (opened_choice){c->closure, t.below};
    count_steps(c, is_first ? 1 : (size_t)c->choices.n / 8 + 1);
    for (int32_t i = 0; i < c->choices.n && !is_first; i++) {
        if (done[i].below == t.below && done[i].node == t.node) {
            return false;
        }
    }
    task *at = push(c, &c->choices, sizeof *at, 1);
    if (at) {
        *at = t;
    }
    return at != NULL;
}

static int32_t depth_of(const grammar_cursor *c, int32_t s)
{
    return s == NO_STACK ? 0 : stack_at(c, s)->depth;
}

static bool fits(const grammar_cursor *c, int32_t below, int32_t node, int32_t more)
{
    return depth_of(c, below) + c->g->nodes[node].height + more <= LIMIT_GRAMMAR_DEPTH;
}

/* The i-th part of a sequence. The last part takes the sequence's place, so that long lists do not
 * grow the stack. */
static void open_part(grammar_cursor *c, int32_t below, int32_t sequence, int32_t i)
{
    const grammar_node *x = &c->g->nodes[sequence];
    add_task(c, i + 1 < x->n ? number_stack(c, below, sequence, i + 1, 0) : below, x->items[i]);
}

/* One more item of a repetition of which `count` were begun. */
static void open_item(grammar_cursor *c, int32_t below, int32_t repeat, int32_t count)
{
    const grammar_node *x = &c->g->nodes[repeat];
    const int32_t item = x->items[count > 0];
    if (count < x->min || fits(c, below, item, 1)) {
        const int32_t known = x->max == GRAMMAR_MANY ? (x->min > 1 ? x->min : 1) : x->max;
        add_task(c, number_stack(c, below, repeat, 0, count + 1 < known ? count + 1 : known), item);
    }
}

static void open_node(grammar_cursor *c, task t)
{
    const grammar_node *x = &c->g->nodes[t.node];
    switch (x->kind) {
    case NODE_DFA:
        add_reading(c, t.below, t.node, 0, 0);
        if (x->automaton->accept[0]) {
            add_task(c, t.below, RETURN);
        }
        break;
    case NODE_TEXT:
    case NODE_STRING:
        add_reading(c, t.below, t.node, 0, 0);
        break;
    case NODE_SEQUENCE:
        if (x->n == 0) {
            add_task(c, t.below, RETURN);
        } else {
            open_part(c, t.below, t.node, 0);
        }
        break;
    case NODE_CHOICE:
        if (is_new_choice(c, t)) {
            for (int32_t i = 0; i < x->n; i++) {
                if (fits(c, t.below, x->items[i], 0)) {
                    add_task(c, t.below, x->items[i]);
                }
            }
        }
        break;
    case NODE_REPEAT:
        if (x->min == 0) {
            add_task(c, t.below, RETURN);
        }
        open_item(c, t.below, t.node, 0);
        break;
    }
}

static void return_to(grammar_cursor *c, int32_t s)
{
    if (s == NO_STACK) {
        c->set_complete = true;
        return;
    }
    const stack top = *stack_at(c, s);
    const grammar_node *x = &c->g->nodes[top.node];
    if (x->kind == NODE_SEQUENCE) {
        open_part(c, top.below, top.node, top.pos);
        return;
    }
    if (top.count >= x->min) {
        add_task(c, top.below, RETURN);
    }
    if (top.count < x->max) {
        open_item(c, top.below, top.node, top.count);
    }
}

static void begin_set(grammar_cursor *c)
{
    c->tasks.n = c->choices.n = c->set.n = 0;
    c->closure++;
    c->set_complete = false;
}

static int compare_ints(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Follows what needs no byte, then numbers the set. */
static int32_t finish_set(grammar_cursor *c)
{
    while (c->tasks.n > 0 && c->failure == ERR_OK) {
        const task t = ((task *)c->tasks.items)[--c->tasks.n];
        count_steps(c, 1);
        if (t.node == RETURN) {
            return_to(c, t.below);
        } else {
            open_node(c, t);
        }
        if (c->set.n > LIMIT_GRAMMAR_STACKS) {
            c->failure = ERR_LIMIT;
        }
    }
    if (c->failure != ERR_OK || (c->set.n == 0 && !c->set_complete)) {
        return GRAMMAR_REFUSED;
    }
    int32_t *set = c->set.items, n = 0;
    if (c->set.n) {
        qsort(set, (size_t)c->set.n, sizeof *set, compare_ints);
    }
    for (int32_t i = 0; i < c->set.n; i++) {
        if (n == 0 || set[i] != set[n - 1]) {
            set[n++] = set[i];
        }
    }
    return number_state(c, set, n, c->set_complete);
}

/* ---- bytes ---- */

static void read_string(grammar_cursor *c, const stack *s, uint8_t byte)
{
    const grammar_node *x = &c->g->nodes[s->node];
    const int32_t to = grammar_string_step(s->pos, byte);
    if (to == STRING_CLOSED) {
        if (s->count >= x->min) {
            add_task(c, s->below, RETURN);
        }
        return;
    }
    /* a character that begins must have room */
    if (to == STRING_REFUSED || (s->pos == STRING_INSIDE && s->count >= x->max)) {
        return;
    }
    const int32_t known = x->max == GRAMMAR_MANY ? x->min : x->max;
    const int32_t count = s->count + (to == STRING_INSIDE && s->pos != STRING_BEFORE);
    add_reading(c, s->below, s->node, to, count < known ? count : known);
}

/* One reading and one more byte. */
static void read_byte(grammar_cursor *c, int32_t number, uint8_t byte)
{
    const stack s = *stack_at(c, number);
    const grammar_node *x = &c->g->nodes[s.node];
    if (x->kind == NODE_STRING) {
        read_string(c, &s, byte);
    } else if (x->kind == NODE_DFA) {
        const int32_t to = dfa_step(x->automaton, s.pos, byte);
        if (to != DFA_DEAD) {
            add_reading(c, s.below, s.node, to, 0);
            if (x->automaton->accept[to]) {
                add_task(c, s.below, RETURN);
            }
        }
    } else if ((uint8_t)x->text[s.pos] == byte) {
        if (s.pos + 1 == x->n) {
            add_task(c, s.below, RETURN);
        } else {
            add_reading(c, s.below, s.node, s.pos + 1, 0);
        }
    }
}

static int32_t step(grammar_cursor *c, int32_t from, uint8_t byte)
{
    const size_t at = (size_t)from * (size_t)c->g->n_classes + c->g->classes[byte];
    int32_t to = ((int32_t *)c->next.items)[at];
    if (to != UNKNOWN) {
        return to;
    }
    begin_set(c);
    const state s = *state_at(c, from);
    count_steps(c, (size_t)s.n);
    for (int32_t i = 0; i < s.n && c->failure == ERR_OK; i++) {
        read_byte(c, members_of(c, &s)[i], byte);
    }
    to = finish_set(c);
    ((int32_t *)c->next.items)[at] = to;
    return to;
}

/* ---- masks ---- */

static void set_bit(uint64_t *mask, int32_t token)
{
    mask[token >> 6] |= (uint64_t)1 << (token & 63);
}

/* Closing tokens with the same rest: those that leave the string long enough and not too long. */
static void allow_closing(const token_trie *t, uint64_t *mask, int32_t index, int32_t missing, int32_t room)
{
    for (; index >= 0; index = t->closing[index].same) {
        if (t->closing[index].chars >= missing && t->closing[index].chars <= room) {
            set_bit(mask, t->closing[index].token);
        }
    }
}

static void allow(const token_trie *t, uint64_t *mask, int32_t token)
{
    for (; token >= 0; token = t->same[token]) {
        set_bit(mask, token);
    }
}

static void walk(grammar_cursor *c, uint64_t *mask, const trie_nodes *t, int32_t from)
{
    c->walk[0] = from;
    for (int32_t i = 0; i < t->n_nodes && from != GRAMMAR_REFUSED && c->failure == ERR_OK;) {
        const trie_node *node = &t->nodes[i];
        const int32_t to = step(c, c->walk[node->depth - 1], node->byte);
        if (to == GRAMMAR_REFUSED) {
            i = node->next;
            continue;
        }
        c->walk[node->depth] = to;
        if (node->token >= 0) {
            allow(c->trie, mask, node->token);
        }
        i++;
    }
}

/* The tokens that one reading, inside a string, allows. */
static void fill_string_mask(grammar_cursor *c, uint64_t *mask, int32_t reading)
{
    const token_trie *t = c->trie;
    const stack s = *stack_at(c, reading);
    const grammar_node *x = &c->g->nodes[s.node];
    const int32_t room = x->max == GRAMMAR_MANY ? GRAMMAR_MANY : x->max - s.count;
    count_steps(c, t->n_words / 8 + (size_t)t->n_long + 1);
    if (room > 0) {
        const int32_t known = room < TRIE_STRING_CHARS ? room : TRIE_STRING_CHARS;
        const uint64_t *inside = t->string_masks + (size_t)(known - 1) * t->n_words;
        for (size_t i = 0; i < t->n_words; i++) {
            mask[i] |= inside[i];
        }
    }
    for (int32_t i = 0; i < t->n_long && room > TRIE_STRING_CHARS; i++) {
        if (t->long_ones[i].chars <= room) {
            set_bit(mask, t->long_ones[i].token);
        }
    }
    begin_set(c);
    add_task(c, s.below, RETURN);
    const int32_t missing = s.count < x->min ? x->min - s.count : 0;
    c->walk[0] = finish_set(c);
    allow_closing(t, mask, c->walk[0] == GRAMMAR_REFUSED ? -1 : t->bare_close, missing, room);
    for (int32_t i = 0; i < t->rests.n_nodes && c->walk[0] != GRAMMAR_REFUSED;) {
        const trie_node *node = &t->rests.nodes[i];
        const int32_t to = step(c, c->walk[node->depth - 1], node->byte);
        c->walk[node->depth] = to;
        allow_closing(t, mask, to == GRAMMAR_REFUSED ? -1 : node->token, missing, room);
        i = to == GRAMMAR_REFUSED ? node->next : i + 1;
    }
}

/* Where every reading begins a marker that is one token, allows these alone, and the end where the text may end. */
static bool allow_markers(const grammar_cursor *c, uint64_t *mask, const state *s)
{
    bool all = s->n > 0;
    for (int32_t i = 0; i < s->n && all; i++) {
        const stack *top = stack_at(c, members_of(c, s)[i]);
        const grammar_node *x = &c->g->nodes[top->node];
        const bool begins = x->kind == NODE_TEXT && x->marker && top->pos == 0;
        const int32_t token = begins ? token_trie_find(c->trie, x->text, (size_t)x->n) : -1;
        all = token >= 0;
        allow(c->trie, mask, token);
    }
    return all;
}

/* Added tokens are marks of the chat's form: only markers and free text may hold them, not a JSON
 * string. Special ones may stand only where they are a marker, or what ends a free text. */
static void allow_added(grammar_cursor *c, uint64_t *mask, const state *s, int32_t number)
{
    bool takes = false;
    for (int32_t i = 0; i < s->n; i++) {
        const grammar_node *x = &c->g->nodes[stack_at(c, members_of(c, s)[i])->node];
        takes = takes || x->marker;
        const int32_t end =
            x->marker && x->text ? token_trie_find(c->trie, x->text, (size_t)x->n) : GRAMMAR_REFUSED;
        if (end >= 0 && grammar_cursor_next(c, number, end) != GRAMMAR_REFUSED) {
            allow(c->trie, mask, end);
        }
    }
    if (takes) {
        walk(c, mask, &c->trie->added, number);
    }
}

static void fill_mask(grammar_cursor *c, uint64_t *mask, int32_t number)
{
    const token_trie *t = c->trie;
    const state s = *state_at(c, number);
    memset(mask, 0, t->n_words * sizeof *mask);
    if (s.complete) {
        memcpy(mask, t->stop_mask, t->n_words * sizeof *mask);
    }
    if (allow_markers(c, mask, &s)) {
        return;
    }
    /* readings inside a string have a short way; the others are walked together */
    c->walked.n = 0;
    for (int32_t i = 0; i < s.n && c->failure == ERR_OK; i++) {
        const int32_t reading = members_of(c, &s)[i];
        const stack *top = stack_at(c, reading);
        if (c->g->nodes[top->node].kind == NODE_STRING && top->pos == STRING_INSIDE) {
            fill_string_mask(c, mask, reading);
        } else {
            push_number(c, &c->walked, reading);
        }
    }
    const int32_t n = c->walked.n;
    if (n > 0) {
        walk(c, mask, &t->all, n == s.n ? number : number_state(c, c->walked.items, n, false));
    }
    allow_added(c, mask, &s, number);
}

const uint64_t *grammar_cursor_mask(grammar_cursor *c, int32_t number)
{
    if (number == GRAMMAR_REFUSED || c->failure != ERR_OK) {
        return NULL;
    }
    if (state_at(c, number)->mask == NO_MASK) {
        const int32_t slot = c->next_mask;
        uint64_t *mask = c->masks + (size_t)slot * c->trie->n_words;
        c->next_mask = (slot + 1) % c->n_masks;
        if (c->mask_owner[slot] >= 0) {
            state_at(c, c->mask_owner[slot])->mask = NO_MASK;
        }
        c->mask_owner[slot] = -1;
        fill_mask(c, mask, number);
        uint64_t any = 0;
        for (size_t i = 0; i < c->trie->n_words; i++) {
            any |= mask[i];
        }
        if (!any && c->failure == ERR_OK) {
            c->failure = ERR_UNSUPPORTED; /* the vocabulary cannot spell what must come */
        }
        if (c->failure != ERR_OK) {
            return NULL;
        }
        c->mask_owner[slot] = number;
        state_at(c, number)->mask = slot;
    }
    return c->masks + (size_t)state_at(c, number)->mask * c->trie->n_words;
}

/* ---- the cursor ---- */

static void forget_masks(grammar_cursor *c)
{
    for (int32_t i = 0; i < c->n_masks; i++) {
        c->mask_owner[i] = -1;
    }
}

static bool begin(grammar_cursor *c)
{
    forget_masks(c);
    return number_state(c, NULL, 0, true) == ENDED;
}

err_code grammar_cursor_create(grammar_cursor **out, const grammar *g, const token_trie *t, bool thinking,
                               err_detail *detail)
{
    *out = NULL;
    grammar_cursor *c = calloc(1, sizeof *c);
    if (!c) {
        return err_set(detail, ERR_NOMEM, "no memory for the state of a grammar");
    }
    const size_t mask_bytes = (t->n_words + 1) * sizeof *c->masks,
                 n_masks = LIMIT_GRAMMAR_MASK_BYTES / mask_bytes;
    c->g = g;
    c->trie = t;
    c->n_masks = n_masks < 4 ? 4 : n_masks > 1024 ? 1024 : (int32_t)n_masks;
    c->masks = malloc((size_t)c->n_masks * mask_bytes);
    c->mask_owner = malloc((size_t)c->n_masks * sizeof *c->mask_owner);
    c->opened = calloc((size_t)g->n_nodes, sizeof *c->opened);
    bool ok = c->masks && c->mask_owner && c->opened && begin(c);
    if (ok) {
        begin_set(c);
        add_task(c, NO_STACK, thinking ? g->thinking_root : g->root);
        c->current = finish_set(c);
        ok = c->current != GRAMMAR_REFUSED;
    }
    if (!ok) {
        const err_code err = c->failure == ERR_LIMIT ? ERR_LIMIT : ERR_NOMEM;
        grammar_cursor_destroy(c);
        return err_set(detail, err, "%s",
                       err == ERR_LIMIT ? "the schema has too many alternatives at its beginning"
                                        : "no memory for the state of a grammar");
    }
    *out = c;
    return ERR_OK;
}

void grammar_cursor_destroy(grammar_cursor *c)
{
    if (!c) {
        return;
    }
    list *lists[] = {&c->stacks, &c->states,  &c->members, &c->next,
                     &c->tasks,  &c->choices, &c->set,     &c->walked};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        free(lists[i]->items);
    }
    free(c->stack_table.slots);
    free(c->state_table.slots);
    free(c->masks);
    free(c->opened);
    free(c->mask_owner);
    free(c);
}

int32_t grammar_cursor_state(const grammar_cursor *c)
{
    return c->current;
}

bool grammar_cursor_is_complete(const grammar_cursor *c, int32_t number)
{
    return number != GRAMMAR_REFUSED && state_at(c, number)->complete;
}

err_code grammar_cursor_failure(const grammar_cursor *c)
{
    return c->failure;
}

int32_t grammar_cursor_next(grammar_cursor *c, int32_t number, int32_t token)
{
    size_t len = 0;
    if (number == GRAMMAR_REFUSED || token < 0 || token >= c->trie->n_tokens) {
        return GRAMMAR_REFUSED;
    }
    if (state_at(c, number)->complete && token_mask_has(c->trie->stop_mask, token)) {
        return ENDED;
    }
    const char *text = token_trie_bytes(c->trie, token, &len);
    for (size_t i = 0; i < len && number != GRAMMAR_REFUSED; i++) {
        number = step(c, number, (uint8_t)text[i]);
    }
    return text ? number : GRAMMAR_REFUSED;
}

static size_t bytes_used(const grammar_cursor *c)
{
    return (size_t)c->stacks.n * sizeof(stack) + (size_t)c->states.n * sizeof(state) +
           ((size_t)c->members.n + (size_t)c->next.n) * sizeof(int32_t);
}

/* Keeps the current state alone. */
static void forget(grammar_cursor *c)
{
    const list stacks = c->stacks, members = c->members;
    const state s = *state_at(c, c->current);
    int32_t *chain = malloc(((size_t)LIMIT_GRAMMAR_DEPTH + 2) * sizeof *chain);
    c->stacks = c->members = (list){0};
    c->states.n = c->next.n = 0;
    memset(c->stack_table.slots, 0xff, c->stack_table.size * sizeof(int32_t));
    memset(c->state_table.slots, 0xff, c->state_table.size * sizeof(int32_t));
    c->stack_table.n = c->state_table.n = 0;
    if (!chain || !begin(c)) {
        c->failure = ERR_NOMEM;
    }
    begin_set(c);
    for (int32_t i = 0; i < s.n && c->failure == ERR_OK; i++) {
        int32_t n = 0, made = NO_STACK;
        for (int32_t at = ((const int32_t *)members.items)[s.first + i]; at != NO_STACK;
             at = ((const stack *)stacks.items)[at].below) {
            chain[n++] = at;
        }
        while (n > 0) {
            const stack *old = (const stack *)stacks.items + chain[--n];
            made = number_stack(c, made, old->node, old->pos, old->count);
        }
        push_number(c, &c->set, made);
    }
    c->set_complete = s.complete;
    c->current = finish_set(c);
    free(chain);
    free(stacks.items);
    free(members.items);
}

bool grammar_cursor_accept(grammar_cursor *c, int32_t token)
{
    c->steps = 0;
    c->current = grammar_cursor_next(c, c->current, token);
    if (c->current != GRAMMAR_REFUSED && bytes_used(c) > LIMIT_GRAMMAR_STATE_BYTES) {
        forget(c);
    }
    return c->current != GRAMMAR_REFUSED;
}
