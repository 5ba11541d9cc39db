/* f64.h - exp and log in double precision with the same bits on every machine, whatever its C
 * library. */
#ifndef BASE_F64_H
#define BASE_F64_H

/* within 1 ulp of the true value; 0 below -745.2, +inf above 709.8; NaN stays NaN */
double f64_exp(double x);
double f64_log(double x); /* of a positive finite x; within 1 ulp */
#endif
