/* svg.h - line charts as SVG, one below the other in one picture; light and dark backgrounds both
 * work. */
#ifndef CLI_SVG_H
#define CLI_SVG_H
#include "base/buf.h"

enum { SVG_MOST_POINTS = 32, SVG_MOST_LINES = 6 };

typedef struct svg_line {
    const char *name;
    double x[SVG_MOST_POINTS], y[SVG_MOST_POINTS];
    int n;
} svg_line;

typedef struct svg_chart {
    const char *title, *x_label, *y_label;
    svg_line lines[SVG_MOST_LINES];
    int n;
} svg_chart;

void svg_write(buf *out, const char *heading, const svg_chart *charts, int n);
#endif
