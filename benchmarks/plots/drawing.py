"""Draws figures as SVG that is legible on a light and on a dark page."""

from __future__ import annotations

from pathlib import Path

from benchmarks.plots.figures import Figure, load

INK = "#7a7f87"  # axes and text: enough contrast with white and with black
COLOURS = ("#2f7ed8", "#d9822b", "#2a9d5c", "#a855c7")
BAND = "#9aa0a8"


def draw(figure: Figure, path: Path) -> None:
    """Write the drawing of a figure."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update(
        {
            "svg.hashsalt": figure.name,  # equal measurements give equal files
            "svg.fonttype": "none",
            "font.size": 9,
            **dict.fromkeys(
                ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"),
                INK,
            ),
        }
    )
    from matplotlib import pyplot

    canvas, axes = pyplot.subplots(figsize=(5.6, 3.4))
    for i, band in enumerate(figure.bands):
        axes.axhspan(band.low, band.high, color=BAND, alpha=0.28 - 0.12 * i, label=band.label)
        axes.axhline(band.low, color=BAND, linewidth=0.6)
    named = any(isinstance(x, str) for curve in figure.curves for x in curve.x)
    line = "none" if named else "-"
    for colour, curve in zip(COLOURS, figure.curves, strict=False):
        x, y = list(curve.x), list(curve.y)
        axes.plot(x, y, marker="o", linestyle=line, color=colour, label=curve.label)
    axes.set_title(figure.title, fontsize=10)
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    if figure.log_y:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        if high / low < 100:  # at least two orders of magnitude, so that noise looks like noise
            middle = (low * high) ** 0.5
            axes.set_ylim(middle / 10, middle * 10)
    if figure.log_x:
        axes.set_xscale("log")
    if named:
        axes.tick_params(axis="x", labelrotation=25)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
    axes.grid(True, which="major", color=INK, alpha=0.25, linewidth=0.5)
    axes.legend(frameon=False, fontsize=8)
    canvas.tight_layout()
    canvas.savefig(path, transparent=True, metadata={"Date": None})
    pyplot.close(canvas)


def draw_all(measured: Path, drawn: Path) -> None:
    """Draw all figures whose measurements lie in a folder."""
    drawn.mkdir(exist_ok=True)
    for path in sorted(measured.glob("*.json")):
        draw(load(path), drawn / f"{path.stem}.svg")
