"""The language in which a paper's file of rules says what its claims mean, and the reading of one rule.

An expression has the syntax of Python but is never run as Python: `ast` parses it, and `Scope` gives a meaning to
numbers, texts, names, lists, comprehensions, arithmetic, comparisons (of each element of an array), and calls of the
functions in `quantities`. `theta(fig1, method, "GE") < inf` is one. Braces in a text hold an expression, and say how
to format its value (`formatted`).

A name is a value, or stands for an expression that is evaluated wherever the name is used. So it sees the variables
of the loops around, and within `on(data, …)` it is measured on that data set. `gain(method="isgd")` is the
expression `gain` with that value of `method`.
"""

import ast
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from string import Formatter
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field

from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.evaluation.numbers import signed, significant
from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.rules.quantities import MEASURED, PLAIN, counted_below, epsilon_text

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
    ast.Not: operator.not_,
    ast.USub: operator.neg,
}


Expressions = Annotated[
    tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)
]
"""One expression, or several."""


@dataclass(frozen=True)
class Computed:
    """What results say about a claim on one data set: whether each part holds, and the figures behind this."""

    held: tuple[bool, ...]
    measured: str


class Rule(StrictModel):
    """The rule of one claim about figures.

    let     names of its own
    each    loops, by the name of their variable: all values of the first with all of the second
    needs   what must be true in each turn of the loops; else results decide nothing
    parts   the parts of the claim in each turn of the loops; an array is a part for each element
    holds   parts that are judged once, after the loops
    told    the text of each turn, of which `says` makes the figures behind the verdict
    """

    let: dict[str, Any] = Field({})
    each: dict[str, Any] = Field({})
    needs: Expressions = ()
    parts: Expressions = ()
    holds: Expressions = ()
    told: str = ""
    says: str = "{told:;}"

    def judged(self, paper: "Scope") -> Computed:
        """Judges the claim with the names of its paper. Raises MissingEvidence if a result is missing."""
        with np.errstate(invalid="ignore"):  # of curves that have diverged
            return self._judged(paper.named(self.let))

    def _judged(self, scope: "Scope") -> Computed:
        held, told = [], []
        for turn in scope.turns(self.each):
            if not all(turn.value(each) for each in self.needs):
                raise MissingEvidence(f"what {self.needs} asks for")
            held += [turn.value(each) for each in self.parts]
            told.append(turn.text(self.told))
        held += [scope.value(each) for each in self.holds]
        parts = np.concatenate([np.ravel(each) for each in held]) if held else ()
        return Computed(tuple(map(bool, parts)), scope.with_values({"told": told}).text(self.says))


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
        """Adds the names of a file: a text is an expression, anything else is a value."""
        return self.with_values(
            {key: parsed(each) if isinstance(each, str) else each for key, each in definitions.items()}
        )

    def turns(self, loops: Mapping[str, Any]) -> Iterator["Scope"]:
        """Yields the scope of each turn of some loops. A text among the values is an expression for them all."""
        values = [self.value(each) if isinstance(each, str) else each for each in loops.values()]
        for turn in itertools.product(*values):
            yield self.with_values(dict(zip(loops, turn, strict=True)))

    def text(self, template: str) -> str:
        """Returns a text with the values of the expressions in its braces."""
        said = ""
        for literal, expression, how, _ in Formatter().parse(template):
            said += literal + (formatted(self.value(expression), how or "") if expression else "")
        return said

    def value(self, expression: str) -> Any:
        return self._of(parsed(expression))

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
            case ast.BoolOp(ast.And(), values):
                return all(self._of(each) for each in values)
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
                return replace(self, evidence=self.evidence.on(self._of(data)))._of(expression)
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
    """Returns numbers, or arrays of one shape, as one array. Anything else stays a list."""
    numeric = all(isinstance(each, (float, int, np.ndarray, np.generic)) for each in values)
    return np.array(values) if numeric and len({np.shape(each) for each in values}) == 1 else values


def formatted(value: Any, how: str) -> str:
    """Formats a value for the figures behind a verdict.

    Values of a dictionary stand behind their keys, and several values behind commas, or behind semicolons for ";".
    "…–" is from the least to the largest of them; "ε" is a crossing in words; "3" rounds to so many significant
    figures; "+3" is signed, with so many decimals; "below" counts the pairs of `quantities.below`. All else is
    Python's.
    """
    if how == "below":
        return counted_below(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {formatted(each, how)}" for key, each in value.items())
    if how.endswith("–"):
        every = np.ravel(value).tolist()
        return f"{min(every):{how[:-1]}}–{max(every):{how[:-1]}}"
    if isinstance(value, (list, np.ndarray)):
        return "; ".join(value) if how == ";" else ", ".join(formatted(each, how) for each in value)
    if how == "ε":
        return epsilon_text(value)
    if how.isdigit():
        return significant(value, int(how))
    return signed(value, int(how)) if how.startswith("+") and how[1:].isdigit() else format(value, how)
