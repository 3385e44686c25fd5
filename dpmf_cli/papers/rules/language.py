"""The language in which a paper's file says what its claims mean: inequalities between measured quantities.

An expression has the syntax of Python but is never run as Python: `ast` parses it, and `Scope` gives a meaning to
numbers, texts, names, lists, comprehensions, arithmetic, comparisons (of each element of an array), and calls of the
functions in `quantities`. Braces in a text hold an expression.

A name is a value, or stands for an expression that is evaluated wherever the name is used. So it sees the variables
of the loops around, and within `on(data, …)` it is measured on that data set. `gain(method="isgd")` is the
expression `gain` with that value of `method`.
"""

import ast
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from string import Formatter
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.core.terminal import significant
from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.rules.quantities import MEASURED, PLAIN, epsilon_text

Values = NDArray[np.float64]

OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.USub: operator.neg,
}


Expressions = Annotated[
    tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)
]
"""One expression, or several."""


@dataclass(frozen=True)
class Margin:
    """By how much one inequality of a claim holds, on one data set, in one setting.

    text        the inequality in words
    unit        of the margin; "ε" is the logarithm of a ratio, anything else a difference
    tolerance   a smaller margin decides nothing
    value       above 0 if the inequality holds, below if it fails; NaN if the grid leaves the sign open
    said        both sides of the inequality, where it is nearest to failing
    note        what a reader of the verdict must know
    """

    text: str
    unit: str
    tolerance: float
    value: float
    said: str
    note: str = ""


class Atom(StrictModel):
    """One inequality between two measured quantities.

    text   what it says, with expressions in braces
    says   the comparison; arrays are compared element by element
    let    names of its own
    if_    an expression, written `if`: whether there is such an atom in this turn of the loops
    at     the name of each element, mostly its ε
    over   whether every element must hold, some element, or the mean, of differences
    unit   of the margin, as in `Margin`
    tolerance   an expression; by default the paper's tolerance for that unit. An inequality with a tolerance of its
                own in it has 0
    """

    text: str
    says: str
    let: dict[str, Any] = Field({})
    if_: str = Field("", alias="if")
    at: str = ""
    over: Literal["every", "some", "mean"] = "every"
    unit: str = "RMSE"
    tolerance: float | None = None
    note: str = ""

    def margin(self, outer: "Scope") -> Margin | None:
        """The margin; None if there is no such atom here. Raises MissingEvidence if a result is missing."""
        scope = outer.named(self.let)
        if self.if_ and not scope.value(self.if_):
            return None
        match parsed(self.says):
            case ast.Compare(first, [operation], [second]):
                less, more = np.broadcast_arrays(scope.array(first), scope.array(second))
                if isinstance(operation, (ast.Gt, ast.GtE)):
                    less, more = more, less
            case _:
                raise ValueError(f"is not one comparison: {self.says}")
        with np.errstate(invalid="ignore", divide="ignore"):  # of curves that have diverged or never cross
            margins = np.ravel(np.log(more) - np.log(less) if self.unit == "ε" else more - less)
        if not margins.size:
            raise MissingEvidence(self.says)
        value, decides = _over(margins, self.over)
        shown = slice(None) if self.over == "mean" else decides
        said = " against ".join(_side(np.ravel(each)[shown], self.unit) for each in (less, more))
        if self.over == "mean":
            said += " in the mean"
        elif self.at and margins.size > 1:
            said += self._where(np.ravel(scope.value(self.at)), margins, decides)
        tolerance = (
            scope.names["tolerances"].get(self.unit, 0.0) if self.tolerance is None else self.tolerance
        )
        if self.unit == "ε" and tolerance:
            tolerance = math.log(tolerance)
        return Margin(scope.text(self.text), self.unit, tolerance, value, said, self.note)

    def _where(self, names: Values, margins: Values, decides: int) -> str:
        failing = np.flatnonzero(margins < 0)
        if self.over != "every" or not failing.size:
            return f" at {significant(float(names[decides]))}"
        said = [significant(float(name)) for name in names[failing]]
        if len(said) == len(names):
            return "; nowhere"
        if len(said) > 3 and failing[-1] - failing[0] < len(said):
            return f"; not from {said[0]} to {said[-1]}"
        return f"; not at {', '.join(said)}"


def _over(margins: Values, over: str) -> tuple[float, int]:
    """The margin of all elements together, NaN if one whose sign is open could turn it, and the element that decides
    it."""
    sign = -1.0 if over == "some" else 1.0
    signed = sign * margins
    decides = int(np.argmin(np.where(np.isnan(signed), np.inf, signed)))
    if over == "mean":
        return float(margins.mean()), decides
    is_open = np.isnan(signed).any() and not signed[decides] < 0
    return (math.nan if is_open else float(margins[decides])), decides


def _side(values: Values, unit: str) -> str:
    """One side of an inequality in words: a value, or the mean of several."""
    value = float(np.mean(values))
    if unit == "ε":
        return epsilon_text(value)
    return f"{value:.4f}" if unit == "RMSE" else f"{value:.4g}"


class Rule(StrictModel):
    """What one claim about figures means.

    let      names of its own
    each     loops, by the name of their variable: all values of the first with all of the second
    needs    what must be true in each turn of the loops; else results decide nothing
    reading  the name of what its sentence leaves open; every atom has a margin for each reading
    atoms    the inequalities, in each turn of the loops
    once     inequalities that are judged once
    same     other claims whose atoms it repeats, each with what the atoms' texts begin with
    """

    let: dict[str, Any] = Field({})
    each: dict[str, Any] = Field({})
    needs: Expressions = ()
    reading: str = ""
    atoms: tuple[Atom, ...] = ()
    once: tuple[Atom, ...] = ()
    same: dict[str, str] = Field({})

    def margins(self, paper: "Scope") -> Iterator[Margin]:
        """Yields the margin of each atom that has all results it needs."""
        scope = paper.named(self.let)
        for atoms, loops in ((self.atoms, self.each), (self.once, {})):
            with suppress(MissingEvidence):
                for turn in scope.turns(loops) if atoms else ():
                    with suppress(MissingEvidence):
                        if all(turn.value(each) for each in self.needs):
                            yield from _known(atoms, turn)


def _known(atoms: Iterable[Atom], scope: "Scope") -> Iterator[Margin]:
    for each in atoms:
        with suppress(MissingEvidence):
            if (margin := each.margin(scope)) is not None:
                yield margin


@cache
def parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


@dataclass(frozen=True)
class Scope:
    """The evidence, and the names that an expression may use: values, or the trees of expressions."""

    evidence: Evidence
    names: Mapping[str, Any]

    def with_values(self, values: Mapping[str, Any]) -> "Scope":
        return replace(self, names={**self.names, **values})

    def named(self, definitions: Mapping[str, Any]) -> "Scope":
        """The scope with the names of a file too: a text is an expression, anything else is a value."""
        return self.with_values(
            {key: parsed(each) if isinstance(each, str) else each for key, each in definitions.items()}
        )

    def turns(self, loops: Mapping[str, Any]) -> Iterator["Scope"]:
        """Yields the scope of each turn of some loops; a text among the values is an expression for them all."""
        values = [self.value(each) if isinstance(each, str) else each for each in loops.values()]
        for turn in itertools.product(*values):
            yield self.with_values(dict(zip(loops, turn, strict=True)))

    def text(self, template: str) -> str:
        """A text with the values of the expressions in its braces."""
        said = ""
        for literal, expression, how, _ in Formatter().parse(template):
            said += literal + (format(self.value(expression), how or "") if expression else "")
        return said

    def value(self, expression: str) -> Any:
        return self._of(parsed(expression))

    def array(self, tree: ast.expr) -> Values:
        """Numbers, lists of numbers, or the values of a dictionary as an array."""
        found = self._of(tree)
        return np.asarray(list(found.values()) if isinstance(found, Mapping) else found, float)

    def _of(self, tree: ast.expr) -> Any:
        match tree:
            case ast.Constant(value):
                return value
            case ast.Name(name):
                if name not in self.names:
                    return {"data": self.evidence.data, "inf": np.inf}[name]
                found = self.names[name]
                return self._of(found) if isinstance(found, ast.expr) else found
            case ast.Attribute(owner, key):
                return self._of(owner)[key]
            case ast.Slice(first, last):
                return slice(first and self._of(first), last and self._of(last))
            case ast.Subscript(owner, key):
                return self._of(owner)[self._of(key)]
            case ast.List(elements):
                return _array([self._of(each) for each in elements])
            case ast.ListComp(element, loops):
                return _array([turn._of(element) for turn in self._comprehended(loops)])
            case ast.DictComp(key, value, loops):
                return {turn._of(key): turn._of(value) for turn in self._comprehended(loops)}
            case ast.IfExp(test, body, otherwise):
                return self._of(body if self._of(test) else otherwise)
            case ast.BoolOp(operation, values):
                found = (self._of(each) for each in values)
                return all(found) if isinstance(operation, ast.And) else any(found)
            case ast.UnaryOp(operation, operand):
                return OPERATORS[type(operation)](self._of(operand))
            case ast.BinOp(left, operation, right):
                return OPERATORS[type(operation)](self._of(left), self._of(right))
            case ast.Compare(first, operations, others):
                terms = [self._of(each) for each in (first, *others)]
                pairs = zip(operations, itertools.pairwise(terms), strict=True)
                held = [OPERATORS[type(operation)](*pair) for operation, pair in pairs]
                return held[0] if len(held) == 1 else np.logical_and.reduce(held)
            case ast.Call(ast.Name("on"), [data, expression]):
                evidence = replace(self.evidence, data=self._of(data))
                return replace(self, evidence=evidence)._of(expression)
            case ast.Call(ast.Name("text"), [template]):
                return self.text(self._of(template))
            case ast.Call(ast.Name(name), [], [*values]) if values:
                bound = {each.arg: self._of(each.value) for each in values if each.arg}
                return self.with_values(bound)._of(self.names[name])
            case ast.Call(ast.Name(name), arguments, []):
                values = [self._of(each) for each in arguments]
                return MEASURED[name](self.evidence, *values) if name in MEASURED else PLAIN[name](*values)
        raise ValueError(f"not in the language of rules: {ast.unparse(tree)}")

    def _comprehended(self, loops: Sequence[ast.comprehension]) -> Iterator["Scope"]:
        if not loops:
            yield self
            return
        first, *others = loops
        for value in self._of(first.iter):
            turn = self.with_values({ast.unparse(first.target): value})
            if all(turn._of(each) for each in first.ifs):
                yield from turn._comprehended(others)


def _array(values: list[Any]) -> Any:
    """Numbers, or arrays of one shape, as one array; anything else stays a list."""
    numeric = all(isinstance(each, (float, int, np.ndarray, np.generic)) for each in values)
    return np.array(values) if numeric and len({np.shape(each) for each in values}) == 1 else values
