"""Plots the points of a table as lines in an SVG file, without any library."""
import html
import math
import pathlib

from measuring import number

COLOURS = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#d98200", "#555555"]
LEFT, TOP, WIDTH, HEIGHT, BELOW = 64, 40, 560, 300, 48


class Axis:
    """Maps values to places; marks are at the values themselves if these are few and it is wanted, else at round numbers."""

    def __init__(self, values, logarithmic, start, end, at_values=False):
        self.logarithmic, self.start, self.end = logarithmic, start, end
        if logarithmic:
            decades = range(math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9) + 1)
            self.marks = sorted(set(values)) if at_values and len(set(values)) <= 12 else [10.0 ** n for n in decades]
            self.low, self.high = math.log(self.marks[0]), math.log(self.marks[-1])
        else:
            rough = (max(values) or 1) / 5
            size = 10 ** math.floor(math.log10(rough))
            step = next(size * n for n in (1, 2, 5, 10) if size * n >= rough * 0.999)
            self.marks = [n * step for n in range(math.ceil(max(values) / step - 1e-9) + 1)]
            self.low, self.high = 0, self.marks[-1]

    def place(self, value):
        part = ((math.log(value) if self.logarithmic else value) - self.low) / ((self.high - self.low) or 1)
        return self.start + part * (self.end - self.start)


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{html.escape(words)}</text>'


def lines(file, title, x_name, y_name, series, logarithmic=(True, False)):
    """Writes {name: [(x, y), ...]} into a file; a logarithmic x must be above 0. A range may stand for y:
    (x, (low, middle, high))."""
    series = {name: [(x, y if isinstance(y, tuple) else (y, y, y)) for x, y in points] for name, points in series.items()}
    points = [point for all_points in series.values() for point in all_points]
    across = Axis([x for x, _ in points], logarithmic[0], LEFT, LEFT + WIDTH, at_values=True)
    up = Axis([y for _, ys in points for y in ys], logarithmic[1], TOP + HEIGHT, TOP)
    tall = TOP + HEIGHT + BELOW + 18 * ((len(series) + 2) // 3)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 24} {tall}" font-family="sans-serif" '
           'font-size="12">', '<rect width="100%" height="100%" fill="white"/>',
           text(LEFT + WIDTH / 2, 20, title, more=' font-size="14"')]
    for mark in across.marks:
        out += [f'<path d="M{across.place(mark):.1f} {TOP}v{HEIGHT}" stroke="#eee"/>',
                text(across.place(mark), TOP + HEIGHT + 16, f"{mark:g}")]
    for mark in up.marks:
        out += [f'<path d="M{LEFT} {up.place(mark):.1f}h{WIDTH}" stroke="#ddd"/>',
                text(LEFT - 6, up.place(mark) + 4, f"{mark:g}", "end")]
    out.append(text(LEFT + WIDTH / 2, TOP + HEIGHT + 34, x_name))
    out.append(text(0, 0, y_name, more=f' transform="translate(14 {TOP + HEIGHT / 2:.0f}) rotate(-90)"'))
    for at, (name, all_points) in enumerate(series.items()):
        colour = COLOURS[at % len(COLOURS)]
        path = " ".join(f"{across.place(x):.1f},{up.place(y[1]):.1f}" for x, y in all_points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, (low, middle, high) in all_points:
            out.append(f'<circle cx="{across.place(x):.1f}" cy="{up.place(middle):.1f}" r="3" fill="{colour}">'
                       f'<title>{html.escape(name)}: {x:g}, {number(middle)}</title></circle>')
            if low != high:
                out.append(f'<path d="M{across.place(x):.1f} {up.place(low):.1f}V{up.place(high):.1f}" stroke="{colour}"/>')
        x, y = LEFT + (at % 3) * WIDTH / 3, TOP + HEIGHT + BELOW + 18 * (at // 3) + 4
        out += [f'<path d="M{x:.0f} {y - 4}h20" stroke="{colour}" stroke-width="2"/>', text(x + 26, y, name, "start")]
    pathlib.Path(file).write_text("\n".join([*out, "</svg>"]) + "\n")
