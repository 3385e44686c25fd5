"""The pydantic base of everything that a config holds: frozen, and an unknown key is an error with a hint."""

from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.errors import did_you_mean


def later(default: Any, **about: Any) -> Any:
    """A field that came after results had been named: dumps leave it out at its default, so that names stay.

    about   what else pydantic's `Field` takes
    """
    return Field(default, exclude_if=lambda value: value == default, **about)


def tagged(value: Any) -> Any:
    """An entry as a mapping, where it may be given by the name of its algorithm alone."""
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
                    hint = did_you_mean(str(key), sorted(known))
                    raise PydanticCustomError("unknown_key", "unknown key{hint}", {"key": key, "hint": hint})
        return data

    @model_validator(mode="before")
    @classmethod
    def _refuse_yes_and_no(cls, data: Any) -> Any:
        """Pydantic would take them for the numbers 1 and 0."""
        for key, value in data.items() if isinstance(data, dict) else ():
            field = cls.model_fields.get(key)
            if isinstance(value, bool) and field and not _takes(field.annotation, bool):
                words = (
                    "true (so YAML reads yes and on too)" if value else "false (so YAML reads no and off too)"
                )
                message = "{words} is no number and no word; give a number, or put the word in quotes"
                context = {"path": (key,), "words": words}
                raise PydanticCustomError("yes_or_no", message, context)
        return data


def _takes(annotation: Any, kind: type) -> bool:
    """Whether `kind` is, or is among, what an annotation names."""
    return annotation in (kind, Any) or any(_takes(each, kind) for each in get_args(annotation))
