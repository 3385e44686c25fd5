"""The pydantic base of all models in a config. They are frozen, and an unknown key is an error with a hint."""

import json
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.core.errors import did_you_mean
from dpmf_cli.core.files import sha256

NEIGHBOURS_HIDE = (
    "`bounded` hides the value of a rating, `unbounded` that it exists, `user` a whole user, `local` the value from "
    "the service too"
)

_ELSEWHERE = {
    "protects": f"; a config says it by `neighbours`: {NEIGHBOURS_HIDE}",
    "seed": "; a config has one `seed`, at its top, and the noise of a release has a secret one: leave it out here",
}
"""What to do about keys that a reader may expect where they do not belong, and that resemble none that does."""


def later(default: Any, **about: Any) -> Any:
    """Returns a field that was added after results had been named.

    Dumps leave it out at its default, so that the names of results stay the same.

    about   further arguments of pydantic's `Field`
    """
    return Field(default, exclude_if=lambda value: value == default, **about)


def tagged(value: Any) -> Any:
    """Returns an entry as a mapping, even if only its algorithm's name was given."""
    return {"algorithm": value} if isinstance(value, str) else value


class StrictModel(BaseModel):
    """A frozen model that refuses keys it does not know and says which known key is nearest."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            known = {info.alias or name for name, info in cls.model_fields.items()}
            for key in data:
                if key not in known:
                    hint = _ELSEWHERE.get(key) or did_you_mean(str(key), sorted(known))
                    raise PydanticCustomError("unknown_key", "unknown key{hint}", {"key": key, "hint": hint})
        return data

    @model_validator(mode="before")
    @classmethod
    def _refuse_yes_and_no(cls, data: Any) -> Any:
        """Refuses true and false where no boolean belongs: pydantic would take them for the numbers 1 and 0."""
        for key, value in data.items() if isinstance(data, dict) else ():
            field = cls.model_fields.get(key)
            if isinstance(value, bool) and field and not _takes(field.annotation, bool):
                no = "false (YAML also reads no and off as false)"
                words = "true (YAML also reads yes and on as true)" if value else no
                message = "{words} is neither a number nor a word; give a number, or put the word in quotes"
                context = {"path": (key,), "words": words}
                raise PydanticCustomError("yes_or_no", message, context)
        return data


class SealedModel(StrictModel):
    """A model whose JSON ends in a checksum of everything before it.

    The checksum finds accidents and careless edits. It is no signature: whoever can write the file can seal it anew.
    """

    seal: str = ""

    def text(self, indent: int | None = None) -> bytes:
        """Returns the JSON of the model with its seal. A file is as it was written if it is equal to this."""
        content = self.model_dump(mode="json", exclude={"seal"})
        seal = sha256(json.dumps(content, ensure_ascii=False, allow_nan=False).encode())
        sealed = {**content, "seal": seal}
        return f"{json.dumps(sealed, indent=indent, ensure_ascii=False, allow_nan=False)}\n".encode()


def _takes(annotation: Any, kind: type) -> bool:
    """Whether an annotation is `kind`, or allows `kind` among others."""
    return annotation in (kind, Any) or any(_takes(each, kind) for each in get_args(annotation))
