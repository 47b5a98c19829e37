#include "model/checkpoint/tensor_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

bool tensor_table_add(tensor_table *t, const named_tensor *item)
{
    const bool ok = memory_grow(&t->items, &t->cap, t->n + 1, 256, sizeof *t->items);
    if (ok) {
        t->items[t->n++] = *item;
    }
    return ok;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const named_tensor *)a)->name, ((const named_tensor *)b)->name);
}

const named_tensor *tensor_table_sort(tensor_table *t)
{
    if (t->n > 1) {
        qsort(t->items, t->n, sizeof *t->items, compare_names);
    }
    for (size_t i = 1; i < t->n; i++) {
        if (compare_names(&t->items[i - 1], &t->items[i]) == 0) {
            return &t->items[i];
        }
    }
    return NULL;
}

void tensor_table_free(tensor_table *t)
{
    free(t->items);
    *t = (tensor_table){0};
}

/* Index of the first tensor whose name is not below `name`. */
static size_t lower_bound(const tensor_table *t, const char *name)
{
    size_t low = 0, high = t->n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (strcmp(t->items[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const named_tensor *tensor_table_first(const tensor_table *t, const char *prefix)
{
    const size_t at = lower_bound(t, prefix);
    return at < t->n && strncmp(t->items[at].name, prefix, strlen(prefix)) == 0 ? &t->items[at] : NULL;
}

const named_tensor *tensor_table_find(const tensor_table *t, const char *name)
{
    const named_tensor *first = tensor_table_first(t, name);
    return first && strlen(first->name) == strlen(name) ? first : NULL;
}

bool tensor_table_get(const tensor_table *t, const char *name, tensor *out)
{
    const named_tensor *found = tensor_table_find(t, name);
    if (found) {
        *out = found->view;
    }
    return found != NULL;
}

static bool find_view(void *ctx, const char *name, tensor *out)
{
    return tensor_table_get(ctx, name, out);
}

tensor_source tensor_table_source(const tensor_table *t)
{
    return (tensor_source){find_view, (void *)(uintptr_t)t};
}

bool name_ends_with(const char *name, const char *suffix)
{
    const size_t n = strlen(name), m = strlen(suffix);
    return n >= m && strcmp(name + n - m, suffix) == 0;
}
