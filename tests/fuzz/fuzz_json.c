/* Any bytes as JSON: refused with a reason, or read into a tree that, written and read
 * again, is the same. */
#include "base/json_read.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_node(const bz_json_node *node, bz_arena *arena)
{
    int64_t whole;
    double real;
    size_t n = 0, n_sorted;
    if (node->kind == BZ_JSON_STRING) {
        must(bz_utf8_valid(node->of.text.data, node->of.text.len));
    }
    if (bz_json_to_int(node, &whole)) {
        must(node->kind == BZ_JSON_NUMBER && bz_json_to_double(node, &real));
    }
    for (const bz_json_node *item = bz_json_first(node); item; item = item->next) {
        must(bz_utf8_valid(item->key.data, item->key.len));
        check_node(item, arena);
        n++;
    }
    must(bz_json_first(node) == NULL || n == node->n);
    const bz_json_node **sorted = bz_json_sorted(node, arena, &n_sorted);
    must(sorted != NULL && n_sorted <= n);
    for (size_t i = 1; i < n_sorted; i++) {
        must(sorted[i - 1] != sorted[i]);
    }
}

static char *write_tree(const bz_json_node *root, size_t *n)
{
    bz_json j;
    bz_json_buffer out = {0};
    bz_json_init(&j, bz_json_to_buffer, &out);
    bz_json_node_write(&j, root);
    must(bz_json_finish(&j));
    *n = out.n;
    return out.text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_arena arena = {0};
    bz_error err = {0};
    const bz_json_node *root, *again;
    if (bz_json_read(&root, (const char *)data, size, &arena, &err) != BZ_OK) {
        must(root == NULL && err.code == BZ_BAD_REQUEST && err.text[0]);
    } else {
        size_t n, n_again;
        check_node(root, &arena);
        char *text = write_tree(root, &n);
        must(bz_json_read(&again, text, n, &arena, &err) == BZ_OK);
        char *text_again = write_tree(again, &n_again);
        must(n == n_again && memcmp(text, text_again, n) == 0);
        free(text);
        free(text_again);
    }
    char *out = malloc(size + 1);
    size_t n;
    if (bz_json_unquote((bz_str){(const char *)data, size}, out, &n)) {
        must(n <= size && bz_utf8_valid(out, n) && root && root->kind == BZ_JSON_STRING);
        must(n == root->of.text.len && memcmp(out, root->of.text.data, n) == 0);
    }
    free(out);
    bz_arena_free(&arena);
    return 0;
}
