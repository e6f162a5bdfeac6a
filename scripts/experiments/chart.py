#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Line charts as SVG, with only the standard library."""
import dataclasses
import html
import math
import textwrap

PLOT_WIDTH, PLOT_HEIGHT = 490, 332
LEFT, TOP, BOTTOM = 80, 64, 64  # margins; the right one is as wide as the legend
NOTE_LINE = 15  # pixels
LETTER = 0.56  # mean width of a letter / font size; enough for most words
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]  # Okabe and Ito
FONT = "font-family='Helvetica, Arial, sans-serif'"


@dataclasses.dataclass
class Series:
    name: str
    points: list  # (x, y), in the order of the line
    labels: list = dataclasses.field(default_factory=list)  # a string next to each point
    dashed: bool = False
    joined: bool = True
    marked: bool = True
    ranges: list = dataclasses.field(default_factory=list)  # (low, high) in y of each point


@dataclasses.dataclass
class Chart:
    title: str
    note: str  # under the title: conditions
    x_label: str
    y_label: str
    series: list
    x_ticks: list = None  # None: round numbers
    x_names: list = None  # strings at the ticks; None: the numbers
    y_from: float = 0.0
    y_to: float = None  # the y axis ends at this value or above


def round_ticks(low, high, about=5):
    """Round numbers that cover [low, high]."""
    if high <= low:
        high = low + 1
    rough = (high - low) / about
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def scaled(values):
    """The SI prefix for the largest of the values, and its factor."""
    largest = max((abs(value) for value in values), default=0)
    for prefix, factor in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if largest >= factor:
            return prefix, factor
    return "", 1


def text(x, y, words, size=13, anchor="middle", extra=""):
    return (f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' {FONT} {extra}>"
            f"{html.escape(words)}</text>")


def marker(index, x, y):
    """The marker of the series with this number. Colours and shapes together distinguish 24 series."""
    color = color_of(index)
    shapes = [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4.5'",
              f"<rect x='{x - 4:.1f}' y='{y - 4:.1f}' width='8' height='8'",
              f"<path d='M{x:.1f} {y - 5.5:.1f} l5 9 h-10 z'",
              f"<path d='M{x:.1f} {y - 6:.1f} l5 6 l-5 6 l-5 -6 z'"]
    fill = color if index // 12 % 2 == 0 else "white"
    return f"{shapes[index % len(shapes)]} fill='{fill}' stroke='{color}'/>"


def color_of(index):
    return COLORS[index % len(COLORS)]


def overlap(a, b):
    """The common area of two boxes (left, top, right, bottom)."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(0.0, width) * max(0.0, height)


class Drawing:
    def __init__(self, chart):
        self.chart = chart
        points = [point for series in chart.series for point in series.points]
        xs, ys = [x for x, _ in points] or [0, 1], [y for _, y in points] or [0, 1]
        ys += [end for series in chart.series for ends in series.ranges for end in ends]
        longest = max((len(series.name) for series in chart.series), default=0)
        self.right = LEFT + PLOT_WIDTH
        self.width = self.right + 60 + round(13 * LETTER * longest)
        self.note = textwrap.wrap(chart.note, int((self.width - LEFT) / (12 * LETTER)))
        self.top = TOP + NOTE_LINE * max(0, len(self.note) - 1)
        self.bottom = self.top + max(PLOT_HEIGHT, 22 * len(chart.series))
        self.height = self.bottom + BOTTOM
        self.boxes = []  # boxes that labels should not cover
        self.x_ticks = chart.x_ticks or round_ticks(min(0, *xs), max(xs))
        self.y_ticks = round_ticks(min(chart.y_from, *ys), max(*ys, chart.y_to or -math.inf))
        x_low, x_high = min(*self.x_ticks, *xs), max(*self.x_ticks, *xs)
        margin = 0.04 * (x_high - x_low or 1)
        self.x_range = x_low - margin, x_high + margin
        self.y_range = min(self.y_ticks), max(self.y_ticks)

    def x(self, value):
        low, high = self.x_range
        return LEFT + (value - low) / (high - low) * PLOT_WIDTH

    def y(self, value):
        low, high = self.y_range
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)

    def axes(self):
        chart = self.chart
        top, right, bottom = self.top, self.right, self.bottom
        for tick in self.y_ticks:
            yield f"<line x1='{LEFT}' x2='{right}' y1='{self.y(tick):.1f}' y2='{self.y(tick):.1f}' stroke='#ddd'/>"
            yield text(LEFT - 8, self.y(tick) + 4, f"{tick:.6g}", anchor="end")
        for tick in self.x_ticks:
            yield f"<line x1='{self.x(tick):.1f}' x2='{self.x(tick):.1f}' y1='{bottom}' y2='{bottom + 5}' stroke='#333'/>"
            yield text(self.x(tick), bottom + 20,
                       chart.x_names[self.x_ticks.index(tick)] if chart.x_names else f"{tick:.6g}")
        yield f"<path d='M{LEFT} {top} V{bottom} H{right}' fill='none' stroke='#333'/>"
        yield text((LEFT + right) / 2, self.height - 16, chart.x_label, 14)
        yield text(22, (top + bottom) / 2, chart.y_label, 14,
                   extra=f"transform='rotate(-90 22 {(top + bottom) / 2:.1f})'")
        yield text(LEFT, 26, chart.title, 17, "start", "font-weight='bold'")
        for number, line in enumerate(self.note):
            yield text(LEFT, 46 + NOTE_LINE * number, line, 12, "start", "fill='#555'")

    def positions(self, series):
        return [(self.x(x), self.y(y)) for x, y in series.points]

    def label(self, x, y, words):
        """A label next to a point, in the position with the least overlap."""
        width, best = 12 * LETTER * len(words), None
        for across, down, anchor in ((0, -10, "middle"), (7, -8, "start"), (-7, -8, "end"),
                                     (0, 19, "middle"), (7, 17, "start"), (-7, 17, "end"),
                                     (0, -24, "middle"), (0, 33, "middle")):
            left = x + across - {"start": 0, "middle": width / 2, "end": width}[anchor]
            box = left, y + down - 10, left + width, y + down + 2
            covered = sum(overlap(box, other) for other in self.boxes)
            covered += width * 12 - overlap(box, (LEFT, self.top - 20, self.right + 16, self.bottom))
            if best is None or covered < best[0] - 1:
                best = covered, box, text(x + across, y + down, words, 12, anchor)
        self.boxes.append(best[1])
        return best[2]

    def lines(self):
        for series in self.chart.series:
            self.boxes += [(x - 6, y - 6, x + 6, y + 6) for x, y in self.positions(series)]
            self.boxes += [(x - 4, self.y(high), x + 4, self.y(low))
                           for (low, high), (x, _) in zip(series.ranges, self.positions(series))]
        for index, series in enumerate(self.chart.series):
            color = color_of(index)
            positions = self.positions(series)
            dash = " stroke-dasharray='6 4'" if series.dashed else ""
            if series.joined and positions:
                path = " L".join(f"{x:.1f} {y:.1f}" for x, y in positions)
                yield f"<path d='M{path}' fill='none' stroke='{color}' stroke-width='2'{dash}/>"
            for (low, high), (x, _) in zip(series.ranges, positions):
                if high > low:
                    yield (f"<path d='M{x - 4:.1f} {self.y(low):.1f} h8 m-4 0 V{self.y(high):.1f} m-4 0 h8'"
                           f" fill='none' stroke='{color}'/>")
            if series.marked:
                yield from (marker(index, x, y) for x, y in positions)
            yield from (self.label(x, y, words) for words, (x, y) in zip(series.labels, positions))
            x, y = self.right + 18, self.top + 14 + 22 * index
            if series.joined:
                yield f"<line x1='{x - 2}' x2='{x + 22}' y1='{y}' y2='{y}' stroke='{color}' stroke-width='2'{dash}/>"
            if series.marked:
                yield marker(index, x + 10, y)
            yield text(x + 30, y + 4, series.name, anchor="start")


def svg(chart):
    """The chart as the text of an SVG file."""
    drawing = Drawing(chart)
    width, height = drawing.width, drawing.height
    body = "\n".join([*drawing.axes(), *drawing.lines()])
    return (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}'"
            f" height='{height}' role='img'>\n<title>{html.escape(chart.title)}</title>\n"
            f"<rect width='100%' height='100%' fill='white'/>\n{body}\n</svg>\n")
