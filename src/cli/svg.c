/* svg.c - see svg.h. Axes begin at zero, so that heights compare as the figures do. */
#include "cli/svg.h"

#include <math.h>

#include "base/banned.h"

enum {
    WIDTH = 640,
    HEIGHT = 300,
    LEFT = 70,
    RIGHT = 150,
    TOP = 40,
    BOTTOM = 50,
    HEADING = 40,
    TICKS = 5
};

static const char *const colours[SVG_MOST_LINES] = { "#3b78c4", "#d1662b", "#3f9e52",
                                                     "#a04fb0", "#b8962e", "#5a6b7a" };

/* 1, 2 or 5 times a power of ten, so that TICKS steps reach `most`. */
static double tick_of(double most)
{
    double step = 1e-9;
    if (!(most > 0)) return 1;
    for (;; step *= 10)
        for (int i = 0; i < 3; i++) {
            static const double factors[] = { 1, 2, 5 };
            if (step * factors[i] * TICKS >= most) return step * factors[i];
        }
}

static void escaped(buf *out, const char *s)
{
    for (; *s; s++)
        if (*s == '<') buf_text(out, "&lt;");
        else if (*s == '&') buf_text(out, "&amp;");
        else buf_char(out, *s);
}

static void label(buf *out, double x, double y, const char *anchor, const char *text)
{
    buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    escaped(out, text);
    buf_text(out, "</text>\n");
}

static void number(buf *out, double x, double y, const char *anchor, double value)
{
    buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%g</text>\n", x, y, anchor,
               value);
}

static void axes(buf *out, double top, double x_tick, double y_tick)
{
    const double w = WIDTH - LEFT - RIGHT, h = HEIGHT - TOP - BOTTOM, bottom = top + h;
    for (int i = 0; i <= TICKS; i++) {
        const double y = bottom - h * i / TICKS, x = LEFT + w * i / TICKS;
        buf_printf(out, "<path class=\"grid\" d=\"M%d %.1fh%.0f\"/>\n", LEFT, y, w);
        number(out, LEFT - 8, y + 4, "end", y_tick * i);
        number(out, x, bottom + 18, "middle", x_tick * i);
    }
    buf_printf(out, "<path class=\"axis\" d=\"M%d %.1fv%.0fh%.0f\"/>\n", LEFT, top, h, w);
}

static void chart(buf *out, const svg_chart *c, double top)
{
    const double w = WIDTH - LEFT - RIGHT, h = HEIGHT - TOP - BOTTOM;
    double x_most = 0, y_most = 0;
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->lines[i].n; k++) {
            x_most = fmax(x_most, c->lines[i].x[k]);
            y_most = fmax(y_most, c->lines[i].y[k]);
        }
    const double x_tick = tick_of(x_most), y_tick = tick_of(y_most), plot = top + TOP;
    label(out, LEFT, top + 22, "start", c->title);
    axes(out, plot, x_tick, y_tick);
    label(out, LEFT + w / 2, plot + h + 38, "middle", c->x_label);
    buf_printf(out, "<g transform=\"rotate(-90 16 %.1f)\">", plot + h / 2);
    label(out, 16, plot + h / 2, "middle", c->y_label);
    buf_text(out, "</g>\n");
    for (int i = 0; i < c->n; i++) {
        const svg_line *l = &c->lines[i];
        buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
                   colours[i % SVG_MOST_LINES]);
        for (int k = 0; k < l->n; k++)
            buf_printf(out, "%.1f,%.1f ", LEFT + w * l->x[k] / (x_tick * TICKS),
                       plot + h - h * l->y[k] / (y_tick * TICKS));
        buf_text(out, "\"/>\n");
        buf_printf(out, "<rect x=\"%d\" y=\"%.1f\" width=\"12\" height=\"4\" fill=\"%s\"/>\n",
                   WIDTH - RIGHT + 12, plot + 12 + 20.0 * i, colours[i % SVG_MOST_LINES]);
        label(out, WIDTH - RIGHT + 30, plot + 18 + 20.0 * i, "start", l->name);
    }
}

void svg_write(buf *out, const char *heading, const svg_chart *charts, int n)
{
    const int height = HEADING + n * HEIGHT;
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
               "font-family=\"sans-serif\" font-size=\"12\">\n",
               WIDTH, height);
    buf_text(out, "<style>text{fill:#555}.grid{stroke:#8884;fill:none}.axis{stroke:#888;fill:none}"
                  "@media(prefers-color-scheme:dark){text{fill:#bbb}}</style>\n");
    label(out, 16, 24, "start", heading);
    for (int i = 0; i < n; i++) chart(out, &charts[i], HEADING + (double)i * HEIGHT);
    buf_text(out, "</svg>\n");
}
