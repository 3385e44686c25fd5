"""The JSON schema of config files, for editors."""

from typing import Any

from dpmf_cli.config.keys import ExperimentKeys


def file_schema(model: type[ExperimentKeys]) -> dict[str, Any]:
    """Returns the schema of a file with these keys. It accepts more than the model: a file that extends another may
    leave out what it inherits, or remove it with null, and an entry may get its keys from `parameters`."""
    schema = model.model_json_schema()
    for part in schema["$defs"].values():
        if "required" in part:
            part["required"] = [key for key in part["required"] if key == "algorithm"]
    needed = [key for key in schema.pop("required") if key != "name"]
    properties = {key: _or_null(value) for key, value in schema["properties"].items()}
    return {**schema, "properties": properties, "anyOf": [{"required": needed}, {"required": ["extends"]}]}


def _or_null(value: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {
        key: value.pop(key) for key in ("title", "description", "default") if key in value
    }
    return {**said, "anyOf": [*value.get("anyOf", [value]), {"type": "null"}]}
