/* config.json of a drafter. What is accepted is a DFlash 2 drafter whose numbers fit each other,
 * and pairs with a king or is refused with a reason. */
#include "pack/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_doc *doc = NULL;
    error e = { 0 };
    drafter_config d;
    const str text = { (const char *)data, size };
    if (json_parse(&doc, text, JSON_UNIQUE, "config.json", &e)) return 0;
    if (dflash_parse(&d, json_root(doc), "config.json", &e)) {
        CHECK(e.text[0] && strchr(e.text, '\n') == NULL);
    } else {
        CHECK(d.n_layer > 0 && d.block >= 2 && d.mask_id < d.n_vocab && d.top_k <= d.n_vocab);
        CHECK(d.n_embd % d.conv_group == 0 && d.n_head % d.n_kv_head == 0 && d.head_dim % 2 == 0);
        CHECK(d.n_tap > 0 && d.tap[0] >= 0 && (!d.window || d.window >= 2));
        for (int i = 1; i < d.n_tap; i++) CHECK(d.tap[i] > d.tap[i - 1]);
        king_config k = { .n_embd = 5120, .n_vocab = 248320, .n_layer = 64 };
        const status s = config_check_pair(&d, &k, &e);
        CHECK(s == OK || s == E_UNSUPPORTED);
    }
    json_free(doc);
    return 0;
}
