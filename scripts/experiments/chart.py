#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Line charts as SVG, by the standard library alone."""
import dataclasses
import html
import math

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 80, 190, 64, 64  # margins; the legend stands in the right one
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]  # Okabe and Ito
FONT = "font-family='Helvetica, Arial, sans-serif'"


@dataclasses.dataclass
class Series:
    name: str
    points: list  # (x, y), in the order in which they are joined
    labels: list = dataclasses.field(default_factory=list)  # a text beside each point
    dashed: bool = False
    joined: bool = True
    marked: bool = True


@dataclasses.dataclass
class Chart:
    title: str
    note: str  # under the title: conditions
    x_label: str
    y_label: str
    series: list
    x_ticks: list = None  # else round numbers
    y_from: float = 0.0
    y_to: float = None  # at least


def round_ticks(low, high, about=5):
    """Round numbers that span [low, high]."""
    if high <= low:
        high = low + 1
    rough = (high - low) / about
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def scaled(values):
    """An SI prefix that suits the largest of the values, and its factor."""
    most = max((abs(value) for value in values), default=0)
    for prefix, factor in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if most >= factor:
            return prefix, factor
    return "", 1


def text(x, y, words, size=13, anchor="middle", extra=""):
    return (f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' {FONT} {extra}>"
            f"{html.escape(words)}</text>")


def marker(index, x, y, color):
    shapes = [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4.5'",
              f"<rect x='{x - 4:.1f}' y='{y - 4:.1f}' width='8' height='8'",
              f"<path d='M{x:.1f} {y - 5.5:.1f} l5 9 h-10 z'",
              f"<path d='M{x:.1f} {y - 6:.1f} l5 6 l-5 6 l-5 -6 z'"]
    return f"{shapes[index % len(shapes)]} fill='{color}'/>"


class Drawing:
    def __init__(self, chart):
        self.chart = chart
        points = [point for series in chart.series for point in series.points]
        xs, ys = [x for x, _ in points] or [0, 1], [y for _, y in points] or [0, 1]
        self.x_ticks = chart.x_ticks or round_ticks(min(0, *xs), max(xs))
        self.y_ticks = round_ticks(min(chart.y_from, *ys), max(*ys, chart.y_to or -math.inf))
        x_low, x_high = min(self.x_ticks), max(self.x_ticks)
        room = 0.04 * (x_high - x_low or 1)
        self.x_range = x_low - room, x_high + room
        self.y_range = min(self.y_ticks), max(self.y_ticks)

    def x(self, value):
        low, high = self.x_range
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        low, high = self.y_range
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def axes(self):
        chart = self.chart
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        for tick in self.y_ticks:
            yield f"<line x1='{LEFT}' x2='{right}' y1='{self.y(tick):.1f}' y2='{self.y(tick):.1f}' stroke='#ddd'/>"
            yield text(LEFT - 8, self.y(tick) + 4, f"{tick:.6g}", anchor="end")
        for tick in self.x_ticks:
            yield f"<line x1='{self.x(tick):.1f}' x2='{self.x(tick):.1f}' y1='{bottom}' y2='{bottom + 5}' stroke='#333'/>"
            yield text(self.x(tick), bottom + 20, f"{tick:.6g}")
        yield f"<path d='M{LEFT} {TOP} V{bottom} H{right}' fill='none' stroke='#333'/>"
        yield text((LEFT + right) / 2, HEIGHT - 16, chart.x_label, 14)
        yield text(22, (TOP + bottom) / 2, chart.y_label, 14,
                   extra=f"transform='rotate(-90 22 {(TOP + bottom) / 2:.1f})'")
        yield text(LEFT, 26, chart.title, 17, "start", "font-weight='bold'")
        yield text(LEFT, 46, chart.note, 12, "start", "fill='#555'")

    def lines(self):
        for index, series in enumerate(self.chart.series):
            color = COLORS[index % len(COLORS)]
            places = [(self.x(x), self.y(y)) for x, y in series.points]
            dash = " stroke-dasharray='6 4'" if series.dashed else ""
            if series.joined and places:
                path = " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
                yield f"<path d='M{path}' fill='none' stroke='{color}' stroke-width='2'{dash}/>"
            for number, (x, y) in enumerate(places):
                if series.marked:
                    yield marker(index, x, y, color)
                if series.labels:
                    yield text(x, y - 10, series.labels[number], 12)
            x, y = WIDTH - RIGHT + 18, TOP + 14 + 22 * index
            if series.joined:
                yield f"<line x1='{x - 2}' x2='{x + 22}' y1='{y}' y2='{y}' stroke='{color}' stroke-width='2'{dash}/>"
            if series.marked:
                yield marker(index, x + 10, y, color)
            yield text(x + 30, y + 4, series.name, anchor="start")


def svg(chart):
    """The chart as the text of an SVG file."""
    drawing = Drawing(chart)
    body = "\n".join([*drawing.axes(), *drawing.lines()])
    return (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}'"
            f" height='{HEIGHT}'>\n<rect width='100%' height='100%' fill='white'/>\n{body}\n</svg>\n")
