"""The text of sequence expressions."""

from __future__ import annotations

from spaseq.lang import ast


def sequence_text(sequence: ast.Sequence) -> str:
    parts = [step_text(sequence.steps[0])]
    for op, step in zip(sequence.ops, sequence.steps[1:], strict=True):
        gap = f"[{span_text(op.gap)}]" if op.gap else ""
        parts.append(f"{op.kind}{gap} {step_text(step)}")
    return " ".join(parts)


def step_text(step: ast.Step) -> str:
    match step.atom:
        case ast.Ref(name):
            text = name
        case ast.Bracket(kind, operands):
            text = "(" + f" {kind} ".join(map(sequence_text, operands)) + ")"
    if step.negated:
        return text + "!"
    return text if step.quantifier is None else text + loop_text(step.quantifier)


def loop_text(loop: ast.Quantifier) -> str:
    """`{2,5}+[, 10 SECONDS] UNTIL U`."""
    text = quantifier_text(loop.minimum, loop.maximum) + "+" * loop.greedy
    if loop.own is not None:
        gap = f" {span_text(loop.own.gap)}" if loop.own.gap else ""
        text += f"[{loop.own.kind}{gap}]"
    return f"{text} UNTIL {loop.until.name}" if loop.until else text


def quantifier_text(minimum: int, maximum: int | None) -> str:
    match minimum, maximum:
        case 0, 1:
            return "?"
        case _, None:
            return {0: "*", 1: "+"}.get(minimum, f"{{{minimum},}}")
        case _:
            return f"{{{minimum}}}" if minimum == maximum else f"{{{minimum},{maximum}}}"


def span_text(span: ast.TimeSpan) -> str:
    return f"{span.amount} {span.unit}"
