"""The pydantic base of all models in a config. They are frozen, and an unknown key is an error with a hint."""

import json
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import ErrorDetails, PydanticCustomError

from dpmf_cli.core.errors import did_you_mean, nearest, words
from dpmf_cli.core.files import sha256

_ELSEWHERE = {
    "seed": "; a config has one `seed`, at its top, and the noise of a release has a secret one: leave it out here",
}
"""What to do about keys that a reader may expect where they do not belong."""


def later(default: Any, **about: Any) -> Any:
    """A field that was added after results had been named: dumps leave it out at its default, so that names stay the
    same.

    about   further arguments of pydantic's `Field`
    """
    return Field(default, exclude_if=lambda value: value == default, **about)


def tagged(value: Any) -> Any:
    """An entry as a mapping, even if only its algorithm's name was given."""
    return {"algorithm": value} if isinstance(value, str) else value


def in_words(error: ErrorDetails) -> str:
    """What one of pydantic's errors says, in dpmf's words: what the value must be, not what it is."""
    said = words("expected").get(error["type"])
    return said.format(**error.get("ctx", {})) if said else error["msg"].removeprefix("Value error, ")


def said_as(message: str) -> WrapValidator:
    """A validator that says `message` for any mistake in a value, of which a union would tell several."""

    def refuse(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate(value)
        except ValidationError:
            raise PydanticCustomError("said", "{message}", {"message": message}) from None

    return WrapValidator(refuse)


SAME = 0.85
"""The similarity from which a word is another one, miswritten or in the plural."""


class StrictModel(BaseModel):
    """A frozen model that refuses keys it does not know and says which known key is nearest."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            known = {info.alias or name: info for name, info in cls.model_fields.items()}
            for key in data:
                if key not in known:
                    internal = [
                        each for each, info in known.items() if SkipJsonSchema in map(type, info.metadata)
                    ]
                    shown = sorted(known.keys() - internal)
                    hint = _ELSEWHERE.get(key) or _hint(cls, str(key), shown)
                    context = {"key": key, "hint": hint, "known": shown}
                    raise PydanticCustomError("unknown_key", "unknown key{hint}", context)
        return data

    @model_validator(mode="before")
    @classmethod
    def _refuse_yes_and_no(cls, data: Any) -> Any:
        """Raises an error for true and false where no boolean belongs, which pydantic would take for the numbers 1
        and 0."""
        for key, value in data.items() if isinstance(data, dict) else ():
            field = cls.model_fields.get(key)
            kinds = [kind for kind in (bool, int, float, str) if field and _takes(field.annotation, kind)]
            if isinstance(value, bool) and kinds and bool not in kinds:
                no = "false (YAML also reads no and off as false)"
                words = "true (YAML also reads yes and on as true)" if value else no
                message = "{words} is neither a number nor a word; give a number, or put the word in quotes"
                context = {"path": (key,), "words": words}
                raise PydanticCustomError("yes_or_no", message, context)
        return data


class SealedModel(StrictModel):
    """A model whose JSON ends in a checksum of everything before it.

    The checksum finds accidents and careless edits. It is no signature, because one who can write the file can seal
    it anew.
    """

    seal: str = ""

    def text(self, indent: int | None = None) -> bytes:
        """The JSON of the model with its seal. A file is as it was written if it is equal to this."""
        content = self.model_dump(mode="json", exclude={"seal"})
        seal = sha256(json.dumps(content, ensure_ascii=False, allow_nan=False).encode())
        sealed = {**content, "seal": seal}
        return f"{json.dumps(sealed, indent=indent, ensure_ascii=False, allow_nan=False)}\n".encode()


def _takes(annotation: Any, kind: type) -> bool:
    """Whether an annotation is `kind`, or allows `kind` among others."""
    return annotation in (kind, Any) or any(_takes(each, kind) for each in get_args(annotation))


def _hint(model: type[BaseModel], key: str, known: list[str]) -> str:
    """What to do about a key that a model does not know: take the nearest, or write it inside of another."""
    if not nearest(key, known, near=SAME):
        homes = [
            f"in an item of `{name}`" if get_origin(field.annotation) is list else f"in `{name}`"
            for name, field in model.model_fields.items()
            if any(key in each.model_fields for each in _models(field.annotation))
        ]
        if homes:
            return f"; it belongs {', or '.join(homes)}"
    return did_you_mean(key, known)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yields the models that an annotation allows, alone, among others or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from _models(each)
