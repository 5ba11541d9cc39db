/* hub.c - see hub.h. */
#include "hub/hub.h"
#include <fnmatch.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "hub/cache.h"
#include "hub/download.h"
#include "base/banned.h"

enum { MAX_PATH = CACHE_MAX_PATH, MAX_LIST = 64 << 20, MAX_PAGES = 100, MOST_FAILURES = 5 };
enum { MOST_UNREACHED = 2 }; /* where nothing has answered yet */
enum { STALL_S = 10, SPARE_BYTES = 64 << 20, MAX_SMALL = 64 << 20, HEADER_GUESS = 256 << 10 };

typedef struct listed {
    const char *path, *hash;
    uint64_t size;
} listed;

typedef struct session {
    const hub_options *o;
    char repo[HUB_MAX_NAME], revision[HUB_MAX_NAME];
    char endpoint[MAX_PATH], token[ENVIRONMENT_MAX_TOKEN];
    bool has_token, reached; /* reached: the hub answered, if only with a refusal */
    cache place;
    char commit[65];
    fetch *fetch;
    listed *files; /* that are wanted */
    size_t count;
    uint64_t total, before; /* bytes of all files; of those that are done */
    const listed *current;
    arena mem;
} session;

/* ---- names ---- */

static bool is_word(str s)
{
    if (!s.len || s.len > 96 || str_find(s, STR("--")) != STR_NONE ||
        str_find(s, STR("..")) != STR_NONE || str_ends(s, STR(".git")))
        return false;
    const char first = s.ptr[0], last = s.ptr[s.len - 1];
    if (first == '-' || first == '.' || last == '-' || last == '.') return false;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
        if (!plain) return false;
    }
    return true;
}

static bool is_revision(str s)
{
    if (!s.len || s.len >= HUB_MAX_NAME || s.ptr[0] == '/' || s.ptr[0] == '-' || s.ptr[0] == '.' ||
        str_find(s, STR("..")) != STR_NONE)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        if (c <= 0x20 || c >= 0x7f || c == '\\') return false;
    }
    return true;
}

/* "owner/name@revision" in its parts; revision empty when there is none. */
static bool split_name(const char *text, str *repo, str *revision)
{
    const str all = str_from(text);
    const size_t at = str_find(all, STR("@")), slash = str_find(all, STR("/"));
    *repo = at == STR_NONE ? all : str_sub(all, 0, at);
    *revision = at == STR_NONE ? STR("") : str_sub(all, at + 1, all.len);
    if (slash == STR_NONE || slash >= repo->len || repo->len > 96) return false;
    if (at != STR_NONE && !is_revision(*revision)) return false;
    return is_word(str_sub(*repo, 0, slash)) && is_word(str_sub(*repo, slash + 1, repo->len));
}

bool hub_is_name(const char *text)
{
    str repo, revision;
    return split_name(text, &repo, &revision);
}

static status open_session(session *s, const char *name, const hub_options *o, error *e)
{
    str repo, revision;
    *s = (session){ .o = o };
    arena_init(&s->mem, 0);
    if (!split_name(name, &repo, &revision))
        return error_set(e, E_ARG, "%s: want owner/name or owner/name@revision", name);
    if (o->revision) revision = str_from(o->revision);
    if (!revision.len) revision = STR("main");
    if (!is_revision(revision)) return error_set(e, E_ARG, "%s: no usable revision", name);
    snprintf(s->repo, sizeof s->repo, "%.*s", STR_ARG(repo));
    snprintf(s->revision, sizeof s->revision, "%.*s", STR_ARG(revision));
    environment_endpoint(s->endpoint);
    if (!str_starts(str_from(s->endpoint), STR("http://")) &&
        !str_starts(str_from(s->endpoint), STR("https://")))
        return error_set(e, E_ARG, "HF_ENDPOINT: found %s, want https://HOST or http://HOST",
                         s->endpoint);
    s->has_token = environment_token(s->token);
    return cache_of(&s->place, s->repo, e);
}

static void close_session(session *s)
{
    fetch_close(s->fetch);
    arena_free(&s->mem);
}

/* ---- a copy in the cache ---- */

static bool has_file(const char *folder, const char *name)
{
    char path[MAX_PATH];
    return !file_join(path, sizeof path, folder, name, NULL) && file_exists(path);
}

/* The hub was asked for the file once, and had none. */
static status absent_path(const session *s, const char *name, char out[MAX_PATH], error *e)
{
    const int n = snprintf(out, MAX_PATH, "%s/.no_exist/%s/%s", s->place.repo, s->commit, name);
    if (n > 0 && n < MAX_PATH) return OK;
    return error_set(e, E_LIMIT, "%s: path too long", name);
}

static bool is_known_absent(const session *s, const char *name)
{
    char path[MAX_PATH];
    return !absent_path(s, name, path, NULL) && file_exists(path);
}

static status incomplete(const session *s, const char *name, const char *folder, error *e)
{
    return error_set(e, E_IO, "%s: %.160s is missing from the copy in %s", s->repo, name, folder);
}

/* Every shard that an index names is there. */
static status check_shards(const session *s, const char *folder, const char *index, error *e)
{
    char path[MAX_PATH], shard[256];
    json_doc *doc = NULL;
    str name;
    const json_node *value;
    TRY(file_join(path, sizeof path, folder, index, e));
    TRY(json_parse_file(&doc, path, MAX_LIST, JSON_UNIQUE, e));
    status r = OK;
    const json_node *weights = json_get(json_root(doc), "weight_map");
    for (void *it = NULL; !r && json_each(weights, &it, &name, &value);) {
        str file = { 0 };
        json_str(value, &file);
        snprintf(shard, sizeof shard, "%.*s", (int)(file.len < 255 ? file.len : 255), file.ptr);
        if (!has_file(folder, shard)) r = incomplete(s, shard, folder, e);
    }
    json_free(doc);
    return r;
}

static bool is_drafter(const char *folder)
{
    char path[MAX_PATH];
    json_doc *doc = NULL;
    if (file_join(path, sizeof path, folder, "config.json", NULL) ||
        json_parse_file(&doc, path, MAX_LIST, 0, NULL))
        return false;
    const bool is = json_get(json_root(doc), "dflash_config") != NULL;
    json_free(doc);
    return is;
}

static status check_copy(const session *s, const char *folder, error *e)
{
    static const char index[] = "model.safetensors.index.json";
    if (has_file(folder, index)) TRY(check_shards(s, folder, index, e));
    else if (!has_file(folder, "model.safetensors") &&
             !has_file(folder, "dflash/model.safetensors"))
        return incomplete(s, "model.safetensors", folder, e);
    const bool config = has_file(folder, "config.json") || has_file(folder, "dflash/config.json");
    if (!config && !is_known_absent(s, "config.json"))
        return incomplete(s, "config.json", folder, e);
    if (!config || is_drafter(folder) || has_file(folder, "dflash/config.json") ||
        has_file(folder, "tokenizer.json") || is_known_absent(s, "tokenizer.json"))
        return OK;
    return incomplete(s, "tokenizer.json", folder, e);
}

static status give(const char *path, char *folder, size_t cap, error *e)
{
    const int n = snprintf(folder, cap, "%s", path);
    if (n >= 0 && (size_t)n < cap) return OK;
    return error_set(e, E_LIMIT, "%s: path longer than %zu bytes", path, cap - 1);
}

static status find_copy(session *s, char *folder, size_t cap, error *e)
{
    char path[MAX_PATH];
    if (!cache_read_ref(&s->place, s->revision, s->commit)) {
        return error_set(e, E_IO, "%s: revision %s is not in the cache (%s)", s->repo, s->revision,
                         s->place.root);
    }
    TRY(cache_snapshot(&s->place, s->commit, path, e));
    if (!file_is_dir(path)) {
        return error_set(e, E_IO, "%s: no copy of revision %s in the cache (%s)", s->repo,
                         s->revision, s->place.root);
    }
    TRY(check_copy(s, path, e));
    return give(path, folder, cap, e);
}

status hub_find(const char *name, const hub_options *o, char *folder, size_t cap, error *e)
{
    session s;
    status r = open_session(&s, name, o, e);
    if (!r) r = find_copy(&s, folder, cap, e);
    close_session(&s);
    return r;
}

/* ---- what the repository holds ---- */

static status explain(const session *s, const fetch_reply *r, error *e)
{
    if (strcmp(r->error_code, "GatedRepo") == 0) {
        return error_set(e, E_IO,
                         "%s: gated: accept its licence on its page at %s, then set HF_TOKEN",
                         s->repo, s->endpoint);
    }
    if (strcmp(r->error_code, "RevisionNotFound") == 0)
        return error_set(e, E_IO, "%s: no revision %s", s->repo, s->revision);
    if (r->code == 401 || r->code == 404) {
        return error_set(e, E_IO, "%s: not found at %s%s", s->repo, s->endpoint,
                         s->has_token ? "" : ", or private: set HF_TOKEN");
    }
    return error_set(e, E_IO, "%s: HTTP %d from %s%s%s", s->repo, r->code, s->endpoint,
                     r->error_message[0] ? ": " : "", r->error_message);
}

typedef struct asking {
    session *s;
    buf *out;
} asking;

static status take_body(void *arg, const void *p, size_t n, error *e)
{
    const asking *a = arg;
    buf_put(a->out, p, n);
    return buf_status(a->out, a->s->repo, e);
}

static status begin_body(void *arg, const fetch_reply *r, error *e)
{
    const asking *a = arg;
    (void)r;
    (void)e;
    buf_clear(a->out);
    return OK;
}

static bool is_stopped(void *arg)
{
    const asking *a = arg;
    const hub_options *o = a->s->o;
    return o->stop && o->stop(o->arg);
}

/* Asks until an answer comes, as long as failures may pass. */
static status ask(session *s, const fetch_request *q, fetch_reply *r, error *e)
{
    const int first_ms = s->o->retry_ms ? s->o->retry_ms : 1000;
    for (int failures = 1;; failures++) {
        const status got = fetch_run(s->fetch, q, r, e);
        const bool passing =
            got ? r->transient : r->code == 408 || r->code == 429 || r->code >= 500;
        if (!got) s->reached = true;
        const int most = s->reached || r->code ? MOST_FAILURES : MOST_UNREACHED;
        if (!passing || failures >= most) return got;
        const int ms = r->retry_after_s >= 0 ? r->retry_after_s * 1000 : first_ms << (failures - 1);
        for (int slept = 0; slept < ms; slept += 50) {
            if (q->stop && q->stop(q->arg)) return error_set(e, E_CANCELLED, "interrupted");
            clock_sleep_ms(ms < 50 ? ms : 50);
        }
    }
}

static status ask_json(session *s, const char *url, buf *out, fetch_reply *r, error *e)
{
    asking a = { s, out };
    const fetch_request q = { .url = url,
                              .token = s->has_token ? s->token : NULL,
                              .stall_s = STALL_S,
                              .begin = begin_body,
                              .body = take_body,
                              .stop = is_stopped,
                              .arg = &a };
    TRY(ask(s, &q, r, e));
    return r->code == 200 ? OK : explain(s, r, e);
}

static status too_long(const session *s, error *e)
{
    return error_set(e, E_LIMIT, "%s: an address is too long", s->repo);
}

static status find_commit(session *s, error *e)
{
    char url[FETCH_MAX_URL], revision[3 * HUB_MAX_NAME + 1];
    buf body;
    fetch_reply r;
    json_doc *doc = NULL;
    str sha = { 0 };
    if (cache_is_commit(str_from(s->revision))) {
        snprintf(s->commit, sizeof s->commit, "%s", s->revision);
        return OK;
    }
    TRY(fetch_escape(str_from(s->revision), false, revision, sizeof revision, e));
    const int n =
        snprintf(url, sizeof url, "%s/api/models/%s/revision/%s", s->endpoint, s->repo, revision);
    if (n < 0 || (size_t)n >= sizeof url) return too_long(s, e);
    buf_init(&body, MAX_LIST);
    status got = ask_json(s, url, &body, &r, e);
    if (!got) got = json_parse(&doc, buf_view(&body), 0, s->repo, e);
    if (!got) json_str(json_get(json_root(doc), "sha"), &sha);
    if (!got && !cache_is_commit(sha)) {
        got = error_set(e, E_FORMAT, "%s: the answer of %s names no commit: is it a hub?", s->repo,
                        s->endpoint);
    }
    if (!got) snprintf(s->commit, sizeof s->commit, "%.*s", STR_ARG(sha));
    json_free(doc);
    buf_free(&body);
    return got;
}

/* Whether a model folder needs the file. */
static bool is_wanted(const hub_options *o, str path)
{
    char text[HUB_MAX_NAME * 2];
    if (path.len >= sizeof text) return false;
    snprintf(text, sizeof text, "%.*s", STR_ARG(path));
    for (int i = 0; i < o->n_include; i++)
        if (fnmatch(o->include[i], text, 0) == 0) return true;
    if (o->n_include) return false;
    if (str_starts(path, STR("dflash/"))) path = str_sub(path, 7, path.len);
    if (memchr(path.ptr, '/', path.len)) return false;
    static const char *const suffixes[] = { ".safetensors", ".json", ".jinja" };
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (str_ends(path, str_from(suffixes[i]))) return true;
    return str_starts(path, STR("LICENSE")) || str_eq(path, STR("merges.txt"));
}

/* Names that could leave the folder they are meant for are refused. */
static bool is_safe(str path)
{
    if (!path.len || path.len >= HUB_MAX_NAME * 2 || path.ptr[0] == '/') return false;
    size_t start = 0;
    for (size_t i = 0; i <= path.len; i++) {
        const unsigned char c = i < path.len ? (unsigned char)path.ptr[i] : '/';
        if (c < 0x20 || c == '\\') return false;
        if (c != '/') continue;
        const str part = str_sub(path, start, i);
        if (!part.len || str_eq(part, STR(".")) || str_eq(part, STR(".."))) return false;
        start = i + 1;
    }
    return true;
}

static bool is_hash(str s)
{
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
    }
    return s.len == 40 || s.len == 64;
}

static status take_entry(session *s, const json_node *entry, error *e)
{
    const char *type = json_text(json_get(entry, "type"));
    const json_node *lfs = json_get(entry, "lfs");
    str path = { 0 }, hash = { 0 };
    int64_t size = -1;
    if (!type || strcmp(type, "file") != 0) return OK;
    json_str(json_get(entry, "path"), &path);
    if (!is_safe(path))
        return error_set(e, E_FORMAT, "%s: the list has a file with an unsafe name", s->repo);
    if (!is_wanted(s->o, path)) return OK;
    const bool large = json_kind(lfs) == JSON_OBJECT;
    json_str(json_get(large ? lfs : entry, "oid"), &hash);
    json_i64(json_get(large ? lfs : entry, "size"), &size);
    if (!is_hash(hash) || size < 0 || (uint64_t)size > (UINT64_C(1) << 45)) {
        return error_set(e, E_FORMAT, "%s: %.*s: the list gives no usable hash and size", s->repo,
                         STR_ARG(path));
    }
    if (s->count == HUB_MAX_FILES)
        return error_set(e, E_LIMIT, "%s: more than %d files", s->repo, HUB_MAX_FILES);
    listed *f = &s->files[s->count++];
    f->path = arena_strdup(&s->mem, path);
    f->hash = arena_strdup(&s->mem, hash);
    f->size = (uint64_t)size;
    s->total += f->size;
    return f->path && f->hash ? OK : error_set(e, E_NOMEM, "%s: no memory", s->repo);
}

static status list_files(session *s, error *e)
{
    char url[FETCH_MAX_URL];
    buf body;
    status got = OK;
    s->files = arena_array(&s->mem, HUB_MAX_FILES, sizeof *s->files);
    if (!s->files) return error_set(e, E_NOMEM, "%s: no memory", s->repo);
    const int n = snprintf(url, sizeof url, "%s/api/models/%s/tree/%s?recursive=true&expand=false",
                           s->endpoint, s->repo, s->commit);
    if (n < 0 || (size_t)n >= sizeof url) return too_long(s, e);
    buf_init(&body, MAX_LIST);
    for (int page = 0; !got && url[0]; page++) {
        fetch_reply r;
        json_doc *doc = NULL;
        got = page == MAX_PAGES ? error_set(e, E_LIMIT, "%s: too many pages of files", s->repo)
                                : ask_json(s, url, &body, &r, e);
        if (!got) got = json_parse(&doc, buf_view(&body), 0, s->repo, e);
        const json_node *list = json_root(doc);
        for (size_t i = 0; !got && i < json_len(list); i++)
            got = take_entry(s, json_at(list, i), e);
        json_free(doc);
        if (!got) snprintf(url, sizeof url, "%s", r.next);
    }
    buf_free(&body);
    if (got || s->count) return got;
    return error_set(e, E_IO, "%s: revision %s has no file that is wanted", s->repo, s->revision);
}

/* Opens the session's line and learns commit and files. */
static status consult(session *s, error *e)
{
    TRY(fetch_open(&s->fetch, e));
    TRY(find_commit(s, e));
    return list_files(s, e);
}

/* ---- fetching ---- */

static status url_of(const session *s, const char *path, char out[FETCH_MAX_URL], error *e)
{
    char escaped[6 * HUB_MAX_NAME + 1];
    TRY(fetch_escape(str_from(path), true, escaped, sizeof escaped, e));
    const int n = snprintf(out, FETCH_MAX_URL, "%s/%s/resolve/%s/%s", s->endpoint, s->repo,
                           s->commit, escaped);
    return n > 0 && n < FETCH_MAX_URL ? OK : too_long(s, e);
}

static void draw(void *arg, uint64_t bytes)
{
    const session *s = arg;
    if (s->o->progress) s->o->progress(s->o->arg, s->current->path, s->before + bytes, s->total);
}

static bool stopped(void *arg)
{
    const session *s = arg;
    return s->o->stop && s->o->stop(s->o->arg);
}

/* Where a file goes, and where it grows. */
typedef struct spot {
    char target[MAX_PATH], partial[MAX_PATH], lock[MAX_PATH];
} spot;

static status find_spot(const session *s, const listed *f, spot *p, error *e)
{
    char name[128];
    if (!s->o->to) {
        TRY(cache_blob(&s->place, f->hash, "", p->target, e));
        TRY(cache_blob(&s->place, f->hash, ".ingot.incomplete", p->partial, e));
        snprintf(name, sizeof name, "%s.lock", f->hash);
        return file_join(p->lock, sizeof p->lock, s->place.locks, name, e);
    }
    snprintf(name, sizeof name, ".ingot/%s.incomplete", f->hash);
    TRY(file_join(p->target, sizeof p->target, s->o->to, f->path, e));
    TRY(file_join(p->partial, sizeof p->partial, s->o->to, name, e));
    snprintf(name, sizeof name, ".ingot/%s.lock", f->hash);
    return file_join(p->lock, sizeof p->lock, s->o->to, name, e);
}

/* Whether the file is in place. Files of the cache are named by their hash and appear whole; in a
 * folder of the user's only the contents can tell. */
static bool is_there(const session *s, const listed *f, const spot *p)
{
    char snapshot[MAX_PATH], path[MAX_PATH], hex[65];
    uint64_t size;
    if (file_size(p->target, &size) && size == f->size) {
        if (!s->o->to) return true;
        return !download_hash(p->target, f->hash, hex, NULL) && strcmp(hex, f->hash) == 0;
    }
    if (s->o->to || cache_snapshot(&s->place, s->commit, snapshot, NULL) ||
        file_join(path, sizeof path, snapshot, f->path, NULL))
        return false;
    return file_size(path, &size) && size == f->size; /* a cache without links */
}

static status make_download(session *s, const listed *f, const spot *p, char url[FETCH_MAX_URL],
                            download *d, error *e)
{
    TRY(url_of(s, f->path, url, e));
    *d = (download){ .url = url,
                     .token = s->has_token ? s->token : NULL,
                     .name = f->path,
                     .size = f->size,
                     .hash = f->hash,
                     .target = p->target,
                     .partial = p->partial,
                     .connections = s->o->connections ? s->o->connections : 4,
                     .retry_ms = s->o->retry_ms ? s->o->retry_ms : 1000,
                     .progress = draw,
                     .stop = stopped,
                     .arg = s };
    return OK;
}

static status link_file(const session *s, const listed *f, const spot *p, error *e)
{
    if (s->o->to || !file_exists(p->target)) return OK;
    return cache_link(&s->place, s->commit, f->path, f->hash, e);
}

static status fetch_one(session *s, const listed *f, error *e)
{
    spot p;
    int lock = -1;
    char url[FETCH_MAX_URL];
    download d;
    s->current = f;
    TRY(find_spot(s, f, &p, e));
    if (!is_there(s, f, &p)) {
        TRY(cache_make_parents(p.target, e));
        TRY(cache_make_parents(p.partial, e));
        TRY(cache_lock(p.lock, &lock, stopped, s, e));
        status r = OK; /* another program may have fetched it while we waited */
        if (!is_there(s, f, &p)) {
            r = make_download(s, f, &p, url, &d, e);
            if (!r) r = download_run(&d, e);
        }
        cache_unlock(lock);
        if (r) return r == E_CANCELLED ? r : error_prefix(e, r, "%s", s->repo);
    }
    s->before += f->size;
    return link_file(s, f, &p, e);
}

static status want_space(session *s, error *e)
{
    const char *folder = s->o->to ? s->o->to : s->place.root;
    uint64_t bytes = 0;
    TRY(file_make_dirs(folder, e));
    for (size_t i = 0; i < s->count; i++) {
        spot p;
        TRY(find_spot(s, &s->files[i], &p, e));
        if (is_there(s, &s->files[i], &p)) continue;
        const download d = { .size = s->files[i].size, .partial = p.partial };
        bytes += s->files[i].size - download_have(&d);
    }
    return bytes ? file_want_space(folder, bytes + SPARE_BYTES, e) : OK;
}

/* Remembers what the hub does not have, as its clients do, so that nobody waits for it offline. */
static status note_absent(const session *s, error *e)
{
    static const char *const names[] = { "config.json", "tokenizer.json" };
    for (size_t i = 0; i < sizeof names / sizeof *names && !s->o->n_include; i++) {
        bool listed_there = false;
        char path[MAX_PATH];
        for (size_t k = 0; k < s->count; k++)
            listed_there |= strcmp(s->files[k].path, names[i]) == 0;
        if (listed_there) continue;
        TRY(absent_path(s, names[i], path, e));
        TRY(cache_make_parents(path, e));
        TRY(file_write(path, STR(""), e));
    }
    return OK;
}

static status pull(session *s, char *folder, size_t cap, error *e)
{
    char path[MAX_PATH];
    TRY(consult(s, e));
    TRY(want_space(s, e));
    for (size_t i = 0; i < s->count; i++) TRY(fetch_one(s, &s->files[i], e));
    if (s->o->to) return give(s->o->to, folder, cap, e);
    TRY(note_absent(s, e));
    TRY(cache_write_ref(&s->place, s->revision, s->commit, e));
    TRY(cache_snapshot(&s->place, s->commit, path, e));
    return give(path, folder, cap, e);
}

status hub_pull(const char *name, const hub_options *o, char *folder, size_t cap, error *e)
{
    session s;
    status r = open_session(&s, name, o, e);
    if (!r && (o->offline || environment_is_offline())) {
        r = find_copy(&s, folder, cap, e);
    } else if (!r) {
        r = pull(&s, folder, cap, e);
        if (r == E_IO && !s.reached && !o->to && !find_copy(&s, folder, cap, NULL)) {
            log_line(LOG_WARN, "%s cannot be reached: using the copy of %s in the cache",
                     s.endpoint, s.repo);
            r = OK;
        }
    }
    close_session(&s);
    return r;
}

status hub_open(const char *name, const hub_options *o, char *folder, size_t cap, error *e)
{
    if (!hub_find(name, o, folder, cap, NULL)) return OK;
    return hub_pull(name, o, folder, cap, e);
}

/* ---- a look from afar ---- */

static status enough(void *arg, const void *p, size_t n, error *e)
{
    const asking *a = arg;
    const size_t room = a->out->ceiling - a->out->len;
    buf_put(a->out, p, n < room ? n : room);
    TRY(buf_status(a->out, a->s->repo, e));
    return n < room ? OK : E_AGAIN; /* a server without ranges sends more than was asked for */
}

/* The first `n` bytes of a file. */
static status fetch_head(session *s, const listed *f, uint64_t n, buf *out, error *e)
{
    char url[FETCH_MAX_URL];
    asking a = { s, out };
    fetch_reply r;
    TRY(url_of(s, f->path, url, e));
    buf_free(out);
    buf_init(out, (size_t)n + 1);
    const fetch_request q = { .url = url,
                              .token = s->has_token ? s->token : NULL,
                              .ranged = true,
                              .to = n,
                              .stall_s = STALL_S,
                              .begin = begin_body,
                              .body = enough,
                              .stop = is_stopped,
                              .arg = &a };
    const status got = ask(s, &q, &r, e);
    if (got && got != E_AGAIN) return got;
    if (!got && r.code != 206 && r.code != 200) return explain(s, &r, e);
    if (out->len >= n) return OK;
    return error_set(e, E_IO, "%s: %s: %zu bytes came, want %llu", s->repo, f->path, out->len,
                     (unsigned long long)n);
}

/* A file of the right length that holds the header and nothing else. */
static status preview_weights(session *s, const listed *f, const char *path, error *e)
{
    buf head;
    uint64_t length = 0;
    buf_init(&head, 1);
    uint64_t n = f->size < HEADER_GUESS ? f->size : HEADER_GUESS;
    status r = fetch_head(s, f, n, &head, e);
    if (!r && n < 8) r = error_set(e, E_FORMAT, "%s: %s: no header", s->repo, f->path);
    if (!r) {
        memcpy(&length, head.ptr, sizeof length);
        if (length > f->size - 8 || length > MAX_SMALL) {
            r = error_set(e, E_FORMAT, "%s: %s: a header of %llu bytes in a file of %llu", s->repo,
                          f->path, (unsigned long long)length, (unsigned long long)f->size);
        } else if (8 + length > n) {
            r = fetch_head(s, f, 8 + length, &head, e);
        }
    }
    if (!r) r = file_write(path, (str){ head.ptr, (size_t)length + 8 }, e);
    if (!r && truncate(path, (off_t)f->size) != 0)
        r = error_set(e, E_IO, "%s: cannot be given its length", path);
    buf_free(&head);
    return r;
}

static status preview_one(session *s, const listed *f, const char *folder, error *e)
{
    char path[MAX_PATH];
    buf text;
    const str name = str_from(f->path);
    TRY(file_join(path, sizeof path, folder, f->path, e));
    TRY(cache_make_parents(path, e));
    if (str_ends(name, STR(".safetensors"))) return preview_weights(s, f, path, e);
    if (!str_ends(name, STR(".json")) || str_eq(name, STR("tokenizer.json")) || f->size > MAX_SMALL)
        return OK;
    buf_init(&text, 1);
    status r = f->size ? fetch_head(s, f, f->size, &text, e) : OK;
    if (!r) r = file_write(path, (str){ text.ptr, (size_t)f->size }, e);
    buf_free(&text);
    return r;
}

status hub_preview(const char *name, const hub_options *o, const char *folder, error *e)
{
    session s;
    status r = open_session(&s, name, o, e);
    if (!r && (o->offline || environment_is_offline()))
        r = error_set(e, E_IO, "%s: not in the cache, and nothing is fetched offline", s.repo);
    if (!r) r = consult(&s, e);
    for (size_t i = 0; i < s.count && !r; i++) r = preview_one(&s, &s.files[i], folder, e);
    close_session(&s);
    return r;
}
