/* Assay for C, and for every language that calls C: a request in, an answer out, both JSON. docs/api.md describes
 * requests and answers, and how Rust, Go and Julia call this.
 *
 * These are the calls of assay/assay.h: several threads may ask at once, equal requests get equal bytes, and what goes
 * wrong is an answer. A function that returns a pointer returns NULL only where memory runs out. */
#ifndef ASSAY_C_H
#define ASSAY_C_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_C_PUBLIC __attribute__((visibility("default")))

typedef struct assay_engine assay_engine;
typedef struct assay_answer assay_answer;

/* How an answer is laid out: JSON as `--format json` prints it, JSON on one line, the picture of `--format svg`, or the
 * screen of a terminal. Errors are JSON in any case. */
enum assay_layout { ASSAY_INDENTED, ASSAY_ONE_LINE, ASSAY_SVG, ASSAY_SCREEN };

/* What requests may reach. NULL and 0 stand for nothing. */
typedef struct assay_reach {
  int files;                     /* requests may name files, and measure this machine */
  const char* const* catalogues; /* directories that overlay the catalogue, in this order; NULL ends the list */
  const char* user_catalogue;    /* for `measure`: where it writes */
  const char* programs;          /* for `measure`: where the programs that it runs are */
  const char* date;              /* for `measure`: 2026-11-15 */
} assay_reach;

/* An engine; NULL stands for the catalogue that is compiled in, and no files. */
ASSAY_C_PUBLIC assay_engine* assay_open(const assay_reach* reach);
ASSAY_C_PUBLIC void assay_close(assay_engine* engine);

/* The answer to a request of `size` bytes; assay_free() gives it back. */
ASSAY_C_PUBLIC assay_answer* assay_ask(const assay_engine* engine, const char* request, size_t size,
                                       enum assay_layout layout);

/* Answers to `count` requests by at most `threads` threads (0: one per core), each as assay_ask() gives it. */
ASSAY_C_PUBLIC void assay_ask_all(const assay_engine* engine, const char* const* requests, const size_t* sizes,
                                  size_t count, size_t threads, enum assay_layout layout, assay_answer** answers);

/* The JSON Schema (2020-12) of the requests and answers of a verb; NULL: of all verbs. */
ASSAY_C_PUBLIC assay_answer* assay_schema(const char* verb);

/* The bytes of an answer, with a zero behind them that assay_size() does not count; valid until assay_free(). */
ASSAY_C_PUBLIC const char* assay_text(const assay_answer* answer);
ASSAY_C_PUBLIC size_t assay_size(const assay_answer* answer);

/* What the command line exits with: 0 ok, 1 input, 2 usage, 3 infeasible, 4 check failed, 70 bug. */
ASSAY_C_PUBLIC int assay_status(const assay_answer* answer);

/* Files that the request wants to be written, for the caller to write; `index` is below assay_files(). */
ASSAY_C_PUBLIC size_t assay_files(const assay_answer* answer);
ASSAY_C_PUBLIC const char* assay_file_path(const assay_answer* answer, size_t index);
ASSAY_C_PUBLIC const char* assay_file_bytes(const assay_answer* answer, size_t index, size_t* size);

ASSAY_C_PUBLIC void assay_free(assay_answer* answer);

/* With 1, every request of this process, running or to come, returns the best that it has found; with 0, later ones run
 * to their end. Any thread and any signal handler may call it. */
ASSAY_C_PUBLIC void assay_stop(int stop);

/* For callers whose own handler of Ctrl-C cannot run while they wait for an answer, from one thread at a time. With 1,
 * SIGINT stops requests from now on; with 0, the handler of before is back, later requests run to their end, and the
 * result is 1 if SIGINT arrived between. */
ASSAY_C_PUBLIC int assay_catch_interrupt(int begin);

/* Of the library: its version; the commit of its sources, or nothing; the date of its catalogue. */
ASSAY_C_PUBLIC const char* assay_version(void);
ASSAY_C_PUBLIC const char* assay_commit(void);
ASSAY_C_PUBLIC const char* assay_catalogue_date(void);

#ifdef __cplusplus
}
#endif
#endif
