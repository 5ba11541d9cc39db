/* doctor.h - reads every weight of an opened model folder and says what is wrong with it.
 *
 * Opening (pack_open) has already checked names, shapes, formats and the rotation contract. Here
 * the data are looked at: values that are not finite, king biases that are not the negated scales,
 * codes of value 3; and the text files: tokenizer, template, stop tokens; the manifest, if there is
 * one; and whether a drafter fits. */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H
#include "base/buf.h"
#include "pack/pack.h"

typedef struct doctor_report {
    int faults; /* lines added to `lines` that begin with "fault: "; at most DOCTOR_MAX_FAULTS */
    /* ternary codes of value 3, which stand for +2d: legal, and met in no known king */
    int64_t code3;
    int64_t weights; /* matrix elements looked at */
    buf lines;       /* one finding a line */
} doctor_report;

enum { DOCTOR_MAX_FAULTS = 100 };

/* `drafter` (may be NULL) is checked against `p`, a king or plain pack. `progress` (may be NULL) is
 * told the bytes read so far of all. Fails only for lack of memory; what is wrong with the model is
 * in the report. doctor_free in both cases. */
status doctor_check(const pack *p, const pack *drafter,
                    void (*progress)(void *arg, uint64_t done, uint64_t total), void *arg,
                    doctor_report *r, error *e);
void doctor_free(doctor_report *r);
#endif
